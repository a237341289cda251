//! What the formats of one line a grain share: values on one line, and a sentence whose parts cannot
//! be taken for one another.
//!
//! A sentence is `text`, `lead: text` or either with ` (list)` behind. A sign in a value that could
//! be read as one between the parts stands behind a backslash; a reader takes a backslash before an
//! ASCII punctuation mark as an escape, as CommonMark does, and any other as itself.

use std::borrow::Cow;

use grainstore_format::GrainType;

use super::quote::is_hidden;
use crate::project::Projection;
use crate::table;

/// What beside the signs of a sentence a format needs escaped: the text, where in it, and whether the
/// text begins the sentence.
pub(super) type Special = fn(&str, usize, char, bool) -> bool;

/// Text on one line, without outer space: newlines and tabs are spaces, other controls, separators and
/// those that reorder text are dropped.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    let spaces = |c: char| matches!(c, '\n' | '\t');
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text.trim());
    }
    let kept = text.chars().filter(|c| spaces(*c) || !is_hidden(*c));
    let line: String = kept.map(|c| if spaces(c) { ' ' } else { c }).collect();
    Cow::Owned(line.trim().to_owned())
}

/// How a format words its sentences.
pub(super) struct Style {
    /// Whether the attributes of a belief stand with their names.
    pub(super) names: bool,
    pub(super) special: Special,
}

/// Adds the sentence of a grain. Beliefs begin with their subject, other types with their first
/// attribute and a colon; what is left stands in the list. What a query chose stands there by name.
pub(super) fn sentence(out: &mut String, shown: &Projection<'_>, style: &Style) {
    let first = table::lead(shown.grain_type).filter(|_| !shown.chosen);
    let belief = shown.grain_type == GrainType::Belief && !shown.chosen;
    let (mut lead, mut listed) = (None, Vec::new());
    for (name, cell) in &shown.attributes {
        if first.is_some_and(|first| first == name) {
            lead = Some(one_line(cell.as_str()));
        } else {
            let named = shown.chosen || table::is_extra(name) || (belief && style.names);
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

fn list(out: &mut String, listed: &[(Option<&Cow<'_, str>>, Cow<'_, str>)], style: &Style) {
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

/// Whether the sign reads as the end of a lead.
fn ends_lead(text: &str, at: usize, c: char) -> bool {
    c == ':' && is_followed_by_space(text, at)
}

/// Whether a space or the end follows the sign, which is one byte long.
pub(super) fn is_followed_by_space(text: &str, at: usize) -> bool {
    text.get(at + 1..).is_none_or(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// What an `&` must not stand before, or a reader would take it for an escape of ours.
const TAG_ESCAPES: [&str; 2] = ["lt;", "amp;"];

/// Whether a `<` before this could begin a tag, or what models take for one (`<system>`, `</context>`,
/// `<|im_start|>`); a comparison and an arrow could not.
fn opens_tag(next: Option<char>) -> bool {
    next.is_some_and(|next| {
        !next.is_whitespace() && !next.is_ascii_digit() && !matches!(next, '=' | '-' | '<')
    })
}

/// Adds the text, a `<` that could begin a tag as `&lt;`, a backslash before each character that `special` names and each backslash that
/// would read as an escape.
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
