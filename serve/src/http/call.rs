//! A request that is one call of a method: from its parameters to its answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use grainstore::cal::CancelHandle;
use grainstore::journal::CommitPosition;
use grainstore_rpc::{Client, Code, Error, Following, MAX_WAIT_MS};
use hyper::body::{Frame, SizeHint};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio::task::spawn_blocking;
use tokio_stream::StreamExt as _;

use super::access::{Access, Caller};
use super::failure::{Failure, Result};
use super::limits::{MAX_HELD_BYTES, Room, SMALL_BYTES, Taken, Turn, read_bytes};
use super::params::{Params, collect, object};
use super::routes::{Reach, Route, Verb};
use super::state::Server;

/// How long the body of a request may take to come.
pub(super) const BODY_TIME: Duration = Duration::from_secs(30);

/// Bytes of a large body that room is taken for at a time.
const ROOM_STEP_BYTES: usize = 256 << 10;
/// How many times as large a body may become when it is read, without taking room for that.
const USUAL_GROWTH: usize = 8;

/// How a token that may write does so in CAL.
const TWO_PHASES: &str = "write in two phases: POST /v1/cal/prepare with \"tier\": 1, then POST /v1/cal/execute with its token";

/// Cancels the work of a request once nobody waits for it.
pub(super) struct CancelOnDrop(pub(super) CancelHandle);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Reads the body of a request, and takes room for it as it comes, and for what it comes to when it is read. The room is
/// taken until what is returned with it is dropped.
///
/// # Errors
/// 413 beyond what a body may have, 408 where it takes too long, 400 where it breaks off, 503 where there is no room.
pub(super) async fn read_large_body(
    server: &Server,
    access: &Access,
    body: Body,
) -> Result<(Bytes, Taken)> {
    let most = server.setting.max_body_bytes;
    let (body, mut taken) = read_body_into(body, most, Some((&access.room, &server.room))).await?;
    let bytes = read_bytes(&body);
    if bytes > MAX_HELD_BYTES {
        let message = "the body has too many values, though it is not too long";
        let hint = "send less at a time";
        let status = StatusCode::PAYLOAD_TOO_LARGE;
        return Err(Failure::new(status, "ERR_TOO_LARGE", message, hint));
    }
    if bytes > body.len().saturating_mul(USUAL_GROWTH) {
        access.room.grow(&server.room, &mut taken, bytes).await?;
    }
    Ok((body, taken))
}

/// Reads a body of so many bytes at most.
///
/// # Errors
/// 413 beyond them, 408 where it takes too long, 400 where it breaks off.
pub(super) async fn read_body(body: Body, most: usize) -> Result<Bytes> {
    read_body_into(body, most, None).await.map(|(body, _)| body)
}

/// Reads a body, and takes room for it as it comes: of a client and of all.
async fn read_body_into(
    body: Body,
    most: usize,
    room: Option<(&Room, &Room)>,
) -> Result<(Bytes, Taken)> {
    let too_large = || {
        let message = format!("a request has at most {most} bytes");
        let hint = "send less at a time; the server has --max-body";
        Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "ERR_TOO_LARGE", message, hint)
    };
    // A length that is told is known before anything of it has come.
    if body.size_hint().lower() > most as u64 {
        return Err(too_large());
    }
    let read = async {
        let (mut taken, mut whole) = (Taken::default(), Vec::new());
        let mut pieces = body.into_data_stream();
        while let Some(piece) = pieces.next().await {
            let piece =
                piece.map_err(|_| Failure::malformed("the body of the request broke off"))?;
            if whole.len().saturating_add(piece.len()) > most {
                return Err(too_large());
            }
            whole.extend_from_slice(&piece);
            if let Some((own, all)) = room.filter(|_| whole.len() > SMALL_BYTES) {
                own.grow(all, &mut taken, whole.len().next_multiple_of(ROOM_STEP_BYTES)).await?;
            }
        }
        Ok((Bytes::from(whole), taken))
    };
    let read = tokio::time::timeout(BODY_TIME, read).await;
    let late = |_| {
        let message = "the body of the request did not come in time";
        Failure::new(StatusCode::REQUEST_TIMEOUT, "ERR_TIMEOUT", message, "send it at once")
    };
    read.map_err(late)?
}

/// Checks whether somebody may call a route with these parameters. The store decides as well.
pub(super) fn check_reach(route: &Route, caller: &Caller, params: &Params) -> Result<()> {
    let grant = &caller.access.grant;
    let reads = |code: &str| {
        let (message, hint) = ("this token reads, and does not write", "ask for one of tier 1");
        Failure::new(StatusCode::FORBIDDEN, code, message, hint)
    };
    match route.reach {
        Reach::Read => Ok(()),
        Reach::Write if grant.writes => Ok(()),
        Reach::Write => Err(reads("ERR_ACCESS")),
        Reach::Statement if grant.writes || !may_write(params) => Ok(()),
        Reach::Statement => Err(reads("CAL-E044")),
        Reach::Operate if grant.operator && (grant.writes || route.only_reads()) => Ok(()),
        Reach::Operate if grant.operator => Err(reads("ERR_ACCESS")),
        Reach::Operate => {
            let message = "this is for the operator of the whole store";
            Err(Failure::forbidden(message, "ask for a token with --as-operator"))
        }
    }
}

/// Whether a statement may write: anything but the tier 0 counts, of the parameters and of a token of `prepare`.
fn may_write(params: &Params) -> bool {
    #[derive(Deserialize)]
    struct Token {
        tier: Value,
    }
    let is_zero = |tier: Option<Value>| tier.is_some_and(|tier| tier.as_u64() == Some(0));
    let read = |raw: &RawValue| serde_json::from_str::<Value>(raw.get()).ok();
    if let Some(token) = params.get("token") {
        return !is_zero(serde_json::from_str::<Token>(token.get()).ok().map(|token| token.tier));
    }
    match params.get("tier").map(|tier| read(tier)) {
        None | Some(Some(Value::Null)) => false,
        Some(tier) => !is_zero(tier),
    }
}

/// Calls a method on a thread that may block. What reads ends early once the handle cancels it, and nothing is begun
/// that nobody waits for any more; a write that has begun is done. `held` is held until the work has ended, whoever
/// waits for it.
pub(super) async fn call(
    client: &Client,
    method: &'static str,
    params: Box<RawValue>,
    cancel: CancelHandle,
    held: impl Send + 'static,
) -> Result<Box<RawValue>> {
    let answered = call_at(client, (method, params), None, cancel, held);
    answered.await.map(|(answer, _)| answer)
}

/// As [`call`], at a place of the journal or after it, which is waited for first. Returns where the store was too.
async fn call_at(
    client: &Client,
    (method, params): (&'static str, Box<RawValue>),
    at_least: Option<Box<RawValue>>,
    cancel: CancelHandle,
    held: impl Send + 'static,
) -> Result<(Box<RawValue>, Option<CommitPosition>)> {
    let client = client.clone();
    let work = move || {
        let _held = held;
        if cancel.check().is_err() {
            let message = "nobody waits for it any more";
            return Err(Error::new(Code::Cancelled, message, "ask again"));
        }
        let mut following = Following { cancel, ..Following::default() };
        if let Some(place) = at_least {
            client.call_following("wait_for", &place, &mut following)?;
        }
        let answer = client.call_following(method, &params, &mut following)?;
        Ok((answer, following.position))
    };
    let done = spawn_blocking(work).await;
    let ended = |_| {
        let message = "the call ended without an answer";
        Failure::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "ERR_IO",
            message,
            "look into the server's log",
        )
    };
    Ok(done.map_err(ended)??)
}

/// The header of an answer with the place of the store in its journal.
pub(super) const POSITION: HeaderName = HeaderName::from_static("grainstore-position");
/// The header of a request with the place that its answer is to be at or after: one of another answer, or `latest`.
pub(super) const AT_LEAST: HeaderName = HeaderName::from_static("grainstore-at-least");

/// Returns what is waited for before a request is answered, if it names a place.
fn at_least(server: &Server, headers: &HeaderMap) -> Result<Option<Box<RawValue>>> {
    let Some(place) = headers.get(AT_LEAST) else { return Ok(None) };
    let place = place
        .to_str()
        .ok()
        .filter(|place| *place == "latest" || place.parse::<CommitPosition>().is_ok());
    let place = place.ok_or_else(|| {
        Failure::malformed(format!("{AT_LEAST} is a position such as 1:118, or latest"))
    })?;
    let timeout = u64::try_from(server.setting.timeout.as_millis()).unwrap_or(u64::MAX);
    let position = Some(place).filter(|place| *place != "latest");
    let asked = WaitFor { position, timeout_ms: timeout.min(MAX_WAIT_MS) };
    Ok(Some(to_raw_value(&asked).map_err(Error::from)?))
}

/// The parameters of `wait_for`.
#[derive(Serialize)]
struct WaitFor<'p> {
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<&'p str>,
    timeout_ms: u64,
}

/// Waits for the turn of a request, for as long as it may take.
pub(super) async fn turn(server: &Server, access: &Access, is_long: bool) -> Result<Turn> {
    let turn = server.gate.enter(&access.running, is_long);
    tokio::time::timeout(server.setting.timeout, turn).await.map_err(|_| timed_out())?
}

/// Answers a request of a route.
pub(super) async fn answer(
    server: &Server,
    route: &'static Route,
    caller: &Caller,
    path: &[(String, String)],
    parts: &Parts,
    body: Body,
) -> Result<Response<Body>> {
    let access = &caller.access;
    let (body, taken) = match route.verb {
        Verb::Post => read_large_body(server, access, body).await?,
        Verb::Get | Verb::Delete => Default::default(),
    };
    let params = {
        let params = collect(route, path, parts.uri.query(), &parts.headers, &body)?;
        drop(body);
        check_reach(route, caller, &params)?;
        object(&params)?
    };
    let at_least = at_least(server, &parts.headers)?;
    let turn = turn(server, access, route.is_long).await?;
    // Others may run while this answer waits for room, but not of the same token: they would wait as well.
    let _own = turn.own();
    let cancel = CancelHandle::new();
    let _ended = CancelOnDrop(cancel.clone());
    let is_bounded = route.reach == Reach::Read && !route.is_long;
    let held = (turn, taken, caller.place.clone());
    let called = (route.method, params);
    let running = call_at(&access.client, called, at_least, cancel.clone(), held);
    let answer = if is_bounded {
        // It ends soon after it is cancelled, with the error of that.
        tokio::pin!(running);
        match tokio::time::timeout(server.setting.timeout, &mut running).await {
            Ok(answer) => answer,
            Err(_) => {
                cancel.cancel();
                running.await.and(Err(timed_out()))
            }
        }
    } else {
        running.await
    };
    let (answer, position) = answer.map_err(|failure| match failure.has_code("CAL-E044") {
        true if access.grant.writes => failure.with_hint(TWO_PHASES),
        _ => failure,
    })?;
    let taken = match access.room.take(&server.room, answer.get().len()).await {
        Ok(taken) => taken,
        Err(failure) if route.reach == Reach::Read => return Err(failure),
        // What was done is acknowledged, whatever room there is.
        Err(_) => Taken::default(),
    };
    let mut response = respond(route, answer, taken);
    let position = position.and_then(|at| HeaderValue::from_str(&at.to_string()).ok());
    response.headers_mut().extend(position.map(|at| (POSITION, at)));
    Ok(response)
}

/// Bytes of an answer that are handed to the connection at once. It takes the next ones when those are written.
const PIECE_BYTES: usize = 64 << 10;

/// The body of an answer, which takes its room until the last piece of it is handed on.
struct Weighed {
    rest: Bytes,
    _taken: Taken,
}

impl HttpBody for Weighed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, Infallible>>> {
        let bytes = self.rest.len().min(PIECE_BYTES);
        let piece = self.rest.split_to(bytes);
        Poll::Ready((!piece.is_empty()).then(|| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

/// The answer to what took too long.
fn timed_out() -> Failure {
    let message = "the request took too long, and was cancelled";
    Failure::new(StatusCode::SERVICE_UNAVAILABLE, "ERR_TIMEOUT", message, "ask for less at a time")
}

/// The answer of a method as a response.
fn respond(route: &Route, answer: Box<RawValue>, taken: Taken) -> Response<Body> {
    #[derive(Deserialize)]
    struct Made<'a> {
        address: &'a str,
        #[serde(default)]
        duplicate: bool,
    }
    let made = route.creates.then(|| serde_json::from_str::<Made<'_>>(answer.get()).ok()).flatten();
    let place = made.and_then(|made| {
        let place = HeaderValue::from_str(&format!("/v1/grains/{}", made.address)).ok()?;
        Some((place, made.duplicate))
    });
    let text: Box<str> = answer.into();
    let body = Weighed { rest: Bytes::from(String::from(text)), _taken: taken };
    let mut response = json_response(Body::new(body));
    if let Some((place, was_there)) = place {
        response.headers_mut().insert(header::LOCATION, place);
        if !was_there {
            *response.status_mut() = StatusCode::CREATED;
        }
    }
    response
}

/// A response in JSON.
pub(super) fn json_response(body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anything_but_tier_0_is_a_write() {
        let params = |name: &str, json: &str| -> Params {
            [(name.to_owned(), RawValue::from_string(json.to_owned()).unwrap())].into()
        };
        for (name, json) in
            [("tier", "0"), ("tier", "null"), ("token", r#"{"tier":0}"#), ("query", "\"ADD\"")]
        {
            assert!(!may_write(&params(name, json)), "{name} {json}");
        }
        for (name, json) in [
            ("tier", "1"),
            ("tier", "2"),
            ("tier", "\"0\""),
            ("tier", "0.5"),
            ("tier", "[0]"),
            ("token", r#"{"tier":1}"#),
            ("token", r#"{"tier":0,"tier":1}"#),
            ("token", "{}"),
            ("token", "1"),
        ] {
            assert!(may_write(&params(name, json)), "{name} {json}");
        }
    }
}
