//! `grain decode`: prints all parts of a blob, without a store.

use clap::Args;
use grainstore_rpc::{Decoded, Profile};

use crate::context::Context;
use crate::error::Result;
use crate::input::{MAX_BLOB_BYTES, Source};
use crate::names::{PROFILES, named};

/// Turn a raw blob into JSON: address, header, encoding and grain; needs no store
#[derive(Debug, Args)]
pub(crate) struct Decode {
    /// What to read; - or nothing for stdin
    #[arg(value_name = "FILE|-", default_value = "-")]
    source: Source,
    /// The class of devices whose limits it must keep to (OMS 18)
    #[arg(long, value_parser = named::<Profile>(PROFILES), default_value = "extended")]
    profile: Profile,
}

impl Decode {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let blob = self.source.read(MAX_BLOB_BYTES, &mut context.output)?;
        context.output.document(&Decoded::within(&blob, self.profile.limits())?)
    }
}
