//! The figures of a run, as the JSON document has them.

use serde::Serialize;

use super::figure::{Figure, ratio};
use super::machine::Machine;
use super::turns::Side;
use super::work::{Disk, ROWS};

/// Everything about a run.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) version: &'static str,
    pub(super) build: &'static str,
    pub(super) machine: Machine,
    pub(super) grains: u32,
    /// The version of SQLite, where it stands beside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sqlite: Option<&'static str>,
    pub(super) rows: Vec<Row>,
    pub(super) disk: Vec<Room>,
    pub(super) memory: Memory,
}

/// One kind of work.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) grainstore: Option<Figure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sqlite: Option<Figure>,
    /// The medians, Grainstore's over SQLite's: below 1 Grainstore is faster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ratio: Option<f64>,
    /// The rates likewise: above 1 Grainstore is faster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rate_ratio: Option<f64>,
}

/// Room on the disk.
#[derive(Debug, Serialize)]
pub(super) struct Room {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) grainstore: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sqlite: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ratio: Option<f64>,
}

/// Memory of the process, in which all that are measured run.
#[derive(Debug, Serialize)]
pub(super) struct Memory {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) peak_bytes: Option<u64>,
}

impl Report {
    /// The figures of those who were measured: Grainstore, and what stands beside it.
    pub(super) fn of(
        machine: Machine,
        grains: u32,
        sides: &[Side],
        disk: &[Disk],
        peak_bytes: Option<u64>,
    ) -> Self {
        let row = |(name, about): (&'static str, &'static str)| {
            let figure = |at: usize| sides.get(at).and_then(|side| side.figures.get(name)).cloned();
            Row::new(name, about, figure(0), figure(1))
        };
        let room = |name, of: fn(&Disk) -> f64| {
            let (grainstore, sqlite) = (disk.first().map(of), disk.get(1).map(of));
            let ratio = ratio(grainstore, sqlite);
            Room { name, unit: "bytes a grain", grainstore, sqlite, ratio }
        };
        Self {
            version: env!("CARGO_PKG_VERSION"),
            build: if cfg!(debug_assertions) { "debug" } else { "release" },
            machine,
            grains,
            sqlite: sqlite_version(),
            rows: ROWS.into_iter().map(row).collect(),
            disk: vec![
                room("written", |disk| disk.written),
                room("compacted", |disk| disk.compacted),
            ],
            memory: Memory { peak_bytes },
        }
    }
}

impl Row {
    fn new(
        name: &'static str,
        about: &'static str,
        grainstore: Option<Figure>,
        sqlite: Option<Figure>,
    ) -> Self {
        let both = |of: fn(&Figure) -> Option<f64>| {
            ratio(grainstore.as_ref().and_then(of), sqlite.as_ref().and_then(of))
        };
        let (medians, rates) = (both(|figure| Some(figure.p50)), both(|figure| figure.per_second));
        Self { name, about, ratio: medians, rate_ratio: rates, grainstore, sqlite }
    }
}

#[cfg(feature = "sqlite")]
fn sqlite_version() -> Option<&'static str> {
    Some(super::sqlite_peer::version())
}

#[cfg(not(feature = "sqlite"))]
fn sqlite_version() -> Option<&'static str> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_of_work_that_one_alone_does_has_no_ratio() {
        let figure =
            |p50| Figure { unit: "us", p50, p95: 2.0, p99: 3.0, calls: 4, per_second: None };
        let row = |ours, theirs| Row::new("get", "", Some(figure(ours)), theirs).ratio;
        assert_eq!(row(1.0, Some(figure(2.0))), Some(0.5));
        assert_eq!(row(1.0, None), None);
    }
}
