//! The methods of `grain rpc` that follow what grains say of each other.

use serde_json::{Value, json};

use crate::kit::{Place, Rpc, belief};

fn put(rpc: &mut Rpc, grain: &Value) -> String {
    rpc.result("put", &json!({ "grain": grain }))["address"].as_str().unwrap().to_owned()
}

/// A belief that `subject` prefers `object`.
fn edge(rpc: &mut Rpc, subject: &str, object: &str) -> String {
    put(rpc, &serde_json::from_str(&belief(subject, object)).unwrap())
}

fn with(grain: &str, fields: &Value) -> Value {
    let mut grain: Value = serde_json::from_str(grain).unwrap();
    for (name, value) in fields.as_object().unwrap() {
        grain[name] = value.clone();
    }
    grain
}

#[test]
fn edges_and_paths_are_told_as_their_grains() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let first = edge(&mut rpc, "a", "b");
    let second = edge(&mut rpc, "b", "c");
    let told = |subject, object, address| {
        json!({
            "subject": subject, "relation": "prefers", "object": object, "address": address,
        })
    };
    let (ab, bc) = (told("a", "b", &first), told("b", "c", &second));
    for (direction, expected) in [("out", vec![&bc]), ("in", vec![&ab])] {
        let params = json!({ "node": "b", "direction": direction, "relation": "prefers" });
        let answer = rpc.result("neighbours", &params);
        assert_eq!(answer, json!({ "edges": expected, "more": false }), "{direction}");
    }
    let both = rpc.result("neighbours", &json!({ "node": "b", "limit": 1 }));
    assert_eq!((both["edges"].as_array().unwrap().len(), &both["more"]), (1, &json!(true)));
    let paths = rpc.result("paths", &json!({ "from": "a", "to": "c", "direction": "out" }));
    assert_eq!(paths, json!({ "paths": [[ab, bc]], "more": false }));
    let none = rpc.result("paths", &json!({ "from": "a", "to": "c", "max_hops": 1 }));
    assert_eq!(none, json!({ "paths": [], "more": false }));
    for (method, params) in [
        ("neighbours", json!({ "node": "a", "limit": 1_000_000_000 })),
        ("paths", json!({ "from": "a", "to": "c", "max_hops": 7 })),
        ("paths", json!({ "from": "a", "to": "c", "limit": 1_000_000_000 })),
        ("ancestry", json!({ "address": first, "limit": 1_000_000_000 })),
        ("children", json!({ "address": first, "limit": 1_000_000_000 })),
        ("related", json!({ "address": first, "limit": 1_000_000_000 })),
        ("versions", json!({ "address": first, "towards": "older", "limit": 1_000_000_000 })),
    ] {
        assert_eq!(rpc.refusal(method, &params), "ERR_LIMIT", "{method}");
    }
    let sideways = json!({ "node": "a", "direction": "sideways" });
    assert_eq!(rpc.refusal("neighbours", &sideways), "-32602");
}

#[test]
fn descent_and_cross_links_are_told_both_ways() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let parent = edge(&mut rpc, "parent", "tea");
    let links = json!({
        "derived_from": [parent],
        "related_to": [{ "hash": parent, "relation_type": "supports" }],
    });
    let child = put(&mut rpc, &with(&belief("child", "tea"), &links));
    for (method, of, found) in [("ancestry", &child, &parent), ("children", &parent, &child)] {
        let answer = rpc.result(method, &json!({ "address": of }));
        assert_eq!(answer["grains"][0]["address"], *found, "{method}");
        assert_eq!(answer["grains"][0]["hops"], 1, "{method}");
        assert!(answer["grains"][0]["state"]["superseded_by"].is_null(), "{method}");
    }
    for (of, other, direction) in [(&child, &parent, "out"), (&parent, &child, "in")] {
        let answer = rpc.result("related", &json!({ "address": of, "kind": "supports" }));
        let link = json!({ "address": other, "kind": "supports", "direction": direction });
        assert_eq!(answer, json!({ "links": [link], "more": false }));
    }
    let absent = "0".repeat(64);
    for method in ["ancestry", "children", "related"] {
        assert_eq!(rpc.refusal(method, &json!({ "address": absent })), "ERR_NOT_FOUND");
        assert_eq!(rpc.refusal(method, &json!({ "address": "x" })), "ERR_HASH_LENGTH");
    }
}

#[test]
fn versions_and_the_latest_of_them() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let old = edge(&mut rpc, "a", "tea");
    let grain = serde_json::from_str::<Value>(&belief("a", "coffee")).unwrap();
    let new = rpc.result("supersede", &json!({ "old": old, "grain": grain }))["address"].clone();
    for (towards, from, expected) in
        [("older", &new, [&new, &json!(old)]), ("newer", &json!(old), [&json!(old), &new])]
    {
        let answer = rpc.result("versions", &json!({ "address": from, "towards": towards }));
        let versions = answer["versions"].as_array().unwrap();
        let addresses: Vec<_> = versions.iter().map(|version| &version["address"]).collect();
        assert_eq!((addresses.as_slice(), &answer["more"]), (&expected[..], &json!(false)));
    }
    let latest = |fields: Value| {
        let mut params = json!({ "subject": "a", "relation": "prefers" });
        params.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        params
    };
    let answer = rpc.result("latest", &latest(json!({})));
    assert_eq!(answer["version"]["address"], new);
    assert_eq!(answer["version"]["grain"]["object"], "coffee");
    let answer = rpc.result("latest", &latest(json!({ "as_of": 5 })));
    assert_eq!(answer, json!({ "version": null }));
    let answer = rpc.result("latest", &latest(json!({ "namespace": "elsewhere" })));
    assert_eq!(answer, json!({ "version": null }));
}

#[test]
fn threads_are_found_by_message_session_and_state() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let event = r#"{"type": "event", "role": "user", "content": "hello", "session_id": "s"}"#;
    let root = put(&mut rpc, &with(event, &json!({ "created_at": 1000 })));
    let reply = json!({ "created_at": 2000, "parent_message_id": root });
    let reply = put(&mut rpc, &with(event, &reply));
    let state = json!({ "created_at": 3000, "context": { "messages_tail": reply } });
    let state = put(&mut rpc, &with(r#"{"type": "state"}"#, &state));
    let thread = json!({
        "messages": [
            { "address": root, "parent": null, "time": 1000 },
            { "address": reply, "parent": root, "time": 2000 },
        ],
        "roots": [root], "heads": [reply], "branch_points": [],
    });
    for (name, value) in [("message", &root), ("session_id", &"s".to_owned()), ("state", &state)] {
        assert_eq!(rpc.result("thread", &json!({ name: value })), thread, "{name}");
    }
    assert_eq!(rpc.refusal("thread", &json!({})), "-32602");
    assert_eq!(rpc.refusal("thread", &json!({ "message": root, "session_id": "s" })), "-32602");
    assert_eq!(rpc.refusal("thread", &json!({ "message": state })), "ERR_SCHEMA");
}

#[test]
fn agents_are_known_by_owner_capability_and_handoff() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let identity = |relation: &str, fields: Value| {
        let mut grain = with(&belief("did:a", "Example Corp"), &fields);
        grain["relation"] = json!(relation);
        grain["namespace"] = json!("agent:identity");
        grain
    };
    let owned = identity(
        "mg:owned_by",
        json!({ "author_did": "did:corp", "invalidation_policy": { "mode": "locked" } }),
    );
    let owned = put(&mut rpc, &owned);
    let answer = rpc.result("owner", &json!({ "agent": "did:a" }));
    let owner = json!({
        "address": owned, "name": "Example Corp", "entity": null, "author": "did:corp",
    });
    assert_eq!(answer, json!({ "owner": owner, "other_claims": [] }));
    let nobody = rpc.result("owner", &json!({ "agent": "did:b" }));
    assert_eq!(nobody, json!({ "owner": null, "other_claims": [] }));

    let card = json!({ "name": "Summarizer", "supported_tools": ["summarize"] });
    let able = put(&mut rpc, &identity("mg:has_capability", json!({ "object": card })));
    let told = json!({
        "capabilities": [{ "address": able, "agent": "did:a", "capability": card }], "more": false,
    });
    for params in [json!({ "agent": "did:a" }), json!({ "name": "summarize" })] {
        assert_eq!(rpc.result("capabilities", &params), told, "{params}");
    }
    assert_eq!(rpc.refusal("capabilities", &json!({})), "-32602");

    let goal = json!({
        "type": "goal", "subject": "did:a", "relation": "mg:delegates_to", "object": "did:b",
        "description": "finish it", "goal_state": "active", "criteria": ["it is done"],
        "source_type": "system", "created_at": 1000, "session_id": "s",
    });
    let goal = put(&mut rpc, &goal);
    let answer = rpc.result("handoffs", &json!({ "session_id": "s" }));
    let handoff = json!({
        "address": goal, "from": "did:a", "to": "did:b", "return_to": null,
        "context_grains": [], "completed_by": null,
    });
    assert_eq!(answer, json!({ "handoffs": [handoff], "more": false }));
}

#[test]
fn accesses_are_counted_and_kept() {
    let place = Place::with_store();
    let address = place.put(&belief("a", "tea"));
    let get = || place.grain(&["get", &address, "--json"]).done().json()["state"].clone();
    let first = get();
    assert_eq!((&first["access_count"], &first["last_accessed_at"]), (&json!(0), &Value::Null));
    let second = get();
    assert_eq!(second["access_count"], 1);
    assert!(second["last_accessed_at"].is_i64());
}

#[test]
fn access_is_not_counted_by_a_command_or_a_store_that_is_told_not_to() {
    let place = Place::with_store();
    let address = place.put(&belief("a", "tea"));
    let assemble = r#"ASSEMBLE FROM (RECALL beliefs ABOUT "a") BUDGET 50 grains"#;
    let asking: [&[&str]; 3] = [&["get", &address], &["recall", "a"], &["cal", assemble]];
    for asked in asking {
        place.grain(&[&["--no-access-counts"], asked].concat()).done();
    }
    place.grain(&["policy", "explain", &address]).done();
    let mut rpc = place.rpc();
    let path = place.path().join("memory.grains");
    let count = |rpc: &mut Rpc| {
        rpc.result("get", &json!({ "address": address }))["state"]["access_count"].clone()
    };
    rpc.result("open", &json!({ "path": path, "count_access": false }));
    rpc.result("cal", &json!({ "query": assemble }));
    assert_eq!((count(&mut rpc), count(&mut rpc)), (json!(0), json!(0)));
    for count_access in [Value::Null, json!(true)] {
        rpc.result("open", &json!({ "path": path, "count_access": count_access }));
        let before = count(&mut rpc).as_u64().unwrap();
        rpc.result("cal", &json!({ "query": assemble }));
        assert_eq!(count(&mut rpc), before + 2, "the get before and the context");
    }
    assert_eq!(rpc.refusal("open", &json!({ "path": path, "count_access": 1 })), "-32602");
    rpc.result("open", &json!({ "path": path, "count_access": false }));
    rpc.result("close", &json!({}));
    for asked in asking {
        place.grain(asked).done();
    }
    let state = place.grain(&["get", &address, "--json"]).done().json()["state"].clone();
    assert_eq!(state["access_count"], 9, "three each of two stores over rpc, and three commands");
}

#[test]
fn an_answer_ends_where_it_is_full_and_says_so() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let long = "x".repeat(1_000_000);
    for number in 0..12 {
        edge(&mut rpc, "hub", &format!("{number}{long}"));
    }
    let full = rpc.result("neighbours", &json!({ "node": "hub", "limit": 50 }));
    assert_eq!((full["edges"].as_array().unwrap().len(), &full["more"]), (8, &json!(true)));
    let whole = rpc.result("neighbours", &json!({ "node": "hub", "limit": 3 }));
    assert_eq!((whole["edges"].as_array().unwrap().len(), &whole["more"]), (3, &json!(true)));
}
