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
    assert_eq!(place.grain(&["stats", "--json"]).done().json()["grains"], 3);
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
