//! A server that runs, and connections to it that stay open.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::Error;

/// How long an answer may take before the connection counts as broken.
const PATIENCE: Duration = Duration::from_secs(60);

/// A `grain serve` of this program's own.
pub(crate) struct Served {
    child: Child,
    address: SocketAddr,
    token: String,
}

impl Served {
    /// Starts one on a store, which it makes, and makes a token.
    pub(crate) fn start(grain: &Path, store: &Path) -> Result<Self, Error> {
        let mut child = Command::new(grain)
            .arg("--store")
            .arg(store)
            // One connection alone asks more often than a token may where nothing is said.
            .args(["--json", "serve", "--listen", "127.0.0.1:0", "--rate", "1000000"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut line = String::new();
        let stdout = child.stdout.take().ok_or("no stdout")?;
        BufReader::new(stdout).read_line(&mut line)?;
        let told: Value = serde_json::from_str(&line)?;
        let address = told
            .get("address")
            .and_then(Value::as_str)
            .ok_or("the server told no address")?
            .parse()?;
        let made = Command::new(grain)
            .arg("--store")
            .arg(store)
            .args(["tokens", "create", "--tier", "1", "--as-operator"])
            .output()?;
        let token = String::from_utf8(made.stdout)?.trim().to_owned();
        if token.is_empty() {
            return Err(format!("no token: {}", String::from_utf8_lossy(&made.stderr)).into());
        }
        Ok(Self { child, address, token })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn connect(&self) -> Result<Connection, Error> {
        Connection::open(self.address, &self.token)
    }

    /// Stops it in order.
    pub(crate) fn stop(mut self) -> Result<(), Error> {
        Command::new("kill").args(["-TERM", &self.pid().to_string()]).status()?;
        let status = self.child.wait()?;
        if !status.success() {
            return Err(format!("the server ended with {status}").into());
        }
        Ok(())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection that stays open.
pub(crate) struct Connection {
    address: SocketAddr,
    token: String,
    stream: BufReader<TcpStream>,
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    body: Vec<u8>,
}

impl Answer {
    pub(crate) fn status_is(&self, status: u16) -> Result<(), Error> {
        if self.status == status {
            return Ok(());
        }
        Err(format!("{}: {}", self.status, self.text()).into())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body, of an answer that must have this status.
    pub(crate) fn expect(self, status: u16) -> Result<Value, Error> {
        self.status_is(status)?;
        self.json()
    }

    pub(crate) fn json(&self) -> Result<Value, Error> {
        Ok(serde_json::from_slice(&self.body)?)
    }
}

impl Connection {
    fn open(address: SocketAddr, token: &str) -> Result<Self, Error> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { address, token: token.to_owned(), stream: BufReader::new(stream) })
    }

    /// The same, anew, after it broke.
    pub(crate) fn renew(&mut self) -> Result<(), Error> {
        *self = Self::open(self.address, &self.token)?;
        Ok(())
    }

    pub(crate) fn get(&mut self, path: &str) -> Result<Answer, Error> {
        self.ask("GET", path, "")
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Result<Answer, Error> {
        self.ask("POST", path, &body.to_string())
    }

    pub(crate) fn ask(&mut self, verb: &str, path: &str, body: &str) -> Result<Answer, Error> {
        let (address, token) = (self.address, &self.token);
        let mut request = format!(
            "{verb} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n"
        );
        if !body.is_empty() {
            request +=
                &format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
        }
        request += "\r\n";
        request += body;
        self.stream.get_mut().write_all(request.as_bytes())?;
        self.answer()
    }

    fn answer(&mut self) -> Result<Answer, Error> {
        let mut line = String::new();
        let mut next = |stream: &mut BufReader<TcpStream>| -> Result<String, Error> {
            line.clear();
            if stream.read_line(&mut line)? == 0 {
                return Err("the server closed the connection".into());
            }
            Ok(line.trim_end().to_owned())
        };
        let first = next(&mut self.stream)?;
        let status = first.split(' ').nth(1).ok_or("no status")?.parse()?;
        let mut length = 0;
        loop {
            let header = next(&mut self.stream)?;
            if header.is_empty() {
                break;
            }
            if let Some((name, value)) = header.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(Answer { status, body })
    }
}
