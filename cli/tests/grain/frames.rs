//! Streams of frames (OMS 11.6): by rpc and by the command.

use std::fs;

use data_encoding::BASE64;
use serde_json::json;

use crate::kit::{Place, belief};

#[test]
fn grains_go_through_frames_into_a_store_by_both() {
    let place = Place::with_store();
    fs::write(place.path().join("key"), [3; 32]).unwrap();
    let lines = [belief("alice", "tea"), belief("bob", "coffee")].join("\n");
    fs::write(place.path().join("lines"), &lines).unwrap();
    let cose = place.feed(&["sign", "--key-seed", "key"], belief("eve", "milk")).done().out;
    fs::write(place.path().join("signed"), &cose).unwrap();
    let blob = place.feed(&["encode", "--encoding", "cbor"], belief("dan", "rum")).done().out;
    fs::write(place.path().join("raw"), &blob).unwrap();
    let stream = place.grain(&["frames", "pack", "lines", "signed", "raw"]).done().out;
    let told = place.feed(&["frames", "unpack", "--json"], &stream).done().json_lines();
    assert_eq!(told.len(), 4);
    assert_eq!(told[2]["cose"], BASE64.encode(&cose));
    assert_eq!(told[3]["blob"], BASE64.encode(&blob));
    let grains = place.feed(&["frames", "unpack"], &stream).done().json_lines();
    assert_eq!(grains[0]["object"], "tea");
    let stored = place.feed(&["put", "--frames"], &stream).done();
    let addresses: Vec<_> = told.iter().map(|one| one["address"].as_str().unwrap()).collect();
    assert_eq!(stored.text().lines().collect::<Vec<_>>(), addresses);
    let got = place.grain(&["get", addresses[2], "--json"]).done().json();
    assert_eq!(got["cose"], BASE64.encode(&cose), "signed as it came");

    let mut rpc = place.rpc();
    let entries: Vec<_> =
        told.iter().map(|one| one.get("cose").unwrap_or(&one["blob"]).clone()).collect();
    let answer = rpc.result("write_frames", &json!({ "entries": entries }));
    assert_eq!(answer["frames"], BASE64.encode(&stream), "the same bytes");
    let answer = rpc.result("read_frames", &json!({ "frames": answer["frames"] }));
    assert_eq!(answer, json!({ "entries": told, "rest": 0 }));
}

#[test]
fn a_stream_without_its_end_or_with_other_bytes_is_refused_by_both() {
    let place = Place::with_store();
    let mut rpc = place.rpc();
    let stream = place.feed(&["frames", "pack"], belief("alice", "tea")).done().out;
    let cut = stream.get(..stream.len() - 1).unwrap();
    let bare = place.feed(&["encode"], belief("a", "b")).done().out;
    let large = [&[0xff; 4][..], &bare].concat();
    for (bytes, code) in [(cut, "ERR_CORRUPT"), (&[][..], "ERR_CORRUPT"), (&large, "ERR_TOO_LARGE")]
    {
        let frames = json!({ "frames": BASE64.encode(bytes) });
        assert_eq!(rpc.refusal("read_frames", &frames), code);
        for arguments in [&["frames", "unpack"][..], &["put", "--frames"]] {
            let run = place.feed(arguments, bytes);
            assert_eq!((run.code, run.error_code().as_str()), (1, code), "{arguments:?}");
        }
    }
    // Grains that are in no frames are told what makes some.
    let json = belief("alice", "tea");
    let run = place.feed(&["frames", "unpack"], &json);
    assert_eq!(run.error_code(), "ERR_TOO_LARGE");
    assert!(run.err.contains("grain frames pack") && !run.err.contains("split"), "{}", run.err);
    let refused = rpc.call("read_frames", &json!({ "frames": BASE64.encode(json.as_bytes()) }));
    assert!(
        refused["error"]["data"]["hint"].as_str().unwrap().contains("write_frames makes"),
        "{refused}"
    );
    let behind = [&stream[..], b"xyz"].concat();
    let answer = rpc.result("read_frames", &json!({ "frames": BASE64.encode(&behind) }));
    assert_eq!((answer["entries"].as_array().unwrap().len(), &answer["rest"]), (1, &json!(3)));
    let none = place.feed(&["frames", "pack"], "").done().out;
    assert_eq!(none, [0; 4], "the end alone");
    assert_eq!(place.feed(&["put", "--frames"], none).done().err, "there was no grain in it\n");
    assert_eq!(rpc.refusal("write_frames", &json!({ "entries": [""] })), "ERR_TOO_SHORT");
    let tagged = r#"{"type": "event", "content": "hi", "created_at": 1}"#;
    let run = place.feed(&["frames", "pack", "--profile", "lightweight"], tagged);
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_SCHEMA"));
    assert_eq!(place.feed(&["put", "--frames", "--format", "mg"], "").code, 2);
}
