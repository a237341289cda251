//! The life of a connection: the store that is opened meanwhile, calls at once, cancelled calls, the end.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use grainstore::cal::CancelHandle;
use grainstore::{OpenOptions, SessionOptions, Store};
use grainstore_rpc::{Client, ClientOptions, Code, Error};
use grainstore_serve::{McpOptions, Operations};
use serde_json::{Value, json};

use crate::kit::{Conversation, PLAIN, everything, options};

/// A server whose store is opened once the sender is used or dropped.
fn opened_later(dir: &std::path::Path) -> (std::sync::mpsc::Sender<()>, Conversation) {
    let (open, opened) = channel::<()>();
    let (opened, path) = (Mutex::new(opened), dir.join("memory.grains"));
    let options = McpOptions::new(move || {
        // Either way it is time.
        let _ = opened.lock().unwrap().recv();
        let options =
            ClientOptions::new(OpenOptions::new().create(true), SessionOptions::default());
        Client::open(&path, options)
    });
    (open, Conversation::with(options))
}

#[test]
fn the_handshake_waits_for_no_store_and_the_first_call_does() {
    let dir = tempfile::tempdir().unwrap();
    let (open, mut client) = opened_later(dir.path());
    client.initialize(PLAIN);
    client.ask("tools/list", json!({}));
    client.ask("prompts/list", json!({}));
    let first = client.request("tools/call", &json!({ "name": "recall", "arguments": {} }));
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}), "the call is still waiting");
    open.send(()).unwrap();
    let answered = client.hear();
    assert_eq!((&answered["id"], &answered["result"]["isError"]), (&json!(first), &json!(false)));
}

#[test]
fn a_cancelled_call_is_not_answered_and_the_others_are() {
    let dir = tempfile::tempdir().unwrap();
    let (open, mut client) = opened_later(dir.path());
    client.initialize(PLAIN);
    let fact = json!({ "subject": "a", "relation": "b", "object": "c" });
    let cancelled = client.request("tools/call", &json!({ "name": "remember", "arguments": fact }));
    let kept = client.request("tools/call", &json!({ "name": "recall", "arguments": {} }));
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": cancelled } });
    client.send(cancel.to_string());
    client.ask("ping", json!({}));
    open.send(()).unwrap();
    assert_eq!(client.hear()["id"], kept);
    // It was cancelled before its turn: nothing was written.
    assert_eq!(client.done("search", json!({}))["rows"], json!([]));
    let (rest, ended) = client.end();
    ended.unwrap();
    assert_eq!(rest, "");
}

#[test]
fn calls_at_once_are_all_answered_and_all_done() {
    let (_dir, mut client) = everything();
    client.initialize(PLAIN);
    let ids: BTreeSet<i64> = (0..100)
        .map(|at| {
            let fact = json!({ "subject": "a", "relation": format!("r{at}"), "object": "c" });
            client.request("tools/call", &json!({ "name": "remember", "arguments": fact }))
        })
        .collect();
    let answered: BTreeSet<i64> = (0..100)
        .map(|_| {
            let response = client.hear();
            assert_eq!(response["result"]["isError"], false, "{response}");
            response["id"].as_i64().unwrap()
        })
        .collect();
    assert_eq!(answered, ids);
    let counted = client.done("cal", json!({ "query": "RECALL | COUNT" }));
    assert!(counted["answer"].to_string().contains("100"), "{counted}");
}

#[test]
fn a_client_that_reads_nothing_until_it_has_sent_everything_is_served() {
    let (_dir, mut client) = everything();
    client.initialize(PLAIN);
    let text = "word ".repeat(10_000);
    let calls = 100;
    std::thread::scope(|scope| {
        // More than pipes and queues hold, both ways.
        let mut input = client.take_input();
        scope.spawn(move || {
            use std::io::Write;
            for id in 1_000..1_000 + calls {
                let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
                    "params": { "name": "remember", "arguments": { "text": format!("{id} {text}") } } });
                writeln!(input, "{call}").unwrap();
            }
        });
        for _ in 0..calls {
            assert_eq!(client.hear()["result"]["isError"], false);
        }
    });
}

#[test]
fn the_end_of_input_answers_what_was_asked_and_closes_the_store() {
    let (dir, mut client) = everything();
    client.initialize(PLAIN);
    let fact = json!({ "subject": "a", "relation": "b", "object": "c" });
    let id = client.request("tools/call", &json!({ "name": "remember", "arguments": fact }));
    let (rest, ended) = client.end();
    ended.unwrap();
    let response: Value = serde_json::from_str(rest.trim_end()).unwrap();
    assert_eq!(response["id"], id);
    let address = response["result"]["structuredContent"]["address"].as_str().unwrap();
    // It is closed: another opens it for itself at once, and what was answered is there.
    let store = Store::open(dir.path().join("memory.grains"), &OpenOptions::new()).unwrap();
    let session = store.session(SessionOptions::default());
    assert!(session.exists(&address.parse().unwrap()).unwrap());
}

#[test]
fn a_store_that_cannot_be_opened_is_told_to_each_call_until_it_can() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.grains");
    let failures = Mutex::new(2);
    let options = McpOptions::new(move || {
        let mut left = failures.lock().unwrap();
        if *left > 0 {
            *left -= 1;
            return Err(Error::new(Code::Key, "the key is wrong", "give another"));
        }
        let options =
            ClientOptions::new(OpenOptions::new().create(true), SessionOptions::default());
        Client::open(&path, options)
    });
    let mut client = Conversation::with(options);
    client.initialize(PLAIN);
    let codes: Vec<_> = (0..3).map(|_| client.call("recall", json!({}))).collect();
    // The first try may have been the one that was made in the background.
    assert!(
        codes
            .iter()
            .any(|result| result["isError"] == true && crate::kit::code(result) == "ERR_KEY")
    );
    assert_eq!(codes.last().unwrap()["isError"], false);
}

#[test]
fn several_servers_share_one_store() {
    let dir = tempfile::tempdir().unwrap();
    let mut first = Conversation::with(options(dir.path()));
    let mut second = Conversation::with(options(dir.path()));
    first.initialize(PLAIN);
    second.initialize(PLAIN);
    let address = first.fact("alice", "prefers", "tea");
    assert_eq!(second.done("search", json!({ "subject": "alice" }))["rows"][0]["address"], address);
    let other = second.fact("alice", "plays", "the cello");
    first.end().1.unwrap();
    assert_eq!(second.done("search", json!({ "relation": "plays" }))["rows"][0]["address"], other);
    second.fact("alice", "likes", "rain");
    second.end().1.unwrap();
}

#[test]
fn nobody_who_reads_ends_the_server() {
    let (_dir, mut client) = everything();
    client.initialize(PLAIN);
    client.fact("alice", "prefers", "tea");
    client.stop_reading().unwrap();
}

/// A store that answers once it is told to, or that half a minute has passed.
struct Slow {
    go: Mutex<Receiver<()>>,
    answered: Arc<AtomicBool>,
    closed: Arc<AtomicBool>,
}

impl Operations for Slow {
    fn call(&self, _: &str, _: &Value, _: &CancelHandle) -> grainstore_rpc::Result<Value> {
        // Whatever comes first.
        let _ = self.go.lock().unwrap().recv_timeout(Duration::from_secs(30));
        self.answered.store(true, SeqCst);
        Ok(json!({}))
    }

    fn close(&self) -> grainstore_rpc::Result<()> {
        self.closed.store(true, SeqCst);
        Ok(())
    }
}

#[test]
fn the_end_of_input_does_not_wait_for_a_call_that_does_not_end() {
    let (go, wait) = channel::<()>();
    let wait = Mutex::new(Some(wait));
    let (answered, closed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let of_store = (Arc::clone(&answered), Arc::clone(&closed));
    let mut client = Conversation::with(McpOptions::over(move || {
        let go = Mutex::new(wait.lock().unwrap().take().unwrap());
        let (answered, closed) = of_store.clone();
        Ok(Box::new(Slow { go, answered, closed }))
    }));
    client.initialize(PLAIN);
    for _ in 0..2 {
        client.request("tools/call", &json!({ "name": "search", "arguments": {} }));
    }
    let (rest, ended) = client.end();
    ended.unwrap();
    assert_eq!(rest, "");
    assert!(!answered.load(SeqCst), "it waited for the call");
    assert!(closed.load(SeqCst));
    drop(go);
}

#[test]
fn a_store_that_opens_after_the_end_is_closed() {
    let (go, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let (closed, told) = channel();
    let client = Conversation::with(McpOptions::over(move || {
        let in_time = wait.lock().unwrap().recv_timeout(Duration::from_secs(30)).is_ok();
        Ok(Box::new(Late { in_time, closed: closed.clone() }))
    }));
    client.end().1.unwrap();
    go.send(()).unwrap();
    assert!(told.recv().unwrap(), "the end waited for the store");
}

/// A store that tells when it is closed, and whether it was opened in time.
struct Late {
    in_time: bool,
    closed: std::sync::mpsc::Sender<bool>,
}

impl Operations for Late {
    fn call(&self, _: &str, _: &Value, _: &CancelHandle) -> grainstore_rpc::Result<Value> {
        Ok(json!({}))
    }

    fn close(&self) -> grainstore_rpc::Result<()> {
        // Nobody may listen any more.
        let _ = self.closed.send(self.in_time);
        Ok(())
    }
}
