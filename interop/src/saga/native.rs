//! Grains that were not born in SAGA, as items of a document: events, workflows and tasks.
//!
//! The grains themselves go along in the long-term memory. Where both arrive, the item leads to the grain, and no
//! second one is made of it.

use std::collections::HashMap;

use grainstore::format::{GrainType, Map, Value as GrainValue};
use grainstore::{ContentAddress, ErrorKind, Grain, PageOptions, Session, cal::Query};
use serde_json::{Value, json};

use super::document::{Document, at_path_mut};
use super::encrypt::is_encrypted;
use super::kinds::Layer;
use super::map::{EVENT_KIND, Form, Kind, PROFILE, TASK_KIND, WORKFLOW_KIND, item_of, split};
use super::schema::MAX_RECENT_TASKS;
use crate::error::{Error, Result};
use crate::json;

/// Most events of a document, as the standard's example has it.
const MAX_EVENTS: usize = 1000;
/// Most workflows that are added to a document.
const MAX_WORKFLOWS: usize = 1000;
/// Hex digits of an address in an id.
const ID_DIGITS: usize = 20;
/// Grains that are looked at together.
const PAGE: usize = 1000;

/// Where items of native grains go, and how many there may be.
const PLACES: [(GrainType, &Kind, &str, usize); 3] = [
    (GrainType::Event, &EVENT_KIND, "evt_", MAX_EVENTS),
    (GrainType::Goal, &TASK_KIND, "task_", MAX_RECENT_TASKS),
    (GrainType::Workflow, &WORKFLOW_KIND, "", MAX_WORKFLOWS),
];

/// The types of grains that are shown as items.
pub(super) const TYPES: [GrainType; 3] = [GrainType::Event, GrainType::Goal, GrainType::Workflow];

/// Which grain an item of a document is, by kind and id.
pub(super) type Links = HashMap<ItemName, ContentAddress>;

/// The item of a grain that was not born in SAGA; `None` for one that was, and for types that documents have no items
/// of.
///
/// # Errors
/// `ERR_CORRUPT`.
pub(super) fn item(
    grain: &Grain,
    address: &ContentAddress,
) -> Result<Option<(&'static Kind, Value)>> {
    let is_born_here = grain.texts("structural_tags").any(|tag| tag == PROFILE.tag());
    let place = PLACES.iter().find(|(of, ..)| *of == grain.grain_type());
    let Some((_, kind, prefix, _)) = place.filter(|_| !is_born_here) else { return Ok(None) };
    let digits = address.to_string();
    let id = match prefix.is_empty() {
        true => String::new(),
        false => format!("{prefix}{}", digits.get(..ID_DIGITS).unwrap_or(&digits)),
    };
    let fields: &Map = grain.fields();
    let value = item_of(kind, &id, fields)?;
    Ok(value.map(|value| (*kind, value)))
}

/// An item by its kind and id.
pub(super) type ItemName = (&'static str, String);

/// Adds the items of current grains that match to these layers of a document, as far as there is room. Returns those of
/// grains that are held.
///
/// # Errors
/// `ERR_CONFLICT` where they would stand in plain beside what is encrypted; those of [`Session::query`].
pub(super) fn add_items(
    document: &mut Document,
    layers: &[Layer],
    session: &Session,
    query: &Query,
) -> Result<Vec<ItemName>> {
    let (mut cursor, mut held) = (None, Vec::new());
    loop {
        let page = session.query(query, &PageOptions::first(PAGE).after(cursor))?;
        for row in page.results.iter().filter(|row| row.state.is_current()) {
            let found = item(&row.grain, &row.content_address)?;
            let Some((kind, value)) = found.filter(|(kind, _)| layers.contains(&kind.layer)) else {
                continue;
            };
            let id = name_of(kind, &value);
            if push(document, kind, value)? && is_held(row.state.held, row.grain.fields()) {
                held.push((kind.name, id));
            }
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(held);
        }
    }
}

/// Returns `true` for a grain under a hold, by its state or by its own policy.
pub(super) fn is_held(by_state: bool, fields: &Map) -> bool {
    let policy = fields.get("invalidation_policy").and_then(GrainValue::as_map);
    let mode = policy.and_then(|policy| policy.get("mode")).and_then(GrainValue::as_str);
    by_state || mode == Some("hold")
}

/// The id of an item, or its name where that is its id.
fn name_of(kind: &Kind, value: &Value) -> String {
    let Form::List(member) = kind.form else { return String::new() };
    value.get(member).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Adds an item to its list, which is made if the layer has none. `false` if there is no room for it.
///
/// # Errors
/// `ERR_CONFLICT` if the layer, or the part with the list, is encrypted.
fn push(document: &mut Document, kind: &Kind, value: Value) -> Result<bool> {
    let most = PLACES.iter().find(|(_, of, ..)| of.name == kind.name).map_or(0, |(.., most)| *most);
    let Some(layers) = document.layers_mut() else { return Ok(false) };
    let name = kind.layer.name();
    let layer = layers.entry(name).or_insert_with(|| json!({}));
    check_plain(layer, name)?;
    if let Some((above, list)) = kind.path.split_once('.')
        && let Some(layer) = layer.as_object_mut()
    {
        let part = layer.entry(above).or_insert_with(|| json!({}));
        check_plain(part, &format!("{name}.{above}"))?;
        if let Some(part) = part.as_object_mut() {
            part.entry(list).or_insert_with(|| json!([]));
        }
    } else if let Some(layer) = layer.as_object_mut() {
        layer.entry(kind.path).or_insert_with(|| json!([]));
    }
    let list = at_path_mut(layer, kind.path).and_then(Value::as_array_mut);
    let room = list.filter(|list| list.len() < most);
    Ok(room.map(|list| list.push(value)).is_some())
}

/// Refuses to put something in plain beside what is encrypted.
///
/// # Errors
/// `ERR_CONFLICT`.
pub(super) fn check_plain(part: &Value, path: &str) -> Result<()> {
    match is_encrypted(part) {
        false => Ok(()),
        true => Err(Error::new(
            ErrorKind::Conflict,
            "it is encrypted, and grains would stand beside it in plain",
        )
        .with_hint("export without grains, or import the document in plain first")
        .in_entry(path)),
    }
}

/// The items of a document that may be of native grains: their ids, by kind and canonical form.
pub(super) struct Candidates(HashMap<(&'static str, String), String>);

impl Candidates {
    /// # Errors
    /// Those of [`json::canonical`].
    pub(super) fn of(document: &Document) -> Result<Self> {
        let mut found = HashMap::new();
        for layer in [Layer::Memory, Layer::TaskHistory] {
            let Some(value) = document.layer(layer) else { continue };
            for item in split(layer, value).items {
                if PLACES.iter().any(|(_, kind, ..)| kind.name == item.kind.name) {
                    let form = json::canonical(&item.value)?;
                    found.entry((item.kind.name, form)).or_insert(item.id);
                }
            }
        }
        Ok(Self(found))
    }

    /// Notes the item that a grain is, if it is one.
    ///
    /// # Errors
    /// `ERR_CORRUPT`.
    pub(super) fn link(
        &self,
        grain: &Grain,
        address: &ContentAddress,
        links: &mut Links,
    ) -> Result<()> {
        let Some((kind, value)) = item(grain, address)? else { return Ok(()) };
        if let Some(id) = self.0.get(&(kind.name, json::canonical(&value)?)) {
            links.insert((kind.name, id.clone()), *address);
        }
        Ok(())
    }
}
