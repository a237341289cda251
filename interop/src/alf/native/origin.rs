//! What a grain is to the records of an agent. The notes in its `context` do not tell: who makes a new version of a
//! record's grain in CAL, or edits what it read, keeps them. What was written as a record is known by the rows.

use grainstore::format::GrainType;
use grainstore::{ContentAddress, Grain};

use super::view::native_id;
use crate::alf::agent::Agent;
use crate::alf::record::context_text;
use crate::alf::schema::is_uuid;
use crate::error::Result;
use crate::kept::Profile;

/// The format of SAGA, whose items leave as SAGA.
const SAGA: Profile = Profile::new("saga");

/// What a grain is to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum Origin {
    /// A version of a record of the agent, by its id in lower case.
    Record(String),
    /// It says that it is of a record of which this store knows nothing: of the agent, or of one that is not here.
    Stray(String),
    /// A copy of the grain of a record of the agent: it has its notes, and is no version of it.
    Copy,
    /// It was not born as a record.
    Native,
    /// A record of another agent or a copy of one, a document, an item of another format.
    Other,
}

impl Origin {
    /// Returns `true` for a grain that becomes a record of its own where all are asked for.
    pub(in super::super) fn is_native(&self) -> bool {
        matches!(self, Self::Native | Self::Copy)
    }

    /// Returns `true` for a grain that becomes a record of its own in the place of another record.
    pub(in super::super) fn may_succeed(&self) -> bool {
        self.is_native() || matches!(self, Self::Stray(_))
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
    if !may_be_carried(grain) {
        return Ok(Origin::Other);
    }
    let Some((id, agent_id)) = notes(grain) else { return Ok(Origin::Native) };
    let is_own = agent_id == agent.id;
    let other = (!is_own).then(|| Agent::new(agent.session, &agent_id));
    let is_version = other.as_ref().unwrap_or(agent).has_version(&id, address)?;
    Ok(match (is_version, is_own) {
        (Some(true), true) => Origin::Record(id),
        (Some(false), true) => Origin::Copy,
        (Some(_), false) => Origin::Other,
        (None, _) if agent.past(&native_id(grain.created_at(), address))?.is_some() => match is_own
        {
            true => Origin::Copy,
            false => Origin::Native,
        },
        (None, true) => Origin::Stray(id),
        (None, false) if other.is_some_and(|other| other.is_enrolled().unwrap_or(true)) => {
            Origin::Other
        }
        (None, false) => Origin::Stray(id),
    })
}

/// Returns `true` for a grain that may be taken as it is where a record carries it: no document, and nothing of another
/// format.
pub(super) fn may_be_carried(grain: &Grain) -> bool {
    let is_saga = |key: &String| SAGA.name_of(key).is_some();
    !matches!(grain.grain_type(), GrainType::Opaque(_))
        && alf_text(grain, "layer").is_none()
        && !grain.map("context").is_some_and(|context| context.keys().any(is_saga))
        && !grain.texts("structural_tags").any(|tag| tag == SAGA.tag())
}

/// The record that a grain says it is of, and its agent, both in lower case. Who leaves out one of them, or writes something
/// else there, says nothing.
pub(in super::super) fn notes(grain: &Grain) -> Option<(String, String)> {
    let said = |name: &str| alf_text(grain, name).filter(|id| is_uuid(id));
    Some((said("id")?.to_ascii_lowercase(), said("agent_id")?.to_ascii_lowercase()))
}

/// What the `context` of a grain says of ALF.
pub(in super::super) fn alf_text<'g>(grain: &'g Grain, name: &str) -> Option<&'g str> {
    context_text(grain.fields(), name)
}
