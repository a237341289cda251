//! The records of an agent by time, as the partitions of an archive.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use data_encoding::HEXLOWER;
use grainstore::{EpochMs, ErrorKind};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::entry::{Content, Part, Spool};
use super::{NewEntry, PartitionReport};
use crate::alf::agent::{Agent, RecordRow};
use crate::alf::import::{RecordGrain, SealedRow, half_of};
use crate::alf::names::{PARTITIONS_FOLDER, tables};
use crate::alf::partition::{Granularity, Span};
use crate::alf::record::{uuid_number, uuid_text};
use crate::error::{Error, Result};
use crate::json::{self, Value};
use crate::kept::Files;
use crate::monitor::Monitor;

/// Records between two reports of the progress.
const STEP: u64 = 500;

/// The partitions of an archive.
#[derive(Debug)]
pub(super) struct Partitions<'s> {
    list: Vec<Partition<'s>>,
    pub(super) omitted: u64,
    pub(super) has_embeddings: bool,
    granularity: Granularity,
}

/// A partition of an archive.
#[derive(Debug)]
pub(super) struct Partition<'s> {
    pub(super) label: String,
    pub(super) file: String,
    span: Span,
    records: u64,
    sealed: bool,
    /// True if it is not the bytes of an earlier archive, of which there is one.
    replaced: bool,
    /// True if its bytes are kept.
    kept: bool,
    is_whole: bool,
    /// What is known of it if it is kept, but for its bytes.
    pub(super) row: SealedRow,
    sha256: [u8; 32],
    entry: Option<NewEntry<'s>>,
}

/// When a record was created, and which it is.
type Key = (i64, RecordGrain);

impl<'s> Partitions<'s> {
    /// Writes the records of an agent, all or those with these numbers, into partitions, but for those whose bytes are
    /// kept.
    pub(super) fn of(
        agent: &Agent<'s>,
        (sealed, granularity): (&Files<'s>, Granularity),
        only: Option<&BTreeSet<u128>>,
        monitor: &Monitor<'_>,
    ) -> Result<Self> {
        let now = agent.session.now();
        let running = Span::of(now, granularity);
        let mut keys: BTreeMap<Span, Vec<Key>> = BTreeMap::new();
        let (mut has_embeddings, mut total) = (false, 0);
        agent.rows.each(tables::RECORDS, |id, row: RecordRow| {
            // What is dated after now is in the partition of now.
            let span = Span::of(EpochMs::new(row.created_ms), granularity).min(running);
            let number = uuid_number(id);
            if only.is_some_and(|only| number.is_none_or(|number| !only.contains(&number))) {
                return Ok(());
            }
            has_embeddings |= row.has_embeddings;
            total += 1;
            if let Some(number) = number {
                let record = (number, half_of(&row.address));
                keys.entry(span).or_default().push((row.created_ms, record));
            }
            Ok(())
        })?;
        let mut made = Self { list: Vec::new(), omitted: 0, has_embeddings, granularity };
        let mut spool = Spool::new()?;
        let sealed = Some(sealed).filter(|_| only.is_none());
        let mut progress = Progress { monitor, done: 0, total };
        for (span, mut keys) in keys {
            keys.sort_unstable();
            let partition =
                made.partition(agent, sealed, (span, &keys, now), &mut spool, &mut progress)?;
            made.list.extend(partition);
        }
        spool.flush()?;
        Ok(made)
    }

    fn partition(
        &mut self,
        agent: &Agent<'s>,
        sealed: Option<&Files<'s>>,
        (span, keys, now): (Span, &[Key], EpochMs),
        spool: &mut Spool,
        progress: &mut Progress<'_>,
    ) -> Result<Option<Partition<'s>>> {
        let (label, is_over) = (span.label(), span.is_over(now));
        let file = format!("{PARTITIONS_FOLDER}{label}.jsonl");
        let mut records: Vec<RecordGrain> = keys.iter().map(|(_, record)| *record).collect();
        let row = SealedRow::new(String::new(), &mut records);
        let known: Option<SealedRow> = match is_over && sealed.is_some() {
            true => agent.rows.get(tables::SEALED, &label)?,
            false => None,
        };
        let is_same = known.as_ref().is_some_and(|known| known.has_records_of(&row));
        if is_same
            && let Some(sealed) = sealed
            && let Some(entry) = NewEntry::file(&file, sealed, &label)?
        {
            progress.step(keys.len() as u64)?;
            return Ok(Some(Partition {
                label,
                file,
                span,
                records: keys.len() as u64,
                sealed: true,
                replaced: false,
                kept: true,
                is_whole: true,
                row,
                sha256: entry.sha256,
                entry: Some(entry),
            }));
        }
        let lines = self.write_lines(agent, keys, spool, progress)?;
        if lines.count == 0 {
            return Ok(None);
        }
        let is_other = known.is_some_and(|known| known.file != HEXLOWER.encode(&lines.sha256));
        let (sha256, size) = (lines.sha256, lines.size);
        let content = Content::Spooled(lines.part);
        Ok(Some(Partition {
            label,
            span,
            records: lines.count,
            sealed: is_over,
            replaced: is_other,
            kept: false,
            is_whole: lines.count == keys.len() as u64,
            row,
            sha256,
            entry: Some(NewEntry { name: file.clone(), content, sha256, size }),
            file,
        }))
    }

    fn write_lines(
        &mut self,
        agent: &Agent<'s>,
        keys: &[Key],
        spool: &mut Spool,
        progress: &mut Progress<'_>,
    ) -> Result<Lines> {
        let (mut hasher, mut size, mut count) = (Sha256::new(), 0_u64, 0_u64);
        for (_, (number, _)) in keys {
            progress.step(1)?;
            let row = agent.row(&uuid_text(*number))?;
            let record = row.map(|row| agent.record(&row)).transpose();
            let record = match record {
                Ok(Some(record)) => record,
                Ok(None) => {
                    self.omitted += 1;
                    continue;
                }
                Err(error) if is_withheld(&error) => {
                    self.omitted += 1;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let mut line = json::line(&record);
            line.push('\n');
            hasher.update(&line);
            size = size.saturating_add(line.len() as u64);
            count += 1;
            spool.write_all(line.as_bytes())?;
        }
        Ok(Lines { part: spool.part(), sha256: hasher.finalize().into(), size, count })
    }

    pub(super) fn take_entries(&mut self) -> Vec<NewEntry<'s>> {
        self.list.iter_mut().filter_map(|partition| partition.entry.take()).collect()
    }

    pub(super) fn records(&self) -> u64 {
        self.list.iter().map(|partition| partition.records).fold(0, u64::saturating_add)
    }

    /// The partitions as the manifest has them.
    pub(super) fn described(&self) -> Vec<Value> {
        let described = self.list.iter().map(|partition| {
            let last = partition.sealed.then(|| partition.span.last_day().to_string());
            json!({
                "file": partition.file,
                "from": partition.span.first_day().to_string(),
                "to": last,
                "record_count": partition.records,
                "sealed": partition.sealed,
                "checksum": format!("sha256:{}", HEXLOWER.encode(&partition.sha256)),
            })
        });
        described.collect()
    }

    /// `memory/index.json`.
    pub(super) fn index(&self) -> String {
        json::line(&json!({ "partitions": self.described() }))
    }

    pub(super) fn replaced(&self) -> Vec<String> {
        let replaced = self.list.iter().filter(|partition| partition.replaced);
        replaced.map(|partition| partition.label.clone()).collect()
    }

    /// Sealed partitions with all their records that are not kept.
    pub(super) fn new_sealed(&self) -> impl Iterator<Item = &Partition<'s>> {
        self.list
            .iter()
            .filter(|partition| partition.sealed && partition.is_whole && !partition.kept)
    }

    /// Returns which of these labels no bytes are to be kept of any more: records of theirs were erased.
    pub(super) fn obsolete<'l>(&self, kept: impl Iterator<Item = &'l String>) -> Vec<String> {
        let is_same_length = |label: &str| {
            let is_quarter = self.granularity == Granularity::Quarter;
            label.contains('Q') == is_quarter
        };
        let whole = self.list.iter().filter(|partition| partition.is_whole);
        let written: BTreeSet<&str> = whole.map(|partition| partition.label.as_str()).collect();
        let kept = kept.filter(|label| is_same_length(label) && !written.contains(label.as_str()));
        kept.cloned().collect()
    }

    pub(super) fn report(&self) -> Vec<PartitionReport> {
        let report = self.list.iter().map(|partition| PartitionReport {
            file: partition.file.clone(),
            records: partition.records,
            sealed: partition.sealed,
            sha256: HEXLOWER.encode(&partition.sha256),
        });
        report.collect()
    }
}

struct Lines {
    part: Part,
    sha256: [u8; 32],
    size: u64,
    count: u64,
}

struct Progress<'m> {
    monitor: &'m Monitor<'m>,
    done: u64,
    total: u64,
}

impl Progress<'_> {
    fn step(&mut self, records: u64) -> Result<()> {
        let before = self.done / STEP;
        self.done = self.done.saturating_add(records);
        match self.done / STEP == before {
            true => Ok(()),
            false => self.monitor.step(self.done, self.total),
        }
    }
}

/// Returns `true` for a record that was erased, or that the session may not read.
fn is_withheld(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Erased | ErrorKind::NotFound | ErrorKind::Withdrawn | ErrorKind::Policy
    )
}
