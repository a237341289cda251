//! A withdrawal hides what rests on the consent at once, in every way to find it.

use std::sync::atomic::{AtomicBool, Ordering};

use grainstore::cal::{Near, Query};
use grainstore::embed::{Embedding, Metric};
use grainstore::{ContentAddress, Offer, PageOptions, Session};
use serde_json::json;

use crate::isolation::kit::{Place, belief, code, consent, everything, found, grain, put, with};

/// A store with grains on a consent and beside it, each with a word and a vector of its own.
struct Rested {
    place: Place,
    basis: ContentAddress,
    hidden: Vec<ContentAddress>,
    kept: Vec<ContentAddress>,
}

impl Rested {
    fn new() -> Self {
        let place = Place::new();
        let all = place.all();
        let basis = put(&all, &consent(1000, None));
        let (mut hidden, mut kept) = (Vec::new(), Vec::new());
        for at in 0..10_i64 {
            let turn = |words: &str| {
                with(
                    belief(words, 1000 + at),
                    &json!({
                        "type": "event", "content": format!("said {words}"), "role": "user",
                        "session_id": "s", "timestamp_ms": 1000 + at,
                    }),
                )
            };
            let on = with(
                turn(&format!("secret{at} tea")),
                &json!({ "processing_basis": basis.to_string() }),
            );
            hidden.push(embedded(&all, &on, at));
            kept.push(embedded(&all, &turn(&format!("plain{at} tea")), at));
        }
        Self { place, basis, hidden, kept }
    }

    fn withdraw(&self) {
        put(&self.place.all(), &consent(9000, Some(&self.basis)));
    }
}

fn embedded(session: &Session, fields: &serde_json::Value, at: i64) -> ContentAddress {
    let values = vec![1.0, f32::from(u8::try_from(at).unwrap())];
    let vector = Embedding::new("eyes", Metric::L2, values).unwrap();
    let offer = Offer::Grain(grain(fields)).with_vectors(vec![vector]);
    session.put(offer).unwrap().address()
}

#[test]
fn no_query_finds_what_was_withdrawn() {
    let rested = Rested::new();
    let all = rested.place.all();
    let near = Near { model: None, values: vec![1.0, 1.0].into() };
    let queries = [
        everything(),
        Query::default(),
        Query::default().searching("tea"),
        Query::default().searching("secret1 secret2 secret3 plain1"),
        Query::default().nearing(near.clone()),
        Query::default().nearing(near).searching("tea secret1"),
        Query::default().among(rested.hidden.clone()),
        Query::default().at_address(rested.hidden[0]),
    ];
    let is_hidden = |address: &ContentAddress| rested.hidden.contains(address);
    let before: Vec<_> = queries.iter().map(|query| found(&all, query)).collect();
    assert!(before.iter().all(|found| found.iter().any(is_hidden)));
    rested.withdraw();
    for (query, before) in queries.iter().zip(before) {
        let after = found(&all, query);
        assert!(!after.iter().any(is_hidden), "{query:?}");
        let kept = |address: &&ContentAddress| rested.kept.contains(address);
        let (kept_before, kept_after) = (before.iter().filter(kept), after.iter().filter(kept));
        if query.search().is_none() && query.near().is_none() {
            assert!(kept_before.eq(kept_after), "{query:?}");
        } else {
            assert!(kept_after.count() >= kept_before.count(), "{query:?}");
        }
    }
    for at in 0..10 {
        let lent = found(&all, &Query::default().searching(format!("secret{at}")));
        assert_eq!(lent, [], "nor by words it has lent");
    }
}

#[test]
fn no_page_of_an_answer_that_began_before_shows_what_was_withdrawn() {
    let near = Near { model: None, values: vec![1.0, 1.0].into() };
    for query in [
        Query::default(),
        Query::default().searching("tea"),
        Query::default().nearing(near),
        Query::default().searching("tea").reranked(grainstore::cal::Rerank {
            diversity: None,
            recency_ms: Some(1000),
            access: false,
        }),
    ] {
        let rested = Rested::new();
        let all = rested.place.all();
        let first = all.query(&query, &PageOptions::first(2)).unwrap();
        rested.withdraw();
        let mut cursor = first.next_cursor;
        let mut shown = Vec::new();
        while let Some(after) = cursor {
            let page = all.query(&query, &PageOptions::first(3).after(Some(after))).unwrap();
            shown.extend(page.results.iter().map(|row| row.content_address));
            cursor = page.next_cursor;
        }
        assert!(shown.iter().any(|one| rested.kept.contains(one)), "{query:?}");
        assert!(!shown.iter().any(|one| rested.hidden.contains(one)), "{query:?}");
    }
}

#[test]
fn the_language_neither_shows_nor_counts_what_was_withdrawn() {
    let rested = Rested::new();
    let all = rested.place.all();
    let text = |statement: &str| {
        serde_json::to_string(&all.ask(statement).unwrap_or_else(|e| panic!("{statement}: {e}")))
            .unwrap()
    };
    let count = |statement: &str| {
        serde_json::to_value(all.ask(statement).unwrap()).unwrap()["count"].as_u64().unwrap()
    };
    let hidden = rested.hidden[0];
    let statements = [
        "RECALL events | LIMIT 100".to_owned(),
        "RECALL LIKE \"tea\" | LIMIT 100".to_owned(),
        "RECALL events THREAD \"s\" | LIMIT 100".to_owned(),
        "ASSEMBLE FROM (RECALL events | LIMIT 100)".to_owned(),
        "ASSEMBLE FROM (RECALL LIKE \"tea\" | LIMIT 100)".to_owned(),
        format!("EXISTS sha256:{hidden}"),
    ];
    let showed = |text: &str| text.contains("secret") || text.contains("\"exists\":true");
    assert!(statements.iter().all(|statement| showed(&text(statement))));
    assert_eq!((count("RECALL events | COUNT"), count("RECALL LIKE \"tea\" | COUNT")), (20, 20));
    rested.withdraw();
    for statement in &statements {
        assert!(!showed(&text(statement)), "{statement}");
    }
    assert_eq!((count("RECALL events | COUNT"), count("RECALL LIKE \"tea\" | COUNT")), (10, 10));
}

#[test]
fn no_export_holds_what_was_withdrawn_and_no_import_brings_it_back() {
    let rested = Rested::new();
    let all = rested.place.all();
    let file = |name: &str| rested.place.dir.path().join(name);
    let export = |name: &str| all.export(file(name), &everything(), &Default::default()).unwrap();
    assert_eq!(export("before.mg").exported, 21);
    rested.withdraw();
    // The grant, its withdrawal, and what rests on neither.
    assert_eq!(export("after.mg").exported, 12);
    let other = Place::new();
    put(&other.all(), &consent(1000, None));
    put(&other.all(), &consent(9000, Some(&rested.basis)));
    let imported = other.all().import([file("before.mg")], &Default::default()).unwrap();
    assert_eq!((imported.added, imported.duplicate, imported.refused), (10, 1, 10), "{imported:?}");
    for address in &rested.hidden {
        assert_eq!(code(other.all().get(address)), "ERR_NOT_FOUND");
    }
    // Where the withdrawal is not known it comes with all of it; where it comes along, it hides.
    let third = Place::new();
    let files = [file("before.mg"), file("after.mg")];
    third.all().import(files, &Default::default()).unwrap();
    assert!(rested.hidden.iter().all(|one| code(third.all().get(one)) == "ERR_WITHDRAWN"));
    assert!(rested.kept.iter().all(|one| third.all().exists(one).unwrap()));
}

#[test]
fn whoever_reads_while_it_is_withdrawn_sees_all_of_it_or_nothing() {
    let rested = Rested::new();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let all = rested.place.all();
                    let mut gone = 0;
                    // Once more after it is done, however the threads run.
                    while gone < 3 {
                        let was_done = done.load(Ordering::SeqCst);
                        let answer =
                            all.query(&Query::default(), &PageOptions::first(100)).unwrap();
                        let rows = answer.results.iter();
                        let shown =
                            rows.filter(|row| rested.hidden.contains(&row.content_address)).count();
                        assert!(shown == 0 || shown == rested.hidden.len(), "{shown}");
                        assert!(
                            shown == 0 || !was_done,
                            "it was acknowledged before this was asked"
                        );
                        gone += usize::from(was_done);
                    }
                })
            })
            .collect();
        rested.withdraw();
        done.store(true, Ordering::SeqCst);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
}
