//! The operations that statements perform, as capability tokens name them.

/// An operation that a capability token may allow (CAL 18.1, `allowed_ops`); [`prepare`](crate::prepare)
/// lists those of a statement.
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
