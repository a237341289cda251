//! WITH options: their effects, and how an option without effect is refused or warned of.

use serde_json::{Value, json};

use super::ExecuteOptions;
use super::tests::{belief, four_beliefs, objects, options, run, run_with};
use crate::ast::Format;
use crate::params::Params;
use crate::testutil::Fake;

/// The codes of the warnings beside an answer.
fn warnings(memory: &Fake, source: &str, options: &ExecuteOptions<'_>) -> Vec<String> {
    let answer =
        run_with(memory, source, options).unwrap_or_else(|error| panic!("{source}: {error}"));
    let warnings = answer["_cal"]["warnings"].as_array().unwrap();
    warnings.iter().map(|warning| warning["code"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_option_that_could_do_nothing_is_refused() {
    let memory = four_beliefs();
    #[rustfmt::skip]
    let table = [
        ("RECALL WITH explanation | COUNT", "explanation"),
        ("RECALL WITH superseded, provenance GROUP BY type", "provenance"),
        ("RECALL WITH score_breakdown | HASHES", "score_breakdown"),
        ("RECALL WITH total | COUNT", "total"),
        ("(RECALL WITH total) UNION (RECALL)", "RECALL"),
        ("RECALL WITH diversity(mmr) LIKE \"a\" | COUNT", "diversity(mmr)"),
        ("RECALL WITH progressive_disclosure(full) | COUNT", "progressive_disclosure(full)"),
        ("RECALL WITH iso_timestamps SELECT subject", "iso_timestamps"),
        ("RECALL WHERE subject IN (RECALL WITH iso_timestamps | SUBJECTS)", "IN (RECALL WITH iso_timestamps | SUBJECTS)"),
        ("LET $a = RECALL WITH progressive_disclosure; RECALL", "$a"),
        ("(RECALL WITH iso_timestamps) UNION (RECALL)", "RECALL"),
        ("COALESCE(RECALL, RECALL WITH explanation | COUNT)", "explanation"),
    ];
    for (source, place) in table {
        assert_eq!(run(&memory, source), Err(format!("CAL-E021 at {place}")), "{source}");
    }
}

#[test]
fn an_option_without_the_text_it_shapes_is_warned_of() {
    let memory = four_beliefs();
    let shown = ExecuteOptions { as_format: Some(Format::Sml), ..options() };
    #[rustfmt::skip]
    let table: [(&str, &ExecuteOptions<'_>, &[&str]); 13] = [
        ("RECALL WITH iso_timestamps", &options(), &["CAL-W004"]),
        ("RECALL WITH iso_timestamps AS sml", &options(), &[]),
        ("RECALL WITH iso_timestamps", &shown, &[]),
        ("RECALL WITH progressive_disclosure(full), iso_timestamps", &options(), &["CAL-W004", "CAL-W004"]),
        ("COALESCE(RECALL workflows, RECALL WITH progressive_disclosure)", &options(), &["CAL-W004"]),
        ("ASSEMBLE FROM (RECALL) WITH iso_timestamps, progressive_disclosure", &options(), &[]),
        ("ASSEMBLE FROM (RECALL WITH progressive_disclosure(full))", &shown, &["CAL-W004"]),
        ("ASSEMBLE FROM (RECALL WITH progressive_disclosure(full) AS sml)", &options(), &[]),
        ("RECALL WITH contradiction_detection | COUNT", &options(), &["CAL-W004"]),
        ("RECALL WITH contradiction_detection", &options(), &[]),
        ("RECALL WITH total", &options(), &[]),
        ("RECALL WITH total, dedup(subject)", &options(), &["CAL-W004"]),
        ("ASSEMBLE FROM (RECALL) WITH total", &options(), &["CAL-W004"]),
    ];
    for (source, options, expected) in table {
        assert_eq!(warnings(&memory, source, options), expected, "{source}");
    }
}

#[test]
fn a_format_beside_a_statement_without_text_is_warned_of() {
    let memory = Fake::at_work();
    memory.keep(&belief("a", "likes", "tea", ""));
    let as_sml = ExecuteOptions { as_format: Some(Format::Sml), ..options() };
    for (source, expected) in [
        ("RECALL | COUNT", vec!["CAL-W004"]),
        ("RECALL | SELECT object", vec!["CAL-W004"]),
        ("HISTORY WHERE subject = \"a\" AND relation = \"likes\"", vec!["CAL-W004"]),
        ("EXPLAIN RECALL", vec!["CAL-W004"]),
        ("COALESCE(RECALL goals, RECALL | COUNT)", vec!["CAL-W004"]),
        ("BATCH { n: RECALL | COUNT }", vec!["CAL-W004"]),
        ("BATCH { n: RECALL | COUNT, all: RECALL }", vec![]),
        ("RECALL", vec![]),
        ("(RECALL) UNION (RECALL)", vec![]),
        ("ASSEMBLE FROM (RECALL)", vec![]),
    ] {
        assert_eq!(warnings(&memory, source, &as_sml), expected, "{source}");
        assert_eq!(warnings(&memory, source, &options()), Vec::<String>::new(), "{source}");
    }
}

#[test]
fn contradicted_grains_are_counted_where_the_option_lets_them_in() {
    let memory = four_beliefs();
    let disputed = memory.keep(&belief("alice", "prefers", "e", ""));
    memory.mark(disputed, |state| state.contradicted = true);
    let count = |source: &str| run(&memory, source).unwrap()["count"].clone();
    assert_eq!(count("RECALL beliefs | COUNT"), json!(4));
    assert_eq!(count("RECALL beliefs WITH contradiction_detection | COUNT"), json!(5));
    assert_eq!(count("RECALL beliefs CONTRADICTIONS | COUNT"), json!(1));
}

#[test]
fn the_consistency_of_an_answer_is_said_where_it_was_asked_for() {
    let memory = four_beliefs();
    for demand in ["eventual", "bounded(5)", "bounded(0)", "linearizable"] {
        let answer = run(&memory, &format!("RECALL WITH consistency({demand})")).unwrap();
        assert_eq!(answer["_cal"]["consistency"], json!("linearizable"), "{demand}");
    }
    assert_eq!(run(&memory, "RECALL").unwrap()["_cal"].get("consistency"), None);
    let past = run(&memory, "RECALL WITH consistency(bounded(-0.5))");
    assert_eq!(past, Err("CAL-E006 at -0.5".to_owned()));
}

#[test]
fn numbers_of_options_may_be_parameters() {
    let memory = four_beliefs();
    let mut params = Params::new();
    for (name, value) in
        [("half", json!(0.5)), ("far", json!(2)), ("who", json!("alice")), ("past", json!(-1))]
    {
        params.bind(name, &value).unwrap();
    }
    let options = ExecuteOptions { params, ..options() };
    #[rustfmt::skip]
    let table = [
        ("RECALL LIKE \"a\" WITH diversity(mmr, lambda = $half)", None),
        ("RECALL LIKE \"a\" WITH diversity(threshold, $half)", None),
        ("RECALL WITH consistency(bounded($far))", None),
        ("RECALL LIKE \"a\" WITH diversity(threshold, $far)", Some("CAL-E006 at $far")),
        ("RECALL LIKE \"a\" WITH diversity(mmr, lambda = $who)", Some("CAL-E020 at $who")),
        ("RECALL WITH consistency(bounded($past))", Some("CAL-E006 at $past")),
        ("RECALL WITH consistency(bounded($who))", Some("CAL-E020 at $who")),
        ("RECALL WITH consistency(bounded($free))", Some("CAL-E008 at $free")),
        ("RECALL WITH cache(ttl = $who)", Some("CAL-E020 at cache(ttl = $who)")),
        ("RECALL LIMIT $half", Some("CAL-E020 at LIMIT $half")),
        ("RECALL LIMIT $past", Some("CAL-E020 at LIMIT $past")),
    ];
    for (source, expected) in table {
        let refused = run_with(&memory, source, &options).err();
        assert_eq!(refused.as_deref(), expected, "{source}");
    }
}

/// Actions, states and consents that share values only their fields tell apart.
fn of_other_types() -> Fake {
    let memory = Fake::at_work();
    for (object, more) in [
        ("a", r#", "content": "a", "is_error": false"#),
        ("b", r#", "content": "b", "is_error": false"#),
        ("c", r#", "action_phase": "call", "tool_call_id": "t""#),
    ] {
        memory.keep(&format!(
            r#"{{"type": "action", "tool_name": "grep", "input": {{}}, "subject": "s", "relation": "r",
                "object": "{object}"{more}}}"#
        ));
    }
    for (object, context) in
        [("d", r#"{"id": "one"}"#), ("e", r#"{"name": "one", "x": 1}"#), ("f", r#"{"id": "two"}"#)]
    {
        memory.keep(&format!(
            r#"{{"type": "state", "context": {context}, "subject": "s", "relation": "r", "object": "{object}"}}"#
        ));
    }
    memory
}

#[test]
fn dedup_tells_grains_apart_by_the_field_as_cal_shows_it() {
    let memory = of_other_types();
    #[rustfmt::skip]
    let table = [
        ("RECALL actions WITH dedup(action_phase)", "c b"),
        ("RECALL actions WITH dedup(action_phase) ORDER BY object", "a c"),
        ("RECALL actions WITH dedup(tool_name)", "c"),
        ("RECALL actions WITH dedup(is_error)", "c b"),
        ("RECALL states WITH dedup(context)", "f e"),
        ("RECALL WITH dedup(type)", "f c"),
        ("RECALL WITH dedup(time) LIMIT 2", "f e"),
        ("RECALL WITH dedup(verification_status)", "f"),
    ];
    for (source, expected) in table {
        assert_eq!(objects(&memory, source), expected, "{source}");
    }
    let sources =
        "ASSEMBLE FROM x: (RECALL states LIMIT 1), y: (RECALL states) WITH dedup(context)";
    let answer = run(&memory, sources).unwrap();
    let shown = |label: &str| answer["sources"][label]["standard"].clone();
    assert_eq!((shown("x"), shown("y")), (json!(1), json!(2)));
}

#[test]
fn dedup_holds_to_the_rules_of_fields() {
    let memory = of_other_types();
    #[rustfmt::skip]
    let table = [
        ("RECALL WITH dedup(context)", "CAL-E061 at context"),
        ("RECALL actions WITH dedup(context)", "CAL-E060 at context"),
        ("RECALL consents WITH dedup(scope)", "CAL-E021 at scope"),
        ("RECALL goals WITH dedup(depends_on)", "CAL-E021 at depends_on"),
        ("RECALL WITH dedup(query)", "CAL-E021 at query"),
        ("RECALL WITH dedup(hash)", "CAL-E021 at hash"),
        ("ASSEMBLE FROM (RECALL) WITH dedup(context)", "CAL-E061 at context"),
        ("ASSEMBLE FROM (RECALL actions), (RECALL) WITH dedup(context)", "CAL-E060 at context"),
    ];
    for (source, expected) in table {
        assert_eq!(run(&memory, source), Err(expected.to_owned()), "{source}");
    }
    for source in [
        "ASSEMBLE FROM (RECALL), (RECALL states) WITH dedup(context)",
        "LET $s = RECALL states; ASSEMBLE FROM $s WITH dedup(context)",
    ] {
        assert!(run(&memory, source).is_ok(), "{source}");
    }
}

#[test]
fn the_name_of_an_assembly_is_in_its_answer() {
    let memory = four_beliefs();
    assert_eq!(run(&memory, "ASSEMBLE brief FROM (RECALL)").unwrap()["name"], json!("brief"));
    assert_eq!(run(&memory, "ASSEMBLE FROM (RECALL)").unwrap().get("name"), None::<&Value>);
}

#[test]
fn cache_is_a_permission_and_each_answer_is_fresh() {
    let memory = four_beliefs();
    for source in ["RECALL WITH cache(ttl = 60)", "ASSEMBLE FROM (RECALL) WITH cache(ttl = 60)"] {
        let answer = run(&memory, source).unwrap();
        assert_eq!(answer["_cal"]["cache"], "fresh", "{source}");
    }
    assert_eq!(run(&memory, "RECALL").unwrap()["_cal"].get("cache"), None);
}

#[test]
fn an_assemble_hands_options_about_grains_to_its_sources() {
    let memory = four_beliefs();
    let source = "ASSEMBLE FROM a: (RECALL beliefs LIMIT 2) WITH superseded, score_breakdown, explanation, provenance, \
                  contradiction_detection";
    let answer = run(&memory, source).unwrap();
    let rows = answer["sources"]["a"]["grains"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for part in ["state", "score_breakdown", "explanation", "provenance", "contradictions"] {
        assert!(rows.iter().all(|row| row.get(part).is_some()), "{part}: {rows:?}");
    }
    assert!(rows.iter().all(|row| row.get("grain").is_none()), "the text shows it: {rows:?}");
    assert!(rows.iter().all(|row| row["shown"] == true), "{rows:?}");
    let plain = run(&memory, "ASSEMBLE FROM a: (RECALL beliefs LIMIT 2)").unwrap();
    assert_eq!(plain["sources"]["a"].get("grains"), None);
}

#[test]
fn each_grain_of_a_source_says_whether_the_text_has_it() {
    let memory = four_beliefs();
    let source = "ASSEMBLE FROM a: (RECALL beliefs) BUDGET 2 grains WITH provenance";
    let answer = run(&memory, source).unwrap();
    let rows = answer["sources"]["a"]["grains"].as_array().unwrap();
    let shown: Vec<_> = rows.iter().map(|row| row["shown"].as_bool().unwrap()).collect();
    assert_eq!(shown, [true, true, false, false]);
    let recalled = run(&memory, "RECALL beliefs WITH provenance").unwrap();
    assert_eq!(recalled["results"][0].get("shown"), None, "it is about a text");
}

#[test]
fn a_project_without_a_format_shapes_the_rows() {
    let memory = four_beliefs();
    let answer =
        run(&memory, "RECALL beliefs | PROJECT content(object), attr(subject) LIMIT 1").unwrap();
    let grain = answer["results"][0]["grain"].as_object().unwrap();
    assert_eq!(grain.keys().collect::<Vec<_>>(), ["content", "subject"]);
    let whole = run(&memory, "RECALL beliefs LIMIT 1").unwrap();
    assert_eq!(grain["content"], whole["results"][0]["grain"]["object"]);
}
