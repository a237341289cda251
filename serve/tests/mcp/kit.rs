//! A conversation with a server in this process.

use std::borrow::Borrow;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write, pipe};
use std::path::Path;
use std::thread::{self, JoinHandle};

use grainstore::{OpenOptions, SessionOptions};
use grainstore_rpc::{Client, ClientOptions, Result};
use grainstore_serve::{McpOptions, Profile, serve_mcp};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A client without capabilities.
pub(crate) const PLAIN: &str = "{}";
/// A client that can ask its user.
pub(crate) const ASKING: &str = r#"{"elicitation":{}}"#;

/// A connection to a server.
pub(crate) struct Conversation {
    input: Option<PipeWriter>,
    output: BufReader<PipeReader>,
    server: Option<JoinHandle<Result<()>>>,
    last_id: i64,
}

/// Options for the store in a directory, which is made.
pub(crate) fn options(dir: &Path) -> McpOptions {
    let path = dir.join("memory.grains");
    McpOptions::new(move || {
        let open = OpenOptions::new().create(true);
        Client::open(&path, ClientOptions::new(open, SessionOptions::default()))
    })
}

/// Options for the store in a directory, in a session of a namespace and a user, as `grain mcp` sets them.
pub(crate) fn options_of(dir: &Path, namespace: &str, user: &str) -> McpOptions {
    let path = dir.join("memory.grains");
    let session = SessionOptions {
        namespace: Some(namespace.to_owned()),
        user_id: Some(user.to_owned()),
        ..SessionOptions::default()
    };
    let mut options = McpOptions::new(move || {
        let open = OpenOptions::new().create(true);
        Client::open(&path, ClientOptions::new(open, session.clone()))
    });
    (options.namespace, options.user_id) = (Some(namespace.into()), Some(user.into()));
    options
}

/// A directory, and a server of the full profile on a store in it that may erase.
pub(crate) fn everything() -> (TempDir, Conversation) {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(dir.path());
    options.profile = Profile::Full;
    options.allow_erase = true;
    let conversation = Conversation::with(options);
    (dir, conversation)
}

impl Conversation {
    pub(crate) fn with(options: McpOptions) -> Self {
        let (requests, input) = pipe().unwrap();
        let (output, responses) = pipe().unwrap();
        let server = thread::spawn(move || serve_mcp(requests, responses, options));
        let output = BufReader::new(output);
        Self { input: Some(input), output, server: Some(server), last_id: 0 }
    }

    pub(crate) fn send(&mut self, line: impl AsRef<[u8]>) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_ref()).unwrap();
        input.write_all(b"\n").unwrap();
    }

    /// The next message of the server.
    #[track_caller]
    pub(crate) fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Sends a request, and returns its id.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> i64 {
        self.last_id += 1;
        let id = self.last_id;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(request.to_string());
        id
    }

    /// Sends a request and reads its response.
    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, params: impl Borrow<Value>) -> Value {
        let id = self.request(method, params.borrow());
        let response = self.hear();
        assert_eq!(response["id"], id, "{method}: {response}");
        assert_eq!(response["jsonrpc"], "2.0");
        response
    }

    /// A request of the revision 2026-07-28, which says all about the client.
    #[track_caller]
    pub(crate) fn ask_modern(&mut self, method: &str, mut params: Value, client: &str) -> Value {
        params["_meta"] = modern(client);
        self.ask(method, params)
    }

    /// Begins in the era of `initialize`.
    #[track_caller]
    pub(crate) fn initialize(&mut self, client: &str) -> Value {
        let capabilities: Value = serde_json::from_str(client).unwrap();
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": { "name": "test", "version": "1" } });
        let response = self.ask("initialize", params);
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        response["result"].clone()
    }

    /// Calls a tool; its result, be it an error or not.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: impl Borrow<Value>) -> Value {
        let call = json!({ "name": tool, "arguments": arguments.borrow() });
        let response = self.ask("tools/call", call);
        assert!(response["result"].is_object(), "{tool}: {response}");
        response["result"].clone()
    }

    /// Calls a tool that must succeed; its structured content.
    #[track_caller]
    pub(crate) fn done(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{tool}: {result}");
        assert!(result["content"][0]["text"].is_string(), "{result}");
        result["structuredContent"].clone()
    }

    /// Calls a tool that must fail; its code.
    #[track_caller]
    pub(crate) fn refusal(&mut self, tool: &str, arguments: Value) -> String {
        code(&self.call(tool, arguments))
    }

    /// Remembers a fact; its address.
    #[track_caller]
    pub(crate) fn fact(&mut self, subject: &str, relation: &str, object: &str) -> String {
        let fact = json!({ "subject": subject, "relation": relation, "object": object });
        self.done("remember", fact)["address"].as_str().unwrap().to_owned()
    }

    /// Takes what sends, for another thread.
    pub(crate) fn take_input(&mut self) -> PipeWriter {
        self.input.take().unwrap()
    }

    /// Reads nothing more, and asks once more; how the server ended.
    pub(crate) fn stop_reading(mut self) -> Result<()> {
        drop(std::mem::replace(&mut self.output, BufReader::new(pipe().unwrap().0)));
        self.request("ping", &json!({}));
        self.server.take().unwrap().join().unwrap()
    }

    /// Ends the input; what else the server says, and how it ended.
    pub(crate) fn end(mut self) -> (String, Result<()>) {
        drop(self.input.take());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        (rest, self.server.take().unwrap().join().unwrap())
    }
}

/// The `_meta` of a request of the revision 2026-07-28.
pub(crate) fn modern(client: &str) -> Value {
    let capabilities: Value = serde_json::from_str(client).unwrap();
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}

/// The code of a result that is an error. What a model reads says the same.
#[track_caller]
pub(crate) fn code(result: &Value) -> String {
    assert_eq!(result["isError"], true, "{result}");
    assert!(result.get("structuredContent").is_none(), "{result}");
    let told = &result["_meta"]["grainstore/error"];
    let code = told["code"].as_str().unwrap();
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with(&format!("{code}: {}", told["message"].as_str().unwrap())), "{text}");
    assert!(text.contains(told["hint"].as_str().unwrap()), "{text}");
    code.to_owned()
}
