//! Fields of domain profiles (CAL 12.2): looked up at top level and in `context` (OMS appendix A), `int:`
//! fields also by the short keys of OMS appendix C.

use grainstore_format::{GrainRef, Value, ValueRef, int_key};

use super::DomainTest;

/// Returns `true` if the field `name`, with its prefix, passes the test in one of its places.
pub(super) fn matches(grain: &GrainRef<'_>, name: &str, test: &DomainTest) -> bool {
    if grain.get(name).is_some_and(|value| test.holds(&value)) {
        return true;
    }
    let Some(context) = grain.get("context").and_then(|context| context.as_map()) else {
        return false;
    };
    let mut keys = std::iter::once(name).chain(int_key(name));
    keys.any(|key| context.get(key).is_some_and(|value| test.holds(&value)))
}

impl DomainTest {
    fn holds(&self, value: &ValueRef<'_>) -> bool {
        match self {
            Self::Text(want) => value.as_str().is_some_and(|text| want.holds_text(text)),
            Self::Number(comparator, number) => {
                value.as_f64().is_some_and(|found| comparator.holds(found, *number))
            }
            Self::Flag(flag) => value.as_bool() == Some(*flag),
            Self::OneOf(wanted) => wanted.iter().any(|wanted| same(value, wanted)),
        }
    }
}

/// Returns `true` if two single values are equal; numbers are compared by value, whatever their encoding.
fn same(found: &ValueRef<'_>, wanted: &Value) -> bool {
    match wanted {
        Value::Str(text) => found.as_str() == Some(text),
        Value::Bool(flag) => found.as_bool() == Some(*flag),
        number => number.as_f64().is_some() && found.as_f64() == number.as_f64(),
    }
}
