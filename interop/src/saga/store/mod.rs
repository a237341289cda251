//! What a store holds of an agent: a row leads to the newest grain of each item.
//!
//! Knows what items are, and no document.
//!
//! - `plan`: writes of many items, checked before the first of them. `past`: what was here, and was erased.

mod past;
mod plan;

use std::collections::BTreeSet;

use grainstore::format::{Map, Value};
use grainstore::limits::MAX_ROW_CHANGES;
use grainstore::{
    ContentAddress, ErrorKind, Grain, GrainState, Owner, RowChange, Session, StoredGrain,
};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use self::past::is_item;
use super::map::{Kind, PROFILE, item_of};
use super::native::Links;
use super::wallet::Wallet;
use crate::error::{Error, Result};
use crate::kept::{Rows, whole_fields};

pub use plan::Counts;
pub(super) use plan::Plan;

/// The table of rows that lead to grains.
const HEADS: u8 = 1;
/// The table of marks: of the newest document, of transfers.
const MARKS: u8 = 2;
/// The table of what an organization decided of items.
const DECISIONS: u8 = 3;
/// The table of every grain that was stored, by its address, with its kind. Its rows belong to no grain, so that they
/// are listed whatever hides the grain.
const GRAINS: u8 = 4;
/// The table of first versions that are on their way, by the key of the item: a write that is interrupted has grains and
/// no rows that lead to them.
const PLANNED: u8 = 6;
/// Most versions that are walked from a row to the newest.
const MAX_STEPS: usize = 100_000;

/// The grains of one agent.
#[derive(Debug, Clone)]
pub(super) struct AgentStore<'s> {
    session: &'s Session,
    wallet: Wallet,
    rows: Rows<'s>,
}

/// A stored item.
#[derive(Debug)]
pub(super) struct StoredItem {
    pub(super) address: ContentAddress,
    pub(super) state: GrainState,
    pub(super) fields: Map,
}

/// A grain as it is, without what lies beside it.
type StoredHead = (ContentAddress, GrainState, Grain);

/// The row that leads to a grain.
#[derive(Serialize, Deserialize)]
struct Head {
    #[serde(rename = "a")]
    address: String,
    /// The key of the row, since a long one is kept by its hash.
    #[serde(rename = "k", default)]
    key: String,
}

impl Head {
    fn of(key: &str, address: &ContentAddress) -> Self {
        Self { address: address.to_string(), key: key.to_owned() }
    }
}

/// What a row leads to: [`AgentStore::heads`].
#[derive(Debug, Clone)]
pub(super) struct StoredRow {
    /// The name of its kind.
    pub(super) kind: String,
    pub(super) id: String,
    /// The grain that it leads to; newer ones may have taken its place.
    pub(super) address: ContentAddress,
}

impl StoredItem {
    /// The kinds of items that were taken out of a layer.
    pub(super) fn split(&self) -> Vec<String> {
        let split = self.note("split").unwrap_or_default();
        split.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    /// A note in the context of the grain.
    pub(super) fn note(&self, name: &str) -> Option<&str> {
        let context = self.fields.get("context").and_then(Value::as_map)?;
        context.get(&PROFILE.key(name))?.as_str()
    }
}

impl<'s> AgentStore<'s> {
    pub(super) fn new(session: &'s Session, wallet: &Wallet) -> Self {
        let rows = Rows::new(session, PROFILE.application(&wallet.to_string()));
        Self { session, wallet: wallet.clone(), rows }
    }

    pub(super) fn session(&self) -> &'s Session {
        self.session
    }

    pub(super) fn wallet(&self) -> &Wallet {
        &self.wallet
    }

    /// The newest grain of an item; `None` if there is none, or it ended.
    ///
    /// # Errors
    /// Those of [`Session::inspect`], such as `ERR_WITHDRAWN` once its consent is no longer valid.
    pub(super) fn find(&self, kind: &Kind, id: &str) -> Result<Option<StoredItem>> {
        self.head(kind, id)?.map(|head| self.whole(head)).transpose()
    }

    /// Returns `true` if there is a grain of an item, also if a consent that has ended hides it.
    ///
    /// # Errors
    /// Those of [`AgentStore::find`].
    pub(super) fn has(&self, kind: &Kind, id: &str) -> Result<bool> {
        match self.head(kind, id) {
            Ok(head) => Ok(head.is_some()),
            Err(error) if error.kind() == ErrorKind::Withdrawn => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// A grain with what lies beside it.
    fn whole(&self, (address, state, grain): StoredHead) -> Result<StoredItem> {
        let fields = whole_fields(self.session, PROFILE, &address, grain)?;
        Ok(StoredItem { address, state, fields })
    }

    /// The newest grain of an item as it is, without what lies beside it.
    fn head(&self, kind: &Kind, id: &str) -> Result<Option<StoredHead>> {
        let key = key_of(kind, id);
        let head = match self.rows.get::<Head>(HEADS, &key)? {
            None => self.unfinished(&key)?,
            head => head,
        };
        let Some(head) = head else { return Ok(None) };
        let (newest, erased) = self.newest(kind, &head)?;
        let (address, stored) = match erased {
            // Of a layer the version before is read, which no longer is current.
            true if is_item(kind, id) => return Ok(None),
            true => newest,
            false if newest.1.state.is_current() => newest,
            false => return Ok(None),
        };
        let grain = stored.grain()?;
        Ok(Some((address, stored.state, grain)))
    }

    /// The newest version that is there, and whether a newer one was erased.
    fn newest(&self, kind: &Kind, head: &Head) -> Result<((ContentAddress, StoredGrain), bool)> {
        let address = head.address.parse::<ContentAddress>()?;
        let mut newest = (address, self.session.inspect(&address)?);
        for _ in 0..MAX_STEPS {
            let Some(newer) = newest.1.state.superseded_by else { return Ok((newest, false)) };
            match self.session.inspect(&newer) {
                Ok(stored) => newest = (newer, stored),
                Err(error) if error.kind() == ErrorKind::Erased => return Ok((newest, true)),
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::corrupt(format!("the versions of {} have no end", kind.name)))
    }

    /// Returns `true` if the newest version of an item was erased, and rows lead to an older one.
    pub(super) fn ends_erased(&self, kind: &Kind, id: &str) -> Result<bool> {
        match self.rows.get::<Head>(HEADS, &key_of(kind, id))? {
            Some(head) => Ok(self.newest(kind, &head)?.1),
            None => Ok(false),
        }
    }

    /// What leads to a grain that a write left without its row.
    fn unfinished(&self, key: &str) -> Result<Option<Head>> {
        let Some(head) = self.rows.get::<Head>(PLANNED, key)? else { return Ok(None) };
        let is_there = self.session.exists(&head.address.parse::<ContentAddress>()?)?;
        Ok(Some(head).filter(|_| is_there))
    }

    /// The value of an item.
    ///
    /// # Errors
    /// Those of [`AgentStore::find`].
    pub(super) fn read(&self, kind: &Kind, id: &str) -> Result<Option<Json>> {
        match self.find(kind, id)? {
            Some(stored) => item_of(kind, id, &stored.fields),
            None => Ok(None),
        }
    }

    /// Leads items to grains that are stored, where nothing else does.
    ///
    /// # Errors
    /// Those of [`Session::write_rows`].
    pub(super) fn link(&self, links: &Links) -> Result<()> {
        let mut changes = Vec::new();
        for ((kind, id), address) in links {
            let key = format!("{kind}\0{id}");
            let is_taken = self.rows.get::<Head>(HEADS, &key)?.is_some();
            if !is_taken && self.session.exists(address)? {
                let head = Head::of(&key, address);
                changes.push(self.rows.put(HEADS, key.as_str(), &head, Owner::Grain(*address))?);
                changes.push(self.noted(kind, address)?);
                changes.push(self.past_change(&key, None)?);
            }
        }
        self.rows.write(changes)
    }

    /// Reads a mark.
    ///
    /// # Errors
    /// Those of [`Session::row`].
    pub(super) fn mark<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        self.rows.get(MARKS, name)
    }

    /// Writes a mark, or removes it.
    ///
    /// # Errors
    /// Those of [`Session::write_rows`].
    pub(super) fn set_mark(&self, name: &str, value: Option<&impl Serialize>) -> Result<()> {
        let change = match value {
            Some(value) => self.rows.put(MARKS, name, value, Owner::Store)?,
            None => self.rows.remove(MARKS, name),
        };
        self.rows.write(vec![change])
    }

    /// Writes what was decided of an item.
    ///
    /// # Errors
    /// Those of [`Session::write_rows`].
    pub(super) fn set_decision(
        &self,
        item_type: &str,
        id: &str,
        decision: &impl Serialize,
    ) -> Result<()> {
        // The id is in the value as well, since a long key is kept by its hash.
        let key = format!("{item_type}\0{id}");
        let row = (item_type, id, decision);
        let change = self.rows.put(DECISIONS, key.as_str(), &row, Owner::Store)?;
        self.rows.write(vec![change])
    }

    /// Calls `each` with what was decided of each item.
    ///
    /// # Errors
    /// Those of [`Session::rows`].
    pub(super) fn decisions<T: serde::de::DeserializeOwned>(
        &self,
        mut each: impl FnMut(&str, &str, T),
    ) -> Result<()> {
        self.rows.each(DECISIONS, |_, (item_type, id, decision): (String, String, T)| {
            each(&item_type, &id, decision);
            Ok(())
        })
    }

    /// Removes what was decided of all items.
    ///
    /// # Errors
    /// Those of [`Session::rows`] and [`Session::write_rows`].
    pub(super) fn forget_decisions(&self) -> Result<()> {
        let mut changes = Vec::new();
        type Row = (String, String, serde::de::IgnoredAny);
        self.rows.each(DECISIONS, |_, (item_type, id, _): Row| {
            changes.push(self.rows.remove(DECISIONS, format!("{item_type}\0{id}").as_str()));
            Ok(())
        })?;
        self.rows.write(changes)
    }

    /// The first grain of an item: the one that its row leads to where that is never moved, as of consents.
    ///
    /// # Errors
    /// Those of [`Session::row`].
    pub(super) fn first(&self, kind: &Kind, id: &str) -> Result<Option<ContentAddress>> {
        let head = self.rows.get::<Head>(HEADS, &key_of(kind, id))?;
        head.map(|head| Ok(head.address.parse()?)).transpose()
    }

    /// The row that notes a grain as one of the agent's.
    fn noted(&self, kind: &str, address: &ContentAddress) -> Result<RowChange> {
        self.rows.put(GRAINS, address.to_string().as_str(), &kind, Owner::Store)
    }

    /// Every grain that was stored of the agent, with its kind, whether a consent hides it or not; those that were
    /// erased too.
    ///
    /// # Errors
    /// Those of [`Session::rows`].
    pub(super) fn grains(&self) -> Result<Vec<(String, ContentAddress)>> {
        let mut found = Vec::new();
        self.rows.each(GRAINS, |address, kind: String| {
            found.push((kind, address.parse::<ContentAddress>()?));
            Ok(())
        })?;
        // What an interrupted import left is not noted.
        found.extend(self.past_grains()?);
        found.sort_by_key(|(_, address)| *address);
        found.dedup_by_key(|(_, address)| *address);
        Ok(found)
    }

    /// Forgets grains that were stored of the agent.
    ///
    /// # Errors
    /// Those of [`Session::write_rows`].
    pub(super) fn forget_grains(&self, erased: &[ContentAddress]) -> Result<()> {
        let remove =
            |address: &ContentAddress| self.rows.remove(GRAINS, address.to_string().as_str());
        for some in erased.chunks(MAX_ROW_CHANGES) {
            self.rows.write(some.iter().map(remove).collect())?;
        }
        // Of what was on its way nothing is left to go on from.
        let gone: BTreeSet<String> = erased.iter().map(ContentAddress::to_string).collect();
        let mut planned = Vec::new();
        self.rows.each(PLANNED, |_, head: Head| {
            if gone.contains(&head.address) {
                planned.push(self.rows.remove(PLANNED, head.key.as_str()));
            }
            Ok(())
        })?;
        self.rows.write(planned)
    }

    /// Every row that leads to a grain which no consent hides.
    ///
    /// # Errors
    /// Those of [`Session::rows`].
    pub(super) fn heads(&self) -> Result<Vec<StoredRow>> {
        let mut found = Vec::new();
        self.rows.each(HEADS, |_, head: Head| {
            let (kind, id) = head.key.split_once('\0').unwrap_or((&head.key, ""));
            let address = head.address.parse::<ContentAddress>()?;
            found.push(StoredRow { kind: kind.to_owned(), id: id.to_owned(), address });
            Ok(())
        })?;
        Ok(found)
    }
}

/// The key of an item's row.
pub(super) fn key_of(kind: &Kind, id: &str) -> String {
    format!("{}\0{id}", kind.name)
}
