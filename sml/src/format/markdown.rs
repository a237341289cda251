//! Markdown: `## Context: intent`, a bold heading per run of one type, a bullet per grain.
//!
//! Stored text cannot become a heading, list, link, HTML or emphasis: markup characters are escaped by
//! a backslash.

use super::line::{SentenceStyle, escape, is_followed_by_space, one_line, write_sentence};
use super::{ContextInfo, Element, Layout};
use crate::cancel::CancelCheck;
use crate::error::Error;
use crate::table;
use crate::text_builder::TextBuilder;

/// The Markdown format, as defined by CommonMark.
pub(super) struct Markdown;

const STYLE: SentenceStyle = SentenceStyle { show_names: true, special: is_markup };

impl Layout for Markdown {
    fn frame(&self, frame: &ContextInfo<'_>) -> Vec<String> {
        vec![head(frame)]
    }

    fn group(&self, first: &Element<'_>) -> String {
        format!("\n{}", heading(first))
    }

    fn element(&self, out: &mut String, element: &Element<'_>) {
        out.push_str("- ");
        write_sentence(out, &element.projection, &STYLE);
        out.push('\n');
    }

    fn document<'w>(
        &self,
        frame: &ContextInfo<'_>,
        elements: &[Element<'_>],
        _: usize,
        watch: CancelCheck<'w>,
    ) -> Result<TextBuilder<'w>, Error> {
        let mut page = TextBuilder::new(head(frame), watch);
        let types = elements.chunk_by(|one, next| one.group.grain_type == next.group.grain_type);
        for group in types {
            if !page.text.is_empty() {
                page.text.push('\n');
            }
            if let Some(first) = group.first() {
                page.text.push_str(&heading(first));
            }
            for element in group {
                self.element(&mut page.text, element);
                page.end_element()?;
            }
        }
        Ok(page)
    }
}

/// Returns the first line of an ASSEMBLE. A RECALL has none.
fn head(frame: &ContextInfo<'_>) -> String {
    let mut out = String::new();
    if frame.budget.is_some() {
        out.push_str("## Context");
        if let Some(intent) = frame.intent {
            out.push_str(": ");
            escape(&mut out, &one_line(intent), |text, at, c| {
                c == '#' || is_markup(text, at, c, false)
            });
        }
        out.push('\n');
    }
    out
}

/// Returns the heading of a type, such as `**Beliefs**`.
fn heading(first: &Element<'_>) -> String {
    let plural = table::rule_for(first.group.grain_type).map_or("", |row| row.plural);
    let mut letters = plural.chars();
    let initial = letters.next().map_or(' ', |c| c.to_ascii_uppercase());
    format!("**{initial}{}**\n", letters.as_str())
}

/// Returns `true` if a character is markup at its position in a bullet. `begins` is set if the text
/// begins the bullet.
pub(super) fn is_markup(text: &str, at: usize, c: char, begins: bool) -> bool {
    match c {
        '`' | '*' | '[' | ']' | '<' | '~' => true,
        '_' => !(is_word(before(text, at)) && is_word(after(text, at))),
        '#' | '>' | '-' | '+' | '=' | '|' => begins && at == 0,
        '.' | ')' => begins && is_followed_by_space(text, at) && is_number(text.get(..at)),
        _ => false,
    }
}

/// Returns `true` for digits, which with a following `.` or `)` would start an ordered list.
fn is_number(start: Option<&str>) -> bool {
    start.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

fn before(text: &str, at: usize) -> Option<char> {
    text.get(..at).and_then(|start| start.chars().next_back())
}

fn after(text: &str, at: usize) -> Option<char> {
    text.get(at + 1..).and_then(|rest| rest.chars().next())
}

fn is_word(c: Option<char>) -> bool {
    c.is_some_and(char::is_alphanumeric)
}
