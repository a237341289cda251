//! Rows of JSON of one application: read one by one or all, written in batches.

use grainstore::limits::MAX_ROW_PAGE;
use grainstore::{ApplicationKey, Owner, RowChange, RowRange, Session};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

/// Most bytes of a key that is kept as it is.
const MAX_PLAIN_KEY: usize = 1000;

/// The rows of an application.
#[derive(Debug, Clone)]
pub(crate) struct Rows<'s> {
    session: &'s Session,
    application: String,
}

impl<'s> Rows<'s> {
    pub(crate) fn new(session: &'s Session, application: String) -> Self {
        Self { session, application }
    }

    /// Reads a row.
    ///
    /// # Errors
    /// Those of [`Session::row`]; `ERR_CORRUPT` for a row of another form.
    pub(crate) fn get<T: DeserializeOwned>(&self, table: u8, key: &str) -> Result<Option<T>> {
        let found = self.session.row(&self.application, table, key_of(key))?;
        found.map(|value| read(&value)).transpose()
    }

    /// The change that writes a row.
    pub(crate) fn put(
        &self,
        table: u8,
        key: impl Into<RowKey>,
        value: &impl Serialize,
        owner: Owner,
    ) -> Result<RowChange> {
        let value = serde_json::to_vec(value)
            .map_err(|error| Error::corrupt(format!("a row cannot be written: {error}")))?;
        Ok(RowChange::put(self.application.as_str(), table, key.into().0, value).owner(owner))
    }

    /// The change that removes a row.
    pub(crate) fn remove(&self, table: u8, key: impl Into<RowKey>) -> RowChange {
        RowChange::remove(self.application.as_str(), table, key.into().0)
    }

    /// Makes changes, in one commit.
    ///
    /// # Errors
    /// Those of [`Session::write_rows`].
    pub(crate) fn write(&self, changes: Vec<RowChange>) -> Result<()> {
        self.session.write_rows(changes)?;
        Ok(())
    }

    /// Calls `each` with every row of a table whose keys are text, in no order.
    ///
    /// # Errors
    /// Those of [`Session::rows`] and of `each`; `ERR_CORRUPT` for a row of another form.
    pub(crate) fn each<T: DeserializeOwned>(
        &self,
        table: u8,
        mut each: impl FnMut(&str, T) -> Result<()>,
    ) -> Result<()> {
        self.pages(table, RowRange::BytesAfter(None), |key, value| match key {
            ApplicationKey::Bytes(key) => {
                each(std::str::from_utf8(key).unwrap_or_default(), read(value)?)
            }
            _ => Ok(()),
        })
    }

    /// Calls `each` with every row of a table whose keys are these numbers, ascending.
    ///
    /// # Errors
    /// As [`Rows::each`].
    pub(crate) fn each_number<T: DeserializeOwned>(
        &self,
        table: u8,
        from: u64,
        mut each: impl FnMut(u64, T) -> Result<()>,
    ) -> Result<()> {
        self.pages(table, RowRange::Numbers(from..=u64::MAX), |key, value| match key {
            ApplicationKey::Number(number) => each(*number, read(value)?),
            _ => Ok(()),
        })
    }

    /// Returns `true` if a table has no row whose key is text.
    ///
    /// # Errors
    /// Those of [`Session::rows`].
    pub(crate) fn is_empty(&self, table: u8) -> Result<bool> {
        let page = self.session.rows(&self.application, table, &RowRange::BytesAfter(None), 1)?;
        Ok(page.rows.is_empty() && page.next.is_none())
    }

    /// Reads the row of a number.
    ///
    /// # Errors
    /// As [`Rows::get`].
    pub(crate) fn get_number<T: DeserializeOwned>(
        &self,
        table: u8,
        number: u64,
    ) -> Result<Option<T>> {
        let found = self.session.row(&self.application, table, number)?;
        found.map(|value| read(&value)).transpose()
    }

    fn pages(
        &self,
        table: u8,
        first: RowRange,
        mut each: impl FnMut(&ApplicationKey, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut next = Some(first);
        while let Some(range) = next {
            let page = self.session.rows(&self.application, table, &range, MAX_ROW_PAGE)?;
            for row in &page.rows {
                each(&row.key, &row.value)?;
            }
            next = page.next;
        }
        Ok(())
    }
}

/// The key of a row: a number, or text of any length.
#[derive(Debug)]
pub(crate) struct RowKey(ApplicationKey);

impl From<&str> for RowKey {
    fn from(text: &str) -> Self {
        Self(key_of(text))
    }
}

impl From<u64> for RowKey {
    fn from(number: u64) -> Self {
        Self(ApplicationKey::Number(number))
    }
}

/// Long text is kept by its hash, and cannot be read back from the key.
fn key_of(text: &str) -> ApplicationKey {
    match text.len() <= MAX_PLAIN_KEY {
        true => text.into(),
        false => ApplicationKey::from(Sha256::digest(text).as_slice()),
    }
}

fn read<T: DeserializeOwned>(value: &[u8]) -> Result<T> {
    serde_json::from_slice(value)
        .map_err(|error| Error::corrupt(format!("a row of the store is of another form: {error}")))
}
