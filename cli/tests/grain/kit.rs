//! Running the program in a directory of its own, once or as a conversation.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;

use serde_json::{Value, json};
use tempfile::TempDir;

/// A belief that takes no more than it must, in JSON.
pub(crate) fn belief(subject: &str, object: &str) -> String {
    json!({
        "type": "belief", "subject": subject, "relation": "prefers", "object": object,
        "confidence": 0.9, "created_at": 1_768_471_200_000_i64,
    })
    .to_string()
}

/// A directory in which the program runs.
pub(crate) struct Place(TempDir);

impl Place {
    /// An empty directory.
    pub(crate) fn empty() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A directory with an empty store where the program looks for one.
    pub(crate) fn with_store() -> Self {
        let place = Self::empty();
        place.grain(&["init"]).done();
        place
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Runs the program with nothing on stdin.
    pub(crate) fn grain(&self, arguments: &[&str]) -> Run {
        self.feed(arguments, b"")
    }

    /// Runs the program with this on stdin.
    pub(crate) fn feed(&self, arguments: &[&str], stdin: impl AsRef<[u8]>) -> Run {
        let mut child = self.start(arguments);
        let mut feeder = child.stdin.take().unwrap();
        let stdin = stdin.as_ref();
        let output = thread::scope(|scope| {
            // A program that refuses early does not read to the end.
            scope.spawn(move || feeder.write_all(stdin));
            child.wait_with_output().unwrap()
        });
        Run {
            code: output.status.code().unwrap_or(-1),
            out: output.stdout,
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The methods that `hello` lists.
    pub(crate) fn methods(&self) -> BTreeSet<String> {
        let hello = self.rpc().result("hello", &json!({}));
        let methods = hello["methods"].as_array().unwrap().iter();
        methods.map(|name| name.as_str().unwrap().to_owned()).collect()
    }

    /// The commands that the help lists.
    pub(crate) fn commands(&self) -> BTreeSet<String> {
        let help = self.grain(&["--help"]).done();
        let listing = help.text().split_once("\n\n").unwrap().1;
        let listing = listing.split_once("Options:\n").unwrap().0;
        let is_name = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
        let names = listing.lines().filter(is_name);
        names.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
    }

    /// Puts a grain and returns its address.
    pub(crate) fn put(&self, json: &str) -> String {
        self.feed(&["put"], json).done().line()
    }

    /// Starts the program.
    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        Command::new(env!("CARGO_BIN_EXE_grain"))
            .args(arguments)
            .current_dir(self.path())
            .env_remove("GRAIN_STORE")
            .env_remove("GRAIN_KEY_FILE")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Starts `grain rpc` with a test clock.
    pub(crate) fn rpc(&self) -> Rpc {
        let mut child = self.start(&["rpc", "--test-clock"]);
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Rpc { child, stdin, stdout }
    }

    /// Starts `grain rpc` with a new store open.
    pub(crate) fn rpc_with_store(&self) -> Rpc {
        let mut rpc = self.rpc();
        let path = self.path().join("rpc.grains");
        rpc.result("open", &json!({ "path": path, "create": true }));
        rpc
    }
}

/// What a run of the program came to.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

impl Run {
    /// The same run, which must have succeeded.
    #[track_caller]
    pub(crate) fn done(self) -> Self {
        assert_eq!(self.code, 0, "{}", self.err);
        self
    }

    /// Its stdout as text.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.out).unwrap()
    }

    /// Its stdout, which must be one line.
    #[track_caller]
    pub(crate) fn line(&self) -> String {
        let mut lines = self.text().lines();
        let line = lines.next().unwrap_or_default().to_owned();
        assert_eq!(lines.next(), None, "one line");
        line
    }

    /// Its stdout as one JSON document.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.out).unwrap()
    }

    /// Its stdout as JSON, one document a line.
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        self.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The code on its stderr, told to people or as JSON.
    pub(crate) fn error_code(&self) -> String {
        if let Ok(error) = serde_json::from_str::<Value>(&self.err) {
            return error["error"]["code"].as_str().unwrap().to_owned();
        }
        let told = self.err.strip_prefix("error: ").unwrap_or_default();
        told.split(": ").next().unwrap_or_default().to_owned()
    }
}

/// A conversation with `grain rpc`.
pub(crate) struct Rpc {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Rpc {
    /// The process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a line.
    pub(crate) fn send(&mut self, line: impl AsRef<[u8]>) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line.as_ref()).unwrap();
        stdin.write_all(b"\n").unwrap();
    }

    /// The next response line.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }

    /// Sends a line and reads its response, past the events before it.
    pub(crate) fn ask(&mut self, line: impl AsRef<[u8]>) -> Value {
        self.ask_hearing(line).1
    }

    /// Sends a line and reads the notifications before its response, and that.
    pub(crate) fn ask_hearing(&mut self, line: impl AsRef<[u8]>) -> (Vec<Value>, Value) {
        self.send(line);
        let mut told = Vec::new();
        loop {
            let line: Value = serde_json::from_str(&self.line()).unwrap();
            match line.get("method") {
                Some(_) => told.push(line),
                None => return (told, line),
            }
        }
    }

    /// Calls a method; its response.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        self.call_text(method, &params.to_string())
    }

    /// Calls a method with parameters as JSON text; its response.
    #[track_caller]
    pub(crate) fn call_text(&mut self, method: &str, params: &str) -> Value {
        let request =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        let response = self.ask(request);
        assert_eq!((&response["jsonrpc"], &response["id"]), (&json!("2.0"), &json!(1)));
        response
    }

    /// Calls a method that must succeed; its result.
    #[track_caller]
    pub(crate) fn result(&mut self, method: &str, params: &Value) -> Value {
        let response = self.call(method, params);
        assert!(response["result"].is_object(), "{method} {params}: {response}");
        response["result"].clone()
    }

    /// Calls a method that must be refused: the code of the store, else that of the protocol.
    #[track_caller]
    pub(crate) fn refusal(&mut self, method: &str, params: &Value) -> String {
        refusal(&self.call(method, params))
    }

    /// Closes stdin; what is left on stdout, and the exit code.
    pub(crate) fn end(mut self) -> (String, i32) {
        drop(self.stdin.take());
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.stdout, &mut rest).unwrap();
        (rest, self.child.wait().unwrap().code().unwrap_or(-1))
    }
}

/// The first characters of an address.
pub(crate) fn head(address: &str, digits: usize) -> &str {
    address.get(..digits).unwrap()
}

/// The code of an error response: the store's where there is one, else the protocol's.
#[track_caller]
pub(crate) fn refusal(response: &Value) -> String {
    let error = &response["error"];
    match error["data"]["code"].as_str() {
        Some(code) => code.to_owned(),
        None => error["code"].as_i64().expect("an error").to_string(),
    }
}
