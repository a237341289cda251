//! A run that is read: its blocks, in an encrypted store each compared with its tag when it is first read.
//!
//! The key of a block is the number of its list, then its number in the list ([`block_key`]). [`FILTER_KEY`] and
//! [`FENCES_KEY`] stand behind them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use redb::{AccessGuard, ReadOnlyTable, ReadTransaction};

use super::block::{BlockLayout, BlockRow, damaged};
use super::compared::ComparedBlocks;
use super::directory::{RunDirectory, RunInfo, RunTableDefinition};
use super::fences::Fences;
use super::filter::{self, FilterKey};
use super::lists::RunList;
use crate::block_seal::{BlockSeal, BlockTags, TAG_BYTES};
use crate::error::Result;
use crate::posting_lists::PostingList;
use crate::term::TermId;

/// Key of the filter.
pub(crate) const FILTER_KEY: u64 = u64::MAX - 1;
/// Key of the fences.
pub(crate) const FENCES_KEY: u64 = u64::MAX;

/// The bytes that may stand behind a block.
pub(crate) const RESERVED_BYTES: usize = TAG_BYTES;

/// The most rows in a block.
const MAX_BLOCK_ROWS: u64 = u16::MAX as u64;
/// The bytes a block takes, but for one with a long row.
const BLOCK_BYTES: u64 = 4_096;

/// A run in a read snapshot.
pub(crate) struct Run {
    pub(crate) info: RunInfo,
    blocks: ReadOnlyTable<u64, &'static [u8]>,
    tags: BlockTags,
    parts: Arc<RunParts>,
}

/// What is kept in memory of a run, which never changes.
#[derive(Debug, Default)]
struct RunParts {
    filter: OnceLock<Vec<u8>>,
    fences: OnceLock<Fences>,
    compared: OnceLock<ComparedBlocks>,
    namespaces: [OnceLock<Option<Box<[TermId]>>>; PostingList::COUNT],
}

/// The random bytes of an index and of a run, and the number of the run.
type RunKey = ([u8; 16], [u8; 16], u32);

/// What is kept in memory of the runs that several snapshots have in common. Cheap to clone.
///
/// ```
/// # use grainstore_index::reset;
/// # use redb::{Database, ReadableDatabase, backends::InMemoryBackend};
/// # let db = Database::builder().create_with_backend(InMemoryBackend::new())?;
/// # let txn = db.begin_write()?;
/// # reset(&txn, None, [0; 16])?;
/// # txn.commit()?;
/// use grainstore_index::{RunCache, Tables};
///
/// let cache = RunCache::default();
/// // Snapshots of `db`, one after the other.
/// for _ in 0..2 {
///     let tables = Tables::open(db.begin_read()?, None).with_cache(&cache);
///     assert_eq!(tables.run_count()?, 0);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct RunCache {
    parts: Arc<Mutex<BTreeMap<RunKey, Arc<RunParts>>>>,
}

impl RunCache {
    /// What is kept of each of these runs, from now on of no others.
    fn parts_of(&self, directory: &RunDirectory) -> Vec<Arc<RunParts>> {
        let mut kept = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut used = BTreeMap::new();
        let parts = directory.runs.iter().map(|run| {
            let key = (directory.nonce, run.nonce, run.number);
            let parts = used.entry(key).or_insert_with(|| kept.remove(&key).unwrap_or_default());
            Arc::clone(parts)
        });
        let parts = parts.collect();
        *kept = used;
        parts
    }
}

/// A block, checked.
pub(crate) struct Block {
    /// Its number in its list.
    pub(crate) number: u32,
    pub(crate) layout: BlockLayout,
    bytes: AccessGuard<'static, &'static [u8]>,
    length: usize,
}

impl Block {
    /// Its bytes, without its tag.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.value().get(..self.length).unwrap_or_default()
    }
}

impl Run {
    /// The bytes that are kept in memory of it.
    pub(crate) fn memory(&self) -> usize {
        let filter = self.parts.filter.get().map_or(0, Vec::len);
        filter.saturating_add(self.parts.fences.get().map_or(0, Fences::memory))
    }

    /// Opens the runs of a snapshot, the oldest first.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if there is none of one; `ERR_IO`.
    pub(crate) fn open_all(
        txn: &ReadTransaction,
        directory: RunDirectory,
        (seal, cache): (Option<&Arc<dyn BlockSeal>>, &RunCache),
    ) -> Result<Vec<Arc<Self>>> {
        let parts = cache.parts_of(&directory);
        let runs = directory.runs.into_iter().zip(parts).map(|(info, parts)| {
            let blocks = txn.open_table(RunTableDefinition::new(&info.table()))?;
            let tags = BlockTags::new(seal, info.nonce);
            Ok(Arc::new(Self { info, blocks, tags, parts }))
        });
        runs.collect()
    }

    /// Returns `false` if the run does not have this address or term.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if its filter is missing or was changed; `ERR_IO`.
    pub(crate) fn may_have(&self, key: FilterKey) -> Result<bool> {
        if let Some(filter) = self.parts.filter.get() {
            return Ok(filter::may_have(filter, key));
        }
        let bytes = self.part(FILTER_KEY)?;
        Ok(filter::may_have(self.parts.filter.get_or_init(|| bytes), key))
    }

    /// Hands the row of a list from `first` to `last`, both included, to `read`, with its value; `None` if there is
    /// none. For keys between which there is one row at most.
    ///
    /// # Errors
    /// As [`Run::block_for`], and those of `read`.
    pub(crate) fn find<T>(
        &self,
        list: RunList,
        (first, last): (&[u8], &[u8]),
        read: impl FnOnce(&[u8], &[u8]) -> Result<T>,
    ) -> Result<Option<T>> {
        // The block of the last key has the row: the next one begins behind it.
        let Some(block) = self.block_for(list, last, false)? else { return Ok(None) };
        let (bytes, mut row) = (block.bytes(), BlockRow::default());
        if !block.layout.seek(bytes, first, &mut row)? || row.key.as_slice() > last {
            return Ok(None);
        }
        read(&row.key, bytes.get(row.value).unwrap_or_default()).map(Some)
    }

    /// The namespaces that a posting list has rows of, ascending, once they are known.
    pub(crate) fn namespaces(&self, list: PostingList) -> &OnceLock<Option<Box<[TermId]>>> {
        let [first, ..] = &self.parts.namespaces;
        self.parts.namespaces.get(list as usize).unwrap_or(first)
    }

    /// The most rows that the blocks of a list can have, whatever the directory says.
    ///
    /// # Errors
    /// As [`Run::block_for`].
    pub(crate) fn max_rows(&self, list: RunList) -> Result<u64> {
        let blocks = u64::from(self.fences()?.blocks_of(list));
        Ok(self.info.rows_of(list).min(blocks.saturating_mul(MAX_BLOCK_ROWS)))
    }

    /// The bytes of its blocks, about.
    ///
    /// # Errors
    /// As [`Run::block_for`].
    pub(crate) fn bytes(&self) -> Result<u64> {
        let fences = self.fences()?;
        let blocks = RunList::all().map(|list| u64::from(fences.blocks_of(list)));
        Ok(blocks.fold(0_u64, u64::saturating_add).saturating_mul(BLOCK_BYTES))
    }

    /// The block of a list that a row falls into; `None` if the list has no rows here. Tags and checksums are compared
    /// if `verifies`, tags also if they were not yet.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if it is missing or was changed; `ERR_IO`.
    pub(crate) fn block_for(
        &self,
        list: RunList,
        row: &[u8],
        verifies: bool,
    ) -> Result<Option<Block>> {
        if self.info.rows_of(list) == 0 {
            return Ok(None);
        }
        let number = self.fences()?.block_of(list, row).ok_or_else(damaged)?;
        self.block(list, number, verifies).map(Some)
    }

    /// The block of a list that follows another one; `None` after the last.
    ///
    /// # Errors
    /// As [`Run::block_for`].
    pub(crate) fn block_after(
        &self,
        list: RunList,
        block: &Block,
        verifies: bool,
    ) -> Result<Option<Block>> {
        let next = block.number.saturating_add(1);
        let is_there = next < self.fences()?.blocks_of(list);
        is_there.then(|| self.block(list, next, verifies)).transpose()
    }

    /// The block of a list that comes before another one; `None` before the first.
    ///
    /// # Errors
    /// As [`Run::block_for`].
    pub(crate) fn block_before(&self, list: RunList, block: &Block) -> Result<Option<Block>> {
        let before = block.number.checked_sub(1);
        before.map(|before| self.block(list, before, false)).transpose()
    }

    /// Returns `true` if a row falls into this block of a list.
    pub(crate) fn covers(&self, list: RunList, block: &Block, row: &[u8]) -> bool {
        let fences = self.parts.fences.get();
        fences.is_some_and(|fences| fences.covers(list, block.number, row))
    }

    /// The namespace 0 of a row stands for the only one of the run, which has no rows under 0.
    pub(crate) fn local_namespace(&self, namespace: TermId) -> TermId {
        match self.info.namespace {
            Some(only) if namespace == TermId::NONE => only,
            _ => namespace,
        }
    }

    fn fences(&self) -> Result<&Fences> {
        if let Some(fences) = self.parts.fences.get() {
            return Ok(fences);
        }
        let fences = Fences::read(self.part(FENCES_KEY)?).ok_or_else(damaged)?;
        Ok(self.parts.fences.get_or_init(|| fences))
    }

    fn part(&self, key: u64) -> Result<Vec<u8>> {
        let row = self.blocks.get(key)?.ok_or_else(damaged)?;
        Ok(self.tags.checked(key, row.value(), true)?.to_vec())
    }

    fn block(&self, list: RunList, number: u32, verifies: bool) -> Result<Block> {
        let key = block_key(list, number);
        let bytes = self.blocks.get(key)?.ok_or_else(damaged)?;
        let checked = match self.tags.are_sealed() {
            true => self.compared_block((list, number), bytes.value(), verifies)?,
            false => self.tags.checked(key, bytes.value(), verifies)?,
        };
        let (length, layout) = (checked.len(), BlockLayout::parse(checked, list.form())?);
        Ok(Block { number, layout, bytes, length })
    }

    /// A block without its tag, which is compared if it was not yet.
    fn compared_block<'b>(
        &self,
        (list, number): (RunList, u32),
        stored: &'b [u8],
        verifies: bool,
    ) -> Result<&'b [u8]> {
        let fences = self.fences()?;
        let compared = self.parts.compared.get_or_init(|| ComparedBlocks::none_of(fences.blocks()));
        let place = fences.place_of(list, number).ok_or_else(damaged)?;
        let compares = verifies || !compared.has(place, stored);
        let checked = self.tags.checked(block_key(list, number), stored, compares)?;
        if compares {
            compared.note(place, stored);
        }
        Ok(checked)
    }
}

/// The key of a block: the list in the upper half, its number there in the lower.
pub(crate) fn block_key(list: RunList, number: u32) -> u64 {
    u64::from(list.number()) << 32 | u64::from(number)
}
