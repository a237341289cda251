//! A connection to the database, and how one is made.

use std::collections::HashMap;
use std::error::Error as _;
use std::fmt;
use std::future::poll_fn;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use grainstore::Result;
use grainstore::journal::{invalid, unreachable};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres::error::Severity;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, Row, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::schema::other_version;
use super::{Typed, failed};

/// Time in which a connection is made, and in which a call of little is answered.
const CALL_TIME: Duration = Duration::from_secs(5);
/// More time for each MiB that a call sends or is answered.
const TIME_PER_MIB: Duration = Duration::from_millis(250);
/// Time after which a server that acknowledges nothing is given up.
const SILENCE: Duration = Duration::from_secs(10);
/// Turns in which what came on a connection is heard.
const HEARING_TURNS: usize = 3;
/// Age at which a connection is closed: some services end them after an hour.
const MAX_AGE: Duration = Duration::from_secs(30 * 60);
/// Attempts of a call that the database asks to make again.
const MAX_ATTEMPTS: u32 = 20;

const URL_HINT: &str = "give postgresql://USER@HOST/DATABASE, or host=HOST user=USER dbname=DATABASE; sslmode is \
                        require, which checks the server's certificate and name, or disable";
const ENCRYPT_HINT: &str =
    "add sslmode=require to the URL, or sslmode=disable if nobody else is on that network";

/// How a [`PostgresJournal`](super::PostgresJournal) reaches its database.
///
/// ```
/// use grainstore_cluster::{PostgresJournal, PostgresOptions};
///
/// let options = PostgresOptions::new("postgresql://grain@db-1,db-2/memory?sslmode=require");
/// let journal = PostgresJournal::new(&options)?;
/// let wrong = PostgresOptions::new("host=db").schema("a-b");
/// assert!(PostgresJournal::new(&wrong).is_err_and(|error| error.code() == "ERR_SCHEMA"));
/// # Ok::<(), grainstore::Error>(())
/// ```
#[derive(Clone)]
pub struct PostgresOptions {
    url: String,
    pub(super) schema: String,
    roots: Option<Vec<u8>>,
}

impl fmt::Debug for PostgresOptions {
    /// The connection string may have a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl PostgresOptions {
    /// A connection string, a URL or `name=value` pairs. With several hosts the one that writes is taken.
    /// `sslmode=require` encrypts, and checks the server's certificate and name; a database on another machine needs it,
    /// or `sslmode=disable`.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), schema: "grainstore".to_owned(), roots: None }
    }

    /// Sets the schema of the tables: one for each cluster of a database. `grainstore` by default.
    #[must_use]
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// Sets the certificates in PEM that servers' certificates are checked against, in place of the system's; connections
    /// are encrypted then.
    #[must_use]
    pub fn roots(mut self, pem: Vec<u8>) -> Self {
        self.roots = Some(pem);
        self
    }
}

/// What errors name.
struct Names {
    /// The hosts and the database.
    place: String,
    schema: String,
}

/// Makes connections.
pub(super) struct Connector {
    config: Config,
    names: Arc<Names>,
    tls: Option<MakeRustlsConnect>,
}

impl Connector {
    pub(super) fn new(options: &PostgresOptions) -> Result<Self> {
        let config = Config::from_str(&options.url);
        let mut config = config.map_err(|error| invalid(causes(&error), URL_HINT))?;
        config
            .target_session_attrs(TargetSessionAttrs::ReadWrite)
            .keepalives_idle(SILENCE)
            .tcp_user_timeout(SILENCE);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CALL_TIME);
        }
        if config.get_application_name().is_none() {
            config.application_name("grainstore");
        }
        let encrypts = match config.get_ssl_mode() {
            SslMode::Require => true,
            SslMode::Disable if options.roots.is_some() => {
                let message = "certificates are named, and sslmode=disable";
                return Err(invalid(message, "leave one of them out"));
            }
            SslMode::Disable => false,
            // A connection that anybody may have weakened would look as if it were safe.
            _ if options.roots.is_some() => true,
            _ if is_local(&config) => false,
            _ => {
                let message = "grains and the password would cross the network in the clear";
                return Err(invalid(message, ENCRYPT_HINT));
            }
        };
        config.ssl_mode(if encrypts { SslMode::Require } else { SslMode::Disable });
        let tls = encrypts.then(|| tls(options.roots.as_deref())).transpose()?;
        let names = Arc::new(Names { place: place(&config), schema: options.schema.clone() });
        Ok(Self { config, names, tls })
    }

    pub(super) fn connect(&self) -> Result<Connection> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let warned = Arc::new(AtomicBool::new(false));
        let note = Arc::clone(&warned);
        let connecting = async {
            match &self.tls {
                Some(tls) => {
                    let (client, connection) = self.config.connect(tls.clone()).await?;
                    tokio::spawn(drive(connection, note));
                    Ok(client)
                }
                None => {
                    let (client, connection) = self.config.connect(NoTls).await?;
                    tokio::spawn(drive(connection, note));
                    Ok(client)
                }
            }
        };
        // The client's own limit ends once it is connected, and not when the server greets it.
        let client = runtime.block_on(async { timeout(CALL_TIME, connecting).await });
        let client = client.map_err(|_| silent(&self.names.place, CALL_TIME))?;
        let client = client.map_err(|error| failed(&error, &self.names.place))?;
        let since = Instant::now();
        let names = Arc::clone(&self.names);
        let prepared = HashMap::new();
        Ok(Connection { runtime, client, prepared, names, warned, is_good: true, since })
    }
}

/// The hosts and the database, without the user and the password.
fn place(config: &Config) -> String {
    let hosts = config.get_hosts().iter().map(|host| match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    });
    let (ports, hosts) = (config.get_ports(), hosts.collect::<Vec<_>>());
    let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(5432);
    let hosts = hosts.iter().enumerate().map(|(at, host)| format!("{host}:{}", port(at)));
    let hosts = hosts.collect::<Vec<_>>().join(",");
    config.get_dbname().map_or_else(|| hosts.clone(), |name| format!("{hosts}/{name}"))
}

/// Returns `true` if the database runs on this machine, by its names.
fn is_local(config: &Config) -> bool {
    let addresses = config.get_hostaddrs();
    let hosts = config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        _ => true,
    });
    match addresses.is_empty() {
        true => hosts,
        false => addresses.iter().all(IpAddr::is_loopback),
    }
}

/// Takes what the server says until the connection ends.
async fn drive<S, T>(mut connection: tokio_postgres::Connection<S, T>, warned: Arc<AtomicBool>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notice(notice) = message {
            let severity = notice.parsed_severity();
            if severity.is_none_or(|severity| severity == Severity::Warning) {
                warned.store(true, Ordering::SeqCst);
            }
        }
    }
}

/// `ERR_IO` of a server that did not answer.
fn silent(place: &str, limit: Duration) -> grainstore::Error {
    unreachable(format!("PostgreSQL at {place} did not answer within {} ms", limit.as_millis()))
}

fn tls(roots: Option<&[u8]>) -> Result<MakeRustlsConnect> {
    let mut store = RootCertStore::empty();
    match roots {
        Some(pem) => {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let read = certificate.map_err(|error| unreachable(error.to_string()))?;
                store.add(read).map_err(|error| unreachable(error.to_string()))?;
            }
        }
        None => {
            let native = rustls_native_certs::load_native_certs();
            store.add_parsable_certificates(native.certs);
        }
    }
    if store.is_empty() {
        return Err(unreachable("there are no certificates to check the server's against"));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = versions.map_err(|error| unreachable(error.to_string()))?;
    let config = builder.with_root_certificates(store).with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// A connection.
pub(super) struct Connection {
    /// What the client runs on, while a call waits.
    runtime: Runtime,
    client: Client,
    prepared: HashMap<String, Statement>,
    names: Arc<Names>,
    /// True once the server warned: of a commit that did not wait for a standby.
    warned: Arc<AtomicBool>,
    is_good: bool,
    since: Instant,
}

impl Connection {
    /// Runs statements, again where the database asks for that. `bytes` is about what they send and are answered.
    ///
    /// # Errors
    /// `ERR_IO`, also if the server does not answer in time: what it was told may be done, or may not.
    pub(super) fn call<T>(
        &mut self,
        bytes: usize,
        mut call: impl AsyncFnMut(&mut Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T> {
        let mebibytes = u32::try_from(bytes >> 20).unwrap_or(u32::MAX);
        let limit = CALL_TIME.saturating_add(TIME_PER_MIB.saturating_mul(mebibytes));
        for attempt in 1..=MAX_ATTEMPTS {
            self.warned.store(false, Ordering::SeqCst);
            let Self { runtime, client, .. } = self;
            let called = runtime.block_on(async { timeout(limit, call(client)).await });
            let error = match called {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(error)) => error,
                // It is not cancelled: a commit that waits for its standby would be made without it.
                Err(_) => {
                    self.is_good = false;
                    return Err(silent(&self.names.place, limit));
                }
            };
            match error.as_db_error().map(|said| said.code().code()) {
                // A conflict of transactions, or a deadlock: nothing was done.
                Some("40001" | "40P01") if attempt < MAX_ATTEMPTS => {
                    std::thread::sleep(Duration::from_millis(u64::from(attempt)));
                }
                // There is no such table or schema.
                Some("42P01" | "3F000") => {
                    self.is_good = false;
                    return Err(other_version(&self.names.schema, None));
                }
                _ => {
                    self.is_good = false;
                    return Err(failed(&error, &self.names.place));
                }
            }
        }
        Err(unreachable("PostgreSQL: transactions conflict again and again"))
    }

    /// The rows of a query, of about so many bytes.
    pub(super) fn rows(
        &mut self,
        query: &str,
        values: &[Typed<'_>],
        bytes: usize,
    ) -> Result<Vec<Row>> {
        let (query, values) = (self.prepared(query, values)?, untyped(values));
        self.call(bytes, async |client| client.query(&query, &values).await)
    }

    /// The only row of a query, if it has one.
    pub(super) fn row(&mut self, query: &str, values: &[Typed<'_>]) -> Result<Option<Row>> {
        let (query, values) = (self.prepared(query, values)?, untyped(values));
        self.call(0, async |client| client.query_opt(&query, &values).await)
    }

    /// Number of rows that a statement changes, which sends about so many bytes.
    pub(super) fn change(
        &mut self,
        statement: &str,
        values: &[Typed<'_>],
        bytes: usize,
    ) -> Result<u64> {
        let (statement, values) = (self.prepared(statement, values)?, untyped(values));
        self.call(bytes, async |client| client.execute(&statement, &values).await)
    }

    /// A statement, which is planned once for each connection.
    fn prepared(&mut self, statement: &str, values: &[Typed<'_>]) -> Result<Statement> {
        if let Some(prepared) = self.prepared.get(statement) {
            return Ok(prepared.clone());
        }
        let types: Vec<Type> = values.iter().map(|(_, of)| of.clone()).collect();
        let prepared =
            self.call(0, async |client| client.prepare_typed(statement, &types).await)?;
        self.prepared.insert(statement.to_owned(), prepared.clone());
        Ok(prepared)
    }

    /// Refuses if the last call was committed without the standby that it was to wait for.
    pub(super) fn check_waited(&mut self) -> Result<()> {
        match self.warned.swap(false, Ordering::SeqCst) {
            false => Ok(()),
            true => Err(unreachable("PostgreSQL: a commit did not wait for its standby")),
        }
    }

    /// Returns `true` if it can be used again.
    pub(super) fn is_good(&self) -> bool {
        self.is_good && !self.client.is_closed() && self.since.elapsed() < MAX_AGE
    }

    /// Returns `true` if the server has not ended it while it was kept.
    pub(super) fn is_open(&self) -> bool {
        self.runtime.block_on(async {
            // What the server said is heard by the task that drives the connection, which runs meanwhile.
            for _ in 0..HEARING_TURNS {
                tokio::task::yield_now().await;
            }
        });
        self.is_good()
    }
}

fn untyped<'v>(values: &[Typed<'v>]) -> Vec<&'v (dyn ToSql + Sync)> {
    values.iter().map(|(value, _)| *value).collect()
}

/// An error with what caused it.
pub(super) fn causes(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
