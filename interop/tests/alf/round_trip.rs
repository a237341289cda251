//! What goes into a store comes out of it: every member, every byte of files and of sealed partitions.

use grainstore::cal::{CancelHandle, Near, Query};
use grainstore::{OpenOptions, PageOptions, SessionOptions, Store};
use grainstore_interop::Monitor;
use grainstore_interop::alf::{self, ExportOptions, ImportOptions};
use grainstore_interop::json::{Value, equal};
use proptest::prelude::*;
use serde_json::json;

use crate::kit::*;

/// Asserts that two archives are the same but for what each export says of itself.
pub(crate) fn assert_same(left: &Read, right: &Read) {
    for (id, record) in &left.records {
        let other = right.records.get(id);
        assert!(other.is_some_and(|other| equal(record, other)), "{record}\n{other:?}");
    }
    assert_eq!(left.records.len(), right.records.len());
    assert_eq!(
        left.documents.keys().collect::<Vec<_>>(),
        right.documents.keys().collect::<Vec<_>>()
    );
    for (name, document) in &left.documents {
        assert!(equal(document, &right.documents[name]), "{document}\n{}", right.documents[name]);
    }
    assert_eq!(left.files, right.files);
    let [left, right] = [left, right].map(|read| about(&read.manifest));
    assert!(equal(&left, &right), "{left}\n{right}");
}

/// A manifest without what is counted and timed anew.
fn about(manifest: &Value) -> Value {
    let mut manifest = manifest.clone();
    let members = manifest.as_object_mut().unwrap();
    for name in ["created_at", "checksum", "checksum_scheme", "layers"] {
        members.remove(name);
    }
    manifest
}

#[test]
fn every_member_of_an_archive_comes_back() {
    let encrypted = OpenOptions::new().key(grainstore::MasterKey::new([7; 32]));
    for options in [OpenOptions::new(), OpenOptions::new().compress(true), encrypted] {
        let world = World::with(options);
        let made = rich();
        let report = world.import_made(&made);
        assert_eq!((report.records.read, report.records.created, report.records.failed), (9, 9, 0));
        assert_eq!(report.host_dependent, ["docker", "moon"]);
        assert_eq!(report.artifacts.referenced, [("b.png".to_owned(), 284_190)]);
        let (out, report) = world.export();
        assert_same(&read(&world.dir.path().join("in.alf")), &out);
        assert_eq!((report.records, report.omitted_records, report.sequence), (9, 0, 7));
        // What was sealed is the same bytes.
        let input = read(&world.dir.path().join("in.alf"));
        for quarter in ["2026-Q1", "2026-Q2"] {
            let name = format!("memory/partitions/{quarter}.jsonl");
            assert_eq!(input.partitions[&name], out.partitions[&name]);
        }
        world.verify();
    }
}

#[test]
fn the_same_archive_again_changes_nothing() {
    let world = World::new();
    let made = world.import_made(&rich());
    let grains = world.store.stats().unwrap().grains;
    let (first, _) = world.export();
    let again = world.import_made(&rich());
    assert_eq!((again.records.unchanged, again.records.created, again.records.updated), (9, 0, 0));
    assert!(again.layers.values().all(|counts| counts.created + counts.replaced == 0), "{again:?}");
    for (layer, counts) in &again.layers {
        assert_eq!(counts.unchanged, made.layers[layer].created, "{layer}");
    }
    assert_eq!(again.sequence, 7);
    let (second, _) = world.export();
    assert_same(&first, &second);
    assert_eq!(first.partitions, second.partitions);
    // The anchor of the kept partitions came with the first export at most.
    assert!(world.store.stats().unwrap().grains <= grains + 4);
}

#[test]
fn an_archive_of_ours_makes_the_same_store_elsewhere() {
    let [one, other] = [World::new(), World::new()];
    one.import_made(&rich());
    let (first, _) = one.export();
    other.import(&one.dir.path().join("out.alf"));
    let (second, _) = other.export();
    assert_same(&first, &second);
    assert_eq!(first.partitions, second.partitions);
    other.verify();
    for sources in ["beliefs", "events", "workflows", "beliefs WHERE relation = \"mg:prefers\""] {
        let [one, other] = [&one, &other].map(|world| world.assembled(sources));
        assert!(one.contains("memory"), "{one}");
        assert_eq!(one, other, "{sources}");
    }
}

#[test]
fn a_record_that_supersedes_another_takes_its_place_also_where_it_comes_first() {
    let world = World::new();
    let chain = |number: u32, old: Option<u32>| {
        let record = record(number, "2026-07-02T00:00:00Z");
        match old {
            Some(old) => with(record, json!({"supersedes": id(old)})),
            None => record,
        }
    };
    let records = vec![
        chain(5, Some(4)),
        chain(4, Some(3)),
        chain(3, None),
        chain(9, Some(8)),
        chain(8, Some(9)),
        chain(7, Some(77)),
    ];
    let report = world.import_made(&Made::of(vec![("2026-Q3", records)]));
    assert_eq!(report.records.created, 6);
    assert!(
        report.warnings.iter().any(|issue| issue.message.contains("kept as text")),
        "{report:?}"
    );
    let found = world.session.query(&Query::default(), &PageOptions::first(100)).unwrap();
    let mut contents: Vec<_> =
        found.results.iter().filter_map(|row| row.grain.text("object")).collect();
    contents.sort_unstable();
    assert_eq!(contents, ["memory 5", "memory 7", "memory 8", "memory 9"]);
    let head =
        found.results.iter().find(|row| row.grain.text("object") == Some("memory 5")).unwrap();
    assert_eq!(world.session.history(&head.content_address).unwrap().len(), 3);
    world.verify();
}

#[test]
fn what_is_deleted_is_not_recalled_and_embeddings_are_searched() {
    let world = World::new();
    world.import_made(&rich());
    let found = world.session.query(&Query::default(), &PageOptions::first(100)).unwrap();
    let objects: Vec<_> = found.results.iter().filter_map(|row| row.grain.text("object")).collect();
    assert!(objects.contains(&"memory 2") && objects.contains(&"memory 8"));
    assert!(!objects.contains(&"memory 7") && !objects.contains(&"memory 3"));
    let near = Near { model: None, values: [0.6, 0.8].into() };
    let found =
        world.session.query(&Query::default().nearing(near), &PageOptions::first(1)).unwrap();
    assert_eq!(found.results[0].grain.text("content"), Some("memory 1"));
}

#[test]
fn a_record_of_any_size_comes_back() {
    let world = World::new();
    let vector: Vec<f64> = (0..40_000).map(|at| f64::from(at) / 3.0).collect();
    let large = with(
        record(1, "2026-07-02T00:00:00Z"),
        json!({
            "content": "tea é ".repeat(1 << 19), "x_more": "ü".repeat(1 << 20),
            "embeddings": [{"model": "m", "dimensions": 40_000, "vector": vector,
                "computed_at": "2026-07-02T00:00:00Z", "source": "runtime"}],
        }),
    );
    let report = world.import_made(&Made::of(vec![("2026-Q3", vec![large])]));
    assert_eq!(report.unsearchable_embeddings, 1);
    let (out, _) = world.export();
    assert_same(&read(&world.dir.path().join("in.alf")), &out);
    world.verify();
}

#[test]
fn no_search_finds_a_credential() {
    let world = World::new();
    world.import_made(&rich());
    let payload = credential(30)["encrypted_payload"].as_str().unwrap().to_owned();
    let word = payload
        .split(|char: char| !char.is_alphanumeric())
        .max_by_key(|word| word.len())
        .unwrap()
        .to_owned();
    for words in [word.as_str(), "openai", "production", "xchacha20"] {
        let found = world
            .session
            .query(&Query::default().searching(words), &PageOptions::first(9))
            .unwrap();
        assert!(found.results.is_empty(), "{words}: {:?}", found.results);
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(Value::from),
        "[a-c\u{feff}e\u{301}\"\\\\/~🦀]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-c~/é]{1,3}", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Adds members that are not known to objects of a document, at all levels.
fn add_members(value: &mut Value, more: &[Value], at: &mut usize) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| add_members(item, more, at)),
        Value::Object(members) => {
            let is_open =
                |name: &str| !["neural_matrix", "scores", "custom_blocks"].contains(&name);
            let inner = members.iter_mut().filter(|(name, _)| is_open(name));
            inner.for_each(|(_, value)| add_members(value, more, at));
            *at += 1;
            if let Some(one) = more.get(*at % (2 * more.len().max(1))) {
                members.insert("x_generated".to_owned(), one.clone());
            }
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(12), ..ProptestConfig::default() })]

    #[test]
    fn archives_with_anything_in_them_come_back(more in prop::collection::vec(any_json(), 1..6), seed in 0_usize..100) {
        let mut made = rich();
        let mut at = seed;
        for name in ["identity.json", "principals.json", "credentials.json", "attachments.json"] {
            let mut document: Value = serde_json::from_slice(&made.entries[name]).unwrap();
            add_members(&mut document, &more, &mut at);
            made = made.file(name, document.to_string().as_bytes());
        }
        for record in made.partitions.iter_mut().flat_map(|(_, records)| records) {
            add_members(record, &more, &mut at);
        }
        add_members(&mut made.manifest["runtime_hints"], &more, &mut at);
        let world = World::new();
        world.import_made(&made);
        let (out, _) = world.export();
        assert_same(&read(&world.dir.path().join("in.alf")), &out);
    }
}

#[test]
fn an_import_that_was_cancelled_is_completed_by_the_next() {
    let world = World::new();
    let records: Vec<_> = (0..3_000)
        .map(|number| {
            let record = record(number, "2026-07-02T00:00:00Z");
            match number % 7 {
                3 => with(record, json!({"supersedes": id(number - 1)})),
                _ => record,
            }
        })
        .collect();
    let path = Made::of(vec![("2026-Q3", records)]).write(world.dir.path(), "in.alf");
    let mut last = 0;
    for steps in [8, 10] {
        let count = std::cell::Cell::new(0);
        let cancel = CancelHandle::default();
        let asked = cancel.clone();
        let progress = |_, _| {
            count.set(count.get() + 1);
            if count.get() == steps {
                asked.cancel();
            }
        };
        let monitor = Monitor { progress: Some(&progress), cancel };
        let error =
            alf::import(&world.session, &path, &ImportOptions::default(), &monitor).unwrap_err();
        assert_eq!(error.code(), "ERR_TIMEOUT");
        let grains = world.store.stats().unwrap().grains;
        assert!(grains > last && grains < 3_000, "{grains}");
        last = grains;
    }
    let report = world.import(&path);
    assert_eq!(report.records.created + report.records.unchanged, 3_000);
    assert!(report.records.unchanged > 0);
    let (mut out, _) = world.export();
    // Each attempt has a number of its own.
    out.manifest["sync"]["last_sequence"] = json!(7);
    assert_same(&read(&path), &out);
    world.verify();
}

#[test]
fn a_store_that_is_read_only_is_exported() {
    let world = World::new();
    world.import_made(&rich());
    let (out, _) = world.export();
    let World { dir, store, session, .. } = world;
    drop(session);
    store.close().unwrap();
    let store = Store::open(dir.path().join("store"), &OpenOptions::new().read_only(true)).unwrap();
    let session = store.session(SessionOptions::default());
    let path = dir.path().join("read_only.alf");
    alf::export(&session, &path, &ExportOptions::default(), &Monitor::default()).unwrap();
    assert_same(&out, &read(&path));
}

#[test]
fn a_file_that_is_the_same_as_a_sealed_partition_goes_without_it() {
    let world = World::new();
    let sealed = Made::of(vec![("2026-Q1", vec![record(1, "2026-02-01T00:00:00Z")])]);
    let line = format!("{}\n", record(1, "2026-02-01T00:00:00Z"));
    world.import_made(&sealed.clone().file("raw/openclaw/copy.jsonl", line.as_bytes()));
    assert_eq!(world.export().0.files.len(), 1);
    let path = sealed.write(world.dir.path(), "in.alf");
    let mode = alf::ImportMode::Mirror;
    let report = world.import_with(&path, &ImportOptions { mode, ..ImportOptions::default() });
    assert_eq!(report.layers["files"].removed, 1);
    let (out, _) = world.export();
    assert_eq!(out.partitions["memory/partitions/2026-Q1.jsonl"], line.as_bytes());
    assert_eq!(out.files.len(), 0);
}
