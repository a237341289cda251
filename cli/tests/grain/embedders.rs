//! What makes vectors of texts, named in `open`: a program, or a model in the process.

use serde_json::{Value, json};

use crate::kit::{Place, Rpc, belief};

#[cfg(feature = "local-embedder")]
#[path = "../../../engine/tests/local_embedder/tiny.rs"]
#[expect(dead_code, reason = "shared with the tests of the engine")]
mod tiny;

/// Opens a store with this embedder; the response.
fn open(place: &Place, rpc: &mut Rpc, embedder: &Value) -> Value {
    let path = place.path().join("rpc.grains");
    rpc.call("open", &json!({ "path": path, "create": true, "embedder": embedder }))
}

/// Puts a grain and waits until it has its vector: the model's status in `stats`.
fn embedded(rpc: &mut Rpc) -> Value {
    let grain: Value = serde_json::from_str(&belief("alice", "tea")).unwrap();
    rpc.result("put", &json!({ "grain": grain }));
    for _ in 0..600 {
        let stats = rpc.result("stats", &json!({}));
        let status = &stats["embedding"];
        if status["behind"] == 0 || !status["error"].is_null() {
            assert_eq!(stats["rows"]["vectors"], 1, "{stats}");
            return status.clone();
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("nothing was embedded in a minute");
}

#[test]
fn an_embedder_is_one_thing_and_has_what_it_needs() {
    let place = Place::empty();
    let mut rpc = place.rpc();
    for embedder in [
        json!({}),
        json!({ "model": "m", "dimension": 2 }),
        json!({ "command": ["cat"], "model": "m" }),
        json!({ "command": ["cat"], "dimension": 2 }),
        json!({ "command": ["cat"], "directory": "d", "model": "m", "dimension": 2 }),
        json!({ "directory": "d", "dimension": 2 }),
        json!({ "directory": "d", "deadline_ms": 2 }),
        json!({ "directory": ["d"] }),
        json!({ "directory": "d", "file": "f" }),
    ] {
        let response = open(&place, &mut rpc, &embedder);
        assert_eq!(response["error"]["code"], -32602, "{embedder}: {response}");
    }
    assert!(!place.path().join("rpc.grains").exists());
}

#[cfg(unix)]
#[test]
fn a_program_makes_vectors_of_what_is_put() {
    let place = Place::empty();
    let mut rpc = place.rpc();
    let script = r#"while read -r line; do echo '{"vectors":[[1,2]]}'; done"#;
    let embedder = json!({ "command": ["sh", "-c", script], "model": "two", "dimension": 2 });
    let response = open(&place, &mut rpc, &embedder);
    assert_eq!(response["result"]["created"], true, "{response}");
    assert_eq!(embedded(&mut rpc)["model"], "two");
    let grain: Value = serde_json::from_str(&belief("alice", "tea")).unwrap();
    let again = rpc.result("put", &json!({ "grain": grain }));
    let got = rpc.result("get", &json!({ "address": again["address"] }));
    let name = format!("{}/two/cosine/0", again["address"].as_str().unwrap());
    let refs = json!([{
        "vector_id": name, "model": "two", "dimensions": 2, "distance_metric": "cosine", "chunk_index": 0,
    }]);
    assert_eq!(got["state"]["embedding_refs"], refs, "{got}");
    assert_eq!(got["grain"], grain);
}

#[cfg(not(feature = "local-embedder"))]
#[test]
fn a_model_in_the_process_is_refused_where_the_program_was_built_without() {
    let place = Place::empty();
    let mut rpc = place.rpc();
    let response = open(&place, &mut rpc, &json!({ "directory": "all-MiniLM-L6-v2" }));
    let data = &response["error"]["data"];
    assert_eq!(data["code"], "ERR_SCHEMA", "{response}");
    assert!(data["hint"].as_str().unwrap().contains("--features local-embedder"), "{response}");
    assert!(!place.path().join("rpc.grains").exists());
}

#[cfg(feature = "local-embedder")]
#[test]
fn a_model_in_the_process_makes_vectors_of_what_is_put() {
    let place = Place::empty();
    let mut rpc = place.rpc();
    let model = tiny::Tiny::new(12).written();
    let embedder = json!({ "directory": model.path(), "model": "tiny", "metric": "dot" });
    let response = open(&place, &mut rpc, &embedder);
    assert_eq!(response["result"]["created"], true, "{response}");
    assert_eq!(embedded(&mut rpc)["model"], "tiny");
}

#[cfg(feature = "local-embedder")]
#[test]
fn a_model_that_cannot_be_read_is_refused_before_the_store_is_opened() {
    let place = Place::empty();
    let mut rpc = place.rpc();
    let model = tiny::Tiny::new(12).written();
    std::fs::remove_file(model.path().join("config.json")).unwrap();
    let response = open(&place, &mut rpc, &json!({ "directory": model.path() }));
    assert_eq!(response["error"]["data"]["code"], "ERR_EMBEDDER", "{response}");
    assert!(response["error"]["message"].as_str().unwrap().contains("config.json"), "{response}");
    assert!(!place.path().join("rpc.grains").exists());
}
