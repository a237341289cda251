//! Options for opening a store, and for a session.

use crate::search::embed::SharedEmbedder;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use grainstore_cal::WriteLimits;
use grainstore_format::{self as format, DidResolver, OfflineResolver};
use grainstore_index::text::Language;

use crate::base::clock::{Clock, SystemClock};
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::memory::{DEFAULT_MEMORY_BYTES, MIN_MEMORY_BYTES, MemoryBudget};
use crate::disk::journal::{Journal, Lead, ShardId, ShardStatus};
use crate::disk::journaling::Source;
use crate::disk::keyring::KeyProvider;
use crate::disk::truth_transaction::CommitObserver;
use crate::disk::vault::Vault;
use crate::handle::firewall::Firewall;
use crate::rules::preset::Preset;
use crate::search::embed::{Embedder, Metric};
use crate::search::texts::TextSettings;

/// Days within which what ends with a withdrawn consent has to be erased: a month (GDPR, article 12).
const MAX_CASCADE_DAYS: u8 = 28;

/// Options for opening a store.
///
/// ```
/// use grainstore::prelude::*;
/// use std::time::Duration;
///
/// # let dir = tempfile::tempdir()?;
/// let options = OpenOptions::new().create(true).wait(Duration::from_secs(5)).compress(true);
/// let store = Store::open(dir.path(), &options)?;
/// assert!(store.was_created());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct OpenOptions {
    pub(crate) create: bool,
    pub(crate) read_only: bool,
    pub(crate) wait: Duration,
    pub(crate) memory_bytes: usize,
    /// `None` for the share of the memory.
    pub(crate) cache_bytes: Option<usize>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) count_access: bool,
    pub(crate) audit_reads: bool,
    pub(crate) locked_accepts_signature: bool,
    pub(crate) operator: Option<String>,
    pub(crate) reviewers: Vec<String>,
    pub(crate) users_erase_themselves: bool,
    pub(crate) cascade_after_days: u8,
    pub(crate) resolver: SharedResolver,
    /// `None` to take the preset of the store, or the default for a new one.
    pub(crate) preset: Option<Preset>,
    /// `None` to take the last setting of the store.
    pub(crate) compress: Option<bool>,
    /// `None` to take the last setting of the store.
    pub(crate) wording: Option<TextSettings>,
    pub(crate) embedder: Option<(SharedEmbedder, Metric)>,
    pub(crate) former_embedder: Option<(SharedEmbedder, Metric)>,
    pub(crate) key: Option<SharedKeyProvider>,
    pub(crate) write_limits: WriteLimits,
    pub(crate) firewall: Firewall,
    /// Takes the changes of every commit.
    pub(crate) observer: CommitObserver,
    /// The journal of the store, and whether this copy leads or follows.
    pub(crate) journaling: Option<Journaling>,
}

/// The journal of a store, and the part of this copy.
#[derive(Debug, Clone)]
pub(crate) struct Journaling {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) role: JournalRole,
    /// Who led when the journal was last looked at.
    leader: Arc<Mutex<Option<String>>>,
}

/// The part of a copy of a store that has a journal.
#[derive(Debug, Clone)]
pub(crate) enum JournalRole {
    /// It writes: with a lead, and the time for which a journal that is not reached is tried again.
    Leader(Lead, Duration),
    /// It reads what the leader of the shard wrote.
    Follower(ShardId),
}

impl Journaling {
    fn new(journal: Arc<dyn Journal>, role: JournalRole) -> Option<Self> {
        Some(Self { journal, role, leader: Arc::default() })
    }

    /// Notes who leads.
    pub(crate) fn note_leader(&self, status: &ShardStatus) {
        let leader = status.leader.clone().filter(|_| !status.is_free());
        *self.leader.lock().unwrap_or_else(PoisonError::into_inner) = leader;
    }

    /// Who led when the journal was last looked at.
    pub(crate) fn leader(&self) -> Option<String> {
        self.leader.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn shard(&self) -> ShardId {
        match &self.role {
            JournalRole::Leader(lead, _) => lead.shard,
            JournalRole::Follower(shard) => *shard,
        }
    }

    /// Where the records of the shard come from, to be read with these keys.
    pub(crate) fn source<'a>(&'a self, vault: &'a Vault) -> Source<'a> {
        Source { journal: &*self.journal, shard: self.shard(), vault }
    }
}

/// The provider of the master key.
#[derive(Clone)]
pub(crate) struct SharedKeyProvider(pub(crate) Arc<dyn KeyProvider>);

impl fmt::Debug for SharedKeyProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// The resolver of signers' keys.
#[derive(Clone)]
pub(crate) struct SharedResolver(pub(crate) Arc<dyn DidResolver + Send + Sync>);

impl fmt::Debug for SharedResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resolver(..)")
    }
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            create: false,
            read_only: false,
            wait: Duration::from_secs(2),
            memory_bytes: DEFAULT_MEMORY_BYTES,
            cache_bytes: None,
            clock: Arc::new(SystemClock),
            count_access: true,
            audit_reads: true,
            resolver: SharedResolver(Arc::new(OfflineResolver)),
            locked_accepts_signature: false,
            operator: None,
            reviewers: Vec::new(),
            users_erase_themselves: false,
            preset: None,
            compress: None,
            cascade_after_days: MAX_CASCADE_DAYS,
            wording: None,
            embedder: None,
            former_embedder: None,
            key: None,
            write_limits: WriteLimits::default(),
            firewall: Firewall::default(),
            observer: CommitObserver::default(),
            journaling: None,
        }
    }
}

impl OpenOptions {
    /// The defaults of [`OpenOptions`]: open an existing store, wait two seconds for the lock, 128 MiB of
    /// memory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether to create the store if there is none. [`Store::open`](crate::Store::open) is
    /// `ERR_NOT_FOUND` otherwise.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Opens the copy of a shard that leads it: what it commits is in the journal before it is acknowledged. The copy
    /// is brought to the end of the journal first, and made from it if there is none. A journal that is not reached is
    /// tried again for as long as `patience`.
    ///
    /// After `ERR_FENCED` and `ERR_IN_DOUBT` nothing more is written: open the copy again, to follow or with another
    /// lead.
    ///
    /// ```
    /// use grainstore::journal::{Journal, MemoryJournal, ShardId};
    /// use grainstore::prelude::*;
    /// use std::sync::Arc;
    /// use std::time::Duration;
    ///
    /// # let (one, two) = (tempfile::tempdir()?, tempfile::tempdir()?);
    /// let journal = Arc::new(MemoryJournal::default());
    /// let lead = journal.lead(ShardId(1), "one", Duration::from_secs(10))?;
    /// let options = OpenOptions::new().create(true);
    /// let leader = options.clone().leading(journal.clone(), lead, Duration::from_secs(10));
    /// let leader = Store::open(one.path(), &leader)?;
    /// let follower = Store::open(two.path(), &options.following(journal, ShardId(1)))?;
    ///
    /// let session = leader.session(SessionOptions::default());
    /// let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
    /// let address = session.put(grain)?.address();
    /// follower.wait_for(leader.position()?.unwrap(), Duration::from_secs(1))?;
    /// assert!(follower.session(SessionOptions::default()).get(&address).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn leading(mut self, journal: Arc<dyn Journal>, lead: Lead, patience: Duration) -> Self {
        self.journaling = Journaling::new(journal, JournalRole::Leader(lead, patience));
        self
    }

    /// Opens a copy of a shard that follows its journal: it reads, and every write is `ERR_NOT_LEADER`. It is brought
    /// to the end of the journal, and made from it if there is none. [`Store::follow`](crate::Store::follow) reads
    /// what came since. No read is counted, and if the rules of the store require reads to be audited, these reads
    /// are refused.
    #[must_use]
    pub fn following(mut self, journal: Arc<dyn Journal>, shard: ShardId) -> Self {
        self.journaling = Journaling::new(journal, JournalRole::Follower(shard));
        self
    }

    /// Returns `true` if the copy follows a journal.
    pub(crate) fn follows(&self) -> bool {
        let role = self.journaling.as_ref().map(|journaling| &journaling.role);
        matches!(role, Some(JournalRole::Follower(_)))
    }

    /// Returns `true` if nothing of the store is written but by its leader.
    pub(crate) fn writes_nothing(&self) -> bool {
        self.read_only || self.follows()
    }

    /// Opens a store read-only: no file in its directory is written. For a full disk, read-only media, or a
    /// backup that must not change.
    ///
    /// A store that was not closed cleanly is repaired in memory; index, full text and graphs are completed
    /// or built in memory, and dropped on close. Every write is `ERR_READ_ONLY`, no read is counted or
    /// audited, and if the rules of the store require reads to be audited, these reads are refused. Several
    /// processes may read at once; a reader excludes a writer and the reverse (`ERR_BUSY`). A store of an
    /// earlier format is read as it is. Nothing is created.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # Store::open(dir.path(), &OpenOptions::new().create(true))?.close()?;
    /// let store = Store::open(dir.path(), &OpenOptions::new().read_only(true))?;
    /// let session = store.session(SessionOptions::default());
    /// let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
    /// assert!(session.put(grain).is_err_and(|error| error.code() == "ERR_READ_ONLY"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Time to wait for another process to close the store before `ERR_BUSY`. Two seconds by default.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// let second = Store::open(dir.path(), &OpenOptions::new().wait(std::time::Duration::ZERO));
    /// assert!(second.is_err_and(|error| error.code() == "ERR_BUSY"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// The memory of the store, in bytes, for everything but vectors: page caches, full text, what is not in a file
    /// yet, merges. 128 MiB by default; less than [`MIN_MEMORY_BYTES`](crate::limits::MIN_MEMORY_BYTES) is refused.
    /// [`Store::stats`](crate::Store::stats) tells what each part takes. Beside it lie what a caller hands over and
    /// is given, and the parts that docs/architecture.md names.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// let options = OpenOptions::new().create(true).memory_bytes(32 << 20);
    /// let memory = Store::open(dir.path(), &options)?.stats()?.memory;
    /// assert!(memory.values().sum::<u64>() < 32 << 20);
    /// let tiny = OpenOptions::new().memory_bytes(1 << 20);
    /// assert!(Store::open(dir.path(), &tiny).is_err_and(|error| error.code() == "ERR_SCHEMA"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn memory_bytes(mut self, bytes: usize) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// Size of the page caches of both files together, in bytes, in place of their share of
    /// [`OpenOptions::memory_bytes`]: half of it.
    #[must_use]
    pub fn cache_bytes(mut self, bytes: usize) -> Self {
        self.cache_bytes = Some(bytes);
        self
    }

    /// The shares of its memory.
    ///
    /// # Errors
    /// `ERR_SCHEMA` for too little memory.
    pub(crate) fn memory(&self) -> Result<MemoryBudget> {
        if self.memory_bytes < MIN_MEMORY_BYTES {
            let message = format!(
                "{} bytes of memory are too few for a store: {MIN_MEMORY_BYTES} at the least",
                self.memory_bytes
            );
            let schema = ErrorKind::Format(format::ErrorKind::Schema);
            return Err(Error::new(schema, message).with_hint("give it 16 MiB or more"));
        }
        let budget = MemoryBudget::new(self.memory_bytes);
        Ok(self.cache_bytes.map_or(budget, |bytes| budget.with_page_caches(bytes)))
    }

    /// The clock of the store: the system's by default, a [`ManualClock`](crate::ManualClock) in tests.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets whether to count how often grains are read, as [`Session::get`](crate::Session::get) does (OMS
    /// 22.10); on by default. The results of queries and of CAL count too, and what an ASSEMBLE shows. Counts
    /// reach the disk up to a minute late, and a crash may lose those of the last minute. If it is off, the
    /// counts stay as they are, and reads write nothing but what
    /// [`audit_reads`](OpenOptions::audit_reads) and the rules of the store record.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// let store = Store::open(dir.path(), &OpenOptions::new().create(true).count_access(false))?;
    /// let session = store.session(SessionOptions::default());
    /// let tea = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
    /// let tea = session.put(tea)?.address();
    /// session.get(&tea)?;
    /// assert_eq!(session.get(&tea)?.access.count, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn count_access(mut self, count: bool) -> Self {
        self.count_access = count;
        self
    }

    /// Sets whether CAL calls that read, and refused ones, are recorded in the read log
    /// ([`Session::reads`](crate::Session::reads)) beside the audit log (CAL 21); on by default. A crash may
    /// lose those of the last second. If it is off, DESCRIBE and the check `cal_audit_logging` say so. Reads
    /// that the rules of the store require in the audit log are recorded either way.
    #[must_use]
    pub fn audit_reads(mut self, audit: bool) -> Self {
        self.audit_reads = audit;
        self
    }

    /// The resolver of keys for signers whose DID does not contain its key, such as `did:web`. Without one
    /// [`Session::signature`](crate::Session::signature) finds theirs unverifiable. Called on the threads of
    /// callers.
    #[must_use]
    pub fn resolver(mut self, resolver: Arc<dyn DidResolver + Send + Sync>) -> Self {
        self.resolver = SharedResolver(resolver);
        self
    }

    /// Sets whether a signature by one of the `authorized` DIDs of a locked grain, other than its author, may
    /// invalidate it, as OMS 12.5.4 says; off by default, as OMS 23.2 says.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// let options = OpenOptions::new().create(true).locked_accepts_authorized_signature(true);
    /// let store = Store::open(dir.path(), &options)?;
    /// # let session = store.session(SessionOptions::default());
    /// use grainstore::format::{SigningKey, cose::proof};
    ///
    /// let key = SigningKey::ed25519_from_seed(&[7; 32]);
    /// let rule = BeliefBuilder::new(session.now(), "payments", "mg:requires", "two signatures", 1.0);
    /// let authorized = vec![key.did().to_string()];
    /// let policy = [("mode".into(), "locked".into()), ("authorized".into(), authorized.into())];
    /// let rule = session.put(rule.invalidation_policy(policy.into()).build()?)?.address();
    /// let signed = proof::sign_detached(&proof::contradict_message(&rule), &key)?;
    /// session.contradict(&rule, "no longer so", Some(&signed))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn locked_accepts_authorized_signature(mut self, accepts: bool) -> Self {
        self.locked_accepts_signature = accepts;
        self
    }

    /// The compliance preset of a new store: [`Preset::default`] by default. An existing store keeps the
    /// preset it was created with, and later changes of its rules
    /// ([`Session::change_rules`](crate::Session::change_rules)): opening fails with `ERR_POLICY` if that is
    /// another preset than this. [`Preset`] shows one.
    #[must_use]
    pub fn preset(mut self, preset: Preset) -> Self {
        self.preset = Some(preset);
        self
    }

    /// Sets whether grains are stored compressed from now on: by zstd with a dictionary that is part of the
    /// program, before encryption. Addresses and answers stay the same; docs/benchmarks.md has the savings,
    /// docs/privacy.md what the lengths of compressed grains reveal. The setting is stored, and off in a
    /// store where it was never set. Grains written before stay as they are until their user's key is
    /// rotated. [`OpenOptions`] shows it.
    #[must_use]
    pub fn compress(mut self, compress: bool) -> Self {
        self.compress = Some(compress);
        self
    }

    /// The domain of some observer types, such as `physical` for sensors, and whether their observations are
    /// indexed as text (OMS 17.3, 24).
    ///
    /// Observations of a domain that is not searched have no terms and get no vector from the embedder: they
    /// are found by time, subject and the other fields, which is how streams of readings are queried.
    /// Observer types without a domain are searched. All settings of domains and languages are stored
    /// together and replace the former ones; a store opened without any keeps the last. A change rebuilds the
    /// full text.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// let options = OpenOptions::new().create(true);
    /// let options = options.observer_domain("physical", ["thermometer", "barometer"], false);
    /// let store = Store::open(dir.path(), &options)?;
    /// assert_eq!(store.stats()?.observer_domains["physical"].unsearched.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn observer_domain<'t>(
        mut self,
        domain: &str,
        observer_types: impl IntoIterator<Item = &'t str>,
        searched: bool,
    ) -> Self {
        for observer_type in observer_types {
            self.wording.get_or_insert_default().domains.assign(observer_type, domain, searched);
        }
        self
    }

    /// The [embedder](crate::embed::Embedder) that makes vectors of texts, and the metric they are compared
    /// by. Grains without a vector of its model get one in the background, and a text search also searches by
    /// the vector of its text. Called on a thread of the store for grains, and on the threads of callers for
    /// queries.
    ///
    /// In a store with vectors of another model this starts a move to the new one: the former model serves
    /// until every grain has a vector of the new model, then the new one does. Opening fails with
    /// `ERR_DIMENSION` if the model is stored with vectors of another length or metric.
    #[must_use]
    pub fn embedder(mut self, embedder: Arc<dyn Embedder>, metric: Metric) -> Self {
        self.embedder = Some((SharedEmbedder(embedder), metric));
        self
    }

    /// The [embedder](crate::embed::Embedder) of the model that a move ([`OpenOptions::embedder`]) leaves.
    /// Until the move is complete it embeds queries, and grains written meanwhile; afterwards it is not
    /// called any more. Without it, text searches use no vectors until then. Opening fails with `ERR_SCHEMA`
    /// if there is no embedder of another model beside it.
    #[must_use]
    pub fn former_embedder(mut self, embedder: Arc<dyn Embedder>, metric: Metric) -> Self {
        self.former_embedder = Some((SharedEmbedder(embedder), metric));
        self
    }

    /// The language of the texts of a namespace and of those below it, or of all without one: a code such as
    /// `en`, `deu` or `pt-BR`. English by default; `und` takes words as they are. A search text is read
    /// in the language of the namespace that is searched. A change rebuilds the full text. Stored like
    /// [`OpenOptions::observer_domain`].
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// let options = OpenOptions::new().create(true).language(Some("berlin"), "de")?;
    /// let session = Store::open(dir.path(), &options)?.session(SessionOptions::default());
    /// let words = BeliefBuilder::new(session.now(), "ann", "liest", "die alten Bücher", 0.9);
    /// session.put(words.namespace("berlin").build()?)?;
    /// let berlin = session.part(SessionOptions { namespace: Some("berlin".into()), ..Default::default() });
    /// let found = berlin.query(&Query::default().searching("altes Buch"), &PageOptions::first(3))?;
    /// assert_eq!(found.results.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_SCHEMA` for an unsupported language code.
    pub fn language(mut self, namespace: Option<&str>, code: &str) -> Result<Self> {
        let Some(language) = Language::from_code(code) else {
            let known: Vec<_> = Language::all().map(Language::code).collect();
            let message = format!("the language {code:?} is none of {}", known.join(", "));
            return Err(Error::new(ErrorKind::Format(format::ErrorKind::Schema), message)
                .with_hint(
                    "use und for texts in other languages; zh, ja, ko, th, lo, km and my mean it too",
                ));
        };
        self.wording.get_or_insert_default().languages.set(namespace, language);
        Ok(self)
    }

    /// The provider of the master key: a [`KeyFile`](crate::KeyFile), a [`Passphrase`](crate::Passphrase), or
    /// one of your own. A store created with one is encrypted as its preset says, and needs the key to be
    /// opened: opening fails with `ERR_KEY` if the key is missing or wrong, and if the store is not
    /// encrypted.
    #[must_use]
    pub fn key(mut self, key: impl KeyProvider + 'static) -> Self {
        self.key = Some(SharedKeyProvider(Arc::new(key)));
        self
    }

    /// The DID of the operator. Sessions without an actor always have the operator's rights, among them
    /// lifting a hold that names no signers. Without a name every actor counts as the operator, so set one if
    /// agents have sessions of their own.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// let options = OpenOptions::new().create(true).operator("did:web:ops.example");
    /// let store = Store::open(dir.path(), &options)?;
    /// let of = |actor: &str| SessionOptions { actor: Some(actor.into()), ..Default::default() };
    /// assert!(store.session(of("did:web:ops.example")).has_powers());
    /// assert!(!store.session(of("did:web:agent.example")).has_powers());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn operator(mut self, did: impl Into<String>) -> Self {
        self.operator = Some(did.into());
        self
    }

    /// A DID that may clear the review that a grain asks for with `requires_human_review`, beside the
    /// operator ([`Session::set_verification`](crate::Session::set_verification)): sessions with this actor,
    /// except for grains it wrote or signed itself. May be called several times.
    #[must_use]
    pub fn reviewer(mut self, did: impl Into<String>) -> Self {
        self.reviewers.push(did.into());
        self
    }

    /// Limits on CAL writes of each kind in a minute: by default 20 ADDs, 10 SUPERSEDEs and 5 REVERTs. All
    /// sessions of the store share them; writes without CAL do not count. They bound
    /// [`Session::ask_with`](crate::Session::ask_with).
    #[must_use]
    pub fn write_limits(mut self, limits: WriteLimits) -> Self {
        self.write_limits = limits;
        self
    }

    /// A [`Firewall`]: refusals of CAL statements before they run, in addition to the rules of the language.
    #[must_use]
    pub fn firewall(mut self, firewall: Firewall) -> Self {
        self.firewall = firewall;
        self
    }

    /// Sets whether a session of a user may erase that user, and single grains of that user, as the operator
    /// may; off by default.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// use grainstore::EraseOptions;
    ///
    /// # let dir = tempfile::tempdir()?;
    /// let options = OpenOptions::new().create(true).users_erase_themselves(true);
    /// let store = Store::open(dir.path(), &options)?;
    /// let ann = store.session(SessionOptions { user_id: Some("ann".into()), ..Default::default() });
    /// let grain = BeliefBuilder::new(ann.now(), "ann", "prefers", "tea", 0.9).user_id("ann").build()?;
    /// ann.put(grain)?;
    /// assert_eq!(ann.erase_user("ann", "I asked for it", &EraseOptions::new())?.erased, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn users_erase_themselves(mut self, may: bool) -> Self {
        self.users_erase_themselves = may;
        self
    }

    /// Days after the withdrawal of a consent by which what ends with it is erased at the latest (OMS 23.2
    /// `consent_cascade`): 28 by default and at most, no more than a month in any calendar. It is erased at
    /// once, unless the withdrawal came from a party that may not decide that.
    /// [`Store::due_erasures`](crate::Store::due_erasures) lists what is due.
    #[must_use]
    pub fn cascade_after_days(mut self, days: u8) -> Self {
        self.cascade_after_days = days.min(MAX_CASCADE_DAYS);
        self
    }
}
