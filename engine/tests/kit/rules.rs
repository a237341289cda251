//! The rules a write is judged by, over grains alone: namespaces, disguise, invalidation policy.
//!
//! Written from OMS 17.2, 23 and 28.2, not from the engine: nothing here calls it.

use super::engine::format::{ContentAddress, Grain, GrainType, Value};

/// Fields only a supersession may carry.
const SUPERSESSION_FIELDS: [&str; 5] = [
    "supersession_justification",
    "supersession_auth",
    "invalidation_type",
    "invalidation_reason",
    "invalidation_initiator",
];

/// What a grain asks of whoever wants to replace it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lock {
    Open,
    /// A reason has to be given, and a person should look at it.
    Soft,
    Shut,
}

/// The partition of a grain: its namespace, or the one of grains without.
pub(crate) fn partition(grain: &Grain) -> &str {
    grain.text("namespace").filter(|name| !name.is_empty()).unwrap_or("shared")
}

/// Whether somebody who works in `namespace` reaches a partition.
pub(crate) fn reaches(namespace: Option<&str>, partition: &str) -> bool {
    let own = match namespace {
        None => return true,
        Some("") => "shared",
        Some(name) => name,
    };
    partition == own || partition.starts_with(&format!("{own}:"))
}

pub(crate) fn says_it_replaces(grain: &Grain) -> bool {
    SUPERSESSION_FIELDS.iter().any(|name| grain.get(name).is_some())
}

/// Whether a grain brings together several, so many of which are known.
pub(crate) fn is_digest(new: &Grain, known_parents: usize) -> bool {
    known_parents > 1 && new.int("consolidation_level").unwrap_or(0) >= 1
}

/// Whether `new`, which derives from `parent` and is no digest, is its next version in all but name.
pub(crate) fn is_next_version(new: &Grain, parent: &Grain) -> bool {
    let is_record =
        matches!(new.grain_type(), GrainType::Event | GrainType::Action | GrainType::Observation);
    if is_record || new.grain_type() != parent.grain_type() {
        return false;
    }
    let same = |name: &str| new.get(name).is_some() && new.get(name) == parent.get(name);
    let same_words = (same("subject") && same("relation"))
        || (new.grain_type() == GrainType::Goal && same("description"));
    same_words && partition(new) == partition(parent)
}

/// Whether two grains say the same: type, namespace, subject, relation and object.
pub(crate) fn is_same_fact(one: &Grain, other: &Grain) -> bool {
    let triple =
        |grain: &Grain| ["subject", "relation", "object"].map(|name| grain.get(name).cloned());
    one.text("subject").is_some()
        && one.text("relation").is_some()
        && one.get("object").is_some()
        && one.grain_type() == other.grain_type()
        && partition(one) == partition(other)
        && triple(one) == triple(other)
}

/// Whether two grains say something of one subject and relation: type and namespace, too.
pub(crate) fn is_same_relation(one: &Grain, other: &Grain) -> bool {
    one.grain_type() == other.grain_type()
        && partition(one) == partition(other)
        && ["subject", "relation"].iter().all(|name| one.get(name) == other.get(name))
}

/// The addresses a grain derives from.
pub(crate) fn parents(grain: &Grain) -> Vec<ContentAddress> {
    grain.texts("derived_from").filter_map(|text| text.parse().ok()).collect()
}

/// The lock a grain carries at a time in epoch seconds. A hold that was lifted is none.
pub(crate) fn lock(grain: &Grain, held: bool, now_seconds: i64) -> Lock {
    let Some(policy) = grain.map("invalidation_policy") else {
        let asks_why = grain.grain_type() == GrainType::Consent;
        return if asks_why { Lock::Soft } else { Lock::Open };
    };
    let word = |name: &str| policy.get(name).and_then(Value::as_str);
    match word("mode") {
        Some("hold") if !held => Lock::Open,
        Some("timed") => match policy.get("locked_until").and_then(Value::as_i64) {
            Some(until) if now_seconds >= until => of_mode(word("fallback_mode")),
            _ => Lock::Shut,
        },
        mode => of_mode(mode),
    }
}

/// Modes that ask for signatures are shut, since nothing can verify one yet; so are unknown ones.
fn of_mode(mode: Option<&str>) -> Lock {
    match mode {
        Some("open" | "consent_cascade") => Lock::Open,
        Some("soft_locked") => Lock::Soft,
        _ => Lock::Shut,
    }
}

/// Whether the lock of a grain holds for what derives from it, not for its versions alone.
pub(crate) fn covers_derived(grain: &Grain) -> bool {
    let scope = grain.map("invalidation_policy").and_then(|policy| policy.get("scope"));
    scope.is_some_and(|scope| !matches!(scope.as_str(), Some("grain" | "lineage")))
}

/// Whether the lock of a grain holds for the versions it replaced (OMS 23.6).
pub(crate) fn covers_chain(grain: &Grain) -> bool {
    let scope = grain.map("invalidation_policy").and_then(|policy| policy.get("scope"));
    scope.is_some_and(|scope| !matches!(scope.as_str(), Some("grain" | "subtree")))
}

/// Whether a grain is under litigation hold from the moment it is stored.
pub(crate) fn is_held(grain: &Grain) -> bool {
    let policy = grain.map("invalidation_policy");
    policy.and_then(|policy| policy.get("mode")).and_then(Value::as_str) == Some("hold")
}
