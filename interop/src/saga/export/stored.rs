//! Layers from the store, and the document that was imported last.

use grainstore::format::Value as GrainValue;
use grainstore::{ErrorKind, Session};
use serde_json::{Map, Value};

use super::{ExportOptions, without_written};
use crate::error::{Error, Result};
use crate::saga::document::{Document, at_path};
use crate::saga::import::{ENVELOPE_LAYER, LATEST, UNKNOWN_LAYERS};
use crate::saga::kinds::{ExportType, Layer};
use crate::saga::map::{ENVELOPE, Kind, LAYER, item_of, joined};
use crate::saga::store::{AgentStore, StoredItem};
use crate::saga::wallet::Wallet;

/// What the store has of some layers.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) layers: Map<String, Value>,
    pub(super) absent: Vec<String>,
    /// Items that are held, by kind and id.
    pub(super) held: Vec<(&'static str, String)>,
}

/// Returns the document of an agent that was imported last ([`import_document`](crate::saga::import_document())), with
/// its layers as they are now: with its signature, which is valid if nothing of them changed. `None` if none was.
///
/// # Errors
/// Those of [`Session::inspect`], such as `ERR_WITHDRAWN` once its consent is no longer valid.
pub fn stored_document(session: &Session, agent: &Wallet) -> Result<Option<Document>> {
    let store = AgentStore::new(session, agent);
    let Some(mut members) = envelope(&store)? else { return Ok(None) };
    let names = members.remove("layers");
    let names = names.as_ref().and_then(Value::as_array).into_iter().flatten();
    let layers: Vec<Layer> = names.filter_map(|name| name.as_str()?.parse().ok()).collect();
    let mut layers = gather(&store, &layers)?.layers;
    if let Some(Value::Object(unknown)) = members.remove(UNKNOWN_LAYERS) {
        layers.extend(unknown);
    }
    members.insert("layers".to_owned(), Value::Object(layers));
    Document::from_value(Value::Object(members)).map(Some)
}

/// The envelope of the document that was imported last.
fn envelope(store: &AgentStore<'_>) -> Result<Option<Map<String, Value>>> {
    let Some(latest) = store.mark::<String>(LATEST)? else { return Ok(None) };
    match store.read(&ENVELOPE, &latest)? {
        Some(Value::Object(members)) => Ok(Some(members)),
        _ => Ok(None),
    }
}

/// Reads layers with their items.
///
/// # Errors
/// Those of [`AgentStore::find`], with the layer.
pub(super) fn gather(store: &AgentStore<'_>, layers: &[Layer]) -> Result<Gathered> {
    let mut gathered = Gathered::default();
    for layer in layers {
        let read = layer_of(store, *layer, &mut gathered);
        if let Some(value) = read.map_err(|error| error.in_entry(layer.name()))? {
            gathered.layers.insert(layer.name().to_owned(), value);
        }
    }
    Ok(gathered)
}

fn layer_of(
    store: &AgentStore<'_>,
    layer: Layer,
    gathered: &mut Gathered,
) -> Result<Option<Value>> {
    let Some(stored) = store.find(&LAYER, layer.name())? else { return Ok(None) };
    let Some(skeleton) = item_of(&LAYER, layer.name(), &stored.fields)? else { return Ok(None) };
    if is_held(&stored) {
        gathered.held.push((LAYER.name, layer.name().to_owned()));
    }
    let Gathered { absent, held, .. } = gathered;
    let lookup = |kind: &'static Kind, id: &str| {
        let Some(stored) = store.find(kind, id)? else { return Ok(None) };
        if is_held(&stored) {
            held.push((kind.name, id.to_owned()));
        }
        item_of(kind, id, &stored.fields)
    };
    let gone = |kind: &'static Kind, id: &str| {
        absent.push(format!("{layer}: {} {}", kind.name, id.replace('\0', "~")));
    };
    joined(layer, skeleton, &stored.split(), lookup, gone).map(Some)
}

/// Returns `true` for a grain under a hold, by its state or by its own policy.
fn is_held(stored: &StoredItem) -> bool {
    let policy = stored.fields.get("invalidation_policy").and_then(GrainValue::as_map);
    let mode = policy.and_then(|policy| policy.get("mode")).and_then(GrainValue::as_str);
    stored.state.held || mode == Some("hold")
}

/// The members of the document that was imported last which go into the next one: those that are not known, and what
/// `privacy` says of the layers that go along.
///
/// # Errors
/// Those of [`AgentStore::find`].
pub(super) fn kept_members(
    store: &AgentStore<'_>,
    layers: &Map<String, Value>,
    export_type: ExportType,
    options: &ExportOptions<'_>,
) -> Result<Map<String, Value>> {
    let Some(members) = envelope(store)? else { return Ok(Map::new()) };
    let mut members = without_written(members);
    members.remove("layers");
    let is_whole = !matches!(export_type, ExportType::Identity | ExportType::Profile)
        && !options.crosses_organizations;
    if !is_whole {
        // Nobody knows what the others tell.
        members.retain(|name, _| {
            matches!(name.as_str(), "createdAt" | "privacy" | "redactionManifest")
        });
    }
    members.remove(UNKNOWN_LAYERS);
    if matches!(export_type, ExportType::Identity | ExportType::Profile) {
        members.remove("redactionManifest");
    }
    let layers = Value::Object(layers.clone());
    if let Some(privacy) = members.get_mut("privacy").and_then(Value::as_object_mut) {
        for name in ["encryptedLayers", "redactedFields"] {
            if let Some(list) = privacy.get_mut(name).and_then(Value::as_array_mut) {
                list.retain(|path| path.as_str().is_some_and(|path| is_there(&layers, path)));
            }
        }
    }
    Ok(members)
}

/// Returns `true` if a path leads to something; of one with a place in a list the list decides.
fn is_there(layers: &Value, path: &str) -> bool {
    let path = path.split('[').next().unwrap_or_default();
    at_path(layers, path).is_some()
}

/// The error for an agent that is not known.
pub(super) fn unknown(store: &AgentStore<'_>) -> Error {
    let message = format!("the store has no agent {}", store.wallet());
    Error::new(ErrorKind::NotFound, message)
        .with_hint("import a document of the agent, or give the key of one that is stored")
        .in_entry(ENVELOPE_LAYER)
}
