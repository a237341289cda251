//! Descriptions of policies and decisions, for users and tools that ask before they act.
//!
//! Knows one grain and no caller. The decisions are made in `decide`; a test keeps the two consistent.

use grainstore_format::{EpochMs, Grain, GrainRef, GrainState, Header};
use serde::Serialize;

use super::doubts::{self, EligibleSigners};
use super::rules::PolicyRule;
use super::terms::{PolicyMode, PolicyTerms};
use crate::base::error::{Error, Result};

/// The requirements of a grain's invalidation policy (OMS 23).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PolicyExplanation {
    /// The mode of OMS 23.2; `unknown` and `malformed` count as locked.
    pub mode: &'static str,
    /// `grain`, `lineage`, `subtree`, or `unknown`, which counts as the last two together.
    pub scope: &'static str,
    /// The DIDs whose signatures count.
    pub authorized: Vec<String>,
    /// True if the grain is under litigation hold: a stored grain now, any other from the moment it is
    /// stored.
    pub holds: bool,
    /// Number of signatures in a quorum; `None` if the policy gives no number of at least one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<u64>,
    /// End of a timed lock, in epoch seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locked_until: Option<u64>,
    /// The mode that follows a timed lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback_mode: Option<&'static str>,
    /// True if the grain is locked because its policy is not understood (OMS 23.3): the mode or the fallback
    /// is unknown, the map is malformed, or a quorum has no threshold.
    pub fails_closed: bool,
    /// The callers that may replace it: `anyone`, `anyone_with_justification`, `one_authorized_signer`,
    /// `quorum` or `nobody`.
    pub open_to: &'static str,
    /// The callers that may replace it after its `locked_until`, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then_open_to: Option<&'static str>,
    /// The meaning of each part of the policy, one sentence each.
    pub demands: Vec<String>,
    /// Probable mistakes in the policy: [`crate::Offer::warnings`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A rule that was applied to an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AppliedRule {
    /// Name of the rule in the audit log.
    pub rule: &'static str,
    /// True if the rule lets the attempt pass.
    pub passes: bool,
    /// Reason for the outcome.
    pub text: &'static str,
    /// Section of OMS that the rule comes from.
    pub section: &'static str,
}

impl From<PolicyRule> for AppliedRule {
    fn from(rule: PolicyRule) -> Self {
        let row = rule.row();
        Self { rule: row.name, passes: row.passes, text: row.text, section: row.section }
    }
}

/// Explains the policy that a grain has once it is stored. For a stored grain see [`crate::StoredGrain::policy`].
///
/// # Errors
/// Those of encoding an invalid grain.
pub fn explain(grain: &Grain) -> Result<PolicyExplanation> {
    let encoding = grain.decoded_header().map(Header::encoding).unwrap_or_default();
    let blob = grain.encode(encoding)?;
    Ok(explain_in(&GrainRef::new(blob.bytes()).map_err(Error::from)?, None))
}

/// Explains the policy of a grain, in this state if it is stored.
pub(crate) fn explain_in(grain: &GrainRef<'_>, state: Option<&GrainState>) -> PolicyExplanation {
    let terms = PolicyTerms::of(grain);
    let signers = EligibleSigners::of(&terms, grain.text("author_did"));
    let held = is_held(&terms, state);
    let way = match terms.mode {
        _ if held => ReplacementAccess::Nobody,
        // A lifted hold leaves the grain as if it had no policy.
        PolicyMode::Hold => ReplacementAccess::Anyone,
        mode => ReplacementAccess::of(mode, &signers),
    };
    let then = match terms.mode {
        PolicyMode::Timed(_, fallback) if !held => Some(fallback.mode()),
        _ => None,
    };
    PolicyExplanation {
        mode: terms.mode.name(),
        scope: terms.scope.name(),
        holds: held,
        threshold: threshold(terms.mode),
        locked_until: match terms.mode {
            PolicyMode::Timed(until, _) => Some(until),
            _ => None,
        },
        fallback_mode: match terms.mode {
            PolicyMode::Timed(_, fallback) => Some(fallback.mode().name()),
            _ => None,
        },
        fails_closed: fails_closed(terms.mode),
        open_to: way.name(),
        then_open_to: then.map(|mode| ReplacementAccess::of(mode, &signers).name()),
        demands: demands(grain, &terms, &signers, then, state),
        warnings: doubts::of(grain),
        authorized: terms.authorized,
    }
}

/// Returns the requirements for replacing a grain, one sentence each.
fn demands(
    grain: &GrainRef<'_>,
    terms: &PolicyTerms,
    signers: &EligibleSigners<'_>,
    then: Option<PolicyMode>,
    state: Option<&GrainState>,
) -> Vec<String> {
    let held = is_held(terms, state);
    let mut demands = Vec::new();
    if let Some(by) = state.and_then(|state| state.superseded_by) {
        demands.push(format!("it is superseded already, by {by}"));
    }
    if held {
        let text = "it is neither invalidated nor erased until its litigation hold is lifted";
        demands.push(text.to_owned());
    }
    demands.push(match terms.mode {
        PolicyMode::Hold if held => lifted_by(signers).to_owned(),
        PolicyMode::Hold => "its litigation hold was lifted: anyone may replace it".to_owned(),
        mode => demand(mode, signers),
    });
    if let Some(mode) = then {
        demands.push(format!("then: {}", demand(mode, signers)));
    }
    if terms.protects() && (held || terms.mode != PolicyMode::Hold) {
        demands.push(reach(terms).to_owned());
        if !held {
            demands.extend(transitions(grain));
        }
    }
    if let Some(least) = grain.int("evidence_required").filter(|least| *least > 0) {
        demands
            .push(format!("satisfied takes {least} grains of satisfaction_evidence, failed one"));
    }
    demands
}

/// Returns `true` if a hold is in force: by the state of a stored grain, else by its policy.
fn is_held(terms: &PolicyTerms, state: Option<&GrainState>) -> bool {
    state.map_or(terms.holds, |state| state.held)
}

/// Returns the quorum threshold of a mode or of its fallback.
fn threshold(mode: PolicyMode) -> Option<u64> {
    match mode {
        PolicyMode::Quorum(least) => least,
        PolicyMode::Timed(_, fallback) => threshold(fallback.mode()),
        _ => None,
    }
}

/// Returns `true` if a mode locks because it is not understood.
fn fails_closed(mode: PolicyMode) -> bool {
    match mode {
        PolicyMode::Unknown | PolicyMode::Malformed | PolicyMode::Quorum(None) => true,
        PolicyMode::Timed(_, fallback) => fails_closed(fallback.mode()),
        _ => false,
    }
}

/// The callers that may replace a grain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplacementAccess {
    Anyone,
    Justified,
    Signer,
    Quorum,
    Nobody,
}

impl ReplacementAccess {
    /// Returns the callers that may replace a grain under this mode, given the eligible signers.
    fn of(mode: PolicyMode, signers: &EligibleSigners<'_>) -> Self {
        match mode {
            PolicyMode::Open | PolicyMode::ConsentCascade => Self::Anyone,
            PolicyMode::SoftLocked => Self::Justified,
            PolicyMode::Delegated if signers.may_delegate() => Self::Signer,
            PolicyMode::Quorum(Some(least)) if signers.may_reach(least) => Self::Quorum,
            PolicyMode::Quorum(_)
            | PolicyMode::Delegated
            | PolicyMode::Locked
            | PolicyMode::Timed(..)
            | PolicyMode::Hold
            | PolicyMode::Unknown
            | PolicyMode::Malformed => Self::Nobody,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Anyone => "anyone",
            Self::Justified => "anyone_with_justification",
            Self::Signer => "one_authorized_signer",
            Self::Quorum => "quorum",
            Self::Nobody => "nobody",
        }
    }
}

fn demand(mode: PolicyMode, signers: &EligibleSigners<'_>) -> String {
    match mode {
        PolicyMode::Open => "anyone may replace it".to_owned(),
        PolicyMode::SoftLocked => {
            "who replaces it gives a supersession_justification, and the new grain is marked for review"
                .to_owned()
        }
        PolicyMode::Locked => "nothing may invalidate it".to_owned(),
        PolicyMode::Quorum(Some(least)) if signers.may_reach(least) => format!(
            "who replaces it brings supersession_auth with signatures of {least} different \
             authorized DIDs, that of its author not counted; nothing else invalidates it"
        ),
        PolicyMode::Quorum(Some(least)) => format!(
            "nobody can invalidate it: its quorum wants {least} signers, and of the authorized DIDs \
             {} can sign",
            signers.of_quorum()
        ),
        PolicyMode::Quorum(None) => {
            "nobody can invalidate it: its quorum has no threshold of at least 1".to_owned()
        }
        PolicyMode::Delegated if signers.may_delegate() => {
            "one of the authorized DIDs signs whatever invalidates it".to_owned()
        }
        PolicyMode::Delegated => {
            "nobody can invalidate it: it is delegated, and no DID is authorized".to_owned()
        }
        PolicyMode::Timed(until, _) => {
            format!("nothing may invalidate it before epoch second {until}{}", date(until))
        }
        PolicyMode::Hold => {
            "nothing may invalidate it: it falls back to a hold that nobody can lift".to_owned()
        }
        PolicyMode::ConsentCascade => {
            "anyone may replace it; that it is erased with its consent is not built yet".to_owned()
        }
        PolicyMode::Unknown => "nothing may invalidate it: its mode is unknown".to_owned(),
        PolicyMode::Malformed => "nothing may invalidate it: its policy is malformed".to_owned(),
    }
}

/// Returns who lifts the hold of a policy, as a sentence.
fn lifted_by(signers: &EligibleSigners<'_>) -> &'static str {
    match signers.are_named() {
        true => "one of the authorized DIDs signs to lift the hold",
        false => "the operator lifts the hold",
    }
}

/// Formats an epoch second as a date in brackets; empty beyond [`LAST_DATE_MS`].
fn date(second: u64) -> String {
    let ms = i64::try_from(second).ok().and_then(|second| second.checked_mul(1000));
    let ms = ms.filter(|ms| *ms <= LAST_DATE_MS);
    ms.map_or_else(String::new, |ms| format!(" ({})", EpochMs::new(ms)))
}

/// The last date that is formatted: the end of the year 9998, in epoch milliseconds.
const LAST_DATE_MS: i64 = 253_370_764_799_000;

/// Returns the goal states that a grain may change to regardless of its policy, as a sentence.
fn transitions(grain: &GrainRef<'_>) -> Option<String> {
    let allowed = grain.get("allowed_transitions")?.as_array()?;
    let states: Vec<_> = allowed.iter().filter_map(|state| state.as_str()).collect();
    let states = (!states.is_empty()).then(|| states.join(", "))?;
    Some(format!("its goal_state may change to {states} without all that"))
}

fn reach(terms: &PolicyTerms) -> &'static str {
    match (terms.covers_chain(), terms.covers_derived()) {
        (false, false) => "it protects this grain and the versions that follow it",
        (true, false) => "it protects every version of this grain",
        (false, true) => "it protects this grain and what derives from it",
        (true, true) => "it protects every version of this grain and what derives from it",
    }
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
