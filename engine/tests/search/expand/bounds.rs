//! What an expansion may not be asked, and what it does where there is too much.

use std::time::{Duration, Instant};

use grainstore::cal::{CancelHandle, Expansion, Link, Links, Query};
use grainstore::{Error, PageOptions, SessionOptions};

use crate::expand::kit::{belief, found, put, store};
use crate::expand::ways::edge;

fn code<T>(outcome: Result<T, Error>) -> Result<(), &'static str> {
    outcome.map(drop).map_err(|error| error.code())
}

#[test]
fn what_cannot_be_followed_is_refused() {
    let (_dir, session) = store();
    put(&session, belief("alice", "tea"));
    let usual = Expansion::default();
    let (schema, limit) = (Err("ERR_SCHEMA"), Err("ERR_LIMIT"));
    #[rustfmt::skip]
    let table = [
        (usual, Ok(())),
        (Expansion { hops: 0, ..usual }, schema),
        (Expansion { hops: 3, ..usual }, Ok(())),
        (Expansion { hops: 4, ..usual }, limit),
        (Expansion { hops: 99, ..usual }, limit),
        (Expansion { hops: usize::MAX, ..usual }, limit),
        (Expansion { seeds: 0, ..usual }, schema),
        (Expansion { seeds: 65, ..usual }, limit),
        (Expansion { fan_out: 0, ..usual }, schema),
        (Expansion { fan_out: 1_000_000_000, ..usual }, limit),
        (Expansion { reached: 0, ..usual }, schema),
        (Expansion { reached: 1_000_000_000, ..usual }, limit),
        (Expansion { links: Links::NONE, ..usual }, schema),
        (Expansion { decay: 0.0, ..usual }, schema),
        (Expansion { decay: 1.0, ..usual }, schema),
        (Expansion { decay: -0.5, ..usual }, schema),
        (Expansion { decay: f64::NAN, ..usual }, schema),
        (Expansion { decay: f64::INFINITY, ..usual }, schema),
    ];
    for (expansion, expected) in table {
        let query = Query::default().searching("tea").expanding(expansion);
        assert_eq!(code(session.query(&query, &PageOptions::default())), expected, "{expansion:?}");
        assert_eq!(code(session.explain(&query)), expected, "{expansion:?}");
    }
    let alone = Query::default().expanding(usual);
    assert_eq!(code(session.query(&alone, &PageOptions::default())), schema);
    let freely = Query::default().expanding(Expansion { freely: true, ..usual });
    assert_eq!(code(session.query(&freely, &PageOptions::default())), Ok(()));
}

#[test]
fn a_hub_gives_its_newest_and_says_that_there_are_more() {
    let (_dir, session) = store();
    put(&session, edge("kettle", "hub", 1));
    let grains = (0..5_000).map(|at| edge("hub", &format!("spoke {at}"), 2_000 + at));
    session.put_batch(grains.collect::<Vec<_>>()).unwrap();
    // What is no longer current takes nobody's place.
    for at in 4_990..5_000 {
        let newest = &found(&session, &format!("+\"spoke {at}\""))[0];
        session.contradict(newest, "not so", None).unwrap();
    }
    let spokes = |expansion: Expansion| {
        let query = Query::default().searching("kettle").expanding(expansion);
        let page = PageOptions { count_to: 10_000, explain: true, ..PageOptions::first(10_000) };
        let answer = session.query(&query, &page).unwrap();
        let mut objects: Vec<String> =
            answer.results.iter().map(|row| row.grain.text("object").unwrap().to_owned()).collect();
        assert_eq!(objects.remove(0), "hub");
        objects.sort();
        (objects, answer.total, answer.plan.unwrap().expansion.unwrap().run.unwrap())
    };
    let (objects, total, run) = spokes(Expansion { fan_out: 3, ..Expansion::default() });
    assert_eq!(objects, ["spoke 4987", "spoke 4988", "spoke 4989"]);
    assert_eq!((total, run.cut, run.seeds, run.reached), (None, true, 1, 3));
    assert!(run.looked < 50, "{run:?}");
    // Through the newest spokes, back to the hub, and out again.
    let deep = Expansion { hops: 3, fan_out: 3, links: all(), ..Expansion::default() };
    let (objects, _, run) = spokes(deep);
    assert!(objects.len() > 3 && run.looked < 500, "{objects:?} {run:?}");
    let (objects, total, run) =
        spokes(Expansion { fan_out: 256, reached: 40, ..Expansion::default() });
    assert_eq!((objects.len(), total, run.cut, run.reached), (40, None, true, 40));
    let narrow = Links::from_iter([Link::Reply]);
    let (objects, total, run) = spokes(Expansion { links: narrow, ..Expansion::default() });
    assert_eq!((objects.len(), total, run.cut), (0, Some(1), false));
}

fn all() -> Links {
    Link::ALL.into_iter().collect()
}

#[test]
fn of_one_instant_the_smallest_addresses_are_taken() {
    let (_dir, session) = store();
    put(&session, edge("kettle", "hub", 1));
    // So many that some addresses start alike.
    let grains = (0..9_000).map(|at| edge("hub", &format!("spoke {at}"), 2_000));
    let puts = session.put_batch(grains.collect::<Vec<_>>()).unwrap();
    let mut spokes: Vec<_> = puts.iter().map(grainstore::PutOutcome::address).collect();
    spokes.sort();
    let alike = |end: &usize| spokes[end - 1].as_bytes()[..2] == spokes[*end].as_bytes()[..2];
    let between: Vec<usize> = (1..256).filter(alike).collect();
    assert!(between.len() > 3, "hardly any addresses start alike");
    for fan_out in between {
        let expansion = Expansion { fan_out, ..Expansion::default() };
        let query = Query::default().searching("kettle").expanding(expansion);
        let answer = session.query(&query, &PageOptions::first(10_000)).unwrap();
        let linked: Vec<_> = answer.results.iter().skip(1).map(|row| row.content_address).collect();
        assert_eq!(linked, spokes[..fan_out], "{fan_out}");
    }
}

#[test]
fn following_links_ends_when_the_host_says_so() {
    let (_dir, session) = store();
    put(&session, edge("kettle", "hub", 1));
    let grains = (0..2_000).map(|at| edge("hub", &format!("spoke {at}"), 2_000 + at));
    session.put_batch(grains.collect::<Vec<_>>()).unwrap();
    let query = Query::default().searching("kettle").expanding(Expansion::default());
    let late = PageOptions { timeout: Duration::ZERO, ..PageOptions::default() };
    assert_eq!(code(session.query(&query, &late)), Err("ERR_TIMEOUT"));
    let cancel = CancelHandle::new();
    cancel.cancel();
    let stopped = PageOptions { cancel, ..PageOptions::default() };
    assert_eq!(code(session.query(&query, &stopped)), Err("ERR_TIMEOUT"));
}

#[test]
fn the_most_that_may_be_asked_for_ends_soon() {
    let (_dir, session) = store();
    // Everybody is linked to everybody, in a hundred namespaces.
    let node = |at: i64| format!("node {}", at.rem_euclid(7));
    let grains = (0..4_000).map(|at| {
        let mut fields = edge(&node(at), &node(at / 7), at).into_fields();
        fields.insert("namespace".to_owned(), format!("n{}", at % 100).into());
        grainstore::Grain::from_fields(fields).unwrap()
    });
    session.put_batch(grains.collect::<Vec<_>>()).unwrap();
    let most = Expansion {
        hops: Expansion::MAX_HOPS,
        seeds: Expansion::MAX_SEEDS,
        links: all(),
        fan_out: Expansion::MAX_FAN_OUT,
        reached: Expansion::MAX_REACHED,
        ..Expansion::default()
    };
    let query = Query::default().searching("node").expanding(most);
    let page =
        PageOptions { timeout: Duration::from_secs(60), explain: true, ..PageOptions::default() };
    let started = Instant::now();
    let answer = session.query(&query, &page).unwrap();
    let run = answer.plan.unwrap().expansion.unwrap().run.unwrap();
    println!("{run:?} in {:?}", started.elapsed());
    assert!(run.cut && run.looked <= 70_000, "{run:?}");
    // A session of one namespace sees what lies in it.
    let namespace = Some("n3".to_owned());
    let session =
        session.store().session(SessionOptions { namespace, ..SessionOptions::default() });
    let answer = session.query(&query, &page).unwrap();
    assert!(answer.results.iter().all(|row| row.grain.text("namespace") == Some("n3")));
}

#[test]
fn grains_that_may_not_be_seen_are_passed_over_to_a_bound() {
    let said = |subject: &str, object: &str, user: &str, at: i64| {
        let mut fields = edge(subject, object, at).into_fields();
        fields.insert("user_id".to_owned(), user.into());
        grainstore::Grain::from_fields(fields).unwrap()
    };
    let ann = || grainstore::cal::Predicate::text_is("user_id", "ann").unwrap();
    for (hidden, found) in [(1_000, 2), (1_100, 1)] {
        let (_dir, session) = store();
        put(&session, said("kettle", "hub", "ann", 1));
        put(&session, said("hub", "seen", "ann", 2));
        let others = (0..hidden).map(|at| said("hub", &format!("{at}"), "ben", 1_000 + at));
        session.put_batch(others.collect::<Vec<_>>()).unwrap();
        let query = Query::default().searching("kettle").expanding(Expansion::default());
        let page = PageOptions { count_to: 10_000, ..PageOptions::default() };
        let answer = session.query(&query.clone().when(ann()), &page).unwrap();
        assert_eq!(answer.results.len(), found, "behind {hidden}");
        assert_eq!(answer.total.is_none(), found == 1, "what was not looked at is not counted");
        let answer = session.query(&query, &page).unwrap();
        assert_eq!(answer.results.len(), 33, "without a user all count");
    }
}
