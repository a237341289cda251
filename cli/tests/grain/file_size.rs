//! A limit on the size of files: a write beyond it is an error, and everything stays readable.

use std::process::{Command, Output};

use tempfile::TempDir;

/// Runs the command under `ulimit -f`, where no file can grow beyond a few KiB.
fn limited(store: &str, arguments: &str) -> Output {
    let command = format!("ulimit -f 4; exec \"$0\" --store \"$1\" --json {arguments}");
    let grain = env!("CARGO_BIN_EXE_grain");
    Command::new("sh").args(["-c", &command, grain, store]).output().unwrap()
}

fn grain(store: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_grain"));
    command.args(["--store", store, "--json"]).args(arguments).output().unwrap()
}

#[test]
fn a_write_beyond_it_is_an_error_and_the_store_can_be_read() {
    let dir = TempDir::new().unwrap();
    let store = dir.path().join("s");
    let store = store.to_str().unwrap();
    assert!(grain(store, &["init"]).status.success());
    let before = grain(store, &["stats"]);
    assert!(before.status.success());
    for writing in ["reindex", "verify --full", "compact"] {
        let output = limited(store, writing);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        // A process that a signal ended has no code.
        assert_eq!(output.status.code(), Some(1), "{writing}: {told}");
        assert!(told.contains("ERR_IO"), "{writing}: {told}");
    }
    for reading in ["--read-only stats", "--read-only verify --full", "--read-only audit"] {
        let output = limited(store, reading);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{reading}: {told}");
    }
    let after = grain(store, &["verify", "--full"]);
    assert!(after.status.success(), "{}", String::from_utf8_lossy(&after.stderr));
}
