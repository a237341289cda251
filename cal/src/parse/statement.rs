//! `query` and `statement`: the version prefix and the choice of statement.

use super::cursor::Cursor;
use super::{assemble, evolve, history, recall, value};
use crate::ast::{Body, Statement};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::lex::{Kind, Mark};
use crate::parse::refuse::{self, Place};
use crate::span::Spanned;
use crate::words::Keyword;

const STATEMENTS: [&str; 6] = ["RECALL", "ASSEMBLE", "EXISTS", "HISTORY", "ADD", "SUPERSEDE"];

/// `query := ("CAL" "/" INT)? let* (statement | define_template)`; the last two are refused by name.
pub(super) fn query(source: &str) -> Result<Statement<'_>> {
    let mut c = Cursor::new(source)?;
    version(&mut c)?;
    if c.peek().kind == Kind::End {
        return Err(Error::new(ErrorKind::EmptyQuery, "the query is empty").at(c.peek().span));
    }
    let keyword = c.peek().span;
    let body = statement(&mut c)?;
    if c.peek().kind == Kind::End {
        return Ok(Statement(Spanned::new(body, keyword)));
    }
    Err(c.unexpected(clauses_after(&body)))
}

fn version(c: &mut Cursor<'_>) -> Result<()> {
    if !c.eat(Keyword::Cal)? {
        return Ok(());
    }
    c.expect_mark(Mark::Slash, "/1")?;
    let version = value::whole(c)?;
    if version.node == 1 {
        return Ok(());
    }
    let message = format!("CAL/{} is not spoken here", version.node);
    Err(Error::new(ErrorKind::UnsupportedVersion, message).at(version.span))
}

/// `statement := recall | assemble | exists | history | add | supersede`, and those refused by name.
fn statement<'a>(c: &mut Cursor<'a>) -> Result<Body<'a>> {
    match c.keyword() {
        Some(Keyword::Recall) => Ok(Body::Recall(recall::recall(c)?)),
        Some(Keyword::Assemble) => Ok(Body::Assemble(assemble::assemble(c)?)),
        Some(Keyword::Exists) => Ok(Body::Exists(history::exists(c)?)),
        Some(Keyword::History) => Ok(Body::History(history::history(c)?)),
        Some(Keyword::Add) => Ok(Body::Add(evolve::add(c)?)),
        Some(Keyword::Supersede) => Ok(Body::Supersede(evolve::supersede(c)?)),
        _ if c.peek().kind == Kind::Mark(Mark::LeftParen) => {
            let instead = "send the two RECALL statements one by one";
            Err(refuse::not_yet("a set operation", c.peek().span, instead))
        }
        _ => Err(c.unexpected_at(Place::Statement, &STATEMENTS)),
    }
}

/// What could still follow a complete statement.
fn clauses_after(body: &Body<'_>) -> &'static [&'static str] {
    match body {
        Body::Recall(_) => &recall::CLAUSES,
        Body::Assemble(_) => &assemble::CLAUSES,
        Body::History(_) => &["DIFF", "AS OF"],
        Body::Exists(_) | Body::Add(_) | Body::Supersede(_) => &[],
    }
}
