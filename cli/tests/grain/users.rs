//! Users and consents from outside: `--user`, sessions of `rpc`, and what a withdrawal hides.

use serde_json::{Value, json};

use crate::kit::{Place, belief, head};

fn of(user: &str, object: &str) -> String {
    let mut grain: Value = serde_json::from_str(&belief("alice", object)).unwrap();
    grain["user_id"] = json!(user);
    grain.to_string()
}

#[test]
fn a_command_for_a_user_sees_and_writes_no_other() {
    let place = Place::with_store();
    let (anns, bobs) = (place.put(&of("ann", "tea")), place.put(&of("bob", "milk")));
    let nobodys = place.put(&belief("alice", "water"));
    for (address, code) in [(&anns, 0), (&bobs, 1), (&nobodys, 0)] {
        let run = place.grain(&["get", address, "--user", "ann"]);
        assert_eq!(run.code, code, "{}", run.err);
        assert!(code == 0 || run.error_code() == "ERR_NOT_FOUND");
        assert!(!run.err.contains("milk"), "{}", run.err);
    }
    let run = place.grain(&["get", head(&bobs, 9), "--user", "ann"]);
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_NOT_FOUND"));
    let told = |arguments: &[&str]| {
        let arguments = [arguments, &["--user", "ann"]].concat();
        place.grain(&arguments).done().text().to_owned()
    };
    for arguments in [
        &["recall", "alice", "--json"][..],
        &["recall", "--text", "milk", "--json"],
        &["cal", "RECALL | LIMIT 10"],
        &["history", "--subject", "alice", "--relation", "prefers", "--json"],
        &["audit", "--tail", "20", "--json"],
    ] {
        let told = told(arguments);
        assert!(!told.contains("milk") && !told.contains(&bobs), "{arguments:?}: {told}");
    }
    for power in [
        &["stats"][..],
        &["reindex"],
        &["compact"],
        &["remove-vectors", "m"],
        &["backup", "copy"],
        &["audit", "--checkpoint"],
        &["sweep"],
    ] {
        let run = place.grain(&[power, &["--user", "ann"]].concat());
        assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_ACCESS"), "{power:?}");
    }
    let run = place.grain(&["keys", "rotate", "new.key", "--user", "ann", "--namespace", "team"]);
    assert_eq!(run.code, 2, "{}", run.err);
    // Options of every command may come first.
    for both in [&["--user", "ann", "keys", "rotate", "new.key"][..], &["keys", "rotate"]] {
        let run = place.grain(both);
        assert_eq!((run.code, run.error_code().as_str()), (2, "ERR_SCHEMA"), "{}", run.err);
    }
    let run = place.grain(&["--user", "ann", "keys", "rotate"]);
    assert_eq!(run.error_code(), "ERR_KEY", "it is not encrypted");
    let run = place.grain(&["keys", "rotate", "new.key", "--namespace", "team"]);
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_ACCESS"));
    assert!(told(&["recall", "alice", "--json"]).contains("water"));
    let exported = place.grain(&["export", "ann.mg", "--user", "ann", "--json"]).done();
    assert_eq!(exported.json()["exported"], 2);
    let run = place.feed(&["put", "--user", "ann"], of("bob", "wine"));
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_ACCESS"));
    let run = place.feed(&["supersede", &bobs, "-", "--user", "ann"], of("ann", "wine"));
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_NOT_FOUND"));
}

#[test]
fn a_call_for_others_than_the_session_is_a_refusal_in_the_audit_log() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let mine = json!({ "namespace": "team", "user_id": "ann", "actor": "did:web:bot" });
    for method in ["cal", "cal_stream", "prepare"] {
        for part in [json!({ "user_id": "bob" }), json!({ "namespace": "other" })] {
            let before = rpc.result("audit", &json!({}))["entries"].as_array().unwrap().len();
            rpc.result("session", &mine);
            let mut params = json!({ "query": "RECALL | COUNT" });
            params.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
            for _ in 0..3 {
                assert_eq!(rpc.refusal(method, &params), "ERR_ACCESS", "{method} {part}");
            }
            rpc.result("session", &json!({ "namespace": null }));
            let entries = rpc.result("audit", &json!({}))["entries"].clone();
            let told = entries.as_array().unwrap();
            // Equal ones of a minute are one entry, whatever the method.
            let is_first = method == "cal" && part["user_id"] == "bob";
            assert!(told.len() - before <= usize::from(is_first), "{method} {part}: {told:?}");
            let refused: Vec<_> =
                told.iter().filter(|entry| entry["decision"] == "refused").collect();
            assert_eq!(refused.len(), 1, "{method} {part}: {told:?}");
            assert_eq!(
                (&refused[0]["operation"], &refused[0]["rules"]),
                (&json!("cal"), &json!(["outside_session"]))
            );
            assert_ne!(refused[0]["actor"], "operator");
        }
    }
    assert_eq!(rpc.end().1, 0);
}

#[test]
fn a_session_for_a_user_is_made_no_wider_by_a_request() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let grain =
        |user: &str, object: &str| -> Value { serde_json::from_str(&of(user, object)).unwrap() };
    rpc.result("put", &json!({ "grain": grain("bob", "milk") }));
    rpc.result("session", &json!({ "namespace": null, "user_id": "ann" }));
    let others = json!({ "query": "RECALL | COUNT", "user_id": "bob" });
    assert_eq!(rpc.refusal("cal", &others), "ERR_ACCESS");
    let own = json!({ "query": "RECALL | COUNT", "user_id": "ann" });
    assert_eq!(rpc.result("cal", &own)["count"], 0);
    assert_eq!(rpc.refusal("put", &json!({ "grain": grain("bob", "wine") })), "ERR_ACCESS");
    let copy = place.path().join("copy");
    assert_eq!(rpc.refusal("backup", &json!({ "path": copy })), "ERR_ACCESS");
    rpc.result("session", &json!({ "namespace": null }));
    assert_eq!(rpc.result("cal", &others)["count"], 1);
}

#[test]
fn what_was_withdrawn_is_gone_at_once_and_get_says_why() {
    let place = Place::with_store();
    let mut consent = json!({
        "type": "consent", "subject_did": "did:web:a", "grantee_did": "did:web:b",
        "scope": ["store"], "is_withdrawal": false, "created_at": 1_768_471_200_000_i64,
    });
    let basis = place.put(&consent.to_string());
    let mut resting: Value = serde_json::from_str(&belief("alice", "tea")).unwrap();
    resting["processing_basis"] = json!(basis);
    let address = place.put(&resting.to_string());
    place.grain(&["get", &address]).done();
    consent["is_withdrawal"] = json!(true);
    consent["prior_consent"] = json!(basis);
    place.put(&consent.to_string());
    let run = place.grain(&["get", &address, "--json"]);
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_WITHDRAWN"));
    assert!(run.err.contains("was withdrawn") && run.err.contains("anew"), "{}", run.err);
    assert_eq!(place.grain(&["cal", "RECALL beliefs | COUNT"]).done().line(), "0");
    let run = place.feed(&["put"], resting.to_string().replace("tea", "milk"));
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_WITHDRAWN"));
}
