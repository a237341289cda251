//! What a statement answers, in the shape of spec section 7.

mod plan;
mod row;

use grainstore_format::{ContentAddress, Grain, GrainState, Value};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::ast::StatementType;
use crate::codes::Warning;
use crate::error::Error;
use crate::memory::{Hit, TemplateKeeper};

pub use plan::{Explanation, PlanReport, RecallReport};
pub use row::ResultRow;

/// The machine envelope: `_cal`, and the answer of the statement beside it.
#[derive(Debug, Clone, Serialize)]
pub struct Response {
    /// About the execution.
    #[serde(rename = "_cal")]
    pub meta: Meta,
    /// The answer; its fields stand beside `_cal`.
    #[serde(flatten)]
    pub answer: Answer,
}

/// `_cal`.
#[derive(Debug, Clone, Serialize)]
pub struct Meta {
    /// Version of the envelope.
    pub version: &'static str,
    /// Which statement it was.
    pub statement_type: StatementType,
    /// The tier the statement needs: 0 reads, 1 evolves.
    pub tier: u8,
    /// `sha256:` and the hash of the normalised query, parameters unbound.
    pub query_hash: String,
    /// How long it took, milliseconds.
    pub duration_ms: u64,
    /// What it used.
    pub budget: Usage,
    /// How fresh the answer is, where the statement asked for a consistency: always `linearizable`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consistency: Option<&'static str>,
    /// Where an answer that is kept would have done (WITH cache): always `fresh`, none is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<&'static str>,
    /// What the caller should know.
    pub warnings: Vec<Warning>,
}

/// What a statement used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Tokens of the formatted text, by the counter in use; 0 without one.
    pub tokens_used: u64,
    /// Grains in the answer.
    pub grains_returned: u64,
    /// Grains of the session that were looked at.
    pub grains_scanned: u64,
}

impl Response {
    /// The text for a model: of an ASSEMBLE, or of a RECALL with AS.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.answer {
            Answer::Assembly { formatted_context, .. } => Some(&formatted_context.text),
            answer => answer.formatted(),
        }
    }
}

impl Answer {
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
                Slot::Answer(answer) => answer.has_text(),
                Slot::Failed { .. } => true,
            }),
            _ => false,
        }
    }

    /// Whether nothing was found, for COALESCE.
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

/// The answer by statement.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Answer {
    /// RECALL and set operations.
    Grains(Grains),
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
        /// The distinct values, in the order of the result; at most a thousand.
        values: Vec<Value>,
        /// How many there are; null where there are more than shown.
        total: Option<u64>,
        /// The values as text, with AS.
        #[serde(skip_serializing_if = "Option::is_none")]
        formatted: Option<String>,
    },
    /// RECALL .. GROUP BY.
    Groups {
        /// The groups, largest first; at most a thousand.
        groups: Vec<Group>,
        /// How many there are.
        total: u64,
        /// The groups as text, with AS.
        #[serde(skip_serializing_if = "Option::is_none")]
        formatted: Option<String>,
    },
    /// COALESCE: the answer of the first branch that found something.
    Coalesced {
        /// Its place, from 0; null where none did, then the last answers.
        branch: Option<u64>,
        /// Its answer, whose fields stand beside `branch`.
        #[serde(flatten, serialize_with = "as_value")]
        answer: Box<Answer>,
    },
    /// BATCH.
    Batch {
        /// What became of each entry, in order.
        batch: Slots,
    },
    /// EXPLAIN.
    Plan {
        /// The plan.
        plan: PlanReport,
    },
    /// DESCRIBE.
    Description {
        /// What was asked about.
        description: serde_json::Value,
    },
    /// ASSEMBLE.
    Assembly {
        /// Its name, where it has one.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The text.
        formatted_context: FormattedContext,
        /// What became of each source, in the order of FROM.
        sources: Sources,
    },
    /// EXISTS.
    Exists {
        /// Whether the session sees the grain.
        exists: bool,
    },
    /// HISTORY.
    Versions {
        /// The versions, newest first; of one grain at most a hundred.
        versions: Vec<Version>,
        /// How many there are; null where there are more than shown.
        total: Option<u64>,
    },
    /// HISTORY .. DIFF.
    Diff {
        /// The fields that differ, by name.
        diff: Vec<Change>,
        /// Whether one of the two is a reasoning that waits for the review it asks for.
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
        /// Its name.
        template: String,
        /// The preset it extends, where it says so.
        #[serde(skip_serializing_if = "Option::is_none")]
        extends: Option<String>,
        /// Who keeps it.
        kept: TemplateKeeper,
    },
}

/// The answer of a RECALL.
#[derive(Debug, Clone, Serialize)]
pub struct Grains {
    /// The grains, in order.
    pub results: Vec<ResultRow>,
    /// All matches, before LIMIT and OFFSET; null where they were not counted.
    pub total: Option<u64>,
    /// Where the next page starts; null where there is no next page to ask for.
    pub next_cursor: Option<String>,
    /// The grains as text, with AS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formatted: Option<String>,
    /// The sentences that say most of what they say, WITH summarize.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summarized: Option<Vec<String>>,
    /// How they were found, WITH explanation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
}

/// A value of GROUP BY.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// The value.
    pub key: Value,
    /// How many grains have it.
    pub count: u64,
    /// Whether all of these are reasonings that wait for the review they ask for: nobody else says so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub requires_human_review: bool,
}

/// A field two versions differ in.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// Its full name.
    pub field: String,
    /// Its value in the first; null where it has none.
    pub from: Option<Value>,
    /// Its value in the second; null where it has none.
    pub to: Option<Value>,
}

/// Answers by label, in the order of a BATCH; an object in JSON.
#[derive(Debug, Clone, Default)]
pub struct Slots(pub Vec<(String, Slot)>);

/// What became of one entry of a BATCH.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Slot {
    /// It was answered.
    Answer(Box<Answer>),
    /// It was refused.
    Failed {
        /// Why.
        error: Error,
    },
}

/// A finished context.
#[derive(Debug, Clone, Serialize)]
pub struct FormattedContext {
    /// The format of the text.
    pub format: &'static str,
    /// The text.
    pub text: String,
    /// Its tokens, by the counter in use.
    pub tokens: u64,
}

/// Reports by label, in the order of FROM; an object in JSON.
#[derive(Debug, Clone, Default)]
pub struct Sources(pub Vec<(String, SourceAnswer)>);

/// What became of one source of an assembly.
#[derive(Debug, Clone, Default, Serialize)]
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
    /// What it used of the budget, in the same unit.
    pub used: u64,
    /// Why it failed, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
    /// The sentences that say most of what its grains say, WITH summarize.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summarized: Option<Vec<String>>,
    /// Its own text, with AS in the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formatted: Option<String>,
    /// What the options of the assembly tell of each of its grains, shown or not; empty without them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grains: Vec<ResultRow>,
}

/// One version of a HISTORY.
#[derive(Debug, Clone, Serialize)]
pub struct Version {
    /// Its address.
    pub address: ContentAddress,
    /// The grain.
    pub grain: Grain,
    /// Its index state.
    pub state: GrainState,
}

impl From<Hit> for Version {
    fn from(hit: Hit) -> Self {
        Self { address: hit.address, grain: hit.grain, state: hit.state }
    }
}

/// An answer inside another, by way of a JSON value: a type that flattened itself would never end.
fn as_value<S: Serializer>(answer: &Answer, serializer: S) -> Result<S::Ok, S::Error> {
    let value = serde_json::to_value(answer).map_err(serde::ser::Error::custom)?;
    value.serialize(serializer)
}

impl Serialize for Slots {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(label, slot)| (label, slot)))
    }
}

impl Serialize for Sources {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (label, source) in &self.0 {
            map.serialize_entry(label, source)?;
        }
        map.end()
    }
}
