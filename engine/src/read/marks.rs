//! Operations of a session that change a grain's standing and write no other grain, and the question
//! what a policy would say to a supersession.

use std::sync::Arc;

use grainstore_format::{ContentAddress, VerificationStatus};

use crate::base::error::{Error, ErrorKind, Result, guarded};
use crate::base::pending::Pending;
use crate::handle::session::Session;
use crate::rules::policy::{Act, Proofs, Ruling, of_call};
use crate::write::offer::Offer;
use crate::write::plan::{Mark, Plan};
use crate::write::writer::Write;

/// What would come of a supersession.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Trial {
    /// The policy rules that were applied, in order; where one refuses it is the last.
    pub rules: Vec<Ruling>,
    /// Why it would be refused; nothing where it would be done.
    pub refusal: Option<Error>,
    /// Whether the new grain would be marked for review.
    pub needs_review: bool,
}

impl Session {
    /// Notes that what a grain says is contradicted: it is no longer current, through its
    /// invalidation policy (OMS 23.7 bypass 1). Doing it again is nothing.
    ///
    /// `proof` is a COSE_Sign1 over `"oms-contradict-v1"` and the address, where the policy asks
    /// for a signature; `reason` is the justification where it asks for one.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND`; `ERR_INVALIDATION_DENIED`; `ERR_EMPTY` without a reason, `ERR_TOO_LARGE` for
    /// one beyond [`MAX_REASON_BYTES`](crate::MAX_REASON_BYTES); `ERR_IO`.
    pub fn contradict(
        &self,
        address: &ContentAddress,
        reason: &str,
        proof: Option<&[u8]>,
    ) -> Result<()> {
        self.mark(address, Mark::Contradict, reason, self.proofs(Act::Contradict, address, proof))
    }

    /// Sets what review made of a grain (OMS 28.3). A status that says less for the grain goes through
    /// its invalidation policy; one that says more does not, but is refused to the grain's own
    /// author. One that asks for the review of a person with `requires_human_review` is `verified` by the
    /// operator of the whole store or by an actor the host named as a reviewer
    /// ([`OpenOptions::reviewer`](crate::OpenOptions::reviewer)), and by nobody who wrote or signed it.
    /// Retraction ends the grain, and is final. Doing it again is nothing.
    ///
    /// `proof` is a COSE_Sign1 over `"oms-retract-v1"` for retraction, else over
    /// `"oms-contest-v1"`, and the address.
    ///
    /// # Errors
    /// As [`Session::contradict`]; `ERR_CONFLICT` for a grain that is retracted.
    pub fn set_verification(
        &self,
        address: &ContentAddress,
        status: VerificationStatus,
        reason: &str,
        proof: Option<&[u8]>,
    ) -> Result<()> {
        let act = match status {
            VerificationStatus::Retracted => Act::Retract,
            _ => Act::Contest,
        };
        self.mark(address, Mark::Status(status), reason, self.proofs(act, address, proof))
    }

    /// Puts a grain under litigation hold: until it is lifted nothing supersedes, contradicts or
    /// erases it (OMS 23.2). A grain has one hold; placing another records the reason.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND`; `ERR_EMPTY` and `ERR_TOO_LARGE` as [`Session::contradict`]; `ERR_IO`.
    pub fn hold(&self, address: &ContentAddress, reason: &str) -> Result<()> {
        self.mark(address, Mark::Hold, reason, Proofs::default())
    }

    /// Lifts the litigation hold on a grain: by the operator, or, where its policy names
    /// `authorized` DIDs under `hold` or `delegated`, by one of them, whose COSE_Sign1 over
    /// `"oms-lift-hold-v1"` and the address is the proof. A session with a namespace or a user is
    /// never the operator's.
    ///
    /// # Errors
    /// As [`Session::contradict`]; `ERR_CONFLICT` where no hold is; `ERR_ACCESS` for one of the operator
    /// that has a namespace or a user.
    pub fn lift_hold(
        &self,
        address: &ContentAddress,
        reason: &str,
        proof: Option<&[u8]>,
    ) -> Result<()> {
        self.mark(address, Mark::LiftHold, reason, self.proofs(Act::LiftHold, address, proof))
    }

    /// What would come of [`Session::supersede`] now. Nothing is written, and nothing recorded.
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`, and whatever is wrong with the offer itself.
    pub fn try_supersede(
        &self,
        old: &ContentAddress,
        new: impl Into<Offer>,
        justification: Option<&str>,
    ) -> Result<Trial> {
        let author = self.author_because(justification)?;
        let new = self.prepare_successor(old, new.into(), justification)?;
        let view = self.view()?;
        guarded(|| {
            let plan = Plan::new(&view, self.now())?;
            let inner = self.store().inner();
            let mut plan = plan
                .accepting_signatures(inner.accepts_signatures())
                .under(Arc::clone(inner.regime()))
                .reserving(inner.retrieval().reserved());
            let (decision, outcome) = plan.try_supersede(old, new, &author);
            let refusal = outcome.err();
            let needs_review = refusal.is_none()
                && decision.as_ref().is_some_and(|decision| decision.needs_review);
            let rules = decision.map(|decision| decision.rules).unwrap_or_default();
            Ok(Trial {
                rules: rules.into_iter().map(Ruling::from).collect(),
                refusal,
                needs_review,
            })
        })
    }

    /// Who signed a call.
    fn proofs(&self, act: Act, address: &ContentAddress, proof: Option<&[u8]>) -> Proofs {
        of_call(act, address, proof, self.store().inner().resolver())
    }

    fn mark(
        &self,
        address: &ContentAddress,
        mark: Mark,
        reason: &str,
        proofs: Proofs,
    ) -> Result<()> {
        if reason.trim().is_empty() {
            let empty = ErrorKind::Format(grainstore_format::ErrorKind::Empty);
            let error = Error::new(empty, "the reason is empty");
            return Err(error.with_hint("say why: the reason goes into the audit log"));
        }
        let (author, address) = (self.author_because(Some(reason))?, *address);
        let write = |(), reply| Write::Mark { address, mark, proofs, author, reply };
        let pending: Pending<()> = self.send(Ok(()), write);
        pending.wait()
    }
}
