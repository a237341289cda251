//! Whether a checked statement may run: what a host is told of it before anything is looked at, and
//! where it says no (spec section 6). Knows no tokens, no quotas and no firewall: those are the host's.

use grainstore_format::{Grain, GrainType};

use crate::ast::{Statement, StatementType};
use crate::check::complexity::Weighed;
use crate::check::plan::RequestPlan;
use crate::memory::MemoryError;

/// Asked about every statement that passed the checker, and about grains from several threads at once.
pub trait Gate: Sync {
    /// Says whether the statement may run.
    ///
    /// # Errors
    /// Why it may not, under the host's own code.
    fn admit(&self, admission: &Admission) -> Result<(), MemoryError>;

    /// Says whether a RECALL or HISTORY may give out this grain with all its fields; asked where neither
    /// SELECT nor anything else chooses among them, and of both grains of a DIFF.
    ///
    /// # Errors
    /// Why it may not; the whole statement is refused.
    fn gives_whole(&self, grain: &Grain) -> Result<(), MemoryError>;

    /// Whether [`Admission::texts`] are looked at; making them costs time.
    fn reads_text(&self) -> bool {
        false
    }
}

/// What is known of a statement before it runs.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Admission {
    /// Which statement it is.
    pub statement_type: StatementType,
    /// The tier it needs.
    pub tier: u8,
    /// Everything it does, each once: its own operation, those of the entries of a BATCH, and those of the
    /// recalls whose grains it gives out.
    pub operations: Vec<Operation>,
    /// The grain types it names to read, each once.
    pub reads: Vec<GrainType>,
    /// The grain type it writes.
    pub writes: Option<GrainType>,
    /// How much work it may be, by the table in docs/cal.md. The same for every store.
    pub complexity: u64,
    /// The most grains one of its recalls gives; none where every match counts.
    pub asked: Option<u64>,
    /// The statement in normal form, and its recalls without shortcuts, parameters unbound. Empty where
    /// nobody reads them.
    pub texts: Vec<String>,
}

/// What a capability token may allow (spec section 6, `allowed_ops`).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[non_exhaustive]
pub enum Operation {
    /// RECALL and set operations.
    Recall,
    /// ASSEMBLE, with the recalls it is made of: their grains are seen as text alone.
    Assemble,
    /// RECALL .. COUNT.
    Count,
    /// EXISTS.
    Exists,
    /// EXPLAIN, whatever it explains: nothing of that runs.
    Explain,
    /// HISTORY.
    History,
    /// DESCRIBE.
    Describe,
    /// BATCH, beside what its entries are.
    Batch,
    /// COALESCE, with its branches.
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

impl Operation {
    /// Those that read, in the order of the specification; the last keeps something for the session
    /// where it runs in Tier 0.
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

    /// Those that write.
    pub const EVOLVING: [Self; 3] = [Self::Add, Self::Supersede, Self::Revert];
}

impl Admission {
    /// `tier` is that of [`Statement::tier`], or the one a DEFINE TEMPLATE is asked for in.
    pub(crate) fn of(
        statement: &Statement<'_>,
        tier: u8,
        plan: &RequestPlan,
        with_texts: bool,
    ) -> Self {
        let Weighed { operations, reads, writes, points, asked, desugared } = Weighed::of(plan);
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
