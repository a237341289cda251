//! The word at the cursor of a statement, and what completes it.
//!
//! Which words may stand there is asked of the parser, by [`grainstore::cal::next_words`].

use std::collections::BTreeSet;

use grainstore::cal::{SyntaxKind, SyntaxSpan, scan};

/// What completes the word at the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Nothing does.
    Nothing,
    /// A word of the language that may stand there.
    Word,
    /// A parameter, or one of these LETs.
    Parameter(BTreeSet<String>),
    /// A variable of a template.
    Variable,
    /// A value of this field, in quotes.
    ValueOf(String),
}

/// The word at the cursor, and what completes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// Byte offset at which the word begins.
    pub(super) start: usize,
    pub(super) wanted: Wanted,
}

/// Returns the word at the end of `before`, the text up to the cursor.
pub(super) fn place(before: &str) -> Place {
    let mut spans = scan(before);
    let touched = spans.pop_if(|span| {
        span.range.end == before.len()
            && !matches!(span.kind, SyntaxKind::Punctuation | SyntaxKind::Semicolon)
    });
    let line = Line { text: before, spans: &spans };
    let Some(touched) = touched else {
        return Place { start: before.len(), wanted: Wanted::Word };
    };
    let start = touched.range.start;
    let word = before.get(touched.range.clone()).unwrap_or_default();
    let (start, wanted) = match touched.kind {
        SyntaxKind::UnterminatedText => (start.saturating_add(1), line.value()),
        SyntaxKind::Keyword | SyntaxKind::Name | SyntaxKind::Forbidden => (start, Wanted::Word),
        SyntaxKind::Parameter => (start, Wanted::Parameter(line.lets())),
        SyntaxKind::Invalid if word == "$" => (start, Wanted::Parameter(line.lets())),
        SyntaxKind::Template => match tag_name_start(word) {
            Some(name) => (start.saturating_add(name), Wanted::Variable),
            None => (before.len(), Wanted::Nothing),
        },
        _ => (before.len(), Wanted::Nothing),
    };
    Place { start, wanted }
}

/// Returns the offset of the name in the template tag that is being written at the end of `text`.
fn tag_name_start(text: &str) -> Option<usize> {
    let opens = text.rfind("{{")?.saturating_add(2);
    let name = text.get(opens..)?.trim_start_matches(['#', '^', '/', ' ']);
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
    is_name.then(|| text.len().saturating_sub(name.len()))
}

/// The spans before the word at the cursor.
struct Line<'l> {
    text: &'l str,
    spans: &'l [SyntaxSpan],
}

impl<'l> Line<'l> {
    fn text_of(&self, span: &SyntaxSpan) -> &'l str {
        self.text.get(span.range.clone()).unwrap_or_default()
    }

    fn is(&self, span: &SyntaxSpan, keyword: &str) -> bool {
        span.kind == SyntaxKind::Keyword && self.text_of(span).eq_ignore_ascii_case(keyword)
    }

    /// Returns the names of the LETs, with the dollar sign.
    fn lets(&self) -> BTreeSet<String> {
        let pairs = self.spans.iter().zip(self.spans.iter().skip(1));
        let bound = pairs.filter(|(before, _)| self.is(before, "LET"));
        bound.map(|(_, name)| self.text_of(name).to_owned()).collect()
    }

    /// Returns the field whose value a string at the cursor is.
    fn value(&self) -> Wanted {
        let passes = |span: &&SyntaxSpan| match span.kind {
            SyntaxKind::Punctuation
            | SyntaxKind::Text
            | SyntaxKind::Number
            | SyntaxKind::Comment => true,
            _ => ["IN", "INCLUDE", "EXCLUDE"].iter().any(|word| self.is(span, word)),
        };
        match self.spans.iter().rev().find(|span| !passes(span)) {
            Some(span) if self.is(span, "ABOUT") => Wanted::ValueOf("subject".to_owned()),
            Some(span) if span.kind == SyntaxKind::Name => {
                Wanted::ValueOf(self.text_of(span).to_owned())
            }
            _ => Wanted::Nothing,
        }
    }
}

#[cfg(test)]
#[path = "cursor_tests.rs"]
mod tests;
