//! Pipeline ends that answer no grains: COUNT, the extractors and GROUP BY.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use grainstore_format::Value;
use grainstore_sml::Rows;

use super::collector::{Window, memory_exceeded};
use super::inputs::InValues;
use super::value::HitRef;
use super::{Executor, count, size};
use crate::ast::Extractor;
use crate::check::plan::{PipelineStep, RecallPlan};
use crate::codes;
use crate::error::Result;
use crate::fields::FieldRef;
use crate::limits;
use crate::memory::CountStats;
use crate::query::Query;
use crate::response::{Answer, GroupCount};

/// Text of the warning about omitted values.
const UNREVIEWED_OMITTED: &str = "the values of reasonings that wait for the review they ask for are left out; \
                        RECALL shows these with the flag requires_human_review";

/// A visitor of the grains of a pipeline, one by one; `Break` ends it.
type RowVisitor<'e> = dyn FnMut(HitRef<'_>) -> Result<ControlFlow<()>> + 'e;

impl Executor<'_> {
    /// Runs COUNT: the number of matches, cut by the limits and offsets before it. Sorting does not change
    /// it.
    pub(super) fn count(&mut self, plan: &RecallPlan) -> Result<Answer> {
        if plan.show.dedup.is_some() {
            let found = self.find(plan)?;
            self.release_bytes(found.bytes);
            return self.number(plan, count(found.hits.len()));
        }
        let counted = self.read_with_fallback(plan, |run, query| {
            let counted = if query.is_impossible() {
                CountStats::default()
            } else {
                run.memory.count(&query, &run.cancel)?
            };
            run.count_scanned(counted.scanned);
            Ok((counted, counted.matches > 0))
        })?;
        let cut = |left: u64, step: &PipelineStep| match step {
            PipelineStep::Skip(skipped) => left.saturating_sub(*skipped),
            PipelineStep::Take(taken) => left.min(*taken),
            PipelineStep::Sort(_) | PipelineStep::Dedup(_) => left,
        };
        self.number(plan, plan.steps.iter().fold(counted.matches, cut))
    }

    fn number(&mut self, plan: &RecallPlan, count: u64) -> Result<Answer> {
        let formatted = self.written(plan, || Rows::number("count", count))?;
        Ok(Answer::Count { count, formatted })
    }

    /// Runs an extractor: distinct values in the order of the result.
    pub(super) fn values(&mut self, plan: &RecallPlan, extractor: Extractor) -> Result<Answer> {
        let (values, complete) = self.extract(plan, extractor, limits::MAX_ANSWER_VALUES)?;
        let total = complete.then_some(count(values.len()));
        let formatted = self.list(plan, extractor, &values)?;
        Ok(Answer::Values { values, total, formatted })
    }

    /// Returns the texts of an extractor, for an IN. Objects that are maps equal no text, so they are
    /// dropped.
    pub(super) fn texts(&mut self, plan: &RecallPlan, extractor: Extractor) -> Result<InValues> {
        let (values, complete) = self.extract(plan, extractor, limits::MAX_IN_VALUES)?;
        let texts = values.iter().filter_map(|value| value.as_str().map(str::to_owned));
        Ok(InValues { values: texts.collect(), complete })
    }

    /// Returns the first `most` distinct values, and `true` if there are no others.
    fn extract(
        &mut self,
        plan: &RecallPlan,
        extractor: Extractor,
        most: usize,
    ) -> Result<(Vec<Value>, bool)> {
        let (mut values, mut seen, mut bytes) = (Vec::new(), BTreeSet::new(), 0_usize);
        let (mut complete, mut unreviewed) = (true, false);
        let most_bytes = self.free_bytes();
        self.for_each_row(plan, true, &mut |looked| {
            let Some(value) = looked.extract(extractor) else {
                return Ok(ControlFlow::Continue(()));
            };
            // The flag of a pending review cannot stand beside a plain value, so the value is omitted; an
            // address reveals no content.
            if extractor != Extractor::Hashes && looked.awaits_review() {
                unreviewed = true;
                return Ok(ControlFlow::Continue(()));
            }
            let key = distinct_key(&value);
            let size = key.1.len().saturating_add(size::value_bytes(&value));
            if !seen.insert(key) {
                return Ok(ControlFlow::Continue(()));
            }
            if values.len() == most {
                complete = false;
                return Ok(ControlFlow::Break(()));
            }
            bytes = bytes.saturating_add(size);
            if bytes > most_bytes {
                return Err(memory_exceeded());
            }
            values.push(value);
            Ok(ControlFlow::Continue(()))
        })?;
        self.reserve_bytes(bytes)?;
        if unreviewed {
            self.warn(codes::UNREVIEWED_VALUES, UNREVIEWED_OMITTED);
        }
        Ok((values, complete))
    }

    /// Runs GROUP BY: the number of grains of each value, largest group first, ties by value.
    pub(super) fn groups(&mut self, plan: &RecallPlan, field: FieldRef) -> Result<Answer> {
        let mut groups: BTreeMap<(bool, String), GroupCount> = BTreeMap::new();
        let mut bytes = 0_usize;
        let most_bytes = self.free_bytes();
        self.for_each_row(plan, false, &mut |looked| {
            let Some(value) = looked.field(field) else { return Ok(ControlFlow::Continue(())) };
            let key = distinct_key(&value);
            if let Some(group) = groups.get_mut(&key) {
                group.count += 1;
                group.requires_human_review &= looked.awaits_review();
                return Ok(ControlFlow::Continue(()));
            }
            bytes = bytes.saturating_add(key.1.len()).saturating_add(size::value_bytes(&value));
            if groups.len() == limits::MAX_BUFFERED_GRAINS || bytes > most_bytes {
                return Err(memory_exceeded());
            }
            let requires_human_review = looked.awaits_review();
            groups.insert(key, GroupCount { key: value, count: 1, requires_human_review });
            Ok(ControlFlow::Continue(()))
        })?;
        self.reserve_bytes(bytes)?;
        let total = count(groups.len());
        let mut groups: Vec<GroupCount> = groups.into_values().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.count));
        groups.truncate(limits::MAX_ANSWER_VALUES);
        let formatted = self.tally(plan, field, &groups)?;
        Ok(Answer::Groups { groups, total, formatted })
    }

    /// Passes the grains of a pipeline to `each`. They are collected only if a step needs all of them, or if
    /// `ordered` asks for the order of the result and the pipeline sorts.
    fn for_each_row(
        &mut self,
        plan: &RecallPlan,
        ordered: bool,
        each: &mut RowVisitor<'_>,
    ) -> Result<()> {
        self.read_with_fallback(plan, |run, query| {
            let steps = plan.steps_after(&query);
            let (window, rest) = Window::split(steps);
            let sorts_only =
                steps.iter().all(|step| matches!(step, PipelineStep::Sort(_))) && !ordered;
            let streams = rest.is_empty() && window.key.is_none() && window.dedup.is_none();
            if streams || sorts_only {
                return Ok(((), run.stream_rows(query, &window, each)?));
            }
            let found = run.find_with(plan, query)?;
            run.release_bytes(found.bytes);
            for hit in &found.hits {
                if each(hit.into())?.is_break() {
                    break;
                }
            }
            Ok(((), found.total != Some(0)))
        })
    }

    /// Passes the grains within a window to `each`, in the order of the memory; the window must have no
    /// dedup, and its sort is ignored. Returns `true` if any grain matched.
    fn stream_rows(
        &mut self,
        mut query: Query,
        window: &Window,
        each: &mut RowVisitor<'_>,
    ) -> Result<bool> {
        if query.is_impossible() || window.take == Some(0) {
            return Ok(true);
        }
        query.limit = window.needed();
        let (mut met, mut failed) = (0_usize, None);
        let recalled = self.memory.recall(&query, &self.cancel, &mut |candidate| {
            met += 1;
            if met <= window.skip {
                return ControlFlow::Continue(());
            }
            let flow = each((&candidate).into());
            let flow = flow.unwrap_or_else(|error| {
                failed = Some(error);
                ControlFlow::Break(())
            });
            let full = window.needed().is_some_and(|end| met >= end);
            if full { ControlFlow::Break(()) } else { flow }
        })?;
        self.count_scanned(recalled.scanned);
        failed.map_or(Ok(met > 0), Err)
    }
}

/// Returns a key that distinguishes and sorts values: texts first, then other values by their JSON.
fn distinct_key(value: &Value) -> (bool, String) {
    match value {
        Value::Str(text) => (false, text.clone()),
        other => (true, serde_json::to_string(other).unwrap_or_default()),
    }
}
