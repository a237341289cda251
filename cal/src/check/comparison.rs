//! Conditions on fields of the table, by the kind of the field (CAL 5.2, 6).

use super::plan::{DeferredIn, DeferredValues};
use super::resolve::{hash_of, hint_at_old_name, mismatch, own_or, text_of, too_many_values};
use super::{CheckContext, bindings, recall};
use crate::ast::{ConditionTest, InSet, Literal};
use crate::bounds::{Reach, TimeRange, TypeSet, Visibility};
use crate::codes::{self, ErrorKind};
use crate::error::{Error, Result};
use crate::fields::{FieldRef, ValueKind, ValueList};
use crate::limits;
use crate::predicate::{Comparator, Predicate};
use crate::query::Query;
use crate::relations;
use crate::search::{Ask, Floor};
use crate::span::{Span, Spanned};
use crate::suggest;
use crate::types;
use grainstore_format::ContentAddress;

/// Adds a condition, whose operator is known to fit, to the query; returns it instead if its values come
/// from a LET or subquery.
pub(super) fn add(
    field: FieldRef,
    test: &Spanned<ConditionTest<'_>>,
    context: &mut CheckContext<'_>,
    query: &mut Query,
) -> Result<Option<DeferredIn>> {
    let predicate = match &test.node {
        ConditionTest::Between(between) => {
            period(field, context.between(between)?, query);
            return Ok(None);
        }
        ConditionTest::Is(category) => {
            let relations = category.relations.iter().map(|name| (*name).to_owned()).collect();
            Predicate::among(field, relations)
        }
        ConditionTest::Include(value) => Predicate::include(field, texts(value, context)?),
        ConditionTest::Exclude(value) => Predicate::exclude(field, texts(value, context)?),
        ConditionTest::In(set) => match feed(set, test.span, context)? {
            Some(from) => return Ok(Some(DeferredIn { field, place: test.span, from })),
            None => list(field, set, context)?,
        },
        ConditionTest::Compare(comparator, literal) => {
            let value = Spanned::new(context.value(literal)?, literal.span);
            compare(field, *comparator, &value, context, query)?;
            return Ok(None);
        }
    };
    query.require(predicate);
    Ok(None)
}

/// Returns the LET or subquery that supplies the values of an IN; `None` if they are listed.
fn feed(
    set: &InSet<'_>,
    place: Span,
    context: &mut CheckContext<'_>,
) -> Result<Option<DeferredValues>> {
    match set {
        InSet::Recall(inner, extractor) => {
            let plan = recall::recall_for(inner, Some(*extractor), context)?;
            let plan = bindings::check_feed(plan, Some(*extractor), place)?;
            Ok(Some(DeferredValues::Recall(Box::new(plan), *extractor)))
        }
        InSet::Values(values) => {
            let [Spanned { node: Literal::Param(name), span }] = values.as_slice() else {
                return Ok(None);
            };
            let found = context.bindings.find(&Spanned::new(*name, *span), true)?;
            Ok(found.map(DeferredValues::Let))
        }
    }
}

/// Returns the predicate of `field IN (...)` with listed values.
fn list(field: FieldRef, set: &InSet<'_>, context: &mut CheckContext<'_>) -> Result<Predicate> {
    let InSet::Values(literals) = set else { return Ok(Predicate::among(field, Vec::new())) };
    let values = context.spread(literals)?;
    if let Some(extra) = values.get(limits::MAX_IN_VALUES) {
        return Err(too_many_values(extra.span));
    }
    let mut wanted = Vec::with_capacity(values.len());
    for value in &values {
        wanted.push(match field.shape {
            ValueKind::Address => address_digits(value, context)?,
            _ => text_of(value.node, value.span)?.into_owned(),
        });
    }
    for text in &wanted {
        note_unknown_relation(field, text, context);
    }
    Ok(Predicate::among(field, wanted))
}

/// Adds `field cmp value` to the query, by the kind of the field.
fn compare(
    field: FieldRef,
    comparator: Comparator,
    value: &Spanned<&Literal<'_>>,
    context: &mut CheckContext<'_>,
    query: &mut Query,
) -> Result<()> {
    let predicate = match field.shape {
        ValueKind::Text if field.name == "namespace" => {
            return namespace(field, value, context, query);
        }
        ValueKind::Text => {
            let text = text_of(value.node, value.span)?.into_owned();
            note_unknown_relation(field, &text, context);
            Predicate::text(field, comparator, text)
        }
        ValueKind::ClosedList(vocabulary) => {
            let word = closed_list_word(vocabulary, field.name, value.node, value.span)?;
            Predicate::text(field, comparator, word.to_owned())
        }
        ValueKind::Search if !is_membership(field, value.node) => {
            return search(field, value, query);
        }
        ValueKind::Address | ValueKind::Search => {
            Predicate::address(field, vec![address_digits(value, context)?])
        }
        ValueKind::Score => return min_score(field, comparator, value, query),
        ValueKind::Number { unit } => {
            let number = number(unit, value.node, value.span, field.name)?;
            Predicate::number(field, comparator, number)
        }
        ValueKind::Flag => match value.node {
            Literal::Flag(flag) => Predicate::flag(field, *flag),
            other => return Err(mismatch("true or false", other, value.span)),
        },
        ValueKind::Time => {
            period(field, context.time(value.node, value.span)?, query);
            return Ok(());
        }
        ValueKind::Type => return grain_type(value, context, query),
        ValueKind::Hash => return address(value, context, query),
        ValueKind::List => return Err(mismatch("an array", value.node, value.span)),
    };
    query.require(predicate);
    Ok(())
}

/// Returns `true` for `premises = hash`, which asks for a member of the list, not for text.
fn is_membership(field: FieldRef, value: &Literal<'_>) -> bool {
    field.name == "premises" && matches!(value, Literal::Hash(_))
}

/// Adds a text search: `query` searches all fields, another field only itself.
fn search(field: FieldRef, value: &Spanned<&Literal<'_>>, query: &mut Query) -> Result<()> {
    let text = text_of(value.node, value.span)?;
    let within = (field.name != "query").then_some(field.payload);
    query.require_search(text_query(&text, within, value.span)?);
    Ok(())
}

/// Returns a text query: E020 for blank text.
pub(super) fn text_query(text: &str, field: Option<&'static str>, place: Span) -> Result<Ask> {
    if text.trim().is_empty() {
        let error = Error::new(ErrorKind::WrongType, "there is nothing to search for");
        return Err(error.at(place).suggest("write some words"));
    }
    Ok(Ask { text: text.to_owned(), field })
}

/// Adds `score >= x` or `score > x`.
fn min_score(
    field: FieldRef,
    comparator: Comparator,
    value: &Spanned<&Literal<'_>>,
    query: &mut Query,
) -> Result<()> {
    let least = number(true, value.node, value.span, field.name)?;
    query.require_score(Floor { least, above: comparator == Comparator::Greater });
    Ok(())
}

/// Returns a word of a closed list.
pub(super) fn closed_list_word<'l>(
    vocabulary: ValueList,
    name: &str,
    value: &'l Literal<'_>,
    span: Span,
) -> Result<&'l str> {
    let Literal::Text(text) = value else { return Err(mismatch("text", value, span)) };
    if vocabulary.values.contains(&&**text) {
        return Ok(text);
    }
    let known = vocabulary.values.iter().copied();
    let advice = suggest::did_you_mean(text, known.clone(), "use one of the listed values");
    let error = Error::new(vocabulary.error, format!("\"{text}\" is no value of {name}"));
    Err(error.at(span).suggest(advice).valid(known))
}

/// Returns a number, in 0..=1 if `unit`.
pub(super) fn number(unit: bool, value: &Literal<'_>, span: Span, name: &str) -> Result<f64> {
    let Literal::Number(number) = value else { return Err(mismatch("a number", value, span)) };
    if unit && !(0.0..=1.0).contains(&number.value) {
        let error = Error::new(ErrorKind::BadNumber, format!("{name} lies between 0 and 1"));
        return Err(error.at(span).suggest("write a fraction such as 0.8"));
    }
    Ok(number.value)
}

/// Narrows the time range of the query for `time`; other times become conditions on their fields.
fn period(field: FieldRef, range: TimeRange, query: &mut Query) {
    if field.name == "time" {
        query.time = query.time.and(range);
    } else {
        query.require(Predicate::period(field, range));
    }
}

/// Narrows the query by `type = name`; it does not make fields of the type available.
fn grain_type(
    value: &Spanned<&Literal<'_>>,
    context: &mut CheckContext<'_>,
    query: &mut Query,
) -> Result<()> {
    let Literal::Text(text) = value.node else {
        return Err(mismatch("the name of a grain type", value.node, value.span));
    };
    let Some(name) = types::by_singular(text) else {
        let advice =
            suggest::did_you_mean(text, types::singulars(), ErrorKind::UnknownType.advice());
        let error = Error::new(ErrorKind::UnknownType, format!("unknown grain type \"{text}\""));
        return Err(error.at(value.span).suggest(advice).valid(types::singulars()));
    };
    hint_at_old_name(name, context);
    query.types = query.types.and(TypeSet::of(name.grain_type));
    Ok(())
}

/// Restricts the query to the grain of `hash = h`, in any state.
fn address(
    value: &Spanned<&Literal<'_>>,
    context: &CheckContext<'_>,
    query: &mut Query,
) -> Result<()> {
    let found = context.address(&hash_of(value.node, value.span)?)?;
    query.visibility = Visibility::EVERYTHING;
    match found {
        Some(found) => query.require_address(found),
        None => query.types = TypeSet::NONE,
    }
    Ok(())
}

/// Narrows the query by `namespace = ns`, like IN; with an IN both hold.
fn namespace(
    field: FieldRef,
    value: &Spanned<&Literal<'_>>,
    context: &mut CheckContext<'_>,
    query: &mut Query,
) -> Result<()> {
    let namespace = text_of(value.node, value.span)?.into_owned();
    let namespace = own_or(namespace, context);
    if query.reach == Reach::Session {
        query.reach = Reach::Exact(namespace);
    } else {
        query.require(Predicate::text(field, Comparator::Equal, namespace));
    }
    Ok(())
}

/// Returns the digits that an address field is compared with; a prefix is resolved to its grain's address.
fn address_digits(value: &Spanned<&Literal<'_>>, context: &CheckContext<'_>) -> Result<String> {
    match value.node {
        Literal::Hash(digits) if digits.len() < 64 => {
            let found = context.address(&hash_of(value.node, value.span)?)?;
            Ok(found.map_or_else(|| digits.to_string(), |address| address.to_string()))
        }
        Literal::Hash(digits) => Ok(digits.to_string()),
        other => {
            let text = text_of(other, value.span)?;
            Ok(ContentAddress::digits(&text).to_owned())
        }
    }
}

/// Returns the texts of an array.
pub(super) fn texts(
    literal: &Spanned<Literal<'_>>,
    context: &CheckContext<'_>,
) -> Result<Vec<String>> {
    let items = context.array(literal)?;
    items.iter().map(|item| text_of(item.node, item.span).map(Into::into)).collect()
}

/// Warns with W001 of a relation in the reserved `mg:` space that OMS does not define.
pub(super) fn note_unknown_relation(field: FieldRef, text: &str, context: &mut CheckContext<'_>) {
    if field.name == "relation" && relations::is_unknown_mg(text) {
        let message = format!("\"{text}\" is not in the mg: vocabulary of OMS");
        context.warn(codes::UNKNOWN_RELATION, message);
    }
}
