//! Invalidation policy: what a grain says about who may take it out of use (OMS 23).
//!
//! - `terms`: the policy map of a grain, read strictly.
//! - `proofs`: signatures, verified on the caller's thread into names of signers.
//! - `facts`: what a decision is about: the attempt, and the grains that protect its target.
//! - `rules`: the table of rules, by the names they have in the audit log.
//! - `decide`: one pure function, facts in, decision out.
//! - `goals`, `ownership`: what else OMS 23.4 and 12.5.3 ask of a grain that is written.
//! - `explain`: the same for people. `doubts`: what in a policy is probably not meant so.
//!
//! Nothing here reads the store: the plan gathers facts and carries out what is decided.

use grainstore_format::GrainRef;

mod decide;
mod doubts;
mod explain;
mod facts;
mod goals;
mod ownership;
mod proofs;
mod rules;
mod terms;
#[cfg(test)]
mod vector_tests;

pub(crate) use decide::{Decision, asks_others, decide, review};
pub(crate) use doubts::{may_be as may_be_doubted, of as doubts};
pub(crate) use explain::explain_in;
pub use explain::{Explanation, Ruling, explain};
pub(crate) use facts::{Act, Attempt, Facts, Protector, Standing, Tie};
pub(crate) use goals::{GoalTerms, Transition};
pub(crate) use ownership::check_ownership;
pub(crate) use proofs::{Proofs, cosigners, of_call, of_successor};
pub(crate) use rules::Rule;
pub(crate) use terms::Terms;

/// Whether the policy of a grain protects it from anybody at all.
pub(crate) fn protects(grain: &GrainRef<'_>) -> bool {
    Terms::of(grain).protects()
}

/// Whether two texts name the same DID: a fragment names a key of it.
pub(crate) fn same_did(one: &str, other: &str) -> bool {
    bare(one) == bare(other)
}

/// A DID without its fragment.
fn bare(did: &str) -> &str {
    did.split_once('#').map_or(did, |(did, _)| did)
}
