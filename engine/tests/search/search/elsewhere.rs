//! What a session with a namespace learns of grains it does not see: nothing but what
//! docs/security.md says.

use std::f32::consts::TAU;

use grainstore::cal::{Near, Query};
use grainstore::embed::{Embedding, Metric};
use grainstore::{Offer, PageOptions, QueryPage, QueryPlan, Session, SessionOptions};
use tempfile::TempDir;

use crate::search::kit::{grain, open};

/// Grains of the own namespace: more than are scored one by one.
const OWN: usize = 2_100;

/// A store with enough grains in a namespace to be searched by words, and these texts in another: a
/// session of the first.
fn beside(others: &[&str]) -> (TempDir, Session) {
    let dir = TempDir::new().unwrap();
    let all = open(&dir).session(SessionOptions::default());
    let event = |namespace: &str, at: usize, content: &str| {
        grain(&format!(
            r#"{{"type": "event", "content": "{content}", "namespace": "{namespace}",
                "created_at": {at}}}"#
        ))
    };
    let own = (0..OWN).map(|at| event("own", at, &format!("filler {at}")));
    all.put_batch(own).unwrap();
    all.put_batch(others.iter().enumerate().map(|(at, text)| event("other", at, text))).unwrap();
    let session = of(&all, Some("own"), None);
    (dir, session)
}

/// Another session of the same store.
fn of(session: &Session, namespace: Option<&str>, user: Option<&str>) -> Session {
    session.store().session(SessionOptions {
        namespace: namespace.map(str::to_owned),
        user_id: user.map(str::to_owned),
        ..SessionOptions::default()
    })
}

fn plan(session: &Session, text: &str) -> QueryPlan {
    session.explain(&Query::default().searching(text)).unwrap()
}

#[test]
fn a_plan_names_what_was_asked_and_no_word_or_number_of_others() {
    let (_dir, session) = beside(&["hidden zetaaurora", "hidden zetabismarck"]);
    for text in ["zeta*", "zetaauror~", "zetaaurxxa~2", "+zeta*", "\"hidden zetaaurora\""] {
        let plan = plan(&session, text);
        assert_eq!(
            (plan.index.as_str(), plan.lists[0].lookups.as_slice()),
            ("text", &[text.to_owned()][..])
        );
        assert!(plan.estimated >= OWN as u64 / 2, "grains of its own: {plan:?}");
        assert_eq!(plan.lists[0].rows, plan.estimated);
    }
    assert_eq!(plan(&session, "filler hidden -zeta*").lists[0].lookups, ["filler", "hidden"]);
    // The same without the others is the same plan.
    let (_dir, alone) = beside(&[]);
    let told = |session| serde_json::to_string(&plan(session, "zeta* hidden")).unwrap();
    assert_eq!(told(&session), told(&alone));
    let user = of(&session, None, Some("alice"));
    assert_eq!(plan(&user, "zeta*").lists[0].lookups, ["zeta*"]);
    let all = of(&session, None, None);
    assert_eq!(
        plan(&all, "zeta*").lists[0].lookups,
        ["\"zetaaurora\" in 1 grains", "\"zetabismarck\" in 1 grains"]
    );
}

/// What a query answers, with how it was found.
fn explained(session: &Session, query: &Query) -> QueryPage {
    session.query(query, &PageOptions { explain: true, ..PageOptions::first(1) }).unwrap()
}

fn scanned(session: &Session, query: &Query) -> u64 {
    explained(session, query).plan.unwrap().scanned.unwrap()
}

#[test]
fn how_many_grains_were_looked_at_tells_of_none_elsewhere() {
    let texts = ["payroll merger", "payroll merger", "merger of payrolls", "filler merger"];
    let (_dir, session) = beside(&texts);
    let (_dir, alone) = beside(&[]);
    let searches =
        ["payroll", "\"payroll merger\"", "\"merger payroll\"", "+payroll +merger", "pay*"];
    for text in searches {
        let query = Query::default().searching(text);
        assert_eq!(scanned(&session, &query), 0, "{text}");
        let statement = format!("RECALL WHERE query = {text:?}");
        let response = serde_json::to_value(session.ask(&statement).unwrap()).unwrap();
        assert_eq!(response["_cal"]["budget"]["grains_scanned"], 0, "{response}");
    }
    for text in ["filler", "filler 7", "filler merger", "\"filler 99\""] {
        let query = Query::default().searching(text);
        assert!(scanned(&alone, &query) > 0, "{text}");
        assert_eq!(scanned(&session, &query), scanned(&alone, &query), "{text}");
    }
    let all = of(&session, None, None);
    let own = scanned(&all, &Query::default().searching("payroll"));
    assert_eq!(own, 2, "the one it shows, and whether there is another");
    // Addresses of others that are named are not looked at either.
    let found = all.query(&Query::default().searching("payroll"), &PageOptions::first(9)).unwrap();
    let named: Vec<_> = found.results.iter().map(|row| row.content_address).collect();
    assert_eq!(scanned(&session, &Query::default().among(named.clone())), 0);
    assert_eq!(scanned(&all, &Query::default().among(named)), 3);
}

/// A direction, as a vector of two numbers.
fn towards(turn: f32) -> Vec<f32> {
    vec![(turn * TAU).cos(), (turn * TAU).sin()]
}

#[test]
fn vectors_elsewhere_change_no_count_no_total_and_no_page() {
    // More than a leg finds, all on one side.
    const SEEN: usize = 160;
    let (_dir, session) = beside(&[]);
    let (_dir, alone) = beside(&[]);
    let put = |session: &Session, namespace: &str, at: usize, turn: f32| {
        let seen = grain(&format!(
            r#"{{"type": "event", "content": "seen {at}", "namespace": "{namespace}",
                "created_at": {}}}"#,
            10_000 + at
        ));
        let vector = Embedding::new("eyes", Metric::L2, towards(turn)).unwrap();
        session.put(Offer::Grain(seen).with_vectors(vec![vector])).unwrap();
    };
    for at in 0..SEEN {
        let turn = 0.5 + f32::from(u8::try_from(at).unwrap()) / 10_000.0;
        put(&session, "own", at, turn);
        put(&alone, "own", at, turn);
    }
    let all = of(&session, None, None);
    for at in 0..200 {
        put(&all, "other", at, 0.1 + f32::from(u8::try_from(at).unwrap()) / 10_000.0);
    }
    for turn in [0.1, 0.11, 0.3, 0.5, 0.9] {
        let near = Near { model: None, values: towards(turn).into() };
        for query in [
            Query::default().nearing(near.clone()),
            Query::default().nearing(near).searching("filler seen"),
        ] {
            let (with, without) = (explained(&session, &query), explained(&alone, &query));
            assert_eq!(with.total, without.total, "at {turn}");
            assert_eq!(with.results[0].content_address, without.results[0].content_address);
            assert_eq!(with.next_cursor.is_some(), without.next_cursor.is_some());
            let looked_at = |answer: QueryPage| answer.plan.unwrap().scanned.unwrap();
            let (with, without) = (looked_at(with), looked_at(without));
            assert_eq!(with, without, "at {turn}");
            assert!(with >= 128, "{with}");
        }
    }
}
