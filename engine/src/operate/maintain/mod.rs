//! Keeping a store in order: what an operator does to it, beside reading and writing.
//!
//! - `rows`, `copy`, `scratch`: any table as bytes, databases copied, databases for a moment.
//! - `reindex`, `compact`, `removal` of vectors: on the writer's thread. `backup`: beside it.
//! - `pages`: how full the files are. `verify`: whether everything is as it must be. `doctor`: whether
//!   it can be worked with.

mod backup;
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

pub use backup::Backup;
pub use compact::Compaction;
pub use doctor::{Diagnosis, Finding, Health, doctor};
pub use pages::{FilePages, Pages};
pub use verify::{Checked, Fault, MAX_PROBLEMS, Problem, Verification, verify};
