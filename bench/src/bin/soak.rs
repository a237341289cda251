//! A store under steady work at a fixed budget of memory: two writers, two readers and two searchers, for as long as is
//! asked. Memory, latencies and files have to stay as they are after the first minutes.
//!
//! `cargo run --release -p grainstore-bench --bin soak [-- MINUTES [MEMORY_MIB [DIR]]]`; 60 minutes and 64 MiB unless
//! told otherwise. A line a minute: what the process takes in memory, bytes a grain on disk, and medians and 99th
//! percentiles of each kind of work, in microseconds.
#![expect(clippy::print_stdout, reason = "a program that prints what it measured")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use grainstore::cal::{Predicate, Query};
use grainstore::format::BeliefBuilder;
use grainstore::{
    EpochMs, EraseOptions, Grain, OpenOptions, PageOptions, Session, SessionOptions, Store,
};
use tempfile::TempDir;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Grains there are at the start.
const GRAINS: u64 = 100_000;
/// Subjects they are about.
const SUBJECTS: u64 = 8_000;
/// Grains of a batch at the start.
const BATCH: u64 = 1_000;
/// What each writer waits between two writes: some 30 a second.
const WRITER_PAUSE: Duration = Duration::from_millis(30);
/// What each reader and searcher waits.
const READER_PAUSE: Duration = Duration::from_millis(5);
/// Every so many writes of a writer a grain is superseded.
const SUPERSEDED: u64 = 3;
/// Words that objects are made of, the first ones in most of them.
const WORDS: u64 = 20_000;

/// The kinds of work, as the columns name them.
const KINDS: [&str; 5] = ["put", "supersede", "latest", "search", "assemble"];

/// One piece of work of a round.
type Work = fn(&Soak, u64) -> Result<(), Error>;
/// Times of one minute, by kind.
type Times = [Vec<u64>; KINDS.len()];

/// What all threads share.
struct Soak {
    session: Session,
    times: Mutex<Times>,
    next: AtomicU64,
    ended: AtomicBool,
}

fn main() -> Result<(), Error> {
    let mut words = std::env::args().skip(1);
    let mut number = |usual: u64| words.next().map_or(Ok(usual), |word| word.parse::<u64>());
    let (minutes, mebibytes) = (number(60)?, number(64)?);
    let own = TempDir::new()?;
    let dir = std::env::args().nth(3).map_or_else(|| own.path().to_owned(), PathBuf::from);
    let memory = usize::try_from(mebibytes << 20)?;
    let store = Store::open(&dir, &OpenOptions::new().create(true).memory_bytes(memory))?;
    let soak = Soak {
        session: store.session(SessionOptions::default()),
        times: Mutex::default(),
        next: AtomicU64::new(GRAINS),
        ended: AtomicBool::new(false),
    };
    for first in (0..GRAINS).step_by(usize::try_from(BATCH)?) {
        let grains: Result<Vec<Grain>, Error> = (first..first + BATCH).map(grain).collect();
        soak.session.put_batch(grains?)?;
    }
    store.flush()?;
    println!("{GRAINS} grains, {mebibytes} MiB, {minutes} minutes; microseconds p50 / p99");
    println!(
        "| minute | grains | resident MiB | peak MiB | disk B/grain | {} |",
        KINDS.join(" | ")
    );
    println!("|{}", "---|".repeat(5 + KINDS.len()));
    thread::scope(|scope| -> Result<(), Error> {
        let works: [Work; 3] = [write, read, search];
        let soak = &soak;
        let threads: Vec<_> = (0..6_u64)
            .zip(works.into_iter().cycle())
            .map(|(number, work)| scope.spawn(move || soak.repeat(number, work)))
            .collect();
        for minute in 1..=minutes {
            thread::sleep(Duration::from_secs(60));
            if soak.ended.load(Ordering::Relaxed) {
                break;
            }
            soak.erase(minute)?;
            soak.report(minute, &dir)?;
        }
        soak.ended.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().map_err(|_| "a thread panicked")??;
        }
        Ok(())
    })?;
    let verified = store.verify(true)?;
    println!("verify: {} problems", verified.problems.len());
    store.close()?;
    Ok(())
}

impl Soak {
    /// Does one kind of work until the end.
    fn repeat(&self, number: u64, work: Work) -> Result<(), Error> {
        let mut round = number << 32;
        while !self.ended.load(Ordering::Relaxed) {
            if let Err(error) = work(self, round) {
                self.ended.store(true, Ordering::Relaxed);
                return Err(error);
            }
            round += 1;
        }
        Ok(())
    }

    /// Times one piece of work.
    fn timed<T>(&self, kind: usize, work: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let done = work();
        let took = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(times) = times.get_mut(kind) {
            times.push(took);
        }
        done
    }

    /// Erases one user with all grains of theirs.
    fn erase(&self, minute: u64) -> Result<(), Error> {
        self.session.erase_user(&user(minute), "they asked", &EraseOptions::new())?;
        Ok(())
    }

    /// Prints the minute, and begins the next.
    fn report(&self, minute: u64, dir: &Path) -> Result<(), Error> {
        let times = std::mem::take(&mut *self.times.lock().unwrap_or_else(PoisonError::into_inner));
        let grains = self.session.store().stats()?.grains;
        let (resident, peak) = memory()?;
        let disk = size_of(dir)? / grains.max(1);
        let cells: Vec<String> = times.into_iter().map(cell).collect();
        let cells = cells.join(" | ");
        println!("| {minute} | {grains} | {resident} | {peak} | {disk} | {cells} |");
        Ok(())
    }
}

fn write(soak: &Soak, round: u64) -> Result<(), Error> {
    thread::sleep(WRITER_PAUSE);
    let number = soak.next.fetch_add(1, Ordering::Relaxed);
    let new = grain(number)?;
    if !round.is_multiple_of(SUPERSEDED) {
        soak.timed(0, || soak.session.put(new))?;
        return Ok(());
    }
    // Of the two writers each has subjects of its own, or both might supersede one grain.
    let subject = subject(scattered(round) / 2 * 2 + (round >> 32) % 2);
    let page = soak.session.query(&about(&subject)?, &PageOptions::first(4))?;
    // One of a user may be erased meanwhile.
    let mut rows = page.results.iter();
    let Some(old) = rows.find(|row| row.grain.text("user_id").is_none()) else { return Ok(()) };
    soak.timed(1, || soak.session.supersede(&old.content_address, new, None))?;
    Ok(())
}

fn read(soak: &Soak, round: u64) -> Result<(), Error> {
    thread::sleep(READER_PAUSE);
    let query = about(&subject(scattered(round)))?;
    soak.timed(2, || soak.session.query(&query, &PageOptions::first(16)))?;
    Ok(())
}

fn search(soak: &Soak, round: u64) -> Result<(), Error> {
    thread::sleep(READER_PAUSE);
    let words = format!("{} {}", word(scattered(round)), word(scattered(round + 1)));
    if !round.is_multiple_of(8) {
        let query = Query::default().searching(words);
        soak.timed(3, || soak.session.query(&query, &PageOptions::first(10)))?;
        return Ok(());
    }
    let statement = format!(
        "ASSEMBLE reply FOR \"the next reply\" \
         FROM facts: (RECALL beliefs ABOUT \"{}\" LIMIT 16), \
         found: (RECALL beliefs LIKE \"{words}\" LIMIT 10), recent: (RECALL beliefs RECENT 10) \
         BUDGET 2000 tokens PRIORITY facts > found > recent",
        subject(scattered(round))
    );
    soak.timed(4, || soak.session.ask(&statement))?;
    Ok(())
}

fn about(subject: &str) -> Result<Query, Error> {
    Ok(Query::default().when(Predicate::text_is("subject", subject)?))
}

/// The grain of a number; one in ten belongs to a user, who has ten. Whoever is erased gets no new ones.
fn grain(number: u64) -> Result<Grain, Error> {
    let words = 4 + scattered(number) % 9;
    let object: Vec<String> = (0..words).map(|at| word(scattered(number * 16 + at))).collect();
    let time = EpochMs::new(1_700_000_000_000 + i64::try_from(number)?);
    let relation = format!("mg:relation_{}", number % 12);
    let (subject, object) = (subject(number), format!("{} number{number}", object.join(" ")));
    let belief = BeliefBuilder::new(time, subject, relation, object, 0.9);
    let belief = match number % 10 {
        0 => belief.user_id(user(number / 100)),
        _ => belief,
    };
    Ok(belief.build()?)
}

fn subject(number: u64) -> String {
    format!("subject {}", number % SUBJECTS)
}

fn user(number: u64) -> String {
    format!("user {number}")
}

/// A word: the n-th most frequent is about 1/n as frequent as the first.
fn word(random: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "any number of that size will do")]
    let share = (random % 1_000_000) as f64 / 1e6;
    #[expect(clippy::cast_precision_loss, reason = "small")]
    let rank = (WORDS as f64).powf(share);
    format!("{rank:.0}").bytes().map(|digit| char::from(digit.wrapping_add(b'k' - b'0'))).collect()
}

/// Numbers without a pattern (the finaliser of splitmix64).
fn scattered(number: u64) -> u64 {
    let number = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

/// Median and 99th percentile.
fn cell(mut times: Vec<u64>) -> String {
    times.sort_unstable();
    let at = |percent: usize| times.get(times.len() * percent / 100).copied().unwrap_or_default();
    format!("{} / {}", at(50), at(99))
}

/// What the process takes and took at most, in MiB.
fn memory() -> Result<(u64, u64), Error> {
    let status = fs::read_to_string("/proc/self/status")?;
    let of = |name: &str| -> Option<u64> {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kilobytes| kilobytes >> 10)
    };
    of("VmRSS").zip(of("VmHWM")).ok_or_else(|| "no figures of memory in /proc".into())
}

fn size_of(dir: &Path) -> Result<u64, Error> {
    let mut size = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        // A file may be replaced while it is looked at.
        size += match entry.metadata() {
            Ok(file) if file.is_dir() => size_of(&entry.path())?,
            Ok(file) => file.len(),
            Err(_) => 0,
        };
    }
    Ok(size)
}
