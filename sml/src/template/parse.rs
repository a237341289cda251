//! Parses the text of one section into nodes, in the subset of Mustache that templates use (CAL 10.2).
//!
//! Every error in the text of a template is found here, independent of any grain.

use std::ops::Range;

use super::body::tag_len;
use super::variable::Variable;
use crate::error::{Error, ErrorKind};

/// The deepest nesting of section tags in a [`Template`](crate::Template) (CAL 10.8).
pub const MAX_DEPTH: usize = 5;

/// A part of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    /// Literal text.
    Text(String),
    /// `{{name}}`.
    Value(Variable),
    /// `{{#name}}`: if the variable has a value; inverted, `{{^name}}`: if it has none.
    If { variable: Variable, without: bool, nodes: Vec<Node> },
    /// `{{#each}}`: once per grain; inverted, `{{^each}}`: once if there are no grains.
    Each { without: bool, nodes: Vec<Node> },
}

/// Parses the text of a section. `allow_each` is set if `{{#each}}` is allowed in it.
///
/// # Errors
/// `CAL-E090`, `CAL-E091`, `CAL-E093` and `CAL-E094`, each with its range in the text.
pub(super) fn parse(text: &str, may_list: bool) -> Result<Vec<Node>, Error> {
    let mut parser =
        Parser { text, at: 0, allow_each: may_list, open: Vec::new(), nodes: Vec::new() };
    while parser.step()? {}
    match parser.open.pop() {
        None => Ok(parser.nodes),
        Some(open) => {
            let message = format!("{{{{{}{}}}}} is never closed", open.sign(), open.name);
            Err(Error::in_template(ErrorKind::Unbalanced, message, open.place)
                .with_hint(format!("write {{{{/{}}}}} behind it", open.name)))
        }
    }
}

/// Returns `true` if one of the nodes, at any depth, uses this variable.
pub(super) fn mentions(nodes: &[Node], wanted: Variable) -> bool {
    nodes.iter().any(|node| match node {
        Node::Text(_) => false,
        Node::Value(variable) => *variable == wanted,
        Node::If { variable, nodes, .. } => *variable == wanted || mentions(nodes, wanted),
        Node::Each { nodes, .. } => mentions(nodes, wanted),
    })
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    allow_each: bool,
    /// The open section tags, outermost first.
    open: Vec<OpenSection<'t>>,
    /// The nodes of the innermost one.
    nodes: Vec<Node>,
}

/// A section tag that is not closed yet.
struct OpenSection<'t> {
    name: &'t str,
    inverted: bool,
    /// The range of the opening tag.
    place: Range<usize>,
    /// The nodes of the enclosing section.
    outer: Vec<Node>,
}

impl OpenSection<'_> {
    fn sign(&self) -> char {
        if self.inverted { '^' } else { '#' }
    }
}

impl<'t> Parser<'t> {
    /// Parses the text up to the next tag, and the tag. Returns `false` at the end.
    fn step(&mut self) -> Result<bool, Error> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let Some(start) = rest.find("{{").map(|found| self.at.saturating_add(found)) else {
            self.literal(self.at..self.text.len())?;
            return Ok(false);
        };
        let from = self.text.get(start..).unwrap_or_default();
        let Some(length) = tag_len(from.as_bytes()) else {
            let message = "the tag that opens here is never closed";
            let place = start..start.saturating_add(2);
            return Err(Error::in_template(ErrorKind::Syntax, message, place)
                .with_hint("write }} behind the name, which holds no braces"));
        };
        let place = start..start.saturating_add(length);
        let tag = self.text.get(place.clone()).unwrap_or_default();
        if tag.starts_with("{{{") {
            return Err(syntax_error(
                place,
                "text is always escaped: {{{ }}} is no tag of templates",
            )
            .with_hint("write {{name}}; put a space between a brace and a tag beside it"));
        }
        let inside = tag.get(2..length.saturating_sub(2)).unwrap_or_default();
        let alone = inside.starts_with(['#', '^', '/', '!']).then(|| self.line_of(&place));
        let (before, after) =
            alone.flatten().map_or((start, place.end), |line| (line.start, line.end));
        self.literal(self.at..before)?;
        self.at = after;
        self.tag(inside, place)?;
        Ok(true)
    }

    /// Returns the range of the line of a tag that stands alone on it, newline included. Such a line is
    /// not written.
    fn line_of(&self, tag: &Range<usize>) -> Option<Range<usize>> {
        let before = self.text.get(self.at..tag.start)?;
        let start = match before.rfind('\n') {
            Some(newline) => self.at.saturating_add(newline).saturating_add(1),
            // No newline since the last tag: the line starts here only if that tag consumed its whole line.
            None if self.at == 0 || self.text.get(..self.at)?.ends_with('\n') => self.at,
            None => return None,
        };
        let after = self.text.get(tag.end..)?;
        let rest = after.find('\n').map_or(after.len(), |newline| newline.saturating_add(1));
        let end = tag.end.saturating_add(rest);
        let blank =
            |range: Range<usize>| self.text.get(range).is_some_and(|of| of.trim().is_empty());
        (blank(start..tag.start) && blank(tag.end..end)).then_some(start..end)
    }

    fn literal(&mut self, range: Range<usize>) -> Result<(), Error> {
        let text = self.text.get(range.clone()).unwrap_or_default();
        let acts = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
        if let Some((at, control)) = text.char_indices().find(|(_, c)| acts(*c)) {
            let start = range.start.saturating_add(at);
            let place = start..start.saturating_add(control.len_utf8());
            return Err(syntax_error(
                place,
                "a control character stands in the text of the template",
            ));
        }
        if !text.is_empty() {
            self.nodes.push(Node::Text(text.to_owned()));
        }
        Ok(())
    }

    fn tag(&mut self, inside: &'t str, place: Range<usize>) -> Result<(), Error> {
        let sign = inside.chars().next();
        let name = inside.strip_prefix(['#', '^', '/']).unwrap_or(inside).trim();
        match sign {
            Some('!') => Ok(()),
            Some('#') => self.open(name, false, place),
            Some('^') => self.open(name, true, place),
            Some('/') => self.close(name, place),
            Some('>') => Err(syntax_error(place, "templates have no partials")),
            Some('&') => {
                Err(syntax_error(place, "text is always escaped: {{& }} is no tag of templates"))
            }
            Some('=') => Err(syntax_error(place, "templates do not change their delimiters")),
            _ => {
                if name == EACH {
                    return Err(syntax_error(place, "each is no value")
                        .with_hint("write {{#each}} ... {{/each}}"));
                }
                let variable = self.variable(name, &place)?;
                self.nodes.push(Node::Value(variable));
                Ok(())
            }
        }
    }

    fn open(&mut self, name: &'t str, without: bool, place: Range<usize>) -> Result<(), Error> {
        if name == EACH {
            self.check_each_allowed(&place)?;
        } else {
            self.variable(name, &place)?;
        }
        if self.open.len() == MAX_DEPTH {
            let message = format!("sections stand at most {MAX_DEPTH} deep within each other");
            return Err(Error::in_template(ErrorKind::TooDeep, message, place));
        }
        let outer = std::mem::take(&mut self.nodes);
        self.open.push(OpenSection { name, inverted: without, place, outer });
        Ok(())
    }

    /// Checks that `{{#each}}` is allowed here. It is not allowed in an element or in another one, so
    /// that the work is linear in the number of grains.
    fn check_each_allowed(&self, place: &Range<usize>) -> Result<(), Error> {
        if !self.allow_each {
            return Err(syntax_error(place.clone(), "ELEMENT is written for each grain already")
                .with_hint("leave {{#each}} out, or put it into HEADER or FOOTER"));
        }
        if self.open.iter().any(|open| open.name == EACH) {
            return Err(syntax_error(place.clone(), "{{#each}} does not stand in another"));
        }
        Ok(())
    }

    fn close(&mut self, name: &str, place: Range<usize>) -> Result<(), Error> {
        let expected = self.open.last().map(|open| open.name);
        let Some(OpenSection { name, inverted: without, outer, .. }) =
            self.open.pop_if(|open| open.name == name)
        else {
            let message = format!("{{{{/{name}}}}} closes nothing that is open here");
            let advice = match expected {
                Some(open) => format!("close {{{{#{open}}}}} first: write {{{{/{open}}}}}"),
                None => format!("open it with {{{{#{name}}}}}, or leave it out"),
            };
            return Err(Error::in_template(ErrorKind::Unbalanced, message, place).with_hint(advice));
        };
        let nodes = std::mem::replace(&mut self.nodes, outer);
        self.nodes.push(match Variable::from_name(name) {
            Some(variable) => Node::If { variable, without, nodes },
            None => Node::Each { without, nodes },
        });
        Ok(())
    }

    fn variable(&self, name: &str, place: &Range<usize>) -> Result<Variable, Error> {
        if let Some(variable) = Variable::from_name(name) {
            return Ok(variable);
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(syntax_error(place.clone(), "this is no tag of templates").with_hint(
                "write {{name}}, {{#name}}, {{^name}}, {{/name}}, {{#each}} or {{! comment }}",
            ));
        }
        let message = format!("templates have no variable \"{name}\"");
        let error = Error::in_template(ErrorKind::UnknownVariable, message, place.clone());
        Err(error.with_name(name))
    }
}

const EACH: &str = "each";

fn syntax_error(place: Range<usize>, message: &str) -> Error {
    Error::in_template(ErrorKind::Syntax, message, place)
}
