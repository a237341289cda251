//! A session: reading and writing as one identity, within a namespace.
//!
//! Everything a caller sends is validated, encoded and hashed here, on the caller's thread, before it goes to
//! the writer thread. Everything a session reads is checked against what it may see.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use grainstore_cal::Query;
use grainstore_format::{
    Blob, ContentAddress, Envelope, EpochMs, Grain, GrainState, Header, Sensitivity,
    SignatureVerdict, Value, is_disclosed_view, normalise_text,
};

use crate::base::error::{Error, ErrorKind, Result, catch_storage_panic};
use crate::base::pending::Pending;
use crate::disk::blob::{stored_grain, with_fields};
use crate::disk::layout::AccessCounts;
use crate::disk::layout::SignatureWrapper;
use crate::handle::auditing::Rejection;
use crate::handle::session_templates::SessionTemplates;
use crate::handle::store::Store;
use crate::rules::policy::{PolicyRule, Proofs, has_protecting_policy, verify_supersession_auth};
use crate::search::embed::check_count;
use crate::state::audit::AuditOperation;
use crate::state::audit::CallContext;
use crate::state::session_options::SessionOptions;
use crate::state::view::{GrainRow, View};
use crate::state::visibility::{Viewer, Visibility, VisibilityOutcome};
use crate::write::offer::Offer;
use crate::write::plan::{PreparedGrain, PutOutcome, SameFact, with_parent};
use crate::write::sensitivity::{given_sensitivity, sensitivity_of, with_sensitivity};
use crate::write::writer::{Request, WriteRequest};

/// Most audit entries of one answer of [`Session::audit`], which ends there without an error.
pub const MAX_AUDIT_ENTRIES: usize = 10_000;
/// Most grains of one [`Session::put_batch`]; `ERR_LIMIT` beyond.
pub const MAX_BATCH: usize = 100_000;
/// Most bytes of the blobs of one [`Session::put_batch`], `ERR_LIMIT` beyond: decompressed where a payload is
/// compressed, and with the envelopes of signed ones.
pub const MAX_BATCH_BYTES: usize = 32 << 20;

/// Said of a successor without a user in the place of what a user owns.
const OF_NOBODY: &str = "what it replaces belongs to a user, and it names none: it is nobody's, and no report and \
                         erasure of that user has it; give it the user_id of what it replaces";

/// Said of a successor in bytes whose header is of a lower sensitivity than that of what it replaces.
const LESS_SENSITIVE: &str = "what it replaces was given a higher sensitivity, and its own bytes say less: encode it \
                              with that sensitivity";

/// What a warning about the successor of a grain depends on.
struct Replaced {
    /// Whether a policy protects it, its own or one that reaches it.
    is_bound: bool,
    /// Whether it has a `user_id`.
    is_of_user: bool,
    /// The sensitivity that its writer gave it beyond its tags.
    given: Option<Sensitivity>,
}

/// A handle that reads and writes as one identity. Cheap to clone. What it sees is decided by its
/// [`SessionOptions`].
///
/// ```
/// use grainstore::prelude::*;
///
/// # let dir = tempfile::tempdir()?;
/// let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// let session = store.session(SessionOptions::default()); // the operator's
/// let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
/// let address = session.put(grain)?.address();
/// assert_eq!(session.get(&address)?.grain()?.text("object"), Some("tea"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Session {
    store: Store,
    options: Arc<SessionOptions>,
    /// The identity, as far as it decides visibility.
    viewer: Arc<Viewer>,
    /// The identity, in the form CAL takes.
    cal_scope: Arc<grainstore_cal::SessionScope>,
    /// The CAL call it runs in, recorded in its audit entries.
    call: Option<Arc<CallContext>>,
    /// Number of CAL statements that wrote, or tried to.
    cal_writes: Arc<AtomicU64>,
    /// Templates defined in this session.
    templates: SessionTemplates,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({:?}, {:?})", self.store, self.options)
    }
}

/// A grain as it is stored, as [`Session::get`] returns it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StoredGrain {
    /// The content address.
    pub address: ContentAddress,
    /// The exact bytes, checked against the address.
    pub blob: Vec<u8>,
    /// The index-layer state.
    pub state: GrainState,
    /// Access counts before this read.
    pub access: AccessCounts,
    /// The envelope of a signed grain; [`Session::signature`] verifies it.
    pub envelope: Option<Envelope>,
}

impl StoredGrain {
    /// Decodes the blob.
    ///
    /// # Errors
    /// As [`Grain::decode`]; a blob that the store accepted does decode.
    pub fn grain(&self) -> Result<Grain> {
        stored_grain(&self.blob)
    }
}

impl Session {
    pub(crate) fn new(store: Store, options: SessionOptions) -> Self {
        let options = normalise_options(options);
        let cal_scope = grainstore_cal::SessionScope {
            namespace: options.namespace.clone(),
            user_id: options.user_id.clone(),
            actor: options.actor.clone(),
            agent_id: options.agent_id.clone(),
        };
        let viewer = Arc::new(Viewer::from_options(&options));
        let (options, cal_scope) = (Arc::new(options), Arc::new(cal_scope));
        let (evolved, templates) = (Arc::default(), SessionTemplates::default());
        Self { store, options, viewer, cal_scope, call: None, cal_writes: evolved, templates }
    }

    /// Returns a session with another identity for a part of this session's work: its CAL writes count for
    /// this session ([`Firewall::max_evolving`](crate::Firewall::max_evolving)), and templates it defines are
    /// visible to later parts with the same namespace and user. The host decides the identity; it is not
    /// checked.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// let agent = SessionOptions { actor: Some("did:web:agent.example".into()), ..Default::default() };
    /// let part = session.part(agent);
    /// let grain = BeliefBuilder::new(part.now(), "alice", "prefers", "tea", 0.9).build()?;
    /// part.put(grain)?;
    /// assert_eq!(session.audit_by("did:web:agent.example", None, 10)?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn part(&self, options: SessionOptions) -> Self {
        Self {
            cal_writes: Arc::clone(&self.cal_writes),
            templates: self.templates.clone(),
            ..Self::new(self.store.clone(), options)
        }
    }

    /// Returns a part like [`Session::part`] with a narrower identity: a namespace within this session's, its
    /// user or, if it has none, any user. What is `None` stays as it is. A refusal is in the audit log.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// let team = session.narrower_part(Some("team".into()), None, None)?;
    /// let ann = team.narrower_part(Some("team:tea".into()), Some("ann".into()), None)?;
    /// assert_eq!(ann.options().user_id.as_deref(), Some("ann"));
    /// let wider = ann.narrower_part(Some("team".into()), None, None);
    /// assert!(wider.is_err_and(|error| error.code() == "ERR_ACCESS"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_ACCESS` for a namespace or a user outside this session.
    pub fn narrower_part(
        &self,
        namespace: Option<String>,
        user_id: Option<String>,
        agent_id: Option<String>,
    ) -> Result<Self> {
        let own = &self.options;
        let options = normalise_options(SessionOptions {
            namespace: namespace.or_else(|| own.namespace.clone()),
            user_id: user_id.or_else(|| own.user_id.clone()),
            agent_id: agent_id.or_else(|| own.agent_id.clone()),
            ..SessionOptions::clone(own)
        });
        self.viewer.check_part(&options).map_err(|error| {
            let rule = PolicyRule::OutsideSession;
            self.refused(AuditOperation::Cal, Vec::new(), rule, None, error)
        })?;
        Ok(self.part(options))
    }

    /// Returns this session, bound to a CAL call.
    pub(crate) fn for_call(&self, errand: &Arc<CallContext>) -> Self {
        Self { call: Some(Arc::clone(errand)), ..self.clone() }
    }

    /// The CAL call it runs in.
    pub(crate) fn call_context(&self) -> Option<&Arc<CallContext>> {
        self.call.as_ref()
    }

    /// Number of CAL statements that wrote, or tried to.
    pub(crate) fn cal_writes(&self) -> &AtomicU64 {
        &self.cal_writes
    }

    /// The templates defined in it.
    pub(crate) fn own_templates(&self) -> &SessionTemplates {
        &self.templates
    }

    /// The identity of the session: the [`SessionOptions`] it was made with, names in NFC.
    #[must_use]
    pub fn options(&self) -> &SessionOptions {
        &self.options
    }

    /// The identity, shared.
    pub(crate) fn shared_options(&self) -> &Arc<SessionOptions> {
        &self.options
    }

    /// The store it works on, of which [`Store::session`] makes another session.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The current time by the store's clock, which may be a [`ManualClock`](crate::ManualClock).
    #[must_use]
    pub fn now(&self) -> EpochMs {
        self.store.inner().clock().now()
    }

    /// Stores a grain and waits until it is durable. Storing the same bytes again is a no-op that says so
    /// (OMS 28.4).
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
    /// let stored = session.put(grain.clone())?;
    /// assert!(!stored.is_duplicate());
    /// let again = session.put(grain)?;
    /// assert!(again.is_duplicate());
    /// assert_eq!(again.address(), stored.address());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Every code of OMS section 19 for an invalid grain or blob; `ERR_ACCESS` for a grain outside the
    /// session's namespace or of another user; `ERR_SIGNATURE`; `ERR_ERASED`; `ERR_POLICY`; `ERR_WITHDRAWN`
    /// for one that rests on a consent that was withdrawn or does not apply now; `ERR_SUPERSEDE_REQUIRED` for
    /// a grain that would replace another in disguise; `ERR_IO`, after which the write is in doubt until the
    /// store is reopened.
    pub fn put(&self, offer: impl Into<Offer>) -> Result<PutOutcome> {
        self.submit(offer, SameFact::Add).wait()
    }

    /// Stores like [`Session::put`], with a choice of what to do if a current grain states the same fact.
    ///
    /// ```
    /// use grainstore::SameFact;
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    ///
    /// let likes = |confidence| BeliefBuilder::new(session.now(), "alice", "likes", "tea", confidence);
    /// let first = session.put(likes(0.5).build()?)?.address();
    /// let kept = session.put_fact(likes(0.6).build()?, SameFact::Keep)?;
    /// assert_eq!(kept.address(), first);
    /// let newer = session.put_fact(likes(0.7).build()?, SameFact::Supersede)?.address();
    /// assert_eq!(session.get(&first)?.state.superseded_by, Some(newer));
    ///
    /// let coffee = BeliefBuilder::new(session.now(), "alice", "likes", "coffee", 0.9).build()?;
    /// let refused = session.put_fact(coffee, SameFact::Unique);
    /// assert_eq!(refused.map_err(|error| error.code()), Err("ERR_CONFLICT"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::put`] and [`Session::supersede`]; with [`SameFact::Unique`] `ERR_CONFLICT` for a grain of
    /// whose subject and relation one is current.
    pub fn put_fact(&self, offer: impl Into<Offer>, same_fact: SameFact) -> Result<PutOutcome> {
        self.submit(offer, same_fact).wait()
    }

    /// Sends a grain to the writer thread without waiting for the disk. The [`Pending`] waits for it.
    pub fn submit(&self, offer: impl Into<Offer>, same_fact: SameFact) -> Pending<PutOutcome> {
        let author = self.principal();
        self.send(self.check_put(offer.into()).map(Box::new), |grain, reply| WriteRequest::Put {
            grain,
            same_fact,
            author,
            reply,
        })
    }

    /// Stores like [`Session::put`], with a reason for the audit log.
    pub(crate) fn put_with_reason(&self, grain: Grain, reason: &str) -> Result<PutOutcome> {
        let author = self.principal_with_reason(Some(reason))?;
        let prepared = self.check_put(Offer::Grain(grain)).map(Box::new);
        let same_fact = SameFact::Add;
        self.send(prepared, |grain, reply| WriteRequest::Put { grain, same_fact, author, reply })
            .wait()
    }

    /// Stores all of these grains, or none of them.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// let likes = |drink: &str, confidence| {
    ///     BeliefBuilder::new(session.now(), "alice", "likes", drink, confidence).build()
    /// };
    /// assert_eq!(session.put_batch([likes("tea", 0.9)?, likes("coffee", 0.5)?])?.len(), 2);
    ///
    /// let team = session.part(SessionOptions { namespace: Some("team".into()), ..Default::default() });
    /// let inside = BeliefBuilder::new(session.now(), "alice", "likes", "water", 0.9).namespace("team");
    /// let refused = team.put_batch([inside.build()?, likes("tea", 0.8)?]);
    /// assert!(refused.is_err_and(|error| error.batch_index() == Some(1)));
    /// assert_eq!(store.stats()?.grains, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::put`], for the first grain that is refused; `ERR_LIMIT` beyond [`MAX_BATCH`] grains or
    /// [`MAX_BATCH_BYTES`].
    pub fn put_batch<O: Into<Offer>>(
        &self,
        offers: impl IntoIterator<Item = O>,
    ) -> Result<Vec<PutOutcome>> {
        self.submit_batch(offers).wait()
    }

    /// Sends a batch to the writer thread without waiting for the disk. The [`Pending`] waits for it.
    pub fn submit_batch<O: Into<Offer>>(
        &self,
        offers: impl IntoIterator<Item = O>,
    ) -> Pending<Vec<PutOutcome>> {
        let author = self.principal();
        let mut grains = Vec::new();
        let mut bytes = 0_usize;
        for (at, offer) in offers.into_iter().enumerate() {
            if at == MAX_BATCH || bytes > MAX_BATCH_BYTES {
                let message =
                    format!("a batch holds {MAX_BATCH} grains and {MAX_BATCH_BYTES} bytes at most");
                return Pending::failed(Error::new(ErrorKind::Limit, message));
            }
            match self.check_put(offer.into()) {
                Ok(prepared) => {
                    bytes = bytes.saturating_add(prepared.open_bytes.max(prepared.bytes()));
                    grains.push(prepared);
                }
                Err(unsent) => return self.refuse(unsent.in_batch(at)),
            }
        }
        self.send(Ok(grains), |grains, reply| WriteRequest::PutBatch { grains, author, reply })
    }

    /// Replaces `old` by a new grain, atomically (OMS 28.4, section 23).
    ///
    /// For a [`Grain`], `old` is added to its `derived_from` and the justification to its
    /// `supersession_justification`; an encoded blob must contain both.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// let prefers = |drink: &str| {
    ///     BeliefBuilder::new(session.now(), "alice", "prefers", drink, 0.9).build()
    /// };
    /// let tea = session.put(prefers("tea")?)?.address();
    /// let coffee = session.supersede(&tea, prefers("coffee")?, Some("she said so"))?;
    /// assert_eq!(session.get(&tea)?.state.superseded_by, Some(coffee));
    /// let late = session.supersede(&tea, prefers("water")?, None);
    /// assert!(late.is_err_and(|error| error.code() == "ERR_CONFLICT"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::put`]; `ERR_NOT_FOUND`; `ERR_CONFLICT` if another grain has superseded it already;
    /// `ERR_INVALIDATION_DENIED` if a policy refuses; `ERR_SCHEMA` for another type, a missing parent, or a
    /// justification that contradicts the grain's; `ERR_TOO_LARGE` for a justification beyond
    /// [`MAX_REASON_BYTES`](crate::limits::MAX_REASON_BYTES).
    pub fn supersede(
        &self,
        old: &ContentAddress,
        new: impl Into<Offer>,
        justification: Option<&str>,
    ) -> Result<ContentAddress> {
        self.submit_supersede(old, new, justification).wait()
    }

    /// As [`Offer::warnings`], of what is to take the place of `old`: the policy of that may go on binding
    /// what has none of its own, what names no user belongs to nobody, whomever `old` is of, and bytes may be of a
    /// lower sensitivity. Of what cannot be read it tells nothing.
    #[must_use]
    pub fn warnings_of_successor(&self, old: &ContentAddress, new: &Offer) -> Vec<String> {
        let mut warnings = new.warnings();
        let of_bound = new.warnings_of_successor();
        let of_nobody = new.is_of_nobody();
        let in_bytes = new.sensitivity_in_bytes();
        if of_bound.is_empty() && !of_nobody && in_bytes.is_none() {
            return warnings;
        }
        let replaced = catch_storage_panic(|| self.replaced(old)).ok().flatten();
        let Some(replaced) = replaced else { return warnings };
        if replaced.is_bound {
            warnings.extend(of_bound);
        }
        if of_nobody && replaced.is_of_user {
            warnings.push(OF_NOBODY.to_owned());
        }
        if in_bytes < replaced.given {
            warnings.extend(in_bytes.map(|_| LESS_SENSITIVE.to_owned()));
        }
        warnings
    }

    /// What a warning about the successor of a grain depends on; `None` of one that cannot be seen.
    fn replaced(&self, address: &ContentAddress) -> Result<Option<Replaced>> {
        let view = self.view()?;
        let Some(row) = self.visible_row(&view, address)? else { return Ok(None) };
        let is_reached = !view.roots_at(row.sequence)?.is_empty();
        let read = with_fields(&row.blob, |grain| {
            let is_bound = is_reached || has_protecting_policy(grain);
            Ok((is_bound, grain.get("user_id").is_some()))
        })?;
        let (is_bound, is_of_user) = read;
        Ok(Some(Replaced { is_bound, is_of_user, given: given_sensitivity(&row.blob)? }))
    }

    /// Sends a supersession to the writer thread without waiting for the disk. The [`Pending`] waits for it.
    pub fn submit_supersede(
        &self,
        old: &ContentAddress,
        new: impl Into<Offer>,
        justification: Option<&str>,
    ) -> Pending<ContentAddress> {
        let author = match self.principal_with_reason(justification) {
            Ok(author) => author,
            Err(error) => return Pending::failed(error),
        };
        let new = new.into();
        let signed = new.envelope().map(<[u8]>::to_vec);
        let prepared = self.prepare_successor(old, new, justification).map(Box::new);
        let unsent =
            |error| self.unsent(AuditOperation::Supersede, Some(old), signed.as_deref(), error);
        let (prepared, old) = (prepared.map_err(unsent), *old);
        self.send(prepared, |new, reply| WriteRequest::Supersede { old, new, author, reply })
    }

    /// Returns the grain with this address, in any state (OMS 28.4). Counts as an access.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
    /// let tea = session.put(grain)?.address();
    /// let stored = session.get(&tea)?;
    /// assert_eq!(stored.grain()?.text("object"), Some("tea"));
    /// assert!(stored.state.is_current());
    /// assert_eq!(session.get(&tea)?.access.count, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_NOT_FOUND` if there is none visible to this session; `ERR_ERASED` for one that was erased;
    /// `ERR_WITHDRAWN` if the consent it rests on was withdrawn or does not apply now; `ERR_POLICY` if a rule
    /// of the store refuses the read; `ERR_INTEGRITY`; `ERR_IO`.
    pub fn get(&self, address: &ContentAddress) -> Result<StoredGrain> {
        let view = self.view()?;
        let given = catch_storage_panic(|| self.get_counted(&view, address))?;
        let given = given.ok_or_else(|| self.not_visible(&view, address))?;
        self.audit_read([*address])?;
        Ok(given)
    }

    /// Returns a grain like [`Session::get`] without counting an access, for explaining or checking it, which
    /// is no retrieval (OMS 22.10).
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn inspect(&self, address: &ContentAddress) -> Result<StoredGrain> {
        let view = self.view()?;
        let seen = catch_storage_panic(|| self.lookup(&view, address))?;
        let seen = seen.ok_or_else(|| self.not_visible(&view, address))?;
        self.audit_read([*address])?;
        Ok(seen)
    }

    /// Verifies the signature of a stored grain, `None` for an unsigned one. The verdict does not depend on
    /// its state (OMS 5.6).
    ///
    /// ```
    /// use grainstore::format::{SignatureVerdict, SigningKey, sign};
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    ///
    /// let key = SigningKey::ed25519_from_seed(&[7; 32]);
    /// let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9);
    /// let blob = grain.author_did(key.did().as_str()).build()?.encode(Default::default())?;
    /// let signed = session.put(sign(blob.bytes(), &key, None)?)?.address();
    /// let verdict = session.signature(&session.get(&signed)?);
    /// assert_eq!(verdict, Some(SignatureVerdict::Valid(key.did())));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn signature(&self, stored: &StoredGrain) -> Option<SignatureVerdict> {
        Some(self.store.verdict(stored.envelope.as_ref()?))
    }

    /// Returns the grains with these addresses, `None` for each that [`Session::get`] would refuse. Each
    /// counts as an access.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub fn get_batch(&self, addresses: &[ContentAddress]) -> Result<Vec<Option<StoredGrain>>> {
        let view = self.view()?;
        let given = catch_storage_panic(|| {
            addresses
                .iter()
                .map(|address| self.get_counted(&view, address))
                .collect::<Result<Vec<_>>>()
        })?;
        self.audit_read(given.iter().flatten().map(|stored| stored.address))?;
        Ok(given)
    }

    /// Returns `true` if [`Session::get`] would find the grain.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
    /// let tea = session.put(grain)?.address();
    /// assert!(session.exists(&tea)?);
    /// assert!(!session.exists(&ContentAddress::of(b"another"))?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub fn exists(&self, address: &ContentAddress) -> Result<bool> {
        let view = self.view()?;
        Ok(catch_storage_panic(|| self.lookup(&view, address))?.is_some())
    }

    /// Returns up to `limit` visible addresses that start with these lowercase hex digits.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
    /// let tea = session.put(grain)?.address();
    /// assert_eq!(session.resolve(&tea.to_string()[..8], 2)?, [tea]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_HASH_FORMAT`, `ERR_HASH_LENGTH` (8 to 64 digits), `ERR_INTEGRITY`, `ERR_IO`.
    pub fn resolve(&self, prefix: &str, limit: usize) -> Result<Vec<ContentAddress>> {
        let view = self.view()?;
        catch_storage_panic(|| self.resolve_in(&view, prefix, limit))
    }

    pub(crate) fn resolve_in(
        &self,
        view: &View,
        prefix: &str,
        limit: usize,
    ) -> Result<Vec<ContentAddress>> {
        let (bytes, half) = hex_prefix(prefix)?;
        let mut found = Vec::new();
        // Addresses that the session cannot see do not count against the limit.
        for address in view.addresses_with_prefix(&bytes, half, usize::MAX)? {
            if found.len() == limit {
                break;
            }
            if self.lookup(view, &address)?.is_some() {
                found.push(address);
            }
        }
        Ok(found)
    }

    pub(crate) fn cal_scope(&self) -> &grainstore_cal::SessionScope {
        &self.cal_scope
    }

    pub(crate) fn view(&self) -> Result<Arc<View>> {
        let view = self.store.inner().view()?;
        match self.options.user_id.as_deref() {
            Some(user_id) if view.vault().keyring().is_some() => {
                view.for_users([user_id]).map(Arc::new)
            }
            _ => Ok(view),
        }
    }

    /// Returns the view a query runs on, with the index keys of the users the query names.
    ///
    /// # Errors
    /// `ERR_KEY` if grains are encrypted under users' own keys and the query names no user.
    pub(crate) fn view_for_query(&self, view: Arc<View>, query: &Query) -> Result<Arc<View>> {
        let names_nobody = users_of(query).is_empty();
        let looks_up = query.address().is_some() || query.addresses().is_some();
        if view.vault().keyring().is_some() && names_nobody && !looks_up {
            view.require_user()?;
        }
        self.view_with_named_users(view, query)
    }

    /// Returns a view with the index keys of the users the query names, if it names any.
    ///
    /// # Errors
    /// `ERR_KEY`, `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn view_with_named_users(
        &self,
        view: Arc<View>,
        query: &Query,
    ) -> Result<Arc<View>> {
        let named = users_of(query);
        if view.vault().keyring().is_none() || named.is_empty() {
            return Ok(view);
        }
        view.for_users(named).map(Arc::new)
    }

    /// Returns the grain with this address, if this session can see it. Counts no access.
    pub(crate) fn lookup(
        &self,
        view: &View,
        address: &ContentAddress,
    ) -> Result<Option<StoredGrain>> {
        let row = self.visible_row(view, address)?;
        row.map(|row| self.to_stored_grain(view, *address, row)).transpose()
    }

    /// Returns a grain like [`Session::lookup`], and counts an access.
    fn get_counted(&self, view: &View, address: &ContentAddress) -> Result<Option<StoredGrain>> {
        let Some(row) = self.visible_row(view, address)? else { return Ok(None) };
        let sequence = row.sequence;
        let stored = self.to_stored_grain(view, *address, row)?;
        self.store.inner().touch(sequence);
        Ok(Some(stored))
    }

    pub(crate) fn visible_row(
        &self,
        view: &View,
        address: &ContentAddress,
    ) -> Result<Option<GrainRow>> {
        let Some(row) = view.row(address)? else { return Ok(None) };
        let seen = self.visibility(view).is_blob_visible(row.sequence, &row.blob)?;
        Ok(seen.then_some(row))
    }

    /// Adds access counts and envelope to a row.
    pub(crate) fn to_stored_grain(
        &self,
        view: &View,
        address: ContentAddress,
        row: GrainRow,
    ) -> Result<StoredGrain> {
        let GrainRow { sequence, blob, state } = row;
        let access = self.store.inner().access_of(view, sequence)?;
        let envelope = view.envelope(sequence, &blob)?;
        Ok(StoredGrain { address, blob, state, access, envelope })
    }

    /// The identity that decides visibility.
    pub(crate) fn viewer(&self) -> &Arc<Viewer> {
        &self.viewer
    }

    /// Returns the visibility check of this session on a view.
    pub(crate) fn visibility<'r>(&'r self, view: &'r View) -> Visibility<'r> {
        let active_rules = self.store.inner().active_rules();
        Visibility::new(&self.viewer, view, self.now())
            .with_rules(active_rules, &self.options.purposes)
    }

    /// Returns the error for a grain that this session is not shown.
    pub(crate) fn not_visible(&self, view: &View, address: &ContentAddress) -> Error {
        match catch_storage_panic(|| self.visibility_of(view, address)) {
            Ok(Some(VisibilityOutcome::Ruled(refusal))) => self.refused_read(address, refusal),
            Ok(reached) => reached.unwrap_or(VisibilityOutcome::Outside).refusal(address),
            Err(error) => error,
        }
    }

    /// Returns the visibility of the grain with an address, `None` if there is none.
    pub(crate) fn visibility_of(
        &self,
        view: &View,
        address: &ContentAddress,
    ) -> Result<Option<VisibilityOutcome>> {
        match view.row(address)? {
            Some(row) => self.visibility(view).check_blob(row.sequence, &row.blob).map(Some),
            None if view.has_erased_grain(address)? => Ok(Some(VisibilityOutcome::Erased)),
            None => Ok(None),
        }
    }

    /// Checks an offer for a put like [`Session::check_offer`]. A refusal for its signature, or for being
    /// outside the session, is to be audited.
    fn check_put(&self, offer: Offer) -> std::result::Result<PreparedGrain, Rejection> {
        let signed = offer.envelope().map(<[u8]>::to_vec);
        let checked = self.check_offer(offer);
        checked.map_err(|error| self.unsent(AuditOperation::Put, None, signed.as_deref(), error))
    }

    /// Validates, encodes and hashes an offer.
    fn check_offer(&self, offer: Offer) -> Result<PreparedGrain> {
        let (offer, vectors) = offer.split_vectors();
        check_count(&vectors)?;
        let prepared = match offer {
            // Its vectors were taken off by `apart`.
            Offer::Embedded(inner, _) => self.check_offer(*inner)?,
            Offer::Grain(grain) => {
                let encoding = grain.decoded_header().map(Header::encoding).unwrap_or_default();
                let blob = grain.encode(encoding)?;
                // A grain decoded from an envelope keeps the signed flag, which a blob without an envelope
                // must not have.
                Header::split(blob.bytes())?;
                PreparedGrain::new(blob, grain, false)?
            }
            Offer::Blob(bytes) => {
                let grain = Grain::decode(&bytes)?;
                PreparedGrain::new(Blob::from_bytes(bytes), grain, true)?
            }
            Offer::Signed(bytes) => self.verify_signed(bytes)?,
        };
        if is_disclosed_view(&prepared.grain) {
            let schema = ErrorKind::Format(grainstore_format::ErrorKind::Schema);
            let message = "a disclosed view of a grain is not stored as a grain of its own";
            return Err(Error::new(schema, message).with_hint("store the grain it is a view of"));
        }
        self.viewer.check_writes(&prepared.grain)?;
        self.check_names_user(&prepared.grain)?;
        self.view()?.vault().check_user_keys(prepared.grain.text("user_id"))?;
        Ok(PreparedGrain { vectors, ..prepared })
    }

    /// Refuses a grain without a user in the session of a user that a server has given to a client: all other users
    /// could read it, and an erasure of this one would not find it.
    fn check_names_user(&self, grain: &Grain) -> Result<()> {
        let SessionOptions { user_id, unprivileged, .. } = self.options();
        let names = grain.text("user_id").is_some_and(|user| !user.is_empty());
        match user_id {
            Some(_) if *unprivileged && !names => {
                let message =
                    "a grain without a user_id is everybody's, and this session is of a user";
                Err(Error::new(ErrorKind::Access, message)
                    .with_hint("give the grain the user_id of the session"))
            }
            _ => Ok(()),
        }
    }

    /// Verifies an envelope and takes out its grain.
    fn verify_signed(&self, bytes: Vec<u8>) -> Result<PreparedGrain> {
        let envelope = Envelope::parse(bytes)?;
        let blob = envelope.blob()?.to_vec();
        let verdict = self.store.verdict(&envelope);
        if let SignatureVerdict::Invalid(reason) = &verdict {
            let message = format!("the signature is invalid: {reason}");
            return Err(Error::new(ErrorKind::Signature, message));
        }
        let prepared = PreparedGrain::new(Blob::from_bytes(blob), envelope.grain()?, true)?;
        let (prefix, suffix) = envelope.wrapper_parts().unwrap_or_default();
        let (prefix, suffix) = (prefix.to_vec(), suffix.to_vec());
        let proofs = Proofs::from_verdict(verdict, || envelope.kid());
        let wrapping = SignatureWrapper { valid: proofs.signer.is_some(), prefix, suffix };
        Ok(PreparedGrain { wrapping: Some(Arc::new(wrapping)), proofs, ..prepared })
    }

    pub(crate) fn prepare_successor(
        &self,
        old: &ContentAddress,
        offer: Offer,
        justification: Option<&str>,
    ) -> Result<PreparedGrain> {
        let (offer, vectors) = offer.split_vectors();
        let offer = match (offer, justification) {
            (Offer::Grain(grain), Some(why)) if grain.get(JUSTIFICATION).is_none() => {
                let mut fields = grain.into_fields();
                fields.insert(JUSTIFICATION.to_owned(), Value::from(why));
                Offer::Grain(Grain::from_fields(fields)?)
            }
            (offer, _) => offer,
        };
        let prepared = self.check_offer(offer.with_vectors(vectors))?;
        let own = sensitivity_of(prepared.blob.bytes())?;
        // What cannot be read is not superseded either.
        let replaced = catch_storage_panic(|| self.replaced(old)).ok().flatten();
        let level = replaced.and_then(|old| old.given).map_or(own, |given| given.max(own));
        let prepared = with_sensitivity(with_parent(prepared, old)?, level)?;
        match (prepared.grain.text(JUSTIFICATION), justification) {
            (Some(inside), Some(given)) if inside != given => {
                let schema = ErrorKind::Format(grainstore_format::ErrorKind::Schema);
                Err(Error::new(schema, format!("{JUSTIFICATION} of the grain says otherwise")))
            }
            _ => {
                let resolver = self.store.inner().resolver();
                let Proofs { cosigners, failure: flaw, .. } =
                    verify_supersession_auth(old, &prepared.grain, resolver)?;
                let Proofs { signer, failure: own, .. } = prepared.proofs;
                let proofs = Proofs { signer, cosigners, failure: own.or(flaw) };
                Ok(PreparedGrain { proofs, ..prepared })
            }
        }
    }

    pub(crate) fn send<T: Send + 'static, P>(
        &self,
        prepared: std::result::Result<P, Rejection>,
        write: impl FnOnce(P, crate::base::pending::PendingReply<T>) -> WriteRequest,
    ) -> Pending<T> {
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(unsent) => return self.refuse(unsent),
        };
        let (reply, pending) = Pending::new();
        match self.store.inner().send(Request::Write(write(prepared, reply))) {
            Ok(()) => pending,
            Err(error) => Pending::failed(error),
        }
    }
}

/// Returns the users that a query is restricted to.
fn users_of(query: &Query) -> Vec<&str> {
    let among = query.text_in("user_id").unwrap_or_default().iter().map(String::as_str);
    query.user_eq().into_iter().chain(among).collect()
}

const JUSTIFICATION: &str = "supersession_justification";

/// Parses a hex prefix into bytes, and the last half-byte if the number of digits is odd.
fn hex_prefix(prefix: &str) -> Result<(Vec<u8>, Option<u8>)> {
    let refused = |kind, message: &str| {
        Error::new(ErrorKind::Format(kind), message)
            .with_hint("write 8 to 64 lowercase hex digits, without sha256: before them")
    };
    if !(8..=64).contains(&prefix.len()) {
        let kind = grainstore_format::ErrorKind::HashLength;
        return Err(refused(kind, "an address has 64 hex digits, a prefix at least 8"));
    }
    let digits = prefix.bytes().map(|byte| match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'a'..=b'f' => Ok(byte - b'a' + 10),
        _ => Err(refused(
            grainstore_format::ErrorKind::HashFormat,
            "an address is lowercase hex (0-9, a-f)",
        )),
    });
    let digits = digits.collect::<Result<Vec<u8>>>()?;
    let bytes = digits.chunks_exact(2).map(|pair| match pair {
        [high, low] => high << 4 | low,
        _ => 0,
    });
    let half = if digits.len() % 2 == 1 { digits.last().copied() } else { None };
    Ok((bytes.collect(), half))
}

/// Normalises the identity to NFC, as the text of grains is (OMS 4.4), so that names match.
fn normalise_options(options: SessionOptions) -> SessionOptions {
    let nfc = |text: Option<String>| {
        text.map(|text| match normalise_text(&text) {
            Ok(normal) => normal.into_owned(),
            // No grain can contain such text, so it matches none.
            Err(_) => text,
        })
    };
    SessionOptions {
        namespace: nfc(options.namespace),
        user_id: nfc(options.user_id),
        actor: nfc(options.actor),
        agent_id: nfc(options.agent_id),
        ..options
    }
}
