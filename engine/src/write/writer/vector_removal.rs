//! Removal of a model's vectors: its space is taken out of use at once, its vectors are deleted in steps.
//!
//! Writes run between two steps. An interrupted removal continues when it is requested again.

use std::collections::BTreeMap;
use std::sync::Arc;

use grainstore_index::Sequence;
use grainstore_index::vectors::Space;

use super::Writer;
use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::layout::{self, RemovedVectors};
use crate::disk::truth_tables::TruthTable;
use crate::disk::truth_transaction::RowWriter;
use crate::state::audit::{AuditOperation, AuditRecord};

/// Maximum number of vectors removed in one transaction.
const MAX_REMOVED_PER_TXN: usize = 1024;
/// Maximum number of vectors scanned for that.
const MAX_SCANNED_VECTORS: usize = 16 * MAX_REMOVED_PER_TXN;

/// A step of a removal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RemovalStep {
    /// Number of vectors removed.
    pub(crate) vectors: u64,
    /// The row after which the next step continues; `None` if the removal is complete.
    pub(crate) after: Option<u64>,
}

impl Writer {
    /// Takes the space of a model out of use: searches no longer use its vectors. Returns a space whose
    /// removal was interrupted as well.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND` if the model has no vectors; `ERR_CONFLICT` if they serve searches or are being
    /// computed; `ERR_IO`, `ERR_INTEGRITY`.
    pub(crate) fn retire_model(&mut self, model: &str) -> Result<(u32, Space)> {
        let view = Arc::clone(&self.view);
        let of_model = |space: &Space| space.model() == model;
        if let Some(left) = view.retired_spaces()?.into_iter().find(|(_, space)| of_model(space)) {
            return Ok(left);
        }
        let spaces = view.spaces()?;
        let Some((number, space)) = spaces.iter().find(|(_, space)| of_model(space)) else {
            let message = format!("there are no vectors of {model}");
            let error = Error::new(ErrorKind::NotFound, message);
            return Err(error.with_hint("stats has the models there are"));
        };
        let conflict =
            |message: String, hint| Err(Error::new(ErrorKind::Conflict, message).with_hint(hint));
        if view.serving_space()? == Some(space) {
            let message = format!("the vectors of {model} answer questions");
            return conflict(
                message,
                "open the store with another embedder, and wait for it first",
            );
        }
        if self
            .retrieval
            .embedders()
            .any(|keeping| keeping.is_leading() && keeping.space() == space)
        {
            let message = format!("vectors of {model} are being made");
            return conflict(message, "open the store without this embedder first");
        }
        let highest = spaces.keys().next_back().copied().unwrap_or_default();
        let gone = RemovedVectors {
            row: view.last_vector_row()?.saturating_add(1),
            space: highest.max(view.removed_vectors()?.space),
        };
        self.append_record(AuditRecord::new(AuditOperation::RemoveVectors, Vec::new()))?;
        self.commit_change(|rows| {
            let key = u64::from(*number);
            rows.remove(TruthTable::Spaces, key)?;
            rows.put(TruthTable::RemovedSpaces, key, &layout::seal_space(key, space)?)?;
            rows.put(TruthTable::Meta, layout::META_REMOVED_VECTORS, &gone.seal())?;
            let progress = format!("{}{model}", layout::META_EMBEDDED_PREFIX);
            rows.remove(TruthTable::Meta, progress.as_str()).map(drop)
        })?;
        Ok((*number, space.clone()))
    }

    /// Removes some vectors of a retired space after a row; the last step also removes the space.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`.
    pub(crate) fn remove_batch(&mut self, number: u32, behind: u64) -> Result<RemovalStep> {
        let view = Arc::clone(&self.view);
        let mut found: BTreeMap<Sequence, Vec<u64>> = BTreeMap::new();
        let (mut count, mut last, mut is_end) = (0, behind, true);
        for (looked, row) in view.vectors_after(behind)?.enumerate() {
            if looked >= MAX_SCANNED_VECTORS || count >= MAX_REMOVED_PER_TXN {
                is_end = false;
                break;
            }
            let (row, placed) = row?;
            last = row;
            if let Some(placed) = placed.filter(|placed| placed.space == number) {
                found.entry(placed.sequence).or_default().push(row);
                count += 1;
            }
        }
        if count > 0 || is_end {
            self.commit_change(|rows| {
                remove_rows(rows, &found)?;
                if is_end {
                    rows.remove(TruthTable::RemovedSpaces, u64::from(number))?;
                }
                Ok(())
            })?;
        }
        let vectors = u64::try_from(count).unwrap_or(u64::MAX);
        Ok(RemovalStep { vectors, after: (!is_end).then_some(last) })
    }

    /// Commits a transaction and publishes the new view. A failure stops the writer.
    pub(crate) fn commit_change<T>(
        &mut self,
        change: impl FnOnce(&mut RowWriter<'_>) -> Result<T>,
    ) -> Result<T> {
        self.stop_on_error(|writer| {
            let txn = writer.db.begin_change()?;
            let changed = txn.write(change)?;
            txn.commit()?;
            writer.publish_commit(&[])?;
            Ok(changed)
        })
    }
}

/// Removes vectors, and their rows from the lists of their grains.
fn remove_rows(rows: &mut RowWriter<'_>, found: &BTreeMap<Sequence, Vec<u64>>) -> Result<()> {
    for (sequence, removed) in found {
        for row in removed {
            rows.remove(TruthTable::Vectors, *row)?;
        }
        let list = rows.get(TruthTable::VectorRows, *sequence)?;
        // A damaged list stays; `verify` reports it.
        let Some(Ok(mut list)) = list.map(|list| layout::decode_rows(&list)) else { continue };
        list.retain(|row| !removed.contains(row));
        match list.is_empty() {
            true => rows.remove(TruthTable::VectorRows, *sequence)?,
            false => rows.put(TruthTable::VectorRows, *sequence, &layout::encode_rows(&list))?,
        };
    }
    Ok(())
}
