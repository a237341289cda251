//! ADD, SUPERSEDE and REVERT: settable fields, their values, and the reason (CAL 5.3, 8.8 to 8.10).

use grainstore_format::{ContentAddress, GrainType, Map, Value};

use super::CheckContext;
use super::comparison::{closed_list_word, note_unknown_relation, number, texts};
use super::plan::{AddPlan, RevertPlan, SupersedePlan};
use super::resolve::{hash_of, hint_at_old_name, text_of};
use crate::ast::{Add, Literal, Revert, SetClause, Supersede, TextArg};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::fields::{self, GOAL_STATES};
use crate::limits;
use crate::span::Spanned;
use crate::suggest;
use crate::types;

/// A field that SET can write.
struct SettableField {
    name: &'static str,
    /// The payload field it is written to.
    payload: &'static str,
    kind: SettableKind,
    /// The only type that has it; `None` if all addable types do.
    owner: Option<GrainType>,
    /// True if SUPERSEDE takes it too.
    supersedable: bool,
}

/// The kind of value a settable field takes.
#[derive(Clone, Copy)]
enum SettableKind {
    Text,
    Unit,
    Texts,
    GoalState,
    Time,
    Goals,
}

const fn set(name: &'static str, kind: SettableKind, evolves: bool) -> SettableField {
    SettableField { name, payload: name, kind, owner: None, supersedable: evolves }
}

const fn of(owner: GrainType, name: &'static str, kind: SettableKind) -> SettableField {
    SettableField { name, payload: name, kind, owner: Some(owner), supersedable: false }
}

const SETTABLE: [SettableField; 12] = [
    set("subject", SettableKind::Text, false),
    set("relation", SettableKind::Text, false),
    set("object", SettableKind::Text, true),
    set("confidence", SettableKind::Unit, true),
    set("importance", SettableKind::Unit, true),
    SettableField { payload: "structural_tags", ..set("tags", SettableKind::Texts, true) },
    of(GrainType::Goal, "goal_state", SettableKind::GoalState),
    of(GrainType::Goal, "assigned_agent", SettableKind::Text),
    of(GrainType::Goal, "deadline", SettableKind::Time),
    of(GrainType::Goal, "depends_on", SettableKind::Goals),
    of(GrainType::Observation, "observer_id", SettableKind::Text),
    of(GrainType::Observation, "observer_type", SettableKind::Text),
];

const REQUIRED: [&str; 3] = ["subject", "relation", "object"];

/// Checks an ADD.
pub(super) fn add(add: &Add<'_>, context: &mut CheckContext<'_>) -> Result<AddPlan> {
    let grain_type = add.grain_type.node.grain_type;
    if !types::ADDABLE.contains(&grain_type) {
        let message = format!("ADD cannot create {}", types::plural_of(grain_type));
        let error = Error::new(ErrorKind::NotAddable, message).at(add.grain_type.span);
        return Err(error.valid(["belief", "observation", "goal"]));
    }
    hint_at_old_name(add.grain_type.node, context);
    let usable = |row: &SettableField| row.owner.is_none_or(|owner| owner == grain_type);
    let mut depends_on = Vec::new();
    let mut fields = Map::new();
    for clause in &add.sets {
        let row = settable(clause, &usable)?;
        if !usable(row) {
            let message = format!("{} is no field of {}", row.name, types::plural_of(grain_type));
            let error = Error::new(ErrorKind::WrongField, message).at(clause.name.span);
            return Err(error.suggest("use one of the listed fields").valid(names(&usable)));
        }
        write(row, clause, context, &mut fields, &mut depends_on)?;
    }
    if let Some(missing) = REQUIRED.iter().find(|name| !fields.contains_key(**name)) {
        let error = Error::new(ErrorKind::MissingField, format!("ADD needs SET {missing} = ..."));
        return Err(error.at(add.grain_type.span).valid(REQUIRED));
    }
    let place = add.grain_type.span;
    Ok(AddPlan { place, grain_type, fields, depends_on, reason: reason(&add.reason, context)? })
}

/// Checks a SUPERSEDE.
pub(super) fn supersede(
    supersede: &Supersede<'_>,
    context: &mut CheckContext<'_>,
) -> Result<SupersedePlan> {
    let target = context.hash(&supersede.target)?;
    let usable = |row: &SettableField| row.supersedable;
    let mut fields = Map::new();
    for clause in &supersede.sets {
        let row = settable(clause, &usable)?;
        if !row.supersedable {
            let message = format!("SUPERSEDE cannot set {}", row.name);
            let error = Error::new(ErrorKind::UnknownSetField, message).at(clause.name.span);
            return Err(error.valid(names(&usable)));
        }
        write(row, clause, context, &mut fields, &mut Vec::new())?;
    }
    Ok(SupersedePlan { target, fields, reason: reason(&supersede.reason, context)? })
}

/// Checks a REVERT.
pub(super) fn revert(revert: &Revert<'_>, context: &CheckContext<'_>) -> Result<RevertPlan> {
    let target = context.hash(&revert.target)?;
    Ok(RevertPlan { target, reason: reason(&revert.reason, context)? })
}

/// Returns the row of a SET clause: E017 for an unknown name.
fn settable(
    clause: &SetClause<'_>,
    usable: &impl Fn(&SettableField) -> bool,
) -> Result<&'static SettableField> {
    const ROWS: &[SettableField] = &SETTABLE;
    let name = clause.name.node;
    ROWS.iter().find(|row| row.name == name).ok_or_else(|| {
        let advice = suggest::did_you_mean(name, names(usable), "set one of the listed fields");
        let error = Error::new(ErrorKind::UnknownSetField, format!("SET cannot write \"{name}\""));
        error.at(clause.name.span).suggest(advice).valid(names(usable))
    })
}

fn names(usable: &impl Fn(&SettableField) -> bool) -> impl Iterator<Item = &'static str> {
    let names: Vec<_> = SETTABLE.iter().filter(|row| usable(row)).map(|row| row.name).collect();
    names.into_iter()
}

/// Writes the value of a clause: E009 if the field is set already.
fn write(
    row: &SettableField,
    clause: &SetClause<'_>,
    context: &mut CheckContext<'_>,
    fields: &mut Map,
    depends_on: &mut Vec<ContentAddress>,
) -> Result<()> {
    if fields.contains_key(row.payload) {
        let error = Error::new(ErrorKind::BoundTwice, format!("{} is set twice", row.name));
        return Err(error.at(clause.name.span));
    }
    let literal = context.value(&clause.value)?;
    let span = clause.value.span;
    let value = match row.kind {
        SettableKind::Text => {
            let text = text_of(literal, span)?.into_owned();
            if let Some(field) = fields::by_name(row.name) {
                note_unknown_relation(field, &text, context);
            }
            Value::from(text)
        }
        SettableKind::Unit => Value::from(number(true, literal, span, row.name)?),
        SettableKind::Texts => Value::from(texts(&clause.value, context)?),
        SettableKind::GoalState => {
            let state = closed_list_word(GOAL_STATES, row.name, literal, span)?;
            Value::from(fields::payload_goal_state(state))
        }
        SettableKind::Time => Value::from(context.time(literal, span)?.from.get()),
        SettableKind::Goals => goals(&clause.value, context, depends_on)?,
    };
    fields.insert(row.payload.to_owned(), value);
    Ok(())
}

/// Resolves the goals that a new one depends on: E046 for one the session cannot see.
fn goals(
    literal: &Spanned<Literal<'_>>,
    context: &CheckContext<'_>,
    depends_on: &mut Vec<ContentAddress>,
) -> Result<Value> {
    for value in context.spread(std::slice::from_ref(literal))? {
        let prefix = hash_of(value.node, value.span)?;
        let Some(address) = context.address(&prefix)? else {
            let message = format!("{} leads to no grain", prefix.node);
            return Err(Error::new(ErrorKind::TargetNotFound, message).at(value.span));
        };
        depends_on.push(address);
    }
    Ok(Value::from(depends_on.iter().map(ToString::to_string).collect::<Vec<_>>()))
}

/// Returns REASON: E016 if blank or longer than 500 characters.
fn reason(reason: &Spanned<TextArg<'_>>, context: &CheckContext<'_>) -> Result<String> {
    let text = context.text(&reason.node, reason.span)?;
    if text.trim().is_empty() {
        return Err(Error::new(ErrorKind::BadReason, "REASON is blank").at(reason.span));
    }
    if text.chars().count() > limits::MAX_REASON_CHARS {
        let message = format!("REASON has at most {} characters", limits::MAX_REASON_CHARS);
        return Err(Error::new(ErrorKind::BadReason, message).at(reason.span));
    }
    Ok(text.to_owned())
}
