//! Golden bytes of a change record, and bytes that are none.

use super::*;

/// As docs/format.md shows it.
const SHOWN: [u8; 41] = [
    1, // version
    1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 2, 0xab, 0xcd, // log, row 5, two bytes
    8, 0, 3, b'c', b'a', b'l', 0, 0, 0, 1, 2, // meta, "cal", one byte
    6, 0, 8, 0, 0, 0, 0, 0, 0, 0, 7, 0xff, // reasons, row 7, removed
];

fn shown() -> ChangeRecord {
    let mut record = ChangeRecord::default();
    record.push(TruthTable::Log, 5.into(), Some(&[0xab, 0xcd])).unwrap();
    record.push(TruthTable::Meta, "cal".into(), Some(&[2])).unwrap();
    record.push(TruthTable::Reasons, 7.into(), None).unwrap();
    record
}

#[test]
fn a_record_has_the_bytes_that_the_format_shows() {
    let record = shown();
    let golden = [&SHOWN[..], &[0xff; 3]].concat();
    assert_eq!(record.as_bytes(), golden);
    assert_eq!(ChangeRecord::from_bytes(&golden).unwrap(), record);
}

#[test]
fn bytes_that_are_no_record_are_refused() {
    let golden = shown().as_bytes().to_vec();
    for end in 0..golden.len() {
        // A record may end behind each of its rows.
        let is_whole = [1, 18, 29].contains(&end);
        assert_eq!(ChangeRecord::from_bytes(&golden[..end]).is_ok(), is_whole, "{end}");
    }
    let with = |place: usize, byte: u8| {
        let mut bytes = golden.clone();
        bytes[place] = byte;
        ChangeRecord::from_bytes(&bytes).map(drop).map_err(|error| error.code())
    };
    assert_eq!(with(0, 2), Err("ERR_STORE_VERSION"));
    assert_eq!(with(1, 0), Err("ERR_STORE_VERSION"));
    assert_eq!(with(1, 21), Err("ERR_STORE_VERSION"));
    assert_eq!(with(12, 0xff), Err("ERR_INTEGRITY"));
}

#[test]
fn a_row_that_does_not_fit_its_table_is_refused() {
    let db = redb::Database::builder()
        .create_with_backend(redb::backends::InMemoryBackend::new())
        .unwrap();
    for (table, key, value) in [
        (TruthTable::Log, TableKey::Name("a"), Some(&[1][..])),
        (TruthTable::Meta, TableKey::Bytes(&[0xff]), Some(&[1])),
        (TruthTable::State, TableKey::Number(1), Some(&[1])),
        (TruthTable::Access, TableKey::Bytes(&[1; 7]), Some(&[1; 20])),
    ] {
        let mut record = ChangeRecord::default();
        record.push(table, key, value).unwrap();
        let error = record.apply(&db.begin_write().unwrap()).unwrap_err();
        assert_eq!(error.code(), "ERR_INTEGRITY", "{table:?}");
    }
}
