//! What the system knows: memory of this process, the room of files, and a disk without work.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Result;

/// Has the system write out whatever it still holds for its disks, so that what was done before does
/// not slow the writes that are measured next.
///
/// # Errors
/// Where there is no `sync` command.
pub fn quiet_disk() -> Result<()> {
    let status = Command::new("sync").status()?;
    if status.success() { Ok(()) } else { Err("sync failed".into()) }
}

/// Memory of this process that is resident, in bytes.
///
/// # Errors
/// Where the system has no `/proc/self/status`.
pub fn resident_bytes() -> Result<u64> {
    status_bytes("VmRSS:")
}

/// Most memory of this process that was resident, in bytes.
///
/// # Errors
/// Where the system has no `/proc/self/status`.
pub(crate) fn peak_bytes() -> Result<u64> {
    status_bytes("VmHWM:")
}

/// Lengths of all files below a directory, in bytes.
///
/// # Errors
/// For directories that cannot be read.
pub fn disk_bytes(directory: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        sum += if metadata.is_dir() { disk_bytes(&entry.path())? } else { metadata.len() };
    }
    Ok(sum)
}

fn status_bytes(name: &str) -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kibibytes = line.and_then(|rest| rest.split_ascii_whitespace().next());
    Ok(kibibytes.ok_or("the system does not tell memory")?.parse::<u64>()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_this_process_are_there() {
        assert!(resident_bytes().unwrap() > 100_000);
        assert!(peak_bytes().unwrap() > 100_000);
        let directory = std::env::temp_dir().join(format!("compare-facts-{}", std::process::id()));
        fs::create_dir_all(directory.join("below")).unwrap();
        fs::write(directory.join("one"), [0; 100]).unwrap();
        fs::write(directory.join("below/two"), [0; 11]).unwrap();
        assert_eq!(disk_bytes(&directory).unwrap(), 111);
        fs::remove_dir_all(&directory).unwrap();
    }
}
