//! The first lines between a process that has a store open and one that joins it: versions, settings, and the proof
//! of the key of an encrypted store.

use std::collections::BTreeMap;
use std::io::{self, BufRead, ErrorKind, Write};

use data_encoding::HEXLOWER;
use grainstore::{SessionOptions, Store};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::embedding::Model;
use crate::error::{Code, Error, Result};
use crate::lines::{Line, read_line};

/// The version of what is spoken on the socket.
const PROTOCOL: u32 = 3;
/// The version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The setting of the embedder.
pub(super) const EMBEDDER: &str = "embedder";
/// Bytes of a challenge.
const CHALLENGE_BYTES: usize = 32;
/// Most bytes of a line of a greeting.
const MAX_LINE_BYTES: usize = 1 << 20;

/// The first line of a connection.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum First {
    /// Works on the store as this session.
    Join(Join),
    /// Makes vectors by this model, where the owner of the store asks for them.
    Embed(Join, Model),
    /// Asks for a sign of life.
    Ping,
    /// Cancels what runs on a connection.
    Cancel(u64),
}

/// Who joins.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Join {
    protocol: u32,
    version: String,
    settings: BTreeMap<String, String>,
    has_key: bool,
    pub(super) challenge: String,
    pub(super) session: Scope,
}

/// A session's options, as they are sent.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Scope {
    namespace: Option<String>,
    user_id: Option<String>,
    actor: Option<String>,
    agent_id: Option<String>,
    purposes: Vec<String>,
    unprivileged: bool,
}

/// The answer to a first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    Joined(Joined),
    /// Life, and work that was cancelled.
    Done,
    /// An embedder will be asked for vectors; or there is no need, since the owner has one.
    Embed {
        is_needed: bool,
    },
    Refused(Refused),
}

/// The welcome of the process that has the store open.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Joined {
    /// The number of the connection, for [`First::Cancel`].
    pub(super) connection: u64,
    /// A number by chance of who has the store open.
    pub(super) owner: u64,
    /// The store's number, for good, in hexadecimal digits.
    pub(super) store: String,
    /// What is asked of an encrypted store's key, with the answer to what the other asked.
    pub(super) proof: Option<Proof>,
}

/// A challenge, and the answer to the other's.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Proof {
    pub(super) challenge: String,
    pub(super) answer: String,
}

/// A refusal to work together.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Refused {
    pub(super) code: String,
    pub(super) message: String,
    pub(super) hint: String,
}

impl From<&SessionOptions> for Scope {
    fn from(options: &SessionOptions) -> Self {
        Self {
            namespace: options.namespace.clone(),
            user_id: options.user_id.clone(),
            actor: options.actor.clone(),
            agent_id: options.agent_id.clone(),
            purposes: options.purposes.clone(),
            unprivileged: options.unprivileged,
        }
    }
}

impl From<Scope> for SessionOptions {
    fn from(scope: Scope) -> Self {
        let Scope { namespace, user_id, actor, agent_id, purposes, unprivileged } = scope;
        Self { namespace, user_id, actor, agent_id, purposes, unprivileged }
    }
}

impl From<&Error> for Refused {
    fn from(error: &Error) -> Self {
        match error.refusal() {
            Some(refusal) => Self {
                code: refusal.code.to_string(),
                message: refusal.message.clone(),
                hint: refusal.hint.clone(),
            },
            None => Self {
                code: Code::Io.name().to_owned(),
                message: error.to_string(),
                hint: String::new(),
            },
        }
    }
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        Self::refused(refused.code, refused.message, refused.hint)
    }
}

impl Join {
    pub(super) fn new(
        settings: &BTreeMap<String, String>,
        has_key: bool,
        challenge: String,
        session: &SessionOptions,
    ) -> Self {
        Self {
            protocol: PROTOCOL,
            version: VERSION.to_owned(),
            settings: settings.clone(),
            has_key,
            challenge,
            session: session.into(),
        }
    }

    /// Refuses who speaks another version, has other settings, or lacks a key. `settings` are those of this
    /// process, which the store's own complete.
    pub(super) fn check(&self, store: &Store, settings: &BTreeMap<String, String>) -> Result<()> {
        let pid = std::process::id();
        if (self.protocol, self.version.as_str()) != (PROTOCOL, VERSION) {
            let message = format!(
                "process {pid}, which has the store open, is grainstore {VERSION} (socket {PROTOCOL}); this one is \
                 {} (socket {})",
                self.version, self.protocol
            );
            return Err(Error::refused(
                "ERR_STORE_VERSION",
                message,
                "end that process, or use its version",
            ));
        }
        if self.has_key && !store.is_encrypted() {
            let hint = "leave the key away";
            return Err(Error::new(
                Code::Key,
                "the store is not encrypted, and a key was given",
                hint,
            ));
        }
        let stored = store.settings()?;
        for (name, value) in &self.settings {
            // Its embedder is asked where there is no other: see `embedding`.
            if name == EMBEDDER && !settings.contains_key(EMBEDDER) {
                continue;
            }
            let own = settings.get(name).or_else(|| stored.get(name.as_str()));
            let stored = stored.get(name.as_str());
            let own = stored.or(own).map_or("none", String::as_str);
            if own != value {
                let message = format!(
                    "{name}: process {pid}, which has the store open, has {own}, and this one {value}"
                );
                let hint = "give all processes on one store the same options";
                return Err(Error::new(Code::Conflict, message, hint));
            }
        }
        Ok(())
    }
}

/// A new challenge.
pub(super) fn challenge() -> Result<String> {
    let mut bytes = [0; CHALLENGE_BYTES];
    getrandom::fill(&mut bytes)
        .map_err(|error| Error::new(Code::Io, format!("no random bytes: {error}"), ""))?;
    Ok(HEXLOWER.encode(&bytes))
}

/// What the one side proves the key over: both challenges and which side it is, so that no answer serves twice.
pub(super) fn bound(side: &str, own: &str, other: &str) -> Vec<u8> {
    format!("grainstore socket v1 {side} {own} {other}").into_bytes()
}

/// Whether an answer in hexadecimal digits is the expected one, in constant time.
pub(super) fn is_answer(expected: &[u8; 32], given: &str) -> bool {
    use subtle::ConstantTimeEq as _;
    let given = HEXLOWER.decode(given.as_bytes()).unwrap_or_default();
    expected.as_slice().ct_eq(&given).into()
}

/// The hexadecimal digits of an answer.
pub(super) fn digits(answer: &[u8; 32]) -> String {
    HEXLOWER.encode(answer)
}

/// Reads a line of a greeting; what is none of this version is invalid data.
pub(super) fn receive<T: DeserializeOwned>(reader: &mut impl BufRead) -> io::Result<T> {
    receive_within(reader, MAX_LINE_BYTES)
}

/// The same, of a line of so many bytes at most.
pub(super) fn receive_within<T: DeserializeOwned>(
    reader: &mut impl BufRead,
    limit: usize,
) -> io::Result<T> {
    let mut line = Vec::new();
    match read_line(reader, &mut line, limit)? {
        Line::Read => serde_json::from_slice(&line)
            .map_err(|error| io::Error::new(ErrorKind::InvalidData, error.to_string())),
        Line::End => Err(io::Error::from(ErrorKind::UnexpectedEof)),
        Line::TooLong => Err(io::Error::new(ErrorKind::InvalidData, "a line of too many bytes")),
    }
}

/// Writes a line of a greeting.
pub(super) fn send(writer: &mut impl Write, what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    writer.write_all(&line)?;
    writer.flush()
}

/// The error of a line that is no greeting of this version.
pub(super) fn not_understood(error: &io::Error) -> Error {
    let message = format!("what the other process says is not understood: {error}");
    Error::refused("ERR_STORE_VERSION", message, "use one version of grainstore for all processes")
}
