//! `exists` and `history`.

use super::clause::{once, within};
use super::cursor::TokenCursor;
use super::{condition, value};
use crate::ast::{HashArg, History, Literal};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::lex::{Punctuation, TokenKind};
use crate::span::Spanned;
use crate::words::Keyword;

/// `exists := EXISTS h`.
pub(super) fn exists<'a>(c: &mut TokenCursor<'a>) -> Result<Spanned<HashArg<'a>>> {
    c.expect(Keyword::Exists)?;
    value::hash_arg(c)
}

/// `history := HISTORY h (DIFF h)? | HISTORY in? WHERE subject "=" v AND relation "=" v (AS OF STR)?`.
pub(super) fn history<'a>(c: &mut TokenCursor<'a>) -> Result<History<'a>> {
    c.expect(Keyword::History)?;
    if matches!(c.peek().kind, TokenKind::Hash | TokenKind::Param) {
        let target = value::hash_arg(c)?;
        let diff = if c.eat(Keyword::Diff)? { Some(value::hash_arg(c)?) } else { None };
        return Ok(History::ByHash { target, diff });
    }
    let mut scope = None;
    if c.keyword() == Some(Keyword::In) {
        once(c, Keyword::In, &mut scope, within)?;
    }
    if c.keyword() != Some(Keyword::Where) {
        return Err(c.unexpected(&["a hash (sha256:...)", "IN", "WHERE"]));
    }
    let where_at = c.bump()?.span;
    let (mut subject, mut relation) = (None, None);
    triple_part(c, &mut subject, &mut relation)?;
    c.expect(Keyword::And)?;
    triple_part(c, &mut subject, &mut relation)?;
    let mut as_of = None;
    if c.keyword() == Some(Keyword::As) {
        once(c, Keyword::As, &mut as_of, |c| {
            c.bump()?;
            c.expect(Keyword::Of)?;
            Ok(value::text_arg(c)?.node)
        })?;
    }
    match (subject, relation) {
        (Some(subject), Some(relation)) => {
            Ok(History::Triple { within: scope, subject, relation, as_of })
        }
        _ => Err(wrong_part().at(c.span_from(where_at))),
    }
}

/// Returns the clauses that may follow a HISTORY.
pub(super) fn clauses_after(history: &History<'_>) -> &'static [&'static str] {
    match history {
        History::ByHash { diff: None, .. } => &["DIFF"],
        History::Triple { as_of: None, .. } => &["AS OF"],
        History::ByHash { .. } | History::Triple { .. } => &[],
    }
}

/// Returns advice if `keyword` belongs to the other form of HISTORY.
pub(super) fn other_form_advice(history: &History<'_>, keyword: Keyword) -> Option<&'static str> {
    match (history, keyword) {
        (History::ByHash { .. }, Keyword::As) => Some(
            "AS OF asks about a fact: HISTORY WHERE subject = ... AND relation = ... AS OF \"last month\"",
        ),
        (History::Triple { .. }, Keyword::Diff) => {
            Some("DIFF compares two versions: HISTORY sha256:... DIFF sha256:...")
        }
        _ => None,
    }
}

/// Parses `subject = v` or `relation = v`, in either order.
fn triple_part<'a>(
    c: &mut TokenCursor<'a>,
    subject: &mut Option<Spanned<Literal<'a>>>,
    relation: &mut Option<Spanned<Literal<'a>>>,
) -> Result<()> {
    let field = condition::field(c)?;
    let place = match field.node.name {
        "subject" if subject.is_none() => subject,
        "relation" if relation.is_none() => relation,
        _ => return Err(wrong_part().at(field.span)),
    };
    c.expect_mark(Punctuation::Equal, "=")?;
    *place = Some(value::value(c)?);
    Ok(())
}

fn wrong_part() -> Error {
    Error::new(ErrorKind::UnexpectedToken, "HISTORY takes one subject and one relation")
        .suggest("use RECALL ... WITH superseded for other conditions")
        .example("HISTORY WHERE subject = \"alice\" AND relation = \"prefers\"")
}
