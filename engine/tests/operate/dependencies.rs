//! The dependencies: their licences, versions that stand twice, those that no crate uses, and the page that says why
//! each was chosen. Works on what Cargo has fetched, without a network.
#![expect(clippy::expect_used, reason = "a test stops at a surprise")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Licences that let whoever embeds the store do so under terms of their own. Of a choice one is enough.
const LICENCES: [&str; 12] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
    // Of a file, not of what it is linked with: changes to it are to be published.
    "MPL-2.0+",
];

/// Crates that are there in two versions, since two of those below differ in what they ask for. Those of ciphers and
/// curves come with crypto_box, which has no release on the newer ones; those of hashes with the WebSockets of axum,
/// those of certificates with the TLS of PostgreSQL.
const TWICE: [&str; 20] = [
    "aead",
    "base64",
    "block-buffer",
    "cipher",
    "const-oid",
    "cpufeatures",
    "crypto-common",
    "curve25519-dalek",
    "der",
    "digest",
    "getrandom",
    "hashbrown",
    "inout",
    "itertools",
    "oneshot",
    "rand",
    "rand_core",
    "spki",
    "syn",
    "universal-hash",
];

/// What Cargo knows of the crates that are built on this machine.
fn metadata() -> Value {
    let version = Command::new(env!("CARGO")).arg("-vV").output().expect("cargo runs");
    let version = String::from_utf8(version.stdout).expect("text");
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host");
    let told = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--locked"])
        .args(["--filter-platform", host])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    serde_json::from_slice(&told.stdout).expect("JSON")
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns `true` if one of the licences to choose from is among [`LICENCES`], with each that comes with it.
fn is_free(licence: &str) -> bool {
    let known = |one: &str| {
        let one = one.trim().trim_matches(['(', ')']);
        LICENCES.contains(&one.split(" WITH ").next().unwrap_or_default())
    };
    licence.split(" AND ").all(|part| part.split(" OR ").flat_map(|one| one.split('/')).any(known))
}

#[test]
fn licences_are_free_and_no_version_stands_twice_unnoticed() {
    let metadata = metadata();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in list(&metadata, "packages") {
        let (name, licence) = (text(package, "name"), text(package, "license"));
        versions.entry(name).or_default().insert(text(package, "version"));
        assert!(is_free(licence), "{name} is under {licence:?}");
    }
    assert!(versions.len() > 100);
    let twice = versions.iter().filter(|(_, versions)| versions.len() > 1).map(|(name, _)| *name);
    let unnoticed: Vec<_> = twice.filter(|name| !TWICE.contains(name)).collect();
    assert!(unnoticed.is_empty(), "twice: {unnoticed:?}");
    assert!(!is_free("GPL-3.0") && !is_free("MIT AND GPL-3.0") && is_free("GPL-3.0 OR MIT"));
}

#[test]
fn every_dependency_is_used_and_has_its_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = std::fs::read_to_string(root.join("docs/dependencies.md")).expect("the page");
    let reasons: BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" |").next())
        .flat_map(|names| names.split(", "))
        .collect();
    let metadata = metadata();
    let members = list(&metadata, "workspace_members");
    let packages = list(&metadata, "packages").iter();
    let own = packages.filter(|package| package.get("id").is_some_and(|id| members.contains(id)));
    let (mut unused, mut unexplained) = (BTreeSet::new(), BTreeSet::new());
    for package in own {
        let folder = Path::new(text(package, "manifest_path")).parent().expect("a folder");
        let mut source = String::new();
        read_source(folder, &mut source);
        for dependency in list(package, "dependencies") {
            let name = text(dependency, "name");
            if dependency.get("path").is_some() {
                continue;
            }
            if !source.contains(&name.replace('-', "_")) {
                unused.insert(format!("{name} in {}", text(package, "name")));
            }
            if !reasons.contains(name) {
                unexplained.insert(name);
            }
        }
    }
    assert!(unused.is_empty(), "not used: {unused:?}");
    assert!(unexplained.is_empty(), "without a line in docs/dependencies.md: {unexplained:?}");
}

/// Adds the Rust files below a folder.
fn read_source(folder: &Path, source: &mut String) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.ends_with("target") {
            read_source(&path, source);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            source.push_str(&std::fs::read_to_string(&path).expect("a source file"));
        }
    }
}
