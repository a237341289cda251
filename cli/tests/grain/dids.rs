//! Signatures of did:web: keys from a file of DID documents, or by a program; by rpc and by the command.

use std::fs;

use data_encoding::BASE64;
use grainstore_vectors::cose_rows;
use serde_json::{Value, json};

use crate::kit::{Place, Rpc};

const SIGNER: &str = "did:web:example.com";
/// The key of the signer of the vectors.
const MULTIBASE: &str = "z6MkehRgf7yJbgaGfYsdoAsKdBPE3dj2CYhowQdcjqSJgvVd";
const X: &str = "A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg";

/// A grain that the signer signed.
fn signed() -> Vec<u8> {
    let mut rows = cose_rows().unwrap().into_iter();
    rows.find(|row| row.name == "a signer whose key lies elsewhere").unwrap().cose
}

fn document(did: &str, key: &Value) -> Value {
    let mut method = json!({ "id": format!("{did}#1"), "type": "Multikey", "controller": did });
    method.as_object_mut().unwrap().extend(key.as_object().unwrap().clone());
    json!({ "@context": "https://www.w3.org/ns/did/v1", "id": did, "verificationMethod": [method],
        "assertionMethod": ["#1"] })
}

fn multibase() -> Value {
    json!({ "publicKeyMultibase": MULTIBASE })
}

/// The verdict of the command, with these options.
fn verdict(place: &Place, options: &[&str]) -> String {
    let run = place.feed(&[&["verify-signature"][..], options].concat(), signed());
    assert_eq!(run.code == 0, run.text().starts_with("valid "), "{}", run.err);
    run.line()
}

/// The verdict of rpc, with a store that is opened so.
fn verdict_by(rpc: &mut Rpc, place: &Place, more: &Value) -> Value {
    let mut open = json!({ "path": place.path().join("rpc.grains"), "create": true });
    open.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    rpc.result("open", &open);
    let cose = BASE64.encode(&signed());
    let verdict = rpc.result("verify_signature", &json!({ "cose": cose }))["verdict"].clone();
    let put = rpc.result("put", &json!({ "cose": cose }));
    let got = rpc.result("get", &json!({ "address": put["address"] }));
    assert_eq!(got["signature"]["verdict"], verdict, "the store says the same");
    verdict
}

#[test]
fn keys_come_from_a_file_of_documents() {
    let place = Place::empty();
    let mut rpc = place.rpc();
    let file = place.path().join("dids.json");
    let jwk = json!({ "publicKeyJwk": { "kty": "OKP", "crv": "Ed25519", "x": X } });
    let other = json!({ "publicKeyMultibase": "z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK" });
    let mut purposeless = document(SIGNER, &multibase());
    purposeless["assertionMethod"] = json!([]);
    let elsewhere = document("did:web:example.org", &multibase());
    for (documents, expected) in [
        (document(SIGNER, &multibase()), "valid"),
        (document(SIGNER, &jwk), "valid"),
        (json!([elsewhere, document(SIGNER, &multibase())]), "valid"),
        (json!({ "didDocument": document(SIGNER, &multibase()) }), "valid"),
        (elsewhere, "unverifiable"),
        (purposeless, "unverifiable"),
        (document(SIGNER, &other), "invalid"),
        (json!([]), "unverifiable"),
    ] {
        fs::write(&file, documents.to_string()).unwrap();
        let told = verdict(&place, &["--did-documents", "dids.json"]);
        assert_eq!(told.split(' ').next(), Some(expected), "{documents}");
        if expected != "invalid" {
            fs::remove_dir_all(place.path().join("rpc.grains")).ok();
            let asked = json!({ "did_documents": file });
            assert_eq!(verdict_by(&mut rpc, &place, &asked), expected, "{documents}");
        }
        rpc.result("close", &json!({}));
    }
    assert_eq!(verdict(&place, &[]), "unverifiable");
    let twice = json!([document(SIGNER, &multibase()), document(SIGNER, &multibase())]);
    for (text, code) in [
        ("", "ERR_SCHEMA"),
        ("{}", "ERR_SCHEMA"),
        (r#"{"id": "example.com"}"#, "ERR_SCHEMA"),
        (&twice.to_string(), "ERR_SCHEMA"),
        (r#"{"id": "did:web:a", "id": "did:web:b"}"#, "ERR_SCHEMA"),
        (r#"{"id": "did:web:a", "assertionMethod": [7]}"#, "ERR_SCHEMA"),
        (r#"[{"id": "did:web:a"}, 7]"#, "ERR_SCHEMA"),
    ] {
        fs::write(&file, text).unwrap();
        let run = place.feed(&["verify-signature", "--did-documents", "dids.json"], signed());
        assert_eq!((run.code, run.error_code().as_str()), (1, code), "{text}");
        assert!(!run.err.contains("enum") && !run.err.contains("variant"), "{}", run.err);
        let open = json!({ "path": "x.grains", "create": true, "did_documents": file });
        assert_eq!(rpc.refusal("open", &open), code, "{text}");
    }
    fs::remove_file(&file).unwrap();
    let run = place.feed(&["verify-signature", "--did-documents", "dids.json"], signed());
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_IO"));
}

/// Writes a program, in a process of its own: a file this one has open to write cannot be run meanwhile.
#[cfg(unix)]
fn program(place: &Place, name: &str, script: &str) {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let mut child = Command::new("sh")
        .args(["-c", "cat > \"$1\" && chmod +x \"$1\"", "sh", name])
        .current_dir(place.path())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

#[cfg(unix)]
#[test]
fn keys_come_from_a_program_that_is_run_with_the_did() {
    let place = Place::with_store();
    let good = document(SIGNER, &multibase()).to_string();
    let told = format!("#!/bin/sh\necho \"$#:$1\" >> asked\n[ \"$1\" = {SIGNER} ] && cat good\n");
    fs::write(place.path().join("good"), &good).unwrap();
    let wrong = document("did:web:example.org", &multibase()).to_string();
    fs::write(place.path().join("wrong"), wrong).unwrap();
    for (name, script, expected, why) in [
        ("good.sh", told.as_str(), "valid", ""),
        (
            "failing.sh",
            "#!/bin/sh\ncat good; exit 3\n",
            "unverifiable",
            "failing.sh ended with exit status: 3",
        ),
        ("other.sh", "#!/bin/sh\ncat wrong\n", "unverifiable", "the document of another DID"),
        ("silent.sh", "#!/bin/sh\n", "unverifiable", "no DID document"),
        ("endless.sh", "#!/bin/sh\ncat good; yes\n", "unverifiable", "more than 262144 bytes"),
        (
            "keyless.sh",
            "#!/bin/sh\necho '{\"id\": \"did:web:example.com\"}'\n",
            "unverifiable",
            "no key",
        ),
    ] {
        program(&place, name, script);
        let resolver = format!("./{name}");
        let run = verdict(&place, &["--did-resolver", &resolver]);
        assert_eq!(run.split(' ').next(), Some(expected), "{name}");
        let told = place.feed(&["verify-signature", "--did-resolver", &resolver], signed()).err;
        assert!(told.contains(why), "{name}: {told}");
    }
    let asked = || fs::read_to_string(place.path().join("asked")).unwrap();
    assert_eq!(asked(), format!("1:{SIGNER}\n").repeat(2), "the DID is its one argument");
    place.grain(&["stats", "--did-resolver", "./good.sh"]).done();
    assert_eq!(asked().lines().count(), 2, "nothing is run before a key is wanted");

    let mut rpc = place.rpc();
    let resolver = json!({ "did_resolver": { "command": ["./good.sh"] } });
    assert_eq!(verdict_by(&mut rpc, &place, &resolver), "valid");
    assert_eq!(asked().lines().count(), 3, "an answer is used again");
    fs::remove_dir_all(place.path().join("rpc.grains")).unwrap();
    // A program that does not end is ended.
    program(&place, "slow.sh", "#!/bin/sh\ncat good\nexec sleep 1000\n");
    let slow = json!({ "did_resolver": { "command": ["./slow.sh"], "deadline_ms": 300 } });
    assert_eq!(verdict_by(&mut rpc, &place, &slow), "unverifiable");
    for (resolver, code) in [
        (json!({ "command": [] }), "-32602"),
        (json!({}), "-32602"),
        (json!({ "command": ["./good.sh"], "deadline_ms": 0 }), "ERR_SCHEMA"),
        (json!({ "command": ["./good.sh"], "deadline_ms": 600_001 }), "ERR_SCHEMA"),
    ] {
        let open = json!({ "path": "x.grains", "create": true, "did_resolver": resolver });
        assert_eq!(rpc.refusal("open", &open), code, "{resolver}");
    }
}

#[cfg(unix)]
#[test]
fn a_program_that_cannot_run_is_refused_at_open() {
    let place = Place::with_store();
    let mut rpc = place.rpc();
    fs::write(place.path().join("plain"), "no program").unwrap();
    for (name, code) in [
        ("./no-such-program", "ERR_NOT_FOUND"),
        ("no-such-program-on-the-path", "ERR_NOT_FOUND"),
        ("/nonexistent/program", "ERR_NOT_FOUND"),
        ("./plain", "ERR_IO"),
        (".", "ERR_IO"),
    ] {
        for command in ["stats", "verify-signature"] {
            let run = place.feed(&[command, "--did-resolver", name], signed());
            assert_eq!((run.code, run.error_code().as_str()), (1, code), "{command} {name}");
            assert!(run.err.contains(name), "{}", run.err);
        }
        let open = json!({ "path": place.path().join("memory.grains"), "did_resolver": { "command": [name] } });
        assert_eq!(rpc.refusal("open", &open), code, "{name}");
    }
    // One that is there is not run before a key is wanted.
    place.grain(&["stats", "--did-resolver", "false"]).done();
    let told = place.feed(&["verify-signature", "--did-resolver", "false"], signed());
    assert!(told.err.contains("false ended with exit status: 1"), "{}", told.err);
    program(&place, "slow.sh", "#!/bin/sh\nexec sleep 1000\n");
    let slow = json!({ "path": place.path().join("memory.grains"),
        "did_resolver": { "command": ["./slow.sh"], "deadline_ms": 100 } });
    rpc.result("open", &slow);
    let told = rpc.result("verify_signature", &json!({ "cose": BASE64.encode(&signed()) }));
    assert!(told["reason"].as_str().unwrap().contains("did not end within 100 ms"), "{told}");
}

#[cfg(unix)]
#[test]
fn a_file_of_documents_comes_before_the_program() {
    let place = Place::empty();
    program(&place, "asked.sh", "#!/bin/sh\ntouch asked\n");
    fs::write(place.path().join("dids.json"), document(SIGNER, &multibase()).to_string()).unwrap();
    let both = ["--did-documents", "dids.json", "--did-resolver", "./asked.sh"];
    assert_eq!(verdict(&place, &both), format!("valid {SIGNER}"));
    assert!(!place.path().join("asked").exists());
}
