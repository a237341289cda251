//! `grain serve`: the store over HTTP, and a console (docs/http.md, docs/console.md).

use std::io::{self, IsTerminal as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use grainstore::{ManualClock, SessionOptions};
use grainstore_rpc::{Client, ClientOptions};
use grainstore_serve::{Grant, HttpOptions, Profile, TlsFiles, Tokens, serve_http};
use serde_json::json;
use tempfile::TempDir;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::demo::{QUERY_TIME, create_week};
use crate::context::{Context, unshared_note, with_opening_hint};
use crate::error::{Code, Error, Result};
use crate::interrupt::set_at_signals;
use crate::output::Output;

/// Serve the store over HTTP, with a console for people
///
/// Programs send a bearer token, which `grain tokens create` makes; a person opens the URL that is printed, which signs
/// in once. The store is made if there is none yet, and shared with other processes that have it open. --namespace,
/// --user and --actor are of who opens that URL. Ctrl-C, SIGTERM
/// and SIGHUP stop it once requests under way are answered.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The address and the port to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7117")]
    listen: SocketAddr,
    /// Serve the week of `grain demo`, in a temporary store
    #[arg(long)]
    demo: bool,
    /// Certificates in PEM, the server's own first, to encrypt connections
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Their private key in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// The URL that people use, where a proxy in front of this server has it
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// A name that this server is reached by, beside addresses and localhost; may be given several times
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    /// Requests of one token a second; as many more at once
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
    /// Most bytes of the body of a request
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 20)]
    max_body: usize,
    /// Milliseconds that a request that reads may take
    #[arg(long, value_name = "MS", default_value_t = 30_000)]
    timeout_ms: u64,
    /// What is logged on stderr
    #[arg(long, value_enum, default_value_t = Log::Access, value_name = "WHAT")]
    log: Log,
    /// The tools that a model is shown over MCP, at /mcp
    #[arg(long, value_enum, default_value_t = Tools::Memory, value_name = "PROFILE")]
    mcp_profile: Tools,
    /// Let the tool forget erase for good, once a person confirms it
    #[arg(long)]
    mcp_allow_erase: bool,
}

/// Lines of the log that wait for its reader; more are lost.
const MAX_LOG_LINES: usize = 4_096;

/// What is logged. Contents never are.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Log {
    /// Failures of the server alone
    Off,
    /// A line for each request, too: method, route, status, time, token
    Access,
    /// Spans of operations, too, by the names of OpenTelemetry
    Spans,
}

/// The tools.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Tools {
    /// recall, search, remember, history and forget
    Memory,
    /// These and cal, the language
    Full,
}

/// A week in a temporary store.
struct Demo {
    directory: TempDir,
    store: PathBuf,
    clock: Arc<ManualClock>,
}

impl Demo {
    fn new() -> Result<Self> {
        let directory = tempfile::tempdir().map_err(|error| {
            Error::new(Code::Io, format!("no temporary directory: {error}"), "set TMPDIR")
        })?;
        let session = create_week(directory.path())?;
        let store = session.store().path().to_owned();
        session.store().close()?;
        let clock = Arc::new(ManualClock::following());
        clock.set(QUERY_TIME);
        Ok(Self { directory, store, clock })
    }
}

impl Serve {
    pub(crate) fn run(self, context: &mut Context<'_>) -> Result<()> {
        let listener = TcpListener::bind(self.listen).map_err(|error| {
            let message = format!("cannot listen on {}: {error}", self.listen);
            Error::new(Code::Io, message, "name another address with --listen")
        })?;
        let address = listener.local_addr().unwrap_or(self.listen);
        let _log = start_log(self.log);
        let demo = self.demo.then(Demo::new).transpose()?;
        let store =
            demo.as_ref().map_or_else(|| context.globals.store.clone(), |demo| demo.store.clone());
        let mut opening = context.client_options(!context.globals.read_only)?;
        if let Some(demo) = &demo {
            opening.test_clock = Some(Arc::clone(&demo.clock));
            opening.open = opening.open.create(false);
        }
        let console = console_grant(&opening.session, context.globals.read_only);
        // Each token has a session of its own; this is the server's.
        opening.session = SessionOptions::default();
        self.note(address, &store, context);
        let tokens = Tokens::of(&store);
        let mut options = HttpOptions::new(move || open(&store, &opening), tokens);
        options.console = console;
        options.tls = self
            .tls_cert
            .zip(self.tls_key)
            .map(|(certificates, key)| TlsFiles { certificates, key });
        options.public_url = self.public_url;
        options.hosts = self.hosts;
        options.rate = self.rate;
        options.max_body_bytes = self.max_body;
        options.timeout = Duration::from_millis(self.timeout_ms);
        options.mcp_profile = match self.mcp_profile {
            Tools::Memory => Profile::Memory,
            Tools::Full => Profile::Full,
        };
        options.mcp_allow_erase = self.mcp_allow_erase;
        set_at_signals(&options.stop);
        let is_json = context.output.is_json();
        let served = serve_http(listener, options, move |url| tell(url, address, is_json));
        if let Some(Demo { directory, .. }) = demo {
            drop(directory);
        }
        served
    }

    /// Notes what somebody should know before the first request.
    fn note(&self, address: SocketAddr, store: &std::path::Path, context: &mut Context<'_>) {
        let is_encrypted = self.tls_cert.is_some() || self.public_url.is_some();
        if !address.ip().is_loopback() && !is_encrypted {
            context.output.note(
                "note: tokens and memory go over the network unencrypted: give --tls-cert and --tls-key, or put a proxy \
                 in front",
            );
        }
        if self.demo {
            let store = store.display();
            context.output.note(&format!(
                "The week is in {store}, until this ends: grain --store {store} tokens create"
            ));
        }
        if io::stderr().is_terminal() {
            context
                .output
                .note("The URL signs in once, within ten minutes. Ctrl-C ends the server.");
        }
    }
}

fn open(store: &std::path::Path, options: &ClientOptions) -> Result<Client> {
    let client = Client::open(store, options.clone()).map_err(with_opening_hint)?;
    if client.has_created() {
        let _ =
            writeln!(io::stderr(), "note: there was no store at {}: it is made", store.display());
    }
    if let Some(why) = client.unshared() {
        let _ = writeln!(io::stderr(), "{}", unshared_note(&why));
    }
    Ok(client)
}

/// What who opens the printed URL may do: as the options of the command say.
fn console_grant(session: &SessionOptions, read_only: bool) -> Grant {
    Grant {
        namespace: session.namespace.clone(),
        user_id: session.user_id.clone(),
        actor: session.actor.clone(),
        purposes: session.purposes.clone(),
        writes: !read_only,
        operator: session.namespace.is_none() && session.user_id.is_none(),
    }
}

/// Prints the URL of the console on stdout, once the store is open.
fn tell(url: &str, address: SocketAddr, is_json: bool) {
    let (mut out, mut notes) = (io::stdout().lock(), io::sink());
    let mut output = Output::new(&mut out, &mut notes, is_json);
    let told = json!({ "url": url, "address": address.to_string() });
    // Whoever closed stdout wants no URL; requests are answered all the same.
    let _ = output.answer(&told, |output| output.line(&format!("console: {url}")));
    let _ = output.flush();
}

/// Starts the log on stderr: a reader that stands still keeps no request waiting, lines are lost then. What is returned
/// writes the rest when it is dropped.
fn start_log(what: Log) -> WorkerGuard {
    let (access, spans) = match what {
        Log::Off => (LevelFilter::OFF, LevelFilter::ERROR),
        Log::Access => (LevelFilter::INFO, LevelFilter::ERROR),
        Log::Spans => (LevelFilter::INFO, LevelFilter::INFO),
    };
    let targets = Targets::new()
        .with_target("grainstore::access", access)
        .with_target("grainstore::http", spans);
    let (writer, guard) =
        NonBlockingBuilder::default().buffered_lines_limit(MAX_LOG_LINES).finish(io::stderr());
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(writer)
        .with_ansi(false)
        .with_span_events(FmtSpan::CLOSE);
    // A second log of one process stays the first one's.
    let _ = tracing_subscriber::registry().with(lines).with(targets).try_init();
    guard
}
