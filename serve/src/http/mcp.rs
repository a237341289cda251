//! The Model Context Protocol over streamable HTTP, at `/mcp` (docs/mcp.md). Without sessions: each request stands for
//! itself, so that nothing of one client is left for another.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use grainstore::cal::CancelHandle;
use grainstore_rpc::{Client, Error, Result};
use rmcp::transport::streamable_http_server::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::tower::StreamableHttpServerConfig;
use serde_json::Value;

use super::access::{Access, Caller};
use super::call::{read_large_body, turn};
use super::failure::{Failure, told_to_others};
use super::routes::{ROUTES, Reach};
use super::state::Server;
use crate::mcp::{McpOptions, McpServer, Shared};
use crate::memory::{HeldByWork, Operations};

type Service = StreamableHttpService<McpServer, LocalSessionManager>;

/// The services of the tokens that have used it, by their ids.
type ByToken = HashMap<Arc<str>, (Arc<Access>, Service)>;

#[derive(Default)]
pub(super) struct Services(Mutex<ByToken>);

impl Services {
    /// The service of a token. One that grants something else by now has another.
    fn of(&self, server: &Server, access: &Arc<Access>) -> Service {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, service)) = all.get(&access.id)
            && Arc::ptr_eq(of, access)
        {
            return service.clone();
        }
        let (client, writes) = (access.client.clone(), access.grant.writes);
        let mut options =
            McpOptions::over(move || Ok(Box::new(OfToken { client: client.clone(), writes })));
        options.profile = server.setting.profile;
        options.allow_erase = server.setting.allow_erase;
        options.namespace.clone_from(&access.grant.namespace);
        options.user_id.clone_from(&access.grant.user_id);
        let shared = Shared::new(options, server.stopping.subscribe());
        // Host and Origin are checked already, for all paths alike.
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(server.setting.max_body_bytes)
            .disable_allowed_hosts();
        let service =
            StreamableHttpService::new(move || Ok(shared.server()), Arc::default(), config);
        all.insert(Arc::clone(&access.id), (Arc::clone(access), service.clone()));
        service
    }
}

/// The store of a token. One that reads calls what is a route of such tokens, and nothing else.
struct OfToken {
    client: Client,
    writes: bool,
}

impl Operations for OfToken {
    fn call(&self, method: &str, params: &Value, cancel: &CancelHandle) -> Result<Value> {
        let mut routes = ROUTES.iter().filter(|route| route.method == method);
        let reads = routes.any(|route| route.reach == Reach::Read) && method != "cal_switch";
        let tier = params.get("tier").filter(|tier| !tier.is_null());
        if !self.writes && (!reads || tier.is_some_and(|tier| tier.as_u64() != Some(0))) {
            let message = "this token reads, and does not write";
            return Err(Error::of_code("ERR_ACCESS", message, "ask for a token of tier 1"));
        }
        Operations::call(&self.client, method, params, cancel).map_err(told_to_others)
    }

    /// The store is the server's.
    fn close(&self) -> Result<()> {
        Ok(())
    }
}

/// Answers a request of the protocol, once its body has come and it is its turn. The turn and the room of the body go
/// with the request to its work, which may outlive it.
pub(super) async fn respond(
    server: &Server,
    caller: &Caller,
    request: Request<Body>,
) -> super::failure::Result<Response<Body>> {
    let (parts, body) = request.into_parts();
    let (body, taken) = read_large_body(server, &caller.access, body).await?;
    let mut request = Request::from_parts(parts, Body::from(body));
    let turn = turn(server, &caller.access, false).await?;
    let held = HeldByWork(Arc::new((turn, taken, caller.place.clone())));
    request.extensions_mut().insert(held);
    let service = server.services.of(server, &caller.access);
    let answered = tokio::time::timeout(server.setting.timeout, service.handle(request)).await;
    answered.map(|answer| answer.map(Body::new)).map_err(|_| {
        let message = "the call took too long: what it was to write may be done by now";
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Failure::new(
            status,
            "ERR_TIMEOUT",
            message,
            "look whether it was, before it is called again",
        )
    })
}
