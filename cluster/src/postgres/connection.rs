//! A connection to the database, and how one is made.

use std::error::Error as _;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use grainstore::Result;
use grainstore::journal::{invalid, unreachable};
use postgres::config::{SslMode, TargetSessionAttrs};
use postgres::{Client, Config, NoTls};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::failed;
use super::schema::other_version;

/// Time in which a connection is made.
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// Time after which a server that acknowledges nothing is given up.
const SILENCE: Duration = Duration::from_secs(10);
/// Age at which a connection is closed: some services end them after an hour.
const MAX_AGE: Duration = Duration::from_secs(30 * 60);
/// Attempts of a call that the database asks to make again.
const MAX_ATTEMPTS: u32 = 20;

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
    /// `sslmode=require` encrypts, and checks the server's certificate and name.
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

    /// Sets the certificates in PEM that servers' certificates are checked against, in place of the system's.
    #[must_use]
    pub fn roots(mut self, pem: Vec<u8>) -> Self {
        self.roots = Some(pem);
        self
    }
}

/// Makes connections.
pub(super) struct Connector {
    config: Config,
    tls: Option<MakeRustlsConnect>,
}

impl Connector {
    pub(super) fn new(options: &PostgresOptions) -> Result<Self> {
        let config = Config::from_str(&options.url);
        let mut config = config.map_err(|error| invalid(causes(&error)))?;
        config
            .target_session_attrs(TargetSessionAttrs::ReadWrite)
            .keepalives_idle(SILENCE)
            .tcp_user_timeout(SILENCE);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIME);
        }
        if config.get_application_name().is_none() {
            config.application_name("grainstore");
        }
        let tls = match config.get_ssl_mode() {
            SslMode::Require => Some(tls(options.roots.as_deref())?),
            // A connection that anybody may have weakened would look as if it were safe.
            _ => {
                config.ssl_mode(SslMode::Disable);
                None
            }
        };
        Ok(Self { config, tls })
    }

    pub(super) fn connect(&self) -> Result<Connection> {
        let warned = Arc::new(AtomicBool::new(false));
        let mut config = self.config.clone();
        let note = Arc::clone(&warned);
        config.notice_callback(move |notice| {
            let is_warning = notice.parsed_severity() == Some(postgres::error::Severity::Warning);
            if is_warning || notice.parsed_severity().is_none() {
                note.store(true, Ordering::SeqCst);
            }
        });
        let client = match &self.tls {
            Some(tls) => config.connect(tls.clone()),
            None => config.connect(NoTls),
        };
        let client = client.map_err(|error| failed(&error))?;
        Ok(Connection { client, warned, is_good: true, since: std::time::Instant::now() })
    }
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
    client: Client,
    /// True once the server warned: of a commit that did not wait for a standby.
    warned: Arc<AtomicBool>,
    is_good: bool,
    since: std::time::Instant,
}

impl Connection {
    /// Runs statements, again where the database asks for that.
    pub(super) fn call<T>(
        &mut self,
        mut call: impl FnMut(&mut Client) -> Result<T, postgres::Error>,
    ) -> Result<T> {
        for attempt in 1..=MAX_ATTEMPTS {
            self.warned.store(false, Ordering::SeqCst);
            let error = match call(&mut self.client) {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            match error.as_db_error().map(|said| said.code().code()) {
                // A conflict of transactions, or a deadlock: nothing was done.
                Some("40001" | "40P01") if attempt < MAX_ATTEMPTS => {
                    std::thread::sleep(Duration::from_millis(u64::from(attempt)));
                }
                // There is no such table or schema.
                Some("42P01" | "3F000") => {
                    self.is_good = false;
                    return Err(other_version(None));
                }
                _ => {
                    self.is_good = false;
                    return Err(failed(&error));
                }
            }
        }
        Err(unreachable("PostgreSQL: transactions conflict again and again"))
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
}

/// An error with what caused it.
pub(super) fn causes(error: &postgres::Error) -> String {
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
