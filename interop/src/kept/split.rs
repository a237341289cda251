//! A document whose list of items is kept item by item: the document with the items' ids in their places, and the
//! items.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::json::{Map, Value};

/// Splits a document with a list of items under a name. An item that has no id of its own stays in the document.
pub(crate) fn split(mut document: Value, list: &str) -> (Value, Vec<(String, Value)>) {
    let (mut items, mut ids) = (Vec::new(), BTreeSet::new());
    let places = document.get_mut(list).and_then(Value::as_array_mut);
    for place in places.into_iter().flatten() {
        let Some(id) = place.get("id").and_then(Value::as_str).map(str::to_owned) else { continue };
        if ids.insert(id.clone()) {
            let reference = Map::from_iter([("id".to_owned(), Value::from(id.as_str()))]);
            items.push((id, std::mem::replace(place, Value::Object(reference))));
        }
    }
    (document, items)
}

/// Puts the items back into a document. What has no item stays as it is, and `absent` is told of it.
///
/// # Errors
/// Those of `item`.
pub(crate) fn joined(
    mut document: Value,
    list: &str,
    mut item: impl FnMut(&str) -> Result<Option<Value>>,
    mut absent: impl FnMut(&str),
) -> Result<Value> {
    let Some(places) = document.get_mut(list).and_then(Value::as_array_mut) else {
        return Ok(document);
    };
    let mut ids = BTreeSet::new();
    let mut whole = Vec::with_capacity(places.len());
    for place in places.drain(..) {
        let is_reference = place.as_object().is_some_and(|object| object.len() == 1);
        let id = place.get("id").and_then(Value::as_str).filter(|_| is_reference);
        match id.map(str::to_owned) {
            Some(id) if ids.insert(id.clone()) => match item(&id)? {
                Some(found) => whole.push(found),
                None => absent(&id),
            },
            _ => whole.push(place),
        }
    }
    *places = whole;
    Ok(document)
}
