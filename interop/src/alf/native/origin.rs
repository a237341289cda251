//! What a grain is to the records of an agent. The notes in its `context` do not tell: who makes a new version of a
//! record's grain in CAL, or edits what it read, keeps them. What was written as a record is known by the rows.

use grainstore::format::GrainType;
use grainstore::{ContentAddress, Grain};

use super::view::native_id;
use crate::alf::agent::Agent;
use crate::alf::names::PROFILE;
use crate::alf::record::context_text;
use crate::error::Result;
use crate::kept::Profile;

/// Formats of which a store keeps documents in grains. Those of SAGA leave as SAGA.
const KEPT: [Profile; 2] = [PROFILE, Profile::new("saga")];

/// What a grain is to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Origin {
    /// A version of a record of the agent, by its id in lower case.
    Record(String),
    /// It has the id of a record of the agent that never was here.
    Stray(String),
    /// It was not born as a record.
    Native,
    /// A record of another agent, a document, an item of another format.
    Other,
}

impl Origin {
    /// Returns `true` for a grain that becomes a record of its own.
    pub(in super::super) fn is_own(&self) -> bool {
        matches!(self, Self::Native | Self::Stray(_))
    }
}

/// Returns what a grain is to the records of an agent.
///
/// # Errors
/// Those of [`Session::rows`](grainstore::Session::rows).
pub(in super::super) fn origin_of(
    agent: &Agent<'_>,
    address: &ContentAddress,
    grain: &Grain,
) -> Result<Origin> {
    if is_plain(grain) {
        return Ok(Origin::Native);
    }
    let (Some(id), Some(agent_id)) = (alf_text(grain, "id"), alf_text(grain, "agent_id")) else {
        return Ok(Origin::Other);
    };
    if !may_be_copy(grain) {
        return Ok(Origin::Other);
    }
    let id = id.to_ascii_lowercase();
    let is_own = agent_id.eq_ignore_ascii_case(&agent.id);
    let other = (!is_own).then(|| Agent::new(agent.session, agent_id));
    let of = other.as_ref().unwrap_or(agent);
    Ok(match of.has_version(&id, address)? {
        Some(true) if is_own => Origin::Record(id),
        Some(true) => Origin::Other,
        Some(false) => Origin::Native,
        None if agent.past(&native_id(grain.created_at(), address))?.is_some() => Origin::Native,
        None if is_own => Origin::Stray(id),
        None => Origin::Other,
    })
}

/// Returns `true` for a grain that may be taken as it is where a record carries it: a copy of a record's grain too, but no
/// document, and nothing of another format.
pub(super) fn may_be_carried(grain: &Grain) -> bool {
    is_plain(grain) || may_be_copy(grain)
}

/// Returns `true` for a grain that says nothing of a format.
fn is_plain(grain: &Grain) -> bool {
    !matches!(grain.grain_type(), GrainType::Opaque(_))
        && !KEPT.iter().any(|profile| is_of(grain, *profile))
}

/// Returns `true` for a grain that has what the grain of a record says of it.
fn may_be_copy(grain: &Grain) -> bool {
    let others = KEPT.iter().filter(|profile| **profile != PROFILE);
    !matches!(grain.grain_type(), GrainType::Opaque(_))
        && alf_text(grain, "id").is_some()
        && alf_text(grain, "layer").is_none()
        && !others.into_iter().any(|profile| is_of(grain, *profile))
}

fn is_of(grain: &Grain, profile: Profile) -> bool {
    let is_kept = |key: &String| profile.name_of(key).is_some();
    grain.map("context").is_some_and(|context| context.keys().any(is_kept))
        || grain.texts("structural_tags").any(|tag| tag == profile.tag())
}

/// What the `context` of a grain says of ALF.
pub(in super::super) fn alf_text<'g>(grain: &'g Grain, name: &str) -> Option<&'g str> {
    context_text(grain.fields(), name)
}
