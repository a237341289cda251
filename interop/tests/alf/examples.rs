//! The examples of the standard, put together to an agent, go into a store and come out: as they are, and with
//! members and words of a newer version at every level. The standard is beside the checkout, or where
//! `GRAINSTORE_SHARED` points.

use grainstore_interop::json::{Value, parse};
use serde_json::json;

use crate::kit::*;
use crate::round_trip::assert_same;

/// The examples of the standard that are JSON.
fn examples() -> Vec<Value> {
    let Some(folder) = shared("seeds") else { return Vec::new() };
    let is_standard = |name: &str| name.starts_with("003_");
    let mut files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let file =
        files.find(|path| is_standard(&path.file_name().unwrap().to_string_lossy())).unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    let blocks = text.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.filter_map(|block| parse(block.as_bytes()).ok()).collect()
}

/// Puts values in the places that the examples leave open.
fn fill(value: &mut Value, name: &str) {
    match value {
        Value::String(text) if text.contains("uuid") || text == "agent-uuid" => {
            *text = match name {
                "agent_id" => AGENT.to_owned(),
                "principal_id" => PERSON.to_owned(),
                _ => id(text.bytes().map(u32::from).sum()),
            };
        }
        Value::String(text) if text == "base64-encoded-ciphertext" => {
            *text = data_encoding::BASE64.encode(&[0x91; 40]);
        }
        Value::String(text) if text == "base64-encoded-nonce" => {
            *text = data_encoding::BASE64.encode(&[7; 24]);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, name)),
        Value::Object(members) => members.iter_mut().for_each(|(name, value)| fill(value, name)),
        _ => {}
    }
}

/// Adds a member to every object, and replaces words that the standard lists.
fn from_the_future(value: &mut Value) {
    const LISTED: [&str; 7] = [
        "memory_type",
        "principal_type",
        "credential_type",
        "extraction_method",
        "portability",
        "type",
        "status",
    ];
    match value {
        Value::Array(items) => items.iter_mut().for_each(from_the_future),
        Value::Object(members) => {
            for (name, value) in members.iter_mut() {
                match value {
                    Value::String(word) if LISTED.contains(&name.as_str()) => {
                        *word = "of-the-future".into();
                    }
                    // The members of these have names that the standard does not know either.
                    _ if ["neural_matrix", "scores", "custom_blocks"].contains(&name.as_str()) => {}
                    value => from_the_future(value),
                }
            }
            members.insert("x_future".to_owned(), json!({"e\u{301}": [null, 0.1, "\u{feff}"]}));
        }
        _ => {}
    }
}

/// An agent with everything that the examples have.
fn agent(examples: &[Value], future: bool) -> Made {
    let mut member = json!({});
    for example in examples {
        let mut example = example.clone();
        fill(&mut example, "");
        member.as_object_mut().unwrap().extend(example.as_object().unwrap().clone());
    }
    let mut memory = record(1, "2026-02-10T14:30:00Z");
    for name in ["source", "temporal", "entities", "related_records"] {
        memory[name] = member[name].clone();
    }
    let mut identity = member["identity"].clone();
    identity["structured"]["sub_agents"] = member["sub_agents"].clone();
    let mut profile =
        examples.iter().find(|example| example.get("principal_id").is_some()).unwrap().clone();
    fill(&mut profile, "");
    profile["agent_id"] = json!(AGENT);
    let mut principals =
        json!({"principals": [{"id": PERSON, "principal_type": "human", "profile": profile}]});
    let mut credentials = json!({"credentials": [member["credential"]]});
    let mut attachments = json!({"attachments": member["attachments"]});
    for attachment in attachments["attachments"].as_array_mut().unwrap() {
        attachment["archive_path"] = Value::Null;
        attachment["hash"]["value"] = json!(sha256(b"a"));
    }
    let mut made = Made::of(vec![("2026-Q1", vec![memory])]);
    made.manifest["runtime_hints"] = member["runtime_hints"].clone();
    made.manifest["raw_sources"] = member["raw_sources"].clone();
    if future {
        for document in [&mut identity, &mut principals, &mut credentials, &mut attachments] {
            from_the_future(document);
        }
        from_the_future(&mut made.partitions[0].1[0]);
        from_the_future(&mut made.manifest["runtime_hints"]);
        made.manifest["x_future"] = json!({"a": [1]});
    }
    made.layer("identity", identity)
        .layer("principals", principals)
        .layer("credentials", credentials)
        .layer("attachments", attachments)
}

#[test]
fn the_examples_of_the_standard_come_back_as_they_are_and_from_a_newer_version() {
    let examples = examples();
    if examples.is_empty() {
        println!("skipped: the standard is not there");
        return;
    }
    assert!(examples.len() >= 13, "{}", examples.len());
    for future in [false, true] {
        let world = World::new();
        let report = world.import_made(&agent(&examples, future));
        assert_eq!(report.records.created, 1);
        let (out, _) = world.export();
        assert_same(&read(&world.dir.path().join("in.alf")), &out);
        let unknown =
            report.warnings.iter().filter(|issue| issue.message.contains("not known")).count();
        assert_eq!(unknown > 20, future, "{:?}", report.warnings);
        world.verify();
    }
}
