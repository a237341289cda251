//! Derivation that is wide, deep or late: what protects is found however many grains lie between,
//! and what nothing protects stays free.

use grainstore::format::{ContentAddress, Grain};
use grainstore::{OpenOptions, SameFact, Session, SessionOptions, Store, VerificationStatus};
use serde_json::json;
use tempfile::TempDir;

const SUBTREE: Option<&str> = Some("subtree");
const DENIED: Result<(), &str> = Err("ERR_INVALIDATION_DENIED");

fn store() -> (TempDir, Session) {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
    (dir, store.session(SessionOptions::default()))
}

/// A belief about a subject of its own, locked in this scope where one is given.
fn belief(subject: &str, parents: &[ContentAddress], locked: Option<&str>) -> Grain {
    let parents: Vec<_> = parents.iter().map(ToString::to_string).collect();
    let mut grain = json!({
        "type": "belief", "subject": subject, "relation": "r", "object": "o", "confidence": 1.0,
        "created_at": 1000, "derived_from": parents,
    });
    if let Some(scope) = locked {
        grain["invalidation_policy"] = json!({ "mode": "locked", "scope": scope });
    }
    Grain::from_json(&grain.to_string()).unwrap()
}

fn address(grain: &Grain) -> ContentAddress {
    grain.encode(Default::default()).unwrap().address()
}

fn put_all(session: &Session, grains: Vec<Grain>) -> Vec<ContentAddress> {
    session.put_batch(grains).unwrap().iter().map(grainstore::PutOutcome::address).collect()
}

/// What comes of superseding a grain by another about the same subject.
fn supersede(session: &Session, old: &ContentAddress, subject: &str) -> Result<(), &'static str> {
    let new = belief(subject, &[], None).into_fields();
    let new = new.into_iter().chain([("created_at".to_owned(), 2000.into())]).collect();
    let outcome = session.supersede(old, Grain::from_fields(new).unwrap(), None);
    outcome.map(drop).map_err(|error| error.code())
}

/// Twelve summaries, each of a hundred grains of its own and of the summary before; `first` is one
/// more source of the first. The last of them.
fn summaries(session: &Session, first: Option<ContentAddress>) -> ContentAddress {
    let mut before = first;
    for day in 0..12 {
        let events = (0..100).map(|at| belief(&format!("event {day}.{at}"), &[], None)).collect();
        let mut sources = put_all(session, events);
        sources.extend(before);
        let summary = belief(&format!("summary {day}"), &sources, None);
        before = Some(session.put(summary).unwrap().address());
    }
    before.unwrap()
}

#[test]
fn a_grain_of_a_thousand_open_ancestors_is_superseded_like_any_other() {
    let (_dir, session) = store();
    let last = summaries(&session, None);
    assert_eq!(supersede(&session, &last, "summary 11"), Ok(()));
}

#[test]
fn a_lock_among_a_thousand_ancestors_refuses_whether_it_came_first_or_last() {
    for comes_last in [false, true] {
        let (_dir, session) = store();
        let lock = belief("lock", &[], SUBTREE);
        let source = address(&lock);
        if !comes_last {
            session.put(lock.clone()).unwrap();
        }
        let last = summaries(&session, Some(source));
        if comes_last {
            session.put(lock).unwrap();
        }
        assert_eq!(supersede(&session, &last, "summary 11"), DENIED, "last: {comes_last}");
        let (count, _) = session.audit_head().unwrap();
        let last = session.audit(count.checked_sub(2), 10).unwrap().pop().unwrap();
        assert_eq!(last.refused_by, Some(source), "last: {comes_last}");
    }
}

#[test]
fn a_new_grain_of_a_thousand_other_parents_is_asked_about_each() {
    let (_dir, session) = store();
    let old = session.put(belief("s", &[], None)).unwrap().address();
    let open =
        put_all(&session, (0..1500).map(|at| belief(&format!("p{at}"), &[], None)).collect());
    // Named last: addresses are looked at in their order.
    let locks = (0..).map(|at| belief(&format!("lock {at}"), &[], SUBTREE));
    let highest = open.iter().max().unwrap();
    let lock = locks.into_iter().find(|lock| address(lock) > *highest).unwrap();
    let lock = session.put(lock).unwrap().address();
    let with = |parents: Vec<ContentAddress>| {
        let new = belief("s", &parents, None);
        session.supersede(&old, new, None).map(drop).map_err(|error| error.code())
    };
    let parents = || open.iter().copied().chain([old]);
    assert_eq!(with(parents().chain([lock]).collect()), DENIED);
    assert_eq!(with(parents().collect()), Ok(()));
}

#[test]
fn what_is_for_a_grain_alone_to_decide_is_not_refused_for_its_ancestors() {
    let (_dir, session) = store();
    let locks =
        put_all(&session, (0..65).map(|at| belief(&format!("l{at}"), &[], SUBTREE)).collect());
    let many = session.put(belief("many", &locks, None)).unwrap().address();
    session.hold(&many, "case 7").unwrap();
    session.lift_hold(&many, "settled", None).unwrap();
    session.set_verification(&many, VerificationStatus::Verified, "checked", None).unwrap();
    assert_eq!(supersede(&session, &many, "many"), DENIED);
}

#[test]
fn a_lock_that_comes_last_reaches_thousands_of_stored_descendants_beyond_sixteen_hops() {
    let (_dir, session) = store();
    let lock = belief("lock", &[], SUBTREE);
    let mut level = address(&lock);
    for hop in 0..20 {
        level = session.put(belief(&format!("hop {hop}"), &[level], None)).unwrap().address();
    }
    let leaves = (0..5000).map(|at| belief(&format!("leaf {at}"), &[level], None)).collect();
    let leaves = put_all(&session, leaves);
    session.put(lock).unwrap();
    for at in [0, 2500, 4999] {
        assert_eq!(supersede(&session, &leaves[at], &format!("leaf {at}")), DENIED, "{at}");
    }
}

#[test]
fn a_lock_reaches_a_batch_that_holds_its_descendants_before_it() {
    let (_dir, session) = store();
    let lock = belief("lock", &[], SUBTREE);
    let mut grains = vec![belief("hop 0", &[address(&lock)], None)];
    for hop in 1..20 {
        let parent = address(&grains[hop - 1]);
        grains.push(belief(&format!("hop {hop}"), &[parent], None));
    }
    let addresses = put_all(&session, grains.into_iter().chain([lock]).collect());
    assert_eq!(supersede(&session, &addresses[19], "hop 19"), DENIED);
}

#[test]
fn a_batch_that_is_refused_leaves_no_protection_to_what_takes_its_places() {
    let (_dir, session) = store();
    let kept = session.put(belief("kept", &[], None)).unwrap().address();
    let lock = belief("lock", &[], SUBTREE);
    let child = belief("child", &[address(&lock)], None);
    let disguised = belief("kept", &[kept], None);
    // While the first is synced the others wait, and are decided together.
    let first = session.submit(belief("first", &[], None), SameFact::Add);
    let refused = session.submit_batch([child, lock.clone(), disguised]);
    let after = session.submit_batch([belief("plain", &[], None), lock]);
    assert!(first.wait().is_ok());
    assert_eq!(refused.wait().map_err(|error| error.code()), Err("ERR_SUPERSEDE_REQUIRED"));
    let plain = after.wait().unwrap()[0].address();
    assert_eq!(supersede(&session, &plain, "plain"), Ok(()));
}

#[test]
fn what_is_locked_for_itself_alone_goes_on_to_nothing_that_derives_from_it() {
    let (_dir, session) = store();
    for scope in ["grain", "lineage"] {
        let lock = belief(&format!("lock {scope}"), &[], Some(scope));
        let subject = format!("under {scope}");
        let child = session.put(belief(&subject, &[address(&lock)], None)).unwrap().address();
        session.put(lock).unwrap();
        assert_eq!(supersede(&session, &child, &subject), Ok(()), "{scope}");
    }
}

#[test]
fn the_transitions_of_a_source_are_not_those_of_a_goal_with_a_long_history() {
    let (_dir, session) = store();
    let goal = |version: usize, parent: Option<&ContentAddress>, fields: serde_json::Value| {
        let mut goal = json!({
            "type": "goal", "description": "ship it", "goal_state": "active",
            "created_at": 1000 + version, "derived_from": parent.map(ToString::to_string).as_slice(),
            "allowed_transitions": ["suspended"],
        });
        goal.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        Grain::from_json(&goal.to_string()).unwrap()
    };
    let soft = json!({ "invalidation_policy": { "mode": "soft_locked", "scope": "subtree" } });
    let source = session.put(goal(0, None, soft)).unwrap().address();
    let other = session.put(goal(0, None, json!({ "description": "test it" }))).unwrap().address();
    let both = [source.to_string(), other.to_string()];
    let digest = goal(1, None, json!({ "consolidation_level": 1, "derived_from": both }));
    let mut last = session.put(digest).unwrap().address();
    for version in 2..22 {
        let next = goal(version, Some(&last), json!({}));
        last = session.supersede(&last, next, Some("it goes on")).unwrap();
    }
    let suspend = |old: &ContentAddress| {
        let new = goal(30, Some(old), json!({ "goal_state": "suspended" }));
        session.supersede(old, new, None).map(drop).map_err(|error| error.code())
    };
    assert_eq!(suspend(&last), DENIED);
    assert_eq!(suspend(&source), Ok(()));
}

/// A grain that was read, changed and put in its own place names what that took the place of, too.
#[test]
fn a_copy_with_the_parents_of_what_it_replaces_is_its_next_version_and_travels() {
    let (_dir, session) = store();
    let first = session.put(belief("drink", &[], None)).unwrap().address();
    let mut newest = first;
    for at in 1..=4 {
        let copy = session.get(&newest).unwrap().grain().unwrap().into_fields();
        let changed = [("object", format!("o{at}").into()), ("created_at", (1000 + at).into())];
        let changed = changed.into_iter().map(|(name, value)| (name.to_owned(), value));
        let new = Grain::from_fields(copy.into_iter().chain(changed).collect()).unwrap();
        newest = session.supersede(&newest, new, None).unwrap();
    }
    let parents = session.get(&newest).unwrap().grain().unwrap();
    assert_eq!(parents.texts("derived_from").count(), 4, "it names them all");
    assert_eq!(session.history(&newest).unwrap().len(), 5);
    // Put, or in the place of another grain, it is a supersession in disguise as before.
    let put = session.put(belief("drink", &[first], None)).map_err(|error| error.code());
    assert_eq!(put.unwrap_err(), "ERR_SUPERSEDE_REQUIRED");
    let other = session.put(belief("food", &[], None)).unwrap().address();
    let in_its_place = session.supersede(&other, belief("drink", &[first], None), None);
    assert_eq!(in_its_place.map_err(|error| error.code()), Err("ERR_SUPERSEDE_REQUIRED"));

    let out = TempDir::new().unwrap();
    let path = out.path().join("all.mg");
    let everything = grainstore::cal::Query::default();
    session.export(&path, &everything, &grainstore::ExportOptions::default()).unwrap();
    let (_there, elsewhere) = store();
    let imported = elsewhere.import([&path], &grainstore::ImportOptions::default()).unwrap();
    assert_eq!((imported.refused, imported.conflicts.as_slice()), (0, &[][..]));
    assert_eq!(elsewhere.history(&newest).unwrap().len(), 5);
}
