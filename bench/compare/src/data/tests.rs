use std::collections::{HashMap, HashSet};

use super::*;

fn source() -> Source {
    Source::open(Path::new("/there is no such directory"), 2000).unwrap()
}

#[test]
fn without_wordnet_the_origin_says_so() {
    assert!(source().origin.contains("WordNet itself is not here"));
}

#[test]
fn a_data_set_has_the_size_asked_for_and_every_row_is_one_of_a_kind() {
    for size in [1, 19, 999, 1000, 1050, 5000] {
        let data = Dataset::of(&source(), size).unwrap();
        assert_eq!(data.len(), size);
        let distinct: HashSet<_> = data.rest(0).addresses.iter().collect();
        assert_eq!(distinct.len(), size);
        let ascending = data.rest(0).rows.windows(2).all(|pair| pair[0].time_ms < pair[1].time_ms);
        assert!(ascending);
    }
}

#[test]
fn every_person_has_twelve_facts() {
    let data = Dataset::of(&source(), 2000).unwrap();
    let mut facts: HashMap<&str, usize> = HashMap::new();
    for row in data.rest(0).rows.iter().filter(|row| row.namespace == PEOPLE) {
        *facts.entry(&row.subject).or_default() += 1;
    }
    assert!(facts.len() > 10);
    assert!(facts.values().all(|count| *count == FACTS_PER_PERSON));
}

#[test]
fn a_turn_answers_the_turn_before_it_in_its_session() {
    let data = Dataset::of(&source(), 1000).unwrap();
    let mut last: HashMap<&str, ContentAddress> = HashMap::new();
    let all = data.rest(0);
    for (row, address) in all.rows.iter().zip(all.addresses) {
        let Some(session) = row.session.as_deref() else { continue };
        assert_eq!(row.parent, last.get(session).copied(), "{session}");
        last.insert(session, *address);
    }
    assert!(last.len() > 5);
}

#[test]
fn a_fresh_row_is_the_same_however_it_is_asked_for() {
    let all = fresh(10, 5).unwrap();
    let last = fresh(14, 1).unwrap();
    assert_eq!(all[4].blob.address(), last[0].blob.address());
}
