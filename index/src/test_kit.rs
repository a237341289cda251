//! What the tests of this crate share: notes to index, and a small store that plays the engine.

use std::fmt::Write as _;

use grainstore_format::{EpochMs, GrainType};
use redb::backends::InMemoryBackend;
use redb::{Database, Key, ReadableDatabase, ReadableTable, TableDefinition, Value};

use crate::stamp;
use crate::tables::{
    BY_NAMESPACE, BY_RELATION, BY_SESSION, BY_SUBJECT, BY_TAG, BY_TYPE, IDS, META, TERMS,
};
use crate::{Error, Facts, Reader, Result, Sequence, StagedDictionary, Tables, Tail, Word, fold};

/// The indexed fields of a grain, as plain data.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Note {
    pub(crate) namespace: String,
    pub(crate) grain_type: GrainType,
    pub(crate) subject: Option<String>,
    pub(crate) relation: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) time: i64,
}

impl Note {
    /// A belief about a subject, and nothing else.
    pub(crate) fn about(subject: &str, namespace: &str, time: i64) -> Self {
        Self {
            namespace: namespace.to_owned(),
            grain_type: GrainType::Belief,
            subject: Some(subject.to_owned()),
            relation: None,
            session: None,
            tags: Vec::new(),
            time,
        }
    }

    pub(crate) fn facts(&self) -> Facts<'_> {
        Facts {
            namespace: Word::Plain(&self.namespace),
            grain_type: self.grain_type,
            subject: self.subject.as_deref().map(Word::Plain),
            relation: self.relation.as_deref().map(Word::Plain),
            session: self.session.as_deref().map(Word::Plain),
            tags: self.tags.iter().map(|tag| Word::Plain(tag)).collect(),
            time: EpochMs::new(self.time),
        }
    }
}

/// The address the log of the tests has at a sequence.
pub(crate) fn address(sequence: u64) -> [u8; 32] {
    let mut address = [0xAD; 32];
    address[..8].copy_from_slice(&sequence.to_be_bytes());
    address
}

/// A database in memory with its current view.
pub(crate) struct Store {
    pub(crate) db: Database,
    pub(crate) tables: Tables,
    pub(crate) tail: Tail,
}

impl Store {
    pub(crate) fn new() -> Self {
        let db = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        Self::over(db)
    }

    /// Sets up an empty index in a database.
    pub(crate) fn over(db: Database) -> Self {
        let txn = db.begin_write().unwrap();
        stamp::reset(&txn).unwrap();
        txn.commit().unwrap();
        let tables = Tables::open(&db.begin_read().unwrap()).unwrap();
        let tail = Tail::after(&tables).unwrap();
        Self { db, tables, tail }
    }

    pub(crate) fn push(&mut self, sequence: u64, facts: &Facts<'_>) -> Result<()> {
        let at = Sequence::new(sequence);
        self.tail.push(&self.tables, at, address(sequence), facts)
    }

    /// Folds the tail and keeps it, so that tables and tail overlap until it is emptied.
    pub(crate) fn fold_and_keep(&mut self) -> Result<()> {
        let txn = self.db.begin_write().unwrap();
        fold(&txn, &self.tail)?;
        txn.commit().unwrap();
        self.tables = Tables::open(&self.db.begin_read().unwrap())?;
        Ok(())
    }

    pub(crate) fn fold(&mut self) -> Result<()> {
        self.fold_and_keep()?;
        self.tail = self.tail.folded();
        Ok(())
    }

    /// Pushes and folds everything in one transaction, `batch` grains at a time.
    pub(crate) fn fold_staged(&mut self, notes: &[Note], batch: usize) {
        let txn = self.db.begin_write().unwrap();
        let mut sequence = 0;
        for batch in notes.chunks(batch) {
            {
                let staged = StagedDictionary::open(&txn).unwrap();
                for note in batch {
                    sequence += 1;
                    let at = Sequence::new(sequence);
                    self.tail.push(&staged, at, address(sequence), &note.facts()).unwrap();
                }
            }
            fold(&txn, &self.tail).unwrap();
            self.tail = self.tail.folded();
        }
        txn.commit().unwrap();
        self.tables = Tables::open(&self.db.begin_read().unwrap()).unwrap();
    }

    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader::new(&self.tables, &self.tail)
    }

    /// Every row of every derived table as `table key = value`, in hex.
    pub(crate) fn dump(&self) -> Vec<String> {
        let mut rows = Vec::new();
        self.dump_table(&mut rows, META);
        self.dump_table(&mut rows, TERMS);
        self.dump_table(&mut rows, IDS);
        self.dump_table(&mut rows, BY_NAMESPACE);
        self.dump_table(&mut rows, BY_TYPE);
        self.dump_table(&mut rows, BY_SUBJECT);
        self.dump_table(&mut rows, BY_RELATION);
        self.dump_table(&mut rows, BY_SESSION);
        self.dump_table(&mut rows, BY_TAG);
        rows
    }

    fn dump_table<K: Key, V: Value>(
        &self,
        rows: &mut Vec<String>,
        table: TableDefinition<'static, K, V>,
    ) {
        let name = redb::TableHandle::name(&table).to_owned();
        let open = self.db.begin_read().unwrap().open_table(table).unwrap();
        for entry in open.iter().unwrap() {
            let (key, value) = entry.unwrap();
            let key = hex(K::as_bytes(&key.value()).as_ref());
            let value = hex(V::as_bytes(&value.value()).as_ref());
            rows.push(format!("{name} {key} = {value}"));
        }
    }
}

/// Lowercase hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The code of a failure; panics on success, which is the failure of the test.
pub(crate) fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> &'static str {
    result.unwrap_err().code()
}
