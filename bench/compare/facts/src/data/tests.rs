use std::collections::{BTreeMap, BTreeSet};

use super::*;

#[test]
fn a_subject_has_twelve_facts_and_each_relation_twice() {
    let facts = Facts::new(1_200).unwrap();
    for question in 0..20 {
        let (subject, numbers) = facts.some_subject(question);
        let of: Vec<Fact> = numbers.iter().map(|number| facts.fact(*number)).collect();
        assert!(of.iter().all(|fact| fact.subject == subject), "{of:?}");
        assert!(of.is_sorted_by(|newer, older| newer.created_at > older.created_at));
        let mut relations = BTreeMap::new();
        of.iter().for_each(|fact| *relations.entry(&fact.relation).or_insert(0) += 1);
        assert!(relations.len() == 6 && relations.values().all(|count| *count == 2));
        let (relation, numbers) = facts.some_relation(question);
        assert_eq!(numbers.len(), 2);
        assert!(numbers.iter().all(|number| facts.fact(*number).relation == relation));
    }
    let of_others = facts.fact(1_200).subject;
    assert!((0..1_200).all(|number| facts.fact(number).subject != of_others));
}

#[test]
fn objects_have_4_to_12_words_and_one_of_their_own() {
    let facts = Facts::new(2_000).unwrap();
    let objects: Vec<String> = (0..2_000).map(|number| facts.fact(number).object).collect();
    let lengths: BTreeSet<_> = objects.iter().map(|object| object.split(' ').count()).collect();
    assert_eq!((lengths.first(), lengths.last()), (Some(&4), Some(&12)));
    assert!(objects[711].ends_with(" number711"));
    assert_eq!((1..20_000).map(word).collect::<BTreeSet<_>>().len(), 19_999);
}

#[test]
fn a_rare_word_is_in_few_facts_and_a_common_one_in_one_of_a_hundred() {
    let facts = Facts::new(20_000).unwrap();
    let objects: Vec<String> = (0..20_000).map(|number| facts.fact(number).object).collect();
    let mean = |frequency| {
        let words: Vec<_> = (0..20).flat_map(|n| facts.some_words(frequency, n)).collect();
        let with = |word: &String| {
            objects.iter().filter(|object| object.split(' ').any(|one| one == word)).count()
        };
        words.iter().map(with).sum::<usize>() / words.len()
    };
    let (rare, common) = (mean(Frequency::Rare), mean(Frequency::Common));
    assert!((3..9).contains(&rare), "{rare}");
    assert!((100..400).contains(&common), "{common}");
    for question in 0..100 {
        let [one, other] = facts.some_words(Frequency::Common, question);
        assert_ne!(one, other);
    }
}
