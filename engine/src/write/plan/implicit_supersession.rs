//! Distinguishes a supersession from a put (OMS 17.2, ruling 18): fields that a put may not have, and parents
//! that make a grain a successor.

use std::collections::{BTreeSet, HashMap};

use grainstore_format::{ContentAddress, Grain, GrainRef, GrainType, Value};
use grainstore_index::Sequence;

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::blob::{is_withdrawal, with_fields};
use crate::rules::policy::{PolicyRule, PolicyTerms};
use crate::state::audit::AuditRecord;
use crate::state::view::GrainRow;

use super::roots::{RELEASED, TOO_MANY_ROOTS};
use super::supersede::supersession_record;
use super::{PreparedGrain, Principal, PutOutcome, WritePlan};

/// Fields that state that a grain supersedes another.
const SUPERSESSION_FIELDS: [&str; 5] = [
    "supersession_justification",
    "supersession_auth",
    "invalidation_type",
    "invalidation_reason",
    "invalidation_initiator",
];

/// Grains that are looked at, for all parents together, to find older versions of a grain.
const MAX_OLDER_VERSIONS: usize = 10_000;

/// A grain of an import that would replace others without a supersession.
#[derive(Debug)]
pub(crate) struct ImplicitSupersession {
    pub(crate) address: ContentAddress,
    /// The grains it would replace.
    pub(crate) replaced: Vec<ContentAddress>,
    /// The first of them that a policy or a hold protects.
    pub(crate) protected: Option<ContentAddress>,
}

/// Returns `true` if a grain itself states that it replaces `stored`: as its next version, or by a field that
/// no put may have.
pub(super) fn is_intended_successor(new: &Grain, stored: &GrainRef<'_>) -> bool {
    // A grain without subject and relation cannot be compared with its next version by them.
    let has_triple = stored.get("subject").is_some() && stored.get("relation").is_some();
    let says_so = SUPERSESSION_FIELDS.iter().any(|name| new.get(name).is_some());
    says_so
        || !has_triple
        || (!is_consolidation(new, parents(new).len()) && is_next_version(new, stored))
}

/// Checks that a grain can succeed `old`: it names it as a parent and has its type.
///
/// # Errors
/// `ERR_SCHEMA`.
pub(super) fn check_successor(old: &ContentAddress, row: &GrainRow, new: &Grain) -> Result<()> {
    let schema = |message: String| {
        Error::new(ErrorKind::Format(grainstore_format::ErrorKind::Schema), message)
    };
    let old_type = with_fields(&row.blob, |view| Ok(view.grain_type()))?;
    if old_type != new.grain_type() {
        let message =
            format!("a {old_type} is superseded by its own type, not {}", new.grain_type());
        return Err(schema(message));
    }
    if !parents(new).contains(old) {
        return Err(schema(format!("derived_from of the new grain must contain {old}")));
    }
    Ok(())
}

/// Returns the distinct addresses a grain derives from; citations are not parents.
pub(crate) fn parents(grain: &Grain) -> BTreeSet<ContentAddress> {
    grain.texts("derived_from").filter_map(|text| text.parse().ok()).collect()
}

impl WritePlan<'_> {
    /// Refuses a put with a field that only a supersession may have.
    ///
    /// # Errors
    /// `ERR_SUPERSEDE_REQUIRED`.
    pub(super) fn check_supersession_fields(
        &mut self,
        new: &PreparedGrain,
        author: &Principal,
    ) -> Result<()> {
        let Some(name) = SUPERSESSION_FIELDS.iter().find(|name| new.grain.get(name).is_some())
        else {
            return Ok(());
        };
        let replaced = self.implicitly_replaced(&new.grain, None, author)?;
        let what = format!("{name} says that this grain replaces another");
        Err(self.implicit_supersession_error(&replaced, new, author, what)?)
    }

    /// Refuses a grain that would implicitly replace one of its parents, other than `old` and the older versions of that,
    /// which a copy of it names too.
    ///
    /// # Errors
    /// `ERR_SUPERSEDE_REQUIRED`.
    pub(super) fn check_parents(
        &mut self,
        new: &PreparedGrain,
        old: Option<&ContentAddress>,
        author: &Principal,
    ) -> Result<()> {
        let replaced = self.implicitly_replaced(&new.grain, old, author)?;
        let Some(parent) = replaced.first() else { return Ok(()) };
        let what = format!(
            "it derives from {parent} and has the same type, namespace, subject and relation: that \
             is a supersession"
        );
        Err(self.implicit_supersession_error(&replaced, new, author, what)?)
    }

    /// Refuses grains staged from `first` on that would implicitly replace a parent that was staged after them.
    /// `puts` are the outcomes of the batch so far.
    ///
    /// # Errors
    /// `ERR_SUPERSEDE_REQUIRED`.
    pub(super) fn check_later_parents(
        &mut self,
        first: usize,
        puts: &[PutOutcome],
        author: &Principal,
    ) -> Result<()> {
        let staged = self.grains.get(first..).unwrap_or_default();
        let before_a_parent = staged.iter().filter(|child| {
            let is_later = |parent: &ContentAddress| {
                self.staged(parent).is_some_and(|parent| parent.sequence > child.sequence)
            };
            parents(&child.prepared.grain).iter().any(is_later)
        });
        let children: Vec<Sequence> = before_a_parent.map(|child| child.sequence).collect();
        for child in children {
            let Some(found) = self.implicit_supersession(child, author)? else { continue };
            if let Some(old) = found.protected {
                let entry = Self::implicit_supersession_record(&old, &found.address, author);
                self.audit.push(entry);
            }
            let parents: Vec<String> = found.replaced.iter().map(ToString::to_string).collect();
            let message = format!(
                "{} derives from {} of the same batch and has the same type, namespace, subject and \
                 relation: that is a supersession",
                found.address,
                parents.join(", ")
            );
            let refusal = Error::new(ErrorKind::SupersedeRequired, message);
            let at = puts.iter().position(|put| put.address() == found.address);
            return Err(match at {
                Some(at) => refusal.with_batch_index(at),
                None => refusal,
            });
        }
        Ok(())
    }

    /// Returns what a staged grain of an import would implicitly replace: each parent that it appears to be
    /// the next version of and that no state says it superseded. Shares the decision with `put`.
    ///
    /// # Errors
    /// `ERR_INTEGRITY`, `ERR_IO`.
    pub(crate) fn implicit_supersession(
        &self,
        sequence: Sequence,
        author: &Principal,
    ) -> Result<Option<ImplicitSupersession>> {
        let may_succeed = |grain: &GrainRef<'_>| {
            // A withdrawal of consent is not subject to policies.
            let withdraws = grain.grain_type() == GrainType::Consent && is_withdrawal(grain);
            !records_occurrence(grain.grain_type()) && !withdraws
        };
        let (address, new) = self.with_grain(sequence, |address, grain| {
            let new = may_succeed(grain).then(|| grain.to_grain()).transpose()?;
            Ok((address, new))
        })?;
        let Some(new) = new else { return Ok(None) };
        let (mut replaced, mut older) = (Vec::new(), HashMap::new());
        for parent in self.implicitly_replaced(&new, None, author)? {
            let Some(place) = self.locate(&parent)? else { continue };
            if !self.is_older_version(place, &address, &mut older)? {
                replaced.push(parent);
            }
        }
        if replaced.is_empty() {
            return Ok(None);
        }
        let protected = self.first_protected(&replaced)?;
        Ok(Some(ImplicitSupersession { address, replaced, protected }))
    }

    /// The audit entry of a grain that was left out because it would replace `old` without its policy.
    pub(crate) fn implicit_supersession_record(
        old: &ContentAddress,
        new: &ContentAddress,
        author: &Principal,
    ) -> AuditRecord {
        let rule = PolicyRule::DisguisedSupersession.info().name;
        supersession_record(old, new, author, vec![rule], true)
    }

    /// Returns the first of these that is protected.
    fn first_protected(&self, replaced: &[ContentAddress]) -> Result<Option<ContentAddress>> {
        for old in replaced {
            if self.is_protected(old)? {
                return Ok(Some(*old));
            }
        }
        Ok(None)
    }

    /// Returns `true` if a grain stands, in the end, in the place of the one at `place`. `known` has those that were met on
    /// the way to no other answer, so that many parents of one chain are walked once.
    fn is_older_version(
        &self,
        place: Sequence,
        newest: &ContentAddress,
        known: &mut HashMap<Sequence, bool>,
    ) -> Result<bool> {
        let (mut at, mut met, mut found) = (Some(place), Vec::new(), false);
        while let Some(place) = at {
            if let Some(known) = known.get(&place) {
                found = *known;
                break;
            }
            if known.len().saturating_add(met.len()) >= MAX_OLDER_VERSIONS {
                break;
            }
            met.push(place);
            let Some(by) = self.state(place)?.superseded_by else { break };
            if by == *newest {
                found = true;
                break;
            }
            at = self.locate(&by)?;
        }
        known.extend(met.into_iter().map(|place| (place, found)));
        Ok(found)
    }

    /// Returns the parents, other than `old` and its older versions, of which a grain appears to be the next version. Those
    /// that its author does not see count only if they are protected: a guess at what they say is not answered.
    fn implicitly_replaced(
        &self,
        new: &Grain,
        old: Option<&ContentAddress>,
        author: &Principal,
    ) -> Result<Vec<ContentAddress>> {
        let mut known = Vec::new();
        for parent in parents(new) {
            known.extend(self.locate(&parent)?.map(|sequence| (parent, sequence)));
        }
        let (mut replaced, mut older) = (Vec::new(), HashMap::new());
        if is_consolidation(new, known.len()) {
            return Ok(replaced);
        }
        for (parent, sequence) in known.into_iter().filter(|(parent, _)| old != Some(parent)) {
            if self.with_grain(sequence, |_, stored| Ok(is_next_version(new, stored)))?
                && !old.map_or(Ok(false), |old| self.is_older_version(sequence, old, &mut older))?
                && (self.visible(&parent, author)?.is_some() || self.is_protected(&parent)?)
            {
                replaced.push(parent);
            }
        }
        Ok(replaced)
    }

    /// The error for a grain that would implicitly replace these. The first protected one is recorded in the
    /// audit log.
    pub(super) fn implicit_supersession_error(
        &mut self,
        replaced: &[ContentAddress],
        new: &PreparedGrain,
        author: &Principal,
        what: String,
    ) -> Result<Error> {
        if let Some(old) = self.first_protected(replaced)? {
            self.audit.push(Self::implicit_supersession_record(&old, &new.blob.address(), author));
        }
        Ok(Error::new(ErrorKind::SupersedeRequired, what))
    }

    /// Returns `true` if a policy, its own or inherited, or a hold restricts the invalidation of a grain.
    fn is_protected(&self, address: &ContentAddress) -> Result<bool> {
        let Some(sequence) = self.locate(address)? else { return Ok(false) };
        let mut found = self.state(sequence)?.held;
        for root in self.roots(sequence)?.into_iter().filter(|root| *root != RELEASED) {
            found = found || root == TOO_MANY_ROOTS || !self.is_lifted_hold(root)?;
        }
        Ok(found)
    }

    /// Returns `true` for a policy of mode `hold` that was lifted, which no longer protects.
    fn is_lifted_hold(&self, root: Sequence) -> Result<bool> {
        let held = self.state(root)?.held;
        Ok(!held && self.with_grain(root, |_, grain| Ok(PolicyTerms::of(grain).holds))?)
    }
}

/// Returns `true` for types that record occurrences, which have no next version.
fn records_occurrence(grain_type: GrainType) -> bool {
    matches!(grain_type, GrainType::Event | GrainType::Action | GrainType::Observation)
}

/// Returns `true` if a grain with this many parents consolidates several (ruling 18). Its level alone is not
/// enough: with one parent it could be that grain's next version.
fn is_consolidation(new: &Grain, parents: usize) -> bool {
    parents >= 2 && new.int("consolidation_level").is_some_and(|level| level >= 1)
}

/// Returns `true` if `new` appears to be the next version of `stored`. Consolidations are not considered
/// here.
fn is_next_version(new: &Grain, stored: &GrainRef<'_>) -> bool {
    if records_occurrence(new.grain_type())
        || new.grain_type() != stored.grain_type()
        || new.partition() != stored.partition()
    {
        return false;
    }
    let same = |name: &str| {
        let value = stored.get(name).map(|value| value.to_value());
        value.as_ref().is_some_and(|value: &Value| new.get(name) == Some(value))
    };
    let same_triple = same("subject") && same("relation");
    same_triple || (new.grain_type() == GrainType::Goal && same("description"))
}
