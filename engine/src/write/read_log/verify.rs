//! Verification of the read log: one chain, signed, and consistent with the audit log.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::segment::{self, FileHeader, GroupIter, HEADER_BYTES};
use super::{group, head};
use crate::base::error::Result;
use crate::disk::layout::AuditHead;
use crate::state::audit::{AuditHashChain, ReadLogSummary};

/// A callback for problems: the entry concerned, or `None` for the log as a whole, and a description.
pub(crate) type ProblemSink<'t> = &'t mut dyn FnMut(Option<u64>, String);

/// The result of a verification.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ReadLogCheck {
    pub(crate) entries: u64,
    /// Number of entries that could not be written to disk.
    pub(crate) lost: u64,
}

/// The state of a verification.
struct ReadLogVerifier<'e> {
    store: [u8; 16],
    /// The hashes that the log must have after given numbers of entries, each with its source.
    noted: BTreeMap<u64, Vec<([u8; 32], &'static str)>>,
    /// The end of the log as far as it was read; `None` before its first file.
    end: Option<AuditHead>,
    /// The first entry present.
    first: u64,
    lost: u64,
    told: ProblemSink<'e>,
}

const AUDIT_LOG: &str = "the audit log";
const SIGNED: &str = "its signed head";

/// Verifies the log in a directory against its signed head and the states recorded in the audit log.
///
/// # Errors
/// `ERR_IO`. Damage is reported to `told`.
pub(crate) fn verify(
    dir: &Path,
    (store, chain): ([u8; 16], &AuditHashChain),
    notes: &[ReadLogSummary],
    told: ProblemSink<'_>,
) -> Result<ReadLogCheck> {
    let mut numbers = segment::file_numbers(dir)?;
    // A crash or a full disk can leave a file without its header. It has no group, and the next writer
    // removes it. Missing entries are detected by the signed head.
    if let Some(last) = numbers.last()
        && fs::metadata(segment::path_of(dir, *last))?.len() < group::as_u64(HEADER_BYTES)
    {
        numbers.pop();
    }
    let latest = notes.iter().max_by_key(|note| note.entries);
    let mut noted: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for note in notes {
        noted.entry(note.entries).or_default().push((note.head, AUDIT_LOG));
    }
    match head::read(dir, &store, chain) {
        Ok(Some(head)) => noted.entry(head.count).or_default().push((head.hash, SIGNED)),
        // It is signed before there is a file, and before the audit log is told of it.
        Ok(None) if latest.is_some() || !numbers.is_empty() => {
            told(None, "its signed head is missing".to_owned());
        }
        Ok(None) => {}
        Err(error) if error.is_integrity() => told(None, error.to_string()),
        Err(error) => return Err(error),
    }
    let Some(first) = numbers.first() else {
        if let Some(most) = noted.keys().next_back().filter(|most| **most > 0) {
            told(None, format!("it is missing; it had {most} entries"));
        }
        return Ok(ReadLogCheck::default());
    };
    let mut examined = ReadLogVerifier { store, noted, end: None, first: 0, lost: 0, told };
    if *first == 1 {
        examined.end = Some(segment::genesis(&store));
    }
    for (at, number) in numbers.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| numbers.get(at));
        if before.is_some_and(|before| before.saturating_add(1) != *number) {
            let detail =
                format!("files between {:08}.log and {number:08}.log are missing", number - 1);
            (examined.told)(None, detail);
        }
        examined.file(dir, *number)?;
    }
    Ok(examined.finish(latest))
}

impl ReadLogVerifier<'_> {
    fn file(&mut self, dir: &Path, number: u32) -> Result<()> {
        let read = segment::read_file(dir, number).and_then(|bytes| {
            let start = FileHeader::decode(&bytes, &self.store, number)?;
            Ok((bytes, start))
        });
        let (bytes, start) = match read {
            Ok(read) => read,
            Err(error) if error.is_integrity() => {
                (self.told)(None, format!("{number:08}.log: {error}"));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        match &self.end {
            Some(end) if *end != start.at => {
                let (end, next) = (end.count, start.at.count);
                let detail = format!(
                    "the log breaks off behind entry {end}, and {number:08}.log goes on with {next}"
                );
                (self.told)(Some(end), detail);
            }
            Some(_) => {}
            None => self.first = start.at.count,
        }
        self.end = Some(start.at);
        self.hold(&start.at);
        let mut frames = GroupIter::of(&bytes, &start);
        while let Some((first, body)) = frames.next() {
            match group::decode(body, first) {
                Ok(group) => self.lost = self.lost.saturating_add(group.lost),
                Err(error) => (self.told)(Some(first), error.to_string()),
            }
            self.end = Some(frames.end);
            self.hold(&frames.end);
        }
        // A crash may leave a partial group after what was signed; the next writer cuts it off.
        let signed = self.noted.keys().next_back().copied().unwrap_or_default();
        if !frames.is_at_end() && signed > frames.end.count {
            let detail = format!("{number:08}.log is damaged behind this entry");
            (self.told)(Some(frames.end.count), detail);
        }
        Ok(())
    }

    /// Compares the state of the log with the recorded ones.
    fn hold(&mut self, at: &AuditHead) {
        for (hash, by) in self.noted.remove(&at.count).unwrap_or_default() {
            if hash != at.hash {
                let detail = format!("what is before it is not what {by} tells of");
                (self.told)(Some(at.count), detail);
            }
        }
    }

    fn finish(mut self, latest: Option<&ReadLogSummary>) -> ReadLogCheck {
        let end = self.end.map_or(0, |end| end.count);
        let first = self.first;
        for (count, by) in std::mem::take(&mut self.noted) {
            let Some((_, by)) = by.first().filter(|_| count >= first) else { continue };
            let detail = match count > end {
                true => format!("the log ends here; {by} tells of {count} entries"),
                false => format!("no group ends with entry {count}, of which {by} tells"),
            };
            (self.told)(Some(count.min(end)), detail);
        }
        let kept = latest.map_or(0, |note| note.first);
        if first > kept {
            let detail = format!("entries {kept} to {} before it are missing", first - 1);
            (self.told)(Some(first), detail);
        }
        ReadLogCheck { entries: end.saturating_sub(first), lost: self.lost }
    }
}
