//! What a redaction replaced or took out does not take the place of what is whole here.
//!
//! A redacted document has the id and the time of the document that it was made of, so that nothing else tells them
//! apart.

use grainstore::ErrorKind;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::saga::classify::ItemType;
use crate::saga::document::{Document, at_path};
use crate::saga::kinds::Layer;
use crate::saga::map::{Form, Kind, LAYER, MEMBERS, split};
use crate::saga::redact::removed_id;
use crate::saga::store::AgentStore;

/// How the texts begin that stand in the place of what was redacted: `[Redacted ...]`, `[redacted]`.
const MARK: &str = "[redacted";
/// The layer whose parts a manifest names together.
const RELATIONSHIPS: &str = "relationships";

/// Refuses a document with a redaction manifest that would take the place of something whole.
///
/// # Errors
/// `ERR_CONFLICT`, with the layer and the item; those of [`AgentStore::find`].
pub(super) fn check(store: &AgentStore<'_>, document: &Document) -> Result<()> {
    let Some(manifest) = document.get("redactionManifest") else { return Ok(()) };
    let ids = manifest.get("entries").and_then(Value::as_array).into_iter().flatten();
    let redaction = Redaction(ids.filter_map(|entry| entry.get("id")?.as_str()).collect());
    for layer in document.layers() {
        if let Some(value) = document.layer(layer) {
            redaction.check_layer(store, layer, value)?;
        }
    }
    let unknown = Value::Object(document.unknown_members());
    if unknown.as_object().is_none_or(serde_json::Map::is_empty) {
        return Ok(());
    }
    match stored(store, &MEMBERS, document.id())? {
        Some(old) if redaction.lacks("document", &old, &unknown) => Err(poorer("members")),
        _ => Ok(()),
    }
}

/// A redaction: the ids of what its manifest lists.
struct Redaction<'d>(Vec<&'d str>);

impl Redaction<'_> {
    fn check_layer(&self, store: &AgentStore<'_>, layer: Layer, value: &Value) -> Result<()> {
        let whole = split(layer, value);
        for item in &whole.items {
            let Some(old) = stored(store, item.kind, &item.id)? else { continue };
            if hides(&old, &item.value) || self.takes_from(item.kind, &item.id, &old, &item.value) {
                let id = item.id.replace('\0', "~");
                let named = format!("{}: {} {id}", layer.name(), item.kind.name);
                return Err(poorer(named.trim_end()));
            }
        }
        let Some(old) = stored(store, &LAYER, layer.name())? else { return Ok(()) };
        let new = &whole.skeleton;
        let is_poorer = hides(&old, new)
            || self.lacks(layer.name(), &old, new)
            || split_lists(layer).any(|path| self.lacks_items(path, &old, new));
        if is_poorer { Err(poorer(layer.name())) } else { Ok(()) }
    }

    fn lists(&self, id: &str) -> bool {
        // A workflow that was taken out is not named.
        self.0.contains(&id) || self.0.contains(&removed_id(ItemType::Workflow, id).as_str())
    }

    /// Returns `true` if the manifest lists an item, or the part that it is in, and the item lost a member.
    fn takes_from(&self, kind: &Kind, id: &str, old: &Value, new: &Value) -> bool {
        let layer = kind.layer.name();
        let path = format!("{layer}.{}", kind.path);
        let is_within = |of: &&str| of.strip_prefix(&path).is_some_and(|at| at.starts_with('.'));
        let is_listed = (!id.is_empty() && self.lists(id))
            || self.lists(&path)
            || (layer == RELATIONSHIPS && self.lists(layer))
            || (kind.form == Form::Part && self.0.iter().any(is_within));
        is_listed && lost_member(old, new)
    }

    /// Returns `true` if something is not there any more that the manifest lists by a path below this one.
    fn lacks(&self, below: &str, old: &Value, new: &Value) -> bool {
        let is_gone = |path: &str| {
            let at = |value: &Value| value.get(path).or_else(|| at_path(value, path)).is_some();
            at(old) && !at(new)
        };
        let mut paths = self.0.iter().filter_map(|id| id.strip_prefix(below)?.strip_prefix('.'));
        paths.any(is_gone) || (below == RELATIONSHIPS && self.lists(below) && lost_member(old, new))
    }

    /// Returns `true` if a list names no longer an item that the manifest lists.
    fn lacks_items(&self, path: &str, old: &Value, new: &Value) -> bool {
        let ids = |of| at_path(of, path).and_then(Value::as_array);
        let is_gone = |id: &&Value| ids(new).is_none_or(|new| !new.contains(id));
        let gone = ids(old).into_iter().flatten().filter(is_gone);
        gone.filter_map(Value::as_str).any(|id| self.lists(id))
    }
}

/// Where a layer has lists that a redaction takes items out of.
fn split_lists(layer: Layer) -> impl Iterator<Item = &'static str> {
    let paths: &[&str] = match layer {
        Layer::Memory => &["episodic.events", "procedural.workflows"],
        Layer::TaskHistory => &["recentTasks", "artifacts"],
        _ => &[],
    };
    paths.iter().copied()
}

/// A stored item. One that an interrupted import left without what lies beside it is none.
fn stored(store: &AgentStore<'_>, kind: &Kind, id: &str) -> Result<Option<Value>> {
    match store.read(kind, id) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => read,
    }
}

/// Returns `true` if a mark of a redaction stands where something else was.
fn hides(old: &Value, new: &Value) -> bool {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            new.iter().any(|(name, new)| match old.get(name) {
                Some(old) => hides(old, new),
                None => is_mark(name),
            })
        }
        (Value::Array(old), Value::Array(new)) => {
            let marked = |list: &[Value]| list.iter().any(is_marked);
            (marked(new) && !marked(old) && !old.is_empty())
                || old.iter().zip(new).any(|(old, new)| old.is_object() && hides(old, new))
        }
        (Value::Null, _) => false,
        (old, new) => is_marked(new) && !is_marked(old),
    }
}

fn is_marked(value: &Value) -> bool {
    value.as_str().is_some_and(is_mark)
}

fn is_mark(text: &str) -> bool {
    text.get(..MARK.len()).is_some_and(|start| start.eq_ignore_ascii_case(MARK))
}

fn lost_member(old: &Value, new: &Value) -> bool {
    let Some(old) = old.as_object() else { return false };
    old.keys().any(|name| new.get(name).is_none())
}

fn poorer(entry: &str) -> Error {
    Error::new(ErrorKind::Conflict, "it was redacted, and what it would replace here is whole")
        .with_hint(
            "import it where the whole is not, or allow what is older, to replace the whole by it",
        )
        .in_entry(entry)
}
