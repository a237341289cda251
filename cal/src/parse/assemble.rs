//! `assemble` and `source`: the sources of a context, its budget and its form.

use super::clause::once;
use super::cursor::{TokenCursor, is_name_then_colon, is_no_name};
use super::{option, recall, stream, template, value};
use crate::ast::{
    Assemble, AssembleSource, BudgetClause, BudgetUnit, FormatClause, FormatName, SourceOrigin,
};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::lex::{Punctuation, TokenKind};
use crate::limits;
use crate::span::Spanned;
use crate::words::Keyword;

/// Clauses that may follow FROM in an ASSEMBLE.
pub(super) const CLAUSES: [&str; 6] = [",", "BUDGET", "PRIORITY", "FORMAT", "STREAM", "WITH"];

/// `assemble := ASSEMBLE ID? (FOR STR)? FROM source,+ (BUDGET INT (tokens|grains))?
/// (PRIORITY ID (">" ID)*)? (FORMAT format)? stream? with?`, the clauses after FROM in any order.
pub(super) fn assemble<'a>(c: &mut TokenCursor<'a>) -> Result<Assemble<'a>> {
    c.expect(Keyword::Assemble)?;
    let name = name(c)?;
    let mut intent = None;
    if c.keyword() == Some(Keyword::For) {
        once(c, Keyword::For, &mut intent, |c| {
            c.bump()?;
            Ok(value::text_arg(c)?.node)
        })?;
    }
    if intent.is_none() {
        c.also_expect(&["FOR"]);
    }
    c.expect(Keyword::From)?;
    let sources = sources(c)?;
    let mut assemble = Assemble {
        name,
        intent,
        sources,
        budget: None,
        priority: None,
        format: None,
        stream: None,
        options: None,
    };
    while clause(c, &mut assemble)? {}
    Ok(assemble)
}

/// `ID?`: any word but FOR, FROM and EXTENDS.
fn name<'a>(c: &mut TokenCursor<'a>) -> Result<Option<Spanned<&'a str>>> {
    let names = matches!(c.peek().kind, TokenKind::Word(_));
    if !names || is_no_name(c.keyword()) {
        return Ok(None);
    }
    let name = c.name("a name, FOR or FROM")?;
    if name.node.len() > limits::MAX_NAME_CHARS {
        let message = format!("the name is longer than {} characters", limits::MAX_NAME_CHARS);
        return Err(Error::new(ErrorKind::QueryTooLong, message).at(name.span));
    }
    Ok(Some(name))
}

fn sources<'a>(c: &mut TokenCursor<'a>) -> Result<Vec<Spanned<AssembleSource<'a>>>> {
    let mut sources: Vec<Spanned<AssembleSource<'a>>> = Vec::new();
    loop {
        let start = c.peek().span;
        if sources.len() == limits::MAX_SOURCES {
            let message = format!("an ASSEMBLE has at most {} sources", limits::MAX_SOURCES);
            return Err(Error::new(ErrorKind::TooMany, message).at(start));
        }
        let source = source(c)?;
        sources.push(Spanned::new(source, c.span_from(start)));
        if !c.eat_mark(Punctuation::Comma)? {
            return Ok(sources);
        }
        if ends_sources(c)? {
            let error = c.unexpected(&["a source"]);
            return Err(error.suggest("leave out the comma behind the last source"));
        }
    }
}

/// Returns `true` if a clause, or the end, follows the comma after a source.
fn ends_sources(c: &TokenCursor<'_>) -> Result<bool> {
    use Keyword::{Budget, Format, Priority, Stream, With};
    let is_clause = matches!(c.keyword(), Some(Budget | Format | Priority | Stream | With));
    Ok(c.peek().kind == TokenKind::End || is_clause && !is_name_then_colon(c)?)
}

/// Advice on the form of a source.
const SOURCE: &str = "a source stands in parentheses, with or without a label: \
     facts: (RECALL beliefs ABOUT \"alice\"); a LET also without: facts: $name";

/// `source := (ID ":")? ( "(" recall ")" | "(" "$"ID ")" | "$"ID )`.
fn source<'a>(c: &mut TokenCursor<'a>) -> Result<AssembleSource<'a>> {
    let mut label = None;
    if c.keyword() == Some(Keyword::Recall) && !is_name_then_colon(c)? {
        return Err(c.unexpected(&["("]).suggest(SOURCE));
    }
    if matches!(c.peek().kind, TokenKind::Word(_)) {
        label = Some(c.name("a label")?);
        c.expect_mark(Punctuation::Colon, ":")?;
    }
    if c.peek().kind == TokenKind::Param {
        return Ok(AssembleSource { label, body: SourceOrigin::Let(c.variable()?) });
    }
    c.expect_mark(Punctuation::LeftParen, "(").map_err(|error| error.suggest(SOURCE))?;
    if c.peek().kind == TokenKind::Param {
        let body = SourceOrigin::Let(c.variable()?);
        c.expect_mark(Punctuation::RightParen, ")")?;
        return Ok(AssembleSource { label, body });
    }
    let recall = Box::new(recall::recall(c)?);
    if c.peek().kind != TokenKind::Punctuation(Punctuation::RightParen) {
        let mut expected = vec![")"];
        expected.extend(recall::CLAUSES);
        return Err(c.unexpected(&expected));
    }
    c.bump()?;
    Ok(AssembleSource { label, body: SourceOrigin::Recall(recall) })
}

fn clause<'a>(c: &mut TokenCursor<'a>, assemble: &mut Assemble<'a>) -> Result<bool> {
    let Some(keyword) = c.keyword() else { return Ok(false) };
    match keyword {
        Keyword::Budget => once(c, keyword, &mut assemble.budget, budget)?,
        Keyword::Priority => once(c, keyword, &mut assemble.priority, priority)?,
        Keyword::Format => once(c, keyword, &mut assemble.format, format)?,
        Keyword::Stream => once(c, keyword, &mut assemble.stream, stream::stream)?,
        Keyword::With => once(c, keyword, &mut assemble.options, option::options)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn budget<'a>(c: &mut TokenCursor<'a>) -> Result<BudgetClause<'a>> {
    c.bump()?;
    let amount = value::count_arg(c)?;
    let text = c.text(c.peek());
    let unit = if text.eq_ignore_ascii_case("tokens") {
        BudgetUnit::Tokens
    } else if text.eq_ignore_ascii_case("grains") {
        BudgetUnit::Grains
    } else {
        return Err(c.unexpected(&["tokens", "grains"]));
    };
    c.bump()?;
    Ok(BudgetClause { amount, unit })
}

fn priority<'a>(c: &mut TokenCursor<'a>) -> Result<Vec<Spanned<&'a str>>> {
    c.bump()?;
    let mut labels = vec![c.name("a label")?];
    while c.eat_mark(Punctuation::Greater)? {
        labels.push(c.name("a label")?);
    }
    Ok(labels)
}

/// `format := format_type | preset | TEMPLATE (ID | "{" section+ "}")` with
/// `preset := structured | readable | compact | data`.
fn format<'a>(c: &mut TokenCursor<'a>) -> Result<FormatClause<'a>> {
    c.bump()?;
    if c.keyword() == Some(Keyword::Template) {
        return template::format_template(c);
    }
    let text = c.text(c.peek());
    let Some(name) = FormatName::all().find(|name| name.name().eq_ignore_ascii_case(text)) else {
        let mut names: Vec<_> = FormatName::all().map(FormatName::name).collect();
        names.push("TEMPLATE");
        return Err(c.unexpected(&names));
    };
    c.bump()?;
    Ok(FormatClause::Name(name))
}
