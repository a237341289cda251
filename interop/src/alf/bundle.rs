//! An archive or a delta that is open, with its manifest: which entries hold what.

use std::collections::BTreeSet;
use std::path::Path;

use grainstore::EpochMs;

use super::issue::{Issues, Place};
use super::names::{
    DELTA_ENTRY, DELTA_MANIFEST_ENTRY, EMBEDDINGS_FOLDER, INDEX_ENTRY, LAYERS, LAYERS_REMOVED,
    Layer, MAJOR, MANIFEST_ENTRY, MEMORY_FOLDER, OF_USER_MEMBER, PARTITIONS_FOLDER,
};
use super::schema;
use crate::archive::{Archive, Entry, EntryReader, Limits};
use crate::error::{Error, Result};
use crate::json::{self, Lines, MAX_LINE_BYTES, Value};
use crate::kept::{clamped, milliseconds};
use crate::other;

/// Most bytes of a document of an archive; `ERR_LIMIT` beyond. Records and files are read bit by bit.
pub(super) const MAX_DOCUMENT_BYTES: u64 = 16 << 20;

/// Memory that the value of a line takes at most: of one that is long, most is one text.
pub(super) const MAX_LINE_MEMORY: u64 = 256 << 20;

/// What an archive is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// All of an agent.
    Snapshot,
    /// What changed.
    Delta,
}

/// An open archive.
#[derive(Debug)]
pub(super) struct Bundle {
    pub(super) archive: Archive,
    pub(super) kind: Kind,
    pub(super) manifest: Value,
    /// The name of the manifest.
    pub(super) manifest_entry: &'static str,
    pub(super) partitions: Vec<Partition>,
    /// The names of the entries that the manifest has a use for.
    named: BTreeSet<String>,
}

/// A file of records.
#[derive(Debug, Clone)]
pub(super) struct Partition {
    pub(super) file: String,
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
    pub(super) record_count: u64,
    pub(super) sealed: bool,
    pub(super) checksum: Option<String>,
}

impl Bundle {
    /// The lines of an entry, of which each takes bounded memory.
    ///
    /// # Errors
    /// Those of [`Archive::reader`].
    pub(super) fn lines(&self, entry: &Entry) -> Result<Lines<EntryReader<'_>>> {
        Ok(Lines::limited(self.archive.reader(entry)?, MAX_LINE_BYTES, MAX_LINE_MEMORY))
    }

    /// Opens an archive, and reads its manifest.
    ///
    /// # Errors
    /// Those of [`Archive::open`]; `ERR_CORRUPT` without a manifest; `ERR_VERSION`.
    pub(super) fn open(path: &Path, limits: Limits, kind: Kind) -> Result<Self> {
        let archive = Archive::open(path, limits)?;
        let names: &[&'static str] = match kind {
            Kind::Snapshot => &[MANIFEST_ENTRY],
            Kind::Delta => &[DELTA_MANIFEST_ENTRY, MANIFEST_ENTRY],
        };
        let found = names.iter().copied().find(|name| archive.entry(name).is_some());
        let Some(manifest_entry) = found else {
            let error = Error::corrupt("this is no ALF archive: it has no manifest");
            return Err(error.in_entry(MANIFEST_ENTRY).at_path(path));
        };
        let bytes = archive.read(manifest_entry, MAX_DOCUMENT_BYTES)?.unwrap_or_default();
        let manifest = json::parse(&bytes).map_err(|error| error.in_entry(manifest_entry))?;
        check_version(&manifest).map_err(|error| error.in_entry(manifest_entry))?;
        let partitions = partitions_of(&manifest, kind);
        let named = BTreeSet::new();
        let mut bundle = Self { archive, kind, manifest, manifest_entry, partitions, named };
        bundle.named = bundle.names();
        Ok(bundle)
    }

    /// Opens an archive of this kind, and no other: what is another file is told by what it is.
    ///
    /// # Errors
    /// As [`Bundle::open`]; `ERR_SCHEMA` for a delta in the place of an archive, and the other way round.
    pub(super) fn open_asked(path: &Path, limits: Limits, kind: Kind) -> Result<Self> {
        let (asked, own, another) = match kind {
            Kind::Snapshot => ("an ALF archive", other::Kind::AlfArchive, other::Kind::AlfDelta),
            Kind::Delta => ("an ALF delta", other::Kind::AlfDelta, other::Kind::AlfArchive),
        };
        let told = |error| other::told(error, path, asked, &[own]);
        let bundle = Self::open(path, limits, kind).map_err(told)?;
        let has = |name: &str| bundle.manifest.get(name).is_some();
        match kind {
            Kind::Snapshot if has("changes") => Err(other::refusal(another, path, asked)),
            Kind::Delta if has("layers") && !has("changes") => {
                Err(other::refusal(another, path, asked))
            }
            _ => Ok(bundle),
        }
    }

    fn names(&self) -> BTreeSet<String> {
        let own = [MANIFEST_ENTRY, DELTA_MANIFEST_ENTRY, INDEX_ENTRY].into_iter();
        let layers = LAYERS.iter().filter_map(|layer| self.layer_entry(*layer));
        let partitions = self.partitions.iter().map(|partition| partition.file.as_str());
        let all = own.chain(layers).chain(partitions).chain(self.index_entry());
        all.map(str::to_owned).collect()
    }

    /// Opens an archive that is a snapshot or a delta, whichever its manifest says.
    ///
    /// # Errors
    /// As [`Bundle::open`].
    pub(super) fn open_any(path: &Path, limits: Limits) -> Result<Self> {
        let bundle = Self::open(path, limits, Kind::Delta)?;
        match bundle.manifest.get("changes").is_some() {
            true => Ok(bundle),
            false => Self::open(path, limits, Kind::Snapshot),
        }
    }

    /// Checks the manifest against its shape.
    pub(super) fn check_manifest(&self, issues: &mut Issues) {
        let shape = match self.kind {
            Kind::Snapshot => &schema::MANIFEST,
            Kind::Delta => &schema::DELTA_MANIFEST,
        };
        schema::check(shape, &self.manifest, &Place::entry(self.manifest_entry), issues);
    }

    /// The id of the agent, as it is written.
    pub(super) fn agent_id(&self) -> &str {
        self.agent("id")
    }

    /// When it was made, as it says; else the beginning of 1970.
    pub(super) fn created_at(&self) -> EpochMs {
        let said = self.manifest.get("created_at").and_then(Value::as_str);
        clamped(said.and_then(milliseconds).unwrap_or_default())
    }

    /// A text about the agent.
    pub(super) fn agent(&self, name: &str) -> &str {
        let agent = self.manifest.get("agent");
        agent.and_then(|agent| agent.get(name)).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns `true` for an archive of one person alone.
    pub(super) fn is_of_user(&self) -> bool {
        self.manifest.get(OF_USER_MEMBER).is_some()
    }

    /// The layers: of a snapshot all, of a delta those that changed.
    fn inventory(&self) -> Option<&Value> {
        self.manifest.get(match self.kind {
            Kind::Snapshot => "layers",
            Kind::Delta => "changes",
        })
    }

    /// What the manifest says of a layer.
    pub(super) fn layer(&self, layer: Layer) -> Option<&Value> {
        self.inventory()?.get(layer.name)
    }

    /// The entry of a layer, if there is such a layer.
    pub(super) fn layer_entry(&self, layer: Layer) -> Option<&str> {
        let said = self.layer(layer)?;
        Some(said.get("file").and_then(Value::as_str).unwrap_or(layer.entry))
    }

    /// The entry of the index of the memory.
    pub(super) fn index_entry(&self) -> Option<&str> {
        self.inventory()?.get("memory")?.get("index_file")?.as_str()
    }

    /// The names of files that went, in a delta.
    pub(super) fn removed_files(&self) -> BTreeSet<&str> {
        self.removed("files_removed")
    }

    /// The layers that went as a whole, in a delta.
    pub(super) fn removed_layers(&self) -> impl Iterator<Item = Layer> {
        let removed = self.removed(LAYERS_REMOVED);
        LAYERS.into_iter().filter(move |layer| removed.contains(layer.name))
    }

    fn removed(&self, list: &str) -> BTreeSet<&str> {
        let removed = self.inventory().and_then(|changes| changes.get(list));
        let removed = removed.and_then(Value::as_array).filter(|_| self.kind == Kind::Delta);
        removed.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The names of the entries that the manifest has no use for: raw sources, artifacts, what is not known, and
    /// entries that have a name of the standard's all the same.
    pub(super) fn files(&self) -> impl Iterator<Item = &str> {
        self.archive.entries().iter().map(Entry::name).filter(|name| !self.named.contains(*name))
    }

    /// The files that a store keeps.
    pub(super) fn kept_files(&self) -> impl Iterator<Item = &str> {
        self.files().filter(|name| !is_reserved(name))
    }

    /// The entries that the manifest does not list, and whose names the standard has a use for (ALF 4.1).
    pub(super) fn unlisted(&self) -> impl Iterator<Item = &str> {
        self.files().filter(|name| is_reserved(name))
    }
}

/// Returns `true` for a name that the standard has a use for: the document of a layer, what is in a folder of its name,
/// partitions, and other lines of records under `memory/`. Files are elsewhere.
fn is_reserved(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_of_layer = |layer: &Layer| {
        let rest = name.strip_prefix(layer.name);
        name == layer.entry || rest.is_some_and(|rest| rest.starts_with('/'))
    };
    let has_lines = name.starts_with(MEMORY_FOLDER) && name.ends_with(".jsonl");
    let is_memory = has_lines && !name.starts_with(EMBEDDINGS_FOLDER);
    is_memory || name.starts_with(PARTITIONS_FOLDER) || LAYERS.iter().any(is_of_layer)
}

/// Refuses versions that are newer than what is read (ALF 8.2).
fn check_version(manifest: &Value) -> Result<()> {
    let version = manifest.get("alf_version").and_then(Value::as_str).unwrap_or_default();
    let major = version.split('.').next().and_then(|major| major.parse::<u64>().ok());
    match major {
        Some(major) if major > MAJOR => {
            let message = format!("it is of version {version} of ALF, and {MAJOR} is read");
            Err(Error::version(message))
        }
        _ => Ok(()),
    }
}

fn partitions_of(manifest: &Value, kind: Kind) -> Vec<Partition> {
    let text =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let count = |value: &Value| value.get("record_count").and_then(Value::as_u64);
    match kind {
        Kind::Snapshot => {
            let listed = manifest.get("layers").and_then(|layers| layers.get("memory"));
            let listed = listed.and_then(|memory| memory.get("partitions"));
            let listed = listed.and_then(Value::as_array).into_iter().flatten();
            let read = listed.map(|said| Partition {
                file: text(said, "file").unwrap_or_default(),
                from: text(said, "from"),
                to: text(said, "to"),
                record_count: count(said).unwrap_or_default(),
                sealed: said.get("sealed").and_then(Value::as_bool).unwrap_or_default(),
                checksum: text(said, "checksum"),
            });
            read.collect()
        }
        Kind::Delta => {
            let said = manifest.get("changes").and_then(|changes| changes.get("memory"));
            let read = said.map(|said| Partition {
                file: text(said, "file").unwrap_or_else(|| DELTA_ENTRY.to_owned()),
                from: None,
                to: None,
                record_count: count(said).unwrap_or_default(),
                sealed: false,
                checksum: None,
            });
            read.into_iter().collect()
        }
    }
}
