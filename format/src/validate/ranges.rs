//! Ranges of numbers and syntax of addresses (OMS 19.2, 19.3).

use crate::address::ContentAddress;
use crate::error::{Error, ErrorKind, Result};
use crate::fields;
use crate::grain_type::GrainType;
use crate::time::EpochMs;
use crate::value::{Map, Value};

use super::maps;

/// Fields in 0.0 ..= 1.0.
const UNIT_INTERVAL_FIELDS: [&str; 3] = ["confidence", "importance", "progress"];

/// Fields that are 0 or greater.
const COUNT_FIELDS: [&str; 6] = [
    "success_count",
    "failure_count",
    "agreement_count",
    "dissent_count",
    "threshold",
    "evidence_required",
];

pub(super) fn check(grain_type: GrainType, fields: &Map) -> Result<()> {
    created_at(fields)?;
    let typed = |name: &str| {
        let def = fields::by_name(name, grain_type);
        def.filter(|def| def.section.covers(grain_type)).and_then(|_| fields.get(name))
    };
    for name in UNIT_INTERVAL_FIELDS {
        within_unit(typed(name), name)?;
    }
    for name in COUNT_FIELDS {
        at_least(typed(name), 0, name)?;
    }
    for link in maps(fields, "related_to") {
        within_unit(link.get("weight"), "related_to.weight")?;
        address(link.get("hash"), "related_to.hash")?;
    }
    for step in maps(fields, "provenance_chain") {
        within_unit(step.get("weight"), "provenance_chain.weight")?;
    }
    for entry in maps(fields, "content_refs") {
        at_least(entry.get("size_bytes"), 0, "content_refs.size_bytes")?;
    }
    for entry in maps(fields, "embedding_refs") {
        at_least(entry.get("dimensions"), 1, "embedding_refs.dimensions")?;
    }
    let parents = fields.get("derived_from").and_then(Value::as_array).unwrap_or_default();
    parents.iter().try_for_each(|parent| address(Some(parent), "derived_from"))
}

/// Checks that the header can hold the second in 32 unsigned bits (OMS 3.1.1).
fn created_at(fields: &Map) -> Result<()> {
    let Some(ms) = fields.get("created_at").and_then(Value::as_i64) else {
        return Ok(());
    };
    if EpochMs::new(ms).header_second().is_some() {
        return Ok(());
    }
    let message = format!("{ms} ms is outside 0 ..= {} ms", EpochMs::MAX_CREATED.get());
    Err(Error::new(ErrorKind::Range, message).at("created_at"))
}

fn within_unit(value: Option<&Value>, place: &str) -> Result<()> {
    match value.and_then(Value::as_f64) {
        Some(x) if !(0.0..=1.0).contains(&x) => {
            Err(Error::new(ErrorKind::Range, format!("{x} is outside 0.0 ..= 1.0")).at(place))
        }
        _ => Ok(()),
    }
}

fn at_least(value: Option<&Value>, least: i128, place: &str) -> Result<()> {
    match value {
        Some(Value::Int(n)) if n.get() < least => {
            Err(Error::new(ErrorKind::Range, format!("{n} is less than {least}")).at(place))
        }
        _ => Ok(()),
    }
}

fn address(value: Option<&Value>, place: &str) -> Result<()> {
    match value {
        Some(Value::Str(text)) => {
            text.parse::<ContentAddress>().map(|_| ()).map_err(|e| e.at(place))
        }
        _ => Ok(()),
    }
}
