//! Every way to tamper with the audit log is found, and the entry is named.

use redb::{Durability, ReadableDatabase, ReadableTable};
use std::sync::Arc;
use tempfile::TempDir;

use super::super::{Check, Findings, Problem};
use crate::format::{BeliefBuilder, EpochMs, Grain};
use crate::keys;
use crate::pending::Pending;
use crate::truth::Truth;
use crate::view::View;
use crate::writer::{Request, Writer};
use crate::{OpenOptions, SessionOptions, Store};

/// The rows of the audit table, the head last.
type Rows = Vec<(u64, Vec<u8>)>;

/// A store with a few writes and a refusal in its audit log.
fn filled() -> (TempDir, Store) {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
    let session =
        store.session(SessionOptions { actor: Some("did:web:a".into()), ..<_>::default() });
    for number in 0..3 {
        let grain = BeliefBuilder::new(EpochMs::new(number), "alice", "counts", "sheep", 1.0);
        session.put(grain.build().unwrap()).unwrap();
    }
    let locked = Grain::from_json(
        r#"{"type": "belief", "subject": "s", "relation": "r", "object": "o", "confidence": 1,
            "created_at": 0, "invalidation_policy": {"mode": "locked"}}"#,
    );
    let locked = session.put(locked.unwrap()).unwrap().address();
    let new = BeliefBuilder::new(EpochMs::new(9), "s", "r", "other", 1.0).build().unwrap();
    assert!(session.supersede(&locked, new, Some("because")).is_err());
    (dir, store)
}

/// Runs `test` on the writer of the store.
fn with_writer(store: &Store, test: impl FnOnce(&mut Writer) + Send + 'static) {
    let (reply, pending) = Pending::new();
    let work = Request::Alone(Box::new(move |writer| {
        test(writer.unwrap());
        let _ = reply.send(Ok(()));
    }));
    store.inner().send(work).unwrap();
    pending.wait().unwrap();
}

fn rows(writer: &Writer) -> Rows {
    let txn = writer.db.begin_read().unwrap();
    let table = txn.open_table(keys::AUDIT).unwrap();
    let rows = table.iter().unwrap().map(|row| row.unwrap());
    rows.map(|(key, entry)| (key.value(), entry.value().to_vec())).collect()
}

/// What verification says of the audit log with these rows.
fn problems(writer: &mut Writer, rows: &Rows) -> Vec<Problem> {
    let mut txn = writer.db.begin_write().unwrap();
    txn.set_durability(Durability::None).unwrap();
    txn.delete_table(keys::AUDIT).unwrap();
    let mut table = txn.open_table(keys::AUDIT).unwrap();
    for (key, entry) in rows {
        table.insert(key, entry.as_slice()).unwrap();
    }
    drop(table);
    txn.commit().unwrap();
    let truth = Arc::new(Truth::open(&writer.db).unwrap());
    let view = View::new(truth, writer.view.indexed().clone());
    let check = Check::of(&view, 1).unwrap();
    let mut findings = Findings::default();
    super::check(&check, view.log_len().unwrap(), &mut findings).unwrap();
    findings.finish(true).problems
}

fn names(problems: &[Problem], key: u64) -> bool {
    problems.iter().any(|problem| problem.place == format!("audit {key}"))
}

#[test]
fn a_flipped_bit_of_any_entry_is_found_and_the_entry_named() {
    let (_dir, store) = filled();
    with_writer(&store, |writer| {
        let whole = rows(writer);
        assert_eq!(problems(writer, &whole), []);
        let (head, entries) = whole.split_last().unwrap();
        assert_eq!((head.0, entries.len()), (keys::AUDIT_HEAD, 6));
        for (at, (key, entry)) in entries.iter().enumerate() {
            for byte in 0..entry.len() {
                let mut harmed = whole.clone();
                harmed[at].1[byte] ^= 1 << (byte % 8);
                let found = problems(writer, &harmed);
                assert!(names(&found, *key), "entry {key}, byte {byte}: {found:?}");
            }
        }
        for byte in 0..head.1.len() {
            let mut harmed = whole.clone();
            harmed[6].1[byte] ^= 1;
            assert!(!problems(writer, &harmed).is_empty(), "head, byte {byte}");
        }
    });
}

#[test]
fn entries_removed_cut_off_swapped_or_put_in_are_found_and_named() {
    let (_dir, store) = filled();
    with_writer(&store, |writer| {
        let whole = rows(writer);
        let head = || whole[6].clone();
        let check = |writer: &mut Writer, what: &str, rows: Rows, named: u64| {
            let found = problems(writer, &rows);
            assert!(names(&found, named), "{what}: {found:?}");
        };
        for length in 0..6 {
            let mut cut: Rows = whole[..length].to_vec();
            cut.push(head());
            check(writer, "cut", cut, u64::try_from(length).unwrap());
        }
        for gone in 0..5_usize {
            let mut rows = whole.clone();
            rows.remove(gone);
            check(writer, "removed", rows, u64::try_from(gone).unwrap() + 1);
        }
        for at in 0..5_usize {
            let mut rows = whole.clone();
            let (one, other) = (rows[at].1.clone(), rows[at + 1].1.clone());
            (rows[at].1, rows[at + 1].1) = (other, one);
            check(writer, "swapped", rows.clone(), u64::try_from(at).unwrap());
            check(writer, "swapped", rows, u64::try_from(at).unwrap() + 1);
        }
        let mut longer = whole.clone();
        longer.insert(6, (6, whole[5].1.clone()));
        check(writer, "put behind the head", longer, 6);
        let mut twice = whole.clone();
        for row in twice.iter_mut().skip(3).take(3) {
            row.0 += 1;
        }
        twice.insert(3, (3, whole[3].1.clone()));
        check(writer, "put in", twice, 4);
    });
}
