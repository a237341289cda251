//! What was erased does not come back: not by a put, not from a file, not from a backup.

use grainstore::cal::{Query, Visibility};
use grainstore::{EraseOptions, ExportOptions, ImportOptions, Offer, Store};
use tempfile::TempDir;

use crate::erase::kit::{
    ANN, BOB, NOW, World, belief, code, files, found, grain, open, open_at, operator, put,
};

/// Everything a store shows, in a file.
fn exported(store: &Store, beside: &TempDir, name: &str) -> std::path::PathBuf {
    let all = Visibility { superseded: true, contradicted: true, retracted: true };
    let file = beside.path().join(name);
    let every = Query::default().seeing(all);
    operator(store).export(&file, &every, &ExportOptions::default()).unwrap();
    file
}

#[test]
fn neither_a_put_nor_a_file_nor_a_backup_brings_an_erased_grain_back() {
    let (dir, beside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let store = open(dir.path());
    let world = World::of(&store, 4);
    let session = operator(&store);
    let offer = |address| {
        let stored = session.get(address).unwrap();
        let signed = stored.envelope.map(|envelope| Offer::Signed(envelope.bytes().to_vec()));
        signed.unwrap_or(Offer::Blob(stored.blob))
    };
    let offers: Vec<Offer> = world.of_ann.iter().map(offer).collect();
    let file = exported(&store, &beside, "before.mg");
    store.backup(beside.path().join("backup")).unwrap();
    session.erase_user(ANN, "ann asked", &EraseOptions::new()).unwrap();
    for scrubbed in [false, true] {
        if scrubbed {
            store.scrub().unwrap();
        }
        for offer in &offers {
            assert_eq!(code(session.put(offer.clone())), "ERR_ERASED");
        }
        let mut batch = vec![Offer::Grain(belief(BOB, "is kept out as well", 9, ""))];
        batch.extend(offers.clone());
        assert_eq!(code(session.put_batch(batch)), "ERR_ERASED");
        let imported = session.import([&file], &ImportOptions::default()).unwrap();
        assert_eq!((imported.added, imported.refused), (0, world.of_ann.len() as u64));
        let backup = open(&beside.path().join("backup"));
        let file = exported(&backup, &beside, "backup.mg");
        backup.close().unwrap();
        let imported = session.import([&file], &ImportOptions::default()).unwrap();
        assert_eq!((imported.added, imported.refused), (0, world.of_ann.len() as u64));
        world.assert_ann_is_gone(&store);
    }
    world.assert_bob_is_whole(&store);
}

#[test]
fn what_a_user_created_since_is_a_new_beginning() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let session = operator(&store);
    put(&session, belief(ANN, "tea", NOW - 1, ""));
    let future = belief(ANN, "said of the future", NOW + 500, "");
    put(&session, future.clone());
    session.erase_user(ANN, "ann asked", &EraseOptions::new()).unwrap();
    for scrubbed in [false, true] {
        if scrubbed {
            store.scrub().unwrap();
        }
        for (created_at, expected) in [(NOW - 2, false), (NOW, false)] {
            let again = session.put(belief(ANN, "coffee", created_at, ""));
            assert_eq!(again.is_ok(), expected, "{created_at}");
        }
        // One of hers that was there, whenever it says it was created.
        assert_eq!(code(session.put(future.clone())), "ERR_ERASED");
    }
    drop(session);
    store.close().unwrap();
    let store = open_at(dir.path(), NOW + 1000);
    let session = operator(&store);
    let new = put(&session, belief(ANN, "coffee", NOW + 1, ""));
    assert!(session.exists(&new).unwrap());
    // She goes again, with what was new.
    let again = session.erase_user(ANN, "ann asked again", &EraseOptions::new().now(true)).unwrap();
    assert_eq!(again.erased, 1);
    assert_eq!(code(session.get(&new)), "ERR_ERASED");
    assert_eq!(code(session.put(belief(ANN, "tea", NOW + 1000, ""))), "ERR_ERASED");
    put(&session, belief(ANN, "tea", NOW + 1001, ""));
    let verified = store.verify(true).unwrap();
    assert!(verified.ok, "{:?}", verified.problems);
}

#[test]
fn an_index_and_a_full_text_from_before_show_nothing_of_it() {
    let (dir, beside) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let store = open(dir.path());
    let world = World::of(&store, 9);
    let session = operator(&store);
    for at in 0..80 {
        put(&session, belief(BOB, &format!("number {at}"), 5000 + at, ""));
    }
    assert!(!found(&session, world.spoken()).is_empty());
    drop(session);
    store.close().unwrap();
    let derived = |from: &TempDir, to: &TempDir| {
        let _ = std::fs::create_dir(to.path().join("text"));
        for name in ["index.redb", "text/manifest"] {
            std::fs::copy(from.path().join(name), to.path().join(name)).unwrap();
        }
        for (name, bytes) in files(&from.path().join("text")) {
            std::fs::write(to.path().join("text").join(name.rsplit('/').next().unwrap()), bytes)
                .unwrap();
        }
    };
    derived(&dir, &beside);
    let store = open(dir.path());
    operator(&store).erase_user(ANN, "ann asked", &EraseOptions::new()).unwrap();
    store.close().unwrap();
    derived(&beside, &dir);
    let store = open(dir.path());
    let session = operator(&store);
    world.assert_ann_is_gone(&store);
    assert_eq!(found(&session, world.spoken()), []);
    let every = Query::default().seeing(Visibility {
        superseded: true,
        contradicted: true,
        retracted: true,
    });
    let shown = session.query(&every, &grainstore::PageOptions::first(1000)).unwrap().results;
    assert!(shown.iter().all(|row| !world.of_ann.contains(&row.content_address)));
    assert_eq!(session.history_of("s", "likes", None, None).unwrap().len(), 85);
    session.neighbours("s", &grainstore::graph::EdgeQuery::default()).unwrap();
    assert!(session.subject_report(ANN).unwrap().addresses.is_empty());
    assert_eq!(session.erase_user(ANN, "again", &EraseOptions::new()).unwrap().erased, 0);
    store.reindex().unwrap();
    world.assert_bob_is_whole(&store);
}

#[test]
fn a_grain_is_erased_alone_and_its_versions_stay() {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let session = operator(&store);
    let old = put(&session, belief(ANN, "tea", 1, ""));
    let new = session.supersede(&old, belief(ANN, "coffee", 2, ""), None).unwrap();
    let blob = session.get(&new).unwrap().blob;
    assert_eq!(session.erase(&new, "a slip", &EraseOptions::new()).unwrap().erased, 1);
    for scrubbed in [false, true] {
        if scrubbed {
            store.scrub().unwrap();
        }
        assert_eq!(code(session.get(&new)), "ERR_ERASED");
        assert_eq!(code(session.erase(&new, "again", &EraseOptions::new())), "ERR_ERASED");
        assert_eq!(code(session.put(Offer::Blob(blob.clone()))), "ERR_ERASED");
        assert_eq!(code(session.hold(&new, "too late")), "ERR_ERASED");
        assert_eq!(code(session.supersede(&new, belief(ANN, "x", 3, ""), None)), "ERR_ERASED");
        let state = session.get(&old).unwrap().state;
        assert_eq!(state.superseded_by, Some(new));
        let verified = store.verify(true).unwrap();
        assert!(verified.ok, "{:?}", verified.problems);
    }
    put(&session, belief(ANN, "others of hers are welcome", 4, ""));
}

#[test]
fn an_erasure_that_waits_for_its_scrub_verifies_as_clean() {
    let policies = [
        r#"{"mode": "locked"}"#,
        r#"{"mode": "soft_locked", "scope": "subtree"}"#,
        r#"{"mode": "locked", "scope": "lineage"}"#,
        r#"{"mode": "quorum", "scope": "subtree", "authorized": ["did:web:a"], "threshold": 1}"#,
    ];
    let mut waited = 0;
    for open in [open, crate::erase::kit::open_encrypted] {
        let dir = TempDir::new().unwrap();
        let store = open(dir.path());
        let session = operator(&store);
        for (at, policy) in policies.iter().enumerate() {
            let more = format!(r#", "invalidation_policy": {policy}"#);
            let hers = put(&session, belief(ANN, &format!("hers {at}"), 10, &more));
            for (who, said) in [(BOB, "his"), (ANN, "hers again")] {
                let drawn = format!(
                    r#"{{"type": "belief", "subject": "{said} {at}", "relation": "is", "object": "so",
                        "confidence": 1, "created_at": 11, "user_id": "{who}",
                        "derived_from": ["{hers}"]}}"#
                );
                put(&session, grain(&drawn));
            }
        }
        session.erase_user(ANN, "ann asked", &EraseOptions::new()).unwrap();
        for full in [false, true] {
            let pending = store.stats().unwrap().unscrubbed;
            let verified = store.verify(full).unwrap();
            assert!(verified.ok, "{full}: {:?}", verified.problems);
            waited += usize::from(pending > 0 && store.stats().unwrap().unscrubbed > 0);
        }
        store.scrub().unwrap();
        assert_eq!(store.verify(true).unwrap().problems, []);
    }
    assert!(waited > 0, "some verification came before the scrub");
}
