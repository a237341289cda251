//! The transitions a protected goal allows of itself, and the evidence they ask for (OMS 23.4, 23.5; ruling 23):
//! the part of the model that is about goals.

use std::collections::BTreeSet;

use super::engine::VerificationStatus;
use super::engine::format::{ContentAddress, Grain, GrainType};
use super::model::{Known, Model};
use super::rules;

/// What a transition may change, with the sources it derives from.
const CHANGED: [&str; 7] = [
    "goal_state",
    "satisfaction_evidence",
    "created_at",
    "confidence",
    "derived_from",
    "author_did",
    "supersession_justification",
];
/// What it may leave out: that of the versions before goes on binding.
const TERMS: [&str; 3] = ["invalidation_policy", "allowed_transitions", "evidence_required"];

/// Whether a version of a goal lets its state change so, whoever asks.
pub(crate) fn allows(version: &Grain, old: &Grain, new: &Grain) -> bool {
    let mode = version.map("invalidation_policy").and_then(|policy| policy.get("mode"));
    let Some(state) = state_after(old, new) else { return false };
    version.texts("allowed_transitions").any(|allowed| allowed == state)
        && mode.is_none_or(|mode| mode.as_str() != Some("hold"))
        && new.created_at() >= old.created_at()
        && keeps(version, old, new)
}

/// The state a goal comes to, if it is another.
fn state_after<'g>(old: &Grain, new: &'g Grain) -> Option<&'g str> {
    let are_goals = [old, new].iter().all(|grain| grain.grain_type() == GrainType::Goal);
    let state = new.text("goal_state").filter(|_| are_goals);
    state.filter(|state| old.text("goal_state") != Some(state))
}

/// Whether all is kept that makes it the same goal.
fn keeps(version: &Grain, old: &Grain, new: &Grain) -> bool {
    let names: BTreeSet<&String> = old.fields().keys().chain(new.fields().keys()).collect();
    names.into_iter().all(|name| match name.as_str() {
        name if CHANGED.contains(&name) => true,
        name if TERMS.contains(&name) => {
            new.get(name).is_none() || new.get(name) == version.get(name)
        }
        name => old.get(name) == new.get(name),
    })
}

/// How much evidence a version of a goal asks of a change of its state: none unless it is protected.
pub(crate) fn required(version: &Grain, old: &Grain, new: &Grain) -> usize {
    let mode = version.map("invalidation_policy").and_then(|policy| policy.get("mode"));
    let is_bound = mode.is_some_and(|mode| !matches!(mode.as_str(), Some("open" | "hold")));
    let required = version.int("evidence_required").filter(|_| is_bound).unwrap_or(0);
    let required = usize::try_from(required).unwrap_or(0);
    match state_after(old, new) {
        Some("satisfied") => required,
        Some("failed") => required.min(1),
        _ => 0,
    }
}

/// How much of what a change names as evidence counts: what is here, in use, seen by whoever asks, and no
/// version of the goal.
pub(crate) fn evidence(
    model: &Model,
    namespace: Option<&str>,
    old: &ContentAddress,
    new: &Grain,
) -> usize {
    let named = new.texts("satisfaction_evidence").filter_map(|text| text.parse().ok());
    let named: BTreeSet<ContentAddress> = named.collect();
    let counts = |known: &&Known| {
        let retracted = known.status == VerificationStatus::Retracted;
        let next = |known: &&Known| model.find(&known.superseded_by?);
        let mut versions = std::iter::successors(Some(*known), next);
        rules::reaches(namespace, rules::partition(&known.grain))
            && !known.contradicted
            && !retracted
            && !versions.any(|version| version.address == *old)
    };
    named.iter().filter_map(|address| model.find(address)).filter(counts).count()
}
