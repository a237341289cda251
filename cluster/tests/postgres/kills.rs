//! Leaders, databases and connections that die amid writes: nothing acknowledged is lost, nothing is superseded twice,
//! and every copy is the same in the end.
//!
//! A normal run is short. `GRAINSTORE_CLUSTER=full` is the run of docs/reliability.md: 200 kills of a leader, 100
//! pauses for longer than its lease, 30 kills of the primary, 20 promotions of its synchronous standby.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use grainstore::cal::{Predicate, Query};
use grainstore::format::BeliefBuilder;
use grainstore::journal::{Journal, ShardId};
use grainstore::{
    ContentAddress, EpochMs, EraseOptions, ErrorKind, MasterKey, OpenOptions, PageOptions, Result,
    SessionOptions, Store,
};
use grainstore_cluster::{Node, NodeOptions, NodeRole, PostgresJournal, PostgresOptions};

use crate::server::{Programs, Server, open_directory};

const SHARD: ShardId = ShardId(1);
const LEASE: Duration = Duration::from_millis(800);
/// Facts that all nodes supersede.
const KEYS: u64 = 50;
/// The master key of all copies.
const KEY: [u8; 32] = [7; 32];
const NODES: [&str; 3] = ["one", "two", "three"];

/// A random number below another, by a generator of Lehmer's.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// What a node process says on a line.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// A grain that a process put, and its user if it is the only one of theirs.
type Mine = (ContentAddress, Option<String>);

fn work(store: &Store, random: &mut Random, mine: &mut Vec<Mine>) -> Result<String> {
    let session = store.session(SessionOptions::default());
    let unique = i64::try_from(random.below(1 << 31)).unwrap_or_default();
    let of = |subject: &str, user: &str| {
        let now = session.now().get();
        BeliefBuilder::new(EpochMs::new(now), subject, "is", format!("{unique}"), 1.0)
            .user_id(user)
            .build()
    };
    match random.below(10) {
        0..=5 => {
            let only = (random.below(3) == 0).then(|| {
                // Nobody else has this name: who erases this user erases this grain alone.
                format!("only {} {} {unique}", std::process::id(), session.now().get())
            });
            let user = only.clone().unwrap_or_else(|| format!("u{}", random.below(20)));
            let address = session.put(of(&format!("thing {unique}"), &user)?)?.address();
            mine.push((address, only));
            Ok(format!("put {address}"))
        }
        6..=8 => {
            let key = format!("key {}", random.below(KEYS));
            let query = Query::default().when(Predicate::text_is("subject", &key).unwrap());
            let user_id = Some(String::from("all"));
            let of_all = store.session(SessionOptions { user_id, ..SessionOptions::default() });
            let page = of_all.query(&query, &PageOptions::first(1000))?;
            let head = page.results.iter().find(|found| found.state.superseded_by.is_none());
            let new = of(&key, "all")?;
            match head {
                None => Ok(format!("put {}", session.put(new)?.address())),
                Some(head) => {
                    let old = head.content_address;
                    Ok(format!("sup {old} {}", session.supersede(&old, new, Some("later"))?))
                }
            }
        }
        _ if mine.is_empty() => Ok(String::from("none")),
        _ => {
            let place = usize::try_from(random.below(mine.len() as u64)).unwrap_or_default();
            let (address, only) = mine.swap_remove(place);
            say(&format!("erases {address}"));
            let options = EraseOptions::default();
            match only {
                Some(user) => drop(session.erase_user(&user, "asked", &options)?),
                None => drop(session.erase(&address, "asked", &options)?),
            }
            Ok(format!("era {address}"))
        }
    }
}

/// The process of a node: it writes while it leads, and says what was acknowledged.
#[test]
#[ignore = "a process of the test below"]
fn node_process() {
    let variable = |name: &str| std::env::var(name).unwrap();
    let (name, path) = (variable("NODE_NAME"), PathBuf::from(variable("NODE_PATH")));
    let options = PostgresOptions::new(variable("NODE_URL"));
    let journal: Arc<dyn Journal> = Arc::new(PostgresJournal::new(&options).unwrap());
    let mut options = NodeOptions::new(name, path);
    options.lease = LEASE;
    options.open = OpenOptions::new().key(MasterKey::new(KEY));
    let node = Arc::new(Mutex::new(Some(Node::start(options, journal).unwrap())));
    let stops = Arc::clone(&node);
    thread::spawn(move || {
        let mut line = String::new();
        let _ = std::io::stdin().read_line(&mut line);
        let stopped = stops.lock().unwrap().take();
        stopped.unwrap().stop();
        say("stopped");
    });
    // The ids of processes come again.
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let mut random = Random(u64::try_from(started).unwrap() ^ u64::from(std::process::id()));
    let mut mine = Vec::new();
    loop {
        let store = match &*node.lock().unwrap() {
            Some(node) => match node.leading_store(Duration::from_millis(20)) {
                Ok(store) => store,
                Err(error) => {
                    if let NodeRole::Stopped(stopped) = node.role() {
                        say(&format!("refuses {} {stopped}", stopped.code()));
                        thread::sleep(Duration::from_millis(500));
                    } else if error.kind() != ErrorKind::NotLeader
                        && error.kind() != ErrorKind::Timeout
                    {
                        say(&format!("waits {} {error}", error.code()));
                    }
                    continue;
                }
            },
            None => return,
        };
        loop {
            match work(&store, &mut random, &mut mine) {
                Ok(line) => say(&line),
                Err(error) => {
                    say(&format!("error {} {error}", error.code()));
                    break;
                }
            }
        }
    }
}

/// A process of a node.
struct NodeProcess {
    name: &'static str,
    child: Child,
    stdin: ChildStdin,
}

type Line = (&'static str, Instant, String);

impl NodeProcess {
    fn start(name: &'static str, directory: &Path, url: &str, lines: Sender<Line>) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--ignored",
                "--exact",
                "kills::node_process",
                "--nocapture",
                "--test-threads=1",
            ])
            .env("NODE_NAME", name)
            .env("NODE_PATH", directory.join(name))
            .env("NODE_URL", url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(directory.join(format!("{name}.log"))).unwrap())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                // The last of a process that was killed may be cut off.
                let Ok(line) = line else { break };
                let _ = lines.send((name, Instant::now(), line));
            }
        });
        Self { name, child, stdin }
    }

    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// What was acknowledged.
#[derive(Default)]
struct Acknowledged {
    puts: BTreeSet<ContentAddress>,
    superseded: BTreeMap<ContentAddress, ContentAddress>,
    erased: BTreeSet<ContentAddress>,
    /// Erasures that were begun: those whose process died before it said so may have been made.
    begun: BTreeSet<ContentAddress>,
    lines: u64,
    doubts: u64,
    errors: BTreeMap<String, u64>,
    twice: Vec<ContentAddress>,
    refusals: Vec<String>,
    last: Option<(&'static str, Instant)>,
}

impl Acknowledged {
    fn take(&mut self, lines: &Receiver<Line>) {
        while let Ok((node, at, line)) = lines.try_recv() {
            self.note(node, at, &line);
        }
    }

    fn note(&mut self, node: &'static str, at: Instant, line: &str) {
        let address = |text: &str| text.parse::<ContentAddress>().ok();
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["put", new] => self.puts.extend(address(new)),
            ["sup", old, new] => {
                let (Some(old), Some(new)) = (address(old), address(new)) else { return };
                self.puts.insert(new);
                if self.superseded.insert(old, new).is_some_and(|before| before != new) {
                    self.twice.push(old);
                }
            }
            ["era", gone] => self.erased.extend(address(gone)),
            ["erases", going] => {
                self.begun.extend(address(going));
                return;
            }
            ["error", code, ..] => {
                self.doubts += u64::from(code == "ERR_IN_DOUBT");
                *self.errors.entry(code.to_owned()).or_default() += 1;
                return;
            }
            ["refuses", ..] => {
                self.refusals.push(format!("{node}: {line}"));
                return;
            }
            _ => return,
        }
        self.lines += 1;
        self.last = Some((node, at));
    }

    /// Waits for an acknowledgement of after a moment, and returns how long it took.
    fn next_after(&mut self, lines: &Receiver<Line>, moment: Instant) -> Duration {
        loop {
            self.take(lines);
            if let Some((_, at)) = self.last.filter(|(_, at)| *at > moment) {
                return at - moment;
            }
            assert!(self.refusals.is_empty(), "{:?}", self.refusals);
            assert!(moment.elapsed() < Duration::from_secs(90), "nobody writes: {:?}", self.errors);
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// How often each thing happens.
struct Plan {
    kills: usize,
    pauses: usize,
    primary_kills: usize,
    promotions: usize,
}

fn plan() -> Plan {
    let full = std::env::var("GRAINSTORE_CLUSTER").is_ok_and(|sweep| sweep == "full");
    match full {
        true => Plan { kills: 200, pauses: 100, primary_kills: 30, promotions: 20 },
        false => Plan { kills: 4, pauses: 2, primary_kills: 1, promotions: 1 },
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    LeaderKilled,
    LeaderPaused,
    PrimaryKilled,
    Promoted,
}

#[test]
fn whoever_dies_nothing_acknowledged_is_lost_and_all_copies_are_the_same() {
    let Some(programs) = Programs::find() else { return };
    let directory = open_directory();
    let place = |name: &str| directory.path().join(name);
    let mut primary = Server::primary(&programs, &place("server 0"));
    let mut standby = primary.standby(&place("server 1"));
    let url = format!(
        "host=127.0.0.1,127.0.0.1 port={},{} user=grain dbname=postgres",
        primary.port, standby.port
    );
    let journal = PostgresJournal::new(&PostgresOptions::new(&url)).unwrap();
    journal.init().unwrap();
    let (sender, lines) = channel();
    let start = |name| NodeProcess::start(name, directory.path(), &url, sender.clone());
    let mut nodes: Vec<NodeProcess> = NODES.into_iter().map(start).collect();
    let (mut acknowledged, mut random) = (Acknowledged::default(), Random(1));
    acknowledged.next_after(&lines, Instant::now());
    let Plan { kills, pauses, primary_kills, promotions } = plan();
    let mut events = [
        vec![Event::LeaderKilled; kills],
        vec![Event::LeaderPaused; pauses],
        vec![Event::PrimaryKilled; primary_kills],
        vec![Event::Promoted; promotions],
    ]
    .concat();
    let mut took: BTreeMap<Event, Vec<Duration>> = BTreeMap::new();
    let (mut servers, began) = (2, Instant::now());
    while !events.is_empty() {
        let event = events.swap_remove(usize::try_from(random.below(events.len() as u64)).unwrap());
        thread::sleep(Duration::from_millis(100 + random.below(400)));
        acknowledged.take(&lines);
        let leader = acknowledged.last.unwrap().0;
        let number = nodes.iter().position(|node| node.name == leader).unwrap();
        let moment;
        match event {
            Event::LeaderKilled => {
                let node = nodes.swap_remove(number);
                moment = Instant::now();
                node.kill();
                took.entry(event)
                    .or_default()
                    .push(acknowledged.next_after(&lines, Instant::now()));
                nodes.push(start(leader));
            }
            Event::LeaderPaused => {
                moment = Instant::now();
                nodes[number].signal("-STOP");
                thread::sleep(LEASE * 3);
                nodes[number].signal("-CONT");
                took.entry(event)
                    .or_default()
                    .push(acknowledged.next_after(&lines, Instant::now()));
            }
            Event::PrimaryKilled => {
                primary.kill();
                primary.start();
                moment = Instant::now();
                took.entry(event).or_default().push(acknowledged.next_after(&lines, moment));
            }
            Event::Promoted => {
                primary.kill();
                moment = Instant::now();
                standby.promote();
                took.entry(event).or_default().push(acknowledged.next_after(&lines, moment));
                let port = primary.port;
                let next = standby.standby_at(&place(&format!("server {servers}")), port);
                servers += 1;
                (primary, standby) = (standby, next);
            }
        }
        let first = took[&event].last().unwrap();
        eprintln!("{event:?}: acknowledged after {first:?}, {:?} in all", moment.elapsed());
    }
    thread::sleep(Duration::from_millis(500));
    stop(nodes, &lines, &mut acknowledged);
    check(directory.path(), &acknowledged, &primary, &(Arc::new(journal) as Arc<dyn Journal>));
    for (event, mut times) in took {
        times.sort();
        let at = |share: usize| times[(times.len() - 1) * share / 100];
        eprintln!(
            "{event:?}: {} times, first acknowledgement after {:?} p50, {:?} p99, {:?} at most",
            times.len(),
            at(50),
            at(99),
            times[times.len() - 1]
        );
    }
    eprintln!(
        "{} acknowledged ({} puts, {} supersessions, {} erasures), {} in doubt, in {:?}; errors: {:?}",
        acknowledged.lines,
        acknowledged.puts.len(),
        acknowledged.superseded.len(),
        acknowledged.erased.len(),
        acknowledged.doubts,
        began.elapsed(),
        acknowledged.errors
    );
}

fn stop(nodes: Vec<NodeProcess>, lines: &Receiver<Line>, acknowledged: &mut Acknowledged) {
    for NodeProcess { mut child, mut stdin, .. } in nodes {
        writeln!(stdin, "stop").unwrap();
        child.wait().unwrap();
    }
    thread::sleep(Duration::from_millis(200));
    acknowledged.take(lines);
}

/// Holds three copies, and one made from the journal, against what was acknowledged.
fn check(
    directory: &Path,
    acknowledged: &Acknowledged,
    primary: &Server,
    journal: &Arc<dyn Journal>,
) {
    assert_eq!(acknowledged.twice, [], "superseded twice");
    assert_eq!(acknowledged.refusals, Vec::<String>::new());
    let contiguous = "SELECT count(DISTINCT commit_no) = max(commit_no) FROM grainstore.journal";
    assert_eq!(primary.sql(contiguous), "t", "a commit is missing");
    let (mut digests, mut keyrings) = (Vec::new(), Vec::new());
    for name in ["one", "two", "three", "from the journal"] {
        let options = OpenOptions::new().create(true).key(MasterKey::new(KEY));
        let options = options.following(Arc::clone(journal), SHARD);
        let store = Store::open(directory.join(name), &options).unwrap();
        let session = store.session(SessionOptions::default());
        for address in &acknowledged.puts {
            match session.get(address) {
                Ok(found) => {
                    let by = acknowledged.superseded.get(address);
                    assert!(
                        by.is_none_or(|by| found.state.superseded_by == Some(*by)),
                        "{name}: {address}"
                    );
                    assert!(!acknowledged.erased.contains(address), "{name}: {address} is back");
                }
                // An erasure may have been made and not told.
                Err(error) => {
                    assert_eq!(error.code(), "ERR_ERASED", "{name}: {address}");
                    assert!(
                        acknowledged.begun.contains(address),
                        "{name}: {address} is gone: {error}"
                    );
                }
            }
        }
        assert!(store.verify(false).unwrap().problems.is_empty(), "{name}");
        digests.push(store.truth_digest().unwrap());
        store.close().unwrap();
        keyrings.push(fs::read(directory.join(name).join("keyring")).unwrap());
    }
    assert!(digests.iter().all(|digest| *digest == digests[0]), "{digests:?}");
    let (_, slots) = journal.keyring(SHARD, 0..u32::MAX).unwrap();
    let of_journal: Vec<u8> = slots.iter().flat_map(|slot| slot.bytes).collect();
    assert!(keyrings.iter().all(|keyring| *keyring == of_journal), "a keyring is another");
    let destroyed = slots.iter().filter(|slot| slot.bytes.iter().all(|byte| *byte == 0)).count();
    eprintln!("{} keys, {destroyed} of them destroyed", slots.len());
}
