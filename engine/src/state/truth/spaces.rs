//! The vector space that serves searches, and the spaces that are being removed.

use grainstore_format::container::EmbeddingSummary;
use std::collections::BTreeMap;
use std::collections::BTreeSet;

use grainstore_index::vectors::Space;
use redb::{TableDefinition, TableError};

use super::Truth;
use crate::base::error::Result;
use crate::disk::layout::{self, RemovedVectors};

/// Rows of the meta table about spaces.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpaceMeta {
    serving: Option<u32>,
    gone: RemovedVectors,
}

impl Truth {
    /// Returns the space that serves text queries, and vectors without a named model: the designated one,
    /// else the only one there is.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn serving_space(&self) -> Result<Option<&Space>> {
        let spaces = self.spaces()?;
        match self.designated_space()? {
            Some(space) => Ok(Some(space)),
            None if spaces.len() == 1 => Ok(spaces.values().next()),
            None => Ok(None),
        }
    }

    /// Returns the designated serving space; `None` if that does not exist, which `verify` reports.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn designated_space(&self) -> Result<Option<&Space>> {
        let Some(number) = self.designated_space_number()? else { return Ok(None) };
        Ok(self.spaces()?.get(&number))
    }

    /// The stored number of the serving space.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn designated_space_number(&self) -> Result<Option<u32>> {
        Ok(self.space_meta()?.serving)
    }

    /// The last row and space number of removed vectors, which are not used again.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn removed_vectors(&self) -> Result<RemovedVectors> {
        Ok(self.space_meta()?.gone)
    }

    /// Returns the spaces whose vectors are being removed, by number. Searches no longer use them.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn retired_spaces(&self) -> Result<BTreeMap<u32, Space>> {
        self.read_spaces(layout::REMOVED_SPACES)
    }

    pub(super) fn read_spaces(
        &self,
        table: TableDefinition<'static, u64, &'static [u8]>,
    ) -> Result<BTreeMap<u32, Space>> {
        let mut found = BTreeMap::new();
        match self.txn.open_table(table) {
            Ok(table) => {
                for row in table.range::<u64>(..)? {
                    let (number, record) = row?;
                    let number = number.value();
                    let space = layout::open_space(number, record.value())?;
                    found.insert(u32::try_from(number).unwrap_or(u32::MAX), space);
                }
            }
            Err(TableError::TableDoesNotExist(_)) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(found)
    }

    fn space_meta(&self) -> Result<&SpaceMeta> {
        if let Some(marks) = self.marks.get() {
            return Ok(marks);
        }
        let meta = self.txn.open_table(layout::META)?;
        let serving = meta.get(layout::META_SERVING)?;
        let gone = meta.get(layout::META_REMOVED_VECTORS)?;
        let marks = SpaceMeta {
            serving: serving.map(|row| layout::open_serving(row.value())).transpose()?,
            gone: gone
                .map(|row| RemovedVectors::open(row.value()))
                .transpose()?
                .unwrap_or_default(),
        };
        Ok(self.marks.get_or_init(|| marks))
    }
}

/// Groups vectors by space and chunk, in the form of a manifest.
pub(crate) fn group_embeddings(found: BTreeSet<(&Space, u32)>) -> Vec<EmbeddingSummary> {
    let mut all: Vec<EmbeddingSummary> = Vec::new();
    for (space, chunk) in found {
        let (model, metric) = (space.model(), space.metric().name());
        let dimensions = u32::try_from(space.dimension()).unwrap_or(u32::MAX);
        match all.last_mut() {
            Some(last)
                if (&*last.model, &*last.metric, last.dimensions)
                    == (model, metric, dimensions) =>
            {
                last.chunks.push(chunk);
            }
            _ => all.push(EmbeddingSummary {
                model: model.to_owned(),
                dimensions,
                metric: metric.to_owned(),
                chunks: vec![chunk],
            }),
        }
    }
    all.sort_unstable();
    all
}
