//! Nodes on one journal: one leads, the others follow, and another leads when it is gone.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use grainstore::format::BeliefBuilder;
use grainstore::journal::{FileJournal, Journal};
use grainstore::{
    ContentAddress, EpochMs, ErrorKind, MasterKey, OpenOptions, Result, SessionOptions, Store,
};
use grainstore_cluster::{Node, NodeOptions, NodeRole};

use crate::journal::journal_of;
use crate::server::{Programs, Server, open_directory};

const SOON: Duration = Duration::from_secs(20);

fn node(name: &str, directory: &Path, journal: &Arc<dyn Journal>) -> Node {
    let mut options = NodeOptions::new(name, directory.join(name));
    options.lease = Duration::from_millis(800);
    options.open = OpenOptions::new().key(MasterKey::new([7; 32]));
    Node::start(options, Arc::clone(journal)).unwrap()
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
    let writer = std::thread::spawn(move || put(&store, 4));
    std::thread::sleep(Duration::from_millis(500));
    assert!(!writer.is_finished());
    server.start();
    writer.join().unwrap().unwrap();
}
