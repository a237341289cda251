//! ADD and SUPERSEDE: new grains built under the rules of spec section 5, handed to the memory.

use std::time::Instant;

use grainstore_format::{ContentAddress, Encoding, Grain, GrainType, Map, Value};

use super::Run;
use crate::check;
use crate::check::plan::{AddPlan, SupersedePlan};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::memory::{Hit, Located, MemoryError};
use crate::response::Answer;
use crate::writes::Write;

/// Payload fields a successor does not inherit.
const OWN: [&str; 9] = [
    "created_at",
    "timestamp_ms",
    "system_valid_from",
    "derived_from",
    "provenance_chain",
    "author_did",
    "origin_did",
    "origin_namespace",
    "trusted_timestamp",
];

/// Prefixes of payload fields a successor does not inherit; `invalidation_policy` is inherited.
const OWN_REASONS: [&str; 5] = [
    "supersession_justification",
    "supersession_auth",
    "invalidation_type",
    "invalidation_reason",
    "invalidation_initiator",
];

impl Run<'_> {
    /// Runs an ADD statement.
    pub(super) fn add(&self, plan: &AddPlan) -> Result<Answer> {
        let fields = self.new_fields(plan)?;
        let content_address = self.quota(Write::Add, |run| {
            let grain = run.fresh(fields)?;
            Ok(run.memory.add(grain, &plan.reason)?)
        })?;
        Ok(Answer::Added { content_address })
    }

    /// Runs a SUPERSEDE statement.
    pub(super) fn supersede(&self, plan: SupersedePlan) -> Result<Answer> {
        let old = self.target(&plan)?;
        let superseded = old.address;
        let content_address = self.quota(Write::Supersede, |run| {
            let fields =
                successor(old, plan.fields, &plan.reason, run.memory.scope().actor.as_ref());
            let grain = run.fresh(fields)?;
            Ok(run.memory.supersede(&superseded, grain, &plan.reason)?)
        })?;
        Ok(Answer::Superseded { content_address, superseded })
    }

    /// Runs a write inside its quota; a refused one does not count.
    fn quota<T>(&self, write: Write, run: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        self.writes.take(write, Instant::now())?;
        run(self).inspect_err(|_| self.writes.give_back(write))
    }

    /// The grain of these fields, created now; a millisecond later where that very grain exists.
    fn fresh(&self, mut fields: Map) -> Result<Grain> {
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

    /// The payload of an ADD: what was set, what the session knows, and the defaults.
    fn new_fields(&self, plan: &AddPlan) -> Result<Map> {
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
                let waits = self.waits(&plan.depends_on)?;
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
            return Err(Error::new(ErrorKind::MissingField, message).at(plan.place));
        }
        Ok(fields)
    }

    /// Whether one of these goals is still open.
    fn waits(&self, goals: &[ContentAddress]) -> Result<bool> {
        for address in goals {
            let state = self.memory.get(address)?;
            let state = state.as_ref().and_then(|hit| hit.grain.text("goal_state"));
            if matches!(state, Some("active" | "suspended")) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The target of a SUPERSEDE: present, of this namespace, a belief, current.
    pub(super) fn target(&self, plan: &SupersedePlan) -> Result<Hit> {
        let target = &plan.target;
        let refused = |kind: ErrorKind, what: &str| {
            Error::new(kind, format!("{} {what}", target.node)).at(target.span)
        };
        let address = match self.memory.locate(&target.node)? {
            Located::One(address) => address,
            Located::Nothing => {
                return Err(refused(ErrorKind::TargetNotFound, "leads to no grain"));
            }
            Located::Elsewhere => {
                return Err(refused(
                    ErrorKind::OtherNamespace,
                    "lies in another namespace, or is another user's",
                ));
            }
            Located::Several => return Err(check::ambiguous(target)),
        };
        let Some(old) = self.memory.get(&address)? else {
            return Err(refused(ErrorKind::TargetNotFound, "leads to no grain"));
        };
        if old.grain.grain_type() != GrainType::Belief {
            return Err(refused(ErrorKind::NotEvolvable, "is no belief"));
        }
        if let Some(current) = old.state.superseded_by {
            let error = refused(ErrorKind::AlreadySuperseded, "is superseded already");
            // A session is not told of what it does not see.
            return Err(match self.memory.exists(&current)? {
                true => error.suggest(format!("its successor is sha256:{current}")),
                false => error,
            });
        }
        Ok(old)
    }
}

/// The payload of a successor: what it inherits, what was set, and where it comes from.
fn successor(old: Hit, set: Map, reason: &str, author: Option<&String>) -> Map {
    let before = old.grain.get("object").cloned();
    let mut fields = old.grain.into_fields();
    fields.retain(|name, _| !OWN.contains(&&**name) && !OWN_REASONS.contains(&&**name));
    fields.extend(set);
    if fields.get("object") != before.as_ref() {
        fields.remove("embedding_refs");
    }
    let derived_from = Value::from(vec![old.address.to_string()]);
    fields.insert("derived_from".to_owned(), derived_from);
    fields.insert("supersession_justification".to_owned(), reason.into());
    if let Some(author) = author {
        fields.insert("author_did".to_owned(), author.as_str().into());
    }
    fields
}
