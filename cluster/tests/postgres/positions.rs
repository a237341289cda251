//! Reads at a position: a copy that waited for one shows what was acknowledged at it.
//!
//! A normal run makes some thousand reads; `GRAINSTORE_CLUSTER=full` a million.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use grainstore::format::BeliefBuilder;
use grainstore::journal::{CommitPosition, Journal, MemoryJournal, ShardId};
use grainstore::{ContentAddress, OpenOptions, SessionOptions, Store};

use crate::journal::journal_of;
use crate::server::{Programs, Server, open_directory};

const SHARD: ShardId = ShardId(1);
const LONG: Duration = Duration::from_secs(600);
const SOON: Duration = Duration::from_secs(20);
const FOLLOWERS: u64 = 2;

/// What was acknowledged last: where, the grain, and the one that it superseded.
type Acknowledged = (CommitPosition, ContentAddress, ContentAddress);

fn reads() -> u64 {
    let full = std::env::var("GRAINSTORE_CLUSTER").is_ok_and(|sweep| sweep == "full");
    if full { 1_000_000 } else { 5_000 }
}

/// Supersedes one fact again and again, and tells of each.
fn write(leader: &Store, last: &Mutex<Option<Acknowledged>>, ends: &AtomicBool) -> u64 {
    let session = leader.session(SessionOptions::default());
    let version = |number: u64| {
        let grain = BeliefBuilder::new(session.now(), "the fact", "is", number.to_string(), 1.0);
        grain.build().unwrap()
    };
    let mut old = session.put(version(0)).unwrap().address();
    let mut versions = 0;
    while !ends.load(Ordering::Relaxed) {
        versions += 1;
        let new = session.supersede(&old, version(versions), Some("later")).unwrap();
        let at = leader.position().unwrap().unwrap();
        *last.lock().unwrap() = Some((at, new, old));
        old = new;
    }
    versions
}

/// Reads what was acknowledged last, for as long as there are reads to make.
fn read(follower: &Store, last: &Mutex<Option<Acknowledged>>, left: &AtomicU64) {
    let session = follower.session(SessionOptions::default());
    while left
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
        .is_ok()
    {
        let told = *last.lock().unwrap();
        let Some((position, new, old)) = told else { continue };
        follower.wait_for(position, SOON).unwrap();
        let shown = session.get(&old).unwrap().state.superseded_by;
        assert_eq!(shown, Some(new), "{position} is older than it says");
        session.get(&new).unwrap();
    }
}

fn no_read_is_older(journal: &Arc<dyn Journal>, directory: &std::path::Path) {
    let began = Instant::now();
    let lead = journal.lead(SHARD, "leader", LONG).unwrap();
    let options = OpenOptions::new().create(true);
    let leading = options.clone().leading(Arc::clone(journal), lead, SOON);
    let leader = Store::open(directory.join("leader"), &leading).unwrap();
    let (last, ends) = (Mutex::new(None), AtomicBool::new(false));
    let left = AtomicU64::new(reads());
    let versions = thread::scope(|scope| {
        let writes = scope.spawn(|| write(&leader, &last, &ends));
        let readers: Vec<_> = (0..FOLLOWERS)
            .map(|number| {
                let path = directory.join(format!("follower {number}"));
                let options = options.clone().following(Arc::clone(journal), SHARD);
                let (last, left) = (&last, &left);
                scope.spawn(move || read(&Store::open(path, &options).unwrap(), last, left))
            })
            .collect();
        let read: Vec<_> = readers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        ends.store(true, Ordering::Relaxed);
        for reader in read {
            reader.unwrap();
        }
        writes.join().unwrap()
    });
    let took = began.elapsed();
    eprintln!("{} reads at the position of the last of {versions} writes, in {took:?}", reads());
}

#[test]
fn no_read_is_older_than_its_position_by_a_journal_in_memory() {
    let directory = open_directory();
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::default());
    no_read_is_older(&journal, directory.path());
}

#[test]
fn no_read_is_older_than_its_position_by_a_journal_in_postgresql() {
    let Some(programs) = Programs::find() else { return };
    let directory = open_directory();
    let server = Server::primary(&programs, &directory.path().join("primary"));
    let journal: Arc<dyn Journal> = Arc::new(journal_of(&server));
    no_read_is_older(&journal, directory.path());
}
