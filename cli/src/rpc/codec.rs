//! Methods that need no store: `encode`, `decode`.

use grainstore::Grain;
use serde_json::value::RawValue;

use super::answer::Answer;
use super::fault::Fault;
use super::host::Host;
use super::json::Base64;
use super::params;
use crate::shape::{Decoded, Encoded};

pub(crate) fn encode(_: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params::Encode { grain, encoding } = params::read(params)?;
    let blob = Grain::from_json(grain.get())?.encode(encoding.into())?;
    Answer::of(&Encoded::from(&blob))
}

pub(crate) fn decode(_: &mut Host, params: Option<&RawValue>) -> Result<Answer, Fault> {
    let params::Decode { blob: Base64(blob) } = params::read(params)?;
    Answer::of(&Decoded::new(&blob)?)
}
