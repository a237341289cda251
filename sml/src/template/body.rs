//! The body of a section between its braces: its end, and the part of it that counts.
//!
//! It knows braces and tags, not the meaning of a tag. The lexer, the JSON form and the shell all find
//! the end of a body with [`body_end`], so that they agree.

use std::borrow::Cow;
use std::ops::Range;

/// Returns the offset of the brace that closes the body starting at the beginning of `text`, or `None`
/// if it is not closed. Single braces inside must balance; tags are skipped as a whole.
///
/// ```
/// let text = b"\n- {{grain.content}} {x}\n} FOOTER {}";
/// assert_eq!(grainstore_sml::body_end(text), Some(25));
/// assert_eq!(grainstore_sml::body_end(b"{{grain.content"), None);
/// ```
#[must_use]
pub fn body_end(text: &[u8]) -> Option<usize> {
    let (mut at, mut open) = (0_usize, 0_usize);
    loop {
        let step = match text.get(at)? {
            b'{' => match tag_len(text.get(at..).unwrap_or_default()) {
                Some(length) => length,
                None => {
                    open = open.saturating_add(1);
                    1
                }
            },
            b'}' => {
                let Some(less) = open.checked_sub(1) else { return Some(at) };
                open = less;
                1
            }
            _ => 1,
        };
        at = at.saturating_add(step);
    }
}

/// Returns the length of the tag at the beginning of `text`, braces included, or `None` if there is no
/// complete tag. A comment may contain anything but its end; other tags contain no braces.
pub(super) fn tag_len(text: &[u8]) -> Option<usize> {
    let (head, tail): (usize, &[u8]) = match text {
        [b'{', b'{', b'{', ..] => (3, b"}}}"),
        [b'{', b'{', ..] => (2, b"}}"),
        _ => return None,
    };
    let inside = text.get(head..)?;
    let length = if inside.first() == Some(&b'!') {
        inside.windows(tail.len()).position(|end| end == tail)?
    } else {
        inside.iter().position(|byte| matches!(byte, b'{' | b'}'))?
    };
    let ends = inside.get(length..)?.starts_with(tail);
    ends.then(|| head.saturating_add(length).saturating_add(tail.len()))
}

/// Returns the part of a raw body that counts, and its byte range in `raw`. A body of several lines
/// loses the newline after the opening brace and the indent before the closing one. A body of one line
/// is trimmed, and a newline is appended. A blank body is empty. Carriage returns are removed.
///
/// ```
/// use grainstore_sml::body_text;
///
/// assert_eq!(body_text(" a b "), ("a b\n".into(), 1..4));
/// assert_eq!(body_text("\n- x\n  "), ("- x\n".into(), 1..5));
/// ```
#[must_use]
pub fn body_text(raw: &str) -> (Cow<'_, str>, Range<usize>) {
    const BLANK: [char; 3] = [' ', '\t', '\r'];
    let cut = |part: &str, start: usize| (start, start.saturating_add(part.len()));
    if !raw.contains('\n') {
        let text = raw.trim_matches(BLANK);
        let (start, end) = cut(text, raw.len().saturating_sub(raw.trim_start_matches(BLANK).len()));
        let line = if text.is_empty() { String::new() } else { format!("{text}\n") };
        return (without_returns(Cow::Owned(line)), start..end);
    }
    let first = raw.trim_start_matches(BLANK);
    let text = first.strip_prefix('\n').unwrap_or(raw);
    let start = raw.len().saturating_sub(text.len());
    let last = text.rfind('\n').map_or(0, |newline| newline.saturating_add(1));
    let indent = text.get(last..).is_some_and(|line| line.trim_matches(BLANK).is_empty());
    let text = if indent { text.get(..last).unwrap_or_default() } else { text };
    let (start, end) = cut(text, start);
    (without_returns(Cow::Borrowed(text)), start..end)
}

fn without_returns(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.contains('\r') { Cow::Owned(text.replace('\r', "")) } else { text }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_body_ends_at_the_brace_that_closes_it() {
        for (text, end) in [
            ("}", Some(0)),
            ("a}b", Some(1)),
            ("{x} {}}", Some(6)),
            ("{{grain.content}}}", Some(17)),
            ("{{! a } brace }}}", Some(16)),
            ("{ {{grain.content}} }}", Some(21)),
            ("{{{grain.content}}}}", Some(19)),
            ("\"}\"", Some(1)),
            ("", None),
            ("{", None),
            ("{}", None),
            ("{{x}", None),
            ("{{x {{y}} }", None),
            ("{{! never closed }", None),
        ] {
            assert_eq!(body_end(text.as_bytes()), end, "{text:?}");
        }
    }

    #[test]
    fn a_body_is_what_stands_on_its_lines() {
        for (raw, body) in [
            ("", ""),
            ("   ", ""),
            (" a b ", "a b\n"),
            ("\n", ""),
            ("\n  ", ""),
            ("\n\n  ", "\n"),
            ("\n- x\n  ", "- x\n"),
            ("  \n  - x\n", "  - x\n"),
            ("- x\n- y", "- x\n- y"),
            ("\r\n- x\r\n  ", "- x\n"),
            ("\n \n", " \n"),
            ("\nx  }", "x  }"),
        ] {
            assert_eq!(body_text(raw).0, body, "{raw:?}");
        }
    }

    #[test]
    fn the_place_of_a_body_is_that_of_its_text() {
        for (raw, body) in [(" a b ", "a b"), ("\n- x\n  ", "- x\n"), ("a\nb", "a\nb"), (" ", "")] {
            assert_eq!(raw.get(body_text(raw).1), Some(body), "{raw:?}");
        }
    }

    proptest! {
        #[test]
        fn a_body_on_lines_of_its_own_stays_as_it_is(raw in "[a{} \t\r\n!#é]{0,30}") {
            let (body, _) = body_text(&raw);
            let again = format!("\n{body}");
            prop_assert_eq!(&body_text(&again).0, &body);
        }
    }
}
