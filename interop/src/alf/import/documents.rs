//! Documents and their items as the store keeps them, as they are merged, and as a whole again.

use std::collections::BTreeSet;

use grainstore::EpochMs;
use grainstore::format::{Map as Fields, Sensitivity, Value as Field};

use crate::alf::agent::{Agent, is_agent};
use crate::alf::names::{CREDENTIALS, IDENTITY, Layer, PRINCIPALS, namespace_of};
use crate::alf::survey::plain_part;
use crate::error::Result;
use crate::json::{self, Value};
use crate::kept::{Document, clamped, grain_text, joined, milliseconds};

/// A document or item of an agent as the store keeps it. The time is for what has none of its own.
pub(in super::super) fn kept_document(
    (agent_id, at): (&str, EpochMs),
    (layer, kept_as): (Layer, &'static str),
    item: Option<String>,
    value: Value,
) -> Document {
    let mut fields = Fields::new();
    let mut sensitivity = Sensitivity::Internal;
    match layer {
        CREDENTIALS => {
            fields = cold();
            fields.insert("structural_tags".to_owned(), Field::from(vec!["sec:credential"]));
            sensitivity = Sensitivity::Pii;
        }
        PRINCIPALS => {
            sensitivity = Sensitivity::Pii;
            // What is known of a person is theirs: it is erased with them.
            if let Some(id) = item.as_ref().filter(|_| !is_agent(&value)) {
                let id = grain_text(&id.to_ascii_lowercase()).into_owned();
                fields.insert("user_id".to_owned(), Field::from(id));
            }
        }
        IDENTITY => fields.extend(system_prompt(&value)),
        _ => fields.extend(content_reference(&value)),
    }
    Document {
        layer: kept_as,
        created_at: time_of(&value).map_or(at, clamped),
        item,
        namespace: namespace_of(agent_id, layer.name),
        value,
        sensitivity,
        fields,
    }
}

/// What a manifest says that an export does not count or time anew.
pub(super) fn said_once(manifest: &Value) -> Value {
    let mut manifest = manifest.clone();
    if let Value::Object(members) = &mut manifest {
        for name in ["created_at", "sync", "layers", "checksum", "checksum_scheme"] {
            members.remove(name);
        }
    }
    manifest
}

/// Fields of a grain that comes up when it is asked for alone.
pub(super) fn cold() -> Fields {
    Fields::from([("recall_priority".to_owned(), Field::from("cold"))])
}

/// The soul of an identity is repeated where OMS 22.9 has the prompt of a system.
fn system_prompt(identity: &Value) -> Option<(String, Field)> {
    let soul = identity.get("prose")?.get("soul")?.as_str()?;
    let soul = grain_text(soul).into_owned();
    let context = Fields::from([("system_prompt".to_owned(), Field::from(soul))]);
    Some(("context".to_owned(), Field::Map(context)))
}

/// The file of an attachment that is in the archive (OMS 7.1).
fn content_reference(attachment: &Value) -> Option<(String, Field)> {
    let path = attachment.get("archive_path")?.as_str()?;
    let value = attachment.get("hash")?.get("value")?.as_str()?.to_ascii_lowercase();
    let size = attachment.get("size_bytes")?.as_u64().and_then(|size| i64::try_from(size).ok())?;
    let media_type = attachment.get("media_type")?.as_str().filter(|_| !path.is_empty())?;
    let modality = media_type.split('/').next().filter(|kind| !kind.is_empty())?;
    let reference = Fields::from([
        ("uri".to_owned(), Field::from(format!("cas://sha256:{value}"))),
        ("modality".to_owned(), Field::from(modality)),
        ("mime_type".to_owned(), Field::from(media_type)),
        ("size_bytes".to_owned(), Field::from(size)),
        ("checksum".to_owned(), Field::from(format!("sha256:{value}"))),
    ]);
    Some(("content_refs".to_owned(), Field::from(vec![reference])))
}

pub(super) fn version_of(identity: &Value) -> u64 {
    identity.get("version").and_then(Value::as_u64).unwrap_or_default()
}

/// When a document or an item was last changed, by what it says.
pub(super) fn time_of(value: &Value) -> Option<EpochMs> {
    let profile = value.get("profile").unwrap_or(value);
    let said = |name: &str| profile.get(name).and_then(Value::as_str).and_then(milliseconds);
    said("updated_at").or_else(|| said("created_at"))
}

pub(super) fn ids_of(shell: &Value, list: &str) -> BTreeSet<String> {
    let items = shell.get(list).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| Some(id_of(item)?.to_owned())).collect()
}

pub(super) fn id_of(item: &Value) -> Option<&str> {
    item.get("id").and_then(Value::as_str)
}

/// Adds to a document the items and members of a newer one.
pub(super) fn merged(old: Value, new: Value, list: &str) -> Value {
    let known = ids_of(&old, list);
    let mut texts: BTreeSet<String> = match old.get(list).and_then(Value::as_array) {
        Some(items) => items.iter().filter(|item| id_of(item).is_none()).map(json::line).collect(),
        None => BTreeSet::new(),
    };
    let (Value::Object(mut members), Value::Object(newer)) = (old, new) else { return Value::Null };
    for (name, value) in newer {
        match (name == list, value, members.get_mut(&name)) {
            (true, Value::Array(items), Some(Value::Array(all))) => {
                for item in items {
                    let is_there = match id_of(&item) {
                        Some(id) => known.contains(id),
                        None => !texts.insert(json::line(&item)),
                    };
                    if !is_there {
                        all.push(item);
                    }
                }
            }
            (_, value, _) => drop(members.insert(name, value)),
        }
    }
    Value::Object(members)
}

/// Returns a document with its items, and the ids of items that are not there any more. Of a credential it is the last
/// version that is ciphertext.
pub(in super::super) fn whole_document(
    agent: &Agent<'_>,
    layer: Layer,
) -> Result<Option<(Value, Vec<String>)>> {
    let Some(kept) = agent.documents.read(layer.name, None)? else { return Ok(None) };
    let Some((item_layer, list)) = layer.items else { return Ok(Some((kept.value, Vec::new()))) };
    let mut absent = Vec::new();
    // A version that somebody wrote past the checks of an import is passed over.
    let is_good = |item: &Value| layer != CREDENTIALS || plain_part(item).is_none();
    let item = |id: &str| {
        let kept = agent.documents.read_good(item_layer, Some(id), is_good)?;
        Ok(kept.map(|kept| kept.value))
    };
    let whole = joined(kept.value, list, item, |id| absent.push(id.to_owned()))?;
    Ok(Some((whole, absent)))
}
