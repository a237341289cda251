//! Streamed assemblies: events as lines of the command, and as notifications of rpc.

use std::io::{BufRead, BufReader, Read, Write};

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
    let options = call["stream_options"].as_array().unwrap();
    assert!(options.iter().all(|option| option.as_str().is_some_and(|text| !text.contains(','))));
    assert!(options.contains(&json!("chunks")), "{options:?}");
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

/// A store whose answer, in chunks, is more events than a pipe holds, so that whoever
/// writes it waits while nobody reads.
fn filled_beyond_a_pipe() -> (Place, String) {
    let place = Place::with_store();
    let walk = "a long walk along the river ".repeat(100);
    let grains: Vec<_> = (0..100).map(|n| belief(&format!("person {n}"), &walk)).collect();
    place.feed(&["put"], grains.join("\n")).done();
    let query =
        "ASSEMBLE FROM (RECALL LIMIT 100) BUDGET 16000 tokens STREAM { all, chunk_size = 20 }";
    (place, query.to_owned())
}

/// What the read log says last of a call in CAL.
fn last_call(place: &Place) -> Value {
    let entries = place.grain(&["audit", "--reads", "--json"]).done();
    entries.json_lines().last().unwrap()["call"].clone()
}

#[cfg(unix)]
#[test]
fn an_interrupt_cancels_the_stream_of_the_command_and_the_read_log_says_so() {
    let (place, query) = filled_beyond_a_pipe();
    let mut child = place.start(&["cal", "--stream", &query]);
    let mut events = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    events.read_line(&mut first).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&first).unwrap()["type"], "assembly_started");
    // It runs until the pipe is full, and is there still.
    let id = child.id().to_string();
    let told = std::process::Command::new("kill").args(["-INT", &id]).status().unwrap();
    assert!(told.success());
    // The handler has a thread of its own; nothing else is to be waited for.
    std::thread::sleep(std::time::Duration::from_millis(200));
    let mut rest = String::new();
    events.read_to_string(&mut rest).unwrap();
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{err}");
    assert!(err.contains("CAL-E082"), "{err}");
    let last: Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
    assert_eq!(last["type"], "cancelled");
    let call = last_call(&place);
    assert_eq!((&call["cancelled"], &call["cancel_reason"]), (&json!(true), &json!("host")));
    assert_eq!(call["events_emitted"], rest.lines().count() + 1);
    place.grain(&["verify", "--full"]).done();
}

#[test]
fn a_stream_nobody_reads_any_longer_is_cancelled_and_the_read_log_says_so() {
    let (place, query) = filled_beyond_a_pipe();
    let mut child = place.start(&["cal", "--stream", &query]);
    let mut events = BufReader::new(child.stdout.take().unwrap());
    events.read_line(&mut String::new()).unwrap();
    drop(events);
    child.wait().unwrap();
    let call = last_call(&place);
    assert_eq!((&call["cancelled"], &call["cancel_reason"]), (&json!(true), &json!("listener")));
}

#[test]
fn a_stream_of_rpc_nobody_reads_any_longer_is_cancelled_and_the_read_log_says_so() {
    let (place, query) = filled_beyond_a_pipe();
    let mut child = place.start(&["rpc"]);
    let mut requests = child.stdin.take().unwrap();
    let path = place.path().join("memory.grains");
    let open = json!({ "jsonrpc": "2.0", "id": 1, "method": "open", "params": { "path": path } });
    writeln!(requests, "{open}").unwrap();
    writeln!(requests, "{}", asked(2, &json!({ "query": query }))).unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap());
    let (mut opened, mut event) = (String::new(), String::new());
    answers.read_line(&mut opened).unwrap();
    answers.read_line(&mut event).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&event).unwrap()["method"], "event", "{opened}");
    drop(answers);
    child.wait().unwrap();
    let call = last_call(&place);
    assert_eq!((&call["cancelled"], &call["cancel_reason"]), (&json!(true), &json!("listener")));
}

#[cfg(unix)]
#[test]
fn a_signal_cancels_the_stream_of_rpc_and_the_read_log_says_so() {
    for (signal, by_token) in [("-TERM", false), ("-INT", false), ("-HUP", false), ("-TERM", true)]
    {
        if is_ignored(signal) {
            println!("skipped: {signal} is ignored by who started this test");
            continue;
        }
        let (place, query) = filled_beyond_a_pipe();
        let mut child = place.start(&["rpc"]);
        let mut requests = child.stdin.take().unwrap();
        let path = place.path().join("memory.grains");
        let open =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "open", "params": { "path": path } });
        writeln!(requests, "{open}").unwrap();
        let mut answers = BufReader::new(child.stdout.take().unwrap());
        answers.read_line(&mut String::new()).unwrap();
        let params = match by_token {
            true => {
                let prepare = json!({ "jsonrpc": "2.0", "id": 5, "method": "prepare",
                    "params": { "query": query } });
                writeln!(requests, "{prepare}").unwrap();
                let mut prepared = String::new();
                answers.read_line(&mut prepared).unwrap();
                let prepared: Value = serde_json::from_str(&prepared).unwrap();
                json!({ "token": prepared["result"]["token"] })
            }
            false => json!({ "query": query }),
        };
        writeln!(requests, "{}", asked(2, &params)).unwrap();
        answers.read_line(&mut String::new()).unwrap();
        let id = child.id().to_string();
        assert!(std::process::Command::new("kill").args([signal, &id]).status().unwrap().success());
        std::thread::sleep(std::time::Duration::from_millis(200));
        let mut rest = String::new();
        answers.read_to_string(&mut rest).unwrap();
        // Its stdin is still open: the process ended by itself.
        assert!(!child.wait().unwrap().success());
        assert_eq!(rest.contains(r#""type":"cancelled""#), !by_token, "{signal}");
        let call = last_call(&place);
        let cancelled = (&call["cancelled"], &call["cancel_reason"]);
        let reason = if by_token { "listener" } else { "host" };
        assert_eq!(cancelled, (&json!(true), &json!(reason)), "{signal}");
        // Between requests a signal ends it as it ends any process.
        let mut child = place.start(&["rpc"]);
        let mut requests = child.stdin.take().unwrap();
        writeln!(requests, "{}", json!({ "jsonrpc": "2.0", "id": 1, "method": "hello" })).unwrap();
        let mut answers = BufReader::new(child.stdout.take().unwrap());
        answers.read_line(&mut String::new()).unwrap();
        let id = child.id().to_string();
        assert!(std::process::Command::new("kill").args([signal, &id]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), None, "{signal}");
    }
}

/// Whether a child of this process ignores a signal, as what `nohup` or the background of a script starts does.
#[cfg(unix)]
fn is_ignored(signal: &str) -> bool {
    let number = match signal {
        "-HUP" => 1,
        "-INT" => 2,
        _ => 15,
    };
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (number - 1) & 1 == 1)
}

/// The signal that ended a process whose events nobody read when a signal came so much later.
#[cfg(unix)]
fn ended_unread(
    place: &Place,
    query: &str,
    signal: &str,
    by_rpc: bool,
    later: std::time::Duration,
) -> Option<i32> {
    use std::os::unix::process::ExitStatusExt;

    let arguments = if by_rpc { &["rpc"][..] } else { &["cal", "--stream", query] };
    let mut child = place.start(arguments);
    let mut requests = child.stdin.take().unwrap();
    let mut events = BufReader::new(child.stdout.take().unwrap());
    if by_rpc {
        let path = place.path().join("memory.grains");
        let open =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "open", "params": { "path": path } });
        writeln!(requests, "{open}").unwrap();
        events.read_line(&mut String::new()).unwrap();
        writeln!(requests, "{}", asked(2, &json!({ "query": query }))).unwrap();
    }
    events.read_line(&mut String::new()).unwrap();
    std::thread::sleep(later);
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args([signal, &id]).status().unwrap().success());
    child.wait().unwrap().signal()
}

#[cfg(unix)]
#[test]
fn a_signal_ends_a_stream_that_nobody_reads_and_the_read_log_says_so() {
    let (place, query) = filled_beyond_a_pipe();
    for (signal, number, by_rpc) in
        [("-TERM", 15, false), ("-INT", 2, false), ("-HUP", 1, false), ("-TERM", 15, true)]
    {
        // Before the pipe is full the last event is written, as to a reader.
        let is_ended = |later: &u64| {
            let later = std::time::Duration::from_millis(*later);
            ended_unread(&place, &query, signal, by_rpc, later) == Some(number)
        };
        assert!([200, 2_000, 10_000].iter().any(is_ended), "{signal} {by_rpc}");
        let call = last_call(&place);
        let cancelled = (&call["cancelled"], &call["cancel_reason"]);
        assert_eq!(cancelled, (&json!(true), &json!("listener")), "{signal} {by_rpc}");
        place.grain(&["verify", "--full"]).done();
    }
}
