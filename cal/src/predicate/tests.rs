//! Predicates made by hosts: their matches and their index lookups.

use grainstore_format::{
    ContentAddress, DeviceProfile, Encoding, Grain, GrainRef, GrainState, Value,
    VerificationStatus, parse_json,
};

use super::{Comparator, Lookup, Predicate};

const HASH: &str = "abababababababababababababababababababababababababababababababab";

fn address() -> ContentAddress {
    HASH.parse().unwrap()
}

fn matches(grain: &str, predicate: &Predicate) -> bool {
    let grain = Grain::from_json(grain).unwrap();
    let blob = grain.encode(Encoding::MessagePack).unwrap();
    predicate.matches(&GrainRef::new(blob.bytes()).unwrap(), &GrainState::default())
}

fn json(text: &str) -> Value {
    parse_json(text, &DeviceProfile::EXTENDED).unwrap()
}

fn belief(more: &str) -> String {
    format!(
        r#"{{"type": "belief", "subject": "s", "relation": "r", "object": "o", "confidence": 0.5,
            "created_at": 1000 {more}}}"#
    )
}

#[test]
fn fields_are_compared_by_their_names_in_cal() {
    use Comparator::{Equal, Greater, LessEqual, NotEqual};
    let goal = r#"{"type": "goal", "description": "d", "goal_state": "satisfied", "deadline": 5, "created_at": 1}"#;
    let consent = r#"{"type": "consent", "subject_did": "did:a", "grantee_did": "did:b", "scope": ["x"],
        "is_withdrawal": true, "prior_consent": "p", "created_at": 1}"#;
    let plain = belief("");
    let link = format!(r#", "parent_message_id": "sha256:{HASH}""#);
    let event = format!(r#"{{"type": "event", "content": "c", "created_at": 1 {link}}}"#);
    #[rustfmt::skip]
    let table = [
        (plain.as_str(), "subject", Equal, json("\"s\""), Some(true)),
        (&plain, "subject", NotEqual, json("\"s\""), Some(false)),
        (&plain, "confidence", LessEqual, json("0.5"), Some(true)),
        (&plain, "confidence", Greater, json("1"), Some(false)),
        (&plain, "recall_priority", Equal, json("\"warm\""), Some(true)),
        (&plain, "verification_status", Equal, json("\"unverified\""), Some(true)),
        (&plain, "namespace", Equal, json("\"shared\""), Some(true)),
        (&plain, "contradicted", Equal, json("true"), Some(false)),
        (goal, "goal_state", Equal, json("\"completed\""), Some(true)),
        (goal, "deadline", Equal, json("5"), Some(true)),
        (consent, "grantor_did", Equal, json("\"did:a\""), Some(true)),
        (consent, "consent_action", Equal, json("\"withdraw\""), Some(true)),
        (consent, "scope", Equal, json("\"x\""), Some(true)),
        (&event, "parent_message_id", Equal, Value::from(format!("sha256:{HASH}")), Some(true)),
        (&event, "parent_message_id", Equal, Value::from(HASH), Some(true)),
        // A condition that WHERE would refuse is `None`.
        (&plain, "subject", Greater, json("\"s\""), None),
        (&plain, "subject", Equal, json("1"), None),
        (&plain, "confidence", Equal, json("\"1\""), None),
        (&plain, "recall_priority", Equal, json("\"lukewarm\""), None),
        (&plain, "nothing", Equal, json("\"s\""), None),
        (&plain, "query", Equal, json("\"s\""), None),
        (&plain, "time", Equal, json("1000"), None),
        (&plain, "tags", Equal, json("\"x\""), None),
    ];
    for (grain, name, comparator, value, expected) in table {
        let predicate = Predicate::field(name, comparator, &value);
        let found = predicate.as_ref().map(|predicate| matches(grain, predicate));
        assert_eq!(found, expected, "{name} {comparator:?} {value:?}");
        assert!(predicate.is_none_or(|predicate| predicate.field_name() == name), "{name}");
    }
}

#[test]
fn a_map_object_equals_the_map_of_its_content_and_no_text() {
    let grain = r#"{"type": "belief", "subject": "s", "relation": "r", "object": {"a": 1, "b": {"c": "x"}},
        "confidence": 0.5, "created_at": 1}"#;
    for (object, expected) in [
        (json(r#"{"b": {"c": "x"}, "a": 1}"#), Some(true)),
        (json(r#"{"a": 1.0, "b": {"c": "x"}}"#), Some(false)),
        (json(r#"{"a": 1}"#), Some(false)),
        (json(r#""x""#), Some(false)),
        (json("1"), None),
    ] {
        let predicate = Predicate::object_is(object.clone());
        let found = predicate.map(|predicate| matches(grain, &predicate));
        assert_eq!(found, expected, "{object:?}");
    }
}

#[test]
fn links_are_found_by_kind_and_address() {
    let grain = belief(&format!(
        r#", "related_to": [{{"hash": "{HASH}", "relation_type": "refutes"}}], "derived_from": ["{HASH}"]"#
    ));
    let other: ContentAddress = "cd".repeat(32).parse().unwrap();
    #[rustfmt::skip]
    let table = [
        (Predicate::related(&["contradicts", "refutes"], &[other, address()]), true),
        (Predicate::related(&["supports"], &[address()]), false),
        (Predicate::related(&["refutes"], &[other]), false),
        (Predicate::names("derived_from", &[address()]), true),
        (Predicate::names("derived_from", &[other]), false),
        (Predicate::names("parent_message_id", &[address()]), false),
    ];
    for (predicate, expected) in table {
        assert_eq!(matches(&grain, &predicate), expected, "{predicate:?}");
    }
}

#[test]
fn indexes_are_told_what_every_match_has_and_nothing_else() {
    let text = |value: &str| Value::from(value);
    let (x, tags) = (vec!["x".to_owned(), "y".to_owned()], vec!["t".to_owned()]);
    let (digits, one) = (vec![HASH.to_owned()], vec!["x".to_owned()]);
    let map = json(r#"{"a": 1}"#);
    let field =
        |name, comparator, value: &Value| Predicate::field(name, comparator, value).unwrap();
    let domain = |comparator, value: &Value| Predicate::domain("hc:x", comparator, value).unwrap();
    use Comparator::{Equal, Greater, NotEqual};
    #[rustfmt::skip]
    let table = [
        (Predicate::text_is("subject", "x").unwrap(), Some(Lookup::Text { field: "subject", value: "x" })),
        (field("reasoning_type", Equal, &text("x")), Some(Lookup::Text { field: "inference_method", value: "x" })),
        (field("goal_state", Equal, &text("completed")), Some(Lookup::Text { field: "goal_state", value: "satisfied" })),
        (Predicate::field_in("subject", x.clone()).unwrap(), Some(Lookup::OneOf { field: "subject", values: &x })),
        (Predicate::field_in("depends_on", vec![format!("sha256:{HASH}")]).unwrap(), Some(Lookup::Address { field: "depends_on", digits: &digits })),
        (Predicate::names("derived_from", &[address()]), Some(Lookup::Address { field: "derived_from", digits: &digits })),
        (Predicate::related(&["refutes"], &[address()]), Some(Lookup::Address { field: "related_to", digits: &digits })),
        (Predicate::tags_include(tags.clone()), Some(Lookup::Tags(&tags))),
        (Predicate::object_is(map.clone()).unwrap(), Some(Lookup::ObjectMap(&map))),
        (domain(Equal, &text("x")), Some(Lookup::Domain { name: "hc:x", values: &one })),
        (Predicate::domain_in("hc:x", vec![text("x"), text("y")]), Some(Lookup::Domain { name: "hc:x", values: &x })),
        (Predicate::verification_status(VerificationStatus::Contested), Some(Lookup::Status(VerificationStatus::Contested))),
        (field("namespace", Equal, &text("x")), Some(Lookup::Namespace("x"))),
        (field("subject", NotEqual, &text("x")), None),
        (field("confidence", Greater, &json("0.5")), None),
        (field("recall_priority", Equal, &text("hot")), None),
        (field("contradicted", Equal, &Value::from(true)), None),
        (Predicate::tags_include(Vec::new()), None),
        (Predicate::tags_exclude(tags.clone()), None),
        (domain(NotEqual, &text("x")), None),
        (domain(Equal, &json("5")), None),
        (Predicate::domain_in("hc:x", vec![text("x"), json("5")]), None),
    ];
    for (predicate, expected) in &table {
        assert_eq!(predicate.lookup(), *expected, "{predicate:?}");
    }
}

#[test]
fn a_condition_on_a_name_that_is_no_text_field_is_refused() {
    for name in ["subject", "object", "user_id", "content", "parent_message_id", "goal_state"] {
        assert!(Predicate::text_is(name, "x").is_ok(), "{name}");
        assert!(Predicate::text_in(name, Vec::new()).is_ok(), "{name}");
    }
    for name in ["subjcet", "s", "", "confidence", "derived_from", "structural_tags", "Subject"] {
        let refused = Predicate::text_is(name, "x").unwrap_err();
        assert_eq!(refused.code(), "CAL-E004", "{name}");
        assert_eq!(Predicate::text_in(name, Vec::new()).unwrap_err().code(), "CAL-E004", "{name}");
    }
}
