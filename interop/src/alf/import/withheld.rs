//! What of an archive was purged here: it stays out, records by their ids, and with them what an archive of before the
//! purge has of them elsewhere, which that archive itself shows.

use std::collections::{BTreeMap, BTreeSet};

use data_encoding::HEXLOWER;

use super::documents::ids_of;
use super::erased::leave_erased;
use super::people::leave_erased_people;
use super::{ImportOptions, ImportReport, purged_error};
use crate::alf::agent::Agent;
use crate::alf::bundle::Bundle;
use crate::alf::names::{ATTACHMENTS, CHANGE_OF, PRINCIPALS, tables};
use crate::alf::purge::{Changes, Sought};
use crate::alf::record::uuid_number;
use crate::alf::survey::Survey;
use crate::error::Result;
use crate::json::{self, Value};

/// Rows that are written together.
const BATCH: usize = 1_000;
const FILE: &str = "it has something of what was purged from this store: it is left out";
const PERSON: &str = "a person who was purged from this store is in it: they are left out";
const PARTITION: &str = "a record of it was purged from this store: its bytes are not kept";

/// What stays out.
#[derive(Debug, Default)]
pub(in super::super) struct Withheld {
    /// Records, by their numbers: those that were purged, and changes of them.
    pub(in super::super) records: BTreeSet<u128>,
    /// Places of partitions with such records.
    pub(in super::super) partitions: BTreeSet<usize>,
    /// Files.
    pub(in super::super) files: BTreeSet<String>,
}

/// Finds what has to stay out, and tells of files and partitions. Attachments whose files stay out are descriptions.
///
/// # Errors
/// `ERR_ERASED` for an agent that was purged as a whole, and of an import of all or nothing for a record; those of the archive and the store.
pub(in super::super) fn withhold(
    agent: &Agent<'_>,
    bundle: &Bundle,
    survey: &mut Survey,
    options: &ImportOptions,
    report: &mut ImportReport,
) -> Result<()> {
    leave_erased_people(agent, bundle, survey, options, report)?;
    if options.allow_purged {
        return Ok(());
    }
    if agent.is_all_purged()? {
        return Err(purged_error());
    }
    leave_erased(agent, survey, options, report)?;
    if !agent.has_purged()? {
        return Ok(());
    }
    let mut withheld = Withheld::default();
    let (ids, changes) = purged_ids(agent, bundle, survey)?;
    let people = purged_people(agent, survey)?;
    if options.strict && !(ids.is_empty() && people.is_empty()) {
        return Err(purged_error());
    }
    if !options.dry_run {
        remember(agent, &ids, &changes)?;
    }
    withheld.records = ids.iter().filter_map(|id| uuid_number(id)).collect();
    let sought = withheld.partitions_of(bundle, &ids)?;
    withheld.files_of(agent, bundle, survey, &sought)?;
    for place in &withheld.partitions {
        let sealed = bundle.partitions.get(*place).filter(|partition| partition.sealed);
        if let Some(partition) = sealed {
            report.withhold(&partition.file, PARTITION);
        }
    }
    for name in &withheld.files {
        report.withhold(name, FILE);
    }
    for (layer, document) in &mut survey.documents {
        match *layer {
            ATTACHMENTS => detach(document, &withheld.files),
            PRINCIPALS if drop_principals(document, |id| people.contains(id)) => {
                report.withhold(layer.entry, PERSON);
            }
            _ => {}
        }
    }
    survey.withheld = withheld;
    Ok(())
}

/// The records of an archive that were purged here, and changes of them; and of each change what it is one of.
fn purged_ids(
    agent: &Agent<'_>,
    bundle: &Bundle,
    survey: &Survey,
) -> Result<(BTreeSet<String>, BTreeMap<String, String>)> {
    let (mut ids, mut changes) = (BTreeSet::new(), Changes::default());
    let mut targets = BTreeMap::new();
    each_record(bundle, |_, id, change_of, _| {
        if agent.is_purged(&id)? {
            ids.insert(id.clone());
        }
        if let Some(of) = change_of {
            changes.add(&of, &id);
            targets.insert(id.clone(), of.clone());
            // Where the archive has what it changes, that record is looked at itself.
            let is_there = uuid_number(&of).is_some_and(|number| survey.has(number));
            if agent.is_purged(&of)? || (!is_there && agent.is_refused_change(&of)?) {
                ids.insert(id);
            }
        }
        Ok(())
    })?;
    changes.close(&mut ids);
    Ok((ids, targets))
}

/// Remembers changes of what was purged: what changes those stays out as well, whenever it comes.
fn remember(
    agent: &Agent<'_>,
    ids: &BTreeSet<String>,
    targets: &BTreeMap<String, String>,
) -> Result<()> {
    let mut rows = Vec::new();
    for (id, of) in targets {
        if ids.contains(id) && !agent.is_purged(id)? {
            rows.push(agent.refused_change(id, of)?);
        }
    }
    rows.chunks(BATCH).try_for_each(|rows| agent.rows.write(rows.to_vec()))
}

/// The principals of an archive that were purged here, by their ids as they are written.
fn purged_people(agent: &Agent<'_>, survey: &Survey) -> Result<BTreeSet<String>> {
    let mut people = BTreeSet::new();
    for (layer, document) in &survey.documents {
        let Some((_, list)) = layer.items.filter(|_| *layer == PRINCIPALS) else { continue };
        for id in ids_of(document, list) {
            if agent.is_purged(&id.to_ascii_lowercase())? {
                people.insert(id);
            }
        }
    }
    Ok(people)
}

/// Takes principals off a document, by their ids. Returns `true` if there were any.
pub(in super::super) fn drop_principals(
    document: &mut Value,
    is_dropped: impl Fn(&str) -> bool,
) -> bool {
    let list = PRINCIPALS.items.and_then(|(_, list)| document.get_mut(list)?.as_array_mut());
    let Some(list) = list else { return false };
    let before = list.len();
    list.retain(|item| !item.get("id").and_then(Value::as_str).is_some_and(&is_dropped));
    list.len() < before
}

/// Calls `each` with the place of the partition of every record, its id, what it is a change of, and itself.
fn each_record(
    bundle: &Bundle,
    mut each: impl FnMut(usize, String, Option<String>, &Value) -> Result<()>,
) -> Result<()> {
    for (place, partition) in bundle.partitions.iter().enumerate() {
        let Some(entry) = bundle.archive.entry(&partition.file) else { continue };
        for line in bundle.lines(entry)? {
            let Ok(value) = line?.value else { continue };
            let text =
                |name: &str| value.get(name).and_then(Value::as_str).map(str::to_ascii_lowercase);
            if let Some(id) = text("id") {
                each(place, id, text(CHANGE_OF), &value)?;
            }
        }
    }
    Ok(())
}

impl Withheld {
    /// Finds the partitions of these records, and returns what to look for elsewhere.
    fn partitions_of(&mut self, bundle: &Bundle, ids: &BTreeSet<String>) -> Result<Sought> {
        let mut sought = Sought::default();
        if ids.is_empty() {
            return Ok(sought);
        }
        each_record(bundle, |place, id, _, record| {
            if ids.contains(&id) {
                self.partitions.insert(place);
                sought.add_id(&id);
                sought.add(record);
            }
            Ok(())
        })?;
        Ok(sought)
    }

    /// Finds the files that have something of them, and those whose bytes were purged.
    fn files_of(
        &mut self,
        agent: &Agent<'_>,
        bundle: &Bundle,
        survey: &Survey,
        sought: &Sought,
    ) -> Result<()> {
        let files: Vec<&str> = bundle.files().collect();
        self.files = sought.copies(&files, |name| {
            let entry = bundle.archive.entry(name);
            entry.map(|entry| bundle.archive.reader(entry)).transpose()
        })?;
        for name in files {
            if let Some((sha256, _)) = survey.hashes.get(name)
                && agent.is_purged_file(&HEXLOWER.encode(sha256))?
            {
                self.files.insert(name.to_owned());
            }
        }
        Ok(())
    }
}

/// Attachments whose files stay out are descriptions.
fn detach(document: &mut Value, files: &BTreeSet<String>) {
    let list = document.get_mut("attachments").and_then(Value::as_array_mut);
    for item in list.into_iter().flatten() {
        let path = item.get("archive_path").and_then(Value::as_str);
        if path.is_some_and(|path| files.contains(path)) {
            json::set(item, "archive_path", Value::Null);
        }
    }
}

/// Forgets that what was taken on request had been purged: files of the archive, and the agent as a whole.
///
/// # Errors
/// Those of the store.
pub(in super::super) fn forgive(
    agent: &Agent<'_>,
    survey: &Survey,
    options: &ImportOptions,
) -> Result<()> {
    if !options.allow_purged || options.dry_run {
        return Ok(());
    }
    if agent.is_all_purged()? {
        agent.set_all_purged(false)?;
    }
    let mut rows = Vec::new();
    for id in purged_people(agent, survey)? {
        rows.push(agent.rows.remove(tables::PURGED, id.to_ascii_lowercase().as_str()));
    }
    for (sha256, _) in survey.hashes.values() {
        let key = HEXLOWER.encode(sha256);
        if agent.is_purged_file(&key)? {
            rows.push(agent.rows.remove(tables::PURGED_FILES, key.as_str()));
        }
    }
    match rows.is_empty() {
        true => Ok(()),
        false => agent.rows.write(rows),
    }
}
