//! After an erasure that is scrubbed no file of the store has a word of whoever was erased.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use grainstore::embed::Metric;
use grainstore::{EraseOptions, OpenOptions, Store};
use tempfile::TempDir;

use crate::erase::kit::{
    ANN, BOB, Slow, World, belief, files, found, found_in, open, operator, put,
};

/// Grains that make the full text worth saving.
const MANY: i64 = 80;

/// A store with both people in it, its full text saved.
fn filled(dir: &TempDir) -> (Store, World) {
    let store = open(dir.path());
    let world = World::of(&store, 1);
    let session = operator(&store);
    for at in 0..MANY {
        put(&session, belief(BOB, &format!("number {at}"), 5000 + at, ""));
    }
    assert!(!found(&session, world.spoken()).is_empty());
    store.flush().unwrap();
    (store, world)
}

/// The files of the full text, by their bytes.
fn segments(dir: &TempDir) -> BTreeSet<Vec<u8>> {
    let files = files(dir.path()).into_iter();
    files.filter(|(name, _)| name.ends_with(".seg")).map(|(_, bytes)| bytes).collect()
}

#[test]
fn no_file_has_a_word_of_who_was_erased() {
    let dir = TempDir::new().unwrap();
    let (store, world) = filled(&dir);
    let before = found_in(dir.path(), &world.canaries);
    for word in &world.canaries {
        assert!(before.iter().any(|(_, found)| found == word), "{word} was never there");
    }
    for part in ["grains.redb", "index.redb"] {
        assert!(before.iter().any(|(name, _)| name.contains(part)), "{part} has no word");
    }
    // The lists of words under text/ are packed, so no word of them can be read: none may stay.
    let segments = segments(&dir);
    assert!(!segments.is_empty());
    let erased =
        operator(&store).erase_user(ANN, "ann asked", &EraseOptions::new().now(true)).unwrap();
    assert_eq!(erased.erased, world.of_ann.len() as u64);
    assert!(erased.scrubbed);
    assert_eq!(store.stats().unwrap().unscrubbed, 0);
    world.assert_ann_is_gone(&store);
    world.assert_bob_is_whole(&store);
    store.close().unwrap();
    assert_eq!(found_in(dir.path(), &world.canaries), []);
    assert!(self::segments(&dir).is_disjoint(&segments));
    let store = open(dir.path());
    world.assert_ann_is_gone(&store);
    world.assert_bob_is_whole(&store);
    assert_eq!(found(&operator(&store), world.spoken()), []);
}

#[test]
fn a_store_that_is_closed_leaves_nothing_to_scrub() {
    let dir = TempDir::new().unwrap();
    let (store, world) = filled(&dir);
    let erased = operator(&store).erase_user(ANN, "ann asked", &EraseOptions::new()).unwrap();
    assert_eq!(erased.erased, world.of_ann.len() as u64);
    world.assert_ann_is_gone(&store);
    assert_eq!(found(&operator(&store), world.spoken()), []);
    store.close().unwrap();
    assert_eq!(found_in(dir.path(), &world.canaries), []);
    let store = open(dir.path());
    assert_eq!(store.stats().unwrap().unscrubbed, 0);
    world.assert_ann_is_gone(&store);
    world.assert_bob_is_whole(&store);
}

/// Another name in a directory for every file of a store.
fn link_all(store: &Path, to: &Path) -> Vec<PathBuf> {
    let mut links = Vec::new();
    for name in files(store).into_keys() {
        let name = PathBuf::from(name);
        let link = to.join(name.file_name().unwrap());
        fs::hard_link(&name, &link).unwrap();
        links.push(link);
    }
    links
}

#[test]
fn what_gives_way_before_the_scrub_is_overwritten_as_well() {
    type Work = fn(&Store);
    let compact: Work = |store| _ = store.compact().unwrap();
    let reindex: Work = |store| _ = store.reindex().unwrap();
    for (work, works) in
        [("compact", vec![compact]), ("reindex", vec![reindex]), ("both", vec![compact, reindex])]
    {
        let (dir, beside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let (store, world) = filled(&dir);
        let links = link_all(dir.path(), beside.path());
        let had = found_in(beside.path(), &world.canaries);
        for part in ["grains.redb", "index.redb"] {
            assert!(had.iter().any(|(name, _)| name.contains(part)), "{part} has no word");
        }
        operator(&store).erase_user(ANN, "ann asked", &EraseOptions::new()).unwrap();
        works.iter().for_each(|work| work(&store));
        store.scrub().unwrap();
        world.assert_ann_is_gone(&store);
        world.assert_bob_is_whole(&store);
        // The lists of words are packed: where one has a byte, it may be of a word.
        let packed = links.iter().filter(|link| link.extension().is_some_and(|end| end == "seg"));
        let packed: Vec<_> = packed.collect();
        assert!(!packed.is_empty());
        for link in packed {
            assert!(fs::read(link).unwrap().iter().all(|byte| *byte == 0), "{work}: {link:?}");
        }
        assert_eq!(found_in(beside.path(), &world.canaries), [], "{work}");
        store.close().unwrap();
        assert_eq!(found_in(dir.path(), &world.canaries), [], "{work}");
        assert_eq!(found_in(beside.path(), &world.canaries), [], "{work}");
    }
}

#[test]
fn no_backup_has_a_word_of_who_was_erased() {
    let (dir, beside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (store, world) = filled(&dir);
    operator(&store).erase_user(ANN, "ann asked", &EraseOptions::new()).unwrap();
    let backup = beside.path().join("backup");
    store.backup(&backup).unwrap();
    assert_eq!(found_in(&backup, &world.canaries), []);
    let store = open(&backup);
    world.assert_ann_is_gone(&store);
    world.assert_bob_is_whole(&store);
}

#[test]
fn a_vector_that_comes_after_the_erasure_is_not_kept() {
    let dir = TempDir::new().unwrap();
    let (slow, gate) = Slow::new();
    let options = OpenOptions::new().create(true).embedder(Arc::new(slow), Metric::Cosine);
    let store = Store::open(dir.path(), &options).unwrap();
    let session = operator(&store);
    let erased = [belief(ANN, "tea", 1, ""), belief(ANN, "coffee", 2, "")];
    let erased = erased.map(|grain| put(&session, grain));
    gate.was_given();
    session.erase(&erased[0], "one of them", &EraseOptions::new()).unwrap();
    session.erase_user(ANN, "all of her", &EraseOptions::new()).unwrap();
    gate.open();
    put(&session, belief(BOB, "milk", 3, ""));
    assert!(store.wait_for_vectors(Duration::from_secs(20)).unwrap());
    store.scrub().unwrap();
    assert_eq!(store.stats().unwrap().rows.get("vectors"), Some(&1));
}

#[test]
fn grains_that_are_erased_one_by_one_leave_the_disk_as_well() {
    let dir = TempDir::new().unwrap();
    let (store, world) = filled(&dir);
    let session = operator(&store);
    for address in &world.of_ann {
        let erased = session.erase(address, "one by one", &EraseOptions::new()).unwrap();
        assert_eq!(erased.erased, 1);
    }
    world.assert_ann_is_gone(&store);
    assert_eq!(found(&session, world.spoken()), []);
    store.scrub().unwrap();
    world.assert_bob_is_whole(&store);
    drop(session);
    store.close().unwrap();
    assert_eq!(found_in(dir.path(), &world.canaries), []);
    let store = open(dir.path());
    world.assert_ann_is_gone(&store);
    world.assert_bob_is_whole(&store);
}
