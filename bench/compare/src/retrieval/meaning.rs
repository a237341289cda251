//! Questions by a vector, beside `hnsw_rs` over the same vectors; those of one subject; both words and
//! a vector.

use std::time::{Duration, Instant};

use grainstore::cal::{Near, Predicate, Query};
use grainstore::{PageOptions, Session};

use super::MODEL;
use super::data::{SUBJECTS, grain, subject};
use super::table::{self, Target};
use super::timing::{in_turns, median, micros};
use crate::Result;
use crate::vectors::{Data as Vectors, NEAREST, Peer, hnsw};

/// Recall a graph needs to count.
const ENOUGH: f64 = 0.99;
/// Widths `hnsw_rs` is tried at.
const WIDTHS: [usize; 7] = [32, 64, 96, 128, 192, 256, 512];
/// How long a graph may take.
const PATIENCE: Duration = Duration::from_secs(1_800);

/// Times questions by vectors.
pub(super) fn measure(session: &Session, texts: &[String], vectors: &Vectors) -> Result<()> {
    let ours = Ours::of(session, texts)?;
    exact_meanwhile(&ours, vectors)?;
    let built = wait_for_graph(session)?;
    let truth = vectors.truth(NEAREST);
    let (seconds, mut raw) = {
        let (took, raw) = micros(|| hnsw(&vectors.rows, 2))?;
        (took / 1e6, raw)
    };
    table::row(
        "a graph of all vectors",
        format!("{built:.0} s"),
        format!("hnsw_rs: {seconds:.0} s"),
        (built / seconds, Target::None),
    )?;
    let recall = ours.recall(vectors, &truth, None)?;
    table::row("recall@10 by a vector", "as shipped", "a scan", (recall, Target::AtLeast(ENOUGH)))?;
    let (width, raw_recall) = enough(raw.as_mut(), vectors, &truth)?;
    let (own, other) = in_turns(
        &vectors.queries,
        2,
        |query| ours.nearest(query, None).map(|found| found.len()),
        |query| Ok(raw.nearest(query, NEAREST, width)?.len()),
    )?;
    table::row(
        "ten nearest, decoded",
        format!("{own:.0} us at {recall:.3}"),
        format!("hnsw_rs, no grains: {other:.0} us at {raw_recall:.3} (width {width})"),
        (own / other, Target::AtMost(1.1)),
    )?;
    drop(raw);
    of_one_subject(&ours, vectors, own)?;
    with_words(session, texts, vectors)
}

/// Our side, with the place of every grain by its address.
struct Ours<'s> {
    session: &'s Session,
    places: std::collections::HashMap<grainstore::ContentAddress, usize>,
}

impl<'s> Ours<'s> {
    fn of(session: &'s Session, texts: &[String]) -> Result<Self> {
        let address = |(at, text): (usize, &String)| -> Result<_> {
            let blob = grain(at, text)?.encode(grainstore::format::Encoding::MessagePack)?;
            Ok((blob.address(), at))
        };
        let places = texts.iter().enumerate().map(address).collect::<Result<_>>()?;
        Ok(Self { session, places })
    }

    /// The places of the grains that are nearest, of all or of those of one subject.
    fn nearest(&self, vector: &[f32], of: Option<usize>) -> Result<Vec<usize>> {
        let query = Query::default().nearing(near(vector));
        let query = match of {
            None => query,
            Some(at) => query.when(Predicate::text_is("subject", subject(at))?),
        };
        let rows = self.session.query(&query, &PageOptions::first(NEAREST))?.results;
        let place = |row: grainstore::QueryMatch| self.places.get(&row.content_address).copied();
        Ok(rows.into_iter().filter_map(place).collect())
    }

    /// The part of the truth that is found.
    fn recall(&self, vectors: &Vectors, truth: &[Vec<usize>], of: Option<usize>) -> Result<f64> {
        let (mut hits, mut wanted) = (0, 0);
        for (query, truth) in vectors.queries.iter().zip(truth) {
            let found = self.nearest(query, of)?;
            hits += found.iter().filter(|row| truth.contains(row)).count();
            wanted += truth.len();
        }
        Ok(hits as f64 / wanted.max(1) as f64)
    }
}

fn near(vector: &[f32]) -> Near {
    Near { model: Some(MODEL.to_owned()), values: vector.into() }
}

/// The first questions, which no graph answers yet.
fn exact_meanwhile(ours: &Ours<'_>, vectors: &Vectors) -> Result<()> {
    let some: Vec<Vec<f32>> = vectors.queries.iter().take(20).cloned().collect();
    let first = some.first().ok_or("no vectors to look for")?;
    let (loading, _) = micros(|| ours.nearest(first, None))?;
    let some = Vectors { rows: Vec::new(), queries: some, origin: String::new() };
    let truth: Vec<_> = vectors.truth_of(&some.queries, NEAREST);
    let recall = ours.recall(&some, &truth, None)?;
    table::row(
        "recall@10 while there is no graph",
        format!("the first answer reads all vectors: {:.0} ms", loading / 1e3),
        "a scan",
        (recall, Target::AtLeast(1.0)),
    )
}

/// Seconds until every vector is in a graph.
fn wait_for_graph(session: &Session) -> Result<f64> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if session.store().stats()?.vectors.iter().all(|space| space.beside == 0) {
            return Ok(began.elapsed().as_secs_f64());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Err("no graph in time".into())
}

/// The first width at which enough is found, else the last; with its recall.
fn enough(raw: &mut dyn Peer, vectors: &Vectors, truth: &[Vec<usize>]) -> Result<(usize, f64)> {
    let mut best = (0, 0.0);
    for width in WIDTHS {
        let (mut hits, mut wanted) = (0, 0);
        for (query, truth) in vectors.queries.iter().zip(truth) {
            let found = raw.nearest(query, NEAREST, width)?;
            hits += found.iter().filter(|row| truth.contains(row)).count();
            wanted += truth.len();
        }
        best = (width, hits as f64 / wanted.max(1) as f64);
        if best.1 >= ENOUGH {
            break;
        }
    }
    Ok(best)
}

/// A subject keeps one grain in a hundred: those are compared one by one.
fn of_one_subject(ours: &Ours<'_>, vectors: &Vectors, unfiltered: f64) -> Result<()> {
    let one = 3;
    let places: Vec<usize> = (one..vectors.rows.len()).step_by(SUBJECTS).collect();
    let rows = places.iter().filter_map(|at| vectors.rows.get(*at).cloned()).collect();
    let few = Vectors { rows, queries: vectors.queries.clone(), origin: String::new() };
    let truth = few.truth(NEAREST).into_iter();
    let place = |at: usize| places.get(at).copied();
    let truth: Vec<Vec<usize>> =
        truth.map(|found| found.into_iter().filter_map(place).collect()).collect();
    let recall = ours.recall(vectors, &truth, Some(one))?;
    table::row("recall@10 in 1 % of the grains", "", "a scan", (recall, Target::AtLeast(1.0)))?;
    let mut times = Vec::new();
    for query in &vectors.queries {
        times.push(micros(|| ours.nearest(query, Some(one)))?.0);
    }
    let filtered = median(times);
    table::row(
        "ten nearest in 1 % of the grains, decoded",
        format!("{filtered:.0} us"),
        format!("unfiltered: {unfiltered:.0} us"),
        (filtered / unfiltered, Target::AtMost(1.0)),
    )
}

/// Words of a grain and a vector of another, in one question.
fn with_words(session: &Session, texts: &[String], vectors: &Vectors) -> Result<()> {
    let mut times = Vec::new();
    for (query, text) in vectors.queries.iter().zip(texts) {
        let words: Vec<&str> = text.split(' ').take(2).collect();
        let query = Query::default().searching(words.join(" ")).nearing(near(query));
        let asked = || Ok(session.query(&query, &PageOptions::first(NEAREST))?.results.len());
        times.push(micros(asked)?.0);
    }
    let took = median(times);
    table::row(
        "ten best for two words and a vector, decoded",
        format!("{took:.0} us"),
        "",
        (took, Target::None),
    )
}
