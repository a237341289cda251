//! Documents and files of an archive into the store.

use std::collections::BTreeSet;

use data_encoding::HEXLOWER;
use grainstore::format::Sensitivity;
use grainstore::{EpochMs, ErrorKind};

use super::documents::{cold, ids_of, kept_document, merged, said_once, time_of, version_of};
use super::report::LayerCounts;
use super::{ImportMode, ImportOptions, ImportReport};
use crate::alf::agent::{Agent, Change};
use crate::alf::bundle::{Bundle, Kind};
use crate::alf::issue::Place;
use crate::alf::names::{
    FILES_LAYER, IDENTITY, LAYERS, Layer, MANIFEST_LAYER, MANIFEST_MEMBER, OF_USER_MEMBER,
    PRINCIPALS, namespace_of,
};
use crate::alf::survey::{Survey, UNLISTED};
use crate::error::Result;
use crate::json::{Value, equal};
use crate::kept::{Document, Files, Written, split};

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
    let import = LayerImport { agent, options, at: bundle.created_at() };
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
            counts.add(&self.write([document])?);
            return Ok(counts);
        };
        let (mut shell, items) = split(document, list);
        match old {
            Some(old) if is_whole => self.take_back(item_layer, list, &old, &shell, &mut counts)?,
            Some(old) => shell = merged(old, shell, list),
            None => {}
        }
        // Made one by one, while they are written.
        let items =
            items.into_iter().map(|(id, item)| self.made(layer, item_layer, Some(id), item));
        let shell = std::iter::once_with(|| self.made(layer, layer.name, None, shell));
        let written = match self.write(items.chain(shell)) {
            // The rules of the store keep out what is of people, as they do with records.
            Err(error) if layer == PRINCIPALS && error.kind() == ErrorKind::Policy => {
                report.withhold(layer.entry, &format!("{} ({})", error.message(), error.code()));
                return Ok(counts);
            }
            written => written?,
        };
        let items = written.split_last().map_or(&[][..], |(_, items)| items);
        counts.add(items);
        // The document counts where it alone has changed, or has no items.
        if counts.changes() == 0 {
            let is_told = |shell: &&Written| items.is_empty() || !matches!(shell, Written::Same);
            counts.add(written.last().filter(is_told).map_or(&[][..], std::slice::from_ref));
        }
        Ok(counts)
    }

    fn write(&self, documents: impl IntoIterator<Item = Document>) -> Result<Vec<Written>> {
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
        let is_erased = !self.options.allow_purged
            && self.agent.documents.is_erased(MANIFEST_LAYER, None, &value)?;
        if is_erased || (mode == ImportMode::Merge && is_older) {
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
        self.write([document]).map(drop)
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
        let mut is_asked = false;
        for name in names.iter().filter(|name| !survey.withheld.files.contains(**name)) {
            let Some(entry) = bundle.archive.entry(name) else { continue };
            let known = files.get(name).map(|kept| (kept.sha256.clone(), kept.size));
            let found = survey.hashes.get(*name);
            let found = found.map(|(hash, size)| (HEXLOWER.encode(hash), *size));
            if known.is_some() && known == found {
                counts.unchanged += 1;
                continue;
            }
            if !self.options.dry_run {
                // Asked before the first byte is written: what may not be listed would lie there unnamed.
                if !std::mem::replace(&mut is_asked, true)
                    && let Some(refused) = files.refusal()?
                {
                    return Err(self.agent.documents.refused(refused).in_entry(FILES_LAYER));
                }
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
