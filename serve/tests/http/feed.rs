//! The change feed.

use serde_json::json;

use crate::kit::{Lines, Served, belief};

fn feed(served: &Served, token: &str, after: &str) -> Lines {
    let bearer = format!("Bearer {token}");
    served.lines(served.head(&format!("GET /v1/changes{after}"), &[("Authorization", &bearer)]))
}

#[test]
fn what_becomes_of_grains_is_told_as_it_happens_and_gone_on_from() {
    let served = Served::new();
    let token = served.operator();
    let mut changes = feed(&served, &token, "");
    assert_eq!((changes.status, changes.header("content-type")), (200, Some("text/event-stream")));
    let address = served.put(&token, "team", "alice", "tea");
    let (first, name, told) = changes.event().unwrap();
    assert_eq!((name.as_str(), &told["subjects"]), ("new", &json!([address])));
    let place = format!("/v1/grains/{address}");
    let coffee = json!({ "grain": belief("team", "alice", "coffee") });
    let new = served.post(&token, &format!("{place}/supersede"), &coffee).json()["address"].clone();
    let (_, name, told) = changes.event().unwrap();
    assert!(told["subjects"].as_array().unwrap().contains(&new), "{told}");
    assert_eq!(name, "superseded");
    let again = served.post(
        &token,
        &format!("{place}/supersede"),
        &json!({ "grain": belief("team", "alice", "milk") }),
    );
    assert_eq!(again.status, 409);
    let held = served.post(
        &token,
        &format!("/v1/grains/{}/hold", new.as_str().unwrap()),
        &json!({ "reason": "r" }),
    );
    assert_eq!(held.status, 200);
    let mut names = Vec::new();
    while names.last().is_none_or(|name| name != "changed") {
        names.push(changes.event().unwrap().1);
    }
    served.post(&token, &format!("{place}/erase"), &json!({ "reason": "asked for" }));
    assert_eq!(changes.event().unwrap().1, "erased");
    drop(changes);
    // From any of them on.
    let mut later = feed(&served, &token, &format!("?after={first}"));
    assert_eq!(later.event().unwrap().1, "superseded");
    let bearer = format!("Bearer {token}");
    let last = first.to_string();
    let headers = [("Authorization", &*bearer), ("Last-Event-ID", &last)];
    let mut later = served.lines(served.head("GET /v1/changes", &headers));
    assert_eq!(later.event().unwrap().1, "superseded");
}

#[test]
fn a_refusal_is_told_with_its_code() {
    let served = Served::new();
    let token = served.operator();
    let mut grain = belief("team", "rule", "stays");
    grain["invalidation_policy"] = json!({ "mode": "locked" });
    let locked =
        served.post(&token, "/v1/grains", &json!({ "grain": grain })).json()["address"].clone();
    let mut changes = feed(&served, &token, "");
    let path = format!("/v1/grains/{}/supersede", locked.as_str().unwrap());
    let refused = served.post(&token, &path, &json!({ "grain": belief("team", "rule", "goes") }));
    assert_eq!(refused.refusal(), (403, "ERR_INVALIDATION_DENIED".into()));
    let (_, name, told) = changes.event().unwrap();
    assert_eq!((name.as_str(), &told["code"]), ("refused", &json!("ERR_INVALIDATION_DENIED")));
}

#[test]
fn a_tenant_is_told_of_its_own_alone() {
    let served = Served::new();
    let (acme, umbrella) = (served.tenant("acme"), served.tenant("umbrella"));
    let mut changes = feed(&served, &umbrella, "?after=0");
    let secret = served.put(&acme, "acme", "secret", "tea");
    let own = served.put(&umbrella, "umbrella", "open", "tea");
    let (_, _, told) = changes.event().unwrap();
    assert_eq!(told["subjects"], json!([own]), "not {secret}");
}

#[test]
fn a_feed_ends_with_its_token_and_a_sequence_of_another_store_is_refused() {
    let served = Served::new();
    let token = served.tenant("team");
    let bearer = format!("Bearer {token}");
    let beyond =
        served.raw(served.head("GET /v1/changes?after=999999", &[("Authorization", &bearer)]));
    assert_eq!(beyond.refusal(), (410, "ERR_CURSOR".into()));
    for wrong in ["?after=", "?after=-1", "?after=x", "?before=1", "?after=1&after=2"] {
        let refused = served
            .raw(served.head(&format!("GET /v1/changes{wrong}"), &[("Authorization", &bearer)]));
        assert_eq!(refused.refusal().0, 400, "{wrong}");
    }
    let mut feeds: Vec<_> = (0..8).map(|_| feed(&served, &token, "")).collect();
    let ninth = served.raw(served.head("GET /v1/changes", &[("Authorization", &bearer)]));
    assert_eq!(ninth.refusal().0, 429);
    let mut changes = feeds.pop().unwrap();
    drop(feeds);
    let id = token.split('_').nth(1).unwrap();
    grainstore_serve::Tokens::of(served.path()).revoke(id).unwrap();
    served.put(&served.operator(), "team", "alice", "tea");
    assert!(changes.event().is_none(), "it has ended");
}

#[test]
fn entries_that_are_too_large_for_one_answer_are_all_told() {
    let served = Served::new();
    let token = served.operator();
    let address = served.put(&token, "team", "alice", "tea");
    // Twice as long in JSON.
    let reason = json!({ "reason": "\"".repeat(16_000) });
    for _ in 0..150 {
        for path in ["hold", "lift-hold"] {
            assert_eq!(
                served.post(&token, &format!("/v1/grains/{address}/{path}"), &reason).status,
                200
            );
        }
    }
    let page = served.get(&token, "/v1/audit?after=0&limit=500");
    assert_eq!(page.refusal(), (422, "ERR_LIMIT".into()), "an answer has no room for them");
    let mut changes = feed(&served, &token, "?after=0");
    let names: Vec<_> = (0..301).map(|_| changes.event().unwrap().1).collect();
    assert_eq!(names.iter().filter(|name| *name == "changed").count(), 300);
}
