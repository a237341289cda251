//! What rests on consents comes with them: they are taken first, wherever they stand in an archive.

use grainstore::Preset;
use grainstore::format::{SigningKey, sign};
use grainstore::prelude::*;
use grainstore_interop::Monitor;
use grainstore_interop::alf::{self, ApplyReport, DeltaOptions, ExportOptions, ImportOptions};
use serde_json::json;

use crate::kit::*;
use crate::vouched::{carrying, carrying_bytes, running};

fn world(preset: &str) -> World {
    match Preset::from_name(preset) {
        Ok(preset) => World::with(OpenOptions::new().preset(preset)),
        Err(_) => World::new(),
    }
}

fn consent(subject: &str, members: &str) -> Grain {
    Grain::from_json(&format!(
        r#"{{"type": "consent", "subject_did": "{subject}", "grantee_did": "did:web:bot.example",
        "scope": ["store", "retrieve"], "user_id": "ann", {members}}}"#
    ))
    .unwrap()
}

/// A fact that rests on a consent.
fn fact(basis: &ContentAddress, object: &str, created_at: &str) -> Grain {
    Grain::from_json(&format!(
        r#"{{"type": "belief", "subject": "ann", "relation": "likes", "object": "{object}", "confidence": 0.9,
        "user_id": "ann", "processing_basis": "{basis}", "created_at": "{created_at}"}}"#
    ))
    .unwrap()
}

fn given(subject: &str) -> Grain {
    consent(subject, r#""is_withdrawal": false, "created_at": "2026-07-10T00:00:00Z""#)
}

fn export(world: &World) {
    let options = ExportOptions {
        agent_id: Some(AGENT.to_owned()),
        agent_name: Some("Ada".to_owned()),
        native: true,
        ..ExportOptions::default()
    };
    let path = world.dir.path().join("out.alf");
    alf::export(&world.session, path, &options, &Monitor::default()).unwrap();
}

fn send_delta(from: &World, since: u64) {
    let options = DeltaOptions { since, ..DeltaOptions::default() };
    let path = from.dir.path().join("a.alf-delta");
    alf::export_delta(&from.session, path, &options, &Monitor::default()).unwrap().unwrap();
}

fn apply(world: &World, from: &World) -> ApplyReport {
    let path = from.dir.path().join("a.alf-delta");
    let options = ImportOptions::default();
    alf::apply_delta(&world.session, path, &options, &Monitor::default()).unwrap()
}

fn assert_shown(world: &World, addresses: &[ContentAddress]) {
    for address in addresses {
        world.session.get(address).unwrap();
    }
    world.verify();
}

#[test]
fn facts_come_with_the_consent_that_they_rest_on() {
    for preset in ["", "gdpr", "lgpd"] {
        let one = world(preset);
        let basis = one.session.put(given("did:web:ann.example")).unwrap().address();
        // Some say that they are older than the consent.
        let times = ["2026-07-09T00:00:00Z", "2026-04-01T00:00:00Z", "2026-07-11T00:00:00Z"];
        let facts = ["tea", "milk", "sugar"].into_iter().zip(times);
        let facts = facts.map(|(object, at)| one.session.put(fact(&basis, object, at)));
        let facts: Vec<_> = facts.map(|put| put.unwrap().address()).collect();
        export(&one);
        let other = world(preset);
        let report = other.import(&one.dir.path().join("out.alf"));
        assert_eq!((report.records.read, report.records.created), (4, 4), "{preset}: {report:?}");
        assert_shown(&other, &facts);
        let again = other.import(&one.dir.path().join("out.alf"));
        assert_eq!(again.records.unchanged, 4, "{preset}");
    }
}

#[test]
fn a_consent_behind_thousands_of_records_is_taken_before_them() {
    let basis = given("did:web:ann.example");
    let address = basis.encode(Default::default()).unwrap().address();
    let first = fact(&address, "tea", "2026-07-11T00:00:00Z");
    let mut records = vec![carrying(1, &first, json!({}))];
    records.extend((10..1_510).map(|number| record(number, "2026-07-02T00:00:00Z")));
    records.push(carrying(2, &basis, json!({})));
    let other = World::with(OpenOptions::new().preset(Preset::from_name("gdpr").unwrap()));
    let report = other.import_made(&running(records));
    assert_eq!((report.records.read, report.records.created), (1_502, 1_502));
    assert_shown(&other, &[first.encode(Default::default()).unwrap().address()]);
}

#[test]
fn facts_of_a_delta_come_with_the_consent_that_they_rest_on() {
    let [one, other] = [world("gdpr"), world("gdpr")];
    let event = r#"{"type": "event", "content": "hello", "user_id": "ann", "processing_basis": "contract",
        "created_at": "2026-07-01T00:00:00Z"}"#;
    one.session.put(Grain::from_json(event).unwrap()).unwrap();
    export(&one);
    other.import(&one.dir.path().join("out.alf"));
    let basis = one.session.put(given("did:web:ann.example")).unwrap().address();
    let tea = one.session.put(fact(&basis, "tea", "2026-07-11T00:00:00Z")).unwrap().address();
    export(&one);
    send_delta(&one, 1);
    let applied = apply(&other, &one);
    assert_eq!(applied.import.errors, []);
    assert_shown(&other, &[tea]);
    assert!(apply(&other, &one).known);
}

/// A store with a fact that rests on a consent, which was withdrawn.
fn withdrawn(key: &SigningKey) -> (World, ContentAddress, ContentAddress) {
    let subject = key.did().to_string();
    let world = World::new();
    let basis = world.session.put(given(&subject)).unwrap().address();
    let tea = world.session.put(fact(&basis, "tea", "2026-07-11T00:00:00Z")).unwrap().address();
    let members = format!(
        r#""is_withdrawal": true, "prior_consent": "{basis}", "derived_from": ["{basis}"],
        "supersession_justification": "no more", "created_at": "2026-07-12T00:00:00Z""#
    );
    let last = world.session.supersede(&basis, consent(&subject, &members), None).unwrap();
    assert_eq!(world.session.get(&tea).unwrap_err().code(), "ERR_WITHDRAWN");
    (world, last, tea)
}

fn renew(world: &World, key: &SigningKey, last: &ContentAddress) {
    let members = format!(
        r#""is_withdrawal": false, "prior_consent": "{last}", "derived_from": ["{last}"],
        "supersession_justification": "agreed", "created_at": "2026-07-13T00:00:00Z""#
    );
    let again = consent(key.did().as_str(), &members).encode(Default::default()).unwrap();
    let signed = sign(again.bytes(), key, None).unwrap();
    world.session.supersede(last, signed, None).unwrap();
}

#[test]
fn facts_of_a_consent_that_was_renewed_come_with_it() {
    let key = SigningKey::ed25519_from_seed(&[7; 32]);
    let (one, last, tea) = withdrawn(&key);
    export(&one);
    let behind = World::new();
    behind.import(&one.dir.path().join("out.alf"));
    renew(&one, &key, &last);
    export(&one);
    let fresh = World::new();
    fresh.import(&one.dir.path().join("out.alf"));
    assert_shown(&fresh, &[tea]);
    send_delta(&one, 1);
    assert_eq!(apply(&behind, &one).import.errors, []);
    assert_shown(&behind, &[tea]);
}

#[test]
fn a_delta_of_which_a_record_was_refused_is_taken_again_until_another_is() {
    let [one, other] = [World::new(), world("gdpr")];
    let basis = given("did:web:ann.example");
    let address = basis.encode(Default::default()).unwrap().address();
    let tea = fact(&address, "tea", "2026-07-11T00:00:00Z");
    let blob = tea.encode(Default::default()).unwrap();
    other.import_made(&running(vec![record(1, "2026-07-02T00:00:00Z")]));
    one.import_made(&running(vec![record(1, "2026-07-02T00:00:00Z")]));
    one.import_made(&running(vec![
        record(3, "2026-07-02T00:00:00Z"),
        carrying_bytes(2, blob.bytes(), None, json!({})),
    ]));
    send_delta(&one, 7);
    let refused = apply(&other, &one);
    assert_eq!((refused.import.records.created, refused.import.records.failed), (1, 1));
    other.session.put(basis).unwrap();
    let applied = apply(&other, &one);
    assert!(!applied.known);
    assert_eq!((applied.import.records.created, applied.import.errors), (1, Vec::new()));
    assert_eq!(applied.import.warnings, []);
    assert_shown(&other, &[blob.address()]);
    assert!(apply(&other, &one).known);
}

#[test]
fn a_later_delta_goes_on_from_one_of_which_a_record_was_refused() {
    let [one, other] = [World::new(), world("gdpr")];
    let basis = given("did:web:ann.example").encode(Default::default()).unwrap().address();
    let tea = fact(&basis, "tea", "2026-07-11T00:00:00Z");
    let first = running(vec![record(1, "2026-07-02T00:00:00Z")]);
    other.import_made(&first);
    one.import_made(&first);
    one.import_made(&running(vec![carrying(2, &tea, json!({}))]));
    send_delta(&one, 7);
    assert_eq!(apply(&other, &one).import.records.failed, 1);
    std::fs::copy(one.dir.path().join("a.alf-delta"), one.dir.path().join("first")).unwrap();
    one.import_made(&running(vec![record(3, "2026-07-02T00:00:00Z")]));
    send_delta(&one, 8);
    assert_eq!(apply(&other, &one).import.errors, []);
    std::fs::copy(one.dir.path().join("first"), one.dir.path().join("a.alf-delta")).unwrap();
    assert!(apply(&other, &one).known, "what is older does not come back");
}
