//! An expanded answer, page by page, while others write; and after reopening.

use grainstore::cal::{Diversity, Expansion, Near, Predicate, Query, Rerank};
use grainstore::embed::{Embedding, Metric};
use grainstore::{Offer, PageOptions, SessionOptions};

use crate::expand::kit::{open, paged, put, scored, store};
use crate::expand::random::Random;
use crate::expand::ways::edge;
use crate::expand::world::fill;

fn freely() -> Expansion {
    Expansion { hops: 2, seeds: 4, freely: true, ..Expansion::default() }
}

/// Queries that expand in every way there is.
fn queries() -> Vec<Query> {
    let strictly = Expansion { freely: false, ..freely() };
    let near = Near { model: None, values: [1.0, 2.0, 3.0].into() };
    let mmr = Rerank { diversity: Some(Diversity::Mmr { lambda: 0.6 }), ..Rerank::default() };
    let alice = Predicate::text_is("subject", "alice").unwrap();
    vec![
        Query::default().searching("green tea").expanding(strictly),
        Query::default()
            .searching("kettle")
            .expanding(strictly)
            .seeing(grainstore::cal::Visibility::EVERYTHING),
        Query::default().searching("tea").when(alice.clone()).expanding(freely()),
        Query::default().nearing(near.clone()).expanding(strictly),
        Query::default().nearing(near).searching("cup").expanding(freely()),
        Query::default().when(alice.clone()).expanding(freely()),
        Query::default().when(alice).expanding(freely()).ordered(grainstore::cal::Order::Oldest),
        Query::default().searching("tea").expanding(strictly).reranked(mmr),
    ]
}

#[test]
fn pages_together_are_the_answer_whatever_their_size() {
    for seed in 1..3 {
        let (_dir, session) = store();
        fill(&session, &mut Random::new(seed), 60);
        for query in queries() {
            let whole = scored(&session, &query);
            assert!(whole.len() > 5, "{query:?}");
            for rows in [1, 2, 7, 30] {
                assert_eq!(paged(&session, &query, rows, |_| ()), whole, "{rows} of {query:?}");
            }
        }
    }
}

#[test]
fn what_others_write_meanwhile_leads_nowhere() {
    for query in queries() {
        let (_dir, session) = store();
        fill(&session, &mut Random::new(9), 60);
        let whole = scored(&session, &query);
        let mut next = 0;
        let seen = paged(&session, &query, 3, |_| {
            next += 1;
            // New links from and to what is answered, new answers, and an end of one that was given.
            for at in 0..8 {
                put(&session, edge("tea", "alice", 1_000_000 + next * 100 + at));
                put(&session, edge("alice", "green tea kettle cup", 2_000_000 + next * 100 + at));
            }
            let row = whole[usize::try_from(next).unwrap() % whole.len()].0;
            drop(session.contradict(&row, "not so", None));
        });
        assert_eq!(seen, whole, "{query:?}");
        assert_ne!(scored(&session, &query), whole, "a new query sees it all: {query:?}");
    }
}

#[test]
fn a_cursor_is_of_one_expansion() {
    let (_dir, session) = store();
    fill(&session, &mut Random::new(2), 60);
    let query = |expansion| Query::default().searching("tea").expanding(expansion);
    let first = session.query(&query(freely()), &PageOptions::first(3)).unwrap();
    let go_on = |query: &Query| {
        let page = PageOptions::first(3).after(first.next_cursor.clone());
        session.query(query, &page).map(drop).map_err(|error| error.code())
    };
    assert_eq!(go_on(&query(freely())), Ok(()));
    let usual = freely();
    for other in [
        Expansion { hops: 1, ..usual },
        Expansion { seeds: 5, ..usual },
        Expansion { decay: 0.4, ..usual },
        Expansion { freely: false, ..usual },
        Expansion { direction: grainstore::cal::Direction::Out, ..usual },
    ] {
        assert_eq!(go_on(&query(other)), Err("ERR_CURSOR"), "{other:?}");
    }
    assert_eq!(go_on(&Query::default().searching("tea")), Err("ERR_CURSOR"));
}

#[test]
fn the_same_store_gives_the_same_answer_after_reopening_and_reindexing() {
    let (dir, session) = store();
    fill(&session, &mut Random::new(5), 120);
    let before: Vec<_> = queries().iter().map(|query| scored(&session, query)).collect();
    session.store().reindex().unwrap();
    let after: Vec<_> = queries().iter().map(|query| scored(&session, query)).collect();
    assert_eq!(before, after);
    session.store().close().unwrap();
    let session = open(&dir).session(SessionOptions::default());
    let after: Vec<_> = queries().iter().map(|query| scored(&session, query)).collect();
    assert_eq!(before, after);
}

#[test]
fn a_link_raises_an_answer_of_a_vector_and_never_above_what_led_to_it() {
    let (_dir, session) = store();
    let seen = |subject: &str, object: &str, values: [f32; 3]| {
        let vector = Embedding::new("eyes", Metric::Cosine, values.to_vec()).unwrap();
        Offer::Grain(edge(subject, object, 1)).with_vectors(vec![vector])
    };
    let put = |offer: Offer| session.put(offer).unwrap().address();
    let east = put(seen("one", "two", [1.0, 0.0, 0.0]));
    let near_east = put(seen("elsewhere", "nowhere", [0.9, 0.4, 0.0]));
    let north = put(seen("two", "three", [0.0, 1.0, 0.0]));
    let blind = put(Offer::Grain(edge("two", "four", 1)));
    let query = Query::default().nearing(Near { model: None, values: [1.0, 0.0, 0.0].into() });
    let plain: Vec<_> = scored(&session, &query).into_iter().map(|row| row.0).collect();
    assert_eq!(plain, [east, near_east, north]);
    let one = Expansion { seeds: 1, decay: 0.5, ..Expansion::default() };
    let rows = scored(&session, &query.clone().expanding(one));
    let scores: Vec<f64> = rows.iter().map(|row| f64::from_bits(row.1)).collect();
    let order: Vec<_> = rows.iter().map(|row| row.0).collect();
    assert_eq!(order, [east, near_east, north, blind]);
    // North is a right angle away, which is a closeness of a half; the one without a vector has nothing.
    for (score, expected) in [(scores[0], 1.0), (scores[2], 0.75), (scores[3], 0.5)] {
        assert!((score - expected).abs() < 1e-6, "{scores:?}");
    }
}
