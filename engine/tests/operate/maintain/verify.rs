//! A store in order verifies, and every kind of injected damage is found for what it is.

use std::collections::BTreeSet;
use std::path::Path;

use grainstore::limits::MAX_PROBLEMS;
use grainstore::{ProblemKind, Store, VerifyReport};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use tempfile::TempDir;

use crate::index_blocks::{self, ADDRESSES, ALL, SUBJECT, SUBJECT_RELATION};
use crate::maintain::kit::{answers, belief, fill, filled, names, open, operator};

const LOG: TableDefinition<'static, u64, &'static [u8]> = TableDefinition::new("log");
const STATE: TableDefinition<'static, u64, &'static [u8; 55]> = TableDefinition::new("state");
const ROOTS: TableDefinition<'static, u64, &'static [u8]> = TableDefinition::new("roots");
const AUDIT: TableDefinition<'static, u64, &'static [u8]> = TableDefinition::new("audit");
const REASONS: TableDefinition<'static, u64, &'static [u8]> = TableDefinition::new("reasons");
const TEMPLATES: TableDefinition<'static, u64, &'static [u8]> = TableDefinition::new("templates");
const META: TableDefinition<'static, &'static str, &'static [u8]> = TableDefinition::new("meta");
const HEAD: u64 = u64::MAX;

/// Grains of the damaged stores.
const GRAINS: i64 = 60;

#[test]
fn a_store_in_order_verifies_quickly_and_in_full() {
    let (dir, store) = filled(300);
    for full in [false, true] {
        let found = store.verify(full).unwrap();
        assert_eq!(found.problems, [], "{full}");
        assert!(found.ok && found.full == full && found.problem_count == 0);
        let stats = store.stats().unwrap();
        let checked = found.checked.unwrap();
        assert_eq!((checked.grains, checked.states), (stats.grains, stats.states));
        assert_eq!(checked.audit_entries, stats.audit_entries);
        assert!(checked.blobs > 0 && checked.roots > 0 && checked.reasons > 0);
        assert!(checked.index_rows > checked.grains);
        let rows = stats.rows.iter().filter(|(table, _)| table.starts_with("index."));
        let rows: u64 = rows.map(|(_, rows)| rows).sum();
        match full {
            // The figures leave out what also stands under the namespace 0, for readers of the whole store.
            true => assert!(checked.index_rows >= rows, "every row"),
            false => assert!(checked.index_rows < rows, "some rows, none twice"),
        }
    }
    assert_eq!(names(dir.path()), ["LOCK", "grains.redb", "index.redb"].map(String::from).into());
}

#[test]
fn an_empty_store_verifies() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    assert!(store.verify(false).unwrap().ok);
    assert!(store.verify(true).unwrap().ok);
}

#[test]
fn verifying_changes_no_answer_and_writes_go_on() {
    let (_dir, store) = filled(80);
    let before = answers(&store);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 0..200 {
                let grain = belief("meanwhile", &format!("{number}"), number).build().unwrap();
                operator(&store).put(grain).unwrap();
            }
        });
        while !writer.is_finished() {
            let found = store.verify(true).unwrap();
            assert_eq!(found.problems, []);
        }
    });
    assert!(store.verify(true).unwrap().ok);
    assert_eq!(operator(&store).history_of("meanwhile", "prefers", None, None).unwrap().len(), 200);
    let after = answers(&store);
    assert_eq!(before[..before.len().min(60)], after[..before.len().min(60)]);
}

/// Damages a closed store and verifies it, quickly and in full.
fn damaged(harm: impl Fn(&Path)) -> [VerifyReport; 2] {
    let (dir, store) = filled(GRAINS);
    store.flush().unwrap();
    store.close().unwrap();
    drop(store);
    harm(dir.path());
    [false, true].map(|full| {
        let store = open(dir.path());
        let found = store.verify(full).unwrap();
        assert_eq!(found.ok, found.problem_count == 0);
        found
    })
}

fn faults(found: &VerifyReport) -> BTreeSet<String> {
    found.problems.iter().map(|problem| format!("{:?}", problem.what)).collect()
}

/// Whether both forms of verification find this, and nothing that is something else.
fn finds(what: &[ProblemKind], harm: impl Fn(&Path)) {
    let expected: BTreeSet<_> = what.iter().map(|fault| format!("{fault:?}")).collect();
    for found in damaged(harm) {
        let found_faults = faults(&found);
        assert!(!found.ok, "nothing was found");
        assert!(found_faults.is_subset(&expected), "{:?}", found.problems);
    }
}

/// Whether the full form finds this; the quick one looks at less.
fn finds_in_full(what: ProblemKind, harm: impl Fn(&Path)) {
    let [_, found] = damaged(harm);
    assert!(found.problems.iter().any(|problem| problem.what == what), "{:?}", found.problems);
}

fn truth(path: &Path, change: impl FnOnce(&redb::WriteTransaction)) {
    let db = Database::open(path.join("grains.redb")).unwrap();
    let txn = db.begin_write().unwrap();
    change(&txn);
    txn.commit().unwrap();
}

fn index(path: &Path, change: impl FnOnce(&redb::WriteTransaction)) {
    let db = Database::open(path.join("index.redb")).unwrap();
    let txn = db.begin_write().unwrap();
    change(&txn);
    txn.commit().unwrap();
}

#[test]
fn a_flipped_bit_in_a_blob_is_found() {
    finds(
        &[ProblemKind::Log, ProblemKind::Unaudited, ProblemKind::State, ProblemKind::IndexWrong],
        |path| {
            truth(path, |txn| {
                let mut log = txn.open_table(LOG).unwrap();
                let mut row = log.get(9).unwrap().unwrap().value().to_vec();
                let at = head_bytes(&row) + 40;
                row[at] ^= 4;
                log.insert(9, row.as_slice()).unwrap();
            });
        },
    );
}

#[test]
fn a_place_of_the_log_that_is_gone_is_found() {
    let all = [
        ProblemKind::Log,
        ProblemKind::Unaudited,
        ProblemKind::State,
        ProblemKind::IndexExtra,
        ProblemKind::Roots,
        // Its audit entry is gone with it.
        ProblemKind::Audit,
    ];
    finds(&all, |path| {
        truth(path, |txn| {
            txn.open_table(LOG).unwrap().remove(9).unwrap();
        });
    });
}

#[test]
fn a_grain_that_nobody_wrote_is_found() {
    finds(&[ProblemKind::Unaudited], |path| {
        truth(path, |txn| {
            let mut log = txn.open_table(LOG).unwrap();
            let last = log.last().unwrap().unwrap().0.value();
            let blob = belief("smuggled", "in", 1).build().unwrap().encode(Default::default());
            let sealed = sealed(last + 1, blob.unwrap().bytes());
            let before = log.get(last).unwrap().unwrap().value().to_vec();
            let number = u64::from_be_bytes(*before.get(5..).unwrap().first_chunk().unwrap());
            let number = number + u64::from(head_bytes(&before) > 17);
            let row = numbered(last + 1, number, &sealed);
            log.insert(last + 1, row.as_slice()).unwrap();
        });
    });
}

/// Bytes before the envelope in a row of the log.
fn head_bytes(row: &[u8]) -> usize {
    let length = row.get(13..17).unwrap().try_into().unwrap();
    17 + usize::try_from(u32::from_be_bytes(length)).unwrap()
}

/// A row of the log with a number and no audit entry.
fn numbered(key: u64, number: u64, envelope: &[u8]) -> Vec<u8> {
    let head = [&number.to_be_bytes()[..], &[0; 4]].concat();
    let mut crc = crc32fast::Hasher::new();
    crc.update(&key.to_be_bytes());
    crc.update(&head);
    [&[2][..], &crc.finalize().to_be_bytes(), &head, envelope].concat()
}

/// The envelope of a body in the row of this key.
fn sealed(key: u64, body: &[u8]) -> Vec<u8> {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&key.to_be_bytes());
    crc.update(body);
    [&[1, 0][..], &crc.finalize().to_be_bytes(), body].concat()
}

#[test]
fn a_blob_that_is_no_grain_is_found() {
    finds_in_full(ProblemKind::Blob, |path| {
        truth(path, |txn| {
            let mut log = txn.open_table(LOG).unwrap();
            let last = log.last().unwrap().unwrap().0.value();
            let mut row = log.get(last).unwrap().unwrap().value().to_vec();
            row.truncate(head_bytes(&row));
            row.extend(sealed(last, b"\x01\x00\x01nothing at all"));
            log.insert(last, row.as_slice()).unwrap();
        });
        std::fs::remove_file(path.join("index.redb")).unwrap();
        // What is no grain cannot be indexed: the last one stays out of the index.
    });
}

#[test]
fn a_state_of_no_grain_is_found() {
    finds(&[ProblemKind::State], |path| {
        truth(path, |txn| {
            let mut states = txn.open_table(STATE).unwrap();
            let state = *states.last().unwrap().unwrap().1.value();
            states.insert(9_999, &state).unwrap();
        });
    });
}

#[test]
fn a_flipped_bit_in_a_state_is_found() {
    finds(&[ProblemKind::State, ProblemKind::Unaudited], |path| {
        truth(path, |txn| {
            let mut states = txn.open_table(STATE).unwrap();
            let (key, mut state) = {
                let (key, state) = states.last().unwrap().unwrap();
                (key.value(), *state.value())
            };
            state[20] ^= 1;
            states.insert(key, &state).unwrap();
        });
    });
}

#[test]
fn a_state_that_ended_by_no_audit_entry_or_before_its_time_is_found() {
    for since in [0, 1_000_000] {
        finds(&[ProblemKind::State], |path| {
            truth(path, |txn| {
                let mut states = txn.open_table(STATE).unwrap();
                let (key, mut state) = {
                    let mut rows = states.iter().unwrap().map(Result::unwrap);
                    let ended = |state: &[u8; 55]| state[1] & 1 == 1;
                    let row = rows.find(|(_, state)| ended(state.value())).unwrap();
                    (row.0.value(), *row.1.value())
                };
                state[43..51].copy_from_slice(&u64::to_be_bytes(since));
                states.insert(key, &with_checksum(key, state)).unwrap();
            });
        });
    }
}

/// A state record that says a grain was superseded.
fn superseded(key: u64, by: &[u8; 32]) -> [u8; 55] {
    let mut state = [0; 55];
    state[..3].copy_from_slice(&[1, 0b11, 0]);
    state[11..43].copy_from_slice(by);
    with_checksum(key, state)
}

/// A state record with its checksum.
fn with_checksum(key: u64, mut state: [u8; 55]) -> [u8; 55] {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&key.to_be_bytes());
    crc.update(&state[..51]);
    state[51..].copy_from_slice(&crc.finalize().to_be_bytes());
    state
}

fn address_at(log: &impl ReadableTable<u64, &'static [u8]>, key: u64) -> [u8; 32] {
    let row = log.get(key).unwrap().unwrap();
    let (_head, blob) = row.value().split_at(head_bytes(row.value()) + 6);
    *grainstore::ContentAddress::of(blob).as_bytes()
}

#[test]
fn grains_that_supersede_each_other_in_a_circle_are_found() {
    finds(&[ProblemKind::State, ProblemKind::Unaudited], |path| {
        truth(path, |txn| {
            let log = txn.open_table(LOG).unwrap();
            let mut states = txn.open_table(STATE).unwrap();
            for (old, new) in [(1, 2), (2, 1)] {
                states.insert(old, &superseded(old, &address_at(&log, new))).unwrap();
            }
        });
    });
}

#[test]
fn a_successor_that_does_not_exist_is_found() {
    finds(&[ProblemKind::State, ProblemKind::Unaudited], |path| {
        truth(path, |txn| {
            let mut states = txn.open_table(STATE).unwrap();
            states.insert(1, &superseded(1, &[7; 32])).unwrap();
        });
    });
}

#[test]
fn roots_that_are_damaged_or_of_no_grain_are_found() {
    finds(&[ProblemKind::Roots], |path| {
        truth(path, |txn| {
            let mut roots = txn.open_table(ROOTS).unwrap();
            let row = roots.last().unwrap().unwrap().1.value().to_vec();
            roots.insert(8_888, row.as_slice()).unwrap();
        });
    });
    finds(&[ProblemKind::Roots], |path| {
        truth(path, |txn| {
            let mut roots = txn.open_table(ROOTS).unwrap();
            let key = roots.last().unwrap().unwrap().0.value();
            roots.insert(key, b"not eight bytes".as_slice()).unwrap();
        });
    });
}

#[test]
fn a_cut_audit_chain_is_found() {
    finds(&[ProblemKind::Audit, ProblemKind::Unaudited], |path| {
        truth(path, |txn| {
            let mut audit = txn.open_table(AUDIT).unwrap();
            let last = audit.range(..HEAD).unwrap().next_back().unwrap().unwrap().0.value();
            audit.remove(last).unwrap();
        });
    });
}

#[test]
fn an_audit_entry_that_was_rewritten_is_found() {
    finds(&[ProblemKind::Audit, ProblemKind::Unaudited], |path| {
        truth(path, |txn| {
            let mut audit = txn.open_table(AUDIT).unwrap();
            let (key, mut entry) = {
                let (key, entry) = audit.range(4..HEAD).unwrap().next().unwrap().unwrap();
                (key.value(), entry.value().to_vec())
            };
            let last = entry.len() - 1;
            entry[last] ^= 1;
            audit.insert(key, entry.as_slice()).unwrap();
        });
    });
    let kinds = [ProblemKind::Audit, ProblemKind::Unaudited, ProblemKind::State];
    finds(&kinds, |path| {
        truth(path, |txn| {
            let mut log = txn.open_table(LOG).unwrap();
            let mut row = log.get(4).unwrap().unwrap().value().to_vec();
            let last = head_bytes(&row) - 1;
            assert!(last > 17, "its entry lies beside it");
            row[last] ^= 1;
            log.insert(4, row.as_slice()).unwrap();
        });
    });
}

#[test]
fn an_audit_entry_that_was_taken_from_beside_its_grain_is_found() {
    finds(&[ProblemKind::Audit, ProblemKind::Unaudited, ProblemKind::State], |path| {
        truth(path, |txn| {
            let mut log = txn.open_table(LOG).unwrap();
            let row = log.get(4).unwrap().unwrap().value().to_vec();
            let number = u64::from_be_bytes(*row.get(5..).unwrap().first_chunk().unwrap());
            let bare = numbered(4, number, row.split_at(head_bytes(&row)).1);
            log.insert(4, bare.as_slice()).unwrap();
        });
    });
}

#[test]
fn an_audit_log_that_was_replaced_from_genesis_on_is_found() {
    finds(&[ProblemKind::Audit], |path| {
        truth(path, |txn| {
            let mut meta = txn.open_table(META).unwrap();
            meta.insert("store_id", [9_u8; 16].as_slice()).unwrap();
        });
    });
}

#[test]
fn a_reason_that_is_not_the_one_given_is_found() {
    finds(&[ProblemKind::Audit], |path| {
        truth(path, |txn| {
            let mut reasons = txn.open_table(REASONS).unwrap();
            let key = reasons.last().unwrap().unwrap().0.value();
            reasons.insert(key, sealed(key, b"something kinder").as_slice()).unwrap();
        });
    });
}

#[test]
fn a_template_that_is_not_as_it_was_written_is_found() {
    let kept = |definition: &str| {
        let body = format!(r#"{{"namespace":null,"name":"t","definition":"{definition}"}}"#);
        sealed(1, body.as_bytes())
    };
    let mut flipped = kept("DEFINE TEMPLATE t ELEMENT {}");
    flipped[9] ^= 1;
    for row in [flipped, kept("DEFINE TEMPLATE t ELEMENT {"), sealed(1, b"{}"), vec![1]] {
        finds(&[ProblemKind::Template], |path| {
            truth(path, |txn| {
                txn.open_table(TEMPLATES).unwrap().insert(1, row.as_slice()).unwrap();
            });
        });
    }
}

/// Takes the last row out of a block of a list.
fn remove_last(txn: &redb::WriteTransaction, list: (u8, usize)) {
    let mut is_done = false;
    index_blocks::edit(txn, list, |rows| {
        let is_edited = !is_done && rows.len() > 1;
        if is_edited {
            rows.pop();
        }
        is_done |= is_edited;
        is_edited
    });
    assert!(is_done);
}

/// Adds the first row of each block of a list again, with another place.
#[expect(
    clippy::indexing_slicing,
    reason = "a helper of tests, which the allowance for tests does not reach"
)]
fn add_to(txn: &redb::WriteTransaction, list: (u8, usize)) {
    index_blocks::edit(txn, list, |rows| {
        let mut row = rows[0].clone();
        *row.last_mut().unwrap() ^= 0x80;
        rows.push(row);
        rows.sort();
        true
    });
}

#[test]
fn a_posting_that_is_missing_is_found() {
    // The last grain of the last subject is found by its subject no more.
    for list in [SUBJECT, SUBJECT_RELATION] {
        finds(&[ProblemKind::IndexMissing, ProblemKind::IndexWrong], |path| {
            index(path, |txn| remove_last(txn, list));
        });
    }
}

#[test]
fn a_posting_too_many_is_found() {
    for list in [ALL, SUBJECT] {
        finds(&[ProblemKind::IndexExtra, ProblemKind::IndexWrong], |path| {
            index(path, |txn| add_to(txn, list));
        });
        finds_in_full(ProblemKind::IndexExtra, |path| index(path, |txn| add_to(txn, list)));
    }
}

/// Leads the address of the last grain up to a place one place further back.
#[expect(
    clippy::indexing_slicing,
    reason = "a helper of tests, which the allowance for tests does not reach"
)]
fn mislead(path: &Path, place: u64) {
    index(path, |txn| {
        let place_of = |row: &Vec<u8>| u32::from_be_bytes(row[32..].try_into().unwrap());
        let mut found = 0;
        index_blocks::edit(txn, ADDRESSES, |rows| {
            found = rows
                .iter()
                .map(place_of)
                .filter(|at| u64::from(*at) <= place)
                .fold(found, u32::max);
            false
        });
        index_blocks::edit(txn, ADDRESSES, |rows| {
            let row = rows.iter_mut().find(|row| place_of(row) == found);
            row.is_some_and(|row| {
                row[32..].copy_from_slice(&(found - 1).to_be_bytes());
                true
            })
        });
    });
}

#[test]
fn an_address_that_leads_elsewhere_is_found() {
    let (dir, store) = filled(150);
    store.close().unwrap();
    // Opening compares the last places with the log, and every twelfth part of it.
    mislead(dir.path(), 5);
    let store = open(dir.path());
    for full in [false, true] {
        assert!(!store.verify(full).unwrap().ok, "full: {full}");
    }
    store.reindex().unwrap();
    assert!(store.verify(true).unwrap().ok);
}

#[test]
fn the_latest_address_that_leads_elsewhere_is_mended_on_opening() {
    let [quick, full] = damaged(|path| mislead(path, u64::MAX));
    assert!(quick.ok && full.ok);
}

#[test]
fn a_table_of_the_index_that_is_gone_is_replaced_on_opening() {
    let [quick, full] = damaged(|path| {
        index(path, |txn| {
            let run = index_blocks::runs(txn)[0];
            txn.delete_table(index_blocks::Runs::new(run)).unwrap();
        });
    });
    assert!(quick.ok && full.ok);
}

#[test]
fn many_problems_are_counted_and_some_are_listed() {
    let [quick, full] = damaged(|path| {
        let db = Database::open(path.join("grains.redb")).unwrap();
        let keys: Vec<u64> = {
            let log = db.begin_read().unwrap().open_table(LOG).unwrap();
            log.iter().unwrap().map(|row| row.unwrap().0.value()).collect()
        };
        let txn = db.begin_write().unwrap();
        {
            let mut states = txn.open_table(STATE).unwrap();
            for key in 0..500 {
                states.insert(keys.len() as u64 + 10 + key, &[0; 55]).unwrap();
            }
        }
        txn.commit().unwrap();
    });
    for found in [quick, full] {
        assert_eq!(found.problems.len(), MAX_PROBLEMS);
        assert_eq!(found.problem_count, 500);
    }
}

#[test]
fn a_closed_store_is_not_verified() {
    let (_dir, store) = filled(3);
    store.close().unwrap();
    assert_eq!(store.verify(true).map_err(|error| error.code()).err(), Some("ERR_IO"));
}

#[test]
fn what_comes_after_a_verification_is_verified_by_the_next() {
    let (_dir, store): (TempDir, Store) = filled(30);
    let first = store.verify(false).unwrap().checked.unwrap().grains;
    fill(&store, 1000..1030);
    let second = store.verify(true).unwrap();
    assert!(second.ok && second.checked.unwrap().grains > first);
}
