//! The syntax tree: the query as written, with spans, before checking. RECALL, the largest statement, has a
//! file of its own.
//!
//! Texts are borrowed from the source unless they need decoding. The set of statements is closed (CAL 2.1);
//! none of them removes grains, reads keys or changes policies.

mod recall;
mod stream;
mod template;

use std::borrow::Cow;
use std::fmt;

use crate::span::{Span, Spanned};
use crate::types::TypeName;

pub use grainstore_sml::Format;
pub(crate) use recall::{
    AsFormat, BetweenClause, Condition, ConditionField, ConditionTest, ConsistencyLevel,
    DiversityOption, Extractor, InSet, LevelName, NamespaceClause, PipelineStage, ProjectClause,
    ProjectField, Recall, SortDirection, ThreadClause, WithOption,
};
pub(crate) use stream::{StreamClause, StreamOption};

pub(crate) use template::{SectionText, TemplateDefinition};

/// A parsed query, the result of [`parse`](crate::parse()). Printing it with `Display` and parsing that
/// again gives an equal query.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement<'a>(pub(crate) ParsedQuery<'a>);

/// The root of a query: one of the twelve statements, or DEFINE TEMPLATE.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ParsedQuery<'a> {
    Statement(StatementWithLets<'a>),
    /// The span is that of its first keyword.
    Define(Spanned<TemplateDefinition<'a>>),
}

/// A statement and its LETs; the span of `body` is that of its first keyword.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StatementWithLets<'a> {
    pub(crate) lets: Vec<LetBinding<'a>>,
    pub(crate) body: Spanned<StatementBody<'a>>,
}

/// `LET $name = recall (| extractor)?;`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LetBinding<'a> {
    /// The name without its dollar.
    pub(crate) name: Spanned<&'a str>,
    pub(crate) recall: Recall<'a>,
    pub(crate) extract: Option<Extractor>,
}

/// The twelve statements (CAL 2.1).
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StatementBody<'a> {
    Recall(Box<Recall<'a>>),
    Assemble(Assemble<'a>),
    Set(Box<SetOp<'a>>),
    Exists(Spanned<HashArg<'a>>),
    History(History<'a>),
    Explain(Box<Spanned<StatementBody<'a>>>),
    Describe(Describe),
    Batch(Vec<BatchEntry<'a>>),
    Coalesce(Vec<Spanned<Recall<'a>>>),
    Add(Add<'a>),
    Supersede(Supersede<'a>),
    Revert(Revert<'a>),
}

/// `(left) operator (right)`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SetOp<'a> {
    pub(crate) left: StatementWithLets<'a>,
    pub(crate) operator: SetOperator,
    pub(crate) right: StatementWithLets<'a>,
}

/// Operators that combine two sets of grains by address (CAL 8.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetOperator {
    Union,
    Intersect,
    Except,
}

/// One entry of a BATCH: a label and a Tier 0 statement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BatchEntry<'a> {
    pub(crate) label: Spanned<&'a str>,
    pub(crate) body: Spanned<StatementBody<'a>>,
}

/// Targets of DESCRIBE.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Describe {
    GrainTypes,
    /// The common fields, with those of one type if given.
    Fields(Option<Spanned<&'static TypeName>>),
    Capabilities,
    Server,
    Templates,
    Grammar,
}

/// A value, or a parameter in its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Arg<'a, T> {
    Given(T),
    Param(&'a str),
}

/// A text argument.
pub(crate) type TextArg<'a> = Arg<'a, Cow<'a, str>>;
/// A whole-number argument, zero included.
pub(crate) type CountArg<'a> = Arg<'a, WholeNumber<'a>>;
/// A number argument.
pub(crate) type NumberArg<'a> = Arg<'a, NumberLiteral<'a>>;
/// A hash argument: its 8 to 64 digits, without `sha256:`.
pub(crate) type HashArg<'a> = Arg<'a, &'a str>;

/// A literal, or a parameter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal<'a> {
    Text(Cow<'a, str>),
    Number(NumberLiteral<'a>),
    Flag(bool),
    /// The digits of a hash, without `sha256:`.
    Hash(Cow<'a, str>),
    Param(&'a str),
    /// Arrays do not nest.
    Array(Vec<Spanned<Literal<'a>>>),
}

/// A whole number from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WholeNumber<'a> {
    /// `u64::MAX` for a number that does not fit; the limits refuse it anyway.
    pub(crate) value: u64,
    /// The digits of a number that does not fit.
    pub(crate) beyond: Option<&'a str>,
}

impl From<u64> for WholeNumber<'_> {
    fn from(value: u64) -> Self {
        Self { value, beyond: None }
    }
}

impl fmt::Display for WholeNumber<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.beyond {
            Some(digits) => f.write_str(digits),
            None => self.value.fmt(f),
        }
    }
}

impl CountArg<'_> {
    /// Returns the number as written; `value` for a parameter.
    pub(crate) fn as_written(&self, value: u64) -> String {
        match self {
            Self::Given(count) => count.to_string(),
            Self::Param(_) => value.to_string(),
        }
    }
}

/// A finite number, with its spelling.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NumberLiteral<'a> {
    pub(crate) text: Cow<'a, str>,
    pub(crate) value: f64,
}

/// ASSEMBLE and its clauses.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Assemble<'a> {
    pub(crate) name: Option<Spanned<&'a str>>,
    pub(crate) intent: Option<Spanned<TextArg<'a>>>,
    pub(crate) sources: Vec<Spanned<AssembleSource<'a>>>,
    pub(crate) budget: Option<Spanned<BudgetClause<'a>>>,
    pub(crate) priority: Option<Spanned<Vec<Spanned<&'a str>>>>,
    pub(crate) format: Option<Spanned<FormatClause<'a>>>,
    pub(crate) stream: Option<Spanned<StreamClause<'a>>>,
    pub(crate) options: Option<Spanned<Vec<Spanned<WithOption<'a>>>>>,
}

/// One source of FROM.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AssembleSource<'a> {
    pub(crate) label: Option<Spanned<&'a str>>,
    pub(crate) body: SourceOrigin<'a>,
}

/// The origin of a source's grains.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SourceOrigin<'a> {
    Recall(Box<Recall<'a>>),
    /// The name of a LET, without its dollar.
    Let(Spanned<&'a str>),
}

/// `BUDGET n unit`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BudgetClause<'a> {
    pub(crate) amount: Spanned<CountArg<'a>>,
    pub(crate) unit: BudgetUnit,
}

/// The unit of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BudgetUnit {
    Tokens,
    Grains,
}

/// FORMAT.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FormatClause<'a> {
    Name(FormatName),
    /// TEMPLATE name.
    Template(Spanned<&'a str>),
    /// TEMPLATE { section+ }.
    Inline(Vec<SectionText<'a>>),
}

/// The name of a format as written: a format's own, or that of a preset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormatName {
    Format(Format),
    /// Preset for sml.
    Structured,
    /// Preset for markdown.
    Readable,
    /// Preset for text.
    Compact,
    /// Preset for json.
    Data,
}

impl FormatName {
    /// The presets.
    pub(crate) const PRESETS: [Self; 4] =
        [Self::Structured, Self::Readable, Self::Compact, Self::Data];

    /// Returns every name.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Format::ALL.into_iter().map(Self::Format).chain(Self::PRESETS)
    }

    /// Returns the name as written.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Format(format) => format.name(),
            Self::Structured => "structured",
            Self::Readable => "readable",
            Self::Compact => "compact",
            Self::Data => "data",
        }
    }

    /// Returns the format of the name.
    pub(crate) fn format(self) -> Format {
        match self {
            Self::Format(format) => format,
            Self::Structured => Format::Sml,
            Self::Readable => Format::Markdown,
            Self::Compact => Format::Text,
            Self::Data => Format::Json,
        }
    }
}

/// HISTORY of one grain, or of a subject and relation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum History<'a> {
    ByHash {
        target: Spanned<HashArg<'a>>,
        /// DIFF: the version to compare with.
        diff: Option<Spanned<HashArg<'a>>>,
    },
    Triple {
        within: Option<Spanned<NamespaceClause<'a>>>,
        subject: Spanned<Literal<'a>>,
        relation: Spanned<Literal<'a>>,
        as_of: Option<Spanned<TextArg<'a>>>,
    },
}

/// ADD.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Add<'a> {
    pub(crate) grain_type: Spanned<&'static TypeName>,
    pub(crate) sets: Vec<SetClause<'a>>,
    pub(crate) reason: Spanned<TextArg<'a>>,
}

/// SUPERSEDE.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Supersede<'a> {
    pub(crate) target: Spanned<HashArg<'a>>,
    pub(crate) sets: Vec<SetClause<'a>>,
    pub(crate) reason: Spanned<TextArg<'a>>,
}

/// REVERT.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Revert<'a> {
    pub(crate) target: Spanned<HashArg<'a>>,
    pub(crate) reason: Spanned<TextArg<'a>>,
}

/// `SET name = value`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SetClause<'a> {
    pub(crate) name: Spanned<&'a str>,
    pub(crate) value: Spanned<Literal<'a>>,
}

/// The type of a statement, as in `_cal.statement_type`, known once it is [parsed](crate::parse()).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StatementType {
    /// RECALL.
    Recall,
    /// ASSEMBLE.
    Assemble,
    /// UNION, INTERSECT or EXCEPT.
    SetOp,
    /// EXISTS.
    Exists,
    /// HISTORY.
    History,
    /// EXPLAIN.
    Explain,
    /// DESCRIBE.
    Describe,
    /// BATCH.
    Batch,
    /// COALESCE.
    Coalesce,
    /// ADD.
    Add,
    /// SUPERSEDE.
    Supersede,
    /// REVERT.
    Revert,
    /// DEFINE TEMPLATE, a request beside the twelve statements.
    DefineTemplate,
}

impl Statement<'_> {
    /// Returns the type of the statement.
    #[must_use]
    pub fn statement_type(&self) -> StatementType {
        match &self.0 {
            ParsedQuery::Statement(request) => request.body.node.statement_type(),
            ParsedQuery::Define(_) => StatementType::DefineTemplate,
        }
    }

    /// Returns the tier it needs: 0 reads, 1 evolves. DEFINE TEMPLATE needs 0 to store a template for the
    /// session; run in Tier 1, it is stored for the namespace.
    #[must_use]
    pub fn tier(&self) -> u8 {
        match &self.0 {
            ParsedQuery::Statement(request) => request.body.node.tier(),
            ParsedQuery::Define(_) => 0,
        }
    }

    /// Returns `true` if a format chosen by the host affects its answer: for an ASSEMBLE, or for whole
    /// grains.
    #[must_use]
    pub fn renders_text(&self) -> bool {
        match &self.0 {
            ParsedQuery::Statement(request) => request.body.node.renders_text(),
            ParsedQuery::Define(_) => false,
        }
    }

    /// Returns the span of its first keyword.
    pub(crate) fn keyword_span(&self) -> Span {
        match &self.0 {
            ParsedQuery::Statement(request) => request.body.span,
            ParsedQuery::Define(definition) => definition.span,
        }
    }
}

impl StatementBody<'_> {
    pub(crate) fn statement_type(&self) -> StatementType {
        match self {
            Self::Recall(_) => StatementType::Recall,
            Self::Assemble(_) => StatementType::Assemble,
            Self::Set(_) => StatementType::SetOp,
            Self::Exists(_) => StatementType::Exists,
            Self::History(_) => StatementType::History,
            Self::Explain(_) => StatementType::Explain,
            Self::Describe(_) => StatementType::Describe,
            Self::Batch(_) => StatementType::Batch,
            Self::Coalesce(_) => StatementType::Coalesce,
            Self::Add(_) => StatementType::Add,
            Self::Supersede(_) => StatementType::Supersede,
            Self::Revert(_) => StatementType::Revert,
        }
    }

    fn renders_text(&self) -> bool {
        match self {
            Self::Recall(recall) => recall.renders_text(),
            Self::Assemble(_) | Self::Set(_) => true,
            Self::Coalesce(branches) => branches.iter().any(|branch| branch.node.renders_text()),
            Self::Batch(entries) => entries.iter().any(|entry| entry.body.node.renders_text()),
            _ => false,
        }
    }

    pub(crate) fn tier(&self) -> u8 {
        match self {
            Self::Add(_) | Self::Supersede(_) | Self::Revert(_) => 1,
            _ => 0,
        }
    }
}
