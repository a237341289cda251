//! Test vectors of the `.mg` codec (OMS 1.3) as data, and the functions that load them.
//!
//! The rows were made by an encoder written from the standard alone. This crate knows nothing of
//! any codec: its runner, and every other test that wants rows, brings its own.
//!
//! - `text`: how long texts and bytes are written short.
//! - `rows`: what a row holds, one type a file.
//! - `error`: what can go wrong while loading.
//!
//! ```
//! for row in grainstore_vectors::encode_rows()? {
//!     println!("{} {} ({})", row.address, row.name, row.rule);
//! }
//! # Ok::<(), grainstore_vectors::LoadError>(())
//! ```

mod error;
mod rows;
mod text;

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use serde::de::DeserializeOwned;

pub use error::LoadError;
pub use rows::{
    AcceptDecodeRow, ContainerRow, CoseRow, DiscloseRow, EncodeRow, HeldRow, LargeRow,
    RefuseDecodeRow, RefuseEncodeRow, RowEncoding, Signed, StateRow,
};

/// Grains with the exact bytes and address they must encode to.
///
/// # Errors
/// When `data/encode.json` does not hold such rows.
pub fn encode_rows() -> Result<Vec<EncodeRow>, LoadError> {
    rows("data/encode.json", include_str!("../data/encode.json"))
}

/// Grains too large to spell out, with the size and address of their blob.
///
/// # Errors
/// When `data/large.json` does not hold such rows.
pub fn large_rows() -> Result<Vec<LargeRow>, LoadError> {
    rows("data/large.json", include_str!("../data/large.json"))
}

/// JSON texts that are no valid grain, with the code each must be refused with.
///
/// # Errors
/// When `data/refuse_encode.json` does not hold such rows.
pub fn refuse_encode_rows() -> Result<Vec<RefuseEncodeRow>, LoadError> {
    rows("data/refuse_encode.json", include_str!("../data/refuse_encode.json"))
}

/// Blobs that must be read although the default encoder would not write them.
///
/// # Errors
/// When `data/accept_decode.json` does not hold such rows.
pub fn accept_decode_rows() -> Result<Vec<AcceptDecodeRow>, LoadError> {
    rows("data/accept_decode.json", include_str!("../data/accept_decode.json"))
}

/// Bytes that are no valid blob, with the code each must be refused with.
///
/// # Errors
/// When `data/refuse_decode.json` does not hold such rows.
pub fn refuse_decode_rows() -> Result<Vec<RefuseDecodeRow>, LoadError> {
    rows("data/refuse_decode.json", include_str!("../data/refuse_decode.json"))
}

/// Envelopes of signed grains, good and bad, with the verdict each must have.
///
/// # Errors
/// When `data/cose.json` does not hold such rows.
pub fn cose_rows() -> Result<Vec<CoseRow>, LoadError> {
    rows("data/cose.json", include_str!("../data/cose.json"))
}

/// Grains with the view each must give when some of its fields are hidden.
///
/// # Errors
/// When `data/disclose.json` does not hold such rows.
pub fn disclose_rows() -> Result<Vec<DiscloseRow>, LoadError> {
    rows("data/disclose.json", include_str!("../data/disclose.json"))
}

/// Containers with what is in them, and others with the code they must be refused with.
///
/// # Errors
/// When `data/container.json` does not hold such rows.
pub fn container_rows() -> Result<Vec<ContainerRow>, LoadError> {
    rows("data/container.json", include_str!("../data/container.json"))
}

/// Reference rows kept outside the project: `data/vectors/dev.json` under the directory
/// `GRAINSTORE_SHARED` names, else under `../shared` beside the workspace. `None` where that file
/// is absent.
///
/// # Errors
/// When the file is there but cannot be read, or does not hold such rows.
pub fn dev_rows() -> Result<Option<Vec<EncodeRow>>, LoadError> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared");
    let shared = env::var_os("GRAINSTORE_SHARED").map_or_else(|| beside.into(), PathBuf::from);
    let path = shared.join("data/vectors/dev.json");
    match fs::read_to_string(&path) {
        Ok(text) => rows(&path.to_string_lossy(), &text).map(Some),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(LoadError::new(path.to_string_lossy(), error)),
    }
}

fn rows<T: DeserializeOwned>(file: &str, text: &str) -> Result<Vec<T>, LoadError> {
    serde_json::from_str(text).map_err(|error| LoadError::new(file, error))
}
