//! Writing: batches with structure and text, and single grains, each beside redb by hand.

use std::path::Path;

use grainstore::embed::{Embedding, Metric};
use grainstore::{Offer, Session};
use redb::{Database, TableDefinition};

use super::table::{self, Target};
use super::timing::{in_turns, median, micros};
use super::{MODEL, data, session};
use crate::Result;
use crate::vectors::Data as Vectors;
use compare_facts::{disk_bytes, quiet_disk};

/// Grains of a batch.
const BATCH: usize = 1_000;
/// Single grains that are put.
const SINGLES: usize = 500;

/// A store that is filled in batches, then with single grains.
pub(super) fn measure(place: &Path, texts: &[String]) -> Result<()> {
    let session = session(place)?;
    quiet_disk()?;
    let (acknowledged, flushed) = fill(&session, texts)?;
    let rate = |micros: f64| texts.len() as f64 * 1e6 / micros;
    table::row(
        "ingest in batches of 1,000, structure and text on disk",
        format!("{:.0} a s; acknowledged {:.0} a s", rate(flushed), rate(acknowledged)),
        "",
        (rate(flushed), Target::AtLeast(15_000.0)),
    )?;
    let stats = session.store().stats()?;
    let bytes = disk_bytes(place)? as f64 / texts.len() as f64;
    table::row(
        "disk a grain, as it comes",
        format!("{bytes:.0} bytes, text {:.0}", stats.text_bytes as f64 / texts.len() as f64),
        "",
        (bytes, Target::None),
    )?;
    singles(place, &session)?;
    session.store().close()?;
    Ok(())
}

/// Puts texts in batches. Microseconds until they were acknowledged, and until all is on disk.
fn fill(session: &Session, texts: &[String]) -> Result<(f64, f64)> {
    let mut batches = Vec::new();
    for (batch, texts) in texts.chunks(BATCH).enumerate() {
        let grain = |(at, text): (usize, &String)| data::grain(batch * BATCH + at, text);
        batches.push(texts.iter().enumerate().map(grain).collect::<Result<Vec<_>>>()?);
    }
    let (flushed, acknowledged) = micros(|| {
        let (acknowledged, ()) = micros(|| {
            for batch in batches {
                session.put_batch(batch)?;
            }
            Ok(())
        })?;
        session.store().flush()?;
        Ok(acknowledged)
    })?;
    Ok((acknowledged, flushed))
}

/// Durable puts of one grain into the full store, beside a row of the same bytes in redb by hand.
fn singles(place: &Path, session: &Session) -> Result<()> {
    const ROWS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("rows");
    let redb = Database::create(place.join("raw.redb"))?;
    let row = |at: usize| -> Result<usize> {
        let transaction = redb.begin_write()?;
        transaction.open_table(ROWS)?.insert(u64::try_from(at)?, [7; 236].as_slice())?;
        transaction.commit()?;
        Ok(1)
    };
    let put = |at: &usize| -> Result<usize> {
        let text = format!("one more grain of some words, number {at}");
        session.put(data::grain(1_000_000_000 + at, &text)?)?;
        Ok(1)
    };
    let numbers: Vec<usize> = (0..SINGLES).collect();
    quiet_disk()?;
    let (ours, theirs) = in_turns(&numbers, 1, put, |at| row(*at))?;
    table::row(
        "durable put of one grain, structure and text following",
        format!("{ours:.0} us"),
        format!("redb by hand, one row: {theirs:.0} us"),
        (ours / theirs, Target::None),
    )
}

/// Fills a store with texts and, where there are some, their vectors, and waits for its graphs.
pub(super) fn load(session: &Session, texts: &[String], vectors: Option<&Vectors>) -> Result<()> {
    let mut times = Vec::new();
    for (batch, chunk) in texts.chunks(BATCH).enumerate() {
        let offer = |(at, text): (usize, &String)| -> Result<Offer> {
            let at = batch * BATCH + at;
            let vector = vectors.and_then(|vectors| vectors.rows.get(at));
            let vector = vector.map(|row| Embedding::new(MODEL, Metric::Cosine, row.clone()));
            let vectors = vector.transpose()?.into_iter().collect();
            Ok(Offer::Grain(data::grain(at, text)?).with_vectors(vectors))
        };
        let offers = chunk.iter().enumerate().map(offer).collect::<Result<Vec<_>>>()?;
        times.push(micros(|| Ok(session.put_batch(offers)?))?.0);
    }
    session.store().flush()?;
    if vectors.is_some() {
        let rate = BATCH as f64 * 1e6 / median(times);
        let work = "batches of 1,000 with a vector of 384 each, acknowledged";
        table::row(work, format!("{rate:.0} a s"), "", (rate, Target::None))?;
    }
    Ok(())
}
