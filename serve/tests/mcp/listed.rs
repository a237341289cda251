//! What is listed: tools with their schemas and hints, resources, prompts.

use grainstore_serve::Profile;
use serde_json::{Value, json};

use crate::kit::{Conversation, PLAIN, everything, options};

fn tools(client: &mut Conversation) -> Vec<Value> {
    client.initialize(PLAIN);
    let listed = client.ask("tools/list", json!({}))["result"]["tools"].clone();
    listed.as_array().unwrap().clone()
}

#[test]
fn each_tool_says_what_it_takes_answers_and_does() {
    let (_dir, mut client) = everything();
    let tools = tools(&mut client);
    let hints: Vec<_> = tools
        .iter()
        .map(|tool| {
            let hint = |name: &str| tool["annotations"][name].as_bool().unwrap();
            assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
            assert_eq!(tool["outputSchema"]["type"], "object", "{tool}");
            assert!(tool["title"].is_string() && tool["description"].is_string());
            assert!(!hint("openWorldHint"));
            (
                tool["name"].as_str().unwrap(),
                hint("readOnlyHint"),
                hint("destructiveHint"),
                hint("idempotentHint"),
            )
        })
        .collect();
    assert_eq!(
        hints,
        [
            ("recall", true, false, true),
            ("search", true, false, true),
            ("remember", false, false, false),
            ("history", true, false, true),
            ("forget", false, true, true),
            ("cal", false, false, false),
        ]
    );
}

#[test]
fn cal_is_for_the_full_profile() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Conversation::with(options(dir.path()));
    assert_eq!(Profile::default(), Profile::Memory);
    let names = tools(&mut client).iter().map(|tool| tool["name"].clone()).collect::<Vec<_>>();
    assert_eq!(names, ["recall", "search", "remember", "history", "forget"]);
    let response =
        client.ask("tools/call", json!({ "name": "cal", "arguments": { "query": "RECALL" } }));
    assert_eq!(response["error"]["code"], -32602, "{response}");
}

#[test]
fn structured_content_keeps_to_the_output_schema() {
    let (_dir, mut client) = everything();
    let tools = tools(&mut client);
    let address = client.fact("alice", "prefers", "tea");
    for (tool, arguments) in [
        ("recall", json!({ "query": "tea" })),
        ("recall", json!({ "as": "rows" })),
        ("search", json!({ "text": "tea" })),
        ("remember", json!({ "text": "it rained" })),
        ("history", json!({ "address": address })),
        ("cal", json!({ "query": "RECALL" })),
        (
            "cal",
            json!({ "query": "ADD belief SET subject = \"a\" SET relation = \"b\" SET object = \"c\" REASON \"d\"" }),
        ),
        ("forget", json!({ "address": address, "reason": "r" })),
    ] {
        let structured = client.done(tool, arguments);
        let schema = &tools.iter().find(|listed| listed["name"] == tool).unwrap()["outputSchema"];
        let known = schema["properties"].as_object().unwrap();
        for (name, value) in structured.as_object().unwrap() {
            let of = match value {
                Value::Null => "null",
                Value::Bool(_) => "boolean",
                Value::Number(_) => "integer",
                Value::String(_) => "string",
                Value::Array(_) => "array",
                Value::Object(_) => "object",
            };
            let types = &known[name]["type"];
            let fits =
                types == of || types.as_array().is_some_and(|types| types.contains(&json!(of)));
            assert!(fits || known[name]["enum"].is_array(), "{tool}: {name} is {of}, not {types}");
        }
        for required in schema["required"].as_array().into_iter().flatten() {
            assert!(structured.get(required.as_str().unwrap()).is_some(), "{tool}: {required}");
        }
    }
}

#[test]
fn grains_are_resources_by_their_address() {
    let (_dir, mut client) = everything();
    client.initialize(PLAIN);
    let address = client.fact("alice", "prefers", "tea");
    for at in 0..25 {
        client.fact("bob", "counts", &at.to_string());
    }
    let template = client.ask("resources/templates/list", json!({}));
    assert_eq!(template["result"]["resourceTemplates"][0]["uriTemplate"], "grain://{address}");
    let first = client.ask("resources/list", json!({}))["result"].clone();
    assert_eq!(first["resources"].as_array().unwrap().len(), 20);
    let more =
        client.ask("resources/list", json!({ "cursor": first["nextCursor"] }))["result"].clone();
    assert_eq!(more["resources"].as_array().unwrap().len(), 6);
    assert!(more.get("nextCursor").is_none());
    assert_eq!(more["resources"][5]["title"], "belief: alice prefers tea");
    let uri = format!("grain://{address}");
    let read = client.ask("resources/read", json!({ "uri": uri }))["result"]["contents"][0].clone();
    assert_eq!(read["uri"], uri);
    let grain: Value = serde_json::from_str(read["text"].as_str().unwrap()).unwrap();
    assert_eq!((&grain["address"], &grain["grain"]["object"]), (&json!(address), &json!("tea")));
    for uri in
        ["grain://", "grain://*", "file:///etc/passwd", &format!("grain://{}", "0".repeat(64))]
    {
        let old = client.ask("resources/read", json!({ "uri": uri }));
        assert_eq!(old["error"]["code"], -32002, "{uri}");
        let new = client.ask_modern("resources/read", json!({ "uri": uri }), PLAIN);
        assert_eq!(new["error"]["code"], -32602, "{uri}");
    }
    let refused = client.ask("resources/list", json!({ "cursor": "x" }));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert_eq!(refused["error"]["data"]["code"], "ERR_CURSOR", "{refused}");
}

#[test]
fn a_briefing_has_what_is_known_for_the_task() {
    let (_dir, mut client) = everything();
    client.initialize(PLAIN);
    client.fact("alice", "prefers", "tea");
    let listed = client.ask("prompts/list", json!({}))["result"]["prompts"].clone();
    assert_eq!(listed.as_array().unwrap().len(), 2);
    let asked = json!({ "name": "briefing", "arguments": { "task": "make tea" } });
    let briefing = client.ask("prompts/get", asked)["result"].clone();
    let text = briefing["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.starts_with("make tea") && text.contains("prefers tea</belief>"), "{text}");
    let keep = client.ask("prompts/get", json!({ "name": "keep" }))["result"].clone();
    assert!(keep["messages"][0]["content"]["text"].as_str().unwrap().contains("remember"));
    for asked in [json!({ "name": "briefing" }), json!({ "name": "nope" }), json!({})] {
        assert_eq!(client.ask("prompts/get", asked.clone())["error"]["code"], -32602, "{asked}");
    }
}

#[test]
fn titles_of_grains_are_one_line_of_seen_signs() {
    let (_dir, mut client) = everything();
    client.initialize(PLAIN);
    client.done("remember", json!({ "text": "one\ntwo\u{1b}[31m\u{202e}three\u{200b}" }));
    let listed = client.ask("resources/list", json!({}));
    assert_eq!(listed["result"]["resources"][0]["title"], "event: one two [31mthree");
}

#[test]
fn a_revision_that_is_no_text_is_not_named() {
    let (_dir, mut client) = everything();
    for version in [json!(null), json!(20260728)] {
        let meta = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": version } });
        let refused = client.ask("tools/list", meta);
        assert_eq!(refused["error"]["code"], -32602, "{version}");
    }
}
