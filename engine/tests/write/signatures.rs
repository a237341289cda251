//! Signed grains: what is taken, what is kept of them, and that it stays through everything a store
//! goes through.
#![expect(clippy::unwrap_used, reason = "a test stops at a surprise")]

use std::path::Path;
use std::sync::Arc;

use ed25519_dalek::Signer;
use grainstore::format::{
    BeliefBuilder, Did, DidResolver, Encoding, Envelope, SignatureVerdict, SigningKey,
    VerifyingKey, disclose, sign,
};
use grainstore::{
    EpochMs, Grain, Offer, OpenOptions, ProblemKind, PutOutcome, Session, SessionOptions, Store,
    StoredGrain,
};
use redb::{Database, ReadableDatabase, TableDefinition, TableHandle};
use tempfile::TempDir;

const SIGNATURES: TableDefinition<'static, u64, &'static [u8]> = TableDefinition::new("signatures");

fn open(path: &Path) -> Store {
    Store::open(path, &OpenOptions::new().create(true)).unwrap()
}

fn store() -> (TempDir, Store, Session) {
    let dir = TempDir::new().unwrap();
    let store = open(dir.path());
    let session = store.session(SessionOptions::default());
    (dir, store, session)
}

fn key(seed: u8) -> SigningKey {
    SigningKey::ed25519_from_seed(&[seed; 32])
}

fn belief(object: &str) -> BeliefBuilder {
    BeliefBuilder::new(EpochMs::new(1_737_000_000_000), "alice", "prefers", object, 0.9)
}

fn blob(object: &str) -> Vec<u8> {
    belief(object).build().unwrap().encode(Encoding::MessagePack).unwrap().into_bytes()
}

fn signed(object: &str, seed: u8) -> Envelope {
    sign(&blob(object), &key(seed), Some(1_737_000_000)).unwrap()
}

/// The blob of an envelope, signed with a seed under the name of somebody whose key lies elsewhere.
fn signed_as(kid: &str, seed: u8, of: &Envelope) -> Vec<u8> {
    let bytes = |bytes: &[u8]| {
        let length = u16::try_from(bytes.len()).unwrap().to_be_bytes();
        match bytes.len() {
            0..24 => [&[0x40 + length[1]], bytes].concat(),
            24..256 => [&[0x58, length[1]], bytes].concat(),
            _ => [&[0x59, length[0], length[1]], bytes].concat(),
        }
    };
    let blob = bytes(of.blob().unwrap());
    let protected = bytes(&[&[0xa2, 1, 0x27, 4][..], &bytes(kid.as_bytes())].concat());
    let message = [&[0x84, 0x6a][..], b"Signature1", &protected, &[0x40], &blob].concat();
    let signature = ed25519_dalek::SigningKey::from_bytes(&[seed; 32]).sign(&message);
    let signature = bytes(&signature.to_bytes());
    [&[0xd2, 0x84][..], &protected, &[0xa0], &blob, &signature].concat()
}

fn code<T>(result: grainstore::Result<T>) -> &'static str {
    result.map_or_else(|error| error.code(), |_| "OK")
}

fn cose(stored: &StoredGrain) -> &[u8] {
    stored.envelope.as_ref().unwrap().bytes()
}

#[test]
fn an_envelope_comes_back_byte_for_byte_with_its_verdict() {
    let (dir, store, session) = store();
    let p256 = SigningKey::p256_from_bytes(&[9; 32]).unwrap();
    let cbor = belief("cbor").build().unwrap().encode(Encoding::Cbor).unwrap();
    let untagged = signed("untagged", 1).into_bytes().split_off(1);
    let envelopes = [
        (signed("tea", 1), key(1).did()),
        (sign(&blob("coffee"), &p256, None).unwrap(), p256.did()),
        (sign(cbor.bytes(), &key(2), None).unwrap(), key(2).did()),
        (Envelope::parse(untagged).unwrap(), key(1).did()),
    ];
    let bare = session.put(belief("water").build().unwrap()).unwrap().address();
    for (envelope, _) in &envelopes {
        let put = session.put(envelope.clone()).unwrap();
        assert_eq!(
            put,
            PutOutcome::Added(envelope.address()),
            "the address is that of the blob inside"
        );
    }
    let check = |session: &Session| {
        for (envelope, did) in &envelopes {
            let stored = session.get(&envelope.address()).unwrap();
            assert_eq!(cose(&stored), envelope.bytes());
            assert_eq!(stored.blob, envelope.blob().unwrap());
            assert_eq!(session.signature(&stored), Some(SignatureVerdict::Valid(did.clone())));
            assert_eq!(stored.grain().unwrap().text("subject"), Some("alice"));
        }
        let stored = session.get(&bare).unwrap();
        assert_eq!((session.signature(&stored), stored.envelope), (None, None));
    };
    check(&session);
    assert_eq!(store.stats().unwrap().rows["signatures"], 4);
    store.compact().unwrap();
    check(&session);
    store.reindex().unwrap();
    let copy = TempDir::new().unwrap();
    store.backup(copy.path()).unwrap();
    let verified = store.verify(true).unwrap();
    assert_eq!((verified.problems, verified.checked.unwrap().signatures), (Vec::new(), 4));
    store.close().unwrap();
    for place in [dir.path(), copy.path()] {
        let store = open(place);
        check(&store.session(SessionOptions::default()));
        assert_eq!(store.verify(true).unwrap().problems, []);
    }
}

#[test]
fn signed_grains_are_found_and_superseded_like_others() {
    let (_dir, _store, session) = store();
    let first = signed("tea", 1);
    let old = session.put(first.clone()).unwrap().address();
    let asked = session.ask(r#"RECALL beliefs ABOUT "alice""#).unwrap();
    assert_eq!(serde_json::to_value(&asked).unwrap()["results"].as_array().unwrap().len(), 1);
    let parents = vec![old.to_string().into()];
    let next = belief("coffee").derived_from(parents).build().unwrap();
    let next = sign(next.encode(Encoding::MessagePack).unwrap().bytes(), &key(2), None).unwrap();
    let new = session.supersede(&old, next.clone(), None).unwrap();
    assert_eq!(new, next.address());
    // Its signature is what it was: its state is told beside it (OMS 5.6).
    let stored = session.get(&old).unwrap();
    assert_eq!(stored.state.superseded_by, Some(new));
    assert_eq!(session.signature(&stored), Some(SignatureVerdict::Valid(key(1).did())));
    let history = session.history(&new).unwrap();
    assert_eq!(history.iter().map(cose).collect::<Vec<_>>(), [next.bytes(), first.bytes()]);
    // From here on it goes on unsigned.
    let last = session.supersede(&new, belief("water").build().unwrap(), None).unwrap();
    assert_eq!(session.get(&last).unwrap().envelope, None);
}

#[test]
fn what_is_no_valid_signed_grain_is_refused_and_leaves_nothing() {
    let (_dir, store, session) = store();
    let good = signed("tea", 1);
    let mut altered = good.bytes().to_vec();
    *altered.last_mut().unwrap() ^= 1;
    let trailing = [good.bytes(), &[0]].concat();
    let decoded = Offer::Grain(good.grain().unwrap());
    let inner = good.blob().unwrap().to_vec();
    let clear = {
        let mut bytes = good.bytes().to_vec();
        let (before, _) = good.wrapper_parts().unwrap();
        bytes[before.len() + 1] &= !1;
        bytes
    };
    let bare = session.put(belief("water").build().unwrap()).unwrap().address();
    for (offer, expected) in [
        (Offer::Signed(altered), "ERR_SIGNATURE"),
        (Offer::Signed(trailing), "ERR_SIGNATURE"),
        (Offer::Signed(clear), "ERR_SIGNED_MISMATCH"),
        (Offer::Signed(inner.clone()), "ERR_CORRUPT"),
        (Offer::Signed(b"nothing".to_vec()), "ERR_CORRUPT"),
        (Offer::Blob(inner), "ERR_SIGNED_MISMATCH"),
        (Offer::Blob(good.bytes().to_vec()), "ERR_VERSION"),
        (decoded, "ERR_SIGNED_MISMATCH"),
    ] {
        let batch = [Offer::Blob(blob("other")), offer.clone()];
        assert_eq!(code(session.put(offer.clone())), expected);
        assert_eq!(code(session.supersede(&bare, offer, None)), expected);
        let refused = session.put_batch(batch).unwrap_err();
        assert_eq!((refused.code(), refused.batch_index()), (expected, Some(1)));
    }
    let rows = store.stats().unwrap().rows;
    assert_eq!((rows["log"], rows["signatures"]), (1, 0));
    let told = session.audit(None, 100).unwrap();
    let told: Vec<_> =
        told.iter().skip(2).map(|entry| (&*entry.operation, &*entry.decision)).collect();
    // Those whose envelope names a grain, and those of which nothing can be read.
    let expected = [("put", "refused"), ("supersede", "refused")].repeat(2);
    assert_eq!(told, expected, "equal refusals are one entry");
    let batch = [Offer::Blob(blob("other")), good.clone().into(), good.into()];
    let puts = session.put_batch(batch).unwrap();
    let duplicates: Vec<_> = puts.iter().map(PutOutcome::is_duplicate).collect();
    assert_eq!(duplicates, [false, false, true]);
}

/// A host that knows where the keys of one name lie.
struct Directory(VerifyingKey);

impl DidResolver for Directory {
    fn resolve(&self, did: &Did) -> Option<VerifyingKey> {
        (did.as_str() == "did:web:example.com").then(|| self.0.clone())
    }
}

#[test]
fn the_first_envelope_stays_until_a_valid_one_takes_the_place_of_one_that_is_not() {
    let (dir, store, session) = store();
    let valid = signed("tea", 1);
    let address = valid.address();
    let elsewhere = signed_as("did:web:example.com", 7, &valid);
    let other = signed_as("did:web:example.org", 7, &valid);
    let is_kept = |session: &Session, expected: &[u8], verdict: &str| {
        let stored = session.get(&address).unwrap();
        assert_eq!(cose(&stored), expected);
        assert_eq!(session.signature(&stored).unwrap().name(), verdict);
    };
    let again = |session: &Session, cose: &[u8]| {
        let put = session.put(Offer::Signed(cose.to_vec())).unwrap();
        assert_eq!(put, PutOutcome::Duplicate(address));
    };
    session.put(Offer::Signed(elsewhere.clone())).unwrap();
    is_kept(&session, &elsewhere, "unverifiable");
    again(&session, &other);
    is_kept(&session, &elsewhere, "unverifiable");
    let entries = session.audit(None, 100).unwrap().len();
    again(&session, valid.bytes());
    is_kept(&session, valid.bytes(), "valid");
    let told = session.audit(None, 100).unwrap();
    let last = told.last().unwrap();
    assert_eq!((told.len(), last.operation.as_str()), (entries + 1, "sign"));
    assert_eq!(last.subjects, [address]);
    again(&session, signed("tea", 2).bytes());
    again(&session, &elsewhere);
    is_kept(&session, valid.bytes(), "valid");
    assert_eq!(session.audit(None, 100).unwrap().len(), entries + 1, "nothing was written");
    assert_eq!(store.stats().unwrap().rows["signatures"], 1);
    store.close().unwrap();
    let store = open(dir.path());
    is_kept(&store.session(SessionOptions::default()), valid.bytes(), "valid");
    assert_eq!(store.verify(true).unwrap().problems, []);
}

#[test]
fn one_batch_may_bring_a_better_envelope_of_its_own_grain() {
    let (_dir, store, session) = store();
    let valid = signed("tea", 1);
    let elsewhere = signed_as("did:web:example.com", 7, &valid);
    let batch = [Offer::Signed(elsewhere), valid.clone().into(), signed("tea", 2).into()];
    session.put_batch(batch).unwrap();
    assert_eq!(cose(&session.get(&valid.address()).unwrap()), valid.bytes());
    assert_eq!(store.verify(true).unwrap().problems, []);
}

#[test]
fn a_host_that_knows_a_key_verifies_what_others_cannot() {
    let (dir, store, session) = store();
    let inner = signed("tea", 1);
    let elsewhere = signed_as("did:web:example.com", 7, &inner);
    session.put(Offer::Signed(elsewhere.clone())).unwrap();
    store.close().unwrap();
    drop((store, session));
    let knows = |key: VerifyingKey| OpenOptions::new().resolver(Arc::new(Directory(key)));
    let store = Store::open(dir.path(), &knows(key(7).verifying_key())).unwrap();
    let session = store.session(SessionOptions::default());
    let stored = session.get(&inner.address()).unwrap();
    let did = "did:web:example.com".parse().unwrap();
    assert_eq!(session.signature(&stored), Some(SignatureVerdict::Valid(did)));
    // Now it counts as valid, and another valid one does not take its place.
    session.put(Offer::Signed(elsewhere.clone())).unwrap();
    session.put(inner.clone()).unwrap();
    assert_eq!(cose(&session.get(&inner.address()).unwrap()), elsewhere);
    store.close().unwrap();
    drop((store, session));
    let store = Store::open(dir.path(), &knows(key(8).verifying_key())).unwrap();
    let session = store.session(SessionOptions::default());
    assert_eq!(code(session.put(Offer::Signed(elsewhere))), "ERR_SIGNATURE");
    let stored = session.get(&inner.address()).unwrap();
    assert_eq!(session.signature(&stored).unwrap().name(), "invalid", "keys may change");
}

#[test]
fn a_store_without_signed_grains_has_no_table_of_them() {
    let (dir, store, session) = store();
    session.put(belief("tea").build().unwrap()).unwrap();
    let tables = || {
        let db = Database::open(dir.path().join("grains.redb")).unwrap();
        let txn = db.begin_read().unwrap();
        let tables: Vec<_> =
            txn.list_tables().unwrap().map(|table| table.name().to_owned()).collect();
        tables.contains(&"signatures".to_owned())
    };
    store.close().unwrap();
    drop((store, session));
    assert!(!tables());
    let store = open(dir.path());
    store.session(SessionOptions::default()).put(signed("coffee", 1)).unwrap();
    store.close().unwrap();
    drop(store);
    assert!(tables());
}

#[test]
fn a_signature_that_is_damaged_gone_or_anothers_is_found() {
    let (dir, store, session) = store();
    let envelopes = [signed("tea", 1), signed("coffee", 2)];
    for envelope in &envelopes {
        session.put(envelope.clone()).unwrap();
    }
    session.put(belief("water").build().unwrap()).unwrap();
    store.close().unwrap();
    drop((store, session));
    let whole = std::fs::read(dir.path().join("grains.redb")).unwrap();
    let rows = {
        let db = Database::open(dir.path().join("grains.redb")).unwrap();
        let table = db.begin_read().unwrap().open_table(SIGNATURES).unwrap();
        [1, 2].map(|at| table.get(at).unwrap().unwrap().value().to_vec())
    };
    let mut flipped = rows[0].clone();
    flipped[20] ^= 1;
    let of_none = resealed(3, &rows[0]);
    for (at, row) in [
        (1, Some(flipped)),
        (1, None),
        (1, Some(rows[1].clone())),
        (3, Some(of_none)),
        (9, Some(resealed(9, &rows[0]))),
        (1, Some(resealed(1, &rows[0][..rows[0].len() - 1]))),
        (1, Some(vec![1, 0])),
    ] {
        let harm = |row: Option<&[u8]>| {
            let db = Database::open(dir.path().join("grains.redb")).unwrap();
            let txn = db.begin_write().unwrap();
            {
                let mut table = txn.open_table(SIGNATURES).unwrap();
                match row {
                    Some(row) => drop(table.insert(at, row).unwrap()),
                    None => drop(table.remove(at).unwrap()),
                }
            }
            txn.commit().unwrap();
        };
        harm(row.as_deref());
        let store = open(dir.path());
        let found = store.verify(false).unwrap();
        assert_eq!(found.problem_count, 1, "{at}: {:?}", found.problems);
        assert_eq!(found.problems[0].what, ProblemKind::Signature);
        let session = store.session(SessionOptions::default());
        if at == 1 {
            assert_eq!(code(session.get(&envelopes[0].address())), "ERR_INTEGRITY");
        }
        assert_eq!(cose(&session.get(&envelopes[1].address()).unwrap()), envelopes[1].bytes());
        store.close().unwrap();
        drop((store, session));
        std::fs::write(dir.path().join("grains.redb"), &whole).unwrap();
    }
}

/// The body of a row under the checksum of another.
fn resealed(at: u64, row: &[u8]) -> Vec<u8> {
    let (head, rest) = row.split_at(2);
    let (_, body) = rest.split_at(4);
    let mut crc = crc32fast::Hasher::new();
    crc.update(&at.to_be_bytes());
    crc.update(body);
    [head, &crc.finalize().to_be_bytes(), body].concat()
}

#[test]
fn a_disclosed_view_is_not_stored() {
    let (_dir, store, session) = store();
    let view = disclose(&blob("tea"), &["subject"]).unwrap();
    let encoded = view.encode(Encoding::MessagePack).unwrap();
    let signed = sign(encoded.bytes(), &key(1), None).unwrap();
    let other = session.put(belief("water").build().unwrap()).unwrap().address();
    for offer in [Offer::Grain(view), encoded.into(), signed.into()] {
        assert_eq!(code(session.put(offer.clone())), "ERR_SCHEMA");
        assert_eq!(code(session.supersede(&other, offer, None)), "ERR_SCHEMA");
    }
    let no_hash = Grain::from_json(
        r#"{"type": "belief", "subject": "s", "relation": "r", "object": "o", "confidence": 1,
            "created_at": 1, "_elided": {}}"#,
    );
    assert_eq!(code(session.put(no_hash.unwrap())), "ERR_SCHEMA");
    assert_eq!(store.stats().unwrap().grains, 1);
}

#[test]
fn a_signed_grain_that_merely_derives_from_a_delegated_one_does_not_replace_it() {
    let (_dir, _store, session) = store();
    let rule = Grain::from_json(&format!(
        r#"{{"type": "belief", "subject": "vault", "relation": "opens", "object": "never",
            "confidence": 1, "created_at": 5000, "invalidation_policy":
            {{"mode": "delegated", "scope": "lineage", "authorized": ["{}"]}}}}"#,
        key(1).did()
    ));
    let rule = session.put(rule.unwrap()).unwrap().address();
    let parents = || vec![rule.to_string().into()];
    let note = belief("weather").derived_from(parents()).build().unwrap();
    let note = note.encode(Encoding::MessagePack).unwrap();
    let note = sign(note.bytes(), &key(1), Some(1)).unwrap();
    session.put(Offer::Signed(note.bytes().to_vec())).unwrap();
    let replaced = session.supersede(&rule, Offer::Signed(note.bytes().to_vec()), None);
    assert_eq!(code(replaced), "ERR_INVALIDATION_DENIED");
    let next = BeliefBuilder::new(EpochMs::new(6000), "vault", "opens", "at nine", 1.0);
    let next = next.derived_from(parents()).build().unwrap();
    let next = sign(next.encode(Encoding::MessagePack).unwrap().bytes(), &key(1), Some(1)).unwrap();
    assert_eq!(code(session.supersede(&rule, Offer::Signed(next.bytes().to_vec()), None)), "OK");
}
