//! Nodes to text: values put where their tags stand, escaped for the place.
//!
//! Only the text of the template itself is looked at to tell where a value stands; what a value says
//! never is, so it can neither open a tag nor leave one.

use std::borrow::Cow;

use super::parse::Node;
use super::value::Scope;
use crate::format::{escape_attribute, escape_text, one_line};

/// Grains that `{{#each}}` goes through at most.
pub const MAX_EACH: usize = 200;

/// Writes sections into a text.
pub(super) struct Writer<'w> {
    out: &'w mut String,
    /// Bytes beyond which nothing more is written: the text is too long by then.
    most: usize,
    markup: Markup,
}

/// Where in markup the text of a template is.
#[derive(Debug, Clone, Copy, Default)]
struct Markup {
    place: Place,
    /// Whether the tag that stands open does so between quotes.
    quoted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    #[default]
    Text,
    /// Between quotes in text.
    Quoted,
    /// Between `<` and `>`.
    Tag,
    /// Between quotes in a tag.
    Attribute,
    /// Between single quotes in a tag.
    Single,
    /// In a tag that begins with `<!`, where quotes are signs of their own.
    Remark,
    /// Between `<!--` and `-->`.
    Comment,
}

impl<'w> Writer<'w> {
    /// A writer behind what there is, for a text of this many bytes at most.
    pub(super) fn new(out: &'w mut String, most: usize) -> Self {
        Self { out, most, markup: Markup::default() }
    }

    /// Writes nodes.
    pub(super) fn nodes(&mut self, nodes: &[Node], scope: &Scope<'_>) {
        for node in nodes {
            if self.out.len() > self.most {
                return;
            }
            match node {
                Node::Text(text) => {
                    self.markup.pass(text);
                    self.out.push_str(text);
                }
                Node::Value(variable) => {
                    if let Some(value) = scope.value(*variable) {
                        self.value(value.as_str());
                    }
                }
                Node::If { variable, without, nodes } => {
                    if scope.holds(*variable) != *without {
                        self.nodes(nodes, scope);
                    }
                }
                Node::Each { without: true, nodes } => {
                    if scope.grains().next().is_none() {
                        self.nodes(nodes, scope);
                    }
                }
                Node::Each { without: false, nodes } => {
                    for grain in scope.grains().take(MAX_EACH) {
                        self.nodes(nodes, &scope.of_grain(grain));
                    }
                }
            }
        }
    }

    fn value(&mut self, value: &str) {
        // No value begins a line that the template has not.
        let value = one_line(value);
        match self.markup.place {
            Place::Text => escape_text(self.out, &value),
            Place::Quoted | Place::Attribute => escape_attribute(self.out, &value),
            Place::Single | Place::Remark | Place::Comment => {
                escape_attribute(self.out, &without_ends(&value));
            }
            Place::Tag => self.out.extend(value.chars().map(of_name)),
        }
    }
}

impl Markup {
    /// Goes on behind a text of the template.
    fn pass(&mut self, text: &str) {
        let mut chars = text.char_indices();
        while let Some((at, c)) = chars.next() {
            // A value may follow where the text ends.
            let rest = chars.as_str();
            match (self.place, c) {
                (Place::Text | Place::Quoted, '<') if opens_tag(rest.chars().next()) => {
                    let place = match rest {
                        rest if rest.starts_with("!--") => Place::Comment,
                        rest if rest.starts_with('!') => Place::Remark,
                        _ => Place::Tag,
                    };
                    *self = Self { place, quoted: self.place == Place::Quoted };
                }
                (Place::Text, '"') => self.place = Place::Quoted,
                (Place::Quoted, '"' | '\n') => self.place = Place::Text,
                (Place::Tag | Place::Remark, '>') => self.leave(),
                (Place::Comment, '>') if text.get(..at).is_some_and(|up| up.ends_with("--")) => {
                    self.leave();
                }
                (Place::Tag, '"') => self.place = Place::Attribute,
                (Place::Tag, '\'') => self.place = Place::Single,
                (Place::Attribute, '"') | (Place::Single, '\'') => self.place = Place::Tag,
                _ => {}
            }
        }
    }

    fn leave(&mut self) {
        self.place = if self.quoted { Place::Quoted } else { Place::Text };
    }
}

/// Whether a `<` before this opens a tag; one before a space, a digit or another sign is a sign of its own.
fn opens_tag(next: Option<char>) -> bool {
    let sign = |next: char| {
        next.is_whitespace() || next.is_ascii_digit() || matches!(next, '=' | '<' | '-')
    };
    next.is_none_or(|next| !sign(next))
}

/// What stands in a tag without quotes: a sign that no name and no bare value has is a `_`.
fn of_name(c: char) -> char {
    let stays = c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    if stays { c } else { '_' }
}

/// A value without what would end a tag, a comment, or a value in single quotes.
fn without_ends(value: &str) -> Cow<'_, str> {
    if value.contains(['>', '\'']) {
        Cow::Owned(value.replace('>', "&gt;").replace('\'', "&apos;"))
    } else {
        Cow::Borrowed(value)
    }
}
