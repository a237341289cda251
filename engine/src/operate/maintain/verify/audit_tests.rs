//! Every way of tampering with the audit log is found, and the entry is named; a chain that was rewritten as
//! a whole contradicts an earlier checkpoint.

use std::sync::Arc;

use grainstore_format::cose::SigningKey;
use grainstore_format::{Encoding, Value, decode_value, encode_value};
use grainstore_index::Sequence;
use redb::{Durability, ReadableDatabase, ReadableTable};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::super::{Problem, ProblemCollector, VerifyContext};
use crate::base::pending::Pending;
use crate::disk::layout::{self, AuditHead, LogRowHead, LogRowParts};
use crate::format::{BeliefBuilder, EpochMs, Grain};
use crate::state::audit_rows::AuditRows;
use crate::state::truth::Truth;
use crate::state::view::View;
use crate::write::writer::{Request, Writer};
use crate::{Checkpoint, OpenOptions, SessionOptions, Store};

/// An entry: its number, its bytes, and the place of the log in whose row it lies, if it lies there.
type Entry = (u64, Vec<u8>, Option<u64>);

/// The audit log as it lies on the disk: the entries in order, and the head.
#[derive(Clone)]
struct Rows {
    entries: Vec<Entry>,
    head: Vec<u8>,
    /// The rows of the log, in which some of the entries lie.
    log: Vec<(u64, Vec<u8>)>,
}

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

/// Runs `test` on the writer thread of the store.
fn with_writer(store: &Store, test: impl FnOnce(&mut Writer) + Send + 'static) {
    let (reply, pending) = Pending::new();
    let work = Request::Exclusive(Box::new(move |writer| {
        test(writer.unwrap());
        let _ = reply.send(Ok(()));
    }));
    store.inner().send(work).unwrap();
    pending.wait().unwrap();
}

fn rows(writer: &Writer) -> Rows {
    let txn = writer.db.begin_read().unwrap();
    let (table, log) =
        (txn.open_table(layout::AUDIT).unwrap(), txn.open_table(layout::LOG).unwrap());
    let rows = AuditRows::new(&table, Some(&log)).every_row().unwrap().map(|row| row.unwrap());
    let entries = rows.map(|row| (row.number, row.entry, row.beside)).collect();
    let head = table.get(layout::AUDIT_HEAD).unwrap().unwrap().value().to_vec();
    let rows = log.range::<u64>(..).unwrap().map(|row| row.unwrap());
    let log = rows.map(|(at, row)| (at.value(), row.value().to_vec())).collect();
    Rows { entries, head, log }
}

/// Writes an audit log. A row of the log whose entry it lacks keeps the number.
fn write(writer: &Writer, rows: &Rows) {
    let mut txn = writer.db.begin_write().unwrap();
    txn.set_durability(Durability::None).unwrap();
    txn.delete_table(layout::AUDIT).unwrap();
    let mut table = txn.open_table(layout::AUDIT).unwrap();
    table.insert(layout::AUDIT_HEAD, rows.head.as_slice()).unwrap();
    let mut log = txn.open_table(layout::LOG).unwrap();
    for (at, row) in &rows.log {
        let parts = LogRowParts::split(row);
        let bare = LogRowHead { number: parts.number.unwrap(), entry: None };
        let row = bare.encode(Sequence::new(*at), parts.envelope).unwrap();
        log.insert(at, row.as_slice()).unwrap();
    }
    for (number, entry, beside) in &rows.entries {
        let Some(at) = beside else {
            table.insert(number, entry.as_slice()).unwrap();
            continue;
        };
        let row = log.get(at).unwrap().unwrap().value().to_vec();
        let head = LogRowHead { number: *number, entry: Some(entry) };
        let row = head.encode(Sequence::new(*at), LogRowParts::split(&row).envelope).unwrap();
        log.insert(at, row.as_slice()).unwrap();
    }
    drop((table, log));
    txn.commit().unwrap();
}

/// Problems of the log and the audit log with these rows.
fn problems(writer: &mut Writer, rows: &Rows) -> Vec<Problem> {
    write(writer, rows);
    problems_of_disk(writer)
}

fn problems_of_disk(writer: &Writer) -> Vec<Problem> {
    let truth = Arc::new(Truth::open(&writer.db).unwrap());
    let view = View::new(truth, writer.view.indexed().clone());
    let check = VerifyContext::of(&view, true).unwrap();
    let mut findings = ProblemCollector::default();
    super::super::log::check(&check, &mut findings).unwrap();
    super::check(&check, view.log_len().unwrap(), &mut findings).unwrap();
    findings.finish(true).problems
}

/// Publishes the current truth to readers.
fn show(writer: &mut Writer) {
    let truth = Arc::new(Truth::open(&writer.db).unwrap());
    writer.replace_view(View::new(truth, writer.view.indexed().clone()));
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
        let beside: Vec<_> = whole.entries.iter().map(|entry| entry.2).collect();
        assert_eq!(beside, [None, Some(1), Some(2), Some(3), Some(4), None]);
        for (at, (key, entry, _)) in whole.entries.iter().enumerate() {
            for byte in 0..entry.len() {
                let mut harmed = whole.clone();
                harmed.entries[at].1[byte] ^= 1 << (byte % 8);
                let found = problems(writer, &harmed);
                assert!(names(&found, *key), "entry {key}, byte {byte}: {found:?}");
            }
        }
        for byte in 0..whole.head.len() {
            let mut harmed = whole.clone();
            harmed.head[byte] ^= 1;
            assert!(!problems(writer, &harmed).is_empty(), "head, byte {byte}");
        }
    });
}

#[test]
fn entries_removed_cut_off_swapped_or_put_in_are_found_and_named() {
    let (_dir, store) = filled();
    with_writer(&store, |writer| {
        let whole = rows(writer);
        let check = |writer: &mut Writer, what: &str, rows: Rows, named: u64| {
            let found = problems(writer, &rows);
            assert!(names(&found, named), "{what}: {found:?}");
        };
        for length in 0..6 {
            let mut cut = whole.clone();
            cut.entries.truncate(length);
            check(writer, "cut", cut, u64::try_from(length).unwrap());
        }
        for gone in 0..5_usize {
            let mut rows = whole.clone();
            rows.entries.remove(gone);
            check(writer, "removed", rows, u64::try_from(gone).unwrap() + 1);
        }
        for at in 0..5_usize {
            let mut rows = whole.clone();
            let (one, other) = (rows.entries[at].1.clone(), rows.entries[at + 1].1.clone());
            (rows.entries[at].1, rows.entries[at + 1].1) = (other, one);
            check(writer, "swapped", rows.clone(), u64::try_from(at).unwrap());
            check(writer, "swapped", rows, u64::try_from(at).unwrap() + 1);
        }
        let mut longer = whole.clone();
        longer.entries.push((6, whole.entries[5].1.clone(), None));
        check(writer, "put behind the head", longer, 6);
        let mut twice = whole.clone();
        for row in twice.entries.iter_mut().skip(3).take(3) {
            row.0 += 1;
        }
        twice.entries.insert(3, (3, whole.entries[3].1.clone(), None));
        check(writer, "put in", twice, 4);
    });
}

#[test]
fn an_entry_beside_another_grain_and_numbers_out_of_order_are_found() {
    let (_dir, store) = filled();
    let session = store.session(SessionOptions::default());
    let grain =
        |object: &str| BeliefBuilder::new(EpochMs::new(9), "b", "is", object, 1.0).build().unwrap();
    session.put_batch([grain("one"), grain("two"), grain("three")]).unwrap();
    with_writer(&store, move |writer| {
        let whole = rows(writer);
        assert_eq!(whole.entries[6].2, Some(7), "it lies beside the last grain of its batch");
        assert_eq!(problems(writer, &whole), []);
        let mut moved = whole.clone();
        moved.entries[6].2 = Some(5);
        let found = problems(writer, &moved);
        assert!(names(&found, 6) && found.iter().any(|one| one.place == "log 6"), "{found:?}");
        let mut gone = whole.clone();
        gone.entries.truncate(6);
        let found = problems(writer, &gone);
        let untold = |at: u64| found.iter().any(|one| one.place == format!("log {at}"));
        assert!((5..=7).all(untold), "{found:?}");
        // Rows of the log with other numbers, or none.
        for (at, number) in [(2, 1), (3, 9), (4, 0), (5, 3), (6, u64::MAX), (7, 7), (2, u64::MAX)] {
            write(writer, &whole);
            change_number(writer, at, Some(number));
            assert_ne!(problems_of_disk(writer), [], "row {at} with the number {number}");
        }
        for at in 1..=7 {
            write(writer, &whole);
            change_number(writer, at, None);
            assert_ne!(problems_of_disk(writer), [], "row {at} without a number");
        }
        assert_eq!(problems(writer, &whole), []);
    });
}

/// Gives a row of the log another number, or the first form.
fn change_number(writer: &Writer, at: u64, number: Option<u64>) {
    let (_, row) = rows(writer).log[usize::try_from(at).unwrap() - 1].clone();
    let LogRowParts { entry, envelope, .. } = LogRowParts::split(&row);
    let row = match number {
        Some(number) => LogRowHead { number, entry }.encode(Sequence::new(at), envelope).unwrap(),
        None => envelope.to_vec(),
    };
    change_row(writer, at, &row);
}

fn change_row(writer: &Writer, at: u64, row: &[u8]) {
    let mut txn = writer.db.begin_write().unwrap();
    txn.set_durability(Durability::None).unwrap();
    txn.open_table(layout::LOG).unwrap().insert(at, row).unwrap();
    txn.commit().unwrap();
}

#[test]
fn the_last_entry_is_told_by_the_last_row_of_the_log() {
    let (_dir, store) = filled();
    let session = store.session(SessionOptions::default());
    session.put(BeliefBuilder::new(EpochMs::new(7), "b", "is", "c", 1.0).build().unwrap()).unwrap();
    let (again, before) = (store.clone(), session.audit_head().unwrap());
    with_writer(&store, move |writer| {
        let whole = rows(writer);
        let (number, entry, beside) = whole.entries[6].clone();
        assert_eq!((number, beside), (6, Some(5)));
        assert_eq!(AuditHead::decode(&whole.head).unwrap().count, 6, "it was not written again");
        let hash = data_encoding::HEXLOWER.encode(&Sha256::digest(&entry));
        assert_eq!(before, (7, hash));
        assert_eq!(problems(writer, &whole), []);
        let (_, row) = whole.log[4].clone();
        for byte in 1..row.len() - LogRowParts::split(&row).envelope.len() {
            let mut harmed = row.clone();
            harmed[byte] ^= 1 << (byte % 8);
            change_row(writer, 5, &harmed);
            assert_ne!(problems_of_disk(writer), [], "byte {byte}");
        }
        for byte in 0..whole.head.len() {
            let mut harmed = whole.clone();
            harmed.head[byte] ^= 1;
            assert_ne!(problems(writer, &harmed), [], "head, byte {byte}");
        }
        problems(writer, &whole);
        show(writer);
    });
    drop(again);
    assert_eq!(session.audit(None, 100).unwrap().len(), 7);
}

/// Rewrites the chain from entry `from` on, with another time in it, head included.
fn rewritten(whole: &Rows, from: usize) -> Rows {
    let mut rows = whole.clone();
    let mut end: Option<[u8; 32]> = None;
    for (at, (_, bytes, _)) in rows.entries.iter_mut().enumerate() {
        let Value::Map(mut entry) = decode_value(bytes, Encoding::MessagePack).unwrap() else {
            panic!("an entry is a map");
        };
        if let Some(end) = end.filter(|_| at > from) {
            entry.insert("previous".to_owned(), Value::Bytes(end.to_vec()));
        }
        if at == from {
            entry.insert("time_ms".to_owned(), Value::from(1));
        }
        *bytes = encode_value(&Value::Map(entry), Encoding::MessagePack);
        end = Some(Sha256::digest(&*bytes).into());
    }
    let count = u64::try_from(rows.entries.len()).unwrap();
    rows.head = AuditHead { count, hash: end.unwrap() }.encode().to_vec();
    rows
}

#[test]
fn a_chain_written_again_as_a_whole_is_caught_by_a_checkpoint() {
    let (_dir, store) = filled();
    let checkpoint = store.checkpoint(None).unwrap();
    let session = store.session(SessionOptions::default());
    session.put(BeliefBuilder::new(EpochMs::new(7), "b", "is", "c", 1.0).build().unwrap()).unwrap();
    assert_eq!(store.passes(&checkpoint).unwrap(), None);
    let (again, noted) = (store.clone(), checkpoint.clone());
    with_writer(&store, move |writer| {
        let whole = rows(writer);
        for from in 0..7 {
            assert_eq!(problems(writer, &rewritten(&whole, from)), [], "the chain itself is whole");
            show(writer);
            let caught = again.passes(&noted).unwrap();
            assert_eq!(caught.is_some(), from < 6, "entry {from} was not there yet");
            assert!(caught.is_none_or(|problem| problem.place == "audit 5"));
        }
        for count in 1..6 {
            let mut cut = whole.clone();
            cut.entries.truncate(count);
            let hash = Sha256::digest(&cut.entries[count - 1].1).into();
            let head = AuditHead { count: u64::try_from(count).unwrap(), hash };
            cut.head = head.encode().to_vec();
            problems(writer, &cut);
            show(writer);
            assert!(again.passes(&noted).unwrap().is_some(), "cut to {count}");
        }
        problems(writer, &whole);
        show(writer);
    });
    assert_eq!(store.passes(&checkpoint).unwrap(), None);
}

#[test]
fn a_checkpoint_that_was_altered_or_is_of_another_store_is_refused() {
    let (_dir, store) = filled();
    let (_other_dir, other) = filled();
    let passes = |checkpoint: &Checkpoint| store.passes(checkpoint).map_err(|error| error.code());
    let key = SigningKey::ed25519_from_seed(&[5; 32]);
    let whole = store.checkpoint(Some(&key)).unwrap();
    assert_eq!(whole.signer(), key.did().as_str());
    assert_eq!(passes(&whole), Ok(None));
    assert_eq!(passes(&other.checkpoint(None).unwrap()), Err("ERR_CONFLICT"));
    let json = serde_json::to_value(&whole).unwrap();
    let own = store.checkpoint(None).unwrap();
    for (name, value, code) in [
        ("entries", serde_json::json!(5), "ERR_SIGNATURE"),
        ("entries", serde_json::json!(0), "ERR_SIGNATURE"),
        ("time_ms", serde_json::json!(5), "ERR_SIGNATURE"),
        ("head", serde_json::json!("0".repeat(64)), "ERR_SIGNATURE"),
        ("store", serde_json::json!("0".repeat(32)), "ERR_SIGNATURE"),
        ("signer", serde_json::json!(own.signer()), "ERR_SIGNATURE"),
        ("head", serde_json::json!("0"), "ERR_SCHEMA"),
        ("store", serde_json::json!("xy"), "ERR_SCHEMA"),
        ("signer", serde_json::json!("somebody"), "ERR_SCHEMA"),
        ("proof", serde_json::json!("."), "ERR_SCHEMA"),
        ("proof", serde_json::json!(""), "ERR_SIGNATURE"),
    ] {
        let mut altered = json.clone();
        altered[name] = value;
        let altered: Checkpoint = serde_json::from_value(altered).unwrap();
        assert_eq!(passes(&altered), Err(code), "{name}");
    }
}

#[test]
fn an_import_tells_of_the_grains_it_brought_and_of_no_others() {
    let (dir, from) = filled();
    let file = dir.path().with_extension("mg");
    let session = from.session(SessionOptions::default());
    session.export(&file, &crate::cal::Query::default(), &crate::ExportOptions::default()).unwrap();
    let away = TempDir::new().unwrap();
    let to = Store::open(away.path(), &OpenOptions::new().create(true)).unwrap();
    let there = to.session(SessionOptions::default());
    let imported = there.import([&file], &crate::ImportOptions::default()).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(imported.added, 4);
    with_writer(&to, |writer| {
        let whole = rows(writer);
        assert_eq!(problems(writer, &whole), []);
        for (name, value) in [
            ("first", Value::from(2_u64)),
            ("added", Value::from(3_u64)),
            ("digest", Value::Bytes(vec![7; 32])),
        ] {
            let mut changed = whole.clone();
            let Ok(Value::Map(mut entry)) =
                decode_value(&changed.entries[1].1, Encoding::MessagePack)
            else {
                panic!("no map")
            };
            let Some(Value::Map(note)) = entry.get_mut("import") else { panic!("no import") };
            note.insert(name.to_owned(), value);
            changed.entries[1].1 = encode_value(&Value::Map(entry), Encoding::MessagePack);
            let found = problems(writer, &changed);
            let told =
                |problem: &Problem| problem.detail.contains("are not the grains it tells of");
            assert!(found.iter().any(told), "{name}: {found:?}");
        }
    });
}
