//! `grain export`: grains and their state in a portable `.mg` file.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::Args;
use grainstore::Exporting;
use grainstore::cal::Query;
use indicatif::ProgressBar;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::shape::CompressionName;

/// Write the grains the session sees, with their history and state, into a portable .mg file
///
/// The file is replaced once the new one is whole. More than 4 GiB of grains go into several
/// files: memory.mg, memory.2.mg, and so on.
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The file, such as memory.mg
    #[arg(value_name = "FILE")]
    to: PathBuf,
    /// Only grains that meet these conditions, as CAL has them behind WHERE
    #[arg(long = "where", value_name = "CONDITIONS")]
    conditions: Option<String>,
    /// How the grains are packed; those of an unpacked file can be read one by one
    #[arg(long, value_name = "HOW", default_value = "zstd")]
    compress: CompressionName,
}

impl Export {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let session = context.session()?;
        let query = match &self.conditions {
            None => Query::default(),
            Some(conditions) => {
                let found =
                    grainstore::cal::conditions(conditions, &session.reading()?, session.now());
                found.map_err(|error| Error::cal(&error, conditions))?
            }
        };
        let bar = bar(context);
        let progress = |done, total| {
            bar.set_length(total);
            bar.set_position(done);
        };
        let how = Exporting {
            compression: self.compress.into(),
            progress: Some(&progress),
            ..Exporting::default()
        };
        let exported = session.export(&self.to, &query, &how);
        bar.finish_and_clear();
        let exported = exported?;
        if context.output.is_json() {
            return context.output.json_line(&exported);
        }
        let files: Vec<_> = exported.files.iter().map(|file| file.display().to_string()).collect();
        let (grains, bytes) = (exported.exported, exported.bytes);
        context.output.line(&format!("{grains} grains in {}, {bytes} bytes", files.join(", ")))?;
        if exported.refused == 0 {
            return Ok(());
        }
        let (refused, rules) = (exported.refused, exported.rules.join(", "));
        context.output.line(&format!("{refused} grains were left out, by the rules {rules}"))
    }
}

/// A bar on a terminal, and one that is never drawn elsewhere.
pub(super) fn bar(context: &Context<'_>) -> ProgressBar {
    match io::stderr().is_terminal() && !context.output.is_json() {
        true => ProgressBar::new(0),
        false => ProgressBar::hidden(),
    }
}
