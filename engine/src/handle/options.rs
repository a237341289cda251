//! How a store is opened, and as whom a session works.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use grainstore_cal::WriteLimits;
use grainstore_format::{self as format, DidResolver, OfflineResolver};
use grainstore_index::text::Language;

use crate::base::clock::{Clock, SystemClock};
use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::keyring::KeyProvider;
use crate::read::calls::Firewall;
use crate::rules::preset::Preset;
use crate::search::embed::{Embedder, Metric};
use crate::search::texts::Wording;

/// Days after which what ends with a withdrawn consent has to be erased: a month (GDPR, article 12).
const MOST_CASCADE_DAYS: u8 = 28;

/// How to open a store.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    pub(crate) create: bool,
    pub(crate) read_only: bool,
    pub(crate) wait: Duration,
    pub(crate) cache_bytes: usize,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) count_access: bool,
    pub(crate) audit_reads: bool,
    pub(crate) locked_accepts_signature: bool,
    pub(crate) operator: Option<String>,
    pub(crate) reviewers: Vec<String>,
    pub(crate) users_erase_themselves: bool,
    pub(crate) cascade_after_days: u8,
    pub(crate) resolver: Resolver,
    /// Nothing where the store has one, or is to have the default.
    pub(crate) preset: Option<Preset>,
    /// Nothing where the store is to be written as it was the last time.
    pub(crate) compress: Option<bool>,
    /// Nothing where the store is to be read as it was the last time.
    pub(crate) wording: Option<Wording>,
    pub(crate) embedder: Option<(Embeds, Metric)>,
    pub(crate) former_embedder: Option<(Embeds, Metric)>,
    pub(crate) key: Option<Key>,
    pub(crate) write_limits: WriteLimits,
    pub(crate) firewall: Firewall,
}

/// Who has the master key.
#[derive(Clone)]
pub(crate) struct Key(pub(crate) Arc<dyn KeyProvider>);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// Who makes vectors of texts.
#[derive(Clone)]
pub(crate) struct Embeds(pub(crate) Arc<dyn Embedder>);

impl fmt::Debug for Embeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Embeds({})", self.0.model())
    }
}

/// Who finds the keys of signers.
#[derive(Clone)]
pub(crate) struct Resolver(pub(crate) Arc<dyn DidResolver + Send + Sync>);

impl fmt::Debug for Resolver {
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
            cache_bytes: 128 << 20,
            clock: Arc::new(SystemClock),
            count_access: true,
            audit_reads: true,
            resolver: Resolver(Arc::new(OfflineResolver)),
            locked_accepts_signature: false,
            operator: None,
            reviewers: Vec::new(),
            users_erase_themselves: false,
            preset: None,
            compress: None,
            cascade_after_days: MOST_CASCADE_DAYS,
            wording: None,
            embedder: None,
            former_embedder: None,
            key: None,
            write_limits: WriteLimits::default(),
            firewall: Firewall::default(),
        }
    }
}

impl OpenOptions {
    /// The defaults: an existing store, two seconds of patience, a page cache of 128 MiB.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Create the store where there is none.
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Open a store to read it, and write nothing to its directory: on a full disk, from read-only media, from
    /// a backup that must not change. A store that was not closed is put right in memory, the index, the
    /// full text and the graphs are completed or made there, and go when it is closed. Whatever writes is
    /// `ERR_READ_ONLY`, no read is counted or noted, and where the rules of the store want reads noted these are
    /// refused. Several may read at once; while somebody reads nobody can open the store to write, and the
    /// other way round (`ERR_BUSY`). A store of an earlier format is read as it is. Nothing is created.
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// How long to wait for another process to close the store before `ERR_BUSY`.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Memory for pages of the store, in bytes.
    #[must_use]
    pub fn cache_bytes(mut self, bytes: usize) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// What the store takes for now.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Whether to count how often grains are read (OMS 22.10); on unless told otherwise. Counts
    /// reach the disk up to a minute late, and a crash may lose those of its last minute.
    #[must_use]
    pub fn count_access(mut self, count: bool) -> Self {
        self.count_access = count;
        self
    }

    /// Whether calls in CAL that read, or are refused to, are recorded in the read log beside the audit log
    /// (CAL 21); on unless told otherwise. A crash loses those of its last second. Where it is off, DESCRIBE
    /// and the check `cal_audit_logging` say so. Where the rules of the store want reads in the audit log they
    /// are there either way.
    #[must_use]
    pub fn audit_reads(mut self, audit: bool) -> Self {
        self.audit_reads = audit;
        self
    }

    /// Who finds the keys of signers whose DID does not hold its own, such as `did:web`. Without
    /// one their signatures are unverifiable. It is asked on the threads of callers.
    #[must_use]
    pub fn resolver(mut self, resolver: Arc<dyn DidResolver + Send + Sync>) -> Self {
        self.resolver = Resolver(resolver);
        self
    }

    /// Whether a signature by one of the `authorized` DIDs of a locked grain, other than its author,
    /// lets it be invalidated, as OMS 12.5.4 has it; off unless told otherwise, as 23.2 has it.
    #[must_use]
    pub fn locked_accepts_authorized_signature(mut self, accepts: bool) -> Self {
        self.locked_accepts_signature = accepts;
        self
    }

    /// The compliance rules a new store is to hold to: [`Preset::default`] unless told otherwise. A store
    /// that is there holds to those it was created with and what changed them since
    /// ([`Session::change_rules`](crate::Session::change_rules)): opening fails with `ERR_POLICY` where
    /// that is another preset than this.
    #[must_use]
    pub fn preset(mut self, preset: Preset) -> Self {
        self.preset = Some(preset);
        self
    }

    /// Whether grains that are written from now on are kept compressed: zstd with a dictionary that is part of
    /// the program, before they are encrypted. Addresses and answers stay the same; docs/benchmarks.md says
    /// what is gained, docs/privacy.md what the lengths of compressed grains tell. Kept until it is said
    /// otherwise, and off in a store of which nothing was said. What was written before stays as it is,
    /// until its person gets another key.
    #[must_use]
    pub fn compress(mut self, compress: bool) -> Self {
        self.compress = Some(compress);
        self
    }

    /// The domain that observers of some types belong to, such as `physical` for sensors, and whether what
    /// they observe is searched (OMS 17.3, 24). Observations of a domain that is not have no words and get
    /// no vector from the embedder: they are found by time, subject and the other fields, which is what
    /// streams of readings are asked for. Those of types without a domain are searched. What is said of
    /// domains and languages is kept, all of it in place of what was said before: who opens a store
    /// without a word about them gets what was said last. Another assignment than before has the full
    /// text built anew.
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

    /// Who makes vectors of texts, and how these are compared. Grains that come without a vector of its
    /// model get one in the background, and what is searched for by words is searched for by their
    /// vector as well. It is asked on a thread of the store's, for questions on those of callers.
    ///
    /// In a store with vectors of another model this is a move to the new one: the former model serves
    /// until every grain has a vector of the new one, and the new one from then on. Opening fails with
    /// `ERR_DIMENSION` where the model is stored with vectors of another length or metric.
    #[must_use]
    pub fn embedder(mut self, embedder: Arc<dyn Embedder>, metric: Metric) -> Self {
        self.embedder = Some((Embeds(embedder), metric));
        self
    }

    /// Who made the vectors that a move to another model ([`OpenOptions::embedder`]) leaves behind. Until
    /// the move is complete it is asked what words mean, and makes vectors of what is written meanwhile;
    /// afterwards it is not asked any more. Without it what is searched for by words is found by words
    /// alone until then. Opening fails with `ERR_SCHEMA` where there is no embedder of another model
    /// beside it.
    #[must_use]
    pub fn former_embedder(mut self, embedder: Arc<dyn Embedder>, metric: Metric) -> Self {
        self.former_embedder = Some((Embeds(embedder), metric));
        self
    }

    /// The language of the texts of a namespace and of those below it, or of all without one: a code
    /// such as `en`, `deu` or `pt-BR`. Everything is taken to be English unless told otherwise; `und`
    /// takes words as they are. What is searched for is read in the language of the namespace that is
    /// searched. Another language than before has the full text built anew. Kept as
    /// [`OpenOptions::observer_domain`] is.
    ///
    /// # Errors
    /// `ERR_SCHEMA` for a code of no language whose words are known here.
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

    /// Who has the master key. A store that is created with one is encrypted as its preset says, and is
    /// opened with it alone:
    /// opening fails with `ERR_KEY` where it is missing or another one, and where the store is not encrypted.
    #[must_use]
    pub fn key(mut self, key: impl KeyProvider + 'static) -> Self {
        self.key = Some(Key(Arc::new(key)));
        self
    }

    /// Who is the operator, beside sessions without an actor: whose say it is to lift a hold that
    /// names nobody. Without a name every actor counts as the operator, so name one where agents
    /// have sessions of their own.
    #[must_use]
    pub fn operator(mut self, did: impl Into<String>) -> Self {
        self.operator = Some(did.into());
        self
    }

    /// One who may clear the review that a grain asks for with `requires_human_review`, beside the operator
    /// ([`Session::set_verification`](crate::Session::set_verification)): sessions with this DID as actor, but
    /// for grains it wrote or signed itself. May be said of several.
    #[must_use]
    pub fn reviewer(mut self, did: impl Into<String>) -> Self {
        self.reviewers.push(did.into());
        self
    }

    /// How many writes of each kind CAL may make in a minute: 20 ADDs, 10 SUPERSEDEs and 5 REVERTs unless
    /// told otherwise. All sessions of the store draw on the same; what is written without CAL does not.
    #[must_use]
    pub fn write_limits(mut self, limits: WriteLimits) -> Self {
        self.write_limits = limits;
        self
    }

    /// What statements of CAL are refused for before they run, beside the rules of the language.
    #[must_use]
    pub fn firewall(mut self, firewall: Firewall) -> Self {
        self.firewall = firewall;
        self
    }

    /// Whether a session of a user may erase that user, and the grains of that user one by one, beside the
    /// operator; off unless told otherwise.
    #[must_use]
    pub fn users_erase_themselves(mut self, may: bool) -> Self {
        self.users_erase_themselves = may;
        self
    }

    /// How many days after a consent was withdrawn what ends with it is erased at the latest (OMS 23.2
    /// `consent_cascade`): 28 unless told otherwise, which is the most there may be and in no calendar more than
    /// a month. It is erased at once unless somebody withdrew who may not speak for it.
    #[must_use]
    pub fn cascade_after_days(mut self, days: u8) -> Self {
        self.cascade_after_days = days.min(MOST_CASCADE_DAYS);
        self
    }
}

/// Who works with the store, and on which part of it.
///
/// Reads see grains of `namespace` and of namespaces below it (`namespace:...`) alone, and of those
/// the grains of `user_id` and of nobody; writes of others are refused. Without either everything is
/// visible: that is the operator. Nobody sees what rests on a consent that was withdrawn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionOptions {
    /// The partition to work in (OMS 28.2); nothing for all of them.
    pub namespace: Option<String>,
    /// The person it works for, whose grains it sees beside those of nobody: what `MY` means in CAL.
    pub user_id: Option<String>,
    /// The DID that writes are recorded under; nothing for the operator. Where
    /// [`OpenOptions::operator`] names nobody, it has the operator's say as well.
    pub actor: Option<String>,
    /// The agent that speaks: the observer of observations it adds through CAL.
    pub agent_id: Option<String>,
    /// What the session reads for.
    pub purposes: Vec<String>,
}
