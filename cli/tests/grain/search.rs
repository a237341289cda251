//! Searching by words and by vectors, from the command line and for hosts in other languages.

use serde_json::{Value, json};

use crate::kit::{Place, Rpc};

fn belief(subject: &str, object: &str) -> Value {
    json!({ "type": "belief", "subject": subject, "relation": "likes", "object": object,
        "confidence": 0.9, "created_at": 1_768_471_200_000_i64 })
}

/// The objects of an answer's grains.
#[expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a helper of tests")]
fn objects(answer: &Value) -> Vec<&str> {
    let rows = answer["results"].as_array().unwrap().iter();
    rows.map(|row| row["grain"]["object"].as_str().unwrap()).collect()
}

#[test]
fn recall_finds_by_words_with_and_without_a_subject() {
    let place = Place::with_store();
    for (subject, object) in [("alice", "green tea"), ("alice", "coffee"), ("bob", "black tea")] {
        place.put(&belief(subject, object).to_string());
    }
    let found = |arguments: &[&str]| {
        let all: Vec<&str> = [&["recall", "--json"], arguments].concat();
        let answer = place.grain(&all).done().json();
        objects(&answer).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(found(&["alice", "--text", "tea"]), ["green tea"]);
    assert_eq!(found(&["--text", "black tea", "--limit", "1"]), ["black tea"]);
    assert_eq!(found(&["--text", "milk"]), Vec::<String>::new());
    assert!(place.grain(&["recall", "--text", "tea"]).done().text().contains("green tea"));
    assert_eq!(place.grain(&["recall"]).code, 2);
    assert_eq!(place.grain(&["recall", "--text", " "]).code, 1);
}

#[test]
fn recall_follows_links_from_its_answers() {
    let place = Place::with_store();
    for (subject, object) in
        [("alice", "green tea"), ("green tea", "kettles"), ("kettles", "water")]
    {
        place.put(&belief(subject, object).to_string());
    }
    let found = |arguments: &[&str]| {
        let all: Vec<&str> = [&["recall", "--json"], arguments].concat();
        let answer = place.grain(&all).done().json();
        objects(&answer).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(found(&["alice"]), ["green tea"]);
    assert_eq!(found(&["alice", "--expand", "1"]), ["green tea", "kettles"]);
    assert_eq!(found(&["alice", "--expand", "3"]), ["green tea", "kettles", "water"]);
    assert_eq!(found(&["alice", "--expand", "3", "--limit", "2"]), ["green tea", "kettles"]);
    assert_eq!(found(&["alice", "--text", "tea", "--expand", "1"]), ["green tea", "kettles"]);
    assert_eq!(found(&["--text", "water", "--expand", "1"]), ["water", "kettles"]);
    let shown = place.grain(&["recall", "alice", "--expand", "1"]).done().text().to_owned();
    assert!(shown.contains("kettles") && !shown.contains("water"), "{shown}");
    for hops in ["0", "4", "99", "x"] {
        assert_eq!(place.grain(&["recall", "alice", "--expand", hops]).code, 2, "{hops}");
    }
}

#[test]
fn query_follows_links_as_far_as_it_is_told() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    for (subject, object) in [("alice", "tea"), ("tea", "kettles"), ("kettles", "water")] {
        rpc.result("put", &json!({ "grain": belief(subject, object) }));
    }
    let mut found = |expand: Value| {
        let asked = json!({ "text": "alice", "expand": expand, "explain": true });
        let answer = rpc.result("query", &asked);
        let objects = objects(&answer).into_iter().map(str::to_owned).collect::<Vec<_>>();
        (objects.len(), answer["plan"]["expansion"].clone())
    };
    let (rows, plan) = found(json!({}));
    assert_eq!(rows, 2);
    let links = json!(["triple", "derived_from", "related_to", "reply"]);
    let run = json!({ "seeds": 1, "reached": 1, "looked": 2, "cut": false });
    assert_eq!(plan, json!({ "hops": 1, "links": links, "direction": "both", "run": run }));
    assert_eq!(found(json!({ "hops": 2 })).0, 3);
    assert_eq!(found(json!({ "hops": 2, "direction": "in" })).0, 1);
    assert_eq!(found(json!({ "links": ["subject"] })).0, 1);
    let alice = json!({ "subject": "alice" });
    for (params, code) in [
        (json!({ "text": "alice", "expand": { "hops": 0 } }), "ERR_SCHEMA"),
        (json!({ "text": "alice", "expand": { "hops": 99 } }), "ERR_LIMIT"),
        (json!({ "text": "alice", "expand": { "fan_out": 1_000_000_000 } }), "ERR_LIMIT"),
        (json!({ "text": "alice", "expand": { "reached": 1_000_000_000 } }), "ERR_LIMIT"),
        (json!({ "text": "alice", "expand": { "decay": 1.5 } }), "ERR_SCHEMA"),
        (json!({ "text": "alice", "expand": { "links": [] } }), "ERR_SCHEMA"),
        (json!({ "text": "alice", "expand": { "links": ["friend"] } }), "ERR_SCHEMA"),
        (json!({ "where": alice, "expand": {} }), "ERR_SCHEMA"),
    ] {
        assert_eq!(rpc.refusal("query", &params), code, "{params}");
    }
    let freely = json!({ "where": alice, "expand": { "freely": true, "hops": 3 }, "limit": 1 });
    let mut answer = rpc.result("query", &freely);
    let mut pages = objects(&answer).into_iter().map(str::to_owned).collect::<Vec<_>>();
    while !answer["next_cursor"].is_null() {
        let mut next = freely.clone();
        next["cursor"] = answer["next_cursor"].clone();
        answer = rpc.result("query", &next);
        pages.extend(objects(&answer).into_iter().map(str::to_owned));
    }
    assert_eq!(pages, ["tea", "kettles", "water"]);
}

#[test]
fn query_finds_by_words_by_vectors_and_by_both() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let vector = |values: [f64; 2]| json!([{ "model": "m", "metric": "cosine", "values": values }]);
    for (object, values) in
        [("green tea", [1.0, 0.0]), ("a hot drink", [0.9, 0.1]), ("cars", [0.0, 1.0])]
    {
        rpc.result("put", &json!({ "grain": belief("alice", object), "vectors": vector(values) }));
    }
    let by_words = rpc.result("query", &json!({ "text": "tea" }));
    assert_eq!(objects(&by_words), ["green tea"]);
    assert_eq!(by_words["results"][0]["matched_fields"], json!(["object"]));
    let near = json!({ "model": "m", "values": [1, 0.05] });
    let by_vector = rpc.result("query", &json!({ "vector": near, "limit": 2 }));
    assert_eq!(objects(&by_vector), ["green tea", "a hot drink"]);
    let both = rpc.result("query", &json!({ "text": "cars", "vector": near, "limit": 9 }));
    assert_eq!(objects(&both).len(), 3);
    let page = rpc.result("query", &json!({ "text": "tea drink cars", "limit": 1 }));
    let next = json!({ "text": "tea drink cars", "limit": 9, "cursor": page["next_cursor"] });
    assert_eq!(objects(&rpc.result("query", &next)).len(), 2);
    for (params, code) in [
        (json!({ "text": "" }), "ERR_SCHEMA"),
        (json!({ "vector": { "model": "m", "values": [1] } }), "ERR_DIMENSION"),
        (json!({ "vector": { "model": "n", "values": [1, 0] } }), "ERR_NOT_FOUND"),
        (json!({ "vector": { "model": "m", "values": [0, 0] } }), "ERR_SCHEMA"),
        (json!({ "vector": { "model": "m", "values": [1e300, 0] } }), "ERR_SCHEMA"),
        (json!({ "text": "tea", "cursor": page["next_cursor"] }), "ERR_CURSOR"),
        (json!({ "text": "tea", "limit": 1_000_000_000 }), "ERR_LIMIT"),
    ] {
        assert_eq!(rpc.refusal("query", &params), code, "{params}");
    }
    let other = json!([{ "model": "m", "metric": "dot", "values": [1, 0] }]);
    let refused = json!({ "grain": belief("bob", "x"), "vectors": other });
    assert_eq!(rpc.refusal("put", &refused), "ERR_DIMENSION");
    let stats = rpc.result("stats", &json!({}));
    assert_eq!((&stats["grains"], &stats["vectors"][0]["vectors"]), (&json!(3), &json!(3)));
}

#[cfg(unix)]
#[test]
fn a_store_is_moved_to_the_model_of_another_program() {
    let place = Place::empty();
    let mut rpc = place.rpc();
    // One grain, so every line has one text.
    let program = |model: &str, vector: &str| {
        let script = format!("while read -r line; do echo '{{\"vectors\":[{vector}]}}'; done");
        let dimension = vector.split(',').count();
        json!({ "command": ["sh", "-c", script], "model": model, "dimension": dimension })
    };
    let (former, new) = (program("former", "[1,2]"), program("new", "[3,2,1]"));
    let path = place.path().join("s");
    let alone = json!({ "path": path, "create": true, "former_embedder": former });
    assert_eq!(rpc.refusal("open", &alone), "ERR_SCHEMA");
    rpc.result("open", &json!({ "path": path, "create": true, "embedder": former }));
    let grain = json!({ "type": "belief", "subject": "bob", "relation": "likes", "object": "tea",
        "confidence": 1, "created_at": 1 });
    rpc.result("put", &json!({ "grain": grain }));
    let serving = |rpc: &mut Rpc, model: &str| {
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        loop {
            let stats = rpc.result("stats", &json!({}));
            if stats["serving_model"] == model {
                return stats;
            }
            assert!(std::time::Instant::now() < end, "{stats}");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    };
    serving(&mut rpc, "former");
    let both = json!({ "path": path, "embedder": new, "former_embedder": former });
    rpc.result("open", &both);
    let stats = serving(&mut rpc, "new");
    assert_eq!(
        (&stats["embedding"]["serves"], &stats["embedding"]["behind"], &stats["former_embedding"]),
        (&json!(true), &json!(0), &json!(null))
    );
    let found = rpc.result("query", &json!({ "text": "zebra" }));
    assert_eq!(found["results"].as_array().unwrap().len(), 1, "by what it means");
    assert_eq!(rpc.result("remove_vectors", &json!({ "model": "former" }))["removed"], 1);
}

#[test]
fn recall_shows_scores_and_addresses_and_narrows_what_it_looks_at() {
    let place = Place::with_store();
    let tea = place.put(&belief("alice", "green tea").to_string());
    place.put(&belief("bob", "green trees of some other kind in a wood").to_string());
    let turn = json!({ "type": "event", "content": "is green tea good?", "role": "user",
        "session_id": "chat-1", "created_at": 1_768_471_200_000_i64 });
    let turn = place.put(&turn.to_string());
    let lines = |arguments: &[&str]| {
        let all: Vec<&str> = [&["recall", "--scores"], arguments].concat();
        let run = place.grain(&all).done();
        run.text().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let beliefs = lines(&["--text", "green tea", "--type", "belief"]);
    assert_eq!(beliefs.len(), 2);
    let [score, address, says] = beliefs[0].splitn(3, "  ").collect::<Vec<_>>()[..] else {
        panic!("three columns: {beliefs:?}")
    };
    assert_eq!((address, says), (tea.as_str(), "alice: likes green tea"));
    let score: f64 = score.parse().unwrap();
    assert!(score > 0.5 && score < 1.0, "{score}");
    let floor = format!("{:.2}", score - 0.01);
    let enough = lines(&["--text", "green tea", "--type", "belief", "--min-score", &floor]);
    assert_eq!(enough, beliefs[..1]);
    let spoken = lines(&["--session", "chat-1"]);
    assert!(spoken.len() == 1 && spoken[0].contains(&turn), "{spoken:?}");
    let json = place.grain(&["recall", "--text", "tea", "--scores", "--json"]).done().json();
    assert!(json["results"][0]["score_breakdown"]["text"].is_f64(), "{json}");
    let nothing = place.grain(&["recall", "--text", "milk"]).done();
    assert_eq!(nothing.err, "nothing found\n");
    assert_eq!(place.grain(&["recall", "alice", "--min-score", "0.5"]).code, 2);
}

#[test]
fn a_search_may_begin_with_a_sign() {
    let place = Place::with_store();
    for object in ["guitar lessons", "guitar strings"] {
        place.put(&belief("alice", object).to_string());
    }
    let answer = place.grain(&["recall", "--json", "--text", "-lessons guitar"]).done().json();
    assert_eq!(objects(&answer), ["guitar strings"]);
    let bare = place.grain(&["recall"]);
    assert!(bare.code == 2 && bare.err.contains("--text"), "{}", bare.err);
}

#[test]
fn explanations_and_plans_name_the_search() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let turn = |content: &str, at: i64| {
        json!({ "type": "event", "content": content, "role": "user", "session_id": "chat-1",
            "user_id": "ann", "created_at": 1_768_471_200_000_i64 + at })
    };
    for (at, content) in [(0, "shall we have soup?"), (1, "yes, gladly")] {
        rpc.result("put", &json!({ "grain": turn(content, at) }));
    }
    let asked = r#"RECALL events LIKE "soup" WITH explanation"#;
    let answer = rpc.result("cal", &json!({ "query": asked }));
    let rows = answer["results"].as_array().unwrap();
    let why: Vec<&str> = rows.iter().map(|row| row["explanation"].as_str().unwrap()).collect();
    assert_eq!(why, ["found by words in content", "found by words of the turns around it"]);
    assert_eq!(answer["explanation"]["search"], json!(["words \"soup\""]));
    place.grain(&["init"]).done();
    let plan = place.grain(&["cal", r#"EXPLAIN RECALL LIKE "soup""#]).done();
    assert!(plan.text().contains("    search     words \"soup\"\n"), "{}", plan.text());
    let vectors = json!([{ "model": "m", "values": [1, 0] }]);
    rpc.result("put", &json!({ "grain": belief("alice", "tea"), "vectors": vectors }));
    let near =
        json!({ "text": "tea", "vector": { "values": [1, 0], "model": "m" }, "explain": true });
    let plan = &rpc.result("query", &near)["plan"];
    assert_eq!(plan["search"], json!(["words \"tea\"", "vectors of m"]));
    assert_eq!(plan["at_most"], Value::Null, "what both find is looked at twice: {plan}");
}

#[test]
fn batches_and_successors_bring_their_vectors() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let vector = |values: [f64; 2]| json!([{ "model": "m", "values": values }]);
    let grains = json!([belief("alice", "tea"), belief("bob", "cars")]);
    let batch = json!({ "grains": grains, "vectors": [vector([1.0, 0.0]), []] });
    let put = rpc.result("put_batch", &batch);
    let nearest = |rpc: &mut Rpc, values: [f64; 2]| {
        let answer = rpc.result("query", &json!({ "vector": { "values": values } }));
        objects(&answer).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(nearest(&mut rpc, [1.0, 0.1]), ["tea"]);
    let old = &put["results"][0]["address"];
    let new =
        json!({ "old": old, "grain": belief("alice", "coffee"), "vectors": vector([0.0, 1.0]) });
    rpc.result("supersede", &new);
    assert_eq!(nearest(&mut rpc, [1.0, 0.1]), ["coffee"]);
    let one_short = json!({ "grains": grains, "vectors": [vector([1.0, 0.0])] });
    assert_eq!(rpc.refusal("put_batch", &one_short), "-32602");
    let long =
        json!({ "grains": [belief("eve", "x")], "vectors": [[{ "model": "m", "values": [1] }]] });
    assert_eq!(rpc.refusal("put_batch", &long), "ERR_DIMENSION");
    assert_eq!(rpc.result("wait_for_vectors", &json!({ "timeout_ms": 10 }))["done"], json!(true));
    assert_eq!(rpc.refusal("wait_for_vectors", &json!({ "timeout_ms": 600_001 })), "-32602");
}
