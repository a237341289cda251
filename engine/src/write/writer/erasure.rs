//! Erasure on the writer's thread: all obstacles are checked once more, and a tombstone or stubs are
//! committed in one transaction with their audit entry.
//!
//! From that commit on the erased grains are never shown. Removing their remains from the disk is the task of
//! `scrub`.

use std::collections::BTreeSet;
use std::sync::Arc;

use grainstore_format::{ContentAddress, EpochMs, GrainType};
use grainstore_index::Sequence;
use redb::ReadableTable;

use super::application::remove_owned;
use super::{WriteTxn, Writer};
use crate::base::error::{Error, ErrorKind, Result, catch_storage_panic};
use crate::disk::blob::with_fields;
use crate::disk::layout::{
    self, AddressKey, AuditHead, PendingScrub, RemovedVectors, Stub, Tombstone, UserToken,
};
use crate::disk::truth_tables::TruthTable;
use crate::disk::truth_transaction::RowWriter;
use crate::rules::preset::ActiveRules;
use crate::search::texts::ConversationWindow;
use crate::state::application::ApplicationCounts;
use crate::state::audit::{AuditOperation, AuditRecord, ErasedConsent};
use crate::state::erasure::erased_error;
use crate::state::view::View;
use crate::write::erasure::{
    ErasureRequest, ErasureVerdict, check_grain_erasure, check_user_erasure, consents_of,
    user_sequences,
};
use crate::write::plan::Principal;

/// Maximum number of grains of a user that become stubs in the transaction of their erasure.
const MAX_STUBS_AT_ONCE: usize = 1 << 16;

/// The target of an erasure.
#[derive(Debug, Clone)]
pub(crate) enum ErasureTarget {
    /// All grains of a user.
    User(String),
    /// One grain.
    Grain(ContentAddress),
    /// Those of these grains that may be erased; the others are skipped.
    Due(Vec<ContentAddress>),
}

/// An erasure to carry out.
#[derive(Debug, Clone)]
pub(crate) struct ErasureOrder {
    pub(crate) target: ErasureTarget,
    pub(crate) author: Principal,
    /// True if a malformed retention policy is overridden.
    pub(crate) overrides: bool,
    /// The rule behind an automatic erasure; `None` for one requested by a caller.
    pub(crate) rule: Option<&'static str>,
}

/// A committed erasure.
#[derive(Debug)]
pub(crate) struct CommittedErasure {
    /// Sequence of its audit entry.
    pub(crate) sequence: u64,
    pub(crate) entry: Vec<u8>,
    /// The end of the audit chain with that entry.
    pub(crate) head: AuditHead,
    /// Number of grains erased.
    pub(crate) grains: u64,
    /// Numbers of rows and blobs erased with them.
    pub(crate) application: ApplicationCounts,
}

/// The rows written by an erasure.
struct ErasureEffect {
    grains: Vec<(Sequence, AddressKey)>,
    user: Option<UserToken>,
    /// What the keys of their rows and blobs begin with in the table of owners.
    owned: Vec<Vec<u8>>,
    record: AuditRecord,
    /// Records of erased consents, written before the erasure that removes their contents (ruling 40).
    consents: Vec<AuditRecord>,
}

impl Writer {
    /// Destroys the keys of erased users: from here on their remains on the disk are unreadable. After a
    /// crash before this, the next open does it.
    ///
    /// # Errors
    /// `ERR_IO`, after which the writer has stopped.
    pub(crate) fn destroy_user_keys(&mut self) -> Result<()> {
        self.stop_on_error(|writer| writer.view.destroy_user_keys())
    }

    /// Erases the target if allowed; `None` if there is nothing to erase.
    ///
    /// # Errors
    /// `ERR_INVALIDATION_DENIED` for grains under hold, `ERR_POLICY` for grains that must be kept: the
    /// refusal is in the audit log. `ERR_ERASED`, `ERR_NOT_FOUND` for a grain that is not stored.
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn erase(&mut self, order: &ErasureOrder) -> Result<Option<CommittedErasure>> {
        // Waiting counts must not be written after the stubs.
        self.flush_counts()?;
        if self.view.vault().keyring().is_some() {
            // Without the key the addresses of its grains can no longer be computed, so the index must have
            // them.
            self.fold_all()?;
        }
        let (view, now) = (Arc::clone(&self.view), self.clock.now());
        let (effect, refusal) =
            catch_storage_panic(|| decide_erasure(&view, (&self.rules, now), order))?;
        drop(view);
        if let Some(refusal) = refusal {
            self.write_audit_record(effect.record, |_| Ok(()))?;
            return Err(refusal);
        }
        if effect.grains.is_empty() && effect.user.is_none() {
            return Ok(None);
        }
        let mut touched = BTreeSet::new();
        let done = self.transact(|write_txn, rows| {
            let mut window = ConversationWindow::of(write_txn.view);
            // Nobody else takes words from a user's turns.
            for (at, _) in effect.grains.iter().filter(|_| effect.user.is_none()) {
                touched.extend(window.dependents(*at)?);
            }
            let application = write_effect(write_txn, rows, &effect)?;
            let places = effect.grains.iter().map(|(at, _)| *at).collect::<Vec<_>>();
            let mut records = effect.consents;
            records.push(AuditRecord { application: application.if_any(), ..effect.record });
            Ok(Some(((places, application), records)))
        })?;
        let Some((places, application)) = done else { return Ok(None) };
        self.destroy_user_keys()?;
        self.retrieval.text_index.reindex(touched);
        let grains = u64::try_from(places.len()).unwrap_or(u64::MAX);
        self.scrub.schedule(places);
        let head = self.view.audit_head()?;
        let sequence = head.count.saturating_sub(1);
        let entry = self.view.audit_rows()?.get(sequence)?;
        let missing = || Error::integrity("the audit entry of an erasure is missing");
        let entry = entry.ok_or_else(missing)?;
        Ok(Some(CommittedErasure { sequence, entry, head, grains, application }))
    }
}

/// Returns the effect of the erasure, or of its refusal with the error.
fn decide_erasure(
    view: &View,
    (active_rules, now): (&ActiveRules, EpochMs),
    order: &ErasureOrder,
) -> Result<(ErasureEffect, Option<Error>)> {
    let reason = order.author.reason.as_deref().unwrap_or_default();
    let asked = ErasureRequest { now, reason, overrides: order.overrides, active_rules };
    let rules = order.rule.into_iter().collect();
    let mut record =
        AuditRecord { rules, ..order.author.record(AuditOperation::Erase, Vec::new()) };
    let (mut grains, mut user, mut consents) = (Vec::new(), None, Vec::new());
    let mut owned = Vec::new();
    // Whoever changed the table of owners would keep rows from being erased.
    view.check_owners()?;
    let verdict = match &order.target {
        ErasureTarget::User(id) => {
            let token = view.chain_before_genesis()?.user_token(id);
            record.operation = AuditOperation::EraseUser;
            record.subjects = vec![ContentAddress::from_bytes(token.0)];
            user = Some(token);
            owned.push(token.0.to_vec());
            consents = consents_of(view, id)?;
            grains = keyed_grains(view, id, &consents)?;
            check_user_erasure(view, id, &asked)?
        }
        ErasureTarget::Grain(address) => {
            let at = locate(view, address)?;
            record.subjects = vec![*address];
            grains.push((at, view.vault().address_key(address)));
            owned.push(view.owner_at(at)?.row.prefix().to_vec());
            consents = vec![at];
            check_grain_erasure(view, at, &asked)?
        }
        ErasureTarget::Due(addresses) => {
            for address in addresses {
                let Some(at) = view.sequence_of(address)? else { continue };
                if check_grain_erasure(view, at, &asked)?.refusal.is_none() {
                    record.subjects.push(*address);
                    owned.push(view.owner_at(at)?.row.prefix().to_vec());
                    grains.push((at, view.vault().address_key(address)));
                }
            }
            ErasureVerdict::default()
        }
    };
    // A sweep says why it erases, and is refused nothing.
    record.results = if record.rules.is_empty() { verdict.results() } else { Vec::new() };
    record.rules.extend(verdict.rules);
    record.refused = verdict.refusal.is_some();
    record.code = verdict.refusal.as_ref().map(Error::code);
    record.refused_by = verdict.refused_by;
    let consents = match verdict.refusal {
        None => consent_records(view, &consents, &record)?,
        Some(_) => Vec::new(),
    };
    Ok((ErasureEffect { grains, user, owned, record, consents }, verdict.refusal))
}

/// Returns the grains of a user whose addresses nobody can compute once their key is destroyed, or only their
/// consents if there are too many for one transaction: in an encrypted store they become stubs at once, which keep
/// the addresses whatever becomes of the index.
fn keyed_grains(
    view: &View,
    user: &str,
    consents: &[Sequence],
) -> Result<Vec<(Sequence, AddressKey)>> {
    if view.vault().keyring().is_none() {
        return Ok(Vec::new());
    }
    let theirs = user_sequences(view, user)?;
    let places = if theirs.len() <= MAX_STUBS_AT_ONCE { &theirs } else { consents };
    let keyed = places.iter().map(|at| {
        view.with_blob(*at, |blob| Ok((*at, view.vault().address_key(&ContentAddress::of(blob)))))
    });
    keyed.collect()
}

/// Returns records of those of these grains that are consents.
fn consent_records(
    view: &View,
    places: &[Sequence],
    erasure: &AuditRecord,
) -> Result<Vec<AuditRecord>> {
    let mut records = Vec::new();
    for at in places {
        let told = view.with_blob(*at, |blob| {
            let address = ContentAddress::of(blob);
            with_fields(blob, |grain| {
                let is_consent = grain.grain_type() == GrainType::Consent;
                Ok(is_consent.then(|| (address, ErasedConsent::from_grain(grain))))
            })
        })?;
        records.extend(told.map(|(address, consent)| AuditRecord {
            actor: erasure.actor.clone(),
            consent: Some(consent),
            ..AuditRecord::new(AuditOperation::EraseConsent, vec![address])
        }));
    }
    Ok(records)
}

/// Returns the sequence of a grain to be erased.
fn locate(view: &View, address: &ContentAddress) -> Result<Sequence> {
    match view.sequence_of(address)? {
        Some(at) => Ok(at),
        None if view.has_erased_grain(address)? => Err(erased_error(address)),
        None => Err(Error::new(ErrorKind::NotFound, format!("no grain {address}"))),
    }
}

/// Writes the rows of an erasure, and removes what belongs to whom it erases. Returns how much that was.
fn write_effect(
    write_txn: &WriteTxn<'_>,
    rows: &mut RowWriter<'_>,
    effect: &ErasureEffect,
) -> Result<ApplicationCounts> {
    let view = write_txn.view;
    // Records of consents come before the erasure's own entry.
    let before = u64::try_from(effect.consents.len()).unwrap_or(u64::MAX);
    let entry = write_txn.first_entry.saturating_add(before);
    let cutoff = view.last_sequence()?;
    let slot = effect.user.map_or(0, |token| view.vault().last_slot(&token));
    if let Some(token) = &effect.user {
        let tombstone = Tombstone { cutoff, time: write_txn.now, entry };
        rows.put(TruthTable::Tombstones, token.0.as_slice(), &tombstone.encode(token))?;
        rows.mark_destroyed(&token.0, slot)?;
    }
    write_stubs(view, rows, &effect.grains)?;
    let mut application = ApplicationCounts::default();
    for prefix in &effect.owned {
        application = application.plus(remove_owned(view, rows, prefix)?);
    }
    let mut erasures =
        view.erasures()?.with_pending(PendingScrub { user: effect.user, slot, cutoff, entry });
    erasures.stubs = erasures.stubs.saturating_add(count(&effect.grains));
    rows.put(TruthTable::Meta, layout::META_ERASURES, &erasures.seal())?;
    Ok(application)
}

fn count(grains: &[(Sequence, AddressKey)]) -> u64 {
    u64::try_from(grains.len()).unwrap_or(u64::MAX)
}

/// Replaces grains by stubs, and removes all rows that belong to them.
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_IO`.
pub(super) fn write_stubs(
    view: &View,
    rows: &mut RowWriter<'_>,
    grains: &[(Sequence, AddressKey)],
) -> Result<()> {
    let mut has_vectors = false;
    for (at, address) in grains {
        write_stub(view, rows, *at, *address)?;
        rows.mark_erased(*at)?;
        for table in
            [TruthTable::State, TruthTable::Roots, TruthTable::Signatures, TruthTable::Access]
        {
            rows.remove(table, *at)?;
        }
        has_vectors |= remove_vectors(rows, *at)?;
    }
    if has_vectors {
        let row = view.last_vector_row()?.saturating_add(1);
        let gone = RemovedVectors { row, space: view.removed_vectors()?.space };
        rows.put(TruthTable::Meta, layout::META_REMOVED_VECTORS, &gone.seal())?;
    }
    Ok(())
}

/// Replaces a grain by a stub. The audit entry beside it stays: it names addresses alone, and the chain needs it.
fn write_stub(
    view: &View,
    rows: &mut RowWriter<'_>,
    at: Sequence,
    address: AddressKey,
) -> Result<()> {
    let row = rows.get(TruthTable::Log, at)?.unwrap_or_default();
    let stub = Stub { address }.seal(at, view.vault());
    let stub = view.vault().split_log_row(&row).with_envelope(&stub)?;
    rows.put(TruthTable::Log, at, &stub).map(drop)
}

/// Removes the vectors of a grain, whose row numbers are not used again. Returns `true` if it had any.
fn remove_vectors(rows: &mut RowWriter<'_>, at: Sequence) -> Result<bool> {
    let Some(list) = rows.get(TruthTable::VectorRows, at)? else { return Ok(false) };
    rows.remove(TruthTable::VectorRows, at)?;
    let mut removed = false;
    for row in layout::decode_rows(&list)? {
        removed |= rows.remove(TruthTable::Vectors, row)?;
    }
    Ok(removed)
}

/// Returns the audit entries whose reasons are about erased grains. Reasons of erasures themselves stay.
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_IO`.
pub(super) fn reasons_of_erased(view: &View) -> Result<Vec<u64>> {
    let table = view.transaction().open_table(layout::REASONS)?;
    let mut found = Vec::new();
    for row in table.iter()? {
        let entry = row?.0.value();
        if view.is_reason_erased(entry)? {
            found.push(entry);
        }
    }
    Ok(found)
}
