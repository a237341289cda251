//! Keyed tags over the blocks of the index of an encrypted store: a block that somebody without the key edits, moves or
//! takes out no longer fits. A block is compared with its tag each time it is read; where the blocks of a run
//! begin stands under a tag too, and what runs there are is sealed beside the watermark. This module holds no keys; the engine does.

use std::sync::Arc;

use redb::ReadableTable;
use twox_hash::XxHash64;

use crate::error::{Error, Result};
use crate::meta::{HISTORY, NEXT_IDS, RUNS, WATERMARK};

/// Row of the table `index.meta` of an encrypted store with the rows of the watermark, of the counters, of the history
/// and of the runs, as a [`BlockSeal`] seals them.
pub const SEALED_MARKS: &str = "sealed";

/// Bytes of the tag behind a block; a checksum takes the first eight.
pub(crate) const TAG_BYTES: usize = 16;

/// Computes the tags of blocks, and seals what the index is made of, under a key of the store.
///
/// ```
/// use grainstore_index::{BlockSeal, Result};
/// # use grainstore_index::{Tables, reset};
/// # use redb::{Database, ReadableDatabase, backends::InMemoryBackend};
///
/// // A seal without a key, which a store would not use.
/// struct Open;
///
/// impl BlockSeal for Open {
///     fn token(&self, _: &[u8], _: &[u8]) -> [u8; 32] { [7; 32] }
///     fn seal(&self, body: &[u8]) -> Result<Vec<u8>> { Ok(body.to_vec()) }
///     fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> { Some(sealed.to_vec()) }
///     fn nonce(&self) -> Result<[u8; 16]> { Ok([7; 16]) }
/// }
/// # let db = Database::builder().create_with_backend(InMemoryBackend::new())?;
/// # let txn = db.begin_write()?;
/// # reset(&txn, Some(&Open), [0; 16])?;
/// # txn.commit()?;
/// # Tables::open(db.begin_read()?, Some(std::sync::Arc::new(Open))).check_blocks()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait BlockSeal: Send + Sync {
    /// The token of bytes at a place of the index, which cannot be computed without the key. All places have the same
    /// length.
    fn token(&self, place: &[u8], bytes: &[u8]) -> [u8; 32];

    /// Encrypts what the index is made of.
    ///
    /// # Errors
    /// Those of the engine, as `ERR_IO`.
    fn seal(&self, body: &[u8]) -> Result<Vec<u8>>;

    /// Decrypts it; `None` for bytes that this store did not seal, or sealed for an index it no longer uses.
    fn open(&self, sealed: &[u8]) -> Option<Vec<u8>>;

    /// Random bytes, which tell the blocks of a run from those of every other one.
    ///
    /// # Errors
    /// `ERR_IO` if the system has none.
    fn nonce(&self) -> Result<[u8; 16]>;
}

/// Makes and checks the tags of the blocks of one run. In a plain store a block has a checksum in place of a tag, which
/// is compared when the run is merged or checked.
#[derive(Clone, Default)]
pub(crate) struct BlockTags {
    seal: Option<Arc<dyn BlockSeal>>,
    nonce: [u8; 16],
}

impl BlockTags {
    /// The tags of a run that has these random bytes.
    pub(crate) fn new(seal: Option<&Arc<dyn BlockSeal>>, nonce: [u8; 16]) -> Self {
        Self { seal: seal.cloned(), nonce }
    }

    /// The tags of a new run.
    ///
    /// # Errors
    /// `ERR_IO` if the system has no random bytes.
    pub(crate) fn fresh(seal: Option<&Arc<dyn BlockSeal>>) -> Result<Self> {
        let nonce = seal.map_or(Ok([0; 16]), |seal| seal.nonce())?;
        Ok(Self::new(seal, nonce))
    }

    /// The random bytes of the run.
    pub(crate) fn nonce(&self) -> [u8; 16] {
        self.nonce
    }

    /// Appends the tag of bytes that stand under a key.
    pub(crate) fn tagged(&self, key: u64, mut bytes: Vec<u8>) -> Vec<u8> {
        let tag = self.tag(key, &bytes);
        bytes.extend(tag);
        bytes
    }

    /// Returns `true` if the tags cannot be made without the key of the store.
    pub(crate) fn are_sealed(&self) -> bool {
        self.seal.is_some()
    }

    /// The bytes without their tag or checksum, which is compared if `compares`.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if it does not fit.
    pub(crate) fn checked<'b>(
        &self,
        key: u64,
        stored: &'b [u8],
        compares: bool,
    ) -> Result<&'b [u8]> {
        let (bytes, tag) = stored.split_last_chunk::<TAG_BYTES>().ok_or_else(damaged)?;
        match !compares || self.tag(key, bytes) == *tag {
            true => Ok(bytes),
            false if self.seal.is_none() => {
                Err(Error::integrity("a block of the index has changed"))
            }
            false => Err(damaged()),
        }
    }

    fn tag(&self, key: u64, bytes: &[u8]) -> [u8; TAG_BYTES] {
        let Some(seal) = &self.seal else {
            let mut tag = [0; TAG_BYTES];
            let checksum = XxHash64::oneshot(key, bytes).to_be_bytes();
            tag.iter_mut().zip(checksum).for_each(|(to, byte)| *to = byte);
            return tag;
        };
        let place = [&self.nonce[..], &key.to_be_bytes()].concat();
        seal.token(&place, bytes).first_chunk().copied().unwrap_or_default()
    }
}

/// Checks that the watermark, the counters, the history and the runs are those that were sealed.
///
/// # Errors
/// `ERR_INTEGRITY` if they are not; `ERR_IO`.
pub(crate) fn check_marks(
    seal: Option<&dyn BlockSeal>,
    meta: &impl ReadableTable<&'static str, &'static [u8]>,
) -> Result<()> {
    let Some(seal) = seal else { return Ok(()) };
    let opened = meta.get(SEALED_MARKS)?.and_then(|row| seal.open(row.value()));
    match opened == Some(marks(meta)?) {
        true => Ok(()),
        false => Err(damaged()),
    }
}

/// Seals the watermark, the counters, the history and the runs, which must have been stored before.
///
/// # Errors
/// `ERR_IO`.
pub(crate) fn seal_marks(
    seal: Option<&dyn BlockSeal>,
    meta: &mut redb::Table<'_, &'static str, &'static [u8]>,
) -> Result<()> {
    let Some(seal) = seal else { return Ok(()) };
    let marks = marks(meta)?;
    meta.insert(SEALED_MARKS, seal.seal(&marks)?.as_slice())?;
    Ok(())
}

fn marks(meta: &impl ReadableTable<&'static str, &'static [u8]>) -> Result<Vec<u8>> {
    let mut marks = Vec::new();
    for name in [WATERMARK, NEXT_IDS, HISTORY, RUNS] {
        let row = meta.get(name)?.map(|row| row.value().to_vec()).unwrap_or_default();
        marks.extend(u32::try_from(row.len()).unwrap_or(u32::MAX).to_be_bytes());
        marks.extend(row);
    }
    Ok(marks)
}

pub(crate) fn damaged() -> Error {
    Error::integrity("blocks of the index were changed by somebody without the key")
}
