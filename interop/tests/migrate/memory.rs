//! An account of gigabytes is read with little memory.

use std::io::Read;
use std::process::Command;

use grainstore::prelude::*;
use grainstore_interop::Monitor;
use grainstore_interop::archive::ArchiveWriter;
use grainstore_interop::migrate::{self, Format, MigrateOptions};

/// Names the directory in which a child process works.
const CHILD: &str = "GRAINSTORE_MIGRATE_CHILD";
/// What the process may take, with its program and an empty store.
const MOST_BYTES: u64 = 100 << 20;
/// Bytes of an export of a large account.
const FULL_MB: u64 = 1900;
/// Messages of a conversation, and words of a message.
const MESSAGES: u64 = 50;
const WORDS: u64 = 1000;

/// An export that is written while it is read.
struct Export {
    left: u64,
    number: u64,
    part: std::io::Cursor<Vec<u8>>,
}

impl Export {
    fn of(megabytes: u64) -> Self {
        Self { left: megabytes << 20, number: 0, part: std::io::Cursor::new(b"[".to_vec()) }
    }

    fn next(&mut self) -> Option<Vec<u8>> {
        if self.left == 0 {
            return None;
        }
        self.number += 1;
        let messages: Vec<_> = (0..MESSAGES).map(|at| self.message(at)).collect();
        let (id, messages) = (self.number, messages.join(","));
        let text = format!(
            r#"{{"uuid": "c{id}", "name": "talk {id}", "created_at": "2026-01-01T00:00:00Z", "chat_messages": [{messages}]}}"#
        );
        self.left = self.left.saturating_sub(text.len() as u64);
        Some(format!("{text}{}", if self.left == 0 { "]" } else { "," }).into_bytes())
    }

    fn message(&self, at: u64) -> String {
        let seed = self.number * MESSAGES + at;
        let word = |step: u64| (seed * WORDS + step).wrapping_mul(0x9e37_79b9_7f4a_7c15) % 20_000;
        let words: Vec<_> = (0..WORDS).map(|step| format!("w{:x}", word(step))).collect();
        format!(
            r#"{{"uuid": "m{seed}", "sender": "human", "text": "{}", "created_at": "2026-01-01T00:00:00Z"}}"#,
            words.join(" ")
        )
    }
}

impl Read for Export {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        loop {
            match self.part.read(into)? {
                0 => match self.next() {
                    Some(part) => self.part = std::io::Cursor::new(part),
                    None => return Ok(0),
                },
                count => return Ok(count),
            }
        }
    }
}

/// What a test of its own process runs: reads an export to its end, and tells the most memory it had. What writing takes
/// beside is the store's, whose own test holds it.
#[test]
#[ignore = "run by the test of a large account"]
fn child() {
    let Ok(dir) = std::env::var(CHILD) else { return };
    let dir = std::path::Path::new(&dir);
    let store = Store::open(dir.join("store"), &OpenOptions::new().create(true)).unwrap();
    let session = store.session(SessionOptions::default());
    let options = MigrateOptions { dry_run: true, ..MigrateOptions::default() };
    let monitor = Monitor::default();
    let path = dir.join("export.zip");
    let report = migrate::run(&session, Format::Claude, &path, &options, &monitor).unwrap();
    assert!(report.added > MESSAGES && report.left_out == 0);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    println!("peak {}", peak.trim().trim_end_matches(" kB").trim());
}

/// `GRAINSTORE_MEMORY` is `full`, or the megabytes of the export.
#[cfg(target_os = "linux")]
#[test]
fn a_large_account_is_read_with_little_memory() {
    let megabytes = match std::env::var("GRAINSTORE_MEMORY").as_deref() {
        Ok("full") => FULL_MB,
        Ok(megabytes) => megabytes.parse().unwrap(),
        Err(_) => return,
    };
    let dir = tempfile::tempdir().unwrap();
    let mut writer = ArchiveWriter::create(dir.path().join("export.zip")).unwrap();
    writer.add("conversations.json", Export::of(megabytes)).unwrap();
    writer.finish().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["memory::child", "--exact", "--ignored", "--nocapture"])
        .env(CHILD, dir.path())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    let peak = told.lines().find_map(|line| line.strip_prefix("peak ")).unwrap();
    let peak = peak.parse::<u64>().unwrap() << 10;
    println!("{} MiB", peak >> 20);
    assert!(peak <= MOST_BYTES, "{} MiB", peak >> 20);
}
