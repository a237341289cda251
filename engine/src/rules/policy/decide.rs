//! The pure function that decides whether a grain may be taken out of use: facts in, decision out (OMS 23).
//!
//! Every grain that protects the target is checked in turn, and the first refusal is the answer. The rules
//! applied on the way are recorded in order.

use super::facts::{PolicyAction, PolicyAttempt, PolicyFacts, ProtectionLink, Protector};
use super::rules::{PolicyRule, RuleResult};
use super::same_did;
use super::terms::{PolicyMode, PolicyScope, PolicyTerms};

/// The outcome of an attempt, the rules applied, and the consequences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PolicyDecision {
    /// All rules applied; a refusing one is the last.
    pub(crate) rules: Vec<PolicyRule>,
    /// Index of the protector that refuses.
    pub(crate) refused_by: Option<usize>,
    /// True if the change is to be reviewed by a person.
    pub(crate) needs_review: bool,
    /// True if the policies of older versions keep binding the successor (OMS 23.5). False if every
    /// protecting version with scope `grain` had the change signed.
    pub(crate) keeps_older_policies: bool,
}

impl PolicyDecision {
    /// Returns the refusing rule, if there is one.
    pub(crate) fn refusal(&self) -> Option<PolicyRule> {
        self.rules.last().copied().filter(|rule| !rule.info().passes)
    }

    /// Returns what each rule came to, for the audit log: see [`PolicyRule::result`].
    pub(crate) fn results(
        &self,
        is_unchecked: bool,
        signatures_open_locks: bool,
    ) -> Vec<RuleResult> {
        let rules = self.rules.iter();
        rules.map(|rule| rule.result(is_unchecked, signatures_open_locks)).collect()
    }

    /// Returns the names of the rules, for the audit log.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.rules.iter().map(|rule| rule.info().name).collect()
    }
}

/// Decides an attempt.
pub(crate) fn decide(attempt: &PolicyAttempt<'_>, facts: &PolicyFacts) -> PolicyDecision {
    let mut decision = PolicyDecision {
        rules: Vec::new(),
        refused_by: None,
        needs_review: false,
        keeps_older_policies: true,
    };
    let mut signed = 0_usize;
    let mut unsigned = 0_usize;
    for (at, protector) in facts.protectors.iter().enumerate() {
        let is_target = at == 0;
        if !is_target && (!protector.applies() || !involves_related(attempt.act)) {
            continue;
        }
        let rules = protector_rules(attempt, protector, is_target);
        decision.rules.extend(&rules);
        if decision.refusal().is_some() {
            decision.refused_by = Some(at);
            return decision;
        }
        decision.needs_review |= rules.contains(&PolicyRule::SoftLocked);
        if protector.link == ProtectionLink::TargetOrOlder
            && protector.terms.scope == PolicyScope::Grain
        {
            match rules.iter().any(|rule| rule.rests_on_signature()) {
                true => signed += 1,
                false if protector.terms.protects() => unsigned += 1,
                false => {}
            }
        }
    }
    if facts.is_truncated {
        decision.rules.push(PolicyRule::TooManyAncestors);
        decision.refused_by = Some(0);
    }
    decision.keeps_older_policies = signed == 0 || unsigned > 0;
    decision
}

/// Returns `true` if grains related to the target have a say in an action, and not the target alone.
pub(crate) fn involves_related(act: PolicyAction) -> bool {
    !matches!(act, PolicyAction::Verify | PolicyAction::Review | PolicyAction::LiftHold)
}

/// Returns the rules that one protector applies: all pass, or the last one refuses.
fn protector_rules(
    attempt: &PolicyAttempt<'_>,
    protector: &Protector,
    is_target: bool,
) -> Vec<PolicyRule> {
    let terms = &protector.terms;
    match attempt.act {
        PolicyAction::Verify => return vec![verification_rule(attempt, protector)],
        PolicyAction::Review => {
            let Protector { author, signer, .. } = protector;
            let by = [author.as_deref(), signer.as_deref()];
            return vec![review_rule(attempt.may_review, attempt.actor, by)];
        }
        PolicyAction::LiftHold => return vec![lift_hold_rule(attempt, terms)],
        PolicyAction::Supersede
        | PolicyAction::Contradict
        | PolicyAction::Contest
        | PolicyAction::Retract => {}
    }
    // A hold placed by a call is on one grain only; a hold declared by a policy has a scope.
    if protector.held && (is_target || terms.holds) {
        return vec![PolicyRule::Hold];
    }
    // A lifted hold leaves the grain as if it had no policy.
    if terms.mode == PolicyMode::Hold {
        return vec![PolicyRule::HoldLifted];
    }
    let mut rules = Vec::new();
    let goal = protector.goal.as_ref();
    if goal.is_some_and(|goal| goal.allows) && terms.mode != PolicyMode::Open {
        rules.push(PolicyRule::Transition);
    } else {
        push_mode_rules(attempt, protector, &mut rules);
    }
    let refused = rules.last().is_none_or(|rule| !rule.info().passes);
    let is_settled =
        rules.iter().any(|rule| rule.rests_on_signature()) || terms.mode == PolicyMode::Open;
    if let Some(goal) = goal
        && goal.evidence_required > 0
        && !refused
        && !is_settled
    {
        let enough = attempt.evidence >= goal.evidence_required;
        rules.push(if enough { PolicyRule::Evidence } else { PolicyRule::NoEvidence });
    }
    rules
}

/// Applies the mode of a policy.
fn push_mode_rules(
    attempt: &PolicyAttempt<'_>,
    protector: &Protector,
    rules: &mut Vec<PolicyRule>,
) {
    let PolicyMode::Timed(until, fallback) = protector.terms.mode else {
        rules.push(mode_rule(protector.terms.mode, attempt, protector));
        return;
    };
    // `locked_until` is in epoch seconds.
    if i128::from(attempt.now.get().div_euclid(1000)) < i128::from(until) {
        rules.push(PolicyRule::TimedLock);
        return;
    }
    rules.push(PolicyRule::Unlocked);
    rules.push(mode_rule(fallback.mode(), attempt, protector));
}

fn mode_rule(mode: PolicyMode, attempt: &PolicyAttempt<'_>, protector: &Protector) -> PolicyRule {
    let Protector { terms, author, .. } = protector;
    let author = author.as_deref();
    match mode {
        PolicyMode::Open => PolicyRule::Open,
        PolicyMode::ConsentCascade => PolicyRule::ConsentCascade,
        PolicyMode::SoftLocked => match attempt.justification {
            Some(why) if !why.trim().is_empty() => PolicyRule::SoftLocked,
            _ => PolicyRule::NotJustified,
        },
        PolicyMode::Locked => locked_rule(attempt, terms, author),
        PolicyMode::Quorum(threshold) => quorum_rule(attempt, terms, author, threshold),
        PolicyMode::Delegated => match is_authorized(terms, attempt.proofs.signer.as_deref()) {
            true => PolicyRule::Delegated,
            false => PolicyRule::NotDelegated,
        },
        PolicyMode::Hold => PolicyRule::Hold,
        PolicyMode::Unknown => PolicyRule::UnknownMode,
        // The fallback of a timed policy is never timed itself, so this cannot come from a parsed policy.
        PolicyMode::Malformed | PolicyMode::Timed(..) => PolicyRule::Malformed,
    }
}

/// Applies `locked`: refuses, unless the store accepts an authorized signature (OMS 12.5.4).
fn locked_rule(
    attempt: &PolicyAttempt<'_>,
    terms: &PolicyTerms,
    author: Option<&str>,
) -> PolicyRule {
    let signer = attempt.proofs.signer.as_deref();
    if !attempt.locked_accepts_signature || !is_authorized(terms, signer) {
        return PolicyRule::Locked;
    }
    match is_author(author, signer) {
        true => PolicyRule::OwnKey,
        false => PolicyRule::LockedSigned,
    }
}

/// Applies `quorum`: the threshold counts distinct authorized signers, without the author of the grain.
fn quorum_rule(
    attempt: &PolicyAttempt<'_>,
    terms: &PolicyTerms,
    author: Option<&str>,
    threshold: Option<u64>,
) -> PolicyRule {
    if attempt.act != PolicyAction::Supersede {
        return PolicyRule::NoSuccessor;
    }
    let Some(threshold) = threshold else { return PolicyRule::NoThreshold };
    let mut signers: Vec<&str> = Vec::new();
    for signer in &attempt.proofs.cosigners {
        let counted = signers.iter().any(|other| same_did(other, signer));
        if is_authorized(terms, Some(signer)) && !counted {
            signers.push(signer);
        }
    }
    let count = |signers: &[&str]| u64::try_from(signers.len()).unwrap_or(u64::MAX);
    let with_author = count(&signers);
    signers.retain(|signer| !is_author(author, Some(signer)));
    if count(&signers) >= threshold {
        PolicyRule::Quorum
    } else if with_author >= threshold {
        PolicyRule::OwnKey
    } else {
        PolicyRule::NoQuorum
    }
}

/// Applies a more favourable status: it takes nothing out of use, but authors cannot verify their own grains.
fn verification_rule(attempt: &PolicyAttempt<'_>, protector: &Protector) -> PolicyRule {
    match is_author(protector.author.as_deref(), attempt.actor) {
        true => PolicyRule::OwnVerification,
        false => PolicyRule::Verification,
    }
}

/// Decides a review: it is made by the operator or a reviewer named by the host (ruling 54), and never by the
/// author or the signer of the grain.
pub(crate) fn review_rule(may: bool, actor: Option<&str>, by: [Option<&str>; 2]) -> PolicyRule {
    if by.into_iter().any(|by| is_author(by, actor)) {
        PolicyRule::OwnVerification
    } else if may {
        PolicyRule::Review
    } else {
        PolicyRule::NotReviewer
    }
}

/// Decides the lifting of a hold: by the signers that the policy names, or by the operator if it names none.
fn lift_hold_rule(attempt: &PolicyAttempt<'_>, terms: &PolicyTerms) -> PolicyRule {
    let is_theirs = matches!(terms.mode, PolicyMode::Hold | PolicyMode::Delegated)
        && !terms.authorized.is_empty();
    // A malformed policy cannot name signers, so a hold that it declares cannot be lifted.
    if terms.mode == PolicyMode::Malformed && terms.holds {
        PolicyRule::Malformed
    } else if is_theirs {
        match is_authorized(terms, attempt.proofs.signer.as_deref()) {
            true => PolicyRule::LiftSigned,
            false => PolicyRule::LiftNotSigned,
        }
    } else {
        match attempt.is_operator {
            true => PolicyRule::LiftByOperator,
            false => PolicyRule::LiftNotOperator,
        }
    }
}

fn is_authorized(terms: &PolicyTerms, signer: Option<&str>) -> bool {
    signer.is_some_and(|signer| terms.authorized.iter().any(|did| same_did(did, signer)))
}

fn is_author(author: Option<&str>, who: Option<&str>) -> bool {
    matches!((author, who), (Some(author), Some(who)) if same_did(author, who))
}
