//! Manifests: what they carry comes back, what is unknown is passed over, what is wrong is refused.

use grainstore_format::container::Carried;
use grainstore_format::{
    ContentAddress, Encoding, EpochMs, GrainState, Map, Value, VerificationStatus, encode_value,
};

use crate::kit::{Raw, blobs, read, refusal};

fn map(entries: &[(&str, Value)]) -> Value {
    let entries = entries.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
    Value::Map(entries.collect::<Map>())
}

/// The container of one grain with this manifest.
fn carrying(manifest: &Value, encoding: Encoding) -> Vec<u8> {
    Raw::of(&blobs(1)).with_manifest(&encode_value(manifest, encoding)).bytes()
}

#[test]
fn every_key_is_read_in_both_encodings_and_unknown_ones_are_passed_over() {
    let (name, by) = ("a".repeat(64), "b".repeat(64));
    let deep = Value::Array(vec![map(&[("x", Value::Null)]), 1.5.into()]);
    let entry = map(&[
        ("ac", 42.into()),
        ("ct", true.into()),
        ("laa", 1_737_500_000_000_i64.into()),
        ("later", deep),
        ("sb", by.as_str().into()),
        ("svt", 1_737_000_000_000_i64.into()),
        ("vstatus", "contested".into()),
        ("x_held", true.into()),
        ("x_review", true.into()),
    ]);
    let state = GrainState {
        superseded_by: by.parse().ok(),
        system_valid_to: Some(EpochMs::new(1_737_000_000_000)),
        verification_status: VerificationStatus::Contested,
        contradicted: true,
        needs_review: true,
        held: true,
    };
    let last_accessed_at = Some(EpochMs::new(1_737_500_000_000));
    let expected = Carried { state, access_count: 42, last_accessed_at, ..Carried::default() };
    let other = map(&[("vstatus", "unverified".into())]);
    let manifest = map(&[(&name, entry), (&by, other)]);
    for encoding in [Encoding::MessagePack, Encoding::Cbor] {
        let (_, carried) = read(&carrying(&manifest, encoding)).unwrap();
        let at = |name: &str| name.parse::<ContentAddress>().unwrap();
        assert_eq!(carried, [(at(&name), expected), (at(&by), Carried::default())]);
    }
}

#[test]
fn a_value_of_another_type_is_refused_with_its_key() {
    let name = "a".repeat(64);
    for (key, values) in [
        ("sb", vec![1.into(), "b".into(), "B".repeat(64).into(), true.into()]),
        ("svt", vec!["1".into(), 1.5.into(), u64::MAX.into()]),
        ("vstatus", vec!["good".into(), 1.into()]),
        ("ct", vec![1.into(), "true".into(), Value::Null]),
        ("x_held", vec![0.into()]),
        ("x_review", vec!["no".into()]),
        ("ac", vec![(-1).into(), 1.0.into()]),
        ("laa", vec![Value::Array(Vec::new())]),
    ] {
        for value in values {
            let manifest = map(&[(&name, map(&[(key, value.clone())]))]);
            for encoding in [Encoding::MessagePack, Encoding::Cbor] {
                let found = refusal(&carrying(&manifest, encoding));
                let place = format!("manifest, {name}, {key}");
                assert_eq!(found, ("ERR_CORRUPT", place), "{key}: {value:?}");
            }
        }
    }
}

#[test]
fn a_manifest_that_is_no_canonical_map_by_address_is_refused() {
    let empty = map(&[]);
    for manifest in [
        map(&[("a", empty.clone())]),
        map(&[(&"A".repeat(64), empty.clone())]),
        Value::Array(Vec::new()),
        Value::Null,
    ] {
        assert_eq!(refusal(&carrying(&manifest, Encoding::MessagePack)).0, "ERR_CORRUPT");
    }
    let entry = |letter: &str| [&[0xd9, 64][..], letter.repeat(64).as_bytes(), &[0x80]].concat();
    let (a, b) = (entry("a"), entry("b"));
    for (name, manifest) in [
        ("out of order", [&[0x82][..], &b, &a].concat()),
        ("twice", [&[0x82][..], &a, &a].concat()),
        ("one too few", [&[0x82][..], &a].concat()),
        ("one too many", [&[0x81][..], &a, &b].concat()),
        ("four billion", [&[0xdf, 255, 255, 255, 255][..], &a].concat()),
        ("a length that is not the smallest", [&[0xde, 0, 1][..], &a].concat()),
        ("no map inside", [&[0x81, 0xd9, 64][..], &[b'a'; 64], &[0xc0]].concat()),
        (
            "keys out of order",
            [&[0x81, 0xd9, 64][..], &[b'a'; 64], b"\x82\xa2ct\xc3\xa2ac\x01"].concat(),
        ),
        ("a key twice", [&[0x81, 0xd9, 64][..], &[b'a'; 64], b"\x82\xa2ct\xc3\xa2ct\xc3"].concat()),
    ] {
        let (code, place) = refusal(&Raw::of(&blobs(1)).with_manifest(&manifest).bytes());
        assert_eq!(code, "ERR_CORRUPT", "{name}");
        assert!(place.starts_with("manifest") || place.starts_with("byte"), "{name}: {place}");
    }
}

#[test]
fn a_manifest_is_where_the_flag_says() {
    let good = Raw::of(&blobs(1));
    assert_eq!(refusal(&good.clone().with_manifest(&[]).bytes()).0, "ERR_CORRUPT");
    let silent = Raw { manifest: vec![0x80], ..good.clone() };
    assert_eq!(refusal(&silent.bytes()).0, "ERR_CORRUPT");
    assert_eq!(
        read(&good.with_manifest(&[0x80]).bytes()).map(|(_, carried)| carried),
        Ok(Vec::new())
    );
}

#[test]
fn a_long_manifest_is_read_in_pieces() {
    let names: Vec<_> = (0..3000_u32).map(|n| ContentAddress::of(&n.to_be_bytes())).collect();
    let padding = "x".repeat(300);
    let entry = map(&[("ac", 7.into()), ("other", padding.as_str().into())]);
    let texts: Vec<_> = names.iter().map(ToString::to_string).collect();
    let entries: Vec<_> = texts.iter().map(|name| (name.as_str(), entry.clone())).collect();
    for encoding in [Encoding::MessagePack, Encoding::Cbor] {
        let (_, carried) = read(&carrying(&map(&entries), encoding)).unwrap();
        assert_eq!(carried.len(), names.len());
        assert!(carried.is_sorted_by_key(|(address, _)| *address));
        assert!(carried.iter().all(|(_, carried)| carried.access_count == 7));
    }
    let long = map(&[(&texts[0], map(&[("other", "x".repeat(100_000).into())]))]);
    assert_eq!(refusal(&carrying(&long, Encoding::MessagePack)).0, "ERR_CORRUPT");
}
