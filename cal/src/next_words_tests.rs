//! Tests of the words that may stand next.

use super::*;

fn at(before: &str) -> Vec<String> {
    next_words(before, "").into_iter().map(|word| word.text.into_owned()).collect()
}

/// The clauses and stages that may follow a RECALL.
const CLAUSES: &str = "ABOUT AS BETWEEN CONTRADICTIONS COUNT FIRST GROUP HASHES IN LIKE LIMIT OBJECTS OFFSET ORDER \
                       PROJECT RECENT SELECT SINCE SUBJECTS THREAD WHERE WITH";
const STAGES: &str = "COUNT FIRST GROUP HASHES LIMIT OBJECTS OFFSET ORDER PROJECT SELECT SUBJECTS";
const SECTIONS: &str = "ELEMENT ELEMENT_OMIT ELEMENT_SUMMARY FOOTER HEADER SOURCE_BREAK";
const TYPES: &str =
    "belief event state workflow action observation goal reasoning consensus consent";

#[test]
fn the_parser_says_what_may_stand_next() {
    let plural = format!(
        "beliefs events states workflows actions observations goals reasonings consensuses consents {}",
        CLAUSES.replace(" OBJECTS", " MY OBJECTS")
    );
    let again = CLAUSES.replace("ABOUT ", "AND ").replace("WHERE ", "");
    let describes = format!("{TYPES} grain_types fields capabilities server templates grammar");
    for (before, words) in [
        ("RECALL ", plural.as_str()),
        ("RECALL goals ", CLAUSES),
        ("recall goals ", CLAUSES),
        ("RECALL goals ABOUT \"a\" WHERE confidence > 0 ", &again),
        ("RECALL goals | ", STAGES),
        ("RECALL goals | ORDER ", "BY"),
        (
            "RECALL goals | GROUP BY ",
            "subject relation object user_id type verification_status source_type",
        ),
        ("(RECALL goals) ", "EXCEPT INTERSECT UNION"),
        ("RECALL goals WHERE goal_state ", "BETWEEN EXCLUDE IN INCLUDE IS"),
        (
            "RECALL beliefs WHERE relation IS ",
            "AGENCY INTERACTION KNOWLEDGE LIFECYCLE OBSERVATION PERMISSION PREFERENCE",
        ),
        ("RECALL beliefs AS ", "sml markdown json yaml text triples toon csv table"),
        ("RECALL beliefs LIMIT ", ""),
        ("RECALL THREAD FROM ", ""),
        ("HISTORY ", "IN WHERE"),
        ("HISTORY WHERE subject = \"a\" AND relation = \"b\" AS ", "OF"),
        ("DESCRIBE ", &describes),
        ("DESCRIBE fields ", TYPES),
        ("ADD ", TYPES),
        ("ADD belief ", "SET"),
        ("DEFINE ", "TEMPLATE"),
        ("DEFINE TEMPLATE brief ELEMENT { RECALL ", ""),
        ("DEFINE TEMPLATE brief {", SECTIONS),
        ("DEFINE TEMPLATE brief EXTENDS compact { ELEMENT {x} ", SECTIONS),
        ("ASSEMBLE FROM (RECALL) FORMAT TEMPLATE { ", SECTIONS),
        ("ASSEMBLE FROM (RECALL) FORMAT TEMPLATE { ELEMENT {x} } ", "BUDGET PRIORITY STREAM WITH"),
        ("ASSEMBLE FROM (RECALL) STREAM { progress, ", "progress budget chunks all chunk_size"),
        ("ASSEMBLE FROM (RECALL) STREAM { chunk_size = ", ""),
        ("ASSEMBLE FROM (RECALL) STREAM { all } ", "BUDGET FORMAT PRIORITY WITH"),
        ("ASSEMBLE ", "FOR FROM"),
        ("ASSEMBLE reply ", "FOR FROM"),
        ("ASSEMBLE FOR \"x\" ", "FROM"),
        ("ASSEMBLE FROM ", "(RECALL"),
        ("ASSEMBLE FROM a: ", "(RECALL"),
        ("ASSEMBLE FROM a: (", "RECALL"),
        ("ASSEMBLE FROM a: (RECALL events) ", "BUDGET FORMAT PRIORITY STREAM WITH"),
        ("ASSEMBLE FROM a: (RECALL), b: (RECALL) PRIORITY ", "a b"),
        ("ASSEMBLE FROM a: (RECALL), b: (RECALL) PRIORITY b > ", "a b"),
        ("LET $who = ", "RECALL"),
        ("LET $who = RECALL; ASSEMBLE FROM a: (RECALL), ", "(RECALL $who"),
        ("BATCH { a: RECALL goals ", CLAUSES),
        ("BATCH { a: RECALL THREAD FROM $m, b: ", "COALESCE DESCRIBE EXISTS HISTORY RECALL"),
        ("RECALL -- comment", ""),
        ("RECALL beliefs WHERE confidence > 0.", ""),
        ("RECALL nonsense WHERE ", ""),
    ] {
        assert_eq!(at(before).join(" "), words, "{before}");
    }
}

#[test]
fn a_statement_begins_at_the_start_and_behind_a_semicolon() {
    for before in ["", "RECALL goals; ", "LET $who = RECALL; "] {
        let words = at(before);
        for word in
            ["RECALL", "ASSEMBLE", "HISTORY", "EXISTS", "DESCRIBE", "EXPLAIN", "BATCH", "ADD"]
        {
            assert!(words.iter().any(|one| one == word), "{word} after {before}");
        }
        assert!(!words.iter().any(|one| ["WHERE", "AND", "(RECALL"].contains(&one.as_str())));
    }
}

#[test]
fn fields_are_those_of_the_type() {
    for (before, has, has_not) in [
        ("RECALL goals WHERE ", "goal_state", "role"),
        ("RECALL MY goals | SELECT subject, ", "goal_state", "role"),
        ("RECALL goals WITH dedup(", "subject", "role"),
        ("ASSEMBLE FROM a: (RECALL events WHERE ", "role", "goal_state"),
        ("RECALL WHERE ", "subject", "goal_state"),
        ("ADD belief SET ", "subject", "goal_state"),
        ("RECALL goals | ORDER BY ", "confidence", "goal_state"),
    ] {
        let words = at(before);
        let stands = |field: &str| words.iter().any(|word| word == field);
        assert!(stands(has) && !stands(has_not), "{before}: {words:?}");
    }
    assert!(at("RECALL goals WHERE ").contains(&"hc:".to_owned()));
}

#[test]
fn what_was_typed_is_the_beginning_in_any_case() {
    let words = next_words("RECALL goals ", "wh");
    assert_eq!(words, [word("WHERE", NextWordKind::Keyword)]);
    assert_eq!(next_words("RECALL ", "GOA"), [word("goals", NextWordKind::Name)]);
    assert_eq!(next_words("RECALL goals AS ", "sm"), [word("sml", NextWordKind::Bare)]);
}
