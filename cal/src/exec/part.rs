//! A part of a statement: a source of an ASSEMBLE with counts of its own, on whatever thread it runs.

use std::sync::Arc;

use super::ready::Bound;
use super::sources::Resolved;
use super::{Options, Run};
use crate::cancel::{Cancel, Stop};
use crate::check::plan::SourcePlan;
use crate::codes::Warning;
use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::response::Usage;
use crate::source::Source;
use crate::writes::Writes;

/// What a part sees of the statement, which it does not change. Nobody listens to a part.
pub(super) struct Part<'p> {
    memory: &'p dyn Memory,
    source: &'p Source<'p>,
    pub(super) options: &'p Options<'p>,
    writes: &'p Writes,
    pub(super) cancel: Cancel,
    stopped: fn(Stop) -> Error,
    lets: Vec<Arc<Bound>>,
}

/// What a part came to.
pub(super) struct Ended {
    pub(super) found: Result<Resolved>,
    used: Usage,
    /// Bytes it still holds.
    held: usize,
    warnings: Vec<Warning>,
}

impl Part<'_> {
    /// Runs a source where `held` bytes are held already and `most_held` may be.
    pub(super) fn run(&self, source: &SourcePlan, held: usize, most_held: usize) -> Ended {
        let mut run = Run {
            memory: self.memory,
            source: self.source,
            options: self.options,
            writes: self.writes,
            cancel: self.cancel.clone(),
            stopped: self.stopped,
            used: Usage::default(),
            held,
            most_held,
            lets: self.lets.clone(),
            warnings: Vec::new(),
            stream: None,
        };
        let found = run.source(source);
        let Run { used, warnings, .. } = run;
        Ended { found, used, held: run.held.saturating_sub(held), warnings }
    }
}

impl<'r> Run<'r> {
    /// A part of it that stops when `cancel` does.
    pub(super) fn part(&self, cancel: Cancel) -> Part<'r> {
        let Self { memory, source, options, writes, stopped, .. } = *self;
        Part { memory, source, options, writes, cancel, stopped, lets: self.lets.clone() }
    }
}

impl Run<'_> {
    /// Takes over what a part counted and holds. It fits: the part ran with what the statement held.
    pub(super) fn join(&mut self, part: Ended) -> Result<Resolved> {
        let Ended { found, used, held, warnings } = part;
        self.scanned(used.grains_scanned);
        self.held = self.held.saturating_add(held);
        self.warnings.extend(warnings);
        found
    }
}
