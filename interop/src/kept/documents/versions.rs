//! The versions of a document: which is the newest, which can be read, which came before.

use grainstore::format::Value;
use grainstore::{ContentAddress, ErrorKind};

use super::{Documents, HEADS, Head, KeptDocument, key_of};
use crate::error::{Error, Result};
use crate::json;
use crate::kept::whole_fields;

/// Most versions that are walked from a row to the newest.
const MAX_STEPS: usize = 100_000;

/// Where a document is.
pub(super) struct Found {
    /// The newest version, which may be taken back, or may lack what lies beside it.
    pub(super) newest: ContentAddress,
    /// The newest version that can be read; `None` for a document that was taken back.
    pub(super) kept: Option<KeptDocument>,
}

impl Documents<'_> {
    /// Returns where a document is; `None` if there never was one.
    pub(super) fn find(&self, layer: &str, item: Option<&str>) -> Result<Option<Found>> {
        let Some(noted) = self.noted(layer, item)? else { return Ok(None) };
        let (newest, is_current) = self.newest_after(noted)?;
        if !is_current {
            return Ok(Some(Found { newest, kept: None }));
        }
        let mut address = newest;
        loop {
            match self.version(address) {
                // What lies beside it was not stored yet.
                Err(error) if error.kind() == ErrorKind::NotFound && address != noted => {
                    match self.version_before(&address)? {
                        Some(older) => address = older,
                        None => return Err(error),
                    }
                }
                Err(error) => return Err(error),
                Ok(kept) => return Ok(Some(Found { newest, kept: Some(kept) })),
            }
        }
    }

    /// Reads one version.
    fn version(&self, address: ContentAddress) -> Result<KeptDocument> {
        let stored = self.session.inspect(&address)?;
        let fields = whole_fields(self.session, self.profile, &address, stored.grain()?)?;
        let context = fields.get("context").and_then(Value::as_map);
        let text = context.and_then(|context| context.get(&self.profile.key("json")));
        let text = text.and_then(Value::as_str).unwrap_or_default();
        Ok(KeptDocument { address, value: json::parse(text.as_bytes())? })
    }

    /// Returns the version that one took the place of.
    pub(super) fn version_before(
        &self,
        address: &ContentAddress,
    ) -> Result<Option<ContentAddress>> {
        let grain = self.session.inspect(address)?.grain()?;
        let older = grain.texts("derived_from").next().map(str::parse::<ContentAddress>);
        match older.transpose()? {
            Some(older) if self.session.exists(&older)? => Ok(Some(older)),
            _ => Ok(None),
        }
    }

    /// Returns the version that the row of a document leads to.
    fn noted(&self, layer: &str, item: Option<&str>) -> Result<Option<ContentAddress>> {
        let head = self.rows.get::<Head>(HEADS, &key_of(layer, item))?;
        Ok(head.map(|head| head.address.parse()).transpose()?)
    }

    /// Returns the newest version of a document, and whether it is current.
    pub(super) fn newest(
        &self,
        layer: &str,
        item: Option<&str>,
    ) -> Result<Option<(ContentAddress, bool)>> {
        let noted = self.noted(layer, item)?;
        noted.map(|noted| self.newest_after(noted)).transpose()
    }

    /// Returns the newest version after one, and whether it is current.
    pub(super) fn newest_after(&self, noted: ContentAddress) -> Result<(ContentAddress, bool)> {
        let mut address = noted;
        for _ in 0..MAX_STEPS {
            let state = self.session.inspect(&address)?.state;
            match state.superseded_by {
                Some(newer) => address = newer,
                None => return Ok((address, state.is_current())),
            }
        }
        Err(Error::corrupt("the versions of a document have no end"))
    }
}
