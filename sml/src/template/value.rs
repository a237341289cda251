//! The values of variables: of the assembly, of a source, of a grain (CAL 10.5).
//!
//! The rules of projection apply as in every format: addresses and namespaces never appear, and for a
//! grain with fields chosen by a query no others are shown.

use grainstore_format::EpochMs;

use super::variable::Variable;
use crate::budget::Budget;
use crate::display_value::DisplayValue;
use crate::format::{ContextInfo, Element};
use crate::level::Level;
use crate::options::Disclosure;
use crate::time::{Clock, iso, relative_time};
use crate::words;

/// The facts about the text as a whole.
pub(super) struct DocumentContext<'w> {
    pub(super) frame: &'w ContextInfo<'w>,
    pub(super) clock: Clock,
    pub(super) disclosure: Disclosure,
    pub(super) sources: &'w [SourceStats<'w>],
    /// All elements, including the notes for omitted grains.
    pub(super) elements: &'w [Element<'w>],
    /// The number of elements that show a grain.
    pub(super) shown: usize,
    /// The amount of the budget used.
    pub(super) used: usize,
}

/// The statistics of one source.
#[derive(Debug, Clone)]
pub(super) struct SourceStats<'w> {
    pub(super) label: &'w str,
    /// The rank by priority.
    pub(super) rank: usize,
    /// The number of grains it has that may be shown.
    pub(super) found: usize,
    /// The number of its grains that are shown.
    pub(super) shown: usize,
    /// The tokens of their elements.
    pub(super) tokens: usize,
}

/// A position in a template, with the facts known there.
#[derive(Clone, Copy)]
pub(super) struct Scope<'s> {
    whole: &'s DocumentContext<'s>,
    /// The index of the source at this position.
    source: Option<usize>,
    /// The grain at this position.
    grain: Option<&'s Element<'s>>,
}

impl<'s> Scope<'s> {
    /// Creates a position outside the sources.
    pub(super) fn new(whole: &'s DocumentContext<'s>) -> Self {
        Self { whole, source: None, grain: None }
    }

    /// Returns the position before a source.
    pub(super) fn in_source(self, source: usize) -> Self {
        Self { source: Some(source), ..self }
    }

    /// Returns the position at a grain.
    pub(super) fn at_grain(self, grain: &'s Element<'s>) -> Self {
        Self { source: Some(grain.group.source), grain: Some(grain), ..self }
    }

    /// Iterates over the grains shown, in order.
    pub(super) fn grains(&self) -> impl Iterator<Item = &'s Element<'s>> + use<'s> {
        self.whole.elements.iter().filter(|element| !element.omitted)
    }

    /// Returns `true` if the section of a variable is written: it has a value that is neither false nor
    /// empty.
    pub(super) fn is_truthy(&self, variable: Variable) -> bool {
        match self.value(variable) {
            Some(DisplayValue::Flag(flag)) => flag,
            Some(DisplayValue::Text(text)) => !text.is_empty(),
            Some(DisplayValue::Number(_)) => true,
            None => false,
        }
    }

    /// Returns the value of a variable, or `None` if it has none at this position.
    pub(super) fn value(&self, variable: Variable) -> Option<DisplayValue<'s>> {
        let DocumentContext { frame, clock, sources, used, .. } = self.whole;
        let total = frame.budget.map(|(Budget::Tokens(total) | Budget::Grains(total))| total);
        match variable {
            Variable::AssemblyName => frame.name.map(DisplayValue::from),
            Variable::AssemblyIntent => frame.intent.map(DisplayValue::from),
            Variable::AssemblySourceCount => Some(count(sources.len())),
            Variable::AssemblyGrainCount => Some(count(self.whole.shown)),
            Variable::BudgetTotal => total.map(count),
            Variable::BudgetUsed => Some(count(*used)),
            Variable::BudgetRemaining => total.map(|total| count(total.saturating_sub(*used))),
            Variable::BudgetUnit => frame.budget.map(|budget| unit(budget).into()),
            Variable::BudgetUtilization => total.map(|total| utilization(*used, total)),
            Variable::DisclosureLevel => Some(self.level().into()),
            Variable::Timestamp => Some(text(iso(clock.now))),
            Variable::SourceLabel
            | Variable::SourceIndex
            | Variable::SourcePriority
            | Variable::SourceGrainCount
            | Variable::SourceTokensUsed
            | Variable::SourceTruncated => self.source_value(variable),
            _ => self.grain_value(variable),
        }
    }

    fn source_value(&self, variable: Variable) -> Option<DisplayValue<'s>> {
        let at = self.source?;
        let told = self.whole.sources.get(at)?;
        match variable {
            Variable::SourceLabel => Some(told.label.into()),
            Variable::SourceIndex => Some(count(at)),
            Variable::SourcePriority => Some(count(told.rank.saturating_add(1))),
            Variable::SourceGrainCount => Some(count(told.shown)),
            Variable::SourceTokensUsed => Some(count(told.tokens)),
            Variable::SourceTruncated => Some(DisplayValue::Flag(told.shown < told.found)),
            _ => None,
        }
    }

    fn grain_value(&self, variable: Variable) -> Option<DisplayValue<'s>> {
        let element = self.grain?;
        if element.omitted && reveals_content(variable) {
            return None;
        }
        match variable {
            Variable::GrainContent => Some(element.projection.text.as_ref().into()),
            Variable::GrainType => Some(element.projection.grain_type.name().into()),
            Variable::GrainScore => element.item.score.map(number),
            Variable::GrainIsFull => Some(DisplayValue::Flag(element.is_at(Level::Full))),
            Variable::GrainIsSummary => Some(DisplayValue::Flag(element.is_at(Level::Summary))),
            // Addresses never appear in text.
            Variable::GrainHash => None,
            _ => match &element.item.chosen {
                Some(chosen) => {
                    let mut there = chosen.attributes.iter();
                    let name = project_name(variable);
                    there
                        .find(|(of, _)| Some(of.as_str()) == name)
                        .map(|(_, cell)| cell.as_borrowed())
                }
                None => payload_value(variable, element, &self.whole.clock),
            },
        }
    }

    /// Returns the level a grain is shown at, or, outside a grain, the requested one.
    fn level(&self) -> &'static str {
        match (self.grain, self.whole.disclosure) {
            (Some(element), _) => element.level.name(),
            (None, Disclosure::Fixed(level)) => level.name(),
            (None, Disclosure::Auto) => "auto",
        }
    }
}

/// Returns `true` if a variable reveals content of a grain. Such variables are empty for an omitted
/// grain.
fn reveals_content(variable: Variable) -> bool {
    !matches!(
        variable,
        Variable::GrainType
            | Variable::GrainScore
            | Variable::GrainCreatedAt
            | Variable::GrainRelativeTime
            | Variable::GrainIsFull
            | Variable::GrainIsSummary
    )
}

/// Returns the name under which PROJECT selects what a variable shows.
fn project_name(variable: Variable) -> Option<&'static str> {
    Some(match variable {
        Variable::GrainSubject => "subject",
        Variable::GrainRelation | Variable::GrainHumanizedRelation => "relation",
        Variable::GrainObject => "object",
        Variable::GrainConfidence => "confidence",
        Variable::GrainImportance => "importance",
        Variable::GrainTags => "tags",
        Variable::GrainCreatedAt | Variable::GrainRelativeTime => "time",
        _ => return None,
    })
}

fn payload_value<'s>(
    variable: Variable,
    element: &'s Element<'_>,
    clock: &Clock,
) -> Option<DisplayValue<'s>> {
    let grain = &element.item.grain;
    match variable {
        Variable::GrainSubject => grain.get("subject").map(DisplayValue::of),
        Variable::GrainRelation => grain.get("relation").map(DisplayValue::of),
        Variable::GrainHumanizedRelation => grain.text("relation").map(words::humanize).map(text),
        Variable::GrainObject => grain.get("object").map(DisplayValue::of),
        Variable::GrainConfidence => grain.get("confidence").map(DisplayValue::of),
        Variable::GrainImportance => grain.get("importance").map(DisplayValue::of),
        Variable::GrainTags => words::join(grain.list("structural_tags")?, ",").map(text),
        Variable::GrainCreatedAt => Some(text(iso(EpochMs::new(grain.created_at().get())))),
        Variable::GrainRelativeTime => Some(text(relative_time(grain.time(), clock))),
        _ => None,
    }
}

fn unit(budget: Budget) -> &'static str {
    match budget {
        Budget::Tokens(_) => "tokens",
        Budget::Grains(_) => "grains",
    }
}

/// Returns the fraction of the budget used, rounded down to two decimals.
fn utilization(used: usize, total: usize) -> DisplayValue<'static> {
    let hundredths = used.saturating_mul(100).checked_div(total).unwrap_or_default();
    let (whole, part) = (hundredths / 100, hundredths % 100);
    let digits = format!("{whole}.{part:02}");
    DisplayValue::Number(digits.trim_end_matches('0').trim_end_matches('.').to_owned())
}

fn count(count: usize) -> DisplayValue<'static> {
    DisplayValue::Number(count.to_string())
}

/// Returns a score rounded to four decimals, so that rounding differences between machines do not show.
fn number(score: f64) -> DisplayValue<'static> {
    DisplayValue::Number(words::number((score * 10_000.0).round() / 10_000.0))
}

fn text(text: String) -> DisplayValue<'static> {
    DisplayValue::Text(text.into())
}
