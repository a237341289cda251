//! Small matters of text: what a terminal may be shown, and times as they are typed.

use std::borrow::Cow;

use grainstore::EpochMs;
use grainstore::format::parse_datetime;
use grainstore_sml::{Clock, relative_time};

/// Text without control characters, which could otherwise steer the reader's terminal.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().any(steers_terminal) {
        let shown = text.chars().map(|c| match c {
            '\n' | '\t' => ' ',
            c if steers_terminal(c) => char::REPLACEMENT_CHARACTER,
            c => c,
        });
        return Cow::Owned(shown.collect());
    }
    Cow::Borrowed(text)
}

/// JSON whose strings steer no terminal either: JSON escapes the lower control characters only, and
/// outside strings it has none but line ends.
pub(crate) fn visible_json(json: &str) -> Cow<'_, str> {
    if json.is_ascii() && !json.contains('\u{7f}') {
        return Cow::Borrowed(json);
    }
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        if c != '\n' && steers_terminal(c) {
            shown.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// Control characters, and those that turn the direction of a line.
fn steers_terminal(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A time as it is typed: epoch milliseconds, or RFC 3339 with its offset.
pub(crate) fn parse_time(text: &str) -> Result<EpochMs, String> {
    if let Ok(ms) = text.parse() {
        return Ok(EpochMs::new(ms));
    }
    parse_datetime(text)
        .map_err(|error| format!("{error}; write epoch milliseconds or 2026-03-15T14:00:00Z"))
}

/// A time as it is shown: ISO 8601 in UTC.
pub(crate) fn iso(time: EpochMs) -> String {
    relative_time(time, &Clock { now: time, iso_timestamps: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_a_terminal_obeys_is_left() {
        assert_eq!(printable("plain é"), "plain é");
        assert_eq!(printable("a\u{1b}[2J\nb\u{9b}c"), "a\u{fffd}[2J b\u{fffd}c");
    }

    #[test]
    fn times_are_typed_in_two_ways() {
        let expected = EpochMs::new(1_773_583_200_000);
        for text in ["1773583200000", "2026-03-15T14:00:00Z", "2026-03-15T15:00:00+01:00"] {
            assert_eq!(parse_time(text), Ok(expected), "{text}");
        }
        assert!(parse_time("yesterday").is_err());
        assert_eq!(iso(expected), "2026-03-15T14:00:00Z");
    }
}
