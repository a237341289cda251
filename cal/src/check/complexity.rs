//! The cost and properties of a plan before it runs: complexity points, operations and grain types. It
//! reads the plan only, so a statement costs the same in every store.

use grainstore_format::GrainType;
use grainstore_sml::Budget;

use super::plan::{
    DeferredValues, HistoryPlan, LetPlan, PipelineOutput, PlanWithLets, RecallPlan, SourceInput,
    StatementPlan,
};
use crate::limits;
use crate::operation::CalOperation;

/// Points of a RECALL.
const RECALL_POINTS: u64 = 10;
/// Points of a text or vector search.
const SEARCH_POINTS: u64 = 20;
/// Points of following a thread from a message.
const THREAD_POINTS: u64 = 20;
/// Points of a condition.
const CONDITION_POINTS: u64 = 1;
/// Requested grains per point.
const GRAINS_PER_POINT: u64 = 10;
/// Points of an option that compares grains with each other, or explains each.
const OPTION_POINTS: u64 = 20;
/// Points of an ASSEMBLE in addition to its sources.
const ASSEMBLE_POINTS: u64 = 10;
/// Budget tokens per point.
const TOKENS_PER_POINT: u64 = 100;
/// Points of a HISTORY.
const HISTORY_POINTS: u64 = 20;
/// Points of a statement that reads at most one grain.
const SINGLE_GRAIN_POINTS: u64 = 1;
/// Points of a statement that writes.
const WRITE_POINTS: u64 = 20;

/// Cost and properties of a plan.
#[derive(Debug, Default)]
pub(crate) struct StatementCost {
    pub(crate) operations: Vec<CalOperation>,
    pub(crate) reads: Vec<GrainType>,
    pub(crate) writes: Option<GrainType>,
    pub(crate) points: u64,
    pub(crate) max_grains: Option<u64>,
    /// The recalls without shortcuts, if the checker made them.
    pub(crate) desugared: Vec<String>,
}

impl StatementCost {
    pub(crate) fn of(plan: &PlanWithLets) -> Self {
        let mut weighed = Self { max_grains: Some(0), ..Self::default() };
        weighed.request(plan);
        weighed
    }

    fn request(&mut self, plan: &PlanWithLets) {
        self.lets(&plan.lets);
        self.statement(&plan.plan);
    }

    fn lets(&mut self, lets: &[LetPlan]) {
        for binding in lets {
            self.recall(&binding.recall);
        }
    }

    fn statement(&mut self, plan: &StatementPlan) {
        match plan {
            StatementPlan::Recall(recall) => {
                let counts = recall.output == PipelineOutput::Count;
                self.add_operation(
                    if counts { CalOperation::Count } else { CalOperation::Recall },
                    0,
                );
                self.recall(recall);
            }
            StatementPlan::Assemble(assemble) => {
                let points = match assemble.budget {
                    Budget::Tokens(tokens) => points(tokens) / TOKENS_PER_POINT,
                    Budget::Grains(grains) => points(grains) / GRAINS_PER_POINT,
                };
                self.add_operation(CalOperation::Assemble, ASSEMBLE_POINTS.saturating_add(points));
                for source in &assemble.sources {
                    if let SourceInput::Recall(recall) = &source.from {
                        self.recall(recall);
                    }
                }
            }
            StatementPlan::Set(set) => {
                self.add_operation(CalOperation::Recall, SINGLE_GRAIN_POINTS);
                self.request(&set.left);
                self.request(&set.right);
            }
            StatementPlan::Exists(_) => {
                self.add_operation(CalOperation::Exists, SINGLE_GRAIN_POINTS);
            }
            StatementPlan::History(
                HistoryPlan::ByHash(_) | HistoryPlan::Diff(..) | HistoryPlan::Triple(_),
            ) => {
                self.add_operation(CalOperation::History, HISTORY_POINTS);
            }
            // The explained statement does not run.
            StatementPlan::Explain(_) => {
                self.add_operation(CalOperation::Explain, SINGLE_GRAIN_POINTS);
            }
            StatementPlan::Describe(_) => {
                self.add_operation(CalOperation::Describe, SINGLE_GRAIN_POINTS);
            }
            StatementPlan::Batch(entries) => {
                self.add_operation(CalOperation::Batch, SINGLE_GRAIN_POINTS);
                entries.iter().filter_map(|(_, entry)| entry.as_ref().ok()).for_each(|entry| {
                    self.statement(entry);
                });
            }
            StatementPlan::Coalesce(branches) => {
                self.add_operation(CalOperation::Coalesce, SINGLE_GRAIN_POINTS);
                branches.iter().for_each(|branch| self.recall(branch));
            }
            StatementPlan::Add(add) => {
                self.add_operation(CalOperation::Add, WRITE_POINTS);
                self.writes = Some(add.grain_type);
            }
            StatementPlan::Supersede(_) => {
                self.add_operation(CalOperation::Supersede, WRITE_POINTS);
                self.writes = Some(GrainType::Belief);
            }
            StatementPlan::Revert(_) => {
                self.add_operation(CalOperation::Revert, WRITE_POINTS);
                self.writes = Some(GrainType::Belief);
            }
            StatementPlan::Define(_) => {
                self.add_operation(CalOperation::DefineTemplate, WRITE_POINTS);
            }
        }
    }

    fn add_operation(&mut self, operation: CalOperation, points: u64) {
        if !self.operations.contains(&operation) {
            self.operations.push(operation);
        }
        self.add(points);
    }

    fn add(&mut self, points: u64) {
        self.points = self.points.saturating_add(points);
    }

    fn recall(&mut self, plan: &RecallPlan) {
        if let Some(grain_type) = plan.grain_type
            && !self.reads.contains(&grain_type)
        {
            self.reads.push(grain_type);
        }
        self.desugared.extend(plan.desugared.clone());
        let every = plan.output != PipelineOutput::Grains;
        let asked = if every { u64::MAX } else { plan.requested_grains() };
        self.max_grains = self.max_grains.filter(|_| asked != u64::MAX).map(|most| most.max(asked));
        self.add(RECALL_POINTS);
        self.add(asked.min(limits::MAX_LIMIT) / GRAINS_PER_POINT);
        self.add(CONDITION_POINTS.saturating_mul(points(plan.query.predicates().len())));
        let show = &plan.show;
        let extras = [
            (SEARCH_POINTS, plan.query.search().is_some() || plan.fallback_search.is_some()),
            (THREAD_POINTS, plan.thread.is_some()),
            (OPTION_POINTS, show.diversity.is_some()),
            (OPTION_POINTS, show.dedup.is_some()),
            (OPTION_POINTS, show.contradictions),
            (OPTION_POINTS, show.explanation),
        ];
        for (points, _) in extras.into_iter().filter(|(_, there)| *there) {
            self.add(points);
        }
        for feed in &plan.feeds {
            if let DeferredValues::Recall(inner, _) = &feed.from {
                self.recall(inner);
            }
        }
    }
}

fn points(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
