//! CAL in two phases, and its switch, over rpc and on the command line.

use grainstore::ContentAddress;
use serde_json::{Value, json};

use crate::kit::{Place, Rpc, refusal};

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

/// The read log's last call, over rpc.
fn last_read(rpc: &mut Rpc) -> Value {
    let entries = rpc.result("audit", &json!({ "reads": true }))["entries"].clone();
    entries.as_array().unwrap().last().unwrap()["call"].clone()
}

fn sha256(bytes: &[u8]) -> String {
    format!("sha256:{}", ContentAddress::of(bytes))
}

#[test]
fn a_query_that_is_not_utf8_is_in_the_read_log_by_the_hash_of_its_bytes() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    for (at, method) in ["cal", "prepare", "cal_stream"].into_iter().enumerate() {
        let object = b"{\"statement\":\"recall\",\"about\":\"\xed\xa0\x80\"}";
        let quoted = b"\"RECALL ABOUT \\\"a\xff\\\" -- \\u00e9\"";
        let half = br#""RECALL \ud800""#;
        for (sent, query) in [
            (&object[..], &object[..]),
            (&quoted[..], b"RECALL ABOUT \"a\xff\" -- \xc3\xa9"),
            (&half[..], b"RECALL \xed\xa0\x80"),
        ] {
            let head = format!(
                r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{"namespace":"n","query":"#
            );
            let line = [head.as_bytes(), sent, b"}}"].concat();
            assert_eq!(refusal(&rpc.ask(&line)), "CAL-E070");
            let call = last_read(&mut rpc);
            assert_eq!(call["query_hash"], sha256(query), "{method}");
            assert_eq!((&call["code"], &call["namespace"]), (&json!("CAL-E070"), &json!("n")));
        }
        let entries = rpc.result("audit", &json!({ "reads": true }))["entries"].clone();
        assert_eq!(entries.as_array().unwrap().len(), 3 * (at + 1), "{method}");
    }
}

#[test]
fn a_parameter_that_cannot_be_bound_leaves_an_entry_in_the_read_log() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let query = "RECALL beliefs ABOUT $who";
    let parsed = sha256(query.as_bytes());
    let many: serde_json::Map<_, _> = (0..21).map(|n| (format!("p{n}"), json!(n))).collect();
    for (params, code) in [(json!({ "who": null }), "CAL-E020"), (json!(many), "CAL-E013")] {
        for method in ["cal", "cal_stream", "prepare"] {
            let asked = json!({ "query": query, "params": params });
            assert_eq!(rpc.refusal(method, &asked), code);
            let call = last_read(&mut rpc);
            assert_eq!((&call["code"], &call["query_hash"]), (&json!(code), &json!(parsed)));
            assert_eq!(call["statement"], "recall", "{method}");
        }
    }
    assert_eq!(rpc.end().1, 0);
    let place = Place::with_store();
    let refused = place.grain(&["cal", "--param", "who=null", query]);
    assert_eq!((refused.code, refused.error_code().as_str()), (1, "CAL-E020"));
    let entries = place.grain(&["audit", "--reads", "--json"]).done().json_lines();
    assert_eq!((entries.len(), &entries[0]["call"]["code"]), (1, &json!("CAL-E020")));
    // What was to write is in the audit log, as any write that is refused.
    let add = r#"ADD belief SET subject = $who SET relation = "r" SET object = "o" REASON "r""#;
    let refused = place.grain(&["cal", "--evolve", "--param", "who=null", add]);
    assert_eq!(refused.error_code(), "CAL-E020");
    let entries = place.grain(&["audit", "--json"]).done().json_lines();
    assert_eq!(entries.last().unwrap()["call"]["code"], "CAL-E020");
}
