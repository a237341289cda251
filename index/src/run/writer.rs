//! A run that is written: rows in the order of lists and keys, into blocks.

use redb::Table;

use super::block::BlockBuilder;
use super::directory::RunInfo;
use super::fences::FenceBuilder;
use super::filter::{FilterBuilder, FilterKey};
use super::lists::RunList;
use super::table::{FENCES_KEY, FILTER_KEY, RESERVED_BYTES, block_key};
use crate::block_seal::BlockTags;
use crate::error::{Error, Result};
use crate::term::TermId;

/// The longest key of a term is shorter than this.
const MAX_KEY_BYTES: usize = 1_024;

/// The table of a run, open for writing.
pub(crate) type RunRows<'t> = Table<'t, u64, &'static [u8]>;

/// The state of a run that is being written, also between the transactions that write it.
pub(crate) struct RunWriter {
    info: RunInfo,
    tags: BlockTags,
    list: Option<RunList>,
    block: BlockBuilder,
    fences: FenceBuilder,
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
            info: RunInfo { number, namespace, nonce: tags.nonce(), rows: [0; RunList::COUNT] },
            tags,
            list: None,
            block: BlockBuilder::default(),
            fences: FenceBuilder::default(),
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
    /// `ERR_IO`; `ERR_INTEGRITY` for a row that is not of its list, or does not ascend.
    pub(crate) fn push(
        &mut self,
        rows: &mut RunRows<'_>,
        list: RunList,
        (key, value): (&[u8], &[u8]),
    ) -> Result<()> {
        if self.list != Some(list) {
            self.flush(rows)?;
            self.list = Some(list);
            self.block = BlockBuilder::new(list.form());
        }
        if list.width().is_some_and(|width| width != key.len()) || key.len() > MAX_KEY_BYTES {
            return Err(Error::integrity("a row of the index has another width than its list"));
        }
        if !self.block.last().is_empty() && self.block.last() >= key {
            return Err(Error::integrity("the rows of the index are out of order"));
        }
        if self.block.is_full_for(key, value, RESERVED_BYTES) {
            self.flush(rows)?;
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

    /// Writes what is left, the filter and the fences.
    ///
    /// # Errors
    /// `ERR_IO`.
    pub(crate) fn finish(mut self, rows: &mut RunRows<'_>) -> Result<RunInfo> {
        self.flush(rows)?;
        let parts = [(FILTER_KEY, self.filter.finish()), (FENCES_KEY, self.fences.finish())];
        for (key, part) in parts {
            rows.insert(key, self.tags.tagged(key, part).as_slice())?;
        }
        Ok(self.info)
    }

    /// Writes the block.
    fn flush(&mut self, rows: &mut RunRows<'_>) -> Result<()> {
        let Some(list) = self.list.filter(|_| !self.block.is_empty()) else { return Ok(()) };
        let key = block_key(list, self.fences.add(list, self.block.first()));
        let block = self.tags.tagged(key, self.block.finish());
        self.written = self.written.saturating_add(block.len());
        rows.insert(key, block.as_slice())?;
        Ok(())
    }
}
