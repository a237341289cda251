//! Decoding of string literals: escapes, Unicode normal form, and rejection of bidi controls.
//!
//! Bound parameters and strings in JSON pass the same checks (CAL 16.2, 16.3).

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use crate::codes::ErrorKind;
use crate::error::{Error, Result};

/// Decodes the inside of a string literal: escapes, then the check for bidi controls, then NFC.
///
/// # Errors
/// E005 for a lone surrogate, E071 for a bidi control.
pub(crate) fn decode(inside: &str) -> Result<Cow<'_, str>> {
    if inside.contains('\\') {
        return clean(Cow::Owned(unescape(inside)?));
    }
    clean(Cow::Borrowed(inside))
}

/// Returns the text in NFC, after checking it for bidi controls.
///
/// # Errors
/// E071 for a bidi control (U+202A..202E, U+2066..2069).
pub(crate) fn clean(text: Cow<'_, str>) -> Result<Cow<'_, str>> {
    if text.is_ascii() {
        return Ok(text);
    }
    if let Some(control) = text.chars().find(|c| is_bidi_control(*c)) {
        let message = format!("the text holds the bidi control U+{:04X}", u32::from(control));
        return Err(Error::new(ErrorKind::BidiControl, message));
    }
    if is_nfc_quick(text.chars()) == IsNormalized::Yes {
        return Ok(text);
    }
    Ok(Cow::Owned(text.nfc().collect()))
}

fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Replaces `\"`, `\\`, `\n`, `\t` and `\uXXXX`; other backslash pairs are kept as they are.
fn unescape(inside: &str) -> Result<String> {
    let mut out = String::with_capacity(inside.len());
    let mut rest = inside;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        rest = escape(after, &mut out)?;
    }
    out.push_str(rest);
    Ok(out)
}

/// Appends the decoded escape to `out` and returns the rest; `after` follows the backslash.
fn escape<'a>(after: &'a str, out: &mut String) -> Result<&'a str> {
    let mut chars = after.chars();
    let plain = match chars.next() {
        Some('"') => '"',
        Some('\\') => '\\',
        Some('n') => '\n',
        Some('t') => '\t',
        Some('u') => return unicode_escape(after, out),
        other => {
            out.push('\\');
            out.extend(other);
            return Ok(chars.as_str());
        }
    };
    out.push(plain);
    Ok(chars.as_str())
}

/// Appends a decoded `\uXXXX`, joining surrogate pairs; `after` starts with the `u`.
fn unicode_escape<'a>(after: &'a str, out: &mut String) -> Result<&'a str> {
    let Some((first, rest)) = after.strip_prefix('u').and_then(four_hex) else {
        out.push_str("\\u");
        return Ok(after.strip_prefix('u').unwrap_or(after));
    };
    if let Some(c) = char::from_u32(first) {
        out.push(c);
        return Ok(rest);
    }
    let pair = rest.strip_prefix("\\u").and_then(four_hex);
    let decoded = pair.and_then(|(second, rest)| Some((join_surrogates(first, second)?, rest)));
    let Some((c, rest)) = decoded else {
        let message = format!("\\u{first:04x} is half a surrogate pair");
        let error = Error::new(ErrorKind::BadString, message);
        return Err(error.suggest("write the character itself, or both halves of the pair"));
    };
    out.push(c);
    Ok(rest)
}

fn four_hex(text: &str) -> Option<(u32, &str)> {
    let (digits, rest) = text.split_at_checked(4)?;
    let all_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    Some((u32::from_str_radix(digits, 16).ok().filter(|_| all_hex)?, rest))
}

fn join_surrogates(high: u32, low: u32) -> Option<char> {
    if !(0xD800..0xDC00).contains(&high) || !(0xDC00..0xE000).contains(&low) {
        return None;
    }
    char::from_u32(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded_and_unknown_pairs_stand_for_themselves() {
        for (inside, expected) in [
            ("plain", "plain"),
            (r#"a \"b\" \\ c"#, r#"a "b" \ c"#),
            (r"one\ntwo\tthree", "one\ntwo\tthree"),
            (r"\u0041\u00e9", "Aé"),
            (r"\ud83d\ude00", "😀"),
            (r"\q\u12", r"\q\u12"),
            ("e\u{301}", "é"),
        ] {
            assert_eq!(decode(inside).unwrap(), expected, "{inside}");
        }
    }

    #[test]
    fn text_that_hides_something_is_refused() {
        for (inside, code) in [
            (r"\ud83d", "CAL-E005"),
            (r"\ud83dx", "CAL-E005"),
            (r"\ude00\ud83d", "CAL-E005"),
            ("a\u{202E}b", "CAL-E071"),
            (r"a\u2066b", "CAL-E071"),
        ] {
            assert_eq!(decode(inside).unwrap_err().code(), code, "{inside}");
        }
    }

    #[test]
    fn plain_text_is_borrowed() {
        assert!(matches!(decode("naïve").unwrap(), Cow::Borrowed("naïve")));
    }
}
