//! `grain get`: prints one grain by its address.

use clap::{Args, ValueEnum};
use data_encoding::HEXLOWER;
use grainstore::format::{Envelope, VerificationStatus};
use grainstore::{Clock as _, Grain, GrainState, StoredGrain, SystemClock};
use grainstore_rpc::{Base64, StoredAnswer};
use grainstore_sml::{Clock, Format, Item, Level, render};
use serde::Deserialize;
use serde_json::json;

use crate::context::Context;
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
        let reach = context.reach()?;
        let address = reach.address(&self.address)?;
        let output = &mut context.output;
        let got = match reach.session() {
            Some(session) => {
                let stored = session.get(&address)?;
                if output.is_json() {
                    return output.json_line(&StoredAnswer::new(&session, &stored)?);
                }
                Got::from(stored)
            }
            None => {
                let told = reach.call("get", &json!({ "address": address }))?;
                if output.is_json() {
                    return output.json_line(&told);
                }
                told.read::<Sent>()?.into()
            }
        };
        match self.format {
            GetFormat::Json => output.document(&Grain::decode(&got.blob)?),
            GetFormat::Mg => output.bytes(got.original()),
            GetFormat::Hex => output.line(&HEXLOWER.encode(got.original())),
            GetFormat::Sml => {
                let verification = Some(got.status.name().to_owned());
                let grain = Grain::decode(&got.blob)?;
                let items = [Item { grain, verification, chosen: None, score: None }];
                let clock = Clock { now: SystemClock.now(), iso_timestamps: false };
                output.text(&render(&items, Format::Sml, Level::Full, &clock))
            }
        }
    }
}

/// What is printed of a grain.
struct Got {
    blob: Vec<u8>,
    envelope: Option<Vec<u8>>,
    status: VerificationStatus,
}

/// The answer of another process.
#[derive(Deserialize)]
struct Sent {
    blob: Base64,
    cose: Option<Base64>,
    state: GrainState,
}

impl From<StoredGrain> for Got {
    fn from(stored: StoredGrain) -> Self {
        let StoredGrain { blob, envelope, state, .. } = stored;
        let envelope = envelope.map(Envelope::into_bytes);
        Self { blob, envelope, status: state.verification_status }
    }
}

impl From<Sent> for Got {
    fn from(sent: Sent) -> Self {
        let envelope = sent.cose.map(|Base64(cose)| cose);
        Self { blob: sent.blob.0, envelope, status: sent.state.verification_status }
    }
}

impl Got {
    /// The bytes of the grain as they came: the envelope of a signed one.
    fn original(&self) -> &[u8] {
        self.envelope.as_ref().unwrap_or(&self.blob)
    }
}
