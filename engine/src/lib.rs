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

mod access;
mod advice;
mod anchor;
mod ask;
mod audit;
mod basis;
mod calls;
mod clock;
mod compression;
mod consent;
mod derived;
mod directory;
pub mod embed;
mod erase;
mod error;
mod folder;
mod follow;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod graph;
mod history;
mod indexed;
mod keyring;
mod keys;
mod latest;
mod maintain;
mod marks;
mod memory;
mod meta;
mod noting;
mod offer;
mod options;
mod overlay;
mod pending;
mod plan;
mod policy;
mod portable;
mod powers;
mod preset;
mod query;
mod reach;
mod reads;
mod reason;
mod report;
mod retrieval;
mod rules;
mod session;
mod source;
mod store;
mod sync;
mod templates;
#[cfg(test)]
mod tests;
mod texts;
mod truth;
mod upgrade;
mod vault;
mod vectors;
mod view;
mod writer;

pub use access::{ACCESS_AGE_MS, Access};
pub use audit::{AuditEntry, Checkpoint, ErasedConsent, ImportNote, ReadsNote};
pub use calls::{
    CalSwitch, CalledEntry, CapabilityToken, EventStream, Firewall, Prepared, Preparing,
    StreamedEntry, Streaming, Terms,
};
pub use clock::{Clock, ManualClock, SystemClock};
pub use directory::check_outside;
pub use erase::{
    Certificate, DueErasure, Erasing, Erasure, MAX_REPORTED, Returned, SubjectReport, Swept,
};
pub use error::{Error, ErrorKind, Result, is_guarded};
pub use grainstore_cal as cal;
pub use grainstore_format as format;
pub use grainstore_format::{ContentAddress, EpochMs, Grain, GrainState, VerificationStatus};
pub use graph::{
    Capability, Direction, Edge, Handoff, Lens, Listed, MAX_ANSWER_BYTES, MAX_CAPABILITIES,
    MAX_CLAIMS, MAX_EDGES, MAX_HANDOFFS, MAX_HOPS, MAX_LOOKED, MAX_MESSAGES, MAX_NODES, MAX_PATHS,
    MAX_RELATIVES, Message, Owner, Ownership, Related, Relative, Thread, Walk,
};
pub use history::{HISTORY_TIME, MAX_HISTORY_BYTES, MAX_VERSIONS};
pub use keyring::{Derivation, KeyFile, KeyProvider, MasterKey, Passphrase};
pub use latest::AsOf;
pub use maintain::{
    Backup, Checked, Compaction, Diagnosis, Fault, FilePages, Finding, Health, MAX_PROBLEMS, Pages,
    Problem, Verification, doctor, verify,
};
pub use marks::Trial;
pub use memory::{CAL_CONFORMANCE, CAL_EXCEPTIONS, Reading};
pub use offer::Offer;
pub use options::{OpenOptions, SessionOptions};
pub use pending::{Pending, PendingFuture};
pub use plan::{Conflict, Disputed, MAX_CONFLICTS, Put, SameFact};
pub use policy::{Explanation, Ruling, explain};
pub use portable::{Exported, Exporting, Imported, Importing, MAX_IMPORT_CLAIMS};
pub use powers::Power;
pub use preset::{Deed, Encrypt, Level, Preset, Rule, RuleSet, Setting, Settings};
pub use query::{
    Answer, Cursor, Expanded, MAX_PAGE, MAX_PAGE_BYTES, Match, Page, QueryExpansion, QueryList,
    QueryPlan,
};
pub use reads::ReadsRecorded;
pub use reason::MAX_REASON_BYTES;
pub use report::{MAX_ENTRIES, MAX_REASONS_BYTES, Stats};
pub use rules::RulesChanged;
pub use session::{MAX_BATCH, MAX_BATCH_BYTES, Session, Stored};
pub use store::Store;
pub use texts::ObserverDomain;
pub use vectors::VectorSpace;

/// The Rust example of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
