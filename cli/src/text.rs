//! Text for terminals, and times as they are typed and shown.

use std::borrow::Cow;

use grainstore::EpochMs;
use grainstore::format::parse_datetime;
use grainstore_sml::{Clock, relative_time};

/// Returns text on one line that cannot control the reader's terminal: newlines and tabs become spaces, other
/// characters that move the cursor or change the direction of a line are written as `\u{1b}`.
pub(crate) fn escape_line(text: &str) -> Cow<'_, str> {
    escape_controls(text, |c| matches!(c, '\n' | '\t').then_some(' '))
}

/// Returns text of several lines that cannot control the terminal: newlines and tabs stay, other such
/// characters are escaped like [`escape_line`] does.
pub(crate) fn escape_text(text: &str) -> Cow<'_, str> {
    escape_controls(text, |c| matches!(c, '\n' | '\t').then_some(c))
}

/// Escapes the characters that control a terminal, except those that `instead` replaces.
fn escape_controls(text: &str, instead: impl Fn(char) -> Option<char>) -> Cow<'_, str> {
    if !text.chars().any(steers_terminal) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match instead(c) {
            Some(c) => shown.push(c),
            None if steers_terminal(c) => shown.extend(c.escape_unicode()),
            None => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

/// Escapes JSON so that its strings cannot control the terminal: JSON escapes only the lower control
/// characters, and outside strings it has none but newlines.
pub(crate) fn escape_json(json: &str) -> Cow<'_, str> {
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

/// Returns `true` for control characters, characters that change or mark the direction of a line, and line
/// separators.
fn steers_terminal(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{2028}' | '\u{2029}')
}

/// Parses a time: epoch milliseconds, or RFC 3339 with an offset.
pub(crate) fn parse_time(text: &str) -> Result<EpochMs, String> {
    if let Ok(ms) = text.parse() {
        return Ok(EpochMs::new(ms));
    }
    parse_datetime(text)
        .map_err(|error| format!("{error}; write epoch milliseconds or 2026-03-15T14:00:00Z"))
}

/// Formats a time: ISO 8601 in UTC.
pub(crate) fn format_time(time: EpochMs) -> String {
    relative_time(time, &Clock { now: time, iso_timestamps: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_a_terminal_obeys_is_left() {
        assert_eq!(escape_line("plain é"), "plain é");
        assert_eq!(escape_line("a\u{1b}[2J\nb\u{9b}c"), "a\\u{1b}[2J b\\u{9b}c");
        assert_eq!(escape_text("a\u{1b}[2J\n\tb\r\n"), "a\\u{1b}[2J\n\tb\\u{d}\n");
        let steering = ('\0'..='\u{1f}').chain('\u{7f}'..='\u{9f}').chain('\u{202a}'..='\u{202e}');
        let marks = ['\u{200e}', '\u{200f}', '\u{61c}', '\u{2028}', '\u{2029}'];
        for c in steering.chain('\u{2066}'..='\u{2069}').chain(marks) {
            for shown in [escape_line(&c.to_string()), escape_text(&c.to_string())] {
                let kept = matches!(c, '\n' | '\t');
                assert!(kept || shown == format!("\\u{{{:x}}}", u32::from(c)), "{shown:?}");
            }
            // JSON escapes the lower ones itself.
            assert!(c < '\u{7f}' || !escape_json(&format!("\"{c}\"")).contains(c), "{c:?}");
        }
        for joined in ["\u{200d}", "\u{200c}", "👩\u{200d}🚀"] {
            assert_eq!((escape_line(joined), escape_text(joined)), (joined.into(), joined.into()));
        }
    }

    #[test]
    fn times_are_typed_in_two_ways() {
        let expected = EpochMs::new(1_773_583_200_000);
        for text in ["1773583200000", "2026-03-15T14:00:00Z", "2026-03-15T15:00:00+01:00"] {
            assert_eq!(parse_time(text), Ok(expected), "{text}");
        }
        assert!(parse_time("yesterday").is_err());
        assert_eq!(format_time(expected), "2026-03-15T14:00:00Z");
    }
}
