//! A file that states when a grain ended and not why, as an exporter does that keeps to OMS 11.7 (ruling 29 of
//! the project's reading): it has ended, whichever way one asks.

use std::sync::Arc;

use grainstore::cal::{ExecuteOptions, Query};
use grainstore::graph::EdgeQuery;
use grainstore::{
    AsOf, ConflictSubject, ContentAddress, EpochMs, Grain, GrainState, ManualClock, OpenOptions,
    PageOptions, SessionOptions, Store, VerificationStatus,
};
use tempfile::TempDir;

use crate::import::kit::{Place, address, belief, blob, child, code, counts, policy, state};

const NOW: i64 = 1_000_000;

fn until(at: i64) -> GrainState {
    GrainState { system_valid_to: Some(EpochMs::new(at)), ..GrainState::default() }
}

/// A store at a moment that the test sets.
fn at_now() -> (Place, Arc<ManualClock>) {
    let dir = TempDir::new().unwrap();
    let clock = Arc::new(ManualClock::following());
    clock.set(EpochMs::new(NOW));
    let options = OpenOptions::new().create(true).clock(Arc::<ManualClock>::clone(&clock));
    let store = Store::open(dir.path().join("store"), &options).unwrap();
    let session = store.session(SessionOptions::default());
    (Place { dir, store, session }, clock)
}

/// Which ways to ask say that the grain is current at this moment, by name.
fn shown(place: &Place, address: &ContentAddress, at: i64) -> Vec<(&'static str, bool)> {
    let session = &place.session;
    let found = |query: Query| {
        let answer = session.query(&query, &PageOptions::default()).unwrap();
        answer.results.iter().any(|row| row.content_address == *address)
    };
    let cal = |text: &str| {
        let response =
            session.ask_with(text.as_bytes(), &ExecuteOptions::at(EpochMs::new(at))).unwrap();
        let json = serde_json::to_string(&response).unwrap();
        // What ASSEMBLE gives names no address.
        json.contains(&address.to_string()) || json.contains("assam")
    };
    let as_of = AsOf { known_at: Some(EpochMs::new(at)), valid_at: None };
    let is_it =
        |found: Option<grainstore::StoredGrain>| found.is_some_and(|it| it.address == *address);
    let known = session.history_of("alice", "likes", None, Some(EpochMs::new(at))).unwrap();
    vec![
        ("query", found(Query::default())),
        ("query by words", found(Query::default().searching("assam"))),
        ("query as of now", found(Query::default().known_at(EpochMs::new(at)))),
        ("latest", is_it(session.latest("alice", "likes").unwrap())),
        ("latest as of now", is_it(session.latest_as_of("alice", "likes", None, &as_of).unwrap())),
        ("history as of now", known.iter().any(|it| it.address == *address)),
        ("RECALL", cal("RECALL beliefs WHERE subject = \"alice\"")),
        ("ABOUT", cal("RECALL beliefs ABOUT \"assam\"")),
        ("ASSEMBLE", cal("ASSEMBLE c FROM x: (RECALL beliefs) BUDGET 400 tokens FORMAT text")),
        (
            "neighbours",
            !session.neighbours("alice", &EdgeQuery::default()).unwrap().items.is_empty(),
        ),
    ]
}

fn check(place: &Place, address: &ContentAddress, at: i64, current: bool) {
    for (way, is) in shown(place, address, at) {
        assert_eq!(is, current, "{way} at {at}");
    }
}

#[test]
fn an_end_alone_ends_a_grain_on_every_path() {
    for is_here in [false, true] {
        let (place, clock) = at_now();
        let grain = belief("assam tea", 1000, "");
        let at = address(&grain);
        if is_here {
            place.session.put(grain.clone()).unwrap();
            check(&place, &at, NOW, true);
        }
        place.import(&[blob(&grain)], &[state(at, until(5000))]).unwrap();
        check(&place, &at, NOW, false);
        let stored = place.session.get(&at).unwrap();
        assert_eq!(stored.state, until(5000), "asked for by its address it is there");
        // Before its end it was known.
        let before = AsOf { known_at: Some(EpochMs::new(4999)), valid_at: None };
        assert!(place.session.latest_as_of("alice", "likes", None, &before).unwrap().is_some());
        let ended = Query::default().seeing(grainstore::cal::Visibility::EVERYTHING);
        assert_eq!(place.session.query(&ended, &PageOptions::default()).unwrap().results.len(), 1);
        place.verify();
        // It is no fact any more that one could say twice, and may be said anew.
        clock.set(EpochMs::new(NOW + 1));
        let again = place.session.put(belief("assam tea", 2000, "")).unwrap().address();
        check(&place, &again, NOW + 1, true);
    }
}

#[test]
fn an_end_that_lies_ahead_comes_when_it_comes() {
    for is_here in [false, true] {
        let (place, clock) = at_now();
        let grain = belief("assam tea", 1000, "");
        let at = address(&grain);
        if is_here {
            place.session.put(grain.clone()).unwrap();
        }
        place.import(&[blob(&grain)], &[state(at, until(NOW + 10))]).unwrap();
        for (now, current) in [(NOW, true), (NOW + 9, true), (NOW + 10, false), (NOW + 99, false)] {
            clock.set(EpochMs::new(now));
            check(&place, &at, now, current);
        }
        place.verify();
    }
}

#[test]
fn what_is_not_current_has_ended_now_at_the_latest() {
    let ahead = Some(EpochMs::new(NOW + 1_000_000_000));
    for end in [None, ahead] {
        for is_here in [false, true] {
            let retracted = GrainState {
                verification_status: VerificationStatus::Retracted,
                system_valid_to: end,
                ..GrainState::default()
            };
            let contradicted =
                GrainState { contradicted: true, system_valid_to: end, ..GrainState::default() };
            let next = child(&[address(&belief("assam tea", 1000, ""))], "coffee", 2000, "");
            let superseded = GrainState {
                superseded_by: Some(address(&next)),
                system_valid_to: end,
                ..GrainState::default()
            };
            for stated in [retracted, contradicted, superseded] {
                let (place, clock) = at_now();
                let grain = belief("assam tea", 1000, "");
                let at = address(&grain);
                if is_here {
                    place.session.put(grain.clone()).unwrap();
                }
                let mut brought = vec![blob(&grain)];
                brought.extend(stated.superseded_by.map(|_| blob(&next)));
                place.import(&brought, &[state(at, stated)]).unwrap();
                assert_eq!(place.state(&at).system_valid_to, Some(EpochMs::new(NOW)), "{stated:?}");
                // Now, and as of now, is the same; before it was known.
                let known = |then: i64| {
                    let query = Query::default().known_at(EpochMs::new(then));
                    let answer = place.session.query(&query, &PageOptions::default()).unwrap();
                    answer.results.iter().any(|row| row.content_address == at)
                };
                assert!(!known(NOW) && known(NOW - 1), "{stated:?}, here before: {is_here}");
                clock.set(EpochMs::new(NOW + 10));
                assert!(!known(NOW + 10), "{stated:?}");
                place.verify();
            }
        }
    }
}

#[test]
fn what_ends_early_ends_no_later_for_its_end_ahead() {
    let (place, clock) = at_now();
    let grain = belief("assam tea", 1000, "");
    let at = address(&grain);
    place.import(&[blob(&grain)], &[state(at, until(NOW + 1000))]).unwrap();
    place.session.supersede(&at, belief("coffee", 2000, ""), None).unwrap();
    assert_eq!(place.state(&at).system_valid_to, Some(EpochMs::new(NOW)));
    clock.set(EpochMs::new(NOW + 10));
    let as_of = AsOf { known_at: Some(EpochMs::new(NOW + 5)), valid_at: None };
    let known = place.session.latest_as_of("alice", "likes", None, &as_of).unwrap().unwrap();
    assert_eq!(known.grain().unwrap().text("object"), Some("coffee"));
    place.verify();
}

#[test]
fn a_policy_is_asked_before_a_stored_grain_ends() {
    for (mode, ends) in [
        (r#""mode": "open""#, true),
        (r#""mode": "locked""#, false),
        (r#""mode": "quorum", "threshold": 1, "authorized": ["did:key:z6Mk"]"#, false),
        (r#""mode": "hold""#, false),
        (r#""mode": "unheard_of""#, false),
    ] {
        let (place, _) = at_now();
        let grain: Grain = belief("assam tea", 1000, &policy(mode));
        let at = place.session.put(grain).unwrap().address();
        let imported = place.import(&[], &[state(at, until(5000))]).unwrap();
        check(&place, &at, NOW, !ends);
        let told = place.audit(3);
        if ends {
            assert_eq!(counts(&imported), (0, 0, 0, 0), "{mode}: {:?}", imported.conflicts);
            assert_eq!(told, [("end".to_owned(), "done".to_owned())], "{mode}");
        } else {
            assert_eq!(counts(&imported), (0, 0, 0, 1), "{mode}: {:?}", imported.conflicts);
            assert_eq!(imported.conflicts[0].about, ConflictSubject::End);
            assert_eq!(told, [("end".to_owned(), "refused".to_owned())], "{mode}");
        }
        place.verify();
        // The same once more changes nothing.
        let before = place.state(&at);
        place.import(&[], &[state(at, until(5000))]).unwrap();
        assert_eq!(place.state(&at), before, "{mode}");
        place.verify();
    }
}

#[test]
fn pages_that_began_before_an_import_show_what_it_ended() {
    let (place, _) = at_now();
    let first = place.session.put(belief("assam tea", 1000, "")).unwrap().address();
    let second = place.session.put(belief("coffee", 2000, "")).unwrap().address();
    let page = PageOptions { limit: 1, ..PageOptions::default() };
    let answer = place.session.query(&Query::default(), &page).unwrap();
    assert_eq!(answer.results[0].content_address, second);
    place.import(&[], &[state(first, until(5000))]).unwrap();
    let page = PageOptions { limit: 1, cursor: answer.next_cursor, ..PageOptions::default() };
    let answer = place.session.query(&Query::default(), &page).unwrap();
    assert_eq!(answer.results[0].content_address, first);
}

#[test]
fn a_successor_of_what_has_ended_is_taken() {
    let (place, _) = at_now();
    let grain = belief("assam tea", 1000, "");
    let at = address(&grain);
    place.import(&[blob(&grain)], &[state(at, until(5000))]).unwrap();
    let new = child(&[at], "coffee", 2000, "");
    assert_eq!(code(place.session.supersede(&at, new, None)), "OK");
    assert_eq!(place.state(&at).system_valid_to, Some(EpochMs::new(5000)));
    place.verify();
}
