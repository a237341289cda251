//! What a record names can be followed in the store: entities, and other records, in both directions.

use std::collections::BTreeSet;

use grainstore::cal::Query;
use grainstore::graph::GraphOptions;
use grainstore::prelude::*;
use grainstore_interop::Monitor;
use grainstore_interop::alf::{self, PurgeOptions, PurgeReason, PurgeScope};
use grainstore_interop::json::Value;
use serde_json::json;

use crate::kit::*;
use crate::round_trip::assert_same;

fn related(number: u32, links: &[(u32, &str)], entities: &[&str]) -> Value {
    let links = links.iter().map(|(to, relation)| json!({"id": id(*to), "relation": relation}));
    let entities = entities.iter().map(|name| json!({"name": name, "type": "person"}));
    with(
        record(number, "2026-07-02T00:00:00Z"),
        json!({
            "related_records": links.collect::<Vec<_>>(), "entities": entities.collect::<Vec<_>>(),
            "tags": ["own", "entity:Mallory", "profile:alf"],
        }),
    )
}

/// Records that name each other, one that comes later, and one that never comes.
fn graph() -> Made {
    Made::of(vec![(
        "2026-Q3",
        vec![
            related(1, &[(2, "contradicts"), (4, "caused_by")], &["Ada", "Ada", "Bob the builder"]),
            related(2, &[(1, "contradicts"), (99, "related_to")], &["Ada"]),
            related(3, &[(1, "elaborates_on"), (2, "owns")], &["e\u{301}", ""]),
            with(
                related(4, &[(1, "caused")], &["Bob the builder"]),
                json!({"memory_type": "episodic"}),
            ),
        ],
    )])
}

/// The numbers of the memories that a question of CAL finds.
fn asked(world: &World, grains: &str, tag: &str) -> BTreeSet<u32> {
    let question = format!("RECALL {grains} WHERE tags INCLUDE [\"{tag}\"] LIMIT 100");
    let told = serde_json::to_value(world.session.ask(&question).unwrap()).unwrap().to_string();
    (1..10).filter(|number| told.contains(&format!("\"memory {number}"))).collect()
}

fn address(world: &World, number: u32) -> ContentAddress {
    let question = format!("RECALL beliefs WHERE tags INCLUDE [\"record:{}\"]", id(number));
    let told = serde_json::to_value(world.session.ask(&question).unwrap()).unwrap().to_string();
    let found = world.session.query(&Query::default(), &PageOptions::first(100)).unwrap().results;
    let row = found.iter().find(|row| {
        row.grain.text("object").is_some_and(|text| text.starts_with(&format!("memory {number}")))
    });
    let row = row.unwrap();
    assert!(told.contains(&row.content_address.to_string()), "{told}");
    row.content_address
}

#[test]
fn entities_and_records_are_followed_by_tags_in_all_versions() {
    let [world, other] = [World::new(), World::new()];
    world.import_made(&graph());
    let path = world.dir.path().join("in.alf");
    assert_same(&read(&path), &world.export().0);
    other.import(&world.dir.path().join("out.alf"));
    for world in [&world, &other] {
        for (grains, tag, numbers) in [
            ("beliefs", "entity:Ada".to_owned(), vec![1, 2]),
            ("beliefs", "entity:Bob the builder".to_owned(), vec![1]),
            ("events", "entity:Bob the builder".to_owned(), vec![4]),
            ("beliefs", "entity:\u{e9}".to_owned(), vec![3]),
            ("beliefs", format!("links:{}", id(1)), vec![2, 3]),
            ("events", format!("links:{}", id(1)), vec![4]),
            ("beliefs", format!("links:{}", id(2)), vec![1, 3]),
            ("beliefs", format!("links:{}", id(99)), vec![2]),
            ("beliefs", format!("record:{}", id(2)), vec![2]),
            ("beliefs", "entity:Bob".to_owned(), vec![]),
        ] {
            let numbers: BTreeSet<u32> = numbers.into_iter().collect();
            assert_eq!(asked(world, grains, &tag), numbers, "{tag}");
        }
    }
    // A new version of a record is what its name leads to.
    let changed = with(related(1, &[], &["Cleo"]), json!({"content": "memory 1, again"}));
    world.import_made(&Made::of(vec![("2026-Q3", vec![changed])]));
    assert_eq!(asked(&world, "beliefs", &format!("record:{}", id(1))), [1].into());
    assert_eq!(asked(&world, "beliefs", "entity:Ada"), [2].into());
    assert_eq!(asked(&world, "beliefs", "entity:Cleo"), [1].into());
    assert_eq!(asked(&world, "beliefs", &format!("links:{}", id(1))), [2, 3].into());
    world.verify();
}

#[test]
fn relations_that_the_store_has_a_word_for_are_links_of_the_graph() {
    let world = World::new();
    world.import_made(&graph());
    let [one, two, three] = [1, 2, 3].map(|number| address(&world, number));
    let links = |of: &ContentAddress| {
        let links = world.session.related(of, None, 10, &GraphOptions::default()).unwrap().items;
        let mut links: Vec<_> = links.into_iter().map(|link| (link.kind, link.address)).collect();
        links.sort();
        links
    };
    let elaborates = ("elaborates".to_owned(), three);
    let contradicts = |other| ("contradicts".to_owned(), other);
    let of_one = links(&one);
    assert_eq!(of_one.len(), 3, "{of_one:?}");
    assert!(of_one.contains(&contradicts(two)) && of_one.contains(&elaborates));
    assert!(of_one.iter().any(|(kind, _)| kind == "causal"));
    assert_eq!(links(&two), [contradicts(one)]);
}

#[test]
fn what_a_purged_record_named_is_not_found_any_more() {
    let world = World::new();
    world.import_made(&graph());
    let reason = PurgeOptions::new(PurgeReason::UserRequest, PERSON);
    let scope = PurgeScope::Records(vec![id(1)]);
    alf::purge(&world.session, &scope, &reason, &Monitor::default()).unwrap();
    assert_eq!(asked(&world, "beliefs", "entity:Ada"), [2].into());
    assert_eq!(asked(&world, "beliefs", "entity:Bob the builder"), BTreeSet::new());
    assert_eq!(world.export().0.records.len(), 3);
    world.verify();
}

#[test]
fn a_record_that_names_very_much_is_taken_and_what_it_names_first_is_followed() {
    let world = World::new();
    let names: Vec<String> = (0..20_000).map(|at| format!("name {at}")).collect();
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    let long = "n".repeat(5_000);
    names.insert(0, &long);
    let links: Vec<(u32, &str)> = (1_000..21_000).map(|to| (to, "related_to")).collect();
    world.import_made(&Made::of(vec![("2026-Q3", vec![related(1, &links, &names)])]));
    assert_eq!(asked(&world, "beliefs", "entity:name 5"), [1].into());
    assert_eq!(asked(&world, "beliefs", "entity:name 5000"), BTreeSet::new());
    assert_same(&read(&world.dir.path().join("in.alf")), &world.export().0);
}
