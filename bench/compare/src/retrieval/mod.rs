//! Searching a store, everything included, against the targets it has: one run, one table.
//!
//! - `data`: grains and questions. `raw`: the search library by itself.
//! - `timing`: medians of two in turns. `table`: figures and whether they are enough.
//! - `writing`: ingest and single puts. `words`, `meaning`: questions. `opening`: a store that was closed.
//! - `quality`: how well searches find, on real questions.

mod data;
mod meaning;
mod opening;
mod quality;
mod raw;
mod table;
mod timing;
mod words;
mod writing;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use grainstore::{OpenOptions, Session, SessionOptions, Store};

use crate::machine::Machine;
use crate::vectors::Data as Vectors;
use crate::{Result, machine};

/// Numbers of a vector.
const DIMENSION: usize = 384;
/// The model vectors are said to be of.
const MODEL: &str = "bench";

/// What to measure.
#[derive(Debug, Clone, Args)]
pub(crate) struct Run {
    /// Grains a store holds
    #[arg(long, default_value_t = 100_000)]
    grains: usize,
    /// Questions of each kind by words
    #[arg(long, default_value_t = 100)]
    pairs: usize,
    /// How often each of them is asked
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Vectors that are looked for
    #[arg(long, default_value_t = 300)]
    queries: usize,
    /// Where the stores are made: a disk, not memory. The system's temporary directory if not given
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Leaves out vectors, whose graphs take minutes to build
    #[arg(long)]
    words_only: bool,
}

/// Measures, and prints the table.
pub(crate) fn run(run: &Run) -> Result<()> {
    let stores = run.dir.clone().unwrap_or_else(std::env::temp_dir);
    head(&Machine::of(&stores), run)?;
    let directory = || tempfile::Builder::new().prefix("grainstore-compare-").tempdir_in(&stores);
    let texts = data::texts(run.grains);
    quality::measure()?;
    writing::measure(directory()?.path(), &texts)?;
    let vectors = match run.words_only {
        true => None,
        false => Some(Vectors::generated(run.grains, run.queries, DIMENSION)),
    };
    let place = directory()?;
    let session = session(place.path())?;
    writing::load(&session, &texts, vectors.as_ref())?;
    words::measure(&session, &texts, run)?;
    if let Some(vectors) = &vectors {
        meaning::measure(&session, &texts, vectors)?;
    }
    session.store().close()?;
    drop(session);
    opening::measure(place.path(), vectors.as_ref())
}

fn session(path: &Path) -> Result<Session> {
    let options = OpenOptions::new().create(true);
    Ok(Store::open(path.join("store"), &options)?.session(SessionOptions::default()))
}

fn head(on: &Machine, run: &Run) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "# Searching {} grains\n", run.grains)?;
    let versions = ["grainstore", "tantivy", "hnsw_rs", "redb"];
    let versions = versions.map(|name| format!("{name} {}", machine::locked(name)));
    writeln!(out, "- {}", versions.join("; "))?;
    writeln!(out, "- {}\n", on.place())?;
    table::head()
}
