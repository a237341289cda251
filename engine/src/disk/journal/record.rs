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

/// The tag of a record of an encrypted store, by which is told that who wrote it has the key: a token of the rest of its
/// bytes.
pub(crate) type RecordTag = [u8; TAG_BYTES];
/// Makes the tag of a record of its header and its change record.
pub(crate) type TagOf<'k> = dyn Fn(&[u8], &[u8]) -> RecordTag + 'k;

/// Refuses changes that no record has room for.
///
/// # Errors
/// `ERR_LIMIT`.
pub(crate) fn check_size(changes: &ChangeRecord) -> Result<()> {
    if changes.as_bytes().len() <= MAX_RECORD_BYTES - HEADER_BYTES - TAG_BYTES {
        return Ok(());
    }
    let message = "one commit would write more than the journal takes at a time";
    let hint = "a store with a journal takes 256 MiB at a time: import in parts";
    Err(Error::new(ErrorKind::Limit, message).with_hint(hint))
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
/// | 57.. or 89.. | the change record of the commit |
#[derive(Clone, PartialEq, Eq)]
pub struct Record {
    bytes: Vec<u8>,
    shard: ShardId,
    commit: u64,
    epoch: u64,
    before: [u8; 32],
    /// True if it has a tag.
    tagged: bool,
    slots: Vec<KeyringSlot>,
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Record({}/{}, {} bytes)", self.shard, self.commit, self.bytes.len())
    }
}

impl Record {
    /// The record of the commit after a head, with the tag that is made of the rest of it, if any is.
    ///
    /// # Errors
    /// As [`check_size`].
    pub(crate) fn after(
        head: &Head,
        (shard, epoch): (ShardId, u64),
        changes: &ChangeRecord,
        tag: Option<&TagOf<'_>>,
    ) -> Result<Self> {
        check_size(changes)?;
        let commit = head.commit.saturating_add(1);
        let length = changes.as_bytes().len();
        let mut bytes = Vec::with_capacity(length.saturating_add(HEADER_BYTES + TAG_BYTES));
        bytes.push(if tag.is_some() { TAGGED_VERSION } else { VERSION });
        bytes.extend_from_slice(&shard.0.to_be_bytes());
        bytes.extend_from_slice(&commit.to_be_bytes());
        bytes.extend_from_slice(&epoch.to_be_bytes());
        bytes.extend_from_slice(&head.chain);
        let tagged = tag.is_some();
        if let Some(tag) = tag {
            let tag = tag(&bytes, changes.as_bytes());
            bytes.extend_from_slice(&tag);
        }
        bytes.extend_from_slice(changes.as_bytes());
        let (before, slots) = (head.chain, Vec::new());
        Ok(Self { bytes, shard, commit, epoch, before, tagged, slots })
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
        if tagged && bytes.len() < HEADER_BYTES + TAG_BYTES {
            return Err(cut());
        }
        Ok(Self { bytes, shard, commit, epoch, before, tagged, slots: Vec::new() })
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
        ChangeRecord::from_bytes(self.parts().2)
    }

    /// Returns `true` if it is one of an encrypted store.
    pub(crate) fn is_tagged(&self) -> bool {
        self.tagged
    }

    /// Returns `true` if it has the tag that is made of the rest of it.
    pub(crate) fn has_tag(&self, tag: impl Fn(&[u8], &[u8]) -> RecordTag) -> bool {
        let (header, there, changes) = self.parts();
        there == tag(header, changes)
    }

    /// The header, the tag and the change record.
    fn parts(&self) -> (&[u8], &[u8], &[u8]) {
        let (header, rest) = self.bytes.split_at_checked(HEADER_BYTES).unwrap_or_default();
        let tag = if self.tagged { TAG_BYTES } else { 0 };
        let (tag, changes) = rest.split_at_checked(tag).unwrap_or_default();
        (header, tag, changes)
    }
}
