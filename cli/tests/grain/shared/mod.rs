//! Every command beside a process that has the store open: it says the same as where it opens the store itself.

mod tales;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::json;

use self::tales::{Case, TEA, tales, world};
use crate::kit::{Place, Rpc, Run};

const STORE: &str = "memory.grains";
const OPERATOR: &[&str] = &["--operator", "did:web:ops.example"];

/// Commands that ask no store, or that are other than a call of one, with the reason.
const LEFT_OUT: &[(&str, &str)] = &[
    ("init", "makes a store, which no other process can have open"),
    ("demo", "builds a store of its own"),
    ("bench", "measures stores of its own"),
    ("encode", "needs no store"),
    ("decode", "needs no store"),
    ("sign", "needs no store"),
    ("verify-signature", "needs no store"),
    ("restore-view", "needs no store"),
    ("frames", "needs no store"),
    ("rpc", "relays by itself: tests of rpc"),
    ("mcp", "relays by itself: tests of mcp"),
    ("serve", "relays by itself: tests of HTTP"),
    ("cluster", "runs nodes, and asks no store itself"),
    ("tokens", "asks no store"),
    ("help", "needs no store"),
    ("doctor", "tells of the process, so that both tell other things: its own test"),
];

impl Case {
    fn words(&self) -> Vec<&str> {
        self.arguments.iter().map(String::as_str).collect()
    }

    fn command(&self) -> &str {
        let words = self.arguments.iter().map(String::as_str);
        let commands = commands();
        words.into_iter().find(|word| commands.iter().any(|name| name == word)).unwrap()
    }
}

fn commands() -> BTreeSet<String> {
    static ALL: std::sync::OnceLock<BTreeSet<String>> = std::sync::OnceLock::new();
    ALL.get_or_init(|| Place::empty().commands()).clone()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => copy(&entry.path(), &target),
            kind if kind.is_file() => drop(fs::copy(entry.path(), target).unwrap()),
            _ => {}
        }
    }
}

/// A process that has the store of a place open.
fn owner(place: &Place) -> Rpc {
    let mut owner = place.rpc();
    owner.result("open", &json!({ "path": place.path().join(STORE) }));
    owner
}

/// What a run told, without what two runs of one command tell otherwise: times, and what is made of them.
fn told(place: &Place, run: &Run) -> (String, String, i32) {
    let here = place.path().to_str().unwrap();
    let clean = |text: &str| timeless(&text.replace(&format!("{here}/"), "").replace(here, "."));
    (clean(&String::from_utf8_lossy(&run.out)), clean(&run.err), run.code)
}

/// Commands whose figures are those of the process too: their numbers are not compared.
const FIGURES: &[&str] = &["stats", "compact", "backup", ".stats"];

/// Replaces the numbers behind these names, or all of them.
fn numberless(text: &str, all: bool) -> String {
    let (mut out, mut digits) = (String::new(), String::new());
    for c in text.chars().chain(['\n']) {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        let timed = ["duration_ms\":", "latency_ms\":", "duration_ms\": "]
            .iter()
            .any(|name| out.ends_with(name));
        let is_now = digits.len() >= 13 && !digits.starts_with("17684");
        match !digits.is_empty() && (all || timed || is_now) {
            true => out.push('N'),
            false => out.push_str(&digits),
        }
        digits.clear();
        out.push(c);
    }
    out
}

/// Replaces times and digests that are made of times.
fn timeless(text: &str) -> String {
    let mut out = String::new();
    let mut word = String::new();
    for c in text.chars().chain(['\n']) {
        if c.is_ascii_alphanumeric() || "-:.+_/=".contains(c) {
            word.push(c);
            continue;
        }
        out.push_str(&plain(&word));
        word.clear();
        out.push(c);
    }
    out
}

fn plain(word: &str) -> String {
    let is_time = word.starts_with("20") && word.contains('T') && word.contains(':');
    let is_made_up = word.starts_with("vi_")
        || (word.starts_with("saga_") && word.len() > 20)
        || word.starts_with("asm_")
        || (word.len() == 36 && word.starts_with("01a"));
    let is_digest = word.len() >= 64 && word != TEA && word.chars().all(|c| c.is_ascii_hexdigit());
    let is_base64 = word.len() > 100;
    if is_time || is_made_up || is_digest || is_base64 {
        return "#".to_owned();
    }
    word.to_owned()
}

/// Runs a tale where each command opens the store, and where another process has it open.
fn compare(world: &Place, tale: &[Case]) {
    let (alone, shared) = (Place::empty(), Place::empty());
    copy(world.path(), alone.path());
    copy(world.path(), shared.path());
    let owner = owner(&shared);
    let mut wrong = String::new();
    for case in tale {
        let words = case.words();
        let all = FIGURES.iter().any(|one| words.contains(one) || case.stdin.contains(one));
        let expected = alone.feed(&words, &case.stdin);
        let run = shared.feed(&words, &case.stdin);
        let (out, err, code) = told(&shared, &run);
        let expected = told(&alone, &expected);
        for (run, alone) in [(out, expected.0), (err, expected.1)] {
            let (run, alone) = (numberless(&run, all), numberless(&alone, all));
            let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
            let (run, alone) = (lines(&run), lines(&alone));
            let different = run.iter().zip(&alone).find(|(run, alone)| run != alone);
            if run != alone {
                let at = different.map_or((run.last(), alone.last()), |(a, b)| (Some(a), Some(b)));
                wrong += &format!("{words:?}\n  beside: {at:?}\n");
            }
        }
        if code != expected.2 || code == 3 {
            wrong += &format!("{words:?}: exit {code}, alone {}\n", expected.2);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!(owner.end().1, 0);
}

#[test]
fn commands_say_the_same_beside_a_process_that_has_the_store_open() {
    let world = world();
    std::thread::scope(|scope| {
        for tale in tales() {
            let world = &world;
            scope.spawn(move || compare(world, &tale));
        }
    });
}

#[test]
fn every_command_is_among_them_or_left_out_with_a_reason() {
    let run: BTreeSet<String> =
        tales().iter().flatten().map(|case| case.command().to_owned()).collect();
    let left: BTreeSet<String> = LEFT_OUT.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(run.intersection(&left).next(), None);
    assert_eq!(run.union(&left).cloned().collect::<BTreeSet<_>>(), commands());
}

#[test]
fn the_store_of_an_encrypted_place_gets_its_new_key_where_it_is_open() {
    let place = Place::empty();
    place.grain(&["--key-file", "old", "init", "--encrypt"]).done();
    let mut owner = place.rpc();
    let key = data_encoding::BASE64.encode(&fs::read(place.path().join("old")).unwrap());
    owner.result("open", &json!({ "path": place.path().join(STORE), "key": key }));
    let rotated = place.grain(&["--key-file", "old", "keys", "rotate", "new"]).done();
    assert_eq!(rotated.line(), "from now on the store opens with new");
    assert_eq!(owner.end().1, 0);
    assert_eq!(place.grain(&["--key-file", "old", "stats"]).error_code(), "ERR_KEY");
    place.grain(&["--key-file", "new", "stats"]).done();
}

#[test]
fn doctor_asks_the_process_that_has_the_store_open() {
    let place = world();
    let owner = owner(&place);
    let told = place.grain(&["doctor"]).done();
    assert!(told.text().contains("store format") && !told.text().contains("BAD"));
    assert_eq!(owner.end().1, 0);
}

#[test]
fn a_store_that_is_open_for_one_process_alone_is_refused() {
    let place = world();
    let owner = owner(&place);
    let refused = place.grain(&["--exclusive", "--wait-ms", "10", "get", TEA]);
    assert_eq!((refused.error_code().as_str(), refused.code), ("ERR_BUSY", 3));
    let settings = place.grain(&["--wait-ms", "10", "reindex", "--language", "de"]);
    assert_eq!((settings.error_code().as_str(), settings.code), ("ERR_BUSY", 3));
    let other = place.grain(&[OPERATOR, &["get", TEA]].concat());
    assert_eq!(other.error_code(), "ERR_CONFLICT", "{}", other.err);
    assert_eq!(owner.end().1, 0);
}
