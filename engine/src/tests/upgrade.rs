//! A store of an earlier format is upgraded whole or not at all, wherever the power goes; one of a later
//! format is refused by its number.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use grainstore_format::{BeliefBuilder, ContentAddress, EpochMs};
use grainstore_index::Sequence;
use redb::{Database, ReadableDatabase, ReadableTable, ReadableTableMetadata};

use super::disk::{Cut, Disk, Event, Fault, Image};
use super::power_cut::replay;
use super::{START_MS, clock_at, open};
use crate::disk::keyring::Keyring;
use crate::disk::layout::{self, RowKey, Stub};
use crate::disk::vault::Vault;
use crate::state::audit_rows::AuditRows;
use crate::{AuditEntry, EraseOptions, MasterKey, OpenOptions, Result, SessionOptions, Store};

/// Any time after the fixture was written.
const LATER_MS: i64 = 2 * START_MS;

/// A grain: its address, its blob, its state.
type Kept = (ContentAddress, Vec<u8>, String);

/// The key of the encrypted fixtures.
const FIXTURE_KEY: [u8; 32] = [9; 32];

/// The committed store of a format.
fn former(format: u32) -> Image {
    let name = format!("format-{format}");
    Image { truth: unpacked(&name, "grains.redb"), index: unpacked(&name, "index.redb") }
}

/// The same of an encrypted one, whose keyring goes into a directory.
fn former_keyed(format: u32, keyring: &Path) -> Image {
    let name = format!("format-{format}-encrypted");
    fs::write(keyring.join("keyring"), unpacked(&name, "keyring")).unwrap();
    Image { truth: unpacked(&name, "grains.redb"), index: unpacked(&name, "index.redb") }
}

/// A file of a fixture.
fn unpacked(fixture: &str, file: &str) -> Vec<u8> {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(fixture);
    let packed = fs::read(from.join(format!("{file}.zst"))).unwrap();
    zstd::bulk::decompress(&packed, 16 << 20).unwrap()
}

/// The stamp of a store as it lies on the disk, and the entries of its audit log.
fn stamp(image: Image) -> (u32, u64) {
    let db = Database::builder().create_with_backend(Disk::new(image).truth()).unwrap();
    let txn = db.begin_read().unwrap();
    let meta = txn.open_table(layout::META).unwrap();
    let stamp = meta.get(layout::META_FORMAT).unwrap().unwrap().value().try_into().unwrap();
    let audit = txn.open_table(layout::AUDIT).unwrap();
    let log = txn.open_table(layout::LOG).unwrap();
    let is_plain = meta.get(layout::META_ENCRYPTED).unwrap().is_none();
    let head = AuditRows::new(&audit, is_plain.then_some(&log)).head().unwrap();
    (u32::from_be_bytes(stamp), head.count)
}

/// The same store with another stamp.
fn stamped(image: Image, format: u32) -> Image {
    let disk = Disk::new(image);
    let db = Database::builder().create_with_backend(disk.truth()).unwrap();
    let txn = db.begin_write().unwrap();
    let mut meta = txn.open_table(layout::META).unwrap();
    meta.insert(layout::META_FORMAT, format.to_be_bytes().as_slice()).unwrap();
    drop(meta);
    txn.commit().unwrap();
    drop(db);
    disk.live()
}

/// All a store says: its grains with their states, and its audit log.
fn told(store: &Store) -> (Vec<Kept>, Vec<AuditEntry>) {
    let session = store.session(SessionOptions::default());
    let entries = session.audit(None, 1_000).unwrap();
    let mut addresses: Vec<_> = entries.iter().flat_map(|entry| entry.subjects.clone()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    let grains = addresses.into_iter().filter_map(|address| {
        let stored = session.get(&address).ok()?;
        Some((address, stored.blob, format!("{:?}", stored.state)))
    });
    (grains.collect(), entries)
}

#[test]
fn an_upgrade_is_done_whole_or_not_at_all_wherever_the_power_goes() {
    let plain = |disk: &Disk| open(disk, &clock_at(LATER_MS));
    (1..layout::FORMAT_VERSION)
        .for_each(|format| cut_power_over_upgrade(format, &former(format), &plain));
}

#[test]
fn an_upgrade_of_an_encrypted_store_is_done_whole_or_not_at_all_wherever_the_power_goes() {
    let dir = tempfile::TempDir::new().unwrap();
    // The first format with an encrypted fixture.
    for format in 2..layout::FORMAT_VERSION {
        let former = former_keyed(format, dir.path());
        let keyed = |disk: &Disk| open_keyed(disk, dir.path(), FIXTURE_KEY);
        cut_power_over_upgrade(format, &former, &keyed);
    }
}

fn cut_power_over_upgrade(format: u32, former: &Image, open: &dyn Fn(&Disk) -> Result<Store>) {
    let (found, entries) = stamp(former.clone());
    assert_eq!(found, format);
    let disk = Disk::recording(former.clone());
    let store = open(&disk).unwrap();
    let (grains, audit) = told(&store);
    assert!(grains.len() >= 12);
    store.close().unwrap();
    let (mut before, mut after) = (0, 0);
    replay(former, &disk.story(), |event, moment| {
        if !matches!(event, Some(Event::Synced(_)) | None) {
            return;
        }
        for cut in [Cut::Dropped, Cut::Torn(before + after), Cut::Torn(7), Cut::Applied] {
            let image = cut.image(moment.synced, moment.unsynced);
            match stamp(image.clone()) {
                (stamp, found) if (stamp, found) == (format, entries) => before += 1,
                (layout::FORMAT_VERSION, found) if found == entries + 1 => after += 1,
                halved => panic!("{cut:?}: {halved:?}"),
            }
            let disk = Disk::new(image);
            let store = open(&disk).unwrap();
            assert_eq!(store.stats().unwrap().format, layout::FORMAT_VERSION);
            assert_eq!(told(&store), (grains.clone(), audit.clone()), "{cut:?}");
            assert_eq!(store.verify(true).unwrap().problems, []);
            store.close().unwrap();
        }
    });
    println!("upgrade from {format}: {before} cuts before it, {after} after it");
    assert!(before > 0 && after > 0);
}

#[test]
fn an_upgrade_that_the_disk_does_not_take_leaves_the_store_as_it_was_or_upgraded() {
    (1..layout::FORMAT_VERSION).for_each(fail_upgrade);
}

fn fail_upgrade(format: u32) {
    let former = former(format);
    let (_, entries) = stamp(former.clone());
    let mut failures = 0;
    for number in 1.. {
        let disk = Disk::failing(former.clone(), Fault::From(number));
        let opened = open(&disk, &clock_at(LATER_MS)).map(|store| store.close());
        if !disk.has_failed() {
            opened.unwrap().unwrap();
            break;
        }
        failures += 1;
        if let Err(error) = opened {
            assert_eq!(error.code(), "ERR_IO", "operation {number}: {error}");
        }
        for cut in [Cut::Dropped, Cut::Applied] {
            let left = stamp(disk.after(cut));
            assert!(
                [(format, entries), (layout::FORMAT_VERSION, entries + 1)].contains(&left),
                "{number}, {cut:?}: {left:?}"
            );
        }
    }
    assert!(failures > 10, "{failures}");
}

#[test]
fn a_store_of_a_later_format_is_refused_by_its_number() {
    for format in [layout::FORMAT_VERSION + 1, 77, 0, u32::MAX] {
        let image = stamped(former(1), format);
        let disk = Disk::new(image.clone());
        let refused = open(&disk, &clock_at(LATER_MS)).map(|_| ()).unwrap_err();
        assert_eq!(refused.code(), "ERR_STORE_VERSION");
        assert!(refused.to_string().contains(&format!("store format {format} ")), "{refused}");
        assert_eq!(stamp(disk.live()).0, format, "it was left as it is");
    }
}

/// The keys of an encrypted store on a disk in memory, whose keyring lies in a directory.
fn keys_in(directory: &Path, key: [u8; 32]) -> Vault {
    let keyring = Keyring::open(directory, &MasterKey::new(key)).unwrap().unwrap();
    Vault::with_keyring(Arc::new(keyring))
}

fn open_keyed(disk: &Disk, keyring: &Path, key: [u8; 32]) -> Result<Store> {
    let options = OpenOptions::new().clock(clock_at(LATER_MS));
    let backends = (|| disk.truth(), || disk.index());
    Store::on_keyed_backends(backends, &keys_in(keyring, key), &options)
}

/// Grains of people of whom one was erased.
fn fill_keyed(store: &Store) -> [ContentAddress; 2] {
    let session = store.session(SessionOptions::default());
    let addresses = ["ann", "bob"].map(|user| {
        let grain = BeliefBuilder::new(EpochMs::new(1), user, "likes", "tea", 1.0).user_id(user);
        session.put(grain.build().unwrap()).unwrap().address()
    });
    let newer = BeliefBuilder::new(EpochMs::new(2), "bob", "likes", "tea", 0.5).user_id("bob");
    session.supersede(&addresses[1], newer.build().unwrap(), None).unwrap();
    session.erase_user("ann", "ann asked", &EraseOptions::new().now(true)).unwrap();
    addresses
}

/// The slots that the truth says are destroyed.
fn marked(image: Image) -> u64 {
    let db = Database::builder().create_with_backend(Disk::new(image).truth()).unwrap();
    let txn = db.begin_read().unwrap();
    txn.open_table(layout::DESTROYED).map_or(0, |table| table.len().unwrap())
}

/// As a store of format 1 was: it has no list of the slots that are destroyed and no sums of its rows.
fn without_marks(image: Image, vault: &Vault) -> Image {
    let disk = Disk::new(image);
    let db = Database::builder().create_with_backend(disk.truth()).unwrap();
    let txn = db.begin_write().unwrap();
    assert!(txn.delete_table(layout::DESTROYED).unwrap());
    let mut log = txn.open_table(layout::LOG).unwrap();
    let rows: Vec<_> = log.iter().unwrap().map(Result::unwrap).collect();
    let stubs: Vec<_> = rows
        .iter()
        .filter(|(_, row)| Stub::is_stub(row.value()))
        .map(|(at, row)| {
            let at = Sequence::new(at.value());
            (at, Stub::open(at, row.value(), vault).unwrap().seal(at, &Vault::default()))
        })
        .collect();
    drop(rows);
    for (at, stub) in &stubs {
        log.insert(at.get(), stub.as_slice()).unwrap();
    }
    assert_eq!(stubs.len(), 1);
    assert!(txn.delete_table(layout::ERASED).unwrap());
    drop(log);
    let mut meta = txn.open_table(layout::META).unwrap();
    assert!(meta.remove(layout::META_ROW_SUMS).unwrap().is_some());
    let row = meta.get(layout::META_AUDIT_KEY).unwrap().unwrap().value().to_vec();
    let key = vault.open_audit_key(RowKey::AUDIT_KEY, &row).unwrap();
    let row = vault.seal(RowKey::AUDIT_KEY_1, &key, &vault.store_key()).unwrap();
    meta.insert(layout::META_AUDIT_KEY, row.as_slice()).unwrap();
    drop(meta);
    txn.commit().unwrap();
    drop(db);
    disk.live()
}

/// The key of the store that the next test makes.
const KEY: [u8; 32] = [7; 32];

#[test]
fn an_upgrade_that_marks_destroyed_keys_is_done_whole_or_not_at_all() {
    let dir = tempfile::TempDir::new().unwrap();
    Keyring::create(dir.path(), &MasterKey::new(KEY), [5; 16]).unwrap();
    let disk = Disk::default();
    let store = open_keyed(&disk, dir.path(), KEY).unwrap();
    let [ann, bob] = fill_keyed(&store);
    store.close().unwrap();
    assert_eq!(marked(disk.live()), 1);
    let former = stamped(without_marks(disk.live(), &keys_in(dir.path(), KEY)), 1);
    let (_, entries) = stamp(former.clone());
    let disk = Disk::recording(former.clone());
    open_keyed(&disk, dir.path(), KEY).unwrap().close().unwrap();
    let (mut before, mut after) = (0, 0);
    replay(&former, &disk.story(), |event, moment| {
        if !matches!(event, Some(Event::Synced(_)) | None) {
            return;
        }
        for cut in [Cut::Dropped, Cut::Torn(before + after), Cut::Torn(7), Cut::Applied] {
            let image = cut.image(moment.synced, moment.unsynced);
            match (stamp(image.clone()), marked(image.clone())) {
                ((1, found), 0) if found == entries => before += 1,
                ((layout::FORMAT_VERSION, found), 1) if found == entries + 1 => after += 1,
                halved => panic!("{cut:?}: {halved:?}"),
            }
            let disk = Disk::new(image);
            let store = open_keyed(&disk, dir.path(), KEY).unwrap();
            assert_eq!(
                (store.stats().unwrap().format, marked(disk.live())),
                (layout::FORMAT_VERSION, 1)
            );
            let session = store.session(SessionOptions::default());
            assert_eq!(session.get(&ann).map(drop).unwrap_err().code(), "ERR_ERASED", "{cut:?}");
            assert!(session.get(&bob).is_ok(), "{cut:?}");
            assert_eq!(store.verify(true).unwrap().problems, [], "{cut:?}");
            store.close().unwrap();
        }
    });
    println!("upgrade of an encrypted store: {before} cuts before it, {after} after it");
    assert!(before > 0 && after > 0);
}
