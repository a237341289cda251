//! CAL in both forms: parsing never panics, and printing what was parsed, in either form, parses to
//! the same.
#![no_main]

use grainstore_cal::QuerySource;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(source) = QuerySource::read_bytes(bytes) else { return };
    let Ok(statement) = source.statement() else { return };
    let printed = statement.to_string();
    // Printing spells out what shortcuts leave out, so it may pass the length limit.
    if printed.len() > 8192 {
        return;
    }
    let again = grainstore_cal::parse(&printed).expect("what was printed parses");
    assert_eq!(again, statement, "{printed}");
    let json = statement.to_json();
    let source = QuerySource::read(&json).expect("what was printed is CAL in JSON");
    assert_eq!(source.statement().expect("what was printed parses"), statement, "{json}");
});
