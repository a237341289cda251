//! The syntax of RECALL: its clauses, conditions, stages and options.

use grainstore_sml::{Format, RowFormat};

use super::{CountArg, HashArg, Literal, NumberArg, TextArg};
use crate::fields::FieldRef;
use crate::predicate::Comparator;
use crate::relations::Category;
use crate::span::Spanned;
use crate::types::TypeName;

/// RECALL and its clauses, each at most once.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Recall<'a> {
    pub(crate) my: Option<Spanned<()>>,
    pub(crate) grain_type: Option<Spanned<&'static TypeName>>,
    pub(crate) within: Option<Spanned<Within<'a>>>,
    pub(crate) about: Option<Spanned<TextArg<'a>>>,
    pub(crate) like: Option<Spanned<TextArg<'a>>>,
    pub(crate) since: Option<Spanned<TextArg<'a>>>,
    pub(crate) between: Option<Spanned<Between<'a>>>,
    pub(crate) thread: Option<Spanned<Thread<'a>>>,
    pub(crate) conditions: Option<Spanned<Vec<Condition<'a>>>>,
    pub(crate) options: Option<Spanned<Vec<Spanned<WithOption<'a>>>>>,
    pub(crate) stages: Vec<Spanned<Stage<'a>>>,
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
    /// Whether it answers whole grains, which a format can write as text.
    pub(crate) fn gives_text(&self) -> bool {
        let cuts = |stage: &Spanned<Stage<'_>>| {
            matches!(
                stage.node,
                Stage::Select(_) | Stage::Count | Stage::Extract(_) | Stage::GroupBy(_)
            )
        };
        !self.stages.iter().any(cuts)
    }
}

/// `IN "ns"` or `IN SCOPE "ns"`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Within<'a> {
    /// The namespaces below it too.
    pub(crate) scope: bool,
    pub(crate) namespace: TextArg<'a>,
}

/// Which thread: of a session by its id, or the whole one that holds a message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Thread<'a> {
    Session(TextArg<'a>),
    From(HashArg<'a>),
}

/// `BETWEEN from AND to`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Between<'a> {
    pub(crate) from: Spanned<Literal<'a>>,
    pub(crate) to: Spanned<Literal<'a>>,
}

/// One condition of WHERE.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Condition<'a> {
    pub(crate) field: Spanned<ConditionField<'a>>,
    pub(crate) test: Spanned<Test<'a>>,
}

/// A field of the table, or one of a domain profile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ConditionField<'a> {
    Table(FieldRef),
    Domain { prefix: &'a str, name: &'a str },
}

/// What is asked of a field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Test<'a> {
    Compare(Comparator, Spanned<Literal<'a>>),
    In(InSet<'a>),
    Between(Between<'a>),
    Include(Spanned<Literal<'a>>),
    Exclude(Spanned<Literal<'a>>),
    Is(&'static Category),
}

/// The values of an IN.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum InSet<'a> {
    /// Written out; a lone parameter may be the name of a LET.
    Values(Vec<Spanned<Literal<'a>>>),
    /// What a RECALL finds.
    Recall(Box<Recall<'a>>, Extractor),
}

/// One stage of the pipeline.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Stage<'a> {
    Select(Vec<Spanned<FieldRef>>),
    OrderBy { field: Spanned<FieldRef>, direction: Option<Direction> },
    Limit(CountArg<'a>),
    Offset(CountArg<'a>),
    Count,
    First,
    Extract(Extractor),
    GroupBy(Spanned<FieldRef>),
    Project(Project<'a>),
}

/// PROJECT: what is shown of a grain; at least one of the two is there.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Project<'a> {
    pub(crate) content: Option<Vec<Spanned<ProjectField<'a>>>>,
    pub(crate) attr: Option<Vec<Spanned<ProjectField<'a>>>>,
}

/// A field PROJECT takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ProjectField<'a> {
    /// A field of the table, or one of a domain profile.
    Of(ConditionField<'a>),
    /// An attribute that types show, which is no field of its own.
    Attribute(&'static str),
    /// `x_name`, a field of the payload.
    Extra(&'a str),
}

/// ASC or DESC, as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Ascending,
    Descending,
}

/// One option of WITH.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum WithOption<'a> {
    Superseded,
    ScoreBreakdown,
    Explanation,
    Provenance,
    ContradictionDetection,
    ProgressiveDisclosure(Option<LevelName>),
    Dedup(Spanned<FieldRef>),
    Diversity(DiversityOf<'a>),
    Consistency(Consistency<'a>),
    /// `cache(ttl = seconds)`.
    Cache(CountArg<'a>),
    IsoTimestamps,
    Summarize,
    Locale(TextArg<'a>),
    /// `x_name` with the arguments it was given.
    Extension(&'a str, Vec<Spanned<Literal<'a>>>),
}

/// How answers are kept from saying the same: `mmr`, `mmr, lambda = n`, or `threshold, n`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum DiversityOf<'a> {
    Mmr(Option<Spanned<NumberArg<'a>>>),
    Threshold(Spanned<NumberArg<'a>>),
}

/// How fresh an answer must be; one machine is always linearizable, so all are met.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Consistency<'a> {
    Eventual,
    /// At most this many seconds behind.
    Bounded(Spanned<NumberArg<'a>>),
    Linearizable,
}

/// A level of disclosure as written; `headlines` and `standard` are one level with two names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LevelName {
    Summary,
    Headlines,
    Standard,
    Full,
}

/// What is taken out of each grain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extractor {
    Subjects,
    Objects,
    Hashes,
}
