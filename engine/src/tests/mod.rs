//! Durability: an acknowledged write survives any crash, and one that failed changes nothing.
//!
//! - `disk`: a disk that can lose power, fail and stand still.
//! - `script`: a mixed workload on it, each answer judged by the model.
//! - `examine`: what must be so on a disk after a crash.
//! - `questions`: a fixed set of queries, held against looking at every grain.
//! - `answers`, `application`, `changes`, `replication`, `power_cut`, `erase`, `import`, `moving`, `io_failure`,
//!   `stale_index`, `upgrade`: the tests.
//!
//! A normal run cuts the power at a few hundred sync points. The full run does thousands:
//! `GRAINSTORE_SWEEP=full cargo test --release -p grainstore --lib tests -- --nocapture`.

mod answers;
mod application;
mod changes;
mod disk;
mod encrypted_copies;
mod erase;
mod examine;
mod following;
#[cfg(shuttle)]
mod hand_over;
mod import;
mod io_failure;
#[path = "../../tests/kit/mod.rs"]
mod kit;
mod moving;
#[path = "../../tests/kit/naive.rs"]
mod naive;
mod power_cut;
#[path = "../../tests/kit/question.rs"]
mod question;
mod questions;
mod replication;
mod script;
mod stale_index;
mod upgrade;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};

use grainstore_format::EpochMs;

use crate as engine;
use crate::{ManualClock, OpenOptions, Result, Store};
use disk::{Disk, Image};

/// When the clock of the stores starts: after every `created_at`.
const START_MS: i64 = 1_800_000_000_000;
/// A page cache so small that pages are written before their commit, and read again.
const CACHE_BYTES: usize = 256 << 10;

/// Panics of the store's own threads: callers see no more of one than `ERR_IO`.
static WRITER_PANICS: AtomicUsize = AtomicUsize::new(0);

/// Whether to run for minutes rather than seconds.
fn is_full() -> bool {
    std::env::var("GRAINSTORE_SWEEP").is_ok_and(|sweep| sweep == "full")
}

fn clock_at(ms: i64) -> Arc<ManualClock> {
    let clock = Arc::new(ManualClock::following());
    clock.set(EpochMs::new(ms));
    clock
}

fn open(disk: &Disk, clock: &Arc<ManualClock>) -> Result<Store> {
    open_with(disk, clock, CACHE_BYTES)
}

fn open_with(disk: &Disk, clock: &Arc<ManualClock>, cache_bytes: usize) -> Result<Store> {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let own = matches!(
                std::thread::current().name(),
                Some("grainstore-writer" | "grainstore-folder")
            );
            // redb panics on damaged pages, which some tests make.
            let damage = panic.location().is_some_and(|place| place.file().contains("redb"));
            if own && !damage {
                WRITER_PANICS.fetch_add(1, Ordering::SeqCst);
            }
            usual(panic);
        }));
    });
    let clock = Arc::<ManualClock>::clone(clock);
    let options = OpenOptions::new().cache_bytes(cache_bytes).clock(clock);
    Store::on_backends(|| disk.truth(), || disk.index(), &options)
}

/// An empty store, closed.
fn empty_image() -> Image {
    let disk = Disk::default();
    open(&disk, &clock_at(START_MS)).unwrap().close().unwrap();
    disk.live()
}

fn assert_no_writer_panicked() {
    assert_eq!(WRITER_PANICS.load(Ordering::SeqCst), 0, "a writer thread panicked");
}
