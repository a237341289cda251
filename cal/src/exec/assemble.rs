//! ASSEMBLE (CAL 8.2): the grains of its sources, without duplicates, as one text within a budget.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use grainstore_format::{ContentAddress, GrainType};
use grainstore_sml::{
    Assembly, AssemblyOptions, AssemblySource, Budget, CancelCheck, Clock, Disclosure, Item, Level,
    SourceReport, assemble_with_progress, summarize,
};

use super::source_runner::ResolvedSource;
use super::value::{DedupKey, HitRef};
use super::{Executor, count};
use crate::ast::Format;
use crate::cancel::{CancelHandle, StopReason};
use crate::check::plan::{AssemblePlan, SourcePlan};
use crate::codes::{self, ErrorKind};
use crate::error::{Error, Result};
use crate::fields::FieldRef;
use crate::memory::Hit;
use crate::response::{Answer, FormattedContext, SourceAnswer, SourceAnswers};

/// Text of the warning about a format chosen by auto-TOON.
const TOON_CHOSEN: &str =
    "the estimate is above 85 % of the budget, so the format is toon; write FORMAT to choose one";

impl Executor<'_> {
    /// Runs an ASSEMBLE statement.
    pub(super) fn assemble(&mut self, plan: AssemblePlan) -> Result<Answer> {
        self.send_started(&plan)?;
        let mut resolved = self.resolve(&plan)?;
        let before = count_grains(&resolved);
        remove_duplicates(&mut resolved, &plan.priority, plan.show.dedup);
        self.send_dedup(before, count_grains(&resolved))?;
        let (cancel, counter) = (self.cancel.clone(), self.options.counter);
        let stops = || cancel.stop_reason().is_some();
        let watch = CancelCheck::from_fn(&stops);
        let stopped = self.stop_error;
        let refused = |error: grainstore_sml::Error| text_error(&error, &cancel, stopped);
        let mut items = Vec::with_capacity(resolved.len());
        let clock = self.clock(plan.show.iso_timestamps);
        for (source, of) in resolved.iter().zip(&plan.sources) {
            items.push(self.items(&source.hits, of.from.project(), &clock)?);
        }
        if plan.show.summarize {
            add_summaries(&mut resolved, &items, &clock, watch).map_err(refused)?;
        }
        let sources: Vec<AssemblySource<'_>> = (plan.sources.iter().zip(&resolved).zip(&items))
            .map(|((source, resolved), items)| AssemblySource {
                label: &source.label,
                items,
                limit: usize::try_from(source.from.requested_grains()).unwrap_or(usize::MAX),
                failed: resolved.answer.error.is_some(),
            })
            .collect();
        let mut options = AssemblyOptions {
            template: plan.template.as_ref().filter(|_| self.options.as_format.is_none()),
            format: self.format_of(&plan),
            name: plan.name.as_deref(),
            intent: plan.intent.as_deref(),
            budget: plan.budget,
            priority: &plan.priority,
            disclosure: plan.show.disclosure.unwrap_or(Disclosure::Fixed(Level::Standard)),
            clock,
            cancel: watch,
        };
        let chosen =
            self.options.as_format.is_some() || plan.format.is_some() || plan.template.is_some();
        if self.options.auto_toon
            && !chosen
            && plan.has_budget_clause
            && self.is_tight(&sources, &options)?
        {
            options.format = Format::Toon;
            self.warn(codes::FORMAT_CHOSEN, TOON_CHOSEN);
        }
        let format = options.template.map_or(options.format.name(), |_| "template");
        let mut unheard = Ok(());
        let mut tell = |shares| {
            unheard = self.send_allocations(&plan, shares);
            if unheard.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let assembly =
            assemble_with_progress(&sources, &options, counter, &mut tell).map_err(refused);
        unheard?;
        let assembly = assembly?;
        self.check_stop()?;
        self.send_text(&plan, &resolved, &assembly, format)?;
        Ok(self.assembly_answer(plan, resolved, assembly, format))
    }

    /// Builds the answer of a finished assembly.
    fn assembly_answer(
        &mut self,
        plan: AssemblePlan,
        resolved: Vec<ResolvedSource>,
        assembly: Assembly,
        format: &'static str,
    ) -> Answer {
        self.usage.tokens_used = count(assembly.tokens);
        let reports = plan.sources.into_iter().zip(resolved).zip(assembly.sources);
        let sources = reports.map(|((source, resolved), report)| {
            self.usage.grains_returned += grains_shown(&report);
            let hits = report.shown.iter().filter_map(|position| resolved.hits.get(*position));
            let shown: Vec<_> = hits.map(|hit| hit.address).collect();
            let mut answer = with_report(*resolved.answer, &report);
            for row in &mut answer.grains {
                row.shown = Some(shown.contains(&row.content_address));
            }
            (source.label, SourceAnswer { shown, ..answer })
        });
        Answer::Assembly {
            name: plan.name,
            sources: SourceAnswers(sources.collect()),
            formatted_context: FormattedContext {
                format: format.into(),
                text: assembly.text,
                tokens: count(assembly.tokens),
            },
        }
    }

    /// Returns `true` if the text would take more than 85 % of its budget and each source has a single type,
    /// the case in which tables are most compact (CAL 10.9.5).
    fn is_tight(
        &self,
        sources: &[AssemblySource<'_>],
        options: &AssemblyOptions<'_>,
    ) -> Result<bool> {
        let (Budget::Tokens(total) | Budget::Grains(total)) = options.budget;
        let of_one_type = |source: &AssemblySource<'_>| {
            let mut types = source.items.iter().map(|item| item.grain.grain_type());
            types.next().is_none_or(|first| types.all(|other| other == first))
        };
        let wanted = grainstore_sml::required_budget(sources, options, self.options.counter)
            .map_err(|error| text_error(&error, &self.cancel, self.stop_error))?;
        let tight = wanted.saturating_mul(100) > total.saturating_mul(85);
        Ok(tight && sources.iter().all(of_one_type))
    }

    /// Returns the format of the text, before auto-TOON may change it.
    fn format_of(&self, plan: &AssemblePlan) -> Format {
        self.options.as_format.or(plan.format).unwrap_or(Format::Sml)
    }

    /// Estimates the tokens that all these grains of a source would take.
    pub(super) fn estimate(
        &self,
        plan: &AssemblePlan,
        source: &SourcePlan,
        hits: &[Hit],
    ) -> Result<usize> {
        let clock = self.clock(plan.show.iso_timestamps);
        let items = self.items(hits, source.from.project(), &clock)?;
        let stops = || self.cancel.stop_reason().is_some();
        let options = AssemblyOptions {
            template: plan.template.as_ref().filter(|_| self.options.as_format.is_none()),
            format: self.format_of(plan),
            name: None,
            intent: None,
            budget: Budget::Tokens(usize::MAX),
            priority: &[],
            disclosure: Disclosure::Fixed(Level::Standard),
            clock,
            cancel: CancelCheck::from_fn(&stops),
        };
        let demand = |items| {
            let source = AssemblySource { label: &source.label, items, limit: 0, failed: false };
            grainstore_sml::required_budget(&[source], &options, self.options.counter)
                .map_err(|error| text_error(&error, &self.cancel, self.stop_error))
        };
        Ok(demand(&items)?.saturating_sub(demand(&[])?))
    }
}

/// Converts the error of a text that was not written: the budget, or a stop, which `stopped` converts.
pub(super) fn text_error(
    error: &grainstore_sml::Error,
    cancel: &CancelHandle,
    stopped: fn(StopReason) -> Error,
) -> Error {
    match error.kind() {
        grainstore_sml::ErrorKind::Stopped => {
            stopped(cancel.stop_reason().unwrap_or(StopReason::Timeout))
        }
        _ => Error::new(ErrorKind::BudgetExceeded, error.to_string()).suggest(error.hint()),
    }
}

/// Adds the summary of each source that did not fail, WITH summarize.
fn add_summaries(
    resolved: &mut [ResolvedSource],
    items: &[Vec<Item>],
    clock: &Clock,
    watch: CancelCheck<'_>,
) -> Result<(), grainstore_sml::Error> {
    for (source, items) in resolved.iter_mut().zip(items) {
        if source.answer.error.is_none() {
            source.answer.summarized = Some(summarize(items, clock, watch)?);
        }
    }
    Ok(())
}

/// Returns the number of grains of all sources.
fn count_grains(resolved: &[ResolvedSource]) -> usize {
    resolved.iter().map(|source| source.hits.len()).sum()
}

pub(super) fn stop_error(stop: StopReason) -> Error {
    match stop {
        StopReason::Timeout => Error::new(ErrorKind::AssembleTimeout, "the assembly took too long"),
        StopReason::Cancelled => {
            Error::new(ErrorKind::Cancelled, "the host cancelled the assembly")
        }
    }
}

/// Removes duplicates between sources: each address is kept once, and with dedup each value of the field once
/// a type. The copy in the source of the highest priority stays. Within a source nothing is dropped.
fn remove_duplicates(resolved: &mut [ResolvedSource], priority: &[usize], dedup: Option<FieldRef>) {
    let mut addresses: BTreeSet<ContentAddress> = BTreeSet::new();
    let mut values: BTreeSet<(GrainType, DedupKey)> = BTreeSet::new();
    for at in priority {
        let Some(source) = resolved.get_mut(*at) else { continue };
        if let Some(field) = dedup {
            source
                .hits
                .retain(|hit| !dedup_key(field, hit).is_some_and(|key| values.contains(&key)));
            values.extend(source.hits.iter().filter_map(|hit| dedup_key(field, hit)));
        }
        source.hits.retain(|hit| addresses.insert(hit.address));
    }
}

/// Returns the type and the dedup key of a grain; `None` if it lacks the field.
fn dedup_key(field: FieldRef, hit: &Hit) -> Option<(GrainType, DedupKey)> {
    Some((hit.grain.grain_type(), HitRef::from(hit).dedup_key(field)?))
}

fn with_report(answer: SourceAnswer, report: &SourceReport) -> SourceAnswer {
    SourceAnswer {
        full: count(report.full),
        standard: count(report.standard),
        summary: count(report.summary),
        omitted: count(report.omitted),
        allocated: count(report.allocated),
        used: count(report.used),
        ..answer
    }
}

pub(super) fn grains_shown(report: &SourceReport) -> u64 {
    count(report.full) + count(report.standard) + count(report.summary)
}
