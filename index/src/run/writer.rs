//! A run that is written: rows in the order of lists and keys, into blocks.

use redb::Table;

use super::block::BlockBuilder;
use super::directory::RunInfo;
use super::filter::{FilterBuilder, FilterKey};
use super::lists::RunList;
use super::table::{FILTER_KEY, RESERVED_BYTES, block_key};
use crate::block_seal::BlockTags;
use crate::error::{Error, Result};
use crate::term::TermId;

/// The table of a run, open for writing.
pub(crate) type RunRows<'t> = Table<'t, &'static [u8], &'static [u8]>;

/// The state of a run that is being written, also between the transactions that write it.
pub(crate) struct RunWriter {
    info: RunInfo,
    tags: BlockTags,
    list: Option<RunList>,
    /// True until a block of the list is written.
    is_first: bool,
    block: BlockBuilder,
    filter: FilterBuilder,
    /// Bytes written so far.
    written: usize,
}

impl RunWriter {
    /// A run that will have at most so many addresses and terms.
    pub(crate) fn new(
        number: u32,
        namespace: Option<TermId>,
        tags: BlockTags,
        entries: u64,
    ) -> Self {
        Self {
            info: RunInfo { number, namespace, rows: [0; RunList::COUNT] },
            tags,
            list: None,
            is_first: true,
            block: BlockBuilder::default(),
            filter: FilterBuilder::for_entries(entries),
            written: 0,
        }
    }

    /// The number of the run.
    pub(crate) fn number(&self) -> u32 {
        self.info.number
    }

    /// The bytes of blocks written so far.
    pub(crate) fn written(&self) -> usize {
        self.written
    }

    /// Adds a row. Rows of a list ascend, and lists do.
    ///
    /// # Errors
    /// `ERR_IO`; `ERR_INTEGRITY` for a row that is not of its list.
    pub(crate) fn push(
        &mut self,
        rows: &mut RunRows<'_>,
        list: RunList,
        (key, value): (&[u8], &[u8]),
    ) -> Result<()> {
        if self.list != Some(list) {
            self.flush(rows, None)?;
            (self.list, self.is_first) = (Some(list), true);
            self.block = BlockBuilder::new(list.form());
        }
        if list.width().is_some_and(|width| width != key.len()) {
            return Err(Error::integrity("a row of the index has another width than its list"));
        }
        if self.block.is_full_for(key, value, RESERVED_BYTES) {
            self.flush(rows, Some(key))?;
        }
        self.block.push(key, value);
        match list {
            RunList::TERMS => self.filter.add(FilterKey::of_term(key)),
            RunList::ADDRESSES => {
                let address = key.first_chunk().copied().unwrap_or_default();
                self.filter.add(FilterKey::of_address(&address));
            }
            _ => {}
        }
        if let Some(count) = self.info.rows.get_mut(list.index()) {
            *count = count.saturating_add(1);
        }
        Ok(())
    }

    /// Writes what is left, and the filter.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn finish(mut self, rows: &mut RunRows<'_>) -> Result<RunInfo> {
        self.flush(rows, None)?;
        let filter = self.filter.finish();
        let filter = self.tags.tagged(self.info.number, &FILTER_KEY, filter);
        rows.insert(FILTER_KEY.as_slice(), filter.as_slice())?;
        Ok(self.info)
    }

    /// Writes the block, which the one that begins with `next` follows.
    fn flush(&mut self, rows: &mut RunRows<'_>, next: Option<&[u8]>) -> Result<()> {
        let Some(list) = self.list.filter(|_| !self.block.is_empty()) else { return Ok(()) };
        let first = if self.is_first { &[][..] } else { self.block.first() };
        let key = block_key(list, first);
        self.is_first = false;
        let block = self.tags.tagged(self.info.number, &key, self.block.finish(next));
        self.written = self.written.saturating_add(block.len());
        rows.insert(key.as_slice(), block.as_slice())?;
        Ok(())
    }
}
