//! What it costs to recall over MCP: the same questions in process and through `grain mcp` over stdio, in turns. One
//! child has a store of its own with the same grains open; another reaches the store of this process by way of it.
//!
//! `cargo build --release -p grainstore-cli` first, then
//! `cargo run --release -p grainstore-bench --bin mcp [-- GRAINS [QUESTIONS [GRAIN]]]`; 10,000 grains, 1,000 questions
//! of each kind and the program `grain` beside this one unless told otherwise. Microseconds, p50 / p99.
#![expect(clippy::print_stdout, reason = "a program that prints what it measured")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use grainstore::cal::{ExecuteOptions, Params};
use grainstore::{OpenOptions, Session, SessionOptions};
use grainstore_bench::{FACTS_PER_SUBJECT, fill};
use grainstore_rpc::{Client, ClientOptions};
use serde_json::{Value, json};
use tempfile::TempDir;

type Error = Box<dyn std::error::Error>;

/// Tokens of an answer, as `recall` has them where nothing is said.
const BUDGET: u64 = 1_500;
/// Tokens of a short grain: `recall` asks for as many grains as may fit.
const SHORT_GRAIN_TOKENS: u64 = 20;
/// Questions of each kind that are asked before any is timed.
const WARM: usize = 100;
/// Grains between two questions: they are spread over the store.
const STRIDE: usize = 7_919;

/// What is asked: the argument of `recall`, and the condition of the statement that it becomes.
const KINDS: [(&str, &str); 2] = [("subject", "ABOUT $asked"), ("query", "WHERE query = $asked")];

fn main() -> Result<(), Error> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, usual: usize| -> Result<usize, Error> {
        Ok(words.get(at).map_or(Ok(usual), |word| word.parse())?)
    };
    let (grains, questions) = (number(0, 10_000)?, number(1, 1_000)?);
    let grain = match words.get(2) {
        Some(path) => PathBuf::from(path),
        None => std::env::current_exe()?.with_file_name("grain"),
    };
    let dirs = TempDir::new()?;
    let (here, there) = (dirs.path().join("here"), dirs.path().join("there"));
    let other = open(&there)?;
    fill(&other.owned_session().ok_or("the store is open elsewhere")?, grains)?;
    other.close()?;
    let client = open(&here)?;
    let session = client.owned_session().ok_or("the store is open elsewhere")?;
    fill(&session, grains)?;
    let mut served = [Mcp::start(&grain, &there)?, Mcp::start(&grain, &here)?];
    println!(
        "{grains} grains, {questions} questions of each kind in turns, {BUDGET} tokens; microseconds"
    );
    println!(
        "| recall by | in process | mcp, difference | mcp that relays, difference |\n|---|---|---|---|"
    );
    for (kind, condition) in KINDS {
        let mut times = [const { Vec::new() }; 3];
        for number in 0..WARM + questions {
            let asked = asked(kind, number * STRIDE % grains);
            let (text, time) = in_process(&session, condition, &asked)?;
            let mut round = vec![time];
            for mcp in &mut served {
                let (told, time) = mcp.recall(kind, &asked)?;
                if told != text {
                    return Err(format!("another answer to {asked:?}: {told:?}, {text:?}").into());
                }
                round.push(time);
            }
            for (times, time) in times.iter_mut().zip(round).filter(|_| number >= WARM) {
                times.push(time);
            }
        }
        print(kind, times.map(Percentiles::of));
    }
    for mcp in served {
        mcp.end()?;
    }
    client.close()?;
    Ok(())
}

fn open(dir: &Path) -> Result<Client, Error> {
    let options = ClientOptions::new(OpenOptions::new().create(true), SessionOptions::default());
    Ok(Client::open(dir, options)?)
}

/// The question about a fact: its subject, or words of which one is its own and the others are in all.
fn asked(kind: &str, number: usize) -> String {
    match kind {
        "subject" => format!("person-{}", number / FACTS_PER_SUBJECT),
        _ => format!("the answer number {number} to a question"),
    }
}

/// The context for a question, by the engine alone.
fn in_process(
    session: &Session,
    condition: &str,
    asked: &str,
) -> Result<(String, Duration), Error> {
    let limit = BUDGET / SHORT_GRAIN_TOKENS;
    let statement = format!(
        "ASSEMBLE FROM memory: (RECALL {condition} | OFFSET 0 | LIMIT {limit}) BUDGET {BUDGET} tokens FORMAT sml WITH provenance"
    );
    let began = Instant::now();
    let mut params = Params::new();
    params.bind("asked", &asked.into())?;
    let options = ExecuteOptions { params, ..ExecuteOptions::at(session.now()) };
    let answer = session.ask_with(statement.as_bytes(), &options)?;
    let time = began.elapsed();
    let answer = serde_json::to_value(answer)?;
    let text = answer.pointer("/formatted_context/text").and_then(Value::as_str);
    Ok((text.ok_or("an answer without a context")?.to_owned(), time))
}

/// A `grain mcp` of which this is the client.
struct Mcp {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    requests: u64,
}

impl Mcp {
    fn start(grain: &Path, store: &Path) -> Result<Self, Error> {
        let mut command = Command::new(grain);
        command.arg("mcp").arg("--store").arg(store).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{}: {error}", grain.display()))?;
        let input = child.stdin.take().ok_or("a pipe")?;
        let output = BufReader::new(child.stdout.take().ok_or("a pipe")?);
        let mut mcp = Self { child, input, output, requests: 0 };
        let client = json!({ "name": "bench", "version": "1" });
        let begin =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        mcp.request("initialize", &begin)?;
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        writeln!(mcp.input, "{ready}")?;
        Ok(mcp)
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<Value, Error> {
        self.requests += 1;
        let id = self.requests;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.input.write_all(format!("{request}\n").as_bytes())?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let mut answer: Value = serde_json::from_str(&line)?;
        match answer.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => Err(line.into()),
        }
    }

    /// The context for a question, and the time from the request to its answer that is read.
    fn recall(&mut self, kind: &str, asked: &str) -> Result<(String, Duration), Error> {
        let call = json!({ "name": "recall", "arguments": { kind: asked } });
        let began = Instant::now();
        let result = self.request("tools/call", &call)?;
        let time = began.elapsed();
        let text = result.pointer("/structuredContent/context").and_then(Value::as_str);
        Ok((text.ok_or_else(|| result.to_string())?.to_owned(), time))
    }

    fn end(self) -> Result<(), Error> {
        let Self { mut child, input, .. } = self;
        drop(input);
        child.wait()?;
        Ok(())
    }
}

/// The median and the 99th percentile, in microseconds.
#[derive(Clone, Copy)]
struct Percentiles {
    p50: i64,
    p99: i64,
}

impl Percentiles {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
        let us = |share| i64::try_from(at(share).as_micros()).unwrap_or(i64::MAX);
        Self { p50: us(50), p99: us(99) }
    }
}

fn print(kind: &str, [here, owner, relay]: [Percentiles; 3]) {
    let [owner, relay] = [owner, relay].map(|there| {
        let (p50, p99) = (there.p50 - here.p50, there.p99 - here.p99);
        format!("{} / {}, {p50} / {p99}", there.p50, there.p99)
    });
    println!("| {kind} | {} / {} | {owner} | {relay} |", here.p50, here.p99);
}
