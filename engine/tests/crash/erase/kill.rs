//! A process that erases is killed at any moment: what it was told holds, what is left is scrubbed when
//! the store is next open, and nobody else loses anything.

use std::fs;
use std::path::Path;

use grainstore::{EraseOptions, Store};
use tempfile::TempDir;

use crate::erase::child;
use crate::erase::kit::{ANN, World, found_in, open, open_encrypted, operator};

/// How long a process lives from the moment it begins to erase, in milliseconds.
const LIVES_MS: [u64; 16] = [0, 2, 4, 6, 9, 12, 16, 20, 25, 30, 40, 55, 75, 110, 160, 240];
#[test]
fn an_erasure_that_is_killed_goes_on_when_the_store_is_next_open() {
    erase_and_kill(
        "erase::kill::an_erasure_that_is_killed_goes_on_when_the_store_is_next_open",
        open,
        &["grains.redb", "index.redb"],
    );
}

#[test]
fn an_erasure_of_an_encrypted_store_that_is_killed_goes_on_when_it_is_next_open() {
    erase_and_kill(
        "erase::kill::an_erasure_of_an_encrypted_store_that_is_killed_goes_on_when_it_is_next_open",
        open_encrypted,
        &["grains.redb", "index.redb", "keyring"],
    );
}

/// Erases in processes that are killed, in a store of these files that is opened so. In such a process it
/// is the test of this name that erases.
fn erase_and_kill(name: &str, open: fn(&Path) -> Store, files: &[&str]) {
    if let Some(directory) = child::store_of_child() {
        let store = open(Path::new(&directory));
        child::begin();
        operator(&store).erase_user(ANN, "ann asked", &EraseOptions::new().now(true)).unwrap();
        child::told(ANN);
        return;
    }
    let (filled, mut erased, mut cut_short) = (TempDir::new().unwrap(), 0, 0);
    let store = open(filled.path());
    let world = World::of(&store, 7);
    store.close().unwrap();
    let lives = child::lives(&LIVES_MS);
    for life in &lives {
        let dir = TempDir::new().unwrap();
        for file in files {
            fs::copy(filled.path().join(file), dir.path().join(file)).unwrap();
        }
        let told = !child::kill_after(name, dir.path(), *life).is_empty();
        let store = open(dir.path());
        let stats = store.stats().unwrap();
        if told || stats.erased_users > 0 {
            erased += 1;
            cut_short += usize::from(stats.unscrubbed > 0);
            world.assert_ann_is_gone(&store);
            world.assert_bob_is_whole(&store);
            store.scrub().unwrap();
        } else {
            operator(&store).get(&world.of_ann[0]).unwrap();
            operator(&store).erase_user(ANN, "again", &EraseOptions::new().now(true)).unwrap();
        }
        world.assert_ann_is_gone(&store);
        world.assert_bob_is_whole(&store);
        store.close().unwrap();
        assert_eq!(found_in(dir.path(), &world.canaries), [], "killed after {life} ms");
        let left: Vec<_> = crate::erase::kit::files(dir.path()).into_keys().collect();
        assert!(left.iter().all(|name| !name.ends_with(".old")), "{left:?}");
    }
    println!("killed {}: {erased} had erased, {cut_short} had not scrubbed", lives.len());
    child::assert_some_were_cut_short(cut_short);
    assert!(erased > 0, "no process came to erase anything");
}
