//! The files under `text/`: whatever happens to them, the next opening answers right.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use grainstore::cal::{CancelHandle, Query};
use grainstore::{PageOptions, SessionOptions};
use tempfile::TempDir;

use crate::search::kit::{belief, found, open, put, scored, store, turn};

/// Answers to some searches of the store in a directory, and what its opening says it did.
fn answers(dir: &TempDir) -> (Vec<Vec<(grainstore::ContentAddress, u64)>>, Option<String>) {
    let store = open(dir);
    let session = store.session(SessionOptions::default());
    let texts = ["tea", "number 17", "+talk turn", "\"number 5\"", "num*"];
    let found = texts.map(|text| scored(&session, &Query::default().searching(text)));
    let rebuilt = store.rebuilt_text().unwrap();
    store.close().unwrap();
    (found.into(), rebuilt)
}

fn files(dir: &TempDir) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.path().join("text")).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// A store whose full text was saved in several files, some of whose documents are gone.
fn saved() -> TempDir {
    let (dir, session) = store();
    for part in 0..3 {
        let grains = (0..200).map(|at| belief("alice", &format!("tea number {}", part * 200 + at)));
        session.put_batch(grains).unwrap();
        session.put_batch((0..20).map(|at| turn("s", "u", part * 20 + at, "talk turn"))).unwrap();
        session.store().flush().unwrap();
    }
    session.store().close().unwrap();
    dir
}

#[test]
fn what_was_saved_is_read_and_not_built_anew() {
    let dir = saved();
    assert!(files(&dir).len() > 1, "{:?}", files(&dir));
    let (found, rebuilt) = answers(&dir);
    assert_eq!(rebuilt, None);
    assert_eq!(found[0].len(), 600);
    let before: Vec<_> = files(&dir).iter().map(|file| fs::read(file).unwrap()).collect();
    answers(&dir);
    let after: Vec<_> = files(&dir).iter().map(|file| fs::read(file).unwrap()).collect();
    assert!(before == after, "what did not change is not written again");
}

#[test]
fn any_file_deleted_cut_or_changed_is_noticed_and_no_answer_changes() {
    let dir = saved();
    let (expected, _) = answers(&dir);
    for at in 0..files(&dir).len() {
        for harm in ["delete", "empty", "cut", "flip first", "flip middle", "flip last", "replace"]
        {
            let all = files(&dir);
            let file = &all[at.min(all.len() - 1)];
            let bytes = fs::read(file).unwrap();
            let flipped = |place: usize| {
                let mut bytes = bytes.clone();
                bytes[place] ^= 1;
                fs::write(file, bytes).unwrap();
            };
            match harm {
                "delete" => fs::remove_file(file).unwrap(),
                "empty" => fs::write(file, b"").unwrap(),
                "cut" => fs::write(file, &bytes[..bytes.len() / 2]).unwrap(),
                "flip first" => flipped(0),
                "flip middle" => flipped(bytes.len() / 2),
                "flip last" => flipped(bytes.len() - 1),
                _ => fs::write(file, b"nothing of ours").unwrap(),
            }
            let (found, rebuilt) = answers(&dir);
            assert!(found == expected, "{harm} {}", file.display());
            let is_manifest = file.file_name().unwrap() == "manifest";
            let told = rebuilt.is_some() || (harm == "delete" && is_manifest);
            assert!(told, "{harm} {}", file.display());
            let (found, rebuilt) = answers(&dir);
            assert!(found == expected && rebuilt.is_none(), "it was saved again");
        }
    }
    fs::remove_dir_all(dir.path().join("text")).unwrap();
    assert!(answers(&dir).0 == expected);
}

#[test]
fn an_older_copy_of_its_files_is_followed_up_and_a_later_one_is_dropped() {
    let dir = saved();
    let (first, _) = answers(&dir);
    let older: Vec<_> = files(&dir).iter().map(|f| (f.clone(), fs::read(f).unwrap())).collect();
    let truth = fs::read(dir.path().join("grains.redb")).unwrap();
    let index = fs::read(dir.path().join("index.redb")).unwrap();
    let store = open(&dir);
    let session = store.session(SessionOptions::default());
    let grains = (0..300).map(|at| belief("bob", &format!("tea number {at}")));
    let added = session.put_batch(grains).unwrap();
    session.supersede(&added[0].address(), belief("bob", "no more"), None).unwrap();
    store.flush().unwrap();
    store.close().unwrap();
    let (second, rebuilt) = answers(&dir);
    assert_eq!((second[0].len(), rebuilt), (899, None));
    let later: Vec<_> = files(&dir).iter().map(|f| (f.clone(), fs::read(f).unwrap())).collect();

    let put_back = |copy: &[(PathBuf, Vec<u8>)]| {
        fs::remove_dir_all(dir.path().join("text")).unwrap();
        fs::create_dir(dir.path().join("text")).unwrap();
        copy.iter().for_each(|(file, bytes)| fs::write(file, bytes).unwrap());
    };
    put_back(&older);
    let (found, rebuilt) = answers(&dir);
    assert!(found == second && rebuilt.is_none(), "the older copy is an earlier state");

    fs::write(dir.path().join("grains.redb"), truth).unwrap();
    fs::write(dir.path().join("index.redb"), index).unwrap();
    put_back(&later);
    let (found, rebuilt) = answers(&dir);
    assert!(
        found == first && rebuilt.is_some(),
        "the later copy knows what never was: {rebuilt:?}"
    );
}

#[test]
fn reading_everything_again_is_no_part_of_the_time_a_question_has() {
    let (dir, session) = store();
    let text = "tea with as many words as a sentence has that somebody said in a conversation";
    let grain = |at: usize| belief(&format!("person {at}"), &format!("{text} number {at}"));
    for batch in 0..4 {
        session.put_batch((0..1000).map(|at| grain(batch * 1000 + at))).unwrap();
    }
    session.store().close().unwrap();
    let anew = || {
        // It may not have been saved yet.
        let _ = fs::remove_dir_all(dir.path().join("text"));
        open(&dir).session(SessionOptions::default())
    };
    let session = anew();
    // Far less than it takes here to read them all, and far more than the question takes.
    let page = PageOptions { timeout: Duration::from_millis(300), ..PageOptions::first(1) };
    let query = Query::default().searching("number");
    assert_eq!(session.query(&query, &page).unwrap().results.len(), 1);
    session.store().close().unwrap();
    let session = anew();
    let cancelled = PageOptions { cancel: CancelHandle::new(), ..page };
    cancelled.cancel.cancel();
    let error = session.query(&query, &cancelled).unwrap_err();
    assert_eq!(error.code(), "ERR_TIMEOUT", "{error}");
}

#[test]
fn a_full_text_of_another_store_is_dropped() {
    let (one, other) = (saved(), saved());
    let (expected, _) = answers(&one);
    for file in files(&one) {
        fs::remove_file(file).unwrap();
    }
    for file in files(&other) {
        fs::copy(&file, one.path().join("text").join(file.file_name().unwrap())).unwrap();
    }
    let (found, rebuilt) = answers(&one);
    assert!(found == expected && rebuilt.is_some());
}

#[test]
fn a_place_where_nothing_can_be_saved_costs_no_answer() {
    let (dir, session) = store();
    // A file stands where the directory should be.
    fs::write(dir.path().join("text"), b"in the way").unwrap();
    session.put_batch((0..200).map(|at| belief("alice", &format!("tea {at}")))).unwrap();
    assert_eq!(found(&session, "tea").len(), 200);
    session.store().close().unwrap();
    let store = open(&dir);
    let session = store.session(SessionOptions::default());
    assert_eq!(found(&session, "tea").len(), 200);
    put(&session, belief("bob", "tea"));
    assert_eq!(found(&session, "tea").len(), 201);
}
