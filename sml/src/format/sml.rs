//! SML: one flat element per grain, in one envelope (CAL 10.4).
//!
//! It knows projections only, not grains. All text is written through [`escape_text`] or
//! [`escape_attribute`].

use std::borrow::Cow;

use super::quote::{is_hidden, remove_chars};
use super::{ContextInfo, Element, Layout, groups};
use crate::cancel::CancelCheck;
use crate::error::Error;
use crate::project::Projection;
use crate::text_builder::TextBuilder;

/// The empty line after the opening tag and after each group.
const GAP: &str = "\n";
/// The last line.
const CLOSE: &str = "</context>\n";

/// The SML 1.0 format.
pub(super) struct Sml;

impl Layout for Sml {
    fn frame(&self, frame: &ContextInfo<'_>) -> Vec<String> {
        vec![open(frame.intent), GAP.to_owned(), CLOSE.to_owned()]
    }

    fn group(&self, _: &Element<'_>) -> String {
        GAP.to_owned()
    }

    fn element(&self, out: &mut String, element: &Element<'_>) {
        tag(out, &element.projection);
    }

    fn document<'w>(
        &self,
        frame: &ContextInfo<'_>,
        elements: &[Element<'_>],
        _: usize,
        watch: CancelCheck<'w>,
    ) -> Result<TextBuilder<'w>, Error> {
        let mut page = TextBuilder::new(open(frame.intent), watch);
        page.text.push_str(GAP);
        for group in groups(elements) {
            for element in group {
                self.element(&mut page.text, element);
                page.end_element()?;
            }
            page.text.push_str(GAP);
        }
        page.text.push_str(CLOSE);
        Ok(page)
    }
}

/// Returns the first line.
fn open(intent: Option<&str>) -> String {
    let mut out = String::from("<context");
    if let Some(intent) = intent {
        attribute(&mut out, "intent", intent);
    }
    out.push_str(">\n");
    out
}

/// Appends one element: one line, or more if its text has several lines.
pub(crate) fn tag(out: &mut String, projection: &Projection<'_>) {
    let name = projection.grain_type.name();
    out.push_str("  <");
    out.push_str(name);
    for (name, cell) in &projection.attributes {
        attribute(out, name, cell.as_str());
    }
    out.push('>');
    escape_text(out, &projection.text);
    out.push_str("</");
    out.push_str(name);
    out.push_str(">\n");
}

fn attribute(out: &mut String, name: &str, value: &str) {
    out.push(' ');
    out.push_str(name);
    out.push_str("=\"");
    escape_attribute(out, value);
    out.push('"');
}

/// Escapes text between tags: `<`, any `&` that would read as an escape, and no control characters
/// except newline and tab.
pub(crate) fn escape_text(out: &mut String, text: &str) {
    escape(out, &without_controls(text), |c| match c {
        '<' => Some("&lt;"),
        _ => None,
    });
}

/// Escapes text between quotes: like [`escape_text`], on one line, with quotes escaped.
pub(crate) fn escape_attribute(out: &mut String, text: &str) {
    escape(out, &without_controls(text), |c| match c {
        '<' => Some("&lt;"),
        '"' => Some("&quot;"),
        '\n' | '\t' => Some(" "),
        _ => None,
    });
}

/// Entity tails. An `&` before one of them is escaped.
const ESCAPE_TAILS: [&str; 3] = ["lt;", "amp;", "quot;"];

fn escape(out: &mut String, text: &str, replacement: impl Fn(char) -> Option<&'static str>) {
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let rest = chars.as_str();
        match replacement(c) {
            Some(replacement) => out.push_str(replacement),
            None if c == '&' && ESCAPE_TAILS.iter().any(|tail| rest.starts_with(tail)) => {
                out.push_str("&amp;");
            }
            None => out.push(c),
        }
    }
}

/// Removes C0, DEL and C1 controls except newline and tab, bidirectional controls, and line and
/// paragraph separators.
fn without_controls(text: &str) -> Cow<'_, str> {
    remove_chars(text, |c| is_hidden(c) && c != '\n' && c != '\t')
}

#[cfg(test)]
mod tests {
    use grainstore_format::GrainType;

    use super::*;

    fn belief<'a>(subject: &'a str, text: &'a str) -> Projection<'a> {
        Projection {
            grain_type: GrainType::Belief,
            attributes: vec![("subject".into(), subject.into())],
            text: Cow::Borrowed(text),
            chosen: false,
        }
    }

    #[test]
    fn text_cannot_open_a_tag_or_read_as_an_escape() {
        for (text, written) in [
            ("</context>", "&lt;/context>"),
            ("a < b && c > d", "a &lt; b && c > d"),
            ("&lt;", "&amp;lt;"),
            ("&amp;lt;", "&amp;amp;lt;"),
            ("&quot;&gt;&#60;", "&amp;quot;&gt;&#60;"),
            ("&\u{0}lt;", "&amp;lt;"),
            ("\u{1b}[2Jx\u{7f}\u{9b}y\r\n\tz", "[2Jxy\n\tz"),
            ("\u{202e}\u{2066}é\u{2028}\u{2029}語\u{200d}", "é語\u{200d}"),
            ("say \"hi\"", "say \"hi\""),
        ] {
            let mut out = String::new();
            escape_text(&mut out, text);
            assert_eq!(out, written, "{text:?}");
        }
    }

    #[test]
    fn attributes_stay_on_one_line_and_inside_their_quotes() {
        for (text, written) in [
            ("a\" b=\"c", "a&quot; b=&quot;c"),
            ("a\nb\tc\r\n", "a b c "),
            ("<&quot;&", "&lt;&amp;quot;&"),
        ] {
            let mut out = String::new();
            escape_attribute(&mut out, text);
            assert_eq!(out, written, "{text:?}");
        }
    }

    #[test]
    fn elements_carry_their_attributes_in_order() {
        let mut out = String::new();
        tag(&mut out, &belief("al\nice", "prefers <b>"));
        assert_eq!(out, "  <belief subject=\"al ice\">prefers &lt;b></belief>\n");
    }
}
