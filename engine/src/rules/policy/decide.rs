//! The pure function that decides whether a grain may be taken out of use: facts in, decision out (OMS 23).
//!
//! Every grain that protects the target is checked in turn, and the first refusal is the answer. The rules
//! applied on the way are recorded in order.

use super::facts::{Act, Attempt, Facts, Protector, Tie};
use super::rules::Rule;
use super::same_did;
use super::terms::{Mode, Scope, Terms};

/// The outcome of an attempt, the rules applied, and the consequences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decision {
    /// All rules applied; a refusing one is the last.
    pub(crate) rules: Vec<Rule>,
    /// Index of the protector that refuses.
    pub(crate) refused_by: Option<usize>,
    /// True if the change is to be reviewed by a person.
    pub(crate) needs_review: bool,
    /// True if the policies of older versions keep binding the successor (OMS 23.5). False if every
    /// protecting version with scope `grain` had the change signed.
    pub(crate) keeps_policy: bool,
}

impl Decision {
    /// Returns the refusing rule, if there is one.
    pub(crate) fn refusal(&self) -> Option<Rule> {
        self.rules.last().copied().filter(|rule| !rule.row().passes)
    }

    /// Returns the names of the rules, for the audit log.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.rules.iter().map(|rule| rule.row().name).collect()
    }
}

/// Decides an attempt.
pub(crate) fn decide(attempt: &Attempt<'_>, facts: &Facts) -> Decision {
    let mut decision =
        Decision { rules: Vec::new(), refused_by: None, needs_review: false, keeps_policy: true };
    let mut signed = 0_usize;
    let mut unsigned = 0_usize;
    for (at, protector) in facts.protectors.iter().enumerate() {
        let is_target = at == 0;
        if !is_target && (!protector.bears() || !asks_others(attempt.act)) {
            continue;
        }
        let rules = judge(attempt, protector, is_target);
        decision.rules.extend(&rules);
        if decision.refusal().is_some() {
            decision.refused_by = Some(at);
            return decision;
        }
        decision.needs_review |= rules.contains(&Rule::SoftLocked);
        if protector.tie == Tie::Version && protector.terms.scope == Scope::Grain {
            match rules.iter().any(|rule| rule.is_signed()) {
                true => signed += 1,
                false if protector.terms.protects() => unsigned += 1,
                false => {}
            }
        }
    }
    if facts.too_many {
        decision.rules.push(Rule::TooManyAncestors);
        decision.refused_by = Some(0);
    }
    decision.keeps_policy = signed == 0 || unsigned > 0;
    decision
}

/// Returns `true` if grains related to the target have a say in an action, and not the target alone.
pub(crate) fn asks_others(act: Act) -> bool {
    !matches!(act, Act::Verify | Act::Review | Act::LiftHold)
}

/// Returns the rules that one protector applies: all pass, or the last one refuses.
fn judge(attempt: &Attempt<'_>, protector: &Protector, is_target: bool) -> Vec<Rule> {
    let terms = &protector.terms;
    match attempt.act {
        Act::Verify => return vec![verification(attempt, protector)],
        Act::Review => {
            let Protector { author, signer, .. } = protector;
            let by = [author.as_deref(), signer.as_deref()];
            return vec![review(attempt.may_review, attempt.actor, by)];
        }
        Act::LiftHold => return vec![lifting(attempt, terms)],
        Act::Supersede | Act::Contradict | Act::Contest | Act::Retract => {}
    }
    // A hold placed by a call is on one grain only; a hold declared by a policy has a scope.
    if protector.held && (is_target || terms.holds) {
        return vec![Rule::Hold];
    }
    // A lifted hold leaves the grain as if it had no policy.
    if terms.mode == Mode::Hold {
        return vec![Rule::HoldLifted];
    }
    let mut rules = Vec::new();
    let goal = protector.goal.as_ref();
    if goal.is_some_and(|goal| goal.allows) && terms.mode != Mode::Open {
        rules.push(Rule::Transition);
    } else {
        by_mode(attempt, protector, &mut rules);
    }
    let refused = rules.last().is_none_or(|rule| !rule.row().passes);
    let is_settled = rules.iter().any(|rule| rule.is_signed()) || terms.mode == Mode::Open;
    if let Some(goal) = goal
        && goal.evidence_required > 0
        && !refused
        && !is_settled
    {
        let enough = attempt.evidence >= goal.evidence_required;
        rules.push(if enough { Rule::Evidence } else { Rule::NoEvidence });
    }
    rules
}

/// Applies the mode of a policy.
fn by_mode(attempt: &Attempt<'_>, protector: &Protector, rules: &mut Vec<Rule>) {
    let Mode::Timed(until, fallback) = protector.terms.mode else {
        rules.push(rule_of(protector.terms.mode, attempt, protector));
        return;
    };
    // `locked_until` is in epoch seconds.
    if i128::from(attempt.now.get().div_euclid(1000)) < i128::from(until) {
        rules.push(Rule::TimedLock);
        return;
    }
    rules.push(Rule::Unlocked);
    rules.push(rule_of(fallback.mode(), attempt, protector));
}

fn rule_of(mode: Mode, attempt: &Attempt<'_>, protector: &Protector) -> Rule {
    let Protector { terms, author, .. } = protector;
    let author = author.as_deref();
    match mode {
        Mode::Open => Rule::Open,
        Mode::ConsentCascade => Rule::ConsentCascade,
        Mode::SoftLocked => match attempt.justification {
            Some(why) if !why.trim().is_empty() => Rule::SoftLocked,
            _ => Rule::NotJustified,
        },
        Mode::Locked => locked(attempt, terms, author),
        Mode::Quorum(threshold) => quorum(attempt, terms, author, threshold),
        Mode::Delegated => match is_authorized(terms, attempt.proofs.signer.as_deref()) {
            true => Rule::Delegated,
            false => Rule::NotDelegated,
        },
        Mode::Hold => Rule::Hold,
        Mode::Unknown => Rule::UnknownMode,
        // The fallback of a timed policy is never timed itself, so this cannot come from a parsed policy.
        Mode::Malformed | Mode::Timed(..) => Rule::Malformed,
    }
}

/// Applies `locked`: refuses, unless the store accepts an authorized signature (OMS 12.5.4).
fn locked(attempt: &Attempt<'_>, terms: &Terms, author: Option<&str>) -> Rule {
    let signer = attempt.proofs.signer.as_deref();
    if !attempt.locked_accepts_signature || !is_authorized(terms, signer) {
        return Rule::Locked;
    }
    match is_author(author, signer) {
        true => Rule::OwnKey,
        false => Rule::LockedSigned,
    }
}

/// Applies `quorum`: the threshold counts distinct authorized signers, without the author of the grain.
fn quorum(
    attempt: &Attempt<'_>,
    terms: &Terms,
    author: Option<&str>,
    threshold: Option<u64>,
) -> Rule {
    if attempt.act != Act::Supersede {
        return Rule::NoSuccessor;
    }
    let Some(threshold) = threshold else { return Rule::NoThreshold };
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
        Rule::Quorum
    } else if with_author >= threshold {
        Rule::OwnKey
    } else {
        Rule::NoQuorum
    }
}

/// Applies a more favourable status: it takes nothing out of use, but authors cannot verify their own grains.
fn verification(attempt: &Attempt<'_>, protector: &Protector) -> Rule {
    match is_author(protector.author.as_deref(), attempt.actor) {
        true => Rule::OwnVerification,
        false => Rule::Verification,
    }
}

/// Decides a review: it is made by the operator or a reviewer named by the host (ruling 54), and never by the
/// author or the signer of the grain.
pub(crate) fn review(may: bool, actor: Option<&str>, by: [Option<&str>; 2]) -> Rule {
    if by.into_iter().any(|by| is_author(by, actor)) {
        Rule::OwnVerification
    } else if may {
        Rule::Review
    } else {
        Rule::NotReviewer
    }
}

/// Decides the lifting of a hold: by the signers that the policy names, or by the operator if it names none.
fn lifting(attempt: &Attempt<'_>, terms: &Terms) -> Rule {
    let is_theirs =
        matches!(terms.mode, Mode::Hold | Mode::Delegated) && !terms.authorized.is_empty();
    // A malformed policy cannot name signers, so a hold that it declares cannot be lifted.
    if terms.mode == Mode::Malformed && terms.holds {
        Rule::Malformed
    } else if is_theirs {
        match is_authorized(terms, attempt.proofs.signer.as_deref()) {
            true => Rule::LiftSigned,
            false => Rule::LiftNotSigned,
        }
    } else {
        match attempt.is_operator {
            true => Rule::LiftByOperator,
            false => Rule::LiftNotOperator,
        }
    }
}

fn is_authorized(terms: &Terms, signer: Option<&str>) -> bool {
    signer.is_some_and(|signer| terms.authorized.iter().any(|did| same_did(did, signer)))
}

fn is_author(author: Option<&str>, who: Option<&str>) -> bool {
    matches!((author, who), (Some(author), Some(who)) if same_did(author, who))
}
