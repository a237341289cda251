//! Proofs made and used with nothing but the program: by command and by rpc.

use std::fs;

use data_encoding::BASE64;
use grainstore::format::{OfflineResolver, cose::proof, verify_detached};
use serde_json::{Value, json};

use crate::kit::{Place, belief, head};

/// A place with a store and keys by these names; their DIDs.
fn with_keys<const N: usize>(names: [&str; N]) -> (Place, [String; N]) {
    let place = Place::with_store();
    let dids = names.map(|name| place.grain(&["keys", "new", name]).done().line());
    (place, dids)
}

/// A belief under this policy.
fn under(object: &str, policy: &Value) -> String {
    let mut grain: Value = serde_json::from_str(&belief("alice", object)).unwrap();
    grain["invalidation_policy"] = policy.clone();
    grain.to_string()
}

#[test]
fn a_quorum_of_two_comes_about_on_the_command_line_alone() {
    let (place, [a, b, _]) = with_keys(["a", "b", "other"]);
    let policy = json!({ "mode": "quorum", "threshold": 2, "authorized": [a, b] });
    let old = place.put(&under("tea", &policy));
    let prove = |old: &str, key: &str, json: &[u8]| {
        place.feed(&["prove", "supersede", old, "-", "--key-seed", key], json).done()
    };
    let supersede = |json: &[u8]| place.feed(&["supersede", &old, "-"], json);

    let first = prove(&old, "a", belief("alice", "water").as_bytes());
    assert_eq!(first.err.trim(), a);
    assert_eq!(first.json()["derived_from"], json!([old]));
    assert_eq!(supersede(&first.out).error_code(), "ERR_INVALIDATION_DENIED", "one is too few");
    let twice = prove(&old, "a", &first.out);
    assert_eq!(supersede(&twice.out).error_code(), "ERR_INVALIDATION_DENIED", "the same one");
    let third = prove(&old, "other", &first.out);
    assert_eq!(supersede(&third.out).error_code(), "ERR_INVALIDATION_DENIED", "a stranger");

    let both = prove(head(&old, 12), "b", &first.out);
    assert_eq!(both.json()["supersession_auth"].as_array().unwrap().len(), 2);
    assert_eq!(both.json()["derived_from"], json!([old]), "named once");
    let mut altered = both.json();
    altered["object"] = json!("wine");
    let refused = supersede(altered.to_string().as_bytes());
    assert_eq!(refused.error_code(), "ERR_INVALIDATION_DENIED");
    let told = format!("; a proof given does not hold: the signature is not one of {a} over these");
    assert!(refused.err.contains(&told), "{}", refused.err);

    let new = supersede(&both.out).done().line();
    let got = place.grain(&["get", &new]).done().json();
    assert_eq!(
        (&got["object"], &got["supersession_auth"]),
        (&json!("water"), &both.json()["supersession_auth"])
    );
    let entries = place.grain(&["audit", "--tail", "1", "--json"]).done().json_lines();
    assert_eq!(entries[0]["rules"], json!(["quorum"]));
}

#[test]
fn a_successor_that_is_itself_signed_is_proved_in_its_signed_form() {
    let (place, [a, b]) = with_keys(["a", "b"]);
    let policy = json!({ "mode": "quorum", "threshold": 1, "authorized": [a] });
    let old = place.put(&under("tea", &policy));
    for (flag, code) in [(&[][..], 1), (&["--signed"], 0)] {
        let prove = [&["prove", "supersede", &old, "-", "--key-seed", "a"][..], flag].concat();
        let proved = place.feed(&prove, belief("alice", "water")).done();
        let signed = place.feed(&["sign", "--key-seed", "b"], &proved.out).done();
        let run = place.feed(&["supersede", &old, "-", "--format", "cose"], &signed.out);
        assert_eq!(run.code, code, "{flag:?}: {}", run.err);
    }
    assert!(b.starts_with("did:key:"));
}

#[test]
fn each_proof_about_a_grain_serves_the_command_it_is_for() {
    let (place, [a]) = with_keys(["a"]);
    let delegated = json!({ "mode": "delegated", "authorized": [a] });
    let held = json!({ "mode": "hold", "authorized": [a] });
    for (at, (what, policy, command)) in [
        ("contradict", &delegated, &["contradict", "ADDRESS", "--reason", "x"][..]),
        ("contest", &delegated, &["set-verification", "ADDRESS", "contested", "--reason", "x"]),
        ("retract", &delegated, &["set-verification", "ADDRESS", "retracted", "--reason", "x"]),
        ("lift-hold", &held, &["lift-hold", "ADDRESS"]),
    ]
    .into_iter()
    .enumerate()
    {
        let address = place.put(&under(&format!("object {at}"), policy));
        // Elsewhere, where there is no store.
        let elsewhere = Place::empty();
        let key = fs::read(place.path().join("a")).unwrap();
        fs::write(elsewhere.path().join("a"), key).unwrap();
        let other = if what == "retract" { "contest" } else { "retract" };
        let commanded: Vec<&str> =
            command.iter().map(|word| if *word == "ADDRESS" { &address } else { *word }).collect();
        for (what, code) in [(other, 1), (what, 0)] {
            let run = elsewhere.grain(&["prove", what, &address, "--key-seed", "a"]).done();
            assert_eq!(run.err.trim(), a);
            fs::write(place.path().join("proof"), &run.out).unwrap();
            let run = place.grain(&[&commanded[..], &["--cose", "proof"]].concat());
            assert_eq!(run.code, code, "{commanded:?} with a proof to {what}: {}", run.err);
            if code == 1 {
                assert_eq!(run.error_code(), "ERR_INVALIDATION_DENIED");
                assert!(run.err.contains("; a proof given does not hold: "), "{}", run.err);
            }
        }
        let answer = place.grain(&["prove", what, &address, "--key-seed", "a", "--json"]);
        let answer = answer.done().json();
        assert_eq!((&answer["did"], &answer["address"]), (&json!(a), &json!(address)));
        let cose = BASE64.decode(answer["cose"].as_str().unwrap().as_bytes()).unwrap();
        assert_eq!(cose, elsewhere.grain(&["prove", what, &address, "--key-seed", "a"]).out);
    }
    let short = place.grain(&["prove", "retract", "01234567", "--key-seed", "a"]);
    assert_eq!(short.error_code(), "ERR_NOT_FOUND");
    let elsewhere = Place::empty().grain(&["prove", "retract", "01234567", "--key-seed", "a"]);
    assert_eq!(elsewhere.code, 1);
}

#[test]
fn a_quorum_of_two_comes_about_by_rpc_alone() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let key = |seed: u8| BASE64.encode(&[seed; 32]);
    let grain = |object: &str| serde_json::from_str::<Value>(&belief("alice", object)).unwrap();
    let about = "0".repeat(64);
    let mut did = |seed: u8, algorithm: &str| {
        let prove = json!({
            "operation": "contradict", "address": about, "key": key(seed), "algorithm": algorithm,
        });
        let answer = rpc.result("prove", &prove);
        let cose = BASE64.decode(answer["cose"].as_str().unwrap().as_bytes()).unwrap();
        let message = proof::contradict_message(&about.parse().unwrap());
        let verdict = verify_detached(&cose, &message, &OfflineResolver);
        assert_eq!(verdict.did().map(|did| json!(did.as_str())), Some(answer["did"].clone()));
        answer["did"].clone()
    };
    let dids = [did(1, "ed25519"), did(2, "p256")];
    let policy = json!({ "mode": "quorum", "threshold": 2, "authorized": dids });
    let old: Value = serde_json::from_str(&under("tea", &policy)).unwrap();
    let old = rpc.result("put", &json!({ "grain": old }))["address"].clone();
    let first = rpc.result(
        "prove",
        &json!({
            "operation": "supersede", "address": old, "grain": grain("water"), "key": key(1),
        }),
    );
    assert_eq!(first["grain"]["supersession_auth"], json!([first["cose"]]));
    let supersede = |grain: &Value| json!({ "old": old, "grain": grain });
    assert_eq!(rpc.refusal("supersede", &supersede(&first["grain"])), "ERR_INVALIDATION_DENIED");
    let both = rpc.result(
        "prove",
        &json!({
            "operation": "supersede", "address": old, "grain": first["grain"], "key": key(2),
            "algorithm": "p256",
        }),
    );
    assert_eq!(both["grain"]["supersession_auth"], json!([first["cose"], both["cose"]]));
    assert_eq!(both["did"], dids[1]);
    let explain = json!({ "grain": both["grain"], "supersede": old });
    assert_eq!(rpc.result("policy_explain", &explain)["decision"]["allowed"], true);
    rpc.result("supersede", &supersede(&both["grain"]));

    for (params, code) in [
        (json!({ "operation": "supersede", "address": old, "key": key(1) }), "-32602"),
        (
            json!({ "operation": "retract", "address": old, "grain": grain("x"), "key": key(1) }),
            "-32602",
        ),
        (json!({ "operation": "erase", "address": old, "key": key(1) }), "-32602"),
        (
            json!({ "operation": "retract", "address": "01234567", "key": key(1) }),
            "ERR_HASH_LENGTH",
        ),
        (json!({ "operation": "retract", "address": old, "key": "AAAA" }), "ERR_KEY"),
        (
            json!({ "operation": "supersede", "address": old, "grain": {}, "key": key(1) }),
            "ERR_NO_TYPE",
        ),
    ] {
        assert_eq!(rpc.refusal("prove", &params), code, "{params}");
    }
}
