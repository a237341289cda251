//! Writes of many items: planned, which checks each of them, and then done.

use std::collections::BTreeMap;

use grainstore::format::{Map, Sensitivity};
use grainstore::{ContentAddress, ErrorKind, Owner, RowChange};
use serde::Serialize;
use serde_json::Value as Json;

use super::{AgentStore, HEADS, Head, key_of};
use crate::error::{Error, Result};
use crate::json;
use crate::kept::NewGrain;
use crate::monitor::Monitor;
use crate::saga::map::{Kind, Origin, PROFILE, fields_of, item_of};

/// Most bytes of grains that are stored together; a whole import is one such batch.
const MAX_BATCH_BYTES: usize = grainstore::limits::MAX_BATCH_BYTES;

/// Writes of many items: first planned, which checks each, then done.
#[derive(Debug)]
pub(in crate::saga) struct Plan<'s> {
    store: AgentStore<'s>,
    created: Vec<(NewGrain, String)>,
    replaced: Vec<(ContentAddress, NewGrain, String)>,
    bytes: usize,
    pub(in crate::saga) counts: Counts,
}

/// What became of the items of an import: [`import_document`](crate::saga::import_document()).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// Items that were new.
    pub added: u64,
    /// Items that took the place of an older version.
    pub replaced: u64,
    /// Items that were there already.
    pub unchanged: u64,
}

impl<'s> Plan<'s> {
    pub(in crate::saga) fn new(store: AgentStore<'s>) -> Self {
        Self {
            store,
            created: Vec::new(),
            replaced: Vec::new(),
            bytes: 0,
            counts: Counts::default(),
        }
    }

    /// Where it is going to be written.
    pub(in crate::saga) fn store(&self) -> &AgentStore<'s> {
        &self.store
    }

    /// Plans an item: nothing if it is stored as it is, else a new grain or a successor, which the policy of the stored
    /// one must allow.
    ///
    /// # Errors
    /// `ERR_INVALIDATION_DENIED` and the others of [`Session::supersede`], which names the item; `ERR_LIMIT` for more
    /// than can be stored together.
    pub(in crate::saga) fn add(
        &mut self,
        kind: &Kind,
        id: &str,
        value: &Json,
        split: &[&str],
        origin: Origin<'_>,
    ) -> Result<()> {
        let at = |error: Error| error.in_entry(&named(origin.layer, kind, id));
        let head = self.store.head(kind, id).map_err(at)?;
        let old = head.as_ref().map(|(address, ..)| *address);
        let stored = match head.map(|head| self.store.whole(head)).transpose() {
            Ok(stored) => stored,
            // A write that was interrupted did not store what lies beside the grain: it is replaced.
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(at(error)),
        };
        if let Some(stored) = stored {
            let item = item_of(kind, id, &stored.fields).map_err(at)?;
            let is_split = stored.split() == split;
            if is_split && item.is_some_and(|item| json::equal(&item, value)) {
                self.counts.unchanged = self.counts.unchanged.saturating_add(1);
                return Ok(());
            }
        }
        let fields = fields_of(kind, id, value, split, origin).map_err(at)?;
        self.add_fields(&key_of(kind, id), fields, old, origin.is_secret()).map_err(at)
    }

    /// Plans a grain: a new one, or the successor of `old`.
    ///
    /// # Errors
    /// Those of [`Plan::add`].
    pub(in crate::saga) fn add_fields(
        &mut self,
        key: &str,
        fields: Map,
        old: Option<ContentAddress>,
        is_secret: bool,
    ) -> Result<()> {
        let fields = match &old {
            Some(old) => NewGrain::succeeding(fields, old, "a newer SAGA document"),
            None => fields,
        };
        let new = match is_secret {
            true => NewGrain::with_beside(PROFILE, fields, Sensitivity::Pii, "json")?,
            false => NewGrain::new(PROFILE, fields, Sensitivity::Internal)?,
        };
        self.bytes = self.bytes.saturating_add(new.size_bytes());
        let count = self.created.len().saturating_add(self.replaced.len());
        if self.bytes > MAX_BATCH_BYTES || count >= grainstore::limits::MAX_BATCH {
            return Err(Error::limit("the document has more items than are stored together"));
        }
        match old {
            None => {
                self.created.push((new, key.to_owned()));
                self.counts.added = self.counts.added.saturating_add(1);
            }
            Some(old) => {
                self.check_successor(&old, &new)?;
                self.replaced.push((old, new, key.to_owned()));
                self.counts.replaced = self.counts.replaced.saturating_add(1);
            }
        }
        Ok(())
    }

    fn check_successor(&self, old: &ContentAddress, new: &NewGrain) -> Result<()> {
        let preview = self.store.session.try_supersede(old, new.offer(), None)?;
        match preview.refusal {
            None => Ok(()),
            Some(error) => Err(error.into()),
        }
    }

    /// The newest grain under a key that this plan stores.
    pub(in crate::saga) fn planned(&self, key: &str) -> Option<ContentAddress> {
        let created = self.created.iter().map(|(new, key)| (new, key));
        let replaced = self.replaced.iter().map(|(_, new, key)| (new, key));
        created.chain(replaced).find(|(_, of)| *of == key).map(|(new, _)| new.address())
    }

    /// Writes what was planned. New grains are stored all or none; then what they replace is superseded, and rows are
    /// written. If it is interrupted, the same import again does the rest.
    ///
    /// # Errors
    /// Those of [`Session::put_batch`] and [`Session::supersede`].
    pub(in crate::saga) fn write(mut self, monitor: &Monitor<'_>) -> Result<Counts> {
        let of = u64::try_from(self.created.len().saturating_add(self.replaced.len()))
            .unwrap_or(u64::MAX);
        monitor.step(0, of)?;
        let session = self.store.session;
        let entry = |error: grainstore::Error, keys: &[String]| {
            let at = error.batch_index().and_then(|at| keys.get(at)).cloned();
            let error = Error::from(error);
            match at {
                Some(key) => error.in_entry(&key.replace('\0', " ")),
                None => error,
            }
        };
        let keys: Vec<_> = self.created.iter().map(|(_, key)| key.clone()).collect();
        session
            .put_batch(self.created.iter().map(|(new, _)| new.offer()))
            .map_err(|error| entry(error, &keys))?;
        for (old, new, _) in &mut self.replaced {
            session.supersede(old, new.offer(), None)?;
            new.store_spilled(session)?;
        }
        let replaced = self.replaced.drain(..).map(|(_, new, key)| (new, key));
        let mut changes: BTreeMap<String, RowChange> = BTreeMap::new();
        for (mut new, key) in self.created.drain(..).chain(replaced) {
            new.store_spilled(session)?;
            let address = new.address();
            let head = Head { address: address.to_string() };
            let row = self.store.rows.put(HEADS, key.as_str(), &head, Owner::Grain(address))?;
            changes.insert(key, row);
        }
        // Rows last: what they lead to is whole.
        self.store.rows.write(changes.into_values().collect())?;
        if let Some(progress) = monitor.progress {
            progress(of, of);
        }
        Ok(self.counts)
    }
}

/// An item as it is told.
fn named(layer: &str, kind: &Kind, id: &str) -> String {
    match id.is_empty() {
        true => format!("{layer}: {}", kind.name),
        false => format!("{layer}: {} {}", kind.name, id.replace('\0', "~")),
    }
}
