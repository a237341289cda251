//! The roots noted with each grain: itself, if its policy restricts anything, and every ancestor whose
//! policy reaches it, however far away (OMS 23.6, 23.7 bypass 3).
//!
//! Whatever the order of arrival, a row has all of them or says that there are too many. A grain
//! takes over the rows of the parents that are there; one that arrives after what derives from it
//! adds what it brings to the rows of all its descendants.

use std::collections::{BTreeSet, HashMap, VecDeque};

use grainstore_format::{ContentAddress, Grain, GrainRef, GrainState};
use grainstore_index::{Field, Order, Scope, Sequence, Shape, TimeRange};

use crate::base::error::{Error, ErrorKind, Result};
use crate::rules::policy::{Protector, Terms, Tie};
use crate::state::view::with_fields;

use super::protection::above;
use super::{Plan, disguise};

/// How many roots are noted with a grain.
const MAX_ROOTS: usize = 64;
/// How many stored grains may wait for what protects them: more than a batch holds.
const MAX_DESCENDANTS: usize = 1 << 17;
/// How many grains of an import may: as many as a large file holds. They are written together, and
/// who derives from whom is known of them without the index.
const MAX_DESCENDANTS_TOGETHER: usize = 1 << 20;
/// How many bytes of them are read to find those that derive from them in turn.
const MAX_DESCENDANT_BYTES: usize = 256 << 20;
/// Noted instead of more roots than that: nothing may supersede such a grain.
pub(super) const TOO_MANY_ROOTS: Sequence = Sequence::new(u64::MAX);
/// Noted first with a grain whose writing was authorised under the policies before it: of the versions
/// before it only those protect it whose scope is wider than themselves (OMS 23.5).
pub(super) const RELEASED: Sequence = Sequence::new(0);

/// Whether the policies of stored grains reach what comes after them, each asked once.
type Reach = HashMap<(Sequence, Tie), bool>;

/// What is left to be noted and to be read for one late ancestor.
struct Budget {
    grains: usize,
    bytes: usize,
}

impl Budget {
    fn of_write() -> Self {
        Self { grains: MAX_DESCENDANTS, bytes: MAX_DESCENDANT_BYTES }
    }

    /// That of an import, whose files are read in full anyway.
    fn of_import() -> Self {
        Self { grains: MAX_DESCENDANTS_TOGETHER, bytes: usize::MAX }
    }

    /// # Errors
    /// `ERR_LIMIT` once either has run out.
    fn spend(&mut self, grains: usize, bytes: usize) -> Result<()> {
        let left = self.grains.checked_sub(grains).zip(self.bytes.checked_sub(bytes));
        let Some((grains, bytes)) = left else {
            let message = "it protects what derives from it, and more than can be noted is stored \
                           already";
            return Err(Error::new(ErrorKind::Limit, message)
                .with_hint("store what protects before what derives from it"));
        };
        *self = Self { grains, bytes };
        Ok(())
    }
}

impl Plan<'_> {
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
        let mut reach = Reach::new();
        for address in disguise::parents(grain) {
            let Some(parent) = self.locate(&address)? else { continue };
            let tie = match (old == Some(&address), released) {
                (false, _) => Tie::Source,
                (true, false) => Tie::Version,
                (true, true) => Tie::Released,
            };
            roots.extend(self.passed_on(parent, tie, &mut reach)?);
            if has_too_many(&roots) {
                return Ok(vec![TOO_MANY_ROOTS]);
            }
        }
        if released {
            roots.insert(RELEASED);
        }
        Ok(roots.into_iter().collect())
    }

    /// What protects a grain of the log with this row from above: the roots of its parents that reach
    /// it, those it superseded as versions of it.
    pub(super) fn inherited(
        &self,
        address: &ContentAddress,
        noted: &[Sequence],
        parents: BTreeSet<ContentAddress>,
    ) -> Result<BTreeSet<Sequence>> {
        let mut roots = BTreeSet::new();
        let mut reach = Reach::new();
        let version = above(Tie::Version, noted);
        for parent in parents {
            let Some(parent) = self.locate(&parent)? else { continue };
            let is_version = self.state(parent)?.superseded_by == Some(*address);
            let tie = if is_version { version } else { Tie::Source };
            roots.extend(self.passed_on(parent, tie, &mut reach)?);
            if has_too_many(&roots) {
                return Ok(BTreeSet::from([TOO_MANY_ROOTS]));
            }
        }
        Ok(roots)
    }

    /// Those roots of a grain that reach what comes after it under this tie.
    fn passed_on(
        &self,
        parent: Sequence,
        tie: Tie,
        reach: &mut Reach,
    ) -> Result<BTreeSet<Sequence>> {
        let mut passed = BTreeSet::new();
        for root in self.roots(parent)? {
            if root == TOO_MANY_ROOTS || (root != RELEASED && self.reaches(root, tie, reach)?) {
                passed.insert(root);
            }
        }
        Ok(passed)
    }

    /// Whether the policy of a grain protects what comes after it under this tie.
    fn reaches(&self, root: Sequence, tie: Tie, reach: &mut Reach) -> Result<bool> {
        if let Some(reaches) = reach.get(&(root, tie)) {
            return Ok(*reaches);
        }
        let reaches = self
            .read(root, |_, grain| Ok(Protector::of(grain, &GrainState::default(), tie).bears()))?;
        reach.insert((root, tie), reaches);
        Ok(reaches)
    }

    /// Notes the roots of a grain with what was stored before it and derives from it, in however many
    /// steps. Nothing that was there before it is its successor, so only what covers derivation goes
    /// on from it; and that reaches all that descends from it, versions or not. In an import alone a
    /// successor may have come before what it replaced: it takes over what reaches a version.
    ///
    /// # Errors
    /// `ERR_LIMIT` where there is too much of that.
    pub(super) fn spread_roots(&mut self, address: ContentAddress, from: Sequence) -> Result<()> {
        let mut reach = Reach::new();
        let mut late = self.passed_on(from, Tie::Source, &mut reach)?;
        let is_import = self.beneath.is_some();
        let mut budget = if is_import { Budget::of_import() } else { Budget::of_write() };
        let mut queue = VecDeque::from([(address, from)]);
        while let Some((address, parent)) = queue.pop_front() {
            if is_import {
                late = self.passed_on(parent, Tie::Source, &mut reach)?;
                queue.extend(self.told_successor(&address, parent, &mut budget, &mut reach)?);
            }
            if late.is_empty() {
                continue;
            }
            for (child, address) in self.unaware_of(&late, &address, &mut budget)? {
                let roots = joined(child, &self.roots(child)?, &late);
                self.roots.insert(child, roots);
                queue.push_back((address, child));
            }
        }
        Ok(())
    }

    /// Notes with the successor of a grain what reaches it as a version; the successor, if that was
    /// news. Rows only grow, so this ends on any graph.
    fn told_successor(
        &mut self,
        address: &ContentAddress,
        old: Sequence,
        budget: &mut Budget,
        reach: &mut Reach,
    ) -> Result<Option<(ContentAddress, Sequence)>> {
        let Some(successor) = self.state(old)?.superseded_by else { return Ok(None) };
        let Some(sequence) = self.locate(&successor)? else { return Ok(None) };
        let before = self.roots(sequence)?;
        let more = self.passed_on(old, above(Tie::Version, &before), reach)?;
        let digits = address.to_string();
        if !lacks(&before, &more)
            || !self.read(sequence, |_, grain| Ok(names_parent(grain, &digits)))?
        {
            return Ok(None);
        }
        budget.spend(1, 0)?;
        self.roots.insert(sequence, joined(sequence, &before, &more));
        Ok(Some((successor, sequence)))
    }

    /// The grains, staged and stored, that derive from this one and lack any of these roots. What
    /// derives from the others has them, too.
    fn unaware_of(
        &self,
        late: &BTreeSet<Sequence>,
        parent: &ContentAddress,
        budget: &mut Budget,
    ) -> Result<Vec<(Sequence, ContentAddress)>> {
        let mut children = Vec::new();
        for child in self.children.get(parent).into_iter().flatten() {
            if let Some(staged) = self.staged_at(*child)
                && lacks(&self.roots(*child)?, late)
            {
                budget.spend(1, 0)?;
                children.push((*child, staged.prepared.blob.address()));
            }
        }
        if let Some(beneath) = self.beneath {
            // One more than may be noted, so that more are noticed.
            for child in beneath.children_of(parent, budget.grains.saturating_add(1))? {
                if lacks(&self.roots(child)?, late) {
                    budget.spend(1, 0)?;
                    children.push((child, self.read(child, |address, _| Ok(address))?));
                }
            }
        }
        let digits = parent.to_string();
        let shape = Shape::Value(Field::Derived, digits.as_str().into());
        let index = self.view.index();
        for posting in index.scan(&Scope::All, &shape, TimeRange::default(), Order::Newest)? {
            let child = posting?.sequence;
            if self.view.is_erased(child)? || !lacks(&self.roots(child)?, late) {
                continue;
            }
            // The index adds nothing: what it names is looked at.
            let address = self.view.with_blob(child, |blob| {
                budget.spend(1, blob.len())?;
                let derives = with_fields(blob, |grain| Ok(names_parent(grain, &digits)))?;
                Ok(derives.then(|| ContentAddress::of(blob)))
            })?;
            children.extend(address.map(|address| (child, address)));
        }
        Ok(children)
    }
}

/// Whether a stored grain derives from the one with these digits.
pub(super) fn names_parent(grain: &GrainRef<'_>, digits: &str) -> bool {
    let parents = grain.get("derived_from").and_then(|parents| parents.as_array());
    parents.is_some_and(|parents| parents.iter().any(|parent| parent.as_str() == Some(digits)))
}

/// Whether the policy of a grain restricts anything, and whether it is under hold from birth.
pub(crate) fn own_terms(blob: &[u8]) -> Result<(bool, bool)> {
    with_fields(blob, |grain| {
        let terms = Terms::of(grain);
        Ok((terms.protects(), terms.holds))
    })
}

/// The row of a grain with these roots beside its own.
pub(super) fn joined(
    of: Sequence,
    before: &[Sequence],
    more: &BTreeSet<Sequence>,
) -> Vec<Sequence> {
    let mut roots: BTreeSet<_> = before.iter().chain(more).copied().collect();
    // It is no ancestor of its own, and stays to be seen beside too many.
    let own = roots.take(&of);
    if has_too_many(&roots) {
        roots = BTreeSet::from([TOO_MANY_ROOTS]);
    }
    roots.extend(own);
    roots.into_iter().collect()
}

fn has_too_many(roots: &BTreeSet<Sequence>) -> bool {
    let count = roots.len() - usize::from(roots.contains(&RELEASED));
    count > MAX_ROOTS || roots.contains(&TOO_MANY_ROOTS)
}

/// Whether a row has not all of these roots, and does not stand for them either.
fn lacks(row: &[Sequence], roots: &BTreeSet<Sequence>) -> bool {
    !row.contains(&TOO_MANY_ROOTS) && !roots.iter().all(|root| row.contains(root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_64_ancestors_or_says_that_there_are_more() {
        let own = Sequence::new(500);
        let ancestors = |count| (1..=count).map(Sequence::new).collect::<BTreeSet<_>>();
        let too_many = vec![own, TOO_MANY_ROOTS];
        for (before, more, expected) in [
            (vec![own], ancestors(64), ancestors(64).into_iter().chain([own]).collect()),
            (vec![own], ancestors(65), too_many.clone()),
            (vec![Sequence::new(99), own], ancestors(64), too_many.clone()),
            (vec![Sequence::new(64), own], ancestors(65), too_many.clone()),
            (vec![own], BTreeSet::from([TOO_MANY_ROOTS]), too_many.clone()),
            (too_many.clone(), ancestors(1), too_many),
            (vec![], BTreeSet::new(), vec![]),
        ] {
            assert_eq!(joined(own, &before, &more), expected, "{before:?} and {more:?}");
        }
        let released: BTreeSet<_> = ancestors(64).into_iter().chain([RELEASED]).collect();
        assert_eq!(joined(own, &[], &released).len(), 65, "the mark is no ancestor");
    }

    #[test]
    fn more_descendants_than_can_be_noted_are_a_limit_in_number_and_in_bytes() {
        let spend = |grains, bytes| {
            let mut budget = Budget { grains: 2, bytes: 100 };
            budget.spend(1, 60)?;
            budget.spend(grains, bytes)
        };
        let code = |outcome: Result<()>| outcome.map_err(|error| error.code());
        assert_eq!(code(spend(1, 40)), Ok(()));
        assert_eq!(code(spend(2, 0)), Err("ERR_LIMIT"));
        assert_eq!(code(spend(1, 41)), Err("ERR_LIMIT"));
    }
}
