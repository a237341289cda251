//! Durability: an acknowledged write survives any crash, and one that failed changes nothing.
//!
//! - `disk`: a disk that can lose power, fail and stand still.
//! - `script`: a mixed workload on it, each answer judged by the model.
//! - `examine`: what must be so on a disk after a crash.
//! - `answers`, `power_cut`, `io_failure`: the tests.
//!
//! A normal run cuts the power at a few hundred sync points. The full run does thousands:
//! `GRAINSTORE_SWEEP=full cargo test --release -p grainstore --lib tests -- --nocapture`.

mod answers;
mod disk;
mod examine;
mod io_failure;
#[path = "../../tests/kit/mod.rs"]
mod kit;
mod power_cut;
mod script;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};

use grainstore_format::EpochMs;

use crate as engine;
use crate::{ManualClock, OpenOptions, Result, Store};
use disk::Disk;

/// When the clock of the stores starts: after every `created_at`.
const START_MS: i64 = 1_800_000_000_000;
/// A page cache so small that pages are written before their commit, and read again.
const CACHE_BYTES: usize = 256 << 10;

/// Panics of writer threads: callers see no more of one than `ERR_IO`.
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
            if std::thread::current().name() == Some("grainstore-writer") {
                WRITER_PANICS.fetch_add(1, Ordering::SeqCst);
            }
            usual(panic);
        }));
    });
    let clock = Arc::<ManualClock>::clone(clock);
    Store::on_backend(disk.clone(), &OpenOptions::new().cache_bytes(cache_bytes).clock(clock))
}

/// An empty store, closed.
fn empty_image() -> Vec<u8> {
    let disk = Disk::new(Vec::new());
    open(&disk, &clock_at(START_MS)).unwrap().close();
    disk.live()
}

fn assert_no_writer_panicked() {
    assert_eq!(WRITER_PANICS.load(Ordering::SeqCst), 0, "a writer thread panicked");
}
