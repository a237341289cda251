//! Writes nodes as text: values replace their tags, escaped for the context they are in.
//!
//! The context is determined from the text of the template alone. Values are never inspected for it, so
//! a value can neither open nor leave a tag.

use std::borrow::Cow;

use super::parse::Node;
use super::value::Scope;
use crate::format::{escape_attribute, escape_text, one_line};

/// Maximum number of grains that `{{#each}}` of a [`Template`](crate::Template) iterates over (CAL 10.8).
pub const MAX_EACH_GRAINS: usize = 200;

/// Writes sections to a text.
pub(super) struct TemplateWriter<'w> {
    out: &'w mut String,
    /// The length in bytes beyond which writing stops, because the text is over its limit by then.
    max_bytes: usize,
    markup: MarkupState,
}

/// The markup state after the template text written so far.
#[derive(Debug, Clone, Copy, Default)]
struct MarkupState {
    place: MarkupContext,
    /// `true` if the current tag is inside quoted text, so that its end returns there.
    quoted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum MarkupContext {
    #[default]
    Text,
    /// Between quotes in text.
    Quoted,
    /// Between `<` and `>`.
    Tag,
    /// Between double quotes in a tag.
    Attribute,
    /// Between single quotes in a tag.
    SingleQuoted,
    /// In a tag that begins with `<!`, in which quotes have no meaning.
    Declaration,
    /// Between `<!--` and `-->`.
    Comment,
}

impl<'w> TemplateWriter<'w> {
    /// Creates a writer that appends to `out`, up to a length of `most` bytes.
    pub(super) fn new(out: &'w mut String, most: usize) -> Self {
        Self { out, max_bytes: most, markup: MarkupState::default() }
    }

    /// Writes nodes.
    pub(super) fn nodes(&mut self, nodes: &[Node], scope: &Scope<'_>) {
        for node in nodes {
            if self.out.len() > self.max_bytes {
                return;
            }
            match node {
                Node::Text(text) => {
                    self.markup.advance(text);
                    self.out.push_str(text);
                }
                Node::Value(variable) => {
                    if let Some(value) = scope.value(*variable) {
                        self.value(value.as_str());
                    }
                }
                Node::If { variable, without, nodes } => {
                    if scope.is_truthy(*variable) != *without {
                        self.nodes(nodes, scope);
                    }
                }
                Node::Each { without: true, nodes } => {
                    if scope.grains().next().is_none() {
                        self.nodes(nodes, scope);
                    }
                }
                Node::Each { without: false, nodes } => {
                    for grain in scope.grains().take(MAX_EACH_GRAINS) {
                        self.nodes(nodes, &scope.at_grain(grain));
                    }
                }
            }
        }
    }

    fn value(&mut self, value: &str) {
        // A value never starts a new line.
        let value = one_line(value);
        match self.markup.place {
            MarkupContext::Text => escape_text(self.out, &value),
            MarkupContext::Quoted | MarkupContext::Attribute => escape_attribute(self.out, &value),
            MarkupContext::SingleQuoted | MarkupContext::Declaration | MarkupContext::Comment => {
                escape_attribute(self.out, &escape_terminators(&value));
            }
            MarkupContext::Tag => self.out.extend(value.chars().map(name_char)),
        }
    }
}

impl MarkupState {
    /// Advances the state over a literal of the template.
    fn advance(&mut self, text: &str) {
        let mut chars = text.char_indices();
        while let Some((at, c)) = chars.next() {
            // At the end of the literal a value may follow.
            let rest = chars.as_str();
            match (self.place, c) {
                (MarkupContext::Text | MarkupContext::Quoted, '<')
                    if opens_tag(rest.chars().next()) =>
                {
                    let place = match rest {
                        rest if rest.starts_with("!--") => MarkupContext::Comment,
                        rest if rest.starts_with('!') => MarkupContext::Declaration,
                        _ => MarkupContext::Tag,
                    };
                    *self = Self { place, quoted: self.place == MarkupContext::Quoted };
                }
                (MarkupContext::Text, '"') => self.place = MarkupContext::Quoted,
                (MarkupContext::Quoted, '"' | '\n') => self.place = MarkupContext::Text,
                (MarkupContext::Tag | MarkupContext::Declaration, '>') => self.leave(),
                (MarkupContext::Comment, '>')
                    if text.get(..at).is_some_and(|up| up.ends_with("--")) =>
                {
                    self.leave();
                }
                (MarkupContext::Tag, '"') => self.place = MarkupContext::Attribute,
                (MarkupContext::Tag, '\'') => self.place = MarkupContext::SingleQuoted,
                (MarkupContext::Attribute, '"') | (MarkupContext::SingleQuoted, '\'') => {
                    self.place = MarkupContext::Tag;
                }
                _ => {}
            }
        }
    }

    fn leave(&mut self) {
        self.place = if self.quoted { MarkupContext::Quoted } else { MarkupContext::Text };
    }
}

/// Returns `true` if a `<` before this character opens a tag: not before a space, a digit, `=`, `<` or
/// `-`.
fn opens_tag(next: Option<char>) -> bool {
    let sign = |next: char| {
        next.is_whitespace() || next.is_ascii_digit() || matches!(next, '=' | '<' | '-')
    };
    next.is_none_or(|next| !sign(next))
}

/// Replaces a character that neither a name nor an unquoted value may have by `_`.
fn name_char(c: char) -> char {
    let stays = c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    if stays { c } else { '_' }
}

/// Escapes what would end a tag, a comment or a single-quoted value.
fn escape_terminators(value: &str) -> Cow<'_, str> {
    if value.contains(['>', '\'']) {
        Cow::Owned(value.replace('>', "&gt;").replace('\'', "&apos;"))
    } else {
        Cow::Borrowed(value)
    }
}
