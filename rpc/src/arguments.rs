//! Arguments that operations share. Unknown, missing and wrongly typed ones are refused before an operation
//! runs.

use std::time::Duration;

use grainstore::{EpochMs, Grain, Offer, Preset};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::json::{Base64, Object};
use crate::misread::describe_error;

/// Names in one list: purposes, reviewers, tags.
pub(crate) const MAX_NAMES: usize = 1_000;
/// Longest wait that `wait_for` and `wait_for_vectors` may be asked for, in milliseconds ([`Client::call`](crate::Client::call)).
pub const MAX_WAIT_MS: u64 = 600_000;

/// Parses the arguments of an operation; missing ones are an empty object.
pub(crate) fn read<'p, T: Deserialize<'p>>(params: Option<&'p RawValue>) -> Result<T> {
    let text = params.map_or("{}", RawValue::get);
    let Object(params) = serde_json::from_str(text)
        .map_err(|error| Error::arguments(describe_error(&error, text)))?;
    Ok(params)
}

/// No arguments, as [`reindex`](crate::reindex()) takes them, or no answer but that it is done.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// The name of a compliance preset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PresetName(pub(crate) Preset);

impl<'de> Deserialize<'de> for PresetName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        Preset::from_name(&name).map(Self).map_err(serde::de::Error::custom)
    }
}

/// Converts epoch milliseconds.
pub(crate) fn epoch_ms(ms: Option<i64>) -> Option<EpochMs> {
    ms.map(EpochMs::new)
}

/// Returns how long to wait, ten seconds by default.
///
/// # Errors
/// That of arguments for more than ten minutes.
pub(crate) fn wait(timeout_ms: Option<u64>) -> Result<Duration> {
    match timeout_ms.unwrap_or(10_000) {
        ms if ms > MAX_WAIT_MS => {
            Err(Error::arguments(format!("timeout_ms: {MAX_WAIT_MS} at most")))
        }
        ms => Ok(Duration::from_millis(ms)),
    }
}

/// Returns the grain in exactly one of its three forms.
pub(crate) fn offer(
    grain: Option<&RawValue>,
    blob: Option<Base64>,
    cose: Option<Base64>,
) -> Result<Offer> {
    match (grain, blob, cose) {
        (Some(grain), None, None) => Ok(Offer::Grain(Grain::from_json(grain.get())?)),
        (None, Some(Base64(blob)), None) => Ok(Offer::Blob(blob)),
        (None, None, Some(Base64(cose))) => Ok(Offer::Signed(cose)),
        _ => Err(Error::arguments("give exactly one of grain, blob and cose")),
    }
}
