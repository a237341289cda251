//! Tests of forward records: they round-trip, and damaged ones are rejected.

use super::*;

fn share(places: &[u32]) -> IndexedTerm {
    IndexedTerm { term: "x".into(), weight: 1, positions: places.into() }
}

#[test]
fn a_record_gives_back_weights_and_places() {
    for width in [2, 3, 4] {
        let shares = [share(&[0, 3, 900]), share(&[]), share(&[]), share(&[7, 70_000])];
        let mut bytes = b"before".to_vec();
        let ordinals = ([0, 9, 300, 65_000].as_slice(), width);
        encode_record(&mut bytes, ordinals, &[1, 2, 255, 4], &encode_positions(&shares));
        let record = ForwardRecord::read(&bytes[6..], width).unwrap();
        assert_eq!(record.ordinals().collect::<Vec<_>>(), [0, 9, 300, 65_000]);
        assert_eq!([0, 9, 300, 65_000, 10].map(|o| record.weight(o)), [1, 2, 255, 4, 0]);
        assert_eq!(record.positions(0), [0, 3, 900]);
        assert_eq!(record.positions(300), [0_u32; 0]);
        assert_eq!(record.positions(65_000), [7, 70_000]);
        assert_eq!(record.length(), 262);
    }
}

#[test]
fn varints_are_read_as_written_and_never_beyond_their_type() {
    for value in [0, 1, 127, 128, 16_383, 16_384, u32::MAX] {
        let mut bytes = Vec::new();
        put_varint(&mut bytes, value);
        let mut rest = bytes.as_slice();
        assert_eq!(take_varint(&mut rest), Some(value));
        assert!(rest.is_empty());
        assert_eq!(take_varint(&mut &bytes[..bytes.len() - 1]), None);
    }
    assert_eq!(take_varint(&mut [0xff, 0xff, 0xff, 0xff, 0x1f].as_slice()), None);
    assert_eq!(take_varint(&mut [0x80; 9].as_slice()), None);
}

#[test]
fn a_record_that_promises_more_than_it_has_is_none() {
    let mut bytes = Vec::new();
    put_varint(&mut bytes, u32::MAX);
    bytes.extend([0; 40]);
    assert!(ForwardRecord::read(&bytes, 4).is_none());
}
