//! `grain rpc` as JSON-RPC 2.0: what is a request, and what becomes of everything else.

use serde_json::{Value, json};

use crate::kit::{Place, belief, refusal};

#[test]
fn what_is_no_request_is_refused_under_the_protocols_codes() {
    let mut rpc = Place::empty().rpc();
    for (line, code, id) in [
        ("", -32700, json!(null)),
        ("{", -32700, json!(null)),
        ("nonsense", -32700, json!(null)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"hello"} x"#, -32700, json!(null)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"hello",}"#, -32700, json!(null)),
        ("[]", -32600, json!(null)),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"hello"}]"#, -32600, json!(null)),
        (r#"["2.0",1,"hello"]"#, -32600, json!(null)),
        ("42", -32600, json!(null)),
        ("null", -32600, json!(null)),
        ("{}", -32600, json!(null)),
        (r#"{"id":1,"method":"hello"}"#, -32600, json!(1)),
        (r#"{"jsonrpc":"1.0","id":1,"method":"hello"}"#, -32600, json!(1)),
        (r#"{"jsonrpc":2.0,"id":"a","method":"hello"}"#, -32600, json!("a")),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":1}"#, -32600, json!(1)),
        (r#"{"jsonrpc":"2.0","id":{},"method":"hello"}"#, -32600, json!(null)),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"hello"}"#, -32600, json!(null)),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"hello"}"#, -32600, json!(null)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"hello","more":1}"#, -32600, json!(null)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"nope"}"#, -32601, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"Hello"}"#, -32601, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"hello","params":[]}"#, -32602, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"hello","params":1}"#, -32602, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"hello","params":{"a":1}}"#, -32602, json!(1)),
    ] {
        let response = rpc.ask(line);
        assert_eq!(response["error"]["code"], code, "{line}");
        assert_eq!((&response["jsonrpc"], &response["id"]), (&json!("2.0"), &id), "{line}");
        assert!(response["error"]["message"].is_string() && response.get("result").is_none());
    }
    let response = rpc.ask(b"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"hello\"}");
    assert_eq!(response["error"]["code"], -32700);
    assert_eq!(rpc.end(), (String::new(), 0));
}

#[test]
fn a_query_that_is_not_utf8_is_refused_by_cal_and_any_other_line_by_the_protocol() {
    let mut rpc = Place::empty().rpc();
    for method in ["cal", "prepare", "cal_stream"] {
        let head = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{"query":"#);
        for (query, start) in [
            (&b"\"RECALL ABOUT \\\"a\xff\\\"\""[..], 15),
            (&b"\"\xc3\""[..], 0),
            (&b"{\"statement\":\"recall\",\"about\":\"\xed\xa0\x80\"}"[..], 31),
        ] {
            let line = [head.as_bytes(), query, b"}}"].concat();
            let response = rpc.ask(&line);
            assert_eq!(response["error"]["code"], -32000, "{method} {response}");
            assert_eq!(response["error"]["data"]["code"], "CAL-E070", "{method} {response}");
            assert_eq!(response["error"]["data"]["position"]["start"], start, "{response}");
            assert_eq!(response["id"], 7);
        }
        // Half of a surrogate pair is no text either.
        let half = [head.as_bytes(), br#""RECALL \ud800"}}"#].concat();
        let response = rpc.ask(&half);
        assert_eq!(response["error"]["data"]["code"], "CAL-E070", "{method} {response}");
        assert_eq!(response["error"]["data"]["position"]["start"], 7, "{response}");
        assert_eq!(response["id"], 7);
        // Elsewhere in the line it is no text, and so no JSON.
        let bad = [head.as_bytes(), b"\"RECALL\",\"namespace\":\"\xff\"}}"].concat();
        assert_eq!(rpc.ask(&bad)["error"]["code"], -32700, "{method}");
        let broken = [head.as_bytes(), b"\"\xff\""].concat();
        assert_eq!(rpc.ask(&broken)["error"]["code"], -32700, "{method}");
    }
    let other =
        b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"encode\",\"params\":{\"query\":\"\xff\"}}";
    assert_eq!(rpc.ask(other)["error"]["code"], -32700);
    assert_eq!(rpc.end(), (String::new(), 0));
}

#[test]
fn deep_nesting_is_an_error_and_not_an_end() {
    let mut rpc = Place::empty().rpc();
    let deep = "[".repeat(200_000) + &"]".repeat(200_000);
    for (method, params, code) in [
        ("encode", format!(r#"{{"grain":{{"type":"event","content":{deep}}}}}"#), "ERR_CORRUPT"),
        ("encode", format!(r#"{{"grain":{deep}}}"#), "ERR_CORRUPT"),
        ("cal", format!(r#"{{"query":"RECALL","params":{{"p":{deep}}}}}"#), "-32602"),
        ("hello", format!(r#"{{"x":{deep}}}"#), "-32602"),
    ] {
        assert_eq!(refusal(&rpc.call_text(method, &params)), code, "{method}");
    }
    assert_eq!(rpc.ask(&deep)["error"]["code"], -32600);
    assert_eq!(rpc.ask("[".repeat(200_000))["error"]["code"], -32700);
    rpc.result("hello", &json!({}));
}

#[test]
fn every_scalar_id_comes_back_as_it_was_sent() {
    let mut rpc = Place::empty().rpc();
    for id in [
        "1",
        "-0.0",
        "1.50",
        "1e400",
        "123456789012345678901234567890",
        "\"\\u0061b\"",
        "null",
        "true",
    ] {
        rpc.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"close"}}"#));
        assert_eq!(rpc.line(), format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n"));
    }
    let long = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"close"}}"#, "x".repeat(2000));
    assert_eq!(rpc.ask(long)["error"]["code"], -32600);
}

#[test]
fn notifications_are_done_without_an_answer() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let grain = belief("a", "1");
    rpc.send(format!(r#"{{"jsonrpc":"2.0","method":"put","params":{{"grain":{grain}}}}}"#));
    rpc.send(r#"{"jsonrpc":"2.0","method":"nope"}"#);
    rpc.send(r#"{"jsonrpc":"2.0","method":"get","params":{"address":"bad"}}"#);
    assert_eq!(rpc.result("stats", &json!({}))["grains"], 1);
    assert_eq!(rpc.end(), (String::new(), 0));
}

#[test]
fn a_request_may_come_without_a_last_newline_and_with_a_carriage_return() {
    let place = Place::empty();
    let run = place.feed(
        &["rpc"],
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"close\"}\r\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"close\"}",
    );
    let ids: Vec<Value> = run.done().json_lines().iter().map(|line| line["id"].clone()).collect();
    assert_eq!(ids, [1, 2]);
}

#[test]
fn parameters_are_checked_before_anything_is_done() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let path = place.path().join("other.grains");
    let grain: Value = serde_json::from_str(&belief("a", "1")).unwrap();
    let blob = "AQ==";
    for (method, params) in [
        ("encode", json!({})),
        ("encode", json!({ "grain": grain, "encoding": "xml" })),
        ("encode", json!({ "grain": grain, "encoding": 1 })),
        ("decode", json!({ "blob": "not base64!" })),
        ("decode", json!({ "blob": 1 })),
        ("open", json!({ "create": true })),
        ("open", json!({ "path": 1 })),
        ("open", json!({ "path": "", "create": true })),
        ("open", json!({ "path": path, "create": "yes" })),
        ("open", json!({ "path": path, "create": true, "wait_ms": -1 })),
        ("open", json!({ "path": path, "create": true, "preset": "none" })),
        ("open", json!({ "path": path, "create": true, "session": ["ns"] })),
        ("open", json!({ "path": path, "create": true, "session": { "name": "ns" } })),
        ("session", json!({})),
        ("session", json!({ "namespace": 1 })),
        ("session", json!({ "namespace": "a", "purposes": "store" })),
        ("put", json!({})),
        ("put", json!({ "grain": grain, "blob": blob })),
        ("put", json!({ "grain": grain, "same_fact": "maybe" })),
        ("put", json!({ "grain": grain, "vectors": {} })),
        ("put_batch", json!({})),
        ("put_batch", json!({ "grains": grain })),
        ("put_batch", json!({ "grains": [], "blobs": [] })),
        ("get", json!({})),
        ("get", json!({ "address": 1 })),
        ("get_batch", json!({ "addresses": "x" })),
        ("exists", json!({ "address": null })),
        ("supersede", json!({ "grain": grain })),
        ("supersede", json!({ "old": "x", "grain": grain, "why": "because" })),
        ("history", json!({})),
        ("history", json!({ "subject": "a" })),
        ("history", json!({ "address": "a", "subject": "a", "relation": "b" })),
        ("history", json!({ "address": "a", "as_of": 1 })),
        ("history", json!({ "subject": "a", "relation": "b", "as_of": "today" })),
        ("cal", json!({})),
        ("cal", json!({ "query": 1 })),
        ("cal", json!({ "query": "RECALL", "tier": 2 })),
        ("cal", json!({ "query": "RECALL", "tier": -1 })),
        ("cal", json!({ "query": "RECALL", "as": "xml" })),
        ("cal", json!({ "query": "RECALL", "params": [] })),
        ("cal", json!({ "query": "RECALL", "now": "today" })),
        ("audit", json!({ "limit": -1 })),
        ("audit", json!({ "limit": 1.5 })),
        ("audit", json!({ "after": "x" })),
        ("stats", json!({ "x": 1 })),
        ("clock", json!({})),
        ("clock", json!({ "now_ms": "1" })),
    ] {
        let response = rpc.call(method, &params);
        assert_eq!(response["error"]["code"], -32602, "{method} {params}: {response}");
    }
    assert!(!path.exists());
    assert_eq!(rpc.result("stats", &json!({}))["grains"], 0);
}

#[test]
fn a_parameter_of_the_wrong_form_is_named_with_the_right_one() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    for (method, params, told) in [
        (
            "put",
            json!({ "grain": {}, "vectors": [1, 0] }),
            "vectors: invalid type: integer `1`, expected an object {model, metric?, chunk?, values: [number ...]}",
        ),
        (
            "put",
            json!({ "grain": {}, "vectors": {} }),
            "vectors: invalid type: an object, expected a list",
        ),
        (
            "put",
            json!({ "grain": {}, "vectors": [{ "values": [1] }] }),
            "vectors: missing field `model`",
        ),
        (
            "query",
            json!({ "vector": [0.9, 0.1] }),
            "vector: invalid type: a list, expected an object {model?, values: [number ...]}",
        ),
        (
            "query",
            json!({ "vector": { "values": ["x"] } }),
            "vector: invalid type: string \"x\", expected a number",
        ),
        (
            "query",
            json!({ "text": "tea", "limit": "ten" }),
            "limit: invalid type: string \"ten\", expected a whole number from 0 on",
        ),
        (
            "query",
            json!({ "where": { "subject": 1 } }),
            "subject: invalid type: integer `1`, expected a string",
        ),
        (
            "open",
            json!({ "path": "x", "embedder": "python3 x" }),
            "embedder: invalid type: string \"python3 x\", expected an object {command: [program, argument ...], model, dimension, metric?, deadline_ms?} or {directory, model?, metric?}",
        ),
        (
            "open",
            json!({ "path": "x", "languages": ["de"] }),
            "languages: invalid type: string \"de\", expected an object {namespace?, language}",
        ),
        (
            "open",
            json!({ "path": "x", "session": [] }),
            "session: invalid type: a list, expected an object {namespace?, user_id?, actor?, purposes?}",
        ),
        ("stats", json!({ "x": 1 }), "unknown field `x`, expected `pages`"),
    ] {
        let response = rpc.call(method, &params);
        assert_eq!(response["error"]["code"], -32602, "{method} {params}: {response}");
        assert_eq!(response["error"]["message"], told, "{method} {params}");
    }
}
