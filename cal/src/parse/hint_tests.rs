//! Errors for near misses: the code, the position, and the suggestion.

use crate::QuerySource;

#[rustfmt::skip]
const HINTS: &[(&str, &str, &str, &str)] = &[
    // Domain fields where they are not allowed.
    ("RECALL SELECT hc:x", "CAL-E021", "hc:x", "name a field of the table here"),
    ("RECALL SELECT object, hc:x", "CAL-E021", "hc:x", "name a field of the table here"),
    (r#"{"statement":"recall","pipeline":[{"select":["object","hc:x"]}]}"#, "CAL-E021", "\"hc:x\"", "name a field of the table here"),
    ("RECALL ORDER BY hc:x DESC", "CAL-E021", "hc:x", "name a field of the table here"),
    ("RECALL GROUP BY hc:x", "CAL-E021", "hc:x", "name a field of the table here"),
    ("RECALL WITH dedup(hc:x)", "CAL-E021", "hc:x", "name a field of the table here"),
    // Addresses without their prefix, or in quotes.
    ("EXISTS 0a1b2c3d", "CAL-E006", "0a1b2c3d", "sha256:0a1b2c3d, without quotes"),
    ("EXISTS 01234567", "CAL-E002", "01234567", "sha256:01234567, without quotes"),
    ("EXISTS abcdef01", "CAL-E002", "abcdef01", "sha256:abcdef01, without quotes"),
    ("HISTORY sha256:00000000 DIFF \"sha256:abcdef01\"", "CAL-E002", "\"sha256:abcdef01\"", "sha256:abcdef01, without quotes"),
    ("RECALL WHERE hash = 0a1b2c3d", "CAL-E006", "0a1b2c3d", "sha256:0a1b2c3d, without quotes"),
    // A type is expected after RECALL.
    ("RECALL facs", "CAL-E003", "facs", "Did you mean \"beliefs\"?"),
    ("RECALL alise", "CAL-E003", "alise", "use one of the ten grain types"),
    ("RECALL abuot \"a\"", "CAL-E002", "abuot", "Did you mean \"ABOUT\"?"),
    ("RECALL limt 5", "CAL-E002", "limt", "Did you mean \"LIMIT\"?"),
    ("DESCRIBE goals", "CAL-E002", "goals", "Did you mean \"goal\"?"),
    // Text without quotes, and words that cannot be text.
    ("RECALL ABOUT alice", "CAL-E002", "alice", "text stands in double quotes: \"alice\""),
    ("RECALL SINCE lastweek", "CAL-E002", "lastweek", "text stands in double quotes: \"lastweek\""),
    ("RECALL IN work", "CAL-E002", "work", "text stands in double quotes: \"work\""),
    ("RECALL WHERE subject = alice", "CAL-E002", "alice", "text stands in double quotes: \"alice\""),
    ("RECALL WHERE confidence > high", "CAL-E002", "high", "expected a number"),
    ("RECALL LIKE \"a\" WHERE score >= high", "CAL-E002", "high", "expected a number"),
    // Operators of other languages.
    ("RECALL WHERE subject == \"a\"", "CAL-E002", "=", "equality is one ="),
    ("RECALL WHERE subject <> \"a\"", "CAL-E002", ">", "inequality is !="),
    // Missing or extra commas.
    ("RECALL WITH superseded provenance", "CAL-E002", "provenance", "a comma stands between options"),
    ("ASSEMBLE FROM (RECALL), BUDGET 50 tokens", "CAL-E002", "BUDGET", "leave out the comma behind the last source"),
    ("ASSEMBLE FROM (RECALL),", "CAL-E002", "", "leave out the comma behind the last source"),
    ("ASSEMBLE FROM (RECALL) BUDGET 500tokens", "CAL-E006", "500tokens", "put a space behind the number: 500 tokens"),
    // The JSON form.
    (r#"{"statement":"recall","my":false}"#, "CAL-E020", "false", "leave the key out"),
    (r#"{"statement":"add","grain_type":"goal","set":[{"field":"object","value":"x"}]}"#, "CAL-E018", "", "add the key \"reason\""),
];

#[test]
fn near_misses_say_what_to_write() {
    for (source, code, place, suggestion) in HINTS {
        let read = QuerySource::read(source).and_then(|read| read.statement().map(|_| ()));
        let error = read.expect_err(source);
        assert_eq!(error.code(), *code, "{source}: {error}");
        let covered = error.position().and_then(|at| source.get(at.start..at.end));
        assert!(place.is_empty() || covered == Some(*place), "{source}: {covered:?}");
        let said = error.suggestion();
        assert!(said.contains(suggestion), "{source}: {said}");
    }
}

#[test]
fn a_source_may_be_called_as_a_clause() {
    for source in [
        "BATCH { a: RECALL SELECT object, hc: RECALL }",
        "ASSEMBLE FROM (RECALL), budget: (RECALL)",
        "RECALL WITH superseded, x_a LIMIT 5",
    ] {
        assert!(QuerySource::read(source).unwrap().statement().is_ok(), "{source}");
    }
}

/// A query up to a position, and the words that could follow.
#[rustfmt::skip]
const PLACES: &[(&str, &[&str])] = &[
    ("RECALL WHERE subject = \"a\" ", &["AND", "LIMIT"]),
    ("RECALL WHERE tags INCLUDE [\"a\"] ", &["AND"]),
    ("RECALL WHERE hc:x = 1 ", &["AND"]),
    ("RECALL ORDER BY time ", &["ASC", "DESC", "LIMIT"]),
    ("RECALL SELECT subject ", &[",", "AS"]),
    ("RECALL WITH superseded ", &[",", "WHERE"]),
    ("RECALL PROJECT content(object) ", &[",", "AS"]),
    ("RECALL PROJECT content(object ", &[",", ")"]),
    ("RECALL WHERE subject IN (\"a\" ", &[",", ")"]),
    ("RECALL WHERE tags INCLUDE [\"a\" ", &[",", "]"]),
    ("ASSEMBLE FROM (RECALL) STREAM { all ", &[",", "}"]),
    ("ASSEMBLE FROM a: (RECALL) PRIORITY a ", &[">", "BUDGET"]),
    ("ASSEMBLE x ", &["FOR", "FROM"]),
    ("ASSEMBLE FROM (RECALL) STREAM ", &["{", "WITH"]),
    ("ASSEMBLE FROM (RECALL beliefs ", &[")", "WHERE"]),
    ("COALESCE(RECALL, RECALL beliefs ", &[",", ")", "WHERE"]),
    ("(RECALL beliefs ", &[")", "WHERE"]),
    ("BATCH { a: RECALL beliefs ", &[",", "}", "WHERE"]),
    ("DEFINE TEMPLATE x ", &["EXTENDS", "{", "ELEMENT"]),
    ("RECALL IN ", &["SCOPE"]),
    ("RECALL THREAD ", &["FROM"]),
    ("RECALL WHERE subject IN (", &["RECALL"]),
    ("HISTORY sha256:00000000 ", &["DIFF"]),
    ("HISTORY WHERE subject = \"a\" AND relation = \"b\" ", &["AS OF"]),
    ("LET $a = RECALL beliefs ", &[";", "WHERE"]),
];

#[test]
fn what_may_stand_at_a_place_is_listed_there() {
    for (before, expected) in PLACES {
        for next in ["=", "qqzzqqzz"] {
            let source = format!("{before}{next}");
            let error = crate::parse::parse_unlocated(&source).expect_err(&source);
            for word in *expected {
                let listed = error.valid_values().iter().any(|valid| valid == word);
                assert!(listed, "{source}: {word} is not among {:?}", error.valid_values());
            }
        }
    }
}
