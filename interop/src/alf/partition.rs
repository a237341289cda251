//! Partitions of memory by time (ALF 4.1.1): quarters or months of UTC, by when a record was created.

use grainstore::EpochMs;
use jiff::Timestamp;
use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

/// How long a partition of an archive is.
///
/// ```
/// use grainstore_interop::alf::{ExportOptions, Granularity};
///
/// let options = ExportOptions { granularity: Granularity::Month, ..ExportOptions::default() };
/// assert_ne!(options.granularity, Granularity::default());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Granularity {
    /// A quarter of a year: `2026-Q1`.
    #[default]
    Quarter,
    /// A month, for agents that remember much: `2026-01`.
    Month,
}

/// The time of a partition. In order of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    year: i16,
    first_month: i8,
    months: i8,
}

impl Span {
    /// Returns the span that a time is in.
    pub(super) fn of(at: EpochMs, granularity: Granularity) -> Self {
        let at = Timestamp::from_millisecond(at.get()).unwrap_or_default();
        let day = at.to_zoned_datetime(TimeZone::UTC).date();
        let months = match granularity {
            Granularity::Quarter => 3,
            Granularity::Month => 1,
        };
        let first_month = (day.month() - 1) / months * months + 1;
        Self { year: day.year(), first_month, months }
    }

    pub(super) fn label(self) -> String {
        match self.months {
            1 => format!("{:04}-{:02}", self.year, self.first_month),
            _ => format!("{:04}-Q{}", self.year, self.first_month / 3 + 1),
        }
    }

    pub(super) fn first_day(self) -> Date {
        self.day(self.first_month)
    }

    pub(super) fn last_day(self) -> Date {
        self.day(self.first_month + self.months - 1).last_of_month()
    }

    fn day(self, month: i8) -> Date {
        Date::new(self.year, month, 1).unwrap_or(date(1970, 1, 1))
    }

    /// Returns `true` if the span lies before the day of a time.
    pub(super) fn is_over(self, now: EpochMs) -> bool {
        let now = Timestamp::from_millisecond(now.get()).unwrap_or_default();
        self.last_day() < now.to_zoned_datetime(TimeZone::UTC).date()
    }
}

/// The labels that a record of a time may be filed under.
pub(super) fn labels_of(created_ms: i64) -> [String; 2] {
    let label = |granularity| Span::of(EpochMs::new(created_ms), granularity).label();
    [label(Granularity::Quarter), label(Granularity::Month)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kept::milliseconds;

    #[test]
    fn a_time_is_in_its_quarter_and_month() {
        for (text, quarter, month, first, last) in [
            ("2026-01-01T00:00:00Z", "2026-Q1", "2026-01", "2026-01-01", "2026-03-31"),
            ("2026-03-31T23:59:59.999Z", "2026-Q1", "2026-03", "2026-01-01", "2026-03-31"),
            ("2026-04-01T00:00:00Z", "2026-Q2", "2026-04", "2026-04-01", "2026-06-30"),
            ("2024-12-31T23:30:00-01:00", "2025-Q1", "2025-01", "2025-01-01", "2025-03-31"),
            ("0007-11-02T00:00:00Z", "0007-Q4", "0007-11", "0007-10-01", "0007-12-31"),
        ] {
            let at = milliseconds(text).unwrap();
            let span = Span::of(at, Granularity::Quarter);
            assert_eq!(labels_of(at.get()), [quarter, month]);
            assert_eq!(span.first_day().to_string(), first);
            assert_eq!(span.last_day().to_string(), last);
        }
        let span = Span::of(milliseconds("2026-01-01T00:00:00Z").unwrap(), Granularity::Quarter);
        assert!(!span.is_over(milliseconds("2026-03-31T23:59:59Z").unwrap()));
        assert!(span.is_over(milliseconds("2026-04-01T00:00:00Z").unwrap()));
    }
}
