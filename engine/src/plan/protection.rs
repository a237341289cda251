//! Who protects a grain that is to be invalidated: the grain itself, its other versions, and what it
//! derives from (OMS 23.6, 23.7 bypass 3). Gathers the facts; `policy` decides.
//!
//! Derivation is followed for 16 hops. Beyond them the **roots** noted with each grain when it was
//! stored still protect: itself, if its policy restricts anything, and the ancestors whose policy
//! reaches it, however far away. A protecting grain that arrives after what derives from it is
//! noted with that, too.

use std::collections::{BTreeSet, HashMap, VecDeque};

use grainstore_format::{ContentAddress, Grain, GrainRef, GrainState};
use grainstore_index::{Field, Order, Scope, Sequence, Shape, TimeRange};

use crate::error::Result;
use crate::policy::{Decision, Facts, GoalTerms, Protector, Terms, Tie};
use crate::view::with_fields;

use super::{Plan, disguise};

/// How far derivation is followed (OMS 23.6).
const MAX_HOPS: usize = 16;
/// How many ancestors are looked at before the answer is no.
pub(super) const MAX_ANCESTORS: usize = 1024;
/// How many later versions are looked at before the answer is no.
const MAX_LATER: usize = 100_000;
/// How many roots are noted with a grain.
const MAX_ROOTS: usize = 64;
/// How many grains a late ancestor is noted with.
const MAX_DESCENDANTS: usize = 4096;
/// Noted instead of more roots than that: nothing may supersede such a grain.
pub(super) const TOO_MANY_ROOTS: Sequence = Sequence::new(u64::MAX);
/// Noted first with a grain whose writing was authorised under the policies before it: of the versions
/// before it only those protect it whose scope is wider than themselves (OMS 23.5).
pub(super) const RELEASED: Sequence = Sequence::new(0);

/// What bears on an attempt, and the addresses of the protectors, in the same order.
pub(super) struct Gathered {
    pub(super) facts: Facts,
    pub(super) addresses: Vec<ContentAddress>,
}

impl Gathered {
    /// What refuses, where that is not the target itself, and how it is tied to it.
    pub(super) fn refuser(&self, decision: &Decision) -> Option<(ContentAddress, Tie)> {
        let at = decision.refused_by.filter(|at| *at > 0)?;
        Some((*self.addresses.get(at)?, self.facts.protectors.get(at)?.tie))
    }
}

/// A change of state a goal is to make: its new version, and the state that has.
#[derive(Clone, Copy)]
pub(super) struct Transition<'a> {
    pub(super) new: &'a Grain,
    pub(super) to: &'a str,
}

/// An ancestor to be looked at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ancestor {
    pub(super) sequence: Sequence,
    pub(super) tie: Tie,
}

/// A walk over what protects a target.
struct Inquiry<'a> {
    transition: Option<Transition<'a>>,
    found: Gathered,
    /// As what each grain was looked at.
    seen: HashMap<Sequence, Tie>,
}

impl Inquiry<'_> {
    /// Notes a grain where its policy bears on the target, once, and the target in any case.
    fn note(
        &mut self,
        address: ContentAddress,
        grain: &GrainRef<'_>,
        state: &GrainState,
        tie: Tie,
    ) {
        let mut protector = Protector::of(grain, state, tie);
        let is_target = self.found.addresses.is_empty();
        if !is_target && (!protector.bears() || self.found.addresses.contains(&address)) {
            return;
        }
        if let Some(Transition { new, to }) = self.transition
            && tie != Tie::Source
        {
            protector.goal = GoalTerms::of(grain, new, to);
        }
        self.found.facts.protectors.push(protector);
        self.found.addresses.push(address);
    }

    /// Whether a grain is still to be looked at under this tie: met as a source first, a version
    /// counts once more as what it is.
    fn is_news(&mut self, Ancestor { sequence, tie }: Ancestor) -> bool {
        let before = self.seen.get(&sequence).copied();
        if before.is_some_and(|before| before >= tie) {
            return false;
        }
        self.seen.insert(sequence, tie);
        true
    }
}

impl Plan<'_> {
    /// Gathers what bears on replacing `target` by `new`, or, without one, on taking it out of use
    /// where it stands.
    pub(super) fn protectors(
        &self,
        target: &ContentAddress,
        new: Option<&Grain>,
        transition: Option<Transition<'_>>,
    ) -> Result<Gathered> {
        let facts = Facts { protectors: Vec::new(), too_many: false };
        let found = Gathered { facts, addresses: Vec::new() };
        let mut inquiry = Inquiry { transition, found, seen: HashMap::new() };
        let mut queue = VecDeque::new();
        if let Some(sequence) = self.locate(target)? {
            queue.push_back((Ancestor { sequence, tie: Tie::Version }, usize::from(new.is_some())));
        }
        let others = new.map(disguise::parents).unwrap_or_default();
        for parent in others.into_iter().filter(|parent| parent != target) {
            if let Some(sequence) = self.locate(&parent)? {
                queue.push_back((Ancestor { sequence, tie: Tie::Source }, 1));
            }
        }
        let mut roots = BTreeSet::new();
        while let Some((ancestor, hops)) = queue.pop_front() {
            if !inquiry.is_news(ancestor) {
                continue;
            }
            if inquiry.seen.len() > MAX_ANCESTORS {
                inquiry.found.facts.too_many = true;
                return Ok(inquiry.found);
            }
            let Ancestor { sequence, tie } = ancestor;
            let (address, blob) = self.at(sequence)?;
            let state = self.state(sequence)?;
            let parents = with_fields(&blob, |grain| {
                inquiry.note(address, grain, &state, tie);
                Ok(parents_in(grain))
            })?;
            let noted = self.roots(sequence)?;
            let above = above(tie, &noted);
            roots.extend(noted.iter().map(|sequence| Ancestor { sequence: *sequence, tie: above }));
            if hops < MAX_HOPS {
                let parents = self.ties(above, &address, parents)?;
                queue.extend(parents.into_iter().map(|parent| (parent, hops + 1)));
            }
        }
        self.note_roots(roots, &mut inquiry)?;
        if new.is_none() {
            self.note_later(target, &mut inquiry)?;
        }
        Ok(inquiry.found)
    }

    /// Notes what protects from beyond the hops that are followed.
    fn note_roots(&self, roots: BTreeSet<Ancestor>, inquiry: &mut Inquiry<'_>) -> Result<()> {
        for root in roots.into_iter().filter(|root| root.sequence != RELEASED) {
            if root.sequence == TOO_MANY_ROOTS {
                inquiry.found.facts.too_many = true;
            } else if inquiry.is_news(root) {
                let (address, blob) = self.at(root.sequence)?;
                let state = self.state(root.sequence)?;
                with_fields(&blob, |grain| {
                    inquiry.note(address, grain, &state, root.tie);
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    /// Notes the newer versions of a grain: a policy for its lineage protects what it replaced.
    fn note_later(&self, target: &ContentAddress, inquiry: &mut Inquiry<'_>) -> Result<()> {
        let Some(mut sequence) = self.locate(target)? else { return Ok(()) };
        for _ in 0..MAX_LATER {
            let Some(next) = self.state(sequence)?.superseded_by else { return Ok(()) };
            let Some(later) = self.locate(&next)? else { return Ok(()) };
            sequence = later;
            // A grain that restricts nothing is no root of its own.
            if self.roots(sequence)?.contains(&sequence)
                && inquiry.is_news(Ancestor { sequence, tie: Tie::Later })
            {
                let (address, blob) = self.at(sequence)?;
                let state = self.state(sequence)?;
                with_fields(&blob, |grain| {
                    inquiry.note(address, grain, &state, Tie::Later);
                    Ok(())
                })?;
            }
        }
        inquiry.found.facts.too_many = true;
        Ok(())
    }

    /// The stored parents of a grain, each with its tie to the target.
    pub(super) fn ties(
        &self,
        child: Tie,
        address: &ContentAddress,
        parents: BTreeSet<ContentAddress>,
    ) -> Result<Vec<Ancestor>> {
        let mut found = Vec::new();
        for parent in parents.into_iter().take(MAX_ANCESTORS + 1) {
            let Some(sequence) = self.locate(&parent)? else { continue };
            let is_version = self.state(sequence)?.superseded_by == Some(*address);
            found.push(Ancestor { sequence, tie: if is_version { child } else { Tie::Source } });
        }
        Ok(found)
    }

    /// What protects a grain that is to be stored, beside its own policy: the roots of its parents
    /// that reach it. `old` is the parent it supersedes: its protection reaches its successor
    /// whatever its scope, unless the change releases it.
    pub(super) fn roots_for(
        &self,
        grain: &Grain,
        old: Option<&ContentAddress>,
        released: bool,
    ) -> Result<Vec<Sequence>> {
        let mut roots = BTreeSet::new();
        for address in disguise::parents(grain) {
            let Some(parent) = self.locate(&address)? else { continue };
            let tie = match (old == Some(&address), released) {
                (false, _) => Tie::Source,
                (true, false) => Tie::Version,
                (true, true) => Tie::Released,
            };
            if !self.inherit(&mut roots, parent, tie)? {
                return Ok(vec![TOO_MANY_ROOTS]);
            }
        }
        if released {
            roots.insert(RELEASED);
        }
        Ok(roots.into_iter().collect())
    }

    /// Adds those roots of a parent that reach its child; `false` for too many.
    pub(super) fn inherit(
        &self,
        roots: &mut BTreeSet<Sequence>,
        parent: Sequence,
        tie: Tie,
    ) -> Result<bool> {
        for root in self.roots(parent)? {
            if root == TOO_MANY_ROOTS {
                return Ok(false);
            }
            if root != RELEASED && self.reaches(root, tie)? {
                roots.insert(root);
            }
        }
        Ok(roots.iter().filter(|root| **root != RELEASED).count() <= MAX_ROOTS)
    }

    /// Whether the policy of a stored grain protects what comes after it under this tie.
    fn reaches(&self, sequence: Sequence, tie: Tie) -> Result<bool> {
        let (_, blob) = self.at(sequence)?;
        with_fields(&blob, |grain| Ok(Protector::of(grain, &GrainState::default(), tie).bears()))
    }

    /// Notes the roots of a grain with what was stored before it and derives from it. Of more than
    /// [`MAX_DESCENDANTS`] the rest are protected for 16 hops alone.
    pub(super) fn spread_roots(&mut self, address: ContentAddress, from: Sequence) -> Result<()> {
        let mut queue = VecDeque::from([(address, from)]);
        let mut left = MAX_DESCENDANTS;
        while let Some((address, parent)) = queue.pop_front() {
            let successor = self.state(parent)?.superseded_by;
            for child in self.children_of(&address, left)? {
                left = left.saturating_sub(1);
                let (child_address, _) = self.at(child)?;
                let before = self.roots(child)?;
                if before.contains(&TOO_MANY_ROOTS) {
                    continue;
                }
                let is_version = successor == Some(child_address);
                let tie = if is_version { Tie::Version } else { Tie::Source };
                let mut roots: BTreeSet<_> = before.iter().copied().collect();
                if !self.inherit(&mut roots, parent, above(tie, &before))? {
                    roots = BTreeSet::from([TOO_MANY_ROOTS]);
                }
                // Rows only grow, so this ends on any graph.
                if !roots.iter().eq(&before) {
                    self.roots.insert(child, roots.into_iter().collect());
                    queue.push_back((child_address, child));
                }
            }
        }
        Ok(())
    }

    /// Up to so many grains that derive from this one, staged and stored.
    fn children_of(&self, address: &ContentAddress, limit: usize) -> Result<Vec<Sequence>> {
        let staged = self.grains.iter();
        let staged =
            staged.filter(|staged| disguise::parents(&staged.prepared.grain).contains(address));
        let mut children: Vec<_> = staged.map(|staged| staged.sequence).take(limit).collect();
        let digits = address.to_string();
        let shape = Shape::Value(Field::Derived, digits.as_str().into());
        let index = self.view.index();
        let postings = index.scan(&Scope::All, &shape, TimeRange::default(), Order::Newest)?;
        for posting in postings.take(limit.saturating_sub(children.len())) {
            let sequence = posting?.sequence;
            let derives = |blob: &[u8]| with_fields(blob, |grain| Ok(parents_in(grain)));
            if self.view.with_blob(sequence, derives)?.contains(address) {
                children.push(sequence);
            }
        }
        Ok(children)
    }
}

/// Whether the policy of a grain restricts anything, and whether it is under hold from birth.
pub(super) fn own_terms(blob: &[u8]) -> Result<(bool, bool)> {
    with_fields(blob, |grain| {
        let terms = Terms::of(grain);
        Ok((terms.protects(), terms.holds))
    })
}

/// How the versions before a grain are tied to the target, if the grain is tied so.
pub(super) fn above(tie: Tie, roots: &[Sequence]) -> Tie {
    if tie == Tie::Version && roots.contains(&RELEASED) { Tie::Released } else { tie }
}

/// The addresses a stored grain derives from, each once.
pub(super) fn parents_in(grain: &GrainRef<'_>) -> BTreeSet<ContentAddress> {
    let parents = grain.get("derived_from").and_then(|parents| parents.as_array());
    let parents = parents.into_iter().flat_map(|parents| parents.iter());
    parents.filter_map(|parent| parent.as_str()?.parse().ok()).collect()
}
