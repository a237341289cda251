//! A database whose file can be exchanged for a copy while readers hold snapshots of the old one.
//!
//! Dropping a redb database ends every snapshot of it, so a replaced one is kept until its last reader has
//! finished. Knows files and readers, not what is in the tables.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::{Builder, Database};

use crate::base::error::{Error, ErrorKind, Result, catch_storage_panic};
use crate::disk::directory;
use crate::disk::pinned_directory::PinnedDirectory;
use crate::disk::truth_transaction::{CommitObserver, TruthTransaction};
use crate::disk::vault::Vault;

/// An open database, the replaced ones that still have readers, and the location of its file.
#[derive(Debug)]
pub(crate) struct DatabaseHandle {
    db: Database,
    lease: ReaderLease,
    replaced: Vec<ReplacedDatabase>,
    /// A copy in the file beside, not in use yet.
    copy: Option<Database>,
    /// True if the next file that is replaced is to be overwritten.
    shred_next: bool,
    /// Files to overwrite, whose databases are closed.
    to_shred: Vec<PathBuf>,
    /// Why the last of them could not be overwritten.
    unshredded: Option<Error>,
    /// Location of the file, `None` for a database in memory.
    database_file: Option<DatabaseFile>,
    /// Keys to decrypt its rows.
    vault: Vault,
    /// Takes the changes of its commits.
    observer: CommitObserver,
}

/// A reader's claim on a database: while one exists, the database stays open.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReaderLease(Arc<()>);

/// A replaced database, and the lease that counts its readers.
#[derive(Debug)]
pub(crate) struct ReplacedDatabase {
    db: Database,
    lease: ReaderLease,
    /// Its file, if that is to be overwritten.
    shred: Option<PathBuf>,
}

/// A value read from a database, with the lease that keeps the database open.
#[derive(Debug)]
pub(crate) struct LeasedReader<T> {
    value: T,
    _lease: ReaderLease,
}

/// The location of a database file, and the options to open it with.
#[derive(Debug, Clone)]
pub(crate) struct DatabaseFile {
    pub(crate) file: PathBuf,
    pub(crate) options: DatabaseOptions,
    anchor: PinnedDirectory,
}

/// Options for opening database files, shared by them; records if a repair was needed.
#[derive(Debug, Clone)]
pub(crate) struct DatabaseOptions {
    cache_bytes: usize,
    repaired: Arc<AtomicBool>,
}

impl<T> Deref for LeasedReader<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl Deref for DatabaseHandle {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.db
    }
}

impl DatabaseOptions {
    /// Options with a page cache of `cache_bytes` for each database.
    pub(crate) fn new(cache_bytes: usize) -> Self {
        Self { cache_bytes, repaired: Arc::default() }
    }

    /// Returns a redb builder with these options.
    pub(crate) fn builder(&self) -> Builder {
        let repaired = Arc::clone(&self.repaired);
        let mut builder = Database::builder();
        builder.set_cache_size(self.cache_bytes);
        builder.set_repair_callback(move |_| repaired.store(true, Ordering::Relaxed));
        builder
    }

    /// Size of the page cache of each database.
    pub(crate) fn cache_bytes(&self) -> usize {
        self.cache_bytes
    }

    /// Returns `true` if a database had not been closed cleanly and was repaired by reading all of it.
    pub(crate) fn has_repaired(&self) -> bool {
        self.repaired.load(Ordering::Relaxed)
    }
}

impl DatabaseHandle {
    /// A database in a file.
    pub(crate) fn from_file(db: Database, home: DatabaseFile) -> Self {
        Self { database_file: Some(home), ..Self::in_memory(db) }
    }

    /// A database without a file.
    pub(crate) fn in_memory(db: Database) -> Self {
        let (lease, former, shredding) = (ReaderLease::default(), Vec::new(), Vec::new());
        let (copy, home, vault) = (None, None, Vault::default());
        let unshredded = None;
        Self {
            db,
            lease,
            replaced: former,
            copy,
            shred_next: false,
            to_shred: shredding,
            unshredded,
            database_file: home,
            vault,
            observer: CommitObserver::default(),
        }
    }

    /// Sets the keys its rows are encrypted with.
    pub(crate) fn with_vault(self, vault: Vault) -> Self {
        Self { vault, ..self }
    }

    /// Sets who takes the changes of its commits.
    pub(crate) fn with_observer(self, observer: CommitObserver) -> Self {
        Self { observer, ..self }
    }

    /// Begins a write transaction of the truth.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn begin_change(&self) -> Result<TruthTransaction> {
        TruthTransaction::begin(&self.db, &self.vault, &self.observer)
    }

    /// Keys to decrypt its rows.
    pub(crate) fn vault(&self) -> &Vault {
        &self.vault
    }

    /// The redb database.
    pub(crate) fn database(&self) -> &Database {
        &self.db
    }

    /// Returns `true` if it has no file.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.database_file.is_none()
    }

    /// The location of its file.
    ///
    /// # Errors
    /// `ERR_IO` for a database in memory.
    pub(crate) fn database_file(&self) -> Result<&DatabaseFile> {
        let message = "this database is no file";
        self.database_file.as_ref().ok_or_else(|| Error::new(ErrorKind::Io, message))
    }

    /// Ties a value that reads from this database to it.
    pub(crate) fn lease<T>(&self, what: T) -> LeasedReader<T> {
        LeasedReader { value: what, _lease: self.lease.clone() }
    }

    /// Has the next replaced file overwritten before it is removed, once it has no readers. It keeps a name
    /// until then, so that it is found after a crash.
    pub(crate) fn shred_next_replaced(&mut self) {
        self.shred_next = true;
    }

    /// Stores the copy that is to take over.
    pub(crate) fn set_copy(&mut self, copy: Database) {
        self.copy = Some(copy);
    }

    /// Renames the copy to the name of the file. The copy is not in use yet.
    ///
    /// # Errors
    /// `ERR_IO`; `ERR_BUSY` if the file replaced before is still to be overwritten. On an error the file is
    /// unchanged and the copy is gone.
    pub(crate) fn rename_copy(&mut self) -> Result<()> {
        let home = self.database_file()?;
        let (copy, file) = (home.copy_path(), &home.file);
        let former = directory::replaced_path(file);
        if let Err(moved) = home.check() {
            // The directory was moved: the files by these names belong to another store.
            (self.copy, self.shred_next) = (None, false);
            return Err(moved);
        }
        let named = match (&self.copy, self.shred_next) {
            (None, _) => Err(no_copy()),
            (Some(_), false) => fs::rename(&copy, file).map_err(Error::from),
            // A reader of the replaced file must not find it overwritten.
            (Some(_), true) if former.is_file() => Err(replaced_still_read()),
            (Some(_), true) => fs::hard_link(file, &former)
                .map_err(Error::from)
                .and_then(|()| Ok(fs::rename(&copy, file)?))
                .inspect_err(|_| {
                    // The hard link is a second name of the file that stays.
                    let _ = directory::clear_replaced(file);
                }),
        };
        named.inspect_err(|_| {
            (self.copy, self.shred_next) = (None, false);
            // The rename error is reported; a leftover copy is removed at the next opening.
            let _ = directory::remove(&copy);
        })
    }

    /// Goes on with the copy, which has the name of the file by now, once the name is durable.
    ///
    /// # Errors
    /// `ERR_IO`: a crash may now leave either file under the name, so neither may be written to.
    pub(crate) fn switch_to_copy(&mut self) -> Result<()> {
        let copy = self.copy.take().ok_or_else(no_copy)?;
        directory::sync_directory(self.database_file()?.directory())?;
        self.replace(copy);
        Ok(())
    }

    /// Goes on with another database; the old one stays open for its readers.
    pub(crate) fn replace(&mut self, db: Database) {
        let old = std::mem::replace(&mut self.db, db);
        let shreds = std::mem::take(&mut self.shred_next);
        let shred = self
            .database_file
            .as_ref()
            .filter(|_| shreds)
            .map(|home| directory::replaced_path(&home.file));
        self.replaced.push(ReplacedDatabase {
            db: old,
            lease: std::mem::take(&mut self.lease),
            shred,
        });
    }

    /// Returns `true` while replaced databases are open or still to be overwritten.
    pub(crate) fn has_replaced(&self) -> bool {
        !self.replaced.is_empty() || !self.to_shred.is_empty()
    }

    /// Returns why a replaced file could not be overwritten when it was last tried.
    pub(crate) fn unshredded(&self) -> Option<Error> {
        self.unshredded.clone()
    }

    /// Takes the replaced databases, for another thread to close.
    pub(crate) fn take_replaced(&mut self) -> Vec<ReplacedDatabase> {
        std::mem::take(&mut self.replaced)
    }

    /// Adds replaced databases of another handle, to close them.
    pub(crate) fn adopt_replaced(&mut self, former: Vec<ReplacedDatabase>) {
        self.replaced.extend(former);
    }

    /// Closes the database. Whoever still reads from it, or from one that was exchanged, reads no more.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`: what was committed is there all the same.
    pub(crate) fn close(mut self) -> Result<()> {
        self.close_unread();
        let Self { db, .. } = self;
        catch_storage_panic(|| Ok(db.close()?))
    }

    /// Closes the replaced databases that have no readers. A lease of a replaced database is only cloned from
    /// another one, so a count that has reached zero stays zero.
    pub(crate) fn close_unread(&mut self) {
        let (read, unread) = self.take_replaced().into_iter().partition(ReplacedDatabase::is_read);
        self.replaced = read;
        for ReplacedDatabase { db, shred, .. } in unread {
            // Its file has no name any more: an error or panic on closing it loses no data.
            let _ = catch_storage_panic(|| {
                drop(db);
                Ok(())
            });
            self.to_shred.extend(shred);
        }
        // A file that cannot be overwritten now is tried again at the next call.
        let is_here = self.database_file.as_ref().is_none_or(|home| home.check().is_ok());
        self.unshredded = None;
        let Self { to_shred: shredding, unshredded, .. } = self;
        shredding.retain(|file| {
            let failed = if is_here { directory::shred(file).err() } else { None };
            let stays = !is_here || failed.is_some();
            *unshredded = unshredded.take().or(failed);
            stays
        });
    }
}

impl ReplacedDatabase {
    fn is_read(&self) -> bool {
        Arc::strong_count(&self.lease.0) > 1
    }
}

fn replaced_still_read() -> Error {
    let message = "somebody still reads from the file before, which is to be overwritten";
    Error::new(ErrorKind::Busy, message).with_hint("do it again once they are done")
}

fn no_copy() -> Error {
    Error::new(ErrorKind::Io, "there is no copy to go on with")
}

impl DatabaseFile {
    /// Locates the file, following links, so that a replacement goes where the link leads. Removes an
    /// unfinished copy of it.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn locate(name: &Path, opening: &DatabaseOptions) -> Result<Self> {
        let home = Self::from_canonical(fs::canonicalize(name)?, opening)?;
        directory::remove(&home.copy_path())?;
        Ok(home)
    }

    /// Locates a file by its canonical path.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn from_canonical(file: PathBuf, opening: &DatabaseOptions) -> Result<Self> {
        let anchor = PinnedDirectory::open(file.parent().unwrap_or(Path::new(".")))?;
        Ok(Self { file, options: opening.clone(), anchor })
    }

    /// Refuses if the directory of the file was moved: its names may be another store's.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn check(&self) -> Result<()> {
        self.anchor.check()
    }

    /// Path of the copy of the file while it is written.
    pub(crate) fn copy_path(&self) -> PathBuf {
        let mut name = self.file.clone().into_os_string();
        name.push(".new");
        name.into()
    }

    /// The directory of the file.
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
        let mut source = DatabaseHandle::in_memory(database());
        let first = source.lease(source.begin_read().unwrap());
        source.replace(database());
        let second = source.lease(source.begin_read().unwrap());
        source.close_unread();
        assert_eq!(source.replaced.len(), 1);
        assert_eq!(first.list_tables().unwrap().count(), 0);
        drop(first);
        source.close_unread();
        assert_eq!(source.replaced.len(), 0);
        assert_eq!(second.list_tables().unwrap().count(), 0);
    }
}
