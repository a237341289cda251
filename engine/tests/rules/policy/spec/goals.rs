//! Goals in the specification: the transitions they allow of themselves, on what evidence, and what binds
//! their successors (OMS 23.4, 23.5; ruling 23).

use std::collections::BTreeSet;

use grainstore::VerificationStatus as Status;
use grainstore::format::Grain;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Act, Brings, DENIED, Entry, Made, Mode, Run, Scope, World, policy};

const EVIDENCE: &str = "ERR_EVIDENCE_REQUIRED";
const STATES: [&str; 4] = ["active", "satisfied", "failed", "suspended"];
const SATISFIED: usize = 1;
const FAILED: usize = 2;

/// What a goal says about its transitions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Terms {
    allowed: BTreeSet<usize>,
    evidence: usize,
}

#[derive(Debug, Clone)]
pub(super) struct Goal {
    state: usize,
    terms: Terms,
    /// Whether it says its policy and its terms, and does not leave them to the version before.
    says_all: bool,
    /// What it is about: the number of the grain that said it anew.
    criteria: usize,
}

/// A change of state that somebody attempts.
#[derive(Debug, Clone)]
pub(super) struct Change {
    to: usize,
    /// Whether nothing changes that makes it another goal.
    keeps: bool,
    /// Whether the new version says the policy and the terms again.
    says_all: bool,
    reason: bool,
    evidence: Vec<usize>,
}

pub(super) fn terms() -> impl Strategy<Value = Terms> {
    let allowed = prop::collection::btree_set(0..STATES.len(), 0..4);
    (allowed, prop_oneof![2 => Just(0_usize), 1 => Just(1), 1 => Just(2)])
        .prop_map(|(allowed, evidence)| Terms { allowed, evidence })
}

pub(super) fn change() -> impl Strategy<Value = Change> {
    let evidence = prop::collection::vec(0_usize..40, 0..4);
    let mostly = || prop::bool::weighted(0.8);
    (0..STATES.len(), mostly(), any::<bool>(), any::<bool>(), evidence).prop_map(
        |(to, keeps, says_all, reason, evidence)| Change { to, keeps, says_all, reason, evidence },
    )
}

impl Goal {
    /// The same goal in the same state, with other terms and about something else.
    pub(super) fn said_anew(&self, made: &Made, number: usize) -> Self {
        Self { state: self.state, terms: made.goal.clone(), says_all: true, criteria: number }
    }
}

impl Entry {
    /// What this version of a goal says against a change that has so much evidence.
    fn against(&self, change: &Change, new: &Entry, count: usize, brings: &Brings) -> Option<&str> {
        if self.mode == Mode::Hold {
            return self.held.then_some(DENIED);
        }
        let (Some(goal), Some(later)) = (&self.goal, &new.goal) else {
            return (!self.passes(Act::Supersede, brings)).then_some(DENIED);
        };
        let same_terms = goal.terms == later.terms
            && (self.mode, self.scope) == (new.mode, new.scope)
            && goal.says_all;
        let allows = change.keeps
            && goal.terms.allowed.contains(&change.to)
            && (!later.says_all || same_terms);
        if self.mode == Mode::Open {
            return None;
        }
        if !allows && !self.passes(Act::Supersede, brings) {
            return Some(DENIED);
        }
        let required = match change.to {
            SATISFIED => goal.terms.evidence,
            FAILED => goal.terms.evidence.min(1),
            _ => 0,
        };
        let is_signed = !allows && matches!(self.mode, Mode::Quorum(_) | Mode::Delegated);
        (count < required && !is_signed).then_some(EVIDENCE)
    }
}

impl World {
    /// Whether a change that these signed for frees the successor from the policies of the versions before
    /// that reach no further than their own grain: all of them were signed for, and one was.
    pub(super) fn releases(&self, old: usize, brings: &Brings) -> bool {
        let versions = self.chain_up_to(old).into_iter().filter(|(_, released)| !released);
        let own = versions.map(|(at, _)| &self.0[at]).filter(|entry| entry.scope == Scope::Grain);
        let own: Vec<&Entry> = own.filter(|entry| entry.mode != Mode::Open).collect();
        let is_signed = |entry: &&Entry| {
            matches!(entry.mode, Mode::Quorum(_) | Mode::Delegated)
                && entry.passes(Act::Supersede, brings)
        };
        !own.is_empty() && own.iter().all(is_signed)
    }

    /// The codes of all that is said against a change of a goal.
    fn against(&self, old: usize, change: &Change, new: &Entry, count: usize) -> BTreeSet<String> {
        let brings = Brings { reason: change.reason, ..Brings::default() };
        let versions = self.versions_up_to(old);
        let asked = self.asked(old, &BTreeSet::new());
        let said = asked.into_iter().filter_map(|at| match versions.contains(&at) {
            true => self.0[at].against(change, new, count, &brings),
            false => (!self.0[at].passes(Act::Supersede, &brings)).then_some(DENIED),
        });
        let held = self.0[old].held.then_some(DENIED);
        said.chain(held).map(str::to_owned).collect()
    }

    /// How much of what is named counts: what nobody contradicted or retracted, and no version of the goal.
    fn counted(&self, old: usize, named: &BTreeSet<usize>) -> usize {
        let leads_to_goal =
            |at: usize| std::iter::successors(Some(at), |at| self.0[*at].after).any(|at| at == old);
        let in_use = |entry: &Entry| !entry.contradicted && entry.status != Status::Retracted;
        named.iter().filter(|at| in_use(&self.0[**at]) && !leads_to_goal(**at)).count()
    }
}

impl Run {
    pub(super) fn put_goal(&mut self, made: &Made) -> Result<(), String> {
        let parents = self.parents(made);
        let disguised = parents.iter().any(|at| self.is_version_of(true, made.subject, *at));
        let number = self.addresses.len();
        let terms = made.goal.clone();
        let goal = Goal { state: 0, terms, says_all: true, criteria: number };
        match self.operator.put(self.goal(made, &goal, &parents, false)) {
            Ok(put) if !disguised => {
                let at = self.add(made, parents, None, put.address());
                self.world.0[at].goal = Some(goal);
                Ok(())
            }
            Err(error) if disguised && error.code() == "ERR_SUPERSEDE_REQUIRED" => Ok(()),
            other => Err(format!("{other:?}, disguised: {disguised}")),
        }
    }

    pub(super) fn transition(&mut self, old: usize, change: &Change) -> Result<(), String> {
        let entry = self.world.0[old].clone();
        let Some(goal) = entry.goal.as_ref().filter(|goal| goal.state != change.to) else {
            return Ok(());
        };
        let (mode, scope) = match change.says_all {
            true => (entry.mode, entry.scope),
            false => (Mode::Open, Scope::Grain),
        };
        let made = Made {
            subject: entry.subject,
            mode,
            scope,
            author: 0,
            parents: Vec::new(),
            goal: Terms::default(),
        };
        let says_all = change.says_all && goal.says_all;
        let new = Goal {
            state: change.to,
            terms: if says_all { goal.terms.clone() } else { Terms::default() },
            says_all,
            criteria: if change.keeps { goal.criteria } else { self.addresses.len() },
        };
        let named: BTreeSet<usize> = change.evidence.iter().map(|at| self.place(*at)).collect();
        let parents = BTreeSet::from([old]);
        let mut fields = self.goal(&made, &new, &parents, change.reason).into_fields();
        let evidence = named.iter().map(|at| self.addresses[*at].to_string().into()).collect();
        fields.insert("satisfaction_evidence".to_owned(), super::format::Value::Array(evidence));
        let grain = Grain::from_fields(fields).unwrap();
        let mut later = entry.clone();
        (later.mode, later.scope, later.goal) = (mode, scope, Some(new.clone()));
        let count = self.world.counted(old, &named);
        let against = self.world.against(old, change, &later, count);
        let outcome = self.operator.supersede(&self.addresses[old], grain, None);
        let code = outcome.as_ref().map_or_else(grainstore::Error::code, |_| "OK");
        let expected = match entry.after {
            Some(_) => "ERR_CONFLICT",
            None if against.is_empty() => "OK",
            // What is said first is told.
            None if against.contains(code) => code,
            None => return Err(format!("{code} instead of {against:?}")),
        };
        if let Ok(address) = &outcome {
            let at = self.add(&made, parents, Some(old), *address);
            self.world.0[old].after = Some(at);
            self.world.0[at].goal = Some(new);
        }
        self.expect(old, outcome, expected)
    }

    pub(super) fn goal(
        &self,
        made: &Made,
        goal: &Goal,
        parents: &BTreeSet<usize>,
        why: bool,
    ) -> Grain {
        let mut json = json!({
            "type": "goal", "description": format!("goal {}", made.subject),
            "goal_state": STATES[goal.state], "criteria": [format!("c{}", goal.criteria)],
            "created_at": 1000 + self.addresses.len(),
        });
        if goal.says_all {
            let allowed = goal.terms.allowed.iter().map(|state| STATES[*state]);
            json["allowed_transitions"] = Value::from(allowed.collect::<Vec<_>>());
            json["evidence_required"] = Value::from(goal.terms.evidence);
            json["invalidation_policy"] = policy(made);
        }
        self.written(json, made.author, parents, why)
    }
}
