//! Opening, creating and closing a store: its stamp, its recovery, and its writer.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::{self, JoinHandle};

use grainstore_cal::Writes;
use grainstore_format::ContentAddress;
use grainstore_index::{self as index, IndexState};
use redb::{Database, ReadableDatabase};

use crate::audit::{AuditRecord, Chain, Operation};
use crate::clock::Clock;
use crate::directory;
use crate::error::{Error, ErrorKind, Result, guarded};
use crate::keys::{self, AuditHead};
use crate::options::{OpenOptions, SessionOptions};
use crate::pending::{Pending, stopped};
use crate::session::Session;
use crate::view::{View, push};
use crate::writer::{Backlog, QUEUE, Request, Shared, Writer, append_audit};

/// An open store. Cheap to clone; the last clone that is dropped closes it.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Store({:?})", self.0.path)
    }
}

pub(crate) struct Inner {
    path: PathBuf,
    created: bool,
    clock: Arc<dyn Clock>,
    shared: Shared,
    backlog: Arc<Backlog>,
    running: Mutex<Option<Running>>,
    /// The quotas of CAL writes.
    writes: Writes,
}

/// What ends when the store is closed.
struct Running {
    requests: SyncSender<Request>,
    writer: JoinHandle<()>,
}

impl Store {
    /// Opens the store in a directory, or creates it where the options say so.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND` where there is no store and none is to be created, `ERR_BUSY` while another
    /// handle has it open beyond the options' patience, `ERR_STORE_VERSION` for a directory that is
    /// no store of this format, `ERR_INTEGRITY` for damage, `ERR_IO`.
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self> {
        let path = path.as_ref();
        guarded(|| Self::open_at(path, options)).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::Busy => error,
            _ => error.within(path).with_hint(
                "check the path, its permissions and its disk; a store is a directory of its own",
            ),
        })
    }

    fn open_at(path: &Path, options: &OpenOptions) -> Result<Self> {
        if path.as_os_str().is_empty() {
            return Err(Error::new(ErrorKind::NotFound, "an empty path names no store"));
        }
        if options.create {
            directory::make(path)?;
        } else if !directory::has_store(path)? {
            let message = format!("there is no store at {}", path.display());
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        let lock = directory::lock(path, options.wait)?;
        let created = !directory::has_store(path)?;
        let mut database = Database::builder();
        database.set_cache_size(options.cache_bytes);
        if created {
            directory::create(path, |new| set_up(&database.create(new)?, options.clock.as_ref()))?;
        }
        directory::sync(path)?;
        let db = database.open(directory::grains(path))?;
        Self::start(db, path, created, options, Some(lock))
    }

    /// Whether opening it created it.
    #[must_use]
    pub fn was_created(&self) -> bool {
        self.0.created
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The file with the truth.
    pub(crate) fn truth_path(&self) -> PathBuf {
        directory::grains(&self.0.path)
    }

    /// A session: the way to read and write.
    #[must_use]
    pub fn session(&self, options: SessionOptions) -> Session {
        Session::new(self.clone(), options)
    }

    /// Waits until everything written so far is durable and folded into the derived indexes.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub fn flush(&self) -> Result<()> {
        let (reply, pending) = Pending::new();
        self.0.send(Request::Flush(reply))?;
        pending.wait()
    }

    /// Closes the store for every handle: finishes what was submitted, folds, and releases the
    /// lock. Closing twice is nothing.
    pub fn close(&self) {
        self.0.close();
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }

    /// Takes over a database that was set up: checks the stamp, catches up the index, and starts
    /// the writer.
    fn start(
        db: Database,
        path: &Path,
        created: bool,
        options: &OpenOptions,
        lock: Option<File>,
    ) -> Result<Self> {
        let chain = check_meta(&db)?;
        let view = Arc::new(catch_up(&db)?);
        let shared: Shared = Arc::new(RwLock::new(Some(Arc::clone(&view))));
        let backlog = Arc::new(Backlog::default());
        let writer = Writer {
            db,
            chain,
            clock: Arc::clone(&options.clock),
            shared: Arc::clone(&shared),
            view,
            failed: None,
            backlog: Arc::clone(&backlog),
            _lock: lock,
        };
        let (requests, incoming) = sync_channel(QUEUE);
        let writer = thread::Builder::new()
            .name("grainstore-writer".to_owned())
            .spawn(move || writer.run(&incoming))?;
        let running = Running { requests, writer };
        Ok(Self(Arc::new(Inner {
            path: path.to_owned(),
            created,
            clock: Arc::clone(&options.clock),
            shared,
            backlog,
            running: Mutex::new(Some(running)),
            writes: Writes::default(),
        })))
    }

    /// A store in memory or on a backend of the test's own.
    #[cfg(test)]
    pub(crate) fn on_backend(
        backend: impl redb::StorageBackend,
        options: &OpenOptions,
    ) -> Result<Self> {
        let empty = backend.len()? == 0;
        let db =
            Database::builder().set_cache_size(options.cache_bytes).create_with_backend(backend)?;
        if empty {
            set_up(&db, options.clock.as_ref())?;
        }
        Self::start(db, Path::new("backend"), empty, options, None)
    }
}

impl Inner {
    pub(crate) fn writes(&self) -> &Writes {
        &self.writes
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    /// The newest view.
    ///
    /// # Errors
    /// `ERR_IO` once the store is closed.
    pub(crate) fn view(&self) -> Result<Arc<View>> {
        let shared = self.shared.read().unwrap_or_else(PoisonError::into_inner);
        shared.clone().ok_or_else(stopped)
    }

    /// Hands a request to the writer; waits only while [`QUEUE`] others wait, or too many bytes.
    ///
    /// # Errors
    /// `ERR_IO` once the store is closed.
    pub(crate) fn send(&self, request: Request) -> Result<()> {
        let requests = self.running().as_ref().map(|running| running.requests.clone());
        let requests = requests.ok_or_else(stopped)?;
        self.backlog.enter(request.bytes())?;
        requests.send(request).map_err(|_| stopped())
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        let running = self.running().take();
        let Some(Running { requests, writer }) = running else { return };
        drop(requests);
        // The last handle may go on the writer's own thread, when answering it drops a task. The
        // writer then ends by itself, having seen its last sender go.
        if writer.thread().id() != thread::current().id() {
            // A writer that panicked has released its database all the same.
            let _ = writer.join();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close();
    }
}

/// Writes the tables, the stamp and the genesis of a new store.
fn set_up(db: &Database, clock: &dyn Clock) -> Result<()> {
    let mut store_id = [0; 16];
    let mut audit_key = [0; 32];
    for random in [&mut store_id[..], &mut audit_key[..]] {
        getrandom::fill(random)
            .map_err(|error| Error::new(ErrorKind::Io, format!("no random bytes: {error}")))?;
    }
    let txn = db.begin_write()?;
    index::reset(&txn)?;
    txn.open_table(keys::LOG)?;
    txn.open_table(keys::ADDRESS)?;
    txn.open_table(keys::STATE)?;
    txn.open_table(keys::ROOTS)?;
    txn.open_table(keys::REASONS)?;
    {
        let mut meta = txn.open_table(keys::META)?;
        meta.insert(keys::META_FORMAT, keys::FORMAT.to_be_bytes().as_slice())?;
        meta.insert(keys::META_STORE_ID, store_id.as_slice())?;
        meta.insert(keys::META_AUDIT_KEY, audit_key.as_slice())?;
    }
    let genesis = AuditRecord {
        operation: Operation::Create,
        actor: None,
        subjects: Vec::new(),
        refused: false,
        rules: Vec::new(),
        reason: None,
    };
    append_audit(&txn, &mut Chain::genesis(&store_id, audit_key), &[genesis], clock.now())?;
    txn.commit()?;
    Ok(())
}

/// Checks the stamp and reads where the audit chain ends.
fn check_meta(db: &Database) -> Result<Chain> {
    let refused = |message: String| Err(Error::new(ErrorKind::StoreVersion, message));
    let txn = db.begin_read()?;
    let meta = match txn.open_table(keys::META) {
        Ok(meta) => meta,
        Err(redb::TableError::TableDoesNotExist(_)) => {
            return refused("this database has no meta table: it is no store".to_owned());
        }
        Err(error) => return Err(error.into()),
    };
    let row = |name: &str| -> Result<Option<Vec<u8>>> {
        Ok(meta.get(name)?.map(|row| row.value().to_vec()))
    };
    match row(keys::META_FORMAT)?.as_deref().map(<[u8; 4]>::try_from) {
        Some(Ok(version)) if u32::from_be_bytes(version) == keys::FORMAT => {}
        Some(Ok(version)) => {
            let version = u32::from_be_bytes(version);
            return refused(format!("store format {version} is not {}", keys::FORMAT));
        }
        _ => return refused("the store lacks its format stamp".to_owned()),
    }
    let missing = || Error::integrity("the store lacks its audit key or head");
    let key = row(keys::META_AUDIT_KEY)?.ok_or_else(missing)?;
    let key = key.try_into().map_err(|_| Error::integrity("the audit key is damaged"))?;
    let audit = txn.open_table(keys::AUDIT)?;
    let head = audit.get(keys::AUDIT_HEAD)?.ok_or_else(missing)?;
    let head = AuditHead::decode(head.value())?;
    Ok(Chain::at(head, key))
}

/// Brings the derived index to the end of the log: rebuilds it where it is stale, then replays
/// what it lacks into the tail.
fn catch_up(db: &Database) -> Result<View> {
    let txn = db.begin_read()?;
    let log = txn.open_table(keys::LOG)?;
    let address_at = |sequence: index::Sequence| -> Result<Option<[u8; 32]>> {
        let Some(row) = log.get(sequence.get())? else {
            return Ok(None);
        };
        let blob = keys::Envelope::open(row.value())?;
        let address = ContentAddress::of(blob);
        Ok(Some(*keys::AddressKey::plain(&address).as_bytes()))
    };
    if let IndexState::Stale(_) = index::state(&txn, address_at)? {
        let reset = db.begin_write()?;
        index::reset(&reset)?;
        reset.commit()?;
    }
    drop((log, txn));

    let mut view = View::open(db)?;
    let mut tail = view.tail().clone();
    loop {
        let mut full = false;
        for row in view.log_after(tail.watermark().map(|mark| mark.sequence))? {
            let (sequence, blob) = row?;
            push(&mut tail, view.tables(), sequence, &ContentAddress::of(&blob), &blob)?;
            if tail.is_full() {
                full = true;
                break;
            }
        }
        if !full {
            return View::with_tail(db, tail);
        }
        let fold = db.begin_write()?;
        index::fold(&fold, &tail)?;
        fold.commit()?;
        tail = tail.folded();
        view = View::with_tail(db, tail.clone())?;
    }
}
