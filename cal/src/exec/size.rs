//! How much memory a decoded grain takes: what bounds a pipeline.
//!
//! A byte of a blob may become a whole value in memory, as a small number in a list does, so encoded
//! bytes say little. This is a reckoning from above: it takes the nodes of maps for half empty.

use grainstore_format::{Grain, Map, Value};

/// What the allocator adds to one piece of memory.
const ALLOCATION: usize = 16;
/// A place in the node of a map, with its share of empty places.
const ENTRY: usize = 2 * (size_of::<String>() + size_of::<Value>());

/// Bytes a grain takes.
pub(super) fn of_grain(grain: &Grain) -> usize {
    of_map(grain.fields())
}

/// Bytes a value takes, with its own place.
pub(super) fn of_value(value: &Value) -> usize {
    size_of::<Value>().saturating_add(beyond(value))
}

/// Bytes a value takes beyond its place in what holds it.
fn beyond(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => 0,
        Value::Str(text) => of_bytes(text.len()),
        Value::Bytes(bytes) => of_bytes(bytes.len()),
        Value::Array(items) => items.iter().map(of_value).fold(ALLOCATION, usize::saturating_add),
        Value::Map(map) => of_map(map),
    }
}

fn of_map(map: &Map) -> usize {
    let entries = map.iter().map(|(name, value)| {
        ENTRY.saturating_add(of_bytes(name.len())).saturating_add(beyond(value))
    });
    entries.fold(ALLOCATION, usize::saturating_add)
}

fn of_bytes(length: usize) -> usize {
    length.saturating_add(ALLOCATION)
}
