//! Evidence: the hashes of the standard, packs that were meddled with, and packs of stores.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at a surprise")]

use std::path::{Path, PathBuf};

use grainstore::prelude::*;
use grainstore::{EpochMs, EraseOptions, KeyFile};
use grainstore_interop::ages::{
    ExportOptions, ExportReport, Verdict, export, segments, verify, verify_file,
};
use grainstore_interop::{Monitor, json};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const GENESIS_HASH: &str = "e2a48743bac421b9954d0104879d3ddf894ed9f898339a129075b304ea1c5dde";
const ROOT: &str = "955f9ebedfb7be1920eff9fcfbb2b4c7a6c0d1ead1e4cd70fc56c9e33c8403df";

/// A step of the worked example but for what differs between its two.
fn step(index: u64, more: Value) -> Value {
    let mut step = json!({
        "schema_version": "ages.v1", "tenant_id": "tnt_123", "request_id": "req_2025_12_30_001",
        "step_id": format!("step_{index:04}"), "step_index": index,
        "input": { "input_class": "sanitized", "content_type": "application/json" },
        "policy": { "mode": "enforcing", "policy_set_id": "polset_v1", "rules_evaluated": [] },
        "decision": { "outcome": "ALLOW", "fail_closed": true, "latency_ms": 0, "error": null },
        "outputs": { "sanitized_output_hash": null, "evidence_ref": "evp_0000" },
        "chain": { "prev_step_hash": null, "step_hash": "", "genesis": false },
    });
    merge(&mut step, more);
    step
}

fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (name, value) in more {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more,
    }
}

fn hash_of(value: &Value) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(json::line(value)))
}

/// Writes the hash of a step into it.
fn sealed(mut step: Value) -> Value {
    step["chain"]["step_hash"] = "".into();
    step["chain"]["step_hash"] = hash_of(&step).into();
    step
}

/// The pack of the worked example and of a denied erasure.
fn example() -> Value {
    let genesis = sealed(step(
        0,
        json!({
            "timestamp": "2025-12-30T12:34:56.789Z", "kind": "GENESIS",
            "actor": { "type": "system", "id": "system" }, "subject": { "type": "action", "name": "run" },
            "input": { "content_hash": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
            "chain": { "genesis": true },
        }),
    ));
    let denied = sealed(step(
        1,
        json!({
            "timestamp": "2025-12-30T12:34:57.000Z", "kind": "GOVERNANCE_DECISION",
            "actor": { "type": "agent", "id": "agent_7" }, "subject": { "type": "action", "name": "erase" },
            "input": { "content_hash": hash_of(&json!({
                "op": "erase", "addr": "df928038769506fb66671aced0eb97d45871e169e505ed55a382c744e620550e",
            })) },
            "policy": { "rules_evaluated": [{
                "rule_id": "oms.23.2.hold", "result": "FAIL", "reason_code": "ERR_INVALIDATION_DENIED",
                "reason_detail": "hold policy is in force",
            }] },
            "decision": { "outcome": "BLOCK" },
            "chain": { "prev_step_hash": genesis["chain"]["step_hash"] },
        }),
    ));
    let root = denied["chain"]["step_hash"].clone();
    json!({
        "schema_version": "ages.evidence.v1", "exported_at": "2025-12-30T13:00:00.000Z", "tenant_id": "tnt_123",
        "request_id": "req_2025_12_30_001", "steps": [genesis, denied], "root_hash": root,
    })
}

/// The number of the check that failed; 0 for a pack that is valid.
fn failed(pack: &str) -> u8 {
    match verify(pack.as_bytes()) {
        Verdict::Tampered(tampering) => tampering.check,
        _ => 0,
    }
}

/// The example after a change, with its steps hashed and linked anew, or not.
fn changed(change: impl FnOnce(&mut Value), relink: bool) -> String {
    let mut pack = example();
    change(&mut pack);
    if relink {
        let mut last = Value::Null;
        for step in pack["steps"].as_array_mut().unwrap() {
            step["chain"]["prev_step_hash"] = last;
            *step = sealed(step.take());
            last = step["chain"]["step_hash"].clone();
        }
        pack["root_hash"] = last;
    }
    json::line(&pack)
}

#[test]
fn the_worked_example_has_its_hashes_and_verifies() {
    let pack = example();
    assert_eq!(pack["steps"][0]["chain"]["step_hash"], GENESIS_HASH);
    assert_eq!(pack["root_hash"], ROOT);
    let bytes = json::line(&pack);
    assert_eq!(bytes.len(), 1947);
    assert_eq!(hash_of(&pack), "eccaaa1f24c1540d8979e6c8472721c412ef9320e195d4fc053e191910a7a8d2");
    assert!(verify(bytes.as_bytes()).is_valid());
    // Any layout is read.
    assert!(verify(serde_json::to_string_pretty(&pack).unwrap().as_bytes()).is_valid());
}

#[test]
fn every_changed_byte_is_found_but_those_of_the_time_of_the_export() {
    let bytes = json::line(&example()).into_bytes();
    let time = bytes.windows(11).position(|at| at == b"exported_at").unwrap() + 14;
    for at in (0..bytes.len()).filter(|at| !(time..time + 24).contains(at)) {
        for with in [1, 2, 4, 8, 16, 32, 64, 128] {
            let mut changed = bytes.clone();
            changed[at] ^= with;
            assert!(!verify(&changed).is_valid(), "byte {at} with {with}");
        }
    }
}

#[test]
fn each_way_to_meddle_is_found_by_its_check() {
    let steps = |pack: &mut Value, change: &dyn Fn(&mut Vec<Value>)| {
        change(pack["steps"].as_array_mut().unwrap());
    };
    let cases: Vec<(&str, u8, String)> = vec![
        ("nothing", 0, changed(|_| {}, true)),
        ("a byte order mark", 1, format!("\u{feff}{}", changed(|_| {}, false))),
        ("something behind", 1, changed(|_| {}, false) + "1"),
        ("a name twice", 1, changed(|_| {}, false).replacen('{', "{\"root_hash\":1,", 1)),
        ("a list", 1, "[]".to_owned()),
        ("nothing at all", 1, String::new()),
        (
            "another version",
            2,
            changed(|pack| pack["schema_version"] = "ages.evidence.v2".into(), false),
        ),
        ("an unknown member", 3, changed(|pack| pack["note"] = 1.into(), false)),
        ("no steps", 3, changed(|pack| pack["steps"] = json!([]), false)),
        (
            "an upper-case root",
            3,
            changed(|pack| pack["root_hash"] = ROOT.to_uppercase().into(), false),
        ),
        (
            "another time zone",
            3,
            changed(|pack| pack["exported_at"] = "2025-12-30T13:00:00+01:00".into(), false),
        ),
        (
            "an unknown member of a step",
            4,
            changed(|pack| pack["steps"][1]["note"] = 1.into(), true),
        ),
        (
            "an unknown member of a rule",
            4,
            changed(
                |pack| {
                    pack["steps"][1]["policy"]["rules_evaluated"][0]["note"] = 1.into();
                },
                true,
            ),
        ),
        (
            "a fraction",
            4,
            changed(|_| {}, false).replacen("\"step_index\":1", "\"step_index\":1.0", 1),
        ),
        (
            "an exponent",
            4,
            changed(|_| {}, false).replacen("\"step_index\":1", "\"step_index\":1e0", 1),
        ),
        (
            "an upper-case hash",
            4,
            changed(
                |pack| {
                    pack["steps"][1]["chain"]["step_hash"] = ROOT.to_uppercase().into();
                },
                false,
            ),
        ),
        ("another tenant", 4, changed(|pack| pack["tenant_id"] = "tnt_124".into(), true)),
        ("another run", 4, changed(|pack| pack["steps"][1]["request_id"] = "x".into(), true)),
        ("an edited step", 4, changed(|pack| pack["steps"][0]["actor"]["id"] = "x".into(), false)),
        (
            "a decision that does not fail closed",
            4,
            changed(
                |pack| {
                    pack["steps"][1]["decision"]["fail_closed"] = false.into();
                },
                true,
            ),
        ),
        (
            "an error that allows",
            4,
            changed(
                |pack| {
                    pack["steps"][0]["decision"]["error"] =
                        json!({ "type": "TIMEOUT", "message": "", "retryable": true });
                },
                true,
            ),
        ),
        (
            "an output of what was blocked",
            4,
            changed(
                |pack| {
                    pack["steps"][1]["outputs"]["sanitized_output_hash"] = ROOT.into();
                },
                true,
            ),
        ),
        (
            "a genesis that says it is none",
            4,
            changed(
                |pack| {
                    pack["steps"][0]["chain"]["genesis"] = false.into();
                },
                true,
            ),
        ),
        (
            "a step that is dropped",
            5,
            changed(|pack| steps(pack, &|steps| drop(steps.remove(0))), true),
        ),
        (
            "a step twice",
            5,
            changed(|pack| steps(pack, &|steps| steps.push(steps[1].clone())), true),
        ),
        ("steps in another order", 5, changed(|pack| steps(pack, &|steps| steps.swap(0, 1)), true)),
        (
            "a name of a step twice",
            5,
            changed(|pack| pack["steps"][1]["step_id"] = "step_0000".into(), true),
        ),
        (
            "an edited step that was hashed anew",
            6,
            changed(
                |pack| {
                    pack["steps"][0]["actor"]["id"] = "x".into();
                    pack["steps"][0] = sealed(pack["steps"][0].take());
                },
                false,
            ),
        ),
        (
            "no genesis",
            7,
            changed(
                |pack| {
                    pack["steps"][0]["kind"] = "EXPORT".into();
                    pack["steps"][0]["chain"]["genesis"] = false.into();
                },
                true,
            ),
        ),
        (
            "a second genesis",
            7,
            changed(
                |pack| {
                    pack["steps"][1]["kind"] = "GENESIS".into();
                    pack["steps"][1]["chain"]["genesis"] = true.into();
                },
                true,
            ),
        ),
        ("another root", 8, changed(|pack| pack["root_hash"] = GENESIS_HASH.into(), false)),
        (
            "a last step that is cut off",
            8,
            changed(|pack| steps(pack, &|steps| drop(steps.pop())), false),
        ),
    ];
    for (what, check, pack) in cases {
        assert_eq!(failed(&pack), check, "{what}: {:?}", verify(pack.as_bytes()));
    }
}

#[test]
fn deep_and_long_packs_are_refused_without_a_panic() {
    let deep = changed(
        |pack| {
            let mut value = json!(1);
            for _ in 0..40 {
                value = json!([value]);
            }
            pack["steps"] = value;
        },
        false,
    );
    assert_eq!(failed(&deep), 1);
    assert_eq!(failed(&"[".repeat(1_000_000)), 1);
}

// Packs of stores.

fn store_at(path: &Path) -> Session {
    let store = Store::open(path, &OpenOptions::new().create(true)).unwrap();
    store.session(SessionOptions::default())
}

fn belief(session: &Session, object: &str) -> BeliefBuilder {
    BeliefBuilder::new(session.now(), "alice", "prefers", object, 0.9)
}

fn exported(session: &Session, to: &Path, options: &ExportOptions) -> ExportReport {
    export(session, to, options, &Monitor::default()).unwrap()
}

fn all(session: &Session, to: &Path) -> Vec<(PathBuf, Value)> {
    let report = exported(session, to, &ExportOptions::default());
    let packs = report.packs.into_iter().map(|pack| {
        assert!(verify_file(&pack.path).unwrap().is_valid(), "{:?}", verify_file(&pack.path));
        let read: Value = serde_json::from_slice(&std::fs::read(&pack.path).unwrap()).unwrap();
        assert_eq!(read["root_hash"], pack.root_hash);
        (pack.path, read)
    });
    packs.collect()
}

/// What the steps of a pack say: name, outcome and the result of the last rule.
fn told(pack: &Value) -> Vec<String> {
    let text = |step: &Value, path: &str| {
        step.pointer(path).and_then(Value::as_str).unwrap_or("-").to_owned()
    };
    let steps = pack["steps"].as_array().unwrap().iter();
    steps
        .map(|step| {
            let rules = step["policy"]["rules_evaluated"].as_array().unwrap();
            let last = rules.last().map_or_else(String::new, |rule| {
                format!(" {} {}", text(rule, "/rule_id"), text(rule, "/reason_code"))
            });
            format!("{} {}{last}", text(step, "/subject/name"), text(step, "/decision/outcome"))
        })
        .collect()
}

#[test]
fn decisions_of_a_store_are_steps_of_a_pack() {
    let dir = tempfile::tempdir().unwrap();
    let session = store_at(&dir.path().join("store"));
    let held = json!({
        "type": "belief", "subject": "alice", "relation": "prefers", "object": "tea", "confidence": 0.9,
        "created_at": session.now().get(), "invalidation_policy": { "mode": "hold" },
    });
    let tea = session.put(Grain::from_json(&held.to_string()).unwrap()).unwrap().address();
    assert!(session.erase(&tea, "tidying", &EraseOptions::new()).is_err());
    let packs = all(&session, dir.path());
    let steps = told(&packs[0].1);
    assert_eq!(steps[0], "log_open ALLOW");
    assert_eq!(steps[1], "create ALLOW");
    assert_eq!(steps[2], "put ALLOW");
    assert!(steps[3].starts_with("erase BLOCK oms.23.2.hold "), "{steps:?}");
    assert_eq!(steps[4], "export_evidence ALLOW");
    let put = &packs[0].1["steps"][2];
    assert_eq!(put["input"]["input_class"], "raw");
    assert_eq!(put["input"]["content_hash"], tea.to_string());
    assert_eq!(put["outputs"]["sanitized_output_hash"], tea.to_string());
    assert_eq!(packs[0].1["steps"][4]["kind"], "EXPORT");
}

#[test]
fn a_later_pack_of_a_chain_begins_with_the_earlier_one() {
    let dir = tempfile::tempdir().unwrap();
    let session = store_at(&dir.path().join("store"));
    session.put(belief(&session, "tea").build().unwrap()).unwrap();
    let (_, first) = all(&session, dir.path()).remove(0);
    session.put(belief(&session, "coffee").build().unwrap()).unwrap();
    let (_, second) = all(&session, dir.path()).remove(0);
    let (first, second) = (first["steps"].as_array().unwrap(), second["steps"].as_array().unwrap());
    assert_eq!(first.len() + 2, second.len());
    assert_eq!(first[..], second[..first.len()]);
}

#[test]
fn closed_segments_stay_as_they_are_and_are_bound_to_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let session = store_at(&dir.path().join("store"));
    session.put(belief(&session, "tea").build().unwrap()).unwrap();
    // Other rules begin another segment.
    session.change_rules(RULES, true, "a new rule").unwrap();
    session.put(belief(&session, "coffee").build().unwrap()).unwrap();
    let listed = segments(&session).unwrap();
    assert_eq!(listed.iter().map(|segment| segment.closed).collect::<Vec<_>>(), [true, false]);
    let packs = all(&session, dir.path());
    assert_eq!(packs.len(), 2);
    let binding = json!({ "prev_request_id": packs[0].1["request_id"], "prev_root": packs[0].1["root_hash"] });
    assert_eq!(packs[1].1["steps"][0]["input"]["content_hash"], hash_of(&binding));

    let one = ExportOptions { segment: Some(0), ..ExportOptions::default() };
    let file = dir.path().join("one.json");
    exported(&session, &file, &one);
    let again: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(again["steps"], packs[0].1["steps"]);
    assert_eq!(
        segments(&session).unwrap()[1].last,
        listed[1].last + 1,
        "one export of the open segment"
    );
}

/// A rule that all beliefs keep.
const RULES: &str = r#"
[[rule]]
id = "own.name"
on = ["put"]
require = { has = ["subject"] }
article = "house rule 1"
because = "it is about somebody"
fix = "set subject"
"#;

#[test]
fn segments_are_chosen_by_time_and_namespace() {
    let dir = tempfile::tempdir().unwrap();
    let session = store_at(&dir.path().join("store"));
    session.put(belief(&session, "tea").namespace("team").build().unwrap()).unwrap();
    let of = |options: &ExportOptions| export(&session, dir.path(), options, &Monitor::default());
    let namespace =
        |name: &str| ExportOptions { namespace: Some(name.into()), ..ExportOptions::default() };
    assert_eq!(of(&namespace("team")).unwrap().packs.len(), 1);
    assert_eq!(of(&namespace("other")).unwrap_err().code(), "ERR_NOT_FOUND");
    let later = EpochMs::new(session.now().get() + 3_600_000);
    let since = ExportOptions { since: Some(later), ..ExportOptions::default() };
    assert_eq!(of(&since).unwrap_err().code(), "ERR_NOT_FOUND");
    let until = ExportOptions { until: Some(later), ..ExportOptions::default() };
    assert_eq!(of(&until).unwrap().packs.len(), 1);
}

#[test]
fn evidence_of_an_encrypted_store_has_no_address_and_outlives_an_erasure() {
    let dir = tempfile::tempdir().unwrap();
    let key = KeyFile::create(dir.path().join("key")).unwrap();
    let options = OpenOptions::new().create(true).key(key);
    let store = Store::open(dir.path().join("store"), &options).unwrap();
    let session = store.session(SessionOptions::default());
    let tea =
        session.put(belief(&session, "tea").user_id("ann").build().unwrap()).unwrap().address();
    let (path, before) = all(&session, dir.path()).remove(0);
    let bytes = std::fs::read_to_string(path).unwrap();
    for hidden in [tea.to_string().as_str(), "alice", "\"ann\"", "tea\""] {
        assert!(!bytes.contains(hidden), "{hidden}");
    }
    session.erase_user("ann", "she asked", &EraseOptions::new()).unwrap();
    let (path, after) = all(&session, dir.path()).remove(0);
    let kept = before["steps"].as_array().unwrap();
    assert_eq!(after["steps"].as_array().unwrap()[..kept.len()], kept[..]);
    assert!(!std::fs::read_to_string(path).unwrap().contains("she asked"));
}

#[test]
fn only_the_operator_hands_on_evidence() {
    let dir = tempfile::tempdir().unwrap();
    let session = store_at(&dir.path().join("store"));
    let options = SessionOptions { namespace: Some("team".into()), ..SessionOptions::default() };
    let part = session.store().session(options);
    let refused =
        export(&part, dir.path(), &ExportOptions::default(), &Monitor::default()).unwrap_err();
    assert_eq!(refused.code(), "ERR_ACCESS");
    assert_eq!(segments(&part).unwrap_err().code(), "ERR_ACCESS");
    let steps = told(&all(&session, dir.path()).remove(0).1);
    assert!(
        steps
            .iter()
            .any(|step| step.starts_with("export_evidence BLOCK oms.28.2.not_operator ERR_ACCESS")),
        "{steps:?}"
    );
}
