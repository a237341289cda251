//! What was here: a row for each record, document or item, which stays when its grains are erased. A grain that says the
//! same again has other bytes where other grains are there by then, so that bytes alone do not tell that it was erased.
//!
//! The row is written before the grain is: what an interrupted import left is found by it, and is not taken for new.
//!
//! Knows ids and hashes, not what they are of.

use data_encoding::HEXLOWER;
use grainstore::{ContentAddress, ErrorKind, Owner, RowChange, Session};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Rows;
use crate::error::Result;
use crate::json::{self, Value};

/// Versions that are remembered, the last ones.
const MAX_VERSIONS: usize = 100;
/// Bytes of the hash of a version.
const DIGEST_BYTES: usize = 16;

/// What became of something that no row leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It never was here.
    New,
    /// It was here, and was erased.
    Erased,
    /// It is in this grain: what wrote it was interrupted before it wrote the row.
    Left(ContentAddress),
}

/// The versions that something had, and those that were on their way: of each the hash of what it said, and its grain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Past(Vec<(String, String)>);

impl Past {
    /// Reads what is known of a key; `None` for what never was here.
    ///
    /// # Errors
    /// Those of [`Rows::get`].
    pub(crate) fn read(rows: &Rows<'_>, table: u8, key: &str) -> Result<Option<Self>> {
        rows.get(table, key)
    }

    /// The change that writes it, in a row that belongs to nobody.
    ///
    /// # Errors
    /// Those of [`Rows::put`].
    pub(crate) fn change(&self, rows: &Rows<'_>, table: u8, key: &str) -> Result<RowChange> {
        rows.put(table, key, self, Owner::Store)
    }

    /// Adds a version, each once.
    pub(crate) fn add(&mut self, digest: &str, address: &ContentAddress) {
        let version = (digest.to_owned(), address.to_string());
        if !self.0.contains(&version) {
            self.0.push(version);
            let surplus = self.0.len().saturating_sub(MAX_VERSIONS);
            self.0.drain(..surplus);
        }
    }

    /// Tells what became of the newest version that was stored, of something that no row leads to.
    ///
    /// # Errors
    /// `ERR_CORRUPT`; `ERR_WITHDRAWN` and `ERR_POLICY` for a version that is not shown; `ERR_IO`.
    pub(crate) fn standing(&self, session: &Session) -> Result<Standing> {
        for (_, address) in self.0.iter().rev() {
            let address = address.parse::<ContentAddress>()?;
            match session.inspect(&address) {
                Ok(_) => return Ok(Standing::Left(address)),
                // It was on its way, and did not arrive.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) if error.kind() == ErrorKind::Erased => return Ok(Standing::Erased),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(match self.0.is_empty() {
            true => Standing::Erased,
            false => Standing::New,
        })
    }

    /// Returns `true` if a version that said this was erased.
    ///
    /// # Errors
    /// `ERR_CORRUPT`.
    pub(crate) fn has_erased(&self, session: &Session, digest: &str) -> Result<bool> {
        for (_, address) in self.0.iter().filter(|(of, _)| of == digest) {
            let found = session.inspect(&address.parse::<ContentAddress>()?);
            if found.is_err_and(|error| error.kind() == ErrorKind::Erased) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns `true` if a version is in this grain; `None` if it may be one of those that are not remembered any more.
    pub(crate) fn has(&self, address: &ContentAddress) -> Option<bool> {
        let address = address.to_string();
        match self.0.iter().any(|(_, of)| *of == address) {
            false if self.0.len() >= MAX_VERSIONS => None,
            found => Some(found),
        }
    }

    /// The grains of all versions.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = Result<ContentAddress>> {
        self.0.iter().map(|(_, address)| Ok(address.parse()?))
    }
}

/// The hash of what a version says, whatever the order of its members.
pub(crate) fn digest_of(value: &Value) -> String {
    let hash = Sha256::digest(json::line(value));
    HEXLOWER.encode(hash.get(..DIGEST_BYTES).unwrap_or_default())
}
