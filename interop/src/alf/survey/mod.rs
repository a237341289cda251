//! The first pass over an archive: everything in it is read and checked before anything is written.
//!
//! `entries`: bytes against their checksums. `layers`: the documents. `lines`: the records, one at a time. `links`:
//! what points nowhere. Of a record its id stays in memory, and what it points at.

mod credentials;
mod entries;
mod layers;
mod lines;
mod links;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::bundle::{Bundle, Kind};
use super::import::Withheld;
use super::issue::{Issues, Place, Severity};
use super::log::MAX_SEQUENCE;
use super::names::Layer;
use crate::error::{Error, Result};
use crate::json::Value;
use crate::monitor::Monitor;

pub(crate) use credentials::is_secret_name;
pub(super) use credentials::plain_part;
pub(super) use entries::checksum;
pub(super) use layers::{UNLISTED, raw_runtime};
pub(super) use lines::{LineCheck, filled};

/// What the first pass found.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub(super) issues: Issues,
    /// The first of what makes the whole archive unusable.
    pub(super) broken: Option<Error>,
    /// The documents of the layers.
    pub(super) documents: Vec<(Layer, Value)>,
    /// The SHA-256 and the length of each entry but the manifest.
    pub(super) hashes: BTreeMap<String, ([u8; 32], u64)>,
    /// Lines of records that cannot be taken: place of the partition, number of the line.
    pub(super) bad_lines: BTreeSet<(usize, u64)>,
    /// The first of them, for an import that takes all or nothing.
    pub(super) first_bad_line: Option<Error>,
    /// Lines of records that carry a consent: they are taken first.
    pub(super) consents: BTreeSet<(usize, u64)>,
    /// Lines of each partition, bad ones too.
    pub(super) lines: Vec<u64>,
    /// Ids of the records, in order once all are read.
    pub(super) ids: Vec<u128>,
    /// Ids that two records have.
    pub(super) twice: BTreeSet<u128>,
    /// What of it was purged from the store.
    pub(super) withheld: Withheld,
    links: Vec<links::Link>,
    pub(super) artifacts: Artifacts,
    /// Capabilities that need something of the host.
    pub(super) host_dependent: Vec<String>,
}

/// Attachments of an archive: those that are in it, and those of which it has the description alone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Artifacts {
    /// Number of those that are in the archive.
    pub included: u64,
    /// Their bytes.
    pub included_bytes: u64,
    /// Names of those that are not in it, with their bytes: the first thousand.
    pub referenced: Vec<(String, u64)>,
    /// Number of those.
    pub referenced_count: u64,
    /// Their bytes.
    pub referenced_bytes: u64,
}

impl Survey {
    /// Reads and checks an archive. `lenient` fills in what records lack.
    ///
    /// # Errors
    /// `ERR_TIMEOUT` if it is cancelled, `ERR_IO`. What is wrong with the archive is in the result.
    pub(super) fn of(bundle: &Bundle, lenient: bool, monitor: &Monitor<'_>) -> Result<Self> {
        let mut survey = Self::default();
        bundle.check_manifest(&mut survey.issues);
        if survey.issues.fatal > 0 {
            let first = survey.issues.errors.listed.first();
            let told = first.map(|issue| format!("{}: {}", issue.path, issue.message));
            survey.broken = Some(Error::schema(told.unwrap_or_default()));
        }
        survey.check_sequences(bundle);
        survey.check_entries(bundle, monitor)?;
        survey.check_layers(bundle);
        survey.check_lines(bundle, lenient, monitor)?;
        survey.check_checksum(bundle);
        survey.check_links(bundle);
        Ok(survey)
    }

    /// Reads the bytes of an archive alone: what they are not is an error.
    ///
    /// # Errors
    /// `ERR_CORRUPT`, `ERR_INTEGRITY`, `ERR_TIMEOUT`, `ERR_IO`.
    pub(super) fn of_bytes(bundle: &Bundle, monitor: &Monitor<'_>) -> Result<Self> {
        let mut survey = Self::default();
        survey.check_entries(bundle, monitor)?;
        survey.check_checksum(bundle);
        match survey.broken.take() {
            Some(broken) => Err(broken),
            None => Ok(survey),
        }
    }

    /// Refuses sequence numbers that leave the store no room for its own.
    fn check_sequences(&mut self, bundle: &Bundle) {
        let manifest = Place::entry(bundle.manifest_entry);
        let sync = manifest.member("sync");
        for name in ["last_sequence", "base_sequence", "new_sequence"] {
            let said = bundle.manifest.get("sync").and_then(|sync| sync.get(name)?.as_u64());
            if said.is_some_and(|said| said > MAX_SEQUENCE) {
                let message = format!("a sequence number is {MAX_SEQUENCE} at most");
                let error = Error::limit(message).with_hint("ask for an archive of sound numbers");
                self.refuse(error, &sync.member(name));
            }
        }
    }

    /// Reports what makes the whole archive unusable.
    fn refuse(&mut self, error: Error, place: &Place<'_>) {
        self.issues.add(Severity::Error, place, error.to_string());
        let entry = place.to_string();
        self.broken.get_or_insert_with(|| error.in_entry(&entry));
    }

    fn warn(&mut self, place: &Place<'_>, message: impl Into<String>) {
        self.issues.add(Severity::Warning, place, message);
    }

    /// Returns `true` if a record with this id is in the archive.
    pub(super) fn has(&self, number: u128) -> bool {
        self.ids.binary_search(&number).is_ok()
    }
}

/// Whether links of an archive can be said to point nowhere: those of a delta may point at what is not in it.
fn is_whole(kind: Kind) -> bool {
    kind == Kind::Snapshot
}
