//! Tests of the terms of whole grains.

use grainstore_format::{Encoding, Grain, Map, Value};
use proptest::prelude::*;

use super::super::language::Language;
use super::super::test_grains::blob;
use super::*;

fn document(json: &str) -> Document {
    Document::of(&GrainRef::new(&blob(json)).unwrap(), &Settings::default())
}

fn word(term: &str, weight: u32, lent: u32, places: &[u32]) -> DocumentTerm {
    DocumentTerm { term: term.into(), weight, lent, places: places.into() }
}

#[test]
fn words_of_a_turn_are_weighted_lent_and_placed() {
    let turn = document(r#"{"type": "event", "content": "Dogs chase a dog"}"#);
    let expected = [word("a", 6, 1, &[2]), word("chase", 6, 1, &[1]), word("dog", 12, 2, &[0, 3])];
    assert_eq!(turn.terms(), expected);
}

#[test]
fn only_turns_lend_words() {
    let belief = document(
        r#"{"type": "belief", "subject": "bob", "relation": "likes", "object": "tea",
            "confidence": 1.0}"#,
    );
    assert!(belief.terms().iter().all(|word| word.lent == 0 && word.weight == 8));
    assert_eq!(belief.terms().len(), 3);
}

#[test]
fn texts_of_a_grain_lie_too_far_apart_for_a_phrase() {
    let workflow =
        document(r#"{"type": "workflow", "steps": ["open door", "walk"], "trigger": "bell"}"#);
    let place = |term: &str| workflow.term(term).map(|word| word.places.to_vec());
    assert_eq!(place("open"), Some(vec![0]));
    assert_eq!(place("walk"), Some(vec![1 + POSITION_GAP]));
    assert_eq!(place("bell"), Some(vec![1 + 2 * POSITION_GAP]));
}

#[test]
fn a_grain_without_language_has_no_words() {
    let empty = document(r#"{"type": "event", "content": "... !"}"#);
    assert!(empty.is_empty());
    assert_eq!(empty, Document::default());
}

#[test]
fn so_many_occurrences_of_one_grain_are_indexed_and_no_more() {
    let content = "word ".repeat(MAX_OCCURRENCES) + "beyond";
    let long = document(&format!(r#"{{"type": "event", "content": "{content}"}}"#));
    let most = u32::try_from(MAX_OCCURRENCES).unwrap();
    assert_eq!(long.term("word").map(|word| word.lent), Some(most));
    assert_eq!(long.terms().len(), 1);
}

#[test]
fn words_given_apart_become_one_document() {
    let words = vec![word("b", 1, 0, &[2]), word("a", 1, 1, &[]), word("b", 2, 1, &[1])];
    let document = Document::from_terms(words);
    assert_eq!(document.terms(), [word("a", 1, 1, &[]), word("b", 3, 1, &[1, 2])]);
}

#[test]
fn a_reader_gives_what_reading_one_grain_gives() {
    let mut reader = DocumentReader::new(Settings::default());
    for content in ["first one", "zweites 東京", ""] {
        let json = format!(r#"{{"type": "event", "content": "x {content}"}}"#);
        let blob = blob(&json);
        let grain = GrainRef::new(&blob).unwrap();
        assert_eq!(reader.document(&grain), document(&json));
    }
}

/// A turn of a conversation with this content.
fn turn(content: &str) -> Vec<u8> {
    let mut fields = Map::default();
    for (name, text) in [("type", "event"), ("content", content)] {
        fields.insert(name.to_owned(), Value::Str(text.to_owned()));
    }
    fields.insert("created_at".to_owned(), Value::Int(1i64.into()));
    let grain = Grain::from_fields(fields).unwrap();
    grain.encode(Encoding::MessagePack).unwrap().into_bytes()
}

proptest! {
    #[test]
    fn a_document_is_what_its_occurrences_add_up_to(content in "[ab1é -]{1,60}|\\PC{1,60}") {
        let blob = turn(&content);
        let grain = GrainRef::new(&blob).unwrap();
        let mut words = Vec::new();
        let mut analyser = Analyser::new(Language::English);
        let _flow = analyser.analyse(grain.text("content").unwrap(), &mut |token| {
            words.push(word(token.term, 6, 1, &[token.position]));
            ControlFlow::Continue(())
        });
        let document = Document::of(&grain, &Settings::default());
        prop_assert_eq!(&document, &Document::from_terms(words));
        for word in document.terms() {
            prop_assert_eq!(document.term(&word.term), Some(word));
        }
    }

    #[test]
    fn words_ascend_and_every_one_stands_somewhere(content in "\\PC{1,80}", language in 0usize..19) {
        let language = Language::all().nth(language).unwrap_or_default();
        let blob = turn(&content);
        let grain = GrainRef::new(&blob).unwrap();
        let words = Document::of(&grain, &Settings::new(language));
        prop_assert!(words.terms().is_sorted_by(|a, b| a.term < b.term));
        for word in words.terms() {
            prop_assert!(!word.places.is_empty() && word.places.is_sorted_by(|a, b| a < b));
            prop_assert_eq!(word.weight, 6 * word.lent);
        }
    }
}
