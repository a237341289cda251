//! What the run ran on: processor, file system, load, versions.

use std::fs;
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::Result;

/// The lock file this program was built with.
const LOCK: &str = include_str!("../Cargo.lock");
/// The lock file of the program that has areev.
const AREEV_LOCK: &str = include_str!("../areev/Cargo.lock");

/// For the head of the report.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// The processor, as it calls itself.
    pub(crate) processor: String,
    /// Threads it runs at once.
    pub(crate) threads: usize,
    /// The file system of the stores.
    pub(crate) file_system: String,
    /// Load of the last minute when the run began.
    pub(crate) load_before: String,
    /// Crates and libraries under comparison.
    pub(crate) versions: Vec<String>,
}

impl Machine {
    /// This machine, with stores in a directory.
    #[must_use]
    pub(crate) fn of(stores: &Path) -> Self {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = info.lines().find_map(|line| line.strip_prefix("model name"));
        let model = model.and_then(|rest| rest.split_once(':')).map_or("unknown", |(_, name)| name);
        Self {
            processor: model.trim().to_owned(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            file_system: file_system(stores),
            load_before: load(),
            versions: vec![
                format!("grainstore {}", locked("grainstore")),
                format!("redb {}", locked("redb")),
                format!("SQLite {} (rusqlite {})", rusqlite::version(), locked("rusqlite")),
                format!("tantivy {}", locked("tantivy")),
                format!("areev {}", version_in(AREEV_LOCK, "areev-store")),
            ],
        }
    }

    /// In a line.
    #[must_use]
    pub(crate) fn place(&self) -> String {
        let Self { processor, threads, file_system, load_before, .. } = self;
        format!("{threads} threads of {processor}; stores on {file_system}; load {load_before}")
    }
}

/// Says that durable writes cost nothing where the stores are in memory.
///
/// # Errors
/// The output's.
pub(crate) fn warn_of_memory(machine: &Machine, out: &mut impl Write) -> Result<()> {
    if machine.file_system == "tmpfs" {
        writeln!(
            out,
            "- **the stores are in memory: figures of durable writes mean nothing; give --dir**"
        )?;
    }
    Ok(())
}

/// Load of the last minute; more than the run itself asks for means a noisy machine.
#[must_use]
pub(crate) fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_ascii_whitespace().next().unwrap_or("unknown").to_owned()
}

/// The version a crate is locked to.
pub(crate) fn locked(name: &str) -> &'static str {
    version_in(LOCK, name)
}

fn version_in(lock: &'static str, name: &str) -> &'static str {
    let wanted = format!("name = \"{name}\"");
    let mut lines = lock.lines().skip_while(|line| *line != wanted).skip(1);
    let version = lines.next().and_then(|line| line.strip_prefix("version = "));
    version.map_or("unknown", |version| version.trim_matches('"'))
}

/// The type of the file system with the longest mount point above a path.
fn file_system(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let mounts = mounts.lines().filter_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        Some((fields.next()?, fields.next()?))
    });
    let above = mounts.filter(|(point, _)| path.starts_with(point));
    let longest = above.max_by_key(|(point, _)| point.len());
    longest.map_or("unknown", |(_, kind)| kind).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_the_lock_file() {
        assert_eq!(locked("redb"), "4.6.0");
        assert_eq!(version_in(AREEV_LOCK, "areev-store"), "1.13.2");
        assert_eq!(locked("no such crate"), "unknown");
    }
}
