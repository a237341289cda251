//! `.saga` containers: a document with the files that belong to it, in a ZIP archive with checksums and a signature.
//!
//! Knows no store.
//!
//! - `meta`: the list of checksums, and the hash that is signed. `read`, `write`.

mod meta;
mod read;
mod write;

pub use read::{Container, ContainerVerdict};
pub(super) use write::whole_container;
pub use write::{ContainerFile, ContainerReport, write_container};

/// The document.
pub(super) const DOCUMENT: &str = "agent.saga.json";
/// The folder of memories.
pub(super) const MEMORY: &str = "memory/";
/// The long-term memory.
pub(super) const LONG_TERM: &str = "memory/longterm.bin";
/// The events of the episodic memory, one a line.
pub(super) const EPISODIC: &str = "memory/episodic.jsonl";
/// The folder of artifacts.
pub(super) const ARTIFACTS: &str = "artifacts/";
const META: &str = "META";
const SIGNATURE: &str = "SIGNATURE";
