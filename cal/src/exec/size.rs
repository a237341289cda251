//! Memory size of decoded grains, which bounds a pipeline.
//!
//! A single byte of a blob may become a whole value in memory, such as a small number in a list, so the
//! encoded size is no measure. These are upper bounds: nodes of maps are assumed to be half empty.

use grainstore_format::{Grain, Map, Value};

/// Allocator overhead of one allocation, in bytes.
const ALLOCATION_BYTES: usize = 16;
/// Bytes of an entry of a map, with its share of unused entries in the node.
const ENTRY_BYTES: usize = 2 * (size_of::<String>() + size_of::<Value>());

/// Returns the bytes a grain takes.
pub(super) fn grain_bytes(grain: &Grain) -> usize {
    map_bytes(grain.fields())
}

/// Returns the bytes a value takes, its own slot included.
pub(super) fn value_bytes(value: &Value) -> usize {
    size_of::<Value>().saturating_add(heap_bytes(value))
}

/// Returns the bytes a value takes on the heap, beyond its slot.
fn heap_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => 0,
        Value::Str(text) => buffer_bytes(text.len()),
        Value::Bytes(bytes) => buffer_bytes(bytes.len()),
        Value::Array(items) => {
            items.iter().map(value_bytes).fold(ALLOCATION_BYTES, usize::saturating_add)
        }
        Value::Map(map) => map_bytes(map),
    }
}

fn map_bytes(map: &Map) -> usize {
    let entries = map.iter().map(|(name, value)| {
        ENTRY_BYTES.saturating_add(buffer_bytes(name.len())).saturating_add(heap_bytes(value))
    });
    entries.fold(ALLOCATION_BYTES, usize::saturating_add)
}

fn buffer_bytes(length: usize) -> usize {
    length.saturating_add(ALLOCATION_BYTES)
}
