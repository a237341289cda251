//! The storage interface of CAL: the [`Memory`] trait, which lists everything a statement may ask of a store.
//!
//! It has no method that erases grains, reads keys or changes policies, so no statement can reach one (CAL
//! 2.1). The engine implements it on its session.

mod error;

use std::fmt;
use std::ops::ControlFlow;

use grainstore_format::{ContentAddress, Grain, GrainRef, GrainState};

use crate::cancel::CancelHandle;
use crate::query::Query;
use crate::search::Score;

pub use error::MemoryError;

/// A store as one session sees it. Every answer leaves out what the session must not see: other namespaces,
/// what a policy hides, what a withdrawn consent hides, what was erased.
///
/// The sources of an ASSEMBLE may call it from several threads at once, so the result of one call must not
/// depend on another.
///
/// ```
/// # use grainstore_cal::{AccessPlan, CancelHandle, Candidate, HashPrefix, Hit, HostInfo, Memory};
/// # use grainstore_cal::{MemoryError, NamedTemplate, PrefixMatch, Query, RecallStats};
/// # use grainstore_cal::{RecallVisitor, Score, SessionScope, TemplateSaveOutcome};
/// # use grainstore_format::{BeliefBuilder, Blob, ContentAddress, Encoding, EpochMs, Grain};
/// # use grainstore_format::{GrainRef, GrainState};
/// # type Outcome<T> = Result<T, MemoryError>;
/// # struct Notes(SessionScope, Vec<Blob>);
/// # fn no<T>() -> Outcome<T> { Err(MemoryError::new("ERR_NONE", "not in these notes", "")) }
/// # const NOW: EpochMs = EpochMs::new(1_768_471_200_000);
/// # fn notes() -> grainstore_format::Result<Notes> {
/// #     let belief = |object: &str| {
/// #         BeliefBuilder::new(NOW, "alice", "mg:prefers", object, 0.9)
/// #             .build()?.encode(Encoding::MessagePack)
/// #     };
/// #     Ok(Notes(SessionScope::default(), vec![belief("tea")?, belief("jazz")?]))
/// # }
/// # impl Memory for Notes {
/// #     fn scope(&self) -> &SessionScope { &self.0 }
/// #     fn recall(&self, query: &Query, cancel: &CancelHandle, visit: &mut RecallVisitor<'_>)
/// #         -> Outcome<RecallStats> {
/// #         let state = GrainState::default();
/// #         for blob in &self.1 {
/// #             cancel.check()?;
/// #             let Ok(grain) = GrainRef::new(blob.bytes()) else { return no() };
/// #             if query.matches(&blob.address(), &grain, &state, NOW) {
/// #                 let address = blob.address();
/// #                 let (grain, state) = (&grain, &state);
/// #                 let found = Candidate { address, grain, state, score: Score::STRUCTURAL };
/// #                 if visit(found).is_break() { break }
/// #             }
/// #         }
/// #         Ok(RecallStats { scanned: self.1.len() as u64, total: None })
/// #     }
/// #     fn matched_fields(&self, _: &Query, _: &[Hit], _: &CancelHandle)
/// #         -> Outcome<Vec<Vec<String>>> { no() }
/// #     fn locate(&self, _: &HashPrefix) -> Outcome<PrefixMatch> { Ok(PrefixMatch::Nothing) }
/// #     fn exists(&self, _: &ContentAddress) -> Outcome<bool> { no() }
/// #     fn get(&self, _: &ContentAddress) -> Outcome<Option<Hit>> { no() }
/// #     fn history(&self, _: &ContentAddress, _: usize) -> Outcome<Vec<Hit>> { no() }
/// #     fn thread(&self, _: &ContentAddress, _: usize, _: &CancelHandle)
/// #         -> Outcome<Vec<ContentAddress>> { no() }
/// #     fn explain(&self, _: &Query, _: &CancelHandle) -> Outcome<AccessPlan> {
/// #         Ok(AccessPlan { index: "none".to_owned(), estimated: 2, ..AccessPlan::default() })
/// #     }
/// #     fn describe(&self) -> Outcome<HostInfo> { no() }
/// #     fn templates(&self) -> Outcome<Vec<NamedTemplate>> { Ok(Vec::new()) }
/// #     fn save_template(&self, _: &NamedTemplate) -> Outcome<TemplateSaveOutcome> { no() }
/// #     fn add(&self, _: Grain, _: &str) -> Outcome<ContentAddress> { no() }
/// #     fn supersede(&self, _: &ContentAddress, _: Grain, _: &str)
/// #         -> Outcome<ContentAddress> { no() }
/// # }
/// use grainstore_cal::Predicate;
///
/// // `Notes` implements `recall` as a loop over the blobs it holds, and `Query::matches`.
/// let notes: Notes = notes()?;
/// let (about_alice, cancel) = (Predicate::text_is("subject", "alice")?, CancelHandle::new());
/// let counted = notes.count(&Query::default().when(about_alice), &cancel)?;
/// assert_eq!((counted.matches, counted.scanned), (2, 2));
/// cancel.cancel();
/// assert!(notes.count(&Query::default(), &cancel).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Memory: Sync {
    /// The namespace, user and agent of the session.
    fn scope(&self) -> &SessionScope;

    /// Passes every visible grain for which [`Query::matches`] holds to `visit` until it returns `Break`.
    /// Grains come in the order of [`Query::order`] (by time, ties by ascending address), those of a
    /// [`Query::search`] by score. The memory, not [`Query::matches`], applies the search and the least
    /// score. Never called for a query that [`Query::is_impossible`].
    ///
    /// [`Query::limit`] is a hint: the visitor will take at most that many grains.
    ///
    /// # Errors
    /// Those of the memory, and [`MemoryError::stopped`] once `cancel` is due.
    fn recall(
        &self,
        query: &Query,
        cancel: &CancelHandle,
        visit: &mut RecallVisitor<'_>,
    ) -> Result<RecallStats, MemoryError>;

    /// Returns, for each of these grains in order, the payload names of the fields that match the search of
    /// `query`. Called once an answer, and only for a query with a search.
    ///
    /// # Errors
    /// As [`Memory::recall`].
    fn matched_fields(
        &self,
        query: &Query,
        hits: &[Hit],
        cancel: &CancelHandle,
    ) -> Result<Vec<Vec<String>>, MemoryError>;

    /// Counts the visible grains that match. Override it where an index knows the number without reading each
    /// grain.
    ///
    /// # Errors
    /// As [`Memory::recall`].
    fn count(&self, query: &Query, cancel: &CancelHandle) -> Result<CountStats, MemoryError> {
        let mut matches = 0;
        let recalled = self.recall(query, cancel, &mut |_| {
            matches += 1;
            ControlFlow::Continue(())
        })?;
        Ok(CountStats { matches, scanned: recalled.scanned })
    }

    /// Looks up the visible grain whose address starts with `prefix`.
    ///
    /// # Errors
    /// Those of the memory.
    fn locate(&self, prefix: &HashPrefix) -> Result<PrefixMatch, MemoryError>;

    /// Returns `true` if the session sees this grain, exactly when [`Memory::get`] returns one.
    ///
    /// # Errors
    /// Those of the memory.
    fn exists(&self, address: &ContentAddress) -> Result<bool, MemoryError>;

    /// Returns a visible grain with its state, current or not.
    ///
    /// # Errors
    /// Those of the memory.
    fn get(&self, address: &ContentAddress) -> Result<Option<Hit>, MemoryError>;

    /// Returns the visible versions of the chain that `address` belongs to, newest first, at most `limit`;
    /// empty if the grain itself is not visible.
    ///
    /// # Errors
    /// Those of the memory.
    fn history(&self, address: &ContentAddress, limit: usize) -> Result<Vec<Hit>, MemoryError>;

    /// Counts the versions that [`Memory::history`] returns without a limit. Override it where they are
    /// counted without being decoded.
    ///
    /// # Errors
    /// As [`Memory::recall`].
    fn count_versions(
        &self,
        address: &ContentAddress,
        cancel: &CancelHandle,
    ) -> Result<u64, MemoryError> {
        let _ = cancel;
        let versions = self.history(address, usize::MAX)?;
        Ok(u64::try_from(versions.len()).unwrap_or(u64::MAX))
    }

    /// Returns the visible messages of the whole thread that holds `message`, branches included, in any
    /// order, at most `limit`; empty if the message itself is not visible.
    ///
    /// The thread is the events of its `session_id` (OMS 28.6). Of a message without one it is the ancestors
    /// by `parent_message_id` up to the first, and all descendants of that one. Grains that are not current
    /// are members too.
    ///
    /// # Errors
    /// As [`Memory::recall`].
    fn thread(
        &self,
        message: &ContentAddress,
        limit: usize,
        cancel: &CancelHandle,
    ) -> Result<Vec<ContentAddress>, MemoryError>;

    /// Describes how a recall of `query` would run. The figures are statistics only where these reveal
    /// nothing that the session does not see.
    ///
    /// # Errors
    /// As [`Memory::recall`].
    fn explain(&self, query: &Query, cancel: &CancelHandle) -> Result<AccessPlan, MemoryError>;

    /// Returns `true` if a recall of `query` waits for an external service, such as an embedding program.
    /// Such recalls run one after the other: once one of them got its answer too late, the next do not wait,
    /// so their order must be fixed.
    fn uses_external_service(&self, query: &Query) -> bool {
        let _ = query;
        false
    }

    /// Returns the host's description of itself, for DESCRIBE.
    ///
    /// # Errors
    /// Those of the memory.
    fn describe(&self) -> Result<HostInfo, MemoryError>;

    /// Returns the templates that this session can name, ordered by name: its own and those of its namespace.
    ///
    /// # Errors
    /// Those of the memory.
    fn templates(&self) -> Result<Vec<NamedTemplate>, MemoryError>;

    /// Saves a template. One of the session is saved if neither the session nor its namespace has one of that
    /// name; one of the namespace if the namespace has none, and then replaces the session's own. A saved
    /// template is never changed or removed.
    ///
    /// # Errors
    /// A refusal under the memory's own code.
    fn save_template(&self, template: &NamedTemplate) -> Result<TemplateSaveOutcome, MemoryError>;

    /// Adds a new grain, complete with all its fields; `reason` goes into the audit entry.
    ///
    /// # Errors
    /// A refusal under the memory's own code.
    fn add(&self, grain: Grain, reason: &str) -> Result<ContentAddress, MemoryError>;

    /// Writes `grain`, whose `derived_from` names `old`, as the successor of `old`. The memory checks the
    /// invalidation policy of `old`; `reason` goes into the audit entry.
    ///
    /// # Errors
    /// A refusal under the memory's own code, such as `ERR_INVALIDATION_DENIED`.
    fn supersede(
        &self,
        old: &ContentAddress,
        grain: Grain,
        reason: &str,
    ) -> Result<ContentAddress, MemoryError>;

    /// Writes `grain`, which repeats the content of an earlier version, as the successor of `head`. Override
    /// it where a revert is recorded differently from a supersession.
    ///
    /// # Errors
    /// As [`Memory::supersede`].
    fn revert(
        &self,
        head: &ContentAddress,
        grain: Grain,
        reason: &str,
    ) -> Result<ContentAddress, MemoryError> {
        self.supersede(head, grain, reason)
    }
}

/// A template saved under a name.
///
/// ```
/// use grainstore_cal::{NamedTemplate, TemplateOwner, TemplateSaveOutcome};
///
/// let template = |name: &str, keeper| NamedTemplate {
///     name: name.to_owned(),
///     keeper,
///     definition: format!("DEFINE TEMPLATE {name} ELEMENT {{ x }}"),
/// };
/// let known = [template("brief", TemplateOwner::Session)];
/// let again = template("brief", TemplateOwner::Session);
/// assert_eq!(again.check_against(&known), TemplateSaveOutcome::Taken);
/// let handed_on = template("brief", TemplateOwner::Namespace);
/// assert_eq!(handed_on.check_against(&known), TemplateSaveOutcome::Kept);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedTemplate {
    /// The name.
    pub name: String,
    /// The owner: session or namespace.
    pub keeper: TemplateOwner,
    /// The definition, as CAL prints it.
    pub definition: String,
}

/// The owner of a [`NamedTemplate`].
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum TemplateOwner {
    /// The session, until it ends (Tier 0).
    Session,
    /// The namespace of the session, permanently (Tier 1).
    Namespace,
}

/// The outcome of saving a [`NamedTemplate`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateSaveOutcome {
    /// It was saved.
    Kept,
    /// Another template has its name.
    Taken,
    /// Its owner already has [`NamedTemplate::MAX_PER_OWNER`].
    Full,
}

impl NamedTemplate {
    /// The most templates that one namespace, and one session, may have.
    pub const MAX_PER_OWNER: usize = 50;

    /// Decides whether the template may be saved beside those that a session can name. A name stands for one
    /// text: a namespace may only take a name that the session uses for the same text.
    #[must_use]
    pub fn check_against(&self, known: &[Self]) -> TemplateSaveOutcome {
        let handed_on = |of: &Self| {
            (of.keeper, self.keeper) == (TemplateOwner::Session, TemplateOwner::Namespace)
                && of.definition == self.definition
        };
        if known.iter().any(|of| of.name == self.name && !handed_on(of)) {
            return TemplateSaveOutcome::Taken;
        }
        let alike = known.iter().filter(|of| of.keeper == self.keeper).count();
        if alike >= Self::MAX_PER_OWNER {
            TemplateSaveOutcome::Full
        } else {
            TemplateSaveOutcome::Kept
        }
    }
}

/// A callback for the grains of a recall of a [`Memory`], one by one; `Break` ends the recall.
pub type RecallVisitor<'v> = dyn FnMut(Candidate<'_>) -> ControlFlow<()> + 'v;

/// The session behind a [`Memory`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionScope {
    /// The namespace it is bound to, with all below it; `None` sees every namespace.
    pub namespace: Option<String>,
    /// The user it serves: the value of MY, and the owner of the grains it adds.
    pub user_id: Option<String>,
    /// The DID it acts as: the author of the grains it adds.
    pub actor: Option<String>,
    /// The agent that runs it: the default observer.
    pub agent_id: Option<String>,
}

/// A matching grain during a recall of a [`Memory`].
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'c> {
    /// The address.
    pub address: ContentAddress,
    /// The grain, still encoded.
    pub grain: &'c GrainRef<'c>,
    /// Its index-layer state.
    pub state: &'c GrainState,
    /// Its score.
    pub score: Score,
}

/// A decoded grain with its address, state and score, returned by a [`Memory`].
#[derive(Debug, Clone)]
pub struct Hit {
    /// The address.
    pub address: ContentAddress,
    /// The grain.
    pub grain: Grain,
    /// Its index-layer state.
    pub state: GrainState,
    /// Its score; [`Score::STRUCTURAL`] if the query has no search.
    pub score: Score,
}

/// Counters of a recall of a [`Memory`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecallStats {
    /// Grains of the session that were read, matching or not. Others are not counted, since the number would
    /// reveal that they exist.
    pub scanned: u64,
    /// The number of all matches, if the recall ran to its end or an index knows it; `None` otherwise.
    pub total: Option<u64>,
}

/// The outcome of a count in a [`Memory`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CountStats {
    /// Grains that match.
    pub matches: u64,
    /// Grains read, matching or not.
    pub scanned: u64,
}

/// The access plan of a recall of a [`Memory`].
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct AccessPlan {
    /// The index it scans, such as `SPO`, `session_id` or `time`.
    pub index: String,
    /// The keys looked up in that index and in those it is intersected with, in readable form; empty if the
    /// whole index is scanned.
    pub lookups: Vec<String>,
    /// The searches it runs, by words or vectors, in readable form; empty without a search.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub search: Vec<String>,
    /// Estimated number of matching grains.
    pub estimated: u64,
    /// Upper bound of the grains read; `None` if it is not known beforehand.
    pub scans_at_most: Option<u64>,
}

/// The description of a host, as its [`Memory`] gives it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostInfo {
    /// Name of the server or library.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The conformance level: `core`, `extended`, `evolve` or `full` (CAL 24).
    pub cal_conformance: &'static str,
    /// The requirements of that level it does not meet, one sentence each.
    pub exceptions: Vec<String>,
    /// Namespaces the session sees, ascending; at most a hundred.
    pub namespaces: Vec<String>,
    /// True if full-text search is available.
    pub full_text: bool,
    /// The model of vector search; `None` without one.
    pub embedding_model: Option<String>,
    /// Languages of the text search, as BCP 47 tags.
    pub supported_languages: Vec<String>,
    /// True if a query in one language finds text in another (CAL 16.4).
    pub cross_lingual_search: bool,
}

/// The first 8 to 64 hex digits of an address.
///
/// ```
/// use grainstore_cal::HashPrefix;
///
/// assert_eq!(HashPrefix::new("0123abc"), None);
/// let prefix = HashPrefix::new("0123abcd");
/// assert_eq!(prefix.map(|prefix| prefix.to_string()).as_deref(), Some("sha256:0123abcd"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HashPrefix(String);

impl HashPrefix {
    /// Returns the prefix of these digits; `None` unless they are 8 to 64 lowercase hex digits.
    #[must_use]
    pub fn new(digits: &str) -> Option<Self> {
        crate::lex::is_hash_digits(digits).then(|| Self(digits.to_owned()))
    }

    /// Returns the prefix with all digits of `address`.
    pub(crate) fn from_address(address: &ContentAddress) -> Self {
        Self(address.to_string())
    }

    /// Returns the digits.
    #[must_use]
    pub fn digits(&self) -> &str {
        &self.0
    }

    /// Returns the address, if the prefix has all its digits.
    #[must_use]
    pub fn full_address(&self) -> Option<ContentAddress> {
        self.0.parse().ok()
    }
}

impl fmt::Display for HashPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.0)
    }
}

/// The outcome of looking up a [`HashPrefix`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrefixMatch {
    /// No visible grain.
    Nothing,
    /// Exactly one visible grain.
    One(ContentAddress),
    /// More than one visible grain.
    Several,
    /// A full address of a grain outside the session: in another namespace, or of another user.
    Elsewhere,
}
