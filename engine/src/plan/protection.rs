//! Who protects a grain that is to be superseded: the grain itself, the versions before it, and
//! what it derives from (OMS 23.6, 23.7 bypass 3).

use std::collections::{HashSet, VecDeque};

use grainstore_format::{ContentAddress, Grain};
use grainstore_index::Sequence;

use crate::error::Result;
use crate::policy::{Decision, Policy, Request, Rule};
use crate::view::{Row, with_fields};

use super::{Plan, disguise};

/// How far derivation is followed (OMS 23.6).
const MAX_HOPS: usize = 16;
/// How many ancestors are looked at before the answer is no.
const MAX_ANCESTORS: usize = 1024;

/// The outcome over all policies that bear on a supersession.
pub(super) enum Verdict {
    /// Every one allows it.
    Allowed { rules: Vec<&'static str>, needs_review: bool },
    /// One refuses; `by` says which.
    Refused { rule: Rule, by: ContentAddress },
}

/// An ancestor to be asked.
struct Ancestor {
    address: ContentAddress,
    hops: usize,
    /// Whether it is an earlier version of the grain, not merely a source of it.
    is_version: bool,
}

impl Plan<'_> {
    /// Asks the policy of the grain to be superseded and those of its ancestors.
    pub(super) fn decide(&self, old: &ContentAddress, row: &Row, new: &Grain) -> Result<Verdict> {
        let request =
            Request { justification: new.text("supersession_justification"), now: self.now };
        let mut rules = Vec::new();
        let mut needs_review = false;
        let mut seen = HashSet::new();
        let mut queue = VecDeque::from([Ancestor { address: *old, hops: 0, is_version: true }]);
        queue.extend(
            disguise::parents(new).filter(|parent| parent != old).map(|address| Ancestor {
                address,
                hops: 1,
                is_version: false,
            }),
        );
        let mut root = row.record.protected_root;
        while let Some(ancestor) = queue.pop_front() {
            // Met as a source first, an earlier version is still to be asked as what it is.
            if !seen.insert((ancestor.address, ancestor.is_version))
                || (!ancestor.is_version && seen.contains(&(ancestor.address, true)))
            {
                continue;
            }
            if seen.len() > MAX_ANCESTORS {
                return Ok(Verdict::Refused { rule: Rule::TooManyAncestors, by: *old });
            }
            let Some(row) = self.find(&ancestor.address)? else {
                continue;
            };
            match ask(&row, ancestor.is_version, &request)? {
                Some(Decision::Deny(rule)) => {
                    return Ok(Verdict::Refused { rule, by: ancestor.address });
                }
                Some(Decision::Allow { rule, needs_review: review }) => {
                    rules.push(rule.name());
                    needs_review |= review;
                }
                None => {}
            }
            if ancestor.hops >= MAX_HOPS {
                root = root.or(row.record.protected_root);
                continue;
            }
            self.enqueue_parents(&ancestor, &row, &mut queue)?;
        }
        self.ask_root(root, &seen, &request, Verdict::Allowed { rules, needs_review })
    }

    fn enqueue_parents(
        &self,
        child: &Ancestor,
        row: &Row,
        queue: &mut VecDeque<Ancestor>,
    ) -> Result<()> {
        let grain = with_fields(&row.blob, |view| {
            let parents = view.get("derived_from").and_then(|parents| parents.as_array());
            let parents = parents.into_iter().flat_map(|parents| {
                parents.iter().filter_map(|p| p.as_str().and_then(|text| text.parse().ok()))
            });
            Ok(parents.collect::<Vec<ContentAddress>>())
        })?;
        for address in grain {
            let Some(parent) = self.find(&address)? else {
                continue;
            };
            let is_version =
                child.is_version && parent.record.state.superseded_by == Some(child.address);
            queue.push_back(Ancestor { address, hops: child.hops + 1, is_version });
        }
        Ok(())
    }

    /// Beyond the hops that are followed, the root noted when a grain was stored still protects.
    fn ask_root(
        &self,
        root: Option<Sequence>,
        seen: &HashSet<(ContentAddress, bool)>,
        request: &Request<'_>,
        verdict: Verdict,
    ) -> Result<Verdict> {
        let Some(root) = root else { return Ok(verdict) };
        let Some((address, blob)) = self.at(root)? else {
            return Ok(verdict);
        };
        if seen.contains(&(address, true)) {
            return Ok(verdict);
        }
        let decision = with_fields(&blob, |view| Ok(Policy::of(view).decide(request)))?;
        match (decision, verdict) {
            (Decision::Deny(rule), _) => Ok(Verdict::Refused { rule, by: address }),
            (
                Decision::Allow { rule, needs_review },
                Verdict::Allowed { mut rules, needs_review: before },
            ) => {
                rules.push(rule.name());
                Ok(Verdict::Allowed { rules, needs_review: needs_review || before })
            }
            (_, refused) => Ok(refused),
        }
    }

    /// The nearest ancestor whose protection reaches a grain that is to be stored: a version before
    /// it whatever the scope, other ancestors where their scope is subtree.
    pub(super) fn protected_root(
        &self,
        grain: &Grain,
        old: Option<&ContentAddress>,
    ) -> Result<Option<Sequence>> {
        for address in disguise::parents(grain).take(MAX_ANCESTORS) {
            let Some(parent) = self.find(&address)? else {
                continue;
            };
            let is_version = old == Some(&address);
            if reaches(&parent.blob, is_version)? {
                return Ok(Some(parent.sequence));
            }
            let Some(root) = parent.record.protected_root else {
                continue;
            };
            let reached = match self.at(root)? {
                Some((_, blob)) => reaches(&blob, is_version)?,
                None => false,
            };
            if reached {
                return Ok(Some(root));
            }
        }
        Ok(None)
    }

    /// The grain at a place of the log, staged or stored.
    fn at(&self, sequence: Sequence) -> Result<Option<(ContentAddress, Vec<u8>)>> {
        if let Some(staged) = self.grains.iter().find(|staged| staged.sequence == sequence) {
            let blob = &staged.prepared.blob;
            return Ok(Some((blob.address(), blob.bytes().to_vec())));
        }
        let blob = self.view.with_blob(sequence, |blob| Ok(blob.to_vec()))?;
        Ok(Some((ContentAddress::of(&blob), blob)))
    }
}

/// Whether the policy in a blob protects what comes after it.
fn reaches(blob: &[u8], is_version: bool) -> Result<bool> {
    with_fields(blob, |view| {
        let policy = Policy::of(view);
        Ok(policy.protects() && (is_version || policy.covers_derived()))
    })
}

/// The policy's answer where it bears on the request: versions always, sources by their scope.
fn ask(row: &Row, is_version: bool, request: &Request<'_>) -> Result<Option<Decision>> {
    with_fields(&row.blob, |view| {
        let policy = Policy::of(view);
        let bears = is_version || (policy.protects() && policy.covers_derived());
        Ok(bears.then(|| policy.decide(request)))
    })
}
