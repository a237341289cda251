//! Stores with words in them, and what a search of one answers.

use grainstore::cal::Query;
use grainstore::{ContentAddress, Grain, OpenOptions, PageOptions, Session, SessionOptions, Store};
use tempfile::TempDir;

/// A new store, and a session of everything.
pub(crate) fn store() -> (TempDir, Session) {
    let dir = TempDir::new().unwrap();
    let session = open(&dir).session(SessionOptions::default());
    (dir, session)
}

pub(crate) fn open(dir: &TempDir) -> Store {
    crate::former::put_former_store(dir.path());
    Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap()
}

/// A belief about a subject.
pub(crate) fn belief(subject: &str, object: &str) -> Grain {
    grain(&format!(
        r#"{{"type": "belief", "subject": "{subject}", "relation": "likes", "object": "{object}",
            "confidence": 0.5, "created_at": 1000}}"#
    ))
}

/// A turn of a conversation, said at this second.
pub(crate) fn turn(session: &str, user: &str, second: i64, content: &str) -> Grain {
    let at = 1_700_000_000_000 + second * 1000;
    grain(&format!(
        r#"{{"type": "event", "content": "{content}", "role": "user", "session_id": "{session}",
            "user_id": "{user}", "created_at": {at}, "timestamp_ms": {at}}}"#
    ))
}

pub(crate) fn grain(json: &str) -> Grain {
    Grain::from_json(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

pub(crate) fn put(session: &Session, grain: Grain) -> ContentAddress {
    session.put(grain).unwrap().address()
}

/// What a search finds, the best first.
pub(crate) fn found(session: &Session, text: &str) -> Vec<ContentAddress> {
    addresses(session, &Query::default().searching(text))
}

/// What a query finds, in its order.
pub(crate) fn addresses(session: &Session, query: &Query) -> Vec<ContentAddress> {
    scored(session, query).into_iter().map(|(address, _)| address).collect()
}

/// What a query finds, each with the bits of its score.
pub(crate) fn scored(session: &Session, query: &Query) -> Vec<(ContentAddress, u64)> {
    let answer = session.query(query, &PageOptions::first(10_000)).unwrap();
    assert!(answer.next_cursor.is_none(), "an answer of more than a page");
    let scored = answer.results.iter().map(|row| (row.content_address, row.score.to_bits()));
    scored.collect()
}

/// Every page of an answer, with `between` called before each but the first.
pub(crate) fn paged(
    session: &Session,
    query: &Query,
    rows: usize,
    mut between: impl FnMut(usize),
) -> Vec<(ContentAddress, u64)> {
    let (mut all, mut cursor) = (Vec::new(), None);
    loop {
        let answer = session.query(query, &PageOptions::first(rows).after(cursor)).unwrap();
        all.extend(answer.results.iter().map(|row| (row.content_address, row.score.to_bits())));
        cursor = answer.next_cursor;
        if cursor.is_none() {
            return all;
        }
        between(all.len());
    }
}
