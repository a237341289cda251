//! The sources of an ASSEMBLE: expensive ones run in parallel, with the result of running all one after the
//! other.
//!
//! Each source runs in a `SourceRunner`, and the outcomes are merged in the order of FROM. A source can
//! depend on those before it in one way only: by the bytes of `limits::ROW_BYTES` that they left free. So a
//! source that runs ahead of its turn gets an equal share of the bytes free when the first one starts. If
//! that is not enough for it (E030), or is more than is left when its turn comes, it runs again in its turn
//! with what is left. It follows:
//!
//! - grains, counts, errors and events are those of a sequential run, whatever the schedule and the number of
//!   threads: a statement that fits is never refused, and one that does not fit is refused at the same
//!   source;
//! - the sources run ahead hold at most `MAX_BUFFERED_BYTES` together, and so do the merged ones with the source in
//!   turn. So a statement holds at most twice `MAX_BUFFERED_BYTES`, and at most `MAX_BUFFERED_BYTES` if nothing runs ahead. The
//!   values that dedup compares are bounded in the same way, in addition.

use std::panic::resume_unwind;

use super::Executor;
use super::collector::Window;
use super::parallel::{SourceScheduler, Turn};
use super::recall::RecallOutcome;
use super::rows::RowContext;
use super::source_runner::{ResolvedSource, SourceOutcome};
use crate::cancel::StopReason;
use crate::check::plan::{AssemblePlan, DeferredValues, RecallPlan, SourceInput, SourcePlan};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::response::{ResultRow, SourceAnswer};

impl Executor<'_> {
    /// Runs the sources. A failed source is reported, and its share of the budget goes to the others.
    ///
    /// # Errors
    /// E075 when time is up, E082 when the host cancelled, E076 when every source failed.
    ///
    /// # Panics
    /// If a source panics, in its turn.
    pub(super) fn resolve(&mut self, plan: &AssemblePlan) -> Result<Vec<ResolvedSource>> {
        for index in 0..plan.sources.len() {
            self.send_source_started(plan, index)?;
        }
        let resolved = self.resolve_all(plan)?;
        if resolved.iter().all(|source| source.answer.error.is_some()) {
            let first = resolved.iter().find_map(|source| source.answer.error.as_ref());
            let cause = first.map_or_else(String::new, ToString::to_string);
            let message = format!("every source failed, the first with {cause}");
            let error = Error::new(ErrorKind::AllSourcesFailed, message);
            let helps = |cause: &&Error| cause.suggestion() != ErrorKind::Memory.advice();
            return Err(match first.filter(helps) {
                Some(cause) => {
                    let advice = ErrorKind::AllSourcesFailed.advice();
                    error.suggest(format!("{advice}; the first: {}", cause.suggestion()))
                }
                None => error,
            });
        }
        Ok(resolved)
    }

    /// Runs the sources in order; if several are expensive, these run ahead on other threads.
    fn resolve_all(&mut self, plan: &AssemblePlan) -> Result<Vec<ResolvedSource>> {
        let takes_long: Vec<bool> =
            plan.sources.iter().map(|source| self.is_expensive(source)).collect();
        let long = takes_long.iter().filter(|takes_long| **takes_long).count();
        let working = if long < 2 { 1 } else { self.options.threads().min(long) };
        let share = self.free_bytes().checked_div(long).unwrap_or_default();
        let runs_ahead = takes_long.into_iter().map(|takes_long| working > 1 && takes_long);
        let part = self.source_runner(self.cancel.for_part());
        let ahead = SourceScheduler::new(part, &plan.sources, share, runs_ahead);
        ahead.with_helpers(working.saturating_sub(1), || {
            let mut resolved = Vec::with_capacity(plan.sources.len());
            for (index, source) in plan.sources.iter().enumerate() {
                let found = self.take_turn(&ahead, index, source, share);
                let found = self.report_failure(found)?;
                self.send_source_outcome(plan, index, &found)?;
                resolved.push(found);
            }
            Ok(resolved)
        })
    }

    /// Returns `true` if a source is expensive enough for a thread of its own, and may run out of order. This
    /// is judged by its plan and its subqueries, which costs next to nothing.
    fn is_expensive(&self, source: &SourcePlan) -> bool {
        let SourceInput::Recall(plan) = &source.from else { return false };
        let recalls = with_subqueries(plan);
        recalls.iter().any(|plan| searches_or_sorts(plan))
            && !recalls.iter().any(|plan| self.asks_outside(plan))
    }

    /// Returns `true` if a RECALL, or its fallback search, waits for an external service.
    fn asks_outside(&self, plan: &RecallPlan) -> bool {
        let otherwise =
            plan.fallback_search.iter().map(|text| plan.query.clone().searching_for_subject(text));
        let mut asked = otherwise.chain([plan.query.clone()]);
        asked.any(|query| self.memory.uses_external_service(&query))
    }

    /// Returns the outcome of a source in its turn. While another thread runs it, this one runs other
    /// sources.
    fn take_turn(
        &mut self,
        ahead: &SourceScheduler<'_>,
        index: usize,
        source: &SourcePlan,
        share: usize,
    ) -> Result<ResolvedSource> {
        loop {
            match ahead.turn(index) {
                Turn::RunNow => return self.run_in_turn(source),
                Turn::RunOther(other) => ahead.run(other),
                Turn::Finished(Err(panic)) => resume_unwind(panic),
                Turn::Finished(Ok(part)) if share <= self.free_bytes() && !must_rerun(&part) => {
                    return self.merge_source(part);
                }
                Turn::Finished(Ok(_)) => {
                    self.check_stop()?;
                    return self.run_in_turn(source);
                }
            }
        }
    }

    /// Reports the error of a failed source; a stop ends the whole assembly, even if the deadline that
    /// stopped the source was extended since.
    fn report_failure(&self, found: Result<ResolvedSource>) -> Result<ResolvedSource> {
        self.check_stop()?;
        match found {
            Err(error) if let Some(stop) = stop_reason(&error) => Err((self.stop_error)(stop)),
            Err(error) => {
                let error = Some(self.source.locate(error));
                let answer = Box::new(SourceAnswer { error, ..SourceAnswer::default() });
                Ok(ResolvedSource { hits: Vec::new(), answer })
            }
            found => found,
        }
    }

    fn run_in_turn(&mut self, source: &SourcePlan) -> Result<ResolvedSource> {
        let part = self.source_runner(self.cancel.clone()).run(
            source,
            self.held_bytes,
            self.max_held_bytes,
        );
        self.merge_source(part)
    }

    /// Runs a source.
    pub(super) fn run_source(&mut self, source: &SourcePlan) -> Result<ResolvedSource> {
        let mut answer = Box::<SourceAnswer>::default();
        let hits = match &source.from {
            SourceInput::Let(at, _) => self.let_grains(*at)?,
            SourceInput::Recall(plan) => {
                let found = self.find(plan)?;
                if plan.show.assemble_adds_metadata {
                    answer.grains = self.source_rows(&found, plan)?;
                }
                let hits = found.hits;
                if let Some(format) = plan.format {
                    let text = self.render(
                        &hits,
                        format,
                        &plan.show,
                        plan.project.as_ref(),
                        plan.requested_grains(),
                    )?;
                    answer.formatted = Some(text);
                }
                answer.summarized = self.summarize(&hits, &plan.show, plan.project.as_ref())?;
                hits
            }
        };
        Ok(ResolvedSource { hits, answer })
    }

    /// Returns the rows that options of the assembly ask for. The grains themselves go into the text.
    fn source_rows(&self, found: &RecallOutcome, plan: &RecallPlan) -> Result<Vec<ResultRow>> {
        let asked =
            RowContext { query: found.query.as_ref(), explanation: found.explanation.as_ref() };
        let mut rows = self.rows(found.hits.clone(), plan, &asked, plan.project.is_some())?;
        rows.iter_mut().for_each(|row| row.beside_alone = true);
        Ok(rows)
    }
}

/// Returns `true` if a source that ran ahead may have failed only because of its share of bytes or the moment
/// it ran.
fn must_rerun(part: &SourceOutcome) -> bool {
    part.found.as_ref().is_err_and(|error| {
        error.kind() == ErrorKind::BudgetExceeded || stop_reason(error).is_some()
    })
}

/// Returns the reason a failed source was stopped, if it was.
fn stop_reason(error: &Error) -> Option<StopReason> {
    match error.kind() {
        ErrorKind::Timeout | ErrorKind::AssembleTimeout => Some(StopReason::Timeout),
        ErrorKind::Cancelled => Some(StopReason::Cancelled),
        _ => None,
    }
}

/// Returns a RECALL and its subqueries.
fn with_subqueries(plan: &RecallPlan) -> Vec<&RecallPlan> {
    let inner = plan.feeds.iter().filter_map(|feed| match &feed.from {
        DeferredValues::Recall(inner, _) => Some(with_subqueries(inner)),
        DeferredValues::Let(_) => None,
    });
    inner.flatten().chain([plan]).collect()
}

/// Returns `true` if a RECALL searches, or sorts without a subject, a session or addresses to narrow it down.
fn searches_or_sorts(plan: &RecallPlan) -> bool {
    let query = &plan.query;
    let is_narrow = plan.thread.is_some()
        || query.address().is_some()
        || query.addresses().is_some()
        || query.subject_eq().is_some()
        || query.session_eq().is_some();
    let sorts = || Window::split(plan.steps_after(query)).0.key.is_some();
    query.search().is_some() || (!is_narrow && sorts())
}
