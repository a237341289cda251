//! Stores, sessions and statements of these tests.

use std::sync::Arc;

use grainstore::cal::{Response, Tier};
use grainstore::format::{EpochMs, Grain};
use grainstore::{
    AuditEntry, AuditedCall, ContentAddress, ManualClock, OpenOptions, PrepareOptions,
    PreparedQuery, Session, SessionOptions, Store, TokenLimits,
};
use serde_json::json;
use tempfile::TempDir;

pub(crate) const START_MS: i64 = 1_768_471_200_000;
pub(crate) const ADD: &str = r#"ADD belief SET subject = "bob" SET relation = "likes" SET object = "tea" REASON "he said so""#;

pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) dir: TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(OpenOptions::new())
    }

    pub(crate) fn with(options: OpenOptions) -> Self {
        let dir = TempDir::new().unwrap();
        let clock = Arc::new(ManualClock::following());
        clock.set(EpochMs::new(START_MS));
        let store = open(&dir, &clock, options);
        Self { store, clock, dir }
    }

    /// Closes the store and opens it again.
    pub(crate) fn reopened(self) -> Self {
        let Self { store, clock, dir } = self;
        store.close().unwrap();
        let store = open(&dir, &clock, OpenOptions::new());
        Self { store, clock, dir }
    }

    pub(crate) fn operator(&self) -> Session {
        self.store.session(SessionOptions::default())
    }

    /// An agent of a user in a namespace.
    pub(crate) fn agent(&self, namespace: &str) -> Session {
        self.store.session(SessionOptions {
            namespace: Some(namespace.to_owned()),
            user_id: Some("alice".to_owned()),
            actor: Some("did:web:agent.example".to_owned()),
            agent_id: Some("agent-7".to_owned()),
            purposes: Vec::new(),
            ..SessionOptions::default()
        })
    }

    /// A host of a namespace, who acts for no user.
    pub(crate) fn host(&self, namespace: &str) -> Session {
        let options = SessionOptions { user_id: None, ..self.agent(namespace).options().clone() };
        self.store.session(options)
    }

    /// A belief about bob, in a namespace.
    pub(crate) fn put(&self, namespace: &str, object: &str) -> ContentAddress {
        self.put_fields(&json!({"namespace": namespace, "object": object}))
    }

    /// One that nobody may replace.
    pub(crate) fn put_locked(&self, namespace: &str) -> ContentAddress {
        let policy = json!({"mode": "locked"});
        self.put_fields(
            &json!({"namespace": namespace, "object": "rules", "invalidation_policy": policy}),
        )
    }

    fn put_fields(&self, more: &serde_json::Value) -> ContentAddress {
        let mut fields = json!({
            "type": "belief", "subject": "bob", "relation": "likes", "confidence": 1.0,
            "created_at": START_MS,
        });
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let grain = Grain::from_json(&fields.to_string()).unwrap();
        self.operator().put(grain).unwrap().address()
    }

    /// The calls of the read log.
    pub(crate) fn reads(&self) -> Vec<AuditedCall> {
        let entries = self.operator().reads(None, 1000).unwrap().into_iter();
        entries.filter_map(|entry| entry.call).collect()
    }

    pub(crate) fn entries(&self) -> Vec<AuditEntry> {
        self.operator().audit(None, 1000).unwrap()
    }
}

fn open(dir: &TempDir, clock: &Arc<ManualClock>, options: OpenOptions) -> Store {
    let options = options.create(true).clock(Arc::<ManualClock>::clone(clock));
    Store::open(dir.path().join("s.grains"), &options).unwrap()
}

pub(crate) fn evolving() -> PrepareOptions {
    PrepareOptions { tier: Tier::Evolve, ..PrepareOptions::default() }
}

pub(crate) fn on_terms(tier: Tier, terms: TokenLimits) -> PrepareOptions {
    PrepareOptions { tier, terms, ..PrepareOptions::default() }
}

pub(crate) fn prepared(session: &Session, query: &str) -> PreparedQuery {
    session.prepare(query.as_bytes(), &evolving()).unwrap()
}

pub(crate) fn code<T>(result: Result<T, grainstore::cal::Error>) -> String {
    match result {
        Ok(_) => "done".to_owned(),
        Err(error) => error.code().to_owned(),
    }
}

/// An answer in JSON.
pub(crate) fn shown(response: &Response) -> serde_json::Value {
    serde_json::to_value(response).unwrap()
}
