//! A report about a person as a file: the rules on export hold for it as for any other, but where it is for the
//! person who asked.

use grainstore::format::Grain;
use grainstore::{
    ContentAddress, ExportOptions, ImportOptions, OpenOptions, Preset, Session, SessionOptions,
    Store,
};
use serde_json::{Value, json};
use tempfile::TempDir;

fn store(dir: &TempDir, preset: Preset) -> Store {
    let options = OpenOptions::new().create(true).preset(preset);
    Store::open(dir.path().join(preset.name()), &options).unwrap()
}

fn session(store: &Store, purposes: &[&str]) -> Session {
    let purposes = purposes.iter().map(|&purpose| purpose.to_owned()).collect();
    store.session(SessionOptions { purposes, ..SessionOptions::default() })
}

fn put(session: &Session, object: &str, more: &Value) -> ContentAddress {
    let mut grain = json!({
        "type": "belief", "subject": "ann", "relation": "likes", "object": object, "user_id": "ann",
        "confidence": 1.0, "created_at": 1000, "author_did": "did:web:agent", "source_type": "user_explicit",
    });
    for (name, value) in more.as_object().unwrap() {
        grain[name] = value.clone();
    }
    session.put(Grain::from_json(&grain.to_string()).unwrap()).unwrap().address()
}

/// Where they are granted the purposes that a preset asks for, each refuses the same, and none refuses the person.
#[test]
fn under_every_preset_a_report_keeps_what_an_export_keeps_but_from_the_person() {
    for preset in Preset::all() {
        let dir = TempDir::new().unwrap();
        let store = store(&dir, preset);
        let operator = session(&store, &["support"]);
        let basis = |tag: &str, context: Value| json!({ "processing_basis": "contract", "structural_tags": [tag], "context": context });
        put(&operator, "tea", &json!({ "processing_basis": "contract" }));
        let privileged = put(
            &operator,
            "plea",
            &basis("profile:legal", json!({ "legal:privilege": "attorney_client" })),
        );
        put(&operator, "ads", &basis("profile:consumer", json!({ "con:ccpa_opted_out": true })));
        let file = dir.path().join("ann.mg");
        let how = ExportOptions::default();
        let told = |session: &Session| {
            let exported = session.export_subject(&file, "ann", &how).unwrap();
            (exported.exported, exported.refused, exported.rules)
        };
        let kept = |rules: &[&str]| rules.iter().map(|&id| id.to_owned()).collect::<Vec<_>>();
        let name = preset.name();
        assert_eq!(told(&operator), (2, 1, kept(&["oms.privilege-hold"])), "{name}");
        let campaign = session(&store, &["Campaign 7"]);
        let both = kept(&["oms.known-purpose", "oms.privilege-hold"]);
        assert_eq!(told(&campaign), (1, 2, both), "{name}");
        // Nothing is said of an access request but that it is one.
        let refused = operator.access_request(&file, "ann", &how).unwrap_err();
        assert_eq!(refused.code(), "ERR_POLICY", "{name}: {refused}");
        let all = session(&store, &[]).access_request(&file, "ann", &how).unwrap();
        assert_eq!((all.exported, all.refused, all.rules.len()), (3, 0, 0), "{name}");
        let entries = operator.audit(None, 1000).unwrap();
        let last = entries.iter().rfind(|entry| entry.operation == "export").unwrap();
        assert_eq!(last.decision, "done", "{name}");
        assert_eq!(last.rules.first().map(String::as_str), Some("access_request"), "{name}");
        assert!(last.rules.contains(&"oms.privilege-hold".to_owned()), "{name}: {:?}", last.rules);
        assert!(last.subjects.contains(&privileged), "{name}");
        operator.hold(&privileged, "a matter").unwrap();
        assert_eq!(told(&operator), (3, 0, Vec::new()), "{name}");
        assert!(store.verify(true).unwrap().ok, "{name}");
    }
}

#[test]
fn a_report_of_nothing_but_what_is_kept_is_refused_and_leaves_no_file() {
    let dir = TempDir::new().unwrap();
    let store = store(&dir, Preset::default());
    let operator = session(&store, &[]);
    put(&operator, "debt", &json!({ "structural_tags": ["profile:finance"] }));
    put(
        &operator,
        "loan",
        &json!({ "structural_tags": ["profile:finance"], "processing_basis": "banana" }),
    );
    let file = dir.path().join("ann.mg");
    let refused = operator.export_subject(&file, "ann", &ExportOptions::default()).unwrap_err();
    assert_eq!(refused.code(), "ERR_POLICY");
    assert!(refused.to_string().contains("none of 2 grains"), "{refused}");
    assert!(refused.to_string().contains("oms.finance-basis"), "{refused}");
    assert!(!file.exists());
    let entries = operator.audit(None, 1000).unwrap();
    let last = entries.last().unwrap();
    assert_eq!((last.operation.as_str(), last.decision.as_str()), ("export", "refused"));
    assert_eq!(
        (last.rules.as_slice(), last.subjects.len()),
        (&["oms.finance-basis".to_owned()][..], 2)
    );
}

/// What no read shows leaves in no file for others: the person is told of it all the same.
#[test]
fn what_rests_on_a_consent_that_was_withdrawn_is_for_the_person_alone() {
    let dir = TempDir::new().unwrap();
    let store = store(&dir, Preset::default());
    let operator = session(&store, &[]);
    let consent = |more: &Value| {
        let mut consent = json!({
            "type": "consent", "subject_did": "did:web:ann", "grantee_did": "did:web:agent",
            "scope": ["store", "share"], "is_withdrawal": false, "created_at": 1000,
        });
        for (name, value) in more.as_object().unwrap() {
            consent[name] = value.clone();
        }
        operator.put(Grain::from_json(&consent.to_string()).unwrap()).unwrap().address()
    };
    let grant = consent(&json!({}));
    put(&operator, "tea", &json!({ "processing_basis": grant.to_string() }));
    put(&operator, "milk", &json!({}));
    let (file, how) = (dir.path().join("ann.mg"), ExportOptions::default());
    let before = operator.export_subject(&file, "ann", &how).unwrap();
    assert_eq!((before.exported, before.refused), (2, 0));
    consent(
        &json!({ "is_withdrawal": true, "prior_consent": grant.to_string(), "created_at": 2000 }),
    );
    let after = operator.export_subject(&file, "ann", &how).unwrap();
    assert_eq!((after.exported, after.refused, after.rules), (1, 1, vec!["consent".to_owned()]));
    let other = TempDir::new().unwrap();
    let other = self::store(&other, Preset::default());
    assert_eq!(session(&other, &[]).import([&file], &ImportOptions::default()).unwrap().added, 1);
    assert_eq!(operator.access_request(&file, "ann", &how).unwrap().exported, 2);
}
