//! Helpers for clauses that several statements have.

use super::cursor::TokenCursor;
use super::value;
use crate::ast::NamespaceClause;
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::span::Spanned;
use crate::words::Keyword;

/// Parses a clause into its slot, which must be empty; the span is the whole clause.
pub(super) fn once<'a, T>(
    c: &mut TokenCursor<'a>,
    keyword: Keyword,
    place: &mut Option<Spanned<T>>,
    read: impl FnOnce(&mut TokenCursor<'a>) -> Result<T>,
) -> Result<()> {
    let start = c.peek().span;
    if place.is_some() {
        let message = format!("{} stands twice", keyword.text());
        let error = Error::new(ErrorKind::UnexpectedToken, message).at(start);
        return Err(error.suggest("each clause may stand once"));
    }
    let node = read(c)?;
    *place = Some(Spanned::new(node, c.span_from(start)));
    Ok(())
}

/// `in := IN (STR | SCOPE STR)`.
pub(super) fn within<'a>(c: &mut TokenCursor<'a>) -> Result<NamespaceClause<'a>> {
    c.expect(Keyword::In)?;
    let scope = c.eat(Keyword::Scope)?;
    Ok(NamespaceClause { include_descendants: scope, namespace: value::text_arg(c)?.node })
}
