//! A runner for one source of an ASSEMBLE, with counters of its own, on any thread.

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

/// The read-only state of a statement that a source runs with. It has no event stream.
pub(super) struct Part<'p> {
    memory: &'p dyn Memory,
    source: &'p Source<'p>,
    pub(super) options: &'p Options<'p>,
    writes: &'p Writes,
    pub(super) cancel: Cancel,
    stopped: fn(Stop) -> Error,
    lets: Vec<Arc<Bound>>,
}

/// The outcome of a source, with what it counted.
pub(super) struct Ended {
    pub(super) found: Result<Resolved>,
    used: Usage,
    /// Bytes it still holds.
    held: usize,
    warnings: Vec<Warning>,
}

impl Part<'_> {
    /// Runs a source while the statement holds `held` bytes of at most `most_held`.
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
    /// Creates a runner that stops when `cancel` does.
    pub(super) fn part(&self, cancel: Cancel) -> Part<'r> {
        let Self { memory, source, options, writes, stopped, .. } = *self;
        Part { memory, source, options, writes, cancel, stopped, lets: self.lets.clone() }
    }
}

impl Run<'_> {
    /// Merges the counters of a source. The bytes fit, since the source ran with those the statement held.
    pub(super) fn join(&mut self, part: Ended) -> Result<Resolved> {
        let Ended { found, used, held, warnings } = part;
        self.scanned(used.grains_scanned);
        self.held = self.held.saturating_add(held);
        self.warnings.extend(warnings);
        found
    }
}
