//! The seam to whatever holds the grains: what CAL may ask of a memory, and nothing else.
//!
//! There is no method here that erases, reads keys or changes policies, so no statement can reach
//! one (spec section 1). The engine implements [`Memory`] on its session.

mod error;

use std::fmt;
use std::ops::ControlFlow;

use grainstore_format::{ContentAddress, Grain, GrainRef, GrainState};

use crate::cancel::Cancel;
use crate::query::Query;
use crate::search::Score;

pub use error::MemoryError;

/// A memory as one session sees it. Everything outside the session (namespace, policy, withdrawn
/// consent, erasure) is absent from every answer. Sources of an ASSEMBLE may ask it from several threads
/// at once: what one reads must not depend on what another does.
pub trait Memory: Sync {
    /// Who asks, and from where.
    fn scope(&self) -> &Scope;

    /// Hands every visible grain for which [`Query::matches`] holds to `visit`, in the order of
    /// [`Query::order`] (by time, ties by ascending address), those of a [`Query::search`] by score,
    /// until it answers `Break`. Never asked for a query that [`Query::is_impossible`]. What is
    /// searched for and the least score are the memory's to hold.
    ///
    /// [`Query::limit`] says how many grains the visitor will take at most; it is a hint.
    ///
    /// # Errors
    /// The memory's own, and [`MemoryError::stopped`] once `cancel` says so.
    fn recall(
        &self,
        query: &Query,
        cancel: &Cancel,
        visit: &mut Visit<'_>,
    ) -> Result<Recalled, MemoryError>;

    /// The fields of a grain that answer what a query searches for, under their payload names; none
    /// for a query without a search.
    ///
    /// # Errors
    /// The memory's own.
    fn matched_fields(&self, query: &Query, grain: &Grain) -> Result<Vec<String>, MemoryError>;

    /// How many visible grains match. Override where an index knows without looking at each.
    ///
    /// # Errors
    /// As [`Memory::recall`].
    fn count(&self, query: &Query, cancel: &Cancel) -> Result<Counted, MemoryError> {
        let mut matches = 0;
        let recalled = self.recall(query, cancel, &mut |_| {
            matches += 1;
            ControlFlow::Continue(())
        })?;
        Ok(Counted { matches, scanned: recalled.scanned })
    }

    /// The visible grain whose address starts with these digits.
    ///
    /// # Errors
    /// The memory's own.
    fn locate(&self, prefix: &HashPrefix) -> Result<Located, MemoryError>;

    /// Whether the session sees this grain; true exactly when [`Memory::get`] would answer.
    ///
    /// # Errors
    /// The memory's own.
    fn exists(&self, address: &ContentAddress) -> Result<bool, MemoryError>;

    /// A visible grain with its state, superseded ones included.
    ///
    /// # Errors
    /// The memory's own.
    fn get(&self, address: &ContentAddress) -> Result<Option<Hit>, MemoryError>;

    /// The visible versions of the chain `address` belongs to, newest first, at most `limit`;
    /// empty when the grain itself is not visible.
    ///
    /// # Errors
    /// The memory's own.
    fn history(&self, address: &ContentAddress, limit: usize) -> Result<Vec<Hit>, MemoryError>;

    /// The visible messages of the whole thread that holds `message`, branches too: the events of its
    /// `session_id` (OMS 28.6); for a message without one, its ancestors by `parent_message_id` up
    /// to the first, and everything that descends from that one. In any order, at most `limit`;
    /// empty when the message itself is not visible. Grains that are not current are members like
    /// any other.
    ///
    /// # Errors
    /// As [`Memory::recall`].
    fn thread(
        &self,
        message: &ContentAddress,
        limit: usize,
        cancel: &Cancel,
    ) -> Result<Vec<ContentAddress>, MemoryError>;

    /// How a recall of `query` would be run, from statistics where those tell of nothing that is not
    /// visible.
    ///
    /// # Errors
    /// As [`Memory::recall`].
    fn explain(&self, query: &Query, cancel: &Cancel) -> Result<Explained, MemoryError>;

    /// Whether a recall of `query` waits for something outside, such as a program that embeds. What one
    /// such recall waits decides what the next may, so they run one after the other.
    fn asks_outside(&self, query: &Query) -> bool {
        let _ = query;
        false
    }

    /// What the host knows about itself, for DESCRIBE.
    ///
    /// # Errors
    /// The memory's own.
    fn describe(&self) -> Result<Host, MemoryError>;

    /// The templates that this session can name: its own, and those of its namespace and no other; each
    /// by name.
    ///
    /// # Errors
    /// The memory's own.
    fn templates(&self) -> Result<Vec<NamedTemplate>, MemoryError>;

    /// Keeps a template: for the session, where neither it nor its namespace has one of the name; for the
    /// namespace, where that has none, in the place of the session's own. A template never changes, and
    /// none goes.
    ///
    /// # Errors
    /// A refusal under the memory's own code.
    fn keep_template(&self, template: &NamedTemplate) -> Result<TemplateKept, MemoryError>;

    /// Adds a new grain, complete but for nothing; `reason` goes into the audit entry.
    ///
    /// # Errors
    /// A refusal under the memory's own code.
    fn add(&self, grain: Grain, reason: &str) -> Result<ContentAddress, MemoryError>;

    /// Writes `grain`, whose `derived_from` names `old`, as the successor of `old`. The memory
    /// checks the invalidation policy of `old`; `reason` goes into the audit entry.
    ///
    /// # Errors
    /// A refusal under the memory's own code, such as `ERR_INVALIDATION_DENIED`.
    fn supersede(
        &self,
        old: &ContentAddress,
        grain: Grain,
        reason: &str,
    ) -> Result<ContentAddress, MemoryError>;

    /// Writes `grain`, which says again what a version before `head` said, as the successor of `head`.
    /// Override where reverting is recorded apart from superseding.
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

/// A template that is kept under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedTemplate {
    /// Its name.
    pub name: String,
    /// Who keeps it.
    pub keeper: TemplateKeeper,
    /// Its definition, as CAL prints it.
    pub definition: String,
}

/// Who keeps a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TemplateKeeper {
    /// The session, until it ends (Tier 0).
    Session,
    /// The namespace of the session, for good (Tier 1).
    Namespace,
}

/// What became of a template that was to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateKept {
    /// It is kept.
    Kept,
    /// There is one of its name.
    Taken,
    /// There are [`NamedTemplate::MOST`] already.
    Full,
}

impl NamedTemplate {
    /// Templates of one namespace, and of one session, at most.
    pub const MOST: usize = 50;

    /// What becomes of it beside those that a session can name. A name stands for one text: only the
    /// session's own of the same text may be kept by its namespace, too.
    #[must_use]
    pub fn among(&self, known: &[Self]) -> TemplateKept {
        let handed_on = |of: &Self| {
            (of.keeper, self.keeper) == (TemplateKeeper::Session, TemplateKeeper::Namespace)
                && of.definition == self.definition
        };
        if known.iter().any(|of| of.name == self.name && !handed_on(of)) {
            return TemplateKept::Taken;
        }
        let alike = known.iter().filter(|of| of.keeper == self.keeper).count();
        if alike >= Self::MOST { TemplateKept::Full } else { TemplateKept::Kept }
    }
}

/// Takes the grains of a recall one by one; `Break` ends it.
pub type Visit<'v> = dyn FnMut(Candidate<'_>) -> ControlFlow<()> + 'v;

/// The session behind a memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// The namespace it is bound to, with all below it; none sees every namespace.
    pub namespace: Option<String>,
    /// The user it serves: MY, and the owner of what it adds.
    pub user_id: Option<String>,
    /// The DID it acts as: the author of what it adds.
    pub actor: Option<String>,
    /// The agent that speaks: the default observer.
    pub agent_id: Option<String>,
}

/// A matching grain while a recall runs.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'c> {
    /// Its address.
    pub address: ContentAddress,
    /// The grain, still encoded.
    pub grain: &'c GrainRef<'c>,
    /// What the index layer knows about it.
    pub state: &'c GrainState,
    /// How well it answers.
    pub score: Score,
}

/// A grain with its address and state.
#[derive(Debug, Clone)]
pub struct Hit {
    /// Its address.
    pub address: ContentAddress,
    /// The grain.
    pub grain: Grain,
    /// What the index layer knows about it.
    pub state: GrainState,
    /// How well it answers what was asked; [`Score::STRUCTURAL`] where nothing was searched for.
    pub score: Score,
}

/// What a recall did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recalled {
    /// Grains of the session that were looked at, matching or not: no others, or it would tell of them.
    pub scanned: u64,
    /// All matches, where the recall ran to its end or an index knows; none otherwise.
    pub total: Option<u64>,
}

/// What a count found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    /// Grains that match.
    pub matches: u64,
    /// Grains looked at, matching or not.
    pub scanned: u64,
}

/// How a recall is run.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Explained {
    /// The index that is walked, such as `SPO`, `session_id` or `time`.
    pub index: String,
    /// What is looked up in it and in others it is intersected with, as a person reads it; empty
    /// where the whole index is walked.
    pub lookups: Vec<String>,
    /// What is searched for among them, as a person reads it: words, vectors; empty without a search.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub search: Vec<String>,
    /// Grains expected to match; an estimate.
    pub estimated: u64,
    /// The most grains that can be looked at; none where that is not known beforehand.
    pub scans_at_most: Option<u64>,
}

/// What a host says about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Host {
    /// Name of the server or library.
    pub name: String,
    /// Its version.
    pub version: String,
    /// `core`, `extended`, `evolve` or `full`.
    pub cal_conformance: &'static str,
    /// What it leaves out of that level, one sentence each.
    pub exceptions: Vec<String>,
    /// Namespaces the session sees, ascending; at most a hundred.
    pub namespaces: Vec<String>,
    /// Whether text can be searched.
    pub full_text: bool,
    /// The model behind vector search, if there is one.
    pub embedding_model: Option<String>,
    /// Languages text search knows, as BCP 47 tags.
    pub supported_languages: Vec<String>,
    /// Whether a query in one language finds text in another.
    pub cross_lingual_search: bool,
}

/// The first 8 to 64 hex digits of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HashPrefix(String);

impl HashPrefix {
    /// The prefix of these digits, if they are 8 to 64 lowercase hex digits.
    #[must_use]
    pub fn new(digits: &str) -> Option<Self> {
        crate::lex::is_hash_digits(digits).then(|| Self(digits.to_owned()))
    }

    /// The prefix that is a whole address.
    pub(crate) fn of(address: &ContentAddress) -> Self {
        Self(address.to_string())
    }

    /// The digits.
    #[must_use]
    pub fn digits(&self) -> &str {
        &self.0
    }

    /// The address, when all its digits are there.
    #[must_use]
    pub fn whole(&self) -> Option<ContentAddress> {
        self.0.parse().ok()
    }
}

impl fmt::Display for HashPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.0)
    }
}

/// What a prefix led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Located {
    /// No visible grain.
    Nothing,
    /// Exactly one visible grain.
    One(ContentAddress),
    /// More than one visible grain.
    Several,
    /// A whole address of a grain outside the session: of another namespace or user.
    Elsewhere,
}
