//! Grainstore beside raw redb and SQLite: the same grains, one run, one disk, answers checked.
//!
//! `cargo run --release` in this directory; `--help` lists what can be changed. In the order data
//! flows:
//!
//! - `options`: the command line. `random`, `data`: the rows. `ask`, `shapes`: the questions.
//! - `peer`: what a store must do to be compared; `peers`: those that do.
//! - `record`, `machine`: figures. `trial`: one peer at one size. `report`: the tables.
//! - `vectors`: a comparison of its own, of nearest neighbours. `retrieval`: searches against their
//!   targets.

mod options;
mod random;

mod data;

mod ask;
mod shapes;

mod peer;
mod peers;

mod machine;
mod record;

mod trial;

mod report;

mod retrieval;
mod vectors;

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use clap::Parser;
use serde::Serialize;

use crate::data::Source;
use crate::machine::Machine;
use crate::options::{Child, Options, Run};
use crate::peer::{CONTENDERS, Contender};
use crate::record::Record;
use crate::trial::{Stage, Trial};

/// What ends a run: anything at all. A comparison that met an error has no figures.
type Error = Box<dyn std::error::Error + Send + Sync>;
/// A result of this program.
type Result<T> = std::result::Result<T, Error>;

/// The file `--json` writes.
#[derive(Serialize)]
struct Figures<'f> {
    machine: &'f Machine,
    data: &'f str,
    records: &'f [Record],
}

fn main() -> Result<()> {
    let Options { run, child } = Options::parse();
    let named = |name: &str| Contender::named(name).ok_or(format!("there is no peer {name:?}"));
    match child {
        None => compare(&run),
        Some(Child::Open { peer, directory }) => trial::open(named(&peer)?, &directory),
        Some(Child::Crash { peer, directory, first, count }) => {
            trial::crash(named(&peer)?, &directory, first, count)
        }
        Some(Child::Vectors(run)) => vectors::run(&run),
        Some(Child::Retrieval(run)) => retrieval::run(&run),
    }
}

fn compare(run: &Run) -> Result<()> {
    let stores = run.dir.clone().unwrap_or_else(std::env::temp_dir);
    let machine = Machine::of(&stores);
    let source = Source::open(&run.wordnet, run.sizes.iter().copied().max().unwrap_or(0))?;
    head(&machine, &source.origin, run)?;
    let mut records = Vec::new();
    for grains in &run.sizes {
        let stage = Stage::of(&source, *grains, run.calls)?;
        for pass in 1..=run.passes {
            measure(&stage, run, pass, &stores, &mut records)?;
        }
        let (hub, namespaces) = (stage.hub_rows(), stage.hub_namespaces());
        let mut out = io::stdout().lock();
        writeln!(out, "\n## {grains} grains; the hub has {hub} more in {namespaces} namespaces\n")?;
        out.write_all(report::table(&records, *grains).as_bytes())?;
    }
    tail(&records, run)?;
    if let Some(path) = &run.json {
        let figures = Figures { machine: &machine, data: &source.origin, records: &records };
        serde_json::to_writer_pretty(File::create(path)?, &figures)?;
    }
    Ok(())
}

/// One pass of everybody, each on a new store. Every second pass goes the other way round, so that
/// nobody is always first.
fn measure(
    stage: &Stage,
    run: &Run,
    pass: usize,
    stores: &Path,
    records: &mut Vec<Record>,
) -> Result<()> {
    let mut contenders: Vec<Contender> = compared(run).collect();
    if pass.is_multiple_of(2) {
        contenders.reverse();
    }
    for contender in contenders {
        writeln!(io::stderr(), "{} grains, pass {pass}: {}", stage.grains, contender.name)?;
        let directory =
            tempfile::Builder::new().prefix("grainstore-compare-").tempdir_in(stores)?;
        Trial::new(stage, run, contender, pass, records).run(directory.path())?;
    }
    Ok(())
}

/// Those the command line names, in the order of the report.
fn compared(run: &Run) -> impl Iterator<Item = Contender> {
    let named = |contender: &Contender| run.peers.iter().any(|name| name == contender.name);
    CONTENDERS.into_iter().filter(named)
}

/// What was compared, on what terms.
fn head(machine: &Machine, data: &str, run: &Run) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "# Grainstore beside raw redb and SQLite\n")?;
    writeln!(out, "- {}", machine.versions.join("; "))?;
    let Machine { processor, threads, file_system, load_before, .. } = machine;
    writeln!(
        out,
        "- {threads} threads of {processor}; stores on {file_system}; load {load_before}"
    )?;
    writeln!(out, "- data: {data}; people, conversations and the hub are generated")?;
    let mebibytes = peer::CACHE_BYTES >> 20;
    writeln!(
        out,
        "- every put is one commit that is synced before it returns; page cache {mebibytes} MiB each"
    )?;
    for contender in compared(run) {
        writeln!(out, "- `{}`: {}", contender.name, contender.terms)?;
    }
    writeln!(
        out,
        "- cells: p50 p90 p99 of {} calls, passes apart by a slash; over: Grainstore's median through the best of that side",
        run.calls
    )?;
    if file_system == "tmpfs" {
        writeln!(
            out,
            "- **the stores are in memory: figures of durable writes mean nothing; give --dir**"
        )?;
    }
    Ok(())
}

/// How much to trust it.
fn tail(records: &[Record], run: &Run) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "\nAnswers were compared with a scan of all rows before they were timed.")?;
    match report::noise(records) {
        Some(percent) => writeln!(
            out,
            "Noise: half of all figures differ by more than {percent:.0} % between the first two of {} passes; load {} at the end.",
            run.passes,
            machine::load()
        )?,
        None => writeln!(out, "One pass only: noise is not known; load {}.", machine::load())?,
    }
    for figure in report::unsteady(records) {
        writeln!(out, "- unsteady, not to be trusted: {figure} between the passes")?;
    }
    Ok(())
}
