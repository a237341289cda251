//! Both eras of the protocol, on one connection.

use serde_json::json;

use crate::kit::{PLAIN, everything, modern};

#[test]
fn every_revision_with_a_handshake_is_agreed_on_and_another_falls_back() {
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
        ("nonsense", "2025-11-25"),
    ] {
        let (_dir, mut client) = everything();
        let params = json!({ "protocolVersion": asked, "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" } });
        let result = client.ask("initialize", params)["result"].clone();
        assert_eq!(result["protocolVersion"], agreed, "{asked}");
        assert!(result["instructions"].as_str().unwrap().len() < 600);
        let recalled = client.call("recall", json!({}));
        assert!(recalled.get("resultType").is_none(), "{asked}: {recalled}");
    }
}

#[test]
fn a_request_that_names_its_revision_needs_no_handshake() {
    let (_dir, mut client) = everything();
    let found = client.ask_modern("server/discover", json!({}), PLAIN)["result"].clone();
    let versions = found["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")) && versions.contains(&json!("2025-11-25")));
    let listed = client.ask_modern("tools/list", json!({}), PLAIN)["result"].clone();
    assert_eq!(listed["resultType"], "complete");
    assert!(listed["ttlMs"].is_u64() && listed["cacheScope"].is_string());
    let called = json!({ "name": "recall", "arguments": {} });
    let called = client.ask_modern("tools/call", called, PLAIN)["result"].clone();
    assert_eq!((&called["resultType"], &called["isError"]), (&json!("complete"), &json!(false)));
    assert_eq!(client.ask_modern("ping", json!({}), PLAIN)["error"]["code"], -32601);
    for (method, params) in [
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("prompts/list", json!({})),
    ] {
        let listed = client.ask_modern(method, params, PLAIN)["result"].clone();
        assert!(listed["ttlMs"].is_u64() && listed["resultType"] == "complete", "{listed}");
    }
}

#[test]
fn a_client_may_look_around_first_and_initialize_then_and_mix_both() {
    let (_dir, mut client) = everything();
    client.ask_modern("server/discover", json!({}), PLAIN);
    client.ask_modern("tools/list", json!({}), PLAIN);
    assert_eq!(client.initialize(PLAIN)["protocolVersion"], "2025-11-25");
    for _ in 0..2 {
        let old = client.ask("tools/call", json!({ "name": "recall", "arguments": {} }));
        assert!(old["result"].get("resultType").is_none(), "{old}");
        let call = json!({ "name": "recall", "arguments": {} });
        let new = client.ask_modern("tools/call", call, PLAIN);
        assert_eq!(new["result"]["resultType"], "complete");
    }
}

#[test]
fn before_either_only_ping_is_answered() {
    let (_dir, mut client) = everything();
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}"#);
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    assert_eq!(client.ask("tools/list", json!({}))["error"]["code"], -32602);
    // A revision that is not known, and one without what else it asks for.
    let mut meta = modern(PLAIN);
    meta["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    let response = client.ask("tools/list", json!({ "_meta": meta }));
    assert_eq!(response["error"]["code"], -32022, "{response}");
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
    assert_eq!(client.ask("tools/list", json!({ "_meta": meta }))["error"]["code"], -32602);
    client.initialize(PLAIN);
    assert!(client.ask("tools/list", json!({}))["result"].is_object());
}
