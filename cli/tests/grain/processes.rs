//! Processes that share one store, and are killed, stopped and started amid what they do.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::kit::Place;

const STORE: &str = "shared.grains";

/// A `grain rpc` that may end at any time.
struct Process {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Process {
    /// Starts one, and opens the store with these members of `open` beside its path; `None` if it is killed over that.
    fn start(place: &Place, more: &Value) -> Option<(Self, Value)> {
        let mut child = place.start(&["rpc"]);
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut process = Self { child, stdin, stdout };
        let mut open = json!({ "path": STORE, "create": true, "wait_ms": 20_000 });
        open.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let opened = process.ask("open", &open)?;
        assert!(opened.get("result").is_some(), "open: {opened}");
        Some((process, opened))
    }

    fn open(place: &Place, more: &Value) -> (Self, Value) {
        Self::start(place, more).unwrap()
    }

    fn send(&mut self, method: &str, params: &Value) -> Option<()> {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        writeln!(self.stdin, "{request}").ok()
    }

    fn answer(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.stdout.read_line(&mut line) {
            Ok(read) if read > 0 && line.ends_with('\n') => {
                Some(serde_json::from_str(&line).unwrap())
            }
            _ => None,
        }
    }

    /// The response, `None` if the process has ended before it.
    fn ask(&mut self, method: &str, params: &Value) -> Option<Value> {
        self.send(method, params)?;
        self.answer()
    }

    /// The result; the process must not have ended.
    #[track_caller]
    fn result(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.ask(method, params).unwrap();
        assert!(answer.get("result").is_some(), "{method}: {answer}");
        answer["result"].clone()
    }

    fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args([format!("-{name}"), pid.to_string()]).status().unwrap();
    assert!(sent.success());
}

fn event(text: &str) -> Value {
    json!({ "grain": { "type": "event", "content": text, "created_at": "2026-03-02T09:00:00Z" } })
}

fn fact(subject: &str, object: &str, parent: Option<&str>) -> Value {
    let mut grain = json!({
        "type": "belief", "subject": subject, "relation": "prefers", "object": object,
        "confidence": 0.9, "created_at": "2026-03-02T09:00:00Z",
    });
    if let Some(parent) = parent {
        grain["derived_from"] = json!([parent]);
    }
    grain
}

fn code(answer: &Value) -> &str {
    answer["error"]["data"]["code"].as_str().unwrap_or_default()
}

#[test]
fn a_killed_owner_is_followed_by_a_relay_with_all_that_was_acknowledged() {
    let place = Place::empty();
    let (mut owner, opened) = Process::open(&place, &json!({}));
    assert_eq!(opened["result"], json!({ "created": true }));
    let (mut first, opened) = Process::open(&place, &json!({}));
    assert_eq!(opened["result"]["owner_pid"], owner.child.id());
    let (mut second, _) = Process::open(&place, &json!({}));
    let mut kept = Vec::new();
    for (number, process) in [&mut owner, &mut first, &mut second].into_iter().enumerate() {
        kept.push(process.result("put", &event(&number.to_string()))["address"].clone());
    }
    owner.kill();
    for process in [&mut first, &mut second] {
        for address in &kept {
            let found = process.result("exists", &json!({ "address": address }));
            assert_eq!(found["exists"], true);
        }
    }
    let (mut third, opened) = Process::open(&place, &json!({}));
    assert_eq!(opened["result"]["owner_pid"], first.child.id(), "who asked first owns it");
    third.result("put", &event("after"));
    assert_eq!(second.result("verify", &json!({ "full": true }))["ok"], true);
}

#[test]
fn a_request_that_is_lost_with_its_owner_is_asked_again_or_told_to_be_in_doubt() {
    let place = Place::empty();
    let (mut owner, _) = Process::open(&place, &json!({}));
    let old = owner.result("put", &json!({ "grain": fact("ann", "tea", None) }))["address"].clone();
    let new = json!({ "old": old, "grain": fact("ann", "coffee", old.as_str()) });
    for (method, params, is_repeated) in [
        ("put", event("again"), true),
        ("get", json!({ "address": old }), true),
        ("cal", json!({ "query": "RECALL beliefs" }), true),
        ("supersede", new, false),
        ("contradict", json!({ "address": old, "reason": "no" }), false),
        ("put", json!({ "grain": fact("bob", "tea", None), "same_fact": "keep" }), false),
    ] {
        let (mut relay, opened) = Process::open(&place, &json!({}));
        assert_eq!(opened["result"]["owner_pid"], owner.child.id());
        relay.result("stats", &json!({}));
        // It takes the request, and does nothing about it.
        owner.signal("STOP");
        relay.send(method, &params).unwrap();
        thread::sleep(Duration::from_millis(200));
        owner.kill();
        let answer = relay.answer().unwrap();
        match is_repeated {
            true => assert!(answer.get("result").is_some(), "{method}: {answer}"),
            false => {
                assert_eq!(code(&answer), "ERR_IN_DOUBT", "{method}: {answer}");
                assert!(!answer["error"]["data"]["hint"].as_str().unwrap().is_empty());
            }
        }
        // The relay goes on, and owns the store at its next request.
        relay.result("stats", &json!({}));
        owner = relay;
    }
    assert_eq!(owner.result("verify", &json!({ "full": true }))["ok"], true);
}

#[test]
fn an_owner_that_does_not_answer_is_busy_by_its_number() {
    let place = Place::empty();
    let (mut owner, _) = Process::open(&place, &json!({}));
    let (mut relay, _) = Process::open(&place, &json!({}));
    let old = owner.result("put", &json!({ "grain": fact("ann", "tea", None) }))["address"].clone();
    relay.result("stats", &json!({}));
    owner.signal("STOP");
    let mut late = place.rpc();
    let busy = late.call("open", &json!({ "path": STORE, "wait_ms": 100 }))["error"].clone();
    let told = busy["message"].as_str().unwrap();
    assert_eq!(busy["data"]["code"], "ERR_BUSY", "{busy}");
    assert!(told.contains(&format!("process {}", owner.child.id())), "{busy}");
    let answer = relay.ask("get", &json!({ "address": old })).unwrap();
    assert_eq!(code(&answer), "ERR_BUSY", "{answer}");
    // What it may have got is done once it goes on.
    owner.signal("CONT");
    relay.result("get", &json!({ "address": old }));
    owner.signal("STOP");
    let answer = relay.ask("put", &event("may be there")).unwrap();
    assert_eq!(code(&answer), "ERR_IN_DOUBT", "{answer}");
    owner.signal("CONT");
    // A socket that is gone is no sign of life either.
    relay.result("get", &json!({ "address": old }));
    owner.signal("STOP");
    std::fs::remove_file(place.path().join(STORE).join("socket")).unwrap();
    let answer = relay.ask("get", &json!({ "address": old })).unwrap();
    assert_eq!(code(&answer), "ERR_BUSY", "{answer}");
    owner.signal("CONT");
}

#[test]
fn a_relay_that_is_killed_amid_a_request_leaves_the_owner_whole() {
    let place = Place::empty();
    let (mut owner, _) = Process::open(&place, &json!({}));
    for round in 0..4 {
        let (mut relay, _) = Process::open(&place, &json!({}));
        let grains: Vec<_> =
            (0..2_000).map(|number| event(&format!("{round} {number}"))["grain"].clone()).collect();
        relay.send("put_batch", &json!({ "grains": grains })).unwrap();
        thread::sleep(Duration::from_millis(10 * round));
        relay.kill();
        // Half of a line is no request.
        let (mut half, _) = Process::open(&place, &json!({}));
        half.stdin
            .write_all(br#"{"jsonrpc": "2.0", "id": 1, "method": "put", "params": {"gra"#)
            .unwrap();
        half.kill();
        owner.result("put", &event(&format!("between {round}")));
    }
    let grains = owner.result("stats", &json!({}))["grains"].as_u64().unwrap();
    assert_eq!(grains % 2_000, 4, "batches are whole or not there: {grains}");
    assert_eq!(owner.result("verify", &json!({ "full": true }))["ok"], true);
}

#[test]
fn a_file_that_has_no_name_for_the_owner_is_refused() {
    use std::os::unix::ffi::OsStrExt as _;
    let place = Place::empty();
    let odd = place.path().join(std::ffi::OsStr::from_bytes(b"\xff"));
    std::fs::create_dir(&odd).unwrap();
    let (mut owner, _) = Process::open(&place, &json!({}));
    owner.result("put", &event("hello"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_grain"))
        .arg("rpc")
        .current_dir(&odd)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let store = place.path().join(STORE);
    for request in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "open", "params": { "path": store } }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "export", "params": { "path": "out.mg" } }),
    ] {
        writeln!(child.stdin.as_mut().unwrap(), "{request}").unwrap();
    }
    let told = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let last: Value = serde_json::from_str(told.lines().nth(1).unwrap()).unwrap();
    assert_eq!(code(&last), "ERR_SCHEMA", "{told}");
    assert!(!place.path().join("out.mg").exists() && !odd.join("out.mg").exists());
}

#[test]
fn a_name_of_a_file_is_meant_from_where_the_relay_runs() {
    let place = Place::empty();
    let elsewhere = place.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let (mut owner, _) = Process::open(&place, &json!({}));
    owner.result("put", &event("hello"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_grain"));
    let store = place.path().join(STORE);
    let requests = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "open", "params": { "path": store } }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "export", "params": { "path": "out.mg" } }),
    ];
    let mut child = child
        .arg("rpc")
        .current_dir(&elsewhere)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    for request in &requests {
        writeln!(child.stdin.as_mut().unwrap(), "{request}").unwrap();
    }
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.lines().all(|line| line.contains("\"result\"")), "{told}");
    assert!(elsewhere.join("out.mg").exists() && !place.path().join("out.mg").exists());
}

/// What the processes of a long run have been told.
#[derive(Default)]
struct Told {
    /// Contents by the address of an acknowledged put.
    puts: Mutex<BTreeMap<String, String>>,
    /// Acknowledged successors by what they replaced.
    successors: Mutex<BTreeMap<String, String>>,
    /// Replacements whose answer was lost.
    in_doubt: Mutex<BTreeSet<String>>,
    /// Milliseconds of requests that outlived the process that owned the store.
    take_overs: Mutex<Vec<u64>>,
    requests: AtomicU64,
}

/// One of the processes of a long run, started again whenever it is killed.
struct Slot {
    process: Option<Process>,
    number: usize,
    asked: u64,
}

impl Slot {
    fn new(number: usize) -> Self {
        Self { process: None, number, asked: 0 }
    }
}

/// Asks one thing after the other until `stop`.
fn work(
    place: &Place,
    mut slot: Slot,
    pids: &Mutex<Vec<u32>>,
    kills: &AtomicU64,
    told: &Told,
    more: &Value,
    stop: &AtomicBool,
) {
    let mut heads = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let process = match &mut slot.process {
            Some(process) => process,
            none => {
                let Some((process, _)) = Process::start(place, more) else { continue };
                pids.lock().unwrap()[slot.number] = process.child.id();
                none.insert(process)
            }
        };
        slot.asked += 1;
        let (kills_before, began) = (kills.load(Ordering::SeqCst), Instant::now());
        let is_lost = ask_one(process, slot.number, slot.asked, &mut heads, told).is_none();
        told.requests.fetch_add(1, Ordering::Relaxed);
        if is_lost {
            slot.process = None;
        } else if kills.load(Ordering::SeqCst) != kills_before {
            let ms = u64::try_from(began.elapsed().as_millis()).unwrap();
            told.take_overs.lock().unwrap().push(ms);
        }
    }
}

/// Asks something of a process; `None` if it is killed over that.
fn ask_one(
    process: &mut Process,
    slot: usize,
    asked: u64,
    heads: &mut Vec<String>,
    told: &Told,
) -> Option<()> {
    match asked % 6 {
        0 if !heads.is_empty() => {
            let old = heads.remove(usize::try_from(asked).unwrap() % heads.len());
            let grain = fact(&format!("person {slot}"), &format!("drink {asked}"), Some(&old));
            told.in_doubt.lock().unwrap().insert(old.clone());
            let answer = process.ask("supersede", &json!({ "old": old, "grain": grain }))?;
            if let Some(new) = answer["result"]["address"].as_str() {
                told.in_doubt.lock().unwrap().remove(&old);
                let before = told.successors.lock().unwrap().insert(old, new.to_owned());
                assert_eq!(before, None, "one successor a grain");
                heads.push(new.to_owned());
            } else {
                assert_eq!(code(&answer), "ERR_IN_DOUBT", "{answer}");
            }
        }
        1 => {
            let grain = fact(&format!("person {slot}"), &format!("dish {asked}"), None);
            let answer = process.ask("put", &json!({ "grain": grain }))?;
            let address = answer["result"]["address"].as_str();
            heads.push(address.unwrap_or_else(|| panic!("{answer}")).to_owned());
        }
        2 => {
            let some = told
                .puts
                .lock()
                .unwrap()
                .iter()
                .next_back()
                .map(|(address, text)| (address.clone(), text.clone()));
            let Some((address, text)) = some else { return Some(()) };
            let answer = process.ask("get", &json!({ "address": address }))?;
            assert_eq!(answer["result"]["grain"]["content"], text, "{answer}");
        }
        3 => {
            let answer = process.ask(
                "query",
                &json!({ "where": { "type": "event" }, "text": "story", "limit": 3 }),
            )?;
            assert!(answer.get("result").is_some(), "{answer}");
        }
        _ => {
            let text = format!("story {asked} of {slot}");
            let answer = process.ask("put", &event(&text))?;
            let address = answer["result"]["address"].as_str();
            let address = address.unwrap_or_else(|| panic!("{answer}")).to_owned();
            told.puts.lock().unwrap().insert(address, text);
        }
    }
    Some(())
}

/// Eight processes write, read, supersede and search, and one is killed every second.
fn run_and_kill(more: &Value, time: Duration) {
    const PROCESSES: usize = 8;
    let place = Place::empty();
    let (first, _) = Process::open(&place, more);
    drop(first);
    let (told, stop) = (Told::default(), AtomicBool::new(false));
    let (pids, kills) = (Mutex::new(vec![0; PROCESSES]), AtomicU64::new(0));
    let killed = thread::scope(|scope| {
        for number in 0..PROCESSES {
            let (place, pids, kills, told, stop) = (&place, &pids, &kills, &told, &stop);
            scope.spawn(move || work(place, Slot::new(number), pids, kills, told, more, stop));
        }
        let (began, mut killed) = (Instant::now(), 0_usize);
        while began.elapsed() < time {
            thread::sleep(Duration::from_secs(1));
            let pid = std::mem::take(&mut pids.lock().unwrap()[killed % PROCESSES]);
            if pid != 0 {
                // Counted before, so that a request that the kill delays is told from others.
                kills.fetch_add(1, Ordering::SeqCst);
                let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
            }
            killed += 1;
        }
        stop.store(true, Ordering::SeqCst);
        killed
    });
    let (mut process, _) = Process::open(&place, more);
    check_all(&mut process, &told);
    let mut take_overs = told.take_overs.into_inner().unwrap();
    take_overs.sort_unstable();
    let at = |share: usize| take_overs.get(take_overs.len() * share / 100).copied();
    println!(
        "{killed} kills, {} requests; of {} requests over a kill half took {:?} ms, 99 in 100 {:?} ms, all {:?} ms",
        told.requests.into_inner(),
        take_overs.len(),
        at(50),
        at(99),
        take_overs.last()
    );
}

/// Checks that everything acknowledged is there, nothing is there twice, and the store is sound.
fn check_all(process: &mut Process, told: &Told) {
    for (address, text) in &*told.puts.lock().unwrap() {
        let got = process.result("get", &json!({ "address": address }));
        assert_eq!(&got["grain"]["content"], text);
    }
    for (old, new) in &*told.successors.lock().unwrap() {
        let got = process.result("get", &json!({ "address": old }));
        assert_eq!(&got["state"]["superseded_by"], new, "{old}");
    }
    let mut contents = BTreeSet::new();
    let mut page =
        json!({ "where": { "type": "event" }, "limit": 500, "include_superseded": true });
    loop {
        let found = process.result("query", &page);
        for result in found["results"].as_array().unwrap() {
            let text = result["grain"]["content"].as_str().unwrap().to_owned();
            assert!(contents.insert(text.clone()), "{text} is there twice");
        }
        if found["next_cursor"].is_null() {
            break;
        }
        page["cursor"] = found["next_cursor"].clone();
    }
    let verified = process.result("verify", &json!({ "full": true }));
    assert_eq!(verified["ok"], true, "{verified}");
}

#[test]
fn processes_that_are_killed_lose_nothing_that_was_acknowledged() {
    run_and_kill(&json!({}), Duration::from_secs(4));
}

fn soak_time() -> Duration {
    let seconds =
        std::env::var("GRAINSTORE_SOAK_SECONDS").ok().and_then(|given| given.parse().ok());
    Duration::from_secs(seconds.unwrap_or(600))
}

#[test]
#[ignore = "ten minutes: GRAINSTORE_SOAK_SECONDS has another time"]
fn processes_are_killed_for_ten_minutes() {
    run_and_kill(&json!({}), soak_time());
}

#[test]
#[ignore = "ten minutes: GRAINSTORE_SOAK_SECONDS has another time"]
fn processes_of_an_encrypted_store_are_killed_for_ten_minutes() {
    let key = data_encoding::BASE64.encode(&[7; 32]);
    // A question names its person where the store is encrypted.
    run_and_kill(&json!({ "key": key, "session": { "user_id": "ann" } }), soak_time());
}
