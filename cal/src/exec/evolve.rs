//! ADD and SUPERSEDE (CAL 8.8, 8.9): builds the new grain and hands it to the memory.

use std::time::Instant;

use grainstore_format::{ContentAddress, Encoding, Grain, GrainType, Map, Value};

use super::Executor;
use crate::check;
use crate::check::plan::{AddPlan, SupersedePlan};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::memory::{HashPrefix, Hit, MemoryError, PrefixMatch};
use crate::response::Answer;
use crate::span::Spanned;
use crate::write_quotas::WriteKind;

/// Payload fields of a version itself, which a successor does not inherit.
const UNINHERITED_FIELDS: [&str; 10] = [
    "created_at",
    "timestamp_ms",
    "contradicted",
    "system_valid_from",
    "derived_from",
    "provenance_chain",
    "author_did",
    "origin_did",
    "origin_namespace",
    "trusted_timestamp",
];

/// Payload fields about the supersession of a version, which a successor does not inherit. It does inherit
/// `invalidation_policy`.
const UNINHERITED_REASONS: [&str; 5] = [
    "supersession_justification",
    "supersession_auth",
    "invalidation_type",
    "invalidation_reason",
    "invalidation_initiator",
];

impl Executor<'_> {
    /// Runs an ADD statement.
    pub(super) fn add(&self, plan: &AddPlan) -> Result<Answer> {
        let fields = self.new_fields(plan)?;
        let content_address = self.with_quota(WriteKind::Add, |run| {
            let grain = run.new_grain(fields)?;
            Ok(run.memory.add(grain, &plan.reason)?)
        })?;
        Ok(Answer::Added { content_address })
    }

    /// Runs a SUPERSEDE statement.
    pub(super) fn supersede(&self, plan: SupersedePlan) -> Result<Answer> {
        let old = self.supersede_target(&plan)?;
        let superseded = old.address;
        let content_address = self.with_quota(WriteKind::Supersede, |run| {
            let author = run.memory.scope().actor.as_ref();
            let mut fields = successor_fields(old, superseded, &plan.reason, author);
            apply_set(&mut fields, plan.fields);
            let grain = run.new_grain(fields)?;
            Ok(run.memory.supersede(&superseded, grain, &plan.reason)?)
        })?;
        Ok(Answer::Superseded { content_address, superseded })
    }

    /// Returns the grain that a SUPERSEDE replaces.
    pub(super) fn supersede_target(&self, plan: &SupersedePlan) -> Result<Hit> {
        let old = self.resolve_target(&plan.target)?;
        self.check_current(&old, &plan.target)?;
        Ok(old)
    }

    /// Runs a write within its rate limit. A refused write does not count.
    pub(super) fn with_quota<T>(
        &self,
        write: WriteKind,
        run: impl FnOnce(&Self) -> Result<T>,
    ) -> Result<T> {
        self.writes.consume(write, Instant::now())?;
        run(self).inspect_err(|_| self.writes.refund(write))
    }

    /// Builds a grain of these fields, created now. If the very same grain exists, the time is raised by a
    /// millisecond until the address is new.
    pub(super) fn new_grain(&self, mut fields: Map) -> Result<Grain> {
        const TRIES: i64 = 1_000;
        let created_ms = self.writes.created_at(self.options.now).get();
        for later in 0..TRIES {
            let at = created_ms.saturating_add(later);
            fields.insert("created_at".to_owned(), Value::from(at));
            let grain = Grain::from_fields(fields.clone())?;
            let address = grain.encode(Encoding::MessagePack)?.address();
            if !self.memory.exists(&address)? {
                return Ok(grain);
            }
        }
        let message = "this very grain exists at every millisecond tried";
        Err(MemoryError::new("ERR_CONFLICT", message, "change the grain or wait").into())
    }

    /// Returns the payload of an ADD: the fields that were set, those the session provides, and defaults.
    pub(super) fn new_fields(&self, plan: &AddPlan) -> Result<Map> {
        let scope = self.memory.scope();
        let mut fields = plan.fields.clone();
        let mut default = |name: &str, value: Option<Value>| {
            if let Some(value) = value.filter(|_| !fields.contains_key(name)) {
                fields.insert(name.to_owned(), value);
            }
        };
        default("type", Some(plan.grain_type.name().into()));
        default("namespace", scope.namespace.clone().map(Value::from));
        default("user_id", scope.user_id.clone().map(Value::from));
        default("author_did", scope.actor.clone().map(Value::from));
        default("source_type", Some("agent_inferred".into()));
        let reason = Map::from([("reason".to_owned(), Value::from(plan.reason.as_str()))]);
        default("context", Some(reason.into()));
        match plan.grain_type {
            GrainType::Belief => default("confidence", Some(0.8.into())),
            GrainType::Goal => {
                default("description", plan.fields.get("object").cloned());
                let waits = self.has_unsatisfied(&plan.depends_on)?;
                default("goal_state", Some(if waits { "suspended" } else { "active" }.into()));
            }
            GrainType::Observation => {
                let observer = scope.agent_id.clone().or_else(|| scope.actor.clone());
                default("observer_id", observer.map(Value::from));
                default("observer_type", Some("agent".into()));
            }
            _ => {}
        }
        if plan.grain_type == GrainType::Observation && !fields.contains_key("observer_id") {
            let message =
                "ADD observation needs SET observer_id = ... without an agent in the session";
            let error = Error::new(ErrorKind::MissingField, message).at(plan.place);
            return Err(error.suggest("add SET observer_id = \"...\": who or what observed it"));
        }
        Ok(fields)
    }

    /// Returns `true` if one of these goals is not satisfied, by the newest version of each (ruling 23); a
    /// goal that depends on it cannot be active.
    fn has_unsatisfied(&self, goals: &[ContentAddress]) -> Result<bool> {
        for address in goals {
            let versions = self.memory.history(address, 1)?;
            let head = versions.first().filter(|head| head.state.is_current_at(self.options.now));
            if head.and_then(|head| head.grain.text("goal_state")) != Some("satisfied") {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the target of a SUPERSEDE or REVERT: a visible belief of this session.
    ///
    /// # Errors
    /// E046 if the target is not found, E045 if it is outside the session, E042 if it is no belief.
    pub(super) fn resolve_target(&self, target: &Spanned<HashPrefix>) -> Result<Hit> {
        let refused = |kind, what| target_error(target, kind, what);
        let address = match self.memory.locate(&target.node)? {
            PrefixMatch::One(address) => address,
            PrefixMatch::Nothing => return Err(target_not_found(target)),
            PrefixMatch::Elsewhere => {
                return Err(refused(
                    ErrorKind::OtherNamespace,
                    "lies in another namespace, or is another user's",
                ));
            }
            PrefixMatch::Several => return Err(check::ambiguous(target)),
        };
        let Some(old) = self.memory.get(&address)? else {
            return Err(target_not_found(target));
        };
        if old.grain.grain_type() != GrainType::Belief {
            return Err(refused(ErrorKind::NotEvolvable, "is no belief"));
        }
        Ok(old)
    }

    /// Checks that a target is current: E040 if it is superseded, contradicted, retracted or ended (ruling
    /// 38).
    pub(super) fn check_current(&self, old: &Hit, target: &Spanned<HashPrefix>) -> Result<()> {
        if let Some(current) = old.state.superseded_by {
            let error = target_error(target, ErrorKind::NotCurrent, "is superseded already");
            // The successor is named only if the session sees it.
            return Err(match self.memory.exists(&current)? {
                true => error.suggest(format!("its successor is sha256:{current}")),
                false => error,
            });
        }
        if old.state.is_current_at(self.options.now) {
            return Ok(());
        }
        let what = match &old.state {
            state if state.is_current() => "has ended",
            state if state.contradicted => "is contradicted",
            _ => "is retracted",
        };
        Err(target_error(target, ErrorKind::NotCurrent, what)
            .suggest("ADD a belief that stands by itself"))
    }
}

/// Returns E046 for the target of a write.
pub(super) fn target_not_found(target: &Spanned<HashPrefix>) -> Error {
    target_error(target, ErrorKind::TargetNotFound, "leads to no grain")
}

fn target_error(target: &Spanned<HashPrefix>, kind: ErrorKind, what: &str) -> Error {
    Error::new(kind, format!("{} {what}", target.node)).at(target.span)
}

/// Applies the fields of a SUPERSEDE. The vectors belong to the old object, so they go if it changes.
pub(super) fn apply_set(fields: &mut Map, values: Map) {
    if values.get("object").is_some_and(|object| fields.get("object") != Some(object)) {
        fields.remove("embedding_refs");
    }
    fields.extend(values);
}

/// Returns the payload of the grain that supersedes `head`: the fields inherited from `model`, and its
/// provenance.
pub(super) fn successor_fields(
    model: Hit,
    head: ContentAddress,
    reason: &str,
    author: Option<&String>,
) -> Map {
    let mut fields = model.grain.into_fields();
    fields.retain(|name, _| {
        !UNINHERITED_FIELDS.contains(&&**name) && !UNINHERITED_REASONS.contains(&&**name)
    });
    let derived_from = Value::from(vec![head.to_string()]);
    fields.insert("derived_from".to_owned(), derived_from);
    fields.insert("supersession_justification".to_owned(), reason.into());
    if let Some(author) = author {
        fields.insert("author_did".to_owned(), author.as_str().into());
    }
    fields
}
