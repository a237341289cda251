//! Maintenance by an operator.
//!
//! - `any_table`, `copy`, `scratch`: any table as bytes, copies of databases, temporary databases.
//! - `reindex`, `compact`, `removal` of vectors, `key_rotation`: on the writer thread. `backup`: beside
//!   it. `digest`: one number to compare copies by.
//! - `page_usage`: use of the files. `verify`: checks the data. `doctor`: checks the environment.

mod any_table;
mod backup;
mod cal_checks;
mod checkpoint;
mod compact;
#[cfg(test)]
mod compact_tests;
mod copy;
mod digest;
mod doctor;
mod key_rotation;
mod page_usage;
mod reindex;
mod removal;
mod scratch;
mod verify;

pub(crate) use {any_table::open_table, copy::table_names};

#[cfg(feature = "fuzzing")]
pub(crate) use verify::problems_of;

pub use backup::BackupReport;
pub use compact::CompactionReport;
pub use digest::TruthDigest;
pub use doctor::{Diagnosis, Finding, Health, doctor};
pub use page_usage::{FilePageUsage, PageUsage};
pub use verify::{MAX_PROBLEMS, Problem, ProblemKind, VerifyCounts, VerifyReport, verify};
