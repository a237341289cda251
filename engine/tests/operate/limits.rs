//! Every number of docs/limits.md is held against the constant that its row names.
#![expect(clippy::expect_used, reason = "a test stops at a surprise")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use grainstore::cal::{Expansion, NamedTemplate, WriteLimits};
use grainstore::embed::{MAX_DIMENSION, MAX_VECTORS};
use grainstore::format::{DeviceProfile, Did, Envelope, EpochMs};
use grainstore::{PageOptions, cal, format, limits};

/// The constants that a program may use, as the compiler knows them: file, name, number.
#[rustfmt::skip]
fn public() -> Vec<(&'static str, &'static str, u128)> {
    let size = |bytes: usize| bytes as u128;
    let largest = DeviceProfile::EXTENDED;
    vec![
        ("format/src/profile.rs", "max_blob_bytes", size(largest.max_blob_bytes)),
        ("format/src/profile.rs", "max_depth", size(largest.max_depth)),
        ("format/src/time.rs", "MAX_CREATED", EpochMs::MAX_CREATED.get().unsigned_abs().into()),
        ("format/src/cose/envelope.rs", "MAX_WRAPPER_BYTES", size(Envelope::MAX_WRAPPER_BYTES)),
        ("format/src/cose/did.rs", "MAX_BYTES", size(Did::MAX_BYTES)),
        ("format/src/container/layout.rs", "MAX_REGION_BYTES", format::container::MAX_REGION_BYTES.into()),
        ("index/src/vectors/space.rs", "MAX_DIMENSION", size(MAX_DIMENSION)),
        ("engine/src/search/embed/embedding.rs", "MAX_VECTORS", size(MAX_VECTORS)),
        ("cal/src/expansion.rs", "MAX_HOPS", size(Expansion::MAX_HOPS)),
        ("cal/src/expansion.rs", "MAX_SEEDS", size(Expansion::MAX_SEEDS)),
        ("cal/src/expansion.rs", "MAX_FAN_OUT", size(Expansion::MAX_FAN_OUT)),
        ("cal/src/expansion.rs", "MAX_REACHED", size(Expansion::MAX_REACHED)),
        ("cal/src/memory/mod.rs", "MAX_PER_OWNER", size(NamedTemplate::MAX_PER_OWNER)),
        ("cal/src/write_quotas.rs", "adds:", size(WriteLimits::default().adds)),
        ("cal/src/write_quotas.rs", "supersedes:", size(WriteLimits::default().supersedes)),
        ("cal/src/write_quotas.rs", "reverts:", size(WriteLimits::default().reverts)),
        ("sml/src/template/mod.rs", "MAX_TEMPLATE_BYTES", size(grainstore_sml::MAX_TEMPLATE_BYTES)),
        ("sml/src/template/parse.rs", "MAX_DEPTH", size(grainstore_sml::MAX_TEMPLATE_DEPTH)),
        ("sml/src/template/write.rs", "MAX_EACH_GRAINS", size(grainstore_sml::MAX_TEMPLATE_EACH)),
        ("sml/src/template/layout.rs", "MAX_CHARS_PER_TOKEN", size(grainstore_sml::TEMPLATE_CHARS_A_TOKEN)),
        ("engine/src/base/memory.rs", "MIN_MEMORY_BYTES", size(limits::MIN_MEMORY_BYTES)),
        ("engine/src/handle/session.rs", "MAX_BATCH", size(limits::MAX_BATCH)),
        ("engine/src/handle/session.rs", "MAX_BATCH_BYTES", size(limits::MAX_BATCH_BYTES)),
        ("engine/src/handle/session.rs", "MAX_AUDIT_ENTRIES", size(limits::MAX_AUDIT_ENTRIES)),
        ("engine/src/handle/principal.rs", "MAX_REASON_BYTES", size(limits::MAX_REASON_BYTES)),
        ("engine/src/state/audit/segment.rs", "MAX_SEGMENT_ENTRIES", limits::MAX_SEGMENT_ENTRIES.into()),
        ("engine/src/state/audit/segment.rs", "MAX_SEGMENT_DAYS", limits::MAX_SEGMENT_DAYS.into()),
        ("engine/src/operate/report.rs", "MAX_REASONS_BYTES", size(limits::MAX_REASONS_BYTES)),
        ("engine/src/operate/erase/report.rs", "MAX_REPORTED_GRAINS", size(limits::MAX_REPORTED_GRAINS)),
        ("engine/src/operate/maintain/verify/problems.rs", "MAX_PROBLEMS", size(limits::MAX_PROBLEMS)),
        ("engine/src/operate/portable/import/claims.rs", "MAX_IMPORT_CLAIMS", size(limits::MAX_IMPORT_CLAIMS)),
        ("engine/src/write/plan/conflict.rs", "MAX_CONFLICTS", size(limits::MAX_CONFLICTS)),
        ("engine/src/write/access_counters.rs", "ACCESS_AGE_MS", limits::ACCESS_AGE_MS.unsigned_abs().into()),
        ("engine/src/read/history.rs", "MAX_VERSIONS", size(limits::MAX_VERSIONS)),
        ("engine/src/read/history.rs", "MAX_HISTORY_BYTES", size(limits::MAX_HISTORY_BYTES)),
        ("engine/src/read/history.rs", "HISTORY_TIMEOUT", limits::HISTORY_TIMEOUT.as_secs().into()),
        ("engine/src/read/query/mod.rs", "MAX_PAGE", size(limits::MAX_PAGE)),
        ("engine/src/read/query/mod.rs", "MAX_PAGE_BYTES", size(limits::MAX_PAGE_BYTES)),
        ("engine/src/read/query/mod.rs", "timeout:", PageOptions::first(1).timeout.as_secs().into()),
        ("engine/src/read/graph/edges.rs", "MAX_EDGES", size(limits::MAX_EDGES)),
        ("engine/src/read/graph/lineage.rs", "MAX_RELATIVES", size(limits::MAX_RELATIVES)),
        ("engine/src/read/graph/thread.rs", "MAX_MESSAGES", size(limits::MAX_MESSAGES)),
        ("engine/src/read/graph/paths.rs", "MAX_HOPS", size(limits::MAX_HOPS)),
        ("engine/src/read/graph/paths.rs", "MAX_PATHS", size(limits::MAX_PATHS)),
        ("engine/src/read/graph/paths.rs", "MAX_NODES", size(limits::MAX_NODES)),
        ("engine/src/read/graph/identity.rs", "MAX_CAPABILITIES", size(limits::MAX_CAPABILITIES)),
        ("engine/src/read/graph/identity.rs", "MAX_CLAIMS", size(limits::MAX_CLAIMS)),
        ("engine/src/read/graph/handoff.rs", "MAX_HANDOFFS", size(limits::MAX_HANDOFFS)),
        ("engine/src/read/graph/reader.rs", "MAX_GRAPH_STEPS", limits::MAX_GRAPH_STEPS.into()),
        ("engine/src/state/application.rs", "MAX_SIDE_BLOB_BYTES", size(limits::MAX_SIDE_BLOB_BYTES)),
        ("engine/src/state/application.rs", "MAX_APPLICATION_BYTES", size(limits::MAX_APPLICATION_BYTES)),
        ("engine/src/state/audit/transfer.rs", "MAX_TRANSFER_FORMAT_BYTES", size(limits::MAX_TRANSFER_FORMAT_BYTES)),
        ("engine/src/state/application.rs", "MAX_KEY_BYTES", size(limits::MAX_KEY_BYTES)),
        ("engine/src/state/application.rs", "MAX_VALUE_BYTES", size(limits::MAX_VALUE_BYTES)),
        ("engine/src/state/application.rs", "MAX_ROW_CHANGES", size(limits::MAX_ROW_CHANGES)),
        ("engine/src/state/application.rs", "MAX_ROW_CHANGE_BYTES", size(limits::MAX_ROW_CHANGE_BYTES)),
        ("engine/src/state/application.rs", "MAX_ROW_PAGE", size(limits::MAX_ROW_PAGE)),
        ("engine/src/state/application.rs", "MAX_ROW_PAGE_BYTES", size(limits::MAX_ROW_PAGE_BYTES)),
        ("engine/src/read/graph/reader.rs", "MAX_ANSWER_BYTES", size(limits::MAX_ANSWER_BYTES)),
    ]
}

/// A row of the page.
struct Row {
    bound: String,
    most: String,
    beyond: String,
    file: String,
    name: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn rows() -> Vec<Row> {
    let page = std::fs::read_to_string(root().join("docs/limits.md")).expect("docs/limits.md");
    let rows = page.lines().filter(|line| line.starts_with('|'));
    let rows = rows.filter(|line| !line.starts_with("|---") && !line.starts_with("| bound |"));
    rows.map(|line| {
        let line = line.replace("\\|", "\u{1}");
        let mut cells = line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned());
        let mut cell = || cells.next().expect("four cells");
        let (bound, most, beyond, place) = (cell(), cell(), cell(), cell());
        assert!(cells.next().is_none(), "{line}");
        let place: Vec<_> = place.split('`').map(|part| part.replace('\u{1}', "|")).collect();
        let [_, file, _, name, _] = <[_; 5]>::try_from(place).expect("a file and a constant");
        Row { bound, most, beyond, file, name }
    })
    .collect()
}

/// The number of a cell: `1,024`, `64 KiB`, `2^32 - 1`.
fn told(cell: &str) -> Option<u128> {
    let mut words = cell.split_whitespace();
    let number = words.next()?;
    let rest: Vec<_> = words.collect();
    if let Some(power) = number.strip_prefix("2^") {
        let less = match rest.as_slice() {
            [] => 0,
            ["-", less] => less.parse().ok()?,
            _ => return None,
        };
        return (1_u128.checked_shl(power.parse().ok()?)?).checked_sub(less);
    }
    let unit = match rest.as_slice() {
        [] => 1,
        ["KiB"] => 1 << 10,
        ["MiB"] => 1 << 20,
        _ => return None,
    };
    Some(number.replace(',', "").parse::<u128>().ok()? * unit)
}

/// The value of a constant as its file has it: what stands behind its `=`, or behind a name that ends with a sign.
fn written(file: &str, name: &str) -> Option<u128> {
    within(&std::fs::read_to_string(root().join(file)).ok()?, name)
}

fn within(source: &str, name: &str) -> Option<u128> {
    let is_constant = name.ends_with(|last: char| last.is_alphanumeric());
    let sought = if is_constant { format!("const {name}: ") } else { name.to_owned() };
    let mut places = source.split(sought.as_str()).skip(1);
    places.find_map(|rest| {
        let rest = if is_constant { rest.split_once(" = ")?.1.split(';').next()? } else { rest };
        let end = if is_constant { rest.len() } else { rest.find([',', '}', '\n'])? };
        value(rest.get(..end)?, source)
    })
}

/// The value of an expression of numbers and constants of the same file, `*`, `<<`, `+` and `-`, with brackets around
/// parts of it. Of a pair or a range the second number counts; the name of a type before a bracket does not.
fn value(text: &str, source: &str) -> Option<u128> {
    let text = text.trim();
    if let Some((_, last)) = text.split_once("..=") {
        return value(last, source);
    }
    for sign in [",", "<<", "+", "-", "*"] {
        let Some((left, right)) = split_outside(text, sign) else { continue };
        let right = value(right, source)?;
        return match sign {
            "," => Some(right),
            "<<" => value(left, source)?.checked_shl(u32::try_from(right).ok()?),
            "+" => value(left, source)?.checked_add(right),
            "-" => value(left, source)?.checked_sub(right),
            _ => value(left, source)?.checked_mul(right),
        };
    }
    match text.split_once('(') {
        Some((_, within)) => value(within.strip_suffix(')')?, source),
        None if text.starts_with("MAX_") => within(source, text),
        None => text.replace('_', "").parse().ok(),
    }
}

/// The parts on both sides of the last such sign outside of brackets.
fn split_outside<'t>(text: &'t str, sign: &str) -> Option<(&'t str, &'t str)> {
    let places: Vec<_> = text.match_indices(sign).map(|(at, _)| at).collect();
    places.into_iter().rev().find_map(|at| {
        let (left, right) = (text.get(..at)?, text.get(at + sign.len()..)?);
        (left.matches('(').count() == left.matches(')').count()).then_some((left, right))
    })
}

#[test]
fn every_row_tells_the_number_of_the_constant_it_names() {
    let public = public();
    let rows = rows();
    assert!(rows.len() > 100, "{} rows", rows.len());
    for Row { bound, most, file, name, .. } in rows {
        let told = told(&most).unwrap_or_else(|| panic!("{bound}: {most} is no number"));
        let known = public.iter().find(|(place, known, _)| (*place, *known) == (&*file, &*name));
        let known = known.map(|(_, _, number)| *number).or_else(|| written(&file, &name));
        assert_eq!(known, Some(told), "{bound}: {file} {name}");
    }
}

#[test]
fn every_code_of_a_row_is_one() {
    let own = grainstore::ErrorKind::STORE_KINDS.iter().map(|kind| kind.code());
    let codes: BTreeSet<_> = own
        .chain(format::ErrorKind::ALL.iter().map(|kind| kind.code()))
        .chain(cal::ErrorKind::ALL.iter().map(|kind| kind.code()))
        .chain(["ERR_IN_DOUBT", "CAL-E081"])
        .collect();
    for Row { bound, beyond, .. } in rows() {
        for code in
            beyond.split('`').filter(|part| part.starts_with("ERR_") || part.starts_with("CAL-"))
        {
            assert!(codes.contains(code), "{bound}: {code}");
        }
    }
}

/// The names that a text declares: words of capitals with an underscore, or behind `const`.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|sign: char| !(sign.is_ascii_alphanumeric() || sign == '_'));
    words.filter(|word| word.len() > 3 && word.chars().all(|sign| !sign.is_lowercase())).collect()
}

#[test]
fn the_page_has_every_public_limit_and_every_limit_of_the_language() {
    let listed: BTreeSet<_> = rows().into_iter().map(|row| (row.file, row.name)).collect();
    for (file, name, _) in public() {
        assert!(listed.contains(&(file.to_owned(), name.to_owned())), "{file} {name}");
    }
    let text = |file: &str| std::fs::read_to_string(root().join(file)).expect("a source file");
    let library = text("engine/src/lib.rs");
    let module = library.split("pub mod limits {").nth(1).and_then(|rest| rest.split("\n}").next());
    for name in names(module.expect("the module of limits")) {
        assert!(listed.iter().any(|(_, listed)| listed == name), "grainstore::limits::{name}");
    }
    let file = "cal/src/limits.rs";
    let language = text(file);
    for declared in language.split("pub(crate) const ").skip(1) {
        let name = declared.split(':').next().unwrap_or_default();
        // What is taken where nothing is written, and what is estimated, bounds nothing.
        let bounds = !name.starts_with("DEFAULT_") && !name.starts_with("ESTIMATED_");
        assert!(!bounds || listed.contains(&(file.to_owned(), name.to_owned())), "{file} {name}");
    }
}

#[test]
fn numbers_are_read_as_they_are_written() {
    for (cell, number) in [
        ("1,024", Some(1024)),
        ("64 KiB", Some(65_536)),
        ("2^32 - 1", Some(u128::from(u32::MAX))),
        ("many", None),
        ("5 apples", None),
    ] {
        assert_eq!(told(cell), number, "{cell}");
    }
    for (expression, number) in [
        ("8_192", Some(8192)),
        ("5 * 60 * 1000", Some(300_000)),
        ("(8 << 20) - 2048", Some(8_386_560)),
        ("Self((1 << 32) - 1)", Some(u128::from(u32::MAX))),
        ("Duration::from_secs(5)", Some(5)),
        ("(4_000, 16_000)", Some(16_000)),
        ("20..=1_000", Some(1000)),
        ("8 * MAX_A", Some(24)),
        ("usize", None),
    ] {
        let source = "const MAX_A: usize = 3;";
        assert_eq!(value(expression, source), number, "{expression}");
    }
}
