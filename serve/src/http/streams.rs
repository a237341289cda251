//! Streams of CAL (11.3 to 11.6): an ASSEMBLE as events, by server-sent events or lines of JSON.
//!
//! The statement runs on a thread of its own and waits while 64 KiB of its events are not taken. A client that is gone
//! may take the stream up again for ten seconds, from the event it has seen last; then, and after thirty seconds in
//! which nothing was taken, the statement is cancelled.

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use grainstore::cal::CancelHandle;
use grainstore_rpc::{Client, Following};
use prometheus_client::metrics::gauge::Gauge;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc};
use tokio::task::spawn_blocking;
use tokio_stream::wrappers::ReceiverStream;

use super::access::{Access, Caller, new_name};
use super::failure::{Failure, Result};
use super::limits::Taken;
use super::state::Server;

/// Bytes of events that are not taken, after which the statement waits.
pub(super) const MAX_UNTAKEN_BYTES: usize = 64 << 10;
/// Time in which nothing is taken, after which the statement is cancelled.
pub(super) const STALL_TIME: Duration = Duration::from_secs(30);
/// Time in which a client that is gone may come back.
pub(super) const RECONNECTION_TIME: Duration = Duration::from_secs(10);
/// Bytes of events of a stream that are kept for a client that comes back.
pub(super) const MAX_KEPT_BYTES: usize = 1 << 20;
/// Streams that run at once, of all clients.
pub(super) const MAX_STREAMS: usize = 256;
/// Streams of a client that have ended and can be taken up again.
pub(super) const MAX_ENDED: usize = 8;
/// Time between two signs of life.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The form of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Server-sent events.
    Sse,
    /// Lines of JSON.
    Lines,
}

impl Form {
    /// The form that `Accept` asks for, if it asks for one.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let accepted =
            headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let mut media = accepted
            .flat_map(|value| value.split(','))
            .map(|one| one.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
        media.find_map(|media| match media.as_str() {
            "text/event-stream" => Some(Self::Sse),
            "application/x-ndjson" => Some(Self::Lines),
            _ => None,
        })
    }

    fn media_type(self) -> &'static str {
        match self {
            Self::Sse => "text/event-stream",
            Self::Lines => "application/x-ndjson",
        }
    }

    fn frame(self, number: u64, event: &Event) -> Bytes {
        match self {
            Self::Sse => {
                format!("id: {number}\nevent: {}\ndata: {}\n\n", event.kind, event.json).into()
            }
            Self::Lines => format!("{}\n", event.json).into(),
        }
    }
}

/// An event.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub(super) kind: String,
    /// The object, on one line.
    pub(super) json: Arc<str>,
}

/// What is read of the line of an event.
#[derive(Deserialize)]
struct Told<'a> {
    #[serde(borrow)]
    params: ToldParams<'a>,
}

#[derive(Deserialize)]
struct ToldParams<'a> {
    #[serde(borrow)]
    event: &'a RawValue,
}

#[derive(Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    kind: String,
    assembly_id: Option<String>,
}

/// A stream.
pub(super) struct Stream {
    pub(super) id: String,
    owner: Arc<str>,
    cancel: CancelHandle,
    state: Mutex<State>,
    /// Tells the thread of the statement that events were taken.
    taken: Condvar,
    /// Tells readers of new events and of the end.
    told: Notify,
}

#[derive(Default)]
struct State {
    events: VecDeque<Event>,
    /// The number of the first event that is kept, from 0.
    first: u64,
    kept_bytes: usize,
    /// The number of the next event that a reader takes.
    next: u64,
    untaken_bytes: usize,
    /// Who reads: each that comes takes the place of the one before.
    reader: u64,
    /// Since when nobody reads.
    alone_since: Option<Instant>,
    assembly_id: Option<String>,
    /// How the statement ended, once it has.
    ended: Option<std::result::Result<(), Option<Failure>>>,
    ended_at: Option<Instant>,
    /// Held while the statement runs and somebody reads.
    place: Option<OwnedSemaphorePermit>,
}

impl State {
    /// The number behind the last event.
    fn end(&self) -> u64 {
        self.first.saturating_add(self.events.len() as u64)
    }

    fn event(&self, number: u64) -> Option<&Event> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.events.get(at)
    }
}

/// What a reader is told next.
pub(super) enum Next {
    Event(u64, Event),
    /// The stream has ended, or another one reads it.
    End,
    /// Nothing came for a while.
    Nothing,
}

impl Stream {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels the statement.
    pub(super) fn cancel(&self) {
        self.cancel.cancel();
        self.taken.notify_all();
        self.told.notify_waiters();
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.check().is_err()
    }

    /// Waits until the statement is cancelled.
    pub(super) async fn cancelled(&self) {
        loop {
            let told = self.told.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            if self.is_cancelled() {
                return;
            }
            told.await;
        }
    }

    /// Whether it is the stream of an assembly.
    pub(super) fn is_assembly(&self, id: &str) -> bool {
        self.state().assembly_id.as_deref() == Some(id)
    }

    /// Adds an event, and waits while too many are not taken.
    fn add(&self, line: &RawValue) {
        let Ok(told) = serde_json::from_str::<Told<'_>>(line.get()) else { return };
        let json = told.params.event.get();
        let Ok(Kind { kind, assembly_id }) = serde_json::from_str(json) else { return };
        let mut state = self.state();
        if state.assembly_id.is_none() {
            state.assembly_id = assembly_id;
        }
        state.events.push_back(Event { kind, json: json.into() });
        state.kept_bytes += json.len();
        state.untaken_bytes += json.len();
        // What was taken and is too much goes first.
        while state.kept_bytes > MAX_KEPT_BYTES && state.first < state.next {
            let Some(gone) = state.events.pop_front() else { break };
            state.kept_bytes -= gone.json.len();
            state.first += 1;
        }
        self.told.notify_waiters();
        self.wait_for_reader(state);
    }

    /// Waits until there is room for more events. Where nobody takes them it cancels the statement, which then ends by
    /// itself, with an event that says so.
    fn wait_for_reader(&self, mut state: MutexGuard<'_, State>) {
        let (mut from, mut moved) = (state.next, Instant::now());
        loop {
            if state.next != from {
                (from, moved) = (state.next, Instant::now());
            }
            let gone = state.alone_since.is_some_and(|since| since.elapsed() >= RECONNECTION_TIME);
            if gone || self.is_cancelled() || moved.elapsed() >= STALL_TIME {
                drop(state);
                return self.cancel();
            }
            if state.untaken_bytes <= MAX_UNTAKEN_BYTES {
                return;
            }
            let waited = self.taken.wait_timeout(state, Duration::from_millis(250));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn end(&self, how: std::result::Result<(), Option<Failure>>) {
        let mut state = self.state();
        if state.ended.is_some() {
            return;
        }
        state.ended = Some(how);
        state.ended_at = Some(Instant::now());
        if state.events.is_empty() || state.alone_since.is_some() {
            state.place = None;
        }
        drop(state);
        self.told.notify_waiters();
    }

    /// Begins to read behind an event. Whoever read before is told the end.
    ///
    /// # Errors
    /// 410 (`CAL-E081`) where those events are not kept any more.
    pub(super) fn attach(&self, after: Option<u64>) -> Result<u64> {
        let mut state = self.state();
        let next = after.map_or(0, |after| after.saturating_add(1));
        if next < state.first || next > state.end() {
            return Err(too_late());
        }
        state.reader += 1;
        state.next = next;
        let first = usize::try_from(next - state.first).unwrap_or(usize::MAX);
        state.untaken_bytes = state.events.iter().skip(first).map(|event| event.json.len()).sum();
        state.alone_since = None;
        let reader = state.reader;
        drop(state);
        self.told.notify_waiters();
        Ok(reader)
    }

    /// A reader is gone.
    pub(super) fn detach(&self, reader: u64) {
        let mut state = self.state();
        if state.reader == reader {
            state.alone_since = Some(Instant::now());
            if state.ended.is_some() {
                state.place = None;
            }
        }
        drop(state);
        self.taken.notify_all();
    }

    /// The next event of a reader, once it is there. It stays the next one until it is taken.
    pub(super) async fn peek(&self, reader: u64) -> Next {
        let deadline = tokio::time::sleep(KEEP_ALIVE);
        tokio::pin!(deadline);
        loop {
            let told = self.told.notified();
            tokio::pin!(told);
            // Registered before the look, so that nothing is missed between the two.
            told.as_mut().enable();
            {
                let mut state = self.state();
                if state.reader != reader {
                    return Next::End;
                }
                let number = state.next;
                if let Some(event) = state.event(number).cloned() {
                    return Next::Event(number, event);
                }
                if state.ended.is_some() {
                    state.place = None;
                    return Next::End;
                }
            }
            tokio::select! {
                () = &mut told => {}
                () = &mut deadline => return Next::Nothing,
            }
        }
    }

    /// Takes the event that was looked at: it was sent.
    pub(super) fn take(&self, reader: u64) {
        let mut state = self.state();
        if state.reader == reader {
            let bytes = state.event(state.next).map_or(0, |event| event.json.len());
            state.next += 1;
            state.untaken_bytes = state.untaken_bytes.saturating_sub(bytes);
        }
        drop(state);
        self.taken.notify_all();
    }

    /// Waits until the stream has begun, or has ended before it began.
    ///
    /// # Errors
    /// The refusal of the statement.
    pub(super) async fn begun(&self) -> Result<()> {
        loop {
            let told = self.told.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            {
                let mut state = self.state();
                if !state.events.is_empty() {
                    return Ok(());
                }
                if let Some(ended) = &mut state.ended {
                    let refused = std::mem::replace(ended, Ok(()));
                    return refused.map_err(|failure| failure.unwrap_or_else(too_late));
                }
            }
            told.await;
        }
    }
}

fn too_late() -> Failure {
    let message = "this stream cannot be taken up again";
    let hint = "run the statement again: a stream waits ten seconds for a client that is gone";
    Failure::new(StatusCode::GONE, "CAL-E081", message, hint)
}

/// The streams of a server.
#[derive(Default)]
pub(super) struct Streams(Mutex<HashMap<String, Arc<Stream>>>);

impl Streams {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<Stream>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets streams that nobody can take up any more; returns how many of the others run.
    fn sweep(&self) -> usize {
        let mut all = self.all();
        all.retain(|_, stream| {
            let state = stream.state();
            let ended = state.ended_at.is_none_or(|at| at.elapsed() < RECONNECTION_TIME);
            let alone = state.alone_since.is_none_or(|since| since.elapsed() < RECONNECTION_TIME);
            ended && (alone || state.ended.is_none())
        });
        all.values().filter(|stream| stream.state().ended.is_none()).count()
    }

    /// Forgets the oldest streams of a client that have ended, beyond so many.
    fn forget_ended(&self, owner: &str) {
        let mut all = self.all();
        let ended_at =
            |stream: &Stream| stream.state().ended_at.filter(|_| *stream.owner == *owner);
        let mut ended: Vec<_> =
            all.iter().filter_map(|(id, stream)| Some((ended_at(stream)?, id.clone()))).collect();
        ended.sort_unstable();
        let beyond = ended.len().saturating_sub(MAX_ENDED);
        for (_, id) in ended.into_iter().take(beyond) {
            all.remove(&id);
        }
    }

    /// Starts a statement.
    ///
    /// # Errors
    /// 429 for a fourth stream of one client, 503 where the server has too many.
    pub(super) fn start(
        self: &Arc<Self>,
        access: &Arc<Access>,
        (params, room): (Box<RawValue>, Taken),
        gauge: &Gauge,
    ) -> Result<Arc<Stream>> {
        let place = Arc::clone(&access.streams).try_acquire_owned().map_err(|_| {
            let message =
                format!("a client has at most {} streams at once", super::access::MAX_STREAMS);
            Failure::too_many(StatusCode::TOO_MANY_REQUESTS, message, 1)
        })?;
        let running = self.sweep();
        self.forget_ended(&access.id);
        let stream = Arc::new(Stream {
            id: new_name()?,
            owner: Arc::clone(&access.id),
            cancel: CancelHandle::new(),
            state: Mutex::new(State { place: Some(place), ..State::default() }),
            taken: Condvar::new(),
            told: Notify::new(),
        });
        {
            let mut all = self.all();
            if running >= MAX_STREAMS {
                let message = "the server has too many streams";
                return Err(Failure::too_many(StatusCode::SERVICE_UNAVAILABLE, message, 1));
            }
            all.insert(stream.id.clone(), Arc::clone(&stream));
        }
        let (running, client) = (Running::new(&stream, gauge), access.client.clone());
        drop(spawn_blocking(move || {
            let _room = room;
            let how = run(&client, &params, &running.stream);
            running.stream.end(how);
        }));
        Ok(stream)
    }

    /// The stream of a client, by its id or by the id of its assembly.
    ///
    /// # Errors
    /// 410 (`CAL-E081`) for one that is over, another's, or none.
    pub(super) fn find(&self, access: &Access, id: &str) -> Result<Arc<Stream>> {
        self.sweep();
        let all = self.all();
        let own = |stream: &&Arc<Stream>| stream.owner == access.id;
        let by_id = all.get(id).filter(own).cloned();
        let by_assembly = || {
            let mut found = all.values().filter(own).filter(|stream| stream.is_assembly(id));
            found.next().filter(|_| found.next().is_none()).cloned()
        };
        by_id.or_else(by_assembly).ok_or_else(too_late)
    }

    /// Cancels all streams.
    pub(super) fn cancel_all(&self) {
        self.all().values().for_each(|stream| stream.cancel());
    }
}

/// A statement that runs: its stream ends with it, also where it panics.
struct Running {
    stream: Arc<Stream>,
    gauge: Gauge,
}

impl Running {
    fn new(stream: &Arc<Stream>, gauge: &Gauge) -> Self {
        gauge.inc();
        Self { stream: Arc::clone(stream), gauge: gauge.clone() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.gauge.dec();
        self.stream.end(Err(None));
    }
}

/// Runs the statement of a stream.
fn run(
    client: &Client,
    params: &RawValue,
    stream: &Stream,
) -> std::result::Result<(), Option<Failure>> {
    let mut on_event = |line: &RawValue| {
        stream.add(line);
        ControlFlow::Continue(())
    };
    let mut following = Following {
        on_event: Some(&mut on_event),
        cancel: stream.cancel.clone(),
        ..Following::default()
    };
    match client.call_following("cal_stream", params, &mut following) {
        Ok(_) => Ok(()),
        Err(error) => Err(Some(error.into())),
    }
}

/// The events of a stream as a response.
///
/// # Errors
/// The refusal of a statement that did not begin; `CAL-E081` for events that are not kept.
pub(super) async fn respond(
    server: &Arc<Server>,
    access: &Arc<Access>,
    stream: Arc<Stream>,
    form: Form,
    after: Option<u64>,
) -> Result<Response<Body>> {
    let reader = stream.attach(after)?;
    let reads = Reads { stream: Arc::clone(&stream), reader };
    stream.begun().await?;
    // One event waits for the connection; what waits beyond it is counted as not taken.
    let (frames, received) =
        mpsc::channel::<std::result::Result<Bytes, std::convert::Infallible>>(1);
    let (server, access) = (Arc::clone(server), Arc::clone(access));
    tokio::spawn(async move {
        loop {
            let next = tokio::select! {
                next = reads.stream.peek(reads.reader) => next,
                () = frames.closed() => return,
            };
            if !server.accesses().is_ok_and(|accesses| accesses.holds(&access)) {
                reads.stream.cancel();
                return;
            }
            let (frame, is_event) = match next {
                Next::Event(number, event) => (form.frame(number, &event), true),
                Next::Nothing if form == Form::Sse => (Bytes::from_static(b": \n\n"), false),
                Next::Nothing => continue,
                Next::End => return,
            };
            if frames.send(Ok(frame)).await.is_err() {
                return;
            }
            if is_event {
                reads.stream.take(reads.reader);
            }
        }
    });
    let mut response = Response::new(Body::from_stream(ReceiverStream::new(received)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(form.media_type()));
    let place = format!("/v1/cal/streams/{}", stream.id);
    if let Ok(place) = HeaderValue::from_str(&place) {
        headers.insert(header::CONTENT_LOCATION, place);
    }
    // Proxies that gather answers would hold the events up.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}

/// A reader, until it is dropped.
struct Reads {
    stream: Arc<Stream>,
    reader: u64,
}

impl Drop for Reads {
    fn drop(&mut self) {
        self.stream.detach(self.reader);
    }
}

/// Takes a stream up again, behind the event that `Last-Event-ID` names.
pub(super) async fn resume(
    server: &Arc<Server>,
    caller: &Caller,
    id: &str,
    headers: &HeaderMap,
) -> Result<Response<Body>> {
    let stream = server.streams.find(&caller.access, id)?;
    let form = Form::of(headers).unwrap_or(Form::Sse);
    respond(server, &caller.access, stream, form, last_event_id(headers)?).await
}

/// The number in `Last-Event-ID`.
pub(super) fn last_event_id(headers: &HeaderMap) -> Result<Option<u64>> {
    let Some(given) = headers.get("last-event-id") else { return Ok(None) };
    let number = given.to_str().ok().and_then(|text| text.trim().parse().ok());
    number.map(Some).ok_or_else(|| Failure::malformed("Last-Event-ID is the number of an event"))
}
