//! The edges between crates are fixed: this reads the manifests and holds them.
#![expect(clippy::expect_used, reason = "a test stops at a surprise")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Crate folder, and the crates of ours it may depend on outside its tests.
const ARROWS: [(&str, &[&str]); 8] = [
    ("format", &[]),
    ("sml", &["grainstore-format"]),
    ("cal", &["grainstore-format", "grainstore-sml"]),
    ("index", &["grainstore-format"]),
    ("engine", &["grainstore-cal", "grainstore-format", "grainstore-index"]),
    ("cli", &["grainstore", "grainstore-cal", "grainstore-format", "grainstore-sml"]),
    ("vectors", &["grainstore-format"]),
    ("bench", &["grainstore", "grainstore-cal", "grainstore-format", "grainstore-sml"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

/// Our crates in the `[dependencies]` of a manifest.
fn ours(manifest: &str) -> BTreeSet<&str> {
    let dependencies = manifest.lines().skip_while(|line| line.trim() != "[dependencies]").skip(1);
    dependencies
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split(['=', '.', ' ']).next())
        .filter(|name| name.starts_with("grainstore"))
        .collect()
}

#[test]
fn each_crate_depends_on_no_crate_it_must_not_know() {
    for (folder, allowed) in ARROWS {
        let manifest = std::fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
        let allowed: BTreeSet<_> = allowed.iter().copied().collect();
        let extra: Vec<_> = ours(&manifest).difference(&allowed).copied().collect();
        assert!(extra.is_empty(), "{folder} must not depend on {extra:?}");
    }
}

#[test]
fn every_member_of_the_workspace_has_its_arrows_listed() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let members = manifest.lines().find(|line| line.starts_with("members")).unwrap();
    let listed: BTreeSet<_> = ARROWS.iter().map(|(folder, _)| *folder).collect();
    let members: BTreeSet<_> = members.split('"').skip(1).step_by(2).collect();
    assert_eq!(members, listed);
}

#[test]
fn the_lower_crates_touch_no_files_network_or_environment() {
    let sources = |folder: &str| {
        let mut found = Vec::new();
        let mut folders = vec![root().join(folder).join("src")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    found.push(std::fs::read_to_string(path).unwrap());
                }
            }
        }
        found
    };
    for folder in ["format", "sml", "cal", "index"] {
        for source in sources(folder) {
            for forbidden in ["std::fs", "std::net", "std::env::"] {
                assert!(!source.contains(forbidden), "{folder} must not use {forbidden}");
            }
        }
    }
}
