//! redb by hand at the work of the facts: the tables of `peers/redb_peer.rs`, which has what finds
//! grains by address, subject, and subject with relation. It has no words and no language.

use std::path::Path;

use compare_facts::{Fact, NAMESPACE, Peer, Question, Row, Told};
use grainstore::{ContentAddress, Grain};

use super::grain;
use crate::Result;
use crate::ask::Ask;
use crate::data;
use crate::peer::Peer as _;
use crate::peers::{RawRedb, Tables};

/// A database.
pub(super) struct Redb(RawRedb);

impl Peer for Redb {
    type Item = data::Item;
    type Key = ContentAddress;

    fn open(directory: &Path) -> Result<Self> {
        RawRedb::open(directory, Tables::ByHand).map(Self)
    }

    fn item(fact: Fact) -> Result<data::Item> {
        row(fact).item()
    }

    fn key(fact: Fact) -> Result<ContentAddress> {
        Ok(row(fact).item()?.blob.address())
    }

    fn put(&self, item: data::Item) -> Result<()> {
        self.0.put(vec![item])
    }

    fn put_batch(&self, items: Vec<data::Item>) -> Result<()> {
        self.0.put(items)
    }

    fn supersede(&self, old: &ContentAddress, new: data::Item) -> Result<Option<()>> {
        self.0.supersede(old, new).map(Some)
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn settle(&self) -> Result<()> {
        Ok(())
    }

    fn get(&self, key: &ContentAddress) -> Result<Option<Fact>> {
        let blob = self.0.get(key)?.ok_or("a stored grain was not found")?;
        grain::fact(&Grain::decode(&blob)?).map(Some)
    }

    fn latest(
        &self,
        subject: &str,
        relation: Option<&str>,
        most: u32,
    ) -> Result<Option<Vec<Fact>>> {
        let ask = Ask {
            subject: Some(subject.to_owned()),
            relation: relation.map(str::to_owned),
            limit: usize::try_from(most)?,
            ..Ask::default()
        };
        let hits = self.0.hits(&ask)?;
        hits.iter().map(|hit| grain::fact(&hit.grain)).collect::<Result<_>>().map(Some)
    }

    fn search(&self, _: &[&str], _: u32) -> Result<Option<Vec<Row>>> {
        Ok(None)
    }

    fn statement(_: &Question) -> Option<String> {
        None
    }

    fn ask(&self, _: &str) -> Result<Told> {
        Err("it has no such language".into())
    }

    fn compact(&mut self) -> Result<Option<()>> {
        crate::peer::Peer::compact(&mut self.0)?;
        Ok(Some(()))
    }

    fn close(self) -> Result<()> {
        Ok(())
    }
}

fn row(fact: Fact) -> data::Row {
    data::Row {
        kind: data::Kind::Belief,
        namespace: NAMESPACE.to_owned(),
        subject: fact.subject,
        relation: fact.relation,
        text: fact.object,
        user: None,
        session: None,
        tags: Vec::new(),
        time_ms: fact.created_at,
        parent: None,
    }
}
