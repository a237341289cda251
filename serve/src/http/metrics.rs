//! Figures of the server: for Prometheus, and as small series for the console.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, LabelSetEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};

use super::tokens::now_ms;

/// Time of a point of the series.
const POINT: Duration = Duration::from_secs(5);
/// Points that are kept: ten minutes.
const MAX_POINTS: usize = 120;
/// Buckets of a histogram in seconds: .1 ms to 10 s.
const BUCKETS: [f64; 15] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    10.0,
];

/// What a request was.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Kind {
    /// The template of its path; never the path itself.
    pub(super) route: &'static str,
    pub(super) verb: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Labels {
    kind: Kind,
    status: u16,
}

impl EncodeLabelSet for Kind {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> std::fmt::Result {
        [("route", self.route), ("method", self.verb)].encode(encoder)
    }
}

impl EncodeLabelSet for Labels {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> std::fmt::Result {
        let status = self.status.to_string();
        [("route", self.kind.route), ("method", self.kind.verb), ("status", status.as_str())]
            .encode(encoder)
    }
}

/// Latencies by eighths of a doubling: small, and exact to a tenth.
#[derive(Debug, Clone, Default)]
struct Latencies {
    counts: BTreeMap<u32, u64>,
    total: u64,
    errors: u64,
}

/// Steps of a doubling.
const STEPS: f64 = 8.0;

impl Latencies {
    fn add(&mut self, took: Duration, is_error: bool) {
        let micros = took.as_secs_f64().mul_add(1e6, 1.0);
        // From 0 to some 300: a day has 2^37 microseconds.
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "small and from 0"
        )]
        let step = (micros.log2() * STEPS) as u32;
        *self.counts.entry(step).or_default() += 1;
        self.total += 1;
        self.errors += u64::from(is_error);
    }

    /// The time that a share of the requests took at most, in milliseconds.
    fn quantile(&self, share: f64) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "counts of requests")]
        let wanted = self.total as f64 * share;
        let mut seen = 0.0;
        for (step, count) in &self.counts {
            #[allow(clippy::cast_precision_loss, reason = "counts of requests")]
            let count = *count as f64;
            seen += count;
            if seen >= wanted {
                return ((f64::from(*step) + 1.0) / STEPS).exp2() / 1e3;
            }
        }
        0.0
    }

    fn told(&self) -> [(&'static str, Value); 4] {
        [
            ("requests", self.total.into()),
            ("errors", self.errors.into()),
            ("p50_ms", rounded(self.quantile(0.5)).into()),
            ("p99_ms", rounded(self.quantile(0.99)).into()),
        ]
    }
}

fn rounded(ms: f64) -> f64 {
    (ms * 1e3).round() / 1e3
}

/// The series of the console.
#[derive(Debug, Default)]
struct Series {
    by_kind: BTreeMap<Kind, Latencies>,
    points: VecDeque<(i64, Latencies)>,
    point_began: Option<Instant>,
}

/// The figures of a server.
pub(super) struct Metrics {
    registry: Registry,
    requests: Family<Labels, Counter>,
    seconds: Family<Kind, Histogram>,
    began: Instant,
    series: Mutex<Series>,
    pub(super) connections: Gauge,
    pub(super) streams: Gauge,
    pub(super) feeds: Gauge,
    running: Gauge,
    waiting: Gauge,
}

impl Metrics {
    pub(super) fn new() -> Self {
        let mut registry = Registry::with_prefix("grainstore");
        let requests = Family::<Labels, Counter>::default();
        registry.register("http_requests", "Requests that were answered", requests.clone());
        let seconds =
            Family::new_with_constructor((|| Histogram::new(BUCKETS)) as fn() -> Histogram);
        registry.register("http_request_seconds", "How long they took", seconds.clone());
        let mut gauge = |name: &str, help: &str| {
            let gauge = Gauge::default();
            registry.register(name, help, gauge.clone());
            gauge
        };
        let connections = gauge("http_connections", "Connections that are open");
        let streams = gauge("cal_streams", "Streams of CAL that run or can be taken up again");
        let feeds = gauge("change_feeds", "Change feeds that are open");
        let running = gauge("requests_running", "Requests that run");
        let waiting = gauge("requests_waiting", "Requests that wait for their turn");
        Self {
            registry,
            requests,
            seconds,
            began: Instant::now(),
            series: Mutex::default(),
            connections,
            streams,
            feeds,
            running,
            waiting,
        }
    }

    /// Notes a request.
    pub(super) fn note(&self, kind: &Kind, status: u16, took: Duration) {
        self.requests.get_or_create(&Labels { kind: kind.clone(), status }).inc();
        self.seconds.get_or_create(kind).observe(took.as_secs_f64());
        let mut series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        let is_error = status >= 500;
        series.by_kind.entry(kind.clone()).or_default().add(took, is_error);
        if series.point_began.is_none_or(|began| began.elapsed() >= POINT) {
            series.point_began = Some(Instant::now());
            series.points.push_back((now_ms(), Latencies::default()));
            if series.points.len() > MAX_POINTS {
                series.points.pop_front();
            }
        }
        if let Some((_, point)) = series.points.back_mut() {
            point.add(took, is_error);
        }
    }

    /// The text that Prometheus reads (OpenMetrics).
    pub(super) fn text(&self, running: usize, waiting: usize) -> String {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.running.set(number(running));
        self.waiting.set(number(waiting));
        let mut text = String::new();
        // A text takes whatever is written.
        let _ = encode(&mut text, &self.registry);
        text
    }

    /// The figures of the console.
    pub(super) fn json(&self) -> Value {
        let series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        let requests = series.by_kind.iter().map(|(kind, latencies)| {
            json!({
                "route": kind.route,
                "method": kind.verb,
                "count": latencies.total,
                "errors": latencies.errors,
                "latency_ms": {
                    "p50": rounded(latencies.quantile(0.5)),
                    "p99": rounded(latencies.quantile(0.99)),
                },
            })
        });
        let points = series.points.iter().map(|(at, latencies)| {
            let told = latencies.told().map(|(name, value)| (name.to_owned(), value));
            let at = ("at_ms".to_owned(), Value::from(*at));
            Value::Object(told.into_iter().chain([at]).collect())
        });
        json!({
            "uptime_ms": u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            "requests": requests.collect::<Vec<_>>(),
            "series": points.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_exact_to_a_tenth() {
        let mut latencies = Latencies::default();
        for micros in 1..=1_000 {
            latencies.add(Duration::from_micros(micros), false);
        }
        let (half, most) = (latencies.quantile(0.5), latencies.quantile(0.99));
        assert!((half - 0.5).abs() < 0.05, "{half}");
        assert!((most - 0.99).abs() < 0.1, "{most}");
    }

    #[test]
    fn figures_name_routes_and_never_paths() {
        let metrics = Metrics::new();
        let kind = Kind { route: "/v1/grains/{address}", verb: "GET" };
        metrics.note(&kind, 200, Duration::from_millis(2));
        metrics.note(&kind, 500, Duration::from_millis(2));
        let text = metrics.text(1, 0);
        assert!(
            text.contains(r#"route="/v1/grains/{address}",method="GET",status="200"} 1"#),
            "{text}"
        );
        assert!(text.ends_with("# EOF\n"));
        let json = metrics.json();
        assert_eq!(json["requests"][0]["errors"], 1);
        assert_eq!(json["series"][0]["requests"], 2);
    }
}
