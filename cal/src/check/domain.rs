//! Domain fields in WHERE: prefixes, their profiles, and the values they take (CAL 12).

use grainstore_format::Value;

use super::CheckContext;
use super::resolve::{mismatch, too_many_values};
use crate::ast::{Condition, ConditionField, ConditionTest, InSet, Literal};
use crate::codes::{self, ErrorKind};
use crate::error::{Error, Result};
use crate::limits;
use crate::predicate::Predicate;
use crate::span::{Span, Spanned};

/// The prefixes of OMS appendix A with their profiles.
pub(crate) const DOMAINS: [(&str, &str); 7] = [
    ("hc", "healthcare"),
    ("legal", "legal"),
    ("fin", "finance"),
    ("rob", "robotics"),
    ("sci", "science"),
    ("con", "consumer"),
    ("int", "integration"),
];

/// Returns the predicate of a condition on a domain field. `all` are the conditions of the statement.
pub(super) fn predicate(
    (prefix, name): (&str, &str),
    test: &Spanned<ConditionTest<'_>>,
    all: &[Condition<'_>],
    context: &mut CheckContext<'_>,
) -> Result<Predicate> {
    let full = format!("{prefix}:{name}");
    warn(prefix, &full, all, context)?;
    match &test.node {
        ConditionTest::Compare(comparator, literal) => {
            let value = value(context.value(literal)?, literal.span)?;
            Predicate::domain(full, *comparator, &value).ok_or_else(|| {
                let message = "text and booleans take =, != and IN";
                Error::new(ErrorKind::WrongType, message).at(test.span)
            })
        }
        ConditionTest::In(InSet::Values(literals)) => {
            let values = context.spread(literals)?;
            if let Some(extra) = values.get(limits::MAX_IN_VALUES) {
                return Err(too_many_values(extra.span));
            }
            let values: Result<Vec<Value>> =
                values.iter().map(|literal| value(literal.node, literal.span)).collect();
            Ok(Predicate::domain_in(full, values?))
        }
        _ => Err(Error::new(ErrorKind::WrongType, "domain fields take comparators and IN (...)")
            .at(test.span)),
    }
}

/// Warns with W003 of an unknown prefix, with W002 if the tag of its profile is not required.
pub(super) fn warn(
    prefix: &str,
    full: &str,
    all: &[Condition<'_>],
    context: &mut CheckContext<'_>,
) -> Result<()> {
    let Some((_, profile)) = DOMAINS.iter().find(|(known, _)| *known == prefix) else {
        let known: Vec<_> = DOMAINS.iter().map(|(prefix, _)| *prefix).collect();
        let message = format!("{prefix}: is no domain known here ({})", known.join(", "));
        context.warn(codes::UNKNOWN_DOMAIN, message);
        return Ok(());
    };
    let tag = format!("profile:{profile}");
    for condition in all {
        let ConditionField::Table(field) = condition.field.node else { continue };
        if let (true, ConditionTest::Include(tags)) = (field.name == "tags", &condition.test.node) {
            let tags = context.array(tags)?;
            if tags.iter().any(|found| matches!(found.node, Literal::Text(text) if *text == tag)) {
                return Ok(());
            }
        }
    }
    let message = format!("{full} without tags INCLUDE [\"{tag}\"] also finds other profiles");
    context.warn(codes::MISSING_PROFILE_TAG, message);
    Ok(())
}

/// Returns a single value in the form grains hold it.
fn value(literal: &Literal<'_>, span: Span) -> Result<Value> {
    Ok(match literal {
        Literal::Text(text) => Value::from(&**text),
        Literal::Hash(digits) => Value::from(format!("sha256:{digits}")),
        Literal::Number(number) => Value::from(number.value),
        Literal::Flag(flag) => Value::from(*flag),
        Literal::Array(_) | Literal::Param(_) => {
            return Err(mismatch("a single value", literal, span));
        }
    })
}
