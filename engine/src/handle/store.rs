//! Opening, creating and closing a store: its format stamp, its recovery, and its writer thread.

use crate::state::audit::AuditRecord;
use crate::state::audit::ReadNotes;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use grainstore_cal::WriteQuotas;
use grainstore_format::{DidResolver, EpochMs};
use grainstore_index::Sequence;
use redb::backends::InMemoryBackend;
use redb::{Builder, Database, StorageBackend};

use crate::base::clock::Clock;
use crate::base::error::{Error, ErrorKind, Result, guarded};
use crate::base::pending::{Pending, stopped};
use crate::base::sync::mpsc::{SyncSender, sync_channel};
use crate::base::sync::thread::{self, JoinHandle, ThreadId};
use crate::base::sync::{Mutex, MutexGuard, RwLock};
use crate::disk::directory;
use crate::disk::keys::AccessCounts;
use crate::disk::overlay::OverlayFile;
use crate::disk::row_sums::SummedTable;
use crate::disk::source::{DatabaseFile, DatabaseHandle, DatabaseOptions};
use crate::handle::cal_switch::SharedCalSwitch;
use crate::handle::firewall::Firewall;
use crate::handle::meta::{
    StoreIdentity, StoreMeta, check_meta, check_seal, compression_of, rules_of, set_up, vault_at,
    wording_of,
};
use crate::handle::options::{OpenOptions, SharedResolver};
use crate::handle::prepared_statements::PreparedStatements;
use crate::handle::session::Session;
use crate::handle::upgrade::upgrade;
use crate::rules::policy::same_did;
use crate::rules::preset::{ActiveRules, RuleSet};
use crate::search::embed::{EmbeddingWorker, WakeWriter};
use crate::search::retrieval::Retrieval;
use crate::search::texts::{TextIndex, TextSettings};
use crate::search::vectors::StoreVectors;
use crate::state::audit::RefusalLog;
use crate::state::folder::FoldWorker;
use crate::state::indexed::{IndexSnapshot, sound_tables};
use crate::state::session_options::SessionOptions;
use crate::state::truth::Truth;
use crate::state::view::SharedView;
use crate::state::view::View;
use crate::write::access::AccessCounters;
use crate::write::reads::{ReadLog, ReadLogContext};
use crate::write::writer::{Backlog, Presence, QUEUE, Request, ScrubState, Writer, WriterRequests};

/// What to do about a store that met a failing disk when it was closed.
const NOT_CLOSED: &str = "look after the disk and its room, and open the store again: everything that was \
                          acknowledged is there";

/// An open store. Cheap to clone; dropping the last clone closes it.
#[derive(Clone)]
pub struct Store(Arc<StoreInner>);

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Store({:?})", self.0.path)
    }
}

/// The writer's thread, or how it ended.
enum Running {
    Still(JoinHandle<Result<()>>),
    Ended(Result<()>),
}

pub(crate) struct StoreInner {
    path: PathBuf,
    cursor_key: [u8; 32],
    created: bool,
    clock: Arc<dyn Clock>,
    shared: SharedView,
    backlog: Arc<Backlog>,
    /// Sender to the writer thread; `None` once the store is closed.
    requests: WriterRequests,
    /// The writer thread, until it was joined. A concurrent close waits for the join too.
    writer: Mutex<Running>,
    writer_id: ThreadId,
    /// Quotas of CAL writes.
    writes: WriteQuotas,
    /// Prepared CAL statements, by token.
    kept: PreparedStatements,
    /// Switch for CAL: on, read-only or off.
    switch: SharedCalSwitch,
    /// The host's refusals of CAL statements.
    firewall: Firewall,
    /// Access counts not yet in the truth; `None` if access is not counted.
    counters: Option<Arc<AccessCounters>>,
    resolver: SharedResolver,
    /// True if an authorized signature may invalidate a locked grain.
    locked_accepts_signature: bool,
    /// DID of the operator, if the host named one.
    operator: Option<String>,
    /// DIDs of the reviewers.
    reviewers: Vec<String>,
    /// True if the host lets a user's session erase that user.
    users_erase_themselves: bool,
    /// The rules of the store.
    regime: Arc<ActiveRules>,
    /// Records queued for the audit log.
    notes: Arc<ReadNotes>,
    /// The read log; `None` for a store in memory.
    reads: Option<Arc<ReadLog>>,
    /// Days after which what ends with a withdrawn consent is erased.
    cascade_after_days: u8,
    /// True if the store was opened read-only.
    read_only: bool,
    opening: DatabaseOptions,
    retrieval: Retrieval,
}

impl Store {
    /// Opens the store in a directory, or creates it if the options say so.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND` if there is no store and none is to be created, `ERR_BUSY` if another handle has it
    /// open for longer than the options wait, `ERR_STORE_VERSION` for a directory that is no store of this
    /// format, `ERR_DIMENSION` and `ERR_SCHEMA` for an embedder that does not fit, `ERR_POLICY` for another
    /// preset than the store's, `ERR_KEY` for a missing or wrong key, `ERR_INTEGRITY` for damage, `ERR_IO`.
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self> {
        let path = path.as_ref();
        guarded(|| Self::open_at(path, options)).map_err(|error| match error.kind() {
            // The options are at fault, not the directory.
            ErrorKind::NotFound | ErrorKind::Busy | ErrorKind::Dimension | ErrorKind::Policy => {
                error
            }
            ErrorKind::Format(
                grainstore_format::ErrorKind::Schema | grainstore_format::ErrorKind::Key,
            ) => error,
            ErrorKind::StoreVersion => error.within(path),
            _ => error.within(path).or_hint(
                "check the path, its permissions and its disk; what cannot be written can be read with \
                 --read-only (OpenOptions::read_only)",
            ),
        })
    }

    fn open_at(path: &Path, options: &OpenOptions) -> Result<Self> {
        if path.as_os_str().is_empty() {
            return Err(Error::new(ErrorKind::NotFound, "an empty path names no store"));
        }
        if options.read_only {
            return Self::open_to_read(path, options);
        }
        if options.create {
            directory::make(path)?;
        } else if !directory::has_store(path)? {
            let message = format!("there is no store at {}", path.display());
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        let lock = directory::lock(path, options.wait)?;
        let created = !directory::has_store(path)?;
        let key = options.key.as_ref().and_then(|key| key.0.file());
        if let Some(key) = key.filter(|_| created) {
            directory::check_beside(key, path)?;
        }
        directory::clear_leftovers(path)?;
        if !created {
            directory::clear_former(&directory::real(&directory::grains(path))?)?;
            directory::clear_former(&directory::real(&directory::index(path))?)?;
        }
        let opening = opening(options);
        let database = opening.builder();
        let vault = if created {
            let (identity, vault) = StoreIdentity::new(path, options)?;
            let set_up = |new: &Path| set_up(&database.create(new)?, &identity, &vault, options);
            directory::create(path, set_up)?;
            vault
        } else {
            vault_at(path, options)?
        };
        directory::sync(path)?;
        let start = || {
            let db = database.open(directory::grains(path))?;
            let mut meta = check_meta(&db, &vault, options)?;
            check_seal(&db, &vault)?;
            upgrade(&db, &mut meta, options)?;
            let wording = wording_of(&db, &vault, options)?;
            let rules = rules_of(&db, options)?;
            let vault = vault.clone().compressing(compression_of(&db, &vault, options)?);
            let index = open_index(&database, &directory::real(&directory::index(path))?)?;
            let db = DatabaseHandle::at(db, DatabaseFile::of(&directory::grains(path), &opening)?);
            let index =
                DatabaseHandle::at(index, DatabaseFile::of(&directory::index(path), &opening)?);
            let (db, index) = (db.with_vault(vault.clone()), index.with_vault(vault));
            let lock = Some(lock.try_clone()?);
            let files =
                StoreParts { db, meta, wording, rules, index, opening: opening.clone(), lock };
            Self::start(files, path, created, options)
        };
        match guarded(start) {
            // A damaged index is removed and rebuilt; damage in the truth would only be met again.
            Err(error) if error.is_of_index() => {
                directory::remove(&directory::real(&directory::index(path))?)?;
                start()
            }
            started => started,
        }
    }

    /// Opens an existing store without writing to its directory: both databases write to memory.
    fn open_to_read(path: &Path, options: &OpenOptions) -> Result<Self> {
        if !directory::has_store(path)? {
            let message = format!("there is no store at {}", path.display());
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        let lock = directory::lock_shared(path, options.wait)?;
        let opening = opening(options);
        let start = |index: Database| {
            let vault = vault_at(path, options)?;
            let db = truth_to_read(path, &opening)?;
            let mut meta = check_meta(&db, &vault, options)?;
            check_seal(&db, &vault)?;
            if vault.keyring().is_some() {
                // In memory: the rows of an earlier format are bound in another way.
                upgrade(&db, &mut meta, options)?;
            }
            let wording = wording_of(&db, &vault, options)?;
            let rules = rules_of(&db, options)?;
            let vault = vault.clone().compressing(compression_of(&db, &vault, options)?);
            let db = DatabaseHandle::in_memory(db).with_vault(vault.clone());
            let index = DatabaseHandle::in_memory(index).with_vault(vault);
            let lock = Some(lock.try_clone()?);
            let files =
                StoreParts { db, meta, wording, rules, index, opening: opening.clone(), lock };
            Self::start(files, path, false, options)
        };
        let kept = guarded(|| {
            let file = OverlayFile::open(&directory::index(path))?;
            Ok(opening.builder().create_with_backend(file)?)
        });
        let anew =
            || Ok::<_, Error>(opening.builder().create_with_backend(InMemoryBackend::new())?);
        // An index that is missing or unusable is built in memory.
        let Ok(kept) = kept else { return guarded(|| start(anew()?)) };
        match guarded(|| start(kept)) {
            Err(error) if error.is_of_index() => guarded(|| start(anew()?)),
            started => started,
        }
    }

    /// Returns `true` if it was opened read-only: no file is written and no read is audited.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.0.read_only
    }

    /// Returns `true` if opening it created it.
    #[must_use]
    pub fn was_created(&self) -> bool {
        self.0.created
    }

    /// Returns why the full text had to be rebuilt since the store was opened: the fault of the files under
    /// `text/`. `None` if they were read, or if there were none.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn rebuilt_text(&self) -> Result<Option<String>> {
        let view = self.0.view()?;
        Ok(self.0.retrieval.library.status(&view)?.rebuilt)
    }

    /// Waits, at most `patience`, until the store's embedder has reached the end of the log and a move to its
    /// model is complete. Returns `true` if it has, and at once for a store without an embedder.
    ///
    /// # Errors
    /// `ERR_IO` once the store is closed; `ERR_INTEGRITY`.
    pub fn wait_for_vectors(&self, patience: Duration) -> Result<bool> {
        match &self.0.retrieval.keeping {
            Some(keeping) => keeping.wait(patience, || self.0.view()),
            None => Ok(true),
        }
    }

    /// Waits, at most `patience`, until graphs over the current vectors are built and saved. Returns `true`
    /// if they are. Graphs are built in the background after the first vector search or a call of this;
    /// searches are answered meanwhile. A store in memory has none.
    ///
    /// # Errors
    /// `ERR_IO` once the store is closed; `ERR_INTEGRITY`.
    pub fn wait_for_graphs(&self, patience: Duration) -> Result<bool> {
        self.0.retrieval.vectors.wait(patience, || self.0.view())
    }

    /// Number of saved vector graphs that had to be rebuilt since the store was opened.
    #[must_use]
    pub fn remade_graphs(&self) -> usize {
        self.0.retrieval.vectors.remade()
    }

    /// The directory of the store.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Returns `true` if the store had not been closed cleanly, so that its files were repaired on opening.
    #[must_use]
    pub fn was_repaired(&self) -> bool {
        self.0.opening.has_repaired()
    }

    /// Size of the page caches of both files, in bytes.
    pub(crate) fn cache_bytes(&self) -> usize {
        self.0.opening.cache_bytes().saturating_mul(2)
    }

    /// Path of the truth.
    pub(crate) fn truth_path(&self) -> PathBuf {
        directory::grains(&self.0.path)
    }

    /// Returns a session, which reads and writes.
    #[must_use]
    pub fn session(&self, options: SessionOptions) -> Session {
        Session::new(self.clone(), options)
    }

    /// Waits until all writes so far are durable and folded into the derived indexes, and the full text and
    /// the graphs there are are saved. Builds no graph: [`Store::wait_for_graphs`] waits for those.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub fn flush(&self) -> Result<()> {
        let (reply, pending) = Pending::new();
        self.0.hand_over(Request::Flush(reply))?;
        pending.wait()
    }

    /// Closes the store for every handle: finishes submitted writes, folds, and releases the lock. The store
    /// is closed when this returns, also if another thread was closing it. The exception is a call on the
    /// writer thread itself, where a task may be polled when its write is answered: that does not wait, and
    /// the store closes afterwards.
    ///
    /// A store that is dropped closes as well, and tells nobody what failed of it.
    ///
    /// # Errors
    /// The failure that ended writing before, or the first that was met while closing: `ERR_IO`, or
    /// `ERR_INTEGRITY` where the truth is damaged. The store is closed all the same, everything that was
    /// acknowledged is on the disk, and who closes it again is told the same.
    pub fn close(&self) -> Result<()> {
        self.0.close().map_err(|error| match error.kind() {
            ErrorKind::Io => error.within(&self.0.path).with_hint(NOT_CLOSED),
            _ => error.within(&self.0.path),
        })
    }

    /// Writes an audit entry without any other effect.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn record_audit(&self, record: AuditRecord) -> Result<()> {
        self.alone(move |writer| writer.note(record, |_| Ok(())))
    }

    pub(crate) fn inner(&self) -> &StoreInner {
        &self.0
    }

    /// Runs a task on the writer thread, after the writes of its group.
    pub(crate) fn alone<T: Send + 'static>(
        &self,
        step: impl FnOnce(&mut Writer) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.inner().check_writable()?;
        self.alone_to_read(step)
    }

    /// Runs a task on the writer thread that writes at most the index; allowed in a read-only store.
    pub(crate) fn alone_to_read<T: Send + 'static>(
        &self,
        step: impl FnOnce(&mut Writer) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, pending) = Pending::new();
        self.inner().hand_over(Request::Alone(Box::new(move |writer| {
            // The caller may have stopped waiting.
            let _ = reply.send(writer.and_then(|writer| guarded(|| step(writer))));
        })))?;
        pending.wait()
    }

    /// Starts a store on opened databases: catches up the index, and starts the writer thread.
    fn start(files: StoreParts, path: &Path, created: bool, options: &OpenOptions) -> Result<Self> {
        let StoreParts { db, meta, wording, rules, index, opening, lock } = files;
        let StoreMeta { cursor_key, token_key, switch, chain } = meta;
        let notes = Arc::new(ReadNotes::default());
        let regime = Arc::new(ActiveRules::new(rules, db.vault().keyring().is_some()));
        let truth = Arc::new(Truth::open(&db)?);
        truth.check_rows(SummedTable::at_opening())?;
        let mut indexed = IndexSnapshot::of(sound_tables(&index, &truth)?)?;
        let mut folder = FoldWorker::start(index)?;
        indexed.catch_up(&truth, &mut folder)?;
        let view = Arc::new(View::new(truth, indexed));
        let shared: SharedView = Arc::new(RwLock::new(Some(Arc::clone(&view))));
        let backlog = Arc::new(Backlog::default());
        let counters = (options.count_access && !options.read_only)
            .then(|| Arc::new(AccessCounters::default()));
        // A store in memory builds its full text on the first text search.
        let home = (lock.is_some() && !options.read_only).then_some(path);
        // A graph reveals which grains are similar, so in an encrypted store it is never written to disk.
        let homes = (home, home.filter(|_| db.vault().keyring().is_none()));
        let (requests, incoming) = sync_channel(QUEUE);
        let requests: WriterRequests = Arc::new(Mutex::new(Some(requests)));
        let wake: WakeWriter = {
            let requests = Arc::clone(&requests);
            Arc::new(move || {
                let requests = requests.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(requests) = &*requests {
                    // A full queue also reaches the writer: it takes the batch after each group.
                    let _ = requests.try_send(Request::Vectors);
                }
            })
        };
        let embedders = (&options.former_embedder, &options.embedder);
        let retrieval = Retrieval::of(homes, embedders, &wording, (&wake, db.vault()))?;
        retrieval.check(&view)?;
        let (followers, scrub) = match options.read_only {
            true => (Vec::new(), ScrubState::default()),
            false => {
                let followers = retrieval.follow(home, &shared)?;
                // Before any write: the secrets of erased users are destroyed, so that new rows get another
                // key.
                view.destroy_secrets()?;
                (followers, ScrubState::of(&view)?)
            }
        };
        let reads = match lock.is_some() {
            true => {
                let (store_id, chain) = (view.store_id()?, chain.clone());
                let (regime, notes, requests, clock) = (&regime, &notes, &requests, &options.clock);
                let place =
                    ReadLogContext { store: path, store_id, chain, regime, notes, requests, clock };
                Some(ReadLog::of(place, options.audit_reads && !options.read_only)?)
            }
            false => None,
        };
        let refusals = match options.read_only {
            true => RefusalLog::default(),
            false => {
                let (entries, carried) = (view.audit_from_end()?, view.carried_refusals()?);
                RefusalLog::after(chain.clone(), entries, carried.as_deref(), options.clock.now())
            }
        };
        let presence = Presence { shared: Arc::clone(&shared), backlog: Arc::clone(&backlog) };
        let writer = Writer {
            presence,
            db,
            folder,
            chain,
            refusals,
            clock: Arc::clone(&options.clock),
            view,
            failed: None,
            counters: counters.clone(),
            locked_accepts_signature: options.locked_accepts_signature,
            regime: Arc::clone(&regime),
            notes: Arc::clone(&notes),
            reads: reads.clone(),
            cascade_after_days: options.cascade_after_days,
            swept: 0,
            next_sweep: EpochMs::new(if options.read_only { i64::MAX } else { i64::MIN }),
            retrieval: retrieval.clone(),
            scrub,
            followers,
            _lock: lock,
        };
        let writer = thread::Builder::new()
            .name("grainstore-writer".to_owned())
            .spawn(move || writer.run(&incoming))?;
        let writer_id = writer.thread().id();
        let store = Self(Arc::new(StoreInner {
            path: path.to_owned(),
            cursor_key,
            created,
            clock: Arc::clone(&options.clock),
            shared,
            backlog,
            requests,
            writer: Mutex::new(Running::Still(writer)),
            writer_id,
            writes: WriteQuotas::new(options.write_limits),
            kept: PreparedStatements::new(token_key),
            switch: SharedCalSwitch::new(switch),
            firewall: options.firewall.clone(),
            counters,
            resolver: options.resolver.clone(),
            locked_accepts_signature: options.locked_accepts_signature,
            operator: options.operator.clone(),
            reviewers: options.reviewers.clone(),
            users_erase_themselves: options.users_erase_themselves,
            regime,
            notes,
            reads,
            cascade_after_days: options.cascade_after_days,
            read_only: options.read_only,
            opening,
            retrieval,
        }));
        store.end_rotations()?;
        Ok(store)
    }

    /// Has the writer thread finish key rotations that a crash has interrupted. The result is not awaited:
    /// what it cannot finish stays readable, and is tried at the next opening.
    fn end_rotations(&self) -> Result<()> {
        let view = self.0.view()?;
        if self.0.read_only
            || view.vault().keyring().is_none_or(|keyring| keyring.renewed().is_empty())
        {
            return Ok(());
        }
        self.0.send(Request::Alone(Box::new(|writer| {
            let _ = writer.and_then(|writer| guarded(|| writer.end_rotations()));
        })))
    }

    /// A store on storage backends of a test: the truth and the index.
    #[cfg(test)]
    pub(crate) fn on_backends<T: StorageBackend, I: StorageBackend>(
        truth: impl Fn() -> T,
        index: impl Fn() -> I,
        options: &OpenOptions,
    ) -> Result<Self> {
        Self::on_keyed_backends((truth, index), &crate::disk::vault::Vault::default(), options)
    }

    /// The same, of a store with these keys.
    #[cfg(test)]
    pub(crate) fn on_keyed_backends<T: StorageBackend, I: StorageBackend>(
        (truth, index): (impl Fn() -> T, impl Fn() -> I),
        vault: &crate::disk::vault::Vault,
        options: &OpenOptions,
    ) -> Result<Self> {
        let empty = truth().len()? == 0;
        let opening = opening(options);
        let create_index = || guarded(|| Ok(opening.builder().create_with_backend(index())?));
        let start = || {
            let db = opening.builder().create_with_backend(truth())?;
            if empty {
                set_up(&db, &StoreIdentity::random()?.with_keys(vault), vault, options)?;
            }
            let mut meta = check_meta(&db, vault, options)?;
            check_seal(&db, vault)?;
            upgrade(&db, &mut meta, options)?;
            let wording = wording_of(&db, vault, options)?;
            let rules = rules_of(&db, options)?;
            let index = match create_index() {
                Err(error) if error.is_integrity() => {
                    index().set_len(0)?;
                    create_index()?
                }
                created => created?,
            };
            let vault = vault.clone().compressing(compression_of(&db, vault, options)?);
            let db = DatabaseHandle::in_memory(db).with_vault(vault.clone());
            let index = DatabaseHandle::in_memory(index).with_vault(vault);
            let opening = opening.clone();
            let files = StoreParts { db, meta, wording, rules, index, opening, lock: None };
            Self::start(files, Path::new("backend"), empty, options)
        };
        match guarded(start) {
            Err(error) if error.is_integrity() => {
                index().set_len(0)?;
                start()
            }
            started => started,
        }
    }
}

/// The parts of a store while it is opened.
struct StoreParts {
    db: DatabaseHandle,
    meta: StoreMeta,
    /// Languages and observer domains: how grains are indexed as text.
    wording: TextSettings,
    rules: RuleSet,
    index: DatabaseHandle,
    opening: DatabaseOptions,
    lock: Option<directory::StoreLock>,
}

/// Opens the truth in a directory, with writes kept in memory.
fn truth_to_read(path: &Path, opening: &DatabaseOptions) -> Result<Database> {
    let file = OverlayFile::open(&directory::grains(path))?;
    if file.len()? == 0 {
        // redb would initialise an empty file as a new database.
        return Err(Error::truth_damaged("the file of the truth is empty"));
    }
    Ok(opening.builder().create_with_backend(file)?)
}

/// Opens the truth of the store in a directory, without its index. The caller holds the lock.
///
/// # Errors
/// `ERR_STORE_VERSION`, `ERR_INTEGRITY`, `ERR_IO`.
pub(crate) fn open_truth(path: &Path, options: &OpenOptions) -> Result<DatabaseHandle> {
    let (file, opening) = (directory::grains(path), opening(options));
    let vault = vault_at(path, options)?;
    if options.read_only {
        let db = truth_to_read(path, &opening)?;
        check_meta(&db, &vault, options)?;
        return Ok(DatabaseHandle::in_memory(db).with_vault(vault));
    }
    let db = opening.builder().open(&file)?;
    check_meta(&db, &vault, options)?;
    Ok(DatabaseHandle::at(db, DatabaseFile::of(&file, &opening)?).with_vault(vault))
}

/// Options for both databases: each gets half of the page cache.
fn opening(options: &OpenOptions) -> DatabaseOptions {
    DatabaseOptions::new(options.cache_bytes / 2)
}

/// Opens the derived index. A file that is damaged, or no database at all, is replaced by an empty one: the
/// index is rebuilt from the log.
fn open_index(database: &Builder, path: &Path) -> Result<Database> {
    let open = || guarded(|| Ok(database.create(path)?));
    match open() {
        Err(error) if error.is_integrity() || error.kind() == ErrorKind::StoreVersion => {
            directory::remove(path)?;
            open()
        }
        opened => opened,
    }
}

impl StoreInner {
    /// The key that seals the cursors of this store.
    pub(crate) fn cursor_key(&self) -> &[u8; 32] {
        &self.cursor_key
    }

    pub(crate) fn writes(&self) -> &WriteQuotas {
        &self.writes
    }

    /// Prepared CAL statements, by token.
    pub(crate) fn kept(&self) -> &PreparedStatements {
        &self.kept
    }

    /// Switch for CAL: on, read-only or off.
    pub(crate) fn switch(&self) -> &SharedCalSwitch {
        &self.switch
    }

    /// The host's refusals of CAL statements.
    pub(crate) fn firewall(&self) -> &Firewall {
        &self.firewall
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    /// The resolver of signers' keys.
    pub(crate) fn resolver(&self) -> &dyn DidResolver {
        self.resolver.0.as_ref()
    }

    /// Returns `true` if the host named this actor as a reviewer.
    pub(crate) fn is_reviewer(&self, actor: Option<&str>) -> bool {
        actor.is_some_and(|actor| self.reviewers.iter().any(|named| same_did(named, actor)))
    }

    /// DID of the operator, if the host named one.
    pub(crate) fn operator(&self) -> Option<&str> {
        self.operator.as_deref()
    }

    /// Returns `true` if a user's session may erase that user: allowed by the host or by the rules.
    pub(crate) fn users_erase_themselves(&self) -> bool {
        self.users_erase_themselves || self.regime.rules().settings.user_may_erase.value
    }

    /// Records queued for the audit log.
    pub(crate) fn notes(&self) -> &ReadNotes {
        &self.notes
    }

    /// The rules of the store.
    pub(crate) fn regime(&self) -> &Arc<ActiveRules> {
        &self.regime
    }

    /// The read log.
    pub(crate) fn reads(&self) -> Option<&Arc<ReadLog>> {
        self.reads.as_ref()
    }

    /// Days after which what ends with a withdrawn consent is erased: the lower of the option and the rules.
    pub(crate) fn cascade_after_days(&self) -> u32 {
        u32::from(self.cascade_after_days).min(self.regime.rules().settings.erasure_sla_days.value)
    }

    /// Returns `true` if an authorized signature may invalidate a locked grain.
    pub(crate) fn accepts_signatures(&self) -> bool {
        self.locked_accepts_signature
    }

    /// The full text, vectors and embedders.
    pub(crate) fn retrieval(&self) -> &Retrieval {
        &self.retrieval
    }

    /// The full text.
    pub(crate) fn library(&self) -> &TextIndex {
        &self.retrieval.library
    }

    /// The store's embedder.
    pub(crate) fn keeping(&self) -> Option<&EmbeddingWorker> {
        self.retrieval.keeping.as_deref()
    }

    /// The embedder of the model that the store is moved away from.
    pub(crate) fn former(&self) -> Option<&EmbeddingWorker> {
        self.retrieval.former.as_deref()
    }

    /// Returns the embedder for queries on a view: that of the serving space.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn meaning(&self, view: &View) -> Result<Option<&EmbeddingWorker>> {
        if self.retrieval.keeping.is_none() {
            return Ok(None);
        }
        let serving = view.serving()?;
        let mut all = self.retrieval.keepings();
        Ok(all.find(|keeping| serving == Some(keeping.space())).map(|keeping| &**keeping))
    }

    /// The vector index.
    pub(crate) fn vectors(&self) -> &StoreVectors {
        &self.retrieval.vectors
    }

    /// The newest view.
    ///
    /// # Errors
    /// `ERR_IO` once the store is closed.
    pub(crate) fn view(&self) -> Result<Arc<View>> {
        let shared = self.shared.read().unwrap_or_else(PoisonError::into_inner);
        shared.clone().ok_or_else(stopped)
    }

    /// Counts that a grain was given to a user (OMS 22.10).
    pub(crate) fn touch(&self, sequence: Sequence) {
        let Some(counters) = &self.counters else { return };
        if counters.touch(sequence, self.clock.now())
            && let Some(requests) = &*self.requests()
        {
            // A full queue wakes the writer as well.
            let _ = requests.try_send(Request::Count);
        }
    }

    /// Sends a request if the queue has room, to wake the writer thread.
    pub(crate) fn wake(&self, request: Request) {
        if let Some(requests) = &*self.requests() {
            let _ = requests.try_send(request);
        }
    }

    /// Returns how often a grain was given to users: the stored count and the increments since. It is not
    /// part of a view: while the store is open, the newest counts are given.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn access_of(&self, view: &View, sequence: Sequence) -> Result<AccessCounts> {
        let Some(counters) = &self.counters else { return view.access_at(sequence) };
        loop {
            let arrivals = counters.arrivals();
            let newest = self.view();
            let stored = newest.as_deref().unwrap_or(view).access_at(sequence)?;
            let access = counters.of(sequence, stored);
            // Increments that were flushed to the truth meanwhile would be in neither of the two reads.
            if counters.arrivals() == arrivals {
                return Ok(access);
            }
        }
    }

    /// Number of grains whose access counts are not yet stored.
    pub(crate) fn waiting_counts(&self) -> usize {
        self.counters.as_ref().map_or(0, |counters| counters.waiting())
    }

    /// Refuses in a read-only store.
    ///
    /// # Errors
    /// `ERR_READ_ONLY`.
    pub(crate) fn check_writable(&self) -> Result<()> {
        match self.read_only {
            false => Ok(()),
            true => {
                let message = "this store was opened to be read, and this writes";
                Err(Error::new(ErrorKind::ReadOnly, message))
            }
        }
    }

    /// Sends a write request to the writer thread; blocks only while [`QUEUE`] requests, or too many
    /// bytes, are waiting.
    ///
    /// # Errors
    /// `ERR_READ_ONLY`; `ERR_IO` once the store is closed.
    pub(crate) fn send(&self, request: Request) -> Result<()> {
        self.check_writable()?;
        self.hand_over(request)
    }

    /// Sends like [`StoreInner::send`] a request that writes at most the index, which is in memory in a
    /// read-only store.
    ///
    /// # Errors
    /// `ERR_IO` once the store is closed.
    pub(crate) fn hand_over(&self, request: Request) -> Result<()> {
        let requests = self.requests().clone().ok_or_else(stopped)?;
        self.backlog.enter(request.bytes())?;
        requests.send(request).map_err(|_| stopped())
    }

    fn requests(&self) -> MutexGuard<'_, Option<SyncSender<Request>>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) -> Result<()> {
        drop(self.requests().take());
        // The last handle may be dropped on the writer thread itself, when answering a write drops a task.
        // Joining would deadlock; the writer ends by itself once its last sender is gone.
        if self.writer_id == thread::current().id() {
            return Ok(());
        }
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = match std::mem::replace(&mut *writer, Running::Ended(Ok(()))) {
            // A writer that panicked has released its database all the same.
            Running::Still(thread) => thread.join().unwrap_or_else(|_| Err(stopped())),
            Running::Ended(ended) => ended,
        };
        *writer = Running::Ended(ended.clone());
        ended
    }
}

impl Drop for StoreInner {
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _ = self.close();
    }
}
