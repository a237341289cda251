//! The side of a process that joins: a connection to the process that has the store open.

use std::collections::BTreeMap;
use std::io::{self, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use grainstore::{OpenOptions, SessionOptions};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::greeting::{First, Join, Joined, Reply, bound, challenge, digits, is_answer};
use super::greeting::{not_understood, receive, send};
use super::shared::BUSY_HINT;
use super::socket::{connect, peer};
use crate::error::{Code, Error, Result};
use crate::lines::{Line, read_line};

/// Most bytes of a line of an answer.
const MAX_LINE_BYTES: usize = 64 << 20;
/// Bytes of the line buffer that are kept for the next answer.
const RETAINED_BUFFER_BYTES: usize = 1 << 20;
/// Time between two looks at whether the owner still lives.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Time between two looks at whether the request is cancelled.
const LOOK_AT_CANCEL_EVERY: Duration = Duration::from_millis(50);
/// Time that a live process has for a sign of life.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// Time that a greeting has at the least.
const SHORTEST_GREETING: Duration = Duration::from_millis(100);

/// A connection that has joined.
#[derive(Debug)]
pub(crate) struct Connection {
    reader: BufReader<UnixStream>,
    line: Vec<u8>,
    number: u64,
    pid: u32,
    directory: std::path::PathBuf,
    /// True if the last sign of life was asked for in vain, since nobody listens.
    unreached: bool,
}

/// What came of looking for the process that has a store open.
pub(crate) enum Sought<C = Connection> {
    Joined(Box<C>),
    /// Nobody listens: it is being opened or closed, or is open for one process alone.
    Nobody,
}

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum Lost {
    /// It was not sent whole, so that nothing was done.
    Unsent,
    /// The owner shows no sign of life, and has not got the request.
    Stuck,
    /// The owner ended before it answered.
    Unanswered,
    /// The owner shows no sign of life, and may have got it.
    Hangs,
    /// Who reads the events has failed.
    Listener(Error),
}

/// Who joins, with what.
pub(crate) struct Joining<'j> {
    pub(super) directory: &'j Path,
    pub(super) open: &'j OpenOptions,
    pub(super) settings: &'j BTreeMap<String, String>,
    pub(super) session: &'j SessionOptions,
}

/// A line of an answer, as far as it is read here.
#[derive(Deserialize)]
struct Told<'l> {
    #[serde(borrow)]
    id: Option<&'l RawValue>,
    #[serde(borrow)]
    result: Option<&'l RawValue>,
    #[serde(borrow)]
    error: Option<&'l RawValue>,
}

/// The answer to a request: the JSON of a result or of an error.
pub(crate) type Answered = std::result::Result<Box<RawValue>, Box<RawValue>>;

impl Connection {
    /// Joins the process that has a store open, within a deadline.
    ///
    /// # Errors
    /// What it refuses, `ERR_KEY`, and `ERR_BUSY` if it shows no sign of life.
    pub(super) fn join(as_who: &Joining<'_>, deadline: Instant) -> Result<Sought> {
        let until = deadline.min(Instant::now() + SIGN_OF_LIFE);
        let stream = match connect(as_who.directory, until) {
            Ok(Some(stream)) => stream,
            Ok(None) => return Ok(Sought::Nobody),
            Err(error) if is_timeout(&error) => {
                let message = "the store is open in a process that takes no connections";
                return Err(Error::refused("ERR_BUSY", message.to_owned(), BUSY_HINT));
            }
            Err(error) => return Err(Error::refused("ERR_BUSY", error.to_string(), BUSY_HINT)),
        };
        let owner = peer(&stream)?;
        if !owner.is_same_user {
            return Err(Error::new_access("the store is open in a process of another user"));
        }
        let greeted = greet(as_who, &stream, deadline);
        match greeted {
            Ok(joined) => {
                let reader = BufReader::with_capacity(64 << 10, stream);
                let directory = as_who.directory.to_owned();
                let (line, number) = (Vec::new(), joined.connection);
                let pid = owner.pid;
                Ok(Sought::Joined(Box::new(Self {
                    reader,
                    line,
                    number,
                    pid,
                    directory,
                    unreached: false,
                })))
            }
            // It ends, or was killed.
            Err(Greeting::Ended) => Ok(Sought::Nobody),
            Err(Greeting::Silent) => Err(Error::owner_hangs(owner.pid)),
            Err(Greeting::Refused(error)) => Err(error),
        }
    }

    /// The process at the other end.
    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends a request, a line of JSON, and waits for the answer with its id. Other lines are events, which
    /// `on_event` gets as they are.
    pub(crate) fn exchange(
        &mut self,
        request: &[u8],
        is_cancelled: &dyn Fn() -> bool,
        on_event: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> std::result::Result<Answered, Lost> {
        self.send(request)?;
        let mut cancelled = false;
        loop {
            self.read_line(is_cancelled, &mut cancelled)?;
            let told: Told<'_> =
                serde_json::from_slice(&self.line).map_err(|_| Lost::Unanswered)?;
            match (told.id, told.result, told.error) {
                (Some(_), Some(result), None) => return Ok(Ok(result.to_owned())),
                (Some(_), None, Some(error)) => return Ok(Err(error.to_owned())),
                _ => on_event(&self.line).map_err(Lost::Listener)?,
            }
            self.line.clear();
            self.line.shrink_to(RETAINED_BUFFER_BYTES);
        }
    }

    /// Sends a line. A part of a line is no request: nothing was done then.
    fn send(&mut self, request: &[u8]) -> std::result::Result<(), Lost> {
        let timed = self.reader.get_ref().set_write_timeout(Some(SIGN_OF_LIFE));
        timed.map_err(|_| Lost::Unsent)?;
        let mut line = Vec::with_capacity(request.len() + 1);
        line.extend_from_slice(request);
        line.push(b'\n');
        let mut rest = line.as_slice();
        while !rest.is_empty() {
            match self.reader.get_ref().write(rest) {
                Ok(0) => return Err(Lost::Unsent),
                Ok(sent) => rest = rest.get(sent..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_timeout(&error) => match self.is_alive() {
                    true => {}
                    false => return Err(Lost::Stuck),
                },
                Err(_) => return Err(Lost::Unsent),
            }
        }
        Ok(())
    }

    /// Reads the next line of an answer, and looks meanwhile whether the owner lives.
    fn read_line(
        &mut self,
        is_cancelled: &dyn Fn() -> bool,
        cancelled: &mut bool,
    ) -> std::result::Result<(), Lost> {
        let timed = self.reader.get_ref().set_read_timeout(Some(LOOK_AT_CANCEL_EVERY));
        timed.map_err(|_| Lost::Unanswered)?;
        let (mut whole, mut looked) = (Vec::new(), Instant::now());
        loop {
            let room = MAX_LINE_BYTES.saturating_sub(whole.len());
            match read_line(&mut self.reader, &mut self.line, room) {
                Ok(Line::Read) if self.line.is_empty() && whole.is_empty() => {}
                Ok(Line::Read) => {
                    whole.append(&mut self.line);
                    self.line = whole;
                    return Ok(());
                }
                Ok(Line::End | Line::TooLong) => return Err(Lost::Unanswered),
                // What was read of the line is in the buffer.
                Err(error) if is_timeout(&error) => whole.append(&mut self.line),
                Err(_) => return Err(Lost::Unanswered),
            }
            if !*cancelled && is_cancelled() {
                *cancelled = true;
                // Where that does not reach the owner, the answer is waited for.
                let _ = self.say(&First::Cancel(self.number));
            }
            if looked.elapsed() >= LOOK_EVERY {
                if !self.is_alive() {
                    return Err(Lost::Hangs);
                }
                looked = Instant::now();
            }
        }
    }

    /// Returns `true` if the owner answers on a new connection, or may be about to end: one that nobody reaches twice
    /// in a row does not.
    fn is_alive(&mut self) -> bool {
        match self.say(&First::Ping) {
            Ok(()) => {
                self.unreached = false;
                true
            }
            Err(error) => !is_timeout(&error) && !std::mem::replace(&mut self.unreached, true),
        }
    }

    /// Says something on a connection of its own.
    fn say(&self, what: &First) -> io::Result<()> {
        let Some(stream) = connect(&self.directory, Instant::now() + SIGN_OF_LIFE)? else {
            return Err(io::Error::from(ErrorKind::NotConnected));
        };
        stream.set_read_timeout(Some(SIGN_OF_LIFE))?;
        stream.set_write_timeout(Some(SIGN_OF_LIFE))?;
        let mut line = serde_json::to_vec(what)?;
        line.push(b'\n');
        (&stream).write_all(&line)?;
        let mut told = Vec::new();
        read_line(&mut BufReader::new(&stream), &mut told, MAX_LINE_BYTES)?;
        Ok(())
    }
}

/// How a greeting ended early.
enum Greeting {
    Ended,
    Silent,
    Refused(Error),
}

/// Joins on a connected socket.
fn greet(
    as_who: &Joining<'_>,
    stream: &UnixStream,
    deadline: Instant,
) -> std::result::Result<Joined, Greeting> {
    let left = deadline.saturating_duration_since(Instant::now());
    let left = left.clamp(SHORTEST_GREETING, SIGN_OF_LIFE);
    let timed = stream.set_read_timeout(Some(left)).and(stream.set_write_timeout(Some(left)));
    timed.map_err(|_| Greeting::Ended)?;
    let (own, mut reader) = (challenge().map_err(Greeting::Refused)?, BufReader::new(stream));
    let join = Join::new(as_who.settings, as_who.open.has_key(), own.clone(), as_who.session);
    say(stream, &First::Join(join))?;
    let joined = match hear(&mut reader)? {
        Reply::Joined(joined) => joined,
        Reply::Refused(refused) => return Err(Greeting::Refused(refused.into())),
        Reply::Done => return Err(Greeting::Ended),
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
    say(stream, &digits(&prove("relay")?))?;
    match hear(&mut reader)? {
        Reply::Done => Ok(joined),
        Reply::Refused(refused) => Err(Greeting::Refused(refused.into())),
        Reply::Joined(_) => Err(Greeting::Ended),
    }
}

fn say(mut stream: &UnixStream, what: &impl serde::Serialize) -> std::result::Result<(), Greeting> {
    send(&mut stream, what).map_err(|error| greeting(&error))
}

fn hear<T: serde::de::DeserializeOwned>(
    reader: &mut BufReader<&UnixStream>,
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

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
