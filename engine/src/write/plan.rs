//! Decides the effect of a group of writes, before any of it is applied.
//!
//! A [`WritePlan`] reads the current view and what earlier members of the group have staged, and stages
//! grains, states and audit records in memory. A refused member leaves nothing but the record of its refusal.
//! Nothing here touches the disk; the writer applies a finished plan in one transaction.

mod conflict;
mod cycles;
mod goals;
mod implicit_supersession;
mod import;
mod lookup;
mod missing_roots;
mod protection;
mod roots;
mod same_fact;
mod staged_rows;
mod state_change;
mod supersede;
mod uncommitted;
mod vectors;
mod withdrawal;
mod write_rules;

use std::collections::HashMap;
use std::sync::Arc;

use grainstore_format::{
    Blob, ContentAddress, EpochMs, Grain, GrainState, GrainType, Header, Value,
};
use grainstore_index::Sequence;
use grainstore_index::vectors::Space;

use crate::base::error::{Error, ErrorKind, Result, catch_storage_panic};
use crate::disk::blob::with_fields;
use crate::disk::layout::SignatureWrapper;
use crate::rules::policy::{Authority, Proofs};
use crate::rules::preset::ActiveRules;
use crate::search::embed::Embedding;
use crate::state::audit::CallContext;
use crate::state::audit::{AuditOperation, AuditRecord};
use crate::state::erasure::check_not_erased;
use crate::state::view::View;
use crate::state::visibility::Viewer;

pub(crate) use conflict::Conflicts;
pub use conflict::{Conflict, ConflictSubject, MAX_CONFLICTS};
pub(crate) use implicit_supersession::{ImplicitSupersession, parents};
pub(crate) use import::{
    ClaimedSuccessor, ManifestClaim, group_by_successor, imported_state, is_lift_refused,
    not_lifted, prevails, review_refusal, uncleared_review_record,
};
pub(crate) use roots::own_protection;
use staged_rows::StagedRows;
pub(crate) use state_change::{StateChange, is_earlier_end};
use supersede::Replacement;
pub(crate) use uncommitted::UncommittedLog;
use withdrawal::withdrawn_grant;
pub(crate) use withdrawal::{GRANTED_ANEW, SUCCESSOR_GONE};

/// A grain ready for the writer: validated, encoded and addressed on the caller's thread.
#[derive(Debug, Clone)]
pub(crate) struct PreparedGrain {
    pub(crate) blob: Blob,
    pub(crate) grain: Grain,
    /// True if the caller gave the encoded blob, whose bytes must not change.
    pub(crate) ready: bool,
    /// The envelope bytes around a signed blob.
    pub(crate) wrapping: Option<Arc<SignatureWrapper>>,
    /// Size of the uncompressed payload in bytes; memory use is proportional to it.
    pub(crate) open_bytes: usize,
    /// The valid signers of the grain.
    pub(crate) proofs: Proofs,
    /// Vectors given with the grain.
    pub(crate) vectors: Vec<Embedding>,
}

impl PreparedGrain {
    /// # Errors
    /// `ERR_INTEGRITY`, but never for a blob that was just encoded or decoded.
    pub(crate) fn new(blob: Blob, grain: Grain, ready: bool) -> Result<Self> {
        let open_bytes = with_fields(blob.bytes(), |view| Ok(view.payload_len()))?;
        let (proofs, vectors) = (Proofs::default(), Vec::new());
        Ok(Self { blob, grain, ready, wrapping: None, open_bytes, proofs, vectors })
    }

    /// Size in the write queue, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let wrapping = self.wrapping.as_ref().map_or(0, |w| w.prefix.len() + w.suffix.len());
        let vectors: usize = self.vectors.iter().map(|vector| 4 * vector.values().len()).sum();
        self.blob.bytes().len().saturating_add(wrapping).saturating_add(vectors)
    }
}

/// The caller of a write, as far as decisions depend on it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Principal {
    pub(crate) viewer: Arc<Viewer>,
    pub(crate) actor: Option<String>,
    pub(crate) authority: Authority,
    /// The purposes of its reads.
    pub(crate) purposes: Vec<String>,
    /// True if the host named the actor as a reviewer.
    pub(crate) is_reviewer: bool,
    /// Reason given, for the audit log.
    pub(crate) reason: Option<String>,
    /// The CAL call that the write belongs to.
    pub(crate) call: Option<Arc<CallContext>>,
    /// When the call was made; 0 if nobody called.
    pub(crate) began: EpochMs,
}

impl Principal {
    /// Returns `true` for the operator of the whole store (rulings 51 and 55): never in a session limited to
    /// a namespace or a user, whatever its actor.
    pub(crate) fn is_store_operator(&self) -> bool {
        self.authority.is_operator() && self.viewer.is_unrestricted()
    }

    /// Returns `true` if it may clear a required review of a grain by another author (ruling 54).
    pub(crate) fn may_review(&self) -> bool {
        self.is_reviewer || self.is_store_operator()
    }

    /// Creates the audit record of an operation by this caller.
    pub(crate) fn record(
        &self,
        operation: AuditOperation,
        subjects: Vec<ContentAddress>,
    ) -> AuditRecord {
        let (actor, reason) = (self.actor.clone(), self.reason.clone());
        let call = self.call.as_ref().map(CallContext::record);
        let began = Some(self.began).filter(|began| *began != EpochMs::default());
        AuditRecord { actor, reason, call, began, ..AuditRecord::new(operation, subjects) }
    }
}

/// Handling of a grain with the same type, namespace, subject, relation and object as a current grain, or with
/// [`SameFact::Unique`] whatever its object: [`Session::put_fact`](crate::Session::put_fact).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SameFact {
    /// Store it beside the other.
    #[default]
    Add,
    /// Keep the stored one and store nothing.
    Keep,
    /// Supersede the stored one, subject to its invalidation policy.
    Supersede,
    /// Refuse it (`ERR_CONFLICT`, which names the stored one) if a grain of the same type, namespace, subject
    /// and relation is current, as [`Session::latest`](crate::Session::latest) sees it: of several puts at the
    /// same time one is stored.
    ///
    /// A grain that names a user is compared with those of that user and of nobody. In an encrypted store a
    /// grain that names none is compared with those of nobody and of the session's user. The bytes of a
    /// current grain are a duplicate; those of one that has ended are `ERR_CONFLICT`. A grain without a
    /// subject or a relation is stored.
    Unique,
}

/// The outcome of a [`Session::put`](crate::Session::put).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutOutcome {
    /// Stored under its address.
    Added(ContentAddress),
    /// These bytes were stored already; no change.
    Duplicate(ContentAddress),
    /// This fact was stored already, under this address, and kept.
    Kept(ContentAddress),
    /// Stored under `new`; it supersedes `old`, which has the same fact.
    Replaced {
        /// The grain that was current.
        old: ContentAddress,
        /// The grain that is current now.
        new: ContentAddress,
    },
}

impl PutOutcome {
    /// The address of the grain that the store now holds for this put.
    #[must_use]
    pub fn address(&self) -> ContentAddress {
        match *self {
            Self::Added(address)
            | Self::Duplicate(address)
            | Self::Kept(address)
            | Self::Replaced { new: address, .. } => address,
        }
    }

    /// Returns `true` if nothing was written.
    #[must_use]
    pub fn is_duplicate(&self) -> bool {
        matches!(self, Self::Duplicate(_) | Self::Kept(_))
    }
}

/// A grain to be written.
pub(crate) struct StagedGrain {
    pub(crate) sequence: Sequence,
    pub(crate) prepared: PreparedGrain,
}

impl StagedGrain {
    /// The grains it derives from.
    pub(crate) fn parents(&self) -> Vec<ContentAddress> {
        parents(&self.prepared.grain).into_iter().collect()
    }
}

/// The staged effects of a group of writes.
pub(crate) struct WritePlan<'v> {
    view: &'v View,
    /// Grains of an import that are written but not committed.
    uncommitted: Option<&'v dyn UncommittedLog>,
    now: EpochMs,
    /// True if an authorized signature opens a lock (OMS 12.5.4).
    locked_accepts_signature: bool,
    /// The rules of the store; `None` if they were checked before.
    rules: Option<Arc<ActiveRules>>,
    /// The last sequence assigned before this group.
    last_stored: Sequence,
    /// In order of sequence, without a gap.
    pub(crate) grains: Vec<StagedGrain>,
    pub(crate) states: StagedRows<GrainState>,
    pub(crate) roots: StagedRows<Vec<Sequence>>,
    /// Envelopes that replace stored ones.
    pub(crate) wrappings: StagedRows<Arc<SignatureWrapper>>,
    /// Vectors of grains that are stored already.
    pub(crate) vectors: Vec<(Sequence, Vec<Embedding>)>,
    /// New vector spaces.
    pub(crate) spaces: Vec<Space>,
    /// Spaces of the store's embedders, with or without vectors yet.
    reserved_spaces: Vec<Space>,
    /// Progress of the store's embedders: model and last sequence.
    pub(crate) embedder_progress: Vec<(String, u64)>,
    /// The new serving space, if it is to be stored.
    pub(crate) serving: Option<Space>,
    pub(crate) audit: Vec<AuditRecord>,
    /// Grains that stop being current, each with the index in `audit` of the record of its end.
    pub(crate) ended: StagedRows<usize>,
    by_address: HashMap<ContentAddress, usize>,
    /// Staged grains, by the parents they name.
    children: HashMap<ContentAddress, Vec<Sequence>>,
    /// Staged withdrawals of consent, by the grant they name.
    withdrawals: HashMap<ContentAddress, Vec<Sequence>>,
}

impl<'v> WritePlan<'v> {
    pub(crate) fn new(view: &'v View, now: EpochMs) -> Result<Self> {
        Ok(Self {
            view,
            uncommitted: None,
            now,
            locked_accepts_signature: false,
            rules: None,
            last_stored: view.last_sequence()?,
            grains: Vec::new(),
            states: StagedRows::default(),
            roots: StagedRows::default(),
            wrappings: StagedRows::default(),
            vectors: Vec::new(),
            spaces: Vec::new(),
            reserved_spaces: Vec::new(),
            embedder_progress: Vec::new(),
            serving: None,
            audit: Vec::new(),
            ended: StagedRows::default(),
            by_address: HashMap::new(),
            children: HashMap::new(),
            withdrawals: HashMap::new(),
        })
    }

    /// Sets whether an authorized signature opens a lock.
    pub(crate) fn with_locked_signatures(self, accepts: bool) -> Self {
        Self { locked_accepts_signature: accepts, ..self }
    }

    /// Sets the spaces of the store's embedders.
    pub(crate) fn with_reserved_spaces(self, reserved: Vec<Space>) -> Self {
        Self { reserved_spaces: reserved, ..self }
    }

    pub(crate) fn now(&self) -> EpochMs {
        self.now
    }

    /// Returns `true` if there is nothing to write.
    pub(crate) fn is_empty(&self) -> bool {
        self.grains.is_empty()
            && self.states.is_empty()
            && self.wrappings.is_empty()
            && self.vectors.is_empty()
            && self.embedder_progress.is_empty()
            && self.audit.is_empty()
    }

    /// Stages all of these grains, or none of them.
    ///
    /// # Errors
    /// `ERR_SUPERSEDE_REQUIRED`, `ERR_DEPENDENCY`, `ERR_POLICY`, `ERR_WITHDRAWN`; `ERR_SCHEMA` and
    /// `ERR_INVALIDATION_DENIED` for a withdrawal that does not fit its grant; `ERR_LIMIT` for a grain that
    /// protects more descendants than can be recorded; with [`SameFact::Supersede`] also those of
    /// [`WritePlan::supersede`]; with [`SameFact::Unique`] `ERR_CONFLICT`.
    pub(crate) fn put(
        &mut self,
        grains: Vec<PreparedGrain>,
        same_fact: SameFact,
        author: &Principal,
    ) -> Result<Vec<PutOutcome>> {
        self.all_or_nothing(|plan| {
            let (count, first) = (grains.len(), plan.grains.len());
            let mut puts = Vec::with_capacity(count);
            let mut added = Vec::new();
            for (at, grain) in grains.into_iter().enumerate() {
                let told = plan.audit.len();
                let is_consent = grain.grain.grain_type() == GrainType::Consent;
                let put = plan.put_one(grain, same_fact, author);
                let put = put.map_err(|e| if count > 1 { e.with_batch_index(at) } else { e })?;
                // A supersession has an audit entry of its own.
                if let PutOutcome::Added(address) = put
                    && plan.audit.len() == told
                {
                    added.push(address);
                }
                if let PutOutcome::Added(new) | PutOutcome::Replaced { new, .. } = put
                    && is_consent
                {
                    plan.apply_earlier_withdrawals(&new, author)?;
                }
                puts.push(put);
            }
            plan.check_later_parents(first, &puts, author)?;
            if !added.is_empty() {
                plan.audit.push(author.record(AuditOperation::Put, added));
            }
            Ok(puts)
        })
    }

    /// Stages the replacement of `old` by `new` (OMS 28.4).
    ///
    /// # Errors
    /// `ERR_NOT_FOUND`, `ERR_CONFLICT`, `ERR_SCHEMA`, `ERR_INVALIDATION_DENIED`,
    /// `ERR_EVIDENCE_REQUIRED`, `ERR_DEPENDENCY`, `ERR_SUPERSEDE_REQUIRED`, `ERR_POLICY`, `ERR_LIMIT`,
    /// `ERR_WITHDRAWN`.
    pub(crate) fn supersede(
        &mut self,
        old: &ContentAddress,
        new: PreparedGrain,
        author: &Principal,
    ) -> Result<ContentAddress> {
        self.all_or_nothing(|plan| {
            let is_consent = new.grain.grain_type() == GrainType::Consent;
            let was_here = plan.exists(&new.blob.address())?;
            let address = plan.supersede_one(old, new, author)?;
            if is_consent && !was_here {
                plan.apply_earlier_withdrawals(&address, author)?;
            }
            Ok(address)
        })
    }

    fn put_one(
        &mut self,
        prepared: PreparedGrain,
        same_fact: SameFact,
        author: &Principal,
    ) -> Result<PutOutcome> {
        let address = prepared.blob.address();
        self.check_model_limit(&prepared.vectors, author)?;
        let place = self.locate(&address)?;
        if place.is_none() {
            check_not_erased(self.view, &address, &prepared.grain)?;
        }
        self.check_basis(&prepared, author)?;
        if let Some(sequence) = place {
            if same_fact == SameFact::Unique {
                self.check_unique_stored((&address, sequence), &prepared.grain, author)?;
            }
            self.upgrade_envelope(&prepared, author)?;
            self.stage_vectors(&address, sequence, prepared.vectors.clone(), author)?;
            self.withdraw_again(sequence, &prepared, author)?;
            return Ok(PutOutcome::Duplicate(address));
        }
        self.check_supersession_fields(&prepared, author)?;
        self.check_ownership(None, &prepared, author)?;
        if prepared.grain.grain_type() == GrainType::Consent
            && let Some(prior) = prepared.grain.text("prior_consent")
        {
            let prior = prior.to_owned();
            return self.withdraw(&prior, prepared, author);
        }
        let twin = match same_fact {
            SameFact::Add => None,
            SameFact::Keep | SameFact::Supersede => self.find_same_fact(&prepared.grain, author)?,
            SameFact::Unique => {
                self.check_unique(&prepared.grain, author)?;
                None
            }
        };
        match twin {
            Some(stored) if same_fact == SameFact::Keep => Ok(PutOutcome::Kept(stored)),
            Some(old) if self.is_retry(&old, &prepared.grain)? => Ok(PutOutcome::Duplicate(old)),
            Some(old) => {
                let prepared = with_parent(prepared, &old)?;
                let new = self.supersede_one(&old, prepared, author)?;
                Ok(PutOutcome::Replaced { old, new })
            }
            None => {
                self.check_parents(&prepared, None, author)?;
                self.check_dependencies(&prepared.grain, author)?;
                let needs_review = self.check_rules(None, &prepared, author)?;
                let sequence = self.stage(prepared, None)?;
                self.mark_for_review(sequence, needs_review)?;
                Ok(PutOutcome::Added(address))
            }
        }
    }

    /// Replaces the envelope of a stored grain if the new signature is valid and the stored one was not (OMS
    /// 9.3). Otherwise the first envelope of a grain stays.
    pub(crate) fn upgrade_envelope(
        &mut self,
        new: &PreparedGrain,
        author: &Principal,
    ) -> Result<()> {
        let address = new.blob.address();
        let (Some(wrapping), Some(_)) = (&new.wrapping, &new.proofs.signer) else { return Ok(()) };
        let Some(sequence) = self.locate(&address)? else { return Ok(()) };
        if self.has_valid_signature(&address, sequence)? {
            return Ok(());
        }
        self.wrappings.insert(sequence, Arc::clone(wrapping));
        self.audit.push(author.record(AuditOperation::Sign, vec![address]));
        Ok(())
    }

    /// Runs a member of the group. On failure everything it staged is rolled back, except the audit records
    /// of policy refusals.
    fn all_or_nothing<T>(&mut self, member: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let (grains, audit) = (self.grains.len(), self.audit.len());
        let (vectors, spaces) = (self.vectors.len(), self.spaces.len());
        self.states.begin();
        self.roots.begin();
        self.wrappings.begin();
        self.ended.begin();
        // Guarded here, so that a member that panics on damaged data is rolled back like any other.
        let outcome = catch_storage_panic(|| member(self));
        if outcome.is_err() {
            for staged in self.grains.split_off(grains).iter().rev() {
                self.unstage(staged);
            }
            self.states.roll_back();
            self.roots.roll_back();
            self.wrappings.roll_back();
            self.ended.roll_back();
            self.vectors.truncate(vectors);
            self.spaces.truncate(spaces);
            let code = outcome.as_ref().err().map(Error::code);
            let refusals = self.audit.split_off(audit).into_iter().filter(|r| r.refused);
            self.audit.extend(
                refusals.map(|refusal| AuditRecord { code, ..refusal }).collect::<Vec<_>>(),
            );
        }
        outcome
    }

    /// Removes the last staged grain from the maps by address and by parent.
    fn unstage(&mut self, StagedGrain { prepared, .. }: &StagedGrain) {
        self.by_address.remove(&prepared.blob.address());
        for parent in parents(&prepared.grain) {
            if let Some(children) = self.children.get_mut(&parent) {
                children.pop();
            }
        }
        if let Some(grant) = withdrawn_grant(&prepared.grain)
            && let Some(withdrawals) = self.withdrawals.get_mut(&grant)
        {
            withdrawals.pop();
        }
    }

    /// Stages a grain that is not stored yet, at the next sequence.
    ///
    /// # Errors
    /// `ERR_ERASED` for a grain that was erased, or that an erased user created before; `ERR_LIMIT`.
    fn stage(
        &mut self,
        prepared: PreparedGrain,
        succession: Option<Replacement>,
    ) -> Result<Sequence> {
        check_not_erased(self.view, &prepared.blob.address(), &prepared.grain)?;
        let staged = u64::try_from(self.grains.len()).unwrap_or(u64::MAX);
        let sequence =
            Sequence::new(self.last_stored.get().saturating_add(staged).saturating_add(1));
        if sequence > Sequence::MAX {
            let message = format!("a store holds {} grains at most", Sequence::MAX.get());
            return Err(Error::new(ErrorKind::Limit, message));
        }
        self.admit_spaces(&prepared.vectors)?;
        let (protects, held) = own_protection(prepared.blob.bytes())?;
        let (old, released) = match succession {
            Some(Replacement { old, released }) => (Some(old), released),
            None => (None, false),
        };
        let mut roots = self.roots_of_new(&prepared.grain, old.as_ref(), released)?;
        roots.extend(protects.then_some(sequence));
        if held {
            self.states.insert(sequence, GrainState { held, ..GrainState::default() });
        }
        let address = prepared.blob.address();
        self.by_address.insert(address, self.grains.len());
        for parent in parents(&prepared.grain) {
            self.children.entry(parent).or_default().push(sequence);
        }
        if let Some(grant) = withdrawn_grant(&prepared.grain) {
            self.withdrawals.entry(grant).or_default().push(sequence);
        }
        self.grains.push(StagedGrain { sequence, prepared });
        if !roots.is_empty() {
            self.roots.insert(sequence, roots);
            self.propagate_roots(address, sequence)?;
        }
        Ok(sequence)
    }
}

/// The field with the parents of a grain.
const PARENTS_FIELD: &str = "derived_from";

/// Returns the grain with `old` among its parents, encoded again; a given blob stays as it is.
pub(crate) fn with_parent(prepared: PreparedGrain, old: &ContentAddress) -> Result<PreparedGrain> {
    let parent = Value::from(old.to_string());
    let has_it = |parents: &[Value]| parents.contains(&parent);
    if prepared.ready || prepared.grain.list(PARENTS_FIELD).is_some_and(has_it) {
        return Ok(prepared);
    }
    let encoding = prepared.grain.decoded_header().map(Header::encoding).unwrap_or_default();
    let vectors = prepared.vectors;
    let mut fields = prepared.grain.into_fields();
    match fields.entry(PARENTS_FIELD.to_owned()).or_insert(Value::Array(Vec::new())) {
        Value::Array(parents) => parents.push(parent),
        other => *other = Value::Array(vec![parent]),
    }
    let grain = Grain::from_fields(fields)?;
    Ok(PreparedGrain { vectors, ..PreparedGrain::new(grain.encode(encoding)?, grain, false)? })
}
