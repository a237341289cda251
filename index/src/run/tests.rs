//! Runs of many blocks against the tail that holds the same, and blocks that somebody changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use redb::{ReadableDatabase, ReadableTable};
use sha2::{Digest, Sha256};

use super::directory::RunTableDefinition;
use super::lists::RunList;
use crate::meta::META;
use crate::test_kit::{Note, NoteObject, Store, address, code};
use crate::{
    BlockSeal, Field, IndexLookup, IndexReader, MergeGoal, Object, Posting, Result, RunMerge,
    Scope, Sequence, Tables, Tail, TermValue, TimeOrder, TimeRange, fold, remove_unused_runs,
    reset,
};

/// Grains of this many namespaces, subjects and tags.
fn note(number: u64, namespaces: u64) -> Note {
    Note {
        relation: Some(format!("relation {}", number % 7)),
        object: Some(NoteObject::Text(format!("object {}", number % 501))),
        tags: vec![format!("tag {}", number % 3)],
        ..Note::about(
            &format!("subject {}", number % 40),
            &format!("ns{}", number % namespaces),
            i64::try_from(number / 2).unwrap(),
        )
    }
}

fn lookups() -> Vec<IndexLookup<'static>> {
    let subject = TermValue::Plain("subject 7");
    let relation = TermValue::Plain("relation 3");
    let object = Object::Text(TermValue::Plain("object 33"));
    let triple = |subject, relation, object| IndexLookup::Triple { subject, relation, object };
    vec![
        IndexLookup::All,
        IndexLookup::Type(grainstore_format::GrainType::Belief),
        triple(Some(subject), None, None),
        triple(None, Some(relation), None),
        triple(None, None, Some(object)),
        triple(Some(subject), Some(relation), None),
        IndexLookup::Value(Field::Tag, TermValue::Plain("tag 1")),
    ]
}

fn found(reader: IndexReader<'_>, order: TimeOrder, from: Option<Posting>) -> Vec<Vec<u64>> {
    let scopes = [
        Scope::All,
        Scope::Exact(TermValue::Plain("ns1")),
        Scope::Exact(TermValue::Plain("ns0")),
        Scope::Subtree("ns0"),
    ];
    let mut all = Vec::new();
    for scope in scopes {
        for lookup in lookups() {
            let mut scan = reader.scan(&scope, &lookup, TimeRange::default(), order).unwrap();
            if let Some(from) = from {
                scan.seek(from).unwrap();
            }
            all.push(scan.map(|posting| posting.unwrap().sequence.get()).collect());
        }
    }
    all
}

#[test]
fn runs_answer_as_the_tail_does_before_and_after_they_are_merged() {
    for namespaces in [1, 2, 5] {
        let (mut folded, mut tail) = (Store::new(), Store::new());
        for number in 1..=3_000 {
            // The first runs have one namespace, the others several.
            let note = note(number, if number < 1_500 { 1 } else { namespaces });
            folded.push(number, &note.facts()).unwrap();
            tail.push(number, &note.facts()).unwrap();
            if number.is_multiple_of(700) {
                folded.fold().unwrap();
            }
        }
        folded.fold().unwrap();
        assert_eq!(folded.tables.run_count().unwrap(), 5);
        let from = Posting {
            time: grainstore_format::EpochMs::new(700),
            tie: crate::TieBreaker::FIRST,
            sequence: Sequence::new(1),
        };
        for (goal, runs) in
            [(None, 5), (Some(MergeGoal::SizeTiered), 3), (Some(MergeGoal::WhenIdle), 1)]
        {
            if let Some(goal) = goal {
                folded.merge(goal, 5_000);
            }
            assert!(folded.tables.run_count().unwrap() <= runs);
            for order in [TimeOrder::Newest, TimeOrder::Oldest] {
                for from in [None, Some(from)] {
                    let expected = found(tail.reader(), order, from);
                    assert_eq!(found(folded.reader(), order, from), expected, "{goal:?} {order:?}");
                }
            }
            for number in [1, 699, 700, 701, 3_000, 3_001] {
                let at = folded.reader().sequence_of(&address(number)).unwrap();
                assert_eq!(at, (number <= 3_000).then(|| Sequence::new(number)));
            }
            let subjects = |store: &Store| store.reader().subjects(&Scope::All, "subject 1", 99);
            assert_eq!(subjects(&folded).unwrap(), subjects(&tail).unwrap());
            let relations = |store: &Store| {
                store.reader().relations_of(&Scope::All, TermValue::Plain("subject 7"), 9).unwrap()
            };
            assert_eq!(relations(&folded), relations(&tail));
        }
    }
}

/// A seal whose key is the hash function.
struct Seal;

impl BlockSeal for Seal {
    fn token(&self, place: &[u8], bytes: &[u8]) -> [u8; 32] {
        Sha256::new().chain_update(place).chain_update(bytes).finalize().into()
    }

    fn seal(&self, body: &[u8]) -> Result<Vec<u8>> {
        Ok([&self.token(&[], body)[..], body].concat())
    }

    fn nonce(&self) -> Result<[u8; 16]> {
        static NUMBER: AtomicU8 = AtomicU8::new(0);
        Ok([NUMBER.fetch_add(1, Ordering::Relaxed); 16])
    }

    fn open(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let (token, body) = sealed.split_first_chunk::<32>()?;
        (*token == self.token(&[], body)).then(|| body.to_vec())
    }
}

fn seal() -> Arc<dyn BlockSeal> {
    Arc::new(Seal)
}

fn tables_of(store: &Store) -> Tables {
    Tables::open(store.db.begin_read().unwrap(), Some(seal()))
}

/// Two sealed runs of some blocks each.
fn sealed_store() -> Store {
    let mut store = Store::new();
    let txn = store.db.begin_write().unwrap();
    reset(&txn, Some(&Seal), [7; 16]).unwrap();
    txn.commit().unwrap();
    store.tables = tables_of(&store);
    store.tail = Tail::after(&store.tables).unwrap();
    for number in 1..=800 {
        store.push(number, &note(number, 2).facts()).unwrap();
        if number % 400 == 0 {
            store.freeze();
            let txn = store.db.begin_write().unwrap();
            fold(&txn, &store.tail.frozen().unwrap(), Some(&seal()), b"log").unwrap();
            txn.commit().unwrap();
            store.tables = tables_of(&store);
            store.tail.drop_frozen();
        }
    }
    store
}

/// The keys of the blocks of a run.
fn keys(store: &Store, run: &str) -> Vec<u64> {
    let rows = store.db.begin_read().unwrap().open_table(RunTableDefinition::new(run)).unwrap();
    rows.iter().unwrap().map(|row| row.unwrap().0.value()).collect()
}

/// Changes a block (`None` takes it out), looks whether that is noticed, and puts it back.
fn is_noticed(store: &Store, run: &str, key: u64, changed: Option<&[u8]>) -> bool {
    let put = |value: Option<&[u8]>| {
        let txn = store.db.begin_write().unwrap();
        let mut rows = txn.open_table(RunTableDefinition::new(run)).unwrap();
        let before = rows.get(key).unwrap().map(|value| value.value().to_vec());
        match value {
            Some(value) => drop(rows.insert(key, value).unwrap()),
            None => drop(rows.remove(key).unwrap()),
        }
        drop(rows);
        txn.commit().unwrap();
        before
    };
    let before = put(changed);
    let tables = tables_of(store);
    let tail = Tail::after(&tables).unwrap();
    let reader = IndexReader::new(&tables, &tail);
    let asked = (1..=800).all(|number| reader.sequence_of(&address(number)).is_ok());
    let noticed = tables.check_blocks().is_err() || !asked;
    put(before.as_deref());
    noticed
}

#[test]
fn a_block_that_somebody_changes_moves_or_takes_out_is_noticed() {
    let store = sealed_store();
    tables_of(&store).check_blocks().unwrap();
    let (first, second) = ("index.run.00000001", "index.run.00000002");
    let blocks = keys(&store, first);
    assert!(blocks.len() > 15, "{}", blocks.len());
    let read = |run: &str, key: u64| {
        let rows = store.db.begin_read().unwrap().open_table(RunTableDefinition::new(run)).unwrap();
        rows.get(key).unwrap().map(|value| value.value().to_vec())
    };
    for (at, key) in blocks.iter().copied().enumerate() {
        let block = read(first, key).unwrap();
        assert!(is_noticed(&store, first, key, None), "block {at} is gone");
        for byte in [0, 3, block.len() / 2, block.len() - 1] {
            let mut flipped = block.clone();
            flipped[byte] ^= 1;
            assert!(is_noticed(&store, first, key, Some(&flipped)), "block {at}, byte {byte}");
        }
        let other = blocks[(at + 1) % blocks.len()];
        assert!(is_noticed(&store, first, key, read(first, other).as_deref()), "moved to {at}");
        if let Some(of_other) = read(second, key) {
            assert!(is_noticed(&store, first, key, Some(&of_other)), "block {at} of another run");
        }
    }
}

#[test]
fn runs_that_were_not_sealed_are_refused() {
    let store = sealed_store();
    let txn = store.db.begin_write().unwrap();
    let mut meta = txn.open_table(META).unwrap();
    let mut runs = meta.get("runs").unwrap().unwrap().value().to_vec();
    // One run less.
    runs.truncate(20 + (runs.len() - 20) / 2);
    meta.insert("runs", runs.as_slice()).unwrap();
    drop(meta);
    txn.commit().unwrap();
    let tables = tables_of(&store);
    assert_eq!(code(tables.run_count()), "ERR_INTEGRITY");
    assert_eq!(code(RunMerge::of(&tables, MergeGoal::WhenIdle, &[]).map(|_| ())), "ERR_INTEGRITY");
}

#[test]
fn sealed_runs_are_merged_and_stay_sealed() {
    let store = sealed_store();
    let mut merge = RunMerge::of(&tables_of(&store), MergeGoal::WhenIdle, &[]).unwrap().unwrap();
    let rows =
        || tables_of(&store).rows("index.s").unwrap().map(Result::unwrap).collect::<Vec<_>>();
    let before = rows();
    loop {
        let txn = store.db.begin_write().unwrap();
        let done = merge.step(&txn, 4_096).unwrap();
        txn.commit().unwrap();
        tables_of(&store).check_blocks().unwrap();
        if done {
            break;
        }
    }
    assert_eq!(rows(), before);
    assert_eq!(tables_of(&store).run_count().unwrap(), 1);
    let key = keys(&store, "index.run.00000003")[1];
    assert!(is_noticed(&store, "index.run.00000003", key, None));
}

#[test]
fn a_merge_of_runs_that_are_gone_is_refused() {
    let mut store = Store::new();
    for number in 1..=4 {
        store.push(number, &note(number, 1).facts()).unwrap();
        store.fold().unwrap();
    }
    let mut late = RunMerge::of(&store.tables, MergeGoal::WhenIdle, &[]).unwrap().unwrap();
    store.merge(MergeGoal::WhenIdle, 1 << 20);
    let txn = store.db.begin_write().unwrap();
    assert_eq!(code(late.step(&txn, 1 << 20)), "ERR_INTEGRITY");
}

#[test]
fn a_block_of_another_future_of_the_same_index_is_noticed() {
    // Both wrote their second run behind the same first one, under the same number.
    let (store, other) = (sealed_store(), sealed_store());
    let run = "index.run.00000002";
    for key in keys(&store, run) {
        let rows = other.db.begin_read().unwrap().open_table(RunTableDefinition::new(run)).unwrap();
        let grafted = rows.get(key).unwrap().map(|row| row.value().to_vec());
        assert!(is_noticed(&store, run, key, grafted.as_deref()), "{key:x}");
    }
}

/// Merges all runs; the error of the first step that fails.
fn merged(store: &Store) -> Result<()> {
    let tables = Tables::open(store.db.begin_read().unwrap(), None);
    let mut merge = RunMerge::of(&tables, MergeGoal::WhenIdle, &[])?.unwrap();
    loop {
        let txn = store.db.begin_write().unwrap();
        let done = merge.step(&txn, 4_096)?;
        txn.commit().unwrap();
        if done {
            return Ok(());
        }
    }
}

/// Runs of a plain store.
fn plain_store() -> Store {
    let mut store = Store::new();
    for number in 1..=800 {
        store.push(number, &note(number, 2).facts()).unwrap();
        if number % 400 == 0 {
            store.fold().unwrap();
        }
    }
    store
}

#[test]
fn a_merge_does_not_spread_damage() {
    let store = plain_store();
    let (run, flips) = ("index.run.00000001", [2, 9, 700]);
    // Flips a bit, or flips it back. False where a block has no such byte.
    let flip = |key: u64, byte: usize| {
        let txn = store.db.begin_write().unwrap();
        let mut rows = txn.open_table(RunTableDefinition::new(run)).unwrap();
        let mut block = rows.get(key).unwrap().unwrap().value().to_vec();
        let Some(at) = block.get_mut(byte) else { return false };
        *at ^= 1;
        rows.insert(key, block.as_slice()).unwrap();
        drop(rows);
        txn.commit().unwrap();
        true
    };
    let mut damaged = 0;
    for key in keys(&store, run).into_iter().filter(|key| key >> 32 < 13) {
        for byte in flips.into_iter().filter(|byte| flip(key, *byte)) {
            assert_eq!(code(merged(&store)), "ERR_INTEGRITY", "block {key:x}, byte {byte}");
            assert_eq!(Tables::open(store.db.begin_read().unwrap(), None).run_count().unwrap(), 2);
            assert!(flip(key, byte));
            damaged += 1;
        }
    }
    assert!(damaged > 10, "{damaged} were damaged");
}

#[test]
fn figures_that_are_not_true_cost_no_memory_and_end_a_merge() {
    let store = plain_store();
    for list in 0..RunList::COUNT {
        let txn = store.db.begin_write().unwrap();
        let mut meta = txn.open_table(META).unwrap();
        let before = meta.get("runs").unwrap().unwrap().value().to_vec();
        let mut runs = before.clone();
        for run in 0..2 {
            let at = 20 + run * (24 + 8 * RunList::COUNT) + 24 + 8 * list;
            runs[at..at + 8].copy_from_slice(&(1_u64 << 62).to_be_bytes());
        }
        meta.insert("runs", runs.as_slice()).unwrap();
        drop(meta);
        txn.commit().unwrap();
        if list == 10 {
            // The sample of few grains may be empty: then the list has no blocks at all.
            let _ = merged(&store);
        } else {
            assert_eq!(code(merged(&store)), "ERR_INTEGRITY", "list {list}");
        }
        let txn = store.db.begin_write().unwrap();
        txn.open_table(META).unwrap().insert("runs", before.as_slice()).unwrap();
        while !remove_unused_runs(&txn, &[]).unwrap() {}
        txn.commit().unwrap();
    }
    merged(&store).unwrap();
}

#[test]
fn a_small_merge_goes_on_beside_a_large_one() {
    let mut store = Store::new();
    let fold = |store: &mut Store, numbers: std::ops::Range<u64>| {
        for number in numbers {
            store.push(number, &note(number, 2).facts()).unwrap();
        }
        store.fold().unwrap();
    };
    fold(&mut store, 1..900);
    fold(&mut store, 900..1_800);
    let mut large = RunMerge::of(&store.tables, MergeGoal::SizeTiered, &[]).unwrap().unwrap();
    let step = |store: &Store, merge: &mut RunMerge| {
        let txn = store.db.begin_write().unwrap();
        let done = merge.step(&txn, 4_096).unwrap();
        txn.commit().unwrap();
        done
    };
    assert!(!step(&store, &mut large));
    fold(&mut store, 1_800..1_900);
    fold(&mut store, 1_900..2_000);
    let mut small = RunMerge::of(&store.tables, MergeGoal::SizeTiered, &[&large]).unwrap().unwrap();
    while !step(&store, &mut small) {}
    let txn = store.db.begin_write().unwrap();
    while !remove_unused_runs(&txn, &[&large]).unwrap() {}
    txn.commit().unwrap();
    store.reopen();
    assert_eq!(store.tables.run_count().unwrap(), 3);
    while !step(&store, &mut large) {}
    store.reopen();
    assert_eq!(store.tables.run_count().unwrap(), 2);
    store.tables.check_blocks().unwrap();
    assert_eq!(store.tables.rows("index.address").unwrap().count(), 1_999);
}
