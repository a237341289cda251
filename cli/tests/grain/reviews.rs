//! A reasoning that waits for the review it asks for, through every command and method that shows grains, and
//! who clears its review through both faces.

use serde_json::{Value, json};

use crate::kit::Place;

const FLAG: &str = "requires_human_review";
const SECRET: &str = "zebra";

fn reasoning(author: &str) -> Value {
    json!({
        "type": "reasoning", "premises": ["zebra stripes"], "conclusion": "zebra conclusion",
        "inference_method": "deductive", "subject": "zebra", "relation": "leads_to",
        "object": "zebra end", FLAG: true, "author_did": author, "user_id": "ann",
        "created_at": 1_768_471_200_000_i64,
    })
}

/// Whether what is secret stands anywhere in JSON without the flag beside or above it.
fn is_told_without_flag(value: &Value, flagged: bool) -> bool {
    match value {
        Value::String(text) => !flagged && text.contains(SECRET),
        Value::Array(list) => list.iter().any(|one| is_told_without_flag(one, flagged)),
        Value::Object(map) => {
            let flagged = flagged || map.get(FLAG) == Some(&json!(true));
            map.values().any(|one| is_told_without_flag(one, flagged))
        }
        _ => false,
    }
}

#[test]
fn no_command_shows_it_without_its_flag_and_no_text_has_it_until_it_is_reviewed() {
    let place = Place::with_store();
    let address = place.put(&reasoning("did:web:author.example").to_string());
    let texts: [&[&str]; 12] = [
        &["get", &address, "--format", "sml"],
        &["history", &address],
        &["recall", "zebra"],
        &["recall", "zebra", "--as", "text"],
        &["recall", "zebra", "--as", "markdown"],
        &["recall", "zebra", "--as", "json"],
        &["recall", "--text", "zebra", "--scores"],
        &["cal", "RECALL reasonings AS sml"],
        &["cal", "RECALL | objects"],
        &["cal", "RECALL | subjects"],
        &["cal", "ASSEMBLE FOR \"x\" FROM a: (RECALL reasonings)"],
        &["cal", "ASSEMBLE FOR \"x\" FROM a: (RECALL reasonings) FORMAT toon"],
    ];
    let machine: [&[&str]; 8] = [
        &["get", &address],
        &["--json", "get", &address],
        &["--json", "history", &address],
        &["--json", "recall", "zebra"],
        &["--json", "recall", "--text", "zebra", "--scores"],
        &["cal", "RECALL reasonings | SELECT conclusion"],
        &["--json", "cal", "RECALL reasonings | GROUP BY subject"],
        &["--user", "ann", "subject-report"],
    ];
    for arguments in texts {
        let out = place.grain(arguments).done().text().to_owned();
        assert!(!out.contains(SECRET), "{arguments:?}: {out}");
    }
    for arguments in machine {
        let out = place.grain(arguments).done().text().to_owned();
        let told: Value = serde_json::from_str(&out).unwrap();
        assert!(!is_told_without_flag(&told, false), "{arguments:?}: {out}");
        assert!(out.contains(SECRET), "{arguments:?}: {out}");
    }
    let groups =
        place.grain(&["cal", "RECALL reasonings | GROUP BY subject"]).done().text().to_owned();
    assert_eq!(groups, "1  zebra  (requires_human_review)\n");
    place.grain(&["set-verification", &address, "verified", "--reason", "seen"]).done();
    for arguments in texts {
        let out = place.grain(arguments).done().text().to_owned();
        assert!(out.contains(SECRET), "{arguments:?}: {out}");
    }
}

#[test]
fn no_method_shows_it_without_its_flag() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let grain = reasoning("did:web:author.example");
    let address = rpc.result("put", &json!({ "grain": grain }))["address"].clone();
    let methods = [
        ("get", json!({ "address": address }), true),
        ("get_batch", json!({ "addresses": [address] }), true),
        ("history", json!({ "address": address }), true),
        ("history", json!({ "subject": "zebra", "relation": "leads_to" }), true),
        ("versions", json!({ "address": address, "towards": "older" }), true),
        ("query", json!({}), true),
        ("query", json!({ "text": "zebra" }), true),
        ("neighbours", json!({ "node": "zebra" }), true),
        ("paths", json!({ "from": "zebra", "to": "zebra end" }), true),
        ("subject_report", json!({ "user_id": "ann" }), false),
        ("cal", json!({ "query": "RECALL reasonings | SELECT conclusion" }), true),
        ("cal", json!({ "query": "RECALL reasonings AS sml" }), true),
        ("cal", json!({ "query": format!("HISTORY sha256:{}", address.as_str().unwrap()) }), true),
        ("cal", json!({ "query": "RECALL | objects" }), false),
        ("cal", json!({ "query": "ASSEMBLE FOR \"x\" FROM a: (RECALL reasonings)" }), false),
    ];
    for (method, params, shows) in &methods {
        let told = rpc.result(method, params);
        assert!(!is_told_without_flag(&told, false), "{method} {params}: {told}");
        assert_eq!(told.to_string().contains(SECRET), *shows, "{method} {params}: {told}");
    }
    let query = json!({ "query": "ASSEMBLE FOR \"x\" FROM a: (RECALL reasonings) STREAM" });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "cal_stream", "params": query });
    let (events, answer) = rpc.ask_hearing(call.to_string());
    assert!(!events.is_empty() && answer["result"].is_object(), "{answer}");
    let told = format!("{events:?}{answer}");
    assert!(!told.contains(SECRET), "{told}");
    let verified = json!({ "address": address, "status": "verified", "reason": "seen" });
    rpc.result("set_verification", &verified);
    for (method, params, _) in methods.iter().filter(|(method, ..)| *method == "cal") {
        let told = rpc.result(method, params);
        assert!(told.to_string().contains(SECRET), "{method} {params}: {told}");
    }
    let (events, answer) = rpc.ask_hearing(call.to_string());
    assert!(format!("{events:?}{answer}").contains(SECRET));
}

#[test]
fn reviewers_are_named_where_the_store_is_opened() {
    const REVIEWER: &str = "did:web:reviewer.example";
    const OTHER: &str = "did:web:other.example";
    let place = Place::with_store();
    let operator = ["--operator", "did:web:operator.example"];
    let run = |actor: &str, reviewers: &[&str], address: &str| {
        let mut arguments = vec!["--actor", actor];
        arguments.extend(operator);
        arguments.extend(reviewers.iter().flat_map(|reviewer| ["--reviewer", reviewer]));
        arguments.extend(["set-verification", address, "verified", "--reason", "seen"]);
        place.grain(&arguments)
    };
    let address = place.put(&reasoning("did:web:author.example").to_string());
    let refused = run(OTHER, &[], &address);
    assert_eq!(refused.error_code(), "ERR_INVALIDATION_DENIED");
    assert!(refused.err.contains("--reviewer"), "{}", refused.err);
    let refused = run(OTHER, &[REVIEWER], &address);
    assert_eq!(refused.error_code(), "ERR_INVALIDATION_DENIED");
    run(OTHER, &[REVIEWER, OTHER], &address).done();

    let mut rpc = place.rpc();
    let path = place.path().join("rpc.grains");
    for (reviewers, actor, code) in [
        (json!([]), OTHER, Some("ERR_INVALIDATION_DENIED")),
        (json!([REVIEWER]), OTHER, Some("ERR_INVALIDATION_DENIED")),
        (json!([REVIEWER]), "did:web:author.example", Some("ERR_INVALIDATION_DENIED")),
        (json!([OTHER, REVIEWER]), REVIEWER, None),
    ] {
        let open = json!({
            "path": path, "create": true, "operator": "did:web:operator.example",
            "reviewers": reviewers, "session": { "actor": actor, "namespace": "shared" },
        });
        rpc.result("open", &open);
        let grain = reasoning("did:web:author.example");
        let address = rpc.result("put", &json!({ "grain": grain }))["address"].clone();
        let params = json!({ "address": address, "status": "verified", "reason": "seen" });
        match code {
            Some(code) => assert_eq!(rpc.refusal("set_verification", &params), code),
            None => drop(rpc.result("set_verification", &params)),
        }
    }
}
