//! The grains that are protected, each in its own way.

use data_encoding::BASE64;
use grainstore::format::cose::SigningKey;
use serde_json::{Value, json};

/// What protects a grain.
pub(super) struct Protection {
    pub(super) name: &'static str,
    /// The invalidation policy; null for none.
    policy: fn() -> Value,
    /// Whether it is held, by its policy or by a litigation hold.
    pub(super) is_held: bool,
    pub(super) shape: Shape,
}

/// What is special about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Belief,
    /// A goal with transitions that its policy allows.
    Goal,
    /// A litigation hold was put on it.
    Held,
    /// Nothing protects it but what it was derived from.
    Child,
}

const fn belief(name: &'static str, policy: fn() -> Value) -> Protection {
    Protection { name, policy, is_held: false, shape: Shape::Belief }
}

pub(super) const PROTECTIONS: &[Protection] = &[
    belief("open", || json!({ "mode": "open" })),
    belief("locked", || json!({ "mode": "locked" })),
    belief("locked lineage", || json!({ "mode": "locked", "scope": "lineage" })),
    belief("soft_locked", || json!({ "mode": "soft_locked" })),
    belief(
        "quorum",
        || json!({ "mode": "quorum", "threshold": 2, "authorized": [did(1), did(2)] }),
    ),
    belief("delegated", || json!({ "mode": "delegated", "authorized": [did(1)] })),
    belief("timed", || json!({ "mode": "timed", "locked_until": 4_000_000_000_u64 })),
    belief("consent_cascade", || json!({ "mode": "consent_cascade" })),
    belief(
        "timed, over",
        || json!({ "mode": "timed", "locked_until": 1_000, "fallback_mode": "open" }),
    ),
    belief(
        "timed, over and locked",
        || json!({ "mode": "timed", "locked_until": 1_000, "fallback_mode": "locked" }),
    ),
    belief("unknown mode", || json!({ "mode": "no such mode" })),
    Protection {
        name: "hold",
        policy: || json!({ "mode": "hold" }),
        is_held: true,
        shape: Shape::Belief,
    },
    Protection { name: "held", policy: || Value::Null, is_held: true, shape: Shape::Held },
    Protection { name: "child", policy: || Value::Null, is_held: false, shape: Shape::Child },
    Protection {
        name: "goal",
        policy: || json!({ "mode": "locked", "allowed_transitions": ["suspended"] }),
        is_held: false,
        shape: Shape::Goal,
    },
];

/// The key of a signer that policies name (1 and 2), or of a stranger.
fn key(of: u8) -> SigningKey {
    SigningKey::ed25519_from_seed(&[of; 32])
}

/// The same as the methods take it.
pub(super) fn seed(of: u8) -> String {
    BASE64.encode(&[of; 32])
}

pub(super) fn did(of: u8) -> String {
    key(of).did().to_string()
}

impl Protection {
    /// The grain, with this parent where it has one.
    pub(super) fn grain(&self, parent: Option<&str>) -> Value {
        let mut grain = match self.shape {
            Shape::Goal => json!({
                "type": "goal", "subject": self.subject(), "description": "kept",
                "goal_state": "active", "source_type": "user_explicit",
            }),
            _ => json!({
                "type": "belief", "subject": self.subject(), "relation": "says", "object": "kept",
                "confidence": 0.9,
            }),
        };
        grain["created_at"] = json!(1_768_471_200_000_i64);
        grain["namespace"] = json!("team");
        grain["user_id"] = json!("ann");
        let policy = (self.policy)();
        if !policy.is_null() {
            grain["invalidation_policy"] = policy;
        }
        if let Some(parent) = parent {
            grain["derived_from"] = json!([parent]);
        }
        grain
    }

    pub(super) fn subject(&self) -> String {
        format!("rule {}", self.name)
    }

    /// What it came to supersede.
    pub(super) fn older(&self) -> Value {
        let mut grain = self.grain(None);
        let fields = grain.as_object_mut().unwrap();
        fields.remove("invalidation_policy");
        fields.insert("created_at".to_owned(), json!(1_768_471_150_000_i64));
        fields.insert(self.words().to_owned(), json!("older"));
        grain
    }

    /// The field that says what it says.
    pub(super) fn words(&self) -> &'static str {
        match self.shape {
            Shape::Goal => "description",
            _ => "object",
        }
    }

    /// What somebody would have in its place: it says something else, under no policy.
    pub(super) fn rival(&self) -> Value {
        let mut grain = self.grain(None);
        let fields = grain.as_object_mut().unwrap();
        fields.remove("invalidation_policy");
        fields.insert("created_at".to_owned(), json!(1_768_471_300_000_i64));
        if self.shape == Shape::Goal {
            // With its words a goal reads as the next version; more than its state must not change.
            fields.insert("goal_state".to_owned(), json!("suspended"));
            fields.insert("importance".to_owned(), json!(0.0));
        } else {
            fields.insert("object".to_owned(), json!("gone"));
        }
        grain
    }
}
