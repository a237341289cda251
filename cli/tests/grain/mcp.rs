//! `grain mcp` as a client starts it, and docs/mcp.md against it. The protocol itself is tested in `serve/tests`.

use std::borrow::Borrow;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout};

use serde_json::{Value, json};

use crate::kit::Place;

const DOCUMENT: &str = include_str!("../../../docs/mcp.md");

/// What the program answers to these requests, with the handshake before them.
fn answers(place: &Place, arguments: &[&str], requests: &[(&str, Value)]) -> Vec<Value> {
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" } });
    let hello = [("initialize", hello)];
    let lines = hello.iter().chain(requests).zip(1..).map(|((method, params), id)| {
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string() + "\n"
    });
    let mut child = place.start(arguments);
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    // One after the other: what is remembered is there when the next is asked.
    let answers: Vec<Value> = lines
        .map(|line| {
            stdin.write_all(line.as_bytes()).unwrap();
            let mut answer = String::new();
            stdout.read_line(&mut answer).unwrap();
            serde_json::from_str(&answer).unwrap()
        })
        .collect();
    drop(stdin);
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut stdout, &mut rest).unwrap();
    assert_eq!(rest, "", "nothing but the protocol is on stdout");
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
    answers.into_iter().skip(1).map(|answer| answer["result"].clone()).collect()
}

fn call(tool: &str, arguments: impl Borrow<Value>) -> (&'static str, Value) {
    ("tools/call", json!({ "name": tool, "arguments": arguments.borrow() }))
}

fn tea() -> Value {
    json!({ "subject": "alice", "relation": "prefers", "object": "tea" })
}

#[test]
fn the_first_start_makes_the_store_and_the_command_reads_what_an_agent_wrote() {
    let place = Place::empty();
    let requests = [call("remember", tea()), call("recall", json!({ "query": "tea" }))];
    let told = answers(&place, &["mcp", "--user", "ann", "--namespace", "work"], &requests);
    let address = told[0]["structuredContent"]["address"].as_str().unwrap();
    assert!(told[1]["content"][0]["text"].as_str().unwrap().contains("prefers tea"));
    let grain = place.grain(&["get", address, "--json"]).done().json();
    assert_eq!(
        (&grain["grain"]["user_id"], &grain["grain"]["namespace"]),
        (&json!("ann"), &json!("work"))
    );
}

#[test]
fn a_store_that_is_only_read_is_not_made_and_not_written() {
    let place = Place::empty();
    let told = answers(&place, &["mcp", "--read-only"], &[call("recall", json!({}))]);
    assert_eq!(told[0]["_meta"]["grainstore/error"]["code"], "ERR_NOT_FOUND", "{}", told[0]);
    let place = Place::with_store();
    let told = answers(&place, &["mcp", "--read-only"], &[call("remember", tea())]);
    assert_eq!(told[0]["_meta"]["grainstore/error"]["code"], "ERR_READ_ONLY", "{}", told[0]);
}

#[test]
fn a_session_with_a_user_or_a_namespace_sees_and_erases_no_more_than_it_may() {
    let place = Place::empty();
    let told = answers(&place, &["mcp", "--user", "ann"], &[call("remember", tea())]);
    let address = told[0]["structuredContent"]["address"].clone();
    let bob =
        [call("search", json!({})), call("forget", json!({ "address": address, "reason": "r" }))];
    let told = answers(&place, &["mcp", "--user", "bob"], &bob);
    assert_eq!(told[0]["structuredContent"]["rows"], json!([]));
    assert_eq!(told[1]["_meta"]["grainstore/error"]["code"], "ERR_NOT_FOUND", "{}", told[1]);
    let erase = call(
        "forget",
        json!({ "address": address, "reason": "r", "erase": true, "dry_run": true }),
    );
    let told = answers(&place, &["mcp", "--namespace", "work", "--allow-erase"], &[erase]);
    assert_eq!(told[0]["isError"], true, "{}", told[0]);
    let told = answers(&place, &["mcp"], &[call("search", json!({}))]);
    assert_eq!(told[0]["structuredContent"]["rows"].as_array().unwrap().len(), 1);
}

/// One of several agents.
struct Agent {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Agent {
    fn of(place: &Place) -> Self {
        let mut child = place.start(&["mcp"]);
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdin, stdout }
    }

    fn call(&mut self, tool: &str, arguments: impl Borrow<Value>) -> Value {
        let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {} });
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": tool, "arguments": arguments.borrow(), "_meta": meta } });
        writeln!(self.stdin, "{request}").unwrap();
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        answer["result"]["structuredContent"].clone()
    }
}

#[test]
fn two_agents_use_one_store_at_once_and_one_goes_on_when_the_other_is_killed() {
    let place = Place::empty();
    let (mut first, mut second) = (Agent::of(&place), Agent::of(&place));
    let mine = first.call("remember", tea())["address"].clone();
    let chess = json!({ "subject": "bob", "relation": "plays", "object": "chess" });
    let theirs = second.call("remember", chess)["address"].clone();
    assert_eq!(first.call("search", json!({ "subject": "bob" }))["rows"][0]["address"], theirs);
    assert_eq!(second.call("search", json!({ "subject": "alice" }))["rows"][0]["address"], mine);
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    assert_eq!(second.call("search", json!({ "subject": "alice" }))["rows"][0]["address"], mine);
    let again =
        json!({ "subject": "bob", "relation": "plays", "object": "go", "replaces": theirs });
    assert_eq!(second.call("remember", again)["superseded"], theirs);
    drop(second.stdin);
    assert!(second.child.wait().unwrap().success());
}

#[test]
fn the_page_lists_the_tools_there_are_and_settings_that_start_them() {
    let place = Place::empty();
    let told = answers(&place, &["mcp", "--profile", "full"], &[("tools/list", json!({}))]);
    for tool in told[0]["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        assert!(DOCUMENT.contains(&format!("\n### {name}\n")), "{name} has a chapter");
        let chapter = DOCUMENT.split(&format!("\n### {name}\n")).nth(1).unwrap();
        let chapter = chapter.split("\n#").next().unwrap();
        for argument in tool["inputSchema"]["properties"].as_object().unwrap().keys() {
            let named = [format!("`{argument}`"), format!("`{argument}?`")];
            assert!(named.iter().any(|named| chapter.contains(named)), "{name}: {argument}");
        }
    }
    let mut settings = 0;
    for block in DOCUMENT.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap()) {
        let block: Value = serde_json::from_str(block).unwrap();
        let server = ["mcpServers", "servers", "context_servers"]
            .iter()
            .find_map(|name| block.get(name))
            .unwrap();
        assert_eq!(server["grainstore"]["command"], "grain");
        let arguments: Vec<_> = server["grainstore"]["args"]
            .as_array()
            .unwrap()
            .iter()
            .map(|word| word.as_str().unwrap())
            .collect();
        assert_eq!(arguments, ["mcp", "--store", "/home/you/memory.grains"]);
        settings += 1;
    }
    assert_eq!(settings, 3);
    let readme = include_str!("../../../README.md");
    let lines = DOCUMENT.lines().chain(readme.lines());
    let commands: Vec<_> = lines.filter_map(|line| line.split_once("-- grain ")).collect();
    assert_eq!(commands.len(), 3, "{commands:?}");
    for (_, words) in commands {
        assert_eq!(words, "mcp --store \"$HOME/memory.grains\"");
    }
    answers(&place, &["mcp", "--store", "other.grains", "--allow-erase"], &[]);
    assert_eq!(place.feed(&["mcp", "--profile", "everything"], "").code, 2);
}
