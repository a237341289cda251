//! The seam to the stores: what each must be able to do to be measured. `None` is the answer of a
//! store that cannot: it has no figure then.

use std::path::Path;

use crate::Result;
use crate::data::Fact;
use crate::question::Question;

/// A row of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// The fact.
    Fact(Fact),
    /// Its time only, of an index that keeps no facts.
    Time(i64),
}

/// What a store says to a question in its language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// So many rows.
    Rows(usize),
    /// A text.
    Text(String),
}

/// A store under comparison, open.
pub trait Peer: Sized + Sync {
    /// A fact ready to be stored: made outside every measurement of a single call.
    type Item: Send;
    /// What a fact is found by.
    type Key: Clone + Send;

    /// Opens, or creates, a store in a directory.
    ///
    /// # Errors
    /// The store's.
    fn open(directory: &Path) -> Result<Self>;

    /// A fact made ready.
    ///
    /// # Errors
    /// Where it makes no valid item.
    fn item(fact: Fact) -> Result<Self::Item>;

    /// The key of a fact.
    ///
    /// # Errors
    /// As [`Peer::item`].
    fn key(fact: Fact) -> Result<Self::Key>;

    /// Stores one fact; it survives a power cut when this returns.
    ///
    /// # Errors
    /// The store's.
    fn put(&self, item: Self::Item) -> Result<()>;

    /// Stores all of these in one durable commit.
    ///
    /// # Errors
    /// The store's.
    fn put_batch(&self, items: Vec<Self::Item>) -> Result<()>;

    /// Puts a fact in the place of another, durably.
    ///
    /// # Errors
    /// The store's.
    fn supersede(&self, old: &Self::Key, new: Self::Item) -> Result<Option<()>>;

    /// Brings work behind the writes to its end: folds, checkpoints.
    ///
    /// # Errors
    /// The store's.
    fn flush(&self) -> Result<()>;

    /// What the store advises after a large load. Not timed.
    ///
    /// # Errors
    /// The store's.
    fn settle(&self) -> Result<()>;

    /// The fact of a key.
    ///
    /// # Errors
    /// The store's; for a fact that is not there.
    fn get(&self, key: &Self::Key) -> Result<Option<Fact>>;

    /// The newest facts of a subject, or of a subject and a relation.
    ///
    /// # Errors
    /// The store's.
    fn latest(&self, subject: &str, relation: Option<&str>, most: u32)
    -> Result<Option<Vec<Fact>>>;

    /// The facts that have one of these words, the best first.
    ///
    /// # Errors
    /// The store's.
    fn search(&self, words: &[&str], most: u32) -> Result<Option<Vec<Row>>>;

    /// A question in the store's language.
    fn statement(question: &Question) -> Option<String>;

    /// The answer to a statement.
    ///
    /// # Errors
    /// The store's.
    fn ask(&self, statement: &str) -> Result<Told>;

    /// Gives unused space back to the disk.
    ///
    /// # Errors
    /// The store's.
    fn compact(&mut self) -> Result<Option<()>>;

    /// Closes it in order.
    ///
    /// # Errors
    /// The store's.
    fn close(self) -> Result<()>;
}
