//! Encrypted stores: nothing can be read or tested without the key, rows are under the key of whom they belong to,
//! and whoever changes them without the key is found out.

use redb::WriteTransaction;
use sha2::{Digest, Sha256};

use super::*;
use crate::EraseOptions;
use crate::disk::layout::{EncryptedEnvelope, RowOwner};

/// The slots of the keyring that the rows of a closed store are under.
fn slots(path: &Path) -> Vec<u32> {
    let slot = |row: Vec<u8>| {
        let (_, envelope) = RowOwner::split(&row).unwrap();
        EncryptedEnvelope::parse(envelope).unwrap().unwrap().slot
    };
    let mut slots: Vec<_> = raw_rows(path).into_iter().map(slot).collect();
    slots.sort_unstable();
    slots
}

fn fill(session: &Session) -> ContentAddress {
    let rows = [user(ANN), user(BOB), Owner::Store].into_iter().zip(1_u64..);
    let rows = rows.map(|(owner, number)| RowChange::put(APP, 1, number, SECRET).owner(owner));
    session.write_rows(rows).unwrap();
    session.put_row(APP, 1, SECRET, SECRET, user(BOB)).unwrap();
    session.put_side_blob(SECRET, user(BOB)).unwrap()
}

#[test]
fn nothing_can_be_read_or_tested_without_the_key() {
    for encrypted in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path(), encrypted);
        let address = fill(&operator(&store));
        store.close().unwrap();
        let hash = |bytes: &[u8]| Sha256::digest(bytes).to_vec();
        let plain = [APP.as_bytes().to_vec(), SECRET.to_vec(), address.as_bytes().to_vec()];
        for part in &plain {
            assert_eq!(files_with(dir.path(), part).is_empty(), encrypted, "the scan finds it");
        }
        for part in [hash(APP.as_bytes()), hash(BOB.as_bytes())] {
            assert_eq!(files_with(dir.path(), &part), [""; 0]);
        }
        if encrypted {
            assert_eq!(slots(dir.path()), [0, 1, 2, 2, 2, 2]);
        }
    }
}

#[test]
fn rows_follow_the_key_of_their_user() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), true);
    let session = operator(&store);
    let address = fill(&session);
    session.put_side_blob(large(4), user(BOB)).unwrap();
    assert!(store.rotate_user_key(BOB).unwrap() >= 8);
    store.rotate_key(MasterKey::new([8; 32])).unwrap();
    drop(session);
    store.close().unwrap();
    assert_eq!(slots(dir.path()), [0, 1, 3, 3, 3, 3, 3, 3, 3, 3]);
    let store = Store::open(dir.path(), &OpenOptions::new().key(MasterKey::new([8; 32]))).unwrap();
    let session = operator(&store);
    assert_eq!(session.side_blob(&address, &user(BOB)).unwrap(), SECRET);
    assert_eq!(session.row(APP, 1, SECRET).unwrap(), Some(SECRET.to_vec()));
    assert_eq!(session.side_blob(&ContentAddress::of(&large(4)), &user(BOB)).unwrap(), large(4));
    assert_eq!(store.verify(true).unwrap().problems, []);
    let done = session.erase_user(BOB, "asked", &EraseOptions::new().now(true)).unwrap();
    assert_eq!((done.application.rows, done.application.blobs), (2, 2));
    drop(session);
    store.close().unwrap();
    assert_eq!(slots(dir.path()), [0, 1]);
}

/// Changes a table of a closed store.
fn tamper(path: &Path, definition: KeyedDefinition, change: impl FnOnce(&mut Table<'_>)) {
    let db = Database::open(path.join("grains.redb")).unwrap();
    let txn: WriteTransaction = db.begin_write().unwrap();
    change(&mut txn.open_table(definition).unwrap());
    txn.commit().unwrap();
}

type Table<'t> = redb::Table<'t, &'static [u8], &'static [u8]>;

#[test]
fn who_changes_rows_without_the_key_is_found_out() {
    let tables = [layout::BLOBS, layout::BLOB_CHUNKS, layout::APPLICATION_ROWS, layout::OWNED];
    for (number, table) in tables.into_iter().enumerate() {
        for change in 0..3 {
            let dir = tempfile::tempdir().unwrap();
            let store = open(dir.path(), true);
            let address = fill(&operator(&store));
            store.close().unwrap();
            let rows = raw(dir.path(), table);
            let (key, value) = rows.iter().next_back().unwrap();
            tamper(dir.path(), table, |table| match change {
                0 => drop(table.remove(key.as_slice()).unwrap()),
                1 => {
                    let other = [&key[..key.len() - 1], &[key[key.len() - 1] ^ 1]].concat();
                    table.insert(other.as_slice(), value.as_slice()).unwrap();
                }
                _ => {
                    let changed = match value.split_last() {
                        Some((last, rest)) => [rest, &[last ^ 1]].concat(),
                        None => vec![1],
                    };
                    table.insert(key.as_slice(), changed.as_slice()).unwrap();
                }
            });
            let store = open(dir.path(), true);
            assert!(!store.verify(true).unwrap().ok, "{number} {change}");
            let session = operator(&store);
            let blob = session.side_blob(&address, &user(BOB));
            // A chunk is told by the head of its blob, and one too many belongs to none.
            match (number, change) {
                (1, 1) => assert_eq!(blob.unwrap(), SECRET),
                _ => assert_eq!(code(blob), "ERR_INTEGRITY", "{number} {change}"),
            }
            if number != 1 {
                assert_eq!(code(session.row(APP, 1, 1)), "ERR_INTEGRITY");
                assert_eq!(
                    code(session.rows(APP, 2, &RowRange::Numbers(1..=9), 9)),
                    "ERR_INTEGRITY"
                );
            }
            // An erasure has to know all that belongs to a user, and to read nothing of it.
            let erased = session.erase_user(BOB, "asked", &EraseOptions::new().now(true));
            match number {
                3 => assert_eq!(code(erased), "ERR_INTEGRITY"),
                _ => assert!(erased.unwrap().scrubbed, "{number} {change}"),
            }
        }
    }
}

#[test]
fn verify_finds_what_is_damaged_in_a_plain_store() {
    for (table, change) in [
        (layout::BLOBS, 0),
        (layout::BLOBS, 1),
        (layout::BLOB_CHUNKS, 0),
        (layout::BLOB_CHUNKS, 1),
        (layout::APPLICATION_ROWS, 0),
        (layout::APPLICATION_ROWS, 1),
        (layout::OWNED, 0),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path(), false);
        let session = operator(&store);
        session.put_side_blob(large(5), user(BOB)).unwrap();
        session.put_row(APP, 1, 1, SECRET, user(BOB)).unwrap();
        drop(session);
        store.close().unwrap();
        let rows = raw(dir.path(), table);
        let (key, value) = rows.iter().next_back().unwrap();
        tamper(dir.path(), table, |table| match change {
            0 => drop(table.remove(key.as_slice()).unwrap()),
            _ => {
                let changed = [&value[..value.len() - 1], &[value[value.len() - 1] ^ 1]].concat();
                table.insert(key.as_slice(), changed.as_slice()).unwrap();
            }
        });
        let problems = open(dir.path(), false).verify(true).unwrap().problems;
        let kinds: Vec<_> = problems.iter().map(|problem| problem.what).collect();
        assert!(
            kinds.contains(&crate::ProblemKind::Application),
            "{} {change}",
            redb::TableHandle::name(&table)
        );
    }
}
