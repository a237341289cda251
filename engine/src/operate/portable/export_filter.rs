//! The export rules: decides for each grain if it may leave the store, and collects the refusals. The one
//! exception is an access request: a user who asks for their own data gets all of it.

use std::collections::BTreeSet;

use grainstore_format::{ContentAddress, GrainRef, GrainState, VerificationStatus};
use grainstore_index::Sequence;

use crate::base::error::{Error, ErrorKind, Result};
use crate::handle::session::Session;
use crate::rules::policy::RuleResult;
use crate::rules::preset::{Action, ProcessingBasis, RuleFacts, RuleSet};
use crate::state::audit::{AuditOperation, AuditRecord};
use crate::state::basis::resolve_basis;
use crate::state::view::View;
use crate::state::visibility::VisibilityOutcome;

/// Most refused grains named by an audit entry.
const MAX_NAMED_GRAINS: usize = 16;
/// Name of the exception in the audit log.
const ACCESS_REQUEST: &str = "access_request";
/// Name in the audit log for a consent that does not permit the export.
const CONSENT: &str = "consent";

/// The recipient of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recipient {
    /// Anyone: the rules on export apply.
    Others,
    /// The user the grains are about, who asked for them.
    DataSubject,
}

/// The export rules, applied to one export.
pub(super) struct ExportFilter<'e> {
    session: &'e Session,
    view: &'e View,
    rules: std::sync::Arc<RuleSet>,
    /// Number of grains that may not leave.
    pub(super) refused: u64,
    /// Identifiers of the rules that refused.
    refused_by: BTreeSet<&'static str>,
    first_refusal: Option<(ContentAddress, Error)>,
    named: Vec<ContentAddress>,
    recipient: Recipient,
}

impl<'e> ExportFilter<'e> {
    pub(super) fn new(session: &'e Session, view: &'e View) -> Self {
        Self {
            session,
            view,
            rules: session.store().rules(),
            refused: 0,
            refused_by: BTreeSet::new(),
            first_refusal: None,
            named: Vec::new(),
            recipient: Recipient::Others,
        }
    }

    /// Sets the recipient.
    pub(super) fn for_recipient(self, recipient: Recipient) -> Self {
        Self { recipient, ..self }
    }

    /// Decides like [`ExportFilter::allows`] for a grain found by its sequence: a grain that a query would
    /// not show may not leave either.
    pub(super) fn allows_sequence(
        &mut self,
        address: ContentAddress,
        at: Sequence,
        grain: &GrainRef<'_>,
    ) -> Result<bool> {
        let state = self.view.state_at(at)?;
        let (id, error) = match self.session.visibility(self.view).check(at, grain)? {
            VisibilityOutcome::Seen => return self.allows(address, grain, &state),
            VisibilityOutcome::Outside | VisibilityOutcome::Erased => return Ok(false),
            VisibilityOutcome::Ruled(refusal) => (refusal.id, Error::from(refusal)),
            hidden => (CONSENT, hidden.refusal(&address)),
        };
        Ok(self.record_refusal(address, id, error))
    }

    /// Records a grain that a rule refuses. Returns `true` if it leaves all the same, on an access request.
    fn record_refusal(&mut self, address: ContentAddress, id: &'static str, why: Error) -> bool {
        self.refused_by.insert(id);
        if self.named.len() < MAX_NAMED_GRAINS {
            self.named.push(address);
        }
        if self.recipient == Recipient::DataSubject {
            return true;
        }
        self.refused = self.refused.saturating_add(1);
        self.first_refusal.get_or_insert((address, why));
        false
    }

    /// Returns `true` if a grain may leave; records it otherwise.
    pub(super) fn allows(
        &mut self,
        address: ContentAddress,
        grain: &GrainRef<'_>,
        state: &GrainState,
    ) -> Result<bool> {
        if !self.rules.has_rules_on(Action::Export) {
            return Ok(true);
        }
        let basis = match self.rules.uses_basis(Action::Export) {
            true => resolve_basis(self.view, grain.text("processing_basis"))?,
            false => ProcessingBasis::Missing,
        };
        let facts = RuleFacts {
            grain,
            basis: &basis,
            purposes: &self.session.options().purposes,
            held: state.held,
            verified: state.verification_status == VerificationStatus::Verified,
            encrypted: self.session.store().inner().active_rules().encrypts(grain),
        };
        let Some(refusal) = self.rules.decide(Action::Export, &facts).refusal else {
            return Ok(true);
        };
        Ok(self.record_refusal(address, refusal.id, Error::from(refusal)))
    }

    /// Names of the rules that refused.
    pub(super) fn rules(&self) -> Vec<String> {
        match self.recipient {
            Recipient::Others => self.refused_by.iter().map(|&id| id.to_owned()).collect(),
            Recipient::DataSubject => Vec::new(),
        }
    }

    /// Audits the refusals, or an access request; else the export itself if the rules ask for that.
    ///
    /// # Errors
    /// `ERR_POLICY` if no grain is left to export; `ERR_IO`.
    pub(super) fn audit(self, left: u64) -> Result<()> {
        let is_exception = self.recipient == Recipient::DataSubject;
        if self.first_refusal.is_none() && !is_exception {
            return self.session.audit_operation(AuditOperation::Export, Vec::new());
        }
        let exception = is_exception.then_some(ACCESS_REQUEST);
        let rules: Vec<_> = exception.into_iter().chain(self.refused_by).collect();
        // Every one of them kept a grain from going.
        let results = match is_exception {
            true => Vec::new(),
            false => vec![RuleResult::Fail; rules.len()],
        };
        self.session.store().record_audit(AuditRecord {
            actor: self.session.options().actor.clone(),
            refused: !is_exception,
            rules,
            results,
            ..AuditRecord::new(AuditOperation::Export, self.named)
        })?;
        let Some((address, why)) = self.first_refusal.filter(|_| left == 0) else { return Ok(()) };
        let many = match self.refused {
            1 => format!("{address} is not exported"),
            refused => format!("none of {refused} grains is exported; {address}"),
        };
        let hint = why.hint();
        Err(Error::new(ErrorKind::Policy, format!("{many}: {why}")).with_hint(hint))
    }
}
