//! A process on the simulated machine: what it opens, serves and joins.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use grainstore::{OpenOptions, SessionOptions};
use shuttle::thread;

use super::super::connection::{Lost, Sought};
use super::super::joining::Joining;
use super::super::machine::Machine;
use super::super::shared::{Alone, Shared};
use super::world::{Disk, Listener, Pid, Pipe, Request, State, World};
use crate::error::{Code, Error, Result};

/// A process on the machine.
#[derive(Clone)]
pub(super) struct Process {
    world: Arc<World>,
    pub(super) pid: Pid,
}

impl Process {
    pub(super) fn new(world: Arc<World>, pid: Pid) -> Self {
        Self { world, pid }
    }

    /// One effect, where the process is not killed.
    fn step<T>(&self, step: impl FnOnce(&mut State) -> T) -> Result<T> {
        self.world.change(|state| Ok(step(self.alive(state)?)))
    }

    /// One effect, once it is possible.
    fn step_when<T>(&self, mut step: impl FnMut(&mut State) -> Option<T>) -> Result<T> {
        let mut state = self.world.lock();
        loop {
            if let Some(done) = step(self.alive(&mut state)?) {
                drop(state);
                self.world.changed.notify_all();
                return Ok(done);
            }
            state = self.world.changed.wait(state).unwrap();
        }
    }

    fn alive<'s>(&self, state: &'s mut State) -> Result<&'s mut State> {
        match state.is_killed(self.pid) {
            true => Err(Error::new(Code::Io, "this process is killed", "")),
            false => Ok(state),
        }
    }

    /// A step of what a process does when it drops something; the system does it for one that is killed.
    fn step_of_drop(&self, step: impl FnOnce(&mut State)) {
        if !std::thread::panicking() {
            let _ = self.step(step);
        }
    }

    /// Serves a connection, on a thread of its own.
    fn converse(&self, number: usize) -> Result<()> {
        let accept = |state: &mut State| {
            let listener = &state.listeners[state.pipes[number].listener];
            let store = listener.accepts.then(|| listener.store.upgrade()).flatten();
            state.pipes[number].accepted = store.is_some();
            store
        };
        let Some(store) = self.step(accept)? else { return Ok(()) };
        let greeted = self.step_when(|state| {
            let pipe = &mut state.pipes[number];
            pipe.welcome = pipe.hello;
            (pipe.hello || pipe.read_shut || pipe.left).then_some(pipe.hello)
        })?;
        if greeted {
            self.answer(number, &SimulatedStore(store))?;
        }
        self.step(|state| state.pipes[number].closed = true)
    }

    /// Answers the requests of a connection until its other end is closed, or no more of it is to be read.
    fn answer(&self, number: usize, store: &SimulatedStore) -> Result<()> {
        loop {
            let request = self.step_when(|state| {
                let pipe = &mut state.pipes[number];
                let request = pipe.requests.pop_front();
                (request.is_some() || pipe.read_shut || pipe.left).then_some(request)
            })?;
            let Some(request) = request else { return Ok(()) };
            let answer = store.run(&request);
            self.step(|state| state.pipes[number].answers.push_back(answer))?;
        }
    }
}

/// An open store. It closes with its last handle.
#[derive(Clone)]
pub(super) struct SimulatedStore(Arc<Handle>);

pub(super) struct Handle {
    process: Process,
    is_closed: AtomicBool,
}

impl SimulatedStore {
    /// Does what is asked; reading returns whether a grain is there.
    pub(super) fn run(&self, request: &Request) -> Result<bool> {
        // It is read and checked before it takes effect, and takes effect before it is acknowledged.
        self.effect(|_| ())?;
        let answer = self.effect(|disk| match request.method.as_str() {
            "put" => disk.puts.insert(request.params.key.clone()),
            "supersede" => {
                *disk.superseded.entry(request.params.key.clone()).or_default() += 1;
                true
            }
            _ => disk.puts.contains(&request.params.key),
        })?;
        self.0.process.step(|_| answer)
    }

    fn effect<T>(&self, effect: impl FnOnce(&mut Disk) -> T) -> Result<T> {
        let Handle { process, is_closed } = &*self.0;
        process.step(|state| {
            if is_closed.load(Ordering::Relaxed) {
                return Err(Error::new(Code::Io, "the store is closed", ""));
            }
            assert_eq!(state.lock, Some(process.pid), "who has the store open holds its lock");
            Ok(effect(&mut state.disk))
        })?
    }
}

impl Handle {
    fn close(&self) {
        let mut is_first = false;
        self.process.step_of_drop(|_| is_first = !self.is_closed.swap(true, Ordering::Relaxed));
        if is_first {
            self.process.step_of_drop(|state| {
                assert_eq!(state.lock, Some(self.process.pid), "who closes the store holds it");
                state.lock = None;
            });
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.close();
    }
}

/// What listens for other processes.
pub(super) struct Listening {
    store: Arc<Handle>,
    number: usize,
    is_stopped: bool,
}

impl Listening {
    fn stop(&mut self) {
        if std::mem::replace(&mut self.is_stopped, true) {
            return;
        }
        let (process, number) = (&self.store.process, self.number);
        process.step_of_drop(|state| state.listeners[number].accepts = false);
        process.step_of_drop(|state| {
            let removed = state.socket.take();
            assert_eq!(removed, Some(number), "who removes the socket has made it");
        });
        process.step_of_drop(|state| state.served(number).for_each(|pipe| pipe.read_shut = true));
        if !std::thread::panicking() {
            let _ = process
                .step_when(|state| state.served(number).all(|pipe| pipe.closed).then_some(()));
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stop();
        self.store.process.step_of_drop(|state| state.end_listener(self.number));
    }
}

/// A connection that has joined.
pub(super) struct Relay {
    process: Process,
    number: usize,
    owner: Pid,
}

impl Relay {
    /// Sends a request, and waits for its answer.
    pub(super) fn exchange(&mut self, line: &[u8]) -> std::result::Result<Result<bool>, Lost> {
        let request = serde_json::from_slice(line).unwrap();
        let sent = self.process.step(|state| {
            let pipe = &mut state.pipes[self.number];
            let reaches = !pipe.closed && !pipe.read_shut;
            if reaches {
                pipe.requests.push_back(request);
            }
            reaches
        });
        if !sent.map_err(Lost::Listener)? {
            return Err(Lost::Unsent);
        }
        if self.process.world.happens(0.1) {
            return Err(Lost::Hangs);
        }
        let answered = self.process.step_when(|state| {
            let pipe = &mut state.pipes[self.number];
            let answer = pipe.answers.pop_front().map(Some);
            answer.or(pipe.closed.then_some(None))
        });
        answered.map_err(Lost::Listener)?.ok_or(Lost::Unanswered)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.process.step_of_drop(|state| state.pipes[self.number].left = true);
    }
}

impl Machine for Process {
    type Store = SimulatedStore;
    type Session = SimulatedStore;
    type Service = Listening;
    type Connection = Relay;
    type Id = ();
    type Offered = ();

    fn open(&self, _: &Path, _: &OpenOptions) -> Result<SimulatedStore> {
        let is_locked = self.step(|state| {
            let is_free = state.lock.is_none();
            state.lock.get_or_insert(self.pid);
            state.disk.opened += usize::from(is_free);
            is_free
        })?;
        if !is_locked {
            return Err(Error::of_code("ERR_BUSY", "another process holds the lock", ""));
        }
        let store = Handle { process: self.clone(), is_closed: AtomicBool::new(false) };
        Ok(SimulatedStore(Arc::new(store)))
    }

    fn was_created(_: &SimulatedStore) -> bool {
        false
    }

    fn session(store: &SimulatedStore, _: SessionOptions) -> SimulatedStore {
        store.clone()
    }

    fn close(store: &SimulatedStore) -> Result<()> {
        store.0.close();
        Ok(())
    }

    fn id(_: &SimulatedStore) -> Result<()> {
        Ok(())
    }

    fn serve(_: &Shared<Self>, store: &SimulatedStore) -> std::result::Result<Listening, Alone> {
        let process = &store.0.process;
        let (pid, weak) = (process.pid, Arc::downgrade(&store.0));
        let listen = |state: &mut State| {
            assert_eq!(state.lock, Some(pid), "who listens holds the lock");
            state.socket = Some(state.listeners.len());
            state.listeners.push(Listener { pid, store: weak, is_open: true, accepts: true });
            state.listeners.len() - 1
        };
        let number = process.step(listen).map_err(|_| Alone::Meant)?;
        Ok(Listening { store: Arc::clone(&store.0), number, is_stopped: false })
    }

    fn stop(service: &mut Listening, _: &mut dyn FnMut(usize)) {
        service.stop();
    }

    fn connections(service: &Listening) -> usize {
        service.store.process.world.lock().served(service.number).count()
    }

    fn join(&self, _: &Joining<'_>, _: Instant) -> Result<Sought<Relay>> {
        let connect = |state: &mut State| {
            let listener = state.socket.filter(|number| state.listeners[*number].is_open)?;
            let (client, owner) = (self.pid, state.listeners[listener].pid);
            state.pipes.push(Pipe { client, owner, listener, ..Pipe::default() });
            Some((state.pipes.len() - 1, owner))
        };
        let Some((number, owner)) = self.step(connect)? else { return Ok(Sought::Nobody) };
        let relay = Relay { process: self.clone(), number, owner };
        let serving = self.world.process(owner);
        thread::spawn(move || serving.converse(number));
        if self.world.happens(0.1) {
            return Err(Error::owner_hangs(owner));
        }
        self.step(|state| state.pipes[number].hello = true)?;
        let is_welcome = self.step_when(|state| {
            let pipe = &state.pipes[number];
            (pipe.welcome || pipe.closed).then_some(pipe.welcome)
        })?;
        Ok(if is_welcome { Sought::Joined(Box::new(relay)) } else { Sought::Nobody })
    }

    fn pid(connection: &Relay) -> Pid {
        connection.owner
    }

    fn id_there(_: &Relay) {}

    fn offer(&self, _: &Joining<'_>, _: Instant) -> Result<()> {
        Ok(())
    }

    fn holds(_: &(), _: &Relay) -> bool {
        true
    }

    fn now(&self) -> Instant {
        let late = if self.world.happens(0.1) { 31 } else { 0 };
        let seconds = self.world.seconds.fetch_add(late, Ordering::Relaxed) + late;
        self.world.began + Duration::from_secs(seconds)
    }

    fn pause(&self, _: Duration) {
        thread::yield_now();
    }
}
