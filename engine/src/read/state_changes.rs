//! Session operations that change the state of a grain without writing another, and the preview of a
//! supersession; what binds a grain.

use std::sync::Arc;

use grainstore_format::{ContentAddress, VerificationStatus};

use crate::base::error::{Error, Result, catch_storage_panic};
use crate::base::pending::Pending;
use crate::handle::session::{Session, StoredGrain};
use crate::rules::policy::{
    AppliedRule, PolicyAction, PolicyExplanation, Proofs, verify_call_signature,
};
use crate::write::offer::Offer;
use crate::write::plan::{StateChange, WritePlan};
use crate::write::writer::WriteRequest;

/// The outcome a supersession would have: [`Session::try_supersede`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SupersedePreview {
    /// The policy rules applied, in order; if one refuses, it is the last.
    pub rules: Vec<AppliedRule>,
    /// The refusal; `None` if the supersession would succeed.
    pub refusal: Option<Error>,
    /// True if the new grain would be marked for review.
    pub needs_review: bool,
}

impl Session {
    /// Marks a grain as contradicted, so that it is no longer current, subject to its invalidation policy
    /// (OMS 23.7 bypass 1). Repeating it has no effect.
    ///
    /// `proof` is a COSE_Sign1 over `"oms-contradict-v1"` and the address, if the policy requires a
    /// signature; `reason` is the justification if it requires one.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
    /// let tea = session.put(grain)?.address();
    /// session.contradict(&tea, "she never drinks any", None)?;
    /// let state = session.get(&tea)?.state;
    /// assert!(state.contradicted && !state.is_current());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_NOT_FOUND`; `ERR_INVALIDATION_DENIED`; `ERR_EMPTY` without a reason, `ERR_TOO_LARGE` for one
    /// beyond [`MAX_REASON_BYTES`](crate::limits::MAX_REASON_BYTES); `ERR_IO`.
    pub fn contradict(
        &self,
        address: &ContentAddress,
        reason: &str,
        proof: Option<&[u8]>,
    ) -> Result<()> {
        self.mark(
            address,
            StateChange::Contradict,
            reason,
            self.proofs(PolicyAction::Contradict, address, proof),
        )
    }

    /// Sets the verification status of a grain (OMS 28.3). A status that lowers its standing goes through its
    /// invalidation policy; one that raises it does not, but is refused to the grain's own author. A grain
    /// with `requires_human_review` can be `verified` only by the operator of the whole store or by an actor
    /// the host named as a reviewer ([`OpenOptions::reviewer`](crate::OpenOptions::reviewer)), and never by
    /// its author or signer. Retraction ends the grain and is final. Repeating it has no effect.
    ///
    /// `proof` is a COSE_Sign1 over `"oms-retract-v1"` for retraction, else over `"oms-contest_message-v1"`, and the
    /// address.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// use grainstore::VerificationStatus::{Retracted, Verified};
    ///
    /// # let dir = tempfile::tempdir()?;
    /// let options = OpenOptions::new().create(true).operator("did:web:ops.example");
    /// let store = Store::open(dir.path(), &options.reviewer("did:web:ann.example"))?;
    /// # let actor = |did: &str| SessionOptions { actor: Some(did.into()), ..Default::default() };
    /// let agent = store.session(actor("did:web:agent.example"));
    /// let grain = BeliefBuilder::new(agent.now(), "alice", "prefers", "tea", 0.9);
    /// let tea = agent.put(grain.requires_human_review(true).build()?)?.address();
    /// assert!(agent.set_verification(&tea, Verified, "I am sure", None).is_err());
    /// let ann = store.session(actor("did:web:ann.example"));
    /// ann.set_verification(&tea, Verified, "she told me", None)?;
    /// ann.set_verification(&tea, Retracted, "it was a joke", None)?;
    /// assert!(!agent.get(&tea)?.state.is_current());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
            VerificationStatus::Retracted => PolicyAction::Retract,
            _ => PolicyAction::Contest,
        };
        self.mark(address, StateChange::Status(status), reason, self.proofs(act, address, proof))
    }

    /// Puts a grain under litigation hold: until it is lifted the grain cannot be superseded, contradicted or
    /// erased (OMS 23.2). A grain has one hold; placing another records the reason.
    ///
    /// ```
    /// use grainstore::EraseOptions;
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    ///
    /// let grain = BeliefBuilder::new(session.now(), "alice", "prefers", "tea", 0.9).build()?;
    /// let tea = session.put(grain)?.address();
    /// session.hold(&tea, "case 12")?;
    /// let kept = session.erase(&tea, "not needed", &EraseOptions::new());
    /// assert!(kept.is_err_and(|error| error.code() == "ERR_INVALIDATION_DENIED"));
    /// session.lift_hold(&tea, "case 12 is closed", None)?;
    /// session.erase(&tea, "not needed", &EraseOptions::new())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_NOT_FOUND`; `ERR_EMPTY` and `ERR_TOO_LARGE` as [`Session::contradict`]; `ERR_IO`.
    pub fn hold(&self, address: &ContentAddress, reason: &str) -> Result<()> {
        self.mark(address, StateChange::Hold, reason, Proofs::default())
    }

    /// Lifts the litigation hold on a grain ([`Session::hold`]). The operator may, or, if its policy names
    /// `authorized` DIDs under `hold` or `delegated`, one of them, whose COSE_Sign1 over `"oms-lift-hold-v1"`
    /// and the address is the proof. A session with a namespace or a user is never the operator's.
    ///
    /// # Errors
    /// As [`Session::contradict`]; `ERR_CONFLICT` if there is no hold; `ERR_ACCESS` for an operator session
    /// with a namespace or a user.
    pub fn lift_hold(
        &self,
        address: &ContentAddress,
        reason: &str,
        proof: Option<&[u8]>,
    ) -> Result<()> {
        self.mark(
            address,
            StateChange::LiftHold,
            reason,
            self.proofs(PolicyAction::LiftHold, address, proof),
        )
    }

    /// Previews [`Session::supersede`] as of now, without writing or auditing it.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// let locked = [("mode".to_owned(), "locked".into())].into();
    /// let rule = BeliefBuilder::new(session.now(), "payments", "mg:requires", "two signatures", 1.0);
    /// let rule = session.put(rule.invalidation_policy(locked).build()?)?.address();
    /// let other = BeliefBuilder::new(session.now(), "payments", "mg:requires", "nothing", 1.0);
    /// let preview = session.try_supersede(&rule, other.build()?, None)?;
    /// let refusal = preview.refusal.ok_or("it would be allowed")?;
    /// assert_eq!(refusal.code(), "ERR_INVALIDATION_DENIED");
    /// assert!(preview.rules.last().is_some_and(|rule| !rule.passes));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_IO`, `ERR_INTEGRITY`, and those of the offer itself.
    pub fn try_supersede(
        &self,
        old: &ContentAddress,
        new: impl Into<Offer>,
        justification: Option<&str>,
    ) -> Result<SupersedePreview> {
        let author = self.principal_with_reason(justification)?;
        let new = self.prepare_successor(old, new.into(), justification)?;
        let view = self.view()?;
        catch_storage_panic(|| {
            let plan = WritePlan::new(&view, self.now())?;
            let inner = self.store().inner();
            let mut plan = plan
                .with_locked_signatures(inner.accepts_signatures())
                .with_rules(Arc::clone(inner.active_rules()))
                .with_reserved_spaces(inner.retrieval().reserved_spaces());
            let (decision, outcome) = plan.try_supersede(old, new, &author);
            let refusal = outcome.err();
            let needs_review = refusal.is_none()
                && decision.as_ref().is_some_and(|decision| decision.needs_review);
            let rules = decision.map(|decision| decision.rules).unwrap_or_default();
            Ok(SupersedePreview {
                rules: rules.into_iter().map(AppliedRule::from).collect(),
                refusal,
                needs_review,
            })
        })
    }

    /// Explains what binds a grain of this session as of now: its own invalidation policy, and those of the
    /// other versions and the ancestors that the decision on its replacement would ask.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// let locked = [("mode".to_owned(), "locked".into())].into();
    /// let rule = BeliefBuilder::new(session.now(), "payments", "mg:requires", "two signatures", 1.0);
    /// let rule = session.put(rule.invalidation_policy(locked).build()?)?.address();
    /// let policy = session.policy(&session.inspect(&rule)?)?;
    /// assert_eq!((policy.mode, policy.open_to), ("locked", "nobody"));
    /// for demand in &policy.demands {
    ///     println!("{demand}");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_NOT_FOUND`; `ERR_WITHDRAWN`; `ERR_IO`; `ERR_INTEGRITY`.
    pub fn policy(&self, stored: &StoredGrain) -> Result<PolicyExplanation> {
        let view = self.view()?;
        catch_storage_panic(|| {
            let plan = WritePlan::new(&view, self.now())?;
            let accepts = self.store().inner().accepts_signatures();
            plan.with_locked_signatures(accepts).explain(&stored.address, &self.principal())
        })
    }

    /// Verifies the proof of a call, and returns its signers.
    fn proofs(&self, act: PolicyAction, address: &ContentAddress, proof: Option<&[u8]>) -> Proofs {
        verify_call_signature(act, address, proof, self.store().inner().resolver())
    }

    fn mark(
        &self,
        address: &ContentAddress,
        mark: StateChange,
        reason: &str,
        proofs: Proofs,
    ) -> Result<()> {
        let (author, address) = (self.author_with(reason)?, *address);
        let write = |(), reply| WriteRequest::Mark { address, mark, proofs, author, reply };
        let pending: Pending<()> = self.send(Ok(()), write);
        pending.wait()
    }
}
