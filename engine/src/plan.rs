//! Deciding what a group of writes does, before any of it is done.
//!
//! A [`Plan`] reads the current view and what earlier members of the group have staged, and stages
//! grains, states and audit records in memory. A refused member leaves nothing behind but the
//! record of its refusal. Nothing here touches the disk; the writer applies a finished plan in one
//! transaction.

mod disguise;
mod known;
mod protection;

use std::collections::HashMap;
use std::sync::Arc;

use grainstore_format::{
    Blob, ContentAddress, Did, EpochMs, Grain, GrainState, GrainType, Header, Value,
};
use grainstore_index::Sequence;

use crate::audit::{AuditRecord, Operation};
use crate::error::{Error, ErrorKind, Result, guarded};
use crate::keys::Wrapping;
use crate::policy::Policy;
use crate::view::{Row, View, stored_grain, with_fields};

/// A grain ready for the writer: validated, encoded and addressed by its caller.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) blob: Blob,
    pub(crate) grain: Grain,
    /// Whether the blob came ready-made: its bytes stay as they are.
    pub(crate) ready: bool,
    /// What stood around the blob, where it came signed.
    pub(crate) wrapping: Option<Arc<Wrapping>>,
    /// Who signed it, where the signature was found valid.
    pub(crate) signer: Option<Did>,
    /// Bytes of the payload as it lies open: what memory it takes is in proportion to these.
    pub(crate) open_bytes: usize,
}

impl Prepared {
    /// # Errors
    /// `ERR_INTEGRITY` never, for a blob that was just encoded or decoded.
    pub(crate) fn new(blob: Blob, grain: Grain, ready: bool) -> Result<Self> {
        let open_bytes = with_fields(blob.bytes(), |view| Ok(view.payload_len()))?;
        Ok(Self { blob, grain, ready, wrapping: None, signer: None, open_bytes })
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

/// What a group of writes will do.
pub(crate) struct Plan<'v> {
    view: &'v View,
    now: EpochMs,
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
            now,
            next: view.last_sequence()?,
            grains: Vec::new(),
            states: HashMap::new(),
            roots: HashMap::new(),
            wrappings: HashMap::new(),
            audit: Vec::new(),
            by_address: HashMap::new(),
        })
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
    /// `ERR_SUPERSEDE_REQUIRED`; with [`SameFact::Supersede`] also what [`Plan::supersede`] refuses.
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
    /// `ERR_SUPERSEDE_REQUIRED`.
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
        let Some((prior, row)) = grant else {
            self.stage(new, None)?;
            return Ok(Put::Added(address));
        };
        disguise::check_withdrawal(&row, &new.grain)?;
        self.stage(new, Some(&prior))?;
        if row.state.superseded_by.is_none() {
            self.end(&row, address)?;
            self.audit.push(supersession(&prior, &address, author, vec!["withdrawal"], false));
        }
        Ok(Put::Added(address))
    }

    /// Takes the envelope of a stored grain where its signature is valid and that of the one that is
    /// kept was not (OMS 9.3). Otherwise the first envelope of a grain stays.
    fn improve(&mut self, new: &Prepared, author: &Author) -> Result<()> {
        let address = new.blob.address();
        let (Some(wrapping), Some(_)) = (&new.wrapping, &new.signer) else { return Ok(()) };
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
        let (rules, needs_review) = match self.decide(old, &new.grain)? {
            protection::Verdict::Allowed { rules, needs_review } => (rules, needs_review),
            protection::Verdict::Refused { rule, by } => {
                self.audit.push(supersession(old, &address, author, vec![rule.name()], true));
                let by = match by == *old {
                    true => String::new(),
                    false => format!(", by its ancestor {}", self.name_for(&by, author)?),
                };
                let message = format!("cannot supersede {old}: {}{by}", rule.reason());
                return Err(Error::new(ErrorKind::InvalidationDenied, message));
            }
        };
        self.improve(&new, author)?;
        let sequence = self.successor(old, new)?;
        if needs_review {
            let state = GrainState { needs_review: true, ..self.state(sequence)? };
            self.states.insert(sequence, state);
        }
        self.end(&old_row, address)?;
        self.audit.push(supersession(old, &address, author, rules, false));
        Ok(address)
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
            system_valid_to: Some(self.now.max(known_from(old)?)),
            ..old.state
        };
        self.states.insert(old.sequence, ended);
        Ok(())
    }

    /// Stages the successor of `old`, or takes the current grain that already is these bytes.
    fn successor(&mut self, old: &ContentAddress, new: Prepared) -> Result<Sequence> {
        let address = new.blob.address();
        let Some(sequence) = self.locate(&address)? else {
            return self.stage(new, Some(old));
        };
        if !self.state(sequence)?.is_current() {
            let message = format!("{address} is stored already and not current any more");
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        let mut roots = self.roots(sequence)?;
        roots.extend(self.roots_for(&new.grain, Some(old))?);
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

    /// Stages a grain that is not stored yet, at the next place of the log; `old` is what it
    /// supersedes.
    fn stage(&mut self, prepared: Prepared, old: Option<&ContentAddress>) -> Result<Sequence> {
        let sequence = Sequence::new(self.next.get().saturating_add(1));
        if sequence > Sequence::MAX {
            let message = format!("a store holds {} grains at most", Sequence::MAX.get());
            return Err(Error::new(ErrorKind::Limit, message));
        }
        let (held, protects) = with_fields(prepared.blob.bytes(), |view| {
            let policy = Policy::of(view);
            Ok((policy.holds(), policy.protects()))
        })?;
        let mut roots = self.roots_for(&prepared.grain, old)?;
        roots.extend(protects.then_some(sequence));
        if held {
            self.states.insert(sequence, GrainState { held, ..GrainState::default() });
        }
        if !roots.is_empty() {
            self.roots.insert(sequence, roots);
        }
        self.next = sequence;
        self.by_address.insert(prepared.blob.address(), self.grains.len());
        self.grains.push(Staged { sequence, prepared });
        Ok(sequence)
    }
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
