//! The script of the demo: turns lines of `demo/week.jsonl` (described in its README) into calls.

use std::collections::HashMap;
use std::time::Instant;

use grainstore::{ContentAddress, Grain, ManualClock, Session};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Code, Error, Result};

const SCRIPT: &str = include_str!("../../../demo/week.jsonl");

/// One line of the script.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    id: String,
    op: Op,
    old: Option<String>,
    justification: Option<String>,
    grain: Value,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Op {
    Put,
    Supersede,
    /// A supersession that the store refuses.
    Attempt,
}

/// The result of playing the script.
#[derive(Debug, Default, Serialize)]
pub(super) struct Played {
    pub(super) puts: usize,
    pub(super) supersessions: usize,
    pub(super) refused: Vec<Refused>,
    pub(super) elapsed_ms: u64,
}

/// A refused supersession.
#[derive(Debug, Serialize)]
pub(super) struct Refused {
    pub(super) what: String,
    pub(super) code: &'static str,
    pub(super) message: String,
}

/// Plays the script, with the clock set to the time of each grain.
pub(super) fn play(session: &Session, clock: &ManualClock) -> Result<Played> {
    let started = Instant::now();
    let mut played = Played::default();
    let mut addresses = HashMap::new();
    for line in SCRIPT.lines() {
        let mut step: Step =
            serde_json::from_str(line).map_err(|error| script_error(&error.to_string()))?;
        resolve_ids(&mut step.grain, &addresses);
        let grain = Grain::from_json(&step.grain.to_string())?;
        clock.set(grain.created_at());
        let old = step.old.as_ref().map(|id| addresses.get(id).copied());
        let old = old.map(|old| old.ok_or_else(|| script_error("old names no earlier line")));
        let why = step.justification.as_deref();
        match (step.op, old.transpose()?) {
            (Op::Put, None) => {
                addresses.insert(step.id, session.put(grain)?.address());
                played.puts += 1;
            }
            (Op::Supersede, Some(old)) => {
                addresses.insert(step.id, session.supersede(&old, grain, why)?);
                played.supersessions += 1;
            }
            (Op::Attempt, Some(old)) => {
                let what = format!("changing \"{}\"", grain.text("subject").unwrap_or(&step.id));
                match session.supersede(&old, grain, why) {
                    Ok(_) => return Err(script_error("an attempt that must be refused was not")),
                    Err(error) => played.refused.push(Refused {
                        what,
                        code: error.code(),
                        message: error.to_string(),
                    }),
                }
            }
            _ => return Err(script_error("old belongs to supersessions, and to them alone")),
        }
    }
    played.elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(played)
}

/// Replaces `@id` by addresses, at any depth.
fn resolve_ids(value: &mut Value, addresses: &HashMap<String, ContentAddress>) {
    match value {
        Value::String(text) => {
            if let Some(address) = text.strip_prefix('@').and_then(|id| addresses.get(id)) {
                *text = address.to_string();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| resolve_ids(item, addresses)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| resolve_ids(field, addresses));
        }
        _ => {}
    }
}

/// The error for a faulty script, which is part of the program and played by its tests.
fn script_error(message: &str) -> Error {
    Error::new(Code::Corrupt, format!("demo/week.jsonl: {message}"), "report this as a bug")
}
