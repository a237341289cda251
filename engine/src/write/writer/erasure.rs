//! Erasing, on the writer's thread: what stands against it is asked once more, and a tombstone or stubs
//! go into one transaction with the audit entry that tells of them.
//!
//! From that commit on nobody is shown what was erased. What is left of it on the disk is for `scrub`.

use std::collections::BTreeSet;
use std::sync::Arc;

use grainstore_format::{ContentAddress, EpochMs, GrainType};
use grainstore_index::Sequence;
use redb::{ReadableTable, TableHandle, WriteTransaction};

use super::{Ground, Writer};
use crate::base::error::{Error, ErrorKind, Result, guarded};
use crate::disk::keys::{
    self, AddressKey, AuditHead, Gone, Stub, Tombstone, Unscrubbed, UserToken,
};
use crate::operate::erase::{Asked, Verdict, consents_of, erased, judge_grain, judge_user};
use crate::rules::preset::Regime;
use crate::search::texts::Around;
use crate::state::audit::{AuditRecord, ErasedConsent, Operation};
use crate::state::view::{View, with_fields};
use crate::write::plan::Author;

/// What is to be erased.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    /// All of a user.
    User(String),
    /// One grain.
    Grain(ContentAddress),
    /// These, where nothing stands against it: the others are passed over.
    Due(Vec<ContentAddress>),
}

/// Who wants what to be erased.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) target: Target,
    pub(crate) author: Author,
    /// Whether a malformed retention policy is overridden.
    pub(crate) overrides: bool,
    /// Why without being asked; nothing where somebody asked.
    pub(crate) rule: Option<&'static str>,
}

/// An erasure that is committed.
#[derive(Debug)]
pub(crate) struct Done {
    /// Its audit entry.
    pub(crate) sequence: u64,
    pub(crate) entry: Vec<u8>,
    /// Where the chain ended with it.
    pub(crate) head: AuditHead,
    /// Grains of [`Target::Due`] that were erased.
    pub(crate) grains: u64,
}

/// What is written of an erasure.
struct Effect {
    grains: Vec<(Sequence, AddressKey)>,
    user: Option<UserToken>,
    record: AuditRecord,
    /// What is left of consents, told before the erasure that takes their contents (ruling 40).
    consents: Vec<AuditRecord>,
}

impl Writer {
    /// Destroys the keys of people who were erased: from here on what is left of them on the disk is noise.
    /// A crash before that has it done when the store is next open.
    ///
    /// # Errors
    /// `ERR_IO`, after which writing has ended.
    pub(crate) fn destroy_secrets(&mut self) -> Result<()> {
        self.or_stop(|writer| writer.view.destroy_secrets())
    }

    /// Erases, if nothing stands against it; nothing where there is nothing to erase.
    ///
    /// # Errors
    /// `ERR_INVALIDATION_DENIED` for what is held, `ERR_POLICY` for what has to be kept: the refusal is
    /// in the audit log. `ERR_ERASED`, `ERR_NOT_FOUND` for a grain that is not here. `ERR_INTEGRITY`,
    /// `ERR_IO`.
    pub(crate) fn erase(&mut self, order: &Order) -> Result<Option<Done>> {
        // Counts that wait would come behind the stubs.
        self.flush_counts()?;
        if self.view.vault().keyring().is_some() {
            // With a key goes the way to make the addresses of what is under it: the index keeps them.
            self.fold_all()?;
        }
        let (view, now) = (Arc::clone(&self.view), self.clock.now());
        let (effect, refusal) = guarded(|| decide(&view, (&self.regime, now), order))?;
        drop(view);
        if let Some(refusal) = refusal {
            self.note(effect.record, |_| Ok(()))?;
            return Err(refusal);
        }
        if effect.grains.is_empty() && effect.user.is_none() {
            return Ok(None);
        }
        let mut touched = BTreeSet::new();
        let places = self.import(|ground| {
            let mut around = Around::of(ground.view);
            for (at, _) in &effect.grains {
                touched.extend(around.borrowers(*at)?);
            }
            write(ground, &effect)?;
            let places = effect.grains.iter().map(|(at, _)| *at).collect::<Vec<_>>();
            let mut records = effect.consents;
            records.push(effect.record);
            Ok(Some((places, records)))
        })?;
        let Some(places) = places else { return Ok(None) };
        self.destroy_secrets()?;
        self.retrieval.library.touch(touched);
        let grains = u64::try_from(places.len()).unwrap_or(u64::MAX);
        self.scrub.note(places);
        let head = self.view.audit_head()?;
        let sequence = head.count.saturating_sub(1);
        let entry = self.view.audit()?.get(sequence)?.map(|entry| entry.value().to_vec());
        let missing = || Error::integrity("the audit entry of an erasure is missing");
        Ok(Some(Done { sequence, entry: entry.ok_or_else(missing)?, head, grains }))
    }
}

/// What is to be written, and the refusal where it is only the record of one.
fn decide(
    view: &View,
    (regime, now): (&Regime, EpochMs),
    order: &Order,
) -> Result<(Effect, Option<Error>)> {
    let reason = order.author.reason.as_deref().unwrap_or_default();
    let asked = Asked { now, reason, overrides: order.overrides, regime };
    let rules = order.rule.into_iter().collect();
    let mut record = AuditRecord { rules, ..order.author.record(Operation::Erase, Vec::new()) };
    let (mut grains, mut user, mut consents) = (Vec::new(), None, Vec::new());
    let verdict = match &order.target {
        Target::User(id) => {
            let token = view.chain_before_genesis()?.user_token(id);
            record.operation = Operation::EraseUser;
            record.subjects = vec![ContentAddress::from_bytes(token.0)];
            user = Some(token);
            consents = consents_of(view, id)?;
            judge_user(view, id, &asked)?
        }
        Target::Grain(address) => {
            let at = place(view, address)?;
            record.subjects = vec![*address];
            grains.push((at, view.vault().address(address)));
            consents = vec![at];
            judge_grain(view, at, &asked)?
        }
        Target::Due(addresses) => {
            for address in addresses {
                let Some(at) = view.sequence_of(address)? else { continue };
                if judge_grain(view, at, &asked)?.refusal.is_none() {
                    record.subjects.push(*address);
                    grains.push((at, view.vault().address(address)));
                }
            }
            Verdict::default()
        }
    };
    record.rules.extend(verdict.rules);
    record.refused = verdict.refusal.is_some();
    record.refused_by = verdict.refused_by;
    let consents = match verdict.refusal {
        None => left_of(view, &consents, &record)?,
        Some(_) => Vec::new(),
    };
    Ok((Effect { grains, user, record, consents }, verdict.refusal))
}

/// What is left of those of these grains that are consents.
fn left_of(view: &View, places: &[Sequence], erasure: &AuditRecord) -> Result<Vec<AuditRecord>> {
    let mut records = Vec::new();
    for at in places {
        let told = view.with_blob(*at, |blob| {
            let address = ContentAddress::of(blob);
            with_fields(blob, |grain| {
                let is_consent = grain.grain_type() == GrainType::Consent;
                Ok(is_consent.then(|| (address, ErasedConsent::of_grain(grain))))
            })
        })?;
        records.extend(told.map(|(address, consent)| AuditRecord {
            actor: erasure.actor.clone(),
            consent: Some(consent),
            ..AuditRecord::of(Operation::EraseConsent, vec![address])
        }));
    }
    Ok(records)
}

/// Where a grain lies that is to be erased.
fn place(view: &View, address: &ContentAddress) -> Result<Sequence> {
    match view.sequence_of(address)? {
        Some(at) => Ok(at),
        None if view.has_erased_grain(address)? => Err(erased(address)),
        None => Err(Error::new(ErrorKind::NotFound, format!("no grain {address}"))),
    }
}

fn write(ground: &Ground<'_>, effect: &Effect) -> Result<()> {
    let (view, txn) = (ground.view, ground.txn);
    // What is left of consents is told first.
    let before = u64::try_from(effect.consents.len()).unwrap_or(u64::MAX);
    let entry = ground.first_entry.saturating_add(before);
    let cutoff = view.last_sequence()?;
    let slot = effect.user.map_or(0, |token| view.vault().slot_of(&token));
    if let Some(token) = &effect.user {
        let tombstone = Tombstone { cutoff, time: ground.now, entry };
        let mut tombstones = txn.open_table(keys::TOMBSTONES)?;
        tombstones.insert(token.0.as_slice(), tombstone.encode(token).as_slice())?;
        view.vault().mark_destroyed(txn, &token.0, slot)?;
    }
    put_stubs(view, txn, &effect.grains)?;
    let mut erasures = view.erasures()?.with(Unscrubbed { user: effect.user, slot, cutoff, entry });
    erasures.stubs = erasures.stubs.saturating_add(count(&effect.grains));
    txn.open_table(keys::META)?.insert(keys::META_ERASURES, erasures.seal().as_slice())?;
    Ok(())
}

fn count(grains: &[(Sequence, AddressKey)]) -> u64 {
    u64::try_from(grains.len()).unwrap_or(u64::MAX)
}

/// Puts stubs in the place of grains, and removes everything that stands beside them.
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_IO`.
pub(super) fn put_stubs(
    view: &View,
    txn: &WriteTransaction,
    grains: &[(Sequence, AddressKey)],
) -> Result<()> {
    if grains.is_empty() {
        return Ok(());
    }
    let tables: BTreeSet<String> =
        txn.list_tables()?.map(|table| table.name().to_owned()).collect();
    let has = |table: &dyn TableHandle| tables.contains(table.name());
    {
        let mut log = txn.open_table(keys::LOG)?;
        let mut states = txn.open_table(keys::STATE)?;
        let mut roots = txn.open_table(keys::ROOTS)?;
        for (at, address) in grains {
            log.insert(at.get(), Stub { address: *address }.seal(*at).as_slice())?;
            states.remove(at.get())?;
            roots.remove(at.get())?;
        }
    }
    if has(&keys::SIGNATURES) {
        let mut signatures = txn.open_table(keys::SIGNATURES)?;
        grains.iter().try_for_each(|(at, _)| signatures.remove(at.get()).map(drop))?;
    }
    if has(&keys::ACCESS) {
        let mut access = txn.open_table(keys::ACCESS)?;
        grains.iter().try_for_each(|(at, _)| access.remove(at.get()).map(drop))?;
    }
    if has(&keys::VECTOR_ROWS) {
        remove_vectors(view, txn, grains)?;
    }
    Ok(())
}

/// Removes the vectors of grains. No later vector gets the row of one of them.
fn remove_vectors(
    view: &View,
    txn: &WriteTransaction,
    grains: &[(Sequence, AddressKey)],
) -> Result<()> {
    let mut vectors = txn.open_table(keys::VECTORS)?;
    let mut lists = txn.open_table(keys::VECTOR_ROWS)?;
    let mut removed = false;
    for (at, _) in grains {
        let Some(list) = lists.remove(at.get())? else { continue };
        for row in keys::decode_rows(list.value())? {
            removed |= vectors.remove(row)?.is_some();
        }
    }
    if removed {
        let row = view.last_vector()?.saturating_add(1);
        let gone = Gone { row, space: view.gone()?.space };
        txn.open_table(keys::META)?.insert(keys::META_GONE, gone.seal().as_slice())?;
    }
    Ok(())
}

/// The rows of audit reasons that are about what was erased. What was said of an erasure itself stays.
///
/// # Errors
/// `ERR_INTEGRITY`, `ERR_IO`.
pub(super) fn reasons_of_erased(view: &View) -> Result<Vec<u64>> {
    let table = view.transaction().open_table(keys::REASONS)?;
    let mut found = Vec::new();
    for row in table.iter()? {
        let entry = row?.0.value();
        if view.is_reason_erased(entry)? {
            found.push(entry);
        }
    }
    Ok(found)
}
