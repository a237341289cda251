//! What archives carry of consents: nobody's consent is renewed, widened or ended for good by an archive alone.

use grainstore::format::{SigningKey, sign};
use grainstore::prelude::*;
use grainstore_interop::alf::ImportOptions;
use serde_json::{Value, json};

use crate::kit::*;
use crate::vouched::{carrying, carrying_bytes, running};

const ANN: &str = "did:web:ann.example";

fn consent(subject: &str, members: &str) -> Grain {
    Grain::from_json(&format!(
        r#"{{"type": "consent", "subject_did": "{subject}", "grantee_did": "did:web:bot.example",
        "scope": ["store", "retrieve"], "user_id": "ann", {members}}}"#
    ))
    .unwrap()
}

/// A store with a fact that rests on a consent, which was withdrawn.
struct Withdrawn {
    world: World,
    given: ContentAddress,
    fact: ContentAddress,
    withdrawal: Grain,
    withdrawn: ContentAddress,
}

impl Withdrawn {
    fn by(subject: &str) -> Self {
        let world = World::new();
        let (given, fact) = resting(&world, subject, "");
        let withdrawal = consent(
            subject,
            &format!(
                r#""is_withdrawal": true, "prior_consent": "{given}", "created_at": "2026-07-02T00:00:00Z""#
            ),
        );
        let withdrawn = world.session.put(withdrawal.clone()).unwrap().address();
        let made = Self { world, given, fact, withdrawal, withdrawn };
        made.is_hidden();
        made
    }

    fn is_hidden(&self) {
        assert_eq!(self.world.session.get(&self.fact).unwrap_err().code(), "ERR_WITHDRAWN");
    }
}

/// A consent, and a fact that rests on it.
fn resting(world: &World, subject: &str, more: &str) -> (ContentAddress, ContentAddress) {
    let members = r#""is_withdrawal": false, "created_at": "2026-07-01T00:00:00Z""#;
    let given = world.session.put(consent(subject, members)).unwrap().address();
    let fact = Grain::from_json(&format!(
        r#"{{"type": "belief", "subject": "ann", "relation": "likes", "object": "tea", "confidence": 0.9,
        "user_id": "ann", "processing_basis": "{given}", "created_at": "2026-07-01T00:00:01Z"{more}}}"#
    ));
    let fact = world.session.put(fact.unwrap()).unwrap().address();
    world.session.get(&fact).unwrap();
    (given, fact)
}

fn import(world: &World, records: Vec<Value>) -> grainstore_interop::alf::ImportReport {
    let path = running(records).write(world.dir.path(), "in.alf");
    world.import_with(&path, &ImportOptions::default())
}

#[test]
fn a_consent_that_was_withdrawn_is_not_given_again_by_an_archive() {
    let made = Withdrawn::by(ANN);
    let (given, withdrawn) = (made.given, made.withdrawn);
    let prior = |of: &str| format!(r#", "prior_consent": "{of}""#);
    let priors =
        [String::new(), prior(&withdrawn.to_string()), prior(&given.to_string()), prior("")];
    let parents = [withdrawn, given];
    for (number, members) in (10..).zip(parents.iter().flat_map(|parent| {
        priors.iter().map(move |prior| {
            format!(
                r#""is_withdrawal": false, "derived_from": ["{parent}"], "created_at": "2026-07-03T00:00:00Z",
                "supersession_justification": "agreed"{prior}"#
            )
        })
    })) {
        for (number, more) in [(number, json!({"supersedes": id(1)})), (number + 20, json!({}))] {
            let again = carrying(number, &consent(ANN, &members), more);
            let report = import(&made.world, vec![carrying(1, &made.withdrawal, json!({})), again]);
            assert_eq!(report.records.failed, 1, "{members}: {report:?}");
            assert!(report.errors[0].message.contains("ERR_SIGNATURE"), "{members}: {report:?}");
            made.is_hidden();
        }
    }
}

#[test]
fn a_consent_that_stands_is_not_widened_by_an_archive() {
    let world = World::new();
    let (given, _) = resting(&world, ANN, "");
    let first = carrying(1, &world.session.get(&given).unwrap().grain().unwrap(), json!({}));
    let mut wider = consent(ANN, &format!(
        r#""is_withdrawal": false, "derived_from": ["{given}"], "created_at": "2026-07-03T00:00:00Z",
        "supersession_justification": "agreed""#
    ))
    .into_fields();
    wider.insert("scope".to_owned(), vec!["store".to_owned(), "share".to_owned()].into());
    let wider = Grain::from_fields(wider).unwrap();
    let report = import(&world, vec![first, carrying(2, &wider, json!({"supersedes": id(1)}))]);
    assert_eq!(report.records.failed, 1, "{report:?}");
    assert!(report.errors[0].message.contains("ERR_SIGNATURE"), "{report:?}");
    assert_eq!(world.session.get(&given).unwrap().state.superseded_by, None);
}

#[test]
fn only_a_signature_that_is_verified_renews_a_consent() {
    let key = SigningKey::ed25519_from_seed(&[7; 32]);
    let other = SigningKey::ed25519_from_seed(&[8; 32]);
    for (subject, kid, expected) in [
        (key.did().to_string(), None, 1),
        (other.did().to_string(), None, 0),
        // Nobody here knows the key of the name.
        (ANN.to_owned(), Some("did:web:ann.example#key-1"), 0),
    ] {
        let made = Withdrawn::by(&subject);
        let again = consent(
            &subject,
            &format!(
                r#""is_withdrawal": false, "prior_consent": "{withdrawn}", "derived_from": ["{withdrawn}"],
            "supersession_justification": "agreed", "created_at": "2026-07-03T00:00:00Z""#,
                withdrawn = made.withdrawn
            ),
        );
        let blob = again.encode(Default::default()).unwrap();
        let signed = sign(blob.bytes(), &key, None).unwrap();
        let blob = signed.blob().unwrap();
        let cose = match kid {
            None => signed.bytes().to_vec(),
            Some(kid) => signed_in_the_name_of(kid, blob),
        };
        let renewal = carrying_bytes(2, blob, Some(&cose), json!({"supersedes": id(1)}));
        let report = import(&made.world, vec![carrying(1, &made.withdrawal, json!({})), renewal]);
        assert_eq!(report.records.failed, 1 - expected, "{subject}: {report:?}");
        match expected {
            0 => made.is_hidden(),
            _ => drop(made.world.session.get(&made.fact).unwrap()),
        }
    }
}

/// An envelope (OMS 9.1) with this `kid`, and a signature of zeros.
fn signed_in_the_name_of(kid: &str, blob: &[u8]) -> Vec<u8> {
    let bytes = |bytes: &[u8]| {
        let length = u16::try_from(bytes.len()).unwrap().to_be_bytes();
        match bytes.len() {
            0..24 => [&[0x40 + length[1]], bytes].concat(),
            24..256 => [&[0x58, length[1]], bytes].concat(),
            _ => [&[0x59, length[0], length[1]], bytes].concat(),
        }
    };
    let protected = bytes(&[&[0xa2, 1, 0x27, 4][..], &bytes(kid.as_bytes())].concat());
    [&[0xd2, 0x84][..], &protected, &[0xa0], &bytes(blob), &bytes(&[0; 64])].concat()
}

#[test]
fn a_withdrawal_without_a_signature_hides_and_is_marked_for_review() {
    for is_superseding in [false, true] {
        let world = World::new();
        let cascade = r#", "invalidation_policy": {"mode": "consent_cascade"}"#;
        let (given, fact) = resting(&world, ANN, cascade);
        let members = match is_superseding {
            false => format!(r#""prior_consent": "{given}""#),
            true => format!(
                r#""prior_consent": "{given}", "derived_from": ["{given}"], "supersession_justification": "x""#
            ),
        };
        let withdrawal = consent(
            ANN,
            &format!(r#""is_withdrawal": true, {members}, "created_at": "2026-07-02T00:00:00Z""#),
        );
        let address = withdrawal.encode(Default::default()).unwrap().address();
        let mut records = vec![carrying(1, &withdrawal, json!({}))];
        if is_superseding {
            let first =
                carrying(2, &world.session.get(&given).unwrap().grain().unwrap(), json!({}));
            records = vec![first, carrying(1, &withdrawal, json!({"supersedes": id(2)}))];
        }
        let report = import(&world, records);
        assert_eq!(report.records.failed, 0, "{report:?}");
        assert_eq!(world.session.get(&fact).unwrap_err().code(), "ERR_WITHDRAWN");
        assert!(world.session.get(&address).unwrap().state.needs_review, "{is_superseding}");
        let due = world.store.due_erasures().unwrap();
        let now = world.session.now();
        assert!(due.iter().all(|one| one.address == fact && one.due > now), "{due:?}");
        assert_eq!(due.len(), 1);
    }
}
