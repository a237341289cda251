//! Neighbours of a node.

use grainstore::cal::CancelHandle;
use grainstore::graph::{Direction, EdgeQuery, GraphOptions};
use grainstore::limits::MAX_EDGES;
use serde_json::json;

use crate::graph::kit::{Place, code, edge, ends, grain_of};

fn walk(direction: Direction) -> EdgeQuery {
    EdgeQuery { direction, ..EdgeQuery::default() }
}

#[test]
fn edges_are_found_from_either_end_and_loops_once() {
    let place = Place::new();
    let out = place.edge("a", "knows", "b");
    let back = place.edge("c", "likes", "a");
    let around = place.edge("a", "is", "a");
    place.edge("b", "knows", "c");
    for (direction, mut expected) in [
        (Direction::Out, vec![out, around]),
        (Direction::In, vec![back, around]),
        (Direction::Both, vec![out, back, around]),
    ] {
        let found = place.session.neighbours("a", &walk(direction)).unwrap();
        let mut addresses: Vec<_> = found.items.iter().map(|edge| edge.address).collect();
        addresses.sort_unstable();
        expected.sort_unstable();
        assert_eq!((addresses, found.more), (expected, false), "{direction:?}");
    }
    let likes = EdgeQuery { relation: Some("likes".to_owned()), ..EdgeQuery::default() };
    assert_eq!(ends(&place.session.neighbours("a", &likes).unwrap().items), [("c", "a")]);
    assert_eq!(place.session.neighbours("nobody", &EdgeQuery::default()).unwrap().items, []);
}

#[test]
fn only_texts_are_nodes_and_any_spelling_of_one_is_the_same() {
    let place = Place::new();
    place.put(&json!({
        "type": "belief", "subject": "a", "relation": "is", "object": {"name": "b"},
        "confidence": 1.0, "created_at": 1000,
    }));
    place.edge("a", "eats at", "caf\u{e9}");
    let found = place.session.neighbours("a", &EdgeQuery::default()).unwrap();
    assert_eq!(ends(&found.items), [("a", "caf\u{e9}")]);
    let found = place.session.neighbours("cafe\u{301}", &EdgeQuery::default()).unwrap();
    assert_eq!(found.items.len(), 1);
    assert_eq!(place.session.neighbours("b", &EdgeQuery::default()).unwrap().items, []);
}

#[test]
fn newest_edges_come_first_and_a_full_answer_says_so() {
    let place = Place::new();
    for n in 0..5 {
        let mut grain = edge("a", "knows", &format!("b{n}"));
        grain["created_at"] = json!(1000 + n);
        place.put(&grain);
    }
    for (limit, expected, more) in [
        (0, vec![], true),
        (2, vec!["b4", "b3"], true),
        (5, vec!["b4", "b3", "b2", "b1", "b0"], false),
    ] {
        let found =
            place.session.neighbours("a", &EdgeQuery { limit, ..EdgeQuery::default() }).unwrap();
        let objects: Vec<_> = found.items.iter().map(|edge| edge.object.as_str()).collect();
        assert_eq!((objects, found.more), (expected, more), "{limit}");
    }
    let limit = MAX_EDGES + 1;
    let refused = place.session.neighbours("a", &EdgeQuery { limit, ..EdgeQuery::default() });
    assert_eq!(code(refused), "ERR_LIMIT");
}

#[test]
fn superseded_edges_are_there_on_request_only() {
    let place = Place::new();
    let old = place.edge("a", "lives in", "b");
    place.supersede(&old, &edge("a", "lives in", "c"));
    let objects = |include_superseded| {
        let options = GraphOptions { include_superseded, ..GraphOptions::default() };
        let found =
            place.session.neighbours("a", &EdgeQuery { options, ..EdgeQuery::default() }).unwrap();
        let mut objects: Vec<_> = found.items.into_iter().map(|edge| edge.object).collect();
        objects.sort_unstable();
        objects
    };
    assert_eq!(objects(false), ["c"]);
    assert_eq!(objects(true), ["b", "c"]);
}

#[test]
fn edges_of_other_namespaces_are_not_there() {
    let place = Place::new();
    place.edge_in("x", "a", "b");
    place.edge_in("x:deep", "a", "c");
    place.edge_in("y", "a", "d");
    let session = place.within("x");
    let mut found = session.neighbours("a", &EdgeQuery::default()).unwrap().items;
    found.sort_by(|a, b| a.object.cmp(&b.object));
    assert_eq!(ends(&found), [("a", "b"), ("a", "c")]);
    assert_eq!(session.neighbours("d", &EdgeQuery::default()).unwrap().items, []);
}

#[test]
fn a_walk_stops_when_it_is_told_to() {
    let place = Place::new();
    place.session.put(grain_of(&edge("a", "knows", "b"))).unwrap();
    let cancel = CancelHandle::new();
    cancel.cancel();
    let options = GraphOptions { cancel, ..GraphOptions::default() };
    let walk = EdgeQuery { options, ..EdgeQuery::default() };
    assert_eq!(code(place.session.neighbours("a", &walk)), "ERR_TIMEOUT");
    assert_eq!(code(place.session.paths("a", "b", 3, &walk)), "ERR_TIMEOUT");
}
