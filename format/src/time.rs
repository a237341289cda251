//! Instants: milliseconds since the epoch, and parsing of RFC 3339 text (OMS 4.8).

use std::borrow::Cow;
use std::fmt;

use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, ErrorKind, Result};

/// Milliseconds since 1970-01-01T00:00:00Z; negative before that.
///
/// ```
/// use grainstore_format::EpochMs;
///
/// let at = EpochMs::new(1_768_471_200_000);
/// assert_eq!(at.to_string(), "2026-01-15T10:00:00.000Z");
/// assert_eq!(at.header_second(), Some(1_768_471_200));
/// assert_eq!(at.plus_years(1).map(EpochMs::get), Some(1_800_007_200_000));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EpochMs(i64);

impl EpochMs {
    /// The latest `created_at` a header can carry: the last millisecond of second 2^32-1.
    pub const MAX_CREATED: Self = Self(u32::MAX as i64 * 1000 + 999);

    /// Builds an instant from milliseconds since the epoch.
    #[must_use]
    pub const fn new(ms: i64) -> Self {
        Self(ms)
    }

    /// Returns the milliseconds since the epoch.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }

    /// Returns the instant this many calendar years later, in UTC. February 29 becomes February 28 in a
    /// year without it. `None` outside the range of the calendar.
    #[must_use]
    pub fn plus_years(self, years: u64) -> Option<Self> {
        let from = Timestamp::from_millisecond(self.0).ok()?.to_zoned_datetime(TimeZone::UTC);
        let span = Span::new().try_years(i64::try_from(years).ok()?).ok()?;
        Some(Self(from.checked_add(span).ok()?.timestamp().as_millisecond()))
    }

    /// Returns the second for the header, rounded down, or `None` outside 0 ..= 2^32-1.
    #[must_use]
    pub fn header_second(self) -> Option<u32> {
        u32::try_from(self.0.div_euclid(1000)).ok()
    }
}

/// Formats as RFC 3339 in UTC with milliseconds, or as the bare number outside the range of the
/// calendar.
impl fmt::Display for EpochMs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Timestamp::from_millisecond(self.0) {
            Ok(at) => write!(f, "{at:.3}"),
            Err(_) => write!(f, "{}", self.0),
        }
    }
}

impl<'de> Deserialize<'de> for EpochMs {
    fn deserialize<D: Deserializer<'de>>(source: D) -> std::result::Result<Self, D::Error> {
        i64::deserialize(source).map(Self)
    }
}

impl Serialize for EpochMs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(self.0)
    }
}

/// Parses RFC 3339 text with an offset, rounding down to the millisecond.
///
/// ```
/// use grainstore_format::{EpochMs, parse_datetime};
///
/// assert_eq!(parse_datetime("2026-01-15T11:00:00+01:00")?, EpochMs::new(1_768_471_200_000));
/// assert!(parse_datetime("2026-01-15").is_err());
/// # Ok::<(), grainstore_format::Error>(())
/// ```
///
/// # Errors
/// `ERR_SCHEMA` for any other text, including a date without time or offset.
pub fn parse_datetime(text: &str) -> Result<EpochMs> {
    let refused = || {
        let message = format!("{text:?} is no RFC 3339 date-time such as 2026-01-15T10:00:00Z");
        Error::new(ErrorKind::Schema, message)
    };
    if !has_rfc3339_shape(text.as_bytes()) {
        return Err(refused());
    }
    let at: Timestamp = truncate_fraction(text).parse().map_err(|_| refused())?;
    let ms = at.as_nanosecond().div_euclid(1_000_000);
    i64::try_from(ms).map(EpochMs).map_err(|_| refused())
}

/// Checks the shape `YYYY-MM-DDThh:mm:ss[.fraction](Z|±hh:mm)`. The parser of `jiff` accepts more than
/// RFC 3339.
fn has_rfc3339_shape(text: &[u8]) -> bool {
    const DATE_TIME: &[u8] = b"dddd-dd-ddTdd:dd:dd";
    let Some((head, mut rest)) = text.split_at_checked(DATE_TIME.len()) else {
        return false;
    };
    let fits = |(byte, shape): (&u8, &u8)| match shape {
        b'd' => byte.is_ascii_digit(),
        b'T' => matches!(byte, b'T' | b't' | b' '),
        other => byte == other,
    };
    if !head.iter().zip(DATE_TIME).all(fits) {
        return false;
    }
    if let Some(fraction) = rest.strip_prefix(b".") {
        let digits = fraction.iter().take_while(|b| b.is_ascii_digit()).count();
        rest = fraction.get(digits..).unwrap_or_default();
        if digits == 0 {
            return false;
        }
    }
    match rest {
        [b'Z' | b'z'] => true,
        [b'+' | b'-', offset @ ..] => {
            offset.len() == 5
                && offset.iter().zip(b"dd:dd").all(fits)
                && offset < b"24".as_slice()
                && offset.get(3..) < Some(b"60".as_slice())
        }
        _ => false,
    }
}

/// Cuts the fraction to nine digits, the most `jiff` parses. The digits cut are below a nanosecond, so
/// they do not change the millisecond.
fn truncate_fraction(text: &str) -> Cow<'_, str> {
    const DIGITS: usize = 9;
    let Some((seconds, rest)) = text.split_once('.') else { return Cow::Borrowed(text) };
    let offset = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let fraction = rest.strip_suffix(offset).unwrap_or(rest);
    match fraction.get(..DIGITS) {
        Some(kept) => Cow::Owned(format!("{seconds}.{kept}{offset}")),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OFFSETS: [&str; 7] = ["Z", "z", "+02:00", "-05:30", "+00:00", "-00:00", "+23:59"];

    proptest! {
        #[test]
        fn a_fraction_is_read_as_the_calendar_reads_its_first_digits(
            second in 0..=i64::from(u32::MAX), fraction in "[0-9]{1,40}",
            offset in prop::sample::select(OFFSETS.to_vec()), between in "[Tt ]",
        ) {
            let at = Timestamp::from_second(second).unwrap().to_string();
            let at = at.trim_end_matches('Z').replace('T', &between);
            let first: String = fraction.chars().take(9).collect();
            let expected: Timestamp = format!("{at}.{first}{offset}").parse().unwrap();
            let read = parse_datetime(&format!("{at}.{fraction}{offset}"));
            let expected = expected.as_nanosecond().div_euclid(1_000_000);
            prop_assert_eq!(read.map(|read| i128::from(read.get())), Ok(expected));
        }
    }

    #[test]
    fn rfc3339_is_read_and_floored() {
        for (text, ms) in [
            ("2026-01-15T10:00:00Z", 1_768_471_200_000),
            ("2026-01-15T10:00:00.000Z", 1_768_471_200_000),
            ("2026-01-15T12:00:00+02:00", 1_768_471_200_000),
            ("2026-01-15T10:00:00.1239Z", 1_768_471_200_123),
            ("1969-12-31T23:59:59.9999Z", -1),
            ("1970-01-01T00:00:00.00199999999999999999Z", 1),
            ("1970-01-01T00:00:00.00199999999999999999-23:59", 86_340_001),
        ] {
            assert_eq!(parse_datetime(text).map(EpochMs::get), Ok(ms), "{text}");
        }
    }

    #[test]
    fn a_fraction_may_have_any_number_of_digits_before_any_offset() {
        let digits = "123456789".repeat(5);
        for (offset, minutes) in
            [("Z", 0), ("z", 0), ("+02:00", 120), ("-05:30", -330), ("+00:00", 0)]
        {
            for count in 1..=digits.len() {
                let fraction = digits.get(..count).unwrap();
                let ms: i64 = format!("{fraction:0<3}").get(..3).unwrap().parse().unwrap();
                let text = format!("2026-01-15T10:00:00.{fraction}{offset}");
                let expected = 1_768_471_200_000 - minutes * 60_000 + ms;
                assert_eq!(parse_datetime(&text).map(EpochMs::get), Ok(expected), "{text}");
            }
        }
    }

    #[test]
    fn other_dates_are_refused() {
        for text in [
            "",
            "2026-01-15",
            "2026-01-15T10:00:00",
            "2026-01-15T10:00Z",
            "2026-13-15T10:00:00Z",
            "2026-01-15T10:00:00.Z",
            "2026-01-15T10:00:00+0200",
            "2026-01-15T10:00:00+24:00",
            "2026-01-15T10:00:00+01:60",
            "20260115T100000Z",
            "2026-01-15T10:00:00Z[UTC]",
            "tomorrow",
        ] {
            let code = parse_datetime(text).map_err(|e| e.code());
            assert_eq!(code, Err("ERR_SCHEMA"), "{text}");
        }
    }
}
