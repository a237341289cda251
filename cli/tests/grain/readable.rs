//! Answers of CAL as people read them, formats that cannot act, and errors on a terminal.

use std::fs;

use crate::kit::{Place, belief};

/// What `grain cal` prints.
fn told(place: &Place, query: &str) -> String {
    place.grain(&["cal", query]).done().text().to_owned()
}

/// Two people and three preferences.
fn place() -> Place {
    let place = Place::with_store();
    for (subject, object) in [("alice", "tea"), ("alice", "milk"), ("bob", "tea")] {
        place.put(&belief(subject, object));
    }
    place
}

#[test]
fn values_groups_and_differences_are_lines() {
    let place = place();
    assert_eq!(told(&place, r#"RECALL beliefs ABOUT "alice" | SUBJECTS"#), "alice\n");
    assert_eq!(told(&place, "RECALL beliefs | GROUP BY subject"), "2  alice\n1  bob\n");
    let old = place.put(&belief("carol", "tea"));
    let new = place.feed(&["supersede", &old, "-"], belief("carol", "milk")).done().line();
    let differ = told(&place, &format!("HISTORY sha256:{old} DIFF sha256:{new}"));
    assert!(differ.contains("object: tea -> milk\n"), "{differ}");
    assert!(differ.contains("derived_from: (none) -> "), "{differ}");
}

#[test]
fn hashes_are_one_a_line() {
    let place = Place::with_store();
    let address = place.put(&belief("alice", "tea"));
    assert!(told(&place, "RECALL beliefs | HASHES").trim_end().ends_with(&address));
}

#[test]
fn a_plan_is_a_few_indented_lines() {
    let plan = told(&place(), r#"EXPLAIN RECALL beliefs ABOUT "alice" RECENT 3"#);
    for line in [
        "RECALL beliefs ABOUT \"alice\" RECENT 3\n",
        "    runs       RECALL beliefs WHERE subject = \"alice\" | ORDER BY time DESC | LIMIT 3\n",
        "    lookups    subject = \"alice\"",
        "    estimated  2\n",
        "    at most    2\n",
    ] {
        assert!(plan.contains(line), "{line}: {plan}");
    }
}

#[test]
fn a_plan_tells_what_is_searched_for_otherwise_and_what_would_be_refused() {
    let plan = told(&place(), r#"EXPLAIN RECALL beliefs ABOUT "coffee""#);
    let (first, then) = plan.split_once("    otherwise  ").unwrap();
    assert!(first.contains("    at most    0\n"), "{plan}");
    assert!(then.starts_with("where nothing has this subject: query = \"coffee\"\n"), "{plan}");
    assert!(then.contains("    search "), "{plan}");
    let plan = told(&place(), r#"EXPLAIN REVERT sha256:00000000 REASON "r""#);
    for line in [
        "  would be refused: CAL-E044: this session reads only\n",
        "  would be refused: CAL-E046: sha256:00000000 leads to no grain\n",
        "  looked at only when it runs: the invalidation policy of the grain it supersedes, ",
    ] {
        assert!(plan.contains(line), "{line}: {plan}");
    }
}

#[test]
fn descriptions_are_tables_lines_and_text() {
    let place = Place::with_store();
    let fields = told(&place, "DESCRIBE fields goal");
    assert!(fields.starts_with("grain_type: goal\nname "), "{fields}");
    assert!(fields.contains("\ngoal_state           =, !=                active, satisfied, "));
    assert!(told(&place, "DESCRIBE fields").contains("\nfin     profile:finance\n"));
    assert!(told(&place, "DESCRIBE grammar").contains("\nquery     :="));
    let can = told(&place, "DESCRIBE capabilities");
    assert!(
        can.contains("formats: sml, markdown, json, yaml, text, triples, toon\n")
            && can.contains("limits.max_limit: 1000\n")
    );
    assert!(told(&place, "DESCRIBE grain_types").contains("\nbelief "));
}

#[test]
fn a_batch_shows_each_slot_under_its_label() {
    let place = place();
    let batch = "BATCH { n: RECALL beliefs | COUNT, gone: HISTORY sha256:00000000 }";
    let shown = told(&place, batch);
    assert!(shown.starts_with("n:\n3\n\ngone:\nerror: CAL-E046: "), "{shown}");
    let found = told(&place, r#"COALESCE (RECALL goals | COUNT, RECALL beliefs | COUNT)"#);
    assert_eq!(found, "3\n");
}

#[test]
fn what_a_context_lacks_is_told_beside_it() {
    let place = place();
    for (query, expected) in [
        (
            "ASSEMBLE FROM gone: (RECALL events THREAD FROM sha256:00000000), all: (RECALL beliefs)",
            "source gone failed: CAL-E046: ",
        ),
        ("ASSEMBLE FROM (RECALL beliefs) BUDGET 1 grains", "2 of 3 grains did not fit the budget"),
        (
            "ASSEMBLE FROM (RECALL beliefs AS text) WITH summarize",
            "the texts of sources, the summaries of sources: in the JSON answer (--json)",
        ),
        (
            "RECALL beliefs WITH superseded, provenance, score_breakdown, explanation, contradiction_detection AS text",
            "state, score_breakdown, explanation, provenance, contradictions: in the JSON answer (--json)",
        ),
        ("COALESCE (RECALL goals, RECALL events AS text)", "nothing found"),
    ] {
        let run = place.grain(&["cal", query]).done();
        assert!(run.err.contains(expected), "{query}: {}", run.err);
        assert_ne!(run.text(), "\n", "{query}");
    }
    let whole = place.grain(&["cal", "ASSEMBLE FROM (RECALL beliefs)"]).done();
    assert_eq!(whole.err, "");
}

#[test]
fn what_is_stored_steers_no_terminal() {
    let place = Place::with_store();
    place.put(&belief("a\u{1b}[31m\nb", "tea"));
    for query in [
        "RECALL beliefs | SUBJECTS",
        "RECALL beliefs | GROUP BY subject",
        "BATCH { a: RECALL beliefs | SUBJECTS }",
    ] {
        let shown = told(&place, query);
        assert!(!shown.contains('\u{1b}') && shown.contains("a\\u{1b}[31m b\n"), "{shown:?}");
    }
}

#[test]
fn a_format_acts_or_is_refused() {
    let place = place();
    for query in [
        "RECALL beliefs | SELECT object",
        "RECALL beliefs | COUNT",
        "BATCH { n: RECALL beliefs | COUNT }",
        "EXISTS sha256:00000000",
        "DESCRIBE grammar",
        "EXPLAIN RECALL",
    ] {
        let run = place.grain(&["cal", query, "--as", "sml"]);
        assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_SCHEMA"), "{query}");
        assert!(run.out.is_empty() && run.err.contains("hint: leave --as out"), "{query}");
    }
    for query in [
        "RECALL beliefs",
        "COALESCE (RECALL goals, RECALL beliefs)",
        "(RECALL beliefs) UNION (RECALL goals)",
        "BATCH { n: RECALL beliefs | COUNT, all: RECALL beliefs }",
    ] {
        let run = place.grain(&["cal", query, "--as", "sml"]).done();
        assert!(run.text().contains("<context>\n\n  <belief "), "{query}: {}", run.text());
    }
}

#[test]
fn a_refused_format_writes_nothing() {
    let place = Place::with_store();
    let add = r#"ADD belief SET subject = "a" SET relation = "is" SET object = "b" REASON "seen""#;
    let run = place.grain(&["cal", add, "--evolve", "--as", "sml"]);
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_SCHEMA"));
    assert_eq!(told(&place, "RECALL | COUNT"), "0\n");
}

#[test]
fn errors_name_what_would_be_accepted() {
    let place = Place::with_store();
    for (query, expected) in [
        ("RECALL goals WHERE goal_state = \"x\"", "\n  one of: active, satisfied, "),
        ("RECALL beliefs | ORDER BY tags", "\n  one of: "),
        ("RECALL LIMIT 0", "write a number from 1 to 1000"),
    ] {
        let run = place.grain(&["cal", query]);
        assert!(run.code == 1 && run.err.contains(expected), "{query}: {}", run.err);
    }
    let zero = place.grain(&["recall", "alice", "--limit", "0"]);
    assert!(zero.code == 2 && zero.err.contains("1..=1000") && !zero.err.contains("$subject"));
}

#[test]
fn a_missing_and_a_damaged_store_come_with_a_way_out() {
    let place = Place::with_store();
    let missing = place.grain(&["--store", "nope", "doctor"]);
    assert!(missing.code == 1 && missing.err.contains("grain init"), "{}", missing.err);
    assert!(missing.text().contains("grain init"), "{}", missing.text());
    let file = place.path().join("memory.grains/grains.redb");
    fs::OpenOptions::new().write(true).open(file).unwrap().set_len(3000).unwrap();
    for command in ["stats", "doctor"] {
        let run = place.grain(&[command]);
        assert_eq!((run.code, run.error_code().as_str()), (4, "ERR_INTEGRITY"), "{command}");
        assert!(run.err.contains("copy the directory first"), "{command}: {}", run.err);
    }
}

#[test]
fn what_the_storage_fails_on_is_told_as_an_error_and_not_as_a_failure_of_the_program() {
    let place = place();
    let file = place.path().join("memory.grains/grains.redb");
    let mut bytes = fs::read(&file).unwrap();
    bytes[4096..4112].fill(0xff);
    fs::write(&file, bytes).unwrap();
    let run = std::process::Command::new(env!("CARGO_BIN_EXE_grain"))
        .args(["recall", "alice"])
        .current_dir(place.path())
        .env_remove("RUST_BACKTRACE")
        .output()
        .unwrap();
    let told = String::from_utf8(run.stderr).unwrap();
    assert!(told.starts_with("error: ERR_INTEGRITY: "), "{told}");
    assert!(told.contains("the storage failed on damaged data"), "{told}");
    assert!(!told.contains("panicked"), "{told}");
}

#[test]
fn chosen_fields_are_printed_in_the_format_that_was_asked_for() {
    let place = Place::with_store();
    place.put(&belief("alice", "tea"));
    let asked = |format: &str| {
        let query = format!("RECALL beliefs | SELECT subject, object AS {format}");
        place.grain(&["cal", &query]).done().text().to_owned()
    };
    assert_eq!(asked("csv"), "subject,object\nalice,tea\n");
    assert!(asked("table").contains("alice"));
    assert!(!asked("table").contains("_cal"));
    let bare = place.grain(&["cal", "RECALL beliefs | SELECT subject, object"]).done();
    assert!(bare.text().contains("_cal"), "without a format it is the envelope");
}
