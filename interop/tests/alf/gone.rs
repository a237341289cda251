//! What was erased in the store stays erased: an archive that has it brings back no record and no item, whatever bytes
//! their grains would have now.

use grainstore::EraseOptions;
use grainstore_interop::Monitor;
use grainstore_interop::alf::{self, ImportMode, ImportOptions};
use serde_json::{Value, json};

use crate::erased::{all, assert_gone, saying};
use crate::kit::*;
use crate::purge::SECRET;
use crate::vouched::running;

const TIME: &str = "2026-07-02T00:00:00Z";

fn secret(number: u32, more: Value) -> Value {
    with(with(record(number, TIME), json!({"content": SECRET})), more)
}

/// Erases every grain whose text has the secret, or one of these.
fn erase(world: &World, texts: &[&str]) {
    for stored in all(world) {
        let text = serde_json::to_string(&stored.grain().unwrap()).unwrap();
        if texts.iter().any(|said| text.contains(said)) {
            world.session.erase(&stored.address, "a test", &EraseOptions::new()).unwrap();
        }
    }
}

/// Imports archives one after the other, erases what says these texts, and imports the last again: it is refused.
fn comes_not_back(archives: &[Vec<Value>], texts: &[&str]) {
    comes_not_back_in(archives, archives.last().unwrap(), texts);
}

fn comes_not_back_in(archives: &[Vec<Value>], last: &[Value], texts: &[&str]) {
    for mode in [ImportMode::Merge, ImportMode::Mirror] {
        let world = World::new();
        for records in archives {
            world.import_made(&running(records.clone()));
        }
        erase(&world, texts);
        let path = running(last.to_vec()).write(world.dir.path(), "in.alf");
        let options = |dry_run| ImportOptions { mode, dry_run, ..ImportOptions::default() };
        for dry_run in [true, false, false] {
            let report = world.import_with(&path, &options(dry_run));
            assert!(report.records.failed > 0, "{report:?}");
            assert!(report.errors.iter().all(|it| it.message.contains("ERR_ERASED")), "{report:?}");
        }
        std::fs::remove_file(path).unwrap();
        assert_gone(&world);
        assert!(!world.assembled("beliefs").contains("4929"));
    }
}

#[test]
fn a_record_that_was_erased_with_the_one_it_superseded_stays_erased() {
    let records = vec![record(1, TIME), secret(2, json!({"supersedes": id(1)}))];
    comes_not_back(std::slice::from_ref(&records), &["memory 1", SECRET]);
    // Nor does it come alone.
    comes_not_back_in(
        &[records],
        &[secret(2, json!({"supersedes": id(1)}))],
        &["memory 1", SECRET],
    );
}

#[test]
fn a_record_that_named_what_the_store_has_since_stays_erased() {
    let links = json!({"related_records": [{"id": id(4), "relation": "related_to"}]});
    comes_not_back(&[vec![secret(3, links), record(4, TIME)]], &[SECRET]);
}

#[test]
fn a_changed_record_that_was_erased_in_all_versions_stays_erased() {
    comes_not_back(&[vec![record(1, TIME)], vec![secret(1, json!({}))]], &["memory 1", SECRET]);
}

#[test]
fn a_record_that_was_erased_stays_erased_with_other_members() {
    let vectors = json!({"embeddings": [{"model": "m", "dimensions": 2, "vector": [0.1, 0.2],
        "source": "runtime", "computed_at": TIME}]});
    let erased = [vec![secret(1, json!({}))]];
    comes_not_back_in(&erased, &[secret(1, vectors)], &[SECRET]);
    comes_not_back_in(&erased, &[secret(1, json!({"tags": ["seen"]}))], &[SECRET]);
    let change = secret(5, json!({"x_change_of": id(1), "supersedes": id(1)}));
    let again = secret(6, json!({"x_change_of": id(5), "supersedes": id(5)}));
    comes_not_back_in(&erased, &[again, change], &[SECRET]);
}

#[test]
fn a_former_version_that_was_erased_stays_erased() {
    let (first, second) = (vec![secret(1, json!({}))], vec![record(1, TIME)]);
    comes_not_back_in(&[first.clone(), second], &first, &[SECRET]);
}

#[test]
fn a_record_of_a_user_who_was_erased_stays_erased() {
    let theirs = json!({"namespace": format!("principal_context:{PERSON}")});
    let world = World::new();
    let first = with(record(1, TIME), theirs.clone());
    world.import_made(&running(vec![first]));
    let made = running(vec![secret(1, theirs)]);
    world.import_made(&made);
    world.session.erase_user(PERSON, "a test", &EraseOptions::new()).unwrap();
    let path = made.write(world.dir.path(), "in.alf");
    assert_eq!(world.import_with(&path, &ImportOptions::default()).records.failed, 1);
    std::fs::remove_file(path).unwrap();
    assert_gone(&world);
}

#[test]
fn what_was_erased_comes_again_where_that_is_meant() {
    let world = World::new();
    let made = running(vec![secret(1, json!({}))]);
    world.import_made(&made);
    erase(&world, &[SECRET]);
    let meant = ImportOptions { allow_purged: true, ..ImportOptions::default() };
    let path = made.write(world.dir.path(), "in.alf");
    assert_eq!(world.import_with(&path, &meant).records.created, 1);
    saying(&world, SECRET);
    assert_eq!(world.import(&path).records.unchanged, 1);
}

#[test]
fn a_grain_that_was_erased_does_not_come_back_in_a_changed_record() {
    let world = World::new();
    let native = grainstore::prelude::BeliefBuilder::new(
        world.session.now(),
        "ann",
        "mg:knows",
        SECRET,
        0.5,
    );
    world.session.put(native.build().unwrap()).unwrap();
    let path = world.dir.path().join("out.alf");
    let options = alf::ExportOptions {
        agent_id: Some(AGENT.to_owned()),
        agent_name: Some("Ada".to_owned()),
        native: true,
        ..alf::ExportOptions::default()
    };
    alf::export(&world.session, &path, &options, &Monitor::default()).unwrap();
    let mut record = read(&path).records.into_values().next().unwrap();
    record["tags"] = json!(["seen"]);
    erase(&world, &[SECRET]);
    std::fs::remove_file(&path).unwrap();
    let path = running(vec![record]).write(world.dir.path(), "in.alf");
    let report = world.import_with(&path, &ImportOptions::default());
    assert_eq!(report.records.failed, 1, "{report:?}");
    std::fs::remove_file(path).unwrap();
    assert_gone(&world);
}

/// An archive with documents whose texts have the secret.
fn documents(text: &str) -> Made {
    let principal = json!({"id": PERSON, "principal_type": "human", "agent_id": null, "profile": {
        "id": id(20), "agent_id": AGENT, "principal_id": PERSON, "version": 1, "updated_at": TIME,
        "structured": {"name": text}}});
    let mut identity = identity(1);
    identity["prose"]["soul"] = json!(text);
    running(vec![record(1, TIME)])
        .layer("identity", identity)
        .layer("principals", json!({"principals": [principal]}))
}

#[test]
fn documents_and_items_that_were_erased_stay_erased() {
    for both in [false, true] {
        let world = World::new();
        if both {
            world.import_made(&documents("told first"));
        }
        world.import_made(&documents(SECRET));
        erase(&world, &["told first", SECRET]);
        let path = documents(SECRET).write(world.dir.path(), "in.alf");
        for dry_run in [true, false] {
            let options = ImportOptions { dry_run, ..ImportOptions::default() };
            let report = world.import_with(&path, &options);
            assert_eq!(report.withheld, ["identity.json", "principals.json"], "{report:?}");
            assert_eq!((report.records.unchanged, report.records.failed), (1, 0));
            let changed = report.layers.values().any(|it| it.created + it.replaced > 0);
            assert!(!changed, "{report:?}");
        }
        let strict = ImportOptions { strict: true, ..ImportOptions::default() };
        let refused = alf::import(&world.session, &path, &strict, &Monitor::default());
        assert_eq!(refused.unwrap_err().code(), "ERR_ERASED");
        std::fs::remove_file(&path).unwrap();
        assert_gone(&world);
        // Another identity may come, and the same if that is meant.
        let mut other = documents("another");
        other = other.without("principals.json");
        other.manifest["layers"].as_object_mut().unwrap().remove("principals");
        world.import_made(&other);
        assert_eq!(world.export().0.documents["identity.json"]["prose"]["soul"], json!("another"));
        let path = documents(SECRET).write(world.dir.path(), "in.alf");
        let meant = ImportOptions {
            allow_purged: true,
            mode: ImportMode::Mirror,
            ..ImportOptions::default()
        };
        assert_eq!(world.import_with(&path, &meant).withheld, [""; 0]);
        let documents = world.export().0.documents;
        assert!(documents["principals.json"].to_string().contains("4929"));
        assert!(documents["identity.json"].to_string().contains("4929"));
    }
}

#[test]
fn a_former_version_of_a_document_that_was_erased_stays_erased() {
    let world = World::new();
    world.import_made(&documents(SECRET));
    world.import_made(&documents("harmless"));
    erase(&world, &[SECRET]);
    let path = documents(SECRET).write(world.dir.path(), "in.alf");
    let report = world.import_with(&path, &ImportOptions::default());
    assert_eq!(report.withheld, ["identity.json", "principals.json"], "{report:?}");
    std::fs::remove_file(path).unwrap();
    assert_gone(&world);
    assert!(world.export().0.documents["principals.json"].to_string().contains("harmless"));
}

#[test]
fn kept_bytes_of_a_sealed_partition_tell_nothing_of_what_was_erased() {
    let time = "2026-05-02T00:00:00Z";
    let sealed = |text: &str| {
        let first = with(record(1, time), json!({"content": text}));
        Made::of(vec![("2026-Q2", vec![first, record(2, time)])])
    };
    for exports_between in [false, true] {
        let world = World::new();
        world.import_made(&sealed(SECRET));
        erase(&world, &[SECRET]);
        if exports_between {
            assert_eq!(world.export().0.records.len(), 1);
        }
        // The same id comes again, with other words.
        let path = sealed("harmless").write(world.dir.path(), "in.alf");
        let meant = ImportOptions { allow_purged: true, ..ImportOptions::default() };
        assert_eq!(world.import_with(&path, &meant).records.created, 1);
        let (out, _) = world.export();
        assert_eq!(out.records.len(), 2);
        let told = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).contains("4929");
        assert!(!out.partitions.values().any(told), "{:?}", out.records);
        assert_eq!(world.export().0.partitions, out.partitions);
    }
}

/// What an import leaves that is cut off between grains and rows: the rows that lead to records and documents are not there.
fn cut_off(world: &World) {
    let application = format!("alf:{AGENT}");
    for table in [1_u8, 240] {
        let range = grainstore::RowRange::BytesAfter(None);
        let page = world.session.rows(&application, table, &range, 1000).unwrap();
        let remove = |row: &grainstore::ApplicationRow| {
            grainstore::RowChange::remove(application.as_str(), table, row.key.clone())
        };
        world.session.write_rows(page.rows.iter().map(remove)).unwrap();
    }
}

#[test]
fn what_an_import_that_was_cut_off_has_left_is_gone_on_from() {
    let at = |text: &str, kind: &str| {
        let first = with(record(1, TIME), json!({"content": text, "memory_type": kind}));
        let mut made = documents(text);
        made.partitions[0].1 = vec![first, record(2, TIME)];
        made
    };
    for (newer, kind) in [("newer", "semantic"), ("newer", "episodic"), ("older", "semantic")] {
        let world = World::new();
        world.import_made(&at("older", "semantic"));
        let grains = all(&world).len();
        cut_off(&world);
        let report = world.import_made(&at(newer, kind));
        assert_eq!(report.withheld, [""; 0]);
        let current: Vec<String> = all(&world)
            .iter()
            .filter(|stored| stored.state.is_current())
            .map(|stored| serde_json::to_string(&stored.grain().unwrap()).unwrap())
            .collect();
        let says = |text: &str| current.iter().filter(|grain| grain.contains(text)).count();
        assert_eq!((current.len(), says(newer)), (grains, 3), "{current:?}");
        let (out, _) = world.export();
        assert_eq!(out.records[&id(1)]["content"], json!(newer));
        assert_eq!(out.documents["identity.json"]["prose"]["soul"], json!(newer));
        world.verify();
    }
}

#[test]
fn what_was_left_by_an_import_that_was_cut_off_and_erased_stays_erased() {
    let world = World::new();
    let made = documents(SECRET);
    world.import_made(&made);
    cut_off(&world);
    erase(&world, &[SECRET, "memory 1"]);
    let path = made.write(world.dir.path(), "in.alf");
    let report = world.import_with(&path, &ImportOptions::default());
    assert_eq!(report.records.failed, 1, "{report:?}");
    assert_eq!(report.withheld, ["identity.json", "principals.json"]);
}

#[test]
fn bytes_of_a_sealed_partition_that_no_row_tells_of_are_kept_by_the_same_import() {
    // Not the bytes that an export would write.
    let line = record(1, "2026-05-02T00:00:00Z").to_string().replace("\",\"", "\", \"");
    let file = "memory/partitions/2026-Q2.jsonl";
    let mut made = Made::of(Vec::new()).file(file, line.as_bytes());
    made.manifest["layers"]["memory"] = json!({
        "record_count": 1, "index_file": "memory/index.json", "partitions": [{"file": file,
            "from": "2026-04-01", "to": "2026-06-30", "record_count": 1, "sealed": true}],
    });
    let world = World::new();
    let path = made.write_raw(world.dir.path(), "in.alf");
    world.import(&path);
    let application = format!("alf:{AGENT}");
    let remove = grainstore::RowChange::remove(application.as_str(), 5, "2026-Q2");
    world.session.write_rows([remove]).unwrap();
    world.import(&path);
    let (out, report) = world.export();
    assert_eq!(String::from_utf8_lossy(&out.partitions[file]), line);
    assert_eq!(report.replaced_partitions, [""; 0]);
    assert!(world.session.row(&application, 5, "2026-Q2").unwrap().is_some());
}

#[test]
fn the_profile_of_a_person_is_theirs_and_is_erased_with_them() {
    let world = World::new();
    let made = documents(SECRET);
    world.import_made(&made);
    let sees = |user: &str| {
        let options =
            grainstore::SessionOptions { user_id: Some(user.to_owned()), ..Default::default() };
        let session = world.session.part(options);
        let all = grainstore::cal::Query::default();
        let found = session.query(&all, &grainstore::PageOptions::first(100)).unwrap().results;
        let says = |row: &grainstore::QueryMatch| {
            let context = row.grain.map("context").and_then(|it| it.get("alf:layer")?.as_str());
            context == Some("principal")
        };
        found.iter().any(says)
    };
    assert!(sees(PERSON) && !sees("bob"));
    let report = world.session.subject_report(PERSON).unwrap();
    assert_eq!(report.addresses.len(), 1);
    world.session.erase_user(PERSON, "a test", &EraseOptions::new()).unwrap();
    erase(&world, &["4929"]);
    for upper in [false, true] {
        let mut again = made.clone().without("identity.json");
        again.manifest["layers"].as_object_mut().unwrap().remove("identity");
        if upper {
            let text = String::from_utf8(again.entries["principals.json"].clone()).unwrap();
            again = again
                .file("principals.json", text.replace(PERSON, &PERSON.to_uppercase()).as_bytes());
        }
        let path = again.write(world.dir.path(), "in.alf");
        assert_eq!(world.import(&path).withheld, ["principals.json"]);
        std::fs::remove_file(path).unwrap();
    }
    assert_gone(&world);
    // A principal that is an agent is nobody's.
    let agent = json!({"id": id(21), "principal_type": "agent", "profile": {
        "id": id(22), "agent_id": AGENT, "principal_id": id(21), "version": 1, "updated_at": TIME}});
    world.import_made(&running(vec![]).layer("principals", json!({"principals": [agent]})));
    assert!(world.session.subject_report(&id(21)).unwrap().addresses.is_empty());
}

#[test]
fn a_store_whose_rules_refuse_a_person_without_a_basis_takes_the_rest() {
    let world = World::with(
        grainstore::prelude::OpenOptions::new()
            .preset(grainstore::Preset::from_name("gdpr").unwrap()),
    );
    let mut made = documents("told");
    let hers = json!({"namespace": format!("principal_context:{PERSON}")});
    made.partitions[0].1.push(with(record(2, TIME), hers));
    let path = made.write(world.dir.path(), "in.alf");
    let report = world.import_with(&path, &ImportOptions::default());
    assert_eq!((report.records.created, report.records.failed), (1, 1), "{report:?}");
    assert_eq!(report.withheld, ["principals.json"]);
    assert!(report.warnings.iter().any(|it| it.message.contains("ERR_POLICY")), "{report:?}");
    assert!(world.export().0.documents.contains_key("identity.json"));
}

#[test]
fn a_version_that_was_of_a_person_and_was_purged_with_them_stays_away() {
    let world = World::new();
    let theirs = json!({"namespace": format!("principal_context:{PERSON}")});
    let before = running(vec![secret(1, theirs)]);
    world.import_made(&before);
    world.import_made(&running(vec![record(1, TIME)]));
    let scope = alf::PurgeScope::User(PERSON.to_owned());
    alf::purge(&world.session, &scope, &crate::purge::options(), &Monitor::default()).unwrap();
    let path = before.write(world.dir.path(), "in.alf");
    assert_eq!(world.import_with(&path, &ImportOptions::default()).records.failed, 1);
    std::fs::remove_file(path).unwrap();
    assert_gone(&world);
    assert_eq!(world.export().0.records[&id(1)]["content"], json!("memory 1"));
}
