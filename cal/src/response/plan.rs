//! The reports of EXPLAIN and WITH explanation.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::ast::StatementType;
use crate::error::Error;
use crate::memory::AccessPlan;

/// The plan of a statement, from [`prepare`](crate::prepare) or EXPLAIN.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlanReport {
    /// The statement in normal form.
    pub statement: String,
    /// The kind of statement.
    pub statement_type: StatementType,
    /// The tier it runs in.
    pub tier: u8,
    /// The changes it makes; empty for reads.
    pub side_effects: Vec<Cow<'static, str>>,
    /// The errors it would be refused with now: for the tier of the session, and for its target. Empty for
    /// reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<Error>,
    /// The checks that are made only when it runs and may refuse it then; empty for reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checked_later: Vec<Cow<'static, str>>,
    /// Estimated tokens of its grains in a text, at most its budget; 0 if it answers a number, values or
    /// groups.
    pub estimated_tokens: u64,
    /// The recalls it consists of, each after those it depends on.
    pub recalls: Vec<RecallReport>,
}

/// The plan of one recall of a statement that [`prepare`](crate::prepare) has read.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecallReport {
    /// The part of the statement it is, such as `source facts`.
    pub part: String,
    /// Its text without shortcuts.
    pub desugared: String,
    /// The access plan of the memory.
    #[serde(flatten)]
    pub plan: AccessPlan,
    /// Estimated tokens of its grains in a text; 0 if they are not rendered.
    pub estimated_tokens: u64,
    /// Inputs that must be computed first, which the estimates do not account for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
    /// The fallback search of an ABOUT, used if no grain has its subject (CAL 9.1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<String>,
    /// The access plan of that fallback.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otherwise_plan: Option<AccessPlan>,
}

/// The plan of EXPLAIN with the cost that [`execute`](crate::execute) measured for a RECALL.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecallExplanation {
    /// The statement without shortcuts.
    pub desugared: String,
    /// The access plan made before it ran.
    #[serde(flatten)]
    pub plan: AccessPlan,
    /// Grains read, without those of subqueries.
    pub scanned: u64,
}
