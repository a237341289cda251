//! `batch` and `coalesce`: compound statements.

use super::cursor::{TokenCursor, is_name_then_colon};
use super::{history, recall};
use crate::ast::{BatchEntry, Recall, StatementBody};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::lex::{Punctuation, TokenKind};
use crate::limits;
use crate::span::Spanned;
use crate::words::Keyword;

const READS: [&str; 5] = ["RECALL", "EXISTS", "HISTORY", "DESCRIBE", "COALESCE"];

/// `batch := BATCH "{" (ID ":" (recall|exists|history|describe|coalesce)),+ "}"`.
/// An error within an entry may stay in its slot.
pub(super) fn batch<'a>(c: &mut TokenCursor<'a>) -> Result<Vec<BatchEntry<'a>>> {
    c.expect(Keyword::Batch)?;
    c.expect_mark(Punctuation::LeftBrace, "{")?;
    let mut entries: Vec<BatchEntry<'a>> = Vec::new();
    loop {
        let place = c.peek().span;
        let at = entries.len() + c.refused().len();
        if at == limits::MAX_BATCH_ENTRIES {
            let message = format!("a BATCH has at most {} entries", limits::MAX_BATCH_ENTRIES);
            return Err(Error::new(ErrorKind::TooMany, message).at(place));
        }
        let label = c.name("a label")?;
        let known = c.refused().iter().map(|refused| refused.label);
        if entries.iter().map(|entry| entry.label).chain(known).any(|known| known == label) {
            let message = format!("two entries are called {}", label.node);
            return Err(Error::new(ErrorKind::BoundTwice, message).at(label.span));
        }
        c.expect_mark(Punctuation::Colon, ":")?;
        check_reads(c)?;
        let start = c.bookmark();
        let place = c.peek().span;
        match entry(c) {
            Ok(body) => entries.push(BatchEntry { label, body: Spanned::new(body, place) }),
            Err(error) => c.recover_entry(start, at, label, error)?,
        }
        if !c.eat_mark(Punctuation::Comma)? {
            break;
        }
        if !is_name_then_colon(c)? {
            return Err(c.unexpected(&["a label and :"]));
        }
    }
    c.expect_mark(Punctuation::RightBrace, "}")?;
    Ok(entries)
}

/// Returns E002 for a statement that a BATCH does not take; it refuses the whole BATCH.
fn check_reads(c: &TokenCursor<'_>) -> Result<()> {
    match c.keyword() {
        Some(
            Keyword::Recall
            | Keyword::Exists
            | Keyword::History
            | Keyword::Describe
            | Keyword::Coalesce,
        ) => Ok(()),
        _ => Err(c.unexpected(&READS)),
    }
}

/// Parses one statement, followed by the next entry or the end.
fn entry<'a>(c: &mut TokenCursor<'a>) -> Result<StatementBody<'a>> {
    let body = read(c)?;
    match c.peek().kind {
        TokenKind::Punctuation(Punctuation::Comma | Punctuation::RightBrace) => Ok(body),
        _ => Err(c.unexpected(&[",", "}"])),
    }
}

/// Parses a statement that a BATCH takes.
fn read<'a>(c: &mut TokenCursor<'a>) -> Result<StatementBody<'a>> {
    match c.keyword() {
        Some(Keyword::Recall) => recall::recall(c).map(Box::new).map(StatementBody::Recall),
        Some(Keyword::Exists) => history::exists(c).map(StatementBody::Exists),
        Some(Keyword::History) => history::history(c).map(StatementBody::History),
        Some(Keyword::Describe) => super::describe::describe(c).map(StatementBody::Describe),
        Some(Keyword::Coalesce) => coalesce(c).map(StatementBody::Coalesce),
        _ => Err(c.unexpected(&READS)),
    }
}

/// `coalesce := COALESCE "(" recall "," recall,+ ")"`.
pub(super) fn coalesce<'a>(c: &mut TokenCursor<'a>) -> Result<Vec<Spanned<Recall<'a>>>> {
    c.expect(Keyword::Coalesce)?;
    c.expect_mark(Punctuation::LeftParen, "(")?;
    let mut branches = vec![branch(c)?];
    c.expect_mark(Punctuation::Comma, ",")?;
    branches.push(branch(c)?);
    while c.eat_mark(Punctuation::Comma)? {
        if branches.len() == limits::MAX_COALESCE_BRANCHES {
            let message =
                format!("a COALESCE has at most {} branches", limits::MAX_COALESCE_BRANCHES);
            return Err(Error::new(ErrorKind::TooMany, message).at(c.peek().span));
        }
        branches.push(branch(c)?);
    }
    c.expect_mark(Punctuation::RightParen, ")")?;
    Ok(branches)
}

fn branch<'a>(c: &mut TokenCursor<'a>) -> Result<Spanned<Recall<'a>>> {
    let start = c.peek().span;
    Ok(Spanned::new(recall::recall(c)?, c.span_from(start)))
}
