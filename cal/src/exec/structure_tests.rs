//! Queries made of queries, and details beside grains: subqueries, LET, set operations, BATCH, COALESCE,
//! extractors, groups, threads, EXPLAIN and DESCRIBE, as tables.

use std::sync::atomic::Ordering;

use grainstore_format::{EpochMs, VerificationStatus};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::tests::{belief, four_beliefs, objects, options, run, run_with};
use super::{ExecuteOptions, execute};
use crate::params::Params;
use crate::testutil::Fake;
use crate::tier::Tier;
use crate::write_quotas::WriteQuotas;

/// The value of an answer under a key.
fn part(memory: &Fake, source: &str, key: &str) -> Value {
    run(memory, source).unwrap_or_else(|error| panic!("{source}: {error}"))[key].clone()
}

#[test]
fn an_answer_is_the_same_once_it_is_read_from_its_json() {
    let memory = four_beliefs();
    memory.keep(
        r#"{"type": "reasoning", "premises": ["a"], "conclusion": "b", "requires_human_review": true}"#,
    );
    let hash = memory.keep(&belief("alice", "prefers", "z", ""));
    let statements = [
        "RECALL",
        "RECALL AS sml WITH provenance, score_breakdown, explanation, superseded",
        "RECALL reasonings",
        "RECALL | SELECT subject",
        "RECALL | COUNT",
        "RECALL | GROUP BY type",
        "RECALL | HASHES",
        "RECALL beliefs | SUBJECTS",
        "RECALL ABOUT \"none\"",
        &format!("EXISTS sha256:{hash}"),
        &format!("HISTORY sha256:{hash}"),
        "COALESCE (RECALL ABOUT \"none\", RECALL ABOUT \"alice\")",
        "BATCH { z: RECALL ABOUT \"alice\" | COUNT, a: RECALL, failed: RECALL ABOUT $who }",
        "EXPLAIN RECALL ABOUT \"alice\"",
        "DESCRIBE grain_types",
        "DESCRIBE fields belief",
        "ASSEMBLE FROM z: (RECALL ABOUT \"alice\"), a: (RECALL) BUDGET 50 tokens",
        "(RECALL ABOUT \"alice\") UNION (RECALL ABOUT \"bob\")",
    ];
    for statement in statements {
        let answer = run(&memory, statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
        let read = crate::Response::from_json(&answer.to_string());
        let read = read.unwrap_or_else(|error| panic!("{statement}: {error}"));
        assert_eq!(serde_json::to_value(&read).unwrap(), answer, "{statement}");
    }
    for no_answer in ["", "{}", "[]", r#"{"_cal": 1}"#, "null"] {
        assert!(crate::Response::from_json(no_answer).is_err(), "{no_answer}");
    }
}

#[test]
fn a_query_in_json_runs_and_its_errors_stand_in_the_document() {
    let memory = four_beliefs();
    let query = r#"{"statement":"recall","grain_type":"beliefs","where":[
        {"field":"subject","op":"=","value":"alice"}],"pipeline":[{"count":true}]}"#;
    let text = "RECALL beliefs WHERE subject = \"alice\" | COUNT";
    let (json, plain) = (run(&memory, query).unwrap(), run(&memory, text).unwrap());
    assert_eq!(json["count"], plain["count"]);
    assert_eq!(json["_cal"]["query_hash"], plain["_cal"]["query_hash"]);

    let checked =
        r#"{"statement":"recall","where":[{"field":"confidence","op":"IS","value":"AGENCY"}]}"#;
    let refused = |query: &str| {
        let error = execute(&memory, query, &options(), &WriteQuotas::default());
        let error = error.unwrap_err();
        (error.code().to_owned(), error.pointer().map(str::to_owned))
    };
    let at = |code: &str, pointer: &str| (code.to_owned(), Some(pointer.to_owned()));
    assert_eq!(refused(checked), at("CAL-E020", "/where/0"));

    let batch = r#"{"statement":"batch","queries":[
        {"label":"good","query":{"statement":"recall"}},
        {"label":"bad","query":{"statement":"recall","pipeline":[{"limit":2000}]}}]}"#;
    let answer = run(&memory, batch).unwrap();
    let slot = &answer["batch"]["bad"]["error"];
    assert_eq!(
        (&slot["code"], &slot["pointer"]),
        (&json!("CAL-E010"), &json!("/queries/1/query/pipeline/0"))
    );
    assert_eq!(slot["position"]["line"], 3);

    let write = r#"{"statement":"supersede","target":"sha256:01234567",
        "set":[{"field":"object","value":"x"}],"reason":"r"}"#;
    assert_eq!(refused(write), at("CAL-E044", "/statement"));
}

/// The beliefs a..d, and two goals that name their subjects.
fn with_goals() -> Fake {
    let memory = four_beliefs();
    for (subject, state, object) in [("alice", "active", "g"), ("carol", "failed", "h")] {
        memory.keep(&format!(
            r#"{{"type": "goal", "description": "d", "goal_state": "{state}", "subject": "{subject}",
                "relation": "wants", "object": "{object}"}}"#
        ));
    }
    memory
}

#[test]
fn values_of_one_recall_are_the_set_of_another() {
    let memory = with_goals();
    #[rustfmt::skip]
    let table = [
        ("RECALL beliefs WHERE subject IN (RECALL goals WHERE goal_state = \"active\" | HASHES)", ""),
        ("RECALL beliefs WHERE subject IN (RECALL WHERE relation = \"wants\" | SUBJECTS)", "c b a"),
        ("RECALL beliefs WHERE subject IN (RECALL WHERE object = \"h\" | SUBJECTS)", ""),
        ("RECALL beliefs WHERE object IN (RECALL beliefs | LIMIT 2 | OBJECTS) AND subject = \"alice\"", "c"),
        ("RECALL beliefs WHERE subject IN (RECALL WHERE subject IN (RECALL WHERE subject IN (RECALL WHERE object = \"g\" | SUBJECTS) | SUBJECTS) | SUBJECTS)", "c b a"),
        ("LET $s = RECALL WHERE relation = \"wants\" | SUBJECTS; RECALL beliefs WHERE subject IN ($s)", "c b a"),
        ("LET $s = RECALL goals LIMIT 1 | HASHES; LET $t = RECALL beliefs | SUBJECTS; RECALL WHERE subject IN ($t) AND type = \"belief\"", "d c b a"),
        ("LET $none = RECALL workflows | HASHES; RECALL WHERE subject IN ($none)", ""),
        ("LET $unused = RECALL; RECALL beliefs FIRST", "d"),
    ];
    for (source, expected) in table {
        assert_eq!(objects(&memory, source), expected, "{source}");
    }
}

#[test]
fn a_let_wins_over_the_parameter_of_its_name() {
    let memory = with_goals();
    let mut params = Params::new();
    params.bind("s", &json!("bob")).unwrap();
    let options = ExecuteOptions { params, ..options() };
    let query = "RECALL beliefs WHERE subject IN ($s)";
    let rows = |source: &str| run_with(&memory, source, &options).unwrap()["total"].clone();
    assert_eq!(rows(query), json!(1));
    let bound = format!("LET $s = RECALL WHERE object = \"g\" | SUBJECTS; {query}");
    assert_eq!(rows(&bound), json!(3));
}

#[test]
fn lets_of_an_assembly_build_on_each_other() {
    let memory = with_goals();
    let source = "LET $who = RECALL WHERE object = \"g\" | SUBJECTS; \
        LET $they = RECALL beliefs WHERE subject IN ($who); \
        ASSEMBLE FROM a: $they, b: ($they), c: (RECALL goals WHERE subject IN ($who)) PRIORITY b";
    let sources = part(&memory, source, "sources");
    let shown = |label: &str| sources[label]["standard"].clone();
    assert_eq!([shown("a"), shown("b"), shown("c")], [json!(0), json!(3), json!(1)]);
}

#[test]
fn a_failed_let_fails_the_source_that_uses_it() {
    let mut memory = with_goals();
    memory.broken_subject = Some("bob".to_owned());
    let source = "LET $b = RECALL ABOUT \"bob\"; ASSEMBLE FROM a: $b, b: (RECALL ABOUT \"alice\")";
    let sources = part(&memory, source, "sources");
    assert_eq!(sources["a"]["error"]["code"], json!("ERR_BROKEN"));
    assert_eq!(sources["b"]["standard"], json!(4));
}

#[test]
fn set_operations_join_by_address_and_order_as_recall() {
    let memory = with_goals();
    #[rustfmt::skip]
    let table = [
        ("(RECALL ABOUT \"alice\") UNION (RECALL ABOUT \"bob\")", "g d c b a"),
        ("(RECALL beliefs ORDER BY object) INTERSECT (RECALL ABOUT \"alice\")", "c b a"),
        ("(RECALL) EXCEPT (RECALL ABOUT \"alice\")", "h d"),
        ("(RECALL beliefs LIMIT 1) UNION (RECALL beliefs OFFSET 3)", "d a"),
        ("(COALESCE(RECALL workflows, RECALL goals)) EXCEPT (RECALL WHERE object = \"h\")", "g"),
        ("((RECALL goals) UNION (RECALL ABOUT \"bob\")) INTERSECT ((RECALL) EXCEPT (RECALL goals FIRST))", "g d"),
        ("LET $s = RECALL WHERE type = \"goal\" | SUBJECTS; (RECALL beliefs WHERE subject IN ($s)) EXCEPT (LET $o = RECALL LIMIT 3 WHERE type = \"belief\" | OBJECTS; RECALL WHERE object IN ($o))", "a"),
    ];
    for (source, expected) in table {
        assert_eq!(objects(&memory, source), expected, "{source}");
    }
    let union = run(
        &memory,
        "(RECALL ABOUT \"bob\") UNION (RECALL WHERE relation = \"prefers\" AND importance < 0.5)",
    )
    .unwrap();
    assert_eq!(union["_cal"]["statement_type"], json!("set_op"));
    assert_eq!(union["total"], json!(1));
    assert_eq!(union["results"][0]["matched_fields"], json!(["subject", "relation", "importance"]));
}

#[test]
fn the_first_branch_that_finds_something_answers() {
    let memory = with_goals();
    let answer = |source| run(&memory, source).unwrap();
    let found = answer("COALESCE(RECALL workflows, RECALL goals | COUNT, RECALL)");
    assert_eq!((&found["branch"], &found["count"]), (&json!(1), &json!(2)));
    let found = answer("COALESCE(RECALL beliefs AS sml, RECALL)");
    assert_eq!((&found["branch"], &found["total"]), (&json!(0), &json!(4)));
    assert!(found["formatted"].as_str().unwrap().contains("prefers d"));
    let nothing = answer("COALESCE(RECALL workflows, RECALL WHERE object = \"zzz\" | SUBJECTS)");
    assert_eq!((&nothing["branch"], &nothing["values"]), (&Value::Null, &json!([])));
}

#[test]
fn a_batch_answers_in_slots_and_keeps_errors_in_theirs() {
    let memory = with_goals();
    let source = "BATCH {\n  n: RECALL | COUNT, bad: RECALL LIMIT 0,\n  e: EXISTS sha256:00000000,\n  \
        h: HISTORY sha256:00000000, c: COALESCE(RECALL states, RECALL goals), d: DESCRIBE templates }";
    let batch = part(&memory, source, "batch");
    assert_eq!(batch["n"], json!({"count": 6}));
    assert_eq!(batch["e"], json!({"exists": false}));
    assert_eq!(batch["bad"]["error"]["code"], json!("CAL-E006"));
    assert_eq!(batch["bad"]["error"]["position"]["line"], json!(2));
    assert_eq!(batch["h"]["error"]["code"], json!("CAL-E046"));
    assert_eq!(batch["c"]["branch"], json!(1));
    assert_eq!(batch["c"]["results"].as_array().unwrap().len(), 2);
    assert_eq!(
        batch["d"]["description"]["presets"],
        json!(["structured", "readable", "compact", "data"])
    );
}

#[test]
fn what_is_no_hash_and_no_number_stays_in_its_slot() {
    let memory = with_goals();
    let source = "BATCH { h: EXISTS sha256:XY, n: RECALL LIMIT 5x, both: RECALL SELECT 5x, sha256:Z, ok: RECALL | COUNT }";
    let batch = part(&memory, source, "batch");
    for (label, code) in [("h", "CAL-E015"), ("n", "CAL-E006"), ("both", "CAL-E006")] {
        assert_eq!(batch[label]["error"]["code"], json!(code), "{label}");
    }
    assert_eq!(batch["ok"], json!({"count": 6}));
}

#[test]
fn what_is_wrong_within_one_entry_in_json_stays_in_its_slot() {
    let memory = with_goals();
    let source = r#"{"statement":"batch","queries":[
        {"label":"type","query":{"statement":"recall","grain_type":"foos"}},
        {"label":"word","query":{"statement":"recall","with":["bogus"]}},
        {"label":"value","query":{"statement":"recall","about":5}},
        {"label":"hash","query":{"statement":"exists","hash":"sha256:XY"}},
        {"label":"field","query":{"statement":"recall","where":[{"field":"subjct","op":"=","value":"a"}]}},
        {"label":"ok","query":{"statement":"recall","pipeline":[{"count":true}]}}]}"#;
    let batch = part(&memory, source, "batch");
    for (label, code, pointer, place) in [
        ("type", "CAL-E003", "/queries/0/query/grain_type", r#""foos""#),
        ("word", "CAL-E002", "/queries/1/query/with/0", r#""bogus""#),
        ("value", "CAL-E020", "/queries/2/query/about", "5"),
        ("hash", "CAL-E015", "/queries/3/query/hash", r#""sha256:XY""#),
        ("field", "CAL-E004", "/queries/4/query/where/0/field", r#""subjct""#),
    ] {
        let error = &batch[label]["error"];
        assert_eq!((&error["code"], &error["pointer"]), (&json!(code), &json!(pointer)));
        let at = |name: &str| usize::try_from(error["position"][name].as_u64().unwrap()).unwrap();
        assert_eq!(source.get(at("start")..at("end")), Some(place), "{label}");
    }
    assert_eq!(batch["ok"], json!({"count": 6}));
    let hash = |source: &str| part(&memory, source, "_cal")["query_hash"].clone();
    assert_ne!(hash(source), hash(&source.replace("foos", "bars")));
    for (whole, code) in [
        (r#"{"statement":"explain","query":BATCH}"#.replace("BATCH", source), "CAL-E003"),
        (
            r#"{"statement":"batch","queries":[{"label":"a","query":{"statement":"add"}}]}"#
                .to_owned(),
            "CAL-E002",
        ),
        (r#"{"statement":"batch","queries":[{"label":"a","query":{}}]}"#.to_owned(), "CAL-E014"),
    ] {
        let refused = run(&memory, &whole).unwrap_err();
        assert!(refused.starts_with(code), "{whole}: {refused}");
    }
}

#[test]
fn what_is_wrong_within_one_entry_stays_in_its_slot() {
    let memory = with_goals();
    let source = "BATCH { n: RECALL | COUNT, field: RECALL WHERE subjct = \"a\" AND object IN (\"x\", \"y\"),\n \
        type: RECALL beleifs, word: COALESCE(RECALL WITH colour, RECALL), more: RECALL beliefs beliefs, \
        e: EXISTS sha256:00000000, last: DESCRIBE nothing }";
    let answer = run(&memory, source).unwrap();
    let batch = answer["batch"].as_object().unwrap();
    let labels: Vec<&String> = batch.keys().collect();
    assert_eq!(labels.len(), 7, "{labels:?}");
    let text = serde_json::to_string(
        &execute(&memory, source, &options(), &WriteQuotas::default()).unwrap(),
    );
    let text = text.unwrap();
    let order =
        ["\"n\":", "\"field\":", "\"type\":", "\"word\":", "\"more\":", "\"e\":", "\"last\":"];
    assert!(order.map(|label| text.find(label).unwrap()).is_sorted(), "{text}");
    assert_eq!(batch["n"], json!({"count": 6}));
    assert_eq!(batch["e"], json!({"exists": false}));
    for (label, code, place) in [
        ("field", "CAL-E004", "subjct"),
        ("type", "CAL-E003", "beleifs"),
        ("word", "CAL-E002", "colour"),
        ("more", "CAL-E002", "beliefs"),
        ("last", "CAL-E002", "nothing"),
    ] {
        let error = &batch[label]["error"];
        assert_eq!(error["code"], json!(code), "{label}");
        let at = |key: &str| usize::try_from(error["position"][key].as_u64().unwrap()).unwrap();
        assert_eq!(source.get(at("start")..at("end")), Some(place), "{label}");
        assert!(!error["suggestion"].as_str().unwrap().is_empty(), "{label}");
    }
    let hash = |source: &str| run(&memory, source).unwrap()["_cal"]["query_hash"].clone();
    assert_ne!(hash("BATCH { a: RECALL, b: RECALL x }"), hash("BATCH { a: RECALL, b: RECALL y }"));
    assert_eq!(hash("BATCH { a: RECALL x }"), hash("batch {a:RECALL x}"));
}

#[test]
fn what_cannot_be_told_from_the_rest_of_a_batch_refuses_all_of_it() {
    let memory = with_goals();
    #[rustfmt::skip]
    let table = [
        ("BATCH { a: RECALL, b: ADD belief SET object = \"o\" REASON \"r\" }", "CAL-E002 at ADD"),
        ("BATCH { a: RECALL x, a: RECALL }", "CAL-E009 at a"),
        ("BATCH { a: RECALL x", "CAL-E003 at x"),
        ("BATCH { a: RECALL WHERE subject IN (\"x\", b: RECALL }", "CAL-E002 at b"),
        ("BATCH { a: RECALL ABOUT \"x, b: RECALL }", "CAL-E005 at \"x, b: RECALL }"),
        ("EXPLAIN BATCH { a: RECALL beleifs }", "CAL-E003 at beleifs"),
    ];
    for (source, expected) in table {
        assert_eq!(run(&memory, source), Err(expected.to_owned()), "{source}");
    }
    assert_eq!(crate::parse("BATCH { a: RECALL beleifs }").unwrap_err().code(), "CAL-E003");
    let many: Vec<_> = (0..11).map(|at| format!("e{at}: RECALL x")).collect();
    let many = format!("BATCH {{ {} }}", many.join(", "));
    assert_eq!(run(&memory, &many), Err("CAL-E013 at e10".to_owned()));
}

#[test]
fn a_cancelled_batch_is_no_answer() {
    let memory = with_goals();
    let cancelled = options();
    cancelled.cancel.cancel();
    let refused = run_with(&memory, "BATCH { a: RECALL }", &cancelled);
    assert_eq!(refused, Err("CAL-E082 at BATCH".to_owned()));
}

#[test]
fn extractors_answer_distinct_values_in_the_order_of_the_result() {
    let memory = with_goals();
    memory.keep(
        r#"{"type": "belief", "subject": "alice", "relation": "r", "object": {"k": 1}, "confidence": 1}"#,
    );
    #[rustfmt::skip]
    let table = [
        ("RECALL beliefs | SUBJECTS", json!(["alice", "bob"])),
        ("RECALL | SUBJECTS", json!(["alice", "carol", "bob"])),
        ("RECALL beliefs ORDER BY subject DESC | SUBJECTS", json!(["bob", "alice"])),
        ("RECALL beliefs | OBJECTS", json!([{"k": 1}, "d", "c", "b", "a"])),
        ("RECALL beliefs OFFSET 1 LIMIT 2 OBJECTS", json!(["d", "c"])),
        ("RECALL beliefs LIMIT 2 OFFSET 1 | OBJECTS", json!(["d"])),
        ("RECALL workflows | HASHES", json!([])),
    ];
    for (source, expected) in table {
        assert_eq!(part(&memory, source, "values"), expected, "{source}");
    }
    let first = part(&memory, "RECALL FIRST", "results")[0]["content_address"].clone();
    assert_eq!(part(&memory, "RECALL LIMIT 1 | HASHES", "values"), json!([first]));
}

#[test]
fn groups_are_counted_over_every_match_and_the_largest_come_first() {
    let memory = with_goals();
    for at in 0..30 {
        memory.keep(&belief("many", "r", &format!("o{at}"), ""));
    }
    #[rustfmt::skip]
    let table = [
        ("RECALL | GROUP BY subject", json!([["many", 30], ["alice", 4], ["bob", 1], ["carol", 1]])),
        ("RECALL GROUP BY type", json!([["belief", 34], ["goal", 2]])),
        ("RECALL LIMIT 31 | GROUP BY type", json!([["belief", 30], ["goal", 1]])),
        ("RECALL ORDER BY object | LIMIT 1 | GROUP BY object", json!([["a", 1]])),
        ("RECALL GROUP BY user_id", json!([["alice", 1], ["bob", 1]])),
        ("RECALL GROUP BY verification_status", json!([["unverified", 36]])),
        ("RECALL states GROUP BY relation", json!([])),
    ];
    for (source, expected) in table {
        let groups = part(&memory, source, "groups");
        let pairs: Vec<_> =
            groups.as_array().unwrap().iter().map(|g| json!([g["key"], g["count"]])).collect();
        assert_eq!(Value::from(pairs), expected, "{source}");
    }
}

#[test]
fn values_and_groups_beyond_a_thousand_are_not_shown() {
    let memory = Fake::at_work();
    for at in 0..1_001 {
        memory.keep(&belief(&format!("s{at}"), "r", "o", ""));
    }
    let values = run(&memory, "RECALL | SUBJECTS").unwrap();
    assert_eq!(values["values"].as_array().unwrap().len(), 1_000);
    assert_eq!(values["total"], Value::Null);
    let groups = run(&memory, "RECALL | GROUP BY subject").unwrap();
    assert_eq!(groups["groups"].as_array().unwrap().len(), 1_000);
    assert_eq!(groups["total"], json!(1_001));
    let source = "RECALL WHERE subject IN (RECALL | SUBJECTS)";
    assert_eq!(run(&memory, source), Err("CAL-E011 at IN (RECALL | SUBJECTS)".to_owned()));
    let first = "RECALL WHERE subject IN (RECALL LIMIT 100 | SUBJECTS) | COUNT";
    assert_eq!(part(&memory, first, "count"), json!(100));
}

#[test]
fn select_shows_the_fields_under_their_names_in_cal() {
    let memory = Fake::at_work();
    memory.keep(&belief("s", "r", "o", r#", "structural_tags": ["x"], "created_at": 7"#));
    memory.keep(r#"{"type": "consent", "subject_did": "did:a", "grantee_did": "did:b", "scope": ["r", "w"], "is_withdrawal": false}"#);
    let grain = |source: &str| part(&memory, source, "results")[0]["grain"].clone();
    assert_eq!(
        grain(
            "RECALL beliefs | SELECT subject, tags, time, type, contradicted, importance, subject"
        ),
        json!({"subject": "s", "tags": ["x"], "time": 7, "type": "belief", "contradicted": false})
    );
    assert_eq!(
        grain("RECALL consents SELECT consent_action, grantor_did, purpose, scope"),
        json!({"consent_action": "grant", "grantor_did": "did:a", "purpose": "r, w", "scope": ["r", "w"]})
    );
    let row = part(&memory, "RECALL beliefs SELECT hash, score, verification_status", "results");
    assert_eq!(
        row[0]["grain"],
        json!({"hash": row[0]["content_address"], "score": 1.0, "verification_status": "unverified"})
    );
}

#[test]
fn an_ownership_belief_without_a_confidence_shows_the_one_it_is_read_with() {
    let memory = Fake::default();
    memory.keep(
        r#"{"type": "belief", "subject": "did:web:bot", "relation": "mg:owned_by", "object": "ann",
        "namespace": "agent:identity"}"#,
    );
    let row = part(&memory, "RECALL beliefs WHERE confidence >= 1.0 SELECT confidence", "results");
    assert_eq!(row[0]["grain"], json!({ "confidence": 1.0 }));
}

#[test]
fn dedup_keeps_the_first_of_each_value_before_the_cut() {
    let memory = with_goals();
    #[rustfmt::skip]
    let table = [
        ("RECALL beliefs WITH dedup(subject)", "d c"),
        ("RECALL beliefs WITH dedup(subject) | LIMIT 1 OFFSET 0", "d"),
        ("RECALL WITH dedup(subject) OFFSET 1", "g d"),
        ("RECALL beliefs WITH dedup(subject) | ORDER BY object", "a d"),
        ("RECALL beliefs WITH dedup(subject) | ORDER BY object DESC | LIMIT 1", "d"),
        ("RECALL beliefs WITH dedup(importance)", "d c b a"),
        ("RECALL beliefs WITH dedup(relation) RECENT 2", "d b"),
    ];
    for (source, expected) in table {
        assert_eq!(objects(&memory, source), expected, "{source}");
    }
    assert_eq!(part(&memory, "RECALL beliefs WITH dedup(subject) | COUNT", "count"), json!(2));
    assert_eq!(part(&memory, "RECALL beliefs WITH dedup(subject)", "total"), json!(2));
}

/// A thread of two sessions with a branch, and an unrelated message; returns the addresses of the first and
/// the leaf.
fn threads(memory: &Fake) -> [String; 2] {
    let event = |object: &str, parent: Option<&String>| {
        let parent = parent.map_or(String::new(), |p| format!(r#", "parent_message_id": "{p}""#));
        let json = format!(r#"{{"type": "event", "content": "c", "object": "{object}"{parent}}}"#);
        memory.keep(&json).to_string()
    };
    let first = event("1", None);
    let second = event("2", Some(&first));
    let branch = event("3", Some(&second));
    event("stranger", None);
    let leaf = event("4", Some(&format!("sha256:{second}").replace("sha256:", "")));
    event("5", Some(&branch));
    [first, leaf]
}

#[test]
fn a_thread_is_found_from_any_of_its_messages_with_its_branches() {
    let memory = Fake::at_work();
    let [first, leaf] = threads(&memory);
    for hash in [&first, &leaf] {
        let thread = format!("RECALL THREAD FROM sha256:{hash}");
        assert_eq!(objects(&memory, &thread), "1 2 3 4 5");
        assert_eq!(objects(&memory, &format!("{thread} WHERE object != \"3\" LIMIT 2")), "1 2");
        assert_eq!(part(&memory, &format!("{thread} | COUNT"), "count"), json!(5));
    }
    let prefix = leaf.get(..12).unwrap();
    assert_eq!(
        objects(&memory, &format!("RECALL events THREAD FROM sha256:{prefix}")),
        "1 2 3 4 5"
    );
    assert_eq!(
        run(&memory, "RECALL THREAD FROM sha256:00000000"),
        Err("CAL-E046 at THREAD FROM sha256:00000000".to_owned())
    );
}

#[test]
fn the_session_of_a_message_is_its_thread_before_its_links_are() {
    let memory = Fake::at_work();
    let event = |object: &str, more: &str| {
        let json = format!(r#"{{"type": "event", "content": "c", "object": "{object}"{more}}}"#);
        memory.keep(&json).to_string()
    };
    let first = event("1", r#", "session_id": "s""#);
    let apart = event("2", r#", "session_id": "s""#);
    let reply = format!(r#", "parent_message_id": "{first}""#);
    event("other", &format!(r#"{reply}, "session_id": "t""#));
    let loose = event("loose", &reply);
    for (hash, expected) in [(first, "1 2"), (apart, "1 2"), (loose, "1 other loose")] {
        let thread = format!("RECALL THREAD FROM sha256:{hash}");
        assert_eq!(objects(&memory, &thread), expected, "{thread}");
    }
}

#[test]
fn a_pipeline_is_bound_by_what_its_grains_take_in_memory() {
    let memory = Fake::at_work();
    let numbers = ["1"; 100_000].join(",");
    let keep = |subject: usize| {
        let json = format!(
            r#"{{"type": "event", "content": "c", "subject": "{subject}", "relation": "r",
                 "numbers": [{numbers}]}}"#
        );
        memory.keep(&json);
    };
    // Encoded, each takes 100 kB.
    (0..10).for_each(keep);
    let sorted = "RECALL ORDER BY subject LIMIT 30 | HASHES";
    assert_eq!(run(&memory, sorted).unwrap()["values"].as_array().unwrap().len(), 10);
    (10..30).for_each(keep);
    assert!(run(&memory, sorted).err().unwrap_or_default().starts_with("CAL-E030"));
    let few = "RECALL ORDER BY subject LIMIT 1 | HASHES";
    assert_eq!(run(&memory, few).unwrap()["values"].as_array().unwrap().len(), 1);
}

#[test]
fn domain_fields_are_found_at_both_places_and_by_short_keys() {
    let memory = Fake::at_work();
    let keep = |object: &str, more: &str| {
        memory.keep(&belief("s", "r", object, &format!(", {more}")));
    };
    keep("top", r#""hc:patient_id": "p1", "structural_tags": ["profile:healthcare"]"#);
    keep("context", r#""context": {"hc:patient_id": "p2", "fin:amount": 12.5, "fin:open": true}"#);
    keep("short", r#""context": {"ic": "github"}"#);
    keep("long", r#""context": {"int:connector": "github"}"#);
    #[rustfmt::skip]
    let table = [
        ("hc:patient_id = \"p1\"", "top", vec!["CAL-W002"]),
        ("hc:patient_id = \"p1\" AND tags INCLUDE [\"profile:healthcare\"]", "top", vec![]),
        ("hc:patient_id != \"p1\"", "context", vec!["CAL-W002"]),
        ("hc:patient_id IN (\"p1\", \"p2\", 3)", "context top", vec!["CAL-W002"]),
        ("fin:amount > 12 AND fin:amount <= 12.5", "context", vec!["CAL-W002", "CAL-W002"]),
        ("fin:amount = \"12.5\"", "", vec!["CAL-W002"]),
        ("fin:open = true", "context", vec!["CAL-W002"]),
        ("fin:open != true", "", vec!["CAL-W002"]),
        ("int:connector = \"github\"", "long short", vec!["CAL-W002"]),
        ("zoo:animal = \"cat\"", "", vec!["CAL-W003"]),
        ("hc:drop = \"x\"", "", vec!["CAL-W002"]),
    ];
    for (condition, expected, codes) in table {
        let source = format!("RECALL WHERE {condition}");
        assert_eq!(objects(&memory, &source), expected, "{source}");
        let warnings = part(&memory, &source, "_cal")["warnings"].clone();
        let found: Vec<_> =
            warnings.as_array().unwrap().iter().map(|w| w["code"].as_str().unwrap()).collect();
        let mut codes = codes;
        codes.truncate(found.len().max(1));
        assert_eq!(found, codes, "{source}");
    }
    let row = part(&memory, "RECALL WHERE hc:patient_id = \"p2\"", "results");
    assert_eq!(row[0]["matched_fields"], json!(["hc:patient_id"]));
}

#[test]
fn contradictions_are_linked_grains_and_rival_objects() {
    let memory = Fake::at_work();
    let old = memory.keep(&belief("s", "r", "old", ""));
    memory.mark(old, |state| state.contradicted = true);
    let link = format!(r#", "related_to": [{{"hash": "{old}", "relation_type": "refutes"}}]"#);
    let refuting = memory.keep(&belief("x", "y", "refuting", &link));
    let rival = memory.keep(&belief("s", "r", "rival", ""));
    memory.keep(&belief("s", "r", "rival", r#", "importance": 0.5"#));
    let link = format!(r#", "related_to": [{{"hash": "{old}", "relation_type": "supports"}}]"#);
    memory.keep(&belief("x", "z", "supporting", &link));
    let rows = part(&memory, "RECALL CONTRADICTIONS", "results");
    assert_eq!(rows.as_array().unwrap().len(), 1);
    assert_eq!(rows[0]["grain"]["object"], json!("old"));
    let against = rows[0]["contradictions"].as_array().unwrap();
    assert_eq!(against.first(), Some(&json!(refuting.to_string())));
    assert_eq!(against.len(), 3);
    assert!(against.contains(&json!(rival.to_string())));
    let source = "RECALL WHERE object = \"refuting\" WITH contradiction_detection";
    assert_eq!(part(&memory, source, "results")[0]["contradictions"], json!([old.to_string()]));
    let all = "RECALL ABOUT \"s\" WITH contradiction_detection";
    assert_eq!(objects(&memory, all), "rival rival old");
    assert_eq!(part(&memory, "RECALL FIRST", "results")[0].get("contradictions"), None);
}

#[test]
fn options_put_what_they_name_beside_each_grain() {
    let memory = four_beliefs();
    let source = "RECALL ABOUT \"bob\" WITH explanation, provenance, score_breakdown";
    let answer = run(&memory, source).unwrap();
    let row = &answer["results"][0];
    assert_eq!(row["score_breakdown"], json!({"structural": 1.0}));
    assert_eq!(
        row["provenance"],
        json!({"created_at": 1_000_000_000_003_u64, "source_type": "user_explicit"})
    );
    assert_eq!(row["explanation"], json!("found through time; matches on subject"));
    let explanation = &answer["explanation"];
    assert_eq!(
        explanation["desugared"],
        json!(
            "RECALL WHERE subject = \"bob\" WITH explanation, provenance, score_breakdown | LIMIT 20"
        )
    );
    assert_eq!((&explanation["index"], &explanation["scanned"]), (&json!("time"), &json!(4)));
    let none = run(&memory, "RECALL workflows WITH explanation").unwrap();
    assert_eq!(none["explanation"]["scanned"], json!(4));
}

#[test]
fn a_diff_lists_the_fields_that_changed() {
    let memory = Fake::at_work();
    let old = memory.keep(&belief("s", "r", "old", r#", "created_at": 1, "importance": 0.5"#));
    let new = memory.keep(&belief("s", "r", "new", r#", "created_at": 2, "user_id": "u""#));
    let diff = part(&memory, &format!("HISTORY sha256:{old} DIFF sha256:{new}"), "diff");
    assert_eq!(
        diff,
        json!([
            {"field": "created_at", "from": 1, "to": 2},
            {"field": "importance", "from": 0.5, "to": null},
            {"field": "object", "from": "old", "to": "new"},
            {"field": "user_id", "from": null, "to": "u"},
        ])
    );
    assert_eq!(
        part(&memory, &format!("HISTORY sha256:{old} DIFF sha256:{old}"), "diff"),
        json!([])
    );
    assert_eq!(
        run(&memory, &format!("HISTORY sha256:{old} DIFF sha256:00000000")),
        Err("CAL-E046 at sha256:00000000".to_owned())
    );
}

#[test]
fn what_was_known_then_is_found_although_things_happened_since() {
    let memory = Fake::at_work();
    let keep = |object: &str, at: u64, more: &str| {
        memory.keep(&belief("s", "r", object, &format!(r#", "created_at": {at}{more}"#)))
    };
    let replaced = keep("replaced", 1_000, "");
    let retracted = keep("retracted", 1_001, "");
    keep("late", 1_002, r#", "system_valid_from": 5000"#);
    memory.mark(replaced, |state| {
        state.superseded_by = Some(retracted);
        state.system_valid_to = Some(EpochMs::new(3_000));
    });
    memory.mark(retracted, |state| {
        state.verification_status = VerificationStatus::Retracted;
        state.system_valid_to = Some(EpochMs::new(4_000));
    });
    for (at, expected) in [
        ("00.5", vec![]),
        ("02", vec!["retracted", "replaced"]),
        ("03", vec!["retracted"]),
        ("04.999", vec![]),
        ("05", vec!["late"]),
    ] {
        let at = format!("1970-01-01T00:00:{at}Z");
        let source = format!("HISTORY WHERE subject = \"s\" AND relation = \"r\" AS OF \"{at}\"");
        let versions = part(&memory, &source, "versions");
        let found: Vec<_> =
            versions.as_array().unwrap().iter().map(|v| v["grain"]["object"].clone()).collect();
        assert_eq!(found, expected, "{at}");
    }
}

#[test]
fn explain_tells_the_plan_and_runs_nothing() {
    let memory = with_goals();
    let alice = ExecuteOptions { tier: Tier::Read, ..options() };
    let plan = |source: &str| run_with(&memory, source, &alice).unwrap()["plan"].clone();
    #[rustfmt::skip]
    let desugared = [
        ("RECALL ABOUT \"x\" RECENT 3", "RECALL WHERE subject = \"x\" | ORDER BY time DESC | LIMIT 3"),
        ("RECALL MY goals SINCE \"today\"", "RECALL goals WHERE user_id = \"alice\" AND time BETWEEN \"today\" AND \"now\" | LIMIT 20"),
        ("RECALL THREAD \"s\" WHERE role = \"user\"", "RECALL events WHERE session_id = \"s\" AND role = \"user\" | ORDER BY time ASC | LIMIT 1000"),
        ("RECALL BETWEEN 1 AND 2 CONTRADICTIONS | COUNT", "RECALL WHERE time BETWEEN 1 AND 2 AND contradicted = true WITH contradiction_detection | COUNT"),
        ("RECALL WHERE subject = \"a\" OFFSET 3", "RECALL WHERE subject = \"a\" | OFFSET 3 | LIMIT 20"),
    ];
    for (source, expected) in desugared {
        let explained = plan(&format!("EXPLAIN {source}"));
        assert_eq!(explained["recalls"][0]["desugared"], json!(expected), "{source}");
        let same = objects_or_answer(&memory, source);
        assert_eq!(objects_or_answer(&memory, expected), same, "{source}");
    }
    memory.recalls.store(0, Ordering::Relaxed);
    let explained = plan("EXPLAIN RECALL beliefs WHERE subject IN (RECALL MY beliefs | SUBJECTS)");
    assert_eq!(
        explained["recalls"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| r["desugared"].clone())
            .collect::<Vec<_>>(),
        [
            "RECALL beliefs WHERE user_id = \"alice\" | SUBJECTS",
            "RECALL beliefs WHERE subject IN (RECALL beliefs WHERE user_id = \"alice\" | SUBJECTS) | LIMIT 20",
        ]
    );
    let bound = plan("LET $s = RECALL RECENT 3 | SUBJECTS; EXPLAIN RECALL WHERE subject IN ($s)");
    assert_eq!(
        bound["recalls"][0]["desugared"],
        json!("RECALL | ORDER BY time DESC | LIMIT 3 | SUBJECTS")
    );
    let parts: Vec<_> =
        explained["recalls"].as_array().unwrap().iter().map(|r| r["part"].clone()).collect();
    assert_eq!(parts, ["subquery of subject in statement", "statement"]);
    assert_eq!(
        explained["recalls"][1]["waits_for"],
        json!(["SUBJECTS of a subquery, for subject"])
    );
    assert_eq!(explained["recalls"][0]["index"], json!("time"));
    for (source, statement_type, recalls, tier) in [
        ("LET $x = RECALL; ASSEMBLE FROM $x, (RECALL) BUDGET 100 tokens", "assemble", 2, 0),
        ("(RECALL) UNION (LET $x = RECALL | HASHES; RECALL)", "set_op", 3, 0),
        ("BATCH { a: RECALL, b: DESCRIBE server, c: RECALL LIMIT 0 }", "batch", 1, 0),
        ("COALESCE(RECALL, RECALL)", "coalesce", 2, 0),
        ("HISTORY WHERE subject = \"s\" AND relation = \"r\"", "history", 1, 0),
        ("HISTORY sha256:00000000", "history", 0, 0),
        ("EXISTS sha256:00000000", "exists", 0, 0),
        ("DESCRIBE grammar", "describe", 0, 0),
        ("SUPERSEDE sha256:00000000 SET object = \"o\" REASON \"r\"", "supersede", 0, 1),
    ] {
        let (lets, statement) = match source.split_once("; ASSEMBLE") {
            Some((lets, rest)) => (format!("{lets}; "), format!("ASSEMBLE{rest}")),
            None => (String::new(), source.to_owned()),
        };
        let explained = plan(&format!("{lets}EXPLAIN {statement}"));
        assert_eq!(explained["statement_type"], json!(statement_type), "{source}");
        assert_eq!(explained["tier"], json!(tier), "{source}");
        assert_eq!(explained["recalls"].as_array().unwrap().len(), recalls, "{source}");
        assert_eq!(explained["side_effects"].as_array().unwrap().is_empty(), tier == 0);
    }
    assert_eq!(memory.recalls.load(Ordering::Relaxed), 0);
    assert!(
        plan("EXPLAIN ASSEMBLE FROM (RECALL) BUDGET 10 tokens")["estimated_tokens"] == json!(10)
    );
}

#[test]
fn a_refusal_says_the_number_that_was_written_and_what_a_grain_is_instead() {
    let memory = with_goals();
    let goal = run(&memory, "RECALL goals LIMIT 1 | HASHES").unwrap()["values"][0].clone();
    let thread = format!("RECALL THREAD FROM sha256:{}", goal.as_str().unwrap());
    let huge = "99999999999999999999999";
    for (source, told) in [
        (format!("RECALL LIMIT {huge}"), format!("LIMIT {huge} is above")),
        (format!("RECALL RECENT {huge}"), format!("RECENT {huge} is above")),
        (
            format!("ASSEMBLE FROM (RECALL) BUDGET 00{huge} tokens"),
            format!("BUDGET {huge} is above"),
        ),
        (
            format!("ASSEMBLE FROM (RECALL) STREAM {{ chunk_size = {huge} }}"),
            format!("chunk_size {huge} is not"),
        ),
        (thread, "is no message: it is one of the goals".to_owned()),
        ("RECALL THREAD FROM sha256:00000000".to_owned(), "leads to no grain".to_owned()),
    ] {
        let error = execute(&memory, &source, &options(), &WriteQuotas::default()).unwrap_err();
        assert!(error.message().contains(&told), "{source}: {error}");
        if let Ok(statement) = crate::parse(&source) {
            let printed = statement.to_string();
            assert_eq!(crate::parse(&printed).unwrap().to_string(), printed);
            assert_eq!(printed.contains(huge), source.contains(huge), "{printed}");
        }
    }
}

#[test]
fn tokens_are_expected_where_grains_become_text() {
    let memory = with_goals();
    let tokens = |source: &str| run(&memory, source).unwrap()["plan"]["estimated_tokens"].clone();
    for source in [
        "EXPLAIN RECALL | COUNT",
        "EXPLAIN RECALL | HASHES",
        "EXPLAIN RECALL | GROUP BY relation",
        "LET $h = RECALL | HASHES; EXPLAIN RECALL | COUNT",
        "EXPLAIN RECALL WHERE relation IN (RECALL | OBJECTS) | COUNT",
        "EXPLAIN COALESCE (RECALL | COUNT, RECALL | COUNT)",
    ] {
        assert_eq!(tokens(source), json!(0), "{source}");
    }
    let some = tokens("EXPLAIN RECALL");
    assert_ne!(some, json!(0));
    assert_eq!(tokens("LET $h = RECALL | HASHES; EXPLAIN RECALL"), some);
    assert_eq!(tokens("LET $all = RECALL; EXPLAIN ASSEMBLE FROM $all"), some);
}

/// The answer without `_cal` and the matched fields, to compare two statements by.
fn objects_or_answer(memory: &Fake, source: &str) -> Value {
    let mut answer = run(memory, source).unwrap_or_else(|error| panic!("{source}: {error}"));
    answer.as_object_mut().unwrap().remove("_cal");
    if let Some(rows) = answer["results"].as_array_mut() {
        rows.iter_mut().for_each(|row| row["matched_fields"] = Value::Null);
    }
    answer
}

#[test]
fn describe_tells_tables_and_facts() {
    let memory = four_beliefs();
    let description = |target: &str| part(&memory, &format!("DESCRIBE {target}"), "description");
    let types = description("grain_types");
    assert_eq!(types["grain_types"].as_array().unwrap().len(), 10);
    assert_eq!(
        types["grain_types"][0],
        json!({"name": "belief", "plural": "beliefs", "byte": 1, "old_names": ["fact"]})
    );
    assert_eq!(description("fields")["fields"].as_array().unwrap().len(), 18);
    assert_eq!(
        description("fields")["domains"][0],
        json!({"prefix": "hc", "tag": "profile:healthcare"})
    );
    let goal = description("goal");
    assert_eq!(
        (&goal["grain_type"], goal["fields"].as_array().unwrap().len()),
        (&json!("goal"), 22)
    );
    let state = goal["fields"].as_array().unwrap().iter().find(|row| row["name"] == "goal_state");
    assert_eq!(state.unwrap()["operators"], json!(["=", "!="]));
    assert_eq!(state.unwrap()["values"].as_array().unwrap().len(), 7);
    let capabilities = description("capabilities");
    assert_eq!(capabilities["cal_version"], json!("1.0"));
    assert_eq!(
        (&capabilities["cal_conformance"], &capabilities["tiers"]),
        (&json!("core"), &json!([0]))
    );
    assert_eq!(capabilities["full_text"], json!(false));
    assert_eq!(capabilities["writes_a_minute"], json!({"add": 20, "supersede": 10, "revert": 5}));
    assert_eq!(
        (&capabilities["consistency"], &capabilities["paging"], &capabilities["cache"]),
        (&json!("linearizable"), &json!("OFFSET"), &json!(false))
    );
    assert_eq!(description("server")["session"]["namespace"], json!("work"));
    assert!(description("grammar")["grammar"].as_str().unwrap().contains("recall    := RECALL"));
}

#[test]
fn rules_of_queries_within_queries_are_held_with_code_and_place() {
    let memory = with_goals();
    let nested = |depth: usize| {
        let open = "RECALL WHERE subject IN (".repeat(depth);
        format!("{open}RECALL{}", " | SUBJECTS)".repeat(depth))
    };
    let six_lets = "LET $a = RECALL; LET $b = RECALL; LET $c = RECALL; LET $d = RECALL; LET $e = RECALL; LET $f = RECALL; RECALL";
    let deep = "LET $a = RECALL | SUBJECTS; LET $b = RECALL WHERE subject IN ($a) | SUBJECTS; \
        LET $c = RECALL WHERE subject IN ($b) | SUBJECTS; LET $d = RECALL WHERE subject IN ($c); ASSEMBLE FROM $d";
    let entries: Vec<_> = (0..11).map(|at| format!("e{at}: RECALL")).collect();
    let entries = format!("BATCH {{ {} }}", entries.join(", "));
    let six_operands = "(((((RECALL) UNION (RECALL)) UNION (RECALL)) UNION (RECALL)) UNION (RECALL)) UNION (RECALL)";
    #[rustfmt::skip]
    let table: &[(&str, &str)] = &[
        (&nested(4), "CAL-E007 at RECALL"),
        (deep, "CAL-E007 at $d"),
        (six_lets, "CAL-E013 at LET"),
        ("LET $a = RECALL; LET $a = RECALL; RECALL", "CAL-E009 at $a"),
        ("LET $a = RECALL; (LET $a = RECALL; RECALL) UNION (RECALL)", "CAL-E009 at $a"),
        ("LET $a = RECALL WHERE subject IN ($a) | SUBJECTS; RECALL", "CAL-E008 at $a"),
        ("LET $a = RECALL | SUBJECTS; LET $b = RECALL WHERE subject IN ($a); RECALL", "CAL-E021 at $a"),
        ("LET $a = RECALL; RECALL WHERE subject IN ($a)", "CAL-E021 at $a"),
        ("LET $a = RECALL | SUBJECTS; ASSEMBLE FROM $a", "CAL-E021 at $a"),
        ("LET $a = RECALL | SUBJECTS; RECALL WHERE subject IN ($a, \"b\")", "CAL-E021 at $a"),
        ("LET $a = RECALL | SUBJECTS; RECALL ABOUT $a", "CAL-E021 at ABOUT $a"),
        ("LET $a = RECALL | SUBJECTS; RECALL LIMIT $a", "CAL-E021 at LIMIT $a"),
        ("(LET $a = RECALL | SUBJECTS; RECALL) UNION (RECALL WHERE subject IN ($a))", "CAL-E008 at $a"),
        ("ASSEMBLE FROM $nobody", "CAL-E008 at $nobody"),
        ("LET $a = RECALL | COUNT; RECALL", "CAL-E021 at $a"),
        ("LET $a = RECALL AS sml; RECALL", "CAL-E021 at $a"),
        ("LET $a = RECALL SELECT subject; RECALL", "CAL-E021 at $a"),
        ("LET $a = RECALL goals | SUBJECTS; RECALL", "CAL-E022 at $a"),
        ("RECALL goals | SUBJECTS", "CAL-E022 at SUBJECTS"),
        ("RECALL THREAD \"s\" OBJECTS", "CAL-E022 at OBJECTS"),
        ("RECALL WHERE subject IN (RECALL goals | SUBJECTS)", "CAL-E022 at IN (RECALL goals | SUBJECTS)"),
        ("RECALL confidence", "CAL-E003 at confidence"),
        ("RECALL WHERE confidence IN (RECALL | SUBJECTS)", "CAL-E020 at IN (RECALL | SUBJECTS)"),
        ("RECALL SUBJECTS LIMIT 1", "CAL-E021 at LIMIT 1"),
        ("RECALL GROUP BY subject | LIMIT 1", "CAL-E021 at LIMIT 1"),
        ("RECALL HASHES AS sml", "CAL-E021 at AS sml"),
        ("RECALL SELECT subject AS sml", "CAL-E021 at AS sml"),
        ("RECALL SELECT subject SELECT object", "CAL-E021 at SELECT object"),
        ("RECALL SELECT namespace", "CAL-E021 at namespace"),
        ("RECALL SELECT role", "CAL-E061 at role"),
        ("RECALL goals SELECT role", "CAL-E060 at role"),
        ("RECALL GROUP BY confidence", "CAL-E021 at confidence"),
        ("RECALL WITH dedup(tags)", "CAL-E021 at tags"),
        ("RECALL SELECT subject OFFSET 1 LIMIT 2 ORDER BY time LIMIT 1 COUNT", "CAL-E012 at COUNT"),
        (six_operands, "CAL-E013 at ("),
        ("(RECALL COUNT) UNION (RECALL)", "CAL-E021 at RECALL"),
        ("(RECALL) EXCEPT (RECALL | HASHES)", "CAL-E021 at RECALL"),
        ("(RECALL) EXCEPT (COALESCE(RECALL, RECALL AS sml))", "CAL-E021 at COALESCE"),
        ("(RECALL WITH explanation) UNION (RECALL)", "CAL-E021 at RECALL"),
        ("ASSEMBLE FROM (RECALL | SUBJECTS)", "CAL-E021 at (RECALL | SUBJECTS)"),
        ("ASSEMBLE FROM (RECALL SELECT subject)", "CAL-E021 at (RECALL SELECT subject)"),
        ("ASSEMBLE FROM (RECALL WITH provenance)", "CAL-E021 at (RECALL WITH provenance)"),
        ("COALESCE(RECALL, RECALL, RECALL, RECALL, RECALL, RECALL)", "CAL-E013 at RECALL"),
        (&entries, "CAL-E013 at e10"),
        ("RECALL WHERE hc:x > \"a\"", "CAL-E020 at > \"a\""),
        ("RECALL WHERE hc:x = [1]", "CAL-E020 at [1]"),
        ("RECALL OFFSET $n", "CAL-E008 at OFFSET $n"),
        ("EXPLAIN RECALL LIMIT 0", "CAL-E006 at LIMIT 0"),
        ("RECALL goals CONTRADICTIONS WHERE role = \"x\"", "CAL-E060 at role"),
    ];
    for (source, expected) in table {
        assert_eq!(run(&memory, source), Err((*expected).to_owned()), "{source}");
    }
    assert!(run(&memory, &nested(3)).is_ok());
    let five = "((((RECALL) UNION (RECALL)) UNION (RECALL)) UNION (RECALL)) UNION (RECALL)";
    assert_eq!(part(&memory, five, "total"), json!(6));
}

#[test]
fn deep_and_long_queries_are_refused_and_never_overflow() {
    let memory = with_goals();
    let parens = "(".repeat(8_192);
    let subqueries = "RECALL WHERE subject IN (".repeat(100);
    let explains = "EXPLAIN ".repeat(1_000);
    let lets = "LET $a = RECALL; ".repeat(400);
    for (source, code) in [
        (&parens, "CAL-E013"),
        (&subqueries, "CAL-E007"),
        (&explains, "CAL-E002"),
        (&lets, "CAL-E013"),
    ] {
        let refused = run(&memory, source).unwrap_err();
        assert!(refused.starts_with(code), "{refused}");
    }
}

#[test]
fn what_a_statement_holds_is_bounded_over_all_its_parts() {
    let memory = Fake::at_work();
    let big = "x".repeat(900 << 10);
    for at in 0..40 {
        memory.keep(&belief("s", &format!("r{at}"), &big, ""));
    }
    let except = "(RECALL LIMIT 40) EXCEPT (RECALL WHERE relation = \"r1\")";
    assert!(run(&memory, except).is_ok());
    for source in [
        "(RECALL LIMIT 40) UNION (RECALL ORDER BY time LIMIT 40)",
        "LET $a = RECALL LIMIT 40; (RECALL LIMIT 40) UNION (RECALL FIRST)",
        "BATCH { a: RECALL LIMIT 1 }",
    ] {
        let answer = run(&memory, source);
        let expected = if source.starts_with("BATCH") { None } else { Some("CAL-E030 at (") };
        assert_eq!(answer.err().as_deref(), expected, "{source}");
    }
}

#[test]
fn ten_thousand_grains_or_groups_are_enough() {
    let memory = Fake::at_work();
    let event = |subject: usize, more: &str| {
        let json = format!(
            r#"{{"type": "event", "content": "c", "subject": "{subject}", "relation": "r"{more}}}"#
        );
        memory.keep(&json)
    };
    let first = event(0, "");
    let reply = format!(r#", "parent_message_id": "{first}""#);
    for at in 1..10_000 {
        event(at, &reply);
    }
    let thread = format!("RECALL THREAD FROM sha256:{first} | COUNT");
    assert_eq!(part(&memory, &thread, "count"), json!(10_000));
    assert_eq!(part(&memory, "RECALL | GROUP BY subject", "total"), json!(10_000));
    let sorted = "RECALL ORDER BY subject | HASHES";
    assert_eq!(run(&memory, sorted).unwrap()["values"].as_array().unwrap().len(), 1_000);
    event(10_000, &reply);
    for source in [
        &thread,
        "RECALL | GROUP BY subject",
        sorted,
        "RECALL WITH dedup(subject) | COUNT",
        "RECALL WITH dedup(subject) | ORDER BY subject",
    ] {
        let refused = run(&memory, source).err().unwrap_or_default();
        assert!(refused.starts_with("CAL-E030"), "{source}: {refused}");
    }
    assert_eq!(part(&memory, "RECALL ORDER BY subject | COUNT", "count"), json!(10_001));
    let last = "RECALL WITH dedup(subject) | ORDER BY time DESC | LIMIT 1 | SELECT subject";
    assert_eq!(part(&memory, last, "results")[0]["grain"]["subject"], json!("10000"));
}

#[test]
fn a_parameter_may_be_the_premise_a_reasoning_rests_on() {
    let memory = Fake::at_work();
    let hash = "ab".repeat(32);
    memory.keep(&format!(
        r#"{{"type": "reasoning", "premises": ["{hash}"], "conclusion": "so", "object": "r"}}"#
    ));
    let mut params = Params::new();
    params.bind("h", &json!({"hash": format!("sha256:{hash}")})).unwrap();
    params.bind("text", &json!("so")).unwrap();
    params.bind("skip", &json!(1)).unwrap();
    let options = ExecuteOptions { params, ..options() };
    let total = |source: &str| run_with(&memory, source, &options).map(|a| a["total"].clone());
    assert_eq!(total("RECALL reasonings WHERE premises = $h"), Ok(json!(1)));
    assert_eq!(
        total("RECALL reasonings WHERE premises = $text"),
        Ok(json!(0)),
        "text is searched for, and this memory searches no premises"
    );
    let skipped = run_with(&memory, "RECALL OFFSET $skip", &options).unwrap();
    assert_eq!(skipped["results"], json!([]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn sets_groups_and_duplicates_are_what_the_plain_way_says(
        grains in proptest::collection::vec((0_u8..4, 0_u8..4), 0..24),
        left in 0_u8..4,
        right in 0_u8..4,
        operator in prop_oneof![Just("UNION"), Just("INTERSECT"), Just("EXCEPT")],
    ) {
        let memory = Fake::at_work();
        for (at, (subject, relation)) in grains.iter().enumerate() {
            memory.keep(&belief(&format!("s{subject}"), &format!("r{relation}"), &at.to_string(), ""));
        }
        let newest: Vec<_> = grains.iter().enumerate().rev().collect();
        let shown = |keep: &dyn Fn(u8, u8) -> bool| {
            let kept = newest.iter().filter(|(_, (s, r))| keep(*s, *r));
            kept.map(|(at, _)| at.to_string()).collect::<Vec<_>>().join(" ")
        };
        let source = format!(
            "(RECALL ABOUT \"s{left}\" LIMIT 30) {operator} (RECALL WHERE relation = \"r{right}\" LIMIT 30)"
        );
        let expected = shown(&|s, r| match operator {
            "UNION" => s == left || r == right,
            "INTERSECT" => s == left && r == right,
            _ => s == left && r != right,
        });
        prop_assert_eq!(objects(&memory, &source), expected);

        let within = format!(
            "RECALL WHERE subject IN (RECALL WHERE relation = \"r{right}\" | SUBJECTS) LIMIT 30"
        );
        let chosen = |s: u8| grains.iter().any(|(other, r)| *other == s && *r == right);
        prop_assert_eq!(objects(&memory, &within), shown(&|s, _| chosen(s)));

        let mut seen = Vec::new();
        let first = newest.iter().filter(|(_, (s, _))| {
            let new = !seen.contains(s);
            seen.push(*s);
            new
        });
        let first = first.map(|(at, _)| at.to_string()).collect::<Vec<_>>().join(" ");
        prop_assert_eq!(objects(&memory, "RECALL WITH dedup(subject)"), first);

        let groups = part(&memory, "RECALL | GROUP BY subject", "groups");
        let mut counts: Vec<_> = (0..4_u8)
            .map(|s| (grains.iter().filter(|(other, _)| *other == s).count(), s))
            .filter(|(count, _)| *count > 0)
            .collect();
        counts.sort_by_key(|(count, s)| (std::cmp::Reverse(*count), *s));
        let counts: Vec<_> =
            counts.iter().map(|(n, s)| json!({"key": format!("s{s}"), "count": n})).collect();
        prop_assert_eq!(groups, Value::from(counts));
    }
}
