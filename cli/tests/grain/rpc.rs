//! The methods of `grain rpc`: what they answer, and what they refuse.

use serde_json::{Value, json};

use crate::kit::{Place, Rpc, belief, head};

fn grain(subject: &str, object: &str) -> Value {
    serde_json::from_str(&belief(subject, object)).unwrap()
}

fn put(rpc: &mut Rpc, grain: &Value) -> String {
    rpc.result("put", &json!({ "grain": grain }))["address"].as_str().unwrap().to_owned()
}

#[test]
fn hello_lists_the_methods_and_every_listed_method_is_there() {
    let place = Place::empty();
    let mut rpc = place.rpc();
    let hello = rpc.result("hello", &json!({}));
    assert_eq!((&hello["name"], &hello["oms_level"]), (&json!("grainstore"), &json!(3)));
    let methods: Vec<_> =
        hello["methods"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(
        methods,
        [
            "hello",
            "encode",
            "decode",
            "open",
            "session",
            "put",
            "put_batch",
            "embed",
            "wait_for_vectors",
            "position",
            "wait_for",
            "resolve",
            "get",
            "get_batch",
            "exists",
            "supersede",
            "sign",
            "prove",
            "verify_signature",
            "disclose",
            "check_view",
            "restore_view",
            "write_frames",
            "read_frames",
            "policy_explain",
            "policy_show",
            "policy_set",
            "contradict",
            "set_verification",
            "hold",
            "lift_hold",
            "erase",
            "erase_user",
            "sweep",
            "subject_report",
            "history",
            "query",
            "neighbours",
            "paths",
            "ancestry",
            "children",
            "related",
            "versions",
            "latest",
            "thread",
            "owner",
            "capabilities",
            "handoffs",
            "cal",
            "cal_convert",
            "cal_stream",
            "prepare",
            "execute",
            "cal_switch",
            "audit",
            "checkpoint",
            "verify",
            "stats",
            "doctor",
            "reindex",
            "compact",
            "remove_vectors",
            "backup",
            "rotate_keys",
            "export",
            "import",
            "ages_segments",
            "ages_export",
            "ages_verify",
            "alf_import",
            "alf_export",
            "alf_delta",
            "alf_apply",
            "alf_purge",
            "alf_validate",
            "saga_validate",
            "saga_import",
            "saga_export",
            "saga_sign",
            "saga_redact",
            "saga_consent",
            "saga_agree",
            "saga_vault",
            "migrate",
            "migrate_formats",
            "close",
            "clock",
        ]
    );
    for method in methods {
        let response = rpc.call(method, &json!({ "no such parameter": 1 }));
        assert_eq!(response["error"]["code"], -32602, "{method}");
    }
    let absent = ["delete", "truncate"];
    for method in absent {
        assert_eq!(rpc.refusal(method, &json!({})), "-32601", "{method}");
    }
    let run = place.feed(&["rpc"], r#"{"jsonrpc":"2.0","id":1,"method":"clock","params":{}}"#);
    assert_eq!(run.done().json()["error"]["code"], -32601);
}

#[test]
fn nothing_that_needs_a_store_works_before_open_or_after_close() {
    let place = Place::empty();
    let mut rpc = place.rpc();
    let address = "0".repeat(64);
    let calls = [
        ("session", json!({ "namespace": "a" })),
        ("put", json!({ "grain": grain("a", "1") })),
        ("put_batch", json!({ "grains": [] })),
        ("resolve", json!({ "prefix": "00000000" })),
        ("get", json!({ "address": address })),
        ("get_batch", json!({ "addresses": [] })),
        ("exists", json!({ "address": address })),
        ("supersede", json!({ "old": address, "grain": grain("a", "1") })),
        ("disclose", json!({ "address": address, "hide": [] })),
        ("history", json!({ "address": address })),
        ("neighbours", json!({ "node": "a" })),
        ("paths", json!({ "from": "a", "to": "b" })),
        ("ancestry", json!({ "address": address })),
        ("children", json!({ "address": address })),
        ("related", json!({ "address": address })),
        ("versions", json!({ "address": address, "towards": "older" })),
        ("latest", json!({ "subject": "a", "relation": "b" })),
        ("thread", json!({ "session_id": "s" })),
        ("owner", json!({ "agent": "a" })),
        ("capabilities", json!({ "agent": "a" })),
        ("handoffs", json!({ "session_id": "s" })),
        ("cal", json!({ "query": "RECALL" })),
        ("audit", json!({})),
        ("verify", json!({ "full": true })),
        ("stats", json!({})),
        ("doctor", json!({})),
        ("reindex", json!({})),
        ("compact", json!({})),
        ("remove_vectors", json!({ "model": "m" })),
        ("backup", json!({ "path": "copy" })),
    ];
    for (method, params) in &calls {
        let response = rpc.call(method, params);
        assert_eq!(response["error"]["code"], -32000, "{method}");
        assert_eq!(response["error"]["data"]["code"], "ERR_NOT_FOUND", "{method}");
        assert_eq!(response["error"]["data"]["hint"], "call open first", "{method}");
    }
    rpc.result("open", &json!({ "path": place.path().join("s"), "create": true }));
    rpc.result("stats", &json!({}));
    rpc.result("close", &json!({}));
    assert_eq!(rpc.refusal("stats", &json!({})), "ERR_NOT_FOUND");
    rpc.result("close", &json!({}));
}

#[test]
fn open_creates_only_when_told_to_and_a_second_one_closes_the_first() {
    let place = Place::empty();
    let (a, b) = (place.path().join("a"), place.path().join("b"));
    let mut rpc = place.rpc();
    assert_eq!(rpc.refusal("open", &json!({ "path": a })), "ERR_NOT_FOUND");
    assert_eq!(rpc.refusal("open", &json!({ "path": a, "create": false })), "ERR_NOT_FOUND");
    assert!(!a.exists());
    assert_eq!(
        rpc.result("open", &json!({ "path": a, "create": true })),
        json!({ "created": true })
    );
    assert_eq!(rpc.result("open", &json!({ "path": a })), json!({ "created": false }));
    let mut other = place.rpc();
    let alone = json!({ "path": a, "wait_ms": 0, "exclusive": true });
    assert_eq!(other.refusal("open", &alone), "ERR_BUSY");
    let joined = other.result("open", &json!({ "path": a, "wait_ms": 0 }));
    assert_eq!(joined, json!({ "created": false, "owner_pid": rpc.pid() }));
    rpc.result("open", &json!({ "path": b, "create": true, "preset": "open" }));
    assert_eq!(other.result("open", &alone), json!({ "created": false }));
}

#[test]
fn open_refuses_what_is_no_key() {
    let place = Place::empty();
    let path = place.path().join("s");
    let mut rpc = place.rpc();
    let params = json!({ "path": path, "create": true, "key": "AAAA" });
    assert_eq!(rpc.refusal("open", &params), "ERR_KEY");
    assert!(!path.exists());
}

#[test]
fn put_answers_the_address_and_whether_it_was_there() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let first = rpc.result("put", &json!({ "grain": grain("a", "1"), "vectors": [] }));
    assert_eq!(first["duplicate"], false);
    let blob = rpc.result("encode", &json!({ "grain": grain("a", "1") }))["blob"].clone();
    let again = rpc.result("put", &json!({ "blob": blob }));
    assert_eq!(again, json!({ "address": first["address"], "duplicate": true }));
    let mut later = grain("a", "1");
    later["confidence"] = json!(0.5);
    let kept = rpc.result("put", &json!({ "grain": later, "same_fact": "keep" }));
    assert_eq!(kept, again);
    let replaced = rpc.result("put", &json!({ "grain": later, "same_fact": "supersede" }));
    assert_eq!(replaced["superseded"], first["address"]);
    assert_eq!(rpc.refusal("put", &json!({ "cose": "AQ==" })), "ERR_CORRUPT");
    let vectors = json!([{ "model": "m", "metric": "cosine", "values": [0, 0] }]);
    let refused = json!({ "grain": grain("b", "1"), "vectors": vectors });
    assert_eq!(rpc.refusal("put", &refused), "ERR_SCHEMA");
    assert_eq!(rpc.refusal("put", &json!({ "blob": "" })), "ERR_TOO_SHORT");
    assert_eq!(rpc.result("stats", &json!({}))["grains"], 2);
}

#[test]
fn a_grain_reaches_its_own_parser_as_it_was_written() {
    let mut rpc = Place::empty().rpc();
    for (grain, code) in [
        (r#"{"type":"belief","type":"belief"}"#, "ERR_CORRUPT"),
        (r#"{"type":"belief","created_at":99999999999999999999}"#, "ERR_RANGE"),
        (r#"{"type":"belief","confidence":1e400}"#, "ERR_FLOAT_INVALID"),
        (r#"{"subject":"a"}"#, "ERR_NO_TYPE"),
        (r#"{"type":"dream","created_at":0}"#, "ERR_UNKNOWN_TYPE"),
        (r#""text""#, "ERR_NOT_MAP"),
        ("[]", "ERR_NOT_MAP"),
    ] {
        let response = rpc.call_text("encode", &format!(r#"{{"grain":{grain}}}"#));
        assert_eq!(response["error"]["code"], -32000, "{grain}");
        assert_eq!(response["error"]["data"]["code"], code, "{grain}");
        assert!(!response["error"]["data"]["hint"].as_str().unwrap().is_empty());
    }
    let exact =
        r#"{"type":"event","content":"x","created_at":1.0,"context":{"a":1,"b":1.0,"c":-0.0}}"#;
    let encoded = rpc.call_text("encode", &format!(r#"{{"grain":{exact}}}"#));
    let blob = encoded["result"]["blob"].clone();
    let decoded = rpc.call("decode", &json!({ "blob": blob })).to_string();
    assert!(decoded.contains(r#""context":{"a":1,"b":1.0,"c":-0.0}"#), "{decoded}");
}

#[test]
fn a_batch_is_stored_whole_or_not_at_all() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let good = grain("a", "1");
    let answer = rpc.result("put_batch", &json!({ "grains": [good, grain("a", "2"), good] }));
    let results = answer["results"].as_array().unwrap();
    let duplicates: Vec<_> = results.iter().map(|put| put["duplicate"].as_bool()).collect();
    assert_eq!(duplicates, [Some(false), Some(false), Some(true)]);
    let bad = json!({ "grains": [grain("a", "3"), { "type": "belief" }] });
    let response = rpc.call("put_batch", &bad);
    assert_eq!(response["error"]["data"]["code"], "ERR_SCHEMA");
    assert!(response["error"]["message"].as_str().unwrap().starts_with("grain 1: "));
    assert_eq!(rpc.refusal("put_batch", &json!({ "blobs": ["AQ=="] })), "ERR_TOO_SHORT");
    assert_eq!(rpc.result("put_batch", &json!({ "grains": [] })), json!({ "results": [] }));
    assert_eq!(rpc.result("stats", &json!({}))["grains"], 2);
}

#[test]
fn grains_are_read_one_by_one_and_together() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let address = put(&mut rpc, &grain("a", "1"));
    let absent = "0".repeat(64);

    let got = rpc.result("get", &json!({ "address": address }));
    assert_eq!(got["grain"], grain("a", "1"));
    let blob = rpc.result("encode", &json!({ "grain": grain("a", "1") }))["blob"].clone();
    assert_eq!(got["blob"], blob);
    assert_eq!(
        got["state"],
        json!({
            "superseded_by": null, "system_valid_to": null, "verification_status": "unverified",
            "contradicted": false, "needs_review": false, "held": false,
            "access_count": 0, "last_accessed_at": null,
        })
    );
    let both = rpc.result("get_batch", &json!({ "addresses": [absent, address] }));
    assert_eq!(both, json!({ "grains": [null, grain("a", "1")] }));
    for (name, expected) in [(&address, true), (&absent, false)] {
        let exists = rpc.result("exists", &json!({ "address": name }));
        assert_eq!(exists, json!({ "exists": expected }));
    }
    assert_eq!(rpc.refusal("get", &json!({ "address": absent })), "ERR_NOT_FOUND");
    for method in ["get", "exists"] {
        for (name, code) in [
            (head(&address, 8), "ERR_HASH_LENGTH"),
            (&format!("sha256:{address}"), "ERR_HASH_LENGTH"),
            (&address.to_uppercase(), "ERR_HASH_FORMAT"),
        ] {
            assert_eq!(rpc.refusal(method, &json!({ "address": name })), code, "{method} {name}");
        }
    }
}

#[test]
fn supersession_and_history_follow_the_clock() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    rpc.result("clock", &json!({ "now_ms": 1_768_471_300_000_i64 }));
    let old = put(&mut rpc, &grain("a", "1"));
    rpc.result("clock", &json!({ "now_ms": 1_768_471_400_000_i64 }));
    let params = json!({ "old": old, "grain": grain("a", "2"), "justification": "seen" });
    let new = rpc.result("supersede", &params)["address"].clone();

    let chain = rpc.result("history", &json!({ "address": old }));
    let versions = chain["versions"].as_array().unwrap();
    assert_eq!(versions.len(), 2);
    assert_eq!((&versions[0]["address"], &versions[1]["address"]), (&new, &json!(old)));
    assert_eq!(versions[0]["grain"]["supersession_justification"], "seen");
    assert_eq!(versions[1]["state"]["superseded_by"], new);
    assert_eq!(versions[1]["state"]["system_valid_to"], 1_768_471_400_000_i64);

    let mut heads = |params: Value| {
        let answer = rpc.result("history", &params);
        let versions = answer["versions"].as_array().unwrap().clone();
        versions.iter().map(|version| version["grain"]["object"].clone()).collect::<Vec<_>>()
    };
    let of = json!({ "subject": "a", "relation": "prefers" });
    assert_eq!(heads(of), ["2", "1"]);
    let at = |ms: i64| json!({ "subject": "a", "relation": "prefers", "as_of": ms });
    assert_eq!(heads(at(1_768_471_399_999)), ["2", "1"]);
    assert_eq!(heads(at(1_768_471_400_000)), ["2"]);
    let elsewhere = json!({ "subject": "a", "relation": "prefers", "namespace": "x" });
    assert_eq!(heads(elsewhere), Vec::<Value>::new());

    let again = json!({ "old": old, "grain": grain("a", "3") });
    assert_eq!(rpc.refusal("supersede", &again), "ERR_CONFLICT");
    let signed = json!({ "old": old, "cose": "AQ==" });
    assert_eq!(rpc.refusal("supersede", &signed), "ERR_CORRUPT");
}

#[test]
fn session_rescopes_what_is_seen() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let mut scoped = grain("a", "1");
    scoped["namespace"] = json!("team:a");
    let address = put(&mut rpc, &scoped);
    rpc.result("session", &json!({ "namespace": "team:b", "user_id": "u", "purposes": ["store"] }));
    assert_eq!(rpc.refusal("get", &json!({ "address": address })), "ERR_NOT_FOUND");
    assert_eq!(rpc.refusal("put", &json!({ "grain": scoped })), "ERR_ACCESS");
    let wider = json!({ "query": "RECALL", "namespace": "team" });
    assert_eq!(rpc.refusal("cal", &wider), "ERR_ACCESS");
    rpc.result("session", &json!({ "namespace": "team" }));
    let narrow = json!({ "query": "RECALL | COUNT", "namespace": "team:b" });
    assert_eq!(rpc.result("cal", &narrow)["count"], 0);
    assert_eq!(rpc.result("cal", &json!({ "query": "RECALL | COUNT" }))["count"], 1);
    rpc.result("session", &json!({ "namespace": null }));
    rpc.result("get", &json!({ "address": address }));
    let path = place.path().join("rpc.grains");
    rpc.result("open", &json!({ "path": path, "session": { "namespace": "team:b" } }));
    assert_eq!(rpc.refusal("get", &json!({ "address": address })), "ERR_NOT_FOUND");
}

#[test]
fn cal_answers_its_envelope() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let mut mine = grain("a", "1");
    mine["user_id"] = json!("u1");
    put(&mut rpc, &mine);
    let query = json!({ "query": "RECALL beliefs WHERE subject = $s", "params": { "s": "a" } });
    let answer = rpc.result("cal", &query);
    assert_eq!(
        (&answer["_cal"]["statement_type"], &answer["total"]),
        (&json!("recall"), &json!(1))
    );
    assert_eq!(answer["results"][0]["grain"], mine);
    let formatted = rpc.result("cal", &json!({ "query": "RECALL beliefs", "as": "sml" }));
    assert!(formatted["formatted"].as_str().unwrap().starts_with("<context>"));
    let assembly = json!({ "query": "ASSEMBLE FROM (RECALL) BUDGET 30 tokens", "auto_toon": true });
    let assembly = rpc.result("cal", &assembly);
    assert_eq!(assembly["formatted_context"]["format"], "toon");
    assert_eq!(assembly["_cal"]["warnings"][0]["code"], "CAL-W005");
    for (user, count) in [("u1", 1), ("u2", 0)] {
        let params = json!({ "query": "RECALL MY beliefs | COUNT", "user_id": user });
        assert_eq!(rpc.result("cal", &params)["count"], count, "{user}");
    }
    let since = |now: i64| json!({ "query": "RECALL SINCE \"yesterday\" | COUNT", "now": now });
    assert_eq!(rpc.result("cal", &since(1_768_480_000_000))["count"], 1);
    assert_eq!(rpc.result("cal", &since(1_800_000_000_000))["count"], 0);
}

#[test]
fn a_cal_error_is_the_data_with_a_hint() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let response = rpc.call("cal", &json!({ "query": "RECALL beleifs" }));
    let error = &response["error"];
    assert_eq!(error["code"], -32000);
    assert_eq!(error["message"], error["data"]["message"]);
    assert_eq!(error["data"]["code"], "CAL-E003");
    assert_eq!(error["data"]["position"], json!({ "start": 7, "end": 14, "line": 1, "col": 8 }));
    assert_eq!(error["data"]["hint"], error["data"]["suggestion"]);
    let twice = r#"{"query":"RECALL","params":{"a":1,"a":2}}"#;
    assert_eq!(rpc.call_text("cal", twice)["error"]["data"]["code"], "CAL-E009");
    for neither in [json!(5), json!(["RECALL"]), json!(null)] {
        let response = rpc.call("cal", &json!({ "query": neither }));
        assert_eq!(response["error"]["code"], -32602, "{response}");
    }
}

#[test]
fn cal_takes_its_json_form_as_an_object_or_in_a_string() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    for subject in ["alice", "bob"] {
        put(&mut rpc, &grain(subject, "tea"));
    }
    let query = json!({
        "cal_version": 1, "statement": "recall", "grain_type": "beliefs", "about": {"param": "who"},
        "pipeline": [{"count": true}],
    });
    let text = rpc.result(
        "cal",
        &json!({ "query": "RECALL beliefs ABOUT $who | COUNT", "params": {"who": "bob"} }),
    );
    for form in [query.clone(), json!(query.to_string())] {
        let answer = rpc.result("cal", &json!({ "query": form, "params": {"who": "bob"} }));
        assert_eq!(
            (&answer["count"], &answer["_cal"]["query_hash"]),
            (&json!(1), &text["_cal"]["query_hash"])
        );
    }
    let wrong = r#"{"query":{"statement":"recall",  "where":[{"field":"confidense","op":">=","value":0.80}]}}"#;
    let error = rpc.call_text("cal", wrong)["error"]["data"].clone();
    assert_eq!((&error["code"], &error["pointer"]), (&json!("CAL-E004"), &json!("/where/0/field")));
    assert_eq!(error["position"], json!({ "start": 42, "end": 54, "line": 1, "col": 43 }));
    assert_eq!(error["suggestion"], "Did you mean \"confidence\"?");
    let key = json!({ "query": { "statement": "recall", "limt": 5 } });
    assert_eq!(rpc.refusal("cal", &key), "CAL-E002");
}

#[test]
fn cal_writes_in_tier_1_alone() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    rpc.result("clock", &json!({ "now_ms": 1_768_471_200_000_i64 }));
    let add =
        r#"ADD observation SET subject = "a" SET relation = "is" SET object = "b" REASON "r""#;
    assert_eq!(rpc.refusal("cal", &json!({ "query": add })), "CAL-E044");
    assert_eq!(rpc.refusal("cal", &json!({ "query": add, "tier": 0 })), "CAL-E044");
    let params = json!({ "query": add, "tier": 1, "agent_id": "agent-7" });
    let address = rpc.result("cal", &params)["content_address"].clone();
    let grain = rpc.result("get", &json!({ "address": address }))["grain"].clone();
    assert_eq!(grain["observer_id"], "agent-7");
    assert_eq!(grain["created_at"], 1_768_471_200_000_i64);
}

#[test]
fn the_audit_log_is_read_page_by_page() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    for object in ["1", "2", "3"] {
        put(&mut rpc, &grain("a", object));
    }
    let mut pages = |params: Value| {
        let page = rpc.result("audit", &params);
        assert_eq!(page["head"]["sequence"], 3);
        let entries = page["entries"].as_array().unwrap().clone();
        entries.iter().map(|entry| entry["sequence"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(pages(json!({})), [0, 1, 2, 3]);
    assert_eq!(pages(json!({ "limit": 2 })), [0, 1]);
    assert_eq!(pages(json!({ "after": 1, "limit": 1 })), [2]);
    assert_eq!(pages(json!({ "after": 3 })), Vec::<u64>::new());
    assert_eq!(pages(json!({ "limit": 0 })), Vec::<u64>::new());
}

#[test]
fn what_was_answered_is_there_after_the_end_of_input() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let address = put(&mut rpc, &grain("a", "1"));
    assert_eq!(rpc.end(), (String::new(), 0));
    place.grain(&["get", &address, "--store", "rpc.grains", "--wait-ms", "0"]).done();
}
