//! Times of calls, and the figures that become of them.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::error::Result;

/// The percentiles of the calls of one kind of work.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Figure {
    pub(super) unit: &'static str,
    /// Half of the calls took at most this.
    pub(super) p50: f64,
    /// 95 in a hundred took at most this.
    pub(super) p95: f64,
    /// 99 in a hundred took at most this.
    pub(super) p99: f64,
    /// Calls that were timed.
    pub(super) calls: usize,
    /// Grains written in a second, the flush behind them included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) per_second: Option<f64>,
}

impl Figure {
    /// The percentiles of some times in microseconds; `None` of no times.
    pub(super) fn of(mut times: Vec<Duration>) -> Option<Self> {
        times.sort_unstable();
        let calls = times.len();
        // The nearest rank: the smallest time that this share of all do not exceed.
        let at = |percent: usize| {
            let rank = (calls * percent).div_ceil(100).checked_sub(1)?;
            Some(rounded(times.get(rank)?.as_secs_f64() * 1e6))
        };
        let (p50, p95, p99) = (at(50)?, at(95)?, at(99)?);
        Some(Self { unit: "us", p50, p95, p99, calls, per_second: None })
    }

    /// The same figures with a rate.
    pub(super) fn with_rate(self, grains: u32, took: Duration) -> Self {
        let rate = rounded(f64::from(grains) / took.as_secs_f64().max(f64::MIN_POSITIVE));
        Self { per_second: Some(rate), ..self }
    }
}

/// How long something took.
pub(super) fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<Duration> {
    let began = Instant::now();
    let done = std::hint::black_box(work()?);
    let took = began.elapsed();
    drop(done);
    Ok(took)
}

/// A figure over another, if there are both.
pub(super) fn ratio(ours: Option<f64>, theirs: Option<f64>) -> Option<f64> {
    let (ours, theirs) = (ours?, theirs.filter(|theirs| *theirs > 0.0)?);
    Some((ours / theirs * 1e3).round() / 1e3)
}

/// A figure with one digit behind the point.
pub(super) fn rounded(figure: f64) -> f64 {
    (figure * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_the_nearest_rank() {
        let of = |most: u64| Figure::of((1..=most).rev().map(Duration::from_micros).collect());
        let figure = of(200).unwrap();
        assert_eq!((figure.p50, figure.p95, figure.p99), (100.0, 190.0, 198.0));
        assert_eq!(figure.calls, 200);
        let one = of(1).unwrap();
        assert_eq!((one.p50, one.p99), (1.0, 1.0));
        assert_eq!(of(0), None);
        let rate = one.with_rate(3_000, Duration::from_millis(500)).per_second;
        assert_eq!(rate, Some(6_000.0));
    }

    #[test]
    fn there_is_no_ratio_to_nothing() {
        assert_eq!(ratio(Some(1.0), Some(3.0)), Some(0.333));
        assert_eq!(ratio(Some(1.0), None), None);
        assert_eq!(ratio(Some(1.0), Some(0.0)), None);
    }
}
