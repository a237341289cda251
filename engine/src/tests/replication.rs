//! Copies of a store that has a journal: all show what the leader wrote, whoever leads, and none serves what the
//! journal has not.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use grainstore_cal::Query;
use grainstore_format::{BeliefBuilder, EpochMs, EventBuilder};
use redb::Database;

use super::changes::{Rows, rows_of};
use super::kit::calls::{Caller, Made, session};
use super::kit::model::Model;
use super::kit::offers::Settled;
use super::{START_MS, clock_at};
use crate::journal::{
    CommitPosition, FileJournal, Head, Journal, KeyringSlot, Lead, MemoryJournal, Record, ShardId,
    ShardStatus, unreachable,
};
use crate::{
    CalSwitch, ContentAddress, EraseOptions, ErrorKind, ExportOptions, ImportOptions, MasterKey,
    OpenOptions, PageOptions, Result, SessionOptions, Store,
};

pub(super) const SHARD: ShardId = ShardId(1);
pub(super) const LONG: Duration = Duration::from_secs(600);
pub(super) const SOON: Duration = Duration::from_secs(5);

/// Two directories and a journal.
pub(super) struct Nodes {
    pub(super) directory: tempfile::TempDir,
    pub(super) journal: Arc<dyn Journal>,
    /// The key of the copies.
    pub(super) key: Option<[u8; 32]>,
}

impl Nodes {
    pub(super) fn with(journal: impl Journal + 'static) -> Self {
        Self { directory: tempfile::tempdir().unwrap(), journal: Arc::new(journal), key: None }
    }

    /// The same, with encrypted copies.
    pub(super) fn encrypted(self) -> Self {
        Self { key: Some([7; 32]), ..self }
    }

    pub(super) fn options(&self) -> OpenOptions {
        match self.key {
            Some(key) => OpenOptions::new().key(MasterKey::new(key)),
            None => OpenOptions::new(),
        }
    }

    pub(super) fn path(&self, node: &str) -> PathBuf {
        self.directory.path().join(node)
    }

    pub(super) fn try_lead(&self, node: &str, options: OpenOptions) -> Result<Store> {
        let lead = self.journal.lead(SHARD, node, LONG)?;
        let leading = options.create(true).leading(Arc::clone(&self.journal), lead.clone(), SOON);
        let opened = Store::open(self.path(node), &leading);
        if opened.is_err() {
            self.journal.release(&lead).unwrap();
        }
        opened
    }

    pub(super) fn lead(&self, node: &str) -> Store {
        self.try_lead(node, self.options()).unwrap()
    }

    pub(super) fn hand_over(&self, store: &Store) {
        store.close().unwrap();
        let status = self.journal.status(SHARD).unwrap();
        let lead = Lead::new((SHARD, status.epoch), "", LONG, status.head);
        self.journal.release(&lead).unwrap();
    }

    pub(super) fn try_follow(&self, node: &str) -> Result<Store> {
        let options = self.options().create(true).following(Arc::clone(&self.journal), SHARD);
        Store::open(self.path(node), &options)
    }

    pub(super) fn follow(&self, node: &str) -> Store {
        self.try_follow(node).unwrap()
    }

    fn rows(&self, node: &str) -> Rows {
        rows_of(&Database::open(self.path(node).join("grains.redb")).unwrap())
    }

    /// Asserts that the closed copies have the same rows, and that nothing is wrong with them.
    pub(super) fn assert_same(&self, nodes: &[&str]) {
        let first = self.rows(nodes[0]);
        for node in nodes {
            let rows = self.rows(node);
            assert_eq!(first.keys().collect::<Vec<_>>(), rows.keys().collect::<Vec<_>>(), "{node}");
            for (table, rows) in &rows {
                assert_eq!(&first[table], rows, "{node}: {table}");
            }
            let report = crate::verify(&self.path(node), &self.options().read_only(true), true);
            let report = report.unwrap();
            assert!(report.problems.is_empty(), "{node}: {:?}", report.problems);
        }
    }
}

pub(super) fn belief(user: &str, number: i64) -> grainstore_format::Grain {
    let grain = BeliefBuilder::new(EpochMs::new(number), user, "likes", "tea", 1.0);
    grain.user_id(user).build().unwrap()
}

pub(super) fn put(store: &Store, user: &str, number: i64) -> Result<ContentAddress> {
    let operator = store.session(SessionOptions::default());
    operator.put(belief(user, number)).map(|put| put.address())
}

pub(super) fn put_event(store: &Store, number: i64, text: &str) -> ContentAddress {
    let event = EventBuilder::new(EpochMs::new(number), text).user_id("ann").build().unwrap();
    store.session(SessionOptions::default()).put(event).unwrap().address()
}

pub(super) fn at(store: &Store) -> CommitPosition {
    store.position().unwrap().unwrap()
}

pub(super) fn code<T>(outcome: Result<T>) -> &'static str {
    outcome.err().map_or("none", |error| error.code())
}

fn same_everywhere(journal: impl Journal + 'static) {
    let nodes = Nodes::with(journal);
    let clock = clock_at(START_MS);
    let leader = nodes
        .try_lead("one", OpenOptions::new().clock(Arc::<crate::ManualClock>::clone(&clock)))
        .unwrap();
    let follower = nodes.follow("two");
    let (mut caller, mut model, mut now) = (Caller::new(5), Model::default(), START_MS);
    for _ in 0..150 {
        now += 7;
        clock.set(EpochMs::new(now));
        let (namespace, call) = caller.next(&model);
        let made = Made::submit(&session(&leader, namespace), &call);
        let mut settled = Settled::awaited(namespace, EpochMs::new(now), call);
        settled.answer = made.wait();
        model.settle(&settled).unwrap();
    }
    let operator = leader.session(SessionOptions::default());
    let addresses: Vec<_> = (0..30).map(|number| put(&leader, "ann", number).unwrap()).collect();
    operator.contradict(&addresses[1], "a reason", None).unwrap();
    operator.switch_cal(CalSwitch::Reads, "a while").unwrap();
    let rule = "[[rule]]\nid = \"own.author\"\non = [\"put\"]\nrequire = { has = [\"author_did\"] }\n\
                article = \"a\"\nbecause = \"b\"\nfix = \"c\"";
    operator.change_rules(rule, false, "who says so?").unwrap();
    follower.wait_for(at(&leader), SOON).unwrap();
    assert_eq!(follower.rules().rules.len(), leader.rules().rules.len());
    let reader = follower.session(SessionOptions::default());
    for address in &addresses {
        let (ours, theirs) = (operator.get(address).unwrap(), reader.get(address).unwrap());
        assert_eq!((ours.blob, ours.state), (theirs.blob, theirs.state));
    }
    for query in [Query::default(), Query::default().searching("who likes tea")] {
        let found = |session: &crate::Session| {
            let page = session.query(&query, &PageOptions::first(500)).unwrap();
            page.results.into_iter().map(|found| found.content_address).collect::<Vec<_>>()
        };
        assert!(!found(&reader).is_empty());
        assert_eq!(found(&operator), found(&reader));
    }
    leader.close().unwrap();
    follower.follow().unwrap();
    follower.close().unwrap();
    // One that comes late is made from the journal.
    nodes.follow("three").close().unwrap();
    nodes.assert_same(&["one", "two", "three"]);
}

#[test]
fn every_copy_shows_what_the_leader_wrote_by_a_journal_in_memory() {
    same_everywhere(MemoryJournal::default());
}

#[test]
fn every_copy_shows_what_the_leader_wrote_by_a_journal_in_files() {
    let directory = tempfile::tempdir().unwrap();
    same_everywhere(FileJournal::new(directory.path()));
}

#[test]
fn a_follower_writes_nothing_and_says_who_does() {
    let nodes = Nodes::with(MemoryJournal::default());
    assert_eq!(code(nodes.try_follow("two")), "ERR_NOT_FOUND", "there is nothing to follow yet");
    let leader = nodes.lead("one");
    let follower = nodes.follow("two");
    let address = put(&leader, "ann", 1).unwrap();
    follower.wait_for(at(&leader), SOON).unwrap();
    let session = follower.session(SessionOptions::default());
    assert_eq!(code(put(&follower, "ann", 2)), "ERR_NOT_LEADER");
    assert_eq!(code(session.erase(&address, "asked", &EraseOptions::default())), "ERR_NOT_LEADER");
    assert_eq!(code(session.switch_cal(CalSwitch::Off, "asked")), "ERR_NOT_LEADER");
    assert_eq!(code(follower.compact()), "ERR_NOT_LEADER");
    for _ in 0..2000 {
        session.get(&address).unwrap();
    }
    follower.flush().unwrap();
    follower.close().unwrap();
    leader.close().unwrap();
    nodes.assert_same(&["one", "two"]);
    // A copy is written by its journal alone.
    assert_eq!(code(Store::open(nodes.path("one"), &OpenOptions::new())), "ERR_NOT_LEADER");
    assert!(Store::open(nodes.path("one"), &OpenOptions::new().read_only(true)).is_ok());
}

#[test]
fn what_is_erased_is_erased_in_every_copy() {
    let nodes = Nodes::with(MemoryJournal::default());
    let leader = nodes.lead("one");
    let operator = leader.session(SessionOptions::default());
    let event = |number, text| put_event(&leader, number, text);
    let secret = event(1, "the secret is wolframite");
    let others: Vec<_> = (2..20).map(|number| event(number, "nothing of note")).collect();
    let bob = put(&leader, "bob", 1).unwrap();
    let follower = nodes.follow("two");
    let reader = follower.session(SessionOptions::default());
    let search = Query::default().searching("wolframite");
    assert_eq!(reader.query(&search, &PageOptions::first(9)).unwrap().results.len(), 1);
    follower.flush().unwrap();
    let erased = EraseOptions::default();
    operator.erase(&secret, "asked", &erased).unwrap();
    follower.wait_for(at(&leader), SOON).unwrap();
    assert_eq!(code(reader.get(&secret)), "ERR_ERASED");
    assert_eq!(reader.query(&search, &PageOptions::first(9)).unwrap().results.len(), 0);
    operator.erase_user("ann", "asked", &erased).unwrap();
    leader.flush().unwrap();
    leader.compact().unwrap();
    leader.close().unwrap();
    follower.follow().unwrap();
    for address in &others {
        assert_eq!(code(reader.get(address)), "ERR_ERASED");
    }
    assert!(reader.get(&bob).is_ok());
    drop(reader);
    follower.close().unwrap();
    nodes.assert_same(&["one", "two"]);
    for node in ["one", "two"] {
        assert_eq!(files_with(&nodes.path(node), b"wolframite"), Vec::<PathBuf>::new(), "{node}");
    }
}

#[test]
fn a_copy_that_was_away_or_is_new_keeps_nothing_of_what_was_erased() {
    let nodes = Nodes::with(MemoryJournal::default());
    let leader = nodes.lead("one");
    let operator = leader.session(SessionOptions::default());
    let event = |number, text| put_event(&leader, number, text);
    let secret = event(1, "the secret is wolframite");
    for number in 2..20 {
        event(number, "nothing of note");
    }
    for away in ["two", "three"] {
        nodes.follow(away).close().unwrap();
        assert_ne!(files_with(&nodes.path(away), b"wolframite"), Vec::<PathBuf>::new());
    }
    operator.erase(&secret, "asked", &EraseOptions::default()).unwrap();
    leader.flush().unwrap();
    leader.compact().unwrap();
    put(&leader, "bob", 1).unwrap();
    nodes.hand_over(&leader);
    // One follows, one leads, and one is made from the journal.
    nodes.follow("two").close().unwrap();
    let leads = nodes.lead("three");
    assert!(leads.session(SessionOptions::default()).get(&secret).is_err());
    nodes.hand_over(&leads);
    nodes.follow("four").close().unwrap();
    for node in ["one", "two", "three", "four"] {
        assert_eq!(files_with(&nodes.path(node), b"wolframite"), Vec::<PathBuf>::new(), "{node}");
    }
    nodes.follow("one").close().unwrap();
    nodes.follow("two").close().unwrap();
    nodes.assert_same(&["one", "two", "three", "four"]);
}

#[test]
fn every_copy_has_reads_of_its_own_and_nothing_is_wrong_with_them() {
    let nodes = Nodes::with(MemoryJournal::default());
    let mut grains = Vec::new();
    let read = |store: &Store, grains: &[ContentAddress]| {
        let session = store.session(SessionOptions::default());
        for address in grains {
            session.get(address).unwrap();
            session.ask("RECALL beliefs").unwrap();
        }
        store.flush().unwrap();
    };
    for (number, node) in (0..).zip(["one", "two", "one", "two"]) {
        let reading = OpenOptions::new().audit_reads(true);
        let leader = nodes.try_lead(node, reading).unwrap();
        grains.push(put(&leader, "ann", number).unwrap());
        read(&leader, &grains);
        let report = leader.verify(true).unwrap();
        let reads = report.checked.unwrap().reads;
        assert_eq!((report.problems.len(), reads > 0), (0, true), "{:?}", report.problems);
        nodes.hand_over(&leader);
    }
    nodes.follow("one").close().unwrap();
    nodes.assert_same(&["one", "two"]);
}

/// The files of a directory that have these bytes.
pub(super) fn files_with(path: &Path, bytes: &[u8]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, bytes));
        } else if std::fs::read(&path).unwrap().windows(bytes.len()).any(|window| window == bytes) {
            found.push(path);
        }
    }
    found
}

#[test]
fn an_import_is_one_record_and_a_follower_has_it() {
    let nodes = Nodes::with(MemoryJournal::default());
    let leader = nodes.lead("one");
    for number in 0..300 {
        put(&leader, "ann", number).unwrap();
    }
    let file = nodes.directory.path().join("ann.mg");
    let operator = leader.session(SessionOptions::default());
    operator.export(&file, &Query::default(), &ExportOptions::default()).unwrap();
    let other = Nodes::with(MemoryJournal::default());
    let (leader, follower) = (other.lead("one"), other.follow("two"));
    let before = at(&leader).commit;
    leader.session(SessionOptions::default()).import([file], &ImportOptions::default()).unwrap();
    assert_eq!(at(&leader).commit, before + 1);
    follower.wait_for(at(&leader), SOON).unwrap();
    let reader = follower.session(SessionOptions::default());
    let all = reader.query(&Query::default(), &PageOptions::first(500)).unwrap();
    assert_eq!(all.results.len(), 300);
    leader.close().unwrap();
    follower.close().unwrap();
    other.assert_same(&["one", "two"]);
}

#[test]
fn a_leader_that_was_deposed_writes_nothing_more_and_goes_on_as_a_follower() {
    let nodes = Nodes::with(MemoryJournal::default());
    let first = nodes.lead("one");
    let kept = put(&first, "ann", 1).unwrap();
    let second = nodes.follow("two");
    second.close().unwrap();
    let status = nodes.journal.status(SHARD).unwrap();
    nodes.journal.release(&Lead::new((SHARD, status.epoch), "one", LONG, status.head)).unwrap();
    let second = nodes.lead("two");
    let other = put(&second, "ann", 2).unwrap();
    // It does not know yet, and still reads.
    assert!(first.session(SessionOptions::default()).get(&kept).is_ok());
    assert_eq!(code(put(&first, "ann", 3)), "ERR_FENCED");
    assert_eq!(code(put(&first, "ann", 4)), "ERR_FENCED", "and for good");
    assert!(first.close().is_err());
    let first = nodes.follow("one");
    let session = first.session(SessionOptions::default());
    assert!(session.get(&kept).is_ok() && session.get(&other).is_ok());
    first.close().unwrap();
    nodes.hand_over(&second);
    // And leads again.
    let first = nodes.lead("one");
    put(&first, "ann", 5).unwrap();
    first.close().unwrap();
    nodes.follow("two").close().unwrap();
    nodes.assert_same(&["one", "two"]);
}

#[test]
fn a_copy_that_is_ahead_of_its_journal_or_of_another_refuses() {
    let directory = tempfile::tempdir().unwrap();
    let nodes = Nodes::with(FileJournal::new(directory.path().join("journal")));
    let leader = nodes.lead("one");
    put(&leader, "ann", 1).unwrap();
    let follower = nodes.follow("two");
    let file = directory.path().join("journal/shard-1.journal");
    let early = std::fs::read(&file).unwrap();
    put(&leader, "ann", 2).unwrap();
    follower.follow().unwrap();
    nodes.hand_over(&leader);
    let late = std::fs::read(&file).unwrap();
    // The journal was restored from a backup.
    std::fs::write(&file, &early).unwrap();
    let restored = Nodes {
        directory: nodes.directory,
        journal: Arc::new(FileJournal::new(directory.path().join("journal"))),
        key: None,
    };
    assert_eq!(code(restored.try_follow("one")), "ERR_DIVERGED");
    assert_eq!(code(restored.try_lead("one", OpenOptions::new())), "ERR_DIVERGED");
    // Another goes on in its place.
    let other = restored.lead("three");
    put(&other, "bob", 9).unwrap();
    restored.hand_over(&other);
    assert_eq!(code(restored.try_follow("one")), "ERR_DIVERGED", "the same commit, and another");
    follower.close().unwrap();
    assert_eq!(code(restored.try_follow("two")), "ERR_DIVERGED");
    // The journal of another shard, of another store, and a store that never had one.
    std::fs::write(&file, &late).unwrap();
    let journal: Arc<dyn Journal> = Arc::new(FileJournal::new(directory.path().join("journal")));
    let follow = |path: &Path, journal: &Arc<dyn Journal>, shard| {
        let options = OpenOptions::new().following(Arc::clone(journal), shard);
        Store::open(path, &options).err().map_or("none", |error| error.code())
    };
    let one = restored.directory.path().join("one");
    assert_eq!(follow(&one, &journal, SHARD), "none");
    assert_eq!(follow(&one, &journal, ShardId(2)), "ERR_DIVERGED");
    let strange = Nodes::with(MemoryJournal::default());
    let leader = strange.lead("one");
    for number in 0..9 {
        put(&leader, "ann", number).unwrap();
    }
    assert_eq!(follow(&one, &strange.journal, SHARD), "ERR_DIVERGED");
    let plain = restored.directory.path().join("plain");
    Store::open(&plain, &OpenOptions::new().create(true)).unwrap().close().unwrap();
    assert_eq!(follow(&plain, &journal, SHARD), "ERR_DIVERGED");
    strange.hand_over(&leader);
    assert_eq!(code(strange.try_lead("one", OpenOptions::new().read_only(true))), "ERR_READ_ONLY");
}

/// A journal whose record was altered, and which hands out few at a time.
#[derive(Debug)]
pub(super) struct Altered {
    journal: MemoryJournal,
    /// The number of the record that is another, once it is set.
    which: AtomicU64,
    at_once: usize,
    /// The number of the record that it ends with, once it is set.
    pub(super) last: AtomicU64,
    /// Slots of the keyring that are others.
    pub(super) slots: Mutex<Vec<KeyringSlot>>,
    /// The last record until slots of users are asked for, as if the others were appended right before that; 0 for those
    /// that are there.
    pub(super) early: AtomicU64,
    /// Numbers of slots that are not there.
    pub(super) lacks: Mutex<Vec<u32>>,
}

impl Altered {
    pub(super) fn new(at_once: usize) -> Arc<Self> {
        let (which, last, early) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let (journal, slots, lacks) =
            (MemoryJournal::default(), Mutex::default(), Mutex::default());
        Arc::new(Self { journal, which, at_once, last, early, slots, lacks })
    }

    fn head(&self, shard: ShardId, head: Head) -> Result<Head> {
        match self.last.load(Ordering::SeqCst) {
            0 => Ok(head),
            last => Ok(self.journal.read(shard, last - 1, 1)?[0].head()),
        }
    }
}

impl Journal for Arc<Altered> {
    fn lead(&self, shard: ShardId, node: &str, ttl: Duration) -> Result<Lead> {
        self.journal.lead(shard, node, ttl)
    }

    fn renew(&self, lead: &Lead) -> Result<Head> {
        self.head(lead.shard, self.journal.renew(lead)?)
    }

    fn release(&self, lead: &Lead) -> Result<()> {
        self.journal.release(lead)
    }

    fn append(&self, lead: &Lead, after: &Head, record: &Record) -> Result<Head> {
        self.journal.append(lead, after, record)
    }

    fn read(&self, shard: ShardId, after: u64, bytes: usize) -> Result<Vec<Record>> {
        let mut records = self.journal.read(shard, after, bytes)?;
        records.truncate(self.at_once);
        for record in &mut records {
            if record.commit() == self.which.load(Ordering::SeqCst) {
                let mut bytes = record.as_bytes().to_vec();
                bytes.truncate(57);
                *record = Record::from_bytes(bytes)?;
            }
        }
        Ok(records)
    }

    fn keyring(&self, shard: ShardId, numbers: Range<u32>) -> Result<(Head, Vec<KeyringSlot>)> {
        if numbers.start > 0 {
            self.early.store(0, Ordering::SeqCst);
        }
        let (head, mut slots) = self.journal.keyring(shard, numbers.clone())?;
        slots.retain(|slot| !self.lacks.lock().unwrap().contains(&slot.number));
        for other in &*self.slots.lock().unwrap() {
            slots.retain(|slot| slot.number != other.number);
            slots.extend(Some(other.clone()).filter(|slot| numbers.contains(&slot.number)));
        }
        slots.sort_by_key(|slot| slot.number);
        Ok((self.head(shard, head)?, slots))
    }

    fn status(&self, shard: ShardId) -> Result<ShardStatus> {
        let ShardStatus { mut head, epoch, leader, lease, .. } = self.journal.status(shard)?;
        let early = self.early.load(Ordering::SeqCst);
        if early > 0 {
            head = self.journal.read(shard, early - 1, 1)?[0].head();
        }
        Ok(ShardStatus::new(self.head(shard, head)?, epoch, leader, lease))
    }
}

#[test]
fn a_leader_that_writes_nothing_notices_that_its_journal_lost_commits() {
    let altered = Altered::new(100);
    let nodes = Nodes::with(Arc::clone(&altered));
    let leader = nodes.lead("one");
    put(&leader, "ann", 1).unwrap();
    let early = at(&leader).commit;
    put(&leader, "ann", 2).unwrap();
    leader.renew_lead().unwrap();
    leader.wait_for_latest(SOON).unwrap();
    // The same lead, and an end of before.
    altered.last.store(early, Ordering::SeqCst);
    assert_eq!(code(leader.renew_lead()), "ERR_DIVERGED");
    assert_eq!(code(leader.wait_for_latest(SOON)), "ERR_DIVERGED");
}

#[test]
fn a_record_that_was_altered_is_not_applied_wherever_a_batch_ends() {
    for at_once in [1, 2, 3, 100] {
        let altered = Altered::new(at_once);
        let nodes = Nodes::with(Arc::clone(&altered));
        let leader = nodes.lead("one");
        let follower = nodes.follow("two");
        let before = at(&follower).commit;
        for number in 0..9 {
            put(&leader, "ann", number).unwrap();
        }
        for which in (before + 1..=at(&leader).commit).rev() {
            altered.which.store(which, Ordering::SeqCst);
            let new = nodes.try_follow(&format!("new {which}"));
            assert_eq!(code(new), "ERR_DIVERGED", "{at_once}: {which}");
        }
        // The follower reads up to it, and no further.
        let which = before + 5;
        altered.which.store(which, Ordering::SeqCst);
        assert_eq!(code(follower.follow()), "ERR_DIVERGED");
        assert!(at(&follower).commit < which, "{at_once}: {}", at(&follower));
        // Restored, all is well.
        altered.which.store(0, Ordering::SeqCst);
        follower.follow().unwrap();
        nodes.hand_over(&leader);
        follower.close().unwrap();
        nodes.follow("three").close().unwrap();
        nodes.assert_same(&["one", "two", "three"]);
    }
}

/// A journal whose answers are lost as the test says.
#[derive(Debug, Default)]
pub(super) struct Lossy {
    journal: MemoryJournal,
    /// Number of the next appends that fail before, and then after they were made.
    pub(super) unsent: AtomicU32,
    pub(super) lost: AtomicU32,
    /// True if it is not reached at all.
    down: Mutex<bool>,
    appends: AtomicU64,
}

fn count_down(left: &AtomicU32) -> bool {
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

impl Lossy {
    fn reach(&self) -> Result<()> {
        match *self.down.lock().unwrap() {
            true => Err(unreachable("the journal is down")),
            false => Ok(()),
        }
    }
}

impl Journal for Arc<Lossy> {
    fn lead(&self, shard: ShardId, node: &str, ttl: Duration) -> Result<Lead> {
        self.reach()?;
        self.journal.lead(shard, node, ttl)
    }

    fn renew(&self, lead: &Lead) -> Result<Head> {
        self.reach()?;
        self.journal.renew(lead)
    }

    fn release(&self, lead: &Lead) -> Result<()> {
        self.journal.release(lead)
    }

    fn append(&self, lead: &Lead, after: &Head, record: &Record) -> Result<Head> {
        self.reach()?;
        self.appends.fetch_add(1, Ordering::SeqCst);
        if count_down(&self.unsent) {
            return Err(unreachable("the connection broke before"));
        }
        let appended = self.journal.append(lead, after, record);
        match count_down(&self.lost) {
            true => Err(unreachable("the connection broke after")),
            false => appended,
        }
    }

    fn read(&self, shard: ShardId, after: u64, bytes: usize) -> Result<Vec<Record>> {
        self.reach()?;
        self.journal.read(shard, after, bytes)
    }

    fn keyring(&self, shard: ShardId, numbers: Range<u32>) -> Result<(Head, Vec<KeyringSlot>)> {
        self.reach()?;
        self.journal.keyring(shard, numbers)
    }

    fn status(&self, shard: ShardId) -> Result<ShardStatus> {
        self.reach()?;
        self.journal.status(shard)
    }
}

#[test]
fn an_append_whose_answer_is_lost_is_made_once_and_told() {
    let lossy = Arc::new(Lossy::default());
    let nodes = Nodes::with(Arc::clone(&lossy));
    let leader = nodes.lead("one");
    let before = at(&leader).commit;
    for (number, (unsent, lost)) in (0..).zip([(1, 0), (0, 1), (2, 2), (0, 3)]) {
        lossy.unsent.store(unsent, Ordering::SeqCst);
        lossy.lost.store(lost, Ordering::SeqCst);
        put(&leader, "ann", number).unwrap();
    }
    assert_eq!(at(&leader).commit, before + 4, "each is one commit");
    nodes.hand_over(&leader);
    nodes.follow("two").close().unwrap();
    nodes.assert_same(&["one", "two"]);
}

#[test]
fn what_is_in_doubt_is_not_told_as_written_and_is_seen_when_the_journal_is_back() {
    let lossy = Arc::new(Lossy::default());
    let nodes = Nodes::with(Arc::clone(&lossy));
    let lead = nodes.journal.lead(SHARD, "one", LONG).unwrap();
    let patience = Duration::from_millis(100);
    let options = OpenOptions::new().create(true);
    let leading = options.leading(Arc::clone(&nodes.journal), lead, patience);
    let leader = Store::open(nodes.path("one"), &leading).unwrap();
    let follower = nodes.follow("two");
    put(&leader, "ann", 1).unwrap();
    // Its answer is lost, and then the journal is not reached.
    lossy.lost.store(u32::MAX, Ordering::SeqCst);
    let (wait, down) = (Duration::from_millis(20), Arc::clone(&lossy));
    let breaks = std::thread::spawn(move || {
        std::thread::sleep(wait);
        *down.down.lock().unwrap() = true;
    });
    // The journal says that it is there until it is not reached.
    let told = put(&leader, "ann", 2);
    breaks.join().unwrap();
    let written = told.is_ok();
    let told = if written { put(&leader, "ann", 3) } else { told };
    assert_eq!(code(told), "ERR_IN_DOUBT");
    assert_eq!(
        code(put(&leader, "ann", 4)),
        "ERR_IN_DOUBT",
        "nothing is written before it is known"
    );
    assert_eq!(follower.follow().unwrap_err().kind(), ErrorKind::Io);
    assert!(
        follower
            .session(SessionOptions::default())
            .query(&Query::default(), &PageOptions::first(9))
            .is_ok()
    );
    assert!(leader.close().is_err());
    *lossy.down.lock().unwrap() = false;
    lossy.lost.store(0, Ordering::SeqCst);
    let again = nodes.lead("one");
    put(&again, "ann", 5).unwrap();
    follower.wait_for(at(&again), SOON).unwrap();
    again.close().unwrap();
    follower.close().unwrap();
    nodes.assert_same(&["one", "two"]);
}

#[test]
fn a_position_is_waited_for_and_not_for_ever() {
    let nodes = Nodes::with(MemoryJournal::default());
    let leader = nodes.lead("one");
    let follower = nodes.follow("two");
    put(&leader, "ann", 1).unwrap();
    let position = at(&leader);
    assert_eq!(position.to_string().parse::<CommitPosition>().unwrap(), position);
    assert!(at(&follower).commit < position.commit);
    follower.wait_for(position, SOON).unwrap();
    assert_eq!(at(&follower), position);
    let later = CommitPosition::new(SHARD, position.commit + 1);
    assert_eq!(code(follower.wait_for(later, Duration::from_millis(20))), "ERR_TIMEOUT");
    assert_eq!(code(leader.wait_for(later, Duration::from_millis(20))), "ERR_TIMEOUT");
    let other = CommitPosition::new(ShardId(2), 1);
    assert_eq!(code(follower.wait_for(other, SOON)), "ERR_CONFLICT");
    let plain = Store::open(nodes.path("plain"), &OpenOptions::new().create(true)).unwrap();
    assert_eq!(
        (plain.position().unwrap(), code(plain.wait_for(position, SOON))),
        (None, "ERR_CONFLICT")
    );
    for wrong in ["", "1", "1:", ":1", "a:1", "1:-1", "1:1:1"] {
        assert_eq!(code(wrong.parse::<CommitPosition>()), "ERR_SCHEMA", "{wrong}");
    }
}
