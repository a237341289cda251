//! Vectors: the nearest ten by our graph and by others, over the same vectors, with answers
//! compared to a scan of all of them.
//!
//! `data`: the vectors. `peers`: who is asked. Knows nothing of stores or grains.

mod data;
mod peers;

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;

use self::peers::contenders;
use crate::Result;

pub(crate) use self::data::Data;
pub(crate) use self::peers::{Peer, hnsw};

/// Vectors that are asked for.
pub(crate) const NEAREST: usize = 10;

/// What to measure.
#[derive(Debug, Clone, Args)]
pub(crate) struct Run {
    /// Vectors an index holds
    #[arg(long = "vectors", value_delimiter = ',', default_value = "20000,100000")]
    sizes: Vec<usize>,
    /// Numbers of a generated vector
    #[arg(long, default_value_t = 384)]
    dimension: usize,
    /// Vectors that are looked for
    #[arg(long, default_value_t = 500)]
    queries: usize,
    /// How many nodes a search keeps in mind
    #[arg(long, value_delimiter = ',', default_value = "32,64,96,128,192,256")]
    widths: Vec<usize>,
    /// Threads that build
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Who is compared
    #[arg(long = "who", value_delimiter = ',', default_value = "grainstore,hnsw_rs")]
    who: Vec<String>,
    /// A directory with real vectors: *.turns.f32 and *.qa.f32, rows of 384 numbers
    #[arg(long, env = "GRAINSTORE_LOCOMO")]
    locomo: Option<PathBuf>,
}

/// Prints a table for every size.
pub(crate) fn run(run: &Run) -> Result<()> {
    if let Some(directory) = &run.locomo {
        compare(&Data::read(directory)?, run)?;
    }
    for size in &run.sizes {
        compare(&Data::generated(*size, run.queries, run.dimension), run)?;
    }
    Ok(())
}

fn compare(data: &Data, run: &Run) -> Result<()> {
    let mut out = io::stdout().lock();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("unknown");
    let Data { rows, queries, origin } = data;
    writeln!(out, "\n## {} {origin}, {} looked for; load {load}\n", rows.len(), queries.len())?;
    writeln!(out, "| who | build s | width | p50 us | p90 us | recall@{NEAREST} |")?;
    writeln!(out, "|---|---|---|---|---|---|")?;
    let truth = data.truth(NEAREST);
    for contender in
        contenders().into_iter().filter(|(name, _)| run.who.iter().any(|who| who == name))
    {
        let (name, build) = contender;
        let began = Instant::now();
        let mut peer = build(rows, run.threads)?;
        let seconds = began.elapsed().as_secs_f64();
        for width in &run.widths {
            let (p50, p90, recall) = ask(peer.as_mut(), queries, &truth, *width)?;
            writeln!(
                out,
                "| {name} | {seconds:.1} | {width} | {p50:.0} | {p90:.0} | {recall:.4} |"
            )?;
        }
        for (what, p50) in peer.extras(queries)? {
            writeln!(out, "| {name} | | {what} | {p50:.0} | | |")?;
        }
    }
    Ok(())
}

/// Median and ninth decile in microseconds, and the part of the truth that was found.
fn ask(
    peer: &mut dyn Peer,
    queries: &[Vec<f32>],
    truth: &[Vec<usize>],
    width: usize,
) -> Result<(f64, f64, f64)> {
    for query in queries.iter().take(50) {
        peer.nearest(query, NEAREST, width)?;
    }
    let (mut times, mut hits, mut wanted) = (Vec::new(), 0, 0);
    for (query, truth) in queries.iter().zip(truth) {
        let began = Instant::now();
        let found = peer.nearest(query, NEAREST, width)?;
        times.push(began.elapsed().as_secs_f64() * 1e6);
        hits += found.iter().filter(|row| truth.contains(row)).count();
        wanted += truth.len();
    }
    times.sort_by(f64::total_cmp);
    let part = |share: usize| times.get(times.len() * share / 10).copied().unwrap_or_default();
    #[expect(clippy::cast_precision_loss, reason = "thousands")]
    let recall = hits as f64 / wanted.max(1) as f64;
    Ok((part(5), part(9), recall))
}
