//! Grains that leave the store and come into it: `grain export`, `grain import` and the methods of these names.

#[cfg(unix)]
use std::io::Read;
#[cfg(unix)]
use std::process::{Command, Stdio};

use grainstore::format::DecodeOptions;
use grainstore::format::container::{Compression, Container};
use serde_json::{Value, json};

use crate::kit::{Place, belief};

fn place_with_grains() -> Place {
    let place = Place::with_store();
    for object in ["tea", "coffee", "water"] {
        place.put(&belief("alice", object));
    }
    place.put(&belief("bob", "tea"));
    place
}

/// How a file in the place is packed, and the objects of its grains.
fn read(place: &Place, name: &str) -> (Compression, Vec<String>) {
    let bytes = std::fs::read(place.path().join(name)).unwrap();
    let container = Container::open(bytes, &DecodeOptions::default()).unwrap();
    container.verify().unwrap();
    let objects = container
        .entries()
        .unwrap()
        .map(|entry| entry.unwrap().grain().text("object").map(str::to_owned).unwrap_or_default());
    let mut objects: Vec<_> = objects.collect();
    objects.sort_unstable();
    (container.compression(), objects)
}

#[test]
fn export_writes_what_was_asked_for_as_it_was_asked_for() {
    let place = place_with_grains();
    let run = place.grain(&["export", "all.mg"]).done();
    assert!(run.line().starts_with("4 grains in all.mg, "), "{}", run.text());
    assert_eq!(run.err, "", "no bar where nobody looks");
    let all = ["coffee", "tea", "tea", "water"].map(str::to_owned).to_vec();
    assert_eq!(read(&place, "all.mg"), (Compression::Zstd, all.clone()));
    for compression in Compression::ALL {
        place.grain(&["export", "all.mg", "--compress", compression.name()]).done();
        assert_eq!(read(&place, "all.mg"), (compression, all.clone()));
    }
    let conditions = r#"subject = "alice" AND object IN ("tea", "coffee")"#;
    let run = place.grain(&["export", "some.mg", "--where", conditions, "--json"]).done().json();
    assert_eq!((&run["exported"], &run["files"]), (&json!(2), &json!(["some.mg"])));
    assert_eq!(read(&place, "some.mg").1, ["coffee", "tea"]);
}

#[test]
fn an_export_goes_to_stdout_and_what_became_of_it_beside_it() {
    let place = place_with_grains();
    let named = place.grain(&["export", "named.mg", "--json"]).done().json();
    let run = place.grain(&["export", "-"]).done();
    assert_eq!(run.out, std::fs::read(place.path().join("named.mg")).unwrap());
    assert!(run.err.contains("grains, "), "{}", run.err);
    assert!(!place.path().join("-").exists());
    let run = place.grain(&["export", "-", "--json"]).done();
    let told: Value = serde_json::from_str(run.err.trim()).unwrap();
    assert_eq!((&told["exported"], &told["bytes"]), (&named["exported"], &named["bytes"]));
    let run = place.grain(&["export", "-", "--where", "subjekt = 1"]);
    assert_eq!((run.code, run.out.len()), (1, 0), "nothing goes out where it fails");
}

/// A killed process removes nothing.
#[test]
#[cfg(unix)]
fn an_export_to_stdout_has_no_file_that_could_be_left() {
    let place = Place::with_store();
    let text = "x".repeat(500_000);
    place.put(&format!(
        r#"{{"type": "belief", "subject": "s", "relation": "r", "object": "{text}", "confidence": 1, "created_at": 1}}"#
    ));
    let temporary = place.path().join("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_grain"))
        .args(["export", "-", "--compress", "none"])
        .current_dir(place.path())
        .env_remove("GRAIN_STORE")
        .env("TMPDIR", &temporary)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // A pipe holds less than that, so the process is at it still.
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 16]).unwrap();
    // It holds no store meanwhile, and a request to end ends it.
    place.grain(&["stats"]).done();
    let asked = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(asked.success() && !child.wait().unwrap().success(), "it was not done");
    let left: Vec<_> = std::fs::read_dir(&temporary).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_session_exports_its_namespace_alone() {
    let place = place_with_grains();
    let acme = r#"{"type": "belief", "subject": "s", "relation": "r", "object": "own", "confidence": 1, "created_at": 1, "namespace": "acme:bot"}"#;
    place.put(acme);
    place.grain(&["--namespace", "acme", "export", "acme.mg"]).done();
    assert_eq!(read(&place, "acme.mg").1, ["own"]);
}

#[test]
fn conditions_that_are_none_are_drawn_and_leave_no_file() {
    let place = place_with_grains();
    let run = place.grain(&["export", "no.mg", "--where", "subjekt = 1"]);
    assert_eq!((run.code, run.error_code().as_str()), (1, "CAL-E004"));
    assert!(run.err.contains("subjekt = 1\n  ^^^^^^^"), "{}", run.err);
    assert!(!place.path().join("no.mg").exists());
    assert_eq!(place.grain(&["export", "no.mg", "--compress", "gzip"]).code, 2);
    let run = place.grain(&["export", "memory.grains/grains.redb"]);
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_CONFLICT"));
    place.grain(&["verify"]).done();
}

#[test]
fn the_method_takes_conditions_as_text_or_as_an_object() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    for object in ["tea", "milk"] {
        let grain = serde_json::from_str::<Value>(&belief("alice", object)).unwrap();
        rpc.result("put", &json!({ "grain": grain }));
    }
    for (params, objects) in [
        (json!({ "path": "a.mg" }), vec!["milk", "tea"]),
        (json!({ "path": "a.mg", "where": null, "compress": "lz4" }), vec!["milk", "tea"]),
        (json!({ "path": "a.mg", "where": r#"object = "tea""# }), vec!["tea"]),
        (
            json!({ "path": "a.mg", "where": { "object": "milk" }, "compress": "none" }),
            vec!["milk"],
        ),
        (json!({ "path": "a.mg", "where": { "subject": "bob" } }), vec![]),
    ] {
        let answer = rpc.result("export", &params);
        assert_eq!(answer["exported"], objects.len(), "{params}");
        assert_eq!(answer["files"], json!(["a.mg"]));
        assert_eq!(read(&place, "a.mg").1, objects, "{params}");
    }
    for (params, code) in [
        (json!({ "path": "b.mg", "compress": "gzip" }), -32602),
        (json!({ "path": "b.mg", "where": { "subjekt": "bob" } }), -32602),
        (json!({ "where": {} }), -32602),
        (json!({ "path": "b.mg", "where": "subjekt = 1" }), -32000),
        (json!({ "path": "." }), -32000),
    ] {
        assert_eq!(rpc.call("export", &params)["error"]["code"], code, "{params}");
    }
}

#[test]
fn import_takes_what_export_wrote_and_says_what_became_of_it() {
    let place = place_with_grains();
    place.grain(&["export", "all.mg"]).done();
    let run = place.grain(&["import", "all.mg"]).done();
    assert_eq!((run.line().as_str(), run.err.as_str()), ("0 added, 4 duplicate, 0 refused", ""));
    let other = Place::with_store();
    std::fs::copy(place.path().join("all.mg"), other.path().join("all.mg")).unwrap();
    let run = other.grain(&["import", "all.mg", "--json"]).done().json();
    let expected = json!({
        "added": 4, "duplicate": 0, "refused": 0, "conflicts": [], "conflict_count": 0
    });
    assert_eq!(run, expected);
    other.grain(&["verify", "--full"]).done();
    assert_eq!(place.grain(&["import"]).code, 2);
    for (name, code) in [("none.mg", "ERR_IO"), ("memory.grains", "ERR_IO")] {
        let run = place.grain(&["import", "all.mg", name]);
        assert_eq!((run.code, run.error_code().as_str()), (1, code), "{name}");
        assert!(run.err.contains(name), "{}", run.err);
    }
}

#[test]
fn a_damaged_file_is_bad_input_and_no_damage_of_the_store() {
    let place = place_with_grains();
    place.grain(&["export", "all.mg"]).done();
    let whole = std::fs::read(place.path().join("all.mg")).unwrap();
    let mut flipped = whole.clone();
    flipped[40] ^= 1;
    for (bytes, code) in [
        (flipped, "ERR_INTEGRITY"),
        (whole[..whole.len() - 1].to_vec(), "ERR_INTEGRITY"),
        (b"no container".to_vec(), "ERR_CORRUPT"),
    ] {
        std::fs::write(place.path().join("bad.mg"), bytes).unwrap();
        let run = place.grain(&["import", "bad.mg"]);
        assert_eq!((run.code, run.error_code().as_str()), (1, code), "{}", run.err);
        assert!(run.err.contains("bad.mg: ") && !run.err.contains("grain verify"), "{}", run.err);
    }
    place.grain(&["verify", "--full"]).done();
    // What is wrong with the store itself is another thing, whatever is imported.
    let log = place.path().join("memory.grains/grains.redb");
    std::fs::write(log, b"no database").unwrap();
    assert_eq!(place.grain(&["import", "all.mg"]).code, 4);
}

#[test]
fn conflicts_are_listed_and_are_no_failure() {
    let place = place_with_grains();
    let address = place.put(&belief("carol", "tea"));
    place.grain(&["set-verification", &address, "verified", "--reason", "seen"]).done();
    place.grain(&["export", "all.mg"]).done();
    place.grain(&["set-verification", &address, "retracted", "--reason", "wrong"]).done();
    let run = place.grain(&["import", "all.mg"]).done();
    let text = run.text();
    assert!(text.starts_with("0 added, 5 duplicate, 0 refused\n"), "{text}");
    assert!(text.contains(&format!("{address}  retracted here, which stays")), "{text}");
}

#[test]
fn the_method_import_takes_one_file_or_several() {
    let place = Place::empty();
    let mut rpc = place.rpc_with_store();
    for object in ["tea", "milk"] {
        let grain = serde_json::from_str::<Value>(&belief("alice", object)).unwrap();
        rpc.result("put", &json!({ "grain": grain }));
    }
    rpc.result("export", &json!({ "path": "a.mg" }));
    let answer = rpc.result("import", &json!({ "path": "a.mg" }));
    assert_eq!((&answer["added"], &answer["duplicate"]), (&json!(0), &json!(2)));
    assert_eq!((&answer["refused"], &answer["conflict_count"]), (&json!(0), &json!(0)));
    let answer = rpc.result("import", &json!({ "path": ["a.mg", "a.mg"] }));
    assert_eq!(answer["duplicate"], 4);
    let audit = rpc.result("audit", &json!({ "limit": 50 }));
    let entries = audit["entries"].as_array().unwrap();
    let last = &entries[entries.len() - 1];
    assert_eq!((&last["operation"], &last["import"]["duplicate"]), (&json!("import"), &json!(4)));
    std::fs::write(place.path().join("bad.mg"), b"MG\x01").unwrap();
    for (params, code) in [(json!({}), -32602), (json!({ "path": "bad.mg" }), -32000)] {
        assert_eq!(rpc.call("import", &params)["error"]["code"], code, "{params}");
    }
}
