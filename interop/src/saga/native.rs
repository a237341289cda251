//! Grains that were not born in SAGA, as items of a document: events, workflows and tasks.
//!
//! The grains themselves go along in the long-term memory. Where both arrive, the item leads to the grain, and no
//! second one is made of it.

use std::collections::HashMap;

use grainstore::format::{GrainType, Map};
use grainstore::{ContentAddress, Grain, PageOptions, Session, cal::Query};
use serde_json::{Value, json};

use super::document::{Document, at_path_mut};
use super::kinds::Layer;
use super::map::{EVENT_KIND, Item, Kind, PROFILE, TASK_KIND, WORKFLOW_KIND, item_of, split};
use super::schema::MAX_RECENT_TASKS;
use crate::error::Result;
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

/// Which grain an item of a document is, by kind and id.
pub(super) type Links = HashMap<(&'static str, String), ContentAddress>;

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

/// Adds the items of current grains that match to a document, as far as there is room.
///
/// # Errors
/// Those of [`Session::query`].
pub(super) fn add_items(document: &mut Document, session: &Session, query: &Query) -> Result<()> {
    let mut cursor = None;
    loop {
        let page = session.query(query, &PageOptions::first(PAGE).after(cursor))?;
        for row in page.results.iter().filter(|row| row.state.is_current()) {
            if let Some((kind, value)) = item(&row.grain, &row.content_address)? {
                push(document, kind, value);
            }
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(());
        }
    }
}

/// Adds an item to its list, which is made if the layer has none.
fn push(document: &mut Document, kind: &Kind, value: Value) {
    let most = PLACES.iter().find(|(_, of, ..)| of.name == kind.name).map_or(0, |(.., most)| *most);
    let Some(layers) = document.layers_mut() else { return };
    let layer = layers.entry(kind.layer.name()).or_insert_with(|| json!({}));
    if let Some((above, name)) = kind.path.split_once('.')
        && let Some(layer) = layer.as_object_mut()
    {
        let above = layer.entry(above).or_insert_with(|| json!({}));
        if let Some(above) = above.as_object_mut() {
            above.entry(name).or_insert_with(|| json!([]));
        }
    } else if let Some(layer) = layer.as_object_mut() {
        layer.entry(kind.path).or_insert_with(|| json!([]));
    }
    if let Some(list) = at_path_mut(layer, kind.path).and_then(Value::as_array_mut)
        && list.len() < most
    {
        list.push(value);
    }
}

/// The items of a document that may be of native grains.
pub(super) struct Candidates(Vec<Item>);

impl Candidates {
    pub(super) fn of(document: &Document) -> Self {
        let layers = [Layer::Memory, Layer::TaskHistory];
        let items =
            layers.into_iter().filter_map(|layer| Some(split(layer, document.layer(layer)?)));
        let is_one = |item: &Item| PLACES.iter().any(|(_, kind, ..)| kind.name == item.kind.name);
        Self(items.flat_map(|split| split.items).filter(is_one).collect())
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
        let is_it = |item: &&Item| item.kind.name == kind.name && json::equal(&item.value, &value);
        if let Some(found) = self.0.iter().find(is_it) {
            links.insert((kind.name, found.id.clone()), *address);
        }
        Ok(())
    }
}
