//! What is no message, and messages that cannot be: each is told, and the next is answered.

use serde_json::{Value, json};

use crate::kit::{PLAIN, everything};

#[test]
fn what_is_no_message_is_told_and_the_connection_goes_on() {
    let (_dir, mut client) = everything();
    client.initialize(PLAIN);
    let deep =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}}"#, "[".repeat(100_000));
    for (line, code, id) in [
        ("{", -32700, Value::Null),
        ("nonsense", -32700, Value::Null),
        (deep.as_str(), -32700, Value::Null),
        ("[]", -32600, Value::Null),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600, Value::Null),
        ("42", -32600, Value::Null),
        ("{}", -32600, Value::Null),
        (r#"{"id":1,"method":"ping"}"#, -32600, json!(1)),
        (r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#, -32600, json!("a")),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, -32602, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"nope"}"#, -32601, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#, -32602, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}"#, -32602, json!(1)),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"recall","arguments":[]}}"#,
            -32602,
            json!(1),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}"#,
            -32602,
            json!(1),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"debug"}}"#,
            -32601,
            json!(1),
        ),
    ] {
        let start: String = line.chars().take(80).collect();
        client.send(line);
        let response = client.hear();
        assert_eq!(response["error"]["code"], code, "{start}: {response}");
        assert_eq!(response["id"], id, "{start}");
        assert!(!response["error"]["message"].as_str().unwrap().is_empty());
    }
    client.send(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}");
    assert_eq!(client.hear()["error"]["code"], -32700);
    // What gets no answer: an empty line, answers to nothing, notifications of all kinds.
    for line in [
        "",
        "  \r",
        r#"{"jsonrpc":"2.0","id":77,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":78,"error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/nope"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#,
    ] {
        client.send(line);
    }
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    let (rest, ended) = client.end();
    ended.unwrap();
    assert_eq!(rest, "");
}

#[test]
fn a_line_of_100_megabytes_is_refused_and_the_next_is_read() {
    let (_dir, mut client) = everything();
    client.initialize(PLAIN);
    let text = "x".repeat(100 << 20);
    let call = json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call",
        "params": { "name": "remember", "arguments": { "text": text } } });
    client.send(call.to_string());
    let response = client.hear();
    assert_eq!(response["error"]["code"], -32600);
    assert_eq!(response["id"], Value::Null);
    assert_eq!(client.done("search", json!({}))["rows"], json!([]));
}

#[test]
fn arguments_that_a_tool_does_not_take_are_told_to_the_model() {
    let (_dir, mut client) = everything();
    client.initialize(PLAIN);
    let digits = "0".repeat(64);
    for (tool, arguments, says) in [
        ("recall", json!({ "question": "x" }), "unknown field `question`"),
        ("recall", json!({ "query": 5 }), "invalid type"),
        ("recall", json!({ "as": "xml" }), "`sml` or `rows`"),
        ("recall", json!({ "budget_tokens": 0 }), "from 50 to 8000"),
        ("recall", json!({ "budget_tokens": 1_000_000 }), "from 50 to 8000"),
        ("recall", json!({ "budget_tokens": -1 }), "invalid value"),
        ("search", json!({ "limit": 51 }), "from 1 to 50"),
        ("search", json!({ "type": "fact of life" }), "no grain type"),
        ("search", json!({ "from": "yesterday" }), "from: "),
        ("remember", json!({}), "nothing to remember"),
        ("remember", json!({ "subject": "a", "object": "b" }), "also has relation"),
        (
            "remember",
            json!({ "subject": "a", "relation": "b", "object": "c", "text": "d" }),
            "one of them",
        ),
        ("remember", json!({ "text": "a", "confidence": 1 }), "no confidence"),
        (
            "remember",
            json!({ "subject": "a", "relation": "b", "object": "c", "confidence": 7 }),
            "outside 0",
        ),
        ("remember", json!({ "text": "a", "valid_from": "soon" }), "valid_from: "),
        ("remember", json!({ "text": "a", "replaces": "that" }), "no address"),
        ("remember", json!({ "text": "a", "replaces": "latest" }), "needs the subject"),
        ("remember", json!({ "text": "a", "replaces": digits }), ""),
        ("remember", json!({ "text": "a", "same_fact": "maybe" }), "same_fact"),
        ("remember", json!({ "grain": { "type": "nonsense" } }), ""),
        ("history", json!({}), "which fact?"),
        ("history", json!({ "subject": "a" }), "which fact?"),
        ("history", json!({ "subject": "a", "relation": "b" }), "no such fact"),
        ("history", json!({ "address": digits }), ""),
        ("history", json!({ "subject": "a", "relation": "b", "cursor": "x" }), "no cursor"),
        ("cal", json!({}), "give query"),
        ("cal", json!({ "query": "RECALL", "token": {} }), "give query"),
        ("cal", json!({ "token": {} }), "no token"),
    ] {
        let result = client.call(tool, arguments.clone());
        let code = crate::kit::code(&result);
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(says), "{tool} {arguments}: {text}");
        assert!(code.starts_with("ERR_") || code.starts_with("CAL-"), "{tool} {arguments}: {code}");
    }
    assert_eq!(client.done("search", json!({}))["rows"], json!([]));
    for name in ["nope", "", &"x".repeat(10_000)] {
        let response = client.ask("tools/call", json!({ "name": name, "arguments": {} }));
        assert_eq!(response["error"]["code"], -32602);
        assert!(response.to_string().len() < 500, "{response}");
    }
}

#[test]
fn an_initialize_that_is_refused_begins_nothing() {
    let (_dir, mut client) = everything();
    for params in [json!({}), json!({ "protocolVersion": 1 }), json!({ "capabilities": {} })] {
        assert_eq!(client.ask("initialize", params)["error"]["code"], -32602);
        let listed = client.ask("tools/list", json!({}));
        assert_eq!(listed["error"]["code"], -32602, "{listed}");
    }
    client.initialize(PLAIN);
    assert!(client.ask("tools/list", json!({}))["result"]["tools"].is_array());
}
