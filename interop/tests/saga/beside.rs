//! Imports beside each other, and versions that others wrote in the place of items.

use std::thread;

use grainstore::EraseOptions;
use grainstore::format::Value as Field;
use grainstore::prelude::*;
use grainstore_interop::saga::{ImportOptions, Signer as _, import_document, stored_document};
use serde_json::json;

use crate::store::take;
use crate::support::*;

/// The document of the agent, with the words of its events.
fn events(words: &[(&str, &str)], at: &str) -> grainstore_interop::saga::Document {
    let mut layers = json!({ "identity": evm_identity(), "persona": { "name": "Aria" } });
    let event = |(id, text): &(&str, &str)| json!({ "eventId": id, "type": "interaction", "timestamp": "2026-01-01T00:00:00Z", "summary": text });
    layers["memory"] =
        json!({ "episodic": { "events": words.iter().map(event).collect::<Vec<_>>() } });
    let mut value = envelope("full", layers);
    value["exportedAt"] = json!(at);
    signed(value, &evm())
}

fn open(dir: &tempfile::TempDir) -> Session {
    let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
    store.session(SessionOptions::default())
}

/// The current grain whose content is this.
fn saying(session: &Session, text: &str) -> ContentAddress {
    let all = session.query(&Query::default(), &PageOptions::first(1000)).unwrap().results;
    let says = |fields: &grainstore::format::Map| {
        ["content", "object"]
            .iter()
            .any(|name| fields.get(*name).and_then(Field::as_str) == Some(text))
    };
    all.iter().find(|one| says(one.grain.fields())).unwrap().content_address
}

/// Replaces a grain by one that says something else, as anybody with a session may.
fn rewrite(session: &Session, old: &ContentAddress, with: &[(&str, &str)]) -> ContentAddress {
    let mut fields = session.get(old).unwrap().grain().unwrap().into_fields();
    for (name, text) in with {
        fields.insert((*name).to_owned(), Field::from(*text));
    }
    fields.insert("derived_from".to_owned(), vec![Field::from(old.to_string())].into());
    session.supersede(old, Grain::from_fields(fields).unwrap(), None).unwrap()
}

#[test]
fn an_item_whose_newest_version_was_erased_is_left_out_and_stays_away() {
    let dir = tempfile::tempdir().unwrap();
    let session = open(&dir);
    let document = events(&[("e1", "first"), ("e2", "second")], "2026-03-20T09:00:00Z");
    take(&session, &document);
    let new = rewrite(&session, &saying(&session, "first"), &[("content", "a secret")]);
    session.erase(&new, "a test", &EraseOptions::default()).unwrap();

    let told = stored_document(&session, evm().wallet()).unwrap().unwrap();
    let told = told.to_value().to_string();
    assert!(
        told.contains("second") && !told.contains("first") && !told.contains("secret"),
        "{told}"
    );
    for words in ["first", "third"] {
        let document = events(&[("e1", words), ("e2", "second")], "2026-03-20T09:30:00Z");
        let refused = import_document(&session, &document, &ImportOptions::default());
        assert_eq!(refused.unwrap_err().code(), "ERR_ERASED");
    }
    let without = events(&[("e2", "again")], "2026-03-20T09:40:00Z");
    take(&session, &without);
    assert_eq!(stored_document(&session, evm().wallet()).unwrap().unwrap(), without);
}

#[test]
fn a_layer_whose_newest_version_was_erased_is_read_as_it_was_before() {
    let dir = tempfile::tempdir().unwrap();
    let session = open(&dir);
    let document = events(&[("e1", "first")], "2026-03-20T09:00:00Z");
    take(&session, &document);
    let all = session.query(&Query::default(), &PageOptions::first(1000)).unwrap().results;
    let states = all.iter().filter(|one| one.grain.text("type") == Some("state"));
    for one in states {
        rewrite(&session, &one.content_address, &[("user_id", "bob")]);
    }
    session.erase_user("bob", "a test", &EraseOptions::default()).unwrap();
    let told = stored_document(&session, evm().wallet()).unwrap().unwrap();
    assert_eq!(told.to_value()["layers"]["identity"]["handle"], "aria-chen");
    assert_eq!(take(&session, &document).items.added, 0, "the same again");
    let renamed = {
        let mut value = document.to_value();
        value["exportedAt"] = json!("2026-03-20T09:30:00Z");
        value["layers"]["persona"]["name"] = json!("Mira");
        signed(value, &evm())
    };
    take(&session, &renamed);
    let told = stored_document(&session, evm().wallet()).unwrap().unwrap();
    assert_eq!(told.to_value()["layers"]["persona"]["name"], "Mira");
}

#[test]
fn documents_that_come_at_the_same_time_come_one_after_the_other() {
    let dir = tempfile::tempdir().unwrap();
    let session = open(&dir);
    let many: Vec<(String, String)> =
        (0..60).map(|at| (format!("e{at}"), format!("words {at}"))).collect();
    let words = |more: &str| {
        many.iter().map(|(id, text)| (id.clone(), format!("{text}{more}"))).collect::<Vec<_>>()
    };
    let document = |words: &[(String, String)], at: &str| {
        let words: Vec<_> = words.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
        events(&words, at)
    };
    let (old, new) = (
        document(&words(""), "2026-03-20T09:00:00Z"),
        document(&words(" newer"), "2026-03-20T09:30:00Z"),
    );
    thread::scope(|scope| {
        for document in [&old, &new, &old, &new] {
            let session = session.clone();
            scope.spawn(move || {
                match import_document(&session, document, &ImportOptions::default()) {
                    Ok(_) => {}
                    Err(error) => assert_eq!(error.code(), "ERR_CONFLICT", "{error}"),
                }
            });
        }
    });
    assert_eq!(stored_document(&session, evm().wallet()).unwrap().unwrap(), new);
    let all = session.query(&Query::default(), &PageOptions::first(1000)).unwrap().results;
    let events = all
        .iter()
        .filter(|one| one.grain.text("content").is_some_and(|text| text.starts_with("words")));
    assert_eq!(events.count(), many.len(), "each once");
}
