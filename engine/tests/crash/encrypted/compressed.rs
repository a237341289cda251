//! Stores that compress what they keep, encrypted and not: the same answers from fewer bytes.

use grainstore::cal::Query;
use grainstore::{ContentAddress, EraseOptions, MasterKey, OpenOptions, SessionOptions, Store};
use redb::{ReadableDatabase, ReadableTable};
use tempfile::TempDir;

use super::world::{KEY, LOG, World, as_user, asked, belief, turn};

/// How it is opened: with a key or without.
fn options(encrypted: bool) -> OpenOptions {
    let options = OpenOptions::new().create(true);
    if encrypted { options.key(MasterKey::new(KEY)) } else { options }
}

fn world(options: &OpenOptions) -> World {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path(), options).unwrap();
    World { dir, store }
}

fn reopened(world: World, options: &OpenOptions) -> World {
    world.store.close().unwrap();
    World { store: Store::open(world.dir.path(), options).unwrap(), dir: world.dir }
}

/// Writes what two people say; gives where it lies, in turns.
fn talk(world: &World) -> Vec<ContentAddress> {
    let operator = world.operator();
    let put = |at: i64| {
        let (user, words) = if at % 2 == 0 { ("ann", "black tea") } else { ("bob", "green tea") };
        let words = format!("I had {words} in the morning, that is number {at}. What about you?");
        operator.put(turn(user, "session-1", &words, 1000 + at)).unwrap().address()
    };
    (0..60).map(put).collect()
}

/// Bytes before the envelope in a row of the log: the audit entry that brought the grain, in a plain store.
fn head_bytes(row: &[u8]) -> usize {
    match row {
        [2, ..] => {
            let length = row[13..17].try_into().unwrap();
            17 + usize::try_from(u32::from_be_bytes(length)).unwrap()
        }
        _ => 0,
    }
}

/// The envelopes in the log of a closed store.
fn rows(world: &World) -> Vec<Vec<u8>> {
    let db = redb::Database::open(world.dir.path().join("grains.redb")).unwrap();
    let log = db.begin_read().unwrap().open_table(LOG).unwrap();
    let rows = log.iter().unwrap().map(|row| row.unwrap().1.value().to_vec());
    rows.map(|row| row[head_bytes(&row)..].to_vec()).collect()
}

fn length(rows: &[Vec<u8>]) -> usize {
    rows.iter().map(Vec::len).sum()
}

#[test]
fn a_store_that_compresses_answers_as_one_that_does_not_from_fewer_bytes() {
    for encrypted in [false, true] {
        let (as_it_is, compressed) =
            (world(&options(encrypted)), world(&options(encrypted).compress(true)));
        let addresses = talk(&as_it_is);
        assert_eq!(talk(&compressed), addresses, "addresses never change");
        assert!(!as_it_is.store.stats().unwrap().compressed);
        // It is kept, and need not be said again.
        let compressed = reopened(compressed, &options(encrypted));
        assert!(compressed.store.stats().unwrap().compressed);
        for address in &addresses {
            let blob = |world: &World| world.operator().get(address).unwrap().blob;
            assert_eq!(blob(&compressed), blob(&as_it_is));
        }
        for words in ["black", "number 7", "coffee"] {
            let query = Query::default().searching(words);
            let of = |world: &World| asked(&world.user("ann"), &query);
            assert_eq!(of(&compressed), of(&as_it_is), "{words}");
        }
        let verified = compressed.store.verify(true).unwrap();
        assert!(verified.problems.is_empty(), "{:?}", verified.problems);
        compressed.store.close().unwrap();
        as_it_is.store.close().unwrap();
        let (shorter, longer) = (rows(&compressed), rows(&as_it_is));
        let protection = if encrypted { 3 } else { 2 };
        assert!(shorter.iter().all(|row| row[..2] == [1, protection]));
        assert!(length(&shorter) * 10 < length(&longer) * 9, "a tenth less at least");
    }
}

#[test]
fn it_may_be_said_otherwise_at_any_opening() {
    for encrypted in [false, true] {
        let world = world(&options(encrypted));
        let operator = world.operator();
        let first = operator.put(belief(Some("ann"), "ann", "black tea", 1)).unwrap().address();
        let world = reopened(world, &options(encrypted).compress(true));
        let operator = world.operator();
        let second = operator.put(belief(Some("ann"), "ann", "green tea", 2)).unwrap().address();
        let world = reopened(world, &options(encrypted).compress(false));
        let operator = world.operator();
        let third = operator.put(belief(Some("ann"), "ann", "white tea", 3)).unwrap().address();
        assert!(!world.store.stats().unwrap().compressed);
        for address in [first, second, third] {
            assert_eq!(operator.get(&address).unwrap().address, address);
        }
        world.store.close().unwrap();
        let kinds: Vec<u8> = rows(&world).iter().map(|row| row[1]).collect();
        let plain = u8::from(encrypted);
        assert_eq!(kinds, [plain, plain | 2, plain]);
    }
}

#[test]
fn erasing_takes_what_is_compressed() {
    for encrypted in [false, true] {
        let world = world(&options(encrypted).compress(true));
        let addresses = talk(&world);
        let world = reopened(world, &options(encrypted));
        world.store.close().unwrap();
        let theirs: Vec<_> =
            rows(&world).into_iter().step_by(2).map(|row| row[6..].to_vec()).collect();
        let store = Store::open(world.dir.path(), &options(encrypted)).unwrap();
        let world = World { store, dir: world.dir };
        let has = |world: &World, part: &[u8]| {
            world.files().values().any(|file| file.windows(part.len()).any(|bytes| bytes == part))
        };
        assert!(theirs.iter().all(|row| has(&world, row)), "the scan finds them");
        let how = EraseOptions::new().now(true);
        assert_eq!(world.operator().erase_user("ann", "asked to", &how).unwrap().erased, 30);
        world.store.close().unwrap();
        assert!(!theirs.iter().any(|row| has(&world, row)));
        let store = Store::open(world.dir.path(), &options(encrypted)).unwrap();
        let session = store.session(SessionOptions::default());
        for (at, address) in addresses.iter().enumerate() {
            let erased = session.get(address).map_err(|error| error.code()).err();
            assert_eq!(erased, (at % 2 == 0).then_some("ERR_ERASED"));
        }
        assert!(store.verify(true).unwrap().problems.is_empty());
    }
}

#[test]
fn a_changed_byte_is_found_wherever_it_is() {
    for encrypted in [false, true] {
        let world = world(&options(encrypted).compress(true));
        let addresses = talk(&world);
        world.store.close().unwrap();
        let row = rows(&world).swap_remove(0);
        // Of the head, of the frame, and of its end; the slot is somebody else's or nobody's then.
        for at in [1, 5, 6, 20, row.len() - 1] {
            world.change_row(1, |row| row[head_bytes(row) + at] ^= 3);
            let store = Store::open(world.dir.path(), &options(encrypted)).unwrap();
            let session = store.session(SessionOptions::default());
            let code = session.get(&addresses[0]).map_err(|error| error.code()).err();
            let codes = ["ERR_INTEGRITY", "ERR_ERASED", "ERR_STORE_VERSION"];
            assert!(code.is_some_and(|code| codes.contains(&code)), "byte {at}: {code:?}");
            assert_eq!(session.get(&addresses[1]).unwrap().address, addresses[1]);
            drop(session);
            store.close().unwrap();
            world.change_row(1, |row| row[head_bytes(row) + at] ^= 3);
        }
    }
}

#[test]
fn another_key_a_backup_and_a_compaction_keep_it() {
    let world = world(&options(true).compress(true));
    let addresses = talk(&world);
    let count = world.store.rotate_user_key("ann").unwrap();
    assert_eq!(count, 30);
    world.store.compact().unwrap();
    let copy = TempDir::new().unwrap();
    let to = copy.path().join("copy");
    world.store.backup(&to).unwrap();
    let store = Store::open(&to, &options(true)).unwrap();
    assert!(store.stats().unwrap().compressed);
    let ann = as_user(&store, "ann");
    assert_eq!(ann.get(&addresses[0]).unwrap().address, addresses[0]);
    assert_eq!(asked(&ann, &Query::default().searching("black")).map(|found| found.len()), Ok(30));
    world.store.close().unwrap();
    assert!(rows(&world).iter().all(|row| row[..2] == [1, 3]));
}
