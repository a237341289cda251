//! Marks rewritten with correct checksums, without the audit log, are found: every way of weakening the
//! protection of a grain, or hiding what happened to it.

use std::sync::Arc;

use grainstore_format::cose::{SigningKey, sign};
use grainstore_format::{Encoding, VerificationStatus};
use redb::{Durability, ReadableTable, WriteTransaction};
use tempfile::TempDir;

use super::super::{Problem, ProblemCollector, VerifyContext, check_side_tables};
use super::*;
use crate::base::pending::Pending;
use crate::disk::layout::{PlainEnvelope, SignatureWrapper, StateRecord};
use crate::disk::vault::{EncryptionKey, Vault};
use crate::format::{BeliefBuilder, ContentAddress, Grain};
use crate::state::truth::Truth;
use crate::state::view::View;
use crate::write::writer::{Request, Writer};
use crate::{Offer, OpenOptions, Session, SessionOptions, Store};

/// Sequences of the grains that [`filled`] stores.
const PLAIN: u64 = 1;
const CONTRADICTED: u64 = 2;
const CONTESTED: u64 = 3;
const RETRACTED: u64 = 4;
const HELD: u64 = 5;
const LIFTED: u64 = 6;
const BORN_HELD: u64 = 7;
const LOCKED: u64 = 8;
const DERIVED: u64 = 9;
const EARLY: u64 = 10;
const LATE: u64 = 11;
const SIGNED: u64 = 12;

fn grain(more: &str) -> Grain {
    Grain::from_json(&format!(
        r#"{{"type": "belief", "relation": "r", "object": "o", "confidence": 1, "created_at": 0, {more}}}"#
    ))
    .unwrap()
}

fn filled() -> (TempDir, Store) {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
    let session = store.session(SessionOptions::default());
    let put = |more: &str| session.put(grain(more)).unwrap().address();
    put(r#""subject": "plain""#);
    mark_some(&session);
    put(r#""subject": "born", "invalidation_policy": {"mode": "hold"}"#);
    let subtree = r#""invalidation_policy": {"mode": "locked", "scope": "subtree"}"#;
    let locked = put(&format!(r#""subject": "locked", {subtree}"#));
    put(&format!(r#""subject": "derived", "derived_from": ["{locked}"]"#));
    // The grain that protects it is stored after it.
    let late = grain(&format!(r#""subject": "late", {subtree}"#));
    let named = late.encode(Encoding::MessagePack).unwrap().address();
    put(&format!(r#""subject": "early", "derived_from": ["{named}"]"#));
    session.put(late).unwrap();
    let key = SigningKey::ed25519_from_seed(&[7; 32]);
    let blob = grain(r#""subject": "signed""#).encode(Encoding::MessagePack).unwrap();
    let signed = sign(blob.bytes(), &key, None).unwrap();
    session.put(Offer::Signed(unverifiable_envelope(signed.blob().unwrap()))).unwrap();
    session.put(signed).unwrap();
    (dir, store)
}

/// An envelope of a signer whose key cannot be resolved.
fn unverifiable_envelope(blob: &[u8]) -> Vec<u8> {
    let kid = b"did:web:a.example";
    let protected = [&[0xa2, 1, 0x27, 4, 0x40 + 17][..], kid].concat();
    let length = u8::try_from(blob.len()).unwrap();
    [&[0xd2, 0x84, 0x56][..], &protected, &[0xa0, 0x58, length], blob, &[0x58, 64], &[1; 64]]
        .concat()
}

fn mark_some(session: &Session) {
    let put = |subject: &str| {
        let built = BeliefBuilder::new(EpochMs::new(0), subject, "is", "marked", 1.0).build();
        session.put(built.unwrap()).unwrap().address()
    };
    let status = |address: &ContentAddress, status| {
        session.set_verification(address, status, "why", None).unwrap();
    };
    session.contradict(&put("contradicted"), "why", None).unwrap();
    let contested = put("contested");
    status(&contested, VerificationStatus::Verified);
    status(&contested, VerificationStatus::Contested);
    status(&put("retracted"), VerificationStatus::Retracted);
    session.hold(&put("held"), "why").unwrap();
    let lifted = put("lifted");
    session.hold(&lifted, "why").unwrap();
    session.lift_hold(&lifted, "why", None).unwrap();
}

/// A direct change of the tables that bypasses all checks.
type Change = Box<dyn Fn(&WriteTransaction) + Send>;

/// Returns the problems found after a change of the tables, which is then undone.
fn problems(writer: &mut Writer, change: &Change, full: bool) -> Vec<Problem> {
    let clean = writer.db.begin_write().unwrap();
    let before = clean.ephemeral_savepoint().unwrap();
    clean.abort().unwrap();
    let mut txn = writer.db.begin_write().unwrap();
    txn.set_durability(Durability::None).unwrap();
    change(&txn);
    txn.commit().unwrap();
    let view = View::new(Arc::new(Truth::open(&writer.db).unwrap()), writer.view.indexed().clone());
    let mut findings = ProblemCollector::default();
    let check = VerifyContext::of(&view, full).unwrap();
    check_side_tables(&check, view.log_len().unwrap(), None, &mut findings).unwrap();
    drop(check);
    drop(view);
    let mut txn = writer.db.begin_write().unwrap();
    txn.restore_savepoint(&before).unwrap();
    txn.commit().unwrap();
    findings.finish(full).problems
}

/// Changes a state, with a correct checksum.
fn state(at: u64, change: impl Fn(&mut GrainState) + Send + 'static) -> Change {
    Box::new(move |txn| {
        let sequence = Sequence::new(at);
        let mut states = txn.open_table(layout::STATE).unwrap();
        let row = states.get(at).unwrap();
        let before = row.map(|row| Vault::default().decode_state(sequence, row.value()).unwrap());
        let mut record =
            before.unwrap_or_else(|| StateRecord { ended_by_entry: 1, ..<_>::default() });
        change(&mut record.state);
        states.insert(at, &Vault::default().encode_state(sequence, &record)).unwrap();
    })
}

fn no_state(at: u64) -> Change {
    Box::new(move |txn| {
        let mut states = txn.open_table(layout::STATE).unwrap();
        assert!(states.remove(at).unwrap().is_some());
    })
}

fn roots(at: u64, change: impl Fn(&mut Vec<Sequence>) + Send + 'static) -> Change {
    Box::new(move |txn| {
        let sequence = Sequence::new(at);
        let mut table = txn.open_table(layout::ROOTS).unwrap();
        let row = table.get(at).unwrap();
        let mut noted =
            row.map(|row| layout::decode_roots(sequence, row.value()).unwrap()).unwrap_or_default();
        change(&mut noted);
        table.insert(at, layout::encode_roots(sequence, &noted).as_slice()).unwrap();
    })
}

fn no_roots(at: u64) -> Change {
    Box::new(move |txn| {
        let mut table = txn.open_table(layout::ROOTS).unwrap();
        assert!(table.remove(at).unwrap().is_some());
    })
}

/// Marks a stored signature as unverifiable.
fn unverifiable(at: u64) -> Change {
    Box::new(move |txn| {
        let sequence = Sequence::new(at);
        let mut table = txn.open_table(layout::SIGNATURES).unwrap();
        let row = table.get(at).unwrap().unwrap().value().to_vec();
        let kept = SignatureWrapper::open(sequence, &row, &Vault::default()).unwrap();
        assert!(kept.valid && PlainEnvelope::open(at, &row).is_ok());
        let sealed = SignatureWrapper { valid: false, ..kept }
            .seal(sequence, &Vault::default(), &EncryptionKey::default())
            .unwrap();
        table.insert(at, sealed.as_slice()).unwrap();
    })
}

fn tampering() -> Vec<(&'static str, String, Change)> {
    let in_state = |at| format!("state {at}");
    let in_roots = |at| format!("roots {at}");
    let current = |state: &mut GrainState| *state = GrainState::default();
    vec![
        ("contradicted, cleared", in_state(CONTRADICTED), state(CONTRADICTED, current)),
        ("contradicted, deleted", in_state(CONTRADICTED), no_state(CONTRADICTED)),
        (
            "never contradicted",
            in_state(PLAIN),
            state(PLAIN, |state| {
                state.contradicted = true;
                state.system_valid_to = Some(EpochMs::new(5));
            }),
        ),
        ("contested, cleared", in_state(CONTESTED), no_state(CONTESTED)),
        (
            "contested, as verified",
            in_state(CONTESTED),
            state(CONTESTED, |state| {
                state.verification_status = VerificationStatus::Verified;
            }),
        ),
        ("retracted, cleared", in_state(RETRACTED), state(RETRACTED, current)),
        (
            "retracted, without its end",
            in_state(RETRACTED),
            state(RETRACTED, |state| {
                state.system_valid_to = None;
            }),
        ),
        (
            "an end that nothing brought",
            in_state(PLAIN),
            state(PLAIN, |state| {
                state.system_valid_to = Some(EpochMs::new(5));
            }),
        ),
        ("held, deleted", in_state(HELD), no_state(HELD)),
        ("held, cleared", in_state(HELD), state(HELD, |state| state.held = false)),
        ("never held", in_state(PLAIN), state(PLAIN, |state| state.held = true)),
        ("lifted, held again", in_state(LIFTED), state(LIFTED, |state| state.held = true)),
        ("born held, deleted", in_state(BORN_HELD), no_state(BORN_HELD)),
        ("born held, cleared", in_state(BORN_HELD), state(BORN_HELD, |s| s.held = false)),
        ("locked, roots deleted", in_roots(LOCKED), no_roots(LOCKED)),
        ("locked, no root of its own", in_roots(LOCKED), roots(LOCKED, Vec::clear)),
        ("derived, roots deleted", in_roots(DERIVED), no_roots(DERIVED)),
        ("late, roots deleted", in_roots(LATE), no_roots(LATE)),
        ("stored before what protects it, roots deleted", in_roots(EARLY), no_roots(EARLY)),
        (
            "released by nobody",
            in_roots(DERIVED),
            roots(DERIVED, |roots| {
                roots.insert(0, Sequence::new(0));
            }),
        ),
        ("a signature that is not valid", "audit 20".to_owned(), unverifiable(SIGNED)),
    ]
}

#[test]
fn standing_rewritten_past_the_audit_log_is_found_and_the_row_named() {
    let (_dir, store) = filled();
    let (reply, pending) = Pending::new();
    let work = Request::Exclusive(Box::new(move |writer| {
        let writer = writer.unwrap();
        let untouched: Change = Box::new(|_| {});
        for full in [false, true] {
            assert_eq!(problems(writer, &untouched, full), []);
            for (what, place, change) in tampering() {
                let found = problems(writer, &change, full);
                assert!(found.iter().any(|found| found.place == place), "{what}: {found:?}");
                assert_eq!(problems(writer, &untouched, full), [], "undone: {what}");
            }
        }
        let _ = reply.send(Ok(()));
    }));
    store.inner().send(work).unwrap();
    pending.wait().unwrap();
}
