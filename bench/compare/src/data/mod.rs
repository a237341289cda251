//! The rows of a comparison, the same for every peer and in every run.
//!
//! - `row`: one row and its grain. `wordnet`, `generated`: where rows come from.
//!
//! Seven rows in ten are WordNet triples (as many as there are), one in ten is a fact about a
//! person, the rest are turns of conversations.

mod generated;
mod row;
mod wordnet;

use std::path::Path;

pub(crate) use generated::{FACTS_PER_PERSON, HUB, PEOPLE};
use grainstore::ContentAddress;
pub(crate) use row::{Item, Kind, Row};

use crate::Result;
use compare_facts::Random;

/// When the first row is from, epoch milliseconds.
const START_MS: i64 = 1_600_000_000_000;
/// Time between rows.
pub(crate) const STEP_MS: i64 = 1000;
/// The number of the first fresh turn, beyond those of any data set.
const FRESH: usize = 200_000_000;

/// A subject with its triples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Synset {
    /// A readable name.
    pub(crate) name: String,
    /// What kind of word it is.
    pub(crate) tags: Vec<String>,
    /// Relation and object.
    pub(crate) triples: Vec<(String, String)>,
}

/// Where the triples are from.
#[derive(Debug)]
pub(crate) struct Source {
    synsets: Vec<Synset>,
    /// For the report.
    pub(crate) origin: String,
}

/// Rows in the order they are stored, with their addresses.
#[derive(Debug)]
pub(crate) struct Dataset {
    rows: Vec<Row>,
    addresses: Vec<ContentAddress>,
    turns: usize,
    last_turn: Option<ContentAddress>,
    random: Random,
}

/// Rows next to each other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part<'d> {
    /// The rows.
    pub(crate) rows: &'d [Row],
    /// Their addresses.
    pub(crate) addresses: &'d [ContentAddress],
}

/// Rows that are in no data set, to write into a store that has one: turns numbered from `first`.
///
/// # Errors
/// The format's.
pub(crate) fn fresh(first: usize, count: usize) -> Result<Vec<Item>> {
    let item = |n: usize| {
        // Each has numbers of its own, so that a row is the same whatever is made with it.
        let mut random = Random::new(u64::try_from(n)?);
        let mut row = generated::turn(FRESH + n, None, &mut random);
        row.time_ms = START_MS + i64::try_from(FRESH + n)? * STEP_MS;
        row.item()
    };
    (first..first.saturating_add(count)).map(item).collect()
}

impl Source {
    /// WordNet from a directory, in random order; a look-alike for `largest` rows where it is absent.
    ///
    /// # Errors
    /// For files that are there and cannot be read as WordNet.
    pub(crate) fn open(directory: &Path, largest: usize) -> Result<Self> {
        let mut random = Random::new(1);
        let (mut synsets, origin) = if let Some(synsets) = wordnet::read(directory)? {
            let triples: usize = synsets.iter().map(|synset| synset.triples.len()).sum();
            let origin = format!("WordNet, {} synsets, {triples} triples", synsets.len());
            (synsets, origin)
        } else {
            let origin = "generated triples of WordNet's shape: WordNet itself is not here";
            (generated::synsets(largest, &mut random), origin.to_owned())
        };
        random.shuffle(&mut synsets);
        Ok(Self { synsets, origin })
    }

    fn rows(&self) -> impl Iterator<Item = Row> {
        self.synsets.iter().flat_map(|synset| {
            synset.triples.iter().map(|(relation, object)| Row {
                kind: Kind::Belief,
                namespace: "wordnet".to_owned(),
                subject: synset.name.clone(),
                relation: relation.clone(),
                text: object.clone(),
                user: None,
                session: None,
                tags: synset.tags.clone(),
                time_ms: 0,
                parent: None,
            })
        })
    }
}

impl Dataset {
    /// `size` rows, the kinds mixed.
    ///
    /// # Errors
    /// The format's, for a row that makes no valid grain.
    pub(crate) fn of(source: &Source, size: usize) -> Result<Self> {
        let people = size / 10 / FACTS_PER_PERSON * FACTS_PER_PERSON;
        let mut words = source.rows().take(size / 10 * 7);
        let mut random = Random::new(2);
        let mut set = Self {
            rows: Vec::with_capacity(size),
            addresses: Vec::with_capacity(size),
            turns: 0,
            last_turn: None,
            random: Random::new(3),
        };
        let mut people = (0..people).map(|n| generated::person(n, &mut random));
        while set.rows.len() < size {
            // Runs of each kind: a synset or a person is learned about at one time.
            for row in words.by_ref().take(70).chain(people.by_ref().take(FACTS_PER_PERSON)) {
                set.push(row)?;
            }
            set.push_turns(20.min(size - set.rows.len().min(size)))?;
        }
        Ok(set)
    }

    /// Adds `count` rows about one subject in `namespaces` namespaces.
    ///
    /// # Errors
    /// The format's.
    pub(crate) fn push_hub(&mut self, count: usize, namespaces: usize) -> Result<()> {
        for n in 0..count {
            let row = generated::hub(n, namespaces, &mut self.random);
            self.push(row)?;
        }
        Ok(())
    }

    /// Adds turns of conversations.
    ///
    /// # Errors
    /// The format's.
    pub(crate) fn push_turns(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            let row = generated::turn(self.turns, self.last_turn, &mut self.random);
            self.turns += 1;
            self.last_turn = Some(self.push(row)?);
        }
        Ok(())
    }

    /// Rows there are.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The first `count` rows; all of them where there are fewer.
    #[must_use]
    pub(crate) fn first(&self, count: usize) -> Part<'_> {
        self.part(0, count)
    }

    /// The rows from `from` on.
    #[must_use]
    pub(crate) fn rest(&self, from: usize) -> Part<'_> {
        self.part(from, self.len())
    }

    fn part(&self, from: usize, to: usize) -> Part<'_> {
        let to = to.min(self.len());
        let from = from.min(to);
        Part {
            rows: self.rows.get(from..to).unwrap_or_default(),
            addresses: self.addresses.get(from..to).unwrap_or_default(),
        }
    }

    fn push(&mut self, mut row: Row) -> Result<ContentAddress> {
        row.time_ms = START_MS + i64::try_from(self.rows.len())? * STEP_MS;
        let address = row.item()?.blob.address();
        self.addresses.push(address);
        self.rows.push(row);
        Ok(address)
    }
}

#[cfg(test)]
mod tests;
