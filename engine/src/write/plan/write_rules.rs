//! The preset rules of the store for a grain to be written: gathers the facts; the rules decide.

use std::sync::Arc;

use grainstore_format::ContentAddress;

use super::supersede::supersession_record;
use super::{PreparedGrain, Principal, WritePlan};
use crate::base::error::{Error, Result};
use crate::rules::preset::{Action, ActiveRules, ProcessingBasis, RuleFacts};
use crate::state::audit::{AuditOperation, AuditRecord};
use crate::state::basis::resolve_basis;

impl WritePlan<'_> {
    /// Sets the rules of the store.
    pub(crate) fn with_rules(self, active_rules: Arc<ActiveRules>) -> Self {
        Self { rules: Some(active_rules), ..self }
    }

    /// Checks the rules of the store for a grain to be stored, in place of `old` if given. Returns `true` if
    /// it is to be marked for review.
    ///
    /// # Errors
    /// `ERR_POLICY`, with an entry in the audit log.
    pub(super) fn check_rules(
        &mut self,
        old: Option<&ContentAddress>,
        new: &PreparedGrain,
        author: &Principal,
    ) -> Result<bool> {
        let Some(active_rules) = self.rules.clone() else { return Ok(false) };
        let rules = active_rules.rules();
        let deed = if old.is_some() { Action::Supersede } else { Action::Put };
        let basis = match rules.uses_basis(deed) {
            true => resolve_basis(self, new.grain.text("processing_basis"))?,
            false => ProcessingBasis::Missing,
        };
        let facts = RuleFacts {
            grain: &new.grain,
            basis: &basis,
            purposes: &[],
            held: false,
            verified: false,
            encrypted: active_rules.encrypts(&new.grain),
        };
        let decision = rules.decide(deed, &facts);
        let Some(refusal) = decision.refusal else { return Ok(decision.needs_review) };
        let address = new.blob.address();
        let entry =
            supersession_record(old.unwrap_or(&address), &address, author, vec![refusal.id], true);
        self.audit.push(match old {
            Some(_) => entry,
            None => {
                AuditRecord { operation: AuditOperation::Put, subjects: vec![address], ..entry }
            }
        });
        Err(Error::from(refusal))
    }
}
