//! Layers from the store, and the document that was imported last.

use grainstore::{ErrorKind, Session};
use serde_json::{Map, Value};

use super::{ExportOptions, without_written};
use crate::error::{Error, Result};
use crate::saga::document::{Document, at_path, texts};
use crate::saga::fresh::Latest;
use crate::saga::import::ENVELOPE_LAYER;
use crate::saga::kinds::{ExportType, Layer};
use crate::saga::map::{ENVELOPE, Kind, LAYER, MEMBERS, item_of, joined};
use crate::saga::native::{ItemName, is_held};
use crate::saga::store::AgentStore;
use crate::saga::wallet::Wallet;

/// What the store has of some layers.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) layers: Map<String, Value>,
    pub(super) absent: Vec<String>,
    /// Layers that rest on a consent which has ended.
    pub(super) hidden: Vec<Layer>,
    /// Items that are held, by kind and id.
    pub(super) held: Vec<ItemName>,
}

/// What becomes of a layer or an item that rests on a consent which has ended: [`gather`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hidden {
    /// It is an error.
    Refused,
    /// It is left out, and told; but for the identity.
    LeftOut,
}

/// Returns the document of an agent that was imported last ([`import_document`](crate::saga::import_document())), with
/// its layers as they are now: with its signature, which is valid if nothing of them changed. `None` if none was.
///
/// # Errors
/// Those of [`Session::inspect`], such as `ERR_WITHDRAWN` once its consent is no longer valid.
pub fn stored_document(session: &Session, agent: &Wallet) -> Result<Option<Document>> {
    let store = AgentStore::new(session, agent);
    let Some((id, mut members)) = envelope(&store)? else { return Ok(None) };
    let names = members.remove("layers");
    let names: Vec<&str> = texts(names.as_ref()).collect();
    let known: Vec<Layer> = names.iter().filter_map(|name| name.parse().ok()).collect();
    let mut layers = gather(&store, &known, Hidden::Refused)?.layers;
    for name in names.iter().filter(|name| name.parse::<Layer>().is_err()) {
        if let Some(value) = store.read(&LAYER, name)? {
            layers.insert((*name).to_owned(), value);
        }
    }
    if let Some(Value::Object(unknown)) = store.read(&MEMBERS, &id)? {
        members.extend(unknown);
    }
    members.insert("layers".to_owned(), Value::Object(layers));
    Document::from_value(Value::Object(members)).map(Some)
}

/// The id of the document that was imported last, and its envelope.
fn envelope(store: &AgentStore<'_>) -> Result<Option<(String, Map<String, Value>)>> {
    let Some(Latest { id, .. }) = Latest::read(store)? else { return Ok(None) };
    match store.read(&ENVELOPE, &id)? {
        Some(Value::Object(members)) => Ok(Some((id, members))),
        _ => Ok(None),
    }
}

/// Reads layers with their items.
///
/// # Errors
/// Those of [`AgentStore::find`], with the layer.
pub(super) fn gather(store: &AgentStore<'_>, layers: &[Layer], hidden: Hidden) -> Result<Gathered> {
    let mut gathered = Gathered::default();
    for layer in layers {
        let may_hide = hidden == Hidden::LeftOut && *layer != Layer::Identity;
        match layer_of(store, *layer, hidden, &mut gathered) {
            Ok(None) => {}
            Ok(Some(value)) => drop(gathered.layers.insert(layer.name().to_owned(), value)),
            Err(error) if may_hide && error.kind() == ErrorKind::Withdrawn => {
                gathered.hidden.push(*layer);
            }
            Err(error) => return Err(error.in_entry(layer.name())),
        }
    }
    Ok(gathered)
}

fn layer_of(
    store: &AgentStore<'_>,
    layer: Layer,
    hidden: Hidden,
    gathered: &mut Gathered,
) -> Result<Option<Value>> {
    let Some(stored) = store.find(&LAYER, layer.name())? else { return Ok(None) };
    let Some(skeleton) = item_of(&LAYER, layer.name(), &stored.fields)? else { return Ok(None) };
    if is_held(stored.state.held, &stored.fields) {
        gathered.held.push((LAYER.name, layer.name().to_owned()));
    }
    let Gathered { absent, held, .. } = gathered;
    let lookup = |kind: &'static Kind, id: &str| {
        let stored = match store.find(kind, id) {
            Ok(Some(stored)) => stored,
            Ok(None) => return Ok(None),
            Err(error) if hidden == Hidden::LeftOut && error.kind() == ErrorKind::Withdrawn => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        if is_held(stored.state.held, &stored.fields) {
            held.push((kind.name, id.to_owned()));
        }
        item_of(kind, id, &stored.fields)
    };
    let gone = |kind: &'static Kind, id: &str| {
        absent.push(format!("{layer}: {} {}", kind.name, id.replace('\0', "~")));
    };
    joined(layer, skeleton, &stored.split(), lookup, gone).map(Some)
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
    let Some((id, members)) = envelope(store)? else { return Ok(Map::new()) };
    let mut members = without_written(members);
    members.remove("layers");
    let is_whole = !matches!(export_type, ExportType::Identity | ExportType::Profile)
        && !options.crosses_organizations
        && options.layers.is_none()
        && options.consent.is_none();
    // Nobody knows what the others tell.
    if is_whole && let Some(unknown) = unknown_members(store, &id)? {
        members.extend(unknown);
    }
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

/// The members of a document that are not known; `None` if there are none, or the consent that they rest on has ended.
fn unknown_members(store: &AgentStore<'_>, id: &str) -> Result<Option<Map<String, Value>>> {
    match store.read(&MEMBERS, id) {
        Ok(Some(Value::Object(members))) => Ok(Some(members)),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == ErrorKind::Withdrawn => Ok(None),
        Err(error) => Err(error),
    }
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
