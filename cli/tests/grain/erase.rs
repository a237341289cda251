//! Erasure, sweeps and subject reports, by command and by rpc.

use serde_json::{Value, json};

use crate::kit::{Place, belief};

/// A belief of a user.
fn of(user: &str, object: &str) -> String {
    let mut grain: Value = serde_json::from_str(&belief("alice", object)).unwrap();
    grain["user_id"] = json!(user);
    grain.to_string()
}

#[test]
fn a_user_is_erased_and_another_is_not() {
    let place = Place::with_store();
    let (hers, his) = (place.put(&of("ann", "tea")), place.put(&of("bob", "tea")));
    let erase = ["erase", "--user", "ann", "--reason", "ann asked"];
    assert_eq!(place.grain(&erase).code, 2, "without --yes");
    let tried = place.grain(&[&erase[..], &["--dry-run"]].concat()).done().line();
    assert_eq!(tried, "would erase 1");
    place.grain(&["get", &hers]).done();
    let erased = place.grain(&[&erase[..], &["--yes", "--now", "--json"]].concat()).done().json();
    assert_eq!(erased["counts"], json!({ "erased": 1, "skipped": 0 }));
    assert_eq!((&erased["scrubbed"], &erased["holds"]), (&json!(true), &json!([])));
    assert_eq!(erased["certificate"]["sequence"], 3);
    assert_eq!(place.grain(&["get", &hers]).error_code(), "ERR_ERASED");
    place.grain(&["get", &his]).done();
    place.grain(&["verify", "--full"]).done();
}

#[test]
fn a_grain_is_erased_by_its_address_and_a_hold_refuses() {
    let place = Place::with_store();
    let (held, free) = (place.put(&of("ann", "tea")), place.put(&of("ann", "coffee")));
    place.grain(&["hold", &held, "--reason", "case 7"]).done();
    let erase =
        |address: &str| place.grain(&["erase", "--address", address, "--reason", "asked", "--yes"]);
    assert_eq!(erase(&held).error_code(), "ERR_INVALIDATION_DENIED");
    erase(&free).done();
    assert_eq!(erase(&free).error_code(), "ERR_ERASED");
    for both_or_none in [&["--user", "ann", "--address", &*held][..], &[]] {
        let run = place.grain(&[&["erase", "--reason", "x", "--yes"][..], both_or_none].concat());
        assert_eq!(run.error_code(), "ERR_SCHEMA");
    }
    assert_eq!(place.grain(&["sweep"]).done().line(), "erased 0, skipped 0");
}

#[test]
fn a_subject_report_is_json_or_a_file() {
    let place = Place::with_store();
    let hers = place.put(&of("ann", "tea"));
    place.put(&of("bob", "tea"));
    let lines = place.grain(&["subject-report", "--user", "ann"]).done().json_lines();
    assert_eq!(lines.iter().map(|line| &line["address"]).collect::<Vec<_>>(), [&json!(hers)]);
    let file = place.path().join("ann.mg");
    let file = file.to_str().unwrap();
    let told = place.grain(&["subject-report", "--user", "ann", "--out", file]).done().line();
    assert!(told.starts_with("1 grains in "), "{told}");
    assert_eq!(place.grain(&["subject-report"]).error_code(), "ERR_SCHEMA");
}

#[test]
fn a_report_in_a_file_stands_under_the_rules_on_export_but_for_the_person_who_asked() {
    let place = Place::with_store();
    place.put(&of("ann", "tea"));
    let mut privileged: Value = serde_json::from_str(&of("ann", "plea")).unwrap();
    privileged["structural_tags"] = json!(["profile:legal"]);
    privileged["context"] = json!({ "legal:privilege": "work_product" });
    let privileged = place.put(&privileged.to_string());
    let file = place.path().join("ann.mg");
    let report = ["subject-report", "--user", "ann", "--out", file.to_str().unwrap()];
    let told = place.grain(&report).done();
    let lines: Vec<_> = told.text().lines().collect();
    assert!(lines[0].starts_with("1 grains in "), "{lines:?}");
    assert_eq!(lines[1], "1 grains were left out, by the rules oms.privilege-hold");
    assert!(lines[2].contains("--access-request"), "{lines:?}");
    let json = place.grain(&[&report[..], &["--json"]].concat()).done().json();
    assert_eq!((&json["refused"], &json["rules"]), (&json!(1), &json!(["oms.privilege-hold"])));
    let asked = [&report[..], &["--access-request"]].concat();
    assert!(place.grain(&asked).done().line().starts_with("2 grains in "));
    let entries = place.grain(&["audit", "--json"]).done().json_lines();
    let last = entries.iter().rfind(|entry| entry["operation"] == "export").unwrap();
    assert_eq!(last["rules"], json!(["access_request", "oms.privilege-hold"]));
    assert_eq!((&last["decision"], &last["subjects"]), (&json!("done"), &json!([privileged])));
    let for_sale = [&["--purpose", "sale"], &asked[..]].concat();
    assert_eq!(place.grain(&for_sale).error_code(), "ERR_POLICY");
    let nowhere = place.grain(&["subject-report", "--user", "ann", "--access-request"]);
    assert_eq!(nowhere.code, 2, "{}", nowhere.err);
    place.grain(&["hold", &privileged, "--reason", "a matter"]).done();
    assert!(place.grain(&report).done().line().starts_with("2 grains in "));
}

#[test]
fn a_person_erases_and_reports_their_own_with_any_actor() {
    let place = Place::empty();
    place.grain(&["init", "--preset", "gdpr"]).done();
    for user in ["ann", "bob"] {
        let mut grain: Value = serde_json::from_str(&of(user, "tea")).unwrap();
        grain["processing_basis"] = json!("contract");
        place.put(&grain.to_string());
    }
    let who = ["--operator", "did:web:ops", "--actor", "did:web:agent"];
    let erase = ["erase", "--reason", "ann asked", "--dry-run"];
    for (more, may) in [(&[][..], true), (&["--namespace", "team"], false)] {
        for what in [&erase[..], &["subject-report"]] {
            let run = place.grain(&[what, &who, more, &["--user", "ann"]].concat());
            match may {
                true => assert_eq!(run.done().text().lines().count(), 1, "{what:?}"),
                false => assert_eq!(run.error_code(), "ERR_ACCESS", "{what:?}"),
            }
        }
    }
    let hers = ["erase", "--reason", "ann asked", "--yes", "--json", "--user", "ann"];
    let erased = place.grain(&[&hers[..], &who].concat()).done();
    assert_eq!(erased.json()["counts"]["erased"], 1);
    // Nobody's are no user's own.
    let nobodys = ["--user", ""];
    let run = place.grain(&[&erase[..], &who, &nobodys].concat());
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_EMPTY"));
    // A store that does not let users erase themselves lets no agent either.
    let place = Place::with_store();
    place.put(&of("ann", "tea"));
    let run = place.grain(&[&erase[..], &who, &["--user", "ann"]].concat());
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_ACCESS"));
}

#[test]
fn the_methods_answer_as_they_are_told() {
    let place = Place::empty();
    let mut rpc = place.rpc();
    rpc.result("open", &json!({ "path": "store", "create": true }));
    let put = |rpc: &mut crate::kit::Rpc, user: &str| {
        let grain: Value = serde_json::from_str(&of(user, "tea")).unwrap();
        rpc.result("put", &json!({ "grain": grain }))["address"].clone()
    };
    let hers = put(&mut rpc, "ann");
    let report = rpc.result("subject_report", &json!({ "user_id": "ann" }));
    assert_eq!(report["addresses"], json!([hers]));
    assert_eq!(report["counts"], json!({ "belief": 1, "current": 1, "grains": 1, "held": 0 }));
    rpc.result("hold", &json!({ "address": hers, "reason": "case 7" }));
    let erase = json!({ "user_id": "ann", "reason": "ann asked" });
    assert_eq!(rpc.refusal("erase_user", &erase), "ERR_INVALIDATION_DENIED");
    let tried =
        rpc.result("erase", &json!({ "address": hers, "reason": "asked", "dry_run": true }));
    assert_eq!(tried["refusal"]["code"], "ERR_INVALIDATION_DENIED");
    assert_eq!((&tried["holds"], &tried["certificate"]), (&json!([hers]), &Value::Null));
    rpc.result("lift_hold", &json!({ "address": hers, "reason": "over" }));
    let erased = rpc.result("erase_user", &json!({ "user_id": "ann", "reason": "x", "now": true }));
    assert_eq!((&erased["counts"]["erased"], &erased["scrubbed"]), (&json!(1), &json!(true)));
    assert_eq!(rpc.refusal("get", &json!({ "address": hers })), "ERR_ERASED");
    assert_eq!(rpc.result("exists", &json!({ "address": hers })), json!({ "exists": false }));
    assert_eq!(rpc.result("sweep", &json!({})), json!({ "erased": 0, "skipped": 0 }));
    rpc.result("session", &json!({ "namespace": "a" }));
    assert_eq!(rpc.refusal("sweep", &json!({})), "ERR_ACCESS");
}

#[test]
fn what_is_given_wrongly_is_wrong_usage_and_told_as_json_where_that_is_asked() {
    let place = Place::with_store();
    let erase = ["erase", "--reason", "x"];
    for (arguments, told) in [
        (&[&erase[..], &["--yes"]].concat()[..], "--user or --address"),
        (&[&erase[..], &["--yes", "--user", "ann", "--address", "0"]].concat(), "--address"),
        (&[&erase[..], &["--user", "ann"]].concat(), "--dry-run"),
        (&["subject-report"], "--user"),
        (&["--store", "e", "init", "--encrypt"], "--key-file"),
        (&["erase", "--user", "ann", "--yes"], "--reason"),
        (&["nonsense"], "nonsense"),
    ] {
        let run = place.grain(arguments);
        assert!(run.code == 2 && run.err.contains(told), "{arguments:?}: {}", run.err);
        let run = place.grain(&[&["--json"], arguments].concat());
        assert_eq!((run.code, run.text()), (2, ""), "{arguments:?}");
        let error: Value = serde_json::from_str(&run.err).unwrap();
        let error = &error["error"];
        assert!(error["code"].as_str().unwrap().starts_with("ERR_"), "{error}");
        assert!(error["message"].is_string() && error["hint"].is_string(), "{error}");
        assert!(error.to_string().contains(told), "{arguments:?}: {error}");
    }
    assert_eq!(place.grain(&["--json", "--help"]).code, 0, "help is no error");
}

#[test]
fn somebody_of_whom_there_is_nothing_is_told_of() {
    let place = Place::with_store();
    place.put(&of("alice", "tea"));
    let warning = r#"warning: the store has no grain whose user_id is "alcie""#;
    let out = place.path().join("none.mg");
    for arguments in [
        &["erase", "--reason", "x", "--yes", "--user", "alcie"][..],
        &["erase", "--reason", "x", "--dry-run", "--user", "alcie", "--json"],
        &["subject-report", "--user", "alcie"],
        &["subject-report", "--user", "alcie", "--out", out.to_str().unwrap()],
    ] {
        assert_eq!(place.grain(arguments).done().err.trim(), warning, "{arguments:?}");
    }
    assert_eq!(place.grain(&["subject-report", "--user", "alice"]).done().err, "");
    let erased = place.grain(&["erase", "--reason", "x", "--yes", "--user", "alice"]).done();
    assert_eq!((erased.text().lines().next(), erased.err.as_str()), (Some("erased 1"), ""));
}

/// Puts a backup in the place of a store.
fn restore(place: &Place, store: &str, backup: &str) {
    let at = |name: &str| place.path().join(name);
    std::fs::remove_dir_all(at(store)).unwrap();
    std::fs::rename(at(backup), at(store)).unwrap();
}

#[test]
fn what_a_restored_backup_brings_back_is_named_by_certificates_and_erased_again() {
    for encrypted in [false, true] {
        let place = Place::empty();
        let key = place.path().join("key");
        let mut common = vec!["--store", "s"];
        if encrypted {
            common.extend(["--key-file", key.to_str().unwrap()]);
        }
        let grain = |arguments: &[&str]| place.grain(&[&common[..], arguments].concat());
        let put = |json: String| place.feed(&[&common[..], &["put"]].concat(), json).done().line();
        grain(if encrypted { &["init", "--encrypt"] } else { &["init"] }).done();
        let [tea, coffee, alone, kept] =
            [("ann", "tea"), ("ann", "coffee"), ("bob", "alone"), ("bob", "kept")]
                .map(|(user, object)| put(of(user, object)));
        grain(&["backup", "b"]).done();
        let erase = |what: [&str; 2], file: &str| {
            let run = grain(&[
                "erase", what[0], what[1], "--reason", "asked", "--yes", "--now", "--json",
            ]);
            std::fs::write(place.path().join(file), run.done().out).unwrap();
        };
        erase(["--user", "ann"], "ann.json");
        erase(["--address", &alone], "alone.json");
        let checkpoint = grain(&["audit", "--checkpoint"]).done().out;
        std::fs::write(place.path().join("checkpoint"), checkpoint).unwrap();
        let certificates = ["--certificate", "ann.json", "--certificate", "alone.json"];
        grain(&[&["verify"][..], &certificates].concat()).done();

        restore(&place, "s", "b");
        grain(&["verify", "--full"]).done();
        for address in [&tea, &coffee, &alone] {
            grain(&["get", address]).done();
        }
        let run = grain(&["verify", "--checkpoint", "checkpoint"]);
        assert_eq!(run.code, 4, "later entries are missing");
        assert!(run.text().contains("the chain"), "{}", run.text());
        let run = grain(&[&["verify", "--json"][..], &certificates].concat());
        assert_eq!(run.code, 4);
        let problems = run.json()["problems"].as_array().unwrap().clone();
        let named = |address: &String| {
            let place = json!(format!("grain {address}"));
            problems
                .iter()
                .any(|problem| problem["what"] == "returned" && problem["where"] == place)
        };
        assert!(
            [&tea, &coffee, &alone].into_iter().all(named) && problems.len() == 3,
            "{problems:?}"
        );

        let again = [&["erase", "--reason", "restored", "--now"][..], &certificates].concat();
        let tried = grain(&[&again[..], &["--dry-run"]].concat()).done();
        assert_eq!(tried.text(), "would erase 2\nwould erase 1\n");
        grain(&[&again[..], &["--yes"]].concat()).done();
        for address in [&tea, &coffee, &alone] {
            assert_eq!(grain(&["get", address]).error_code(), "ERR_ERASED");
        }
        grain(&["get", &kept]).done();
        grain(&[&["verify", "--full"][..], &certificates].concat()).done();
        let late = place.feed(&[&common[..], &["put"]].concat(), of("ann", "tea"));
        assert_eq!(late.error_code(), "ERR_ERASED", "it does not come back by a put either");
        // Another store takes none of them.
        place.grain(&["--store", "other", "init"]).done();
        let other = [&["--store", "other", "verify"][..], &certificates].concat();
        assert_eq!(place.grain(&other).error_code(), "ERR_CONFLICT");
    }
}

#[test]
fn certificates_are_held_against_a_store_by_rpc_and_what_was_said_since_stays() {
    let place = Place::empty();
    let mut rpc = place.rpc();
    let open = json!({ "path": place.path().join("s"), "create": true });
    rpc.result("open", &open);
    let grain = |object: &str, at: i64| {
        let mut grain: Value = serde_json::from_str(&of("ann", object)).unwrap();
        grain["created_at"] = json!(at);
        json!({ "grain": grain })
    };
    let tea = rpc.result("put", &grain("tea", 1_768_471_200_000))["address"].clone();
    rpc.result("backup", &json!({ "path": place.path().join("b") }));
    let now = 1_800_000_000_000_i64;
    rpc.result("clock", &json!({ "now_ms": now }));
    let erased = rpc.result("erase_user", &json!({ "user_id": "ann", "reason": "asked" }));
    let certificates = json!([erased["certificate"]]);
    rpc.result("close", &json!({}));
    restore(&place, "s", "b");
    rpc.result("open", &open);
    rpc.result("clock", &json!({ "now_ms": now + 10 }));
    let since = rpc.result("put", &grain("coffee", now + 5))["address"].clone();
    let verify = json!({ "certificates": certificates });
    let found = rpc.result("verify", &verify);
    assert_eq!((&found["ok"], &found["problem_count"]), (&json!(false), &json!(1)));
    assert_eq!(found["problems"][0]["what"], "returned");
    let erase = json!({ "certificates": certificates, "reason": "restored" });
    let told = rpc.result("erase", &erase);
    assert_eq!(told["erasures"][0]["counts"]["erased"], json!(1));
    assert_eq!(rpc.refusal("get", &json!({ "address": tea })), "ERR_ERASED");
    rpc.result("get", &json!({ "address": since }));
    assert_eq!(rpc.result("verify", &verify)["ok"], json!(true));
    assert_eq!(rpc.result("erase", &erase)["erasures"], json!([]));
    let mut forged = certificates.clone();
    forged[0]["sequence"] = json!(1);
    let forged = json!({ "certificates": forged, "reason": "restored" });
    assert_eq!(rpc.refusal("erase", &forged), "ERR_SCHEMA");
    let both = json!({ "certificates": certificates, "address": tea, "reason": "restored" });
    rpc.refusal("erase", &both);
    rpc.result("session", &json!({ "actor": "did:web:agent", "namespace": "work" }));
    assert_eq!(rpc.refusal("erase", &erase), "ERR_ACCESS");
}
