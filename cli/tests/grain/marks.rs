//! Contradiction, verification, holds and `policy explain`, by command and by rpc.

use data_encoding::BASE64;
use grainstore::ContentAddress;
use grainstore::format::cose::{SigningKey, proof, sign_detached};
use serde_json::{Value, json};

use crate::kit::{Place, belief, head};

/// A belief under this policy.
fn under(policy: &Value) -> Value {
    let mut grain: Value = serde_json::from_str(&belief("alice", "tea")).unwrap();
    grain["invalidation_policy"] = policy.clone();
    grain
}

#[test]
fn each_command_changes_the_standing_and_tells_it() {
    let place = Place::with_store();
    let address = place.put(&belief("alice", "tea"));
    for (arguments, standing) in [
        (&["hold", &address, "--reason", "case 7"][..], "held"),
        (&["lift-hold", "--address", &address], "lifted"),
        (&["set-verification", &address, "contested", "--reason", "she says so"], "contested"),
        (&["contradict", head(&address, 8), "--reason", "measured"], "contradicted"),
    ] {
        let line = place.grain(arguments).done().line();
        assert_eq!(line, format!("{standing} {address}"), "{arguments:?}");
    }
    let state = place.grain(&["get", &address, "--json"]).done().json()["state"].clone();
    assert_eq!((&state["contradicted"], &state["held"]), (&json!(true), &json!(false)));
    assert_eq!(state["verification_status"], "contested");
    assert!(state["system_valid_to"].is_i64());
    let entries = place.grain(&["audit", "--json"]).done().json_lines();
    let told: Vec<_> = entries.iter().map(|entry| entry["operation"].as_str().unwrap()).collect();
    assert_eq!(told, ["create", "put", "hold", "lift_hold", "set_verification", "contradict"]);
    assert_eq!(
        (&entries[4]["status"], &entries[4]["rules"]),
        (&json!("contested"), &json!(["open"]))
    );
}

#[test]
fn refusals_have_their_codes() {
    let place = Place::with_store();
    let locked = place.put(&under(&json!({ "mode": "locked" })).to_string());
    for (arguments, code, exit) in [
        (&["contradict", &locked, "--reason", "x"][..], "ERR_INVALIDATION_DENIED", 1),
        (&["lift-hold", &locked], "ERR_CONFLICT", 1),
        (&["set-verification", &locked, "doubtful", "--reason", "x"], "ERR_SCHEMA", 1),
        (&["hold", &locked, "--reason", " "], "ERR_EMPTY", 1),
        (&["hold", &"0".repeat(64), "--reason", "x"], "ERR_NOT_FOUND", 1),
    ] {
        let run = place.grain(arguments);
        assert_eq!((run.code, run.error_code().as_str()), (exit, code), "{arguments:?}");
    }
    for arguments in [
        &["contradict", &locked][..],
        &["hold", &locked],
        &["hold", "--reason", "x"],
        &["set-verification", &locked, "--reason", "x"],
    ] {
        assert_eq!(place.grain(arguments).code, 2, "{arguments:?}");
    }
}

#[test]
fn a_policy_is_explained_and_a_supersession_tried_without_doing_it() {
    let place = Place::with_store();
    let old = under(&json!({ "mode": "soft_locked", "scope": "lineage" }));
    let address = place.put(&old.to_string());
    let entries = || place.grain(&["audit", "--json"]).done().json_lines().len();
    let before = entries();
    let told = place.feed(&["policy", "explain", "-"], old.to_string()).done();
    assert!(told.text().starts_with("mode soft_locked, scope lineage\n"), "{}", told.text());

    let new = belief("alice", "coffee");
    let explain = ["policy", "explain", "-", "--json", "--supersede", &address];
    let refused = place.feed(&explain, &new).done().json();
    assert_eq!(refused["policy"]["mode"], "open");
    let decision = &refused["decision"];
    assert_eq!(
        (&decision["allowed"], &decision["code"]),
        (&json!(false), &json!("ERR_INVALIDATION_DENIED"))
    );
    assert_eq!(decision["rules"][0]["rule"], "soft_locked_without_justification");

    let justified = [&explain[..], &["--justification", "she moved"]].concat();
    let decision = place.feed(&justified, &new).done().json()["decision"].clone();
    assert_eq!((&decision["allowed"], &decision["needs_review"]), (&json!(true), &json!(true)));
    assert_eq!(entries(), before, "nothing is recorded");
    let state = place.grain(&["get", &address, "--json"]).done().json()["state"].clone();
    assert_eq!(state["superseded_by"], Value::Null);
}

#[test]
fn rpc_takes_the_signature_a_policy_asks_for() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let key = SigningKey::ed25519_from_seed(&[1; 32]);
    let policy = json!({ "mode": "hold", "authorized": [key.did().to_string()] });
    let put = rpc.result("put", &json!({ "grain": under(&policy) }));
    let address = put["address"].as_str().unwrap().to_owned();
    let about: ContentAddress = address.parse().unwrap();
    let signed = |message: &[u8]| BASE64.encode(&sign_detached(message, &key).unwrap());

    let held = |rpc: &mut crate::kit::Rpc| {
        rpc.result("get", &json!({ "address": address }))["state"]["held"].clone()
    };
    assert_eq!(held(&mut rpc), json!(true));
    let lift =
        |cose: Option<String>| json!({ "address": address, "reason": "settled", "cose": cose });
    assert_eq!(rpc.refusal("lift_hold", &lift(None)), "ERR_INVALIDATION_DENIED");
    let other = signed(&proof::retract(&about));
    assert_eq!(rpc.refusal("lift_hold", &lift(Some(other))), "ERR_INVALIDATION_DENIED");
    assert_eq!(rpc.result("lift_hold", &lift(Some(signed(&proof::lift_hold(&about))))), json!({}));
    assert_eq!(held(&mut rpc), json!(false));

    let status = json!({ "address": address, "status": "doubtful", "reason": "x" });
    assert_eq!(rpc.refusal("set_verification", &status), "ERR_SCHEMA");
    let retract = json!({ "address": address, "status": "retracted", "reason": "x" });
    assert_eq!(rpc.result("set_verification", &retract), json!({}));
    let verify = json!({ "address": address, "status": "verified", "reason": "x" });
    assert_eq!(rpc.refusal("set_verification", &verify), "ERR_CONFLICT");
    let found = rpc.result("query", &json!({ "where": { "subject": "alice" } }));
    assert_eq!(found["total"], 0, "what is retracted is shown on request alone");
}

#[test]
fn a_hold_that_names_nobody_is_lifted_by_the_operator_that_was_named() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let grain: Value = serde_json::from_str(&belief("alice", "tea")).unwrap();
    let address = rpc.result("put", &json!({ "grain": grain }))["address"].clone();
    let hold = json!({ "address": address, "reason": "case 7" });
    for (operator, actor, lifted) in [
        (None, Some("did:web:agent"), true),
        (Some("did:web:boss"), Some("did:web:agent"), false),
        (Some("did:web:boss"), Some("did:web:boss"), true),
        (Some("did:web:boss"), None, true),
    ] {
        let session = json!({ "actor": actor });
        let mut open = json!({ "path": "rpc.grains", "session": session });
        if let Some(operator) = operator {
            open["operator"] = operator.into();
        }
        rpc.result("open", &open);
        rpc.result("hold", &hold);
        match lifted {
            true => assert_eq!(rpc.result("lift_hold", &hold), json!({})),
            false => assert_eq!(rpc.refusal("lift_hold", &hold), "ERR_INVALIDATION_DENIED"),
        }
    }
    assert_eq!(rpc.end(), (String::new(), 0));
    let store = ["--store", "rpc.grains", "--actor", "did:web:agent"];
    let address = address.as_str().unwrap();
    let run = |more: &[&str]| place.grain(&[&store[..], more].concat());
    run(&["hold", address, "--reason", "case 8"]).done();
    let refused = run(&["--operator", "did:web:boss", "lift-hold", address, "--json"]);
    assert_eq!(refused.error_code(), "ERR_INVALIDATION_DENIED");
    run(&["--operator", "did:web:agent", "lift-hold", address]).done();
}
