//! Resolution of time phrases to ranges of epoch milliseconds, in UTC, relative to one `now` (CAL 5.2).
//!
//! A date or calendar phrase is its whole range, "last N units" ends now, every other value is an instant.
//! Unknown phrases are `None`, never a guess.

use grainstore_format::{EpochMs, parse_datetime};
use jiff::civil::{Date, DateTime, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan};

use crate::bounds::TimeRange;

/// Numbers below this are epoch seconds, others milliseconds.
const MIN_MILLISECOND_VALUE: f64 = 1e11;

/// Examples shown if a phrase is not understood.
pub(crate) const EXAMPLES: [&str; 8] = [
    "2026-03-15",
    "2026-03-15T10:00:00Z",
    "today",
    "yesterday",
    "last week",
    "last 7 days",
    "3 hours ago",
    "monday",
];

/// Returns the instant of a number: epoch seconds or milliseconds.
#[expect(clippy::cast_possible_truncation, reason = "bounded by the check before the cast")]
pub(crate) fn of_number(value: f64) -> Option<TimeRange> {
    let ms = if value.abs() < MIN_MILLISECOND_VALUE { value * 1000.0 } else { value };
    let rounded = ms.round();
    (rounded.abs() < 9e15).then(|| instant(rounded as i64))
}

/// Returns the range of a text: ISO date or datetime, epoch digits, or a phrase.
pub(crate) fn of_text(text: &str, now: EpochMs) -> Option<TimeRange> {
    let text = text.trim();
    if text.bytes().next()?.is_ascii_digit()
        && let Some(found) = parse_iso(text)
    {
        return Some(found);
    }
    phrase(&text.to_ascii_lowercase(), now)
}

fn parse_iso(text: &str) -> Option<TimeRange> {
    let digits_only = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.len() {
        4 if digits_only => calendar(TimeUnit::Year, format!("{text}-01-01").parse().ok()?, 0),
        7 => calendar(TimeUnit::Month, format!("{text}-01").parse().ok()?, 0),
        10 if !digits_only => calendar(TimeUnit::Day, text.parse().ok()?, 0),
        9.. if digits_only => of_number(text.parse().ok()?),
        _ => {
            // Without an offset the time is in UTC.
            let exact = parse_datetime(text).or_else(|_| parse_datetime(&format!("{text}Z")));
            if let Ok(at) = exact {
                return Some(TimeRange { from: at, to: at });
            }
            if let Ok(timestamp) = text.parse::<Timestamp>() {
                return Some(instant(timestamp.as_millisecond()));
            }
            let civil: DateTime = text.parse().ok()?;
            Some(instant(ms(civil)?))
        }
    }
}

/// Units of calendar ranges and durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TimeUnit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

const UNITS: [(&str, TimeUnit); 7] = [
    ("second", TimeUnit::Second),
    ("minute", TimeUnit::Minute),
    ("hour", TimeUnit::Hour),
    ("day", TimeUnit::Day),
    ("week", TimeUnit::Week),
    ("month", TimeUnit::Month),
    ("year", TimeUnit::Year),
];

const WEEKDAYS: [(&str, Weekday); 7] = [
    ("monday", Weekday::Monday),
    ("tuesday", Weekday::Tuesday),
    ("wednesday", Weekday::Wednesday),
    ("thursday", Weekday::Thursday),
    ("friday", Weekday::Friday),
    ("saturday", Weekday::Saturday),
    ("sunday", Weekday::Sunday),
];

fn phrase(text: &str, now: EpochMs) -> Option<TimeRange> {
    let mut words: Vec<&str> = text.split_ascii_whitespace().take(6).collect();
    let since = words.first() == Some(&"since");
    if since {
        words.remove(0);
    }
    let timestamp = Timestamp::from_millisecond(now.get()).ok()?;
    let current = TimeZone::UTC.to_datetime(timestamp);
    let found = named_span(&words, current).or_else(|| relative(&words, current))?;
    Some(if since { TimeRange { from: found.from, to: now } } else { found })
}

/// Resolves names of days, weeks, months and years.
fn named_span(words: &[&str], now: DateTime) -> Option<TimeRange> {
    let today = now.date();
    match words {
        ["now"] => Some(instant(ms(now)?)),
        ["today"] => calendar(TimeUnit::Day, today, 0),
        ["yesterday"] => calendar(TimeUnit::Day, today, -1),
        ["tomorrow"] => calendar(TimeUnit::Day, today, 1),
        ["this", name] => match weekday(name) {
            Some(day) => calendar(TimeUnit::Day, day_of_week(today, day)?, 0),
            None => calendar(calendar_unit(name)?, today, 0),
        },
        ["last", name] => match weekday(name) {
            Some(day) => calendar(TimeUnit::Day, latest(today.yesterday().ok()?, day)?, 0),
            None => calendar(calendar_unit(name)?, today, -1),
        },
        ["next", name] => calendar(calendar_unit(name)?, today, 1),
        [name] => calendar(TimeUnit::Day, latest(today, weekday(name)?)?, 0),
        _ => None,
    }
}

/// Resolves "last 7 days", "past hour", "3 hours ago".
fn relative(words: &[&str], now: DateTime) -> Option<TimeRange> {
    let end = ms(now)?;
    match words {
        ["last" | "past", count, name] => {
            let from = time_before(now, number(count)?, unit(name)?)?;
            Some(TimeRange { from: EpochMs::new(from), to: EpochMs::new(end) })
        }
        ["last" | "past", name] => {
            let from = time_before(now, 1, unit(name)?)?;
            Some(TimeRange { from: EpochMs::new(from), to: EpochMs::new(end) })
        }
        [count, name, "ago"] => Some(instant(time_before(now, number(count)?, unit(name)?)?)),
        _ => None,
    }
}

fn number(word: &str) -> Option<i32> {
    match word {
        "a" | "an" | "one" => Some(1),
        digits => digits.parse().ok().filter(|count| *count >= 0),
    }
}

fn unit(word: &str) -> Option<TimeUnit> {
    let singular = word.strip_suffix('s').unwrap_or(word);
    UNITS.iter().find(|(name, _)| *name == singular).map(|(_, unit)| *unit)
}

/// Returns the units for which "this" and "last" mean calendar ranges.
fn calendar_unit(word: &str) -> Option<TimeUnit> {
    UNITS
        .iter()
        .find(|(name, _)| *name == word)
        .map(|(_, unit)| *unit)
        .filter(|unit| matches!(unit, TimeUnit::Week | TimeUnit::Month | TimeUnit::Year))
}

fn weekday(word: &str) -> Option<Weekday> {
    WEEKDAYS.iter().find(|(name, _)| *name == word).map(|(_, day)| *day)
}

/// Returns the latest such weekday on or before `date`.
fn latest(date: Date, day: Weekday) -> Option<Date> {
    let back = date.weekday().since(day);
    date.checked_sub(i64::from(back).days()).ok()
}

/// Returns that day in the week of `date`, which starts on Monday.
fn day_of_week(date: Date, day: Weekday) -> Option<Date> {
    let monday = latest(date, Weekday::Monday)?;
    monday.checked_add(i64::from(day.to_monday_zero_offset()).days()).ok()
}

/// Returns the calendar range that contains `date`, moved by `offset` units.
fn calendar(unit: TimeUnit, date: Date, offset: i64) -> Option<TimeRange> {
    let (start, step) = match unit {
        TimeUnit::Week => (latest(date, Weekday::Monday)?, Span::new().weeks(1)),
        TimeUnit::Month => (date.first_of_month(), Span::new().months(1)),
        TimeUnit::Year => (date.first_of_year(), Span::new().years(1)),
        _ => (date, Span::new().days(1)),
    };
    let first = start.checked_add(step.checked_mul(offset).ok()?).ok()?;
    let after = first.checked_add(step).ok()?;
    let from = ms(first.at(0, 0, 0, 0))?;
    let to = ms(after.at(0, 0, 0, 0))? - 1;
    Some(TimeRange { from: EpochMs::new(from), to: EpochMs::new(to) })
}

/// Returns the time `count` units before `now`, in epoch milliseconds.
fn time_before(now: DateTime, count: i32, unit: TimeUnit) -> Option<i64> {
    let span = Span::new();
    let span = match unit {
        TimeUnit::Second => span.try_seconds(count),
        TimeUnit::Minute => span.try_minutes(count),
        TimeUnit::Hour => span.try_hours(count),
        TimeUnit::Day => span.try_days(count),
        TimeUnit::Week => span.try_weeks(count),
        TimeUnit::Month => span.try_months(count),
        TimeUnit::Year => span.try_years(count),
    };
    ms(now.checked_sub(span.ok()?).ok()?)
}

fn ms(civil: DateTime) -> Option<i64> {
    Some(civil.to_zoned_datetime(TimeZone::UTC).ok()?.timestamp().as_millisecond())
}

fn instant(ms: i64) -> TimeRange {
    TimeRange { from: EpochMs::new(ms), to: EpochMs::new(ms) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wednesday, 2026-03-18 15:30:00 UTC.
    const NOW: &str = "2026-03-18T15:30:00Z";

    fn at(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_millisecond()
    }

    #[test]
    fn phrases_resolve_to_their_spans() {
        for (phrase, from, to) in [
            ("now", NOW, NOW),
            ("today", "2026-03-18T00:00:00Z", "2026-03-18T23:59:59.999Z"),
            ("Yesterday", "2026-03-17T00:00:00Z", "2026-03-17T23:59:59.999Z"),
            ("this week", "2026-03-16T00:00:00Z", "2026-03-22T23:59:59.999Z"),
            ("last week", "2026-03-09T00:00:00Z", "2026-03-15T23:59:59.999Z"),
            ("this month", "2026-03-01T00:00:00Z", "2026-03-31T23:59:59.999Z"),
            ("last month", "2026-02-01T00:00:00Z", "2026-02-28T23:59:59.999Z"),
            ("last year", "2025-01-01T00:00:00Z", "2025-12-31T23:59:59.999Z"),
            ("last 7 days", "2026-03-11T15:30:00Z", NOW),
            ("last  24   hours", "2026-03-17T15:30:00Z", NOW),
            ("past hour", "2026-03-18T14:30:00Z", NOW),
            ("3 hours ago", "2026-03-18T12:30:00Z", "2026-03-18T12:30:00Z"),
            ("1 month ago", "2026-02-18T15:30:00Z", "2026-02-18T15:30:00Z"),
            ("monday", "2026-03-16T00:00:00Z", "2026-03-16T23:59:59.999Z"),
            ("wednesday", "2026-03-18T00:00:00Z", "2026-03-18T23:59:59.999Z"),
            ("last wednesday", "2026-03-11T00:00:00Z", "2026-03-11T23:59:59.999Z"),
            ("this friday", "2026-03-20T00:00:00Z", "2026-03-20T23:59:59.999Z"),
            ("since monday", "2026-03-16T00:00:00Z", NOW),
            ("2026-03-15", "2026-03-15T00:00:00Z", "2026-03-15T23:59:59.999Z"),
            ("2026-02", "2026-02-01T00:00:00Z", "2026-02-28T23:59:59.999Z"),
            ("2025", "2025-01-01T00:00:00Z", "2025-12-31T23:59:59.999Z"),
            ("2026-03-15T10:00:00+02:00", "2026-03-15T08:00:00Z", "2026-03-15T08:00:00Z"),
            ("2026-03-15T10:00:00", "2026-03-15T10:00:00Z", "2026-03-15T10:00:00Z"),
            (
                "2026-03-15T10:00:00.1234+02:00",
                "2026-03-15T08:00:00.123Z",
                "2026-03-15T08:00:00.123Z",
            ),
            (
                "2026-03-15t10:00:00.123456789999z",
                "2026-03-15T10:00:00.123Z",
                "2026-03-15T10:00:00.123Z",
            ),
            (
                "2026-03-15T10:00:00.123456789999",
                "2026-03-15T10:00:00.123Z",
                "2026-03-15T10:00:00.123Z",
            ),
            ("2026-03-15T10:00Z", "2026-03-15T10:00:00Z", "2026-03-15T10:00:00Z"),
            ("1969-12-31T23:59:59.9999Z", "1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"),
            ("1773792000", "2026-03-18T00:00:00Z", "2026-03-18T00:00:00Z"),
        ] {
            let found = of_text(phrase, EpochMs::new(at(NOW))).unwrap_or(TimeRange::ALWAYS);
            assert_eq!((found.from.get(), found.to.get()), (at(from), at(to)), "{phrase}");
        }
    }

    #[test]
    fn unknown_phrases_resolve_to_nothing() {
        for phrase in
            ["", "soon", "last blue moon", "-1 days ago", "99999999999 years ago", "7 days"]
        {
            assert_eq!(of_text(phrase, EpochMs::new(at(NOW))), None, "{phrase}");
        }
        assert_eq!(of_text("today", EpochMs::new(i64::MAX)), None);
    }

    #[test]
    fn numbers_are_seconds_or_milliseconds_by_size() {
        for (number, expected) in
            [(1_773_792_000.0, 1_773_792_000_000), (1.5e12, 1_500_000_000_000)]
        {
            assert_eq!(of_number(number), Some(instant(expected)));
        }
        assert_eq!(of_number(1e300), None);
    }
}
