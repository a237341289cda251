//! What is kept comes back as it was: documents of any size and text, in all their versions, and files.

use grainstore::format::{Map, Sensitivity};
use grainstore::prelude::*;
use grainstore::{EpochMs, EraseOptions};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::json::{Value, equal};

const PROFILE: Profile = Profile::new("test");

fn open(dir: &std::path::Path) -> Session {
    let store = Store::open(dir, &OpenOptions::new().create(true)).unwrap();
    store.session(SessionOptions::default())
}

fn document(item: Option<&str>, value: Value) -> Document {
    Document {
        layer: "notes",
        item: item.map(str::to_owned),
        namespace: "test:ann:notes".to_owned(),
        value,
        created_at: EpochMs::new(1_768_471_200_000),
        sensitivity: Sensitivity::Pii,
        fields: Map::new(),
    }
}

#[test]
fn a_document_is_kept_in_all_its_versions_and_read_in_its_last() {
    let dir = tempfile::tempdir().unwrap();
    let session = open(dir.path());
    let documents = Documents::new(&session, PROFILE, "ann");
    let versions = [
        json!({"a": null, "b": [1.5, "e\u{301}\u{feff}"], "big": u64::MAX}),
        json!({"text": "é".repeat(2 << 20)}),
        json!({"a": null, "b": [1.5, "e\u{301}\u{feff}"], "big": u64::MAX}),
        json!([]),
    ];
    for (at, value) in versions.iter().enumerate() {
        let written = documents.write([document(None, value.clone())]).unwrap();
        assert_eq!(written, [if at == 0 { Written::Created } else { Written::Replaced }]);
        let again = documents.write([document(None, value.clone())]).unwrap();
        assert_eq!(again, [Written::Same]);
        let kept = documents.read("notes", None).unwrap().unwrap();
        assert!(equal(&kept.value, value));
        assert_eq!(session.history(&kept.address).unwrap().len(), at + 1);
    }
    let problems = session.store().verify(true).unwrap().problems;
    assert_eq!(problems, []);
    assert_eq!(documents.erase("notes", None, "a test").unwrap(), 4);
    assert!(documents.read("notes", None).unwrap().is_none());
    assert_eq!(session.store().stats().unwrap().side_blobs, 0);
}

#[test]
fn items_are_kept_apart_and_a_retracted_one_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let session = open(dir.path());
    let documents = Documents::new(&session, PROFILE, "ann");
    let whole = json!({"x": 1, "list": [{"id": "b", "n": 1}, 7, {"id": "a"}, {"id": "b", "n": 2}, {"n": 3}]});
    let (shell, items) = split(whole.clone(), "list");
    assert_eq!(shell["list"][0], json!({"id": "b"}));
    let all = items.into_iter().map(|(id, value)| document(Some(&id), value));
    documents.write(all.chain([document(None, shell)])).unwrap();
    assert_eq!(documents.items("notes").unwrap(), ["a", "b"]);
    let mut absent = Vec::new();
    let mut read = || {
        let shell = documents.read("notes", None).unwrap().unwrap().value;
        let item = |id: &str| Ok(documents.read("notes", Some(id))?.map(|kept| kept.value));
        joined(shell, "list", item, |id| absent.push(id.to_owned())).unwrap()
    };
    assert_eq!(read(), whole);
    assert!(documents.retract("notes", Some("b"), "a test").unwrap());
    assert_eq!(read()["list"].as_array().unwrap().len(), 4);
    assert_eq!(absent, ["b"]);
    // What was retracted can be written again.
    documents.write([document(Some("b"), json!({"id": "b", "n": 1}))]).unwrap();
    assert_eq!(documents.items("notes").unwrap(), ["a", "b"]);
}

#[test]
fn what_was_taken_back_and_is_written_again_is_a_version_of_the_same_document() {
    let dir = tempfile::tempdir().unwrap();
    let session = open(dir.path());
    let documents = Documents::new(&session, PROFILE, "ann");
    let write = || documents.write([document(Some("a"), json!({"n": 1}))]).unwrap();
    assert_eq!(write(), [Written::Created]);
    for round in 0..3 {
        assert!(documents.retract("notes", Some("a"), "a test").unwrap());
        assert!(!documents.retract("notes", Some("a"), "a test").unwrap());
        assert!(documents.read("notes", Some("a")).unwrap().is_none(), "{round}");
        assert_eq!(write(), [Written::Created]);
        assert_eq!(write(), [Written::Same]);
        assert_eq!(documents.read("notes", Some("a")).unwrap().unwrap().value, json!({"n": 1}));
    }
    documents.retract("notes", Some("a"), "a test").unwrap();
    assert_eq!(documents.items("notes").unwrap(), ["a"]);
    assert_eq!(documents.erase("notes", Some("a"), "a test").unwrap(), 4);
    assert_eq!(session.store().stats().unwrap().application_rows, 0);
}

#[test]
fn files_are_kept_in_pieces_and_pieces_nobody_needs_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let session = open(dir.path());
    let documents = Documents::new(&session, PROFILE, "ann");
    let mut files = Files::open(documents, "files", "test:ann:archive".to_owned()).unwrap();
    let large: Vec<u8> = (0..9_u32 << 20).map(|at| (at / 7).to_le_bytes()[0]).collect();
    let at = EpochMs::new(0);
    for (path, bytes) in [("a/large", &large[..]), ("b", b"tea"), ("c", b"tea"), ("empty", b"")] {
        assert!(files.put(path, bytes).unwrap());
        assert!(!files.put(path, bytes).unwrap());
    }
    files.commit(at, &[]).unwrap();
    // The four pieces, and the list of them.
    assert_eq!(session.store().stats().unwrap().side_blobs, 5);
    let documents = Documents::new(&session, PROFILE, "ann");
    let mut files = Files::open(documents, "files", "test:ann:archive".to_owned()).unwrap();
    let mut read = Vec::new();
    let entry = files.get("a/large").unwrap();
    std::io::Read::read_to_end(&mut files.reader(entry).unwrap(), &mut read).unwrap();
    assert_eq!(read, large);
    assert!(files.remove("a/large") && files.remove("b") && !files.remove("b"));
    files.commit(at, &[]).unwrap();
    assert_eq!(files.list().keys().collect::<Vec<_>>(), ["c", "empty"]);
    assert_eq!(session.store().stats().unwrap().side_blobs, 3);
}

#[test]
fn a_grain_that_is_too_large_keeps_the_beginning_of_its_content_and_gives_back_all() {
    let dir = tempfile::tempdir().unwrap();
    let session = open(dir.path());
    let content = "tea ".repeat(1 << 20);
    let entry = format!("[\"{}\"]", "x".repeat(1 << 19));
    let grain = BeliefBuilder::new(EpochMs::new(0), "ann", "mg:knows", content.as_str(), 0.5);
    let context = Map::from([("test:more".to_owned(), entry.as_str().into())]);
    let fields = grain.context(context).build().unwrap().into_fields();
    let mut new = NewGrain::new(PROFILE, fields, Sensitivity::Internal).unwrap();
    let address = session.put(new.offer()).unwrap().address();
    assert_eq!(address, new.address());
    new.store_spilled(&session).unwrap();
    let grain = session.get(&address).unwrap().grain().unwrap();
    assert_eq!(grain.text("object").map(str::len), Some(64 << 10));
    let whole = whole_fields(&session, PROFILE, &address, grain).unwrap();
    assert_eq!(whole["object"].as_str(), Some(content.as_str()));
    assert_eq!(whole["context"].as_map().unwrap()["test:more"].as_str(), Some(entry.as_str()));
    session.erase(&address, "a test", &EraseOptions::new()).unwrap();
    assert_eq!(session.store().stats().unwrap().side_blobs, 0);
}

#[test]
fn dates_have_milliseconds_only_if_there_are_any() {
    for (text, expected) in [
        ("2026-01-15T10:00:00Z", Some("2026-01-15T10:00:00Z")),
        ("2026-01-15T12:00:00.000+02:00", Some("2026-01-15T10:00:00Z")),
        ("2026-01-15T10:00:00.12345Z", Some("2026-01-15T10:00:00.123Z")),
        ("0000-01-01T00:00:00Z", Some("0000-01-01T00:00:00Z")),
        ("9999-12-30T12:00:00Z", Some("9999-12-30T12:00:00Z")),
        ("9999-12-31T23:59:59.999Z", Some("9999-12-30T22:00:00Z")),
        ("9999-12-31T23:59:60", None),
        ("9999-12-32T00:00:00Z", None),
        ("2026-01-15", None),
    ] {
        let read = milliseconds(text).and_then(date_text);
        assert_eq!(read.as_deref(), expected, "{text}");
    }
    assert_eq!(clamped(EpochMs::new(-5)), EpochMs::new(0));
    assert_eq!(clamped(EpochMs::new(i64::MAX)), EpochMs::MAX_CREATED);
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|x| if x.is_finite() { x.into() } else { Value::Null }),
        "\\PC{0,6}|[a/~\u{feff}e\u{301}]{0,5}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[ab/~é]{0,2}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_residue_makes_any_value_of_any_other(from in value(), to in value()) {
        let residue = residue_of(&from, &to).unwrap();
        prop_assert_eq!(residue.is_none(), equal(&from, &to));
        prop_assert!(residue.iter().all(|text| text.is_ascii()));
        prop_assert!(equal(&restored(from, residue.as_deref()).unwrap(), &to));
    }
}
