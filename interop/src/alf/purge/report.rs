//! What a purge is asked to do, and the audit record of it, which has nothing of what was purged but ids.

use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use grainstore::{EpochMs, ErrorKind};
use serde::{Deserialize, Deserializer, Serialize};
use sha2::{Digest, Sha256};

use crate::alf::schema::is_uuid;
use crate::archive::{check_replaceable, sync_folder_of};
use crate::error::{Error, Result};
use crate::kept::date_text;
use crate::uuid::version_7;

/// Why something is purged (ALF 3.1.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PurgeReason {
    /// The right to erasure of the GDPR.
    #[serde(rename = "gdpr_article_17")]
    GdprArticle17,
    /// The right to deletion of the CCPA.
    CcpaDeletion,
    /// The user asked for it.
    UserRequest,
    /// Something was remembered that should not have been.
    SecurityIncident,
}

impl PurgeReason {
    /// All reasons.
    ///
    /// ```
    /// use grainstore_interop::alf::PurgeReason;
    ///
    /// for reason in PurgeReason::ALL {
    ///     assert_eq!(reason.word().parse::<PurgeReason>()?, *reason);
    /// }
    /// # Ok::<(), grainstore_interop::Error>(())
    /// ```
    pub const ALL: &'static [Self] =
        &[Self::GdprArticle17, Self::CcpaDeletion, Self::UserRequest, Self::SecurityIncident];

    /// Its name in the record of a purge.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::GdprArticle17 => "gdpr_article_17",
            Self::CcpaDeletion => "ccpa_deletion",
            Self::UserRequest => "user_request",
            Self::SecurityIncident => "security_incident",
        }
    }
}

impl std::str::FromStr for PurgeReason {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|reason| reason.word() == word);
        found.copied().ok_or_else(|| Error::schema(format!("{word:?} is no reason of a purge")))
    }
}

/// What is purged of a store: [`purge`](crate::alf::purge()).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PurgeScope {
    /// Records, by their ids.
    Records(Vec<String>),
    /// The records of a principal: those whose grains have this `user_id`, and what the agent has of them as a principal.
    /// Copies of the records in files and sealed partitions go too, which erasing the user alone would leave.
    User(String),
    /// Everything that the store keeps of the agent.
    Agent,
}

/// Options of [`purge`](crate::alf::purge()) and [`purge_archive`](crate::alf::purge_archive).
///
/// ```
/// use grainstore_interop::alf::{PurgeOptions, PurgeReason};
///
/// let asked_by = "0a1b2c3d-0000-4000-8000-00000000000b";
/// let mut options = PurgeOptions::new(PurgeReason::UserRequest, asked_by);
/// options.dry_run = true;
/// assert!(!options.partial);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PurgeOptions {
    /// The agent; `None` for the only one of the store.
    pub agent_id: Option<String>,
    /// Why.
    pub reason: PurgeReason,
    /// The principal who asked for it, by its UUID.
    pub requested_by: String,
    /// True to report what would go, and to change nothing.
    pub dry_run: bool,
    /// True to purge the others where a hold or a retention keeps some.
    pub partial: bool,
    /// True to leave files with copies of what is purged.
    pub keep_raw: bool,
    /// The file that the audit record is appended to; for an archive by default the file beside it whose name ends
    /// with `.purge-audit.jsonl`.
    pub audit_file: Option<PathBuf>,
}

impl PurgeOptions {
    /// Options with which everything that is asked for goes, or nothing.
    #[must_use]
    pub fn new(reason: PurgeReason, requested_by: &str) -> Self {
        Self {
            agent_id: None,
            reason,
            requested_by: requested_by.to_owned(),
            dry_run: false,
            partial: false,
            keep_raw: false,
            audit_file: None,
        }
    }

    /// The reason that the audit log of the store has.
    pub(super) fn told(&self, purge_id: &str) -> String {
        format!("alf purge {purge_id}: {}", self.reason.word())
    }
}

/// A text of this program. By this name it is read as another one, and not borrowed.
type Word = &'static str;

/// The audit record of a purge (ALF 3.1.11): ids, places and times, and nothing of what was purged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PurgeReport {
    /// The id of the purge.
    pub purge_id: String,
    /// The agent.
    pub agent_id: String,
    /// `record_purge` or `full_agent`.
    #[serde(deserialize_with = "scope")]
    pub scope: Word,
    /// The records that are gone, with those that were changes of them; not said of a whole agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record_ids: Option<Vec<String>>,
    /// The partitions they were in.
    pub partitions_affected: Vec<String>,
    /// Why.
    pub reason: PurgeReason,
    /// When it was asked for.
    pub requested_at: String,
    /// When it was done.
    pub completed_at: String,
    /// Who asked for it.
    pub requested_by: String,
    /// Files that were dropped, since they had copies, or would be left with them by request.
    pub raw_files_affected: Vec<String>,
    /// Number of records that are gone.
    pub records_removed: u64,
    /// True if nothing was changed.
    pub dry_run: bool,
    /// Records that a hold or a retention keeps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records_kept: Vec<String>,
    /// Documents that went with a person, all versions: `principal/<id>`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub documents_removed: Vec<String>,
    /// Documents that a hold or a retention keeps, by layer, and of a list by the id of the item: `principal/<id>`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub documents_kept: Vec<String>,
    /// Other records whose content has that of one that is gone: they are left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records_with_copies: Vec<String>,
    /// Layers whose documents have the content of a record that is gone: they are left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub documents_with_copies: Vec<String>,
    /// Records that are gone, and of which a consent or a rule kept a version from being read: files were not searched
    /// for what it said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records_unread: Vec<String>,
}

/// The scope of a purge of records, and of one of a whole agent.
const OF_RECORDS: &str = "record_purge";
pub(super) const OF_AGENT: &str = "full_agent";

fn scope<'d, D: Deserializer<'d>>(from: D) -> Result<&'static str, D::Error> {
    let scope = String::deserialize(from)?;
    Ok(if scope == OF_AGENT { OF_AGENT } else { OF_RECORDS })
}

/// Refuses an audit record that could not be written, before anything is purged.
///
/// # Errors
/// `ERR_CONFLICT` for a file within a store, and what is no file; `ERR_IO`.
pub(super) fn check_audit_file(file: Option<&Path>, options: &PurgeOptions) -> Result<()> {
    let Some(path) = file.filter(|_| !options.dry_run) else { return Ok(()) };
    grainstore::check_outside(path)?;
    check_replaceable(path)?;
    let opened = OpenOptions::new().create(true).append(true).open(path);
    opened.map(drop).map_err(|error| Error::from(error).at_path(path))
}

impl PurgeReport {
    /// Begins the record of a purge.
    ///
    /// # Errors
    /// `ERR_SCHEMA` unless who asked is named by a UUID.
    pub(super) fn begin(agent_id: &str, options: &PurgeOptions, now: EpochMs) -> Result<Self> {
        if !is_uuid(&options.requested_by) {
            return Err(Error::schema("requested_by is the UUID of a principal")
                .with_hint("name who asked for it by the id of the principal"));
        }
        let asked =
            format!("{agent_id}|{}|{}|{:?}", options.requested_by, now.get(), options.reason);
        let purge_id = version_7(now.get(), &Sha256::digest(asked).into());
        let at = date_text(now).unwrap_or_default();
        Ok(Self {
            purge_id,
            agent_id: agent_id.to_owned(),
            scope: OF_RECORDS,
            record_ids: Some(Vec::new()),
            partitions_affected: Vec::new(),
            reason: options.reason,
            requested_at: at.clone(),
            completed_at: at,
            requested_by: options.requested_by.clone(),
            raw_files_affected: Vec::new(),
            records_removed: 0,
            dry_run: options.dry_run,
            records_kept: Vec::new(),
            documents_removed: Vec::new(),
            documents_kept: Vec::new(),
            records_with_copies: Vec::new(),
            documents_with_copies: Vec::new(),
            records_unread: Vec::new(),
        })
    }

    /// Makes it the record of a purge that has begun before.
    pub(super) fn goes_on(&mut self, before: &Self) {
        self.purge_id.clone_from(&before.purge_id);
        self.requested_at.clone_from(&before.requested_at);
        self.requested_by.clone_from(&before.requested_by);
        self.reason = before.reason;
    }

    /// Ends the record, and appends it to a file.
    ///
    /// # Errors
    /// `ERR_IO`; `ERR_CONFLICT` for a file within a store, and what is no file.
    pub(super) fn finish(mut self, now: EpochMs, file: Option<&Path>) -> Result<Self> {
        self.completed_at = date_text(now).unwrap_or_default();
        for list in [
            &mut self.partitions_affected,
            &mut self.raw_files_affected,
            &mut self.records_kept,
            &mut self.documents_kept,
            &mut self.records_with_copies,
            &mut self.documents_with_copies,
            &mut self.records_unread,
        ] {
            list.sort_unstable();
            list.dedup();
        }
        if let Some(ids) = &mut self.record_ids {
            ids.sort_unstable();
            ids.dedup();
        }
        if let Some(path) = file.filter(|_| !self.dry_run) {
            grainstore::check_outside(path)?;
            check_replaceable(path)?;
            let line = serde_json::to_string(&self)
                .map_err(|error| Error::new(ErrorKind::Io, error.to_string()))?;
            append(path, &line).map_err(|error| Error::from(error).at_path(path))?;
        }
        Ok(self)
    }
}

/// Appends a line to a file. One that a crash broke off ends before it.
fn append(path: &Path, line: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
    let is_broken = match file.metadata()? {
        kind if kind.is_file() && kind.len() > 0 => {
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            last != *b"\n"
        }
        _ => false,
    };
    let begin = if is_broken { "\n" } else { "" };
    file.write_all(format!("{begin}{line}\n").as_bytes())?;
    file.sync_all()?;
    sync_folder_of(path)
}
