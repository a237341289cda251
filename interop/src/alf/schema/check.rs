//! The check of a value against a shape.

use data_encoding::BASE64;
use serde_json::Number;

use super::Shape;
use crate::alf::issue::{Issues, Place, Severity};
use crate::json::Value;
use crate::kept::milliseconds;

/// Checks a value, and reports what is wrong with it and what is not known.
pub(in super::super) fn check(shape: &Shape, value: &Value, at: &Place<'_>, issues: &mut Issues) {
    match (shape, value) {
        (Shape::Nullable(_), Value::Null) => {}
        (Shape::Nullable(shape), value) => check(shape, value, at, issues),
        (Shape::Object(members), Value::Object(object)) => {
            for member in *members {
                match object.get(member.name) {
                    Some(value) => check(&member.shape, value, &at.member(member.name), issues),
                    None if member.required => {
                        issues.add(Severity::Error, &at.member(member.name), "it is missing");
                    }
                    None => {}
                }
            }
            for name in object.keys() {
                if !members.iter().any(|member| member.name == name) {
                    issues.add(Severity::Notice, &at.member(name), "this member is not known");
                }
            }
        }
        (Shape::Each(shape), Value::Object(object)) => {
            object.iter().for_each(|(name, value)| check(shape, value, &at.member(name), issues));
        }
        (Shape::List(shape), Value::Array(items)) => {
            for (number, item) in items.iter().enumerate() {
                check(shape, item, &at.item(number), issues);
            }
        }
        (Shape::Words(words), Value::String(word)) if !words.contains(&word.as_str()) => {
            let message = format!("{word:?} is not known: it is kept, and read as the default");
            issues.add(Severity::Warning, at, message);
        }
        (Shape::Number | Shape::Words(_) | Shape::Text | Shape::Flag | Shape::Open, value) => {
            check_kind(shape, value, at, issues);
        }
        (shape, Value::String(text)) => check_text(shape, text, at, issues),
        (shape, Value::Number(number)) => check_number(shape, number, at, issues),
        (shape, value) => check_kind(shape, value, at, issues),
    }
}

/// Reports a value of another kind than the shape has.
fn check_kind(shape: &Shape, value: &Value, at: &Place<'_>, issues: &mut Issues) {
    let expected = match shape {
        Shape::Flag if value.is_boolean() => return,
        Shape::Number if value.is_number() => return,
        Shape::Words(_) | Shape::Text if value.is_string() => return,
        Shape::Open if value.is_object() => return,
        Shape::Flag => "true or false",
        Shape::Number | Shape::Unit => "a number",
        Shape::Integer(_) => "an integer",
        Shape::List(_) => "a list",
        Shape::Object(_) | Shape::Open | Shape::Each(_) => "an object",
        _ => "text",
    };
    issues.add(Severity::Error, at, format!("it is not {expected}"));
}

fn check_number(shape: &Shape, number: &Number, at: &Place<'_>, issues: &mut Issues) {
    let value = number.as_f64().unwrap_or_default();
    match shape {
        Shape::Integer(least) => {
            let is_whole = value.fract() == 0.0;
            #[expect(clippy::cast_precision_loss, reason = "the least values are 0 and 1")]
            let is_enough = value >= *least as f64;
            if !is_whole || !is_enough {
                issues.add(Severity::Error, at, format!("it is no integer of at least {least}"));
            }
        }
        Shape::Unit if !(0.0..=1.0).contains(&value) => {
            issues.add(Severity::Error, at, "it is not from 0 to 1");
        }
        Shape::Unit => {}
        shape => check_kind(shape, &Value::Number(number.clone()), at, issues),
    }
}

fn check_text(shape: &Shape, text: &str, at: &Place<'_>, issues: &mut Issues) {
    let problem = match shape {
        Shape::Solid if text.is_empty() => (Severity::Error, "it is empty"),
        Shape::Filled if text.is_empty() => (Severity::Tolerable, "it is empty"),
        Shape::Solid | Shape::Filled => return,
        Shape::Uuid if !is_uuid(text) => (Severity::Error, "it is no UUID"),
        Shape::RecordId if !is_uuid(text) => (Severity::Error, "it is no UUID"),
        Shape::RecordId if !is_version_7(text) => {
            (Severity::Warning, "it is no UUID of version 7 in lower case")
        }
        Shape::Uuid | Shape::RecordId => return,
        Shape::Date if !is_date(text) => (Severity::Error, "it is no date"),
        Shape::Date => return,
        Shape::Instant if milliseconds(text).is_none() => (Severity::Error, "it is no date-time"),
        Shape::DateTime if milliseconds(text).is_none() => {
            (Severity::Tolerable, "it is no date-time")
        }
        Shape::Instant | Shape::DateTime => return,
        Shape::Base64 if text.is_empty() => (Severity::Error, "it is empty"),
        Shape::Base64 if BASE64.decode(text.as_bytes()).is_err() => {
            (Severity::Error, "it is no base64")
        }
        Shape::Hex if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            (Severity::Error, "it is no hex")
        }
        Shape::Version if is_version(text) => return,
        // The drafts of the standard name themselves so.
        Shape::Version if text.split(['-', '+']).next().is_some_and(is_version) => {
            (Severity::Tolerable, "it is the version of a draft")
        }
        Shape::Version => (Severity::Error, "it is no version such as 1.0.0"),
        Shape::Checksum if !is_checksum(text) => (Severity::Error, "it is no checksum"),
        Shape::Base64 | Shape::Hex | Shape::Checksum => return,
        shape => return check_kind(shape, &Value::Null, at, issues),
    };
    issues.add(problem.0, at, problem.1);
}

/// Returns `true` for a UUID as text, of any version.
pub(in super::super) fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

fn is_version_7(text: &str) -> bool {
    let byte = |at: usize| text.as_bytes().get(at).copied().unwrap_or_default();
    !text.bytes().any(|byte| byte.is_ascii_uppercase())
        && byte(14) == b'7'
        && matches!(byte(19), b'8' | b'9' | b'a' | b'b')
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

fn is_version(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let is_number =
        |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.len() == 3 && parts.iter().all(is_number)
}

fn is_checksum(text: &str) -> bool {
    let Some((algorithm, digits)) = text.split_once(':') else { return false };
    let is_lower = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    !algorithm.is_empty()
        && algorithm.bytes().all(is_lower)
        && !digits.is_empty()
        && digits.bytes().all(is_hex)
}
