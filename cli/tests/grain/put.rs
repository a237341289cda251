//! `grain put`: what is read, what is stored together, and what an error leaves behind.

use std::fs;

use serde_json::json;

use crate::kit::{Place, belief};

#[test]
fn addresses_come_one_a_line_in_the_order_of_the_grains() {
    let place = Place::with_store();
    let input = format!("{}\n\n{}\n", belief("a", "1"), belief("b", "2"));
    let put = place.feed(&["put"], &input).done();
    let addresses: Vec<_> = put.text().lines().collect();
    assert_eq!(addresses.len(), 2);
    for (address, subject) in addresses.iter().zip(["a", "b"]) {
        assert_eq!(place.grain(&["get", address]).done().json()["subject"], subject);
    }
    fs::write(place.path().join("grains.jsonl"), &input).unwrap();
    let again = place.grain(&["put", "grains.jsonl", "--json"]).done().json_lines();
    let expected: Vec<_> =
        addresses.iter().map(|a| json!({ "address": a, "duplicate": true })).collect();
    assert_eq!(again, expected);
}

#[test]
fn one_grain_may_span_lines_and_the_last_needs_no_newline() {
    let place = Place::with_store();
    let spread = belief("a", "1").replace(',', ",\n  ");
    let put = place.feed(&["put", "-"], format!("{spread}\n{}", belief("b", "2"))).done();
    assert_eq!(put.text().lines().count(), 2);
}

#[test]
fn a_raw_blob_is_stored_as_it_is() {
    let place = Place::with_store();
    let blob = place.feed(&["encode", "--encoding", "cbor"], belief("a", "1")).done().out;
    let address = place.feed(&["put", "--format", "mg"], &blob).done().line();
    assert_eq!(place.grain(&["get", &address, "--format", "mg"]).done().out, blob);
    for (blob, code) in [(&b""[..], "ERR_TOO_SHORT"), (b"\x02234567890", "ERR_VERSION")] {
        let run = place.feed(&["put", "--format", "mg"], blob);
        assert_eq!((run.code, run.error_code().as_str()), (1, code));
    }
}

#[test]
fn a_refused_line_is_named_and_nothing_of_its_file_is_stored() {
    let good = belief("a", "1");
    for (bad, code, place_named) in [
        ("{\"type\": \"belief\"}", "ERR_SCHEMA", "line 2: "),
        ("{\"type\": \"belief\"", "ERR_CORRUPT", "line 2: "),
        ("{\"type\": \"bel", "ERR_CORRUPT", "line 2: "),
        ("[]", "ERR_NOT_MAP", "line 2: "),
        ("nonsense", "ERR_CORRUPT", "line 2: "),
        ("{} {}", "ERR_CORRUPT", "line 2: "),
        ("{\"a\": 1e400}", "ERR_FLOAT_INVALID", "line 2: "),
        ("{\"a\": 1, \"a\": 2}", "ERR_CORRUPT", "line 2: "),
        (
            "{\"type\":\"belief\",\"subject\":\"a\",\"relation\":\"b\",\"object\":\"c\",\
             \"confidence\":1,\"created_at\":0,\"supersession_justification\":\"x\"}",
            "ERR_SUPERSEDE_REQUIRED",
            "line 2: ",
        ),
    ] {
        let store = Place::with_store();
        let run = store.feed(&["put"], format!("{good}\n{bad}\n{}\n", belief("b", "2")));
        assert_eq!((run.code, run.error_code().as_str()), (1, code), "{bad}: {}", run.err);
        assert!(run.err.contains(place_named), "{bad}: {}", run.err);
        assert!(run.out.is_empty(), "{bad}");
        assert_eq!(store.grain(&["stats", "--json"]).done().json()["grains"], 0, "{bad}");
    }
    let store = Place::with_store();
    let run = store.feed(&["put"], b"{\"type\": \"\xff\"}");
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_CORRUPT"));
}

#[test]
fn a_long_file_is_stored_in_batches_and_an_error_says_what_stays() {
    let place = Place::with_store();
    let mut lines: Vec<_> = (0..10_000).map(|at| belief("a", &at.to_string())).collect();
    lines.push("{}".to_owned());
    let run = place.feed(&["put"], lines.join("\n"));
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_NO_TYPE"));
    assert!(run.err.contains("after 10000 grains that are stored: line 10001: "), "{}", run.err);
    assert_eq!(run.text().lines().count(), 10_000);
    assert_eq!(place.grain(&["stats", "--json"]).done().json()["grains"], 10_000);
}

#[test]
fn the_same_fact_is_added_kept_or_superseded() {
    let place = Place::with_store();
    let first = place.put(&belief("a", "1"));
    let later = belief("a", "1").replace("0.9", "0.5");
    let kept = place.feed(&["put", "--same-fact", "keep", "--json"], &later).done().json();
    assert_eq!(kept, json!({ "address": first, "duplicate": true }));
    let arguments = ["put", "--same-fact", "supersede", "--json"];
    let replaced = place.feed(&arguments, &later).done().json();
    assert_eq!((&replaced["superseded"], &replaced["duplicate"]), (&json!(first), &json!(false)));
    let added = place.feed(&["put", "--same-fact", "add", "--json"], &later).done().json();
    assert_ne!(added["address"], replaced["address"]);
    let run = place.feed(&["put", "--same-fact", "unique"], belief("a", "2"));
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_CONFLICT"));
    let named = [&added, &replaced].map(|put| put["address"].as_str().unwrap());
    assert!(named.iter().any(|named| run.err.contains(named)), "{}", run.err);
    place.feed(&["put", "--same-fact", "unique"], belief("b", "2")).done();
    assert_eq!(place.grain(&["stats", "--json"]).done().json()["grains"], 4);
}

#[test]
fn an_empty_input_stores_nothing_and_is_no_error() {
    let place = Place::with_store();
    assert_eq!(place.feed(&["put"], "\n \n").done().text(), "");
}

#[test]
fn input_that_cannot_be_read_is_named() {
    let place = Place::with_store();
    for path in ["absent.json", "."] {
        let run = place.grain(&["put", path]);
        assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_IO"), "{path}");
        assert!(run.err.contains(path), "{}", run.err);
    }
}

#[test]
fn a_fact_and_an_event_are_added_by_their_words() {
    let place = Place::with_store();
    let fact = ["add", "alice", "prefers", "tea", "--tag", "mg:dietary", "--confidence", "0.8"];
    let fact = place.grain(&[&fact[..], &["--namespace", "home", "--user", "u1"]].concat());
    let address = fact.done().line();
    let grain = place.grain(&["get", &address]).done().json();
    assert_eq!((&grain["type"], &grain["object"]), (&json!("belief"), &json!("tea")));
    assert_eq!((&grain["namespace"], &grain["user_id"]), (&json!("home"), &json!("u1")));
    assert_eq!(
        (&grain["confidence"], &grain["structural_tags"]),
        (&json!(0.8), &json!(["mg:dietary"]))
    );
    assert!(grain["created_at"].as_i64().is_some_and(|at| at > 1_700_000_000_000));
    let event = ["add", "--event", "alice came home", "--created-at", "2026-01-15T10:00:00Z"];
    let address = place.grain(&event).done().line();
    let grain = place.grain(&["get", &address]).done().json();
    assert_eq!(
        (&grain["type"], &grain["content"], &grain["created_at"]),
        (&json!("event"), &json!("alice came home"), &json!(1_768_471_200_000_i64))
    );
    for wrong in [
        &["add"][..],
        &["add", "alice"],
        &["add", "alice", "prefers"],
        &["add", "alice", "prefers", "tea", "--event", "x"],
        &["add", "alice", "prefers", "tea", "--created-at", "soon"],
    ] {
        assert_eq!(place.grain(wrong).code, 2, "{wrong:?}");
    }
    let run = place.grain(&["add", "alice", "prefers", "tea", "--confidence", "2"]);
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_RANGE"));
}

#[test]
fn a_grain_without_a_time_gets_the_present_only_where_that_is_asked_for() {
    let place = Place::with_store();
    let undated = r#"{"type": "event", "content": "hello"}"#;
    let run = place.feed(&["put"], undated);
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_SCHEMA"));
    assert!(run.err.contains("--created-now"), "{}", run.err);
    let put =
        place.feed(&["put", "--created-now"], format!("{undated}\n{}", belief("a", "1"))).done();
    let addresses: Vec<_> = put.text().lines().map(str::to_owned).collect();
    let times = addresses.iter().map(|address| {
        place.grain(&["get", address]).done().json()["created_at"].as_i64().unwrap()
    });
    let times: Vec<_> = times.collect();
    assert!(times[0] > times[1], "the one that has a time keeps it: {times:?}");
    let run = place.feed(&["put", "--created-now"], "{}");
    assert_eq!(run.error_code(), "ERR_NO_TYPE");
}

#[test]
fn the_help_lists_every_command_in_one_group() {
    let place = Place::empty();
    let help = place.grain(&["help"]).done();
    for group in ["Start:\n  init", "Write:\n  add", "Ask:\n  recall", "Maintain:\n  verify"] {
        assert!(help.text().contains(group), "{group}");
    }
}
