//! Grainstore: an embedded, content-addressed store for AI-agent memory (OMS 1.3).
//!
//! What an agent knows is kept as **grains**: small immutable records (beliefs, events, goals and seven more types),
//! each addressed by the SHA-256 of its bytes. A grain never changes; a newer one *supersedes* it.
//!
//! # Quick start
//!
//! ```
//! use grainstore::prelude::*;
//!
//! let dir = tempfile::tempdir()?;
//! let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
//! let session = store.session(SessionOptions::default());
//! let fact = |drink: &str| BeliefBuilder::new(session.now(), "alice", "prefers", drink, 0.9).build();
//! let tea = session.put(fact("tea")?)?.address();
//! session.supersede(&tea, fact("coffee")?, Some("she said so"))?;
//! let answer = session.ask(r#"ASSEMBLE FROM (RECALL beliefs ABOUT "alice") BUDGET 200 tokens"#)?;
//! assert!(answer.text().unwrap_or_default().contains("prefers coffee"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Sessions
//!
//! A [`Store`] is a directory, open in one process; crate `grainstore-rpc` shares it with others. All work goes
//! through a [`Session`]: [`SessionOptions`] name its namespace, user and actor. A session sees its namespace and those below it, its user's grains and those without a
//! user, and nothing that rests on a withdrawn consent. A session with neither sees everything: it is the operator's.
//!
//! # Writing
//!
//! [`Session::put`] stores one grain, [`Session::put_batch`] all of several or none, [`Session::supersede`]
//! replaces one. When a write returns it is synced to disk; [`Session::submit`] and its kin give a
//! [`Pending`] to wait for or `.await`. The grain's invalidation policy may refuse:
//! `ERR_INVALIDATION_DENIED`, with an entry in the audit log.
//!
//! ```
//! # use grainstore::prelude::*;
//! # let dir = tempfile::tempdir()?;
//! # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
//! # let session = store.session(SessionOptions::default());
//! let locked = Grain::from_json(
//!     r#"{"type": "belief", "subject": "payments", "relation": "mg:requires", "object": "two signatures",
//!         "confidence": 1, "created_at": "2026-03-02T09:00:00Z", "invalidation_policy": {"mode": "locked"}}"#,
//! )?;
//! let rule = session.put(locked)?.address();
//! let other = BeliefBuilder::new(session.now(), "payments", "mg:requires", "nothing", 1.0).build()?;
//! let refused = session.supersede(&rule, other, None).unwrap_err();
//! assert_eq!(refused.code(), "ERR_INVALIDATION_DENIED");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Asking
//!
//! [`Session::get`] by address; [`Session::query`] by fields, words and vectors, a page at a time;
//! [`Session::ask`] in CAL, the language that also assembles a context for a model within a token budget
//! (`docs/cal.md`).
//!
//! ```
//! # use grainstore::prelude::*;
//! # let dir = tempfile::tempdir()?;
//! # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
//! # let session = store.session(SessionOptions::default());
//! # session.put(BeliefBuilder::new(session.now(), "alice", "prefers", "coffee", 0.9).build()?)?;
//! let about_alice = Query::default().when(Predicate::text_is("subject", "alice")?);
//! assert_eq!(session.query(&about_alice, &PageOptions::first(16))?.results.len(), 1);
//! let drinks = Query::default().searching("who likes coffee");
//! assert_eq!(session.query(&drinks, &PageOptions::first(3))?.results.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Erasing
//!
//! [`Session::erase_user`] erases a person, [`Session::erase`] one grain: at once for readers, off the disk when the
//! scrub ends. An encrypted store ([`OpenOptions::key`]) destroys the person's key. Holds and retention refuse it.
//!
//! # State of applications
//!
//! A host keeps files and small mutable rows of its own beside grains: [`Session::put_side_blob`], [`Session::write_rows`].
//! Each has an [`Owner`], and is erased with them.
//!
//! # Limits, errors, threads
//!
//! What one call takes and gives at most is in [`limits`], and every bound in `docs/limits.md`. Every [`Error`] has a stable
//! [`code`](Error::code), says what is wrong, where, and what to do; `docs/errors.md` lists the codes.
//! [`Store`] and [`Session`] are cheap to clone, `Send` and `Sync`; results are owned. One thread writes; any
//! number read, each from a snapshot.
//!
//! # Where is the code?
//!
//! The modules lie on nine floors, and each uses its own and those below: `operate`, `read`, `handle`,
//! `write`, `search`, `state`, `disk`, `rules`, `base`. `docs/architecture.md` walks a put, a recall and an
//! ASSEMBLE through them.

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
pub use base::error::{Error, ErrorKind, Result, is_guarded};
pub use base::pending::{Pending, PendingFuture};
pub use disk::directory::check_outside;
pub use disk::keyring::{Derivation, KeyFile, KeyProvider, MasterKey, Passphrase};
pub use disk::layout::AccessCounts;
pub use grainstore_cal as cal;
pub use grainstore_format as format;
pub use grainstore_format::{ContentAddress, EpochMs, Grain, GrainState, VerificationStatus};
pub use handle::cal_switch::CalSwitch;
pub use handle::capability_token::{CapabilityToken, TokenLimits};
pub use handle::firewall::Firewall;
pub use handle::options::OpenOptions;
pub use handle::session::{Session, StoredGrain};
pub use handle::store::Store;
pub use operate::erase::{
    DueErasure, EraseOptions, EraseOutcome, ErasureCertificate, Returned, SubjectReport,
    SweepReport,
};
pub use operate::maintain::{
    BackupReport, CompactionReport, Diagnosis, FilePageUsage, Finding, Health, PageUsage, Problem,
    ProblemKind, TruthDigest, VerifyCounts, VerifyReport, doctor, verify,
};
pub use operate::portable::{ExportOptions, ExportReport, ImportOptions, ImportReport};
pub use operate::report::StoreStats;
pub use operate::rule_changes::RuleChangeReport;
pub use read::calls::{EventStream, PrepareOptions, PreparedQuery, StreamOptions};
pub use read::latest::AsOf;
pub use read::memory::{CAL_CONFORMANCE, CAL_EXCEPTIONS, SessionMemory};
pub use read::query::{
    Cursor, ExpansionStats, PageOptions, QueryExpansion, QueryList, QueryMatch, QueryPage,
    QueryPlan,
};
pub use read::read_log::ReadsDestination;
pub use read::state_changes::SupersedePreview;
pub use rules::policy::{AppliedRule, PolicyExplanation, PolicyProtector, RuleResult, explain};
pub use rules::preset::{
    Action, EncryptionScope, Preset, PresetRule, RuleSet, SensitivityLevel, Setting, Settings,
};
pub use search::embed;
pub use search::texts::ObserverDomain;
pub use search::vectors::VectorSpaceStats;
pub use state::application::{
    ApplicationCounts, ApplicationKey, ApplicationRow, Owner, RowChange, RowPage, RowRange,
};
pub use state::audit::{
    AuditEntry, AuditSegment, AuditedCall, AuditedStream, Checkpoint, ErasedConsent, ImportSummary,
    ReadLogSummary, TransferKind, TransferSummary,
};
pub use state::powers::Power;
pub use state::session_options::SessionOptions;
pub use write::offer::Offer;
pub use write::plan::{Conflict, ConflictSubject, PutOutcome, SameFact};

/// What one call takes and gives at most.
pub mod limits {
    pub use crate::base::memory::MIN_MEMORY_BYTES;
    pub use crate::handle::principal::MAX_REASON_BYTES;
    pub use crate::handle::session::{MAX_AUDIT_ENTRIES, MAX_BATCH, MAX_BATCH_BYTES};
    pub use crate::operate::erase::MAX_REPORTED_GRAINS;
    pub use crate::operate::maintain::MAX_PROBLEMS;
    pub use crate::operate::portable::MAX_IMPORT_CLAIMS;
    pub use crate::operate::report::{MAX_AUDIT_SUBJECTS, MAX_REASONS_BYTES};
    pub use crate::read::graph::{
        MAX_ANSWER_BYTES, MAX_CAPABILITIES, MAX_CLAIMS, MAX_EDGES, MAX_GRAPH_STEPS, MAX_HANDOFFS,
        MAX_HOPS, MAX_MESSAGES, MAX_NODES, MAX_PATHS, MAX_RELATIVES,
    };
    pub use crate::read::history::{HISTORY_TIMEOUT, MAX_HISTORY_BYTES, MAX_VERSIONS};
    pub use crate::read::query::{MAX_PAGE, MAX_PAGE_BYTES};
    pub use crate::state::application::{
        MAX_APPLICATION_BYTES, MAX_KEY_BYTES, MAX_ROW_CHANGE_BYTES, MAX_ROW_CHANGES, MAX_ROW_PAGE,
        MAX_ROW_PAGE_BYTES, MAX_SIDE_BLOB_BYTES, MAX_VALUE_BYTES,
    };
    pub use crate::state::audit::{
        MAX_SEGMENT_DAYS, MAX_SEGMENT_ENTRIES, MAX_TRANSFER_FORMAT_BYTES,
    };
    pub use crate::write::access_counters::ACCESS_AGE_MS;
    pub use crate::write::plan::MAX_CONFLICTS;
}

/// The journal of a store that several nodes have a copy of (docs/cluster.md).
pub mod journal {
    pub use crate::disk::journal::{
        FileJournal, Head, Journal, KEYRING_SLOT_BYTES, KeyringSlot, Lead, MAX_RECORD_BYTES,
        MemoryJournal, Record, ShardId, ShardStatus, damaged, fenced, incompatible, invalid,
        led_by, not_leader, refused, unreachable,
    };
    pub use crate::disk::journaling::CommitPosition;
}

/// What grains say of each other: edges, threads, owners, capabilities, handoffs.
pub mod graph {
    pub use crate::read::graph::{
        BoundedList, Capability, CrossLink, Direction, Edge, EdgeQuery, GraphOptions, Handoff,
        Message, Owner, Ownership, Relative, Thread,
    };
}

/// The dozen names most programs begin with.
///
/// ```
/// use grainstore::prelude::*;
///
/// let dir = tempfile::tempdir()?;
/// let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// let session = store.session(SessionOptions::default());
/// session.put(BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub mod prelude {
    pub use crate::cal::{Predicate, Query};
    pub use crate::format::{BeliefBuilder, EventBuilder, GoalBuilder};
    pub use crate::{
        ContentAddress, Error, ErrorKind, Grain, OpenOptions, PageOptions, Result, Session,
        SessionOptions, Store,
    };
}

/// Handles and errors cross threads.
const _: () = {
    const fn crosses_threads<T: Send + Sync>() {}
    crosses_threads::<Store>();
    crosses_threads::<Session>();
    crosses_threads::<Error>();
    crosses_threads::<OpenOptions>();
};

/// The Rust example of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
