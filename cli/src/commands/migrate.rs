//! `grain migrate`: takes memory from the tools that people leave.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use grainstore_interop::archive::Limits;
use grainstore_interop::migrate::{self, Format, MigrateOptions, Undated};
use serde::Deserialize;
use serde_json::json;

use super::followed::{followed, followed_call};
use crate::context::Context;
use crate::error::Result;
use crate::output::Output;
use crate::reach::{Told, file_name};

/// Left-out records that are shown one by one.
const SHOWN: usize = 10;

/// Take the memory of another tool into the store: what it exported, as a file, a folder or a zip
///
/// All of it comes into the --namespace and is about the --user, if they are given; else it is as the source says.
/// Ids and dates are those of the source. A second run adds nothing; a record that changed takes the place of
/// its grain; what was erased here stays away.
#[derive(Debug, Args)]
pub(crate) struct Migrate {
    /// What it is an export of
    #[arg(value_name = "FORMAT", value_parser = formats())]
    format: Format,
    /// The file, folder or zip
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// The second file that some formats have: the history of mem0, the archive of Letta, the mapping of jsonl
    #[arg(long = "with", value_name = "FILE")]
    beside: Option<PathBuf>,
    /// Write nothing, and tell what would be written
    #[arg(long)]
    dry_run: bool,
    /// End at the first record with something wrong with it
    #[arg(long)]
    strict: bool,
    /// Let records without a date take the time of the migration, instead of leaving them out
    #[arg(long)]
    undated: bool,
    /// Take records again whose grains were erased here
    #[arg(long)]
    return_erased: bool,
    /// Let records take the place of what is here though the file dates them before that, instead of leaving them out
    #[arg(long)]
    allow_older: bool,
}

/// Parses the name of a format.
fn formats() -> impl TypedValueParser<Value = Format> {
    let values =
        Format::ALL.iter().map(|format| PossibleValue::new(format.name()).help(format.reads()));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<Format>())
}

impl Migrate {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let (reach, (namespace, user)) = (context.whole()?, context.named());
        let told = match reach.session() {
            Some(session) => {
                let undated = if self.undated { Undated::ImportTime } else { Undated::LeaveOut };
                let options = MigrateOptions {
                    dry_run: self.dry_run,
                    strict: self.strict,
                    namespace,
                    user,
                    undated,
                    return_erased: self.return_erased,
                    allow_older: self.allow_older,
                    beside: self.beside,
                    limits: Limits::default(),
                };
                let (format, path) = (self.format, self.path);
                Told::of(&followed(context, |monitor| {
                    migrate::run(&session, format, &path, &options, monitor)
                })?)?
            }
            None => {
                let asked = json!({
                    "format": self.format.name(), "path": file_name(&self.path)?,
                    "beside": self.beside.as_deref().map(file_name).transpose()?,
                    "namespace": namespace, "user_id": user, "dry_run": self.dry_run,
                    "strict": self.strict, "undated": self.undated,
                    "return_erased": self.return_erased, "allow_older": self.allow_older,
                });
                followed_call(context, &reach, "migrate", &asked)?
            }
        };
        context.output.answer(&told, |output| show(&told.read()?, output))
    }
}

/// What is shown of a migration, read from its JSON.
#[derive(Deserialize)]
struct Shown {
    dry_run: bool,
    records: u64,
    added: u64,
    changed: u64,
    unchanged: u64,
    ended: u64,
    became: Vec<ShownKind>,
    left_out: u64,
    left_out_first: Vec<ShownRecord>,
    left_out_why: BTreeMap<String, u64>,
    notes: Vec<String>,
}

#[derive(Deserialize)]
struct ShownKind {
    kind: String,
    grain_type: String,
    records: u64,
}

#[derive(Deserialize)]
struct ShownRecord {
    place: String,
    why: String,
}

fn show(report: &Shown, output: &mut Output<'_>) -> Result<()> {
    let Shown { records, added, changed, unchanged, ended, left_out, .. } = report;
    let would = if report.dry_run { "nothing written; would be: " } else { "" };
    output.line(&format!(
        "{would}{records} records: {added} grains added, {changed} changed, {unchanged} unchanged, {ended} ended, \
         {left_out} left out"
    ))?;
    for became in &report.became {
        output
            .line(&format!("  {} became {}: {}", became.kind, became.grain_type, became.records))?;
    }
    for (why, count) in &report.left_out_why {
        output.line(&format!("  left out, {why}: {count}"))?;
    }
    for left in report.left_out_first.iter().take(SHOWN) {
        output.line(&format!("    {}: {}", left.place, left.why))?;
    }
    for note in &report.notes {
        output.line(&format!("  note: {note}"))?;
    }
    Ok(())
}
