//! Documents of any content come back as they were.

use grainstore_interop::json;
use grainstore_interop::saga::{
    Document, ImportOptions, Level, SignatureVerdict, Signer, export_document, import_document,
    stored_document,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::store::{full_value, open, plain_export};
use crate::support::*;

/// A change of a document.
#[derive(Debug, Clone)]
enum Change {
    Add(String, Value),
    Remove(usize),
    Text(usize, String),
    Twice(usize),
    Empty,
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-9_007_199_254_740_991_i64..=9_007_199_254_740_991).prop_map(Value::from),
        any::<f64>().prop_map(|x| if x.is_finite() { x.into() } else { Value::Null }),
        any_text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[ab/~é\u{301}]{0,2}", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_text() -> impl Strategy<Value = String> {
    "\\PC{0,6}|[a/~\u{feff}e\u{301}\u{0}\n]{0,5}"
}

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        ("x_[ab]|[a\u{301}é~/]{1,3}", any_json())
            .prop_map(|(name, value)| Change::Add(name, value)),
        any::<usize>().prop_map(Change::Remove),
        (any::<usize>(), any_text()).prop_map(|(at, text)| Change::Text(at, text)),
        any::<usize>().prop_map(Change::Twice),
        Just(Change::Empty),
    ]
}

/// Calls `on` with each object and array of a value, until it has come to the one that is meant.
fn at_place(value: &mut Value, place: &mut usize, on: &mut dyn FnMut(&mut Value)) {
    if matches!(value, Value::Object(_) | Value::Array(_)) {
        if *place == 0 {
            on(value);
            *place = usize::MAX;
            return;
        }
        *place -= 1;
    }
    match value {
        Value::Object(members) => {
            for value in members.values_mut() {
                if *place != usize::MAX {
                    at_place(value, place, on);
                }
            }
        }
        Value::Array(items) => {
            for value in items {
                if *place != usize::MAX {
                    at_place(value, place, on);
                }
            }
        }
        _ => {}
    }
}

fn apply(value: &mut Value, place: usize, change: &Change) {
    let mut place = place % 90;
    at_place(value, &mut place, &mut |value| match (change, value) {
        (Change::Add(name, added), Value::Object(members)) => {
            members.insert(name.clone(), added.clone());
        }
        (Change::Remove(at), Value::Object(members)) if !members.is_empty() => {
            let name = members.keys().nth(at % members.len()).unwrap().clone();
            members.remove(&name);
        }
        (Change::Text(at, text), Value::Object(members)) => {
            let texts: Vec<_> =
                members.iter().filter(|(_, v)| v.is_string()).map(|(k, _)| k.clone()).collect();
            if !texts.is_empty() {
                members[&texts[at % texts.len()]] = json!(text);
            }
        }
        (Change::Text(at, text), Value::Array(items)) if !items.is_empty() => {
            let at = at % items.len();
            if items[at].is_string() {
                items[at] = json!(text);
            }
        }
        (Change::Twice(at), Value::Array(items)) if !items.is_empty() => {
            items.push(items[at % items.len()].clone());
        }
        (Change::Remove(at), Value::Array(items)) if !items.is_empty() => {
            items.remove(at % items.len());
        }
        (Change::Empty, Value::Array(items)) => items.clear(),
        (Change::Empty, Value::Object(members)) => *members = Map::new(),
        _ => {}
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, max_shrink_iters: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_document_that_is_taken_comes_back_as_it_was(
        changes in prop::collection::vec((any::<usize>(), any_change()), 0..30),
        pad in "[A-Za-z0-9]{1,8}",
    ) {
        let mut value = full_value();
        value["documentId"] = json!(format!("saga_{pad}"));
        for (place, change) in &changes {
            let mut changed = value.clone();
            apply(&mut changed["layers"], *place, change);
            let Ok(mut document) = Document::from_value(changed.clone()) else { continue };
            if document.sign(&evm()).is_ok() && document.validate(NOW).of_level(Level::Error).next().is_none() {
                value = changed;
            }
        }
        let document = signed(value, &evm());
        let dir = tempfile::tempdir().unwrap();
        let session = open(dir.path());
        import_document(&session, &document, &ImportOptions::default()).unwrap();
        let stored = stored_document(&session, evm().wallet()).unwrap().unwrap();
        prop_assert!(stored == document, "{:#}\n{:#}", stored.to_value(), document.to_value());
        prop_assert_eq!(stored.verify(), SignatureVerdict::Verified);
        let (exported, _) = export_document(&session, &plain_export(), &evm()).unwrap();
        for layer in document.layers() {
            prop_assert!(json::equal(document.layer(layer).unwrap(), exported.layer(layer).unwrap()));
        }
        let other_dir = tempfile::tempdir().unwrap();
        let other = open(other_dir.path());
        import_document(&other, &exported, &ImportOptions::default()).unwrap();
        prop_assert!(stored_document(&other, evm().wallet()).unwrap().unwrap() == exported);
    }
}
