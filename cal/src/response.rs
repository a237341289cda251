//! What a statement answers, in the shape of spec section 7.

use grainstore_format::{ContentAddress, Grain, GrainState};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::ast::StatementType;
use crate::codes::Warning;
use crate::memory::Hit;

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
    /// Grains looked at.
    pub grains_scanned: u64,
}

impl Response {
    /// The text for a model: of an ASSEMBLE, or of a RECALL with AS.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.answer {
            Answer::Assembly { formatted_context, .. } => Some(&formatted_context.text),
            Answer::Grains(grains) => grains.formatted.as_deref(),
            _ => None,
        }
    }
}

/// The answer by statement.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Answer {
    /// RECALL.
    Grains(Grains),
    /// RECALL .. COUNT.
    Count {
        /// Grains that match.
        count: u64,
    },
    /// ASSEMBLE.
    Assembly {
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
        /// The versions, newest first.
        versions: Vec<Version>,
    },
    /// ADD.
    Added {
        /// The new grain.
        content_address: ContentAddress,
    },
    /// SUPERSEDE.
    Superseded {
        /// The new grain.
        content_address: ContentAddress,
        /// The grain it replaces.
        superseded: ContentAddress,
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
}

/// One grain of a RECALL.
#[derive(Debug, Clone, Serialize)]
pub struct ResultRow {
    /// The grain, under full field names.
    pub grain: Grain,
    /// 1.0: a purely structural match.
    pub score: f64,
    /// The fields the query asked about.
    pub matched_fields: Vec<&'static str>,
    /// Its address.
    pub content_address: ContentAddress,
    /// Its address again, the root of its provenance.
    pub provenance_id: ContentAddress,
    /// Its index state, WITH superseded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<GrainState>,
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
    pub error: Option<crate::error::Error>,
    /// Its own text, with AS in the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub formatted: Option<String>,
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

impl Serialize for Sources {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (label, source) in &self.0 {
            map.serialize_entry(label, source)?;
        }
        map.end()
    }
}
