//! What a variable stands for in a place: of the assembly, of a source, of a grain.
//!
//! The projection rules hold here as in every format: addresses and namespaces never appear, and where a
//! query chose what is shown of a grain, nothing else is.

use grainstore_format::EpochMs;

use super::variable::Variable;
use crate::assemble::Disclosure;
use crate::budget::Budget;
use crate::cell::Cell;
use crate::format::{Element, Frame};
use crate::item::Level;
use crate::time::{Clock, iso, relative_time};
use crate::words;

/// What is known of the text as a whole.
pub(super) struct Whole<'w> {
    pub(super) frame: &'w Frame<'w>,
    pub(super) clock: Clock,
    pub(super) disclosure: Disclosure,
    pub(super) sources: &'w [Told<'w>],
    /// Every element, those that stand for an omitted grain among them.
    pub(super) elements: &'w [Element<'w>],
    /// How many of them are shown.
    pub(super) shown: usize,
    /// What the text takes of its budget.
    pub(super) used: usize,
}

/// What is told of one source.
#[derive(Debug, Clone)]
pub(super) struct Told<'w> {
    pub(super) label: &'w str,
    /// Its place in the order of priority.
    pub(super) rank: usize,
    /// Grains it has to show.
    pub(super) found: usize,
    /// Grains that are shown of it.
    pub(super) shown: usize,
    /// Tokens of their elements.
    pub(super) tokens: usize,
}

/// A place in a template, and what is known there.
#[derive(Clone, Copy)]
pub(super) struct Scope<'s> {
    whole: &'s Whole<'s>,
    /// The source it is in.
    source: Option<usize>,
    /// The grain it is about.
    grain: Option<&'s Element<'s>>,
}

impl<'s> Scope<'s> {
    /// A place outside the sources.
    pub(super) fn new(whole: &'s Whole<'s>) -> Self {
        Self { whole, source: None, grain: None }
    }

    /// The same, before a source.
    pub(super) fn of_source(self, source: usize) -> Self {
        Self { source: Some(source), ..self }
    }

    /// The same, at a grain.
    pub(super) fn of_grain(self, grain: &'s Element<'s>) -> Self {
        Self { source: Some(grain.group.source), grain: Some(grain), ..self }
    }

    /// The grains that are shown, in order.
    pub(super) fn grains(&self) -> impl Iterator<Item = &'s Element<'s>> + use<'s> {
        self.whole.elements.iter().filter(|element| !element.omitted)
    }

    /// Whether the section of a variable is written: it is there, and neither false nor empty.
    pub(super) fn holds(&self, variable: Variable) -> bool {
        match self.value(variable) {
            Some(Cell::Flag(flag)) => flag,
            Some(Cell::Text(text)) => !text.is_empty(),
            Some(Cell::Number(_)) => true,
            None => false,
        }
    }

    /// The value of a variable; none where there is none here.
    pub(super) fn value(&self, variable: Variable) -> Option<Cell<'s>> {
        let Whole { frame, clock, sources, used, .. } = self.whole;
        let total = frame.budget.map(|(Budget::Tokens(total) | Budget::Grains(total))| total);
        match variable {
            Variable::AssemblyName => frame.name.map(Cell::from),
            Variable::AssemblyIntent => frame.intent.map(Cell::from),
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
            | Variable::SourceTruncated => self.of_its_source(variable),
            _ => self.of_its_grain(variable),
        }
    }

    fn of_its_source(&self, variable: Variable) -> Option<Cell<'s>> {
        let at = self.source?;
        let told = self.whole.sources.get(at)?;
        match variable {
            Variable::SourceLabel => Some(told.label.into()),
            Variable::SourceIndex => Some(count(at)),
            Variable::SourcePriority => Some(count(told.rank.saturating_add(1))),
            Variable::SourceGrainCount => Some(count(told.shown)),
            Variable::SourceTokensUsed => Some(count(told.tokens)),
            Variable::SourceTruncated => Some(Cell::Flag(told.shown < told.found)),
            _ => None,
        }
    }

    fn of_its_grain(&self, variable: Variable) -> Option<Cell<'s>> {
        let element = self.grain?;
        if element.omitted && says_something(variable) {
            return None;
        }
        match variable {
            Variable::GrainContent => Some(element.shown.text.as_ref().into()),
            Variable::GrainType => Some(element.shown.grain_type.name().into()),
            Variable::GrainScore => element.item.score.map(number),
            Variable::GrainIsFull => Some(Cell::Flag(element.is_at(Level::Full))),
            Variable::GrainIsSummary => Some(Cell::Flag(element.is_at(Level::Summary))),
            // Addresses never appear in text.
            Variable::GrainHash => None,
            _ => match &element.item.chosen {
                Some(chosen) => {
                    let mut there = chosen.attributes.iter();
                    let name = field(variable);
                    there.find(|(of, _)| Some(of.as_str()) == name).map(|(_, cell)| cell.borrowed())
                }
                None => of_payload(variable, element, &self.whole.clock),
            },
        }
    }

    /// The level a grain is shown at; else that which was asked for.
    fn level(&self) -> &'static str {
        match (self.grain, self.whole.disclosure) {
            (Some(element), _) => element.level.name(),
            (None, Disclosure::Fixed(level)) => level.name(),
            (None, Disclosure::Auto) => "auto",
        }
    }
}

/// Whether a variable gives out something that a grain says: one that was left out says nothing.
fn says_something(variable: Variable) -> bool {
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

/// The name PROJECT has for what a variable shows.
fn field(variable: Variable) -> Option<&'static str> {
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

fn of_payload<'s>(variable: Variable, element: &'s Element<'_>, clock: &Clock) -> Option<Cell<'s>> {
    let grain = &element.item.grain;
    match variable {
        Variable::GrainSubject => grain.get("subject").map(Cell::of),
        Variable::GrainRelation => grain.get("relation").map(Cell::of),
        Variable::GrainHumanizedRelation => grain.text("relation").map(words::humanize).map(text),
        Variable::GrainObject => grain.get("object").map(Cell::of),
        Variable::GrainConfidence => grain.get("confidence").map(Cell::of),
        Variable::GrainImportance => grain.get("importance").map(Cell::of),
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

/// What part of a budget is used, to two digits.
fn utilization(used: usize, total: usize) -> Cell<'static> {
    let hundredths = used.saturating_mul(100).checked_div(total).unwrap_or_default();
    let (whole, part) = (hundredths / 100, hundredths % 100);
    let digits = format!("{whole}.{part:02}");
    Cell::Number(digits.trim_end_matches('0').trim_end_matches('.').to_owned())
}

fn count(count: usize) -> Cell<'static> {
    Cell::Number(count.to_string())
}

/// A score, to four digits: more tell of the machine, not of the answer.
fn number(score: f64) -> Cell<'static> {
    Cell::Number(words::number((score * 10_000.0).round() / 10_000.0))
}

fn text(text: String) -> Cell<'static> {
    Cell::Text(text.into())
}
