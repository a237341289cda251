//! Figures: how calls are timed, and one record for everything that is measured.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::Result;

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Microseconds; less is better.
    #[serde(rename = "us")]
    Micros,
    /// Milliseconds; less is better.
    #[serde(rename = "ms")]
    Millis,
    /// Grains a second; more is better.
    #[serde(rename = "grains/s")]
    PerSecond,
    /// How many times as much; more is better.
    #[serde(rename = "times")]
    Times,
    /// Bytes a grain; less is better.
    #[serde(rename = "bytes/grain")]
    BytesPerGrain,
    /// Mebibytes; less is better.
    #[serde(rename = "MiB")]
    Mebibytes,
}

/// One figure, or the percentiles of one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The median, or the figure itself.
    pub p50: f64,
    /// Nine in ten are at most this.
    pub p90: Option<f64>,
    /// 99 in a hundred are at most this.
    pub p99: Option<f64>,
    /// Calls that were measured.
    pub calls: usize,
}

/// A figure with what it is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Grains the store was loaded with.
    pub grains: usize,
    /// Which round, from 1.
    pub pass: usize,
    /// Whose.
    pub peer: String,
    /// What was done.
    pub work: String,
    /// What is counted.
    pub unit: Unit,
    /// The figure.
    pub figure: Figure,
}

impl Unit {
    /// Its name in the report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Micros => "us",
            Self::Millis => "ms",
            Self::PerSecond => "grains/s",
            Self::Times => "times",
            Self::BytesPerGrain => "bytes a grain",
            Self::Mebibytes => "MiB",
        }
    }

    /// Whether a larger figure is the better one.
    #[must_use]
    pub fn more_is_better(self) -> bool {
        matches!(self, Self::PerSecond | Self::Times)
    }
}

impl Figure {
    /// A figure measured once.
    #[must_use]
    pub fn once(value: f64) -> Self {
        Self { p50: value, p90: None, p99: None, calls: 1 }
    }

    /// The percentiles of some times, in microseconds.
    ///
    /// # Errors
    /// For no times at all.
    pub fn micros(times: Vec<Duration>) -> Result<Self> {
        Self::of(times, 1e6)
    }

    /// The percentiles of some times, in milliseconds.
    ///
    /// # Errors
    /// For no times at all.
    pub fn millis(times: Vec<Duration>) -> Result<Self> {
        Self::of(times, 1e3)
    }

    fn of(mut times: Vec<Duration>, per_second: f64) -> Result<Self> {
        times.sort_unstable();
        let calls = times.len();
        // The nearest rank: the smallest time that this share of all do not exceed.
        let at = |percent: usize| -> Result<f64> {
            let rank = (calls * percent).div_ceil(100).saturating_sub(1);
            Ok(times.get(rank).ok_or("nothing was measured")?.as_secs_f64() * per_second)
        };
        Ok(Self { p50: at(50)?, p90: Some(at(90)?), p99: Some(at(99)?), calls })
    }
}

/// Times a call a number of times, with another number each. Stops early once `patience` is over,
/// but not before `least` calls.
///
/// # Errors
/// The call's.
pub fn time_calls(
    calls: usize,
    least: usize,
    patience: Duration,
    mut call: impl FnMut(usize) -> Result<()>,
) -> Result<Vec<Duration>> {
    let begun = Instant::now();
    let mut times = Vec::with_capacity(calls);
    for n in 0..calls {
        let start = Instant::now();
        call(n)?;
        times.push(start.elapsed());
        if n + 1 >= least && begun.elapsed() > patience {
            break;
        }
    }
    Ok(times)
}

/// `count` in `time`, as a rate a second.
#[must_use]
pub fn rate(count: usize, time: Duration) -> f64 {
    real(count) / time.as_secs_f64()
}

/// A count as a number to divide; exact far beyond any count here.
#[must_use]
pub fn real(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_the_nearest_rank() {
        let times = (1..=200).rev().map(Duration::from_micros).collect();
        let figure = Figure::micros(times).unwrap();
        let rounded = [Some(figure.p50), figure.p90, figure.p99].map(|p| p.map(f64::round));
        assert_eq!(rounded, [Some(100.0), Some(180.0), Some(198.0)]);
        assert_eq!(figure.calls, 200);
        assert!(Figure::micros(Vec::new()).is_err());
    }

    #[test]
    fn patience_ends_a_measurement_but_not_before_the_least_number_of_calls() {
        let times = time_calls(1000, 7, Duration::ZERO, |_| Ok(())).unwrap();
        assert_eq!(times.len(), 7);
        let times = time_calls(20, 7, Duration::MAX, |_| Ok(())).unwrap();
        assert_eq!(times.len(), 20);
    }
}
