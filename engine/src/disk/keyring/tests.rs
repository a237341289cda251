//! Tests of the whole keyring: opening, refusals, and what remains after an erasure.

use std::sync::Mutex as StdMutex;

use super::*;
use crate::base::error::ErrorKind;
use crate::disk::directory;

const ID: [u8; 16] = [3; 16];

fn code<T>(result: Result<T>) -> Option<&'static str> {
    result.err().map(|error| error.code())
}

fn key(byte: u8) -> MasterKey {
    MasterKey::new([byte; 32])
}

fn ring(dir: &Path) -> Keyring {
    Keyring::create(dir, &key(1), ID).unwrap()
}

fn open(dir: &Path, byte: u8) -> Result<Keyring> {
    Keyring::open(dir, &key(byte)).map(|ring| ring.unwrap())
}

/// Encrypts a text under a user's key.
fn sealed(ring: &Keyring, user: &str) -> Vec<u8> {
    ring.user_keys(user).unwrap().unwrap().data.seal(b"row", b"body").unwrap()
}

fn opened(ring: &Keyring, user: &str, sealed: &[u8]) -> Option<Vec<u8>> {
    ring.user_keys(user).unwrap()?.data.open(b"row", sealed)
}

#[test]
fn keys_are_the_same_after_opening_and_another_masters_are_refused() {
    let dir = tempfile::TempDir::new().unwrap();
    let ring = ring(dir.path());
    ring.enroll(["ann", "bob", "ann"]).unwrap();
    ring.enroll(["bob", "cem"]).unwrap();
    let (of_ann, of_bob) = (sealed(&ring, "ann"), sealed(&ring, "bob"));
    let address = ContentAddress::of(b"grain");
    let again = open(dir.path(), 1).unwrap();
    assert_eq!(again.address_token(&address), ring.address_token(&address));
    assert_eq!(opened(&again, "ann", &of_ann).unwrap(), b"body");
    assert_eq!(opened(&again, "bob", &of_bob).unwrap(), b"body");
    assert_eq!(opened(&again, "bob", &of_ann), None, "it is another person's");
    assert!(again.user_keys("dan").unwrap().is_none());
    assert_eq!(code(open(dir.path(), 2)), Some("ERR_KEY"));
    let phrase = Passphrase::new("words").cost(64, 1, 1);
    assert_eq!(code(Keyring::open(dir.path(), &phrase)), Some("ERR_KEY"));
}

#[test]
fn a_person_has_one_slot_and_nobody_is_given_that_of_one_who_was_erased() {
    let dir = tempfile::TempDir::new().unwrap();
    let ring = ring(dir.path());
    ring.enroll(["ann", "bob"]).unwrap();
    let slot = |ring: &Keyring, user| ring.user_keys(user).unwrap().map(|holder| holder.slot);
    assert_eq!((slot(&ring, "ann"), slot(&ring, "bob")), (Some(1), Some(2)));
    ring.destroy(&ring.user_token("ann"), 1).unwrap();
    ring.destroy(&ring.user_token("ann"), 1).unwrap();
    assert_eq!(slot(&ring, "ann"), None);
    assert!(ring.slot_keys(1).unwrap().is_none());
    ring.enroll(["ann"]).unwrap();
    let again = open(dir.path(), 1).unwrap();
    for ring in [&ring, &again] {
        assert_eq!((slot(ring, "ann"), slot(ring, "bob")), (Some(3), Some(2)));
    }
}

#[test]
fn a_person_whose_key_is_changed_has_both_until_the_former_is_destroyed() {
    let dir = tempfile::TempDir::new().unwrap();
    let ring = ring(dir.path());
    ring.enroll(["ann", "bob"]).unwrap();
    let former = sealed(&ring, "ann");
    ring.add_slot(&ring.user_token("ann")).unwrap();
    let ring = open(dir.path(), 1).unwrap();
    let person = ring.user_token("ann");
    assert_eq!(ring.slots_of(&person), [1, 3]);
    assert_eq!(opened(&ring, "ann", &former), None, "it is written under the new one");
    let all = ring.all_user_keys("ann").unwrap();
    assert!(all.iter().any(|holder| holder.data.open(b"row", &former).is_some()));
    let new = sealed(&ring, "ann");
    ring.destroy(&person, 1).unwrap();
    let ring = open(dir.path(), 1).unwrap();
    assert_eq!(ring.slots_of(&person), [3]);
    assert_eq!(opened(&ring, "ann", &new).unwrap(), b"body");
    ring.add_slot(&person).unwrap();
    ring.destroy(&person, 4).unwrap();
    assert!(ring.slots_of(&person).is_empty(), "all up to the last");
    assert!(open(dir.path(), 1).unwrap().user_keys("bob").unwrap().is_some());
}

#[test]
fn a_destroyed_secret_is_in_no_byte_of_the_file() {
    let dir = tempfile::TempDir::new().unwrap();
    let ring = ring(dir.path());
    ring.enroll(["ann", "bob"]).unwrap();
    let file = directory::keyring_path(dir.path());
    let before = std::fs::read(&file).unwrap();
    let slot = |bytes: &[u8], number: usize| bytes[number * SLOT_BYTES..][..SLOT_BYTES].to_vec();
    assert_ne!(slot(&before, 1), [0; SLOT_BYTES]);
    let of_ann = sealed(&ring, "ann");
    ring.destroy(&ring.user_token("ann"), 1).unwrap();
    let after = std::fs::read(&file).unwrap();
    assert_eq!(slot(&after, 1), [0; SLOT_BYTES]);
    assert_eq!((slot(&after, 0), slot(&after, 2)), (slot(&before, 0), slot(&before, 2)));
    assert_eq!(opened(&open(dir.path(), 1).unwrap(), "ann", &of_ann), None);
}

#[test]
fn another_master_key_opens_the_same_secrets() {
    let dir = tempfile::TempDir::new().unwrap();
    let ring = ring(dir.path());
    ring.enroll(["ann", "bob", "cem"]).unwrap();
    ring.destroy(&ring.user_token("bob"), 2).unwrap();
    let of_ann = sealed(&ring, "ann");
    let phrase = Passphrase::new("words").cost(64, 1, 1);
    ring.rewrap(ring.rewrapped(&phrase).unwrap()).unwrap();
    assert_eq!(code(open(dir.path(), 1)), Some("ERR_KEY"));
    let again = Keyring::open(dir.path(), &phrase).unwrap().unwrap();
    for ring in [&ring, &again] {
        assert_eq!(opened(ring, "ann", &of_ann).unwrap(), b"body");
        assert!(ring.user_keys("bob").unwrap().is_none(), "erased before, erased after");
    }
    again.enroll(["dan"]).unwrap();
    again.rewrap(again.rewrapped(&key(9)).unwrap()).unwrap();
    assert_eq!(opened(&open(dir.path(), 9).unwrap(), "ann", &of_ann).unwrap(), b"body");
    let names: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|at| at.unwrap().file_name()).collect();
    assert_eq!(names, ["keyring"], "nothing is left beside it");
}

#[test]
fn what_a_change_of_the_master_key_that_was_cut_short_left_is_gone_with_the_next_opening() {
    let dir = tempfile::TempDir::new().unwrap();
    ring(dir.path()).enroll(["ann"]).unwrap();
    let left = dir.path().join("keyring.new");
    std::fs::copy(directory::keyring_path(dir.path()), &left).unwrap();
    let beside = dir.path().join("beside");
    std::fs::hard_link(&left, &beside).unwrap();
    assert!(open(dir.path(), 1).unwrap().user_keys("ann").unwrap().is_some());
    assert!(!left.exists());
    assert!(std::fs::read(beside).unwrap().iter().all(|byte| *byte == 0), "it was overwritten");
}

#[test]
fn damage_is_told_and_a_slot_that_was_cut_off_was_never_used() {
    let dir = tempfile::TempDir::new().unwrap();
    ring(dir.path()).enroll(["ann", "bob"]).unwrap();
    let file = directory::keyring_path(dir.path());
    let whole = std::fs::read(&file).unwrap();
    for at in (0..whole.len()).step_by(7) {
        let mut damaged = whole.clone();
        damaged[at] ^= 4;
        std::fs::write(&file, &damaged).unwrap();
        let ring = open(dir.path(), 1);
        let Some(other) = [2, 1].get((at / SLOT_BYTES).wrapping_sub(1)) else {
            assert_eq!(code(ring), Some("ERR_INTEGRITY"), "byte {at}");
            continue;
        };
        // A user's slot: only that user's grains are unreadable.
        let ring = ring.unwrap();
        let slot = u32::try_from(at / SLOT_BYTES).unwrap();
        assert_eq!(code(ring.slot_keys(slot)), Some("ERR_INTEGRITY"), "byte {at}");
        assert!(ring.slot_keys(*other).unwrap().is_some());
        ring.rewrap(ring.rewrapped(&key(1)).unwrap()).unwrap();
        assert_eq!(
            std::fs::read(&file).unwrap()[slot as usize * SLOT_BYTES..][..SLOT_BYTES],
            damaged[slot as usize * SLOT_BYTES..][..SLOT_BYTES]
        );
        let is_named = !(8..40).contains(&(at % SLOT_BYTES));
        for user in ["ann", "bob"] {
            ring.destroy(&ring.user_token(user), 2).unwrap();
        }
        assert_eq!(
            ring.slot_keys(slot).is_ok(),
            is_named,
            "byte {at}: erased as far as it says whose it is"
        );
    }
    for length in [0, 5, SLOT_BYTES - 1] {
        std::fs::write(&file, &whole[..length]).unwrap();
        assert_eq!(code(open(dir.path(), 1)), Some("ERR_INTEGRITY"), "{length} bytes");
    }
    std::fs::write(&file, &whole[..2 * SLOT_BYTES + 60]).unwrap();
    let ring = open(dir.path(), 1).unwrap();
    assert!(ring.user_keys("ann").unwrap().is_some());
    assert!(ring.user_keys("bob").unwrap().is_none());
    ring.enroll(["cem"]).unwrap();
    assert!(open(dir.path(), 1).unwrap().user_keys("cem").unwrap().is_some());
}

#[test]
fn who_may_have_a_damaged_slot_is_not_taken_for_somebody_without_one() {
    let dir = tempfile::TempDir::new().unwrap();
    ring(dir.path()).enroll(["ann", "bob"]).unwrap();
    let file = directory::keyring_path(dir.path());
    let whole = std::fs::read(&file).unwrap();
    for at in 0..8 * SLOT_BYTES {
        let mut damaged = whole.clone();
        damaged[SLOT_BYTES + at / 8] ^= 1 << (at % 8);
        std::fs::write(&file, &damaged).unwrap();
        let ring = open(dir.path(), 1).unwrap();
        ring.record_slot(2).unwrap();
        let refused = [
            ring.user_keys("ann").map(drop),
            ring.all_user_keys("ann").map(drop),
            ring.enroll(["cem"]),
        ];
        for refused in refused {
            assert_eq!(code(refused), Some("ERR_INTEGRITY"), "bit {at}");
        }
        assert!(ring.user_keys("bob").unwrap().is_some(), "bit {at}");
        ring.enroll(["bob"]).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), damaged, "no slot was given");
    }
    // A damaged slot that no row uses yet cannot be a user's.
    let ring = open(dir.path(), 1).unwrap();
    ring.enroll(["cem"]).unwrap();
    assert!(ring.user_keys("cem").unwrap().is_some());
}

#[test]
fn a_retired_key_is_gone_from_the_disk_and_stays_with_whoever_reads() {
    let dir = tempfile::TempDir::new().unwrap();
    let ring = ring(dir.path());
    ring.enroll(["ann"]).unwrap();
    let former = sealed(&ring, "ann");
    let person = ring.user_token("ann");
    ring.add_slot(&person).unwrap();
    ring.retire(&person, 1).unwrap();
    let opens = |holder: &Arc<SlotKeys>| holder.data.open(b"row", &former).is_some();
    assert!(opens(&ring.slot_keys(1).unwrap().unwrap()));
    assert!(ring.all_user_keys("ann").unwrap().iter().any(opens));
    assert_eq!(ring.slots_of(&person), [2], "it is written under the new one");
    assert!(open(dir.path(), 1).unwrap().slot_keys(1).unwrap().is_none());
    ring.destroy(&person, 2).unwrap();
    assert!(ring.slot_keys(1).unwrap().is_none(), "erased is erased");
    assert!(ring.all_user_keys("ann").unwrap().is_empty());
}

#[test]
fn a_keyring_older_than_what_was_noted_of_it_is_refused() {
    let dir = tempfile::TempDir::new().unwrap();
    let ring = ring(dir.path());
    ring.enroll(["ann"]).unwrap();
    assert_eq!(
        (ring.unrecorded_slot(), ring.has_users()),
        (Some(1), false),
        "nothing lies under it yet"
    );
    ring.record_slot(1).unwrap();
    assert_eq!((ring.unrecorded_slot(), ring.has_users()), (None, true));
    let older = std::fs::read(directory::keyring_path(dir.path())).unwrap();
    ring.enroll(["bob"]).unwrap();
    assert_eq!(ring.unrecorded_slot(), Some(2));
    open(dir.path(), 1).unwrap().record_slot(2).unwrap();
    std::fs::write(directory::keyring_path(dir.path()), older).unwrap();
    assert_eq!(code(open(dir.path(), 1).unwrap().record_slot(2)), Some("ERR_INTEGRITY"));
}

#[test]
fn what_a_change_of_the_master_key_exchanged_is_overwritten_after_a_crash() {
    let dir = tempfile::TempDir::new().unwrap();
    let ring = ring(dir.path());
    ring.enroll(["ann"]).unwrap();
    let (file, old) = (directory::keyring_path(dir.path()), dir.path().join("keyring.old"));
    std::fs::hard_link(&file, &old).unwrap();
    assert!(open(dir.path(), 1).is_ok() && !old.exists(), "the exchange did not happen");
    assert!(open(dir.path(), 1).unwrap().user_keys("ann").unwrap().is_some());
    let former = std::fs::read(&file).unwrap();
    ring.rewrap(ring.rewrapped(&key(2)).unwrap()).unwrap();
    std::fs::write(&old, former).unwrap();
    let beside = dir.path().join("beside");
    std::fs::hard_link(&old, &beside).unwrap();
    assert!(open(dir.path(), 2).unwrap().user_keys("ann").unwrap().is_some());
    assert!(!old.exists());
    assert!(std::fs::read(beside).unwrap().iter().all(|byte| *byte == 0));
}

#[test]
fn nothing_of_it_is_shown() {
    let dir = tempfile::TempDir::new().unwrap();
    let ring = ring(dir.path());
    ring.enroll(["ann"]).unwrap();
    let holder = ring.user_keys("ann").unwrap().unwrap();
    assert_eq!(format!("{ring:?} {holder:?}"), "Keyring(..) Holder(slot 1)");
}

/// A medium in memory whose writes fail, each time with some of it done.
#[derive(Debug, Clone, Default)]
struct Failing(Arc<StdMutex<Bytes>>);

#[derive(Debug, Default)]
struct Bytes {
    there: Option<Vec<u8>>,
    /// Writes that are done before those that fail; nothing on a sound medium.
    left: Option<usize>,
    /// How many eighths of a write that fails are done.
    eighths: usize,
    failed: bool,
}

impl Failing {
    fn fail_after(&self, writes: usize, eighths: usize) {
        let mut bytes = self.0.lock().unwrap();
        (bytes.left, bytes.eighths) = (Some(writes), eighths);
    }

    /// Whether a write has failed. None does from now on.
    fn has_failed(&self) -> bool {
        let mut bytes = self.0.lock().unwrap();
        bytes.left = None;
        bytes.failed
    }
}

impl Bytes {
    /// Whether this write is done, and how much of so many bytes where it is not.
    fn part(&mut self, length: usize) -> Option<usize> {
        match &mut self.left {
            Some(0) => {
                self.failed = true;
                Some(length * self.eighths / 8)
            }
            Some(left) => {
                *left -= 1;
                None
            }
            None => None,
        }
    }
}

fn no_room() -> Error {
    Error::new(ErrorKind::Io, "I/O: no room")
}

impl KeyringStorage for Failing {
    fn read(&mut self) -> Result<Option<Vec<u8>>> {
        Ok(self.0.lock().unwrap().there.clone())
    }

    fn write_at(&mut self, offset: u64, new: &[u8]) -> Result<()> {
        let mut bytes = self.0.lock().unwrap();
        let part = bytes.part(new.len());
        let at = usize::try_from(offset).unwrap();
        let there = bytes.there.as_mut().unwrap();
        let written = &new[..part.unwrap_or(new.len())];
        there.resize(there.len().max(at + written.len()), 0);
        there[at..at + written.len()].copy_from_slice(written);
        part.map_or(Ok(()), |_| Err(no_room()))
    }

    fn truncate(&mut self, length: u64) -> Result<()> {
        let mut bytes = self.0.lock().unwrap();
        bytes.there.as_mut().unwrap().truncate(usize::try_from(length).unwrap());
        Ok(())
    }

    /// It is exchanged as a whole: a failure comes before that or behind it.
    fn replace(&mut self, new: &[u8]) -> Result<()> {
        let mut bytes = self.0.lock().unwrap();
        let part = bytes.part(new.len());
        if part.is_none_or(|part| part > new.len() / 2) {
            bytes.there = Some(new.to_vec());
        }
        part.map_or(Ok(()), |_| Err(no_room()))
    }
}

/// What was done before a write failed.
#[derive(Debug, Default)]
struct Ended {
    of_cem: Option<Vec<u8>>,
    destroyed: bool,
    rewrapped: bool,
}

fn work_until_it_fails(ring: &Keyring, ended: &mut Ended) -> Result<()> {
    ring.enroll(["cem"])?;
    ended.of_cem = Some(sealed(ring, "cem"));
    ring.add_slot(&ring.user_token("ann"))?;
    ring.destroy(&ring.user_token("bob"), 2)?;
    ended.destroyed = true;
    ring.rewrap(ring.rewrapped(&key(2))?)?;
    ended.rewrapped = true;
    Ok(())
}

#[test]
fn a_keyring_that_cannot_be_written_says_so_and_keeps_every_key_it_gave() {
    let mut failures = 0;
    for eighths in [0, 1, 4, 7, 8] {
        for writes in 0.. {
            let disk = Failing::default();
            let ring = Keyring::create_on(Box::new(disk.clone()), &key(1), ID).unwrap();
            ring.enroll(["ann", "bob"]).unwrap();
            let (of_ann, of_bob) = (sealed(&ring, "ann"), sealed(&ring, "bob"));
            disk.fail_after(writes, eighths);
            let mut ended = Ended::default();
            let worked = work_until_it_fails(&ring, &mut ended);
            if !disk.has_failed() {
                worked.unwrap();
                break;
            }
            failures += 1;
            assert_eq!(code(worked), Some("ERR_IO"), "write {writes}, {eighths} eighths");
            let open_with = |byte| Keyring::open_on(Box::new(disk.clone()), &key(byte));
            let opens = [1, 2].map(|byte| open_with(byte).is_ok());
            assert!(opens[0] != opens[1], "one key opens it: {opens:?}");
            assert!(!ended.rewrapped || opens[1], "{opens:?}");
            let ring = open_with(if opens[0] { 1 } else { 2 }).unwrap().unwrap();
            let all = ring.all_user_keys("ann").unwrap();
            let told = format!("write {writes}, {eighths} eighths, {ended:?}");
            assert!(all.iter().any(|holder| holder.data.open(b"row", &of_ann).is_some()), "{told}");
            if let Some(of_cem) = &ended.of_cem {
                assert_eq!(opened(&ring, "cem", of_cem).unwrap(), b"body", "{told}");
            }
            if ended.destroyed {
                assert_eq!(opened(&ring, "bob", &of_bob), None, "{told}");
            }
            // It goes on.
            ring.enroll(["dan"]).unwrap();
            assert!(
                open_with(if opens[0] { 1 } else { 2 }).unwrap().unwrap().user_keys("dan").is_ok()
            );
        }
    }
    assert!(failures > 10, "{failures}");
}
