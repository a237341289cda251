//! Equality by value: the order of members does not count, and `1` is `1.0`.

use serde_json::{Number, Value};

/// Returns `true` if both values are the same data: members in any order, numbers by what they are worth.
///
/// ```
/// use grainstore_interop::json::{equal, parse};
///
/// assert!(equal(&parse(br#"{"a": 1, "b": [2e0]}"#)?, &parse(br#"{"b": [2], "a": 1.0}"#)?));
/// assert!(!equal(&parse(b"9007199254740993")?, &parse(b"9007199254740992")?));
/// # Ok::<(), grainstore_interop::Error>(())
/// ```
#[must_use]
pub fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => equal_numbers(left, right),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(name, value)| right.get(name).is_some_and(|other| equal(value, other)))
        }
        _ => left == right,
    }
}

/// Integers are compared as such; only where one is written as a fraction does a double decide.
fn equal_numbers(left: &Number, right: &Number) -> bool {
    match (left.is_f64(), right.is_f64()) {
        (false, false) => left == right,
        (true, true) => left.as_f64() == right.as_f64(),
        (true, false) => is_integer(left, right),
        (false, true) => is_integer(right, left),
    }
}

/// Returns `true` if the double is exactly this integer.
fn is_integer(double: &Number, integer: &Number) -> bool {
    let Some(double) = double.as_f64() else { return false };
    // The form of a double without a fraction has all its digits, so that nothing is rounded here.
    double.fract() == 0.0 && format!("{double:.0}") == integer.to_string()
}
