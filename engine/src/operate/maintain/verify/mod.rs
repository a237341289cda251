//! Verification: that the store holds what it acknowledged, and that its parts agree.
//!
//! `log` checks the blobs and the tables beside them (`templates`, `vectors`, `application`), `audit` the chain and what it
//! states about the log, `reads` the read log, `marks` the marks of each grain, `index` what is derived,
//! `pages` the file underneath. `problems` collects, `sequence_set` is a set of sequences; `closed` verifies
//! a store that cannot be opened. Repairs nothing.
//!
//! Memory is bounded: rows are read one at a time, and eleven bits are held for each grain.

mod application;
mod audit;
mod closed;
mod index;
mod log;
mod marks;
mod pages;
mod problems;
mod reads;
mod row_numbers;
mod segments;
mod sequence_set;
mod templates;
mod vectors;

use grainstore_index::Sequence;
use redb::ReadOnlyTable;
use std::fs;
use std::path::{Path, PathBuf};

use crate::base::error::{Result, catch_storage_panic};
use crate::base::pending::Pending;
use crate::disk::journaling;
use crate::disk::layout::{self, RowKey, Stub};
use crate::disk::position::Position;
use crate::disk::row_sums::SummedTable;
use crate::handle::store::Store;
use crate::operate::maintain::page_usage::FoldedSnapshot;
use crate::operate::maintain::scratch::ScratchFile;
use crate::state::truth::ok_if_readable;
use crate::state::view::View;
use crate::write::writer::{Request, Writer};

#[cfg(feature = "fuzzing")]
pub(crate) use audit::problems_of;
pub use closed::verify;
use index::RebuiltIndex;
pub(super) use problems::ProblemCollector;
use problems::ProblemLocation;
pub use problems::{MAX_PROBLEMS, Problem, ProblemKind, VerifyCounts, VerifyReport};

/// Page cache for files that are read once.
const VERIFY_CACHE_BYTES: usize = 16 << 20;
/// Grains whose blobs a quick verification decodes and looks up, spread over the log.
const SAMPLE_GRAINS: u64 = 1024;

/// The snapshots to verify, and a copy of the file of the truth.
struct VerifySnapshot {
    whole: FoldedSnapshot,
    /// A copy of the file, in a full verification of a store with a file.
    copy: Option<ScratchFile>,
    /// Directory of the read log, `None` in memory.
    reads: Option<PathBuf>,
}

/// The context of the checks.
struct VerifyContext<'c> {
    view: &'c View,
    log: ReadOnlyTable<u64, &'static [u8]>,
    /// One of so many entries is checked closely.
    stride: u64,
    /// True if an erasure waits to be scrubbed.
    unscrubbed: bool,
}

impl Store {
    /// Checks the store against itself: checksums and sequences of the log, states, the audit chain from
    /// genesis to head and what it states, and the derived index.
    ///
    /// A `full` verification decodes and encodes every blob again, builds a second index to compare with, and
    /// checks the pages of the truth, which needs disk space for a second copy of both files; a quick one
    /// checks a sample instead. Reads and writes continue, except while the tail is folded (and, in full, the
    /// file copied).
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
    /// session.put(grain)?;
    /// let report = store.verify(true)?;
    /// assert!(report.ok, "{:?}", report.problems);
    /// assert_eq!(report.checked.map(|checked| checked.grains), Some(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_IO`, or the error that ended writing. Damage is reported in the result.
    pub fn verify(&self, full: bool) -> Result<VerifyReport> {
        // No file of the read log is removed until the end.
        let reads = self.inner().reads().map(|reads| reads.retain_files());
        let settled = self.inner().reads().map_or(Ok(()), |reads| reads.settle());
        let place = self.inner().reads().map(|reads| reads.directory()).transpose();
        let (reply, pending) = Pending::new();
        let directory = (full && !self.is_read_only()).then(|| self.path().to_owned());
        self.inner().hand_over(Request::Exclusive(Box::new(move |writer| {
            // The caller may have stopped waiting.
            let _ = reply.send(
                writer.and_then(|writer| catch_storage_panic(|| writer.verify_snapshot(directory))),
            );
        })))?;
        let looked_at = place.as_ref().ok().cloned().flatten();
        let found = run_checks(&VerifySnapshot { reads: looked_at, ..pending.wait()? }, full)?;
        drop(reads);
        // An error in writing or reaching the read log is returned after the rest was checked.
        settled.and(place.map(|_| found))
    }
}

impl Writer {
    /// Takes the snapshots to verify on the writer thread, with a copy of the truth in this directory.
    fn verify_snapshot(&mut self, directory: Option<PathBuf>) -> Result<VerifySnapshot> {
        let whole = self.folded_snapshot()?;
        let copy = match (self.db.database_file(), directory) {
            (Ok(home), Some(check_directory)) => {
                if Position::read_in(self.view.transaction())?.is_some() {
                    journaling::sync(&self.db)?;
                }
                let scratch = ScratchFile::within(Some(&check_directory));
                if let Some(file) = scratch.file() {
                    fs::copy(&home.file, file)?;
                }
                Some(scratch)
            }
            _ => None,
        };
        Ok(VerifySnapshot { whole, copy, reads: None })
    }
}

fn run_checks(subject: &VerifySnapshot, full: bool) -> Result<VerifyReport> {
    let VerifySnapshot { whole: FoldedSnapshot { view, .. }, copy, reads } = subject;
    let check = VerifyContext::of(view, full)?;
    let mut findings = ProblemCollector::new(check.unscrubbed);
    let found = &mut findings;
    log::check(&check, found)?;
    let places = found.checked.grains;
    let directory = copy.as_ref().and_then(ScratchFile::file).and_then(|file| file.parent());
    // A damaged log gives no index to compare with: only look-ups are checked then. Until an erasure is
    // scrubbed, the index has rows that the log would not give it.
    let comparable = full && found.is_clean() && !check.unscrubbed;
    let rebuilt = match comparable {
        true => Some(RebuiltIndex::build(view, directory)?),
        false => None,
    };
    match &rebuilt {
        Some(rebuilt) => rebuilt.compare(view, found)?,
        None => index::check_sample(&check, places, found)?,
    }
    index::check_blocks(view, found)?;
    let trusted = rebuilt.as_ref().map_or(&**view, |rebuilt| &rebuilt.view);
    check_side_tables(&VerifyContext::of(trusted, full)?, places, reads.as_deref(), found)?;
    if let Some(copy) = copy {
        pages::check("grains.redb", copy, view.transaction(), found)?;
    }
    Ok(findings.finish(full))
}

/// Checks the tables beside a log of `places` entries.
fn check_side_tables(
    check: &VerifyContext<'_>,
    places: u64,
    read_log: Option<&Path>,
    findings: &mut ProblemCollector,
) -> Result<()> {
    check_sums(check, findings)?;
    let told = audit::check(check, places, findings)?;
    reads::check(check, read_log, told.as_ref(), findings)?;
    log::check_signatures(check, findings)?;
    log::check_states(check, told.as_ref(), findings)?;
    if let Some(told) = &told {
        marks::check_without_record(check, told, places, findings)?;
    }
    log::check_roots(check, findings)?;
    marks::check_roots(check, told.as_ref(), places, findings)?;
    log::check_access(check, findings)?;
    templates::check_templates(check, findings)?;
    vectors::check_vectors(check, findings)?;
    application::check(check, findings)
}

/// Checks the seal and the keyed sums of an encrypted store.
fn check_sums(check: &VerifyContext<'_>, findings: &mut ProblemCollector) -> Result<()> {
    let place = ProblemLocation::All("audit head");
    findings.value_or_problem(ProblemKind::Audit, place, check.view.check_seal())?;
    for table in SummedTable::ALL {
        let kind = match table {
            SummedTable::State => ProblemKind::State,
            SummedTable::Roots => ProblemKind::Roots,
            SummedTable::Signatures => ProblemKind::Signature,
            SummedTable::Templates => ProblemKind::Template,
            SummedTable::Reasons => ProblemKind::Audit,
            SummedTable::Tombstones | SummedTable::Destroyed | SummedTable::Erased => {
                ProblemKind::Log
            }
            SummedTable::Vectors
            | SummedTable::VectorRows
            | SummedTable::Spaces
            | SummedTable::RemovedSpaces => ProblemKind::Vector,
            SummedTable::Blobs | SummedTable::ApplicationRows | SummedTable::Owned => {
                ProblemKind::Application
            }
        };
        let place = ProblemLocation::All(table.name());
        findings.value_or_problem(kind, place, check.view.check_rows([table]))?;
    }
    Ok(())
}

impl<'c> VerifyContext<'c> {
    /// Checks this view, in full or by a sample.
    fn of(view: &'c View, full: bool) -> Result<Self> {
        let stride = match full {
            true => 1,
            false => view.log_len()?.div_ceil(SAMPLE_GRAINS).max(1),
        };
        // If this cannot be read, the checks of the grains will report it.
        let unscrubbed = ok_if_readable(view.is_unscrubbed())?.unwrap_or_default();
        Ok(Self { view, log: view.transaction().open_table(layout::LOG)?, stride, unscrubbed })
    }

    /// Returns `true` if an entry is checked closely.
    fn takes(&self, place: u64) -> bool {
        place.is_multiple_of(self.stride)
    }

    /// Returns `true` if the log has an entry.
    fn is_in_log(&self, place: Sequence) -> Result<bool> {
        Ok(self.log.get(place.get())?.is_some())
    }

    /// Returns `true` for a stub, or a row without its key that waits to become one.
    fn is_erased(&self, place: Sequence) -> Result<bool> {
        let row = self.log.get(place.get())?;
        Ok(row.is_some_and(|row| {
            let row = self.view.vault().log_envelope(row.value());
            Stub::is_stub(row) || self.is_lost(row)
        }))
    }

    /// Returns `true` if the key of an envelope of the log was destroyed, and its row waits to become a stub.
    fn is_lost(&self, envelope: &[u8]) -> bool {
        let encryption_key = self.view.vault().key_of_row(envelope);
        self.unscrubbed && encryption_key.is_err_and(|error| error.is_erased())
    }

    /// Returns the blob of a log entry, `None` if it cannot be read or was erased.
    fn readable(&self, place: Sequence) -> Result<Option<Vec<u8>>> {
        let (row, vault) = (self.log.get(place.get())?, self.view.vault());
        let envelope = row.as_ref().map(|row| vault.log_envelope(row.value()));
        let Some(envelope) = envelope.filter(|row| !Stub::is_stub(row)) else { return Ok(None) };
        let blob = vault.open(RowKey::log(place), envelope).ok();
        Ok(blob.map(std::borrow::Cow::into_owned))
    }
}
