//! Versions of a grain in parts, and the newest value of a relation at any time.

use grainstore::limits::MAX_VERSIONS;
use grainstore::{AsOf, ContentAddress, EpochMs, SameFact};
use serde_json::{Value, json};

use crate::graph::kit::{Place, code, edge, grain_of, nowhere};

/// A chain of so many versions, oldest first.
fn chain(place: &Place, length: usize) -> Vec<ContentAddress> {
    let mut versions: Vec<ContentAddress> = vec![place.put(&edge("a", "counts", "0"))];
    let mut pending = Vec::new();
    for n in 1..length {
        let old = *versions.last().unwrap();
        let mut grain = edge("a", "counts", &n.to_string());
        grain["derived_from"] = json!([old]);
        let grain = grain_of(&grain);
        versions.push(grain.encode(Default::default()).unwrap().address());
        pending.push(place.session.submit_supersede(&old, grain, None));
    }
    for pending in pending {
        pending.wait().unwrap();
    }
    versions
}

/// Everything a chain says of itself, read in parts from either end.
fn check_chain(place: &Place, versions: &[ContentAddress]) {
    let (first, last) = (versions[0], *versions.last().unwrap());
    let newest_first: Vec<_> = versions.iter().rev().copied().collect();
    let in_parts = |from: ContentAddress, older: bool| {
        let mut all = vec![from];
        loop {
            let from = *all.last().unwrap();
            let part = if older {
                place.session.older_versions(&from, 700)
            } else {
                place.session.newer_versions(&from, 700)
            };
            let part = part.unwrap();
            assert_eq!(part.items[0].address, from, "the last one comes again");
            all.extend(part.items.iter().skip(1).map(|version| version.address));
            if !part.more {
                return all;
            }
        }
    };
    assert!(in_parts(last, true) == newest_first);
    assert!(in_parts(first, false) == versions);
    let current = place.session.latest("a", "counts").unwrap().unwrap();
    assert_eq!(current.address, last);
}

#[test]
fn a_long_chain_is_read_whole_and_in_parts() {
    let place = Place::new();
    let versions = chain(&place, 2_000);
    check_chain(&place, &versions);
    let whole = place.session.history(&versions[900]).unwrap();
    assert_eq!(whole.len(), 2_000);
    assert_eq!(whole[0].address, versions[1_999]);
}

#[test]
fn a_chain_of_a_hundred_thousand_is_refused_whole_and_read_in_parts() {
    if std::env::var("GRAINSTORE_SWEEP").is_ok_and(|sweep| sweep == "full") {
        let place = Place::new();
        let versions = chain(&place, 100_000);
        let refused = place.session.history(&versions[5]).unwrap_err();
        assert_eq!(refused.code(), "ERR_LIMIT");
        assert!(refused.hint().contains("older_versions"), "{}", refused.hint());
        check_chain(&place, &versions);
    }
}

#[test]
fn parts_of_a_chain_are_checked_like_everything_else() {
    let place = Place::new();
    let one = place.edge_in("x", "a", "b");
    let session = place.within("y");
    for address in [one, nowhere()] {
        assert_eq!(code(session.older_versions(&address, 10)), "ERR_NOT_FOUND");
        assert_eq!(code(session.newer_versions(&address, 10)), "ERR_NOT_FOUND");
    }
    assert_eq!(code(place.session.older_versions(&one, MAX_VERSIONS + 1)), "ERR_LIMIT");
    assert_eq!(code(place.session.newer_versions(&one, MAX_VERSIONS + 1)), "ERR_LIMIT");
    let none = place.session.newer_versions(&one, 0).unwrap();
    assert_eq!((none.items.len(), none.more), (0, true));
    let none = place.session.older_versions(&one, 0).unwrap();
    assert_eq!((none.items.len(), none.more), (0, true));
}

fn told(object: &str, fields: &Value) -> Value {
    let mut grain = edge("a", "lives in", object);
    for (name, value) in fields.as_object().unwrap() {
        grain[name] = value.clone();
    }
    grain
}

fn latest(place: &Place, as_of: AsOf) -> Option<String> {
    let found = place.session.latest_as_of("a", "lives in", None, &as_of).unwrap()?;
    Some(found.grain().unwrap().text("object").unwrap().to_owned())
}

#[test]
fn the_latest_is_the_newest_by_its_own_time() {
    let place = Place::new();
    assert_eq!(latest(&place, AsOf::default()), None);
    place.put(&told("late", &json!({"created_at": 3000})));
    place.put(&told("early", &json!({"created_at": 2000})));
    assert_eq!(latest(&place, AsOf::default()).as_deref(), Some("late"));
    let twin = place.put(&told("twin", &json!({"created_at": 3000})));
    let first = place.session.latest("a", "lives in").unwrap().unwrap().address;
    let late = grain_of(&told("late", &json!({"created_at": 3000})));
    let late = late.encode(Default::default()).unwrap().address();
    assert_eq!(first, late.min(twin), "the least address of one instant");
    place.put(&told("far", &json!({"timestamp_ms": i64::MAX - 1})));
    place.put(&told("farther", &json!({"timestamp_ms": i64::MAX})));
    assert_eq!(latest(&place, AsOf::default()).as_deref(), Some("farther"));
}

#[test]
fn the_latest_is_as_it_was_known_and_as_it_was_true() {
    let place = Place::new();
    let moved = |object, from: i64, to: Option<i64>, at: i64| {
        let mut grain = told(object, &json!({"created_at": at, "valid_from": from}));
        if let Some(to) = to {
            grain["valid_to"] = json!(to);
        }
        grain_of(&grain)
    };
    place.session.put(moved("Rome", 0, Some(100), 1000)).unwrap();
    place.session.put(moved("Oslo", 101, None, 2000)).unwrap();
    let time = |ms| Some(EpochMs::new(ms));
    for (known_at, valid_at, expected) in [
        (None, None, Some("Oslo")),
        (None, time(50), Some("Rome")),
        (None, time(100), Some("Rome")),
        (None, time(101), Some("Oslo")),
        (None, time(-1), None),
        (time(999), None, None),
        (time(1000), None, Some("Rome")),
        (time(1999), time(500), None),
        (time(2000), time(500), Some("Oslo")),
    ] {
        let as_of = AsOf { known_at, valid_at };
        assert_eq!(latest(&place, as_of).as_deref(), expected, "{as_of:?}");
    }
    let before = place.session.now();
    place.session.put_fact(moved("Oslo", 101, None, 3000), SameFact::Supersede).unwrap();
    let ended = place.session.history_of("a", "lives in", None, None).unwrap();
    let ended = ended.iter().find_map(|version| version.state.system_valid_to).unwrap();
    assert!(ended >= before);
    let then = AsOf { known_at: Some(EpochMs::new(ended.get() - 1)), valid_at: None };
    assert_eq!(latest(&place, then).as_deref(), Some("Oslo"));
}

#[test]
fn the_latest_of_another_namespace_is_not_ours() {
    let place = Place::new();
    place.edge_in("x", "a", "b");
    place.edge_in("y", "a", "c");
    let object = |session: &grainstore::Session, namespace: Option<&str>| {
        let found = session.latest_as_of("a", "knows", namespace, &AsOf::default()).unwrap();
        found.map(|found| found.grain().unwrap().text("object").unwrap().to_owned())
    };
    assert_eq!(object(&place.within("x"), None).as_deref(), Some("b"));
    assert_eq!(object(&place.session, Some("y")).as_deref(), Some("c"));
    assert_eq!(object(&place.within("z"), None), None);
    let refused = place.within("x").latest_as_of("a", "knows", Some("y"), &AsOf::default());
    assert_eq!(code(refused), "ERR_ACCESS");
}
