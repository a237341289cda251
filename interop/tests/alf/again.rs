//! What came before comes again: what was taken back, what changed and changed back, what was interrupted.

use grainstore::VerificationStatus::Retracted;
use grainstore::cal::{CancelHandle, Query, Visibility};
use grainstore::prelude::*;
use grainstore::{Offer, StoredGrain};
use grainstore_interop::Monitor;
use grainstore_interop::alf::{
    self, DeltaOptions, ImportMode, ImportOptions, PurgeOptions, PurgeReason, PurgeScope,
};
use grainstore_interop::archive::Limits;
use grainstore_interop::json::Value;
use serde_json::json;

use crate::cut_off::{Watched, export, import, reopened};
use crate::kit::*;
use crate::round_trip::assert_same;

fn mirror(world: &World, made: &Made) -> alf::ImportReport {
    let path = made.write(world.dir.path(), "mirror.alf");
    let options = ImportOptions { mode: ImportMode::Mirror, ..ImportOptions::default() };
    let report = world.import_with(&path, &options);
    assert_eq!(report.errors, []);
    report
}

/// All grains that the entry of `context` says this of, the newest last.
fn grains(session: &Session, key: &str, value: &str) -> Vec<StoredGrain> {
    let all = Query::default().seeing(Visibility::EVERYTHING);
    let found = session.query(&all, &PageOptions::first(1_000)).unwrap().results;
    let is_it = |grain: &Grain| {
        let context = grain.map("context");
        context.and_then(|context| context.get(key)?.as_str()) == Some(value)
    };
    let found = found.iter().filter(|row| is_it(&row.grain));
    let mut found: Vec<_> =
        found.map(|row| session.inspect(&row.content_address).unwrap()).collect();
    found.sort_by_key(|stored| stored.state.superseded_by.is_none());
    found
}

fn without_layers(made: &Made, names: &[&str]) -> Made {
    let mut made = made.clone();
    for name in names {
        made = made.without(&format!("{name}.json"));
        made.manifest["layers"].as_object_mut().unwrap().remove(*name);
    }
    made
}

#[test]
fn a_document_that_was_taken_back_and_comes_again_is_there() {
    let world = World::new();
    world.import_made(&rich());
    let (before, _) = world.export();
    let less = without_layers(&rich(), &["credentials", "identity"]).layer(
        "principals",
        json!({"x": 1, "principals": [serde_json::from_slice::<Value>(&rich().entries["principals.json"]).unwrap()["principals"][0]]}),
    );
    for _ in 0..3 {
        let report = mirror(&world, &less);
        assert_eq!(report.layers["credentials"].removed, 3);
        let (out, _) = world.export();
        assert_eq!(
            out.documents.keys().collect::<Vec<_>>(),
            ["attachments.json", "principals.json"]
        );
        assert_eq!(out.documents["principals.json"]["principals"].as_array().unwrap().len(), 1);
        let report = mirror(&world, &rich());
        assert_eq!(
            (report.layers["credentials"].created, report.layers["identity"].created),
            (2, 1)
        );
        assert_same(&normal(before.clone()), &normal(world.export().0));
    }
    world.verify();
}

/// An archive without its number.
pub(crate) fn normal(mut read: Read) -> Read {
    read.manifest["sync"] = json!({});
    read
}

#[test]
fn a_purge_of_the_agent_finds_documents_that_were_taken_back() {
    let world = World::new();
    world.import_made(&rich());
    mirror(&world, &without_layers(&rich(), &["credentials", "identity", "principals"]));
    let reason = PurgeOptions::new(PurgeReason::UserRequest, PERSON);
    alf::purge(&world.session, &PurgeScope::Agent, &reason, &Monitor::default()).unwrap();
    assert_eq!(grains(&world.session, "alf:agent_id", AGENT).len(), 0);
    assert_eq!(world.store.stats().unwrap().side_blobs, 0);
    world.verify();
}

fn one(record: Value) -> Made {
    Made::of(vec![("2026-Q3", vec![record])])
}

#[test]
fn a_record_that_changes_its_type_and_changes_back_is_recalled() {
    let world = World::new();
    let semantic = record(1, "2026-07-02T00:00:00Z");
    let episodic = with(semantic.clone(), json!({"memory_type": "episodic"}));
    for record in [&semantic, &episodic, &semantic, &episodic, &semantic] {
        world.import_made(&one(record.clone()));
        assert_eq!(world.export().0.records[&id(1)], *record);
        let is_event = record["memory_type"] == "episodic";
        assert_eq!(world.assembled("events").contains("memory 1"), is_event);
        assert_eq!(world.assembled("beliefs").contains("memory 1"), !is_event);
    }
    assert_eq!(grains(&world.session, "alf:id", &id(1)).len(), 5);
    purge_first(&world.session);
    world.verify();
}

#[test]
fn a_record_that_is_deleted_and_comes_back_is_recalled() {
    let world = World::new();
    let active = record(1, "2026-07-02T00:00:00Z");
    let deleted = with(active.clone(), json!({"status": "deleted"}));
    for record in [&active, &deleted, &active, &deleted, &active] {
        world.import_made(&one(record.clone()));
        assert_eq!(world.export().0.records[&id(1)], *record);
        let is_active = record["status"] == "active";
        assert_eq!(world.assembled("beliefs").contains("memory 1"), is_active, "{record}");
    }
    world.verify();
}

#[test]
fn a_record_says_again_what_it_said_before_somebody_else_took_its_place() {
    let world = World::new();
    let first = record(1, "2026-07-02T00:00:00Z");
    let second = with(first.clone(), json!({"content": "something else"}));
    world.import_made(&one(first.clone()));
    world.import_made(&one(second));
    let newest = grains(&world.session, "alf:id", &id(1)).pop().unwrap();
    let grain = newest.grain().unwrap();
    let subject = grain.text("subject").unwrap();
    let other = BeliefBuilder::new(world.session.now(), subject, "mg:knows", "newer", 0.5)
        .namespace(grain.text("namespace").unwrap());
    world.session.supersede(&newest.address, other.build().unwrap(), None).unwrap();
    let report = world.import_made(&one(first.clone()));
    assert!(report.warnings.iter().any(|issue| issue.message.contains("stands beside")));
    let text = world.assembled("beliefs");
    assert!(text.contains("memory 1") && text.contains("newer"), "{text}");
    assert_eq!(world.export().0.records[&id(1)], first);
    purge_first(&world.session);
    world.verify();
}

#[test]
fn a_grain_that_was_taken_back_without_the_agent_is_not_the_one_of_a_new_record() {
    let [world, other] = [World::new(), World::new()];
    other.import_made(&one(record(1, "2026-07-02T00:00:00Z")));
    let grain = grains(&other.session, "alf:id", &id(1)).pop().unwrap();
    world.session.put(Offer::Blob(grain.blob)).unwrap();
    world.session.set_verification(&grain.address, Retracted, "a mistake", None).unwrap();
    world.import_made(&one(record(1, "2026-07-02T00:00:00Z")));
    assert!(world.assembled("beliefs").contains("memory 1"));
    world.verify();
}

/// Does to `world` what an import of `made` does, up to the moment at which the grain with this entry of `context` has
/// taken the place of the one before, and nothing more was written.
fn crash_after_supersession(world: &World, made: &Made, key: &str, value: &str) {
    let twin = World::new();
    twin.import(&world.dir.path().join("in.alf"));
    let path = made.write(twin.dir.path(), "next.alf");
    twin.import(&path);
    let after = grains(&twin.session, key, value);
    assert_eq!(after.len(), 2);
    let (old, new) = (&after[0], &after[1]);
    assert_eq!(old.state.superseded_by, Some(new.address));
    world.session.supersede(&old.address, Offer::Blob(new.blob.clone()), None).unwrap();
}

/// The archive with another credential 30.
fn rotated(word: &str) -> Made {
    let other = with(credential(30), json!({"label": word}));
    rich().layer("credentials", json!({"credentials": [other, credential(31)]}))
}

#[test]
fn a_crash_while_a_document_is_replaced_leaves_one_that_can_be_read_and_the_next_import_completes_it()
 {
    for next in ["first", "second"] {
        let world = World::new();
        world.import_made(&rich());
        let (before, _) = world.export();
        crash_after_supersession(&world, &rotated("first"), "alf:item_id", &id(30));
        assert_same(&before, &world.export().0);
        let path = rotated(next).write(world.dir.path(), "next.alf");
        assert_eq!(world.import(&path).layers["credentials"].replaced, 1);
        assert_same(&normal(read(&path)), &normal(world.export().0));
        assert_eq!(world.import(&path).layers["credentials"].replaced, 0);
        world.verify();
    }
}

/// What imports leave of a record that are killed once its new version has taken the place of the one before, with the
/// record that each still has, or has already.
fn killed_while_replaced(next: &Value) -> (Watched, Vec<(Session, Value)>) {
    let watched = Watched::new();
    let path = one(first()).write(watched.dir.path(), "in.alf");
    import(&watched.session, &path);
    let path = one(next.clone()).write(watched.dir.path(), "next.alf");
    let sessions = watched.cut_off(&path).into_iter().map(|copy| reopened(&copy));
    let replaced = sessions.filter(|session| versions(session).len() == 2);
    let out = watched.dir.path().join("out.alf");
    let found: Vec<_> = replaced
        .map(|session| {
            let record = export(&session, &out).records[&id(1)].clone();
            (session, record)
        })
        .collect();
    assert!(found.iter().any(|(_, record)| *record == first()), "its row was not written");
    (watched, found)
}

fn first() -> Value {
    record(1, "2026-07-02T00:00:00Z")
}

/// The versions of the first record.
fn versions(session: &Session) -> Vec<StoredGrain> {
    grains(session, "alf:id", &id(1))
}

#[test]
fn a_crash_while_a_record_is_replaced_leaves_no_version_that_nobody_needs() {
    let long = |word: &str| {
        let numbers: Vec<String> =
            (0..300_000_u32).map(|at| at.wrapping_mul(2_654_435_761).to_string()).collect();
        let content = format!("{word} {}", numbers.join(" "));
        with(first(), json!({"content": content}))
    };
    for next in ["first", "second"] {
        let (watched, left) = killed_while_replaced(&long("first"));
        for (session, before) in left {
            assert!(before == first() || before == long("first"));
            let path = one(long(next)).write(watched.dir.path(), "again.alf");
            let report = import(&session, &path);
            let updated = u64::from(before != long(next));
            assert_eq!((report.records.updated, report.error_count), (updated, 0), "{next}");
            assert!(
                !report.warnings.iter().any(|issue| issue.message.contains("stands beside")),
                "{next}"
            );
            let out = watched.dir.path().join("out.alf");
            assert_eq!(export(&session, &out).records[&id(1)], long(next));
            let current = versions(&session).into_iter().filter(|one| one.state.is_current());
            assert_eq!(current.count(), 1);
            assert_eq!(session.store().verify(true).unwrap().problems, []);
        }
    }
}

#[test]
fn a_purge_finds_a_version_that_a_crash_left() {
    let next = with(first(), json!({"content": "something else"}));
    let (_watched, left) = killed_while_replaced(&next);
    for (session, _) in left {
        purge_first(&session);
        assert_eq!(session.store().verify(true).unwrap().problems, []);
    }
}

/// Purges the first record, of which nothing is left then.
fn purge_first(session: &Session) {
    let reason = PurgeOptions::new(PurgeReason::UserRequest, PERSON);
    let scope = PurgeScope::Records(vec![id(1)]);
    alf::purge(session, &scope, &reason, &Monitor::default()).unwrap();
    assert_eq!(grains(session, "alf:id", &id(1)).len(), 0);
}

/// A monitor that cancels at a step.
fn cancelled<T>(at: u64, work: impl Fn(&Monitor<'_>) -> T) -> T {
    let count = std::cell::Cell::new(0);
    let cancel = CancelHandle::default();
    let asked = cancel.clone();
    let progress = |_, _| {
        count.set(count.get() + 1);
        if count.get() == at {
            asked.cancel();
        }
    };
    work(&Monitor { progress: Some(&progress), cancel })
}

fn export_delta(world: &World, since: u64) -> Option<alf::DeltaReport> {
    let path = world.dir.path().join("a.alf-delta");
    let options = DeltaOptions { since, ..DeltaOptions::default() };
    let told = alf::export_delta(&world.session, &path, &options, &Monitor::default()).unwrap();
    if told.is_some() {
        let found = alf::validate(&path, Limits::default(), &Monitor::default()).unwrap();
        assert!(found.valid && found.warnings.iter().all(|issue| !issue.path.contains("_removed")));
    }
    told
}

fn apply(world: &World, from: &World) -> alf::ApplyReport {
    let path = from.dir.path().join("a.alf-delta");
    let options = ImportOptions::default();
    alf::apply_delta(&world.session, path, &options, &Monitor::default()).unwrap()
}

#[test]
fn a_delta_has_the_documents_and_files_of_an_import_that_was_cancelled() {
    let [world, other] = [World::new(), World::new()];
    world.import_made(&rich());
    world.export();
    other.import(&world.dir.path().join("out.alf"));
    let records = (0..600).map(|number| record(1_000 + number, "2026-08-01T00:00:00Z"));
    let mut made =
        rotated("new").layer("identity", identity(4)).file("raw/openclaw/new.md", b"new");
    made.partitions[2].1.extend(records);
    let path = made.write(world.dir.path(), "next.alf");
    // The last step is the 500th record, and one that is cancelled ends with the next.
    let steps = std::cell::Cell::new(0);
    let count = |_, _| steps.set(steps.get() + 1);
    let monitor = Monitor { progress: Some(&count), ..Monitor::default() };
    let dry = ImportOptions { dry_run: true, ..ImportOptions::default() };
    alf::import(&world.session, &path, &dry, &monitor).unwrap();
    let stopped = cancelled(steps.get() - 1, |monitor| {
        alf::import(&world.session, &path, &ImportOptions::default(), monitor)
    });
    assert_eq!(stopped.unwrap_err().code(), "ERR_TIMEOUT");
    world.import(&path);
    let told = export_delta(&world, 7).unwrap();
    assert_eq!((told.layers, told.files), (vec!["identity", "credentials"], 1));
    assert_eq!(apply(&other, &world).import.errors, []);
    assert_same(&world.export().0, &other.export().0);
}

#[test]
fn a_delta_has_the_layers_that_a_mirror_took_back() {
    let [world, other] = [World::new(), World::new()];
    world.import_made(&rich());
    world.export();
    other.import(&world.dir.path().join("out.alf"));
    mirror(&world, &without_layers(&rich(), &["credentials", "identity"]));
    let told = export_delta(&world, 7).unwrap();
    assert_eq!(told.layers, ["identity", "credentials"]);
    let applied = apply(&other, &world);
    assert_eq!(applied.import.layers["credentials"].removed, 3);
    assert_same(&world.export().0, &other.export().0);
    assert_eq!(other.export().0.documents.len(), 2);
    mirror(&world, &rich());
    export_delta(&world, 8).unwrap();
    apply(&other, &world);
    assert_same(&world.export().0, &other.export().0);
    assert_eq!(other.export().0.documents.len(), 4);
}
