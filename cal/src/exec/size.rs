//! Memory size of decoded grains, which bounds a pipeline.
//!
//! A single byte of a blob may become a whole value in memory, such as a small number in a list, so the
//! encoded size is no measure. These are upper bounds: nodes of maps are assumed to be half empty.

use grainstore_format::{Grain, Map, Value};

/// Allocator overhead of one allocation, in bytes.
const ALLOCATION: usize = 16;
/// Bytes of an entry of a map, with its share of unused entries in the node.
const ENTRY: usize = 2 * (size_of::<String>() + size_of::<Value>());

/// Returns the bytes a grain takes.
pub(super) fn of_grain(grain: &Grain) -> usize {
    of_map(grain.fields())
}

/// Returns the bytes a value takes, its own slot included.
pub(super) fn of_value(value: &Value) -> usize {
    size_of::<Value>().saturating_add(beyond(value))
}

/// Returns the bytes a value takes on the heap, beyond its slot.
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
