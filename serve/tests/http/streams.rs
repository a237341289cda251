//! Streams of CAL over HTTP: events, reconnection, caps and cancellation; and the WebSocket.

use serde_json::{Value, json};

use crate::kit::{Lines, Served};
use crate::socket::Socket;

pub(crate) const STATEMENT: &str =
    "ASSEMBLE FROM (RECALL beliefs) BUDGET 2000 tokens STREAM { all, chunk_size = 20 }";

/// A server with as many beliefs.
pub(crate) fn with_beliefs(count: usize) -> (Served, String) {
    let served = Served::new();
    let token = served.operator();
    for number in 0..count {
        served.put(&token, "team", &format!("subject {number}"), "tea");
    }
    (served, token)
}

pub(crate) fn start(served: &Served, token: &str, accept: &str) -> Lines {
    let (bearer, length) = (format!("Bearer {token}"), STATEMENT.len().to_string());
    let headers = [
        ("Authorization", &*bearer),
        ("Accept", accept),
        ("Content-Type", "text/cal"),
        ("Content-Length", &length),
    ];
    served.lines(served.head("POST /v1/cal", &headers) + STATEMENT)
}

fn resume(served: &Served, token: &str, place: &str, last: u64) -> Lines {
    let (bearer, last) = (format!("Bearer {token}"), last.to_string());
    let headers = [("Authorization", &*bearer), ("Last-Event-ID", &last)];
    served.lines(served.head(&format!("GET {place}"), &headers))
}

#[test]
fn events_come_in_order_and_join_to_the_text() {
    let (served, token) = with_beliefs(30);
    let mut stream = start(&served, &token, "text/event-stream");
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    let (mut text, mut names, mut next) = (String::new(), Vec::new(), 0);
    while let Some((number, name, event)) = stream.event() {
        assert_eq!(number, next);
        next += 1;
        assert_eq!(event["type"], name);
        text.push_str(event["content"].as_str().unwrap_or_default());
        names.push(name);
    }
    assert_eq!(
        (names[0].as_str(), names.last().unwrap().as_str()),
        ("assembly_started", "assembly_completed")
    );
    let whole = served.post(
        &token,
        "/v1/cal",
        &json!({ "query": STATEMENT.split(" STREAM").next().unwrap() }),
    );
    assert_eq!(whole.json()["formatted_context"]["text"], text);
    let mut lines = start(&served, &token, "application/x-ndjson");
    let first: Value = serde_json::from_str(&lines.line().unwrap()).unwrap();
    assert_eq!(first["type"], "assembly_started");
}

#[test]
fn a_stream_is_taken_up_again_behind_the_last_event_by_its_owner_alone() {
    let (served, token) = with_beliefs(30);
    let mut all = Vec::new();
    let mut stream = start(&served, &token, "text/event-stream");
    let place = stream.header("content-location").unwrap().to_owned();
    for _ in 0..4 {
        all.push(stream.event().unwrap());
    }
    drop(stream);
    let other = served.tenant("team");
    assert_eq!(served.get(&other, &place).refusal(), (410, "CAL-E081".into()));
    let mut stream = resume(&served, &token, &place, 3);
    while let Some(event) = stream.event() {
        all.push(event);
    }
    let numbers: Vec<_> = all.iter().map(|(number, ..)| *number).collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
    assert_eq!(all.last().unwrap().1, "assembly_completed");
    // Again from the first: who comes late gets what is kept.
    let again = resume(&served, &token, &place, 0).event().unwrap();
    assert_eq!(again.0, 1);
    let beyond = [("Authorization", &*format!("Bearer {token}")), ("Last-Event-ID", "9999")]
        .map(|(n, v)| (n, v.to_owned()));
    let beyond: Vec<_> = beyond.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(
        served.raw(served.head(&format!("GET {place}"), &beyond)).refusal(),
        (410, "CAL-E081".into())
    );
    assert_eq!(served.get(&token, "/v1/cal/streams/nothing").refusal(), (410, "CAL-E081".into()));
}

#[test]
fn a_statement_that_is_refused_before_it_begins_is_a_refusal() {
    let (served, token) = with_beliefs(1);
    let bearer = format!("Bearer {token}");
    for (statement, status, code) in
        [("RECALL beliefs", 422, "CAL-E079"), ("ASSEMBLE", 422, "CAL-E002")]
    {
        let length = statement.len().to_string();
        let headers = [
            ("Authorization", &*bearer),
            ("Accept", "text/event-stream"),
            ("Content-Type", "text/cal"),
            ("Content-Length", &length),
        ];
        let refused = served.raw(served.head("POST /v1/cal", &headers) + statement);
        assert_eq!(refused.refusal(), (status, code.into()), "{statement}: {}", refused.text());
    }
    // None of them holds a place.
    for _ in 0..5 {
        assert!(start(&served, &token, "text/event-stream").event().is_some());
    }
}

/// Starts a stream and pauses it at once: the kinds of the events that came nevertheless, `None` where it had ended
/// before its pause.
fn start_paused(socket: &mut Socket, request: &str) -> Option<Vec<String>> {
    socket.say_all(&[
        json!({ "action": "assemble", "request_id": request, "payload": { "query": STATEMENT } }),
        json!({ "action": "pause", "request_id": request }),
    ]);
    let mut kinds = Vec::new();
    // Their answers come behind more events than a stream that goes on would have.
    for _ in 0..100 {
        socket.say(&json!({ "action": "none" }));
        loop {
            let event = socket.hear().unwrap();
            if event["request_id"].is_null() {
                break;
            }
            assert_eq!(event["request_id"], request, "{event}");
            kinds.push(event["type"].as_str().unwrap().to_owned());
        }
    }
    (!kinds.iter().any(|kind| kind == "assembly_completed")).then_some(kinds)
}

/// A stream that is paused, by the id of its request, and the kinds of its events until then.
pub(crate) fn paused(socket: &mut Socket) -> (String, Vec<String>) {
    (0..20)
        .map(|number| format!("p{number}"))
        .find_map(|request| Some((request.clone(), start_paused(socket, &request)?)))
        .expect("every stream ended before its pause")
}

#[test]
fn a_socket_starts_pauses_resumes_and_cancels_streams() {
    let (served, token) = with_beliefs(30);
    let bearer = format!("Bearer {token}");
    let mut socket = Socket::open(&served, &[("Authorization", &bearer)])
        .unwrap_or_else(|status| panic!("{status}"));
    socket.say(
        &json!({ "action": "assemble", "request_id": "a", "payload": { "query": STATEMENT } }),
    );
    let mut kinds = Vec::new();
    while kinds.last().is_none_or(|kind| kind != "assembly_completed") {
        let event = socket.hear().unwrap();
        assert_eq!(event["request_id"], "a", "{event}");
        kinds.push(event["type"].as_str().unwrap().to_owned());
    }
    assert_eq!(kinds[0], "assembly_started");

    let (request, kinds) = paused(&mut socket);
    assert!(kinds.iter().any(|kind| kind == "budget_allocated"), "{kinds:?}");
    socket.say(&json!({ "action": "resume", "request_id": request }));
    let mut last = String::new();
    while last != "assembly_completed" {
        last = socket.hear().unwrap()["type"].as_str().unwrap().to_owned();
    }
    for (message, said) in [
        (json!({ "action": "cancel", "request_id": "none" }), "no such stream"),
        (json!({ "action": "assemble", "payload": {} }), "request_id"),
        (json!({ "action": "assemble", "request_id": "c" }), "payload"),
        (json!({ "action": "assemble", "request_id": "c", "payload": { "tier": 1 } }), "tier"),
        (
            json!({ "action": "assemble", "request_id": "c", "payload": { "query": "RECALL" } }),
            "CAL-E079",
        ),
        (json!({ "action": "dance" }), "action"),
        (json!([]), "action"),
    ] {
        socket.say(&message);
        let refused = socket.hear().unwrap();
        assert_eq!(refused["type"], "refused", "{message}: {refused}");
        assert!(refused["problem"].to_string().contains(said), "{message}: {refused}");
    }
}

#[test]
fn a_socket_wants_a_token_or_the_origin_of_the_console() {
    let (served, _) = with_beliefs(0);
    assert_eq!(Socket::open(&served, &[]).err(), Some(401));
    let body = json!({ "code": served.code }).to_string();
    let length = body.len().to_string();
    let answer =
        served.raw(served.head("POST /console/session", &[("Content-Length", &length)]) + &body);
    let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    assert_eq!(Socket::open(&served, &[("Cookie", &cookie)]).err(), Some(403));
    let evil = [("Cookie", &*cookie), ("Origin", "http://evil.example")];
    assert_eq!(Socket::open(&served, &evil).err(), Some(403));
    let origin = format!("http://{}", served.address);
    assert!(Socket::open(&served, &[("Cookie", &cookie), ("Origin", &origin)]).is_ok());
    let plain = served.get(&served.operator(), "/v1/cal/socket");
    assert_eq!(plain.status, 426, "{plain:?}");
}
