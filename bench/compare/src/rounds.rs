//! Every shape of question in every peer: rounds of trials, and their tables.

use std::io::{self, Write};
use std::path::Path;

use compare_facts::Record;

use crate::Result;
use crate::data::Source;
use crate::figures::Figures;
use crate::machine::{self, Machine};
use crate::options::Run;
use crate::peer::{self, CONTENDERS, Contender, Side};
use crate::report::{self, Columns};
use crate::trial::{Stage, Trial};

/// Measures, and prints the tables.
///
/// # Errors
/// Of any store; for a wrong answer.
pub(crate) fn run(run: &Run) -> Result<()> {
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
        out.write_all(report::table(&records, *grains, &columns(run)).as_bytes())?;
    }
    report::tail(&records, run.passes)?;
    if let Some(path) = &run.json {
        Figures { machine, data: source.origin, records }.write(path)?;
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

/// Everybody, beside redb and beside SQLite.
fn columns(run: &Run) -> Columns {
    let names = compared(run).map(|contender| contender.name).collect();
    let on = |side| {
        let is_on = move |contender: &Contender| contender.side == side;
        compared(run).filter(is_on).map(|contender| contender.name).collect()
    };
    let sides = vec![("redb", on(Side::Redb)), ("SQLite", on(Side::Sqlite))];
    Columns { names, ours: "grainstore", sides }
}

/// What was compared, on what terms.
fn head(machine: &Machine, data: &str, run: &Run) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "# Grainstore beside raw redb and SQLite\n")?;
    writeln!(out, "- {}", machine.versions.join("; "))?;
    writeln!(out, "- {}", machine.place())?;
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
    machine::warn_of_memory(machine, &mut out)
}
