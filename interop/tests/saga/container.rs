//! Containers: what is written is read, and what was changed is refused.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use crate::support::*;
use grainstore::ContentAddress;
use grainstore_interop::archive::{Archive, ArchiveWriter, Limits};
use grainstore_interop::saga::{
    Container, ContainerFile, ContainerVerdict, Document, SignatureVerdict, Signer, write_container,
};
use serde_json::{Value, json};

fn document() -> Document {
    signed(envelope("full", full_layers()), &evm())
}

fn small_document() -> Document {
    signed(envelope("identity", json!({"identity": evm_identity()})), &evm())
}

const FILES: [(&str, &[u8]); 4] = [
    ("artifacts/b.txt", b"second"),
    ("artifacts/a.txt", b"first"),
    ("memory/longterm.bin", b"\x00\x01\x02"),
    ("other/x", b""),
];

fn write(path: &Path, document: &Document) {
    let files = FILES.map(|(name, bytes)| ContainerFile::new(name, bytes)).into();
    write_container(path, document, files, NOW, &evm()).unwrap();
}

fn open(path: &Path) -> grainstore_interop::Result<Container> {
    Container::open(path, Limits::default())
}

/// The entries of an archive, in their order.
fn entries(path: &Path) -> Vec<(String, Vec<u8>)> {
    let archive = Archive::open(path, Limits::default()).unwrap();
    let read = |name: &str| archive.read(name, 1 << 20).unwrap().unwrap();
    archive.entries().iter().map(|entry| (entry.name().to_owned(), read(entry.name()))).collect()
}

fn rewrite(path: &Path, entries: &[(String, Vec<u8>)]) {
    let mut archive = ArchiveWriter::create(path).unwrap();
    for (name, bytes) in entries {
        archive.add(name, &bytes[..]).unwrap();
    }
    archive.finish().unwrap();
}

/// Writes a container, changes its entries, and opens it.
fn changed(
    change: impl FnOnce(&mut Vec<(String, Vec<u8>)>),
) -> grainstore_interop::Result<Container> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.saga");
    write(&path, &document());
    let mut found = entries(&path);
    change(&mut found);
    rewrite(&path, &found);
    open(&path)
}

fn bytes_of<'e>(entries: &'e mut [(String, Vec<u8>)], name: &str) -> &'e mut Vec<u8> {
    &mut entries.iter_mut().find(|(one, _)| one == name).unwrap().1
}

#[test]
fn a_container_is_read_as_it_was_written_and_its_bytes_are_the_same_each_time() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (dir.path().join("one.saga"), dir.path().join("two.saga"));
    write(&one, &document());
    write(&two, &document());
    assert_eq!(std::fs::read(&one).unwrap(), std::fs::read(&two).unwrap());
    let names: Vec<_> = entries(&one).into_iter().map(|(name, _)| name).collect();
    let expected = [
        "agent.saga.json",
        "memory/longterm.bin",
        "artifacts/a.txt",
        "artifacts/b.txt",
        "other/x",
        "META",
        "SIGNATURE",
    ];
    assert_eq!(names, expected);
    let container = open(&one).unwrap();
    assert_eq!(container.document(), &document());
    assert_eq!(container.document().verify(), SignatureVerdict::Verified);
    assert_eq!(container.verdict(), &ContainerVerdict::Verified);
    for (name, bytes) in FILES {
        let mut read = Vec::new();
        container.reader(name).unwrap().unwrap().read_to_end(&mut read).unwrap();
        assert_eq!(read, bytes);
    }
}

#[test]
fn no_changed_byte_of_a_container_changes_what_is_taken_from_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.saga");
    write(&path, &small_document());
    let whole = std::fs::read(&path).unwrap();
    let before: BTreeMap<_, _> = entries(&path).into_iter().collect();
    let other = dir.path().join("b.saga");
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        std::fs::write(&other, &bytes).unwrap();
        let Ok(container) = open(&other) else { continue };
        if container.verdict() != &ContainerVerdict::Verified {
            continue;
        }
        // Dates and versions of the archive itself: the entries are the same, byte for byte.
        assert_eq!(entries(&other).into_iter().collect::<BTreeMap<_, _>>(), before, "byte {at}");
    }
}

#[test]
fn entries_that_are_not_what_the_list_says_are_refused_by_name() {
    let altered = changed(|entries| bytes_of(entries, "artifacts/a.txt")[0] ^= 1).unwrap_err();
    let unlisted = changed(|entries| entries.insert(0, ("artifacts/c".into(), b"x".to_vec())));
    let missing = changed(|entries| entries.retain(|(name, _)| name != "artifacts/a.txt"));
    let swapped = changed(|entries| {
        let meta = bytes_of(entries, "META");
        let text = String::from_utf8(meta.clone()).unwrap();
        *meta = text.replace("artifacts/a.txt", "artifacts/z.txt").into_bytes();
    });
    for (refused, name) in [
        (altered, "artifacts/a.txt"),
        (unlisted.unwrap_err(), "artifacts/c"),
        (missing.unwrap_err(), "artifacts/a.txt"),
        (swapped.unwrap_err(), "artifacts/a.txt"),
    ] {
        assert_eq!(refused.code(), "ERR_INTEGRITY", "{refused}");
        assert!(refused.entry().unwrap().ends_with(name), "{refused}");
    }
    for name in ["META", "SIGNATURE", "agent.saga.json"] {
        let refused = changed(|entries| entries.retain(|(one, _)| one != name)).unwrap_err();
        assert_eq!(refused.code(), "ERR_INTEGRITY", "{name}");
    }
    let later = changed(|entries| {
        let meta = bytes_of(entries, "META");
        let mut value: Value = serde_json::from_slice(meta).unwrap();
        value["sagaContainerVersion"] = json!("2.0");
        *meta = value.to_string().into_bytes();
    });
    assert_eq!(later.unwrap_err().code(), "ERR_VERSION");
}

#[test]
fn a_signature_of_something_else_is_told() {
    let invalid = |verdict: &ContainerVerdict| matches!(verdict, ContainerVerdict::Invalid(_));
    let of_another = changed(|entries| {
        *bytes_of(entries, "SIGNATURE") = other_evm().sign(b"x").unwrap().into_bytes();
    });
    assert!(invalid(of_another.unwrap().verdict()));
    // A list of checksums that fits the change does not help: the signature is over the list too.
    let listed_again = changed(|entries| {
        *bytes_of(entries, "artifacts/a.txt") = b"other".to_vec();
        let sum = format!("sha256:{}", ContentAddress::of(b"other"));
        let meta = bytes_of(entries, "META");
        let mut value: Value = serde_json::from_slice(meta).unwrap();
        value["checksums"]["artifacts/a.txt"] = json!(sum);
        *meta = value.to_string().into_bytes();
    });
    assert!(invalid(listed_again.unwrap().verdict()));
}

#[test]
fn a_signature_in_json_is_integrity_at_most_unless_it_is_over_the_hash() {
    let hash_of = |entries: &[(String, Vec<u8>)]| {
        let all: Vec<u8> = entries
            .iter()
            .filter(|(name, _)| name != "SIGNATURE")
            .flat_map(|(_, b)| b.clone())
            .collect();
        format!("sha256:{}", ContentAddress::of(&all))
    };
    let with = |hash: fn(String) -> String, signed: fn(String) -> String| {
        changed(|entries| {
            let content = hash_of(entries);
            let sig = evm().sign(signed(content.clone()).as_bytes()).unwrap();
            let value = json!({
                "contentHash": hash(content), "sig": sig, "walletAddress": EVM_ADDRESS, "chain": "eip155:8453",
            });
            *bytes_of(entries, "SIGNATURE") = value.to_string().into_bytes();
        })
        .unwrap()
    };
    assert_eq!(with(|hash| hash, |hash| hash).verdict(), &ContainerVerdict::Verified);
    let unknown = with(|hash| hash, |hash| format!("{hash} at noon"));
    assert_eq!(unknown.verdict(), &ContainerVerdict::IntegrityOnly);
    let other = with(|_| "sha256:00".to_owned(), |hash| hash);
    assert!(matches!(other.verdict(), ContainerVerdict::Invalid(_)));
}

#[test]
fn only_the_agent_s_key_writes_its_container_and_names_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.saga");
    let write = |files: Vec<ContainerFile<'_>>, key| {
        write_container(&path, &document(), files, NOW, &key).unwrap_err()
    };
    assert_eq!(write(Vec::new(), other_evm()).code(), "ERR_KEY");
    for name in ["META", "SIGNATURE", "agent.saga.json", "artifacts/"] {
        let refused = write(vec![ContainerFile::new(name, &b"x"[..])], evm());
        assert_eq!(refused.code(), "ERR_SCHEMA", "{name}");
    }
    let unsafe_name = write(vec![ContainerFile::new("../x", &b"x"[..])], evm());
    assert_eq!(unsafe_name.code(), "ERR_CORRUPT");
    let twice = vec![ContainerFile::new("a", &b"x"[..]), ContainerFile::new("a", &b"x"[..])];
    assert_eq!(write(twice, evm()).code(), "ERR_SCHEMA");
    assert!(!path.exists());
}
