//! `setop`: two queries in parentheses, combined. Operands may be set operations again.

use super::cursor::TokenCursor;
use super::statement::statement_with_lets;
use crate::ast::{SetOp, SetOperator, StatementWithLets};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::lex::{Punctuation, TokenKind};
use crate::words::Keyword;

/// `setop := operand (UNION | INTERSECT | EXCEPT) operand`.
pub(super) fn setop<'a>(c: &mut TokenCursor<'a>) -> Result<SetOp<'a>> {
    c.count_set()?;
    let left = operand(c)?;
    let operator = match c.keyword() {
        Some(Keyword::Union) => SetOperator::Union,
        Some(Keyword::Intersect) => SetOperator::Intersect,
        Some(Keyword::Except) => SetOperator::Except,
        _ => return Err(c.unexpected(&["UNION", "INTERSECT", "EXCEPT"])),
    };
    c.bump()?;
    let right = operand(c)?;
    Ok(SetOp { left, operator, right })
}

/// `operand := "(" version? let* (recall | coalesce | setop) ")"`; E021 for a statement that yields no
/// grains,
/// and E013 for the sixth operand.
fn operand<'a>(c: &mut TokenCursor<'a>) -> Result<StatementWithLets<'a>> {
    c.expect_mark(Punctuation::LeftParen, "(")?;
    let yields = match c.peek().kind {
        TokenKind::Punctuation(Punctuation::LeftParen) => true,
        _ => match c.keyword() {
            Some(Keyword::Recall | Keyword::Coalesce | Keyword::Let | Keyword::Cal) => true,
            Some(
                Keyword::Assemble
                | Keyword::Exists
                | Keyword::History
                | Keyword::Explain
                | Keyword::Describe
                | Keyword::Batch
                | Keyword::Add
                | Keyword::Supersede
                | Keyword::Revert,
            ) => false,
            _ => return Err(c.unexpected(&["RECALL", "COALESCE", "("])),
        },
    };
    if !yields {
        let error = Error::new(ErrorKind::WrongStage, "an operand yields grains");
        return Err(error.at(c.peek().span).suggest("use RECALL, COALESCE or a set operation"));
    }
    let operand = statement_with_lets(c)?;
    if c.peek().kind != TokenKind::Punctuation(Punctuation::RightParen) {
        return Err(c.unexpected(&[")"]));
    }
    c.bump()?;
    Ok(operand)
}
