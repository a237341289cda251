//! `grain disclose`: prints a view of a grain with hashes in place of some fields.

use clap::{Args, ValueEnum};
use grainstore::Session;
use grainstore_rpc::{Base64, View};
use serde::Deserialize;
use serde_json::json;

use crate::context::Context;
use crate::error::Result;
use crate::input::{MAX_JSON_BYTES, Source, to_blob};

/// Print a view of a grain that hides fields behind their hashes (OMS 10)
///
/// The hashes are not salted: whoever can guess a value can test the guess. A file holds JSON or a raw
/// blob and needs no store; what looks like an address is one, unless there is such a file.
#[derive(Debug, Args)]
pub(crate) struct Disclose {
    /// What to read, or the address of a stored grain; - or nothing for stdin
    #[arg(value_name = "FILE|-|ADDRESS", default_value = "-")]
    source: Source,
    /// The fields to hide, by their full names. Of those the grain does not have a line on stderr tells,
    /// with --json an object with absent
    #[arg(long, value_name = "FIELD,...", value_delimiter = ',', required = true)]
    hide: Vec<String>,
    /// How the view is printed
    #[arg(long, value_enum, default_value_t)]
    format: ViewFormat,
}

/// Output formats of a view.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum ViewFormat {
    /// JSON with full field names
    #[default]
    Json,
    /// A raw blob
    Mg,
}

/// What is wanted of the answer to `get`.
#[derive(Deserialize)]
struct Sent {
    blob: Base64,
}

impl Disclose {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let original = match self.source.address() {
            Some(digits) => {
                let reach = context.reach()?;
                let address = reach.address(digits)?;
                let sent = || Ok(json!({ "address": address }));
                let got =
                    |session: &Session| Ok(Sent { blob: Base64(session.get(&address)?.blob) });
                let Sent { blob: Base64(blob) } = reach.here_or(got, "get", sent)?;
                blob
            }
            None => to_blob(self.source.read(MAX_JSON_BYTES, &mut context.output)?)?,
        };
        let View { grain, blob, absent } = View::of(&original, self.hide)?;
        match self.format {
            ViewFormat::Json => context.output.document(&grain)?,
            ViewFormat::Mg => context.output.bytes(&blob)?,
        }
        context.output.flush()?;
        if !absent.is_empty() {
            // Stdout has only the view, which is a grain.
            context.output.note(&match context.output.is_json() {
                true => json!({ "absent": absent }).to_string(),
                false => format!("not hidden, since the grain has none: {}", absent.join(", ")),
            });
        }
        Ok(())
    }
}
