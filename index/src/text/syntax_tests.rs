//! Tests of query parsing.

use proptest::prelude::*;

use super::super::query::FullTextQuery;
use super::*;

/// The clauses in readable form: terms of a word joined by `|`, phrases in quotes with relative positions
/// after `@`.
fn shown(clauses: &[Clause]) -> String {
    let clause = |clause: &Clause| {
        let sign = match clause.occur {
            Occur::Should => "",
            Occur::Boost => "^",
            Occur::Must => "+",
            Occur::MustNot => "-",
        };
        let ask = match &clause.ask {
            TermMatch::Word(terms) => terms.join("|"),
            TermMatch::Phrase(terms) => {
                let terms: Vec<_> = terms.iter().map(|(t, at)| format!("{t}@{at}")).collect();
                format!("\"{}\"", terms.join(" "))
            }
            TermMatch::Identifier(term, phrases) => {
                let phrase = |terms: &Phrase| {
                    let terms: Vec<_> = terms.iter().map(|(t, at)| format!("{t}@{at}")).collect();
                    format!("|\"{}\"", terms.join(" "))
                };
                format!("{term}{}", phrases.iter().map(phrase).collect::<String>())
            }
            TermMatch::Prefix(term) => format!("{term}*"),
            TermMatch::Begin(term, others) => format!("{term}*|{}", others.join("|")),
            TermMatch::Fuzzy(term, edits) => format!("{term}~{edits}"),
        };
        format!("{sign}{ask}")
    };
    clauses.iter().map(clause).collect::<Vec<_>>().join(" ")
}

fn check(text: &str, expected: &str) {
    let question = FullTextQuery::parse(text, Language::English).unwrap();
    assert_eq!(shown(question.clauses()), expected, "{text:?}");
}

#[test]
fn plain_words_add_to_the_score() {
    check("painted sunrises", "paint sunris");
    check("dog dogs DOG", "dog");
    let user_id = "user-id|\"user@0 id@1\"|\"user@0 id@0\"";
    check("user-id", &format!("{user_id} ^user|id"));
    check("user-id user user-id", &format!("{user_id} user ^id"));
    check("getUserName", "getusernam|\"get@0 user@1 name@2\" ^get|user|name");
    check(
        "get_userName",
        "get_username|\"get@0 usernam@1\"|\"get@0 user@1 name@2\"|\"get@0 usernam@0\" ^get|usernam|user|name",
    );
    check("item217 B12", "item217|\"item@0 217@1\" b12|\"b@0 12@1\" ^item");
    check("C++", "c++|c");
    check("東京都", "東京|京都");
    check("東", "東*");
    check("👍🏽", "👍");
    check("", "");
}

#[test]
fn signs_say_what_must_be_there_and_what_must_not() {
    check("+dogs -cats mice", "+dog -cat mice");
    check("+user-id", "+user-id|\"user@0 id@1\"|\"user@0 id@0\"");
    check("-東京都", "-\"東京@0 京都@1\"");
    check("+\"the dog\" -\"a cat\"", "+\"the@0 dog@1\" -\"a@0 cat@1\"");
    check("+iPhone", "+iphon|\"i@0 phone@1\"");
    check("+C++ -c#", "+c++ -c#");
    check("+the", "+the");
}

#[test]
fn a_phrase_keeps_its_words_at_their_distances() {
    check("\"the quick dogs\"", "\"the@0 quick@1 dog@2\"");
    check("\u{201c}user-id is\u{201d}", "\"user@0 id@1 is@2\"");
    check("\"dogs\"", "dog");
    check("\"東京都\"", "\"東京@0 京都@1\"");
    check("\"a b\"~3 c", "\"a@0 b@1\" c");
    check("\"\" \"  \"", "");
}

#[test]
fn beginnings_and_near_words() {
    check("develop*", "develop*");
    check("running*", "run*");
    check("cars*,", "car*");
    check("user-i*", "user-i*");
    check("city* -univers*", "city*|citi -univer*");
    assert!(matches!(
        FullTextQuery::parse("+activit*", Language::English).unwrap().clauses(),
        [Clause { occur: Occur::Must, ask: TermMatch::Begin(prefix, others) }]
            if &**prefix == "activit" && others.contains(&"activ".into())
    ));
    let french = FullTextQuery::parse("universit* chevaux*", Language::French).unwrap();
    assert_eq!(shown(french.clauses()), "univers* chevaux*|cheval", "as far as it was typed");
    check("paintng~ paintng~2 paintng~1", "paintng~1 paintng~2");
    check("paintng~9", "paintng~2");
    check("paintng~0", "paintng");
    check("ox~2 cat~2", "ox cat~1");
    check("+pain* -paint~", "+pain* -paint~1");
}

#[test]
fn odd_text_is_words_or_nothing() {
    check("\"unbalanced dog", "unbalanc dog");
    check("5\" disk", "5 disk");
    check("+ - * ~ \" ( ) && || ! ^ { } [ ] ? : \\ /", "");
    check("(foo|bar)*", "foo bar");
    check("[a-z]+\\d{3}", "a-z|\"a@0 z@1\"|\"a@0 z@0\" d 3 ^a|z");
    check("--flag ++x +-y", "flag x y");
    check("well-known - dash", "well-known|\"well@0 known@1\"|\"well@0 known@0\" dash ^well|known");
    check("*", "");
    check("*.rs", "rs");
    check("a\0b", "b");
    check("title:foo", "title:foo|\"titl@0 foo@1\"|\"titl@0 foo@0\" ^titl|foo");
}

#[test]
fn stop_words_are_dropped_unless_nothing_else_remains() {
    check("When did Melanie paint a sunrise?", "melani paint sunris");
    check("what's her name", "name");
    check("who are you", "who are you");
    check("the -cat", "-cat the");
    let other = FullTextQuery::parse("wer ist das Haus", Language::German).unwrap();
    assert_eq!(shown(other.clauses()), "haus");
    let unknown = FullTextQuery::parse("the cat", Language::None).unwrap();
    assert_eq!(shown(unknown.clauses()), "the cat");
}

#[test]
fn a_sentence_has_no_signs() {
    let words = |text| shown(FullTextQuery::words(text, Language::English).unwrap().clauses());
    assert_eq!(words("Does \"Bob\" -like +tea* or coffee~2?"), "bob like tea coffe 2");
    assert_eq!(words("what is it"), "what is it");
}

#[test]
fn a_question_that_only_excludes_asks_for_nothing() {
    let is_empty = |text| FullTextQuery::parse(text, Language::English).unwrap().is_empty();
    assert!(is_empty("") && is_empty("-cat") && is_empty("?!"));
    assert!(!is_empty("cat") && !is_empty("the") && !is_empty("+cat -dog"));
}

#[test]
fn a_long_question_asks_for_its_first_terms_and_a_longer_one_is_refused() {
    let numbers = |count: usize| (0..count).map(|n| format!("w{n}x ")).collect::<String>();
    let question = FullTextQuery::words(&numbers(200), Language::None).unwrap();
    assert_eq!(question.clauses().iter().map(|c| term_count(&c.ask)).sum::<usize>(), MAX_TERMS);
    let code =
        |text: &str| FullTextQuery::parse(text, Language::None).map_err(|error| error.code()).err();
    assert_eq!(code(&numbers(MAX_WORDS)), None);
    assert_eq!(code(&numbers(MAX_WORDS + 1)), Some("ERR_LIMIT"));
    let plain = |count: usize| "word ".repeat(count);
    assert_eq!(code(&format!("\"{}\"", plain(MAX_TERMS))), None);
    assert_eq!(code(&format!("\"{}\"", plain(MAX_TERMS + 1))), Some("ERR_LIMIT"));
    assert_eq!(code(&format!("+{}", "a-".repeat(MAX_TERMS + 1))), None, "itself alone");
    let signed: String = (0..=MAX_TERMS).map(|n| format!("-w{n} ")).collect();
    assert_eq!(code(&signed), Some("ERR_LIMIT"));
}

proptest! {
    #[test]
    fn any_text_is_a_question(
        text in "\\PC{0,80}|[a-c+\"*~ \\-0-9(){}\\[\\]|^?:./]{0,80}",
        language in 0usize..19,
    ) {
        let language = Language::all().nth(language).unwrap_or_default();
        let question = FullTextQuery::parse(&text, language).unwrap();
        for clause in question.clauses() {
            let terms: Vec<&str> = match &clause.ask {
                TermMatch::Word(terms) => terms.iter().map(|term| &**term).collect(),
                TermMatch::Phrase(terms) => terms.iter().map(|(term, _)| &**term).collect(),
                TermMatch::Identifier(term, phrases) => {
                    let parts = phrases.iter().flatten().map(|(term, _)| &**term);
                    std::iter::once(&**term).chain(parts).collect()
                }
                TermMatch::Prefix(term) | TermMatch::Fuzzy(term, _) => vec![term],
                TermMatch::Begin(term, terms) => {
                    std::iter::once(&**term).chain(terms.iter().map(|term| &**term)).collect()
                }
            };
            prop_assert!(!terms.is_empty() && terms.iter().all(|term| !term.is_empty()));
        }
    }

    #[test]
    fn the_order_of_plain_words_does_not_change_what_is_asked(
        mut words in proptest::collection::vec("[a-z]{1,8}|[a-z]{2}-[a-z]{2}", 0..12),
    ) {
        let asked = |words: &[String]| {
            let question = FullTextQuery::words(&words.join(" "), Language::English).unwrap();
            let mut terms: Vec<String> = Vec::new();
            for clause in question.clauses() {
                match &clause.ask {
                    TermMatch::Word(found) => terms.extend(found.iter().map(ToString::to_string)),
                    other => terms.push(format!("{other:?}")),
                }
            }
            terms.sort();
            terms
        };
        let before = asked(&words);
        words.reverse();
        prop_assert_eq!(asked(&words), before);
    }
}
