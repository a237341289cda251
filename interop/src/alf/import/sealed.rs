//! Sealed partitions of an archive: their bytes are kept, and are the same in every later export (ALF 4.1.1).

use data_encoding::HEXLOWER;
use grainstore::Owner;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Importer;
use crate::alf::agent::Agent;
use crate::alf::bundle::{Bundle, Partition};
use crate::alf::names::tables;
use crate::alf::partition::{Granularity, Span, labels_of};
use crate::alf::record::key_of;
use crate::alf::survey::Survey;
use crate::error::Result;
use crate::kept::{clamped, milliseconds};

/// What is known of a sealed partition that was read or written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct SealedRow {
    /// The SHA-256 of the file.
    #[serde(rename = "f")]
    pub(in super::super) file: String,
    /// The hash of the ids of its records.
    #[serde(rename = "i")]
    pub(in super::super) ids: String,
}

/// Returns the hash of ids, which it sorts.
pub(in super::super) fn hash_of_ids(ids: &mut [u128]) -> String {
    ids.sort_unstable();
    let mut hasher = Sha256::new();
    ids.iter().for_each(|id| hasher.update(id.to_be_bytes()));
    HEXLOWER.encode(&hasher.finalize())
}

/// Keeps the bytes of the sealed partitions of which the store has every record as it was read.
pub(super) fn keep_sealed(
    agent: &Agent<'_>,
    bundle: &Bundle,
    importer: &Importer<'_, '_>,
    survey: &Survey,
) -> Result<()> {
    let mut sealed = agent.sealed()?;
    let mut rows = Vec::new();
    for (place, partition) in bundle.partitions.iter().enumerate() {
        let Some(label) = label_of(partition) else { continue };
        let Some(entry) = bundle.archive.entry(&partition.file) else { continue };
        let has_bad_lines = survey.bad_lines.range((place, 0)..=(place, u64::MAX)).next().is_some();
        let has_purged = survey.withheld.partitions.contains(&place);
        let is_other = importer.touched.contains(&label) || has_bad_lines || has_purged;
        // An import that was interrupted may have kept the bytes without the row that tells of them.
        let is_kept = sealed.get(&label).is_some() && has_row(agent, &label)?;
        if is_kept || is_other {
            continue;
        }
        let Some(ids) = ids_of(bundle, partition, &label)? else { continue };
        sealed.put(&label, bundle.archive.reader(entry)?)?;
        if let Some(kept) = sealed.get(&label) {
            let row = SealedRow { file: kept.sha256.clone(), ids };
            rows.push(agent.rows.put(tables::SEALED, label.as_str(), &row, Owner::Store)?);
        }
    }
    sealed.commit(clamped(agent.session.now()), &[&agent.files()?])?;
    match rows.is_empty() {
        true => Ok(()),
        false => agent.rows.write(rows),
    }
}

fn has_row(agent: &Agent<'_>, label: &str) -> Result<bool> {
    let row: Option<SealedRow> = agent.rows.get(tables::SEALED, label)?;
    Ok(row.is_some())
}

/// The label of a sealed partition, if its time is one that is written too.
fn label_of(partition: &Partition) -> Option<String> {
    let from = partition.from.as_deref().filter(|_| partition.sealed)?;
    let first = milliseconds(&format!("{from}T00:00:00Z"))?;
    let spans = [Granularity::Quarter, Granularity::Month].map(|length| Span::of(first, length));
    let span = spans.into_iter().find(|span| {
        let days = [span.first_day(), span.last_day()].map(|day| day.to_string());
        days == [from, partition.to.as_deref().unwrap_or_default()]
    });
    span.map(Span::label)
}

/// The hash of the ids of a partition; `None` if a record is not of its time, or there twice.
fn ids_of(bundle: &Bundle, partition: &Partition, label: &str) -> Result<Option<String>> {
    let Some(entry) = bundle.archive.entry(&partition.file) else { return Ok(None) };
    let mut ids = Vec::new();
    for line in bundle.lines(entry)? {
        let Some((number, created_ms)) = line?.value.ok().as_ref().and_then(key_of) else {
            return Ok(None);
        };
        let labels = labels_of(created_ms);
        if !labels.iter().any(|one| one == label) {
            return Ok(None);
        }
        ids.push(number);
    }
    let count = ids.len();
    let hash = hash_of_ids(&mut ids);
    ids.dedup();
    Ok((ids.len() == count).then_some(hash))
}
