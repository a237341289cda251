//! Tests of the number of versions that HISTORY returns.

use serde_json::{Value, json};

use super::tests::{belief, options, run, run_with};
use super::{ExecuteOptions, TestLimits};
use crate::testutil::Fake;

const TRIPLE: &str = "HISTORY WHERE subject = \"s\" AND relation = \"r\"";

/// This many versions, each of which superseded the one before it; and the address of the newest.
fn chain(of: usize) -> (Fake, String) {
    let memory = Fake::at_work();
    let mut newest = None;
    for number in 0..of {
        let next = memory.keep(&belief("s", "r", &format!("v{number}"), ""));
        if let Some(last) = newest.replace(next) {
            memory.mark(last, |state| state.superseded_by = Some(next));
        }
    }
    (memory, newest.unwrap().to_string())
}

/// The number of versions in an answer, its `total`, and the object of the first.
fn told(answer: &Value) -> (usize, &Value, &Value) {
    let versions = answer["versions"].as_array().unwrap();
    (versions.len(), &answer["total"], &versions[0]["grain"]["object"])
}

#[test]
fn by_triple_it_is_the_newest_hundred_and_tells_how_many_there_are() {
    let (memory, _) = chain(130);
    let answer = run(&memory, TRIPLE).unwrap();
    assert_eq!(told(&answer), (100, &json!(130), &json!("v129")));
}

#[test]
fn more_than_a_statement_may_hold_is_refused() {
    let (memory, _) = chain(20);
    let given = TestLimits { row_bytes: Some(2_000), ..TestLimits::default() };
    let refused = run_with(&memory, TRIPLE, &ExecuteOptions { test_limits: given, ..options() });
    assert_eq!(refused, Err("CAL-E030 at HISTORY".to_owned()));
}

#[test]
fn of_one_grain_it_is_the_newest_hundred_and_tells_how_many_there_are() {
    for (of, shown, total) in [(100, 100, json!(100)), (101, 100, json!(101))] {
        let (memory, newest) = chain(of);
        let answer = run(&memory, &format!("HISTORY sha256:{newest}")).unwrap();
        assert_eq!(told(&answer), (shown, &total, &json!(format!("v{}", of - 1))));
    }
}
