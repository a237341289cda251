//! ASSEMBLE: sources resolved one by one, duplicates removed by priority, one text within a budget.

use std::collections::BTreeSet;

use grainstore_format::{ContentAddress, GrainType};
use grainstore_sml::{AssemblyOptions, Budget, Disclosure, Level, Source, SourceReport, summarize};

use super::value::{Looked, ValueKey};
use super::{Run, count};
use crate::ast::Format;
use crate::cancel::Stop;
use crate::check::plan::{AssemblePlan, SourceFrom, SourcePlan};
use crate::codes::{self, ErrorKind};
use crate::error::{Error, Result};
use crate::fields::FieldRef;
use crate::memory::Hit;
use crate::response::{Answer, FormattedContext, SourceAnswer, Sources};

/// What the warning of a format that was chosen says.
const TOON_CHOSEN: &str =
    "the estimate is above 85 % of the budget, so the format is toon; write FORMAT to choose one";

/// A source after it ran.
struct Resolved {
    hits: Vec<Hit>,
    answer: SourceAnswer,
}

impl Run<'_> {
    /// Runs an ASSEMBLE statement.
    pub(super) fn assemble(&mut self, plan: AssemblePlan) -> Result<Answer> {
        let mut resolved = self.resolve(&plan.sources)?;
        remove_duplicates(&mut resolved, &plan.priority, plan.show.dedup);
        let mut items = Vec::with_capacity(resolved.len());
        let clock = self.clock(plan.show.iso_timestamps);
        for (source, of) in resolved.iter().zip(&plan.sources) {
            items.push(self.items(&source.hits, of.from.project(), &clock)?);
        }
        if plan.show.summarize {
            for (source, items) in resolved.iter_mut().zip(&items) {
                let failed = source.answer.error.is_some();
                source.answer.summarized = (!failed).then(|| summarize(items, &clock));
            }
        }
        let sources: Vec<Source<'_>> = (plan.sources.iter().zip(&resolved).zip(&items))
            .map(|((source, resolved), items)| Source {
                label: &source.label,
                items,
                asked: usize::try_from(source.from.asked()).unwrap_or(usize::MAX),
                failed: resolved.answer.error.is_some(),
            })
            .collect();
        let mut options = AssemblyOptions {
            template: plan.template.as_ref().filter(|_| self.options.as_format.is_none()),
            format: self.options.as_format.or(plan.format).unwrap_or(Format::Sml),
            name: plan.name.as_deref(),
            intent: plan.intent.as_deref(),
            budget: plan.budget,
            priority: &plan.priority,
            disclosure: plan.show.disclosure.unwrap_or(Disclosure::Fixed(Level::Standard)),
            clock,
        };
        let chosen =
            self.options.as_format.is_some() || plan.format.is_some() || plan.template.is_some();
        if self.options.auto_toon && !chosen && plan.budgeted && self.is_tight(&sources, &options) {
            options.format = Format::Toon;
            self.warn(codes::FORMAT_CHOSEN, TOON_CHOSEN);
        }
        let format = options.template.map_or(options.format.name(), |_| "template");
        let assembly = grainstore_sml::assemble(&sources, &options, self.options.counter).map_err(
            |error| Error::new(ErrorKind::BudgetExceeded, error.to_string()).suggest(error.hint()),
        )?;
        self.cancel.check().map_err(stopped)?;
        self.used.tokens_used = count(assembly.tokens);
        let reports = plan.sources.into_iter().zip(resolved).zip(assembly.sources);
        let sources = reports.map(|((source, resolved), report)| {
            self.used.grains_returned += shown(&report);
            (source.label, answer(resolved.answer, &report))
        });
        Ok(Answer::Assembly {
            name: plan.name,
            sources: Sources(sources.collect()),
            formatted_context: FormattedContext {
                format,
                text: assembly.text,
                tokens: count(assembly.tokens),
            },
        })
    }

    /// Whether the text would take more than 85 % of its budget and each source is of one type, so
    /// that tables hold it best.
    fn is_tight(&self, sources: &[Source<'_>], options: &AssemblyOptions<'_>) -> bool {
        let (Budget::Tokens(total) | Budget::Grains(total)) = options.budget;
        let of_one_type = |source: &Source<'_>| {
            let mut types = source.items.iter().map(|item| item.grain.grain_type());
            types.next().is_none_or(|first| types.all(|other| other == first))
        };
        let wanted = grainstore_sml::demand(sources, options, self.options.counter);
        wanted.saturating_mul(100) > total.saturating_mul(85) && sources.iter().all(of_one_type)
    }

    /// Runs the sources; a failed one is reported and its share goes to the others.
    ///
    /// # Errors
    /// E075 when time is up, E082 when the host cancelled, E076 when every source failed.
    fn resolve(&mut self, sources: &[SourcePlan]) -> Result<Vec<Resolved>> {
        let mut resolved = Vec::with_capacity(sources.len());
        for source in sources {
            let found = self.source(source);
            self.cancel.check().map_err(stopped)?;
            resolved.push(found.unwrap_or_else(|error| Resolved {
                hits: Vec::new(),
                answer: SourceAnswer {
                    error: Some(self.source.locate(error)),
                    ..SourceAnswer::default()
                },
            }));
        }
        if resolved.iter().all(|source| source.answer.error.is_some()) {
            let first = resolved.iter().find_map(|source| source.answer.error.as_ref());
            let cause = first.map_or_else(String::new, ToString::to_string);
            let message = format!("every source failed, the first with {cause}");
            return Err(Error::new(ErrorKind::AllSourcesFailed, message));
        }
        Ok(resolved)
    }

    fn source(&mut self, source: &SourcePlan) -> Result<Resolved> {
        let mut answer = SourceAnswer::default();
        let hits = match &source.from {
            SourceFrom::Let(at, _) => self.grains_of(*at)?,
            SourceFrom::Recall(plan) => {
                let hits = self.find(plan)?.hits;
                if let Some(format) = plan.format {
                    let text =
                        self.show(&hits, format, &plan.show, plan.project.as_ref(), plan.asked())?;
                    answer.formatted = Some(text);
                }
                answer.summarized = self.summarize(&hits, &plan.show, plan.project.as_ref())?;
                hits
            }
        };
        Ok(Resolved { hits, answer })
    }
}

fn stopped(stop: Stop) -> Error {
    match stop {
        Stop::Timeout => Error::new(ErrorKind::AssembleTimeout, "the assembly took too long"),
        Stop::Cancelled => Error::new(ErrorKind::Cancelled, "the host cancelled the assembly"),
    }
}

/// An address is emitted once, and with dedup a field value once a type; the copy in the source of
/// the highest priority stays. Nothing is dropped within a source.
fn remove_duplicates(resolved: &mut [Resolved], priority: &[usize], dedup: Option<FieldRef>) {
    let mut addresses: BTreeSet<ContentAddress> = BTreeSet::new();
    let mut values: BTreeSet<(GrainType, ValueKey)> = BTreeSet::new();
    for at in priority {
        let Some(source) = resolved.get_mut(*at) else { continue };
        if let Some(field) = dedup {
            source.hits.retain(|hit| !key(field, hit).is_some_and(|key| values.contains(&key)));
            values.extend(source.hits.iter().filter_map(|hit| key(field, hit)));
        }
        source.hits.retain(|hit| addresses.insert(hit.address));
    }
}

/// Type and value a grain is told apart by; none without the field.
fn key(field: FieldRef, hit: &Hit) -> Option<(GrainType, ValueKey)> {
    Some((hit.grain.grain_type(), Looked::from(hit).told_apart_by(field)?))
}

fn answer(answer: SourceAnswer, report: &SourceReport) -> SourceAnswer {
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

fn shown(report: &SourceReport) -> u64 {
    count(report.full) + count(report.standard) + count(report.summary)
}
