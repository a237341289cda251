//! What the benchmark runs on, as far as it is nobody's secret; the memory of the process and the room of files.

use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;

use crate::error::{Code, Error, Result};

/// The machine.
#[derive(Debug, Serialize)]
pub(super) struct Machine {
    /// Threads that run at once.
    pub(super) cores: usize,
    pub(super) os: &'static str,
    pub(super) arch: &'static str,
    /// The type of the file system the stores are on, where the system tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) file_system: Option<String>,
}

impl Machine {
    /// This machine, with stores in a directory.
    pub(super) fn of(directory: &Path) -> Self {
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            os: std::env::consts::OS,
            arch: std::env::consts::ARCH,
            file_system: file_system(directory),
        }
    }

    /// Returns `true` if the stores are in memory, where a durable write costs nothing.
    pub(super) fn is_in_memory(&self) -> bool {
        matches!(self.file_system.as_deref(), Some("tmpfs" | "ramfs"))
    }
}

/// Most memory of this process that was resident, in bytes; `None` where there is no `/proc/self/status`.
pub(super) fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// Lengths of all files below a directory, in bytes.
pub(super) fn disk_bytes(directory: &Path) -> Result<f64> {
    let kibibytes = bytes_below(directory).map_err(|error| {
        Error::new(Code::Io, format!("{} cannot be read: {error}", directory.display()), "")
    })? / 1024;
    Ok(f64::from(u32::try_from(kibibytes).unwrap_or(u32::MAX)) * 1024.0)
}

fn bytes_below(directory: &Path) -> io::Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        sum += if metadata.is_dir() { bytes_below(&entry.path())? } else { metadata.len() };
    }
    Ok(sum)
}

/// The type of the file system with the longest mount point above a path.
fn file_system(path: &Path) -> Option<String> {
    let path = path.canonicalize().ok()?;
    let mounts = fs::read_to_string("/proc/mounts").ok()?;
    let mounts = mounts.lines().filter_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        Some((fields.next()?, fields.next()?))
    });
    let above = mounts.filter(|(point, _)| path.starts_with(point));
    above.max_by_key(|(point, _)| point.len()).map(|(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_below_a_directory_are_summed_to_a_kibibyte() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("below")).unwrap();
        fs::write(place.path().join("one"), [0; 2_000]).unwrap();
        fs::write(place.path().join("below/two"), [0; 1_100]).unwrap();
        assert!((disk_bytes(place.path()).unwrap() - 3_072.0).abs() < 0.1);
        assert!(disk_bytes(&place.path().join("none")).is_err());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_memory_and_the_file_system_are_told_on_linux() {
        assert!(peak_memory().is_some_and(|bytes| bytes > 100_000));
        assert!(Machine::of(Path::new("/")).file_system.is_some());
    }
}
