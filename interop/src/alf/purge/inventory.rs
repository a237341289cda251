//! What the manifest of a file says once records of it are gone: counts, checksums, what there is.

use serde_json::json;

use super::lines::Left;
use crate::alf::bundle::Kind;
use crate::alf::export::{described, update};
use crate::alf::names::{ATTACHMENTS, VECTORS_ENTRY};
use crate::alf::survey::raw_runtime;
use crate::json::{self, Value};

/// The manifest of a file that is purged.
#[derive(Debug)]
pub(super) struct Inventory {
    pub(super) manifest: Value,
    kind: Kind,
}

impl Inventory {
    pub(super) fn new(manifest: Value, kind: Kind) -> Self {
        Self { manifest, kind }
    }

    /// What it says of the memory.
    fn memory(&mut self) -> Option<&mut Value> {
        let layers = match self.kind {
            Kind::Snapshot => "layers",
            Kind::Delta => "changes",
        };
        self.manifest.get_mut(layers)?.get_mut("memory")
    }

    /// The partitions of a snapshot, as they are listed.
    pub(super) fn partitions(&self) -> Option<&Value> {
        self.manifest.get("layers")?.get("memory")?.get("partitions")
    }

    /// Corrects what it says of the partition at a place.
    pub(super) fn count(&mut self, place: usize, left: &Left) {
        let is_snapshot = self.kind == Kind::Snapshot;
        let memory = self.memory();
        let said = match is_snapshot {
            true => memory.and_then(|memory| memory.get_mut("partitions")?.get_mut(place)),
            false => memory,
        };
        let Some(Value::Object(said)) = said else { return };
        said.insert("record_count".to_owned(), json!(left.lines));
        if said.contains_key("checksum") {
            let hash = data_encoding::HEXLOWER.encode(&left.sha256);
            said.insert("checksum".to_owned(), json!(format!("sha256:{hash}")));
        }
    }

    /// Adds up the records of all partitions; a delta without any has no memory.
    pub(super) fn sum_up(&mut self) {
        let kind = self.kind;
        let Some(memory) = self.memory() else { return };
        if kind == Kind::Snapshot {
            let partitions = memory.get("partitions").and_then(Value::as_array);
            let counts = partitions.into_iter().flatten();
            let counts = counts.filter_map(|said| said.get("record_count")?.as_u64());
            let sum = counts.fold(0, u64::saturating_add);
            json::set(memory, "record_count", json!(sum));
        } else if memory.get("record_count").and_then(Value::as_u64) == Some(0)
            && let Some(Value::Object(changes)) = self.manifest.get_mut("changes")
        {
            changes.remove("memory");
        }
    }

    /// Corrects what it says of files, where some went and these are left.
    pub(super) fn tell_files(&mut self, left: &[&str], has_embeddings: bool) {
        let has_vectors = left.contains(&VECTORS_ENTRY);
        let has_raw = left.iter().any(|name| raw_runtime(name).is_some());
        if self.kind == Kind::Snapshot
            && let Some(Value::Object(memory)) = self.memory()
        {
            for (name, holds) in
                [("has_embeddings", has_embeddings || has_vectors), ("has_raw_source", has_raw)]
            {
                if memory.get(name) == Some(&json!(true)) {
                    memory.insert(name.to_owned(), json!(holds));
                }
            }
        }
        let Some(Value::Object(changes)) = self.manifest.get_mut("changes") else { return };
        if let Some(Value::Array(files)) = changes.get_mut("files") {
            files.retain(|name| name.as_str().is_some_and(|name| left.contains(&name)));
            if files.is_empty() {
                changes.remove("files");
            }
        }
    }

    /// Corrects what it says of the attachments, which are in this entry.
    pub(super) fn tell_attachments(&mut self, entry: &str, document: &Value) {
        if let Some(Value::Object(layers)) = self.manifest.get_mut("layers") {
            let mut said = described(ATTACHMENTS, document);
            json::set(&mut said, "file", json!(entry));
            update(layers, ATTACHMENTS.name, said);
        }
    }

    /// Returns `true` for a delta that has nothing any more.
    pub(super) fn is_empty_delta(&self) -> bool {
        let changes = self.manifest.get("changes").and_then(Value::as_object);
        self.kind == Kind::Delta && changes.is_some_and(json::Map::is_empty)
    }
}
