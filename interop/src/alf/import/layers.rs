//! Documents and files of an archive into the store.

use std::collections::BTreeSet;

use data_encoding::HEXLOWER;
use grainstore::EpochMs;
use grainstore::format::{Map as Fields, Sensitivity, Value as Field};

use super::report::LayerCounts;
use super::{ImportMode, ImportOptions, ImportReport};
use crate::alf::agent::{Agent, Change};
use crate::alf::bundle::{Bundle, Kind};
use crate::alf::issue::Place;
use crate::alf::names::{
    CREDENTIALS, FILES_LAYER, IDENTITY, LAYERS, Layer, MANIFEST_LAYER, MANIFEST_MEMBER,
    OF_USER_MEMBER, PRINCIPALS, namespace_of,
};
use crate::alf::survey::{Survey, UNLISTED};
use crate::error::Result;
use crate::json::{self, Value, equal};
use crate::kept::{Document, Files, Written, clamped, joined, milliseconds, split};

/// Reason of what is taken back.
const ABSENT: &str = "alf: not in the archive";

/// Returns which layers and files an archive changes. It is written down before they are, so that a later delta has them
/// also where their import was interrupted.
pub(in super::super) fn planned_layers(
    agent: &Agent<'_>,
    bundle: &Bundle,
    survey: &Survey,
    options: &ImportOptions,
) -> Result<Vec<(Change, String)>> {
    let dry = ImportOptions { dry_run: true, ..options.clone() };
    let mut report = ImportReport::new(&agent.id, true, &Survey::default());
    import_layers(agent, bundle, survey, &dry, &mut report)
}

/// Writes the documents and files of an archive, and returns which layers and files changed.
pub(in super::super) fn import_layers(
    agent: &Agent<'_>,
    bundle: &Bundle,
    survey: &Survey,
    options: &ImportOptions,
    report: &mut ImportReport,
) -> Result<Vec<(Change, String)>> {
    let at = bundle.manifest.get("created_at").and_then(Value::as_str).and_then(milliseconds);
    let import = LayerImport { agent, options, at: clamped(at.unwrap_or_default()) };
    let mut changed = Vec::new();
    for layer in bundle.removed_layers() {
        import.take_back_layer(layer, report, &mut changed)?;
    }
    for (layer, document) in &survey.documents {
        let counts = import.document(*layer, document.clone(), bundle, report)?;
        if counts.changes() > 0 {
            changed.push((Change::Layer, layer.name.to_owned()));
        }
        report.layers.insert(layer.name, counts);
    }
    if bundle.kind == Kind::Snapshot {
        import.own_manifest(bundle, &mut changed)?;
        if options.mode == ImportMode::Mirror {
            import.take_back_absent(survey, report, &mut changed)?;
        }
    }
    if let Some(manifest) = bundle.manifest.get(MANIFEST_MEMBER) {
        import.manifest(manifest.clone(), ImportMode::Mirror, &mut changed)?;
    }
    for name in bundle.unlisted() {
        report.warn(&Place::entry(name), UNLISTED);
    }
    let counts = import.files(bundle, survey, &mut changed)?;
    if counts != LayerCounts::default() {
        report.layers.insert(FILES_LAYER, counts);
    }
    Ok(changed)
}

struct LayerImport<'a, 's> {
    agent: &'a Agent<'s>,
    options: &'a ImportOptions,
    /// The time of a document that has none of its own.
    at: EpochMs,
}

impl LayerImport<'_, '_> {
    fn document(
        &self,
        layer: Layer,
        document: Value,
        bundle: &Bundle,
        report: &mut ImportReport,
    ) -> Result<LayerCounts> {
        let mut counts = LayerCounts::default();
        let old = self.agent.documents.read(layer.name, None)?.map(|kept| kept.value);
        let is_whole = self.options.mode == ImportMode::Mirror || bundle.kind == Kind::Delta;
        if layer == IDENTITY
            && let Some(old) = &old
            && !is_whole
            && version_of(old) > version_of(&document)
        {
            report
                .warn(&Place::entry(layer.entry), "the store has a newer version of the identity");
            counts.unchanged = 1;
            return Ok(counts);
        }
        let Some((item_layer, list)) = layer.items else {
            let document = self.made(layer, layer.name, None, document);
            counts.add(&self.write(vec![document])?);
            return Ok(counts);
        };
        let (mut shell, items) = split(document, list);
        match old {
            Some(old) if is_whole => self.take_back(item_layer, list, &old, &shell, &mut counts)?,
            Some(old) => shell = merged(old, shell, list),
            None => {}
        }
        let mut all: Vec<Document> = items
            .into_iter()
            .map(|(id, item)| self.made(layer, item_layer, Some(id), item))
            .collect();
        all.push(self.made(layer, layer.name, None, shell));
        let written = self.write(all)?;
        let items = written.split_last().map_or(&[][..], |(_, items)| items);
        counts.add(items);
        // The document counts where its items are all as they were.
        if counts.changes() == 0 {
            counts.add(written.last().map_or(&[][..], std::slice::from_ref));
        }
        Ok(counts)
    }

    fn write(&self, documents: Vec<Document>) -> Result<Vec<Written>> {
        match self.options.dry_run {
            false => self.agent.documents.write(documents),
            true => documents
                .into_iter()
                .map(|document| {
                    let old =
                        self.agent.documents.read(document.layer, document.item.as_deref())?;
                    Ok(match old {
                        None => Written::Created,
                        Some(old) if equal(&old.value, &document.value) => Written::Same,
                        Some(_) => Written::Replaced,
                    })
                })
                .collect(),
        }
    }

    /// Takes back the items that a document does not list any more.
    fn take_back(
        &self,
        item_layer: &'static str,
        list: &str,
        old: &Value,
        new: &Value,
        counts: &mut LayerCounts,
    ) -> Result<()> {
        let listed = ids_of(new, list);
        for id in ids_of(old, list).into_iter().filter(|id| !listed.contains(id)) {
            counts.removed += 1;
            if !self.options.dry_run {
                self.agent.documents.retract(item_layer, Some(&id), ABSENT)?;
            }
        }
        Ok(())
    }

    /// Takes back the layers that a mirrored archive does not have.
    fn take_back_absent(
        &self,
        survey: &Survey,
        report: &mut ImportReport,
        changed: &mut Vec<(Change, String)>,
    ) -> Result<()> {
        for layer in LAYERS {
            if !survey.documents.iter().any(|(of, _)| *of == layer) {
                self.take_back_layer(layer, report, changed)?;
            }
        }
        Ok(())
    }

    /// Takes back a layer as a whole.
    fn take_back_layer(
        &self,
        layer: Layer,
        report: &mut ImportReport,
        changed: &mut Vec<(Change, String)>,
    ) -> Result<()> {
        let Some(old) = self.agent.documents.read(layer.name, None)? else { return Ok(()) };
        let mut counts = LayerCounts { removed: 1, ..LayerCounts::default() };
        if let Some((item_layer, list)) = layer.items {
            self.take_back(item_layer, list, &old.value, &Value::Null, &mut counts)?;
        }
        if !self.options.dry_run {
            self.agent.documents.retract(layer.name, None, ABSENT)?;
        }
        report.layers.insert(layer.name, counts);
        changed.push((Change::Layer, layer.name.to_owned()));
        Ok(())
    }

    /// Keeps the manifest of an archive. That of one of a single person is kept where there is none.
    fn own_manifest(&self, bundle: &Bundle, changed: &mut Vec<(Change, String)>) -> Result<()> {
        let mut manifest = bundle.manifest.clone();
        if bundle.is_of_user() {
            if self.agent.documents.read(MANIFEST_LAYER, None)?.is_some() {
                return Ok(());
            }
            if let Value::Object(members) = &mut manifest {
                members.remove(OF_USER_MEMBER);
            }
        }
        self.manifest(manifest, self.options.mode, changed)
    }

    /// Keeps what a manifest says beyond counts and times, unless the store has a newer one.
    fn manifest(
        &self,
        value: Value,
        mode: ImportMode,
        changed: &mut Vec<(Change, String)>,
    ) -> Result<()> {
        let kept = self.agent.documents.read(MANIFEST_LAYER, None)?.map(|kept| kept.value);
        let is_older = kept.as_ref().and_then(time_of) > time_of(&value);
        if mode == ImportMode::Merge && is_older {
            return Ok(());
        }
        if !kept.is_some_and(|kept| equal(&said_once(&kept), &said_once(&value))) {
            changed.push((Change::Layer, MANIFEST_LAYER.to_owned()));
        }
        let document = Document {
            layer: MANIFEST_LAYER,
            item: None,
            namespace: namespace_of(&self.agent.id, MANIFEST_LAYER),
            value,
            created_at: self.at,
            sensitivity: Sensitivity::Internal,
            fields: cold(),
        };
        self.write(vec![document]).map(drop)
    }

    fn made(
        &self,
        layer: Layer,
        kept_as: &'static str,
        item: Option<String>,
        value: Value,
    ) -> Document {
        kept_document((&self.agent.id, self.at), (layer, kept_as), item, value)
    }

    fn files(
        &self,
        bundle: &Bundle,
        survey: &Survey,
        changed: &mut Vec<(Change, String)>,
    ) -> Result<LayerCounts> {
        let mut counts = LayerCounts::default();
        let mut files: Files<'_> = self.agent.files()?;
        let names: BTreeSet<&str> = bundle.kept_files().collect();
        for name in &names {
            let Some(entry) = bundle.archive.entry(name) else { continue };
            let known = files.get(name).map(|kept| (kept.sha256.clone(), kept.size));
            let found = survey.hashes.get(*name);
            let found = found.map(|(hash, size)| (HEXLOWER.encode(hash), *size));
            if known.is_some() && known == found {
                counts.unchanged += 1;
                continue;
            }
            if !self.options.dry_run {
                files.put(name, bundle.archive.reader(entry)?)?;
            }
            changed.push((Change::File, (*name).to_owned()));
            match known {
                Some(_) => counts.replaced += 1,
                None => counts.created += 1,
            }
        }
        let is_mirror = self.options.mode == ImportMode::Mirror && bundle.kind == Kind::Snapshot;
        let removed = bundle.removed_files();
        let absent = files.list().keys().filter(|name| {
            let is_absent = !names.contains(name.as_str());
            is_absent && (is_mirror || removed.contains(name.as_str()))
        });
        for name in absent.cloned().collect::<Vec<_>>() {
            counts.removed += 1;
            files.remove(&name);
            changed.push((Change::File, name));
        }
        if !self.options.dry_run {
            files.commit(self.at, &[&self.agent.sealed()?])?;
        }
        Ok(counts)
    }
}

impl LayerCounts {
    fn add(&mut self, written: &[Written]) {
        for one in written {
            match one {
                Written::Same => self.unchanged += 1,
                Written::Created => self.created += 1,
                Written::Replaced => self.replaced += 1,
            }
        }
    }

    fn changes(self) -> u64 {
        self.created + self.replaced + self.removed
    }
}

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
        PRINCIPALS => sensitivity = Sensitivity::Pii,
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
fn said_once(manifest: &Value) -> Value {
    let mut manifest = manifest.clone();
    if let Value::Object(members) = &mut manifest {
        for name in ["created_at", "sync", "layers", "checksum", "checksum_scheme"] {
            members.remove(name);
        }
    }
    manifest
}

/// Fields of a grain that comes up when it is asked for alone.
fn cold() -> Fields {
    Fields::from([("recall_priority".to_owned(), Field::from("cold"))])
}

/// The soul of an identity is repeated where OMS 22.9 has the prompt of a system.
fn system_prompt(identity: &Value) -> Option<(String, Field)> {
    let soul = identity.get("prose")?.get("soul")?.as_str()?;
    let soul = crate::kept::grain_text(soul).into_owned();
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

fn version_of(identity: &Value) -> u64 {
    identity.get("version").and_then(Value::as_u64).unwrap_or_default()
}

/// When a document or an item was last changed, by what it says.
fn time_of(value: &Value) -> Option<EpochMs> {
    let profile = value.get("profile").unwrap_or(value);
    let said = |name: &str| profile.get(name).and_then(Value::as_str).and_then(milliseconds);
    said("updated_at").or_else(|| said("created_at"))
}

fn ids_of(shell: &Value, list: &str) -> BTreeSet<String> {
    let items = shell.get(list).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| Some(id_of(item)?.to_owned())).collect()
}

fn id_of(item: &Value) -> Option<&str> {
    item.get("id").and_then(Value::as_str)
}

/// Adds to a document the items and members of a newer one.
fn merged(old: Value, new: Value, list: &str) -> Value {
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

/// Returns a document with its items, and the ids of items that are not there any more.
pub(in super::super) fn whole_document(
    agent: &Agent<'_>,
    layer: Layer,
) -> Result<Option<(Value, Vec<String>)>> {
    let Some(kept) = agent.documents.read(layer.name, None)? else { return Ok(None) };
    let Some((item_layer, list)) = layer.items else { return Ok(Some((kept.value, Vec::new()))) };
    let mut absent = Vec::new();
    let item = |id: &str| Ok(agent.documents.read(item_layer, Some(id))?.map(|kept| kept.value));
    let whole = joined(kept.value, list, item, |id| absent.push(id.to_owned()))?;
    Ok(Some((whole, absent)))
}
