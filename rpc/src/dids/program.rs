//! A program that resolves DIDs: run with the DID as its last argument, it prints the document.
//!
//! No shell sees the DID. What it prints and how long it takes are bounded, and so is how often it runs.

use std::collections::HashMap;
#[cfg(unix)]
use std::fs::Metadata;
use std::io::Read;
#[cfg(unix)]
use std::os::unix::fs::PermissionsExt;
#[cfg(unix)]
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use grainstore::format::{Did, DidResolver, VerifyingKey};

use super::document::Answer;
use super::{NO_KEY, now_ms};
use crate::error::Result;
#[cfg(unix)]
use crate::error::{Code, Error};

/// Most bytes of a document.
pub(super) const MAX_DOCUMENT_BYTES: u64 = 256 << 10;
/// How long an answer is used again, also that there is none.
const KEPT: Duration = Duration::from_secs(60);
/// Most answers that are kept.
const MAX_KEPT: usize = 1_024;

/// Checks that a program is there and can be run, without running it. A name without a `/` is looked up in the `PATH`.
///
/// # Errors
/// `ERR_NOT_FOUND`; `ERR_IO` for what cannot be run.
#[cfg(unix)]
pub(super) fn check(name: &str) -> Result<()> {
    let paths = match name.contains('/') {
        true => vec![PathBuf::from(name)],
        false => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).map(|folder| folder.join(name)).collect()
        }
    };
    let hint = "name a program that resolves DIDs: by a path, or one of the PATH";
    let is_program = |found: &Metadata| found.is_file() && found.permissions().mode() & 0o111 != 0;
    let found: Vec<_> = paths.iter().filter_map(|path| std::fs::metadata(path).ok()).collect();
    if found.iter().any(is_program) {
        return Ok(());
    }
    let (code, why) = match found.is_empty() {
        true => (Code::NotFound, "there is no program"),
        false => (Code::Io, "it cannot be run: no program is"),
    };
    Err(Error::new(code, format!("{why} {name}, which is to resolve DIDs"), hint))
}

/// Other systems have names and rights of programs of their own: what cannot be run is told where a key is wanted.
#[cfg(not(unix))]
pub(super) fn check(_: &str) -> Result<()> {
    Ok(())
}

/// A [`DidResolver`] that asks a program.
#[derive(Debug)]
pub(super) struct Program {
    command: Vec<String>,
    deadline: Duration,
    kept: Mutex<HashMap<Did, (Instant, Answered)>>,
}

/// The key, or why there is none.
type Answered = std::result::Result<VerifyingKey, String>;

impl Program {
    pub(super) fn new(command: Vec<String>, deadline: Duration) -> Self {
        Self { command, deadline, kept: Mutex::default() }
    }

    /// Runs the program.
    fn ask(&self, did: &Did) -> Answered {
        let (program, given) = self.command.split_first().ok_or("no program is named")?;
        let mut command = Command::new(program);
        command.args(given).arg(did.as_str());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let started = command.spawn();
        let started = started.map_err(|error| format!("{program} cannot be run: {error}"))?;
        let printed = Running(started).printed(self.deadline);
        let printed = printed.map_err(|why| format!("{program} {why}"))?;
        let answer = serde_json::from_slice::<Answer>(&printed);
        let answer = answer.map_err(|_| format!("{program} printed no DID document in JSON"))?;
        let document =
            answer.document().ok_or_else(|| format!("{program} says that it was deactivated"))?;
        if document.id() != did.as_str() {
            return Err(format!("{program} printed the document of another DID"));
        }
        document.key(now_ms()).ok_or_else(|| NO_KEY.to_owned())
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<Did, (Instant, Answered)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DidResolver for Program {
    fn resolve(&self, did: &Did) -> Option<VerifyingKey> {
        let now = Instant::now();
        if let Some((at, answered)) = self.kept().get(did)
            && now.saturating_duration_since(*at) < KEPT
        {
            return answered.clone().ok();
        }
        let answered = self.ask(did);
        let mut kept = self.kept();
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(did.clone(), (Instant::now(), answered.clone()));
        answered.ok()
    }

    fn why_not(&self, did: &Did) -> Option<String> {
        self.kept().get(did).and_then(|(_, answered)| answered.clone().err())
    }
}

/// A running program, ended and waited for when this is dropped.
struct Running(Child);

impl Running {
    /// What it prints until it ends well, if that is not too much and not too late; else what it did.
    fn printed(&mut self, deadline: Duration) -> std::result::Result<Vec<u8>, String> {
        let end = Instant::now() + deadline;
        let late = || format!("did not end within {} ms", deadline.as_millis());
        let unheard = |error: std::io::Error| format!("cannot be heard: {error}");
        let output = self.0.stdout.take().ok_or("cannot be heard")?;
        let (sender, receiver) = mpsc::sync_channel(1);
        let read = move || {
            let mut bytes = Vec::new();
            let read = output.take(MAX_DOCUMENT_BYTES + 1).read_to_end(&mut bytes);
            // Where nobody waits any more there is nobody to tell.
            let _ = sender.send(read.map(|_| bytes));
        };
        let reading = std::thread::Builder::new().name("grainstore-did".to_owned());
        reading.spawn(read).map_err(unheard)?;
        let bytes = receiver.recv_timeout(deadline).map_err(|_| late())?.map_err(unheard)?;
        if bytes.len() as u64 > MAX_DOCUMENT_BYTES {
            return Err(format!("printed more than {MAX_DOCUMENT_BYTES} bytes"));
        }
        loop {
            match self.0.try_wait().map_err(unheard)? {
                Some(status) if status.success() => return Ok(bytes),
                Some(status) => return Err(format!("ended with {status}")),
                None if Instant::now() >= end => return Err(late()),
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
