//! SQLite behind the seam, the way somebody would keep the same facts in it by hand: a table with its indexes,
//! and FTS5 over its texts.
//!
//! WAL with `synchronous=FULL`: a commit is on disk when it returns, as with a store.

use std::path::Path;

use grainstore::ContentAddress;
use rusqlite::{Connection, Error as SqlError, OptionalExtension, Row, Transaction, params};

use super::data::{CONFIDENCE, Fact, Item, NAMESPACE};
use super::peer::{CACHE_BYTES, Peer};
use crate::error::{Code, Error, Result};

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS facts (
        id INTEGER PRIMARY KEY, address BLOB NOT NULL UNIQUE, namespace TEXT NOT NULL,
        subject TEXT NOT NULL, relation TEXT NOT NULL, object TEXT NOT NULL,
        confidence REAL NOT NULL, created_at INTEGER NOT NULL);
    CREATE INDEX IF NOT EXISTS by_subject ON facts (subject, created_at);
    CREATE INDEX IF NOT EXISTS by_relation ON facts (relation, created_at);
    CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (
        subject, relation, object, content='facts', content_rowid='id',
        tokenize='porter unicode61');";

const INSERT: &str = "INSERT INTO facts (address, namespace, subject, relation, object, \
                      confidence, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)";

const INDEX: &str = "INSERT INTO words (rowid, subject, relation, object) VALUES (?, ?, ?, ?)";

const GET: &str = "SELECT created_at, subject, relation, object FROM facts WHERE address = ?";

const LATEST: &str = "SELECT created_at, subject, relation, object FROM facts \
                      WHERE subject = ? ORDER BY created_at DESC LIMIT ?";

const SEARCH: &str = "SELECT f.created_at, f.subject, f.relation, f.object \
                      FROM words JOIN facts f ON f.id = words.rowid \
                      WHERE words MATCH ? ORDER BY words.rank LIMIT ?";

/// What the pragma answers for FULL: the log is synced with every commit.
const SYNCHRONOUS_FULL: i64 = 2;

/// A database.
struct Sqlite(Connection);

/// Opens the database in a directory, or creates it.
pub(super) fn open(directory: &Path) -> Result<Box<dyn Peer>> {
    let sqlite = in_words(connect(&directory.join("facts.sqlite")))?;
    Ok(Box::new(sqlite))
}

/// The version of the library.
pub(super) fn version() -> &'static str {
    rusqlite::version()
}

fn connect(file: &Path) -> Result<Sqlite, SqlError> {
    let connection = Connection::open(file)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    let kibibytes = i64::try_from(CACHE_BYTES >> 10).unwrap_or(i64::MAX);
    connection.pragma_update(None, "cache_size", -kibibytes)?;
    // A pragma that is not understood is no error, and a comparison would be void.
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    let level: i64 = connection.pragma_query_value(None, "synchronous", |row| row.get(0))?;
    if (mode.as_str(), level) != ("wal", SYNCHRONOUS_FULL) {
        return Err(SqlError::InvalidParameterName(format!("{mode}, synchronous={level}")));
    }
    connection.execute_batch(TABLES)?;
    Ok(Sqlite(connection))
}

impl Sqlite {
    fn insert(&mut self, items: &[Item]) -> Result<(), SqlError> {
        let transaction = self.0.transaction()?;
        items.iter().try_for_each(|item| insert(&transaction, item))?;
        transaction.commit()
    }

    /// Rows of a statement with a text and a limit.
    fn rows(&self, sql: &str, text: &str, limit: u32) -> Result<Vec<Fact>, SqlError> {
        self.0.prepare_cached(sql)?.query_map(params![text, limit], fact)?.collect()
    }

    /// Moves what the log has into the database, and empties it.
    fn checkpoint(&self) -> Result<(), SqlError> {
        // Answers a row: busy, pages in the log, pages moved.
        self.0.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
    }
}

impl Peer for Sqlite {
    fn put(&mut self, item: Item) -> Result<()> {
        in_words(self.insert(&[item]))
    }

    fn put_batch(&mut self, items: Vec<Item>) -> Result<()> {
        in_words(self.insert(&items))
    }

    fn flush(&mut self) -> Result<()> {
        in_words(self.checkpoint())
    }

    fn settle(&mut self) -> Result<()> {
        in_words(self.0.execute_batch("ANALYZE"))
    }

    fn get(&mut self, address: &ContentAddress) -> Result<Option<Fact>> {
        let mut select = in_words(self.0.prepare_cached(GET))?;
        in_words(select.query_row([address.as_bytes()], fact).optional())
    }

    fn latest(&mut self, subject: &str, limit: u32) -> Result<Vec<Fact>> {
        in_words(self.rows(LATEST, subject, limit))
    }

    fn search(&mut self, words: &[&str], limit: u32) -> Result<Vec<Fact>> {
        in_words(self.rows(SEARCH, &words.join(" OR "), limit))
    }

    fn assemble(&mut self, _: &str) -> Result<Option<String>> {
        Ok(None)
    }

    fn compact(&mut self) -> Result<()> {
        in_words(self.0.execute_batch("VACUUM").and_then(|()| self.checkpoint()))
    }

    fn close(self: Box<Self>) -> Result<()> {
        in_words(self.0.close().map_err(|(_, error)| error))
    }
}

fn insert(transaction: &Transaction<'_>, item: &Item) -> Result<(), SqlError> {
    let Fact { created_at, subject, relation, object } = &item.fact;
    let address = item.address.as_bytes();
    transaction
        .prepare_cached(INSERT)?
        .execute(params![address, NAMESPACE, subject, relation, object, CONFIDENCE, created_at])?;
    let id = transaction.last_insert_rowid();
    transaction.prepare_cached(INDEX)?.execute(params![id, subject, relation, object])?;
    Ok(())
}

fn fact(row: &Row<'_>) -> Result<Fact, SqlError> {
    Ok(Fact {
        created_at: row.get(0)?,
        subject: row.get(1)?,
        relation: row.get(2)?,
        object: row.get(3)?,
    })
}

/// The result with SQLite's error in the words of the command line.
fn in_words<T>(result: Result<T, SqlError>) -> Result<T> {
    result.map_err(|error| Error::new(Code::Io, format!("SQLite: {error}"), ""))
}
