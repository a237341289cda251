//! Derivation and cross-links.

use grainstore::graph::{BoundedList, Direction, GraphOptions, Relative};
use grainstore::limits::MAX_RELATIVES;
use grainstore::{ContentAddress, Session};
use serde_json::{Value, json};

use crate::graph::kit::{Place, code, edge, nowhere};

fn derived(name: &str, parents: &[Value]) -> Value {
    let mut grain = edge(name, "says", "something");
    grain["derived_from"] = json!(parents);
    grain
}

fn addresses(found: &BoundedList<Relative>) -> Vec<(ContentAddress, usize)> {
    found.items.iter().map(|one| (one.address, one.hops)).collect()
}

fn ancestry(session: &Session, of: &ContentAddress) -> Vec<(ContentAddress, usize)> {
    addresses(&session.ancestry(of, 16, 100, &GraphOptions::default()).unwrap())
}

#[test]
fn ancestors_come_level_by_level_each_once() {
    let place = Place::new();
    let root = place.edge("root", "is", "first");
    let [left, right] =
        ["left", "right"].map(|name| place.put(&derived(name, &[json!(root.to_string())])));
    let names = [left, right, root, nowhere()].map(|parent| json!(parent.to_string()));
    let child = place.put(&derived("child", &names));
    let mut level = [(left, 1), (right, 1), (root, 1)];
    level.sort_unstable();
    assert_eq!(ancestry(&place.session, &child), level, "the root by its shortest way");
    assert_eq!(ancestry(&place.session, &left), [(root, 1)]);
    assert_eq!(ancestry(&place.session, &root), []);
    let grandchild = place.put(&derived("grandchild", &[json!(child.to_string())]));
    let found = |hops, limit| {
        place.session.ancestry(&grandchild, hops, limit, &GraphOptions::default()).unwrap()
    };
    assert_eq!(found(0, 100).items, []);
    assert_eq!(addresses(&found(1, 100)), [(child, 1)]);
    assert_eq!(found(2, 100).items.len(), 4);
    assert_eq!((found(2, 2).items.len(), found(2, 2).more), (2, true));

    let mut children: Vec<_> =
        place.session.children(&root, 100, &GraphOptions::default()).unwrap().items;
    children.sort_unstable_by_key(|one| one.address);
    let mut expected = [left, right, child];
    expected.sort_unstable();
    assert_eq!(children.iter().map(|one| one.address).collect::<Vec<_>>(), expected);
}

#[test]
fn citations_are_no_ancestors_even_where_they_go_round() {
    let place = Place::new();
    let citation = |name: &str| json!({"citation_type": "url", "identifier": name, "title": "a work elsewhere"});
    let one = place.put(&derived("one", &[citation("two")]));
    let two = place.put(&derived("two", &[citation("one"), json!(one.to_string())]));
    assert_eq!(ancestry(&place.session, &one), []);
    assert_eq!(ancestry(&place.session, &two), [(one, 1)]);
    let children = place.session.children(&one, 10, &GraphOptions::default()).unwrap();
    assert_eq!(addresses(&children), [(two, 1)]);
}

#[test]
fn superseded_ancestors_are_walked_through_and_listed_on_request() {
    let place = Place::new();
    let first = place.edge("a", "is", "1");
    let second = place.supersede(&first, &edge("a", "is", "2"));
    let third = place.supersede(&second, &edge("a", "is", "3"));
    let all = GraphOptions { include_superseded: true, ..GraphOptions::default() };
    assert_eq!(ancestry(&place.session, &third), []);
    let found = place.session.ancestry(&third, 16, 100, &all).unwrap();
    assert_eq!(addresses(&found), [(second, 1), (first, 2)]);
    assert_eq!(found.items[0].state.superseded_by, Some(third));
    let children =
        |options: &GraphOptions| addresses(&place.session.children(&first, 10, options).unwrap());
    assert_eq!(children(&GraphOptions::default()), []);
    assert_eq!(children(&all), [(second, 1)]);
}

#[test]
fn another_namespace_ends_a_line() {
    let place = Place::new();
    let within = |namespace: &str, mut grain: Value| {
        grain["namespace"] = json!(namespace);
        place.put(&grain)
    };
    let top = within("x", derived("top", &[]));
    let middle = within("y", derived("middle", &[json!(top.to_string())]));
    let bottom = within("x", derived("bottom", &[json!(middle.to_string())]));
    let session = place.within("x");
    assert_eq!(ancestry(&place.session, &bottom), [(middle, 1), (top, 2)]);
    assert_eq!(ancestry(&session, &bottom), []);
    assert_eq!(session.children(&top, 10, &GraphOptions::default()).unwrap().items, []);
    for address in [middle, nowhere()] {
        assert_eq!(
            code(session.ancestry(&address, 16, 10, &GraphOptions::default())),
            "ERR_NOT_FOUND"
        );
        assert_eq!(code(session.children(&address, 10, &GraphOptions::default())), "ERR_NOT_FOUND");
        assert_eq!(
            code(session.related(&address, None, 10, &GraphOptions::default())),
            "ERR_NOT_FOUND"
        );
    }
    let most = MAX_RELATIVES + 1;
    assert_eq!(code(session.ancestry(&bottom, 16, most, &GraphOptions::default())), "ERR_LIMIT");
    assert_eq!(code(session.children(&top, most, &GraphOptions::default())), "ERR_LIMIT");
}

#[test]
fn cross_links_are_found_from_both_ends() {
    let place = Place::new();
    let target = place.edge("target", "is", "here");
    let hidden = place.edge_in("y", "hidden", "away");
    let link = |to: &ContentAddress, kind: &str| json!({"hash": to, "relation_type": kind});
    let mut grain = edge("source", "points", "there");
    grain["related_to"] = json!([
        link(&target, "supports"),
        link(&target, "supports"),
        link(&target, "elaborates"),
        link(&hidden, "supports"),
        link(&nowhere(), "supports"),
    ]);
    let source = place.put(&grain);
    let related = |session: &Session, of, kind| {
        let found = session.related(of, kind, 100, &GraphOptions::default()).unwrap().items;
        found.into_iter().map(|one| (one.address, one.kind, one.direction)).collect::<Vec<_>>()
    };
    let session = place.within("shared");
    let both = |address, direction| {
        ["supports", "elaborates"].map(|kind| (address, kind.to_owned(), direction))
    };
    assert_eq!(related(&session, &source, None), both(target, Direction::Out));
    assert_eq!(related(&session, &target, None), both(source, Direction::In));
    assert_eq!(related(&session, &target, Some("supports")).len(), 1);
    assert_eq!(related(&session, &target, Some("contradicts")), []);
    assert_eq!(related(&place.session, &source, Some("supports")).len(), 2);
}
