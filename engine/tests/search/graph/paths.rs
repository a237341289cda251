//! Shortest paths between nodes.

use std::collections::{BTreeMap, BTreeSet};

use grainstore::Session;
use grainstore::cal::CancelHandle;
use grainstore::graph::{Direction, Edge, EdgeQuery, GraphOptions};
use grainstore::limits::{MAX_HOPS, MAX_NODES, MAX_PATHS};
use proptest::prelude::*;

use crate::graph::kit::{Place, code, edge, ends, grain_of};

fn walk(direction: Direction) -> EdgeQuery {
    EdgeQuery { direction, limit: MAX_PATHS, ..EdgeQuery::default() }
}

fn paths(session: &Session, from: &str, to: &str, hops: usize, walk: &EdgeQuery) -> Vec<Vec<Edge>> {
    let found = session.paths(from, to, hops, walk).unwrap();
    assert!(!found.more);
    found.items
}

#[test]
fn all_shortest_paths_are_given_and_no_longer_one() {
    let place = Place::new();
    for (subject, object) in
        [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("a", "x"), ("x", "y"), ("y", "d")]
    {
        place.edge(subject, "knows", object);
    }
    let found = paths(&place.session, "a", "d", MAX_HOPS, &walk(Direction::Out));
    let mut ways: Vec<_> = found.iter().map(|path| ends(path)).collect();
    ways.sort_unstable();
    assert_eq!(ways, [[("a", "b"), ("b", "d")], [("a", "c"), ("c", "d")]]);
    let addresses: Vec<Vec<_>> =
        found.iter().map(|path| path.iter().map(|edge| edge.address).collect()).collect();
    assert!(addresses.is_sorted(), "in the order of their addresses");
    let none = |from, to, hops, direction| {
        paths(&place.session, from, to, hops, &walk(direction)).is_empty()
    };
    assert!(none("a", "d", 1, Direction::Out), "too far");
    assert!(none("d", "a", MAX_HOPS, Direction::Out), "against the arrows");
    assert!(!none("d", "a", 2, Direction::In));
    assert!(none("b", "c", MAX_HOPS, Direction::Out));
    assert!(!none("b", "c", 2, Direction::Both));
    assert!(none("a", "nobody", MAX_HOPS, Direction::Both));
}

#[test]
fn a_node_is_no_step_from_itself() {
    let place = Place::new();
    place.edge("a", "is", "a");
    let found = paths(&place.session, "a", "a", MAX_HOPS, &EdgeQuery::default());
    assert_eq!(found, [Vec::<Edge>::new()]);
    assert_eq!(paths(&place.session, "a", "b", MAX_HOPS, &EdgeQuery::default()).len(), 0);
}

#[test]
fn parallel_edges_are_paths_of_their_own_until_the_limit() {
    let place = Place::new();
    for relation in ["knows", "likes", "pays"] {
        place.edge("a", relation, "b");
        place.edge("b", relation, "c");
    }
    let all = paths(&place.session, "a", "c", 2, &walk(Direction::Out));
    assert_eq!(all.len(), 9);
    let few = EdgeQuery { limit: 4, ..walk(Direction::Out) };
    let few = place.session.paths("a", "c", 2, &few).unwrap();
    assert!(few.more);
    assert_eq!(few.items, all[..4], "the first ones in order");
    let likes = EdgeQuery { relation: Some("likes".to_owned()), ..walk(Direction::Out) };
    assert_eq!(paths(&place.session, "a", "c", 2, &likes).len(), 1);
}

#[test]
fn more_than_a_search_may_do_is_refused() {
    let place = Place::new();
    let refused = place.session.paths("a", "b", MAX_HOPS + 1, &EdgeQuery::default());
    assert_eq!(code(refused), "ERR_LIMIT");
    let limit = MAX_PATHS + 1;
    let refused = place.session.paths("a", "b", 1, &EdgeQuery { limit, ..EdgeQuery::default() });
    assert_eq!(code(refused), "ERR_LIMIT");
}

#[test]
fn neither_superseded_edges_nor_other_namespaces_are_on_the_way() {
    let place = Place::new();
    place.edge_in("x", "a", "b");
    place.edge_in("y", "b", "c");
    let across =
        |session: &Session| session.paths("a", "c", 4, &EdgeQuery::default()).unwrap().items;
    assert_eq!(across(&place.session).len(), 1);
    assert_eq!(across(&place.within("x")).len(), 0);
    assert_eq!(across(&place.within("y")).len(), 0);

    let old = place.edge("a", "lives in", "d");
    place.supersede(&old, &edge("a", "lives in", "e"));
    assert_eq!(paths(&place.session, "a", "d", 1, &EdgeQuery::default()).len(), 0);
    let options = GraphOptions { include_superseded: true, ..GraphOptions::default() };
    let walk = EdgeQuery { options, ..EdgeQuery::default() };
    assert_eq!(paths(&place.session, "a", "d", 1, &walk).len(), 1);
}

/// The middle is met from both sides; walking through it would be 20,000 edges and their nodes.
#[test]
fn a_hub_in_the_middle_is_passed_and_two_hubs_apart_are_told_to_be() {
    let place = Place::new();
    fan(&place, "hub", 10_000);
    fan(&place, "other", 10_000);
    let found = paths(&place.session, "hub7", "hub9", MAX_HOPS, &walk(Direction::Both));
    assert_eq!(ends(&found[0]), [("hub7", "hub"), ("hub9", "hub")]);
    assert_eq!(found.len(), 1);
    let none = place.session.paths("hub", "other", MAX_HOPS, &walk(Direction::Both)).unwrap();
    assert_eq!(none.items, Vec::<Vec<Edge>>::new());
    let neighbours = place.session.neighbours("hub", &EdgeQuery::default()).unwrap();
    assert_eq!((neighbours.items.len(), neighbours.more), (100, true));
}

#[test]
fn a_search_that_would_fill_the_memory_is_refused() {
    if std::env::var("GRAINSTORE_SWEEP").is_ok_and(|sweep| sweep == "full") {
        let place = Place::new();
        for hub in ["one", "other"] {
            fan(&place, hub, MAX_NODES);
        }
        let options = GraphOptions { cancel: CancelHandle::new(), ..GraphOptions::default() };
        let walk = EdgeQuery { options, ..EdgeQuery::default() };
        let refused = place.session.paths("one", "other", MAX_HOPS, &walk).unwrap_err();
        assert_eq!(refused.code(), "ERR_LIMIT");
        assert!(refused.hint().contains("fewer hops"), "{}", refused.hint());
    }
}

/// So many nodes around one.
fn fan(place: &Place, hub: &str, count: usize) {
    let edges = (0..count).map(|n| grain_of(&edge(&format!("{hub}{n}"), "in", hub)));
    place.session.put_batch(edges).unwrap();
}

/// All shortest paths by trying everything.
fn naive(
    edges: &BTreeSet<(u8, u8)>,
    from: u8,
    to: u8,
    most: usize,
    both: bool,
) -> BTreeSet<Vec<u8>> {
    let mut next: BTreeMap<u8, BTreeSet<u8>> = BTreeMap::new();
    for (a, b) in edges {
        next.entry(*a).or_default().insert(*b);
        if both {
            next.entry(*b).or_default().insert(*a);
        }
    }
    let mut level = BTreeSet::from([vec![from]]);
    for _ in 0..=most {
        let done: BTreeSet<Vec<u8>> =
            level.iter().filter(|path| path.last() == Some(&to)).cloned().collect();
        if !done.is_empty() {
            return done;
        }
        level = level
            .iter()
            .flat_map(|path| {
                let ahead = next.get(&path[path.len() - 1]).into_iter().flatten();
                ahead.filter(|node| !path.contains(node)).map(|node| [path, &[*node][..]].concat())
            })
            .collect();
    }
    BTreeSet::new()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn paths_are_those_of_an_exhaustive_search(
        edges in prop::collection::btree_set((0_u8..9, 0_u8..9), 0..22),
        questions in prop::collection::vec((0_u8..9, 0_u8..9, 0_usize..=MAX_HOPS), 12),
    ) {
        let place = Place::new();
        let grains = edges.iter().map(|(a, b)| edge(&a.to_string(), "r", &b.to_string()));
        place.session.put_batch(grains.map(|grain| grain_of(&grain))).unwrap();
        for (from, to, hops) in questions {
            for (direction, both) in [(Direction::Out, false), (Direction::Both, true)] {
                let found = paths(
                    &place.session, &from.to_string(), &to.to_string(), hops, &walk(direction),
                );
                let mut nodes = BTreeSet::new();
                for path in &found {
                    let mut at = from;
                    let mut visited = vec![at];
                    for edge in path {
                        let (a, b): (u8, u8) =
                            (edge.subject.parse().unwrap(), edge.object.parse().unwrap());
                        at = if a == at { b } else { a };
                        visited.push(at);
                    }
                    nodes.insert(visited);
                }
                prop_assert_eq!(nodes, naive(&edges, from, to, hops, both));
            }
        }
    }
}
