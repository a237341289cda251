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
use crate::alf::record::{key_of, uuid_text};
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
    /// The hash of its records with their grains: one that was erased, and came again with other words, is in another.
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    pub(in super::super) grains: Option<String>,
}

/// A record in a partition: its number, and half of the address of its grain, which tells grains apart.
pub(in super::super) type RecordGrain = (u128, u128);

impl SealedRow {
    /// The row of a file with these records, which are sorted.
    pub(in super::super) fn new(file: String, records: &mut [RecordGrain]) -> Self {
        records.sort_unstable();
        let (mut ids, mut grains) = (Sha256::new(), Sha256::new());
        for (id, grain) in records {
            ids.update(id.to_be_bytes());
            grains.update(id.to_be_bytes());
            grains.update(grain.to_be_bytes());
        }
        let [ids, grains] = [ids, grains].map(|hash| HEXLOWER.encode(&hash.finalize()));
        Self { file, ids, grains: Some(grains) }
    }

    /// The row of a file with records of these numbers, in the grains that they are in.
    ///
    /// # Errors
    /// Those of [`Session::row`](grainstore::Session::row).
    pub(in super::super) fn of(agent: &Agent<'_>, file: String, ids: &[u128]) -> Result<Self> {
        let mut records = Vec::with_capacity(ids.len());
        for id in ids {
            let row = agent.row(&uuid_text(*id))?;
            records.push((*id, row.map_or(0, |row| half_of(&row.address))));
        }
        Ok(Self::new(file, &mut records))
    }

    /// Returns `true` if it is of the same records, in the same grains.
    pub(in super::super) fn has_records_of(&self, other: &Self) -> bool {
        // One that was written before grains were noted tells ids alone.
        let has_grains = self.grains.is_some() && other.grains.is_some();
        self.ids == other.ids && (!has_grains || self.grains == other.grains)
    }
}

/// Half of an address in hex, as a number.
pub(in super::super) fn half_of(address: &str) -> u128 {
    let half = address.get(..32).map(|digits| u128::from_str_radix(digits, 16));
    half.and_then(std::result::Result::ok).unwrap_or_default()
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
        if is_other || (sealed.get(&label).is_some() && is_known(agent, &label)?) {
            continue;
        }
        let Some(ids) = ids_of(bundle, partition, &label)? else { continue };
        sealed.put(&label, bundle.archive.reader(entry)?)?;
        if let Some(kept) = sealed.get(&label) {
            let row = SealedRow::of(agent, kept.sha256.clone(), &ids)?;
            rows.push(agent.rows.put(tables::SEALED, label.as_str(), &row, Owner::Store)?);
        }
    }
    sealed.commit(clamped(agent.session.now()), &[&agent.files()?])?;
    match rows.is_empty() {
        true => Ok(()),
        false => agent.rows.write(rows),
    }
}

/// Returns `true` if a row tells of the bytes of a partition: an import that was cut off has left bytes without one.
fn is_known(agent: &Agent<'_>, label: &str) -> Result<bool> {
    Ok(agent.rows.get::<SealedRow>(tables::SEALED, label)?.is_some())
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

/// The numbers of the records of a partition; `None` if a record is not of its time, or there twice.
fn ids_of(bundle: &Bundle, partition: &Partition, label: &str) -> Result<Option<Vec<u128>>> {
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
    ids.sort_unstable();
    ids.dedup();
    Ok((ids.len() == count).then_some(ids))
}
