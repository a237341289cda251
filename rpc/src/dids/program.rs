//! A program that resolves DIDs: run with the DID as its last argument, it prints the document.
//!
//! No shell sees the DID. What it prints and how long it takes are bounded, and so is how often it runs.

use std::collections::HashMap;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use grainstore::format::{Did, DidResolver, VerifyingKey};

use super::document::Answer;
use super::now_ms;

/// Most bytes of a document.
pub(super) const MAX_DOCUMENT_BYTES: u64 = 256 << 10;
/// How long an answer is used again, also that there is none.
const KEPT: Duration = Duration::from_secs(60);
/// Most answers that are kept.
const MAX_KEPT: usize = 1_024;

/// A [`DidResolver`] that asks a program.
#[derive(Debug)]
pub(super) struct Program {
    command: Vec<String>,
    deadline: Duration,
    kept: Mutex<HashMap<Did, (Instant, Option<VerifyingKey>)>>,
}

impl Program {
    pub(super) fn new(command: Vec<String>, deadline: Duration) -> Self {
        Self { command, deadline, kept: Mutex::default() }
    }

    /// Runs the program; `None` for whatever does not lead to a key.
    fn ask(&self, did: &Did) -> Option<VerifyingKey> {
        let (program, given) = self.command.split_first()?;
        let mut command = Command::new(program);
        command.args(given).arg(did.as_str());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let printed = Running(command.spawn().ok()?).printed(self.deadline)?;
        let document = serde_json::from_slice::<Answer>(&printed).ok()?.document()?;
        (document.id() == did.as_str()).then(|| document.key(now_ms()))?
    }
}

impl DidResolver for Program {
    fn resolve(&self, did: &Did) -> Option<VerifyingKey> {
        let now = Instant::now();
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, key)) = kept().get(did)
            && now.saturating_duration_since(*at) < KEPT
        {
            return key.clone();
        }
        let key = self.ask(did);
        let mut kept = kept();
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(did.clone(), (Instant::now(), key.clone()));
        key
    }
}

/// A running program, ended and waited for when this is dropped.
struct Running(Child);

impl Running {
    /// What it prints until it ends well, if that is not too much and not too late.
    fn printed(&mut self, deadline: Duration) -> Option<Vec<u8>> {
        let end = Instant::now() + deadline;
        let output = self.0.stdout.take()?;
        let (sender, receiver) = mpsc::sync_channel(1);
        let read = move || {
            let mut bytes = Vec::new();
            let read = output.take(MAX_DOCUMENT_BYTES + 1).read_to_end(&mut bytes);
            // Where nobody waits any more there is nobody to tell.
            let _ = sender.send(read.map(|_| bytes));
        };
        std::thread::Builder::new().name("grainstore-did".to_owned()).spawn(read).ok()?;
        let bytes = receiver.recv_timeout(deadline).ok()?.ok()?;
        if bytes.len() as u64 > MAX_DOCUMENT_BYTES {
            return None;
        }
        loop {
            match self.0.try_wait().ok()? {
                Some(status) => return status.success().then_some(bytes),
                None if Instant::now() >= end => return None,
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
