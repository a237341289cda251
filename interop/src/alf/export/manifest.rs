//! The manifest of an archive: what the store knows of it, with counts and checksums as they are now.

use std::collections::BTreeSet;

use serde_json::json;

use super::NewEntry;
use super::partitions::Partitions;
use crate::alf::agent::Agent;
use crate::alf::names::{
    ATTACHMENTS, CHECKSUM_SCHEME, IDENTITY, INDEX_ENTRY, Layer, MANIFEST_LAYER, OF_USER_MEMBER,
    RUNTIME, VERSION,
};
use crate::alf::survey::{checksum, raw_runtime};
use crate::error::Result;
use crate::json::{self, Map, Value};
use crate::kept::date_text;

/// What the manifest of a snapshot is about.
pub(super) struct Snapshot<'a, 's> {
    pub(super) agent: &'a Agent<'s>,
    pub(super) documents: &'a [(Layer, Value)],
    pub(super) partitions: &'a Partitions<'s>,
    /// The names of its files.
    pub(super) files: &'a BTreeSet<String>,
    /// The name of the agent, if the store has none.
    pub(super) name: Option<&'a str>,
    /// The person that it is of alone.
    pub(super) of_user: Option<&'a str>,
}

type Object = Map<String, Value>;

impl Snapshot<'_, '_> {
    /// Returns the manifest, without the checksum.
    pub(super) fn document(&self) -> Result<Value> {
        let kept = self.agent.documents.read(MANIFEST_LAYER, None)?.map(|kept| kept.value);
        let Some(Value::Object(mut manifest)) = kept.or_else(|| Some(json!({}))) else {
            return Ok(Value::Null);
        };
        if let Some(id) = self.of_user {
            manifest.retain(|name, _| name == "agent");
            if let Some(Value::Object(about)) = manifest.get_mut("agent") {
                about.retain(|name, _| ["id", "name", "source_runtime"].contains(&name.as_str()));
            }
            manifest.insert(OF_USER_MEMBER.to_owned(), Value::from(id));
        }
        let now = date_text(self.agent.session.now()).unwrap_or_default();
        manifest.insert("alf_version".to_owned(), Value::from(VERSION));
        manifest.insert("created_at".to_owned(), Value::from(now));
        let about = manifest.entry("agent").or_insert_with(|| json!({}));
        for (name, value) in [
            ("id", self.agent.id.as_str()),
            ("name", self.name.unwrap_or("agent")),
            ("source_runtime", RUNTIME),
        ] {
            if let Value::Object(about) = about {
                about.entry(name).or_insert_with(|| Value::from(value));
            }
        }
        // No delta goes on from what one person is given.
        if self.of_user.is_none()
            && let Value::Object(sync) = manifest.entry("sync").or_insert_with(|| json!({}))
        {
            sync.insert("last_sequence".to_owned(), Value::from(self.agent.sequence()?));
        }
        let layers = manifest.entry("layers").or_insert_with(|| json!({}));
        if let Value::Object(layers) = layers {
            self.describe_layers(layers);
        }
        self.describe_raw_sources(&mut manifest);
        manifest.remove("checksum");
        Ok(Value::Object(manifest))
    }

    fn describe_layers(&self, layers: &mut Object) {
        for layer in crate::alf::names::LAYERS {
            let document = self.documents.iter().find(|(of, _)| *of == layer);
            let Some((_, document)) = document else {
                layers.remove(layer.name);
                continue;
            };
            let said = described(layer, document);
            update(layers, layer.name, said);
        }
        if self.partitions.records() == 0 && !layers.contains_key("memory") {
            return;
        }
        let has_raw = self.files.iter().any(|name| raw_runtime(name).is_some());
        let said = json!({
            "record_count": self.partitions.records(),
            "index_file": INDEX_ENTRY,
            "has_embeddings": self.partitions.has_embeddings,
            "has_raw_source": has_raw,
            "partitions": self.partitions.described(),
        });
        update(layers, "memory", said);
    }

    /// Adds the runtimes under `raw/` to those that are named.
    fn describe_raw_sources(&self, manifest: &mut Object) {
        let mut found: BTreeSet<&str> =
            self.files.iter().filter_map(|name| raw_runtime(name)).collect();
        if found.is_empty() && !manifest.contains_key("raw_sources") {
            return;
        }
        let sources = manifest.entry("raw_sources").or_insert_with(|| json!([]));
        if let Value::Array(sources) = sources {
            for source in sources.iter().filter_map(Value::as_str) {
                found.remove(source);
            }
            sources.extend(found.into_iter().map(Value::from));
        }
    }
}

/// What a manifest says of a layer.
pub(in super::super) fn described(layer: Layer, document: &Value) -> Value {
    if layer == IDENTITY {
        let version = document.get("version").cloned().unwrap_or_else(|| json!(1));
        return json!({"version": version, "file": layer.entry});
    }
    let list = layer.items.map_or("", |(_, list)| list);
    let items = document.get(list).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut said = json!({"count": items.len(), "file": layer.entry});
    if layer == ATTACHMENTS {
        let size = |item: &&Value| item.get("size_bytes").and_then(Value::as_u64).unwrap_or(0);
        let is_included = |item: &&Value| item.get("archive_path").is_some_and(Value::is_string);
        let (included, referenced): (Vec<&Value>, Vec<&Value>) =
            items.iter().partition(is_included);
        let bytes = |items: &[&Value]| items.iter().map(size).fold(0, u64::saturating_add);
        for (name, count) in [
            ("included_count", included.len() as u64),
            ("included_size_bytes", bytes(&included)),
            ("referenced_count", referenced.len() as u64),
            ("referenced_size_bytes", bytes(&referenced)),
        ] {
            json::set(&mut said, name, json!(count));
        }
    }
    said
}

/// Sets the members of an object in another; those that it does not have stay.
pub(in super::super) fn update(layers: &mut Object, name: &str, said: Value) {
    match (layers.get_mut(name), said) {
        (Some(Value::Object(old)), Value::Object(said)) => old.extend(said),
        (_, said) => drop(layers.insert(name.to_owned(), said)),
    }
}

/// Adds the checksum of an archive with these entries to its manifest, and returns both.
pub(in super::super) fn with_checksum(
    manifest: Value,
    entries: &[NewEntry<'_>],
) -> (String, String) {
    let mut sorted: Vec<&NewEntry<'_>> = entries.iter().collect();
    sorted.sort_by(|one, other| one.name.cmp(&other.name));
    let sum = checksum(sorted.iter().map(|entry| (entry.name.as_str(), &entry.sha256, entry.size)));
    let mut manifest = manifest;
    if let Value::Object(members) = &mut manifest {
        members.insert("checksum".to_owned(), Value::from(sum.as_str()));
        members.insert("checksum_scheme".to_owned(), Value::from(CHECKSUM_SCHEME));
    }
    (json::line(&manifest), sum)
}
