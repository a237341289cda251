//! What a commit changes is in its change record: a database that applies them all, one after another, has the
//! rows of the store, byte for byte.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use grainstore_cal::Query;
use grainstore_format::{BeliefBuilder, EpochMs};
use grainstore_index::vectors::{Metric, Space, Vector};
use redb::backends::InMemoryBackend;
use redb::{Database, ReadableDatabase};

use super::kit::calls::{Caller, Made, session};
use super::kit::model::Model;
use super::kit::offers::Settled;
use super::{START_MS, clock_at};
use crate::disk::change_record::ChangeRecord;
use crate::disk::truth_tables::TruthTable;
use crate::disk::truth_transaction::CommitObserver;
use crate::operate::maintain::{open_table, table_names};
use crate::search::embed::Embedding;

use crate::{
    CalSwitch, ContentAddress, EraseOptions, ExportOptions, ImportOptions, ManualClock, MasterKey,
    OpenOptions, Owner, SessionOptions, Store,
};

/// The rows of each table.
pub(super) type Rows = BTreeMap<String, Vec<(Vec<u8>, Vec<u8>)>>;

pub(super) fn rows_of(db: &Database) -> Rows {
    let txn = db.begin_read().unwrap();
    let mut tables = Rows::new();
    for name in table_names(&txn).unwrap() {
        let mut table = open_table(&txn, &name).unwrap().unwrap().rows;
        let rows = tables.entry(name).or_default();
        while table.next().unwrap() {
            rows.push((table.key().to_vec(), table.value().to_vec()));
        }
    }
    tables
}

/// A database that applies the records as they come.
struct Replica {
    db: Arc<Mutex<Database>>,
    options: OpenOptions,
    clock: Arc<ManualClock>,
}

impl Replica {
    fn new(options: OpenOptions) -> Self {
        let db = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let db = Arc::new(Mutex::new(db));
        let clock = clock_at(START_MS);
        let mut options = options.clock(Arc::<ManualClock>::clone(&clock));
        let applied = Arc::clone(&db);
        options.observer = CommitObserver::new(move |record, _, _| {
            let read = ChangeRecord::from_bytes(record.as_bytes())?;
            let txn = applied.lock().unwrap().begin_write().unwrap();
            read.apply(&txn)?;
            txn.commit().unwrap();
            Ok(None)
        });
        Self { db, options, clock }
    }

    /// Asserts that the closed store in a directory has the same rows.
    fn assert_same(&self, path: &Path) {
        let db = Database::open(path.join("grains.redb")).unwrap();
        let (ours, theirs) = (rows_of(&db), rows_of(&self.db.lock().unwrap()));
        assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
        for (table, rows) in &ours {
            assert_eq!(rows, &theirs[table], "{table}");
        }
        let known = TruthTable::ALL.map(TruthTable::name);
        assert!(ours.keys().all(|table| known.contains(&table.as_str())), "{:?}", ours.keys());
    }
}

/// Random calls of one caller over several openings, each with the time of the next tick.
fn call_at_random(path: &Path, replica: &Replica, openings: usize, calls: usize) {
    let (mut caller, mut model, mut now) = (Caller::new(3), Model::default(), START_MS);
    for _ in 0..openings {
        let store = Store::open(path, &replica.options).unwrap();
        for _ in 0..calls {
            now += 7;
            replica.clock.set(EpochMs::new(now));
            let (namespace, call) = caller.next(&model);
            let made = Made::submit(&session(&store, namespace), &call);
            let mut settled = Settled::awaited(namespace, EpochMs::new(now), call);
            settled.answer = made.wait();
            model.settle(&settled).unwrap();
        }
        store.close().unwrap();
        // Refusals of the minute before are counted with those after it.
        now += 61_000;
    }
}

/// What the calls above do not do: vectors, erasures, an import, settings, templates, rows of applications.
pub(super) fn change_the_rest(store: &Store, path: &Path) {
    let operator = store.session(SessionOptions::default());
    let belief = |user: &str, number: i64| {
        let grain = BeliefBuilder::new(EpochMs::new(number), user, "likes", "tea", 1.0);
        grain.user_id(user).build().unwrap()
    };
    for user in ["ann", "bob"] {
        let addresses: Vec<_> =
            (0..5).map(|number| operator.put(belief(user, number)).unwrap().address()).collect();
        for model in ["m", "n"] {
            let space = Space::new(model, 3, Metric::Cosine).unwrap();
            let vector = Vector::new(vec![1.0, 0.5, 0.25]).unwrap();
            let embedding = Embedding { space, chunk: 0, vector };
            operator.embed(&addresses[0], vec![embedding]).unwrap();
        }
        operator.contradict(&addresses[1], "a reason", None).unwrap();
        operator.get(&addresses[2]).unwrap();
        if user == "ann" {
            let file = path.join("ann.mg");
            operator.export(&file, &Query::default(), &ExportOptions::default()).unwrap();
            operator.erase(&addresses[3], "asked", &EraseOptions::default()).unwrap();
        }
        let owners = [Owner::Store, Owner::User(user.to_owned()), Owner::Grain(addresses[4])];
        for (number, owner) in (0_u64..).zip(owners) {
            operator.put_row("notes", 1, number, user, owner.clone()).unwrap();
            operator.put_row("notes", 1, user, user, owner.clone()).unwrap();
            operator.put_side_blob(vec![7; 2 << 20], owner).unwrap();
        }
        operator.remove_row("notes", 1, 0).unwrap();
        operator.remove_side_blob(&ContentAddress::of(&vec![7; 2 << 20]), Owner::Store).unwrap();
    }
    operator.ask("DEFINE TEMPLATE brief ELEMENT { {{grain.content}} }").unwrap();
    operator.switch_cal(CalSwitch::Reads, "a while").unwrap();
    operator.erase_user("ann", "asked", &EraseOptions::default()).unwrap();
    operator.import([path.join("ann.mg")], &ImportOptions::default()).unwrap();
    operator.sweep().unwrap();
    store.flush().unwrap();
}

#[test]
fn a_database_that_applies_the_records_has_the_rows_of_a_plain_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let replica = Replica::new(OpenOptions::new().create(true).compress(true));
    call_at_random(&path, &replica, 3, 100);
    let store = Store::open(&path, &replica.options).unwrap();
    change_the_rest(&store, directory.path());
    store.compact().unwrap();
    store.close().unwrap();
    replica.assert_same(&path);
}

#[test]
fn a_database_that_applies_the_records_has_the_rows_of_an_encrypted_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let replica = Replica::new(OpenOptions::new().create(true).key(MasterKey::new([7; 32])));
    let store = Store::open(&path, &replica.options).unwrap();
    change_the_rest(&store, directory.path());
    store.rotate_user_key("bob").unwrap();
    store.close().unwrap();
    replica.assert_same(&path);
}
