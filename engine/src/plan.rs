//! Deciding what a group of writes does, before any of it is done.
//!
//! A [`Plan`] reads the current view and what earlier members of the group have staged, and stages
//! grains, states and audit records in memory. A refused member leaves nothing behind but the
//! record of its refusal. Nothing here touches the disk; the writer applies a finished plan in one
//! transaction.

mod disguise;
mod protection;

use std::collections::HashMap;

use grainstore_format::{Blob, ContentAddress, EpochMs, Grain, GrainRef, GrainState, Value};
use grainstore_index::{Order, Scope, Sequence, Shape, TimeRange};

use crate::audit::{AuditRecord, Operation};
use crate::error::{Error, ErrorKind, Result};
use crate::policy::Policy;
use crate::state::Record;
use crate::view::{Row, View, in_scope, with_fields};

/// A grain ready for the writer: validated, encoded and addressed by its caller.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) blob: Blob,
    pub(crate) grain: Grain,
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
    pub(crate) states: HashMap<Sequence, Record>,
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
            audit: Vec::new(),
            by_address: HashMap::new(),
        })
    }

    pub(crate) fn now(&self) -> EpochMs {
        self.now
    }

    /// Whether there is nothing to write.
    pub(crate) fn is_empty(&self) -> bool {
        self.grains.is_empty() && self.states.is_empty() && self.audit.is_empty()
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
        if self.find(&address)?.is_some() {
            return Ok(Put::Duplicate(address));
        }
        disguise::check_fields(&prepared.grain)?;
        self.check_parents(&prepared.grain, None)?;
        let twin = match same_fact {
            SameFact::Add => None,
            SameFact::Keep | SameFact::Supersede => self.same_fact(&prepared.grain)?,
        };
        match twin {
            Some(stored) if same_fact == SameFact::Keep => Ok(Put::Kept(stored)),
            Some(old) => {
                let prepared = derive_from(prepared, &old)?;
                let new = self.supersede_one(&old, prepared, author)?;
                Ok(Put::Replaced { old, new })
            }
            None => {
                self.stage(prepared, None)?;
                Ok(Put::Added(address))
            }
        }
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
        match old_row.record.state.superseded_by {
            Some(by) if by == address => return Ok(address),
            Some(by) => {
                let message = format!("{old} is superseded already, by {by}");
                return Err(Error::new(ErrorKind::Conflict, message));
            }
            None => {}
        }
        disguise::check_successor(old, &old_row, &new.grain)?;
        self.check_parents(&new.grain, Some(old))?;
        let (rules, needs_review) = match self.decide(old, &old_row, &new.grain)? {
            protection::Verdict::Allowed { rules, needs_review } => (rules, needs_review),
            protection::Verdict::Refused { rule, by } => {
                self.audit.push(supersession(old, &address, author, vec![rule.name()], true));
                let by = if by == *old { String::new() } else { format!(", by its ancestor {by}") };
                let message = format!("cannot supersede {old}: {}{by}", rule.reason());
                return Err(Error::new(ErrorKind::InvalidationDenied, message));
            }
        };
        let sequence = match self.find(&address)? {
            Some(row) => row.sequence,
            None => self.stage(new, Some(old))?,
        };
        if needs_review {
            let mut record = self.record(sequence)?;
            record.state.needs_review = true;
            self.states.insert(sequence, record);
        }
        let mut ended = old_row.record;
        ended.state.superseded_by = Some(address);
        ended.state.system_valid_to = Some(self.now);
        self.states.insert(old_row.sequence, ended);
        self.audit.push(supersession(old, &address, author, rules, false));
        Ok(address)
    }

    /// Runs a member of the group. If it fails, everything it staged goes, but for the audit
    /// records of policy refusals.
    fn all_or_nothing<T>(&mut self, member: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let (grains, audit, next) = (self.grains.len(), self.audit.len(), self.next);
        let states = self.states.clone();
        let outcome = member(self);
        if outcome.is_err() {
            for staged in self.grains.drain(grains..) {
                self.by_address.remove(&staged.prepared.blob.address());
            }
            self.next = next;
            self.states = states;
            let refusals = self.audit.split_off(audit).into_iter().filter(|r| r.refused);
            self.audit.extend(refusals.collect::<Vec<_>>());
        }
        outcome
    }

    /// Stages a grain that is not stored yet, at the next place of the log; `old` is what it
    /// supersedes.
    fn stage(&mut self, prepared: Prepared, old: Option<&ContentAddress>) -> Result<Sequence> {
        let sequence = Sequence::new(self.next.get().saturating_add(1));
        let held = prepared.grain.get("invalidation_policy").is_some()
            && with_fields(prepared.blob.bytes(), |view| Ok(Policy::of(view).holds()))?;
        let protected_root = self.protected_root(&prepared.grain, old)?;
        if held || protected_root.is_some() {
            let state = GrainState { held, ..GrainState::default() };
            self.states.insert(sequence, Record { state, protected_root });
        }
        self.next = sequence;
        self.by_address.insert(prepared.blob.address(), self.grains.len());
        self.grains.push(Staged { sequence, prepared });
        Ok(sequence)
    }

    /// The grain with this address, staged or stored.
    fn find(&self, address: &ContentAddress) -> Result<Option<Row>> {
        if let Some(staged) = self.by_address.get(address).and_then(|at| self.grains.get(*at)) {
            return Ok(Some(Row {
                sequence: staged.sequence,
                blob: staged.prepared.blob.bytes().to_vec(),
                record: self.record(staged.sequence)?,
            }));
        }
        let Some(mut row) = self.view.row(address)? else {
            return Ok(None);
        };
        if let Some(record) = self.states.get(&row.sequence) {
            row.record = *record;
        }
        Ok(Some(row))
    }

    /// As [`Plan::find`], within the author's namespace.
    fn visible(&self, address: &ContentAddress, author: &Author) -> Result<Option<Row>> {
        let Some(row) = self.find(address)? else {
            return Ok(None);
        };
        let seen = with_fields(&row.blob, |grain| {
            Ok(in_scope(grain.partition(), author.namespace.as_deref()))
        })?;
        Ok(seen.then_some(row))
    }

    fn record(&self, sequence: Sequence) -> Result<Record> {
        match self.states.get(&sequence) {
            Some(record) => Ok(*record),
            None => self.view.record_at(sequence),
        }
    }

    /// A current grain of the same type, namespace, subject, relation and object.
    fn same_fact(&self, grain: &Grain) -> Result<Option<ContentAddress>> {
        let (Some(subject), Some(relation)) = (grain.text("subject"), grain.text("relation"))
        else {
            return Ok(None);
        };
        for staged in self.grains.iter().rev() {
            if says_the_same(&staged.prepared.grain, grain)
                && self.record(staged.sequence)?.state.is_current()
            {
                return Ok(Some(staged.prepared.blob.address()));
            }
        }
        let scope = Scope::Exact(grain.partition().into());
        let shape = Shape::SubjectRelation(subject.into(), relation.into());
        let index = self.view.index();
        for posting in index.scan(&scope, &shape, TimeRange::default(), Order::Newest)? {
            let sequence = posting?.sequence;
            if !self.record(sequence)?.state.is_current() {
                continue;
            }
            let found = self.view.with_blob(sequence, |blob| {
                let same = with_fields(blob, |view| Ok(view_says_the_same(view, grain)))?;
                Ok(same.then(|| ContentAddress::of(blob)))
            })?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

fn says_the_same(stored: &Grain, grain: &Grain) -> bool {
    stored.grain_type() == grain.grain_type()
        && stored.partition() == grain.partition()
        && ["subject", "relation", "object"].iter().all(|name| stored.get(name) == grain.get(name))
}

fn view_says_the_same(stored: &GrainRef<'_>, grain: &Grain) -> bool {
    stored.grain_type() == grain.grain_type()
        && stored.partition() == grain.partition()
        && ["subject", "relation", "object"]
            .iter()
            .all(|name| stored.get(name).map(|value| value.to_value()).as_ref() == grain.get(name))
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

/// The grain with `old` among its parents, encoded anew.
pub(crate) fn derive_from(prepared: Prepared, old: &ContentAddress) -> Result<Prepared> {
    let parent = Value::from(old.to_string());
    if prepared.grain.list("derived_from").is_some_and(|parents| parents.contains(&parent)) {
        return Ok(prepared);
    }
    let encoding = match prepared.grain.decoded_header() {
        Some(header) => header.encoding(),
        None => grainstore_format::Encoding::default(),
    };
    let mut fields = prepared.grain.into_fields();
    match fields.entry("derived_from".to_owned()).or_insert(Value::Array(Vec::new())) {
        Value::Array(parents) => parents.push(parent),
        other => *other = Value::Array(vec![parent]),
    }
    let grain = Grain::from_fields(fields)?;
    Ok(Prepared { blob: grain.encode(encoding)?, grain })
}
