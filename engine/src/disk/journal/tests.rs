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
    Record::after(after, (lead.shard, lead.epoch), (&changes, Vec::new()), None).unwrap()
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
        let bytes: usize = some.iter().map(|record| record.as_bytes().len()).sum();
        assert!(bytes <= 1000, "{bytes}");
    });
}

fn slots(numbers: Range<u32>, byte: u8) -> Vec<KeyringSlot> {
    numbers.map(|number| KeyringSlot::new(number, [byte; KEYRING_SLOT_BYTES])).collect()
}

#[test]
fn slots_of_a_keyring_are_written_with_their_record_or_not_at_all() {
    each(|journal| {
        assert_eq!(journal.keyring(SHARD, 0..u32::MAX).unwrap(), (Head::EMPTY, Vec::new()));
        let lead = journal.lead(SHARD, "a", LONG).unwrap();
        let one = record(&lead, &lead.head, b"1").with_slots(slots(0..3, 1));
        let first = journal.append(&lead, &lead.head, &one).unwrap();
        let again = one.with_slots(slots(0..9, 9));
        assert_eq!(code(journal.append(&lead, &lead.head, &again)), "ERR_FENCED");
        let two = record(&lead, &first, b"2");
        let second = journal.append(&lead, &first, &two).unwrap();
        let three =
            record(&lead, &second, b"3").with_slots([slots(3..4, 3), slots(1..2, 0)].concat());
        let third = journal.append(&lead, &second, &three).unwrap();
        let all = [slots(0..1, 1), slots(1..2, 0), slots(2..3, 1), slots(3..4, 3)].concat();
        assert_eq!(journal.keyring(SHARD, 0..u32::MAX).unwrap(), (third, all.clone()));
        assert_eq!(journal.keyring(SHARD, 3..u32::MAX).unwrap(), (third, all[3..].to_vec()));
        assert_eq!(journal.keyring(SHARD, 4..u32::MAX).unwrap(), (third, Vec::new()));
        let read = journal.read(SHARD, 0, usize::MAX).unwrap();
        assert!(read.iter().all(|record| record.slots().is_empty()));
        assert_eq!(read[2].as_bytes(), three.as_bytes());
    });
}

#[test]
fn slots_of_an_append_that_was_cut_off_are_those_of_its_record() {
    let directory = tempfile::tempdir().unwrap();
    let open = || FileJournal::new(directory.path());
    let file = |suffix: &str| directory.path().join(format!("shard-{SHARD}.{suffix}"));
    let lead = open().lead(SHARD, "a", LONG).unwrap();
    let one = record(&lead, &lead.head, b"1").with_slots(slots(0..2, 1));
    let first = open().append(&lead, &lead.head, &one).unwrap();
    assert!(!file("slots").exists());
    let (records, keyring) = (std::fs::read(file("journal")).unwrap(), file("keyring"));
    let before = std::fs::read(&keyring).unwrap();
    // What the next leaves behind, up to where the power was cut.
    let two = record(&lead, &first, b"2").with_slots([slots(2..3, 2), slots(0..1, 0)].concat());
    let mut announced = two.commit().to_be_bytes().to_vec();
    for slot in two.slots() {
        announced.extend_from_slice(&slot.number.to_be_bytes());
        announced.extend_from_slice(&slot.bytes);
    }
    announced.extend_from_slice(&crc32fast::hash(&announced).to_be_bytes());
    for cut in [0, 5, announced.len() - 1, announced.len()] {
        std::fs::write(file("slots"), &announced[..cut]).unwrap();
        assert_eq!(open().keyring(SHARD, 0..u32::MAX).unwrap(), (first, slots(0..2, 1)), "{cut}");
        assert!(!file("slots").exists());
    }
    let second = open().append(&lead, &first, &two).unwrap();
    let after = [slots(0..1, 0), slots(1..2, 1), slots(2..3, 2)].concat();
    std::fs::write(&keyring, &before).unwrap();
    std::fs::write(file("slots"), &announced).unwrap();
    assert_eq!(open().keyring(SHARD, 0..u32::MAX).unwrap(), (second, after.clone()));
    // The next append settles it as well, and another in its place drops it.
    std::fs::write(&keyring, &before).unwrap();
    std::fs::write(file("slots"), &announced).unwrap();
    open().append(&lead, &second, &record(&lead, &second, b"3")).unwrap();
    assert_eq!(open().keyring(SHARD, 0..u32::MAX).unwrap().1, after);
    std::fs::write(file("journal"), records).unwrap();
    std::fs::write(&keyring, &before).unwrap();
    std::fs::write(file("slots"), &announced).unwrap();
    open().append(&lead, &first, &record(&lead, &first, b"other")).unwrap();
    assert_eq!(open().keyring(SHARD, 0..u32::MAX).unwrap().1, slots(0..2, 1));
    std::fs::write(&keyring, &before[..200]).unwrap();
    assert_eq!(code(open().keyring(SHARD, 0..u32::MAX)), "ERR_INTEGRITY");
}

#[test]
fn a_second_attempt_in_files_finishes_the_first() {
    let directory = tempfile::tempdir().unwrap();
    let open = || FileJournal::new(directory.path());
    let file = |suffix: &str| directory.path().join(format!("shard-{SHARD}.{suffix}"));
    let lead = open().lead(SHARD, "a", LONG).unwrap();
    // The slots of the first cannot be written to their places.
    std::fs::create_dir(file("keyring")).unwrap();
    let one = record(&lead, &lead.head, b"1").with_slots(slots(0..2, 1));
    assert_eq!(code(open().append(&lead, &lead.head, &one)), "ERR_IO");
    assert_eq!(code(open().append(&lead, &lead.head, &one)), "ERR_IO", "it is not told");
    // Who lost the lead meanwhile is not told either.
    let other = open().lead(SHARD, "a", LONG).unwrap();
    assert_eq!(code(open().append(&lead, &lead.head, &one)), "ERR_IO");
    assert!(other.head == one.head() && other.epoch > lead.epoch);
    std::fs::remove_dir(file("keyring")).unwrap();
    let appended = append_surely(&open(), &lead, (&lead.head, &one), Duration::ZERO).unwrap();
    assert_eq!(appended, one.head());
    assert!(file("keyring").exists() && !file("slots").exists());
    assert_eq!(open().keyring(SHARD, 0..9).unwrap(), (one.head(), slots(0..2, 1)));
    assert_eq!(open().keyring(SHARD, 1..2).unwrap(), (one.head(), slots(1..2, 1)));
    let two = record(&other, &one.head(), b"2");
    open().append(&other, &one.head(), &two).unwrap();
    assert_eq!(open().read(SHARD, 0, usize::MAX).unwrap().len(), 2);
}

#[test]
fn an_append_of_which_a_page_was_not_written_is_cut_off() {
    let directory = tempfile::tempdir().unwrap();
    let open = || FileJournal::new(directory.path());
    let file = directory.path().join(format!("shard-{SHARD}.journal"));
    let lead = open().lead(SHARD, "a", LONG).unwrap();
    let one = record(&lead, &lead.head, &[7; 5000]);
    let head = open().append(&lead, &lead.head, &one).unwrap();
    let first = std::fs::read(&file).unwrap().len();
    open().append(&lead, &head, &record(&lead, &head, &[8; 10_000])).unwrap();
    let whole = std::fs::read(&file).unwrap();
    for page in (first.next_multiple_of(4096)..whole.len()).step_by(4096) {
        let mut torn = whole.clone();
        let end = (page + 4096).min(torn.len());
        torn[page..end].fill(0);
        std::fs::write(&file, &torn).unwrap();
        assert_eq!(open().status(SHARD).unwrap().head, head, "{page}");
        // One that is not the last was synced, and so is damaged.
        torn.extend_from_slice(&whole[..100]);
        std::fs::write(&file, &torn).unwrap();
        assert_eq!(code(open().status(SHARD)), "ERR_INTEGRITY", "{page}");
        torn.truncate(whole.len());
        torn[page] = 1;
        std::fs::write(&file, &torn).unwrap();
        assert_eq!(code(open().status(SHARD)), "ERR_INTEGRITY", "{page}: no page of zeros");
    }
    std::fs::write(&file, &whole[..first]).unwrap();
    open().append(&lead, &head, &record(&lead, &head, b"again")).unwrap();
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
    later[0] = 3;
    assert_eq!(code(Record::from_bytes(later)), "ERR_STORE_VERSION");
    // With a tag, of an encrypted store, and the hashes of new slots.
    let tag = |header: &[u8], rest: &[u8]| [u8::try_from(header.len() + rest.len()).unwrap(); 32];
    let changes_of = || one.changes().unwrap();
    let written = [slots(5..6, 1), slots(2..3, 0), slots(6..7, 9)].concat();
    let tagged = Record::after(&lead.head, (lead.shard, 2), (&changes_of(), written), Some(&tag));
    let tagged = Record::from_bytes(tagged.unwrap().as_bytes().to_vec()).unwrap();
    let hex = data_encoding::HEXLOWER.encode(tagged.as_bytes());
    let hash = |byte| data_encoding::HEXLOWER.encode(&slots(0..1, byte)[0].hash());
    let hashes = format!("0000000200000005{}00000006{}", hash(1), hash(9));
    let (header, length) = (header.replacen("01", "02", 1), "91");
    assert_eq!(hex, format!("{header}{}{}{hashes}{changes}", "cd".repeat(32), length.repeat(32)));
    let is_tag = |header: &[u8], rest: &[u8], there: &[u8; 32]| tag(header, rest) == *there;
    assert!(tagged.is_tagged() && tagged.has_tag(is_tag) && !tagged.has_tag(|_, _, _| false));
    assert!(!one.is_tagged() && !one.has_tag(|_, _, _| true));
    assert_eq!(tagged.changes().unwrap(), changes_of());
    let numbers: Vec<u32> = tagged.slot_hashes().map(|(number, _)| number).collect();
    assert_eq!((numbers, one.slot_hashes().count()), (vec![5, 6], 0));
    for length in [88, 92, 93, 164] {
        let cut = tagged.as_bytes()[..length].to_vec();
        assert_eq!(code(Record::from_bytes(cut)), "ERR_INTEGRITY", "{length}");
    }
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

#[test]
fn who_holds_the_files_of_a_journal_and_stands_still_is_not_waited_for_without_end() {
    let directory = tempfile::tempdir().unwrap();
    let journal = FileJournal::new(directory.path()).lock_time(Duration::from_millis(50));
    let lead = journal.lead(SHARD, "a", LONG).unwrap();
    let lock = std::fs::File::open(directory.path().join("shard-7.lock")).unwrap();
    lock.lock().unwrap();
    assert_eq!(code(journal.status(SHARD)), "ERR_IO");
    let one = record(&lead, &lead.head, &[1]);
    assert_eq!(code(journal.append(&lead, &lead.head, &one)), "ERR_IO");
    lock.unlock().unwrap();
    assert_eq!(journal.append(&lead, &lead.head, &one).unwrap(), one.head());
}
