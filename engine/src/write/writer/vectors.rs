//! The vector rows of a group: new spaces, the vectors, the list of each grain's vectors, and the serving
//! space.

use redb::{ReadableTable, Table, WriteTransaction};

use super::GroupKeys;
use crate::base::error::{Error, Result};
use crate::disk::layout::{self, RemovedVectors, StoredVector};
use crate::disk::row_sums::{SumChanges, SummedTable};
use crate::disk::vault::Vault;
use crate::search::embed::Embedding;
use crate::write::plan::{StagedGrain, WritePlan};

/// The tables, open for writing.
struct VectorTables<'t, 'v> {
    spaces: Table<'t, u64, &'static [u8]>,
    vectors: Table<'t, u64, &'static [u8]>,
    rows: Table<'t, u64, &'static [u8]>,
    /// Row number of the next vector.
    next_row: u64,
    /// The last row and space number of removed vectors, which are not used again.
    removed: RemovedVectors,
    sums: SumChanges<'v>,
}

/// Writes the vectors of new and of stored grains.
pub(super) fn write_vectors(
    txn: &WriteTransaction,
    plan: &WritePlan<'_>,
    keys: &GroupKeys<'_>,
) -> Result<()> {
    let new =
        plan.grains.iter().map(|StagedGrain { sequence, prepared }| (sequence, &prepared.vectors));
    let stored = plan.vectors.iter().map(|(sequence, vectors)| (sequence, vectors));
    let mut given = new.chain(stored).filter(|(_, vectors)| !vectors.is_empty()).peekable();
    for (model, to) in &plan.embedder_progress {
        let name = format!("{}{model}", layout::META_EMBEDDED_PREFIX);
        txn.open_table(layout::META)?.insert(name.as_str(), to.to_be_bytes().as_slice())?;
    }
    if given.peek().is_none() && plan.serving.is_none() {
        return Ok(());
    }
    let mut tables = VectorTables::open(txn, keys.vault)?;
    for (sequence, vectors) in given {
        let known = tables.rows.get(sequence.get())?.map(|row| layout::decode_rows(row.value()));
        let mut rows = known.transpose()?.unwrap_or_default();
        for Embedding { space, chunk, vector } in vectors {
            let (space, vector) = (tables.number_of(space)?, vector.clone());
            let placed = StoredVector { space, sequence: *sequence, chunk: *chunk, vector };
            tables.replace(&mut rows, &placed, keys)?;
        }
        let list = layout::encode_rows(&rows);
        let former = tables.rows.insert(sequence.get(), list.as_slice())?;
        tables.sums.replace(SummedTable::VectorRows, sequence.get(), former, Some(&list));
    }
    if let Some(space) = &plan.serving {
        let row = layout::seal_serving(tables.number_of(space)?);
        txn.open_table(layout::META)?.insert(layout::META_SERVING, row.as_slice())?;
    }
    tables.sums.write(txn)
}

impl<'t, 'v> VectorTables<'t, 'v> {
    fn open(txn: &'t WriteTransaction, vault: &'v Vault) -> Result<Self> {
        let meta = txn.open_table(layout::META)?;
        let gone =
            meta.get(layout::META_REMOVED_VECTORS)?.map(|row| RemovedVectors::open(row.value()));
        let gone = gone.transpose()?.unwrap_or_default();
        let vectors = txn.open_table(layout::VECTORS)?;
        let last = vectors.last()?.map_or(0, |(row, _)| row.value()).max(gone.row);
        Ok(Self {
            spaces: txn.open_table(layout::SPACES)?,
            rows: txn.open_table(layout::VECTOR_ROWS)?,
            vectors,
            next_row: last.saturating_add(1),
            removed: gone,
            sums: SumChanges::of(vault),
        })
    }

    /// Returns the number of a space; a new one is assigned and stored.
    fn number_of(&mut self, space: &grainstore_index::vectors::Space) -> Result<u32> {
        let mut last = u64::from(self.removed.space);
        for row in self.spaces.iter()? {
            let (number, record) = row?;
            let number = number.value();
            if layout::open_space(number, record.value())? == *space {
                return space_number(number);
            }
            last = last.max(number);
        }
        let number = last.saturating_add(1);
        let row = layout::seal_space(number, space)?;
        let former = self.spaces.insert(number, row.as_slice())?;
        self.sums.replace(SummedTable::Spaces, number, former, Some(&row));
        space_number(number)
    }

    /// Writes a vector, replacing that of the same chunk and space if there is one.
    fn replace(
        &mut self,
        rows: &mut Vec<u64>,
        placed: &StoredVector,
        keys: &GroupKeys<'_>,
    ) -> Result<()> {
        let mut kept = Vec::with_capacity(rows.len() + 1);
        for row in rows.drain(..) {
            let before = self.vectors.get(row)?;
            let before = before.map(|bytes| StoredVector::open(row, bytes.value(), keys.vault));
            let same = before
                .transpose()?
                .is_some_and(|before| (before.space, before.chunk) == (placed.space, placed.chunk));
            if same {
                let former = self.vectors.remove(row)?;
                self.sums.replace(SummedTable::Vectors, row, former, None);
            } else {
                kept.push(row);
            }
        }
        let row = self.next_row;
        self.next_row = row.saturating_add(1);
        let sealed = placed.seal(row, keys.vault, &keys.key_at(placed.sequence)?)?;
        let former = self.vectors.insert(row, sealed.as_slice())?;
        self.sums.replace(SummedTable::Vectors, row, former, Some(&sealed));
        kept.push(row);
        *rows = kept;
        Ok(())
    }
}

fn space_number(number: u64) -> Result<u32> {
    u32::try_from(number).map_err(|_| Error::integrity("a space has an impossible number"))
}
