//! Which space of vectors serves, and which are being removed.

use std::collections::BTreeMap;

use grainstore_index::vectors::Space;
use redb::{TableDefinition, TableError};

use super::Truth;
use crate::base::error::Result;
use crate::disk::keys::{self, Gone};

/// What the meta table says of spaces.
#[derive(Debug, Clone, Copy)]
pub(super) struct Marks {
    serving: Option<u32>,
    gone: Gone,
}

impl Truth {
    /// The space that answers words, and vectors whose model is not named: the one that is written
    /// down, else the only one there is.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn serving(&self) -> Result<Option<&Space>> {
        let spaces = self.spaces()?;
        match self.appointed()? {
            Some(space) => Ok(Some(space)),
            None if spaces.len() == 1 => Ok(spaces.values().next()),
            None => Ok(None),
        }
    }

    /// The space that is written down as the serving one. One that does not exist is for `verify` to
    /// name.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn appointed(&self) -> Result<Option<&Space>> {
        let Some(number) = self.appointed_number()? else { return Ok(None) };
        Ok(self.spaces()?.get(&number))
    }

    /// The number that is written down as that of the serving space.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn appointed_number(&self) -> Result<Option<u32>> {
        Ok(self.marks()?.serving)
    }

    /// What vectors had that were removed.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn gone(&self) -> Result<Gone> {
        Ok(self.marks()?.gone)
    }

    /// The spaces whose vectors are being removed, by their numbers. Nobody finds these any more.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn leaving(&self) -> Result<BTreeMap<u32, Space>> {
        self.spaces_in(keys::LEAVING)
    }

    pub(super) fn spaces_in(
        &self,
        table: TableDefinition<'static, u64, &'static [u8]>,
    ) -> Result<BTreeMap<u32, Space>> {
        let mut found = BTreeMap::new();
        match self.txn.open_table(table) {
            Ok(table) => {
                for row in table.range::<u64>(..)? {
                    let (number, record) = row?;
                    let number = number.value();
                    let space = keys::open_space(number, record.value())?;
                    found.insert(u32::try_from(number).unwrap_or(u32::MAX), space);
                }
            }
            Err(TableError::TableDoesNotExist(_)) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(found)
    }

    fn marks(&self) -> Result<&Marks> {
        if let Some(marks) = self.marks.get() {
            return Ok(marks);
        }
        let meta = self.txn.open_table(keys::META)?;
        let serving = meta.get(keys::META_SERVING)?;
        let gone = meta.get(keys::META_GONE)?;
        let marks = Marks {
            serving: serving.map(|row| keys::open_serving(row.value())).transpose()?,
            gone: gone.map(|row| Gone::open(row.value())).transpose()?.unwrap_or_default(),
        };
        Ok(self.marks.get_or_init(|| marks))
    }
}
