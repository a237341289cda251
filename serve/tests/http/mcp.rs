//! The Model Context Protocol over HTTP.

use grainstore_serve::Grant;
use serde_json::{Value, json};

use crate::kit::{Answer, Served};

const VERSION: &str = "2025-11-25";

fn ask(served: &Served, token: &str, method: &str, params: &Value) -> Answer {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let (bearer, length) = (format!("Bearer {token}"), body.len().to_string());
    let headers = [
        ("Authorization", &*bearer),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", VERSION),
        ("Content-Length", &length),
    ];
    served.raw(served.head("POST /mcp", &headers) + &body)
}

fn call(served: &Served, token: &str, tool: &str, arguments: &Value) -> Value {
    let answer = ask(served, token, "tools/call", &json!({ "name": tool, "arguments": arguments }));
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["result"].clone()
}

#[test]
fn a_client_of_the_older_era_remembers_and_recalls_without_a_session() {
    let served = Served::new();
    let team = served.tenant("team");
    let hello = json!({ "protocolVersion": VERSION, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let begun = ask(&served, &team, "initialize", &hello);
    assert_eq!(begun.json()["result"]["serverInfo"]["name"], "grainstore", "{begun:?}");
    assert!(begun.header("mcp-session-id").is_none());
    let fact = json!({ "subject": "alice", "relation": "prefers", "object": "tea" });
    let stored = call(&served, &team, "remember", &fact);
    assert_eq!(stored["isError"], json!(false), "{stored}");
    let found = call(&served, &team, "search", &json!({ "text": "tea" }));
    assert!(found.to_string().contains("alice"), "{found}");
    let other = served.tenant("other");
    let found = call(&served, &other, "search", &json!({ "text": "tea" }));
    assert!(!found.to_string().contains("alice"), "{found}");
}

#[test]
fn a_token_that_reads_remembers_nothing() {
    let served = Served::with(|options| options.mcp_profile = grainstore_serve::Profile::Full);
    let (team, reads) = (
        served.tenant("team"),
        served.token(Grant { namespace: Some("team".into()), ..Grant::default() }),
    );
    let fact = json!({ "subject": "alice", "relation": "prefers", "object": "tea" });
    let stored = call(&served, &team, "remember", &fact);
    let address = stored["structuredContent"]["address"].clone();
    let add =
        "ADD belief SET subject = \"x\" SET relation = \"is\" SET object = \"y\" REASON \"r\"";
    for (tool, arguments) in [
        ("remember", json!({ "subject": "bob", "relation": "prefers", "object": "tea" })),
        ("forget", json!({ "address": address, "reason": "r" })),
        ("cal", json!({ "statement": add })),
        ("cal", json!({ "query": add })),
    ] {
        let refused = call(&served, &reads, tool, &arguments);
        assert_eq!(refused["isError"], json!(true), "{tool}: {refused}");
    }
    let found = call(&served, &reads, "search", &json!({ "text": "tea" }));
    assert!(found.to_string().contains("alice") && !found.to_string().contains("bob"), "{found}");
    assert!(call(&served, &reads, "recall", &json!({ "query": "tea" }))["isError"] != json!(true));
}

#[test]
fn who_has_no_token_is_not_asked() {
    let served = Served::new();
    let answer = ask(&served, "gst_00000000_x", "initialize", &json!({}));
    assert_eq!(answer.refusal().0, 401);
}
