//! Signatures and disclosed views through the program: commands and rpc.

use std::fs;

use data_encoding::{BASE64, HEXLOWER};
use grainstore_vectors::{cose_rows, disclose_rows};
use serde_json::{Value, json};

use crate::kit::{Place, belief, head};

/// The key of the tests.
const SEED: [u8; 32] = [3; 32];

fn with_key() -> Place {
    let place = Place::with_store();
    fs::write(place.path().join("key"), SEED).unwrap();
    place
}

#[test]
fn a_signed_grain_goes_through_a_store_and_verifies_when_it_comes_out() {
    let place = with_key();
    let run = place.feed(&["sign", "--key-seed", "key"], belief("alice", "tea")).done();
    let (address, signer) = run.err.trim().split_once('\n').unwrap();
    let (cose, address, signer) = (run.out, address.to_owned(), signer.to_owned());
    let verified = place.feed(&["verify-signature"], &cose).done().line();
    let did = verified.strip_prefix("valid ").unwrap();
    assert!(did.starts_with("did:key:z6Mk"));
    assert_eq!(did, signer, "told when it was signed");
    assert_eq!(place.feed(&["put", "--format", "cose"], &cose).done().line(), address);
    let got = place.grain(&["get", &address, "--json"]).done().json();
    assert_eq!(got["cose"], BASE64.encode(&cose));
    assert_eq!(got["signature"], json!({ "verdict": "valid", "did": did }));
    // As it came: with its signature.
    let whole = place.grain(&["get", &address, "--format", "mg"]).done().out;
    assert_eq!(whole, cose);
    assert_eq!(place.feed(&["verify-signature"], &whole).done().line(), verified);
    let hex = place.grain(&["get", &address, "--format", "hex"]).done().line();
    assert_eq!(hex, HEXLOWER.encode(&cose));
    let blob = BASE64.decode(got["blob"].as_str().unwrap().as_bytes()).unwrap();
    let run = place.feed(&["put", "--format", "mg"], &blob);
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_SIGNED_MISMATCH"));
    let bare = place.put(&belief("alice", "tea"));
    assert_ne!(bare, address, "the signed flag is part of what is addressed");
    let bytes = place.grain(&["get", &bare, "--format", "mg"]).done().out;
    let got = place.grain(&["get", &bare, "--json"]).done().json();
    assert_eq!(BASE64.encode(&bytes), got["blob"], "an unsigned one is its blob");
    assert_eq!((&got["cose"], &got["signature"]), (&Value::Null, &Value::Null));

    let next = json!({
        "type": "belief", "subject": "alice", "relation": "prefers", "object": "coffee",
        "confidence": 0.9, "created_at": 1_768_471_200_001_i64, "derived_from": [address],
    });
    let next = place.feed(&["sign", "--key-seed", "key", "--iat", "7"], next.to_string()).done();
    let run = place.feed(&["supersede", &address, "-", "--format", "cose"], &next.out);
    assert_eq!(Some(run.done().line().as_str()), next.err.lines().next());
}

#[test]
fn what_is_signed_may_be_a_blob_and_the_key_of_either_kind() {
    let place = with_key();
    let blob = place.feed(&["encode"], belief("a", "b")).done().out;
    for (algorithm, start) in [("ed25519", "did:key:z6Mk"), ("p256", "did:key:zDn")] {
        let arguments =
            ["sign", "--key-seed", "key", "--algorithm", algorithm, "--json", "--iat", "7"];
        let answer = place.feed(&arguments, &blob).done().json();
        assert!(answer["did"].as_str().unwrap().starts_with(start));
        let of_json = place.feed(&arguments, belief("a", "b")).done().json();
        assert_eq!(of_json, answer);
        let cose = BASE64.decode(answer["cose"].as_str().unwrap().as_bytes()).unwrap();
        let verdict = place.feed(&["verify-signature", "--json"], cose).done().json();
        let expected =
            json!({ "verdict": "valid", "did": answer["did"], "address": answer["address"] });
        assert_eq!(verdict, expected);
    }
}

#[test]
fn every_envelope_of_the_vectors_has_its_verdict_in_both() {
    let place = Place::empty();
    let mut rpc = place.rpc();
    for row in cose_rows().unwrap() {
        let response = rpc.call("verify_signature", &json!({ "cose": BASE64.encode(&row.cose) }));
        if let Some(code) = &row.code {
            assert_eq!(response["error"]["data"]["code"], *code, "{}", row.name);
            continue;
        }
        let answer = &response["result"];
        assert_eq!(answer["verdict"].as_str(), row.verdict.as_deref(), "{}", row.name);
        assert_eq!(answer["did"].as_str(), row.did.as_deref(), "{}", row.name);
        assert_eq!(answer["reason"].is_string(), row.did.is_none(), "{}", row.name);
    }
    for name in ["an altered payload", "a signer whose key lies elsewhere"] {
        let row = cose_rows().unwrap().into_iter().find(|row| row.name == name).unwrap();
        let run = place.feed(&["verify-signature"], &row.cose);
        assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_SIGNATURE"));
        assert_eq!(Some(run.line()), row.verdict);
    }
}

#[test]
fn rpc_stores_signed_grains_alone_in_batches_and_as_successors() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let grain = |object: &str| serde_json::from_str::<Value>(&belief("alice", object)).unwrap();
    let mut sign = |grain: Value| {
        let key = BASE64.encode(&SEED);
        rpc.result("clock", &json!({ "now_ms": 1_737_000_000_500_i64 }));
        rpc.result("sign", &json!({ "grain": grain, "key": key }))
    };
    let tea = sign(grain("tea"));
    assert_eq!(tea, sign(grain("tea")), "at the same time");
    let water = sign(grain("water"));
    let mut next = grain("coffee");
    next["derived_from"] = json!([tea["address"]]);
    let next = sign(next);
    let answer = rpc.result("put", &json!({ "cose": tea["cose"] }));
    assert_eq!(answer, json!({ "address": tea["address"], "duplicate": false }));
    let batch = rpc.result("put_batch", &json!({ "cose": [tea["cose"], water["cose"]] }));
    assert_eq!(batch["results"][0]["duplicate"], true);
    assert_eq!(batch["results"][1]["address"], water["address"]);
    let superseded = json!({ "old": tea["address"], "cose": next["cose"] });
    assert_eq!(rpc.result("supersede", &superseded)["address"], next["address"]);
    for signed in [&tea, &water, &next] {
        let got = rpc.result("get", &json!({ "address": signed["address"] }));
        assert_eq!(got["cose"], signed["cose"]);
        assert_eq!(got["signature"], json!({ "verdict": "valid", "did": signed["did"] }));
    }
    for row in cose_rows().unwrap() {
        let code = match row.verdict.as_deref() {
            Some("invalid") => "ERR_SIGNATURE",
            Some(_) => continue,
            None => row.code.as_deref().unwrap(),
        };
        let cose = BASE64.encode(&row.cose);
        assert_eq!(rpc.refusal("put", &json!({ "cose": cose })), code, "{}", row.name);
        assert_eq!(rpc.refusal("put_batch", &json!({ "cose": [cose] })), code, "{}", row.name);
    }
    assert_eq!(rpc.result("verify", &json!({ "full": true }))["ok"], true);
    assert_eq!(rpc.result("stats", &json!({}))["rows"]["signatures"], 3);
}

#[test]
fn a_signature_that_nobody_here_can_verify_is_kept_as_such() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let mut kept = 0;
    for row in cose_rows().unwrap() {
        if row.verdict.as_deref() != Some("unverifiable") {
            continue;
        }
        let cose = BASE64.encode(&row.cose);
        let put = rpc.result("put", &json!({ "cose": cose }));
        let got = rpc.result("get", &json!({ "address": put["address"] }));
        if put["duplicate"] == false {
            assert_eq!(got["cose"], cose, "{}", row.name);
        }
        assert_eq!(got["signature"]["verdict"], "unverifiable", "{}", row.name);
        kept += 1;
    }
    assert_eq!(kept, 6);
}

#[test]
fn views_of_the_vectors_come_out_of_both_to_the_byte() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let mut through_rpc = 0;
    for row in disclose_rows().unwrap().iter().filter(|row| !row.hide.is_empty()) {
        let view: Value = serde_json::from_str(row.view()).unwrap();
        let hide = row.hide.join(",");
        let run = place.feed(&["disclose", "--hide", &hide], &row.blob).done();
        assert_eq!(run.json(), view, "{}", row.name);
        let run = place.feed(&["disclose", "--hide", &hide, "--format", "mg"], &row.blob).done();
        assert_eq!(run.out, row.view_blob, "{}", row.name);
        if row.blob[1] & 1 == 1 {
            continue;
        }
        let put = rpc.result("put", &json!({ "blob": BASE64.encode(&row.blob) }));
        let grain: Value = serde_json::from_str(row.grain()).unwrap();
        for params in [json!({ "address": put["address"] }), json!({ "grain": grain })] {
            let mut params = params;
            params["hide"] = json!(row.hide);
            let answer = rpc.result("disclose", &params);
            let mut expected = json!({ "grain": view, "blob": BASE64.encode(&row.view_blob) });
            let absent: Vec<_> = row
                .hide
                .iter()
                .filter(|name| view["_elided"].get(name.as_str()).is_none())
                .collect();
            if !absent.is_empty() {
                expected["absent"] = json!(absent);
            }
            assert_eq!(answer, expected, "{}", row.name);
            assert_eq!(rpc.refusal("put", &json!({ "grain": answer["grain"] })), "ERR_SCHEMA");
            assert_eq!(rpc.refusal("put", &json!({ "blob": answer["blob"] })), "ERR_SCHEMA");
        }
        through_rpc += 1;
    }
    assert_eq!(through_rpc, 11);
}

#[test]
fn a_stored_grain_is_disclosed_by_its_address_and_some_fields_are_not() {
    let place = Place::with_store();
    let address = place.put(&belief("alice", "tea"));
    let run = place.grain(&["disclose", head(&address, 10), "--hide", "subject,object"]).done();
    let view = run.json();
    assert_eq!(view["_disclosure_of"], format!("sha256:{address}"));
    assert_eq!((&view["subject"], &view["object"]), (&Value::Null, &Value::Null));
    let run = place.grain(&["disclose", &address, "--hide", "confidence"]);
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_SCHEMA"));
    assert_eq!(place.grain(&["disclose", &address]).code, 2, "nothing to hide");
    let mut rpc = place.rpc();
    let both = json!({ "address": address, "grain": {}, "hide": [] });
    assert_eq!(rpc.refusal("disclose", &both), "-32602");
    assert_eq!(rpc.refusal("disclose", &json!({ "hide": ["subject"] })), "-32602");
}

#[test]
fn a_new_key_is_for_its_owner_alone_and_never_written_over() {
    let place = Place::with_store();
    let did = place.grain(&["keys", "new", "key"]).done().line();
    let key = fs::read(place.path().join("key")).unwrap();
    assert_eq!(key.len(), 32);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(place.path().join("key")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let run = place.grain(&["keys", "new", "key"]);
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_CONFLICT"));
    assert_eq!(fs::read(place.path().join("key")).unwrap(), key);
    let other = place.grain(&["keys", "new", "other", "--json"]).done().json();
    assert_ne!(other["did"], did, "each is new");
    let signed = place.feed(&["sign", "--key-seed", "key", "--json"], belief("a", "b")).done();
    assert_eq!(signed.json()["did"], did);
    let run = place.grain(&["keys", "new", "no/such/place"]);
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_IO"));
}

#[test]
fn a_key_tells_its_did_for_either_algorithm() {
    let place = Place::empty();
    for (algorithm, start) in [("ed25519", "did:key:z6Mk"), ("p256", "did:key:zDn")] {
        let made = place.grain(&["keys", "new", algorithm, "--algorithm", algorithm]).done().line();
        assert!(made.starts_with(start), "{made}");
        let show = ["keys", "show", algorithm, "--algorithm", algorithm];
        assert_eq!(place.grain(&show).done().line(), made);
        let shown = place.grain(&[&show[..], &["--json"]].concat()).done().json();
        assert_eq!(shown, json!({ "did": made, "file": algorithm }));
        let sign = ["sign", "--key-seed", algorithm, "--algorithm", algorithm, "--json"];
        assert_eq!(place.feed(&sign, belief("a", "b")).done().json()["did"], made);
    }
    let other = place.grain(&["keys", "show", "p256"]).done().line();
    assert!(other.starts_with("did:key:z6Mk"), "the default is ed25519");
}

#[test]
fn a_key_of_a_wrong_size_is_named_with_its_size() {
    let place = with_key();
    for (name, size, told) in [
        ("short", 31, "short: a key has 32 bytes, and this has 31"),
        ("empty", 0, "empty: a key has 32 bytes, and this has 0"),
        ("long", 2000, "long holds more than 1024 bytes"),
    ] {
        fs::write(place.path().join(name), vec![1; size]).unwrap();
        for arguments in [
            &["keys", "show", name][..],
            &["sign", "--key-seed", name],
            &["prove", "retract", &"0".repeat(64), "--key-seed", name],
        ] {
            let run = place.feed(arguments, belief("a", "b"));
            assert_eq!(run.code, 1);
            assert!(run.err.contains(told), "{arguments:?}: {}", run.err);
            assert!(
                run.err.contains("hint: ") && run.err.contains("grain keys new"),
                "{}",
                run.err
            );
        }
    }
}

#[test]
fn a_field_that_is_not_there_to_be_hidden_is_told() {
    let place = Place::with_store();
    let address = place.put(&belief("alice", "tea"));
    let hide = ["disclose", &address, "--hide", "subject,user_id,context"];
    let run = place.grain(&hide).done();
    assert_eq!(run.err.trim(), "not hidden, since the grain has none: user_id, context");
    let as_json = place.grain(&[&hide[..], &["--json"]].concat()).done();
    let told: Value = serde_json::from_str(&as_json.err).unwrap();
    assert_eq!(told, json!({ "absent": ["user_id", "context"] }));
    assert_eq!(as_json.json(), run.json(), "the view alone is on stdout");
    assert_eq!(place.grain(&["disclose", &address, "--hide", "subject"]).done().err, "");
    let mut rpc = place.rpc();
    let grain: Value = serde_json::from_str(&belief("alice", "tea")).unwrap();
    let answer = rpc.result("disclose", &json!({ "grain": grain, "hide": ["user_id", "object"] }));
    assert_eq!(answer["absent"], json!(["user_id"]));
    let answer = rpc.result("disclose", &json!({ "grain": grain, "hide": ["object"] }));
    assert_eq!(answer.get("absent"), None);
}

#[test]
fn what_cannot_be_signed_is_refused() {
    let place = with_key();
    fs::write(place.path().join("short"), [1; 31]).unwrap();
    fs::write(place.path().join("zero"), [0; 32]).unwrap();
    let sign = |arguments: &[&str], stdin: &str| {
        let run = place.feed(&[&["sign", "--key-seed"], arguments].concat(), stdin);
        assert_eq!((run.code, run.out.len()), (1, 0));
        run.error_code()
    };
    let good = belief("a", "b");
    for (arguments, stdin, code) in [
        (&["short"][..], good.as_str(), "ERR_KEY"),
        (&["none"], &good, "ERR_IO"),
        (&["zero", "--algorithm", "p256"], &good, "ERR_KEY"),
        (&["key"], "{}", "ERR_NO_TYPE"),
        (&["key"], "", "ERR_CORRUPT"),
        (&["key"], "\u{1}", "ERR_TOO_SHORT"),
    ] {
        assert_eq!(sign(arguments, stdin), code, "{arguments:?}");
    }
    let mut rpc = place.rpc();
    let grain: Value = serde_json::from_str(&good).unwrap();
    let key = BASE64.encode(&SEED);
    for (params, code) in [
        (json!({ "grain": grain, "key": BASE64.encode(&SEED[1..]) }), "ERR_KEY"),
        (json!({ "grain": {}, "key": key }), "ERR_NO_TYPE"),
        (json!({ "key": key }), "-32602"),
        (json!({ "grain": grain, "blob": "AQ==", "key": key }), "-32602"),
        (json!({ "grain": grain }), "-32602"),
        (json!({ "grain": grain, "key": key, "algorithm": "none" }), "-32602"),
    ] {
        assert_eq!(rpc.refusal("sign", &params), code, "{params}");
    }
}
