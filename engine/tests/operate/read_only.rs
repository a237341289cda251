//! A store that is opened to be read: it answers as one that is opened to write, and nothing in its
//! directory changes, whatever is asked of it and however it was left.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at a surprise")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use grainstore::cal::Query;
use grainstore::embed::{Embedding, Metric};
use grainstore::format::BeliefBuilder;
use grainstore::{
    CalSwitch, ContentAddress, EpochMs, EraseOptions, ExportOptions, Grain, ImportOptions,
    MasterKey, OpenOptions, Preset, ReadsDestination, Session, SessionOptions, Store,
};
use tempfile::TempDir;

const KEY: [u8; 32] = [9; 32];

fn options(encrypted: bool) -> OpenOptions {
    let options = OpenOptions::new().wait(Duration::ZERO);
    if encrypted { options.key(MasterKey::new(KEY)) } else { options }
}

fn operator(store: &Store) -> Session {
    store.session(SessionOptions::default())
}

fn belief(at: i64) -> Grain {
    let object = format!("tea number {at}");
    let belief = BeliefBuilder::new(EpochMs::new(at), "ann", "likes", object, 1.0);
    belief.user_id("ann").build().unwrap()
}

fn fill(store: &Store) -> Vec<ContentAddress> {
    let session = operator(store);
    let mut written: Vec<_> =
        (0..20).map(|at| session.put(belief(at)).unwrap().address()).collect();
    written.push(session.supersede(&written[3], belief(500), Some("she changed")).unwrap());
    session.hold(&written[5], "a case").unwrap();
    written
}

/// Every file of a directory: its bytes, and when it was written.
fn files(at: &Path) -> BTreeMap<String, (Vec<u8>, SystemTime)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(at).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            let modified = fs::metadata(&path).unwrap().modified().unwrap();
            found.insert(path.display().to_string(), (fs::read(&path).unwrap(), modified));
        }
    }
    found
}

/// What a store says: its grains, a search by words, its audit log.
fn told(store: &Store, written: &[ContentAddress]) -> String {
    let session = operator(store);
    let grains: Vec<_> = written.iter().map(|at| session.get(at).unwrap()).collect();
    let grains: Vec<_> = grains.iter().map(|stored| (&stored.blob, &stored.state)).collect();
    let of_ann = store
        .session(SessionOptions { user_id: Some("ann".to_owned()), ..SessionOptions::default() });
    let mut answers = Vec::new();
    for query in [
        r#"RECALL WHERE subject = "ann""#,
        r#"RECALL ABOUT "tea number 7""#,
        r#"HISTORY WHERE subject = "ann" AND relation = "likes""#,
    ] {
        let mut answer = of_ann.ask(query).unwrap();
        // The one figure that differs from call to call.
        answer.meta.duration_ms = 0;
        answers.push(format!("{answer:?}"));
    }
    let audit = session.audit(None, 1_000).unwrap();
    // Closing a store notes where its read log stands.
    let audit: Vec<_> = audit.iter().filter(|entry| entry.reads.is_none()).collect();
    let audit: Vec<_> = audit.iter().map(|e| (&e.operation, &e.subjects, &e.reason)).collect();
    format!("{grains:?} {answers:?} {audit:?}")
}

/// A copy of a directory as a crash would leave it, without its lock.
fn copied(from: &Path) -> TempDir {
    let to = TempDir::new().unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap() == "reads" {
            fs::create_dir(to.path().join("reads")).unwrap();
            for entry in fs::read_dir(&path).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap();
                fs::copy(&path, to.path().join("reads").join(name)).unwrap();
            }
        } else if path.is_file() && path.file_name().unwrap() != "LOCK" {
            fs::copy(&path, to.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    to
}

#[test]
fn it_answers_alike_and_leaves_every_byte_however_the_store_was_left() {
    for encrypted in [false, true] {
        let dir = TempDir::new().unwrap();
        let store = Store::open(dir.path(), &options(encrypted).create(true)).unwrap();
        let written = fill(&store);
        let expected = told(&store, &written);
        // Not closed, as after kill -9; closed; without an index; with one that is damaged.
        let mut left = vec![("killed", copied(dir.path()))];
        store.close().unwrap();
        left.push(("closed", copied(dir.path())));
        let bare = copied(dir.path());
        fs::remove_file(bare.path().join("index.redb")).unwrap();
        left.push(("without an index", bare));
        let bare = copied(dir.path());
        fs::write(bare.path().join("index.redb"), b"no database").unwrap();
        left.push(("with a damaged index", bare));
        for (how, dir) in left {
            let before = files(dir.path());
            let read = options(encrypted).read_only(true);
            let store =
                Store::open(dir.path(), &read).unwrap_or_else(|error| panic!("{how}: {error}"));
            assert!(store.is_read_only() && store.stats().unwrap().read_only);
            assert_eq!(store.was_repaired(), how == "killed", "{how}");
            assert_eq!(told(&store, &written), expected, "{how}, encrypted: {encrypted}");
            store.flush().unwrap();
            assert_eq!(store.verify(true).unwrap().problems, [], "{how}");
            assert!(store.pages().is_ok() && store.doctor().ok);
            let other = TempDir::new().unwrap();
            let file = other.path().join("out.mg");
            operator(&store).export(&file, &Query::default(), &ExportOptions::default()).unwrap();
            store.backup(other.path().join("backup")).unwrap();
            store.close().unwrap();
            assert_eq!(grainstore::verify(dir.path(), &read, true).unwrap().problems, []);
            assert!(grainstore::doctor(dir.path(), &read).ok);
            assert!(files(dir.path()) == before, "{how}: something was written");
            // It is as good as before for who writes, and so is the backup.
            for path in [dir.path(), &other.path().join("backup")] {
                let store = Store::open(path, &options(encrypted)).unwrap();
                assert_eq!(told(&store, &written), expected, "{how}");
                operator(&store).put(belief(900)).unwrap();
            }
        }
    }
}

#[test]
fn whatever_writes_is_refused() {
    let dir = TempDir::new().unwrap();
    let encrypted = true;
    let store = Store::open(dir.path(), &options(encrypted).create(true)).unwrap();
    let written = fill(&store);
    let file = dir.path().with_extension("mg");
    operator(&store).export(&file, &Query::default(), &ExportOptions::default()).unwrap();
    store.close().unwrap();
    let before = files(dir.path());
    let store = Store::open(dir.path(), &options(encrypted).read_only(true).create(true)).unwrap();
    let session = operator(&store);
    let vector = || Embedding::new("m", Metric::Cosine, vec![1.0, 2.0]).unwrap();
    let (one, erasing) = (&written[0], EraseOptions::new());
    let codes = [
        ("put", session.put(belief(77)).map(drop)),
        ("put of what is there", session.put(belief(1)).map(drop)),
        ("batch", session.put_batch(vec![belief(78)]).map(drop)),
        ("supersede", session.supersede(one, belief(79), None).map(drop)),
        ("hold", session.hold(one, "a case")),
        ("embed", session.embed(one, vec![vector()])),
        ("import", session.import([&file], &ImportOptions::default()).map(drop)),
        ("erase", session.erase(one, "asked", &erasing).map(drop)),
        ("erase_user", session.erase_user("ann", "asked", &erasing).map(drop)),
        ("scrub", store.scrub()),
        ("reindex", store.reindex().map(drop)),
        ("compact", store.compact().map(drop)),
        ("rotate", store.rotate_key(MasterKey::new([1; 32]))),
        ("rotate_user", store.rotate_user_key("ann").map(drop)),
        ("remove_vectors", store.remove_vectors("m").map(drop)),
        ("switch", session.switch_cal(CalSwitch::Reads, "why").map(drop)),
    ];
    for (what, outcome) in codes {
        assert_eq!(outcome.map_err(|error| error.code()), Err("ERR_READ_ONLY"), "{what}");
    }
    assert!(session.get(one).is_ok());
    store.close().unwrap();
    assert!(files(dir.path()) == before);
    fs::remove_file(file).unwrap();
}

#[test]
fn readers_share_and_exclude_who_writes_also_where_there_is_no_lock() {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path(), &options(false).create(true)).unwrap();
    let written = fill(&store);
    let read = options(false).read_only(true);
    let code =
        |options: &OpenOptions, at: &Path| Store::open(at, options).map_err(|e| e.code()).err();
    assert_eq!(code(&read, dir.path()), Some("ERR_BUSY"));
    store.close().unwrap();
    let bare = copied(dir.path());
    for at in [dir.path(), bare.path()] {
        let one = Store::open(at, &read).unwrap();
        let other = Store::open(at, &read).unwrap();
        assert_eq!(told(&one, &written), told(&other, &written));
        assert_eq!(code(&options(false), at), Some("ERR_BUSY"), "{}", at.display());
        one.close().unwrap();
        assert_eq!(code(&options(false), at), Some("ERR_BUSY"));
        other.close().unwrap();
        assert_eq!(code(&options(false), at), None);
    }
    let nothing = TempDir::new().unwrap();
    assert_eq!(code(&read.clone().create(true), nothing.path()), Some("ERR_NOT_FOUND"));
    fs::write(nothing.path().join("grains.redb"), b"").unwrap();
    assert_eq!(code(&read, nothing.path()), Some("ERR_INTEGRITY"));
}

#[test]
fn reads_that_must_be_noted_are_refused_and_others_are_not_noted() {
    for (preset, refused) in [("hipaa", true), ("gdpr", true), ("ccpa", false)] {
        let dir = TempDir::new().unwrap();
        let store = Store::open(
            dir.path(),
            &options(true).create(true).preset(Preset::from_name(preset).unwrap()),
        )
        .unwrap();
        let entries = operator(&store).audit_head().unwrap().0;
        store.close().unwrap();
        let store = Store::open(dir.path(), &options(true).read_only(true)).unwrap();
        let session = operator(&store);
        let asked = session.ask("RECALL WHERE subject = \"ann\"").map(drop);
        assert_eq!(asked.is_err(), refused, "{preset:?}: {asked:?}");
        if let Err(error) = asked {
            assert!(error.to_string().contains("opened to be read"), "{error}");
        }
        assert_eq!(session.audit_head().unwrap().0, entries);
        assert_eq!(store.reads_recorded(), ReadsDestination::Nowhere);
        assert_eq!(store.cal_conformance(), "none", "core asks for the audit of reads");
        let told = store.cal_exceptions().pop().unwrap();
        assert!(told.contains("opened to be read"), "{told}");
        store.close().unwrap();
        assert!(!dir.path().join("reads").exists());
    }
}

#[test]
fn a_store_of_an_earlier_format_is_read_as_it_is() {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format-1");
    let dir = TempDir::new().unwrap();
    for file in ["grains.redb", "index.redb"] {
        let packed = fs::read(from.join(format!("{file}.zst"))).unwrap();
        fs::write(dir.path().join(file), zstd::bulk::decompress(&packed, 16 << 20).unwrap())
            .unwrap();
    }
    let before = files(dir.path());
    let store = Store::open(dir.path(), &options(false).read_only(true)).unwrap();
    assert_eq!(store.stats().unwrap().format, 1);
    let entries = operator(&store).audit(None, 1_000).unwrap();
    assert!(entries.iter().all(|entry| entry.operation != "upgrade"));
    assert_eq!(store.verify(true).unwrap().problems, []);
    store.close().unwrap();
    assert!(files(dir.path()) == before);
}
