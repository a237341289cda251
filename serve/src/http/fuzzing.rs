//! The inputs of a server for the fuzz target `http`: whole requests without a connection, and files of tokens.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Method, Request, Uri, header};
use grainstore::{OpenOptions, SessionOptions};
use grainstore_rpc::{Client, ClientOptions, Code, Error, Result};
use tokio::runtime::{Builder, Runtime};

use super::access::Accesses;
use super::guard::Names;
use super::state::{Server, Setting};
use super::tokens::{Grant, Kept, NewToken, Tokens};
use super::{listen, router};
use crate::mcp::Profile;

/// A server that is asked without connections.
pub struct Served {
    runtime: Runtime,
    app: Router,
    token: String,
}

impl Served {
    /// A server on a new store in a directory, with a token that writes in a namespace.
    ///
    /// # Errors
    /// Those of opening a store.
    pub fn new(directory: &Path) -> Result<Self> {
        let open = OpenOptions::new().create(true);
        let client = Client::open(directory, ClientOptions::new(open, SessionOptions::default()))?;
        let tokens = Tokens::of(directory);
        let namespace = Some("team".to_owned());
        let grant = Grant { namespace, writes: true, ..Grant::default() };
        let made = tokens.create(NewToken { grant: grant.clone(), ..NewToken::default() })?;
        let setting = Setting {
            names: Names::default(),
            max_body_bytes: 1 << 20,
            timeout: Duration::from_secs(5),
            profile: Profile::Full,
            allow_erase: true,
        };
        let server = Arc::new(Server::new(setting));
        let _ = server.accesses.set(Accesses::new(tokens, client, grant, u32::MAX, (0, false))?);
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| Error::new(Code::Io, error.to_string(), ""))?;
        let app = router::router(&server);
        Ok(Self { runtime, app, token: made.text.to_string() })
    }

    /// Asks with a request: a line of verb and target, lines of headers, an empty line, and the body. Returns the
    /// status; `None` for what is no request.
    #[must_use]
    pub fn ask(&self, bytes: &[u8]) -> Option<u16> {
        let request = self.request(bytes)?;
        Some(self.runtime.block_on(async {
            let answer = listen::answer(self.app.clone(), request).await;
            answer.status().as_u16()
        }))
    }

    fn request(&self, bytes: &[u8]) -> Option<Request<Body>> {
        let mut rest = bytes;
        let mut line = || {
            let end = rest.iter().position(|byte| *byte == b'\n')?;
            let (line, after) = rest.split_at_checked(end)?;
            rest = after.get(1..)?;
            Some(line)
        };
        let first = line()?;
        let at = first.iter().position(|byte| *byte == b' ')?;
        let (verb, target) = first.split_at_checked(at)?;
        let mut request = Request::builder()
            .method(Method::from_bytes(verb).ok()?)
            .uri(Uri::try_from(target.get(1..)?).ok()?)
            .header(header::HOST, "localhost")
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token));
        let mut has_media = false;
        while let Some(line) = line().filter(|line| !line.is_empty()) {
            let at = line.iter().position(|byte| *byte == b':')?;
            let (name, value) = line.split_at_checked(at)?;
            let name = HeaderName::from_bytes(name).ok()?;
            has_media |= name == header::CONTENT_TYPE;
            request = request.header(name, HeaderValue::from_bytes(value.get(1..)?).ok()?);
        }
        if !has_media {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        request.body(Body::from(rest.to_vec())).ok()
    }
}

/// Reads a file of tokens and looks for one in it.
pub fn tokens(bytes: &[u8], text: &str) {
    let Ok(kept) = serde_json::from_slice::<Kept>(bytes) else { return };
    if let Some(token) = kept.find(text) {
        let _ = (token.check(0), Kept::grant(token, text));
    }
}
