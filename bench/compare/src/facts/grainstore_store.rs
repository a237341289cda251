//! Grainstore at the work of the facts, with everything as it is if nothing is said: the only file
//! of this folder that calls the engine to store and to ask.

use std::path::Path;
use std::thread;
use std::time::Duration;

use compare_facts::{Fact, Peer, Question, Row, Told};
use grainstore::cal::{Answer, Predicate, Query};
use grainstore::{ContentAddress, Grain, OpenOptions, PageOptions, Session, SessionOptions, Store};

use super::grain;
use crate::Result;
use crate::peer::CACHE_BYTES;

/// A store, with the session of its operator.
pub(super) struct Grainstore(Session);

impl Grainstore {
    fn query(&self, query: &Query, most: u32) -> Result<Vec<Grain>> {
        let page = self.0.query(query, &PageOptions::first(usize::try_from(most)?))?;
        Ok(page.results.into_iter().map(|found| found.grain).collect())
    }
}

impl Peer for Grainstore {
    type Item = Grain;
    type Key = ContentAddress;

    fn open(directory: &Path) -> Result<Self> {
        let options = OpenOptions::new().create(true).cache_bytes(CACHE_BYTES);
        let store = Store::open(directory.join("store"), &options)?;
        Ok(Self(store.session(SessionOptions::default())))
    }

    fn item(fact: Fact) -> Result<Grain> {
        grain::of(&fact)
    }

    fn key(fact: Fact) -> Result<ContentAddress> {
        grain::address(&fact)
    }

    fn put(&self, item: Grain) -> Result<()> {
        self.0.put(item)?;
        Ok(())
    }

    fn put_batch(&self, items: Vec<Grain>) -> Result<()> {
        self.0.put_batch(items)?;
        Ok(())
    }

    fn supersede(&self, old: &ContentAddress, new: Grain) -> Result<Option<()>> {
        self.0.supersede(old, new, None)?;
        Ok(Some(()))
    }

    fn flush(&self) -> Result<()> {
        Ok(self.0.store().flush()?)
    }

    fn settle(&self) -> Result<()> {
        // Runs are merged once there is nothing else to do.
        for _ in 0..100 {
            let stats = self.0.store().stats()?;
            if stats.index_runs <= 1 && stats.text_behind == 0 {
                break;
            }
            thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }

    fn get(&self, key: &ContentAddress) -> Result<Option<Fact>> {
        grain::fact(&self.0.get(key)?.grain()?).map(Some)
    }

    fn latest(
        &self,
        subject: &str,
        relation: Option<&str>,
        most: u32,
    ) -> Result<Option<Vec<Fact>>> {
        let mut query = Query::default().when(Predicate::text_is("subject", subject)?);
        if let Some(relation) = relation {
            query = query.when(Predicate::text_is("relation", relation)?);
        }
        self.query(&query, most)?.iter().map(grain::fact).collect::<Result<_>>().map(Some)
    }

    fn search(&self, words: &[&str], most: u32) -> Result<Option<Vec<Row>>> {
        let found = self.query(&Query::default().searching(words.join(" ")), most)?;
        found
            .iter()
            .map(|found| Ok(Row::Fact(grain::fact(found)?)))
            .collect::<Result<_>>()
            .map(Some)
    }

    fn statement(question: &Question) -> Option<String> {
        Some(match question {
            Question::Recall([one, other]) => {
                format!("RECALL beliefs WHERE query = \"{one} {other}\" LIMIT 10")
            }
            Question::Text(subject) => {
                format!("RECALL beliefs ABOUT \"{subject}\" LIMIT 16 AS sml")
            }
            Question::Assemble { subject, words: [one, other], each } => format!(
                "ASSEMBLE reply FOR \"the next reply\" \
                 FROM facts: (RECALL beliefs ABOUT \"{subject}\" LIMIT 16), \
                 found: (RECALL beliefs LIKE \"{one} {other}\" LIMIT {each}), \
                 recent: (RECALL beliefs RECENT {each}) \
                 BUDGET 2000 tokens PRIORITY facts > found > recent"
            ),
        })
    }

    fn ask(&self, statement: &str) -> Result<Told> {
        let answer = self.0.ask(statement)?;
        if let Some(text) = answer.text() {
            return Ok(Told::Text(text.to_owned()));
        }
        match answer.answer {
            Answer::Grains(found) => Ok(Told::Rows(found.results.len())),
            other => Err(format!("an answer of another kind to {statement}: {other:?}").into()),
        }
    }

    fn compact(&mut self) -> Result<Option<()>> {
        self.0.store().compact()?;
        Ok(Some(()))
    }

    fn close(self) -> Result<()> {
        Ok(self.0.store().close()?)
    }
}
