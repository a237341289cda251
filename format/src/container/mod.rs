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

mod embedded;
mod entry;
mod frames;
mod layout;
mod manifest;
mod plan;
mod reader;
mod region;
mod source;
mod writer;

pub use embedded::Embedded;
pub use entry::{Entry, max_entry_bytes};
pub use frames::{FrameReader, FrameWriter};
pub use layout::{Compression, MAX_REGION_BYTES};
pub use manifest::{Carried, ManifestEntries};
pub use plan::{Plan, Planned, arrange};
pub use reader::{Container, Entries};
pub use source::{ReadAt, Seeking};
pub use writer::{Writer, Written};

use crate::error::{Error, ErrorKind, corrupt};

/// Converts an I/O error into an `ERR_IO` error.
fn io(error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("I/O: {error}"))
}

/// Creates an `ERR_CORRUPT` error about the structure of a container.
fn damaged(message: impl Into<String>, place: impl Into<String>) -> Error {
    corrupt(message).at(place).with_hint("get the container again, or export it again")
}
