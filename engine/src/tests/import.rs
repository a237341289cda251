//! An import whose power is cut is there whole or not at all; one whose file changes is refused.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use grainstore_cal::Query;
use grainstore_format::container::{Compression, ReadAt};
use grainstore_format::{BeliefBuilder, EpochMs, Grain};
use tempfile::TempDir;

use super::disk::{Cut, Disk, Event, Fault, Image};
use super::power_cut::replay;
use super::{START_MS, assert_no_writer_panicked, clock_at, empty_image, is_full, open, open_with};
use crate::{Error, ExportOptions, ImportOptions, Session, SessionOptions, Store};

/// Grains of the file, half of which supersede the other half.
const GRAINS: u64 = 50;
/// A page cache with which most pages are read again and again.
const SMALL_CACHE_BYTES: usize = 16 << 10;

fn operator(store: &Store) -> Session {
    store.session(SessionOptions::default())
}

fn belief(created_at: i64, subject: &str, object: &str) -> Grain {
    BeliefBuilder::new(EpochMs::new(created_at), subject, "likes", object, 0.9).build().unwrap()
}

/// A file of another store.
fn exported() -> Vec<u8> {
    let store = open(&Disk::default(), &clock_at(START_MS)).unwrap();
    let session = operator(&store);
    for n in 0..i64::try_from(GRAINS / 2).unwrap() {
        let subject = format!("subject {n}");
        let old = session.put(belief(n, &subject, "tea")).unwrap().address();
        session.supersede(&old, belief(1000 + n, &subject, "coffee"), None).unwrap();
    }
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("all.mg");
    let how = ExportOptions { compression: Compression::None, ..ExportOptions::default() };
    session.export(&file, &Query::default(), &how).unwrap();
    std::fs::read(file).unwrap()
}

/// A store that has one grain of the file already, which the import supersedes.
fn half_known() -> Image {
    let disk = Disk::new(empty_image());
    let store = open(&disk, &clock_at(START_MS)).unwrap();
    operator(&store).put(belief(0, "subject 0", "tea")).unwrap();
    store.close().unwrap();
    disk.live()
}

#[test]
fn an_import_is_there_whole_or_not_at_all_whenever_the_power_goes() {
    let bytes = exported();
    let image = half_known();
    let disk = Disk::recording(image.clone());
    let store = open(&disk, &clock_at(START_MS)).unwrap();
    disk.note(Event::Called(0));
    let sources = vec![("file".to_owned(), bytes)];
    let imported = operator(&store).import_from(sources, &ImportOptions::default()).unwrap();
    disk.note(Event::Answered(0));
    assert_eq!((imported.added, imported.duplicate), (GRAINS - 1, 1));
    store.close().unwrap();

    let (mut answered, mut points, mut whole) = (false, 0, 0);
    replay(&image, &disk.story(), |event, moment| match event {
        Some(Event::Answered(_)) => answered = true,
        Some(Event::Synced(_)) | None => {
            for cut in [Cut::Dropped, Cut::Torn(points), Cut::Applied] {
                let disk = Disk::new(cut.image(moment.synced, moment.unsynced));
                let store = open(&disk, &clock_at(2 * START_MS)).unwrap();
                let stats = store.stats().unwrap();
                let found = (stats.grains, stats.audit_entries);
                assert!(
                    found == (GRAINS, 4) || (!answered && found == (1, 2)),
                    "sync {points}, {cut:?}, answered {answered}: {found:?}"
                );
                let verified = store.verify(true).unwrap();
                assert!(verified.ok, "sync {points}, {cut:?}: {:?}", verified.problems);
                operator(&store).put(belief(9000, "power", "back")).unwrap();
                whole += u64::from(found.0 == GRAINS);
                points += 1;
            }
        }
        Some(Event::Called(_) | Event::Changed(_)) => {}
    });
    assert!(whole > 0 && whole < points, "{whole} of {points} cuts come after the commit");
    assert_no_writer_panicked();
}

#[test]
fn an_import_on_a_disk_that_fails_is_there_whole_or_not_at_all() {
    let bytes = exported();
    let image = half_known();
    let (before, after) = ((2, 3), (GRAINS + 1, 5));
    for fault in [Fault::Once as fn(u64) -> Fault, Fault::From] {
        let (mut attempts, mut failed, mut whole) = (0, 0, 0);
        for number in (1..).step_by(if is_full() { 1 } else { 7 }) {
            let disk = Disk::failing(image.clone(), fault(number));
            let answered = import_after_a_put(&disk, &bytes);
            if !disk.has_failed() {
                assert_eq!(answered, (true, true));
                break;
            }
            let cuts = [Cut::Dropped, Cut::Torn(number), Cut::Applied];
            let some = cuts.into_iter().cycle().skip(attempts % 3);
            for cut in some.take(if is_full() { 3 } else { 1 }) {
                let store = open(&Disk::new(disk.after(cut)), &clock_at(2 * START_MS)).unwrap();
                let stats = store.stats().unwrap();
                let found = (stats.grains, stats.audit_entries);
                let possible: &[_] = match answered {
                    (_, true) => &[after],
                    (true, false) => &[before, after],
                    (false, false) => &[(1, 2), before],
                };
                assert!(possible.contains(&found), "{number}, {cut:?}: {answered:?}, {found:?}");
                let verified = store.verify(true).unwrap();
                assert!(verified.ok, "{number}, {cut:?}: {:?}", verified.problems);
                operator(&store).put(belief(9000, "disk", "changed")).unwrap();
                whole += usize::from(found == after);
            }
            attempts += 1;
            failed += usize::from(!answered.1);
        }
        assert!(failed > 10 && whole > 0, "{failed} of {attempts} failed, {whole} are whole");
        println!("import on a failing disk: {attempts} attempts, {failed} failed, {whole} whole");
        assert_no_writer_panicked();
    }
}

/// A put and an import; says which of them were answered. A failure is `ERR_IO`.
fn import_after_a_put(disk: &Disk, bytes: &[u8]) -> (bool, bool) {
    let is_done = |outcome: Result<(), Error>| match outcome {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error.code(), "ERR_IO", "{error}");
            false
        }
    };
    let mut answered = (false, false);
    match open_with(disk, &clock_at(START_MS), SMALL_CACHE_BYTES) {
        Err(error) => assert_eq!(error.code(), "ERR_IO", "{error}"),
        Ok(store) => {
            let session = operator(&store);
            answered.0 = is_done(session.put(belief(8000, "before", "it")).map(drop));
            let sources = vec![("file".to_owned(), bytes.to_vec())];
            let imported = session.import_from(sources, &ImportOptions::default());
            answered.1 = is_done(imported.map(drop));
            assert!(answered.0 || !answered.1, "nothing is written after a failure");
            // The failure may come, or may have come, at any operation of it.
            let closed = store.close().map_err(|error| error.code());
            assert!(matches!(closed, Ok(()) | Err("ERR_IO")), "{closed:?}");
        }
    }
    answered
}

/// Bytes that others change once they were read so often.
struct Changing {
    before: Vec<u8>,
    after: Vec<u8>,
    reads: Arc<AtomicUsize>,
    last: usize,
}

impl Changing {
    fn now(&self) -> &[u8] {
        match self.reads.fetch_add(1, Ordering::SeqCst) < self.last {
            true => &self.before,
            false => &self.after,
        }
    }
}

impl ReadAt for Changing {
    fn size(&self) -> io::Result<u64> {
        self.now().size()
    }

    fn read_exact_at(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.now().read_exact_at(at, buffer)
    }
}

#[test]
fn a_file_that_changes_at_any_moment_of_its_import_is_refused() {
    let before = exported();
    let mut appended = before.clone();
    appended.extend(b"more");
    let mut edited = before.clone();
    let object = edited.windows(6).position(|bytes| bytes == b"coffee").unwrap();
    edited[object] = b'C';
    for after in [appended, edited] {
        let mut refused = 0;
        for last in 0.. {
            let store = open(&Disk::default(), &clock_at(START_MS)).unwrap();
            let reads = Arc::new(AtomicUsize::new(0));
            let source = Changing {
                before: before.clone(),
                after: after.clone(),
                reads: Arc::clone(&reads),
                last,
            };
            let imported = operator(&store)
                .import_from(vec![("file".to_owned(), source)], &ImportOptions::default());
            if reads.load(Ordering::SeqCst) <= last {
                assert_eq!(imported.unwrap().added, GRAINS);
                break;
            }
            // The last look is at the checksum, which did not change.
            match imported {
                Ok(imported) => assert_eq!(imported.added, GRAINS),
                Err(_) => {
                    refused += 1;
                    assert_eq!(store.stats().unwrap().grains, 0, "changed after {last} reads");
                }
            }
        }
        assert!(refused > 4, "{refused}");
    }
}
