//! Helpers of the tests: notes to index, and a small store in place of the engine.

use std::fmt::Write as _;

use grainstore_format::{EpochMs, GrainType};
use redb::backends::InMemoryBackend;
use redb::{Database, ReadableDatabase, ReadableTable};

use crate::meta::{META, RUNS};
use crate::stamp;
use crate::{
    Error, Field, IndexReader, IndexedFields, MergeGoal, Object, Result, RunMerge, Sequence,
    Tables, Tail, TermValue, TieBreaker, fold, remove_unused_runs,
};

/// The indexed fields of a grain, as plain data.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Note {
    pub(crate) namespace: String,
    pub(crate) grain_type: GrainType,
    pub(crate) subject: Option<String>,
    pub(crate) relation: Option<String>,
    pub(crate) object: Option<NoteObject>,
    pub(crate) session: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) time: i64,
}

/// The object of a note.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NoteObject {
    Text(String),
    Map([u8; 32]),
}

impl NoteObject {
    pub(crate) fn object(&self) -> Object<'_> {
        match self {
            Self::Text(text) => Object::Text(TermValue::Plain(text)),
            Self::Map(hash) => Object::Map(*hash),
        }
    }
}

impl Note {
    /// A belief about a subject, without other fields.
    pub(crate) fn about(subject: &str, namespace: &str, time: i64) -> Self {
        Self {
            namespace: namespace.to_owned(),
            grain_type: GrainType::Belief,
            subject: Some(subject.to_owned()),
            relation: None,
            object: None,
            session: None,
            tags: Vec::new(),
            time,
        }
    }

    pub(crate) fn facts(&self) -> IndexedFields<'_> {
        let time = EpochMs::new(self.time);
        let mut facts =
            IndexedFields::new(TermValue::Plain(&self.namespace), self.grain_type, time);
        facts.subject = self.subject.as_deref().map(TermValue::Plain);
        facts.relation = self.relation.as_deref().map(TermValue::Plain);
        if let Some(object) = &self.object {
            facts.set_object(object.object());
        }
        if let Some(session) = &self.session {
            facts.add(Field::Session, TermValue::Plain(session));
        }
        for tag in &self.tags {
            facts.add(Field::Tag, TermValue::Plain(tag));
        }
        facts
    }
}

/// The address of a sequence in the test log: alternately ascending and descending.
pub(crate) fn address(sequence: u64) -> [u8; 32] {
    let mut address = [0xAD; 32];
    let number = if sequence.is_multiple_of(2) { sequence } else { !sequence };
    address[..8].copy_from_slice(&number.to_be_bytes());
    address
}

/// The tie-breaker of that address.
pub(crate) fn tie(sequence: u64) -> TieBreaker {
    TieBreaker::from_address(&address(sequence))
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
        stamp::reset(&txn, None, [0; 16]).unwrap();
        txn.commit().unwrap();
        let tables = Tables::open(db.begin_read().unwrap(), None);
        let tail = Tail::after(&tables).unwrap();
        Self { db, tables, tail }
    }

    pub(crate) fn push(&mut self, sequence: u64, facts: &IndexedFields<'_>) -> Result<()> {
        let at = Sequence::new(sequence);
        self.tail.push(&self.tables, at, address(sequence), facts)
    }

    /// Freezes the tail, if no part is frozen.
    pub(crate) fn freeze(&mut self) {
        if self.tail.frozen().is_none() {
            self.tail.freeze().unwrap();
        }
    }

    /// Folds the frozen part, if there is one; readers keep their snapshot.
    pub(crate) fn fold_frozen(&self) -> Result<()> {
        if let Some(frozen) = self.tail.frozen() {
            let txn = self.db.begin_write().unwrap();
            fold(&txn, &frozen, None, &[])?;
            txn.commit().unwrap();
        }
        Ok(())
    }

    /// Gives readers the tables as they are.
    pub(crate) fn reopen(&mut self) {
        self.tables = Tables::open(self.db.begin_read().unwrap(), None);
    }

    /// Folds the whole tail.
    pub(crate) fn fold(&mut self) -> Result<()> {
        for _ in 0..2 {
            self.freeze();
            self.fold_frozen()?;
            self.reopen();
            self.tail.drop_frozen();
        }
        Ok(())
    }

    /// Merges runs as far as the goal goes, in steps of so many bytes.
    pub(crate) fn merge(&mut self, goal: MergeGoal, bytes: usize) {
        self.reopen();
        while let Some(mut merge) = RunMerge::of(&self.tables, goal, &[]).unwrap() {
            loop {
                let txn = self.db.begin_write().unwrap();
                let done = merge.step(&txn, bytes).unwrap();
                txn.commit().unwrap();
                if done {
                    break;
                }
            }
            self.reopen();
        }
        loop {
            let txn = self.db.begin_write().unwrap();
            let done = remove_unused_runs(&txn, &[]).unwrap();
            txn.commit().unwrap();
            if done {
                break;
            }
        }
        self.reopen();
    }

    pub(crate) fn reader(&self) -> IndexReader<'_> {
        IndexReader::new(&self.tables, &self.tail)
    }

    /// Every row of every derived table as `table key = value`, in hex, but the list of runs.
    pub(crate) fn dump(&self) -> Vec<String> {
        let txn = self.db.begin_read().unwrap();
        let mut dump = Vec::new();
        for entry in txn.open_table(META).unwrap().iter().unwrap() {
            let (key, value) = entry.unwrap();
            if key.value() != RUNS {
                dump.push(format!("index.meta {} = {}", key.value(), hex(value.value())));
            }
        }
        let tables = Tables::open(txn, None);
        tables.check_blocks().unwrap();
        for name in Tables::names() {
            for row in tables.rows(name).unwrap() {
                let (key, value) = row.unwrap();
                dump.push(format!("{name} {} = {}", hex(&key), hex(&value)));
            }
        }
        dump
    }
}

/// Lowercase hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The code of an error; panics on success, which fails the test.
pub(crate) fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> &'static str {
    result.unwrap_err().code()
}
