//! Connections: accepted, encrypted if asked for, and ended where the other side does not go on.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io::BufReader;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use grainstore_rpc::{Code, Error, Result};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use prometheus_client::metrics::gauge::Gauge;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, crypto};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;

use super::state::{Server, stopped};

/// Connections at once; others wait to be accepted.
pub(super) const MAX_CONNECTIONS: usize = 1_024;
/// Files that are kept for the store and the server, of those that the system lets a process have open.
const OWN_FILES: usize = 256;
/// Connections of one address of the network at once, where no proxy is in front; others are ended.
pub(super) const MAX_CONNECTIONS_OF_ADDRESS: usize = 512;
/// How long the head of a request may take, and how long a connection may idle.
pub(super) const HEAD_TIME: Duration = Duration::from_secs(30);
/// How long a client may take nothing of its answer (CAL 11.6).
pub(super) const STALL_TIME: Duration = Duration::from_secs(30);
/// How long the handshake of TLS may take.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
/// Most bytes of the head of a request.
pub(super) const MAX_HEAD_BYTES: usize = 64 << 10;
/// Most headers of a request.
pub(super) const MAX_HEADERS: usize = 100;
/// How long requests under way may take once the server stops.
pub(super) const STOP_TIME: Duration = Duration::from_secs(10);
/// Time after which accepting is tried again where the system has no room for a connection.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// The files of TLS.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The certificates in PEM, the server's own first.
    pub certificates: PathBuf,
    /// The private key in PEM.
    pub key: PathBuf,
}

impl TlsFiles {
    /// Reads the files.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND`, `ERR_KEY` for what is none.
    pub(super) fn acceptor(&self) -> Result<TlsAcceptor> {
        let wrong = |path: &Path, why: String| {
            let message = format!("{}: {why}", path.display());
            Error::new(Code::Key, message, "name files in PEM: --tls-cert and --tls-key")
        };
        let open = |path: &Path| {
            File::open(path).map(BufReader::new).map_err(|error| {
                let message = format!("{}: {error}", path.display());
                Error::new(Code::NotFound, message, "name a file that is there")
            })
        };
        let chain = CertificateDer::pem_reader_iter(open(&self.certificates)?);
        let chain: Vec<_> = chain
            .collect::<std::result::Result<_, _>>()
            .map_err(|error| wrong(&self.certificates, error.to_string()))?;
        if chain.is_empty() {
            return Err(wrong(&self.certificates, "there is no certificate in it".to_owned()));
        }
        let key = PrivateKeyDer::from_pem_reader(open(&self.key)?)
            .map_err(|error| wrong(&self.key, error.to_string()))?;
        let provider = Arc::new(crypto::ring::default_provider());
        let config =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config =
            config.and_then(|config| config.with_no_client_auth().with_single_cert(chain, key));
        let mut config = config.map_err(|error| wrong(&self.certificates, error.to_string()))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// Has the system let this process have as many files open as it may, and returns how many connections that leaves: the
/// store opens files too, and would fail without.
pub(super) fn connections() -> usize {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let of = getrlimit(Resource::Nofile);
        let raised = Rlimit { current: of.maximum, maximum: of.maximum };
        let current = match setrlimit(Resource::Nofile, raised) {
            Ok(()) => of.maximum,
            Err(_) => of.current,
        };
        let files = current.and_then(|files| usize::try_from(files).ok());
        let left = files.map_or(MAX_CONNECTIONS, |files| files.saturating_sub(OWN_FILES));
        left.clamp(16, MAX_CONNECTIONS)
    }
    #[cfg(not(unix))]
    {
        MAX_CONNECTIONS
    }
}

/// The addresses that count as one: whoever has an address of IPv6 has all of its network.
pub(super) fn network_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(long) => match long.to_ipv4_mapped() {
            Some(short) => IpAddr::V4(short),
            None => IpAddr::V6(Ipv6Addr::from_bits(long.to_bits() >> 64 << 64)),
        },
    }
}

#[cfg(test)]
#[test]
fn addresses_of_one_network_count_as_one() {
    for (one, other, same) in [
        ("10.0.0.1", "10.0.0.2", false),
        ("2001:db8::1", "2001:db8::ffff:1", true),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", false),
        ("::ffff:10.0.0.1", "10.0.0.1", true),
    ] {
        let [one, other] = [one, other].map(|text| network_of(text.parse().unwrap()));
        assert_eq!(one == other, same, "{one} {other}");
    }
}

/// Where a request comes from, and the place of its connection.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    pub(super) place: Arc<Place>,
}

/// The place of a connection, which also counts for its address, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    _of_all: OwnedSemaphorePermit,
    address: IpAddr,
    by_address: ByAddress,
    gauge: Gauge,
}

/// Connections by the address they come from.
type ByAddress = Arc<Mutex<HashMap<IpAddr, usize>>>;

impl Place {
    /// A place for a connection; `None` where its address has too many. Behind a proxy all come from one.
    fn of(
        address: IpAddr,
        of_all: OwnedSemaphorePermit,
        by_address: &ByAddress,
        server: &Server,
    ) -> Option<Self> {
        let has_proxy = server.setting.names.has_proxy();
        let most = if has_proxy { MAX_CONNECTIONS } else { MAX_CONNECTIONS_OF_ADDRESS };
        let address = network_of(address);
        let mut all = by_address.lock().unwrap_or_else(PoisonError::into_inner);
        let count = all.entry(address).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        let (by_address, gauge) = (Arc::clone(by_address), server.metrics.connections.clone());
        gauge.inc();
        Some(Self { _of_all: of_all, address, by_address, gauge })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.gauge.dec();
        let mut all = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut count) = all.entry(self.address) {
            *count.get_mut() = count.get().saturating_sub(1);
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

/// Accepts connections and serves them until the server stops; then waits for the requests under way.
pub(super) async fn serve(
    server: Arc<Server>,
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    app: Router,
) {
    let connections = connections();
    let places = Arc::new(Semaphore::new(connections));
    let by_address = ByAddress::default();
    let mut stopping = server.stopping.subscribe();
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &places) => accepted,
            () = stopped(&mut stopping) => break,
        };
        let Some((stream, from, place)) = accepted else {
            tokio::time::sleep(ACCEPT_AGAIN).await;
            continue;
        };
        let Some(place) = Place::of(from.ip(), place, &by_address, &server) else { continue };
        let _ = stream.set_nodelay(true);
        let peer = Peer { address: from, place: Arc::new(place) };
        let (app, tls) = (app.clone(), tls.clone());
        let stopping = server.stopping.subscribe();
        tokio::spawn(async move {
            match tls {
                None => connection(stream, peer, app, stopping).await,
                Some(tls) => {
                    let shaken = tokio::time::timeout(HANDSHAKE_TIME, tls.accept(stream)).await;
                    if let Ok(Ok(stream)) = shaken {
                        connection(stream, peer, app, stopping).await;
                    }
                }
            }
        });
    }
    drop(listener);
    // Connections that are still open then are cut with the runtime.
    let all = u32::try_from(connections).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(STOP_TIME, places.acquire_many(all)).await;
}

/// Accepts a connection once there is a place for it.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.ok()?;
    let (stream, from) = listener.accept().await.ok()?;
    Some((stream, from, place))
}

/// Serves the requests of a connection.
async fn connection(
    stream: impl AsyncRead + AsyncWrite + Send + 'static,
    peer: Peer,
    app: Router,
    mut stopping: watch::Receiver<bool>,
) {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(STALL_TIME));
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(peer.clone());
        let app = app.clone();
        async move { Ok::<_, std::convert::Infallible>(answer(app, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(Box::pin(stream)), service)
        .with_upgrades();
    let mut connection = pin!(connection);
    // How a connection ended concerns nobody: what was answered is answered.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = stopped(&mut stopping) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

/// Has the router answer a request.
pub(super) async fn answer(app: Router, request: Request<Body>) -> Response {
    let service = TowerToHyperService::new(app);
    match hyper::service::Service::call(&service, request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}
