//! Grainstore: an embedded, content-addressed store for AI-agent memory (OMS 1.3).
//!
//! A [`Store`] is a directory; all work goes through a [`Session`].
//!
//! Modules in the order data flows through them:
//!
//! - `error`, `clock`, `options`: the words of the crate.
//! - `directory`: lock and names. `keys`: every byte layout of the truth.
//! - `store`: open, create, recover, close. `session`: validate and encode on the caller's thread.
//! - `pending` -> `writer` -> `plan` (with `policy`) -> `audit`: one write, decided and applied.
//! - `view`: one consistent state to read from. `history`, `memory` (for CAL), `ask`, `report`: what is read.

mod ask;
mod audit;
mod clock;
mod directory;
mod error;
mod history;
mod keys;
mod memory;
mod options;
mod pending;
mod plan;
mod policy;
mod report;
mod session;
mod store;
#[cfg(test)]
mod tests;
mod view;
mod writer;

pub use audit::AuditEntry;
pub use clock::{Clock, ManualClock, SystemClock};
pub use error::{Error, ErrorKind, Result};
pub use grainstore_cal as cal;
pub use grainstore_format as format;
pub use grainstore_format::{ContentAddress, EpochMs, Grain, GrainState, VerificationStatus};
pub use history::{MAX_HISTORY_BYTES, MAX_VERSIONS};
pub use memory::Reading;
pub use options::{OpenOptions, SessionOptions};
pub use pending::{Pending, PendingFuture};
pub use plan::{Put, SameFact};
pub use report::{MAX_ENTRIES, Stats};
pub use session::{MAX_BATCH, MAX_BATCH_BYTES, Offer, Session, Stored};
pub use store::Store;

/// The Rust example of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
