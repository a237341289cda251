//! WHERE: each condition against the field table (spec section 4).

use grainstore_format::GrainType;

use super::{Context, comparison};
use crate::ast::{Comparator, Condition, Literal, Test};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::fields::{self, FieldRef, Shape, ops};
use crate::parse::refuse;
use crate::query::Query;
use crate::span::Spanned;
use crate::types;

/// Checks the conditions of a statement about `grain_type` and adds them to the query.
pub(super) fn conditions(
    conditions: &[Condition<'_>],
    grain_type: Option<GrainType>,
    context: &mut Context<'_>,
    query: &mut Query,
    matched: &mut Vec<&'static str>,
) -> Result<()> {
    for condition in conditions {
        belongs(&condition.field, grain_type)?;
        takes(condition)?;
        comparison::add(condition, context, query)?;
        matched.push(condition.field.node.name);
    }
    Ok(())
}

/// E060 and E061: the field must be common or of the named type.
fn belongs(field: &Spanned<FieldRef>, grain_type: Option<GrainType>) -> Result<()> {
    let Some(owner) = field.node.owner.filter(|owner| Some(*owner) != grain_type) else {
        return Ok(());
    };
    let (name, plural) = (field.node.name, types::plural_of(owner));
    let error = match grain_type {
        Some(other) => {
            let message =
                format!("{name} is a field of {plural}, not of {}", types::plural_of(other));
            Error::new(ErrorKind::WrongField, message)
                .suggest("use one of the listed fields")
                .valid(fields::names_for(Some(other)))
        }
        None => {
            let message = format!("{name} is a field of {plural} only");
            let error = Error::new(ErrorKind::TypeNotNamed, message);
            error.suggest(format!("name the type: RECALL {plural} WHERE {name} ..."))
        }
    };
    Err(error.at(field.span))
}

/// E020: the operator must be one the field takes; text search is refused by name.
fn takes(condition: &Condition<'_>) -> Result<()> {
    let field = condition.field.node;
    let operator = match &condition.test.node {
        Test::Compare(Comparator::Equal, _) => ops::EQ,
        Test::Compare(Comparator::NotEqual, _) => ops::NE,
        Test::Compare(..) => ops::ORDER,
        Test::In(_) => ops::IN,
        Test::Between(_) => ops::BETWEEN,
        Test::Include(_) => ops::INCLUDE,
        Test::Exclude(_) => ops::EXCLUDE,
        Test::Is(_) => ops::IS,
    };
    if field.operators & operator == 0 {
        let names: Vec<_> = field.operator_names().collect();
        let message = format!("{} does not take this operator", field.name);
        let error = Error::new(ErrorKind::WrongType, message).at(condition.test.span);
        return Err(error
            .suggest(format!("{} takes {}", field.name, names.join(", ")))
            .valid(names));
    }
    let by_hash = field.name == "premises"
        && matches!(&condition.test.node, Test::Compare(_, value) if matches!(value.node, Literal::Hash(_)));
    if field.shape == Shape::Search && !by_hash {
        let name = format!("text search ({})", field.name);
        let instead = "use exact conditions such as subject = \"alice\"";
        return Err(refuse::not_yet(&name, condition.field.span, instead));
    }
    Ok(())
}
