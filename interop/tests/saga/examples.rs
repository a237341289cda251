//! The examples of the standard go into a store and come out. The standard is beside the checkout, or where
//! `GRAINSTORE_SHARED` points.

use grainstore::prelude::*;
use grainstore_interop::json;
use grainstore_interop::saga::{
    Document, ExportOptions, ImportOptions, Layer, Level, SignatureVerdict, Signer,
    export_document, import_document, stored_document,
};
use serde_json::{Value, json};

use crate::support::*;

/// The text of the standard, if it is there.
fn standard() -> Option<String> {
    let folder = shared("seeds")?;
    let mut files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_it = |name: &str| name.starts_with("000_");
    let file = files.find(|path| is_it(&path.file_name().unwrap().to_string_lossy()))?;
    Some(std::fs::read_to_string(file).unwrap())
}

/// The first example of a member, at the beginning of a line: what is between its braces.
fn example(text: &str, name: &str) -> Option<Value> {
    let start = text.find(&format!("\n\"{name}\": {{"))?;
    let rest = text.get(start..)?;
    let body = rest.get(rest.find('{')?..)?;
    let mut values = serde_json::Deserializer::from_str(body).into_iter::<Value>();
    values.next()?.ok()
}

/// Puts addresses and times in the places that the examples leave open.
fn fill(value: &mut Value) {
    match value {
        Value::String(text) if text.contains("0xabc...") => *text = EVM_ADDRESS.to_owned(),
        Value::Array(items) => items.iter_mut().for_each(fill),
        Value::Object(members) => members.values_mut().for_each(fill),
        _ => {}
    }
}

#[test]
fn the_examples_of_the_standard_come_back_and_so_do_members_of_a_newer_version() {
    let Some(text) = standard() else { return };
    let mut layers = serde_json::Map::new();
    for layer in Layer::ALL.iter().filter(|layer| **layer != Layer::Vault) {
        let mut value = example(&text, layer.name()).unwrap();
        fill(&mut value);
        layers.insert(layer.name().to_owned(), value);
    }
    let mut newer = Value::Object(layers.clone());
    grow(&mut newer, 0);
    for (id, layers) in [("saga_example1", Value::Object(layers)), ("saga_example2", newer)] {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
        let session = store.session(SessionOptions::default());
        let mut value = envelope("full", layers);
        value["documentId"] = json!(id);
        let document = signed(value, &evm());
        let validation = document.validate(session.now());
        assert_eq!(validation.of_level(Level::Error).count(), 0, "{:#?}", validation.findings);
        import_document(&session, &document, &ImportOptions::default()).unwrap();
        let stored = stored_document(&session, evm().wallet()).unwrap().unwrap();
        assert!(stored == document);
        assert_eq!(stored.verify(), SignatureVerdict::Verified);
        let options = ExportOptions { plain_long_term: true, ..ExportOptions::default() };
        let (exported, _) = export_document(&session, &options, &evm()).unwrap();
        for layer in document.layers() {
            let (was, is) = (document.layer(layer).unwrap(), exported.layer(layer).unwrap());
            assert!(json::equal(was, is), "{layer}");
        }
    }
}

/// Adds members and words that no version has yet, at every level.
fn grow(value: &mut Value, depth: usize) {
    match value {
        Value::Object(members) => {
            for (name, value) in members.iter_mut() {
                // Maps to one type alone have no other members.
                let is_map = ["capabilities", "bySkill", "byOrganization"].contains(&name.as_str());
                let is_typed =
                    is_map && value.as_object().is_some_and(|it| !it.values().any(Value::is_array));
                match value {
                    Value::String(word)
                        if ["profileType", "outcome", "relationship"].contains(&name.as_str()) =>
                    {
                        *word = "of-the-future".to_owned();
                    }
                    _ if is_typed => {}
                    other => grow(other, depth + 1),
                }
            }
            if depth > 0 {
                members.insert(
                    "x_future".to_owned(),
                    json!({"depth": depth, "nothing": null, "list": [1.5, {}]}),
                );
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| grow(item, depth + 1)),
        _ => {}
    }
}

#[test]
fn the_consent_and_the_manifest_of_the_standard_have_the_form_that_is_asked_for() {
    let Some(text) = standard() else { return };
    let mut value = envelope("full", full_layers());
    for name in ["consent", "redactionManifest"] {
        let mut example = example(&text, name).unwrap();
        fill(&mut example);
        value[name] = example;
    }
    let mut document = Document::from_value(value).unwrap();
    document.sign(&evm()).unwrap();
    let validation = document.validate(NOW);
    let errors: Vec<_> = validation.of_level(Level::Error).map(|it| it.path.as_str()).collect();
    // Its counts are not those of its two entries, its scope is not that of the document, and nobody signed it.
    let is_expected = |path: &&str| {
        path.starts_with("redactionManifest.summary")
            || path.starts_with("layers.")
            || ["consent.grantedBy", "redactionManifest.orgSignature"].contains(path)
    };
    assert!(errors.iter().all(is_expected), "{errors:?}");
}
