//! What is suggested in the place of refused statements: of both collections of near misses, and of statements whose
//! mending once asked another question.

use serde::Deserialize;

use super::{parse_and_check, with_correction};
use crate::source::QuerySource;

/// A statement that was meant to be CAL, as `vectors/README.md` has it.
#[derive(Deserialize)]
struct NearMiss {
    query: String,
    #[serde(default)]
    means: Vec<String>,
}

fn near_misses(text: &str) -> Vec<NearMiss> {
    // A label stands for some address.
    let text =
        text.replace("@bob_tea", &"ab12".repeat(16)).replace("@alice_tea", &"cd34".repeat(16));
    serde_json::from_str(&text).unwrap()
}

const SHAPED: &str = include_str!("../../../vectors/cal/near-misses.json");
const UNSEEN: &str = include_str!("../../../vectors/cal/near-misses-2.json");

/// The statement that is suggested, and what is said beside it.
fn suggested(query: &str) -> (Option<String>, String) {
    let Err(error) = parse_and_check(query) else { return (Some(query.to_owned()), String::new()) };
    let error = with_correction(error, query);
    (error.example_query().map(str::to_owned), error.suggestion().to_owned())
}

fn hash(query: &str) -> Option<String> {
    Some(QuerySource::read(query).ok()?.statement().ok()?.query_hash())
}

#[test]
fn most_near_misses_that_no_rule_was_made_for_are_mended_as_meant() {
    let (mut meant, mut exact) = (0, 0);
    for miss in near_misses(UNSEEN).into_iter().filter(|miss| !miss.means.is_empty()) {
        meant += 1;
        let (example, advice) = suggested(&miss.query);
        let found = example.as_deref().and_then(hash);
        if miss.means.iter().any(|means| found.is_some() && hash(means) == found) {
            exact += 1;
        } else {
            println!("{}\n    {example:?}\n    {advice}", miss.query);
        }
    }
    println!("{exact} of {meant}");
    assert!(exact * 100 >= meant * 80, "{exact} of {meant}");
}

#[test]
fn what_has_no_meaning_in_cal_gets_no_example() {
    let mut told = Vec::new();
    for miss in [SHAPED, UNSEEN].into_iter().flat_map(near_misses) {
        if miss.means.is_empty()
            && let (Some(example), _) = suggested(&miss.query)
            && example != miss.query
        {
            told.push(format!("{}\n    {example}", miss.query));
        }
    }
    assert!(told.is_empty(), "{}", told.join("\n"));
}

#[test]
fn what_is_suggested_asks_no_other_question() {
    for (query, expected) in [
        (
            "RECALL beliefs WHERE confidence >= 0.8 AND (subject = \"alice\" OR relation = \"prefers\")",
            Some(
                "(RECALL beliefs WHERE confidence >= 0.8 AND subject = \"alice\") UNION (RECALL beliefs WHERE \
                 confidence >= 0.8 AND relation = \"prefers\")",
            ),
        ),
        ("RECALL beliefs WHERE subject = \"a\" OR relation = \"b\" LIMIT 5", None),
        ("RECALL beliefs WHERE subject = \"a\" OR relation = \"b\" ORDER BY time", None),
        ("RECALL beliefs UNION RECALL goals LIMIT 5", None),
        ("RECALL beliefs, goals LIMIT 5", None),
        (
            "RECALL beliefs WHERE subject = \"a\" OR subject = \"b\" LIMIT 5",
            Some("RECALL beliefs WHERE subject IN (\"a\", \"b\") LIMIT 5"),
        ),
        (
            "RECALL tool_calls WHERE tool = \"search\"",
            Some("RECALL actions WHERE tool_name = \"search\""),
        ),
        (
            "RECALL beliefs WHERE subject IN (\"alice\";\"bob\")",
            Some("RECALL beliefs WHERE subject IN (\"alice\", \"bob\")"),
        ),
        (
            "RECALL beliefs WHERE subject IN (\"alice\"|\"bob\"|\"eve\") LIMIT 5",
            Some("RECALL beliefs WHERE subject IN (\"alice\", \"bob\", \"eve\") LIMIT 5"),
        ),
        (
            "RECALL beliefs WHERE subject IN (\"alice\"\"bob\") AND relation = \"likes\"",
            Some("RECALL beliefs WHERE subject IN (\"alice\", \"bob\") AND relation = \"likes\""),
        ),
        (
            "RECALL beliefs WHERE subject IN [\"alice\";\"bob\"]",
            Some("RECALL beliefs WHERE subject IN (\"alice\", \"bob\")"),
        ),
        (
            "RECALL beliefs WHERE object = \"a \"b\" c\"",
            Some("RECALL beliefs WHERE object = \"a \\\"b\\\" c\""),
        ),
        ("RECALL active goals", Some("RECALL goals WHERE goal_state = \"active\"")),
        ("RECALL frobs", None),
        (
            "ASSEMBLE FROM (RECALL beliefs) BUDGET 100 token",
            Some("ASSEMBLE FROM (RECALL beliefs) BUDGET 100 tokens"),
        ),
        (
            "ASSEMBLE FROM (RECALL beliefs) BUDGET 100 tok",
            Some("ASSEMBLE FROM (RECALL beliefs) BUDGET 100 tokens"),
        ),
        (
            "ASSEMBLE FROM (RECALL beliefs) BUDGET 1 token",
            Some("ASSEMBLE FROM (RECALL beliefs) BUDGET 1 tokens"),
        ),
        ("RECALL beliefs BUDGET 1 token", Some("ASSEMBLE FROM (RECALL beliefs) BUDGET 1 tokens")),
        (
            "RECALL beliefs WHERE subject = \"a\" BUDGET 5 grains",
            Some("ASSEMBLE FROM (RECALL beliefs WHERE subject = \"a\") BUDGET 5 grains"),
        ),
        ("ASSEMBLE FROM (RECALL beliefs) FORMAT xml", None),
        (
            "RECALL events ON \"2026-01-01\"",
            Some("RECALL events BETWEEN \"2026-01-01\" AND \"2026-01-01\""),
        ),
        (
            "DEFINE TEMPLATE x ELEMENT { {{#grain.contnet}}a{{/grain.contnet}} }",
            Some("DEFINE TEMPLATE x ELEMENT { {{#grain.content}}a{{/grain.content}} }"),
        ),
        (
            "DEFINE TEMPLATE x HEADER { {{total}} }",
            Some("DEFINE TEMPLATE x HEADER { {{budget.total}} }"),
        ),
    ] {
        let (example, advice) = suggested(query);
        let hash_of = |text: &str| hash(text).unwrap_or_default();
        assert_eq!(
            example.as_deref().map(hash_of),
            expected.map(hash_of),
            "{query}: {example:?}, {advice}"
        );
    }
}

#[test]
fn a_preview_that_was_asked_for_becomes_no_write() {
    let add = "ADD belief SET subject = \"a\" SET relation = \"b\" SET object = \"c\" REASON \"d\"";
    let supersede = "SUPERSEDE sha256:abcdef0123 SET object = \"c\" REASON \"d\"";
    for statement in [add, supersede] {
        for before in ["EXPLAIN:", "DRYRUN:", "TEST:", "PREVIEW", "EXPLAIN", "WHATIF:", "a:"] {
            let (example, _) = suggested(&format!("{before} {statement}"));
            let tier =
                example.map(|text| QuerySource::read(&text).unwrap().statement().unwrap().tier());
            assert!(tier.is_none_or(|tier| tier == 0), "{before} {statement}");
        }
    }
    assert_eq!(suggested(&format!("EXPLAIN: {add}")).0, Some(format!("EXPLAIN {add}")));
    assert_eq!(suggested(&format!("please {add}")).0, Some(add.to_owned()));
}

/// A word in the place of another is suggested only where the statement is one with it.
#[test]
fn what_is_to_change_grains_is_told_what_supersede_takes() {
    let address = format!("sha256:{}", "ab12".repeat(16));
    for word in ["UPDATE", "update", "REPLACE", "MODIFY", "CHANGE", "EDIT"] {
        for (rest, is_one) in [
            ("beliefs SET object = \"x\" WHERE subject = \"alice\"".to_owned(), false),
            ("belief SET object = \"x\" REASON \"y\"".to_owned(), false),
            ("\"alice\" SET object = \"x\" REASON \"y\"".to_owned(), false),
            (String::new(), false),
            (format!("{address} SET object = \"x\""), false),
            (format!("{address} SET object = \"x\" REASON \"y\""), true),
            (format!("{address} SET object = \"x\", confidence = 0.5 REASON \"y\""), true),
        ] {
            let (example, advice) = suggested(&format!("{word} {rest}"));
            assert_eq!(example.as_deref().and_then(hash).is_some(), is_one, "{word} {rest}");
            for told in ["SUPERSEDE", "address", "SET", "REASON", "RECALL it first"] {
                assert!(advice.contains(told), "{word} {rest}: {advice}");
            }
            assert!(!advice.contains("Did you mean"), "{word} {rest}: {advice}");
        }
    }
}

#[test]
fn long_statements_of_many_parts_are_given_up_after_so_many_steps() {
    use std::cell::Cell;

    use super::pattern::QueryPieces;
    use crate::scan::scan;

    for text in [
        format!("ASSEMBLE FROM {}", "a: RECALL beliefs, ".repeat(200)),
        format!("RECALL beliefs WHERE {}", "subject = \"a\" OR ".repeat(220)),
    ] {
        let text = text.get(..4090).unwrap_or(&text);
        let pieces = scan(text);
        let steps = Cell::new(5_000);
        let query = QueryPieces { text, all: &pieces, steps: &steps };
        super::rules::rewrites(query, pieces.len());
        assert_eq!(steps.get(), 0, "the steps are counted");
        assert_eq!(suggested(text).0, suggested(text).0);
    }
    let sources: Vec<String> = (0..8).map(|at| format!("s{at}: RECALL beliefs")).collect();
    let (example, _) = suggested(&format!("ASSEMBLE FROM {}", sources.join(", ")));
    assert!(example.is_some(), "as many sources as there may be are put in parentheses");
}

#[test]
fn a_keyword_is_suggested_only_where_it_makes_a_statement() {
    let address = format!("sha256:{}", "ab12".repeat(16));
    for query in [
        "RECENT beliefs",
        "RESET",
        &format!("RESET {address} REASON \"x\""),
        &format!("REVERSE {address}"),
        "SUPERVISE x",
        &format!("SUPERVISE {address} SET object = \"x\" REASON \"y\""),
        "PATCH",
        "WATCH",
        "CATCH beliefs",
        "MATCH (b:belief) RETURN b",
        "MATCH beliefs",
        "LEAD beliefs",
        "SELECT AVG(confidence) FROM beliefs",
        "AND beliefs",
        "RECALL beliefs WHERE subject = \"a\" LIMITS x",
    ] {
        let (_, advice) = suggested(query);
        assert!(!advice.is_empty() && !advice.contains("Did you mean"), "{query}: {advice}");
    }
    for (query, word) in [
        ("RECAL beliefs".to_owned(), "RECALL"),
        ("RECAL beleifs".to_owned(), "RECALL"),
        ("BACH { a: RECALL }".to_owned(), "BATCH"),
        (format!("REVERTS {address} REASON \"x\""), "REVERT"),
        (format!("SUPERCEDE {address} SET object = \"x\" REASON \"y\""), "SUPERSEDE"),
    ] {
        let (_, advice) = suggested(&query);
        assert_eq!(advice, format!("Did you mean \"{word}\"?"), "{query}");
    }
}

#[test]
fn hints_are_about_what_is_wrong() {
    for (query, words) in [
        ("RECALL beliefs LIMIT 10, 5", "OFFSET stands before"),
        ("RECALL events IN THREAD \"s\"", "THREAD"),
        (
            "ADD belief SET subject=\"a\", relation=\"b\", object=\"c\" REASON \"d\"",
            "SET of its own",
        ),
        ("EXISTS sha256:a1b2c3d4...", "address"),
        ("RECALL beliefs AS structured", "presets of FORMAT"),
        ("HISTORY \"alice\"", "HISTORY takes an address"),
        ("HISTORY OF \"alice\"", "HISTORY takes an address"),
        ("MY beliefs", "MY stands behind RECALL"),
        ("RECALL RECENT beliefs", "RECENT"),
        (
            "SUPERSEDE belief WHERE subject = \"a\" SET object = \"b\" REASON \"c\"",
            "RECALL it first",
        ),
    ] {
        let (example, advice) = suggested(query);
        assert!(advice.contains(words), "{query}: {advice}");
        assert_eq!(example.is_none(), query.starts_with("SUPERSEDE"), "{query}: {example:?}");
    }
}
