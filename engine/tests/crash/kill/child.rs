//! A process that does one thing and is killed some time after it has begun.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// Tells the process to be killed where the store is.
const CHILD: &str = "GRAINSTORE_CHILD";
/// What it says when it begins.
const BEGINS: &str = "begins";
/// What stands before what it was told.
const TOLD: &str = "was told ";

/// A process that does not outlive the test.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Where the store is, in a process that is to be killed.
pub(crate) fn store_of_child() -> Option<String> {
    std::env::var(CHILD).ok()
}

/// Says that it begins.
pub(crate) fn begin() {
    say(BEGINS);
}

/// Says what it was told. Gives whether anybody listens.
pub(crate) fn told(what: impl std::fmt::Display) -> bool {
    say(&format!("{TOLD}{what}"))
}

fn say(what: &str) -> bool {
    let mut output = std::io::stdout().lock();
    writeln!(output, "\n{what}").and_then(|()| output.flush()).is_ok()
}

/// How long processes live that are to be killed, in milliseconds: so long, and in a long run
/// (`GRAINSTORE_KILL_ROUNDS`) as many more as it says, evenly up to the longest.
pub(crate) fn lives(short: &[u64]) -> Vec<u64> {
    let longest = short.iter().copied().max().unwrap_or_default();
    let more = (0..long_rounds()).map(|at| at * longest / long_rounds());
    short.iter().copied().chain(more).collect()
}

/// Says how many processes were killed in the middle of what they did. In a long run none would be no test.
pub(crate) fn assert_some_were_cut_short(cut_short: usize) {
    assert!(!is_long_run() || cut_short > 0, "no process of a long run was killed in the middle");
}

/// Returns `true` for a run with more rounds than the suite's.
pub(crate) fn is_long_run() -> bool {
    long_rounds() > 0
}

fn long_rounds() -> u64 {
    let rounds = std::env::var("GRAINSTORE_KILL_ROUNDS").ok();
    rounds.and_then(|rounds| rounds.parse().ok()).unwrap_or(0)
}

/// Runs the test of this name in a process of its own, and kills that so long after it has begun. Gives
/// what it was told by then.
pub(crate) fn kill_after(name: &str, directory: &Path, life_ms: u64) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut running = Running(child);
    assert!(output.any(|line| line == BEGINS), "{name} did not begin");
    // Not to wait for anything: this is how long the process lives.
    thread::sleep(Duration::from_millis(life_ms));
    running.0.kill().unwrap();
    running.0.wait().unwrap();
    output.filter_map(|line| line.strip_prefix(TOLD).map(str::to_owned)).collect()
}
