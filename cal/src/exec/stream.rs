//! The event stream of an ASSEMBLE (CAL 11): selects the events, accounts for the time of the listener, and
//! stops the assembly if it takes no more.

use std::sync::Arc;
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use grainstore_sml::{Assembly, Budget, BudgetShares};
use sha2::{Digest, Sha256};

use super::assemble::grains_shown;
use super::source_runner::ResolvedSource;
use super::{ExecuteOptions, Executor, count};
use crate::check::plan::{AssemblePlan, SourceInput, SourcePlan, StatementPlan, StreamPlan};
use crate::codes::{self, ErrorKind};
use crate::error::{Error, Result};
use crate::event::{
    AssemblySummary, BudgetAmount, BudgetShare, Event, EventClass, EventKind, EventListener,
    LevelCounts, StreamStart,
};

/// Text of the warning about a STREAM in a call that does not stream.
const NOT_STREAMED: &str = "STREAM does nothing here: this call answers with the whole text. \
     Events come from `grain cal --stream`, `cal_stream` of rpc and `Session::stream` of the library";
/// Text of the warning about texts that no event carries.
const NO_EVENT: &str =
    "AS of a source and summarize make texts of their own, which no event carries";
/// Bytes of the hash in an assembly id.
const ID_BYTES: usize = 8;

/// The listener of an ASSEMBLE, and its selection of events.
pub(super) struct EventStream<'r> {
    listener: &'r mut dyn EventListener,
    assembly_id: Arc<str>,
    plan: StreamPlan,
    /// Time that the listener may still take without counting against the deadline.
    listener_time_left: Duration,
    /// True while the listener accepts events.
    accepts: bool,
}

impl<'r> EventStream<'r> {
    /// Starts a stream, and announces it to the listener.
    pub(super) fn begin(
        listener: &'r mut dyn EventListener,
        plan: StreamPlan,
        query_hash: &str,
        options: &ExecuteOptions<'_>,
    ) -> Self {
        let assembly_id: Arc<str> = assembly_id(query_hash, options).into();
        listener.on_start(&StreamStart { assembly_id: &assembly_id, options: &plan.to_string() });
        Self {
            listener,
            assembly_id,
            plan,
            listener_time_left: options.listener_timeout,
            accepts: true,
        }
    }

    fn wants(&self, class: EventClass) -> bool {
        self.accepts
            && match class {
                EventClass::Progress => self.plan.progress,
                EventClass::Budget => self.plan.budget,
                EventClass::Chunks => self.plan.chunks,
                EventClass::Always => true,
            }
    }

    fn send(&mut self, kind: EventKind) {
        if self.wants(kind.class()) {
            let event = Event { assembly_id: Arc::clone(&self.assembly_id), kind };
            self.accepts = self.listener.on_event(event).is_continue();
        }
    }

    /// Sends an event; returns the part of the elapsed time that is the listener's own, within its allowance.
    fn send_timed(&mut self, kind: EventKind) -> Duration {
        let began = Instant::now();
        self.send(kind);
        let taken = began.elapsed().min(self.listener_time_left);
        self.listener_time_left = self.listener_time_left.saturating_sub(taken);
        taken
    }
}

/// Returns `asm_` and 16 hex digits, determined by the query, its parameters, the format and the present.
fn assembly_id(query_hash: &str, options: &ExecuteOptions<'_>) -> String {
    let mut hash = Sha256::new();
    let format = options.as_format.map_or("", |format| format.name());
    for part in
        [query_hash, &options.params.canonical_text(), format, &options.now.get().to_string()]
    {
        hash.update(count(part.len()).to_be_bytes());
        hash.update(part);
    }
    let hash = hash.finalize();
    format!("asm_{}", HEXLOWER.encode(hash.get(..ID_BYTES).unwrap_or_default()))
}

impl<'r> Executor<'r> {
    /// Attaches the listener to a statement. Without one, a written STREAM is warned of.
    ///
    /// # Errors
    /// E079 for a statement that has no events.
    pub(super) fn attach_listener<'l: 'r>(
        &mut self,
        plan: &StatementPlan,
        listener: Option<&'l mut dyn EventListener>,
        query_hash: &str,
    ) -> Result<()> {
        match (plan, listener) {
            (StatementPlan::Assemble(plan), Some(listener)) => {
                if has_more_texts(plan) {
                    self.warn(codes::IGNORED_OPTION, NO_EVENT);
                }
                self.stream =
                    Some(EventStream::begin(listener, plan.stream, query_hash, self.options));
            }
            (_, Some(_)) => {
                let message = "only an ASSEMBLE can be streamed";
                return Err(Error::new(ErrorKind::NotStreamed, message));
            }
            (StatementPlan::Assemble(plan), None) if plan.stream.has_stream_clause => {
                self.warn(codes::IGNORED_OPTION, NOT_STREAMED);
            }
            _ => {}
        }
        Ok(())
    }
}

impl Executor<'_> {
    /// Returns `true` if the listener wants events of this class.
    fn wants_events(&self, class: EventClass) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.wants(class))
    }

    /// Sends an event, if there is a listener.
    ///
    /// # Errors
    /// E082 if the listener takes no more events or the host cancelled meanwhile; E075 when time is up.
    fn send_event(&mut self, kind: EventKind) -> Result<()> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        self.cancel.extend_deadlines(stream.send_timed(kind));
        if !stream.accepts {
            let message = "nobody takes the events of the assembly any longer";
            return Err(Error::new(ErrorKind::Cancelled, message));
        }
        self.check_stop()
    }

    /// Sends the last event of an assembly that did not complete.
    pub(super) fn send_end(&mut self, error: &Error) {
        let Some(stream) = &mut self.stream else { return };
        stream.send(match error.kind() {
            ErrorKind::Cancelled => EventKind::Cancelled { reason: error.message().to_owned() },
            _ => EventKind::Error {
                code: error.code().to_owned(),
                message: error.message().to_owned(),
                source: None,
            },
        });
    }

    pub(super) fn send_started(&mut self, plan: &AssemblePlan) -> Result<()> {
        if !self.wants_events(EventClass::Progress) {
            return Ok(());
        }
        self.send_event(EventKind::AssemblyStarted {
            name: plan.name.clone(),
            intent: plan.intent.clone(),
            sources: plan.sources.iter().map(|source| source.label.clone()).collect(),
            budget: allowance(plan.budget),
        })
    }

    pub(super) fn send_source_started(&mut self, plan: &AssemblePlan, index: usize) -> Result<()> {
        let Some(source) = plan.sources.get(index) else { return Ok(()) };
        let source = source.label.clone();
        self.send_event(EventKind::SourceStarted { source, index: count(index) })
    }

    /// Sends the events of a source that ran. Its error is sent whatever events were selected.
    pub(super) fn send_source_outcome(
        &mut self,
        plan: &AssemblePlan,
        index: usize,
        resolved: &ResolvedSource,
    ) -> Result<()> {
        let Some(source) = plan.sources.get(index) else { return Ok(()) };
        let error = &resolved.answer.error;
        if self.wants_events(EventClass::Progress) {
            self.send_event(EventKind::SourceCompleted {
                source: source.label.clone(),
                index: count(index),
                grain_count: count(resolved.hits.len()),
                estimated_tokens: count(self.estimate(plan, source, &resolved.hits)?),
                error: error.clone(),
            })?;
        }
        match error {
            Some(error) => self.send_event(EventKind::Error {
                code: error.code().to_owned(),
                message: error.message().to_owned(),
                source: Some(source.label.clone()),
            }),
            None => Ok(()),
        }
    }

    pub(super) fn send_dedup(&mut self, before: usize, after: usize) -> Result<()> {
        self.send_event(EventKind::DedupCompleted { before: count(before), after: count(after) })
    }

    /// Sends the shares of the sources. If one failed, the shares that include it are sent first.
    pub(super) fn send_allocations(
        &mut self,
        plan: &AssemblePlan,
        shares: BudgetShares,
    ) -> Result<()> {
        if !self.wants_events(EventClass::Budget) {
            return Ok(());
        }
        let unit = allowance(plan.budget).unit;
        for amounts in shares.without_failures.into_iter().chain([shares.allocated]) {
            let allocations =
                plan.sources.iter().zip(amounts).map(|(source, amount)| BudgetShare {
                    source: source.label.clone(),
                    given: BudgetAmount { amount: count(amount), unit },
                });
            self.send_event(EventKind::BudgetAllocated { allocations: allocations.collect() })?;
        }
        Ok(())
    }

    /// Sends the levels of the grains, then the text, then the summary.
    pub(super) fn send_text(
        &mut self,
        plan: &AssemblePlan,
        resolved: &[ResolvedSource],
        assembly: &Assembly,
        format: &'static str,
    ) -> Result<()> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        let grains_included = assembly.sources.iter().map(grains_shown).sum();
        stream.listener.on_text(grains_included);
        let levels = assembly.sources.iter().map(|report| LevelCounts {
            source: report.label.clone(),
            full: count(report.full),
            standard: count(report.standard),
            summary: count(report.summary),
            omitted: count(report.omitted),
        });
        self.send_event(EventKind::DisclosureDecided { levels: levels.collect() })?;
        let left = remaining_budget(plan.budget, assembly);
        if self.wants_events(EventClass::Chunks) {
            self.send_chunks(plan, assembly, left)?;
        }
        let total = allowance(plan.budget).amount;
        let failed = plan.sources.iter().zip(resolved);
        let failed = failed.filter(|(_, resolved)| resolved.answer.error.is_some());
        let summary = AssemblySummary {
            tokens_used: count(assembly.tokens),
            budget_remaining: left,
            utilization: fraction(total.saturating_sub(left), total),
            grains_included,
            grains_omitted: assembly.sources.iter().map(|report| count(report.omitted)).sum(),
            sources_failed: failed.map(|(source, _)| source.label.clone()).collect(),
            format,
            warnings: self.warnings.clone(),
        };
        if let Some(stream) = &mut self.stream {
            // The assembly is complete, so a listener that takes no more, or a cancellation now, changes
            // nothing.
            stream.send(EventKind::AssemblyCompleted { summary });
        }
        Ok(())
    }

    /// Sends the text in chunks. The remaining budget falls to `left`, which the whole text leaves; the
    /// tokens of the chunks need not add up to those of the text.
    fn send_chunks(&mut self, plan: &AssemblePlan, assembly: &Assembly, left: u64) -> Result<()> {
        let counter = self.options.counter;
        let mut remaining = allowance(plan.budget).amount;
        let mut chunks = assembly.chunks(plan.stream.chunk_tokens, counter).peekable();
        let mut chunk_index = 0;
        while let Some(chunk) = chunks.next() {
            let used = match plan.budget {
                Budget::Tokens(_) => count(chunk.tokens),
                Budget::Grains(_) => count(chunk.grains),
            };
            remaining = match chunks.peek() {
                Some(_) => remaining.saturating_sub(used).max(left),
                None => left,
            };
            self.send_event(EventKind::Chunk {
                chunk_index,
                content: chunk.text.to_owned(),
                tokens: count(chunk.tokens),
                budget_remaining: remaining,
            })?;
            chunk_index += 1;
        }
        Ok(())
    }
}

/// Returns `true` if an assembly makes texts beside the one that is sent in chunks.
fn has_more_texts(plan: &AssemblePlan) -> bool {
    let of_source = |source: &SourcePlan| match &source.from {
        SourceInput::Recall(recall) => recall.format.is_some() || recall.show.summarize,
        SourceInput::Let(..) => false,
    };
    plan.show.summarize || plan.sources.iter().any(of_source)
}

fn allowance(budget: Budget) -> BudgetAmount {
    match budget {
        Budget::Tokens(amount) => BudgetAmount { amount: count(amount), unit: "tokens" },
        Budget::Grains(amount) => BudgetAmount { amount: count(amount), unit: "grains" },
    }
}

/// Returns the budget that a text leaves, in its unit.
fn remaining_budget(budget: Budget, assembly: &Assembly) -> u64 {
    match budget {
        Budget::Tokens(total) => count(total.saturating_sub(assembly.tokens)),
        Budget::Grains(total) => {
            let shown: u64 = assembly.sources.iter().map(grains_shown).sum();
            count(total).saturating_sub(shown)
        }
    }
}

/// Returns a fraction, rounded down to ten-thousandths.
#[expect(clippy::cast_precision_loss, reason = "budgets are far below what a float counts exactly")]
fn fraction(part: u64, whole: u64) -> f64 {
    let shares = part.saturating_mul(10_000).checked_div(whole).unwrap_or_default();
    shares as f64 / 10_000.0
}
