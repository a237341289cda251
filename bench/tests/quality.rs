//! What searches must find of real conversations, by words alone and with vectors beside them.
//!
//! The data lies beside the project (`GRAINSTORE_SHARED`, else `../shared`) and is not part of it: without
//! it there is nothing to test, and the test says so.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test stops at a surprise, and says that it skips"
)]

use std::path::PathBuf;

use grainstore_bench::locomo::{NAMES, folder};
use grainstore_bench::quality::{Figures, Library, Mode};

/// The least that has to be found: hit@10, hit@20 and MRR@10.
struct Least(f64, f64, f64);

fn data() -> Option<PathBuf> {
    let folder = folder();
    if folder.is_none() {
        println!("skipped: no data/locomo in GRAINSTORE_SHARED, nor in ../shared");
    }
    folder
}

fn holds(found: &Figures, Least(hit_at_10, hit_at_20, mrr_at_10): &Least) {
    assert!(found.hit_at_10 >= *hit_at_10, "{found:?}");
    assert!(found.hit_at_20 >= *hit_at_20, "{found:?}");
    assert!(found.mrr_at_10 >= *mrr_at_10, "{found:?}");
}

fn is_better_with_vectors(library: &Library, text: &Least, hybrid: &Least) {
    let [by_text, by_both] = [Mode::Text, Mode::Hybrid].map(|mode| library.measure(mode).unwrap());
    holds(&by_text.total, text);
    holds(&by_both.total, hybrid);
    assert!(by_both.total.hit_at_10 > by_text.total.hit_at_10);
    assert!(by_both.total.hit_at_20 > by_text.total.hit_at_20);
    assert!(by_both.total.mrr_at_10 > by_text.total.mrr_at_10);
}

#[test]
fn two_conversations_are_searched_well_enough() {
    let Some(folder) = data() else { return };
    let library = Library::of(&folder, &["conv-26", "conv-41"], true).unwrap();
    is_better_with_vectors(&library, &Least(82.0, 88.5, 0.535), &Least(86.0, 91.0, 0.56));
}

#[test]
#[ignore = "takes minutes without optimisation: cargo test --release -p grainstore-bench --test quality -- --ignored"]
fn five_conversations_are_searched_well_enough() {
    let Some(folder) = data() else { return };
    let library = Library::of(&folder, &NAMES, true).unwrap();
    is_better_with_vectors(&library, &Least(82.0, 87.0, 0.52), &Least(85.3, 91.0, 0.555));
}
