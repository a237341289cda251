//! Documents of an owner, such as an agent: each is a State grain, one for each version, superseding the one before.
//!
//! A document is named by its layer, and an item of one by its id too. Its value is in `<prefix>:json`, in ASCII, so
//! that no normal form of text changes it. A row leads to the newest version. It stays when a document is taken back:
//! what comes later takes the place of that version, and an erasure finds all of them. Where writing was interrupted
//! the row is behind, and what lies beside the newest version may be missing: then the version before it is read, until
//! the same is written again.

mod replacing;
mod trial;
mod versions;

use grainstore::format::{Map, Sensitivity, Value};
use grainstore::{ContentAddress, EpochMs, EraseOptions, ErrorKind, Session, VerificationStatus};
use serde::{Deserialize, Serialize};

use super::{NewGrain, Profile, Rows, digest_of};
use crate::error::Result;
use crate::json;
use replacing::{Former, Replacing};
use versions::{Found, Tip, Version};

pub(crate) use trial::RefusedReplacement;

/// The table of rows that lead to the newest version of each document.
const HEADS: u8 = 240;
/// Documents that are written together.
const BATCH: usize = 500;

/// The documents of one owner.
#[derive(Debug, Clone)]
pub(crate) struct Documents<'s> {
    session: &'s Session,
    profile: Profile,
    owner: String,
    rows: Rows<'s>,
    /// True to write what was erased before again.
    restores: bool,
}

/// A document to write.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) layer: &'static str,
    /// The id of an item, `None` for a document.
    pub(crate) item: Option<String>,
    pub(crate) namespace: String,
    pub(crate) value: json::Value,
    pub(crate) created_at: EpochMs,
    pub(crate) sensitivity: Sensitivity,
    /// Fields of its grain beyond those that every document has; tags and entries of `context` are added to those. With
    /// `recall_priority` `cold` its value lies beside the grain, and no search finds it.
    pub(crate) fields: Map,
}

/// A stored document.
#[derive(Debug)]
pub(crate) struct KeptDocument {
    pub(crate) address: ContentAddress,
    pub(crate) value: json::Value,
}

/// What writing a document came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// It was there already.
    Same,
    Created,
    Replaced,
}

#[derive(Serialize, Deserialize)]
struct Head {
    #[serde(rename = "a")]
    address: String,
}

impl<'s> Documents<'s> {
    pub(crate) fn new(session: &'s Session, profile: Profile, owner: &str) -> Self {
        let rows = Rows::new(session, profile.application(owner));
        Self { session, profile, owner: owner.to_owned(), rows, restores: false }
    }

    /// The same documents; what was erased before may be written again, as another grain.
    pub(crate) fn restoring(self) -> Self {
        Self { restores: true, ..self }
    }

    pub(crate) fn session(&self) -> &'s Session {
        self.session
    }

    /// Returns the newest version of a document, `None` if there is none or it was taken back.
    ///
    /// # Errors
    /// Those of [`Session::inspect`] and [`Session::side_blob`]; `ERR_CORRUPT`.
    pub(crate) fn read(&self, layer: &str, item: Option<&str>) -> Result<Option<KeptDocument>> {
        Ok(self.find(layer, item)?.and_then(|found| found.kept))
    }

    /// Returns the ids of the items of a layer, in order, those that were taken back too.
    ///
    /// # Errors
    /// Those of [`Session::rows`].
    pub(crate) fn items(&self, layer: &str) -> Result<Vec<String>> {
        let mut ids = Vec::new();
        self.rows.each(HEADS, |key, _: Head| {
            if let Some((of, id)) = key.split_once('\0')
                && of == layer
                && !id.is_empty()
            {
                ids.push(id.to_owned());
            }
            Ok(())
        })?;
        ids.sort_unstable();
        Ok(ids)
    }

    /// Writes documents, and returns for each what it came to. Those that are there already are left as they are.
    ///
    /// # Errors
    /// Those of [`Session::put`] and [`Session::supersede`]; documents before it may be written.
    pub(crate) fn write(
        &self,
        documents: impl IntoIterator<Item = Document>,
    ) -> Result<Vec<Written>> {
        let (mut written, mut batch) = (Vec::new(), Vec::new());
        for document in documents {
            batch.push(document);
            if batch.len() == BATCH {
                written.extend(self.write_batch(std::mem::take(&mut batch))?);
            }
        }
        written.extend(self.write_batch(batch)?);
        Ok(written)
    }

    fn write_batch(&self, batch: Vec<Document>) -> Result<Vec<Written>> {
        let mut written = Vec::with_capacity(batch.len());
        let (mut created, mut replacing) = (Vec::new(), Vec::new());
        for document in batch {
            let key = key_of(document.layer, document.item.as_deref());
            let version = Version { key, digest: digest_of(&document.value) };
            let Some(found) = self.find(document.layer, document.item.as_deref())? else {
                written.push(Written::Created);
                let new = self.new_grain_of(&document, None)?;
                match self.left(&version.key)? {
                    Some(left) if left.newest.address != new.address() => {
                        replacing.push(self.replacing(&left, &document, version)?);
                    }
                    _ => created.push((new, document, version)),
                }
                continue;
            };
            match &found.kept {
                Some(kept)
                    if kept.address == found.newest.address
                        && json::equal(&kept.value, &document.value) =>
                {
                    written.push(Written::Same);
                    continue;
                }
                Some(_) => written.push(Written::Replaced),
                None => written.push(Written::Created),
            }
            replacing.push(self.replacing(&found, &document, version)?);
        }
        let created_versions = created.iter().map(|(new, _, version)| (version, new.address()));
        self.remember(created_versions)?;
        let mut whole = self.put_created(created, &mut replacing)?;
        self.remember(replacing.iter().map(|one| (&one.version, one.new.address())))?;
        self.supersede(&replacing)?;
        whole.extend(replacing.into_iter().map(|one| (one.new, one.version)));
        let mut changes = Vec::new();
        for (mut new, version) in whole {
            new.store_spilled(self.session)?;
            changes.push(self.head_row(&version.key, &new.address())?);
        }
        self.rows.write(changes)?;
        Ok(written)
    }

    /// Remembers versions, before they are stored.
    fn remember<'v>(
        &self,
        versions: impl Iterator<Item = (&'v Version, ContentAddress)>,
    ) -> Result<()> {
        let rows = versions.map(|(version, address)| self.past_row(version, &address));
        self.rows.write(rows.collect::<Result<_>>()?)
    }

    /// Stores first versions. Bytes that the store has, and that are not current, are no first version.
    fn put_created(
        &self,
        created: Vec<(NewGrain, Document, Version)>,
        replacing: &mut Vec<Replacing>,
    ) -> Result<Vec<(NewGrain, Version)>> {
        let puts = self.session.put_batch(created.iter().map(|(new, ..)| new.offer()))?;
        let mut first = Vec::with_capacity(created.len());
        for ((new, document, version), put) in created.into_iter().zip(puts) {
            let address = new.address();
            if put.is_duplicate() {
                let newest = self.newest_after(address)?;
                if newest.address != address || !newest.is_current || !newest.is_open {
                    replacing.push(self.replacing(
                        &Found { newest, kept: None },
                        &document,
                        version,
                    )?);
                    continue;
                }
            }
            first.push((new, version));
        }
        Ok(first)
    }

    /// Takes a document back: its versions stay, and none is current. Returns `true` if there was one.
    ///
    /// # Errors
    /// Those of [`Session::set_verification`].
    pub(crate) fn retract(&self, layer: &str, item: Option<&str>, reason: &str) -> Result<bool> {
        let newest = self.newest(layer, item)?.filter(|newest| newest.is_current);
        let Some(Tip { address, .. }) = newest else { return Ok(false) };
        self.session.set_verification(&address, VerificationStatus::Retracted, reason, None)?;
        Ok(true)
    }

    /// Erases a document in all its versions, also one that was taken back, and returns how many there were. That it was
    /// here is forgotten.
    ///
    /// # Errors
    /// Those of [`Session::erase`].
    pub(crate) fn erase(&self, layer: &str, item: Option<&str>, reason: &str) -> Result<u64> {
        let Some(Tip { mut address, .. }) = self.newest(layer, item)? else { return Ok(0) };
        let mut versions = vec![address];
        while let Some(older) = self.version_before(&address)? {
            versions.push(older);
            address = older;
        }
        for version in &versions {
            self.session.erase(version, reason, &EraseOptions::new())?;
        }
        let head = self.rows.remove(HEADS, key_of(layer, item).as_str());
        self.rows.write(vec![head, self.forgotten(layer, item)])?;
        Ok(versions.len() as u64)
    }

    /// The grain of a document: of one that was erased and is written again, another one.
    fn new_grain_of(&self, document: &Document, old: Option<Former<'_>>) -> Result<NewGrain> {
        let new = self.grain_of(document, old)?;
        let found = self.session.inspect(&new.address());
        if !self.restores || found.err().map(|error| error.kind()) != Some(ErrorKind::Erased) {
            return Ok(new);
        }
        let mut document = document.clone();
        let context = document.fields.entry("context".to_owned());
        if let Value::Map(context) = context.or_insert_with(|| Value::Map(Map::new())) {
            let now = self.session.now().get();
            context.insert(self.profile.key("restored_at"), Value::from(now));
        }
        self.grain_of(&document, old)
    }

    fn grain_of(&self, document: &Document, old: Option<Former<'_>>) -> Result<NewGrain> {
        let mut fields = document.fields.clone();
        let key = |name| self.profile.key(name);
        let context = fields.entry("context".to_owned()).or_insert_with(|| Value::Map(Map::new()));
        if let Value::Map(context) = context {
            context.insert(key("layer"), Value::from(document.layer));
            context.insert(key("agent_id"), Value::from(self.owner.as_str()));
            context.insert(key("json"), Value::from(json::ascii(&document.value)));
            if let Some(item) = &document.item {
                context.insert(key("item_id"), Value::from(item.as_str()));
            }
        }
        let tags = fields.entry("structural_tags".to_owned()).or_insert(Value::Array(Vec::new()));
        if let Value::Array(tags) = tags {
            tags.push(Value::from(self.profile.tag()));
        }
        fields.insert("type".to_owned(), Value::from("state"));
        fields.insert("namespace".to_owned(), Value::from(document.namespace.as_str()));
        fields.insert("created_at".to_owned(), Value::from(document.created_at.get()));
        let fields = match old {
            Some((old, true)) => NewGrain::succeeding(fields, old, "a newer version"),
            Some((old, false)) => NewGrain::deriving(fields, old),
            None => fields,
        };
        let is_cold = fields.get("recall_priority").and_then(Value::as_str) == Some("cold");
        match is_cold {
            true => NewGrain::with_beside(self.profile, fields, document.sensitivity, "json"),
            false => NewGrain::new(self.profile, fields, document.sensitivity),
        }
    }
}

fn key_of(layer: &str, item: Option<&str>) -> String {
    format!("{layer}\0{}", item.unwrap_or_default())
}
