//! One consistent state of the store: a snapshot of the truth, one of the derived index, and the tail that
//! continues the index up to the truth. The writer publishes a new view with each commit; a read takes one
//! and keeps it.

use crate::base::sync::RwLock;
use crate::disk::blob::is_signed;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use grainstore_format::{ContentAddress, Envelope, GrainRef, GrainState, GrainType};
use grainstore_index::text::{FullTextQuery, InvertedIndex};
use grainstore_index::vectors;
use grainstore_index::{
    self as index, Blinder, IndexLookup, Scope, Sequence, Tail, TimeOrder, TimeRange, TokenScope,
};

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::layout::SignatureWrapper;
use crate::state::audit::AuditEntry;
use crate::state::consent::{self, Consent, ConsentLookup, ConsentVersions};
use crate::state::index_snapshot::IndexSnapshot;
use crate::state::truth::{LogRow, Truth};

/// Maximum number of encrypted grains that are read to complete an address prefix.
const MAX_SCANNED_GRAINS: u64 = 65_536;

/// An immutable state of the store.
pub(crate) struct View {
    truth: Arc<Truth>,
    indexed: IndexSnapshot,
    /// The full-text index, read by the first search of this view; the next ones take the place of one whose files
    /// could not be read, or were overwritten.
    pub(crate) texts: Arc<[OnceLock<InvertedIndex>; 3]>,
    /// The vectors, read by the first search of this view and after each new graph, with the number of graphs then.
    pub(crate) vectors: Arc<RwLock<Option<(u64, vectors::VectorView)>>>,
    /// The blinders whose tokens are looked up, if the indexes hold blind tokens.
    blinders: Vec<Arc<dyn Blinder>>,
    /// True if users were named; else a lookup that needs users' tokens is refused.
    names_user: bool,
    /// Cached consents.
    consents: Arc<consent::ConsentCache>,
    /// True if there may be consents; looked up once.
    may_have_consents: Arc<OnceLock<bool>>,
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "View(tail of {} grains)", self.indexed.tail.grains())
    }
}

impl Deref for View {
    type Target = Truth;

    fn deref(&self) -> &Truth {
        &self.truth
    }
}

/// A grain of a view: its sequence, its blob and its state.
#[derive(Debug, Clone)]
pub(crate) struct GrainRow {
    pub(crate) sequence: Sequence,
    pub(crate) blob: Vec<u8>,
    pub(crate) state: GrainState,
}

impl ConsentLookup for View {
    fn consent_of(&self, basis: &ContentAddress) -> Result<Option<Arc<Consent>>> {
        self.consents.get_or_load(basis, || consent::last_version(*basis, self))
    }

    fn has_erased_user(&self, grain: &GrainRef<'_>, at: Sequence) -> Result<bool> {
        self.truth.has_erased_user(grain, at)
    }

    fn state_of(&self, at: Sequence) -> Result<GrainState> {
        self.state_at(at)
    }
}

impl ConsentVersions for View {
    fn version(&self, address: &ContentAddress) -> Result<Option<GrainRow>> {
        self.row(address)
    }

    fn was_erased(&self, address: &ContentAddress) -> Result<bool> {
        self.has_erased_grain(address)
    }
}

/// Hint for prefix and fuzzy terms, which blind tokens cannot answer.
const WHOLE_WORDS_HINT: &str =
    "search for whole words, without * and ~: tokens of an encrypted store tell no others";

impl View {
    /// A view of a truth and an index that covers all of it.
    pub(crate) fn new(truth: Arc<Truth>, indexed: IndexSnapshot) -> Self {
        let (texts, vectors, consents) = (Arc::default(), Arc::default(), Arc::default());
        let blinds = truth.vault().store_blinder().into_iter().collect();
        let may_have_consents = Arc::default();
        Self {
            truth,
            indexed,
            texts,
            vectors,
            consents,
            may_have_consents,
            blinders: blinds,
            names_user: false,
        }
    }

    /// A view that looks up the tokens of these users and of grains without a user.
    ///
    /// # Errors
    /// The errors of `Vault::blinders_for_users`.
    pub(crate) fn for_users<'u>(
        &self,
        user_ids: impl IntoIterator<Item = &'u str>,
    ) -> Result<Self> {
        let mut blinds = self.blinders.clone();
        blinds.extend(self.vault().blinders_for_users(user_ids)?);
        Ok(Self {
            truth: Arc::clone(&self.truth),
            indexed: self.indexed.clone(),
            texts: Arc::clone(&self.texts),
            vectors: Arc::clone(&self.vectors),
            consents: Arc::clone(&self.consents),
            may_have_consents: Arc::clone(&self.may_have_consents),
            blinders: blinds,
            names_user: true,
        })
    }

    /// Runs `read` with an index reader for the tokens of this user, or for grains without a user, whatever
    /// the view's own users are: for internal work of the store.
    ///
    /// # Errors
    /// The errors of `Vault::blinders_for_users`.
    pub(crate) fn with_user_index<T>(
        &self,
        user_id: Option<&str>,
        read: impl FnOnce(&index::IndexReader<'_>) -> Result<T>,
    ) -> Result<T> {
        self.with_users_index(&[user_id], read)
    }

    /// Like [`View::with_user_index`], for the grains of several users; `None` for grains without one.
    ///
    /// # Errors
    /// The errors of `Vault::blinders_for_users`.
    pub(crate) fn with_users_index<T>(
        &self,
        user_ids: &[Option<&str>],
        read: impl FnOnce(&index::IndexReader<'_>) -> Result<T>,
    ) -> Result<T> {
        let reader = index::IndexReader::new(&self.indexed.tables, &self.indexed.tail);
        if self.vault().keyring().is_none() {
            return read(&reader);
        }
        let named = user_ids.iter().map(|user_id| user_id.filter(|user_id| !user_id.is_empty()));
        let named: BTreeSet<Option<&str>> = named.collect();
        let mut blinds = self.vault().blinders_for_users(named.iter().copied().flatten())?;
        if named.contains(&None) {
            blinds.extend(self.vault().store_blinder());
        }
        read(&reader.with_token_scope(TokenScope::Complete(&blinds)))
    }

    /// Returns a full-text query in the tokens of every user looked up; the query itself if the index holds
    /// plain words.
    ///
    /// # Errors
    /// `ERR_KEY` if no user was named; `ERR_LIMIT` for terms that tokens cannot answer.
    pub(crate) fn blinded_query<'q>(
        &self,
        question: &'q FullTextQuery,
    ) -> Result<Cow<'q, [FullTextQuery]>> {
        if self.vault().keyring().is_none() {
            return Ok(Cow::Borrowed(std::slice::from_ref(question)));
        }
        self.require_user()?;
        let blinded = self.blinders.iter().map(|blind| {
            let blinded = question.blinded(blind.as_ref());
            blinded.map_err(|error| Error::from(error).with_hint(WHOLE_WORDS_HINT))
        });
        blinded.collect::<Result<_>>().map(Cow::Owned)
    }

    /// Returns `true` if a grain may be hidden by a consent: there is one, or something was erased, which may have
    /// been one.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn may_have_consents(&self) -> Result<bool> {
        if let Some(known) = self.may_have_consents.get() {
            return Ok(*known);
        }
        let consents = IndexLookup::Type(GrainType::Consent);
        let scan = || {
            let (all, order) = (Scope::All, TimeOrder::Newest);
            self.index().scan(&all, &consents, TimeRange::default(), order)
        };
        let found = self.has_erased()? || scan()?.next().transpose()?.is_some();
        Ok(*self.may_have_consents.get_or_init(|| found))
    }

    /// Refuses to search grains of users if no user was named.
    ///
    /// # Errors
    /// `ERR_KEY`.
    pub(crate) fn require_user(&self) -> Result<()> {
        if self.names_user || !self.vault().has_user_keys() {
            return Ok(());
        }
        let key = ErrorKind::Format(grainstore_format::ErrorKind::Key);
        let message = "this store is encrypted person by person, and the question names nobody";
        Err(Error::new(key, message)
            .with_hint("open a session with a user_id (--user), or ask for that user_id"))
    }

    /// Combines this truth with another index.
    pub(crate) fn with_index(&self, indexed: IndexSnapshot) -> Self {
        Self::new(Arc::clone(&self.truth), indexed)
    }

    pub(crate) fn truth(&self) -> &Truth {
        &self.truth
    }

    pub(crate) fn index(&self) -> index::IndexReader<'_> {
        let eyes = match self.vault().keyring() {
            None => TokenScope::Plain,
            Some(_) if self.names_user || !self.vault().has_user_keys() => {
                TokenScope::Complete(&self.blinders)
            }
            Some(_) => TokenScope::Partial(&self.blinders),
        };
        index::IndexReader::new(&self.indexed.tables, &self.indexed.tail).with_token_scope(eyes)
    }

    pub(crate) fn indexed(&self) -> &IndexSnapshot {
        &self.indexed
    }

    pub(crate) fn tail(&self) -> &Tail {
        &self.indexed.tail
    }

    /// Returns the sequence of a grain; `None` for an erased one.
    pub(crate) fn sequence_of(&self, address: &ContentAddress) -> Result<Option<Sequence>> {
        match self.logged_sequence_of(address)? {
            Some(sequence) if self.is_erased(sequence)? => Ok(None),
            place => Ok(place),
        }
    }

    /// Returns `true` if a grain with this address was stored and erased.
    pub(crate) fn has_erased_grain(&self, address: &ContentAddress) -> Result<bool> {
        self.logged_sequence_of(address)?.map_or(Ok(false), |sequence| self.is_erased(sequence))
    }

    /// Returns the sequence of a grain, even of an erased one.
    pub(crate) fn logged_sequence_of(&self, address: &ContentAddress) -> Result<Option<Sequence>> {
        Ok(self.index().sequence_of(self.vault().address_key(address).as_bytes())?)
    }

    /// Returns the sequence of a grain by its stored form in an audit entry, which is a token in an encrypted
    /// store.
    pub(crate) fn sequence_of_subject(&self, subject: &ContentAddress) -> Result<Option<Sequence>> {
        Ok(self.index().sequence_of(subject.as_bytes())?)
    }

    /// Returns the sequence of a grain named by an entry of [`View::decode_audit_entry`]: by its address, or
    /// by its token if it was erased.
    pub(crate) fn sequence_in_audit(&self, address: &ContentAddress) -> Result<Option<Sequence>> {
        match self.logged_sequence_of(address)? {
            None if self.vault().keyring().is_some() => self.sequence_of_subject(address),
            place => Ok(place),
        }
    }

    /// Decodes an audit entry and replaces tokens by the addresses of their grains. The token of an erased
    /// grain stays.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn decode_audit_entry(&self, bytes: &[u8]) -> Result<AuditEntry> {
        let mut entry = AuditEntry::decode(bytes)?;
        if self.vault().keyring().is_some() {
            for subject in entry.subjects.iter_mut().chain(&mut entry.refused_by) {
                let Some(at) = self.sequence_of_subject(subject)? else { continue };
                if !self.is_erased(at)? {
                    *subject = self.with_blob(at, |blob| Ok(ContentAddress::of(blob)))?;
                }
            }
        }
        Ok(entry)
    }

    /// Returns the audit entry, from entry `since` on, by which one grain superseded another.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn supersession_entry(
        &self,
        since: u64,
        old: &ContentAddress,
        by: &ContentAddress,
    ) -> Result<Option<AuditEntry>> {
        for row in self.audit_rows()?.since(since)? {
            let entry = self.decode_audit_entry(&row?.1)?;
            if entry.is_supersession() && entry.subjects == [*old, *by] {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// Returns the index key of the grain at a sequence, also of an erased one.
    pub(crate) fn index_key_at(&self, sequence: Sequence) -> Result<[u8; 32]> {
        match self.stub_at(sequence)? {
            Some(address) => Ok(*address.as_bytes()),
            None => self.with_blob(sequence, |blob| {
                Ok(*self.vault().address_key(&ContentAddress::of(blob)).as_bytes())
            }),
        }
    }

    /// Like [`View::index_key_at`], for a grain that may be erased together with its key.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn index_key_or_lost(&self, sequence: Sequence) -> Result<[u8; 32]> {
        match self.index_key_at(sequence) {
            Err(error) if error.is_erased() => {
                Ok(*self.vault().lost_address_key(sequence).as_bytes())
            }
            address => address,
        }
    }

    /// Returns the grain with this address, its bytes verified against it.
    pub(crate) fn row(&self, address: &ContentAddress) -> Result<Option<GrainRow>> {
        let Some(sequence) = self.sequence_of(address)? else {
            return Ok(None);
        };
        let blob = self.with_blob(sequence, |blob| {
            address.verify(blob)?;
            Ok(blob.to_vec())
        })?;
        Ok(Some(GrainRow { sequence, blob, state: self.state_at(sequence)? }))
    }

    /// Returns the envelope of a stored blob; `None` for an unsigned one.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if it is missing or no longer fits; `ERR_IO`.
    pub(crate) fn envelope(&self, sequence: Sequence, blob: &[u8]) -> Result<Option<Envelope>> {
        if !is_signed(blob)? {
            return Ok(None);
        }
        let damaged = || Error::truth_damaged("what stood around a signed grain is gone");
        let SignatureWrapper { prefix, suffix, .. } =
            self.wrapping_at(sequence)?.ok_or_else(damaged)?;
        let envelope = Envelope::from_parts(&prefix, blob, &suffix);
        envelope.map(Some).map_err(|error| Error::truth_damaged(error.to_string()))
    }

    /// Returns up to `limit` addresses that start with `prefix` and, if the prefix has an odd number of hex
    /// digits, the high half-byte `half` after it.
    pub(crate) fn addresses_with_prefix(
        &self,
        prefix: &[u8],
        half: Option<u8>,
        limit: usize,
    ) -> Result<Vec<ContentAddress>> {
        if self.vault().keyring().is_some() {
            return self.scan_addresses(prefix, half, limit);
        }
        let mut from = [0; 32];
        for (slot, byte) in from.iter_mut().zip(prefix) {
            *slot = *byte;
        }
        let mut found = Vec::new();
        for row in self.index().addresses_from(from)? {
            let (bytes, _) = row?;
            if !bytes.starts_with(prefix) || found.len() >= limit {
                break;
            }
            if has_prefix(&bytes, prefix, half) {
                found.push(ContentAddress::from_bytes(bytes));
            }
        }
        Ok(found)
    }

    /// Like [`View::addresses_with_prefix`], by reading the log: an encrypted index has no addresses.
    fn scan_addresses(
        &self,
        prefix: &[u8],
        half: Option<u8>,
        limit: usize,
    ) -> Result<Vec<ContentAddress>> {
        if let Ok(whole) = <[u8; 32]>::try_from(prefix) {
            let address = ContentAddress::from_bytes(whole);
            return Ok(self.sequence_of(&address)?.map(|_| address).into_iter().collect());
        }
        if self.log_len()? > MAX_SCANNED_GRAINS {
            let message = format!(
                "the start of an address is looked for among {MAX_SCANNED_GRAINS} encrypted grains at most"
            );
            return Err(Error::new(ErrorKind::Limit, message)
                .with_hint("give all 64 digits: encrypted grains are found by whole addresses"));
        }
        let mut found = Vec::new();
        for row in self.log_from(0)? {
            let Ok(LogRow::Blob(blob)) = row?.1 else { continue };
            let address = ContentAddress::of(&blob);
            if has_prefix(address.as_bytes(), prefix, half) {
                found.push(address);
            }
        }
        found.sort_unstable();
        found.truncate(limit);
        Ok(found)
    }
}

/// Returns `true` if an address starts with `prefix` and the half-byte `half`.
fn has_prefix(address: &[u8; 32], prefix: &[u8], half: Option<u8>) -> bool {
    let next = address.get(prefix.len()).map(|byte| byte >> 4);
    address.starts_with(prefix) && (half.is_none() || half == next)
}

/// The view that readers take, replaced with each commit.
pub(crate) type SharedView = Arc<RwLock<Option<Arc<View>>>>;
