//! The lines of the protocol: one message a line, read and written by threads of their own.
//!
//! What is no message is answered here, with the `id` of the request where that can be read. Knows no tool.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::thread;

use grainstore_rpc::{Line, read_line};
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, GetExtensions,
    JsonRpcMessage, JsonRpcRequest, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::RoleServer;
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::unanswered::{Place, Unanswered};

/// Longest line that is read, in bytes. A grain has at most 1 MiB, and escapes make that more.
pub(super) const MAX_LINE_BYTES: usize = 8 << 20;
/// Messages that wait to be handled, and lines that wait to be written, before the other side has to wait.
const MAX_WAITING: usize = 64;
/// The key of `_meta` by which a request names its revision of the protocol (2026-07-28).
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// A line that is to be written, with the place of the request it answers.
type Outgoing = (Vec<u8>, Option<Place>);

/// A connection.
pub(super) struct Wire {
    messages: mpsc::Receiver<ClientJsonRpcMessage>,
    lines: Option<mpsc::Sender<Outgoing>>,
    unanswered: Unanswered,
    ended: watch::Receiver<bool>,
    end: watch::Sender<bool>,
}

/// The thread that writes.
pub(super) struct Written(Option<thread::JoinHandle<()>>);

impl Written {
    /// Waits until everything is written, or until nobody takes it.
    pub(super) fn finish(self) {
        // A panic of the thread was told by itself.
        drop(self.0.map(thread::JoinHandle::join));
    }
}

impl Wire {
    /// Starts to read and to write.
    pub(super) fn over(
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
    ) -> (Self, Written) {
        let (received, messages) = mpsc::channel(MAX_WAITING);
        let (lines, to_write) = mpsc::channel(MAX_WAITING);
        let (end, ended) = watch::channel(false);
        let unanswered = Unanswered::default();
        let reader = Reader {
            received,
            refusals: lines.clone(),
            unanswered: unanswered.clone(),
            initialized: false,
        };
        // Reading cannot be interrupted: the thread is left to itself, and ends with its input.
        thread::spawn(move || reader.read_all(BufReader::with_capacity(64 << 10, input)));
        let gone = end.clone();
        let writer = thread::spawn(move || {
            if write_all(output, to_write).is_err() {
                gone.send_replace(true);
            }
        });
        (Self { messages, lines: Some(lines), unanswered, ended, end }, Written(Some(writer)))
    }

    /// Tells when the connection has ended: nothing more is read, or nobody takes what is written.
    pub(super) fn ended(&self) -> watch::Receiver<bool> {
        self.ended.clone()
    }
}

impl Transport<RoleServer> for Wire {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let lines = self.lines.clone();
        let answers = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        let place = answers.and_then(|id| self.unanswered.end(id));
        async move {
            let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
            let line = serde_json::to_vec(&message)?;
            lines.ok_or_else(closed)?.send((line, place)).await.map_err(|_| closed())
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        let mut ended = self.ended.clone();
        let received = tokio::select! {
            message = self.messages.recv() => message,
            _ = ended.wait_for(|ended| *ended) => None,
        };
        // A request that is cancelled gets no answer. Its place is free once its work has ended.
        if let Some(JsonRpcMessage::Notification(told)) = &received
            && let ClientNotification::CancelledNotification(cancelled) = &told.notification
            && let Some(id) = &cancelled.params.request_id
        {
            drop(self.unanswered.end(id));
        }
        if received.is_none() {
            self.end.send_replace(true);
        }
        received
    }

    async fn close(&mut self) -> io::Result<()> {
        self.lines = None;
        self.unanswered.close();
        // What waits to be read is not handled any more, and the reader must not wait for it.
        self.messages.close();
        Ok(())
    }
}

/// Writes lines until there are no more to come.
fn write_all(mut output: impl Write, mut lines: mpsc::Receiver<Outgoing>) -> io::Result<()> {
    while let Some((mut line, place)) = lines.blocking_recv() {
        line.push(b'\n');
        output.write_all(&line)?;
        output.flush()?;
        drop(place);
    }
    Ok(())
}

/// What reads.
struct Reader {
    received: mpsc::Sender<ClientJsonRpcMessage>,
    refusals: mpsc::Sender<Outgoing>,
    unanswered: Unanswered,
    /// Whether `initialize` was asked and understood: from then on requests need not name their revision.
    initialized: bool,
}

impl Reader {
    /// Reads messages until the end of input, or until nobody wants them.
    fn read_all(mut self, mut input: impl BufRead) {
        let mut line = Vec::new();
        loop {
            let going_on = match read_line(&mut input, &mut line, MAX_LINE_BYTES) {
                Ok(Line::Read) => self.take(&line),
                Ok(Line::TooLong) => {
                    let message = format!("a message has at most {MAX_LINE_BYTES} bytes");
                    let told = self.refuse(None, &ErrorData::invalid_request(message, None));
                    told && input.skip_until(b'\n').is_ok()
                }
                Ok(Line::End) | Err(_) => false,
            };
            if !going_on {
                return;
            }
            line.clear();
            line.shrink_to(64 << 10);
        }
    }

    /// Hands a message on, or answers what is none. Returns `false` once nobody wants messages.
    fn take(&mut self, line: &[u8]) -> bool {
        if line.trim_ascii().is_empty() {
            return true;
        }
        let read =
            serde_json::from_slice::<Value>(line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line));
        let value = match read {
            Ok(value) => value,
            Err(error) => {
                let message = format!("this line is no JSON: {error}");
                return self.refuse(None, &ErrorData::parse_error(message, None));
            }
        };
        let id =
            value.get("id").and_then(|id| serde_json::from_value::<RequestId>(id.clone()).ok());
        let asks = value.get("id").is_some() && value.get("method").is_some();
        match self.message(value) {
            Ok(JsonRpcMessage::Request(request)) => self.take_request(request),
            Ok(message) => self.received.blocking_send(message).is_ok(),
            // A notification and a response get no answer, whatever is wrong with them.
            Err(_) if id.is_some() && !asks => true,
            Err(refused) => self.refuse(id.as_ref(), &refused),
        }
    }

    /// Hands a request on, with its place. Returns `false` once nobody wants messages.
    fn take_request(&mut self, mut request: JsonRpcRequest<ClientRequest>) -> bool {
        let Some(place) = self.unanswered.begin(&request.id) else {
            let message = "a request with this id is not answered yet".to_owned();
            return self.refuse(Some(&request.id), &ErrorData::invalid_request(message, None));
        };
        // One that is malformed is read as a request of another kind, and refused.
        self.initialized |= matches!(request.request, ClientRequest::InitializeRequest(_));
        request.request.extensions_mut().insert(place);
        self.received.blocking_send(JsonRpcMessage::Request(request)).is_ok()
    }

    /// Converts a message.
    fn message(&self, value: Value) -> Result<ClientJsonRpcMessage, ErrorData> {
        let invalid = |message: &str| ErrorData::invalid_request(message.to_owned(), None);
        let Value::Object(message) = &value else {
            return Err(invalid("a message is one JSON object; batches are not taken"));
        };
        if message.get("jsonrpc") != Some(&json!("2.0")) {
            return Err(invalid("a message has \"jsonrpc\": \"2.0\""));
        }
        let is_request = message.contains_key("method") && message.contains_key("id");
        if is_request {
            self.check_request(message)?;
        }
        serde_json::from_value(value)
            .map_err(|error| invalid(&format!("this is no message of the protocol: {error}")))
    }

    /// Checks what the protocol asks of every request.
    fn check_request(&self, request: &serde_json::Map<String, Value>) -> Result<(), ErrorData> {
        let invalid = |message: &str| ErrorData::invalid_request(message.to_owned(), None);
        let id = request.get("id").unwrap_or(&Value::Null);
        if !(id.is_string() || id.is_i64()) {
            return Err(invalid("the id of a request is a text or a whole number"));
        }
        let Some(method) = request.get("method").and_then(Value::as_str) else {
            return Err(invalid("method is a text"));
        };
        let params = request.get("params");
        if params.is_some_and(|params| !params.is_object()) {
            return Err(ErrorData::invalid_params("params is an object".to_owned(), None));
        }
        let meta = params.and_then(|params| params.get("_meta"));
        let names_version =
            meta.and_then(|meta| meta.get(VERSION_KEY)).is_some_and(Value::is_string);
        let needs_none = names_version || ["initialize", "ping"].contains(&method);
        if !self.initialized && !needs_none {
            let message = format!(
                "begin with initialize, or name the revision of each request in _meta ({VERSION_KEY})"
            );
            return Err(ErrorData::invalid_params(message, None));
        }
        Ok(())
    }

    /// Answers what is no message, or no request. Returns `false` once nobody takes answers.
    fn refuse(&self, id: Option<&RequestId>, error: &ErrorData) -> bool {
        let answer = json!({ "jsonrpc": "2.0", "id": id, "error": error });
        serde_json::to_vec(&answer)
            .is_ok_and(|line| self.refusals.blocking_send((line, None)).is_ok())
    }
}
