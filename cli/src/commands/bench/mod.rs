//! `grain bench`: measures a store on this machine, beside SQLite where it is built in.
//!
//! Works in a temporary directory and knows no store of the user. In the order of a run:
//!
//! - `data`, `random`: the facts and the questions, made up.
//! - `peer`: what a store must do to be measured; `grainstore_peer` and `sqlite_peer` do it.
//! - `turns`, `figure`: how calls are timed. `check`: answers compared. `work`: what is measured, in order.
//! - `machine`, `report`, `tables`: what it ran on, the figures as JSON, and as tables.

mod check;
mod data;
mod figure;
mod grainstore_peer;
mod machine;
mod peer;
mod random;
mod report;
#[cfg(feature = "sqlite")]
mod sqlite_peer;
mod tables;
mod turns;
mod work;

use std::path::{Path, PathBuf};

use clap::{Args, value_parser};
use grainstore::cal::CancelHandle;
use indicatif::{ProgressBar, ProgressStyle};
use tempfile::TempDir;

use crate::commands::export::{progress_bar, stoppable};
use crate::context::Context;
use crate::error::{Code, Error, Result};
use data::Data;
use machine::Machine;
use report::Report;
use turns::Run;

/// Fewest grains, and those of the rehearsal.
const FEWEST: u32 = 1_000;
/// Most grains.
const MOST: u32 = 10_000_000;
/// Hint if the directory cannot be written to, or has no room left.
const DIR_HINT: &str =
    "name a directory that you may write to, with some 4 KiB of room a grain, by --dir DIR";

/// Measure a store on this machine: puts, reads, searches, ASSEMBLE, opening, disk and memory
///
/// Beside SQLite where it is built in (`cargo install --path cli --features sqlite`), in turns. The stores are in
/// a temporary directory, which is removed afterwards; the store of --store is not touched. Answers are
/// compared before they are timed. docs/benchmarks.md says what each row is.
#[derive(Debug, Args)]
pub(crate) struct Bench {
    /// How many grains, from 1,000 to 10,000,000
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = value_parser!(u32).range(i64::from(FEWEST)..=i64::from(MOST)))]
    grains: u32,
    /// Where the temporary directory is made, on the disk that is to be measured; without it, that of the system
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Bench {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let below = self.dir.clone().unwrap_or_else(std::env::temp_dir);
        let bar = progress_bar(context);
        if let Ok(style) = ProgressStyle::with_template("{msg:<20} {wide_bar} {pos}/{len}") {
            bar.set_style(style);
        }
        let measured = stoppable(|cancel| self.measure(&below, &cancel, &bar));
        bar.finish_and_clear();
        let report = measured?.map_err(|error| error.with_hint_for(Code::Io.name(), DIR_HINT))?;
        context.output.answer(&report, |output| tables::show(&report, output))
    }

    /// Measures in a temporary directory, which is gone when this returns.
    fn measure(&self, below: &Path, cancel: &CancelHandle, bar: &ProgressBar) -> Result<Report> {
        let place = temporary(below)?;
        let machine = Machine::of(place.path());
        let rehearsal = place.path().join("rehearsal");
        work::rehearse(&mut Run::new(Data::new(FEWEST), &rehearsal, cancel, bar)?)?;
        let mut run = Run::new(Data::new(self.grains), place.path(), cancel, bar)?;
        let disk = work::measure(&mut run)?;
        let report = Report::of(machine, self.grains, &run.sides, &disk, machine::peak_memory());
        drop(run);
        place.close().map_err(|error| {
            let message = format!("the temporary directory is not removed: {error}");
            Error::new(Code::Io, message, "")
        })?;
        Ok(report)
    }
}

fn temporary(below: &Path) -> Result<TempDir> {
    tempfile::Builder::new().prefix("grain-bench-").tempdir_in(below).map_err(|error| {
        let message = format!("no temporary directory: {error}");
        Error::new(Code::Io, message, "")
    })
}
