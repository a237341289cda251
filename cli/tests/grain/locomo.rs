//! Real conversations through `grain put` and back out of `grain get`.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use grainstore::Grain;
use grainstore::format::Encoding;
use serde_json::{Value, json};

use crate::kit::Place;

/// The turns of one conversation, as it lies beside the project; none where it does not.
fn turns() -> Option<Vec<Value>> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared");
    let shared = env::var_os("GRAINSTORE_SHARED").map_or_else(|| beside.into(), PathBuf::from);
    let path = shared.join("data/locomo/conv-26.turns.jsonl");
    match fs::read_to_string(&path) {
        Ok(text) => Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            println!("skipped: no {}", path.display());
            None
        }
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

/// A turn as a grain.
fn event(turn: &Value) -> Value {
    let mut event = json!({
        "type": "event", "namespace": "locomo", "created_at": turn["time_ms"],
        "session_id": turn["session"], "role": "user", "user_id": turn["speaker"],
        "content": turn["text"], "context": { "dia_id": turn["dia_id"] },
    });
    if turn["caption"].is_string() {
        event["context"]["caption"] = turn["caption"].clone();
    }
    event
}

#[test]
fn a_conversation_goes_in_and_comes_out_to_the_byte() {
    let Some(turns) = turns() else {
        return;
    };
    let place = Place::with_store();
    let events: Vec<_> = turns.iter().map(|turn| event(turn).to_string()).collect();
    let put = place.feed(&["put"], events.join("\n")).done();
    let addresses: Vec<_> = put.text().lines().collect();
    assert_eq!(addresses.len(), turns.len());
    for (at, event) in events.iter().enumerate() {
        let blob = Grain::from_json(event).unwrap().encode(Encoding::MessagePack).unwrap();
        assert_eq!(addresses[at], blob.address().to_string());
        // One program start a grain: every twentieth is read back.
        if at % 20 == 0 {
            let hex = place.grain(&["get", addresses[at], "--format", "hex"]).done().line();
            assert_eq!(hex, data_encoding::HEXLOWER.encode(blob.bytes()));
        }
    }
    let again = place.feed(&["put", "--json"], events.join("\n")).done().json_lines();
    assert!(again.iter().all(|put| put["duplicate"] == true));
    let count = place.grain(&["cal", "RECALL events IN \"locomo\" | COUNT"]).done();
    assert_eq!(count.line(), turns.len().to_string());
}
