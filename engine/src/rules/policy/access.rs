//! Who may replace a grain: found by asking `decide` with everything that callers can bring, so that what is
//! said is what is decided.

use std::collections::{BTreeMap, BTreeSet};

use grainstore_format::{Did, EpochMs};

use super::decide::{PolicyDecision, decide};
use super::facts::{PolicyAction, PolicyAttempt, PolicyFacts, Protector};
use super::proofs::{MAX_COSIGNATURES, Proofs};
use super::rules::PolicyRule;
use super::{same_did, strip_fragment};

/// The callers that may replace a grain, the widest circle first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ReplacementAccess {
    Anyone,
    Justified,
    Signer,
    Quorum,
    Nobody,
}

impl ReplacementAccess {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Anyone => "anyone",
            Self::Justified => "anyone_with_justification",
            Self::Signer => "one_authorized_signer",
            Self::Quorum => "quorum",
            Self::Nobody => "nobody",
        }
    }
}

/// The facts of the question.
#[derive(Debug, Clone, Copy)]
pub(super) struct AccessInquiry<'a> {
    pub(super) facts: &'a PolicyFacts,
    /// True if the store accepts an authorized signature on a locked grain (OMS 12.5.4).
    pub(super) locked_accepts_signature: bool,
}

/// A justification, whose words do not matter.
const JUSTIFICATION: Option<&str> = Some("-");

impl AccessInquiry<'_> {
    /// Returns the widest circle of callers that may replace the grain at this time.
    pub(super) fn at(&self, now: EpochMs) -> ReplacementAccess {
        let allows = |justification: Option<&str>, proofs: &Proofs| {
            self.decide(now, justification, proofs).refusal().is_none()
        };
        let nothing = Proofs::default();
        if allows(None, &nothing) {
            return ReplacementAccess::Anyone;
        }
        if allows(JUSTIFICATION, &nothing) {
            return ReplacementAccess::Justified;
        }
        if self.allows_a_signer(now, &nothing) {
            return ReplacementAccess::Signer;
        }
        let quorum = Proofs { cosigners: self.cosigners(), ..Proofs::default() };
        if allows(JUSTIFICATION, &quorum) || self.allows_a_signer(now, &quorum) {
            return ReplacementAccess::Quorum;
        }
        ReplacementAccess::Nobody
    }

    fn decide(&self, now: EpochMs, justification: Option<&str>, proofs: &Proofs) -> PolicyDecision {
        let attempt = PolicyAttempt {
            act: PolicyAction::Supersede,
            now,
            justification,
            actor: None,
            is_operator: false,
            proofs,
            evidence: 0,
            locked_accepts_signature: self.locked_accepts_signature,
            may_review: false,
        };
        decide(&attempt, self.facts)
    }

    /// Returns `true` if the signature of one of the named DIDs, beside these proofs, is enough. A protector
    /// that refuses a signer leaves those that it names itself, so each narrows the choice once.
    fn allows_a_signer(&self, now: EpochMs, beside: &Proofs) -> bool {
        let named = self.facts.protectors.iter().flat_map(signers);
        let mut left: Vec<&str> = named.collect::<BTreeSet<_>>().into_iter().collect();
        while let Some(signer) = left.pop() {
            let proofs = Proofs { signer: Some(signer.to_owned()), ..beside.clone() };
            let decision = self.decide(now, JUSTIFICATION, &proofs);
            let Some(rule) = decision.refusal() else { return true };
            let by = decision.refused_by.and_then(|at| self.facts.protectors.get(at));
            let Some(by) = by else { return false };
            match rule {
                PolicyRule::NotDelegated | PolicyRule::Locked => {
                    let theirs: BTreeSet<_> = signers(by).collect();
                    // What names this signer refuses it for another reason, as it would any.
                    if theirs.contains(signer) {
                        return false;
                    }
                    left.retain(|other| theirs.contains(other));
                }
                // The author of a locked grain: another signer may do.
                PolicyRule::OwnKey if by.terms.threshold().is_none() => {}
                _ => return false,
            }
        }
        false
    }

    /// Returns as many signers of the quorums as are verified, those first that most quorums count.
    fn cosigners(&self) -> Vec<String> {
        let mut counted: BTreeMap<&str, usize> = BTreeMap::new();
        for protector in self.facts.protectors.iter().filter(|one| one.terms.threshold().is_some())
        {
            let author = protector.author.as_deref();
            let is_author = |did: &str| author.is_some_and(|author| same_did(author, did));
            for did in signers(protector).filter(|did| !is_author(did)).collect::<BTreeSet<_>>() {
                let count = counted.entry(did).or_default();
                *count = count.saturating_add(1);
            }
        }
        let mut counted: Vec<_> = counted.into_iter().collect();
        counted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        counted.into_iter().take(MAX_COSIGNATURES).map(|(did, _)| did.to_owned()).collect()
    }
}

/// Returns the DIDs that a policy names; a text that is no DID can never sign.
fn signers(protector: &Protector) -> impl Iterator<Item = &str> {
    let named = protector.terms.authorized.iter().map(|did| strip_fragment(did));
    named.filter(|did| did.parse::<Did>().is_ok())
}
