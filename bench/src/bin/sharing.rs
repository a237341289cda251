//! What it costs to reach a store through the process that has it open: the same requests by its owner and by a relay,
//! in turns.
//!
//! `cargo run --release -p grainstore-bench --bin sharing [-- GRAINS [ROUNDS [DIR]]]`; 100,000 grains and 10 rounds
//! unless told otherwise. Medians and 99th percentiles in microseconds, over all rounds.
#![expect(clippy::print_stdout, reason = "a program that prints what it measured")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use grainstore::{OpenOptions, SessionOptions};
use grainstore_bench::{fact, fill};
use grainstore_rpc::{Client, ClientOptions};
use serde_json::{Value, json};
use tempfile::TempDir;

type Error = Box<dyn std::error::Error>;

/// Requests of each kind in a round.
const GETS: u64 = 2_000;
const PUTS: u64 = 200;
/// The word that has the program own the store, and do what it is told on stdin.
const OWN: &str = "--own";

fn main() -> Result<(), Error> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        [OWN, dir, grains] => own(Path::new(dir), grains.parse()?),
        _ => compare(&words),
    }
}

fn open(dir: &Path) -> Result<Client, Error> {
    let options = ClientOptions::new(OpenOptions::new().create(true), SessionOptions::default());
    Ok(Client::open(dir, options)?)
}

/// Owns the store, and times what it is told to on stdin: a kind and a first number a line. Answers with the times.
fn own(dir: &Path, grains: usize) -> Result<(), Error> {
    let client = open(dir)?;
    let session = client.owned_session().ok_or("the store is open elsewhere")?;
    fill(&session, grains)?;
    println!("ready");
    for line in std::io::stdin().lines() {
        let line = line?;
        let (kind, first) = line.split_once(' ').ok_or("a kind and a number")?;
        let times = timed(&client, kind, first.parse()?, u64::try_from(grains)?)?;
        println!("{}", serde_json::to_string(&times)?);
    }
    client.close()?;
    Ok(())
}

/// Times requests of a kind, in nanoseconds each.
fn timed(client: &Client, kind: &str, first: u64, grains: u64) -> Result<Vec<u64>, Error> {
    let count = if kind == "get" { GETS } else { PUTS };
    (first..first + count)
        .map(|number| {
            let (method, params) = match kind {
                "get" => {
                    // Spread over the store, and the same for both.
                    let at = number.wrapping_mul(2_654_435_761) % grains;
                    let address = grainstore_bench::blob(usize::try_from(at)?)?.address();
                    ("get", json!({ "address": address }))
                }
                _ => ("put", json!({ "grain": new_fact(number)? })),
            };
            let began = Instant::now();
            let answer: Value = client.call(method, &params)?;
            let time = began.elapsed();
            std::hint::black_box(answer);
            Ok(u64::try_from(time.as_nanos())?)
        })
        .collect()
}

/// A fact that the store does not have: the process and the time are in it.
fn new_fact(number: u64) -> Result<Value, Error> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
    let mut grain = serde_json::to_value(fact(usize::try_from(number)?)?)?;
    if let Some(fields) = grain.as_object_mut() {
        fields.insert("object".to_owned(), format!("{} {now} {number}", std::process::id()).into());
    }
    Ok(grain)
}

struct Owner {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Owner {
    fn start(dir: &Path, grains: &str) -> Result<Self, Error> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(OWN)
            .arg(dir)
            .arg(grains)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let answers = BufReader::new(child.stdout.take().ok_or("a pipe")?);
        let mut owner = Self { child, answers };
        owner.line()?;
        Ok(owner)
    }

    fn line(&mut self) -> Result<String, Error> {
        let mut line = String::new();
        match self.answers.read_line(&mut line)? {
            0 => Err("the owner has ended".into()),
            _ => Ok(line),
        }
    }

    fn timed(&mut self, kind: &str, first: u64) -> Result<Vec<u64>, Error> {
        writeln!(self.child.stdin.as_mut().ok_or("a pipe")?, "{kind} {first}")?;
        Ok(serde_json::from_str(&self.line()?)?)
    }
}

fn compare(words: &[&str]) -> Result<(), Error> {
    let grains = words.first().copied().unwrap_or("100000");
    let rounds: u64 = words.get(1).copied().unwrap_or("10").parse()?;
    let own = TempDir::new()?;
    let dir =
        words.get(2).map_or_else(|| own.path().join("store"), |dir| Path::new(dir).to_owned());
    let mut owner = Owner::start(&dir, grains)?;
    let relay = open(&dir)?;
    let pid = relay.owner().ok_or("this process owns the store")?;
    println!("{grains} grains, {rounds} rounds in turns, owner {pid}; microseconds p50 / p99");
    println!("| request | owner | relay | difference p50 | ratio p50 |\n|---|---|---|---|---|");
    for kind in ["get", "put"] {
        let (mut here, mut there) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            let first = round * GETS;
            here.append(&mut owner.timed(kind, first)?);
            there.append(&mut timed(&relay, kind, first, grains.parse()?)?);
        }
        let [here, there] = [here, there].map(|mut times| {
            times.sort_unstable();
            let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or(0);
            [at(50), at(99)].map(|ns| Duration(ns))
        });
        let ([a, a99], [b, b99]) = (here, there);
        let ratio = b.us() / a.us();
        println!("| {kind} | {a} / {a99} | {b} / {b99} | {:.0} | {ratio:.2} |", b.us() - a.us());
    }
    drop(owner.child.stdin.take());
    owner.child.wait()?;
    Ok(())
}

/// Nanoseconds.
#[derive(Clone, Copy)]
struct Duration(u64);

impl Duration {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52 nanoseconds")]
    fn us(self) -> f64 {
        self.0 as f64 / 1_000.0
    }
}

impl std::fmt::Display for Duration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.0}", self.us())
    }
}
