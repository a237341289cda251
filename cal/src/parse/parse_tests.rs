//! The grammar as tables: queries with their normal form, and queries with their error.

use proptest::prelude::*;

use crate::correction::{parse, parse_bytes};

/// A query and its normal form.
#[rustfmt::skip]
pub(crate) const PRINTED: &[(&str, &str)] = &[
    ("RECALL", "RECALL"),
    ("CAL/1 recall", "RECALL"),
    ("recall BELIEFS -- all of them\n", "RECALL beliefs"),
    ("RECALL MY goals", "RECALL MY goals"),
    ("RECALL WHERE confidence > 00.50 AND importance < -007 AND score >= -0 LIMIT 010",
     "RECALL WHERE confidence > 0.50 AND importance < -7 AND score >= -0 | LIMIT 10"),
    ("RECALL facts", "RECALL facts"),
    ("define template t element { - {{grain.content}} -- no comment }",
     "DEFINE TEMPLATE t ELEMENT {\n- {{grain.content}} -- no comment\n}"),
    ("CAL/1 DEFINE TEMPLATE header EXTENDS Compact {\n  HEADER {\n<context>\n  }\n  FOOTER {} SOURCE_BREAK {\n\n }\n}",
     "DEFINE TEMPLATE header EXTENDS Compact HEADER {\n<context>\n} FOOTER {\n} SOURCE_BREAK {\n\n}"),
    ("LET $x = RECALL; DEFINE TEMPLATE t ELEMENT_SUMMARY {a\nb{} DROP é\"}",
     "LET $x = RECALL; DEFINE TEMPLATE t ELEMENT_SUMMARY {\na\nb{} DROP é\"}"),
    ("ASSEMBLE FROM (RECALL) FORMAT template Element WITH summarize",
     "ASSEMBLE FROM (RECALL) FORMAT TEMPLATE Element WITH summarize"),
    ("ASSEMBLE FROM header: (RECALL) WITH summarize FORMAT TEMPLATE { ELEMENT {x} ELEMENT_OMIT { {{! } }} } }",
     "ASSEMBLE FROM header: (RECALL) FORMAT TEMPLATE { ELEMENT {\nx\n} ELEMENT_OMIT {\n{{! } }}\n} } WITH summarize"),
    (r#"RECALL beliefs IN "work" ABOUT "alice""#, r#"RECALL beliefs IN "work" ABOUT "alice""#),
    (r#"RECALL IN SCOPE "work" SINCE $t"#, r#"RECALL IN SCOPE "work" SINCE $t"#),
    (r#"RECALL BETWEEN 1709251200 AND "today""#, r#"RECALL BETWEEN 1709251200 AND "today""#),
    (r#"RECALL events THREAD "s-1" RECENT 3"#, r#"RECALL events THREAD "s-1" RECENT 3"#),
    (r#"RECALL LIMIT 3 WHERE subject = "a\"b\\c\n""#, r#"RECALL WHERE subject = "a\"b\\c\n" | LIMIT 3"#),
    ("RECALL WHERE confidence >= 0.80 AND importance < -1", "RECALL WHERE confidence >= 0.80 AND importance < -1"),
    (r#"RECALL WHERE relation IS preference"#, "RECALL WHERE relation IS PREFERENCE"),
    (r#"RECALL WHERE subject IN ("a", $b) AND tags INCLUDE ["x","y",]"#, r#"RECALL WHERE subject IN ("a", $b) AND tags INCLUDE ["x", "y"]"#),
    (r#"RECALL WHERE tags EXCLUDE $t AND time BETWEEN "today" AND "now""#, r#"RECALL WHERE tags EXCLUDE $t AND time BETWEEN "today" AND "now""#),
    ("RECALL WHERE hash = sha256:0123abcd AND contradicted = TRUE", "RECALL WHERE hash = sha256:0123abcd AND contradicted = true"),
    ("RECALL consents WHERE scope = \"x\" AND purpose != \"y\"", "RECALL consents WHERE scope = \"x\" AND purpose != \"y\""),
    ("RECALL consensuses WHERE threshold >= 3", "RECALL consensuses WHERE threshold >= 3"),
    ("RECALL ORDER BY time DESC LIMIT 5 OFFSET $o", "RECALL | ORDER BY time DESC | LIMIT 5 | OFFSET $o"),
    ("RECALL beliefs | ORDER BY confidence | COUNT", "RECALL beliefs | ORDER BY confidence | COUNT"),
    ("RECALL | FIRST AS SML", "RECALL | FIRST AS sml"),
    ("RECALL AS Markdown", "RECALL AS markdown"),
    ("RECALL AS toon", "RECALL AS toon"),
    ("RECALL WITH summarize, superseded", "RECALL WITH summarize, superseded"),
    ("RECALL PROJECT attr(confidence, x_team), content(relation, object) AS sml",
        "RECALL | PROJECT content(relation, object), attr(confidence, x_team) AS sml"),
    ("RECALL | PROJECT attr(hc:index, observer) | LIMIT 2", "RECALL | PROJECT attr(hc:index, observer) | LIMIT 2"),
    ("ASSEMBLE FROM (RECALL AS yaml) FORMAT Triples", "ASSEMBLE FROM (RECALL AS yaml) FORMAT triples"),
    ("ASSEMBLE FROM (RECALL) FORMAT READABLE", "ASSEMBLE FROM (RECALL) FORMAT readable"),
    ("RECALL AS json WITH superseded, x_hint(1, \"a\"), x_bare", "RECALL WITH superseded, x_hint(1, \"a\"), x_bare AS json"),
    ("RECALL WITH progressive_disclosure(headlines), iso_timestamps", "RECALL WITH progressive_disclosure(headlines), iso_timestamps"),
    (
        "RECALL WITH consistency(Bounded(1.5)), dedup(subject)",
        "RECALL WITH consistency(bounded(1.5)), dedup(subject)",
    ),
    ("RECALL WITH CONSISTENCY(eventual)", "RECALL WITH consistency(eventual)"),
    ("RECALL WITH consistency(linearizable)", "RECALL WITH consistency(linearizable)"),
    ("RECALL WITH locale(\"de\")", "RECALL WITH locale(\"de\")"),
    ("RECALL WITH Cache(TTL = 5)", "RECALL WITH cache(ttl = 5)"),
    (
        "RECALL WITH consistency(bounded($s)), diversity(mmr, lambda = $l)",
        "RECALL WITH consistency(bounded($s)), diversity(mmr, lambda = $l)",
    ),
    ("RECALL WITH diversity(threshold, 0.50), cache(ttl = $t)", "RECALL WITH diversity(threshold, 0.50), cache(ttl = $t)"),
    ("ASSEMBLE FROM (RECALL)", "ASSEMBLE FROM (RECALL)"),
    ("ASSEMBLE FROM (RECALL) stream BUDGET 9 grains", "ASSEMBLE FROM (RECALL) BUDGET 9 grains STREAM"),
    ("ASSEMBLE FROM (RECALL) WITH summarize STREAM{Chunk_Size=$n,ALL}",
        "ASSEMBLE FROM (RECALL) STREAM { chunk_size = $n, all } WITH summarize"),
    ("ASSEMBLE FROM (RECALL) STREAM { progress, budget, chunks, chunk_size = 020 } FORMAT toon",
        "ASSEMBLE FROM (RECALL) FORMAT toon STREAM { progress, budget, chunks, chunk_size = 20 }"),
    (
        "assemble ctx for \"why\" from history: (recall beliefs recent 5), recent:(RECALL) format structured \
         priority recent > history budget 100 tokens with dedup(subject), progressive_disclosure",
        "ASSEMBLE ctx FOR \"why\" FROM history: (RECALL beliefs RECENT 5), recent: (RECALL) BUDGET 100 tokens \
         PRIORITY recent > history FORMAT structured WITH dedup(subject), progressive_disclosure",
    ),
    ("ASSEMBLE last FROM a: (RECALL) BUDGET $n GRAINS", "ASSEMBLE last FROM a: (RECALL) BUDGET $n grains"),
    ("ASSEMBLE where FROM sha256: (RECALL), from:(RECALL)", "ASSEMBLE where FROM sha256: (RECALL), from: (RECALL)"),
    ("EXISTS sha256:0123456789abcdef", "EXISTS sha256:0123456789abcdef"),
    ("EXISTS $h", "EXISTS $h"),
    ("HISTORY sha256:01234567", "HISTORY sha256:01234567"),
    (
        r#"HISTORY IN "n" WHERE relation = $r AND subject = "s" AS OF "2025-01-01""#,
        r#"HISTORY IN "n" WHERE subject = "s" AND relation = $r AS OF "2025-01-01""#,
    ),
    (
        r#"ADD belief SET subject = "a" SET tags = ["x"] SET confidence = 1 REASON "why""#,
        r#"ADD belief SET subject = "a" SET tags = ["x"] SET confidence = 1 REASON "why""#,
    ),
    ("ADD consent SET scope = \"x\" REASON $r", "ADD consent SET scope = \"x\" REASON $r"),
    ("SUPERSEDE $h SET object = \"o\" REASON \"r\"", "SUPERSEDE $h SET object = \"o\" REASON \"r\""),
    ("revert $h reason \"r\"", "REVERT $h REASON \"r\""),
    ("EXPLAIN REVERT sha256:01234567 REASON $r", "EXPLAIN REVERT sha256:01234567 REASON $r"),
    ("RECALL ABOUT \"e\u{301}\"", "RECALL ABOUT \"é\""),
    // Subqueries, domain fields and threads.
    (
        "RECALL WHERE subject IN (RECALL goals WHERE goal_state = \"active\" SUBJECTS)",
        "RECALL WHERE subject IN (RECALL goals WHERE goal_state = \"active\" | SUBJECTS)",
    ),
    (
        "RECALL goals WHERE depends_on IN (RECALL goals | LIMIT 5 | HASHES) AND hc:key = 5 AND int:x IN (true, \"y\")",
        "RECALL goals WHERE depends_on IN (RECALL goals | LIMIT 5 | HASHES) AND hc:key = 5 AND int:x IN (true, \"y\")",
    ),
    ("RECALL WHERE subject IN ($x)", "RECALL WHERE subject IN ($x)"),
    ("RECALL events thread from sha256:01234567", "RECALL events THREAD FROM sha256:01234567"),
    ("RECALL THREAD FROM $m CONTRADICTIONS AS json", "RECALL THREAD FROM $m CONTRADICTIONS AS json"),
    // Labels may be any words, also keywords.
    (
        "BATCH { where: RECALL WHERE subject = \"a\", and: RECALL, sha256: RECALL, recall: RECALL, let: RECALL }",
        "BATCH { where: RECALL WHERE subject = \"a\", and: RECALL, sha256: RECALL, recall: RECALL, let: RECALL }",
    ),
    (
        "ASSEMBLE FROM union: (RECALL), let: (RECALL | SELECT subject) PRIORITY let > union",
        "ASSEMBLE FROM union: (RECALL), let: (RECALL | SELECT subject) PRIORITY let > union",
    ),
    // Stages.
    ("RECALL beliefs SELECT subject, object LIMIT 3", "RECALL beliefs | SELECT subject, object | LIMIT 3"),
    ("RECALL group by type", "RECALL | GROUP BY type"),
    ("RECALL RECENT 3 objects", "RECALL | OBJECTS RECENT 3"),
    (
        "RECALL WITH explanation, provenance, score_breakdown, contradiction_detection, dedup(subject)",
        "RECALL WITH explanation, provenance, score_breakdown, contradiction_detection, dedup(subject)",
    ),
    // LET, set operations and compound statements.
    (
        "let $a = recall goals | subjects; LET $b = RECALL WHERE subject IN ($a); ASSEMBLE FROM x: $b, ($b), (RECALL)",
        "LET $a = RECALL goals | SUBJECTS; LET $b = RECALL WHERE subject IN ($a); ASSEMBLE FROM x: $b, $b, (RECALL)",
    ),
    (
        "((RECALL beliefs) UNION (coalesce(RECALL goals, RECALL))) except (CAL/1 LET $x = RECALL | HASHES; RECALL)",
        "((RECALL beliefs) UNION (COALESCE (RECALL goals, RECALL))) EXCEPT (LET $x = RECALL | HASHES; RECALL)",
    ),
    (
        "BATCH { a: RECALL | SELECT subject, b: EXISTS $h, count: RECALL WITH superseded, d: describe fields goal,\
         coalesce: COALESCE(RECALL SELECT subject, RECALL), h: HISTORY $h DIFF $g }",
        "BATCH { a: RECALL | SELECT subject, b: EXISTS $h, count: RECALL WITH superseded, d: DESCRIBE fields goal, \
         coalesce: COALESCE (RECALL | SELECT subject, RECALL), h: HISTORY $h DIFF $g }",
    ),
    ("EXPLAIN (RECALL) INTERSECT (RECALL)", "EXPLAIN (RECALL) INTERSECT (RECALL)"),
    ("EXPLAIN ADD belief SET object = 1 REASON \"r\"", "EXPLAIN ADD belief SET object = 1 REASON \"r\""),
    ("DESCRIBE GRAIN_TYPES", "DESCRIBE grain_types"),
    ("DESCRIBE fields", "DESCRIBE fields"),
    ("DESCRIBE consent", "DESCRIBE fields consent"),
    ("describe grammar", "DESCRIBE grammar"),
    ("DESCRIBE capabilities", "DESCRIBE capabilities"),
    ("DESCRIBE server", "DESCRIBE server"),
    ("DESCRIBE templates", "DESCRIBE templates"),
];

#[test]
fn queries_print_in_normal_form_and_parse_to_the_same_again() {
    for (source, printed) in PRINTED {
        let statement = parse(source).unwrap_or_else(|error| panic!("{source}: {error}"));
        assert_eq!(statement.to_string(), *printed, "{source}");
        assert_eq!(parse(printed).unwrap(), statement, "{source}");
    }
}

#[test]
fn spelling_does_not_change_the_query_hash_and_content_does() {
    let hash = |source: &str| parse(source).unwrap().query_hash();
    assert_eq!(hash("CAL/1 recall Limit 5"), hash("RECALL | LIMIT 5"));
    assert_ne!(hash("RECALL | LIMIT 5"), hash("RECALL | LIMIT 6"));
    assert_eq!(hash("RECALL").len(), "sha256:".len() + 64);
}

/// A query, its error code, and the text at the error's position.
#[rustfmt::skip]
const REFUSED: &[(&str, &str, &str)] = &[
    // Words: forbidden, reserved, without a production, misspelt.
    ("", "CAL-E014", ""),
    ("  -- nothing\n ", "CAL-E014", ""),
    ("CAL/1", "CAL-E014", ""),
    ("CAL/2 RECALL", "CAL-E100", "2"),
    ("CAL/1.5 RECALL", "CAL-E006", "1.5"),
    ("DELETE beliefs", "CAL-E002", "DELETE"),
    ("RECALL beliefs WHERE key = 1", "CAL-E002", "key"),
    ("ASSEMBLE store FROM (RECALL)", "CAL-E002", "store"),
    ("ASSEMBLE extends FROM (RECALL)", "CAL-E002", "extends"),
    ("ASSEMBLE x FROM drop: (RECALL)", "CAL-E002", "drop"),
    ("ADD belief SET policy = 1 REASON \"r\"", "CAL-E002", "policy"),
    ("RECALL WITH index", "CAL-E002", "index"),
    ("FIND beliefs", "CAL-E002", "FIND"),
    ("RECALL WHERE subject = \"a\" OR subject = \"b\"", "CAL-E002", "OR"),
    ("RECALL WHERE NOT subject = \"a\"", "CAL-E002", "NOT"),
    ("RECALL WHERE subject = NULL", "CAL-E002", "NULL"),
    ("UNDEFINE x", "CAL-E002", "UNDEFINE"),
    ("RECAL beliefs", "CAL-E002", "RECAL"),
    ("beliefs", "CAL-E002", "beliefs"),
    ("RECALL beliefs beliefs", "CAL-E002", "beliefs"),
    ("RECALL beliefs WERE subject = 1", "CAL-E002", "WERE"),
    ("RECALL WERE subject = 1", "CAL-E002", "WERE"),
    ("RECALL beliefs;", "CAL-E002", ";"),
    ("RECALL # x", "CAL-E002", "#"),
    ("RECALL é", "CAL-E002", "é"),
    ("RECALL ABOUT 'alice'", "CAL-E002", "'"),
    // Types and fields.
    ("RECALL fact", "CAL-E003", "fact"),
    ("DESCRIBE fields beleif", "CAL-E003", "beleif"),
    ("DESCRIBE fields beliefs", "CAL-E003", "beliefs"),
    ("RECALL belief", "CAL-E003", "belief"),
    ("RECALL observation", "CAL-E003", "observation"),
    ("RECALL consent", "CAL-E003", "consent"),
    ("RECALL beleifs", "CAL-E003", "beleifs"),
    ("ADD beliefs SET object = \"o\" REASON \"r\"", "CAL-E003", "beliefs"),
    ("RECALL WHERE subjct = \"a\"", "CAL-E004", "subjct"),
    ("RECALL ORDER BY tme", "CAL-E004", "tme"),
    // Literals.
    ("RECALL ABOUT \"alice", "CAL-E005", "\"alice"),
    (r#"RECALL ABOUT "\ud800""#, "CAL-E005", r#""\ud800""#),
    ("RECALL LIMIT 1e5", "CAL-E006", "1e5"),
    ("RECALL LIMIT 12abc", "CAL-E006", "12abc"),
    ("RECALL LIMIT 1.", "CAL-E006", "1."),
    ("RECALL LIMIT -1", "CAL-E006", "-1"),
    ("RECALL LIMIT 2.5", "CAL-E006", "2.5"),
    ("RECALL WHERE confidence > .5", "CAL-E002", "."),
    ("RECALL LIMIT \"5\"", "CAL-E002", "\"5\""),
    ("RECALL ABOUT \"a\u{202E}b\"", "CAL-E071", "\"a\u{202E}b\""),
    (r#"RECALL ABOUT "\u2066""#, "CAL-E071", r#""\u2066""#),
    ("EXISTS sha256:0123", "CAL-E015", "sha256:0123"),
    ("EXISTS sha256:0123456G", "CAL-E015", "sha256:0123456G"),
    ("EXISTS sha256:0123456A", "CAL-E015", "sha256:0123456A"),
    ("EXISTS SHA256:01234567", "CAL-E015", "SHA256:01234567"),
    ("EXISTS \"sha256:01234567\"", "CAL-E002", "\"sha256:01234567\""),
    ("RECALL WHERE subject = alice", "CAL-E002", "alice"),
    ("RECALL WHERE tags INCLUDE [[\"a\"]]", "CAL-E020", "["),
    ("RECALL WHERE tags INCLUDE [\"a\" \"b\"]", "CAL-E002", "\"b\""),
    ("RECALL LIMIT $1", "CAL-E002", "$"),
    // Clauses.
    ("RECALL ABOUT \"a\" ABOUT \"b\"", "CAL-E002", "ABOUT"),
    ("RECALL WHERE subject = \"a\" WHERE object = \"b\"", "CAL-E002", "WHERE"),
    ("RECALL WHERE", "CAL-E002", ""),
    ("RECALL WHERE subject", "CAL-E002", ""),
    ("RECALL WHERE subject ~ \"x\"", "CAL-E002", "~"),
    ("RECALL WHERE relation IS HAPPY", "CAL-E002", "HAPPY"),
    ("RECALL | ", "CAL-E002", ""),
    ("RECALL | WHERE subject = \"a\"", "CAL-E002", "WHERE"),
    ("RECALL WITH colour", "CAL-E002", "colour"),
    ("RECALL WITH consistency(strong)", "CAL-E002", "strong"),
    ("RECALL WITH consistency(bounded(\"1\"))", "CAL-E002", "\"1\""),
    ("RECALL WITH progressive_disclosure(loud)", "CAL-E002", "loud"),
    ("RECALL AS prose", "CAL-E002", "prose"),
    ("RECALL PROJECT", "CAL-E002", ""),
    ("RECALL PROJECT object", "CAL-E002", "object"),
    ("RECALL PROJECT content()", "CAL-E002", ")"),
    ("RECALL PROJECT content(object), content(subject)", "CAL-E002", "content"),
    ("RECALL PROJECT attr(confidense)", "CAL-E004", "confidense"),
    ("RECALL PROJECT attr(x_)", "CAL-E004", "x_"),
    ("RECALL PROJECT attr(delete)", "CAL-E002", "delete"),
    ("RECALL AS readable", "CAL-E002", "readable"),
    ("ASSEMBLE FROM (RECALL) FORMAT prose", "CAL-E002", "prose"),
    ("ASSEMBLE x", "CAL-E002", ""),
    ("ASSEMBLE FROM a: (EXISTS $h)", "CAL-E002", "EXISTS"),
    ("ASSEMBLE FROM a (RECALL)", "CAL-E002", "("),
    ("ASSEMBLE FROM (RECALL) BUDGET 100 words", "CAL-E002", "words"),
    ("ASSEMBLE FROM (RECALL) BUDGET 100 tokens BUDGET 1 grains", "CAL-E002", "BUDGET"),
    ("ASSEMBLE FROM (RECALL beliefs", "CAL-E002", ""),
    ("HISTORY", "CAL-E002", ""),
    ("HISTORY WHERE subject = \"a\" AND subject = \"b\"", "CAL-E002", "subject"),
    ("HISTORY WHERE object = \"a\" AND subject = \"b\"", "CAL-E002", "object"),
    ("HISTORY sha256:01234567 DIFF", "CAL-E002", ""),
    ("RECALL | SELECT", "CAL-E002", ""),
    ("RECALL | SELECT subject,", "CAL-E002", ""),
    ("RECALL | SELECT nothing", "CAL-E004", "nothing"),
    ("RECALL GROUP subject", "CAL-E002", "subject"),
    ("RECALL WHERE hc:", "CAL-E002", ""),
    ("RECALL WHERE drop:x = 1", "CAL-E002", "drop"),
    ("RECALL WHERE hc:x INCLUDE [1]", "CAL-E002", "INCLUDE"),
    ("RECALL WHERE hc:x IN (RECALL | HASHES)", "CAL-E002", "RECALL"),
    ("RECALL WHERE subject IN (RECALL)", "CAL-E002", ")"),
    ("RECALL WHERE subject IN (RECALL | COUNT)", "CAL-E002", ")"),
    ("RECALL THREAD FROM \"s\"", "CAL-E002", "\"s\""),
    ("RECALL CONTRADICTIONS CONTRADICTIONS", "CAL-E002", "CONTRADICTIONS"),
    // LET, set operations and compound statements.
    ("LET x = RECALL; RECALL", "CAL-E002", "x"),
    ("LET $x = RECALL RECALL", "CAL-E002", "RECALL"),
    ("LET $x = EXISTS $h; RECALL", "CAL-E002", "EXISTS"),
    ("LET $x = RECALL;", "CAL-E002", ""),
    ("RECALL LET $x = RECALL;", "CAL-E002", "LET"),
    ("RECALL UNION RECALL", "CAL-E002", "UNION"),
    ("(RECALL)", "CAL-E002", ""),
    ("(RECALL) UNION RECALL", "CAL-E002", "RECALL"),
    ("(RECALL) UNION (EXISTS $h)", "CAL-E021", "EXISTS"),
    ("(ASSEMBLE FROM (RECALL)) UNION (RECALL)", "CAL-E021", "ASSEMBLE"),
    ("(RECALL) UNION (EXPLAIN RECALL)", "CAL-E021", "EXPLAIN"),
    ("(RECALL) UNION (beliefs)", "CAL-E002", "beliefs"),
    ("((((((RECALL) UNION (RECALL)", "CAL-E013", "("),
    ("BATCH { }", "CAL-E002", "}"),
    ("BATCH { a RECALL }", "CAL-E002", "RECALL"),
    ("BATCH { a: RECALL, a: RECALL }", "CAL-E009", "a"),
    ("BATCH { a: RECALL, RECALL }", "CAL-E002", "RECALL"),
    ("BATCH { a: RECALL, }", "CAL-E002", "}"),
    ("BATCH { a: RECALL", "CAL-E002", ""),
    ("BATCH { delete: RECALL }", "CAL-E002", "delete"),
    ("BATCH { a: ADD belief SET object = \"o\" REASON \"r\" }", "CAL-E002", "ADD"),
    ("BATCH { a: BATCH { b: RECALL } }", "CAL-E002", "BATCH"),
    ("COALESCE(RECALL)", "CAL-E002", ")"),
    ("COALESCE(RECALL, EXISTS $h)", "CAL-E002", "EXISTS"),
    ("EXPLAIN", "CAL-E002", ""),
    ("EXPLAIN EXPLAIN RECALL", "CAL-E002", "EXPLAIN"),
    ("RECALL EXPLAIN", "CAL-E002", "EXPLAIN"),
    ("DESCRIBE", "CAL-E002", ""),
    ("DESCRIBE beliefs", "CAL-E002", "beliefs"),
    ("DESCRIBE fields nothing", "CAL-E003", "nothing"),
    // Writes.
    ("ADD belief", "CAL-E050", ""),
    ("ADD belief REASON \"r\"", "CAL-E050", "REASON"),
    ("ADD belief SET object = \"o\"", "CAL-E018", ""),
    ("ADD belief SET object = \"o\" LIMIT 3", "CAL-E002", "LIMIT"),
    ("SUPERSEDE sha256:01234567 REASON \"r\"", "CAL-E019", "REASON"),
    ("SUPERSEDE sha256:01234567 SET object = \"o\"", "CAL-E018", ""),
    ("SUPERSEDE beliefs", "CAL-E002", "beliefs"),
    ("REVERT", "CAL-E002", ""),
    ("REVERT beliefs", "CAL-E002", "beliefs"),
    ("REVERT sha256:01234567", "CAL-E018", ""),
    ("REVERT sha256:01234567 SET object = \"o\" REASON \"r\"", "CAL-E002", "SET"),
    ("REVERT sha256:01234567 LIMIT 1", "CAL-E002", "LIMIT"),
    ("(RECALL) UNION (REVERT sha256:01234567 REASON \"r\")", "CAL-E021", "REVERT"),
    ("BATCH { a: REVERT sha256:01234567 REASON \"r\" }", "CAL-E002", "REVERT"),
    ("ASSEMBLE FROM (RECALL) STREAM { chunk }", "CAL-E077", "chunk"),
    ("ASSEMBLE FROM (RECALL) STREAM { all, recall }", "CAL-E077", "recall"),
    ("ASSEMBLE FROM (RECALL) STREAM { purge }", "CAL-E002", "purge"),
    ("ASSEMBLE FROM (RECALL) STREAM { }", "CAL-E002", "}"),
    ("ASSEMBLE FROM (RECALL) STREAM { all", "CAL-E002", ""),
    ("ASSEMBLE FROM (RECALL) STREAM { chunk_size }", "CAL-E002", "}"),
    ("ASSEMBLE FROM (RECALL) STREAM { chunk_size = 2.5 }", "CAL-E006", "2.5"),
    ("ASSEMBLE FROM (RECALL) STREAM STREAM", "CAL-E002", "STREAM"),
    ("RECALL STREAM", "CAL-E002", "STREAM"),
    ("DEFINE TEMPLATE", "CAL-E002", ""),
    ("DEFINE TEMPLATE EXTENDS compact ELEMENT {}", "CAL-E002", "EXTENDS"),
    ("DEFINE TEMPLATE t", "CAL-E002", ""),
    ("DEFINE TEMPLATE t {}", "CAL-E002", "}"),
    ("DEFINE TEMPLATE t ELEMENT x", "CAL-E002", "x"),
    ("DEFINE TEMPLATE drop ELEMENT {}", "CAL-E002", "drop"),
    ("DEFINE TEMPLATE t ELEMENT {x} FORMAT", "CAL-E002", "FORMAT"),
    ("EXPLAIN DEFINE TEMPLATE t ELEMENT {x}", "CAL-E002", "DEFINE"),
    ("BATCH { a: DEFINE TEMPLATE t ELEMENT {x} }", "CAL-E002", "DEFINE"),
    ("DEFINE TEMPLATE t ELEMENT { \u{202e} }", "CAL-E071", " \u{202e} "),
    ("DEFINE TEMPLATE t ELEMENT { {{x} }", "CAL-E094", "{"),
    ("ASSEMBLE FROM (RECALL) FORMAT TEMPLATE", "CAL-E002", ""),
    ("ASSEMBLE FROM (RECALL) FORMAT TEMPLATE {}", "CAL-E002", "}"),
    ("ASSEMBLE FROM (RECALL) FORMAT TEMPLATE grant", "CAL-E002", "grant"),
    ("RECALL AS TEMPLATE t", "CAL-E002", "TEMPLATE"),
    ("RECALL WITH cache(5)", "CAL-E002", "5"),
    ("RECALL WITH cache(ttl = 1.5)", "CAL-E006", "1.5"),
    ("RECALL WITH diversity(mmr, lambda = \"1\")", "CAL-E002", "\"1\""),
];

#[test]
fn wrong_queries_are_refused_with_code_and_place() {
    for (source, code, place) in REFUSED {
        let error = parse(source).expect_err(source);
        assert_eq!(error.code(), *code, "{source}: {error}");
        let position = error.position().unwrap_or_else(|| panic!("{source}: no position"));
        assert_eq!(source.get(position.start..position.end), Some(*place), "{source}: {error}");
        assert!(!error.suggestion().is_empty(), "{source}");
    }
}

#[test]
fn near_misses_are_told_what_was_probably_meant() {
    for (source, suggestion) in [
        ("RECALL beleifs", "Did you mean \"beliefs\"?"),
        ("RECALL fact", "Did you mean \"beliefs\"?"),
        ("RECALL goal", "Did you mean \"goals\"?"),
        ("ADD goals SET object = \"o\" REASON \"r\"", "Did you mean \"goal\"?"),
        ("RECALL WHERE subjet = \"a\"", "Did you mean \"subject\"?"),
        ("RECAL", "Did you mean \"RECALL\"?"),
        ("SELECT beliefs", "Did you mean \"RECALL\"?"),
        (
            "SELECT * FROM beliefs",
            "a query is RECALL and a type; what is shown of it stands in a SELECT behind it",
        ),
        ("RECALL beliefs SORT time", "Did you mean \"ORDER BY\"?"),
        ("RECALL beliefs SORT BY time", "it is ORDER BY field, then ASC or DESC; and one field"),
        ("RECALL SORT BY time", "it is ORDER BY field, then ASC or DESC; and one field"),
        ("RECALL beliefs FORMAT sml", "Did you mean \"AS\"?"),
        ("RECALL beliefs WERE", "Did you mean \"WHERE\"?"),
        ("RECALL WITH superceded", "Did you mean \"superseded\"?"),
        ("RECALL WHERE relation IS PREFERENCES", "Did you mean \"PREFERENCE\"?"),
        ("DESCRIBE capabilties", "Did you mean \"capabilities\"?"),
        ("DESCRIBE fields gaol", "Did you mean \"goal\"?"),
        ("(RECALL) UNOIN (RECALL)", "Did you mean \"UNION\"?"),
        ("RECALL | SUBJECT", "Did you mean \"SUBJECTS\"?"),
        ("ASSEMBLE FROM (RECALL) STREAM { chunk }", "Did you mean \"chunks\"?"),
        ("RECALL beliefs SELCT subject", "Did you mean \"SELECT\"?"),
        ("RECALL WITH explaination", "Did you mean \"explanation\"?"),
        ("BATCH { a: RECAL }", "Did you mean \"RECALL\"?"),
        ("RECALL WHERE subject = alice", "text stands in double quotes: \"alice\""),
        ("RECALL WHERE tag INCLUDE [\"x\"]", "Did you mean \"tags\"?"),
        ("RECALL events WHERE rol = \"x\"", "Did you mean \"role\"?"),
        (
            "RECALL events WHERE goal_stat = \"x\"",
            "Did you mean \"goal_state\"? It is a field of goals only.",
        ),
        (
            "RECALL WHERE sesion_id = \"x\"",
            "Did you mean \"session_id\"? It is a field of events only.",
        ),
        ("RECALL beliefs PROJEKT content(object)", "Did you mean \"PROJECT\"?"),
    ] {
        assert_eq!(parse(source).unwrap_err().suggestion(), suggestion, "{source}");
    }
}

#[test]
fn a_word_of_another_place_is_told_where_it_stands() {
    const SOURCE: &str = "a source stands in parentheses";
    for (source, place, told) in [
        ("RECALL beliefs;", ";", "leave it out: a query is one statement"),
        ("DESCRIBE grammar; RECALL", ";", "leave it out: a query is one statement"),
        ("ASSEMBLE FROM RECALL beliefs", "RECALL", SOURCE),
        ("ASSEMBLE FROM a: RECALL beliefs", "RECALL", SOURCE),
        ("ASSEMBLE FROM (RECALL), RECALL", "RECALL", SOURCE),
        ("ASSEMBLE FROM", "", SOURCE),
        ("HISTORY sha256:0123456789 AS OF \"today\"", "AS", "AS OF asks about a fact"),
        ("EXPLAIN HISTORY sha256:0123456789 AS OF \"today\"", "AS", "AS OF asks about a fact"),
        (
            "HISTORY WHERE subject = \"a\" AND relation = \"b\" DIFF sha256:0123456789",
            "DIFF",
            "DIFF compares two",
        ),
        ("HISTORY sha256:0123456789 LIMIT 5", "LIMIT", "expected DIFF"),
        ("HISTORY WHERE subject = \"a\" AND relation = \"b\" LIMIT 5", "LIMIT", "expected AS OF"),
        (
            "RECALL WHERE subject = \"a\" OR subject = \"b\"",
            "OR",
            "(RECALL ...) UNION (RECALL ...)",
        ),
        (
            "EXPLAIN",
            "",
            "expected RECALL, ASSEMBLE, EXISTS, HISTORY, ADD, SUPERSEDE, REVERT, BATCH, COALESCE, DESCRIBE or (",
        ),
        ("DEFINE TEMPLATE FOR HEADER {x}", "FOR", "expected a name for the template"),
        ("DEFINE TEMPLATE FROM HEADER {x}", "FROM", "expected a name for the template"),
        ("DEFINE TEMPLATE t HEADER {x", "{", "close it with }"),
        ("DEFINE TEMPLATE t HEADER {x}} FOOTER {y}", "}", "expected HEADER"),
        ("ASSEMBLE FROM (RECALL) FORMAT TEMPLATE { HEADER {x {y} ", "{", "close it with }"),
    ] {
        let error = parse(source).unwrap_err();
        let position = error.position().unwrap();
        let covered = source.get(position.start..position.end);
        assert_eq!(
            (error.code().starts_with("CAL-E"), covered),
            (true, Some(place)),
            "{source}: {error}"
        );
        assert!(error.suggestion().contains(told), "{source}: {}", error.suggestion());
    }
    let open = "ASSEMBLE FROM (RECALL) FORMAT TEMPLATE { HEADER {x {y} ";
    let error = parse(open).unwrap_err();
    assert_eq!(error.position().unwrap().start, open.find("{x").unwrap(), "the brace of the text");
}

#[test]
fn what_would_be_accepted_can_be_typed() {
    let names = |source: &str| parse(source).unwrap_err().valid_values().to_vec();
    for (source, there, missing) in [
        ("RECALL events WHERE sesion = \"x\"", "session_id", "goal_state"),
        ("RECALL goals SELECT sbject", "goal_state", "session_id"),
        ("RECALL THREAD \"s\" WHERE roles = \"x\"", "role", "goal_state"),
        (
            "RECALL goals WHERE subject IN (RECALL events WHERE x = 1 | SUBJECTS)",
            "role",
            "goal_state",
        ),
        (
            "RECALL goals WHERE subject IN (RECALL events | SUBJECTS) AND x = 1",
            "goal_state",
            "role",
        ),
        ("BATCH { a: RECALL events LIMIT 1, b: RECALL goals WHERE x = 1 }", "goal_state", "role"),
        ("RECALL goals WHERE", "goal_state", "role"),
        ("RECALL events PROJECT content(x)", "session_id", "query"),
        ("RECALL ORDER BY x", "time", "tags"),
        ("RECALL GROUP BY", "relation", "time"),
        ("RECALL goals SELECT x", "goal_state", "query"),
        ("RECALL WITH", "superseded", "an option"),
        ("RECALL ABOUT \"a\" x", "PROJECT", "a clause"),
    ] {
        let valid = names(source);
        assert!(valid.iter().any(|name| name == there), "{source}: {valid:?}");
        assert!(valid.iter().all(|name| name != missing), "{source}: {valid:?}");
    }
    for source in [
        "EXISTS",
        "RECALL ABOUT",
        "RECALL LIMIT",
        "ASSEMBLE FROM",
        "LET x = RECALL; RECALL",
        "RECALL WHERE subject =",
        "ADD",
        "DEFINE TEMPLATE",
        "BATCH { a: RECALL, }",
        "HISTORY",
    ] {
        let prose =
            names(source).into_iter().find(|name| name.starts_with("a ") || name.contains("and"));
        assert_eq!(prose, None, "{source}");
    }
}

#[test]
fn limits_of_the_text_are_held() {
    let long = format!("RECALL ABOUT \"{}\"", "x".repeat(8_200));
    assert_eq!(parse(&long).unwrap_err().code(), "CAL-E001");
    assert_eq!(parse_bytes(long.as_bytes()).unwrap_err().code(), "CAL-E001");
    let fits = format!("RECALL ABOUT \"{}\"", "x".repeat(8_192 - 15));
    assert_eq!(fits.len(), 8_192);
    assert!(parse(&fits).is_ok());
    assert_eq!(parse_bytes(b"RECALL \xFF").unwrap_err().code(), "CAL-E070");
    let names: Vec<_> = (0..21).map(|at| format!("$p{at}")).collect();
    let many = format!("RECALL WHERE subject IN ({})", names.join(", "));
    assert_eq!(parse(&many).unwrap_err().code(), "CAL-E013");
    let again = format!("RECALL WHERE subject IN ({}, $p0)", names.get(..20).unwrap().join(", "));
    assert!(parse(&again).is_ok());
    let sources = ["(RECALL)"; 9].join(", ");
    assert_eq!(parse(&format!("ASSEMBLE FROM {sources}")).unwrap_err().code(), "CAL-E013");
    let name = "n".repeat(65);
    assert_eq!(parse(&format!("ASSEMBLE {name} FROM (RECALL)")).unwrap_err().code(), "CAL-E001");
}

/// Returns tokens that make plausible queries when joined at random.
pub(crate) fn piece() -> impl Strategy<Value = String> {
    const WORDS: &str = "LET $l ; UNION INTERSECT EXCEPT BATCH { } COALESCE EXPLAIN DESCRIBE fields grammar SELECT GROUP SUBJECTS \
        HASHES CONTRADICTIONS DIFF hc explanation provenance RECALL MY beliefs goals events WHERE AND IN SCOPE ABOUT SINCE BETWEEN THREAD FROM \
        WITH superseded LIMIT OFFSET ORDER BY time confidence DESC COUNT FIRST RECENT AS sml json toon readable ASSEMBLE \
        FOR BUDGET tokens grains PRIORITY FORMAT EXISTS HISTORY OF ADD belief SUPERSEDE SET REASON subject \
        relation object tags INCLUDE EXCLUDE IS PREFERENCE type hash = != >= ( ) [ ] , : > | / $p $q \
        STREAM progress chunks all chunk_size 50 REVERT DEFINE TEMPLATE EXTENDS ELEMENT FOOTER {{grain.content}} {{! cache ttl diversity mmr lambda consistency bounded sha256:0123456789 5 0.8 -1 \"alice\" \"today\" \"a\\\"b\" true dedup delete OR let CAL 1";
    let words: Vec<String> = WORDS.split_whitespace().map(str::to_owned).collect();
    prop_oneof![9 => proptest::sample::select(words), 1 => ".{0,4}"]
}

proptest! {
    #[test]
    fn any_bytes_parse_or_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let refused = parse_bytes(&bytes).err();
        prop_assert!(refused.is_none_or(|error| error.code().starts_with("CAL-E")));
    }

    #[test]
    fn what_parses_prints_and_parses_to_the_same(
        start in prop_oneof![
            Just("RECALL"), Just("RECALL WHERE"), Just("ASSEMBLE FROM (RECALL)"), Just("ADD belief SET"), Just(""),
            Just("BATCH { a: RECALL"), Just("(RECALL) UNION (RECALL"), Just("COALESCE(RECALL, RECALL"),
            Just("RECALL WHERE subject IN (RECALL"), Just("LET $l = RECALL"), Just("EXPLAIN RECALL"),
            Just("DEFINE TEMPLATE t HEADER {"), Just("ASSEMBLE FROM (RECALL) FORMAT TEMPLATE { ELEMENT {"),
        ],
        pieces in proptest::collection::vec(piece(), 0..12),
    ) {
        for end in ["", ")", " }", " } }", "| SUBJECTS)", "; RECALL"] {
            let source = format!("{start} {}{end}", pieces.join(" "));
            match parse(&source) {
                Ok(statement) => {
                    let printed = statement.to_string();
                    prop_assert_eq!(parse(&printed).ok(), Some(statement), "{}", printed);
                }
                Err(error) => {
                    let position = error.position();
                    prop_assert!(position.is_none_or(|at| source.get(at.start..at.end).is_some()));
                }
            }
        }
    }

    #[test]
    fn any_text_survives_printing(text in "\\PC{0,40}") {
        let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(statement) = parse(&format!("RECALL ABOUT \"{escaped}\"")) {
            let printed = statement.to_string();
            prop_assert_eq!(parse(&printed).ok(), Some(statement), "{}", printed);
        }
    }
}
