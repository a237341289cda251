//! Stores of every format version there was, opened by the code there is: each grain reads as it was
//! written, and all of it verifies.
//!
//! A fixture is never changed. A new format version gets one of its own: `write_a_fixture` says how.
#![expect(clippy::unwrap_used, reason = "a test stops at a surprise")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grainstore::embed::{Embedding, Metric};
use grainstore::format::{Encoding, SigningKey, sign};
use grainstore::{
    ContentAddress, EpochMs, EraseOptions, Grain, ManualClock, MasterKey, Offer, OpenOptions,
    Owner, Session, SessionOptions, Store,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The format version there is.
const FORMAT: u32 = 3;
/// The files of a store.
const FILES: [&str; 2] = ["grains.redb", "index.redb"];
/// Those of an encrypted one.
const FILES_WITH_KEYS: [&str; 3] = ["grains.redb", "keyring", "index.redb"];
/// The key of those that are encrypted.
const KEY: [u8; 32] = [9; 32];

#[test]
fn a_store_of_format_1_is_upgraded_and_says_what_it_said() {
    let fixture = fixtures().join("format-1");
    let expected = expected(&fixture);
    assert!(expected["grains"].as_array().unwrap().len() >= 12);
    // As it was, and with nothing but the truth.
    for files in [&FILES[..], &FILES[..1]] {
        let dir = unpacked(&fixture, files);
        let options = OpenOptions::new().count_access(false);
        let store = Store::open(dir.path(), &options).unwrap();
        assert_eq!(store.stats().unwrap().format, FORMAT);
        let session = store.session(SessionOptions::default());
        let mut said = told(&session, &written(&session));
        let upgrade = said["audit"].as_array_mut().unwrap().pop().unwrap();
        let entries = expected["audit"].as_array().unwrap().len();
        assert_eq!(
            [&upgrade["operation"], &upgrade["rules"], &upgrade["decision"], &upgrade["sequence"]],
            [&json!("upgrade"), &json!(["format_2", "format_3"]), &json!("done"), &json!(entries)]
        );
        assert_eq!(said["grains"], expected["grains"], "{files:?}");
        assert_eq!(said["audit"], expected["audit"], "{files:?}");
        assert_eq!(said["head"]["entries"], json!(entries + 1));
        let found = store.verify(true).unwrap();
        assert_eq!(found.problems, [], "{files:?}");
        let head = session.audit_head().unwrap();
        store.backup(dir.path().with_extension("backup")).unwrap();
        store.compact().unwrap();
        store.close().unwrap();
        // It is upgraded once, and a backup is one of the format there is.
        for path in [dir.path().to_owned(), dir.path().with_extension("backup")] {
            let store = Store::open(&path, &options).unwrap();
            assert_eq!(store.stats().unwrap().format, FORMAT);
            assert_eq!(store.session(SessionOptions::default()).audit_head().unwrap(), head);
            assert_eq!(
                grainstore::verify(&path, &options.clone().wait(std::time::Duration::ZERO), true)
                    .unwrap_err()
                    .code(),
                "ERR_BUSY"
            );
            store.close().unwrap();
            assert_eq!(grainstore::verify(&path, &options, true).unwrap().problems, []);
        }
        fs::remove_dir_all(dir.path().with_extension("backup")).unwrap();
    }
}

#[test]
fn a_store_of_format_2_is_upgraded_and_says_what_it_said_plain_and_encrypted() {
    for (name, files) in [("format-2", &FILES[..]), ("format-2-encrypted", &FILES_WITH_KEYS)] {
        let fixture = fixtures().join(name);
        let expected = expected(&fixture);
        let grains = expected["grains"].as_array().unwrap();
        assert!(grains.len() >= 14, "{name}");
        let address = |grain: &Value| grain["address"].as_str().unwrap().parse().unwrap();
        // As it was, and without its index.
        for files in [files, &files[..files.len() - 1]] {
            let dir = unpacked(&fixture, files);
            let options = opening(name).count_access(false);
            let store = Store::open(dir.path(), &options).unwrap();
            assert_eq!(store.stats().unwrap().format, FORMAT);
            assert_eq!(store.stats().unwrap().erased_users, 1, "{name}");
            let session = store.session(SessionOptions::default());
            let mut said = told(&session, &grains.iter().map(address).collect::<Vec<_>>());
            let upgrade = said["audit"].as_array_mut().unwrap().pop().unwrap();
            assert_eq!(
                [&upgrade["operation"], &upgrade["rules"], &upgrade["decision"]],
                [&json!("upgrade"), &json!(["format_3"]), &json!("done")]
            );
            for part in ["grains", "audit"] {
                assert_eq!(said[part], expected[part], "{name}, {files:?}: {part}");
            }
            let gone = expected["erased"].as_str().unwrap().parse().unwrap();
            assert_eq!(session.get(&gone).map(drop).unwrap_err().code(), "ERR_ERASED");
            assert_eq!(store.verify(true).unwrap().problems, [], "{name}, {files:?}");
            // What is new in the format is there from its first row on.
            let owner = Owner::User("ann".to_owned());
            session.put_row("notes", 1, 1, b"a row", owner.clone()).unwrap();
            let blob = session.put_side_blob(b"a blob", owner.clone()).unwrap();
            store.compact().unwrap();
            store.close().unwrap();
            assert_eq!(grainstore::verify(dir.path(), &options, true).unwrap().problems, []);
            let store = Store::open(dir.path(), &options).unwrap();
            let session = store.session(SessionOptions::default());
            assert_eq!(session.row("notes", 1, 1).unwrap(), Some(b"a row".to_vec()));
            assert_eq!(session.side_blob(&blob, &owner).unwrap(), b"a blob");
        }
    }
}

#[test]
fn a_store_of_format_3_says_what_it_said_plain_and_encrypted() {
    for (name, files) in [("format-3", &FILES[..]), ("format-3-encrypted", &FILES_WITH_KEYS)] {
        let fixture = fixtures().join(name);
        let expected = expected(&fixture);
        let grains = expected["grains"].as_array().unwrap();
        let address = |grain: &Value| grain["address"].as_str().unwrap().parse().unwrap();
        let doubted = grains.iter().find(|grain| grain["contradicted"] == json!(true)).unwrap();
        for files in [files, &files[..files.len() - 1]] {
            let dir = unpacked(&fixture, files);
            let options = opening(name).count_access(false);
            let store = Store::open(dir.path(), &options).unwrap();
            let session = store.session(SessionOptions::default());
            let said = told(&session, &grains.iter().map(address).collect::<Vec<_>>());
            for part in ["grains", "audit", "head"] {
                assert_eq!(said[part], expected[part], "{name}, {files:?}: {part}");
            }
            let owners = owners(&address(doubted));
            for (number, owner) in owners.iter().enumerate() {
                let row = session.row("notes", 1, number as u64).unwrap();
                assert_eq!(row, Some(format!("row {number}").into_bytes()), "{name}");
                let blob = ContentAddress::of(&side_blob(number));
                assert_eq!(session.side_blob(&blob, owner).unwrap(), side_blob(number), "{name}");
            }
            assert_eq!(session.row("notes", 1, 7).unwrap(), None, "{name}: erased with its user");
            assert_eq!(store.verify(true).unwrap().problems, [], "{name}, {files:?}");
            store.close().unwrap();
            assert_eq!(grainstore::verify(dir.path(), &options, true).unwrap().problems, []);
        }
    }
}

/// How a fixture of this name is opened.
fn opening(name: &str) -> OpenOptions {
    let options = OpenOptions::new();
    if name.ends_with("encrypted") { options.key(MasterKey::new(KEY)) } else { options }
}

fn expected(fixture: &Path) -> Value {
    serde_json::from_slice(&fs::read(fixture.join("expected.json")).unwrap()).unwrap()
}

/// Makes the fixtures of the format version there is; run it once, when that version is new:
/// `cargo test -p grainstore --test operate fixtures:: -- --ignored`. It writes into new directories,
/// `tests/fixtures/new` and `tests/fixtures/new-encrypted`, which take the name of its version.
#[test]
#[ignore = "makes a fixture"]
fn write_a_fixture() {
    write("new", &FILES);
    write("new-encrypted", &FILES_WITH_KEYS);
}

fn write(name: &str, files: &[&str]) {
    let to = fixtures().join(name);
    fs::create_dir(&to).unwrap();
    let dir = TempDir::new().unwrap();
    let clock = ManualClock::following();
    clock.set(EpochMs::new(1_800_000_000_000));
    let options = opening(name).create(true).clock(Arc::new(clock));
    let store = Store::open(dir.path(), &options).unwrap();
    let (written, erased) = fill(&store);
    store.scrub().unwrap();
    let mut expected = told(&store.session(SessionOptions::default()), &written);
    let erased = Value::from(erased.to_string());
    expected.as_object_mut().unwrap().insert("erased".to_owned(), erased);
    store.compact().unwrap();
    store.close().unwrap();
    fs::write(to.join("expected.json"), serde_json::to_vec_pretty(&expected).unwrap()).unwrap();
    for file in files {
        let bytes = fs::read(dir.path().join(file)).unwrap();
        let packed = zstd::bulk::compress(&bytes, 19).unwrap();
        fs::write(to.join(format!("{file}.zst")), packed).unwrap();
    }
}

/// Some of everything a store of this version can hold: its grains, and one that was erased.
fn fill(store: &Store) -> (Vec<ContentAddress>, ContentAddress) {
    let kept = std::cell::RefCell::new(Vec::new());
    let session = store.session(SessionOptions {
        actor: Some("did:web:example.com:writer".to_owned()),
        ..SessionOptions::default()
    });
    let keep = |address: ContentAddress| {
        kept.borrow_mut().push(address);
        address
    };
    let put = |grain: &Value| keep(session.put(grain_of(grain)).unwrap().address());
    let tea = put(&belief("alice", "tea", &json!({ "namespace": "home", "user_id": "u1" })));
    let coffee = belief("alice", "coffee", &json!({ "namespace": "home", "user_id": "u1" }));
    keep(session.supersede(&tea, grain_of(&coffee), Some("alice said so")).unwrap());
    let city = json!({ "object": { "city": "Oslo" }, "structural_tags": ["place", "x:1"] });
    put(&belief("bob", "", &city));
    let cbor = grain_of(&belief("carol", "cbor", &json!({ "context": { "id": 7 } })));
    keep(session.put(cbor.encode(Encoding::Cbor).unwrap()).unwrap().address());
    let locked =
        put(&belief("vault", "never", &json!({ "invalidation_policy": { "mode": "locked" } })));
    let refused = belief("vault", "now", &json!({}));
    assert!(session.supersede(&locked, grain_of(&refused), Some("why not")).is_err());
    let policy = json!({ "invalidation_policy": { "mode": "soft_locked" } });
    let soft = put(&belief("rule", "old", &policy));
    let new = grain_of(&belief("rule", "new", &json!({})));
    keep(session.supersede(&soft, new, Some("law")).unwrap());
    put(&belief("case", "kept", &json!({ "invalidation_policy": { "mode": "hold" } })));
    let said = |text: &str, more: &Value| {
        merged(json!({ "type": "event", "content": text, "role": "user", "session_id": "s" }), more)
    };
    let first = put(&said("hello", &json!({ "timestamp_ms": 1_700_000_001_000_i64 })));
    put(&said("and more", &json!({ "parent_message_id": first.to_string() })));
    put(&json!({ "type": "state", "context": { "messages_tail": first.to_string() } }));
    put(&json!({ "type": "reasoning", "premises": [tea.to_string()], "conclusion": "so" }));
    let consent = json!({
        "type": "consent", "subject_did": "did:web:a", "grantee_did": "did:web:b",
        "scope": ["store"], "is_withdrawal": false,
    });
    let grant = put(&consent);
    let more = json!({ "is_withdrawal": true, "prior_consent": grant.to_string() });
    put(&merged(consent, &more));
    session.get(&first).unwrap();
    let near = Embedding::new("eyes", Metric::Cosine, vec![1.0, 0.0, 0.5]).unwrap();
    let seen = Offer::from(grain_of(&belief("dan", "seen", &json!({}))));
    keep(session.put(seen.with_vectors(vec![near])).unwrap().address());
    let blob = grain_of(&belief("eve", "signed", &json!({}))).encode(Encoding::default()).unwrap();
    let key = SigningKey::ed25519_from_seed(&[3; 32]);
    keep(session.put(sign(blob.bytes(), &key, None).unwrap()).unwrap().address());
    let contested = put(&belief("fay", "doubted", &json!({})));
    session.contradict(&contested, "it is not so", None).unwrap();
    let gone = belief("gus", "gone", &json!({ "user_id": "u2" }));
    let gone = session.put(grain_of(&gone)).unwrap().address();
    let operator = store.session(SessionOptions::default());
    for (number, owner) in owners(&contested).into_iter().enumerate() {
        let value = format!("row {number}");
        operator.put_row("notes", 1, number as u64, value, owner.clone()).unwrap();
        operator.put_side_blob(side_blob(number), owner).unwrap();
    }
    operator.put_row("notes", 1, 7, b"of u2", Owner::User("u2".to_owned())).unwrap();
    operator.erase_user("u2", "u2 asked", &EraseOptions::new().now(true)).unwrap();
    (kept.into_inner(), gone)
}

/// Whom rows and side blobs of a store of format 3 belong to.
fn owners(grain: &ContentAddress) -> [Owner; 3] {
    [Owner::Store, Owner::User("u1".to_owned()), Owner::Grain(*grain)]
}

/// The side blob of one of them.
fn side_blob(number: usize) -> Vec<u8> {
    b"side blob".repeat(number + 1)
}

fn belief(subject: &str, object: &str, more: &Value) -> Value {
    let belief = json!({
        "type": "belief", "subject": subject, "relation": "prefers", "object": object,
        "confidence": 0.75,
    });
    merged(belief, more)
}

/// The fields of both, those of the second where they are in both.
fn merged(mut grain: Value, more: &Value) -> Value {
    grain.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    grain
}

fn grain_of(grain: &Value) -> Grain {
    let dated = merged(json!({ "created_at": 1_700_000_000_000_i64 }), grain);
    Grain::from_json(&dated.to_string()).unwrap()
}

/// The grains that the audit log tells of.
fn written(session: &Session) -> Vec<ContentAddress> {
    let entries = session.audit(None, 1_000).unwrap();
    let mut written: Vec<ContentAddress> = Vec::new();
    for entry in entries.iter().filter(|entry| entry.decision == "done") {
        let new = entry.subjects.iter().filter(|address| !written.contains(address));
        written.extend(new.copied().collect::<Vec<_>>());
    }
    written
}

/// All a store says: these grains with their states, and the audit log.
fn told(session: &Session, written: &[ContentAddress]) -> Value {
    let entries = session.audit(None, 1_000).unwrap();
    let grains = written.iter().map(|address| {
        let stored = session.get(address).unwrap();
        json!({
            "address": address.to_string(),
            "grain": serde_json::to_value(stored.grain().unwrap()).unwrap(),
            "blob_bytes": stored.blob.len(),
            "superseded_by": stored.state.superseded_by.map(|by| by.to_string()),
            "system_valid_to": stored.state.system_valid_to.map(EpochMs::get),
            "verification_status": stored.state.verification_status.name(),
            "contradicted": stored.state.contradicted,
            "needs_review": stored.state.needs_review,
            "held": stored.state.held,
        })
    });
    let grains: Vec<_> = grains.collect();
    let audit = entries.iter().map(|entry| {
        json!({
            "sequence": entry.sequence, "time_ms": entry.time.get(), "actor": entry.actor,
            "operation": entry.operation, "decision": entry.decision, "rules": entry.rules,
            "reason": entry.reason,
            "subjects": entry.subjects.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    });
    let audit: Vec<_> = audit.collect();
    let (entries, hash) = session.audit_head().unwrap();
    json!({ "grains": grains, "audit": audit, "head": { "entries": entries, "hash": hash } })
}

/// These files of a fixture in a directory.
fn unpacked(fixture: &Path, files: &[&str]) -> TempDir {
    let dir = TempDir::new().unwrap();
    for file in files {
        let packed = fs::read(fixture.join(format!("{file}.zst"))).unwrap();
        let bytes = zstd::bulk::decompress(&packed, 16 << 20).unwrap();
        fs::write(dir.path().join(file), bytes).unwrap();
    }
    dir
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}
