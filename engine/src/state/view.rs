//! One consistent state of the store: a snapshot of the truth, one of the derived index, and the
//! tail that continues the index up to the truth. The writer publishes a new view with each
//! commit; a read takes one and keeps to it.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use grainstore_cal::Cancel;
use grainstore_format::{
    ContentAddress, DecodeOptions, Envelope, Flags, Grain, GrainRef, GrainState, Header, OpenBlob,
};
use grainstore_index::text::{Question, Texts};
use grainstore_index::vectors;
use grainstore_index::{self as index, Blind, Eyes, Facts, Sequence, Tables, Tail};

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::keys::Wrapping;
use crate::disk::vault::Vault;
use crate::search::texts::Library;
use crate::search::vectors::Vectors;
use crate::state::audit::AuditEntry;
use crate::state::consent::{self, Consent, Standing, Versions};
use crate::state::indexed::Indexed;
use crate::state::truth::{Logged, Truth};

/// Encrypted grains that are read to find the rest of an address.
const MOST_READ: u64 = 65_536;

/// A state of the store, frozen.
pub(crate) struct View {
    truth: Arc<Truth>,
    indexed: Indexed,
    /// The full text as the first search of this view found it.
    texts: Arc<OnceLock<Texts>>,
    /// The vectors as the first search of this view found them.
    vectors: Arc<OnceLock<vectors::View>>,
    /// Whose tokens are looked for, where the indexes hold tokens.
    blinds: Vec<Arc<dyn Blind>>,
    /// Whether somebody was named: else what only people's tokens tell is refused.
    is_named: bool,
    /// Consents that were asked for.
    consents: Arc<consent::Known>,
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

/// A grain of a view: its place in the log, its blob and its state.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) sequence: Sequence,
    pub(crate) blob: Vec<u8>,
    pub(crate) state: GrainState,
}

impl Standing for View {
    fn consent_of(&self, basis: &ContentAddress) -> Result<Option<Arc<Consent>>> {
        self.consents.or_else(basis, || consent::last_version(*basis, self))
    }

    fn has_erased_user(&self, user_id: Option<&str>, at: Sequence) -> Result<bool> {
        self.truth.has_erased_user(user_id, at)
    }

    fn state_of(&self, at: Sequence) -> Result<GrainState> {
        self.state_at(at)
    }
}

impl Versions for View {
    fn version(&self, address: &ContentAddress) -> Result<Option<Row>> {
        self.row(address)
    }

    fn was_erased(&self, address: &ContentAddress) -> Result<bool> {
        self.has_erased_grain(address)
    }
}

/// What to do where a question has a beginning or a slip in it that no token tells of.
const WHOLE_WORDS: &str =
    "search for whole words, without * and ~: tokens of an encrypted store tell no others";

impl View {
    /// The truth with what is indexed of it: all of it.
    pub(crate) fn new(truth: Arc<Truth>, indexed: Indexed) -> Self {
        let (texts, vectors, consents) = (Arc::default(), Arc::default(), Arc::default());
        let blinds = truth.vault().blind().into_iter().collect();
        Self { truth, indexed, texts, vectors, consents, blinds, is_named: false }
    }

    /// The same, looking for what is these people's and nobody's.
    ///
    /// # Errors
    /// As [`Vault::blinds`].
    pub(crate) fn seen_by<'u>(&self, user_ids: impl IntoIterator<Item = &'u str>) -> Result<Self> {
        let mut blinds = self.blinds.clone();
        blinds.extend(self.vault().blinds(user_ids)?);
        Ok(Self {
            truth: Arc::clone(&self.truth),
            indexed: self.indexed.clone(),
            texts: Arc::clone(&self.texts),
            vectors: Arc::clone(&self.vectors),
            consents: Arc::clone(&self.consents),
            blinds,
            is_named: true,
        })
    }

    /// A reader for what is this person's, or nobody's alone, whoever looks: for work of the store's own.
    ///
    /// # Errors
    /// As [`Vault::blinds`].
    pub(crate) fn with_index_of<T>(
        &self,
        user_id: Option<&str>,
        read: impl FnOnce(&index::Reader<'_>) -> Result<T>,
    ) -> Result<T> {
        let reader = index::Reader::new(&self.indexed.tables, &self.indexed.tail);
        if self.vault().keyring().is_none() {
            return read(&reader);
        }
        let blinds = match user_id.filter(|user_id| !user_id.is_empty()) {
            Some(user_id) => self.vault().blinds([user_id])?,
            None => self.vault().blind().into_iter().collect(),
        };
        read(&reader.with_eyes(Eyes::Of(&blinds)))
    }

    /// A question of the full text in the tokens of everyone who is looked for; itself where it holds
    /// words.
    ///
    /// # Errors
    /// `ERR_KEY` where nobody was named; `ERR_LIMIT` for what tokens do not tell.
    pub(crate) fn in_tokens<'q>(&self, question: &'q Question) -> Result<Cow<'q, [Question]>> {
        if self.vault().keyring().is_none() {
            return Ok(Cow::Borrowed(std::slice::from_ref(question)));
        }
        self.check_named()?;
        let blinded = self.blinds.iter().map(|blind| {
            let blinded = question.blinded(blind.as_ref());
            blinded.map_err(|error| Error::from(error).with_hint(WHOLE_WORDS))
        });
        blinded.collect::<Result<_>>().map(Cow::Owned)
    }

    /// Refuses to look among grains of people where nobody was named.
    ///
    /// # Errors
    /// `ERR_KEY`.
    pub(crate) fn check_named(&self) -> Result<()> {
        if self.is_named || !self.vault().has_people() {
            return Ok(());
        }
        let key = ErrorKind::Format(grainstore_format::ErrorKind::Key);
        let message = "this store is encrypted person by person, and the question names nobody";
        Err(Error::new(key, message)
            .with_hint("open a session with a user_id (--user), or ask for that user_id"))
    }

    /// The full text with everything this view has: for every search the same. Nothing where the host
    /// cancelled before it was read.
    ///
    /// # Errors
    /// As [`Library::of`].
    pub(crate) fn texts(&self, library: &Library, cancel: &Cancel) -> Result<Option<&Texts>> {
        if let Some(texts) = self.texts.get() {
            return Ok(Some(texts));
        }
        let began = Instant::now();
        let read = library.of(self, cancel);
        // Whoever writes, or lost the files, made this work; who asks first only waits for it.
        cancel.excuse(began.elapsed());
        Ok(read?.map(|texts| self.texts.get_or_init(|| texts)))
    }

    /// The vectors this view has: for every search the same.
    ///
    /// # Errors
    /// As [`Vectors::of`].
    pub(crate) fn vectors(&self, all: &Vectors, cancel: &Cancel) -> Result<&vectors::View> {
        if let Some(vectors) = self.vectors.get() {
            return Ok(vectors);
        }
        let began = Instant::now();
        let read = all.of(self);
        cancel.excuse(began.elapsed());
        let read = read?;
        Ok(self.vectors.get_or_init(|| read))
    }

    /// The same truth, indexed in another way.
    pub(crate) fn with_index(&self, indexed: Indexed) -> Self {
        Self::new(Arc::clone(&self.truth), indexed)
    }

    pub(crate) fn truth(&self) -> &Truth {
        &self.truth
    }

    pub(crate) fn index(&self) -> index::Reader<'_> {
        let eyes = match self.vault().keyring() {
            None => Eyes::Plain,
            Some(_) if self.is_named || !self.vault().has_people() => Eyes::Of(&self.blinds),
            Some(_) => Eyes::Some(&self.blinds),
        };
        index::Reader::new(&self.indexed.tables, &self.indexed.tail).with_eyes(eyes)
    }

    pub(crate) fn indexed(&self) -> &Indexed {
        &self.indexed
    }

    pub(crate) fn tail(&self) -> &Tail {
        &self.indexed.tail
    }

    /// Where a grain lies in the log; nothing for one that was erased.
    pub(crate) fn sequence_of(&self, address: &ContentAddress) -> Result<Option<Sequence>> {
        match self.place_of(address)? {
            Some(sequence) if self.is_erased(sequence)? => Ok(None),
            place => Ok(place),
        }
    }

    /// Whether a grain with this address was here and was erased.
    pub(crate) fn has_erased_grain(&self, address: &ContentAddress) -> Result<bool> {
        self.place_of(address)?.map_or(Ok(false), |sequence| self.is_erased(sequence))
    }

    /// The place of the log that a grain has, or had before it was erased.
    pub(crate) fn place_of(&self, address: &ContentAddress) -> Result<Option<Sequence>> {
        Ok(self.index().sequence_of(self.vault().address(address).as_bytes())?)
    }

    /// The place of a grain that an audit entry names as it lies on disk.
    pub(crate) fn place_of_subject(&self, subject: &ContentAddress) -> Result<Option<Sequence>> {
        Ok(self.index().sequence_of(subject.as_bytes())?)
    }

    /// The place of a grain that an entry of [`View::entry`] names: by its address, or by what stands for
    /// it where it was erased.
    pub(crate) fn place_told(&self, address: &ContentAddress) -> Result<Option<Sequence>> {
        match self.place_of(address)? {
            None if self.vault().keyring().is_some() => self.place_of_subject(address),
            place => Ok(place),
        }
    }

    /// An audit entry with the addresses of its grains, where it has what stands for them. That of a
    /// grain that is gone stays.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn entry(&self, bytes: &[u8]) -> Result<AuditEntry> {
        let mut entry = AuditEntry::decode(bytes)?;
        if self.vault().keyring().is_some() {
            for subject in entry.subjects.iter_mut().chain(&mut entry.refused_by) {
                let Some(at) = self.place_of_subject(subject)? else { continue };
                if !self.is_erased(at)? {
                    *subject = self.with_blob(at, |blob| Ok(ContentAddress::of(blob)))?;
                }
            }
        }
        Ok(entry)
    }

    /// The address of the grain at a place of the log, as the log keeps it: also of one that was erased.
    pub(crate) fn address_at(&self, sequence: Sequence) -> Result<[u8; 32]> {
        match self.stub_at(sequence)? {
            Some(address) => Ok(*address.as_bytes()),
            None => self.with_blob(sequence, |blob| {
                Ok(*self.vault().address(&ContentAddress::of(blob)).as_bytes())
            }),
        }
    }

    /// As [`View::address_at`], for a grain that may have gone with its key.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn address_or_lost(&self, sequence: Sequence) -> Result<[u8; 32]> {
        match self.address_at(sequence) {
            Err(error) if error.is_erased() => Ok(*self.vault().lost(sequence).as_bytes()),
            address => address,
        }
    }

    /// The grain with this address, its bytes checked against it.
    pub(crate) fn row(&self, address: &ContentAddress) -> Result<Option<Row>> {
        let Some(sequence) = self.sequence_of(address)? else {
            return Ok(None);
        };
        let blob = self.with_blob(sequence, |blob| {
            address.verify(blob)?;
            Ok(blob.to_vec())
        })?;
        Ok(Some(Row { sequence, blob, state: self.state_at(sequence)? }))
    }

    /// The envelope a blob of the log came in; nothing for one that came unsigned.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` where it is gone or no longer fits; `ERR_IO`.
    pub(crate) fn envelope(&self, sequence: Sequence, blob: &[u8]) -> Result<Option<Envelope>> {
        if !is_signed(blob)? {
            return Ok(None);
        }
        let damaged = || Error::truth_damaged("what stood around a signed grain is gone");
        let Wrapping { prefix, suffix, .. } = self.wrapping_at(sequence)?.ok_or_else(damaged)?;
        let envelope = Envelope::around(&prefix, blob, &suffix);
        envelope.map(Some).map_err(|error| Error::truth_damaged(error.to_string()))
    }

    /// Up to `limit` addresses that start with these bytes and, where the prefix has an odd number
    /// of digits, this high half-byte after them.
    pub(crate) fn addresses_with_prefix(
        &self,
        prefix: &[u8],
        half: Option<u8>,
        limit: usize,
    ) -> Result<Vec<ContentAddress>> {
        if self.vault().keyring().is_some() {
            return self.addresses_read(prefix, half, limit);
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
            if begins(&bytes, prefix, half) {
                found.push(ContentAddress::from_bytes(bytes));
            }
        }
        Ok(found)
    }

    /// As [`View::addresses_with_prefix`], where the index tells of no address: by reading the log.
    fn addresses_read(
        &self,
        prefix: &[u8],
        half: Option<u8>,
        limit: usize,
    ) -> Result<Vec<ContentAddress>> {
        if let Ok(whole) = <[u8; 32]>::try_from(prefix) {
            let address = ContentAddress::from_bytes(whole);
            return Ok(self.sequence_of(&address)?.map(|_| address).into_iter().collect());
        }
        if self.log_len()? > MOST_READ {
            let message = format!(
                "the start of an address is looked for among {MOST_READ} encrypted grains at most"
            );
            return Err(Error::new(ErrorKind::Limit, message)
                .with_hint("give all 64 digits: encrypted grains are found by whole addresses"));
        }
        let mut found = Vec::new();
        for row in self.log_from(0)? {
            let Ok(Logged::Blob(blob)) = row?.1 else { continue };
            let address = ContentAddress::of(&blob);
            if begins(address.as_bytes(), prefix, half) {
                found.push(address);
            }
        }
        found.sort_unstable();
        found.truncate(limit);
        Ok(found)
    }
}

/// Whether an address begins with these bytes and this half-byte.
fn begins(address: &[u8; 32], prefix: &[u8], half: Option<u8>) -> bool {
    let next = address.get(prefix.len()).map(|byte| byte >> 4);
    address.starts_with(prefix) && (half.is_none() || half == next)
}

/// Runs `read` over the fields of a blob the store accepted, whatever its payload is packed in.
///
/// # Errors
/// `ERR_INTEGRITY` where it can no longer be read.
pub(crate) fn with_fields<T>(
    blob: &[u8],
    read: impl FnOnce(&GrainRef<'_>) -> Result<T>,
) -> Result<T> {
    if let Ok(view) = GrainRef::new(blob) {
        return read(&view);
    }
    let open = OpenBlob::new(blob, &DecodeOptions::default());
    let damaged = |error| Error::integrity(format!("a stored blob cannot be read: {error}"));
    read(&open.map_err(damaged)?.view())
}

/// Whether a blob says that it belongs into an envelope.
///
/// # Errors
/// `ERR_TOO_SHORT`, `ERR_VERSION`, `ERR_UNKNOWN_TYPE` for what is no blob.
pub(crate) fn is_signed(blob: &[u8]) -> Result<bool> {
    Ok(Header::read(blob)?.0.flags.contains(Flags::SIGNED))
}

/// The grain of a blob the store accepted, bare or from within an envelope.
///
/// # Errors
/// As [`Grain::decode`].
pub(crate) fn stored_grain(blob: &[u8]) -> Result<Grain> {
    let options = DecodeOptions { enveloped: is_signed(blob)?, ..DecodeOptions::default() };
    Ok(Grain::decode_with(blob, &options)?)
}

/// Adds a grain of the log to a tail.
pub(crate) fn push(
    tail: &mut Tail,
    tables: &Tables,
    sequence: Sequence,
    (address, blob): (&ContentAddress, &[u8]),
    vault: &Vault,
) -> Result<()> {
    with_fields(blob, |grain| {
        let key = *vault.address(address).as_bytes();
        let blind = vault.blind_of(grain)?;
        let blind = blind.as_deref().map(|holder| holder as &dyn Blind);
        Ok(tail.push(tables, sequence, key, &Facts::blinded(grain, blind))?)
    })
}

/// Whether a consent takes one back (OMS 8.10).
pub(crate) fn is_withdrawal(consent: &GrainRef<'_>) -> bool {
    consent.get("is_withdrawal").and_then(|flag| flag.as_bool()) == Some(true)
}
