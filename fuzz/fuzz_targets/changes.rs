//! Change records: bytes are a record that applies to a database, or an error.
#![no_main]

use grainstore::fuzzing::apply_changes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Err(error) = apply_changes(bytes) else { return };
    assert!(["ERR_INTEGRITY", "ERR_STORE_VERSION"].contains(&error.code()), "{error}");
});
