//! State changes of a stored grain that write no other grain: contradiction, verification, litigation hold
//! (OMS 23.1, 23.7 bypass 1, 28.3; rulings 38 and 51).

use grainstore_format::{ContentAddress, EpochMs, GrainState, VerificationStatus};

use crate::base::error::{Error, ErrorKind, Result};
use crate::disk::blob::{is_withdrawal, with_fields};
use crate::rules::policy::{
    PolicyAction, PolicyAttempt, PolicyDecision, PolicyRule, Proofs, decide, involves_related,
};
use crate::state::audit::{AuditOperation, AuditRecord};
use crate::state::view::GrainRow;

use super::{Principal, WritePlan};

/// A state change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StateChange {
    Contradict,
    /// The grain ended at this time, for an unknown reason: stated by imported files only (OMS 11.7).
    End(EpochMs),
    Status(VerificationStatus),
    Hold,
    LiftHold,
}

impl StateChange {
    fn operation(self) -> AuditOperation {
        match self {
            Self::Contradict => AuditOperation::Contradict,
            Self::End(_) => AuditOperation::End,
            Self::Status(status) => AuditOperation::SetVerification(status),
            Self::Hold => AuditOperation::Hold,
            Self::LiftHold => AuditOperation::LiftHold,
        }
    }

    /// Returns the policy action of the change in this state; `None` if it only adds protection.
    fn act(self, state: &GrainState) -> Option<PolicyAction> {
        match self {
            // An end takes the grain out of use, as a contradiction does.
            Self::Contradict | Self::End(_) => Some(PolicyAction::Contradict),
            Self::Status(to) => Some(PolicyAction::from_status(state.verification_status, to)),
            Self::Hold => None,
            Self::LiftHold => Some(PolicyAction::LiftHold),
        }
    }

    /// Returns `true` if the grain already has the state.
    fn is_done(self, state: &GrainState) -> bool {
        match self {
            Self::Contradict => state.contradicted,
            Self::End(at) => !is_earlier_end(at, state),
            Self::Status(status) => state.verification_status == status,
            Self::Hold | Self::LiftHold => false,
        }
    }
}

impl WritePlan<'_> {
    /// Stages a state change of a stored grain.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND`; `ERR_WITHDRAWN`; `ERR_CONFLICT` for another status of a retracted grain and for
    /// lifting a hold that does not exist; `ERR_INVALIDATION_DENIED`; `ERR_ACCESS` for a session with a
    /// namespace or a user that would lift a hold as the operator.
    pub(crate) fn change_state(
        &mut self,
        address: &ContentAddress,
        mark: StateChange,
        proofs: &Proofs,
        author: &Principal,
    ) -> Result<()> {
        self.all_or_nothing(|plan| plan.change_one_state(address, mark, proofs, author))
    }

    pub(super) fn change_one_state(
        &mut self,
        address: &ContentAddress,
        mark: StateChange,
        proofs: &Proofs,
        author: &Principal,
    ) -> Result<()> {
        let row = match mark {
            // A hold also protects hidden grains from erasure (ruling 20).
            StateChange::Hold | StateChange::LiftHold => self.in_scope_or_error(address, author)?,
            StateChange::Contradict | StateChange::End(_) | StateChange::Status(_) => {
                self.visible_or_error(address, author)?
            }
        };
        if mark.is_done(&row.state) {
            return Ok(());
        }
        check_applies(address, mark, &row.state)?;
        let act = mark.act(&row.state);
        let decided = act.map(|act| self.permit(&row, (address, mark, act), proofs, author));
        let decision = decided.transpose()?;
        let state = self.changed_state(&row, mark)?;
        let needs_review = decision.as_ref().is_some_and(|decision| decision.needs_review);
        // The mark of a withdrawal says that a third party withdrew, and puts off what it erases.
        let needs_review =
            needs_review && !with_fields(&row.blob, |grain| Ok(is_withdrawal(grain)))?;
        let state = GrainState { needs_review: state.needs_review || needs_review, ..state };
        if !state.is_current() || matches!(mark, StateChange::End(_)) {
            self.ends_with_next_record(row.sequence);
        }
        self.states.insert(row.sequence, state);
        let rules = decision.map(|decision| decision.names()).unwrap_or_default();
        self.audit.push(state_change_record(address, mark, author, rules, false));
        Ok(())
    }

    /// Decides whether a policy lets a grain be marked, and records a refusal.
    ///
    /// # Errors
    /// `ERR_INVALIDATION_DENIED`, `ERR_ACCESS`; `ERR_INTEGRITY`, `ERR_IO`.
    fn permit(
        &mut self,
        row: &GrainRow,
        (address, mark, act): (&ContentAddress, StateChange, PolicyAction),
        proofs: &Proofs,
        author: &Principal,
    ) -> Result<PolicyDecision> {
        let reviews = mark == StateChange::Status(VerificationStatus::Verified)
            && with_fields(&row.blob, |grain| Ok(grain.requires_review()))?;
        let act = if reviews { PolicyAction::Review } else { act };
        let attempt = PolicyAttempt {
            act,
            now: self.now,
            justification: author.reason.as_deref(),
            actor: author.actor.as_deref(),
            is_operator: author.is_store_operator(),
            proofs,
            evidence: 0,
            locked_accepts_signature: self.locked_accepts_signature,
            may_review: author.may_review(),
        };
        let mut gathered = match involves_related(act) {
            true => self.protectors(address, None, None)?,
            false => self.target_only(row, address)?,
        };
        if let Some(target) = gathered.facts.protectors.first_mut().filter(|_| reviews) {
            target.signer = self.claimed_signer(address, row.sequence, &row.blob)?;
        }
        let decision = decide(&attempt, &gathered.facts);
        if let Some(rule) = decision.refusal() {
            let refused_by = gathered.refusing_protector(&decision).map(|(by, _)| by);
            let entry = state_change_record(address, mark, author, decision.names(), true);
            let claimed = proofs.claimed_kid();
            let results = decision.results(proofs.is_unchecked(), self.locked_accepts_signature);
            self.audit.push(AuditRecord { refused_by, claimed_kid: claimed, results, ..entry });
            let verb = if let StateChange::End(_) = mark { "end" } else { action_verb(act) };
            let what = format!("cannot {verb} {address}");
            let denied = self.denial_error(&what, rule, &decision, &gathered, author)?;
            let denied = proofs.add_failure_reason(denied);
            if rule == PolicyRule::LiftNotOperator && author.authority.is_operator() {
                return Err(limited_session_error(&denied));
            }
            return Err(match remedy(rule) {
                Some(hint) => denied.with_hint(hint),
                None => denied,
            });
        }
        Ok(decision)
    }

    /// Returns the new state of a grain.
    fn changed_state(&self, row: &GrainRow, mark: StateChange) -> Result<GrainState> {
        let ended = || -> Result<_> { Ok(Some(self.end_time(row)?)) };
        let state = row.state;
        Ok(match mark {
            StateChange::Contradict => {
                GrainState { contradicted: true, system_valid_to: ended()?, ..state }
            }
            StateChange::End(at) => GrainState { system_valid_to: Some(at), ..state },
            StateChange::Status(VerificationStatus::Retracted) => GrainState {
                verification_status: VerificationStatus::Retracted,
                system_valid_to: ended()?,
                ..state
            },
            StateChange::Status(verification_status) => GrainState { verification_status, ..state },
            StateChange::Hold => GrainState { held: true, ..state },
            StateChange::LiftHold => GrainState { held: false, ..state },
        })
    }
}

/// Returns `true` if `at` is earlier than the end of a grain that is otherwise current.
pub(crate) fn is_earlier_end(at: EpochMs, state: &GrainState) -> bool {
    state.is_current() && state.system_valid_to.is_none_or(|end| at < end)
}

/// Checks that a change is possible in this state.
fn check_applies(address: &ContentAddress, mark: StateChange, state: &GrainState) -> Result<()> {
    match mark {
        StateChange::Status(_) if state.verification_status == VerificationStatus::Retracted => {
            let message = format!("{address} is retracted, and that is final");
            Err(Error::new(ErrorKind::Conflict, message)
                .with_hint("supersede it by a grain that says what is true"))
        }
        StateChange::LiftHold if !state.held => {
            let message = format!("no hold is on {address}");
            Err(Error::new(ErrorKind::Conflict, message)
                .with_hint("get shows in its state whether a grain is held"))
        }
        _ => Ok(()),
    }
}

/// The refusal of a session whose actor is the operator, but whose scope is limited.
fn limited_session_error(denied: &Error) -> Error {
    Error::new(ErrorKind::Access, denied.to_string())
        .with_hint("lift it as the operator, in a session without a namespace and a user")
}

/// Returns the remedy for a hold that was not lifted or a review that was not cleared.
fn remedy(rule: PolicyRule) -> Option<&'static str> {
    match rule {
        PolicyRule::LiftNotOperator => {
            Some("lift it as the operator: in a session without an actor")
        }
        PolicyRule::LiftNotSigned => Some(
            "give the proof of a signer its policy names as cose; `grain prove lift-hold` makes one",
        ),
        PolicyRule::NotReviewer => Some(
            "set it as the operator, in a session without a namespace and a user, or as an actor that is named \
             as a reviewer where the store is opened (--reviewer DID)",
        ),
        _ => None,
    }
}

fn action_verb(act: PolicyAction) -> &'static str {
    match act {
        PolicyAction::Supersede => "supersede",
        PolicyAction::Contradict => "contradict",
        PolicyAction::Contest => "contest",
        PolicyAction::Retract => "retract",
        PolicyAction::Verify | PolicyAction::Review => "verify",
        PolicyAction::LiftHold => "lift the hold on",
    }
}

fn state_change_record(
    address: &ContentAddress,
    mark: StateChange,
    author: &Principal,
    rules: Vec<&'static str>,
    refused: bool,
) -> AuditRecord {
    AuditRecord { rules, refused, ..author.record(mark.operation(), vec![*address]) }
}
