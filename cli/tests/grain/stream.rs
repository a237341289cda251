//! Streamed assemblies: events as lines of the command, and as notifications of rpc.

use serde_json::{Value, json};

use crate::kit::{Place, belief};

const QUERY: &str =
    "ASSEMBLE FROM a: (RECALL ABOUT \"alice\"), g: (RECALL goals) STREAM { all, chunk_size = 20 }";

fn filled() -> Place {
    let place = Place::with_store();
    for object in ["tea", "milk", "a very long walk along the river"] {
        place.put(&belief("alice", object));
    }
    place
}

/// The text of the chunks among these events.
fn text<'e>(events: impl IntoIterator<Item = &'e Value>) -> String {
    events.into_iter().filter_map(|event| event["content"].as_str()).collect()
}

#[test]
fn the_command_prints_an_event_a_line_and_then_nothing() {
    let place = filled();
    let now = ["--now", "2026-03-18T15:30:00Z"];
    let run = |more: &[&str]| place.grain(&[&["cal"], &now[..], more].concat());
    let streamed = run(&["--stream", QUERY]).done();
    let events = streamed.json_lines();
    assert_eq!(events.first().unwrap()["type"], "assembly_started");
    assert_eq!(events.last().unwrap()["type"], "assembly_completed");
    assert!(events.iter().filter(|event| event["type"] == "chunk").count() > 1);
    let whole = run(&[QUERY]).done();
    assert_eq!(text(&events), whole.text());
    assert!(whole.err.contains("CAL-W004"), "{}", whole.err);
    assert_eq!(streamed.err, "");
    assert_eq!(run(&["--stream", QUERY]).out, streamed.out, "the same bytes");
    let toon = run(&["--stream", "--as", "toon", QUERY]).done().json_lines();
    assert_eq!(toon.last().unwrap()["summary"]["format"], "toon");
}

#[test]
fn the_command_tells_an_error_in_the_stream_and_beside_it() {
    let place = filled();
    let refused = place.grain(&["cal", "--stream", "RECALL beliefs"]);
    assert_eq!((refused.code, refused.error_code()), (1, "CAL-E079".to_owned()));
    assert_eq!(refused.text(), "");
    let small = "ASSEMBLE FROM (RECALL) BUDGET 1 tokens STREAM { chunks }";
    let failed = place.grain(&["cal", "--stream", small]);
    assert_eq!((failed.code, failed.error_code()), (1, "CAL-E030".to_owned()));
    let events = failed.json_lines();
    assert_eq!((events.len(), &events[0]["code"]), (1, &json!("CAL-E030")));
    let usage = place.grain(&["cal", "--stream", "--evolve", QUERY]);
    assert_eq!(usage.code, 2);
}

fn asked(id: u32, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": "cal_stream", "params": params }).to_string()
}

#[test]
fn rpc_sends_the_events_before_the_answer() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let grain: Value = serde_json::from_str(&belief("alice", "tea")).unwrap();
    rpc.result("put", &json!({ "grain": grain }));
    let (told, answer) = rpc.ask_hearing(asked(7, &json!({ "query": QUERY })));
    for notification in &told {
        assert_eq!(
            (&notification["jsonrpc"], &notification["method"]),
            (&json!("2.0"), &json!("event"))
        );
        assert_eq!(notification.get("id"), None);
        assert_eq!(notification["params"]["request"], 7);
    }
    let events: Vec<_> = told.iter().map(|notification| &notification["params"]["event"]).collect();
    assert_eq!(answer["id"], 7);
    let result = &answer["result"];
    assert_eq!(result["events"], events.len());
    assert_eq!(result["assembly_id"], events[0]["assembly_id"]);
    assert_eq!(result["_cal"]["statement_type"], "assemble");
    let whole = rpc.result("cal", &json!({ "query": QUERY }));
    assert_eq!(whole["formatted_context"]["text"], text(events));

    let token = rpc.result("prepare", &json!({ "query": QUERY }))["token"].clone();
    let (told, answer) = rpc.ask_hearing(asked(8, &json!({ "token": token })));
    assert_eq!(answer["result"]["events"], told.len());
    assert!(told.len() > 8, "{told:?}");
    let entries = rpc.result("audit", &json!({ "reads": true }))["entries"].clone();
    let call = entries.as_array().unwrap().last().unwrap()["call"].clone();
    assert_eq!(call["stream_enabled"], true);
    assert_eq!(call["events_emitted"], told.len());
    assert_eq!((&call["cancelled"], &call["sources_failed"]), (&json!(false), &json!(0)));
}

#[test]
fn rpc_answers_a_refusal_without_events_and_a_failure_behind_them() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let small = "ASSEMBLE FROM (RECALL) BUDGET 1 tokens STREAM";
    for (params, code, events) in [
        (json!({ "query": "RECALL" }), "CAL-E079", 0),
        (json!({ "query": "ASSEMBLE FROM (RECALL) STREAM { chunk_size = 5 }" }), "CAL-E078", 0),
        (json!({ "query": QUERY, "namespace": "x", "user_id": "u" }), "", 0),
        (json!({ "token": "none" }), "ERR_TOKEN", 0),
        (json!({ "query": small }), "CAL-E030", 5),
    ] {
        let (told, answer) = rpc.ask_hearing(asked(1, &params));
        match code {
            "" => assert_eq!(answer["error"], Value::Null, "{params}"),
            code => {
                assert_eq!(answer["error"]["data"]["code"], code, "{params}");
                assert_eq!(told.len(), events, "{params}: {told:?}");
            }
        }
    }
    for params in
        [json!({}), json!({ "query": QUERY, "token": {} }), json!({ "token": {}, "now": 5 })]
    {
        let (told, answer) = rpc.ask_hearing(asked(1, &params));
        assert_eq!((told.len(), &answer["error"]["code"]), (0, &json!(-32602)), "{params}");
    }
    rpc.send(
        json!({ "jsonrpc": "2.0", "method": "cal_stream", "params": { "query": QUERY } })
            .to_string(),
    );
    let (told, _) =
        rpc.ask_hearing(json!({ "jsonrpc": "2.0", "id": 2, "method": "hello" }).to_string());
    assert!(told.is_empty(), "a request without an id has no events");
}
