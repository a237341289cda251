//! Admission of checked statements by the host, before any data is read (CAL 18.1, 20.2, 20.3). This module
//! knows no tokens, quotas or firewall: those are the host's.

use grainstore_format::{Grain, GrainType};

use crate::ast::{Statement, StatementType};
use crate::check::complexity::StatementCost;
use crate::check::plan::PlanWithLets;
use crate::memory::MemoryError;
use crate::operation::CalOperation;

/// Decides on every statement that passed the checker. It is asked about grains from several threads at
/// once.
///
/// ```
/// use grainstore_cal::{AdmissionGate, AdmissionRequest, MemoryError};
/// use grainstore_format::Grain;
/// # use grainstore_format::{EpochMs, EventBuilder};
///
/// struct Private;
///
/// impl AdmissionGate for Private {
///     fn admit(&self, request: &AdmissionRequest) -> Result<(), MemoryError> {
///         if request.tier == 0 { Ok(()) } else { Err(MemoryError::new("ERR_TIER", "read", "")) }
///     }
///     fn admit_whole_grain(&self, grain: &Grain) -> Result<(), MemoryError> {
///         let refused = || MemoryError::new("ERR_POLICY", "a grain of a user", "SELECT fields");
///         if grain.text("user_id").is_none() { Ok(()) } else { Err(refused()) }
///     }
/// }
/// # let now = EpochMs::new(1_768_471_200_000);
/// # let event = EventBuilder::new(now, "hi").user_id("alice").build()?;
/// # assert!(Private.admit_whole_grain(&event).is_err_and(|error| error.code() == "ERR_POLICY"));
/// # Ok::<(), grainstore_format::Error>(())
/// ```
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
    fn admit_whole_grain(&self, grain: &Grain) -> Result<(), MemoryError>;

    /// Returns `true` if [`AdmissionRequest::texts`] is needed; building it costs time.
    fn needs_texts(&self) -> bool {
        false
    }
}

/// Properties of a statement known before it runs, by which an [`AdmissionGate`] decides.
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
    pub max_grains: Option<u64>,
    /// The statement in normal form, and its recalls without shortcuts, parameters unbound. Empty unless
    /// [`AdmissionGate::needs_texts`].
    pub texts: Vec<String>,
}

impl AdmissionRequest {
    /// `tier` is [`Statement::tier`], or the tier requested for a DEFINE TEMPLATE.
    pub(crate) fn of(
        statement: &Statement<'_>,
        tier: u8,
        plan: &PlanWithLets,
        with_texts: bool,
    ) -> Self {
        let StatementCost { operations, reads, writes, points, max_grains: asked, desugared } =
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
            max_grains: asked,
            texts,
        }
    }
}
