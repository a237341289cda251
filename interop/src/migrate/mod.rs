//! Migration: memory comes in from the tools that people leave.
//!
//! | module | what it is about |
//! |---|---|
//! | [`Format`] | the formats: what each reads, and how an export of it looks |
//! | `source`, `rows`, `time` | files of an export, lists in them, dates in those |
//! | `formats` | a reader for each format, which tells `record`s and knows no store |
//! | `writer` | the one writer: what a record means for the store, and the writing in batches |
//! | `grains`, `ledger` | records as grains; what came in before |
//!
//! Readers push records, one at a time, so that an export of any size is read in little memory. See `docs/migrate.md` for
//! what becomes what.

mod format;
mod formats;
mod grains;
mod ledger;
mod markdown;
mod options;
mod record;
mod report;
mod rows;
mod source;
mod time;
mod writer;

use std::path::Path;

use grainstore::{Power, Session};

pub use format::Format;
pub use options::{MigrateOptions, Undated};
pub use report::{Became, LeftOutRecord, MAX_LISTED, MigrateReport};

use crate::error::Result;
use crate::kept::exclusive;
use crate::monitor::Monitor;
use crate::transfer;
use format::Ask;
use record::Sink;
use source::Source;
use writer::{Pass, Run, Writer};

/// Takes the memory of another tool into the store: a file, a folder or a ZIP archive that the tool exported.
///
/// The source is read twice: what can be found wrong by reading is found before the first write, and a dry run ends there.
/// Ids and dates are those of the source. What came in before is known by its id: a second run adds nothing, a record that
/// changed takes the place of its grain, and one that was erased here stays away. Each grain is written under its
/// policies: a record that the store refuses is reported, and the others go on.
///
/// ```
/// use grainstore_interop::Monitor;
/// use grainstore_interop::migrate::{self, Format, MigrateOptions};
/// # use grainstore::prelude::*;
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path().join("store"), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
///
/// let file = dir.path().join("memories.json");
/// std::fs::write(
///     &file,
///     r#"{"results": [{"id": "1", "memory": "likes tea", "user_id": "ann",
///                      "created_at": "2026-03-02T09:00:00Z"}]}"#,
/// )?;
/// let run = || {
///     let (options, monitor) = (MigrateOptions::default(), Monitor::default());
///     migrate::run(&session, Format::Mem0, &file, &options, &monitor)
/// };
/// assert_eq!(run()?.added, 1);
/// assert_eq!(run()?.unchanged, 1);
/// let known = session.latest("ann", "mg:knows")?.ok_or("nothing")?;
/// assert_eq!(known.grain()?.text("object"), Some("likes tea"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `ERR_ACCESS` unless the session is the operator's, without a namespace and a user; `ERR_NOT_FOUND`, `ERR_IO`;
/// `ERR_CORRUPT` for a file that cannot be read, `ERR_SCHEMA` for one of another format, `ERR_LIMIT` for one that is too
/// large, each with the entry or line; `ERR_TIMEOUT` if it was cancelled; with `strict` the error of the first record that
/// has something wrong with it.
pub fn run(
    session: &Session,
    format: Format,
    path: &Path,
    options: &MigrateOptions,
    monitor: &Monitor<'_>,
) -> Result<MigrateReport> {
    session.check_power(Power::Application)?;
    let source = Source::open(path, options.limits)?;
    format.check_kind(path)?;
    format.check(&source)?;
    let beside = options.beside.as_deref().map(|path| Source::open(path, options.limits));
    let beside = beside.transpose()?;
    let ask = Ask { source: &source, beside: beside.as_ref(), user: options.user.as_deref() };
    format.check_beside(&ask)?;
    let _writing = exclusive();
    let run = Run { session, format: format.name(), options, began: session.now() };
    let checked = pass(format, &ask, Writer::new(run, Pass::Check, monitor))?;
    if options.dry_run {
        return Ok(checked);
    }
    let records = checked.records;
    let report = pass(format, &ask, Writer::new(run, Pass::Write { records }, monitor))?;
    let items = report.added.saturating_add(report.changed).saturating_add(report.ended);
    if items > 0 {
        transfer::imported(session, format.name(), items)?;
    }
    Ok(report)
}

/// Reads the source once.
fn pass(format: Format, ask: &Ask<'_>, mut writer: Writer<'_>) -> Result<MigrateReport> {
    let sink: &mut dyn Sink = &mut writer;
    for (name, why) in ask.source.unread() {
        sink.skip(name, *why)?;
    }
    format.read(ask, sink)?;
    writer.finish()
}
