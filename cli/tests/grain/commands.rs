//! Each command's good case and its refusals, with their codes and exit codes.

use std::fs;

use serde_json::json;

use crate::kit::{Place, belief, head};

#[test]
fn init_creates_a_store_once() {
    let place = Place::empty();
    assert_eq!(place.grain(&["init"]).done().line(), "created ./memory.grains");
    let again = place.grain(&["init", "--json"]);
    assert_eq!((again.code, again.error_code().as_str()), (1, "ERR_CONFLICT"));
    let other = place.grain(&["init", "--json", "--store", "other"]).done();
    let created = json!({ "created": true, "store": "other", "encrypted": false, "new_key": null });
    assert_eq!(other.json(), created);
}

#[test]
fn a_key_and_encrypt_go_together_and_one_alone_leaves_nothing_behind() {
    for (arguments, exit, missing) in [
        (&["init", "--encrypt"][..], 2, "--key-file"),
        (&["init", "--key-file", "key"], 1, "--encrypt"),
    ] {
        let place = Place::empty();
        let run = place.grain(arguments);
        assert_eq!((run.code, run.error_code().as_str()), (exit, "ERR_KEY"), "{arguments:?}");
        assert!(run.err.contains(missing), "{arguments:?}");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0, "{arguments:?}");
    }
}

#[test]
fn without_a_store_every_command_that_needs_one_says_where_it_looked() {
    let address = "0".repeat(64);
    for arguments in [
        &["put"][..],
        &["get", &address],
        &["supersede", &address, "-"],
        &["history", &address],
        &["recall", "alice"],
        &["cal", "RECALL"],
        &["stats"],
        &["audit"],
        &["verify"],
        &["reindex"],
        &["compact"],
        &["remove-vectors", "m"],
        &["backup", "copy"],
    ] {
        let run = Place::empty().feed(arguments, belief("a", "b"));
        assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_NOT_FOUND"), "{arguments:?}");
        assert!(run.err.contains("./memory.grains") && run.err.contains("grain init"));
    }
}

#[test]
fn wrong_usage_exits_with_2_and_help_with_0() {
    let place = Place::empty();
    for arguments in [
        &[][..],
        &["no-such-command"],
        &["init", "--preset", "none"],
        &["get"],
        &["get", "a", "b"],
        &["history"],
        &["history", "--subject", "s"],
        &["history", "abcdef01", "--as-of", "5"],
        &["history", "--subject", "s", "--relation", "r", "--as-of", "yesterday"],
        &["recall", "alice", "--limit", "many"],
        &["recall", "alice", "--limit", "0"],
        &["recall", "alice", "--limit", "1001"],
        &["cal", "RECALL", "-f", "file"],
        &["cal", "RECALL", "--param", "unnamed"],
        &["cal", "RECALL", "--as", "xml"],
        &["put", "--same-fact", "maybe"],
        &["stats", "--wait-ms", "-1"],
    ] {
        let run = place.grain(arguments);
        assert_eq!((run.code, run.out.is_empty()), (2, true), "{arguments:?}");
    }
    for arguments in [&["--help"][..], &["--version"], &["put", "--help"], &["help", "cal"]] {
        let run = place.grain(arguments).done();
        assert!(!run.out.is_empty() && run.err.is_empty(), "{arguments:?}");
    }
}

#[test]
fn the_store_is_named_by_option_or_environment() {
    let place = Place::empty();
    place.grain(&["--store", "a", "init"]).done();
    let out = std::process::Command::new(env!("CARGO_BIN_EXE_grain"))
        .args(["stats", "--json"])
        .current_dir(place.path())
        .env("GRAIN_STORE", "a")
        .output()
        .unwrap();
    assert!(out.status.success());
    let keyed = std::process::Command::new(env!("CARGO_BIN_EXE_grain"))
        .args(["stats", "--store", "a"])
        .current_dir(place.path())
        .env("GRAIN_KEY_FILE", "key")
        .output()
        .unwrap();
    assert_eq!(keyed.status.code(), Some(1));
    assert!(String::from_utf8(keyed.stderr).unwrap().starts_with("error: ERR_KEY"));
}

#[test]
fn a_store_open_elsewhere_exits_with_3() {
    let place = Place::with_store();
    let mut rpc = place.rpc();
    let path = place.path().join("memory.grains");
    rpc.result("open", &json!({ "path": path, "exclusive": true }));
    let run = place.grain(&["stats", "--wait-ms", "0"]);
    assert_eq!((run.code, run.error_code().as_str()), (3, "ERR_BUSY"));
    rpc.result("open", &json!({ "path": path }));
    let run = place.grain(&["stats", "--wait-ms", "0", "--exclusive"]);
    assert_eq!((run.code, run.error_code().as_str()), (3, "ERR_BUSY"));
    assert_eq!(rpc.end().1, 0);
    place.grain(&["stats", "--wait-ms", "0"]).done();
}

#[test]
fn get_shows_a_grain_in_each_form() {
    let place = Place::with_store();
    let json = belief("alice", "tea");
    let address = place.put(&json);
    let given: serde_json::Value = serde_json::from_str(&json).unwrap();

    assert_eq!(place.grain(&["get", &address]).done().json(), given);
    assert_eq!(place.grain(&["get", head(&address, 8)]).done().json(), given);
    let blob = place.grain(&["get", &address, "--format", "mg"]).done().out;
    let hex = place.grain(&["get", &address, "--format", "hex"]).done().line();
    assert_eq!(hex, data_encoding::HEXLOWER.encode(&blob));
    let sml = place.grain(&["get", &address, "--format", "sml"]).done();
    assert!(sml.text().contains(r#"<belief subject="alice""#), "{}", sml.text());

    let whole = place.grain(&["get", &address, "--json"]).done().json();
    assert_eq!((&whole["address"], &whole["grain"]), (&json!(address), &given));
    assert_eq!(whole["blob"], data_encoding::BASE64.encode(&blob));
    assert_eq!(
        whole["state"],
        json!({
            "superseded_by": null, "system_valid_to": null, "verification_status": "unverified",
            "contradicted": false, "needs_review": false, "held": false,
            "access_count": 5, "last_accessed_at": whole["state"]["last_accessed_at"],
        })
    );
    assert!(whole["state"]["last_accessed_at"].is_i64());
}

#[test]
fn get_refuses_what_names_no_grain() {
    let place = Place::with_store();
    let address = place.put(&belief("alice", "tea"));
    for (name, code) in [
        ("00000000", "ERR_NOT_FOUND"),
        (&"0".repeat(64), "ERR_NOT_FOUND"),
        (head(&address, 7), "ERR_HASH_LENGTH"),
        (&format!("{address}0"), "ERR_HASH_LENGTH"),
        (&head(&address, 8).replace(|_| true, "G"), "ERR_HASH_FORMAT"),
        (&address.to_uppercase(), "ERR_HASH_FORMAT"),
    ] {
        for arguments in [&["get", name][..], &["history", name], &["get", name, "--json"]] {
            let run = place.grain(arguments);
            assert_eq!((run.code, run.error_code().as_str()), (1, code), "{arguments:?}");
        }
    }
}

#[test]
fn supersede_replaces_and_history_tells() {
    let place = Place::with_store();
    let old = place.put(&belief("alice", "tea"));
    let arguments = ["supersede", head(&old, 8), "-", "--justification", "she said so", "--json"];
    let answer = place.feed(&arguments, belief("alice", "coffee")).done().json();
    let new = answer["address"].as_str().unwrap();
    assert_eq!(answer["superseded"], old);

    let versions = place.grain(&["history", &old, "--json"]).done().json_lines();
    assert_eq!(versions.len(), 2);
    assert_eq!((&versions[0]["address"], &versions[1]["address"]), (&json!(new), &json!(old)));
    assert_eq!(versions[0]["grain"]["derived_from"], json!([old]));
    assert_eq!(versions[0]["grain"]["supersession_justification"], "she said so");
    assert_eq!(versions[1]["state"]["superseded_by"], new);

    let told = place.grain(&["history", "--subject", "alice", "--relation", "prefers"]).done();
    let standing: Vec<_> =
        told.text().lines().map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(standing, ["current", "superseded"]);
    let before = ["history", "--subject", "alice", "--relation", "prefers", "--as-of", "0"];
    assert_eq!(place.grain(&before).done().text(), "");

    let again = place.feed(&["supersede", &old], belief("alice", "milk"));
    assert_eq!((again.code, again.error_code().as_str()), (1, "ERR_CONFLICT"));
}

#[test]
fn a_blob_supersedes_when_it_carries_what_it_must() {
    let place = Place::with_store();
    let old = place.put(&belief("alice", "tea"));
    let bare = place.feed(&["encode"], belief("alice", "coffee")).done().out;
    let run = place.feed(&["supersede", &old, "-", "--format", "mg"], bare);
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_SCHEMA"));
    let grain = belief("alice", "coffee").replace('}', &format!(r#","derived_from":["{old}"]}}"#));
    let blob = place.feed(&["encode"], grain).done().out;
    fs::write(place.path().join("new.mg"), &blob).unwrap();
    let new = place.grain(&["supersede", &old, "new.mg", "--format", "mg"]).done().line();
    assert_eq!(place.grain(&["get", &new, "--format", "mg"]).done().out, blob);
}

#[test]
fn a_locked_grain_stays_and_the_refusal_is_in_the_audit_log() {
    let place = Place::with_store();
    let locked =
        belief("alice", "tea").replace('}', r#","invalidation_policy":{"mode":"locked"}}"#);
    let old = place.put(&locked);
    let run = place.feed(&["supersede", &old, "-"], belief("alice", "coffee"));
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_INVALIDATION_DENIED"));
    let log = place.grain(&["audit", "--json"]).done().json_lines();
    let decisions: Vec<_> = log
        .iter()
        .map(|entry| (entry["operation"].as_str().unwrap(), entry["decision"].as_str().unwrap()))
        .collect();
    assert_eq!(decisions, [("create", "done"), ("put", "done"), ("supersede", "refused")]);
    let tail = place.grain(&["audit", "--tail", "2", "--json"]).done().json_lines();
    assert_eq!(tail, log[1..]);
    assert_eq!(place.grain(&["audit", "--tail", "0"]).done().text(), "");
    let tried = ["--actor", "did:web:mallory", "supersede", &old, "-"];
    assert_eq!(place.feed(&tried, belief("alice", "coffee")).code, 1);
    let by = |who: &str| place.grain(&["audit", "--by", who, "--json"]).done().json_lines();
    let [entry] = by("did:web:mallory").try_into().unwrap();
    assert_eq!((&entry["operation"], &entry["decision"]), (&json!("supersede"), &json!("refused")));
    assert!(!entry.to_string().contains("mallory"), "{entry}");
    assert!(by("did:web:alice").is_empty());
    assert_eq!(place.grain(&["audit"]).done().text().lines().count(), 4);
}

#[test]
fn recall_answers_as_sml_or_json_and_narrows() {
    let place = Place::with_store();
    for object in ["tea", "coffee"] {
        place.put(&belief("alice", object));
    }
    place.put(&belief("bob", "tea"));
    let sml = place.grain(&["recall", "alice"]).done();
    assert_eq!(sml.text().matches("<belief subject=\"alice\"").count(), 2, "{}", sml.text());
    assert!(!sml.text().contains("bob"));
    let one = place.grain(&["recall", "alice", "--limit", "1", "--as", "json"]).done().json();
    assert_eq!(one["grains"].as_array().unwrap().len(), 1);
    let none = place.grain(&["recall", "alice", "--relation", "avoids", "--json"]).done().json();
    assert_eq!((&none["results"], &none["total"]), (&json!([]), &json!(0)));
}

#[test]
fn cal_reads_its_statement_from_anywhere() {
    let place = Place::with_store();
    place.put(&belief("alice", "tea"));
    let query = "RECALL beliefs WHERE subject = $who | COUNT";
    fs::write(place.path().join("q.cal"), query).unwrap();
    let json = r#"
        {"statement": "recall", "grain_type": "beliefs", "pipeline": [{"count": true}],
         "where": [{"field": "subject", "op": "=", "value": {"param": "who"}}]}"#;
    for (arguments, stdin) in [
        (&["cal", query, "--param", "who=alice"][..], ""),
        (&["cal", "-f", "q.cal", "--param", "who=\"alice\""], ""),
        (&["cal", "-f", "-", "--param", "$who=alice"], query),
        (&["cal", "--param", "who=alice"], query),
        (&["cal", "--param", "who=alice"], json),
        (&["cal", json, "--param", "who=alice"], ""),
    ] {
        assert_eq!(place.feed(arguments, stdin).done().line(), "1", "{arguments:?}");
    }
}

#[test]
fn what_a_model_needs_to_write_cal_is_printed_without_a_store() {
    let place = Place::empty();
    let reference = place.grain(&["cal", "--reference"]).done();
    assert!(reference.text().starts_with("# CAL/1 quick reference\n"), "{}", reference.text());
    let schema = place.grain(&["cal", "--schema"]).done().json();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert!(schema["$defs"]["recall"]["properties"]["where"].is_object(), "{schema}");
    for twice in [&["cal", "RECALL", "--schema"][..], &["cal", "--reference", "--schema"]] {
        assert_eq!(place.grain(twice).code, 2, "{twice:?}");
    }
}

#[test]
fn cal_answers_each_statement_for_people() {
    let place = Place::with_store();
    let address = place.put(&belief("alice", "tea"));
    let exists = format!("EXISTS sha256:{address}");
    let history = format!("HISTORY sha256:{address}");
    for (query, expected) in [
        ("RECALL beliefs AS sml", "<context>\n\n  <belief subject=\"alice\""),
        ("ASSEMBLE FROM (RECALL beliefs)", "<context>\n\n  <belief subject=\"alice\""),
        ("ASSEMBLE FROM (RECALL beliefs) FORMAT readable", "## Context\n\n**Beliefs**\n- alice "),
        ("RECALL beliefs PROJECT content(object) AS text", "[belief] tea\n"),
        ("RECALL beliefs | COUNT", "1\n"),
        ("RECALL beliefs", "{\n  \"_cal\": {"),
        (exists.as_str(), "true\n"),
        (history.as_str(), &address),
    ] {
        let run = place.grain(&["cal", query]).done();
        assert!(run.text().starts_with(expected), "{query}: {}", run.text());
        let envelope = place.grain(&["cal", query, "--json"]).done().json();
        assert_eq!(envelope["_cal"]["version"], "1.0", "{query}");
    }
    let as_json = place.grain(&["cal", "RECALL AS sml", "--as", "json"]).done().json();
    assert_eq!(as_json["grains"][0]["text"], "prefers tea");
    for (format, begins) in [
        ("sml", "<context>\n\n  <belief"),
        ("markdown", "## Context\n\n**Beliefs**\n"),
        ("json", "{\"grains\":[\n"),
        ("yaml", "grains:\n  - type: belief\n"),
        ("text", "[belief] alice prefers tea"),
        ("triples", "alice\tprefers\ttea\n"),
        ("toon", "tokens: "),
    ] {
        let run = place.grain(&["cal", "ASSEMBLE FROM (RECALL)", "--as", format]).done();
        assert!(run.text().starts_with(begins), "{format}: {}", run.text());
    }
    let tight = "ASSEMBLE FROM (RECALL beliefs) BUDGET 25 tokens";
    assert!(place.grain(&["cal", tight]).done().text().starts_with("<context>"));
    let run = place.grain(&["cal", tight, "--auto-toon"]).done();
    assert!(run.text().starts_with("tokens: ") && run.err.contains("CAL-W005"), "{}", run.err);
}

#[test]
fn cal_writes_only_when_told_to() {
    let place = Place::with_store();
    let add = r#"ADD belief SET subject = "a" SET relation = "is" SET object = "b" REASON "seen""#;
    let run = place.grain(&["cal", add, "--json"]);
    assert_eq!((run.code, run.error_code().as_str()), (1, "CAL-E044"));
    assert!(run.err.contains("add --evolve"));
    let now = ["--now", "2026-01-15T10:00:00Z"];
    let new = place.grain(&["cal", add, "--evolve", now[0], now[1]]).done().line();
    let grain = place.grain(&["get", &new]).done().json();
    assert_eq!(grain["created_at"], 1_768_471_200_000_i64);
}

#[test]
fn a_cal_error_is_drawn_for_people_and_whole_for_machines() {
    let place = Place::with_store();
    let run = place.grain(&["cal", "RECALL beleifs"]);
    assert_eq!(run.code, 1);
    assert!(run.err.contains("\n  RECALL beleifs\n         ^^^^^^^\n"), "{}", run.err);
    let run = place.grain(&["cal", "RECALL beleifs", "--json"]);
    let error: serde_json::Value = serde_json::from_str(&run.err).unwrap();
    let error = &error["error"];
    assert_eq!(error["code"], "CAL-E003");
    assert_eq!(error["position"]["col"], 8);
    assert_eq!(error["hint"], error["suggestion"]);
    let run = place.grain(&["cal", r#"{"statement": "recall", "grain_type": "beleifs"}"#]);
    assert!(run.err.contains("^^^^^^^^^\n") && run.err.contains("beliefs"), "{}", run.err);
    let run = place.feed(&["cal"], b"RECALL \xff");
    assert_eq!((run.code, run.error_code().as_str()), (1, "CAL-E070"));
    let run = place.feed(&["cal"], " ".repeat(9000));
    assert_eq!((run.code, run.error_code().as_str()), (1, "CAL-E001"));
}

#[test]
fn a_session_sees_its_namespace_alone() {
    let place = Place::with_store();
    let scoped = belief("alice", "tea").replace('}', r#","namespace":"team:a"}"#);
    let address = place.put(&scoped);
    let run = place.grain(&["get", &address, "--namespace", "team:b"]);
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_NOT_FOUND"));
    place.grain(&["get", head(&address, 9), "--namespace", "team"]).done();
    let run = place.feed(&["put", "--namespace", "team:b"], &scoped);
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_ACCESS"));
    let recalled = place.grain(&["recall", "alice", "--namespace", "team:b", "--json"]).done();
    assert_eq!(recalled.json()["results"], json!([]));
}

#[test]
fn a_session_knows_its_user_and_hides_its_actor() {
    let place = Place::with_store();
    let mine = belief("alice", "tea").replace('}', r#","user_id":"u1"}"#);
    let actor = "did:web:example.com:agent";
    place.feed(&["put", "--actor", actor], &mine).done();
    let count = |user: &str| place.grain(&["cal", "RECALL MY beliefs | COUNT", "--user", user]);
    assert_eq!((count("u1").line().as_str(), count("u2").line().as_str()), ("1", "0"));
    let entry = &place.grain(&["audit", "--by", actor, "--json"]).done().json_lines()[0];
    let named = entry["actor"].as_str().unwrap();
    assert!(named != "operator" && !named.contains("example"), "{named}");
}

#[test]
fn stats_count_grains_for_people_and_machines() {
    let place = Place::with_store();
    place.put(&belief("alice", "tea"));
    let stats = place.grain(&["stats", "--json"]).done().json();
    assert_eq!((&stats["grains"], &stats["audit_entries"]), (&json!(1), &json!(2)));
    let told = place.grain(&["stats"]).done();
    assert!(told.text().lines().any(|line| line.starts_with("grains ") && line.ends_with(" 1")));
    assert!(
        told.text().lines().any(|line| line.starts_with("embedding ") && line.ends_with(" none"))
    );
    assert!(!told.text().contains("null"));
}

#[test]
fn damaged_data_exits_with_4() {
    let place = Place::with_store();
    let address = place.put(&belief("alice", "tea"));
    let path = place.path().join("memory.grains/grains.redb");
    let mut bytes = fs::read(&path).unwrap();
    let mut damaged = 0;
    for at in 0..bytes.len().saturating_sub(5) {
        if bytes[at..].starts_with(b"alice") {
            bytes[at] = b'A';
            damaged += 1;
        }
    }
    assert!(damaged > 0, "the grain lies in the file");
    fs::write(&path, bytes).unwrap();
    let run = place.grain(&["get", &address]);
    assert_eq!((run.code, run.error_code().as_str()), (4, "ERR_INTEGRITY"), "{}", run.err);
}
