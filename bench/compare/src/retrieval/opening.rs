//! A store that was closed: how long until its first answers, and what it takes in memory.

use std::path::Path;

use grainstore::PageOptions;
use grainstore::cal::{Near, Predicate, Query};

use super::data::{subject, word};
use super::table::{self, Target};
use super::timing::micros;
use super::{MODEL, session};
use crate::Result;
use crate::vectors::Data as Vectors;

/// Rows of an answer.
const ROWS: usize = 10;

/// Opens a store and asks three questions, each of another index.
pub(super) fn measure(place: &Path, vectors: Option<&Vectors>) -> Result<()> {
    let (opening, session) = micros(|| session(place))?;
    let mut since = opening;
    let mut first = |query: Query| -> Result<f64> {
        let (took, found) =
            micros(|| Ok(session.query(&query, &PageOptions::first(ROWS))?.results.len()))?;
        if found == 0 {
            return Err("a store that was opened again has lost its grains".into());
        }
        since += took;
        Ok(since / 1e3)
    };
    let structural = first(Query::default().when(Predicate::text_is("subject", subject(7))?))?;
    let text = first(Query::default().searching(format!("{} {}", word(50), word(20_000))))?;
    for (name, ms) in [("structure", structural), ("words", text)] {
        table::row(
            format!("open, then the first answer by {name}"),
            format!("{ms:.1} ms, {:.1} of them opening", opening / 1e3),
            "",
            (ms, Target::AtMost(20.0)),
        )?;
    }
    if let Some(query) = vectors.and_then(|vectors| vectors.queries.first()) {
        let near = Near { model: Some(MODEL.to_owned()), values: query.as_slice().into() };
        let ms = first(Query::default().nearing(near))? - text;
        let work = "the first answer by a vector after that, which reads all vectors";
        table::row(work, format!("{ms:.0} ms"), "", (ms, Target::None))?;
    }
    let stats = session.store().stats()?;
    let vectors: usize = stats.vectors.iter().map(|space| space.bytes).sum();
    let mebibytes = |bytes: f64| bytes / f64::from(1 << 20);
    let text = mebibytes(stats.text_bytes as f64);
    table::row(
        "memory of what is searched, by `stats`",
        format!("text {text:.0} MiB, vectors {:.0} MiB", mebibytes(vectors as f64)),
        "",
        (text + mebibytes(vectors as f64), Target::None),
    )?;
    session.store().close()?;
    Ok(())
}
