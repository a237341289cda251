//! CAL in two phases, and its switch, over rpc and on the command line.

use serde_json::{Value, json};

use crate::kit::Place;

const ADD: &str =
    r#"ADD belief SET subject = "a" SET relation = "is" SET object = "b" REASON "he said so""#;

#[test]
fn a_prepared_statement_is_executed_once_and_by_its_own_token() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let asked = json!({ "query": ADD, "tier": 1, "namespace": "work", "agent_id": "agent-7" });
    let prepared = rpc.result("prepare", &asked);
    assert_eq!(prepared["side_effects"], json!(["adds one grain"]));
    assert_eq!(prepared["token"]["namespace"], "work");
    let token = prepared["token"].clone();
    let mut altered = token.clone();
    altered["namespace"] = json!("private");
    let no_token = [altered, json!("x"), json!({}), json!(null), json!([1])];
    for token in &no_token {
        assert_eq!(rpc.refusal("execute", &json!({ "token": token })), "ERR_TOKEN", "{token}");
    }
    let done = rpc.result("execute", &json!({ "token": token }));
    let address = done["content_address"].clone();
    let grain = rpc.result("get", &json!({ "address": address }))["grain"].clone();
    assert_eq!(grain["namespace"], "work");
    assert_eq!(rpc.refusal("execute", &json!({ "token": token })), "ERR_TOKEN");
    let entries = rpc.result("audit", &json!({}))["entries"].clone();
    let calls: Vec<&Value> =
        entries.as_array().unwrap().iter().filter(|entry| !entry["call"].is_null()).collect();
    assert_eq!(calls[0]["call"]["token_id"], token["token_id"]);
    assert_eq!(calls[0]["call"]["query_hash"], prepared["query_hash"]);
    assert_eq!(calls[0]["call"]["operation"], "add");
    assert_eq!(calls[0]["call"]["new_hash"], address);
    assert_eq!(calls[0]["call"]["target_hash"], json!(null));
    assert!(calls.iter().skip(1).all(|entry| entry["call"]["code"] == "ERR_TOKEN"));
}

#[test]
fn an_entry_of_a_write_tells_what_it_replaced_and_by_what() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let mut write = |query: String| {
        let done = rpc.result("cal", &json!({ "query": query, "tier": 1 }));
        done["content_address"].as_str().unwrap().to_owned()
    };
    let added = write(
        "ADD belief SET subject = \"a\" SET relation = \"b\" SET object = \"c\" REASON \"r\""
            .into(),
    );
    let second = write(format!("SUPERSEDE sha256:{added} SET object = \"d\" REASON \"r\""));
    let third = write(format!("REVERT sha256:{second} REASON \"r\""));
    let refused = json!({ "query": format!("REVERT sha256:{added} REASON \"r\""), "tier": 1 });
    rpc.refusal("cal", &refused);
    let entries = rpc.result("audit", &json!({}))["entries"].clone();
    let calls = entries.as_array().unwrap().iter().map(|entry| &entry["call"]);
    let calls: Vec<_> = calls.filter(|call| !call.is_null()).collect();
    let told =
        |at: usize| ["operation", "target_hash", "new_hash"].map(|name| calls[at][name].as_str());
    assert_eq!(told(0), [Some("add"), None, Some(&*added)]);
    assert_eq!(told(1), [Some("supersede"), Some(&*added), Some(&*second)]);
    assert_eq!(told(2), [Some("revert"), Some(&*second), Some(&*third)]);
    assert_eq!(told(3), [None, None, None], "nothing was written");
}

#[test]
fn terms_bound_a_token_and_wrong_ones_are_refused() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let with = |terms: Value| json!({ "query": "RECALL beliefs", "terms": terms });
    let token = rpc.result("prepare", &with(json!({ "max_uses": 2, "life_ms": 1000 })));
    assert_eq!(token["token"]["max_uses"], 2);
    for (terms, code) in [
        (json!({ "allowed_ops": ["Count"] }), "ERR_TOKEN"),
        (json!({ "allowed_grain_types": ["goal"] }), "ERR_TOKEN"),
        (json!({ "max_uses": 0 }), "ERR_SCHEMA"),
    ] {
        assert_eq!(rpc.refusal("prepare", &with(terms.clone())), code, "{terms}");
    }
    for terms in [json!({ "allowed_ops": ["Erase"] }), json!({ "allowed_grain_types": ["rule"] })] {
        let response = rpc.call("prepare", &with(terms.clone()));
        assert_eq!(response["error"]["code"], -32602, "{terms}");
    }
    let refused = rpc.call("prepare", &json!({ "query": "RECALL beleifs" }));
    assert_eq!(refused["error"]["data"]["position"]["start"], 7);
}

#[test]
fn the_switch_stops_cal_and_is_told_of() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    assert_eq!(rpc.result("cal_switch", &json!({})), json!({ "cal": "on", "changed": false }));
    let off = json!({ "to": "off", "reason": "an incident" });
    assert_eq!(rpc.result("cal_switch", &off), json!({ "cal": "off", "changed": true }));
    assert_eq!(rpc.refusal("cal", &json!({ "query": "RECALL" })), "ERR_DISABLED");
    let alone = rpc.call("cal_switch", &json!({ "to": "on" }));
    assert_eq!(alone["error"]["code"], -32602);
    let reads = json!({ "to": "reads", "reason": "checked" });
    rpc.result("cal_switch", &reads);
    assert_eq!(rpc.refusal("cal", &json!({ "query": ADD, "tier": 1 })), "CAL-E044");
    rpc.result("session", &json!({ "namespace": "work" }));
    let on = json!({ "to": "on", "reason": "over" });
    assert_eq!(rpc.refusal("cal_switch", &on), "ERR_ACCESS");
}

#[test]
fn the_command_line_shows_and_sets_the_switch() {
    let place = Place::with_store();
    assert_eq!(place.grain(&["policy", "cal"]).done().line(), "CAL is on: it runs");
    let off = place.grain(&["policy", "cal", "off", "--reason", "an incident"]).done();
    assert_eq!(off.line(), "CAL is off: it does not run (ERR_DISABLED)");
    assert_eq!(place.grain(&["--json", "cal", "RECALL"]).error_code(), "ERR_DISABLED");
    let shown = place.grain(&["--json", "policy", "cal"]).done().json();
    assert_eq!(shown, json!({ "cal": "off", "changed": false }));
    place.grain(&["policy", "cal", "on", "--reason", "over"]).done();
    place.grain(&["cal", "RECALL"]).done();
}
