//! Searches: LIKE, `query =`, searched fields, `score`, and the fallback of ABOUT, over a memory whose score
//! is the share of the words that a grain has.

use serde_json::{Value, json};

use super::tests::{objects, run};
use crate::testutil::Fake;

/// Three beliefs and an event, in insertion order.
fn library() -> Fake {
    let memory = Fake::at_work();
    for (subject, object) in [("alice", "green tea"), ("bob", "green trees"), ("tea", "a plant")] {
        memory.keep(&format!(
            r#"{{"type": "belief", "subject": "{subject}", "relation": "likes", "object": "{object}",
                "confidence": 0.5}}"#
        ));
    }
    memory.keep(
        r#"{"type": "event", "content": "black tea please", "role": "user", "object": "spoken"}"#,
    );
    memory
}

fn results(memory: &Fake, source: &str) -> Vec<Value> {
    let answer = run(memory, source).unwrap_or_else(|error| panic!("{source}: {error}"));
    answer["results"].as_array().unwrap().clone()
}

#[test]
fn joined_grains_come_in_the_order_of_a_search_where_one_side_was_searched() {
    let memory = library();
    let found = |source: &str| {
        let objects: Vec<String> = results(&memory, source)
            .iter()
            .map(|row| row["grain"]["object"].as_str().unwrap().to_owned())
            .collect();
        objects.join(", ")
    };
    #[rustfmt::skip]
    let table = [
        (r#"(RECALL beliefs LIKE "green tea" LIMIT 1) UNION (RECALL beliefs WHERE query = "green" AND subject = "bob")"#, 2),
        (r#"(RECALL beliefs LIKE "green tea") INTERSECT (RECALL beliefs LIKE "green tea likes")"#, 3),
        (r#"(RECALL beliefs LIKE "green tea") EXCEPT (RECALL events)"#, 3),
        (r#"((RECALL beliefs LIKE "green tea") EXCEPT (RECALL events)) UNION (RECALL beliefs LIKE "tea")"#, 3),
        (r#"(COALESCE(RECALL workflows, RECALL beliefs LIKE "green tea")) EXCEPT (RECALL events)"#, 3),
    ];
    for (source, most) in table {
        let rows = results(&memory, source);
        let scores: Vec<f64> = rows.iter().map(|row| row["score"].as_f64().unwrap()).collect();
        assert_eq!(rows.len(), most, "{source}");
        assert!(scores.is_sorted_by(|a, b| a >= b), "{source}: {scores:?}");
    }
    assert_eq!(
        found(r#"(RECALL beliefs LIKE "green tea") EXCEPT (RECALL beliefs WHERE subject = "tea")"#),
        "green tea, green trees"
    );
    // The right side of EXCEPT contributes no grains, so its search orders nothing.
    assert_eq!(found(r#"(RECALL beliefs) EXCEPT (RECALL LIKE "plant")"#), "green trees, green tea");
}

#[test]
fn what_is_searched_for_comes_best_first_and_with_its_score() {
    let memory = library();
    #[rustfmt::skip]
    let table = [
        (r#"RECALL LIKE "green tea" LIMIT 1"#, "green tea"),
        (r#"RECALL beliefs LIKE "green tea" WHERE subject != "tea" LIMIT 5"#, "green tea, green trees"),
        (r#"RECALL beliefs WHERE query = "green tea" AND score > 0.5"#, "green tea"),
        (r#"RECALL beliefs WHERE query = "green tea" AND score >= 0.5 AND subject = "bob""#, "green trees"),
        (r#"RECALL events WHERE content = "tea""#, "spoken"),
        (r#"RECALL events WHERE content = "coffee""#, ""),
        (r#"RECALL LIKE "coffee""#, ""),
        (r#"RECALL beliefs LIKE "green tea" | ORDER BY subject DESC"#, "a plant, green trees, green tea"),
        (r#"RECALL beliefs LIKE "green tea" | ORDER BY score DESC | LIMIT 1"#, "green tea"),
        (r#"RECALL beliefs LIKE "green tea" | ORDER BY time DESC"#, "a plant, green trees, green tea"),
        (r#"RECALL beliefs LIKE "green tea" | ORDER BY time"#, "green tea, green trees, a plant"),
        (r#"RECALL beliefs LIKE "green tea" RECENT 2"#, "a plant, green trees"),
        (r#"RECALL beliefs ABOUT "green" RECENT 1"#, "green trees"),
        (r#"RECALL WHERE score > 0.5 AND subject = "bob""#, "green trees"),
        (r#"RECALL WHERE score >= 1 AND score > 0.2 AND subject = "bob""#, "green trees"),
        (r#"RECALL WHERE score > 1 AND subject = "bob""#, ""),
    ];
    for (source, expected) in table {
        let found: Vec<String> = results(&memory, source)
            .iter()
            .map(|row| row["grain"]["object"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(found.join(", "), expected, "{source}");
    }
    let rows = results(
        &memory,
        r#"RECALL beliefs LIKE "green tea" WHERE confidence >= 0.5 WITH score_breakdown LIMIT 2"#,
    );
    assert_eq!(rows[0]["score"], json!(1.0));
    assert_eq!(rows[1]["score"], json!(0.5));
    assert_eq!(rows[1]["score_breakdown"], json!({"text": 0.5}));
    assert_eq!(rows[0]["matched_fields"], json!(["confidence", "object"]));
    let selected = results(&memory, r#"RECALL LIKE "green tea" | SELECT object, score | LIMIT 1"#);
    assert_eq!(selected[0]["grain"], json!({"object": "green tea", "score": 1.0}));
}

/// A thread is ordered from its start, however well its messages match a search.
#[test]
fn a_thread_is_in_the_order_of_time() {
    let memory = library();
    for (content, object) in [("some tea", "first"), ("green tea", "second")] {
        memory.keep(&format!(
            r#"{{"type": "event", "content": "{content}", "session_id": "s", "object": "{object}"}}"#
        ));
    }
    let thread = results(&memory, r#"RECALL THREAD "s" LIKE "green tea""#);
    let objects: Vec<_> = thread.iter().map(|row| row["grain"]["object"].clone()).collect();
    assert_eq!(objects, ["first", "second"]);
}

#[test]
fn an_explanation_says_what_of_the_search_a_grain_answers() {
    let memory = library();
    let why = |source: &str| results(&memory, source)[0]["explanation"].clone();
    let like = r#"RECALL LIKE "green tea" WITH explanation LIMIT 1"#;
    assert_eq!(why(like), json!("found by words in object"));
    let both = r#"RECALL LIKE "green" WHERE confidence >= 0.5 WITH explanation LIMIT 1"#;
    assert_eq!(why(both), json!("found by words in object; matches on confidence"));
    let recall = |source: &str| run(&memory, source).unwrap()["plan"]["recalls"][0].clone();
    let searched = recall(r#"EXPLAIN RECALL beliefs LIKE "tea""#);
    assert_eq!(searched["search"].as_array().unwrap().len(), 1, "{searched}");
    assert_eq!(recall("EXPLAIN RECALL beliefs")["search"], Value::Null);
}

#[test]
fn the_subject_of_about_is_searched_for_where_nothing_has_it() {
    let memory = library();
    let count = |source: &str| run(&memory, source).unwrap()["count"].clone();
    let values = |source: &str| run(&memory, source).unwrap()["values"].clone();
    assert_eq!(objects(&memory, r#"RECALL ABOUT "tea""#), "a plant", "a subject");
    let by_object = r#"RECALL beliefs ABOUT "green" | ORDER BY object"#;
    assert_eq!(objects(&memory, by_object), "green tea green trees");
    assert_eq!(count(r#"RECALL beliefs ABOUT "green" | COUNT"#), json!(2));
    assert_eq!(count(r#"RECALL beliefs ABOUT "tea" | COUNT"#), json!(1));
    assert_eq!(
        values(r#"RECALL beliefs ABOUT "green" | ORDER BY object | OBJECTS"#),
        json!(["green tea", "green trees"])
    );
    let groups = run(&memory, r#"RECALL beliefs ABOUT "green" | GROUP BY relation"#).unwrap();
    assert_eq!(groups["groups"], json!([{"key": "likes", "count": 2}]));
    // Other conditions still hold, and a statement that searches already has no second search.
    let strict = r#"RECALL ABOUT "green" WHERE confidence >= 0.9"#;
    assert_eq!(objects(&memory, strict), "");
    let searching = r#"RECALL ABOUT "green" WHERE query = "tea""#;
    assert_eq!(objects(&memory, searching), "");
    // A result that OFFSET emptied still counts as found.
    assert_eq!(objects(&memory, r#"RECALL ABOUT "tea" | OFFSET 5 | LIMIT 5"#), "");
    let rows = results(&memory, r#"RECALL beliefs ABOUT "green" LIMIT 1"#);
    assert_eq!(rows[0]["matched_fields"], json!(["object"]), "not the subject it does not have");
}

#[test]
fn shortcuts_that_search_are_explained_in_longer_words() {
    let memory = library();
    let recall = |source: &str| run(&memory, source).unwrap()["plan"]["recalls"][0].clone();
    let like = recall(r#"EXPLAIN RECALL beliefs LIKE "tea" LIMIT 3"#);
    assert_eq!(like["desugared"], json!(r#"RECALL beliefs WHERE query = "tea" | LIMIT 3"#));
    assert_eq!(like["otherwise"], Value::Null);
    let about = recall(r#"EXPLAIN RECALL ABOUT "tea" LIMIT 3"#);
    assert_eq!(about["otherwise"], json!(r#"where nothing has this subject: query = "tea""#));
    assert_eq!(about["search"], Value::Null, "the subject is looked up");
    assert_eq!(about["otherwise_plan"]["search"].as_array().unwrap().len(), 1, "{about}");
    assert_eq!(about["otherwise_plan"]["lookups"], json!([]), "the subject is not asked for again");
}

#[test]
fn set_operations_join_by_score() {
    let memory = library();
    let score = |operator: &str| {
        let source = format!(
            r#"(RECALL LIKE "green tea" LIMIT 9) {operator} (RECALL WHERE subject = "bob" LIMIT 9)"#
        );
        let rows = results(&memory, &source);
        let bob = rows.iter().find(|row| row["grain"]["subject"] == "bob");
        bob.map(|row| row["score"].clone())
    };
    assert_eq!(score("UNION"), Some(json!(1.0)));
    assert_eq!(score("INTERSECT"), Some(json!(0.5)));
    assert_eq!(score("EXCEPT"), None);
}
