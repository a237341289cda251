//! A session: reading and writing as somebody, within a namespace.
//!
//! Everything a caller sends is validated, encoded and hashed here, on the caller's thread, before
//! the writer sees it. Everything a session reads is checked against its namespace.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use grainstore_cal::Query;
use grainstore_format::{
    Blob, ContentAddress, Envelope, EpochMs, Grain, GrainState, Header, Value, Verdict,
    is_disclosed_view, normalise_text,
};

use crate::base::error::{Error, ErrorKind, Result, guarded};
use crate::base::pending::Pending;
use crate::disk::keys::Wrapping;
use crate::handle::options::SessionOptions;
use crate::handle::store::Store;
use crate::read::calls::Errand;
use crate::read::templates::OfSession;
use crate::rules::policy::{Explanation, Proofs, explain_in, of_successor};
use crate::search::embed::check_count;
use crate::state::audit::Operation;
use crate::state::reach::{Reach, Reached, Viewer};
use crate::state::view::{Row, View, stored_grain, with_fields};
use crate::write::access::Access;
use crate::write::noting::Unsent;
use crate::write::offer::Offer;
use crate::write::plan::{Prepared, Put, SameFact, derive_from};
use crate::write::writer::{Request, Write};

/// Grains in one batch.
pub const MAX_BATCH: usize = 100_000;
/// Bytes of blobs in one batch, inflated where their payload is compressed, with what stands around
/// signed ones.
pub const MAX_BATCH_BYTES: usize = 32 << 20;

/// A handle that reads and writes as somebody. Cheap to clone.
#[derive(Clone)]
pub struct Session {
    store: Store,
    options: Arc<SessionOptions>,
    /// The same identity, as far as it decides what is seen.
    viewer: Arc<Viewer>,
    /// The same identity, as CAL asks for it.
    cal_scope: Arc<grainstore_cal::Scope>,
    /// The call in CAL that it works for, which its entries in the audit log tell of.
    errand: Option<Arc<Errand>>,
    /// Statements of CAL that wrote, or tried to.
    evolved: Arc<AtomicU64>,
    /// Templates that were defined here.
    templates: OfSession,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({:?}, {:?})", self.store, self.options)
    }
}

/// A grain as the store holds it.
#[derive(Debug, Clone)]
pub struct Stored {
    /// Its identity.
    pub address: ContentAddress,
    /// Its very bytes, checked against the address.
    pub blob: Vec<u8>,
    /// Its index-layer state.
    pub state: GrainState,
    /// How often it was read before this time.
    pub access: Access,
    /// The envelope it came in, where it came signed; [`Session::signature`] says what it is worth.
    pub envelope: Option<Envelope>,
}

impl Stored {
    /// The grain in the blob.
    ///
    /// # Errors
    /// As [`Grain::decode`]; a blob the store accepted does decode.
    pub fn grain(&self) -> Result<Grain> {
        stored_grain(&self.blob)
    }

    /// What its invalidation policy demands in the state it is in.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`.
    pub fn policy(&self) -> Result<Explanation> {
        with_fields(&self.blob, |grain| Ok(explain_in(grain, Some(&self.state))))
    }
}

impl Session {
    pub(crate) fn new(store: Store, options: SessionOptions) -> Self {
        let options = normalised(options);
        let cal_scope = grainstore_cal::Scope {
            namespace: options.namespace.clone(),
            user_id: options.user_id.clone(),
            actor: options.actor.clone(),
            agent_id: options.agent_id.clone(),
        };
        let viewer = Arc::new(Viewer::of(&options));
        let (options, cal_scope) = (Arc::new(options), Arc::new(cal_scope));
        let (evolved, templates) = (Arc::default(), OfSession::default());
        Self { store, options, viewer, cal_scope, errand: None, evolved, templates }
    }

    /// A session as somebody else, for a part of what this one does: what it writes in CAL counts for this one
    /// ([`Firewall::max_evolving`](crate::Firewall::max_evolving)), and templates it defines are there for the
    /// next one of the same namespace and user. Who it is for is the host's to say.
    #[must_use]
    pub fn part(&self, options: SessionOptions) -> Self {
        Self {
            evolved: Arc::clone(&self.evolved),
            templates: self.templates.clone(),
            ..Self::new(self.store.clone(), options)
        }
    }

    /// The same session, on a call in CAL.
    pub(crate) fn on(&self, errand: &Arc<Errand>) -> Self {
        Self { errand: Some(Arc::clone(errand)), ..self.clone() }
    }

    /// The call in CAL it works for.
    pub(crate) fn errand(&self) -> Option<&Arc<Errand>> {
        self.errand.as_ref()
    }

    /// How many statements of CAL wrote, or tried to.
    pub(crate) fn evolved(&self) -> &AtomicU64 {
        &self.evolved
    }

    /// The templates that were defined in it.
    pub(crate) fn own_templates(&self) -> &OfSession {
        &self.templates
    }

    /// Who this session is.
    #[must_use]
    pub fn options(&self) -> &SessionOptions {
        &self.options
    }

    /// The same, shared.
    pub(crate) fn shared_options(&self) -> &Arc<SessionOptions> {
        &self.options
    }

    /// The store it works on.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What the store takes for now.
    #[must_use]
    pub fn now(&self) -> EpochMs {
        self.store.inner().clock().now()
    }

    /// Stores a grain and waits until it is durable. Storing the same bytes again is a no-op that
    /// says so (OMS 28.4).
    ///
    /// # Errors
    /// Every code of OMS section 19 for a bad grain or blob; `ERR_ACCESS` outside the session's
    /// namespace and for another user's; `ERR_WITHDRAWN` for one that rests on a consent that was
    /// withdrawn or does not hold now; `ERR_SUPERSEDE_REQUIRED` for a grain that would replace another in disguise;
    /// `ERR_IO`, after which the write is in doubt until the store is opened again.
    pub fn put(&self, offer: impl Into<Offer>) -> Result<Put> {
        self.submit(offer, SameFact::Add).wait()
    }

    /// As [`Session::put`], choosing what happens when a current grain says the same.
    ///
    /// # Errors
    /// As [`Session::put`] and [`Session::supersede`].
    pub fn put_fact(&self, offer: impl Into<Offer>, same_fact: SameFact) -> Result<Put> {
        self.submit(offer, same_fact).wait()
    }

    /// Hands a grain to the writer without waiting for the disk.
    pub fn submit(&self, offer: impl Into<Offer>, same_fact: SameFact) -> Pending<Put> {
        let author = self.author();
        self.send(self.validated(offer.into()).map(Box::new), |grain, reply| Write::Put {
            grain,
            same_fact,
            author,
            reply,
        })
    }

    /// As [`Session::put`], with a reason for the audit log.
    pub(crate) fn put_with_reason(&self, grain: Grain, reason: &str) -> Result<Put> {
        let author = self.author_because(Some(reason))?;
        let prepared = self.validated(Offer::Grain(grain)).map(Box::new);
        let same_fact = SameFact::Add;
        self.send(prepared, |grain, reply| Write::Put { grain, same_fact, author, reply }).wait()
    }

    /// Stores all of these grains, or none of them.
    ///
    /// # Errors
    /// As [`Session::put`], for the first grain that is refused; `ERR_LIMIT` beyond
    /// [`MAX_BATCH`] grains or [`MAX_BATCH_BYTES`].
    pub fn put_batch<O: Into<Offer>>(
        &self,
        offers: impl IntoIterator<Item = O>,
    ) -> Result<Vec<Put>> {
        self.submit_batch(offers).wait()
    }

    /// Hands a batch to the writer without waiting for the disk.
    pub fn submit_batch<O: Into<Offer>>(
        &self,
        offers: impl IntoIterator<Item = O>,
    ) -> Pending<Vec<Put>> {
        let author = self.author();
        let mut grains = Vec::new();
        let mut bytes = 0_usize;
        for (at, offer) in offers.into_iter().enumerate() {
            if at == MAX_BATCH || bytes > MAX_BATCH_BYTES {
                let message =
                    format!("a batch holds {MAX_BATCH} grains and {MAX_BATCH_BYTES} bytes at most");
                return Pending::refused(Error::new(ErrorKind::Limit, message));
            }
            match self.validated(offer.into()) {
                Ok(prepared) => {
                    bytes = bytes.saturating_add(prepared.open_bytes.max(prepared.bytes()));
                    grains.push(prepared);
                }
                Err(unsent) => return self.refuse(unsent.in_batch(at)),
            }
        }
        self.send(Ok(grains), |grains, reply| Write::PutBatch { grains, author, reply })
    }

    /// Replaces `old` by a new grain, atomically (OMS 28.4, section 23).
    ///
    /// Building from a [`Grain`], `old` is added to its `derived_from` and the justification to
    /// its `supersession_justification`; a ready blob must carry both itself.
    ///
    /// # Errors
    /// As [`Session::put`]; `ERR_NOT_FOUND`; `ERR_CONFLICT` for a grain superseded by another;
    /// `ERR_INVALIDATION_DENIED` where a policy refuses; `ERR_SCHEMA` for another type, a missing
    /// parent, or a justification that contradicts the grain's; `ERR_TOO_LARGE` for one beyond
    /// [`MAX_REASON_BYTES`](crate::MAX_REASON_BYTES).
    pub fn supersede(
        &self,
        old: &ContentAddress,
        new: impl Into<Offer>,
        justification: Option<&str>,
    ) -> Result<ContentAddress> {
        self.submit_supersede(old, new, justification).wait()
    }

    /// Hands a supersession to the writer without waiting for the disk.
    pub fn submit_supersede(
        &self,
        old: &ContentAddress,
        new: impl Into<Offer>,
        justification: Option<&str>,
    ) -> Pending<ContentAddress> {
        let author = match self.author_because(justification) {
            Ok(author) => author,
            Err(error) => return Pending::refused(error),
        };
        let new = new.into();
        let signed = new.signed().map(<[u8]>::to_vec);
        let prepared = self.prepare_successor(old, new, justification).map(Box::new);
        let unsent = |error| self.unsent(Operation::Supersede, Some(old), signed.as_deref(), error);
        let (prepared, old) = (prepared.map_err(unsent), *old);
        self.send(prepared, |new, reply| Write::Supersede { old, new, author, reply })
    }

    /// The grain with this address, whatever its state (OMS 28.4). Counts as an access.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND` where there is none this session can see; `ERR_ERASED` for one that was erased;
    /// `ERR_WITHDRAWN` where the consent it rests on was withdrawn or does not hold now; `ERR_INTEGRITY`;
    /// `ERR_IO`.
    pub fn get(&self, address: &ContentAddress) -> Result<Stored> {
        let view = self.view()?;
        let given = guarded(|| self.give(&view, address))?;
        let given = given.ok_or_else(|| self.unseen(&view, address))?;
        self.note_read([*address])?;
        Ok(given)
    }

    /// As [`Session::get`], and no access is counted: for what explains or checks a grain, which is no
    /// retrieval (OMS 22.10).
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn inspect(&self, address: &ContentAddress) -> Result<Stored> {
        let view = self.view()?;
        let seen = guarded(|| self.lookup(&view, address))?;
        let seen = seen.ok_or_else(|| self.unseen(&view, address))?;
        self.note_read([*address])?;
        Ok(seen)
    }

    /// What the signature of a stored grain is worth now; nothing for one that came unsigned.
    /// Supersession and the like leave it as it is (OMS 5.6).
    #[must_use]
    pub fn signature(&self, stored: &Stored) -> Option<Verdict> {
        let envelope = stored.envelope.as_ref()?;
        Some(envelope.verify(self.store.inner().resolver()))
    }

    /// The grains with these addresses; nothing where [`Session::get`] would not answer. Each
    /// counts as an access.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub fn get_batch(&self, addresses: &[ContentAddress]) -> Result<Vec<Option<Stored>>> {
        let view = self.view()?;
        let given = guarded(|| {
            addresses.iter().map(|address| self.give(&view, address)).collect::<Result<Vec<_>>>()
        })?;
        self.note_read(given.iter().flatten().map(|stored| stored.address))?;
        Ok(given)
    }

    /// Whether [`Session::get`] would answer.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub fn exists(&self, address: &ContentAddress) -> Result<bool> {
        let view = self.view()?;
        Ok(guarded(|| self.lookup(&view, address))?.is_some())
    }

    /// Up to `limit` addresses visible here that start with these lowercase hex digits.
    ///
    /// # Errors
    /// `ERR_HASH_FORMAT`, `ERR_HASH_LENGTH` (8 to 64 digits), `ERR_INTEGRITY`, `ERR_IO`.
    pub fn resolve(&self, prefix: &str, limit: usize) -> Result<Vec<ContentAddress>> {
        let view = self.view()?;
        guarded(|| self.resolve_in(&view, prefix, limit))
    }

    pub(crate) fn resolve_in(
        &self,
        view: &View,
        prefix: &str,
        limit: usize,
    ) -> Result<Vec<ContentAddress>> {
        let (bytes, half) = hex_prefix(prefix)?;
        let mut found = Vec::new();
        // Addresses outside the session do not count against the limit.
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

    pub(crate) fn cal_scope(&self) -> &grainstore_cal::Scope {
        &self.cal_scope
    }

    pub(crate) fn view(&self) -> Result<Arc<View>> {
        let view = self.store.inner().view()?;
        match self.options.user_id.as_deref() {
            Some(user_id) if view.vault().keyring().is_some() => {
                view.seen_by([user_id]).map(Arc::new)
            }
            _ => Ok(view),
        }
    }

    /// The view a query is answered from: it looks for the people the query names as well.
    ///
    /// # Errors
    /// `ERR_KEY` where there are grains of people under their own keys, and nobody is named.
    pub(crate) fn view_of(&self, view: Arc<View>, query: &Query) -> Result<Arc<View>> {
        let names_nobody = people_of(query).is_empty();
        let looks_up = query.address().is_some() || query.addresses().is_some();
        if view.vault().keyring().is_some() && names_nobody && !looks_up {
            view.check_named()?;
        }
        self.view_of_named(view, query)
    }

    /// The same view, looking for the people the query names as well, if it names any.
    ///
    /// # Errors
    /// `ERR_KEY`, `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn view_of_named(&self, view: Arc<View>, query: &Query) -> Result<Arc<View>> {
        let named = people_of(query);
        if view.vault().keyring().is_none() || named.is_empty() {
            return Ok(view);
        }
        view.seen_by(named).map(Arc::new)
    }

    /// The grain with this address, if this session can see it.
    pub(crate) fn lookup(&self, view: &View, address: &ContentAddress) -> Result<Option<Stored>> {
        let row = self.visible(view, address)?;
        row.map(|row| self.stored(view, *address, row)).transpose()
    }

    /// As [`Session::lookup`], for a user: the access is counted.
    fn give(&self, view: &View, address: &ContentAddress) -> Result<Option<Stored>> {
        let Some(row) = self.visible(view, address)? else { return Ok(None) };
        let sequence = row.sequence;
        let stored = self.stored(view, *address, row)?;
        self.store.inner().touch(sequence);
        Ok(Some(stored))
    }

    pub(crate) fn visible(&self, view: &View, address: &ContentAddress) -> Result<Option<Row>> {
        let Some(row) = view.row(address)? else { return Ok(None) };
        let seen = self.reach(view).sees_blob(row.sequence, &row.blob)?;
        Ok(seen.then_some(row))
    }

    /// A row as it is given out.
    pub(crate) fn stored(&self, view: &View, address: ContentAddress, row: Row) -> Result<Stored> {
        let Row { sequence, blob, state } = row;
        let access = self.store.inner().access_of(view, sequence)?;
        let envelope = view.envelope(sequence, &blob)?;
        Ok(Stored { address, blob, state, access, envelope })
    }

    /// Who looks in this session.
    pub(crate) fn viewer(&self) -> &Arc<Viewer> {
        &self.viewer
    }

    /// What this session sees of a view.
    pub(crate) fn reach<'r>(&'r self, view: &'r View) -> Reach<'r> {
        let regime = self.store.inner().regime();
        Reach::new(&self.viewer, view, self.now()).under(regime, &self.options.purposes)
    }

    /// Why this session is not shown the grain with an address.
    pub(crate) fn unseen(&self, view: &View, address: &ContentAddress) -> Error {
        match guarded(|| self.reached(view, address)) {
            Ok(Some(Reached::Ruled(refusal))) => self.refused_read(address, refusal),
            Ok(reached) => reached.unwrap_or(Reached::Outside).refusal(address),
            Err(error) => error,
        }
    }

    /// What becomes of the grain with an address; nothing where there is none.
    pub(crate) fn reached(&self, view: &View, address: &ContentAddress) -> Result<Option<Reached>> {
        match view.row(address)? {
            Some(row) => self.reach(view).of_blob(row.sequence, &row.blob).map(Some),
            None if view.has_erased_grain(address)? => Ok(Some(Reached::Erased)),
            None => Ok(None),
        }
    }

    /// As [`Session::checked`], for a put: what is refused for its signature, or for lying outside the
    /// session, is to be in the audit log.
    fn validated(&self, offer: Offer) -> std::result::Result<Prepared, Unsent> {
        let signed = offer.signed().map(<[u8]>::to_vec);
        let checked = self.checked(offer);
        checked.map_err(|error| self.unsent(Operation::Put, None, signed.as_deref(), error))
    }

    /// Validates, encodes and addresses what is offered.
    fn checked(&self, offer: Offer) -> Result<Prepared> {
        let (offer, vectors) = offer.apart();
        check_count(&vectors)?;
        let prepared = match offer {
            // Its vectors were taken off.
            Offer::Embedded(inner, _) => self.checked(*inner)?,
            Offer::Grain(grain) => {
                let encoding = grain.decoded_header().map(Header::encoding).unwrap_or_default();
                let blob = grain.encode(encoding)?;
                // A grain decoded from an envelope keeps the flag that asks for one.
                Header::split(blob.bytes())?;
                Prepared::new(blob, grain, false)?
            }
            Offer::Blob(bytes) => {
                let grain = Grain::decode(&bytes)?;
                Prepared::new(Blob::from_bytes(bytes), grain, true)?
            }
            Offer::Signed(bytes) => self.signed(bytes)?,
        };
        if is_disclosed_view(&prepared.grain) {
            let schema = ErrorKind::Format(grainstore_format::ErrorKind::Schema);
            let message = "a disclosed view of a grain is not stored as a grain of its own";
            return Err(Error::new(schema, message).with_hint("store the grain it is a view of"));
        }
        self.viewer.check_writes(&prepared.grain)?;
        self.view()?.vault().check_keys_of(prepared.grain.text("user_id"))?;
        Ok(Prepared { vectors, ..prepared })
    }

    /// Verifies an envelope and takes the grain in it.
    fn signed(&self, bytes: Vec<u8>) -> Result<Prepared> {
        let envelope = Envelope::parse(bytes)?;
        let blob = envelope.blob()?.to_vec();
        let verdict = envelope.verify(self.store.inner().resolver());
        if let Verdict::Invalid(reason) = &verdict {
            let message = format!("the signature is invalid: {reason}");
            return Err(Error::new(ErrorKind::Signature, message));
        }
        let prepared = Prepared::new(Blob::from_bytes(blob), envelope.grain()?, true)?;
        let (prefix, suffix) = envelope.around_blob().unwrap_or_default();
        let (prefix, suffix) = (prefix.to_vec(), suffix.to_vec());
        let proofs = Proofs::of_verdict(verdict, || envelope.kid());
        let wrapping = Wrapping { valid: proofs.signer.is_some(), prefix, suffix };
        Ok(Prepared { wrapping: Some(Arc::new(wrapping)), proofs, ..prepared })
    }

    pub(crate) fn prepare_successor(
        &self,
        old: &ContentAddress,
        offer: Offer,
        justification: Option<&str>,
    ) -> Result<Prepared> {
        let (offer, vectors) = offer.apart();
        let offer = match (offer, justification) {
            (Offer::Grain(grain), Some(why)) if grain.get(JUSTIFICATION).is_none() => {
                let mut fields = grain.into_fields();
                fields.insert(JUSTIFICATION.to_owned(), Value::from(why));
                Offer::Grain(Grain::from_fields(fields)?)
            }
            (offer, _) => offer,
        };
        let prepared = derive_from(self.checked(offer.with_vectors(vectors))?, old)?;
        match (prepared.grain.text(JUSTIFICATION), justification) {
            (Some(inside), Some(given)) if inside != given => {
                let schema = ErrorKind::Format(grainstore_format::ErrorKind::Schema);
                Err(Error::new(schema, format!("{JUSTIFICATION} of the grain says otherwise")))
            }
            _ => {
                let resolver = self.store.inner().resolver();
                let Proofs { cosigners, flaw, .. } = of_successor(old, &prepared.grain, resolver)?;
                let Proofs { signer, flaw: own, .. } = prepared.proofs;
                let proofs = Proofs { signer, cosigners, flaw: own.or(flaw) };
                Ok(Prepared { proofs, ..prepared })
            }
        }
    }

    pub(crate) fn send<T: Send + 'static, P>(
        &self,
        prepared: std::result::Result<P, Unsent>,
        write: impl FnOnce(P, crate::base::pending::Reply<T>) -> Write,
    ) -> Pending<T> {
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(unsent) => return self.refuse(unsent),
        };
        let (reply, pending) = Pending::new();
        match self.store.inner().send(Request::Write(write(prepared, reply))) {
            Ok(()) => pending,
            Err(error) => Pending::refused(error),
        }
    }
}

/// The people whose grains alone a query can be about.
fn people_of(query: &Query) -> Vec<&str> {
    let among = query.text_in("user_id").unwrap_or_default().iter().map(String::as_str);
    query.user_eq().into_iter().chain(among).collect()
}

const JUSTIFICATION: &str = "supersession_justification";

/// The bytes of a hex prefix, and the half-byte an odd digit leaves over.
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

/// The same identity in the form grains have: text is NFC (OMS 4.4), so names must be to match.
fn normalised(options: SessionOptions) -> SessionOptions {
    let nfc = |text: Option<String>| {
        text.map(|text| match normalise_text(&text) {
            Ok(normal) => normal.into_owned(),
            // No grain can hold such text, so nothing is in reach of it.
            Err(_) => text,
        })
    };
    SessionOptions {
        namespace: nfc(options.namespace),
        user_id: nfc(options.user_id),
        actor: nfc(options.actor),
        agent_id: nfc(options.agent_id),
        purposes: options.purposes,
    }
}
