//! Compaction: smaller files with the same answers, whoever reads and writes meanwhile, and one
//! whole file under each name wherever it is cut short.

use std::fs;

use redb::{ReadableDatabase, TableHandle};

use crate::maintain::kit::{answers, copy, fill, filled, names, open, operator, while_busy};

#[test]
fn a_compacted_store_is_smaller_and_answers_the_same() {
    let (dir, store) = filled(400);
    store.reindex().unwrap();
    // Which writes the counts of refusals that were equal to others, as compaction would.
    store.flush().unwrap();
    let before = answers(&store);
    let done = store.compact().unwrap();
    assert!(done.truth_bytes_after < done.truth_bytes_before, "{done:?}");
    assert!(done.index_bytes_after < done.index_bytes_before, "{done:?}");
    let file = fs::metadata(dir.path().join("grains.redb")).unwrap().len();
    assert_eq!(file, done.truth_bytes_after);
    assert_eq!(answers(&store), before);
    assert!(store.verify(true).unwrap().ok);
    fill(&store, 1000..1050);
    store.flush().unwrap();
    let after = answers(&store);
    store.close().unwrap();
    drop(store);
    let store = open(dir.path());
    assert_eq!(answers(&store), after);
    assert!(store.verify(true).unwrap().ok);
    assert_eq!(
        names(dir.path()),
        ["LOCK", "grains.redb", "index.redb", "text"].map(String::from).into()
    );
}

#[test]
fn a_compacted_index_is_one_run_and_holds_no_other() {
    let (dir, store) = filled(60);
    for more in 0..6 {
        fill(&store, 100 + 10 * more..110 + 10 * more);
        store.flush().unwrap();
    }
    let before = answers(&store);
    store.compact().unwrap();
    assert_eq!(answers(&store), before);
    store.close().unwrap();
    let db = redb::Database::open(dir.path().join("index.redb")).unwrap();
    let txn = db.begin_read().unwrap();
    let tables = txn.list_tables().unwrap();
    assert_eq!(tables.filter(|table| table.name().starts_with("index.run.")).count(), 1);
}

#[test]
fn compacting_again_and_again_does_not_grow() {
    let (_dir, store) = filled(100);
    let first = store.compact().unwrap();
    let second = store.compact().unwrap();
    assert!(second.truth_bytes_after <= first.truth_bytes_after);
    assert!(second.index_bytes_after <= first.index_bytes_after);
}

#[test]
fn no_write_is_lost_and_no_read_fails_while_it_is_compacted() {
    let (dir, store) = filled(50);
    while_busy(&store, || {
        for _ in 0..5 {
            store.compact().unwrap();
        }
    });
    for reopened in [false, true] {
        let store = if reopened { open(dir.path()) } else { store.clone() };
        let found = operator(&store).history_of("new", "prefers", None, None).unwrap();
        assert_eq!(found.len(), 200);
        assert!(store.verify(true).unwrap().ok);
        store.close().unwrap();
    }
}

#[test]
fn copies_that_were_not_finished_are_removed_and_change_nothing() {
    let (dir, store) = filled(60);
    let before = answers(&store);
    store.close().unwrap();
    let whole = fs::read(dir.path().join("grains.redb")).unwrap();
    let kinds: [(&str, &[u8]); 4] = [
        ("empty", &[]),
        ("cut", &whole[..whole.len() / 2]),
        ("whole", &whole),
        ("no database", b"something else"),
    ];
    for (kind, bytes) in kinds {
        for name in ["grains.redb.new", "index.redb.new", "verify-3.redb.new"] {
            let crashed = copy(dir.path());
            fs::write(crashed.path().join(name), bytes).unwrap();
            let store = open(crashed.path());
            assert_eq!(answers(&store), before, "{kind} {name}");
            assert!(!names(crashed.path()).contains(name), "{kind} {name}");
        }
    }
}

#[test]
fn only_what_the_store_itself_has_left_is_removed() {
    let (dir, store) = filled(5);
    store.close().unwrap();
    let others =
        ["somebody-elses.redb.new", "verify-.redb.new", "verify-x.redb.new", "probe-1.new"];
    let own = ["grains.redb.new", "index.redb.new", "verify-12.redb.new", "probe-7.redb.new"];
    for name in others.iter().chain(&own) {
        fs::write(dir.path().join(name), "text").unwrap();
    }
    open(dir.path()).close().unwrap();
    let left = ["LOCK", "grains.redb", "index.redb"].iter().chain(&others);
    assert_eq!(names(dir.path()), left.map(|name| (*name).to_owned()).collect());
}

/// Something that makes a file of a store anew.
#[cfg(unix)]
type Renewal = fn(&grainstore::Store) -> grainstore::Result<()>;

#[cfg(unix)]
#[test]
fn where_a_copy_cannot_have_the_name_nothing_changes_and_the_store_goes_on() {
    let compact: Renewal = |store| store.compact().map(drop);
    let reindex: Renewal = |store| store.reindex().map(drop);
    for (blocked, work) in
        [("grains.redb", compact), ("index.redb", compact), ("index.redb", reindex)]
    {
        let (dir, store) = filled(40);
        store.flush().unwrap();
        let before = answers(&store);
        let (name, aside) = (dir.path().join(blocked), dir.path().join("aside"));
        // A directory under the name of the file, which the store has open: nothing can be renamed
        // over it.
        fs::rename(&name, &aside).unwrap();
        fs::create_dir_all(name.join("inside")).unwrap();
        assert_eq!(work(&store).map_err(|error| error.code()).err(), Some("ERR_IO"), "{blocked}");
        assert!(!names(dir.path()).contains(&format!("{blocked}.new")), "{blocked}");
        fs::remove_dir_all(&name).unwrap();
        fs::rename(&aside, &name).unwrap();
        assert_eq!(answers(&store), before, "{blocked}");
        fill(&store, 500..510);
        work(&store).unwrap();
        let before = answers(&store);
        store.close().unwrap();
        let store = open(dir.path());
        assert_eq!(answers(&store), before, "{blocked}");
        assert!(store.verify(true).unwrap().ok);
    }
}

#[test]
fn where_no_copy_can_be_made_nothing_changes_and_the_store_goes_on() {
    for blocked in ["grains.redb.new", "index.redb.new"] {
        let (dir, store) = filled(40);
        let before = answers(&store);
        // A directory under the name of the copy: it can be neither removed nor written to.
        let name = dir.path().join(blocked);
        fs::create_dir_all(name.join("inside")).unwrap();
        assert_eq!(store.compact().map_err(|error| error.code()).err(), Some("ERR_IO"));
        assert_eq!(answers(&store), before, "{blocked}");
        fill(&store, 500..510);
        fs::remove_dir_all(name).unwrap();
        assert!(store.verify(true).unwrap().ok);
        store.compact().unwrap();
        assert!(store.verify(true).unwrap().ok);
    }
}

#[cfg(unix)]
#[test]
fn a_store_whose_files_are_links_stays_where_the_links_lead() {
    let (dir, store) = filled(80);
    let before = answers(&store);
    store.close().unwrap();
    let elsewhere = tempfile::TempDir::new().unwrap();
    let moved = |name: &str| elsewhere.path().join(format!("real-{name}"));
    for name in ["grains.redb", "index.redb"] {
        fs::rename(dir.path().join(name), moved(name)).unwrap();
        std::os::unix::fs::symlink(moved(name), dir.path().join(name)).unwrap();
    }
    // A copy that was not finished there.
    fs::write(elsewhere.path().join("real-grains.redb.new"), b"half").unwrap();
    let store = open(dir.path());
    assert_eq!(names(elsewhere.path()).len(), 2, "{:?}", names(elsewhere.path()));
    for work in ["compact", "reindex", "verify"] {
        match work {
            "compact" => drop(store.compact().unwrap()),
            "reindex" => drop(store.reindex().unwrap()),
            _ => assert!(store.verify(true).unwrap().ok),
        }
        for name in ["grains.redb", "index.redb"] {
            let link = fs::symlink_metadata(dir.path().join(name)).unwrap();
            assert!(link.is_symlink(), "{name} after {work}");
        }
        assert_eq!(names(elsewhere.path()).len(), 2, "{work}");
        assert_eq!(answers(&store), before, "{work}");
    }
    store.close().unwrap();
    // What is behind the link is damaged, or gone.
    for harm in
        [|file| fs::write(file, b"no database").unwrap(), |file| fs::remove_file(file).unwrap()]
    {
        let harm: fn(std::path::PathBuf) = harm;
        harm(moved("index.redb"));
        let store = open(dir.path());
        assert_eq!(answers(&store), before);
        store.close().unwrap();
        assert!(fs::symlink_metadata(dir.path().join("index.redb")).unwrap().is_symlink());
        assert!(moved("index.redb").exists());
    }
}
