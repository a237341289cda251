//! What a check of a document found: where, how bad, and what.

use serde::Serialize;

/// Most findings that are kept of one document; the rest are counted.
const MAX_FINDINGS: usize = 1000;

/// How bad a [`Finding`] of [`Document::validate`](super::Document::validate) is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Unusual, and allowed.
    Warning,
    /// The published schema refuses it. An import keeps it unless it is strict.
    Schema,
    /// The standard refuses it, and so does an import.
    Error,
}

/// Something that is wrong with a document, or unusual: of [`Document::validate`](super::Document::validate).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// Where: `skills.verified[2].confidence`. Empty for the document as a whole.
    pub path: String,
    /// What, for a person to read. It has names of members and no contents.
    pub message: String,
}

impl Finding {
    pub(super) fn new(level: Level, path: &str, message: impl Into<String>) -> Self {
        Self { level, path: path.to_owned(), message: message.into() }
    }
}

/// Collects findings, of which there may be as many as a document has values.
#[derive(Debug, Default)]
pub(super) struct Findings {
    kept: Vec<Finding>,
    dropped: u64,
    worst: Option<Level>,
}

impl Findings {
    pub(super) fn add(&mut self, finding: Finding) {
        let is_worst_yet = Some(finding.level) > self.worst;
        self.worst = self.worst.max(Some(finding.level));
        if self.kept.len() < MAX_FINDINGS {
            self.kept.push(finding);
            return;
        }
        self.dropped = self.dropped.saturating_add(1);
        // Whoever decides by the worst finding finds it among those that are kept.
        if is_worst_yet && let Some(last) = self.kept.last_mut() {
            *last = finding;
        }
    }

    pub(super) fn error(&mut self, path: &str, message: impl Into<String>) {
        self.add(Finding::new(Level::Error, path, message));
    }

    pub(super) fn warn(&mut self, path: &str, message: impl Into<String>) {
        self.add(Finding::new(Level::Warning, path, message));
    }

    /// Adds a finding unless all is well.
    pub(super) fn unless(&mut self, is_well: bool, finding: impl FnOnce() -> Finding) {
        if !is_well {
            self.add(finding());
        }
    }

    /// The worst of them.
    pub(super) fn worst(&self) -> Option<Level> {
        self.worst
    }

    /// The findings, worst first, and the number of those that are not among them.
    pub(super) fn into_parts(mut self) -> (Vec<Finding>, u64) {
        self.kept.sort_by_key(|finding| std::cmp::Reverse(finding.level));
        (self.kept, self.dropped)
    }
}

impl Extend<Finding> for Findings {
    fn extend<I: IntoIterator<Item = Finding>>(&mut self, findings: I) {
        for finding in findings {
            self.add(finding);
        }
    }
}
