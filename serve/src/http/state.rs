//! What the requests of one server share.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::http::StatusCode;
use tokio::sync::watch;

use super::access::Accesses;
use super::changes::Head;
use super::failure::{Failure, Result};
use super::guard::Names;
use super::limits::{Gate, MAX_HELD_BYTES, Room};
use super::mcp::Services;
use super::metrics::Metrics;
use super::streams::Streams;
use crate::mcp::Profile;

/// What a server was started with.
pub(super) struct Setting {
    pub(super) names: Names,
    /// Most bytes of the body of a request.
    pub(super) max_body_bytes: usize,
    /// How long a request that reads may take.
    pub(super) timeout: Duration,
    /// The tools of MCP, and whether `forget` may erase.
    pub(super) profile: Profile,
    pub(super) allow_erase: bool,
}

/// A server.
pub(super) struct Server {
    pub(super) setting: Setting,
    pub(super) gate: Gate,
    /// Room for large bodies of all.
    pub(super) room: Room,
    pub(super) metrics: Metrics,
    /// Who may ask; empty until the store is open.
    pub(super) accesses: OnceLock<Accesses>,
    /// True once it stops.
    pub(super) stopping: watch::Sender<bool>,
    pub(super) streams: Arc<Streams>,
    pub(super) head: Head,
    pub(super) services: Services,
}

/// Waits until the server stops.
pub(super) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // A sender that is gone has stopped, too.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

impl Server {
    pub(super) fn new(setting: Setting) -> Self {
        Self {
            setting,
            gate: Gate::default(),
            room: Room::new(MAX_HELD_BYTES),
            metrics: Metrics::new(),
            accesses: OnceLock::new(),
            stopping: watch::Sender::new(false),
            streams: Arc::default(),
            head: Head::default(),
            services: Services::default(),
        }
    }

    /// Who may ask.
    ///
    /// # Errors
    /// 503 while the store is being opened, and once the server stops.
    pub(super) fn accesses(&self) -> Result<&Accesses> {
        let busy = |what: &str| Failure::too_many(StatusCode::SERVICE_UNAVAILABLE, what, 1);
        if *self.stopping.borrow() {
            return Err(busy("the server is stopping"));
        }
        self.accesses.get().ok_or_else(|| busy("the store is being opened"))
    }
}
