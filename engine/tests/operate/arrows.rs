//! The edges between crates are fixed: this reads the manifests and holds them.
#![expect(clippy::expect_used, reason = "a test stops at a surprise")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Crate folder, and the crates of ours it may depend on outside its tests.
const ARROWS: [(&str, &[&str]); 9] = [
    ("format", &[]),
    ("sml", &["grainstore-format"]),
    ("cal", &["grainstore-format", "grainstore-sml"]),
    ("index", &["grainstore-format"]),
    ("engine", &["grainstore-cal", "grainstore-format", "grainstore-index"]),
    ("rpc", &["grainstore"]),
    ("cli", &["grainstore", "grainstore-rpc", "grainstore-sml"]),
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

/// Folders of `engine/src`, the lowest first: code uses its own floor and those below.
const FLOORS: [&str; 9] =
    ["base", "rules", "disk", "state", "search", "write", "handle", "read", "operate"];

/// The Rust files below a folder.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|end| end == "rs") => found.push(path),
                false => {}
            }
        }
    }
    found
}

/// The code of a file that is no test: without comments, up to its first inline test module.
fn code_of(path: &Path) -> String {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    if name == "tests" || name.ends_with("_tests") {
        return String::new();
    }
    let text = std::fs::read_to_string(path).expect("a file");
    let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n")
}

/// What code names behind `crate::`.
fn crate_paths(code: &str) -> impl Iterator<Item = &str> {
    code.split("crate::").skip(1).map(|path| {
        let end = path.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(path.len());
        path.get(..end).unwrap_or_default()
    })
}

#[test]
fn no_floor_of_the_engine_uses_a_floor_above_it() {
    let source = root().join("engine/src");
    let mut wrong = Vec::new();
    for (height, floor) in FLOORS.iter().enumerate() {
        let files = rust_files(&source.join(floor));
        assert!(!files.is_empty(), "no floor is empty: {floor}");
        for file in files {
            let code = code_of(&file);
            for used in crate_paths(&code) {
                let at = FLOORS.iter().position(|floor| *floor == used);
                // What the crate exports lies above all floors.
                if at.is_none_or(|at| at > height) {
                    let file = file.strip_prefix(&source).unwrap_or(&file).display();
                    wrong.push(format!("{file} uses crate::{used}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "arrows between floors go down only: {wrong:#?}");
}

#[test]
fn every_module_of_the_engine_lies_on_a_floor() {
    let allowed = ["lib.rs", "fuzzing.rs", "tests"];
    for entry in std::fs::read_dir(root().join("engine/src")).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        let known = FLOORS.contains(&name.as_str()) || allowed.contains(&name.as_str());
        assert!(known, "{name} lies on no floor");
    }
}

#[test]
fn every_ruling_that_is_cited_is_on_the_page_of_rulings() {
    let page = std::fs::read_to_string(root().join("docs/rulings.md")).expect("the page");
    let first = page.lines().filter_map(|line| line.strip_prefix("| "));
    let first = first.filter_map(|row| row.split('|').next());
    let listed: BTreeSet<u32> = first
        .flat_map(|cell| cell.split(','))
        .filter_map(|number| number.trim().parse().ok())
        .collect();
    let mut cited = BTreeSet::new();
    for folder in ["format", "sml", "cal", "index", "engine", "rpc", "cli"] {
        for file in rust_files(&root().join(folder).join("src")) {
            let text = std::fs::read_to_string(file).expect("a file");
            for after in text.split("ruling ").skip(1).chain(text.split("rulings ").skip(1)) {
                let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
                cited.extend(digits.parse::<u32>());
            }
        }
    }
    assert!(cited.len() > 20, "{cited:?}");
    let missing: Vec<_> = cited.difference(&listed).collect();
    assert!(missing.is_empty(), "docs/rulings.md lacks {missing:?}");
}

#[test]
fn every_file_that_the_map_names_is_there() {
    let page = std::fs::read_to_string(root().join("docs/architecture.md")).expect("the page");
    let named = page.split('`').skip(1).step_by(2);
    let files = named.filter(|name| {
        name.starts_with("engine/") || name.starts_with("cal/") || name.starts_with("sml/")
    });
    let missing: Vec<_> = files.filter(|name| !root().join(name).exists()).collect();
    assert!(missing.is_empty(), "docs/architecture.md names {missing:?}");
}
