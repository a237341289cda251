//! The table of CAL fields (CAL 5.2, 6, appendix E): name, owning type, values, operators, sorting.
//!
//! Lookup, messages, checking and matching all use this one table. It knows no syntax and no memory.

use grainstore_format::GrainType;

use crate::codes::ErrorKind;
use crate::error::Error;
use crate::suggest;
use crate::types;

/// The kind of a field, which decides the values it is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueKind {
    /// Text, compared exactly by code point.
    Text,
    /// One of a closed list of words.
    ClosedList(ValueList),
    /// A content address as text, with or without `sha256:`.
    Address,
    /// A number; if `unit`, it lies in 0..=1.
    Number { unit: bool },
    /// A boolean.
    Flag,
    /// A list of texts.
    List,
    /// A point in time in epoch milliseconds.
    Time,
    /// The name of a grain type.
    Type,
    /// The grain's own address.
    Hash,
    /// Text for full-text search, not exact comparison.
    Search,
    /// The search score of the grain, in 0..=1.
    Score,
}

/// A closed list of values, and the error for a value outside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ValueList {
    pub(crate) error: ErrorKind,
    pub(crate) values: &'static [&'static str],
}

/// Operator sets, as bit masks.
pub(crate) mod ops {
    /// `=`.
    pub(crate) const EQ: u16 = 1;
    /// `!=`.
    pub(crate) const NE: u16 = 2;
    /// `IN (...)`.
    pub(crate) const IN: u16 = 4;
    /// `<=` and `<`.
    pub(crate) const AT_MOST: u16 = 8;
    /// `INCLUDE [...]`.
    pub(crate) const INCLUDE: u16 = 16;
    /// `EXCLUDE [...]`.
    pub(crate) const EXCLUDE: u16 = 32;
    /// `IS category`.
    pub(crate) const IS: u16 = 64;
    /// `BETWEEN a AND b`.
    pub(crate) const BETWEEN: u16 = 128;
    /// `>=` and `>`.
    pub(crate) const AT_LEAST: u16 = 256;
    /// The four operators that compare magnitudes.
    pub(crate) const ORDER: u16 = AT_LEAST | AT_MOST;
}

/// Spellings of each operator set, for messages.
const OP_NAMES: [(u16, &[&str]); 9] = [
    (ops::EQ, &["="]),
    (ops::NE, &["!="]),
    (ops::IN, &["IN"]),
    (ops::AT_LEAST, &[">=", ">"]),
    (ops::AT_MOST, &["<=", "<"]),
    (ops::INCLUDE, &["INCLUDE"]),
    (ops::EXCLUDE, &["EXCLUDE"]),
    (ops::IS, &["IS"]),
    (ops::BETWEEN, &["BETWEEN"]),
];

/// One row of the field table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// Name in CAL.
    pub(crate) name: &'static str,
    /// The payload field it reads; equals `name` unless OMS uses another name.
    pub(crate) payload: &'static str,
    /// The only type that has the field; `None` for common fields.
    pub(crate) owner: Option<GrainType>,
    pub(crate) shape: ValueKind,
    /// Operators it takes, from [`ops`].
    pub(crate) operators: u16,
    /// True if ORDER BY takes it.
    pub(crate) sortable: bool,
}

/// A reference to a row of the field table.
pub(crate) type FieldRef = &'static Field;

impl Field {
    /// Returns the name in CAL.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the spellings of the operators it takes.
    pub(crate) fn operator_names(&self) -> impl Iterator<Item = &'static str> {
        let taken = self.operators;
        OP_NAMES
            .iter()
            .filter(move |(set, _)| taken & set != 0)
            .flat_map(|(_, n)| n.iter().copied())
    }
}

/// Returns the field of this name.
pub(crate) fn by_name(name: &str) -> Option<FieldRef> {
    FIELDS.iter().find(|field| field.name == name)
}

/// Returns the field that reads this payload field, if there is one.
pub(crate) fn by_payload(payload: &str) -> Option<FieldRef> {
    FIELDS.iter().find(|field| field.payload == payload)
}

/// Returns the names that a statement about `grain_type` may use; without a type, the common ones.
pub(crate) fn names_for(grain_type: Option<GrainType>) -> impl Iterator<Item = &'static str> {
    let usable = move |field: &&Field| field.owner.is_none() || field.owner == grain_type;
    FIELDS.iter().filter(usable).map(|field| field.name)
}

/// Returns the fields that SELECT and PROJECT take in a statement about `grain_type`.
pub(crate) fn projectable_names(
    grain_type: Option<GrainType>,
) -> impl Iterator<Item = &'static str> {
    names_for(grain_type).filter(|name| !NOT_PROJECTABLE.contains(name))
}

/// Returns the names of all fields, for "did you mean".
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FIELDS.iter().map(|field| field.name)
}

/// Returns E004 for a name that is no field, in a statement about `grain_type`.
pub(crate) fn unknown(name: &str, grain_type: Option<GrainType>) -> Error {
    let near = suggest::closest(name, names_for(grain_type)).map(|(near, _)| near);
    let advice = match near.or_else(|| Some(suggest::closest(name, names())?.0)) {
        Some(near) => format!("Did you mean \"{near}\"?{}", only_of(near, grain_type)),
        None if grain_type.is_none() => NO_TYPE_ADVICE.to_owned(),
        None => ErrorKind::UnknownField.advice().to_owned(),
    };
    let error = Error::new(ErrorKind::UnknownField, format!("unknown field \"{name}\""));
    error.suggest(advice).valid(names_for(grain_type))
}

/// Advice for an unknown field in a statement that names no type.
const NO_TYPE_ADVICE: &str = "use a listed field, or name the grain type whose field it is";

/// Returns a note that the field belongs to another type than the statement is about; else an empty string.
fn only_of(name: &str, grain_type: Option<GrainType>) -> String {
    match by_name(name).and_then(|field| field.owner) {
        Some(owner) if Some(owner) != grain_type => {
            format!(" It is a field of {} only.", types::plural_of(owner))
        }
        _ => String::new(),
    }
}

/// Returns the names that ORDER BY takes.
pub(crate) fn sortable_names() -> impl Iterator<Item = &'static str> {
    FIELDS.iter().filter(|field| field.sortable).map(|field| field.name)
}

/// Fields that GROUP BY takes.
pub(crate) const GROUPABLE: [&str; 7] =
    ["subject", "relation", "object", "user_id", "type", "verification_status", "source_type"];

/// Fields that SELECT and PROJECT do not take.
const NOT_PROJECTABLE: [&str; 4] = ["query", "namespace", "recall_priority", "epistemic_status"];

/// Returns `true` if SELECT takes the field.
pub(crate) fn is_projectable(field: &Field) -> bool {
    !NOT_PROJECTABLE.contains(&field.name)
}

const ACTION_PHASES: ValueList = ValueList {
    error: ErrorKind::BadActionPhase,
    values: &["definition", "call", "result", "complete"],
};
/// Goal states in both vocabularies (CAL and OMS); [`payload_goal_state`] maps one to the other.
pub(crate) const GOAL_STATES: ValueList = ValueList {
    error: ErrorKind::BadGoalState,
    values: &["active", "satisfied", "failed", "suspended", "completed", "abandoned", "blocked"],
};
const CONSENT_ACTIONS: ValueList =
    ValueList { error: ErrorKind::BadConsentAction, values: &["grant", "withdraw"] };
const RECALL_PRIORITIES: ValueList =
    ValueList { error: ErrorKind::BadRecallPriority, values: &["hot", "warm", "cold"] };
const EPISTEMIC_STATUSES: ValueList = ValueList {
    error: ErrorKind::BadEpistemicStatus,
    values: &["certain", "probable", "uncertain", "estimated", "derived"],
};
const VERIFICATION_STATUSES: ValueList = ValueList {
    error: ErrorKind::WrongType,
    values: &["unverified", "verified", "contested", "retracted"],
};

/// Returns the spelling of a goal state in payloads.
pub(crate) fn payload_goal_state(state: &str) -> &str {
    match state {
        "completed" => "satisfied",
        "abandoned" => "failed",
        "blocked" => "suspended",
        same => same,
    }
}

const UNIT: ValueKind = ValueKind::Number { unit: true };
const NUMBER: ValueKind = ValueKind::Number { unit: false };
const EQ: u16 = ops::EQ;
const EQ_NE: u16 = ops::EQ | ops::NE;
const EQ_NE_IN: u16 = EQ_NE | ops::IN;
const COMPARE: u16 = EQ_NE | ops::ORDER;
const PERIOD: u16 = EQ | ops::BETWEEN;

const fn common(name: &'static str, shape: ValueKind, operators: u16) -> Field {
    Field { name, payload: name, owner: None, shape, operators, sortable: false }
}

const fn of(owner: GrainType, name: &'static str, shape: ValueKind, operators: u16) -> Field {
    Field { name, payload: name, owner: Some(owner), shape, operators, sortable: false }
}

impl Field {
    const fn sorts(mut self) -> Self {
        self.sortable = true;
        self
    }

    const fn reads(mut self, payload: &'static str) -> Self {
        self.payload = payload;
        self
    }
}

/// The table: common fields first, then those of each type.
#[rustfmt::skip]
static FIELDS: [Field; 49] = [
    common("query", ValueKind::Search, EQ),
    common("subject", ValueKind::Text, EQ_NE_IN).sorts(),
    common("relation", ValueKind::Text, EQ_NE_IN | ops::IS).sorts(),
    common("object", ValueKind::Text, EQ_NE_IN).sorts(),
    common("user_id", ValueKind::Text, EQ_NE),
    common("namespace", ValueKind::Text, EQ),
    common("confidence", UNIT, COMPARE).sorts(),
    common("importance", UNIT, COMPARE).sorts(),
    common("score", ValueKind::Score, ops::AT_LEAST).sorts(),
    common("tags", ValueKind::List, ops::INCLUDE | ops::EXCLUDE).reads("structural_tags"),
    common("type", ValueKind::Type, EQ),
    common("time", ValueKind::Time, PERIOD).sorts(),
    common("hash", ValueKind::Hash, EQ),
    common("contradicted", ValueKind::Flag, EQ),
    common("verification_status", ValueKind::ClosedList(VERIFICATION_STATUSES), EQ).sorts(),
    common("source_type", ValueKind::Text, EQ).sorts(),
    common("recall_priority", ValueKind::ClosedList(RECALL_PRIORITIES), EQ),
    common("epistemic_status", ValueKind::ClosedList(EPISTEMIC_STATUSES), EQ),
    of(GrainType::Event, "role", ValueKind::Text, EQ_NE),
    of(GrainType::Event, "session_id", ValueKind::Text, EQ),
    of(GrainType::Event, "parent_message_id", ValueKind::Address, EQ),
    of(GrainType::Event, "model_id", ValueKind::Text, EQ_NE),
    of(GrainType::Event, "content", ValueKind::Search, EQ),
    of(GrainType::State, "context", ValueKind::Text, EQ_NE),
    of(GrainType::State, "plan", ValueKind::Search, EQ),
    of(GrainType::Workflow, "trigger", ValueKind::Text, EQ_NE),
    of(GrainType::Workflow, "steps", ValueKind::Search, EQ),
    of(GrainType::Action, "tool_name", ValueKind::Text, EQ_NE_IN),
    of(GrainType::Action, "action_phase", ValueKind::ClosedList(ACTION_PHASES), EQ),
    of(GrainType::Action, "is_error", ValueKind::Flag, EQ),
    of(GrainType::Action, "tool_call_id", ValueKind::Text, EQ),
    of(GrainType::Observation, "observer_id", ValueKind::Text, EQ_NE),
    of(GrainType::Observation, "observer_type", ValueKind::Text, EQ_NE),
    of(GrainType::Goal, "goal_state", ValueKind::ClosedList(GOAL_STATES), EQ_NE),
    of(GrainType::Goal, "assigned_agent", ValueKind::Text, EQ_NE),
    of(GrainType::Goal, "deadline", ValueKind::Time, PERIOD),
    of(GrainType::Goal, "depends_on", ValueKind::Address, EQ | ops::IN),
    of(GrainType::Reasoning, "reasoning_type", ValueKind::Text, EQ).reads("inference_method"),
    of(GrainType::Reasoning, "premises", ValueKind::Search, EQ),
    of(GrainType::Reasoning, "conclusion", ValueKind::Text, EQ_NE),
    of(GrainType::Consensus, "threshold", NUMBER, EQ | ops::ORDER),
    of(GrainType::Consensus, "agreement_count", NUMBER, EQ | ops::ORDER),
    of(GrainType::Consensus, "participating_observers", ValueKind::List, ops::INCLUDE),
    of(GrainType::Consent, "consent_action", ValueKind::ClosedList(CONSENT_ACTIONS), EQ).reads("is_withdrawal"),
    of(GrainType::Consent, "purpose", ValueKind::Text, EQ_NE),
    of(GrainType::Consent, "grantor_did", ValueKind::Text, EQ).reads("subject_did"),
    of(GrainType::Consent, "grantee_did", ValueKind::Text, EQ),
    of(GrainType::Consent, "scope", ValueKind::Text, EQ),
    of(GrainType::Consent, "expires_at", ValueKind::Time, PERIOD).reads("valid_to"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_fields_of_the_specification() {
        assert_eq!(names_for(None).count(), 18);
        for (grain_type, count) in [(GrainType::Event, 23), (GrainType::Consent, 24)] {
            assert_eq!(names_for(Some(grain_type)).count(), count, "{grain_type}");
        }
        let sortable: Vec<_> = sortable_names().collect();
        assert_eq!(sortable.len(), 9, "{sortable:?}");
    }

    #[test]
    fn names_are_distinct() {
        for name in names() {
            assert_eq!(names().filter(|other| *other == name).count(), 1, "{name}");
        }
    }
}
