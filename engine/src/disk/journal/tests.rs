//! What every journal does: it takes one record after another, of who leads, and keeps it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use super::*;
use crate::base::error::Result;
use crate::disk::change_record::ChangeRecord;
use crate::disk::truth_tables::{TableKey, TruthTable};

const SHARD: ShardId = ShardId(7);
const LONG: Duration = Duration::from_secs(600);

fn record(lead: &Lead, after: &Head, value: &[u8]) -> Record {
    let mut changes = ChangeRecord::default();
    changes.push(TruthTable::Meta, TableKey::Name("row"), Some(value)).unwrap();
    Record::after(after, (lead.shard, lead.epoch), &changes).unwrap()
}

fn code<T: fmt::Debug>(outcome: Result<T>) -> &'static str {
    outcome.unwrap_err().code()
}

fn each(check: impl Fn(&dyn Journal)) {
    check(&MemoryJournal::default());
    let directory = tempfile::tempdir().unwrap();
    check(&FileJournal::new(directory.path().join("journal")));
}

#[test]
fn a_record_is_taken_once_in_its_place_and_read_as_it_was() {
    each(|journal| {
        let lead = journal.lead(SHARD, "a", LONG).unwrap();
        let mut head = lead.head;
        assert_eq!(head, Head::EMPTY);
        let mut all = Vec::new();
        for number in 0..20_u8 {
            let one = record(&lead, &head, &vec![number; usize::from(number) * 100]);
            let next = journal.append(&lead, &head, &one).unwrap();
            assert_eq!(code(journal.append(&lead, &head, &one)), "ERR_FENCED", "a second time");
            assert_eq!(code(journal.append(&lead, &next, &one)), "ERR_FENCED", "in another place");
            (head, all) = (next, [all, vec![one]].concat());
        }
        assert_eq!(journal.status(SHARD).unwrap().head, head);
        assert_eq!(journal.status(ShardId(8)).unwrap().head, Head::EMPTY);
        assert_eq!(journal.read(SHARD, 0, usize::MAX).unwrap(), all);
        assert_eq!(journal.read(SHARD, 18, usize::MAX).unwrap(), all[18..]);
        assert_eq!(journal.read(SHARD, 3, 1).unwrap(), all[3..4], "one at least");
        assert_eq!(journal.read(SHARD, 20, usize::MAX).unwrap(), []);
        assert_eq!(journal.read(SHARD, u64::MAX, usize::MAX).unwrap(), []);
        let some = journal.read(SHARD, 0, 1000).unwrap();
        assert!(some.len() > 1 && some.len() < 10, "{}", some.len());
    });
}

#[test]
fn who_lost_the_lead_appends_nothing() {
    each(|journal| {
        let first = journal.lead(SHARD, "a", LONG).unwrap();
        assert_eq!(code(journal.lead(SHARD, "b", LONG)), "ERR_BUSY");
        assert!(!journal.status(SHARD).unwrap().is_free());
        let head = journal.append(&first, &Head::EMPTY, &record(&first, &Head::EMPTY, b"1"));
        let head = head.unwrap();
        // The same node again, as after a crash.
        let again = journal.lead(SHARD, "a", Duration::ZERO).unwrap();
        assert!((again.epoch, again.head) == (2, head) && journal.status(SHARD).unwrap().is_free());
        assert_eq!(code(journal.append(&first, &head, &record(&first, &head, b"2"))), "ERR_FENCED");
        assert_eq!(code(journal.renew(&first)), "ERR_FENCED");
        journal.renew(&again).unwrap();
        let other = journal.lead(SHARD, "b", LONG).unwrap();
        assert_eq!(other.epoch, 3);
        assert_eq!(code(journal.append(&again, &head, &record(&again, &head, b"2"))), "ERR_FENCED");
        // What was given back by its former leader stays with the new one.
        journal.release(&first).unwrap();
        assert_eq!(journal.status(SHARD).unwrap().leader.as_deref(), Some("b"));
        journal.append(&other, &head, &record(&other, &head, b"3")).unwrap();
        journal.release(&other).unwrap();
        let free = journal.status(SHARD).unwrap();
        assert!(free.is_free() && free.leader.is_none() && free.epoch == 3);
        assert_eq!(journal.lead(SHARD, "c", LONG).unwrap().epoch, 4);
    });
}

#[test]
fn of_many_that_append_after_one_head_one_does() {
    each(|journal| {
        let lead = journal.lead(SHARD, "a", LONG).unwrap();
        let mut head = lead.head;
        for round in 0..20_u8 {
            let taken = AtomicU32::new(0);
            thread::scope(|scope| {
                for number in 0..8_u8 {
                    let (lead, taken) = (&lead, &taken);
                    scope.spawn(move || {
                        let one = record(lead, &head, &[round, number]);
                        match journal.append(lead, &head, &one) {
                            Ok(_) => taken.fetch_add(1, Ordering::Relaxed),
                            Err(error) => u32::from(error.kind() != ErrorKind::Fenced),
                        }
                    });
                }
            });
            assert_eq!(taken.into_inner(), 1, "{round}");
            head = journal.status(SHARD).unwrap().head;
        }
        assert_eq!(head.commit, 20);
    });
}

#[test]
fn records_have_these_bytes_and_others_are_refused() {
    let lead = Lead::new((ShardId(3), 2), "a", LONG, Head::new(8, [0xcd; 32]));
    let one = record(&lead, &lead.head, b"v");
    let hex = data_encoding::HEXLOWER.encode(one.as_bytes());
    let header = "01 0000000000000003 0000000000000009 0000000000000002".replace(' ', "");
    let changes = "01 08 0003 726f77 00000001 76".replace(' ', "");
    assert_eq!(hex, format!("{header}{}{changes}", "cd".repeat(32)));
    let read = Record::from_bytes(one.as_bytes().to_vec()).unwrap();
    assert_eq!((read.shard(), read.commit(), read.epoch()), (ShardId(3), 9, 2));
    assert!(read.follows(&lead.head) && !read.follows(&Head::new(8, [0; 32])) && read == one);
    assert_eq!(read.head().commit, 9);
    let mut later = one.as_bytes().to_vec();
    later[0] = 2;
    assert_eq!(code(Record::from_bytes(later)), "ERR_STORE_VERSION");
    for length in 0..57 {
        let cut = one.as_bytes()[..length].to_vec();
        assert_eq!(code(Record::from_bytes(cut)), "ERR_INTEGRITY", "{length}");
    }
    let cut = Record::from_bytes(one.as_bytes()[..60].to_vec()).unwrap();
    assert_eq!(code(cut.changes()), "ERR_INTEGRITY");
}

#[test]
fn a_file_that_was_cut_or_changed_loses_nothing_that_was_told() {
    let directory = tempfile::tempdir().unwrap();
    let open = || FileJournal::new(directory.path());
    let (journal, file) = (open(), directory.path().join("shard-7.journal"));
    let lead = journal.lead(SHARD, "a", LONG).unwrap();
    let one = record(&lead, &Head::EMPTY, b"one");
    let head = journal.append(&lead, &Head::EMPTY, &one).unwrap();
    let whole = std::fs::read(&file).unwrap();
    // What a process left that died in an append.
    for left in [&[0_u8; 30][..], &whole[..20], &whole[..3]] {
        std::fs::write(&file, [&whole, left].concat()).unwrap();
        let journal = open();
        assert_eq!(journal.status(SHARD).unwrap().head, head);
        let two = record(&lead, &head, b"two");
        assert_eq!(journal.append(&lead, &head, &two).unwrap().commit, 2);
        assert_eq!(open().read(SHARD, 0, usize::MAX).unwrap(), [one.clone(), two]);
    }
    std::fs::write(&file, &whole).unwrap();
    for place in 0..whole.len() {
        let mut changed = whole.clone();
        changed[place] ^= 0x40;
        std::fs::write(&file, &changed).unwrap();
        assert_eq!(code(open().status(SHARD)), "ERR_INTEGRITY", "{place}");
    }
    std::fs::write(&file, &whole).unwrap();
    assert_eq!(journal.status(SHARD).unwrap().head, head);
    std::fs::write(&file, &whole[..10]).unwrap();
    assert_eq!(code(journal.status(SHARD)), "ERR_INTEGRITY", "it became shorter");
}
