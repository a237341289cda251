//! The sensitivity that a writer gives a grain beyond what its tags require (OMS 13.1), which a successor keeps.

use grainstore_format::{ArrayRef, EncodeOptions, Grain, Header, Sensitivity};

use crate::base::error::Result;
use crate::disk::blob::with_fields;
use crate::write::plan::PreparedGrain;

/// The sensitivity that the writer of a blob gave it; `None` if it is what the tags require. Grains are stored with
/// it, and their JSON does not show it.
pub(crate) fn given_sensitivity(blob: &[u8]) -> Result<Option<Sensitivity>> {
    let level = sensitivity_of(blob)?;
    let required = with_fields(blob, |grain| {
        let tags = grain.get("structural_tags").and_then(|tags| tags.as_array());
        let tags = tags.iter().flat_map(ArrayRef::iter);
        let tags = tags.filter_map(|tag| tag.as_str().map(Sensitivity::of_tag));
        Ok(tags.max().unwrap_or(Sensitivity::Public))
    })?;
    Ok((level > required).then_some(level))
}

/// The sensitivity in the header of a blob.
pub(crate) fn sensitivity_of(blob: &[u8]) -> Result<Sensitivity> {
    Ok(Header::read(blob)?.0.flags.sensitivity())
}

/// Encodes a grain with this sensitivity at least. One that came in bytes keeps its own.
pub(crate) fn with_sensitivity(
    prepared: PreparedGrain,
    level: Sensitivity,
) -> Result<PreparedGrain> {
    if prepared.ready || sensitivity_of(prepared.blob.bytes())? >= level {
        return Ok(prepared);
    }
    let encoding = Header::read(prepared.blob.bytes())?.0.encoding();
    let options = EncodeOptions { encoding, sensitivity: Some(level), ..EncodeOptions::default() };
    let blob = prepared.grain.encode_with(&options)?;
    let grain = Grain::decode(blob.bytes())?;
    let vectors = prepared.vectors;
    Ok(PreparedGrain { vectors, ..PreparedGrain::new(blob, grain, false)? })
}
