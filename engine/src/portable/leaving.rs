//! Which grains may leave the store: the rules on export, asked of each, and what they refused.

use std::collections::BTreeSet;

use grainstore_format::{ContentAddress, GrainRef, GrainState, VerificationStatus};

use crate::audit::{AuditRecord, Operation};
use crate::basis::basis_in;
use crate::error::{Error, ErrorKind, Result};
use crate::preset::{Basis, Deed, Facts, Refusal, RuleSet};
use crate::session::Session;
use crate::view::View;

/// Refused grains that an audit entry names.
const MAX_NAMED: usize = 16;

/// The rules on one export.
pub(super) struct Leaving<'e> {
    session: &'e Session,
    view: &'e View,
    rules: std::sync::Arc<RuleSet>,
    /// Grains that may not leave.
    pub(super) refused: u64,
    /// The rules that refused, in the order of their names.
    by: BTreeSet<&'static str>,
    first: Option<(ContentAddress, Refusal)>,
    named: Vec<ContentAddress>,
}

impl<'e> Leaving<'e> {
    pub(super) fn new(session: &'e Session, view: &'e View) -> Self {
        Self {
            session,
            view,
            rules: session.store().rules(),
            refused: 0,
            by: BTreeSet::new(),
            first: None,
            named: Vec::new(),
        }
    }

    /// Whether a grain may leave. One that may not is counted.
    pub(super) fn may(
        &mut self,
        address: ContentAddress,
        grain: &GrainRef<'_>,
        state: &GrainState,
    ) -> Result<bool> {
        if !self.rules.rules_on(Deed::Export) {
            return Ok(true);
        }
        let basis = match self.rules.asks_basis(Deed::Export) {
            true => basis_in(self.view, grain.text("processing_basis"))?,
            false => Basis::Missing,
        };
        let facts = Facts {
            grain,
            basis: &basis,
            purposes: &self.session.options().purposes,
            held: state.held,
            verified: state.verification_status == VerificationStatus::Verified,
            encrypted: self.session.store().inner().regime().encrypts(grain),
        };
        let Some(refusal) = self.rules.decide(Deed::Export, &facts).refusal else {
            return Ok(true);
        };
        self.refused = self.refused.saturating_add(1);
        self.by.insert(refusal.id);
        self.first.get_or_insert((address, refusal));
        if self.named.len() < MAX_NAMED {
            self.named.push(address);
        }
        Ok(false)
    }

    /// The names of the rules that refused.
    pub(super) fn rules(&self) -> Vec<String> {
        self.by.iter().map(|&id| id.to_owned()).collect()
    }

    /// Notes in the audit log what was refused, if anything was, and the export where that is wanted.
    ///
    /// # Errors
    /// `ERR_POLICY` where nothing is left to leave; `ERR_IO`.
    pub(super) fn tell(self, left: u64) -> Result<()> {
        let Some((address, refusal)) = self.first else {
            return self.session.note(Operation::Export, Vec::new());
        };
        self.session.store().note(AuditRecord {
            operation: Operation::Export,
            actor: self.session.options().actor.clone(),
            subjects: self.named,
            refused: true,
            refused_by: None,
            rules: self.by.into_iter().collect(),
            ..AuditRecord::of(Operation::Export, Vec::new())
        })?;
        if left > 0 {
            return Ok(());
        }
        let many = match self.refused {
            1 => format!("{address} is not exported"),
            refused => format!("none of {refused} grains is exported; {address}"),
        };
        let message = format!("{many}: refused by {}", refusal.text());
        Err(Error::new(ErrorKind::Policy, message).with_hint(refusal.fix))
    }
}
