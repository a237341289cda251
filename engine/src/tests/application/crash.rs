//! The power is cut at every sync point of a batch, a blob and an erasure: each is whole or not there.

use std::sync::LazyLock;

use super::*;
use crate::EraseOptions;
use crate::tests::disk::{Cut, Disk, Event, Image};
use crate::tests::power_cut::replay;
use crate::tests::{START_MS, assert_no_writer_panicked, clock_at, empty_image, open};

/// A blob of two chunks.
static BLOB: LazyLock<Vec<u8>> = LazyLock::new(|| large(1)[..1_100_000].to_vec());

/// How many of the calls are done on a disk. Each must be whole.
fn done_on(image: Image) -> usize {
    let store = open(&Disk::new(image), &clock_at(2 * START_MS)).unwrap();
    let session = operator(&store);
    let is_erased = store.stats().unwrap().erased_users > 0;
    let rows: Vec<_> = all_rows(&session, 1).into_iter().map(|(number, _)| number).collect();
    let blobs =
        [ANN, BOB].map(|of| match session.side_blob(&ContentAddress::of(&BLOB), &user(of)) {
            Ok(bytes) => bytes == *BLOB,
            Err(error) if error.code() == "ERR_NOT_FOUND" => false,
            Err(error) => panic!("{error}"),
        });
    assert_eq!(store.verify(true).unwrap().problems, []);
    session.put_row(APP, 9, 1, b"it goes on", user(ANN)).unwrap();
    store.close().unwrap();
    match (&rows[..], blobs, is_erased) {
        ([], [false, false], false) => 0,
        ([1, 2, 3, 4], [false, false], false) => 1,
        ([1, 2, 3, 4], [true, false], false) => 2,
        ([1, 2, 3, 4], [true, true], false) => 3,
        ([1, 3], [false, true], true) => 4,
        halved => panic!("{halved:?}"),
    }
}

#[test]
fn each_call_is_whole_whenever_the_power_goes() {
    let before = empty_image();
    let disk = Disk::recording(before.clone());
    let store = open(&disk, &clock_at(START_MS)).unwrap();
    let session = operator(&store);
    let owner = |number: u64| if number.is_multiple_of(2) { user(ANN) } else { Owner::Store };
    let rows = (1..=4).map(|number| RowChange::put(APP, 1, number, b"row").owner(owner(number)));
    session.write_rows(rows).unwrap();
    disk.note(Event::Answered(1));
    for (number, of) in [(2, ANN), (3, BOB)] {
        session.put_side_blob(BLOB.as_slice(), user(of)).unwrap();
        disk.note(Event::Answered(number));
    }
    session.erase_user(ANN, "asked", &EraseOptions::new()).unwrap();
    disk.note(Event::Answered(4));
    store.scrub().unwrap();
    drop(session);
    store.close().unwrap();
    let (mut answered, mut points) = (0, 0);
    replay(&before, &disk.story(), |event, moment| match event {
        Some(Event::Answered(number)) => answered = *number,
        Some(Event::Synced(_)) | None => {
            points += 1;
            for cut in [Cut::Dropped, Cut::Torn(points), Cut::Applied] {
                let done = done_on(cut.image(moment.synced, moment.unsynced));
                assert!(done == answered || done == answered + 1, "{done}, {answered} answered");
            }
        }
        _ => {}
    });
    assert_no_writer_panicked();
    assert!(points > 6, "{points} sync points");
}
