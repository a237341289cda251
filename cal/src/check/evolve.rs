//! ADD, SUPERSEDE and REVERT: settable fields, their values, and the reason (CAL 5.3, 8.8 to 8.10).

use grainstore_format::{ContentAddress, GrainType, Map, Value};

use super::comparison::{closed, note_unknown_relation, number, texts};
use super::plan::{AddPlan, RevertPlan, SupersedePlan};
use super::resolve::{hash_of, text_of};
use super::{Context, recall};
use crate::ast::{Add, Literal, Revert, SetClause, Supersede, TextArg};
use crate::codes::ErrorKind;
use crate::error::{Error, Result};
use crate::fields::{self, GOAL_STATES};
use crate::limits;
use crate::span::Spanned;
use crate::suggest;
use crate::types;

/// A field that SET can write.
struct Settable {
    name: &'static str,
    /// The payload field it is written to.
    payload: &'static str,
    kind: Kind,
    /// The only type that has it; `None` if all addable types do.
    owner: Option<GrainType>,
    /// True if SUPERSEDE takes it too.
    evolves: bool,
}

/// The kind of value a settable field takes.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Unit,
    Texts,
    GoalState,
    Time,
    Goals,
}

const fn set(name: &'static str, kind: Kind, evolves: bool) -> Settable {
    Settable { name, payload: name, kind, owner: None, evolves }
}

const fn of(owner: GrainType, name: &'static str, kind: Kind) -> Settable {
    Settable { name, payload: name, kind, owner: Some(owner), evolves: false }
}

const SETTABLE: [Settable; 12] = [
    set("subject", Kind::Text, false),
    set("relation", Kind::Text, false),
    set("object", Kind::Text, true),
    set("confidence", Kind::Unit, true),
    set("importance", Kind::Unit, true),
    Settable { payload: "structural_tags", ..set("tags", Kind::Texts, true) },
    of(GrainType::Goal, "goal_state", Kind::GoalState),
    of(GrainType::Goal, "assigned_agent", Kind::Text),
    of(GrainType::Goal, "deadline", Kind::Time),
    of(GrainType::Goal, "depends_on", Kind::Goals),
    of(GrainType::Observation, "observer_id", Kind::Text),
    of(GrainType::Observation, "observer_type", Kind::Text),
];

const REQUIRED: [&str; 3] = ["subject", "relation", "object"];

/// Checks an ADD.
pub(super) fn add(add: &Add<'_>, context: &mut Context<'_>) -> Result<AddPlan> {
    let grain_type = add.grain_type.node.grain_type;
    if !types::ADDABLE.contains(&grain_type) {
        let message = format!("ADD cannot create {}", types::plural_of(grain_type));
        let error = Error::new(ErrorKind::NotAddable, message).at(add.grain_type.span);
        return Err(error.valid(["belief", "observation", "goal"]));
    }
    recall::hint_at_old_name(add.grain_type.node, context);
    let usable = |row: &Settable| row.owner.is_none_or(|owner| owner == grain_type);
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
    context: &mut Context<'_>,
) -> Result<SupersedePlan> {
    let target = context.hash(&supersede.target)?;
    let usable = |row: &Settable| row.evolves;
    let mut fields = Map::new();
    for clause in &supersede.sets {
        let row = settable(clause, &usable)?;
        if !row.evolves {
            let message = format!("SUPERSEDE cannot set {}", row.name);
            let error = Error::new(ErrorKind::UnknownSetField, message).at(clause.name.span);
            return Err(error.valid(names(&usable)));
        }
        write(row, clause, context, &mut fields, &mut Vec::new())?;
    }
    Ok(SupersedePlan { target, fields, reason: reason(&supersede.reason, context)? })
}

/// Checks a REVERT.
pub(super) fn revert(revert: &Revert<'_>, context: &Context<'_>) -> Result<RevertPlan> {
    let target = context.hash(&revert.target)?;
    Ok(RevertPlan { target, reason: reason(&revert.reason, context)? })
}

/// Returns the row of a SET clause: E017 for an unknown name.
fn settable(
    clause: &SetClause<'_>,
    usable: &impl Fn(&Settable) -> bool,
) -> Result<&'static Settable> {
    const ROWS: &[Settable] = &SETTABLE;
    let name = clause.name.node;
    ROWS.iter().find(|row| row.name == name).ok_or_else(|| {
        let advice = suggest::did_you_mean(name, names(usable), "set one of the listed fields");
        let error = Error::new(ErrorKind::UnknownSetField, format!("SET cannot write \"{name}\""));
        error.at(clause.name.span).suggest(advice).valid(names(usable))
    })
}

fn names(usable: &impl Fn(&Settable) -> bool) -> impl Iterator<Item = &'static str> {
    let names: Vec<_> = SETTABLE.iter().filter(|row| usable(row)).map(|row| row.name).collect();
    names.into_iter()
}

/// Writes the value of a clause: E009 if the field is set already.
fn write(
    row: &Settable,
    clause: &SetClause<'_>,
    context: &mut Context<'_>,
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
        Kind::Text => {
            let text = text_of(literal, span)?.into_owned();
            if let Some(field) = fields::by_name(row.name) {
                note_unknown_relation(field, &text, context);
            }
            Value::from(text)
        }
        Kind::Unit => Value::from(number(true, literal, span, row.name)?),
        Kind::Texts => Value::from(texts(&clause.value, context)?),
        Kind::GoalState => {
            let state = closed(GOAL_STATES, row.name, literal, span)?;
            Value::from(fields::payload_goal_state(state))
        }
        Kind::Time => Value::from(context.time(literal, span)?.from.get()),
        Kind::Goals => goals(&clause.value, context, depends_on)?,
    };
    fields.insert(row.payload.to_owned(), value);
    Ok(())
}

/// Resolves the goals that a new one depends on: E046 for one the session cannot see.
fn goals(
    literal: &Spanned<Literal<'_>>,
    context: &Context<'_>,
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
fn reason(reason: &Spanned<TextArg<'_>>, context: &Context<'_>) -> Result<String> {
    let text = context.text(&reason.node, reason.span)?;
    if text.trim().is_empty() {
        return Err(Error::new(ErrorKind::BadReason, "REASON is blank").at(reason.span));
    }
    if text.chars().count() > limits::REASON_CHARS {
        let message = format!("REASON has at most {} characters", limits::REASON_CHARS);
        return Err(Error::new(ErrorKind::BadReason, message).at(reason.span));
    }
    Ok(text.to_owned())
}
