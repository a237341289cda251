//! The Agent Life Format (ALF 1.0): all of an agent as an archive, into a store and out of it, and nothing lost.
//!
//! | function | what it does |
//! |---|---|
//! | [`validate`] | checks an archive or a delta, without a store |
//! | [`import()`] | takes an archive into a store |
//! | [`export()`] | writes all of an agent as an archive |
//! | [`export_delta`], [`apply_delta`] | what changed since a sequence number, and into another store |
//! | [`purge()`], [`purge_archive`] | what must be gone, of a store or of a file |
//! | [`agents()`] | which agents a store has |
//!
//! `docs/alf.md` says what becomes of what, and why. All of it needs a session of the operator.
//!
//! ```
//! use grainstore::prelude::*;
//! use grainstore_interop::Monitor;
//! use grainstore_interop::alf::{self, *};
//! use grainstore_interop::archive::ArchiveWriter;
//!
//! # let dir = tempfile::tempdir()?;
//! # let agent = "0a1b2c3d-0000-4000-8000-00000000000a";
//! # let id = "019470a0-0000-7000-8000-000000000001";
//! # let [ours, theirs] = ["ours", "theirs"].map(|name| dir.path().join(name));
//! # let [archive, delta] = ["ada.alf", "ada.alf-delta"].map(|name| dir.path().join(name));
//! # let manifest = format!(r#"{{"alf_version": "1.0.0", "created_at": "2026-08-01T00:00:00Z",
//! #     "agent": {{"id": "{agent}", "name": "Ada", "source_runtime": "openclaw"}}, "layers": {{"memory":
//! #     {{"record_count": 1, "index_file": "memory/index.json", "partitions": [{{"file": "memory/2026.jsonl",
//! #     "from": "2026-01-01", "record_count": 1, "sealed": false}}]}}}}}}"#);
//! # let record = format!(r#"{{"id": "{id}", "agent_id": "{agent}", "content": "Alice likes tea.",
//! #     "memory_type": "semantic", "source": {{"runtime": "openclaw"}}, "status": "active",
//! #     "temporal": {{"created_at": "2026-07-02T10:00:00Z"}}, "namespace": "default"}}"#).replace('\n', " ");
//! # let mut writer = ArchiveWriter::create(&archive)?;
//! # writer.add("manifest.json", manifest.as_bytes())?;
//! # writer.add("memory/2026.jsonl", record.as_bytes())?;
//! # writer.finish()?;
//! # let open = |path| Store::open(path, &OpenOptions::new().create(true));
//! let store = open(ours)?;
//! let session = store.session(SessionOptions::default());
//! let report = alf::import(&session, &archive, &ImportOptions::default(), &Monitor::default())?;
//! assert_eq!((report.records.created, report.error_count), (1, 0));
//!
//! // Another store gets all of it, and later what changed.
//! let exported = alf::export(&session, &archive, &ExportOptions::default(), &Monitor::default())?;
//! let other = open(theirs)?;
//! let other = other.session(SessionOptions::default());
//! alf::import(&other, &archive, &ImportOptions::default(), &Monitor::default())?;
//!
//! let who_asked = "0a1b2c3d-0000-4000-8000-00000000000b";
//! let reason = PurgeOptions::new(PurgeReason::UserRequest, who_asked);
//! let audit = alf::purge(&session, &PurgeScope::Records(vec![id.into()]), &reason, &Monitor::default())?;
//! assert_eq!(audit.records_removed, 1);
//!
//! let since = DeltaOptions { since: exported.sequence, ..DeltaOptions::default() };
//! alf::export_delta(&session, &delta, &since, &Monitor::default())?;
//! let applied = alf::apply_delta(&other, &delta, &ImportOptions::default(), &Monitor::default())?;
//! assert_eq!(applied.import.records.deleted, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The modules, in the order in which an archive goes through them: `bundle` (its manifest), `schema` and `survey`
//! (what is in it, checked), `import` with `record`, `change` and `vectors`, `agent` (what is kept of an agent;
//! `log`: what became of it; `agents`: of which), `partition` and `export`, `delta`, `purge`. `native`: grains that were not born as records.
//! `names` and `issue` serve all of them.

mod agent;
mod agents;
mod bundle;
mod change;
mod delta;
mod export;
mod import;
mod issue;
mod log;
mod names;
mod native;
mod partition;
mod purge;
mod record;
mod schema;
mod survey;
mod validate;
mod vectors;

pub use agents::{AgentSummary, agents};
pub use delta::{ApplyReport, DeltaOptions, DeltaReport, apply_delta, export_delta};
pub use export::{ExportOptions, ExportReport, PartitionReport, export};
pub use import::{ImportMode, ImportOptions, ImportReport, LayerCounts, RecordCounts, import};
pub use issue::{Issue, MAX_ISSUES};
pub use partition::Granularity;
pub use purge::{PurgeOptions, PurgeReason, PurgeReport, PurgeScope, purge, purge_archive};
pub use survey::Artifacts;
pub(crate) use survey::is_secret_name;
pub use validate::{Validation, validate};
