//! What a host sets at a store or for a grain: by rpc and by the command.

use std::fs;

use data_encoding::BASE64;
use serde_json::{Value, json};

use crate::kit::{Place, belief};

const SEED: [u8; 32] = [3; 32];

fn belief_of(more: &Value) -> Value {
    let mut grain: Value = serde_json::from_str(&belief("alice", "tea")).unwrap();
    grain.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    grain
}

/// The bits of the sensitivity in the header of a decoded blob.
fn sensitivity(decoded: &Value) -> u64 {
    decoded["header"]["flags"].as_u64().unwrap() >> 6
}

#[test]
fn a_locked_grain_takes_an_authorized_signature_where_the_host_says_so() {
    let place = Place::with_store();
    fs::write(place.path().join("key"), SEED).unwrap();
    let did = place.grain(&["keys", "show", "key"]).done().line();
    let policy = json!({ "mode": "locked", "authorized": [did] });
    let locked = |object: &str| {
        belief_of(&json!({ "object": object, "invalidation_policy": policy })).to_string()
    };
    let address = place.put(&locked("tea"));
    let proof = place.grain(&["prove", "contradict", &address, "--key-seed", "key"]).done().out;
    fs::write(place.path().join("proof"), proof).unwrap();
    let contradict = ["contradict", &address, "--reason", "no longer", "--cose", "proof"];
    let run = place.grain(&contradict);
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_INVALIDATION_DENIED"));
    let accepting = "--locked-accepts-authorized-signature";
    place.grain(&[&contradict[..], &[accepting]].concat()).done();
    let run = place.grain(&["get", &address, "--json"]).done();
    assert_eq!(run.json()["state"]["contradicted"], true, "{}", run.text());

    let mut rpc = place.rpc();
    let path = place.path().join("rpc.grains");
    let mut open = json!({ "path": path, "create": true });
    rpc.result("open", &open);
    let grain: Value = serde_json::from_str(&locked("coffee")).unwrap();
    let address = rpc.result("put", &json!({ "grain": grain }))["address"].clone();
    let key = BASE64.encode(&SEED);
    let asked = json!({ "operation": "contradict", "address": address, "key": key });
    let proof = rpc.result("prove", &asked)["cose"].clone();
    let ended = json!({ "address": address, "reason": "no longer", "cose": proof });
    assert_eq!(rpc.refusal("contradict", &ended), "ERR_INVALIDATION_DENIED");
    open["locked_accepts_authorized_signature"] = json!(true);
    rpc.result("open", &open);
    let other =
        json!({ "operation": "contradict", "address": address, "key": BASE64.encode(&[4; 32]) });
    let other = rpc.result("prove", &other)["cose"].clone();
    let forged = json!({ "address": address, "reason": "no longer", "cose": other });
    assert_eq!(rpc.refusal("contradict", &forged), "ERR_INVALIDATION_DENIED");
    rpc.result("contradict", &ended);
    open["locked_accepts_authorized_signature"] = json!("yes");
    assert_eq!(rpc.refusal("open", &open), "-32602");
}

fn reading(kind: &str) -> Value {
    json!({ "type": "observation", "observer_id": "o-1", "observer_type": kind, "subject": "hall",
        "object": format!("warm by {kind}"), "created_at": 1 })
}

#[test]
fn observations_of_a_domain_that_is_not_searched_have_no_words() {
    let place = Place::empty();
    let domain =
        ["--observer-domain", "physical=thermometer,barometer", "--unsearched", "physical"];
    let spoken = ["--observer-domain", "minds=critic", "--language", "notes=de"];
    place.grain(&[&["init"][..], &domain, &spoken].concat()).done();
    for kind in ["thermometer", "critic", "unheard"] {
        place.put(&reading(kind).to_string());
    }
    let found = |arguments: &[&str]| {
        let answer = place.grain(&[&["recall", "--json"], arguments].concat()).done().json();
        answer["results"].as_array().unwrap().len()
    };
    assert_eq!((found(&["--text", "warm"]), found(&["hall"])), (2, 3));
    let stats = place.grain(&["stats", "--json"]).done().json();
    let expected = json!({
        "minds": { "searched": ["critic"], "unsearched": [] },
        "physical": { "searched": [], "unsearched": ["barometer", "thermometer"] },
    });
    assert_eq!(stats["observer_domains"], expected);
    place.grain(&["reindex"]).done();
    assert_eq!(place.grain(&["stats", "--json"]).done().json()["observer_domains"], expected);
    let nobody = ["--actor", "did:x:a", "--operator", "did:x:b"];
    let run = place.grain(&[&["reindex", "--language", "fr"][..], &nobody].concat());
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_ACCESS"));
    assert_eq!(found(&["--text", "warm"]), 2, "a refused command changes nothing");
    place.grain(&["reindex", "--language", "und"]).done();
    assert_eq!(found(&["--text", "warm"]), 3, "others replace what the store had");
    for wrong in [
        &["--observer-domain", "physical"][..],
        &["--unsearched", "x"],
        &["--observer-domain", "=a"],
    ] {
        assert_eq!(place.grain(&[&["reindex"], wrong].concat()).code, 2, "{wrong:?}");
    }
    let run = place.grain(&["reindex", "--language", "klingon"]);
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_SCHEMA"));

    let mut rpc = place.rpc();
    let path = place.path().join("rpc.grains");
    let types = ["thermometer", "barometer"];
    let domains = json!([{ "domain": "physical", "observer_types": types, "searched": false },
        { "domain": "minds", "observer_types": ["critic"] }]);
    rpc.result("open", &json!({ "path": path, "create": true, "observer_domains": domains }));
    for kind in ["thermometer", "critic", "unheard"] {
        rpc.result("put", &json!({ "grain": reading(kind) }));
    }
    let answer = rpc.result("query", &json!({ "text": "warm" }));
    assert_eq!(answer["results"].as_array().unwrap().len(), 2);
    assert_eq!(rpc.result("stats", &json!({}))["observer_domains"], expected);
    let wrong = json!({ "path": path, "observer_domains": [{ "domain": "physical" }] });
    assert_eq!(rpc.refusal("open", &wrong), "-32602");
}

#[test]
fn grains_are_encoded_and_decoded_within_a_device_profile() {
    let place = Place::empty();
    let mut rpc = place.rpc();
    let long = belief_of(&json!({ "object": "x".repeat(40_000) }));
    let tagged = belief_of(&json!({ "structural_tags": ["a"] }));
    for (grain, profile, code) in [
        (&long, "extended", None),
        (&long, "standard", Some("ERR_TOO_LARGE")),
        (&tagged, "standard", None),
        (&tagged, "lightweight", Some("ERR_SCHEMA")),
        (&belief_of(&json!({})), "lightweight", None),
    ] {
        let asked = json!({ "grain": grain, "profile": profile });
        let arguments = ["encode", "--profile", profile];
        let run = place.feed(&arguments, grain.to_string());
        // What may be decoded within the profile is what may be encoded.
        let blob = rpc.result("encode", &json!({ "grain": grain }))["blob"].clone();
        let decoded = json!({ "blob": blob, "profile": profile });
        let bytes = BASE64.decode(blob.as_str().unwrap().as_bytes()).unwrap();
        let read = place.feed(&["decode", "--profile", profile], bytes);
        match code {
            Some(code) => {
                assert_eq!(rpc.refusal("encode", &asked), code, "{profile}");
                assert_eq!(rpc.refusal("decode", &decoded), code, "{profile}");
                assert_eq!((run.code, run.error_code().as_str()), (1, code), "{profile}");
                assert_eq!((read.code, read.error_code().as_str()), (1, code), "{profile}");
            }
            None => {
                assert_eq!(rpc.result("encode", &asked)["blob"], blob);
                assert_eq!(rpc.result("decode", &decoded)["grain"], *grain);
                assert_eq!(BASE64.encode(&run.done().out), blob);
                assert_eq!(read.done().json()["grain"], *grain);
            }
        }
    }
    assert_eq!(rpc.refusal("encode", &json!({ "grain": tagged, "profile": "watch" })), "-32602");
    assert_eq!(place.feed(&["encode", "--profile", "watch"], tagged.to_string()).code, 2);
}

#[test]
fn a_writer_may_call_a_grain_more_sensitive_than_its_tags_and_not_less() {
    let place = Place::with_store();
    let mut rpc = place.rpc_with_store();
    let plain = belief_of(&json!({}));
    let personal = belief_of(&json!({ "structural_tags": ["pii:email"] }));
    for (at, level) in ["public", "internal", "pii", "phi"].into_iter().enumerate() {
        let at = u64::try_from(at).unwrap();
        let encoded = rpc.result("encode", &json!({ "grain": plain, "sensitivity": level }));
        let decoded = rpc.result("decode", &json!({ "blob": encoded["blob"] }));
        assert_eq!(sensitivity(&decoded), at, "{level}");
        let put = rpc.result("put", &json!({ "grain": plain, "sensitivity": level }));
        assert_eq!(put["address"], encoded["address"]);
        let batch = rpc.result("put_batch", &json!({ "grains": [plain], "sensitivity": level }));
        assert_eq!(batch["results"][0], json!({ "address": put["address"], "duplicate": true }));
        let blob = place.feed(&["encode", "--sensitivity", level], plain.to_string()).done().out;
        assert_eq!(BASE64.encode(&blob), encoded["blob"]);
        let run = place.feed(&["put", "--sensitivity", level], plain.to_string()).done();
        assert_eq!(json!(run.line()), put["address"]);
    }
    let too_low = json!({ "grain": personal, "sensitivity": "internal" });
    for method in ["encode", "put"] {
        assert_eq!(rpc.refusal(method, &too_low), "ERR_SENSITIVITY_MISMATCH", "{method}");
    }
    for command in ["encode", "put"] {
        let run = place.feed(&[command, "--sensitivity", "internal"], personal.to_string());
        assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_SENSITIVITY_MISMATCH"));
    }
    let blob = rpc.result("encode", &json!({ "grain": plain }))["blob"].clone();
    let bytes = [("put", json!({ "blob": blob })), ("put_batch", json!({ "blobs": [blob] }))];
    for (method, mut params) in bytes {
        params["sensitivity"] = json!("phi");
        assert_eq!(rpc.refusal(method, &params), "-32602", "bytes have theirs");
    }
    assert_eq!(place.grain(&["put", "--format", "mg", "--sensitivity", "phi"]).code, 2);
}
