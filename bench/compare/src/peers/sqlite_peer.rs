//! SQLite behind the seam, the way somebody would keep grains in it: one row a grain with the
//! fields that are asked for as columns, the grain itself beside them, and indexes.
//!
//! WAL with `synchronous=FULL`: a commit is on disk when it returns, as with the other peers. One
//! connection writes and one reads, each behind a lock, which is faster here than connections that
//! wait for each other's locks on the file.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use grainstore::{ContentAddress, Grain};
use rusqlite::{Connection, OptionalExtension, Transaction, params, params_from_iter};

use crate::Result;
use crate::ask::{Ask, Hit, Line};
use crate::data::Item;
use crate::peer::Peer;
use crate::peers::sqlite_words::{connection, number, statement};

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS grains (
        seq INTEGER PRIMARY KEY, address BLOB NOT NULL UNIQUE, time INTEGER NOT NULL,
        kind INTEGER NOT NULL, namespace TEXT NOT NULL, subject TEXT NOT NULL,
        relation TEXT NOT NULL, object TEXT, user TEXT, session TEXT, grain BLOB NOT NULL);
    CREATE TABLE IF NOT EXISTS tags (
        tag TEXT NOT NULL, time INTEGER NOT NULL, seq INTEGER NOT NULL,
        PRIMARY KEY (tag, time, seq)) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS spo ON grains (subject, relation, object, time);
    CREATE INDEX IF NOT EXISTS pos ON grains (relation, object, subject, time);
    CREATE INDEX IF NOT EXISTS osp ON grains (object, subject, relation, time);
    CREATE INDEX IF NOT EXISTS by_time ON grains (time);
    CREATE INDEX IF NOT EXISTS by_kind ON grains (kind, time);
    CREATE INDEX IF NOT EXISTS by_user ON grains (user, time) WHERE user IS NOT NULL;
    CREATE INDEX IF NOT EXISTS by_session ON grains (session, time) WHERE session IS NOT NULL;";

/// What makes the latest of a term, or of a pair, a range read instead of a sort.
const LATEST: &str = "
    CREATE INDEX IF NOT EXISTS s_latest ON grains (subject, time);
    CREATE INDEX IF NOT EXISTS p_latest ON grains (relation, time);
    CREATE INDEX IF NOT EXISTS o_latest ON grains (object, time);
    CREATE INDEX IF NOT EXISTS sp_latest ON grains (subject, relation, time);
    CREATE INDEX IF NOT EXISTS ns_latest ON grains (namespace, subject, time);";

const INSERT: &str = "INSERT INTO grains (address, time, kind, namespace, subject, relation, \
                      object, user, session, grain) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

/// Which indexes a database has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Indexes {
    /// The triple indexes, and one for each other field.
    Triples,
    /// Those, and more that end in the time.
    Latest,
}

/// A database.
#[derive(Debug)]
pub(crate) struct Sqlite {
    writer: Mutex<Connection>,
    reader: Mutex<Connection>,
}

impl Sqlite {
    /// Opens or creates the database in a directory.
    ///
    /// # Errors
    /// SQLite's.
    pub(crate) fn open(path: &Path, indexes: Indexes) -> Result<Self> {
        let path = path.join("grains.sqlite");
        let writer = connection(&path)?;
        writer.execute_batch(TABLES)?;
        if indexes == Indexes::Latest {
            writer.execute_batch(LATEST)?;
        }
        Ok(Self { writer: Mutex::new(writer), reader: Mutex::new(connection(&path)?) })
    }

    fn writer(&self) -> MutexGuard<'_, Connection> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a question; `row` reads the address and one column more.
    fn select<T>(
        &self,
        ask: &Ask,
        column: &str,
        mut row: impl FnMut(ContentAddress, &rusqlite::Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let (sql, values) = statement(ask, column)?;
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let mut select = reader.prepare_cached(&sql)?;
        let mut rows = select.query(params_from_iter(values))?;
        let mut found = Vec::with_capacity(ask.limit);
        while let Some(next) = rows.next()? {
            found.push(row(ContentAddress::from_bytes(next.get(0)?), next)?);
        }
        Ok(found)
    }
}

impl Peer for Sqlite {
    fn put(&self, items: Vec<Item>) -> Result<()> {
        let mut writer = self.writer();
        let txn = writer.transaction()?;
        for item in &items {
            insert(&txn, item)?;
        }
        txn.commit()?;
        Ok(())
    }

    fn flush(&self) -> Result<bool> {
        // Answers a row: busy, pages in the log, pages moved.
        self.writer().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        Ok(true)
    }

    fn settle(&self) -> Result<()> {
        self.writer().execute_batch("ANALYZE")?;
        Ok(())
    }

    fn compact(&mut self) -> Result<bool> {
        self.writer().execute_batch("VACUUM")?;
        self.flush()
    }

    fn answers(&self, _: &Ask) -> bool {
        true
    }

    fn lines(&self, ask: &Ask) -> Result<Vec<Line>> {
        self.select(ask, "object", |address, row| Ok(Line { address, object: row.get(1)? }))
    }

    fn hits(&self, ask: &Ask) -> Result<Vec<Hit>> {
        self.select(ask, "grain", |address, row| {
            Ok(Hit { address, grain: Grain::decode(row.get_ref(1)?.as_blob()?)? })
        })
    }

    fn has_addresses(&self) -> bool {
        true
    }

    fn get(&self, address: &ContentAddress) -> Result<Option<Vec<u8>>> {
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let mut select = reader.prepare_cached("SELECT grain FROM grains WHERE address = ?")?;
        Ok(select.query_row([address.as_bytes()], |row| row.get(0)).optional()?)
    }
}

fn insert(txn: &Transaction<'_>, item: &Item) -> Result<()> {
    let row = &item.row;
    let address = item.blob.address();
    txn.prepare_cached(INSERT)?.execute(params![
        address.as_bytes(),
        row.time_ms,
        number(row.kind),
        row.namespace,
        row.subject,
        row.relation,
        row.object(),
        row.user,
        row.session,
        item.blob.bytes(),
    ])?;
    let sequence = txn.last_insert_rowid();
    let mut tags = txn.prepare_cached("INSERT INTO tags (tag, time, seq) VALUES (?, ?, ?)")?;
    for tag in &row.tags {
        tags.execute(params![tag, row.time_ms, sequence])?;
    }
    Ok(())
}
