//! The documentation is held against the code: tables of fields and error codes are made from it.
//!
//! `GRAINSTORE_BLESS=1 cargo test -p grainstore --test docs` writes what is expected.
#![expect(clippy::expect_used, reason = "a test stops at a surprise")]

use std::fmt::Write;
use std::path::Path;

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
        "docs/{name} is out of date: GRAINSTORE_BLESS=1 cargo test -p grainstore --test docs"
    );
}

#[test]
fn the_field_table_is_the_registry() {
    let mut text = String::from(
        "# Fields\n\nMade from `format/src/fields.rs`, the one list of OMS fields (OMS 6, 7, 14.2). \
         A name stands in JSON, a key in payloads.\nFields marked *index* are kept by the store and \
         refused in a grain.\n",
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
    let own = grainstore::ErrorKind::OWN.iter().map(|kind| (kind.code(), kind.hint()));
    let store = format::ErrorKind::ALL.iter().map(|kind| (kind.code(), kind.hint()));
    // A code both crates have is the store's.
    let store = store.filter(|(code, _)| !own.clone().any(|(own, _)| own == *code));
    for (code, hint) in store.chain(own.clone()) {
        let _ = writeln!(text, "| `{code}` | {hint} |");
    }
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
    let mut options = cal::Options::at(session.now());
    options.tier = cal::Tier::Evolve;
    for example in blocks(&text, "cal-evolve") {
        let answer = session.ask_with(example.as_bytes(), &options);
        assert!(answer.is_ok(), "{example}\n{:?}", answer.err());
    }
}
