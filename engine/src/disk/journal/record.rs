//! A record of a journal: the change record of one commit, with its place and the hash of the one before it
//! (docs/format.md, "Journal records").

use std::fmt;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::{KeyringSlot, ShardId, damaged};
use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::change_record::ChangeRecord;

/// Maximum size of a record in bytes: what one commit writes at most on a store with a
/// [`Journal`](super::Journal).
pub const MAX_RECORD_BYTES: usize = 256 << 20;

const VERSION: u8 = 1;
/// Of a record with a tag.
const TAGGED_VERSION: u8 = 2;
const HEADER_BYTES: usize = 57;
/// Length of a [`RecordTag`].
const TAG_BYTES: usize = 32;
/// Length of the number and the hash of a slot.
const SLOT_HASH_BYTES: usize = 36;
/// Room for what a record has beside its changes: the hashes of a million slots.
const MAX_HEAD_BYTES: usize = 36 << 20;

/// The tag of a record of an encrypted store, by which is told that who wrote it has the key: a token of the rest of its
/// bytes.
pub(crate) type RecordTag = [u8; TAG_BYTES];
/// Makes the tag of a record of its header and of what follows the tag.
pub(crate) type TagOf<'k> = dyn Fn(&[u8], &[u8]) -> RecordTag + 'k;

/// Refuses changes that no record has room for.
///
/// # Errors
/// `ERR_LIMIT`.
pub(crate) fn check_size(changes: &ChangeRecord) -> Result<()> {
    if changes.as_bytes().len() <= MAX_RECORD_BYTES - MAX_HEAD_BYTES {
        return Ok(());
    }
    Err(too_long())
}

fn too_long() -> Error {
    let message = "one commit would write more than the journal takes at a time";
    let hint = "a store with a journal takes 220 MiB at a time: import in parts";
    Error::new(ErrorKind::Limit, message).with_hint(hint)
}

/// The end of a [`Journal`](super::Journal): the number of its last commit, and the hash of its record, which has that of the one
/// before it, and so of all.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Head {
    /// The number of the commit; 0 if there is none.
    pub commit: u64,
    /// The SHA-256 of its record; zeros if there is none.
    pub chain: [u8; 32],
}

impl Head {
    /// The head of a journal without records.
    pub const EMPTY: Self = Self { commit: 0, chain: [0; 32] };

    /// A head, for implementors of [`Journal`](super::Journal).
    #[must_use]
    pub const fn new(commit: u64, chain: [u8; 32]) -> Self {
        Self { commit, chain }
    }
}

impl fmt::Debug for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.commit, HEXLOWER.encode(&self.chain))
    }
}

/// A record of a [`Journal`](super::Journal).
///
/// | bytes | what |
/// |---|---|
/// | 0 | version: 1, or 2 with a tag |
/// | 1..9 | shard |
/// | 9..17 | commit, from 1 on |
/// | 17..25 | epoch of the lead that it was appended under |
/// | 25..57 | SHA-256 of the record before; zeros for the first |
/// | 57..89 | of an encrypted store: a tag under its key of the bytes before and those after it |
/// | 89..93 | of an encrypted store: number of keyring slots that the commit is the first to use |
/// | 36 each | the number of the slot, and the SHA-256 of its bytes |
/// | the rest | the change record of the commit |
#[derive(Clone, PartialEq, Eq)]
pub struct Record {
    bytes: Vec<u8>,
    shard: ShardId,
    commit: u64,
    epoch: u64,
    before: [u8; 32],
    /// True if it has a tag.
    tagged: bool,
    /// Where the change record begins.
    changes_at: usize,
    slots: Vec<KeyringSlot>,
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Record({}/{}, {} bytes)", self.shard, self.commit, self.bytes.len())
    }
}

impl Record {
    /// The record of the commit after a head, to be appended with these slots of the keyring, and with the tag that is
    /// made of the rest of it, of an encrypted store.
    ///
    /// # Errors
    /// As [`check_size`].
    pub(crate) fn after(
        head: &Head,
        (shard, epoch): (ShardId, u64),
        (changes, slots): (&ChangeRecord, Vec<KeyringSlot>),
        tag: Option<&TagOf<'_>>,
    ) -> Result<Self> {
        check_size(changes)?;
        let commit = head.commit.saturating_add(1);
        let mut bytes = Vec::with_capacity(changes.as_bytes().len().saturating_add(HEADER_BYTES));
        bytes.push(if tag.is_some() { TAGGED_VERSION } else { VERSION });
        bytes.extend_from_slice(&shard.0.to_be_bytes());
        bytes.extend_from_slice(&commit.to_be_bytes());
        bytes.extend_from_slice(&epoch.to_be_bytes());
        bytes.extend_from_slice(&head.chain);
        if let Some(tag) = tag {
            let new = slots.iter().filter(|slot| !slot.is_destroyed()).collect::<Vec<_>>();
            let count = u32::try_from(new.len()).unwrap_or(u32::MAX);
            let mut rest = count.to_be_bytes().to_vec();
            for slot in new {
                rest.extend_from_slice(&slot.number.to_be_bytes());
                rest.extend_from_slice(&slot.hash());
            }
            rest.extend_from_slice(changes.as_bytes());
            let tag = tag(&bytes, &rest);
            bytes.extend_from_slice(&tag);
            bytes.extend_from_slice(&rest);
        } else {
            bytes.extend_from_slice(changes.as_bytes());
        }
        if bytes.len() > MAX_RECORD_BYTES {
            return Err(too_long());
        }
        Ok(Self::from_bytes(bytes)?.with_slots(slots))
    }

    /// The same, to be appended with these slots of the keyring.
    #[must_use]
    pub fn with_slots(self, slots: Vec<KeyringSlot>) -> Self {
        Self { slots, ..self }
    }

    /// Reads a record.
    ///
    /// # Errors
    /// `ERR_STORE_VERSION` for one of a later version; `ERR_INTEGRITY` for bytes that are none.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        let cut = || damaged("a record of the journal is cut off");
        let (header, _) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or_else(cut)?;
        let [version, header @ ..] = header;
        let tagged = *version == TAGGED_VERSION;
        if *version != VERSION && !tagged {
            let message =
                format!("a journal record has version {version}, and this program reads 1 and 2");
            return Err(Error::new(ErrorKind::StoreVersion, message)
                .with_hint("run the version that wrote it, or a later one"));
        }
        let (numbers, before) = header.split_last_chunk::<32>().ok_or_else(cut)?;
        let mut numbers = numbers.chunks_exact(8).filter_map(|number| number.try_into().ok());
        let mut next = || numbers.next().map(u64::from_be_bytes).ok_or_else(cut);
        let (shard, commit, epoch, before) = (ShardId(next()?), next()?, next()?, *before);
        let mut changes_at = HEADER_BYTES;
        if tagged {
            let (_, rest) = bytes.split_at_checked(HEADER_BYTES + TAG_BYTES).ok_or_else(cut)?;
            let (count, rest) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
            let hashes = usize::try_from(u32::from_be_bytes(*count)).ok();
            let hashes = hashes.and_then(|count| count.checked_mul(SLOT_HASH_BYTES));
            let hashes = hashes.filter(|hashes| *hashes <= rest.len()).ok_or_else(cut)?;
            changes_at = (HEADER_BYTES + TAG_BYTES + 4).saturating_add(hashes);
        }
        Ok(Self { bytes, shard, commit, epoch, before, tagged, changes_at, slots: Vec::new() })
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The slots of the keyring that are appended with it: those of new users, and zeros in the place of those that it
    /// destroys. They are no part of its bytes, and a record that was read has none.
    #[must_use]
    pub fn slots(&self) -> &[KeyringSlot] {
        &self.slots
    }

    /// The shard.
    #[must_use]
    pub fn shard(&self) -> ShardId {
        self.shard
    }

    /// The number of the commit.
    #[must_use]
    pub fn commit(&self) -> u64 {
        self.commit
    }

    /// The epoch of the lead that it was appended under.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The head of a journal that ends with it.
    #[must_use]
    pub fn head(&self) -> Head {
        Head { commit: self.commit, chain: Sha256::digest(&self.bytes).into() }
    }

    /// Returns `true` if it follows this head.
    #[must_use]
    pub fn follows(&self, head: &Head) -> bool {
        head.commit.checked_add(1) == Some(self.commit) && self.before == head.chain
    }

    /// What the commit writes.
    ///
    /// # Errors
    /// As [`ChangeRecord::from_bytes`].
    pub(crate) fn changes(&self) -> Result<ChangeRecord> {
        ChangeRecord::from_bytes(self.bytes.get(self.changes_at..).unwrap_or_default())
    }

    /// Returns `true` if it is one of an encrypted store.
    pub(crate) fn is_tagged(&self) -> bool {
        self.tagged
    }

    /// Returns `true` if it has a tag, and it is the one of the rest of it, by who has the key: of the bytes before the
    /// tag, and of those after it.
    pub(crate) fn has_tag(&self, is_tag: impl Fn(&[u8], &[u8], &RecordTag) -> bool) -> bool {
        let (header, rest) = self.bytes.split_at_checked(HEADER_BYTES).unwrap_or_default();
        let tagged = rest.split_first_chunk::<TAG_BYTES>();
        self.tagged && tagged.is_some_and(|(tag, rest)| is_tag(header, rest, tag))
    }

    /// The numbers and the hashes of the keyring slots that the commit is the first to use, of an encrypted store.
    pub(crate) fn slot_hashes(&self) -> impl Iterator<Item = (u32, [u8; 32])> {
        let hashes = self.bytes.get(HEADER_BYTES + TAG_BYTES + 4..self.changes_at);
        let (hashes, _) = hashes.unwrap_or_default().as_chunks::<SLOT_HASH_BYTES>();
        hashes.iter().filter_map(|slot| {
            let (number, hash) = slot.split_first_chunk::<4>()?;
            Some((u32::from_be_bytes(*number), hash.try_into().ok()?))
        })
    }
}
