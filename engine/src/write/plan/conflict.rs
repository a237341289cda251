//! What an import could not have its way with: a list of bounded length, and the count of all.

use grainstore_format::ContentAddress;
use serde::Serialize;

/// Conflicts one import lists at most; the rest are counted.
pub const MAX_CONFLICTS: usize = 100;

/// What a file and the store disagree about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Disputed {
    /// Which grain superseded it, or whether one did.
    Supersession,
    /// Whether it is contradicted.
    Contradiction,
    /// Whether it ended, for a reason that is not stated.
    End,
    /// Its verification status.
    Verification,
    /// How long its vectors of a model are, and how they are compared.
    Embedding,
    /// Whether a consent is withdrawn by it.
    Withdrawal,
    /// Whether it may be stored at all.
    Grain,
}

/// A grain about which the file says something else than the store keeps to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Conflict {
    /// The grain.
    pub address: ContentAddress,
    /// What about it.
    pub about: Disputed,
    /// What became of it, for a person.
    pub detail: String,
}

/// The conflicts of one import.
#[derive(Debug, Clone, Default)]
pub(crate) struct Conflicts {
    pub(crate) listed: Vec<Conflict>,
    pub(crate) count: u64,
}

impl Conflicts {
    pub(crate) fn note(&mut self, address: ContentAddress, about: Disputed, detail: String) {
        self.count = self.count.saturating_add(1);
        if self.listed.len() < MAX_CONFLICTS {
            self.listed.push(Conflict { address, about, detail });
        }
    }
}
