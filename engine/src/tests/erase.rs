//! The power is cut at every sync point of an erasure and its scrub: what was answered holds, what is
//! left is done when the store is next open, and nobody else loses anything.

use std::sync::mpsc::channel;
use std::time::Duration;

use grainstore_format::{BeliefBuilder, ContentAddress, EpochMs};

use super::disk::{Cut, Disk, Event, Image};
use super::power_cut::replay;
use super::{START_MS, assert_no_writer_panicked, clock_at, empty_image, open};
use crate::base::pending::Pending;
use crate::disk::truth_tables::TruthTable;
use crate::write::writer::Request;
use crate::{EraseOptions, OpenOptions, Session, SessionOptions, Store};

const ANN: &str = "ann";
const BOB: &str = "bob";
/// Grains of each.
const GRAINS: i64 = 12;

/// What is on a disk before the erasure.
struct Before {
    image: Image,
    of_ann: Vec<ContentAddress>,
    of_bob: Vec<ContentAddress>,
}

fn operator(store: &Store) -> Session {
    store.session(SessionOptions::default())
}

fn filled() -> Before {
    let disk = Disk::recording(empty_image());
    let store = open(&disk, &clock_at(START_MS)).unwrap();
    let session = operator(&store);
    let put = |user: &str, number: i64| {
        let grain = BeliefBuilder::new(EpochMs::new(number), "s", "r", format!("{number}"), 1.0);
        session.put(grain.user_id(user).build().unwrap()).unwrap().address()
    };
    let (mut of_ann, mut of_bob) = (Vec::new(), Vec::new());
    for number in 0..GRAINS {
        of_ann.push(put(ANN, number));
        of_bob.push(put(BOB, number));
    }
    session.contradict(&of_ann[0], "a reason of hers", None).unwrap();
    session.contradict(&of_bob[0], "a reason of his", None).unwrap();
    drop(session);
    store.close().unwrap();
    Before { image: disk.live(), of_ann, of_bob }
}

impl Before {
    /// What must be so after a crash, before and after the store has scrubbed.
    fn examine(&self, image: Image, was_answered: bool) {
        let disk = Disk::recording(image);
        let store = open(&disk, &clock_at(2 * START_MS)).unwrap();
        let session = operator(&store);
        let is_erased = store.stats().unwrap().erased_users > 0;
        assert!(is_erased || !was_answered, "an answered erasure is gone");
        for scrubbed in [false, true] {
            if scrubbed {
                store.scrub().unwrap();
                assert_eq!(store.stats().unwrap().unscrubbed, 0);
            }
            for address in &self.of_ann {
                let got = session.get(address).map(drop).map_err(|error| error.code());
                assert_eq!(got, if is_erased { Err("ERR_ERASED") } else { Ok(()) });
            }
            for address in &self.of_bob {
                session.get(address).unwrap();
            }
            let verified = store.verify(true).unwrap();
            assert!(verified.ok, "{:?}", verified.problems);
        }
        let reasons = session.audit(None, 100).unwrap().into_iter().filter_map(|e| e.reason);
        let reasons: Vec<_> = reasons.collect();
        assert!(reasons.iter().any(|reason| reason == "a reason of his"));
        assert_eq!(reasons.iter().any(|reason| reason == "a reason of hers"), !is_erased);
        let stubs = if is_erased { self.of_ann.len() as u64 } else { 0 };
        assert_eq!(store.stats().unwrap().erased_grains, stubs);
        store.close().unwrap();
    }
}

#[test]
fn a_damaged_row_keeps_an_erasure_from_being_scrubbed_and_that_is_told() {
    let before = filled();
    let disk = Disk::recording(before.image.clone());
    let store = open(&disk, &clock_at(START_MS)).unwrap();
    let session = operator(&store);
    let (reply, damaged) = Pending::new();
    let damage = Request::Exclusive(Box::new(move |writer| {
        let damaged = writer.unwrap().transact(|_, rows| {
            rows.put(TruthTable::Log, 2, &[1, 0, 9, 9, 9, 9, 9])?;
            Ok(Some(((), Vec::new())))
        });
        let _ = reply.send(damaged.map(drop));
    }));
    store.inner().send(damage).unwrap();
    damaged.wait().unwrap();
    let erased = session.erase_user(ANN, "ann asked", &EraseOptions::new().now(true)).unwrap();
    assert_eq!((erased.erased, erased.scrubbed), (before.of_ann.len() as u64, false));
    assert!(erased.certificate.is_some());
    assert_eq!(erased.scrub_failure.unwrap().code(), "ERR_INTEGRITY");
    assert_eq!(store.stats().unwrap().unscrubbed, 1);
    assert_eq!(session.get(&before.of_ann[0]).unwrap_err().code(), "ERR_ERASED");
    drop(session);
    store.close().unwrap();
}

/// Of files replaced before the erasure, and of those that the scrub itself replaces.
#[test]
fn who_waits_for_a_scrub_is_told_of_readers_who_do_not_end() {
    for is_replaced_before in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
        let grain = BeliefBuilder::new(EpochMs::new(1), "s", "r", "o", 1.0).user_id(ANN);
        operator(&store).put(grain.build().unwrap()).unwrap();
        let impatient = Request::Exclusive(Box::new(|writer| {
            writer.unwrap().scrub.wait_for_readers(Duration::from_millis(20));
        }));
        store.inner().send(impatient).unwrap();
        let reader = store.inner().view().unwrap();
        if is_replaced_before {
            store.compact().unwrap();
        }
        operator(&store).erase_user(ANN, "ann asked", &EraseOptions::new()).unwrap();
        let (sender, told) = channel();
        let scrubbing = store.clone();
        std::thread::spawn(move || sender.send(scrubbing.scrub()));
        let told = told.recv_timeout(Duration::from_secs(60)).unwrap().unwrap_err();
        assert_eq!(told.code(), "ERR_BUSY", "{is_replaced_before}: {told}");
        assert!(told.hint().contains("try again"), "{}", told.hint());
        drop(reader);
        // Who else reads is the store itself, and not for long.
        while let Err(error) = store.scrub() {
            assert_eq!(error.code(), "ERR_BUSY", "{error}");
        }
        assert_eq!(store.stats().unwrap().unscrubbed, 0, "{is_replaced_before}");
        store.close().unwrap();
    }
}

#[test]
fn an_erasure_is_whole_whenever_the_power_goes_and_its_scrub_goes_on() {
    let before = filled();
    let disk = Disk::recording(before.image.clone());
    let store = open(&disk, &clock_at(START_MS)).unwrap();
    let session = operator(&store);
    disk.note(Event::Called(0));
    session.erase_user(ANN, "ann asked", &EraseOptions::new()).unwrap();
    disk.note(Event::Answered(0));
    store.scrub().unwrap();
    drop(session);
    store.close().unwrap();
    let (mut was_answered, mut points) = (false, 0);
    replay(&before.image, &disk.story(), |event, moment| match event {
        Some(Event::Answered(_)) => was_answered = true,
        Some(Event::Synced(_)) | None => {
            points += 1;
            for cut in [Cut::Dropped, Cut::Torn(points), Cut::Applied] {
                before.examine(cut.image(moment.synced, moment.unsynced), was_answered);
            }
        }
        _ => {}
    });
    assert_no_writer_panicked();
    assert!(points > 6, "{points} sync points");
}

/// An answer that was on its way when a grain was erased counts an access to it.
#[test]
fn an_access_that_is_counted_after_an_erasure_leaves_no_row() {
    let Before { image, of_ann, of_bob } = filled();
    let store = open(&Disk::new(image), &clock_at(2 * START_MS)).unwrap();
    let session = operator(&store);
    let place = |address| session.view().unwrap().sequence_of(address).unwrap().unwrap();
    let (hers, his) = (place(&of_ann[1]), place(&of_bob[1]));
    session.erase_user(ANN, "asked", &EraseOptions::new()).unwrap();
    for at in [hers, his] {
        store.inner().touch(at);
    }
    store.flush().unwrap();
    let counts = |at| session.view().unwrap().access_at(at).unwrap().count;
    assert_eq!((counts(hers), counts(his)), (0, 1));
    store.close().unwrap();
}
