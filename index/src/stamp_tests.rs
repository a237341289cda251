//! Tests of the states of an index when a store opens.

use redb::{ReadableDatabase, TableDefinition};

use super::*;
use crate::meta::{NEXT_IDS, RUNS, WATERMARK};
use crate::test_kit::{Note, Store, address, code};

/// The state of the index against a log that ends at `end`.
fn state_with_log(store: &Store, end: u64) -> IndexState {
    let txn = store.db.begin_read().unwrap();
    state::<Error>(&txn, |at| Ok((at.get() <= end).then(|| address(at.get()))), None).unwrap()
}

/// A store with three grains folded.
fn store_of_three() -> Store {
    let mut store = Store::new();
    for sequence in 1..=3 {
        store.push(sequence, &Note::about("alice", "a", 0).facts()).unwrap();
    }
    store.fold().unwrap();
    store
}

/// Deletes a table of any type.
fn delete(txn: &WriteTransaction, name: &str) {
    let table = txn.list_tables().unwrap().find(|table| table.name() == name).unwrap();
    assert!(txn.delete_table(table).unwrap());
}

fn change(store: &Store, change: impl FnOnce(&WriteTransaction)) {
    let txn = store.db.begin_write().unwrap();
    change(&txn);
    txn.commit().unwrap();
}

#[test]
fn a_fresh_index_is_ready_and_empty() {
    assert_eq!(state_with_log(&Store::new(), 0), IndexState::Ready(None));
}

#[test]
fn a_folded_index_says_how_far() {
    let mark = Watermark { sequence: Sequence::new(3), address: address(3) };
    assert_eq!(state_with_log(&store_of_three(), 3), IndexState::Ready(Some(mark)));
    assert_eq!(state_with_log(&store_of_three(), 9), IndexState::Ready(Some(mark)));
}

#[test]
fn a_watermark_the_log_does_not_know_is_stale() {
    let store = store_of_three();
    assert_eq!(state_with_log(&store, 2), IndexState::Stale(StaleReason::OtherLog));
    let txn = store.db.begin_read().unwrap();
    let other = state::<Error>(&txn, |_| Ok(Some([1; 32])), None).unwrap();
    assert_eq!(other, IndexState::Stale(StaleReason::OtherLog));
}

#[test]
fn what_is_missing_foreign_or_damaged_is_stale() {
    type Damage = fn(&WriteTransaction);
    let changes: [(StaleReason, Damage); 9] = [
        (StaleReason::Missing, |txn| drop_all(txn).unwrap()),
        (StaleReason::Missing, |txn| {
            txn.open_table(META).unwrap().remove(STAMP).unwrap();
        }),
        (StaleReason::Layout(0x0102_0304), |txn| {
            txn.open_table(META).unwrap().insert(STAMP, [1, 2, 3, 4].as_slice()).unwrap();
        }),
        (StaleReason::Damaged, |txn| {
            txn.open_table(META).unwrap().insert(STAMP, [1].as_slice()).unwrap();
        }),
        (StaleReason::Damaged, |txn| {
            txn.open_table(META).unwrap().insert(WATERMARK, [0; 39].as_slice()).unwrap();
        }),
        (StaleReason::Damaged, |txn| {
            txn.open_table(META).unwrap().insert(NEXT_IDS, [0; 23].as_slice()).unwrap();
        }),
        (StaleReason::Damaged, |txn| {
            txn.open_table(META).unwrap().remove(RUNS).unwrap();
        }),
        (StaleReason::Damaged, |txn| {
            txn.open_table(META).unwrap().insert(RUNS, [0; 21].as_slice()).unwrap();
        }),
        (StaleReason::Damaged, |txn| delete(txn, "index.run.00000001")),
    ];
    for (reason, damage) in changes {
        let store = store_of_three();
        change(&store, damage);
        assert_eq!(state_with_log(&store, 3), IndexState::Stale(reason));
    }
}

#[test]
fn failures_of_the_log_come_through() {
    let store = store_of_three();
    let txn = store.db.begin_read().unwrap();
    let failed = state(&txn, |_| Err(Error::integrity("the log is gone")), None);
    assert_eq!(failed.unwrap_err().to_string(), "the log is gone");
}

#[test]
fn reset_takes_every_derived_table_and_no_other() {
    const TRUTH: TableDefinition<'_, u64, u64> = TableDefinition::new("log");
    const OLD: TableDefinition<'_, u64, u64> = TableDefinition::new("index.of_an_older_layout");
    let store = store_of_three();
    change(&store, |txn| {
        txn.open_table(TRUTH).unwrap().insert(1, 2).unwrap();
        txn.open_table(OLD).unwrap().insert(1, 2).unwrap();
    });
    change(&store, |txn| reset(txn, None, [0; 16]).unwrap());
    assert_eq!(state_with_log(&store, 3), IndexState::Ready(None));
    let txn = store.db.begin_read().unwrap();
    let kept = txn.open_table(TRUTH).unwrap().get(1).unwrap().map(|row| row.value());
    assert_eq!(kept, Some(2));
    assert!(txn.open_table(OLD).is_err());
    assert_eq!(store.dump(), Store::new().dump());
}

#[test]
fn reset_refuses_while_a_derived_table_is_open() {
    let store = store_of_three();
    let txn = store.db.begin_write().unwrap();
    let open = txn.open_table(META).unwrap();
    assert_eq!(code(reset(&txn, None, [0; 16])), "ERR_INTEGRITY");
    drop(open);
    reset(&txn, None, [0; 16]).unwrap();
}
