//! What lies between the grains of one user: others are no stepping stones, and nothing names them.

use grainstore::cal::{ExecuteOptions, Expansion, Query, Tier};
use serde_json::json;

use crate::isolation::kit::{Place, belief, found, grain, put, with};

#[test]
fn a_grain_of_another_user_is_no_stepping_stone() {
    let place = Place::new();
    let all = place.all();
    let triple = |subject: &str, object: &str, user: &str| {
        let said = json!({ "subject": subject, "relation": "leads", "user_id": user });
        put(&all, &with(belief(object, 1000), &said))
    };
    let first = triple("start", "one", "ann");
    let between = triple("one", "two", "bob");
    let last = triple("two", "three", "ann");
    let expansion = Expansion { hops: 3, freely: true, ..Expansion::default() };
    let query = Query::default().searching("start").expanding(expansion);
    let reached = |user: Option<&str>| {
        let mut reached = found(&place.session(None, user), &query);
        reached.sort_unstable();
        reached
    };
    let mut chain = [first, between, last];
    chain.sort_unstable();
    assert_eq!(reached(None), chain);
    assert_eq!(reached(Some("ann")), [first]);
    let walk = grainstore::graph::EdgeQuery::default();
    let paths = |user| place.session(None, user).paths("start", "three", 6, &walk).unwrap();
    assert_eq!((paths(None).items.len(), paths(Some("ann")).items.len()), (1, 0));
}

#[test]
fn no_refusal_names_the_successor_that_another_user_has() {
    let place = Place::new();
    let old = put(&place.all(), &belief("tea", 1000));
    let new = with(belief("coffee", 2000), &json!({ "user_id": "bob" }));
    let new = place.session(None, Some("bob")).supersede(&old, grain(&new), Some("why")).unwrap();
    let refusal = |user: Option<&str>| {
        let session = place.session(None, user);
        let by_cal = format!("SUPERSEDE sha256:{old} SET object = \"milk\" REASON \"why\"");
        let options = ExecuteOptions { tier: Tier::Evolve, ..ExecuteOptions::at(session.now()) };
        let by_cal = session.ask_with(by_cal.as_bytes(), &options).unwrap_err();
        let milk = with(belief("milk", 3000), &json!({ "user_id": user.unwrap_or_default() }));
        let by_call = session.supersede(&old, grain(&milk), Some("why")).unwrap_err();
        assert_eq!(by_call.code(), "ERR_CONFLICT");
        format!("{by_cal:?} {by_call} {}", by_call.hint())
    };
    assert!(refusal(Some("bob")).contains(&new.to_string()));
    assert!(!refusal(Some("ann")).contains(&new.to_string()));
}

#[test]
fn a_namespace_where_only_others_have_something_is_not_named() {
    let place = Place::new();
    let all = place.all();
    for (space, user) in [("anns", Some("ann")), ("bobs", Some("bob")), ("ours", None)] {
        let mut fields = with(belief("tea", 1000), &json!({ "namespace": space }));
        if let Some(user) = user {
            fields["user_id"] = json!(user);
        }
        put(&all, &fields);
    }
    let named = |user: Option<&str>| {
        let session = place.session(None, user);
        let told = serde_json::to_string(&session.ask("DESCRIBE server").unwrap()).unwrap();
        ["anns", "bobs", "ours"].map(|name| told.contains(&format!("\"{name}\"")))
    };
    assert_eq!(named(None), [true, true, true]);
    assert_eq!(named(Some("ann")), [true, false, true]);
    assert_eq!(named(Some("carl")), [false, false, true]);
}
