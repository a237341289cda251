//! Every byte layout of the truth: tables, keys and records (docs/format.md shows them).
//!
//! Numbers are big-endian and of fixed width. The derived tables have their own layouts, in the index crate.
//! Makes no decisions.

mod access;
mod application;
#[cfg(test)]
mod application_tests;
mod erasure;
mod log_row;
mod owner;
mod vectors;

use grainstore_format::{ContentAddress, EpochMs, GrainState, VerificationStatus};
use grainstore_index::Sequence;
use redb::TableDefinition;

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::vault::{EncryptionKey, Vault};

pub use access::AccessCounts;
pub(crate) use application::{
    APPLICATION_ROWS, BLOB_CHUNKS, BLOBS, BlobHead, CHUNK_BYTES, KeyedDefinition, OWNED, RowBody,
    TablePrefix, blob_key, chunk_key, open_owned, seal_owned,
};
pub(crate) use erasure::{
    ErasureRecord, META_ERASURES, PendingScrub, Stub, TOMBSTONES, Tombstone, UserToken,
};
pub(crate) use log_row::{LogRowHead, LogRowParts};
pub(crate) use owner::{OwnedLink, RowOwner};
pub(crate) use vectors::{
    META_REMOVED_VECTORS, META_SERVING, REMOVED_SPACES, RemovedVectors, SPACES, StoredVector,
    VECTOR_ROWS, VECTORS, decode_rows, encode_rows, open_serving, open_space, seal_serving,
    seal_space,
};

/// Sequence -> envelope of a blob, in a plain store behind the audit entry that brought it ([`LogRowParts`]), in the
/// order of writing, from 1.
pub(crate) const LOG: TableDefinition<'static, u64, &'static [u8]> = TableDefinition::new("log");
/// Sequence -> state record; no row means the default state.
pub(crate) const STATE: TableDefinition<'static, u64, &'static [u8; STATE_RECORD_BYTES]> =
    TableDefinition::new("state");
/// Sequence -> sequences of the grains that protect this one, itself included; no row means none.
pub(crate) const ROOTS: TableDefinition<'static, u64, &'static [u8]> =
    TableDefinition::new("roots");
/// Audit sequence -> canonical MessagePack entry, from 0 (genesis); [`AUDIT_HEAD`] -> [`AuditHead`]. What brought a
/// grain into a plain store lies in the row of the grain: see [`LogRowParts`].
pub(crate) const AUDIT: TableDefinition<'static, u64, &'static [u8]> =
    TableDefinition::new("audit");
/// Audit sequence -> envelope of the reason given, beside the chain so that erasure can remove it.
pub(crate) const REASONS: TableDefinition<'static, u64, &'static [u8]> =
    TableDefinition::new("reasons");
/// Number, which begins with a token of its namespace -> envelope of a template in JSON. Created with the
/// first template.
pub(crate) const TEMPLATES: TableDefinition<'static, u64, &'static [u8]> =
    TableDefinition::new("templates");
/// Slot of the keyring whose key was destroyed -> its mark under the store's key, written before the slot is
/// overwritten. Created with the first mark.
pub(crate) const DESTROYED: TableDefinition<'static, u64, &'static [u8]> =
    TableDefinition::new("destroyed");
/// Sequence of an erased grain, in an encrypted store -> no bytes: nothing else may stand there again. Created
/// with the first.
pub(crate) const ERASED: TableDefinition<'static, u64, &'static [u8]> =
    TableDefinition::new("erased");
/// Name -> record: the rows below.
pub(crate) const META: TableDefinition<'static, &'static str, &'static [u8]> =
    TableDefinition::new("meta");

/// The format stamp: [`FORMAT_VERSION`] as u32. A store without it is refused.
pub(crate) const META_FORMAT: &str = "format";
/// 16 random bytes that identify the store.
pub(crate) const META_STORE_ID: &str = "store_id";
/// 32 random bytes: the key of pseudonyms and reason hashes.
pub(crate) const META_AUDIT_KEY: &str = "audit_key";
/// Prefix of the rows that record how far a model has embedded the log, as u64; the name of the model
/// follows.
pub(crate) const META_EMBEDDED_PREFIX: &str = "embedded/";
/// Row of the meta table for languages and observer domains, which decide how grains are indexed as text: an
/// envelope in row 0 of JSON. Written when a host first sets one.
pub(crate) const META_WORDING: &str = "wording";
/// Row of the meta table that says that the store is encrypted, and how: [`ENCRYPTION_SCHEME`]. Its keys are
/// in its keyring.
pub(crate) const META_ENCRYPTED: &str = "encrypted";
/// AES-256-GCM, with HMAC-SHA256 tokens.
pub(crate) const ENCRYPTION_SCHEME: [u8; 1] = [1];
/// Row of the meta table with the highest slot of the keyring that is in use, as u32. Written with the first
/// user.
pub(crate) const META_SLOTS: &str = "slots";
/// Row of the meta table that says how new blobs are compressed: [`COMPRESSION_SCHEME`]. No row: not at all.
/// Blobs written before stay as they are until their user's key is rotated.
pub(crate) const META_COMPRESSION: &str = "compression";
/// zstd with the dictionary of this number.
pub(crate) const COMPRESSION_SCHEME: [u8; 1] = [1];
/// Row of the meta table with the preset of the store and later changes of its rules: an envelope in row 0 of
/// JSON. No row: the default preset.
pub(crate) const META_PRESET: &str = "preset";
/// Row of the meta table of an encrypted store with the keyed sums of the rows of its tables: an encrypted
/// envelope of 32 bytes for each table of `SummedTable`. No row: all of them are empty.
pub(crate) const META_ROW_SUMS: &str = "row_sums";
/// Row of the meta table with counts of refusals whose minute was not over when the store was closed: an
/// envelope in row 0 of MessagePack. No row: none.
pub(crate) const META_REFUSALS: &str = "refusals";
/// Row of the meta table of an encrypted store with the epoch of its indexes, as u64: it ends when a user's key
/// is changed, and indexes made before are not used. No row: 0.
pub(crate) const META_INDEX_EPOCH: &str = "index_epoch";
/// Row of the meta table that says where the open segment of the audit log began: an envelope in row 0. No row: the next
/// entry begins the first segment.
pub(crate) const META_SEGMENT: &str = "segment";
/// Row of the meta table for the CAL switch: 1 for read-only, 2 for off. No row: on.
pub(crate) const META_CAL: &str = "cal";
/// Key of the audit head, apart from the chain. It is in the chain's own table because both change with one write.
/// An entry in the last row of the log may be a later one.
pub(crate) const AUDIT_HEAD: u64 = u64::MAX;

/// The format version of the whole directory.
pub(crate) const FORMAT_VERSION: u32 = 3;
/// The first format version that binds the rows of an encrypted store to each other: marks for destroyed keys, sums
/// and a seal.
pub(crate) const FIRST_FORMAT_WITH_SEAL: u32 = 2;

/// An address as it is stored on disk.
///
/// In a plain store it is the address itself; an encrypted store keeps a keyed hash of the same width here,
/// so that addresses of guessable text cannot be tested without the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AddressKey([u8; 32]);

impl AddressKey {
    pub(crate) fn plain(address: &ContentAddress) -> Self {
        Self(*address.as_bytes())
    }

    /// The token that replaces an address in an encrypted store.
    pub(crate) fn from_token(token: [u8; 32]) -> Self {
        Self(token)
    }

    pub(crate) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// The row of a table, to which an encrypted body is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowKey {
    table: u8,
    pub(crate) key: u64,
}

impl RowKey {
    /// The row of the audit key in format 1.
    pub(crate) const AUDIT_KEY_1: Self = Self { table: 5, key: 0 };
    /// The row of the audit key. An encrypted store whose audit key opens as this row has sums of its rows.
    pub(crate) const AUDIT_KEY: Self = Self { table: 5, key: 1 };
    /// The row of the sums of the truth.
    pub(crate) const ROW_SUMS: Self = Self { table: 7, key: 0 };
    /// The tables of blobs, of their chunks, and of the rows of applications.
    const BLOBS: u8 = 9;
    const BLOB_CHUNKS: u8 = 10;
    const APPLICATION_ROWS: u8 = 11;
    /// The row of the seal of an index that was made in an epoch.
    pub(crate) fn index_seal(epoch: u64) -> Self {
        Self { table: 8, key: epoch }
    }

    pub(crate) fn log(sequence: Sequence) -> Self {
        Self { table: 1, key: sequence.get() }
    }

    pub(crate) fn signature(sequence: Sequence) -> Self {
        Self { table: 2, key: sequence.get() }
    }

    pub(crate) fn log_row(row: u64) -> Self {
        Self::log(Sequence::new(row))
    }

    pub(crate) fn signature_row(row: u64) -> Self {
        Self::signature(Sequence::new(row))
    }

    pub(crate) fn reason(entry: u64) -> Self {
        Self { table: 3, key: entry }
    }

    pub(crate) fn vector(row: u64) -> Self {
        Self { table: 4, key: row }
    }

    pub(crate) fn template(row: u64) -> Self {
        Self { table: 6, key: row }
    }

    /// The number of the table.
    pub(crate) fn table(self) -> u8 {
        self.table
    }

    /// Returns `true` for a row that the rules of an encrypted store may leave in the clear: of the log, a
    /// signature, a reason or a vector.
    pub(crate) fn may_be_plain(self) -> bool {
        (1..=4).contains(&self.table)
    }

    /// Returns `true` for a row of the log, which holds a blob.
    #[cfg(test)]
    pub(crate) fn is_log(self) -> bool {
        self.table == 1
    }

    /// Returns `true` for a row whose body a store may compress: of the log, a chunk of a blob, or a row of an
    /// application.
    pub(crate) fn may_be_compressed(self) -> bool {
        matches!(self.table, 1 | Self::BLOB_CHUNKS | Self::APPLICATION_ROWS)
    }

    /// Returns the associated data of the row: a body decrypts in no other row, table or slot, and only with
    /// the compression flag it was written with.
    pub(crate) fn associated_data(self, slot: u32, compressed: bool) -> [u8; 15] {
        let protection = EncryptedEnvelope::protection(compressed);
        let mut bytes =
            [PlainEnvelope::VERSION, protection, 0, 0, 0, 0, self.table, 0, 0, 0, 0, 0, 0, 0, 0];
        if let Some((head, key)) = bytes.split_at_mut_checked(7) {
            head.iter_mut().skip(2).zip(slot.to_be_bytes()).for_each(|(to, from)| *to = from);
            key.copy_from_slice(&self.key.to_be_bytes());
        }
        bytes
    }
}

/// An encrypted envelope.
///
/// | byte | meaning |
/// |---|---|
/// | 0 | envelope version, 1 |
/// | 1 | protection: 1 AES-256-GCM, 3 AES-256-GCM of a compressed body |
/// | 2..6 | slot of the keyring, u32 |
/// | 6..18 | nonce |
/// | 18.. | ciphertext, then the tag of 16 bytes |
///
/// Its associated data are bytes 0..6, the number of the table, and the row's key (8 bytes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EncryptedEnvelope<'b> {
    pub(crate) slot: u32,
    /// True if the body is compressed.
    pub(crate) compressed: bool,
    /// The nonce and what follows.
    pub(crate) body: &'b [u8],
}

impl<'b> EncryptedEnvelope<'b> {
    const PROTECTION: u8 = 1;

    fn protection(compressed: bool) -> u8 {
        if compressed {
            Self::PROTECTION | PlainEnvelope::COMPRESSION_SCHEME
        } else {
            Self::PROTECTION
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let Self { slot, compressed, body } = self;
        let mut bytes = Vec::with_capacity(6 + body.len());
        bytes.extend_from_slice(&[PlainEnvelope::VERSION, Self::protection(*compressed)]);
        bytes.extend_from_slice(&slot.to_be_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    /// Returns the parts of an encrypted envelope, `None` for an envelope of another kind.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for one that is cut off.
    pub(crate) fn parse(bytes: &'b [u8]) -> Result<Option<Self>> {
        let [PlainEnvelope::VERSION, protection, rest @ ..] = bytes else { return Ok(None) };
        let compressed = *protection == Self::protection(true);
        if *protection != Self::protection(compressed) {
            return Ok(None);
        }
        let short = || Error::truth_damaged("an envelope is shorter than its head");
        let (slot, body) = rest.split_first_chunk::<4>().ok_or_else(short)?;
        Ok(Some(Self { slot: u32::from_be_bytes(*slot), compressed, body }))
    }
}

/// An envelope without encryption: version, protection, checksum, body.
///
/// | byte | meaning |
/// |---|---|
/// | 0 | envelope version, 1 |
/// | 1 | protection: 0 plain, 2 compressed |
/// | 2..6 | CRC-32 of the row's key (8 bytes) and the body; of a compressed body, of the byte 2 and these; of a row of grains in an encrypted store, masked with a keyed tag |
/// | 6.. | the blob, or the text of a reason |
pub(crate) struct PlainEnvelope;

impl PlainEnvelope {
    const VERSION: u8 = 1;
    const PLAIN: u8 = 0;
    const COMPRESSION_SCHEME: u8 = 2;
    const HEADER_BYTES: usize = 6;

    /// Encodes a body for the row with this key.
    pub(crate) fn seal(key: u64, body: &[u8]) -> Vec<u8> {
        Self::encode(Self::PLAIN, &checksum(key, body), body)
    }

    /// Encodes a compressed body for the row with this key.
    pub(crate) fn seal_compressed(key: u64, body: &[u8]) -> Vec<u8> {
        Self::encode(Self::COMPRESSION_SCHEME, &Self::checksum_compressed(key, body), body)
    }

    fn encode(protection: u8, check: &[u8; 4], body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::HEADER_BYTES + body.len());
        bytes.extend_from_slice(&[Self::VERSION, protection]);
        bytes.extend_from_slice(check);
        bytes.extend_from_slice(body);
        bytes
    }

    /// Returns the body of an envelope that is not compressed.
    ///
    /// # Errors
    /// `ERR_STORE_VERSION` for an envelope of a later version, or of a kind not allowed here; `ERR_INTEGRITY`
    /// for fewer bytes than a header, and for a body that has changed or was written for another row.
    pub(crate) fn open(key: u64, bytes: &[u8]) -> Result<&[u8]> {
        match bytes {
            [Self::VERSION, Self::PLAIN, rest @ ..] => {
                Self::verify_checksum(key, rest, |body| checksum(key, body))
            }
            [version, protection, ..] => {
                let message =
                    format!("envelope version {version}, protection {protection} is not known");
                Err(Error::new(ErrorKind::StoreVersion, message))
            }
            _ => Err(Error::truth_damaged("an envelope is shorter than its head")),
        }
    }

    /// Returns the compressed body of an envelope, `None` for an envelope of another kind.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for a body that has changed or was written for another row.
    pub(crate) fn open_compressed(key: u64, bytes: &[u8]) -> Result<Option<&[u8]>> {
        let [Self::VERSION, Self::COMPRESSION_SCHEME, rest @ ..] = bytes else { return Ok(None) };
        Self::verify_checksum(key, rest, |body| Self::checksum_compressed(key, body)).map(Some)
    }

    fn verify_checksum(
        key: u64,
        rest: &[u8],
        checksum: impl FnOnce(&[u8]) -> [u8; 4],
    ) -> Result<&[u8]> {
        match rest.split_first_chunk::<4>() {
            Some((check, body)) if *check == checksum(body) => Ok(body),
            _ => Err(Error::truth_damaged(format!("the bytes of entry {key} have changed"))),
        }
    }

    /// Includes the protection byte, so that a compressed body never passes for a plain one or the reverse.
    fn checksum_compressed(key: u64, body: &[u8]) -> [u8; 4] {
        checksum_of(&[&[Self::COMPRESSION_SCHEME], &key.to_be_bytes(), body])
    }
}

/// Bytes of a state record.
///
/// | byte | meaning |
/// |---|---|
/// | 0 | record version, 1 |
/// | 1 | bits: 0 superseded, 1 valid-to set, 2 contradicted, 3 needs review, 4 held |
/// | 2 | verification status: 0 unverified, 1 verified, 2 contested, 3 retracted |
/// | 3..11 | `system_valid_to`, epoch ms, i64 |
/// | 11..43 | `superseded_by`: the address; in an encrypted store, XOR a pad made of the other fields |
/// | 43..51 | sequence of the audit entry since which it is not current; 0 for never |
/// | 51..55 | CRC-32 of the sequence (8 bytes) and the bytes before |
pub(crate) const STATE_RECORD_BYTES: usize = 55;

/// A row of the state table: the index-layer state of a grain, and since when it is not current.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct StateRecord {
    pub(crate) state: GrainState,
    /// The audit entry with which the grain last stopped being current; 0, the genesis, for never.
    pub(crate) ended_by_entry: u64,
}

impl StateRecord {
    /// Returns the record after a change of state by the audit entry `entry`. A grain that only gets an end
    /// time, which may be in the future, stops being current at that entry, unless a later change says
    /// otherwise.
    pub(crate) fn with_state(self, state: GrainState, entry: u64) -> Self {
        let is_open = |state: &GrainState| state.is_current() && state.system_valid_to.is_none();
        let ends = is_open(&self.state) && !is_open(&state)
            || self.state.is_current() && !state.is_current();
        Self { state, ended_by_entry: if ends { entry } else { self.ended_by_entry } }
    }
}

const STATE_VERSION: u8 = 1;
const SUPERSEDED: u8 = 1;
const HAS_END: u8 = 1 << 1;
const CONTRADICTED: u8 = 1 << 2;
const NEEDS_REVIEW: u8 = 1 << 3;
const HELD: u8 = 1 << 4;

pub(crate) fn encode_state(
    sequence: Sequence,
    record: &StateRecord,
    pad: impl FnOnce(&[u8]) -> [u8; 32],
) -> [u8; STATE_RECORD_BYTES] {
    let StateRecord { state, ended_by_entry: since } = record;
    let bit = |set: bool, bit: u8| if set { bit } else { 0 };
    let bits = bit(state.superseded_by.is_some(), SUPERSEDED)
        | bit(state.system_valid_to.is_some(), HAS_END)
        | bit(state.contradicted, CONTRADICTED)
        | bit(state.needs_review, NEEDS_REVIEW)
        | bit(state.held, HELD);
    let mut bytes = [0; STATE_RECORD_BYTES];
    let (head, rest) = bytes.split_at_mut(3);
    head.copy_from_slice(&[STATE_VERSION, bits, state.verification_status as u8]);
    let (ended, rest) = rest.split_at_mut(8);
    ended.copy_from_slice(&state.system_valid_to.unwrap_or_default().get().to_be_bytes());
    let (superseded_by, rest) = rest.split_at_mut(32);
    if let Some(address) = &state.superseded_by {
        let pad = pad(&pad_input(sequence, head, ended, *since));
        let bytes = address.as_bytes().iter().zip(pad).map(|(byte, pad)| byte ^ pad);
        superseded_by.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
    }
    let (ended_by, _) = rest.split_at_mut(8);
    ended_by.copy_from_slice(&since.to_be_bytes());
    let (body, check) = bytes.split_at_mut(STATE_RECORD_BYTES - 4);
    check.copy_from_slice(&checksum(sequence.get(), body));
    bytes
}

/// Returns `true` if the held bit may be set, without decoding the record. A damaged or newer record may have
/// it.
pub(crate) fn may_be_held(record: &[u8; STATE_RECORD_BYTES]) -> bool {
    let [version, bits, ..] = record;
    *version != STATE_VERSION || bits & HELD != 0
}

/// Decodes a state record.
///
/// # Errors
/// `ERR_STORE_VERSION` for a record of a later version, `ERR_INTEGRITY` for impossible bytes.
pub(crate) fn decode_state(
    sequence: Sequence,
    record: &[u8; STATE_RECORD_BYTES],
    pad: impl FnOnce(&[u8]) -> [u8; 32],
) -> Result<StateRecord> {
    let damaged = || Error::integrity("a state record is damaged");
    let (body, check) = record.split_at(STATE_RECORD_BYTES - 4);
    if *check != checksum(sequence.get(), body) {
        return Err(damaged());
    }
    let [version, bits, status, rest @ ..] = record;
    if *version != STATE_VERSION {
        let message = format!("state record version {version} is not known");
        return Err(Error::new(ErrorKind::StoreVersion, message));
    }
    let (ended, rest) = rest.split_first_chunk::<8>().ok_or_else(damaged)?;
    let (superseded_by, rest) = rest.split_first_chunk::<32>().ok_or_else(damaged)?;
    let since = u64::from_be_bytes(*rest.first_chunk::<8>().ok_or_else(damaged)?);
    let has = |bit: u8| bits & bit != 0;
    let successor = || {
        let pad = pad(&pad_input(sequence, &[*version, *bits, *status], ended, since));
        let mut address = *superseded_by;
        address.iter_mut().zip(pad).for_each(|(byte, pad)| *byte ^= pad);
        ContentAddress::from_bytes(address)
    };
    let state_status = VerificationStatus::ALL.get(usize::from(*status));
    let state = GrainState {
        superseded_by: has(SUPERSEDED).then(successor),
        system_valid_to: has(HAS_END).then(|| EpochMs::new(i64::from_be_bytes(*ended))),
        verification_status: *state_status.ok_or_else(damaged)?,
        contradicted: has(CONTRADICTED),
        needs_review: has(NEEDS_REVIEW),
        held: has(HELD),
    };
    Ok(StateRecord { state, ended_by_entry: since })
}

/// Returns the input for the pad of a successor's address: its row, and all other fields of the record.
fn pad_input(sequence: Sequence, head: &[u8], ended: &[u8], since: u64) -> Vec<u8> {
    [&sequence.get().to_be_bytes()[..], head, ended, &since.to_be_bytes()].concat()
}

/// Checksum of a row's key and body, so that a flipped bit or a row moved elsewhere is noticed.
pub(crate) fn checksum(key: u64, body: &[u8]) -> [u8; 4] {
    checksum_of(&[&key.to_be_bytes(), body])
}

fn checksum_of(parts: &[&[u8]]) -> [u8; 4] {
    let mut crc = crc32fast::Hasher::new();
    parts.iter().for_each(|part| crc.update(part));
    crc.finalize().to_be_bytes()
}

/// Encodes roots: their sequences in order, 8 bytes each, then the checksum.
pub(crate) fn encode_roots(sequence: Sequence, roots: &[Sequence]) -> Vec<u8> {
    let mut bytes: Vec<u8> = roots.iter().flat_map(|root| root.get().to_be_bytes()).collect();
    bytes.extend(checksum(sequence.get(), &bytes));
    bytes
}

/// Decodes a row of roots.
///
/// # Errors
/// `ERR_INTEGRITY` for bytes that are damaged.
pub(crate) fn decode_roots(sequence: Sequence, bytes: &[u8]) -> Result<Vec<Sequence>> {
    let (body, check) = bytes.split_last_chunk::<4>().unwrap_or((&[], &[0; 4]));
    let (roots, rest) = body.as_chunks::<8>();
    if !rest.is_empty() || *check != checksum(sequence.get(), body) {
        return Err(Error::integrity("a row of roots is damaged"));
    }
    Ok(roots.iter().map(|root| Sequence::new(u64::from_be_bytes(*root))).collect())
}

/// Sequence -> access record; no row means never read. Created with the first record.
pub(crate) const ACCESS: TableDefinition<'static, u64, &'static [u8; ACCESS_RECORD_BYTES]> =
    TableDefinition::new("access");

/// Bytes of an access record: how often a grain was read (OMS 22.10).
///
/// | byte | meaning |
/// |---|---|
/// | 0..8 | times it was read, u64 |
/// | 8..16 | when last, epoch ms, i64 |
/// | 16..20 | CRC-32 of the sequence (8 bytes) and the bytes before |
pub(crate) const ACCESS_RECORD_BYTES: usize = 20;

pub(crate) fn encode_access(
    sequence: Sequence,
    access: &AccessCounts,
) -> [u8; ACCESS_RECORD_BYTES] {
    let mut bytes = [0; ACCESS_RECORD_BYTES];
    let (body, check) = bytes.split_at_mut(ACCESS_RECORD_BYTES - 4);
    let (count, last) = body.split_at_mut(8);
    count.copy_from_slice(&access.count.to_be_bytes());
    last.copy_from_slice(&access.last_accessed_at.unwrap_or_default().get().to_be_bytes());
    check.copy_from_slice(&checksum(sequence.get(), body));
    bytes
}

/// Decodes an access record.
///
/// # Errors
/// `ERR_INTEGRITY` for bytes that are damaged.
pub(crate) fn decode_access(sequence: Sequence, record: &[u8]) -> Result<AccessCounts> {
    let damaged = || Error::integrity("an access record is damaged");
    let (body, check) = record.split_last_chunk::<4>().ok_or_else(damaged)?;
    let (count, rest) = body.split_first_chunk::<8>().ok_or_else(damaged)?;
    let last: [u8; 8] = rest.try_into().map_err(|_| damaged())?;
    if *check != checksum(sequence.get(), body) {
        return Err(damaged());
    }
    let last_accessed_at = Some(EpochMs::new(i64::from_be_bytes(last)));
    Ok(AccessCounts { count: u64::from_be_bytes(*count), last_accessed_at })
}

/// Sequence -> envelope of a [`SignatureWrapper`]; no row for an unsigned grain. Created with the first
/// signed grain.
pub(crate) const SIGNATURES: TableDefinition<'static, u64, &'static [u8]> =
    TableDefinition::new("signatures");

/// The bytes around a blob in its COSE_Sign1.
///
/// | byte | meaning |
/// |---|---|
/// | 0 | verdict on the signature when it was stored: 0 unverifiable, 1 valid |
/// | 1..5 | bytes before the blob, u32 |
/// | 5.. | those bytes, then the bytes behind the blob |
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignatureWrapper {
    pub(crate) valid: bool,
    pub(crate) prefix: Vec<u8>,
    pub(crate) suffix: Vec<u8>,
}

impl SignatureWrapper {
    pub(crate) fn seal(
        &self,
        sequence: Sequence,
        vault: &Vault,
        encryption_key: &EncryptionKey,
    ) -> Result<Vec<u8>> {
        let length = u32::try_from(self.prefix.len());
        let length = length.map_err(|_| Error::integrity("an envelope has too many bytes"))?;
        let mut body = vec![u8::from(self.valid)];
        body.extend_from_slice(&length.to_be_bytes());
        body.extend_from_slice(&self.prefix);
        body.extend_from_slice(&self.suffix);
        vault.seal(RowKey::signature(sequence), &body, encryption_key)
    }

    /// Decrypts and decodes a row of signatures.
    ///
    /// # Errors
    /// As [`Vault::open`]; `ERR_INTEGRITY` for bytes no version wrote.
    pub(crate) fn open(sequence: Sequence, row: &[u8], vault: &Vault) -> Result<Self> {
        let damaged = || Error::truth_damaged("a signature is damaged");
        let body = vault.open(RowKey::signature(sequence), row)?;
        let (head, rest) = body.split_first_chunk::<5>().ok_or_else(damaged)?;
        let [valid @ 0..=1, length @ ..] = head else { return Err(damaged()) };
        let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|_| damaged())?;
        let (prefix, suffix) = rest.split_at_checked(length).ok_or_else(damaged)?;
        Ok(Self { valid: *valid == 1, prefix: prefix.to_vec(), suffix: suffix.to_vec() })
    }
}

/// The end of the audit chain, stored apart from it so that a truncated chain is noticed. In a plain store it is the
/// end as of the last commit with an entry that lies in no row of the log.
///
/// | byte | meaning |
/// |---|---|
/// | 0..8 | number of entries, u64 |
/// | 8..40 | SHA-256 of the last entry |
/// | 40..72 | in an encrypted store: the seal of `row_sums` |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AuditHead {
    pub(crate) count: u64,
    pub(crate) hash: [u8; 32],
}

impl AuditHead {
    pub(crate) fn encode(&self) -> [u8; 40] {
        let mut record = [0; 40];
        let (count, hash) = record.split_at_mut(8);
        count.copy_from_slice(&self.count.to_be_bytes());
        hash.copy_from_slice(&self.hash);
        record
    }

    /// Decodes the audit head, without the seal that follows in an encrypted store.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` for a record of another length.
    pub(crate) fn decode(record: &[u8]) -> Result<Self> {
        let damaged = || Error::integrity("the audit head is damaged");
        let (count, rest) = record.split_first_chunk::<8>().ok_or_else(damaged)?;
        let (hash, seal) = rest.split_first_chunk::<32>().ok_or_else(damaged)?;
        match seal.len() {
            0 | 32 => Ok(Self { count: u64::from_be_bytes(*count), hash: *hash }),
            _ => Err(damaged()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use data_encoding::HEXLOWER;

    /// The pad of a store without keys.
    fn bare(_: &[u8]) -> [u8; 32] {
        [0; 32]
    }

    #[test]
    fn state_records_have_these_bytes() {
        let state = GrainState {
            superseded_by: Some(ContentAddress::from_bytes([0xab; 32])),
            system_valid_to: Some(EpochMs::new(0x0102_0304)),
            verification_status: VerificationStatus::Contested,
            needs_review: true,
            ..GrainState::default()
        };
        let record = StateRecord { state, ended_by_entry: 0x0506 };
        let (ended, by, since) = ("0000000001020304", "ab".repeat(32), "0000000000000506");
        let golden = ["01", "0b", "02", ended, &by, since, "c55b636b"];
        let at = Sequence::new(5);
        let bytes = encode_state(at, &record, bare);
        assert_eq!(HEXLOWER.encode(&bytes), golden.concat());
        assert_eq!(decode_state(at, &bytes, bare).unwrap(), record);
        assert_eq!(
            decode_state(Sequence::new(6), &bytes, bare).map_err(|e| e.code()),
            Err("ERR_INTEGRITY")
        );
        for bit in 0..8 * STATE_RECORD_BYTES {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(decode_state(at, &flipped, bare).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn the_default_state_survives_its_record() {
        let record = StateRecord::default();
        let at = Sequence::new(5);
        assert_eq!(decode_state(at, &encode_state(at, &record, bare), bare).unwrap(), record);
    }

    #[test]
    fn a_record_says_when_the_grain_last_stopped_being_current() {
        let current = GrainState::default();
        let superseded = GrainState { superseded_by: Some(ContentAddress::of(b"new")), ..current };
        let both = GrainState { contradicted: true, ..superseded };
        let reviewed = GrainState { needs_review: true, ..current };
        let mut record = StateRecord::default();
        for (entry, state, since) in
            [(3, reviewed, 0), (4, superseded, 4), (5, both, 4), (6, current, 4), (7, both, 7)]
        {
            record = record.with_state(state, entry);
            assert_eq!(record, StateRecord { state, ended_by_entry: since }, "entry {entry}");
        }
    }

    #[test]
    fn roots_have_these_bytes() {
        let roots = [Sequence::new(7), Sequence::new(u64::MAX)];
        let at = Sequence::new(5);
        let bytes = encode_roots(at, &roots);
        assert_eq!(HEXLOWER.encode(&bytes), "0000000000000007ffffffffffffffff77684b10");
        assert_eq!(decode_roots(at, &bytes).unwrap(), roots);
        for damaged in [&bytes[1..], &bytes[..19], &[0; 9], &[]] {
            assert_eq!(decode_roots(at, damaged).map_err(|e| e.code()), Err("ERR_INTEGRITY"));
        }
    }

    #[test]
    fn envelopes_have_these_bytes() {
        let sealed = PlainEnvelope::seal(5, b"body");
        assert_eq!(HEXLOWER.encode(&sealed), "010049d99db1626f6479");
        assert_eq!(PlainEnvelope::open(5, &sealed).unwrap(), b"body");
        assert_eq!(PlainEnvelope::open(6, &sealed).map_err(|e| e.code()), Err("ERR_INTEGRITY"));
        for bit in 16..8 * sealed.len() {
            let mut flipped = sealed.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(PlainEnvelope::open(5, &flipped).is_err(), "bit {bit}");
        }
        for (bytes, code) in [
            (&b"\x02\x00body"[..], "ERR_STORE_VERSION"),
            (b"\x01\x01body", "ERR_STORE_VERSION"),
            (b"\x01\x00bo", "ERR_INTEGRITY"),
            (b"\x01", "ERR_INTEGRITY"),
        ] {
            assert_eq!(PlainEnvelope::open(5, bytes).map_err(|e| e.code()), Err(code));
        }
    }

    #[test]
    fn envelopes_of_compressed_bodies_have_these_bytes() {
        let sealed = PlainEnvelope::seal_compressed(5, b"body");
        assert_eq!(HEXLOWER.encode(&sealed), "01025d24a817626f6479");
        assert_eq!(PlainEnvelope::open_compressed(5, &sealed).unwrap(), Some(&b"body"[..]));
        assert_eq!(PlainEnvelope::open(5, &sealed).map_err(|e| e.code()), Err("ERR_STORE_VERSION"));
        assert_eq!(
            PlainEnvelope::open_compressed(5, &PlainEnvelope::seal(5, b"body")).unwrap(),
            None
        );
        // A compressed body does not pass for a plain one.
        let mut taken = sealed.clone();
        taken[1] = PlainEnvelope::PLAIN;
        assert_eq!(PlainEnvelope::open(5, &taken).map_err(|e| e.code()), Err("ERR_INTEGRITY"));
        for (key, bytes) in [(6, &sealed[..]), (5, &sealed[..9]), (5, b"\x01\x02bo")] {
            let code = PlainEnvelope::open_compressed(key, bytes).map_err(|e| e.code());
            assert_eq!(code, Err("ERR_INTEGRITY"), "{bytes:?}");
        }
        // Only blobs are ever compressed.
        let elsewhere = Vault::default().open(RowKey::reason(5), &sealed).map_err(|e| e.code());
        assert_eq!(elsewhere, Err("ERR_STORE_VERSION"));
        let encrypted = EncryptedEnvelope { slot: 7, compressed: true, body: b"body" };
        assert_eq!(HEXLOWER.encode(&encrypted.encode()), "010300000007626f6479");
        assert_eq!(EncryptedEnvelope::parse(&encrypted.encode()).unwrap(), Some(encrypted));
        let (log, other) = (RowKey::log(Sequence::new(5)), RowKey::reason(5));
        assert_eq!(
            HEXLOWER.encode(&log.associated_data(7, true)),
            "010300000007010000000000000005"
        );
        assert_ne!(log.associated_data(7, true), log.associated_data(7, false));
        assert!(log.is_log() && !other.is_log());
    }

    #[test]
    fn wrappings_have_these_bytes() {
        let wrapping =
            SignatureWrapper { valid: true, prefix: vec![0xd2, 0x84], suffix: vec![0x58] };
        let at = Sequence::new(5);
        let (vault, encryption_key) = (Vault::default(), EncryptionKey::default());
        let bytes = wrapping.seal(at, &vault, &encryption_key).unwrap();
        assert_eq!(HEXLOWER.encode(&bytes), "010074dda3d80100000002d28458");
        assert_eq!(SignatureWrapper::open(at, &bytes, &vault).unwrap(), wrapping);
        let unverifiable = SignatureWrapper { valid: false, ..wrapping };
        let again = SignatureWrapper::open(
            at,
            &unverifiable.seal(at, &vault, &encryption_key).unwrap(),
            &vault,
        );
        assert_eq!(again.unwrap(), unverifiable);
        for body in [&[][..], &[1, 0, 0, 0], &[2, 0, 0, 0, 0], &[1, 0, 0, 0, 3, 1, 2]] {
            let code = SignatureWrapper::open(at, &PlainEnvelope::seal(5, body), &vault)
                .map_err(|error| error.code());
            assert_eq!(code, Err("ERR_INTEGRITY"), "{body:?}");
        }
        assert!(
            SignatureWrapper::open(Sequence::new(6), &bytes, &vault).is_err(),
            "a row moved elsewhere"
        );
    }

    #[test]
    fn access_records_have_these_bytes() {
        let access = AccessCounts { count: 3, last_accessed_at: Some(EpochMs::new(0x0102_0304)) };
        let at = Sequence::new(5);
        let bytes = encode_access(at, &access);
        assert_eq!(HEXLOWER.encode(&bytes), "00000000000000030000000001020304f99a3eb8");
        assert_eq!(decode_access(at, &bytes).unwrap(), access);
        for bit in 0..8 * ACCESS_RECORD_BYTES {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            let code = decode_access(at, &flipped).map_err(|error| error.code());
            assert_eq!(code, Err("ERR_INTEGRITY"), "bit {bit}");
        }
        assert!(decode_access(Sequence::new(6), &bytes).is_err(), "a row moved elsewhere");
    }

    #[test]
    fn the_audit_head_has_these_bytes() {
        let head = AuditHead { count: 3, hash: [0xcd; 32] };
        let golden = ["0000000000000003", &"cd".repeat(32)].concat();
        assert_eq!(HEXLOWER.encode(&head.encode()), golden);
        assert_eq!(AuditHead::decode(&head.encode()).unwrap(), head);
        assert_eq!(AuditHead::decode(&[0; 39]).map_err(|e| e.code()), Err("ERR_INTEGRITY"));
    }
}
