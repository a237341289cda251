//! A server, and requests to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use grainstore::{OpenOptions, SessionOptions};
use grainstore_rpc::{Client, ClientOptions, Result};
use grainstore_serve::{Grant, HttpOptions, NewToken, Tokens, serve_http};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A server on a store of its own.
pub(crate) struct Served {
    dir: TempDir,
    pub(crate) address: SocketAddr,
    /// The code of the URL that it printed.
    pub(crate) code: String,
    stop: Arc<AtomicBool>,
    running: Option<JoinHandle<Result<()>>>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// A connection whose answer is read by line.
pub(crate) struct Lines {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    reader: BufReader<TcpStream>,
    chunk: usize,
}

impl Served {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// A server with other options than the usual ones.
    pub(crate) fn with(change: impl FnOnce(&mut HttpOptions)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = OpenOptions::new().create(true);
        grainstore::Store::open(dir.path(), &options).unwrap().close().unwrap();
        Self::on(dir, OpenOptions::new(), change)
    }

    /// A server on the store in a directory.
    pub(crate) fn on(
        dir: TempDir,
        open: OpenOptions,
        change: impl FnOnce(&mut HttpOptions),
    ) -> Self {
        let path = dir.path().to_owned();
        let opening = move || {
            Client::open(&path, ClientOptions::new(open.clone(), SessionOptions::default()))
        };
        let mut options = HttpOptions::new(opening, Tokens::of(dir.path()));
        change(&mut options);
        let stop = Arc::clone(&options.stop);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (told, url) = mpsc::channel();
        let ready = move |url: &str| told.send(url.to_owned()).unwrap();
        let running = thread::spawn(move || serve_http(listener, options, ready));
        let url = url.recv_timeout(Duration::from_secs(60)).unwrap();
        let code = url.split_once("#code=").unwrap().1.to_owned();
        Self { dir, address, code, stop, running: Some(running) }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The text of a new token.
    pub(crate) fn token(&self, grant: Grant) -> String {
        let new = NewToken { label: "test".into(), grant, expires_at: None };
        Tokens::of(self.path()).create(new).unwrap().text.to_string()
    }

    /// A token of the operator.
    pub(crate) fn operator(&self) -> String {
        self.token(Grant { writes: true, operator: true, ..Grant::default() })
    }

    /// A token that writes in a namespace.
    pub(crate) fn tenant(&self, namespace: &str) -> String {
        let namespace = Some(namespace.to_owned());
        self.token(Grant { namespace, writes: true, ..Grant::default() })
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// Sends bytes on a connection of its own, and reads the answer.
    pub(crate) fn raw(&self, request: impl AsRef<[u8]>) -> Answer {
        let mut stream = self.connect();
        // A server that refuses early does not read to the end.
        let _ = stream.write_all(request.as_ref());
        read(&mut BufReader::new(stream))
    }

    /// As `raw`; `None` where the connection ends without an answer.
    pub(crate) fn try_raw(&self, request: impl AsRef<[u8]>) -> Option<Answer> {
        let mut stream = self.connect();
        let _ = stream.write_all(request.as_ref());
        let mut reader = BufReader::new(stream);
        let is_empty = reader.fill_buf().map_or(true, <[u8]>::is_empty);
        (!is_empty).then(|| read(&mut reader))
    }

    /// The head of a request.
    pub(crate) fn head(&self, line: &str, headers: &[(&str, &str)]) -> String {
        let mut head =
            format!("{line} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", self.address);
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head + "\r\n"
    }

    /// A request with a token.
    pub(crate) fn get(&self, token: &str, path: &str) -> Answer {
        let bearer = format!("Bearer {token}");
        self.raw(self.head(&format!("GET {path}"), &[("Authorization", &bearer)]))
    }

    /// A request with a token and a body in JSON.
    pub(crate) fn post(&self, token: &str, path: &str, body: &Value) -> Answer {
        self.send(token, path, "application/json", body.to_string().as_bytes())
    }

    /// A request with a token and a body.
    pub(crate) fn send(&self, token: &str, path: &str, media: &str, body: &[u8]) -> Answer {
        let (bearer, length) = (format!("Bearer {token}"), body.len().to_string());
        let headers =
            [("Authorization", &*bearer), ("Content-Type", media), ("Content-Length", &length)];
        let mut request = self.head(&format!("POST {path}"), &headers).into_bytes();
        request.extend_from_slice(body);
        self.raw(request)
    }

    /// Sends a request whose answer has no end, and reads its head.
    pub(crate) fn lines(&self, request: impl AsRef<[u8]>) -> Lines {
        let mut stream = self.connect();
        stream.write_all(request.as_ref()).unwrap();
        let mut reader = BufReader::new(stream);
        let (status, headers) = read_head(&mut reader);
        Lines { status, headers, reader, chunk: 0 }
    }

    /// Puts a belief, and returns its address.
    pub(crate) fn put(&self, token: &str, namespace: &str, subject: &str, object: &str) -> String {
        let grain = belief(namespace, subject, object);
        let answer = self.post(token, "/v1/grains", &json!({ "grain": grain }));
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["address"].as_str().unwrap().to_owned()
    }

    /// Stops the server, and returns how it ended with its directory.
    pub(crate) fn stop(mut self) -> (TempDir, Result<()>) {
        self.stop.store(true, Ordering::SeqCst);
        let ended = self.running.take().unwrap().join().unwrap();
        (std::mem::replace(&mut self.dir, tempfile::tempdir().unwrap()), ended)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(running) = self.running.take() {
            let ended = running.join();
            assert!(thread::panicking() || ended.unwrap().is_ok());
        }
    }
}

/// A belief in a namespace.
pub(crate) fn belief(namespace: &str, subject: &str, object: &str) -> Value {
    json!({
        "type": "belief", "subject": subject, "relation": "prefers", "object": object, "namespace": namespace,
        "confidence": 0.9, "created_at": 1_768_471_200_000_i64,
    })
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Status and code of a refusal.
    #[track_caller]
    pub(crate) fn refusal(&self) -> (u16, String) {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], self.status);
        (self.status, problem["code"].as_str().unwrap().to_owned())
    }
}

fn read_head(reader: &mut impl BufRead) -> (u16, Vec<(String, String)>) {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no answer: {line:?}"));
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    (status, headers)
}

/// Reads an answer.
pub(crate) fn read(reader: &mut impl BufRead) -> Answer {
    let (status, headers) = read_head(reader);
    let of =
        |name: &str| headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
    let mut body = Vec::new();
    if of("transfer-encoding") == Some("chunked") {
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let size = usize::from_str_radix(line.trim(), 16).unwrap();
            let mut chunk = vec![0; size + 2];
            reader.read_exact(&mut chunk).unwrap();
            if size == 0 {
                break;
            }
            body.extend_from_slice(&chunk[..size]);
        }
    } else if let Some(length) = of("content-length") {
        body.resize(length.parse().unwrap(), 0);
        reader.read_exact(&mut body).unwrap();
    }
    Answer { status, headers, body }
}

impl Lines {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The next line of a body in chunks; `None` at its end.
    pub(crate) fn line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        loop {
            if self.chunk == 0 {
                let mut size = String::new();
                self.reader.read_line(&mut size).ok()?;
                self.chunk = usize::from_str_radix(size.trim(), 16).ok()?;
                if self.chunk == 0 {
                    return None;
                }
            }
            let mut byte = [0];
            self.reader.read_exact(&mut byte).ok()?;
            self.chunk -= 1;
            if self.chunk == 0 {
                self.reader.read_exact(&mut [0; 2]).ok()?;
            }
            if byte == *b"\n" {
                return Some(String::from_utf8(line).unwrap());
            }
            line.push(byte[0]);
        }
    }

    /// The next event: its number, its name and its object.
    pub(crate) fn event(&mut self) -> Option<(u64, String, Value)> {
        let (mut id, mut name) = (None, String::new());
        loop {
            let line = self.line()?;
            match line.split_once(": ") {
                Some(("id", text)) => id = text.parse().ok(),
                Some(("event", text)) => text.clone_into(&mut name),
                Some(("data", text)) => {
                    return Some((id.unwrap(), name, serde_json::from_str(text).unwrap()));
                }
                _ => {}
            }
        }
    }
}
