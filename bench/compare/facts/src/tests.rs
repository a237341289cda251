//! The work itself, on stores in memory.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::order::Order;
use crate::peer::{Peer, Row, Told};
use crate::question::Question;
use crate::{Fact, Record, Result, trial, works};

/// A store that has facts in a list, and loses one in so many.
struct Listed<const LOST: usize>(Mutex<Vec<Fact>>);

impl<const LOST: usize> Listed<LOST> {
    fn found(&self, wanted: impl Fn(&Fact) -> bool, most: u32) -> Vec<Fact> {
        let facts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = facts.iter().rev().filter(|fact| wanted(fact));
        newest.take(usize::try_from(most).unwrap()).cloned().collect()
    }
}

impl<const LOST: usize> Peer for Listed<LOST> {
    type Item = Fact;
    type Key = i64;

    fn open(_: &Path) -> Result<Self> {
        Ok(Self(Mutex::new(Vec::new())))
    }
    fn item(fact: Fact) -> Result<Fact> {
        Ok(fact)
    }
    fn key(fact: Fact) -> Result<i64> {
        Ok(fact.created_at)
    }
    fn put(&self, item: Fact) -> Result<()> {
        self.put_batch(vec![item])
    }
    fn put_batch(&self, items: Vec<Fact>) -> Result<()> {
        let mut facts = self.0.lock().unwrap();
        let kept = items.into_iter().enumerate().filter(|(at, _)| (at + 1) % LOST > 0);
        facts.extend(kept.map(|(_, fact)| fact));
        Ok(())
    }
    fn supersede(&self, _: &i64, _: Fact) -> Result<Option<()>> {
        Ok(None)
    }
    fn flush(&self) -> Result<()> {
        Ok(())
    }
    fn settle(&self) -> Result<()> {
        Ok(())
    }
    fn get(&self, key: &i64) -> Result<Option<Fact>> {
        let found = self.found(|fact| fact.created_at == *key, 1).pop();
        Ok(Some(found.ok_or("it is not there")?))
    }
    fn latest(
        &self,
        subject: &str,
        relation: Option<&str>,
        most: u32,
    ) -> Result<Option<Vec<Fact>>> {
        let is_of = |fact: &Fact| {
            fact.subject == subject && relation.is_none_or(|relation| fact.relation == relation)
        };
        Ok(Some(self.found(is_of, most)))
    }
    fn search(&self, words: &[&str], most: u32) -> Result<Option<Vec<Row>>> {
        let has = |fact: &Fact| fact.object.split(' ').any(|word| words.contains(&word));
        Ok(Some(self.found(has, most).into_iter().map(Row::Fact).collect()))
    }
    fn statement(question: &Question) -> Option<String> {
        match question {
            Question::Text(subject) => Some(subject.clone()),
            Question::Recall(_) | Question::Assemble { .. } => None,
        }
    }
    fn ask(&self, subject: &str) -> Result<Told> {
        let facts = self.found(|fact| fact.subject == subject, 16);
        Ok(Told::Text(facts.into_iter().map(|fact| fact.object).collect::<Vec<_>>().join("\n")))
    }
    fn compact(&mut self) -> Result<Option<()>> {
        Ok(None)
    }
    fn close(self) -> Result<()> {
        Ok(())
    }
}

fn measured<P: Peer>(name: &str) -> Result<Vec<Record>> {
    let directory = std::env::temp_dir().join(format!("compare-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let order = Order {
        peer: name.to_owned(),
        grains: 1_200,
        pass: 1,
        calls: 10,
        patience: 1,
        directory: directory.clone(),
    };
    let records = trial::run::<P>(&order);
    std::fs::remove_dir_all(&directory)?;
    records
}

#[test]
fn a_store_that_is_empty_when_it_is_opened_again_is_not_measured() {
    let error = measured::<Listed<{ usize::MAX }>>("listed").unwrap_err().to_string();
    assert_eq!(error, "what was stored is lost");
}

#[test]
fn a_store_that_loses_facts_is_not_measured() {
    let error = measured::<Listed<7>>("losing").unwrap_err().to_string();
    assert!(error.contains("wrong answer") || error.contains("not there"), "{error}");
}

#[test]
fn no_two_works_have_one_name() {
    let names = [
        works::LOAD,
        works::BATCH,
        works::SUBJECT,
        works::RELATION,
        works::GET,
        works::RARE,
        works::COMMON,
        works::IDENTIFIER,
        works::RECALL_RARE,
        works::RECALL_COMMON,
        works::TEXT,
        works::ASSEMBLE_RARE,
        works::ASSEMBLE_COMMON,
        works::ASSEMBLE_TRIMMED,
        works::PUT,
        works::SUPERSEDE,
        works::ONE_THREAD,
        works::THREADS,
        works::OVER_ONE,
        works::MEMORY,
        works::OPEN,
        works::DISK,
        works::DISK_COMPACTED,
    ];
    assert_eq!(std::collections::BTreeSet::from(names).len(), names.len());
}
