//! Copies that follow while others write and read: each call ends, what was read is kept, and what was erased is
//! overwritten once nobody reads it.

use std::fmt;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use grainstore_cal::Query;

use super::replication::{LONG, Nodes, SHARD, SOON, at, belief, code, files_with, put, put_event};
use crate::journal::{
    CommitPosition, Head, Journal, KeyringSlot, Lead, MemoryJournal, Record, ShardId, ShardStatus,
    unreachable,
};
use crate::{
    ContentAddress, EraseOptions, OpenOptions, PageOptions, Result, SessionOptions, Store,
};

type OnRead = Box<dyn FnMut(u64) -> Result<()> + Send>;

/// A journal that hands out few records at a time, and calls the test before it does, with the number of the last that
/// is known.
struct Hooked {
    journal: MemoryJournal,
    at_once: usize,
    on_read: Mutex<Option<OnRead>>,
}

impl fmt::Debug for Hooked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.journal.fmt(f)
    }
}

impl Hooked {
    fn new(at_once: usize) -> Arc<Self> {
        let (journal, on_read) = (MemoryJournal::default(), Mutex::default());
        Arc::new(Self { journal, at_once, on_read })
    }

    fn on_read(&self, call: impl FnMut(u64) -> Result<()> + Send + 'static) {
        *self.on_read.lock().unwrap() = Some(Box::new(call));
    }
}

impl Journal for Arc<Hooked> {
    fn lead(&self, shard: ShardId, node: &str, ttl: Duration) -> Result<Lead> {
        self.journal.lead(shard, node, ttl)
    }

    fn renew(&self, lead: &Lead) -> Result<Head> {
        self.journal.renew(lead)
    }

    fn release(&self, lead: &Lead) -> Result<()> {
        self.journal.release(lead)
    }

    fn append(&self, lead: &Lead, after: &Head, record: &Record) -> Result<Head> {
        self.journal.append(lead, after, record)
    }

    fn read(&self, shard: ShardId, after: u64, bytes: usize) -> Result<Vec<Record>> {
        self.on_read.lock().unwrap().as_mut().map_or(Ok(()), |call| call(after))?;
        let mut records = self.journal.read(shard, after, bytes)?;
        records.truncate(self.at_once);
        Ok(records)
    }

    fn keyring(&self, shard: ShardId, numbers: Range<u32>) -> Result<(Head, Vec<KeyringSlot>)> {
        self.journal.keyring(shard, numbers)
    }

    fn status(&self, shard: ShardId) -> Result<ShardStatus> {
        self.journal.status(shard)
    }
}

#[test]
fn a_look_ends_where_the_journal_ended_when_it_began_however_fast_the_leader_writes() {
    let hooked = Hooked::new(3);
    let nodes = Nodes::with(Arc::clone(&hooked));
    let leader = nodes.lead("one");
    let follower = nodes.follow("two");
    for number in 0..5 {
        put(&leader, "ann", number).unwrap();
    }
    let (then, writes) = (at(&leader).commit, leader.clone());
    let mut number = 5;
    hooked.on_read(move |_| {
        number += 1;
        if number < 100 {
            put(&writes, "ann", number)?;
        }
        Ok(())
    });
    assert_eq!(follower.follow().unwrap().unwrap().commit, then);
    assert!(at(&leader).commit > then);
    *hooked.on_read.lock().unwrap() = None;
    follower.wait_for(at(&leader), SOON).unwrap();
}

#[test]
fn who_waits_for_a_position_waits_for_nobody_who_reads_a_journal_that_hangs() {
    let hooked = Hooked::new(100);
    let nodes = Nodes::with(Arc::clone(&hooked));
    let leader = nodes.lead("one");
    let follower = nodes.follow("two");
    put(&leader, "ann", 1).unwrap();
    let (begins, began) = channel();
    let (go_on, goes_on) = channel();
    hooked.on_read(move |_| {
        begins.send(()).unwrap();
        goes_on.recv().unwrap();
        Ok(())
    });
    let looks = follower.clone();
    let looking = thread::spawn(move || looks.follow());
    began.recv().unwrap();
    let short = Duration::from_millis(20);
    assert_eq!(code(follower.wait_for(at(&leader), short)), "ERR_TIMEOUT");
    go_on.send(()).unwrap();
    assert_eq!(looking.join().unwrap().unwrap(), Some(at(&leader)));
    follower.wait_for(at(&leader), short).unwrap();
}

#[test]
fn a_copy_that_could_not_be_made_at_once_goes_on_where_it_was() {
    for nodes in [Nodes::with, |hooked| Nodes::with(hooked).encrypted()] {
        let hooked = Hooked::new(3);
        let nodes = nodes(Arc::clone(&hooked));
        let leader = nodes.lead("one");
        for number in 0..20 {
            put(&leader, &format!("user {}", number % 4), number).unwrap();
        }
        hooked.on_read(|after| match after {
            0..12 => Ok(()),
            _ => Err(unreachable("the journal went away")),
        });
        assert_eq!(code(nodes.try_follow("two")), "ERR_IO");
        let (asks, asked) = channel();
        hooked.on_read(move |after| {
            asks.send(after).unwrap();
            Ok(())
        });
        let follower = nodes.follow("two");
        assert!(asked.try_iter().all(|after| after >= 9), "it began anew");
        assert_eq!(at(&follower), at(&leader));
        nodes.hand_over(&leader);
        follower.close().unwrap();
        nodes.assert_same(&["one", "two"]);
    }
}

#[cfg(unix)]
#[test]
fn what_is_left_of_a_copy_that_was_being_made_is_overwritten() {
    let nodes = Nodes::with(MemoryJournal::default());
    put(&nodes.lead("one"), "ann", 1).unwrap();
    let (copy, kept) = (nodes.path("two"), nodes.path("kept"));
    fs::create_dir(&copy).unwrap();
    fs::write(&kept, b"wolframite, which was erased since").unwrap();
    fs::hard_link(&kept, copy.join("grains.redb.new")).unwrap();
    nodes.follow("two").close().unwrap();
    assert_eq!(fs::read(&kept).unwrap(), [0; 34]);
    assert!(!copy.join("grains.redb.new").exists());
}

/// A leader with two grains of these words, and a copy of it.
fn with_two(nodes: &Nodes, words: [&str; 2]) -> (Store, Store, Vec<ContentAddress>) {
    let leader = nodes.lead("one");
    let grains: Vec<_> =
        (1..).zip(words).map(|(number, word)| put_event(&leader, number, word)).collect();
    put(&leader, "ann", 1).unwrap();
    let follower = nodes.follow("two");
    follower.flush().unwrap();
    (leader, follower, grains)
}

fn erase(leader: &Store, grain: &ContentAddress) {
    let operator = leader.session(SessionOptions::default());
    operator.erase(grain, "asked", &EraseOptions::default()).unwrap();
    leader.scrub().unwrap();
}

#[test]
fn a_copy_stands_still_where_it_is_to_be_scrubbed_and_somebody_reads_of_a_scrub_before() {
    let nodes = Nodes::with(MemoryJournal::default());
    let words = ["wolframite", "cassiterite"];
    let (leader, follower, grains) = with_two(&nodes, words);
    let reader = follower.inner().view().unwrap();
    erase(&leader, &grains[0]);
    follower.follow().unwrap();
    assert_eq!(at(&follower), at(&leader), "the first is scrubbed");
    erase(&leader, &grains[1]);
    follower.follow().unwrap();
    assert!(at(&follower).commit < at(&leader).commit);
    let session = follower.session(SessionOptions::default());
    assert_eq!(code(session.get(&grains[1])), "ERR_ERASED");
    let page = session.query(&Query::default(), &PageOptions::first(9)).unwrap();
    assert_eq!((page.total, page.results.len()), (Some(1), 1));
    let report = follower.verify(true).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    let short = Duration::from_millis(20);
    assert_eq!(code(follower.wait_for(at(&leader), short)), "ERR_TIMEOUT");
    drop((reader, session));
    follower.wait_for(at(&leader), SOON).unwrap();
    for word in words {
        let found = files_with(&nodes.path("two"), word.as_bytes());
        assert_eq!(found, Vec::<PathBuf>::new(), "{word}");
    }
    nodes.hand_over(&leader);
    follower.close().unwrap();
    nodes.assert_same(&["one", "two"]);
}

#[test]
fn files_that_a_scrub_replaced_are_overwritten_when_their_last_reader_is_gone() {
    let nodes = Nodes::with(MemoryJournal::default());
    let (leader, follower, grains) = with_two(&nodes, ["wolframite", "cassiterite"]);
    let reader = follower.inner().view().unwrap();
    erase(&leader, &grains[0]);
    follower.follow().unwrap();
    let found = || files_with(&nodes.path("two"), b"wolframite");
    assert_ne!(found(), Vec::<PathBuf>::new(), "they are still read");
    drop(reader);
    follower.follow().unwrap();
    assert_eq!(found(), Vec::<PathBuf>::new());
}

#[test]
fn a_copy_whose_readers_keep_it_from_an_erasure_for_too_long_is_to_be_opened_again() {
    let nodes = Nodes::with(MemoryJournal::default());
    let (leader, follower, grains) = with_two(&nodes, ["wolframite", "cassiterite"]);
    let reader = follower.inner().view().unwrap();
    grains.iter().for_each(|grain| {
        erase(&leader, grain);
        follower.follow().unwrap();
    });
    assert_eq!(code(follower.wait_for(at(&leader), SOON)), "ERR_BUSY");
    follower.close().unwrap();
    drop(reader);
    assert_eq!(at(&nodes.follow("two")), at(&leader));
    assert_eq!(files_with(&nodes.path("two"), b"cassiterite"), Vec::<PathBuf>::new());
}

#[test]
fn a_copy_searches_as_its_leader_does_after_the_leader_was_given_another_language() {
    let nodes = Nodes::with(MemoryJournal::default());
    let leader = nodes.lead("one");
    put_event(&leader, 1, "two houses");
    let follower = nodes.follow("two");
    let found = |store: &Store| {
        let query = Query::default().searching("house");
        let session = store.session(SessionOptions::default());
        session.query(&query, &PageOptions::first(9)).unwrap().results.len()
    };
    let before = found(&leader);
    assert_eq!(found(&follower), before);
    nodes.hand_over(&leader);
    let other = OpenOptions::new().language(None, if before == 1 { "und" } else { "en" });
    let leader = nodes.try_lead("one", other.unwrap()).unwrap();
    assert_ne!(found(&leader), before);
    assert_eq!(code(follower.follow()), "ERR_TIMEOUT");
    drop(follower);
    let follower = nodes.follow("two");
    assert_eq!(found(&follower), found(&leader));
}

#[test]
fn a_store_that_is_closed_says_that_it_writes_no_more() {
    let nodes = Nodes::with(MemoryJournal::default());
    let leader = nodes.lead("one");
    assert_eq!(leader.stopped().map(|error| error.code()), None);
    leader.close().unwrap();
    assert_eq!(leader.stopped().map(|error| error.code()), Some("ERR_IO"));
}

#[test]
fn a_copy_that_is_read_only_says_where_it_is() {
    let nodes = Nodes::with(MemoryJournal::default());
    let leader = nodes.lead("one");
    let session = leader.session(SessionOptions::default());
    session.put(belief("ann", 1)).unwrap();
    let last = at(&leader);
    leader.close().unwrap();
    let read_only = OpenOptions::new().read_only(true);
    let copy = Store::open(nodes.path("one"), &read_only).unwrap();
    assert_eq!(copy.position().unwrap(), Some(last));
    copy.wait_for(last, LONG).unwrap();
    let next = CommitPosition::new(SHARD, last.commit + 1);
    assert_eq!(code(copy.wait_for(next, Duration::from_millis(20))), "ERR_TIMEOUT");
}
