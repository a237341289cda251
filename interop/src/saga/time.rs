//! Times and ids as documents have them.

use grainstore::EpochMs;

use super::sign::fill_random;
use crate::error::Result;
use crate::kept::date_text;

/// Characters of the random part of an id.
const ID_CHARS: usize = 20;
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A time as documents have it: RFC 3339 in UTC, milliseconds only where there are any.
pub(super) fn written(at: EpochMs) -> String {
    date_text(at).unwrap_or_else(|| at.to_string())
}

/// A random id of letters and digits.
///
/// # Errors
/// `ERR_IO` if the system has no random bytes.
pub(super) fn random_id() -> Result<String> {
    let mut id = String::with_capacity(ID_CHARS);
    let mut bytes = [0; 64];
    while id.len() < ID_CHARS {
        fill_random(&mut bytes)?;
        // Bytes from 248 are passed over, so that all characters are as likely.
        let letters = bytes.iter().filter(|byte| **byte < 248);
        let letters = letters.filter_map(|byte| ALPHABET.get(usize::from(byte % 62)));
        id.extend(letters.take(ID_CHARS.saturating_sub(id.len())).map(|byte| char::from(*byte)));
    }
    Ok(id)
}
