//! HTTP, and the console (docs/http.md).
//!
//! A request goes through these modules: `listen` accepts it, `guard` checks where it was sent to, `access` finds out
//! who asks (`tokens`: what they hold), `limits` whether it is their turn; `routes` says which method of docs/rpc.md it
//! is, `params` what that takes, and `call` answers it, or `failure` says why not. Others than such calls are
//! `streams` and `socket` (events of CAL), `changes` (the feed), `mcp`, `openapi`, `metrics`, and `console` with
//! `complete`.

mod access;
mod call;
mod changes;
mod complete;
mod console;
mod failure;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod guard;
mod limits;
mod listen;
mod mcp;
mod metrics;
mod openapi;
mod params;
mod router;
mod routes;
mod socket;
mod state;
mod streams;
mod tokens;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use grainstore_rpc::{Client, Code, Error, Result};
use tokio::runtime::Builder;
use tokio::task::spawn_blocking;

use crate::mcp::Profile;
use access::Accesses;
use guard::Names;
use state::{Server, Setting};

pub use listen::TlsFiles;
pub use tokens::{Grant, MadeToken, NewToken, Token, Tokens};

/// Threads for calls that block: those that run, long ones, streams, and a few for what is beside them.
const MAX_CALLING_THREADS: usize =
    limits::MAX_RUNNING + limits::MAX_LONG + streams::MAX_STREAMS + 64;
/// Time between two looks at whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long calls may take to end once nobody waits for their answers.
const END_PATIENCE: Duration = Duration::from_secs(1);

/// The OpenAPI document of the server, version 3.1, as JSON.
///
/// ```
/// let document = grainstore_serve::openapi();
/// assert!(document["paths"]["/v1/grains"]["post"].is_object());
/// ```
#[must_use]
pub fn openapi() -> serde_json::Value {
    openapi::json()
}

/// How a store is served over HTTP.
pub struct HttpOptions {
    open: Box<dyn Fn() -> Result<Client> + Send + Sync>,
    /// The bearer tokens that are let in.
    pub tokens: Tokens,
    /// What who opens the printed URL of the console may do.
    pub console: Grant,
    /// The URL that people use, where it is that of a proxy in front of this server.
    pub public_url: Option<String>,
    /// Names that the server is reached by, beside addresses and `localhost`.
    pub hosts: Vec<String>,
    /// Certificates, to encrypt connections here.
    pub tls: Option<TlsFiles>,
    /// Requests of a token a second; as many more at once.
    pub rate: u32,
    /// Most bytes of the body of a request.
    pub max_body_bytes: usize,
    /// How long a request that reads may take.
    pub timeout: Duration,
    /// The tools of MCP, at `/mcp`.
    pub mcp_profile: Profile,
    /// Whether the tool `forget` may erase for good, once a person confirms it.
    pub mcp_allow_erase: bool,
    /// Set to true to have the server stop.
    pub stop: Arc<AtomicBool>,
}

impl HttpOptions {
    /// Options for a store that this opens, once connections are accepted.
    ///
    /// ```
    /// use grainstore_rpc::{Client, ClientOptions};
    /// use grainstore_serve::{HttpOptions, Tokens};
    ///
    /// let open = || Client::open("memory.grains", ClientOptions::default());
    /// let options = HttpOptions::new(open, Tokens::of("memory.grains"));
    /// assert_eq!(options.rate, 2_000);
    /// ```
    pub fn new(open: impl Fn() -> Result<Client> + Send + Sync + 'static, tokens: Tokens) -> Self {
        Self {
            open: Box::new(open),
            tokens,
            console: Grant { writes: true, operator: true, ..Grant::default() },
            public_url: None,
            hosts: Vec::new(),
            tls: None,
            rate: 2_000,
            max_body_bytes: 16 << 20,
            timeout: Duration::from_secs(30),
            mcp_profile: Profile::Memory,
            mcp_allow_erase: false,
            stop: Arc::default(),
        }
    }
}

/// Serves a store over HTTP on a listener, until it is told to stop; then waits for the requests under way, ten seconds
/// at most, and closes the store. `ready` gets the URL that signs in to the console, once the store is open.
///
/// Blocks.
///
/// # Errors
/// Those of opening and closing the store; `ERR_SCHEMA` for names that are none; `ERR_KEY` for certificates that are
/// none; `ERR_IO` where the system gives no threads.
pub fn serve_http(
    listener: std::net::TcpListener,
    options: HttpOptions,
    ready: impl FnOnce(&str) + Send + 'static,
) -> Result<()> {
    let io = |error: std::io::Error| {
        Error::new(Code::Io, format!("cannot serve: {error}"), "look after the machine")
    };
    let HttpOptions { open, tokens, console, rate, stop, .. } = &options;
    let (console, rate, stop, tokens) = (console.clone(), *rate, Arc::clone(stop), tokens.clone());
    let names = Names::new(options.public_url.as_deref(), &options.hosts, options.tls.is_some())?;
    let tls = options.tls.as_ref().map(TlsFiles::acceptor).transpose()?;
    let setting = Setting {
        names,
        max_body_bytes: options.max_body_bytes,
        timeout: options.timeout,
        profile: options.mcp_profile,
        allow_erase: options.mcp_allow_erase,
    };
    let _ = open;
    let open = options.open;
    let address = listener.local_addr().map_err(io)?;
    listener.set_nonblocking(true).map_err(io)?;
    let base = base_url(options.public_url.as_deref(), address, options.tls.is_some());
    let runtime = Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(MAX_CALLING_THREADS)
        .build()
        .map_err(io)?;
    let server = Arc::new(Server::new(setting));
    let done = runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener).map_err(io)?;
        let app = router::router(&server);
        let serving = tokio::spawn(listen::serve(Arc::clone(&server), listener, tls, app));
        let place = (address.port(), server.setting.names.is_encrypted());
        let opening = {
            let server = Arc::clone(&server);
            spawn_blocking(move || -> Result<(Client, String)> {
                let client = open()?;
                let accesses = Accesses::new(tokens, client.clone(), console, rate, place)?;
                let code = accesses.new_code()?;
                let _ = server.accesses.set(accesses);
                Ok((client, code))
            })
        };
        let opened = opening.await;
        let opened =
            opened.unwrap_or_else(|_| Err(Error::new(Code::Io, "the store was not opened", "")));
        let (client, code) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                server.stopping.send_replace(true);
                let _ = serving.await;
                return Err(error);
            }
        };
        ready(&format!("{base}/#code={code}"));
        tokio::spawn(changes::watch_head(Arc::clone(&server), client.clone()));
        while !stop.load(Ordering::SeqCst) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        server.streams.cancel_all();
        server.stopping.send_replace(true);
        let _ = serving.await;
        Ok(client)
    });
    // Calls that still run were told to end.
    runtime.shutdown_timeout(END_PATIENCE);
    done?.close()
}

/// The URL by which the server is reached.
fn base_url(public: Option<&str>, address: SocketAddr, has_tls: bool) -> String {
    if let Some(public) = public {
        return public.trim_end_matches('/').to_owned();
    }
    let scheme = if has_tls { "https" } else { "http" };
    match address.ip().is_unspecified() {
        true => format!("{scheme}://localhost:{}", address.port()),
        false => format!("{scheme}://{address}"),
    }
}
