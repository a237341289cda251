//! Several sessions that write at the same time.

use std::path::Path;
use std::sync::Mutex;

use grainstore::cal::CancelHandle;
use grainstore::{OpenOptions, SessionOptions};
use grainstore_rpc::{Client, ClientOptions, Result};
use grainstore_serve::{McpOptions, Operations};
use serde_json::{Value, json};

use crate::kit::{Conversation, PLAIN, code, options, options_of};

/// What another session does just before this one calls a method for the first time: the method, and the call.
type Interruption = (&'static str, &'static str, Value);

/// A store in which another session writes between what this one looks at and what it writes.
struct Interrupted {
    store: Client,
    by: Mutex<Vec<Interruption>>,
}

impl Operations for Interrupted {
    fn call(&self, method: &str, params: &Value, cancel: &CancelHandle) -> Result<Value> {
        let next = {
            let mut by = self.by.lock().unwrap();
            let is_next = by.first().is_some_and(|(before, ..)| *before == method);
            is_next.then(|| by.remove(0))
        };
        if let Some((_, other, params)) = next {
            Operations::call(&self.store, other, &params, cancel).unwrap();
        }
        Operations::call(&self.store, method, params, cancel)
    }

    fn close(&self) -> Result<()> {
        assert!(self.by.lock().unwrap().is_empty(), "nobody came in between");
        self.store.close()
    }
}

/// A conversation in which another session comes in between.
fn interrupted(dir: &Path, by: Vec<Interruption>) -> Conversation {
    let path = dir.join("memory.grains");
    Conversation::with(McpOptions::over(move || {
        let open = OpenOptions::new().create(true);
        let store = Client::open(&path, ClientOptions::new(open, SessionOptions::default()))?;
        Ok(Box::new(Interrupted { store, by: Mutex::new(by.clone()) }))
    }))
}

fn fact(object: &str) -> Value {
    json!({ "subject": "alice", "relation": "drinks", "object": object, "replaces": "latest" })
}

/// What another session puts.
fn other(object: &str, namespace: &str) -> Value {
    json!({ "grain": { "type": "belief", "subject": "alice", "relation": "drinks", "object": object,
        "confidence": 0.8, "created_at": 1_768_471_200_000_i64, "namespace": namespace } })
}

#[track_caller]
fn current(client: &mut Conversation) -> Vec<Value> {
    let found = client.done("search", json!({ "subject": "alice" }));
    let rows = found["rows"].as_array().unwrap();
    rows.iter().map(|row| row["grain"]["object"].clone()).collect()
}

#[test]
fn a_first_fact_of_another_session_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let by = vec![("put", "put", other("coffee", "shared"))];
    let mut client = interrupted(dir.path(), by);
    client.initialize(PLAIN);
    let tea = client.done("remember", fact("tea"));
    assert!(tea["superseded"].is_string(), "{tea}");
    assert_eq!(current(&mut client), ["tea"]);
    let history = client.done("history", json!({ "address": tea["address"] }));
    assert_eq!(history["rows"][1]["grain"]["object"], "coffee");
    client.end().1.unwrap();
}

#[test]
fn a_first_fact_replaces_what_is_where_it_belongs_and_nothing_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let mut newer = other("milk", "team");
    newer["grain"]["created_at"] = json!(1_768_471_200_001_i64);
    let by = vec![("put", "put", other("coffee", "shared")), ("latest", "put", newer)];
    let mut client = interrupted(dir.path(), by);
    client.initialize(PLAIN);
    client.done("remember", fact("tea"));
    assert_eq!(current(&mut client), ["tea", "milk"]);
    client.end().1.unwrap();
}

#[test]
fn a_fact_that_another_session_put_in_place_meanwhile_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Conversation::with(options(dir.path()));
    client.initialize(PLAIN);
    let tea = client.done("remember", fact("tea"))["address"].clone();
    client.end().1.unwrap();
    let mut coffee = other("coffee", "shared");
    coffee["old"] = tea;
    let mut client = interrupted(dir.path(), vec![("supersede", "supersede", coffee)]);
    client.initialize(PLAIN);
    client.done("remember", fact("milk"));
    assert_eq!(current(&mut client), ["milk"]);
    let history = client.done("history", json!({ "subject": "alice", "relation": "drinks" }));
    assert_eq!(history["rows"].as_array().unwrap().len(), 3, "{history}");
    client.end().1.unwrap();
}

#[test]
fn an_address_that_was_replaced_meanwhile_is_a_conflict() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = Conversation::with(options(dir.path()));
    client.initialize(PLAIN);
    let tea = client.done("remember", fact("tea"))["address"].clone();
    client.done("remember", fact("coffee"));
    let mut stale = fact("milk");
    stale["replaces"] = tea;
    assert_eq!(code(&client.call("remember", stale)), "ERR_CONFLICT");
    assert_eq!(current(&mut client), ["coffee"]);
}

/// Has sessions remember one fact at once, round by round, some of them the same; each must be acknowledged, none be
/// retracted, and one be current.
fn race(dir: &Path, mut sessions: Vec<Conversation>, user: Option<&str>) {
    for session in &mut sessions {
        session.initialize(PLAIN);
        session.call("search", json!({}));
    }
    let mut looker = Conversation::with(match user {
        Some(user) => options_of(dir, "shared", user),
        None => options(dir),
    });
    looker.initialize(PLAIN);
    for round in 0..12 {
        let subject = format!("s{round}");
        for (at, session) in sessions.iter_mut().enumerate() {
            let fact = json!({ "subject": subject, "relation": "is", "object": format!("v{}", at / 2),
                "replaces": "latest" });
            session.request("tools/call", &json!({ "name": "remember", "arguments": fact }));
        }
        let answers: Vec<_> = sessions.iter_mut().map(Conversation::hear).collect();
        for answer in answers {
            assert_eq!(answer["result"]["isError"], false, "{answer}");
            let address = &answer["result"]["structuredContent"]["address"];
            let uri = format!("grain://{}", address.as_str().unwrap());
            let read = looker.ask("resources/read", json!({ "uri": uri }));
            let text = read["result"]["contents"][0]["text"].as_str().unwrap();
            let stored: Value = serde_json::from_str(text).unwrap();
            assert_ne!(stored["state"]["verification_status"], "retracted", "{stored}");
        }
        let found = looker.done("search", json!({ "subject": subject }));
        assert_eq!(found["rows"].as_array().unwrap().len(), 1, "{found}");
    }
}

#[test]
fn sessions_that_replace_the_latest_at_once_leave_one_and_lose_none() {
    let dir = tempfile::tempdir().unwrap();
    let sessions = (0..6).map(|_| Conversation::with(options(dir.path()))).collect();
    race(dir.path(), sessions, None);
}

#[test]
fn sessions_of_a_user_that_replace_the_latest_at_once_leave_one() {
    let dir = tempfile::tempdir().unwrap();
    let of_ann = || Conversation::with(options_of(dir.path(), "shared", "ann"));
    let sessions = (0..6).map(|_| of_ann()).collect();
    race(dir.path(), sessions, Some("ann"));
}
