//! What the run ran on: processor, file system, load, memory of this process, versions.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Serialize;

use crate::Result;

/// The lock file this program was built with.
const LOCK: &str = include_str!("../Cargo.lock");

/// For the head of the report.
#[derive(Debug, Clone, Serialize)]
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
            ],
        }
    }
}

/// Load of the last minute; more than the run itself asks for means a noisy machine.
#[must_use]
pub(crate) fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_ascii_whitespace().next().unwrap_or("unknown").to_owned()
}

/// Has the system write out whatever it still holds for its disks, so that what was done before does
/// not slow the writes that are measured next.
///
/// # Errors
/// Where there is no `sync` command.
pub(crate) fn quiet_disk() -> Result<()> {
    let status = Command::new("sync").status()?;
    if status.success() { Ok(()) } else { Err("sync failed".into()) }
}

/// Memory of this process that is resident, in bytes.
///
/// # Errors
/// Where the system has no `/proc/self/status`.
pub(crate) fn resident_bytes() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|rest| rest.split_ascii_whitespace().next());
    Ok(kibibytes.ok_or("no VmRSS line")?.parse::<u64>()? * 1024)
}

/// Lengths of all files below a directory, in bytes.
///
/// # Errors
/// For directories that cannot be read.
pub(crate) fn disk_bytes(directory: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        sum += if metadata.is_dir() { disk_bytes(&entry.path())? } else { metadata.len() };
    }
    Ok(sum)
}

/// The version a crate is locked to.
pub(crate) fn locked(name: &str) -> &str {
    let wanted = format!("name = \"{name}\"");
    let mut lines = LOCK.lines().skip_while(|line| *line != wanted).skip(1);
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
        assert_eq!(locked("redb"), "4.4.0");
        assert_eq!(locked("no such crate"), "unknown");
    }

    #[test]
    fn the_figures_of_this_process_are_there() {
        assert!(resident_bytes().unwrap() > 100_000);
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("below")).unwrap();
        fs::write(directory.path().join("one"), [0; 100]).unwrap();
        fs::write(directory.path().join("below/two"), [0; 11]).unwrap();
        assert_eq!(disk_bytes(directory.path()).unwrap(), 111);
    }
}
