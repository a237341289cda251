//! `put` with `same_fact: "unique"`, by the process that has the store open and by one that reaches it through that.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at a surprise")]

use std::path::Path;
use std::thread;

use grainstore::{OpenOptions, SessionOptions};
use grainstore_rpc::{Client, ClientOptions, Error};
use serde_json::{Value, json};
use tempfile::TempDir;

fn open(dir: &Path, user: Option<&str>) -> Client {
    let session = SessionOptions { user_id: user.map(str::to_owned), ..SessionOptions::default() };
    Client::open(dir, ClientOptions::new(OpenOptions::new().create(true), session)).unwrap()
}

fn unique(
    client: &Client,
    subject: &str,
    object: &str,
    user: Option<&str>,
) -> Result<Value, Error> {
    let mut grain = json!({ "type": "belief", "subject": subject, "relation": "is",
        "object": object, "confidence": 0.9, "created_at": 1_768_471_200_000_i64 });
    if let Some(user) = user {
        grain["user_id"] = json!(user);
    }
    client.call("put", &json!({ "grain": grain, "same_fact": "unique" }))
}

#[track_caller]
fn refused(put: Result<Value, Error>, current: &Value) {
    let error = put.unwrap_err();
    let refusal = error.refusal().unwrap();
    assert_eq!(refusal.code, "ERR_CONFLICT");
    assert!(refusal.message.contains(current["address"].as_str().unwrap()), "{refusal:?}");
}

#[test]
fn the_current_fact_is_named_here_and_through_the_owner() {
    let dir = TempDir::new().unwrap();
    let clients = [open(dir.path(), None), open(dir.path(), None)];
    for (at, client) in clients.iter().enumerate() {
        let subject = format!("s{at}");
        let first = unique(client, &subject, "tea", None).unwrap();
        assert_eq!(first["duplicate"], false);
        assert_eq!(unique(client, &subject, "tea", None).unwrap()["duplicate"], true);
        for other in &clients {
            refused(unique(other, &subject, "coffee", None), &first);
        }
    }
}

#[test]
fn one_user_is_not_told_of_another() {
    let dir = TempDir::new().unwrap();
    let everybody = open(dir.path(), None);
    for user in ["ann", "bob"] {
        let client = open(dir.path(), Some(user));
        let first = unique(&client, "s", user, Some(user)).unwrap();
        refused(unique(&client, "s", "tea", Some(user)), &first);
        refused(unique(&everybody, "s", "tea", Some(user)), &first);
    }
}

#[test]
fn of_several_clients_at_once_one_stores_its_fact() {
    let dir = TempDir::new().unwrap();
    let clients: Vec<_> = (0..6).map(|_| open(dir.path(), None)).collect();
    for round in 0..10 {
        let subject = format!("s{round}");
        let stored: usize = thread::scope(|scope| {
            let put = |at: usize| {
                let (client, subject) = (&clients[at], &subject);
                move || usize::from(unique(client, subject, &format!("o{at}"), None).is_ok())
            };
            let racing: Vec<_> = (0..clients.len()).map(|at| scope.spawn(put(at))).collect();
            racing.into_iter().map(|racer| racer.join().unwrap()).sum()
        });
        assert_eq!(stored, 1, "round {round}");
    }
}
