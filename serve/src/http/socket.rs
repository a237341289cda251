//! Streams of CAL over a WebSocket (CAL 11.3): a client starts, pauses, resumes and cancels them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::ws::{Message, WebSocket};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, watch};

use super::access::Caller;
use super::call::check_reach;
use super::failure::{Failure, Result};
use super::limits::Taken;
use super::params::{Params, object};
use super::routes::{Param, Place, Route};
use super::state::{Server, stopped};
use super::streams::{Next, STALL_TIME, Stream};

/// Most bytes of a message of a client.
pub(super) const MAX_MESSAGE_BYTES: usize = 1 << 20;
/// Time between two signs of life.
const PING_EVERY: Duration = Duration::from_secs(10);
/// Time without a sign of life, after which a connection ends.
const SILENCE: Duration = Duration::from_secs(60);
/// Messages that wait to be sent.
const MAX_WAITING: usize = 4;
/// Longest id of a request.
const MAX_ID_BYTES: usize = 256;

/// What a client asks for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    action: Action,
    request_id: Option<String>,
    assembly_id: Option<String>,
    payload: Option<Box<RawValue>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    Assemble,
    Cancel,
    Pause,
    Resume,
}

/// A stream of the connection.
struct Running {
    stream: Arc<Stream>,
    paused: watch::Sender<bool>,
}

/// What a task of a stream tells the connection.
enum Told {
    Message(Value),
    /// A stream has ended, by the id of its request.
    Ended(String),
}

/// Serves a connection until it ends.
pub(super) async fn serve(
    server: Arc<Server>,
    caller: Caller,
    route: &'static Route,
    mut socket: WebSocket,
) {
    let (tell, mut told) = mpsc::channel(MAX_WAITING);
    let mut running: HashMap<String, Running> = HashMap::new();
    let mut stopping = server.stopping.subscribe();
    let mut ping = tokio::time::interval(PING_EVERY);
    let mut heard = tokio::time::Instant::now();
    loop {
        tokio::select! {
            message = socket.recv() => {
                heard = tokio::time::Instant::now();
                let answer = match message {
                    // A message is a request of its own: the token must hold still.
                    Some(Ok(Message::Text(_))) if !holds(&server, &caller) => break,
                    Some(Ok(Message::Text(text))) => {
                        take(&server, &caller, route, &text, &mut running, &tell)
                    }
                    Some(Ok(Message::Binary(_))) => Err((None, Failure::malformed("messages are text"))),
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(()),
                    Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                };
                if let Err((request, failure)) = answer
                    && send(&mut socket, &refusal(request.as_deref(), &failure)).await.is_err()
                {
                    break;
                }
            }
            next = told.recv() => match next {
                Some(Told::Message(message)) => {
                    if !holds(&server, &caller) || send(&mut socket, &message).await.is_err() {
                        break;
                    }
                }
                Some(Told::Ended(request)) => drop(running.remove(&request)),
                None => break,
            },
            _ = ping.tick() => {
                let lives = heard.elapsed() < SILENCE && holds(&server, &caller);
                if !lives || socket.send(Message::Ping(Bytes::new())).await.is_err() {
                    break;
                }
            }
            () = stopped(&mut stopping) => break,
        }
    }
    // A connection that is gone is not taken up again: its streams end with it.
    running.values().for_each(|one| one.stream.cancel());
    let _ = tokio::time::timeout(Duration::from_secs(1), socket.send(Message::Close(None))).await;
}

/// Whether a token holds still.
fn holds(server: &Server, caller: &Caller) -> bool {
    server.accesses().is_ok_and(|accesses| accesses.holds(&caller.access))
}

async fn send(socket: &mut WebSocket, message: &Value) -> std::result::Result<(), axum::Error> {
    socket.send(Message::Text(message.to_string().into())).await
}

fn refusal(request: Option<&str>, failure: &Failure) -> Value {
    json!({ "type": "refused", "request_id": request, "problem": failure.object() })
}

/// Does what a message asks for.
fn take(
    server: &Arc<Server>,
    caller: &Caller,
    route: &'static Route,
    text: &str,
    running: &mut HashMap<String, Running>,
    tell: &mpsc::Sender<Told>,
) -> std::result::Result<(), (Option<String>, Failure)> {
    let asked: Asked = serde_json::from_str(text).map_err(|error| {
        let message = format!("give action (assemble, cancel, pause, resume): {error}");
        (None, Failure::malformed(message))
    })?;
    let Asked { action, request_id, assembly_id, payload } = asked;
    let refused = |failure: Failure| (request_id.clone(), failure);
    if request_id.as_ref().is_some_and(|id| id.len() > MAX_ID_BYTES) {
        return Err((None, Failure::malformed("that request_id is too long")));
    }
    if action == Action::Assemble {
        let id = request_id
            .clone()
            .ok_or_else(|| refused(Failure::malformed("request_id is missing")))?;
        if running.contains_key(&id) {
            return Err(refused(Failure::malformed("a stream with this request_id is running")));
        }
        let one = start(server, caller, route, payload, &id, tell).map_err(refused)?;
        running.insert(id, one);
        return Ok(());
    }
    let found = match (&request_id, &assembly_id) {
        (Some(id), None) => running.get(id),
        (None, Some(id)) => running.values().find(|one| one.stream.is_assembly(id)),
        _ => return Err(refused(Failure::malformed("give one of request_id and assembly_id"))),
    };
    let none = || Failure::malformed("no such stream is running");
    let one = found.ok_or_else(|| refused(none()))?;
    match action {
        Action::Pause => drop(one.paused.send_replace(true)),
        Action::Resume => drop(one.paused.send_replace(false)),
        Action::Cancel | Action::Assemble => one.stream.cancel(),
    }
    Ok(())
}

/// Starts a stream.
fn start(
    server: &Arc<Server>,
    caller: &Caller,
    route: &'static Route,
    payload: Option<Box<RawValue>>,
    request: &str,
    tell: &mpsc::Sender<Told>,
) -> Result<Running> {
    if !caller.access.bucket.take() {
        let status = axum::http::StatusCode::TOO_MANY_REQUESTS;
        return Err(Failure::too_many(status, "this token asks too often", 1));
    }
    let payload = payload.ok_or_else(|| Failure::malformed("payload is missing"))?;
    let params: Params = serde_json::from_str(payload.get())
        .map_err(|error| Failure::malformed(format!("payload is no object: {error}")))?;
    let takes =
        |name: &&String| route.params_in(Place::Body).all(|param: &Param| param.name != **name);
    if let Some(name) = params.keys().find(takes) {
        let name: String = name.chars().take(64).collect();
        return Err(Failure::malformed(format!("{name:?} is unknown in payload")));
    }
    check_reach(route, caller, &params)?;
    let stream = server.streams.start(
        &caller.access,
        (object(&params)?, Taken::default()),
        &server.metrics.streams,
    )?;
    let (paused, pause) = watch::channel(false);
    let reader = stream.attach(None)?;
    tokio::spawn(forward(Arc::clone(&stream), reader, request.to_owned(), pause, tell.clone()));
    Ok(Running { stream, paused })
}

/// Sends the events of a stream on. While it is paused, the events before the first chunk go on.
async fn forward(
    stream: Arc<Stream>,
    reader: u64,
    request: String,
    mut paused: watch::Receiver<bool>,
    tell: mpsc::Sender<Told>,
) {
    let told = async {
        if let Err(failure) = stream.begun().await {
            tell.send(Told::Message(refusal(Some(&request), &failure))).await.ok()?;
            return Some(());
        }
        loop {
            match stream.peek(reader).await {
                Next::Event(_, event) => {
                    let waits = ["chunk", "assembly_completed"].contains(&event.kind.as_str());
                    if waits && !stream.is_cancelled() {
                        let is_late = tokio::select! {
                            resumed = paused.wait_for(|paused| !paused) => {
                                drop(resumed.ok()?);
                                false
                            }
                            () = stream.cancelled() => false,
                            // As long as one may take nothing of it.
                            () = tokio::time::sleep(STALL_TIME) => true,
                        };
                        if is_late {
                            stream.cancel();
                            let told = json!({
                                "type": "cancelled",
                                "reason": "paused",
                                "request_id": request,
                            });
                            tell.send(Told::Message(told)).await.ok()?;
                            return Some(());
                        }
                    }
                    let mut message: Map<String, Value> = serde_json::from_str(&event.json).ok()?;
                    message.insert("request_id".to_owned(), Value::from(request.as_str()));
                    tell.send(Told::Message(Value::Object(message))).await.ok()?;
                    stream.take(reader);
                }
                Next::Nothing => {}
                Next::End => return Some(()),
            }
        }
    };
    let _: Option<()> = told.await;
    stream.detach(reader);
    // The connection may be gone, which forgets its streams by itself.
    let _ = tell.send(Told::Ended(request)).await;
}
