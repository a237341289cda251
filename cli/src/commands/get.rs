//! `grain get`: prints one grain by its address.

use clap::{Args, ValueEnum};
use data_encoding::HEXLOWER;
use grainstore::StoredGrain;
use grainstore::format::Envelope;
use grainstore_rpc::StoredAnswer;
use grainstore_sml::{Clock, Format, Item, Level, render};

use crate::context::{Context, resolve_address};
use crate::error::Result;

/// Print a grain, superseded ones included
///
/// With --json the answer is an object with address, grain, blob (base64) and state, for a signed
/// grain with cose (base64) and signature too, whatever --format says. Its access_count does not count this time.
#[derive(Debug, Args)]
pub(crate) struct Get {
    /// 64 hex digits, or the first 8 or more where they name one grain
    address: String,
    /// How it is printed
    #[arg(long, value_enum, default_value_t)]
    format: GetFormat,
}

/// Output formats of a grain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum GetFormat {
    /// JSON with full field names
    #[default]
    Json,
    /// The raw blob; of a signed grain its envelope, the COSE_Sign1 it came in
    Mg,
    /// The same in hex
    Hex,
    /// Semantic markup
    Sml,
}

impl Get {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let session = context.session()?;
        let stored = session.get(&resolve_address(&session, &self.address)?)?;
        let output = &mut context.output;
        if output.is_json() {
            return output.json_line(&StoredAnswer::new(&session, &stored)?);
        }
        match self.format {
            GetFormat::Json => output.document(&stored.grain()?),
            GetFormat::Mg => output.bytes(original_bytes(&stored)),
            GetFormat::Hex => output.line(&HEXLOWER.encode(original_bytes(&stored))),
            GetFormat::Sml => {
                let verification = Some(stored.state.verification_status.name().to_owned());
                let items =
                    [Item { grain: stored.grain()?, verification, chosen: None, score: None }];
                let clock = Clock { now: session.now(), iso_timestamps: false };
                output.text(&render(&items, Format::Sml, Level::Full, &clock))
            }
        }
    }
}

/// Returns the bytes of a grain as they came: the envelope of a signed one.
fn original_bytes(stored: &StoredGrain) -> &[u8] {
    stored.envelope.as_ref().map_or(&stored.blob, Envelope::bytes)
}
