//! `grain encode`: prints a grain's canonical bytes, without a store.

use clap::Args;
use grainstore::format::{EncodeOptions, Encoding};
use grainstore_rpc::{Encoded, Profile, Sensitive, encode_grain_with};

use crate::context::Context;
use crate::error::Result;
use crate::input::{MAX_JSON_BYTES, Source};
use crate::names::{ENCODINGS, PROFILES, SENSITIVITIES, named};

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
    /// The class of devices whose limits it must keep to (OMS 18)
    #[arg(long, value_parser = named::<Profile>(PROFILES), default_value = "extended")]
    profile: Profile,
    /// Its sensitivity, where that is higher than its tags require; a lower one is refused
    #[arg(long, value_parser = named::<Sensitive>(SENSITIVITIES), value_name = "LEVEL")]
    sensitivity: Option<Sensitive>,
}

impl Encode {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let json = self.source.read_text(MAX_JSON_BYTES, &mut context.output)?;
        let options = EncodeOptions {
            encoding: self.encoding,
            profile: self.profile.limits(),
            sensitivity: self.sensitivity.map(Into::into),
            ..EncodeOptions::default()
        };
        let blob = encode_grain_with(&json, &options)?;
        context.output.answer(&Encoded::from(&blob), |output| {
            output.binary(blob.bytes(), &[&blob.address().to_string()])
        })
    }
}
