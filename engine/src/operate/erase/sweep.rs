//! The sweep: erases grains that end with the consent they rest on (OMS 23.2 `consent_cascade`; rulings 20,
//! 39 and 40).
//!
//! After a withdrawal by a party with the right to it, a grain is due at once. After one by another party,
//! the withdrawal is marked for review, and the grain is due when the promised time has passed, unless the
//! subject or the operator has granted the consent anew by then.

use crate::write::erasure::{ErasureRequest, check_grain_erasure};
use std::collections::{BTreeMap, BTreeSet};

use grainstore_format::{ContentAddress, EpochMs, GrainType};
use grainstore_index::{Field, IndexLookup, Scope, Sequence, TimeOrder, TimeRange};
use serde::Serialize;

use super::{ErasureTarget, Session};
use crate::base::error::{Result, catch_storage_panic};
use crate::disk::blob::{is_withdrawal, with_fields};
use crate::disk::layout::{self, StateRecord};
use crate::handle::store::Store;
use crate::rules::policy::{PolicyRule, PolicyTerms};
use crate::state::audit::{AuditEntry, AuditOperation};
use crate::state::powers::Power;
use crate::state::view::View;
use crate::write::plan::{GRANTED_ANEW, Principal, SUCCESSOR_GONE};
use crate::write::writer::{ErasureOrder as Erase, Writer};

/// Grains that are erased in one transaction.
const SWEEP_BATCH_GRAINS: usize = 1000;
/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;
/// Time between two automatic sweeps of an open store.
pub(crate) const SWEEP_INTERVAL_MS: i64 = 3_600_000;
/// Reason in the audit log.
const SWEEP_REASON: &str = "the consent it rests on was withdrawn";

/// The result of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct SweepReport {
    /// Grains that were erased, including automatic sweeps since the store was opened or this was last
    /// called.
    pub erased: u64,
    /// Grains that are due and stay: under hold, or to be retained.
    pub skipped: u64,
}

/// A grain that ends with a withdrawn consent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DueErasure {
    /// The grain.
    pub address: ContentAddress,
    /// Time from which a sweep erases it.
    pub due: EpochMs,
    /// Time by which it has to be erased.
    pub latest: EpochMs,
    /// True if a hold or a retention time keeps it.
    pub kept: bool,
}

/// The effect of one withdrawal on the grains that rest on a grant.
struct ConsentEnd {
    due: EpochMs,
    latest: EpochMs,
    /// Sequence of the new grant, if there is one: later grains rest on that.
    before: Option<Sequence>,
}

impl Session {
    /// Erases what is due: grains of mode `consent_cascade` whose `processing_basis` names a withdrawn
    /// consent. They are due at once if the subject, the grantee, the operator or a signature of the subject
    /// withdrew it; otherwise after
    /// [`OpenOptions::cascade_after_days`](crate::OpenOptions::cascade_after_days). Grains that are held or
    /// to be retained stay, and so do consents themselves. An open store does this by itself when it is
    /// opened, and every hour.
    ///
    /// # Errors
    /// `ERR_ACCESS` unless the session is the operator's, without a namespace and a user; `ERR_IO`,
    /// `ERR_INTEGRITY`.
    pub fn sweep(&self) -> Result<SweepReport> {
        self.check_power(Power::Sweep)?;
        let author = self.author_to_erase(None, SWEEP_REASON)?;
        let view = self.view()?;
        let now = self.now();
        let days = self.store().inner().cascade_after_days();
        let due = catch_storage_panic(|| due_times(&view, days, now))?
            .into_iter()
            .filter(|(_, due)| *due <= now);
        let due: Vec<ContentAddress> = due.map(|(address, _)| address).collect();
        drop(view);
        let mut swept = SweepReport::default();
        for chunk in due.chunks(SWEEP_BATCH_GRAINS) {
            let order = sweep_order(chunk, author.clone());
            let done = self.store().run_exclusive(move |writer| writer.erase(&order))?;
            let erased = done.map_or(0, |done| done.grains);
            swept.erased = swept.erased.saturating_add(erased);
            let view = self.view()?;
            for address in chunk {
                swept.skipped += u64::from(view.sequence_of(address)?.is_some());
            }
        }
        // Asked last: the store may have erased by itself what was found due.
        let by_itself =
            self.store().run_exclusive(|writer| Ok(std::mem::take(&mut writer.swept)))?;
        swept.erased = swept.erased.saturating_add(by_itself);
        Ok(swept)
    }
}

impl Store {
    /// Returns the grains that end with withdrawn consents, due now or later.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn due_erasures(&self) -> Result<Vec<DueErasure>> {
        let view = self.inner().view()?;
        let now = self.inner().clock().now();
        let (days, active_rules) = (self.inner().cascade_after_days(), self.inner().active_rules());
        let asked = ErasureRequest { now, reason: SWEEP_REASON, overrides: false, active_rules };
        catch_storage_panic(|| {
            let mut found = Vec::new();
            for (address, ConsentEnd { due, latest, .. }) in ended_grains(&view, days, now)? {
                let Some(at) = view.sequence_of(&address)? else { continue };
                let kept = check_grain_erasure(&view, at, &asked)?.refusal.is_some();
                found.push(DueErasure { address, due, latest, kept });
            }
            Ok(found)
        })
    }
}

impl Writer {
    /// Erases what is due, if it is time to look. A failure is not reported: it is tried again in an hour,
    /// and `doctor` lists what is due.
    pub(crate) fn sweep_when_due(&mut self) {
        let now = self.clock.now();
        if self.failed.is_some() || is_ahead(self.next_sweep, now) {
            return;
        }
        let hour = EpochMs::new(now.get().saturating_add(SWEEP_INTERVAL_MS));
        self.next_sweep = hour;
        let view = std::sync::Arc::clone(&self.view);
        let Ok(endings) = catch_storage_panic(|| due_times(&view, self.cascade_after_days(), now))
        else {
            return;
        };
        drop(view);
        // A grain due within the hour is erased on time.
        let ahead = endings.iter().map(|(_, due)| *due).filter(|due| *due > now).min();
        self.next_sweep = ahead.map_or(hour, |ahead| ahead.min(hour));
        let due = endings.into_iter().filter(|(_, due)| *due <= now);
        let due: Vec<ContentAddress> = due.map(|(address, _)| address).collect();
        let author = Principal { reason: Some(SWEEP_REASON.to_owned()), ..Principal::default() };
        for chunk in due.chunks(SWEEP_BATCH_GRAINS) {
            let Ok(done) = catch_storage_panic(|| self.erase(&sweep_order(chunk, author.clone())))
            else {
                return;
            };
            self.swept = self.swept.saturating_add(done.map_or(0, |done| done.grains));
        }
    }
}

/// Whether the time of a sweep has not come. None is further ahead than an hour but for a clock that was set
/// back, which must not make it wait, and a store that is only read.
fn is_ahead(next: EpochMs, now: EpochMs) -> bool {
    let wait = next.get().saturating_sub(now.get());
    (1..=SWEEP_INTERVAL_MS).contains(&wait) || next.get() == i64::MAX
}

fn sweep_order(chunk: &[ContentAddress], author: Principal) -> Erase {
    Erase {
        target: ErasureTarget::Due(chunk.to_vec()),
        author,
        overrides: false,
        rule: Some(PolicyRule::ConsentCascade.info().name),
    }
}

/// Returns the grains that end with withdrawn consents, with the time they are due.
fn due_times(view: &View, days: u32, now: EpochMs) -> Result<Vec<(ContentAddress, EpochMs)>> {
    let found = ended_grains(view, days, now)?;
    Ok(found.into_iter().map(|(address, ending)| (address, ending.due)).collect())
}

/// Returns the grains that end with withdrawn consents, by address.
fn ended_grains(
    view: &View,
    days: u32,
    now: EpochMs,
) -> Result<BTreeMap<ContentAddress, ConsentEnd>> {
    let mut found: BTreeMap<ContentAddress, ConsentEnd> = BTreeMap::new();
    let mut known = Steps::new();
    let consents = IndexLookup::Type(GrainType::Consent);
    for posting in
        view.index().scan(&Scope::All, &consents, TimeRange::default(), TimeOrder::Oldest)?
    {
        let at = posting?.sequence;
        if view.is_erased(at)? || view.state_at(at)?.superseded_by.is_none() {
            continue;
        }
        for ConsentEnd { due, latest, before } in withdrawals_of(view, at, days, now, &mut known)? {
            let grant = view.with_blob(at, |blob| Ok(ContentAddress::of(blob)))?;
            for address in dependent_grains(view, &grant, before, now)? {
                let earlier = found.get(&address).is_none_or(|known| due < known.due);
                if earlier {
                    found.insert(address, ConsentEnd { due, latest, before });
                }
            }
        }
    }
    Ok(found)
}

/// What took the place of a version of a consent.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// The place of it.
    to: Sequence,
    withdraws: bool,
    /// When, as it is stated, which a file may have done.
    stated: EpochMs,
    /// When it was written down here.
    told: EpochMs,
    /// Whether it is a grant by the subject or the operator.
    by_who_may: bool,
    /// Whether it withdraws in the place of a version that is not here, so that the consent can be granted anew.
    is_repair: bool,
    /// Whether it is marked: somebody else than who may has withdrawn.
    needs_review: bool,
}

/// Steps that were looked up in one state of the store: the versions of a consent share them.
type Steps = BTreeMap<Sequence, Option<Step>>;

/// Returns one ending for each withdrawal of the grant at a sequence, or of a later version of it.
fn withdrawals_of(
    view: &View,
    grant: Sequence,
    days: u32,
    now: EpochMs,
    known: &mut Steps,
) -> Result<Vec<ConsentEnd>> {
    let steps = steps(view, grant, now, known)?;
    let is_granted = steps.last().is_some_and(|step| !step.withdraws);
    let grace = i64::from(days).saturating_mul(DAY_MS);
    let mut endings = Vec::new();
    // What came after a step: the first grant, and when whoever may first granted.
    let (mut before, mut anew) = (None, None);
    for step in steps.iter().rev() {
        if !step.withdraws {
            before = Some(step.to);
            anew = if step.by_who_may { Some(step.told) } else { anew };
            continue;
        }
        // What a file states of others' withdrawals neither hastens an erasure nor delays it.
        let when = if step.needs_review { step.told } else { step.stated };
        let latest = EpochMs::new(when.get().saturating_add(grace));
        if step.is_repair && anew.is_some() {
            continue;
        }
        if !step.needs_review {
            endings.push(ConsentEnd { due: when, latest, before });
        } else if !anew.is_some_and(|then| then <= latest || is_granted) {
            endings.push(ConsentEnd { due: latest, latest, before });
        }
    }
    Ok(endings)
}

/// What became of a consent, step by step.
fn steps(view: &View, grant: Sequence, now: EpochMs, known: &mut Steps) -> Result<Vec<Step>> {
    let mut at = grant;
    let (mut steps, mut passed) = (Vec::new(), BTreeSet::from([grant]));
    loop {
        let next = match known.get(&at) {
            Some(next) => *next,
            None => {
                let next = step(view, at, now)?;
                known.insert(at, next);
                next
            }
        };
        // A chain that runs in a circle ends where it comes back.
        let Some(next) = next.filter(|next| passed.insert(next.to)) else { return Ok(steps) };
        steps.push(next);
        at = next.to;
    }
}

/// What took the place of the version at a place of the log, as far as it is here. A withdrawal that was
/// erased since has ended the grant all the same, and nobody knows that it was one. After a version that was erased
/// the audit log tells how it went on.
fn step(view: &View, from: Sequence, now: EpochMs) -> Result<Option<Step>> {
    let StateRecord { state, ended_by_entry: since } = view.state_record_at(from)?;
    let Some(next) = state.superseded_by else { return Ok(None) };
    let old = view.with_blob(from, |blob| Ok(ContentAddress::of(blob)))?;
    let (to, stated, entry) = match view.sequence_of(&next)? {
        Some(to) => (to, state.system_valid_to, entry_of(view, since, (from, to), (&old, &next))?),
        None if view.has_erased_grain(&next)? => match version_after(view, next, since)? {
            Some((to, entry)) => (to, Some(entry.time), Some(entry)),
            None => return Ok(None),
        },
        None => return Ok(None),
    };
    let (withdraws, created) = view.with_blob(to, |blob| {
        with_fields(blob, |grain| Ok((is_withdrawal(grain), grain.int("created_at"))))
    })?;
    // A file may state an end that lies ahead, which is no reason to wait for it.
    let stated = stated.filter(|stated| *stated <= now);
    let stated = stated.unwrap_or_else(|| EpochMs::new(created.unwrap_or_default()).min(now));
    let needs_review = view.state_at(to)?.needs_review;
    let told = entry.as_ref().map_or(stated, |entry| entry.time);
    let has_rule = |name: &str| {
        entry.as_ref().is_some_and(|entry| entry.rules.iter().any(|rule| rule == name))
    };
    let by_who_may = !withdraws && has_rule(GRANTED_ANEW);
    let is_repair = withdraws && has_rule(SUCCESSOR_GONE);
    Ok(Some(Step { to, withdraws, stated, told, by_who_may, is_repair, needs_review }))
}

/// The first version after an erased one that is still here, with the audit entry that tells what it replaced.
fn version_after(
    view: &View,
    erased: ContentAddress,
    since: u64,
) -> Result<Option<(Sequence, AuditEntry)>> {
    // Of an erased grain an encrypted store has the token of its address alone.
    let names = |address: ContentAddress| {
        [address, ContentAddress::from_bytes(*view.vault().address_key(&address).as_bytes())]
    };
    let mut gone = names(erased);
    for row in view.audit()?.range(since..layout::AUDIT_HEAD)? {
        let entry = view.decode_audit_entry(row?.1.value())?;
        let [old, new] = *entry.subjects.as_slice() else { continue };
        let replaces =
            entry.decision == "done" && entry.operation == AuditOperation::Supersede.name();
        if !replaces || !gone.contains(&old) {
            continue;
        }
        match view.sequence_of(&new)? {
            Some(at) => return Ok(Some((at, entry))),
            // Later entries tell of it.
            None => gone = names(new),
        }
    }
    Ok(None)
}

/// The audit entry that tells how one version of a consent took the place of another. The older one may
/// have ended before, as what was contradicted has, and may have waited for a successor that a file named.
fn entry_of(
    view: &View,
    since: u64,
    (from, to): (Sequence, Sequence),
    (old, by): (&ContentAddress, &ContentAddress),
) -> Result<Option<AuditEntry>> {
    let audit = view.audit()?;
    let first =
        audit.get(since)?.map(|entry| view.decode_audit_entry(entry.value())).transpose()?;
    let ends = |entry: &AuditEntry| {
        entry.decision == "done"
            && entry.operation == AuditOperation::Supersede.name()
            && entry.subjects == [*old, *by]
    };
    let comes_with_its_end = |entry: &AuditEntry| entry.import.is_some() && brings(entry, to, by);
    if first.as_ref().is_some_and(|entry| ends(entry) || comes_with_its_end(entry)) {
        return Ok(first);
    }
    // It may have been stored long before it ended this one: what tells of both comes first.
    let mut brought = None;
    for row in audit.range(since..layout::AUDIT_HEAD)? {
        let entry = view.decode_audit_entry(row?.1.value())?;
        if ends(&entry) {
            return Ok(Some(entry));
        }
        if brought.is_none() && brings(&entry, to, by) {
            brought = Some(entry);
        }
    }
    // What was here before what it ends has ended that when it came.
    Ok(brought.filter(|_| to >= from).or(first))
}

/// Whether an audit entry tells that a grain came, or took the place of another.
fn brings(entry: &AuditEntry, at: Sequence, address: &ContentAddress) -> bool {
    let is = |operation: AuditOperation| entry.operation == operation.name();
    let is_written = is(AuditOperation::Put) && entry.subjects.contains(address)
        || is(AuditOperation::Supersede) && entry.subjects.last() == Some(address);
    let is_imported = entry.import.as_ref().is_some_and(|import| {
        let after = import.first.saturating_add(import.added);
        (import.first..after).contains(&at.get())
    });
    entry.decision == "done" && (is_written || is_imported)
}

/// Returns the grains that rest on this consent, are before a sequence, and end with it.
fn dependent_grains(
    view: &View,
    grant: &ContentAddress,
    before: Option<Sequence>,
    now: EpochMs,
) -> Result<Vec<ContentAddress>> {
    let digits = grant.to_string();
    let shape = IndexLookup::Value(Field::Basis, digits.as_str().into());
    let mut found = Vec::new();
    for posting in
        view.index().scan(&Scope::All, &shape, TimeRange::default(), TimeOrder::Oldest)?
    {
        let at = posting?.sequence;
        if before.is_some_and(|before| at > before) || view.is_erased(at)? {
            continue;
        }
        let ends = view.with_blob(at, |blob| {
            with_fields(blob, |grain| {
                let basis = grain.text("processing_basis").unwrap_or_default();
                let rests = ContentAddress::digits(basis) == digits;
                let cascades = PolicyTerms::of(grain).ends_with_consent(now);
                let ends = rests && cascades && grain.grain_type() != GrainType::Consent;
                Ok(ends.then(|| ContentAddress::of(blob)))
            })
        })?;
        found.extend(ends);
    }
    Ok(found)
}
