//! Blobs: whatever is accepted encodes back to the same bytes, and a view reads what decoding reads.
#![no_main]

use grainstore_format::{DecodeOptions, Flags, Grain, Header, PlainBlob};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(open) = PlainBlob::new(bytes, &DecodeOptions::default()) {
        let view = open.view();
        let _ = (view.time(), view.partition(), view.get("related_to").map(|v| v.to_value()));
    }
    let Ok(grain) = Grain::decode(bytes) else { return };
    let (header, _) = Header::split(bytes).expect("an accepted blob has a header");
    let open = PlainBlob::new(bytes, &DecodeOptions::default()).expect("an accepted blob opens");
    for (name, value) in grain.fields() {
        let seen = open.view().get(name).map(|seen| seen.to_value());
        assert_eq!(seen.as_ref(), Some(value), "{name}");
    }
    if !header.flags.contains(Flags::COMPRESSED) {
        let again = grain.encode(header.encoding()).expect("an accepted grain encodes");
        assert_eq!(again.bytes(), bytes);
    }
});
