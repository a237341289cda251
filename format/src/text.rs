//! Canonical text: NFC, and no byte-order mark (OMS 4.4). ASCII text takes a fast path.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc, is_nfc_quick};

use crate::error::{Result, corrupt};

const BOM: char = '\u{FEFF}';

/// Returns the NFC form, borrowed if the text is already in NFC.
///
/// ```
/// use grainstore_format::normalise_text;
///
/// assert_eq!(normalise_text("Zoe\u{308}")?, "Zo\u{eb}");
/// assert!(normalise_text("\u{feff}Zoe").is_err());
/// # Ok::<(), grainstore_format::Error>(())
/// ```
///
/// # Errors
/// `ERR_CORRUPT` for text with U+FEFF anywhere.
pub fn normalise(text: &str) -> Result<Cow<'_, str>> {
    if text.is_ascii() {
        return Ok(Cow::Borrowed(text));
    }
    check_bom(text)?;
    match is_nfc_quick(text.chars()) {
        IsNormalized::Yes => Ok(Cow::Borrowed(text)),
        _ => Ok(Cow::Owned(text.nfc().collect())),
    }
}

/// Checks that stored text is canonical.
///
/// # Errors
/// `ERR_CORRUPT` for U+FEFF or text that is not NFC.
pub(crate) fn check(text: &str) -> Result<()> {
    if text.is_ascii() {
        return Ok(());
    }
    check_bom(text)?;
    if is_nfc(text) {
        return Ok(());
    }
    Err(corrupt("text is not NFC-normalised"))
}

fn check_bom(text: &str) -> Result<()> {
    if text.contains(BOM) {
        return Err(corrupt("text contains a byte-order mark (U+FEFF)"));
    }
    Ok(())
}

/// Returns the first 40 characters, for error messages.
pub(crate) fn excerpt(text: &str) -> &str {
    match text.char_indices().nth(40) {
        Some((cut, _)) => text.get(..cut).unwrap_or_default(),
        None => text,
    }
}
