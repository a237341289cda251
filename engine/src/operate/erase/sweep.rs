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
use serde::{Deserialize, Serialize};

use super::{ErasureTarget, Session};
use crate::base::error::{Result, catch_storage_panic};
use crate::disk::blob::{is_withdrawal, with_fields};
use crate::disk::layout::StateRecord;
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

/// The result of [`Session::sweep`]: what became of [`Store::due_erasures`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SweepReport {
    /// Grains that were erased, including automatic sweeps since the store was opened or this was last
    /// called.
    pub erased: u64,
    /// Grains that are due and stay: under hold, or to be retained.
    pub skipped: u64,
}

/// A grain that ends with a withdrawn consent: [`Store::due_erasures`].
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
#[derive(Debug, Clone, Copy)]
struct ConsentEnd {
    due: EpochMs,
    latest: EpochMs,
    /// Sequence of the new grant, if there is one: later grains rest on that.
    before: Option<Sequence>,
}

impl ConsentEnd {
    /// Returns `true` if it ends a grain at this sequence that rests on the consent.
    fn ends(&self, dependent: Sequence) -> bool {
        self.before.is_none_or(|before| dependent <= before)
    }
}

impl Session {
    /// Erases what is due: grains of mode `consent_cascade` whose `processing_basis` names a withdrawn
    /// consent. They are due at once if the subject, the grantee, the operator or a signature of the subject
    /// withdrew it; otherwise after
    /// [`OpenOptions::cascade_after_days`](crate::OpenOptions::cascade_after_days). Grains that are held or
    /// to be retained stay, and so do consents themselves. An open store does this by itself when it is
    /// opened, and every hour. [`Store::due_erasures`] lists what is due.
    ///
    /// # Errors
    /// `ERR_ACCESS` unless the session is the operator's, without a namespace and a user; `ERR_IO`,
    /// `ERR_INTEGRITY`.
    pub fn sweep(&self) -> Result<SweepReport> {
        self.check_power(Power::Sweep)?;
        let author = self.author_to_erase(None, SWEEP_REASON)?;
        self.store().run_exclusive(move |writer| {
            let swept = writer.sweep(&author)?;
            // The store may have erased by itself what was due.
            let by_itself = std::mem::take(&mut writer.swept);
            Ok(SweepReport { erased: swept.erased.saturating_add(by_itself), ..swept })
        })
    }
}

impl Store {
    /// Returns the grains that end with withdrawn consents, due now or later.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// // `consent` makes a consent of did:web:ann.example with further fields.
    /// # let consent = |more: &str| {
    /// #     Grain::from_json(&format!(
    /// #         r#"{{"type": "consent", "subject_did": "did:web:ann.example", "scope": ["store"],
    /// #             "grantee_did": "did:web:shop.example", "created_at": {}, {more}}}"#,
    /// #         session.now().get(),
    /// #     ))
    /// # };
    /// let grant = session.put(consent(r#""is_withdrawal": false"#)?)?.address();
    /// let cascade = [("mode".to_owned(), "consent_cascade".into())].into();
    /// let grain = BeliefBuilder::new(session.now(), "ann", "prefers", "tea", 0.9);
    /// let grain = grain.processing_basis(grant.to_string()).invalidation_policy(cascade);
    /// let tea = session.put(grain.build()?)?.address();
    ///
    /// let withdrawal = format!(r#""is_withdrawal": true, "prior_consent": "{grant}""#);
    /// session.put(consent(&withdrawal)?)?;
    /// assert!(store.due_erasures()?.iter().any(|due| due.address == tea));
    /// assert_eq!(session.sweep()?.erased, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
        self.next_sweep = EpochMs::new(now.get().saturating_add(SWEEP_INTERVAL_MS));
        let author = Principal { reason: Some(SWEEP_REASON.to_owned()), ..Principal::default() };
        if let Ok(swept) = self.sweep(&author) {
            self.swept = self.swept.saturating_add(swept.erased);
        }
    }

    /// Erases what is due. Nothing else is written meanwhile: a grain that is granted anew stays.
    fn sweep(&mut self, author: &Principal) -> Result<SweepReport> {
        let now = self.clock.now();
        let view = std::sync::Arc::clone(&self.view);
        let endings = catch_storage_panic(|| ended_grains(&view, self.cascade_after_days(), now))?;
        drop(view);
        // A grain due within the hour is erased on time.
        let ahead = endings.values().map(|ending| ending.due).filter(|due| *due > now).min();
        self.next_sweep = ahead.map_or(self.next_sweep, |ahead| ahead.min(self.next_sweep));
        let due = endings.into_iter().filter(|(_, ending)| ending.due <= now);
        let due: Vec<ContentAddress> = due.map(|(address, _)| address).collect();
        let mut report = SweepReport::default();
        for chunk in due.chunks(SWEEP_BATCH_GRAINS) {
            let done = catch_storage_panic(|| self.erase(&sweep_order(chunk, author.clone())))?;
            let erased = done.map_or(0, |done| done.grains);
            report.erased = report.erased.saturating_add(erased);
            let left = u64::try_from(chunk.len()).unwrap_or(u64::MAX).saturating_sub(erased);
            report.skipped = report.skipped.saturating_add(left);
        }
        Ok(report)
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

/// Returns the grains that end with withdrawn consents, by address.
fn ended_grains(
    view: &View,
    days: u32,
    now: EpochMs,
) -> Result<BTreeMap<ContentAddress, ConsentEnd>> {
    let mut found: BTreeMap<ContentAddress, ConsentEnd> = BTreeMap::new();
    let grace_ms = i64::from(days).saturating_mul(DAY_MS);
    let mut endings = Endings {
        view,
        now,
        grace_ms,
        listed: Vec::new(),
        later: BTreeMap::new(),
        imports: ImportedSteps::new(),
    };
    let consents = IndexLookup::Type(GrainType::Consent);
    for posting in
        view.index().scan(&Scope::All, &consents, TimeRange::default(), TimeOrder::Oldest)?
    {
        let at = posting?.sequence;
        if view.is_erased(at)? || view.state_at(at)?.superseded_by.is_none() {
            continue;
        }
        let Some(last) = endings.of(at)? else { continue };
        let grant = view.with_blob(at, |blob| Ok(ContentAddress::of(blob)))?;
        for (address, sequence) in dependent_grains(view, &grant, now)? {
            let ends = endings.listed_from(last).filter(|end| end.ends(sequence));
            let Some(ending) = ends.min_by_key(|end| end.due) else { continue };
            if found.get(&address).is_none_or(|known| ending.due < known.due) {
                found.insert(address, ending);
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
    by_right: bool,
    /// Whether it withdraws in the place of a version that is not here, so that the consent can be granted anew.
    is_repair: bool,
    /// Whether it is marked: somebody else than who may has withdrawn.
    needs_review: bool,
}

/// The withdrawals of all consents, each version of a consent looked at once.
struct Endings<'v> {
    view: &'v View,
    now: EpochMs,
    /// Promised time in milliseconds.
    grace_ms: i64,
    /// Each with the index of the one after it of the same consent.
    listed: Vec<(ConsentEnd, Option<usize>)>,
    later: BTreeMap<Sequence, LaterSteps>,
    imports: ImportedSteps,
}

/// The supersessions that each import recorded, by the sequence of its audit entry and the two grains: the states of
/// all its grains name that one entry.
type ImportedSteps = BTreeMap<u64, BTreeMap<[ContentAddress; 2], AuditEntry>>;

/// What became of a consent after one of its versions.
#[derive(Debug, Clone, Copy, Default)]
struct LaterSteps {
    /// Sequence of the first grant.
    grant: Option<Sequence>,
    /// Time when the subject or the operator first granted.
    anew: Option<EpochMs>,
    /// Whether the last version is a grant; `None` if there is no later one.
    ends_granted: Option<bool>,
    /// Index of the first withdrawal.
    first: Option<usize>,
}

impl Endings<'_> {
    /// Returns the index of the first withdrawal after a version of a consent, if there is one.
    fn of(&mut self, version: Sequence) -> Result<Option<usize>> {
        let (mut path, mut passed) = (Vec::new(), BTreeSet::from([version]));
        let mut at = version;
        // A chain that runs in a circle ends where it comes back.
        let mut later = loop {
            if let Some(known) = self.later.get(&at) {
                break *known;
            }
            let next = step(self.view, at, self.now, &mut self.imports)?;
            let Some(next) = next.filter(|next| passed.insert(next.to)) else {
                break LaterSteps::default();
            };
            path.push((at, next));
            at = next.to;
        };
        for (at, step) in path.into_iter().rev() {
            later = self.before(&step, later);
            self.later.insert(at, later);
        }
        Ok(later.first)
    }

    /// Returns what became of a consent from a step on, given what came after it.
    fn before(&mut self, step: &Step, later: LaterSteps) -> LaterSteps {
        let ends_granted = later.ends_granted.or(Some(!step.withdraws));
        if !step.withdraws {
            let anew = if step.by_right { Some(step.told) } else { later.anew };
            return LaterSteps { grant: Some(step.to), anew, ends_granted, ..later };
        }
        // What a file states of others' withdrawals neither hastens an erasure nor delays it.
        let when = if step.needs_review { step.told } else { step.stated };
        let latest = EpochMs::new(when.get().saturating_add(self.grace_ms));
        let is_cancelled = match (later.anew, step.needs_review) {
            (None, _) => false,
            (Some(then), true) => then <= latest || ends_granted == Some(true) || step.is_repair,
            (Some(_), false) => step.is_repair,
        };
        if is_cancelled {
            return LaterSteps { ends_granted, ..later };
        }
        let due = if step.needs_review { latest } else { when };
        self.listed.push((ConsentEnd { due, latest, before: later.grant }, later.first));
        LaterSteps { ends_granted, first: self.listed.len().checked_sub(1), ..later }
    }

    /// Iterates over a withdrawal and those after it of the same consent.
    fn listed_from(&self, first: usize) -> impl Iterator<Item = ConsentEnd> {
        let mut next = Some(first);
        std::iter::from_fn(move || {
            let (ending, after) = self.listed.get(next?)?;
            next = *after;
            Some(*ending)
        })
    }
}

/// What took the place of the version at a place of the log, as far as it is here. A withdrawal that was
/// erased since has ended the grant all the same, and nobody knows that it was one. After a version that was erased
/// the audit log tells how it went on.
fn step(
    view: &View,
    from: Sequence,
    now: EpochMs,
    imports: &mut ImportedSteps,
) -> Result<Option<Step>> {
    let StateRecord { state, ended_by_entry: since } = view.state_record_at(from)?;
    let Some(next) = state.superseded_by else { return Ok(None) };
    let old = view.with_blob(from, |blob| Ok(ContentAddress::of(blob)))?;
    let (to, stated, entry) = match view.sequence_of(&next)? {
        Some(to) => {
            (to, state.system_valid_to, entry_of(view, since, (from, to), (&old, &next), imports)?)
        }
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
    let by_right = !withdraws && has_rule(GRANTED_ANEW);
    let is_repair = withdraws && has_rule(SUCCESSOR_GONE);
    Ok(Some(Step { to, withdraws, stated, told, by_right, is_repair, needs_review }))
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
    for row in view.audit_rows()?.since(since)? {
        let entry = view.decode_audit_entry(&row?.1)?;
        let [old, new] = *entry.subjects.as_slice() else { continue };
        if !entry.is_supersession() || !gone.contains(&old) {
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

/// The audit entry that tells how one version of a consent took the place of another; without one, the entry that
/// brought the newer one. The older one may have ended before, as what was contradicted has, and may have waited for a
/// successor that a file named.
fn entry_of(
    view: &View,
    since: u64,
    (from, to): (Sequence, Sequence),
    (old, by): (&ContentAddress, &ContentAddress),
    imports: &mut ImportedSteps,
) -> Result<Option<AuditEntry>> {
    if let Some(entry) = recorded_step(view, since, [*old, *by], imports)? {
        return Ok(Some(entry));
    }
    if let Some(entry) = view.supersession_entry(since, old, by)? {
        return Ok(Some(entry));
    }
    let audit = view.audit_rows()?;
    // What was here before what it ends has ended that when it came.
    if to >= from {
        for row in audit.since(since)? {
            let entry = view.decode_audit_entry(&row?.1)?;
            if brings(&entry, to, by) {
                return Ok(Some(entry));
            }
        }
    }
    audit.get(since)?.map(|entry| view.decode_audit_entry(&entry)).transpose()
}

/// The entry of an import about one grain that took the place of another, where `since` is the entry of the import.
fn recorded_step(
    view: &View,
    since: u64,
    pair: [ContentAddress; 2],
    imports: &mut ImportedSteps,
) -> Result<Option<AuditEntry>> {
    if let Some(recorded) = imports.get(&since) {
        return Ok(recorded.get(&pair).cloned());
    }
    let mut recorded = BTreeMap::new();
    let mut imported_at = None;
    for row in view.audit_rows()?.since(since)? {
        let entry = view.decode_audit_entry(&row?.1)?;
        // Entries of one commit have one time, and that of an import is the first.
        if *imported_at.get_or_insert(entry.time) != entry.time
            || (entry.sequence == since && entry.import.is_none())
        {
            break;
        }
        if let [old, new] = *entry.subjects.as_slice()
            && entry.is_supersession()
        {
            recorded.entry([old, new]).or_insert(entry);
        }
    }
    // Of other entries the one of the supersession is the first, or soon after.
    if recorded.is_empty() {
        return Ok(None);
    }
    let found = recorded.get(&pair).cloned();
    imports.insert(since, recorded);
    Ok(found)
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

/// Returns the grains that rest on this consent and end with it, with their sequences.
fn dependent_grains(
    view: &View,
    grant: &ContentAddress,
    now: EpochMs,
) -> Result<Vec<(ContentAddress, Sequence)>> {
    let digits = grant.to_string();
    let shape = IndexLookup::Value(Field::Basis, digits.as_str().into());
    let mut found = Vec::new();
    for posting in
        view.index().scan(&Scope::All, &shape, TimeRange::default(), TimeOrder::Oldest)?
    {
        let at = posting?.sequence;
        if view.is_erased(at)? {
            continue;
        }
        let ends = view.with_blob(at, |blob| {
            with_fields(blob, |grain| {
                let basis = grain.text("processing_basis").unwrap_or_default();
                let rests = ContentAddress::digits(basis) == digits;
                let cascades = PolicyTerms::of(grain).ends_with_consent(now);
                let ends = rests && cascades && grain.grain_type() != GrainType::Consent;
                Ok(ends.then(|| (ContentAddress::of(blob), at)))
            })
        })?;
        found.extend(ends);
    }
    Ok(found)
}
