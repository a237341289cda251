//! A connection to the database, and how one is made.

use std::collections::HashMap;
use std::error::Error as _;
use std::fmt;
use std::future::poll_fn;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use grainstore::Result;
use grainstore::journal::{invalid, refused, unreachable};
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
/// Time in which one of many hosts is to answer, at least.
const MIN_HOST_TIME: Duration = Duration::from_secs(1);
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

pub(super) const URL_HINT: &str = "give postgresql://USER:PASSWORD@HOST/DATABASE, or host=HOST user=USER \
                                   password=PASSWORD dbname=DATABASE; sslmode is require, which checks the \
                                   server's certificate and name, or disable";
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
    /// Each host by itself: one that does not answer takes none of the time of the others.
    hosts: Vec<Config>,
    /// The host that answered last, which is tried first.
    last: AtomicUsize,
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
        if let Some(host) = config.get_hosts().iter().find_map(with_at) {
            return Err(invalid(
                format!("the user or the password before @{host} has an @ in it"),
                "write @ in a user or a password as %40, and % as %25",
            ));
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
        let hosts = hosts_of(&config)?;
        Ok(Self { hosts, last: AtomicUsize::new(0), names, tls })
    }

    /// Connects to the host that writes: that of the last connection is tried first, and the others in turn.
    ///
    /// # Errors
    /// `ERR_IO`: what the last host said, or that none answered.
    pub(super) fn connect(&self) -> Result<Connection> {
        let first = self.last.load(Ordering::Relaxed);
        let mut outcome = Err(unreachable("no host of PostgreSQL is named"));
        for at in (first..self.hosts.len()).chain(0..first) {
            let Some(host) = self.hosts.get(at) else { continue };
            outcome = self.connect_to(host);
            if outcome.is_ok() {
                self.last.store(at, Ordering::Relaxed);
                break;
            }
        }
        outcome
    }

    fn connect_to(&self, host: &Config) -> Result<Connection> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let warned = Arc::new(AtomicBool::new(false));
        let note = Arc::clone(&warned);
        let connecting = async {
            match &self.tls {
                Some(tls) => {
                    let (client, connection) = host.connect(tls.clone()).await?;
                    tokio::spawn(drive(connection, note));
                    Ok(client)
                }
                None => {
                    let (client, connection) = host.connect(NoTls).await?;
                    tokio::spawn(drive(connection, note));
                    Ok(client)
                }
            }
        };
        // The client's own limit ends once it is connected, and not when the server greets it.
        let limit = host_time(self.hosts.len());
        let client = match runtime.block_on(async { timeout(limit, connecting).await }) {
            Ok(Ok(client)) => client,
            failure => {
                // A name that is still looked up is not waited for.
                runtime.shutdown_background();
                let place = place(host);
                return Err(match failure {
                    Ok(Err(error)) => failed(&error, &place),
                    _ => silent(&place, limit),
                });
            }
        };
        let names = Arc::clone(&self.names);
        Ok(Connection {
            runtime,
            client,
            prepared: HashMap::new(),
            names,
            warned,
            is_good: true,
            since: Instant::now(),
            limit: CALL_TIME,
        })
    }
}

/// Time in which one of so many hosts is to answer.
fn host_time(hosts: usize) -> Duration {
    let hosts = u32::try_from(hosts).unwrap_or(u32::MAX).max(1);
    (CALL_TIME / hosts).max(MIN_HOST_TIME)
}

/// Each host of a configuration as one of its own, with the rest of it.
///
/// # Errors
/// `ERR_SCHEMA` where hosts, their addresses and their ports do not go together, or there is no host.
fn hosts_of(all: &Config) -> Result<Vec<Config>> {
    let (names, addresses, ports) = (all.get_hosts(), all.get_hostaddrs(), all.get_ports());
    let count = names.len().max(addresses.len());
    let goes = |length: usize| length == 0 || length == count;
    if count == 0 || !goes(names.len()) || !goes(addresses.len()) {
        return Err(invalid(
            "the database has no host, or not as many hosts as addresses",
            URL_HINT,
        ));
    }
    if ports.len() > 1 && ports.len() != count {
        return Err(invalid("there are not as many ports as hosts", URL_HINT));
    }
    // A name may have several addresses, and the second is to be tried as well.
    let limit = host_time(count) / 2;
    let limit = all.get_connect_timeout().map_or(limit, |said| limit.min(*said));
    let of = |at: usize| {
        let mut host = Config::new();
        match names.get(at) {
            Some(Host::Tcp(name)) => drop(host.host(name)),
            #[cfg(unix)]
            Some(Host::Unix(path)) => drop(host.host_path(path)),
            None => {}
        }
        addresses.get(at).map(|address| host.hostaddr(*address));
        ports.get(at).or(ports.first()).map(|port| host.port(*port));
        all.get_user().map(|user| host.user(user));
        all.get_password().map(|password| host.password(password));
        all.get_dbname().map(|name| host.dbname(name));
        all.get_options().map(|options| host.options(options));
        all.get_application_name().map(|name| host.application_name(name));
        all.get_keepalives_interval().map(|time| host.keepalives_interval(time));
        all.get_keepalives_retries().map(|count| host.keepalives_retries(count));
        all.get_tcp_user_timeout().map(|time| host.tcp_user_timeout(*time));
        host.keepalives(all.get_keepalives())
            .keepalives_idle(all.get_keepalives_idle())
            .ssl_mode(all.get_ssl_mode())
            .ssl_negotiation(all.get_ssl_negotiation())
            .target_session_attrs(all.get_target_session_attrs())
            .channel_binding(all.get_channel_binding())
            .connect_timeout(limit);
        host
    };
    Ok((0..count).map(of).collect())
}

/// A host with an @ in it, from behind that: before it is a part of a password.
fn with_at(host: &Host) -> Option<&str> {
    match host {
        Host::Tcp(name) => name.rsplit_once('@').map(|(_, host)| host),
        #[cfg(unix)]
        Host::Unix(_) => None,
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
    let message = format!("PostgreSQL at {place} did not answer within {} ms", limit.as_millis());
    refused(
        message,
        "check that it runs and is reached, and so does the standby that it waits for; nothing that was acknowledged is \
         lost",
    )
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
    /// Time in which a call of little is answered.
    limit: Duration,
}

impl Connection {
    /// Sets the time in which a call of little is answered, `None` for the usual.
    pub(super) fn set_limit(&mut self, limit: Option<Duration>) {
        self.limit = limit.map_or(CALL_TIME, |limit| limit.min(CALL_TIME));
    }

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
        let limit = self.limit.saturating_add(TIME_PER_MIB.saturating_mul(mebibytes));
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
