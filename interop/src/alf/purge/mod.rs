//! Purge (ALF 3.1.11, 6.4): what is purged is physically gone, and a record of the purge says so without repeating it.
//!
//! `report`: what is asked, and the audit record. `walk`: what the grains of a store are. `targets`: which of them go.
//! `store`: records of a store, with `plan`, what changes beside them, and `copies`, where else it is what they said;
//! `whole`: all of an agent; `begun`: purges that are not done. `sought`, `mentions`, `unescape`: how copies are found. `lines`: files without some of their
//! lines. `archive`: records of a file; `inventory`: what its manifest says then; `begun_file`: purges that are not done.

mod archive;
mod begun;
mod begun_file;
mod copies;
mod inventory;
mod lines;
mod mentions;
mod plan;
mod report;
mod sought;
mod store;
mod targets;
mod unescape;
mod walk;
mod whole;

pub use archive::purge_archive;
pub use report::{PurgeOptions, PurgeReason, PurgeReport, PurgeScope};
pub(super) use sought::Sought;
pub use store::purge;
pub(super) use targets::Changes;
