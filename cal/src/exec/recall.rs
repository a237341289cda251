//! RECALL (CAL 8.1): resolves the inputs, runs one scan of the memory, then the rest of the pipeline.

use std::ops::ControlFlow;

use super::collector::{HitCollector, ScanOutcome, Window, apply_step};
use super::rows::RowContext;
use super::{Executor, count};
use crate::check::plan::{PipelineOutput, RecallPlan};
use crate::error::Result;
use crate::limits;
use crate::memory::{Candidate, Hit};
use crate::query::Query;
use crate::response::{Answer, RecallAnswer, RecallExplanation};

/// The grains of a RECALL.
pub(super) struct RecallOutcome {
    pub(super) hits: Vec<Hit>,
    /// Bytes that the grains take in memory.
    pub(super) bytes: usize,
    /// The number of all matches, if known.
    pub(super) total: Option<u64>,
    /// The access plan and its cost, WITH explanation.
    pub(super) explanation: Option<RecallExplanation>,
    /// The query that ran last; `None` if it cannot match.
    pub(super) query: Option<Query>,
}

impl Executor<'_> {
    /// Runs a RECALL statement.
    pub(super) fn recall(&mut self, plan: &RecallPlan) -> Result<Answer> {
        match plan.output {
            PipelineOutput::Grains => self.grains(plan),
            PipelineOutput::Count => self.count(plan),
            PipelineOutput::Values(extractor) => self.values(plan, extractor),
            PipelineOutput::Groups(field) => self.groups(plan, field),
        }
    }

    fn grains(&mut self, plan: &RecallPlan) -> Result<Answer> {
        let mut found = self.find(plan)?;
        if let (None, Some(query)) = (found.total, &found.query)
            && (plan.show.total || self.options.totals)
            && plan.show.dedup.is_none()
        {
            found.total = self.total(query)?;
        }
        self.count_returned(found.hits.len());
        let whole = plan.select.is_none();
        let format = self.options.as_format.filter(|_| whole).or(plan.format);
        let formatted = match format {
            Some(format) => {
                let project = plan.project.as_ref();
                let text =
                    self.render(&found.hits, format, &plan.show, project, plan.requested_grains())?;
                self.usage.tokens_used += count(self.options.counter.count(&text));
                Some(text)
            }
            None => self.selected(plan, &found.hits)?,
        };
        let summarized = self.summarize(&found.hits, &plan.show, plan.project.as_ref())?;
        let asked =
            RowContext { query: found.query.as_ref(), explanation: found.explanation.as_ref() };
        let projected = match &plan.project {
            Some(project) if formatted.is_none() => {
                self.project_rows(&found.hits, project, &plan.show)?
            }
            _ => Vec::new(),
        };
        let mut results = self.rows(found.hits, plan, &asked, !projected.is_empty())?;
        for (row, projected) in results.iter_mut().zip(projected) {
            row.selected = Some(projected);
        }
        Ok(Answer::Grains(RecallAnswer {
            results,
            total: found.total,
            next_cursor: None,
            formatted,
            summarized,
            explanation: found.explanation,
        }))
    }

    /// Counts all matches, up to the limit above which counting would cost more than the answer.
    fn total(&mut self, query: &Query) -> Result<Option<u64>> {
        let mut matches = 0_u64;
        let mut visit = |_: Candidate<'_>| {
            matches += 1;
            match matches < limits::MAX_COUNTED_MATCHES {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        };
        let recalled = self.memory.recall(query, &self.cancel, &mut visit)?;
        self.count_scanned(recalled.scanned);
        Ok(recalled.total.filter(|_| matches < limits::MAX_COUNTED_MATCHES))
    }

    /// Finds the grains of a RECALL, regardless of the end of its pipeline.
    pub(super) fn find(&mut self, plan: &RecallPlan) -> Result<RecallOutcome> {
        self.read_with_fallback(plan, |run, query| {
            let found = run.find_with(plan, query)?;
            let any = found.total != Some(0);
            Ok((found, any))
        })
    }

    /// Finds the grains by a query whose inputs are resolved.
    pub(super) fn find_with(
        &mut self,
        plan: &RecallPlan,
        mut query: Query,
    ) -> Result<RecallOutcome> {
        let explained = match plan.show.explanation {
            true => Some(self.access_plan(&query)?),
            false => None,
        };
        let before = self.usage.grains_scanned;
        let mut kept = ScanOutcome { hits: Vec::new(), bytes: 0, total: Some(0) };
        let possible = !query.is_impossible();
        if possible {
            let (window, rest) = Window::split(plan.steps_after(&query));
            let limit = query.limit;
            query.limit = window.scan_limit();
            kept = self.walk(&query, &window)?;
            query.limit = limit;
            for step in rest {
                apply_step(*step, &mut kept.hits);
            }
        }
        let scanned = self.usage.grains_scanned.saturating_sub(before);
        let explanation = explained.map(|plan_of| RecallExplanation {
            desugared: plan.desugared.clone().unwrap_or_default(),
            plan: plan_of,
            scanned,
        });
        let query = possible.then_some(query);
        Ok(RecallOutcome {
            hits: kept.hits,
            bytes: kept.bytes,
            total: kept.total,
            explanation,
            query,
        })
    }

    fn walk(&mut self, query: &Query, window: &Window) -> Result<ScanOutcome> {
        let mut collected = HitCollector::new(window, self.free_bytes(), self.max_held_bytes);
        let mut failed = None;
        let recalled = self.memory.recall(query, &self.cancel, &mut |candidate| {
            collected.take(&candidate).unwrap_or_else(|error| {
                failed = Some(error);
                ControlFlow::Break(())
            })
        })?;
        self.count_scanned(recalled.scanned);
        if let Some(error) = failed {
            return Err(error);
        }
        let mut kept = collected.finish()?;
        self.reserve_bytes(kept.bytes)?;
        if window.dedup.is_none() {
            kept.total = recalled.total;
        }
        Ok(kept)
    }
}
