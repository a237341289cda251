//! What needs a process of its own: opening with nothing in memory, the memory a store takes, and
//! opening after the process that wrote was aborted.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use grainstore::ContentAddress;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::ask::Ask;
use crate::data::fresh;
use crate::peer::Contender;
use crate::trial::Trial;
use compare_facts::resident_bytes;
use compare_facts::{Figure, Unit};

/// Opens that are measured after a clean close.
const OPENS: usize = 5;
/// Crashes, each with an open behind it.
const CRASHES: usize = 3;
/// Rows put before a crash, one by one.
const BEFORE_CRASH: usize = 2000;

/// What a process that opens a store is told.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    /// A grain that must be there, in hex; none for a store without addresses.
    held: Option<String>,
    /// Questions to ask before memory is looked at again.
    asks: Vec<Ask>,
}

/// What it answers.
#[derive(Debug, Serialize, Deserialize)]
struct Opened {
    /// Time to open and to read one grain.
    open_us: u64,
    /// Resident memory then.
    opened_bytes: u64,
    /// Resident memory after the questions.
    asked_bytes: u64,
}

impl Trial<'_> {
    /// Opens, crashes and opens again. `fresh` counts the fresh rows the store has already.
    pub(super) fn processes(&mut self, directory: &Path, fresh_rows: usize) -> Result<()> {
        let first = self.stage.data.first(1).addresses.first();
        let asks: Vec<Ask> = self.stage.questions.by_subject().cloned().collect();
        let mut times = Vec::new();
        for _ in 0..OPENS {
            let opened = self.child(directory, first, &asks)?;
            times.push(Duration::from_micros(opened.open_us));
            if times.len() == OPENS {
                self.memory("memory after open", opened.opened_bytes)?;
                self.memory("memory after as many look-ups by subject", opened.asked_bytes)?;
            }
        }
        self.note("open, after a clean close", Unit::Millis, median(times)?);

        let mut times = Vec::new();
        for crash in 0..CRASHES {
            let first = fresh_rows + crash * BEFORE_CRASH;
            self.crash(directory, first)?;
            let last = fresh(first + BEFORE_CRASH - 1, 1)?;
            let last = last.first().map(|item| item.blob.address());
            let opened = self.child(directory, last.as_ref(), &[])?;
            times.push(Duration::from_micros(opened.open_us));
        }
        self.note("open, after a crash behind 2,000 puts", Unit::Millis, median(times)?);
        Ok(())
    }

    fn memory(&mut self, work: &'static str, bytes: u64) -> Result<()> {
        let mebibytes = f64::from(u32::try_from(bytes / 1024)?) / 1024.0;
        self.note(work, Unit::Mebibytes, Figure::once(mebibytes));
        Ok(())
    }

    /// Has another process open the store.
    fn child(
        &self,
        directory: &Path,
        held: Option<&ContentAddress>,
        asks: &[Ask],
    ) -> Result<Opened> {
        let order = Order { held: held.map(ToString::to_string), asks: asks.to_vec() };
        let mut child = Command::new(std::env::current_exe()?)
            .args(["open", self.contender.name])
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut input = child.stdin.take().ok_or("a child without input")?;
        input.write_all(&serde_json::to_vec(&order)?)?;
        drop(input);
        let output = child.wait_with_output()?;
        if !output.status.success() {
            return Err(format!("opening {} failed", self.contender.name).into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Has another process write and abort.
    fn crash(&self, directory: &Path, first: usize) -> Result<()> {
        let status = Command::new(std::env::current_exe()?)
            .args(["crash", self.contender.name])
            .arg(directory)
            .args([first.to_string(), BEFORE_CRASH.to_string()])
            .status()?;
        // An aborted process has no exit code: it was ended by a signal.
        if status.code().is_some() {
            return Err(format!("{} did not get as far as its crash", self.contender.name).into());
        }
        Ok(())
    }
}

/// The median of a few times; further percentiles of so few would say nothing.
fn median(times: Vec<Duration>) -> Result<Figure> {
    Ok(Figure { p90: None, p99: None, ..Figure::millis(times)? })
}

/// Opens a store, reads the grain it is told of, asks, and prints figures.
///
/// # Errors
/// The store's; for a grain that should be there and is not.
pub(crate) fn open(contender: Contender, directory: &Path) -> Result<()> {
    let mut order = Vec::new();
    io::stdin().read_to_end(&mut order)?;
    let Order { held, asks } = serde_json::from_slice(&order)?;
    let held = held.map(|hex| hex.parse::<ContentAddress>()).transpose()?;

    let start = Instant::now();
    let peer = (contender.open)(directory)?;
    if let Some(held) = held.filter(|_| peer.has_addresses()) {
        let blob = peer.get(&held)?.ok_or("an acknowledged grain is lost")?;
        held.verify(&blob)?;
    }
    let open_us = u64::try_from(start.elapsed().as_micros())?;

    let opened_bytes = resident_bytes()?;
    for ask in asks.iter().filter(|ask| peer.answers(ask)) {
        peer.lines(ask)?;
    }
    let opened = Opened { open_us, opened_bytes, asked_bytes: resident_bytes()? };
    serde_json::to_writer(io::stdout().lock(), &opened)?;
    Ok(())
}

/// Opens a store, puts fresh rows one by one, each durable, and aborts.
///
/// # Errors
/// The store's; it does not return otherwise.
pub(crate) fn crash(
    contender: Contender,
    directory: &Path,
    first: usize,
    count: usize,
) -> Result<()> {
    let peer = (contender.open)(directory)?;
    for item in fresh(first, count)? {
        peer.put(vec![item])?;
    }
    std::process::abort()
}
