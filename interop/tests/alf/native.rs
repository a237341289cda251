//! Grains that were not born as memory records leave as records, and come back as the same grains.

use grainstore::QueryMatch;
use grainstore::VerificationStatus::Retracted;
use grainstore::cal::{Query, Visibility};
use grainstore::format::{GrainType, SigningKey, sign};
use grainstore::prelude::*;
use grainstore_interop::Monitor;
use grainstore_interop::alf::{self, ExportOptions};
use grainstore_interop::archive::Limits;
use serde_json::json;

use crate::kit::*;
use crate::round_trip::assert_same;

fn grain(members: &str) -> Grain {
    Grain::from_json(&format!(r#"{{{members}, "created_at": "2026-07-15T10:00:00Z"}}"#)).unwrap()
}

/// A store with grains of all kinds: superseded, retracted, signed, related.
fn grown() -> World {
    let world = World::new();
    let session = &world.session;
    let likes = |drink: &str| {
        grain(&format!(
            r#""type": "belief", "subject": "ann", "relation": "mg:prefers", "object": "{drink}",
            "confidence": 0.5, "namespace": "work", "structural_tags": ["a"], "user_id": "ann""#
        ))
    };
    let tea = session.put(likes("tea")).unwrap().address();
    session.supersede(&tea, likes("coffee"), Some("she said so")).unwrap();
    let mistake =
        session.put(grain(r#""type": "event", "content": "a mistake""#)).unwrap().address();
    session.set_verification(&mistake, Retracted, "wrong", None).unwrap();
    for members in [
        r#""type": "workflow", "trigger": "ship it", "steps": ["test", "push"]"#,
        r#""type": "goal", "description": "win", "goal_state": "active""#,
        r#""type": "observation", "observer_id": "eye", "observer_type": "camera", "subject": "a", "relation": "b", "object": "c""#,
        r#""type": "state", "context": {"a": [1.5, "é"]}, "timestamp_ms": "2026-07-14T10:00:00.5Z""#,
        &format!(
            r#""type": "event", "content": "related", "related_to": [{{"hash": "{tea}", "relation_type": "elaborates"}}]"#
        ),
    ] {
        session.put(grain(members)).unwrap();
    }
    let key = SigningKey::ed25519_from_seed(&[7; 32]);
    let signed =
        EventBuilder::new(session.now(), "signed").author_did(key.did().as_str()).build().unwrap();
    let blob = signed.encode(Default::default()).unwrap();
    session.put(sign(blob.bytes(), &key, None).unwrap()).unwrap();
    world
}

fn export(world: &World) -> Read {
    let path = world.dir.path().join("out.alf");
    let options = ExportOptions {
        agent_id: Some(AGENT.to_owned()),
        agent_name: Some("Ada".to_owned()),
        native: true,
        ..ExportOptions::default()
    };
    alf::export(&world.session, &path, &options, &Monitor::default()).unwrap();
    let found = alf::validate(&path, Limits::default(), &Monitor::default()).unwrap();
    assert!(found.valid, "{found:?}");
    read(&path)
}

/// The addresses of the grains that are no documents, with whether each is current.
fn addresses(world: &World) -> Vec<(ContentAddress, bool)> {
    let all = Query::default().seeing(Visibility::EVERYTHING);
    let found = world.session.query(&all, &PageOptions::first(100)).unwrap().results;
    let own = found.iter().filter(|row| {
        let context = row.grain.map("context");
        !context.is_some_and(|context| context.keys().any(|key| key.starts_with("alf:")))
    });
    let mut own: Vec<_> = own.map(|row| (row.content_address, row.state.is_current())).collect();
    own.sort_unstable();
    own
}

#[test]
fn native_grains_come_back_byte_for_byte_with_signature_and_lineage() {
    let one = grown();
    let out = export(&one);
    assert_eq!(out.records.len(), 9);
    let coffee =
        out.records.values().find(|record| record["content"] == "ann mg:prefers coffee").unwrap();
    let tea = &out.records[coffee["supersedes"].as_str().unwrap()];
    assert_eq!((&tea["status"], &tea["memory_type"]), (&json!("superseded"), &json!("preference")));
    let related = out.records.values().find(|record| record["content"] == "related").unwrap();
    assert_eq!(related["related_records"], json!([{"id": tea["id"], "relation": "elaborates_on"}]));
    let other = World::new();
    other.import(&one.dir.path().join("out.alf"));
    assert_eq!(addresses(&one), addresses(&other));
    for (address, _) in addresses(&one) {
        let [one, other] = [&one, &other].map(|world| world.session.get(&address).unwrap());
        assert_eq!(
            one.envelope.map(grainstore::format::Envelope::into_bytes),
            other.envelope.map(grainstore::format::Envelope::into_bytes)
        );
    }
    for grains in ["beliefs", "events", "goals"] {
        assert_eq!(one.assembled(grains), other.assembled(grains));
    }
    assert_same(&out, &export(&one));
    assert_same(&out, &export(&other));
    one.verify();
    other.verify();
}

#[test]
fn a_record_of_a_native_grain_that_somebody_changed_takes_its_place() {
    let world = grown();
    let out = export(&world);
    let goal = out.records.values().find(|record| record["content"] == "win").unwrap();
    let coffee =
        out.records.values().find(|record| record["content"] == "ann mg:prefers coffee").unwrap();
    let changed = [
        with(goal.clone(), json!({"content": "win twice"})),
        with(coffee.clone(), json!({"content": "tea again"})),
    ];
    world.import_made(&Made::of(vec![("2026-Q3", changed.to_vec())]));
    let after = export(&world);
    for changed in changed {
        assert_eq!(after.records[changed["id"].as_str().unwrap()]["content"], changed["content"]);
    }
    let text = [world.assembled("beliefs"), world.assembled("goals")].concat();
    assert!(
        text.contains("tea again") && text.contains("win twice") && !text.contains("coffee"),
        "{text}"
    );
    world.verify();
}

#[test]
fn a_carried_grain_is_no_way_past_a_hold_openly_or_in_disguise() {
    let one = grown();
    let out = export(&one);
    let of = |content: &str| {
        out.records.values().find(|record| record["content"] == content).unwrap().clone()
    };
    let [tea, coffee] = ["ann mg:prefers tea", "ann mg:prefers coffee"].map(of);
    // The record does not say what the grain in it is the successor of, and its hash is made to fit.
    let mut disguised = coffee.clone();
    disguised.as_object_mut().unwrap().remove("supersedes");
    let mut view = disguised.clone();
    for name in ["raw_source_format", "status"] {
        view.as_object_mut().unwrap().remove(name);
    }
    let view = grainstore_interop::json::canonical(&view).unwrap();
    disguised["raw_source_format"]["view_sha256"] = json!(sha256(view.as_bytes()));
    for (what, record, failed) in [("openly", coffee, 1), ("in disguise", disguised, 0)] {
        let world = World::new();
        let mut tea = tea.clone();
        tea["status"] = json!("active");
        world.import_made(&Made::of(vec![("2026-Q3", vec![tea])]));
        let found = world.session.query(&Query::default(), &PageOptions::first(9)).unwrap().results;
        let held = found
            .iter()
            .find(|row| row.grain.text("object") == Some("tea"))
            .unwrap()
            .content_address;
        world.session.hold(&held, "case 12").unwrap();
        let path = Made::of(vec![("2026-Q3", vec![record])]).write(world.dir.path(), "in.alf");
        let report = world.import_with(&path, &alf::ImportOptions::default());
        assert_eq!(report.records.failed, failed, "{what}: {report:?}");
        let state = world.session.inspect(&held).unwrap().state;
        assert!(state.held && state.is_current(), "{what}");
        world.verify();
    }
}

#[test]
fn what_took_the_place_of_a_record_is_in_every_export() {
    let world = World::new();
    let first = with(record(1, "2026-07-01T00:00:00Z"), json!({"content": "Prefers tea"}));
    world.import_made(&Made::of(vec![("2026-Q3", vec![first])]));
    let session = &world.session;
    let beliefs = |session: &Session| {
        let found = session.query(&Query::default(), &PageOptions::first(9)).unwrap();
        let is_belief = |row: &QueryMatch| row.grain.grain_type() == GrainType::Belief;
        found.results.into_iter().filter(is_belief).collect::<Vec<_>>()
    };
    let mut newest = beliefs(session)[0].content_address;
    let likes = |drink: &str| {
        let object = format!("Prefers {drink}");
        BeliefBuilder::new(session.now(), "ann", "mg:knows", object, 0.5).build().unwrap()
    };
    for drink in ["coffee", "water"] {
        newest = session.supersede(&newest, likes(drink), None).unwrap();
    }
    // What took nobody's place is not.
    session.put(likes("milk")).unwrap();
    let (out, report) = world.export();
    assert_eq!((report.records, report.native_left_out), (3, 1));
    let of = |content: &str| {
        let found = out
            .records
            .values()
            .find(|record| record["content"].as_str().unwrap().contains(content));
        found.unwrap_or_else(|| panic!("{content}: {out:?}"))
    };
    let [tea, coffee, water] = ["tea", "coffee", "water"].map(of);
    assert_eq!((&tea["status"], &tea["id"]), (&json!("superseded"), &coffee["supersedes"]));
    assert_eq!((&coffee["status"], &coffee["id"]), (&json!("superseded"), &water["supersedes"]));
    assert_eq!(water["status"], "active");
    assert_eq!(world.export().0.records, out.records);

    let other = World::new();
    other.import(&world.dir.path().join("out.alf"));
    let current = beliefs(&other.session);
    let texts: Vec<_> = current.iter().map(|row| row.grain.text("object")).collect();
    assert_eq!(texts, [Some("Prefers water")]);
    assert_eq!(other.session.history(&current[0].content_address).unwrap().len(), 3);
    assert_eq!(other.export().0.records, out.records);
}
