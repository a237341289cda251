//! Grainstore: an embedded, content-addressed store for AI-agent memory (OMS 1.3).
//!
//! A [`Store`] is a directory; all work goes through a [`Session`].
//!
//! Modules in the order data flows through them:
//!
//! - `error`, `clock`, `options`: the words of the crate. `sync`: what its threads wait with.
//! - `directory`: lock and names. `keys`: every byte layout of the truth. `keyring`, `vault`: whose key a row is under.
//! - `source`, `truth`, `folder`, `indexed`, `view`: one consistent state to read from, and how the derived index follows the log.
//! - `consent`, `reach`: what a session sees of it.
//! - `meta`, `store`: what a store says of itself; open, create, recover, close. `offer`, `session`, `marks`: validate and encode on the caller's
//!   thread.
//! - `pending` -> `writer` -> `plan` (with `policy` and `preset`) -> `audit`: one write, decided and applied. `rules`: changing
//!   the rules of a store. `noting`: reads in the audit log. `reads`: the read log beside it.
//! - `query`, `graph`, `history`, `latest`, `memory` (for CAL), `ask`, `report`: what is read. `calls`: tokens, switches,
//!   firewall and audit of CAL. `access`: how often.
//! - [`embed`]: vectors of text, by a program of the host's or a model in the process.
//! - `maintain`: verify, compact, reindex, back up, examine. `portable`: grains in `.mg` files.

mod base;
mod disk;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod handle;
mod operate;
mod read;
mod rules;
mod search;
mod state;
#[cfg(test)]
mod tests;
mod write;

pub use base::clock::{Clock, ManualClock, SystemClock};
pub use base::error::{Error, ErrorKind, Result};
pub use base::pending::{Pending, PendingFuture};
pub use disk::keyring::{Derivation, KeyFile, KeyProvider, MasterKey, Passphrase};
pub use disk::keys::Access;
pub use grainstore_cal as cal;
pub use grainstore_format as format;
pub use grainstore_format::{ContentAddress, EpochMs, Grain, GrainState, VerificationStatus};
pub use handle::cal_switch::CalSwitch;
pub use handle::capability_token::{CapabilityToken, Terms};
pub use handle::firewall::Firewall;
pub use handle::options::OpenOptions;
pub use handle::reason::MAX_REASON_BYTES;
pub use handle::session::MAX_ENTRIES;
pub use handle::session::{MAX_BATCH, MAX_BATCH_BYTES, Session, Stored};
pub use handle::store::Store;
pub use operate::erase::{
    Certificate, DueErasure, Erasing, Erasure, MAX_REPORTED, SubjectReport, Swept,
};
pub use operate::maintain::{
    Backup, Checked, Compaction, Diagnosis, Fault, FilePages, Finding, Health, MAX_PROBLEMS, Pages,
    Problem, Verification, doctor, verify,
};
pub use operate::portable::{Exported, Exporting, Imported, Importing, MAX_IMPORT_CLAIMS};
pub use operate::report::{MAX_REASONS_BYTES, Stats};
pub use operate::rule_changes::RulesChanged;
pub use read::calls::{EventStream, Prepared, Preparing, Streaming};
pub use read::graph::{
    Capability, Direction, Edge, Handoff, Lens, Listed, MAX_ANSWER_BYTES, MAX_CAPABILITIES,
    MAX_CLAIMS, MAX_EDGES, MAX_HANDOFFS, MAX_HOPS, MAX_LOOKED, MAX_MESSAGES, MAX_NODES, MAX_PATHS,
    MAX_RELATIVES, Message, Owner, Ownership, Related, Relative, Thread, Walk,
};
pub use read::history::{HISTORY_TIME, MAX_HISTORY_BYTES, MAX_VERSIONS};
pub use read::latest::AsOf;
pub use read::marks::Trial;
pub use read::memory::{CAL_CONFORMANCE, CAL_EXCEPTIONS, Reading};
pub use read::query::{
    Answer, Cursor, Expanded, MAX_PAGE, MAX_PAGE_BYTES, Match, Page, QueryExpansion, QueryList,
    QueryPlan,
};
pub use read::read_log::ReadsRecorded;
pub use rules::policy::{Explanation, Ruling, explain};
pub use rules::preset::{Deed, Encrypt, Level, Preset, Rule, RuleSet, Setting, Settings};
pub use search::embed;
pub use search::texts::ObserverDomain;
pub use search::vectors::VectorSpace;
pub use state::audit::{
    AuditEntry, CalledEntry, Checkpoint, ErasedConsent, ImportNote, ReadsNote, StreamedEntry,
};
pub use state::powers::Power;
pub use state::session_options::SessionOptions;
pub use write::access::ACCESS_AGE_MS;
pub use write::offer::Offer;
pub use write::plan::{Conflict, Disputed, MAX_CONFLICTS, Put, SameFact};

/// The Rust example of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
