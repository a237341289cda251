//! Gathers the protectors of a grain to be invalidated: the grain itself, its other versions, and its
//! ancestors by derivation (OMS 23.6, 23.7 bypass 3). Gathers the facts; `policy` decides.
//!
//! Derivation is followed for 16 hops and 1,024 ancestors, nearest first. Beyond them the roots recorded with
//! each grain still protect.

use std::collections::{BTreeSet, HashMap, VecDeque};

use grainstore_format::{ContentAddress, Grain, GrainRef, GrainState};
use grainstore_index::Sequence;

use crate::base::error::Result;
use crate::disk::blob::with_fields;
use crate::rules::policy::{
    BindingFacts, GoalTerms, GoalTransition, PolicyDecision, PolicyExplanation, PolicyFacts,
    ProtectionLink, Protector, explain_in,
};
use crate::state::view::GrainRow;

use super::roots::{RELEASED, TOO_MANY_ROOTS};
use super::{Principal, WritePlan, implicit_supersession};

/// Maximum number of derivation steps (OMS 23.6).
const MAX_HOPS: usize = 16;
/// Maximum number of ancestors read one by one; the recorded roots cover all of them.
const MAX_ANCESTORS: usize = 1024;
/// Maximum number of newer versions that are read; beyond it the attempt is refused.
const MAX_NEWER_VERSIONS: usize = 100_000;
/// The facts of an attempt, and the addresses of its protectors in the same order.
pub(super) struct GatheredProtectors {
    pub(super) facts: PolicyFacts,
    pub(super) addresses: Vec<ContentAddress>,
}

impl GatheredProtectors {
    /// Returns the refusing protector and its link, unless it is the target itself.
    pub(super) fn refusing_protector(
        &self,
        decision: &PolicyDecision,
    ) -> Option<(ContentAddress, ProtectionLink)> {
        let at = decision.refused_by.filter(|at| *at > 0)?;
        Some((*self.addresses.get(at)?, self.facts.protectors.get(at)?.link))
    }
}

/// An ancestor to be visited.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Ancestor {
    pub(super) sequence: Sequence,
    pub(super) link: ProtectionLink,
}

/// A traversal of the protectors of a target.
struct ProtectionWalk<'a> {
    transition: Option<GoalTransition<'a>>,
    found: GatheredProtectors,
    /// The strongest link under which each grain was visited.
    seen: HashMap<Sequence, ProtectionLink>,
}

impl<'a> ProtectionWalk<'a> {
    fn new(transition: Option<GoalTransition<'a>>) -> Self {
        let facts = PolicyFacts { protectors: Vec::new(), is_truncated: false };
        let found = GatheredProtectors { facts, addresses: Vec::new() };
        Self { transition, found, seen: HashMap::new() }
    }

    /// Adds a grain once if its policy applies to the target; the target itself is always added.
    fn add(
        &mut self,
        address: ContentAddress,
        grain: &GrainRef<'_>,
        state: &GrainState,
        link: ProtectionLink,
    ) {
        self.add_with_transition(self.transition, address, grain, state, link);
    }

    /// Like [`ProtectionWalk::add`], with the transition that the attempt counts as.
    fn add_with_transition(
        &mut self,
        transition: Option<GoalTransition<'_>>,
        address: ContentAddress,
        grain: &GrainRef<'_>,
        state: &GrainState,
        link: ProtectionLink,
    ) {
        let mut protector = Protector::from_grain(grain, state, link);
        let is_target = self.found.addresses.is_empty();
        if !is_target && (!protector.applies() || self.found.addresses.contains(&address)) {
            return;
        }
        if let Some(transition) = transition
            && link != ProtectionLink::Ancestor
        {
            protector.goal = GoalTerms::of(grain, &transition);
        }
        self.found.facts.protectors.push(protector);
        self.found.addresses.push(address);
    }

    /// Returns `true` if a grain must be visited under this link: one that was visited under a weaker link is
    /// visited again.
    fn visit(&mut self, Ancestor { sequence, link }: Ancestor) -> bool {
        let before = self.seen.get(&sequence).copied();
        if before.is_some_and(|before| before >= link) {
            return false;
        }
        self.seen.insert(sequence, link);
        true
    }
}

impl WritePlan<'_> {
    /// Gathers the protectors against replacing `target` by `new` or, without `new`, against taking it out of
    /// use.
    pub(super) fn protectors(
        &self,
        target: &ContentAddress,
        new: Option<&Grain>,
        transition: Option<GoalTransition<'_>>,
    ) -> Result<GatheredProtectors> {
        let mut walk = ProtectionWalk::new(transition);
        let mut queue = VecDeque::new();
        if let Some(sequence) = self.locate(target)? {
            queue.push_back((
                Ancestor { sequence, link: ProtectionLink::TargetOrOlder },
                usize::from(new.is_some()),
            ));
        }
        let others = new.map(implicit_supersession::parents).unwrap_or_default();
        for parent in others.into_iter().filter(|parent| parent != target) {
            if let Some(sequence) = self.locate(&parent)? {
                queue.push_back((Ancestor { sequence, link: ProtectionLink::Ancestor }, 1));
            }
        }
        // The recorded roots of the starting grains include all their protectors, so the traversal may stop
        // early.
        let mut roots = BTreeSet::new();
        for (ancestor, _) in &queue {
            roots.extend(self.recorded_roots(*ancestor)?);
        }
        while let Some((ancestor, hops)) = queue.pop_front() {
            if walk.seen.len() >= MAX_ANCESTORS {
                break;
            }
            if !walk.visit(ancestor) {
                continue;
            }
            let Ancestor { sequence, link } = ancestor;
            let state = self.state(sequence)?;
            let (address, parents) = self.with_grain(sequence, |address, grain| {
                walk.add(address, grain, &state, link);
                Ok((address, parent_addresses(grain)))
            })?;
            roots.extend(self.recorded_roots(ancestor)?);
            if hops < MAX_HOPS {
                let above = link_above(link, &self.roots(sequence)?);
                let parents = self.linked_parents(above, &address, parents)?;
                queue.extend(parents.into_iter().map(|parent| (parent, hops + 1)));
            }
        }
        let walked = walk.found.facts.protectors.len();
        self.add_roots(target, roots, &mut walk)?;
        walk.found.facts.judge_by_first_author(walked);
        if new.is_none() {
            self.add_newer_versions(target, &mut walk)?;
        }
        Ok(walk.found)
    }

    /// Explains what binds a stored grain, by the facts that its replacement would be decided on.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND`; `ERR_WITHDRAWN`.
    pub(crate) fn explain(
        &self,
        target: &ContentAddress,
        author: &Principal,
    ) -> Result<PolicyExplanation> {
        let row = self.visible_or_error(target, author)?;
        let gathered = self.protectors(target, None, None)?;
        let names = gathered.addresses.iter();
        let names = names.map(|one| Ok(self.visible(one, author)?.map(|_| *one)));
        let binding = BindingFacts {
            facts: &gathered.facts,
            names: &names.collect::<Result<Vec<_>>>()?,
            now: Some(self.now),
            locked_accepts_signature: self.locked_accepts_signature,
        };
        with_fields(&row.blob, |grain| Ok(explain_in(grain, &row.state, &binding)))
    }

    /// Gathers the facts of an action that the target alone decides.
    pub(super) fn target_only(
        &self,
        row: &GrainRow,
        target: &ContentAddress,
    ) -> Result<GatheredProtectors> {
        let mut walk = ProtectionWalk::new(None);
        with_fields(&row.blob, |grain| {
            walk.add(*target, grain, &row.state, ProtectionLink::TargetOrOlder);
            Ok(walk.found)
        })
    }

    /// Returns the roots recorded with a grain, each with its link to the target.
    fn recorded_roots(&self, ancestor: Ancestor) -> Result<impl Iterator<Item = Ancestor> + use<>> {
        let noted = self.roots(ancestor.sequence)?;
        let link = link_above(ancestor.link, &noted);
        Ok(noted.into_iter().map(move |sequence| Ancestor { sequence, link }))
    }

    /// Adds the recorded roots beyond the visited ancestors.
    fn add_roots(
        &self,
        target: &ContentAddress,
        roots: BTreeSet<Ancestor>,
        walk: &mut ProtectionWalk<'_>,
    ) -> Result<()> {
        let mut known = HashMap::new();
        for root in roots.into_iter().filter(|root| root.sequence != RELEASED) {
            if root.sequence == TOO_MANY_ROOTS {
                walk.found.facts.is_truncated = true;
            } else if walk.visit(root) {
                let Ancestor { sequence, link } = root;
                // The recorded root may be a version of the goal or an ancestor; only a version allows the
                // transition.
                let allows = walk.transition.is_some()
                    && self.leads_to(sequence, target, &mut known)? == Some(true);
                let transition = walk.transition.filter(|_| allows);
                let state = self.state(sequence)?;
                self.with_grain(sequence, |address, grain| {
                    walk.add_with_transition(transition, address, grain, &state, link);
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    /// Adds the newer versions of a grain: a policy of scope `lineage` protects the versions it replaced.
    fn add_newer_versions(
        &self,
        target: &ContentAddress,
        walk: &mut ProtectionWalk<'_>,
    ) -> Result<()> {
        let Some(mut sequence) = self.locate(target)? else { return Ok(()) };
        for _ in 0..MAX_NEWER_VERSIONS {
            let Some(next) = self.state(sequence)?.superseded_by else { return Ok(()) };
            let Some(later) = self.locate(&next)? else { return Ok(()) };
            sequence = later;
            // A grain that restricts nothing is not its own root.
            if self.roots(sequence)?.contains(&sequence)
                && walk.visit(Ancestor { sequence, link: ProtectionLink::NewerVersion })
            {
                let state = self.state(sequence)?;
                self.with_grain(sequence, |address, grain| {
                    walk.add(address, grain, &state, ProtectionLink::NewerVersion);
                    Ok(())
                })?;
            }
        }
        walk.found.facts.is_truncated = true;
        Ok(())
    }

    /// Returns the stored parents of a grain, each with its link to the target.
    pub(super) fn linked_parents(
        &self,
        child: ProtectionLink,
        address: &ContentAddress,
        parents: BTreeSet<ContentAddress>,
    ) -> Result<Vec<Ancestor>> {
        let mut found = Vec::new();
        for parent in parents.into_iter().take(MAX_ANCESTORS + 1) {
            let Some(sequence) = self.locate(&parent)? else { continue };
            let is_version = self.state(sequence)?.superseded_by == Some(*address);
            found.push(Ancestor {
                sequence,
                link: if is_version { child } else { ProtectionLink::Ancestor },
            });
        }
        Ok(found)
    }
}

/// Returns the link of the versions before a grain with this link and these roots.
pub(super) fn link_above(link: ProtectionLink, roots: &[Sequence]) -> ProtectionLink {
    if link == ProtectionLink::TargetOrOlder && roots.contains(&RELEASED) {
        ProtectionLink::ReleasedVersion
    } else {
        link
    }
}

/// Returns the distinct addresses that a stored grain derives from.
pub(super) fn parent_addresses(grain: &GrainRef<'_>) -> BTreeSet<ContentAddress> {
    let parents = grain.get("derived_from").and_then(|parents| parents.as_array());
    let parents = parents.into_iter().flat_map(|parents| parents.iter());
    parents.filter_map(|parent| parent.as_str()?.parse().ok()).collect()
}
