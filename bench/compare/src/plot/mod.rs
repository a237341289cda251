//! Figures as pictures: one SVG for each group of works, a panel for each work, a line for each
//! store over the sizes that were measured, both axes logarithmic.
//!
//! - `svg`: what is drawn, as text. `scale`: axes. `series`: lines out of records. `panel`: one work.

mod panel;
mod scale;
mod series;
mod svg;

use std::fs;
use std::path::Path;

use compare_facts::{Record, works};

use self::panel::{HEIGHT, WIDTH};
use self::series::{Style, peers, series};
use self::svg::{Anchor, Svg};
use crate::Result;
use crate::figures::Figures;

/// Panels beside each other.
const COLUMNS: usize = 2;
/// Room above the panels: the title and the legend.
const HEAD: f64 = 74.0;

/// One file.
struct Picture {
    file: &'static str,
    title: &'static str,
    works: &'static [&'static str],
}

/// All that are drawn.
const PICTURES: [Picture; 6] = [
    Picture {
        file: "latency-reads.svg",
        title: "Reading facts: median latency by size, less is better",
        works: &[works::SUBJECT, works::RELATION, works::GET, works::OPEN],
    },
    Picture {
        file: "latency-words.svg",
        title: "Searching by words: median latency by size, less is better",
        works: &[works::RARE, works::COMMON, works::IDENTIFIER, works::RECALL_COMMON],
    },
    Picture {
        file: "latency-context.svg",
        title: "Text for a prompt: median latency by size, less is better",
        works: &[
            works::TEXT,
            works::ASSEMBLE_RARE,
            works::ASSEMBLE_COMMON,
            works::ASSEMBLE_TRIMMED,
        ],
    },
    Picture {
        file: "latency-writes.svg",
        title: "Durable writes: median latency by size, less is better",
        works: &[works::PUT, works::SUPERSEDE, works::BATCH],
    },
    Picture {
        file: "throughput.svg",
        title: "Throughput by size, more is better",
        works: &[works::LOAD, works::ONE_THREAD, works::THREADS],
    },
    Picture {
        file: "memory.svg",
        title: "Memory and disk by size, less is better",
        works: &[works::MEMORY, works::DISK, works::DISK_COMPACTED],
    },
];

/// Draws the figures of a file into a directory.
///
/// # Errors
/// The file system's; for a file without figures.
pub(crate) fn draw(figures: &Path, directory: &Path) -> Result<()> {
    let records = Figures::read(figures)?.records;
    fs::create_dir_all(directory)?;
    for picture in &PICTURES {
        if let Some(text) = picture.drawn(&records) {
            fs::write(directory.join(picture.file), text)?;
        }
    }
    Ok(())
}

impl Picture {
    /// The picture; none where nothing of it was measured.
    fn drawn(&self, records: &[Record]) -> Option<String> {
        let all = peers(records);
        let panels: Vec<_> =
            self.works.iter().filter_map(|work| series(records, work, &all)).collect();
        if panels.is_empty() {
            return None;
        }
        let rows = panels.len().div_ceil(COLUMNS);
        let (width, height) = (WIDTH * number(COLUMNS), HEAD + HEIGHT * number(rows));
        let mut svg = Svg::new(width, height, self.title);
        svg.text((width / 2.0, 28.0), Anchor::Middle, 17, self.title);
        let drawn = |name: &str| panels.iter().any(|panel| panel.has(name));
        let shown: Vec<(usize, &String)> =
            all.iter().enumerate().filter(|(_, name)| drawn(name)).collect();
        for (at, (place, name)) in shown.iter().enumerate() {
            let x = width * (number(at) + 0.5) / number(shown.len()) - 40.0;
            let style = Style::of(*place);
            svg.line((x, 54.0), (x + 28.0, 54.0), style.color, style.width);
            svg.marker((x + 14.0, 54.0), style);
            svg.text((x + 36.0, 59.0), Anchor::Start, 14, name);
        }
        for (at, series) in panels.iter().enumerate() {
            let (column, row) = (at % COLUMNS, at / COLUMNS);
            let corner = (WIDTH * number(column), HEAD + HEIGHT * number(row));
            panel::draw(&mut svg, corner, series);
        }
        Some(svg.finish())
    }
}

/// A small count as a length.
fn number(count: usize) -> f64 {
    compare_facts::real(count)
}

#[cfg(test)]
mod tests;
