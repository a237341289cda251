//! A database whose file can be exchanged for a copy while readers hold snapshots of the old one.
//!
//! Dropping a database ends every snapshot of it, so one that was exchanged is kept until its last
//! reader has gone. Knows files and readers, not what is in the tables.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::{Builder, Database};

use crate::base::error::{Error, ErrorKind, Result, guarded};
use crate::disk::anchor::Anchor;
use crate::disk::directory;
use crate::disk::vault::Vault;

/// A database, those it replaced that are still read from, and where its file is.
#[derive(Debug)]
pub(crate) struct Source {
    db: Database,
    lease: Lease,
    former: Vec<Former>,
    /// One in the file beside, that has not taken over yet.
    copy: Option<Database>,
    /// Whether the next file that is exchanged is to be overwritten.
    shreds: bool,
    /// Files that are to be overwritten, whose databases are closed.
    shredding: Vec<PathBuf>,
    /// Nothing for one in memory.
    home: Option<Home>,
    /// What its rows are opened with.
    vault: Vault,
}

/// Held by whoever reads from a database: while there is one, the database stays open.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lease(Arc<()>);

/// A database that was exchanged, and what tells whether somebody still reads from it.
#[derive(Debug)]
pub(crate) struct Former {
    db: Database,
    lease: Lease,
    /// Its file, where that is to be overwritten.
    shred: Option<PathBuf>,
}

/// What was read from a database, with the lease it needs.
#[derive(Debug)]
pub(crate) struct Leased<T> {
    what: T,
    _lease: Lease,
}

/// The file of a database and how it is opened.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    pub(crate) file: PathBuf,
    pub(crate) opening: Opening,
    anchor: Anchor,
}

/// How database files are opened: with which page cache. Notes whether one had to be repaired.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    cache_bytes: usize,
    repaired: Arc<AtomicBool>,
}

impl<T> Deref for Leased<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.what
    }
}

impl Deref for Source {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.db
    }
}

impl Opening {
    /// Each database gets a page cache of so many bytes.
    pub(crate) fn new(cache_bytes: usize) -> Self {
        Self { cache_bytes, repaired: Arc::default() }
    }

    /// What opens them.
    pub(crate) fn builder(&self) -> Builder {
        let repaired = Arc::clone(&self.repaired);
        let mut builder = Database::builder();
        builder.set_cache_size(self.cache_bytes);
        builder.set_repair_callback(move |_| repaired.store(true, Ordering::Relaxed));
        builder
    }

    /// Bytes of a page cache.
    pub(crate) fn cache_bytes(&self) -> usize {
        self.cache_bytes
    }

    /// Whether one of them was not closed and had to be put right by reading all of it.
    pub(crate) fn has_repaired(&self) -> bool {
        self.repaired.load(Ordering::Relaxed)
    }
}

impl Source {
    /// The database in a file.
    pub(crate) fn at(db: Database, home: Home) -> Self {
        Self { home: Some(home), ..Self::in_memory(db) }
    }

    /// A database that has no file.
    pub(crate) fn in_memory(db: Database) -> Self {
        let (lease, former, shredding) = (Lease::default(), Vec::new(), Vec::new());
        let (copy, home, vault) = (None, None, Vault::default());
        Self { db, lease, former, copy, shreds: false, shredding, home, vault }
    }

    /// The same, with rows under these keys.
    pub(crate) fn with_vault(self, vault: Vault) -> Self {
        Self { vault, ..self }
    }

    /// What its rows are opened with.
    pub(crate) fn vault(&self) -> &Vault {
        &self.vault
    }

    /// The database itself.
    pub(crate) fn database(&self) -> &Database {
        &self.db
    }

    /// Whether it has no file.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.home.is_none()
    }

    /// Where its file is.
    ///
    /// # Errors
    /// `ERR_IO` for a database that has none.
    pub(crate) fn home(&self) -> Result<&Home> {
        let message = "this database is no file";
        self.home.as_ref().ok_or_else(|| Error::new(ErrorKind::Io, message))
    }

    /// Ties what reads from this database to it.
    pub(crate) fn lease<T>(&self, what: T) -> Leased<T> {
        Leased { what, _lease: self.lease.clone() }
    }

    /// Has the next file that gives way to a copy overwritten before it goes, once nobody reads from it
    /// any more: it keeps a name until then, so that it is found after a crash.
    pub(crate) fn shred_next(&mut self) {
        self.shreds = true;
    }

    /// Keeps a copy that is to take over.
    pub(crate) fn keep_copy(&mut self, copy: Database) {
        self.copy = Some(copy);
    }

    /// Gives the copy the name of the file. It is not in use yet.
    ///
    /// # Errors
    /// `ERR_IO`; `ERR_BUSY` where the file before is still to be overwritten: nothing has changed then, and
    /// nothing is left of the copy.
    pub(crate) fn rename_copy(&mut self) -> Result<()> {
        let home = self.home()?;
        let (copy, file) = (home.copy(), &home.file);
        let former = directory::former(file);
        if let Err(moved) = home.check() {
            // Nothing by these names is this store's any more.
            (self.copy, self.shreds) = (None, false);
            return Err(moved);
        }
        let named = match (&self.copy, self.shreds) {
            (None, _) => Err(no_copy()),
            (Some(_), false) => fs::rename(&copy, file).map_err(Error::from),
            // Who still reads from one that gave way must not find it overwritten.
            (Some(_), true) if former.is_file() => Err(still_there()),
            (Some(_), true) => fs::hard_link(file, &former)
                .map_err(Error::from)
                .and_then(|()| Ok(fs::rename(&copy, file)?))
                .inspect_err(|_| {
                    // It is another name of the file that stays.
                    let _ = directory::clear_former(file);
                }),
        };
        named.inspect_err(|_| {
            (self.copy, self.shreds) = (None, false);
            // That it could not be renamed is told; what stays goes with the next opening.
            let _ = directory::remove(&copy);
        })
    }

    /// Goes on with the copy, which has the name of the file, once the name is durable.
    ///
    /// # Errors
    /// `ERR_IO`: a crash may now leave either file under the name, so nothing may be written to
    /// either.
    pub(crate) fn take_copy(&mut self) -> Result<()> {
        let copy = self.copy.take().ok_or_else(no_copy)?;
        directory::sync(self.home()?.directory())?;
        self.exchange(copy);
        Ok(())
    }

    /// Goes on with another database. Whoever reads from the old one keeps it.
    pub(crate) fn exchange(&mut self, db: Database) {
        let old = std::mem::replace(&mut self.db, db);
        let shreds = std::mem::take(&mut self.shreds);
        let shred = self.home.as_ref().filter(|_| shreds).map(|home| directory::former(&home.file));
        self.former.push(Former { db: old, lease: std::mem::take(&mut self.lease), shred });
    }

    /// Whether databases that were exchanged are still open, or still to be overwritten.
    pub(crate) fn has_former(&self) -> bool {
        !self.former.is_empty() || !self.shredding.is_empty()
    }

    /// Gives away the exchanged databases, for somebody else to close.
    pub(crate) fn hand_over(&mut self) -> Vec<Former> {
        std::mem::take(&mut self.former)
    }

    /// Takes exchanged databases of another source, to close them.
    pub(crate) fn adopt(&mut self, former: Vec<Former>) {
        self.former.extend(former);
    }

    /// Closes exchanged databases that nobody reads from any more. A lease is only given from
    /// another one, so that the last one stays the last.
    pub(crate) fn release(&mut self) {
        let (read, unread) = self.hand_over().into_iter().partition(Former::is_read);
        self.former = read;
        for Former { db, shred, .. } in unread {
            // Its file has no name any more: that it cannot be closed in order, being damaged
            // perhaps, loses nothing.
            let _ = guarded(|| {
                drop(db);
                Ok(())
            });
            self.shredding.extend(shred);
        }
        // One that cannot be overwritten now is tried again.
        let is_here = self.home.as_ref().is_none_or(|home| home.check().is_ok());
        self.shredding.retain(|file| !is_here || directory::shred(file).is_err());
    }
}

impl Former {
    fn is_read(&self) -> bool {
        Arc::strong_count(&self.lease.0) > 1
    }
}

fn still_there() -> Error {
    let message = "somebody still reads from the file before, which is to be overwritten";
    Error::new(ErrorKind::Busy, message).with_hint("do it again once they are done")
}

fn no_copy() -> Error {
    Error::new(ErrorKind::Io, "there is no copy to go on with")
}

impl Home {
    /// The file of this name, where it lies: a link is followed, so that what takes its place later
    /// takes it there. A copy of it that was not finished is removed.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn of(name: &Path, opening: &Opening) -> Result<Self> {
        let home = Self::at(fs::canonicalize(name)?, opening)?;
        directory::remove(&home.copy())?;
        Ok(home)
    }

    /// A file by its real name.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn at(file: PathBuf, opening: &Opening) -> Result<Self> {
        let anchor = Anchor::at(file.parent().unwrap_or(Path::new(".")))?;
        Ok(Self { file, opening: opening.clone(), anchor })
    }

    /// Refuses to go on where the directory it lies in was moved: its names are another's.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn check(&self) -> Result<()> {
        self.anchor.check()
    }

    /// The name of a copy that is being made of the file.
    pub(crate) fn copy(&self) -> PathBuf {
        let mut name = self.file.clone().into_os_string();
        name.push(".new");
        name.into()
    }

    /// The directory it lies in.
    pub(crate) fn directory(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new("."))
    }
}

#[cfg(test)]
mod tests {
    use redb::ReadableDatabase;
    use redb::backends::InMemoryBackend;

    use super::*;

    fn database() -> Database {
        Database::builder().create_with_backend(InMemoryBackend::new()).unwrap()
    }

    #[test]
    fn an_exchanged_database_stays_open_while_it_is_read() {
        let mut source = Source::in_memory(database());
        let first = source.lease(source.begin_read().unwrap());
        source.exchange(database());
        let second = source.lease(source.begin_read().unwrap());
        source.release();
        assert_eq!(source.former.len(), 1);
        assert_eq!(first.list_tables().unwrap().count(), 0);
        drop(first);
        source.release();
        assert_eq!(source.former.len(), 0);
        assert_eq!(second.list_tables().unwrap().count(), 0);
    }
}
