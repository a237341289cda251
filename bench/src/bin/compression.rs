//! What compressing grains saves, and what it costs: a store that compresses beside one that does not.
//!
//! `cargo run --release -p grainstore-bench --bin compression [-- GRAINS]`: made-up facts, 100,000 of them
//! unless told otherwise, and the turns of LoCoMo where they are (`GRAINSTORE_SHARED`, else `../shared`).
#![expect(clippy::print_stdout, reason = "a program that prints what it measured")]

use std::time::{Duration, Instant};

use grainstore::{Grain, OpenOptions, PutOutcome, SessionOptions, Store};
use grainstore_bench::locomo::{Conversation, NAMES, folder};
use grainstore_bench::{Error, fact};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use tempfile::TempDir;

/// Grains of a batch.
const BATCH: usize = 1000;
/// Reads that are measured.
const READS: usize = 20_000;
/// Sequence -> envelope of a blob.
const LOG: TableDefinition<'static, u64, &'static [u8]> = TableDefinition::new("log");

fn main() -> Result<(), Error> {
    let count = std::env::args().nth(1).map_or(Ok(100_000), |count| count.parse())?;
    compare("made-up facts", &(0..count).map(fact).collect::<Result<Vec<_>, _>>()?)?;
    match folder() {
        Some(folder) => {
            let mut turns = Vec::new();
            for name in NAMES {
                let conversation = Conversation::read(&folder, name)?;
                let namespace = conversation.namespace();
                for turn in &conversation.turns {
                    turns.push(turn.grain(&namespace, true)?);
                }
            }
            compare("turns of LoCoMo", &turns)
        }
        None => {
            println!("skipped: no data/locomo in GRAINSTORE_SHARED, nor in ../shared");
            Ok(())
        }
    }
}

/// What became of a store.
struct Figures {
    put: Duration,
    get: Duration,
    log_bytes: usize,
    disk_bytes: u64,
}

fn compare(name: &str, grains: &[Grain]) -> Result<(), Error> {
    let (plain, compressed) = (measured(grains, false)?, measured(grains, true)?);
    println!("{} {name}: as they are, compressed, ratio", grains.len());
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let each = |bytes: f64| bytes / grains.len() as f64;
    let row = |what: &str, plain: f64, compressed: f64| {
        println!("{what:28} {plain:>10.2} {compressed:>10.2} {:>6.2}", compressed / plain);
    };
    let log = |figures: &Figures| each(figures.log_bytes as f64);
    row("log, bytes a grain", log(&plain), log(&compressed));
    let disk = |figures: &Figures| each(figures.disk_bytes as f64);
    row("truth on disk, bytes a grain", disk(&plain), disk(&compressed));
    row("batches, us a grain", micros(plain.put), micros(compressed.put));
    row("get, us", micros(plain.get), micros(compressed.get));
    Ok(())
}

fn measured(grains: &[Grain], compress: bool) -> Result<Figures, Error> {
    let dir = TempDir::new()?;
    let store = Store::open(dir.path(), &OpenOptions::new().create(true).compress(compress))?;
    let session = store.session(SessionOptions::default());
    let mut addresses = Vec::new();
    let began = Instant::now();
    for batch in grains.chunks(BATCH) {
        addresses.extend(session.put_batch(batch.iter().cloned())?.iter().map(PutOutcome::address));
    }
    let put = began.elapsed() / u32::try_from(grains.len())?;
    store.flush()?;
    store.compact()?;
    let disk_bytes = store.stats()?.disk_bytes;
    let began = Instant::now();
    for at in 0..READS {
        let address = addresses.get(at * 7919 % addresses.len()).ok_or("no such grain")?;
        session.get(address)?;
    }
    let get = began.elapsed() / u32::try_from(READS)?;
    drop(session);
    store.close()?;
    let db = Database::open(dir.path().join("grains.redb"))?;
    let mut log_bytes = 0;
    for row in db.begin_read()?.open_table(LOG)?.iter()? {
        log_bytes += row?.1.value().len();
    }
    Ok(Figures { put, get, log_bytes, disk_bytes })
}
