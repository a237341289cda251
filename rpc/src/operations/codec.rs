//! Operations on bytes, without a store: `encode`, `decode`.

use grainstore::Grain;
use grainstore::format::{Blob, Encoding};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::Result;
use crate::host::Host;
use crate::json::Base64;
use crate::shape::{Decoded, Encoded};

/// Encodes a grain in JSON.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Encode<'p> {
    #[serde(borrow)]
    grain: &'p RawValue,
    #[serde(default)]
    encoding: Encoding,
}

pub(crate) fn encode(given: Encode<'_>, _: &mut Host) -> Result<Encoded> {
    Ok(Encoded::from(&encode_grain(given.grain.get(), given.encoding)?))
}

/// Encodes a grain that is JSON text.
///
/// ```
/// use grainstore::format::Encoding;
///
/// let blob = grainstore_rpc::encode_grain(
///     r#"{"type": "belief", "subject": "alice", "relation": "prefers", "object": "tea",
///         "confidence": 0.9, "created_at": "2026-03-02T09:00:00Z"}"#,
///     Encoding::default(),
/// )?;
/// assert_eq!(blob.address(), grainstore::ContentAddress::of(blob.bytes()));
/// # Ok::<(), grainstore_rpc::Error>(())
/// ```
pub fn encode_grain(json: &str, encoding: Encoding) -> Result<Blob> {
    Ok(Grain::from_json(json)?.encode(encoding)?)
}

/// Decodes a bare blob.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Decode {
    blob: Base64,
}

pub(crate) fn decode(given: Decode, _: &mut Host) -> Result<Decoded> {
    Decoded::new(&given.blob.0)
}
