//! Reading a stored blob: its fields, its grain, its signed flag.
//!
//! A leaf: knows only the format.

use grainstore_format::{DecodeOptions, Flags, Grain, GrainRef, Header, PlainBlob};

use crate::base::error::{Error, Result};

/// Runs `read` on the fields of a blob that the store accepted, decompressed if its payload is compressed.
///
/// # Errors
/// `ERR_INTEGRITY` if it cannot be read any more.
pub(crate) fn with_fields<T>(
    blob: &[u8],
    read: impl FnOnce(&GrainRef<'_>) -> Result<T>,
) -> Result<T> {
    if let Ok(view) = GrainRef::new(blob) {
        return read(&view);
    }
    let open = PlainBlob::new(blob, &DecodeOptions::default());
    let damaged = |error| Error::integrity(format!("a stored blob cannot be read: {error}"));
    read(&open.map_err(damaged)?.view())
}

/// Returns `true` if the signed flag is set, so that the blob belongs into an envelope.
///
/// # Errors
/// `ERR_TOO_SHORT`, `ERR_VERSION`, `ERR_UNKNOWN_TYPE` for bytes that are no blob.
pub(crate) fn is_signed(blob: &[u8]) -> Result<bool> {
    Ok(Header::read(blob)?.0.flags.contains(Flags::SIGNED))
}

/// Decodes a blob that the store accepted, bare or from an envelope.
///
/// # Errors
/// As [`Grain::decode`].
pub(crate) fn stored_grain(blob: &[u8]) -> Result<Grain> {
    let options = DecodeOptions { enveloped: is_signed(blob)?, ..DecodeOptions::default() };
    Ok(Grain::decode_with(blob, &options)?)
}

/// Returns `true` for a withdrawal of consent (OMS 8.10).
pub(crate) fn is_withdrawal(consent: &GrainRef<'_>) -> bool {
    consent.get("is_withdrawal").and_then(|flag| flag.as_bool()) == Some(true)
}
