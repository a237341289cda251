//! Handoffs (OMS 28.7): who passed a conversation to whom, and whether it came back.

use grainstore_format::{ContentAddress, GrainType};
use grainstore_index::{Field, Shape};
use serde::Serialize;

use super::sight::{Seen, Sight, addresses_in, spelled};
use super::{Filling, Lens, Listed};
use crate::base::error::{Result, guarded};
use crate::handle::session::Session;

/// Handoffs one answer holds at most.
pub const MAX_HANDOFFS: usize = 1_000;

const DELEGATES_TO: &str = "mg:delegates_to";

/// A conversation passed from one agent to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Handoff {
    /// The goal that says so.
    pub address: ContentAddress,
    /// The agent that handed over.
    pub from: String,
    /// The agent that took over.
    pub to: String,
    /// The agent that control goes back to.
    pub return_to: Option<String>,
    /// The grains the other agent needs, as they are named.
    pub context_grains: Vec<ContentAddress>,
    /// The newest goal derived from this one that is satisfied: control went back.
    pub completed_by: Option<ContentAddress>,
}

impl Session {
    /// The handoffs of a conversation by its `session_id`, newest first.
    ///
    /// # Errors
    /// `ERR_LIMIT` where more than [`MAX_LOOKED`](super::MAX_LOOKED) grains had to be looked at,
    /// `ERR_TIMEOUT`, `ERR_INTEGRITY`, `ERR_IO`.
    pub fn handoffs(&self, session_id: &str) -> Result<Listed<Handoff>> {
        let id = spelled(session_id)?;
        let lens = Lens::default();
        let mut found = Filling::of(MAX_HANDOFFS, MAX_HANDOFFS)?;
        let view = self.view()?;
        guarded(|| {
            let mut sight = Sight::new(self, &view, &lens);
            for posting in sight.postings(&[Shape::Value(Field::Session, id.as_str().into())])? {
                let handoff = sight.at(posting?.sequence, |seen| {
                    let is_here = seen.grain.text("session_id") == Some(&id);
                    Ok(handoff(seen).filter(|_| is_here))
                })?;
                let Some((mut handoff, bytes)) = handoff else { continue };
                handoff.completed_by = completion(&mut sight, &handoff.address)?;
                if let Some(full) = found.push(handoff, bytes) {
                    return Ok(full);
                }
            }
            Ok(found.end())
        })
    }
}

/// A grain as a handoff, if it is one, and its size.
fn handoff(seen: &Seen<'_>) -> Option<(Handoff, usize)> {
    let grain = seen.grain;
    if grain.grain_type() != GrainType::Goal || grain.text("relation") != Some(DELEGATES_TO) {
        return None;
    }
    let handoff = Handoff {
        address: seen.address(),
        from: grain.text("subject")?.to_owned(),
        to: grain.text("object")?.to_owned(),
        return_to: grain.text("return_to").map(str::to_owned),
        context_grains: addresses_in(grain, "context_grains").collect(),
        completed_by: None,
    };
    Some((handoff, grain.payload_len()))
}

/// The newest current goal that reports a delegation as done.
fn completion(
    sight: &mut Sight<'_>,
    delegation: &ContentAddress,
) -> Result<Option<ContentAddress>> {
    let digits = delegation.to_string();
    for posting in sight.postings(&[Shape::Value(Field::Derived, digits.as_str().into())])? {
        let done = sight.at(posting?.sequence, |seen| {
            let grain = seen.grain;
            let reports = grain.grain_type() == GrainType::Goal
                && grain.text("goal_state") == Some("satisfied")
                && addresses_in(grain, "derived_from").any(|parent| parent == *delegation);
            Ok(reports.then(|| seen.address()))
        })?;
        if done.is_some() {
            return Ok(done);
        }
    }
    Ok(None)
}
