//! The side of the process that has a store open: it answers the requests of processes that join.
//!
//! One thread accepts, and one more serves each connection. [`Service::stop`] lets what was asked be answered first.

use std::collections::HashMap;
use std::io::{self, BufReader, BufWriter, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use grainstore::cal::CancelHandle;
use rustix::event::{PollFd, PollFlags, poll};

use super::embedding::{Model, Offers, wait_for_end};
use super::greeting::{EMBEDDER, First, Join, Joined, Proof, Refused, Reply};
use super::greeting::{bound, challenge, digits, is_answer, not_understood, receive, send};
use super::socket::{Listener, peer};
use super::watched::Writing;
use super::{Conversation, Converse, Hosting};
use crate::error::{Code, Error, Result};

/// Most connections at once.
const MAX_CONNECTIONS: usize = 1_024;
/// Time for the lines of a greeting.
const GREETING_TIME: Duration = Duration::from_secs(10);
/// Time that a process may take nothing of its answer, before its connection ends.
const ANSWER_TIME: Duration = Duration::from_secs(60);
/// The same once the store is to be closed.
const ANSWER_TIME_AT_THE_END: Duration = Duration::from_secs(2);
/// Time after which accepting is tried again where the system had no room for a connection.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Time after which a process that closes the store tells that it waits.
const MOMENT: Duration = Duration::from_secs(1);
/// Time between two looks at whether requests are answered.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// What serves the connections of a store.
#[derive(Debug)]
pub(crate) struct Service {
    shared: Arc<Serving>,
    accepting: Option<JoinHandle<()>>,
    /// Closed to wake the thread that accepts.
    wake: Option<UnixStream>,
}

/// What the threads of a service share.
struct Serving {
    hosting: Hosting,
    converse: Converse,
    listener: Listener,
    connections: Mutex<Connections>,
    last: AtomicU64,
    /// A number by chance.
    number: u64,
    /// Embedders of other processes.
    offers: Offers,
}

/// The connections that are served.
#[derive(Default)]
struct Connections {
    all: HashMap<u64, Connected>,
    /// True once the store is to be closed.
    is_closing: bool,
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It has not told yet, or asks for a sign of life.
    Greets,
    Asks,
    /// It makes vectors for the store.
    Embeds,
}

/// A connection that is served.
struct Connected {
    stream: Arc<UnixStream>,
    /// How long an answer waits for its reader.
    writing: Arc<Writing>,
    /// Cancels what it has asked for.
    cancel: CancelHandle,
    role: Role,
}

/// Forgets a connection when it ends, however that is.
struct Ends<'s>(&'s Serving, u64);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.connections().all.remove(&self.1);
    }
}

impl std::fmt::Debug for Serving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Serving({:?})", self.hosting.store)
    }
}

impl Service {
    /// Begins to listen in the directory of a store that is open here.
    pub(super) fn start(
        directory: &Path,
        hosting: Hosting,
        converse: Converse,
    ) -> io::Result<Self> {
        let listener = Listener::bind(directory)?;
        let (connections, last) = (Mutex::default(), AtomicU64::new(0));
        let number = getrandom::u64().map_err(io::Error::other)?;
        let shared = Serving {
            hosting,
            converse,
            listener,
            connections,
            last,
            number,
            offers: Offers::default(),
        };
        let shared = Arc::new(shared);
        let (wake, woken) = UnixStream::pair()?;
        let serving = Arc::clone(&shared);
        let accept = move || serving.accept_until(&woken);
        let accepting = thread::Builder::new().name("socket".to_owned()).spawn(accept)?;
        Ok(Self { shared, accepting: Some(accepting), wake: Some(wake) })
    }

    /// Takes no new requests, and returns once everything is answered that was asked before: where that takes longer
    /// than a moment, `tell` gets the number of requests. Signs of life are given meanwhile. The caller still has the
    /// store open.
    pub(crate) fn stop(&mut self, tell: &mut dyn FnMut(usize)) {
        self.stop_by(None, tell);
    }

    /// As [`Service::stop`], but returns after so long: what is not answered then is cancelled, and fails once the caller
    /// closes the store.
    pub(crate) fn stop_within(&mut self, patience: Duration) {
        self.stop_by(Instant::now().checked_add(patience), &mut |_| {});
    }

    fn stop_by(&mut self, end: Option<Instant>, tell: &mut dyn FnMut(usize)) {
        let Some(accepting) = self.accepting.take() else { return };
        self.shared.connections().is_closing = true;
        self.finish(Role::Asks, end, tell);
        // What was asked is answered by the help of those that embed.
        self.finish(Role::Embeds, end, tell);
        self.wake = None;
        let _ = accepting.join();
        self.shared.listener.remove();
        self.finish(Role::Greets, end, &mut |_| {});
    }

    /// Ends the connections of a role once what they asked is answered, or cancels what is not by a moment.
    fn finish(&self, role: Role, end: Option<Instant>, tell: &mut dyn FnMut(usize)) {
        let (began, mut told) = (Instant::now(), false);
        loop {
            let left = self.shared.end(role);
            if left == 0 {
                return;
            }
            if end.is_some_and(|end| end <= Instant::now()) {
                return self.shared.cancel(role);
            }
            if !told && began.elapsed() >= MOMENT {
                told = true;
                tell(left);
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Number of connections that are served.
    pub(super) fn connections(&self) -> usize {
        self.shared.connections().all.len()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop(&mut |_| {});
    }
}

impl Serving {
    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the connections of a role end with what they were asked, at once those whose answer nobody has read for a
    /// while. Returns how many there are.
    fn end(&self, role: Role) -> usize {
        let mut connections = self.connections();
        let mut left = 0;
        for one in connections.all.values_mut().filter(|one| one.role == role) {
            left += 1;
            let how = match one.writing.waited() > ANSWER_TIME_AT_THE_END || role == Role::Greets {
                true => Shutdown::Both,
                // What was sent is read yet; what is not sent fails where it is sent.
                false => Shutdown::Read,
            };
            let _ = one.stream.shutdown(how);
        }
        left
    }

    /// Cancels what the connections of a role were asked.
    fn cancel(&self, role: Role) {
        let connections = self.connections();
        connections.all.values().filter(|one| one.role == role).for_each(|one| one.cancel.cancel());
    }

    /// Notes what a connection is for. Returns `false` where the store is being closed.
    fn begin(&self, id: u64, role: Role) -> bool {
        let mut connections = self.connections();
        if connections.is_closing {
            return false;
        }
        if let Some(connected) = connections.all.get_mut(&id) {
            connected.role = role;
        }
        true
    }

    /// Accepts connections until the other end of `woken` is closed.
    fn accept_until(self: &Arc<Self>, woken: &UnixStream) {
        loop {
            let mut ready = [
                PollFd::new(&self.listener.socket, PollFlags::IN),
                PollFd::new(woken, PollFlags::IN),
            ];
            match poll(&mut ready, None) {
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return,
                Ok(_) => {}
            }
            let [_, wake] = &ready;
            if !wake.revents().is_empty() {
                return;
            }
            match self.listener.socket.accept() {
                Ok((stream, _)) => self.serve(stream),
                Err(_) => thread::sleep(ACCEPT_AGAIN),
            }
        }
    }

    /// Serves a connection on a thread of its own.
    fn serve(self: &Arc<Self>, stream: UnixStream) {
        let is_own = peer(&stream).is_ok_and(|peer| peer.is_same_user);
        if !is_own || self.connections().all.len() >= MAX_CONNECTIONS {
            let why = match is_own {
                false => Error::new_access("the store is another user's"),
                true => Error::refused(
                    "ERR_BUSY",
                    format!("its {MAX_CONNECTIONS} connections are all taken"),
                    "try later",
                ),
            };
            let _ = stream.set_write_timeout(Some(ACCEPT_AGAIN));
            let _ = send(&mut &stream, &Reply::Refused(Refused::from(&why)));
            return;
        }
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let (stream, writing) = (Arc::new(stream), Arc::new(Writing::new()));
        let connected = Connected {
            stream: Arc::clone(&stream),
            writing: Arc::clone(&writing),
            cancel: CancelHandle::new(),
            role: Role::Greets,
        };
        // Before the thread: it removes the connection when it ends.
        self.connections().all.insert(id, connected);
        let serving = Arc::clone(self);
        let run = move || {
            let ends = Ends(&serving, id);
            // An error ends the connection, which tells the other end.
            let _ = serving.converse(id, &stream, &writing);
            drop(ends);
        };
        // It removes its connection when it ends; where it cannot begin, that is done here.
        if thread::Builder::new().name(format!("relay-{id}")).spawn(run).is_err() {
            self.connections().all.remove(&id);
        }
    }

    /// Greets, and answers requests until the other end is closed.
    fn converse(
        self: &Arc<Self>,
        id: u64,
        stream: &Arc<UnixStream>,
        writing: &Writing,
    ) -> Result<()> {
        stream.set_read_timeout(Some(GREETING_TIME))?;
        stream.set_write_timeout(Some(ANSWER_TIME))?;
        let mut reader = BufReader::with_capacity(64 << 10, &**stream);
        let watched = writing.watch(stream);
        let mut writer = BufWriter::with_capacity(64 << 10, watched);
        let first = match receive(&mut reader) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let refused = Refused::from(&not_understood(&error));
                return Ok(send(&mut writer, &Reply::Refused(refused))?);
            }
            first => first?,
        };
        let (join, model) = match first {
            First::Ping => return Ok(send(&mut writer, &Reply::Done)?),
            First::Cancel(other) => {
                if let Some(other) = self.connections().all.get(&other) {
                    other.cancel.cancel();
                }
                return Ok(send(&mut writer, &Reply::Done)?);
            }
            First::Join(join) => (join, None),
            First::Embed(join, model) => (join, Some(model)),
        };
        let role = if model.is_some() { Role::Embeds } else { Role::Asks };
        if !self.begin(id, role) {
            // As if it had ended already.
            return Ok(());
        }
        if let Err(error) = self.admit(id, &join, &mut reader, &mut writer) {
            return Ok(send(&mut writer, &Reply::Refused(Refused::from(&error)))?);
        }
        if let Some(model) = model {
            return self.embed(id, model, stream);
        }
        stream.set_read_timeout(None)?;
        let session = self.hosting.store.session(join.session.into());
        let serving = Arc::clone(self);
        let conversed = (self.converse)(Conversation {
            session,
            hosting: &self.hosting,
            cancels: Box::new(move || serving.renew(id)),
            requests: &mut reader,
            responses: &mut writer,
        });
        // What could not be written is not tried again.
        drop(writer.into_parts());
        conversed
    }

    /// Has a process make vectors for the store until it ends, where the store has no embedder of its own.
    fn embed(&self, id: u64, model: Model, stream: &Arc<UnixStream>) -> Result<()> {
        let tell = |is_needed| send(&mut &**stream, &Reply::Embed { is_needed });
        if self.hosting.settings.contains_key(EMBEDDER) {
            return Ok(tell(false)?);
        }
        let store = &self.hosting.store;
        match self.offers.add(store, model, (id, stream), || tell(true)) {
            Ok(()) => {
                wait_for_end(stream);
                self.offers.remove(store, id);
                Ok(())
            }
            Err(error) => Ok(send(&mut &**stream, &Reply::Refused(Refused::from(&error)))?),
        }
    }

    /// What cancels the next request of a connection.
    fn renew(&self, id: u64) -> CancelHandle {
        let cancel = CancelHandle::new();
        if let Some(connected) = self.connections().all.get_mut(&id) {
            connected.cancel = cancel.clone();
        }
        cancel
    }

    /// Checks who joins, and welcomes it.
    fn admit(
        &self,
        id: u64,
        join: &Join,
        reader: &mut BufReader<&UnixStream>,
        writer: &mut impl Write,
    ) -> Result<()> {
        join.check(&self.hosting.store, &self.hosting.settings)?;
        let own = challenge()?;
        let answer = self.hosting.store.key_proof(&bound("owner", &own, &join.challenge))?;
        let proof = answer.map(|answer| Proof { challenge: own.clone(), answer: digits(&answer) });
        let store = HEXLOWER.encode(&self.hosting.store.id()?);
        let joined = Joined { connection: id, owner: self.number, store, proof };
        send(writer, &Reply::Joined(joined))?;
        let Some(expected) =
            self.hosting.store.key_proof(&bound("relay", &own, &join.challenge))?
        else {
            return Ok(());
        };
        let given: String = receive(reader).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => {
                Error::new(Code::Key, "no answer to what was asked of the key", "give its key")
            }
            _ => error.into(),
        })?;
        if !is_answer(&expected, &given) {
            return Err(Error::new(Code::Key, "the key is not that of the store", "give its key"));
        }
        Ok(send(writer, &Reply::Done)?)
    }
}
