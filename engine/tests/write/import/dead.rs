//! A file of an agent's that ends what it brings: a protected grain comes in as current, unless its own policy lets
//! it end so.

use grainstore::format::Value;
use grainstore::format::container::{Compression, ManifestEntry};
use grainstore::format::cose::{proof, sign_detached};
use grainstore::{
    ContentAddress, EpochMs, Grain, GrainState, ImportOptions, ImportReport, OpenOptions, Session,
    SessionOptions, Store, VerificationStatus,
};
use tempfile::TempDir;

use crate::import::kit::{
    Place, Stated, address, belief, blob, child, key, policy, state, superseded,
};

/// A store whose host named its operator.
fn place() -> Place {
    let dir = TempDir::new().unwrap();
    let options = OpenOptions::new().create(true).operator("did:web:ops");
    let store = Store::open(dir.path().join("store"), &options).unwrap();
    let session = store.session(SessionOptions::default());
    Place { dir, store, session }
}

fn agent(place: &Place) -> Session {
    let actor = Some("did:web:agent".to_owned());
    place.store.session(SessionOptions { actor, ..SessionOptions::default() })
}

fn import(place: &Place, entries: &[Vec<u8>], stated: &[Stated]) -> ImportReport {
    let file = place.file("in.mg", entries, stated);
    agent(place).import([file], &ImportOptions::default()).unwrap()
}

fn ended(more: GrainState) -> GrainState {
    GrainState { system_valid_to: Some(EpochMs::new(5000)), ..more }
}

#[test]
fn no_agent_ends_a_protected_grain_that_is_still_to_come() {
    let retracted = VerificationStatus::Retracted;
    let contested = VerificationStatus::Contested;
    let plain = GrainState::default();
    for (mode, session_is) in [("locked", "agent"), ("hold", "agent"), ("locked", "limited")] {
        let rule = belief("obey", 1000, &policy(&format!(r#""mode": "{mode}""#)));
        let at = address(&rule);
        let dangling = ContentAddress::of(b"elsewhere");
        for claim in [
            ended(GrainState { contradicted: true, ..plain }),
            ended(GrainState { verification_status: retracted, ..plain }),
            GrainState { verification_status: contested, ..plain },
            ended(plain),
            ended(GrainState { superseded_by: Some(dangling), ..plain }),
        ] {
            let place = place();
            let file = place.file("in.mg", &[blob(&rule)], &[state(at, claim)]);
            let session = match session_is {
                "agent" => agent(&place),
                _ => place.within("shared"),
            };
            let imported = session.import([file], &ImportOptions::default()).unwrap();
            assert_eq!((imported.added, imported.refused), (1, 0), "{mode} {claim:?}");
            assert_eq!(imported.conflict_count, 1, "{mode} {claim:?}: {:?}", imported.conflicts);
            let (_, decision) = place.audit(2).pop().unwrap();
            assert_eq!(decision, "refused", "{mode} {claim:?}");
            assert!(place.session.put(rule.clone()).unwrap().is_duplicate());
            let held = GrainState { held: mode == "hold", ..plain };
            assert_eq!(place.state(&at), held, "{claim:?}");
            assert_eq!(place.session.latest("alice", "likes").unwrap().unwrap().address, at);
            place.verify();
        }
    }
}

#[test]
fn a_successor_that_comes_with_what_it_ends_is_left_out_where_that_is_protected() {
    let place = place();
    let rule = belief("obey", 1000, &policy(r#""mode": "locked", "scope": "lineage""#));
    let next = child(&[address(&rule)], "ignore", 2000, "");
    let stated = [superseded(address(&rule), address(&next), 2000)];
    for entries in [[blob(&rule), blob(&next)], [blob(&next), blob(&rule)]] {
        let imported = import(&place, &entries, &stated);
        assert_eq!(imported.refused, 1, "{:?}", imported.conflicts);
        assert!(place.state(&address(&rule)).is_current());
        assert!(!place.session.exists(&address(&next)).unwrap());
        place.verify();
    }
}

/// A grain that a key has signed for as the successor of another.
fn signed_for(old: &Grain, new: &Grain, seed: u8) -> Grain {
    let message = proof::supersede_message(&address(old), &blob(new));
    let auth = vec![Value::Bytes(sign_detached(&message, &key(seed)).unwrap())];
    let mut fields = new.fields().clone();
    fields.insert("supersession_auth".to_owned(), Value::Array(auth));
    Grain::from_fields(fields).unwrap()
}

#[test]
fn a_chain_whose_proofs_are_in_the_file_comes_in_as_it_was_whatever_its_order() {
    let did = key(1).did().to_string();
    let quorum = format!(r#""mode": "quorum", "threshold": 1, "authorized": ["{did}"]"#);
    let first = belief("one", 1000, &policy(&quorum));
    let mut chain = vec![first];
    for n in 2..6_i64 {
        let old = &chain[chain.len() - 1];
        let new = child(&[address(old)], &format!("version {n}"), 1000 * n, &policy(&quorum));
        chain.push(signed_for(old, &new, 1));
    }
    let stated: Vec<_> = chain
        .windows(2)
        .zip(2..)
        .map(|(pair, n)| superseded(address(&pair[0]), address(&pair[1]), 1000 * n))
        .collect();
    let entries: Vec<_> = chain.iter().rev().map(blob).collect();
    let place = place();
    let imported = import(&place, &entries, &stated);
    assert_eq!((imported.added, imported.refused), (5, 0), "{:?}", imported.conflicts);
    for (old, said) in &stated {
        assert_eq!(place.state(old).superseded_by, said.state.superseded_by);
        assert_eq!(place.state(old).system_valid_to, said.state.system_valid_to);
    }
    assert!(place.state(&address(&chain[4])).is_current());
    place.verify();
}

#[test]
fn no_agent_lifts_the_hold_of_a_policy_by_a_file_and_the_operator_does() {
    let held = belief("held", 1000, &policy(r#""mode": "hold""#));
    let says = ManifestEntry { hold_lifted: true, ..ManifestEntry::default() };
    let (one, other) = (place(), place());
    let imported = import(&one, &[blob(&held)], &[(address(&held), says.clone())]);
    assert_eq!(imported.conflict_count, 1);
    assert!(one.state(&address(&held)).held);
    assert_eq!(one.audit(2), [("lift_hold".to_owned(), "refused".to_owned())]);
    other.import(&[blob(&held)], &[(address(&held), says)]).unwrap();
    assert!(!other.state(&address(&held)).held);
}

#[test]
fn a_restore_by_the_operator_keeps_every_state() {
    let place = place();
    let soft = r#", "supersession_justification": "told so""#;
    for (n, mode) in ["soft_locked", "locked", "hold"].into_iter().enumerate() {
        let grain = belief(&format!("tea {n}"), 1000, &policy(&format!(r#""mode": "{mode}""#)));
        let at = place.session.put(grain).unwrap().address();
        if mode == "soft_locked" {
            let new = child(&[at], "coffee", 2000, soft);
            place.session.supersede(&at, new, None).unwrap();
        }
        if mode == "hold" {
            place.session.lift_hold(&at, "over", None).unwrap();
        }
    }
    let (file, _) = place.export("all.mg", Compression::Zstd);
    let restored = self::place();
    let imported = restored.session.import([&file], &ImportOptions::default()).unwrap();
    assert_eq!(imported.conflict_count, 0, "{:?}", imported.conflicts);
    assert_eq!(restored.everything(), place.everything());
    restored.verify();
}
