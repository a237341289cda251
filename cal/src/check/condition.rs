//! WHERE: checks each condition against the field table (CAL 5.2, 6).

use std::borrow::Cow;

use grainstore_format::GrainType;

use super::plan::DeferredIn;
use super::resolve::belongs;
use super::{CheckContext, comparison, domain};
use crate::ast::{Condition, ConditionField, ConditionTest, Literal};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::fields::{FieldRef, ValueKind, ops};
use crate::predicate::Comparator;
use crate::query::Query;
use crate::span::Spanned;
use crate::types;

/// The result of checking the conditions of a statement.
pub(super) struct CheckedConditions {
    pub(super) feeds: Vec<DeferredIn>,
    /// CAL names of the fields compared, in order.
    pub(super) matched: Vec<Cow<'static, str>>,
}

/// Checks the conditions of a statement about `grain_type` and adds them to the query; returns those whose
/// values come from a LET or subquery.
pub(super) fn conditions(
    conditions: &[Condition<'_>],
    grain_type: Option<GrainType>,
    context: &mut CheckContext<'_>,
    query: &mut Query,
) -> Result<CheckedConditions> {
    let mut found = CheckedConditions { feeds: Vec::new(), matched: Vec::new() };
    for condition in conditions {
        match condition.field.node {
            ConditionField::Table(row) => {
                let field = Spanned::new(row, condition.field.span);
                belongs(&field, grain_type)?;
                check_operator(&field, &condition.test)?;
                found.feeds.extend(comparison::add(row, &condition.test, context, query)?);
                // For a search, the matching fields depend on the grain.
                if row.name != "query" && row.shape != ValueKind::Score {
                    found.matched.push(row.name.into());
                }
            }
            ConditionField::Domain { prefix, name } => {
                let name = (prefix, name);
                let predicate = domain::predicate(name, &condition.test, conditions, context)?;
                found.matched.push(predicate.field_name().clone());
                query.require(predicate);
            }
        }
    }
    Ok(found)
}

/// Returns the type named by a condition `type = ...`, if there is one.
pub(super) fn type_named(
    conditions: &[Condition<'_>],
    context: &CheckContext<'_>,
) -> Result<Option<GrainType>> {
    for condition in conditions {
        if let (ConditionField::Table(field), ConditionTest::Compare(Comparator::Equal, value)) =
            (&condition.field.node, &condition.test.node)
            && field.shape == ValueKind::Type
            && let Literal::Text(name) = context.value(value)?
        {
            return Ok(types::by_singular(name).map(|found| found.grain_type));
        }
    }
    Ok(None)
}

/// Checks that the field takes the operator: E020.
fn check_operator(field: &Spanned<FieldRef>, test: &Spanned<ConditionTest<'_>>) -> Result<()> {
    let operator = match &test.node {
        ConditionTest::Compare(comparator, _) => comparator.op(),
        ConditionTest::In(_) => ops::IN,
        ConditionTest::Between(_) => ops::BETWEEN,
        ConditionTest::Include(_) => ops::INCLUDE,
        ConditionTest::Exclude(_) => ops::EXCLUDE,
        ConditionTest::Is(_) => ops::IS,
    };
    let row = field.node;
    if row.operators & operator == 0 {
        let names: Vec<_> = row.operator_names().collect();
        let message = format!("{} does not take this operator", row.name);
        let error = Error::new(ErrorKind::WrongType, message).at(test.span);
        return Err(error.suggest(format!("{} takes {}", row.name, names.join(", "))).valid(names));
    }
    Ok(())
}
