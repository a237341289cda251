//! Checked statements, ready to run: without syntax, parameters or time phrases.

use std::borrow::Cow;
use std::fmt;

use grainstore_format::{ContentAddress, GrainType, Map};
use grainstore_sml::{Budget, Disclosure, RowFormat, Template};

use crate::ast::{Describe, Extractor, Format, SetOperator, StatementType};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::fields::FieldRef;
use crate::limits;
use crate::memory::HashPrefix;
use crate::query::Query;
use crate::search::Diversity;
use crate::span::{Span, Spanned};

/// A checked query: its LETs in order, then its statement.
pub(crate) struct PlanWithLets {
    pub(crate) lets: Vec<LetPlan>,
    pub(crate) plan: StatementPlan,
}

/// A checked LET.
pub(crate) struct LetPlan {
    pub(crate) name: String,
    pub(crate) recall: RecallPlan,
    /// The value it extracts from each grain; `None` keeps the grains.
    pub(crate) extract: Option<Extractor>,
}

/// A checked statement.
pub(crate) enum StatementPlan {
    Recall(Box<RecallPlan>),
    Assemble(AssemblePlan),
    Set(Box<SetPlan>),
    Exists(Spanned<HashPrefix>),
    History(HistoryPlan),
    Explain(Box<ExplainPlan>),
    Describe(Describe),
    /// A refused entry keeps its error.
    Batch(Vec<(Spanned<String>, Result<StatementPlan>)>),
    Coalesce(Vec<RecallPlan>),
    Add(AddPlan),
    Supersede(SupersedePlan),
    Revert(RevertPlan),
    /// DEFINE TEMPLATE, a request beside the statements.
    Define(DefinePlan),
}

/// A set operation.
pub(crate) struct SetPlan {
    pub(crate) left: PlanWithLets,
    pub(crate) operator: SetOperator,
    pub(crate) right: PlanWithLets,
}

/// An EXPLAIN, with the statement that does not run.
pub(crate) struct ExplainPlan {
    pub(crate) statement: String,
    pub(crate) statement_type: StatementType,
    pub(crate) tier: u8,
    pub(crate) plan: StatementPlan,
}

/// A RECALL: query, pipeline, and presentation of the grains.
pub(crate) struct RecallPlan {
    pub(crate) query: Query,
    /// ABOUT: the text to search for if no grain has it as its subject.
    pub(crate) fallback_search: Option<String>,
    /// Conditions whose values come from a LET or another RECALL.
    pub(crate) feeds: Vec<DeferredIn>,
    /// THREAD FROM: the message whose whole thread is recalled.
    pub(crate) thread: Option<ThreadTarget>,
    /// The stages of the pipeline in order, defaults included.
    pub(crate) steps: Vec<PipelineStep>,
    /// True if the last step is the default LIMIT.
    pub(crate) limited_by_default: bool,
    /// The form of the answer.
    pub(crate) output: PipelineOutput,
    /// SELECT: the fields shown of each grain; `None` shows all.
    pub(crate) select: Option<Vec<FieldRef>>,
    /// PROJECT: the fields shown in text, in place of those of the type.
    pub(crate) project: Option<ProjectPlan>,
    /// The grain type it names.
    pub(crate) grain_type: Option<GrainType>,
    /// CAL names of the fields the query compares.
    pub(crate) matched_fields: Vec<Cow<'static, str>>,
    /// AS of whole grains.
    pub(crate) format: Option<Format>,
    /// AS of what SELECT, COUNT, GROUP BY and the extractors answer.
    pub(crate) rows: Option<RowFormat>,
    pub(crate) show: DisplayOptions,
    /// The statement without shortcuts, if it will be shown.
    pub(crate) desugared: Option<String>,
}

/// The fields that PROJECT shows of a grain.
pub(crate) struct ProjectPlan {
    pub(crate) place: Span,
    /// Fields of the content; `None` keeps those of the type.
    pub(crate) content: Option<Vec<ProjectedField>>,
    pub(crate) attr: Vec<ProjectedField>,
}

/// One field that PROJECT shows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ProjectedField {
    Field(FieldRef),
    /// An SML attribute.
    Attribute(&'static str),
    /// A field of a domain profile, with its prefix.
    Domain(String),
    Payload(String),
}

impl ProjectedField {
    /// Returns its name in the text.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Field(field) => field.name,
            Self::Attribute(name) => name,
            Self::Domain(name) | Self::Payload(name) => name,
        }
    }
}

/// `field IN (...)` with values that are determined when the plan runs.
pub(crate) struct DeferredIn {
    pub(crate) field: FieldRef,
    pub(crate) place: Span,
    pub(crate) from: DeferredValues,
}

/// The origin of the values of an IN.
pub(crate) enum DeferredValues {
    Recall(Box<RecallPlan>, Extractor),
    /// Its index among the LETs in scope.
    Let(usize),
}

/// The message of THREAD FROM; `address` is `None` if the prefix matches no grain.
pub(crate) struct ThreadTarget {
    pub(crate) message: Spanned<HashPrefix>,
    pub(crate) address: Option<ContentAddress>,
}

/// One step of the pipeline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum PipelineStep {
    Sort(SortKey),
    /// Keeps the first grain for each value of the field.
    Dedup(FieldRef),
    Skip(u64),
    Take(u64),
}

/// The form of a pipeline's answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum PipelineOutput {
    Grains,
    Count,
    Values(Extractor),
    Groups(FieldRef),
}

/// A field to sort by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SortKey {
    pub(crate) field: FieldRef,
    pub(crate) descending: bool,
}

impl SortKey {
    /// Returns `true` for `time`, the order in which memories visit grains.
    pub(crate) fn is_by_time(&self) -> bool {
        self.field.name == "time"
    }
}

/// Presentation options of grains.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DisplayOptions {
    /// WITH superseded: each result has its state.
    pub(crate) state: bool,
    /// WITH score_breakdown.
    pub(crate) score_breakdown: bool,
    /// WITH explanation.
    pub(crate) explanation: bool,
    /// WITH total: all matches are counted.
    pub(crate) total: bool,
    /// WITH provenance.
    pub(crate) provenance: bool,
    /// WITH contradiction_detection.
    pub(crate) contradictions: bool,
    /// WITH progressive_disclosure.
    pub(crate) disclosure: Option<Disclosure>,
    /// WITH iso_timestamps.
    pub(crate) iso_timestamps: bool,
    /// WITH summarize.
    pub(crate) summarize: bool,
    /// WITH diversity.
    pub(crate) diversity: Option<Diversity>,
    /// WITH dedup(field).
    pub(crate) dedup: Option<FieldRef>,
    /// For a source: the enclosing ASSEMBLE asks for data about each grain.
    pub(crate) assemble_adds_metadata: bool,
}

impl DisplayOptions {
    /// Returns `true` if data is added to each grain beside its content.
    pub(crate) fn adds_grain_metadata(&self) -> bool {
        self.state
            || self.score_breakdown
            || self.explanation
            || self.provenance
            || self.contradictions
    }
}

/// An ASSEMBLE.
pub(crate) struct AssemblePlan {
    pub(crate) name: Option<String>,
    pub(crate) intent: Option<String>,
    pub(crate) sources: Vec<SourcePlan>,
    /// Indexes of the sources, highest priority first, each once.
    pub(crate) priority: Vec<usize>,
    pub(crate) budget: Budget,
    /// FORMAT, if written.
    pub(crate) format: Option<Format>,
    /// FORMAT TEMPLATE, if written.
    pub(crate) template: Option<Template>,
    /// True if BUDGET was written.
    pub(crate) has_budget_clause: bool,
    pub(crate) stream: StreamPlan,
    pub(crate) show: DisplayOptions,
}

/// The events of an ASSEMBLE that are sent if the host streams it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamPlan {
    /// True if STREAM was written.
    pub(crate) has_stream_clause: bool,
    /// Start and end of the assembly and of its sources.
    pub(crate) progress: bool,
    /// Deduplication, budget shares, disclosure levels.
    pub(crate) budget: bool,
    /// The text.
    pub(crate) chunks: bool,
    /// Maximum tokens of a chunk.
    pub(crate) chunk_tokens: usize,
}

impl Default for StreamPlan {
    /// No events.
    fn default() -> Self {
        let chunk_tokens = limits::DEFAULT_CHUNK_TOKENS;
        Self {
            has_stream_clause: false,
            progress: false,
            budget: false,
            chunks: false,
            chunk_tokens,
        }
    }
}

/// Prints the effective options, as STREAM lists them.
impl fmt::Display for StreamPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let asked = [("progress", self.progress), ("budget", self.budget), ("chunks", self.chunks)];
        for (name, _) in asked.iter().filter(|(_, asked)| *asked) {
            write!(f, "{name}, ")?;
        }
        write!(f, "chunk_size = {}", self.chunk_tokens)
    }
}

impl StreamPlan {
    /// Selects every event.
    pub(crate) fn select_all(&mut self) {
        (self.progress, self.budget, self.chunks) = (true, true, true);
    }
}

/// One source of an ASSEMBLE.
pub(crate) struct SourcePlan {
    pub(crate) label: String,
    pub(crate) from: SourceInput,
}

/// The origin of a source's grains.
pub(crate) enum SourceInput {
    Recall(Box<RecallPlan>),
    /// Its index among the LETs in scope, and the number of grains that LET asks for.
    Let(usize, u64),
}

/// The type of a source's grains, as far as known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SourceGrainType {
    Named(GrainType),
    Any,
    FromLet,
}

/// A HISTORY.
pub(crate) enum HistoryPlan {
    ByHash(Spanned<HashPrefix>),
    Diff(Spanned<HashPrefix>, Spanned<HashPrefix>),
    Triple(Box<Query>),
}

/// An ADD: the fields that were set, under payload names.
pub(crate) struct AddPlan {
    /// Span of the type name.
    pub(crate) place: Span,
    pub(crate) grain_type: GrainType,
    pub(crate) fields: Map,
    /// Goals that the new goal depends on.
    pub(crate) depends_on: Vec<ContentAddress>,
    pub(crate) reason: String,
}

/// A SUPERSEDE: the fields to replace, under payload names.
pub(crate) struct SupersedePlan {
    pub(crate) target: Spanned<HashPrefix>,
    pub(crate) fields: Map,
    pub(crate) reason: String,
}

/// A REVERT: the version whose predecessor becomes current again in a new grain.
pub(crate) struct RevertPlan {
    pub(crate) target: Spanned<HashPrefix>,
    pub(crate) reason: String,
}

/// A DEFINE TEMPLATE whose texts are valid.
pub(crate) struct DefinePlan {
    pub(crate) name: Spanned<String>,
    /// The preset it extends, if written.
    pub(crate) extends: Option<String>,
    /// The definition in normal form.
    pub(crate) text: String,
}

impl StatementPlan {
    /// Returns the grain that the statement replaces, as it was named.
    pub(crate) fn target(&mut self) -> Option<&mut Spanned<HashPrefix>> {
        match self {
            Self::Supersede(plan) => Some(&mut plan.target),
            Self::Revert(plan) => Some(&mut plan.target),
            Self::Recall(_)
            | Self::Assemble(_)
            | Self::Set(_)
            | Self::Exists(_)
            | Self::History(_)
            | Self::Explain(_)
            | Self::Describe(_)
            | Self::Batch(_)
            | Self::Coalesce(_)
            | Self::Add(_)
            | Self::Define(_) => None,
        }
    }
}

impl SourceInput {
    /// Returns the type it names; a LET was checked by itself.
    pub(crate) fn grain_type(&self) -> SourceGrainType {
        match self {
            Self::Recall(plan) => {
                plan.grain_type.map_or(SourceGrainType::Any, SourceGrainType::Named)
            }
            Self::Let(..) => SourceGrainType::FromLet,
        }
    }

    /// Returns its PROJECT.
    pub(crate) fn project(&self) -> Option<&ProjectPlan> {
        match self {
            Self::Recall(plan) => plan.project.as_ref(),
            Self::Let(..) => None,
        }
    }

    /// Returns the number of grains it asks for.
    pub(crate) fn requested_grains(&self) -> u64 {
        match self {
            Self::Recall(plan) => plan.requested_grains(),
            Self::Let(_, asked) => *asked,
        }
    }
}

impl RecallPlan {
    /// Returns the steps to apply to the grains of a query. A leading sort by time is left out, because
    /// memories visit in that order anyway; a search visits best first, so it stays.
    pub(crate) fn steps_after(&self, query: &Query) -> &[PipelineStep] {
        match self.steps.split_first() {
            Some((PipelineStep::Sort(key), rest))
                if key.is_by_time() && query.search().is_none() =>
            {
                rest
            }
            _ => &self.steps,
        }
    }

    /// Returns the number of grains it asks for; `u64::MAX` without a limit.
    pub(crate) fn requested_grains(&self) -> u64 {
        let takes = self.steps.iter().filter_map(|step| match step {
            PipelineStep::Take(count) => Some(*count),
            _ => None,
        });
        takes.min().unwrap_or(u64::MAX)
    }

    /// Checks that AS, PROJECT and options that shape text are absent where the text would not be shown:
    /// E021.
    pub(crate) fn require_no_display(&self, outer: &str, place: Span) -> Result<()> {
        let of_project = self
            .project
            .as_ref()
            .map(|project| ("PROJECT shapes shown grains", "drop PROJECT", project.place));
        let told = [
            (self.show.summarize, "summarize is about shown grains", "drop summarize"),
            (self.format.is_some() || self.rows.is_some(), "AS shows grains", "drop AS"),
            (
                self.show.disclosure.is_some(),
                "progressive_disclosure shapes their text",
                "drop progressive_disclosure",
            ),
            (self.show.iso_timestamps, "iso_timestamps shapes their text", "drop iso_timestamps"),
        ];
        let of_options = told.into_iter().find(|(is_there, ..)| *is_there);
        let found = of_project.or(of_options.map(|(_, what, advice)| (what, advice, place)));
        let Some((what, advice, place)) = found else { return Ok(()) };
        let message = format!("{what}, those of {outer} go elsewhere");
        Err(Error::new(ErrorKind::WrongStage, message).at(place).suggest(advice))
    }

    /// Removes the default LIMIT.
    pub(crate) fn drop_default_limit(&mut self) {
        if std::mem::take(&mut self.limited_by_default) {
            self.steps.pop();
        }
    }

    /// Checks that a RECALL inside `outer` yields whole grains, without data beside them.
    ///
    /// # Errors
    /// E021 otherwise.
    pub(crate) fn require_whole_grains(&self, outer: &str, place: Span) -> Result<()> {
        let show = &self.show;
        let beside = show.explanation || show.provenance || show.score_breakdown || show.total;
        let (what, advice) = match (self.output, &self.select) {
            (PipelineOutput::Count, _) => ("COUNT answers a number", "drop COUNT"),
            (PipelineOutput::Values(_), _) => ("an extractor answers values", "drop the extractor"),
            (PipelineOutput::Groups(_), _) => ("GROUP BY answers groups", "drop GROUP BY"),
            (PipelineOutput::Grains, Some(_)) => ("SELECT shows parts of them", "drop SELECT"),
            (PipelineOutput::Grains, None) if beside => (
                "what is told beside them is not shown",
                "drop explanation, provenance, score_breakdown and total",
            ),
            (PipelineOutput::Grains, None) => return Ok(()),
        };
        let message = format!("{outer} yields whole grains, {what}");
        Err(Error::new(ErrorKind::WrongStage, message).at(place).suggest(advice))
    }
}
