//! What a record names: entities, and other records. It is kept as it came in `context`; here it is repeated where
//! queries and searches follow it.
//!
//! Tags stand for names, since a name is the same in every version, and may come later or never: `record:<id>` for the
//! record itself, `links:<id>` for each record that it is related to, `entity:<name>` for each entity. Cross-links
//! (OMS 14.2) lead to the grains of records that are stored already, where OMS has a word for the relation.

use std::collections::BTreeSet;

use grainstore::ContentAddress;
use grainstore::format::{Map, Value as Field};

use crate::error::Result;
use crate::json::Value;
use crate::kept::grain_text;

/// Entities that get a tag each, and records that get a tag and a cross-link: more are kept, and not followed.
const MAX_ENTITIES: usize = 64;
const MAX_RELATED: usize = 64;
/// Bytes of the name of an entity that gets a tag.
const MAX_NAME_BYTES: usize = 256;

/// How the tags begin that stand for the record, for one that it is related to, and for an entity.
const OWN: &str = "record:";
const RELATED: &str = "links:";
const ENTITY: &str = "entity:";

/// Relations of ALF, and what OMS calls them (14.3). Its vocabulary is closed: others have no word there.
const RELATIONS: [(&str, &str); 4] = [
    ("related_to", "similar"),
    ("contradicts", "contradicts"),
    ("elaborates_on", "elaborates"),
    ("caused", "causal"),
];

/// The tags for what a record names, each once, in order.
pub(super) fn tags(record: &Value) -> Vec<String> {
    let own = record.get("id").and_then(Value::as_str).map(str::to_ascii_lowercase);
    let own = own.map(|id| format!("{OWN}{id}"));
    let related = related(record).map(|(id, _)| format!("{RELATED}{id}"));
    let entities = members(record, "entities").filter_map(|one| one.get("name")?.as_str());
    let entities = entities.map(|name| grain_text(name.trim()).into_owned());
    let entities = entities.filter(|name| !name.is_empty() && name.len() <= MAX_NAME_BYTES);
    let entities = entities.take(MAX_ENTITIES).map(|name| format!("{ENTITY}{name}"));
    let mut met = BTreeSet::new();
    own.into_iter().chain(related).chain(entities).filter(|tag| met.insert(tag.clone())).collect()
}

/// Returns `true` for a tag that stands for something that a record names.
pub(super) fn is_link(tag: &str) -> bool {
    [OWN, RELATED, ENTITY].iter().any(|start| tag.starts_with(start))
}

/// The `related_to` of the grain of a record; `None` without any. `find` returns the grain of a record by its id.
///
/// # Errors
/// Those of `find`.
pub(in super::super) fn cross_links(
    record: &Value,
    mut find: impl FnMut(&str) -> Result<Option<ContentAddress>>,
) -> Result<Option<Field>> {
    let (mut links, mut met) = (Vec::new(), BTreeSet::new());
    for (id, relation) in related(record) {
        let Some((_, word)) = RELATIONS.iter().find(|(alf, _)| *alf == relation) else { continue };
        let Some(address) = find(&id)? else { continue };
        if met.insert((address, *word)) {
            links.push(Map::from([
                ("hash".to_owned(), Field::from(address.to_string())),
                ("relation_type".to_owned(), Field::from(*word)),
            ]));
        }
    }
    Ok((!links.is_empty()).then(|| Field::from(links)))
}

/// The ids of related records, in lower case, with the relation.
fn related(record: &Value) -> impl Iterator<Item = (String, &str)> {
    let links = members(record, "related_records").filter_map(|link| {
        let id = link.get("id")?.as_str()?;
        let relation = link.get("relation").and_then(Value::as_str).unwrap_or_default();
        super::uuid_number(id).map(|_| (id.to_ascii_lowercase(), relation))
    });
    links.take(MAX_RELATED)
}

fn members<'r>(record: &'r Value, name: &str) -> impl Iterator<Item = &'r Value> {
    record.get(name).and_then(Value::as_array).into_iter().flatten()
}
