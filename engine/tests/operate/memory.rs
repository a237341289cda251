//! The memory of a store: its parts keep to the budget, and so does the process that loads a million grains.
#![expect(clippy::unwrap_used, reason = "a test stops at a surprise")]

use std::process::Command;

use grainstore::cal::Query;
use grainstore::format::EpochMs;
use grainstore::prelude::*;
use grainstore::{OpenOptions, SessionOptions, Store};
use tempfile::TempDir;

/// Names the directory in which a child process loads its store.
const CHILD: &str = "GRAINSTORE_MEMORY_CHILD";
/// The budget that a store has unless its host names another.
const DEFAULT_BYTES: u64 = 128 << 20;
/// What the process takes beside the budget: program, threads, the batches of the loop, and what the allocator keeps.
/// The last differs by 20 MiB from run to run, and not every run keeps to it (docs/benchmarks.md).
const BESIDE_BYTES: u64 = 72 << 20;

fn grain(at: u64) -> Grain {
    let word = |step: u64| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> step) % 20_000;
    let words: Vec<String> = (0..8).map(|step| format!("word{}", word(step * 5))).collect();
    let time = EpochMs::new(1_700_000_000_000 + i64::try_from(at).unwrap());
    let object = format!("{} number{at}", words.join(" "));
    BeliefBuilder::new(time, format!("subject {}", at / 12), "mg:knows", object, 0.9)
        .namespace("bench")
        .build()
        .unwrap()
}

/// Puts so many grains, searching for words and checking the parts now and then.
fn load(store: &Store, grains: u64, most: u64) {
    let session = store.session(SessionOptions::default());
    let search = |word: String| {
        let page = PageOptions::first(5);
        session.query(&Query::default().searching(&word), &page).unwrap().results.len()
    };
    for first in (0..grains).step_by(1_000) {
        session.put_batch((first..first + 1_000).map(grain)).unwrap();
        if first % 10_000 == 9_000 {
            assert_eq!(search(format!("number{}", first / 2)), 1);
            assert!(search(format!("word{}", first % 20_000)) > 0);
            let memory = store.stats().unwrap().memory;
            let parts = memory.iter().filter(|(part, _)| **part != "vectors");
            let sum: u64 = parts.map(|(_, bytes)| *bytes).sum();
            assert!(sum <= most, "{first}: {sum} of {most}: {memory:?}");
        }
    }
    store.flush().unwrap();
    assert_eq!(search(format!("number{}", grains - 1)), 1);
}

#[test]
fn the_parts_of_a_store_keep_to_its_memory() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
    load(&store, 50_000, DEFAULT_BYTES);
    let stats = store.stats().unwrap();
    assert_eq!(stats.memory_bytes as u64, DEFAULT_BYTES);
    // A dictionary and a byte for each length are in memory, and pages; the rest is in the files.
    let held = stats.memory["text_terms"] + stats.memory["text_cache"];
    assert!(stats.memory["text_terms"] < stats.text_bytes / 4, "{stats:?}");
    assert!(held < stats.text_bytes + (1 << 20), "{stats:?}");
    assert!(stats.memory["truth_cache"] > 0 && stats.memory["run_directory"] > 0, "{stats:?}");
}

#[test]
fn a_store_with_little_memory_works_and_with_too_little_is_refused() {
    const LITTLE: usize = 16 << 20;
    let dir = TempDir::new().unwrap();
    let options = OpenOptions::new().create(true).memory_bytes(LITTLE);
    let store = Store::open(dir.path(), &options).unwrap();
    load(&store, 20_000, LITTLE as u64 + (8 << 20));
    store.close().unwrap();
    let store = Store::open(dir.path(), &options).unwrap();
    let session = store.session(SessionOptions::default());
    for at in (0..20_000).step_by(611) {
        let found = session
            .query(&Query::default().searching(format!("number{at}")), &PageOptions::first(5));
        assert_eq!(found.unwrap().results.len(), 1, "{at}");
    }
    let caches = ["truth_cache", "index_cache", "text_cache"];
    let stats = store.stats().unwrap();
    let cached: u64 = caches.iter().map(|part| stats.memory[part]).sum();
    assert!(cached <= LITTLE as u64 * 11 / 16, "{stats:?}");
    store.close().unwrap();
    let error = Store::open(dir.path(), &options.memory_bytes(LITTLE - 1)).unwrap_err();
    assert_eq!(error.code(), "ERR_SCHEMA");
}

/// What a test of its own process runs: loads a million grains and tells the most memory it had.
#[test]
#[ignore = "run by the test of a million grains"]
fn child() {
    let Ok(dir) = std::env::var(CHILD) else { return };
    let store = Store::open(dir, &OpenOptions::new().create(true)).unwrap();
    load(&store, 1_000_000, DEFAULT_BYTES);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    println!("peak {}", peak.trim().trim_end_matches(" kB").trim());
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_that_loads_a_million_grains_keeps_to_the_memory() {
    if std::env::var("GRAINSTORE_MEMORY").as_deref() != Ok("full") {
        return;
    }
    let dir = TempDir::new().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["memory::child", "--exact", "--ignored", "--nocapture"])
        .env(CHILD, dir.path().join("store"))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    let peak = told.lines().find_map(|line| line.strip_prefix("peak ")).unwrap();
    let peak = peak.parse::<u64>().unwrap() << 10;
    println!("{} MiB", peak >> 20);
    assert!(peak <= DEFAULT_BYTES + BESIDE_BYTES, "{} MiB", peak >> 20);
}
