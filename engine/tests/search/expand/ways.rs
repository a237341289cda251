//! Which ways there are from one grain to another, and which there are not.

use grainstore::cal::{self, Direction, Expansion, Floor, Link, Links, Predicate, Query, TypeSet};
use grainstore::format::GrainType;
use grainstore::{ContentAddress, Grain, PageOptions, Session, SessionOptions};

use crate::expand::kit::{addresses, grain, put, store};

/// A belief that leads from one node to another, said at this time.
pub(crate) fn edge(subject: &str, object: &str, at: i64) -> Grain {
    edge_in("shared", subject, object, at)
}

fn edge_in(namespace: &str, subject: &str, object: &str, at: i64) -> Grain {
    grain(&format!(
        r#"{{"type": "belief", "subject": "{subject}", "relation": "leads to", "object": "{object}",
            "namespace": "{namespace}", "confidence": 0.5, "created_at": {at}}}"#
    ))
}

fn steps(hops: usize) -> Expansion {
    Expansion { hops, decay: 0.5, ..Expansion::default() }
}

fn from(text: &str, expansion: Expansion) -> Query {
    Query::default().searching(text).expanding(expansion)
}

#[test]
fn a_score_goes_down_with_each_link() {
    let (_dir, session) = store();
    let chain = ["one", "two", "three", "four", "five"];
    let edges = chain.windows(2).map(|pair| put(&session, edge(pair[0], pair[1], 1)));
    let edges: Vec<ContentAddress> = edges.collect();
    let answer = session.query(&from("one", steps(3)), &PageOptions::default()).unwrap();
    let rows: Vec<_> = answer.results.iter().map(|row| (row.content_address, row.score)).collect();
    let best = rows[0].1;
    assert!(best > 0.0 && best <= 1.0);
    let expected =
        [(edges[0], best), (edges[1], best / 2.0), (edges[2], best / 4.0), (edges[3], best / 8.0)];
    assert_eq!(rows, expected);
    assert_eq!(answer.total, Some(4));
    for (direction, expected) in [(Direction::Out, 3), (Direction::In, 1), (Direction::Both, 3)] {
        let expansion = Expansion { direction, hops: 2, ..Expansion::default() };
        assert_eq!(addresses(&session, &from("one", expansion)).len(), expected, "{direction:?}");
    }
    assert_eq!(addresses(&session, &from("five", steps(1))), [edges[3], edges[2]]);
}

#[test]
fn a_grain_outside_the_session_is_no_stepping_stone() {
    let (_dir, session) = store();
    let first = put(&session, edge_in("a", "one", "two", 1));
    let stone = put(&session, edge_in("b", "two", "three", 1));
    let last = put(&session, edge_in("a", "three", "four", 1));
    let namespace = Some("a".to_owned());
    let inside = session.store().session(SessionOptions { namespace, ..SessionOptions::default() });
    assert_eq!(addresses(&session, &from("one", steps(3))), [first, stone, last]);
    assert_eq!(addresses(&inside, &from("one", steps(3))), [first]);
    let within = from("one", steps(3)).within(cal::Reach::Exact("a".to_owned()));
    assert_eq!(addresses(&session, &within), [first]);
}

#[test]
fn what_is_no_longer_current_is_no_stepping_stone_but_at_its_time() {
    let (_dir, session) = store();
    let first = put(&session, edge("one", "two", 1));
    let stone = put(&session, edge("two", "three", 2));
    let last = put(&session, edge("three", "four", 3));
    assert_eq!(addresses(&session, &from("one", steps(3))), [first, stone, last]);
    let newer = grain(
        r#"{"type": "belief", "subject": "two", "relation": "leads to", "object": "nothing",
            "confidence": 0.5, "created_at": 4}"#,
    );
    let newer = session.supersede(&stone, newer, None).unwrap();
    assert_eq!(addresses(&session, &from("one", steps(3))), [first, newer]);
    let then = from("one", steps(3)).known_at(grainstore::EpochMs::new(3));
    assert_eq!(addresses(&session, &then), [first, stone, last]);
    let too_early = from("one", steps(3)).known_at(grainstore::EpochMs::new(2));
    assert_eq!(addresses(&session, &too_early), [first, stone]);
    session.contradict(&newer, "not so", None).unwrap();
    assert_eq!(addresses(&session, &from("one", steps(3))), [first]);
}

#[test]
fn conditions_are_for_what_is_shown_and_not_for_the_way() {
    let (_dir, session) = store();
    let first = put(&session, edge("one", "two", 1));
    put(&session, edge("two", "three", 2));
    let last = put(&session, edge("three", "four", 3));
    let three = Predicate::text_is("subject", "three").unwrap();
    let only = from("leads", steps(3)).when(three.clone());
    assert_eq!(addresses(&session, &only), [last]);
    let one_or_three = Predicate::text_is("relation", "leads to").unwrap();
    let early_and_late = from("one", steps(2)).when(one_or_three).among(vec![first, last]);
    assert_eq!(addresses(&session, &early_and_late), [first, last]);
    let freely = Expansion { freely: true, ..steps(1) };
    let query = from("leads", freely).when(three);
    let answer = session.query(&query, &PageOptions::default()).unwrap();
    assert_eq!(answer.results.len(), 2);
    assert_eq!(answer.results[0].matched_fields, ["subject", "relation"]);
    assert_eq!(answer.results[1].matched_fields, ["relation"], "it does not have the subject");
    let goals = from("one", steps(2)).of_types(TypeSet::of(GrainType::Goal));
    assert_eq!(addresses(&session, &goals), []);
}

#[test]
fn each_kind_of_link_is_followed_where_it_is_named() {
    let (_dir, session) = store();
    let source = put(&session, edge("one", "two", 1));
    let event = |fields: &str| {
        let json = r#""type": "event", "content": "x", "role": "user", "created_at": 5"#;
        put(&session, grain(&format!("{{{json}, {fields}}}")))
    };
    let reply = event(&format!(r#""parent_message_id": "{source}""#));
    let child = event(&format!(r#""derived_from": ["{source}"]"#));
    let related = event(&format!(
        r#""related_to": [{{"hash": "{source}", "relation_type": "supports", "weight": 1.0}}]"#
    ));
    let next = put(&session, edge("two", "three", 5));
    let beside = put(&session, edge("one", "elsewhere", 5));
    let by = |text: &str, link: Link, direction: Direction| {
        let links = Links::from_iter([link]);
        let expansion = Expansion { links, direction, ..Expansion::default() };
        addresses(&session, &from(text, expansion))
    };
    // The best answer to "one two" is the source.
    for (link, other) in
        [(Link::Reply, reply), (Link::DerivedFrom, child), (Link::RelatedTo, related)]
    {
        for (direction, is_found) in
            [(Direction::In, true), (Direction::Both, true), (Direction::Out, false)]
        {
            let found = by("one two", link, direction);
            assert_eq!(found[0], source);
            assert_eq!(found.contains(&other), is_found, "{link:?} {direction:?}");
            assert!(found.iter().all(|one| [source, next, beside, other].contains(one)));
        }
    }
    for (text, link, expected) in [
        ("elsewhere", Link::Subject, vec![beside, source]),
        ("three", Link::Triple, vec![next, source]),
        ("elsewhere", Link::Triple, vec![beside]),
    ] {
        assert_eq!(by(text, link, Direction::Both), expected, "{text} {link:?}");
    }
}

#[test]
fn with_words_that_must_or_must_not_be_there_what_is_linked_answers_them_too() {
    let (_dir, session) = store();
    let first = put(&session, edge("one", "two", 1));
    let next = put(&session, edge("two", "three", 2));
    for (text, expected) in [
        ("one", vec![first, next]),
        ("+one", vec![first]),
        ("one -three", vec![first]),
        ("one -four", vec![first]),
        ("one +leads", vec![first, next]),
    ] {
        for freely in [false, true] {
            let found = addresses(&session, &from(text, Expansion { freely, ..steps(1) }));
            assert_eq!(found, expected, "{text}");
        }
    }
}

#[test]
fn a_floor_is_for_what_is_followed_and_for_what_is_linked() {
    let (_dir, session) = store();
    put(&session, edge("one", "two", 1));
    put(&session, edge("two", "three", 2));
    let count = |least: f64| {
        let query = from("one", steps(1)).scoring(Floor { least, above: false });
        addresses(&session, &query).len()
    };
    let best =
        session.query(&from("one", steps(1)), &PageOptions::default()).unwrap().results[0].score;
    assert_eq!([0.0, best / 2.0, best, 1.0].map(count), [2, 2, 1, 0]);
}

#[test]
fn answers_to_conditions_alone_are_followed_freely_and_stay_first() {
    let (_dir, session) = store();
    let old = put(&session, edge("alice", "tea", 1));
    let new = put(&session, edge("alice", "cups", 2));
    let tea = put(&session, edge("tea", "kettle", 3));
    let kettle = put(&session, edge("kettle", "water", 4));
    let alice = Query::default().when(Predicate::text_is("subject", "alice").unwrap());
    let freely = Expansion { freely: true, ..steps(2) };
    let query = alice.clone().expanding(freely);
    assert_eq!(addresses(&session, &query), [new, old, tea, kettle]);
    let answer = session.query(&query, &PageOptions::default()).unwrap();
    let scores: Vec<f64> = answer.results.iter().map(|row| row.score).collect();
    assert_eq!(scores, [1.0, 1.0, 0.5, 0.25]);
    assert_eq!(answer.results[2].matched_fields, [""; 0]);
    let one = alice.expanding(Expansion { seeds: 1, ..freely });
    assert_eq!(addresses(&session, &one), [new, old], "the newest leads nowhere");
}

/// What CAL answers with an expansion of its host.
fn recalled(session: &Session, source: &str, expansion: Expansion) -> serde_json::Value {
    let reading = session.reading().unwrap();
    let options = cal::ExecuteOptions {
        expansion: Some(expansion),
        ..cal::ExecuteOptions::at(session.now())
    };
    let answer = cal::execute(&reading, source, &options, &cal::WriteQuotas::default()).unwrap();
    serde_json::to_value(answer).unwrap()
}

#[test]
fn a_recall_tells_what_a_link_gave() {
    let (_dir, session) = store();
    put(&session, edge("one", "two", 1));
    put(&session, edge("two", "three", 2));
    let source = r#"RECALL LIKE "one" WITH score_breakdown, explanation"#;
    let answer = recalled(&session, source, steps(1));
    let rows = answer["results"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{answer}");
    let best = &rows[0]["score_breakdown"];
    assert!(best["text"].as_f64() > Some(0.0) && best.get("graph").is_none(), "{best}");
    let linked = &rows[1]["score_breakdown"];
    assert_eq!(linked["text"], 0.0);
    assert_eq!(linked["graph"], rows[1]["score"]);
    let freely = Expansion { freely: true, ..steps(1) };
    let answer =
        recalled(&session, r#"RECALL ABOUT "one" WITH score_breakdown, explanation"#, freely);
    let rows = answer["results"].as_array().unwrap();
    assert_eq!(rows[1]["score_breakdown"], serde_json::json!({"graph": 0.5}), "{answer}");
    assert_eq!(rows[1]["explanation"], "linked to a better answer");
    assert_eq!(rows[1]["matched_fields"], serde_json::json!([]));
}
