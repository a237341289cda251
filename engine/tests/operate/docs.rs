//! The documentation is held against the code: tables of fields, error codes and rules are made from it.
//!
//! `GRAINSTORE_BLESS=1 cargo test -p grainstore --test operate docs::` writes what is expected.
#![expect(clippy::expect_used, reason = "a test stops at a surprise")]

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use grainstore::format::fields::{FIELDS, NESTED};
use grainstore::{cal, format};

fn check(name: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    if std::env::var_os("GRAINSTORE_BLESS").is_some() {
        std::fs::write(&path, expected).expect("the docs folder is writable");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "docs/{name} is out of date: GRAINSTORE_BLESS=1 cargo test -p grainstore --test operate docs::"
    );
}

/// Pages are read in a terminal too: their lines have at most 120 characters, tables and code apart.
#[test]
fn no_line_of_a_page_is_too_long() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut pages: Vec<_> =
        ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|page| root.join(page)).into();
    for directory in ["docs", "docs/adr"] {
        let entries = std::fs::read_dir(root.join(directory)).expect("the docs folder");
        pages.extend(entries.map(|entry| entry.expect("an entry").path()));
    }
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    assert!(pages.len() > 30);
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("a page");
        let mut is_code = false;
        for (number, line) in (1..).zip(text.lines()) {
            is_code ^= line.trim_start().starts_with("```");
            let is_short = line.chars().count() <= 120 || line.trim_start().starts_with('|');
            assert!(is_short || is_code, "{}:{number} is too long", page.display());
        }
    }
}

#[test]
fn the_field_table_is_the_registry() {
    let mut text = String::from(
        "# Fields\n\nMade from `format/src/fields.rs`, the one list of OMS fields (OMS 6, 7, 14.2). \
         A name stands in JSON, a key in payloads.\nFields marked *index* are kept by the store and \
         refused in a grain; `contradicted` is read in one that was made\nelsewhere, to no effect, and never \
         written.\n",
    );
    let mut section = "";
    for field in &FIELDS {
        if field.section.number() != section {
            section = field.section.number();
            let _ = write!(
                text,
                "\n## OMS {section}: {:?}\n\n| name | key | holds |\n|---|---|---|\n",
                field.section
            );
        }
        let index = if field.index_layer { ", *index*" } else { "" };
        let _ = writeln!(
            text,
            "| `{}` | `{}` | {}{index} |",
            field.name,
            field.key,
            field.kind.describe()
        );
    }
    for nested in &NESTED {
        let _ = write!(
            text,
            "\n## Inside `{}`\n\n| name | key | holds |\n|---|---|---|\n",
            nested.parent
        );
        for field in nested.fields {
            let _ = writeln!(
                text,
                "| `{}` | `{}` | {} |",
                field.name,
                field.key,
                field.kind.describe()
            );
        }
    }
    check("fields.md", &text);
}

#[test]
fn the_error_table_is_that_of_the_crates() {
    let mut text = String::from(
        "# Errors\n\nMade from the code. Codes are stable; messages are for people and may change.\n\n\
         | code | what to do |\n|---|---|\n",
    );
    let own = grainstore::ErrorKind::STORE_KINDS.iter().map(|kind| (kind.code(), kind.hint()));
    let store = format::ErrorKind::ALL.iter().map(|kind| (kind.code(), kind.hint()));
    // A code both crates have is the store's.
    let store = store.filter(|(code, _)| !own.clone().any(|(own, _)| own == *code));
    for (code, hint) in store.chain(own.clone()) {
        let _ = writeln!(text, "| `{code}` | {hint} |");
    }
    text.push_str(
        "\nOf a store that processes share ([sharing.md](sharing.md)):\n\n| code | what to do |\n|---|---|\n\
         | `ERR_IN_DOUBT` | the process that had the store open ended before it answered: the hint says how to look \
         whether it was done |\n\nOver HTTP ([http.md](http.md)):\n\n| code | what to do |\n|---|---|\n\
         | `CAL-E081` | run the statement again: a stream waits ten seconds for a client that is gone |\n",
    );
    text.push_str("\n## CAL\n\n| code | what | what to do |\n|---|---|---|\n");
    for kind in cal::ErrorKind::ALL {
        let _ = writeln!(text, "| `{}` | {} | {} |", kind.code(), kind.title(), kind.advice());
    }
    check("errors.md", &text);
}

/// The fenced blocks of a document with this language.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    let blocks = text.split(fence.as_str()).skip(1);
    blocks.filter_map(|block| block.split("```").next()).collect()
}

#[test]
fn every_cal_example_runs() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cal.md");
    let text = std::fs::read_to_string(path).expect("docs/cal.md is there");
    let dir = tempfile::TempDir::new().expect("a temporary directory");
    let options = grainstore::OpenOptions::new().create(true);
    let store = grainstore::Store::open(dir.path(), &options).expect("a new store");
    let session = store.session(grainstore::SessionOptions::default());
    let reads = blocks(&text, "cal");
    assert!(reads.len() >= 10, "{} examples", reads.len());
    for example in reads {
        let answer = session.ask(example);
        assert!(answer.is_ok(), "{example}\n{:?}", answer.err());
    }
    let documents = blocks(&text, "json");
    assert!(documents.len() >= 4, "{} examples", documents.len());
    for example in documents {
        let answer = session.ask(example);
        assert!(answer.is_ok(), "{example}\n{:?}", answer.err());
    }
    let mut options = cal::ExecuteOptions::at(session.now());
    options.tier = cal::Tier::Evolve;
    for example in blocks(&text, "cal-evolve") {
        let answer = session.ask_with(example.as_bytes(), &options);
        assert!(answer.is_ok(), "{example}\n{:?}", answer.err());
    }
}

/// Where the prose about presets ends, and what is made from their rules begins.
const RULES: &str = "## The presets\n";

#[test]
fn the_tables_of_presets_are_their_rules() {
    let mut text = format!("{RULES}\nMade from the rules themselves.\n");
    for preset in grainstore::Preset::all() {
        let rules = preset.rules().expect("a preset has rules");
        let _ = write!(text, "\n### {}\n\n{}.\n\n", preset.name(), rules.title);
        text.push_str("| setting | value | article |\n|---|---|---|\n");
        for (name, value, article, _) in rules.settings.table() {
            let _ = writeln!(text, "| `{name}` | {value} | {article} |");
        }
        text.push_str(
            "\n| rule | on | article | why it refuses | what to do |\n|---|---|---|---|---|\n",
        );
        let open = preset == grainstore::Preset::default();
        for rule in rules.rules.iter().filter(|rule| open || !rule.id.starts_with("oms.")) {
            let on: Vec<_> = rule.on.iter().map(|deed| deed.name()).collect();
            let (id, article, because, fix) = (rule.id, rule.article, rule.because, rule.fix);
            let on = on.join(", ");
            let _ = writeln!(text, "| `{id}` | {on} | {article} | {because} | {fix} |");
        }
        if !open {
            text.push_str("\nAnd the rules of `open`.\n");
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/presets.md");
    let found = std::fs::read_to_string(path).expect("docs/presets.md is there");
    let prose = found.split(RULES).next().unwrap_or_default();
    check("presets.md", &format!("{prose}{text}"));
}

/// The file of rules that is shown is one.
#[test]
fn the_example_of_a_file_of_rules_is_taken() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/presets.md");
    let text = std::fs::read_to_string(path).expect("docs/presets.md is there");
    let dir = tempfile::TempDir::new().expect("a temporary directory");
    let preset = grainstore::Preset::from_name("gdpr").expect("there is such a preset");
    let options = grainstore::OpenOptions::new().create(true).preset(preset);
    let store = grainstore::Store::open(dir.path(), &options).expect("a new store");
    let session = store.session(grainstore::SessionOptions::default());
    let files = blocks(&text, "toml");
    assert_eq!(files.len(), 1);
    for file in files {
        assert_eq!(
            session.change_rules(file, false, "a test").map_err(|e| e.code()),
            Err("ERR_POLICY")
        );
        let changed = session.change_rules(file, true, "a test").expect("it is a file of rules");
        assert_eq!(changed.loosened.len(), 1, "{changed:?}");
        assert!(changed.added.contains(&"house.no-secrets".to_owned()));
    }
}

/// The crates whose items others may use.
const LIBRARIES: [&str; 6] = [
    "grainstore",
    "grainstore_cal",
    "grainstore_format",
    "grainstore_index",
    "grainstore_rpc",
    "grainstore_sml",
];

/// The directory that `cargo doc` writes to, beside the program of this test.
fn rustdoc() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    Some(program.ancestors().nth(3)?.join("doc"))
}

/// The time of the newest source file of a crate of the workspace.
fn last_change(directory: &Path) -> Option<SystemTime> {
    let entries = std::fs::read_dir(directory).ok()?.flatten();
    let times = entries.filter_map(|entry| match entry.file_type().ok()?.is_dir() {
        true => last_change(&entry.path()),
        false => entry.metadata().ok()?.modified().ok(),
    });
    times.max()
}

/// The public items that rustdoc lists, each the path of its page without the ending; `None` without documentation of
/// this code.
fn pages_of(library: &str) -> Option<BTreeSet<String>> {
    let page = rustdoc()?.join(library).join("all.html");
    let folder = match library {
        "grainstore" => "engine",
        other => other.strip_prefix("grainstore_")?,
    };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?.join(folder).join("src");
    if std::fs::metadata(&page).ok()?.modified().ok()? < last_change(&source)? {
        return None;
    }
    let text = std::fs::read_to_string(page).ok()?;
    let links = text.split("<li><a href=\"").skip(1);
    Some(links.filter_map(|rest| Some(rest.split_once(".html\"")?.0.to_owned())).collect())
}

/// The public items that rustdoc lists, as `kind path`.
fn items_of(library: &str) -> Option<BTreeSet<String>> {
    let items = pages_of(library)?;
    let named = items.iter().filter_map(|link| {
        let (modules, item) = link.rsplit_once('/').unwrap_or(("", link));
        let (kind, name) = item.split_once('.')?;
        let path = [modules.replace('/', "::").as_str(), name].join("::");
        Some(format!("{kind} {}", path.trim_start_matches("::")))
    });
    Some(named.collect())
}

/// Whether a page has an example.
fn has_example(page: &Path) -> bool {
    std::fs::read_to_string(page).is_ok_and(|text| text.contains("class=\"example-wrap\""))
}

/// The page of an item has an example, or its text a link to a page that has one.
#[test]
fn every_public_item_has_an_example_or_a_link_to_one() {
    let mut without = Vec::new();
    for library in LIBRARIES {
        let (Some(items), Some(root)) = (pages_of(library), rustdoc()) else {
            println!(
                "skipped: no documentation of this code; `cargo doc --workspace --no-deps` makes it"
            );
            return;
        };
        for item in items {
            let page = root.join(library).join(format!("{item}.html"));
            let text = std::fs::read_to_string(&page).expect("a page of rustdoc");
            let folder = page.parent().expect("a folder of pages");
            let described = text.split("class=\"docblock\"").nth(1).unwrap_or_default();
            let described = described.split("</details>").next().unwrap_or_default();
            let mut links = described.split("href=\"").skip(1).filter_map(|link| {
                let link = link.split(['"', '#']).next()?;
                link.ends_with(".html").then(|| folder.join(link))
            });
            if !has_example(&page) && !links.any(|link| has_example(&link)) {
                without.push(format!("{library}/{item}"));
            }
        }
    }
    assert_eq!(without, Vec::<String>::new());
}

/// The list changes with the code, so that nothing becomes public or goes away unnoticed.
#[test]
fn the_public_items_are_those_of_the_list() {
    let mut text = String::new();
    for library in LIBRARIES {
        let Some(items) = items_of(library) else {
            println!(
                "skipped: no documentation of this code; `cargo doc --workspace --no-deps` makes it"
            );
            return;
        };
        let _ = writeln!(text, "{library}");
        items.iter().for_each(|item| _ = writeln!(text, "  {item}"));
    }
    check("public-items.txt", &text);
}
