//! Nodes on one journal: one leads, the others follow, and another leads when it is gone.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use grainstore::format::BeliefBuilder;
use grainstore::journal::{
    FileJournal, Head, Journal, KeyringSlot, Lead, MemoryJournal, Record, ShardId, ShardStatus,
    unreachable,
};
use grainstore::{
    ContentAddress, EpochMs, Error, ErrorKind, MasterKey, OpenOptions, Result, SessionOptions,
    Store,
};
use grainstore_cluster::{Attendant, Node, NodeOptions, NodeRole};

use crate::journal::journal_of;
use crate::server::{Programs, Server, open_directory};

const SOON: Duration = Duration::from_secs(20);
const LEASE: Duration = Duration::from_millis(800);

fn options_of(name: &str, directory: &Path) -> NodeOptions {
    let mut options = NodeOptions::new(name, directory.join(name));
    options.lease = LEASE;
    options.open = OpenOptions::new().key(MasterKey::new([7; 32]));
    options
}

fn node(name: &str, directory: &Path, journal: &Arc<dyn Journal>) -> Node {
    Node::start(options_of(name, directory), Arc::clone(journal)).unwrap()
}

fn put(store: &Store, number: i64) -> Result<ContentAddress> {
    let grain = BeliefBuilder::new(EpochMs::new(number), "ann", "likes", "tea", 1.0).build()?;
    store.session(SessionOptions::default()).put(grain).map(|put| put.address())
}

fn lead_changes(directory: &Path, journal: &Arc<dyn Journal>) {
    let one = node("one", directory, journal);
    let store = one.leading_store(SOON).unwrap();
    let two = node("two", directory, journal);
    let first = put(&store, 1).unwrap();
    let position = store.position().unwrap().unwrap();
    two.wait_for(position, SOON).unwrap();
    assert!(matches!(two.role(), NodeRole::Follower { leader: Some(name) } if name == "one"));
    let follower = two.store(SOON).unwrap();
    let read = |store: &Store, address| store.session(SessionOptions::default()).get(address);
    assert!(read(&follower, &first).is_ok());
    let refused = put(&follower, 2).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotLeader);
    assert!(refused.to_string().contains("one leads"), "{refused}");
    let failed = two.leading_store(Duration::from_millis(50)).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::NotLeader);
    one.stop();
    let second = two.leading_store(SOON).unwrap();
    let other = put(&second, 2).unwrap();
    let one = node("one", directory, journal);
    one.wait_for(second.position().unwrap().unwrap(), SOON).unwrap();
    let follower = one.store(SOON).unwrap();
    assert!(read(&follower, &first).is_ok() && read(&follower, &other).is_ok());
    two.stop();
    one.stop();
}

#[test]
fn another_node_leads_when_the_leader_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let journal: Arc<dyn Journal> = Arc::new(FileJournal::new(directory.path().join("journal")));
    lead_changes(directory.path(), &journal);
}

#[test]
fn another_node_leads_when_the_leader_is_gone_by_a_journal_in_postgresql() {
    let Some(programs) = Programs::find() else { return };
    let directory = open_directory();
    let mut server = Server::primary(&programs, &directory.path().join("primary"));
    let journal: Arc<dyn Journal> = Arc::new(journal_of(&server));
    lead_changes(directory.path(), &journal);
    // Reads go on while the database is gone, and writes wait for it.
    let one = node("one", directory.path(), &journal);
    let store = one.leading_store(SOON).unwrap();
    let first = put(&store, 3).unwrap();
    server.kill();
    assert!(store.session(SessionOptions::default()).get(&first).is_ok());
    let writer = thread::spawn(move || put(&store, 4));
    thread::sleep(Duration::from_millis(500));
    assert!(!writer.is_finished());
    server.start();
    writer.join().unwrap().unwrap();
}

#[test]
fn a_node_whose_copy_was_closed_by_its_host_opens_it_again() {
    let directory = tempfile::tempdir().unwrap();
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::default());
    let one = node("one", directory.path(), &journal);
    let store = one.leading_store(SOON).unwrap();
    put(&store, 1).unwrap();
    let mut follows = options_of("two", directory.path());
    follows.leads = false;
    let two = Node::start(follows, Arc::clone(&journal)).unwrap();
    two.store(SOON).unwrap().close().unwrap();
    store.close().unwrap();
    let again = loop {
        let opened = one.leading_store(SOON).unwrap();
        match opened.stopped() {
            None => break opened,
            Some(_) => thread::sleep(Duration::from_millis(10)),
        }
    };
    let written = put(&again, 2).unwrap();
    let position = again.position().unwrap().unwrap();
    let follower = loop {
        let opened = two.store(SOON).unwrap();
        match opened.stopped() {
            None => break opened,
            Some(_) => thread::sleep(Duration::from_millis(10)),
        }
    };
    follower.wait_for(position, SOON).unwrap();
    assert!(follower.session(SessionOptions::default()).get(&written).is_ok());
}

/// What its node was told of the journal: why it is not reached.
#[derive(Debug, Default)]
struct Told(Mutex<Vec<String>>);

impl Attendant for Told {
    fn opened(&self, _store: &Store, _role: &NodeRole) {}

    fn closing(&self, _role: &NodeRole) {}

    fn journal_reached(&self, failed: Option<&Error>) {
        self.0.lock().unwrap().extend(failed.map(ToString::to_string));
    }
}

fn told_node(directory: &Path, journal: &Arc<dyn Journal>) -> (Node, Arc<Told>) {
    let told = Arc::new(Told::default());
    let mut options = options_of("one", directory);
    options.attendant = Some(Arc::<Told>::clone(&told));
    options.patience = SOON;
    (Node::start(options, Arc::clone(journal)).unwrap(), told)
}

#[test]
fn a_write_waits_for_room_in_the_database() {
    let Some(programs) = Programs::find() else { return };
    let directory = open_directory();
    let server = Server::primary(&programs, &directory.path().join("primary"));
    let journal: Arc<dyn Journal> = Arc::new(journal_of(&server));
    let (one, told) = told_node(directory.path(), &journal);
    let store = one.leading_store(SOON).unwrap();
    let first = put(&store, 1).unwrap();
    server.sql(
        "CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full'; END $$",
    );
    server.sql(
        "CREATE TRIGGER full_disk BEFORE INSERT ON grainstore.journal \
         FOR EACH ROW EXECUTE FUNCTION fails()",
    );
    let head = journal.status(ShardId(1)).unwrap().head;
    let writing = store.clone();
    let writer = thread::spawn(move || put(&writing, 2));
    thread::sleep(LEASE * 2);
    assert!(!writer.is_finished());
    assert_eq!(journal.status(ShardId(1)).unwrap().head, head);
    assert!(store.session(SessionOptions::default()).get(&first).is_ok());
    server.sql("DROP TRIGGER full_disk ON grainstore.journal");
    let second = writer.join().unwrap().unwrap();
    assert!(store.session(SessionOptions::default()).get(&second).is_ok());
    assert_eq!(journal.status(ShardId(1)).unwrap().head.commit, head.commit + 1);
    assert_eq!(*told.0.lock().unwrap(), Vec::<String>::new());
}

#[test]
fn a_lost_lead_is_not_told_as_a_journal_that_is_not_reached() {
    let Some(programs) = Programs::find() else { return };
    let directory = open_directory();
    let server = Server::primary(&programs, &directory.path().join("primary"));
    let journal: Arc<dyn Journal> = Arc::new(journal_of(&server));
    let (one, told) = told_node(directory.path(), &journal);
    let store = one.leading_store(SOON).unwrap();
    server.sql("UPDATE grainstore.shard SET epoch = epoch + 1, until = now()");
    while store.stopped().is_none() {
        thread::sleep(Duration::from_millis(10));
    }
    put(&one.leading_store(SOON).unwrap(), 1).unwrap();
    assert_eq!(*told.0.lock().unwrap(), Vec::<String>::new());
}

/// A journal of which nobody can read the records.
#[derive(Debug)]
struct Unread(Arc<MemoryJournal>);

impl Journal for Unread {
    fn lead(&self, shard: ShardId, node: &str, ttl: Duration) -> Result<Lead> {
        self.0.lead(shard, node, ttl)
    }

    fn renew(&self, lead: &Lead) -> Result<Head> {
        self.0.renew(lead)
    }

    fn release(&self, lead: &Lead) -> Result<()> {
        self.0.release(lead)
    }

    fn append(&self, lead: &Lead, after: &Head, record: &Record) -> Result<Head> {
        self.0.append(lead, after, record)
    }

    fn read(&self, _shard: ShardId, _after: u64, _bytes: usize) -> Result<Vec<Record>> {
        Err(unreachable("it takes long to read"))
    }

    fn keyring(&self, shard: ShardId, slots: Range<u32>) -> Result<(Head, Vec<KeyringSlot>)> {
        self.0.keyring(shard, slots)
    }

    fn status(&self, shard: ShardId) -> Result<ShardStatus> {
        self.0.status(shard)
    }
}

#[test]
fn a_node_that_has_yet_to_read_the_journal_keeps_nobody_from_the_lead() {
    let directory = tempfile::tempdir().unwrap();
    let memory = Arc::new(MemoryJournal::default());
    let journal: Arc<dyn Journal> = Arc::<MemoryJournal>::clone(&memory);
    let one = node("one", directory.path(), &journal);
    put(&one.leading_store(SOON).unwrap(), 1).unwrap();
    one.stop();
    let epoch = journal.status(ShardId(1)).unwrap().epoch;
    let unread: Arc<dyn Journal> = Arc::new(Unread(memory));
    let new = node("new", directory.path(), &unread);
    while !matches!(new.role(), NodeRole::Waiting(_)) {
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(journal.status(ShardId(1)).unwrap().epoch, epoch, "it has taken the lead");
    let one = node("one", directory.path(), &journal);
    put(&one.leading_store(SOON).unwrap(), 2).unwrap();
}

/// Closes slowly what it serves.
#[derive(Debug)]
struct Slow;

impl Attendant for Slow {
    fn opened(&self, _store: &Store, _role: &NodeRole) {}

    fn closing(&self, _role: &NodeRole) {
        thread::sleep(LEASE * 3);
    }
}

#[test]
fn a_lead_that_was_taken_is_kept_while_what_the_copy_is_asked_is_answered() {
    let directory = tempfile::tempdir().unwrap();
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::default());
    let one = node("one", directory.path(), &journal);
    put(&one.leading_store(SOON).unwrap(), 1).unwrap();
    let mut options = options_of("two", directory.path());
    options.attendant = Some(Arc::new(Slow));
    let two = Node::start(options, Arc::clone(&journal)).unwrap();
    two.store(SOON).unwrap();
    let epoch = journal.status(ShardId(1)).unwrap().epoch;
    one.stop();
    while journal.status(ShardId(1)).unwrap().leader.as_deref() != Some("two") {
        thread::sleep(Duration::from_millis(5));
    }
    let three = node("three", directory.path(), &journal);
    put(&two.leading_store(SOON).unwrap(), 2).unwrap();
    assert_eq!(journal.status(ShardId(1)).unwrap().epoch, epoch + 1, "another took the lead");
    three.store(SOON).unwrap();
}
