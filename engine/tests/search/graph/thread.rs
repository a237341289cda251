//! Conversations as trees.

use grainstore::cal::Answer;
use grainstore::graph::{GraphOptions, Thread};
use grainstore::limits::MAX_MESSAGES;
use grainstore::{ContentAddress, Session};
use serde_json::{Value, json};

use crate::graph::kit::{Place, code, grain_of, nowhere};

/// A message that says its own name at a time.
fn message(name: &str, at: i64, parent: Option<&ContentAddress>) -> Value {
    let mut grain = json!({
        "type": "event", "content": name, "role": "user", "created_at": at, "timestamp_ms": at,
    });
    if let Some(parent) = parent {
        grain["parent_message_id"] = json!(parent);
    }
    grain
}

fn with(mut grain: Value, field: &str, value: &str) -> Value {
    grain[field] = json!(value);
    grain
}

fn thread(session: &Session, of: &ContentAddress) -> Thread {
    session.thread(of, &GraphOptions::default()).unwrap()
}

fn members(thread: &Thread) -> Vec<ContentAddress> {
    thread.messages.iter().map(|message| message.address).collect()
}

#[test]
fn a_thread_is_the_same_from_each_of_its_messages() {
    let place = Place::new();
    let root = place.put(&message("root", 1000, None));
    let left = place.put(&message("left", 2000, Some(&root)));
    let right = place.put(&message("right", 3000, Some(&root)));
    let deep = place.put(&message("deep", 4000, Some(&left)));
    place.put(&message("stranger", 2500, None));
    for of in [root, left, right, deep] {
        let found = thread(&place.session, &of);
        assert_eq!(members(&found), [root, left, right, deep], "oldest first");
        assert_eq!(found.roots, [root]);
        assert_eq!(found.heads, [right, deep]);
        assert_eq!(found.branch_points, [root]);
        let parents: Vec<_> = found.messages.iter().map(|message| message.parent).collect();
        assert_eq!(parents, [None, Some(root), Some(root), Some(left)]);
    }
}

#[test]
fn a_session_id_says_what_belongs_together() {
    let place = Place::new();
    let said = |name, at, parent| place.put(&with(message(name, at, parent), "session_id", "s"));
    let one = said("one", 1000, None);
    let two = said("two", 2000, Some(&one));
    let apart = said("apart", 3000, None);
    let outside = place.put(&message("outside", 4000, Some(&two)));
    place.put(&with(message("other", 5000, Some(&one)), "session_id", "t"));
    let mut note = json!({
        "type": "belief", "subject": "a", "relation": "is", "object": "b", "confidence": 1,
        "created_at": 1000,
    });
    note["session_id"] = json!("s");
    let note = place.put(&note);
    for of in [one, two, apart] {
        let found = thread(&place.session, &of);
        assert_eq!(members(&found), [one, two, apart]);
        assert_eq!(found.roots, [one, apart]);
    }
    let by_id = place.session.thread_of_session("s", &GraphOptions::default()).unwrap();
    assert_eq!(by_id, thread(&place.session, &one));
    assert!(members(&thread(&place.session, &outside)).contains(&outside), "by its links");
    let none = place.session.thread_of_session("nobody", &GraphOptions::default()).unwrap();
    assert_eq!(none, Thread::default());
    assert_eq!(code(place.session.thread(&note, &GraphOptions::default())), "ERR_SCHEMA");
    assert_eq!(code(place.session.thread(&nowhere(), &GraphOptions::default())), "ERR_NOT_FOUND");
}

/// The members of a thread as CAL finds them.
fn asked(session: &Session, of: &ContentAddress) -> Vec<ContentAddress> {
    let answer = session.ask(&format!("RECALL THREAD FROM sha256:{of}")).unwrap().answer;
    let Answer::Grains(grains) = answer else { panic!("{answer:?}") };
    grains.results.iter().map(|row| row.content_address).collect()
}

#[test]
fn cal_and_the_graph_mean_the_same_thread() {
    let place = Place::new();
    let said = |name, at, parent, id| place.put(&with(message(name, at, parent), "session_id", id));
    let one = said("one", 1000, None, "s");
    let two = said("two", 2000, Some(&one), "s");
    let apart = said("apart", 3000, None, "s");
    let other = said("other", 4000, Some(&one), "t");
    let loose = place.put(&message("loose", 5000, Some(&two)));
    let mended = place.supersede(&two, &with(message("mended", 2500, None), "session_id", "s"));
    for (of, expected) in [
        (one, vec![one, mended, apart]),
        (two, vec![one, mended, apart]),
        (apart, vec![one, mended, apart]),
        (other, vec![other]),
        (loose, vec![one, other, loose]),
    ] {
        assert_eq!(members(&thread(&place.session, &of)), expected);
        assert_eq!(asked(&place.session, &of), expected);
    }
}

#[test]
fn a_message_whose_parent_is_missing_or_nonsense_is_a_root() {
    let place = Place::new();
    let orphan = place.put(&message("orphan", 1000, Some(&nowhere())));
    let prefixed =
        with(message("prefixed", 2000, None), "parent_message_id", &format!("sha256:{orphan}"));
    let prefixed = place.put(&prefixed);
    let nonsense = place.put(&with(message("nonsense", 3000, None), "parent_message_id", "msg-17"));
    let found = thread(&place.session, &prefixed);
    assert_eq!((members(&found), found.roots), (vec![orphan, prefixed], vec![orphan]));
    assert_eq!(members(&thread(&place.session, &nonsense)), [nonsense]);
}

#[test]
fn messages_of_other_namespaces_are_neither_members_nor_links() {
    let place = Place::new();
    let said = |namespace, name, at, parent: Option<&ContentAddress>| {
        place.put(&with(message(name, at, parent), "namespace", namespace))
    };
    let top = said("x", "top", 1000, None);
    let middle = said("y", "middle", 2000, Some(&top));
    let bottom = said("x", "bottom", 3000, Some(&middle));
    assert_eq!(members(&thread(&place.session, &bottom)), [top, middle, bottom]);
    let session = place.within("x");
    assert_eq!(members(&thread(&session, &bottom)), [bottom]);
    assert_eq!(members(&thread(&session, &top)), [top]);
    assert_eq!(code(session.thread(&middle, &GraphOptions::default())), "ERR_NOT_FOUND");
}

#[test]
fn a_superseded_message_is_shown_on_request() {
    let place = Place::new();
    let first = place.put(&message("typo", 1000, None));
    let reply = place.put(&message("reply", 2000, Some(&first)));
    let mended = place.supersede(&first, &message("mended", 1000, None));
    let found = thread(&place.session, &reply);
    assert_eq!((members(&found), found.roots), (vec![reply], vec![reply]));
    let all = GraphOptions { include_superseded: true, ..GraphOptions::default() };
    let found = place.session.thread(&reply, &all).unwrap();
    assert_eq!(members(&found), [first, reply]);
    assert_eq!(members(&thread(&place.session, &mended)), [mended]);
}

#[test]
fn a_state_leads_back_along_one_branch() {
    let place = Place::new();
    let root = place.put(&message("root", 1000, None));
    let left = place.put(&message("left", 2000, Some(&root)));
    place.put(&message("right", 3000, Some(&root)));
    let tail = place.put(&message("tail", 4000, Some(&left)));
    place.put(&message("later", 5000, Some(&tail)));
    let state = |context: Value| {
        place.put(&json!({"type": "state", "context": context, "created_at": 9000}))
    };
    let snapshot = state(json!({"messages_tail": tail}));
    let found = place.session.thread_from_state(&snapshot, &GraphOptions::default()).unwrap();
    assert_eq!(members(&found), [root, left, tail]);
    assert_eq!((found.heads, found.branch_points), (vec![tail], vec![]));
    for (at, expected) in [
        (state(json!({"model": "m"})), "ERR_SCHEMA"),
        (state(json!({"messages_tail": "the last one"})), "ERR_SCHEMA"),
        (state(json!({"messages_tail": nowhere()})), "ERR_NOT_FOUND"),
        (state(json!({"messages_tail": snapshot})), "ERR_NOT_FOUND"),
        (tail, "ERR_SCHEMA"),
        (nowhere(), "ERR_NOT_FOUND"),
    ] {
        let refused = place.session.thread_from_state(&at, &GraphOptions::default());
        assert_eq!(code(refused), expected, "{at}");
    }
}

#[test]
fn ten_thousand_messages_are_a_thread_and_one_more_is_refused() {
    let place = Place::new();
    let root = place.put(&message("root", 1000, None));
    let replies = (1..MAX_MESSAGES).map(|n| {
        grain_of(&message(&format!("reply {n}"), 1000 + i64::try_from(n).unwrap(), Some(&root)))
    });
    let replies: Vec<_> = replies.collect();
    let puts = place.session.put_batch(replies).unwrap();
    let found = thread(&place.session, &puts[4_000].address());
    assert_eq!(found.messages.len(), MAX_MESSAGES);
    assert_eq!((found.heads.len(), found.branch_points), (MAX_MESSAGES - 1, vec![root]));
    place.put(&message("one more", 99_000, Some(&root)));
    assert_eq!(code(place.session.thread(&root, &GraphOptions::default())), "ERR_LIMIT");
}
