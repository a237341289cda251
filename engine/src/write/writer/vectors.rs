//! The vector rows of a group: new spaces, the vectors, the list of each grain's vectors, and the serving
//! space.

use grainstore_index::vectors::Space;
use redb::ReadableTable;

use super::GroupKeys;
use crate::base::error::{Error, Result};
use crate::disk::layout::{self, RemovedVectors, StoredVector};
use crate::disk::truth_tables::TruthTable;
use crate::disk::truth_transaction::RowWriter;
use crate::search::embed::Embedding;
use crate::write::plan::{StagedGrain, WritePlan};

/// Writes the vectors of new and of stored grains.
pub(super) fn write_vectors(
    rows: &mut RowWriter<'_>,
    plan: &WritePlan<'_>,
    keys: &GroupKeys<'_>,
) -> Result<()> {
    let new =
        plan.grains.iter().map(|StagedGrain { sequence, prepared }| (sequence, &prepared.vectors));
    let stored = plan.vectors.iter().map(|(sequence, vectors)| (sequence, vectors));
    let mut given = new.chain(stored).filter(|(_, vectors)| !vectors.is_empty()).peekable();
    for (model, to) in &plan.embedder_progress {
        let name = format!("{}{model}", layout::META_EMBEDDED_PREFIX);
        rows.put(TruthTable::Meta, name.as_str(), &to.to_be_bytes())?;
    }
    if given.peek().is_none() && plan.serving.is_none() {
        return Ok(());
    }
    let mut vectors = VectorWriter::new(rows, keys)?;
    for (sequence, given) in given {
        let known = vectors.rows.get(TruthTable::VectorRows, *sequence)?;
        let known = known.map(|row| layout::decode_rows(&row)).transpose()?;
        let mut list = known.unwrap_or_default();
        for Embedding { space, chunk, vector } in given {
            let (space, vector) = (vectors.number_of(space)?, vector.clone());
            let placed = StoredVector { space, sequence: *sequence, chunk: *chunk, vector };
            vectors.replace(&mut list, &placed)?;
        }
        let list = layout::encode_rows(&list);
        vectors.rows.put(TruthTable::VectorRows, *sequence, &list)?;
    }
    if let Some(space) = &plan.serving {
        let row = layout::seal_serving(vectors.number_of(space)?);
        rows.put(TruthTable::Meta, layout::META_SERVING, &row)?;
    }
    Ok(())
}

struct VectorWriter<'w, 't> {
    rows: &'w mut RowWriter<'t>,
    keys: &'w GroupKeys<'w>,
    /// Row number of the next vector.
    next_row: u64,
    /// The last row and space number of removed vectors, which are not used again.
    removed: RemovedVectors,
}

impl<'w, 't> VectorWriter<'w, 't> {
    fn new(rows: &'w mut RowWriter<'t>, keys: &'w GroupKeys<'w>) -> Result<Self> {
        let removed = rows.get(TruthTable::Meta, layout::META_REMOVED_VECTORS)?;
        let removed = removed.map(|row| RemovedVectors::open(&row)).transpose()?;
        let removed = removed.unwrap_or_default();
        let last = rows.last_number(TruthTable::Vectors)?.max(removed.row);
        Ok(Self { rows, keys, next_row: last.saturating_add(1), removed })
    }

    /// Returns the number of a space; a new one is assigned and stored.
    fn number_of(&mut self, space: &Space) -> Result<u32> {
        let mut last = u64::from(self.removed.space);
        if let Some(spaces) = self.rows.numbered(TruthTable::Spaces)? {
            for row in spaces.iter()? {
                let (number, record) = row?;
                let number = number.value();
                if layout::open_space(number, record.value())? == *space {
                    return space_number(number);
                }
                last = last.max(number);
            }
        }
        let number = last.saturating_add(1);
        self.rows.put(TruthTable::Spaces, number, &layout::seal_space(number, space)?)?;
        space_number(number)
    }

    /// Writes a vector, replacing that of the same chunk and space if there is one.
    fn replace(&mut self, list: &mut Vec<u64>, placed: &StoredVector) -> Result<()> {
        let mut kept = Vec::with_capacity(list.len() + 1);
        for row in list.drain(..) {
            let before = self.rows.get(TruthTable::Vectors, row)?;
            let before = before.map(|bytes| StoredVector::open(row, &bytes, self.keys.vault));
            let same = before
                .transpose()?
                .is_some_and(|before| (before.space, before.chunk) == (placed.space, placed.chunk));
            match same {
                true => drop(self.rows.remove(TruthTable::Vectors, row)?),
                false => kept.push(row),
            }
        }
        let row = self.next_row;
        self.next_row = row.saturating_add(1);
        let sealed = placed.seal(row, self.keys.vault, &self.keys.key_at(placed.sequence)?)?;
        self.rows.put(TruthTable::Vectors, row, &sealed)?;
        kept.push(row);
        *list = kept;
        Ok(())
    }
}

fn space_number(number: u64) -> Result<u32> {
    u32::try_from(number).map_err(|_| Error::integrity("a space has an impossible number"))
}
