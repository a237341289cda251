//! `query`, `let` and `statement`: the version prefix, the LETs, and the choice of statement.

use grainstore_sml::Section;

use super::cursor::{RefusedEntry, TokenCursor};
use super::{assemble, compound, describe, evolve, history, recall, setop, template, value};
use crate::ast::{LetBinding, ParsedQuery, Statement, StatementBody, StatementWithLets};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::lex::{Punctuation, TokenKind};
use crate::span::Spanned;
use crate::words::Keyword;

/// Words that may start a query.
#[rustfmt::skip]
const QUERIES: [&str; 14] = [
    "RECALL", "ASSEMBLE", "EXISTS", "HISTORY", "ADD", "SUPERSEDE", "REVERT", "LET", "BATCH", "COALESCE", "EXPLAIN",
    "DESCRIBE", "DEFINE", "(",
];

/// Words that may follow EXPLAIN.
#[rustfmt::skip]
const EXPLAINED: [&str; 11] = [
    "RECALL", "ASSEMBLE", "EXISTS", "HISTORY", "ADD", "SUPERSEDE", "REVERT", "BATCH", "COALESCE", "DESCRIBE", "(",
];

/// Parses one whole query.
pub(super) fn query(source: &str) -> Result<Statement<'_>> {
    let mut c = TokenCursor::new(source)?;
    whole_query(&mut c)
}

/// Parses one whole query; errors within entries of a BATCH are collected.
pub(super) fn query_for_execution(source: &str) -> Result<(Statement<'_>, Vec<RefusedEntry<'_>>)> {
    let mut c = TokenCursor::with_recovery(source)?;
    let statement = whole_query(&mut c)?;
    Ok((statement, c.refused().to_vec()))
}

/// `query := version? let* (statement | define)`, up to the end of the text.
fn whole_query<'a>(c: &mut TokenCursor<'a>) -> Result<Statement<'a>> {
    let lets = version_and_lets(c)?;
    let keyword = c.peek().span;
    let (asked, after) = if c.keyword() == Some(Keyword::Define) {
        let definition = template::define(c, lets)?;
        (
            ParsedQuery::Define(Spanned::new(definition, keyword)),
            Section::ALL.map(Section::keyword).to_vec(),
        )
    } else {
        let body = statement(c)?;
        let after = clauses_after(&body).to_vec();
        (
            ParsedQuery::Statement(StatementWithLets { lets, body: Spanned::new(body, keyword) }),
            after,
        )
    };
    match c.peek().kind {
        TokenKind::End => Ok(Statement(asked)),
        TokenKind::Punctuation(Punctuation::Semicolon) => {
            Err(c.unexpected(&[]).suggest(NO_SEMICOLON))
        }
        _ => Err(trailing_word_error(&asked, c.unexpected(&after), c)),
    }
}

/// Advice for a semicolon after a statement.
const NO_SEMICOLON: &str = "leave it out: a query is one statement, and ; ends the LETs before it, or what is typed into `grain repl`";

/// Returns the error for a word after a statement, with advice if it belongs to the other form of HISTORY.
fn trailing_word_error(asked: &ParsedQuery<'_>, error: Error, c: &TokenCursor<'_>) -> Error {
    let ParsedQuery::Statement(request) = asked else { return error };
    let body = match &request.body.node {
        StatementBody::Explain(inner) => &inner.node,
        body => body,
    };
    match (body, c.keyword()) {
        (StatementBody::History(history), Some(keyword)) => {
            match history::other_form_advice(history, keyword) {
                Some(advice) => error.suggest(advice),
                None => error,
            }
        }
        _ => error,
    }
}

/// Parses LETs and a statement, as in an operand.
pub(super) fn statement_with_lets<'a>(c: &mut TokenCursor<'a>) -> Result<StatementWithLets<'a>> {
    let lets = version_and_lets(c)?;
    let keyword = c.peek().span;
    let body = statement(c)?;
    Ok(StatementWithLets { lets, body: Spanned::new(body, keyword) })
}

/// `version? let*`.
fn version_and_lets<'a>(c: &mut TokenCursor<'a>) -> Result<Vec<LetBinding<'a>>> {
    version(c)?;
    if c.peek().kind == TokenKind::End {
        return Err(Error::new(ErrorKind::EmptyQuery, "the query is empty").at(c.peek().span));
    }
    let mut lets = Vec::new();
    while c.keyword() == Some(Keyword::Let) {
        c.count_let()?;
        lets.push(binding(c)?);
    }
    Ok(lets)
}

/// `version := "CAL" "/" INT`, where INT must be 1.
fn version(c: &mut TokenCursor<'_>) -> Result<()> {
    // The version is not among the expected words: a misspelt statement is not meant as `CAL`.
    if c.keyword() != Some(Keyword::Cal) {
        return Ok(());
    }
    c.bump()?;
    c.expect_mark(Punctuation::Slash, "/1")?;
    let version = value::whole_number(c)?;
    if version.node == 1 {
        return Ok(());
    }
    let message = format!("CAL/{} is not spoken here", version.node);
    Err(Error::new(ErrorKind::UnsupportedVersion, message).at(version.span))
}

/// `let := "LET" "$"ID "=" recall ("|" extractor)? ";"`.
fn binding<'a>(c: &mut TokenCursor<'a>) -> Result<LetBinding<'a>> {
    c.expect(Keyword::Let)?;
    let name = c.variable()?;
    c.expect_mark(Punctuation::Equal, "=")?;
    let mut recall = recall::recall(c)?;
    if c.peek().kind != TokenKind::Punctuation(Punctuation::Semicolon) {
        let mut expected = vec![";"];
        expected.extend(recall::CLAUSES);
        return Err(c.unexpected(&expected));
    }
    c.bump()?;
    let extract = recall::take_extractor(&mut recall);
    Ok(LetBinding { name, recall, extract })
}

/// `statement := explain | plain`.
fn statement<'a>(c: &mut TokenCursor<'a>) -> Result<StatementBody<'a>> {
    if c.keyword() == Some(Keyword::Explain) {
        return explain(c);
    }
    let word = c.text(c.peek());
    let changes = evolve::ELSEWHERE.iter().any(|other| other.eq_ignore_ascii_case(word));
    plain_statement(c, &QUERIES).map_err(|error| match changes {
        true => error.suggest(evolve::BY_ADDRESS),
        false => error,
    })
}

/// `explain := EXPLAIN plain`: of all but EXPLAIN.
fn explain<'a>(c: &mut TokenCursor<'a>) -> Result<StatementBody<'a>> {
    c.expect(Keyword::Explain)?;
    // EXPLAIN has no plan for an entry that does not parse, so its error refuses the query.
    c.disable_recovery();
    let start = c.peek().span;
    if c.keyword() == Some(Keyword::Explain) {
        let error = Error::new(ErrorKind::UnexpectedToken, "EXPLAIN is not explained").at(start);
        return Err(error.suggest("write EXPLAIN once"));
    }
    let body = plain_statement(c, &EXPLAINED)?;
    Ok(StatementBody::Explain(Box::new(Spanned::new(body, start))))
}

/// `plain := recall | assemble | setop | exists | history | describe | batch | coalesce | add | supersede |
/// revert`, where one of `expected` may stand.
fn plain_statement<'a>(
    c: &mut TokenCursor<'a>,
    expected: &[&'static str],
) -> Result<StatementBody<'a>> {
    match c.keyword() {
        Some(Keyword::Recall) => recall::recall(c).map(Box::new).map(StatementBody::Recall),
        Some(Keyword::Assemble) => assemble::assemble(c).map(StatementBody::Assemble),
        Some(Keyword::Exists) => history::exists(c).map(StatementBody::Exists),
        Some(Keyword::History) => history::history(c).map(StatementBody::History),
        Some(Keyword::Describe) => describe::describe(c).map(StatementBody::Describe),
        Some(Keyword::Batch) => compound::batch(c).map(StatementBody::Batch),
        Some(Keyword::Coalesce) => compound::coalesce(c).map(StatementBody::Coalesce),
        Some(Keyword::Add) => evolve::add(c).map(StatementBody::Add),
        Some(Keyword::Supersede) => evolve::supersede(c).map(StatementBody::Supersede),
        Some(Keyword::Revert) => evolve::revert(c).map(StatementBody::Revert),
        _ if c.peek().kind == TokenKind::Punctuation(Punctuation::LeftParen) => {
            Ok(StatementBody::Set(Box::new(setop::setop(c)?)))
        }
        _ => Err(c.unexpected(expected)),
    }
}

/// Returns the clauses that could follow a complete statement.
fn clauses_after(body: &StatementBody<'_>) -> &'static [&'static str] {
    match body {
        StatementBody::Recall(_) => &recall::CLAUSES,
        StatementBody::Assemble(_) => &assemble::CLAUSES,
        StatementBody::History(history) => history::clauses_after(history),
        StatementBody::Explain(inner) => clauses_after(&inner.node),
        _ => &[],
    }
}
