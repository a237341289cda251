//! The rows of a list over several runs as one ordered sequence without duplicates.

use std::sync::Arc;

use super::cursor::RunCursor;
use super::lists::RunList;
use super::table::Run;
use crate::error::{Error, Result};
use crate::posting_lists::NAMESPACE_BYTES;

/// The rows of a list, read lazily.
pub(crate) struct MergedRows {
    list: RunList,
    sources: Vec<RowSource>,
    /// The source with the least row.
    least: usize,
}

/// The rows of one list of a run, or those of them that also stand under the namespace 0.
struct RowSource {
    cursor: RunCursor,
    list: RunList,
    /// True for a source of rows under the namespace 0, made from those of the only namespace.
    is_global: bool,
    row: Vec<u8>,
    /// Rows that the run says are to come.
    left: Option<u64>,
}

impl MergedRows {
    /// The rows of a list; `global` adds the rows under the namespace 0 that runs of one namespace leave out.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn of(runs: &[Arc<Run>], list: RunList, global: bool) -> Result<Self> {
        let mut sources = Vec::new();
        for run in runs {
            let adds_global = global && run.info.namespace.is_some();
            for is_global in [false, true].into_iter().take(1 + usize::from(adds_global)) {
                let cursor = RunCursor::new(run, list).verifying();
                // Some rows of the sample are left out.
                let is_counted = !(is_global && list == RunList::SAMPLE);
                let left = is_counted.then_some(run.info.rows_of(list));
                let mut source = RowSource { cursor, list, is_global, row: Vec::new(), left };
                if source.start()? {
                    sources.push(source);
                }
            }
        }
        let mut rows = Self { list, sources, least: 0 };
        rows.find_least();
        Ok(rows)
    }

    /// The list.
    pub(crate) fn list(&self) -> RunList {
        self.list
    }

    /// The least row that is left, and its value.
    pub(crate) fn least(&self) -> Option<(&[u8], &[u8])> {
        self.sources.get(self.least).map(|source| (source.row.as_slice(), source.cursor.value()))
    }

    /// Moves behind the least row, in all runs that have it.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, also if the row has another value elsewhere; `ERR_IO`.
    pub(crate) fn advance(&mut self) -> Result<()> {
        let Some(least) = self.sources.get(self.least) else { return Ok(()) };
        let is_equal = |source: &RowSource| source.row == least.row;
        if self.sources.iter().filter(|source| is_equal(source)).count() > 1 {
            let value = least.cursor.value();
            if self.sources.iter().any(|source| is_equal(source) && source.cursor.value() != value)
            {
                return Err(Error::integrity("a term of the index has two ids"));
            }
            let row = least.row.clone();
            for at in (0..self.sources.len()).rev() {
                if self.sources.get(at).is_some_and(|source| source.row == row) {
                    self.move_source(at)?;
                }
            }
        } else {
            self.move_source(self.least)?;
        }
        self.find_least();
        Ok(())
    }

    fn move_source(&mut self, at: usize) -> Result<()> {
        if let Some(source) = self.sources.get_mut(at)
            && !source.advance()?
        {
            self.sources.remove(at);
        }
        Ok(())
    }

    fn find_least(&mut self) {
        let rows = self.sources.iter().enumerate();
        let least = rows.min_by(|(_, a), (_, b)| a.row.cmp(&b.row));
        self.least = least.map_or(0, |(at, _)| at);
    }
}

impl RowSource {
    /// Moves to the first row; returns `false` if there is none.
    fn start(&mut self) -> Result<bool> {
        let found = self.cursor.seek(&[])?;
        self.settle(found)
    }

    fn advance(&mut self) -> Result<bool> {
        let found = self.cursor.advance()?;
        self.settle(found)
    }

    /// Takes the row the cursor is at, or the next one that stands under the namespace 0 too.
    fn settle(&mut self, mut found: bool) -> Result<bool> {
        if let Some(left) = &mut self.left {
            let next = left.checked_sub(u64::from(found));
            *left = next.filter(|next| found || *next == 0).ok_or_else(lacks_rows)?;
        }
        while found {
            self.row.clear();
            self.row.extend_from_slice(self.cursor.key());
            if !self.is_global {
                return Ok(true);
            }
            if let Some(at) = self.list.global_namespace_at(&self.row) {
                let end = at.saturating_add(NAMESPACE_BYTES);
                self.row.get_mut(at..end).unwrap_or_default().fill(0);
                return Ok(true);
            }
            // Only the sample has rows of several lists.
            if self.list != RunList::SAMPLE {
                return Ok(false);
            }
            found = self.cursor.advance()?;
        }
        Ok(false)
    }
}

fn lacks_rows() -> Error {
    Error::integrity("a run of the index has other rows than it says")
}
