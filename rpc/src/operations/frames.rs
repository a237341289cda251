//! Operations on frames, a stream of grains for transport (OMS 11.6): `write_frames`, `read_frames`.

use data_encoding::BASE64;
use grainstore::format::DecodeOptions;
use grainstore::format::container::{ContainerEntry, FrameReader, FrameWriter};
use grainstore::limits::MAX_BATCH;
use serde::Deserialize;
use serde_json::{Value, json};

use super::codec::Profile;
use crate::answer::List;
use crate::error::{Error, Result};
use crate::json::{Base64, Few};

/// Puts grains into frames.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteFrames {
    entries: Few<Base64, MAX_BATCH>,
    #[serde(default)]
    profile: Profile,
}

pub(crate) fn write_frames(given: WriteFrames) -> Result<Value> {
    let profile = given.profile.limits();
    let options = DecodeOptions { profile, ..DecodeOptions::default() };
    let mut frames = FrameWriter::new(Vec::new(), profile);
    for (at, Base64(bytes)) in given.entries.all("entries")?.into_iter().enumerate() {
        let entry = ContainerEntry::read(bytes, &options)
            .map_err(|error| Error::from(error).in_context(&format!("entry {at}")))?;
        frames.push(entry.bytes())?;
    }
    Ok(json!({ "frames": BASE64.encode(&frames.finish()?) }))
}

/// Takes grains out of frames.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadFrames {
    frames: Base64,
    #[serde(default)]
    profile: Profile,
}

pub(crate) fn read_frames(given: ReadFrames) -> Result<Value> {
    let options = DecodeOptions { profile: given.profile.limits(), ..DecodeOptions::default() };
    let mut frames = FrameReader::new(given.frames.0.as_slice(), options);
    let mut entries = List::default();
    for (at, entry) in frames.by_ref().enumerate() {
        let entry = entry.map_err(|error| Error::from(error).in_context(&format!("frame {at}")))?;
        let form = if entry.envelope().is_some() { "cose" } else { "blob" };
        entries.push(&json!({
            "address": entry.address(), form: BASE64.encode(entry.bytes()), "grain": entry.grain(),
        }))?;
    }
    Ok(json!({ "entries": entries, "rest": frames.into_inner().len() }))
}
