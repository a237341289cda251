//! Between the erasure of a person, whose key is destroyed at once, and its scrub: rows of theirs lie there
//! that nobody can read any more, and nobody else is kept from anything by them.

use std::cell::Cell;
use std::fs;
use std::path::Path;

use grainstore::cal::{Diversity, Near, Query, Rerank};
use grainstore::embed::{Embedding, Metric};
use grainstore::{
    ContentAddress, EraseOptions, ExportOptions, ImportOptions, Offer, PageOptions, Session,
    SessionOptions, Store,
};
use tempfile::TempDir;

use super::world::{World, as_user, asked, belief, open, turn};

const GRAINS: i64 = 30;

/// A grain with a vector, which says which of them it is.
fn seen(user: &str, number: i64) -> Offer {
    let around = number as f32 / 10.0;
    let vector = Embedding::new("eyes", Metric::Cosine, vec![1.0, around, 0.5]).unwrap();
    let grain = belief(Some(user), "tea", &format!("green tea number {number}"), 1000 + number);
    Offer::Grain(grain).with_vectors(vec![vector])
}

/// Puts so many grains of both, in turns.
fn put_both(session: &Session, from: i64) -> (Vec<ContentAddress>, Vec<ContentAddress>) {
    let (mut of_ann, mut of_bob) = (Vec::new(), Vec::new());
    for number in from..from + GRAINS {
        of_ann.push(session.put(seen("ann", number)).unwrap().address());
        of_bob.push(session.put(seen("bob", number)).unwrap().address());
    }
    of_ann.push(session.put(turn("ann", "s", "about tea", 2000 + from)).unwrap().address());
    of_bob.push(session.put(turn("bob", "s", "about tea", 2000 + from)).unwrap().address());
    (of_ann, of_bob)
}

fn near() -> Query {
    Query::default().nearing(Near { model: None, values: [1.0, 0.1, 0.5].into() })
}

fn sorted(mut addresses: Vec<ContentAddress>) -> Vec<ContentAddress> {
    addresses.sort_unstable();
    addresses
}

/// The files of a store as a process leaves them that goes the moment it was told that it has erased.
fn gone_before_the_scrub() -> (TempDir, Vec<ContentAddress>, Vec<ContentAddress>) {
    // Where scrubbing began while the files were copied it is another moment.
    for _ in 0..20 {
        let world = World::new();
        let session = world.operator();
        let (of_ann, of_bob) = put_both(&session, 0);
        session.contradict(&of_ann[0], "hers is wrong", None).unwrap();
        session.contradict(&of_bob[0], "his is wrong", None).unwrap();
        world.store.flush().unwrap();
        // What is not folded yet has its address nowhere else.
        let (more_of_ann, more_of_bob) = put_both(&session, GRAINS);
        session.erase_user("ann", "ann asked", &EraseOptions::new()).unwrap();
        let copy = TempDir::new().unwrap();
        copy_files(world.dir.path(), copy.path());
        let stats = world.store.stats().unwrap();
        if stats.unscrubbed == 1 {
            return (copy, [of_ann, more_of_ann].concat(), [of_bob, more_of_bob].concat());
        }
    }
    unreachable!("the store was scrubbed each time");
}

fn copy_files(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

#[test]
fn a_store_that_is_gone_before_the_scrub_opens_verifies_and_scrubs() {
    let (dir, of_ann, of_bob) = gone_before_the_scrub();
    for full in [false, true] {
        let copy = TempDir::new().unwrap();
        copy_files(dir.path(), copy.path());
        let store = open(copy.path());
        for scrubbed in [false, true] {
            if scrubbed {
                store.scrub().unwrap();
                assert_eq!(store.stats().unwrap().unscrubbed, 0);
            }
            let verified = store.verify(full).unwrap();
            assert!(verified.ok, "{full} {scrubbed}: {:?}", verified.problems);
            assert_eq!(verified.checked.unwrap().erased, of_ann.len() as u64, "{full} {scrubbed}");
            let session = store.session(SessionOptions::default());
            for address in &of_ann {
                assert!(!session.exists(address).unwrap());
                let got = session.get(address).map(drop).map_err(|error| error.code());
                assert_eq!(got, Err("ERR_ERASED"), "{full} {scrubbed}");
            }
            for address in &of_bob {
                session.get(address).unwrap();
            }
            let said = session.audit(None, 1000).unwrap().into_iter().filter_map(|e| e.reason);
            let said: Vec<_> = said.collect();
            assert!(said.iter().any(|reason| reason == "his is wrong"), "{said:?}");
            assert!(!said.iter().any(|reason| reason == "hers is wrong"), "{said:?}");
        }
        assert_eq!(store.stats().unwrap().erased_grains, of_ann.len() as u64);
        store.close().unwrap();
        let store = open(copy.path());
        assert!(store.verify(full).unwrap().ok);
    }
}

/// What others are answered, whatever waits to be scrubbed.
fn assert_others_are_answered(store: &Store, of_bob: &[ContentAddress]) {
    let reranks = [
        Rerank { diversity: Some(Diversity::Mmr { lambda: 0.5 }), ..Rerank::default() },
        Rerank { recency_ms: Some(1000), access: true, ..Rerank::default() },
    ];
    let with_vectors = of_bob.iter().copied();
    let with_vectors = sorted(with_vectors.filter(|at| !is_turn(store, at)).collect());
    let bob = as_user(store, "bob");
    assert_eq!(asked(&bob, &near()).map(sorted), Ok(with_vectors));
    for rerank in reranks {
        for query in [Query::default(), Query::default().searching("tea")] {
            let found = asked(&bob, &query.reranked(rerank)).map(sorted);
            assert_eq!(found, Ok(sorted(of_bob.to_vec())));
        }
    }
    for session in [store.session(SessionOptions::default()), bob] {
        let out = TempDir::new().unwrap();
        let file = out.path().join("memory.mg");
        let exported = session.export(&file, &Query::default(), &ExportOptions::default()).unwrap();
        assert_eq!(exported.exported, of_bob.len() as u64);
    }
}

fn is_turn(store: &Store, address: &ContentAddress) -> bool {
    let session = store.session(SessionOptions::default());
    session.get(address).unwrap().grain().unwrap().text("content").is_some()
}

#[test]
fn rows_that_wait_to_be_scrubbed_keep_nothing_from_others() {
    for searched_before in [false, true] {
        let world = World::new();
        let session = world.operator();
        let (_, of_bob) = put_both(&session, 0);
        if searched_before {
            let bob = as_user(&world.store, "bob");
            assert!(!bob.query(&near(), &PageOptions::first(1)).unwrap().results.is_empty());
        }
        let (_, more_of_bob) = put_both(&session, GRAINS);
        let of_bob = [of_bob, more_of_bob].concat();
        session.erase_user("ann", "ann asked", &EraseOptions::new()).unwrap();
        assert_others_are_answered(&world.store, &of_bob);
        world.store.scrub().unwrap();
        assert_others_are_answered(&world.store, &of_bob);
        let later = session.put(seen("bob", 500)).unwrap().address();
        assert_others_are_answered(&world.store, &[of_bob.clone(), vec![later]].concat());
        let vectors = world.store.stats().unwrap().vectors;
        assert_eq!(vectors[0].vectors, Some(of_bob.len() - 2 + 1), "each is there once");
    }
}

#[test]
fn an_export_goes_on_without_those_who_are_erased_meanwhile() {
    let world = World::new();
    let session = world.operator();
    // More than are written between two words of progress, hers last.
    let of = |user, at| belief(Some(user), "tea", &format!("number {at}"), at);
    session.put_batch((0..300).map(|at| Offer::Grain(of("bob", at)))).unwrap();
    session.put_batch((1000..1300).map(|at| Offer::Grain(of("ann", at)))).unwrap();
    let (erased, eraser) = (Cell::new(false), world.operator());
    let erase = |_, _| {
        if !erased.replace(true) {
            eraser.erase_user("ann", "ann asked", &EraseOptions::new()).unwrap();
        }
    };
    let out = TempDir::new().unwrap();
    let file = out.path().join("memory.mg");
    let how = ExportOptions { progress: Some(&erase), ..ExportOptions::default() };
    let exported = session.export(&file, &Query::default(), &how).unwrap();
    assert!(erased.get());
    assert_eq!(exported.exported, 300);
    let other = World::new();
    let report = other.operator().import([&file], &ImportOptions::default()).unwrap();
    assert_eq!(report.added, 300);
}

/// A consent between two, and a withdrawal of it where it names one.
fn consent(user: Option<&str>, at: i64, withdraws: Option<&ContentAddress>) -> grainstore::Grain {
    let mut grain = serde_json::json!({
        "type": "consent", "subject_did": "did:web:a", "grantee_did": "did:web:b", "scope": ["store"],
        "is_withdrawal": withdraws.is_some(), "created_at": at,
    });
    if let Some(prior) = withdraws {
        grain["prior_consent"] = serde_json::json!(prior.to_string());
    }
    if let Some(user) = user {
        grain["user_id"] = serde_json::json!(user);
    }
    grainstore::Grain::from_json(&grain.to_string()).unwrap()
}

#[test]
fn what_an_erased_withdrawal_hides_stays_hidden_whatever_becomes_of_the_index() {
    for round in 0..20 {
        let world = World::new();
        let session = world.operator();
        let grant = session.put(consent(None, 1000, None)).unwrap().address();
        let rests = grainstore::Grain::from_json(
            &serde_json::json!({
                "type": "belief", "subject": "tea", "relation": "is", "object": "green", "confidence": 1,
                "created_at": 2000, "processing_basis": grant.to_string(),
            })
            .to_string(),
        );
        let rests = session.put(rests.unwrap()).unwrap().address();
        let taken = session.put(consent(Some("ann"), 3000, Some(&grant))).unwrap().address();
        session.erase_user("ann", "ann asked", &EraseOptions::new()).unwrap();
        let copy = TempDir::new().unwrap();
        copy_files(world.dir.path(), copy.path());
        if world.store.stats().unwrap().unscrubbed == 0 && round < 19 {
            continue;
        }
        for without_index in [false, true] {
            let place = TempDir::new().unwrap();
            copy_files(copy.path(), place.path());
            if without_index {
                fs::remove_file(place.path().join("index.redb")).unwrap();
            }
            let store = open(place.path());
            let session = store.session(SessionOptions::default());
            let shown = |at| session.get(at).map(drop).map_err(|error| error.code());
            for scrubbed in [false, true] {
                if scrubbed {
                    store.scrub().unwrap();
                }
                assert_eq!(shown(&rests), Err("ERR_WITHDRAWN"), "{without_index} {scrubbed}");
                assert_eq!(shown(&taken), Err("ERR_ERASED"), "{without_index} {scrubbed}");
                assert_eq!(store.verify(true).unwrap().problems, [], "{without_index} {scrubbed}");
            }
        }
        return;
    }
}
