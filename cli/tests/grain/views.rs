//! Disclosed views checked and restored: by rpc and by the commands.

use std::fs;

use data_encoding::BASE64;
use grainstore_vectors::disclose_rows;
use serde_json::{Map, Value, json};

use crate::kit::{Place, belief};

/// The values of the fields that a view hides, from its original.
fn hidden_of(view: &Value, original: &Value) -> Value {
    let names = view["_elided"].as_object().into_iter().flat_map(Map::keys);
    let values = names.map(|name| (name.clone(), original[name].clone()));
    Value::Object(values.collect())
}

#[test]
fn every_view_of_the_vectors_is_checked_and_restored_by_both() {
    let place = Place::empty();
    let mut rpc = place.rpc();
    let mut restored = 0;
    for row in disclose_rows().unwrap().iter().filter(|row| !row.hide.is_empty()) {
        let view: Value = serde_json::from_str(row.view()).unwrap();
        let original: Value = serde_json::from_str(row.grain()).unwrap();
        let revealed = hidden_of(&view, &original);
        let address = view["_disclosure_of"].as_str().unwrap().trim_start_matches("sha256:");
        let hidden: Vec<_> = revealed.as_object().unwrap().keys().cloned().collect();
        let blob = BASE64.encode(&row.blob);
        let checked = json!({ "original": address, "whole": true, "hidden": hidden });
        for given in
            [json!({ "view": view }), json!({ "view_blob": BASE64.encode(&row.view_blob) })]
        {
            let mut params = given.clone();
            params["original"] = json!(blob);
            assert_eq!(rpc.result("check_view", &params), checked, "{}", row.name);
            if view["_elided"].is_null() {
                continue;
            }
            let mut params = given;
            params["revealed"] = revealed.clone();
            let mut told = checked.clone();
            told["whole"] = json!(false);
            told["revealed"] = json!(hidden);
            assert_eq!(rpc.result("check_view", &params), told, "{}", row.name);
            let answer = rpc.result("restore_view", &params);
            let expected = json!({ "address": address, "grain": original, "blob": blob });
            assert_eq!(answer, expected, "{}", row.name);
            restored += 1;
        }
        fs::write(place.path().join("original"), &row.blob).unwrap();
        fs::write(place.path().join("revealed"), revealed.to_string()).unwrap();
        for bytes in [row.view().as_bytes(), &row.view_blob] {
            let run = place.feed(&["check-view", "-", "--original", "original"], bytes).done();
            assert_eq!(run.line(), format!("valid {address}"), "{}", row.name);
            let restore = ["restore-view", "-", "--revealed", "revealed"];
            let run = place.feed(&restore, bytes).done();
            assert_eq!((run.json(), run.err.trim()), (original.clone(), address), "{}", row.name);
            let run = place.feed(&[&restore[..], &["--format", "mg"]].concat(), bytes).done();
            assert_eq!(run.out, row.blob, "{}", row.name);
        }
    }
    assert!(restored >= 11, "{restored}");
}

#[test]
fn a_view_that_was_changed_and_a_value_that_was_not_hidden_are_refused_by_both() {
    let place = Place::with_store();
    let address = place.put(&belief("alice", "tea"));
    let view = place.grain(&["disclose", &address, "--hide", "subject,object"]).done().json();
    fs::write(place.path().join("view"), view.to_string()).unwrap();
    assert_eq!(place.grain(&["check-view", "view"]).done().line(), format!("valid {address}"));
    let mut rpc = place.rpc();
    assert_eq!(rpc.refusal("check_view", &json!({ "view": view })), "ERR_NOT_FOUND");
    rpc.result("open", &json!({ "path": place.path().join("memory.grains"), "read_only": true }));
    let told = rpc.result("check_view", &json!({ "view": view }));
    let hidden = json!(["object", "subject"]);
    assert_eq!(told, json!({ "original": address, "whole": true, "hidden": hidden }));
    let part = json!({ "view": view, "revealed": { "object": "tea" } });
    let told = rpc.result("check_view", &part);
    assert_eq!((&told["whole"], &told["revealed"]), (&json!(false), &json!(["object"])));

    let mut forged = view.clone();
    forged["confidence"] = json!(0.1);
    let mut shown = view.clone();
    shown["user_id"] = json!("eve");
    let mut elsewhere = view.clone();
    elsewhere["_disclosure_of"] = json!(format!("sha256:{}", "0".repeat(64)));
    let plain: Value = serde_json::from_str(&belief("alice", "tea")).unwrap();
    for (view, code) in [
        (&forged, "ERR_INTEGRITY"),
        (&shown, "ERR_INTEGRITY"),
        (&elsewhere, "ERR_NOT_FOUND"),
        (&plain, "ERR_SCHEMA"),
    ] {
        assert_eq!(rpc.refusal("check_view", &json!({ "view": view })), code, "{view}");
    }
    let coffee = json!({ "subject": "alice", "object": "coffee" });
    for (method, revealed, code) in [
        ("check_view", &coffee, "ERR_INTEGRITY"),
        ("restore_view", &coffee, "ERR_INTEGRITY"),
        ("restore_view", &json!({ "object": "tea" }), "ERR_SCHEMA"),
        ("check_view", &json!({ "confidence": 0.9 }), "ERR_SCHEMA"),
        ("restore_view", &json!(["alice", "tea"]), "ERR_SCHEMA"),
    ] {
        let asked = json!({ "view": view, "revealed": revealed });
        assert_eq!(rpc.refusal(method, &asked), code, "{method} {revealed}");
    }
    assert_eq!(rpc.refusal("check_view", &json!({})), "-32602");
    assert_eq!(rpc.refusal("restore_view", &json!({ "view": view })), "-32602");
    drop(rpc.end());

    fs::write(place.path().join("forged"), forged.to_string()).unwrap();
    let run = place.grain(&["check-view", "forged"]);
    // Given data that differs is no damage of the store.
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_INTEGRITY"));
    fs::write(place.path().join("wrong"), coffee.to_string()).unwrap();
    let run = place.grain(&["restore-view", "view", "--revealed", "wrong"]);
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_INTEGRITY"));
    assert!(run.err.contains("a revealed value") && !run.err.contains("fetch"), "{}", run.err);
    fs::write(place.path().join("part"), r#"{"object": "tea"}"#).unwrap();
    let run = place.grain(&["check-view", "view", "--revealed", "part"]).done();
    assert_eq!(run.line(), "revealed object");
    assert_eq!(place.grain(&["restore-view", "view"]).code, 2);
}

#[test]
fn the_view_of_a_signed_grain_leads_back_to_what_was_signed() {
    let place = Place::with_store();
    fs::write(place.path().join("key"), [3; 32]).unwrap();
    let cose = place.feed(&["sign", "--key-seed", "key"], belief("alice", "tea")).done().out;
    let address = place.feed(&["put", "--format", "cose"], &cose).done().line();
    let view = place.grain(&["disclose", &address, "--hide", "subject"]).done().out;
    fs::write(place.path().join("signed"), &cose).unwrap();
    let run = place.feed(&["check-view", "-", "--original", "signed"], &view).done();
    assert_eq!(run.line(), format!("valid {address}"));
    fs::write(place.path().join("revealed"), r#"{"subject": "alice"}"#).unwrap();
    let restore = ["restore-view", "-", "--revealed", "revealed", "--json"];
    assert_eq!(place.feed(&restore, &view).done().err.trim(), address);
}
