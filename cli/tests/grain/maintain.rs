//! The commands and methods that keep a store in order.

use std::fs;

use serde_json::{Value, json};

use crate::kit::{Place, Rpc, belief};

const STORE: &str = "memory.grains";
const WITHHELD: &str = "told to the operator, in a session without a namespace and a user";

fn place_with_grains() -> Place {
    let place = Place::with_store();
    for object in ["tea", "coffee", "water"] {
        place.put(&belief("alice", object));
    }
    place
}

#[test]
fn verify_prints_what_it_looked_at_and_exits_with_0() {
    let place = place_with_grains();
    let run = place.grain(&["verify"]).done();
    assert!(run.line().starts_with("ok: 0 problems; 3 grains"), "{}", run.text());
    let full = place.grain(&["verify", "--full", "--json"]).done().json();
    assert_eq!(
        (&full["ok"], &full["full"], &full["problems"]),
        (&true.into(), &true.into(), &json!([]))
    );
    assert_eq!(full["checked"]["blobs"], 3);
}

#[test]
fn verify_exits_with_4_and_names_the_place_where_a_byte_has_changed() {
    let place = place_with_grains();
    let file = place.path().join(STORE).join("grains.redb");
    let mut bytes = fs::read(&file).unwrap();
    let mut harmed = 0;
    while let Some(at) = bytes.windows(6).position(|window| window == b"coffee") {
        bytes[at] = b't';
        harmed += 1;
    }
    assert!(harmed > 0);
    fs::write(&file, &bytes).unwrap();
    for arguments in [&["verify"][..], &["verify", "--full"]] {
        let run = place.grain(arguments);
        assert_eq!(run.code, 4, "{arguments:?}");
        assert!(run.text().contains("log: log 2:"), "{}", run.text());
        assert_eq!(run.error_code(), "ERR_INTEGRITY");
    }
    let run = place.grain(&["verify", "--json"]);
    let found: Value = serde_json::from_str(run.text()).unwrap();
    assert_eq!((run.code, &found["ok"]), (4, &false.into()));
    assert_eq!(
        (&found["problems"][0]["what"], &found["problems"][0]["where"]),
        (&"log".into(), &"log 2".into())
    );
}

#[test]
fn verify_names_the_damaged_entry_of_a_store_that_cannot_open_for_want_of_its_index() {
    let place = place_with_grains();
    let store = place.path().join(STORE);
    let file = store.join("grains.redb");
    let mut bytes = fs::read(&file).unwrap();
    while let Some(at) = bytes.windows(6).position(|window| window == b"coffee") {
        bytes[at] = b't';
    }
    fs::write(&file, &bytes).unwrap();
    for harm in ["gone", "damaged"] {
        fs::remove_file(store.join("index.redb")).unwrap();
        if harm == "damaged" {
            fs::write(store.join("index.redb"), b"no database").unwrap();
        }
        let refused = place.grain(&["recall", "alice"]);
        assert_eq!((refused.code, refused.error_code().as_str()), (4, "ERR_INTEGRITY"), "{harm}");
        for arguments in [&["verify", "--json"][..], &["verify", "--full", "--json"]] {
            let run = place.grain(arguments);
            let found: Value = serde_json::from_str(run.text()).unwrap();
            assert_eq!((run.code, &found["ok"]), (4, &false.into()), "{harm}");
            let problems = found["problems"].as_array().unwrap();
            let named = |what: &str, place: &str| {
                problems.iter().any(|found| found["what"] == what && found["where"] == place)
            };
            assert!(named("index_unreadable", "index.redb") && named("log", "log 2"), "{found}");
            assert_eq!(found["checked"]["grains"], 3);
            assert_eq!(found["checked"]["audit_entries"], 4);
        }
        let doctor = place.grain(&["doctor"]);
        assert_eq!((doctor.code, doctor.error_code().as_str()), (4, "ERR_INTEGRITY"));
        assert!(doctor.text().contains("grain verify"), "{}", doctor.text());
    }
}

#[test]
fn reindex_compact_and_backup_say_what_they_did() {
    let place = place_with_grains();
    assert_eq!(place.grain(&["reindex"]).done().line(), "indexed 3 grains");
    assert_eq!(place.grain(&["reindex", "--json"]).done().json(), json!({ "grains": 3 }));
    assert!(place.grain(&["compact"]).done().text().starts_with("truth: "));
    let compact = place.grain(&["compact", "--json"]).done().json();
    let bytes = |name: &str| compact[name].as_u64().unwrap();
    assert!(bytes("truth_bytes_after") <= bytes("truth_bytes_before"));
    assert!(bytes("index_bytes_after") <= bytes("index_bytes_before"));
    let backup = place.grain(&["backup", "copy", "--json"]).done().json();
    assert_eq!((&backup["path"], &backup["grains"]), (&"copy".into(), &3.into()));
    let again = place.grain(&["backup", "copy"]);
    assert_eq!((again.code, again.error_code().as_str()), (1, "ERR_CONFLICT"));
    let recalled =
        |store| place.grain(&["recall", "alice", "--store", store]).done().text().to_owned();
    assert_eq!(recalled("copy"), recalled(STORE));
    assert!(place.grain(&["verify", "--full", "--store", "copy"]).done().text().starts_with("ok"));
}

#[test]
fn doctor_tells_a_healthy_store_from_none_and_from_a_busy_one() {
    let place = place_with_grains();
    let run = place.grain(&["doctor"]).done();
    assert!(run.text().lines().all(|line| line.starts_with("ok ")), "{}", run.text());
    assert_eq!(place.grain(&["doctor", "--json"]).done().json()["ok"], true);
    let none = place.grain(&["doctor", "--store", "elsewhere"]);
    assert_eq!((none.code, none.error_code().as_str()), (1, "ERR_NOT_FOUND"));
    assert!(none.text().starts_with("BAD  directory"));
    assert!(!place.path().join("elsewhere").exists());
    let mut rpc = place.rpc();
    rpc.result("open", &json!({ "path": STORE }));
    let busy = place.grain(&["--exclusive", "doctor", "--wait-ms", "0"]);
    assert_eq!((busy.code, busy.error_code().as_str()), (3, "ERR_BUSY"));
    assert!(busy.text().contains("BAD  lock"));
}

#[test]
fn stats_shows_rows_and_pages() {
    let place = place_with_grains();
    let stats = place.grain(&["stats", "--json"]).done().json();
    assert_eq!((&stats["grains"], &stats["rows"]["log"]), (&3.into(), &3.into()));
    assert_eq!(stats["rows"]["index.address"], 3);
    assert!(stats.get("pages").is_none());
    let stats = place.grain(&["stats", "--json", "--pages"]).done().json();
    assert!(stats["pages"]["truth"]["stored_bytes"].as_u64().unwrap() > 300);
    let text = place.grain(&["stats"]).done();
    assert!(text.text().lines().any(|line| line.starts_with("rows: log") && line.ends_with(" 3")));
}

#[test]
fn the_methods_answer_as_the_commands_do() {
    let place = place_with_grains();
    let mut rpc = place.rpc();
    rpc.result("open", &json!({ "path": STORE }));
    for params in [json!({}), json!({ "full": true })] {
        let found = rpc.result("verify", &params);
        assert_eq!((&found["ok"], &found["problems"]), (&true.into(), &json!([])));
    }
    assert_eq!(rpc.refusal("verify", &json!({ "deep": true })), "-32602");
    assert_eq!(rpc.result("doctor", &json!({}))["ok"], true);
    assert_eq!(rpc.result("reindex", &json!({})), json!({ "grains": 3 }));
    assert!(rpc.result("compact", &json!({}))["truth_bytes_after"].is_u64());
    let stats = rpc.result("stats", &json!({ "pages": true }));
    assert_eq!((&stats["grains"], &stats["rows"]["log"]), (&3.into(), &3.into()));
    assert!(stats["pages"]["index"]["file_bytes"].is_u64());
    let copy = place.path().join("copy").display().to_string();
    assert_eq!(rpc.result("backup", &json!({ "path": copy }))["grains"], 3);
    assert_eq!(rpc.refusal("backup", &json!({ "path": copy })), "ERR_CONFLICT");
    rpc.result("close", &json!({}));
    for method in ["verify", "doctor", "reindex", "compact"] {
        assert_eq!(rpc.refusal(method, &json!({})), "ERR_NOT_FOUND", "{method}");
    }
}

#[test]
fn a_checkpoint_kept_elsewhere_shows_a_store_that_was_set_back() {
    let place = place_with_grains();
    let store = place.path().join(STORE).join("grains.redb");
    let before = fs::read(&store).unwrap();
    place.put(&belief("alice", "milk"));
    let checkpoint = place.grain(&["audit", "--checkpoint"]).done();
    fs::write(place.path().join("kept.json"), checkpoint.text()).unwrap();
    place.grain(&["verify", "--checkpoint", "kept.json"]).done();
    place.put(&belief("alice", "cocoa"));
    place.grain(&["verify", "--checkpoint", "kept.json"]).done();
    fs::write(&store, before).unwrap();
    place.grain(&["verify"]).done();
    let run = place.grain(&["verify", "--checkpoint", "kept.json"]);
    assert!(run.code == 4 && run.err.contains("error: ERR_INTEGRITY"), "{}", run.err);
    assert!(run.err.contains("compared with a checkpoint of 5 entries, made 2"), "{}", run.err);
    assert!(
        run.text().contains("audit: audit 4: the checkpoint counts 5 entries"),
        "{}",
        run.text()
    );
    let stranger = ["verify", "--checkpoint", "kept.json", "--signer", "did:web:somebody"];
    assert_eq!(place.grain(&stranger).error_code(), "ERR_SIGNATURE");
    for (text, code) in [("{}", "ERR_SCHEMA"), ("no", "ERR_SCHEMA")] {
        fs::write(place.path().join("bad.json"), text).unwrap();
        let run = place.grain(&["verify", "--checkpoint", "bad.json"]);
        assert_eq!((run.code, run.error_code().as_str()), (1, code));
    }
    let mut rpc = place.rpc();
    rpc.result("open", &json!({ "path": STORE }));
    let now = rpc.result("checkpoint", &json!({}));
    let verified = rpc.result("verify", &json!({ "checkpoint": now }));
    assert_eq!(verified["ok"], true);
    let kept: Value = serde_json::from_str(checkpoint.text()).unwrap();
    let verified = rpc.result("verify", &json!({ "checkpoint": kept }));
    assert_eq!(
        (&verified["ok"], &verified["problems"][0]["what"]),
        (&false.into(), &"audit".into())
    );
}

#[test]
fn maintenance_names_nothing_of_other_namespaces_to_a_session_that_has_one() {
    let place = place_with_grains();
    let mut rpc = place.rpc();
    rpc.result("open", &json!({ "path": STORE }));
    rpc.result("close", &json!({}));
    // A word of the index, and a row of the log.
    for name in ["grains.redb", "index.redb"] {
        let file = place.path().join(STORE).join(name);
        let mut bytes = fs::read(&file).unwrap();
        while let Some(at) = bytes.windows(6).position(|window| window == b"prefer") {
            bytes[at] = b'q';
        }
        fs::write(&file, &bytes).unwrap();
    }
    rpc.result("open", &json!({ "path": STORE, "session": { "namespace": null } }));
    let told = rpc.result("verify", &json!({})).to_string();
    rpc.result("session", &json!({ "namespace": "elsewhere" }));
    let found = rpc.result("verify", &json!({}));
    assert_eq!(found["ok"], false);
    for problem in found["problems"].as_array().unwrap() {
        let table = problem["where"].as_str().unwrap();
        assert!(!table.contains(' ') && told.contains(table), "{problem}");
        assert_eq!(problem["detail"], WITHHELD);
    }
    let answer = rpc.result("doctor", &json!({}));
    for finding in answer["findings"].as_array().unwrap() {
        assert_eq!(finding["detail"], WITHHELD);
    }
    for method in ["stats", "compact", "reindex", "checkpoint"] {
        assert_eq!(rpc.refusal(method, &json!({})), "ERR_ACCESS", "{method}");
    }
    let copy = place.path().join("copy").display().to_string();
    assert_eq!(rpc.refusal("backup", &json!({ "path": copy })), "ERR_ACCESS");
    assert!(!place.path().join("copy").exists());
}

#[test]
fn vectors_of_a_model_are_removed_by_the_command_and_the_method() {
    let place = place_with_grains();
    let mut rpc = place.rpc();
    rpc.result("open", &json!({ "path": STORE }));
    let vectors = json!([
        { "model": "a", "values": [1, 2] },
        { "model": "b", "values": [1, 2, 3] },
        { "model": "c", "values": [1] },
    ]);
    let grain = json!({ "type": "belief", "subject": "bob", "relation": "likes", "object": "tea",
        "confidence": 1, "created_at": 1 });
    rpc.result("put", &json!({ "grain": grain, "vectors": vectors }));
    assert_eq!(rpc.result("stats", &json!({}))["serving_model"], json!(null));
    rpc.result("session", &json!({ "namespace": "elsewhere" }));
    assert_eq!(rpc.refusal("remove_vectors", &json!({ "model": "a" })), "ERR_ACCESS");
    rpc.result("session", &json!({ "namespace": null }));
    assert_eq!(rpc.result("remove_vectors", &json!({ "model": "a" })), json!({ "removed": 1 }));
    assert_eq!(rpc.refusal("remove_vectors", &json!({ "model": "a" })), "ERR_NOT_FOUND");
    rpc.result("close", &json!({}));
    let run = place.grain(&["remove-vectors", "b"]).done();
    assert_eq!(run.line(), "removed 1 vectors of b");
    let run = place.grain(&["remove-vectors", "c"]);
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_CONFLICT"));
    assert_eq!(place.grain(&["stats", "--json"]).done().json()["serving_model"], "c");
}

#[cfg(unix)]
#[test]
fn figures_of_a_session_with_a_namespace_or_a_user_have_no_names_and_quote_nobody() {
    let place = Place::empty();
    let mut rpc = place.rpc();
    let script = r#"while read -r line; do case "$line" in
        *positive*) echo '{"error":"cannot embed: positive result"}';;
        *) echo '{"vectors":[[1,2]]}';; esac; done"#;
    let embedder =
        json!({ "command": ["sh", "-c", script], "model": "model-of-victim", "dimension": 2 });
    let path = place.path().join("s");
    rpc.result("open", &json!({ "path": path, "create": true, "embedder": embedder }));
    let grain = |object: &str| {
        json!({ "type": "belief", "subject": "test", "relation": "says", "object": object,
            "confidence": 1, "created_at": 1, "namespace": "victim" })
    };
    let until = |rpc: &mut Rpc, is_so: fn(&Value) -> bool| {
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        loop {
            let told = rpc.result("stats", &json!({}));
            if is_so(&told["embedding"]) {
                return told;
            }
            assert!(std::time::Instant::now() < end, "{told}");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    };
    rpc.result("put", &json!({ "grain": grain("fine") }));
    until(&mut rpc, |embedding| embedding["serves"] == true);
    let vectors = json!([{ "model": "other-of-victim", "values": [1, 2] }]);
    rpc.result("put", &json!({ "grain": grain("positive result"), "vectors": vectors }));
    until(&mut rpc, |embedding| embedding["behind"] == 0);
    rpc.result("query", &json!({ "text": "positive" }));
    let told = until(&mut rpc, |embedding| embedding["error"].is_string());
    assert!(told["embedding"]["error"].as_str().unwrap().contains("positive result"), "{told}");
    assert!(told["vectors"].to_string().contains("other-of-victim"), "{told}");
    assert!(rpc.result("doctor", &json!({})).to_string().contains("model-of-victim"));
    assert!(told["observer_domains"].is_object());
    for scope in
        [json!({ "namespace": "attacker" }), json!({ "namespace": null, "user_id": "eve" })]
    {
        rpc.result("session", &scope);
        // Figures of all namespaces are for the operator of the whole store.
        assert_eq!(rpc.refusal("stats", &json!({})), "ERR_ACCESS");
        let text = rpc.result("doctor", &json!({})).to_string();
        assert!(!text.contains("victim") && !text.contains("positive"), "{text}");
    }
}

#[test]
fn doctor_and_verify_tell_details_to_the_operator_of_the_whole_store_alone() {
    const OPERATOR: &str = "did:web:ops";
    let place = place_with_grains();
    let sessions: [(&[&str], Value, bool); 5] = [
        (&[], json!({}), true),
        (&["--actor", OPERATOR], json!({ "actor": OPERATOR }), true),
        (&["--actor", "did:web:agent"], json!({ "actor": "did:web:agent" }), false),
        (&["--namespace", "team"], json!({ "namespace": "team" }), false),
        (&["--user", "ann"], json!({ "user_id": "ann" }), false),
    ];
    let is_told = |diagnosis: &Value| {
        let mut findings = diagnosis["findings"].as_array().unwrap().iter();
        assert!(diagnosis["ok"].is_boolean());
        !findings.all(|finding| finding["detail"] == WITHHELD)
    };
    for (arguments, ..) in &sessions {
        let all = [&["doctor", "--json", "--operator", OPERATOR], *arguments].concat();
        let may = sessions.iter().any(|(these, _, may)| these == arguments && *may);
        assert_eq!(is_told(&place.grain(&all).done().json()), may, "{arguments:?}");
    }
    let mut rpc = place.rpc();
    rpc.result("open", &json!({ "path": STORE, "operator": OPERATOR }));
    for (_, session, may) in &sessions {
        let mut whole = json!({ "namespace": null });
        whole.as_object_mut().unwrap().extend(session.as_object().unwrap().clone());
        rpc.result("session", &whole);
        assert_eq!(is_told(&rpc.result("doctor", &json!({}))), *may, "{session}");
        let told = rpc.call("stats", &json!({}));
        assert_eq!(told["result"].is_object(), *may, "stats is for the same: {session}");
    }
}
