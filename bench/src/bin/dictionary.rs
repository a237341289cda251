//! Trains the dictionary that rows of the log are compressed with, on the made-up grains of `samples`.
//!
//! `cargo run --release -p grainstore-bench --bin dictionary FILE` writes it. A dictionary that grains lie
//! under is never replaced: another one gets a number, and a protection byte, of its own.
#![expect(clippy::print_stdout, reason = "a program that prints what it did")]

use std::fs;

use grainstore_bench::Error;
use grainstore_bench::samples::sample;

/// Grains it is trained on.
const SAMPLES: u64 = 20_000;
/// Bytes it has at most.
const BYTES: usize = 16 << 10;

fn main() -> Result<(), Error> {
    let file = std::env::args().nth(1).ok_or("name a file to write the dictionary to")?;
    let blobs =
        (0..SAMPLES).map(|n| Ok(sample(n)?.into_bytes())).collect::<Result<Vec<_>, Error>>()?;
    let dictionary = zstd::dict::from_samples(&blobs, BYTES)?;
    fs::write(&file, &dictionary)?;
    println!("{} bytes, trained on {SAMPLES} grains", dictionary.len());
    Ok(())
}
