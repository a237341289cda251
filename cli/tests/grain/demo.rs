//! `grain demo`: the week plays to its end, and what it prints is what the store says.

use std::fs;

use crate::kit::Place;

#[test]
fn the_context_is_on_stdout_and_the_story_on_stderr() {
    let place = Place::empty();
    let run = place.grain(&["demo"]).done();
    let sml = run.text();
    assert!(sml.starts_with("<context intent=\"") && sml.ends_with("\n</context>\n"), "{sml}");
    for expected in ["donors list", "subject=\"Clementine\"", "<goal ", "<event "] {
        assert!(sml.contains(expected), "{expected}");
    }
    for expected in ["211 grains put", "16 superseded", "ERR_INVALIDATION_DENIED", "64 chairs"] {
        assert!(run.err.contains(expected), "{expected}");
    }
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    assert_eq!(place.grain(&["demo"]).done().text(), sml, "the same every time");
}

#[test]
fn the_demo_for_machines_is_one_document() {
    let told = Place::empty().grain(&["demo", "--json"]).done().json();
    assert_eq!(told["refused"][0]["code"], "ERR_INVALIDATION_DENIED");
    assert_eq!(told["history"].as_array().unwrap().len(), 2);
    let assembled = &told["context"]["formatted_context"];
    let tokens = assembled["tokens"].as_u64().unwrap();
    assert!(tokens > 0 && tokens <= 600, "{tokens}");
}

#[test]
fn a_kept_store_can_be_worked_with_and_is_not_overwritten() {
    let place = Place::empty();
    place.grain(&["demo", "--keep", "week"]).done();
    let stats = place.grain(&["stats", "--json", "--store", "week"]).done().json();
    assert_eq!(stats["grains"], 227);
    let again = place.grain(&["demo", "--keep", "week"]);
    assert_eq!((again.code, again.error_code().as_str()), (1, "ERR_CONFLICT"));
    let goals = place.grain(&["cal", "RECALL goals | COUNT", "--store", "week"]).done();
    assert_eq!(goals.line(), "6");
}

#[test]
fn the_refusal_stands_in_the_audit_log_with_who_tried_what_and_the_rule_that_said_no() {
    let place = Place::empty();
    let told = place.grain(&["demo", "--keep", "week", "--json"]).done().json();
    assert_eq!(told["refused"].as_array().unwrap().len(), 1);
    let audit = |more: &[&str]| {
        let asked = [&["audit", "--json", "--store", "week"], more].concat();
        place.grain(&asked).done().json_lines()
    };
    let refused = |entries: Vec<serde_json::Value>| {
        entries.into_iter().filter(|entry| entry["decision"] == "refused").collect::<Vec<_>>()
    };
    let entries = refused(audit(&[]));
    let [entry] = entries.as_slice() else { panic!("{entries:?}") };
    assert_eq!(
        refused(audit(&["--by", "did:web:example.com:agents:quill"])),
        entries,
        "the assistant tried it"
    );
    assert_eq!(audit(&["--by", "did:web:example.com:agents:other"]), [] as [serde_json::Value; 0]);
    assert_eq!((&entry["operation"], &entry["rules"]), (&"supersede".into(), &["locked"].into()));
    assert!(entry["why"].as_str().unwrap().starts_with("it is locked"), "{entry}");
    let reason = entry["reason"].as_str().unwrap();
    assert!(reason.contains("an exception for one printer"), "{reason}");
    // What it was about is the rule, which is current, and what was offered is nowhere.
    let rule = entry["subjects"][0].as_str().unwrap();
    let stored = place.grain(&["get", rule, "--json", "--store", "week"]).done().json();
    assert_eq!(stored["grain"]["subject"], "donors list");
    assert!(stored["state"].get("superseded_by").is_none_or(serde_json::Value::is_null));
    let offered = entry["subjects"][1].as_str().unwrap();
    assert_eq!(place.grain(&["get", offered, "--store", "week"]).error_code(), "ERR_NOT_FOUND");
    let lines = place.grain(&["audit", "--store", "week"]).done();
    let line = lines.text().lines().find(|line| line.contains("refused")).unwrap();
    assert!(line.contains(rule) && line.contains("locked"), "{line}");
    place.grain(&["verify", "--full", "--store", "week"]).done();
}
