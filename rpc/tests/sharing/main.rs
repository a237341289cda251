//! Several clients of one store: who may join, what a relay answers, and what becomes of its requests when the owner
//! ends. The clients are of one process here; cli/tests/grain/processes.rs has processes that are killed.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at a surprise")]

mod embedders;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::ops::ControlFlow;
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use grainstore::cal::CancelHandle;
use grainstore::journal::{Journal, MemoryJournal, ShardId};
use grainstore::{MasterKey, OpenOptions, SessionOptions, Store};
use grainstore_rpc::{Client, ClientOptions, Error, Following, StoreSocket};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tempfile::TempDir;

fn options(open: OpenOptions) -> ClientOptions {
    ClientOptions::new(
        open.create(true).wait(Duration::from_millis(300)),
        SessionOptions::default(),
    )
}

fn plain() -> ClientOptions {
    options(OpenOptions::new())
}

fn of_user(user: &str) -> ClientOptions {
    ClientOptions {
        session: SessionOptions { user_id: Some(user.to_owned()), ..SessionOptions::default() },
        ..plain()
    }
}

fn event(text: &str) -> Value {
    json!({ "grain": { "type": "event", "content": text, "created_at": "2026-03-02T09:00:00Z" } })
}

fn refusal(error: &Error) -> (String, String) {
    let refusal = error.refusal().unwrap();
    (refusal.code.to_string(), refusal.message.clone())
}

/// An owner, and a client that relays to it.
fn pair(dir: &TempDir) -> (Client, Client) {
    let owner = Client::open(dir.path(), plain()).unwrap();
    let relay = Client::open(dir.path(), plain()).unwrap();
    assert_eq!((owner.owner(), relay.owner()), (None, Some(std::process::id())));
    assert!(owner.has_created() && !relay.has_created());
    (owner, relay)
}

/// An answer without what differs between two calls of one process as well.
fn without_counts(mut answer: Value) -> Value {
    if let Some(state) = answer.get_mut("state").and_then(Value::as_object_mut) {
        state.remove("access_count");
        state.remove("last_accessed_at");
    }
    if let Some(answer) = answer.as_object_mut() {
        answer.remove("_cal");
    }
    answer
}

#[test]
fn a_relay_answers_what_the_owner_would() {
    let dir = tempfile::tempdir().unwrap();
    let (owner, relay) = pair(&dir);
    let put: Value = relay.call("put", &event("hello")).unwrap();
    assert_eq!(put["duplicate"], false);
    let address = json!({ "address": put["address"] });
    // The text is indexed behind the put: figures stand still once it is.
    while owner.call::<Value>("stats", &json!({})).unwrap()["text_behind"] != 0 {
        thread::sleep(Duration::from_millis(5));
    }
    for (method, params) in [
        ("get", address.clone()),
        ("exists", address),
        ("query", json!({ "where": { "type": "event" } })),
        ("history", json!({ "address": put["address"] })),
        ("stats", json!({})),
        ("hello", json!({})),
        ("cal", json!({ "query": "RECALL events" })),
    ] {
        let [one, other] =
            [&owner, &relay].map(|client| without_counts(client.call(method, &params).unwrap()));
        assert_eq!(one, other, "{method}");
    }
    for (method, params, code) in [
        ("get", json!({ "address": "0".repeat(64) }), 1),
        ("get", json!({ "adress": "x" }), 2),
        ("cal", json!({ "query": "RECALL WHERE" }), 1),
    ] {
        let [one, other] =
            [&owner, &relay].map(|client| client.call::<Value>(method, &params).unwrap_err());
        assert_eq!((one.exit_code(), other.exit_code()), (code, code), "{one}");
        assert_eq!(refusal(&one), refusal(&other));
        if code == 1 {
            assert_eq!(one.refusal().unwrap().object(), other.refusal().unwrap().object());
        }
    }
}

#[test]
fn a_relay_is_bound_to_its_session() {
    let dir = tempfile::tempdir().unwrap();
    let owner = Client::open(dir.path(), plain()).unwrap();
    let mut of_ann = event("of ann");
    of_ann["grain"]["user_id"] = "ann".into();
    let put: Value = owner.call("put", &of_ann).unwrap();
    let address = json!({ "address": put["address"] });
    let [ann, bob] = ["ann", "bob"].map(|user| Client::open(dir.path(), of_user(user)).unwrap());
    assert_eq!(ann.call::<Value>("exists", &address).unwrap()["exists"], true);
    assert_eq!(bob.call::<Value>("exists", &address).unwrap()["exists"], false);
    let everybody = bob.with_session(SessionOptions::default());
    assert_eq!(everybody.call::<Value>("exists", &address).unwrap()["exists"], true);
    for method in ["session", "open", "close", "clock", "unheard of"] {
        let refused = bob.call::<Value>(method, &json!({ "namespace": null })).unwrap_err();
        assert_eq!(refused.exit_code(), 2, "{method}: {refused}");
    }
}

#[test]
fn a_session_cannot_be_changed_on_the_socket_itself() {
    let dir = tempfile::tempdir().unwrap();
    let _owner = Client::open(dir.path(), plain()).unwrap();
    let mut stream = greeted(dir.path(), &greeting(env!("CARGO_PKG_VERSION"), &json!({})));
    for (method, params) in [
        ("session", json!({ "namespace": null })),
        ("open", json!({ "path": "elsewhere", "create": true })),
        ("close", json!({})),
    ] {
        let line = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let answer = said(&mut stream, &line.to_string());
        assert_eq!(answer["error"]["code"], -32602, "{method}: {answer}");
    }
    assert!(!Path::new("elsewhere").exists());
}

#[test]
fn settings_that_differ_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let of_host = || OpenOptions::new().operator("did:web:host");
    let _owner = Client::open(dir.path(), options(of_host())).unwrap();
    for (name, open) in [
        ("operator", OpenOptions::new().operator("did:web:other")),
        ("operator", OpenOptions::new()),
        ("audit_reads", of_host().audit_reads(false)),
        ("compress", of_host().compress(true)),
        ("languages", of_host().language(None, "de").unwrap()),
    ] {
        let refused = Client::open(dir.path(), options(open)).unwrap_err();
        let (code, message) = refusal(&refused);
        assert!(code == "ERR_CONFLICT" && message.starts_with(name), "{refused}");
    }
    let documents = ClientOptions {
        settings: [("did_documents".to_owned(), "/dids.json".to_owned())].into(),
        ..options(of_host())
    };
    let refused = Client::open(dir.path(), documents).unwrap_err();
    assert!(refusal(&refused).1.starts_with("did_documents"), "{refused}");
    let same = of_host().compress(false).memory_bytes(20 << 20);
    assert!(Client::open(dir.path(), options(same)).is_ok());
}

#[test]
fn an_encrypted_store_is_joined_with_its_key_alone() {
    let dir = tempfile::tempdir().unwrap();
    let with = |byte| options(OpenOptions::new().key(MasterKey::new([byte; 32])));
    let _owner = Client::open(dir.path(), with(7)).unwrap();
    for wrong in [with(8), plain()] {
        assert_eq!(refusal(&Client::open(dir.path(), wrong).unwrap_err()).0, "ERR_KEY");
    }
    let relay = Client::open(dir.path(), with(7)).unwrap();
    assert!(relay.owner().is_some());
    let mut of_ann = event("secret");
    of_ann["grain"]["user_id"] = "ann".into();
    relay.call::<Value>("put", &of_ann).unwrap();

    // Who speaks on the socket itself gets no answer without the key, whatever it claims.
    let version = env!("CARGO_PKG_VERSION");
    for settings in [json!({}), json!({ "audit_reads": "true" })] {
        let mut stream = greeted(dir.path(), &greeting(version, &settings));
        let answer = said(&mut stream, &json!("00".repeat(32)).to_string());
        assert_eq!(answer["refused"]["code"], "ERR_KEY", "{answer}");
        assert_eq!(rest(&mut stream), "");
        let mut stream = greeted(dir.path(), &greeting(version, &settings));
        let line = json!({ "jsonrpc": "2.0", "id": 1, "method": "stats" }).to_string();
        assert!(said(&mut stream, &line).get("result").is_none());
    }

    let plain_dir = tempfile::tempdir().unwrap();
    let _owner = Client::open(plain_dir.path(), plain()).unwrap();
    assert_eq!(refusal(&Client::open(plain_dir.path(), with(7)).unwrap_err()).0, "ERR_KEY");
}

/// An owner without the key of the store is found out: it has no answer, or one that is not that of the key.
#[test]
fn a_socket_that_has_not_the_key_is_refused() {
    let proof = json!({ "challenge": "00".repeat(32), "answer": "00".repeat(32) });
    for proof in [proof, Value::Null] {
        refuses_without_key(proof);
    }
}

fn refuses_without_key(proof: Value) {
    let dir = tempfile::tempdir().unwrap();
    let with = || options(OpenOptions::new().key(MasterKey::new([7; 32])));
    let _owner = Client::open(dir.path(), ClientOptions { exclusive: true, ..with() }).unwrap();
    let listener = UnixListener::bind(dir.path().join("socket")).unwrap();
    let lies = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).unwrap();
        writeln!(
            stream,
            "{}",
            json!({ "joined": { "connection": 1, "owner": 1, "store": "", "proof": proof } })
        )
        .unwrap();
        rest(&mut stream)
    });
    let refused = Client::open(dir.path(), with()).unwrap_err();
    assert_eq!(refusal(&refused).0, "ERR_KEY", "{refused}");
    assert_eq!(lies.join().unwrap(), "", "it is told nothing more");
}

#[test]
fn another_version_is_refused_by_its_number() {
    let dir = tempfile::tempdir().unwrap();
    let _owner = Client::open(dir.path(), plain()).unwrap();
    let mut stream = UnixStream::connect(dir.path().join("socket")).unwrap();
    let answer = said(&mut stream, &greeting("9.8.7", &json!({})).to_string());
    let (code, message) = (&answer["refused"]["code"], answer["refused"]["message"].to_string());
    assert!(code == "ERR_STORE_VERSION" && message.contains("9.8.7"), "{answer}");
    let mut stream = UnixStream::connect(dir.path().join("socket")).unwrap();
    let answer = said(&mut stream, r#"{"enter": 1}"#);
    assert_eq!(answer["refused"]["code"], "ERR_STORE_VERSION", "{answer}");
}

#[test]
fn what_is_no_greeting_ends_its_connection_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (owner, relay) = pair(&dir);
    let long = format!("{}\n", "x".repeat(3 << 20));
    for garbage in ["\n", "tea\n", "{\n", "\0\u{1}\u{2}\n", "{\"join\": {}}\n", &long] {
        let mut stream = UnixStream::connect(dir.path().join("socket")).unwrap();
        // The other end may close before it has read everything.
        let _ = stream.write_all(garbage.as_bytes());
        let _ = stream.shutdown(Shutdown::Write);
        let mut told = Vec::new();
        let _ = stream.read_to_end(&mut told);
        let told = String::from_utf8(told).unwrap();
        assert!(told.is_empty() || told.contains("ERR_STORE_VERSION"), "{told}");
    }
    // After the greeting, bad lines are answered as `grain rpc` answers them.
    let mut stream = greeted(dir.path(), &greeting(env!("CARGO_PKG_VERSION"), &json!({})));
    assert_eq!(said(&mut stream, "tea")["error"]["code"], -32700);
    assert_eq!(said(&mut stream, "[]")["error"]["code"], -32600);
    for client in [&owner, &relay] {
        client.call::<Value>("put", &event("still here")).unwrap();
    }
}

#[test]
fn a_link_or_a_file_in_place_of_the_socket_is_not_followed() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let _alone = Client::open(dir.path(), ClientOptions { exclusive: true, ..plain() }).unwrap();
    let _other = Client::open(elsewhere.path(), plain()).unwrap();
    symlink(elsewhere.path().join("socket"), dir.path().join("socket")).unwrap();
    let refused = Client::open(dir.path(), plain()).unwrap_err();
    assert_eq!(refusal(&refused).0, "ERR_BUSY", "{refused}");
    std::fs::remove_file(dir.path().join("socket")).unwrap();
    std::fs::write(dir.path().join("socket"), "tea").unwrap();
    assert_eq!(refusal(&Client::open(dir.path(), plain()).unwrap_err()).0, "ERR_BUSY");
}

#[test]
fn a_relay_goes_on_where_the_owner_ends() {
    let dir = tempfile::tempdir().unwrap();
    let (owner, first) = pair(&dir);
    let second = Client::open(dir.path(), plain()).unwrap();
    let put: Value = first.call("put", &event("before")).unwrap();
    owner.close().unwrap();
    let address = json!({ "address": put["address"] });
    assert_eq!(first.call::<Value>("exists", &address).unwrap()["exists"], true);
    assert_eq!(first.owner(), None, "the first to ask owns it");
    assert_eq!(second.call::<Value>("exists", &address).unwrap()["exists"], true);
    assert_eq!(second.owner(), Some(std::process::id()));
    assert!(owner.call::<Value>("exists", &address).is_err(), "it was closed");
    first.close().unwrap();
    second.call::<Value>("put", &event("after")).unwrap();
    second.close().unwrap();
    assert!(!dir.path().join("socket").exists());
}

#[test]
fn what_was_asked_is_answered_before_the_owner_closes() {
    let dir = tempfile::tempdir().unwrap();
    let (owner, relay) = pair(&dir);
    let writing = {
        let relay = relay.clone();
        thread::spawn(move || {
            for number in 0..200 {
                let put: Value = relay.call("put", &event(&format!("event {number}"))).unwrap();
                assert_eq!(put["duplicate"], false, "{number} was asked once");
            }
        })
    };
    while owner.call::<Value>("stats", &json!({})).unwrap()["grains"] == 0 {}
    owner.close().unwrap();
    writing.join().unwrap();
    assert_eq!(relay.call::<Value>("stats", &json!({})).unwrap()["grains"], 200);
}

/// The events of a stream, `most` of them, and whether it was answered.
fn events_of(client: &Client, params: &RawValue, most: usize) -> (Vec<Value>, bool) {
    let mut events = Vec::new();
    let mut on_event = |event: &RawValue| {
        let event: Value = serde_json::from_str(event.get()).unwrap();
        assert_eq!((&event["method"], &event["params"]["request"]), (&json!("event"), &json!(0)));
        events.push(event["params"]["event"]["event"].clone());
        if events.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let mut following = Following { on_event: Some(&mut on_event), ..Following::default() };
    let is_answered = client.call_following("cal_stream", params, &mut following).is_ok();
    (events, is_answered)
}

#[test]
fn events_reach_a_relay_and_it_can_end_or_cancel_them() {
    let dir = tempfile::tempdir().unwrap();
    let (owner, relay) = pair(&dir);
    let grains: Vec<Value> = (0..300)
        .map(|number| event(&format!("the long story of number {number}"))["grain"].clone())
        .collect();
    owner.call::<Value>("put_batch", &json!({ "grains": grains })).unwrap();
    let query = "ASSEMBLE FROM (RECALL events LIMIT 300) BUDGET 8000 tokens STREAM";
    let params = to_raw_value(&json!({ "query": query })).unwrap();
    let (all, done) = events_of(&owner, &params, usize::MAX);
    assert!(done && all.len() > 4, "{}", all.len());
    assert_eq!(events_of(&relay, &params, usize::MAX), (all, true));
    let (few, done) = events_of(&relay, &params, 3);
    assert_eq!((few.len(), done), (3, false));

    let cancel = CancelHandle::new();
    cancel.cancel();
    for client in [&owner, &relay] {
        let mut following = Following { cancel: cancel.clone(), ..Following::default() };
        let many = to_raw_value(&json!({ "query": "RECALL events LIMIT 300" })).unwrap();
        // One that is done before it is cancelled has an answer.
        if let Err(error) = client.call_following("cal", &many, &mut following) {
            assert_eq!(refusal(&error).0, "CAL-E082");
        }
    }
    assert!(relay.call::<Value>("stats", &json!({})).is_ok());
}

#[test]
fn many_relays_write_at_once() {
    const RELAYS: usize = 200;
    let dir = tempfile::tempdir().unwrap();
    let owner = Client::open(dir.path(), plain()).unwrap();
    let path: Arc<Path> = dir.path().into();
    let threads: Vec<_> = (0..RELAYS)
        .map(|number| {
            let path = Arc::clone(&path);
            thread::spawn(move || {
                let mut options = plain();
                options.open = options.open.wait(Duration::from_secs(60));
                let relay = Client::open(path, options).unwrap();
                let put: Value = relay.call("put", &event(&format!("of {number}"))).unwrap();
                let address = json!({ "address": put["address"] });
                assert_eq!(relay.call::<Value>("exists", &address).unwrap()["exists"], true);
                relay
            })
        })
        .collect();
    let relays: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert_eq!(owner.served(), RELAYS);
    assert_eq!(owner.call::<Value>("stats", &json!({})).unwrap()["grains"], RELAYS);
    drop(relays);
    let report: Value = owner.call("verify", &json!({ "full": true })).unwrap();
    assert_eq!(report["ok"], true, "{report}");
}

#[test]
fn requests_of_one_client_run_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (_owner, relay) = pair(&dir);
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            let relay = relay.clone();
            thread::spawn(move || {
                for number in 0..20 {
                    let text = format!("{thread} {number}");
                    let put: Value = relay.call("put", &event(&text)).unwrap();
                    let got: Value =
                        relay.call("get", &json!({ "address": put["address"] })).unwrap();
                    assert_eq!(got["grain"]["content"], text);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(relay.call::<Value>("stats", &json!({})).unwrap()["grains"], 160);
}

#[test]
fn an_owner_closes_though_nobody_reads_an_answer() {
    let dir = tempfile::tempdir().unwrap();
    let owner = Client::open(dir.path(), plain()).unwrap();
    let long = "x".repeat(60_000);
    let grains: Vec<Value> =
        (0..80).map(|number| event(&format!("{number} {long}"))["grain"].clone()).collect();
    owner.call::<Value>("put_batch", &json!({ "grains": grains })).unwrap();
    let mut stream = greeted(dir.path(), &greeting(env!("CARGO_PKG_VERSION"), &json!({})));
    let params = json!({ "where": { "type": "event" }, "limit": 80 });
    let line = json!({ "jsonrpc": "2.0", "id": 1, "method": "query", "params": params });
    writeln!(stream, "{line}").unwrap();
    let mut waited_for = 0;
    owner.close_telling(&mut |left| waited_for = left).unwrap();
    assert_eq!(waited_for, 1, "it waits, and not for ever");
    let relay = Client::open(dir.path(), plain()).unwrap();
    assert_eq!(relay.call::<Value>("stats", &json!({})).unwrap()["grains"], 80);
}

#[test]
fn a_request_too_large_is_refused_and_the_connection_stays() {
    let dir = tempfile::tempdir().unwrap();
    let (_owner, relay) = pair(&dir);
    let refused = relay.call::<Value>("put", &event(&"x".repeat(100 << 20))).unwrap_err();
    assert_eq!(refusal(&refused).0, "ERR_TOO_LARGE", "{refused}");
    relay.call::<Value>("put", &event("small")).unwrap();
}

/// The first line of a process that joins.
fn greeting(version: &str, settings: &Value) -> Value {
    json!({ "join": {
        "protocol": 3, "version": version, "settings": settings, "has_key": false,
        "challenge": "11".repeat(32), "session": { "purposes": [], "unprivileged": false },
    } })
}

/// A connection that has sent a first line and read the answer.
fn greeted(store: &Path, greeting: &Value) -> UnixStream {
    let mut stream = UnixStream::connect(store.join("socket")).unwrap();
    let answer = said(&mut stream, &greeting.to_string());
    assert!(answer.get("joined").is_some(), "{answer}");
    stream
}

/// Says a line, and reads one.
fn said(stream: &mut UnixStream, line: &str) -> Value {
    writeln!(stream, "{line}").unwrap();
    let (mut answer, mut byte) = (Vec::new(), [0]);
    while stream.read(&mut byte).unwrap() == 1 && byte != *b"\n" {
        answer.push(byte[0]);
    }
    serde_json::from_slice(&answer).unwrap_or(Value::Null)
}

/// What comes until the other end is closed.
fn rest(stream: &mut UnixStream) -> String {
    let mut told = String::new();
    stream.read_to_string(&mut told).unwrap();
    told
}

/// A request whose id is null has an answer with that id, and so has one that cannot be read.
#[test]
fn an_answer_to_no_id_is_an_answer() {
    let dir = tempfile::tempdir().unwrap();
    let _owner = Client::open(dir.path(), plain()).unwrap();
    let path = dir.path().to_str().unwrap();
    let open = json!({ "jsonrpc": "2.0", "id": 1, "method": "open", "params": { "path": path } });
    let mut asked = format!("{open}\n").into_bytes();
    asked.extend(b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"stats\"}\n");
    asked.extend(b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"cal\",\"params\":{\"query\":\"RECALL \xff\"}}\n");
    asked.extend(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"stats\"}\n");
    let mut answers = Vec::new();
    let patience = grainstore_rpc::Patience::default();
    grainstore_rpc::serve(&mut asked.as_slice(), &mut answers, &patience, false).unwrap();
    let answers = String::from_utf8(answers).unwrap();
    let answers: Vec<Value> =
        answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 4, "{answers:?}");
    assert_eq!((&answers[1]["id"], &answers[3]["id"]), (&Value::Null, &json!(2)));
    assert!(answers[1]["result"].is_object(), "{}", answers[1]);
    assert_eq!(answers[2]["error"]["data"]["code"], "CAL-E070", "{}", answers[2]);
}

/// A directory that was replaced has the socket of another owner.
#[test]
fn an_owner_leaves_the_socket_of_another_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (store, moved) = (dir.path().join("store"), dir.path().join("moved"));
    let first = Client::open(&store, plain()).unwrap();
    std::fs::rename(&store, &moved).unwrap();
    let second = Client::open(&store, plain()).unwrap();
    first.close().unwrap();
    let relay = Client::open(&store, plain()).unwrap();
    assert!(relay.owner().is_some());
    drop(second);
}

/// Who cannot listen says so, to itself and to those who open it over the protocol.
#[test]
fn an_owner_that_cannot_listen_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let none = Client::open(dir.path(), plain()).unwrap();
    assert_eq!(none.unshared(), None);
    none.close().unwrap();
    std::fs::create_dir(dir.path().join("socket.new")).unwrap();
    let owner = Client::open(dir.path(), plain()).unwrap();
    assert!(owner.unshared().unwrap().contains("socket"), "{:?}", owner.unshared());
    owner.close().unwrap();
    let path = dir.path().to_str().unwrap();
    let open = json!({ "jsonrpc": "2.0", "id": 1, "method": "open", "params": { "path": path } });
    let (asked, mut answers) = (open.to_string(), Vec::new());
    let patience = grainstore_rpc::Patience::default();
    grainstore_rpc::serve(&mut asked.as_bytes(), &mut answers, &patience, false).unwrap();
    let answer: Value = serde_json::from_slice(&answers).unwrap();
    assert!(answer["result"]["unshared"].as_str().unwrap().contains("socket"), "{answer}");
}

/// A store of another number is another store, whatever its path.
#[test]
fn a_store_that_took_the_place_of_another_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (store, moved) = (dir.path().join("store"), dir.path().join("moved"));
    let first = Client::open(&store, plain()).unwrap();
    let relay = Client::open(&store, plain()).unwrap();
    std::fs::rename(&store, &moved).unwrap();
    let other = Client::open(&store, plain()).unwrap();
    first.close().unwrap();
    let refused = relay.call::<Value>("put", &event("hello")).unwrap_err();
    assert_eq!(refusal(&refused).0, "ERR_CONFLICT", "{refused}");
    other.close().unwrap();
    let refused = relay.call::<Value>("put", &event("hello")).unwrap_err();
    assert_eq!(refusal(&refused).0, "ERR_CONFLICT", "{refused}");
    assert_eq!(
        Client::open(&store, plain()).unwrap().call::<Value>("stats", &json!({})).unwrap()["grains"],
        0
    );
}

#[test]
fn a_socket_that_is_closed_within_a_time_waits_for_no_request_that_lasts() {
    let dir = tempfile::tempdir().unwrap();
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::default());
    let lead = journal.lead(ShardId(1), "one", Duration::from_secs(600)).unwrap();
    let opening = OpenOptions::new().create(true);
    let leading = opening.clone().leading(journal, lead, Duration::from_secs(1));
    let store = Store::open(dir.path(), &leading).unwrap();
    let socket = StoreSocket::open(&store, &opening).unwrap();
    let client = Client::open(dir.path(), plain()).unwrap();
    assert!(client.owner().is_some());
    let asks = client.clone();
    let asking = thread::spawn(move || {
        asks.call::<Value>("wait_for", &json!({ "position": "1:1000", "timeout_ms": 600_000 }))
    });
    // It is asked by then; an earlier end would only try less.
    thread::sleep(Duration::from_secs(1));
    socket.close_within(Duration::from_millis(100));
    assert!(!asking.is_finished());
    store.close().unwrap();
    let (code, _) = refusal(&asking.join().unwrap().unwrap_err());
    assert_eq!(code, "ERR_IO");
}
