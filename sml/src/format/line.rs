//! Shared by the formats with one line per grain: text on one line, and sentences whose parts are
//! unambiguous.
//!
//! A sentence is `text`, `lead: text`, or either followed by ` (list)`. A character in a value that
//! could be read as a delimiter between these parts is escaped by a backslash. As in CommonMark, a
//! backslash before an ASCII punctuation mark is an escape, and any other backslash is literal.

use std::borrow::Cow;

use grainstore_format::GrainType;

use super::quote::is_hidden;
use crate::project::Projection;
use crate::table;

/// Returns `true` if a format needs a character escaped, in addition to the delimiters of a sentence.
/// The arguments are the text, the byte offset, the character, and whether the text begins the
/// sentence.
pub(super) type EscapeRule = fn(&str, usize, char, bool) -> bool;

/// Puts text on one line and trims it. Newlines and tabs become spaces; other control characters, line
/// separators and bidirectional controls are dropped.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    let spaces = |c: char| matches!(c, '\n' | '\t');
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text.trim());
    }
    let kept = text.chars().filter(|c| spaces(*c) || !is_hidden(*c));
    let line: String = kept.map(|c| if spaces(c) { ' ' } else { c }).collect();
    Cow::Owned(line.trim().to_owned())
}

/// The style of a format's sentences.
pub(super) struct SentenceStyle {
    /// `true` if the attributes of a belief are listed with their names.
    pub(super) show_names: bool,
    pub(super) special: EscapeRule,
}

/// Appends the sentence of a grain. Beliefs begin with their subject, other types with their first
/// attribute and a colon; the other attributes follow in the list. Attributes chosen by a query are
/// listed with their names.
pub(super) fn write_sentence(out: &mut String, shown: &Projection<'_>, style: &SentenceStyle) {
    let first = table::lead_attribute(shown.grain_type).filter(|_| !shown.chosen);
    let belief = shown.grain_type == GrainType::Belief && !shown.chosen;
    let (mut lead, mut listed) = (None, Vec::new());
    for (name, cell) in &shown.attributes {
        if first.is_some_and(|first| first == name) {
            lead = Some(one_line(cell.as_str()));
        } else {
            let named = shown.chosen
                || table::is_full_level_attribute(name)
                || (belief && style.show_names);
            listed.push((named.then_some(name), one_line(cell.as_str())));
        }
    }
    let mut text = one_line(&shown.text);
    if let (true, Some(subject)) = (belief, &lead) {
        text = Cow::Owned(format!("{subject} {text}").trim().to_owned());
        lead = None;
    }
    if let Some(lead) = &lead {
        escape(out, lead, |text, at, c| {
            ends_lead(text, at, c) || (style.special)(text, at, c, true)
        });
        out.push_str(": ");
    }
    let begins = lead.is_none();
    let leads = shown.grain_type != GrainType::Belief && begins;
    let lists = !listed.is_empty();
    escape(out, &text, |text, at, c| {
        (leads && ends_lead(text, at, c))
            || (!lists && c == ')' && at + 1 == text.len())
            || (style.special)(text, at, c, begins)
    });
    list(out, &listed, style);
}

fn list(out: &mut String, listed: &[(Option<&Cow<'_, str>>, Cow<'_, str>)], style: &SentenceStyle) {
    for (at, (name, value)) in listed.iter().enumerate() {
        out.push_str(if at == 0 { " (" } else { ", " });
        if let Some(name) = name {
            out.push_str(name);
            out.push_str(": ");
        }
        escape(out, value, |text, at, c| {
            matches!(c, '(' | ')')
                || (c == ',' && is_followed_by_space(text, at))
                || ends_lead(text, at, c)
                || (style.special)(text, at, c, false)
        });
    }
    if !listed.is_empty() {
        out.push(')');
    }
}

/// Returns `true` if this colon reads as the end of a lead.
fn ends_lead(text: &str, at: usize, c: char) -> bool {
    c == ':' && is_followed_by_space(text, at)
}

/// Returns `true` if a space or the end of the text follows this one-byte character.
pub(super) fn is_followed_by_space(text: &str, at: usize) -> bool {
    text.get(at + 1..).is_none_or(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Entity tails. An `&` before one of them is escaped, because it would read as an escape written here.
const TAG_ESCAPES: [&str; 2] = ["lt;", "amp;"];

/// Returns `true` if a `<` before this character could open a tag or something models treat as one
/// (`<system>`, `</context>`, `<|im_start|>`), unlike a comparison or an arrow.
fn opens_tag(next: Option<char>) -> bool {
    next.is_some_and(|next| {
        !next.is_whitespace() && !next.is_ascii_digit() && !matches!(next, '=' | '-' | '<')
    })
}

/// Appends the text with escapes: `&lt;` for a `<` that could open a tag, and a backslash before each
/// character for which `special` returns `true` and before each backslash that would read as an escape.
pub(super) fn escape(out: &mut String, text: &str, special: impl Fn(&str, usize, char) -> bool) {
    for (at, c) in text.char_indices() {
        let next = text.get(at + c.len_utf8()..).and_then(|rest| rest.chars().next());
        if c == '<' && opens_tag(next) {
            out.push_str("&lt;");
            continue;
        }
        if c == '&'
            && TAG_ESCAPES
                .iter()
                .any(|tail| text.get(at + 1..).is_some_and(|rest| rest.starts_with(tail)))
        {
            out.push_str("&amp;");
            continue;
        }
        let escapes = c == '\\' && next.is_none_or(|next| next.is_ascii_punctuation());
        if escapes || special(text, at, c) {
            out.push('\\');
        }
        out.push(c);
    }
}
