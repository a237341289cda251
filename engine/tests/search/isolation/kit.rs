//! Stores with a clock that stands, and the grains and sessions of these tests.

use std::sync::Arc;

use grainstore::cal::{Query, Visibility};
use grainstore::{
    ContentAddress, EpochMs, Grain, ManualClock, MasterKey, OpenOptions, PageOptions, Session,
    SessionOptions, Store,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// What the clock of a new store says.
pub(crate) const NOW: i64 = 1_700_000_000_000;

/// A store, with the clock it looks at.
pub(crate) struct Place {
    pub(crate) dir: TempDir,
    pub(crate) store: Store,
    pub(crate) clock: Arc<ManualClock>,
    /// True if it is encrypted.
    pub(crate) keyed: bool,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self::opened(OpenOptions::new(), false)
    }

    /// A store with keys.
    pub(crate) fn encrypted() -> Self {
        Self::opened(OpenOptions::new().key(MasterKey::new([7; 32])), true)
    }

    fn opened(options: OpenOptions, keyed: bool) -> Self {
        let clock = Arc::new(ManualClock::following());
        clock.set(EpochMs::new(NOW));
        let dir = TempDir::new().unwrap();
        let shown: Arc<ManualClock> = Arc::clone(&clock);
        let options = options.create(true).clock(shown);
        if !keyed {
            crate::former::put_former_store(&dir.path().join("store"));
        }
        let store = Store::open(dir.path().join("store"), &options).unwrap();
        Self { dir, store, clock, keyed }
    }

    /// A session that sees everything.
    pub(crate) fn all(&self) -> Session {
        self.session(None, None)
    }

    pub(crate) fn session(&self, namespace: Option<&str>, user: Option<&str>) -> Session {
        self.store.session(SessionOptions {
            namespace: namespace.map(str::to_owned),
            user_id: user.map(str::to_owned),
            ..SessionOptions::default()
        })
    }

    pub(crate) fn at(&self, now: i64) {
        self.clock.set(EpochMs::new(now));
    }
}

/// A grain of these fields.
pub(crate) fn grain(fields: &Value) -> Grain {
    Grain::from_json(&fields.to_string()).unwrap_or_else(|error| panic!("{fields}: {error}"))
}

/// The same fields with others among them.
pub(crate) fn with(mut fields: Value, more: &Value) -> Value {
    for (name, value) in more.as_object().unwrap() {
        fields[name] = value.clone();
    }
    fields
}

/// A belief that is said at this moment.
pub(crate) fn belief(object: &str, at: i64) -> Value {
    json!({
        "type": "belief", "subject": "hub", "relation": "knows", "object": object,
        "confidence": 0.5, "created_at": at,
    })
}

/// A consent of one to another; a withdrawal where it names what it takes back.
pub(crate) fn consent(at: i64, withdraws: Option<&ContentAddress>) -> Value {
    let mut consent = json!({
        "type": "consent", "subject_did": "did:web:a", "grantee_did": "did:web:b",
        "scope": ["store"], "is_withdrawal": withdraws.is_some(), "created_at": at,
    });
    if let Some(prior) = withdraws {
        consent["prior_consent"] = json!(prior.to_string());
    }
    consent
}

/// The address a grain will have.
pub(crate) fn address(fields: &Value) -> ContentAddress {
    grain(fields).encode(Default::default()).unwrap().address()
}

pub(crate) fn put(session: &Session, fields: &Value) -> ContentAddress {
    session.put(grain(fields)).unwrap().address()
}

/// What something is refused with.
pub(crate) fn code<T>(outcome: grainstore::Result<T>) -> &'static str {
    outcome.map_or_else(|error| error.code(), |_| "OK")
}

/// Everything a session is shown, whatever its state.
pub(crate) fn everything() -> Query {
    Query::default().seeing(Visibility { superseded: true, contradicted: true, retracted: true })
}

/// The addresses of all answers, in their order, a few at a time.
pub(crate) fn found(session: &Session, query: &Query) -> Vec<ContentAddress> {
    let mut found = Vec::new();
    let mut cursor = None;
    loop {
        let page = session.query(query, &PageOptions::first(3).after(cursor)).unwrap();
        found.extend(page.results.iter().map(|row| row.content_address));
        cursor = page.next_cursor;
        if cursor.is_none() {
            return found;
        }
    }
}
