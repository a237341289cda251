//! Opening of a store: creates it, checks what is there, brings the index up to date and starts the writer.

use std::path::Path;
use std::sync::{Arc, OnceLock, PoisonError};

use grainstore_format::EpochMs;
use redb::backends::InMemoryBackend;
use redb::{Builder, Database, ReadableDatabase, StorageBackend};

use crate::base::error::{Error, ErrorKind, Result, catch_storage_panic};
use crate::base::sync::mpsc::sync_channel;
use crate::base::sync::{Mutex, RwLock, thread};
use crate::disk::database::{DatabaseFile, DatabaseHandle, DatabaseOptions};
use crate::disk::directory;
use crate::disk::journal::Head;
use crate::disk::layout;
use crate::disk::overlay::OverlayFile;
use crate::disk::row_sums::SummedTable;
use crate::disk::truth_transaction::CommitObserver;
use crate::disk::vault::Vault;
use crate::handle::cal_switch::SharedCalSwitch;
use crate::handle::inner::{Running, StoreInner};
use crate::handle::meta::{
    StoreIdentity, StoreMeta, check_log_end, check_seal, initialize, load_rules, open_segment,
    open_vault, read_meta, resolve_compression, resolve_text_settings,
};
use crate::handle::options::OpenOptions;
use crate::handle::prepared_statements::PreparedStatements;
use crate::handle::replication::{check_options, create_copy, follow_journal, journaled};
use crate::handle::store::Store;
use crate::handle::upgrade::{format_of, upgrade};
use crate::handle::write_quotas::SessionQuotas;
use crate::rules::preset::{ActiveRules, RuleSet};
use crate::search::embed::WakeWriter;
use crate::search::retrieval::Retrieval;
use crate::search::texts::TextSettings;
use crate::state::audit::{AuditHashChain, ReadNotes, RefusalLog};
use crate::state::fold_worker::FoldWorker;
use crate::state::index_snapshot::{IndexSnapshot, usable_tables};
use crate::state::truth::Truth;
use crate::state::view::{SharedView, View};
use crate::write::access_counters::AccessCounters;
use crate::write::read_log::{ReadLog, ReadLogContext};
use crate::write::writer::{
    Backlog, Presence, QUEUE_CAPACITY, Request, ScrubState, Writer, WriterRequests,
};

impl Store {
    pub(super) fn open_at(path: &Path, options: &OpenOptions) -> Result<Self> {
        if path.as_os_str().is_empty() {
            return Err(Error::new(ErrorKind::NotFound, "an empty path names no store"));
        }
        if options.journaling.is_some() {
            check_options(options)?;
        }
        if options.read_only {
            return Self::open_to_read(path, options);
        }
        if options.create {
            directory::create_all(path)?;
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
        directory::clear_leftovers(path, options.journaling.is_some())?;
        if !created {
            directory::clear_replaced(&directory::resolve_link(&directory::truth_path(path))?)?;
            directory::clear_replaced(&directory::resolve_link(&directory::index_path(path))?)?;
        }
        let opening = opening(options)?;
        let database = opening.builder();
        let copied = created && create_copy(path, &database, options)?;
        let vault = if created && !copied {
            let (identity, vault) = StoreIdentity::new(path, options)?;
            let options = journaled(options, Head::EMPTY)?;
            let set_up =
                |new: &Path| initialize(&database.create(new)?, &identity, &vault, &options);
            directory::create_truth(path, set_up)?;
            Some(vault)
        } else if options.journaling.is_none() {
            Some(open_vault(path, options)?)
        } else {
            None
        };
        directory::sync_directory(path)?;
        let start = || {
            let db = database.open(directory::truth_path(path))?;
            // A copy has the keys of its journal.
            let (options, vault) = follow_journal((path, vault.as_ref()), &db, options)?;
            let options = &options;
            let settings = StoreSettings::of(&db, &vault, options, !options.follows())?;
            let index =
                open_index(&database, &directory::resolve_link(&directory::index_path(path))?)?;
            let db = DatabaseHandle::from_file(
                db,
                DatabaseFile::locate(&directory::truth_path(path), &opening)?,
            );
            let index = DatabaseHandle::from_file(
                index,
                DatabaseFile::locate(&directory::index_path(path), &opening)?,
            );
            let lock = Some(lock.try_clone()?);
            let parts = StoreParts { db, index, settings, opening: opening.clone(), lock };
            let store = Self::start(parts, path, created, options)?;
            if options.journaling.is_some() {
                store.scrub_what_was_read()?;
            }
            Ok(store)
        };
        match catch_storage_panic(start) {
            // A damaged index is removed and rebuilt; damage in the truth would only be met again.
            Err(error) if error.is_index_damage() => {
                directory::remove(&directory::resolve_link(&directory::index_path(path))?)?;
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
        let opening = opening(options)?;
        let start = |index: Database| {
            let vault = open_vault(path, options)?;
            let db = truth_to_read(path, &opening)?;
            // In memory: the rows of format 1 are bound in another way in an encrypted store.
            let format = format_of(&db.begin_read()?)?;
            let upgrades = vault.keyring().is_some() && format < layout::FIRST_FORMAT_WITH_SEAL;
            let settings = StoreSettings::of(&db, &vault, options, upgrades)?;
            let db = DatabaseHandle::in_memory(db);
            let index = DatabaseHandle::in_memory(index);
            let lock = Some(lock.try_clone()?);
            let parts = StoreParts { db, index, settings, opening: opening.clone(), lock };
            Self::start(parts, path, false, options)
        };
        let kept = catch_storage_panic(|| {
            let file = OverlayFile::open(&directory::index_path(path))?;
            Ok(opening.builder().create_with_backend(file)?)
        });
        let anew =
            || Ok::<_, Error>(opening.builder().create_with_backend(InMemoryBackend::new())?);
        // An index that is missing or unusable is built in memory.
        let Ok(kept) = kept else { return catch_storage_panic(|| start(anew()?)) };
        match catch_storage_panic(|| start(kept)) {
            Err(error) if error.is_index_damage() => catch_storage_panic(|| start(anew()?)),
            started => started,
        }
    }

    /// Starts a store on opened databases: catches up the index, and starts the writer thread.
    fn start(parts: StoreParts, path: &Path, created: bool, options: &OpenOptions) -> Result<Self> {
        let StoreParts { db, index, settings, opening, lock } = parts;
        let StoreSettings { meta, wording, rules, vault } = settings;
        // What is read only changes in memory.
        let observer = match (options.read_only, options.follows()) {
            (true, _) => CommitObserver::default(),
            (false, true) => CommitObserver::refusing(),
            (false, false) => options.observer.clone(),
        };
        let db = db.with_vault(vault.clone()).with_observer(observer);
        let index = index.with_vault(vault);
        let StoreMeta { cursor_key, token_key, switch, chain } = meta;
        let notes = Arc::new(ReadNotes::default());
        let active_rules = Arc::new(ActiveRules::new(rules, db.vault().keyring().is_some()));
        let (view, folder) = first_view(&db, index, options.read_only)?;
        let shared: SharedView = Arc::new(RwLock::new(Some(Arc::clone(&view))));
        let backlog = Arc::new(Backlog::default());
        let counters = (options.count_access && !options.writes_nothing())
            .then(|| Arc::new(AccessCounters::default()));
        // A store in memory builds its full text on the first text search.
        let home = (lock.is_some() && !options.read_only).then_some(path);
        // A graph reveals which grains are similar, so in an encrypted store it is never written to disk.
        let homes = (home, home.filter(|_| db.vault().keyring().is_none()));
        let (requests, incoming) = sync_channel(QUEUE_CAPACITY);
        let requests: WriterRequests = Arc::new(Mutex::new(Some(requests)));
        let embedders = (&options.former_embedder, &options.embedder);
        let memory = options.memory()?;
        let retrieval =
            Retrieval::open(homes, embedders, &wording, (&waker(&requests), db.vault(), memory))?;
        retrieval.check(&view)?;
        let (followers, scrub) = match options.read_only {
            true => (Vec::new(), ScrubState::default()),
            false => {
                let followers = retrieval.start_followers((home, !options.follows()), &shared)?;
                // Before any write: the secrets of erased users are destroyed, so that new rows get another
                // key.
                view.destroy_user_keys()?;
                // A follower scrubs its files when the leader has done so.
                let scrub = match options.follows() {
                    true => ScrubState::default(),
                    false => ScrubState::of(&view)?,
                };
                (followers, scrub)
            }
        };
        // A store in memory has no read log.
        let open_reads = |_: &_| {
            let (store_id, chain) = (view.store_id()?, chain.clone());
            let (active_rules, notes, requests, clock) =
                (&active_rules, &notes, &requests, &options.clock);
            let place = ReadLogContext {
                store: path,
                store_id,
                chain,
                active_rules,
                notes,
                requests,
                clock,
                is_audited: options.journaling.is_none(),
            };
            ReadLog::open(place, options.audit_reads && !options.writes_nothing())
        };
        let reads = lock.as_ref().map(open_reads).transpose()?;
        let refusals = refusals_of(&view, &chain, options)?;
        let stopped = Arc::new(OnceLock::new());
        let presence = Presence {
            shared: Arc::clone(&shared),
            backlog: Arc::clone(&backlog),
            stopped: Arc::clone(&stopped),
        };
        let writer = Writer {
            presence,
            db,
            fold_worker: folder,
            tail_bytes: memory.tail(),
            chain,
            refusals,
            clock: Arc::clone(&options.clock),
            view,
            failed: None,
            counters: counters.clone(),
            locked_accepts_signature: options.locked_accepts_signature,
            rules: Arc::clone(&active_rules),
            notes: Arc::clone(&notes),
            read_log: reads.clone(),
            cascade_after_days: options.cascade_after_days,
            swept: 0,
            next_sweep: EpochMs::new(if options.writes_nothing() { i64::MAX } else { i64::MIN }),
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
            stopped,
            requests,
            writer: Mutex::new(Running::Still(writer)),
            writer_id,
            writes: SessionQuotas::new(options.write_limits),
            kept: PreparedStatements::new(token_key),
            switch: SharedCalSwitch::new(switch),
            firewall: options.firewall.clone(),
            counters,
            resolver: options.resolver.clone(),
            locked_accepts_signature: options.locked_accepts_signature,
            operator: options.operator.clone(),
            reviewers: options.reviewers.clone(),
            users_erase_themselves: options.users_erase_themselves,
            active_rules,
            notes,
            reads,
            cascade_after_days: options.cascade_after_days,
            read_only: options.read_only,
            journaling: options.journaling.clone(),
            following: Mutex::default(),
            opening,
            memory,
            retrieval,
        }));
        store.end_rotations()?;
        Ok(store)
    }

    /// Has the writer thread finish key rotations that a crash has interrupted. The result is not awaited:
    /// what it cannot finish stays readable, and is tried at the next opening.
    fn end_rotations(&self) -> Result<()> {
        let view = self.0.view()?;
        if self.is_read_only()
            || self.0.has_journal()
            || view.vault().keyring().is_none_or(|keyring| keyring.users_in_rotation().is_empty())
        {
            return Ok(());
        }
        self.0.send(Request::Exclusive(Box::new(|writer| {
            let _ = writer.and_then(|writer| catch_storage_panic(|| writer.finish_rotations()));
        })))
    }

    /// A store on storage backends of a test: the truth and the index.
    #[cfg(test)]
    pub(crate) fn on_backends<T: StorageBackend, I: StorageBackend>(
        truth: impl Fn() -> T,
        index: impl Fn() -> I,
        options: &OpenOptions,
    ) -> Result<Self> {
        Self::on_keyed_backends((truth, index), &Vault::default(), options)
    }

    /// The same, of a store with these keys.
    #[cfg(test)]
    pub(crate) fn on_keyed_backends<T: StorageBackend, I: StorageBackend>(
        (truth, index): (impl Fn() -> T, impl Fn() -> I),
        vault: &Vault,
        options: &OpenOptions,
    ) -> Result<Self> {
        let empty = truth().len()? == 0;
        let opening = opening(options)?;
        let create_index =
            || catch_storage_panic(|| Ok(opening.builder().create_with_backend(index())?));
        let start = || {
            let db = opening.builder().create_with_backend(truth())?;
            if empty {
                initialize(&db, &StoreIdentity::random()?.with_keys(vault), vault, options)?;
            }
            let settings = StoreSettings::of(&db, vault, options, true)?;
            let index = match create_index() {
                Err(error) if error.is_integrity() => {
                    index().set_len(0)?;
                    create_index()?
                }
                created => created?,
            };
            let (db, index) = (DatabaseHandle::in_memory(db), DatabaseHandle::in_memory(index));
            let parts = StoreParts { db, index, settings, opening: opening.clone(), lock: None };
            Self::start(parts, Path::new("backend"), empty, options)
        };
        match catch_storage_panic(start) {
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
    index: DatabaseHandle,
    settings: StoreSettings,
    opening: DatabaseOptions,
    lock: Option<directory::StoreLock>,
}

/// What the meta table of a store says, after its seal was checked.
struct StoreSettings {
    meta: StoreMeta,
    /// Languages and observer domains: how grains are indexed as text.
    wording: TextSettings,
    rules: RuleSet,
    vault: Vault,
}

impl StoreSettings {
    /// Reads the settings, and makes a store of an earlier format one of this format if it `upgrades`.
    fn of(db: &Database, vault: &Vault, options: &OpenOptions, upgrades: bool) -> Result<Self> {
        let mut meta = read_meta(db, vault, options)?;
        check_seal(db, vault)?;
        if !options.read_only {
            check_log_end(db, vault)?;
        }
        let rules = load_rules(db, options)?;
        meta.chain = meta.chain.in_segment(open_segment(db, vault)?, rules.policy_set()?);
        if upgrades {
            upgrade(db, &mut meta, options)?;
        }
        let wording = resolve_text_settings(db, vault, options)?;
        let vault = vault.clone().with_compression(resolve_compression(db, vault, options)?);
        Ok(Self { meta, wording, rules, vault })
    }
}

/// Checks the truth, brings the index up to date, and starts the fold worker. Returns the first view.
fn first_view(
    db: &DatabaseHandle,
    mut index: DatabaseHandle,
    read_only: bool,
) -> Result<(Arc<View>, FoldWorker)> {
    let truth = Arc::new(Truth::open(db)?);
    truth.check_rows(SummedTable::at_opening())?;
    let mut indexed = IndexSnapshot::new(usable_tables(&mut index, &truth)?)?;
    let mut folder = FoldWorker::start(index, !read_only)?;
    indexed.catch_up(&truth, &mut folder)?;
    Ok((Arc::new(View::new(truth, indexed)), folder))
}

/// Returns a callback that has the writer thread take a batch of vectors.
pub(super) fn waker(requests: &WriterRequests) -> WakeWriter {
    let requests = Arc::clone(requests);
    Arc::new(move || {
        let requests = requests.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(requests) = &*requests {
            // A full queue also reaches the writer: it takes the batch after each group.
            let _ = requests.try_send(Request::VectorsReady);
        }
    })
}

/// Reads the refusals of the last minute, which are folded with those to come.
fn refusals_of(view: &View, chain: &AuditHashChain, options: &OpenOptions) -> Result<RefusalLog> {
    if options.writes_nothing() {
        return Ok(RefusalLog::default());
    }
    let (entries, carried) = (view.audit_rows()?.backward()?, view.carried_refusals()?);
    Ok(RefusalLog::after(chain.clone(), entries, carried.as_deref(), options.clock.now()))
}

/// Opens the truth in a directory, with writes kept in memory.
fn truth_to_read(path: &Path, opening: &DatabaseOptions) -> Result<Database> {
    let file = OverlayFile::open(&directory::truth_path(path))?;
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
    let (file, opening) = (directory::truth_path(path), opening(options)?);
    let vault = open_vault(path, options)?;
    if options.read_only {
        let db = truth_to_read(path, &opening)?;
        read_meta(&db, &vault, options)?;
        return Ok(DatabaseHandle::in_memory(db).with_vault(vault));
    }
    let db = opening.builder().open(&file)?;
    read_meta(&db, &vault, options)?;
    Ok(DatabaseHandle::from_file(db, DatabaseFile::locate(&file, &opening)?).with_vault(vault))
}

/// Options for both databases: each has the same share of the memory.
fn opening(options: &OpenOptions) -> Result<DatabaseOptions> {
    Ok(DatabaseOptions::new(options.memory()?.page_cache))
}

/// Opens the derived index. A file that is damaged, or no database at all, is replaced by an empty one: the
/// index is rebuilt from the log.
fn open_index(database: &Builder, path: &Path) -> Result<Database> {
    let open = || catch_storage_panic(|| Ok(database.create(path)?));
    match open() {
        Err(error) if error.is_integrity() || error.kind() == ErrorKind::StoreVersion => {
            directory::remove(path)?;
            open()
        }
        opened => opened,
    }
}
