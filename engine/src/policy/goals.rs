//! Goals under protection: which transitions they allow of themselves, and on what evidence (OMS
//! 23.4, 23.5).

use grainstore_format::{Grain, GrainRef, GrainType};

/// What must stay as it is for a change of a goal to be a transition and nothing more.
const KEPT: [&str; 7] = [
    "description",
    "subject",
    "relation",
    "object",
    "criteria",
    "criteria_structured",
    "namespace",
];
/// What the new version may leave out, since the old one keeps binding it, but not say otherwise.
const INHERITED: [&str; 2] = ["invalidation_policy", "allowed_transitions"];

/// What a goal says about a change of its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GoalTerms {
    /// Whether the transition is one it allows, and changes nothing that makes it another goal.
    pub(crate) allows: bool,
    /// Grains of evidence the transition takes; 0 for none.
    pub(crate) evidence_required: u64,
}

impl GoalTerms {
    /// What a stored goal says about being succeeded by `new`, whose `goal_state` is `to`.
    pub(crate) fn of(stored: &GrainRef<'_>, new: &Grain, to: &str) -> Option<Self> {
        if stored.grain_type() != GrainType::Goal {
            return None;
        }
        let allowed = stored.get("allowed_transitions").and_then(|states| states.as_array());
        let listed = allowed.is_some_and(|states| states.iter().any(|s| s.as_str() == Some(to)));
        let same =
            |name: &str| stored.get(name).map(|value| value.to_value()).as_ref() == new.get(name);
        let keeps = KEPT.into_iter().all(same)
            && INHERITED.into_iter().all(|name| same(name) || new.get(name).is_none());
        let least = stored.int("evidence_required").and_then(|least| u64::try_from(least).ok());
        let evidence_required = match (to, least.unwrap_or(0)) {
            ("satisfied", least) => least,
            // That it cannot be done is shown by one.
            ("failed", least) => least.min(1),
            _ => 0,
        };
        Some(Self { allows: listed && keeps, evidence_required })
    }
}
