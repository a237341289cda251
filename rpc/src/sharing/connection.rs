//! The side of a process that joins: a connection to the process that has the store open.

use std::io::{self, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use grainstore::journal::CommitPosition;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::embedding::{Model, Offered, Offering};
use super::greeting::{First, Reply};
use super::joining::{Joining, Reached, SIGN_OF_LIFE, hear, is_timeout, reach};
use super::socket::connect;
use crate::error::{Error, Result};
use crate::json::present;
use crate::lines::{Line, read_line};

/// Most bytes of a line of an answer.
const MAX_LINE_BYTES: usize = 64 << 20;
/// Bytes of the line buffer that are kept for the next answer.
const RETAINED_BUFFER_BYTES: usize = 1 << 20;
/// Time between two looks at whether the owner still lives.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Time between two looks at whether the request is cancelled.
const LOOK_AT_CANCEL_EVERY: Duration = Duration::from_millis(50);
/// A connection that has joined.
#[derive(Debug)]
pub(crate) struct Connection {
    reader: BufReader<UnixStream>,
    line: Vec<u8>,
    number: u64,
    /// The number of the owner.
    owner: u64,
    /// The number of the store.
    store: String,
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

/// A line of an answer, as far as it is read here.
#[derive(Deserialize)]
struct Told<'l> {
    /// Null is an id too, of a request that has it or cannot be read.
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'l RawValue>,
    #[serde(borrow)]
    result: Option<&'l RawValue>,
    #[serde(borrow)]
    error: Option<&'l RawValue>,
    position: Option<&'l str>,
}

/// The answer to a request: the JSON of a result, and where the store was in its journal; or the JSON of an error.
pub(crate) type Answered =
    std::result::Result<(Box<RawValue>, Option<CommitPosition>), Box<RawValue>>;

impl Connection {
    /// Joins the process that has a store open, within a deadline.
    ///
    /// # Errors
    /// What it refuses, `ERR_KEY`, and `ERR_BUSY` if it shows no sign of life.
    pub(super) fn join(as_who: &Joining<'_>, deadline: Instant) -> Result<Sought> {
        let Some(reached) = reach(as_who, deadline, First::Join)? else {
            return Ok(Sought::Nobody);
        };
        let Reached { reader, joined, pid } = reached;
        Ok(Sought::Joined(Box::new(Self {
            reader,
            line: Vec::new(),
            number: joined.connection,
            owner: joined.owner,
            store: joined.store,
            pid,
            directory: as_who.directory.to_owned(),
            unreached: false,
        })))
    }

    /// Offers the embedder of the options to the process that has a store open.
    ///
    /// # Errors
    /// As [`Connection::join`]; `ERR_CONFLICT` where another process offers another model, `ERR_DIMENSION` for one
    /// that does not fit what is stored.
    pub(super) fn offer(as_who: &Joining<'_>, deadline: Instant) -> Result<Offered> {
        let Some((embedder, metric)) = as_who.open.given_embedder() else {
            return Ok(Offered::Nothing);
        };
        let model = Model::of(&*embedder, metric);
        let reached = reach(as_who, deadline, |join| First::Embed(join, model))?;
        let Some(Reached { mut reader, joined, .. }) = reached else { return Ok(Offered::Unheard) };
        match hear(&mut reader) {
            Ok(Reply::Embed { is_needed: true }) => {
                Ok(Offered::Taken(joined.owner, Offering::start(embedder, reader)?))
            }
            Ok(Reply::Embed { is_needed: false }) => Ok(Offered::Unneeded(joined.owner)),
            Ok(Reply::Refused(refused)) => Err(refused.into()),
            // It has ended by now, or is at work that nothing else may run beside.
            _ => Ok(Offered::Unheard),
        }
    }

    /// The number of the store.
    pub(super) fn store(&self) -> &str {
        &self.store
    }

    /// The number of the owner.
    pub(super) fn owner(&self) -> u64 {
        self.owner
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
                (Some(_), Some(result), None) => {
                    let position = told.position.and_then(|position| position.parse().ok());
                    return Ok(Ok((result.to_owned(), position)));
                }
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
