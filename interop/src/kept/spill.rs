//! Values that are too large for a grain: they lie beside it as side blobs, and are erased with it.
//!
//! `context` says under `<prefix>:spill` which entries, or the content, lie where (`{"<key>": "<sha256>"}`); a
//! `content_refs` entry names each. The grain keeps the beginning of its content, for searches.

use grainstore::format::{Blob, ContentAddress, GrainType, Map, Value};
use grainstore::limits::MAX_SIDE_BLOB_BYTES;
use grainstore::{Grain, Owner, Session};

use super::Profile;
use super::new_grain::ENCODING;
use crate::error::{Error, Result};
use crate::json;

/// Bytes of a spilled content that stay in the grain.
const KEPT_CONTENT_BYTES: usize = 64 << 10;
/// Bytes below which an entry of `context` is never spilled.
const SMALLEST_SPILL: usize = 1 << 10;
/// The name under which the content of a grain is spilled.
const CONTENT: &str = "content";
/// Entries of `context` that stay in the grain, since it is found by them.
const STAYING: [&str; 6] = ["id", "agent_id", "layer", "item_id", "memory_type", "spill"];

/// A value that was taken out of a grain.
#[derive(Debug)]
pub(super) struct Spilled {
    pub(super) bytes: Vec<u8>,
}

/// Encodes a grain, and takes its largest values out of it until it is small enough.
///
/// # Errors
/// `ERR_TOO_LARGE`.
pub(super) fn encoded(profile: Profile, grain: Grain) -> Result<(Blob, Vec<Spilled>)> {
    let mut spilled = Vec::new();
    let mut grain = grain;
    loop {
        let failed = match grain.encode(ENCODING) {
            Ok(blob) => return Ok((blob, spilled)),
            Err(error) => error,
        };
        if failed.kind() != grainstore::format::ErrorKind::TooLarge {
            return Err(failed.into());
        }
        let grain_type = grain.grain_type();
        let mut fields = grain.into_fields();
        let Some(one) = spill_largest(profile, grain_type, &mut fields) else {
            return Err(failed.into());
        };
        if one.bytes.len() > MAX_SIDE_BLOB_BYTES {
            let message = format!("a single value has {MAX_SIDE_BLOB_BYTES} bytes at most");
            return Err(Error::limit(message));
        }
        spilled.push(one);
        grain = Grain::from_fields(fields)?;
    }
}

/// Takes an entry of `context` out of a grain, whatever its size: nothing of it is in an index then.
///
/// # Errors
/// Those of [`Grain::from_fields`].
pub(super) fn taken(profile: Profile, grain: Grain, name: &str) -> Result<(Grain, Vec<Spilled>)> {
    let mut fields = grain.into_fields();
    let key = profile.key(name);
    let entry = match fields.get_mut("context") {
        Some(Value::Map(context)) => context.remove(&key),
        _ => None,
    };
    let text = entry.as_ref().and_then(Value::as_str).map(str::to_owned);
    let spilled = text.map(|text| {
        let bytes = text.into_bytes();
        note(profile, &mut fields, &key, &bytes);
        Spilled { bytes }
    });
    Ok((Grain::from_fields(fields)?, spilled.into_iter().collect()))
}

/// Takes the largest value out of the fields; `None` if none is large.
fn spill_largest(profile: Profile, grain_type: GrainType, fields: &mut Map) -> Option<Spilled> {
    let context = fields.get("context").and_then(Value::as_map);
    let entries = context.into_iter().flatten().filter_map(|(key, value)| {
        let stays = profile.name_of(key).is_none_or(|name| STAYING.contains(&name));
        value.as_str().filter(|text| !stays && text.len() > SMALLEST_SPILL).map(|text| (key, text))
    });
    let entry = entries.max_by_key(|(_, text)| text.len());
    let content = content_of(grain_type, fields).filter(|text| text.len() > KEPT_CONTENT_BYTES);
    let content = content.filter(|text| entry.is_none_or(|(_, entry)| text.len() > entry.len()));
    let (key, text) = match (content, entry) {
        (Some(text), _) => (CONTENT.to_owned(), text.to_owned()),
        (None, Some((key, text))) => (key.clone(), text.to_owned()),
        (None, None) => return None,
    };
    match key == CONTENT {
        true => set_content(grain_type, fields, beginning(&text).to_owned()),
        false => {
            let Some(Value::Map(context)) = fields.get_mut("context") else { return None };
            context.remove(&key);
        }
    }
    let bytes = text.into_bytes();
    note(profile, fields, &key, &bytes);
    Some(Spilled { bytes })
}

/// Writes down where a spilled value lies.
fn note(profile: Profile, fields: &mut Map, key: &str, bytes: &[u8]) {
    let address = ContentAddress::of(bytes);
    let context = fields.entry("context".to_owned()).or_insert_with(|| Value::Map(Map::new()));
    if let Value::Map(context) = context {
        let mut spilled = spilled_keys(profile, context).unwrap_or_default();
        spilled.insert(key.to_owned(), json::Value::from(address.to_string()));
        let text = json::ascii(&json::Value::Object(spilled));
        context.insert(profile.key("spill"), Value::from(text));
    }
    let media_type = if key == CONTENT { "text/plain" } else { "application/json" };
    let reference = reference(&address, media_type, bytes.len() as u64);
    match fields.get_mut("content_refs") {
        Some(Value::Array(list)) => list.push(Value::Map(reference)),
        _ => drop(fields.insert("content_refs".to_owned(), Value::from(vec![reference]))),
    }
}

/// An entry of `content_refs` for bytes beside a grain (OMS 7.1).
pub(crate) fn reference(address: &ContentAddress, media_type: &str, size_bytes: u64) -> Map {
    let modality = media_type.split('/').next().filter(|kind| !kind.is_empty()).unwrap_or("text");
    let modality = if modality == "application" { "text" } else { modality };
    Map::from([
        ("uri".to_owned(), Value::from(format!("cas://sha256:{address}"))),
        ("modality".to_owned(), Value::from(modality)),
        ("mime_type".to_owned(), Value::from(media_type)),
        ("size_bytes".to_owned(), Value::from(size_bytes)),
        ("checksum".to_owned(), Value::from(format!("sha256:{address}"))),
    ])
}

/// Returns the fields of a stored grain with the values that lie beside it.
///
/// # Errors
/// Those of [`Session::side_blob`]; `ERR_CORRUPT` for a value that is no text.
pub(crate) fn whole_fields(
    session: &Session,
    profile: Profile,
    address: &ContentAddress,
    grain: Grain,
) -> Result<Map> {
    let grain_type = grain.grain_type();
    let mut fields = grain.into_fields();
    let context = fields.get("context").and_then(Value::as_map);
    let Some(keys) = context.and_then(|context| spilled_keys(profile, context)) else {
        return Ok(fields);
    };
    for (key, value) in keys {
        let place = value.as_str().unwrap_or_default().parse::<ContentAddress>()?;
        let bytes = session.side_blob(&place, &Owner::Grain(*address))?;
        let text =
            String::from_utf8(bytes).map_err(|_| Error::corrupt("a spilled value is no text"))?;
        match fields.get_mut("context") {
            _ if key == CONTENT => set_content(grain_type, &mut fields, text),
            Some(Value::Map(context)) => drop(context.insert(key, Value::from(text))),
            _ => {}
        }
    }
    Ok(fields)
}

/// The keys of what was spilled, with the addresses; `None` if nothing was.
fn spilled_keys(profile: Profile, context: &Map) -> Option<json::Map<String, json::Value>> {
    let text = context.get(&profile.key("spill"))?.as_str()?;
    match json::parse(text.as_bytes()).ok()? {
        json::Value::Object(keys) => Some(keys),
        _ => None,
    }
}

/// The text a grain is about.
fn content_of(grain_type: GrainType, fields: &Map) -> Option<&str> {
    match grain_type {
        GrainType::Belief => fields.get("object")?.as_str(),
        GrainType::Event => fields.get("content")?.as_str(),
        GrainType::Workflow => fields.get("steps")?.as_array()?.first()?.as_str(),
        _ => None,
    }
}

fn set_content(grain_type: GrainType, fields: &mut Map, text: String) {
    let (name, value) = match grain_type {
        GrainType::Belief => ("object", Value::from(text)),
        GrainType::Workflow => ("steps", Value::from(vec![text])),
        _ => ("content", Value::from(text)),
    };
    fields.insert(name.to_owned(), value);
}

/// The first bytes of a text, up to the end of a character.
fn beginning(text: &str) -> &str {
    text.get(..text.floor_char_boundary(KEPT_CONTENT_BYTES)).unwrap_or(text)
}
