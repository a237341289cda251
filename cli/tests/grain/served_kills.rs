//! Servers of HTTP that are killed amid writes, and several on one store: nothing that was acknowledged is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::kit::Place;

const STORE: &str = "served.grains";
/// Threads that write at once.
const WRITERS: u64 = 6;

/// A `grain serve` that may end at any time.
struct Served {
    child: Child,
    address: SocketAddr,
}

impl Served {
    fn start(place: &Place) -> Self {
        let serve = ["--store", STORE, "--json", "serve", "--listen", "127.0.0.1:0"];
        // A token asks here more often than it may where nothing is said.
        let more = ["--log", "off", "--rate", "1000000"];
        let mut child = place.start(&[&serve[..], &more].concat());
        let mut line = String::new();
        // It stays open until the process ends: nothing else is written to it.
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap_or_else(|_| {
            let mut why = String::new();
            child.stderr.take().unwrap().read_to_string(&mut why).unwrap();
            panic!("{why}")
        });
        Self { child, address: told["address"].as_str().unwrap().parse().unwrap() }
    }

    fn connect(&self, token: &str) -> Connection {
        Connection::open(self.address, token).unwrap()
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Stops it in order.
    fn stop(mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection that stays open until the server ends.
struct Connection {
    stream: BufReader<TcpStream>,
    head: String,
}

impl Connection {
    fn open(address: SocketAddr, token: &str) -> Option<Self> {
        let stream = TcpStream::connect(address).ok()?;
        stream.set_nodelay(true).ok()?;
        let head = format!("Host: {address}\r\nAuthorization: Bearer {token}\r\n");
        Some(Self { stream: BufReader::new(stream), head })
    }

    /// Status and body; `None` if the connection ended before all of it was there.
    fn ask(&mut self, verb: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (head, length) = (&self.head, body.len());
        let request = format!(
            "{verb} {path} HTTP/1.1\r\n{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.stream.get_mut().write_all(request.as_bytes()).ok()?;
        let first = self.line()?;
        let status = first.split(' ').nth(1)?.parse().ok()?;
        let mut length = 0;
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':')?;
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).ok()?;
        Some((status, serde_json::from_slice(&body).unwrap()))
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line).ok()?;
        Some(line.strip_suffix("\r\n")?.to_owned())
    }

    fn get(&mut self, path: &str) -> Option<(u16, Value)> {
        self.ask("GET", path, &Value::Null)
    }

    fn put(&mut self, grain: &Value) -> Option<(u16, Value)> {
        self.ask("POST", "/v1/grains", &json!({ "grain": grain }))
    }

    /// Puts a grain that is new; its address.
    #[track_caller]
    fn made(&mut self, grain: &Value) -> String {
        let (status, answer) = self.put(grain).unwrap();
        assert_eq!(status, 201, "{answer}");
        answer["address"].as_str().unwrap().to_owned()
    }
}

/// What the servers have acknowledged, and what they have not.
#[derive(Default)]
struct Told {
    /// Objects of the facts by their addresses.
    puts: Mutex<BTreeMap<String, String>>,
    /// New versions by what they replaced.
    successors: Mutex<BTreeMap<String, String>>,
    /// Grains whose put was not answered.
    unanswered: Mutex<Vec<Value>>,
    /// Grains whose replacement was not answered, or is in doubt.
    in_doubt: Mutex<BTreeSet<String>>,
    acknowledged: AtomicU64,
    doubts: AtomicU64,
    /// Threads that write.
    writing: AtomicU64,
}

/// A thread that writes, until it is dropped.
struct Writing<'t>(&'t Told);

impl<'t> Writing<'t> {
    fn new(told: &'t Told) -> Self {
        told.writing.fetch_add(1, Ordering::SeqCst);
        Self(told)
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.writing.fetch_sub(1, Ordering::SeqCst);
    }
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn fact(object: &str, parent: Option<&str>) -> Value {
    let mut grain = json!({
        "type": "belief", "subject": "john", "relation": "prefers", "object": object,
        "confidence": 0.9, "created_at": "2026-03-02T09:00:00Z",
    });
    if let Some(parent) = parent {
        grain["derived_from"] = json!([parent]);
    }
    grain
}

/// Writes over one connection until that ends, or until `stop`.
fn write(connection: &mut Connection, name: &str, told: &Told, stop: &AtomicBool) -> Option<()> {
    let mut heads: Vec<String> = Vec::new();
    for number in 0_u64.. {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        let object = format!("{name} {number}");
        let old = if number % 3 == 2 { heads.pop() } else { None };
        let grain = fact(&object, old.as_deref());
        let answer = match &old {
            Some(old) => {
                lock(&told.in_doubt).insert(old.clone());
                let path = format!("/v1/grains/{old}/supersede");
                connection.ask("POST", &path, &json!({ "grain": grain }))?
            }
            None => {
                let answer = connection.put(&grain);
                if answer.is_none() {
                    lock(&told.unanswered).push(grain);
                }
                answer?
            }
        };
        let (status, answer) = answer;
        // A put that is asked again of the next owner finds what the one before it stored.
        let is_made = status == 201 || (old.is_none() && status == 200);
        if !is_made {
            assert_eq!(answer["code"], "ERR_IN_DOUBT", "{status}: {answer}");
            assert!(old.is_some(), "a put is asked again: {answer}");
            told.doubts.fetch_add(1, Ordering::SeqCst);
            continue;
        }
        let address = answer["address"].as_str().unwrap().to_owned();
        lock(&told.puts).insert(address.clone(), object);
        if let Some(old) = old {
            lock(&told.in_doubt).remove(&old);
            lock(&told.successors).insert(old, address.clone());
        }
        heads.push(address);
        told.acknowledged.fetch_add(1, Ordering::SeqCst);
    }
    Some(())
}

/// Checks that everything that was acknowledged is there.
fn check(connection: &mut Connection, told: &Told) {
    for (address, object) in &*lock(&told.puts) {
        let (status, got) = connection.get(&format!("/v1/grains/{address}")).unwrap();
        assert_eq!((status, &got["grain"]["object"]), (200, &json!(object)), "{got}");
    }
    for (old, new) in &*lock(&told.successors) {
        let (status, got) = connection.get(&format!("/v1/grains/{old}")).unwrap();
        assert_eq!((status, &got["state"]["superseded_by"]), (200, &json!(new)), "{old}: {got}");
    }
    for old in &*lock(&told.in_doubt) {
        let (status, got) = connection.get(&format!("/v1/grains/{old}")).unwrap();
        assert_eq!(status, 200, "what is replaced stays: {got}");
        // It was replaced with the whole new version, or not at all.
        if let Some(new) = got["state"]["superseded_by"].as_str() {
            let (status, got) = connection.get(&format!("/v1/grains/{new}")).unwrap();
            assert_eq!((status, &got["grain"]["derived_from"]), (200, &json!([old])), "{got}");
        }
    }
    // Putting what was not answered once more has it there once.
    for grain in lock(&told.unanswered).drain(..) {
        let (status, answer) = connection.put(&grain).unwrap();
        assert!([200, 201].contains(&status), "{status}: {answer}");
        let address = answer["address"].as_str().unwrap().to_owned();
        lock(&told.puts).insert(address, grain["object"].as_str().unwrap().to_owned());
    }
}

/// A store, and a token for it.
fn place() -> (Place, String) {
    let place = Place::empty();
    place.grain(&["--store", STORE, "init"]).done();
    let create = ["--store", STORE, "tokens", "create", "--tier", "1", "--as-operator"];
    let token = place.grain(&create).done().line();
    (place, token)
}

#[track_caller]
fn verify(place: &Place) {
    let verified = place.grain(&["--store", STORE, "--json", "verify", "--full"]).done().json();
    assert_eq!(verified["ok"], true, "{verified}");
}

/// How many times servers are killed: more where the environment says so.
fn rounds() -> u64 {
    let rounds = std::env::var("GRAINSTORE_KILL_ROUNDS").ok();
    rounds.and_then(|rounds| rounds.parse().ok()).unwrap_or(4)
}

/// Waits until so many more writes are acknowledged.
fn wait_for(told: &Told, more: u64) {
    let enough = told.acknowledged.load(Ordering::SeqCst) + more;
    while told.acknowledged.load(Ordering::SeqCst) < enough {
        assert!(told.writing.load(Ordering::SeqCst) > 0, "nobody writes any more");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_server_that_is_killed_has_all_it_acknowledged_when_it_runs_again() {
    let (place, token) = place();
    let (told, never) = (Told::default(), AtomicBool::new(false));
    for round in 0..rounds() {
        let served = Served::start(&place);
        check(&mut served.connect(&token), &told);
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (mut connection, told, never) = (served.connect(&token), &told, &never);
                let name = format!("round {round}, writer {writer}:");
                let writing = Writing::new(told);
                scope.spawn(move || {
                    let _writing = writing;
                    write(&mut connection, &name, told, never)
                });
            }
            // A kill early on meets a store that has just been opened.
            wait_for(&told, [1, 40, 150, 400][usize::try_from(round % 4).unwrap()]);
            served.kill();
        });
        verify(&place);
    }
    let served = Served::start(&place);
    check(&mut served.connect(&token), &told);
    served.stop();
    verify(&place);
    println!(
        "{} kills, {} writes acknowledged, {} replacements in doubt",
        rounds(),
        told.acknowledged.into_inner(),
        lock(&told.in_doubt).len()
    );
}

#[test]
fn servers_and_commands_share_a_store() {
    let (place, token) = place();
    let (first, second) = (Served::start(&place), Served::start(&place));
    let (mut one, mut other) = (first.connect(&token), second.connect(&token));
    let by_one = one.made(&fact("tea", None));
    let by_other = other.made(&fact("coffee", None));
    let by_command =
        place.feed(&["--store", STORE, "put"], fact("water", None).to_string()).done().line();
    for connection in [&mut one, &mut other] {
        for address in [&by_one, &by_other, &by_command] {
            let (status, got) = connection.get(&format!("/v1/grains/{address}")).unwrap();
            assert_eq!(status, 200, "{got}");
        }
    }
    // A replacement by way of one is the conflict of the other.
    let path = format!("/v1/grains/{by_one}/supersede");
    let new = json!({ "grain": fact("mate", Some(&by_one)) });
    assert_eq!(other.ask("POST", &path, &new).unwrap().0, 201);
    let new = json!({ "grain": fact("milk", Some(&by_one)) });
    let (status, refused) = one.ask("POST", &path, &new).unwrap();
    assert_eq!((status, &refused["code"]), (409, &json!("ERR_CONFLICT")), "{refused}");
    // A token that is made or revoked while they run holds for both.
    let create = ["--store", STORE, "tokens", "create", "--tier", "0"];
    let reading = place.grain(&create).done().line();
    for served in [&first, &second] {
        let path = format!("/v1/grains/{by_command}");
        assert_eq!(served.connect(&reading).get(&path).unwrap().0, 200);
        let (status, refused) = served.connect(&reading).put(&fact("juice", None)).unwrap();
        assert_eq!((status, &refused["code"]), (403, &json!("ERR_ACCESS")), "{refused}");
    }
    second.stop();
    first.stop();
    verify(&place);
}

#[test]
fn a_server_goes_on_where_the_one_that_owned_the_store_is_killed() {
    let (place, token) = place();
    let (told, never) = (Told::default(), AtomicBool::new(false));
    let mut owner = Served::start(&place);
    for round in 0..rounds() {
        let next = Served::start(&place);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                // Half of them write by way of the one that is killed.
                let served = if writer % 2 == 0 { &next } else { &owner };
                let (mut connection, told) = (served.connect(&token), &told);
                let until = if writer % 2 == 0 { &stop } else { &never };
                let name = format!("round {round}, writer {writer}:");
                let writing = Writing::new(told);
                scope.spawn(move || {
                    let _writing = writing;
                    let went_on = write(&mut connection, &name, told, until);
                    assert!(went_on.is_some() || writer % 2 == 1, "it answers all along");
                });
            }
            wait_for(&told, 100);
            owner.kill();
            wait_for(&told, 100);
            // Commands go on, too.
            let object = format!("round {round}, by a command");
            let grain = fact(&object, None).to_string();
            let put = place.feed(&["--store", STORE, "put"], grain);
            stop.store(true, Ordering::SeqCst);
            lock(&told.puts).insert(put.done().line(), object);
        });
        check(&mut next.connect(&token), &told);
        owner = next;
    }
    owner.stop();
    verify(&place);
    println!(
        "{} kills, {} writes acknowledged, {} answers of ERR_IN_DOUBT",
        rounds(),
        told.acknowledged.into_inner(),
        told.doubts.into_inner()
    );
}
