//! A client of the WebSocket, as bytes.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

use crate::kit::Served;

/// A client of the WebSocket.
pub(crate) struct Socket(TcpStream);

impl Socket {
    pub(crate) fn open(served: &Served, headers: &[(&str, &str)]) -> Result<Self, u16> {
        let mut stream = served.connect();
        let mut head = format!(
            "GET /v1/cal/socket HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
            served.address
        );
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all((head + "\r\n").as_bytes()).unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            answer.push(byte[0]);
        }
        let status = String::from_utf8_lossy(&answer).split(' ').nth(1).unwrap().parse().unwrap();
        if status == 101 { Ok(Self(stream)) } else { Err(status) }
    }

    pub(crate) fn say(&mut self, message: &Value) {
        self.say_all(std::slice::from_ref(message));
    }

    /// Says several messages in one write.
    pub(crate) fn say_all(&mut self, messages: &[Value]) {
        let mut frames = Vec::new();
        for message in messages {
            let text = message.to_string();
            frames.push(0x81);
            match u16::try_from(text.len()).unwrap() {
                short @ 0..126 => frames.push(0x80 | u8::try_from(short).unwrap()),
                long => {
                    frames.push(0x80 | 126);
                    frames.extend(long.to_be_bytes());
                }
            }
            frames.extend([0; 4]);
            frames.extend(text.as_bytes());
        }
        self.0.write_all(&frames).unwrap();
    }

    /// The next message; `None` at the end.
    pub(crate) fn hear(&mut self) -> Option<Value> {
        loop {
            let mut head = [0; 2];
            self.0.read_exact(&mut head).ok()?;
            let length = match head[1] {
                126 => {
                    let mut length = [0; 2];
                    self.0.read_exact(&mut length).ok()?;
                    u64::from(u16::from_be_bytes(length))
                }
                127 => {
                    let mut length = [0; 8];
                    self.0.read_exact(&mut length).ok()?;
                    u64::from_be_bytes(length)
                }
                short => u64::from(short),
            };
            let mut payload = vec![0; usize::try_from(length).unwrap()];
            self.0.read_exact(&mut payload).ok()?;
            match head[0] & 15 {
                1 => return Some(serde_json::from_slice(&payload).unwrap()),
                8 => return None,
                _ => {}
            }
        }
    }
}
