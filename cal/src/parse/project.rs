//! `project`: the fields shown of a grain, replacing those its type shows.

use super::condition;
use super::cursor::TokenCursor;
use crate::ast::{ConditionField, ProjectClause, ProjectField};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::fields;
use crate::lex::{Punctuation, TokenKind};
use crate::span::Spanned;
use crate::suggest;
use crate::words::WordClass;

const PARTS: [&str; 2] = ["content(", "attr("];

/// `project := PROJECT (content shown | attr shown),+`, each part at most once.
pub(super) fn project<'a>(c: &mut TokenCursor<'a>) -> Result<ProjectClause<'a>> {
    c.bump()?;
    let mut project = ProjectClause::default();
    loop {
        let token = c.peek();
        let text = c.text(token);
        let part = match () {
            () if text.eq_ignore_ascii_case("content") => &mut project.content,
            () if text.eq_ignore_ascii_case("attr") => &mut project.attr,
            () => return Err(c.unexpected(&PARTS)),
        };
        if part.is_some() {
            let message = format!("{text} stands twice");
            let error = Error::new(ErrorKind::UnexpectedToken, message).at(token.span);
            return Err(error.suggest("name all fields in one of them"));
        }
        c.bump()?;
        *part = Some(list(c)?);
        if !c.eat_list_comma()? {
            return Ok(project);
        }
    }
}

/// `shown := "(" pfield,+ ")"`.
fn list<'a>(c: &mut TokenCursor<'a>) -> Result<Vec<Spanned<ProjectField<'a>>>> {
    c.expect_mark(Punctuation::LeftParen, "(")?;
    let mut fields = vec![field(c)?];
    while c.eat_mark(Punctuation::Comma)? {
        fields.push(field(c)?);
    }
    c.expect_mark(Punctuation::RightParen, ")")?;
    Ok(fields)
}

/// `pfield := field | ID ":" WORD | attribute | x_ID`.
fn field<'a>(c: &mut TokenCursor<'a>) -> Result<Spanned<ProjectField<'a>>> {
    let token = c.peek();
    let TokenKind::Word(word) = token.kind else {
        return Err(c.unexpected(&["a field"]).valid(shown(c)));
    };
    let text = c.text(token);
    if word != WordClass::Forbidden
        && c.second()?.kind == TokenKind::Punctuation(Punctuation::Colon)
    {
        return domain(c);
    }
    let attribute = grainstore_sml::attribute_names().find(|name| *name == text);
    let known =
        fields::by_name(text).map(|field| ProjectField::Field(ConditionField::Table(field)));
    let known = known.or(attribute.map(ProjectField::Attribute));
    let extra = text.starts_with("x_") && text.len() > 2;
    if let Some(found) = known.or(extra.then_some(ProjectField::Extension(text))) {
        c.bump()?;
        return Ok(Spanned::new(found, token.span));
    }
    let found = condition::field(c).map_err(|error| {
        // A forbidden or reserved word keeps its own error; an unknown name may be close to an attribute as
        // well.
        if error.kind() != ErrorKind::UnknownField {
            return error;
        }
        let attributes = grainstore_sml::attribute_names();
        match suggest::closest(text, fields::names_for(c.grain_type()).chain(attributes)) {
            Some((near, _)) => error.suggest(format!("Did you mean \"{near}\"?")).valid(shown(c)),
            None => error.valid(shown(c)),
        }
    })?;
    Ok(Spanned::new(ProjectField::Field(ConditionField::Table(found.node)), found.span))
}

/// Returns the fields and attributes that PROJECT takes here, without domain and payload fields.
fn shown(c: &TokenCursor<'_>) -> Vec<&'static str> {
    let fields = fields::projectable_names(c.grain_type());
    let mut names: Vec<_> = fields.chain(grainstore_sml::attribute_names()).collect();
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(*name));
    names
}

fn domain<'a>(c: &mut TokenCursor<'a>) -> Result<Spanned<ProjectField<'a>>> {
    let prefix = c.name("a domain prefix")?;
    c.expect_mark(Punctuation::Colon, ":")?;
    let TokenKind::Word(_) = c.peek().kind else { return Err(c.unexpected(&["a field"])) };
    let token = c.bump()?;
    let field = ConditionField::Domain { prefix: prefix.node, name: c.text(token) };
    Ok(Spanned::new(ProjectField::Field(field), prefix.span.to(token.span)))
}
