//! How well searches find: questions about conversations, and whether a turn that answers one is among the
//! first rows.
//!
//! Everything goes through [`Session::query`] of a store as it is shipped; there is nothing to set. Each
//! conversation is a namespace, and a question is asked in that of its own.
//!
//! - `tally`: hits counted. `report`: tables and JSON.

mod report;
mod tally;

use std::path::Path;
use std::time::{Duration, Instant};

use grainstore::cal::{Near, Query};
use grainstore::{ContentAddress, Offer, OpenOptions, PageOptions, Session, SessionOptions, Store};
use serde::Serialize;
use tempfile::TempDir;

use crate::Error;
use crate::locomo::{Conversation, MODEL, Question};

pub use report::{CategoryFigures, FloorFigures, ModeFigures, Report};
pub use tally::{Figures, RANKS};

/// Rows asked for: as many as the last rank that counts.
const ROWS: usize = 20;

/// What is asked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The words of the question.
    Text,
    /// Its vector.
    Vector,
    /// Both in one query.
    Hybrid,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Text, Self::Vector, Self::Hybrid];

    fn query(self, question: &Question) -> Query {
        let near =
            || Near { model: Some(MODEL.to_owned()), values: question.vector.as_slice().into() };
        match self {
            Self::Text => Query::default().searching(question.text.as_str()),
            Self::Vector => Query::default().nearing(near()),
            Self::Hybrid => Query::default().searching(question.text.as_str()).nearing(near()),
        }
    }
}

/// Conversations in a store of their own, which goes when this is dropped.
pub struct Library {
    store: Store,
    kept: Vec<Kept>,
    _dir: TempDir,
}

/// A conversation in the store, with the addresses of its turns in order.
struct Kept {
    conversation: Conversation,
    addresses: Vec<ContentAddress>,
}

/// What came of a question.
struct Outcome {
    category: u8,
    /// Of the first turn that answers it, from 1; none where it is not among the rows.
    rank: Option<usize>,
    /// The score of the first row; 0 without rows.
    best: f64,
    took: Duration,
}

impl Library {
    /// Stores conversations of the folder, each turn with its vector. With `in_sessions` each is part of
    /// the session it was said in, as users store them; without, no turn knows what is said around it.
    ///
    /// # Errors
    /// As [`Conversation::read`]; the store's.
    pub fn of(folder: &Path, names: &[&'static str], in_sessions: bool) -> Result<Self, Error> {
        let dir = TempDir::new()?;
        let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
        let mut kept = Vec::with_capacity(names.len());
        for name in names {
            let conversation = Conversation::read(folder, name)?;
            let namespace = conversation.namespace();
            let mut offers = Vec::with_capacity(conversation.turns.len());
            for turn in &conversation.turns {
                let grain = turn.grain(&namespace, in_sessions)?;
                offers.push(Offer::Grain(grain).with_vectors(vec![turn.embedding()?]));
            }
            let puts = within(&store, namespace).put_batch(offers)?;
            let addresses = puts.iter().map(grainstore::PutOutcome::address).collect();
            kept.push(Kept { conversation, addresses });
        }
        Ok(Self { store, kept, _dir: dir })
    }

    /// Asks every question with one mode, and counts.
    ///
    /// # Errors
    /// The store's.
    pub fn measure(&self, mode: Mode) -> Result<ModeFigures, Error> {
        let mut outcomes = Vec::new();
        for kept in &self.kept {
            let session = within(&self.store, kept.conversation.namespace());
            for question in &kept.conversation.questions {
                outcomes.push(kept.ask(&session, question, mode)?);
            }
        }
        Ok(ModeFigures::of(mode, &outcomes))
    }
}

impl Kept {
    fn ask(&self, session: &Session, question: &Question, mode: Mode) -> Result<Outcome, Error> {
        let query = mode.query(question);
        let start = Instant::now();
        let answer = session.query(&query, &PageOptions::first(ROWS))?;
        let took = start.elapsed();
        let is_answer = |address: &ContentAddress| {
            question.answers.iter().any(|at| self.addresses.get(*at) == Some(address))
        };
        let place = answer.results.iter().position(|row| is_answer(&row.content_address));
        let rank = place.map(|place| place + 1);
        let best = answer.results.first().map_or(0.0, |row| row.score);
        Ok(Outcome { category: question.category, rank, best, took })
    }
}

fn within(store: &Store, namespace: String) -> Session {
    store.session(SessionOptions { namespace: Some(namespace), ..SessionOptions::default() })
}
