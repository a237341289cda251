//! Descriptions of policies and decisions, for users and tools that ask before they act.
//!
//! Knows the facts of a decision and no caller. The decisions are made in `decide`, which is asked for every
//! answer to who may do what.

use grainstore_format::{ContentAddress, EpochMs, Grain, GrainRef, GrainState, Header};
use serde::Serialize;

use super::access::{AccessInquiry, ReplacementAccess};
use super::facts::{PolicyFacts, ProtectionLink, Protector};
use super::rules::PolicyRule;
use super::terms::{PolicyMode, PolicyTerms};
use super::warnings::{self, EligibleSigners};
use crate::base::error::{Error, Result};

/// The requirements for taking a grain out of use: those of its own invalidation policy, and of the policies
/// of other grains that bind it (OMS 23). [`Session::policy`](crate::Session::policy) tells them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PolicyExplanation {
    /// The mode of its own policy (OMS 23.2); `unknown` and `malformed` count as locked.
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
    /// The callers that may replace it, by its policy and those of `protected_by`: `anyone`,
    /// `anyone_with_justification`, `one_authorized_signer`, `quorum` or `nobody`.
    pub open_to: &'static str,
    /// The callers that may replace it after every `locked_until`, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub then_open_to: Option<&'static str>,
    /// The other grains whose policies restrict its replacement.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub protected_by: Vec<PolicyProtector>,
    /// The meaning of each part of the policy, one sentence each.
    pub demands: Vec<String>,
    /// Probable mistakes in the policy: [`crate::Offer::warnings`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A rule that was applied to an attempt, such as [`Session::try_supersede`](crate::Session::try_supersede).
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

impl AppliedRule {
    /// The rule of this name, as it stands in [`AuditEntry::rules`](crate::AuditEntry::rules); `None` for a rule of a
    /// preset or of the operator.
    ///
    /// ```
    /// use grainstore::AppliedRule;
    ///
    /// assert_eq!(AppliedRule::named("locked").map(|rule| rule.section), Some("23.2"));
    /// assert_eq!(AppliedRule::named("a rule of ours"), None);
    /// ```
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        PolicyRule::from_name(name).map(Self::from)
    }
}

impl From<PolicyRule> for AppliedRule {
    fn from(rule: PolicyRule) -> Self {
        let row = rule.info();
        Self { rule: row.name, passes: row.passes, text: row.text, section: row.section }
    }
}

/// A grain other than the one in question whose policy restricts the replacement of that.
/// [`Session::policy`](crate::Session::policy) lists them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PolicyProtector {
    /// Its address; `None` if it lies outside the session.
    pub address: Option<ContentAddress>,
    /// What it is to the grain in question: `older_version`, `newer_version` or `ancestor`.
    pub link: &'static str,
    /// The mode of its policy.
    pub mode: &'static str,
    /// The scope of its policy.
    pub scope: &'static str,
    /// The DIDs whose signatures count for it; empty if it lies outside the session.
    pub authorized: Vec<String>,
    /// Number of signatures in its quorum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<u64>,
    /// End of its timed lock, in epoch seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locked_until: Option<u64>,
    /// The meaning of its policy, as a sentence.
    pub demand: String,
}

/// What binds a grain: the facts of a decision on its replacement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BindingFacts<'a> {
    /// The grain itself first.
    pub(crate) facts: &'a PolicyFacts,
    /// The names of the protectors, in the same order; `None` for one outside the session.
    pub(crate) names: &'a [Option<ContentAddress>],
    /// The time; `None` before any `locked_until`.
    pub(crate) now: Option<EpochMs>,
    /// True if the store accepts an authorized signature on a locked grain (OMS 12.5.4).
    pub(crate) locked_accepts_signature: bool,
}

/// Explains the policy that a grain has once it is stored, for itself alone. For a stored grain see
/// [`Session::policy`](crate::Session::policy).
///
/// ```
/// use grainstore::{explain, prelude::*};
///
/// let grain = Grain::from_json(
///     r#"{"type": "belief", "subject": "payments", "relation": "mg:requires", "object": "a signature",
///         "confidence": 1, "created_at": "2026-03-02T09:00:00Z",
///         "invalidation_policy": {"mode": "soft_locked"}}"#,
/// )?;
/// assert_eq!(explain(&grain)?.open_to, "anyone_with_justification");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Those of encoding an invalid grain.
pub fn explain(grain: &Grain) -> Result<PolicyExplanation> {
    let encoding = grain.decoded_header().map(Header::encoding).unwrap_or_default();
    let blob = grain.encode(encoding)?;
    let grain = GrainRef::new(blob.bytes()).map_err(Error::from)?;
    let held = PolicyTerms::of(&grain).holds;
    Ok(explain_alone(&grain, &GrainState { held, ..GrainState::default() }))
}

/// Explains the policy of a grain in a state, as if nothing else bound it.
fn explain_alone(grain: &GrainRef<'_>, state: &GrainState) -> PolicyExplanation {
    let target = Protector::from_grain(grain, state, ProtectionLink::TargetOrOlder);
    let facts = PolicyFacts { protectors: vec![target], is_truncated: false };
    let (now, locked_accepts_signature) = (None, false);
    let binding = BindingFacts { facts: &facts, names: &[], now, locked_accepts_signature };
    explain_in(grain, state, &binding)
}

/// Explains what binds a grain in this state.
pub(crate) fn explain_in(
    grain: &GrainRef<'_>,
    state: &GrainState,
    binding: &BindingFacts<'_>,
) -> PolicyExplanation {
    let terms = PolicyTerms::of(grain);
    let held = state.held;
    let protected_by = binding.protectors();
    let is_timed = terms.locked_until().is_some()
        || protected_by.iter().any(|other| other.locked_until.is_some());
    PolicyExplanation {
        mode: terms.mode.name(),
        scope: terms.scope.name(),
        holds: held,
        threshold: terms.threshold(),
        locked_until: terms.locked_until(),
        fallback_mode: match terms.mode {
            PolicyMode::Timed(_, fallback) => Some(fallback.mode().name()),
            _ => None,
        },
        fails_closed: fails_closed(terms.mode),
        open_to: binding.access_at(binding.now.unwrap_or(EpochMs::new(i64::MIN))).name(),
        then_open_to: (is_timed && !held).then(|| binding.access_at(EpochMs::new(i64::MAX)).name()),
        demands: requirements(grain, &terms, state, binding, &protected_by),
        protected_by,
        warnings: warnings::policy_warnings(grain),
        authorized: terms.authorized,
    }
}

impl BindingFacts<'_> {
    /// Returns the widest circle of callers that may replace the grain at this time. Each protector outside the
    /// session is asked alone, so that no DID can be tested for being among its signers.
    fn access_at(&self, now: EpochMs) -> ReplacementAccess {
        let is_hidden = |at: usize| at > 0 && self.names.get(at).is_some_and(Option::is_none);
        let (mut seen, mut hidden) = (Vec::new(), Vec::new());
        for (at, protector) in self.facts.protectors.iter().enumerate() {
            if is_hidden(at) { &mut hidden } else { &mut seen }.push(protector.clone());
        }
        let alone = hidden.into_iter().map(|protector| vec![protector]);
        let circles = alone.chain([seen]).map(|protectors| {
            let facts = PolicyFacts { protectors, is_truncated: self.facts.is_truncated };
            let locked_accepts_signature = self.locked_accepts_signature;
            AccessInquiry { facts: &facts, locked_accepts_signature }.at(now)
        });
        circles.max().unwrap_or(ReplacementAccess::Nobody)
    }

    /// Describes the protectors beside the grain itself. A lifted hold restricts nothing.
    fn protectors(&self) -> Vec<PolicyProtector> {
        let others = self.facts.protectors.iter().zip(self.names).skip(1);
        let others = others.filter(|(one, _)| one.applies() && !one.is_lifted());
        let told = others.map(|(protector, name)| {
            let Protector { terms, link, .. } = protector;
            let signers = EligibleSigners::of(terms, protector.author.as_deref());
            let demand = match protector.held && terms.holds {
                _ if name.is_none() => OUTSIDE.to_owned(),
                true => HELD.to_owned(),
                false => self.demand(terms, &signers).join("; "),
            };
            let shown = name.is_some();
            PolicyProtector {
                address: *name,
                link: link.name(),
                mode: terms.mode.name(),
                scope: terms.scope.name(),
                threshold: terms.threshold().filter(|_| shown),
                locked_until: terms.locked_until().filter(|_| shown),
                demand,
                authorized: name.map(|_| terms.authorized.clone()).unwrap_or_default(),
            }
        });
        told.collect()
    }

    /// Returns the meaning of a mode and of the mode that follows it.
    fn demand(&self, terms: &PolicyTerms, signers: &EligibleSigners<'_>) -> Vec<String> {
        let accepts = self.locked_accepts_signature;
        let mut demands = vec![mode_requirement(terms.mode, signers, accepts)];
        if let PolicyMode::Timed(_, fallback) = terms.mode {
            demands.push(format!("then: {}", mode_requirement(fallback.mode(), signers, accepts)));
        }
        demands
    }
}

/// Returns the requirements for replacing a grain, one sentence each.
fn requirements(
    grain: &GrainRef<'_>,
    terms: &PolicyTerms,
    state: &GrainState,
    binding: &BindingFacts<'_>,
    others: &[PolicyProtector],
) -> Vec<String> {
    let held = state.held;
    let author = binding.facts.protectors.first().and_then(|target| target.author.as_deref());
    let signers = EligibleSigners::of(terms, author);
    let is_bound = !others.is_empty() || binding.facts.is_truncated;
    let mut demands = Vec::new();
    if let Some(by) = state.superseded_by {
        demands.push(format!("it is superseded already, by {by}"));
    }
    if held {
        demands.push(HELD.to_owned());
    }
    match terms.mode {
        PolicyMode::Hold if held => demands.push(hold_lifter(&signers).to_owned()),
        PolicyMode::Hold if is_bound => demands.push("its litigation hold was lifted".to_owned()),
        PolicyMode::Hold => {
            demands.push("its litigation hold was lifted: anyone may replace it".to_owned());
        }
        PolicyMode::Open if is_bound => {
            demands.push("its own policy restricts nothing".to_owned());
        }
        PolicyMode::Timed(..) if held => {
            demands.push(mode_requirement(terms.mode, &signers, binding.locked_accepts_signature));
        }
        _ => demands.extend(binding.demand(terms, &signers)),
    }
    demands.extend(others.iter().map(|other| {
        let outside = || "outside this session".to_owned();
        let name = other.address.map_or_else(outside, |name| name.to_string());
        format!("its {} binds it, {name}: {}", other.link.replace('_', " "), other.demand)
    }));
    if binding.facts.is_truncated {
        demands
            .push(format!("nothing may replace it: {}", PolicyRule::TooManyAncestors.info().text));
    }
    if terms.protects() && (held || terms.mode != PolicyMode::Hold) {
        demands.push(scope_text(terms).to_owned());
        if !held {
            demands.extend(transitions_text(grain));
        }
    }
    if let Some(least) = grain.int("evidence_required").filter(|least| *least > 0) {
        demands
            .push(format!("satisfied takes {least} grains of satisfaction_evidence, failed one"));
    }
    demands
}

/// What is said of the policy of a grain outside the session.
const OUTSIDE: &str = "its policy is not shown here";
const HELD: &str = "it is neither invalidated nor erased until its litigation hold is lifted";

/// Returns `true` if a mode locks because it is not understood.
fn fails_closed(mode: PolicyMode) -> bool {
    match mode {
        PolicyMode::Unknown | PolicyMode::Malformed | PolicyMode::Quorum(None) => true,
        PolicyMode::Timed(_, fallback) => fails_closed(fallback.mode()),
        _ => false,
    }
}

fn mode_requirement(
    mode: PolicyMode,
    signers: &EligibleSigners<'_>,
    accepts_signature: bool,
) -> String {
    match mode {
        PolicyMode::Locked if accepts_signature && signers.quorum_candidates() > 0 => {
            "one of the authorized DIDs other than its author signs whatever invalidates it"
                .to_owned()
        }
        PolicyMode::Open => "anyone may replace it".to_owned(),
        PolicyMode::SoftLocked => {
            "who replaces it gives a supersession_justification, and the new grain is marked for review"
                .to_owned()
        }
        PolicyMode::Locked => "nothing may invalidate it".to_owned(),
        PolicyMode::Quorum(Some(least)) if signers.can_reach_quorum(least) => format!(
            "who replaces it brings supersession_auth with signatures of {least} different \
             authorized DIDs, that of its author not counted; nothing else invalidates it"
        ),
        PolicyMode::Quorum(Some(least)) => format!(
            "nobody can invalidate it: its quorum wants {least} signers, and of the authorized DIDs \
             {} can sign",
            signers.quorum_candidates()
        ),
        PolicyMode::Quorum(None) => {
            "nobody can invalidate it: its quorum has no threshold of at least 1".to_owned()
        }
        PolicyMode::Delegated if signers.can_delegate() => {
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
fn hold_lifter(signers: &EligibleSigners<'_>) -> &'static str {
    match signers.are_any_named() {
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
fn transitions_text(grain: &GrainRef<'_>) -> Option<String> {
    let allowed = grain.get("allowed_transitions")?.as_array()?;
    let states: Vec<_> = allowed.iter().filter_map(|state| state.as_str()).collect();
    let states = (!states.is_empty()).then(|| states.join(", "))?;
    Some(format!("its goal_state may change to {states} without all that"))
}

fn scope_text(terms: &PolicyTerms) -> &'static str {
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
