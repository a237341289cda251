//! Figures about the index that are cheap to read.

use crate::error::Result;
use crate::reader::IndexReader;
use crate::run::lists::RunList;

/// The size of one table, in [`IndexStats`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableStats {
    /// The name of the table.
    pub table: &'static str,
    /// The number of its rows.
    pub rows: u64,
    /// The bytes of its rows if all have one width; on disk they take less, since what a row shares with the one
    /// before is left out.
    pub row_bytes: Option<u64>,
}

/// The size of an index.
///
/// ```
/// # use grainstore_index::{Tables, Tail, reset};
/// # use redb::{Database, ReadableDatabase, backends::InMemoryBackend};
/// # let db = Database::builder().create_with_backend(InMemoryBackend::new())?;
/// # let txn = db.begin_write()?;
/// # reset(&txn, None, [0; 16])?;
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
    /// The tables: every posting list, then sample, terms and addresses.
    pub tables: Vec<TableStats>,
    /// The sorted runs the tables are in: a look-up reads each.
    pub runs: usize,
    /// Bytes that are kept in memory of the runs: where their blocks begin, and their filters.
    pub run_bytes: usize,
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
        let runs = view.runs()?;
        let tables = RunList::all().map(|list| {
            let rows = runs.iter().map(|run| run.info.rows_of(list));
            let rows = rows.fold(0_u64, u64::saturating_add);
            let row_bytes = list.width().map(|width| rows.saturating_mul(width as u64));
            TableStats { table: list.name(), rows, row_bytes }
        });
        let run_bytes = runs.iter().map(|run| run.memory()).fold(0, usize::saturating_add);
        Ok(IndexStats {
            tables: tables.collect(),
            runs: runs.len(),
            run_bytes,
            tail_grains: tail.grains(),
            tail_bytes: tail.approx_bytes(),
        })
    }
}
