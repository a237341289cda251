//! One work: its axes with units, and the lines of all who did it.

use compare_facts::Unit;

use super::scale::{Scale, written};
use super::series::Series;
use super::svg::{Anchor, Point, Svg};

/// The width of a panel.
pub(super) const WIDTH: f64 = 440.0;
/// The height of a panel.
pub(super) const HEIGHT: f64 = 280.0;

/// Room around the lines: left for numbers, below for sizes, above for the name.
const LEFT: f64 = 78.0;
const RIGHT: f64 = 22.0;
const ABOVE: f64 = 34.0;
const BELOW: f64 = 50.0;

const AXIS: &str = "#57606a";
const GRID: &str = "#d8dee4";

/// Draws a work with its upper left corner at a place.
pub(super) fn draw(svg: &mut Svg, (left, top): Point, series: &Series) {
    let (x_from, x_to) = (left + LEFT, left + WIDTH - RIGHT);
    let (y_from, y_to) = (top + HEIGHT - BELOW, top + ABOVE);
    let points = || series.lines.iter().flat_map(|line| line.points.iter().copied());
    let x = Scale::over(points().map(|(size, _)| size), x_from, x_to);
    let y = Scale::over(points().map(|(_, value)| value), y_from, y_to);

    let middle = f64::midpoint(x_from, x_to);
    svg.text((middle, top + 20.0), Anchor::Middle, 14, &series.work.replace('`', ""));
    for tick in y.ticks() {
        let at = y.place(tick);
        svg.line((x_from, at), (x_to, at), GRID, 1.0);
        svg.text((x_from - 7.0, at + 4.5), Anchor::End, 13, &written(tick));
    }
    let mut sizes: Vec<f64> = points().map(|(size, _)| size).collect();
    sizes.sort_unstable_by(f64::total_cmp);
    sizes.dedup();
    for size in sizes {
        let at = x.place(size);
        svg.line((at, y_from), (at, y_from + 5.0), AXIS, 1.0);
        svg.text((at, y_from + 19.0), Anchor::Middle, 13, &written(size));
    }
    svg.path(&[(x_from, y_to), (x_from, y_from), (x_to, y_from)], AXIS, 1.2);
    svg.text((middle, y_from + 38.0), Anchor::Middle, 13, "facts in the store");
    let unit = axis_name(series.unit);
    svg.turned_text((left + 18.0, f64::midpoint(y_from, y_to)), Anchor::Middle, 13, unit, -90);

    // The first is ours: drawn last, so that nothing hides it.
    for line in series.lines.iter().rev() {
        let points: Vec<Point> =
            line.points.iter().map(|(size, value)| (x.place(*size), y.place(*value))).collect();
        svg.path(&points, line.style.color, line.style.width);
        for point in points {
            svg.marker(point, line.style);
        }
    }
}

/// What an axis is labelled with.
fn axis_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Micros => "microseconds",
        Unit::Millis => "milliseconds",
        Unit::PerSecond => "facts a second",
        Unit::Times => "times",
        Unit::BytesPerGrain => "bytes a fact",
        Unit::Mebibytes => "MiB",
    }
}
