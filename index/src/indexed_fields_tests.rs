//! Tests of the indexed fields of a grain, in both encodings.

use grainstore_format::Grain;

use super::*;

/// Checks the fields of a grain in both encodings.
fn check(json: &str, expected: &IndexedFields<'_>) {
    for encoding in [Encoding::MessagePack, Encoding::Cbor] {
        let blob = Grain::from_json(json).unwrap().encode(encoding).unwrap();
        let grain = GrainRef::new(blob.bytes()).unwrap();
        let mut facts = IndexedFields::from_grain(&grain);
        facts.values.sort_unstable();
        let mut expected = expected.clone();
        expected.values.sort_unstable();
        assert_eq!(facts, expected, "{encoding:?} {json}");
    }
}

fn belief(time: i64) -> IndexedFields<'static> {
    IndexedFields::new(TermValue::Plain("shared"), GrainType::Belief, EpochMs::new(time))
}

/// A belief in JSON with these fields.
fn json(fields: &str) -> String {
    format!(r#"{{"type": "belief", "confidence": 0.9, "created_at": 1, {fields}}}"#)
}

/// A triple, which every belief must have.
const TRIPLE: &str = r#""subject": "s", "relation": "r", "object": "o""#;

fn triple() -> IndexedFields<'static> {
    let mut facts = belief(1);
    facts.subject = Some(TermValue::Plain("s"));
    facts.relation = Some(TermValue::Plain("r"));
    facts.set_object(Object::Text(TermValue::Plain("o")));
    facts
}

#[test]
fn place_type_time_and_triple_are_read() {
    let mut full = IndexedFields::new(TermValue::Plain("a:b"), GrainType::Belief, EpochMs::new(5));
    full.subject = Some(TermValue::Plain("alice"));
    full.relation = Some(TermValue::Plain("prefers"));
    full.set_object(Object::Text(TermValue::Plain("dark mode")));
    check(
        r#"{"type": "belief", "subject": "alice", "relation": "prefers", "object": "dark mode",
            "confidence": 0.9, "created_at": 1768471200000, "timestamp_ms": 5,
            "namespace": "a:b"}"#,
        &full,
    );
    let time = EpochMs::new(1_768_471_200_000);
    let bare = IndexedFields::new(TermValue::Plain("shared"), GrainType::Event, time);
    check(r#"{"type": "event", "content": "hello", "created_at": 1768471200000}"#, &bare);
}

#[test]
fn every_field_of_values_is_read() {
    let hash = "ab".repeat(32);
    let fields = format!(
        r#"{TRIPLE}, "structural_tags": ["ui", "taste"], "user_id": "u", "session_id": "n",
           "run_id": "r1", "parent_message_id": "sha256:m", "processing_basis": "consent",
           "derived_from": ["{hash}"],
           "related_to": [{{"hash": "{hash}", "relation_type": "supports"}}],
           "depends_on": ["sha256:{hash}"], "premises": ["p1", "p2"]"#
    );
    let mut expected = triple();
    for (field, text) in [
        (Field::Tag, "ui"),
        (Field::Tag, "taste"),
        (Field::User, "u"),
        (Field::Session, "n"),
        (Field::Run, "r1"),
        (Field::Parent, "m"),
        (Field::Basis, "consent"),
        (Field::Derived, hash.as_str()),
        (Field::Related, hash.as_str()),
        (Field::Depends, hash.as_str()),
        (Field::Premise, "p1"),
        (Field::Premise, "p2"),
    ] {
        expected.add(field, TermValue::Plain(text));
    }
    check(&json(&fields), &expected);
}

#[test]
fn a_map_object_is_its_hash_and_its_strings() {
    let object = r#"{"name": "x", "n": 1, "deep": {"list": ["y", {"z": "x"}, 2, null]}}"#;
    let grain =
        Grain::from_json(&json(&format!(r#""subject": "s", "relation": "r", "object": {object}"#)));
    let hash = object_hash(grain.unwrap().get("object").unwrap());
    let mut expected = triple();
    expected.set_object(Object::Map(hash));
    for leaf in ["x", "y", "x"] {
        expected.add(Field::ObjectLeaf, TermValue::Plain(leaf));
    }
    check(&json(&format!(r#""subject": "s", "relation": "r", "object": {object}"#)), &expected);
    assert_ne!(expected.object, triple().object);
}

#[test]
fn domain_fields_are_read_in_context_and_at_the_top() {
    let mut expected = triple();
    for (name, text) in [
        ("hc:patient_id", "p"),
        ("hc:n", "5"),
        ("fin:x", "2.5"),
        ("int:b", "true"),
        ("legal:top", "t"),
        ("rob:n", "-3"),
    ] {
        expected.add(Field::Domain(name), TermValue::Plain(text));
    }
    let fields = format!(
        r#"{TRIPLE}, "context": {{"hc:patient_id": "p", "hc:n": 5.0, "fin:x": 2.5, "int:b": true,
            "other": "no", "hcx": "no", "sci:list": ["no"]}},
           "legal:top": "t", "rob:n": -3, "x_other": "no", "con:map": {{"a": "no"}}"#
    );
    check(&json(&fields), &expected);
}

#[test]
fn values_of_a_wrong_kind_are_left_out() {
    let citation = r#"{"citation_type": "doi", "identifier": "10.1/x"}"#;
    check(&json(&format!(r#"{TRIPLE}, "derived_from": [{citation}]"#)), &triple());
}

#[test]
fn a_grain_that_has_to_be_kept_is_found_by_its_user() {
    for (more, user) in [
        (r#""retention_policy": {"minimum_retention_years": 5}, "user_id": "u""#, "u"),
        (r#""retention_policy": {}"#, ""),
        (
            r#""invalidation_policy": {"mode": "timed", "locked_until": 5, "fallback_mode": "hold"}"#,
            "",
        ),
    ] {
        let mut expected = triple();
        if !user.is_empty() {
            expected.add(Field::User, TermValue::Plain(user));
        }
        expected.add(Field::Retained, TermValue::Plain(user));
        check(&json(&format!("{TRIPLE}, {more}")), &expected);
    }
    for more in [r#""fin:retention_years": 5"#, r#""context": {"fin:retention_years": 5}"#] {
        let mut expected = triple();
        expected.add(Field::Domain("fin:retention_years"), TermValue::Plain("5"));
        expected.add(Field::Retained, TermValue::Plain(""));
        check(&json(&format!("{TRIPLE}, {more}")), &expected);
    }
}
