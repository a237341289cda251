//! Dates of documents, which are RFC 3339 text of any precision, and those of grains, which are milliseconds.

use grainstore::EpochMs;
use grainstore::format::parse_datetime;
use jiff::Timestamp;

/// The beginning of the last days that RFC 3339 has, in the middle of which the calendar ends.
const LAST_DAYS: &str = "9999-12-3";
/// The first millisecond of the year 0, before which RFC 3339 has no dates.
const FIRST_DATE: i64 = -62_167_219_200_000;

/// Returns the milliseconds of RFC 3339 text, rounded down; `None` for any other text. The last day of the year 9999,
/// which stands for no end, is the last time that the calendar has.
pub(crate) fn milliseconds(text: &str) -> Option<EpochMs> {
    let read = parse_datetime(text).ok();
    read.or_else(|| {
        let (day, time) = text.split_at_checked(LAST_DAYS.len()).filter(|_| text.is_ascii())?;
        // The same time of a day that the calendar has says whether the rest is well formed.
        let is_last = day.starts_with(LAST_DAYS) && matches!(time.get(..1), Some("0" | "1"));
        parse_datetime(&format!("9998-12-3{time}")).ok().filter(|_| is_last)?;
        Some(EpochMs::new(Timestamp::MAX.as_second().saturating_mul(1000)))
    })
}

/// Returns the nearest time that a grain can be created at (OMS 3.1.1).
pub(crate) fn clamped(at: EpochMs) -> EpochMs {
    at.clamp(EpochMs::new(0), EpochMs::MAX_CREATED)
}

/// Returns a time as RFC 3339 text in UTC, with milliseconds only if there are any; `None` for one that has no such
/// text.
pub(crate) fn date_text(at: EpochMs) -> Option<String> {
    let ms = at.get();
    let date = Timestamp::from_millisecond(ms).ok().filter(|_| ms >= FIRST_DATE)?;
    Some(match ms.rem_euclid(1000) {
        0 => format!("{date:.0}"),
        _ => format!("{date:.3}"),
    })
}
