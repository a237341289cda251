//! Export: what leaves the store is what the session sees, with its state, and can be read by itself.
#![expect(clippy::unwrap_used, reason = "a test stops at a surprise")]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

use grainstore::cal::{CancelHandle, Predicate, Query};
use grainstore::format::container::{Compression, Container, ManifestEntry, SeekSource};
use grainstore::format::{BeliefBuilder, DecodeOptions, EventBuilder};
use grainstore::{
    ContentAddress, EpochMs, ExportOptions, Grain, GrainState, OpenOptions, Session,
    SessionOptions, Store,
};
use tempfile::TempDir;

fn store(dir: &Path) -> Store {
    Store::open(dir.join("memory.grains"), &OpenOptions::new().create(true)).unwrap()
}

fn operator(store: &Store) -> Session {
    store.session(SessionOptions::default())
}

fn belief(created_at: i64, namespace: &str, object: &str) -> Grain {
    let builder = BeliefBuilder::new(EpochMs::new(created_at), "alice", "likes", object, 0.9);
    builder.namespace(namespace).build().unwrap()
}

/// What a file holds, and what it says of it.
#[derive(Debug, PartialEq)]
struct Held {
    addresses: Vec<ContentAddress>,
    blobs: Vec<Vec<u8>>,
    manifest: BTreeMap<ContentAddress, ManifestEntry>,
}

fn read(file: &Path) -> Held {
    let container =
        Container::open(SeekSource::new(File::open(file).unwrap()), &DecodeOptions::default());
    let container = container.unwrap();
    assert!(container.is_sorted() && container.is_deduplicated());
    container.verify().unwrap();
    let entries: Vec<_> = container.entries().unwrap().map(Result::unwrap).collect();
    Held {
        addresses: entries
            .iter()
            .map(grainstore::format::container::ContainerEntry::address)
            .collect(),
        blobs: entries.iter().map(|entry| entry.blob().to_vec()).collect(),
        manifest: container.manifest().into_iter().flatten().map(Result::unwrap).collect(),
    }
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_container_carries_history_and_state_and_nothing_of_other_namespaces() {
    let dir = TempDir::new().unwrap();
    let store = store(dir.path());
    let operator = operator(&store);
    let old = operator.put(belief(5000, "acme:bot", "tea")).unwrap().address();
    let new = operator.supersede(&old, belief(6000, "acme:bot", "coffee"), None).unwrap();
    operator.put(belief(1000, "other", "milk")).unwrap();
    // Found by its own time, which is late, and written by its creation, which is early.
    let early = EventBuilder::new(EpochMs::new(2000), "hello")
        .role("user")
        .timestamp_ms(EpochMs::new(9000))
        .namespace("acme")
        .build()
        .unwrap();
    let early = operator.put(early).unwrap().address();
    operator.get(&new).unwrap();

    let session = store.session(SessionOptions {
        namespace: Some("acme".to_owned()),
        ..SessionOptions::default()
    });
    for compression in Compression::ALL {
        let file = dir.path().join(format!("{}.mg", compression.name()));
        let how = ExportOptions { compression, ..ExportOptions::default() };
        let exported = session.export(&file, &Query::default(), &how).unwrap();
        assert_eq!((exported.exported, exported.files), (3, vec![file.clone()]));
        assert_eq!(exported.bytes, fs::metadata(&file).unwrap().len());
        let held = read(&file);
        assert_eq!(held.addresses, [early, old, new], "{compression:?}");
        for (address, blob) in held.addresses.iter().zip(&held.blobs) {
            assert_eq!(blob, &session.get_batch(&[*address]).unwrap()[0].as_ref().unwrap().blob);
        }
        let state = operator.get_batch(&[old]).unwrap()[0].as_ref().unwrap().state;
        assert_eq!(held.manifest[&old].state, state);
        assert_eq!(state.superseded_by, Some(new));
        assert!(state.system_valid_to.is_some());
        assert_eq!(held.manifest[&new].state, GrainState::default());
        assert!(held.manifest[&new].access_count >= 1);
    }
    let elsewhere = Query::default().within(grainstore::cal::Reach::Exact("other".to_owned()));
    let refused = session.export(dir.path().join("no.mg"), &elsewhere, &ExportOptions::default());
    assert_eq!(refused.unwrap_err().code(), "ERR_ACCESS");
}

#[test]
fn conditions_choose_and_nothing_chosen_is_an_empty_container() {
    let dir = TempDir::new().unwrap();
    let store = store(dir.path());
    let session = operator(&store);
    for (at, object) in [(1000, "tea"), (2000, "milk"), (3000, "tea")] {
        session.put(belief(at, "acme", object)).unwrap();
    }
    let file = dir.path().join("some.mg");
    for (object, count) in [("tea", 2), ("wine", 0)] {
        let query = Query::default().when(Predicate::text_is("object", object).unwrap());
        let exported = session.export(&file, &query, &ExportOptions::default()).unwrap();
        assert_eq!(exported.exported, count);
        let held = read(&file);
        assert_eq!(held.addresses.len() as u64, count, "the file is replaced");
        assert!(held.manifest.is_empty(), "nothing has happened to these grains");
    }
}

#[test]
fn what_does_not_fit_goes_into_files_beside_each_with_its_own_states() {
    let dir = TempDir::new().unwrap();
    let store = store(dir.path());
    let session = operator(&store);
    let mut addresses = Vec::new();
    for n in 0..40 {
        let old = session.put(belief(1000 + n, "acme", &format!("o{n}"))).unwrap().address();
        addresses.push(old);
    }
    for (n, old) in (0..).zip(addresses.clone()).step_by(3) {
        let new = belief(5000 + n, "acme", &format!("o{n} now"));
        addresses.push(session.supersede(&old, new, None).unwrap());
    }
    let whole = dir.path().join("whole.mg");
    session.export(&whole, &Query::default(), &ExportOptions::default()).unwrap();
    let whole = read(&whole);
    assert_eq!(whole.addresses.len(), addresses.len());

    let seen = RefCell::new(Vec::new());
    let progress = |done, total| seen.borrow_mut().push((done, total));
    let how = ExportOptions {
        compression: Compression::None,
        file_bytes: 1500,
        progress: Some(&progress),
        ..ExportOptions::default()
    };
    let exported = session.export(dir.path().join("part.mg"), &Query::default(), &how).unwrap();
    assert_eq!(exported.exported, addresses.len() as u64);
    assert!(exported.files.len() >= 4, "{:?}", exported.files);
    assert_eq!(exported.files[1], dir.path().join("part.2.mg"));
    let mut parts = Held { addresses: Vec::new(), blobs: Vec::new(), manifest: BTreeMap::new() };
    for file in &exported.files {
        assert!(fs::metadata(file).unwrap().len() < 1500 + 32 + 150 * 20);
        let mut held = read(file);
        assert!(held.manifest.keys().all(|address| held.addresses.contains(address)));
        parts.addresses.append(&mut held.addresses);
        parts.blobs.append(&mut held.blobs);
        parts.manifest.append(&mut held.manifest);
    }
    assert_eq!(parts, whole);
    assert_eq!(seen.borrow().last(), Some(&(exported.exported, exported.exported)));
}

#[test]
fn an_export_that_fails_leaves_what_was_there() {
    let dir = TempDir::new().unwrap();
    let store = store(dir.path());
    let session = operator(&store);
    session.put(belief(1000, "acme", "tea")).unwrap();
    let file = dir.path().join("kept.mg");
    fs::write(&file, b"before").unwrap();
    let cancel = CancelHandle::new();
    cancel.cancel();
    let stopped = ExportOptions { cancel, ..ExportOptions::default() };
    let tiny = ExportOptions { file_bytes: 20, ..ExportOptions::default() };
    let default = ExportOptions::default;
    let inside = dir.path().join("memory.grains/grains.redb");
    for (to, how, code) in [
        (file.clone(), stopped, "ERR_TIMEOUT"),
        (file.clone(), tiny, "ERR_TOO_LARGE"),
        (dir.path().to_owned(), default(), "ERR_CONFLICT"),
        (dir.path().join(".."), default(), "ERR_CONFLICT"),
        (inside, default(), "ERR_CONFLICT"),
        (dir.path().join("none/file.mg"), default(), "ERR_IO"),
    ] {
        let error = session.export(&to, &Query::default(), &how).unwrap_err();
        assert_eq!(error.code(), code, "{}: {error}", to.display());
    }
    assert_eq!(fs::read(&file).unwrap(), b"before");
    assert_eq!(names(dir.path()), ["kept.mg", "memory.grains"]);
}

#[test]
fn the_grains_are_those_of_one_moment() {
    let dir = TempDir::new().unwrap();
    let store = store(dir.path());
    let session = operator(&store);
    let old = session.put(belief(1000, "acme", "tea")).unwrap().address();
    for n in 0..300 {
        session.put(belief(2000 + n, "acme", &format!("o{n}"))).unwrap();
    }
    let superseded = RefCell::new(None);
    let progress = |_, _| {
        let mut superseded = superseded.borrow_mut();
        if superseded.is_none() {
            let new = session.supersede(&old, belief(9000, "acme", "coffee"), None);
            *superseded = Some(new.unwrap());
        }
    };
    let how = ExportOptions { progress: Some(&progress), ..ExportOptions::default() };
    let file = dir.path().join("one.mg");
    let exported = session.export(&file, &Query::default(), &how).unwrap();
    assert_eq!(exported.exported, 301);
    assert!(superseded.borrow().is_some(), "it was superseded while the file was written");
    assert!(read(&file).manifest.is_empty());
}

#[cfg(unix)]
#[test]
fn what_is_no_regular_file_is_not_replaced() {
    use std::os::unix::fs::{FileTypeExt, symlink};
    let (dir, to) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let store = store(dir.path());
    let session = operator(&store);
    session.put(belief(1, "", "tea")).unwrap();
    let at = |name: &str| to.path().join(name);
    let _node = std::os::unix::net::UnixListener::bind(at("node.mg")).unwrap();
    fs::write(at("work"), b"years of work").unwrap();
    symlink(at("work"), at("link.mg")).unwrap();
    symlink(at("nothing"), at("dangling.mg")).unwrap();
    fs::create_dir(at("directory.mg")).unwrap();
    let targets = [at("node.mg"), at("link.mg"), at("dangling.mg"), at("directory.mg")];
    for target in targets.iter().map(AsRef::as_ref).chain([Path::new("/dev/null")]) {
        let query = Query::default();
        let exported = session.export(target, &query, &ExportOptions::default());
        let code = exported.map_err(|error| error.code()).err();
        assert_eq!(code, Some("ERR_CONFLICT"), "{}", target.display());
        let report = session.export_subject(target, "ann", &ExportOptions::default());
        assert_eq!(report.map_err(|error| error.code()).err(), Some("ERR_CONFLICT"));
    }
    assert!(fs::symlink_metadata(at("node.mg")).unwrap().file_type().is_socket());
    assert_eq!(fs::read(at("link.mg")).unwrap(), b"years of work");
    assert!(!at("nothing").exists());
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    // A regular file is replaced.
    session.export(at("work"), &Query::default(), &ExportOptions::default()).unwrap();
    assert_ne!(fs::read(at("work")).unwrap(), b"years of work");
    assert_eq!(names(to.path()).len(), 5);
}

#[cfg(unix)]
#[test]
fn what_leaves_an_encrypted_store_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TempDir::new().unwrap();
    let options = OpenOptions::new().create(true).key(grainstore::MasterKey::new([7; 32]));
    let encrypted = Store::open(dir.path().join("encrypted"), &options).unwrap();
    let file = dir.path().join("memory.mg");
    let looked = RefCell::new(Vec::new());
    let progress = |_, _| {
        let partial = names(dir.path()).into_iter().find(|name| name.ends_with(".mg.partial"));
        let mode = |name: String| fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
        looked.borrow_mut().extend(partial.map(mode));
    };
    let how = ExportOptions { progress: Some(&progress), ..ExportOptions::default() };
    let session = operator(&encrypted);
    session.put(belief(1000, "a", "tea")).unwrap();
    session.export(&file, &Query::default(), &how).unwrap();
    looked.borrow_mut().push(fs::metadata(&file).unwrap().permissions().mode());
    assert!(looked.borrow().len() >= 2);
    assert!(looked.borrow().iter().all(|mode| mode & 0o777 == 0o600), "{looked:?}");
}

#[test]
fn what_a_killed_export_has_left_goes_with_the_next_to_its_target() {
    let dir = TempDir::new().unwrap();
    let store = store(dir.path());
    let session = operator(&store);
    session.put(belief(1000, "a", "tea")).unwrap();
    let at = |name: &str| dir.path().join(name);
    let others =
        [".other.mg.AAAAAA.mg.partial", ".memory.mg.AAAAA.mg.partial", "AAAAAA.mg.partial"];
    for name in
        [".memory.mg.AAAAAA.mg.partial", ".memory.mg.BBBBBB.mg.partial"].iter().chain(&others)
    {
        fs::write(at(name), "left").unwrap();
    }
    // Somebody is still at work on this one.
    let held = File::open(at(".memory.mg.BBBBBB.mg.partial")).unwrap();
    held.try_lock().unwrap();
    session.export(at("memory.mg"), &Query::default(), &ExportOptions::default()).unwrap();
    let mut expected = vec![".memory.mg.BBBBBB.mg.partial", "memory.grains", "memory.mg"];
    expected.extend(others);
    expected.sort_unstable();
    assert_eq!(names(dir.path()), expected);
    drop(held);
    // A name may be as long as names can be.
    let long = "é".repeat(125);
    session.export(at(&long), &Query::default(), &ExportOptions::default()).unwrap();
    session.export(at("memory.mg"), &Query::default(), &ExportOptions::default()).unwrap();
    assert!(!at(".memory.mg.BBBBBB.mg.partial").exists());
}
