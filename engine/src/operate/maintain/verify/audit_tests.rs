//! Every way of tampering with the audit log is found, and the entry is named; a chain that was rewritten as
//! a whole contradicts an earlier checkpoint.

use std::sync::Arc;

use grainstore_format::cose::SigningKey;
use grainstore_format::{Encoding, Value, decode_value, encode_value};
use redb::{Durability, ReadableDatabase, ReadableTable};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::super::{Problem, ProblemCollector, VerifyContext};
use crate::base::pending::Pending;
use crate::disk::layout::{self, AuditHead};
use crate::format::{BeliefBuilder, EpochMs, Grain};
use crate::state::truth::Truth;
use crate::state::view::View;
use crate::write::writer::{Request, Writer};
use crate::{Checkpoint, OpenOptions, SessionOptions, Store};

/// Rows of the audit table, the head last.
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
    let table = txn.open_table(layout::AUDIT).unwrap();
    let rows = table.iter().unwrap().map(|row| row.unwrap());
    rows.map(|(key, entry)| (key.value(), entry.value().to_vec())).collect()
}

/// Problems of the audit log with these rows.
fn problems(writer: &mut Writer, rows: &Rows) -> Vec<Problem> {
    let mut txn = writer.db.begin_write().unwrap();
    txn.set_durability(Durability::None).unwrap();
    txn.delete_table(layout::AUDIT).unwrap();
    let mut table = txn.open_table(layout::AUDIT).unwrap();
    for (key, entry) in rows {
        table.insert(key, entry.as_slice()).unwrap();
    }
    drop(table);
    txn.commit().unwrap();
    let truth = Arc::new(Truth::open(&writer.db).unwrap());
    let view = View::new(truth, writer.view.indexed().clone());
    let check = VerifyContext::of(&view, true).unwrap();
    let mut findings = ProblemCollector::default();
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
        let (head, entries) = whole.split_last().unwrap();
        assert_eq!((head.0, entries.len()), (layout::AUDIT_HEAD, 6));
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

/// Rewrites the chain from entry `from` on, with another time in it, head included.
fn rewritten(whole: &Rows, from: usize) -> Rows {
    let mut rows = whole.clone();
    let (head, entries) = rows.split_last_mut().unwrap();
    let mut end: Option<[u8; 32]> = None;
    for (at, (_, bytes)) in entries.iter_mut().enumerate() {
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
    let count = u64::try_from(entries.len()).unwrap();
    head.1 = AuditHead { count, hash: end.unwrap() }.encode().to_vec();
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
            let mut cut = whole[..count].to_vec();
            let hash = Sha256::digest(&cut[count - 1].1).into();
            let head = AuditHead { count: u64::try_from(count).unwrap(), hash };
            cut.push((layout::AUDIT_HEAD, head.encode().to_vec()));
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
            let Ok(Value::Map(mut entry)) = decode_value(&changed[1].1, Encoding::MessagePack)
            else {
                panic!("no map")
            };
            let Some(Value::Map(note)) = entry.get_mut("import") else { panic!("no import") };
            note.insert(name.to_owned(), value);
            changed[1].1 = encode_value(&Value::Map(entry), Encoding::MessagePack);
            let found = problems(writer, &changed);
            let told =
                |problem: &Problem| problem.detail.contains("are not the grains it tells of");
            assert!(found.iter().any(told), "{name}: {found:?}");
        }
    });
}
