//! Several sessions that write at the same time.

use std::path::Path;
use std::sync::Mutex;

use grainstore::cal::CancelHandle;
use grainstore::{OpenOptions, SessionOptions};
use grainstore_rpc::{Client, ClientOptions, Result};
use grainstore_serve::{McpOptions, Operations};
use serde_json::{Value, json};

use crate::kit::{Conversation, PLAIN, code};

/// A store in which another session writes just before, or just after, the first put of this one.
struct Interrupted {
    store: Client,
    before: Mutex<Option<Value>>,
    after: Mutex<Option<Value>>,
}

impl Operations for Interrupted {
    fn call(&self, method: &str, params: &Value, cancel: &CancelHandle) -> Result<Value> {
        let call =
            |method: &str, params: &Value| Operations::call(&self.store, method, params, cancel);
        let interrupts = |by: &Mutex<Option<Value>>| {
            let other = if method == "put" { by.lock().unwrap().take() } else { None };
            other.map_or(Ok(()), |other| call("put", &other).map(drop))
        };
        interrupts(&self.before)?;
        let answer = call(method, params)?;
        interrupts(&self.after)?;
        Ok(answer)
    }

    fn close(&self) -> Result<()> {
        self.store.close()
    }
}

/// A conversation in which a fact of another session comes in between.
fn interrupted(dir: &Path, before: Option<Value>, after: Option<Value>) -> Conversation {
    let path = dir.join("memory.grains");
    Conversation::with(McpOptions::over(move || {
        let open = OpenOptions::new().create(true);
        let store = Client::open(&path, ClientOptions::new(open, SessionOptions::default()))?;
        let (before, after) = (Mutex::new(before.clone()), Mutex::new(after.clone()));
        Ok(Box::new(Interrupted { store, before, after }))
    }))
}

fn fact(object: &str) -> Value {
    json!({ "subject": "alice", "relation": "drinks", "object": object, "replaces": "latest" })
}

/// The parameters of a put of another session.
fn other(object: &str) -> Value {
    json!({ "grain": { "type": "belief", "subject": "alice", "relation": "drinks", "object": object,
        "confidence": 0.8, "created_at": 1_768_471_200_000_i64 } })
}

#[track_caller]
fn current(client: &mut Conversation) -> Vec<Value> {
    let found = client.done("search", json!({ "subject": "alice" }));
    let rows = found["rows"].as_array().unwrap();
    rows.iter().map(|row| row["grain"]["object"].clone()).collect()
}

#[test]
fn a_fact_that_comes_second_is_taken_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = interrupted(dir.path(), Some(other("coffee")), None);
    client.initialize(PLAIN);
    let refused = client.call("remember", fact("tea"));
    assert_eq!(code(&refused), "ERR_CONFLICT");
    assert_eq!(current(&mut client), ["coffee"]);
    // Nothing is in the way of the next try.
    assert!(client.done("remember", fact("tea"))["superseded"].is_string());
    assert_eq!(current(&mut client), ["tea"]);
}

#[test]
fn a_fact_that_comes_first_stays() {
    let dir = tempfile::tempdir().unwrap();
    let mut client = interrupted(dir.path(), None, Some(other("coffee")));
    client.initialize(PLAIN);
    client.done("remember", fact("tea"));
    // The other one does not look: it added its fact on purpose.
    assert_eq!(current(&mut client), ["tea", "coffee"]);
}

#[test]
fn a_fact_that_comes_second_is_taken_back_also_where_the_first_was_replaced_since() {
    let dir = tempfile::tempdir().unwrap();
    let mut changed = other("coffee");
    changed["grain"]["confidence"] = json!(0.9);
    changed["same_fact"] = json!("supersede");
    let mut client = interrupted(dir.path(), Some(other("coffee")), Some(changed));
    client.initialize(PLAIN);
    assert_eq!(code(&client.call("remember", fact("tea"))), "ERR_CONFLICT");
    assert_eq!(current(&mut client), ["coffee"]);
}
