//! The syntax tree: what was written, with its places, before any meaning is checked.
//!
//! Texts are borrowed from the source where they need no decoding. A statement is one of a closed
//! list; none of them removes anything, touches keys or changes policies.

use std::borrow::Cow;

use crate::fields::FieldRef;
use crate::relations::Category;
use crate::span::Spanned;
use crate::types::TypeName;

/// A parsed query, placed at its first keyword. Print it with `Display`; parse that again and get
/// an equal query.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement<'a>(pub(crate) Spanned<Body<'a>>);

/// The statements of this version.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Body<'a> {
    Recall(Recall<'a>),
    Assemble(Assemble<'a>),
    Exists(Spanned<HashArg<'a>>),
    History(History<'a>),
    Add(Add<'a>),
    Supersede(Supersede<'a>),
}

/// Something written out, or a parameter standing for it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Arg<'a, T> {
    Given(T),
    Param(&'a str),
}

/// A place for text.
pub(crate) type TextArg<'a> = Arg<'a, Cow<'a, str>>;
/// A place for a whole number, zero included.
pub(crate) type CountArg<'a> = Arg<'a, u64>;
/// A place for a hash: its 8 to 64 digits, without `sha256:`.
pub(crate) type HashArg<'a> = Arg<'a, &'a str>;

/// Any value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal<'a> {
    Text(Cow<'a, str>),
    Number(Number<'a>),
    Flag(bool),
    /// The digits of a hash, without `sha256:`.
    Hash(Cow<'a, str>),
    Param(&'a str),
    /// Never an array again.
    Array(Vec<Spanned<Literal<'a>>>),
}

/// A finite number, with the spelling it was written in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Number<'a> {
    pub(crate) text: Cow<'a, str>,
    pub(crate) value: f64,
}

/// RECALL and its clauses, each at most once.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Recall<'a> {
    pub(crate) my: Option<Spanned<()>>,
    pub(crate) grain_type: Option<Spanned<&'static TypeName>>,
    pub(crate) within: Option<Spanned<Within<'a>>>,
    pub(crate) about: Option<Spanned<TextArg<'a>>>,
    pub(crate) since: Option<Spanned<TextArg<'a>>>,
    pub(crate) between: Option<Spanned<Between<'a>>>,
    pub(crate) thread: Option<Spanned<TextArg<'a>>>,
    pub(crate) conditions: Option<Spanned<Vec<Condition<'a>>>>,
    pub(crate) options: Option<Spanned<Vec<Spanned<WithOption<'a>>>>>,
    pub(crate) stages: Vec<Spanned<Stage<'a>>>,
    pub(crate) recent: Option<Spanned<CountArg<'a>>>,
    pub(crate) format: Option<Spanned<Format>>,
}

/// `IN "ns"` or `IN SCOPE "ns"`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Within<'a> {
    /// The namespaces below it too.
    pub(crate) scope: bool,
    pub(crate) namespace: TextArg<'a>,
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
    pub(crate) field: Spanned<FieldRef>,
    pub(crate) test: Spanned<Test<'a>>,
}

/// What is asked of a field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Test<'a> {
    Compare(Comparator, Spanned<Literal<'a>>),
    In(Vec<Spanned<Literal<'a>>>),
    Between(Between<'a>),
    Include(Spanned<Literal<'a>>),
    Exclude(Spanned<Literal<'a>>),
    Is(&'static Category),
}

/// The six comparators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparator {
    Equal,
    NotEqual,
    GreaterEqual,
    LessEqual,
    Greater,
    Less,
}

/// One stage of the pipeline.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Stage<'a> {
    OrderBy { field: Spanned<FieldRef>, direction: Option<Direction> },
    Limit(CountArg<'a>),
    Offset(CountArg<'a>),
    Count,
    First,
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
    ProgressiveDisclosure(Option<LevelName>),
    Dedup(Spanned<FieldRef>),
    IsoTimestamps,
    Locale(TextArg<'a>),
    /// `x_name` with the arguments it was given.
    Extension(&'a str, Vec<Spanned<Literal<'a>>>),
}

/// A level of disclosure as written; `headlines` and `standard` are one level with two names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LevelName {
    Summary,
    Headlines,
    Standard,
    Full,
}

/// An output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Semantic markup, one flat element a grain.
    Sml,
    /// `{intent, grains [{type, text, attributes}]}`.
    Json,
}

/// ASSEMBLE and its clauses.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Assemble<'a> {
    pub(crate) name: Option<Spanned<&'a str>>,
    pub(crate) intent: Option<Spanned<TextArg<'a>>>,
    pub(crate) sources: Vec<Spanned<Source<'a>>>,
    pub(crate) budget: Option<Spanned<BudgetClause<'a>>>,
    pub(crate) priority: Option<Spanned<Vec<Spanned<&'a str>>>>,
    pub(crate) format: Option<Spanned<Preset>>,
    pub(crate) options: Option<Spanned<Vec<Spanned<WithOption<'a>>>>>,
}

/// One source of FROM.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Source<'a> {
    pub(crate) label: Option<Spanned<&'a str>>,
    pub(crate) recall: Recall<'a>,
}

/// `BUDGET n unit`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BudgetClause<'a> {
    pub(crate) amount: Spanned<CountArg<'a>>,
    pub(crate) unit: Unit,
}

/// What a budget counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Tokens,
    Grains,
}

/// The format of an assembly, under the name it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Preset {
    Sml,
    Structured,
}

/// HISTORY of one grain, or of a subject and relation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum History<'a> {
    Of(Spanned<HashArg<'a>>),
    Triple {
        within: Option<Spanned<Within<'a>>>,
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

/// `SET name = value`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SetClause<'a> {
    pub(crate) name: Spanned<&'a str>,
    pub(crate) value: Spanned<Literal<'a>>,
}

/// The statement a query makes, as `_cal.statement_type` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StatementType {
    /// RECALL.
    Recall,
    /// ASSEMBLE.
    Assemble,
    /// EXISTS.
    Exists,
    /// HISTORY.
    History,
    /// ADD.
    Add,
    /// SUPERSEDE.
    Supersede,
}

impl Statement<'_> {
    /// Which statement it is.
    #[must_use]
    pub fn statement_type(&self) -> StatementType {
        match &self.0.node {
            Body::Recall(_) => StatementType::Recall,
            Body::Assemble(_) => StatementType::Assemble,
            Body::Exists(_) => StatementType::Exists,
            Body::History(_) => StatementType::History,
            Body::Add(_) => StatementType::Add,
            Body::Supersede(_) => StatementType::Supersede,
        }
    }

    /// The tier it needs: 0 reads, 1 evolves.
    #[must_use]
    pub fn tier(&self) -> u8 {
        match &self.0.node {
            Body::Add(_) | Body::Supersede(_) => 1,
            _ => 0,
        }
    }
}
