//! REVERT: what was said before, said again by a new grain, which succeeds the head of the chain.

use grainstore_format::ContentAddress;

use super::Run;
use super::evolve::successor;
use crate::check::plan::RevertPlan;
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::memory::Hit;
use crate::response::Answer;
use crate::writes::Write;

impl Run<'_> {
    /// Runs a REVERT statement. The target need not be current (spec section 5): whichever version it
    /// is, the grain before it speaks again.
    pub(super) fn revert(&self, plan: &RevertPlan) -> Result<Answer> {
        let target = self.target(&plan.target)?;
        let Some(before) = self.before(&target)? else {
            let message = format!("{} is the first version, nothing came before", plan.target.node);
            return Err(Error::new(ErrorKind::NothingBefore, message).at(plan.target.span));
        };
        let superseded = self.head(&target)?;
        let content_address = self.quota(Write::Revert, |run| {
            let author = run.memory.scope().actor.as_ref();
            let fields = successor(before, superseded, &plan.reason, author);
            let grain = run.fresh(fields)?;
            Ok(run.memory.revert(&superseded, grain, &plan.reason)?)
        })?;
        Ok(Answer::Superseded { content_address, superseded })
    }

    /// The version a grain superseded; the newest where it superseded several, then the one of the
    /// smallest address.
    fn before(&self, target: &Hit) -> Result<Option<Hit>> {
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

    /// The newest version of the chain of a grain.
    fn head(&self, target: &Hit) -> Result<ContentAddress> {
        let newest = self.memory.history(&target.address, 1)?;
        Ok(newest.first().map_or(target.address, |head| head.address))
    }
}
