//! The dates of other tools: RFC 3339 and what is near it, and numbers of seconds or milliseconds.
//!
//! Knows the forms of dates, not which field has which.

use std::fmt;
use std::str::FromStr;

use grainstore::EpochMs;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::Value;

/// What a date is that is written as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Unit {
    /// Seconds since 1970, with or without a fraction.
    #[default]
    Seconds,
    /// Milliseconds since 1970.
    Milliseconds,
}

/// When a record was made, as far as its source says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Dated {
    /// The source says when.
    At(EpochMs),
    /// The source has no dates; this is the one of its file.
    ByFile(EpochMs),
    /// The source has a date that cannot be read.
    Unreadable(String),
    /// The source has no date.
    Missing,
}

impl Dated {
    /// Reads a date; none, or a null, is [`Dated::Missing`].
    pub(super) fn of(value: Option<&Value>, unit: Unit) -> Self {
        match value {
            None | Some(Value::Null) => Self::Missing,
            Some(Value::String(text)) if text.trim().is_empty() => Self::Missing,
            Some(value) => {
                instant(value, unit).map_or_else(|| Self::Unreadable(excerpt(value)), Self::At)
            }
        }
    }

    /// Reads the first of these that is there.
    pub(super) fn first<'v>(
        values: impl IntoIterator<Item = Option<&'v Value>>,
        unit: Unit,
    ) -> Self {
        let mut found = values.into_iter().map(|value| Self::of(value, unit));
        found.find(|date| *date != Self::Missing).unwrap_or(Self::Missing)
    }

    /// The date of a file, if it has one.
    pub(super) fn of_file(modified: Option<EpochMs>) -> Self {
        modified.map_or(Self::Missing, Self::ByFile)
    }

    /// This date, or another one where there is none.
    pub(super) fn or(self, other: impl FnOnce() -> Self) -> Self {
        match self {
            Self::Missing => other(),
            found => found,
        }
    }

    /// The time, if it is known.
    pub(super) fn time(&self) -> Option<EpochMs> {
        match self {
            Self::At(time) | Self::ByFile(time) => Some(*time),
            Self::Unreadable(_) | Self::Missing => None,
        }
    }
}

impl fmt::Display for Dated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(time) | Self::ByFile(time) => time.fmt(f),
            Self::Unreadable(text) => write!(f, "its date {text} cannot be read"),
            Self::Missing => f.write_str("it has no date"),
        }
    }
}

/// Reads a date. Text without a zone is UTC, a day alone its first moment.
pub(super) fn instant(value: &Value, unit: Unit) -> Option<EpochMs> {
    match value {
        Value::String(text) => of_text(text.trim(), unit),
        Value::Number(number) => of_number(number.as_f64()?, unit),
        _ => None,
    }
}

/// Reads the date of an end, as [`instant`] does; a day alone lasts until its end, in UTC.
pub(super) fn last_moment(value: &Value, unit: Unit) -> Option<EpochMs> {
    let at = instant(value, unit)?;
    let is_day = value.as_str().map(str::trim).is_some_and(|text| {
        let is_of_day = |byte: u8| byte.is_ascii_digit() || byte == b'-';
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        digits < NUMBER_DIGITS && text.bytes().all(is_of_day)
    });
    Some(if is_day { EpochMs::new(at.get().saturating_add(DAY_MS - 1)) } else { at })
}

fn of_number(number: f64, unit: Unit) -> Option<EpochMs> {
    let scale = match unit {
        Unit::Seconds => 1000.0,
        Unit::Milliseconds => 1.0,
    };
    of_ms(number * scale)
}

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;
/// Digits of the seconds of a number that is written as text, at least: fewer may be a day.
const NUMBER_DIGITS: usize = 9;

/// Reads a text: a date, or a number as tables have it.
fn of_text(text: &str, unit: Unit) -> Option<EpochMs> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    match text.parse::<f64>() {
        Ok(number) if digits >= NUMBER_DIGITS => of_number(number, unit),
        _ => of_date(text),
    }
}

fn of_date(text: &str) -> Option<EpochMs> {
    let at = Timestamp::from_str(text).ok().or_else(|| {
        let local = DateTime::from_str(text).ok()?;
        TimeZone::UTC.to_timestamp(local).ok()
    })?;
    let ms = at.as_nanosecond().div_euclid(1_000_000);
    i64::try_from(ms).ok().map(EpochMs::new)
}

/// Milliseconds beyond which no calendar goes (the year 9999).
const MAX_MS: f64 = 253_402_300_799_999.0;

#[expect(
    clippy::cast_possible_truncation,
    reason = "its range is checked, and its fraction meant to go"
)]
fn of_ms(ms: f64) -> Option<EpochMs> {
    (ms.abs() <= MAX_MS).then(|| EpochMs::new(ms.floor() as i64))
}

/// The beginning of a value, for a message.
fn excerpt(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => text.get(..end).map(|start| format!("{start}...")).unwrap_or_default(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn dates_are_read_in_the_forms_that_tools_write() {
        let cases = [
            (json!("2024-07-26T06:57:00.108347Z"), Some(1_721_977_020_108)),
            (json!("2024-07-25T23:57:00.108347-07:00"), Some(1_721_977_020_108)),
            (json!("2024-07-26 06:57:00.108347+00"), Some(1_721_977_020_108)),
            (json!("2024-07-26 06:57:00"), Some(1_721_977_020_000)),
            (json!("2024-07-26T06:57:00"), Some(1_721_977_020_000)),
            (json!("2024-07-26"), Some(1_721_952_000_000)),
            (json!(1_721_977_020), Some(1_721_977_020_000)),
            (json!(1_721_977_020.108_3), Some(1_721_977_020_108)),
            (json!("1969-12-31T23:59:59.9999Z"), Some(-1)),
            (json!("1721977020.5"), Some(1_721_977_020_500)),
            (json!("20240726"), Some(1_721_952_000_000)),
            (json!("yesterday"), None),
            (json!(""), None),
            (json!("2024-13-01T00:00:00Z"), None),
            (json!(1e300), None),
            (json!(u64::MAX), None),
            (json!(true), None),
            (json!([1]), None),
        ];
        for (value, expected) in cases {
            let found = instant(&value, Unit::Seconds).map(EpochMs::get);
            assert_eq!(found, expected, "{value}");
        }
        let ms = instant(&json!(1_721_977_020_108_u64), Unit::Milliseconds);
        assert_eq!(ms.map(EpochMs::get), Some(1_721_977_020_108));
    }

    #[test]
    fn a_day_alone_ends_with_its_last_moment() {
        let last = |value| last_moment(&value, Unit::Seconds).map(EpochMs::get);
        for day in ["2024-07-26", " 2024-07-26 ", "20240726"] {
            assert_eq!(last(json!(day)), Some(1_722_038_399_999), "{day}");
        }
        for at in [json!("2024-07-26T00:00:00Z"), json!(1_721_952_000), json!("1721952000")] {
            assert_eq!(last(at.clone()), Some(1_721_952_000_000), "{at}");
        }
        assert_eq!(last(json!("soon")), None);
    }

    #[test]
    fn no_date_is_another_thing_than_one_that_cannot_be_read() {
        assert_eq!(Dated::of(None, Unit::Seconds), Dated::Missing);
        assert_eq!(Dated::of(Some(&json!(null)), Unit::Seconds), Dated::Missing);
        assert_eq!(Dated::of(Some(&json!(" ")), Unit::Seconds), Dated::Missing);
        let bad = Dated::of(Some(&json!("soon")), Unit::Seconds);
        assert_eq!(bad.to_string(), "its date \"soon\" cannot be read");
        let long = Dated::of(Some(&json!("ü".repeat(100))), Unit::Seconds);
        assert!(long.to_string().len() < 200);
    }
}
