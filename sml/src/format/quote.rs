//! Text in the double quotes of JSON, which are valid in YAML too.

use std::borrow::Cow;
use std::fmt::Write;

/// Appends the text in quotes. In addition to what JSON requires, every character that affects a
/// terminal or the reading order is escaped.
pub(super) fn quoted(out: &mut String, text: &str) {
    quoted_with(out, text, |out, c| {
        if needs_escape(c) {
            // Writing to a String cannot fail. All escaped characters are below U+10000.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    });
}

/// Appends the text in quotes. `other` writes every character except quotes, backslashes, newlines,
/// carriage returns and tabs.
pub(super) fn quoted_with(out: &mut String, text: &str, other: impl Fn(&mut String, char)) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => other(out, c),
        }
    }
    out.push('"');
}

/// Returns `true` for controls, line separators, bidirectional controls, the byte-order mark, and the
/// two noncharacters YAML does not allow.
fn needs_escape(c: char) -> bool {
    c.is_control()
        || is_bidi(c)
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Returns `true` for bidirectional controls, which CAL-E071 forbids in queries.
pub(super) fn is_bidi(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns `true` for characters no text format shows: controls, bidirectional controls, line and
/// paragraph separators. Joiners are kept: some languages and emoji need them.
pub(super) fn is_hidden(c: char) -> bool {
    c.is_control() || is_bidi(c) || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Removes the characters for which `dropped` returns `true`.
pub(super) fn remove_chars(text: &str, dropped: impl Fn(char) -> bool) -> Cow<'_, str> {
    match text.contains(&dropped) {
        true => Cow::Owned(text.chars().filter(|c| !dropped(*c)).collect()),
        false => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_whatever_the_text_says_and_read_back() {
        for (text, written) in [
            ("", r#""""#),
            ("a\"b\\", r#""a\"b\\""#),
            ("\r\n\t", r#""\r\n\t""#),
            ("\u{1b}[2J\u{9b}\u{7f}", r#""\u001b[2J\u009b\u007f""#),
            ("\u{202e}x\u{2069}\u{2028}", r#""\u202ex\u2069\u2028""#),
            ("\u{feff}\u{ffff}é🎉", r#""\ufeff\uffffé🎉""#),
        ] {
            let mut out = String::new();
            quoted(&mut out, text);
            assert_eq!(out, written);
            assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
        }
    }
}
