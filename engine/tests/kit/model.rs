//! A store as the rules describe it, in memory: what a call may answer, and what it leaves behind.
//!
//! [`Model::settle`] takes a call and the answer somebody got, says whether the rules allow that
//! answer, and then holds what the store must hold. Where several rules are broken at once, any of
//! their codes is a right answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::engine::format::{ContentAddress, EpochMs, Grain, GrainType};
use super::engine::{PutOutcome, SameFact, VerificationStatus};
use super::offers::{Answer, Call, Offered, Settled, Signed};
use super::rules::{self, Lock};
use super::{goals, marked};

/// A grain the store must hold. Its place in [`Model::grains`] is its place in the log, less one.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) address: ContentAddress,
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) grain: Arc<Grain>,
    pub(crate) superseded_by: Option<ContentAddress>,
    pub(crate) ended: Option<EpochMs>,
    pub(crate) needs_review: bool,
    pub(crate) contradicted: bool,
    pub(crate) status: VerificationStatus,
    pub(crate) held: bool,
    /// The envelope it is kept in.
    pub(crate) signed: Option<Signed>,
    /// The longest way back through its sources.
    pub(crate) depth: usize,
}

impl Known {
    pub(crate) fn is_current(&self) -> bool {
        let retracted = self.status == VerificationStatus::Retracted;
        self.superseded_by.is_none() && !self.contradicted && !retracted
    }

    /// Notes since when it is not current, unless that is known.
    pub(crate) fn end(&mut self, now: EpochMs) {
        let began = self.began();
        self.ended.get_or_insert(now.max(began));
    }

    /// Since when it is known.
    pub(crate) fn began(&self) -> EpochMs {
        let began = self.grain.int("system_valid_from");
        began.map_or_else(|| self.grain.created_at(), EpochMs::new)
    }
}

/// An entry the audit log must hold, after genesis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) time: EpochMs,
    pub(crate) operation: &'static str,
    pub(crate) subjects: Vec<ContentAddress>,
    pub(crate) decision: &'static str,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    pub(crate) grains: Vec<Known>,
    pub(crate) audit: Vec<Entry>,
    pub(crate) places: BTreeMap<ContentAddress, usize>,
    /// Subject and relation -> the places of the grains that have both.
    pub(crate) words: BTreeMap<(String, String), Vec<usize>>,
}

/// A grain whose policy bears on a change, and the lock it is.
struct Protector {
    lock: Lock,
    grain: Arc<Grain>,
    /// Whether it is the grain to be replaced or a version before it, and the lock no hold by a call.
    is_version: bool,
}

/// The codes of the rules that a call breaks.
pub(crate) type Broken = BTreeSet<&'static str>;

pub(crate) const ACCESS: &str = "ERR_ACCESS";
pub(crate) const CONFLICT: &str = "ERR_CONFLICT";
pub(crate) const DENIED: &str = "ERR_INVALIDATION_DENIED";
const DISGUISED: &str = "ERR_SUPERSEDE_REQUIRED";
pub(crate) const EVIDENCE: &str = "ERR_EVIDENCE_REQUIRED";
pub(crate) const NOT_FOUND: &str = "ERR_NOT_FOUND";
const SCHEMA: &str = "ERR_SCHEMA";

impl Model {
    pub(crate) fn find(&self, address: &ContentAddress) -> Option<&Known> {
        self.grains.get(*self.places.get(address)?)
    }

    /// Takes a call and its answer for true, or says why it cannot be.
    pub(crate) fn settle(&mut self, settled: &Settled) -> Result<(), String> {
        let Settled { namespace, now, call, answer } = settled;
        self.note_outsider(*now, call, answer);
        match (call, answer) {
            (Call::Put(offered, same_fact), _) => {
                self.settle_put(*namespace, *now, offered, *same_fact, answer)
            }
            (Call::Batch(members), _) => {
                let before = self.grains.len();
                let outcome = self.stage_batch(*namespace, *now, members, answer);
                match answer {
                    Answer::Batch(puts) if outcome.is_ok() => {
                        self.note_put(*now, puts.iter().filter_map(added).collect());
                    }
                    _ => self.forget_after(before),
                }
                outcome
            }
            (Call::Supersede { old, new, why }, _) => {
                let (new, why) = (new.successor(old, why.as_deref()), why.as_deref());
                self.settle_supersession(*namespace, *now, (old, &new, why), answer)
            }
            (Call::Mark(address, mark), _) => {
                marked::settle(self, *namespace, *now, (address, *mark), answer)
            }
        }
    }

    fn settle_put(
        &mut self,
        namespace: Option<&str>,
        now: EpochMs,
        offered: &Offered,
        same_fact: SameFact,
        answer: &Answer,
    ) -> Result<(), String> {
        let address = offered.blob().address();
        let twin = match same_fact {
            SameFact::Add | SameFact::Unique => None,
            SameFact::Keep | SameFact::Supersede => self.newest_twin(&offered.grain),
        };
        // Who asks to keep or replace what says the same has named its parent by that.
        let old = twin.filter(|_| self.find(&address).is_none());
        let mut broken = self.broken_by_put(namespace, offered, old.as_ref());
        // Where nothing is written, nothing is superseded in disguise.
        let again = old.is_some_and(|old| {
            same_fact == SameFact::Keep || self.was_offered_before(&old, offered)
        });
        if again && !rules::says_it_replaces(&offered.grain) {
            broken.remove(DISGUISED);
        }
        if same_fact == SameFact::Unique && self.is_taken(&offered.grain, &address) {
            broken.insert(CONFLICT);
        }
        if !broken.is_empty() {
            // What says so itself is refused before anybody looks for what says the same.
            let old = old.filter(|_| !rules::says_it_replaces(&offered.grain));
            self.note_disguise(now, offered, old.as_ref(), answer);
            if let (SameFact::Supersede, Some(old)) = (same_fact, old) {
                // What it would supersede may have its own say first.
                let new = offered.successor(&old, None);
                broken.extend(self.broken_by_supersession(namespace, now, &old, &new, None).0);
                if matches!(*answer, Answer::Refused(DENIED | EVIDENCE)) {
                    self.note_supersession(now, &old, new.blob().address(), "refused");
                }
            }
            return allow(&broken, answer);
        }
        if self.find(&address).is_some() {
            expect(answer, &Answer::Put(PutOutcome::Duplicate(address)))?;
            self.improve(now, address, offered);
            return Ok(());
        }
        match (same_fact, twin) {
            (SameFact::Keep, Some(kept)) => expect(answer, &Answer::Put(PutOutcome::Kept(kept))),
            (SameFact::Supersede, Some(old)) if self.was_offered_before(&old, offered) => {
                expect(answer, &Answer::Put(PutOutcome::Duplicate(old)))
            }
            (SameFact::Supersede, Some(old)) => {
                let successor = offered.successor(&old, None);
                let superseded = match answer {
                    Answer::Put(PutOutcome::Replaced { old: replaced, new })
                        if *replaced == old =>
                    {
                        &Answer::Superseded(*new)
                    }
                    answer => answer,
                };
                self.settle_supersession(namespace, now, (&old, &successor, None), superseded)
            }
            _ => {
                expect(answer, &Answer::Put(PutOutcome::Added(address)))?;
                self.add(offered);
                self.note_put(now, vec![address]);
                Ok(())
            }
        }
    }

    /// A valid envelope takes the place of one that could not be verified.
    fn improve(&mut self, time: EpochMs, address: ContentAddress, offered: &Offered) {
        let known = &mut self.grains[self.places[&address]];
        let was_valid = known.signed.as_ref().is_some_and(|signed| signed.valid);
        if let Some(signed) = offered.signed.as_ref().filter(|signed| signed.valid && !was_valid) {
            known.signed = Some(signed.clone());
            let subjects = vec![address];
            self.audit.push(Entry { time, operation: "sign", subjects, decision: "done" });
        }
    }

    /// Adds the members that break no rule, and says whether the batch may answer so.
    fn stage_batch(
        &mut self,
        namespace: Option<&str>,
        now: EpochMs,
        members: &[Offered],
        answer: &Answer,
    ) -> Result<(), String> {
        let mut all_broken = Broken::new();
        let mut puts = Vec::new();
        for offered in members {
            let address = offered.blob().address();
            let broken = self.broken_by_put(namespace, offered, None);
            if self.find(&address).is_some() {
                puts.push(PutOutcome::Duplicate(address));
            } else if broken.is_empty() {
                self.add(offered);
                puts.push(PutOutcome::Added(address));
            } else if all_broken.is_empty() {
                self.note_disguise(now, offered, None, answer);
            }
            all_broken.extend(broken);
        }
        allow(&all_broken, answer)?;
        match answer {
            Answer::Refused(_) => Ok(()),
            _ => expect(answer, &Answer::Batch(puts)),
        }
    }

    fn settle_supersession(
        &mut self,
        namespace: Option<&str>,
        now: EpochMs,
        (old, new, why): (&ContentAddress, &Offered, Option<&str>),
        answer: &Answer,
    ) -> Result<(), String> {
        let address = new.blob().address();
        let (broken, asks_review) = self.broken_by_supersession(namespace, now, old, new, why);
        let done = self.find(old).is_some_and(|old| old.superseded_by == Some(address));
        if done && [ACCESS, NOT_FOUND, SCHEMA].iter().all(|code| !broken.contains(code)) {
            return expect(answer, &Answer::Superseded(address));
        }
        allow(&broken, answer)?;
        if matches!(*answer, Answer::Refused(DENIED | EVIDENCE)) {
            self.note_supersession(now, old, address, "refused");
        }
        self.note_disguise(now, new, Some(old), answer);
        if matches!(answer, Answer::Refused(_)) {
            return Ok(());
        }
        expect(answer, &Answer::Superseded(address))?;
        if self.find(&address).is_none() {
            self.add(new);
        }
        let places = [self.places[old], self.places[&address]];
        self.grains[places[0]].superseded_by = Some(address);
        self.grains[places[0]].end(now);
        self.grains[places[1]].needs_review |= asks_review;
        self.note_supersession(now, old, address, "done");
        Ok(())
    }

    /// Whether a stored grain is what this one became when it was offered before: the same but for
    /// a parent more.
    fn was_offered_before(&self, stored: &ContentAddress, offered: &Offered) -> bool {
        let without_parents = |grain: &Grain| {
            let mut fields = grain.fields().clone();
            fields.remove("derived_from");
            fields
        };
        let Some(stored) = self.find(stored) else { return false };
        let kept = rules::parents(&stored.grain);
        without_parents(&stored.grain) == without_parents(&offered.grain)
            && rules::parents(&offered.grain).iter().all(|parent| kept.contains(parent))
    }

    fn broken_by_put(
        &self,
        namespace: Option<&str>,
        offered: &Offered,
        old: Option<&ContentAddress>,
    ) -> Broken {
        let grain = &offered.grain;
        let mut broken = Broken::new();
        if !rules::reaches(namespace, rules::partition(grain)) {
            broken.insert(ACCESS);
        } else if self.find(&offered.blob().address()).is_none()
            && (rules::says_it_replaces(grain) || self.is_disguised(grain, old))
        {
            broken.insert(DISGUISED);
        }
        broken
    }

    fn broken_by_supersession(
        &self,
        namespace: Option<&str>,
        now: EpochMs,
        old: &ContentAddress,
        new: &Offered,
        why: Option<&str>,
    ) -> (Broken, bool) {
        let mut broken = Broken::new();
        let inside = new.grain.text("supersession_justification");
        if !rules::reaches(namespace, rules::partition(&new.grain)) {
            broken.insert(ACCESS);
        }
        if why.is_some_and(|why| inside.is_some_and(|inside| inside != why)) {
            broken.insert(SCHEMA);
        }
        let reached = |known: &&Known| rules::reaches(namespace, rules::partition(&known.grain));
        let Some(known) = self.find(old).filter(reached) else {
            broken.insert(NOT_FOUND);
            return (broken, false);
        };
        let spent = self.find(&new.blob().address()).is_some_and(|new| !new.is_current());
        if known.superseded_by.is_some() || spent {
            broken.insert(CONFLICT);
        }
        let same_type = known.grain.grain_type() == new.grain.grain_type();
        if !same_type || !rules::parents(&new.grain).contains(old) {
            broken.insert(SCHEMA);
        }
        if self.is_disguised(&new.grain, Some(old)) {
            broken.insert(DISGUISED);
        }
        if self.merges_consents(namespace, old, &new.grain) {
            broken.insert(DENIED);
        }
        let (denied, asks_review) = self.broken_policies(namespace, now, old, &new.grain);
        broken.extend(denied);
        (broken, asks_review)
    }

    /// Whether a third party would put one consent in the place of several.
    pub(crate) fn merges_consents(
        &self,
        namespace: Option<&str>,
        old: &ContentAddress,
        new: &Grain,
    ) -> bool {
        let is_consent = |grain: &Grain| grain.grain_type() == GrainType::Consent;
        let parents = rules::parents(new);
        let mut others = parents.iter().filter(|parent| *parent != old);
        let merges = others.any(|parent| self.find(parent).is_some_and(|it| is_consent(&it.grain)));
        namespace.is_some() && is_consent(new) && merges
    }

    /// What the policies say against replacing `old` by `new`, and whether a person should look at it.
    pub(crate) fn broken_policies(
        &self,
        namespace: Option<&str>,
        now: EpochMs,
        old: &ContentAddress,
        new: &Grain,
    ) -> (Broken, bool) {
        let mut broken = Broken::new();
        let mut asks_review = false;
        let Some(known) = self.find(old) else { return (broken, asks_review) };
        let why = new.text("supersession_justification");
        let reasoned = why.is_some_and(|why| !why.trim().is_empty());
        let evidence = goals::evidence(self, namespace, old, new);
        for Protector { lock, grain, is_version } in self.protectors_over(old, Some(new), now) {
            let allows = is_version && goals::allows(&grain, &known.grain, new);
            let refuses = match lock {
                Lock::Open => false,
                Lock::Soft => !allows && !reasoned,
                Lock::Shut => !allows,
            };
            asks_review |= lock == Lock::Soft && !allows;
            if refuses {
                broken.insert(DENIED);
            } else if is_version && evidence < goals::required(&grain, &known.grain, new) {
                broken.insert(EVIDENCE);
            }
        }
        (broken, asks_review)
    }

    fn is_disguised(&self, new: &Grain, old: Option<&ContentAddress>) -> bool {
        let parents = rules::parents(new);
        let mut others = parents.iter().filter(|parent| !self.is_older(parent, old));
        others.any(|parent| self.is_disguised_as(new, parent))
    }

    /// Whether a grain is `old`, or `old` stands in its place in the end.
    pub(crate) fn is_older(&self, parent: &ContentAddress, old: Option<&ContentAddress>) -> bool {
        let mut next = Some(*parent);
        while let Some(at) = next {
            if Some(&at) == old {
                return true;
            }
            next = self.find(&at).and_then(|known| known.superseded_by);
        }
        false
    }

    /// Where it was refused for that, notes which protected grain was to be replaced in disguise: the
    /// first of them by address.
    fn note_disguise(
        &mut self,
        now: EpochMs,
        new: &Offered,
        old: Option<&ContentAddress>,
        answer: &Answer,
    ) {
        if *answer != Answer::Refused(DISGUISED) {
            return;
        }
        let parents: BTreeSet<_> = rules::parents(&new.grain).into_iter().collect();
        let replaced = parents
            .into_iter()
            .filter(|parent| !self.is_older(parent, old))
            .find(|parent| self.is_disguised_as(&new.grain, parent) && self.is_protected(parent));
        if let Some(parent) = replaced {
            self.note_supersession(now, &parent, new.blob().address(), "refused");
        }
    }

    pub(crate) fn is_disguised_as(&self, new: &Grain, parent: &ContentAddress) -> bool {
        let known: BTreeSet<_> = rules::parents(new).into_iter().collect();
        let known = known.iter().filter(|parent| self.find(parent).is_some()).count();
        !rules::is_digest(new, known)
            && self.find(parent).is_some_and(|known| rules::is_next_version(new, &known.grain))
    }

    /// Whether any policy restricts what becomes of a grain, be it one that is over.
    pub(crate) fn is_protected(&self, address: &ContentAddress) -> bool {
        self.is_protected_from(address, None)
    }

    /// The same where `new` is to replace it.
    pub(crate) fn is_protected_from(&self, address: &ContentAddress, new: Option<&Grain>) -> bool {
        const BEFORE_ALL: EpochMs = EpochMs::new(i64::MIN);
        if self.find(address).is_none() {
            return false;
        }
        let locks = self.locks_over(address, new, BEFORE_ALL);
        locks.iter().any(|lock| *lock != Lock::Open)
    }

    /// The locks that bear on replacing `old` by `new`: those of all versions up to `old`, and those
    /// of sources, however far back, that cover what derives from them (OMS 23.6, 23.7).
    /// Where there is no `new`, they bear on taking `old` out of use.
    pub(crate) fn locks_over(
        &self,
        old: &ContentAddress,
        new: Option<&Grain>,
        now: EpochMs,
    ) -> Vec<Lock> {
        self.protectors_over(old, new, now).into_iter().map(|one| one.lock).collect()
    }

    /// The same with the grains they are of.
    fn protectors_over(
        &self,
        old: &ContentAddress,
        new: Option<&Grain>,
        now: EpochMs,
    ) -> Vec<Protector> {
        let seconds = now.get().div_euclid(1000);
        let mut versions = vec![*old];
        let mut sources = new.map(rules::parents).unwrap_or_default();
        let mut seen = BTreeSet::new();
        let of = |known: &Known, is_version: bool| Protector {
            lock: rules::lock(&known.grain, known.held, seconds),
            grain: Arc::clone(&known.grain),
            is_version,
        };
        let held = self.find(old).filter(|known| known.held);
        let held = held.map(|known| Protector { lock: Lock::Shut, ..of(known, false) });
        let mut found = Vec::from_iter(held);
        while let Some(address) = versions.pop() {
            let Some(known) = self.find(&address) else { continue };
            if !seen.insert(address) {
                continue;
            }
            found.push(of(known, true));
            for parent in rules::parents(&known.grain) {
                let before = self.find(&parent).and_then(|parent| parent.superseded_by);
                if before == Some(address) {
                    versions.push(parent);
                } else {
                    sources.push(parent);
                }
            }
        }
        while let Some(address) = sources.pop() {
            let Some(known) = self.find(&address) else { continue };
            if !seen.insert(address) {
                continue;
            }
            if rules::covers_derived(&known.grain) {
                found.push(of(known, false));
            }
            sources.extend(rules::parents(&known.grain));
        }
        found
    }

    /// The current grains that say what this one says.
    pub(crate) fn current_twins(&self, grain: &Grain) -> impl Iterator<Item = &Known> {
        let places = words(grain).and_then(|words| self.words.get(&words));
        let known = places.into_iter().flatten().map(|place| &self.grains[*place]);
        known.filter(|known| known.is_current() && rules::is_same_fact(&known.grain, grain))
    }

    /// Whether a grain with this address cannot be the only current one of its subject and relation.
    fn is_taken(&self, grain: &Grain, address: &ContentAddress) -> bool {
        if grain.text("subject").is_none() || grain.text("relation").is_none() {
            return false;
        }
        match self.find(address) {
            Some(known) => !known.is_current(),
            None => self
                .grains
                .iter()
                .any(|known| known.is_current() && rules::is_same_relation(&known.grain, grain)),
        }
    }

    /// The one of them that is meant: the latest by its own time, the last stored at one time.
    fn newest_twin(&self, grain: &Grain) -> Option<ContentAddress> {
        let newest = self.current_twins(grain).max_by_key(|twin| twin.grain.time());
        newest.map(|twin| twin.address)
    }

    pub(crate) fn add(&mut self, offered: &Offered) {
        let blob = offered.blob();
        let parents = rules::parents(&offered.grain);
        let depths = parents.iter().filter_map(|parent| self.find(parent));
        let depth = depths.map(|parent| parent.depth + 1).max().unwrap_or(0);
        self.places.insert(blob.address(), self.grains.len());
        if let Some(words) = words(&offered.grain) {
            self.words.entry(words).or_default().push(self.grains.len());
        }
        self.grains.push(Known {
            address: blob.address(),
            bytes: blob.bytes().into(),
            grain: Arc::new(offered.grain.clone()),
            superseded_by: None,
            ended: None,
            needs_review: false,
            contradicted: false,
            status: VerificationStatus::Unverified,
            held: rules::is_held(&offered.grain),
            signed: offered.signed.clone(),
            depth,
        });
    }

    /// Takes back what was added last, down to this many grains.
    fn forget_after(&mut self, grains: usize) {
        for known in self.grains.drain(grains..) {
            self.places.remove(&known.address);
            if let Some(places) = words(&known.grain).and_then(|words| self.words.get_mut(&words)) {
                places.pop();
            }
        }
    }

    /// Whoever writes outside their session is in the audit log, by the operation and what was to be
    /// replaced.
    fn note_outsider(&mut self, time: EpochMs, call: &Call, answer: &Answer) {
        let (operation, subjects) = match call {
            Call::Put(..) | Call::Batch(_) => ("put", Vec::new()),
            Call::Supersede { old, .. } => ("supersede", vec![*old]),
            // Marks note their own.
            Call::Mark(..) => return,
        };
        if *answer == Answer::Refused(ACCESS) {
            self.audit.push(Entry { time, operation, subjects, decision: "refused" });
        }
    }

    fn note_put(&mut self, time: EpochMs, subjects: Vec<ContentAddress>) {
        if !subjects.is_empty() {
            self.audit.push(Entry { time, operation: "put", subjects, decision: "done" });
        }
    }

    pub(crate) fn note_supersession(
        &mut self,
        time: EpochMs,
        old: &ContentAddress,
        new: ContentAddress,
        decision: &'static str,
    ) {
        let subjects = vec![*old, new];
        self.audit.push(Entry { time, operation: "supersede", subjects, decision });
    }
}

/// What a grain is looked up by.
fn words(grain: &Grain) -> Option<(String, String)> {
    Some((grain.text("subject")?.to_owned(), grain.text("relation")?.to_owned()))
}

fn added(put: &PutOutcome) -> Option<ContentAddress> {
    match put {
        PutOutcome::Added(address) => Some(*address),
        _ => None,
    }
}

/// A call that breaks no rule is not refused; one that does is, with one of their codes.
pub(crate) fn allow(broken: &Broken, answer: &Answer) -> Result<(), String> {
    match answer {
        Answer::Refused(code) if broken.contains(code) => Ok(()),
        Answer::Refused(_) => Err(format!("{answer:?}, but the broken rules are {broken:?}")),
        _ if broken.is_empty() => Ok(()),
        _ => Err(format!("{answer:?} although it breaks {broken:?}")),
    }
}

pub(crate) fn expect(answer: &Answer, expected: &Answer) -> Result<(), String> {
    if answer == expected {
        return Ok(());
    }
    Err(format!("{answer:?}, but the rules say {expected:?}"))
}
