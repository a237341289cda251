//! Tests of matching grains against queries by their own terms.

use proptest::prelude::*;

use super::super::language::Language;
use super::super::test_grains::blob;
use super::*;

const TURN: &str = r#"{"type": "event", "content": "The user_id of Bob's iPhone is u-17, 東京都"}"#;

fn answers(json: &str, question: &str) -> bool {
    let blob = blob(json);
    let document = Document::of(&GrainRef::new(&blob).unwrap(), &Settings::default());
    FullTextQuery::parse(question, Language::English).unwrap().matches(&document)
}

#[test]
fn a_grain_answers_by_what_it_has() {
    for (question, expected) in [
        ("bob", true),
        ("alice", false),
        ("alice bob", true),
        ("+alice bob", false),
        ("+bob", true),
        ("+bob -iphone", false),
        ("-alice", false),
        ("-alice bob", true),
        ("\"user id of bob\"", true),
        ("\"user-id of\"", true),
        ("\"id user\"", false),
        ("\"bob's iphone is\"", true),
        ("\"bob phone\"", true),
        ("+user_id", true),
        ("+id_user", false),
        ("+東京", true),
        ("+京都", true),
        ("+東都", false),
        ("都", true),
        ("ipho*", true),
        ("iphonx*", false),
        ("iphnoe~", true),
        ("iphx~", false),
        ("", false),
    ] {
        assert_eq!(answers(TURN, question), expected, "{question}");
    }
}

#[test]
fn a_phrase_does_not_span_two_texts() {
    let steps = r#"{"type": "workflow", "steps": ["open the door", "walk in"], "trigger": "bell"}"#;
    assert!(answers(steps, "\"the door\""));
    assert!(!answers(steps, "\"door walk\""));
}

#[test]
fn fields_that_match_are_named_titles_first() {
    let blob = blob(
        r#"{"type": "belief", "subject": "Bob", "relation": "likes_tea", "object": {"kind": "tea"},
            "confidence": 1.0, "structural_tags": ["tea"], "context": {"said": "green tea"}}"#,
    );
    let grain = GrainRef::new(&blob).unwrap();
    let fields = |question: &str| {
        let question = FullTextQuery::parse(question, Language::English).unwrap();
        DocumentReader::new(Settings::default()).matched_fields(&grain, &question)
    };
    assert_eq!(fields("tea"), ["relation", "object", "structural_tags", "context"]);
    assert_eq!(fields("+bob -green \"green tea\""), ["subject", "context"]);
    assert_eq!(fields("bob green"), ["subject", "context"]);
    assert_eq!(fields("-tea"), [""; 0]);
    assert_eq!(fields("coffee"), [""; 0]);
}

fn content(text: &str) -> Document {
    let mut fields = grainstore_format::Map::default();
    for (name, text) in [("type", "event"), ("content", text)] {
        fields.insert(name.to_owned(), grainstore_format::Value::Str(text.to_owned()));
    }
    fields.insert("created_at".to_owned(), grainstore_format::Value::Int(1i64.into()));
    let grain = grainstore_format::Grain::from_fields(fields).unwrap();
    let blob = grain.encode(grainstore_format::Encoding::MessagePack).unwrap();
    let settings = Settings::default();
    Document::of(&GrainRef::new(blob.bytes()).unwrap(), &settings)
}

proptest! {
    #[test]
    fn the_exact_words_of_a_grain_find_it(text in "\\PC{1,60}|[a-zA-Z0-9'_./:@T, -]{1,60}") {
        let document = content(&text);
        // The text in its canonical form, as it is stored.
        let text = grainstore_format::normalise_text(&text).unwrap().into_owned();
        let question = FullTextQuery::words(&text, Language::English).unwrap();
        prop_assert_eq!(question.is_empty(), document.is_empty());
        for clause in question.clauses() {
            prop_assert!(document.has(&clause.ask), "{:?}", clause);
            if let TermMatch::Word(terms) = &clause.ask {
                prop_assert!(terms.iter().all(|term| document.term(term).is_some()));
            }
        }
        let quoted = text.replace(['"', '\u{201c}', '\u{201d}'], " ");
        if let Ok(phrase) = FullTextQuery::parse(&format!("\"{quoted}\""), Language::English) {
            let document = content(&quoted);
            prop_assert_eq!(phrase.matches(&document), !document.is_empty());
        }
    }

    #[test]
    fn fields_match_alike_one_term_at_a_time_and_as_documents(
        subject in "[ab -]{1,4}", content in "[abc -]{1,8}", asked in "[abc*~+ -]{1,6}",
    ) {
        let blob = blob(&format!(
            r#"{{"type": "event", "content": "x {content}", "mood": "{subject}", "note": ["c"]}}"#,
        ));
        let grain = GrainRef::new(&blob).unwrap();
        let mut question = FullTextQuery::parse(&asked, Language::None).unwrap().clauses().to_vec();
        question.retain(|clause| !matches!(clause.ask, TermMatch::Phrase(_)));
        let settings = Settings::new(Language::None);
        let fields = |clauses| {
            DocumentReader::new(settings).matched_fields(&grain, &FullTextQuery::from_clauses(clauses))
        };
        let one_by_one = fields(question.clone());
        let nowhere = TermMatch::Phrase(vec![("x".into(), 0), ("x".into(), 1)]);
        question.push(Clause { occur: Occur::Should, ask: nowhere });
        prop_assert_eq!(fields(question), one_by_one);
    }

    #[test]
    fn each_word_of_a_grain_alone_finds_it(text in "[a-zA-Z0-9é東京ก -]{1,40}") {
        let document = content(&text);
        for word in text.split_whitespace() {
            let question = FullTextQuery::words(word, Language::English).unwrap();
            prop_assert!(question.is_empty() || question.matches(&document), "{}", word);
        }
    }
}
