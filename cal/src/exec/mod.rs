//! Plans to answers, over a [`Memory`] and nothing else (spec sections 5 and 7).

mod ahead;
mod assemble;
mod contradict;
mod describe;
mod evolve;
mod explain;
mod fold;
mod history;
mod listed;
mod part;
mod prepare;
mod project;
mod ready;
mod recall;
mod revert;
mod rows;
mod setop;
mod several;
mod show;
mod size;
mod sources;
mod stream;
mod template;
mod value;
mod walk;

use std::sync::Arc;
use std::time::{Duration, Instant};

use grainstore_format::{ContentAddress, EpochMs, Grain};
use grainstore_sml::{Clock, Estimator, TokenCounter};

use crate::ast::{Format, Statement, StatementType};
use crate::cancel::{Cancel, Stop};
use crate::check::plan::{Plan, RequestPlan};
use crate::check::{self, Context};
use crate::codes::{self, ErrorKind, Warning};
use crate::error::{Error, Result};
use crate::event::Listener;
use crate::expansion::Expansion;
use crate::gate::{Admission, Gate};
use crate::limits;
use crate::memory::{HashPrefix, Located, Memory};
use crate::mend;
use crate::params::Params;
use crate::parse::Refused;
use crate::print;
use crate::response::{Answer, Meta, Response, Usage};
use crate::source::Source;
use crate::span::Spanned;
use crate::writes::Writes;
use ready::Bound;
use stream::Stream;

pub use prepare::{Preparation, prepare};

/// How far statements may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tier {
    /// Tier 0: read.
    #[default]
    Read,
    /// Tier 1: read, add, supersede and revert.
    Evolve,
}

/// What a host says about one request.
#[derive(Clone)]
pub struct Options<'o> {
    /// The present, against which phrases are resolved and writes are dated.
    pub now: EpochMs,
    /// How far the statement may go.
    pub tier: Tier,
    /// Values for parameters.
    pub params: Params,
    /// The format of a RECALL in place of its AS, and of an ASSEMBLE in place of its FORMAT; W004 where
    /// the answer has no text.
    pub as_format: Option<Format>,
    /// Auto-TOON: an ASSEMBLE with a BUDGET but no FORMAT is written as toon, with W005, where the
    /// text would take more than 85 % of the budget and each source is of one type.
    pub auto_toon: bool,
    /// How far what is linked to the best answers of a RECALL is an answer too: the language has no
    /// word for it. Statements that have recalls within them are as they are without.
    pub expansion: Option<Expansion>,
    /// Counts all matches of a RECALL that shows fewer, up to a thousand; otherwise `total` may stay
    /// unknown.
    pub totals: bool,
    /// The host's handle to stop it.
    pub cancel: Cancel,
    /// How long the listener of a streamed ASSEMBLE may take for its events, all together, before it takes
    /// from the time of the statement: 60 seconds. The statement keeps its view of the store meanwhile.
    pub patience: Duration,
    /// Counts tokens.
    pub counter: &'o dyn TokenCounter,
    /// The most grains a RECALL gives that names no number, where the host wants fewer than CAL does.
    pub few: Option<u64>,
    /// Asked before a statement runs, and about each whole grain it gives out.
    pub gate: Option<&'o dyn Gate>,
    /// The grain that the target of a SUPERSEDE stood for when the statement was prepared: it is
    /// this one that is replaced, whatever its prefix would find now.
    pub pinned: Option<ContentAddress>,
    /// The threads and the bytes that a test gives a statement.
    #[cfg(test)]
    pub(crate) given: Given,
}

/// Threads that may work at once, and bytes that a statement may hold, where a test says so.
#[cfg(test)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Given {
    pub(crate) threads: Option<usize>,
    pub(crate) row_bytes: Option<usize>,
}

impl Options<'_> {
    /// Reading at `now`, without parameters, totals counted, with the default token counter.
    #[must_use]
    pub fn at(now: EpochMs) -> Self {
        Self {
            now,
            tier: Tier::Read,
            params: Params::new(),
            as_format: None,
            auto_toon: false,
            expansion: None,
            totals: true,
            cancel: Cancel::new(),
            patience: limits::PATIENCE,
            counter: &Estimator,
            few: None,
            gate: None,
            pinned: None,
            #[cfg(test)]
            given: Given::default(),
        }
    }
}

impl Options<'_> {
    /// Bytes that the grains of a statement may take at once.
    fn row_bytes(&self) -> usize {
        #[cfg(test)]
        if let Some(bytes) = self.given.row_bytes {
            return bytes;
        }
        limits::ROW_BYTES
    }
}

/// Parses, checks and runs one query, in text or JSON.
///
/// `writes` is the host's, kept across the requests of a session.
///
/// # Errors
/// The first error of any phase, located in `source`; refusals of the memory keep their `ERR_` code.
pub fn execute(
    memory: &dyn Memory,
    source: &str,
    options: &Options<'_>,
    writes: &Writes,
) -> Result<Response> {
    let started = Instant::now();
    run(memory, &Source::read(source)?, options, writes, started, None)
}

/// The same for a query given as bytes.
///
/// # Errors
/// E070 when they are not UTF-8, else as [`execute`].
pub fn execute_bytes(
    memory: &dyn Memory,
    source: &[u8],
    options: &Options<'_>,
    writes: &Writes,
) -> Result<Response> {
    let started = Instant::now();
    run(memory, &read_bytes(source)?, options, writes, started, None)
}

/// Runs an ASSEMBLE and tells of it while it is put together, as its STREAM asks; without STREAM
/// everything. The answer is the whole one.
///
/// # Errors
/// E079 for any other statement, else as [`execute_bytes`]. What is refused before
/// [`Listener::begins`] has no events; after it the last event tells of the same error.
pub fn stream(
    memory: &dyn Memory,
    source: &[u8],
    options: &Options<'_>,
    writes: &Writes,
    listener: &mut dyn Listener,
) -> Result<Response> {
    let started = Instant::now();
    run(memory, &read_bytes(source)?, options, writes, started, Some(listener))
}

/// A query given as bytes.
fn read_bytes(source: &[u8]) -> Result<Source<'_>> {
    let meant = |error| match std::str::from_utf8(source) {
        Ok(text) => mend::mended(error, text),
        Err(_) => error,
    };
    Source::read_bytes(source).map_err(meant)
}

fn run(
    memory: &dyn Memory,
    source: &Source<'_>,
    options: &Options<'_>,
    writes: &Writes,
    started: Instant,
    listener: Option<&mut dyn Listener>,
) -> Result<Response> {
    let parsed = source.forgiving().map_err(|error| source.mended(error))?;
    let place = parsed.0.place();
    let answer = run_statement(memory, source, parsed, options, writes, started, listener);
    answer.map_err(|error| source.mended(source.locate(error.within(place))))
}

fn run_statement(
    memory: &dyn Memory,
    source: &Source<'_>,
    (statement, refused): (Statement<'_>, Vec<Refused<'_>>),
    options: &Options<'_>,
    writes: &Writes,
    started: Instant,
    listener: Option<&mut dyn Listener>,
) -> Result<Response> {
    let query_hash = print::query_hash(&statement, &refused);
    let Admitted { mut plan, warnings, consistency, cache } =
        admitted(memory, &statement, options, false)?;
    if let (Some(pinned), Some(target)) = (options.pinned, plan.plan.target()) {
        target.node = HashPrefix::of(&pinned);
    }
    if let Plan::Batch(entries) = &mut plan.plan {
        for Refused { at, label, error, .. } in refused {
            let slot = Spanned::new(label.node.to_owned(), label.span);
            entries.insert(at.min(entries.len()), (slot, Err(error)));
        }
    }
    let mut run = Run::new(memory, source, &plan.plan, options, writes);
    run.warnings = warnings;
    run.listen(&plan.plan, listener, &query_hash)?;
    let answer = run.request(plan).inspect_err(|error| run.tell_end(error))?;
    if options.as_format.is_some() && !answer.has_text() {
        run.warn(codes::IGNORED_OPTION, NO_TEXT);
    }
    let meta = Meta {
        version: "1.0",
        statement_type: statement.statement_type(),
        tier: tier_of(&statement, options.tier),
        query_hash,
        duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        budget: run.used,
        consistency: consistency.then_some("linearizable"),
        cache: cache.then_some("fresh"),
        warnings: run.warnings,
    };
    Ok(Response { meta, answer })
}

/// What is said of a format for an answer that is no text.
const NO_TEXT: &str = "the format that was asked for beside the statement did nothing: this answer is no list of whole grains";

/// A statement that may run.
struct Admitted {
    plan: RequestPlan,
    warnings: Vec<Warning>,
    /// Whether it says how fresh its answer must be.
    consistency: bool,
    /// Whether an answer that is kept would have done.
    cache: bool,
}

/// Checks a statement, and asks whether it may run: its tier, and the host's gate.
///
/// # Errors
/// The first rule broken; E044; what the gate says.
fn admitted(
    memory: &dyn Memory,
    statement: &Statement<'_>,
    options: &Options<'_>,
    explains: bool,
) -> Result<Admitted> {
    let reads_text = options.gate.is_some_and(Gate::reads_text);
    let explains = explains || statement.statement_type() == StatementType::Explain;
    let mut context = Context::new(memory, &options.params, options.now, explains || reads_text);
    context.few = options.few;
    context.formats = options.as_format.is_some();
    let mut plan = check::check(statement, &mut context)?;
    if let Plan::Recall(recall) = &mut plan.plan {
        recall.query.expansion = options.expansion;
    }
    let place = statement.place();
    if statement.tier() > 0 && options.tier == Tier::Read {
        let error = Error::new(ErrorKind::TierDisabled, "this session reads only");
        return Err(error.at(place));
    }
    if let Some(gate) = options.gate {
        let tier = tier_of(statement, options.tier);
        let admission = Admission::of(statement, tier, &plan, reads_text);
        gate.admit(&admission).map_err(|error| Error::from(error).at(place))?;
    }
    let Context { warnings, consistency, cache, .. } = context;
    Ok(Admitted { plan, warnings, consistency, cache })
}

/// The tier a statement runs in: DEFINE TEMPLATE in the one it is asked for, others in the one they need.
pub(crate) fn tier_of(statement: &Statement<'_>, asked: Tier) -> u8 {
    match (statement.statement_type(), asked) {
        (StatementType::DefineTemplate, Tier::Evolve) => 1,
        _ => statement.tier(),
    }
}

/// One statement while it runs.
struct Run<'r> {
    memory: &'r dyn Memory,
    /// The query as it was sent, for the places of errors that stay inside an answer.
    source: &'r Source<'r>,
    options: &'r Options<'r>,
    writes: &'r Writes,
    cancel: Cancel,
    /// What a statement of its kind says when it is stopped.
    stopped: fn(Stop) -> Error,
    used: Usage,
    /// Bytes of memory that the grains take that it holds, and how many they may.
    held: usize,
    most_held: usize,
    /// What the LETs in scope stand for.
    lets: Vec<Arc<Bound>>,
    /// What the caller should know.
    warnings: Vec<Warning>,
    /// Who listens to it.
    stream: Option<Stream<'r>>,
}

impl<'r> Run<'r> {
    fn new(
        memory: &'r dyn Memory,
        source: &'r Source<'r>,
        plan: &Plan,
        options: &'r Options<'r>,
        writes: &'r Writes,
    ) -> Self {
        let (time, stopped): (_, fn(Stop) -> Error) = match plan {
            Plan::Assemble(_) => (limits::ASSEMBLE_TIME, assemble::stopped),
            _ => (limits::QUERY_TIME, Error::from),
        };
        Self {
            memory,
            source,
            options,
            writes,
            cancel: options.cancel.within(time),
            stopped,
            used: Usage::default(),
            held: 0,
            most_held: options.row_bytes(),
            lets: Vec::new(),
            warnings: Vec::new(),
            stream: None,
        }
    }
}

impl Run<'_> {
    fn request(&mut self, request: RequestPlan) -> Result<Answer> {
        if let Plan::Explain(plan) = &request.plan {
            return self.explain(plan, &request.lets);
        }
        self.bind(&request.lets);
        self.statement(request.plan)
    }

    fn statement(&mut self, plan: Plan) -> Result<Answer> {
        match plan {
            Plan::Recall(plan) => self.recall(&plan),
            Plan::Assemble(plan) => self.assemble(plan),
            Plan::Set(plan) => self.set_operation(&plan),
            Plan::Explain(plan) => self.explain(&plan, &[]),
            Plan::Describe(target) => self.describe(&target),
            Plan::Batch(entries) => self.batch(entries),
            Plan::Coalesce(branches) => self.coalesce(&branches),
            Plan::Exists(prefix) => self.exists(&prefix),
            Plan::History(plan) => self.history(plan),
            Plan::Add(plan) => self.add(&plan),
            Plan::Supersede(plan) => self.supersede(plan),
            Plan::Revert(plan) => self.revert(&plan),
            Plan::Define(plan) => self.define(plan),
        }
    }

    fn exists(&self, prefix: &Spanned<HashPrefix>) -> Result<Answer> {
        let exists = match self.memory.locate(&prefix.node)? {
            Located::One(address) => self.memory.exists(&address)?,
            Located::Nothing | Located::Elsewhere => false,
            Located::Several => return Err(check::ambiguous(prefix)),
        };
        Ok(Answer::Exists { exists })
    }

    fn warn(&mut self, code: &'static str, message: &str) {
        self.warnings.push(Warning { code, message: message.to_owned() });
    }

    /// Asks the gate about a grain that is given out with all its fields.
    fn gives_whole(&self, grain: &Grain) -> Result<()> {
        match self.options.gate {
            Some(gate) => Ok(gate.gives_whole(grain)?),
            None => Ok(()),
        }
    }

    /// Whether to go on.
    ///
    /// # Errors
    /// E082 once the host cancelled, E031 or of an ASSEMBLE E075 once time is up.
    fn go_on(&self) -> Result<()> {
        self.cancel.check().map_err(self.stopped)
    }

    /// Counts grains looked at.
    fn scanned(&mut self, grains: u64) {
        self.used.grains_scanned = self.used.grains_scanned.saturating_add(grains);
    }

    /// Counts grains answered.
    fn returned(&mut self, grains: usize) {
        self.used.grains_returned = self.used.grains_returned.saturating_add(count(grains));
    }

    /// Counts bytes of grains that stay in memory until the statement ends.
    ///
    /// # Errors
    /// E030 when they are more than a statement may hold.
    fn hold(&mut self, bytes: usize) -> Result<()> {
        let held = self.held.saturating_add(bytes);
        if held > self.most_held {
            return Err(walk::too_many());
        }
        self.held = held;
        Ok(())
    }

    /// Bytes that it may hold beside what it holds.
    fn room(&self) -> usize {
        self.most_held.saturating_sub(self.held)
    }

    /// Counts bytes that are not held any longer.
    fn release(&mut self, bytes: usize) {
        self.held = self.held.saturating_sub(bytes);
    }

    fn clock(&self, iso_timestamps: bool) -> Clock {
        Clock { now: self.options.now, iso_timestamps }
    }
}

/// A length as the envelope counts.
fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "exec_tests.rs"]
mod tests;

#[cfg(test)]
mod ahead_tests;
#[cfg(test)]
mod code_tests;
#[cfg(test)]
mod gate_tests;
#[cfg(test)]
mod history_tests;
#[cfg(test)]
mod option_tests;
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
