//! A run that is read: its blocks, each checked against its tag in an encrypted store.
//!
//! The key of a block is the number of its list and its first row; the first block of a list has the number alone,
//! so that every row of the list falls into one block. A block says which one follows: none can be taken out unseen.
//! The filter stands under the number [`FILTER_KEY`].

use std::sync::{Arc, OnceLock};

use redb::{AccessGuard, ReadOnlyTable, ReadTransaction};

use super::block::{BlockLayout, damaged};
use super::directory::{RunInfo, RunTableDefinition};
use super::filter::{self, FilterKey};
use super::lists::RunList;
use crate::block_seal::{BlockTags, TAG_BYTES};
use crate::error::Result;
use crate::term::TermId;

/// The first byte of the key of the filter, in place of a list.
pub(crate) const FILTER_KEY: [u8; 1] = [0xff];

/// A run in a read snapshot.
pub(crate) struct Run {
    pub(crate) info: RunInfo,
    blocks: ReadOnlyTable<&'static [u8], &'static [u8]>,
    tags: BlockTags,
    filter: OnceLock<Arc<[u8]>>,
}

/// A block, checked.
pub(crate) struct Block {
    /// The key it stands under.
    pub(crate) key: Vec<u8>,
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
    /// Opens a run of a snapshot.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if there is none; `ERR_IO`.
    pub(crate) fn open(txn: &ReadTransaction, info: RunInfo, tags: BlockTags) -> Result<Self> {
        let blocks = txn.open_table(RunTableDefinition::new(&info.table()))?;
        Ok(Self { info, blocks, tags, filter: OnceLock::new() })
    }

    /// Returns `false` if the run does not have this address or term.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if its filter is missing or was changed; `ERR_IO`.
    pub(crate) fn may_have(&self, key: FilterKey) -> Result<bool> {
        if let Some(filter) = self.filter.get() {
            return Ok(filter::may_have(filter, key));
        }
        let row = self.blocks.get(FILTER_KEY.as_slice())?.ok_or_else(damaged)?;
        let bytes = self.tags.checked(self.info.number, &FILTER_KEY, row.value())?;
        Ok(filter::may_have(self.filter.get_or_init(|| bytes.into()), key))
    }

    /// The block of a list that a row falls into; `None` if the list has no rows here.
    ///
    /// # Errors
    /// `ERR_INTEGRITY` if it is missing or was changed; `ERR_IO`.
    pub(crate) fn block_for(&self, list: RunList, row: &[u8]) -> Result<Option<Block>> {
        if self.info.rows_of(list) == 0 {
            return Ok(None);
        }
        let (first, last) = ([list.number()], block_key(list, row));
        let mut blocks = self.blocks.range::<&[u8]>(first.as_slice()..=last.as_slice())?;
        let (key, block) = blocks.next_back().ok_or_else(damaged)??;
        let block = self.checked(list, key.value().to_vec(), block)?;
        match block.layout.next(block.bytes()).is_none_or(|next| row < next) {
            true => Ok(Some(block)),
            // The block it falls into was taken out.
            false => Err(damaged()),
        }
    }

    /// The block of a list that follows another one; `None` after the last.
    ///
    /// # Errors
    /// As [`Run::block_for`].
    pub(crate) fn block_after(&self, list: RunList, block: &Block) -> Result<Option<Block>> {
        let Some(next) = block.layout.next(block.bytes()) else { return Ok(None) };
        let key = block_key(list, next);
        let next = self.blocks.get(key.as_slice())?.ok_or_else(damaged)?;
        self.checked(list, key, next).map(Some)
    }

    /// The block of a list that comes before another one; `None` before the first.
    ///
    /// # Errors
    /// As [`Run::block_for`].
    pub(crate) fn block_before(&self, list: RunList, block: &Block) -> Result<Option<Block>> {
        let first = [list.number()];
        if block.key == first {
            return Ok(None);
        }
        let mut blocks = self.blocks.range::<&[u8]>(first.as_slice()..block.key.as_slice())?;
        let (key, before) = blocks.next_back().ok_or_else(damaged)??;
        let before = self.checked(list, key.value().to_vec(), before)?;
        let next = before.layout.next(before.bytes());
        if next != block.key.get(1..) {
            return Err(damaged());
        }
        Ok(Some(before))
    }

    /// The namespace 0 of a row stands for the only one of the run, which has no rows under 0.
    pub(crate) fn local_namespace(&self, namespace: TermId) -> TermId {
        match self.info.namespace {
            Some(only) if namespace == TermId::NONE => only,
            _ => namespace,
        }
    }

    fn checked(
        &self,
        list: RunList,
        key: Vec<u8>,
        bytes: AccessGuard<'static, &'static [u8]>,
    ) -> Result<Block> {
        let checked = self.tags.checked(self.info.number, &key, bytes.value())?;
        let (length, layout) = (checked.len(), BlockLayout::parse(checked, list.form())?);
        Ok(Block { key, layout, bytes, length })
    }
}

/// The key of the block of a list that begins with a row.
pub(crate) fn block_key(list: RunList, row: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(row.len().saturating_add(1));
    key.push(list.number());
    key.extend_from_slice(row);
    key
}

/// The bytes that may stand behind a block.
pub(crate) const RESERVED_BYTES: usize = TAG_BYTES;
