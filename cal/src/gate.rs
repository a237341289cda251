//! Admission of checked statements by the host, before any data is read (CAL 18.1, 20.2, 20.3). This module
//! knows no tokens, quotas or firewall: those are the host's.

use grainstore_format::{Grain, GrainType};

use crate::ast::{Statement, StatementType};
use crate::check::complexity::StatementCost;
use crate::check::plan::PlanWithLets;
use crate::memory::MemoryError;

/// Decides on every statement that passed the checker. It is asked about grains from several threads at
/// once.
pub trait AdmissionGate: Sync {
    /// Decides if the statement may run.
    ///
    /// # Errors
    /// The refusal, under the host's own code.
    fn admit(&self, admission: &AdmissionRequest) -> Result<(), MemoryError>;

    /// Decides if a RECALL or HISTORY may return this grain with all its fields. Called if neither SELECT
    /// nor another stage chooses among the fields, and for both grains of a DIFF.
    ///
    /// # Errors
    /// The refusal; it refuses the whole statement.
    fn gives_whole(&self, grain: &Grain) -> Result<(), MemoryError>;

    /// Returns `true` if [`AdmissionRequest::texts`] is needed; building it costs time.
    fn reads_text(&self) -> bool {
        false
    }
}

/// Properties of a statement known before it runs.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AdmissionRequest {
    /// The type of statement.
    pub statement_type: StatementType,
    /// The tier it needs.
    pub tier: u8,
    /// All operations it performs, each once: its own, those of the entries of a BATCH, and those of the
    /// recalls whose grains it returns.
    pub operations: Vec<CalOperation>,
    /// Grain types it names for reading, each once.
    pub reads: Vec<GrainType>,
    /// The grain type it writes.
    pub writes: Option<GrainType>,
    /// Estimated cost, by the table in docs/cal.md. It does not depend on the store.
    pub complexity: u64,
    /// The most grains that one of its recalls returns; `None` if all matches count.
    pub asked: Option<u64>,
    /// The statement in normal form, and its recalls without shortcuts, parameters unbound. Empty unless
    /// [`AdmissionGate::reads_text`].
    pub texts: Vec<String>,
}

/// An operation that a capability token may allow (CAL 18.1, `allowed_ops`).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[non_exhaustive]
pub enum CalOperation {
    /// RECALL and set operations.
    Recall,
    /// ASSEMBLE, with the recalls of its sources: their grains are returned as text only.
    Assemble,
    /// RECALL with COUNT.
    Count,
    /// EXISTS.
    Exists,
    /// EXPLAIN of any statement, which does not run.
    Explain,
    /// HISTORY.
    History,
    /// DESCRIBE.
    Describe,
    /// BATCH, in addition to the operations of its entries.
    Batch,
    /// COALESCE and its branches.
    Coalesce,
    /// ADD.
    Add,
    /// SUPERSEDE.
    Supersede,
    /// REVERT.
    Revert,
    /// DEFINE TEMPLATE: for the session in Tier 0, for its namespace in Tier 1.
    DefineTemplate,
}

impl CalOperation {
    /// Operations that read, in the order of CAL 18.1; the last stores a template for the session when it
    /// runs in Tier 0.
    pub const READING: [Self; 10] = [
        Self::Recall,
        Self::Assemble,
        Self::Count,
        Self::Exists,
        Self::Explain,
        Self::History,
        Self::Describe,
        Self::Batch,
        Self::Coalesce,
        Self::DefineTemplate,
    ];

    /// Operations that write.
    pub const EVOLVING: [Self; 3] = [Self::Add, Self::Supersede, Self::Revert];
}

impl AdmissionRequest {
    /// `tier` is [`Statement::tier`], or the tier requested for a DEFINE TEMPLATE.
    pub(crate) fn of(
        statement: &Statement<'_>,
        tier: u8,
        plan: &PlanWithLets,
        with_texts: bool,
    ) -> Self {
        let StatementCost { operations, reads, writes, points, asked, desugared } =
            StatementCost::of(plan);
        let mut texts = Vec::new();
        if with_texts {
            texts.push(statement.to_string());
            texts.extend(desugared);
        }
        Self {
            statement_type: statement.statement_type(),
            tier,
            operations,
            reads,
            writes,
            complexity: points,
            asked,
            texts,
        }
    }
}
