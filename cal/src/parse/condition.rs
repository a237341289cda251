//! `where` and `cond`: fields, operators and values.

use super::cursor::{TokenCursor, is_name_then_colon};
use super::{recall, value};
use crate::ast::{Condition, ConditionField, ConditionTest, InSet};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::fields::{self, FieldRef, ValueKind};
use crate::lex::{Punctuation, TokenKind};
use crate::predicate::Comparator;
use crate::relations::{CATEGORIES, RelationCategory};
use crate::span::Spanned;
use crate::words::{Keyword, WordClass};

const OPERATORS: [&str; 11] =
    ["=", "!=", ">=", "<=", ">", "<", "IN", "BETWEEN", "INCLUDE", "EXCLUDE", "IS"];

const DOMAIN_OPERATORS: [&str; 7] = ["=", "!=", ">=", "<=", ">", "<", "IN"];
const RECALL: TokenKind = TokenKind::Word(WordClass::Keyword(Keyword::Recall));

/// `where := WHERE cond (AND cond)*`.
pub(super) fn conditions<'a>(c: &mut TokenCursor<'a>) -> Result<Vec<Condition<'a>>> {
    c.expect(Keyword::Where)?;
    list(c)
}

/// Parses conditions without a statement around them, up to the end of the text.
pub(super) fn conditions_only(source: &str) -> Result<Vec<Condition<'_>>> {
    let mut c = TokenCursor::new(source)?;
    if c.peek().kind == TokenKind::End {
        let empty = Error::new(ErrorKind::EmptyQuery, "there is no condition").at(c.peek().span);
        return Err(
            empty.suggest("write one, such as subject = \"alice\", or leave the conditions out")
        );
    }
    let conditions = list(&mut c)?;
    match c.peek().kind {
        TokenKind::End => Ok(conditions),
        _ => Err(c.unexpected(&["AND"])),
    }
}

/// `cond (AND cond)*`.
fn list<'a>(c: &mut TokenCursor<'a>) -> Result<Vec<Condition<'a>>> {
    let mut conditions = vec![condition(c)?];
    while c.eat(Keyword::And)? {
        conditions.push(condition(c)?);
    }
    Ok(conditions)
}

/// `cond := field ... | domain ":" ID (cmp v | IN "(" v,+ ")")`, over all its forms.
fn condition<'a>(c: &mut TokenCursor<'a>) -> Result<Condition<'a>> {
    if is_name_then_colon(c)? {
        return domain_condition(c);
    }
    let field = field(c)?;
    let numeric = matches!(field.node.shape, ValueKind::Number { .. } | ValueKind::Score);
    let field = Spanned::new(ConditionField::Table(field.node), field.span);
    let start = c.peek().span;
    let test = test(c, numeric)?;
    Ok(Condition { field, test: Spanned::new(test, c.span_from(start)) })
}

/// `domain ":" ID (cmp v | IN "(" v,+ ")")`: any word is a name after the prefix.
fn domain_condition<'a>(c: &mut TokenCursor<'a>) -> Result<Condition<'a>> {
    let prefix = c.name("a domain prefix")?;
    c.expect_mark(Punctuation::Colon, ":")?;
    let TokenKind::Word(_) = c.peek().kind else { return Err(c.unexpected(&["a field"])) };
    let token = c.bump()?;
    let name = c.text(token);
    let field = ConditionField::Domain { prefix: prefix.node, name };
    let field = Spanned::new(field, prefix.span.to(token.span));
    let start = c.peek().span;
    let test = match comparator(c)? {
        Some(comparator) => {
            ConditionTest::Compare(comparator, value::comparison_value(c, comparator, false)?)
        }
        None if c.eat(Keyword::In)? => ConditionTest::In(InSet::Values(value::value_list(c)?)),
        None => return Err(c.unexpected(&DOMAIN_OPERATORS)),
    };
    Ok(Condition { field, test: Spanned::new(test, c.span_from(start)) })
}

/// Parses a field name; keywords and reserved words that are fields (`scope`, `threshold`) are accepted.
///
/// # Errors
/// E004 for a name that is no field, E002 for a word that cannot be a name.
pub(super) fn field(c: &mut TokenCursor<'_>) -> Result<Spanned<FieldRef>> {
    let token = c.peek();
    let no_field = || c.unexpected(&["a field"]).valid(fields::names_for(c.grain_type()));
    let TokenKind::Word(word) = token.kind else { return Err(no_field()) };
    let text = c.text(token);
    if word != WordClass::Forbidden
        && let Some(found) = fields::by_name(text)
    {
        c.bump()?;
        return Ok(Spanned::new(found, token.span));
    }
    if word != WordClass::Name {
        return Err(no_field());
    }
    Err(fields::unknown(text, c.grain_type()).at(token.span))
}

/// Parses a field name; errors list `named` as the fields accepted here.
///
/// # Errors
/// Those of [`field`], and E021 for a domain field.
pub(super) fn field_among(
    c: &mut TokenCursor<'_>,
    named: impl IntoIterator<Item = &'static str>,
) -> Result<Spanned<FieldRef>> {
    if is_name_then_colon(c)? {
        let prefix = c.bump()?.span;
        c.bump()?;
        if matches!(c.peek().kind, TokenKind::Word(_)) {
            c.bump()?;
        }
        let message = "domain fields are for WHERE and PROJECT";
        let error = Error::new(ErrorKind::WrongStage, message).at(c.span_from(prefix));
        return Err(error.suggest("name a field of the table here").valid(named));
    }
    field(c).map_err(|error| error.valid(named))
}

fn test<'a>(c: &mut TokenCursor<'a>, numeric: bool) -> Result<ConditionTest<'a>> {
    if let Some(comparator) = comparator(c)? {
        return Ok(ConditionTest::Compare(
            comparator,
            value::comparison_value(c, comparator, numeric)?,
        ));
    }
    let keyword = c.keyword();
    match keyword {
        Some(Keyword::In) => {
            c.bump()?;
            Ok(ConditionTest::In(in_set(c)?))
        }
        Some(Keyword::Between) => {
            c.bump()?;
            Ok(ConditionTest::Between(value::bounds(c)?))
        }
        Some(Keyword::Include) => {
            c.bump()?;
            Ok(ConditionTest::Include(value::value(c)?))
        }
        Some(Keyword::Exclude) => {
            c.bump()?;
            Ok(ConditionTest::Exclude(value::value(c)?))
        }
        Some(Keyword::Is) => {
            c.bump()?;
            Ok(ConditionTest::Is(category(c)?))
        }
        _ => Err(c.unexpected(&OPERATORS)),
    }
}

/// `"(" (v,+ | recall "|" extractor | "$"ID) ")"`.
fn in_set<'a>(c: &mut TokenCursor<'a>) -> Result<InSet<'a>> {
    c.expect_mark(Punctuation::LeftParen, "(")?;
    if c.peek().kind != RECALL {
        c.also_expect(&["RECALL"]);
        return Ok(InSet::Values(value::values(c)?));
    }
    let mut recall = c.subquery(recall::recall)?;
    let Some(extractor) = recall::take_extractor(&mut recall) else {
        return Err(c.unexpected(&["| SUBJECTS", "| OBJECTS", "| HASHES"]));
    };
    c.expect_mark(Punctuation::RightParen, ")")?;
    Ok(InSet::Recall(Box::new(recall), extractor))
}

/// `cmp := = | != | >= | <= | > | <`, if one stands next.
fn comparator(c: &mut TokenCursor<'_>) -> Result<Option<Comparator>> {
    let TokenKind::Punctuation(mark) = c.peek().kind else { return Ok(None) };
    let comparator = match mark {
        Punctuation::Equal => Comparator::Equal,
        Punctuation::NotEqual => Comparator::NotEqual,
        Punctuation::GreaterEqual => Comparator::GreaterEqual,
        Punctuation::LessEqual => Comparator::LessEqual,
        Punctuation::Greater => Comparator::Greater,
        Punctuation::Less => Comparator::Less,
        _ => return Ok(None),
    };
    c.bump()?;
    Ok(Some(comparator))
}

/// `category := PREFERENCE | KNOWLEDGE | ...`.
fn category(c: &mut TokenCursor<'_>) -> Result<&'static RelationCategory> {
    let keyword = c.keyword();
    match CATEGORIES.iter().find(|category| Some(category.keyword) == keyword) {
        Some(category) => {
            c.bump()?;
            Ok(category)
        }
        None => {
            let names: Vec<_> = CATEGORIES.iter().map(|known| known.keyword.text()).collect();
            Err(c.unexpected(&names))
        }
    }
}
