//! SML: one flat element a grain, inside one envelope (`cal.md` section 8).
//!
//! Knows projections only, not grains, and alone decides what stored text looks like in markup:
//! everything written goes through [`escape_text`] or [`escape_attribute`].

use std::borrow::Cow;

use grainstore_format::GrainType;

use crate::item::{Item, Level};
use crate::project::{Projection, project};
use crate::time::Clock;

/// The empty line after the opening tag and after each group.
pub(crate) const GAP: &str = "\n";
/// The last line.
pub(crate) const CLOSE: &str = "</context>\n";

/// What stands together without an empty line: a source, cut where the type changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) source: usize,
    pub(crate) grain_type: GrainType,
}

/// Items as one SML text without a budget, for `RECALL .. AS sml`. Items that must not be shown
/// are left out; without any, the envelope is empty.
#[must_use]
pub fn render(items: &[Item], level: Level, clock: &Clock) -> String {
    let shown = items.iter().filter_map(|item| project(item, level, clock));
    document(None, shown.map(|shown| (Group { source: 0, grain_type: shown.grain_type }, shown)))
}

/// The whole text: envelope, elements, and the empty lines between groups.
pub(crate) fn document<'a>(
    intent: Option<&str>,
    elements: impl Iterator<Item = (Group, Projection<'a>)>,
) -> String {
    let mut out = open(intent);
    out.push_str(GAP);
    let mut last = None;
    for (group, projection) in elements {
        if last.is_some_and(|last| last != group) {
            out.push_str(GAP);
        }
        last = Some(group);
        element(&mut out, &projection);
    }
    if last.is_some() {
        out.push_str(GAP);
    }
    out.push_str(CLOSE);
    out
}

/// The first line.
pub(crate) fn open(intent: Option<&str>) -> String {
    let mut out = String::from("<context");
    if let Some(intent) = intent {
        attribute(&mut out, "intent", intent);
    }
    out.push_str(">\n");
    out
}

/// One element on lines of its own: one line, unless the text has several.
pub(crate) fn element(out: &mut String, projection: &Projection<'_>) {
    let name = projection.grain_type.name();
    out.push_str("  <");
    out.push_str(name);
    for (name, value) in &projection.attributes {
        attribute(out, name, value);
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

/// Text between tags: no `<`, nothing that reads as an escape, no control characters but newline
/// and tab.
fn escape_text(out: &mut String, text: &str) {
    escape(out, &without_controls(text), |c| match c {
        '<' => Some("&lt;"),
        _ => None,
    });
}

/// Text between quotes: as [`escape_text`], on one line, and no quote.
fn escape_attribute(out: &mut String, text: &str) {
    escape(out, &without_controls(text), |c| match c {
        '<' => Some("&lt;"),
        '"' => Some("&quot;"),
        '\n' | '\t' => Some(" "),
        _ => None,
    });
}

/// What an `&` must not stand before, or a reader would take it for an escape.
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

/// The text without C0, DEL and C1, newline and tab kept.
fn without_controls(text: &str) -> Cow<'_, str> {
    let dropped = |c: char| c.is_control() && c != '\n' && c != '\t';
    if text.contains(dropped) {
        Cow::Owned(text.chars().filter(|c| !dropped(*c)).collect())
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use grainstore_format::EpochMs;

    use super::*;

    fn belief<'a>(subject: &'a str, text: &'a str) -> Projection<'a> {
        Projection {
            grain_type: GrainType::Belief,
            attributes: vec![("subject", Cow::Borrowed(subject))],
            text: Cow::Borrowed(text),
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
            ("\u{202e}\u{2066}é語", "\u{202e}\u{2066}é語"),
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
    fn groups_are_sources_cut_where_the_type_changes() {
        let element = |source, grain_type, text| {
            let projection = Projection { grain_type, attributes: Vec::new(), text };
            (Group { source, grain_type }, projection)
        };
        let text = document(
            Some("a \"b\""),
            [
                element(0, GrainType::Belief, Cow::Borrowed("1")),
                element(0, GrainType::Belief, Cow::Borrowed("2")),
                element(0, GrainType::Goal, Cow::Borrowed("3")),
                element(1, GrainType::Goal, Cow::Borrowed("4")),
                element(1, GrainType::Belief, Cow::Borrowed("")),
            ]
            .into_iter(),
        );
        let expected = "<context intent=\"a &quot;b&quot;\">\n\n  <belief>1</belief>\n  \
                        <belief>2</belief>\n\n  <goal>3</goal>\n\n  <goal>4</goal>\n\n  \
                        <belief></belief>\n\n</context>\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn an_empty_context_is_an_envelope_with_one_empty_line() {
        let none = std::iter::empty;
        assert_eq!(document(None, none()), "<context>\n\n</context>\n");
        assert_eq!(document(Some(""), none()), "<context intent=\"\">\n\n</context>\n");
        let clock = Clock { now: EpochMs::new(0), iso_timestamps: false };
        assert_eq!(render(&[], Level::Full, &clock), "<context>\n\n</context>\n");
    }

    #[test]
    fn elements_carry_their_attributes_in_order() {
        let mut out = String::new();
        element(&mut out, &belief("al\nice", "prefers <b>"));
        assert_eq!(out, "  <belief subject=\"al ice\">prefers &lt;b></belief>\n");
    }
}
