//! Removal of a model's vectors: its space is taken out of use at once, its vectors are deleted in steps.
//!
//! Writes run between two steps. An interrupted removal continues when it is requested again.

use std::collections::BTreeMap;
use std::sync::Arc;

use grainstore_index::Sequence;
use grainstore_index::vectors::Space;
use redb::{Durability, ReadableTable, WriteTransaction};

use super::Writer;
use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::layout::{self, RemovedVectors};
use crate::disk::row_sums::{SumChanges, SummedTable};
use crate::disk::vault::Vault;
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
        let vault = self.db.vault().clone();
        self.commit_change(|txn| {
            let mut sums = SumChanges::of(&vault);
            let key = u64::from(*number);
            let record = layout::seal_space(key, space)?;
            {
                let mut spaces = txn.open_table(layout::SPACES)?;
                sums.replace(SummedTable::Spaces, key, spaces.remove(key)?, None);
                let mut removed = txn.open_table(layout::REMOVED_SPACES)?;
                let former = removed.insert(key, record.as_slice())?;
                sums.replace(SummedTable::RemovedSpaces, key, former, Some(&record));
            }
            sums.write(txn)?;
            let mut meta = txn.open_table(layout::META)?;
            meta.insert(layout::META_REMOVED_VECTORS, gone.seal().as_slice())?;
            meta.remove(format!("{}{model}", layout::META_EMBEDDED_PREFIX).as_str())?;
            Ok(())
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
            let vault = self.db.vault().clone();
            self.commit_change(|txn| {
                remove_rows(txn, &found, &vault)?;
                if is_end {
                    let mut sums = SumChanges::of(&vault);
                    {
                        let mut removed = txn.open_table(layout::REMOVED_SPACES)?;
                        let former = removed.remove(u64::from(number))?;
                        sums.replace(SummedTable::RemovedSpaces, u64::from(number), former, None);
                    }
                    sums.write(txn)?;
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
        change: impl FnOnce(&WriteTransaction) -> Result<T>,
    ) -> Result<T> {
        self.stop_on_error(|writer| {
            let mut txn = writer.db.begin_write()?;
            txn.set_durability(Durability::Immediate)?;
            let changed = change(&txn)?;
            writer.db.vault().commit(txn)?;
            writer.publish_commit(&[])?;
            Ok(changed)
        })
    }
}

/// Removes vectors, and their rows from the lists of their grains.
fn remove_rows(
    txn: &WriteTransaction,
    found: &BTreeMap<Sequence, Vec<u64>>,
    vault: &Vault,
) -> Result<()> {
    let mut sums = SumChanges::of(vault);
    let mut vectors = txn.open_table(layout::VECTORS)?;
    let mut lists = txn.open_table(layout::VECTOR_ROWS)?;
    for (sequence, removed) in found {
        for row in removed {
            let former = vectors.remove(row)?;
            sums.replace(SummedTable::Vectors, *row, former, None);
        }
        let listed = lists.get(sequence.get())?.map(|list| layout::decode_rows(list.value()));
        // A damaged list stays; `verify` reports it.
        let Some(Ok(mut rows)) = listed else { continue };
        rows.retain(|row| !removed.contains(row));
        let list = (!rows.is_empty()).then(|| layout::encode_rows(&rows));
        let former = match &list {
            None => lists.remove(sequence.get())?,
            Some(list) => lists.insert(sequence.get(), list.as_slice())?,
        };
        sums.replace(SummedTable::VectorRows, sequence.get(), former, list.as_deref());
    }
    sums.write(txn)
}
