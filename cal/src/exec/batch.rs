//! BATCH and COALESCE: statements made of several.

use super::Executor;
use crate::cancel::StopReason;
use crate::check::plan::{RecallPlan, StatementPlan};
use crate::error::Result;
use crate::response::{Answer, BatchSlot, BatchSlots};
use crate::span::Spanned;

impl Executor<'_> {
    /// Runs the entries of a BATCH. The error of an entry stays in its slot.
    ///
    /// # Errors
    /// E082 if the host cancelled.
    pub(super) fn batch(
        &mut self,
        entries: Vec<(Spanned<String>, Result<StatementPlan>)>,
    ) -> Result<Answer> {
        let mut slots = Vec::with_capacity(entries.len());
        for (label, plan) in entries {
            let answer = plan.and_then(|plan| self.statement(plan));
            if let Some(stop @ StopReason::Cancelled) = self.cancel.stop_reason() {
                return Err(stop.into());
            }
            slots.push((
                label.node,
                match answer {
                    Ok(answer) => BatchSlot::Answer(Box::new(answer)),
                    Err(error) => {
                        let error = self.source.locate(error.at_unless_memory(label.span));
                        BatchSlot::Failed { error }
                    }
                },
            ));
        }
        Ok(Answer::Batch { batch: BatchSlots(slots) })
    }

    /// Runs the branches of a COALESCE until one has a result; without one the answer of the last is
    /// returned.
    pub(super) fn coalesce(&mut self, branches: &[RecallPlan]) -> Result<Answer> {
        let mut last = None;
        for (at, branch) in branches.iter().enumerate() {
            let answer = self.recall(branch)?;
            let found = !answer.is_empty();
            let branch = found.then(|| super::count(at));
            last = Some(Answer::Coalesced { branch, answer: Box::new(answer) });
            if found {
                break;
            }
        }
        Ok(last.unwrap_or(Answer::Count { count: 0, formatted: None }))
    }
}
