//! Which grains may leave the store: the rules on export, asked of each, and what they refused. One exception has
//! a name: a person who asks for what is held about them is given all of it.

use std::collections::BTreeSet;

use grainstore_format::{ContentAddress, GrainRef, GrainState, VerificationStatus};
use grainstore_index::Sequence;

use crate::base::error::{Error, ErrorKind, Result};
use crate::handle::session::Session;
use crate::rules::preset::{Basis, Deed, Facts, RuleSet};
use crate::state::audit::{AuditRecord, Operation};
use crate::state::basis::basis_in;
use crate::state::reach::Reached;
use crate::state::view::View;

/// Refused grains that an audit entry names.
const MAX_NAMED: usize = 16;
/// What the audit log calls the exception.
const ACCESS_REQUEST: &str = "access_request";
/// What it calls a consent that keeps a grain here.
const CONSENT: &str = "consent";

/// For whom a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recipient {
    /// Anybody: the rules on export hold.
    Others,
    /// The person it is about, who asked for it.
    Themself,
}

/// The rules on one export.
pub(super) struct Leaving<'e> {
    session: &'e Session,
    view: &'e View,
    rules: std::sync::Arc<RuleSet>,
    /// Grains that may not leave.
    pub(super) refused: u64,
    /// The rules that refused, in the order of their names.
    by: BTreeSet<&'static str>,
    first: Option<(ContentAddress, Error)>,
    named: Vec<ContentAddress>,
    recipient: Recipient,
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
            recipient: Recipient::Others,
        }
    }

    /// The same, for a file that is for somebody.
    pub(super) fn to(self, recipient: Recipient) -> Self {
        Self { recipient, ..self }
    }

    /// As [`Leaving::may`], for a grain that was not looked for but is known to be there: what an export would not
    /// find may not leave either.
    pub(super) fn may_of(
        &mut self,
        address: ContentAddress,
        at: Sequence,
        grain: &GrainRef<'_>,
    ) -> Result<bool> {
        let state = self.view.state_at(at)?;
        let (id, error) = match self.session.reach(self.view).of(at, grain)? {
            Reached::Seen => return self.may(address, grain, &state),
            Reached::Outside | Reached::Erased => return Ok(false),
            Reached::Ruled(refusal) => (refusal.id, Error::from(refusal)),
            hidden => (CONSENT, hidden.refusal(&address)),
        };
        Ok(self.keep(address, id, error))
    }

    /// Counts a grain that a rule keeps here. Whether it leaves all the same.
    fn keep(&mut self, address: ContentAddress, id: &'static str, why: Error) -> bool {
        self.by.insert(id);
        if self.named.len() < MAX_NAMED {
            self.named.push(address);
        }
        if self.recipient == Recipient::Themself {
            return true;
        }
        self.refused = self.refused.saturating_add(1);
        self.first.get_or_insert((address, why));
        false
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
        Ok(self.keep(address, refusal.id, Error::from(refusal)))
    }

    /// The names of the rules that refused.
    pub(super) fn rules(&self) -> Vec<String> {
        match self.recipient {
            Recipient::Others => self.by.iter().map(|&id| id.to_owned()).collect(),
            Recipient::Themself => Vec::new(),
        }
    }

    /// Notes in the audit log what was refused, if anything was, or what left for the person alone; and the export
    /// where that is wanted.
    ///
    /// # Errors
    /// `ERR_POLICY` where nothing is left to leave; `ERR_IO`.
    pub(super) fn tell(self, left: u64) -> Result<()> {
        let is_exception = self.recipient == Recipient::Themself;
        if self.first.is_none() && !is_exception {
            return self.session.note(Operation::Export, Vec::new());
        }
        let exception = is_exception.then_some(ACCESS_REQUEST);
        self.session.store().note(AuditRecord {
            actor: self.session.options().actor.clone(),
            refused: !is_exception,
            rules: exception.into_iter().chain(self.by).collect(),
            ..AuditRecord::of(Operation::Export, self.named)
        })?;
        let Some((address, why)) = self.first.filter(|_| left == 0) else { return Ok(()) };
        let many = match self.refused {
            1 => format!("{address} is not exported"),
            refused => format!("none of {refused} grains is exported; {address}"),
        };
        let hint = why.hint();
        Err(Error::new(ErrorKind::Policy, format!("{many}: {why}")).with_hint(hint))
    }
}
