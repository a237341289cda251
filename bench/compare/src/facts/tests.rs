use std::collections::BTreeSet;

use compare_facts::{Order, Peer, works};

use super::*;

/// What a store has figures of, of a few facts.
fn measured<P: Peer>() -> BTreeSet<String> {
    let directory = tempfile::tempdir().unwrap();
    let order = Order {
        peer: "one".to_owned(),
        grains: 1_300,
        pass: 1,
        calls: 4,
        patience: 1,
        directory: directory.path().to_owned(),
    };
    let records = compare_facts::measure::<P>(&order).unwrap();
    records.into_iter().map(|record| record.work).collect()
}

#[test]
fn every_store_is_right_and_has_figures_of_what_it_can() {
    let ours = measured::<grainstore_store::Grainstore>();
    assert_eq!(ours.len(), 23);
    let without = |works: &[&str]| {
        let mut rest = ours.clone();
        works.iter().for_each(|work| assert!(rest.remove(*work), "{work}"));
        rest
    };
    let language = [
        works::RECALL_RARE,
        works::RECALL_COMMON,
        works::TEXT,
        works::ASSEMBLE_RARE,
        works::ASSEMBLE_COMMON,
        works::ASSEMBLE_TRIMMED,
    ];
    assert_eq!(measured::<sqlite_store::Sqlite>(), without(&language));
    let words = [works::RARE, works::COMMON, works::IDENTIFIER, works::OPEN];
    assert_eq!(measured::<redb_store::Redb>(), without(&[&language[..], &words].concat()));
    let facts = [works::SUBJECT, works::RELATION, works::GET];
    assert_eq!(measured::<tantivy_store::Tantivy>(), without(&[&language[..], &facts].concat()));
}

#[test]
fn a_program_that_cannot_be_built_is_told_of() {
    let store =
        Store { name: "absent", terms: "", start: Start::Program("no such folder/Cargo.toml") };
    let error = store.prepare().unwrap_err().to_string();
    assert!(error.starts_with("absent could not be built"), "{error}");
    assert!(serve("absent").is_err() && serve("areev").is_err());
}
