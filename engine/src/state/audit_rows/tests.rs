//! Entries are found wherever they lie, in both directions, and rows without one are leapt over.

use grainstore_index::Sequence;
use redb::{Database, ReadableDatabase};

use super::*;
use crate::disk::layout::LogRowHead;

/// Tables with entries of one byte, their numbers: `apart` in the table, and rows of the log with a number, and `true`
/// for an entry, after `first_form` rows that have none.
fn tables(apart: &[u64], first_form: u64, log: &[(u64, bool)]) -> (Database, [NumberedRows; 2]) {
    let db = Database::builder().create_with_backend(redb::backends::InMemoryBackend::new());
    let db = db.unwrap();
    let txn = db.begin_write().unwrap();
    {
        let mut audit = txn.open_table(layout::AUDIT).unwrap();
        for number in apart {
            audit.insert(number, entry(*number).as_slice()).unwrap();
        }
        let last = apart.last().copied().unwrap();
        let hash = Sha256::digest(entry(last)).into();
        let head = AuditHead { count: last + 1, hash };
        audit.insert(layout::AUDIT_HEAD, head.encode().as_slice()).unwrap();
        let mut rows = txn.open_table(layout::LOG).unwrap();
        for at in 1..=first_form {
            rows.insert(at, b"\x01\x00".as_slice()).unwrap();
        }
        for ((number, has_entry), at) in log.iter().zip(first_form + 1..) {
            let entry = entry(*number);
            let head = LogRowHead { number: *number, entry: has_entry.then_some(&*entry) };
            rows.insert(at, head.encode(Sequence::new(at), b"\x01\x00").unwrap().as_slice())
                .unwrap();
        }
    }
    txn.commit().unwrap();
    let txn = db.begin_read().unwrap();
    let tables = [txn.open_table(layout::AUDIT).unwrap(), txn.open_table(layout::LOG).unwrap()];
    (db, tables)
}

fn entry(number: u64) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// Whether `rows` has the entries 0 up to `count`, and no others.
fn has_all(rows: &AuditRows<'_>, count: u64) {
    for number in 0..count {
        assert_eq!(rows.get(number).unwrap(), Some(entry(number)), "entry {number}");
        let since: Vec<_> = rows.since(number).unwrap().map(|row| row.unwrap().0).collect();
        assert_eq!(since, (number..count).collect::<Vec<_>>(), "since {number}");
    }
    assert_eq!((rows.get(count).unwrap(), rows.since(count).unwrap().count()), (None, 0));
    assert_eq!(rows.get(layout::AUDIT_HEAD).unwrap(), None);
    let back: Vec<_> = rows.backward().unwrap().map(|entry| entry.unwrap()).collect();
    assert_eq!(back, (0..count).rev().map(entry).collect::<Vec<_>>());
    let every: Vec<_> = rows.every_row().unwrap().map(|row| row.unwrap().number).collect();
    assert_eq!(every, (0..count).collect::<Vec<_>>());
    let hash = Sha256::digest(entry(count - 1)).into();
    assert_eq!(rows.head().unwrap(), AuditHead { count, hash });
}

#[test]
fn entries_of_both_places_are_read_in_the_order_of_their_numbers() {
    for first_form in [0, 1, 70] {
        // Puts, batches, and an import of 300 grains whose entries lie apart.
        let mut log = vec![(1, true), (3, false), (3, true), (4, true)];
        log.extend(std::iter::repeat_n((6, false), 300));
        log.extend([(8, true), (9, false), (9, false), (9, true), (12, true)]);
        let (_db, [audit, rows]) = tables(&[0, 2, 5, 6, 7, 10, 11], first_form, &log);
        has_all(&AuditRows::new(&audit, Some(&rows)), 13);
        // A batch longer than what is walked, at the end of the log.
        log.extend(std::iter::repeat_n((13, false), 99));
        log.push((13, true));
        let (_db, [audit, rows]) = tables(&[0, 2, 5, 6, 7, 10, 11], first_form, &log);
        has_all(&AuditRows::new(&audit, Some(&rows)), 14);
        // An import is the last of both.
        log.extend(std::iter::repeat_n((14, false), 99));
        let (_db, [audit, rows]) = tables(&[0, 2, 5, 6, 7, 10, 11, 14, 15], first_form, &log);
        has_all(&AuditRows::new(&audit, Some(&rows)), 16);
    }
}

#[test]
fn a_log_without_numbers_has_no_entries() {
    for first_form in [0, 5] {
        let (_db, [audit, rows]) = tables(&[0, 1, 2], first_form, &[]);
        has_all(&AuditRows::new(&audit, Some(&rows)), 3);
        has_all(&AuditRows::new(&audit, None), 3);
    }
    // Nor has that of an encrypted store, whatever lies there.
    let (_db, [audit, rows]) = tables(&[0, 1, 2], 0, &[(3, true)]);
    has_all(&AuditRows::new(&audit, None), 3);
    has_all(&AuditRows::new(&audit, Some(&rows)), 4);
}

#[test]
fn a_head_that_is_damaged_is_no_head_though_the_log_has_a_later_entry() {
    let (_db, [audit, rows]) = tables(&[0], 0, &[(1, true)]);
    assert_eq!(AuditRows::new(&audit, Some(&rows)).head().unwrap().count, 2);
    let db = Database::builder().create_with_backend(redb::backends::InMemoryBackend::new());
    let db = db.unwrap();
    let txn = db.begin_write().unwrap();
    txn.open_table(layout::AUDIT).unwrap().insert(0, b"entry".as_slice()).unwrap();
    txn.commit().unwrap();
    let audit = db.begin_read().unwrap().open_table(layout::AUDIT).unwrap();
    assert!(AuditRows::new(&audit, Some(&rows)).head().is_err_and(|error| error.is_integrity()));
}
