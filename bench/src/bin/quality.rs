//! How well searches find, on five conversations of the LoCoMo data set.
//!
//! `cargo run --release -p grainstore-bench --bin quality [-- --json FILE]` prints tables, and writes the
//! same figures as JSON. The data lies beside the project (`GRAINSTORE_SHARED`, else `../shared`); without
//! it there is nothing to measure, which is said.
#![expect(clippy::print_stdout, reason = "a program that prints what it measured")]

use std::fs;
use std::path::PathBuf;

use grainstore_bench::Error;
use grainstore_bench::locomo::{NAMES, folder};
use grainstore_bench::quality::{Library, Mode, ModeFigures, Report};

fn main() -> Result<(), Error> {
    let json = json_file()?;
    let Some(folder) = folder() else {
        println!("skipped: no data/locomo in GRAINSTORE_SHARED, nor in ../shared");
        return Ok(());
    };
    let measure = |in_sessions| -> Result<Vec<ModeFigures>, Error> {
        let library = Library::of(&folder, &NAMES, in_sessions)?;
        Mode::ALL.into_iter().map(|mode| library.measure(mode)).collect()
    };
    let report = Report { as_shipped: measure(true)?, without_context: measure(false)? };
    print!("{report}");
    if let Some(path) = json {
        fs::write(path, serde_json::to_vec_pretty(&report)?)?;
    }
    Ok(())
}

/// The file that `--json` names.
fn json_file() -> Result<Option<PathBuf>, Error> {
    let mut words = std::env::args_os().skip(1);
    match (words.next(), words.next(), words.next()) {
        (None, ..) => Ok(None),
        (Some(option), Some(file), None) if option == "--json" => Ok(Some(file.into())),
        _ => Err("usage: quality [--json FILE]".into()),
    }
}
