//! Closing a store that cannot be closed in order: the command says so with its exit code, the method with
//! its answer.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::kit::{Place, belief};

/// A store whose reads no disk takes: a file lies where their log is to be. Gives that file.
fn kept_from_noting_reads(place: &Place) -> PathBuf {
    let log = place.path().join("s.grains/reads");
    fs::write(&log, "in the way").unwrap();
    log
}

fn with_grain() -> Place {
    let place = Place::empty();
    place.grain(&["--store", "s.grains", "init"]).done();
    place.feed(&["--store", "s.grains", "put"], belief("ann", "tea")).done();
    place
}

#[test]
fn a_command_whose_store_cannot_be_closed_in_order_answers_and_fails() {
    let place = with_grain();
    let ask = ["--store", "s.grains", "--json", "cal", "RECALL beliefs | COUNT"];
    let log = kept_from_noting_reads(&place);
    let run = place.grain(&ask);
    assert_eq!((run.code, run.error_code().as_str()), (1, "ERR_IO"), "{}", run.err);
    assert_eq!(run.json()["count"], json!(1), "what was answered stands");
    assert!(run.err.contains("s.grains"), "{}", run.err);
    // Who notes no reads has nothing to lose.
    place.grain(&["--no-audit-reads"].into_iter().chain(ask).collect::<Vec<_>>()).done();
    fs::remove_file(log).unwrap();
    place.grain(&ask).done();
    place.grain(&["--store", "s.grains", "verify", "--full"]).done();
}

#[test]
fn the_method_close_answers_what_kept_the_store_from_being_closed_in_order() {
    let place = with_grain();
    let log = kept_from_noting_reads(&place);
    let open = json!({ "path": place.path().join("s.grains") });
    let ask = json!({ "query": "RECALL beliefs" });
    let mut rpc = place.rpc();
    rpc.result("open", &open);
    rpc.result("cal", &ask);
    assert_eq!(rpc.refusal("close", &json!({})), "ERR_IO");
    assert_eq!(rpc.refusal("stats", &json!({})), "ERR_NOT_FOUND", "it is closed all the same");
    rpc.result("close", &json!({}));
    // Opening closes what was open, and tells of that alone.
    rpc.result("open", &open);
    rpc.result("cal", &ask);
    assert_eq!(rpc.refusal("open", &open), "ERR_IO");
    assert_eq!(rpc.refusal("stats", &json!({})), "ERR_NOT_FOUND");
    rpc.result("open", &open);
    rpc.result("cal", &ask);
    let (_, code) = rpc.end();
    assert_eq!(code, 1, "the end of stdin closes as well");
    fs::remove_file(log).unwrap();
    let mut rpc = place.rpc();
    rpc.result("open", &open);
    assert_eq!(rpc.result("verify", &json!({ "full": true }))["ok"], json!(true));
    rpc.result("close", &json!({}));
}
