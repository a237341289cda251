//! The log of an agent: what became of which record, layer and file, by sequence number.
//!
//! An entry of a record names the grain that it is in since. Entries belong to nobody, so that the log tells of every
//! grain of a record, also of those that no session is shown.

use std::collections::BTreeSet;

use grainstore::{ContentAddress, Owner, RowChange};
use serde::{Deserialize, Serialize};

use super::agent::{Agent, Change};
use super::names::tables;
use crate::error::Result;

/// Bits of a key of the log within one sequence number.
const PART_BITS: u32 = 20;
/// Parts of a sequence number at most.
pub(super) const MAX_PARTS: u64 = 1 << PART_BITS;
/// The highest sequence number that is taken from elsewhere: the store's own, which go on from it, have as much room
/// again.
pub(super) const MAX_SEQUENCE: u64 = (1 << 43) - 1;
/// Entries of a part, and bytes of their names with escapes: a row has 1 MiB.
const PART_ENTRIES: usize = 1_000;
const PART_BYTES: usize = 768 << 10;
/// Bytes of an entry beside its name.
const ENTRY_BYTES: usize = 128;
/// The number that is the last sequence number.
const HEAD: &str = "sequence";

/// An entry of the log: what became of a record, a layer or a file, by its id or name; and of a record the address of its
/// new grain, if it has one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LogEntry(
    pub(super) Change,
    pub(super) String,
    #[serde(default, skip_serializing_if = "Option::is_none")] pub(super) Option<String>,
);

impl LogEntry {
    /// An entry without a new grain.
    pub(super) fn plain(change: Change, name: &str) -> Self {
        Self(change, name.to_owned(), None)
    }

    /// The entry of a record that is in another grain since.
    pub(super) fn stored(change: Change, id: &str, address: &ContentAddress) -> Self {
        Self(change, id.to_owned(), Some(address.to_string()))
    }
}

/// Entries in parts that a row has room for.
pub(super) fn in_parts(entries: &[LogEntry]) -> Vec<&[LogEntry]> {
    let (mut parts, mut rest, mut bytes, mut count) = (Vec::new(), entries, 0_usize, 0_usize);
    for LogEntry(_, name, _) in entries {
        // Each byte of a name may be escaped.
        let more = name.len().saturating_mul(6).saturating_add(ENTRY_BYTES);
        if count > 0 && (count == PART_ENTRIES || bytes.saturating_add(more) > PART_BYTES) {
            let (part, behind) = rest.split_at_checked(count).unwrap_or((rest, &[]));
            parts.push(part);
            (rest, bytes, count) = (behind, 0, 0);
        }
        (bytes, count) = (bytes.saturating_add(more), count + 1);
    }
    if !rest.is_empty() {
        parts.push(rest);
    }
    parts
}

impl Agent<'_> {
    /// The last sequence number, 0 for an agent of which nothing was written.
    pub(super) fn sequence(&self) -> Result<u64> {
        Ok(self.rows.get(tables::NUMBERS, HEAD)?.unwrap_or_default())
    }

    /// The changes that write entries of the log, as a part of those of a sequence number.
    pub(super) fn log_changes(
        &self,
        (sequence, part): (u64, u64),
        entries: &[LogEntry],
    ) -> Result<[RowChange; 2]> {
        let key = sequence << PART_BITS | part;
        let head = sequence.max(self.sequence()?);
        Ok([
            self.rows.put(tables::LOG, key, &entries, Owner::Store)?,
            self.rows.put(tables::NUMBERS, HEAD, &head, Owner::Store)?,
        ])
    }

    /// The change that sets the last sequence number.
    pub(super) fn head_change(&self, sequence: u64) -> Result<RowChange> {
        self.rows.put(tables::NUMBERS, HEAD, &sequence, Owner::Store)
    }

    /// Calls `each` with the entries of the log after a sequence number, in order.
    pub(super) fn changes_since(
        &self,
        sequence: u64,
        mut each: impl FnMut(Change, String),
    ) -> Result<()> {
        let from = sequence.saturating_add(1) << PART_BITS;
        self.rows.each_number(tables::LOG, from, |_, entries: Vec<LogEntry>| {
            entries.into_iter().for_each(|LogEntry(change, name, _)| each(change, name));
            Ok(())
        })
    }

    /// Calls `each` with every grain that a record was stored in, oldest first, with the id of the record.
    pub(super) fn each_stored(
        &self,
        mut each: impl FnMut(&str, ContentAddress) -> Result<()>,
    ) -> Result<()> {
        self.rows.each_number(tables::LOG, 0, |_, entries: Vec<LogEntry>| {
            for LogEntry(_, id, address) in entries {
                if let Some(address) = address {
                    each(&id, address.parse()?)?;
                }
            }
            Ok(())
        })
    }

    /// Takes the addresses of grains that are gone, and of all grains of some records, out of the log, and leaves what became
    /// of their records.
    pub(super) fn forget_stored(
        &self,
        is_whole: impl Fn(&str) -> bool,
        gone: &BTreeSet<ContentAddress>,
    ) -> Result<()> {
        let mut keys = Vec::new();
        let is_gone = |LogEntry(_, id, address): &LogEntry| {
            let address = address.as_ref().and_then(|address| address.parse().ok());
            address.is_some_and(|address| is_whole(id) || gone.contains(&address))
        };
        self.rows.each_number(tables::LOG, 0, |key, entries: Vec<LogEntry>| {
            if entries.iter().any(is_gone) {
                keys.push(key);
            }
            Ok(())
        })?;
        for key in keys {
            let found: Option<Vec<LogEntry>> = self.rows.get_number(tables::LOG, key)?;
            let mut entries = found.unwrap_or_default();
            for entry in entries.iter_mut().filter(|entry| is_gone(entry)) {
                entry.2 = None;
            }
            self.rows.write(vec![self.rows.put(tables::LOG, key, &entries, Owner::Store)?])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_all_entries_in_order() {
        let entry = |length: usize| LogEntry::plain(Change::File, &"n".repeat(length));
        for lengths in
            [vec![], vec![1 << 20], vec![10; 2_500], vec![100_000, 1, 100_000, 50_000, 2]]
        {
            let entries: Vec<_> = lengths.iter().copied().map(entry).collect();
            let parts = in_parts(&entries);
            assert_eq!(parts.concat(), entries);
            assert!(parts.iter().all(|part| !part.is_empty() && part.len() <= PART_ENTRIES));
        }
        assert_eq!(in_parts(&[entry(100_000), entry(100_000)]).len(), 2);
    }

    #[test]
    fn entries_without_a_grain_are_as_they_always_were() {
        let plain = LogEntry::plain(Change::Layer, "identity");
        assert_eq!(serde_json::to_string(&plain).unwrap(), r#"["l","identity"]"#);
        assert_eq!(serde_json::from_str::<LogEntry>(r#"["l","identity"]"#).unwrap(), plain);
        let stored = LogEntry::stored(Change::Created, "an-id", &ContentAddress::of(b""));
        let text = serde_json::to_string(&stored).unwrap();
        assert!(text.starts_with(r#"["c","an-id","e3b0c442"#), "{text}");
        assert_eq!(serde_json::from_str::<LogEntry>(&text).unwrap(), stored);
    }
}
