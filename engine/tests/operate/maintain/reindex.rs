//! The index is rebuilt under readers and writers, and answers as before.

use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;

use grainstore::{OpenOptions, Store};
use tempfile::TempDir;

use crate::maintain::kit::{
    answers, belief, copy, fill, filled, names, open, operator, while_busy,
};

/// Bytes of a page.
const PAGE: usize = 4096;

#[test]
fn a_rebuilt_index_gives_the_same_answers() {
    let (dir, store) = filled(200);
    let before = answers(&store);
    assert_eq!(store.reindex().unwrap(), store.stats().unwrap().grains);
    assert_eq!(answers(&store), before);
    assert!(store.verify(true).unwrap().ok);
    store.close().unwrap();
    assert_eq!(answers(&open(dir.path())), before);
}

#[test]
fn no_write_is_lost_and_no_read_fails_while_the_index_is_rebuilt() {
    let (_dir, store) = filled(50);
    while_busy(&store, || {
        for _ in 0..5 {
            store.reindex().unwrap();
        }
    });
    assert!(store.verify(true).unwrap().ok);
}

/// The first byte of a page with rows.
const LEAF: u8 = 1;

/// The pages with rows of the index of a closed store.
fn leaves(dir: &Path) -> Vec<usize> {
    let bytes = fs::read(dir.join("index.redb")).unwrap();
    // The first page is the file's header.
    (1..bytes.len() / PAGE).filter(|page| bytes.get(page * PAGE) == Some(&LEAF)).collect()
}

/// Opens a store that keeps hardly a page in memory, and then empties a page of its index: redb
/// looks at every page when it opens a file, where it was built for debugging.
fn open_damaged(dir: &Path, page: usize) -> Store {
    let store =
        Store::open(dir, &OpenOptions::new().count_access(false).audit_reads(false).cache_bytes(0))
            .unwrap();
    let mut file = fs::File::options().write(true).open(dir.join("index.redb")).unwrap();
    file.seek(SeekFrom::Start(u64::try_from(page * PAGE).unwrap())).unwrap();
    file.write_all(&[0; PAGE]).unwrap();
    store
}

/// A closed store whose index has pages that no opening reads.
fn with_many_pages() -> (TempDir, Vec<String>) {
    let (dir, store) = filled(20);
    let grains = (0..2_000).map(|number| belief(&format!("many {number}"), "a lot", number));
    operator(&store).put_batch(grains.map(|grain| grain.build().unwrap())).unwrap();
    store.compact().unwrap();
    let before = answers(&store);
    store.close().unwrap();
    (dir, before)
}

#[test]
fn an_index_with_a_damaged_page_is_repaired_while_the_store_is_open() {
    let (dir, before) = with_many_pages();
    let leaves = leaves(dir.path());
    let mut unreadable = 0;
    for &page in leaves.iter().step_by((leaves.len() / 12).max(1)) {
        let harmed = copy(dir.path());
        let store = open_damaged(harmed.path(), page);
        unreadable += usize::from(!store.verify(false).is_ok_and(|found| found.ok));
        assert_eq!(store.reindex().unwrap(), store.stats().unwrap().grains, "page {page}");
        assert_eq!(answers(&store), before, "page {page}");
        assert!(store.verify(true).unwrap().ok, "page {page}");
        fill(&store, 900..903);
        let after = answers(&store);
        store.close().unwrap();
        assert_eq!(answers(&open(harmed.path())), after, "page {page}");
        let files = ["LOCK", "grains.redb", "index.redb", "text"];
        assert_eq!(names(harmed.path()), files.map(String::from).into(), "page {page}");
    }
    assert!(unreadable > 0, "no page that was damaged mattered");
    println!("{unreadable} of the damaged pages were unreadable");
}
