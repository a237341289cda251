//! REVERT (CAL 8.10): a new grain with the content of an earlier version supersedes the head of the chain.

use grainstore_format::Map;

use super::Executor;
use super::evolve::successor_fields;
use crate::check::plan::RevertPlan;
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::memory::Hit;
use crate::response::Answer;
use crate::write_quotas::WriteKind;

/// The payload field that restricts who may replace a grain (OMS 23).
const POLICY: &str = "invalidation_policy";

impl Executor<'_> {
    /// Runs a REVERT statement. The target need not be current: the content of the version before it is
    /// restored.
    pub(super) fn revert(&self, plan: &RevertPlan) -> Result<Answer> {
        let (before, head) = self.revert_versions(plan)?;
        let superseded = head.address;
        let content_address = self.with_quota(WriteKind::Revert, |run| {
            let author = run.memory.scope().actor.as_ref();
            let mut fields = successor_fields(before, superseded, &plan.reason, author);
            keep_invalidation_policy(&mut fields, &head);
            let grain = run.new_grain(fields)?;
            Ok(run.memory.revert(&superseded, grain, &plan.reason)?)
        })?;
        Ok(Answer::Superseded { content_address, superseded })
    }

    /// Returns the version whose content a REVERT restores, and the head of the chain that it supersedes.
    pub(super) fn revert_versions(&self, plan: &RevertPlan) -> Result<(Hit, Hit)> {
        let target = self.resolve_target(&plan.target)?;
        let Some(before) = self.predecessor(&target)? else {
            let message = format!("{} is the first version, nothing came before", plan.target.node);
            return Err(Error::new(ErrorKind::NothingBefore, message).at(plan.target.span));
        };
        Ok((before, self.head(target)?))
    }

    /// Returns the version that a grain superseded; of several the newest, ties by the smallest address.
    fn predecessor(&self, target: &Hit) -> Result<Option<Hit>> {
        let mut found: Option<Hit> = None;
        let parents = target.grain.texts("derived_from").filter_map(|text| text.parse().ok());
        for address in parents {
            let parent: Option<Hit> = self.memory.get(&address)?;
            let parent = parent.filter(|hit| hit.state.superseded_by == Some(target.address));
            let rank = |hit: &Hit| (hit.grain.created_at(), std::cmp::Reverse(hit.address));
            if let Some(parent) = parent
                && found.as_ref().is_none_or(|best| rank(&parent) > rank(best))
            {
                found = Some(parent);
            }
        }
        Ok(found)
    }

    /// Returns the newest version of the chain of a grain.
    fn head(&self, target: Hit) -> Result<Hit> {
        let newest = self.memory.history(&target.address, 1)?;
        Ok(newest.into_iter().next().unwrap_or(target))
    }
}

/// Copies the invalidation policy of the head to the new version, so that a REVERT restores content but never
/// lifts a protection added since (our own rule).
pub(super) fn keep_invalidation_policy(fields: &mut Map, head: &Hit) {
    if let Some(policy) = head.grain.get(POLICY) {
        fields.insert(POLICY.to_owned(), policy.clone());
    }
}
