//! Evidence Packs: no bytes make the verifier panic, and whatever is valid is so in canonical form, and not with another root.
#![no_main]

use grainstore_interop::ages::{Verdict, verify};
use grainstore_interop::json;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Verdict::Valid { root_hash, .. } = verify(bytes) else { return };
    let mut pack = json::parse(bytes).expect("what is valid is JSON");
    assert!(verify(json::line(&pack).as_bytes()).is_valid());
    let other = if root_hash.starts_with('0') { "1" } else { "0" };
    pack["root_hash"] = format!("{other}{}", &root_hash[1..]).into();
    assert!(!verify(json::line(&pack).as_bytes()).is_valid());
});
