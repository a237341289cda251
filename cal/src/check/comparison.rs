//! What a condition asks of a field, by what the field holds (spec section 4).

use grainstore_format::{GrainType, VerificationStatus};

use super::resolve::{hash_of, mismatch, text_of};
use super::{Context, recall};
use crate::ast::{Comparator, Condition, Literal, Test};
use crate::bounds::{Reach, TimeRange, TypeSet, Visibility};
use crate::codes::{self, ErrorKind};
use crate::error::{Error, Result};
use crate::fields::{self, FieldRef, Shape, Vocabulary};
use crate::limits;
use crate::predicate::{Check, Predicate, Want};
use crate::query::Query;
use crate::relations;
use crate::span::{Span, Spanned};
use crate::suggest;
use crate::types;

/// Adds a condition, whose field and operator are known to fit, to the query.
pub(super) fn add(
    condition: &Condition<'_>,
    context: &mut Context<'_>,
    query: &mut Query,
) -> Result<()> {
    let field = condition.field.node;
    let check = match (&condition.test.node, field.shape) {
        (Test::Between(between), _) => return period(field, context.between(between)?, query),
        (Test::Is(category), _) => {
            let relations = category.relations.iter().map(|name| (*name).to_owned()).collect();
            Check::Text { payload: field.payload, want: Want::OneOf(relations) }
        }
        (Test::Include(value), _) => {
            Check::HoldsAll { payload: field.payload, values: texts(value, context)? }
        }
        (Test::Exclude(value), _) => {
            Check::HoldsNone { payload: field.payload, values: texts(value, context)? }
        }
        (Test::In(values), shape) => list(field, shape, values, context)?,
        (Test::Compare(comparator, literal), shape) => {
            let value = context.value(literal)?;
            return compare(
                field,
                shape,
                *comparator,
                &Spanned::new(value, literal.span),
                context,
                query,
            );
        }
    };
    query.predicates.push(Predicate::new(check));
    Ok(())
}

/// `field IN (...)`.
fn list(
    field: FieldRef,
    shape: Shape,
    literals: &[Spanned<Literal<'_>>],
    context: &mut Context<'_>,
) -> Result<Check> {
    let values = context.spread(literals)?;
    if let Some(extra) = values.get(limits::IN_VALUES) {
        let message = format!("IN lists {} values, at most {}", values.len(), limits::IN_VALUES);
        return Err(Error::new(ErrorKind::SetTooLarge, message).at(extra.span));
    }
    if shape == Shape::Address {
        let mut digits = Vec::with_capacity(values.len());
        for value in &values {
            digits.push(address_digits(value, context)?);
        }
        return Ok(Check::Address { payload: field.payload, digits });
    }
    let mut wanted = Vec::with_capacity(values.len());
    for value in &values {
        let text = text_of(value.node, value.span)?.into_owned();
        note_unknown_relation(field, &text, context);
        wanted.push(text);
    }
    Ok(Check::Text { payload: field.payload, want: Want::OneOf(wanted) })
}

/// `field cmp value`, by what the field holds.
fn compare(
    field: FieldRef,
    shape: Shape,
    comparator: Comparator,
    value: &Spanned<&Literal<'_>>,
    context: &mut Context<'_>,
    query: &mut Query,
) -> Result<()> {
    let check = match shape {
        Shape::Text if field.name == "namespace" => return namespace(value, context, query),
        Shape::Text => text(field, comparator, value, context)?,
        Shape::Word(vocabulary) => word(field, vocabulary, comparator, value, query)?,
        Shape::Address | Shape::Search => {
            let digits = vec![address_digits(value, context)?];
            Check::Address { payload: field.payload, digits }
        }
        Shape::Number { unit } => {
            let value = number(unit, value.node, value.span, field.name)?;
            Check::Number { payload: field.payload, comparator, value }
        }
        Shape::Flag => flag(field, value, query)?,
        Shape::Time => return period(field, context.time(value.node, value.span)?, query),
        Shape::Type => return grain_type(value, context, query),
        Shape::Hash => return address(value, context, query),
        Shape::List => return Err(mismatch("an array", value.node, value.span)),
    };
    query.predicates.push(Predicate::new(check));
    Ok(())
}

fn text(
    field: FieldRef,
    comparator: Comparator,
    value: &Spanned<&Literal<'_>>,
    context: &mut Context<'_>,
) -> Result<Check> {
    let text = text_of(value.node, value.span)?.into_owned();
    note_unknown_relation(field, &text, context);
    if field.name == "scope" {
        return Ok(Check::HoldsAll { payload: field.payload, values: vec![text] });
    }
    let want = want(comparator, text);
    Ok(match (field.owner, field.name) {
        (Some(GrainType::State), "context") => Check::StateContext(want),
        (_, "purpose") => Check::Purpose(want),
        _ => Check::Text { payload: field.payload, want },
    })
}

fn word(
    field: FieldRef,
    vocabulary: Vocabulary,
    comparator: Comparator,
    value: &Spanned<&Literal<'_>>,
    query: &mut Query,
) -> Result<Check> {
    let word = closed(vocabulary, field.name, value.node, value.span)?;
    Ok(match field.name {
        "action_phase" => Check::ActionPhase(word.to_owned()),
        "recall_priority" => Check::RecallPriority(word.to_owned()),
        "consent_action" => Check::Flag { payload: field.payload, value: word == "withdraw" },
        "verification_status" => {
            let status = VerificationStatus::from_name(word).unwrap_or_default();
            query.visibility.retracted |= status == VerificationStatus::Retracted;
            Check::Status(status)
        }
        "goal_state" => {
            let state = fields::payload_goal_state(word).to_owned();
            Check::Text { payload: field.payload, want: want(comparator, state) }
        }
        _ => Check::Text { payload: field.payload, want: want(comparator, word.to_owned()) },
    })
}

/// A word of a closed list.
pub(super) fn closed<'l>(
    vocabulary: Vocabulary,
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

/// A number, in 0..=1 where the field says so.
pub(super) fn number(unit: bool, value: &Literal<'_>, span: Span, name: &str) -> Result<f64> {
    let Literal::Number(number) = value else { return Err(mismatch("a number", value, span)) };
    if unit && !(0.0..=1.0).contains(&number.value) {
        let error = Error::new(ErrorKind::BadNumber, format!("{name} lies between 0 and 1"));
        return Err(error.at(span).suggest("write a fraction such as 0.8"));
    }
    Ok(number.value)
}

fn flag(field: FieldRef, value: &Spanned<&Literal<'_>>, query: &mut Query) -> Result<Check> {
    let Literal::Flag(flag) = value.node else {
        return Err(mismatch("true or false", value.node, value.span));
    };
    if field.name != "contradicted" {
        return Ok(Check::Flag { payload: field.payload, value: *flag });
    }
    query.visibility.contradicted |= flag;
    Ok(Check::Contradicted(*flag))
}

/// `time` narrows the query; other times are conditions on their fields.
fn period(field: FieldRef, range: TimeRange, query: &mut Query) -> Result<()> {
    if field.name == "time" {
        query.time = query.time.and(range);
    } else {
        let (from, to) = (range.from.get(), range.to.get());
        let check = Check::Period { payload: field.payload, from, to };
        query.predicates.push(Predicate::new(check));
    }
    Ok(())
}

/// `type = name`; it unlocks no fields.
fn grain_type(
    value: &Spanned<&Literal<'_>>,
    context: &mut Context<'_>,
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
    recall::hint_at_old_name(name, context);
    query.types = query.types.and(TypeSet::of(name.grain_type));
    Ok(())
}

/// `hash = h` finds its grain in any state.
fn address(value: &Spanned<&Literal<'_>>, context: &Context<'_>, query: &mut Query) -> Result<()> {
    let found = context.address(&hash_of(value.node, value.span)?)?;
    query.visibility = Visibility::EVERYTHING;
    match (found, query.address) {
        (Some(found), None) => query.address = Some(found),
        (Some(found), Some(other)) if found == other => {}
        _ => query.types = TypeSet::NONE,
    }
    Ok(())
}

/// `namespace = ns` narrows like IN; beside an IN both hold.
fn namespace(
    value: &Spanned<&Literal<'_>>,
    context: &mut Context<'_>,
    query: &mut Query,
) -> Result<()> {
    let namespace = text_of(value.node, value.span)?.into_owned();
    if !recall::allows(context.memory.scope(), &namespace) {
        recall::overwrite(&namespace, context);
    } else if query.reach == Reach::Session {
        query.reach = Reach::Exact(namespace);
    } else {
        query.predicates.push(Predicate::new(Check::Namespace(namespace)));
    }
    Ok(())
}

/// The digits an address-valued field is compared with; a prefix stands for its grain.
fn address_digits(value: &Spanned<&Literal<'_>>, context: &Context<'_>) -> Result<String> {
    match value.node {
        Literal::Hash(digits) if digits.len() < 64 => {
            let found = context.address(&hash_of(value.node, value.span)?)?;
            Ok(found.map_or_else(|| digits.to_string(), |address| address.to_string()))
        }
        Literal::Hash(digits) => Ok(digits.to_string()),
        other => {
            let text = text_of(other, value.span)?;
            Ok(text.strip_prefix("sha256:").unwrap_or(&text).to_owned())
        }
    }
}

/// The texts of an array.
pub(super) fn texts(literal: &Spanned<Literal<'_>>, context: &Context<'_>) -> Result<Vec<String>> {
    let items = context.array(literal)?;
    items.iter().map(|item| text_of(item.node, item.span).map(Into::into)).collect()
}

/// W001 for a relation in the reserved `mg:` space that OMS does not define.
pub(super) fn note_unknown_relation(field: FieldRef, text: &str, context: &mut Context<'_>) {
    if field.name == "relation" && relations::is_unknown_mg(text) {
        let message = format!("\"{text}\" is not in the mg: vocabulary of OMS");
        context.warn(codes::UNKNOWN_RELATION, message);
    }
}

fn want(comparator: Comparator, text: String) -> Want {
    if comparator == Comparator::NotEqual { Want::IsNot(text) } else { Want::Is(text) }
}
