//! A runner for one source of an ASSEMBLE, with counters of its own, on any thread.

use std::sync::Arc;

use super::inputs::LetResult;
use super::{ExecuteOptions, Executor};
use crate::cancel::{CancelHandle, StopReason};
use crate::check::plan::SourcePlan;
use crate::codes::Warning;
use crate::error::{Error, Result};
use crate::memory::{Hit, Memory};
use crate::response::{SourceAnswer, Usage};
use crate::source::QuerySource;
use crate::write_quotas::WriteQuotas;

/// The grains and the report of a source that ran.
pub(super) struct ResolvedSource {
    pub(super) hits: Vec<Hit>,
    pub(super) answer: Box<SourceAnswer>,
}

/// The read-only state of a statement that a source runs with. It has no event stream.
pub(super) struct SourceRunner<'p> {
    memory: &'p dyn Memory,
    source: &'p QuerySource<'p>,
    pub(super) options: &'p ExecuteOptions<'p>,
    writes: &'p WriteQuotas,
    pub(super) cancel: CancelHandle,
    stopped: fn(StopReason) -> Error,
    lets: Vec<Arc<LetResult>>,
}

/// The outcome of a source, with what it counted.
pub(super) struct SourceOutcome {
    pub(super) found: Result<ResolvedSource>,
    used: Usage,
    /// Bytes it still holds.
    held_bytes: usize,
    warnings: Vec<Warning>,
}

impl SourceRunner<'_> {
    /// Runs a source while the statement holds `held` bytes of at most `most_held`.
    pub(super) fn run(&self, source: &SourcePlan, held: usize, most_held: usize) -> SourceOutcome {
        let mut run = Executor {
            memory: self.memory,
            source: self.source,
            options: self.options,
            writes: self.writes,
            cancel: self.cancel.clone(),
            stop_error: self.stopped,
            usage: Usage::default(),
            held_bytes: held,
            max_held_bytes: most_held,
            lets: self.lets.clone(),
            warnings: Vec::new(),
            stream: None,
        };
        let found = run.run_source(source);
        let Executor { usage: used, warnings, .. } = run;
        SourceOutcome { found, used, held_bytes: run.held_bytes.saturating_sub(held), warnings }
    }
}

impl<'r> Executor<'r> {
    /// Creates a runner that stops when `cancel` does.
    pub(super) fn source_runner(&self, cancel: CancelHandle) -> SourceRunner<'r> {
        let Self { memory, source, options, writes, stop_error: stopped, .. } = *self;
        SourceRunner { memory, source, options, writes, cancel, stopped, lets: self.lets.clone() }
    }
}

impl Executor<'_> {
    /// Merges the counters of a source. The bytes fit, since the source ran with those the statement held.
    pub(super) fn merge_source(&mut self, part: SourceOutcome) -> Result<ResolvedSource> {
        let SourceOutcome { found, used, held_bytes: held, warnings } = part;
        self.count_scanned(used.grains_scanned);
        self.held_bytes = self.held_bytes.saturating_add(held);
        self.warnings.extend(warnings);
        found
    }
}
