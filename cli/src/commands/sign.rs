//! `grain sign`: puts a grain into a signed envelope, without a store.

use clap::Args;
use grainstore::{Clock, SystemClock};
use grainstore_rpc::{SignedAnswer, sign_blob};

use super::keys::KeyOptions;
use crate::context::Context;
use crate::error::Result;
use crate::input::{MAX_JSON_BYTES, Source, to_blob};

/// Sign a grain: a COSE_Sign1 on stdout, its address and your DID on stderr; needs no store
///
/// Reads JSON or a raw blob. A blob that is not marked signed is marked so, which changes its address.
/// With --json the answer is an object with address, cose (base64) and did on stdout.
#[derive(Debug, Args)]
pub(crate) struct Sign {
    /// What to read; - or nothing for stdin
    #[arg(value_name = "FILE|-", default_value = "-")]
    source: Source,
    #[command(flatten)]
    key: KeyOptions,
    /// When it is signed, in epoch seconds; now, if it is not given. It proves nothing
    #[arg(long, value_name = "SECONDS")]
    iat: Option<i64>,
}

impl Sign {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let key = self.key.read(&mut context.output)?;
        let blob = to_blob(self.source.read(MAX_JSON_BYTES, &mut context.output)?)?;
        let envelope = sign_blob(&blob, &key, self.iat, SystemClock.now())?;
        let did = key.did();
        let notes = [&*envelope.address().to_string(), did.as_str()];
        context.output.answer(&SignedAnswer::new(&envelope, did.clone()), |output| {
            output.binary(envelope.bytes(), &notes)
        })
    }
}
