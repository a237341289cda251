//! Value types by the field table: common fields are checked on every type, others on the types of
//! their section.

use crate::error::{Error, ErrorKind, Result, schema};
use crate::fields::{self, CITATION, FieldDef, FieldKind, NestedFields};
use crate::grain_type::GrainType;
use crate::value::{Map, Value};

pub(super) fn check(grain_type: GrainType, fields: &Map) -> Result<()> {
    for (name, value) in fields {
        let Some(def) = fields::by_name(name, grain_type) else {
            continue;
        };
        if !def.section.covers(grain_type) {
            continue;
        }
        check_kind(def, value)?;
        for entry in super::maps(fields, name) {
            if let Some(nested) = NestedFields::under(name) {
                check_map(nested.fields, entry)?;
            }
            if matches!(def.kind, FieldKind::Parents) || name == "content_refs" {
                check_map(&CITATION, entry)?;
            }
        }
    }
    if let Some(Value::Map(stamp)) = fields.get("trusted_timestamp")
        && stamp.get("tsp_response").is_some_and(|token| !matches!(token, Value::Bytes(_)))
    {
        return Err(schema("trusted_timestamp", "tsp_response takes bytes, base64 in JSON"));
    }
    if let Some(Value::Map(elided)) = fields.get("_elided")
        && elided.values().any(|hash| hash.as_str().is_none())
    {
        return Err(schema("_elided", "_elided maps names to hashes, which are strings"));
    }
    Ok(())
}

fn check_map(defs: &[FieldDef], map: &Map) -> Result<()> {
    for def in defs {
        if let Some(value) = map.get(def.name) {
            check_kind(def, value)?;
        }
    }
    Ok(())
}

fn check_kind(def: &FieldDef, value: &Value) -> Result<()> {
    let items = || value.as_array().unwrap_or_default().iter();
    let is_list = value.as_array().is_some();
    let fits = match def.kind {
        FieldKind::Any => true,
        FieldKind::Text => value.as_str().is_some(),
        FieldKind::Bool => value.as_bool().is_some(),
        FieldKind::Map => value.as_map().is_some(),
        FieldKind::TextOrMap => matches!(value, Value::Str(_) | Value::Map(_)),
        FieldKind::Float => matches!(value, Value::Float(_)),
        FieldKind::Int | FieldKind::Datetime => return int(def, value),
        FieldKind::Byte => return byte(def, value),
        FieldKind::TextList => is_list && items().all(|item| item.as_str().is_some()),
        FieldKind::MapList => is_list && items().all(|item| item.as_map().is_some()),
        FieldKind::BytesList => is_list && items().all(|item| matches!(item, Value::Bytes(_))),
        FieldKind::Parents => {
            is_list && items().all(|item| matches!(item, Value::Str(_) | Value::Map(_)))
        }
        FieldKind::ByteList => {
            if !is_list {
                return Err(wrong_type(def, value));
            }
            return items().try_for_each(|item| byte(def, item));
        }
    };
    if fits { Ok(()) } else { Err(wrong_type(def, value)) }
}

fn int(def: &FieldDef, value: &Value) -> Result<()> {
    match value {
        Value::Int(n) if n.as_i64().is_some() => Ok(()),
        Value::Int(n) => Err(out_of_range(def, format!("{n} does not fit int64"))),
        _ => Err(wrong_type(def, value)),
    }
}

fn byte(def: &FieldDef, value: &Value) -> Result<()> {
    match value {
        Value::Int(n) if (0..=255).contains(&n.get()) => Ok(()),
        Value::Int(n) => Err(out_of_range(def, format!("{n} is outside 0..=255"))),
        _ => Err(wrong_type(def, value)),
    }
}

fn out_of_range(def: &FieldDef, message: String) -> Error {
    Error::new(ErrorKind::Range, message).at(def.name)
}

fn wrong_type(def: &FieldDef, value: &Value) -> Error {
    let message = format!("{} takes {}, not {}", def.name, def.kind.describe(), value.type_name());
    schema(def.name, message)
}
