//! Hostile amounts: what is too large is refused without being read, and readers may leave.

use std::io::{Read, Write};

use serde_json::json;

use crate::kit::{Place, belief, refusal};

/// Feeds the program without end until it hangs up; its exit code and stderr.
fn flood(place: &Place, arguments: &[&str], start: &[u8], chunk: &[u8]) -> (i32, String) {
    let mut child = place.start(arguments);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(start).unwrap();
    // 256 MiB: far past every limit, should the program read on and on.
    let mut left = (256 << 20) / chunk.len();
    while left > 0 && stdin.write_all(chunk).is_ok() {
        left -= 1;
    }
    assert!(left > 0, "{arguments:?} reads on and on");
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn endless_input_is_refused_where_the_limit_is() {
    let place = Place::with_store();
    let spaces = vec![b' '; 64 << 10];
    let letters = vec![b'x'; 64 << 10];
    let lines = b"{\"a\": [\n".repeat(1 << 10);
    for (arguments, start, chunk) in [
        (&["put"][..], &b"{\"a\": \""[..], &letters),
        (&["put"], b"{\"a\":", &spaces),
        (&["put"], b"{", &lines),
        (&["put", "--format", "mg"], b"", &letters),
        (&["encode"], b"\"", &letters),
        (&["decode"], b"\x01", &letters),
        (&["supersede", &"0".repeat(64), "-"], b"{", &letters),
    ] {
        let (code, told) = flood(&place, arguments, start, chunk);
        assert_eq!(code, 1, "{arguments:?}");
        assert!(told.starts_with("error: ERR_TOO_LARGE"), "{arguments:?}: {told}");
    }
    let (code, told) = flood(&place, &["cal"], b"RECALL", &spaces);
    assert!(code == 1 && told.starts_with("error: ERR_TOO_LARGE"), "{told}");
}

#[test]
fn a_reader_who_leaves_ends_the_program_quietly() {
    let place = Place::with_store();
    let long = "x".repeat(500_000);
    let address = place.put(&belief("a", &long));
    for arguments in [&["get", &address][..], &["get", &address, "--format", "hex"], &["audit"]] {
        let mut child = place.start(arguments);
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "{arguments:?}");
    }
}

#[test]
fn grains_are_stored_even_if_nobody_reads_their_addresses() {
    let place = Place::with_store();
    let mut child = place.start(&["put"]);
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    for at in 0..12_000 {
        writeln!(stdin, "{}", belief("a", &at.to_string())).unwrap();
    }
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(place.grain(&["stats", "--json"]).done().json()["grains"], 12_000);
}

#[test]
fn rpc_refuses_a_request_too_long_and_goes_on_with_the_next() {
    let place = Place::empty();
    let mut rpc = place.rpc();
    let long = vec![b'x'; 65 << 20];
    let response = rpc.ask(&long);
    assert_eq!((&response["id"], &response["error"]["code"]), (&json!(null), &json!(-32600)));
    assert_eq!(refusal(&response), "ERR_TOO_LARGE");
    assert_eq!(rpc.result("hello", &json!({}))["name"], "grainstore");
    assert_eq!(rpc.end(), (String::new(), 0));
}

#[test]
fn rpc_refuses_answers_too_large() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let mut addresses = Vec::new();
    for at in 0..10 {
        let object = format!("{at}{}", "x".repeat(900_000));
        let grain: serde_json::Value = serde_json::from_str(&belief("a", &object)).unwrap();
        let put = rpc.result("put", &json!({ "grain": grain }));
        addresses.push(put["address"].clone());
    }
    let some = rpc.result("get_batch", &json!({ "addresses": addresses[..5] }));
    assert_eq!(some["grains"].as_array().unwrap().len(), 5);
    for (method, params) in [
        ("get_batch", json!({ "addresses": addresses })),
        ("history", json!({ "subject": "a", "relation": "prefers" })),
        ("cal", json!({ "query": "RECALL beliefs" })),
        ("audit", json!({ "limit": 10_001 })),
    ] {
        assert_eq!(rpc.refusal(method, &params), "ERR_LIMIT", "{method}");
    }
    // The cursor says how much fits; with it all of it can be read.
    let whole = json!({ "subject": "a", "relation": "prefers" });
    let cursor = rpc.call("history", &whole)["error"]["data"]["cursor"].clone();
    let first = json!({ "subject": "a", "relation": "prefers", "limit": cursor });
    let rest = json!({ "subject": "a", "relation": "prefers", "cursor": cursor });
    let pages = [first, rest].map(|page| rpc.result("history", &page)["versions"].clone());
    let read = pages.iter().map(|page| page.as_array().unwrap().len()).sum::<usize>();
    assert_eq!(read, 10);

    let grain: serde_json::Value = serde_json::from_str(&belief("a", "b")).unwrap();
    let many = json!({ "grains": vec![grain; 75_001] });
    assert_eq!(rpc.refusal("put_batch", &many), "ERR_LIMIT");
    assert_eq!(rpc.result("stats", &json!({}))["grains"], 10);
}

#[test]
fn rpc_refuses_lists_too_long_and_takes_a_tag_that_comes_often_once() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let mut grain: serde_json::Value = serde_json::from_str(&belief("a", "tea")).unwrap();
    grain["structural_tags"] = json!(["t"]);
    let put = rpc.result("put", &json!({ "grain": grain }));
    let tags = |count: usize| vec!["t"; count];
    for name in ["tags_all", "tags_none"] {
        let asked = |count| json!({ "where": { name: tags(count) } });
        let found = rpc.result("query", &asked(1000))["results"].as_array().unwrap().len();
        assert_eq!(found, usize::from(name == "tags_all"));
        assert_eq!(rpc.refusal("query", &asked(1001)), "ERR_LIMIT", "{name}");
    }
    let links = json!({ "text": "tea", "expand": { "links": tags(101) } });
    assert_eq!(rpc.refusal("query", &links), "ERR_LIMIT");
    let many = vec![&put["address"]; 100_001];
    assert_eq!(rpc.refusal("get_batch", &json!({ "addresses": many })), "ERR_LIMIT");
    for name in ["vectors", "blobs"] {
        let empty = if name == "vectors" { json!([]) } else { json!("") };
        let batch = json!({ "grains": [], name: vec![empty; 100_001] });
        let batch = if name == "blobs" { json!({ "blobs": batch["blobs"] }) } else { batch };
        assert_eq!(rpc.refusal("put_batch", &batch), "ERR_LIMIT", "{name}");
    }
}

#[test]
fn rpc_refuses_names_and_numbers_beyond_their_number() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    let path = place.path().join("memory.grains");
    let names = |count: usize| vec!["did:web:a"; count];
    let spoken = |count: usize| vec![json!({ "namespace": "n", "language": "en" }); count];
    let open =
        |name: &str, list: serde_json::Value| json!({ "path": path, "create": true, name: list });
    for (method, within, beyond) in [
        (
            "session",
            json!({ "namespace": null, "purposes": names(1000) }),
            json!({ "namespace": null, "purposes": names(1001) }),
        ),
        ("open", open("reviewers", json!(names(1000))), open("reviewers", json!(names(1001)))),
        ("open", open("languages", json!(spoken(1000))), open("languages", json!(spoken(1001)))),
        (
            "open",
            open("session", json!({ "purposes": names(1000) })),
            open("session", json!({ "purposes": names(1001) })),
        ),
    ] {
        assert_eq!(rpc.refusal(method, &beyond), "ERR_LIMIT", "{method}");
        rpc.result(method, &within);
    }
    let grain: serde_json::Value = serde_json::from_str(&belief("a", "tea")).unwrap();
    let hide = |count| json!({ "grain": grain, "hide": vec!["object"; count] });
    assert_eq!(rpc.refusal("disclose", &hide(1001)), "ERR_LIMIT");
    rpc.result("disclose", &hide(1000));
    let terms =
        json!({ "query": "RECALL", "terms": { "allowed_grain_types": vec!["belief"; 1001] } });
    assert_eq!(rpc.refusal("prepare", &terms), "ERR_LIMIT");
    // Numbers of a vector are not read beyond the one too many, nor is a grain with so many vectors.
    let vector = |count: usize| json!({ "model": "m", "values": vec![0.5; count] });
    let put = |vectors: serde_json::Value| json!({ "grain": grain, "vectors": vectors });
    assert_eq!(rpc.refusal("put", &put(json!([vector(2_000_000)]))), "ERR_DIMENSION");
    assert_eq!(rpc.refusal("put", &put(json!(vec![vector(1); 10_001]))), "ERR_LIMIT");
    rpc.result("put", &put(json!([vector(4096)])));
    let near = json!({ "vector": vector(2_000_000) });
    assert_eq!(rpc.refusal("query", &near), "ERR_DIMENSION");
    assert_eq!(rpc.result("query", &json!({ "vector": vector(4096) }))["total"], 1);
}

#[test]
fn rpc_ends_quietly_when_its_reader_leaves() {
    let place = Place::empty();
    let mut child = place.start(&["rpc"]);
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    let request = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hello\"}\n";
    while stdin.write_all(request).is_ok() {}
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!((child.wait().unwrap().code(), told.as_str()), (Some(0), ""));
}
