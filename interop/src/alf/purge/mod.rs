//! Purge (ALF 3.1.11, 6.4): what is purged is physically gone, and a record of the purge says so without repeating it.
//!
//! `report`: what is asked, and the audit record. `walk`: what the grains of a store are. `targets`: which of them go.
//! `sought`, `mentions`, `unescape`: copies of what they say elsewhere. `store`: records of a store; `whole`: all of an
//! agent. `lines`: files without some of their lines. `archive`: records of a file; `inventory`: what its manifest says
//! then.

mod archive;
mod inventory;
mod lines;
mod mentions;
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
