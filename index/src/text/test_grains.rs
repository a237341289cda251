//! Grains for the tests of text extraction.

use grainstore_format::{Encoding, Grain};

/// The blob of a grain in JSON; `created_at` is added.
pub(super) fn blob(json: &str) -> Vec<u8> {
    let json = json.replacen('{', r#"{"created_at": 1737000000000, "#, 1);
    let grain = Grain::from_json(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    grain.encode(Encoding::MessagePack).unwrap().into_bytes()
}
