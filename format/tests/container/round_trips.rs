//! What is written is read: every compression, both encodings, from memory and from a file.

use std::io::Write;

use grainstore_format::container::{
    Compression, Container, ContainerPlan, ContainerWriter, ManifestEntry, PlannedEntry, SeekSource,
};
use grainstore_format::{
    ContentAddress, DecodeOptions, EncodeOptions, Encoding, EpochMs, Error, GrainState, PayloadKey,
};

use crate::kit::{blob, blobs, container, grain, read};

fn superseded() -> ManifestEntry {
    let state = GrainState {
        superseded_by: Some(ContentAddress::of(b"successor")),
        system_valid_to: Some(EpochMs::new(5)),
        ..GrainState::default()
    };
    ManifestEntry {
        state,
        access_count: 3,
        last_accessed_at: Some(EpochMs::new(9)),
        ..ManifestEntry::default()
    }
}

#[test]
fn grains_and_manifest_come_back_whatever_the_compression() {
    let given = blobs(50);
    let manifest: Vec<_> =
        given.iter().step_by(7).map(|blob| (ContentAddress::of(blob), superseded())).collect();
    for compression in Compression::ALL {
        let bytes = container(&given, &manifest, compression);
        let (entries, carried) = read(&bytes).unwrap();
        assert_eq!(entries, given, "{compression:?}");
        assert_eq!(carried.len(), manifest.len());
        assert!(manifest.iter().all(|entry| carried.contains(entry)), "{compression:?}");
        let opened = Container::open(bytes.as_slice(), &DecodeOptions::default()).unwrap();
        assert!(opened.is_sorted() && opened.is_deduplicated());
        assert_eq!(opened.compression(), compression);
        assert_eq!(bytes[bytes.len() - 32..], opened.checksum());
    }
}

#[test]
fn an_empty_container_is_a_container() {
    for compression in Compression::ALL {
        let bytes = container(&[], &[], compression);
        assert_eq!(read(&bytes), Ok((Vec::new(), Vec::new())), "{compression:?}");
    }
}

#[test]
fn entries_come_by_creation_and_ties_by_address_each_once() {
    let mut given = blobs(9);
    let json = r#"{"type": "belief", "subject": "tie", "relation": "r", "object": "o", "confidence": 1, "created_at": 3000}"#;
    let tie = grainstore_format::Grain::from_json(json).unwrap();
    given.push(tie.encode(Encoding::MessagePack).unwrap().into_bytes());
    given.reverse();
    given.push(given[0].clone());
    let (entries, _) = read(&container(&given, &[], Compression::None)).unwrap();
    let order: Vec<_> = entries
        .iter()
        .map(|bytes| {
            let created_at = grainstore_format::Grain::decode(bytes).unwrap().created_at();
            (created_at, ContentAddress::of(bytes))
        })
        .collect();
    assert_eq!(order.len(), 10);
    assert!(order.is_sorted());
}

#[test]
fn encodings_may_be_mixed_and_the_manifest_is_cbor_for_cbor_alone() {
    let (pack, cbor) = (blob(1000, Encoding::MessagePack), blob(2000, Encoding::Cbor));
    for (given, first) in [
        (vec![pack.clone()], 0x81),
        (vec![cbor.clone()], 0xa1),
        (vec![pack.clone(), cbor.clone()], 0x81),
    ] {
        let manifest = [(ContentAddress::of(&given[0]), superseded())];
        let bytes = container(&given, &manifest, Compression::None);
        let grains: usize = given.iter().map(Vec::len).sum();
        assert_eq!(bytes[16 + 4 * given.len() + grains], first);
        assert_eq!(read(&bytes), Ok((given, manifest.to_vec())));
    }
}

#[test]
fn a_file_is_read_as_memory_is() {
    let given = blobs(20);
    for compression in Compression::ALL {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&container(&given, &[], compression)).unwrap();
        let opened = Container::open(SeekSource::new(file), &DecodeOptions::default()).unwrap();
        let entries = opened.entries().unwrap().map(|entry| entry.unwrap().bytes().to_vec());
        assert_eq!(entries.collect::<Vec<_>>(), given, "{compression:?}");
        assert_eq!(opened.entry(7).unwrap().bytes(), given[7]);
        assert_eq!(opened.entry(20).unwrap_err().code(), "ERR_CORRUPT");
    }
}

#[test]
fn a_file_that_changes_while_it_is_read_is_noticed() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), container(&blobs(2), &[], Compression::None)).unwrap();
    let opened =
        Container::open(SeekSource::new(file.reopen().unwrap()), &DecodeOptions::default())
            .unwrap();
    assert_eq!(opened.recheck(), Ok(()));
    std::fs::write(file.path(), container(&blobs(3), &[], Compression::None)).unwrap();
    assert_eq!(opened.recheck().unwrap_err().code(), "ERR_INTEGRITY");
}

#[test]
fn a_payload_that_is_compressed_in_the_blob_shows_its_end() {
    let options = EncodeOptions { compress: true, ..EncodeOptions::default() };
    let packed = grain(1000).encode_with(&options).unwrap().into_bytes();
    let (entries, _) =
        read(&container(std::slice::from_ref(&packed), &[], Compression::None)).unwrap();
    assert_eq!(entries, [packed]);
}

#[test]
fn an_encrypted_payload_stands_before_another_grain_and_needs_its_key() {
    let key = PayloadKey::new([7; 32]);
    let encrypt = EncodeOptions { encrypt: Some((&key, [1; 12])), ..EncodeOptions::default() };
    let last = grain(9000).encode_with(&encrypt).unwrap().into_bytes();
    let first = blob(1000, Encoding::MessagePack);
    let mut planned = vec![
        PlannedEntry::of(&first, EpochMs::new(1000)),
        PlannedEntry::of(&last, EpochMs::new(9000)),
    ]
    .into_iter()
    .collect::<Result<Vec<_>, _>>()
    .unwrap();
    grainstore_format::container::sort_entries(&mut planned).unwrap();
    let mut plan = ContainerPlan::new(Compression::Zstd).assume_distinct();
    planned.iter().for_each(|entry| assert!(plan.add(entry).unwrap()));
    let mut writer = ContainerWriter::new(Vec::new(), plan).unwrap();
    writer.push(&last).unwrap();
    writer.push(&first).unwrap();
    let (bytes, written) = writer.finish(None::<Result<_, Error>>).unwrap();
    assert_eq!((written.grains, written.bytes), (2, bytes.len() as u64));

    let without = Container::open(bytes.as_slice(), &DecodeOptions::default()).unwrap();
    assert!(!without.is_sorted() && without.is_deduplicated());
    assert_eq!(without.verify().unwrap_err().code(), "ERR_KEY");
    let options = DecodeOptions { key: Some(&key), ..DecodeOptions::default() };
    let with = Container::open(bytes.as_slice(), &options).unwrap();
    assert_eq!(with.verify(), Ok(()));
    assert_eq!(with.entry(0).unwrap().bytes(), last);
}

#[test]
fn a_writer_holds_to_its_plan() {
    let given = blobs(2);
    let mut plan = ContainerPlan::new(Compression::None);
    for (entry, at) in given.iter().zip([1000, 2000]) {
        plan.add(&PlannedEntry::of(entry, EpochMs::new(at)).unwrap()).unwrap();
    }
    let code = |result: Result<_, Error>| result.map(drop).map_err(|error| error.code());
    let mut writer = ContainerWriter::new(Vec::new(), plan.clone()).unwrap();
    assert_eq!(code(writer.push(&given[0][1..])), Err("ERR_CORRUPT"));
    writer.push(&given[0]).unwrap();
    assert_eq!(writer.finish(None::<Result<_, Error>>).unwrap_err().code(), "ERR_CORRUPT");
    let mut writer = ContainerWriter::new(Vec::new(), plan.clone().with_manifest(1)).unwrap();
    given.iter().for_each(|entry| writer.push(entry).unwrap());
    assert_eq!(code(writer.push(&given[0])), Err("ERR_CORRUPT"));
    assert_eq!(writer.finish(None::<Result<_, Error>>).unwrap_err().code(), "ERR_CORRUPT");
    assert!(ContainerWriter::new(Vec::new(), plan.with_manifest(3)).is_err());
}

/// The bytes that docs/format.md shows.
#[test]
fn the_container_of_one_verified_belief_has_these_bytes() {
    let json = r#"{"type": "belief", "subject": "s", "relation": "r", "object": "o", "confidence": 1, "created_at": 1737000000000}"#;
    let blob = grainstore_format::Grain::from_json(json).unwrap();
    let blob = blob.encode(Encoding::MessagePack).unwrap();
    let verification_status = grainstore_format::VerificationStatus::Verified;
    let state = GrainState { verification_status, ..GrainState::default() };
    let carried = [(blob.address(), ManifestEntry { state, ..ManifestEntry::default() })];
    let bytes = container(&[blob.bytes().to_vec()], &carried, Compression::None);
    let expected = concat!(
        "4d4701130000000101000000000000000000001401000100006788844086a163cb3ff0000000000000a26361cf",
        "000001946d449a00a16fa16fa172a172a173a173a174a662656c69656681d94066623035343563316233396165",
        "61653635633463366138333934353263316564326439373364353562336532633536313433653666373435393432",
        "313266386681a776737461747573a876657269666965647ca09edf903d42296aff352064fe80598f56e921411c05",
        "681b31ea63e4694d20"
    );
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, expected);
}
