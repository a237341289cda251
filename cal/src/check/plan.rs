//! Checked statements, ready to run: no syntax, no parameters, no phrases.

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
pub(crate) struct RequestPlan {
    pub(crate) lets: Vec<LetPlan>,
    pub(crate) plan: Plan,
}

/// A LET.
pub(crate) struct LetPlan {
    pub(crate) name: String,
    pub(crate) recall: RecallPlan,
    /// What it takes out of each grain; none keeps the grains.
    pub(crate) extract: Option<Extractor>,
}

/// A checked statement.
pub(crate) enum Plan {
    Recall(Box<RecallPlan>),
    Assemble(AssemblePlan),
    Set(Box<SetPlan>),
    Exists(Spanned<HashPrefix>),
    History(HistoryPlan),
    Explain(Box<ExplainPlan>),
    Describe(Describe),
    /// An entry that was refused keeps its error.
    Batch(Vec<(Spanned<String>, Result<Plan>)>),
    Coalesce(Vec<RecallPlan>),
    Add(AddPlan),
    Supersede(SupersedePlan),
    Revert(RevertPlan),
    /// DEFINE TEMPLATE, which is no statement.
    Define(DefinePlan),
}

/// A set operation.
pub(crate) struct SetPlan {
    pub(crate) left: RequestPlan,
    pub(crate) operator: SetOperator,
    pub(crate) right: RequestPlan,
}

/// An EXPLAIN: the statement that does not run.
pub(crate) struct ExplainPlan {
    pub(crate) statement: String,
    pub(crate) statement_type: StatementType,
    pub(crate) tier: u8,
    pub(crate) plan: Plan,
}

/// A RECALL: what to look for, what to do with it, how to show it.
pub(crate) struct RecallPlan {
    pub(crate) query: Query,
    /// ABOUT: the text to search for where no grain has it as its subject.
    pub(crate) otherwise: Option<String>,
    /// Conditions that wait for what another RECALL finds.
    pub(crate) feeds: Vec<Feed>,
    /// THREAD FROM: the message whose whole thread is meant.
    pub(crate) thread: Option<ThreadOf>,
    /// The pipeline in order, defaults included.
    pub(crate) steps: Vec<Step>,
    /// Whether the last step is the LIMIT nobody wrote.
    pub(crate) limited_by_default: bool,
    /// What becomes of the grains at its end.
    pub(crate) end: End,
    /// SELECT: the fields shown of each grain; none shows all.
    pub(crate) select: Option<Vec<FieldRef>>,
    /// PROJECT: what is shown of each grain in place of what its type shows.
    pub(crate) project: Option<ProjectPlan>,
    /// The type it names.
    pub(crate) grain_type: Option<GrainType>,
    /// The fields the query asks about.
    pub(crate) matched_fields: Vec<Cow<'static, str>>,
    /// AS of whole grains.
    pub(crate) format: Option<Format>,
    /// AS of what SELECT, COUNT, GROUP BY and the extractors answer.
    pub(crate) rows: Option<RowFormat>,
    pub(crate) show: Show,
    /// The statement without shortcuts, where someone wants to see it.
    pub(crate) desugared: Option<String>,
}

/// What is shown of a grain.
pub(crate) struct ProjectPlan {
    pub(crate) place: Span,
    /// Its text; none keeps that of the type.
    pub(crate) content: Option<Vec<Projected>>,
    pub(crate) attr: Vec<Projected>,
}

/// One value that is shown of a grain.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Projected {
    Field(FieldRef),
    /// What types show under this name.
    Attribute(&'static str),
    /// A field of a domain profile, prefix included.
    Domain(String),
    Payload(String),
}

impl Projected {
    /// The name it has where it is shown.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Field(field) => field.name,
            Self::Attribute(name) => name,
            Self::Domain(name) | Self::Payload(name) => name,
        }
    }
}

/// `field IN (...)` with values that are found first.
pub(crate) struct Feed {
    pub(crate) field: FieldRef,
    pub(crate) place: Span,
    pub(crate) from: FeedFrom,
}

/// Where the values of a [`Feed`] come from.
pub(crate) enum FeedFrom {
    Recall(Box<RecallPlan>, Extractor),
    /// Its place among the LETs in scope.
    Let(usize),
}

/// The message of THREAD FROM; no address where the prefix leads nowhere.
pub(crate) struct ThreadOf {
    pub(crate) message: Spanned<HashPrefix>,
    pub(crate) address: Option<ContentAddress>,
}

/// One step of the pipeline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Step {
    Sort(SortKey),
    /// One grain a value of the field, the first.
    Dedup(FieldRef),
    Skip(u64),
    Take(u64),
}

/// What a pipeline answers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum End {
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
    /// Whether it is the time of a grain, which memories visit by.
    pub(crate) fn is_by_time(&self) -> bool {
        self.field.name == "time"
    }
}

/// How grains are shown.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Show {
    /// WITH superseded: each result tells its state.
    pub(crate) state: bool,
    /// WITH score_breakdown.
    pub(crate) score_breakdown: bool,
    /// WITH explanation.
    pub(crate) explanation: bool,
    /// WITH provenance.
    pub(crate) provenance: bool,
    /// WITH contradiction_detection.
    pub(crate) contradictions: bool,
    /// WITH progressive_disclosure; none without it.
    pub(crate) disclosure: Option<Disclosure>,
    /// WITH iso_timestamps.
    pub(crate) iso_timestamps: bool,
    /// WITH summarize.
    pub(crate) summarize: bool,
    /// WITH diversity.
    pub(crate) diversity: Option<Diversity>,
    /// WITH dedup(field).
    pub(crate) dedup: Option<FieldRef>,
    /// Of a source: the ASSEMBLE around it asks what is told of each grain.
    pub(crate) told: bool,
}

impl Show {
    /// Whether something is told of each grain beside what it says.
    pub(crate) fn tells_of_grains(&self) -> bool {
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
    /// FORMAT, where it was written.
    pub(crate) format: Option<Format>,
    /// FORMAT TEMPLATE, in its place.
    pub(crate) template: Option<Template>,
    /// Whether BUDGET was written.
    pub(crate) budgeted: bool,
    pub(crate) stream: StreamPlan,
    pub(crate) show: Show,
}

/// Which events of an ASSEMBLE are sent, where its host streams it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamPlan {
    /// Whether STREAM was written.
    pub(crate) written: bool,
    /// That the assembly began and ended, and its sources.
    pub(crate) progress: bool,
    /// Duplicates, shares of the budget, levels.
    pub(crate) budget: bool,
    /// The text.
    pub(crate) chunks: bool,
    /// How much text a chunk is to have.
    pub(crate) chunk_tokens: usize,
}

impl Default for StreamPlan {
    /// No events.
    fn default() -> Self {
        let chunk_tokens = limits::DEFAULT_CHUNK_TOKENS;
        Self { written: false, progress: false, budget: false, chunks: false, chunk_tokens }
    }
}

/// The options it amounts to, as STREAM lists them.
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
    /// Asks for every event.
    pub(crate) fn everything(&mut self) {
        (self.progress, self.budget, self.chunks) = (true, true, true);
    }
}

/// One source of an ASSEMBLE.
pub(crate) struct SourcePlan {
    pub(crate) label: String,
    pub(crate) from: SourceFrom,
}

/// Where a source's grains come from.
pub(crate) enum SourceFrom {
    Recall(Box<RecallPlan>),
    /// Its place among the LETs in scope, and how many grains that asks for.
    Let(usize, u64),
}

/// What is known of the type of a source's grains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SourceType {
    Named(GrainType),
    Any,
    OfLet,
}

/// A HISTORY.
pub(crate) enum HistoryPlan {
    Of(Spanned<HashPrefix>),
    Diff(Spanned<HashPrefix>, Spanned<HashPrefix>),
    Triple(Box<Query>),
}

/// An ADD: the fields that were set, under payload names.
pub(crate) struct AddPlan {
    /// Where the type is named.
    pub(crate) place: Span,
    pub(crate) grain_type: GrainType,
    pub(crate) fields: Map,
    /// Goals this one waits for.
    pub(crate) depends_on: Vec<ContentAddress>,
    pub(crate) reason: String,
}

/// A SUPERSEDE: the fields to replace, under payload names.
pub(crate) struct SupersedePlan {
    pub(crate) target: Spanned<HashPrefix>,
    pub(crate) fields: Map,
    pub(crate) reason: String,
}

/// A REVERT: the version whose predecessor is to speak again.
pub(crate) struct RevertPlan {
    pub(crate) target: Spanned<HashPrefix>,
    pub(crate) reason: String,
}

/// A DEFINE TEMPLATE, whose texts hold to all rules.
pub(crate) struct DefinePlan {
    pub(crate) name: Spanned<String>,
    /// The preset it extends, where it says so.
    pub(crate) extends: Option<String>,
    /// The definition in normal form.
    pub(crate) text: String,
}

impl Plan {
    /// The grain a statement replaces, as it was named.
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

impl SourceFrom {
    /// The type it names; whatever a LET named is not asked again.
    pub(crate) fn grain_type(&self) -> SourceType {
        match self {
            Self::Recall(plan) => plan.grain_type.map_or(SourceType::Any, SourceType::Named),
            Self::Let(..) => SourceType::OfLet,
        }
    }

    /// What its PROJECT shows.
    pub(crate) fn project(&self) -> Option<&ProjectPlan> {
        match self {
            Self::Recall(plan) => plan.project.as_ref(),
            Self::Let(..) => None,
        }
    }

    /// How many grains it asks for.
    pub(crate) fn asked(&self) -> u64 {
        match self {
            Self::Recall(plan) => plan.asked(),
            Self::Let(_, asked) => *asked,
        }
    }
}

impl RecallPlan {
    /// What is done to the grains of a query in order. A leading sort by time is the order a memory visits
    /// in anyway, but for a search, which gives the best first.
    pub(crate) fn steps_after(&self, query: &Query) -> &[Step] {
        match self.steps.split_first() {
            Some((Step::Sort(key), rest)) if key.is_by_time() && query.search().is_none() => rest,
            _ => &self.steps,
        }
    }

    /// How many grains it asks for.
    pub(crate) fn asked(&self) -> u64 {
        let takes = self.steps.iter().filter_map(|step| match step {
            Step::Take(count) => Some(*count),
            _ => None,
        });
        takes.min().unwrap_or(u64::MAX)
    }

    /// E021 for AS, PROJECT, and for what shapes its text, where nobody would see it.
    pub(crate) fn is_not_shown(&self, outer: &str, place: Span) -> Result<()> {
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

    /// Lets everything through where no LIMIT was written.
    pub(crate) fn drop_default_limit(&mut self) {
        if std::mem::take(&mut self.limited_by_default) {
            self.steps.pop();
        }
    }

    /// Holds a RECALL inside `outer` to what is of use there: whole grains and nothing beside them.
    ///
    /// # Errors
    /// E021.
    pub(crate) fn yields_grains(&self, outer: &str, place: Span) -> Result<()> {
        let beside = self.show.explanation || self.show.provenance || self.show.score_breakdown;
        let (what, advice) = match (self.end, &self.select) {
            (End::Count, _) => ("COUNT answers a number", "drop COUNT"),
            (End::Values(_), _) => ("an extractor answers values", "drop the extractor"),
            (End::Groups(_), _) => ("GROUP BY answers groups", "drop GROUP BY"),
            (End::Grains, Some(_)) => ("SELECT shows parts of them", "drop SELECT"),
            (End::Grains, None) if beside => (
                "its explanations are not shown",
                "drop explanation, provenance and score_breakdown",
            ),
            (End::Grains, None) => return Ok(()),
        };
        let message = format!("{outer} yields whole grains, {what}");
        Err(Error::new(ErrorKind::WrongStage, message).at(place).suggest(advice))
    }
}
