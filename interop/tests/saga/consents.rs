//! Consents over time: what one covers is shown while it holds, and what it does not cover is not.

use crate::export::{Setup, open, plain};
use crate::support::*;
use grainstore::EpochMs;
use grainstore::prelude::*;
use grainstore_interop::saga::{
    Consent, Document, ExportType, ImportOptions, Layer, Operation, Signer, export_document,
    import_document, stored_document, withdraw_consent,
};
use serde_json::{Value, json};

/// A time after [`NOW`].
fn later(ms: i64) -> EpochMs {
    EpochMs::new(NOW.get() + ms)
}

fn given(operation: Operation, scope: &[Layer], at: EpochMs) -> Value {
    let consent = Consent {
        operation,
        granted_at: at,
        expires_at: None,
        scope: scope.to_vec(),
        purpose: "a stay".into(),
    };
    consent.sign(&evm()).unwrap()
}

/// A document with these layers of the full one, and a consent to just them.
fn document_of(layers: &[Layer], consented_at: EpochMs) -> Document {
    let mut value = envelope("transfer", json!({}));
    for layer in layers {
        value["layers"][layer.name()] = full_layers()[layer.name()].clone();
    }
    value["consent"] = given(Operation::Transfer, layers, consented_at);
    signed(value, &evm())
}

fn count(session: &Session, query: &str) -> usize {
    session.ask(query).unwrap().answer.grains_given().len()
}

const TASKS: &str = "RECALL goals";
const SKILLS: &str = r#"RECALL beliefs WHERE relation = "mg:has_capability""#;
const FIRST: [Layer; 3] = [Layer::Identity, Layer::Skills, Layer::TaskHistory];
const SECOND: [Layer; 2] = [Layer::Identity, Layer::Skills];

#[test]
fn a_layer_that_a_renewed_consent_does_not_cover_stays_hidden() {
    let setup = Setup::new();
    let (other, clock) = open(&setup.path("other"));
    let agent = evm().wallet().clone();
    import_document(&other, &document_of(&FIRST, NOW), &ImportOptions::default()).unwrap();
    let skills = count(&other, SKILLS);
    assert!(skills > 0 && count(&other, TASKS) == 4);
    clock.set(later(1000));
    withdraw_consent(&other, &agent, Operation::Transfer).unwrap();
    assert_eq!((count(&other, SKILLS), count(&other, TASKS)), (0, 0));
    clock.set(later(3000));
    let renewed = document_of(&SECOND, later(2000));
    import_document(&other, &renewed, &ImportOptions::default()).unwrap();
    assert_eq!((count(&other, SKILLS), count(&other, TASKS)), (skills, 0));
    assert_eq!(stored_document(&other, &agent).unwrap().unwrap(), renewed);
    // An export has what is shown, and says what is not.
    let (exported, report) = export_document(&other, &plain(ExportType::Full), &evm()).unwrap();
    assert_eq!(exported.layers().collect::<Vec<_>>(), [Layer::Identity, Layer::Skills]);
    assert_eq!(report.narrowed, [Layer::TaskHistory]);
    assert_eq!(other.store().verify(true).unwrap().problems, []);
}

#[test]
fn a_consent_that_was_withdrawn_does_not_count_again_after_another_was_given() {
    let setup = Setup::new();
    let (other, clock) = open(&setup.path("other"));
    let agent = evm().wallet().clone();
    let first = document_of(&FIRST, NOW);
    import_document(&other, &first, &ImportOptions::default()).unwrap();
    clock.set(later(1000));
    withdraw_consent(&other, &agent, Operation::Transfer).unwrap();
    clock.set(later(3000));
    import_document(&other, &document_of(&SECOND, later(2000)), &ImportOptions::default()).unwrap();
    let late = import_document(&other, &first, &ImportOptions::default()).unwrap_err();
    assert_eq!((late.code(), late.entry()), ("ERR_WITHDRAWN", Some("consent")));
    let options = |scope: &[Layer], at| grainstore_interop::saga::ExportOptions {
        consent: Some(given(Operation::Transfer, scope, at)),
        ..plain(ExportType::Transfer)
    };
    let late = export_document(&other, &options(&SECOND, NOW), &evm()).unwrap_err();
    assert_eq!(late.code(), "ERR_WITHDRAWN");
    export_document(&other, &options(&SECOND, later(2500)), &evm()).unwrap();
}

#[test]
fn what_a_document_added_is_told_as_unchanged_when_it_comes_again() {
    let setup = Setup::new();
    let (other, _) = open(&setup.path("other"));
    let take = || {
        let options = ImportOptions::default();
        import_document(&other, &document_of(&FIRST, NOW), &options).unwrap().items
    };
    let (first, again) = (take(), take());
    assert_eq!((again.added, again.replaced, again.unchanged), (0, 0, first.added), "{first:?}");
}

#[test]
fn an_item_that_was_there_rests_on_the_consent_of_the_document_that_came_later() {
    let setup = Setup::new();
    let (other, clock) = open(&setup.path("other"));
    let agent = evm().wallet().clone();
    let plain_one = signed(envelope("full", full_layers()), &evm());
    import_document(&other, &plain_one, &ImportOptions::default()).unwrap();
    import_document(&other, &document_of(&FIRST, NOW), &ImportOptions::default()).unwrap();
    // A document without a consent takes nothing off it again.
    let mut changed = full_layers();
    changed["taskHistory"]["recentTasks"][0]["title"] = json!("changed");
    let changed = signed(envelope("full", changed), &evm());
    import_document(&other, &changed, &ImportOptions::default()).unwrap();
    assert_eq!(count(&other, TASKS), 4);
    clock.set(later(1000));
    withdraw_consent(&other, &agent, Operation::Transfer).unwrap();
    // What the memory says of its expertise is of another layer, and rests on nothing.
    assert_eq!((count(&other, TASKS), count(&other, SKILLS)), (0, 2));
    assert_eq!(count(&other, "RECALL events"), 2);
}

#[test]
fn a_layer_and_a_member_that_are_not_known_rest_on_the_consent_too() {
    let setup = Setup::new();
    let (other, clock) = open(&setup.path("other"));
    let mut value = envelope("transfer", json!({"identity": full_layers()["identity"]}));
    value["x_root"] = json!("the root's ledger");
    value["layers"]["x_layer"] = json!({"says": "the layer's ledger"});
    let mut record = given(Operation::Transfer, &[Layer::Identity], NOW);
    value["consent"] = record.clone();
    let uncovered = signed(value.clone(), &evm());
    let refused = import_document(&other, &uncovered, &ImportOptions::default()).unwrap_err();
    assert_eq!((refused.code(), refused.entry()), ("ERR_SCHEMA", Some("layers.x_layer")));
    record["scope"] = json!(["identity", "x_layer"]);
    record.as_object_mut().unwrap().remove("signature");
    let text = grainstore_interop::json::canonical(&record).unwrap();
    record["signature"] = json!(evm().sign(text.as_bytes()).unwrap());
    value["consent"] = record;
    let document = signed(value, &evm());
    import_document(&other, &document, &ImportOptions::default()).unwrap();
    let agent = evm().wallet().clone();
    assert_eq!(stored_document(&other, &agent).unwrap().unwrap(), document);
    let texts = || {
        let all = other.query(&Query::default(), &PageOptions::first(100)).unwrap();
        format!("{:?}", all.results.iter().map(|row| row.grain.fields()).collect::<Vec<_>>())
    };
    assert!(texts().contains("the root's ledger") && texts().contains("the layer's ledger"));
    clock.set(later(1000));
    withdraw_consent(&other, &agent, Operation::Transfer).unwrap();
    assert!(!texts().contains("ledger"));
}
