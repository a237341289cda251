//! Export and import beside a batch of the same grains: grains a second, each in a store of its own.
//!
//! `cargo bench -p grainstore-bench --bench portable`; `GRAINSTORE_BENCH_FACTS` sets the size (100,000).
//! Each line is the better of two passes. Temporary directories are on the disk `TMPDIR` names.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a benchmark stops at the first surprise and prints what it did"
)]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use grainstore::{ExportOptions, ImportOptions, Session};
use grainstore_bench::{blob, fact, fill, store};
use grainstore_cal::Query;
use grainstore_format::container::Compression;
use tempfile::TempDir;

/// Passes of which the better counts.
const PASSES: usize = 2;

fn main() {
    let count = std::env::var("GRAINSTORE_BENCH_FACTS").ok().and_then(|n| n.parse().ok());
    let count = count.unwrap_or(100_000);
    let dir = TempDir::new().unwrap();
    let (from, session) = store(&dir.path().join("from")).unwrap();
    fill(&session, count).unwrap();
    from.flush().unwrap();
    let batch = best(|| batch(count));
    println!("put_batch, all at once: {:.0} a s", rate(count, batch));
    let thousands = best(|| {
        let dir = TempDir::new().unwrap();
        let (to, session) = store(dir.path()).unwrap();
        let start = Instant::now();
        fill(&session, count).unwrap();
        to.flush().unwrap();
        start.elapsed()
    });
    println!("put_batch, 1,000 at once: {:.0} a s", rate(count, thousands));
    for compression in Compression::ALL {
        let file = dir.path().join(format!("{}.mg", compression.name()));
        let exported = best(|| export(&session, &file, compression));
        let imported = best(|| import(&file, count));
        let bytes = std::fs::metadata(&file).unwrap().len() as f64 / count as f64;
        println!(
            "{}: export {:.0} a s, import {:.0} a s ({:.2} of put_batch all at once), {bytes:.0} bytes a grain",
            compression.name(),
            rate(count, exported),
            rate(count, imported),
            batch.as_secs_f64() / imported.as_secs_f64(),
        );
    }
    blocked(&dir.path().join("zstd.mg"), count);
}

fn best(mut pass: impl FnMut() -> Duration) -> Duration {
    (0..PASSES).map(|_| pass()).min().unwrap()
}

fn rate(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

/// The grains in as few batches as may be, until they are folded.
fn batch(count: usize) -> Duration {
    let dir = TempDir::new().unwrap();
    let (to, session) = store(dir.path()).unwrap();
    let blobs: Vec<_> = (0..count).map(|n| blob(n).unwrap()).collect();
    let start = Instant::now();
    for chunk in blobs.chunks(grainstore::limits::MAX_BATCH) {
        session.put_batch(chunk.iter().cloned()).unwrap();
    }
    to.flush().unwrap();
    start.elapsed()
}

fn export(session: &Session, file: &Path, compression: Compression) -> Duration {
    let how = ExportOptions { compression, ..ExportOptions::default() };
    let start = Instant::now();
    session.export(file, &Query::default(), &how).unwrap();
    start.elapsed()
}

fn import(file: &Path, count: usize) -> Duration {
    let dir = TempDir::new().unwrap();
    let (to, session) = store(dir.path()).unwrap();
    let start = Instant::now();
    let imported = session.import([file], &ImportOptions::default()).unwrap();
    to.flush().unwrap();
    assert_eq!(imported.added, count as u64);
    start.elapsed()
}

/// How long the longest put of another waits while a file comes in.
fn blocked(file: &Path, count: usize) {
    let dir = TempDir::new().unwrap();
    let (_to, session) = store(dir.path()).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let mut longest = Duration::ZERO;
            for n in count.. {
                let start = Instant::now();
                session.put(fact(n).unwrap()).unwrap();
                longest = longest.max(start.elapsed());
                if done.load(Ordering::Relaxed) {
                    break;
                }
            }
            longest
        });
        let start = Instant::now();
        session.import([file], &ImportOptions::default()).unwrap();
        let whole = start.elapsed();
        done.store(true, Ordering::Relaxed);
        let longest = waits.join().unwrap();
        println!("import {whole:.2?} while another puts: the longest put waited {longest:.2?}");
    });
}
