//! What a group writes of vectors: new spaces, the vectors, and which of them a grain has.

use redb::{ReadableTable, Table, WriteTransaction};

use crate::embed::Embedding;
use crate::error::{Error, Result};
use crate::keys::{self, Placed};
use crate::plan::{Plan, Staged};

/// The tables, open for writing.
struct Tables<'t> {
    spaces: Table<'t, u64, &'static [u8]>,
    vectors: Table<'t, u64, &'static [u8]>,
    rows: Table<'t, u64, &'static [u8]>,
    /// The row the next vector gets.
    next: u64,
}

/// Writes the vectors of new grains, and of those that were stored before.
pub(super) fn write_vectors(txn: &WriteTransaction, plan: &Plan<'_>) -> Result<()> {
    let new = plan.grains.iter().map(|Staged { sequence, prepared }| (sequence, &prepared.vectors));
    let stored = plan.vectors.iter().map(|(sequence, vectors)| (sequence, vectors));
    let mut given = new.chain(stored).filter(|(_, vectors)| !vectors.is_empty()).peekable();
    if let Some((model, to)) = &plan.embedded {
        let name = format!("{}{model}", keys::META_EMBEDDED);
        txn.open_table(keys::META)?.insert(name.as_str(), to.to_be_bytes().as_slice())?;
    }
    if given.peek().is_none() {
        return Ok(());
    }
    let vectors = txn.open_table(keys::VECTORS)?;
    let last = vectors.last()?.map_or(0, |(row, _)| row.value());
    let mut tables = Tables {
        spaces: txn.open_table(keys::SPACES)?,
        rows: txn.open_table(keys::VECTOR_ROWS)?,
        vectors,
        next: last.saturating_add(1),
    };
    for (sequence, vectors) in given {
        let known = tables.rows.get(sequence.get())?.map(|row| keys::decode_rows(row.value()));
        let mut rows = known.transpose()?.unwrap_or_default();
        for Embedding { space, chunk, vector } in vectors {
            let (space, vector) = (tables.number_of(space)?, vector.clone());
            let placed = Placed { space, sequence: *sequence, chunk: *chunk, vector };
            tables.replace(&mut rows, &placed)?;
        }
        tables.rows.insert(sequence.get(), keys::encode_rows(&rows).as_slice())?;
    }
    Ok(())
}

impl Tables<'_> {
    /// The number of a space, which is written down if it has none.
    fn number_of(&mut self, space: &grainstore_index::vectors::Space) -> Result<u32> {
        let mut last = 0;
        for row in self.spaces.iter()? {
            let (number, record) = row?;
            last = number.value();
            if keys::open_space(last, record.value())? == *space {
                return narrow(last);
            }
        }
        let number = last.saturating_add(1);
        self.spaces.insert(number, keys::seal_space(number, space)?.as_slice())?;
        narrow(number)
    }

    /// Writes a vector in place of the one that part of the grain has in this space, if it has one.
    fn replace(&mut self, rows: &mut Vec<u64>, placed: &Placed) -> Result<()> {
        let mut kept = Vec::with_capacity(rows.len() + 1);
        for row in rows.drain(..) {
            let before = self.vectors.get(row)?.map(|bytes| Placed::open(row, bytes.value()));
            let same = before
                .transpose()?
                .is_some_and(|before| (before.space, before.chunk) == (placed.space, placed.chunk));
            if same {
                self.vectors.remove(row)?;
            } else {
                kept.push(row);
            }
        }
        let row = self.next;
        self.next = row.saturating_add(1);
        self.vectors.insert(row, placed.seal(row).as_slice())?;
        kept.push(row);
        *rows = kept;
        Ok(())
    }
}

fn narrow(number: u64) -> Result<u32> {
    u32::try_from(number).map_err(|_| Error::integrity("a space has an impossible number"))
}
