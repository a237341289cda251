//! The executor: it turns checked plans into answers (CAL 8 and 18), and sees only a [`Memory`].

mod aggregate;
mod assemble;
mod batch;
mod collector;
mod contradictions;
mod describe;
mod evolve;
mod explain;
mod history;
mod inputs;
mod listed;
mod parallel;
mod prepare;
mod project;
mod recall;
mod render;
mod revert;
mod rows;
mod setop;
mod size;
mod source_runner;
mod sources;
mod stream;
mod template;
mod value;

use std::sync::Arc;
use std::time::{Duration, Instant};

use grainstore_format::{ContentAddress, EpochMs, Grain};
use grainstore_sml::{Clock, Estimator, TokenCounter};

use crate::ast::{Format, Statement, StatementType};
use crate::cancel::{CancelHandle, StopReason};
use crate::check::plan::{PlanWithLets, StatementPlan};
use crate::check::{self, CheckContext};
use crate::codes::{self, ErrorKind, Warning};
use crate::correction;
use crate::error::{Error, Result};
use crate::event::EventListener;
use crate::expansion::Expansion;
use crate::gate::{AdmissionGate, AdmissionRequest};
use crate::limits;
use crate::memory::{HashPrefix, Memory, PrefixMatch};
use crate::params::Params;
use crate::parse::RefusedEntry;
use crate::predicate::Predicate;
use crate::print;
use crate::response::{Answer, FRESH, LINEARIZABLE, Response, ResponseMeta, Usage, VERSION};
use crate::source::QuerySource;
use crate::span::Spanned;
use crate::tier::{Tier, tier_of};
use crate::write_quotas::WriteQuotas;
use inputs::LetResult;
use stream::EventStream;

pub use prepare::{Preparation, prepare};

/// Options of one request, set by the host for [`execute`].
#[derive(Clone)]
pub struct ExecuteOptions<'o> {
    /// The current time, against which time phrases are resolved and writes are dated.
    pub now: EpochMs,
    /// The tier the statement may use.
    pub tier: Tier,
    /// Values of the parameters.
    pub params: Params,
    /// Overrides the AS of a RECALL and the FORMAT of an ASSEMBLE; warns with W004 if the answer has no text.
    pub as_format: Option<Format>,
    /// Auto-TOON (CAL 10.9.5): an ASSEMBLE with a BUDGET and no FORMAT is written as TOON, with W005, if its
    /// text would take more than 85 % of the budget and each source has a single type.
    pub auto_toon: bool,
    /// Expands a RECALL to the grains linked to its best answers, which the language itself cannot ask for.
    /// Statements that contain recalls are not expanded.
    pub expansion: Option<Expansion>,
    /// Conditions of the host that every grain of a RECALL must also meet, for fields that the language has no
    /// name for: `run_id`, `author_did`, `entity_id`, `processing_basis` ([`Predicate::rests_on`]). Statements
    /// that contain recalls take none.
    pub conditions: Vec<Predicate>,
    /// True to count the matches of every RECALL as WITH total does, up to 1,000: that reads each of them.
    /// Otherwise `total` is known where the answer has all matches, or the memory tells it without reading any.
    pub totals: bool,
    /// The handle by which the host cancels the statement.
    pub cancel: CancelHandle,
    /// Total time the listener of a streamed ASSEMBLE may take for its events before it counts against the
    /// deadline of the statement; 60 seconds by default. The statement keeps its view of the store meanwhile.
    pub listener_timeout: Duration,
    /// The token counter.
    pub counter: &'o dyn TokenCounter,
    /// LIMIT of a RECALL without one, if it is less than the limit of CAL.
    pub default_limit: Option<u64>,
    /// The gate, called before a statement runs and for each whole grain it returns.
    pub gate: Option<&'o dyn AdmissionGate>,
    /// The grain that the target of a SUPERSEDE or REVERT named when the statement was prepared. It is the
    /// one that is replaced, even if the prefix finds another by now.
    pub pinned_target: Option<ContentAddress>,
    /// Limits set by a test.
    #[cfg(test)]
    pub(crate) test_limits: TestLimits,
}

/// Limits set by a test: threads of a statement, and bytes it may hold.
#[cfg(test)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TestLimits {
    pub(crate) threads: Option<usize>,
    pub(crate) row_bytes: Option<usize>,
}

impl ExecuteOptions<'_> {
    /// Creates options for reading at `now`: no parameters, no totals counted, the default token counter.
    #[must_use]
    pub fn at(now: EpochMs) -> Self {
        Self {
            now,
            tier: Tier::Read,
            params: Params::new(),
            as_format: None,
            auto_toon: false,
            expansion: None,
            conditions: Vec::new(),
            totals: false,
            cancel: CancelHandle::new(),
            listener_timeout: limits::LISTENER_TIMEOUT,
            counter: &Estimator,
            default_limit: None,
            gate: None,
            pinned_target: None,
            #[cfg(test)]
            test_limits: TestLimits::default(),
        }
    }
}

impl ExecuteOptions<'_> {
    /// Returns the bytes that the grains of a statement may take at once.
    fn row_bytes(&self) -> usize {
        #[cfg(test)]
        if let Some(bytes) = self.test_limits.row_bytes {
            return bytes;
        }
        limits::MAX_BUFFERED_BYTES
    }
}

/// Parses, checks and runs one query, in text or JSON.
///
/// The host keeps `writes` across the requests of a session, since it counts them against the write limits.
///
/// ```
/// # use grainstore_cal::{AccessPlan, CancelHandle, Candidate, HashPrefix, Hit, HostInfo, Memory};
/// # use grainstore_cal::{MemoryError, NamedTemplate, PrefixMatch, Query, RecallStats};
/// # use grainstore_cal::{RecallVisitor, Score, SessionScope, TemplateSaveOutcome};
/// # use grainstore_format::{BeliefBuilder, Blob, ContentAddress, Encoding, EpochMs, Grain};
/// # use grainstore_format::{GrainRef, GrainState};
/// # type Outcome<T> = Result<T, MemoryError>;
/// # struct Notes(SessionScope, Vec<Blob>);
/// # fn no<T>() -> Outcome<T> { Err(MemoryError::new("ERR_NONE", "not in these notes", "")) }
/// # const NOW: EpochMs = EpochMs::new(1_768_471_200_000);
/// # fn notes() -> grainstore_format::Result<Notes> {
/// #     let belief = |object: &str| {
/// #         BeliefBuilder::new(NOW, "alice", "mg:prefers", object, 0.9)
/// #             .build()?.encode(Encoding::MessagePack)
/// #     };
/// #     Ok(Notes(SessionScope::default(), vec![belief("tea")?, belief("jazz")?]))
/// # }
/// # impl Memory for Notes {
/// #     fn scope(&self) -> &SessionScope { &self.0 }
/// #     fn recall(&self, query: &Query, cancel: &CancelHandle, visit: &mut RecallVisitor<'_>)
/// #         -> Outcome<RecallStats> {
/// #         let state = GrainState::default();
/// #         for blob in &self.1 {
/// #             cancel.check()?;
/// #             let Ok(grain) = GrainRef::new(blob.bytes()) else { return no() };
/// #             if query.matches(&blob.address(), &grain, &state, NOW) {
/// #                 let address = blob.address();
/// #                 let (grain, state) = (&grain, &state);
/// #                 let found = Candidate { address, grain, state, score: Score::STRUCTURAL };
/// #                 if visit(found).is_break() { break }
/// #             }
/// #         }
/// #         Ok(RecallStats { scanned: self.1.len() as u64, total: None })
/// #     }
/// #     fn matched_fields(&self, _: &Query, _: &[Hit], _: &CancelHandle)
/// #         -> Outcome<Vec<Vec<String>>> { no() }
/// #     fn locate(&self, _: &HashPrefix) -> Outcome<PrefixMatch> { Ok(PrefixMatch::Nothing) }
/// #     fn exists(&self, _: &ContentAddress) -> Outcome<bool> { no() }
/// #     fn get(&self, _: &ContentAddress) -> Outcome<Option<Hit>> { no() }
/// #     fn history(&self, _: &ContentAddress, _: usize) -> Outcome<Vec<Hit>> { no() }
/// #     fn thread(&self, _: &ContentAddress, _: usize, _: &CancelHandle)
/// #         -> Outcome<Vec<ContentAddress>> { no() }
/// #     fn explain(&self, _: &Query, _: &CancelHandle) -> Outcome<AccessPlan> {
/// #         Ok(AccessPlan { index: "none".to_owned(), estimated: 2, ..AccessPlan::default() })
/// #     }
/// #     fn describe(&self) -> Outcome<HostInfo> { no() }
/// #     fn templates(&self) -> Outcome<Vec<NamedTemplate>> { Ok(Vec::new()) }
/// #     fn save_template(&self, _: &NamedTemplate) -> Outcome<TemplateSaveOutcome> { no() }
/// #     fn add(&self, _: Grain, _: &str) -> Outcome<ContentAddress> { no() }
/// #     fn supersede(&self, _: &ContentAddress, _: Grain, _: &str)
/// #         -> Outcome<ContentAddress> { no() }
/// # }
/// use grainstore_cal::{Answer, ExecuteOptions, WriteQuotas, execute};
///
/// // `notes()` is a `Memory` that holds two beliefs about alice.
/// let options = ExecuteOptions::at(EpochMs::new(1_768_471_200_000));
/// let source = "RECALL beliefs WHERE subject = \"alice\" LIMIT 1 AS text";
/// let response = execute(&notes()?, source, &options, &WriteQuotas::default())?;
/// if let Answer::Grains(answer) = &response.answer {
///     assert_eq!(answer.results.len(), 1);
///     assert!(answer.formatted.as_ref().is_some_and(|text| text.contains("tea")));
/// }
/// assert_eq!((response.meta.tier, response.meta.warnings.len()), (0, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The first error of any phase, located in `source`; refusals of the memory keep their `ERR_` code.
pub fn execute(
    memory: &dyn Memory,
    source: &str,
    options: &ExecuteOptions<'_>,
    writes: &WriteQuotas,
) -> Result<Response> {
    let started = Instant::now();
    run(memory, &QuerySource::read(source)?, options, writes, started, None)
}

/// Runs a query given as bytes; see [`execute`].
///
/// # Errors
/// E070 if they are not UTF-8, else as [`execute`].
pub fn execute_bytes(
    memory: &dyn Memory,
    source: &[u8],
    options: &ExecuteOptions<'_>,
    writes: &WriteQuotas,
) -> Result<Response> {
    let started = Instant::now();
    run(memory, &read_bytes(source)?, options, writes, started, None)
}

/// Runs an ASSEMBLE and sends its events to `listener`, an [`EventListener`], while it runs (CAL 11), those
/// its STREAM selects, or all without STREAM. Returns the whole answer as well.
///
/// # Errors
/// E079 for any other statement, else as [`execute_bytes`]. An error before [`EventListener::on_start`] has no
/// events; after it the last event carries the same error.
pub fn stream(
    memory: &dyn Memory,
    source: &[u8],
    options: &ExecuteOptions<'_>,
    writes: &WriteQuotas,
    listener: &mut dyn EventListener,
) -> Result<Response> {
    let started = Instant::now();
    run(memory, &read_bytes(source)?, options, writes, started, Some(listener))
}

/// Reads a query given as bytes.
fn read_bytes(source: &[u8]) -> Result<QuerySource<'_>> {
    let meant = |error| match std::str::from_utf8(source) {
        Ok(text) => correction::with_correction(error, text),
        Err(_) => error,
    };
    QuerySource::read_bytes(source).map_err(meant)
}

fn run(
    memory: &dyn Memory,
    source: &QuerySource<'_>,
    options: &ExecuteOptions<'_>,
    writes: &WriteQuotas,
    started: Instant,
    listener: Option<&mut dyn EventListener>,
) -> Result<Response> {
    let parsed = source.statement_for_execution().map_err(|error| source.mended(error))?;
    let place = parsed.0.keyword_span();
    let answer = run_statement(memory, source, parsed, options, writes, started, listener);
    answer.map_err(|error| source.mended(source.locate(error.at_unless_memory(place))))
}

fn run_statement(
    memory: &dyn Memory,
    source: &QuerySource<'_>,
    (statement, refused): (Statement<'_>, Vec<RefusedEntry<'_>>),
    options: &ExecuteOptions<'_>,
    writes: &WriteQuotas,
    started: Instant,
    listener: Option<&mut dyn EventListener>,
) -> Result<Response> {
    let query_hash = print::query_hash(&statement, &refused);
    let AdmittedStatement { mut plan, warnings, consistency, cache } =
        check_and_admit(memory, &statement, options, false)?;
    if let (Some(pinned), Some(target)) = (options.pinned_target, plan.plan.target()) {
        target.node = HashPrefix::from_address(&pinned);
    }
    if let StatementPlan::Batch(entries) = &mut plan.plan {
        for RefusedEntry { at, label, error, .. } in refused {
            let slot = Spanned::new(label.node.to_owned(), label.span);
            entries.insert(at.min(entries.len()), (slot, Err(error)));
        }
    }
    let mut run = Executor::new(memory, source, &plan.plan, options, writes);
    run.warnings = warnings;
    run.attach_listener(&plan.plan, listener, &query_hash)?;
    let answer = run.request(plan).inspect_err(|error| run.send_end(error))?;
    if options.as_format.is_some() && !answer.has_text() {
        run.warn(codes::IGNORED_OPTION, FORMAT_IGNORED);
    }
    let meta = ResponseMeta {
        version: VERSION,
        statement_type: statement.statement_type(),
        tier: tier_of(&statement, options.tier),
        query_hash,
        duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        budget: run.usage,
        consistency: consistency.then_some(LINEARIZABLE),
        cache: cache.then_some(FRESH),
        warnings: run.warnings,
    };
    Ok(Response { meta, answer })
}

/// Text of the warning about a format that the answer cannot use.
const FORMAT_IGNORED: &str = "the format that was asked for beside the statement did nothing: this answer is no list of whole grains";

/// A checked statement that the tier and the gate allow to run.
struct AdmittedStatement {
    plan: PlanWithLets,
    warnings: Vec<Warning>,
    /// True if it asks for a consistency.
    consistency: bool,
    /// True if it allows a cached answer.
    cache: bool,
}

/// Checks a statement, and decides whether it may run: by its tier, and by the host's gate.
///
/// # Errors
/// The first rule it breaks; E044 for the tier; the refusal of the gate.
fn check_and_admit(
    memory: &dyn Memory,
    statement: &Statement<'_>,
    options: &ExecuteOptions<'_>,
    explains: bool,
) -> Result<AdmittedStatement> {
    let reads_text = options.gate.is_some_and(AdmissionGate::needs_texts);
    let explains = explains || statement.statement_type() == StatementType::Explain;
    let mut context =
        CheckContext::new(memory, &options.params, options.now, explains || reads_text);
    context.default_limit_cap = options.default_limit;
    context.host_renders_text = options.as_format.is_some();
    let mut plan = check::check(statement, &mut context)?;
    if let StatementPlan::Recall(recall) = &mut plan.plan {
        recall.query.expansion = options.expansion;
        for condition in &options.conditions {
            recall.query.require(condition.clone());
        }
    }
    let place = statement.keyword_span();
    if statement.tier() > 0 && options.tier == Tier::Read {
        let error = Error::new(ErrorKind::TierDisabled, "this session reads only");
        return Err(error.at(place));
    }
    if let Some(gate) = options.gate {
        let tier = tier_of(statement, options.tier);
        let admission = AdmissionRequest::of(statement, tier, &plan, reads_text);
        gate.admit(&admission).map_err(|error| Error::from(error).at(place))?;
    }
    let CheckContext { warnings, consistency_requested: consistency, cache_allowed: cache, .. } =
        context;
    Ok(AdmittedStatement { plan, warnings, consistency, cache })
}

/// The state of one running statement.
struct Executor<'r> {
    memory: &'r dyn Memory,
    /// The query as sent, for the positions of errors inside an answer.
    source: &'r QuerySource<'r>,
    options: &'r ExecuteOptions<'r>,
    writes: &'r WriteQuotas,
    cancel: CancelHandle,
    /// Converts a stop to the error of this kind of statement.
    stop_error: fn(StopReason) -> Error,
    usage: Usage,
    /// Bytes of memory that its grains take, and the most they may take.
    held_bytes: usize,
    max_held_bytes: usize,
    /// Results of the LETs in scope.
    lets: Vec<Arc<LetResult>>,
    /// Warnings for the caller.
    warnings: Vec<Warning>,
    /// The event stream, if a listener is attached.
    stream: Option<EventStream<'r>>,
}

impl<'r> Executor<'r> {
    fn new(
        memory: &'r dyn Memory,
        source: &'r QuerySource<'r>,
        plan: &StatementPlan,
        options: &'r ExecuteOptions<'r>,
        writes: &'r WriteQuotas,
    ) -> Self {
        let (time, stopped): (_, fn(StopReason) -> Error) = match plan {
            StatementPlan::Assemble(_) => (limits::ASSEMBLE_TIMEOUT, assemble::stop_error),
            _ => (limits::QUERY_TIMEOUT, Error::from),
        };
        Self {
            memory,
            source,
            options,
            writes,
            cancel: options.cancel.with_deadline(time),
            stop_error: stopped,
            usage: Usage::default(),
            held_bytes: 0,
            max_held_bytes: options.row_bytes(),
            lets: Vec::new(),
            warnings: Vec::new(),
            stream: None,
        }
    }
}

impl Executor<'_> {
    fn request(&mut self, request: PlanWithLets) -> Result<Answer> {
        if let StatementPlan::Explain(plan) = &request.plan {
            return self.explain(plan, &request.lets);
        }
        self.bind_lets(&request.lets);
        self.statement(request.plan)
    }

    fn statement(&mut self, plan: StatementPlan) -> Result<Answer> {
        match plan {
            StatementPlan::Recall(plan) => self.recall(&plan),
            StatementPlan::Assemble(plan) => self.assemble(plan),
            StatementPlan::Set(plan) => self.set_operation(&plan),
            StatementPlan::Explain(plan) => self.explain(&plan, &[]),
            StatementPlan::Describe(target) => self.describe(&target),
            StatementPlan::Batch(entries) => self.batch(entries),
            StatementPlan::Coalesce(branches) => self.coalesce(&branches),
            StatementPlan::Exists(prefix) => self.exists(&prefix),
            StatementPlan::History(plan) => self.history(plan),
            StatementPlan::Add(plan) => self.add(&plan),
            StatementPlan::Supersede(plan) => self.supersede(plan),
            StatementPlan::Revert(plan) => self.revert(&plan),
            StatementPlan::Define(plan) => self.define(plan),
        }
    }

    fn exists(&self, prefix: &Spanned<HashPrefix>) -> Result<Answer> {
        let exists = match self.memory.locate(&prefix.node)? {
            PrefixMatch::One(address) => self.memory.exists(&address)?,
            PrefixMatch::Nothing | PrefixMatch::Elsewhere => false,
            PrefixMatch::Several => return Err(check::ambiguous(prefix)),
        };
        Ok(Answer::Exists { exists })
    }

    fn warn(&mut self, code: &'static str, message: &str) {
        self.warnings.push(Warning { code, message: message.to_owned() });
    }

    /// Asks the gate whether this grain may be returned with all its fields.
    fn check_whole_grain(&self, grain: &Grain) -> Result<()> {
        match self.options.gate {
            Some(gate) => Ok(gate.admit_whole_grain(grain)?),
            None => Ok(()),
        }
    }

    /// Checks for cancellation and the deadline.
    ///
    /// # Errors
    /// E082 once the host cancelled, E031 once time is up, of an ASSEMBLE E075.
    fn check_stop(&self) -> Result<()> {
        self.cancel.check().map_err(self.stop_error)
    }

    /// Counts grains read.
    fn count_scanned(&mut self, grains: u64) {
        self.usage.grains_scanned = self.usage.grains_scanned.saturating_add(grains);
    }

    /// Counts grains returned.
    fn count_returned(&mut self, grains: usize) {
        self.usage.grains_returned = self.usage.grains_returned.saturating_add(count(grains));
    }

    /// Counts bytes of grains that stay in memory until the statement ends.
    ///
    /// # Errors
    /// E030 if they exceed what a statement may hold.
    fn reserve_bytes(&mut self, bytes: usize) -> Result<()> {
        let held = self.held_bytes.saturating_add(bytes);
        if held > self.max_held_bytes {
            return Err(collector::memory_exceeded());
        }
        self.held_bytes = held;
        Ok(())
    }

    /// Returns the bytes that it may still take.
    fn free_bytes(&self) -> usize {
        self.max_held_bytes.saturating_sub(self.held_bytes)
    }

    /// Counts bytes that were freed.
    fn release_bytes(&mut self, bytes: usize) {
        self.held_bytes = self.held_bytes.saturating_sub(bytes);
    }

    fn clock(&self, iso_timestamps: bool) -> Clock {
        Clock { now: self.options.now, iso_timestamps }
    }
}

/// Converts a length to the integer type of the envelope.
fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "exec_tests.rs"]
mod tests;

#[cfg(test)]
mod code_tests;
#[cfg(test)]
mod gate_tests;
#[cfg(test)]
mod history_tests;
#[cfg(test)]
mod option_tests;
#[cfg(test)]
mod parallel_tests;
#[cfg(test)]
mod search_tests;
#[cfg(test)]
mod stream_tests;
#[cfg(test)]
#[path = "structure_tests.rs"]
mod structure_tests;
#[cfg(test)]
mod template_tests;
#[cfg(test)]
mod write_tests;
