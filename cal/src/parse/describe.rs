//! `describe`: the language, its tables and the host.

use super::cursor::TokenCursor;
use crate::ast::Describe;
use crate::error::Result;
use crate::lex::TokenKind;
use crate::span::Spanned;
use crate::types::{self, TypeName};
use crate::words::Keyword;

/// Targets of DESCRIBE.
pub(crate) const TARGETS: [&str; 6] =
    ["grain_types", "fields", "capabilities", "server", "templates", "grammar"];

/// `describe := DESCRIBE (grain_types | fields singular? | capabilities | server | templates |
/// grammar)`; `DESCRIBE singular` is `DESCRIBE fields singular` (OMS 28.8).
pub(super) fn describe(c: &mut TokenCursor<'_>) -> Result<Describe> {
    c.expect(Keyword::Describe)?;
    let token = c.peek();
    if !matches!(token.kind, TokenKind::Word(_)) {
        return Err(c.unexpected(&TARGETS));
    }
    if let Some(name) = types::by_singular(c.text(token)) {
        c.bump()?;
        return Ok(Describe::Fields(Some(Spanned::new(name, token.span))));
    }
    let described = match c.text(token).to_ascii_lowercase().as_str() {
        "grain_types" => Describe::GrainTypes,
        "fields" => {
            c.bump()?;
            return Ok(Describe::Fields(singular(c)?));
        }
        "capabilities" => Describe::Capabilities,
        "server" => Describe::Server,
        "templates" => Describe::Templates,
        "grammar" => Describe::Grammar,
        _ => {
            let error = c.unexpected(&TARGETS);
            return Err(match types::by_plural(c.text(token)) {
                Some(name) => error.suggest(format!("Did you mean \"{}\"?", name.singular)),
                None => error,
            });
        }
    };
    c.bump()?;
    Ok(described)
}

/// `singular?`: no other word is allowed here.
fn singular(c: &mut TokenCursor<'_>) -> Result<Option<Spanned<&'static TypeName>>> {
    let token = c.peek();
    if !matches!(token.kind, TokenKind::Word(_)) {
        return Ok(None);
    }
    let word = c.text(token);
    let name =
        types::by_singular(word).ok_or_else(|| types::unknown_singular(word).at(token.span))?;
    c.bump()?;
    Ok(Some(Spanned::new(name, token.span)))
}
