//! Handoffs of a conversation between agents (OMS 28.7), and whether control came back.

use grainstore_format::{ContentAddress, GrainType};
use grainstore_index::{Field, IndexLookup};
use serde::Serialize;

use super::reader::{GraphReader, VisibleGrain, addresses_in, normalised};
use super::{BoundedList, BoundedListBuilder, GraphOptions};
use crate::base::error::{Result, catch_storage_panic};
use crate::handle::session::Session;

/// Most handoffs of one answer of [`Session::handoffs`], which then says `more`.
pub const MAX_HANDOFFS: usize = 1_000;

const DELEGATES_TO: &str = "mg:delegates_to";

/// A conversation passed from one agent to another: [`Session::handoffs`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Handoff {
    /// The goal that records it.
    pub address: ContentAddress,
    /// The agent that handed over.
    pub from: String,
    /// The agent that took over.
    pub to: String,
    /// The agent that control returns to.
    pub return_to: Option<String>,
    /// The grains the receiving agent needs, as named by the goal.
    pub context_grains: Vec<ContentAddress>,
    /// The newest satisfied goal derived from this one, with which control returned.
    pub completed_by: Option<ContentAddress>,
}

impl Session {
    /// The handoffs of a conversation by its `session_id`, newest first.
    ///
    /// ```
    /// # use grainstore::prelude::*;
    /// # let dir = tempfile::tempdir()?;
    /// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
    /// # let session = store.session(SessionOptions::default());
    /// session.put(Grain::from_json(
    ///     r#"{"type": "goal", "subject": "did:web:desk.example", "relation": "mg:delegates_to",
    ///         "object": "did:web:expert.example", "description": "answer alice", "goal_state": "active",
    ///         "criteria": ["she is content"], "source_type": "system", "session_id": "talk-1",
    ///         "created_at": "2026-03-02T09:00:00Z"}"#,
    /// )?)?;
    /// let handoffs = session.handoffs("talk-1")?;
    /// assert_eq!(handoffs.items[0].to, "did:web:expert.example");
    /// assert!(handoffs.items[0].completed_by.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_LIMIT` if more than [`MAX_GRAPH_STEPS`](super::MAX_GRAPH_STEPS) grains had to be read,
    /// `ERR_TIMEOUT`, `ERR_INTEGRITY`, `ERR_IO`.
    pub fn handoffs(&self, session_id: &str) -> Result<BoundedList<Handoff>> {
        let id = normalised(session_id)?;
        let options = GraphOptions::default();
        let mut found = BoundedListBuilder::new(MAX_HANDOFFS, MAX_HANDOFFS)?;
        let view = self.view()?;
        catch_storage_panic(|| {
            let mut reader = GraphReader::new(self, &view, &options);
            for posting in
                reader.postings(&[IndexLookup::Value(Field::Session, id.as_str().into())])?
            {
                let handoff = reader.read_current(posting?.sequence, |seen| {
                    let is_here = seen.grain.text("session_id") == Some(&id);
                    Ok(to_handoff(seen).filter(|_| is_here))
                })?;
                let Some((mut handoff, bytes)) = handoff else { continue };
                handoff.completed_by = completion(&mut reader, &handoff.address)?;
                if let Some(full) = found.push(handoff, bytes) {
                    return Ok(full);
                }
            }
            Ok(found.end())
        })
    }
}

/// A grain as a handoff, with its payload size; `None` if it is not one.
fn to_handoff(seen: &VisibleGrain<'_>) -> Option<(Handoff, usize)> {
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
    reader: &mut GraphReader<'_>,
    delegation: &ContentAddress,
) -> Result<Option<ContentAddress>> {
    let digits = delegation.to_string();
    for posting in reader.postings(&[IndexLookup::Value(Field::Derived, digits.as_str().into())])? {
        let done = reader.read_current(posting?.sequence, |seen| {
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
