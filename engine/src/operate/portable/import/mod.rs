//! Import: `.mg` files into the store, with the state of their grains (OMS 11.7, 28.3).
//!
//! - `check`: the first pass, on the caller's thread, before anything is written.
//! - `import_filter`: the rules on what may be stored. `claims`: manifest states of grains that are stored
//!   already.
//! - `stage`: the second pass, on the writer thread, in one transaction. `staging`: its tables.
//!
//! Memory does not grow with the number of grains, except for 8 bytes for each grain that derives from
//! another or restricts its replacement, 4 for each signed one, about 40 for each consent and some 200 more for
//! one that another replaced, and each user's id.

mod arrivals;
mod check;
mod claims;
mod import_filter;
mod stage;
mod staging;

use std::fs::File;
use std::path::Path;

use grainstore_cal::CancelHandle;
use grainstore_format::container::{ReadAt, SeekSource};
use serde::{Deserialize, Serialize};

use crate::base::error::{Error, ErrorKind, Result, catch_storage_panic};
use crate::base::pending::Pending;
use crate::handle::session::Session;
use crate::state::audit::{AuditOperation, ImportSummary};
use crate::write::plan::Conflict;
use crate::write::writer::Request;
use check::ImportFiles;
pub use claims::MAX_IMPORT_CLAIMS;
use stage::{ExcludedGrains, stage};

/// Operation in the audit log for an import that was refused as a whole.
const REFUSED_IMPORT: AuditOperation = AuditOperation::Import(ImportSummary::EMPTY);

/// Most restarts of an import because of concurrent writes to the grains in its files.
const MAX_ATTEMPTS: usize = 8;

/// Options of [`Session::import`].
#[derive(Clone, Default)]
pub struct ImportOptions<'p> {
    /// Cancels the import, up to its commit.
    pub cancel: CancelHandle,
    /// Called from time to time with the number of grains checked, and of all.
    pub progress: Option<&'p dyn Fn(u64, u64)>,
}

impl std::fmt::Debug for ImportOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Importing")
    }
}

/// The result of [`Session::import`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ImportReport {
    /// Grains that were stored.
    pub added: u64,
    /// Grains that were stored already, or came twice.
    pub duplicate: u64,
    /// Grains that were left out.
    pub refused: u64,
    /// The first [`MAX_CONFLICTS`](crate::limits::MAX_CONFLICTS) disagreements between the files and the store.
    pub conflicts: Vec<Conflict>,
    /// Number of all conflicts.
    pub conflict_count: u64,
}

impl Session {
    /// Imports the grains of these files with their state: all of them, or none.
    ///
    /// A new grain gets the state its file states. For a stored grain that state is only a claim: the
    /// invalidation policies judge it like the call that would cause it, and what they refuse is listed.
    /// Access counts are not imported.
    ///
    /// Everything is checked before anything is written. Other writes wait while the grains are written;
    /// reads do not.
    ///
    /// ```
    /// use grainstore::{ExportOptions, ImportOptions};
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path().join("memory"), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    ///
    /// # let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
    /// # session.put(grain)?;
    /// let file = dir.path().join("all.mg");
    /// session.export(&file, &Query::default(), &ExportOptions::default())?;
    /// let other = Store::open(dir.path().join("other"), &OpenOptions::new().create(true))?;
    /// let report = other.session(SessionOptions::default()).import([&file], &ImportOptions::default())?;
    /// assert_eq!((report.added, report.duplicate), (1, 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// With the file and the position in it: the codes of OMS section 19 for a damaged file or an invalid
    /// grain, `ERR_SIGNATURE` for an invalid signature, `ERR_ACCESS` for a grain outside the session's
    /// namespace. `ERR_INTEGRITY` if a file changes meanwhile; `ERR_LIMIT` beyond [`MAX_IMPORT_CLAIMS`];
    /// `ERR_TIMEOUT` if it was cancelled; `ERR_CONFLICT` if concurrent writes keep changing its grains;
    /// `ERR_IO`.
    pub fn import<P: AsRef<Path>>(
        &self,
        files: impl IntoIterator<Item = P>,
        how: &ImportOptions<'_>,
    ) -> Result<ImportReport> {
        let opened = files.into_iter().map(|path| {
            let path = path.as_ref();
            let file = open(path).map_err(|error| error.at_path(path))?;
            Ok((path.display().to_string(), SeekSource::new(file)))
        });
        self.import_from(opened.collect::<Result<Vec<_>>>()?, how)
    }

    /// Imports like [`Session::import`] from files that are open, each with a name for errors: also from those that have
    /// none in a directory.
    ///
    /// # Errors
    /// As [`Session::import`].
    pub fn import_opened(
        &self,
        files: impl IntoIterator<Item = (String, File)>,
        how: &ImportOptions<'_>,
    ) -> Result<ImportReport> {
        let opened = files.into_iter().map(|(name, file)| (name, SeekSource::new(file)));
        self.import_from(opened.collect(), how)
    }

    /// Imports like [`Session::import`] from any seekable sources, each with a name for errors.
    pub(crate) fn import_from<S: ReadAt + Send + 'static>(
        &self,
        sources: Vec<(String, S)>,
        how: &ImportOptions<'_>,
    ) -> Result<ImportReport> {
        let mut files = ImportFiles::open(sources)?;
        let mut left_out = ExcludedGrains::new();
        let mut attempts = 0;
        while attempts < MAX_ATTEMPTS {
            let mut claimed = None;
            let checked = catch_storage_panic(|| files.check(self, how, &mut claimed));
            let checked = match checked {
                Ok(checked) => checked,
                Err(error) => {
                    let unsent = self.unsent(REFUSED_IMPORT, None, None, error).by(claimed);
                    return self.refuse(unsent).wait();
                }
            };
            let (author, cancel) = (self.principal(), how.cancel.clone());
            let (reply, pending) = Pending::new();
            let known = left_out.len();
            self.store().inner().send(Request::Exclusive(Box::new(move |writer| {
                let staged = writer.and_then(|writer| {
                    writer.transact(|write_txn, rows| {
                        let sources = (&files, &checked);
                        stage(write_txn, rows, sources, &author, &cancel, &mut left_out)
                    })
                });
                // The caller may have stopped waiting.
                let _ = reply.send(staged.map(|staged| (staged, files, left_out)));
            })))?;
            let (imported, again, more) = pending.wait()?;
            if let Some(imported) = imported {
                return Ok(imported);
            }
            // A retry with a longer list of left-out grains does not count: it ends, since the files are
            // finite.
            attempts += usize::from(more.len() == known);
            (files, left_out) = (again, more);
        }
        let message = "others keep writing the grains that the files speak of";
        Err(Error::new(ErrorKind::Conflict, message).with_hint("import again when they are done"))
    }
}

/// Opens a file. Refuses other kinds, such as a pipe, which could block forever.
fn open(path: &Path) -> Result<File> {
    let found = std::fs::metadata(path).map_err(|error| {
        Error::from(error).with_hint("check the path, and whether you may read it")
    })?;
    if !found.is_file() {
        return Err(Error::new(ErrorKind::Io, "this is no regular file")
            .with_hint("name a .mg file that lies on a disk"));
    }
    Ok(File::open(path)?)
}

/// Adds the name of the file to an error.
fn with_file_name(name: &str, error: Error) -> Error {
    error.at_path(Path::new(name))
}

/// Marks an error as one of the file itself.
fn input_error(name: &str, error: impl Into<Error>) -> Error {
    with_file_name(name, error.into().about_input())
}
