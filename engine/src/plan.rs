//! Deciding what a group of writes does, before any of it is done.
//!
//! A [`Plan`] reads the current view and what earlier members of the group have staged, and stages
//! grains, states and audit records in memory. A refused member leaves nothing behind but the
//! record of its refusal. Nothing here touches the disk; the writer applies a finished plan in one
//! transaction.

mod beneath;
mod conflict;
mod disguise;
mod goals;
mod import;
mod known;
mod mark;
mod protection;

use std::collections::HashMap;
use std::sync::Arc;

use grainstore_format::{
    Blob, ContentAddress, EpochMs, Grain, GrainState, GrainType, Header, Value,
};
use grainstore_index::Sequence;

use crate::audit::{AuditRecord, Operation};
use crate::error::{Error, ErrorKind, Result, guarded};
use crate::keys::Wrapping;
use crate::policy::{Act, Attempt, Decision, Proofs, Rule, decide, same_did};
use crate::view::{Row, View, stored_grain, with_fields};

pub(crate) use beneath::Beneath;
pub(crate) use conflict::Conflicts;
pub use conflict::{Conflict, Disputed, MAX_CONFLICTS};
pub(crate) use disguise::parents;
pub(crate) use import::{Claim, Successor, arriving, by_successor, prevails};
pub(crate) use mark::Mark;
use protection::{Gathered, Transition};
pub(crate) use protection::{own_terms, parents_in};

/// A grain ready for the writer: validated, encoded and addressed by its caller.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) blob: Blob,
    pub(crate) grain: Grain,
    /// Whether the blob came ready-made: its bytes stay as they are.
    pub(crate) ready: bool,
    /// What stood around the blob, where it came signed.
    pub(crate) wrapping: Option<Arc<Wrapping>>,
    /// Bytes of the payload as it lies open: what memory it takes is in proportion to these.
    pub(crate) open_bytes: usize,
    /// Who signed it, or signed for it.
    pub(crate) proofs: Proofs,
}

impl Prepared {
    /// # Errors
    /// `ERR_INTEGRITY` never, for a blob that was just encoded or decoded.
    pub(crate) fn new(blob: Blob, grain: Grain, ready: bool) -> Result<Self> {
        let open_bytes = with_fields(blob.bytes(), |view| Ok(view.payload_len()))?;
        let proofs = Proofs::default();
        Ok(Self { blob, grain, ready, wrapping: None, open_bytes, proofs })
    }

    /// Bytes it waits with.
    pub(crate) fn bytes(&self) -> usize {
        let wrapping = self.wrapping.as_ref().map_or(0, |w| w.prefix.len() + w.suffix.len());
        self.blob.bytes().len().saturating_add(wrapping)
    }
}

/// Who writes, as far as a decision depends on it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Author {
    pub(crate) namespace: Option<String>,
    pub(crate) actor: Option<String>,
    /// Why, for the audit log.
    pub(crate) reason: Option<String>,
}

/// What to do with a grain that says what a current grain already says: same type, namespace,
/// subject, relation and object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SameFact {
    /// Store it beside the other.
    #[default]
    Add,
    /// Keep the stored one and store nothing.
    Keep,
    /// Supersede the stored one, through its invalidation policy.
    Supersede,
}

/// What became of a put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// Stored under its address.
    Added(ContentAddress),
    /// These very bytes were stored already; nothing changed.
    Duplicate(ContentAddress),
    /// The same fact was stored already, under this address, and kept.
    Kept(ContentAddress),
    /// Stored under `new`; `old` said the same and is superseded by it.
    Replaced {
        /// The grain that was current.
        old: ContentAddress,
        /// The grain that is.
        new: ContentAddress,
    },
}

impl Put {
    /// The address under which the store now holds what was put.
    #[must_use]
    pub fn address(&self) -> ContentAddress {
        match *self {
            Self::Added(address)
            | Self::Duplicate(address)
            | Self::Kept(address)
            | Self::Replaced { new: address, .. } => address,
        }
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_duplicate(&self) -> bool {
        matches!(self, Self::Duplicate(_) | Self::Kept(_))
    }
}

/// A grain that will be written.
pub(crate) struct Staged {
    pub(crate) sequence: Sequence,
    pub(crate) prepared: Prepared,
}

impl Staged {
    /// The grains it derives from.
    pub(crate) fn parents(&self) -> Vec<ContentAddress> {
        parents(&self.prepared.grain).into_iter().collect()
    }
}

/// What a group of writes will do.
pub(crate) struct Plan<'v> {
    view: &'v View,
    /// Grains of an import that are written and not committed.
    beneath: Option<&'v dyn Beneath>,
    now: EpochMs,
    /// Whether an authorized signature opens a lock (OMS 12.5.4).
    locked_accepts_signature: bool,
    next: Sequence,
    pub(crate) grains: Vec<Staged>,
    pub(crate) states: HashMap<Sequence, GrainState>,
    pub(crate) roots: HashMap<Sequence, Vec<Sequence>>,
    /// Envelopes that take the place of stored ones.
    pub(crate) wrappings: HashMap<Sequence, Arc<Wrapping>>,
    pub(crate) audit: Vec<AuditRecord>,
    by_address: HashMap<ContentAddress, usize>,
}

impl<'v> Plan<'v> {
    pub(crate) fn new(view: &'v View, now: EpochMs) -> Result<Self> {
        Ok(Self {
            view,
            beneath: None,
            now,
            locked_accepts_signature: false,
            next: view.last_sequence()?,
            grains: Vec::new(),
            states: HashMap::new(),
            roots: HashMap::new(),
            wrappings: HashMap::new(),
            audit: Vec::new(),
            by_address: HashMap::new(),
        })
    }

    /// The same plan, in a store where an authorized signature opens a lock, or none does.
    pub(crate) fn accepting_signatures(self, accepts: bool) -> Self {
        Self { locked_accepts_signature: accepts, ..self }
    }

    pub(crate) fn now(&self) -> EpochMs {
        self.now
    }

    /// Whether there is nothing to write.
    pub(crate) fn is_empty(&self) -> bool {
        self.grains.is_empty()
            && self.states.is_empty()
            && self.wrappings.is_empty()
            && self.audit.is_empty()
    }

    /// Stages all of these grains, or none of them.
    ///
    /// # Errors
    /// `ERR_SUPERSEDE_REQUIRED`, `ERR_DEPENDENCY`; with [`SameFact::Supersede`] also what
    /// [`Plan::supersede`] refuses.
    pub(crate) fn put(
        &mut self,
        grains: Vec<Prepared>,
        same_fact: SameFact,
        author: &Author,
    ) -> Result<Vec<Put>> {
        self.all_or_nothing(|plan| {
            let count = grains.len();
            let puts = grains.into_iter().enumerate().map(|(at, grain)| {
                let put = plan.put_one(grain, same_fact, author);
                put.map_err(|error| if count > 1 { error.in_batch(at) } else { error })
            });
            let puts = puts.collect::<Result<Vec<_>>>()?;
            let added: Vec<_> = puts.iter().filter_map(added).collect();
            if !added.is_empty() {
                plan.audit.push(AuditRecord {
                    operation: Operation::Put,
                    actor: author.actor.clone(),
                    subjects: added,
                    refused: false,
                    rules: Vec::new(),
                    reason: author.reason.clone(),
                });
            }
            Ok(puts)
        })
    }

    /// Stages the replacement of `old` by `new` (OMS 28.4).
    ///
    /// # Errors
    /// `ERR_NOT_FOUND`, `ERR_CONFLICT`, `ERR_SCHEMA`, `ERR_INVALIDATION_DENIED`,
    /// `ERR_EVIDENCE_REQUIRED`, `ERR_DEPENDENCY`, `ERR_SUPERSEDE_REQUIRED`.
    pub(crate) fn supersede(
        &mut self,
        old: &ContentAddress,
        new: Prepared,
        author: &Author,
    ) -> Result<ContentAddress> {
        self.all_or_nothing(|plan| plan.supersede_one(old, new, author))
    }

    fn put_one(&mut self, prepared: Prepared, same_fact: SameFact, author: &Author) -> Result<Put> {
        let address = prepared.blob.address();
        if self.locate(&address)?.is_some() {
            self.improve(&prepared, author)?;
            return Ok(Put::Duplicate(address));
        }
        disguise::check_fields(&prepared.grain)?;
        if prepared.grain.grain_type() == GrainType::Consent
            && let Some(prior) = prepared.grain.text("prior_consent")
        {
            let prior = prior.to_owned();
            return self.withdraw(&prior, prepared, author);
        }
        let twin = match same_fact {
            SameFact::Add => None,
            SameFact::Keep | SameFact::Supersede => self.same_fact(&prepared.grain)?,
        };
        match twin {
            Some(stored) if same_fact == SameFact::Keep => Ok(Put::Kept(stored)),
            Some(old) if self.is_retry(&old, &prepared.grain)? => Ok(Put::Duplicate(old)),
            Some(old) => {
                let prepared = derive_from(prepared, &old)?;
                let new = self.supersede_one(&old, prepared, author)?;
                Ok(Put::Replaced { old, new })
            }
            None => {
                self.check_parents(&prepared.grain, None)?;
                self.check_dependencies(&prepared.grain, author)?;
                self.stage(prepared, None)?;
                Ok(Put::Added(address))
            }
        }
    }

    /// Stores a withdrawal of consent and ends the grant it names, whatever the grant's policy says:
    /// a withdrawal never waits (OMS 8.10). A grant the store does not have is withdrawn when it
    /// arrives, which is not built yet.
    fn withdraw(&mut self, prior: &str, new: Prepared, author: &Author) -> Result<Put> {
        let address = new.blob.address();
        if new.grain.flag("is_withdrawal") != Some(true) {
            let message = "a new grant that names a prior consent replaces it";
            return Err(Error::new(ErrorKind::SupersedeRequired, message));
        }
        let grant = match prior.parse() {
            Ok(prior) => self.visible(&prior, author)?.map(|row| (prior, row)),
            Err(_) => None,
        };
        let by_third_party = is_by_third_party(&new.grain, new.proofs.signer.as_deref(), author);
        let Some((prior, row)) = grant else {
            let sequence = self.stage(new, None)?;
            self.review(sequence, by_third_party)?;
            return Ok(Put::Added(address));
        };
        disguise::check_withdrawal(&row, &new.grain)?;
        let sequence = self.stage(new, Some(Succession::of(&prior)))?;
        self.review(sequence, by_third_party)?;
        if row.state.superseded_by.is_none() {
            self.end(&row, address)?;
            self.audit.push(supersession(&prior, &address, author, vec!["withdrawal"], false));
        }
        Ok(Put::Added(address))
    }

    /// Takes the envelope of a stored grain where its signature is valid and that of the one that is
    /// kept was not (OMS 9.3). Otherwise the first envelope of a grain stays.
    pub(crate) fn improve(&mut self, new: &Prepared, author: &Author) -> Result<()> {
        let address = new.blob.address();
        let (Some(wrapping), Some(_)) = (&new.wrapping, &new.proofs.signer) else { return Ok(()) };
        let Some(sequence) = self.locate(&address)? else { return Ok(()) };
        if self.has_valid_signature(&address, sequence)? {
            return Ok(());
        }
        self.wrappings.insert(sequence, Arc::clone(wrapping));
        self.audit.push(AuditRecord {
            operation: Operation::Sign,
            actor: author.actor.clone(),
            subjects: vec![address],
            refused: false,
            rules: Vec::new(),
            reason: author.reason.clone(),
        });
        Ok(())
    }

    /// Whether a stored grain is what this one became when it was offered before: the same but for
    /// the parent that superseding added.
    fn is_retry(&self, stored: &ContentAddress, grain: &Grain) -> Result<bool> {
        let Some(row) = self.find(stored)? else { return Ok(false) };
        let stored = stored_grain(&row.blob)?;
        let same = |a: &Grain, b: &Grain| {
            a.fields().iter().all(|(name, value)| name == PARENTS || b.get(name) == Some(value))
        };
        let mut parents = grain.list(PARENTS).unwrap_or_default().iter();
        let kept = stored.list(PARENTS).unwrap_or_default();
        Ok(same(&stored, grain) && same(grain, &stored) && parents.all(|p| kept.contains(p)))
    }

    fn supersede_one(
        &mut self,
        old: &ContentAddress,
        new: Prepared,
        author: &Author,
    ) -> Result<ContentAddress> {
        let address = new.blob.address();
        let Some(old_row) = self.visible(old, author)? else {
            return Err(Error::new(ErrorKind::NotFound, format!("no grain {old}")));
        };
        match old_row.state.superseded_by {
            Some(by) if by == address => {
                self.improve(&new, author)?;
                return Ok(address);
            }
            Some(by) => {
                let by = self.name_for(&by, author)?;
                let message = format!("{old} is superseded already, by {by}");
                return Err(Error::new(ErrorKind::Conflict, message));
            }
            None => {}
        }
        disguise::check_successor(old, &old_row, &new.grain)?;
        self.check_parents(&new.grain, Some(old))?;
        let (decision, gathered) = self.judge(old, &old_row, &new.grain, &new.proofs, author)?;
        if let Some(rule) = decision.refusal() {
            self.audit.push(supersession(old, &address, author, decision.names(), true));
            let what = format!("cannot supersede {old}");
            return Err(self.denied(&what, old, rule, &decision, &gathered, author)?);
        }
        self.check_dependencies(&new.grain, author)?;
        self.improve(&new, author)?;
        let is_goal = new.grain.grain_type() == GrainType::Goal;
        let released = is_goal && !decision.keeps_policy;
        let sequence = self.successor(new, Succession { old: *old, released })?;
        self.review(sequence, decision.needs_review)?;
        self.end(&old_row, address)?;
        self.audit.push(supersession(old, &address, author, decision.names(), false));
        Ok(address)
    }

    /// Asks every policy that bears on replacing `old`.
    fn judge(
        &self,
        old: &ContentAddress,
        old_row: &Row,
        grain: &Grain,
        proofs: &Proofs,
        author: &Author,
    ) -> Result<(Decision, Gathered)> {
        let from =
            with_fields(&old_row.blob, |stored| Ok(stored.text("goal_state").map(str::to_owned)))?;
        let to = grain.text("goal_state").filter(|_| grain.grain_type() == GrainType::Goal);
        let to = to.filter(|to| from.as_deref() != Some(to));
        let transition = to.map(|to| Transition { new: grain, to });
        let gathered = self.protectors(old, Some(grain), transition)?;
        let attempt = Attempt {
            act: Act::Supersede,
            now: self.now,
            justification: grain.text("supersession_justification"),
            actor: author.actor.as_deref(),
            proofs,
            evidence: self.evidence(old, transition, &gathered, author)?,
            locked_accepts_signature: self.locked_accepts_signature,
        };
        Ok((decide(&attempt, &gathered.facts), gathered))
    }

    /// The refusal of an attempt, naming what refuses if it is not the target itself.
    fn denied(
        &self,
        what: &str,
        target: &ContentAddress,
        rule: Rule,
        decision: &Decision,
        gathered: &Gathered,
        author: &Author,
    ) -> Result<Error> {
        let by = decision.refused_by.and_then(|at| gathered.addresses.get(at));
        let by = match by.filter(|by| *by != target) {
            None => String::new(),
            Some(by) => format!(", by its ancestor {}", self.name_for(by, author)?),
        };
        let kind = match rule {
            Rule::NoEvidence => ErrorKind::EvidenceRequired,
            _ => ErrorKind::InvalidationDenied,
        };
        Ok(Error::new(kind, format!("{what}: {}{by}", rule.row().text)))
    }

    /// Marks a grain for review, if it is to be.
    fn review(&mut self, sequence: Sequence, needs_review: bool) -> Result<()> {
        if needs_review {
            let state = GrainState { needs_review, ..self.state(sequence)? };
            self.states.insert(sequence, state);
        }
        Ok(())
    }

    /// A grain as a message may name it: its address, if the author can see it.
    fn name_for(&self, address: &ContentAddress, author: &Author) -> Result<String> {
        Ok(match self.visible(address, author)? {
            Some(_) => address.to_string(),
            None => "outside this session".to_owned(),
        })
    }

    /// Notes that a grain stopped being current when another took its place.
    fn end(&mut self, old: &Row, by: ContentAddress) -> Result<()> {
        let ended = GrainState {
            superseded_by: Some(by),
            // What was contradicted or retracted ended then.
            system_valid_to: Some(match old.state.system_valid_to {
                Some(ended) => ended,
                None => self.now.max(known_from(old)?),
            }),
            ..old.state
        };
        self.states.insert(old.sequence, ended);
        Ok(())
    }

    /// Stages a successor, or takes the current grain that already is these bytes.
    fn successor(&mut self, new: Prepared, succession: Succession) -> Result<Sequence> {
        let address = new.blob.address();
        let Some(sequence) = self.locate(&address)? else {
            return self.stage(new, Some(succession));
        };
        if !self.state(sequence)?.is_current() {
            let message = format!("{address} is stored already and not current any more");
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        let Succession { old, released } = succession;
        let mut roots = self.roots(sequence)?;
        roots.extend(self.roots_for(&new.grain, Some(&old), released)?);
        roots.sort_unstable();
        roots.dedup();
        if !roots.is_empty() {
            self.roots.insert(sequence, roots);
        }
        Ok(sequence)
    }

    /// Runs a member of the group. If it fails, everything it staged goes, but for the audit
    /// records of policy refusals.
    fn all_or_nothing<T>(&mut self, member: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let (grains, audit, next) = (self.grains.len(), self.audit.len(), self.next);
        let (states, roots) = (self.states.clone(), self.roots.clone());
        let wrappings = self.wrappings.clone();
        // Guarded in here, so that a member that meets damage is rolled back like any other.
        let outcome = guarded(|| member(self));
        if outcome.is_err() {
            for staged in self.grains.drain(grains..) {
                self.by_address.remove(&staged.prepared.blob.address());
            }
            self.next = next;
            self.states = states;
            self.roots = roots;
            self.wrappings = wrappings;
            let refusals = self.audit.split_off(audit).into_iter().filter(|r| r.refused);
            self.audit.extend(refusals.collect::<Vec<_>>());
        }
        outcome
    }

    /// Stages a grain that is not stored yet, at the next place of the log.
    fn stage(&mut self, prepared: Prepared, succession: Option<Succession>) -> Result<Sequence> {
        let sequence = Sequence::new(self.next.get().saturating_add(1));
        if sequence > Sequence::MAX {
            let message = format!("a store holds {} grains at most", Sequence::MAX.get());
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let (protects, held) = own_terms(prepared.blob.bytes())?;
        let (old, released) = match succession {
            Some(Succession { old, released }) => (Some(old), released),
            None => (None, false),
        };
        let mut roots = self.roots_for(&prepared.grain, old.as_ref(), released)?;
        roots.extend(protects.then_some(sequence));
        if held {
            self.states.insert(sequence, GrainState { held, ..GrainState::default() });
        }
        let address = prepared.blob.address();
        self.next = sequence;
        self.by_address.insert(address, self.grains.len());
        self.grains.push(Staged { sequence, prepared });
        if !roots.is_empty() {
            self.roots.insert(sequence, roots);
            self.spread_roots(address, sequence)?;
        }
        Ok(sequence)
    }
}

/// What a grain that is staged takes the place of.
#[derive(Debug, Clone, Copy)]
struct Succession {
    old: ContentAddress,
    /// Whether the policies of the versions before let go of it (OMS 23.5).
    released: bool,
}

impl Succession {
    fn of(old: &ContentAddress) -> Self {
        Self { old: *old, released: false }
    }
}

/// Whether a consent is withdrawn by somebody else than the two it is between, without a signature
/// of the one who gave it. It is honoured all the same, and somebody should look at it.
fn is_by_third_party(withdrawal: &Grain, signer: Option<&str>, author: &Author) -> bool {
    let party = |name: &str| withdrawal.text(name);
    let is = |who: &str, name: &str| party(name).is_some_and(|party| same_did(party, who));
    let signed = signer.is_some_and(|who| is(who, "subject_did"));
    let actor = author.actor.as_deref();
    let is_party = actor.is_none_or(|who| is(who, "subject_did") || is(who, "grantee_did"));
    !signed && !is_party
}

/// The field that names what a grain derives from.
const PARENTS: &str = "derived_from";

/// Since when the store holds a grain for known (OMS 15.2): nothing ends before it began.
fn known_from(row: &Row) -> Result<EpochMs> {
    with_fields(&row.blob, |grain| {
        let from = grain.int("system_valid_from").or(grain.int("created_at"));
        Ok(EpochMs::new(from.unwrap_or_default()))
    })
}

fn added(put: &Put) -> Option<ContentAddress> {
    match put {
        Put::Added(address) => Some(*address),
        _ => None,
    }
}

fn supersession(
    old: &ContentAddress,
    new: &ContentAddress,
    author: &Author,
    rules: Vec<&'static str>,
    refused: bool,
) -> AuditRecord {
    AuditRecord {
        operation: Operation::Supersede,
        actor: author.actor.clone(),
        subjects: vec![*old, *new],
        refused,
        rules,
        reason: author.reason.clone(),
    }
}

/// The grain with `old` among its parents, encoded anew; a ready blob as it is.
pub(crate) fn derive_from(prepared: Prepared, old: &ContentAddress) -> Result<Prepared> {
    let parent = Value::from(old.to_string());
    let has_it = |parents: &[Value]| parents.contains(&parent);
    if prepared.ready || prepared.grain.list(PARENTS).is_some_and(has_it) {
        return Ok(prepared);
    }
    let encoding = prepared.grain.decoded_header().map(Header::encoding).unwrap_or_default();
    let mut fields = prepared.grain.into_fields();
    match fields.entry(PARENTS.to_owned()).or_insert(Value::Array(Vec::new())) {
        Value::Array(parents) => parents.push(parent),
        other => *other = Value::Array(vec![parent]),
    }
    let grain = Grain::from_fields(fields)?;
    Prepared::new(grain.encode(encoding)?, grain, false)
}
