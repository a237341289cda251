//! The directory of an open store is moved, and another store is made where it was; the lock of an
//! open one is removed. Neither store loses anything, and nobody else comes in.

use std::fs;
use std::path::Path;

use grainstore::format::{ContentAddress, Grain};
use grainstore::{EraseOptions, MasterKey, OpenOptions, Store};
use tempfile::TempDir;

use crate::maintain::kit::{fill, filled, names, operator, try_open};

fn options(is_encrypted: bool) -> OpenOptions {
    let options = OpenOptions::new().create(true);
    if is_encrypted { options.key(MasterKey::new([7; 32])) } else { options }
}

fn of(user: &str, object: &str) -> Grain {
    let json = serde_json::json!({
        "type": "belief", "subject": user, "relation": "likes", "object": object,
        "confidence": 0.9, "created_at": 1, "user_id": user,
    });
    Grain::from_json(&json.to_string()).unwrap()
}

fn put(store: &Store, user: &str, object: &str) -> Result<ContentAddress, &'static str> {
    let put = operator(store).put(of(user, object));
    put.map(|put| put.address()).map_err(|error| error.code())
}

fn holds(path: &Path, is_encrypted: bool, kept: &[ContentAddress]) {
    let store = Store::open(path, &options(is_encrypted)).unwrap();
    let verified = store.verify(true).unwrap();
    assert!(verified.ok, "{}: {:?}", path.display(), verified.problems);
    for address in kept {
        assert!(operator(&store).get(address).is_ok(), "{} in {}", address, path.display());
    }
}

#[test]
fn a_store_that_was_moved_does_nothing_to_the_one_in_its_place() {
    for is_encrypted in [false, true] {
        for step in ["enroll", "compact", "reindex", "erase", "rotate", "close"] {
            moved(is_encrypted, step);
        }
    }
}

fn moved(is_encrypted: bool, step: &str) {
    let dir = TempDir::new().unwrap();
    let (here, there) = (dir.path().join("here"), dir.path().join("there"));
    let first = Store::open(&here, &options(is_encrypted)).unwrap();
    let mut of_first = vec![put(&first, "ann", "tea").unwrap()];
    fs::rename(&here, &there).unwrap();
    let second = Store::open(&here, &options(is_encrypted)).unwrap();
    let of_second: Vec<_> = ["zoe", "yan"].map(|user| put(&second, user, "tea").unwrap()).into();
    // Who has a key already is written for; the file is open.
    of_first.push(put(&first, "ann", "coffee").unwrap());
    let code = match step {
        "enroll" => put(&first, "bob", "tea").map(|address| of_first.push(address)).err(),
        "compact" => first.compact().map_err(|error| error.code()).err(),
        "reindex" => first.reindex().map_err(|error| error.code()).err(),
        "erase" => {
            of_first.clear();
            let erased = operator(&first).erase_user("ann", "asked to", &EraseOptions::new());
            let scrubbed = first.scrub().map_err(|error| error.code());
            erased.map_err(|error| error.code()).and(scrubbed).err()
        }
        "rotate" if is_encrypted => {
            first.rotate_key(MasterKey::new([8; 32])).map_err(|error| error.code()).err()
        }
        _ => None,
    };
    let needs_names = !["close", "rotate", "enroll"].contains(&step)
        || is_encrypted && ["rotate", "enroll"].contains(&step);
    assert_eq!(code.is_some(), needs_names, "{step} of {is_encrypted}: {code:?}");
    assert!(code.is_none_or(|code| code == "ERR_IO"), "{step}: {code:?}");
    second.compact().unwrap();
    for grain in &of_second {
        assert!(operator(&second).get(grain).is_ok(), "{step}");
    }
    let closed = first.close().map_err(|error| error.code());
    assert!(matches!(closed, Ok(()) | Err("ERR_IO")), "{step}: {closed:?}");
    second.close().unwrap();
    holds(&here, is_encrypted, &of_second);
    holds(&there, is_encrypted, &of_first);
}

#[test]
fn who_removes_the_lock_of_an_open_store_does_not_come_in_by_that() {
    let (dir, store) = filled(20);
    fs::remove_file(dir.path().join("LOCK")).unwrap();
    let copy = dir.path().join("grains.redb.new");
    fs::write(&copy, "a compaction of the store that is open").unwrap();
    let second = try_open(dir.path()).map_err(|error| error.code());
    assert_eq!(second.err(), Some("ERR_BUSY"));
    assert!(copy.exists(), "nothing of the open store was touched");
    fill(&store, 100..120);
    assert!(store.verify(true).unwrap().ok);
    store.close().unwrap();
    assert!(try_open(dir.path()).unwrap().verify(true).unwrap().ok);
    assert!(!names(dir.path()).contains("grains.redb.new"));
}

#[test]
fn a_store_that_was_moved_does_not_show_the_reads_of_the_one_in_its_place() {
    let dir = TempDir::new().unwrap();
    let (here, there) = (dir.path().join("here"), dir.path().join("there"));
    let first = Store::open(&here, &options(false)).unwrap();
    operator(&first).ask("RECALL beliefs").unwrap();
    assert_eq!(operator(&first).reads(None, 10).unwrap().len(), 1);
    fs::rename(&here, &there).unwrap();
    let second = Store::open(&here, &options(false)).unwrap();
    operator(&second).ask("RECALL beliefs ABOUT \"zoe\"").unwrap();
    operator(&second).ask("RECALL beliefs ABOUT \"yan\"").unwrap();
    assert_eq!(operator(&second).reads_head().unwrap().unwrap().0, 2);
    let shown = operator(&first).reads(None, 10).map_err(|error| error.code());
    assert_eq!(shown, Err("ERR_IO"));
    let head = operator(&first).reads_head().map_err(|error| error.code());
    assert_eq!(head, Err("ERR_IO"));
    let verified = first.verify(false).map_err(|error| error.code());
    assert_eq!(verified.err(), Some("ERR_IO"));
    first.close().unwrap();
    second.close().unwrap();
    holds(&here, false, &[]);
    holds(&there, false, &[]);
}
