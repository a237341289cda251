//! Maintenance by an operator.
//!
//! - `rows`, `copy`, `scratch`: any table as bytes, copies of databases, temporary databases.
//! - `reindex`, `compact`, `removal` of vectors, `rotation`: on the writer thread. `backup`: beside
//!   it.
//! - `pages`: use of the files. `verify`: checks the data. `doctor`: checks the environment.

mod backup;
mod cal_checks;
mod checkpoint;
mod compact;
#[cfg(test)]
mod compact_tests;
mod copy;
mod doctor;
mod pages;
mod reindex;
mod removal;
mod rotation;
mod rows;
mod scratch;
mod verify;

#[cfg(feature = "fuzzing")]
pub(crate) use verify::problems_of;

pub use backup::BackupReport;
pub use compact::CompactionReport;
pub use doctor::{Diagnosis, Finding, Health, doctor};
pub use pages::{FilePageUsage, PageUsage};
pub use verify::{MAX_PROBLEMS, Problem, ProblemKind, VerifyCounts, VerifyReport, verify};
