//! Writing of goals: their dependencies, and the evidence that counts (OMS 8.7, 23.4, 23.5).

use std::collections::{BTreeSet, HashMap};

use grainstore_format::{ContentAddress, Grain, GrainState, GrainType, VerificationStatus};
use grainstore_index::Sequence;

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::blob::with_fields;
use crate::rules::policy::{GoalTransition, Maker, Proofs};
use crate::state::view::GrainRow;

use super::protection::{GatheredProtectors, parent_addresses};
use super::roots::names_parent;
use super::{Principal, WritePlan, implicit_supersession};

/// Maximum number of versions followed for one grain.
const MAX_FOLLOWED_VERSIONS: usize = 16_384;
/// Grains that what a transition adds to its sources may derive from.
const MAX_SOURCES: usize = 1024;

impl WritePlan<'_> {
    /// Refuses an active goal that depends on unsatisfied goals. Each is judged by its last version; a
    /// missing one is unsatisfied.
    ///
    /// # Errors
    /// `ERR_DEPENDENCY`.
    pub(super) fn check_dependencies(&self, goal: &Grain, author: &Principal) -> Result<()> {
        if goal.grain_type() != GrainType::Goal || goal.text("goal_state") != Some("active") {
            return Ok(());
        }
        let mut left = MAX_FOLLOWED_VERSIONS;
        for needed in goal.texts("depends_on") {
            let head = match needed.parse() {
                Ok(address) => self.head_of(&address, author, &mut left)?,
                Err(_) => None,
            };
            let satisfied = match head {
                Some((sequence, state)) => is_undisputed(&state) && self.is_satisfied(sequence)?,
                None => false,
            };
            if !satisfied {
                let message = format!("it depends on {needed}, which is not satisfied");
                return Err(Error::new(ErrorKind::Dependency, message));
            }
        }
        Ok(())
    }

    /// What replacing `old` by `new` changes of a goal's state; nothing where that stays.
    pub(super) fn transition<'g>(
        &self,
        old: &ContentAddress,
        row: &GrainRow,
        new: &'g Grain,
        proofs: &Proofs,
        author: &Principal,
    ) -> Result<Option<GoalTransition<'g>>> {
        let maker = Maker {
            actor: author.actor.as_deref(),
            signer: proofs.signer.as_deref(),
            is_host: author.actor.is_none() && author.is_store_operator(),
            now: self.now,
        };
        let found = with_fields(&row.blob, |stored| {
            let transition = GoalTransition::of(stored, new);
            let mut added = implicit_supersession::parents(new);
            added.retain(|parent| parent != old && !names_parent(stored, &parent.to_string()));
            Ok(transition.map(|transition| (transition.by(stored, &maker), added)))
        })?;
        let Some((transition, added)) = found else { return Ok(None) };
        Ok(Some(transition.keeping(self.bring_nothing(&added, row.sequence, author)?)))
    }

    /// Whether no policy comes to a goal with these parents, now or later: the author sees them, all they derive
    /// from is stored, and what protects them protects the goal already.
    fn bring_nothing(
        &self,
        parents: &BTreeSet<ContentAddress>,
        goal: Sequence,
        author: &Principal,
    ) -> Result<bool> {
        let known: BTreeSet<_> = self.roots(goal)?.into_iter().collect();
        let mut queue = Vec::new();
        for parent in parents {
            let Some(row) = self.visible(parent, author)? else { return Ok(false) };
            if !self.reaching(row.sequence)?.is_subset(&known) {
                return Ok(false);
            }
            queue.push(row.sequence);
        }
        let mut seen = BTreeSet::new();
        while let Some(sequence) = queue.pop() {
            if !seen.insert(sequence) {
                continue;
            }
            if seen.len() > MAX_SOURCES {
                return Ok(false);
            }
            for above in self.with_grain(sequence, |_, grain| Ok(parent_addresses(grain)))? {
                let Some(above) = self.locate(&above)? else { return Ok(false) };
                queue.push(above);
            }
        }
        Ok(true)
    }

    /// Counts the evidence for a transition: distinct grains that the caller can read and that are not
    /// contradicted or retracted, outside the goal's own chain. Stops at the largest number that a protector
    /// requires.
    pub(super) fn count_evidence(
        &self,
        old: &ContentAddress,
        transition: Option<GoalTransition<'_>>,
        gathered: &GatheredProtectors,
        author: &Principal,
    ) -> Result<u64> {
        let goals = gathered.facts.protectors.iter().filter_map(|p| p.goal.as_ref());
        let wanted = goals.map(|goal| goal.evidence_required).max().unwrap_or(0);
        let Some(GoalTransition { new, .. }) = transition.filter(|_| wanted > 0) else {
            return Ok(0);
        };
        let named: BTreeSet<ContentAddress> =
            new.texts("satisfaction_evidence").filter_map(|text| text.parse().ok()).collect();
        let mut count = 0;
        let mut known = HashMap::new();
        for address in named {
            if count >= wanted {
                break;
            }
            let Some(row) = self.visible(&address, author)? else { continue };
            if !is_undisputed(&row.state) {
                continue;
            }
            // A chain that is too long to follow counts as one of the goal's.
            if self.leads_to(row.sequence, old, &mut known)? == Some(false) {
                count += 1;
            }
        }
        Ok(count)
    }

    /// Returns the last version of a grain that the caller can see.
    fn head_of(
        &self,
        address: &ContentAddress,
        author: &Principal,
        left: &mut usize,
    ) -> Result<Option<(Sequence, GrainState)>> {
        let Some(row) = self.visible(address, author)? else { return Ok(None) };
        let (mut sequence, mut state) = (row.sequence, row.state);
        while let Some(next) = state.superseded_by {
            let Some(rest) = left.checked_sub(1) else { return Ok(None) };
            *left = rest;
            let Some(later) = self.locate(&next)? else { return Ok(None) };
            (sequence, state) = (later, self.state(later)?);
        }
        Ok(Some((sequence, state)))
    }

    fn is_satisfied(&self, sequence: Sequence) -> Result<bool> {
        self.with_grain(sequence, |_, grain| {
            let is_goal = grain.grain_type() == GrainType::Goal;
            Ok(is_goal && grain.text("goal_state") == Some("satisfied"))
        })
    }

    /// Returns `true` if a grain is `head` or was replaced by it, in any number of steps; `None` if there are
    /// too many steps. `known` caches the answers for the versions on the way.
    pub(super) fn leads_to(
        &self,
        from: Sequence,
        head: &ContentAddress,
        known: &mut HashMap<Sequence, Option<bool>>,
    ) -> Result<Option<bool>> {
        let head = self.locate(head)?;
        let mut passed = Vec::new();
        let mut at = Some(from);
        let leads = loop {
            let Some(sequence) = at else { break Some(false) };
            if head == Some(sequence) {
                break Some(true);
            }
            if let Some(leads) = known.get(&sequence) {
                break *leads;
            }
            if known.len().saturating_add(passed.len()) > MAX_FOLLOWED_VERSIONS {
                break None;
            }
            passed.push(sequence);
            at = match self.state(sequence)?.superseded_by {
                Some(next) => self.locate(&next)?,
                None => None,
            };
        };
        known.extend(passed.into_iter().map(|sequence| (sequence, leads)));
        Ok(leads)
    }
}

/// Returns `true` if a grain is neither contradicted nor retracted.
fn is_undisputed(state: &GrainState) -> bool {
    !state.contradicted && state.verification_status != VerificationStatus::Retracted
}
