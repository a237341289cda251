//! The routes: what they answer, and what is told of what they refuse.

use serde_json::{Value, json};

use crate::kit::{Served, belief};

#[test]
fn a_grain_is_put_read_replaced_and_erased() {
    let served = Served::new();
    let token = served.operator();
    let grain = belief("team", "alice", "tea");
    let put = served.post(&token, "/v1/grains", &json!({ "grain": grain }));
    assert_eq!(put.status, 201);
    let address = put.json()["address"].as_str().unwrap().to_owned();
    let place = format!("/v1/grains/{address}");
    assert_eq!(put.header("location"), Some(place.as_str()));
    let again = served.post(&token, "/v1/grains", &json!({ "grain": grain }));
    assert_eq!((again.status, &again.json()["duplicate"]), (200, &json!(true)));
    let got = served.get(&token, &place);
    assert_eq!((got.status, &got.json()["grain"]["object"]), (200, &json!("tea")));
    let new = json!({ "grain": belief("team", "alice", "coffee"), "justification": "she said so" });
    let replaced = served.post(&token, &format!("{place}/supersede"), &new);
    assert_eq!(replaced.status, 201, "{replaced:?}");
    let again = served.post(
        &token,
        &format!("{place}/supersede"),
        &json!({ "grain": belief("team", "alice", "milk") }),
    );
    assert_eq!(again.refusal(), (409, "ERR_CONFLICT".into()));
    let history = served.get(&token, &format!("{place}/history")).json();
    assert_eq!(history["versions"].as_array().unwrap().len(), 2);
    let dry =
        served.post(&token, &format!("{place}/erase"), &json!({ "reason": "r", "dry_run": true }));
    assert_eq!((dry.status, &dry.json()["certificate"]), (200, &Value::Null));
    let erased = served.post(
        &token,
        &format!("{place}/erase"),
        &json!({ "reason": "asked for", "now": true }),
    );
    assert_eq!((erased.status, &erased.json()["scrubbed"]), (200, &json!(true)));
    assert_eq!(served.get(&token, &place).refusal(), (410, "ERR_ERASED".into()));
    let again = served.post(&token, "/v1/grains", &json!({ "grain": grain }));
    assert_eq!(again.refusal(), (410, "ERR_ERASED".into()));
}

#[test]
fn every_route_of_the_document_is_there_and_takes_what_it_says() {
    let served = Served::new();
    let token = served.operator();
    let document = served.raw(served.head("GET /v1/openapi.json", &[])).json();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document, grainstore_serve::openapi());
    let address = served.put(&token, "team", "alice", "tea");
    let mut seen = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (verb, operation) in item.as_object().unwrap() {
            seen += 1;
            let path = path.replace("{address}", &address).replace("{user_id}", "ann");
            let path = path.replace("{id}", "x").replace("{model}", "none");
            // An unknown parameter is refused by name, so the route is there.
            let answer = match verb.as_str() {
                "get" => served.get(&token, &format!("{path}?surely_unknown=1")),
                "post" => served.post(&token, &path, &json!({ "surely_unknown": 1 })),
                "delete" => {
                    let bearer = format!("Bearer {token}");
                    served
                        .raw(served.head(&format!("DELETE {path}"), &[("Authorization", &bearer)]))
                }
                other => panic!("{other}"),
            };
            assert!(answer.status < 500 && answer.status != 405, "{verb} {path}: {answer:?}");
            let declared = operation["responses"].get(answer.status.to_string());
            assert!(declared.is_some(), "{verb} {path} answers {}", answer.status);
        }
    }
    assert!(seen > 60, "{seen}");
}

#[test]
fn the_committed_document_is_the_servers() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/openapi.json");
    let document = serde_json::to_string_pretty(&grainstore_serve::openapi()).unwrap() + "\n";
    if std::env::var_os("GRAINSTORE_BLESS").is_some() {
        std::fs::write(&file, &document).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(committed == document, "GRAINSTORE_BLESS=1 writes docs/openapi.json anew");
}

#[test]
fn what_is_refused_says_where_and_what_to_do() {
    let served = Served::new();
    let token = served.operator();
    let cal = served.post(&token, "/v1/cal", &json!({ "query": "RECALL belifs ABOUT \"alice\"" }));
    assert_eq!(cal.refusal(), (422, "CAL-E003".into()));
    assert_eq!(cal.json()["position"]["start"], 7);
    for (path, body, status, code) in [
        ("/v1/grains", json!({}), 400, "ERR_SCHEMA"),
        ("/v1/grains", json!({ "grain": {} }), 422, "ERR_NO_TYPE"),
        ("/v1/grains", json!({ "grain": { "type": "belief" } }), 422, "ERR_SCHEMA"),
        ("/v1/grains", json!({ "grain": 1 }), 422, "ERR_NOT_MAP"),
        ("/v1/grains", json!({ "blob": "!" }), 400, "ERR_SCHEMA"),
        ("/v1/query", json!({ "where": { "nothing": 1 } }), 400, "ERR_SCHEMA"),
        ("/v1/query", json!({ "cursor": "x" }), 410, "ERR_CURSOR"),
        ("/v1/query", json!({ "limit": 10_001 }), 422, "ERR_LIMIT"),
        ("/v1/cal/execute", json!({ "token": {} }), 403, "ERR_TOKEN"),
    ] {
        let refused = served.post(&token, path, &body);
        assert_eq!(refused.refusal(), (status, code.into()), "{path} {body}: {}", refused.text());
    }
    for (path, status, code) in [
        ("/v1/grains/xyz", 422, "ERR_HASH_LENGTH"),
        ("/v1/grains/..%2f..%2fetc%2fpasswd", 422, "ERR_HASH_LENGTH"),
        ("/v1/grains/%ff", 400, "ERR_SCHEMA"),
        ("/v1/grains/../../etc/passwd", 404, "ERR_NOT_FOUND"),
        ("/console.js/../../../Cargo.toml", 404, "ERR_NOT_FOUND"),
        ("//v1", 404, "ERR_NOT_FOUND"),
        ("/v1/", 404, "ERR_NOT_FOUND"),
        ("/.git/config", 404, "ERR_NOT_FOUND"),
        ("/tokens.json", 404, "ERR_NOT_FOUND"),
    ] {
        let refused = served.get(&token, path);
        assert_eq!(refused.refusal(), (status, code.into()), "{path}: {}", refused.text());
    }
}

#[test]
fn a_statement_is_sent_as_text_and_as_json_and_writes_in_two_phases() {
    let served = Served::new();
    let token = served.operator();
    served.put(&token, "team", "alice", "tea");
    let text = served.send(
        &token,
        "/v1/cal",
        "text/cal; charset=utf-8",
        b"RECALL beliefs ABOUT \"alice\"",
    );
    let json = br#"{"statement":"recall","grain_type":"beliefs","about":"alice"}"#;
    let json = served.send(&token, "/v1/cal", "application/json+cal", json);
    assert_eq!(text.json()["results"], json.json()["results"]);
    assert_eq!(
        served.send(&token, "/v1/cal", "text/cal", b"RECALL \xff").refusal(),
        (422, "CAL-E070".into())
    );
    let write = "ADD belief SET subject = \"bob\" SET relation = \"likes\" SET object = \"tea\" REASON \"he said so\"";
    let query = json!({ "query": write, "tier": 1, "namespace": "team" });
    let prepared = served.post(&token, "/v1/cal/prepare", &query).json();
    assert_eq!(prepared["tier"], 1);
    let done = served.post(&token, "/v1/cal/execute", &json!({ "token": prepared["token"] }));
    assert!(done.json()["content_address"].is_string(), "{done:?}");
    let hello = served.get(&token, "/v1").json();
    assert_eq!(hello["cal_one_step_writes"], false);
    let exceptions = hello["cal_exceptions"].to_string();
    assert!(!exceptions.contains("11.3") && !exceptions.contains("11.6"), "{exceptions}");
    assert!(exceptions.contains("16.4"), "{exceptions}");
}

#[test]
fn a_path_names_the_verbs_it_takes_and_null_is_left_out() {
    let served = Served::new();
    let token = served.operator();
    for (path, allow) in [("/v1/grains/batch", "POST"), ("/mcp", "POST"), ("/v1/cal/socket/", "")] {
        let refused = served.get(&token, path);
        assert_eq!(refused.header("allow").unwrap_or_default(), allow, "{path}");
    }
    let query = json!({ "where": null, "limit": null, "explain": null, "text": null });
    assert_eq!(served.post(&token, "/v1/query", &query).status, 200);
    let refused = served.post(&token, "/v1/verify", &json!({ "checkpoint": 1 }));
    assert_eq!(refused.refusal().0, 400);
}

#[test]
fn what_may_follow_is_told_while_somebody_types() {
    let served = Served::new();
    let token = served.operator();
    let told = served.post(&token, "/v1/cal/complete", &json!({ "before": "RECALL bel" })).json();
    assert_eq!(told["start"], 7);
    assert_eq!(told["candidates"][0]["insert"], "beliefs ", "{told}");
    served.put(&token, "team", "\u{1f375} alice", "tea");
    let told = served
        .post(&token, "/v1/cal/complete", &json!({ "before": "RECALL \u{1f375} ABOUT \"" }))
        .json();
    assert_eq!(told["start"], 17, "in UTF-16: {told}");
    let other = served.tenant("other");
    for (token, count) in [(&served.operator(), 1), (&other, 0)] {
        let told =
            served.post(token, "/v1/cal/complete", &json!({ "before": "RECALL ABOUT \"" })).json();
        assert_eq!(told["candidates"].as_array().unwrap().len(), count, "{told}");
    }
}
