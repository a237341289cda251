//! Contradiction, verification, holds and `policy explain`, by command and by rpc.

use data_encoding::BASE64;
use grainstore::ContentAddress;
use grainstore::format::cose::{SigningKey, proof, sign_detached};
use serde_json::{Value, json};

use crate::kit::{Place, Rpc, belief, head};

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
fn a_stored_grain_is_explained_in_the_state_it_is_in() {
    let place = Place::with_store();
    let explain = |address: &str| {
        place.grain(&["policy", "explain", address, "--json"]).done().json()["policy"].clone()
    };
    let open = place.put(&belief("alice", "tea"));
    let policy = explain(head(&open, 10));
    assert_eq!(
        (&policy["open_to"], &policy["demands"]),
        (&json!("anyone"), &json!(["anyone may replace it"]))
    );
    place.grain(&["hold", &open, "--reason", "case 7"]).done();
    assert_eq!(
        (&explain(&open)["open_to"], &explain(&open)["holds"]),
        (&json!("nobody"), &json!(true))
    );
    let held = place.put(&under(&json!({ "mode": "hold" })).to_string());
    assert_eq!(explain(&held)["open_to"], "nobody");
    place.grain(&["lift-hold", &held]).done();
    assert_eq!(explain(&held)["open_to"], "anyone");
    let new = place.feed(&["supersede", &held, "-"], belief("alice", "water")).done().line();
    let told = explain(&held)["demands"].to_string();
    assert!(told.contains(&format!("superseded already, by {new}")), "{told}");
    assert_eq!(place.grain(&["policy", "explain", &"0".repeat(64)]).error_code(), "ERR_NOT_FOUND");
}

#[test]
fn a_signed_successor_is_tried_under_the_policies_of_both_grains() {
    let place = Place::with_store();
    let signer = place.grain(&["keys", "new", "key"]).done().line();
    place.grain(&["keys", "new", "other"]).done();
    let old = under(&json!({ "mode": "delegated", "authorized": [signer] }));
    let old = place.put(&old.to_string());
    let mut new = under(&json!({ "mode": "locked" }));
    new["derived_from"] = json!([old]);
    for (key, told) in [("key", "would be done"), ("other", "would be refused")] {
        let sign = ["sign", "--key-seed", key, "--iat", "7"];
        let cose = place.feed(&sign, new.to_string()).done().out;
        let explain = ["policy", "explain", "-", "--format", "cose", "--supersede", &old];
        let run = place.feed(&explain, &cose).done();
        let lines: Vec<_> = run.text().lines().collect();
        assert_eq!(lines[0], "policy of the new grain: mode locked, scope grain");
        let of_old = format!("policy of {old}: mode delegated, scope grain");
        assert!(lines.contains(&of_old.as_str()), "{lines:?}");
        assert!(lines.iter().any(|line| line.contains(told)), "{key}: {lines:?}");
        let answer = place.feed(&[&explain[..], &["--json"]].concat(), &cose).done().json();
        let mut rpc = place.rpc();
        rpc.result("open", &json!({ "path": place.path().join("memory.grains") }));
        let params = json!({ "cose": BASE64.encode(&cose), "supersede": old });
        assert_eq!(rpc.result("policy_explain", &params), answer);
        assert_eq!(
            (&answer["policy"]["mode"], &answer["old_policy"]["mode"]),
            (&json!("locked"), &json!("delegated"))
        );
        assert_eq!(answer["decision"]["allowed"], key == "key");
        let count = |rpc: &mut Rpc| {
            rpc.result("get", &json!({ "address": old }))["state"]["access_count"].clone()
        };
        let before = count(&mut rpc).as_u64().unwrap();
        let stored = rpc.result("policy_explain", &json!({ "address": old }));
        assert_eq!(count(&mut rpc), before + 1, "explaining is no access: that is the get itself");
        assert_eq!((&stored["policy"], &stored["decision"]), (&answer["old_policy"], &Value::Null));
        for params in [
            json!({}),
            json!({ "address": old, "grain": new }),
            json!({ "grain": new, "cose": "" }),
            json!({ "address": old, "justification": "x" }),
        ] {
            assert_eq!(rpc.refusal("policy_explain", &params), "-32602", "{params}");
        }
    }
}

#[test]
fn a_policy_is_shown_in_words_and_as_json() {
    let place = Place::with_store();
    let show = |policy: &Value| {
        let grain = under(policy).to_string();
        let text = place.feed(&["policy", "show", "-"], &grain).done().text().to_owned();
        let json = place.feed(&["policy", "show", "-", "--json"], &grain).done().json();
        (text, json)
    };
    for (policy, lines, json) in [
        (
            json!({ "mode": "locked", "scope": "lineage" }),
            vec!["mode        locked", "scope       lineage", "open to     nobody"],
            json!({ "mode": "locked", "fails_closed": false, "open_to": "nobody" }),
        ),
        (
            json!({ "mode": "quorum", "threshold": 1, "authorized": ["did:web:a"] }),
            vec!["authorized  did:web:a", "threshold   1", "open to     quorum"],
            json!({ "threshold": 1, "authorized": ["did:web:a"], "fails_closed": false }),
        ),
        (
            json!({ "mode": "quorum", "authorized": ["did:web:a"] }),
            vec![
                "mode        quorum, which is not understood and counts as locked",
                "warning     ",
            ],
            json!({ "fails_closed": true, "open_to": "nobody" }),
        ),
        (
            json!({ "mode": "timed", "locked_until": 4_000_000_000_u64, "fallback_mode": "open" }),
            vec!["until       epoch second 4000000000", "fallback    open", "then to     anyone"],
            json!({ "locked_until": 4_000_000_000_u64, "fallback_mode": "open", "then_open_to": "anyone" }),
        ),
        (
            json!({ "mode": "timed", "locked_until": 5, "fallback_mode": "ajar" }),
            vec!["mode        timed, which is not", "fallback    unknown"],
            json!({ "fails_closed": true, "then_open_to": "nobody" }),
        ),
        (
            json!({ "mode": "ajar" }),
            vec![
                "mode        unknown, which is not understood and counts as locked",
                "warning     ",
            ],
            json!({ "mode": "unknown", "fails_closed": true }),
        ),
        (
            json!({ "mode": "open", "authorized": 7 }),
            vec!["mode        malformed, which is not"],
            json!({ "mode": "malformed", "fails_closed": true, "open_to": "nobody" }),
        ),
    ] {
        let (text, shown) = show(&policy);
        for line in lines {
            assert!(text.lines().any(|told| told.starts_with(line)), "{policy}: {line}: {text}");
        }
        for (name, value) in json.as_object().unwrap() {
            assert_eq!(&shown[name], value, "{policy}: {name}");
        }
    }
    // A stored grain as it stands: held now, and free once the hold is lifted.
    let address = place.put(&under(&json!({ "mode": "hold" })).to_string());
    let stored = || place.grain(&["policy", "show", &address, "--json"]).done().json();
    assert_eq!((&stored()["holds"], &stored()["open_to"]), (&json!(true), &json!("nobody")));
    place.grain(&["lift-hold", &address, "--reason", "settled"]).done();
    assert_eq!((&stored()["holds"], &stored()["open_to"]), (&json!(false), &json!("anyone")));
    let missing = place.grain(&["policy", "show", &"0".repeat(64)]);
    assert_eq!((missing.code, missing.error_code().as_str()), (1, "ERR_NOT_FOUND"));
}

#[test]
fn a_policy_that_nobody_means_is_told_where_it_is_stored() {
    let place = Place::with_store();
    let slip = json!({ "mode": "quorum", "threshold": 2, "authorized": ["did:web:a"] });
    let bad = under(&slip).to_string();
    let good = belief("alice", "water");
    let run = place.feed(&["put"], format!("{good}\n{bad}\n")).done();
    assert_eq!(run.text().lines().count(), 2);
    assert!(run.err.starts_with("warning: line 2: its quorum wants 2 signers"), "{}", run.err);
    assert_eq!(run.err.lines().count(), 1);
    let answers = place.feed(&["put", "--json"], format!("{good}\n{bad}\n")).done();
    assert_eq!(answers.err, "", "told in the answer");
    let answers = answers.json_lines();
    assert_eq!(answers[0].get("warnings"), None);
    let warnings = answers[1]["warnings"].clone();
    assert_eq!(warnings.as_array().unwrap().len(), 1);
    let blob = place.feed(&["encode"], &bad).done().out;
    let run = place.feed(&["put", "--format", "mg", "--json"], &blob).done();
    assert_eq!(run.json()["warnings"], warnings);
    let run = place.feed(&["put", "--same-fact", "keep", "--json"], &bad).done();
    assert_eq!(run.json()["warnings"], warnings);

    let old = place.put(&good);
    let run = place.feed(&["supersede", &old, "-"], &bad).done();
    assert!(run.err.starts_with("warning: its quorum"), "{}", run.err);
    let mut rpc = place.rpc_with_store();
    let (good, bad): (Value, Value) =
        (serde_json::from_str(&good).unwrap(), serde_json::from_str(&bad).unwrap());
    let old = rpc.result("put", &json!({ "grain": good }));
    assert_eq!(old.get("warnings"), None);
    assert_eq!(rpc.result("put", &json!({ "grain": bad }))["warnings"], warnings);
    let many = rpc.result("put_batch", &json!({ "grains": vec![bad.clone(); 300] }));
    let told = many["results"].as_array().unwrap().iter();
    assert_eq!(told.filter(|put| put["warnings"] == warnings).count(), 256);
    let mut next = bad;
    next["object"] = json!("wine");
    let supersede = json!({ "old": old["address"], "grain": next });
    assert_eq!(rpc.result("supersede", &supersede)["warnings"], warnings);
}

#[test]
fn a_successor_that_leaves_its_user_is_told() {
    let place = Place::with_store();
    let of = |drink: &str, user: Option<&str>| {
        let mut grain: Value = serde_json::from_str(&belief("ann", drink)).unwrap();
        if let Some(user) = user {
            grain["user_id"] = json!(user);
        }
        grain
    };
    let old = place.put(&of("tea", Some("ann")).to_string());
    let next = of("coffee", None);
    let run = place.feed(&["--user", "ann", "supersede", &old, "-"], next.to_string()).done();
    assert!(run.err.starts_with("warning: what it replaces belongs to a user"), "{}", run.err);
    let old = place.put(&of("milk", Some("ann")).to_string());
    let run = place.feed(&["supersede", &old, "-", "--json"], of("water", None).to_string());
    assert_eq!(run.done().json()["warnings"].as_array().unwrap().len(), 1);
    let old = place.put(&of("wine", Some("ann")).to_string());
    let run = place.feed(&["supersede", &old, "-"], of("beer", Some("ann")).to_string()).done();
    assert_eq!(run.err, "");

    let mut rpc = place.rpc_with_store();
    let old = rpc.result("put", &json!({ "grain": of("juice", Some("ann")) }));
    let params = json!({ "old": old["address"], "grain": of("cider", None) });
    let told = rpc.result("supersede", &params);
    assert!(told["warnings"][0].as_str().unwrap().contains("nobody's"), "{told}");
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

    let held =
        |rpc: &mut Rpc| rpc.result("get", &json!({ "address": address }))["state"]["held"].clone();
    assert_eq!(held(&mut rpc), json!(true));
    let lift =
        |cose: Option<String>| json!({ "address": address, "reason": "settled", "cose": cose });
    assert_eq!(rpc.refusal("lift_hold", &lift(None)), "ERR_INVALIDATION_DENIED");
    let other = signed(&proof::retract_message(&about));
    assert_eq!(rpc.refusal("lift_hold", &lift(Some(other))), "ERR_INVALIDATION_DENIED");
    assert_eq!(
        rpc.result("lift_hold", &lift(Some(signed(&proof::lift_hold_message(&about))))),
        json!({})
    );
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

#[test]
fn a_session_limited_to_a_user_or_a_namespace_lifts_no_hold() {
    let place = Place::with_store();
    let mut grain: Value = serde_json::from_str(&belief("alice", "tea")).unwrap();
    grain["user_id"] = json!("ann");
    let address = place.put(&grain.to_string());
    place.grain(&["hold", &address, "--reason", "case 7"]).done();
    let lift = |more: &[&str]| place.grain(&[more, &["lift-hold", &address]].concat());
    let user = ["--user", "ann"];
    let run = lift(&user);
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_ACCESS"));
    assert!(run.err.contains("without a namespace and a user"), "{}", run.err);
    let boss = ["--operator", "did:web:boss", "--actor", "did:web:boss"];
    for limit in [&["--user", "ann"][..], &["--namespace", "shared"]] {
        for actor in [&boss[..], &[]] {
            assert_eq!(lift(&[limit, actor].concat()).error_code(), "ERR_ACCESS", "{limit:?}");
        }
    }
    lift(&boss).done();
    place.grain(&["hold", &address, "--reason", "case 8"]).done();
    lift(&[]).done();

    let mut rpc = place.rpc();
    let session = json!({ "user_id": "ann" });
    rpc.result("open", &json!({ "path": "memory.grains", "session": session }));
    let held = json!({ "address": address, "reason": "case 9" });
    rpc.result("hold", &held);
    assert_eq!(rpc.refusal("lift_hold", &held), "ERR_ACCESS");
    rpc.result("session", &json!({ "namespace": null }));
    assert_eq!(rpc.result("lift_hold", &held), json!({}));
}

#[test]
fn a_grain_that_others_protect_is_explained_by_them() {
    let place = Place::with_store();
    let mut source = under(&json!({ "mode": "locked", "scope": "subtree" }));
    source["subject"] = json!("source");
    let source = place.put(&source.to_string());
    let mut derived = under(&json!({ "mode": "open" }));
    derived["derived_from"] = json!([source]);
    let derived = place.put(&derived.to_string());
    let refused = place.feed(&["supersede", &derived, "-"], belief("alice", "water"));
    assert_eq!(refused.error_code(), "ERR_INVALIDATION_DENIED");
    let answer = place.grain(&["policy", "explain", &derived, "--json"]).done().json();
    let policy = &answer["policy"];
    assert_eq!((&policy["mode"], &policy["open_to"]), (&json!("open"), &json!("nobody")));
    let by = &policy["protected_by"][0];
    assert_eq!(
        (&by["address"], &by["link"], &by["mode"], &by["scope"]),
        (&json!(source), &json!("ancestor"), &json!("locked"), &json!("subtree"))
    );
    let lines = place.grain(&["policy", "explain", &derived]).done().text().to_owned();
    assert!(lines.contains(&source) && !lines.contains("anyone"), "{lines}");
    let mut rpc = place.rpc();
    rpc.result("open", &json!({ "path": place.path().join("memory.grains") }));
    assert_eq!(rpc.result("policy_explain", &json!({ "address": derived })), answer);
}
