//! Change records: bytes are a record that applies to a database, or an error. And the journal records that they are in.
#![no_main]

use grainstore::fuzzing::apply_changes;
use grainstore::journal::Record;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let codes = ["ERR_INTEGRITY", "ERR_STORE_VERSION"];
    if let Err(error) = apply_changes(bytes) {
        assert!(codes.contains(&error.code()), "{error}");
    }
    match Record::from_bytes(bytes.to_vec()) {
        Ok(record) => assert_eq!((record.as_bytes(), record.slots().len()), (bytes, 0)),
        Err(error) => assert!(codes.contains(&error.code()), "{error}"),
    }
});
