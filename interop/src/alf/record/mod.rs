//! Memory records (ALF 3.1) and grains: the mapping both ways, with nothing lost.
//!
//! `parts`: a record, what of it changes without making it another, and the rest. `map`: the rest as fields of a
//! grain. `links`: what it names, where queries follow it. `unmap`: fields as the rest again. What the fields cannot say
//! is in the residue.

mod links;
mod map;
mod parts;
#[cfg(test)]
mod tests;
mod unmap;

use grainstore::format::{Map, Sensitivity};

use super::names::PROFILE;
use crate::error::Result;
use crate::json::Value;
use crate::kept::{residue_of, restored};

pub(super) use crate::kept::digest_of;
pub(super) use links::cross_links;
pub(super) use map::{AgentPrincipals, grain_type_of};
pub(super) use parts::{Record, joined_record, key_of, status_of, uuid_number, uuid_text};
pub(super) use unmap::{context_text, said_by_copy};

/// Returns the fields of the grain of a record. `rest` is the record without what may change, `filled` the same with
/// defaults for what is missing.
///
/// # Errors
/// Those of a grain; `ERR_CORRUPT` if the grain would not give the record back.
pub(super) fn fields_of(rest: &Value, filled: &Value, agents: &AgentPrincipals) -> Result<Map> {
    let direct = map::direct(filled, agents);
    let (mut fields, said) = match grainstore::Grain::from_fields(direct) {
        Ok(grain) => {
            let said = unmap::said(grain.fields());
            (grain.into_fields(), said)
        }
        // What no rule foresaw is left to the residue.
        Err(_) => {
            let fields = grainstore::Grain::from_fields(map::least(filled, agents))?.into_fields();
            let said = unmap::said(&fields);
            (fields, said)
        }
    };
    if let Some(residue) = residue_of(&said, rest)?
        && let Some(grainstore::format::Value::Map(context)) = fields.get_mut("context")
    {
        context.insert(PROFILE.key("residue"), residue.into());
    }
    Ok(fields)
}

/// Returns the record that a grain is of, without what may change. The fields are whole: nothing lies beside them.
///
/// # Errors
/// `ERR_CORRUPT` for a residue that is none.
pub(super) fn record_of(fields: &Map) -> Result<Value> {
    restored(unmap::said(fields), context_text(fields, "residue"))
}

/// The least sensitivity of the grain of a record.
pub(super) fn sensitivity_of(fields: &Map) -> Sensitivity {
    match fields.contains_key("user_id") {
        true => Sensitivity::Pii,
        false => Sensitivity::Internal,
    }
}
