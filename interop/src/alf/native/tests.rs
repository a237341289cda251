//! Each type of grain becomes a record that says what it says, and carries it.

use grainstore::format::Encoding;
use grainstore::prelude::*;

use super::text::content_of;
use super::*;
use crate::alf::agent::Agent;

fn grain(members: &str) -> Grain {
    Grain::from_json(&format!(r#"{{{members}, "created_at": "2026-01-15T10:00:00Z"}}"#)).unwrap()
}

#[test]
fn a_grain_says_in_words_what_it_is_about() {
    for (members, content) in [
        (
            r#""type": "belief", "subject": "ann", "relation": "mg:knows", "object": "tea", "confidence": 1"#,
            "tea",
        ),
        (
            r#""type": "belief", "subject": "ann", "relation": "likes", "object": "tea", "confidence": 1"#,
            "ann likes tea",
        ),
        (r#""type": "event", "content": "ann said hello""#, "ann said hello"),
        (
            r#""type": "workflow", "trigger": "ship it", "steps": ["test", "push"]"#,
            "ship it\n1. test\n2. push",
        ),
        (r#""type": "goal", "description": "win", "goal_state": "active""#, "win"),
        (
            r#""type": "state", "context": {"a": 1}"#,
            r#"{"context":{"a":1},"created_at":1768471200000,"type":"state"}"#,
        ),
    ] {
        assert_eq!(content_of(&grain(members)), content);
    }
}

#[test]
fn a_record_that_nobody_changed_carries_its_grain() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
    let session = store.session(SessionOptions::default());
    let grain = grain(r#""type": "event", "content": "ann said hello", "user_id": "ann""#);
    let blob = grain.encode(Encoding::MessagePack).unwrap();
    let stored = session.get(&session.put(grain).unwrap().address()).unwrap();
    let record = with_grain(view_of(&Agent::new(&session, "agent"), &stored).unwrap(), &stored);
    assert_eq!(record["id"], native_id(stored.grain().unwrap().created_at(), &stored.address));
    let found = carried(&record).unwrap().unwrap();
    assert_eq!((found.address, found.grain.text("user_id")), (blob.address(), Some("ann")));
    let mut changed = record;
    changed["content"] = "ann said goodbye".into();
    assert!(carried(&changed).unwrap().is_none());
}
