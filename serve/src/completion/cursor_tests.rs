//! Tests of the word at the cursor.

use super::*;

#[test]
fn a_place_calls_for_a_word_a_name_or_a_value() {
    let value = |field: &str| Wanted::ValueOf(field.to_owned());
    let lets =
        |names: &[&str]| Wanted::Parameter(names.iter().map(|name| (*name).to_owned()).collect());
    for (before, wanted) in [
        ("", Wanted::Word),
        ("REC", Wanted::Word),
        ("RECALL goals ", Wanted::Word),
        ("DEFINE TEMPLATE brief ELEMENT {", Wanted::Word),
        ("DEFINE TEMPLATE brief ELEMENT {\n  REC\nWHERE ", Wanted::Nothing),
        ("DEFINE TEMPLATE brief ELEMENT { {{grain.c", Wanted::Variable),
        ("DEFINE TEMPLATE brief ELEMENT { {{#", Wanted::Variable),
        ("DEFINE TEMPLATE brief ELEMENT { {{grain.content}} gr", Wanted::Nothing),
        ("LET $who = RECALL beliefs; RECALL WHERE subject IN ($", lets(&["$who"])),
        ("RECALL LIMIT $n", lets(&[])),
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
    for (before, start) in [("RECALL be", 7), ("RECALL ", 7), ("ABOUT \"al x", 7), ("a $b", 2)] {
        assert_eq!(place(before).start, start, "{before}");
    }
}
