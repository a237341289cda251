//! A layer split into its items, with their ids in their places, and joined again.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::kinds::{Form, KINDS, Kind};
use crate::error::Result;
use crate::saga::document::{at_path, at_path_mut};
use crate::saga::kinds::Layer;

/// An item of a layer.
#[derive(Debug, Clone)]
pub(in crate::saga) struct Item {
    pub(in crate::saga) kind: &'static Kind,
    /// Its id, which no other item of its kind has.
    pub(in crate::saga) id: String,
    pub(in crate::saga) value: Value,
}

/// A layer without its items.
#[derive(Debug, Clone)]
pub(in crate::saga) struct Split {
    /// The layer, with lists of ids where the items were.
    pub(in crate::saga) skeleton: Value,
    /// The names of the kinds that were taken out.
    pub(in crate::saga) kinds: Vec<&'static str>,
    pub(in crate::saga) items: Vec<Item>,
}

/// Splits a layer. What is not as the table has it, such as an encrypted part, stays.
pub(in crate::saga) fn split(layer: Layer, value: &Value) -> Split {
    let mut split = Split { skeleton: value.clone(), kinds: Vec::new(), items: Vec::new() };
    for kind in KINDS.iter().filter(|kind| kind.layer == layer) {
        let Some(place) = at_path_mut(&mut split.skeleton, kind.path) else { continue };
        let Some(items) = items_of(kind, place) else { continue };
        let ids = items.iter().map(|item| Value::from(item.id.as_str())).collect();
        *place = if kind.form == Form::Part { Value::Null } else { Value::Array(ids) };
        split.kinds.push(kind.name);
        split.items.extend(items);
    }
    split
}

/// The items at a place; `None` if it is not as the table has it.
fn items_of(kind: &'static Kind, place: &Value) -> Option<Vec<Item>> {
    let item = |id: String, value: &Value| Item { kind, id, value: value.clone() };
    match kind.form {
        Form::Part => place.is_object().then(|| vec![item(String::new(), place)]),
        Form::Named => {
            let members = place.as_object().filter(|it| it.values().all(Value::is_object))?;
            Some(members.iter().map(|(name, value)| item(name.clone(), value)).collect())
        }
        Form::List(id) => {
            let list = place.as_array().filter(|list| list.iter().all(Value::is_object))?;
            let name = |value: &Value| {
                value.get(id).and_then(Value::as_str).unwrap_or_default().to_owned()
            };
            Some(numbered(list, name, item))
        }
        Form::Texts => {
            let list = place.as_array().filter(|list| list.iter().all(Value::is_string))?;
            let name = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            Some(numbered(list, name, item))
        }
    }
}

/// Names the items of a list. A name that was taken, or could be taken for a numbered one, gets a number.
fn numbered(
    list: &[Value],
    name: impl Fn(&Value) -> String,
    item: impl Fn(String, &Value) -> Item,
) -> Vec<Item> {
    let (mut taken, mut numbers) = (HashSet::new(), HashMap::new());
    let mut items = Vec::with_capacity(list.len());
    for value in list {
        let name = name(value);
        let mut id = name.clone();
        // A name that comes often is not numbered from the start each time.
        let number = numbers.entry(name.clone()).or_insert(1_u64);
        while !taken.insert(id.clone()) {
            *number = number.saturating_add(1);
            id = format!("{name}\0{number}");
        }
        items.push(item(id, value));
    }
    items
}

/// Joins a layer with its items. `lookup` gives an item, or `None` if it is gone, which `absent` is told of.
///
/// # Errors
/// Those of `lookup`.
pub(in crate::saga) fn joined(
    layer: Layer,
    mut skeleton: Value,
    kinds: &[String],
    mut lookup: impl FnMut(&'static Kind, &str) -> Result<Option<Value>>,
    mut absent: impl FnMut(&'static Kind, &str),
) -> Result<Value> {
    let split = |kind: &&Kind| kind.layer == layer && kinds.iter().any(|name| name == kind.name);
    for kind in KINDS.iter().filter(split) {
        let Some(place) = at_path(&skeleton, kind.path) else { continue };
        let ids: Vec<String> = match kind.form {
            Form::Part => vec![String::new()],
            _ => place
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
        };
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            match lookup(kind, &id)? {
                Some(value) => found.push((id, value)),
                None => absent(kind, &id),
            }
        }
        put(&mut skeleton, kind, found);
    }
    Ok(skeleton)
}

/// Puts items in their place.
fn put(layer: &mut Value, kind: &Kind, found: Vec<(String, Value)>) {
    let value = match kind.form {
        Form::Part => found.into_iter().next().map(|(_, value)| value),
        Form::Named => Some(Value::Object(found.into_iter().collect::<Map<_, _>>())),
        Form::List(_) | Form::Texts => {
            Some(Value::Array(found.into_iter().map(|(_, value)| value).collect()))
        }
    };
    match (value, at_path_mut(layer, kind.path)) {
        (Some(value), Some(place)) => *place = value,
        (None, _) => {
            // Parts are members of the layer itself.
            if let Some(members) = layer.as_object_mut() {
                members.remove(kind.path);
            }
        }
        (Some(_), None) => {}
    }
}
