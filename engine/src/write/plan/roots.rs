//! The roots recorded with each grain: the grain itself, if its policy restricts anything, and every ancestor
//! whose policy extends to it, at any distance (OMS 23.6, 23.7 bypass 3).
//!
//! Independently of the order of arrival, a row has all roots or says that there are too many. A grain takes
//! over the rows of its stored parents; a grain that arrives after its descendants adds its roots to the rows
//! of all of them.

use std::collections::{BTreeSet, HashMap, VecDeque};

use grainstore_format::{ContentAddress, Grain, GrainRef, GrainState};
use grainstore_index::{Field, IndexLookup, Scope, Sequence, TimeOrder, TimeRange};

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::blob::with_fields;
use crate::rules::policy::{PolicyTerms, ProtectionLink, Protector};

use super::protection::link_above;
use super::{WritePlan, implicit_supersession};

/// Maximum number of roots recorded with a grain.
const MAX_ROOTS: usize = 64;
/// Maximum number of stored descendants that one write updates: more than a batch holds.
const MAX_DESCENDANTS: usize = 1 << 17;
/// Maximum number of stored descendants that an import updates: as many as a large file holds. Its grains are
/// written together, and their derivation is known without the index.
const MAX_IMPORT_DESCENDANTS: usize = 1 << 20;
/// Maximum number of bytes read to find the descendants of those descendants.
const MAX_DESCENDANT_BYTES: usize = 256 << 20;
/// Recorded in place of too many roots: such a grain cannot be superseded.
pub(super) const TOO_MANY_ROOTS: Sequence = Sequence::new(u64::MAX);
/// Recorded first with a grain whose writing was authorised under the policies before it: of the older
/// versions only those with a scope wider than their own grain protect it (OMS 23.5).
pub(super) const RELEASED: Sequence = Sequence::new(0);

/// A cache of whether the policies of stored grains extend to what follows them, per link.
type ReachCache = HashMap<(Sequence, ProtectionLink), bool>;

/// The remaining work for one ancestor that arrived late.
struct PropagationBudget {
    grains: usize,
    bytes: usize,
}

impl PropagationBudget {
    fn for_write() -> Self {
        Self { grains: MAX_DESCENDANTS, bytes: MAX_DESCENDANT_BYTES }
    }

    /// The budget of an import, whose files are read in full anyway.
    fn for_import() -> Self {
        Self { grains: MAX_IMPORT_DESCENDANTS, bytes: usize::MAX }
    }

    /// # Errors
    /// `ERR_LIMIT` if either is exhausted.
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

impl WritePlan<'_> {
    /// Returns the inherited roots of a grain to be stored, without its own policy. `old` is the parent it
    /// supersedes: its protection extends to its successor with any scope, unless the change releases it.
    pub(super) fn roots_of_new(
        &self,
        grain: &Grain,
        old: Option<&ContentAddress>,
        released: bool,
    ) -> Result<Vec<Sequence>> {
        let mut roots = BTreeSet::new();
        let mut reach = ReachCache::new();
        for address in implicit_supersession::parents(grain) {
            let Some(parent) = self.locate(&address)? else { continue };
            let link = match (old == Some(&address), released) {
                (false, _) => ProtectionLink::Ancestor,
                (true, false) => ProtectionLink::TargetOrOlder,
                (true, true) => ProtectionLink::ReleasedVersion,
            };
            roots.extend(self.roots_passed_on(parent, link, &mut reach)?);
            if has_too_many(&roots) {
                return Ok(vec![TOO_MANY_ROOTS]);
            }
        }
        if released {
            roots.insert(RELEASED);
        }
        Ok(roots.into_iter().collect())
    }

    /// Returns the inherited roots of a grain of the log with the row `noted`. Parents that it superseded
    /// count as its versions.
    pub(super) fn inherited_roots(
        &self,
        address: &ContentAddress,
        noted: &[Sequence],
        parents: BTreeSet<ContentAddress>,
    ) -> Result<BTreeSet<Sequence>> {
        let mut roots = BTreeSet::new();
        let mut reach = ReachCache::new();
        let version = link_above(ProtectionLink::TargetOrOlder, noted);
        for parent in parents {
            let Some(parent) = self.locate(&parent)? else { continue };
            let is_version = self.state(parent)?.superseded_by == Some(*address);
            let link = if is_version { version } else { ProtectionLink::Ancestor };
            roots.extend(self.roots_passed_on(parent, link, &mut reach)?);
            if has_too_many(&roots) {
                return Ok(BTreeSet::from([TOO_MANY_ROOTS]));
            }
        }
        Ok(roots)
    }

    /// The roots of a grain that also protect what is derived from it.
    pub(super) fn reaching(&self, sequence: Sequence) -> Result<BTreeSet<Sequence>> {
        self.roots_passed_on(sequence, ProtectionLink::Ancestor, &mut ReachCache::new())
    }

    /// Returns the roots of a grain that extend to what follows it under this link.
    fn roots_passed_on(
        &self,
        parent: Sequence,
        link: ProtectionLink,
        reach: &mut ReachCache,
    ) -> Result<BTreeSet<Sequence>> {
        let mut passed = BTreeSet::new();
        for root in self.roots(parent)? {
            if root == TOO_MANY_ROOTS
                || (root != RELEASED && self.policy_extends(root, link, reach)?)
            {
                passed.insert(root);
            }
        }
        Ok(passed)
    }

    /// Returns `true` if the policy of a grain protects what follows it under this link.
    fn policy_extends(
        &self,
        root: Sequence,
        link: ProtectionLink,
        reach: &mut ReachCache,
    ) -> Result<bool> {
        if let Some(reaches) = reach.get(&(root, link)) {
            return Ok(*reaches);
        }
        let reaches = self.with_grain(root, |_, grain| {
            Ok(Protector::from_grain(grain, &GrainState::default(), link).applies())
        })?;
        reach.insert((root, link), reaches);
        Ok(reaches)
    }

    /// Adds the roots of a grain to its descendants that were stored before it, in any number of steps. None
    /// of these is its successor, so only scopes that cover derivation are passed on; and those cover all
    /// descendants, versions or not. Only in an import can a successor arrive before the grain it replaced:
    /// it takes over the roots that extend to a version.
    ///
    /// # Errors
    /// `ERR_LIMIT` if there are too many descendants.
    pub(super) fn propagate_roots(
        &mut self,
        address: ContentAddress,
        from: Sequence,
    ) -> Result<()> {
        let mut reach = ReachCache::new();
        let mut late = self.roots_passed_on(from, ProtectionLink::Ancestor, &mut reach)?;
        let is_import = self.uncommitted.is_some();
        let mut budget = if is_import {
            PropagationBudget::for_import()
        } else {
            PropagationBudget::for_write()
        };
        let mut queue = VecDeque::from([(address, from)]);
        while let Some((address, parent)) = queue.pop_front() {
            if is_import {
                late = self.roots_passed_on(parent, ProtectionLink::Ancestor, &mut reach)?;
                queue.extend(self.propagate_to_successor(
                    &address,
                    parent,
                    &mut budget,
                    &mut reach,
                )?);
            }
            if late.is_empty() {
                continue;
            }
            for (child, address) in self.children_lacking(&late, &address, &mut budget)? {
                let roots = merge_roots(child, &self.roots(child)?, &late);
                self.roots.insert(child, roots);
                queue.push_back((address, child));
            }
        }
        Ok(())
    }

    /// Adds to the successor of a grain the roots that extend to it as a version. Returns the successor if
    /// its row changed. Rows only grow, so the propagation ends on any graph.
    fn propagate_to_successor(
        &mut self,
        address: &ContentAddress,
        old: Sequence,
        budget: &mut PropagationBudget,
        reach: &mut ReachCache,
    ) -> Result<Option<(ContentAddress, Sequence)>> {
        let Some(successor) = self.state(old)?.superseded_by else { return Ok(None) };
        let Some(sequence) = self.locate(&successor)? else { return Ok(None) };
        let before = self.roots(sequence)?;
        let more =
            self.roots_passed_on(old, link_above(ProtectionLink::TargetOrOlder, &before), reach)?;
        let digits = address.to_string();
        if !lacks(&before, &more)
            || !self.with_grain(sequence, |_, grain| Ok(names_parent(grain, &digits)))?
        {
            return Ok(None);
        }
        budget.spend(1, 0)?;
        self.roots.insert(sequence, merge_roots(sequence, &before, &more));
        Ok(Some((successor, sequence)))
    }

    /// Returns the staged and stored grains that derive from this one and lack any of these roots.
    /// Descendants of the others have them, too.
    fn children_lacking(
        &self,
        late: &BTreeSet<Sequence>,
        parent: &ContentAddress,
        budget: &mut PropagationBudget,
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
        if let Some(beneath) = self.uncommitted {
            // One more than the budget, so that an excess is noticed.
            for child in beneath.children_of(parent, budget.grains.saturating_add(1))? {
                if lacks(&self.roots(child)?, late) {
                    budget.spend(1, 0)?;
                    children.push((child, self.with_grain(child, |address, _| Ok(address))?));
                }
            }
        }
        let digits = parent.to_string();
        let shape = IndexLookup::Value(Field::Derived, digits.as_str().into());
        let index = self.view.index();
        for posting in index.scan(&Scope::All, &shape, TimeRange::default(), TimeOrder::Newest)? {
            let child = posting?.sequence;
            if self.view.is_erased(child)? || !lacks(&self.roots(child)?, late) {
                continue;
            }
            // The index only proposes: each candidate is checked.
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

/// Returns `true` if a stored grain derives from the one with these hex digits.
pub(super) fn names_parent(grain: &GrainRef<'_>, digits: &str) -> bool {
    let parents = grain.get("derived_from").and_then(|parents| parents.as_array());
    parents.is_some_and(|parents| parents.iter().any(|parent| parent.as_str() == Some(digits)))
}

/// Returns `true` if the policy of a grain restricts anything, and `true` if it declares a hold.
pub(crate) fn own_protection(blob: &[u8]) -> Result<(bool, bool)> {
    with_fields(blob, |grain| {
        let terms = PolicyTerms::of(grain);
        Ok((terms.protects(), terms.holds))
    })
}

/// Returns the row of a grain with these roots added.
pub(super) fn merge_roots(
    of: Sequence,
    before: &[Sequence],
    more: &BTreeSet<Sequence>,
) -> Vec<Sequence> {
    let mut roots: BTreeSet<_> = before.iter().chain(more).copied().collect();
    // A grain is not its own ancestor, and its own root stays beside the mark for too many.
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

/// Returns `true` if a row has not all of these roots, and is not marked as having too many.
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
            assert_eq!(merge_roots(own, &before, &more), expected, "{before:?} and {more:?}");
        }
        let released: BTreeSet<_> = ancestors(64).into_iter().chain([RELEASED]).collect();
        assert_eq!(merge_roots(own, &[], &released).len(), 65, "the mark is no ancestor");
    }

    #[test]
    fn more_descendants_than_can_be_noted_are_a_limit_in_number_and_in_bytes() {
        let spend = |grains, bytes| {
            let mut budget = PropagationBudget { grains: 2, bytes: 100 };
            budget.spend(1, 60)?;
            budget.spend(grains, bytes)
        };
        let code = |outcome: Result<()>| outcome.map_err(|error| error.code());
        assert_eq!(code(spend(1, 40)), Ok(()));
        assert_eq!(code(spend(2, 0)), Err("ERR_LIMIT"));
        assert_eq!(code(spend(1, 41)), Err("ERR_LIMIT"));
    }
}
