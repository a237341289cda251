//! What is said to do about a mistake leads out of it.

use std::fs;

use data_encoding::BASE64;
use serde_json::{Value, json};

use crate::kit::{Place, belief};

/// The hint of a run that failed with this code.
#[track_caller]
fn hint(run: &crate::kit::Run, code: &str) -> String {
    assert_eq!((run.code, run.error_code().as_str()), (1, code), "{}", run.err);
    let (_, hint) = run.err.split_once("hint: ").unwrap();
    hint.trim().to_owned()
}

#[test]
fn what_is_no_grain_is_told_as_what_it_looks_like() {
    let place = Place::with_store();
    fs::write(place.path().join("key"), [3; 32]).unwrap();
    let json = belief("alice", "tea");
    let cose = place.feed(&["sign", "--key-seed", "key"], &json).done().out;
    let blob = place.feed(&["encode"], &json).done().out;
    place.put(&json);
    place.grain(&["export", "all.mg"]).done();
    let container = fs::read(place.path().join("all.mg")).unwrap();
    let about = "0".repeat(64);
    let proof = place.grain(&["prove", "retract", &about, "--key-seed", "key"]).done().out;
    let cut = &cose[..cose.len() - 1];
    let untagged = &cose[1..];
    let none: &[u8] = b"";
    let tagged = json.replacen('{', r#"{"tags": ["x"], "#, 1);
    for (arguments, input, code, told) in [
        (&["put"][..], &cose[..], "ERR_CORRUPT", "looks like a COSE_Sign1: --format cose"),
        (&["put"], untagged, "ERR_CORRUPT", "looks like a COSE_Sign1: --format cose"),
        (&["put"], &blob, "ERR_CORRUPT", "looks like a raw blob: --format mg"),
        (&["put"], &container, "ERR_CORRUPT", "`grain import` takes it"),
        (&["put"], b"{\"type\": \"belief\",}", "ERR_CORRUPT", "mend the JSON"),
        (&["put"], b"{\"a\": 1, \"a\": 1}", "ERR_CORRUPT", "keep one of the two"),
        (&["put"], tagged.as_bytes(), "ERR_SCHEMA", "structural_tags for tags"),
        (&["supersede", &about, "-"], none, "ERR_CORRUPT", "give a grain as one JSON object"),
        (&["encode"], b" \n", "ERR_CORRUPT", "give a grain as one JSON object"),
        (&["put", "--format", "mg"], json.as_bytes(), "ERR_VERSION", "--format json"),
        (&["put", "--format", "mg"], &cose, "ERR_VERSION", "--format cose"),
        (&["put", "--format", "mg"], &container, "ERR_VERSION", "import it"),
        (&["put", "--format", "cose"], cut, "ERR_CORRUPT", "were not cut"),
        (&["put", "--format", "cose"], none, "ERR_CORRUPT", "were not cut"),
        (&["put", "--format", "cose"], json.as_bytes(), "ERR_CORRUPT", "begins with the bytes"),
        (&["verify-signature"], &proof, "ERR_CORRUPT", "this is a proof, not a signed grain"),
        (&["put", "--format", "cose"], &proof, "ERR_CORRUPT", "this is a proof"),
        (&["policy", "explain", "-"], &cose, "ERR_CORRUPT", "--format cose"),
    ] {
        let told_is = hint(&place.feed(arguments, input), code);
        assert!(told_is.contains(told), "{arguments:?}: {told_is}");
        assert!(!told_is.contains("canonical encoder"), "{arguments:?}: {told_is}");
    }
    let run = place.feed(&["put"], "\n").done();
    assert_eq!((run.text(), run.err.trim()), ("", "there was no grain in it"));
    let mut rpc = place.rpc_with_store();
    for (params, told) in [
        (json!({ "blob": BASE64.encode(&cose) }), "looks like a COSE_Sign1"),
        (json!({ "cose": BASE64.encode(cut) }), "were not cut"),
    ] {
        let response = rpc.call("put", &params);
        let hint = response["error"]["data"]["hint"].as_str().unwrap();
        assert!(hint.contains(told), "{params}: {hint}");
    }
}

#[test]
fn a_place_or_a_key_that_is_wrong_is_told_with_what_would_be_right() {
    let place = Place::with_store();
    fs::write(place.path().join("zero"), [0; 32]).unwrap();
    let sign = ["sign", "--algorithm", "p256", "--key-seed", "zero"];
    let told = hint(&place.feed(&sign, belief("a", "b")), "ERR_KEY");
    assert!(told.contains("make one at random"), "{told}");
    let told = hint(&place.grain(&["export", "no/such/place.mg"]), "ERR_IO");
    assert!(told.starts_with("make the directory"), "{told}");
    let told = hint(&place.grain(&["export", "a.mg", "--where", ""]), "CAL-E014");
    assert!(told.starts_with("write one, such as subject = "), "{told}");
    let other = Place::with_store();
    let checkpoint = other.grain(&["audit", "--checkpoint"]).done().out;
    fs::write(place.path().join("checkpoint"), checkpoint).unwrap();
    let told = hint(&place.grain(&["verify", "--checkpoint", "checkpoint"]), "ERR_CONFLICT");
    assert!(told.contains("the store it was made of"), "{told}");
}

#[test]
fn a_hold_that_is_not_lifted_is_told_with_who_lifts_it() {
    let place = Place::with_store();
    let did = place.grain(&["keys", "new", "key"]).done().line();
    let put = |policy: Value| {
        let mut grain: Value = serde_json::from_str(&belief("alice", "tea")).unwrap();
        grain["invalidation_policy"] = policy;
        place.put(&grain.to_string())
    };
    let of_operator = put(json!({ "mode": "hold" }));
    let of_signer = put(json!({ "mode": "hold", "authorized": [did] }));
    for (address, told) in
        [(&of_operator, "in a session without an actor"), (&of_signer, "`grain prove lift-hold`")]
    {
        let bob = ["--operator", "did:web:host", "--actor", "did:web:bob"];
        let run = place.grain(&[&bob[..], &["lift-hold", address]].concat());
        let hint = hint(&run, "ERR_INVALIDATION_DENIED");
        assert!(hint.contains(told), "{hint}");
    }
}

#[test]
fn what_is_told_about_opening_fits_who_opened() {
    let place = Place::with_store();
    let mut rpc = place.rpc_with_store();
    let path = place.path().join("rpc.grains");
    let store = ["--store", path.to_str().unwrap()];
    let alone = ["stats", "--wait-ms", "0", "--exclusive"];
    let busy = place.grain(&[&store[..], &alone].concat());
    assert!(busy.code == 3 && busy.err.contains("(--wait-ms)"), "{}", busy.err);
    let timeless =
        r#"{"type": "belief", "subject": "a", "relation": "b", "object": "c", "confidence": 1}"#;
    let told = hint(&place.feed(&["put"], timeless), "ERR_SCHEMA");
    assert!(told.starts_with("say when it was made"), "{told}");
    let program = |command: Value, dimension: u64| {
        let embedder = json!({ "command": command, "model": "m", "dimension": dimension });
        json!({ "path": path, "embedder": embedder })
    };
    for (params, code, told) in [
        (json!({ "path": "nowhere" }), "ERR_NOT_FOUND", "create: true"),
        (program(json!([]), 2), "ERR_SCHEMA", "\"command\": ["),
        (program(json!(["cat"]), 0), "ERR_SCHEMA", "how many numbers"),
    ] {
        let response = rpc.call("open", &params);
        let data = &response["error"]["data"];
        assert_eq!(data["code"], code, "{response}");
        assert!(data["hint"].as_str().unwrap().contains(told), "{response}");
    }
}

#[test]
fn what_is_wrong_with_a_key_is_told_with_where_to_name_one_and_leaves_nothing_behind() {
    let place = Place::empty();
    let path = |name: &str| place.path().join(name);
    let init = |key: &str| place.grain(&["init", "--encrypt", "--key-file", key]);
    fs::write(path("short"), [1; 5]).unwrap();
    for (key, code, told) in [
        (".", "ERR_KEY", "is a directory"),
        ("no/such/k", "ERR_IO", "no/such/k"),
        ("short", "ERR_KEY", "the key file short"),
    ] {
        let run = init(key);
        assert_eq!((run.code, run.error_code().as_str()), (1, code), "{}", run.err);
        assert!(run.err.contains(told), "{}", run.err);
        assert!(!path("memory.grains").exists(), "{key}");
    }
    fs::write(path("taken"), "no directory").unwrap();
    let run = place.grain(&["--store", "taken", "init", "--encrypt", "--key-file", "new"]);
    assert!(run.code == 1 && !path("new").exists(), "{}", run.err);
    init("key").done();
    // A copy has the rights of a key file.
    fs::copy(path("key"), path("other")).unwrap();
    fs::write(path("other"), [9; 32]).unwrap();
    for arguments in [&["stats"][..], &["stats", "--key-file", "other"]] {
        let told = hint(&place.grain(arguments), "ERR_KEY");
        assert!(told.contains("--key-file") && told.contains("GRAIN_KEY_FILE"), "{told}");
    }
    let told = hint(&place.grain(&["stats", "--key-file", "."]), "ERR_KEY");
    assert!(!told.contains("chmod"), "{told}");
    let with_key = |arguments: &[&str]| place.grain(&[&["--key-file", "key"], arguments].concat());
    let told = with_key(&["--user", "ann", "recall", "--text", "moch*"]);
    let told = hint(&told, "ERR_LIMIT");
    assert!(told.contains("whole words"), "{told}");
    let figures = with_key(&["stats", "--json"]).done().json();
    assert_eq!((&figures["encrypted"], &figures["preset"]), (&json!(true), &json!("open")));

    let plain = Place::with_store();
    assert_eq!(plain.grain(&["keys", "rotate", "left.key"]).error_code(), "ERR_KEY");
    assert!(!plain.path().join("left.key").exists());
    let figures = plain.grain(&["stats"]).done();
    assert!(figures.text().lines().any(|line| line.split_whitespace().eq(["encrypted", "false"])));
    let told = hint(&plain.grain(&["policy", "show", "nonsense"]), "ERR_IO");
    assert!(told.contains("gdpr") && told.contains("lgpd"), "{told}");
}

#[test]
fn a_template_that_ends_with_the_command_is_said_to() {
    let place = Place::with_store();
    let define = "DEFINE TEMPLATE lines HEADER {x}";
    let gone = place.grain(&["cal", define]).done();
    assert!(gone.err.contains("--evolve"), "{}", gone.err);
    let kept = place.grain(&["cal", "--evolve", define]).done();
    assert_eq!(kept.err, "");
    assert!(place.grain(&["cal", "DESCRIBE templates"]).done().text().contains("lines"));
}
