//! Tests of how much a lookup of replies reads in stores of many namespaces.

use grainstore_cal::CancelHandle;
use tempfile::TempDir;

use super::super::thread::{MAX_MESSAGES, connected_messages, message_at};
use super::*;
use crate::format::Grain;
use crate::read::graph::GraphOptions;
use crate::{OpenOptions, SessionOptions, Store};

const NAMESPACES: usize = 2_000;
const REPLIES: usize = 500;

fn event(content: &str, namespace: &str, parent: Option<&ContentAddress>) -> Grain {
    let mut grain = serde_json::json!({
        "type": "event", "content": content, "role": "user", "created_at": 1000,
        "namespace": namespace,
    });
    if let Some(parent) = parent {
        grain["parent_message_id"] = parent.to_string().into();
    }
    Grain::from_json(&grain.to_string()).unwrap()
}

/// A store of many namespaces, one of which has a message with many replies.
fn scattered() -> (TempDir, Store, ContentAddress) {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
    let session = store.session(SessionOptions::default());
    let strangers = (0..NAMESPACES).map(|number| event("stranger", &format!("n{number}"), None));
    session.put_batch(strangers).unwrap();
    let root = session.put(event("root", "n0", None)).unwrap().address();
    let replies = (0..REPLIES)
        .map(|number| event(&format!("reply {number}"), &format!("n{}", number % 7), Some(&root)));
    session.put_batch(replies).unwrap();
    (dir, store, root)
}

#[test]
fn many_replies_in_many_namespaces_take_one_pass_and_not_a_lookup_a_namespace_each() {
    let (_dir, store, root) = scattered();
    let session = store.session(SessionOptions::default());
    let (view, options) = (session.view().unwrap(), GraphOptions::default());
    let mut reader = GraphReader::new(&session, &view, &options);
    let start = message_at(&mut reader, &root).unwrap().unwrap();
    let members = connected_messages(&mut reader, start, MAX_MESSAGES + 1).unwrap();
    assert_eq!(members.len(), REPLIES + 1, "replies in other namespaces count");
    let most = MAX_REPLY_RANGES + 4 * NAMESPACES as u64;
    assert!(reader.ranges() <= most, "{} ranges", reader.ranges());
    let limited = connected_messages(&mut reader, start, 10).unwrap();
    assert_eq!(limited.len(), 10);
}

#[test]
fn a_search_that_finds_nothing_still_sees_that_its_time_is_over() {
    let (_dir, store, root) = scattered();
    let session = store.session(SessionOptions::default());
    let (view, options) = (session.view().unwrap(), GraphOptions::default());
    let mut reader = GraphReader::new(&session, &view, &options);
    let digits = root.to_string();
    let nothing = [IndexLookup::Value(Field::Derived, digits.as_str().into())];
    assert_eq!(reader.postings(&nothing).unwrap().count(), 0);
    assert!(reader.ranges() >= NAMESPACES as u64, "what is empty is counted too");
    let cancel = CancelHandle::new();
    cancel.cancel();
    let options = GraphOptions { cancel, ..GraphOptions::default() };
    let mut reader = GraphReader::new(&session, &view, &options);
    let refused = reader.postings(&nothing).map(drop).unwrap_err();
    assert_eq!(refused.code(), "ERR_TIMEOUT");
    let refused = reader.estimate(&nothing, 10).unwrap_err();
    assert_eq!(refused.code(), "ERR_TIMEOUT");
}
