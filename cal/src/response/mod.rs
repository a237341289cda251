//! Answers of statements, in the response shapes of CAL 8 and CAL 14.

mod plan;
mod read;
mod row;

use std::borrow::Cow;

use grainstore_format::{ContentAddress, Grain, GrainState, Value};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use crate::ast::StatementType;
use crate::codes::Warning;
use crate::error::Error;
use crate::memory::{Hit, TemplateOwner};

pub use plan::{PlanReport, RecallExplanation, RecallReport};
pub use row::ResultRow;

/// The machine envelope (CAL 14.1) that [`execute`](crate::execute) returns: `_cal`, and the answer of the
/// statement beside it.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Response {
    /// Metadata of the execution.
    #[serde(rename = "_cal")]
    pub meta: ResponseMeta,
    /// The answer; its fields stand beside `_cal`.
    #[serde(flatten)]
    pub answer: Answer,
}

/// The `_cal` block of what [`execute`](crate::execute) returns.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResponseMeta {
    /// Version of the envelope.
    #[serde(deserialize_with = "read::own_version")]
    pub version: Word,
    /// The kind of statement.
    pub statement_type: StatementType,
    /// The tier the statement ran in: 0 reads, 1 evolves.
    pub tier: u8,
    /// `sha256:` and the hash of the normalised query, parameters unbound.
    pub query_hash: String,
    /// Duration in milliseconds.
    pub duration_ms: u64,
    /// Resources it used.
    pub budget: Usage,
    /// The consistency of the answer, if the statement asked for one: always `linearizable`.
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "read::known")]
    pub consistency: Option<Word>,
    /// The cache status, if the statement allowed a cached answer (WITH cache): always `fresh`, since none is
    /// cached.
    #[serde(skip_serializing_if = "Option::is_none", default, deserialize_with = "read::known")]
    pub cache: Option<Word>,
    /// Warnings for the caller.
    pub warnings: Vec<Warning>,
}

/// Resources that a statement used while [`execute`](crate::execute) ran it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens of the formatted text, by the counter in use; 0 without one.
    pub tokens_used: u64,
    /// Grains in the answer.
    pub grains_returned: u64,
    /// Grains of the session that were read.
    pub grains_scanned: u64,
}

impl Response {
    /// Returns the text for a model: of an ASSEMBLE, or of a RECALL with AS.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.answer {
            Answer::Assembly { formatted_context, .. } => Some(&formatted_context.text),
            answer => answer.formatted(),
        }
    }
}

impl Answer {
    /// Returns the grains it gives: the results of a RECALL, what the text of an ASSEMBLE shows, and those of each
    /// entry of a BATCH. A grain that several entries give is there once for each.
    #[must_use]
    pub fn grains_given(&self) -> Vec<ContentAddress> {
        match self {
            Self::Grains(grains) => grains.results.iter().map(|row| row.content_address).collect(),
            Self::Coalesced { answer, .. } => answer.grains_given(),
            Self::Assembly { sources, .. } => {
                sources.0.iter().flat_map(|(_, source)| source.shown.iter().copied()).collect()
            }
            Self::Batch { batch } => {
                let answers = batch.0.iter().filter_map(|(_, slot)| match slot {
                    BatchSlot::Answer(answer) => Some(answer.grains_given()),
                    BatchSlot::Failed { .. } => None,
                });
                answers.flatten().collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether it has a text of whole grains, which a host can choose the format of, or in a BATCH holds one; an
    /// entry that failed might have had.
    #[must_use]
    pub fn has_text(&self) -> bool {
        match self {
            Self::Grains(grains) => {
                let in_parts = grains.results.iter().any(|row| row.selected.is_some());
                grains.formatted.is_some() && !in_parts
            }
            Self::Assembly { .. } => true,
            Self::Coalesced { answer, .. } => answer.has_text(),
            Self::Batch { batch } => batch.0.iter().any(|(_, slot)| match slot {
                BatchSlot::Answer(answer) => answer.has_text(),
                BatchSlot::Failed { .. } => true,
            }),
            _ => false,
        }
    }

    /// Returns `true` if it is an empty result, which lets COALESCE go on to its next branch.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Grains(grains) => grains.results.is_empty(),
            Self::Count { count, .. } => *count == 0,
            Self::Values { values, .. } => values.is_empty(),
            Self::Groups { groups, .. } => groups.is_empty(),
            _ => false,
        }
    }

    fn formatted(&self) -> Option<&str> {
        match self {
            Self::Grains(grains) => grains.formatted.as_deref(),
            Self::Count { formatted, .. }
            | Self::Values { formatted, .. }
            | Self::Groups { formatted, .. } => formatted.as_deref(),
            Self::Coalesced { answer, .. } => answer.formatted(),
            _ => None,
        }
    }
}

/// The answer of [`execute`](crate::execute), by kind of statement.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Answer {
    /// RECALL and set operations.
    Grains(RecallAnswer),
    /// RECALL .. COUNT.
    Count {
        /// Grains that match.
        count: u64,
        /// The number as text, with AS.
        #[serde(skip_serializing_if = "Option::is_none")]
        formatted: Option<String>,
    },
    /// RECALL with an extractor.
    Values {
        /// The distinct values, in the order of the result; at most 1,000.
        values: Vec<Value>,
        /// The number of distinct values; null if there are more than shown.
        total: Option<u64>,
        /// The values as text, with AS.
        #[serde(skip_serializing_if = "Option::is_none")]
        formatted: Option<String>,
    },
    /// RECALL .. GROUP BY.
    Groups {
        /// The groups, largest first; at most 1,000.
        groups: Vec<GroupCount>,
        /// The number of groups.
        total: u64,
        /// The groups as text, with AS.
        #[serde(skip_serializing_if = "Option::is_none")]
        formatted: Option<String>,
    },
    /// COALESCE: the answer of the first branch with a result.
    Coalesced {
        /// Index of the branch, from 0; null if none has a result, then the answer is that of the last
        /// branch.
        branch: Option<u64>,
        /// The answer of the branch, whose fields stand beside `branch`.
        #[serde(flatten, serialize_with = "serialize_nested")]
        answer: Box<Answer>,
    },
    /// BATCH.
    Batch {
        /// The outcome of each entry, in order.
        batch: BatchSlots,
    },
    /// EXPLAIN.
    Plan {
        /// The plan.
        plan: PlanReport,
    },
    /// DESCRIBE.
    Description {
        /// The description of the target.
        description: serde_json::Value,
    },
    /// ASSEMBLE.
    Assembly {
        /// The name of the assembly, if it has one.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The text.
        formatted_context: FormattedContext,
        /// The outcome of each source, in the order of FROM.
        sources: SourceAnswers,
    },
    /// EXISTS.
    Exists {
        /// True if the session sees the grain.
        exists: bool,
    },
    /// HISTORY.
    Versions {
        /// The versions, newest first; at most 100.
        versions: Vec<Version>,
        /// The number of versions, those that are not shown included.
        total: u64,
    },
    /// HISTORY .. DIFF.
    Diff {
        /// The fields that differ, ordered by name.
        diff: Vec<FieldChange>,
        /// True if one of the two is a reasoning whose requested review is pending.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        requires_human_review: bool,
    },
    /// ADD.
    Added {
        /// The new grain.
        content_address: ContentAddress,
    },
    /// SUPERSEDE and REVERT.
    Superseded {
        /// The new grain.
        content_address: ContentAddress,
        /// The grain it replaces: the target, or the head of its chain.
        superseded: ContentAddress,
    },
    /// DEFINE TEMPLATE.
    Defined {
        /// The name of the template.
        template: String,
        /// The preset it extends, if it names one.
        #[serde(skip_serializing_if = "Option::is_none")]
        extends: Option<String>,
        /// The owner of the template.
        kept: TemplateOwner,
    },
}

/// A word that is read by looking it up, and not borrowed from what is read.
type Word = &'static str;

/// What `version` of an answer says.
pub(crate) const VERSION: &str = "1.0";
/// What `consistency` of an answer says.
pub(crate) const LINEARIZABLE: &str = "linearizable";
/// What `cache` of an answer says.
pub(crate) const FRESH: &str = "fresh";

/// The answer of a RECALL, from [`execute`](crate::execute).
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct RecallAnswer {
    /// The grains, in order.
    pub results: Vec<ResultRow>,
    /// The number of all matches, before LIMIT and OFFSET; null if they were not counted.
    pub total: Option<u64>,
    /// Cursor of the next page; null, since CAL pages by OFFSET.
    pub next_cursor: Option<String>,
    /// The grains as text, with AS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formatted: Option<String>,
    /// The most informative sentences of the grains, WITH summarize.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summarized: Option<Vec<String>>,
    /// The access plan and its cost, WITH explanation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<RecallExplanation>,
}

/// A group of GROUP BY, as [`execute`](crate::execute) returns it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct GroupCount {
    /// The common value.
    pub key: Value,
    /// The number of grains that have it.
    pub count: u64,
    /// True if every grain of the group is a reasoning whose requested review is pending, so that no reviewed
    /// grain supports the value.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub requires_human_review: bool,
}

/// A field in which two versions differ, as [`execute`](crate::execute) and [`prepare`](crate::prepare)
/// report it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FieldChange {
    /// The full field name.
    pub field: String,
    /// The value in the first version; null if it has none.
    pub from: Option<Value>,
    /// The value in the second version; null if it has none.
    pub to: Option<Value>,
}

/// Answers by label, in the order of a BATCH given to [`execute`](crate::execute); an object in JSON.
#[derive(Debug, Clone, Default)]
pub struct BatchSlots(pub Vec<(String, BatchSlot)>);

/// The outcome of one entry of a BATCH given to [`execute`](crate::execute).
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum BatchSlot {
    /// It was answered.
    Answer(Box<Answer>),
    /// It was refused.
    Failed {
        /// The error.
        error: Error,
    },
}

/// The text of an assembly, from [`execute`](crate::execute).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FormattedContext {
    /// The format of the text.
    pub format: Cow<'static, str>,
    /// The text.
    pub text: String,
    /// Its tokens, by the counter in use.
    pub tokens: u64,
}

/// Source reports by label, in the order of FROM, from [`execute`](crate::execute); an object in JSON.
#[derive(Debug, Clone, Default)]
pub struct SourceAnswers(pub Vec<(String, SourceAnswer)>);

/// The outcome of one source of an assembly, from [`execute`](crate::execute).
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct SourceAnswer {
    /// Grains shown in full.
    pub full: u64,
    /// Grains shown at standard level.
    pub standard: u64,
    /// Grains shown in summary form.
    pub summary: u64,
    /// Grains left out for the budget.
    pub omitted: u64,
    /// Its share of the budget, in the unit of the budget.
    pub allocated: u64,
    /// The part of the budget it used, in the same unit.
    pub used: u64,
    /// The error, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
    /// The most informative sentences of its grains, WITH summarize.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summarized: Option<Vec<String>>,
    /// Its own text, with AS in the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formatted: Option<String>,
    /// The rows that the options of the assembly ask for, one for each of its grains, shown or not; empty
    /// without such options.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grains: Vec<ResultRow>,
    /// The grains shown, in the order of the text; not in JSON.
    #[serde(skip)]
    pub shown: Vec<ContentAddress>,
}

/// One version of a HISTORY, from [`execute`](crate::execute).
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Version {
    /// The address.
    pub address: ContentAddress,
    /// The grain.
    pub grain: Grain,
    /// Its index-layer state.
    pub state: GrainState,
}

impl From<Hit> for Version {
    fn from(hit: Hit) -> Self {
        Self { address: hit.address, grain: hit.grain, state: hit.state }
    }
}

/// Serialises a nested answer through a JSON value: flattening the type into itself would recurse without
/// end.
fn serialize_nested<S: Serializer>(answer: &Answer, serializer: S) -> Result<S::Ok, S::Error> {
    let value = serde_json::to_value(answer).map_err(serde::ser::Error::custom)?;
    value.serialize(serializer)
}

impl Serialize for BatchSlots {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(label, slot)| (label, slot)))
    }
}

impl Serialize for SourceAnswers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (label, source) in &self.0 {
            map.serialize_entry(label, source)?;
        }
        map.end()
    }
}
