//! JSON: whatever is accepted survives both encodings and JSON itself.
#![no_main]

use grainstore_format::{Encoding, Grain};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(grain) = Grain::from_json(text) else { return };
    for encoding in [Encoding::MessagePack, Encoding::Cbor] {
        // A grain may be valid and still too large for a blob.
        let Ok(blob) = grain.encode(encoding) else { continue };
        let decoded = Grain::decode(blob.bytes()).expect("what was encoded decodes");
        assert_eq!(decoded.fields(), grain.fields());
    }
    let json = serde_json::to_string(&grain).expect("a grain is JSON");
    if let Ok(again) = Grain::from_json(&json) {
        assert_eq!(again, grain);
    } else {
        assert!(json.len() > text.len(), "its own JSON is refused");
    }
});
