//! Every call that changes a file fails once, and from some call on for good: whatever the store does, and
//! whichever of its files it is. The truth and the index are among them, and so are the full text, the graphs,
//! the keyring, copies, backups and exports.
//!
//! The failures come from outside of the store, so nothing in it knows of them: `shim.c` is compiled here and
//! preloaded into a process that is this test again. Without a C compiler, or elsewhere than on Linux with glibc,
//! nothing is tried.
//!
//! A normal run fails some of the calls. All: `GRAINSTORE_SWEEP=full cargo test -p grainstore --test crash
//! faults::`; with `GRAINSTORE_DEED=backup` those of the deeds with this in their name.

#![expect(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "helpers of tests, which the allowance for tests does not reach"
)]

mod deeds;
mod world;

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use deeds::DEEDS;
use world::{CHILD, COUNT, World};

/// Calls that a normal run fails of each deed, at most.
const TRIED: usize = 3;

#[test]
fn a_disk_that_fails_at_any_call_costs_nothing_acknowledged() {
    if std::env::var_os(CHILD).is_some() {
        return;
    }
    let dir = TempDir::new().unwrap();
    let Some(shim) = compiled(dir.path()) else {
        println!("faults: skipped, there is no C compiler or no glibc");
        return;
    };
    let files = dir.path().join("files");
    std::fs::create_dir(&files).unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "faults::in_a_process_whose_disk_fails", "--nocapture"])
        .env(CHILD, &files)
        .env("FAULTS_UNDER", &files)
        .env(COUNT, dir.path().join("count"))
        .env("LD_PRELOAD", shim)
        .output()
        .unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    println!("{out}");
    assert!(child.status.success(), "{err}");
    assert!(out.contains("faults: all"), "{out} {err}");
}

fn compiled(dir: &Path) -> Option<PathBuf> {
    if !cfg!(all(target_os = "linux", target_env = "gnu")) {
        return None;
    }
    let shim = dir.join("shim.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crash/faults/shim.c");
    let mut cc = Command::new("cc");
    let cc = cc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&shim).arg(source).arg("-ldl");
    match cc.status() {
        Ok(status) => assert!(status.success(), "shim.c does not compile"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => panic!("{error}"),
    }
    Some(shim)
}

#[test]
fn in_a_process_whose_disk_fails() {
    let Some(files) = std::env::var_os(CHILD) else { return };
    let world = World::new(Path::new(&files));
    let wanted = std::env::var("GRAINSTORE_DEED").unwrap_or_default();
    for deed in DEEDS.into_iter().filter(|deed| deed.name.contains(&wanted)) {
        sweep(&world, &deed);
    }
    println!("faults: all");
}

/// Fails at every call of a deed in turn, or at some of them.
fn sweep(world: &World, deed: &deeds::Deed) {
    let total = world.calls_of(deed);
    assert!(total > 3, "{}: {total} calls", deed.name);
    let step = if is_full() { 1 } else { total.div_ceil(TRIED) };
    let mut failed = 0;
    for (number, how) in (1..=total).step_by(step).zip(["once", "from"].into_iter().cycle()) {
        failed += usize::from(world.attempt(deed, how, number));
        if is_full() {
            let other = if how == "once" { "from" } else { "once" };
            failed += usize::from(world.attempt(deed, other, number));
        }
    }
    println!("faults: {}: {total} calls, {failed} failures", deed.name);
    assert!(failed > 0, "{}: nothing failed", deed.name);
}

fn is_full() -> bool {
    std::env::var("GRAINSTORE_SWEEP").is_ok_and(|sweep| sweep == "full")
}
