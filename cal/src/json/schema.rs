//! The JSON Schema of the JSON form, for the structured output of models. It is built from the table that
//! the reader uses.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::table::{
    self, CHOICES, ChoiceForm, EXTENSION, EXTRACTORS, KeyForm, ListForm, OPERANDS, OPERATORS,
    ObjectForm, QUERY, STATEMENTS, ValueForm,
};
use crate::fields;
use crate::limits;
use crate::types;

/// Returns the JSON Schema (draft 2020-12) of `application/json+cal`.
///
/// It covers the form and the limits of numbers; other limits, and the operators each field takes, are
/// reported as errors of a query.
///
/// ```
/// let schema = grainstore_cal::schema();
/// assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
/// ```
#[must_use]
pub fn schema() -> Value {
    let alone = STATEMENTS.iter().map(|form| (form.name.to_owned(), object(form, &[])));
    let operands = OPERANDS.iter().map(|form| (operand(form), object(form, &QUERY)));
    let choices = CHOICES.iter().map(|choice| (choice.what.to_owned(), choices(choice)));
    let mut definitions: Map<String, Value> = alone.chain(operands).chain(choices).collect();
    definitions.insert("value".into(), value());
    definitions.insert("scalar".into(), scalar());
    definitions.insert("condition".into(), condition());
    definitions.insert("param".into(), param());
    let queries: Vec<Value> = STATEMENTS.iter().map(|form| query(form)).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "CAL/1 in JSON (application/json+cal)",
        "description": "One query over a memory of grains: exactly one statement, named by \"statement\".",
        "anyOf": queries,
        "$defs": definitions,
    })
}

/// Returns the definition name of a statement that may have its own LETs.
fn operand(form: &ObjectForm) -> String {
    format!("{}_query", form.name)
}

/// Returns the schema of a statement as a whole query.
fn query(form: &'static ObjectForm) -> Value {
    match OPERANDS.iter().any(|operand| operand.name == form.name) {
        true => reference(&operand(form)),
        false => object(form, &QUERY),
    }
}

fn object(form: &'static ObjectForm, before: &'static [KeyForm]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    if let Some(statement) = form.statement {
        properties.insert("statement".into(), json!({ "const": statement }));
        required.push("statement");
    }
    for key in before.iter().chain(form.keys) {
        properties.insert(key.name.to_owned(), described(shape(&key.shape), key.about));
    }
    let mut schema = Map::new();
    schema.insert("type".into(), json!("object"));
    schema.insert("description".into(), json!(form.about));
    schema.insert("properties".into(), Value::Object(properties));
    schema.insert("additionalProperties".into(), json!(false));
    match form.needs {
        [] => {}
        [all] => required.extend(*all),
        ways => {
            let ways: Vec<Value> = ways.iter().map(|all| json!({ "required": all })).collect();
            schema.insert("anyOf".into(), Value::Array(ways));
        }
    }
    schema.insert("required".into(), json!(required));
    Value::Object(schema)
}

fn described(mut schema: Value, about: &str) -> Value {
    if let Value::Object(keys) = &mut schema {
        keys.insert("description".into(), json!(about));
    }
    schema
}

fn shape(shape: &'static ValueForm) -> Value {
    match shape {
        ValueForm::Flag => json!({ "const": true }),
        ValueForm::Text => or_param(json!({ "type": "string" })),
        ValueForm::Count => or_param(json!({ "type": "integer", "minimum": 0 })),
        ValueForm::Within(least, most) => within(*least, *most),
        ValueForm::BoundedText(most) => {
            or_param(json!({ "type": "string", "minLength": 1, "maxLength": most }))
        }
        ValueForm::Fraction => or_param(json!({ "type": "number", "minimum": 0, "maximum": 1 })),
        ValueForm::Whole => json!({ "const": 1 }),
        ValueForm::Number => or_param(json!({ "type": "number" })),
        ValueForm::Hash => json!({ "anyOf": [hash(), hash_object(), reference("param")] }),
        ValueForm::Value => reference("value"),
        ValueForm::Pair => pair(),
        ValueForm::Plural => json!({ "enum": types::all_plurals().collect::<Vec<_>>() }),
        ValueForm::Singular => json!({ "enum": types::all_singulars().collect::<Vec<_>>() }),
        ValueForm::Addable => json!({ "enum": types::addable_singulars().collect::<Vec<_>>() }),
        ValueForm::Name | ValueForm::Variable => name(),
        ValueForm::Field => field(),
        ValueForm::Shown => shown(),
        ValueForm::Word(words) => json!({ "enum": words }),
        ValueForm::Raw => json!({ "type": "string" }),
        ValueForm::WordOr(words, other) => {
            json!({ "anyOf": [{ "enum": words }, self::shape(other)] })
        }
        ValueForm::NameOr(other) => json!({ "anyOf": [name(), self::shape(other)] }),
        ValueForm::FlagOr(other) => json!({ "anyOf": [{ "const": true }, self::shape(other)] }),
        ValueForm::Object(form) => object(form, &[]),
        ValueForm::Budget(form) => budget(form),
        ValueForm::List(list) => items(list),
        ValueForm::Choice(choice) => reference(choice.what),
        ValueForm::Condition => reference("condition"),
        ValueForm::Statement(forms) | ValueForm::Slot(forms) => {
            any(forms.iter().map(|form| reference(form.name)))
        }
        ValueForm::Query(forms) => any(forms.iter().map(|form| query(form))),
    }
}

fn items(list: &'static ListForm) -> Value {
    let mut schema = json!({ "type": "array", "minItems": 1, "items": shape(&list.of) });
    if let (Some(most), Value::Object(keys)) = (list.most, &mut schema) {
        keys.insert("maxItems".into(), json!(most));
    }
    schema
}

fn within(least: u64, most: u64) -> Value {
    or_param(json!({ "type": "integer", "minimum": least, "maximum": most }))
}

/// Returns the schema of a budget in either unit, each with its bounds.
fn budget(form: &ObjectForm) -> Value {
    let ways = [("tokens", limits::TOKEN_BUDGET.1), ("grains", limits::GRAIN_BUDGET.1)].map(
        |(unit, most)| {
            let amount = within(1, most);
            object_of(&[("amount", amount), ("unit", json!({ "const": unit }))])
        },
    );
    json!({ "description": form.about, "anyOf": ways })
}

fn choices(choice: &'static ChoiceForm) -> Value {
    let bare = choice.rows.iter().filter(|row| row.bare).map(|row| row.name).collect::<Vec<_>>();
    let mut ways = Vec::new();
    if !bare.is_empty() {
        ways.push(json!({ "enum": bare }));
    }
    for row in choice.rows {
        if let Some((_, held, _)) = &row.holds {
            ways.push(json!({
                "type": "object",
                "properties": { row.name: shape(held) },
                "required": [row.name],
                "additionalProperties": false,
            }));
        }
    }
    if choice.extensions {
        let extension = "^[xX]_[A-Za-z0-9_]+$";
        ways.push(json!({ "type": "string", "pattern": extension }));
        ways.push(json!({
            "type": "object",
            "patternProperties": { extension: shape(&EXTENSION) },
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": false,
        }));
    }
    json!({ "anyOf": ways })
}

fn condition() -> Value {
    let values = json!({ "type": "array", "minItems": 1, "items": reference("scalar") });
    let subquery =
        object_of(&[("recall", reference("recall")), ("extract", json!({ "enum": EXTRACTORS }))]);
    let binding = object_of(&[("let", name())]);
    let ways = OPERATORS.map(|operator| {
        let value = match operator {
            "IN" => json!({ "anyOf": [values, subquery, binding, reference("param")] }),
            "BETWEEN" => pair(),
            "IS" => json!({ "enum": table::categories().collect::<Vec<_>>() }),
            _ => reference("value"),
        };
        object_of(&[("field", field()), ("op", json!({ "const": operator })), ("value", value)])
    });
    json!({ "description": "one condition on a field", "anyOf": ways })
}

fn object_of(keys: &[(&str, Value)]) -> Value {
    let properties: Map<_, _> =
        keys.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    let required: Vec<_> = keys.iter().map(|(name, _)| *name).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn scalar() -> Value {
    json!({ "anyOf": [
        { "type": ["string", "number", "boolean"] },
        reference("param"),
        hash_object(),
    ] })
}

fn value() -> Value {
    json!({ "anyOf": [reference("scalar"), { "type": "array", "items": reference("scalar") }] })
}

fn pair() -> Value {
    json!({ "type": "array", "minItems": 2, "maxItems": 2, "items": reference("value") })
}

fn param() -> Value {
    described(object_of(&[("param", name())]), "the value bound to this name")
}

fn hash() -> Value {
    json!({ "type": "string", "pattern": "^sha256:[0-9a-f]{8,64}$" })
}

fn hash_object() -> Value {
    object_of(&[("hash", hash())])
}

fn name() -> Value {
    json!({ "type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_]*$" })
}

/// Returns the schema of a CAL field or a domain field.
fn field() -> Value {
    json!({ "anyOf": [
        { "enum": fields::names().collect::<Vec<_>>() },
        { "type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_]*:[A-Za-z][A-Za-z0-9_]*$" },
    ] })
}

/// Returns the schema of a field that PROJECT shows.
fn shown() -> Value {
    json!({ "anyOf": [
        field(),
        { "enum": grainstore_sml::attribute_names().collect::<BTreeSet<_>>() },
        { "type": "string", "pattern": "^x_[A-Za-z0-9_]+$" },
    ] })
}

fn or_param(schema: Value) -> Value {
    let ways = [schema, reference("param")];
    json!({ "anyOf": ways })
}

fn any(mut ways: impl ExactSizeIterator<Item = Value>) -> Value {
    match ways.len() {
        1 => ways.next().unwrap_or_default(),
        _ => json!({ "anyOf": ways.collect::<Vec<_>>() }),
    }
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}
