//! `grain keys`: keys to sign with.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use grainstore::format::SigningKey;
use serde_json::json;
use zeroize::Zeroizing;

use crate::context::Context;
use crate::error::{Code, Error, Result};

/// Make keys to sign with
#[derive(Debug, Args)]
pub(crate) struct Keys {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Write a new Ed25519 key to a file that only you may read, and print its DID
    New {
        /// The file; one that is there already is never written over
        file: PathBuf,
    },
}

impl Keys {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let What::New { file } = self.what;
        let mut seed = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *seed).map_err(|error| {
            Error::new(Code::Io, format!("no random bytes: {error}"), "check the system")
        })?;
        write_new(&file, &*seed)?;
        let did = SigningKey::ed25519_from_seed(&seed).did();
        if context.output.is_json() {
            let path = file.display().to_string();
            return context.output.json_line(&json!({ "did": did, "file": path }));
        }
        context.output.line(did.as_str())
    }
}

/// Writes a file that was not there, durably; what is left of a failure is removed.
fn write_new(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = create_new(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            let message = format!("{} is there already", path.display());
            Error::new(
                Code::Conflict,
                message,
                "name another file: a lost key cannot be made again",
            )
        }
        _ => failed(path, &error),
    })?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(|error| {
        // The failure that led here is told.
        let _ = fs::remove_file(path);
        failed(path, &error)
    })
}

fn create_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn failed(path: &Path, error: &io::Error) -> Error {
    Error::new(Code::Io, format!("cannot write {}: {error}", path.display()), "check the path")
}
