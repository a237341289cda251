//! Records become grains and records again, equal in every member.

use grainstore::Grain;
use grainstore::format::{Encoding, GrainType};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::json::equal;

/// The record that the grain of a record gives back, through its bytes.
fn back(record: &Value) -> (Grain, Value) {
    let parts = Record::of(record.clone()).unwrap();
    let fields = fields_of(&parts.rest, &parts.rest, &AgentPrincipals::new()).unwrap();
    let blob = Grain::from_fields(fields).unwrap().encode(Encoding::MessagePack).unwrap();
    let grain = Grain::decode(blob.bytes()).unwrap();
    let rest = record_of(grain.fields()).unwrap();
    let whole = joined_record(rest, &parts.changing);
    (grain, whole)
}

fn plain() -> Value {
    json!({
        "id": "019470a0-0000-7000-8000-000000000001",
        "agent_id": "0a1b2c3d-0000-4000-8000-00000000000a",
        "content": "The sky is blue.",
        "memory_type": "semantic",
        "source": {"runtime": "openclaw", "extraction_method": "user_authored", "session_id": "s1"},
        "temporal": {"created_at": "2026-01-15T10:00:00Z"},
        "status": "active",
        "namespace": "default",
    })
}

/// The record with this member, or without it for null.
fn with(pointer: &[&str], value: Value) -> Value {
    let mut record = plain();
    let (last, above) = pointer.split_last().unwrap();
    let object = above.iter().fold(&mut record, |value, name| &mut value[*name]);
    object.as_object_mut().unwrap().insert((*last).to_owned(), value);
    record
}

#[test]
fn a_plain_record_needs_no_residue() {
    let mut full = plain();
    full["category"] = json!("core");
    full["confidence"] = json!(0.75);
    full["tags"] = json!(["a", "b"]);
    full["supersedes"] = json!("019470a0-0000-7000-8000-000000000002");
    full["entities"] = json!([{"name": "Ada", "type": "person"}]);
    full["related_records"] =
        json!([{"id": "019470a0-0000-7000-8000-000000000003", "relation": "x"}]);
    full["raw_source_format"] = json!({"é": [null, 1.5]});
    full["temporal"]["observed_at"] = json!("2026-01-15T09:59:59.123Z");
    full["temporal"]["valid_from"] = json!("2026-01-01T00:00:00Z");
    full["temporal"]["valid_until"] = json!("2027-01-01T00:00:00Z");
    for record in [plain(), full] {
        let (grain, whole) = back(&record);
        assert!(equal(&whole, &record), "{whole}");
        assert!(!grain.map("context").unwrap().contains_key("alf:residue"), "{grain:?}");
        assert_eq!(
            grain.text("namespace"),
            Some("agent:0a1b2c3d-0000-4000-8000-00000000000a:default")
        );
        assert_eq!(
            (grain.text("session_id"), grain.text("source_type")),
            (Some("s1"), Some("user_explicit"))
        );
    }
}

#[test]
fn each_type_of_memory_becomes_its_type_of_grain() {
    for (memory_type, grain_type, relation) in [
        ("semantic", GrainType::Belief, Some("mg:knows")),
        ("preference", GrainType::Belief, Some("mg:prefers")),
        ("summary", GrainType::Belief, Some("mg:knows")),
        ("episodic", GrainType::Event, None),
        ("procedural", GrainType::Workflow, None),
        ("dream", GrainType::Belief, Some("mg:knows")),
    ] {
        let record = with(&["memory_type"], json!(memory_type));
        let (grain, whole) = back(&record);
        assert_eq!((grain.grain_type(), grain.text("relation")), (grain_type, relation));
        assert!(equal(&whole, &record), "{whole}");
        assert_eq!(grain.int("consolidation_level"), (memory_type == "summary").then_some(1));
    }
}

#[test]
fn what_a_grain_cannot_say_is_in_the_residue() {
    let long = "é".repeat(10);
    for (pointer, value) in [
        (&["content"][..], json!("")),
        (&["content"], json!("\u{feff}e\u{301}")),
        (&["tags"], json!([])),
        (&["tags"], json!(["profile:alf"])),
        (&["tags"], json!(["phi:x", "sec:y", ""])),
        (&["confidence"], json!(0)),
        (&["confidence"], json!(1)),
        (&["category"], json!("")),
        (&["entities"], json!([])),
        (&["temporal", "created_at"], json!("2026-01-15T12:00:00.123456+02:00")),
        (&["temporal", "created_at"], json!("1492-10-12T00:00:00Z")),
        (&["temporal", "created_at"], json!("9999-12-31T23:59:59Z")),
        (&["temporal", "valid_until"], Value::Null),
        (&["temporal", "valid_until"], json!("9999-12-31T23:59:59Z")),
        (&["temporal", "observed_at"], json!("yesterday")),
        (&["temporal", "x_unknown"], json!({"a": [1]})),
        (&["source", "extraction_method"], json!("dreamt")),
        (&["source", "identity_version"], json!(3)),
        (&["source", "x"], json!(u64::MAX)),
        (&["namespace"], json!("principal_context:0A1b2c3d-0000-4000-8000-00000000000b")),
        (&["namespace"], json!("e\u{301}:\u{feff}")),
        (&["x_unknown"], json!({"e\u{301}": long})),
        (&["status"], json!("frozen")),
        (&["embeddings"], json!([{"model": "m", "vector": [0.1, 1e-300], "x": null}])),
        (&["supersedes"], json!("019470A0-0000-7000-8000-000000000002")),
    ] {
        let record = with(pointer, value);
        let (_, whole) = back(&record);
        assert!(equal(&whole, &record), "{whole}\n{record}");
    }
}

#[test]
fn what_is_remembered_of_a_person_is_theirs_and_of_an_agent_is_not() {
    let person = "0a1b2c3d-0000-4000-8000-00000000000b";
    let record = with(&["namespace"], json!(format!("principal_context:{person}")));
    let parts = Record::of(record).unwrap();
    for (agents, user) in [(vec![], Some(person)), (vec![person.to_owned()], None)] {
        let agents = agents.into_iter().collect();
        let fields = fields_of(&parts.rest, &parts.rest, &agents).unwrap();
        assert_eq!(fields.get("user_id").and_then(|user| user.as_str()), user);
        let subject = format!("principal:{person}");
        assert_eq!(fields["subject"].as_str(), Some(subject.as_str()));
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|x| if x.is_finite() { x.into() } else { Value::Null }),
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

/// Places of a record that take anything.
const POINTERS: [&[&str]; 22] = [
    &["agent_id"],
    &["content"],
    &["memory_type"],
    &["category"],
    &["source"],
    &["source", "origin"],
    &["source", "session_id"],
    &["temporal", "created_at"],
    &["temporal", "updated_at"],
    &["temporal", "observed_at"],
    &["temporal", "access_count"],
    &["temporal", "x"],
    &["status"],
    &["supersedes"],
    &["confidence"],
    &["entities"],
    &["tags"],
    &["namespace"],
    &["embeddings"],
    &["related_records"],
    &["raw_source_format"],
    &["x"],
];

proptest! {
    #[test]
    fn any_record_comes_back_equal(
        changes in prop::collection::vec((prop::sample::select(POINTERS.to_vec()), any_json()), 0..6),
        memory_type in prop::sample::select(vec!["semantic", "episodic", "procedural", "dream"]),
    ) {
        let mut record = with(&["memory_type"], json!(memory_type));
        for (pointer, value) in changes {
            let (last, above) = pointer.split_last().unwrap();
            let object = above.iter().fold(&mut record, |value, name| {
                if !value[*name].is_object() { value[*name] = json!({}); }
                &mut value[*name]
            });
            object.as_object_mut().unwrap().insert((*last).to_owned(), value);
        }
        let (_, whole) = back(&record);
        prop_assert!(equal(&whole, &record), "{}\n{}", whole, record);
    }
}
