//! What was here, and was erased by itself: it stays erased, whatever bytes its grain would have now.

use grainstore::{ContentAddress, ErrorKind, RowChange};
use serde_json::Value as Json;

use super::{AgentStore, HEADS, Head, key_of};
use crate::error::{Error, Result};
use crate::kept::{Past, Standing, digest_of};
use crate::saga::kinds::Layer;
use crate::saga::map::{ENVELOPE, Kind, LAYER, MANIFEST_KIND, MEMBERS};

/// The table of what was here, with the versions that it had. Its rows belong to no grain.
const PAST: u8 = 5;

impl AgentStore<'_> {
    /// Refuses an item with an id of its own that was erased, and what says again what an erased version of it said. A
    /// vault is told by its version, and an older one may be gone back to.
    ///
    /// # Errors
    /// `ERR_ERASED`; those of [`Session::row`](grainstore::Session::row).
    pub(super) fn check_past(
        &self,
        kind: &Kind,
        id: &str,
        value: &Json,
        layer: &str,
    ) -> Result<()> {
        let key = key_of(kind, id);
        let Some(past) = Past::read(&self.rows, PAST, &key)? else { return Ok(()) };
        let is_gone = is_item(kind, id)
            && match self.rows.get::<Head>(HEADS, &key)? {
                None => past.standing(self.session)? == Standing::Erased,
                // A newer version that somebody wrote was erased.
                Some(_) => self.ends_erased(kind, id)?,
            };
        let says_again = || match layer == Layer::Vault.name() {
            true => Ok(false),
            false => past.has_erased(self.session, &digest_of(value)),
        };
        match is_gone || says_again()? {
            true => Err(Error::new(ErrorKind::Erased, "it was erased in this store")
                .with_hint("take it out of the document, at its source")),
            false => Ok(()),
        }
    }

    /// The grain that an import which was interrupted has left of an item that no row leads to.
    ///
    /// # Errors
    /// Those of [`Session::row`](grainstore::Session::row) and [`Session::inspect`](grainstore::Session::inspect).
    pub(super) fn left(&self, kind: &Kind, id: &str) -> Result<Option<ContentAddress>> {
        let key = key_of(kind, id);
        if self.rows.get::<Head>(HEADS, &key)?.is_some() {
            return Ok(None);
        }
        let Some(past) = Past::read(&self.rows, PAST, &key)? else { return Ok(None) };
        let Standing::Left(address) = past.standing(self.session)? else { return Ok(None) };
        let is_current = self.session.inspect(&address)?.state.is_current();
        Ok(is_current.then_some(address))
    }

    /// Every grain of the agent that was on its way, with its kind, also if no row leads to it and it is not noted.
    ///
    /// # Errors
    /// Those of [`Session::rows`](grainstore::Session::rows).
    pub(super) fn past_grains(&self) -> Result<Vec<(String, ContentAddress)>> {
        let mut found = Vec::new();
        self.rows.each(PAST, |key, past: Past| {
            let kind = key.split('\0').next().unwrap_or_default();
            for address in past.addresses() {
                found.push((kind.to_owned(), address?));
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// The change that remembers an item, and with it a version: the hash of what it says, and its grain.
    ///
    /// # Errors
    /// Those of [`Session::row`](grainstore::Session::row).
    pub(super) fn past_change(
        &self,
        key: &str,
        version: Option<(&str, &ContentAddress)>,
    ) -> Result<RowChange> {
        let mut past = Past::read(&self.rows, PAST, key)?.unwrap_or_default();
        if let Some((digest, address)) = version {
            past.add(digest, address);
        }
        past.change(&self.rows, PAST, key)
    }

    /// Forgets what was here, of an agent that is erased as a whole.
    ///
    /// # Errors
    /// Those of [`Session::rows`](grainstore::Session::rows).
    pub(in crate::saga) fn forget_past(&self) -> Result<()> {
        let mut changes = Vec::new();
        self.rows.each(PAST, |key, _: Past| {
            changes.push(self.rows.remove(PAST, key));
            Ok(())
        })?;
        for some in changes.chunks(grainstore::limits::MAX_ROW_CHANGES) {
            self.rows.write(some.to_vec())?;
        }
        Ok(())
    }
}

/// Returns `true` for what is one of several in a layer, and is gone once it was erased. A layer and what frames the
/// document are never gone as a whole.
pub(super) fn is_item(kind: &Kind, id: &str) -> bool {
    !id.is_empty()
        && ![LAYER, ENVELOPE, MEMBERS, MANIFEST_KIND].iter().any(|of| of.name == kind.name)
}
