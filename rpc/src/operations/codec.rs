//! Methods that need no store: `encode`, `decode`.

use grainstore::Grain;
use serde_json::value::RawValue;

use super::params;
use crate::protocol::answer::Answer;
use crate::protocol::fault::Fault;
use crate::protocol::host::Host;
use crate::protocol::json::Base64;
use crate::shape::{Decoded, Encoded};

pub(crate) fn encode(_: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params::Encode { grain, encoding } = params::read(params)?;
    let blob = Grain::from_json(grain.get())?.encode(encoding)?;
    Answer::of(&Encoded::from(&blob))
}

pub(crate) fn decode(_: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params::Decode { blob: Base64(blob) } = params::read(params)?;
    Answer::of(&Decoded::new(&blob)?)
}
