//! The syntax of RECALL: its clauses, conditions, stages and options.

use grainstore_sml::{Format, RowFormat};

use super::{CountArg, HashArg, Literal, NumberArg, TextArg};
use crate::fields::FieldRef;
use crate::predicate::Comparator;
use crate::relations::RelationCategory;
use crate::span::Spanned;
use crate::types::TypeName;

/// RECALL and its clauses, each at most once.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Recall<'a> {
    pub(crate) my: Option<Spanned<()>>,
    pub(crate) grain_type: Option<Spanned<&'static TypeName>>,
    pub(crate) within: Option<Spanned<NamespaceClause<'a>>>,
    pub(crate) about: Option<Spanned<TextArg<'a>>>,
    pub(crate) like: Option<Spanned<TextArg<'a>>>,
    pub(crate) since: Option<Spanned<TextArg<'a>>>,
    pub(crate) between: Option<Spanned<BetweenClause<'a>>>,
    pub(crate) thread: Option<Spanned<ThreadClause<'a>>>,
    pub(crate) conditions: Option<Spanned<Vec<Condition<'a>>>>,
    pub(crate) options: Option<Spanned<Vec<Spanned<WithOption<'a>>>>>,
    pub(crate) stages: Vec<Spanned<PipelineStage<'a>>>,
    pub(crate) recent: Option<Spanned<CountArg<'a>>>,
    pub(crate) contradictions: Option<Spanned<()>>,
    pub(crate) format: Option<Spanned<AsFormat>>,
}

/// The format behind AS: of grains, or of rows of values alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AsFormat {
    Of(Format),
    Csv,
    Table,
}

impl AsFormat {
    /// Those that hold no grains.
    const ROWS: [Self; 2] = [Self::Csv, Self::Table];

    /// Every one.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Format::ALL.into_iter().map(Self::Of).chain(Self::ROWS)
    }

    /// The one of this name, in any case.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::all().find(|format| format.name().eq_ignore_ascii_case(name))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Of(format) => format.name(),
            Self::Csv => RowFormat::Csv.name(),
            Self::Table => RowFormat::Table.name(),
        }
    }

    /// The format of whole grains it is, if it is one.
    pub(crate) fn of_grains(self) -> Option<Format> {
        match self {
            Self::Of(format) => Some(format),
            Self::Csv | Self::Table => None,
        }
    }

    /// The format of rows of values it is, if it is one.
    pub(crate) fn of_rows(self) -> Option<RowFormat> {
        RowFormat::named(self.name())
    }
}

impl Recall<'_> {
    /// Returns `true` if it answers whole grains, which a format can render as text.
    pub(crate) fn renders_text(&self) -> bool {
        let cuts = |stage: &Spanned<PipelineStage<'_>>| {
            matches!(
                stage.node,
                PipelineStage::Select(_)
                    | PipelineStage::Count
                    | PipelineStage::Extract(_)
                    | PipelineStage::GroupBy(_)
            )
        };
        !self.stages.iter().any(cuts)
    }
}

/// `IN "ns"` or `IN SCOPE "ns"`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NamespaceClause<'a> {
    /// True for SCOPE: the namespaces below it are included.
    pub(crate) include_descendants: bool,
    pub(crate) namespace: TextArg<'a>,
}

/// THREAD: a session by its id, or the thread that contains a message (CAL 8.1.1).
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ThreadClause<'a> {
    Session(TextArg<'a>),
    From(HashArg<'a>),
}

/// `BETWEEN from AND to`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BetweenClause<'a> {
    pub(crate) from: Spanned<Literal<'a>>,
    pub(crate) to: Spanned<Literal<'a>>,
}

/// One condition of WHERE.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Condition<'a> {
    pub(crate) field: Spanned<ConditionField<'a>>,
    pub(crate) test: Spanned<ConditionTest<'a>>,
}

/// A CAL field, or a field of a domain profile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ConditionField<'a> {
    Table(FieldRef),
    Domain { prefix: &'a str, name: &'a str },
}

/// The test of a condition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ConditionTest<'a> {
    Compare(Comparator, Spanned<Literal<'a>>),
    In(InSet<'a>),
    Between(BetweenClause<'a>),
    Include(Spanned<Literal<'a>>),
    Exclude(Spanned<Literal<'a>>),
    Is(&'static RelationCategory),
}

/// The set of an IN.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum InSet<'a> {
    /// Listed values; a single parameter may name a LET.
    Values(Vec<Spanned<Literal<'a>>>),
    /// The result of a subquery.
    Recall(Box<Recall<'a>>, Extractor),
}

/// One stage of the pipeline.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PipelineStage<'a> {
    Select(Vec<Spanned<FieldRef>>),
    OrderBy { field: Spanned<FieldRef>, direction: Option<SortDirection> },
    Limit(CountArg<'a>),
    Offset(CountArg<'a>),
    Count,
    First,
    Extract(Extractor),
    GroupBy(Spanned<FieldRef>),
    Project(ProjectClause<'a>),
}

/// PROJECT: the fields shown of a grain (CAL 10.3.5); at least one of the two lists is present.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ProjectClause<'a> {
    pub(crate) content: Option<Vec<Spanned<ProjectField<'a>>>>,
    pub(crate) attr: Option<Vec<Spanned<ProjectField<'a>>>>,
}

/// A field that PROJECT accepts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ProjectField<'a> {
    /// A CAL field, or a field of a domain profile.
    Field(ConditionField<'a>),
    /// An SML attribute that is no CAL field.
    Attribute(&'static str),
    /// `x_name`, an extension field of the payload.
    Extension(&'a str),
}

/// ASC or DESC, as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SortDirection {
    Ascending,
    Descending,
}

/// One option of WITH.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum WithOption<'a> {
    Superseded,
    ScoreBreakdown,
    Explanation,
    Total,
    Provenance,
    ContradictionDetection,
    ProgressiveDisclosure(Option<LevelName>),
    Dedup(Spanned<FieldRef>),
    Diversity(DiversityOption<'a>),
    Consistency(ConsistencyLevel<'a>),
    /// `cache(ttl = seconds)`.
    Cache(CountArg<'a>),
    IsoTimestamps,
    Summarize,
    Locale(TextArg<'a>),
    /// `x_name` with its arguments.
    Extension(&'a str, Vec<Spanned<Literal<'a>>>),
}

/// Diversity of answers: `mmr`, `mmr, lambda = n`, or `threshold, n`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum DiversityOption<'a> {
    Mmr(Option<Spanned<NumberArg<'a>>>),
    Threshold(Spanned<NumberArg<'a>>),
}

/// The consistency requested. One machine is always linearizable, so every level is met.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ConsistencyLevel<'a> {
    Eventual,
    /// At most this many seconds behind.
    Bounded(Spanned<NumberArg<'a>>),
    Linearizable,
}

/// A disclosure level as written; `headlines` and `standard` are two names of one level (ruling 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LevelName {
    Summary,
    Headlines,
    Standard,
    Full,
}

/// The value extracted from each grain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extractor {
    Subjects,
    Objects,
    Hashes,
}
