//! `grain check-view` and `grain restore-view`: what a disclosed view says, against its original.

use clap::{Args, ValueEnum};
use data_encoding::BASE64;
use grainstore::Session;
use grainstore_rpc::{FORMAT_VERSION, GivenView};
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::Result;
use crate::input::{MAX_COSE_BYTES, MAX_JSON_BYTES, Source};

/// Most bytes of a view or an original, in any form.
const MAX_BYTES: usize =
    if MAX_COSE_BYTES > MAX_JSON_BYTES { MAX_COSE_BYTES } else { MAX_JSON_BYTES };

/// Check a view that `grain disclose` made, against the grain it is of or values it hides
///
/// Without --original and --revealed the grain the view names is looked for in the store. The exit code is
/// 0 where all agrees; a difference is ERR_INTEGRITY.
#[derive(Debug, Args)]
pub(crate) struct CheckView {
    /// The view, in JSON or as a raw blob; - for stdin
    #[arg(value_name = "FILE|-")]
    view: Source,
    /// The grain it is a view of: JSON, a raw blob or a signed grain; needs no store
    #[arg(long, value_name = "FILE|-")]
    original: Option<Source>,
    /// Values of hidden fields: a JSON object by their names; needs no store
    #[arg(long, value_name = "FILE|-")]
    revealed: Option<Source>,
}

impl CheckView {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let output = &mut context.output;
        let given = self.view.read(MAX_BYTES, output)?;
        let view = GivenView::of(given.clone())?;
        let original = self.original.map(|file| file.read(MAX_BYTES, output)).transpose()?;
        let revealed = self.revealed.map(|file| file.read_text(MAX_JSON_BYTES, output));
        let revealed = revealed.transpose()?;
        let checked = match (&original, &revealed) {
            (None, None) => {
                let reach = context.reach()?;
                let here = |session: &Session| view.check_stored(session);
                reach.here_or(here, "check_view", || view_params(&given))?
            }
            _ => view.check(original.as_deref(), revealed.as_deref())?,
        };
        context.output.answer(&checked, |output| {
            if checked.whole {
                output.line(&format!("valid {}", checked.original))?;
            }
            for name in &checked.revealed {
                output.line(&format!("revealed {name}"))?;
            }
            Ok(())
        })
    }
}

/// The parameters that give a view to another process: a blob, or JSON.
fn view_params(given: &[u8]) -> Result<Value> {
    if given.first() == Some(&FORMAT_VERSION) {
        return Ok(json!({ "view_blob": BASE64.encode(given) }));
    }
    Ok(json!({ "view": serde_json::from_slice::<Value>(given)? }))
}

/// Rebuild the grain a view is of from the values that the view hides, all of them; needs no store
#[derive(Debug, Args)]
pub(crate) struct RestoreView {
    /// The view, in JSON or as a raw blob; - for stdin
    #[arg(value_name = "FILE|-")]
    view: Source,
    /// The values of the hidden fields: a JSON object by their names
    #[arg(long, value_name = "FILE|-", required = true)]
    revealed: Source,
    /// How the grain is printed; its address goes to stderr
    #[arg(long, value_enum, default_value_t)]
    format: RestoredFormat,
}

/// Output formats of a restored grain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum RestoredFormat {
    /// JSON with full field names
    #[default]
    Json,
    /// A raw blob
    Mg,
}

impl RestoreView {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let view = GivenView::of(self.view.read(MAX_BYTES, &mut context.output)?)?;
        let revealed = self.revealed.read_text(MAX_JSON_BYTES, &mut context.output)?;
        let restored = view.restore(&revealed)?;
        match self.format {
            RestoredFormat::Json => context.output.document(&restored.grain)?,
            RestoredFormat::Mg => context.output.bytes(&restored.blob)?,
        }
        context.output.flush()?;
        context.output.note(&restored.address.to_string());
        Ok(())
    }
}
