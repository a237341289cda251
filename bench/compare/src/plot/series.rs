//! Lines out of records: for each store the median of its passes at each size.

use std::collections::BTreeMap;

use compare_facts::{Record, Unit};

/// The shape of a store's marks.
#[derive(Debug, Clone, Copy)]
pub(super) enum Marker {
    /// Round.
    Circle,
    /// A square.
    Square,
    /// A triangle that points up.
    Up,
    /// One that points down.
    Down,
    /// A square on its corner.
    Diamond,
}

/// How the line of a store looks: told apart without colours, too.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    pub(super) color: &'static str,
    pub(super) marker: Marker,
    pub(super) width: f64,
}

/// Colours that also those tell apart who see few, by Okabe and Ito.
const STYLES: [Style; 5] = [
    Style { color: "#0072b2", marker: Marker::Circle, width: 3.0 },
    Style { color: "#d55e00", marker: Marker::Square, width: 1.8 },
    Style { color: "#009e73", marker: Marker::Up, width: 1.8 },
    Style { color: "#b0579a", marker: Marker::Down, width: 1.8 },
    Style { color: "#7a6a00", marker: Marker::Diamond, width: 1.8 },
];

impl Style {
    /// That of the store at a place among all.
    pub(super) fn of(place: usize) -> Self {
        let [first, ..] = STYLES;
        STYLES.get(place % STYLES.len()).copied().unwrap_or(first)
    }
}

/// A line: size and figure.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) style: Style,
    pub(super) points: Vec<(f64, f64)>,
}

/// The lines of one work.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) work: String,
    pub(super) unit: Unit,
    pub(super) lines: Vec<Line>,
}

impl Series {
    /// Whether a store has a line.
    pub(super) fn has(&self, name: &str) -> bool {
        self.lines.iter().any(|line| line.name == name)
    }
}

/// Everybody, in the order of the records.
pub(super) fn peers(records: &[Record]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for record in records {
        if !names.contains(&record.peer) {
            names.push(record.peer.clone());
        }
    }
    names
}

/// The lines of a work; none where nobody did it.
pub(super) fn series(records: &[Record], work: &str, peers: &[String]) -> Option<Series> {
    let of_work: Vec<&Record> = records.iter().filter(|record| record.work == work).collect();
    let unit = of_work.first()?.unit;
    let line = |(place, name): (usize, &String)| {
        let mut sizes: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for record in of_work.iter().filter(|record| record.peer == *name) {
            sizes.entry(record.grains).or_default().push(record.figure.p50);
        }
        let point = |(size, values)| (compare_facts::real(size), median(values));
        let points = sizes.into_iter().map(point).collect();
        Line { name: name.clone(), style: Style::of(place), points }
    };
    let lines = peers.iter().enumerate().map(line).filter(|line| !line.points.is_empty());
    Some(Series { work: work.to_owned(), unit, lines: lines.collect() })
}

/// The middle of some figures, or what lies between the two in the middle.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let at = |place: usize| values.get(place).copied().unwrap_or(0.0);
    f64::midpoint(at((values.len().max(1) - 1) / 2), at(values.len() / 2))
}
