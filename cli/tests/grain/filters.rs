//! Questions by fields that CAL has no name for, and their order: by rpc and by the command.

use serde_json::{Value, json};

use crate::kit::{Place, Rpc};

/// A belief with these fields, dated `at` milliseconds after a start.
fn belief(object: &str, at: i64, more: &Value) -> Value {
    let mut grain = json!({ "type": "belief", "subject": "alice", "relation": "likes", "object": object,
        "confidence": 0.9, "created_at": 1_768_471_200_000_i64 + at });
    grain.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    grain
}

fn objects(answer: &Value) -> Vec<String> {
    let rows = answer["results"].as_array().unwrap().iter();
    rows.map(|row| row["grain"]["object"].as_str().unwrap().to_owned()).collect()
}

/// A store with a consent and grains; returns the address of the consent.
fn filled(place: &Place) -> String {
    let consent = json!({ "type": "consent", "subject_did": "did:example:ann",
        "grantee_did": "did:example:bot", "scope": ["memory"], "is_withdrawal": false, "created_at": 1 });
    let consent = place.put(&consent.to_string());
    let prefixed = format!("sha256:{consent}");
    for (at, (object, more)) in [
        ("tea", json!({ "processing_basis": consent, "run_id": "r-1" })),
        ("coffee", json!({ "processing_basis": prefixed, "author_did": "did:example:bot" })),
        ("milk", json!({ "processing_basis": "contract", "entity_id": "e-9", "run_id": "r-1" })),
        ("water", json!({ "run_id": "r-2", "entity_id": "e-10" })),
    ]
    .into_iter()
    .enumerate()
    {
        place.put(&belief(object, i64::try_from(at).unwrap(), &more).to_string());
    }
    consent
}

#[test]
fn what_rests_on_a_consent_or_is_of_a_run_an_author_or_an_entity_is_found_by_both() {
    let place = Place::with_store();
    let consent = filled(&place);
    let prefixed = format!("sha256:{consent}");
    let table: [(&str, &str, &str, &[&str]); 9] = [
        ("processing_basis", "--basis", &consent, &["coffee", "tea"]),
        ("processing_basis", "--basis", &prefixed, &["coffee", "tea"]),
        ("processing_basis", "--basis", "contract", &["milk"]),
        ("processing_basis", "--basis", "consent", &[]),
        ("run_id", "--run", "r-1", &["milk", "tea"]),
        ("run_id", "--run", "r", &[]),
        ("author_did", "--author", "did:example:bot", &["coffee"]),
        ("entity_id", "--entity", "e-9", &["milk"]),
        ("entity_id", "--entity", "e", &[]),
    ];
    let mut rpc = place.rpc();
    rpc.result("open", &json!({ "path": place.path().join("memory.grains"), "read_only": true }));
    for (field, _, value, expected) in table {
        let answer = rpc.result("query", &json!({ "where": { field: value }, "explain": true }));
        assert_eq!(objects(&answer), expected, "{field} {value}");
        for row in answer["results"].as_array().unwrap() {
            assert_eq!(row["matched_fields"], json!([field]));
        }
        if ["processing_basis", "run_id"].contains(&field) {
            assert_eq!(answer["plan"]["index"], field, "looked up, not scanned: {answer}");
        }
    }
    let both = json!({ "where": { "run_id": "r-1", "processing_basis": "contract" } });
    assert_eq!(objects(&rpc.result("query", &both)), ["milk"]);
    assert_eq!(rpc.refusal("query", &json!({ "where": { "run_id": 7 } })), "-32602");
    drop(rpc.end());
    for (field, flag, value, expected) in table {
        let answer = place.grain(&["recall", "--json", flag, value]).done().json();
        assert_eq!(objects(&answer), expected, "{flag} {value} of {field}");
    }
    let narrowed = |arguments: &[&str]| {
        let all = [&["recall", "--json"], arguments].concat();
        objects(&place.grain(&all).done().json())
    };
    assert_eq!(narrowed(&["bob", "--run", "r-1"]), Vec::<String>::new());
    assert_eq!(narrowed(&["--text", "tea milk water", "--run", "r-2"]), ["water"]);
    assert_eq!(narrowed(&["--entity", "e-9", "--author", "did:example:bot"]), Vec::<String>::new());
}

#[test]
fn a_withdrawn_consent_is_asked_for_in_vain_and_a_session_sees_no_grain_of_others() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let consent = json!({ "type": "consent", "subject_did": "did:example:ann",
        "grantee_did": "did:example:bot", "scope": ["memory"], "is_withdrawal": false, "created_at": 1 });
    let consent = rpc.result("put", &json!({ "grain": consent }))["address"].clone();
    let resting = belief("milk", 0, &json!({ "processing_basis": consent }));
    rpc.result("put", &json!({ "grain": resting }));
    let resting = json!({ "where": { "processing_basis": consent }, "total": true });
    assert_eq!(objects(&rpc.result("query", &resting)), ["milk"]);
    let withdrawal = json!({ "type": "consent", "subject_did": "did:example:ann",
        "grantee_did": "did:example:bot", "scope": ["memory"], "is_withdrawal": true,
        "prior_consent": consent, "created_at": 2 });
    rpc.result("put", &json!({ "grain": withdrawal }));
    let answer = rpc.result("query", &resting);
    assert_eq!((objects(&answer), &answer["total"]), (Vec::new(), &json!(0)));
    for (object, user) in [("tea", "ann"), ("coffee", "bob")] {
        let grain = belief(
            object,
            0,
            &json!({ "user_id": user, "run_id": "r", "author_did": "did:x:a",
            "entity_id": "e", "processing_basis": "contract" }),
        );
        rpc.result("put", &json!({ "grain": grain }));
    }
    rpc.result("session", &json!({ "namespace": null, "user_id": "ann" }));
    for (field, value) in [
        ("run_id", "r"),
        ("author_did", "did:x:a"),
        ("entity_id", "e"),
        ("processing_basis", "contract"),
    ] {
        let answer = rpc.result("query", &json!({ "where": { field: value }, "total": true }));
        assert_eq!(
            (objects(&answer), &answer["total"]),
            (vec!["tea".to_owned()], &json!(1)),
            "{field}"
        );
    }
}

#[test]
fn a_query_is_sorted_by_time_either_way_over_all_its_pages() {
    let place = Place::with_store();
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    for (at, object) in names.into_iter().enumerate() {
        place.put(&belief(object, i64::try_from(at).unwrap() / 2, &json!({})).to_string());
    }
    let mut rpc = place.rpc();
    rpc.result("open", &json!({ "path": place.path().join("memory.grains"), "read_only": true }));
    let pages = |rpc: &mut Rpc, sort: &str| {
        let mut asked = json!({ "where": { "subject": "alice" }, "limit": 2, "sort": sort });
        let mut times = Vec::new();
        loop {
            let answer = rpc.result("query", &asked);
            let rows = answer["results"].as_array().unwrap().iter();
            times.extend(rows.map(|row| row["grain"]["created_at"].as_i64().unwrap() % 1000));
            match answer["next_cursor"].as_str() {
                Some(cursor) => asked["cursor"] = json!(cursor),
                None => return times,
            }
        }
    };
    assert_eq!(pages(&mut rpc, "oldest"), [0, 0, 1, 1, 2, 2, 3]);
    assert_eq!(pages(&mut rpc, "newest"), [3, 2, 2, 1, 1, 0, 0]);
    let first = rpc.result("query", &json!({ "limit": 1, "sort": "oldest" }));
    let turned = json!({ "limit": 1, "sort": "newest", "cursor": first["next_cursor"] });
    assert_eq!(rpc.refusal("query", &turned), "ERR_CURSOR");
    assert_eq!(rpc.refusal("query", &json!({ "text": "tea", "sort": "oldest" })), "ERR_SCHEMA");
    let near = json!({ "vector": { "values": [1] }, "sort": "newest" });
    assert_eq!(rpc.refusal("query", &near), "ERR_SCHEMA");
    assert_eq!(rpc.refusal("query", &json!({ "sort": "confidence" })), "-32602");
    drop(rpc.end());
    let recalled = |arguments: &[&str]| {
        let all = [&["recall", "--json", "alice"], arguments].concat();
        objects(&place.grain(&all).done().json())
    };
    assert_eq!(recalled(&["--sort", "newest", "--limit", "1"]), ["g"]);
    let oldest = recalled(&["--sort", "oldest", "--limit", "3"]);
    assert!(oldest.len() == 3 && oldest[2].as_str() > "b" && !oldest.contains(&"g".to_owned()));
    for at in 10..40 {
        place.put(&belief("later", at, &json!({})).to_string());
    }
    let oldest = recalled(&["--sort", "oldest"]);
    assert!(oldest.len() == 20 && oldest.contains(&"a".to_owned()), "the first of all: {oldest:?}");
    assert_eq!(place.grain(&["recall", "alice", "--text", "a", "--sort", "oldest"]).code, 2);
    assert_eq!(place.grain(&["recall", "alice", "--sort", "loudest"]).code, 2);
}
