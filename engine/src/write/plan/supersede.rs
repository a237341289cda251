//! Replacement of a grain by another: supersession subject to all applicable policies (OMS 28.4).

use crate::disk::blob::{stored_grain, with_fields};
use grainstore_format::EpochMs;
use grainstore_format::{ContentAddress, Grain, GrainState, GrainType};
use grainstore_index::Sequence;

use crate::base::error::{Error, ErrorKind, Result};
use crate::rules::policy::{
    PolicyAction, PolicyAttempt, PolicyDecision, PolicyRule, Proofs, ProtectionLink, RuleResult,
    check_ownership, decide,
};
use crate::state::audit::{AuditOperation, AuditRecord};
use crate::state::erasure::check_not_erased;
use crate::state::view::GrainRow;

use super::protection::GatheredProtectors;
use super::roots::merge_roots;
use super::withdrawal::{GRANTED_ANEW, is_withdrawn_by_third_party, withdrawn_grant};
use super::{PARENTS_FIELD, PreparedGrain, Principal, WritePlan, implicit_supersession};

/// The replacement made by a staged grain.
#[derive(Debug, Clone, Copy)]
pub(super) struct Replacement {
    pub(super) old: ContentAddress,
    /// True if the policies of the versions before no longer bind it (OMS 23.5).
    pub(super) released: bool,
}

impl Replacement {
    pub(super) fn new(old: &ContentAddress) -> Self {
        Self { old: *old, released: false }
    }
}

/// A checked supersession: the grain it would end, and the decision of the policies.
struct CheckedSupersession {
    row: GrainRow,
    decision: PolicyDecision,
    gathered: GatheredProtectors,
}

impl WritePlan<'_> {
    pub(super) fn supersede_one(
        &mut self,
        old: &ContentAddress,
        new: PreparedGrain,
        author: &Principal,
    ) -> Result<ContentAddress> {
        let address = new.blob.address();
        self.check_model_limit(&new.vectors, author)?;
        match self.check_supersession(old, &new, author)? {
            None => self.upgrade_envelope(&new, author)?,
            Some(checked) => self.apply_supersession(old, new, checked, author)?,
        }
        Ok(address)
    }

    /// Tries to replace `old`: returns the decision of the policies, if they were checked, and the outcome.
    pub(crate) fn try_supersede(
        &mut self,
        old: &ContentAddress,
        new: PreparedGrain,
        author: &Principal,
    ) -> (Option<PolicyDecision>, Result<()>) {
        match self.check_supersession(old, &new, author) {
            Err(error) => (None, Err(error)),
            Ok(None) => (None, Ok(())),
            Ok(Some(checked)) => {
                let decision = checked.decision.clone();
                (Some(decision), self.apply_supersession(old, new, checked, author))
            }
        }
    }

    /// Makes all checks before `old` is replaced; `None` if `new` has replaced it already.
    fn check_supersession(
        &mut self,
        old: &ContentAddress,
        new: &PreparedGrain,
        author: &Principal,
    ) -> Result<Option<CheckedSupersession>> {
        let address = new.blob.address();
        let row = self.visible_or_error(old, author)?;
        if self.locate(&address)?.is_none() {
            check_not_erased(self.view, &address, &new.grain)?;
        }
        self.check_basis(new, author)?;
        match row.state.superseded_by {
            Some(by) if by == address => return Ok(None),
            Some(by) => {
                let by = self.display_address(&by, author)?;
                let message = format!("{old} is superseded already, by {by}");
                return Err(Error::new(ErrorKind::Conflict, message));
            }
            None => {}
        }
        implicit_supersession::check_successor(old, &row, &new.grain)?;
        let signer = new.proofs.signer.as_deref();
        if let Err(error) = self.check_same_parties((old, &row), &new.grain, signer, author) {
            let rule = PolicyRule::WithdrawalByOthers.info();
            let entry = supersession_record(old, &address, author, vec![rule.name], true);
            self.audit.push(AuditRecord { results: vec![RuleResult::Fail], ..entry });
            let message = format!("cannot supersede {old}: {error}");
            return Err(Error::new(error.kind(), message));
        }
        self.check_parents(new, Some(old), author)?;
        let (decision, gathered) =
            self.decide_supersession(old, &row, &new.grain, &new.proofs, author)?;
        Ok(Some(CheckedSupersession { row, decision, gathered }))
    }

    /// Applies the decision.
    fn apply_supersession(
        &mut self,
        old: &ContentAddress,
        new: PreparedGrain,
        checked: CheckedSupersession,
        author: &Principal,
    ) -> Result<()> {
        let address = new.blob.address();
        let CheckedSupersession { row, decision, gathered } = checked;
        if let Some(rule) = decision.refusal() {
            let refused_by = gathered.refusing_protector(&decision).map(|(by, _)| by);
            let entry = supersession_record(old, &address, author, decision.names(), true);
            let claimed = new.proofs.claimed_kid();
            let results =
                decision.results(new.proofs.is_unchecked(), self.locked_accepts_signature);
            self.audit.push(AuditRecord { refused_by, claimed_kid: claimed, results, ..entry });
            let what = format!("cannot supersede {old}");
            let denied = self.denial_error(&what, rule, &decision, &gathered, author)?;
            return Err(new.proofs.add_failure_reason(denied));
        }
        self.check_ownership(Some(old), &new, author)?;
        self.check_dependencies(&new.grain, author)?;
        // A withdrawal is marked when it comes, and not again: the mark puts off what it erases.
        let is_marked = withdrawn_grant(&new.grain).is_none() || self.locate(&address)?.is_none();
        let to_review =
            self.check_rules(Some(old), &new, author)? || is_withdrawn_by_third_party(&new, author);
        self.upgrade_envelope(&new, author)?;
        let signer = new.proofs.signer.as_deref();
        let anew = self.is_granted_anew(&row, &new.grain, signer, author)?;
        let is_goal = new.grain.grain_type() == GrainType::Goal;
        let released = is_goal && !decision.keeps_older_policies;
        let sequence = self.stage_successor(new, Replacement { old: *old, released })?;
        self.mark_for_review(sequence, is_marked && (decision.needs_review || to_review))?;
        self.end_grain(&row, address)?;
        let mut rules = decision.names();
        rules.extend(anew.then_some(GRANTED_ANEW));
        self.audit.push(supersession_record(old, &address, author, rules, false));
        Ok(())
    }

    /// Refuses a declaration of ownership by the agent it is about (OMS 12.5.3); `old` is the grain it would
    /// replace.
    ///
    /// # Errors
    /// `ERR_POLICY`.
    pub(super) fn check_ownership(
        &mut self,
        old: Option<&ContentAddress>,
        new: &PreparedGrain,
        author: &Principal,
    ) -> Result<()> {
        let signer = new.proofs.signer.as_deref();
        check_ownership(&new.grain, signer, author.actor.as_deref()).inspect_err(|_| {
            let address = new.blob.address();
            let rules = vec![PolicyRule::OwnOwnership.info().name];
            self.audit.push(match old {
                Some(old) => supersession_record(old, &address, author, rules, true),
                None => AuditRecord {
                    operation: AuditOperation::Put,
                    subjects: vec![address],
                    ..supersession_record(&address, &address, author, rules, true)
                },
            });
        })
    }

    /// Decides the replacement of `old` under all applicable policies.
    pub(super) fn decide_supersession(
        &self,
        old: &ContentAddress,
        old_row: &GrainRow,
        grain: &Grain,
        proofs: &Proofs,
        author: &Principal,
    ) -> Result<(PolicyDecision, GatheredProtectors)> {
        let transition = self.transition(old, old_row, grain, proofs, author)?;
        // The signer of a grain that merely derives from this one has not agreed to its end.
        let means_it = with_fields(&old_row.blob, |stored| {
            Ok(implicit_supersession::is_intended_successor(grain, stored))
        })?;
        let signer = proofs.signer.clone().filter(|_| means_it);
        let proofs = &Proofs { signer, ..proofs.clone() };
        let gathered = self.protectors(old, Some(grain), transition)?;
        let attempt = PolicyAttempt {
            act: PolicyAction::Supersede,
            now: self.now,
            justification: grain.text("supersession_justification"),
            actor: author.actor.as_deref(),
            is_operator: author.authority.is_operator(),
            proofs,
            evidence: self.count_evidence(old, transition, &gathered, author)?,
            locked_accepts_signature: self.locked_accepts_signature,
            may_review: false,
        };
        Ok((decide(&attempt, &gathered.facts), gathered))
    }

    /// The error of a refused attempt, naming the refusing grain if it is not the target itself.
    pub(super) fn denial_error(
        &self,
        what: &str,
        rule: PolicyRule,
        decision: &PolicyDecision,
        gathered: &GatheredProtectors,
        author: &Principal,
    ) -> Result<Error> {
        let by = match gathered.refusing_protector(decision) {
            None => String::new(),
            Some((by, link)) => {
                let what = match link {
                    ProtectionLink::Ancestor => "what it derives from",
                    ProtectionLink::NewerVersion => "a newer version of it",
                    ProtectionLink::ReleasedVersion | ProtectionLink::TargetOrOlder => {
                        "an older version of it"
                    }
                };
                format!(", by {what}: {}", self.display_address(&by, author)?)
            }
        };
        let kind = match rule {
            PolicyRule::NoEvidence => ErrorKind::EvidenceRequired,
            _ => ErrorKind::InvalidationDenied,
        };
        Ok(Error::new(kind, format!("{what}: {}{by}", rule.info().text)))
    }

    /// Marks a grain for review if `needs_review` is true.
    pub(crate) fn mark_for_review(&mut self, sequence: Sequence, needs_review: bool) -> Result<()> {
        if needs_review {
            let state = GrainState { needs_review, ..self.state(sequence)? };
            self.states.insert(sequence, state);
        }
        Ok(())
    }

    /// Formats a grain for a message: its address, if the caller can see it.
    pub(super) fn display_address(
        &self,
        address: &ContentAddress,
        author: &Principal,
    ) -> Result<String> {
        Ok(match self.visible(address, author)? {
            Some(_) => address.to_string(),
            None => "outside this session".to_owned(),
        })
    }

    /// Ends a grain that another replaced; the next audit record describes it.
    pub(super) fn end_grain(&mut self, old: &GrainRow, by: ContentAddress) -> Result<()> {
        self.end_without_record(old, by)?;
        self.ends_with_next_record(old.sequence);
        Ok(())
    }

    /// Like [`WritePlan::end_grain`], without an audit record of its own.
    pub(super) fn end_without_record(&mut self, old: &GrainRow, by: ContentAddress) -> Result<()> {
        let ended = GrainState {
            superseded_by: Some(by),
            system_valid_to: Some(self.end_time(old)?),
            ..old.state
        };
        self.states.insert(old.sequence, ended);
        Ok(())
    }

    /// Returns the end of a grain that ends now. An earlier end (contradiction, retraction or a stated end)
    /// stays.
    pub(super) fn end_time(&self, row: &GrainRow) -> Result<EpochMs> {
        let now = self.now.max(known_since(row)?);
        Ok(row.state.system_valid_to.map_or(now, |ended| ended.min(now)))
    }

    /// Records that the next audit record describes the end of a grain, unless an earlier one does.
    pub(super) fn ends_with_next_record(&mut self, sequence: Sequence) {
        if !self.ended.contains_key(&sequence) {
            self.ended.insert(sequence, self.audit.len());
        }
    }

    /// Stages a successor, or uses the current grain with the same bytes.
    fn stage_successor(&mut self, new: PreparedGrain, succession: Replacement) -> Result<Sequence> {
        let address = new.blob.address();
        let Some(sequence) = self.locate(&address)? else {
            return self.stage(new, Some(succession));
        };
        if !self.state(sequence)?.is_current() {
            let message = format!("{address} is stored already and not current any more");
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        let Replacement { old, released } = succession;
        let more = self.roots_of_new(&new.grain, Some(&old), released)?.into_iter().collect();
        let roots = merge_roots(sequence, &self.roots(sequence)?, &more);
        // Its descendants need no update: it derived from the old grain before, so they have the roots that
        // extend to them.
        if !roots.is_empty() {
            self.roots.insert(sequence, roots);
        }
        Ok(sequence)
    }

    /// Returns `true` if the stored grain is this one from an earlier attempt: equal except for the parent
    /// that the supersession added.
    pub(super) fn is_retry(&self, stored: &ContentAddress, grain: &Grain) -> Result<bool> {
        let Some(row) = self.find(stored)? else { return Ok(false) };
        let stored = stored_grain(&row.blob)?;
        let same = |a: &Grain, b: &Grain| {
            a.fields()
                .iter()
                .all(|(name, value)| name == PARENTS_FIELD || b.get(name) == Some(value))
        };
        let mut parents = grain.list(PARENTS_FIELD).unwrap_or_default().iter();
        let kept = stored.list(PARENTS_FIELD).unwrap_or_default();
        Ok(same(&stored, grain) && same(grain, &stored) && parents.all(|p| kept.contains(p)))
    }
}

/// The time since which the store knows a grain (OMS 15.2); it cannot end earlier.
pub(super) fn known_since(row: &GrainRow) -> Result<EpochMs> {
    with_fields(&row.blob, |grain| {
        let from = grain.int("system_valid_from").or(grain.int("created_at"));
        Ok(EpochMs::new(from.unwrap_or_default()))
    })
}

pub(super) fn supersession_record(
    old: &ContentAddress,
    new: &ContentAddress,
    author: &Principal,
    rules: Vec<&'static str>,
    refused: bool,
) -> AuditRecord {
    AuditRecord { rules, refused, ..author.record(AuditOperation::Supersede, vec![*old, *new]) }
}
