//! Import: `.mg` files into the store, with the state of their grains (OMS 11.7, 28.3).
//!
//! - `check`: on the caller's thread, everything a file holds, before anything is written.
//! - `claims`: what the manifests say of grains that are here already.
//! - `stage`: on the writer's thread, one transaction. `staging`: its tables.
//!
//! What is in memory does not grow with the number of grains, but for 8 bytes of each that derives
//! from another or restricts who replaces it, and 4 of each that is signed.

mod check;
mod claims;
mod entering;
mod stage;
mod staging;

use std::fs::File;
use std::path::Path;

use grainstore_cal::Cancel;
use grainstore_format::container::{ReadAt, Seeking};
use serde::Serialize;

use crate::base::error::{Error, ErrorKind, Result, guarded};
use crate::base::pending::Pending;
use crate::handle::session::Session;
use crate::state::audit::{ImportNote, Operation};
use crate::write::plan::Conflict;
use crate::write::writer::Request;
use check::Files;
pub use claims::MAX_IMPORT_CLAIMS;
use stage::{LeftOut, stage};

/// What the audit log calls an import that was refused as a whole.
const NOTHING_CAME: Operation = Operation::Import(ImportNote::NONE);

/// How often an import begins anew because others wrote what its file speaks of.
const MAX_ATTEMPTS: usize = 8;

/// How an import is made.
#[derive(Clone, Default)]
pub struct Importing<'p> {
    /// Stops the work, up to its commit, when the host says so.
    pub cancel: Cancel,
    /// Told now and then how many grains of how many are checked.
    pub progress: Option<&'p dyn Fn(u64, u64)>,
}

impl std::fmt::Debug for Importing<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Importing")
    }
}

/// What an import came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Imported {
    /// Grains that are new here.
    pub added: u64,
    /// Grains that were here already, or came twice.
    pub duplicate: u64,
    /// Grains that were left out.
    pub refused: u64,
    /// Up to [`MAX_CONFLICTS`](crate::MAX_CONFLICTS) of the things the files say otherwise than the
    /// store keeps to.
    pub conflicts: Vec<Conflict>,
    /// How many there are.
    pub conflict_count: u64,
}

impl Session {
    /// Takes the grains of these files into the store, with their state: all of them, or nothing.
    ///
    /// A grain that is new here has the state its file states. For one that was here already a file
    /// is no more than a claim: it is judged by the invalidation policies as the call would be that
    /// makes it so, and what is refused is listed. How often grains were read stays behind.
    ///
    /// Everything is checked before anything is written. Writes of others wait while the grains are
    /// written; reads do not.
    ///
    /// # Errors
    /// With the file and the place in it: the codes of OMS section 19 for a damaged file or a bad
    /// grain, `ERR_SIGNATURE` for an invalid signature, `ERR_ACCESS` for a grain outside the
    /// session's namespace. `ERR_INTEGRITY` where a file changes meanwhile; `ERR_LIMIT` beyond
    /// [`MAX_IMPORT_CLAIMS`]; `ERR_TIMEOUT` where it was cancelled; `ERR_CONFLICT` where others keep
    /// writing what it speaks of; `ERR_IO`.
    pub fn import<P: AsRef<Path>>(
        &self,
        files: impl IntoIterator<Item = P>,
        how: &Importing<'_>,
    ) -> Result<Imported> {
        let opened = files.into_iter().map(|path| {
            let path = path.as_ref();
            let file = open(path).map_err(|error| error.within(path))?;
            Ok((path.display().to_string(), Seeking::new(file)))
        });
        self.import_from(opened.collect::<Result<Vec<_>>>()?, how)
    }

    /// [`Session::import`] from whatever can be read at any place, each with a name for errors.
    pub(crate) fn import_from<S: ReadAt + Send + 'static>(
        &self,
        sources: Vec<(String, S)>,
        how: &Importing<'_>,
    ) -> Result<Imported> {
        let mut files = Files::open(sources)?;
        let mut left_out = LeftOut::new();
        let mut attempts = 0;
        while attempts < MAX_ATTEMPTS {
            let mut claimed = None;
            let checked = guarded(|| files.check(self, how, &mut claimed));
            let checked = match checked {
                Ok(checked) => checked,
                Err(error) => {
                    let unsent = self.unsent(NOTHING_CAME, None, None, error).by(claimed);
                    return self.refuse(unsent).wait();
                }
            };
            let (author, cancel) = (self.author(), how.cancel.clone());
            let (reply, pending) = Pending::new();
            let known = left_out.len();
            self.store().inner().send(Request::Alone(Box::new(move |writer| {
                let staged = writer.and_then(|writer| {
                    writer.import(|ground| {
                        stage(ground, &files, &checked, &author, &cancel, &mut left_out)
                    })
                });
                // Nobody may be waiting any more.
                let _ = reply.send(staged.map(|staged| (staged, files, left_out)));
            })))?;
            let (imported, again, more) = pending.wait()?;
            if let Some(imported) = imported {
                return Ok(imported);
            }
            // That more is left out ends with the grains of the files.
            attempts += usize::from(more.len() == known);
            (files, left_out) = (again, more);
        }
        let message = "others keep writing the grains that the files speak of";
        Err(Error::new(ErrorKind::Conflict, message).with_hint("import again when they are done"))
    }
}

/// Opens a file. What is none, such as a pipe that nobody writes to, is not waited for.
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

/// The same error, saying which file it came up in.
fn in_file(name: &str, error: Error) -> Error {
    error.within(Path::new(name))
}

/// An error of a file itself.
fn of_file(name: &str, error: impl Into<Error>) -> Error {
    in_file(name, error.into().of_input())
}
