//! Reaching the process that has a store open: connecting, and the greeting that proves the key.

use std::collections::BTreeMap;
use std::io::{self, BufReader, ErrorKind};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use grainstore::{OpenOptions, SessionOptions};

use super::greeting::{First, Join, Joined, Reply, bound, challenge, digits, is_answer};
use super::greeting::{not_understood, receive, send};
use super::shared::BUSY_HINT;
use super::socket::{connect, peer};
use crate::error::{Code, Error, Result};

/// Said of an owner that may not be spoken with.
const ANOTHER_USER: &str = "the store is open in a process of another user";
/// Time that a live process has for a sign of life.
pub(super) const SIGN_OF_LIFE: Duration = Duration::from_secs(5);
/// Time that a greeting has at the least.
const SHORTEST_GREETING: Duration = Duration::from_millis(100);

/// Who joins, with what.
pub(crate) struct Joining<'j> {
    pub(super) directory: &'j Path,
    pub(super) open: &'j OpenOptions,
    pub(super) settings: &'j BTreeMap<String, String>,
    pub(super) session: &'j SessionOptions,
}

/// A process that was greeted.
pub(super) struct Reached {
    pub(super) reader: BufReader<UnixStream>,
    pub(super) joined: Joined,
    pub(super) pid: u32,
}

/// Connects to the process that has a store open, and greets it. `None` if nobody listens, or it ends.
pub(super) fn reach(
    as_who: &Joining<'_>,
    deadline: Instant,
    first: impl FnOnce(Join) -> First,
) -> Result<Option<Reached>> {
    // What a passphrase takes to derive the key, the other does not wait for. A wrong one it is asked about below.
    if as_who.open.has_key() {
        let _ = as_who.open.key_proof(as_who.directory, b"");
    }
    let until = deadline.min(Instant::now() + SIGN_OF_LIFE);
    let stream = match connect(as_who.directory, until) {
        Ok(Some(stream)) => stream,
        Ok(None) => return Ok(None),
        Err(error) if is_timeout(&error) => {
            let message = "the store is open in a process that takes no connections";
            return Err(Error::refused("ERR_BUSY", message.to_owned(), BUSY_HINT));
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return Err(Error::new_access(ANOTHER_USER));
        }
        Err(error) => return Err(Error::refused("ERR_BUSY", error.to_string(), BUSY_HINT)),
    };
    let owner = peer(&stream)?;
    if !owner.is_same_user {
        return Err(Error::new_access(ANOTHER_USER));
    }
    let mut reader = BufReader::with_capacity(64 << 10, stream);
    match greet(as_who, &mut reader, deadline, first) {
        Ok(joined) => Ok(Some(Reached { reader, joined, pid: owner.pid })),
        Err(Greeting::Ended) => Ok(None),
        Err(Greeting::Silent) => Err(Error::owner_hangs(owner.pid)),
        Err(Greeting::Refused(error)) => Err(error),
    }
}

/// How a greeting ended early.
pub(super) enum Greeting {
    /// The other process ends, or was killed.
    Ended,
    Silent,
    Refused(Error),
}

/// Joins on a connected socket.
fn greet(
    as_who: &Joining<'_>,
    reader: &mut BufReader<UnixStream>,
    deadline: Instant,
    first: impl FnOnce(Join) -> First,
) -> std::result::Result<Joined, Greeting> {
    let left = deadline.saturating_duration_since(Instant::now());
    let left = left.clamp(SHORTEST_GREETING, SIGN_OF_LIFE);
    let stream = reader.get_ref();
    let timed = stream.set_read_timeout(Some(left)).and(stream.set_write_timeout(Some(left)));
    timed.map_err(|_| Greeting::Ended)?;
    let own = challenge().map_err(Greeting::Refused)?;
    let join = Join::new(as_who.settings, as_who.open.has_key(), own.clone(), as_who.session);
    say(stream, &first(join))?;
    let joined = match hear(reader)? {
        Reply::Joined(joined) => joined,
        Reply::Refused(refused) => return Err(Greeting::Refused(refused.into())),
        Reply::Done | Reply::Embed { .. } => return Err(Greeting::Ended),
    };
    let Some(proof) = &joined.proof else {
        if !as_who.open.has_key() {
            return Ok(joined);
        }
        let message = "the process that has the store open proves no key";
        return Err(Greeting::Refused(Error::new(Code::Key, message, "end that process")));
    };
    let prove = |side| {
        let challenge = bound(side, &proof.challenge, &own);
        let proven = as_who.open.key_proof(as_who.directory, &challenge);
        proven.map_err(|error| Greeting::Refused(error.into()))?.ok_or_else(|| {
            let message = "the keyring of the store is not there";
            Greeting::Refused(Error::new(Code::Key, message, "restore it from a backup"))
        })
    };
    if !is_answer(&prove("owner")?, &proof.answer) {
        let message = "the process that has the store open does not have its key";
        return Err(Greeting::Refused(Error::new(Code::Key, message, "end that process")));
    }
    say(reader.get_ref(), &digits(&prove("relay")?))?;
    match hear(reader)? {
        Reply::Done => Ok(joined),
        Reply::Refused(refused) => Err(Greeting::Refused(refused.into())),
        Reply::Joined(_) | Reply::Embed { .. } => Err(Greeting::Ended),
    }
}

fn say(mut stream: &UnixStream, what: &impl serde::Serialize) -> std::result::Result<(), Greeting> {
    send(&mut stream, what).map_err(|error| greeting(&error))
}

pub(super) fn hear<T: serde::de::DeserializeOwned>(
    reader: &mut BufReader<UnixStream>,
) -> std::result::Result<T, Greeting> {
    receive(reader).map_err(|error| greeting(&error))
}

/// Tells apart a process that has ended, one that is silent, and one that speaks otherwise.
fn greeting(error: &io::Error) -> Greeting {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Greeting::Silent,
        ErrorKind::InvalidData => Greeting::Refused(not_understood(error)),
        _ => Greeting::Ended,
    }
}

pub(super) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
