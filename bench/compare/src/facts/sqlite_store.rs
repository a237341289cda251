//! SQLite at the work of the facts, the way somebody would keep them in it by hand: a table with
//! their fields and a ready-made key, three indexes, and FTS5 over the texts in the same commit.
//!
//! WAL with `synchronous=FULL`: a commit is on disk when it returns. One connection writes, one
//! reads.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use compare_facts::{CONFIDENCE, Fact, NAMESPACE, Peer, Question, Row, Told};
use grainstore::ContentAddress;
use rusqlite::{Connection, ToSql, Transaction, params};

use super::grain;
use crate::Result;
use crate::peers::sqlite_connection;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS facts (
        id INTEGER PRIMARY KEY, address BLOB NOT NULL UNIQUE, namespace TEXT NOT NULL,
        subject TEXT NOT NULL, relation TEXT NOT NULL, object TEXT NOT NULL,
        confidence REAL NOT NULL, created_at INTEGER NOT NULL, superseded_by BLOB);
    CREATE INDEX IF NOT EXISTS by_subject ON facts (subject, created_at)
        WHERE superseded_by IS NULL;
    CREATE INDEX IF NOT EXISTS by_relation ON facts (subject, relation, created_at)
        WHERE superseded_by IS NULL;
    CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (
        subject, relation, object, content='facts', content_rowid='id',
        tokenize='porter unicode61');";

const INSERT: &str = "INSERT INTO facts (address, namespace, subject, relation, object, \
                      confidence, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)";
const INDEX: &str = "INSERT INTO words (rowid, subject, relation, object) VALUES (?, ?, ?, ?)";
const SUPERSEDE: &str =
    "UPDATE facts SET superseded_by = ? WHERE address = ? AND superseded_by IS NULL";
const GET: &str = "SELECT created_at, subject, relation, object FROM facts WHERE address = ?";
const OF_SUBJECT: &str = "SELECT created_at, subject, relation, object FROM facts \
                          WHERE subject = ? AND superseded_by IS NULL \
                          ORDER BY created_at DESC LIMIT ?";
const OF_RELATION: &str = "SELECT created_at, subject, relation, object FROM facts \
                           WHERE subject = ? AND relation = ? AND superseded_by IS NULL \
                           ORDER BY created_at DESC LIMIT ?";
const SEARCH: &str = "SELECT f.created_at, f.subject, f.relation, f.object \
                      FROM words JOIN facts f ON f.id = words.rowid \
                      WHERE words MATCH ? AND f.superseded_by IS NULL \
                      ORDER BY words.rank LIMIT ?";

/// A database.
pub(super) struct Sqlite {
    writer: Mutex<Connection>,
    reader: Mutex<Connection>,
}

impl Sqlite {
    fn write(&self, work: impl FnOnce(&Transaction<'_>) -> Result<()>) -> Result<()> {
        let mut writer = lock(&self.writer);
        let transaction = writer.transaction()?;
        work(&transaction)?;
        Ok(transaction.commit()?)
    }

    fn rows(&self, sql: &str, texts: &[&str], most: u32) -> Result<Vec<Fact>> {
        let reader = lock(&self.reader);
        let mut select = reader.prepare_cached(sql)?;
        let mut values: Vec<&dyn ToSql> = texts.iter().map(|text| text as _).collect();
        values.push(&most);
        Ok(select.query_map(values.as_slice(), fact)?.collect::<rusqlite::Result<_>>()?)
    }
}

impl Peer for Sqlite {
    type Item = (Fact, ContentAddress);
    type Key = ContentAddress;

    fn open(directory: &Path) -> Result<Self> {
        let path = directory.join("facts.sqlite");
        let writer = sqlite_connection(&path)?;
        writer.execute_batch(TABLES)?;
        Ok(Self { writer: Mutex::new(writer), reader: Mutex::new(sqlite_connection(&path)?) })
    }

    fn item(fact: Fact) -> Result<Self::Item> {
        let address = grain::address(&fact)?;
        Ok((fact, address))
    }

    fn key(fact: Fact) -> Result<ContentAddress> {
        grain::address(&fact)
    }

    fn put(&self, item: Self::Item) -> Result<()> {
        self.write(|transaction| insert(transaction, &item))
    }

    fn put_batch(&self, items: Vec<Self::Item>) -> Result<()> {
        self.write(|transaction| items.iter().try_for_each(|item| insert(transaction, item)))
    }

    fn supersede(&self, old: &ContentAddress, new: Self::Item) -> Result<Option<()>> {
        self.write(|transaction| {
            insert(transaction, &new)?;
            let mut update = transaction.prepare_cached(SUPERSEDE)?;
            match update.execute(params![new.1.as_bytes(), old.as_bytes()])? {
                1 => Ok(()),
                _ => Err("what is to be superseded is not there".into()),
            }
        })?;
        Ok(Some(()))
    }

    fn flush(&self) -> Result<()> {
        // Answers a row: busy, pages in the log, pages moved.
        Ok(lock(&self.writer).query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?)
    }

    fn settle(&self) -> Result<()> {
        Ok(lock(&self.writer).execute_batch("ANALYZE")?)
    }

    fn get(&self, key: &ContentAddress) -> Result<Option<Fact>> {
        let reader = lock(&self.reader);
        let mut select = reader.prepare_cached(GET)?;
        Ok(Some(select.query_row([key.as_bytes()], fact)?))
    }

    fn latest(
        &self,
        subject: &str,
        relation: Option<&str>,
        most: u32,
    ) -> Result<Option<Vec<Fact>>> {
        match relation {
            None => self.rows(OF_SUBJECT, &[subject], most),
            Some(relation) => self.rows(OF_RELATION, &[subject, relation], most),
        }
        .map(Some)
    }

    fn search(&self, words: &[&str], most: u32) -> Result<Option<Vec<Row>>> {
        let found = self.rows(SEARCH, &[&words.join(" OR ")], most)?;
        Ok(Some(found.into_iter().map(Row::Fact).collect()))
    }

    fn statement(_: &Question) -> Option<String> {
        None
    }

    fn ask(&self, _: &str) -> Result<Told> {
        Err("it has no such language".into())
    }

    fn compact(&mut self) -> Result<Option<()>> {
        lock(&self.writer).execute_batch("VACUUM")?;
        self.flush().map(Some)
    }

    fn close(self) -> Result<()> {
        let close = |connection: Mutex<Connection>| {
            let connection = connection.into_inner().unwrap_or_else(PoisonError::into_inner);
            connection.close().map_err(|(_, error)| error)
        };
        close(self.reader)?;
        Ok(close(self.writer)?)
    }
}

fn lock(connection: &Mutex<Connection>) -> MutexGuard<'_, Connection> {
    connection.lock().unwrap_or_else(PoisonError::into_inner)
}

fn insert(transaction: &Transaction<'_>, (fact, address): &(Fact, ContentAddress)) -> Result<()> {
    let Fact { created_at, subject, relation, object } = fact;
    let address = address.as_bytes();
    transaction
        .prepare_cached(INSERT)?
        .execute(params![address, NAMESPACE, subject, relation, object, CONFIDENCE, created_at])?;
    let id = transaction.last_insert_rowid();
    transaction.prepare_cached(INDEX)?.execute(params![id, subject, relation, object])?;
    Ok(())
}

fn fact(row: &rusqlite::Row<'_>) -> rusqlite::Result<Fact> {
    Ok(Fact {
        created_at: row.get(0)?,
        subject: row.get(1)?,
        relation: row.get(2)?,
        object: row.get(3)?,
    })
}
