//! Conflicts between an imported file and the store: a list of bounded length, and the total count.

use grainstore_format::ContentAddress;
use serde::{Deserialize, Serialize};

/// Maximum number of conflicts listed for one [`Session::import`](crate::Session::import); the rest are
/// counted.
pub const MAX_CONFLICTS: usize = 100;

/// The subject of a conflict between a file and the store ([`Session::import`](crate::Session::import)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ConflictSubject {
    /// The grain that superseded it, or that it was superseded.
    Supersession,
    /// That it is contradicted.
    Contradiction,
    /// That it ended, for a reason that is not stated.
    End,
    /// Its verification status.
    Verification,
    /// The dimension or metric of its vectors of a model.
    Embedding,
    /// The withdrawal of a consent by it.
    Withdrawal,
    /// The storage of the grain itself.
    Grain,
}

/// A grain for which the store keeps another statement than the file's
/// ([`Session::import`](crate::Session::import)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Conflict {
    /// The grain.
    pub address: ContentAddress,
    /// The subject of the conflict.
    pub about: ConflictSubject,
    /// A human-readable description of the outcome.
    pub detail: String,
}

/// The conflicts of one import.
#[derive(Debug, Clone, Default)]
pub(crate) struct Conflicts {
    pub(crate) listed: Vec<Conflict>,
    pub(crate) count: u64,
}

impl Conflicts {
    pub(crate) fn record(
        &mut self,
        address: ContentAddress,
        about: ConflictSubject,
        detail: String,
    ) {
        self.count = self.count.saturating_add(1);
        if self.listed.len() < MAX_CONFLICTS {
            self.listed.push(Conflict { address, about, detail });
        }
    }
}
