//! The closed vocabularies (OMS 8.7, 14.3, 25, 26, 27.1). Open vocabularies accept any value and are
//! not checked.

use crate::error::{Result, schema};
use crate::grain_type::GrainType;
use crate::text::excerpt;
use crate::value::Map;

use super::{maps, text};

const RELATION_TYPES: [&str; 11] = [
    "similar",
    "contradicts",
    "elaborates",
    "generalizes",
    "temporal_next",
    "temporal_prev",
    "causal",
    "supports",
    "refutes",
    "replaces",
    "depends_on",
];
const OBSERVATION_MODES: [&str; 4] = ["passive", "active", "reflective", "real_time"];
const OBSERVATION_SCOPES: [&str; 4] = ["point", "interval", "session", "longitudinal"];
const GOAL_STATES: [&str; 4] = ["active", "satisfied", "failed", "suspended"];
const ACTION_PHASES: [&str; 3] = ["definition", "call", "result"];

pub(super) fn check(grain_type: GrainType, fields: &Map) -> Result<()> {
    for link in maps(fields, "related_to") {
        one_of(link, "relation_type", &RELATION_TYPES)?;
    }
    match grain_type {
        GrainType::Action => one_of(fields, "action_phase", &ACTION_PHASES),
        GrainType::Goal => one_of(fields, "goal_state", &GOAL_STATES),
        // Triggers use mode and scope for descriptions of their own (OMS 27.6).
        GrainType::Observation
            if !text(fields, "observer_type").is_some_and(|t| t.starts_with("trigger:")) =>
        {
            one_of(fields, "observation_mode", &OBSERVATION_MODES)?;
            one_of(fields, "observation_scope", &OBSERVATION_SCOPES)
        }
        _ => Ok(()),
    }
}

fn one_of(map: &Map, name: &str, allowed: &[&str]) -> Result<()> {
    match text(map, name) {
        Some(value) if !allowed.contains(&value) => {
            let message = format!("{:?} is none of {}", excerpt(value), allowed.join(", "));
            Err(schema(name, message))
        }
        _ => Ok(()),
    }
}
