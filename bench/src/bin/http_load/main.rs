//! What the server of HTTP takes for a request, and how it does under steady load: a `grain serve` that this starts, on
//! a store of its own, full through `POST /v1/grains/batch`.
//!
//! `cargo build --release -p grainstore-cli` first, then
//! `cargo run --release -p grainstore-bench --bin http_load [-- GRAIN [SECONDS [GRAINS [PER_SECOND [CONNECTIONS]]]]]`;
//! the program `grain` beside this one, 60 s, 100,000 grains, 1,000 requests a second over 200 connections unless told
//! otherwise. Two parts:
//!
//! - one connection and nothing else: `GET /v1/grains/{address}` and `GET /health` in turns.
//! - load: each request has its time, whether those before it were answered or not (an open loop), and its latency
//!   counts from that time. What waits because the machine or this program is late counts, too; `sent late` says how
//!   much of it there is.
//!
//! Then everything that was acknowledged is asked for, the server is stopped, and `grain verify` looks at the store.
//! This program and the server share the machine: what else it did meanwhile is told with the figures.
#![expect(clippy::print_stdout, reason = "a program that prints what it measured")]

mod client;
mod machine;
mod work;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use client::{Connection, Served};
use machine::Machine;
use work::{Done, Kind, Told, Worker};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Grains of a batch at the start.
const BATCH: u64 = 500;
/// Requests of each kind over one connection, and those before them that are not counted.
const ALONE: u64 = 20_000;
const WARM: u64 = 1_000;
/// Grains asked for at once at the end.
const CHECKED: usize = 200;

/// What is asked of this program.
struct Asked {
    grain: PathBuf,
    seconds: u64,
    grains: u64,
    per_second: u64,
    connections: u64,
}

impl Asked {
    fn read() -> Result<Self, Error> {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let number = |at: usize, usual: u64| -> Result<u64, Error> {
            Ok(words.get(at).map_or(Ok(usual), |word| word.parse())?)
        };
        let grain = match words.first() {
            Some(path) => PathBuf::from(path),
            None => std::env::current_exe()?.with_file_name("grain"),
        };
        Ok(Self {
            grain,
            seconds: number(1, 60)?,
            grains: number(2, 100_000)?,
            per_second: number(3, 1_000)?.max(1),
            connections: number(4, 200)?.max(1),
        })
    }
}

fn main() -> Result<(), Error> {
    let asked = Asked::read()?;
    let dir = TempDir::new()?;
    let store = dir.path().join("load.grains");
    let served = Served::start(&asked.grain, &store)?;
    let addresses = fill(&served, asked.grains)?;
    println!("{} grains; the server takes {}", addresses.len(), machine::memory(served.pid())?);
    alone(&served, &addresses)?;
    let told = load(&served, &asked, addresses)?;
    check(&served, &told)?;
    println!("at the end the server takes {}", machine::memory(served.pid())?);
    served.stop()?;
    verify(&asked.grain, &store)
}

/// Puts the grains of the start; their addresses.
fn fill(served: &Served, grains: u64) -> Result<Vec<String>, Error> {
    let mut connection = served.connect()?;
    let mut addresses = Vec::new();
    for first in (0..grains).step_by(usize::try_from(BATCH)?) {
        let last = grains.min(first + BATCH);
        let batch: Vec<Value> = (first..last).map(work::fact).collect();
        let answer =
            connection.post("/v1/grains/batch", &json!({ "grains": batch }))?.expect(200)?;
        let results =
            answer.get("results").and_then(Value::as_array).ok_or("a batch without results")?;
        for result in results {
            let address = result
                .get("address")
                .and_then(Value::as_str)
                .ok_or("a result without an address")?;
            addresses.push(address.to_owned());
        }
    }
    Ok(addresses)
}

/// One connection, and nothing else asked for.
fn alone(served: &Served, addresses: &[String]) -> Result<(), Error> {
    let mut connection = served.connect()?;
    let mut times = [const { Vec::new() }; 2];
    let machine = Machine::now(served.pid())?;
    for number in 0..WARM + ALONE {
        let at = work::scattered(number) % u64::try_from(addresses.len())?;
        let address = addresses.get(usize::try_from(at)?).ok_or("no address")?;
        let paths = ["/health".to_owned(), format!("/v1/grains/{address}")];
        for (times, path) in times.iter_mut().zip(paths) {
            let began = Instant::now();
            let answer = connection.get(&path)?;
            let took = began.elapsed();
            answer.status_is(200)?;
            if number >= WARM {
                times.push(took);
            }
        }
    }
    println!("\nOne connection, {ALONE} of each in turns; microseconds. {}", machine.told()?);
    println!("| | p50 | p90 | p99 | p99.9 | most |\n|---|---|---|---|---|---|");
    for (name, mut times) in ["health", "get"].into_iter().zip(times) {
        println!("| {name} | {} |", cells(&mut times));
    }
    Ok(())
}

/// Steady load, and a line for each part of the time.
fn load(served: &Served, asked: &Asked, addresses: Vec<String>) -> Result<Told, Error> {
    let shared = Arc::new(Mutex::new(Vec::<Done>::new()));
    let addresses = Arc::new(addresses);
    let workers: Result<Vec<Worker>, Error> = (0..asked.connections)
        .map(|number| Worker::new(number, served.connect()?, Arc::clone(&addresses)))
        .collect();
    let machine = Machine::now(served.pid())?;
    let (count, every) =
        (asked.connections, Duration::from_secs(1).checked_div(u32::try_from(asked.per_second)?));
    let every = every.unwrap_or_default();
    let begin = Instant::now() + Duration::from_millis(200);
    let end = begin + Duration::from_secs(asked.seconds);
    let threads: Vec<_> = workers?
        .into_iter()
        .map(|worker| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || worker.run(begin, end, every, count, &shared))
        })
        .collect();
    println!("\n{} s, {} requests a second, {count} connections", asked.seconds, asked.per_second);
    println!("| s | requests | p50 ms | p99 ms | most ms | server MiB | load |");
    println!("|---|---|---|---|---|---|---|");
    let part = Duration::from_secs((asked.seconds / 20).max(5));
    let (mut seen, mut next) = (0, begin + part);
    while next <= end {
        thread::sleep(next.saturating_duration_since(Instant::now()));
        let mut times: Vec<Duration> = {
            let all = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let times = all.iter().skip(seen).map(|done| done.latency).collect();
            seen = all.len();
            times
        };
        times.sort_unstable();
        println!(
            "| {} | {} | {} | {} | {} | {} | {} |",
            (next - begin).as_secs(),
            times.len(),
            ms(at(&times, 500)),
            ms(at(&times, 990)),
            ms(at(&times, 1_000)),
            machine::resident(served.pid())?,
            machine::load()?,
        );
        next += part;
    }
    let mut told = Told::default();
    for thread in threads {
        told.add(thread.join().map_err(|_| "a thread panicked")??);
    }
    let all = std::mem::take(&mut *shared.lock().unwrap_or_else(PoisonError::into_inner));
    println!("\n{}", machine.told()?);
    report(&all);
    for ((kind, status), text) in &told.refused {
        println!("{kind}, {status}: {text}");
    }
    Ok(told)
}

/// Latencies by kind, and statuses.
fn report(all: &[Done]) {
    println!("\n| | requests | p50 ms | p90 | p99 | p99.9 | most | refused or failed |");
    println!("|---|---|---|---|---|---|---|---|");
    let row =
        |name: &str, of: &dyn Fn(&Done) -> Option<Duration>, is_failed: &dyn Fn(&Done) -> bool| {
            let mut times: Vec<Duration> = all.iter().filter_map(of).collect();
            let failed = all.iter().filter(|done| of(done).is_some() && is_failed(done)).count();
            times.sort_unstable();
            let cells = [500, 900, 990, 999, 1_000].map(|share| ms(at(&times, share)));
            println!("| {name} | {} | {} | {failed} |", times.len(), cells.join(" | "));
        };
    let is_failed = |done: &Done| !(200..300).contains(&done.status);
    row("all", &|done| Some(done.latency), &is_failed);
    for kind in Kind::ALL {
        row(kind.name(), &|done| (done.kind == kind).then_some(done.latency), &is_failed);
    }
    row(
        "all, from when they were sent",
        &|done| Some(done.latency.saturating_sub(done.late)),
        &is_failed,
    );
    row("sent late by", &|done| Some(done.late), &|_| false);
    let mut statuses = std::collections::BTreeMap::<u16, usize>::new();
    for done in all {
        *statuses.entry(done.status).or_default() += 1;
    }
    println!("\nby status (0: the connection broke): {statuses:?}");
}

/// Asks for everything that was acknowledged.
fn check(served: &Served, told: &Told) -> Result<(), Error> {
    let mut connection = served.connect()?;
    let mut missing = 0_usize;
    for part in told.put.chunks(CHECKED) {
        missing += absent(&mut connection, part)?.len();
    }
    let mut lost = 0_usize;
    for (old, new) in &told.superseded {
        let answer = connection.get(&format!("/v1/grains/{old}"))?.expect(200)?;
        lost += usize::from(answer.pointer("/state/superseded_by") != Some(&json!(new)));
    }
    println!(
        "\nof {} acknowledged puts {missing} are missing, of {} supersedes {lost}",
        told.put.len(),
        told.superseded.len()
    );
    if missing + lost > 0 {
        return Err("something acknowledged is lost".into());
    }
    Ok(())
}

/// Those of some addresses that the server does not have.
fn absent(connection: &mut Connection, addresses: &[String]) -> Result<Vec<String>, Error> {
    let answer =
        connection.post("/v1/grains/get", &json!({ "addresses": addresses }))?.expect(200)?;
    let grains = answer.get("grains").and_then(Value::as_array).ok_or("no grains")?;
    if grains.len() != addresses.len() {
        return Err(format!("{} grains for {} addresses", grains.len(), addresses.len()).into());
    }
    let pairs = addresses.iter().zip(grains).filter(|(_, grain)| grain.is_null());
    Ok(pairs.map(|(address, _)| address.clone()).collect())
}

fn verify(grain: &Path, store: &Path) -> Result<(), Error> {
    let output = std::process::Command::new(grain)
        .arg("--store")
        .arg(store)
        .args(["--json", "verify", "--full"])
        .output()?;
    let told: Value = serde_json::from_slice(&output.stdout)?;
    let grains = told.pointer("/checked/grains").and_then(Value::as_u64).unwrap_or_default();
    println!("grain verify --full: {grains} grains, ok {}", told.get("ok") == Some(&json!(true)));
    if !output.status.success() {
        return Err(format!("grain verify: {told}").into());
    }
    Ok(())
}

/// So many thousandths of sorted times take at most this.
fn at(times: &[Duration], thousandths: usize) -> Duration {
    let at = (times.len() * thousandths / 1_000).min(times.len().saturating_sub(1));
    times.get(at).copied().unwrap_or_default()
}

fn cells(times: &mut [Duration]) -> String {
    times.sort_unstable();
    [500, 900, 990, 999, 1_000].map(|share| at(times, share).as_micros().to_string()).join(" | ")
}

fn ms(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1_000.0)
}
