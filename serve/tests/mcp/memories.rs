//! Remembering, recalling, searching, looking back.

use grainstore_serve::Profile;
use serde_json::{Value, json};

use crate::kit::{Conversation, PLAIN, everything, options, options_of};

#[test]
fn what_is_remembered_is_recalled_as_sml_and_found_with_its_address() {
    let (_dir, mut client) = everything();
    client.initialize(PLAIN);
    let address = client.fact("alice", "prefers", "tea <strong>");
    client.done("remember", json!({ "text": "Alice planted roses in the garden" }));
    let result = client.call("recall", json!({ "query": "what does alice prefer" }));
    let context = result["structuredContent"]["context"].as_str().unwrap();
    assert!(
        context.contains(
            r#"<belief subject="alice" confidence="0.8">prefers tea &lt;strong></belief>"#
        ),
        "{context}"
    );
    assert_eq!(result["content"][0]["text"], context);
    assert_eq!(result["structuredContent"]["rows"][0]["address"], address);
    assert_eq!(result["content"][1]["type"], "resource_link");
    assert_eq!(result["content"][1]["uri"], format!("grain://{address}"));
    let found = client.done("search", json!({ "text": "garden", "type": "event" }));
    assert_eq!(found["rows"][0]["grain"]["content"], "Alice planted roses in the garden");
    assert_eq!(client.done("search", json!({ "subject": "alice" }))["rows"][0]["address"], address);
    assert_eq!(client.done("search", json!({ "subject": "nobody" }))["rows"], json!([]));
    let recalled = client.done("recall", json!({ "subject": "alice", "as": "rows" }));
    assert_eq!(recalled["rows"][0]["grain"]["object"], "tea <strong>");
}

#[test]
fn the_same_fact_is_kept_once_and_a_changed_one_replaces_it() {
    let (_dir, mut client) = everything();
    client.initialize(PLAIN);
    let tea = client.fact("alice", "prefers", "tea");
    let fact = json!({ "subject": "alice", "relation": "prefers", "object": "tea" });
    let again = client.done("remember", fact);
    assert_eq!((&again["address"], &again["duplicate"]), (&json!(tea), &json!(true)));
    let coffee = client.done(
        "remember",
        json!({ "subject": "alice", "relation": "prefers", "object": "coffee",
            "replaces": format!("grain://{tea}"), "reason": "she said so" }),
    );
    assert_eq!(coffee["superseded"], tea);
    let latest = json!({ "subject": "alice", "relation": "prefers", "object": "water",
        "replaces": "latest", "reason": "she changed her mind" });
    let water = client.done("remember", latest);
    assert_eq!(water["superseded"], coffee["address"]);
    let stale =
        json!({ "subject": "alice", "relation": "prefers", "object": "juice", "replaces": tea });
    assert_eq!(client.refusal("remember", stale), "ERR_CONFLICT");
    let history = client.done("history", json!({ "subject": "alice", "relation": "prefers" }));
    let objects: Vec<_> =
        history["rows"].as_array().unwrap().iter().map(|row| &row["grain"]["object"]).collect();
    assert_eq!(objects, ["water", "coffee", "tea"]);
    assert_eq!(history["rows"][1]["reason"], "she changed her mind");
    assert_eq!(history["rows"][2]["reason"], "she said so");
    assert_eq!(history["rows"][2]["state"]["superseded_by"], coffee["address"]);
    assert_eq!(history["policy"]["open_to"], "anyone");
    let none = json!({ "subject": "x", "relation": "y", "object": "z", "replaces": "latest" });
    assert_eq!(client.done("remember", none)["superseded"], Value::Null);
}

#[test]
fn a_locked_fact_is_not_replaced_and_history_says_who_may() {
    let (_dir, mut client) = everything();
    client.initialize(PLAIN);
    let grain = json!({ "type": "belief", "subject": "payments", "relation": "requires", "confidence": 1,
        "object": "two signatures", "invalidation_policy": { "mode": "locked" } });
    let locked = client.done("remember", json!({ "grain": grain }))["address"].clone();
    let other = json!({ "subject": "payments", "relation": "requires", "object": "none", "replaces": locked });
    assert_eq!(client.refusal("remember", other), "ERR_INVALIDATION_DENIED");
    let forget = json!({ "address": locked, "reason": "in the way" });
    assert_eq!(client.refusal("forget", forget), "ERR_INVALIDATION_DENIED");
    let history = client.done("history", json!({ "address": locked }));
    assert_eq!(history["policy"]["mode"], "locked");
    assert_eq!(history["policy"]["open_to"], "nobody");
    assert_eq!(
        client.done("search", json!({ "subject": "payments" }))["rows"].as_array().unwrap().len(),
        1
    );
}

#[test]
fn a_fact_has_its_time_its_tags_and_its_owner() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(dir.path());
    (options.namespace, options.user_id) = (Some("work".into()), Some("ann".into()));
    let mut client = Conversation::with(options);
    client.initialize(PLAIN);
    client.done(
        "remember",
        json!({ "subject": "alice", "relation": "works_at", "object": "Acme", "confidence": 0.5,
        "tags": ["job"], "valid_from": "2026-01-01", "valid_to": "2026-06-30" }),
    );
    let found = client.done("search", json!({ "tags": ["job"] }))["rows"][0]["grain"].clone();
    assert_eq!(found["valid_from"], "2026-01-01T00:00:00Z");
    assert!(found["valid_to"].as_str().unwrap().starts_with("2026-06-30T23:59:59"));
    assert_eq!((&found["namespace"], &found["user_id"]), (&json!("work"), &json!("ann")));
    assert_eq!((&found["confidence"], &found["structural_tags"]), (&json!(0.5), &json!(["job"])));
    for (at, rows) in [("2026-06-30", 1), ("2026-07-01", 0), ("2025-12-31T23:59:59Z", 0)] {
        let found = client.done("search", json!({ "valid_at": at }));
        assert_eq!(found["rows"].as_array().unwrap().len(), rows, "{at}");
    }
}

#[test]
fn a_session_of_a_user_stores_nothing_for_everybody() {
    let dir = tempfile::tempdir().unwrap();
    let mut given = options_of(dir.path(), "work", "ann");
    given.profile = Profile::Full;
    let mut client = Conversation::with(given);
    client.initialize(PLAIN);
    for nobody in [
        json!({ "user_id": null }),
        json!({ "user_id": "" }),
        json!({ "user_id": null, "namespace": "" }),
    ] {
        let mut grain = nobody;
        grain["type"] = json!("event");
        grain["content"] = json!(format!("for whom? {grain}"));
        let stored = client.done("remember", json!({ "grain": grain }))["address"].clone();
        let found = client.done("search", json!({ "text": "whom" }))["rows"].clone();
        let row = found.as_array().unwrap().iter().find(|row| row["address"] == stored).unwrap();
        let of = (&row["grain"]["user_id"], &row["grain"]["namespace"]);
        assert_eq!(of, (&json!("ann"), &json!("work")), "{grain}");
    }
    let event = json!({ "text": "in no namespace", "namespace": "" });
    client.done("remember", event);
    let found = client.done("search", json!({ "text": "namespace" }))["rows"][0]["grain"].clone();
    assert_eq!((&found["user_id"], &found["namespace"]), (&json!("ann"), &json!("work")));
    for of in ["bob", " ", "\u{200b}"] {
        let grain = json!({ "type": "event", "content": "x", "user_id": of });
        assert_eq!(client.refusal("remember", json!({ "grain": grain })), "ERR_ACCESS", "{of:?}");
    }
    for value in [json!([]), json!(1), json!({})] {
        let grain = json!({ "type": "event", "content": "x", "user_id": value });
        client.refusal("remember", json!({ "grain": grain }));
    }
    for name in ["user", "ns"] {
        let mut grain = json!({ "type": "event", "content": "by its short key" });
        grain[name] = json!("");
        assert_eq!(client.refusal("remember", json!({ "grain": grain })), "ERR_SCHEMA", "{name}");
    }
    let add = "ADD belief SET subject = \"x\" SET relation = \"y\" SET object = \"z\" SET user_id = \"\" REASON \"r\"";
    assert_eq!(client.refusal("cal", json!({ "query": add })), "CAL-E017");
}

#[test]
fn a_statement_that_writes_runs_with_the_token_of_its_plan() {
    let (_dir, mut client) = everything();
    client.initialize(PLAIN);
    let add = "ADD belief SET subject = \"bob\" SET relation = \"likes\" SET object = $what REASON \"he said so\"";
    let prepared = client.done("cal", json!({ "query": add, "params": { "what": "jazz" } }));
    let prepared = &prepared["prepared"];
    assert!(prepared["changes"].to_string().contains("jazz"), "{prepared}");
    let count = json!({ "query": "RECALL beliefs ABOUT \"bob\" | COUNT" });
    let counted =
        |client: &mut Conversation| client.done("cal", count.clone())["answer"].to_string();
    let before = counted(&mut client);
    let done = client.done("cal", json!({ "token": prepared["token"] }));
    assert!(done["answer"]["content_address"].is_string(), "{done}");
    assert_ne!(counted(&mut client), before);
    assert_eq!(client.refusal("cal", json!({ "token": prepared["token"] })), "ERR_TOKEN");
    let result = client.call("cal", json!({ "query": "RECALL beliefs ABOUT \"bob\" AS sml" }));
    assert!(
        result["content"][0]["text"].as_str().unwrap().contains("likes jazz</belief>"),
        "{result}"
    );
    assert!(client.refusal("cal", json!({ "query": "DELETE everything" })).starts_with("CAL-"));
}
