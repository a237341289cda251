//! The problems found by a verification: a bounded list, the count of all, and counts of what was checked.

use std::fmt::{self, Display, Formatter};

use data_encoding::HEXLOWER;
use grainstore_format::ContentAddress;
use serde::{Deserialize, Serialize};

use crate::base::error::{Error, ErrorKind, Result, catch_storage_panic};

/// Most problems that one [`Store::verify`](crate::Store::verify) lists; the rest are counted.
pub const MAX_PROBLEMS: usize = 100;
/// Most bytes of a key that are shown.
const MAX_KEY_BYTES: usize = 64;
/// Most bytes in the text of one problem.
const MAX_DETAIL_BYTES: usize = 500;

/// Kind of a problem that [`Store::verify`](crate::Store::verify) finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ProblemKind {
    /// The pages of a database file do not match their checksums, or cannot be read at all.
    Pages,
    /// The log has a gap, or a damaged row.
    Log,
    /// A blob is no grain in canonical form.
    Blob,
    /// The envelope of a signed blob is damaged, missing, or does not fit its blob.
    Signature,
    /// A state record is damaged, belongs to no grain, or names a successor that is none.
    State,
    /// A row of roots is damaged or belongs to no grain.
    Roots,
    /// An access record is damaged or belongs to no grain.
    Access,
    /// A vector is damaged, belongs to no grain, or fits no space.
    Vector,
    /// A CAL template is damaged.
    Template,
    /// A blob or a row of an application is damaged, or its owner is not told rightly.
    Application,
    /// The audit chain is broken, truncated or rewritten, or a reason is not the one that was given.
    Audit,
    /// The read log is broken, truncated, rewritten or missing.
    Reads,
    /// A grain that was erased is here again, as a certificate of the erasure tells.
    Returned,
    /// Log and states disagree with the audit log.
    Unaudited,
    /// The derived index cannot be read, nor rebuilt from a damaged log.
    IndexUnreadable,
    /// The derived index lacks a row.
    IndexMissing,
    /// The derived index has a row too many.
    IndexExtra,
    /// The derived index has a wrong row.
    IndexWrong,
}

/// One problem that [`Store::verify`](crate::Store::verify) found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Problem {
    /// Kind of the problem.
    pub what: ProblemKind,
    /// Location: a table, and a row in it.
    #[serde(rename = "where")]
    pub place: String,
    /// Description.
    pub detail: String,
}

/// Counts of what [`Store::verify`](crate::Store::verify) has checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VerifyCounts {
    /// Log entries whose checksums were checked.
    pub grains: u64,
    /// Erased log entries among them.
    pub erased: u64,
    /// Blobs that were hashed, decoded and encoded again.
    pub blobs: u64,
    /// Envelopes of signed blobs.
    pub signatures: u64,
    /// State records.
    pub states: u64,
    /// Rows of roots.
    pub roots: u64,
    /// Access records.
    pub access: u64,
    /// Vectors of grains.
    pub vectors: u64,
    /// CAL templates.
    pub templates: u64,
    /// Blobs of applications: in a full verification with all their bytes.
    pub application_blobs: u64,
    /// Rows of applications.
    pub application_rows: u64,
    /// Audit entries.
    pub audit_entries: u64,
    /// Entries of the read log.
    pub reads: u64,
    /// Reads that could not be written to disk, of which the read log has the number only.
    pub lost_reads: u64,
    /// Reasons in the audit log.
    pub reasons: u64,
    /// Rows of the derived index that were compared with the log, each once: all in a full verification, else
    /// the lists of all grains and addresses, and the rows of the sample.
    pub index_rows: u64,
}

impl Problem {
    /// A problem of an entry in the audit log.
    pub(crate) fn in_audit_entry(entry: u64, detail: String) -> Self {
        Self {
            what: ProblemKind::Audit,
            place: ProblemLocation::Row("audit", entry).to_string(),
            detail,
        }
    }

    /// One about a grain that was erased.
    pub(crate) fn of_returned(address: &ContentAddress, detail: String) -> Self {
        Self { what: ProblemKind::Returned, place: format!("grain {address}"), detail }
    }
}

/// The result of [`Store::verify`](crate::Store::verify).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VerifyReport {
    /// True if no problem was found.
    pub ok: bool,
    /// True if everything was checked.
    pub full: bool,
    /// The first [`MAX_PROBLEMS`] problems.
    pub problems: Vec<Problem>,
    /// Number of all problems.
    pub problem_count: u64,
    /// Counts of what was checked; `None` where they are withheld, as figures of the whole store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checked: Option<VerifyCounts>,
}

impl VerifyReport {
    /// Adds a problem found by a separate check.
    #[must_use]
    pub fn with_problem(mut self, found: Option<Problem>) -> Self {
        if let Some(problem) = found {
            self.ok = false;
            self.problem_count = self.problem_count.saturating_add(1);
            self.problems.truncate(MAX_PROBLEMS - 1);
            self.problems.push(problem);
        }
        self
    }
}

/// Location of a problem, formatted only if there is one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ProblemLocation<'p> {
    /// A table or a file as a whole.
    All(&'p str),
    /// A row with a numeric key.
    Row(&'p str, u64),
    /// A row with a byte key.
    Key(&'p str, &'p [u8]),
}

impl Display for ProblemLocation<'_> {
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

/// A verification in progress.
#[derive(Debug, Default)]
pub(crate) struct ProblemCollector {
    problems: Vec<Problem>,
    count: u64,
    /// True if rows may exist whose keys were destroyed: they are removed when that erasure is scrubbed.
    unscrubbed: bool,
    pub(crate) checked: VerifyCounts,
}

impl ProblemCollector {
    /// No problems yet, in a store with or without an unscrubbed erasure.
    pub(crate) fn new(unscrubbed: bool) -> Self {
        Self { unscrubbed, ..Self::default() }
    }

    /// Adds a problem.
    pub(crate) fn add(
        &mut self,
        what: ProblemKind,
        place: ProblemLocation<'_>,
        detail: impl Display,
    ) {
        self.count = self.count.saturating_add(1);
        if self.problems.len() < MAX_PROBLEMS {
            let mut detail = detail.to_string();
            detail.truncate(detail.floor_char_boundary(MAX_DETAIL_BYTES));
            self.problems.push(Problem { what, place: place.to_string(), detail });
        }
    }

    /// Runs a part of the verification. Damage that ends it early is a problem as well; the other parts still
    /// run.
    ///
    /// # Errors
    /// Failures that do not concern the data, such as `ERR_IO`.
    pub(crate) fn run_part(
        &mut self,
        what: ProblemKind,
        place: ProblemLocation<'_>,
        run: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        match catch_storage_panic(|| run(self)) {
            Err(error) if is_damage_error(&error) => {
                self.add(what, place, error);
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// Returns the value that was read, or adds the damage as a problem. Erased data that waits to be
    /// scrubbed is no problem.
    ///
    /// # Errors
    /// Failures that do not concern the data.
    pub(crate) fn value_or_problem<T>(
        &mut self,
        what: ProblemKind,
        place: ProblemLocation<'_>,
        outcome: Result<T>,
    ) -> Result<Option<T>> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is_erased() && self.unscrubbed => Ok(None),
            Err(error) if is_damage_error(&error) => {
                self.add(what, place, error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns `true` if no problem was found so far.
    pub(crate) fn is_clean(&self) -> bool {
        self.count == 0
    }

    /// Returns the result.
    pub(crate) fn finish(self, full: bool) -> VerifyReport {
        VerifyReport {
            ok: self.count == 0,
            full,
            problems: self.problems,
            problem_count: self.count,
            checked: Some(self.checked),
        }
    }
}

/// Returns `true` if an error is about stored bytes: damaged, without their key, or of an unknown version.
fn is_damage_error(error: &Error) -> bool {
    error.is_integrity() || error.is_erased() || error.kind() == ErrorKind::StoreVersion
}

/// Increments a count.
pub(crate) fn increment(number: &mut u64) {
    *number = number.saturating_add(1);
}
