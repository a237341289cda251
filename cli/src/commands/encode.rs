//! `grain encode`: prints a grain's canonical bytes, without a store.

use clap::Args;
use grainstore::format::Encoding;
use grainstore_rpc::{Encoded, encode_grain};

use crate::context::Context;
use crate::error::Result;
use crate::input::{MAX_JSON_BYTES, Source};
use crate::names::{ENCODINGS, named};

/// Turn JSON into a raw blob on stdout, its address on stderr; needs no store
///
/// With --json both come on stdout, as an object with address and blob (base64).
#[derive(Debug, Args)]
pub(crate) struct Encode {
    /// What to read; - or nothing for stdin
    #[arg(value_name = "FILE|-", default_value = "-")]
    source: Source,
    /// The encoding of the payload
    #[arg(long, value_parser = named::<Encoding>(ENCODINGS), default_value = "msgpack")]
    encoding: Encoding,
}

impl Encode {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let json = self.source.read_text(MAX_JSON_BYTES, &mut context.output)?;
        let blob = encode_grain(&json, self.encoding)?;
        context.output.answer(&Encoded::from(&blob), |output| {
            output.binary(blob.bytes(), &[&blob.address().to_string()])
        })
    }
}
