//! Manifests: what they carry comes back, what is unknown is passed over, what is wrong is refused.

use grainstore_format::container::{Compression, EmbeddingSummary, ManifestEntry};
use grainstore_format::{
    ContentAddress, Encoding, EpochMs, GrainState, Map, Value, VerificationStatus, encode_value,
};

use crate::kit::{Raw, blobs, container, read, refusal};

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
    let expected =
        ManifestEntry { state, access_count: 42, last_accessed_at, ..ManifestEntry::default() };
    let other = map(&[("vstatus", "unverified".into())]);
    let manifest = map(&[(&name, entry), (&by, other)]);
    for encoding in [Encoding::MessagePack, Encoding::Cbor] {
        let (_, carried) = read(&carrying(&manifest, encoding)).unwrap();
        let at = |name: &str| name.parse::<ContentAddress>().unwrap();
        assert_eq!(carried, [(at(&name), expected.clone()), (at(&by), ManifestEntry::default())]);
    }
}

/// What a manifest tells of the vectors of a grain, with one key otherwise or, with nothing, without it.
fn told(otherwise: Option<(&str, Option<Value>)>) -> Value {
    let mut fields = vec![
        ("ci", Value::Array(vec![0.into(), 2.into()])),
        ("di", "cosine".into()),
        ("dm", 384.into()),
        ("mo", "m".into()),
    ];
    if let Some((key, value)) = otherwise {
        fields.retain(|(name, _)| *name != key);
        fields.extend(value.map(|value| (key, value)));
    }
    Value::Array(vec![map(&fields)])
}

#[test]
fn vectors_that_a_grain_has_come_back_and_have_these_bytes() {
    let embedded = EmbeddingSummary {
        model: "m".to_owned(),
        dimensions: 384,
        metric: "cosine".to_owned(),
        chunks: vec![0, 2],
    };
    let expected = ManifestEntry { embedded: vec![embedded], ..ManifestEntry::default() };
    let name = "a".repeat(64);
    let manifest = map(&[(&name, map(&[("x_er", told(None))]))]);
    for encoding in [Encoding::MessagePack, Encoding::Cbor] {
        let (_, carried) = read(&carrying(&manifest, encoding)).unwrap();
        assert_eq!(carried, [(name.parse().unwrap(), expected.clone())]);
    }
    let given = blobs(1);
    let entry = (ContentAddress::of(&given[0]), expected);
    let bytes = container(&given, std::slice::from_ref(&entry), Compression::None);
    let golden =
        b"\x81\xa4x_er\x91\x84\xa2ci\x92\x00\x02\xa2di\xa6cosine\xa2dm\xcd\x01\x80\xa2mo\xa1m";
    let end = bytes.len() - 32;
    assert_eq!(&bytes[end - golden.len()..end], golden);
    assert_eq!(read(&bytes).unwrap().1, [entry]);
}

#[test]
fn the_most_vectors_a_grain_can_have_fit_an_entry_and_more_are_refused() {
    let embedded = |number: u32| EmbeddingSummary {
        model: format!("{number:0>256}"),
        dimensions: 4096,
        metric: "cosine".to_owned(),
        chunks: (0..16).map(|chunk| u32::MAX - 16 + chunk).collect(),
    };
    let most =
        ManifestEntry { embedded: (0..64).map(embedded).collect(), ..ManifestEntry::default() };
    let given = blobs(1);
    let entry = (ContentAddress::of(&given[0]), most);
    let bytes = container(&given, std::slice::from_ref(&entry), Compression::None);
    assert_eq!(read(&bytes).unwrap().1, [entry]);
    for count in [64, 65] {
        let one = |number: i64| Value::Array(vec![number.into()]);
        let Value::Array(first) = told(Some(("ci", Some(one(0))))) else { unreachable!() };
        let many = Value::Array(vec![first[0].clone(); count]);
        let manifest = map(&[(&"a".repeat(64), map(&[("x_er", many)]))]);
        assert_eq!(read(&carrying(&manifest, Encoding::MessagePack)).is_ok(), count == 64);
    }
}

#[test]
fn a_value_of_another_type_is_refused_with_its_key() {
    let wrong = |key, value: Value| told(Some((key, Some(value))));
    let list = |numbers: &[i64]| Value::Array(numbers.iter().map(|n| (*n).into()).collect());
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
        (
            "x_er",
            vec![
                1.into(),
                Value::Array(vec![1.into()]),
                Value::Array(vec![map(&[])]),
                told(Some(("mo", None))),
                told(Some(("dm", None))),
                told(Some(("di", None))),
                told(Some(("ci", None))),
                wrong("mo", "".into()),
                wrong("mo", "m".repeat(257).into()),
                wrong("di", 1.into()),
                wrong("dm", 0.into()),
                wrong("dm", (-1).into()),
                wrong("dm", 4097.into()),
                wrong("dm", u64::MAX.into()),
                wrong("ci", list(&[])),
                wrong("ci", list(&[1, 0])),
                wrong("ci", list(&[1, 1])),
                wrong("ci", list(&[-1])),
                wrong("ci", list(&(0..1025).collect::<Vec<_>>())),
            ],
        ),
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
