//! Containers that were made to mislead: counts, offsets, frames and flags that do not say what is so.

use std::io::Write;

use grainstore_format::{EncodeOptions, Encoding, PayloadKey};
use lz4_flex::frame::FrameEncoder;

use crate::kit::{Raw, blob, blobs, grain, read, refusal, seal};

fn zstd(region: &[u8]) -> Vec<u8> {
    zstd::encode_all(region, 3).unwrap()
}

fn lz4(region: &[u8]) -> Vec<u8> {
    let mut encoder = FrameEncoder::new(Vec::new());
    encoder.write_all(region).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn offsets_follow_one_another_from_the_start_without_a_gap() {
    let given = blobs(3);
    let good = Raw::of(&given);
    assert_eq!(read(&good.bytes()).map(|(entries, _)| entries), Ok(given));
    let end = u32::try_from(good.bytes().len() - 32).unwrap();
    let [a, b, c] = [good.offsets[0], good.offsets[1], good.offsets[2]];
    for (name, offsets, place) in [
        ("overlapping", [a, b, b], "offsets, byte 24"),
        ("descending", [a, c, b], "offsets, byte 24"),
        ("not at the start", [a + 1, b, c], "offsets, byte 16"),
        ("before the start", [a - 1, b, c], "offsets, byte 16"),
        ("at the checksum", [a, b, end], "offsets, byte 24"),
        ("outside the file", [a, b, u32::MAX], "offsets, byte 24"),
        ("too early", [a, b - 1, c], "grain 0 at byte 28"),
        ("too late", [a, b + 1, c], "grain 0 at byte 28"),
        ("last too early", [a, b, c - 1], "grain 2 at byte"),
        ("last too late", [a, b, c + 1], "grain 2 at byte"),
    ] {
        let (_, found) = refusal(&Raw { offsets: offsets.to_vec(), ..good.clone() }.bytes());
        assert!(found.starts_with(place), "{name}: {found}");
    }
}

#[test]
fn a_count_that_lies_is_noticed_before_anything_is_allocated() {
    let good = Raw::of(&blobs(3));
    for count in [0, 1, 2, 4, 1000, u32::MAX] {
        let (code, _) = refusal(&Raw { count, ..good.clone() }.bytes());
        assert_eq!(code, "ERR_CORRUPT", "{count}");
    }
    let head = Raw { count: u32::MAX, offsets: Vec::new(), region: Vec::new(), ..good };
    assert_eq!(refusal(&head.bytes()), ("ERR_CORRUPT", "header, byte 4".to_owned()));
    assert_eq!(refusal(&head.bytes()[..40]).0, "ERR_CORRUPT");
    assert_eq!(refusal(&seal(head.bytes()[..8].to_vec())).0, "ERR_CORRUPT");
}

#[test]
fn bytes_that_no_offset_leads_to_are_refused() {
    let given = blobs(2);
    let mut gap = Raw::of(&given);
    gap.region.push(0xc0);
    assert_eq!(refusal(&gap.bytes()).0, "ERR_CORRUPT");
    let none = Raw::of(&[]);
    for packed in [none.clone().packed(1, zstd(b"rest")), none.packed(2, lz4(b"rest"))] {
        assert_eq!(refusal(&packed.bytes()).0, "ERR_TOO_LARGE");
    }
    let region = [given.concat(), vec![0xc0]].concat();
    for packed in
        [Raw::of(&given).packed(1, zstd(&region)), Raw::of(&given).packed(2, lz4(&region))]
    {
        assert_eq!(refusal(&packed.bytes()).0, "ERR_CORRUPT");
    }
}

#[test]
fn a_region_that_inflates_beyond_its_grains_stops_early() {
    let zeros = vec![0; 64 << 20];
    for (compression, frame) in [(1, zstd(&zeros)), (2, lz4(&zeros))] {
        let bomb = Raw::of(&blobs(1)).packed(compression, frame);
        assert_eq!(refusal(&bomb.bytes()), ("ERR_TOO_LARGE", "grains".to_owned()));
    }
}

#[test]
fn a_region_is_one_whole_frame_of_the_kind_announced() {
    let given = blobs(2);
    let good = Raw::of(&given);
    let (z, l) = (zstd(&given.concat()), lz4(&given.concat()));
    assert!(read(&good.clone().packed(1, z.clone()).bytes()).is_ok());
    assert!(read(&good.clone().packed(2, l.clone()).bytes()).is_ok());
    let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 0], z.as_slice()].concat();
    for (name, compression, frame) in [
        ("the other kind", 1, l.clone()),
        ("the other kind", 2, z.clone()),
        ("none at all", 1, given.concat()),
        ("none at all", 2, given.concat()),
        ("no bytes", 1, Vec::new()),
        ("no bytes", 2, Vec::new()),
        ("two frames", 1, [zstd(&given[0]), zstd(&given[1])].concat()),
        ("two frames", 2, [lz4(&given[0]), lz4(&given[1])].concat()),
        ("one to be skipped", 1, skippable.clone()),
        ("one to be skipped", 2, skippable),
        ("cut", 1, z[..z.len() - 1].to_vec()),
        ("cut", 2, l[..l.len() - 1].to_vec()),
        ("cut before its end mark", 2, l[..l.len() - 4].to_vec()),
    ] {
        let (code, place) = refusal(&good.clone().packed(compression, frame).bytes());
        assert_eq!(code, "ERR_CORRUPT", "{name} ({compression})");
        assert!(!place.is_empty(), "{name} ({compression})");
    }
}

#[test]
fn flags_that_lie_are_refused_and_clear_ones_promise_nothing() {
    let (a, b) = (blob(1000, Encoding::MessagePack), blob(2000, Encoding::MessagePack));
    for (given, flags, expected) in [
        (vec![b.clone(), a.clone()], 0b00, None),
        (vec![b.clone(), a.clone()], 0b10, None),
        (vec![b.clone(), a.clone()], 0b01, Some("ERR_CORRUPT")),
        (vec![a.clone(), a.clone()], 0b01, None),
        (vec![a.clone(), a.clone()], 0b11, Some("ERR_CORRUPT")),
        (vec![a.clone(), a.clone()], 0b10, Some("ERR_CORRUPT")),
        (vec![b.clone(), a.clone(), b.clone()], 0b00, None),
        (vec![b.clone(), a.clone(), b], 0b10, Some("ERR_CORRUPT")),
    ] {
        let read = read(&Raw { flags, ..Raw::of(&given) }.bytes());
        let code = read.map(drop).map_err(|error| error.code());
        assert_eq!(code.err(), expected, "{} grains, flags {flags:#b}", given.len());
    }
}

#[test]
fn grains_of_one_time_are_sorted_by_address() {
    let mut same: Vec<_> = ["x", "y"]
        .map(|subject| {
            let json = format!(
                r#"{{"type": "belief", "subject": "{subject}", "relation": "r", "object": "o", "confidence": 1, "created_at": 1}}"#
            );
            let grain = grainstore_format::Grain::from_json(&json).unwrap();
            grain.encode(Encoding::MessagePack).unwrap()
        })
        .to_vec();
    same.sort_by_key(grainstore_format::Blob::address);
    let mut bytes: Vec<_> = same.into_iter().map(grainstore_format::Blob::into_bytes).collect();
    assert!(read(&Raw::of(&bytes).bytes()).is_ok());
    bytes.reverse();
    let (code, place) = refusal(&Raw::of(&bytes).bytes());
    assert_eq!(code, "ERR_CORRUPT");
    assert!(place.starts_with("grain 1 at byte "), "{place}");
}

#[test]
fn a_grain_that_is_none_is_refused_at_its_place() {
    let good = blob(1000, Encoding::MessagePack);
    let change = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    for (name, bad, code) in [
        ("a later version", change(0, 2), "ERR_VERSION"),
        ("type 0", change(2, 0), "ERR_UNKNOWN_TYPE"),
        ("another type", change(2, 2), "ERR_CORRUPT"),
        ("signed without a wrapper", change(1, 1), "ERR_SIGNED_MISMATCH"),
        ("another second", change(8, 99), "ERR_CORRUPT"),
        ("no map", change(9, 0xc0), "ERR_NOT_MAP"),
        ("a header alone", good[..9].to_vec(), "ERR_TOO_SHORT"),
        ("too long", [vec![1], vec![0; (1 << 20) + (16 << 10)]].concat(), "ERR_TOO_LARGE"),
    ] {
        let given = [bad, blob(2000, Encoding::MessagePack)];
        let (found, place) = refusal(&Raw::of(&given).bytes());
        assert_eq!(found, code, "{name}");
        assert!(place.starts_with("grain 0 at byte 24"), "{name}: {place}");
    }
}

#[test]
fn a_last_grain_without_a_visible_end_is_refused() {
    let key = PayloadKey::new([7; 32]);
    let encrypt = EncodeOptions { encrypt: Some((&key, [1; 12])), ..EncodeOptions::default() };
    let last = grain(9000).encode_with(&encrypt).unwrap().into_bytes();
    let given = [blob(1000, Encoding::MessagePack), last];
    let (code, place) = refusal(&Raw::of(&given).bytes());
    assert_eq!(code, "ERR_CORRUPT");
    assert!(place.starts_with("grain 1 at byte "), "{place}");
}
