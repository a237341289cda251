//! The grain of an item, and the item of a grain.

use grainstore::format::{Map, Value};
use grainstore::{EpochMs, Grain};
use serde_json::Value as Json;

use super::PROFILE;
use super::kinds::{Filled, Form, GOAL_STATES, Kind, Made, Place, Subject, Target, TypedGrain};
use crate::error::Result;
use crate::json;
use crate::kept::{clamped, date_text, grain_text, milliseconds, residue_of, restored};
use crate::saga::kinds::Layer;
use crate::saga::wallet::Wallet;

/// Where an item comes from: what the grains of a document have in common.
#[derive(Debug, Clone, Copy)]
pub(in crate::saga) struct Origin<'o> {
    pub(in crate::saga) wallet: &'o Wallet,
    /// When it was exported; for items that have no time of their own.
    pub(in crate::saga) at: EpochMs,
    /// The address of the consent that it rests on.
    pub(in crate::saga) basis: Option<&'o str>,
    /// The layer, which ends the namespace.
    pub(in crate::saga) layer: &'o str,
}

impl Origin<'_> {
    /// Returns `true` for the layer of which nothing is in an index of words.
    pub(in crate::saga) fn is_secret(self) -> bool {
        self.layer == Layer::Vault.name()
    }
}

/// The fields of the grain of an item. `split` are the kinds of items that were taken out of it, if it is a layer.
///
/// # Errors
/// `ERR_CORRUPT` if the item would not come back as it is, which would be a mistake of this module.
pub(in crate::saga) fn fields_of(
    kind: &Kind,
    id: &str,
    value: &Json,
    split: &[&str],
    origin: Origin<'_>,
) -> Result<Map> {
    let fields = match kind.target {
        Target::Typed(grain) => typed_fields(grain, kind, id, value, origin),
        Target::State | Target::Secret => state_fields(value),
    };
    let fields = with_common(fields, kind, id, value, split, origin);
    let Target::Typed(grain) = kind.target else { return Ok(fields) };
    // What no grain of the type can have is kept as a State.
    match with_residue(grain, &fields, value)? {
        Some(fields) => Ok(fields),
        None => Ok(with_common(state_fields(value), kind, id, value, split, origin)),
    }
}

/// Adds what all grains of SAGA have.
fn with_common(
    mut fields: Map,
    kind: &Kind,
    id: &str,
    value: &Json,
    split: &[&str],
    origin: Origin<'_>,
) -> Map {
    let mut context = match fields.remove("context") {
        Some(Value::Map(context)) => context,
        _ => Map::new(),
    };
    let mut note = |name: &str, text: &str| {
        context.insert(PROFILE.key(name), Value::from(text));
    };
    note("layer", origin.layer);
    note("kind", kind.name);
    note("agent_id", &origin.wallet.to_string());
    // For people and queries; rows lead to the grain by the id as it is.
    let plain = grain_text(id).replace('\0', "~");
    if !plain.is_empty() && !origin.is_secret() {
        note("id", &plain);
    }
    if !split.is_empty() {
        note("split", &split.join(","));
    }
    let mut tags = vec![PROFILE.tag()];
    if origin.is_secret() {
        tags.push("sec:credential".to_owned());
        fields.insert("recall_priority".to_owned(), Value::from("cold"));
    }
    if kind.name == "short-term" {
        fields.insert("recall_priority".to_owned(), Value::from("hot"));
    }
    if let Some(basis) = origin.basis {
        fields.insert("processing_basis".to_owned(), Value::from(basis));
    }
    let namespace = format!("{}:{}", origin.wallet.namespace(), origin.layer);
    fields.insert("context".to_owned(), Value::Map(context));
    fields.insert("structural_tags".to_owned(), Value::from(tags));
    fields.insert("namespace".to_owned(), Value::from(namespace));
    fields.insert("created_at".to_owned(), Value::from(created_at(kind, value, origin.at).get()));
    fields
}

/// Adds the residue: what the grain, as it will be stored, does not say of its item. `None` if there can be no such
/// grain.
fn with_residue(grain: &TypedGrain, fields: &Map, value: &Json) -> Result<Option<Map>> {
    let Ok(stored) = Grain::from_fields(fields.clone()) else { return Ok(None) };
    let mut fields = stored.into_fields();
    if let Some(residue) = residue_of(&said(grain, &fields), value)?
        && let Some(Value::Map(context)) = fields.get_mut("context")
    {
        context.insert(PROFILE.key("residue"), Value::from(residue));
    }
    Ok(Some(fields))
}

/// The item of a grain's fields; `None` if the grain is none of its kind any more.
///
/// # Errors
/// `ERR_CORRUPT` for JSON that is none.
pub(in crate::saga) fn item_of(kind: &Kind, id: &str, fields: &Map) -> Result<Option<Json>> {
    let context = fields.get("context").and_then(Value::as_map);
    let text =
        |name: &str| context.and_then(|it| it.get(&PROFILE.key(name))).and_then(Value::as_str);
    if let Some(text) = text("json") {
        return json::parse(text.as_bytes()).map(Some);
    }
    let Target::Typed(grain) = kind.target else { return Ok(None) };
    if fields.get("type").and_then(Value::as_str) != Some(grain.grain_type) {
        return Ok(None);
    }
    let mut item = restored(said(grain, fields), text("residue"))?;
    if text("kind").is_none() {
        if matches!(grain.subject, Subject::AgentBy(_)) {
            // An endorsement that its endorser did not sign is none.
            return Ok(None);
        }
        fill(&mut item, grain, kind, id, fields);
    }
    Ok(Some(item))
}

/// Adds to the item of a grain that was not made of one, such as a successor written by hand, what an item must have.
fn fill(item: &mut Json, grain: &TypedGrain, kind: &Kind, id: &str, fields: &Map) {
    let Json::Object(members) = item else { return };
    if let Form::List(name) = kind.form
        && !id.contains('\0')
        && !id.is_empty()
    {
        members.entry(name).or_insert_with(|| Json::from(id));
    }
    let created = fields.get("created_at").and_then(Value::as_i64).map(EpochMs::new);
    for (name, filled) in grain.filled {
        let value = match filled {
            Filled::Word(word) => Some((*word).to_owned()),
            Filled::Created => created.and_then(date_text),
        };
        if let Some(value) = value {
            members.entry(*name).or_insert_with(|| Json::from(value));
        }
    }
}

fn state_fields(value: &Json) -> Map {
    let context = Map::from([(PROFILE.key("json"), Value::from(json::ascii(value)))]);
    Map::from([
        ("type".to_owned(), Value::from("state")),
        ("context".to_owned(), Value::Map(context)),
    ])
}

/// When the grain of an item is of.
fn created_at(kind: &Kind, value: &Json, otherwise: EpochMs) -> EpochMs {
    let member = match kind.target {
        Target::Typed(grain) => grain.created,
        _ => None,
    };
    let time = member.and_then(|name| value.get(name)?.as_str()).and_then(milliseconds);
    clamped(time.unwrap_or(otherwise))
}

fn typed_fields(
    grain: &TypedGrain,
    kind: &Kind,
    id: &str,
    value: &Json,
    origin: Origin<'_>,
) -> Map {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    put("type", Value::from(grain.grain_type));
    if let Some(relation) = grain.relation {
        put("relation", Value::from(relation));
    }
    if grain.subject != Subject::None {
        put("subject", Value::from(origin.wallet.did()));
    }
    if let Subject::AgentBy(member) = grain.subject
        && let Some(by) = value.get(member).and_then(Json::as_str)
        && let Ok(by) = Wallet::new(origin.wallet.chain(), by)
    {
        put("origin_did", Value::from(by.did()));
    }
    if let (Some(field), Form::Named) = (grain.name, kind.form) {
        put_text(&mut fields, field, id);
    }
    let mut context = Map::new();
    for (member, place) in grain.members {
        let Some(value) = (if member.is_empty() { Some(value) } else { value.get(*member) }) else {
            continue;
        };
        put_member(&mut fields, &mut context, member, *place, value);
    }
    let made =
        grain.made.iter().filter_map(|made| make(&mut fields, *made, value)).collect::<Vec<_>>();
    if !made.is_empty() {
        context.insert(PROFILE.key("defaults"), Value::from(made.join(",")));
    }
    fields.insert("context".to_owned(), Value::Map(context));
    fields
}

/// Puts a member where it belongs, if it is what belongs there. The rest is for the residue.
fn put_member(fields: &mut Map, context: &mut Map, member: &str, place: Place, value: &Json) {
    match place {
        Place::Text(field) => {
            if let Some(text) = value.as_str() {
                put_text(fields, field, text);
            }
        }
        Place::Context => {
            if let Some(text) = value.as_str() {
                put_text(context, &PROFILE.key(member), text);
            }
        }
        Place::Share(field) => {
            if let Some(share) = value.as_f64().filter(|share| (0.0..=1.0).contains(share)) {
                fields.insert(field.to_owned(), Value::from(share));
            }
        }
        Place::Count(field) => {
            if let Some(count) = value.as_i64().filter(|count| *count >= 0) {
                fields.insert(field.to_owned(), Value::from(count));
            }
        }
        Place::Time(field) => {
            if let Some(time) = value.as_str().and_then(milliseconds) {
                fields.insert(field.to_owned(), Value::from(time.get()));
            }
        }
        Place::Texts(field) => {
            let texts: Option<Vec<_>> = value.as_array().and_then(|list| {
                list.iter()
                    .map(|text| text.as_str().map(|text| grain_text(text).into_owned()))
                    .collect()
            });
            if let Some(texts) =
                texts.filter(|it| !it.is_empty() && it.iter().all(|text| !text.is_empty()))
            {
                fields.insert(field.to_owned(), Value::from(texts));
            }
        }
        Place::GoalState => {
            let state = GOAL_STATES.iter().find(|(word, _)| value.as_str() == Some(*word));
            if let Some((_, state)) = state {
                fields.insert("goal_state".to_owned(), Value::from(*state));
            }
        }
    }
}

/// Puts text into a field, unless it is empty, which no field of text may be.
fn put_text(fields: &mut Map, name: &str, text: &str) {
    let text = grain_text(text);
    if !text.is_empty() {
        fields.insert(name.to_owned(), Value::from(text.as_ref()));
    }
}

/// Makes up a field that is missing, and returns its name.
fn make(fields: &mut Map, made: Made, value: &Json) -> Option<&'static str> {
    let text = |member: &str| {
        let text = value.get(member).and_then(Json::as_str).map(grain_text);
        text.filter(|text| !text.is_empty()).map(std::borrow::Cow::into_owned)
    };
    let (name, value) = match made {
        Made::Text(name, word) => (name, Value::from(word)),
        Made::Member(name, member, word) => {
            (name, Value::from(text(member).unwrap_or_else(|| word.to_owned())))
        }
        Made::Number(name, number) => (name, Value::from(number)),
        Made::Texts(name, member, other) => {
            let step = text(member).or_else(|| text(other));
            (name, Value::from(vec![step.unwrap_or_else(|| "unspecified".to_owned())]))
        }
    };
    if fields.contains_key(name) {
        return None;
    }
    fields.insert(name.to_owned(), value);
    Some(name)
}

/// What the fields of a grain say of its item, without the residue.
fn said(grain: &TypedGrain, fields: &Map) -> Json {
    let context = fields.get("context").and_then(Value::as_map);
    let noted =
        |key: &str| context.and_then(|it| it.get(&PROFILE.key(key))).and_then(Value::as_str);
    let made: Vec<_> = noted("defaults").unwrap_or_default().split(',').collect();
    let field = |name: &str| fields.get(name).filter(|_| !made.contains(&name));
    let mut item = json::Map::new();
    for (member, place) in grain.members {
        let value = match place {
            Place::Text(name) => field(name).and_then(Value::as_str).map(Json::from),
            Place::Share(name) => field(name).and_then(Value::as_f64).map(Json::from),
            Place::Count(name) => field(name).and_then(Value::as_i64).map(Json::from),
            Place::Time(name) => field(name)
                .and_then(Value::as_i64)
                .and_then(|ms| date_text(EpochMs::new(ms)))
                .map(Json::from),
            Place::Texts(name) => field(name)
                .and_then(Value::as_array)
                .map(|list| list.iter().filter_map(Value::as_str).map(Json::from).collect()),
            Place::GoalState => field("goal_state").and_then(Value::as_str).and_then(|state| {
                GOAL_STATES.iter().find(|(_, of)| *of == state).map(|(word, _)| Json::from(*word))
            }),
            Place::Context => noted(member).map(Json::from),
        };
        match (member.is_empty(), value) {
            (true, value) => return value.unwrap_or(Json::Null),
            (false, Some(value)) => drop(item.insert((*member).to_owned(), value)),
            (false, None) => {}
        }
    }
    Json::Object(item)
}
