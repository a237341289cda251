//! `grain keys`: signing keys, and the key of an encrypted store.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use data_encoding::BASE64;
use grainstore::format::SigningKey;
use grainstore::format::cose::Algorithm;
use grainstore_rpc::signing_key;
use serde::Deserialize;
use serde_json::json;
use zeroize::Zeroizing;

use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::input::Source;
use crate::names::{ALGORITHMS, named};
use crate::output::Output;
use crate::reach::file_name;

/// Make keys to sign with; change the key of an encrypted store
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
        /// What the key is for
        #[arg(long, value_parser = named::<Algorithm>(ALGORITHMS), default_value = "ed25519")]
        algorithm: Algorithm,
    },
    /// Change the key of an encrypted store (--key-file has the present one), or with --user the key of one
    /// person, whose grains are encrypted anew
    Rotate {
        /// The file with the new key of the store; it is made where there is none
        // Options of every command may stand before this one, where clap does not compare them with it.
        file: Option<PathBuf>,
    },
    /// Print the DID of the key in a file
    Show {
        /// The file
        file: Source,
        /// What the key is for: a file does not say
        #[arg(long, value_parser = named::<Algorithm>(ALGORITHMS), default_value = "ed25519")]
        algorithm: Algorithm,
    },
}

/// The key a command signs with.
#[derive(Debug, Args)]
pub(super) struct KeyOptions {
    /// The key: a file of 32 bytes, as `grain keys new` makes it
    #[arg(long, value_name = "FILE")]
    key_seed: Source,
    /// What the key is for
    #[arg(long, value_parser = named::<Algorithm>(ALGORITHMS), default_value = "ed25519")]
    algorithm: Algorithm,
}

impl KeyOptions {
    pub(super) fn read(&self, output: &mut Output<'_>) -> Result<SigningKey> {
        read_signing_key(&self.key_seed, self.algorithm, output)
    }
}

/// Most bytes read of a key file.
const MAX_KEY_FILE_BYTES: usize = 1024;

/// Reads the key in a file; an error names the file.
pub(super) fn read_signing_key(
    source: &Source,
    algorithm: Algorithm,
    output: &mut Output<'_>,
) -> Result<SigningKey> {
    let secret = read_secret(source, output)?;
    signing_key(algorithm, &secret).map_err(|error| error.in_context(&source.to_string()))
}

fn read_secret(source: &Source, output: &mut Output<'_>) -> Result<Zeroizing<Vec<u8>>> {
    source.read(MAX_KEY_FILE_BYTES, output).map(Zeroizing::new).map_err(|error| {
        error.with_hint_for(Code::TooLarge.name(), "a key has 32 bytes; `grain keys new` makes one")
    })
}

/// Reads the seed of an Ed25519 key in a file, as base64; an error names the file.
pub(super) fn read_seed(source: &Source, output: &mut Output<'_>) -> Result<Zeroizing<String>> {
    let secret = read_secret(source, output)?;
    signing_key(Algorithm::EdDsa, &secret)
        .map_err(|error| error.in_context(&source.to_string()))?;
    Ok(Zeroizing::new(BASE64.encode(&secret)))
}

impl Keys {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let (key, file) = match self.what {
            What::Rotate { file } => {
                return match (file, context.globals.user.take()) {
                    (Some(file), None) => rotate(&file, context),
                    (None, Some(user)) => rotate_user(&user, context),
                    (file, _) => Err(which_key(file.is_some())),
                };
            }
            What::New { file, algorithm } => {
                let (key, secret) = new_key(algorithm)?;
                write_new(&file, &*secret)?;
                (key, file.display().to_string())
            }
            What::Show { file, algorithm } => {
                (read_signing_key(&file, algorithm, &mut context.output)?, file.to_string())
            }
        };
        let did = key.did();
        let answer = json!({ "did": did, "file": file });
        context.output.answer(&answer, |output| output.line(did.as_str()))
    }
}

/// Rewraps the secrets of the store under another key.
fn rotate(file: &Path, context: &mut Context<'_>) -> Result<()> {
    context.reach()?.call("rotate_keys", &json!({ "key_file": file_name(file)? }))?;
    let file = file.display().to_string();
    let answer = json!({ "rotated": true, "key_file": file });
    let line = format!("from now on the store opens with {file}");
    context.output.answer(&answer, |output| output.line(&line))
}

/// Refuses both keys, or none.
fn which_key(both: bool) -> Error {
    let message = match both {
        true => "a file with a new key of the store was given, and --user",
        false => "neither a file with a new key of the store was given, nor --user",
    };
    Error::usage(Code::Schema, message, "one of them says which key is changed")
}

/// Re-encrypts the rows of a user, whom `--user` names: the session is nobody's.
fn rotate_user(user: &str, context: &mut Context<'_>) -> Result<()> {
    let told = context.reach()?.call("rotate_keys", &json!({ "user_id": user }))?;
    let Rotated { rows } = told.read()?;
    let line = format!("{rows} rows are encrypted anew, and the former key is destroyed");
    context.output.answer(&told, |output| output.line(&line))
}

/// The answer to the change of a user's key.
#[derive(Deserialize)]
struct Rotated {
    rows: u64,
}

/// Creates a new key and its secret.
fn new_key(algorithm: Algorithm) -> Result<(SigningKey, Zeroizing<[u8; 32]>)> {
    let mut secret = Zeroizing::new([0; 32]);
    loop {
        getrandom::fill(&mut *secret).map_err(|error| {
            Error::new(Code::Io, format!("no random bytes: {error}"), "check the system")
        })?;
        // For P-256, one secret in four thousand million is not below the group order.
        if let Ok(key) = signing_key(algorithm, &*secret) {
            return Ok((key, secret));
        }
    }
}

/// Creates a file durably, and removes it again on a failure.
fn write_new(path: &Path, bytes: &[u8]) -> Result<()> {
    grainstore::check_outside(path)?;
    let mut file = create_new(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            let message = format!("{} is there already", path.display());
            Error::new(
                Code::Conflict,
                message,
                "name another file: a lost key cannot be made again",
            )
        }
        _ => write_error(path, &error),
    })?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(|error| {
        // The first error is reported.
        let _ = fs::remove_file(path);
        write_error(path, &error)
    })
}

fn create_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn write_error(path: &Path, error: &io::Error) -> Error {
    Error::new(Code::Io, format!("cannot write {}: {error}", path.display()), "check the path")
}
