//! Purge (ALF 3.1.11, 6.4): what is purged is physically gone, and a record of the purge says so without repeating it.
//!
//! `report`: what is asked, and the audit record. `store`: records or all of an agent of a store. `lineage`: the
//! grains of a record. `lines`: files without some of their lines. `archive`: records of a file. `mentions`: copies
//! of a content elsewhere.

mod archive;
mod lineage;
mod lines;
mod mentions;
mod report;
mod store;

pub use archive::purge_archive;
pub use report::{PurgeOptions, PurgeReason, PurgeReport, PurgeScope};
pub use store::purge;
