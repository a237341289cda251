//! What an assembly is given: its sources, and how they are shown.

use crate::budget::Budget;
use crate::cancel::CancelCheck;
use crate::format::{ContextInfo, Format};
use crate::item::Item;
use crate::level::Level;
use crate::template::Template;
use crate::time::Clock;

/// One resolved source of an assembly, given to [`assemble`](crate::assemble()).
#[derive(Debug, Clone, Copy)]
pub struct AssemblySource<'a> {
    /// The label, for the report. Labels never appear in the text.
    pub label: &'a str,
    /// The grains it found, best first.
    pub items: &'a [Item],
    /// The limit of the source: the number of grains it asked for, not the number it found.
    pub limit: usize,
    /// `true` if it failed: its items are ignored, and its share goes to the other sources.
    pub failed: bool,
}

/// The rule by which [`assemble`](crate::assemble()) chooses the level of a grain (CAL 8.2, progressive
/// disclosure).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disclosure {
    /// This level for every grain. A grain that does not fit is omitted.
    Fixed(Level),
    /// Summary below 1000 tokens; full if a source asks for at most 5 grains and they fit; else
    /// standard. A grain that does not fit is tried at lower levels before it is omitted.
    Auto,
}

/// Options of [`assemble`](crate::assemble()).
#[derive(Debug, Clone, Copy)]
pub struct AssemblyOptions<'a> {
    /// The output format.
    pub format: Format,
    /// A template to use instead of the format.
    pub template: Option<&'a Template>,
    /// The name of the context, shown by the data formats.
    pub name: Option<&'a str>,
    /// The purpose of the context, shown in the envelope.
    pub intent: Option<&'a str>,
    /// The budget of the text.
    pub budget: Budget,
    /// Indexes into the sources, highest priority first. Sources not listed follow in their own order;
    /// indexes out of range and repeated ones are ignored.
    pub priority: &'a [usize],
    /// The rule by which levels are chosen.
    pub disclosure: Disclosure,
    /// The reference for relative times.
    pub clock: Clock,
    /// The check that may cancel the assembly.
    pub cancel: CancelCheck<'a>,
}

impl<'a> AssemblyOptions<'a> {
    pub(crate) fn frame(&self) -> ContextInfo<'a> {
        ContextInfo { name: self.name, intent: self.intent, budget: Some(self.budget) }
    }
}
