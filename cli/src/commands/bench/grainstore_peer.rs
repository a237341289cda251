//! Grainstore behind the seam: the only file of the benchmark that calls the engine to store and to ask.

use std::path::Path;

use grainstore::cal::{Predicate, Query};
use grainstore::{ContentAddress, Grain, OpenOptions, PageOptions, Session, SessionOptions, Store};

use super::data::{Fact, Item};
use super::peer::{CACHE_BYTES, Peer};
use crate::error::{Code, Error, Result};

/// A store, with the session of its operator.
struct Grainstore(Session);

/// Opens the store in a directory, or creates it, with everything as it is if nothing is said.
pub(super) fn open(directory: &Path) -> Result<Box<dyn Peer>> {
    let options = OpenOptions::new().create(true).cache_bytes(CACHE_BYTES);
    let store = Store::open(directory.join("store"), &options)?;
    Ok(Box::new(Grainstore(store.session(SessionOptions::default()))))
}

impl Grainstore {
    fn query(&self, query: &Query, limit: u32) -> Result<Vec<Fact>> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let page = self.0.query(query, &PageOptions::first(limit))?;
        page.results.iter().map(|found| fact(&found.grain)).collect()
    }
}

impl Peer for Grainstore {
    fn put(&mut self, item: Item) -> Result<()> {
        self.0.put(item.grain)?;
        Ok(())
    }

    fn put_batch(&mut self, items: Vec<Item>) -> Result<()> {
        self.0.put_batch(items.into_iter().map(|item| item.grain))?;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(self.0.store().flush()?)
    }

    fn settle(&mut self) -> Result<()> {
        Ok(())
    }

    fn get(&mut self, address: &ContentAddress) -> Result<Option<Fact>> {
        match self.0.get(address) {
            Ok(stored) => fact(&stored.grain()?).map(Some),
            Err(error) if error.code() == Code::NotFound.name() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn latest(&mut self, subject: &str, limit: u32) -> Result<Vec<Fact>> {
        let of_subject = Predicate::text_is("subject", subject)
            .map_err(|error| Error::from_cal(&error, subject))?;
        self.query(&Query::default().when(of_subject), limit)
    }

    fn search(&mut self, words: &[&str], limit: u32) -> Result<Vec<Fact>> {
        self.query(&Query::default().searching(words.join(" ")), limit)
    }

    fn assemble(&mut self, statement: &str) -> Result<Option<String>> {
        let answer = self.0.ask(statement).map_err(|error| Error::from_cal(&error, statement))?;
        Ok(Some(answer.text().unwrap_or_default().to_owned()))
    }

    fn compact(&mut self) -> Result<()> {
        self.0.store().compact()?;
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.0.store().close()?)
    }
}

/// The fields of a grain, as owned text.
fn fact(grain: &Grain) -> Result<Fact> {
    let text = |name: &str| {
        grain.text(name).map(str::to_owned).ok_or_else(|| {
            Error::new(Code::Integrity, format!("a grain came back without its {name}"), "")
        })
    };
    Ok(Fact {
        created_at: grain.created_at().get(),
        subject: text("subject")?,
        relation: text("relation")?,
        object: text("object")?,
    })
}
