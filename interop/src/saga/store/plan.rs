//! Writes of many items: planned, which checks each of them, and then done.

use std::collections::{BTreeMap, HashMap};

use grainstore::format::{Map, Sensitivity};
use grainstore::limits::MAX_ROW_CHANGES;
use grainstore::{ContentAddress, ErrorKind, Owner, RowChange};
use serde::Serialize;
use serde_json::Value as Json;

use super::{AgentStore, HEADS, Head, PLANNED, key_of};
use crate::error::{Error, Result};
use crate::json;
use crate::kept::{NewGrain, digest_of};
use crate::monitor::Monitor;
use crate::saga::map::{Kind, Origin, PROFILE, fields_of, item_of};

/// Most bytes of grains that are stored together; a whole import is one such batch.
const MAX_BATCH_BYTES: usize = grainstore::limits::MAX_BATCH_BYTES;

/// Writes of many items: first planned, which checks each, then done.
#[derive(Debug)]
pub(in crate::saga) struct Plan<'s> {
    store: AgentStore<'s>,
    created: Vec<(NewGrain, String)>,
    replaced: Vec<Successor>,
    bytes: usize,
    /// What items of each layer may have rested on before: [`Plan::knowing`].
    bases: HashMap<String, Vec<String>>,
    /// What items say, hashed, by the keys of their rows.
    digests: HashMap<String, String>,
    pub(in crate::saga) counts: Counts,
}

/// A grain that takes the place of another.
#[derive(Debug)]
struct Successor {
    old: ContentAddress,
    new: NewGrain,
    key: String,
    /// False if the row goes on leading to the first version.
    moves_row: bool,
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
            bases: HashMap::new(),
            digests: HashMap::new(),
            counts: Counts::default(),
        }
    }

    /// Tells what items of each layer may have rested on before: none comes back on another basis once it was erased.
    pub(in crate::saga) fn knowing(self, bases: HashMap<String, Vec<String>>) -> Self {
        Self { bases, ..self }
    }

    /// Where it is going to be written.
    pub(in crate::saga) fn store(&self) -> &AgentStore<'s> {
        &self.store
    }

    /// Counts an item that stays as it is.
    pub(in crate::saga) fn keep(&mut self) {
        self.counts.unchanged = self.counts.unchanged.saturating_add(1);
    }

    /// Plans an item: nothing if it is stored as it is and rests on the same, else a new grain or a successor, which the
    /// policy of the stored one must allow. Without a basis of its own it keeps that of the stored one.
    ///
    /// # Errors
    /// `ERR_INVALIDATION_DENIED` and the others of [`Session::supersede`], which names the item; `ERR_ERASED` for one
    /// that was erased, on whatever basis; `ERR_LIMIT` for more than can be stored together.
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
        let kept = head.as_ref().and_then(|(.., grain)| grain.text("processing_basis"));
        let kept = kept.map(str::to_owned);
        // In the place of one whose successor was erased stands nothing any more.
        let old = head.as_ref().filter(|(_, state, _)| state.is_current());
        let old = old.map(|(address, ..)| *address);
        let stored = match head.map(|head| self.store.whole(head)).transpose() {
            Ok(stored) => stored,
            // A write that was interrupted did not store what lies beside the grain: it is replaced.
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(at(error)),
        };
        if let Some(stored) = stored {
            let item = item_of(kind, id, &stored.fields).map_err(at)?;
            let is_same = stored.split() == split && item.is_some_and(|it| json::equal(&it, value));
            if is_same && (origin.basis.is_none() || origin.basis == kept.as_deref()) {
                self.keep();
                return Ok(());
            }
        }
        self.store.check_past(kind, id, value, origin.layer).map_err(at)?;
        let origin = Origin { basis: origin.basis.or(kept.as_deref()), ..origin };
        let fields = fields_of(kind, id, value, split, origin).map_err(at)?;
        let old = match old {
            None => {
                self.check_erased(&fields, origin).map_err(at)?;
                self.left(kind, id, &fields, origin).map_err(at)?
            }
            old => old,
        };
        let key = key_of(kind, id);
        self.add_fields(&key, fields, old, origin.is_secret()).map_err(at)?;
        self.digests.insert(key, digest_of(value));
        Ok(())
    }

    /// The grain that an interrupted import has left of an item, if it is another one now.
    fn left(
        &self,
        kind: &Kind,
        id: &str,
        fields: &Map,
        origin: Origin<'_>,
    ) -> Result<Option<ContentAddress>> {
        let Some(left) = self.store.left(kind, id)? else { return Ok(None) };
        let is_same = made(fields.clone(), origin.is_secret())?.address() == left;
        Ok((!is_same).then_some(left))
    }

    /// Refuses an item that was erased when it rested on something else, or on nothing: it is the same one.
    ///
    /// # Errors
    /// `ERR_ERASED`.
    fn check_erased(&self, fields: &Map, origin: Origin<'_>) -> Result<()> {
        let others = self.bases.get(origin.layer).into_iter().flatten().map(String::as_str);
        for basis in others.map(Some).chain([None]).filter(|basis| *basis != origin.basis) {
            let mut fields = fields.clone();
            match basis {
                Some(basis) => fields.insert("processing_basis".to_owned(), basis.into()),
                None => fields.remove("processing_basis"),
            };
            let address = made(fields, origin.is_secret())?.address();
            match self.store.session.inspect(&address) {
                Err(error) if error.kind() == ErrorKind::Erased => return Err(error.into()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Plans a newer version of a grain whose row goes on leading to the first one.
    ///
    /// # Errors
    /// Those of [`Plan::add`].
    pub(in crate::saga) fn add_version(
        &mut self,
        key: &str,
        fields: Map,
        old: ContentAddress,
    ) -> Result<()> {
        self.add_fields(key, fields, Some(old), false)?;
        if let Some(successor) = self.replaced.last_mut() {
            successor.moves_row = false;
        }
        Ok(())
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
        let new = made(fields, is_secret)?;
        self.bytes = self.bytes.saturating_add(new.held_bytes());
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
                let key = key.to_owned();
                self.replaced.push(Successor { old, new, key, moves_row: true });
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

    /// The first grain under a key, if this plan stores it.
    pub(in crate::saga) fn planned(&self, key: &str) -> Option<ContentAddress> {
        self.created.iter().find(|(_, of)| *of == key).map(|(new, _)| new.address())
    }

    /// Remembers what is about to be stored, so that what is interrupted then is found.
    fn remember(&self) -> Result<()> {
        let created = self.created.iter().map(|(new, key)| (key, new.address()));
        let replaced = self.replaced.iter().map(|it| (&it.key, it.new.address()));
        let mut rows = Vec::new();
        for (key, address) in created.chain(replaced) {
            if let Some(digest) = self.digests.get(key) {
                rows.push(self.store.past_change(key, Some((digest, &address)))?);
            }
        }
        for some in in_parts(rows.into_iter()) {
            self.store.rows.write(some)?;
        }
        Ok(())
    }

    /// Writes what was planned. Rows name the grains first: an erasure of the agent finds them, and whatever is imported
    /// next goes on from them, if it is interrupted. New grains are stored all or none; then what they replace is
    /// superseded, and rows that lead to them are written.
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
        self.announce()?;
        self.remember()?;
        let keys: Vec<_> = self.created.iter().map(|(_, key)| key.clone()).collect();
        session
            .put_batch(self.created.iter().map(|(new, _)| new.offer()))
            .map_err(|error| entry(error, &keys))?;
        for Successor { old, new, .. } in &mut self.replaced {
            session.supersede(old, new.offer(), None)?;
            new.store_spilled(session)?;
        }
        let created = self.created.drain(..).map(|(new, key)| (new, key, true));
        let replaced = self.replaced.drain(..).map(|it| (it.new, it.key, it.moves_row));
        let (mut heads, mut done) = (BTreeMap::new(), Vec::new());
        for (mut new, key, moves_row) in created.chain(replaced) {
            new.store_spilled(session)?;
            let address = new.address();
            done.push(self.store.rows.remove(PLANNED, key.as_str()));
            if moves_row {
                let (head, owner) = (Head::of(&key, &address), Owner::Grain(address));
                heads.insert(key.clone(), self.store.rows.put(HEADS, key.as_str(), &head, owner)?);
            }
        }
        // Rows last: what they lead to is whole.
        for some in in_parts(heads.into_values().chain(done)) {
            self.store.rows.write(some)?;
        }
        if let Some(progress) = monitor.progress {
            progress(of, of);
        }
        Ok(self.counts)
    }
}

impl Plan<'_> {
    /// Notes the grains as the agent's, which of them are first versions of which item, and what each says, so that what
    /// is erased before its row is written stays erased too.
    fn announce(&self) -> Result<()> {
        let mut rows = Vec::new();
        for (new, key) in &self.created {
            let head = Head::of(key, &new.address());
            rows.push(self.store.rows.put(PLANNED, key.as_str(), &head, Owner::Store)?);
        }
        let created = self.created.iter().map(|(new, key)| (new, key));
        for (new, key) in created.chain(self.replaced.iter().map(|it| (&it.new, &it.key))) {
            let kind = key.split('\0').next().unwrap_or_default();
            rows.push(self.store.noted(kind, &new.address())?);
            if let Some(digest) = self.digests.get(key) {
                rows.push(self.store.past_change(key, Some((digest, &new.address())))?);
            }
        }
        in_parts(rows.into_iter()).into_iter().try_for_each(|some| self.store.rows.write(some))
    }
}

/// Changes in parts that are written together.
fn in_parts(changes: impl Iterator<Item = RowChange>) -> Vec<Vec<RowChange>> {
    let mut parts: Vec<Vec<RowChange>> = Vec::new();
    for change in changes {
        match parts.last_mut().filter(|part| part.len() < MAX_ROW_CHANGES) {
            Some(part) => part.push(change),
            None => parts.push(vec![change]),
        }
    }
    parts
}

/// The grain of fields; of a secret its JSON lies beside it.
fn made(fields: Map, is_secret: bool) -> Result<NewGrain> {
    match is_secret {
        true => NewGrain::with_beside(PROFILE, fields, Sensitivity::Pii, "json"),
        false => NewGrain::new(PROFILE, fields, Sensitivity::Internal),
    }
}

/// An item as it is told.
fn named(layer: &str, kind: &Kind, id: &str) -> String {
    match id.is_empty() {
        true => format!("{layer}: {}", kind.name),
        false => format!("{layer}: {} {}", kind.name, id.replace('\0', "~")),
    }
}
