//! Documents of an owner, such as an agent: each is a State grain, one for each version, superseding the one before.
//!
//! A document is named by its layer, and an item of one by its id too. Its value is in `<prefix>:json`, in ASCII, so
//! that no normal form of text changes it. A row leads to the newest version.

mod trial;

use grainstore::format::{Map, Sensitivity, Value};
use grainstore::{
    ContentAddress, EpochMs, EraseOptions, ErrorKind, Owner, Pending, RowChange, Session,
    VerificationStatus,
};
use serde::{Deserialize, Serialize};

use super::{NewGrain, Profile, Rows, whole_fields};
use crate::error::{Error, Result};
use crate::json;

pub(crate) use trial::RefusedReplacement;

/// The table of rows that lead to the newest version of each document.
const HEADS: u8 = 240;
/// Documents that are written together.
const BATCH: usize = 500;
/// Most versions that are walked from a row to the newest.
const MAX_STEPS: usize = 100_000;

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
        let Some(address) = self.head(layer, item)? else { return Ok(None) };
        let stored = self.session.inspect(&address)?;
        let fields = whole_fields(self.session, self.profile, &address, stored.grain()?)?;
        let context = fields.get("context").and_then(Value::as_map);
        let text = context.and_then(|context| context.get(&self.profile.key("json")));
        let text = text.and_then(Value::as_str).unwrap_or_default();
        Ok(Some(KeptDocument { address, value: json::parse(text.as_bytes())? }))
    }

    /// Returns the ids of the items of a layer, in order.
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
        let (mut created, mut replaced) = (Vec::new(), Vec::new());
        for document in batch {
            let key = key_of(document.layer, document.item.as_deref());
            match self.read(document.layer, document.item.as_deref())? {
                Some(kept) if json::equal(&kept.value, &document.value) => {
                    written.push(Written::Same);
                }
                Some(kept) => {
                    let new = self.new_grain_of(document, Some(&kept.address))?;
                    replaced.push((kept.address, new, key));
                    written.push(Written::Replaced);
                }
                None => {
                    created.push((self.new_grain_of(document, None)?, key));
                    written.push(Written::Created);
                }
            }
        }
        self.session.put_batch(created.iter().map(|(new, _)| new.offer()))?;
        let submitted = replaced
            .iter()
            .map(|(old, new, _)| self.session.submit_supersede(old, new.offer(), None));
        let submitted: Vec<Pending<ContentAddress>> = submitted.collect();
        submitted.into_iter().try_for_each(|pending| pending.wait().map(drop))?;
        let all = created.into_iter().chain(replaced.into_iter().map(|(_, new, key)| (new, key)));
        let mut changes = Vec::new();
        for (mut new, key) in all {
            new.store_spilled(self.session)?;
            changes.push(self.head_row(&key, &new.address())?);
        }
        self.rows.write(changes)?;
        Ok(written)
    }

    /// Takes a document back: its versions stay, and none is current.
    ///
    /// # Errors
    /// Those of [`Session::set_verification`].
    pub(crate) fn retract(&self, layer: &str, item: Option<&str>, reason: &str) -> Result<bool> {
        let Some(head) = self.head(layer, item)? else { return Ok(false) };
        self.session.set_verification(&head, VerificationStatus::Retracted, reason, None)?;
        self.rows.write(vec![self.rows.remove(HEADS, key_of(layer, item).as_str())])?;
        Ok(true)
    }

    /// Erases a document in all its versions, and returns how many there were.
    ///
    /// # Errors
    /// Those of [`Session::erase`].
    pub(crate) fn erase(&self, layer: &str, item: Option<&str>, reason: &str) -> Result<u64> {
        let Some(mut address) = self.head(layer, item)? else { return Ok(0) };
        let mut versions = vec![address];
        while let Some(older) = self.version_before(&address)? {
            versions.push(older);
            address = older;
        }
        for version in &versions {
            self.session.erase(version, reason, &EraseOptions::new())?;
        }
        self.rows.write(vec![self.rows.remove(HEADS, key_of(layer, item).as_str())])?;
        Ok(versions.len() as u64)
    }

    /// Returns the version that one took the place of.
    fn version_before(&self, address: &ContentAddress) -> Result<Option<ContentAddress>> {
        let grain = self.session.inspect(address)?.grain()?;
        let older = grain.texts("derived_from").next().map(str::parse::<ContentAddress>);
        match older.transpose()? {
            Some(older) if self.session.exists(&older)? => Ok(Some(older)),
            _ => Ok(None),
        }
    }

    /// Returns the newest version. A row may be behind it where writing was interrupted.
    fn head(&self, layer: &str, item: Option<&str>) -> Result<Option<ContentAddress>> {
        let key = key_of(layer, item);
        let Some(head) = self.rows.get::<Head>(HEADS, &key)? else { return Ok(None) };
        let mut address = head.address.parse::<ContentAddress>()?;
        for _ in 0..MAX_STEPS {
            let state = self.session.inspect(&address)?.state;
            match state.superseded_by {
                Some(newer) => address = newer,
                None => return Ok(state.is_current().then_some(address)),
            }
        }
        Err(Error::corrupt(format!("the versions of {layer} have no end")))
    }

    fn head_row(&self, key: &str, address: &ContentAddress) -> Result<RowChange> {
        let head = Head { address: address.to_string() };
        self.rows.put(HEADS, key, &head, Owner::Grain(*address))
    }

    /// The grain of a document: of one that was erased and is written again, another one.
    fn new_grain_of(&self, document: Document, old: Option<&ContentAddress>) -> Result<NewGrain> {
        let new = self.grain_of(document.clone(), old)?;
        let found = self.session.inspect(&new.address());
        if !self.restores || found.err().map(|error| error.kind()) != Some(ErrorKind::Erased) {
            return Ok(new);
        }
        let mut document = document;
        let context = document.fields.entry("context".to_owned());
        if let Value::Map(context) = context.or_insert_with(|| Value::Map(Map::new())) {
            let now = self.session.now().get();
            context.insert(self.profile.key("restored_at"), Value::from(now));
        }
        self.grain_of(document, old)
    }

    fn grain_of(&self, document: Document, old: Option<&ContentAddress>) -> Result<NewGrain> {
        let mut fields = document.fields;
        let key = |name| self.profile.key(name);
        let context = fields.entry("context".to_owned()).or_insert_with(|| Value::Map(Map::new()));
        if let Value::Map(context) = context {
            context.insert(key("layer"), Value::from(document.layer));
            context.insert(key("agent_id"), Value::from(self.owner.as_str()));
            context.insert(key("json"), Value::from(json::ascii(&document.value)));
            if let Some(item) = document.item {
                context.insert(key("item_id"), Value::from(item));
            }
        }
        let tags = fields.entry("structural_tags".to_owned()).or_insert(Value::Array(Vec::new()));
        if let Value::Array(tags) = tags {
            tags.push(Value::from(self.profile.tag()));
        }
        fields.insert("type".to_owned(), Value::from("state"));
        fields.insert("namespace".to_owned(), Value::from(document.namespace));
        fields.insert("created_at".to_owned(), Value::from(document.created_at.get()));
        let fields = match old {
            Some(old) => NewGrain::succeeding(fields, old, "a newer version"),
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
