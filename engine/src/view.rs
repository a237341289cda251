//! One consistent state of the store: a snapshot of the truth, one of the derived index, and the
//! tail that continues the index up to the truth. The writer publishes a new view with each
//! commit; a read takes one and keeps to it.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use grainstore_cal::Cancel;
use grainstore_format::{
    ContentAddress, DecodeOptions, Envelope, Flags, Grain, GrainRef, GrainState, Header, OpenBlob,
};
use grainstore_index::text::Texts;
use grainstore_index::vectors;
use grainstore_index::{self as index, Facts, Sequence, Tables, Tail};

use crate::error::{Error, Result};
use crate::indexed::Indexed;
use crate::keys::{AddressKey, Wrapping};
use crate::texts::Library;
use crate::truth::Truth;
use crate::vectors::Vectors;

/// A state of the store, frozen.
pub(crate) struct View {
    truth: Arc<Truth>,
    indexed: Indexed,
    /// The full text as the first search of this view found it.
    texts: OnceLock<Texts>,
    /// The vectors as the first search of this view found them.
    vectors: OnceLock<vectors::View>,
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

impl View {
    /// The truth with what is indexed of it: all of it.
    pub(crate) fn new(truth: Arc<Truth>, indexed: Indexed) -> Self {
        Self { truth, indexed, texts: OnceLock::new(), vectors: OnceLock::new() }
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
        index::Reader::new(&self.indexed.tables, &self.indexed.tail)
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
        Ok(self.index().sequence_of(AddressKey::plain(address).as_bytes())?)
    }

    /// The address of the grain at a place of the log, as the log keeps it: also of one that was erased.
    pub(crate) fn address_at(&self, sequence: Sequence) -> Result<[u8; 32]> {
        match self.stub_at(sequence)? {
            Some(address) => Ok(*address.as_bytes()),
            None => self.with_blob(sequence, |blob| Ok(*ContentAddress::of(blob).as_bytes())),
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
            let next = bytes.get(prefix.len()).map(|byte| byte >> 4);
            if half.is_none() || half == next {
                found.push(ContentAddress::from_bytes(bytes));
            }
        }
        Ok(found)
    }
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
    address: &ContentAddress,
    blob: &[u8],
) -> Result<()> {
    with_fields(blob, |grain| {
        let key = *AddressKey::plain(address).as_bytes();
        Ok(tail.push(tables, sequence, key, &Facts::of(grain))?)
    })
}

/// Whether a consent takes one back (OMS 8.10).
pub(crate) fn is_withdrawal(consent: &GrainRef<'_>) -> bool {
    consent.get("is_withdrawal").and_then(|flag| flag.as_bool()) == Some(true)
}
