//! Many grains in one portable `.mg` file (OMS section 11), and in a stream of frames (11.6).
//!
//! Opens no file and no connection: it writes to a `Write` and reads from a [`ReadAt`]. Whatever the
//! number of grains, one of them is held at a time, beside four bytes for each while writing.
//!
//! - `entry`: one grain as it lies in a file: a blob or a COSE_Sign1, and where it ends.
//! - `layout`: the sixteen bytes in front, and the limits of a file.
//! - `plan` -> `writer`: what will be in a file, then its bytes.
//! - `source` -> `region` -> `reader`: bytes at any place, grains one after the other, the whole file.
//! - `manifest`: the state of grains beside them (11.7).
//! - `frames`: grains over a wire.

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

/// An error of the storage below, told as one of the format.
fn io(error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("I/O: {error}"))
}

/// A container whose own structure is wrong.
fn damaged(message: impl Into<String>, place: impl Into<String>) -> Error {
    corrupt(message).at(place).with_hint("get the container again, or export it again")
}
