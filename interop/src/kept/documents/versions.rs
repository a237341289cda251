//! The versions of a document: which is the newest, which can be read, which came before, which were erased.

use grainstore::format::Value;
use grainstore::{ContentAddress, ErrorKind, Owner, RowChange, VerificationStatus};

use super::{Documents, HEADS, Head, KeptDocument, key_of};
use crate::error::{Error, Result};
use crate::json;
use crate::kept::{Past, Standing, digest_of, whole_fields};

/// The table of rows that tell which versions a document had, also when they are erased.
const PAST: u8 = 241;
/// The code of a version that is no document.
const CORRUPT: &str = "ERR_CORRUPT";
/// Most versions that are walked from a row to the newest.
const MAX_STEPS: usize = 100_000;

/// The last version of a document that is there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tip {
    pub(super) address: ContentAddress,
    /// True unless it was taken back.
    pub(super) is_current: bool,
    /// False if a grain stood in its place that was erased, or is not shown: what comes next stands beside that.
    pub(super) is_open: bool,
}

/// Where a document is.
pub(super) struct Found {
    /// The newest version, which may be taken back, or may lack what lies beside it.
    pub(super) newest: Tip,
    /// The newest version that can be read; `None` for a document that was taken back.
    pub(super) kept: Option<KeptDocument>,
}

/// The key of a document, and the hash of the version that is written.
pub(super) struct Version {
    pub(super) key: String,
    pub(super) digest: String,
}

impl Documents<'_> {
    /// The row that leads to a version.
    pub(super) fn head_row(&self, key: &str, address: &ContentAddress) -> Result<RowChange> {
        let head = Head { address: address.to_string() };
        self.rows.put(HEADS, key, &head, Owner::Grain(*address))
    }

    /// The row that remembers a version, which is about to be stored.
    pub(super) fn past_row(
        &self,
        version: &Version,
        address: &ContentAddress,
    ) -> Result<RowChange> {
        let mut past = Past::read(&self.rows, PAST, &version.key)?.unwrap_or_default();
        past.add(&version.digest, address);
        past.change(&self.rows, PAST, &version.key)
    }

    /// Where a version is that an interrupted write has left, of a document that no row leads to.
    pub(super) fn left(&self, key: &str) -> Result<Option<Found>> {
        let Some(past) = Past::read(&self.rows, PAST, key)? else { return Ok(None) };
        match past.standing(self.session)? {
            Standing::Left(address) => {
                Ok(Some(Found { newest: self.newest_after(address)?, kept: None }))
            }
            Standing::New | Standing::Erased => Ok(None),
        }
    }

    /// The change that forgets which versions a document had.
    pub(crate) fn forgotten(&self, layer: &str, item: Option<&str>) -> RowChange {
        self.rows.remove(PAST, key_of(layer, item).as_str())
    }

    /// The changes that forget which versions all documents had.
    ///
    /// # Errors
    /// Those of [`Session::rows`](grainstore::Session::rows).
    pub(crate) fn all_forgotten(&self) -> Result<Vec<RowChange>> {
        let mut changes = Vec::new();
        self.rows.each(PAST, |key, _: Past| {
            changes.push(self.rows.remove(PAST, key));
            Ok(())
        })?;
        Ok(changes)
    }

    /// Returns `true` for an item that was here and was erased, whatever it says now, and for a version of a document or an
    /// item that was.
    ///
    /// # Errors
    /// Those of [`Session::row`](grainstore::Session::row).
    pub(crate) fn is_erased(
        &self,
        layer: &str,
        item: Option<&str>,
        value: &json::Value,
    ) -> Result<bool> {
        let key = key_of(layer, item);
        let Some(past) = Past::read(&self.rows, PAST, &key)? else { return Ok(false) };
        let is_gone = item.is_some()
            && self.rows.get::<Head>(HEADS, &key)?.is_none()
            && past.standing(self.session)? == Standing::Erased;
        Ok(is_gone || past.has_erased(self.session, &digest_of(value))?)
    }

    /// Returns where a document is; `None` if there never was one.
    pub(super) fn find(&self, layer: &str, item: Option<&str>) -> Result<Option<Found>> {
        self.find_good(layer, item, |_| true)
    }

    /// Returns the newest version of a document that can be read, and that is good; `None` if there is none, or it was taken
    /// back.
    ///
    /// # Errors
    /// As [`Documents::read`].
    pub(crate) fn read_good(
        &self,
        layer: &str,
        item: Option<&str>,
        is_good: impl Fn(&json::Value) -> bool,
    ) -> Result<Option<KeptDocument>> {
        Ok(self.find_good(layer, item, is_good)?.and_then(|found| found.kept))
    }

    fn find_good(
        &self,
        layer: &str,
        item: Option<&str>,
        is_good: impl Fn(&json::Value) -> bool,
    ) -> Result<Option<Found>> {
        let Some(noted) = self.noted(layer, item)? else { return Ok(None) };
        let newest = self.tip(&key_of(layer, item), noted)?;
        if !newest.is_current {
            return Ok(Some(Found { newest, kept: None }));
        }
        let mut address = newest.address;
        loop {
            match self.version(address) {
                Ok(kept) if is_good(&kept.value) => {
                    return Ok(Some(Found { newest, kept: Some(kept) }));
                }
                Ok(_) => {}
                // What lies beside it was not stored yet.
                Err(error) if error.kind() == ErrorKind::NotFound && address != noted => {}
                // Somebody wrote it who knows nothing of documents: the one before it counts.
                Err(error) if error.code() == CORRUPT => {}
                Err(error) => return Err(error),
            }
            match self.version_before(&address)? {
                Some(older) => address = older,
                None => return Ok(Some(Found { newest, kept: None })),
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

    /// Returns the newest version of a document.
    pub(super) fn newest(&self, layer: &str, item: Option<&str>) -> Result<Option<Tip>> {
        let noted = self.noted(layer, item)?;
        noted.map(|noted| self.tip(&key_of(layer, item), noted)).transpose()
    }

    /// Returns the newest version after one that a row leads to: where that has no place to give, also one that an interrupted
    /// write has left beside it.
    fn tip(&self, key: &str, noted: ContentAddress) -> Result<Tip> {
        let newest = self.newest_after(noted)?;
        if newest.is_open {
            return Ok(newest);
        }
        match self.left(key) {
            Ok(left) => Ok(left.map_or(newest, |left| left.newest)),
            Err(error) if is_gone(error.kind()) => Ok(newest),
            Err(error) => Err(error),
        }
    }

    /// Returns the newest version after one. Agents may have written versions too: one that was erased since, or that a
    /// consent or a rule hides, does not count.
    pub(super) fn newest_after(&self, noted: ContentAddress) -> Result<Tip> {
        let mut address = noted;
        let mut state = self.session.inspect(&address)?.state;
        for _ in 0..MAX_STEPS {
            let is_current = state.verification_status != VerificationStatus::Retracted;
            let Some(newer) = state.superseded_by else {
                return Ok(Tip { address, is_current, is_open: true });
            };
            match self.session.inspect(&newer) {
                Ok(stored) => (address, state) = (newer, stored.state),
                Err(error) if is_gone(error.kind()) => {
                    return Ok(Tip { address, is_current, is_open: false });
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::corrupt("the versions of a document have no end"))
    }
}

/// Returns `true` for a version that was erased, or that a consent or a rule hides.
fn is_gone(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Erased | ErrorKind::Withdrawn | ErrorKind::Policy)
}
