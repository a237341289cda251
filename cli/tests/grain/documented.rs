//! docs/rpc.md against the program: its methods, its examples, and what they answer.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::kit::Place;

const DOCUMENT: &str = include_str!("../../../docs/rpc.md");

/// The sections about a method: its name and its text.
fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    DOCUMENT.split("\n### ").skip(1).map(|section| section.split_once('\n').unwrap())
}

/// The requests a section shows.
fn examples(section: &str) -> Vec<&str> {
    section.split("```json\n").skip(1).map(|shown| shown.split_once("\n```").unwrap().0).collect()
}

#[test]
fn the_document_lists_the_methods_there_are() {
    let hello = Place::empty().rpc().result("hello", &json!({}));
    let there: BTreeSet<_> =
        hello["methods"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let told: Vec<_> = sections().map(|(name, _)| name).collect();
    assert_eq!(told.iter().copied().collect::<BTreeSet<_>>(), there);
    assert_eq!(told.len(), there.len(), "each once");
}

#[test]
fn its_examples_work_and_their_answers_hold_what_is_told() {
    let place = Place::empty();
    let entity =
        r#"{"type":"entity","name":"alice","entityType":"person","observations":["likes tea"]}"#;
    std::fs::write(place.path().join("memory.jsonl"), entity).unwrap();
    let mut rpc = place.rpc();
    let mut blob = String::new();
    let mut token = String::new();
    let mut ids = BTreeSet::new();
    for (name, section) in sections() {
        assert!(!examples(section).is_empty(), "{name} shows a request");
        for example in examples(section) {
            let request = example.replace("@blob", &blob).replace("\"@token\"", &token);
            let response = rpc.ask(request);
            assert!(ids.insert(response["id"].to_string()), "{name}: an id of its own");
            let answer = response["result"].as_object();
            let answer = answer.unwrap_or_else(|| panic!("{name}: {response}"));
            for key in answer.keys() {
                assert!(section.contains(&format!("`{key}`")), "{name}: {key} is not told");
            }
            if name == "prepare" {
                token = answer["token"].to_string();
            }
            if name == "encode" {
                blob = answer["blob"].as_str().unwrap().to_owned();
            }
        }
    }
}
