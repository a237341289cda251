//! What EXPLAIN and WITH explanation tell about a statement.

use serde::Serialize;

use crate::ast::StatementType;
use crate::error::Error;
use crate::memory::Explained;

/// What a statement would do.
#[derive(Debug, Clone, Serialize)]
pub struct PlanReport {
    /// The statement in normal form.
    pub statement: String,
    /// Which statement it is.
    pub statement_type: StatementType,
    /// The tier it needs.
    pub tier: u8,
    /// What it changes; empty for reads.
    pub side_effects: Vec<&'static str>,
    /// What it would be refused for now: by the tier of the session, and for its target. Empty for
    /// reads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<Error>,
    /// What is not looked at before it runs, and may refuse it then; empty for reads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checked_later: Vec<&'static str>,
    /// Tokens its grains take in a text, about, and never more than its budget; none where it answers
    /// a number, values or groups.
    pub estimated_tokens: u64,
    /// The recalls it is made of, those they wait for first.
    pub recalls: Vec<RecallReport>,
}

/// How one recall would be run.
#[derive(Debug, Clone, Serialize)]
pub struct RecallReport {
    /// Which part of the statement it is.
    pub part: String,
    /// Its text without shortcuts.
    pub desugared: String,
    /// What the memory says about it.
    #[serde(flatten)]
    pub plan: Explained,
    /// Tokens its grains take in a text, about; none where they go into none.
    pub estimated_tokens: u64,
    /// What must be found first; the estimates do not know it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
    /// What is asked where nothing has the subject of an ABOUT.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<String>,
    /// What the memory says about that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otherwise_plan: Option<Explained>,
}

/// How a RECALL was run: the plan of EXPLAIN and what it came to.
#[derive(Debug, Clone, Serialize)]
pub struct Explanation {
    /// The statement without shortcuts.
    pub desugared: String,
    /// What the memory said beforehand.
    #[serde(flatten)]
    pub plan: Explained,
    /// Grains looked at, those of subqueries not counted.
    pub scanned: u64,
}
