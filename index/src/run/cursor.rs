//! The rows of a list of a run in order, read block by block.

use std::sync::Arc;

use super::block::{BlockRow, damaged};
use super::lists::RunList;
use super::table::{Block, Run};
use crate::error::Result;
use crate::keys::{OrderKey, PostingKey};
use crate::posting::TimeOrder;
use crate::posting_lists::PostingList;

/// A place in a list. Before the first [`seek`](RunCursor::seek) it is at no row.
pub(crate) struct RunCursor {
    run: Arc<Run>,
    list: RunList,
    block: Option<Block>,
    row: BlockRow,
    verifies: bool,
}

impl RunCursor {
    /// A cursor over a list.
    pub(crate) fn new(run: &Arc<Run>, list: RunList) -> Self {
        let (run, row) = (Arc::clone(run), BlockRow::default());
        Self { run, list, block: None, row, verifies: false }
    }

    /// Has the checksum of each block compared.
    pub(crate) fn verifying(self) -> Self {
        Self { verifies: true, ..self }
    }

    /// Moves to the first row that is not less than `key`; returns `false` if there is none.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn seek(&mut self, key: &[u8]) -> Result<bool> {
        let is_here = self.block.as_ref().is_some_and(|at| self.run.covers(self.list, at, key));
        if !is_here {
            self.block = self.run.block_for(self.list, key, self.verifies)?;
        }
        let Some(block) = &self.block else { return Ok(false) };
        match block.layout.seek(block.bytes(), key, &mut self.row)? {
            true => Ok(true),
            false => self.next_block(),
        }
    }

    /// Moves to the next row; returns `false` at the end of the list.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn advance(&mut self) -> Result<bool> {
        let Some(block) = &self.block else { return Ok(false) };
        match block.layout.advance(block.bytes(), &mut self.row)? {
            true => Ok(true),
            false => self.next_block(),
        }
    }

    /// The row.
    pub(crate) fn key(&self) -> &[u8] {
        &self.row.key
    }

    /// The value of the row.
    pub(crate) fn value(&self) -> &[u8] {
        let block = self.block.as_ref();
        block.and_then(|block| block.bytes().get(self.row.value.clone())).unwrap_or_default()
    }

    fn next_block(&mut self) -> Result<bool> {
        let next = match &self.block {
            Some(block) => self.run.block_after(self.list, block, self.verifies)?,
            None => None,
        };
        self.block = next;
        let Some(block) = &self.block else { return Ok(false) };
        block.layout.first(block.bytes(), &mut self.row)?;
        Ok(true)
    }
}

/// The order keys of the rows of a posting list from one key to another, both included, read lazily.
pub(crate) enum OrderKeys {
    /// Nothing is left.
    End,
    /// In the order of the rows.
    Newest { cursor: RunCursor, width: usize, last: PostingKey, started: bool },
    /// Against it: the order keys that are left of a block, and the block.
    Oldest { run: Arc<Run>, list: RunList, first: PostingKey, left: Vec<OrderKey>, block: Block },
}

impl OrderKeys {
    /// The order keys of the rows of a list from `first` to `last`.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn between(
        run: &Arc<Run>,
        list: PostingList,
        (first, last): (&PostingKey, &PostingKey),
        order: TimeOrder,
    ) -> Result<Self> {
        let (width, list) = (list.def().width, RunList::from(list));
        if first > last {
            return Ok(Self::End);
        }
        match order {
            TimeOrder::Newest => {
                let mut cursor = RunCursor::new(run, list);
                match cursor.seek(row_of(first, width)) {
                    Ok(true) => Ok(Self::from_here(cursor, width, *last)),
                    other => other.map(|_| Self::End),
                }
            }
            TimeOrder::Oldest => {
                let Some(block) = run.block_for(list, row_of(last, width), false)? else {
                    return Ok(Self::End);
                };
                let left = order_keys_in(&block, (row_of(first, width), row_of(last, width)))?;
                let run = Arc::clone(run);
                Ok(Self::Oldest { run, list, first: *first, left, block })
            }
        }
    }

    /// The order keys of the rows from that of a cursor to `last`, the newest first.
    pub(crate) fn from_here(cursor: RunCursor, width: usize, last: PostingKey) -> Self {
        Self::Newest { cursor, width, last, started: false }
    }

    /// The next order key.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`; nothing is left then.
    pub(crate) fn next_key(&mut self) -> Result<Option<OrderKey>> {
        let next = self.step();
        if !matches!(next, Ok(Some(_))) {
            *self = Self::End;
        }
        next
    }

    fn step(&mut self) -> Result<Option<OrderKey>> {
        match self {
            Self::End => Ok(None),
            Self::Newest { cursor, width, last, started } => {
                if *started && !cursor.advance()? {
                    return Ok(None);
                }
                *started = true;
                if cursor.key() > row_of(last, *width) {
                    return Ok(None);
                }
                OrderKey::from_row(cursor.key()).map(Some).ok_or_else(damaged)
            }
            Self::Oldest { run, list, first, left, block } => loop {
                if let Some(rank) = left.pop() {
                    return Ok(Some(rank));
                }
                let start = row_of(first, list.width().unwrap_or_default());
                if run.covers(*list, block, start) {
                    return Ok(None);
                }
                let Some(before) = run.block_before(*list, block)? else { return Ok(None) };
                *left = order_keys_in(&before, (start, &[0xff; 64]))?;
                *block = before;
            },
        }
    }
}

/// The order keys of the rows of a block from `first` to `last`.
fn order_keys_in(block: &Block, (first, last): (&[u8], &[u8])) -> Result<Vec<OrderKey>> {
    let (mut row, mut found) = (BlockRow::default(), Vec::new());
    let mut more = block.layout.seek(block.bytes(), first, &mut row)?;
    while more && row.key.as_slice() <= last {
        found.push(OrderKey::from_row(&row.key).ok_or_else(damaged)?);
        more = block.layout.advance(block.bytes(), &mut row)?;
    }
    Ok(found)
}

/// The row in a key, without the number of its list.
pub(crate) fn row_of(key: &PostingKey, width: usize) -> &[u8] {
    key.get(1..=width).unwrap_or_default()
}
