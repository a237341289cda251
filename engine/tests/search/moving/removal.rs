//! What a model left behind that serves no more: removed while others read, and only then.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use grainstore::embed::{Embedding, Metric, Space};
use grainstore::{Offer, PageOptions};
use grainstore_index::vectors::VectorIndex;

use crate::moving::kit::{
    GRAINS, code, embedded, gated, near, new, open, open_without, serving, settled, stats,
};
use crate::moving::search::{addresses, belief, put, store};
use crate::moving::{FORMER, NEW};

#[test]
fn vectors_that_serve_or_are_being_made_are_kept() {
    let dir = embedded();
    let (sense, gate) = gated();
    let session = open(&dir, &sense, None);
    let remove = |model: &str| code(session.store().remove_vectors(model));
    gate.await_texts();
    gate.open();
    gate.await_texts();
    session.store().flush().unwrap();
    assert_eq!(remove("former"), Err("ERR_CONFLICT"));
    assert_eq!(remove("new"), Err("ERR_CONFLICT"));
    assert_eq!(remove("nobody's"), Err("ERR_NOT_FOUND"));
    gate.open();
    assert!(settled(&session));
    assert_eq!(remove("new"), Err("ERR_CONFLICT"));
    assert_eq!(session.store().remove_vectors("former").unwrap(), GRAINS as u64);
    assert_eq!(remove("former"), Err("ERR_NOT_FOUND"));
}

#[test]
fn what_is_removed_is_nowhere_and_may_come_again() {
    let dir = embedded();
    let session = open(&dir, &new(), None);
    assert!(settled(&session));
    assert_eq!(addresses(&session, &near(Some("former"), &FORMER)).len(), GRAINS);
    let space = Space::new("former", 3, Metric::Cosine).unwrap();
    let graph = dir.path().join("vectors").join(VectorIndex::file_name(&space));
    fs::create_dir_all(graph.parent().unwrap()).unwrap();
    fs::write(&graph, b"a graph").unwrap();
    session.store().remove_vectors("former").unwrap();
    assert!(!graph.exists());
    let gone = session.query(&near(Some("former"), &FORMER), &PageOptions::first(1)).unwrap_err();
    assert_eq!(gone.code(), "ERR_NOT_FOUND");
    let figures = stats(&session);
    assert_eq!(figures.rows.get("vectors"), Some(&(GRAINS as u64)));
    assert_eq!(figures.vectors.len(), 1);
    assert!(figures.leaving_models.is_empty());
    // A host may give vectors of it again: these are there, and none of those that were.
    let vector = || Embedding::new("former", Metric::Cosine, FORMER.to_vec()).unwrap();
    let offer = Offer::Grain(belief("zoe", "a town")).with_vectors(vec![vector()]);
    let again = session.put(offer).unwrap().address();
    assert_eq!(addresses(&session, &near(Some("former"), &FORMER)), [again]);
    assert!(settled(&session));
    let whole = session.store().verify(true).unwrap();
    assert!(whole.ok, "{:?}", whole.problems);
    session.store().compact().unwrap();
    assert_eq!(serving(&session), "new");
    session.store().close().unwrap();
    let session = open_without(&dir);
    assert_eq!(serving(&session), "new");
    assert_eq!(addresses(&session, &near(Some("former"), &FORMER)), [again]);
    assert_eq!(addresses(&session, &near(None, &NEW)).len(), GRAINS + 1);
    // Its embedder would have to begin anew: how far it had come is forgotten.
    put(&session, belief("yan", "tea"));
    session.store().close().unwrap();
    let past = crate::moving::kit::former();
    let session = open(&dir, &past, None);
    assert!(settled(&session));
    assert_eq!(past.texts.load(Ordering::SeqCst), GRAINS + 1);
}

#[test]
fn while_vectors_are_removed_an_answer_has_all_of_them_or_none() {
    const MANY: usize = 3000;
    let (_dir, session) = store();
    let of = |model, x| Embedding::new(model, Metric::Cosine, vec![x, 1.0]).unwrap();
    let offers = (0_u16..).take(MANY).map(|at| {
        let vectors = vec![of("a", f32::from(at)), of("b", f32::from(at))];
        Offer::Grain(belief("alice", &format!("object {at}"))).with_vectors(vectors)
    });
    session.put_batch(offers).unwrap();
    let ended = AtomicBool::new(false);
    let read = |model: &str| {
        let mut counts = BTreeSet::new();
        loop {
            let last = ended.load(Ordering::SeqCst);
            // A model of which nothing is left is none the store knows.
            counts.insert(
                match session.query(&near(Some(model), &NEW), &PageOptions::first(10_000)) {
                    Ok(answer) => answer.results.len(),
                    Err(error) => {
                        assert_eq!(error.code(), "ERR_NOT_FOUND", "{error}");
                        0
                    }
                },
            );
            if last {
                return counts;
            }
        }
    };
    std::thread::scope(|scope| {
        let kept = scope.spawn(|| read("a"));
        let removed = scope.spawn(|| read("b"));
        assert_eq!(session.store().remove_vectors("b").unwrap(), MANY as u64);
        ended.store(true, Ordering::SeqCst);
        let most = addresses(&session, &near(Some("a"), &NEW)).len();
        assert!(most >= 1000, "{most}");
        assert_eq!(kept.join().unwrap(), [most].into());
        let counts = removed.join().unwrap();
        assert!(counts.contains(&0) && counts.is_subset(&[0, most].into()), "{counts:?}");
    });
    // The last row is gone; what comes now is new to who has read them all.
    let nearest = || addresses(&session, &near(Some("a"), &[-1.0, 0.0])).first().copied();
    let offer = Offer::Grain(belief("bob", "it"))
        .with_vectors(vec![Embedding::new("a", Metric::Cosine, vec![-1.0, 0.0]).unwrap()]);
    let it = session.put(offer).unwrap().address();
    assert_eq!(nearest(), Some(it));
    let whole = session.store().verify(true).unwrap();
    assert!(whole.ok, "{:?}", whole.problems);
}

#[test]
fn a_serving_space_that_is_not_there_is_named() {
    let dir = embedded();
    let meta = redb::TableDefinition::<&str, &[u8]>::new("meta");
    let set = |row: &[u8]| {
        let db = redb::Database::open(dir.path().join("grains.redb")).unwrap();
        let txn = db.begin_write().unwrap();
        txn.open_table(meta).unwrap().insert("serving", row).unwrap();
        txn.commit().unwrap();
    };
    // An envelope of the number 3 in row 0; there is one space, the first.
    set(&[1, 0, 0xe2, 0xdc, 0x97, 0xd5, 0, 0, 0, 3]);
    let session = open_without(&dir);
    let found = session.store().verify(false).unwrap();
    let [problem] = &*found.problems else { panic!("{:?}", found.problems) };
    assert_eq!(
        (problem.place.as_str(), problem.detail.as_str()),
        ("meta serving", "there is no space 3")
    );
    assert_eq!(serving(&session), "former", "the only one there is serves");
    session.store().close().unwrap();
    set(&[1, 0, 0xe2, 0xdc, 0x97, 0xd5, 0, 0, 0, 2]);
    let session = open_without(&dir);
    let found = session.store().verify(false).unwrap();
    assert!(found.problems.iter().any(|problem| problem.place == "meta serving"), "{found:?}");
}
