//! Answers of bounded size, and what they go on with.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use grainstore::cal::CancelHandle;
use grainstore_serve::{McpOptions, Operations, serve_mcp};
use serde_json::{Value, json};

use crate::kit::{Conversation, PLAIN, everything, modern, options};

/// Words of some length, which differ.
fn long(at: usize) -> String {
    format!("note{at} ").repeat(2_000)
}

#[test]
fn a_recall_keeps_to_its_budget_and_its_pages_make_a_whole() {
    let (_dir, mut client) = everything();
    client.initialize(PLAIN);
    let mut stored: Vec<_> = (0..60)
        .map(|at| client.fact("alice", &format!("likes{at}"), "a cup of tea in the afternoon"))
        .collect();
    for form in ["sml", "rows"] {
        let mut seen = Vec::new();
        let mut cursor = Value::Null;
        let mut pages = 0;
        loop {
            let mut asked = json!({ "subject": "alice", "budget_tokens": 300, "as": form });
            if cursor.is_string() {
                asked["cursor"] = cursor;
            }
            let page = client.done("recall", asked);
            let size = page
                .get("context")
                .map_or(page["rows"].to_string().len(), |text| text.as_str().unwrap().len());
            assert!(size < 300 * 6, "{size}");
            if form == "sml" {
                assert!(page["tokens"].as_u64().unwrap() <= 300, "{page}");
                let shown = page["context"].as_str().unwrap().matches("<belief").count();
                assert_eq!(
                    shown,
                    page["rows"].as_array().unwrap().len(),
                    "the rows are what is shown"
                );
            }
            seen.extend(
                page["rows"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|row| row["address"].as_str().unwrap().to_owned()),
            );
            cursor = page["next_cursor"].clone();
            pages += 1;
            if cursor.is_null() {
                break;
            }
        }
        assert!(pages > 2, "{pages}");
        seen.sort();
        stored.sort();
        assert_eq!(seen, stored, "{form}");
    }
    let asked = json!({ "subject": "alice", "budget_tokens": 300 });
    let cursor = client.done("recall", asked)["next_cursor"].clone();
    let other = json!({ "subject": "bob", "cursor": cursor });
    assert_eq!(client.refusal("recall", other), "ERR_CURSOR");
}

#[test]
fn a_grain_larger_than_the_budget_is_named_and_passed_over() {
    let (_dir, mut client) = everything();
    client.initialize(PLAIN);
    let small = client.fact("alice", "prefers", "tea");
    let big = client.fact("alice", "wrote", &long(0));
    let result = client.call("recall", json!({ "subject": "alice", "budget_tokens": 100 }));
    let page = &result["structuredContent"];
    assert!(page["tokens"].as_u64().unwrap() <= 100);
    assert!(page["context"].as_str().unwrap().contains("prefers tea"), "{page}");
    assert_eq!(
        (&page["rows"][0]["address"], &page["omitted"][0]["address"]),
        (&json!(small), &json!(big))
    );
    let note = result["content"][1]["text"].as_str().unwrap();
    assert_eq!(note, format!("Too large for 100 tokens: grain://{big}"));
    assert_eq!(page["next_cursor"], Value::Null);
    // Alone it is passed over, too.
    let alone = client.done("recall", json!({ "query": "note0", "budget_tokens": 100 }));
    assert_eq!((&alone["rows"], &alone["omitted"][0]["address"]), (&json!([]), &json!(big)));
    assert_eq!(alone["next_cursor"], Value::Null);
    let nothing = client.done("recall", json!({ "query": "unheard" }));
    assert_eq!((&nothing["rows"], &nothing["next_cursor"]), (&json!([]), &Value::Null));
}

fn fill(client: &mut Conversation) {
    for at in 0..50 {
        client.done("remember", json!({ "text": long(at) }));
    }
}

#[test]
fn no_answer_is_larger_than_its_bound() {
    let (_dir, mut client) = everything();
    client.initialize(PLAIN);
    fill(&mut client);
    let found = client.call("search", json!({ "limit": 50 }));
    assert!(found.to_string().len() < 100_000, "{}", found.to_string().len());
    let rows = found["structuredContent"]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 50);
    assert!(rows.iter().all(|row| row["clipped"] == true));
    assert_eq!(found["content"][1]["type"], "resource_link");
    assert_eq!(found["content"].as_array().unwrap().len(), 6, "few links");
    let uri = &found["content"][1]["uri"];
    let whole = client.ask("resources/read", json!({ "uri": uri }));
    assert!(whole.to_string().len() > 14_000);
    let recalled = client.call("recall", json!({ "as": "rows", "budget_tokens": 8_000 }));
    assert!(recalled.to_string().len() < 100_000);
    assert_eq!(client.refusal("cal", json!({ "query": "RECALL LIMIT 50" })), "ERR_LIMIT");
    let listed = client.ask("resources/list", json!({}));
    assert!(listed.to_string().len() < 20_000);
}

#[test]
fn a_long_history_comes_in_pages() {
    let (_dir, mut client) = everything();
    client.initialize(PLAIN);
    for at in 0..30 {
        client.done("remember", json!({ "subject": "a", "relation": "counts", "object": at.to_string(), "replaces": "latest" }));
    }
    let mut objects = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let mut asked = json!({ "subject": "a", "relation": "counts", "limit": 13 });
        if cursor.is_string() {
            asked["cursor"] = cursor;
        }
        let page = client.done("history", asked);
        objects.extend(
            page["rows"]
                .as_array()
                .unwrap()
                .iter()
                .map(|row| row["grain"]["object"].as_str().unwrap().parse::<u32>().unwrap()),
        );
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(objects, (0..30).rev().collect::<Vec<_>>());
}

#[test]
fn a_grain_too_large_to_be_stored_is_refused_and_nothing_is_lost() {
    let (_dir, mut client) = everything();
    client.initialize(PLAIN);
    client.fact("alice", "prefers", "tea");
    assert_eq!(client.refusal("remember", json!({ "text": "x".repeat(2 << 20) })), "ERR_TOO_LARGE");
    let many: Vec<_> = (0..200_000).map(|at| format!("tag{at}")).collect();
    client.refusal("remember", json!({ "text": "a", "tags": many }));
    let words = "word ".repeat(100_000);
    client.refusal("search", json!({ "text": words }));
    client.refusal("recall", json!({ "query": words }));
    assert_eq!(client.done("search", json!({}))["rows"].as_array().unwrap().len(), 1);
}

/// A client that sends requests as fast as they are read, and reads answers slowly.
#[derive(Clone, Default)]
struct Hasty {
    sent: Arc<AtomicUsize>,
    answered: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

/// Requests of the hasty client.
const REQUESTS: usize = 1_500;

impl Read for Hasty {
    fn read(&mut self, mut buffer: &mut [u8]) -> std::io::Result<usize> {
        let id = self.sent.fetch_add(1, SeqCst);
        if id >= REQUESTS {
            return Ok(0);
        }
        self.most.fetch_max(id.saturating_sub(self.answered.load(SeqCst)), SeqCst);
        let params = json!({ "_meta": modern(PLAIN) });
        let request =
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": params });
        let line = format!("{request}\n");
        buffer.write_all(line.as_bytes())?;
        Ok(line.len())
    }
}

impl Write for Hasty {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        thread::sleep(Duration::from_millis(1));
        self.answered.fetch_add(1, SeqCst);
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn nothing_more_is_read_while_many_requests_are_not_answered() {
    let dir = tempfile::tempdir().unwrap();
    let client = Hasty::default();
    serve_mcp(client.clone(), client.clone(), options(dir.path())).unwrap();
    assert_eq!(client.answered.load(SeqCst), REQUESTS);
    let most = client.most.load(SeqCst);
    assert!(most <= 258, "{most} requests were read and not answered");
}

/// A client that cancels each call once that waits for a thread: others have all of them, and a ping that came after it
/// was answered.
struct Fickle {
    sent: Arc<AtomicUsize>,
    entered: Arc<AtomicUsize>,
    answered: mpsc::Receiver<()>,
}

/// What the server says to the fickle client.
struct Pongs(mpsc::Sender<()>);

impl Read for Fickle {
    fn read(&mut self, mut buffer: &mut [u8]) -> std::io::Result<usize> {
        let id = self.sent.fetch_add(1, SeqCst);
        if id > FICKLE_REQUESTS {
            return Ok(0);
        }
        let message = |told: Value| format!("{told}\n");
        let mut lines = String::new();
        if id > 0 {
            // The server has ended if nobody answers.
            let _ = self.answered.recv();
        }
        while id == THREADS && self.entered.load(SeqCst) < THREADS {
            thread::sleep(Duration::from_millis(1));
        }
        if id > THREADS {
            lines += &message(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
                "params": { "requestId": id - 1 } }));
        }
        if id < FICKLE_REQUESTS {
            let call =
                json!({ "_meta": modern(PLAIN), "name": "remember", "arguments": { "text": "a" } });
            lines += &message(
                json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call }),
            );
            lines += &message(json!({ "jsonrpc": "2.0", "id": "ping", "method": "ping",
                "params": { "_meta": modern(PLAIN) } }));
        }
        buffer.write_all(lines.as_bytes())?;
        Ok(lines.len())
    }
}

impl Write for Pongs {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        if String::from_utf8_lossy(line).contains("\"ping\"") {
            // Nobody reads it at the end.
            let _ = self.0.send(());
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Calls of the fickle client.
const FICKLE_REQUESTS: usize = 600;
/// Calls that run at once.
const THREADS: usize = 16;

/// A store that does nothing until the sender is dropped.
struct Stuck {
    entered: Arc<AtomicUsize>,
    end: Mutex<mpsc::Receiver<()>>,
}

impl Operations for Stuck {
    fn call(&self, _: &str, _: &Value, _: &CancelHandle) -> grainstore_rpc::Result<Value> {
        self.entered.fetch_add(1, SeqCst);
        // It ends with an error.
        let _ = self.end.lock().unwrap().recv();
        Ok(json!({}))
    }

    fn close(&self) -> grainstore_rpc::Result<()> {
        Ok(())
    }
}

#[test]
fn nothing_more_is_read_while_many_cancelled_calls_wait_for_the_store() {
    let (stuck, wait) = mpsc::channel();
    let wait = Mutex::new(Some(wait));
    let (sent, entered) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let calls = Arc::clone(&entered);
    let options = McpOptions::over(move || {
        let end = Mutex::new(wait.lock().unwrap().take().unwrap());
        Ok(Box::new(Stuck { entered: Arc::clone(&calls), end }))
    });
    let (pongs, answered) = mpsc::channel();
    let client = Fickle { sent: Arc::clone(&sent), entered, answered };
    let server = thread::spawn(move || serve_mcp(client, Pongs(pongs), options));
    let mut before = 0;
    // Until no more is read.
    loop {
        thread::sleep(Duration::from_millis(300));
        let now = sent.load(SeqCst);
        if now == before && now >= 250 {
            break;
        }
        before = now;
    }
    drop(stuck);
    server.join().unwrap().unwrap();
    assert!(before <= 258, "{before} were read");
    assert!(sent.load(SeqCst) > FICKLE_REQUESTS, "what was cancelled gives its place back");
}
