//! One consistent state of the store: a read snapshot of every table, and the tail that continues
//! its index. The writer publishes a new view with each commit; a read takes one and keeps to it.

use std::ops::Bound;

use grainstore_format::{ContentAddress, DecodeOptions, GrainRef, GrainState, OpenBlob, SHARED};
use grainstore_index::{self as index, Facts, Sequence, Tables, Tail};
use redb::{
    Database, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable,
    ReadableTableMetadata,
};

use crate::error::{Error, Result};
use crate::keys::{self, AddressKey, Envelope, STATE_LEN};

/// A state of the store, frozen.
pub(crate) struct View {
    log: ReadOnlyTable<u64, &'static [u8]>,
    address: ReadOnlyTable<&'static [u8; 32], u64>,
    state: ReadOnlyTable<u64, &'static [u8; STATE_LEN]>,
    roots: ReadOnlyTable<u64, &'static [u8]>,
    audit: ReadOnlyTable<u64, &'static [u8]>,
    reasons: ReadOnlyTable<u64, &'static [u8]>,
    tables: Tables,
    tail: Tail,
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "View(tail of {} grains)", self.tail.grains())
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
    /// The current state of the tables, with nothing in the tail.
    pub(crate) fn open(db: &Database) -> Result<Self> {
        let txn = db.begin_read()?;
        let tables = Tables::open(&txn)?;
        let tail = Tail::after(&tables)?;
        Self::of(&txn, tables, tail)
    }

    /// The current state of the tables, with this tail.
    pub(crate) fn with_tail(db: &Database, tail: Tail) -> Result<Self> {
        let txn = db.begin_read()?;
        let tables = Tables::open(&txn)?;
        Self::of(&txn, tables, tail)
    }

    fn of(txn: &ReadTransaction, tables: Tables, tail: Tail) -> Result<Self> {
        Ok(Self {
            log: txn.open_table(keys::LOG)?,
            address: txn.open_table(keys::ADDRESS)?,
            state: txn.open_table(keys::STATE)?,
            roots: txn.open_table(keys::ROOTS)?,
            audit: txn.open_table(keys::AUDIT)?,
            reasons: txn.open_table(keys::REASONS)?,
            tables,
            tail,
        })
    }

    pub(crate) fn index(&self) -> index::Reader<'_> {
        index::Reader::new(&self.tables, &self.tail)
    }

    pub(crate) fn tables(&self) -> &Tables {
        &self.tables
    }

    pub(crate) fn tail(&self) -> &Tail {
        &self.tail
    }

    /// The audit entries, oldest first, from a sequence on.
    pub(crate) fn audit(&self) -> &ReadOnlyTable<u64, &'static [u8]> {
        &self.audit
    }

    /// The reason that was given with an audit entry.
    pub(crate) fn reason(&self, entry: u64) -> Result<Option<String>> {
        let Some(row) = self.reasons.get(entry)? else { return Ok(None) };
        let text = std::str::from_utf8(Envelope::open(row.value())?);
        text.map(|text| Some(text.to_owned())).map_err(|_| Error::integrity("a reason is no text"))
    }

    /// The last sequence of the log; 0 for an empty one.
    pub(crate) fn last_sequence(&self) -> Result<Sequence> {
        let last = self.log.last()?;
        Ok(Sequence::new(last.map_or(0, |(sequence, _)| sequence.value())))
    }

    /// Grains in the log.
    pub(crate) fn log_len(&self) -> Result<u64> {
        Ok(self.log.len()?)
    }

    /// Grains with a state of their own.
    pub(crate) fn state_len(&self) -> Result<u64> {
        Ok(self.state.len()?)
    }

    /// Where a grain lies in the log.
    pub(crate) fn sequence_of(&self, address: &ContentAddress) -> Result<Option<Sequence>> {
        let row = self.address.get(AddressKey::plain(address).as_bytes())?;
        Ok(row.map(|row| Sequence::new(row.value())))
    }

    /// The index-layer state at a place in the log.
    pub(crate) fn state_at(&self, sequence: Sequence) -> Result<GrainState> {
        match self.state.get(sequence.get())? {
            Some(record) => keys::decode_state(sequence, record.value()),
            None => Ok(GrainState::default()),
        }
    }

    /// The ancestors whose protection reaches the grain at a place in the log.
    pub(crate) fn roots_at(&self, sequence: Sequence) -> Result<Vec<Sequence>> {
        let row = self.roots.get(sequence.get())?;
        row.map_or(Ok(Vec::new()), |row| keys::decode_roots(sequence, row.value()))
    }

    /// Runs `read` over the blob at a place in the log.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` where the log has no such place.
    pub(crate) fn with_blob<T>(
        &self,
        sequence: Sequence,
        read: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Result<T> {
        let Some(row) = self.log.get(sequence.get())? else {
            return Err(Error::integrity(format!("the log has no entry {}", sequence.get())));
        };
        read(Envelope::open(row.value())?)
    }

    /// The address of a blob of the log, checked: the bytes must hash to the address they were
    /// stored under.
    pub(crate) fn address_of(&self, sequence: Sequence, blob: &[u8]) -> Result<ContentAddress> {
        let address = ContentAddress::of(blob);
        if self.sequence_of(&address)? == Some(sequence) {
            return Ok(address);
        }
        let message = format!("the bytes of log entry {} have changed", sequence.get());
        Err(Error::integrity(message))
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
        let start = Bound::Included(&from);
        let mut found = Vec::new();
        for row in self.address.range::<&[u8; 32]>((start, Bound::Unbounded))? {
            let (address, _) = row?;
            let bytes = *address.value();
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

    /// Every place of the log after `sequence`, oldest first.
    pub(crate) fn log_after(
        &self,
        sequence: Option<Sequence>,
    ) -> Result<impl Iterator<Item = Result<(Sequence, Vec<u8>)>> + '_> {
        let from = sequence.map_or(0, |sequence| sequence.get().saturating_add(1));
        let rows = self.log.range(from..)?;
        Ok(rows.map(|row| {
            let (sequence, envelope) = row?;
            Ok((Sequence::new(sequence.value()), Envelope::open(envelope.value())?.to_vec()))
        }))
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

/// Adds a grain of the log to a tail.
pub(crate) fn push(
    tail: &mut Tail,
    dictionary: &impl index::DictionaryRead,
    sequence: Sequence,
    address: &ContentAddress,
    blob: &[u8],
) -> Result<()> {
    with_fields(blob, |grain| {
        let key = *AddressKey::plain(address).as_bytes();
        Ok(tail.push(dictionary, sequence, key, &Facts::of(grain))?)
    })
}

/// Whether a partition lies in a session's namespace: the namespace itself or one below it.
pub(crate) fn in_scope(partition: &str, namespace: Option<&str>) -> bool {
    let Some(namespace) = namespace else { return true };
    match named(partition).strip_prefix(named(namespace)) {
        Some(rest) => rest.is_empty() || rest.starts_with(':'),
        None => false,
    }
}

/// The partition a namespace names: none is the shared one (OMS 28.2).
fn named(namespace: &str) -> &str {
    if namespace.is_empty() { SHARED } else { namespace }
}
