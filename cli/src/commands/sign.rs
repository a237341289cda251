//! `grain sign`: a grain in an envelope with its signature, without a store.

use clap::Args;
use grainstore::{Clock, SystemClock};
use zeroize::Zeroizing;

use crate::context::Context;
use crate::error::Result;
use crate::input::{MAX_TEXT, Source, blob};
use crate::shape::{AlgorithmName, SignedAnswer};

/// Sign a grain: a COSE_Sign1 on stdout, its address on stderr; needs no store
///
/// Reads JSON or a raw blob. A blob that is not marked signed is marked so, which changes its address.
/// With --json the answer is an object with address, cose (base64) and did on stdout.
#[derive(Debug, Args)]
pub(crate) struct Sign {
    /// What to read; - or nothing for stdin
    #[arg(value_name = "FILE|-", default_value = "-")]
    source: Source,
    /// The key: a file of 32 bytes, as `grain keys new` makes it
    #[arg(long, value_name = "FILE")]
    key_seed: Source,
    /// What the key is for
    #[arg(long, value_enum, default_value_t)]
    algorithm: AlgorithmName,
    /// When it is signed, in epoch seconds; now, if it is not given. It proves nothing
    #[arg(long, value_name = "SECONDS")]
    iat: Option<i64>,
}

impl Sign {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let secret = Zeroizing::new(self.key_seed.read(MAX_KEY, &mut context.output)?);
        let blob = blob(self.source.read(MAX_TEXT, &mut context.output)?)?;
        let now = SystemClock.now();
        let (envelope, did) = self.algorithm.sign(&blob, &secret, self.iat, now)?;
        if context.output.is_json() {
            return context.output.json_line(&SignedAnswer::from((envelope, did)));
        }
        context.output.bytes(envelope.bytes())?;
        context.output.flush()?;
        context.output.note(&envelope.address().to_string());
        Ok(())
    }
}

/// Bytes of a file that may be a key.
pub(super) const MAX_KEY: usize = 1024;
