//! Opening, creating and closing a store: its stamp, its recovery, and its writer.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use grainstore_cal::Writes;
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
use crate::disk::overlay::Overlay;
use crate::disk::source::{Home, Opening, Source};
use crate::handle::options::{OpenOptions, Resolver, SessionOptions};
use crate::handle::session::Session;
use crate::operate::upgrade::upgrade;
use crate::read::calls::{Firewall, Kept, Switch};
use crate::rules::policy::same_did;
use crate::rules::preset::{Regime, RuleSet};
use crate::search::embed::{Keeping, Requests};
use crate::search::retrieval::Retrieval;
use crate::search::texts::{Library, Wording};
use crate::search::vectors::Vectors;
use crate::state::audit::Refusals;
use crate::state::folder::Folder;
use crate::state::indexed::{Indexed, sound_tables};
use crate::state::meta::{
    Identity, Meta, check_meta, compression_of, rules_of, set_up, vault_at, wording_of,
};
use crate::state::truth::Truth;
use crate::state::view::View;
use crate::write::access::{Access, Counters};
use crate::write::reads::{Place, ReadLog};
use crate::write::writer::{Backlog, QUEUE, Request, Scrub, Shared, Writer};

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
    cursor_key: [u8; 32],
    created: bool,
    clock: Arc<dyn Clock>,
    shared: Shared,
    backlog: Arc<Backlog>,
    /// How the writer is asked; nothing once the store is closed.
    requests: Requests,
    /// The writer, until somebody has waited for its end. Who closes the store meanwhile waits too.
    writer: Mutex<Option<JoinHandle<()>>>,
    writer_id: ThreadId,
    /// The quotas of CAL writes.
    writes: Writes,
    /// What was prepared in CAL, and waits for its token.
    kept: Kept,
    /// How far CAL runs.
    switch: Switch,
    /// What of CAL the host does not want to run.
    firewall: Firewall,
    /// Access counts on their way to the truth; nothing where access is not counted.
    counters: Option<Arc<Counters>>,
    resolver: Resolver,
    /// Whether an authorized signature opens a lock.
    locked_accepts_signature: bool,
    /// Whom the host named as the operator.
    operator: Option<String>,
    /// Whom the host named as reviewers.
    reviewers: Vec<String>,
    /// Whether the session of a user may erase them.
    users_erase_themselves: bool,
    /// The rules it holds to.
    regime: Arc<Regime>,
    /// The read log; nothing for a store in memory.
    reads: Option<Arc<ReadLog>>,
    /// Days after which what ends with a withdrawn consent is erased.
    cascade_after_days: u8,
    /// Whether it was opened to be read.
    read_only: bool,
    opening: Opening,
    retrieval: Retrieval,
}

impl Store {
    /// Opens the store in a directory, or creates it where the options say so.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND` where there is no store and none is to be created, `ERR_BUSY` while another
    /// handle has it open beyond the options' patience, `ERR_STORE_VERSION` for a directory that is
    /// no store of this format, `ERR_DIMENSION` and `ERR_SCHEMA` for an embedder that does not fit,
    /// `ERR_INTEGRITY` for damage, `ERR_IO`.
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self> {
        let path = path.as_ref();
        guarded(|| Self::open_at(path, options)).map_err(|error| match error.kind() {
            // What the options say is at fault, not the directory.
            ErrorKind::NotFound | ErrorKind::Busy | ErrorKind::Dimension | ErrorKind::Policy => {
                error
            }
            ErrorKind::Format(
                grainstore_format::ErrorKind::Schema | grainstore_format::ErrorKind::Key,
            ) => error,
            ErrorKind::StoreVersion => error.within(path),
            _ => error.within(path).with_hint(
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
        directory::clear_leftovers(path)?;
        if !created {
            directory::clear_former(&directory::real(&directory::grains(path))?)?;
            directory::clear_former(&directory::real(&directory::index(path))?)?;
        }
        let opening = opening(options);
        let database = opening.builder();
        let vault = if created {
            let (identity, vault) = Identity::new(path, options)?;
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
            let wording = wording_of(&db, options)?;
            let rules = rules_of(&db, options)?;
            upgrade(&db, &mut meta, options)?;
            let vault = vault.clone().compressing(compression_of(&db, options)?);
            let index = open_index(&database, &directory::real(&directory::index(path))?)?;
            let db = Source::at(db, Home::of(&directory::grains(path), &opening)?);
            let db = db.with_vault(vault);
            let index = Source::at(index, Home::of(&directory::index(path), &opening)?);
            let lock = Some(lock.try_clone()?);
            let files = Files { db, meta, wording, rules, index, opening: opening.clone(), lock };
            Self::start(files, path, created, options)
        };
        match guarded(start) {
            // Damage in the index goes with it; damage in the truth would be met again.
            Err(error) if error.is_of_index() => {
                directory::remove(&directory::real(&directory::index(path))?)?;
                start()
            }
            started => started,
        }
    }

    /// Opens what is there and writes nothing: both databases write to memory.
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
            let meta = check_meta(&db, &vault, options)?;
            let wording = wording_of(&db, options)?;
            let rules = rules_of(&db, options)?;
            let vault = vault.compressing(compression_of(&db, options)?);
            let db = Source::in_memory(db).with_vault(vault);
            let (index, lock) = (Source::in_memory(index), Some(lock.try_clone()?));
            let files = Files { db, meta, wording, rules, index, opening: opening.clone(), lock };
            Self::start(files, path, false, options)
        };
        let kept = guarded(|| {
            let file = Overlay::open(&directory::index(path))?;
            Ok(opening.builder().create_with_backend(file)?)
        });
        let anew =
            || Ok::<_, Error>(opening.builder().create_with_backend(InMemoryBackend::new())?);
        // An index that is not there, or of no use, is made in memory.
        let Ok(kept) = kept else { return guarded(|| start(anew()?)) };
        match guarded(|| start(kept)) {
            Err(error) if error.is_of_index() => guarded(|| start(anew()?)),
            started => started,
        }
    }

    /// Whether it was opened to be read: nothing is written, and no read is noted.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.0.read_only
    }

    /// Whether opening it created it.
    #[must_use]
    pub fn was_created(&self) -> bool {
        self.0.created
    }

    /// Why its full text had to be built anew since the store was opened: what was wrong with the
    /// files under `text/`. Nothing where it was read, or where there was none.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn rebuilt_text(&self) -> Result<Option<String>> {
        let view = self.0.view()?;
        Ok(self.0.retrieval.library.status(&view)?.rebuilt)
    }

    /// Waits until the store's embedder has come to the end of the log, and a move to its model is
    /// complete, at most so long. Gives whether it has; a store without an embedder waits for nothing.
    ///
    /// # Errors
    /// `ERR_IO` once the store is closed; `ERR_INTEGRITY`.
    pub fn wait_for_vectors(&self, patience: Duration) -> Result<bool> {
        match &self.0.retrieval.keeping {
            Some(keeping) => keeping.wait(patience, || self.0.view()),
            None => Ok(true),
        }
    }

    /// Waits until the graphs over the vectors there are now are made and saved, at most so long. Gives
    /// whether they are. They are made in the background once somebody has searched by a vector, or
    /// waits here; searches are answered meanwhile. A store in memory has none.
    ///
    /// # Errors
    /// `ERR_IO` once the store is closed; `ERR_INTEGRITY`.
    pub fn wait_for_graphs(&self, patience: Duration) -> Result<bool> {
        self.0.retrieval.vectors.wait(patience, || self.0.view())
    }

    /// Graphs of vectors that were saved and had to be made again since the store was opened.
    #[must_use]
    pub fn remade_graphs(&self) -> usize {
        self.0.retrieval.vectors.remade()
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Whether it had not been closed before it was opened, so that its files had to be put right.
    #[must_use]
    pub fn was_repaired(&self) -> bool {
        self.0.opening.has_repaired()
    }

    /// Memory for pages of both files, in bytes.
    pub(crate) fn cache_bytes(&self) -> usize {
        self.0.opening.cache_bytes().saturating_mul(2)
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

    /// Waits until everything written so far is durable and folded into the derived indexes, and what
    /// there is of words and graphs is saved. Makes no graph: [`Store::wait_for_graphs`] waits for those.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub fn flush(&self) -> Result<()> {
        let (reply, pending) = Pending::new();
        self.0.hand_over(Request::Flush(reply))?;
        pending.wait()
    }

    /// Closes the store for every handle: finishes what was submitted, folds, and releases the
    /// lock. When this returns the store is closed, also where another thread was closing it. Only
    /// on the writer's own thread, where a task is polled when its write is answered, it does not
    /// wait: the store closes once that returns.
    pub fn close(&self) {
        self.0.close();
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }

    /// Runs a step on the writer's thread, behind the writes of its group.
    pub(crate) fn alone<T: Send + 'static>(
        &self,
        step: impl FnOnce(&mut Writer) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.inner().check_writable()?;
        self.alone_to_read(step)
    }

    /// The same for a step that writes nothing but the index.
    pub(crate) fn alone_to_read<T: Send + 'static>(
        &self,
        step: impl FnOnce(&mut Writer) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, pending) = Pending::new();
        self.inner().hand_over(Request::Alone(Box::new(move |writer| {
            // Nobody may be waiting any more.
            let _ = reply.send(writer.and_then(|writer| guarded(|| step(writer))));
        })))?;
        pending.wait()
    }

    /// Takes over databases that were set up: catches up the index, and starts the writer.
    fn start(files: Files, path: &Path, created: bool, options: &OpenOptions) -> Result<Self> {
        let Files { db, meta, wording, rules, index, opening, lock } = files;
        let Meta { cursor_key, token_key, switch, chain } = meta;
        let regime = Arc::new(Regime::new(rules, db.vault().keyring().is_some()));
        let truth = Arc::new(Truth::open(&db)?);
        let mut indexed = Indexed::of(sound_tables(&index, &truth)?)?;
        let mut folder = Folder::start(index)?;
        indexed.catch_up(&truth, &mut folder)?;
        let view = Arc::new(View::new(truth, indexed));
        let shared: Shared = Arc::new(RwLock::new(Some(Arc::clone(&view))));
        let backlog = Arc::new(Backlog::default());
        let counters =
            (options.count_access && !options.read_only).then(|| Arc::new(Counters::default()));
        // A store in memory has no words until somebody asks for them.
        let home = (lock.is_some() && !options.read_only).then_some(path);
        // A graph tells which grains are like each other: of encrypted ones it stays in memory.
        let homes = (home, home.filter(|_| db.vault().keyring().is_none()));
        let (requests, incoming) = sync_channel(QUEUE);
        let requests: Requests = Arc::new(Mutex::new(Some(requests)));
        let retrieval = Retrieval::of(homes, (options, &wording), &requests)?;
        retrieval.check(&view)?;
        let (followers, scrub) = match options.read_only {
            true => (Vec::new(), Scrub::default()),
            false => {
                let followers = retrieval.follow(home, &shared)?;
                // Before anything is written: whoever was erased is given another key.
                view.destroy_secrets()?;
                (followers, Scrub::of(&view)?)
            }
        };
        let reads = match lock.is_some() {
            true => {
                let (store_id, chain) = (view.store_id()?, chain.clone());
                let (regime, requests, clock) = (&regime, &requests, &options.clock);
                let place = Place { store: path, store_id, chain, regime, requests, clock };
                Some(ReadLog::of(place, options.audit_reads && !options.read_only)?)
            }
            false => None,
        };
        let writer = Writer {
            db,
            folder,
            chain,
            refusals: Refusals::default(),
            clock: Arc::clone(&options.clock),
            shared: Arc::clone(&shared),
            view,
            failed: None,
            backlog: Arc::clone(&backlog),
            counters: counters.clone(),
            locked_accepts_signature: options.locked_accepts_signature,
            regime: Arc::clone(&regime),
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
        let store = Self(Arc::new(Inner {
            path: path.to_owned(),
            cursor_key,
            created,
            clock: Arc::clone(&options.clock),
            shared,
            backlog,
            requests,
            writer: Mutex::new(Some(writer)),
            writer_id,
            writes: Writes::new(options.write_limits),
            kept: Kept::new(token_key),
            switch: Switch::new(switch),
            firewall: options.firewall.clone(),
            counters,
            resolver: options.resolver.clone(),
            locked_accepts_signature: options.locked_accepts_signature,
            operator: options.operator.clone(),
            reviewers: options.reviewers.clone(),
            users_erase_themselves: options.users_erase_themselves,
            regime,
            reads,
            cascade_after_days: options.cascade_after_days,
            read_only: options.read_only,
            opening,
            retrieval,
        }));
        store.end_rotations()?;
        Ok(store)
    }

    /// Has the writer end changes of keys that a crash has cut short. Nobody waits for it: what it cannot
    /// do stays readable, and is tried at the next opening.
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

    /// A store on backends of the test's own: the truth and the index.
    #[cfg(test)]
    pub(crate) fn on_backends<T: StorageBackend, I: StorageBackend>(
        truth: impl Fn() -> T,
        index: impl Fn() -> I,
        options: &OpenOptions,
    ) -> Result<Self> {
        let empty = truth().len()? == 0;
        let opening = opening(options);
        let create_index = || guarded(|| Ok(opening.builder().create_with_backend(index())?));
        let start = || {
            let db = opening.builder().create_with_backend(truth())?;
            let vault = crate::disk::vault::Vault::default();
            if empty {
                set_up(&db, &Identity::random()?, &vault, options)?;
            }
            let mut meta = check_meta(&db, &vault, options)?;
            let wording = wording_of(&db, options)?;
            let rules = rules_of(&db, options)?;
            upgrade(&db, &mut meta, options)?;
            let index = match create_index() {
                Err(error) if error.is_integrity() => {
                    index().set_len(0)?;
                    create_index()?
                }
                created => created?,
            };
            let vault = vault.compressing(compression_of(&db, options)?);
            let (db, index) = (Source::in_memory(db).with_vault(vault), Source::in_memory(index));
            let opening = opening.clone();
            let files = Files { db, meta, wording, rules, index, opening, lock: None };
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

/// What a store consists of while it is opened.
struct Files {
    db: Source,
    meta: Meta,
    /// How grains are read for their words.
    wording: Wording,
    rules: RuleSet,
    index: Source,
    opening: Opening,
    lock: Option<directory::Lock>,
}

/// The truth of the store in a directory, with what is written to it in memory.
fn truth_to_read(path: &Path, opening: &Opening) -> Result<Database> {
    let file = Overlay::open(&directory::grains(path))?;
    if file.len()? == 0 {
        // One that is empty would be taken for one that is to be created.
        return Err(Error::truth_damaged("the file of the truth is empty"));
    }
    Ok(opening.builder().create_with_backend(file)?)
}

/// The truth of the store in a directory, without its index. The caller holds the lock.
///
/// # Errors
/// `ERR_STORE_VERSION`, `ERR_INTEGRITY`, `ERR_IO`.
pub(crate) fn open_truth(path: &Path, options: &OpenOptions) -> Result<Source> {
    let (file, opening) = (directory::grains(path), opening(options));
    let vault = vault_at(path, options)?;
    if options.read_only {
        let db = truth_to_read(path, &opening)?;
        check_meta(&db, &vault, options)?;
        return Ok(Source::in_memory(db).with_vault(vault));
    }
    let db = opening.builder().open(&file)?;
    check_meta(&db, &vault, options)?;
    Ok(Source::at(db, Home::of(&file, &opening)?).with_vault(vault))
}

/// How both databases are opened: each with half of the page cache.
fn opening(options: &OpenOptions) -> Opening {
    Opening::new(options.cache_bytes / 2)
}

/// Opens the derived index. One that is damaged, or no database at all, is replaced by an empty
/// one: everything in it is rebuilt from the log.
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

impl Inner {
    /// What cursors of this store are sealed with.
    pub(crate) fn cursor_key(&self) -> &[u8; 32] {
        &self.cursor_key
    }

    pub(crate) fn writes(&self) -> &Writes {
        &self.writes
    }

    /// What was prepared in CAL.
    pub(crate) fn kept(&self) -> &Kept {
        &self.kept
    }

    /// How far CAL runs.
    pub(crate) fn switch(&self) -> &Switch {
        &self.switch
    }

    /// What of CAL the host does not want to run.
    pub(crate) fn firewall(&self) -> &Firewall {
        &self.firewall
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        self.clock.as_ref()
    }

    /// Who finds the keys of signers.
    pub(crate) fn resolver(&self) -> &dyn DidResolver {
        self.resolver.0.as_ref()
    }

    /// Whether the host named this actor as a reviewer.
    pub(crate) fn is_reviewer(&self, actor: Option<&str>) -> bool {
        actor.is_some_and(|actor| self.reviewers.iter().any(|named| same_did(named, actor)))
    }

    /// Whom the host named as the operator.
    pub(crate) fn operator(&self) -> Option<&str> {
        self.operator.as_deref()
    }

    /// Whether the session of a user may erase them: by the host's word, or by the rules.
    pub(crate) fn users_erase_themselves(&self) -> bool {
        self.users_erase_themselves || self.regime.rules().settings.user_may_erase.value
    }

    /// The rules the store holds to.
    pub(crate) fn regime(&self) -> &Arc<Regime> {
        &self.regime
    }

    /// The read log.
    pub(crate) fn reads(&self) -> Option<&Arc<ReadLog>> {
        self.reads.as_ref()
    }

    /// Days after which what ends with a withdrawn consent is erased.
    pub(crate) fn cascade_after_days(&self) -> u32 {
        u32::from(self.cascade_after_days).min(self.regime.rules().settings.erasure_sla_days.value)
    }

    /// Whether an authorized signature opens a lock.
    pub(crate) fn accepts_signatures(&self) -> bool {
        self.locked_accepts_signature
    }

    /// What it is searched by.
    pub(crate) fn retrieval(&self) -> &Retrieval {
        &self.retrieval
    }

    /// The full text.
    pub(crate) fn library(&self) -> &Library {
        &self.retrieval.library
    }

    /// The store's embedder.
    pub(crate) fn keeping(&self) -> Option<&Keeping> {
        self.retrieval.keeping.as_deref()
    }

    /// That of the model the store is moved away from.
    pub(crate) fn former(&self) -> Option<&Keeping> {
        self.retrieval.former.as_deref()
    }

    /// The embedder that says what words mean on a view: that of the space that serves.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn meaning(&self, view: &View) -> Result<Option<&Keeping>> {
        if self.retrieval.keeping.is_none() {
            return Ok(None);
        }
        let serving = view.serving()?;
        let mut all = self.retrieval.keepings();
        Ok(all.find(|keeping| serving == Some(keeping.space())).map(|keeping| &**keeping))
    }

    /// The vectors.
    pub(crate) fn vectors(&self) -> &Vectors {
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
            // A queue that is full wakes the writer as well.
            let _ = requests.try_send(Request::Count);
        }
    }

    /// Wakes the writer, if it sleeps.
    pub(crate) fn wake(&self, request: Request) {
        if let Some(requests) = &*self.requests() {
            let _ = requests.try_send(request);
        }
    }

    /// How often a grain was given to users: what the truth says, and what is counted since. It is no
    /// part of a view: the newest counts, while the store is open.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn access_of(&self, view: &View, sequence: Sequence) -> Result<Access> {
        let Some(counters) = &self.counters else { return view.access_at(sequence) };
        loop {
            let arrivals = counters.arrivals();
            let newest = self.view();
            let stored = newest.as_deref().unwrap_or(view).access_at(sequence)?;
            let access = counters.of(sequence, stored);
            // Counts that arrived meanwhile are in neither.
            if counters.arrivals() == arrivals {
                return Ok(access);
            }
        }
    }

    /// Grains whose access counts wait in memory.
    pub(crate) fn waiting_counts(&self) -> usize {
        self.counters.as_ref().map_or(0, |counters| counters.waiting())
    }

    /// Whether anything may be written.
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

    /// Hands a request to write to the writer; waits only while [`QUEUE`] others wait, or too many bytes.
    ///
    /// # Errors
    /// `ERR_READ_ONLY`; `ERR_IO` once the store is closed.
    pub(crate) fn send(&self, request: Request) -> Result<()> {
        self.check_writable()?;
        self.hand_over(request)
    }

    /// As [`Inner::send`], for what writes nothing but the index, which lies in memory where the store was
    /// opened to be read.
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

    fn close(&self) {
        drop(self.requests().take());
        // The last handle may go on the writer's own thread, when answering it drops a task. The
        // writer then ends by itself, having seen its last sender go.
        if self.writer_id == thread::current().id() {
            return;
        }
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(writer) = writer.take() {
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
