//! What a migration did, for people and programs: what became what, what was left out and why.

use std::collections::BTreeMap;

use serde::Serialize;

use super::record::LeftOut;

/// Records that are listed one by one in a [`MigrateReport`]; the others are counted.
pub const MAX_LISTED: usize = 1000;

/// Characters of a text of a report: an id or a name of a source may be of any length.
const MAX_TEXT_CHARS: usize = 300;

/// What [`run`](super::run) did, or in a dry run would do. Serialized, it is the answer of the command line and of the rpc.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct MigrateReport {
    /// The name of the format.
    pub format: &'static str,
    /// `true` if nothing was written.
    pub dry_run: bool,
    /// Records that were read, with those that were left out.
    pub records: u64,
    /// Grains that came into the store. A record with a history has several.
    pub added: u64,
    /// Records that take the place of what an earlier migration wrote, since they changed in their source.
    pub changed: u64,
    /// Records that were in the store already.
    pub unchanged: u64,
    /// Grains that were ended, since their source had deleted them, or no longer held them for so.
    pub ended: u64,
    /// What became what: of the records that were added or changed.
    pub became: Vec<Became>,
    /// Number of records that were left out.
    pub left_out: u64,
    /// The first [`MAX_LISTED`] of them.
    pub left_out_first: Vec<LeftOutRecord>,
    /// Why they were left out: how many for each reason.
    pub left_out_why: BTreeMap<String, u64>,
    /// What a person should know of the records that were taken; [`MAX_LISTED`] notes at most.
    pub notes: Vec<String>,
}

/// A kind of record, and the type of grain that it became: part of a [`MigrateReport`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Became {
    /// The kind, in words of its source.
    pub kind: String,
    /// The type of grain.
    pub grain_type: String,
    /// Records of this kind.
    pub records: u64,
}

/// A record that was left out: part of a [`MigrateReport`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LeftOutRecord {
    /// Where it is: the entry, the line, the name.
    pub place: String,
    /// Why it was left out.
    pub why: String,
    /// The code of what is wrong with it; none if it is left out because of what it is.
    pub code: Option<&'static str>,
}

impl MigrateReport {
    /// Counts a record that became a grain of this type.
    pub(super) fn count(&mut self, kind: &str, grain_type: &str) {
        let is_it = |found: &&mut Became| found.kind == kind && found.grain_type == grain_type;
        match self.became.iter_mut().find(is_it) {
            Some(found) => found.records = found.records.saturating_add(1),
            None => {
                let (kind, grain_type) = (kind.to_owned(), grain_type.to_owned());
                self.became.push(Became { kind, grain_type, records: 1 });
            }
        }
    }

    pub(super) fn leave_out(&mut self, left: LeftOut) {
        let LeftOut { place, why, error } = left;
        let (place, why) = (short(place), short(why));
        let code = error.map(|error| error.code());
        self.left_out = self.left_out.saturating_add(1);
        // Reasons that name something of a record differ from record to record.
        if self.left_out_why.len() < MAX_LISTED || self.left_out_why.contains_key(&why) {
            let count = self.left_out_why.entry(why.clone()).or_default();
            *count = count.saturating_add(1);
        }
        if self.left_out_first.len() < MAX_LISTED {
            self.left_out_first.push(LeftOutRecord { place, why, code });
        }
    }

    pub(super) fn note(&mut self, note: String) {
        let note = short(note);
        if self.notes.len() < MAX_LISTED && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// The beginning of a text.
fn short(text: String) -> String {
    match text.char_indices().nth(MAX_TEXT_CHARS) {
        Some((end, _)) => text.get(..end).map(|start| format!("{start}...")).unwrap_or_default(),
        None => text,
    }
}
