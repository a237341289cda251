//! Facts in every store, and in areev: what users call, one process at a time, answers checked.
//!
//! - `stores`: who is compared. `process`: one store in a process of its own.
//! - `grainstore_store`, `sqlite_store`, `redb_store`, `tantivy_store`: the stores of this program;
//!   `grain`: a fact as a grain. What is done with them is the crate `facts`.

mod grain;
mod grainstore_store;
mod process;
mod redb_store;
mod sqlite_store;
mod stores;
mod tantivy_store;

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use compare_facts::{Order, Record};
use stores::{STORES, Start, Store};

use crate::Result;
use crate::figures::Figures;
use crate::machine::{self, Machine};
use crate::report::{self, Columns};

/// What to measure.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Facts a store holds; 1000000 takes many minutes
    #[arg(long, visible_alias = "facts", value_delimiter = ',', default_value = "100000")]
    sizes: Vec<usize>,
    /// Who is compared; areev is built when it is asked for
    #[arg(long, value_delimiter = ',', value_parser = stores::names(), default_values = stores::names())]
    peers: Vec<String>,
    /// The largest size areev is asked for: it loads some 1,000 facts a second
    #[arg(long, default_value_t = 100_000)]
    areev_most: usize,
    /// Calls behind each percentile
    #[arg(long, default_value_t = 2000)]
    calls: usize,
    /// Seconds after which slow work is ended, and reported with its number of calls
    #[arg(long, default_value_t = 10)]
    patience: u64,
    /// Rounds of everything, each on new stores
    #[arg(long, default_value_t = 1)]
    passes: usize,
    /// Where the stores are made: a disk, not memory. The system's temporary directory if not given
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Writes every figure to this file, too: what `plot` draws from
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Measures, and prints the tables.
pub(crate) fn run(run: &Run) -> Result<()> {
    let directory = run.dir.clone().unwrap_or_else(std::env::temp_dir);
    let machine = Machine::of(&directory);
    let stores: Vec<Store> = STORES
        .into_iter()
        .filter(|store| run.peers.iter().any(|name| name == store.name))
        .collect();
    for store in &stores {
        store.prepare()?;
    }
    head(&machine, run, &stores)?;
    let mut records = Vec::new();
    for grains in &run.sizes {
        for pass in 1..=run.passes {
            records.extend(round(run, &stores, *grains, pass, &directory)?);
        }
        let mut out = io::stdout().lock();
        writeln!(out, "\n## {grains} facts\n")?;
        out.write_all(report::table(&records, *grains, &columns(&stores)).as_bytes())?;
    }
    report::tail(&records, run.passes)?;
    if let Some(path) = &run.json {
        let data = "made-up facts of 4 to 12 words, twelve of a subject, one namespace".to_owned();
        Figures { machine, data, records }.write(path)?;
    }
    Ok(())
}

/// Reads an order from the input, and measures a store of this program.
pub(crate) fn serve(name: &str) -> Result<()> {
    match Store::named(name).map(|store| store.start) {
        Some(Start::Here(serve)) => serve(),
        _ => Err(format!("there is no store {name:?} in this program").into()),
    }
}

/// One pass of everybody, each on a new store in a process of its own. Every second pass goes the
/// other way round, so that nobody is always first.
fn round(
    run: &Run,
    stores: &[Store],
    grains: usize,
    pass: usize,
    directory: &std::path::Path,
) -> Result<Vec<Record>> {
    let mut stores: Vec<&Store> = stores.iter().collect();
    if pass.is_multiple_of(2) {
        stores.reverse();
    }
    let mut records = Vec::new();
    for store in stores {
        if matches!(store.start, Start::Program(_)) && grains > run.areev_most {
            writeln!(io::stderr(), "{grains} facts: {} is left out (--areev-most)", store.name)?;
            continue;
        }
        writeln!(io::stderr(), "{grains} facts, pass {pass}: {}", store.name)?;
        let place = tempfile::Builder::new().prefix("grainstore-compare-").tempdir_in(directory)?;
        records.extend(process::measure(
            store,
            &Order {
                peer: store.name.to_owned(),
                grains,
                pass,
                calls: run.calls,
                patience: run.patience,
                directory: place.path().to_owned(),
            },
        )?);
    }
    Ok(records)
}

/// Everybody beside Grainstore.
fn columns(stores: &[Store]) -> Columns {
    let names: Vec<&'static str> = stores.iter().map(|store| store.name).collect();
    let others = names.iter().filter(|name| **name != stores::OURS);
    let sides = others.map(|name| (*name, vec![*name])).collect();
    Columns { names, ours: stores::OURS, sides }
}

/// What is compared, on what terms.
fn head(machine: &Machine, run: &Run, stores: &[Store]) -> Result<()> {
    let mut out = io::stdout().lock();
    let names: Vec<_> = stores.iter().map(|store| store.name).collect();
    writeln!(out, "# Facts in {}\n", names.join(", "))?;
    writeln!(out, "- {}", machine.versions.join("; "))?;
    writeln!(out, "- {}", machine.place())?;
    writeln!(out, "- facts of 4 to 12 words, twelve of a subject, one namespace")?;
    for store in stores {
        writeln!(out, "- `{}`: {}", store.name, store.terms)?;
    }
    if stores.iter().any(|store| matches!(store.start, Start::Program(_))) {
        let most = run.areev_most;
        writeln!(
            out,
            "- areev is not asked for more than {most} facts: it would take long to load"
        )?;
    }
    writeln!(
        out,
        "- cells: p50 p90 p99 of {} calls; over: Grainstore's median through theirs",
        run.calls
    )?;
    machine::warn_of_memory(machine, &mut out)
}

#[cfg(test)]
mod tests;
