use data_encoding::HEXLOWER;

use super::*;

fn chain() -> AuditHashChain {
    AuditHashChain::genesis(&[1; 16], [2; 32])
}

fn note(hash: u8, time: i64) -> ReadRecord {
    let reader = SessionOptions { namespace: Some("acme".to_owned()), ..SessionOptions::default() };
    ReadRecord {
        query_hash: [hash; 32],
        statement: Some(StatementType::Recall),
        reader: Arc::new(reader),
        token_id: None,
        time: EpochMs::new(time),
        duration_ms: 3,
        results: Some(7),
        code: None,
        stream: None,
    }
}

fn whole() -> ReadRecord {
    let reader = SessionOptions {
        namespace: Some("acme".to_owned()),
        user_id: Some("mina".to_owned()),
        actor: Some("did:web:a".to_owned()),
        agent_id: Some("agent-7".to_owned()),
        purposes: Vec::new(),
        ..SessionOptions::default()
    };
    ReadRecord {
        statement: Some(StatementType::Assemble),
        reader: Arc::new(reader),
        token_id: Some("0b2f".to_owned()),
        code: Some("CAL-E082".to_owned()),
        stream: Some(AuditedStream {
            options: "chunks, chunk_size = 100".to_owned(),
            events_emitted: 245,
            cancel_reason: Some("host".to_owned()),
            sources_failed: 1,
        }),
        ..note(9, 1_000)
    }
}

#[test]
fn every_field_of_an_entry_comes_back_and_names_are_pseudonyms() {
    let code = Some("CAL-E002".to_owned());
    let unreadable = ReadRecord { statement: None, results: None, code, ..note(9, 900) };
    let body = encode(&[whole(), unreadable], 5, &chain());
    let DecodedGroup { lost, reads } = decode(&body, 40).unwrap();
    assert_eq!((lost, reads.len()), (5, 2));
    let entry = &reads[0].entry;
    assert_eq!(
        (entry.sequence, entry.time, entry.decision.as_str()),
        (40, EpochMs::new(1_000), "done")
    );
    assert_eq!(entry.actor, chain().pseudonym(Some("did:web:a")));
    assert_eq!(reads[0].user, Some(chain().reader_pseudonym("mina")));
    let call = entry.call.clone().unwrap();
    assert_eq!(call.query_hash, [9; 32]);
    assert_eq!(call.statement.as_deref(), Some("assemble"));
    assert_eq!(call.namespace.as_deref(), Some("acme"));
    assert_eq!(call.agent, Some(chain().agent_pseudonym("agent-7")));
    assert_eq!((call.duration_ms, call.result_count), (3, Some(7)));
    assert_eq!((call.token_id, call.code), (Some("0b2f".to_owned()), Some("CAL-E082".to_owned())));
    assert_eq!(call.stream, whole().stream);
    let second = &reads[1].entry;
    assert_eq!((second.sequence, second.time), (41, EpochMs::new(900)), "a clock may go back");
    assert_eq!((second.actor.as_str(), second.decision.as_str()), ("operator", "refused"));
    assert_eq!(second.call.as_ref().map(|call| call.statement.clone()), Some(None));
    for name in [&b"mina"[..], b"did:web:a", b"agent-7"] {
        assert!(!body.windows(name.len()).any(|window| window == name));
    }
}

#[test]
fn the_bytes_of_a_group_are_those_of_the_format() {
    let body = encode(&[note(0xaa, 1_700_000_000_000), note(0xaa, 1_700_000_000_002)], 0, &chain());
    let expected = [
        "0200",             // two entries, none lost
        "0000018bcfe56800", // the time of the first
        "010461636d65",     // one text: acme
        "01",               // one hash
        &"aa".repeat(32),
        "0101000000",     // one reader: its namespace is the first text
        "01010000000307", // has results; recall; reader 0, hash 0, the same time, 3 ms, 7 results
        "01010000040307", // 2 ms later
    ];
    assert_eq!(HEXLOWER.encode(&body), expected.concat());
}

#[test]
fn a_read_of_a_busy_store_takes_less_than_fifty_bytes() {
    let notes: Vec<ReadRecord> = (0..=255).map(|at| note(at, 1_000 + i64::from(at))).collect();
    let body = encode(&notes, 0, &chain());
    assert!(body.len() < 50 * notes.len(), "{}", body.len());
}

#[test]
fn bytes_that_are_no_group_are_refused_and_nothing_more() {
    let body = encode(&[whole(), note(1, 5)], 1, &chain());
    for length in 0..body.len() {
        assert!(decode(&body[..length], 0).is_err(), "cut at {length}");
    }
    for at in 0..body.len() {
        for bit in 0..8 {
            let mut broken = body.clone();
            broken[at] ^= 1 << bit;
            // Some are another group; none is a panic.
            let _ = decode(&broken, u64::MAX - 1);
        }
    }
    let longer = [&body[..], &[0]].concat();
    assert!(decode(&longer, 0).is_err());
}

#[test]
fn a_namespace_that_is_too_long_is_told_by_what_stands_for_it() {
    let long = "n".repeat(MAX_TEXT_BYTES + 1);
    assert_eq!(namespace_label(&long, &chain()).len(), 32);
    assert_eq!(namespace_label(&"n".repeat(MAX_TEXT_BYTES), &chain()).len(), MAX_TEXT_BYTES);
}
