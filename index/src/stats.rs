//! Figures about the index that are cheap to read.

use redb::ReadableTableMetadata;

use crate::error::Result;
use crate::posting_lists::POSTING_LISTS;
use crate::reader::IndexReader;

/// The size of one table, in [`IndexStats`].
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
///
/// ```
/// # use grainstore_index::{Tables, Tail, reset};
/// # use redb::{Database, ReadableDatabase, backends::InMemoryBackend};
/// # let db = Database::builder().create_with_backend(InMemoryBackend::new())?;
/// # let txn = db.begin_write()?;
/// # reset(&txn, None)?;
/// # txn.commit()?;
/// # let tables = Tables::open(db.begin_read()?, None);
/// # let mut tail = Tail::after(&tables)?;
/// # use grainstore_format::{BeliefBuilder, Encoding, EpochMs, GrainRef};
/// # use grainstore_index::{IndexedFields, Sequence};
/// # for (sequence, subject) in [(0, "alice"), (1, "ann"), (2, "alice")] {
/// #     let time = EpochMs::new(1_768_471_200_000 + sequence);
/// #     let grain = BeliefBuilder::new(time, subject, "mg:prefers", "tea", 0.9).build()?;
/// #     let blob = grain.encode(Encoding::MessagePack)?;
/// #     let (address, fields) = (*blob.address().as_bytes(), GrainRef::new(blob.bytes())?);
/// #     let fields = IndexedFields::from_grain(&fields);
/// #     tail.push(&tables, Sequence::new(sequence as u64), address, &fields)?;
/// # }
/// use grainstore_index::IndexReader;
///
/// // `tables` are empty, and `tail` holds three beliefs.
/// let stats = IndexReader::new(&tables, &tail).stats()?;
/// assert_eq!(stats.tail_grains, 3);
/// assert!(stats.tables.iter().all(|table| table.table.starts_with("index.")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
