//! A store in a directory of its own, and grains by their JSON.

use grainstore::graph::Edge;
use grainstore::{ContentAddress, Grain, OpenOptions, Session, SessionOptions, Store};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A store that goes with its directory.
pub(crate) struct Place {
    pub(crate) session: Session,
    pub(crate) store: Store,
    _dir: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = TempDir::new().unwrap();
        crate::former::put_former_store(dir.path());
        let store = Store::open(dir.path(), &OpenOptions::new().create(true)).unwrap();
        Self { session: store.session(SessionOptions::default()), store, _dir: dir }
    }

    /// A session of a namespace.
    pub(crate) fn within(&self, namespace: &str) -> Session {
        let namespace = Some(namespace.to_owned());
        self.store.session(SessionOptions { namespace, ..SessionOptions::default() })
    }

    pub(crate) fn put(&self, grain: &Value) -> ContentAddress {
        self.session.put(grain_of(grain)).unwrap().address()
    }

    /// A belief as an edge.
    pub(crate) fn edge(&self, subject: &str, relation: &str, object: &str) -> ContentAddress {
        self.put(&edge(subject, relation, object))
    }

    /// An edge in a namespace.
    pub(crate) fn edge_in(&self, namespace: &str, subject: &str, object: &str) -> ContentAddress {
        let mut grain = edge(subject, "knows", object);
        grain["namespace"] = json!(namespace);
        self.put(&grain)
    }

    /// A grain that is superseded by another one of its fields and these.
    pub(crate) fn supersede(&self, old: &ContentAddress, new: &Value) -> ContentAddress {
        self.session.supersede(old, grain_of(new), None).unwrap()
    }
}

pub(crate) fn grain_of(grain: &Value) -> Grain {
    Grain::from_json(&grain.to_string()).unwrap()
}

pub(crate) fn edge(subject: &str, relation: &str, object: &str) -> Value {
    json!({
        "type": "belief", "subject": subject, "relation": relation, "object": object,
        "confidence": 1.0, "created_at": 1000,
    })
}

/// Edges as their subjects and objects.
pub(crate) fn ends(edges: &[Edge]) -> Vec<(&str, &str)> {
    edges.iter().map(|edge| (edge.subject.as_str(), edge.object.as_str())).collect()
}

pub(crate) fn code<T>(result: grainstore::Result<T>) -> &'static str {
    result.map_or_else(|error| error.code(), |_| "OK")
}

/// An address nothing has.
pub(crate) fn nowhere() -> ContentAddress {
    ContentAddress::from_bytes([7; 32])
}
