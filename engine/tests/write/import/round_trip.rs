//! Export, import into an empty store, export again: the same bytes, states and answers.

#[expect(dead_code, reason = "other tests ask for more of a conversation")]
#[path = "../../kit/locomo.rs"]
mod conversations;

use std::collections::BTreeSet;

use conversations::{Conversation, NAMES, folder};
use grainstore::cal::{ExecuteOptions, Query};
use grainstore::format::Encoding;
use grainstore::format::container::Compression;
use grainstore::{
    ContentAddress, EpochMs, ExportOptions, GrainState, ImportOptions, Offer, PageOptions,
    VerificationStatus,
};

use crate::import::kit::{Place, about, belief, child, code, counts, grain, key, policy, signed};

/// A store with every policy, every state and every form of a grain.
fn everything() -> Place {
    let place = Place::new();
    let session = &place.session;
    let put = |offer: Offer| session.put(offer).unwrap().address();
    let did = key(7).did().to_string();
    let modes = [
        r#""mode": "open""#.to_owned(),
        r#""mode": "soft_locked", "scope": "lineage""#.to_owned(),
        r#""mode": "locked", "scope": "subtree""#.to_owned(),
        format!(r#""mode": "quorum", "threshold": 1, "authorized": ["{did}"]"#),
        format!(r#""mode": "delegated", "authorized": ["{did}"]"#),
        r#""mode": "timed", "locked_until": 4000000000, "fallback_mode": "open""#.to_owned(),
        r#""mode": "hold""#.to_owned(),
        r#""mode": "consent_cascade""#.to_owned(),
        r#""mode": "no such thing""#.to_owned(),
    ];
    for (n, mode) in (0..).zip(&modes) {
        let root = put(belief(&format!("root {n}"), 1000 + n, &policy(mode)).into());
        let name = format!("derived {n}");
        put(about(&name, &child(&[root], &name, 2000 + n, "")).into());
    }
    let hold = belief("lifted", 1500, &policy(r#""mode": "hold", "scope": "subtree""#));
    let lifted = put(hold.into());
    session.lift_hold(&lifted, "the case is closed", None).unwrap();
    let old = put(belief("tea", 3000, &policy(r#""mode": "soft_locked""#)).into());
    session.supersede(&old, belief("coffee", 4000, ""), Some("told so")).unwrap();
    let statuses = [
        VerificationStatus::Verified,
        VerificationStatus::Contested,
        VerificationStatus::Retracted,
    ];
    for (n, status) in (0..).zip(statuses) {
        let marked = put(belief(&format!("marked {n}"), 5000 + n, "").into());
        session.set_verification(&marked, status, "looked at", None).unwrap();
    }
    let contradicted = put(belief("milk", 6000, "").into());
    session.contradict(&contradicted, "never", None).unwrap();
    let held = put(belief("kept", 7000, "").into());
    session.hold(&held, "a case").unwrap();
    put(Offer::Signed(signed(&belief("signed", 8000, ""), 3).0));
    let cbor = belief("cbor", 9000, r#", "namespace": "acme:bot""#).encode(Encoding::Cbor).unwrap();
    put(cbor.into());
    put(grain(r#""type": "fact", "subject": "a", "relation": "b", "object": "c", "confidence": 1, "created_at": 9100"#).into());
    put(grain(r#""type": "tool", "tool_name": "t", "action_phase": "call", "input": {}, "created_at": 9200"#).into());
    let opaque = "01000b00006968baa086a163cb3feccccccccccccda26361cf0000019bc1190100a16fa3746561a172a770726566657273a173a5616c696365a174a6736b65746368";
    put(Offer::Blob(data(opaque)));
    put(grain(r#""type": "consent", "subject_did": "did:web:a", "grantee_did": "did:web:b", "scope": ["store"], "is_withdrawal": false, "created_at": 9300"#).into());
    place
}

fn data(hex: &str) -> Vec<u8> {
    data_encoding::HEXLOWER.decode(hex.as_bytes()).unwrap()
}

#[test]
fn every_policy_state_and_form_survives_the_way_through_a_file() {
    let from = everything();
    let (_, plain) = from.export("plain.mg", Compression::None);
    let grains = from.store.stats().unwrap().grains;
    for compression in Compression::ALL {
        let (file, bytes) = from.export("all.mg", compression);
        let to = Place::new();
        let imported = to.session.import([&file], &ImportOptions::default()).unwrap();
        assert_eq!(counts(&imported), (grains, 0, 0, 0), "{:?}", imported.conflicts);
        to.verify();
        assert!(to.export("again.mg", compression).1 == bytes, "{compression:?}");
        assert_eq!(to.audit(1), [("import".to_owned(), "done".to_owned())]);
        let again = to.session.import([&file], &ImportOptions::default()).unwrap();
        assert_eq!(counts(&again), (0, grains, 0, 0), "{:?}", again.conflicts);
        assert!(to.export("again.mg", Compression::None).1 == plain);
        to.verify();
    }
}

#[test]
fn what_comes_in_has_the_same_addresses_and_states_and_answers_alike() {
    let from = everything();
    for compression in Compression::ALL {
        let (file, _) = from.export("all.mg", compression);
        let to = Place::new();
        to.session.import([&file], &ImportOptions::default()).unwrap();
        assert_eq!(to.everything(), from.everything(), "{compression:?}");
        assert_same_answers(&to, &from);
    }
}

/// Questions about what is current and what was, of every shape a grain has here.
const QUESTIONS: [&str; 10] = [
    "RECALL beliefs LIMIT 100",
    "RECALL beliefs ABOUT \"alice\" WITH superseded LIMIT 100",
    "RECALL beliefs WHERE verification_status = \"contested\"",
    "RECALL beliefs WHERE namespace = \"acme:bot\"",
    "RECALL actions WHERE tool_name = \"t\"",
    "RECALL consents LIMIT 10",
    "RECALL beliefs RECENT 7",
    "RECALL beliefs ABOUT \"alice\" CONTRADICTIONS",
    "RECALL beliefs | GROUP BY object",
    "RECALL beliefs | COUNT",
];

/// That two stores answer alike, to the byte.
fn assert_same_answers(one: &Place, other: &Place) {
    for question in QUESTIONS {
        let ask = |place: &Place| {
            let options = ExecuteOptions::at(EpochMs::new(2_000_000_000_000));
            let answer = place.session.ask_with(question.as_bytes(), &options).unwrap();
            serde_json::to_string(&answer.answer).unwrap()
        };
        assert_eq!(ask(one), ask(other), "{question}");
    }
}

/// The states a grain can be in are all there, so that the tests above and below say something.
#[test]
fn the_store_that_is_sent_has_every_policy_and_every_state() {
    let place = everything();
    let all = place.everything();
    let some = |what: &str, has: &dyn Fn(&GrainState) -> bool| {
        assert!(all.iter().any(|(.., state)| has(state)), "no grain is {what}");
    };
    some("superseded", &|state| state.superseded_by.is_some());
    some("contradicted", &|state| state.contradicted);
    some("held", &|state| state.held);
    some("to be reviewed", &|state| state.needs_review);
    for status in VerificationStatus::ALL {
        some(status.name(), &|state| state.verification_status == status);
    }
    let modes: BTreeSet<_> = all
        .iter()
        .filter_map(|(address, ..)| {
            let grain = place.session.get(address).unwrap().grain().unwrap();
            let policy = grain.map("invalidation_policy")?.clone();
            Some(policy.get("mode")?.as_str()?.to_owned())
        })
        .collect();
    let expected = [
        "consent_cascade",
        "delegated",
        "hold",
        "locked",
        "no such thing",
        "open",
        "quorum",
        "soft_locked",
        "timed",
    ];
    assert!(modes.iter().eq(expected), "{modes:?}");
    let signed =
        all.iter().filter(|(address, ..)| place.session.get(address).unwrap().envelope.is_some());
    assert_eq!(signed.count(), 1);
}

#[test]
fn what_was_protected_is_protected_where_it_arrives() {
    let from = everything();
    let (file, _) = from.export("all.mg", Compression::Zstd);
    let to = Place::new();
    to.session.import([&file], &ImportOptions::default()).unwrap();
    let mut refused = 0;
    for old in addresses(&from) {
        let next = |place: &Place| {
            let kind = place.session.get(&old).unwrap().grain().unwrap().grain_type();
            if kind != grainstore::format::GrainType::Belief {
                return "skipped";
            }
            code(place.session.supersede(&old, belief("next", 90_000, ""), None))
        };
        let outcome = next(&from);
        assert_eq!(next(&to), outcome, "{old}");
        refused += usize::from(outcome == "ERR_INVALIDATION_DENIED");
    }
    assert!(refused > 8, "{refused}");
    to.verify();
}

fn addresses(place: &Place) -> Vec<ContentAddress> {
    let page = PageOptions { limit: 1000, ..PageOptions::default() };
    let answer = place.session.query(&Query::default(), &page).unwrap();
    answer.results.iter().map(|found| found.content_address).collect()
}

#[test]
fn an_export_in_several_files_comes_in_together() {
    let from = everything();
    let (_, whole) = from.export("whole.mg", Compression::None);
    let how = ExportOptions {
        compression: Compression::None,
        file_bytes: 900,
        ..ExportOptions::default()
    };
    let file = from.dir.path().join("part.mg");
    let exported = from.session.export(&file, &Query::default(), &how).unwrap();
    assert!(exported.files.len() > 3, "{:?}", exported.files);
    let to = Place::new();
    let mut broken = exported.files.clone();
    broken.push(to.file("last.mg", &[], &[]));
    std::fs::write(&broken[broken.len() - 1], b"MG\x01 no container").unwrap();
    assert_eq!(code(to.session.import(&broken, &ImportOptions::default())), "ERR_CORRUPT");
    assert_eq!(to.store.stats().unwrap().grains, 0, "all files or none");
    let mut files = exported.files;
    files.reverse();
    let imported = to.session.import(&files, &ImportOptions::default()).unwrap();
    assert_eq!(counts(&imported), (exported.exported, 0, 0, 0), "{:?}", imported.conflicts);
    assert!(to.export("again.mg", Compression::None).1 == whole);
    to.verify();
}

#[test]
fn conversations_are_the_same_memory_after_the_way_through_a_file() {
    let Some(folder) = folder() else {
        println!(
            "skipped: no LoCoMo data; set GRAINSTORE_SHARED to the folder that has data/locomo"
        );
        return;
    };
    let from = everything();
    let others = from.store.stats().unwrap().grains;
    for name in NAMES {
        Conversation::read(&folder, name).ingest(&from.session).unwrap();
    }
    let (file, bytes) = from.export("all.mg", Compression::Zstd);
    let to = Place::new();
    let imported = to.session.import([&file], &ImportOptions::default()).unwrap();
    assert_eq!(counts(&imported), (2760 + others, 0, 0, 0));
    assert!(to.export("again.mg", Compression::Zstd).1 == bytes);
    to.verify();
    for question in [
        r#"RECALL events WHERE subject = "Caroline" LIMIT 50"#,
        r#"RECALL events WHERE namespace = "locomo:conv-30" LIMIT 20"#,
        r#"RECALL events LIMIT 100"#,
    ] {
        let ask = |place: &Place| {
            let options = ExecuteOptions::at(EpochMs::new(2_000_000_000_000));
            let answer = place.session.ask_with(question.as_bytes(), &options).unwrap();
            serde_json::to_string(&answer.answer).unwrap()
        };
        assert_eq!(ask(&to), ask(&from), "{question}");
    }
    assert_same_answers(&to, &from);
}
