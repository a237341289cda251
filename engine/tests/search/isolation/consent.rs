//! When a consent holds: its time to the millisecond, renewals, withdrawals before and after, and what is
//! written on one that does not hold.

use grainstore::cal::{Query, Rerank};
use grainstore::{ContentAddress, PageOptions, QueryMatch, Session};
use serde_json::{Value, json};

use crate::isolation::kit::{
    NOW, Place, address, belief, code, consent, everything, found, grain, put, with,
};

/// A belief that rests on a consent.
fn resting(object: &str, basis: &ContentAddress) -> Value {
    with(belief(object, 1000), &json!({ "processing_basis": basis.to_string() }))
}

/// A grant that holds from and to these times.
fn held(at: i64, from: Option<i64>, to: Option<i64>) -> Value {
    let window = [("valid_from", from), ("valid_to", to)];
    let window =
        window.into_iter().filter_map(|(name, time)| Some((name.to_owned(), time?.into())));
    with(consent(at, None), &Value::Object(window.collect()))
}

fn renew(session: &Session, old: &ContentAddress, fields: &Value) -> ContentAddress {
    session.supersede(old, grain(fields), Some("renewed")).unwrap()
}

/// Whether a grain is shown: everywhere, or nowhere with ERR_WITHDRAWN.
fn is_shown(session: &Session, address: &ContentAddress) -> bool {
    let listed = found(session, &everything()).contains(address);
    assert_eq!(session.exists(address).unwrap(), listed);
    assert_eq!(session.get_batch(&[*address]).unwrap()[0].is_some(), listed);
    assert_eq!(code(session.get(address)), if listed { "OK" } else { "ERR_WITHDRAWN" });
    assert_eq!(code(session.history(address)), if listed { "OK" } else { "ERR_WITHDRAWN" });
    listed
}

#[test]
fn a_consent_holds_from_its_first_millisecond_to_its_last() {
    let open = NOW;
    for (from, to, times) in [
        (None, None, vec![(i64::from(u32::MAX), true), (open, true)]),
        (Some(open), None, vec![(open - 1, false), (open, true), (open + 1, true)]),
        (None, Some(open), vec![(open - 1, true), (open, true), (open + 1, false)]),
        (Some(open), Some(open), vec![(open - 1, false), (open, true), (open + 1, false)]),
        (Some(open + 1), Some(open), vec![(open, false), (open + 1, false)]),
        (Some(0), Some(open), vec![(0, true), (-1, false)]),
    ] {
        let place = Place::new();
        let all = place.all();
        let basis = address(&held(2000, from, to));
        // What came before the grant rests on what nobody knows.
        let dependent = put(&all, &resting("tea", &basis));
        assert!(is_shown(&all, &dependent));
        assert_eq!(put(&all, &held(2000, from, to)), basis);
        for (now, shown) in times {
            place.at(now);
            assert_eq!(is_shown(&all, &dependent), shown, "{from:?}..{to:?} at {now}");
            assert!(is_shown(&all, &basis), "the consent itself is to be seen");
            let another = resting(&format!("at {now}"), &basis);
            let answer = if shown { "OK" } else { "ERR_WITHDRAWN" };
            assert_eq!(code(all.put(grain(&another))), answer, "{from:?}..{to:?} at {now}");
        }
    }
}

#[test]
fn a_renewal_holds_for_what_rests_on_an_older_version() {
    let place = Place::new();
    let all = place.all();
    let first = put(&all, &held(1000, None, Some(NOW)));
    let dependent = put(&all, &resting("tea", &first));
    place.at(NOW + 1);
    assert!(!is_shown(&all, &dependent));
    let second = renew(&all, &first, &held(2000, None, Some(NOW + 10)));
    assert!(is_shown(&all, &dependent), "its time was made longer");
    let third = renew(&all, &second, &held(3000, Some(NOW + 5), None));
    assert!(!is_shown(&all, &dependent), "its time begins later");
    place.at(NOW + 5);
    assert!(is_shown(&all, &dependent));
    for named in [first, second, third] {
        assert_eq!(code(all.put(grain(&resting(&named.to_string(), &named)))), "OK");
    }
    put(&all, &consent(4000, Some(&second)));
    assert!(!is_shown(&all, &dependent), "whichever version was withdrawn");
    for named in [first, second, third] {
        let another = resting(&format!("after {named}"), &named);
        assert_eq!(code(all.put(grain(&another))), "ERR_WITHDRAWN");
    }
}

#[test]
fn what_was_granted_anew_is_shown_again() {
    let place = Place::new();
    let all = place.all();
    let basis = put(&all, &held(1000, None, None));
    let dependent = put(&all, &resting("tea", &basis));
    let mut time = 2000;
    for _ in 0..3 {
        let withdrawal = put(&all, &consent(time, Some(&basis)));
        assert!(!is_shown(&all, &dependent));
        // Once more is nothing.
        put(&all, &consent(time + 1, Some(&basis)));
        assert!(!is_shown(&all, &dependent));
        renew(&all, &withdrawal, &held(time + 2, None, None));
        assert!(is_shown(&all, &dependent));
        time += 1000;
    }
}

#[test]
fn a_grant_that_was_withdrawn_before_it_came_never_holds() {
    let place = Place::new();
    let all = place.all();
    let grant = held(1000, None, None);
    let basis = address(&grant);
    let dependent = put(&all, &resting("tea", &basis));
    put(&all, &consent(2000, Some(&basis)));
    assert!(is_shown(&all, &dependent), "a grant that is not here is unknown");
    put(&all, &grant);
    assert!(!is_shown(&all, &dependent));
}

#[test]
fn every_grain_is_judged_by_its_own_basis() {
    let place = Place::new();
    let all = place.all();
    let grants: Vec<_> = (0..3).map(|at| put(&all, &held(1000 + at, None, None))).collect();
    let by_word = with(belief("word", 1000), &json!({ "processing_basis": "contract" }));
    let on_belief = put(&all, &belief("no consent", 1000));
    let fixed = [
        put(&all, &belief("none", 1000)),
        put(&all, &by_word),
        put(&all, &resting("on a belief", &on_belief)),
        put(&all, &resting("on what is absent", &address(&belief("absent", 1)))),
    ];
    let dependents: Vec<_> = grants.iter().map(|basis| put(&all, &resting("tea", basis))).collect();
    for (at, grant) in grants.iter().enumerate() {
        put(&all, &consent(5000, Some(grant)));
        for (other, dependent) in dependents.iter().enumerate() {
            assert_eq!(is_shown(&all, dependent), other > at);
        }
        assert!(fixed.iter().all(|address| is_shown(&all, address)));
    }
}

#[test]
fn nothing_is_written_on_a_consent_that_was_withdrawn() {
    let place = Place::new();
    let all = place.all();
    let basis = put(&all, &held(1000, None, None));
    let dependent = resting("tea", &basis);
    let stored = put(&all, &dependent);
    let free = put(&all, &belief("free", 1000));
    put(&all, &consent(2000, Some(&basis)));
    let entries = all.audit_head().unwrap();
    let another = resting("coffee", &basis);
    for (what, refused) in [
        ("put", code(all.put(grain(&another)))),
        ("the same again", code(all.put(grain(&dependent)))),
        ("batch", code(all.put_batch([grain(&belief("beside", 1)), grain(&another)]))),
        ("supersede by it", code(all.supersede(&free, grain(&another), Some("why")))),
        ("supersede it", code(all.supersede(&stored, grain(&belief("new", 5)), Some("why")))),
        ("contradict it", code(all.contradict(&stored, "why", None))),
        ("embed it", code(all.embed(&stored, Vec::new()))),
    ] {
        assert_eq!(refused, "ERR_WITHDRAWN", "{what}");
    }
    assert_eq!(all.audit_head().unwrap(), entries);
    // A hold keeps from erasure what is hidden, too.
    all.hold(&stored, "litigation").unwrap();
    assert_eq!(code(all.lift_hold(&stored, "over", None)), "OK");
    assert_eq!(code(place.session(Some("elsewhere"), None).hold(&stored, "why")), "ERR_NOT_FOUND");
    let error = all.get(&stored).unwrap_err();
    assert!(error.hint().contains("anew") && error.to_string().contains(&stored.to_string()));
}

#[test]
fn one_batch_may_grant_rest_and_withdraw() {
    let place = Place::new();
    let all = place.all();
    let grant = held(1000, None, None);
    let basis = address(&grant);
    let withdrawal = consent(2000, Some(&basis));
    let after = [&grant, &withdrawal, &resting("late", &basis)].map(grain);
    assert_eq!(code(all.put_batch(after)), "ERR_WITHDRAWN");
    assert!(!all.exists(&basis).unwrap(), "all or nothing");
    let before = [&grant, &resting("early", &basis), &withdrawal].map(grain);
    let put = all.put_batch(before).unwrap();
    assert!(!is_shown(&all, &put[1].address()));
}

#[test]
fn a_consent_does_not_fade() {
    let place = Place::new();
    let all = place.all();
    let (grant, old) = (put(&all, &held(1000, None, None)), put(&all, &belief("old", 1000)));
    let rerank = Rerank { diversity: None, recency_ms: Some(1000), access: false };
    let answer = all.query(&Query::default().reranked(rerank), &PageOptions::first(9)).unwrap();
    let told = |row: &QueryMatch| (row.content_address, row.score);
    let rows: Vec<_> = answer.results.iter().map(told).collect();
    assert_eq!(rows, [(grant, 1.0), (old, 0.5)]);
}

#[test]
fn an_open_store_asks_no_purpose() {
    let place = Place::new();
    let basis = put(&place.all(), &held(1000, None, None));
    let dependent = put(&place.all(), &resting("tea", &basis));
    let purposes = vec!["marketing".to_owned()];
    let options = grainstore::SessionOptions { purposes, ..Default::default() };
    assert!(is_shown(&place.store.session(options), &dependent));
}

#[test]
fn what_was_erased_is_said_to_be_though_its_consent_was_withdrawn() {
    let place = Place::new();
    let all = place.session(None, None);
    let basis = put(&all, &held(1000, None, None));
    let dependent = resting("tea", &basis);
    let stored = put(&all, &dependent);
    let free = put(&all, &belief("free", 1000));
    let withdrawal = put(&all, &consent(2000, Some(&basis)));
    assert_eq!(code(all.put(grain(&dependent))), "ERR_WITHDRAWN");
    let anew = consent(3000, None);
    let refused = all.supersede(&withdrawal, grain(&anew), None);
    assert_eq!(code(refused), "ERR_INVALIDATION_DENIED", "a grant anew says why");
    all.erase(&stored, "asked", &grainstore::EraseOptions::new()).unwrap();
    assert_eq!(code(all.put(grain(&dependent))), "ERR_ERASED");
    assert_eq!(code(all.put_batch([grain(&dependent)])), "ERR_ERASED");
    let next = with(dependent.clone(), &json!({ "derived_from": [free.to_string()] }));
    assert_eq!(code(all.supersede(&free, grain(&next), Some("why"))), "ERR_WITHDRAWN");
    all.supersede(&withdrawal, grain(&anew), Some("they agreed again")).unwrap();
    assert_eq!(code(all.put(grain(&dependent))), "ERR_ERASED");
}

#[test]
fn no_plan_counts_what_a_consent_hides() {
    let place = Place::new();
    let all = place.all();
    let basis = put(&all, &held(1000, None, None));
    put(&all, &resting("hemlock", &basis));
    let rows = |session: &Session| {
        let asked =
            r#"RECALL beliefs WHERE subject = "hub" AND relation = "knows" AND object = "hemlock""#;
        let answer = session.ask(&format!("EXPLAIN {asked}")).unwrap();
        serde_json::to_string(&answer).unwrap().contains("\"estimated\":1")
    };
    let sessions = [all.clone(), place.session(Some("shared"), None)];
    assert!(sessions.iter().all(rows), "there is one");
    put(&all, &consent(4000, Some(&basis)));
    assert!(!sessions.iter().any(rows));
}
