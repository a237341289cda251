//! `define`, `body` and `section`: templates, whose texts are not CAL.

use grainstore_sml::{Section, body_text};

use super::cursor::{TokenCursor, is_no_name};
use crate::ast::{FormatClause, LetBinding, SectionText, TemplateDefinition};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::lex::{Punctuation, TokenKind};
use crate::limits;
use crate::span::{Span, Spanned};
use crate::text;
use crate::words::Keyword;

/// `define := DEFINE TEMPLATE ID (EXTENDS ID)? body`, behind its LETs.
pub(super) fn define<'a>(
    c: &mut TokenCursor<'a>,
    lets: Vec<LetBinding<'a>>,
) -> Result<TemplateDefinition<'a>> {
    c.expect(Keyword::Define)?;
    c.expect(Keyword::Template)?;
    let name = name(c)?;
    let mut extends = None;
    if c.eat(Keyword::Extends)? {
        extends = Some(c.name("a preset")?);
    }
    Ok(TemplateDefinition { lets, name, extends, sections: body(c)? })
}

/// Parses the name of a template: any word but FOR, FROM and EXTENDS.
fn name<'a>(c: &mut TokenCursor<'a>) -> Result<Spanned<&'a str>> {
    if is_no_name(c.keyword()) {
        return Err(c.unexpected(&["a name for the template"]));
    }
    let name = c.name("a name for the template")?;
    if name.node.len() > limits::MAX_NAME_CHARS {
        let message = format!("the name is longer than {} characters", limits::MAX_NAME_CHARS);
        return Err(Error::new(ErrorKind::QueryTooLong, message).at(name.span));
    }
    Ok(name)
}

/// `body := "{" section+ "}" | section+`.
fn body<'a>(c: &mut TokenCursor<'a>) -> Result<Vec<SectionText<'a>>> {
    if !c.eat_mark(Punctuation::LeftBrace)? {
        return sections(c);
    }
    let sections = sections(c)?;
    c.expect_mark(Punctuation::RightBrace, "}")?;
    Ok(sections)
}

/// Parses the rest of FORMAT TEMPLATE: `ID | "{" section+ "}"`.
pub(super) fn format_template<'a>(c: &mut TokenCursor<'a>) -> Result<FormatClause<'a>> {
    c.expect(Keyword::Template)?;
    if c.peek().kind == TokenKind::Punctuation(Punctuation::LeftBrace) {
        return body(c).map(FormatClause::Inline);
    }
    c.name("the name of a template, or {").map(FormatClause::Template)
}

fn sections<'a>(c: &mut TokenCursor<'a>) -> Result<Vec<SectionText<'a>>> {
    let mut sections = Vec::new();
    while c.keyword().and_then(Keyword::section).is_some() {
        sections.push(section(c)?);
    }
    match sections.as_slice() {
        [] => Err(c.unexpected(&Section::ALL.map(Section::keyword))),
        _ => Ok(sections),
    }
}

/// `section := (HEADER_BYTES | ELEMENT | ELEMENT_SUMMARY | ELEMENT_OMIT | SOURCE_BREAK | FOOTER) "{" RAW "}"`.
fn section<'a>(c: &mut TokenCursor<'a>) -> Result<SectionText<'a>> {
    let Some(section) = c.keyword().and_then(Keyword::section) else {
        return Err(c.unexpected(&Section::ALL.map(Section::keyword)));
    };
    let keyword = c.bump()?;
    c.expect_mark(Punctuation::LeftBrace, "{")?;
    let token = c.peek();
    if token.kind != TokenKind::RawText {
        return Err(c.unexpected(&["the text of the template"]));
    }
    let raw = c.text(token);
    let (body, counts) = body_text(raw);
    let start = token.span.start();
    let place = Span::new(start + counts.start, start + counts.end);
    let text = text::clean(body).map_err(|error| error.at(token.span))?;
    c.bump()?;
    c.expect_mark(Punctuation::RightBrace, "}")?;
    Ok(SectionText {
        section: Spanned::new(section, keyword.span),
        text: Spanned::new(text, place),
    })
}
