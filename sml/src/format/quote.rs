//! Text between the double quotes of JSON, which are quotes of YAML too.

use std::borrow::Cow;
use std::fmt::Write;

/// Writes the text in quotes. Beside what JSON demands, every character that acts on a terminal or on
/// the order of what is read is escaped, so that the quotes hold whatever the text says.
pub(super) fn quoted(out: &mut String, text: &str) {
    quoted_with(out, text, |out, c| {
        if acts(c) {
            // Writing to a String cannot fail; all that act lie below U+10000.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    });
}

/// Writes the text in quotes; `other` writes what is neither a quote, a backslash, a newline, a return
/// nor a tab.
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

/// Controls, line separators, bidirectional controls, the byte order mark, and the two
/// noncharacters YAML has no place for.
fn acts(c: char) -> bool {
    c.is_control()
        || is_bidi(c)
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// The characters that reorder what is read, those CAL-E071 keeps out of queries.
pub(super) fn is_bidi(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// What no text format shows: controls, what reorders what is read, separators of lines and paragraphs.
/// Joiners stay: languages and emoji need them.
pub(super) fn is_hidden(c: char) -> bool {
    c.is_control() || is_bidi(c) || matches!(c, '\u{2028}' | '\u{2029}')
}

/// The text without these characters.
pub(super) fn without(text: &str, dropped: impl Fn(char) -> bool) -> Cow<'_, str> {
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
