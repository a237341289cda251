//! What an import came to.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::alf::issue::{Issue, Issues, Place, Severity};
use crate::alf::survey::{Artifacts, Survey};
use crate::error::Error;

/// What an import did, or would do: [`import`](crate::alf::import), [`apply_delta`](crate::alf::apply_delta).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ImportReport {
    /// The agent.
    pub agent_id: String,
    /// True if nothing was written.
    pub dry_run: bool,
    /// What came of the records.
    pub records: RecordCounts,
    /// What came of the documents and their items, and of files, by layer.
    pub layers: BTreeMap<&'static str, LayerCounts>,
    /// Attachments, with the names of those that are not in the archive.
    pub artifacts: Artifacts,
    /// Capabilities of the agent that need something of the host, and are not to be relied on before it has it.
    pub host_dependent: Vec<String>,
    /// Embeddings that are kept, and that no search can use: of another length than others of their model.
    pub unsearchable_embeddings: u64,
    /// Files, sealed partitions and documents that were left out, as a whole or in part, since they have something of what
    /// was purged or erased in the store; a warning of each says why.
    pub withheld: Vec<String>,
    /// The last sequence number of the agent.
    pub sequence: u64,
    /// Records that were not taken, each with its line: the first of them.
    pub errors: Vec<Issue>,
    /// Number of those.
    pub error_count: u64,
    /// What is not known, or points nowhere: the first of them.
    pub warnings: Vec<Issue>,
    /// Number of warnings.
    pub warning_count: u64,
}

/// Numbers of records of an [`ImportReport`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct RecordCounts {
    /// Lines that were read.
    pub read: u64,
    /// New to the store.
    pub created: u64,
    /// Changed in the store.
    pub updated: u64,
    /// Deleted, as ALF deletes: they are kept, and not recalled.
    pub deleted: u64,
    /// In the store already.
    pub unchanged: u64,
    /// Not taken.
    pub failed: u64,
}

impl RecordCounts {
    /// Records that changed the store.
    pub(in crate::alf) fn taken(&self) -> u64 {
        [self.created, self.updated, self.deleted].into_iter().sum()
    }
}

/// Numbers of documents, items or files of a layer of an [`ImportReport`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct LayerCounts {
    /// New to the store.
    pub created: u64,
    /// In the place of earlier ones.
    pub replaced: u64,
    /// In the store already.
    pub unchanged: u64,
    /// Taken back or removed.
    pub removed: u64,
}

impl ImportReport {
    pub(in super::super) fn new(agent_id: &str, dry_run: bool, survey: &Survey) -> Self {
        Self {
            agent_id: agent_id.to_owned(),
            dry_run,
            records: RecordCounts::default(),
            layers: BTreeMap::new(),
            artifacts: survey.artifacts.clone(),
            host_dependent: survey.host_dependent.clone(),
            unsearchable_embeddings: 0,
            withheld: Vec::new(),
            sequence: 0,
            errors: Vec::new(),
            error_count: 0,
            warnings: survey.issues.warnings.listed.clone(),
            warning_count: survey.issues.warnings.count,
        }
    }

    /// Counts a record that was not taken.
    pub(in super::super) fn fail(&mut self, at: &Place<'_>, error: &Error) {
        self.records.failed = self.records.failed.saturating_add(1);
        let message = format!("{} ({})", error.message(), error.code());
        let mut issues = Issues::default();
        issues.add(Severity::Error, at, message);
        self.error_count = self.error_count.saturating_add(1);
        if self.errors.len() < crate::alf::MAX_ISSUES {
            self.errors.extend(issues.errors.listed);
        }
    }

    /// Says that a file, a partition or a document was left out, or a part of it.
    pub(in super::super) fn withhold(&mut self, name: &str, why: &str) {
        self.warn(&Place::entry(name), why);
        self.withheld.push(name.to_owned());
        self.withheld.sort_unstable();
    }

    pub(in super::super) fn warn(&mut self, at: &Place<'_>, message: impl Into<String>) {
        self.warning_count = self.warning_count.saturating_add(1);
        if self.warnings.len() < crate::alf::MAX_ISSUES {
            self.warnings.push(Issue { path: at.to_string(), message: message.into() });
        }
    }
}
