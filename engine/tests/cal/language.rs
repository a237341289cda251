//! CAL over a store: writes that go back, through policies and quotas, and grains CAL has never heard of.
#![expect(clippy::unwrap_used, reason = "a test stops at a surprise")]

use grainstore::cal::{Answer, ExecuteOptions, Predicate, Query, Tier, TypeSet, WriteLimits};
use grainstore::format::{ContentAddress, Grain, GrainType};
use grainstore::{Offer, OpenOptions, PageOptions, Session, SessionOptions, Store};
use tempfile::TempDir;

fn opened(options: OpenOptions) -> (TempDir, Session) {
    let dir = TempDir::new().unwrap();
    let store = Store::open(dir.path(), &options.create(true)).unwrap();
    let session = store.session(SessionOptions::default());
    (dir, session)
}

/// What a statement answers; the code of its error.
fn ask(session: &Session, source: &str) -> Result<Answer, String> {
    let options = ExecuteOptions { tier: Tier::Evolve, ..ExecuteOptions::at(session.now()) };
    let response = session.ask_with(source.as_bytes(), &options);
    response.map(|response| response.answer).map_err(|error| error.code().to_owned())
}

fn written(session: &Session, source: &str) -> ContentAddress {
    match ask(session, source).unwrap() {
        Answer::Added { content_address } | Answer::Superseded { content_address, .. } => {
            content_address
        }
        other => unreachable!("{source} writes: {other:?}"),
    }
}

fn put(session: &Session, json: &str) -> ContentAddress {
    session.put(Grain::from_json(json).unwrap()).unwrap().address()
}

fn object(session: &Session, address: &ContentAddress) -> String {
    session.get(address).unwrap().grain().unwrap().text("object").unwrap().to_owned()
}

#[test]
fn a_revert_goes_back_in_the_store_and_its_reason_is_in_the_audit_log() {
    let (_dir, session) = opened(OpenOptions::new());
    let first = put(
        &session,
        r#"{"type": "belief", "subject": "alice", "relation": "drinks", "object": "tea",
            "confidence": 1, "created_at": 1000}"#,
    );
    let supersede = |old, to: &str| {
        format!("SUPERSEDE sha256:{old} SET object = \"{to}\" REASON \"she said so\"")
    };
    let second = written(&session, &supersede(first, "coffee"));
    let third = written(&session, &supersede(second, "milk"));
    let fourth = written(&session, &format!("REVERT sha256:{second} REASON \"it was tea\""));
    assert_eq!(object(&session, &fourth), "tea");
    assert!(session.get(&fourth).unwrap().state.is_current());
    assert_eq!(session.get(&third).unwrap().state.superseded_by, Some(fourth));
    let chain: Vec<_> =
        session.history(&first).unwrap().iter().map(|version| version.address).collect();
    assert_eq!(chain, [fourth, third, second, first]);
    let log = session.audit(None, 100).unwrap();
    let last = log.last().unwrap();
    assert_eq!(
        (last.operation.as_str(), last.reason.as_deref()),
        ("supersede", Some("it was tea"))
    );
    assert_eq!(last.subjects, [third, fourth]);
    let first_again = format!("REVERT sha256:{first} REASON \"r\"");
    assert_eq!(ask(&session, &first_again).err().as_deref(), Some("CAL-E041"));
}

#[test]
fn a_policy_holds_against_a_revert() {
    let (_dir, session) = opened(OpenOptions::new());
    let belief = |object: &str, more: &str| {
        format!(
            r#"{{"type": "belief", "subject": "alice", "relation": "drinks", "object": "{object}",
                "confidence": 1 {more}}}"#
        )
    };
    let first = put(&session, &belief("tea", r#", "created_at": 1000"#));
    let locked = format!(
        r#", "created_at": 2000, "derived_from": ["{first}"], "invalidation_policy": {{"mode": "locked"}}"#
    );
    let second = Grain::from_json(&belief("coffee", &locked)).unwrap();
    let second = session.supersede(&first, second, None).unwrap();
    let revert = format!("REVERT sha256:{second} REASON \"r\"");
    assert_eq!(ask(&session, &revert).err().as_deref(), Some("ERR_INVALIDATION_DENIED"));
    assert!(session.get(&second).unwrap().state.is_current());
}

#[test]
fn a_host_says_how_much_is_written_in_a_minute() {
    let limits = WriteLimits { adds: 1, supersedes: 1, reverts: 1 };
    let (_dir, session) = opened(OpenOptions::new().write_limits(limits));
    let add = "ADD belief SET subject = \"a\" SET relation = \"b\" SET object = \"c\" REASON \"r\"";
    let first = written(&session, add);
    assert_eq!(ask(&session, add).err().as_deref(), Some("CAL-E052"));
    let supersede = |old| format!("SUPERSEDE sha256:{old} SET object = \"d\" REASON \"r\"");
    let second = written(&session, &supersede(first));
    assert_eq!(ask(&session, &supersede(second)).err().as_deref(), Some("CAL-E043"));
    let third = written(&session, &format!("REVERT sha256:{second} REASON \"r\""));
    let again = format!("REVERT sha256:{third} REASON \"r\"");
    assert_eq!(ask(&session, &again).err().as_deref(), Some("CAL-E043"));
    // Another session of the store draws on the same.
    let other = session.store().session(SessionOptions::default());
    assert_eq!(ask(&other, add).err().as_deref(), Some("CAL-E052"));
}

#[test]
fn what_is_contradicted_or_retracted_is_not_superseded() {
    let (_dir, session) = opened(OpenOptions::new());
    let tea = put(
        &session,
        r#"{"type": "belief", "subject": "alice", "relation": "drinks", "object": "tea",
            "confidence": 1, "created_at": 1000}"#,
    );
    session.contradict(&tea, "she said otherwise", None).unwrap();
    let supersede = format!("SUPERSEDE sha256:{tea} SET object = \"milk\" REASON \"r\"");
    assert_eq!(ask(&session, &supersede).err().as_deref(), Some("CAL-E040"));
}

/// A grain of a type byte outside the ten.
const OPAQUE: &str = "01000b00006968baa086a163cb3feccccccccccccda26361cf0000019bc1190100a16fa3746561a172a770726566657273a173a5616c696365a174a6736b65746368";

#[test]
fn cal_has_never_heard_of_other_types() {
    let (_dir, session) = opened(OpenOptions::new());
    let bytes: Vec<u8> = (0..OPAQUE.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(OPAQUE.get(at..at + 2).unwrap(), 16).unwrap())
        .collect();
    let address = session.put(Offer::Blob(bytes)).unwrap().address();
    assert!(session.exists(&address).unwrap());
    let whole = address.to_string();
    for hash in [&whole, whole.get(..12).unwrap()] {
        let exists = ask(&session, &format!("EXISTS sha256:{hash}")).unwrap();
        assert!(matches!(exists, Answer::Exists { exists: false }), "{hash}");
        for statement in [
            format!("HISTORY sha256:{hash}"),
            format!("HISTORY sha256:{hash} DIFF sha256:{hash}"),
            format!("REVERT sha256:{hash} REASON \"r\""),
        ] {
            assert_eq!(ask(&session, &statement).err().as_deref(), Some("CAL-E046"), "{statement}");
        }
    }
    let found = ask(&session, &format!("RECALL WHERE hash = sha256:{address} | COUNT")).unwrap();
    assert!(matches!(found, Answer::Count { count: 0, .. }));
}

#[test]
fn a_query_of_a_host_that_names_no_type_finds_other_types_by_their_common_fields() {
    let (_dir, session) = opened(OpenOptions::new());
    let bytes = data_encoding::HEXLOWER.decode(OPAQUE.as_bytes()).unwrap();
    for byte in [0x0B, 0x7F, 0xEF, 0xF0, 0xFF] {
        let mut bytes = bytes.clone();
        *bytes.get_mut(2).unwrap() = byte;
        let address = session.put(Offer::Blob(bytes)).unwrap().address();
        let text = |field: &'static str, wanted: &str| Predicate::text_is(field, wanted).unwrap();
        let found = |query: Query| {
            let answer = session.query(&query, &PageOptions::default()).unwrap();
            answer.results.iter().any(|row| row.content_address == address)
        };
        for flush in [false, true] {
            if flush {
                session.store().flush().unwrap();
            }
            assert!(found(Query::default()), "{byte}");
            assert!(found(Query::default().when(text("subject", "alice"))), "{byte}");
            assert!(found(Query::default().when(text("relation", "prefers"))), "{byte}");
            assert!(!found(Query::default().when(text("subject", "bob"))), "{byte}");
            assert!(!found(Query::default().of_types(TypeSet::of(GrainType::Belief))), "{byte}");
        }
    }
}

#[test]
fn a_history_by_hash_counts_the_whole_chain_from_any_of_its_grains() {
    let (_dir, session) = opened(OpenOptions::new());
    let version = |n: u64| {
        let fields = serde_json::json!({
            "type": "belief", "subject": "alice", "relation": "counts", "object": n.to_string(),
            "confidence": 1, "created_at": 1000 + n,
        });
        Grain::from_json(&fields.to_string()).unwrap()
    };
    let mut chain = vec![session.put(version(0)).unwrap().address()];
    for n in 1..103 {
        chain.push(session.supersede(chain.last().unwrap(), version(n), None).unwrap());
        // A chain of exactly a hundred, and one that is longer.
        let expected = match n {
            99 => 100,
            102 => 103,
            _ => continue,
        };
        for from in [0, 50, chain.len() - 1] {
            let history = format!("HISTORY sha256:{}", chain.get(from).unwrap());
            let Answer::Versions { versions, total } = ask(&session, &history).unwrap() else {
                unreachable!("{history} gives versions")
            };
            assert_eq!((versions.len(), total), (100, expected), "{from}");
            assert_eq!(Some(&versions[0].address), chain.last());
        }
    }
}
