//! Who protects a grain that is to be superseded: the grain itself, the versions before it, and
//! what it derives from (OMS 23.6, 23.7 bypass 3).
//!
//! Derivation is followed for 16 hops. Beyond them the **roots** noted with each grain when it was
//! stored still protect: itself, if its policy restricts anything, and the ancestors whose policy
//! reaches it, however far away.

use std::collections::{BTreeSet, HashMap, VecDeque};

use grainstore_format::{ContentAddress, Grain};
use grainstore_index::Sequence;

use crate::error::Result;
use crate::policy::{Decision, Policy, Request, Rule};
use crate::view::with_fields;

use super::{Plan, disguise};

/// How far derivation is followed (OMS 23.6).
const MAX_HOPS: usize = 16;
/// How many ancestors are looked at before the answer is no.
const MAX_ANCESTORS: usize = 1024;
/// How many roots are noted with a grain.
const MAX_ROOTS: usize = 64;
/// Noted instead of more roots than that: nothing may supersede such a grain.
const TOO_MANY_ROOTS: Sequence = Sequence::new(u64::MAX);

/// The outcome over all policies that bear on a supersession.
pub(super) enum Verdict {
    /// Every one allows it.
    Allowed { rules: Vec<&'static str>, needs_review: bool },
    /// One refuses; `by` says which.
    Refused { rule: Rule, by: ContentAddress },
}

/// An ancestor to be asked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ancestor {
    sequence: Sequence,
    /// Whether it is an earlier version of the grain, not merely a source of it.
    is_version: bool,
}

/// What the policies asked so far have answered.
struct Inquiry<'r> {
    request: Request<'r>,
    rules: Vec<&'static str>,
    needs_review: bool,
}

impl Inquiry<'_> {
    /// Asks the policy in a blob where it bears on the request: versions always, sources by their
    /// scope. Answers with the rule that refuses.
    fn ask(&mut self, blob: &[u8], is_version: bool) -> Result<Option<Rule>> {
        let decision = with_fields(blob, |view| {
            let policy = Policy::of(view);
            let bears = is_version || (policy.protects() && policy.covers_derived());
            Ok(bears.then(|| policy.decide(&self.request)))
        })?;
        match decision {
            Some(Decision::Deny(rule)) => return Ok(Some(rule)),
            Some(Decision::Allow { rule, needs_review }) => {
                self.rules.push(rule.name());
                self.needs_review |= needs_review;
            }
            None => {}
        }
        Ok(None)
    }
}

impl Plan<'_> {
    /// Asks the policy of the grain to be superseded and those of its ancestors.
    pub(super) fn decide(&self, old: &ContentAddress, new: &Grain) -> Result<Verdict> {
        let justification = new.text("supersession_justification");
        let request = Request { justification, now: self.now };
        let mut inquiry = Inquiry { request, rules: Vec::new(), needs_review: false };
        let mut queue = VecDeque::new();
        for parent in std::iter::once(*old).chain(disguise::parents(new)) {
            if let Some(sequence) = self.locate(&parent)? {
                queue.push_back((Ancestor { sequence, is_version: parent == *old }, 1));
            }
        }
        let mut asked: HashMap<Sequence, bool> = HashMap::new();
        let mut roots = BTreeSet::new();
        while let Some((ancestor, hops)) = queue.pop_front() {
            let Ancestor { sequence, is_version } = ancestor;
            // Met as a source first, an earlier version is still to be asked as what it is.
            if asked.get(&sequence).is_some_and(|as_version| *as_version >= is_version) {
                continue;
            }
            asked.insert(sequence, is_version);
            if asked.len() > MAX_ANCESTORS {
                return Ok(Verdict::Refused { rule: Rule::TooManyAncestors, by: *old });
            }
            let (address, blob) = self.at(sequence)?;
            if let Some(rule) = inquiry.ask(&blob, is_version)? {
                return Ok(Verdict::Refused { rule, by: address });
            }
            let beyond = self.roots(sequence)?.into_iter();
            roots.extend(beyond.map(|sequence| Ancestor { sequence, is_version }));
            if hops < MAX_HOPS {
                let parents = self.parents_of(ancestor, &address, &blob)?;
                queue.extend(parents.into_iter().map(|parent| (parent, hops + 1)));
            }
        }
        self.ask_roots(&roots, &asked, inquiry)
    }

    /// What protects a grain that is to be stored, beside its own policy: the roots of its parents
    /// that reach it. `old` is the parent it supersedes: its protection reaches its successor
    /// whatever its scope.
    pub(super) fn roots_for(
        &self,
        grain: &Grain,
        old: Option<&ContentAddress>,
    ) -> Result<Vec<Sequence>> {
        let mut roots = BTreeSet::new();
        for address in disguise::parents(grain) {
            let Some(parent) = self.locate(&address)? else { continue };
            let is_version = old == Some(&address);
            for candidate in self.roots(parent)? {
                if candidate == TOO_MANY_ROOTS || self.reaches(candidate, is_version)? {
                    roots.insert(candidate);
                }
                if roots.len() > MAX_ROOTS || candidate == TOO_MANY_ROOTS {
                    return Ok(vec![TOO_MANY_ROOTS]);
                }
            }
        }
        Ok(roots.into_iter().collect())
    }

    fn ask_roots(
        &self,
        roots: &BTreeSet<Ancestor>,
        asked: &HashMap<Sequence, bool>,
        mut inquiry: Inquiry<'_>,
    ) -> Result<Verdict> {
        for Ancestor { sequence, is_version } in roots {
            if asked.get(sequence).is_some_and(|as_version| as_version >= is_version) {
                continue;
            }
            if *sequence == TOO_MANY_ROOTS {
                let by = ContentAddress::from_bytes([0; 32]);
                return Ok(Verdict::Refused { rule: Rule::TooManyAncestors, by });
            }
            let (address, blob) = self.at(*sequence)?;
            if let Some(rule) = inquiry.ask(&blob, *is_version)? {
                return Ok(Verdict::Refused { rule, by: address });
            }
        }
        Ok(Verdict::Allowed { rules: inquiry.rules, needs_review: inquiry.needs_review })
    }

    /// The stored parents of an ancestor, each told apart as version or source.
    fn parents_of(
        &self,
        child: Ancestor,
        address: &ContentAddress,
        blob: &[u8],
    ) -> Result<Vec<Ancestor>> {
        let named: BTreeSet<ContentAddress> = with_fields(blob, |view| {
            let parents = view.get("derived_from").and_then(|parents| parents.as_array());
            let parents = parents.into_iter().flat_map(|parents| parents.iter());
            Ok(parents.filter_map(|parent| parent.as_str()?.parse().ok()).collect())
        })?;
        let mut parents = Vec::new();
        for parent in named.into_iter().take(MAX_ANCESTORS + 1) {
            let Some(sequence) = self.locate(&parent)? else { continue };
            let successor = self.state(sequence)?.superseded_by;
            let is_version = child.is_version && successor == Some(*address);
            parents.push(Ancestor { sequence, is_version });
        }
        Ok(parents)
    }

    /// Whether the policy of a stored grain protects what comes after it.
    fn reaches(&self, sequence: Sequence, is_version: bool) -> Result<bool> {
        let (_, blob) = self.at(sequence)?;
        with_fields(&blob, |view| {
            let policy = Policy::of(view);
            Ok(policy.protects() && (is_version || policy.covers_derived()))
        })
    }
}
