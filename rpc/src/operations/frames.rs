//! Operations on frames, a stream of grains for transport (OMS 11.6): `write_frames`, `read_frames`.

use data_encoding::BASE64;
use grainstore::format::container::{ContainerEntry, FrameReader, FrameWriter};
use grainstore::format::{self, DecodeOptions};
use grainstore::limits::MAX_BATCH;
use serde::Deserialize;
use serde_json::{Value, json};

use super::codec::Profile;
use crate::answer::List;
use crate::error::{Code, Error, Result};
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

/// What to do about a first frame of a length that no grain has: other bytes begin with no length.
const NO_FRAMES: &str = "if these are no frames, write_frames makes some, and put takes grains as they are; if they are, \
    the grain is larger than its profile allows";

/// The error of a frame, with its number.
fn frame_error(error: format::Error, at: usize) -> Error {
    let error = Error::from(error).in_context(&format!("frame {at}"));
    match at {
        0 => error.with_hint_for(Code::TooLarge.name(), NO_FRAMES),
        _ => error,
    }
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
        let entry = entry.map_err(|error| frame_error(error, at))?;
        let form = if entry.envelope().is_some() { "cose" } else { "blob" };
        entries.push(&json!({
            "address": entry.address(), form: BASE64.encode(entry.bytes()), "grain": entry.grain(),
        }))?;
    }
    Ok(json!({ "entries": entries, "rest": frames.into_inner().len() }))
}
