//! The edges between crates are fixed: this reads the manifests and holds them.
#![expect(clippy::expect_used, reason = "a test stops at a surprise")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Crate folder, and the crates of ours it may depend on outside its tests.
const ARROWS: [(&str, &[&str]); 13] = [
    ("format", &[]),
    ("sml", &["grainstore-format"]),
    ("cal", &["grainstore-format", "grainstore-sml"]),
    ("index", &["grainstore-format"]),
    ("engine", &["grainstore-cal", "grainstore-format", "grainstore-index"]),
    ("interop", &["grainstore"]),
    ("rpc", &["grainstore", "grainstore-interop"]),
    ("serve", &["grainstore", "grainstore-rpc", "grainstore-sml"]),
    ("cluster", &["grainstore"]),
    (
        "cli",
        &[
            "grainstore",
            "grainstore-cluster",
            "grainstore-interop",
            "grainstore-rpc",
            "grainstore-serve",
            "grainstore-sml",
        ],
    ),
    ("python", &["grainstore", "grainstore-rpc"]),
    ("vectors", &["grainstore-format"]),
    (
        "bench",
        &[
            "grainstore",
            "grainstore-cal",
            "grainstore-cluster",
            "grainstore-format",
            "grainstore-rpc",
            "grainstore-sml",
        ],
    ),
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

/// The sources of a crate, by their path in its folder.
fn sources(folder: &str) -> Vec<(String, String)> {
    let base = root().join(folder).join("src");
    let mut found = Vec::new();
    let mut folders = vec![base.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a source") {
            let path = entry.expect("a source").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(&base).expect("a source").display().to_string();
                found.push((name, std::fs::read_to_string(path).expect("a source")));
            }
        }
    }
    found
}

#[test]
fn rows_of_the_truth_are_written_in_one_place() {
    // The others write the index, whole copies, and rows that a test damages.
    let may_begin = [
        "fuzzing.rs",
        "disk/journaling.rs",
        "disk/truth_transaction.rs",
        "state/fold_worker.rs",
        "state/run_merger.rs",
        "operate/maintain/copy.rs",
    ];
    for (name, source) in sources("engine") {
        let is_test = name.starts_with("tests/") || name.ends_with("tests.rs");
        let begins = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        if !is_test && begins.contains("begin_write(") {
            assert!(may_begin.contains(&name.as_str()), "{name} must not begin a transaction");
        }
    }
}

#[test]
fn the_lower_crates_touch_no_files_network_or_environment() {
    for folder in ["format", "sml", "cal", "index"] {
        for (_, source) in sources(folder) {
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

/// Folders whose modules use each other in one direction.
const ONE_WAY: [&str; 13] = [
    "format/src",
    "index/src",
    "index/src/text",
    "index/src/vectors",
    "sml/src",
    "sml/src/format",
    "cal/src",
    "cal/src/parse",
    "cal/src/check",
    "cal/src/exec",
    "rpc/src",
    "serve/src/mcp",
    "cli/src",
];

/// Arrows back that are the recursion of the grammar: a condition may hold a RECALL, an operand a statement; and
/// the template that the options of an assembly name.
const RECURSION: [(&str, &str); 5] = [
    ("condition", "recall"),
    ("comparison", "recall"),
    ("comparison", "bindings"),
    ("setop", "statement"),
    ("options", "template"),
];

/// The modules of a crate that code names, as paths from its root: behind `crate::`, and behind `super::` in the
/// module `here`.
fn used_modules(code: &str, here: &[&str]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut add = |base: &[&str], after: &str| {
        let end = after.find(|c: char| !(c.is_alphanumeric() || "_:{}, \n*".contains(c)));
        let path = after.get(..end.unwrap_or(after.len())).unwrap_or_default();
        let (head, group) = path.split_once('{').unwrap_or((path, ""));
        let head = head.split("::").take_while(|part| !part.contains([',', ' ', '\n', '}']));
        let mut whole: Vec<String> = base.iter().map(ToString::to_string).collect();
        let first = path.split([',', ' ', '\n', '}']).next().unwrap_or_default();
        match group.is_empty() {
            true => {
                whole.extend(first.split("::").map(str::to_owned));
                found.push(whole);
            }
            false => {
                whole.extend(head.filter(|part| !part.is_empty()).map(str::to_owned));
                let close = group.find('}').unwrap_or(group.len());
                for name in group.get(..close).unwrap_or_default().split(',') {
                    let name = name.trim().split("::").next().unwrap_or_default();
                    found.push(whole.iter().cloned().chain([name.to_owned()]).collect());
                }
            }
        }
    };
    for (at, _) in code.match_indices("crate::") {
        add(&[], code.get(at + "crate::".len()..).unwrap_or_default());
    }
    for (at, _) in code.match_indices("super::") {
        let before = code.get(..at).unwrap_or_default();
        let after = code.get(at..).unwrap_or_default();
        // Of `super::super::` the first counts.
        if before.ends_with("super::") {
            continue;
        }
        let ups = after.split("::").take_while(|part| *part == "super").count();
        let base = here.get(..here.len().saturating_sub(ups)).unwrap_or_default();
        add(base, after.get(ups * "super::".len()..).unwrap_or_default());
    }
    found
}

/// The module that a file below a source folder is, as a path from the root.
fn module_of(file: &Path, source: &Path) -> Vec<String> {
    let path = file.strip_prefix(source).unwrap_or(file).with_extension("");
    let mut parts: Vec<String> =
        path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    parts
}

/// Arrows between the modules of a folder.
fn arrows_in(folder: &str) -> BTreeSet<(String, String)> {
    let directory = root().join(folder);
    let source = root().join(folder.split("src").next().unwrap_or_default()).join("src");
    let inside = module_of(&directory, &source);
    let files: Vec<_> = rust_files(&directory)
        .into_iter()
        .map(|file| (module_of(&file, &source), file))
        .filter(|(module, _)| !module.iter().any(|part| part.contains("test")))
        .collect();
    let names: BTreeSet<&String> =
        files.iter().filter_map(|(module, _)| module.get(inside.len())).collect();
    let mut arrows = BTreeSet::new();
    for (module, file) in &files {
        // The module that holds them all names them all.
        let Some(own) = module.get(inside.len()).filter(|own| *own != "lib") else { continue };
        let here: Vec<&str> = module.iter().map(String::as_str).collect();
        for used in used_modules(&code_of(file), &here) {
            let is_inside = used.get(..inside.len()) == Some(inside.as_slice());
            let other = used.get(inside.len()).filter(|other| is_inside && *other != own);
            if let Some(other) = other.filter(|other| names.contains(other)) {
                arrows.insert((own.clone(), other.clone()));
            }
        }
    }
    arrows
}

#[test]
fn modules_use_each_other_in_one_direction() {
    for folder in ONE_WAY {
        let mut arrows = arrows_in(folder);
        assert!(arrows.len() > 5, "{folder}: {arrows:?}");
        arrows.retain(|(from, to)| !RECURSION.contains(&(from.as_str(), to.as_str())));
        // What uses nothing that is left is taken away, until nothing is left or a circle is.
        loop {
            let users: BTreeSet<_> = arrows.iter().map(|(from, _)| from.clone()).collect();
            let before = arrows.len();
            arrows.retain(|(_, to)| users.contains(to));
            if arrows.len() == before {
                break;
            }
        }
        assert!(arrows.is_empty(), "a circle in {folder}: {arrows:#?}");
    }
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
    for folder in ["format", "sml", "cal", "index", "engine", "rpc", "serve", "cli"] {
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

/// The crates with a folder of their own.
const CRATES: [&str; 8] = ["format", "sml", "cal", "index", "engine", "rpc", "cli", "vectors"];

/// The names in backticks of a text.
fn in_backticks(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn every_file_that_a_page_names_is_there() {
    let mut pages: Vec<_> = ["README.md", "CONTRIBUTING.md"].map(|page| root().join(page)).into();
    let docs = std::fs::read_dir(root().join("docs")).expect("the docs folder");
    pages.extend(docs.map(|entry| entry.expect("an entry").path()));
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    let (mut named, mut missing) = (0, BTreeSet::new());
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("a page");
        for name in in_backticks(&text) {
            let crate_of = name.split_once('/').filter(|(first, _)| CRATES.contains(first));
            // A pattern or a placeholder names no file.
            if crate_of.is_none() || name.contains(['*', ' ', '{', '<']) || name.contains("NAME") {
                continue;
            }
            named += 1;
            if !root().join(name).exists() {
                missing.insert(format!("{}: {name}", page.display()));
            }
        }
    }
    assert!(named > 50, "{named}");
    assert!(missing.is_empty(), "{missing:#?}");
}

/// Lists of modules at the top of a module, `- \`name\`: what it does`.
#[test]
fn every_module_that_a_module_lists_is_there() {
    let (mut listed, mut missing) = (0, BTreeSet::new());
    for folder in CRATES {
        let folder = root().join(folder).join("src");
        for file in if folder.exists() { rust_files(&folder) } else { Vec::new() } {
            let text = std::fs::read_to_string(&file).expect("a file");
            let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let parent = file.parent().expect("a folder");
            let beside = match stem.as_str() {
                "mod" | "lib" | "main" => parent.to_owned(),
                _ => parent.join(&stem),
            };
            if !text.lines().any(|line| line.contains("mod ") && line.ends_with(';')) {
                continue;
            }
            let list = text.lines().filter(|line| line.starts_with("//! - `"));
            let before = list.filter_map(|line| line.split_once("`: ")).map(|(names, _)| names);
            for name in before.flat_map(|names| names.split('`').skip(1).step_by(2)) {
                if !name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_') {
                    continue;
                }
                listed += 1;
                let place = beside.join(name);
                let is_there = place.exists() || place.with_extension("rs").exists();
                if !is_there && !text.contains(&format!("mod {name} {{")) {
                    missing.insert(format!("{}: {name}", file.display()));
                }
            }
        }
    }
    assert!(listed > 100, "{listed}");
    assert!(missing.is_empty(), "{missing:#?}");
}
