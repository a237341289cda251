//! Many grains in one portable `.mg` file (OMS section 11), or in a stream of frames (11.6).
//!
//! Opens no files and no connections: containers are written to a `Write` and read from a [`ReadAt`].
//! Memory use is one grain at a time, plus four bytes per grain while writing.
//!
//! - `entry`: one grain in a file: a blob or a COSE_Sign1, and its length.
//! - `layout`: the header of sixteen bytes, and the limits of a file.
//! - `plan` -> `writer`: the layout of a file before it is written, then its bytes.
//! - `source` -> `region` -> `reader`: random access to bytes, the region of grains as a stream, the
//!   whole file.
//! - `manifest`, `embedding_summary`: the state of grains, beside them in the file (11.7).
//! - `frames`: grains in a stream.

mod embedding_summary;
mod entry;
mod frames;
mod layout;
mod manifest;
mod plan;
mod reader;
mod region;
mod source;
mod writer;

pub use embedding_summary::EmbeddingSummary;
pub use entry::{ContainerEntry, max_entry_bytes};
pub use frames::{FrameReader, FrameWriter};
pub use layout::{Compression, MAX_REGION_BYTES};
pub use manifest::{ManifestEntry, ManifestIter};
pub use plan::{ContainerPlan, PlannedEntry, sort_entries};
pub use reader::{Container, EntryIter};
pub use source::{ReadAt, SeekSource};
pub use writer::{ContainerReport, ContainerWriter};

use crate::error::{Error, ErrorKind, corrupt};

/// Converts an I/O error into an `ERR_IO` error.
fn io(error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("I/O: {error}"))
}

/// Creates an `ERR_CORRUPT` error about the structure of a container.
fn structure_error(message: impl Into<String>, place: impl Into<String>) -> Error {
    corrupt(message).at(place).with_hint("get the container again, or export it again")
}
