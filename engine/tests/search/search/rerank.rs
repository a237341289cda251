//! The best answers in another order: unlike each other, new, wanted.

use std::sync::Arc;

use grainstore::cal::{self, Diversity, Query, Rerank};
use grainstore::{
    Clock, EpochMs, ManualClock, OpenOptions, PageOptions, Session, SessionOptions, Store,
};

use crate::search::kit::{addresses, belief, grain, put, scored, store};

fn objects(session: &Session, query: &Query, limit: usize) -> Vec<String> {
    let answer = session.query(query, &PageOptions::first(limit)).unwrap();
    let object = |row: &grainstore::QueryMatch| row.grain.text("object").unwrap().to_owned();
    answer.results.iter().map(object).collect()
}

fn diverse(diversity: Diversity) -> Query {
    let rerank = Rerank { diversity: Some(diversity), ..Rerank::default() };
    Query::default().searching("tea").reranked(rerank)
}

/// Three grains that say the same, and two that say something else of the same.
fn repetitive() -> (tempfile::TempDir, Session) {
    let (dir, session) = store();
    for object in ["green tea daily", "green tea daily too", "green tea daily again"] {
        put(&session, belief("alice", object));
    }
    put(&session, belief("bob", "no tea whatsoever before breakfast or after supper"));
    put(&session, belief("carol", "a plantation somewhere high up grows black tea"));
    (dir, session)
}

#[test]
fn answers_that_say_the_same_give_way_to_others() {
    let (_dir, session) = repetitive();
    let plain = objects(&session, &Query::default().searching("tea"), 3);
    assert!(plain.iter().all(|object| object.starts_with("green")), "{plain:?}");
    let mixed = objects(&session, &diverse(Diversity::Mmr { lambda: 0.5 }), 3);
    assert_eq!(mixed.iter().filter(|object| object.starts_with("green")).count(), 1, "{mixed:?}");
    let relevant = objects(&session, &diverse(Diversity::Mmr { lambda: 1.0 }), 5);
    assert_eq!(relevant, objects(&session, &Query::default().searching("tea"), 5));
    let apart = objects(&session, &diverse(Diversity::Threshold(0.6)), 5);
    assert_eq!(apart.len(), 3, "{apart:?}");
    let all = objects(&session, &diverse(Diversity::Threshold(1.0)), 5);
    assert_eq!(all.len(), 5, "nothing is more like another than the same");
}

#[test]
fn pages_of_another_order_are_one_answer() {
    let diversity = Some(Diversity::Mmr { lambda: 0.3 });
    let of_conditions = Query::default().reranked(Rerank { diversity, ..Rerank::default() });
    for query in [diverse(Diversity::Mmr { lambda: 0.3 }), of_conditions] {
        let (_dir, session) = repetitive();
        let whole = addresses(&session, &query);
        let (mut paged, mut cursor) = (Vec::new(), None);
        loop {
            let page = session.query(&query, &PageOptions::first(2).after(cursor)).unwrap();
            paged.extend(page.results.iter().map(|row| row.content_address));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
            for at in 0..9 {
                put(&session, belief("dan", &format!("tea tea tea {} {at}", paged.len())));
            }
        }
        assert_eq!(paged, whole, "{query:?}");
    }
}

/// A store whose time stands still, with grains of several ages, some of which were read.
fn aged(clock: &Arc<ManualClock>) -> (tempfile::TempDir, Session) {
    let dir = tempfile::TempDir::new().unwrap();
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    let store = Store::open(dir.path(), &OpenOptions::new().create(true).clock(clock)).unwrap();
    let session = store.session(SessionOptions::default());
    for at in 0_u8..24 {
        let said = put(
            &session,
            grain(&format!(
                r#"{{"type": "belief", "subject": "s", "relation": "r", "confidence": 0.5,
                    "object": "tea {at} {}", "created_at": {}}}"#,
                "and ".repeat(usize::from(at % 5)),
                NOW - i64::from(at) * 7 % 24 * DAY
            )),
        );
        (0..at % 3).for_each(|_| drop(session.get(&said).unwrap()));
    }
    (dir, session)
}

const DAY: i64 = 86_400_000;
const NOW: i64 = 1_800_000_000_000;

#[test]
fn pages_are_one_answer_though_time_passes_and_answers_are_read() {
    let clock = Arc::new(ManualClock::following());
    clock.set(EpochMs::new(NOW));
    for rerank in [
        Rerank { access: true, ..Rerank::default() },
        Rerank { recency_ms: Some(5 * DAY), ..Rerank::default() },
        Rerank {
            access: true,
            recency_ms: Some(9 * DAY),
            diversity: Some(Diversity::Mmr { lambda: 0.8 }),
        },
    ] {
        let query = Query::default().searching("tea").reranked(rerank);
        // Whoever is given an answer reads it: the whole is asked of another store.
        let whole = scored(&aged(&clock).1, &query);
        assert_eq!(whole.len(), 24);
        let (_dir, session) = aged(&clock);
        let (mut paged, mut cursor) = (Vec::new(), None);
        loop {
            let answer = session.query(&query, &PageOptions::first(5).after(cursor)).unwrap();
            let rows = answer.results.iter();
            paged.extend(rows.map(|row| (row.content_address, row.score.to_bits())));
            cursor = answer.next_cursor;
            if cursor.is_none() {
                break;
            }
            clock.set(EpochMs::new(session.now().get() + 3 * DAY));
            for (late, _) in whole.iter().rev().take(3) {
                (0..9).for_each(|_| drop(session.get(late).unwrap()));
            }
            put(&session, belief("dan", "tea tea tea"));
            // One that ends between two pages was current on the first.
            if paged.len() == 5 {
                session.contradict(&whole[20].0, "no more", None).unwrap();
            }
        }
        assert_eq!(paged, whole, "{rerank:?}");
        clock.set(EpochMs::new(NOW));
    }
}

#[test]
fn new_answers_and_wanted_ones_can_come_first() {
    let (_dir, session) = store();
    let now = session.now().get();
    let day = 86_400_000;
    let said = |object: &str, days_ago: i64| {
        put(
            &session,
            grain(&format!(
                r#"{{"type": "belief", "subject": "s", "relation": "r", "object": "{object}",
                    "confidence": 0.5, "created_at": {}}}"#,
                now - days_ago * day
            )),
        )
    };
    let old = said("tea", 300);
    let new = said("tea and more of it than anybody wanted", 0);
    let by =
        |rerank: Rerank| addresses(&session, &Query::default().searching("tea").reranked(rerank));
    assert_eq!(by(Rerank::default()), [old, new]);
    assert_eq!(by(Rerank { recency_ms: Some(day), ..Rerank::default() }), [new, old]);
    for _ in 0..40 {
        session.get(&new).unwrap();
    }
    assert_eq!(by(Rerank { access: true, ..Rerank::default() }), [new, old]);
}

#[test]
fn cal_chooses_among_grains() {
    let (_dir, session) = repetitive();
    let run = |source: &str| {
        let reading = session.reading().unwrap();
        let options = cal::ExecuteOptions::at(session.now());
        let answer = cal::execute(&reading, source, &options, &cal::WriteQuotas::default());
        answer.map_err(|error| error.code().to_owned()).map(|answer| match answer.answer {
            cal::Answer::Grains(grains) => grains.results.len(),
            cal::Answer::Assembly { formatted_context, .. } => {
                formatted_context.text.matches("<belief").count()
            }
            _ => 0,
        })
    };
    assert_eq!(run(r#"RECALL LIKE "tea" WITH diversity(threshold, 0.6)"#), Ok(3));
    assert_eq!(run(r#"RECALL LIKE "tea" WITH diversity(mmr, lambda = 0.3) LIMIT 4"#), Ok(4));
    assert_eq!(run(r#"RECALL beliefs WITH diversity(mmr) LIMIT 2"#), Ok(2));
    assert_eq!(run(r#"RECALL LIKE "tea" WITH diversity(mmr, lambda = 2)"#), Err("CAL-E006".into()));
    assert_eq!(run(r#"RECALL LIKE "tea" WITH diversity(best)"#), Err("CAL-E002".into()));
    assert_eq!(run(r#"RECALL LIKE "tea" WITH diversity(mmr) | COUNT"#), Err("CAL-E021".into()));
    // An assembly hands it to its sources.
    assert_eq!(run(r#"ASSEMBLE FROM (RECALL LIKE "tea") WITH diversity(threshold, 0.6)"#), Ok(3));
}
