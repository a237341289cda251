//! Two tenants of one server: neither sees, changes or learns of what is the other's, by whatever route.

use grainstore_serve::Grant;
use serde_json::{Value, json};

use crate::kit::{Served, belief};

/// A text that stands in the grains of one tenant alone.
const SECRET: &str = "xylophone-7";

/// A server with a grain of each of two tenants: their tokens, and the address of the first one's grain.
fn two() -> (Served, String, String, String) {
    let served = Served::new();
    let (acme, umbrella) = (served.tenant("acme"), served.tenant("umbrella"));
    let address = served.put(&acme, "acme", SECRET, "strings");
    served.put(&umbrella, "umbrella", "harp", "strings");
    (served, acme, umbrella, address)
}

#[test]
fn no_reading_route_shows_another_tenants_grain() {
    let (served, acme, umbrella, address) = two();
    let short: String = address.chars().take(8).collect();
    let gets = [
        format!("/v1/grains/{address}"),
        format!("/v1/grains/{address}/policy"),
        format!("/v1/grains/{address}/history"),
        format!("/v1/grains/{address}/versions?towards=older"),
        format!("/v1/grains/{address}/ancestry"),
        format!("/v1/grains/{address}/children"),
        format!("/v1/grains/{address}/related"),
        format!("/v1/addresses?prefix={short}"),
        format!("/v1/history?subject={SECRET}&relation=prefers"),
        format!("/v1/history?subject={SECRET}&relation=prefers&namespace=acme"),
        format!("/v1/latest?subject={SECRET}&relation=prefers&namespace=acme"),
        format!("/v1/graph/neighbours?node={SECRET}"),
        format!("/v1/graph/paths?from={SECRET}&to=strings"),
        format!("/v1/threads?message={address}"),
        "/v1/audit?limit=1000".into(),
        "/v1/audit?reads=true".into(),
        "/v1/audit?by=did:web:x".into(),
        "/v1/stats".into(),
        "/v1/doctor".into(),
        "/v1/users/ann/report".into(),
        "/v1/audit/segments".into(),
        "/v1/metrics.json".into(),
        "/metrics".into(),
    ];
    for path in gets {
        let answer = served.get(&umbrella, &path);
        let text = answer.text();
        assert!(!text.contains(&address) || path.contains(&address), "{path}: {text}");
        let told = text
            .replace(&path, "")
            .replace(SECRET, if path.contains(SECRET) { "" } else { SECRET });
        let names = told.contains("acme") && !path.contains("acme");
        assert!(!told.contains(SECRET) && !names, "{path}: {text}");
        assert!(answer.status < 500, "{path}: {text}");
    }
    let text = |query: &str| json!({ "query": query });
    let posts = [
        ("/v1/grains/get", json!({ "addresses": [address] })),
        ("/v1/query", json!({ "text": "strings", "explain": true, "total": true })),
        ("/v1/query", json!({ "where": { "namespace": "acme" } })),
        ("/v1/cal", text("RECALL WHERE query = \"strings\"")),
        ("/v1/cal", json!({ "query": "RECALL beliefs", "namespace": "acme" })),
        ("/v1/cal", text("RECALL beliefs WHERE namespace = \"acme\"")),
        ("/v1/cal", text(&format!("HISTORY sha256:{address}"))),
        ("/v1/cal", text("DESCRIBE namespaces")),
        ("/v1/cal", text("DESCRIBE server")),
        ("/v1/cal", text("EXPLAIN RECALL beliefs ABOUT \"strings\"")),
        ("/v1/policy/explain", json!({ "address": address })),
    ];
    for (path, body) in posts {
        let answer = served.post(&umbrella, path, &body);
        let told = answer.text();
        let given = body.to_string();
        assert!(!told.contains(SECRET), "{path} {body}: {told}");
        assert!(given.contains(&address) || !told.contains(&address), "{path} {body}: {told}");
    }
    assert_eq!(served.get(&acme, &format!("/v1/grains/{address}")).status, 200);
}

#[test]
fn no_writing_route_changes_another_tenants_grain() {
    let (served, acme, umbrella, address) = two();
    let reason = json!({ "reason": "mine now" });
    let grain = belief("umbrella", SECRET, "drums");
    for (path, body) in [
        ("supersede", json!({ "grain": grain })),
        ("contradict", reason.clone()),
        ("verification", json!({ "status": "retracted", "reason": "r" })),
        ("hold", reason.clone()),
        ("lift-hold", reason.clone()),
        ("erase", reason.clone()),
        ("vectors", json!({ "vectors": [{ "model": "m", "values": [1.0] }] })),
        ("disclose", json!({ "hide": ["subject"] })),
    ] {
        let refused = served.post(&umbrella, &format!("/v1/grains/{address}/{path}"), &body);
        assert!([403, 404].contains(&refused.status), "{path}: {refused:?}");
        assert!(!refused.text().contains("acme"), "{path}: {}", refused.text());
    }
    let into = served.post(&umbrella, "/v1/grains", &json!({ "grain": belief("acme", "x", "y") }));
    assert_eq!(into.refusal(), (403, "ERR_ACCESS".into()));
    for erased in ["/v1/users/ann/erase", "/v1/sweep"] {
        let body = if erased.ends_with("sweep") { json!({}) } else { reason.clone() };
        assert_eq!(served.post(&umbrella, erased, &body).refusal(), (403, "ERR_ACCESS".into()));
    }
    let state = served.get(&acme, &format!("/v1/grains/{address}")).json()["state"].clone();
    assert_eq!(state["superseded_by"], Value::Null);
    assert_eq!((&state["contradicted"], &state["held"]), (&json!(false), &json!(false)));
}

#[test]
fn cursors_and_prepared_statements_are_of_who_got_them() {
    let (served, acme, umbrella, _) = two();
    served.put(&acme, "acme", "second", "strings");
    let page = served.post(&acme, "/v1/query", &json!({ "limit": 1 })).json();
    let cursor = page["next_cursor"].as_str().unwrap();
    let stolen = served.post(&umbrella, "/v1/query", &json!({ "limit": 1, "cursor": cursor }));
    assert_eq!(stolen.refusal(), (410, "ERR_CURSOR".into()));

    let write =
        "ADD belief SET subject = \"x\" SET relation = \"is\" SET object = \"y\" REASON \"r\"";
    let prepared = served.post(&acme, "/v1/cal/prepare", &json!({ "query": write, "tier": 1 }));
    let token = prepared.json()["token"].clone();
    let stolen = served.post(&umbrella, "/v1/cal/execute", &json!({ "token": token }));
    assert_eq!(stolen.refusal(), (403, "ERR_TOKEN".into()));
    let executed = served.post(&acme, "/v1/cal/execute", &json!({ "token": token }));
    assert_eq!(executed.status, 200, "{executed:?}");
    let replayed = served.post(&acme, "/v1/cal/execute", &json!({ "token": token }));
    assert_eq!(replayed.refusal(), (403, "ERR_TOKEN".into()));
}

#[test]
fn a_user_sees_their_own_and_nobodys() {
    let served = Served::new();
    let of = |user: &str| {
        let user_id = Some(user.to_owned());
        served.token(Grant { user_id, writes: true, ..Grant::default() })
    };
    let (ann, bob) = (of("ann"), of("bob"));
    let mut grain = belief("shared", "diary", SECRET);
    grain["user_id"] = json!("ann");
    let address =
        served.post(&ann, "/v1/grains", &json!({ "grain": grain })).json()["address"].clone();
    let address = address.as_str().unwrap();
    assert_eq!(served.get(&bob, &format!("/v1/grains/{address}")).status, 404);
    assert!(!served.post(&bob, "/v1/query", &json!({ "text": SECRET })).text().contains(address));
    assert_eq!(served.get(&bob, "/v1/users/ann/report").refusal(), (403, "ERR_ACCESS".into()));
    let as_ann = json!({ "query": "RECALL beliefs", "user_id": "ann" });
    assert_eq!(served.post(&bob, "/v1/cal", &as_ann).refusal().0, 403);
    assert_eq!(served.get(&ann, &format!("/v1/grains/{address}")).status, 200);
}

#[test]
fn a_token_without_the_operators_rights_has_none_though_the_store_names_no_operator() {
    let served = Served::new();
    // Over the whole store, with an actor of its own.
    let actor = Some("did:web:bot.example".to_owned());
    let bot = served.token(Grant { actor, writes: true, ..Grant::default() });
    let address = served.put(&bot, "team", "alice", "tea");
    let reason = json!({ "reason": "because" });
    for (path, body) in [
        ("/v1/sweep".to_owned(), json!({})),
        ("/v1/checkpoint".to_owned(), json!({})),
        (format!("/v1/grains/{address}/erase"), reason.clone()),
        ("/v1/users/ann/erase".to_owned(), reason.clone()),
        ("/v1/policy".to_owned(), json!({ "rules": "", "reason": "r" })),
        ("/v1/cal/switch".to_owned(), json!({ "to": "off", "reason": "r" })),
        ("/v1/verify".to_owned(), json!({})),
        ("/v1/reindex".to_owned(), json!({})),
        ("/v1/compact".to_owned(), json!({})),
    ] {
        let refused = served.post(&bot, &path, &body);
        assert_eq!(refused.refusal(), (403, "ERR_ACCESS".into()), "{path}");
    }
    for path in ["/v1/stats", "/v1/doctor", "/metrics", "/v1/metrics.json", "/v1/audit/segments"] {
        assert_eq!(served.get(&bot, path).refusal(), (403, "ERR_ACCESS".into()), "{path}");
    }
    assert_eq!(served.post(&bot, &format!("/v1/grains/{address}/hold"), &reason).status, 200);
    let lifted = served.post(&bot, &format!("/v1/grains/{address}/lift-hold"), &reason);
    assert_eq!(lifted.status, 403, "{lifted:?}");
    let operator = served.operator();
    assert_eq!(
        served.post(&operator, &format!("/v1/grains/{address}/lift-hold"), &reason).status,
        200
    );
    assert_eq!(served.get(&operator, "/v1/stats").status, 200);
}

#[test]
fn a_token_of_tier_0_writes_by_no_route() {
    let served = Served::new();
    let operator = served.operator();
    let address = served.put(&operator, "team", "alice", "tea");
    let reads = served.token(Grant { namespace: Some("team".into()), ..Grant::default() });
    let document = served.get(&reads, "/v1/openapi.json").json();
    let mut refused = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for verb in ["post", "delete"] {
            let Some(operation) = item.get(verb) else { continue };
            if !operation["summary"].as_str().unwrap().contains("For tokens of tier 1.") {
                continue;
            }
            // Something for every parameter that is required, so that this is what it is refused for.
            let path = path.replace("{address}", &address).replace("{user_id}", "ann");
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            let mut body = json!({});
            for name in schema["required"].as_array().into_iter().flatten() {
                body[name.as_str().unwrap()] = json!("x");
            }
            let answer = served.post(&reads, &path, &body);
            assert_eq!(answer.refusal(), (403, "ERR_ACCESS".into()), "{path}");
            refused += 1;
        }
    }
    assert!(refused >= 14, "{refused}");
    let write =
        "ADD belief SET subject = \"x\" SET relation = \"is\" SET object = \"y\" REASON \"r\"";
    for tier in [json!(1), json!("1"), json!(0.5), json!(true)] {
        let prepared =
            served.post(&reads, "/v1/cal/prepare", &json!({ "query": write, "tier": tier }));
        assert_eq!(prepared.refusal(), (403, "CAL-E044".into()), "{tier}");
    }
    let prepared = served.post(&reads, "/v1/cal/prepare", &json!({ "query": write }));
    assert_eq!(prepared.refusal(), (403, "CAL-E044".into()));
    assert_eq!(
        served.post(&reads, "/v1/cal", &json!({ "query": write })).refusal(),
        (403, "CAL-E044".into())
    );
    // A statement that somebody else has prepared.
    let team = served.tenant("team");
    let token = served.post(&team, "/v1/cal/prepare", &json!({ "query": write, "tier": 1 })).json()
        ["token"]
        .clone();
    let mut lowered = token.clone();
    lowered["tier"] = json!(0);
    for token in [token, lowered] {
        let stolen = served.post(&reads, "/v1/cal/execute", &json!({ "token": token }));
        assert_eq!(stolen.status, 403, "{stolen:?}");
    }
    let all = served.post(&operator, "/v1/query", &json!({ "total": true })).json();
    assert_eq!(all["total"], 1);
}
