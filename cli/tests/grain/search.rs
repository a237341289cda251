//! Searching by words and by vectors, from the command line and for hosts in other languages.

use serde_json::{Value, json};

use crate::kit::Place;

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

#[test]
fn batches_and_successors_bring_their_vectors() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let vector = |values: [f64; 2]| json!([{ "model": "m", "values": values }]);
    let grains = json!([belief("alice", "tea"), belief("bob", "cars")]);
    let batch = json!({ "grains": grains, "vectors": [vector([1.0, 0.0]), []] });
    let put = rpc.result("put_batch", &batch);
    let nearest = |rpc: &mut crate::kit::Rpc, values: [f64; 2]| {
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
