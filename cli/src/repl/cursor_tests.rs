//! Tests of the expectation at each position of a statement.

use grainstore::cal::vocabulary;

use super::*;

fn field(of: &str) -> Wanted {
    Wanted::Field(Some(of.to_owned()))
}

fn names(names: &[&str]) -> Wanted {
    Wanted::Names(names.iter().map(|name| (*name).to_owned()).collect())
}

/// The clauses of a RECALL without these.
fn clauses(gone: &[&str]) -> Wanted {
    Wanted::Clauses(RECALL_CLAUSES.iter().copied().filter(|word| !gone.contains(word)).collect())
}

/// The clauses of an ASSEMBLE after its sources without these.
fn assembly(gone: &[&str]) -> Wanted {
    let behind = ["BUDGET", "PRIORITY", "FORMAT", "STREAM", "WITH"];
    Wanted::Clauses(behind.into_iter().filter(|word| !gone.contains(word)).collect())
}

#[test]
fn every_word_that_is_offered_is_a_word_of_the_grammar() {
    let known: Vec<_> = vocabulary::keywords().collect();
    let of_clauses = [
        STATEMENT_KEYWORDS,
        RECALL_CLAUSES,
        SET_OPERATORS,
        STAGES,
        ASSEMBLE_CLAUSES,
        WRITE_CLAUSES,
        HISTORY_CLAUSES,
        CONDITION_OPERATORS,
    ];
    let all = of_clauses.into_iter().chain([TEMPLATE_PARTS, TEMPLATE_SECTIONS]);
    for word in all.flat_map(|words| words.iter()) {
        assert!(known.contains(word), "{word}");
    }
}

#[test]
fn a_place_calls_for_what_the_grammar_has_there() {
    let value = |field: &str| Wanted::ValueOf(field.to_owned());
    for (before, wanted) in [
        ("", Wanted::Keywords(STATEMENT_KEYWORDS)),
        ("REC", Wanted::Keywords(STATEMENT_KEYWORDS)),
        ("RECALL goals; ", Wanted::Keywords(STATEMENT_KEYWORDS)),
        ("EXPLAIN ", Wanted::Keywords(STATEMENT_KEYWORDS)),
        ("RECALL ", Wanted::Plural),
        ("recall my be", Wanted::Plural),
        ("RECALL goals ", clauses(&["AND"])),
        ("(RECALL goals) ", Wanted::Keywords(SET_OPERATORS)),
        ("RECALL goals WHERE ", field("goals")),
        ("RECALL goals WHERE subject = \"a\" AND g", field("goals")),
        ("RECALL MY goals | SELECT subject, ", field("goals")),
        ("RECALL WHERE ", Wanted::Field(None)),
        ("RECALL goals WHERE goal_state ", Wanted::Keywords(CONDITION_OPERATORS)),
        ("RECALL goals | ORDER ", Wanted::Keywords(&["BY"])),
        ("RECALL goals | ORDER BY ", Wanted::Sortable),
        ("RECALL goals | GROUP BY s", Wanted::Groupable),
        ("RECALL goals WITH ", Wanted::Options),
        ("RECALL goals WITH superseded, ", Wanted::Options),
        ("RECALL goals WITH dedup(", field("goals")),
        ("RECALL beliefs WHERE relation IS ", Wanted::Category),
        ("RECALL beliefs AS ", Wanted::Format),
        ("RECALL beliefs LIMIT ", Wanted::Nothing),
        ("HISTORY WHERE subject = \"a\" AND relation = \"b\" AS ", Wanted::Keywords(&["OF"])),
        ("DESCRIBE ", Wanted::Described),
        ("DESCRIBE fields ", Wanted::Singular),
        ("ADD ", Wanted::Singular),
        ("ADD belief SET ", field("belief")),
        ("DEFINE ", Wanted::Keywords(&["TEMPLATE"])),
        ("DEFINE TEMPLATE brief ", Wanted::Keywords(TEMPLATE_PARTS)),
        ("DEFINE TEMPLATE brief ELEMENT { RECALL", Wanted::Nothing),
        ("DEFINE TEMPLATE brief ELEMENT {", Wanted::Nothing),
        ("DEFINE TEMPLATE brief ELEMENT { RECALL ", Wanted::Nothing),
        ("DEFINE TEMPLATE brief ELEMENT {\n  REC\nWHERE ", Wanted::Nothing),
        ("DEFINE TEMPLATE brief ELEMENT { {{grain.c", Wanted::Variable),
        ("DEFINE TEMPLATE brief ELEMENT { {{#", Wanted::Variable),
        ("DEFINE TEMPLATE brief ELEMENT { {{grain.content}} gr", Wanted::Nothing),
        ("DEFINE TEMPLATE brief {", Wanted::Keywords(TEMPLATE_SECTIONS)),
        (
            "DEFINE TEMPLATE brief EXTENDS compact { ELEMENT {x} ",
            Wanted::Keywords(TEMPLATE_SECTIONS),
        ),
        ("ASSEMBLE FROM (RECALL) FORMAT TEMPLATE { ", Wanted::Keywords(TEMPLATE_SECTIONS)),
        (
            "ASSEMBLE FROM (RECALL) FORMAT TEMPLATE { ELEMENT {x} H",
            Wanted::Keywords(TEMPLATE_SECTIONS),
        ),
        ("ASSEMBLE FROM (RECALL) FORMAT TEMPLATE { ELEMENT {x} } ", assembly(&["FORMAT"])),
        ("ASSEMBLE FROM (RECALL) STREAM { ", Wanted::Streamed),
        ("ASSEMBLE FROM (RECALL) STREAM { progress, bud", Wanted::Streamed),
        ("ASSEMBLE FROM (RECALL) STREAM { chunk_size = ", Wanted::Nothing),
        ("ASSEMBLE FROM (RECALL) STREAM { all } ", assembly(&["STREAM"])),
        ("ASSEMBLE FROM ", Wanted::Source(BTreeSet::new())),
        ("ASSEMBLE FROM a: ", Wanted::Source(BTreeSet::new())),
        (
            "LET $who = RECALL; ASSEMBLE FROM a: (RECALL x), ",
            Wanted::Source(["$who".to_owned()].into()),
        ),
        ("RECALL THREAD FROM ", Wanted::Nothing),
        ("BATCH { a: RECALL goals ", clauses(&["AND"])),
        ("BATCH { a: RECALL WHERE subject = \"a\", b: RECALL goals ", clauses(&["AND"])),
        ("RECALL goals ABOUT \"a\" WHERE confidence > 0 ", clauses(&["ABOUT", "WHERE"])),
        ("ASSEMBLE reply ", Wanted::Clauses(vec!["FOR", "FROM"])),
        ("ASSEMBLE FOR \"x\" ", Wanted::Clauses(vec!["FROM"])),
        ("BATCH { a: RECALL THREAD FROM $m, b: ", Wanted::Keywords(BATCH_STATEMENTS)),
        ("BATCH { a: ", Wanted::Keywords(BATCH_STATEMENTS)),
        ("DEFINE TEMPLATE brief ELEMENT { RECALL } ", Wanted::Keywords(TEMPLATE_PARTS)),
        ("ASSEMBLE FROM a: (", Wanted::Keywords(&["RECALL"])),
        ("ASSEMBLE FROM a: (RECALL events WHERE ", field("events")),
        ("ASSEMBLE FROM a: (RECALL events) ", assembly(&[])),
        ("ASSEMBLE FROM a: (RECALL x), b: (RECALL y) PRIORITY ", names(&["a", "b"])),
        ("ASSEMBLE FROM a: (RECALL x), b: (RECALL y) PRIORITY b > ", names(&["a", "b"])),
        ("LET $who = RECALL beliefs; RECALL WHERE subject IN ($", names(&["$who"])),
        ("LET $who = ", Wanted::Keywords(&["RECALL"])),
        ("RECALL beliefs ABOUT \"al", value("subject")),
        ("RECALL beliefs WHERE subject = \"", value("subject")),
        ("RECALL beliefs WHERE subject IN (\"a\", \"", value("subject")),
        ("RECALL goals WHERE goal_state = \"a", value("goal_state")),
        ("RECALL -- comment", Wanted::Nothing),
        ("RECALL beliefs WHERE confidence > 0.", Wanted::Nothing),
    ] {
        assert_eq!(place(before).wanted, wanted, "{before}");
    }
}

#[test]
fn the_word_begins_where_it_does() {
    for (before, start, quoted) in [
        ("RECALL be", 7, false),
        ("RECALL ", 7, false),
        ("ABOUT \"al x", 7, true),
        ("a $b", 2, false),
    ] {
        let place = place(before);
        assert_eq!((place.start, place.quoted), (start, quoted), "{before}");
    }
}
