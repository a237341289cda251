//! Encrypted copies of a store that has a journal: all have the keys of its users, and none has those that were
//! destroyed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use grainstore_cal::Query;
use grainstore_format::{BeliefBuilder, EpochMs};

use super::changes::change_the_rest;
use super::replication::{
    Altered, LONG, Lossy, Nodes, SHARD, SOON, at, belief, code, files_with, put,
};
use crate::disk::change_record::ChangeRecord;
use crate::disk::layout;
use crate::disk::truth_tables::{TableKey, TruthTable};
use crate::journal::{
    FileJournal, Journal, KEYRING_SLOT_BYTES, KeyringSlot, Lead, MemoryJournal, Record,
};
use crate::{
    CalSwitch, ContentAddress, EraseOptions, ExportOptions, ImportOptions, MasterKey, OpenOptions,
    PageOptions, Result, Session, SessionOptions, Store,
};

fn user(number: usize) -> String {
    format!("user{number}")
}

fn session_of(store: &Store, user: &str) -> Session {
    store.session(SessionOptions { user_id: Some(user.to_owned()), ..SessionOptions::default() })
}

/// Puts a grain of a user that is created now: what is older than the erasure of a user does not come back.
fn say(store: &Store, user: &str, what: i64) -> ContentAddress {
    let session = store.session(SessionOptions::default());
    let grain = BeliefBuilder::new(session.now(), user, "counts", what.to_string(), 1.0);
    session.put(grain.user_id(user).build().unwrap()).unwrap().address()
}

fn found(store: &Store, user: &str, query: &Query) -> Result<Vec<ContentAddress>> {
    let page = session_of(store, user).query(query, &PageOptions::first(500))?;
    Ok(page.results.into_iter().map(|found| found.content_address).collect())
}

/// The slots in the keyring of a closed copy, which is that of the journal.
fn keyring_of(nodes: &Nodes, node: &str) -> Vec<[u8; KEYRING_SLOT_BYTES]> {
    let bytes = std::fs::read(nodes.path(node).join("keyring")).unwrap();
    let (slots, rest) = bytes.as_chunks();
    assert_eq!(rest.len(), 0);
    let (_, journal) = nodes.journal.keyring(SHARD, 0..u32::MAX).unwrap();
    let journal: Vec<_> = journal.into_iter().map(|slot| slot.bytes).collect();
    assert!(slots == journal, "{node}: {} and {} in the journal", slots.len(), journal.len());
    journal
}

const ERASED: [u8; KEYRING_SLOT_BYTES] = [0; KEYRING_SLOT_BYTES];

fn same_everywhere(journal: impl Journal + 'static) {
    let nodes = Nodes::with(journal).encrypted();
    let leader = nodes.lead("one");
    let follower = nodes.follow("two");
    nodes.follow("away").close().unwrap();
    let mut put_so_far = Vec::new();
    for number in 0..40 {
        let name = user(number % 25);
        let address = put(&leader, &name, i64::try_from(number).unwrap()).unwrap();
        put_so_far.push((name, address));
        if number % 3 == 0 {
            follower.wait_for(at(&leader), SOON).unwrap();
        }
    }
    follower.wait_for(at(&leader), SOON).unwrap();
    nodes.hand_over(&leader);
    // It leads, and has all keys.
    let leader = nodes.lead("away");
    put(&leader, "another", 1).unwrap();
    follower.wait_for(at(&leader), SOON).unwrap();
    for (user, address) in &put_so_far {
        for store in [&leader, &follower] {
            assert!(session_of(store, user).get(address).is_ok());
        }
        for query in [Query::default(), Query::default().searching("who likes tea")] {
            let (ours, theirs) = (found(&leader, user, &query), found(&follower, user, &query));
            let ours = ours.unwrap();
            assert!(ours.contains(address));
            assert_eq!(ours, theirs.unwrap());
        }
    }
    nodes.hand_over(&leader);
    follower.follow().unwrap();
    follower.close().unwrap();
    nodes.follow("one").close().unwrap();
    nodes.follow("new").close().unwrap();
    let copies = ["one", "two", "away", "new"];
    nodes.assert_same(&copies);
    for node in copies {
        assert_eq!(keyring_of(&nodes, node).len(), 27, "the store's, and each user's");
        assert_eq!(files_with(&nodes.path(node), b"user7"), Vec::<std::path::PathBuf>::new());
    }
}

#[test]
fn every_kind_of_write_is_taken_for_the_leaders() {
    let nodes = Nodes::with(MemoryJournal::default()).encrypted();
    let leader = nodes.lead("one");
    let (follower, late) = (nodes.follow("two"), nodes.follow("late"));
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Each commit by itself, as far as it keeps up.
        scope.spawn(|| {
            while !ends.load(Ordering::SeqCst) {
                follower.follow().unwrap();
            }
        });
        change_the_rest(&leader, nodes.directory.path());
        let operator = leader.session(SessionOptions::default());
        let (mut old, now) = (say(&leader, "ann", 1), operator.now().get());
        for number in 0..20 {
            let new = BeliefBuilder::new(EpochMs::new(now + number), "ann", "counts", "more", 1.0);
            let new = new.user_id("ann").build().unwrap();
            old = operator.supersede(&old, new, Some("later")).unwrap();
            operator.get(&old).unwrap();
        }
        leader.compact().unwrap();
        ends.store(true, Ordering::SeqCst);
    });
    nodes.hand_over(&leader);
    follower.follow().unwrap();
    late.follow().unwrap();
    follower.close().unwrap();
    late.close().unwrap();
    // The next leader writes settings when it opens, and goes on.
    let next = nodes.try_lead("late", nodes.options().compress(true)).unwrap();
    say(&next, "ann", 2);
    nodes.hand_over(&next);
    for node in ["one", "two", "new"] {
        nodes.follow(node).close().unwrap();
    }
    nodes.assert_same(&["one", "two", "late", "new"]);
    keyring_of(&nodes, "two");
}

#[test]
fn every_copy_has_the_keys_by_a_journal_in_memory() {
    same_everywhere(MemoryJournal::default());
}

#[test]
fn every_copy_has_the_keys_by_a_journal_in_files() {
    let directory = tempfile::tempdir().unwrap();
    same_everywhere(FileJournal::new(directory.path()));
}

#[test]
fn a_key_that_is_destroyed_is_destroyed_in_every_copy_and_in_the_journal() {
    let directory = tempfile::tempdir().unwrap();
    let nodes = Nodes::with(FileJournal::new(directory.path())).encrypted();
    let leader = nodes.lead("one");
    let follower = nodes.follow("two");
    let secret = say(&leader, "ann", 1);
    let kept = say(&leader, "bob", 2);
    follower.wait_for(at(&leader), SOON).unwrap();
    follower.flush().unwrap();
    nodes.follow("away").close().unwrap();
    let before = keyring_of(&nodes, "away");
    let operator = leader.session(SessionOptions::default());
    operator.erase_user("ann", "asked", &EraseOptions::default()).unwrap();
    follower.wait_for(at(&leader), SOON).unwrap();
    assert_eq!(keyring_of(&nodes, "two")[1], ERASED, "at once");
    assert_eq!(code(session_of(&follower, "ann").get(&secret)), "ERR_ERASED");
    assert!(session_of(&follower, "bob").get(&kept).is_ok());
    // She comes back, with another key.
    let back = say(&leader, "ann", 3);
    follower.wait_for(at(&leader), SOON).unwrap();
    assert_eq!(found(&follower, "ann", &Query::default()).unwrap(), [back]);
    leader.flush().unwrap();
    leader.compact().unwrap();
    follower.wait_for(at(&leader), SOON).unwrap();
    nodes.hand_over(&leader);
    follower.follow().unwrap();
    follower.close().unwrap();
    let leads = nodes.lead("away");
    assert_eq!(found(&leads, "ann", &Query::default()).unwrap(), [back]);
    assert_eq!(code(session_of(&leads, "ann").get(&secret)), "ERR_ERASED");
    say(&leads, "ann", 4);
    nodes.hand_over(&leads);
    for node in ["one", "two", "new"] {
        nodes.follow(node).close().unwrap();
    }
    let copies = ["one", "two", "away", "new"];
    nodes.assert_same(&copies);
    for node in copies {
        let slots = keyring_of(&nodes, node);
        assert!(slots[1] == ERASED && slots[2] == before[2] && slots[3] != ERASED, "{node}");
        assert_eq!(slots.len(), 4);
        assert!(files_with(&nodes.path(node), &before[1][8..]).is_empty(), "{node}");
    }
    assert!(files_with(directory.path(), &before[1][8..]).is_empty());
}

#[test]
fn a_follower_that_is_late_passes_what_was_written_and_erased_meanwhile() {
    let nodes = Nodes::with(MemoryJournal::default()).encrypted();
    let leader = nodes.lead("one");
    let follower = nodes.follow("two");
    let operator = leader.session(SessionOptions::default());
    let mut kept = Vec::new();
    for number in 0..12 {
        say(&leader, "gone", number);
        say(&leader, &user(1), number);
        if number % 3 == 2 {
            operator.erase_user("gone", "asked", &EraseOptions::default()).unwrap();
        }
        if number % 4 == 3 {
            leader.flush().unwrap();
        }
        kept.push(say(&leader, "ann", number));
    }
    follower.wait_for(at(&leader), SOON).unwrap();
    assert!(found(&follower, "gone", &Query::default()).unwrap().is_empty());
    let nobody = follower.session(SessionOptions::default());
    assert_eq!(code(nobody.query(&Query::default(), &PageOptions::first(9))), "ERR_KEY");
    let mut shown = found(&follower, "ann", &Query::default()).unwrap();
    shown.sort();
    kept.sort();
    assert_eq!(shown, kept);
    for store in [&leader, &follower] {
        let problems = store.verify(true).unwrap().problems;
        assert!(problems.is_empty(), "{problems:?}");
    }
    leader.close().unwrap();
    follower.follow().unwrap();
    follower.close().unwrap();
    nodes.assert_same(&["one", "two"]);
    keyring_of(&nodes, "one");
    keyring_of(&nodes, "two");
}

#[test]
fn a_copy_opens_while_somebody_is_erased() {
    for opens in ["new", "late"] {
        let altered = Altered::new(1);
        let nodes = Nodes::with(Arc::clone(&altered)).encrypted();
        let leader = nodes.lead("one");
        nodes.follow("late").close().unwrap();
        let ann = say(&leader, "ann", 1);
        let bob = say(&leader, "bob", 2);
        let before = at(&leader).commit;
        let operator = leader.session(SessionOptions::default());
        operator.erase_user("ann", "asked", &EraseOptions::default()).unwrap();
        // It is told the end of before, and finds the slot of after.
        altered.early.store(before, Ordering::SeqCst);
        let copy = nodes.follow(opens);
        assert_eq!(altered.early.load(Ordering::SeqCst), 0);
        assert_eq!(code(session_of(&copy, "ann").get(&ann)), "ERR_ERASED", "{opens}");
        assert!(session_of(&copy, "bob").get(&bob).is_ok(), "{opens}");
        say(&leader, "carol", 3);
        copy.wait_for(at(&leader), SOON).unwrap();
        nodes.hand_over(&leader);
        copy.follow().unwrap();
        copy.close().unwrap();
        nodes.assert_same(&["one", opens]);
        keyring_of(&nodes, opens);
    }
}

#[test]
fn keys_that_the_journal_never_had_are_in_no_copy() {
    let lossy = Arc::new(Lossy::default());
    let nodes = Nodes::with(Arc::clone(&lossy)).encrypted();
    let short = std::time::Duration::from_millis(50);
    let lead = nodes.journal.lead(SHARD, "one", LONG).unwrap();
    let options = OpenOptions::new().create(true).key(MasterKey::new([7; 32]));
    let leading = options.leading(Arc::clone(&nodes.journal), lead, short);
    let first = Store::open(nodes.path("one"), &leading).unwrap();
    let ann = put(&first, "ann", 1).unwrap();
    lossy.unsent.store(u32::MAX, Ordering::SeqCst);
    assert_eq!(code(put(&first, "never", 1)), "ERR_IN_DOUBT");
    assert!(first.close().is_err());
    lossy.unsent.store(0, Ordering::SeqCst);
    assert_eq!(std::fs::read(nodes.path("one").join("keyring")).unwrap().len(), 2 * 128);
    assert_eq!(nodes.journal.keyring(SHARD, 0..u32::MAX).unwrap().1.len(), 2);
    // Another leads, and gives the number to another.
    let status = nodes.journal.status(SHARD).unwrap();
    nodes.journal.release(&Lead::new((SHARD, status.epoch), "one", LONG, status.head)).unwrap();
    let second = nodes.lead("two");
    let bob = put(&second, "bob", 2).unwrap();
    let again = nodes.follow("one");
    assert!(session_of(&again, "bob").get(&bob).is_ok());
    assert!(session_of(&again, "ann").get(&ann).is_ok());
    nodes.hand_over(&second);
    again.close().unwrap();
    nodes.assert_same(&["one", "two"]);
    assert_eq!(keyring_of(&nodes, "one").len(), 3);
    keyring_of(&nodes, "two");
}

#[test]
fn an_answer_that_is_lost_leaves_each_key_once() {
    let lossy = Arc::new(Lossy::default());
    let nodes = Nodes::with(Arc::clone(&lossy)).encrypted();
    let leader = nodes.lead("one");
    for number in 0..6 {
        lossy.lost.store(u32::try_from(number % 3).unwrap(), Ordering::SeqCst);
        put(&leader, &user(number), 1).unwrap();
    }
    nodes.hand_over(&leader);
    nodes.follow("two").close().unwrap();
    nodes.assert_same(&["one", "two"]);
    assert_eq!(keyring_of(&nodes, "two").len(), 7);
}

#[test]
fn an_import_brings_the_keys_of_its_users() {
    let from = Nodes::with(MemoryJournal::default());
    let plain = from.lead("one");
    for number in 0..30 {
        put(&plain, &user(number), 1).unwrap();
    }
    let file = from.directory.path().join("all.mg");
    let operator = plain.session(SessionOptions::default());
    operator.export(&file, &Query::default(), &ExportOptions::default()).unwrap();
    let nodes = Nodes::with(MemoryJournal::default()).encrypted();
    let (leader, follower) = (nodes.lead("one"), nodes.follow("two"));
    leader.session(SessionOptions::default()).import([file], &ImportOptions::default()).unwrap();
    follower.wait_for(at(&leader), SOON).unwrap();
    for number in 0..30 {
        assert_eq!(found(&follower, &user(number), &Query::default()).unwrap().len(), 1);
    }
    leader.close().unwrap();
    follower.close().unwrap();
    nodes.assert_same(&["one", "two"]);
    assert_eq!(keyring_of(&nodes, "two").len(), 31);
}

#[test]
fn a_copy_opens_with_the_key_of_its_shard_alone() {
    let mut nodes = Nodes::with(MemoryJournal::default()).encrypted();
    let leader = nodes.lead("one");
    put(&leader, "ann", 1).unwrap();
    assert_eq!(code(leader.rotate_key(MasterKey::new([8; 32]))), "ERR_KEY");
    assert_eq!(code(leader.rotate_user_key("ann")), "ERR_KEY");
    put(&leader, "ann", 2).unwrap();
    let of_new = |nodes: &Nodes, name: &str| code(nodes.try_follow(name));
    nodes.key = Some([8; 32]);
    assert_eq!(of_new(&nodes, "two"), "ERR_KEY");
    nodes.key = None;
    assert_eq!(of_new(&nodes, "three"), "ERR_KEY");
    // The right one puts both right.
    nodes.key = Some([7; 32]);
    nodes.follow("two").close().unwrap();
    nodes.follow("three").close().unwrap();
    // A start without it reads nothing.
    put(&leader, "bob", 3).unwrap();
    nodes.key = None;
    assert_eq!(of_new(&nodes, "two"), "ERR_KEY");
    nodes.key = Some([7; 32]);
    nodes.follow("two").close().unwrap();
    nodes.hand_over(&leader);
    for key in [None, Some([8; 32])] {
        nodes.key = key;
        assert_eq!(of_new(&nodes, "one"), "ERR_KEY");
        assert_eq!(code(nodes.try_lead("one", OpenOptions::new())), "ERR_KEY");
    }
    nodes.key = Some([7; 32]);
    nodes.hand_over(&nodes.lead("one"));
    for node in ["two", "three"] {
        nodes.follow(node).close().unwrap();
    }
    nodes.assert_same(&["one", "two", "three"]);
    let plain = Nodes::with(MemoryJournal::default());
    let leader = plain.lead("one");
    put(&leader, "ann", 1).unwrap();
    let keyed = OpenOptions::new().create(true).key(MasterKey::new([7; 32]));
    let keyed = keyed.following(Arc::clone(&plain.journal), SHARD);
    assert_eq!(code(Store::open(plain.path("two"), &keyed)), "ERR_KEY");
}

#[test]
fn a_keyring_file_that_is_gone_or_older_is_made_again_from_the_journal() {
    let nodes = Nodes::with(MemoryJournal::default()).encrypted();
    let leader = nodes.lead("one");
    put(&leader, "ann", 1).unwrap();
    nodes.follow("two").close().unwrap();
    let file = nodes.path("two").join("keyring");
    let early = std::fs::read(&file).unwrap();
    let bob = leader.session(SessionOptions::default()).put(belief("bob", 2)).unwrap().address();
    nodes.follow("two").close().unwrap();
    let (longer, mut damaged) = ([&early[..], &[9; 300]].concat(), early.clone());
    damaged[150] ^= 1;
    // What was made longer and not written before the power was cut.
    let unwritten = [&early[..], &ERASED].concat();
    let zeros = [&early[..128], &ERASED, &ERASED].concat();
    let lefts = [&early[..], &early[..200], &longer, &damaged, &unwritten, &zeros, b""];
    for left in lefts.map(Some).into_iter().chain([None]) {
        match left {
            Some(bytes) => std::fs::write(&file, bytes).unwrap(),
            None => std::fs::remove_file(&file).unwrap(),
        }
        let follower = nodes.follow("two");
        assert!(session_of(&follower, "bob").get(&bob).is_ok());
        follower.close().unwrap();
        let journal: Vec<u8> = nodes
            .journal
            .keyring(SHARD, 0..u32::MAX)
            .unwrap()
            .1
            .iter()
            .flat_map(|slot| slot.bytes)
            .collect();
        assert!(std::fs::read(&file).unwrap().starts_with(&journal));
    }
}

#[test]
fn a_record_of_who_has_no_key_is_not_applied() {
    let state = [0_u8; layout::STATE_RECORD_BYTES];
    let forged: [(TruthTable, TableKey<'_>, Option<&[u8]>); 12] = [
        (TruthTable::Log, TableKey::Number(1), Some(b"a row")),
        (TruthTable::Access, TableKey::Number(1), Some(&[0; layout::ACCESS_RECORD_BYTES])),
        (TruthTable::BlobChunks, TableKey::Bytes(b"a key"), Some(b"a chunk")),
        (TruthTable::Meta, TableKey::Name(layout::META_CAL), Some(&[2])),
        (TruthTable::Meta, TableKey::Name(layout::META_ROW_SUMS), None),
        (TruthTable::State, TableKey::Number(1), Some(&state)),
        (TruthTable::Log, TableKey::Number(3), None),
        (TruthTable::Log, TableKey::Number(4), Some(b"a row")),
        (TruthTable::Audit, TableKey::Number(1), Some(b"another")),
        (TruthTable::Audit, TableKey::Number(layout::AUDIT_HEAD), Some(&[0; 72])),
        (TruthTable::Destroyed, TableKey::Number(1), Some(&[0; 32])),
        (TruthTable::Erased, TableKey::Number(2), Some(b"")),
    ];
    for (number, (table, key, value)) in forged.into_iter().enumerate() {
        let nodes = Nodes::with(MemoryJournal::default()).encrypted();
        let leader = nodes.lead("one");
        let kept = say(&leader, "ann", 1);
        let doubted = say(&leader, "bob", 2);
        let follower = nodes.follow("two");
        say(&leader, "ann", 3);
        leader.session(SessionOptions::default()).contradict(&doubted, "a reason", None).unwrap();
        follower.wait_for(at(&leader), SOON).unwrap();
        nodes.hand_over(&leader);
        follower.follow().unwrap();
        let before = at(&follower);
        let lead = nodes.journal.lead(SHARD, "nobody", LONG).unwrap();
        let mut changes = ChangeRecord::default();
        changes.push(table, key, value).unwrap();
        let record =
            Record::after(&lead.head, (SHARD, lead.epoch), (&changes, Vec::new()), None).unwrap();
        nodes.journal.append(&lead, &lead.head, &record).unwrap();
        nodes.journal.release(&Lead::new((SHARD, lead.epoch), "nobody", LONG, lead.head)).unwrap();
        assert_eq!(code(follower.follow()), "ERR_INTEGRITY", "{number}");
        assert_eq!(at(&follower), before, "{number}");
        assert!(session_of(&follower, "ann").get(&kept).is_ok(), "{number}: it reads what it had");
        let _ = follower.close();
        assert_eq!(code(nodes.try_follow("new")), "ERR_INTEGRITY", "{number}");
        assert_eq!(code(nodes.try_lead("one", nodes.options())), "ERR_INTEGRITY", "{number}");
    }
}

#[test]
fn a_follower_takes_no_keys_of_commits_that_it_has_not_read() {
    let altered = Altered::new(100);
    let nodes = Nodes::with(Arc::clone(&altered)).encrypted();
    let leader = nodes.lead("one");
    let follower = nodes.follow("two");
    put(&leader, "ann", 1).unwrap();
    let early = at(&leader).commit;
    put(&leader, "bob", 1).unwrap();
    put(&leader, "carol", 1).unwrap();
    // The end that it is told of is one of before.
    altered.last.store(early, Ordering::SeqCst);
    follower.follow().unwrap();
    assert_eq!(at(&follower).commit, early);
    let length = || std::fs::metadata(nodes.path("two").join("keyring")).unwrap().len();
    assert_eq!(length(), 2 * 128);
    altered.last.store(0, Ordering::SeqCst);
    follower.follow().unwrap();
    assert_eq!(length(), 4 * 128);
    leader.close().unwrap();
    follower.follow().unwrap();
    follower.close().unwrap();
    nodes.assert_same(&["one", "two"]);
}

#[test]
fn a_copy_is_not_made_over_the_keyring_of_another_store() {
    let nodes = Nodes::with(MemoryJournal::default()).encrypted();
    let leader = nodes.lead("one");
    put(&leader, "ann", 1).unwrap();
    let keyed = OpenOptions::new().create(true).key(MasterKey::new([7; 32]));
    let other = Store::open(nodes.path("two"), &keyed).unwrap();
    put(&other, "bob", 1).unwrap();
    other.close().unwrap();
    let aside = nodes.directory.path().join("aside");
    std::fs::rename(nodes.path("two").join("grains.redb"), &aside).unwrap();
    let before = std::fs::read(nodes.path("two").join("keyring")).unwrap();
    assert_eq!(code(nodes.try_follow("two")), "ERR_KEY");
    assert_eq!(std::fs::read(nodes.path("two").join("keyring")).unwrap(), before);
    std::fs::rename(&aside, nodes.path("two").join("grains.redb")).unwrap();
    Store::open(nodes.path("two"), &keyed).unwrap().close().unwrap();
}

fn closed(opened: Result<Store>) -> Result<()> {
    opened?.close()
}

/// A copy that was opened to be read keeps what it had.
fn assert_reads(nodes: &Nodes, node: &str, (user, address): (&str, &ContentAddress)) {
    let options = OpenOptions::new().read_only(true).key(MasterKey::new([7; 32]));
    let store = Store::open(nodes.path(node), &options).unwrap();
    assert!(session_of(&store, user).get(address).is_ok(), "{node}");
    store.close().unwrap();
}

#[test]
fn slots_that_somebody_without_the_key_wrote_are_not_taken() {
    // A slot of another user, that of the store, bytes that are none, zeros, none, and two behind the last in use.
    for change in 0..7 {
        let altered = Altered::new(100);
        let nodes = Nodes::with(Arc::clone(&altered)).encrypted();
        let leader = nodes.lead("one");
        let ann = say(&leader, "ann", 1);
        let follower = nodes.follow("two");
        nodes.follow("late").close().unwrap();
        let keyring = |node| std::fs::read(nodes.path(node).join("keyring")).unwrap();
        let before = keyring("two");
        let bob = say(&leader, "bob", 2);
        let (_, slots) = nodes.journal.keyring(SHARD, 0..9).unwrap();
        let forged = match change {
            0 => Some(KeyringSlot::new(2, slots[1].bytes)),
            1 => Some(KeyringSlot::new(2, slots[0].bytes)),
            2 => Some(KeyringSlot::new(2, [7; KEYRING_SLOT_BYTES])),
            3 => Some(KeyringSlot::new(2, ERASED)),
            4 => None,
            5 => Some(KeyringSlot::new(3, ERASED)),
            _ => Some(KeyringSlot::new(9, slots[2].bytes)),
        };
        altered.lacks.lock().unwrap().extend(forged.is_none().then_some(2));
        altered.slots.lock().unwrap().extend(forged);
        let expected = if change < 5 { "ERR_INTEGRITY" } else { "none" };
        assert_eq!(code(follower.follow()), expected, "{change}");
        let _ = follower.close();
        assert_eq!(code(closed(nodes.try_follow("new"))), expected, "{change}");
        for node in ["two", "late"] {
            for _ in 0..2 {
                let opened = closed(nodes.try_follow(node));
                assert_eq!(code(opened), expected, "{change}");
                assert!(change >= 5 || keyring(node) == before, "{change}: {node}");
                assert_reads(&nodes, node, ("ann", &ann));
            }
        }
        // Without it all is well.
        altered.slots.lock().unwrap().clear();
        altered.lacks.lock().unwrap().clear();
        say(&leader, "carol", 3);
        for node in ["two", "late", "new"] {
            let copy = nodes.follow(node);
            assert!(session_of(&copy, "bob").get(&bob).is_ok(), "{change}: {node}");
            copy.close().unwrap();
        }
        nodes.hand_over(&leader);
        for node in ["two", "late", "new"] {
            nodes.follow(node).close().unwrap();
        }
        nodes.assert_same(&["one", "two", "late", "new"]);
        keyring_of(&nodes, "new");
    }
}

#[test]
fn a_slot_of_another_end_of_the_same_journal_is_not_taken() {
    let altered = Altered::new(100);
    let nodes = Nodes::with(Arc::clone(&altered)).encrypted();
    let leader = nodes.lead("one");
    let ann = say(&leader, "ann", 1);
    nodes.follow("two").close().unwrap();
    let before = at(&leader).commit;
    let bob = say(&leader, "bob", 2);
    nodes.hand_over(&leader);
    // The database was put back, and another node led from there: the number is carol's there.
    let other = Altered::new(100);
    let others = Nodes::with(Arc::clone(&other)).encrypted();
    let lead = others.journal.lead(SHARD, "one", LONG).unwrap();
    let (_, slots) = nodes.journal.keyring(SHARD, 0..2).unwrap();
    let mut head = lead.head;
    for record in nodes.journal.read(SHARD, 0, usize::MAX).unwrap() {
        if record.commit() <= before {
            let record = record.with_slots(slots.clone());
            head = others.journal.append(&lead, &head, &record).unwrap();
        }
    }
    others.journal.release(&lead).unwrap();
    let leader = others.lead("three");
    say(&leader, "carol", 3);
    let (_, slots) = others.journal.keyring(SHARD, 2..3).unwrap();
    leader.close().unwrap();
    altered.slots.lock().unwrap().extend(slots);
    for node in ["new", "two"] {
        assert_eq!(code(closed(nodes.try_follow(node))), "ERR_INTEGRITY", "{node}");
    }
    assert_reads(&nodes, "two", ("ann", &ann));
    let forged = std::mem::take(&mut *altered.slots.lock().unwrap());
    let copy = nodes.follow("two");
    assert!(session_of(&copy, "bob").get(&bob).is_ok());
    copy.close().unwrap();
    // Nor where the file of the keyring is gone, and the record of its slot was applied.
    altered.slots.lock().unwrap().extend(forged);
    std::fs::remove_file(nodes.path("two").join("keyring")).unwrap();
    assert_eq!(code(closed(nodes.try_follow("two"))), "ERR_INTEGRITY");
    altered.slots.lock().unwrap().clear();
    assert!(session_of(&nodes.follow("two"), "bob").get(&bob).is_ok());
}

#[test]
fn good_slots_of_a_copy_stay_until_the_journal_has_others() {
    let altered = Altered::new(100);
    let nodes = Nodes::with(Arc::clone(&altered)).encrypted();
    let leader = nodes.lead("one");
    let told = [say(&leader, "ann", 1), say(&leader, "bob", 2)];
    nodes.follow("two").close().unwrap();
    let file = nodes.path("two").join("keyring");
    let mut damaged = std::fs::read(&file).unwrap();
    damaged[150] ^= 1;
    std::fs::write(&file, &damaged).unwrap();
    altered.lacks.lock().unwrap().push(2);
    assert_eq!(code(closed(nodes.try_follow("two"))), "ERR_INTEGRITY");
    assert!(std::fs::read(&file).unwrap() == damaged);
    assert_reads(&nodes, "two", ("bob", &told[1]));
    altered.lacks.lock().unwrap().clear();
    let copy = nodes.follow("two");
    assert!(session_of(&copy, "ann").get(&told[0]).is_ok());
    assert!(session_of(&copy, "bob").get(&told[1]).is_ok());
}

#[test]
fn the_keyring_of_another_store_beside_a_copy_is_left_alone() {
    let nodes = Nodes::with(MemoryJournal::default()).encrypted();
    let leader = nodes.lead("one");
    let ann = say(&leader, "ann", 1);
    nodes.follow("two").close().unwrap();
    let keyed = OpenOptions::new().create(true).key(MasterKey::new([7; 32]));
    let other = Store::open(nodes.path("other"), &keyed).unwrap();
    for user in ["bob", "carol", "dora"] {
        put(&other, user, 1).unwrap();
    }
    other.close().unwrap();
    let (file, theirs) = (nodes.path("two").join("keyring"), nodes.path("other").join("keyring"));
    let (ours, theirs) = (std::fs::read(&file).unwrap(), std::fs::read(theirs).unwrap());
    std::fs::write(&file, &theirs).unwrap();
    assert_eq!(code(nodes.try_follow("two")), "ERR_INTEGRITY");
    assert!(std::fs::read(&file).unwrap() == theirs);
    std::fs::write(&file, ours).unwrap();
    assert!(session_of(&nodes.follow("two"), "ann").get(&ann).is_ok());
    // Nor is it that of a new shard.
    let nodes = Nodes::with(MemoryJournal::default()).encrypted();
    std::fs::create_dir_all(nodes.path("one")).unwrap();
    std::fs::write(nodes.path("one").join("keyring"), &theirs).unwrap();
    assert_eq!(code(nodes.try_lead("one", nodes.options())), "ERR_KEY");
    assert_eq!(nodes.journal.status(SHARD).unwrap().head.commit, 0);
}

#[test]
fn a_record_of_the_leader_is_not_taken_in_another_place() {
    let nodes = Nodes::with(MemoryJournal::default()).encrypted();
    let leader = nodes.lead("one");
    say(&leader, "ann", 1);
    leader.session(SessionOptions::default()).switch_cal(CalSwitch::Reads, "a while").unwrap();
    let follower = nodes.follow("two");
    nodes.hand_over(&leader);
    follower.follow().unwrap();
    let lead = nodes.journal.lead(SHARD, "nobody", LONG).unwrap();
    let honest = nodes.journal.read(SHARD, lead.head.commit - 1, 1).unwrap();
    let mut bytes = honest[0].as_bytes().to_vec();
    bytes[9..17].copy_from_slice(&(lead.head.commit + 1).to_be_bytes());
    bytes[17..25].copy_from_slice(&lead.epoch.to_be_bytes());
    bytes[25..57].copy_from_slice(&lead.head.chain);
    let record = Record::from_bytes(bytes).unwrap();
    nodes.journal.append(&lead, &lead.head, &record).unwrap();
    assert_eq!(code(follower.follow()), "ERR_INTEGRITY");
    assert_eq!(code(nodes.try_follow("new")), "ERR_INTEGRITY");
}

#[test]
fn forged_records_and_slots_destroy_no_key_of_a_copy() {
    let nodes = Nodes::with(MemoryJournal::default()).encrypted();
    let leader = nodes.lead("one");
    say(&leader, "ann", 1);
    nodes.follow("two").close().unwrap();
    let marks = leader.inner().view().unwrap();
    let mark = marks.vault().keyring().unwrap().destruction_mark(1);
    drop(marks);
    nodes.hand_over(&leader);
    let keyring = |node| std::fs::read(nodes.path(node).join("keyring")).unwrap();
    let before = (keyring("one"), keyring("two"));
    // A record that drops the count of slots, and one with a mark that somebody saw elsewhere.
    let slots = (TruthTable::Meta, TableKey::Name(layout::META_SLOTS), None);
    let destroyed = (TruthTable::Destroyed, TableKey::Number(1), Some(&mark[..]));
    let lead = nodes.journal.lead(SHARD, "nobody", LONG).unwrap();
    let mut head = lead.head;
    for (table, key, value) in [slots, destroyed] {
        let mut changes = ChangeRecord::default();
        changes.push(table, key, value).unwrap();
        let gone = vec![KeyringSlot::new(1, ERASED)];
        let record = Record::after(&head, (SHARD, lead.epoch), (&changes, gone), None).unwrap();
        head = nodes.journal.append(&lead, &head, &record).unwrap();
    }
    nodes.journal.release(&Lead::new((SHARD, lead.epoch), "nobody", LONG, head)).unwrap();
    for _ in 0..2 {
        assert_eq!(code(nodes.try_follow("two")), "ERR_INTEGRITY");
        assert_eq!(code(nodes.try_lead("one", nodes.options())), "ERR_INTEGRITY");
        assert!((keyring("one"), keyring("two")) == before);
    }
}
