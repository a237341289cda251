//! An archive vouches for nothing: what it carries passes the same checks as what it says.

use data_encoding::BASE64;
use grainstore::cal::CancelHandle;
use grainstore::prelude::*;
use grainstore_interop::Monitor;
use grainstore_interop::alf::{self, ExportOptions, ImportOptions, PurgeScope};
use grainstore_interop::json::canonical;
use serde_json::{Value, json};

use crate::erased::assert_gone;
use crate::kit::*;
use crate::purge::{SECRET, options, purge};

/// A record that carries a grain, as an export of native grains would write it.
pub(crate) fn carrying(number: u32, grain: &Grain, more: Value) -> Value {
    let blob = grain.encode(Default::default()).unwrap();
    carrying_bytes(number, blob.bytes(), None, more)
}

/// A record that carries a grain and a signature of it.
pub(crate) fn carrying_bytes(number: u32, blob: &[u8], cose: Option<&[u8]>, more: Value) -> Value {
    let mut view = with(record(number, "2026-07-02T00:00:00Z"), more);
    let digest = sha256(canonical(&unchanging(&view)).unwrap().as_bytes());
    view["raw_source_format"] = json!({
        "format": "oms.grain.v1", "blob": BASE64.encode(blob), "view_sha256": digest,
    });
    if let Some(cose) = cose {
        view["raw_source_format"]["cose"] = json!(BASE64.encode(cose));
    }
    view
}

/// A record without what changes of it.
fn unchanging(record: &Value) -> Value {
    let mut view = record.clone();
    view.as_object_mut().unwrap().remove("status");
    view
}

pub(crate) fn running(records: Vec<Value>) -> Made {
    Made::of(vec![("2026-Q3", records)])
}

#[test]
fn a_record_carries_no_document_past_its_checks() {
    let world = World::new();
    let state = |context: &str, tags: &str| {
        Grain::from_json(&format!(
            r#"{{"type": "state", "context": {{{context}}}, "structural_tags": [{tags}],
            "namespace": "agent:{AGENT}:credentials", "created_at": "2026-07-01T00:00:00Z"}}"#
        ))
        .unwrap()
    };
    let forged = [
        state(r#""alf:layer": "credential", "alf:json": "{\"plain\": \"secret\"}""#, ""),
        state(r#""saga:kind": "vault-item", "saga:json": "{\"password\": \"secret\"}""#, ""),
        state(r#""a": "b""#, r#""profile:saga""#),
    ];
    let records =
        (1..).zip(&forged).map(|(number, grain)| carrying(number, grain, json!({}))).collect();
    let report = world.import_with(
        &running(records).write(world.dir.path(), "in.alf"),
        &ImportOptions::default(),
    );
    assert_eq!((report.records.created, report.records.failed), (0, 3), "{report:?}");
    assert!(report.errors[0].message.contains("ERR_SCHEMA"), "{report:?}");
}

#[test]
fn what_agents_wrote_in_place_of_a_persons_record_goes_with_the_person() {
    for whole in [false, true] {
        let world = World::new();
        let mut first = record(1, "2026-07-01T00:00:00Z");
        first["namespace"] = json!(format!("principal_context:{PERSON}"));
        world.import_made(&running(vec![first]));
        let old = crate::erased::saying(&world, "memory 1");
        let grain = old.grain().unwrap();
        let newer = |object: String| {
            BeliefBuilder::new(world.session.now(), PERSON, "mg:knows", object, 0.5)
                .namespace(grain.text("namespace").unwrap())
                .user_id(PERSON)
                .build()
                .unwrap()
        };
        let second = world.session.supersede(&old.address, newer(SECRET.to_owned()), None).unwrap();
        world.export();
        let third = world.session.supersede(&second, newer(format!("now {SECRET}")), None).unwrap();
        let scope = match whole {
            true => PurgeScope::Agent,
            false => PurgeScope::User(PERSON.to_owned()),
        };
        let done = alf::purge(&world.session, &scope, &options(), &Monitor::default()).unwrap();
        assert_eq!(done.records_removed, 3);
        for gone in [old.address, second, third] {
            assert_eq!(world.session.get(&gone).unwrap_err().code(), "ERR_ERASED");
        }
        std::fs::remove_file(world.dir.path().join("out.alf")).unwrap();
        assert_gone(&world);
    }
}

/// Imports, and cancels at this call of the progress. Returns how many calls there were, and how it ended.
fn import_until(world: &World, path: &std::path::Path, last: u64) -> (u64, Option<String>) {
    let (count, cancel) = (std::cell::Cell::new(0), CancelHandle::default());
    let handle = cancel.clone();
    let progress = |_, _| {
        count.set(count.get() + 1);
        if count.get() == last {
            handle.cancel();
        }
    };
    let monitor = Monitor { progress: Some(&progress), cancel };
    let done = alf::import(&world.session, path, &ImportOptions::default(), &monitor);
    (count.get(), done.err().map(|error| error.code().to_owned()))
}

#[test]
fn an_import_that_was_cut_off_leaves_nothing_that_a_purge_does_not_find() {
    let records = (1..3_000).map(|number| record(number, "2026-07-02T00:00:00Z")).collect();
    let made = running(records).file("raw/openclaw/a.md", SECRET.as_bytes());
    let whole = World::new();
    let (count, _) = import_until(&whole, &made.write(whole.dir.path(), "in.alf"), 0);
    let mut has_left = false;
    for last in [count / 3, count * 2 / 3, count - 1] {
        let world = World::new();
        let path = made.write(world.dir.path(), "in.alf");
        let (_, error) = import_until(&world, &path, last);
        assert_eq!(error.as_deref(), Some("ERR_TIMEOUT"), "{last} of {count}");
        let left = crate::erased::all(&world).len();
        has_left |= left > 0;
        let done = alf::purge(&world.session, &PurgeScope::Agent, &options(), &Monitor::default());
        // Before anything is written, there is no agent.
        assert!(done.is_ok() || left == 0, "{last} of {count}: {done:?}");
        std::fs::remove_file(path).unwrap();
        assert!(crate::erased::all(&world).is_empty());
        assert_gone(&world);
    }
    assert!(has_left);
}

#[test]
fn a_file_that_may_not_be_listed_is_not_stored() {
    let world = World::new();
    world.import_made(&running(vec![record(1, "2026-07-02T00:00:00Z")]).file("raw/x/a.md", b"a"));
    let is_list = |stored: &grainstore::StoredGrain| {
        let grain = stored.grain().unwrap();
        let context = grain.map("context").cloned().unwrap_or_default();
        context.get("alf:layer").and_then(|layer| layer.as_str()) == Some("files")
    };
    let list = crate::erased::all(&world).into_iter().find(is_list).unwrap().address;
    world.session.hold(&list, "case 12").unwrap();
    let made = running(vec![record(1, "2026-07-02T00:00:00Z")]);
    let path = made.file("raw/x/b.md", SECRET.as_bytes()).write(world.dir.path(), "in.alf");
    let refused = alf::import(&world.session, &path, &Default::default(), &Monitor::default());
    assert_eq!(refused.unwrap_err().code(), "ERR_INVALIDATION_DENIED");
    std::fs::remove_file(path).unwrap();
    assert_gone(&world);
}

#[test]
fn a_change_of_a_change_of_what_was_purged_stays_out_whenever_it_comes() {
    let world = World::new();
    world.import_made(&running(vec![record(1, "2026-07-02T00:00:00Z")]));
    purge(&world, &[1], &options()).unwrap();
    let change = |number: u32, of: u32| {
        let time = "2026-07-03T00:00:00Z";
        with(record(number, time), json!({"x_change_of": id(of), "supersedes": id(of)}))
    };
    for (number, of) in [(11, 1), (12, 11), (13, 12)] {
        let made = running(vec![change(number, of)]);
        let report =
            world.import_with(&made.write(world.dir.path(), "in.alf"), &ImportOptions::default());
        assert_eq!((report.records.created, report.records.failed), (0, 1), "{number}");
    }
}

#[test]
fn an_archive_of_a_person_has_no_file_of_somebody_else() {
    let world = World::new();
    let mut hers = record(1, "2026-07-01T00:00:00Z");
    hers["namespace"] = json!(format!("principal_context:{PERSON}"));
    let attachment = |number: u32, path: &str, of: u32, bytes: &[u8]| {
        json!({
            "id": id(number), "filename": "a", "media_type": "text/plain", "size_bytes": bytes.len(),
            "hash": {"algorithm": "sha256", "value": sha256(bytes)}, "source_path": "a",
            "archive_path": path, "remote_ref": null, "referenced_by": [id(of)],
        })
    };
    let (shared, raw, own) = (b"of both", b"of bob", b"her own");
    let mut made = running(vec![hers, record(2, "2026-07-01T00:00:00Z")])
        .layer("attachments", json!({"attachments": [
            attachment(40, "artifacts/shared", 1, shared), attachment(41, "artifacts/shared", 2, shared),
            attachment(42, "raw/openclaw/bob.md", 1, raw), attachment(43, "artifacts/own", 1, own),
        ]}))
        .file("artifacts/shared", shared)
        .file("raw/openclaw/bob.md", raw)
        .file("artifacts/own", own);
    made.manifest["agent"]["x_contacts"] = json!(["bob"]);
    world.import_made(&made);
    let path = world.dir.path().join("person.alf");
    let export = |person: &str| {
        let of_user = Some(person.to_owned());
        let options = ExportOptions { of_user, ..ExportOptions::default() };
        alf::export(&world.session, &path, &options, &Monitor::default())
    };
    export(&PERSON.to_uppercase()).unwrap();
    let out = read(&path);
    assert_eq!(out.files.keys().collect::<Vec<_>>(), ["artifacts/own"]);
    assert_eq!(out.manifest["agent"].get("x_contacts"), None);
    // What is in it goes with the person, and nothing else does.
    let scope = PurgeScope::User(PERSON.to_owned());
    let done = alf::purge(&world.session, &scope, &options(), &Monitor::default()).unwrap();
    assert_eq!(done.raw_files_affected, ["artifacts/own"]);
    let left = world.export().0.files;
    assert_eq!(left.keys().collect::<Vec<_>>(), ["artifacts/shared", "raw/openclaw/bob.md"]);
    // Only UUIDs are one in either case.
    let grain = |user: &str| {
        BeliefBuilder::new(world.session.now(), user, "likes", "tea", 0.5).user_id(user).build()
    };
    for user in ["ann", "ANN"] {
        world.session.put(grain(user).unwrap()).unwrap();
    }
    let all = ExportOptions { native: true, ..ExportOptions::default() };
    alf::export(&world.session, world.dir.path().join("all.alf"), &all, &Monitor::default())
        .unwrap();
    assert_eq!(export("ann").unwrap().records, 1);
    let scope = PurgeScope::User("ann".to_owned());
    let done = alf::purge(&world.session, &scope, &options(), &Monitor::default()).unwrap();
    assert_eq!(done.records_removed, 1);
    assert_eq!(export("ANN").unwrap().records, 1);
}

#[test]
fn documents_that_an_agent_wrote_past_the_checks_neither_leave_nor_stop_an_export() {
    let world = World::new();
    let made = running(vec![record(1, "2026-07-02T00:00:00Z")])
        .layer("identity", identity(1))
        .layer("credentials", json!({"credentials": [credential(30)]}));
    let path = made.write(world.dir.path(), "in.alf");
    world.import(&path);
    let before = world.export().0;
    let mut plain = credential(30);
    plain["password"] = json!("hunter2-SECRET");
    let agent = world.session.part(SessionOptions {
        actor: Some("did:key:agent".to_owned()),
        ..SessionOptions::default()
    });
    for stored in crate::erased::all(&world) {
        let grain = stored.grain().unwrap();
        let context = grain.map("context").cloned().unwrap_or_default();
        let Some(layer) = context.get("alf:layer").and_then(|layer| layer.as_str()) else {
            continue;
        };
        let text = match layer {
            "credential" => plain.to_string(),
            _ => "{".to_owned(),
        };
        let mut fields = grain.into_fields();
        let mut context = context.clone();
        context.remove("alf:spill");
        context.insert("alf:json".to_owned(), text.as_str().into());
        fields.insert("context".to_owned(), grainstore::format::Value::Map(context));
        fields.remove("content_refs");
        let forged = Grain::from_fields(fields).unwrap();
        agent.supersede(&stored.address, forged, Some("forged")).unwrap();
    }
    let after = world.export().0;
    assert_eq!(after.documents, before.documents);
    assert!(!after.documents["credentials.json"].to_string().contains("hunter2"));
    // The next import writes what is good again.
    world.import(&path);
    purge(&world, &[1], &options()).unwrap();
    assert_eq!(world.export().0.documents, before.documents);
}
