//! Figures about the index that are cheap to read.

use redb::ReadableTableMetadata;

use crate::error::Result;
use crate::posting_lists::POSTING_LISTS;
use crate::reader::IndexReader;

/// The size of one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableStats {
    /// The name of the table.
    pub table: &'static str,
    /// The number of its rows.
    pub rows: u64,
    /// The bytes of its rows if all have one width; pages take somewhat more.
    pub row_bytes: Option<u64>,
}

/// The size of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexStats {
    /// The tables: every posting list, then sample, addresses and terms.
    pub tables: Vec<TableStats>,
    /// Grains in the tail.
    pub tail_grains: usize,
    /// Approximate memory of the tail, in bytes.
    pub tail_bytes: usize,
}

impl IndexReader<'_> {
    /// The figures of this view.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub fn stats(&self) -> Result<IndexStats> {
        let (view, tail) = (self.dictionary.tables, self.dictionary.tail);
        let of = |table, rows: u64, width: Option<u64>| {
            let row_bytes = width.map(|width| rows.saturating_mul(width));
            TableStats { table, rows, row_bytes }
        };
        let mut tables = Vec::with_capacity(POSTING_LISTS.len().saturating_add(3));
        for def in &POSTING_LISTS {
            let rows = view.list(def.list)?.count()?;
            tables.push(of(def.table, rows, Some(def.width as u64)));
        }
        tables.push(of("index.sample", view.sample()?.len()?, Some(35)));
        tables.push(of("index.address", view.addresses()?.len()?, Some(40)));
        tables.push(of("index.terms", view.terms()?.len()?, None));
        Ok(IndexStats { tables, tail_grains: tail.grains(), tail_bytes: tail.approx_bytes() })
    }
}
