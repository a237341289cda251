//! Invalidation policy: what a grain states about who may take it out of use (OMS 23).
//!
//! - `terms`: the policy map of a grain, parsed strictly.
//! - `proofs`: signatures, verified on the caller's thread into names of signers.
//! - `facts`: the facts of a decision: the attempt, and the grains that protect its target.
//! - `rules`: the table of rules, by their names in the audit log.
//! - `decide`: one pure function, facts in, decision out.
//! - `goals`, `ownership`: what else OMS 23.4 and 12.5.3 require of a grain that is written.
//! - `access`: who may replace a grain, by asking `decide`.
//! - `explain`: descriptions for users. `warnings`: probable mistakes in a policy.
//!
//! No code here reads the store: the write plan gathers the facts and carries out the decision.

use grainstore_format::GrainRef;

mod access;
mod decide;
mod explain;
mod facts;
mod goals;
mod ownership;
mod proofs;
mod rules;
mod terms;
#[cfg(test)]
mod vector_tests;
mod warnings;

pub(crate) use decide::{PolicyDecision, decide, involves_related, review_rule};
pub use explain::{AppliedRule, PolicyExplanation, PolicyProtector, explain};
pub(crate) use explain::{BindingFacts, explain_in};
pub(crate) use facts::{
    Authority, PolicyAction, PolicyAttempt, PolicyFacts, ProtectionLink, Protector,
};
pub(crate) use goals::{GoalTerms, GoalTransition, Maker};
pub(crate) use ownership::check_ownership;
pub(crate) use proofs::{
    Proofs, verified_cosigners, verify_call_signature, verify_supersession_auth,
};
pub(crate) use rules::PolicyRule;
pub use rules::RuleResult;
pub(crate) use terms::PolicyTerms;
pub(crate) use warnings::{can_cause_warning as may_be_doubted, policy_warnings as doubts};

/// Returns `true` if the policy of a grain restricts its invalidation.
pub(crate) fn has_protecting_policy(grain: &GrainRef<'_>) -> bool {
    PolicyTerms::of(grain).protects()
}

/// Returns `true` if two texts name the same DID; fragments, which name a key, are ignored.
pub(crate) fn same_did(one: &str, other: &str) -> bool {
    strip_fragment(one) == strip_fragment(other)
}

/// Strips the fragment of a DID.
fn strip_fragment(did: &str) -> &str {
    did.split_once('#').map_or(did, |(did, _)| did)
}
