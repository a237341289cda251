//! Times as text: relative times, dates, ISO 8601. Always UTC, always against a given `now`.
//!
//! It knows instants, not grains, and never reads the system clock.

use grainstore_format::EpochMs;
use jiff::Timestamp;
use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;

/// The reference for relative times, as [`relative_time`] takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// The current time, constant for a request.
    pub now: EpochMs,
    /// Writes times in ISO 8601 instead of relative to `now` (`WITH iso_timestamps`).
    pub iso_timestamps: bool,
}

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;

/// Returns the age of `at`, rounded down: `23m ago`, `3h ago`, `yesterday`, `2d ago`, `3w ago`, then
/// `Mar 1` and `Mar 2025`. Future times are in ISO 8601 (CAL 10.3.4).
///
/// ```
/// use grainstore_format::EpochMs;
/// use grainstore_sml::{Clock, relative_time};
///
/// let at = EpochMs::new(1_768_471_200_000);
/// let clock = Clock { now: EpochMs::new(1_768_474_800_000), iso_timestamps: false };
/// assert_eq!(relative_time(at, &clock), "1h ago");
/// assert_eq!(relative_time(at, &Clock { iso_timestamps: true, ..clock }), "2026-01-15T10:00:00Z");
/// ```
#[must_use]
pub fn relative_time(at: EpochMs, clock: &Clock) -> String {
    if clock.iso_timestamps || at > clock.now {
        return iso(at);
    }
    match clock.now.get().saturating_sub(at.get()) {
        age if age < HOUR_MS => format!("{}m ago", age / MINUTE_MS),
        age if age < DAY_MS => format!("{}h ago", age / HOUR_MS),
        age if age < 2 * DAY_MS => "yesterday".to_owned(),
        age if age < 7 * DAY_MS => format!("{}d ago", age / DAY_MS),
        age if age < 30 * DAY_MS => format!("{}w ago", age / (7 * DAY_MS)),
        age if age < 365 * DAY_MS => format_date("%b %-d", at),
        _ => format_date("%b %Y", at),
    }
}

/// Returns the date alone if `at` is midnight, else ISO 8601 with time.
///
/// ```
/// use grainstore_format::EpochMs;
/// use grainstore_sml::date_or_iso;
///
/// assert_eq!(date_or_iso(EpochMs::new(0)), "1970-01-01");
/// assert_eq!(date_or_iso(EpochMs::new(60_000)), "1970-01-01T00:01:00Z");
/// ```
#[must_use]
pub fn date_or_iso(at: EpochMs) -> String {
    match civil(at) {
        Some(civil) if civil.time() == Time::midnight() => civil.date().to_string(),
        _ => iso(at),
    }
}

/// Returns ISO 8601, such as `2026-01-15T10:00:00Z`, with milliseconds only if they are not zero.
pub(crate) fn iso(at: EpochMs) -> String {
    match Timestamp::from_millisecond(at.get()) {
        Ok(time) if time.subsec_millisecond() == 0 => time.to_string(),
        _ => at.to_string(),
    }
}

/// Formats a date, or returns the bare milliseconds outside the range of the calendar.
fn format_date(pattern: &str, at: EpochMs) -> String {
    civil(at).map_or_else(|| at.to_string(), |civil| civil.strftime(pattern).to_string())
}

fn civil(at: EpochMs) -> Option<DateTime> {
    Timestamp::from_millisecond(at.get()).ok().map(|time| TimeZone::UTC.to_datetime(time))
}

#[cfg(test)]
mod tests {
    use grainstore_format::parse_datetime;

    use super::*;

    const NOW: &str = "2026-03-15T12:00:00Z";

    fn clock(iso_timestamps: bool) -> Clock {
        Clock { now: parse_datetime(NOW).unwrap(), iso_timestamps }
    }

    #[test]
    fn ages_round_down_at_every_step() {
        for (at, text) in [
            (NOW, "0m ago"),
            ("2026-03-15T11:59:00.001Z", "0m ago"),
            ("2026-03-15T11:59:00Z", "1m ago"),
            ("2026-03-15T11:00:00.001Z", "59m ago"),
            ("2026-03-15T11:00:00Z", "1h ago"),
            ("2026-03-14T12:00:00.001Z", "23h ago"),
            ("2026-03-14T12:00:00Z", "yesterday"),
            ("2026-03-13T12:00:00.001Z", "yesterday"),
            ("2026-03-13T12:00:00Z", "2d ago"),
            ("2026-03-08T12:00:00.001Z", "6d ago"),
            ("2026-03-08T12:00:00Z", "1w ago"),
            ("2026-02-15T12:00:00Z", "4w ago"),
            ("2026-02-13T12:00:00.001Z", "4w ago"),
            ("2026-02-13T12:00:00Z", "Feb 13"),
            ("2026-02-01T00:00:00Z", "Feb 1"),
            ("2025-03-15T12:00:00.001Z", "Mar 15"),
            ("2025-03-15T12:00:00Z", "Mar 2025"),
            ("1969-07-20T20:17:00Z", "Jul 1969"),
            ("2026-03-15T12:00:00.001Z", "2026-03-15T12:00:00.001Z"),
            ("2026-04-01T00:00:00Z", "2026-04-01T00:00:00Z"),
        ] {
            assert_eq!(relative_time(parse_datetime(at).unwrap(), &clock(false)), text, "{at}");
        }
    }

    #[test]
    fn iso_timestamps_turn_ages_off() {
        for (at, text) in [
            ("2026-03-15T13:00:00+02:00", "2026-03-15T11:00:00Z"),
            ("2024-02-29T23:59:59.5Z", "2024-02-29T23:59:59.500Z"),
        ] {
            assert_eq!(relative_time(parse_datetime(at).unwrap(), &clock(true)), text);
        }
    }

    #[test]
    fn midnight_is_a_date() {
        for (at, text) in [
            ("2026-03-15T00:00:00Z", "2026-03-15"),
            ("2026-03-15T02:00:00+02:00", "2026-03-15"),
            ("2026-03-15T00:00:00.001Z", "2026-03-15T00:00:00.001Z"),
            ("2026-03-15T14:30:00Z", "2026-03-15T14:30:00Z"),
        ] {
            assert_eq!(date_or_iso(parse_datetime(at).unwrap()), text, "{at}");
        }
    }

    #[test]
    fn instants_beyond_the_calendar_stay_numbers() {
        for ms in [i64::MIN, i64::MAX] {
            let at = EpochMs::new(ms);
            assert_eq!(relative_time(at, &clock(false)), ms.to_string());
            assert_eq!(date_or_iso(at), ms.to_string());
        }
        let ancient = Clock { now: EpochMs::new(i64::MIN), iso_timestamps: false };
        assert_eq!(relative_time(EpochMs::new(0), &ancient), "1970-01-01T00:00:00Z");
    }
}
