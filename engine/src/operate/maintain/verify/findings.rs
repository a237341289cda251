//! What a verification has found: a bounded list of problems and the count of all, and how much was
//! looked at.

use std::fmt::{self, Display, Formatter};

use data_encoding::HEXLOWER;
use serde::Serialize;

use crate::base::error::{Error, ErrorKind, Result, guarded};

/// Problems one verification lists at most; the rest are counted.
pub const MAX_PROBLEMS: usize = 100;
/// Bytes of a key that are shown.
const MAX_KEY_BYTES: usize = 64;
/// Bytes of the text of one problem.
const MAX_DETAIL_BYTES: usize = 500;

/// What a problem is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Fault {
    /// The pages of a database file: they contradict their checksums, or cannot be read at all.
    Pages,
    /// The log has a gap, or a row that is not as it was written.
    Log,
    /// A blob is no grain in canonical form.
    Blob,
    /// What stands around a signed blob is damaged, gone, or makes no envelope of it.
    Signature,
    /// A state record is damaged, belongs to no grain, or names a successor that is none.
    State,
    /// A row of protecting ancestors is damaged or belongs to no grain.
    Roots,
    /// An access record is damaged or belongs to no grain.
    Access,
    /// A vector is damaged, belongs to no grain, or fits no space.
    Vector,
    /// A template of CAL is not as it was written.
    Template,
    /// The audit chain is broken, cut or rewritten, or a reason is not the one that was given.
    Audit,
    /// The read log is broken, cut, rewritten or gone.
    Reads,
    /// Log and states tell of something the audit log does not, or the other way round.
    Unaudited,
    /// The derived index cannot be read, nor built again from a log that is damaged.
    IndexUnreadable,
    /// The derived index lacks something.
    IndexMissing,
    /// The derived index has something that the log does not.
    IndexExtra,
    /// The derived index has something else than the log.
    IndexWrong,
}

/// One thing that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Problem {
    /// What it is about.
    pub what: Fault,
    /// Where it is: a table and a place in it.
    #[serde(rename = "where")]
    pub place: String,
    /// What is wrong.
    pub detail: String,
}

/// How much a verification has looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Checked {
    /// Places of the log whose bytes were held against their checksum.
    pub grains: u64,
    /// Places among them whose grains were erased.
    pub erased: u64,
    /// Blobs that were hashed, decoded and encoded again.
    pub blobs: u64,
    /// Envelopes of signed blobs.
    pub signatures: u64,
    /// State records.
    pub states: u64,
    /// Rows of protecting ancestors.
    pub roots: u64,
    /// Access records.
    pub access: u64,
    /// Vectors of grains.
    pub vectors: u64,
    /// Templates of CAL.
    pub templates: u64,
    /// Audit entries.
    pub audit_entries: u64,
    /// Entries of the read log.
    pub reads: u64,
    /// Reads that no disk took, of which the read log tells by their number alone.
    pub lost_reads: u64,
    /// Reasons beside the audit log.
    pub reasons: u64,
    /// Rows of the derived index that were held against the log, each once: all of them in full,
    /// else the lists of all grains and addresses and the rows of the sample.
    pub index_rows: u64,
}

impl Problem {
    /// One about an entry of the audit log.
    pub(crate) fn of_audit(entry: u64, detail: String) -> Self {
        Self { what: Fault::Audit, place: Place::Row("audit", entry).to_string(), detail }
    }
}

/// The outcome of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Verification {
    /// Whether nothing was found.
    pub ok: bool,
    /// Whether everything was looked at.
    pub full: bool,
    /// The first [`MAX_PROBLEMS`] problems.
    pub problems: Vec<Problem>,
    /// How many problems there are.
    pub problem_count: u64,
    /// How much was looked at.
    pub checked: Checked,
}

impl Verification {
    /// The same outcome with what a comparison beside it has found.
    #[must_use]
    pub fn with(mut self, found: Option<Problem>) -> Self {
        if let Some(problem) = found {
            self.ok = false;
            self.problem_count = self.problem_count.saturating_add(1);
            self.problems.truncate(MAX_PROBLEMS - 1);
            self.problems.push(problem);
        }
        self
    }
}

/// Where something is, written out only where there is a problem.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place<'p> {
    /// A table or a file as a whole.
    All(&'p str),
    /// A row with a number for its key.
    Row(&'p str, u64),
    /// A row with bytes for its key.
    Key(&'p str, &'p [u8]),
}

impl Display for Place<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::All(name) => f.write_str(name),
            Self::Row(table, key) => write!(f, "{table} {key}"),
            Self::Key(table, key) => {
                let shown = key.get(..MAX_KEY_BYTES).unwrap_or(key);
                write!(f, "{table} {}", HEXLOWER.encode(shown))
            }
        }
    }
}

/// A verification under way.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    problems: Vec<Problem>,
    count: u64,
    /// Whether rows may lie there whose keys were destroyed: they go when that erasure is scrubbed.
    unscrubbed: bool,
    pub(crate) checked: Checked,
}

impl Findings {
    /// None yet, in a store where an erasure is to be scrubbed or not.
    pub(crate) fn of(unscrubbed: bool) -> Self {
        Self { unscrubbed, ..Self::default() }
    }

    /// Notes a problem.
    pub(crate) fn add(&mut self, what: Fault, place: Place<'_>, detail: impl Display) {
        self.count = self.count.saturating_add(1);
        if self.problems.len() < MAX_PROBLEMS {
            let mut detail = detail.to_string();
            detail.truncate(detail.floor_char_boundary(MAX_DETAIL_BYTES));
            self.problems.push(Problem { what, place: place.to_string(), detail });
        }
    }

    /// Runs a part of the verification. Damage that keeps it from going on is a problem as well;
    /// the other parts follow.
    ///
    /// # Errors
    /// Failures that say nothing about the data, such as `ERR_IO`.
    pub(crate) fn part(
        &mut self,
        what: Fault,
        place: Place<'_>,
        run: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        match guarded(|| run(self)) {
            Err(error) if says_damage(&error) => {
                self.add(what, place, error);
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// The outcome of reading something, damage noted as a problem. What was erased and waits to be
    /// scrubbed is none.
    ///
    /// # Errors
    /// Failures that say nothing about the data.
    pub(crate) fn damage<T>(
        &mut self,
        what: Fault,
        place: Place<'_>,
        outcome: Result<T>,
    ) -> Result<Option<T>> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is_erased() && self.unscrubbed => Ok(None),
            Err(error) if says_damage(&error) => {
                self.add(what, place, error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether nothing was found so far.
    pub(crate) fn is_clean(&self) -> bool {
        self.count == 0
    }

    /// The report.
    pub(crate) fn finish(self, full: bool) -> Verification {
        Verification {
            ok: self.count == 0,
            full,
            problems: self.problems,
            problem_count: self.count,
            checked: self.checked,
        }
    }
}

/// Whether an error is about stored bytes: damaged ones, ones whose key is gone, or ones no version of this
/// code wrote.
fn says_damage(error: &Error) -> bool {
    error.is_integrity() || error.is_erased() || error.kind() == ErrorKind::StoreVersion
}

/// Counts one more.
pub(crate) fn count(number: &mut u64) {
    *number = number.saturating_add(1);
}
