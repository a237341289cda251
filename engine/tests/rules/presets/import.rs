//! Rules on the way in and out in files: what is refused is left out and counted, and nothing gets past
//! the rules in a file.

use grainstore::cal::Query;
use grainstore::format::Grain;
use grainstore::{
    ExportOptions, ImportOptions, OpenOptions, Preset, Session, SessionOptions, Store,
};
use serde_json::{Value, json};
use tempfile::TempDir;

fn store(dir: &TempDir, name: &str, preset: &str) -> Session {
    let preset = Preset::from_name(preset).unwrap();
    let options = OpenOptions::new().create(true).preset(preset);
    Store::open(dir.path().join(name), &options).unwrap().session(SessionOptions::default())
}

fn belief(object: &str, more: &Value) -> Grain {
    let mut grain = json!({
        "type": "belief", "subject": "alice", "relation": "likes", "object": object,
        "confidence": 1.0, "created_at": 1000,
    });
    for (name, value) in more.as_object().unwrap() {
        grain[name] = value.clone();
    }
    Grain::from_json(&grain.to_string()).unwrap()
}

fn consent(scope: &[&str], created_at: i64) -> Grain {
    let consent = json!({
        "type": "consent", "subject_did": "did:web:alice", "grantee_did": "did:web:agent",
        "scope": scope, "is_withdrawal": false, "created_at": created_at,
    });
    Grain::from_json(&consent.to_string()).unwrap()
}

#[test]
fn an_export_leaves_out_what_rules_keep_and_says_how_many_and_why() {
    let dir = TempDir::new().unwrap();
    let session = store(&dir, "a", "open");
    let kept = json!({ "structural_tags": ["profile:consumer"], "user_id": "u1" });
    let sold = json!({ "structural_tags": ["profile:finance", "pii:name"] });
    for (object, more) in [("tea", &kept), ("water", &kept), ("wine", &sold)] {
        session.put(belief(object, more)).unwrap();
    }
    let file = dir.path().join("out.mg");
    let all = || session.export(&file, &Query::default(), &ExportOptions::default());
    let refused = all().unwrap_err();
    assert_eq!(refused.code(), "ERR_POLICY", "nothing is left");
    assert!(refused.to_string().contains("none of 3 grains"), "{refused}");
    assert!(!file.exists());
    session.put(belief("milk", &json!({}))).unwrap();
    let exported = all().unwrap();
    assert_eq!((exported.exported, exported.refused), (1, 3));
    assert_eq!(exported.rules, ["oms.consumer-basis", "oms.finance-basis"]);
    let entries = session.audit(None, 100).unwrap();
    let told: Vec<_> = entries.iter().filter(|entry| entry.operation == "export").collect();
    let [last] = &*told else { panic!("equal refusals of a minute are one entry: {told:?}") };
    assert_eq!(last.decision, "refused");
    assert_eq!((last.rules.len(), last.subjects.len()), (2, 3));
    let other = store(&dir, "b", "open");
    assert_eq!(other.import([&file], &ImportOptions::default()).unwrap().added, 1);
}

#[test]
fn an_import_leaves_out_what_rules_refuse_and_finds_consents_in_the_file() {
    let dir = TempDir::new().unwrap();
    let session = store(&dir, "a", "open");
    let mut addresses = Vec::new();
    // The grains come before the consents they rest on.
    for (scope, at) in [(&["store", "share"][..], 9000), (&["share"], 9001)] {
        addresses.push(session.put(consent(scope, at)).unwrap().address().to_string());
    }
    for (object, basis) in
        [("tea", json!(addresses[0])), ("water", json!(addresses[1])), ("wine", json!("none"))]
    {
        session
            .put(belief(object, &json!({ "user_id": "u1", "processing_basis": basis })))
            .unwrap();
    }
    session.put(belief("milk", &json!({ "user_id": "u1" }))).unwrap();
    session.put(belief("juice", &json!({}))).unwrap();
    let file = dir.path().join("out.mg");
    session.export(&file, &Query::default(), &ExportOptions::default()).unwrap();
    let strict = store(&dir, "b", "gdpr");
    let imported = strict.import([&file], &ImportOptions::default()).unwrap();
    assert_eq!((imported.added, imported.refused), (4, 3), "{imported:?}");
    let mut why: Vec<_> =
        imported.conflicts.iter().map(|conflict| conflict.detail.clone()).collect();
    why.sort();
    for (why, rule) in why.iter().zip(["gdpr.basis", "gdpr.consent-store", "gdpr.known-basis"]) {
        assert!(why.contains(rule), "{why}");
    }
    // What is here already is no news, whatever the rules say of it.
    let again = strict.import([&file], &ImportOptions::default()).unwrap();
    assert_eq!((again.added, again.duplicate, again.refused), (0, 4, 3));
}
