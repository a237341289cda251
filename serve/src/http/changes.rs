//! The change feed: what becomes of grains, from the audit log, as server-sent events.
//!
//! The number of an event is that of its entry in the audit log, so that a client goes on from any it has seen, also
//! of a server that was started anew. A client is told what the audit log tells its session.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Response, StatusCode, header};
use grainstore::cal::CancelHandle;
use grainstore_rpc::Client;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::to_raw_value;
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::task::spawn_blocking;
use tokio_stream::wrappers::ReceiverStream;

use super::access::{Access, Caller};
use super::call::{CancelOnDrop, call};
use super::failure::{Failure, Result};
use super::limits::Taken;
use super::state::{Server, stopped};
use super::streams::KEEP_ALIVE;

/// Entries that are looked at at once.
const PAGE: u64 = 500;
/// Time after which a feed tries again to read, where too many requests wait.
const READ_AGAIN: Duration = Duration::from_secs(1);
/// Time between two looks at the end of the log.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The same where another process has the store open.
const LOOK_ELSEWHERE_EVERY: Duration = Duration::from_secs(1);
/// A sequence behind every log, as far as numbers of JSON are exact.
const BEHIND_ALL: u64 = (1 << 53) - 1;

/// The end of the audit log, as it was seen last.
pub(super) struct Head(watch::Sender<u64>);

impl Default for Head {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

/// An entry, as far as it is told.
#[derive(Debug, Deserialize)]
struct Entry {
    sequence: u64,
    time_ms: i64,
    operation: String,
    subjects: Vec<String>,
    decision: String,
    code: Option<String>,
    why: Option<String>,
}

#[derive(Deserialize)]
struct Page {
    head: Option<End>,
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
struct End {
    sequence: u64,
}

/// What is told of an entry.
#[derive(Serialize)]
struct Change<'e> {
    sequence: u64,
    time_ms: i64,
    operation: &'e str,
    subjects: &'e [String],
    decision: &'e str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'e str>,
}

impl Entry {
    /// The name of the event; `None` for what concerns no grain.
    fn event(&self) -> Option<&'static str> {
        if self.decision == "refused" {
            return Some("refused");
        }
        Some(match self.operation.as_str() {
            "erase" | "erase_user" | "erase_consent" => "erased",
            _ if self.subjects.is_empty() && self.operation != "import" => return None,
            "put" | "import" => "new",
            "supersede" => "superseded",
            "read" | "cal" | "export" => return None,
            _ => "changed",
        })
    }

    fn frame(&self) -> Option<Bytes> {
        let event = self.event()?;
        let Self { sequence, time_ms, operation, subjects, decision, code, why } = self;
        let change = Change {
            sequence: *sequence,
            time_ms: *time_ms,
            operation,
            subjects,
            decision,
            code: code.as_deref(),
            why: why.as_deref(),
        };
        let json = serde_json::to_string(&change).ok()?;
        Some(format!("id: {sequence}\nevent: {event}\ndata: {json}\n\n").into())
    }
}

/// Reads the entries behind a sequence up to another, as a session sees them. `held` is held until that is done, also
/// where nobody waits for it any more.
async fn page(
    client: &Client,
    (after, to): (u64, u64),
    limit: u64,
    held: impl Send + 'static,
) -> Result<Page> {
    let params = json!({ "after": after, "to": to, "limit": limit });
    let params = to_raw_value(&params).map_err(grainstore_rpc::Error::from)?;
    let cancel = CancelHandle::new();
    let _ended = CancelOnDrop(cancel.clone());
    let answer = call(client, "audit", params, cancel, held).await?;
    serde_json::from_str(answer.get()).map_err(|error| grainstore_rpc::Error::from(error).into())
}

/// What a feed reads with: it takes a turn for each page, as requests do.
struct Reader {
    server: Arc<Server>,
    access: Arc<Access>,
    /// Its place among the feeds of the token.
    place: Arc<OwnedSemaphorePermit>,
    /// Most entries of the next page.
    limit: u64,
}

/// What was read, and how far; with the room that it takes.
struct Told {
    frames: Vec<Bytes>,
    looked_at: u64,
    _taken: Taken,
}

impl Reader {
    /// Reads as many entries behind a sequence, up to another, as an answer has room for: one of a large batch has
    /// megabytes of addresses.
    async fn read(&mut self, (after, to): (u64, u64)) -> Result<Told> {
        loop {
            let turn = self.server.gate.enter(&self.access.running, false).await;
            let Ok(turn) = turn else {
                tokio::time::sleep(READ_AGAIN).await;
                continue;
            };
            let own = turn.own();
            let held = (turn, Arc::clone(&self.place));
            match page(&self.access.client, (after, to), self.limit, held).await {
                Err(failure) if failure.has_code("ERR_LIMIT") && self.limit > 1 => self.limit /= 2,
                read => {
                    let entries = read?.entries;
                    let looked_at = entries.last().map_or(to, |last| last.sequence);
                    self.limit = PAGE.min(self.limit.saturating_mul(2));
                    let frames: Vec<_> = entries.iter().filter_map(Entry::frame).collect();
                    drop(entries);
                    let bytes = frames.iter().map(Bytes::len).sum();
                    let taken = self.room(bytes).await;
                    drop(own);
                    return Ok(Told { frames, looked_at, _taken: taken });
                }
            }
        }
    }

    /// Waits for room for frames.
    async fn room(&self, bytes: usize) -> Taken {
        loop {
            if let Ok(taken) = self.access.room.take(&self.server.room, bytes).await {
                return taken;
            }
        }
    }
}

/// The sequence of the newest entry, and whether this process has the store open: then nothing is written for it.
async fn head_of(client: &Client) -> Result<(u64, bool)> {
    let own = client.clone();
    let here =
        spawn_blocking(move || own.owned_session().map(|session| session.audit_head())).await;
    if let Ok(Some(head)) = here {
        let (count, _) = head.map_err(grainstore_rpc::Error::from)?;
        return Ok((count.saturating_sub(1), true));
    }
    let page = page(client, (BEHIND_ALL, BEHIND_ALL), 1, ()).await?;
    Ok((page.head.map_or(0, |head| head.sequence), false))
}

/// Looks at the end of the log while somebody wants to know, until the server stops.
pub(super) async fn watch_head(server: Arc<Server>, client: Client) {
    let mut stopping = server.stopping.subscribe();
    let mut pause = LOOK_EVERY;
    loop {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stopped(&mut stopping) => return,
        }
        if server.head.0.receiver_count() == 0 {
            continue;
        }
        if let Ok((head, is_here)) = head_of(&client).await {
            pause = if is_here { LOOK_EVERY } else { LOOK_ELSEWHERE_EVERY };
            server.head.0.send_if_modified(|known| std::mem::replace(known, head) != head);
        }
    }
}

/// Answers a feed behind a sequence; from now on where none is given.
///
/// # Errors
/// 429 for too many feeds of one client, 410 for a sequence that the log does not have yet: one of another store.
pub(super) async fn respond(
    server: &Arc<Server>,
    caller: &Caller,
    after: Option<u64>,
) -> Result<Response<Body>> {
    let place = Arc::clone(&caller.access.feeds).try_acquire_owned().map_err(|_| {
        let message =
            format!("a client has at most {} change feeds at once", super::access::MAX_FEEDS);
        Failure::too_many(StatusCode::TOO_MANY_REQUESTS, message, 10)
    })?;
    let access = &caller.access;
    let mut changed = server.head.0.subscribe();
    let (head, _) = head_of(&access.client).await?;
    if after.is_some_and(|after| after > head) {
        let message = "the log of this store has no such entry";
        return Err(Failure::new(
            StatusCode::GONE,
            "ERR_CURSOR",
            message,
            "begin without a sequence",
        ));
    }
    let mut after = after.unwrap_or(head);
    let (frames, received) =
        mpsc::channel::<std::result::Result<Bytes, std::convert::Infallible>>(1);
    let mut stopping = server.stopping.subscribe();
    let (server, access, place) = (Arc::clone(server), Arc::clone(access), Arc::new(place));
    let (own, of) = (Arc::clone(&server), Arc::clone(&access));
    let mut reader = Reader { server: own, access: of, place, limit: PAGE };
    tokio::spawn(async move {
        server.metrics.feeds.inc();
        let told = async {
            // A first line, so that a client sees that it is connected.
            frames.send(Ok(Bytes::from_static(b"retry: 1000\n\n"))).await.ok()?;
            let mut spoke = Instant::now();
            loop {
                if !server.accesses().is_ok_and(|accesses| accesses.holds(&access)) {
                    return None::<()>;
                }
                // Seen before the page is read: what comes between the two is read with the next one.
                let head = (*changed.borrow_and_update()).max(head);
                if after < head {
                    let to = head.min(after.saturating_add(PAGE));
                    let mut told = reader.read((after, to)).await.ok()?;
                    for frame in told.frames.drain(..) {
                        frames.send(Ok(frame)).await.ok()?;
                        spoke = Instant::now();
                    }
                    // Entries that the session does not see are passed by.
                    after = told.looked_at;
                }
                let quiet = KEEP_ALIVE.saturating_sub(spoke.elapsed());
                if after < head && !quiet.is_zero() {
                    continue;
                }
                if tokio::time::timeout(quiet, changed.changed()).await.is_err() {
                    frames.send(Ok(Bytes::from_static(b": \n\n"))).await.ok()?;
                    spoke = Instant::now();
                }
            }
        };
        tokio::select! {
            _ = told => {}
            () = frames.closed() => {}
            () = stopped(&mut stopping) => {}
        }
        server.metrics.feeds.dec();
    });
    let mut response = Response::new(Body::from_stream(ReceiverStream::new(received)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(response)
}
