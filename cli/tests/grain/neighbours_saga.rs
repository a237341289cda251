//! The commands on documents and containers that carry an agent, as a user types them.

use std::fs;

use serde_json::{Value, json};

use crate::kit::Place;

/// A document of an agent, without a signature.
fn document() -> Value {
    json!({
        "$schema": "https://saga-standard.dev/schema/v1", "sagaVersion": "1.0", "documentId": "saga_test0001",
        "exportedAt": "2026-03-20T10:00:00Z", "exportType": "profile", "layers": {
            "identity": {
                "handle": "aria-chen", "walletAddress": "0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A",
                "chain": "eip155:8453", "createdAt": "2026-01-15T08:00:00Z",
            },
            "persona": { "name": "Aria" },
            "skills": { "selfReported": [{ "name": "rust" }] },
        },
    })
}

#[test]
fn a_profile_is_signed_taken_in_and_redacted() {
    let place = Place::with_store();
    fs::write(place.path().join("key"), [0x11; 32]).unwrap();
    fs::write(place.path().join("aria.json"), document().to_string()).unwrap();
    let key = ["--chain", "eip155:8453", "--key-seed", "key"];
    assert_eq!(place.grain(&["saga", "validate", "aria.json"]).code, 1);
    assert_eq!(place.grain(&["saga", "import", "aria.json"]).code, 1);
    place.grain(&[&["saga", "sign", "aria.json", "--to", "signed.json"][..], &key].concat()).done();
    place.grain(&["saga", "validate", "signed.json"]).done();
    let report = place.grain(&["--json", "saga", "import", "signed.json"]).done().json();
    assert_eq!(report["signature"], "verified");

    let secret = r#"{"keyName": "ci", "keyValue": "quite-secret"}"#;
    let add = [&["saga", "vault", "add", "api-key", "ci"][..], &key].concat();
    let id = place.feed(&add, secret).done();
    let id = String::from_utf8(id.out).unwrap();
    let open = [&["saga", "vault", "open", id.trim()][..], &key].concat();
    assert!(String::from_utf8_lossy(&place.grain(&open).done().out).contains("quite-secret"));

    place.grain(&[&["saga", "export", "aria.saga"][..], &key].concat()).done();
    place.grain(&["saga", "validate", "aria.saga"]).done();
    let redact = ["saga", "redact", "signed.json", "--to", "red.json", "--organization", "acme"];
    place.grain(&[&redact[..], &key].concat()).done();
    place.grain(&["saga", "validate", "red.json"]).done();
    place.grain(&["saga", "import", "red.json"]).done(); // Nothing of it was redacted.
    let changed =
        fs::read_to_string(place.path().join("signed.json")).unwrap().replace("Aria", "Arla");
    fs::write(place.path().join("signed.json"), changed).unwrap();
    let refused = place.grain(&["saga", "import", "signed.json"]);
    assert!(refused.code == 1 && refused.err.contains("ERR_SIGNATURE"), "{}", refused.err);
}

/// A place with the key of the document's wallet, and the document, signed.
fn place_of_an_agent() -> Place {
    let place = Place::with_store();
    fs::write(place.path().join("key"), [0x11; 32]).unwrap();
    fs::write(place.path().join("aria.json"), document().to_string()).unwrap();
    place.grain(&[&["saga", "sign", "aria.json", "--to", "signed.json"][..], &KEY].concat()).done();
    place
}

/// The options for the key of that place.
const KEY: [&str; 4] = ["--chain", "eip155:8453", "--key-seed", "key"];

#[test]
fn a_redacted_profile_does_not_replace_the_whole_and_is_not_redacted_again() {
    let place = Place::with_store();
    let file = |name: &str| place.path().join(name);
    fs::write(file("key"), [0x11; 32]).unwrap();
    fs::write(file("org"), [0x13; 32]).unwrap();
    let mut value = document();
    value["exportType"] = json!("full");
    value["layers"]["taskHistory"] = json!({
        "recentTasks": [{ "taskId": "t1", "status": "completed", "title": "Move the ledger" }],
    });
    fs::write(file("aria.json"), value.to_string()).unwrap();
    place.grain(&[&["saga", "sign", "aria.json"][..], &KEY].concat()).done();
    place.grain(&["saga", "import", "aria.json"]).done();
    let redact = |from: &str, to: &str, with: &[&str]| {
        let words = ["saga", "redact", from, "--to", to, "--organization", "acme"];
        place.grain(&[&words[..], with, &KEY].concat())
    };
    let org = ["--organization-chain", "eip155:8453", "--organization-key", "org"];
    let first = redact("aria.json", "exit.json", &org).done();
    assert_eq!(first.text(), "1 items redacted or taken out\n  task t1: redacted\n");
    let refused = place.grain(&["saga", "import", "exit.json"]);
    assert!(refused.code == 1 && refused.err.contains("ERR_CONFLICT"), "{}", refused.err);
    assert!(refused.err.contains("taskHistory: task t1"), "{}", refused.err);

    let again = redact("exit.json", "again.json", &[]).done();
    assert_eq!(again.text(), "0 items redacted or taken out\n");
    let read = |name: &str| fs::read_to_string(file(name)).unwrap();
    assert_eq!(read("again.json"), read("exit.json"));
    place.grain(&["saga", "import", "exit.json", "--allow-older"]).done();
}

#[test]
fn a_wrong_signature_is_told_in_plain_words() {
    let place = place_of_an_agent();
    let good = place.grain(&["saga", "validate", "signed.json"]);
    assert_eq!((good.code, good.out.as_slice()), (0, &b"valid; signature: verified\n"[..]));
    let text = fs::read_to_string(place.path().join("signed.json")).unwrap();
    fs::write(place.path().join("forged.json"), text.replace("Aria", "Arla")).unwrap();
    let forged = place.grain(&["saga", "validate", "forged.json"]);
    let out = String::from_utf8(forged.out).unwrap();
    let told =
        "form valid; signature INVALID: another wallet signed, or something else was signed\n";
    assert_eq!((forged.code, out.as_str()), (1, told));
    let json = place.grain(&["--json", "saga", "validate", "forged.json"]);
    assert!(json.code == 1 && json.json()["document"]["signature"]["invalid"].is_string());
}

#[test]
fn a_key_tells_its_wallet_without_a_store() {
    let place = Place::empty();
    fs::write(place.path().join("key"), [0x11; 32]).unwrap();
    let wallet = place.grain(&[&["saga", "wallet"][..], &KEY].concat()).done();
    assert_eq!(wallet.text(), "eip155:8453:0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A\n");
    let solana = ["saga", "wallet", "--chain", "solana:mainnet", "--key-seed", "key"];
    let address = "F25s3DdjXdCxYBhh2z8FBusVEMT4b9bGNFVKJi3wFoF4";
    assert_eq!(place.grain(&solana).done().text(), format!("solana:mainnet:{address}\n"));
    let json = place.grain(&[&["--json"][..], &solana].concat()).done().json();
    assert_eq!(json, json!({ "chain": "solana:mainnet", "address": address }));
    let none = place.grain(&["saga", "wallet", "--chain", "eip155:8453", "--key-seed", "none"]);
    assert_ne!(none.code, 0);
}

#[test]
fn the_document_to_begin_with_in_the_docs_is_valid_once_it_is_signed() {
    let chapter = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/saga.md");
    let chapter = fs::read_to_string(chapter).unwrap();
    let (_, rest) = chapter.split_once("echo '").unwrap();
    let (document, _) = rest.split_once("' > aria.json").unwrap();
    let place = Place::with_store();
    fs::write(place.path().join("key"), [0x21; 32]).unwrap();
    let wallet = place.grain(&[&["saga", "wallet"][..], &KEY].concat()).done().line();
    let document = document.replace("0x...", wallet.rsplit(':').next().unwrap());
    fs::write(place.path().join("aria.json"), document).unwrap();
    place.grain(&[&["saga", "sign", "aria.json"][..], &KEY].concat()).done();
    let valid = place.grain(&["saga", "validate", "aria.json"]).done();
    assert_eq!(valid.text(), "valid; signature: verified\n");
    place.grain(&["saga", "import", "aria.json"]).done();
}

#[test]
fn a_vault_shows_names_and_types_and_is_that_of_one_wallet() {
    let place = place_of_an_agent();
    fn vault<'w>(words: &[&'w str]) -> Vec<&'w str> {
        [&["saga", "vault"][..], words, &KEY].concat()
    }
    let none = place.grain(&vault(&["list"]));
    assert!(none.code == 1 && none.err.contains("no vault of this wallet"), "{}", none.err);
    let add = |name: &str, secret: &str| {
        let fields = json!({ "content": secret }).to_string();
        place.feed(&vault(&["add", "note", name]), fields).done().line()
    };
    let (mail, first, _) = (add("mail", "quite-secret"), add("twice", "1"), add("twice", "2"));
    let list = place.grain(&vault(&["list"])).done();
    let lines: Vec<Vec<&str>> =
        list.text().lines().map(|it| it.split_whitespace().collect()).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0], [mail.as_str(), "note", "mail"]);
    assert!(!list.text().contains("secret"));
    let json = place.grain(&[&["--json"][..], &vault(&["list"])].concat()).done().json();
    assert_eq!(json["shown"][0], json!({ "id": mail, "type": "note", "name": "mail" }));
    assert_eq!(json["items"][0], mail.as_str());

    assert!(place.grain(&vault(&["open", "mail"])).done().text().contains("quite-secret"));
    assert!(place.grain(&vault(&["open", &first])).done().text().contains('1'));
    let two = place.grain(&vault(&["open", "twice"]));
    assert!(two.code == 1 && two.err.contains("ERR_CONFLICT"), "{}", two.err);
    let nothing = place.grain(&vault(&["open", "thrice"]));
    assert!(nothing.code == 1 && nothing.err.contains("ERR_NOT_FOUND"), "{}", nothing.err);

    fs::write(place.path().join("key"), [0x12; 32]).unwrap();
    for words in [&["list"][..], &["open", "mail"], &["remove", &mail], &["rotate"]] {
        let other = place.grain(&vault(words));
        assert!(other.code == 1 && other.err.contains("no vault of this wallet"), "{}", other.err);
    }
}

#[test]
fn a_file_of_another_kind_is_told_as_what_it_is() {
    let place = place_of_an_agent();
    place.grain(&["saga", "import", "signed.json"]).done();
    place.grain(&[&["saga", "export", "aria.saga"][..], &KEY].concat()).done();
    place
        .grain(&[
            "alf",
            "export",
            "a.alf",
            "--native",
            "--agent-id",
            "0a1b2c3d-0000-4000-8000-00000000000a",
            "--agent-name",
            "Ada",
        ])
        .done();
    for command in ["import", "validate"] {
        let refused = place.grain(&["saga", command, "a.alf"]);
        assert_eq!(refused.code, 1);
        assert!(refused.err.contains("no SAGA container"), "{}", refused.err);
        assert!(refused.err.contains("grain alf import"), "{}", refused.err);
    }
    let redact = ["saga", "redact", "aria.saga", "--to", "red.json", "--organization", "acme"];
    for words in [&["saga", "sign", "aria.saga"][..], &redact] {
        let refused = place.grain(&[words, &KEY].concat());
        assert_eq!(refused.code, 1);
        assert!(refused.err.contains("a document is asked for"), "{}", refused.err);
        assert!(refused.err.contains("unzip -p FILE agent.saga.json"), "{}", refused.err);
    }
    place.grain(&["saga", "validate", "aria.saga"]).done();
}

#[test]
fn a_document_that_is_not_valid_is_signed_with_a_warning() {
    let place = place_of_an_agent();
    let sign = [&["saga", "sign", "aria.json"][..], &KEY].concat();
    assert_eq!(place.grain(&sign).done().err, "");
    let mut value = document();
    value["layers"]["identity"].as_object_mut().unwrap().remove("createdAt");
    fs::write(place.path().join("aria.json"), value.to_string()).unwrap();
    let signed = place.grain(&sign).done();
    let told = "layers.identity.createdAt: it is missing";
    assert!(signed.err.starts_with("warning: ") && signed.err.contains(told), "{}", signed.err);
    assert!(signed.text().starts_with("signed by "));
}

#[test]
fn an_agent_is_transferred_with_the_consent_of_those_who_must() {
    let place = Place::with_store();
    let file = |name: &str| place.path().join(name);
    let mut value = document();
    value["exportType"] = json!("full");
    fs::write(file("aria.json"), value.to_string()).unwrap();
    let keys = [("agent", 0x11), ("acme", 0x12)];
    let key = |name: &str| {
        let seed = file(name).to_str().unwrap().to_owned();
        ["--chain", "eip155:8453", "--key-seed"].map(str::to_owned).into_iter().chain([seed])
    };
    for (name, byte) in keys {
        fs::write(file(name), [byte; 32]).unwrap();
    }
    let run = |words: &[&str], name: &str| {
        let words: Vec<_> = words.iter().map(|it| (*it).to_owned()).chain(key(name)).collect();
        place.grain(&words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    run(&["saga", "sign", "aria.json"], "agent").done();
    place.grain(&["saga", "import", "aria.json"]).done();
    let scope = ["--layer", "identity", "--layer", "persona", "--layer", "skills"];
    let consent = ["saga", "consent", "transfer", "--for", "a move"];
    let record = run(&[&consent[..], &scope].concat(), "agent").done();
    fs::write(file("consent.json"), record.out).unwrap();
    let export = [
        "--json",
        "saga",
        "export",
        "out.json",
        "--type",
        "transfer",
        "--across",
        "--consent",
        "consent.json",
        "--organization",
        "company_a",
        "--plain-long-term",
        "--organization-chain",
        "eip155:8453",
        "--organization-key",
        "org",
        "--document-id",
        "saga_move1",
    ];
    fs::write(file("org"), [0x13; 32]).unwrap();
    let refused = run(&export, "agent");
    assert!(refused.code == 1 && refused.err.contains("who consents"), "{}", refused.err);
    let at = "2026-03-20T10:00:00Z";
    let agree = ["saga", "agree", "saga_move1", "https://acme.example", "--at", at];
    let given = |name: &str| run(&[&["--json"][..], &agree].concat(), name).done().json();
    let mut request = json!({
        "kind": "voluntary", "destination": "https://acme.example", "at": at,
        "consents": { "agent": given("agent") },
    });
    let transfer = [&export[..], &["--transfer", "transfer.json"]].concat();
    fs::write(file("transfer.json"), request.to_string()).unwrap();
    let refused = run(&transfer, "agent");
    assert!(refused.code == 1 && refused.err.contains("destination"), "{}", refused.err);
    request["consents"]["destination"] = given("acme");
    fs::write(file("transfer.json"), request.to_string()).unwrap();
    let report = run(&transfer, "agent").done().json();
    assert_eq!(report["missing_consents"], json!(["source organization"]));
    assert_eq!(report["document_id"], "saga_move1");
    place.grain(&["saga", "validate", "out.json"]).done();
    // It is newer than what came in first, which is not taken again unless that is asked for.
    place.grain(&["saga", "import", "out.json"]).done();
    let refused = place.grain(&["saga", "import", "aria.json"]);
    assert!(refused.code == 1 && refused.err.contains("ERR_CONFLICT"), "{}", refused.err);
    place.grain(&["saga", "import", "aria.json", "--allow-older"]).done();
}

#[test]
fn nothing_is_written_over_the_key_of_a_wallet() {
    let place = place_of_an_agent();
    place.grain(&["saga", "import", "signed.json"]).done();
    fs::write(place.path().join("org"), [0x12; 32]).unwrap();
    let by_organization = ["--organization-chain", "eip155:8453", "--organization-key", "org"];
    let refused = |arguments: &[&str]| {
        let run = place.grain(&[arguments, &KEY].concat());
        assert!(run.code == 1 && run.err.contains("ERR_CONFLICT"), "{arguments:?}: {}", run.err);
    };
    refused(&["saga", "sign", "signed.json", "--to", "key"]);
    refused(&["saga", "export", "key"]);
    refused(&["saga", "export", "./key"]);
    refused(&["saga", "redact", "signed.json", "--to", "key", "--organization", "acme"]);
    let redact = ["saga", "redact", "signed.json", "--to", "org", "--organization", "acme"];
    refused(&[&redact[..], &by_organization].concat());
    assert_eq!(fs::read(place.path().join("key")).unwrap(), [0x11; 32]);
    assert_eq!(fs::read(place.path().join("org")).unwrap(), [0x12; 32]);
}

#[test]
fn nothing_that_a_command_reads_is_replaced_and_a_directory_is_refused_before_the_work() {
    let place = place_of_an_agent();
    place.grain(&["saga", "import", "signed.json"]).done();
    let file = |name: &str| place.path().join(name);
    fs::create_dir(file("folder.json")).unwrap();
    let signed = fs::read(file("signed.json")).unwrap();
    let redact = ["saga", "redact", "signed.json", "--organization", "acme", "--to"];
    for command in [
        &["saga", "export", "key"][..],
        &["saga", "export", "./key"],
        &["saga", "export", "folder.json"],
        &["saga", "sign", "aria.json", "--to", "key"],
        &[&redact[..], &["key"]].concat(),
        &[&redact[..], &["signed.json"]].concat(),
    ] {
        let refused = place.grain(&[command, &KEY].concat());
        assert!(refused.code == 1 && refused.err.contains("ERR_CONFLICT"), "{}", refused.err);
    }
    assert_eq!(fs::read(file("key")).unwrap(), [0x11; 32]);
    assert_eq!(fs::read(file("signed.json")).unwrap(), signed);
    let audit = place.grain(&["--json", "audit"]).done();
    assert!(!String::from_utf8_lossy(&audit.out).contains("export_archive"));
}
