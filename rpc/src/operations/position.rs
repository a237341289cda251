//! Where a copy of a store is in its journal: `position` and `wait_for` (docs/cluster.md).

use grainstore::Session;
use grainstore::journal::CommitPosition;
use serde::{Deserialize, Serialize};

use crate::arguments::{Nothing, wait};
use crate::error::Result;

/// The place of a copy.
#[derive(Debug, Serialize)]
pub(crate) struct Place {
    /// Such as `1:118`; null for a store without a journal.
    position: Option<String>,
    /// `leader` or `follower`; null likewise.
    role: Option<&'static str>,
}

/// Where reads of this copy are.
pub(crate) fn position(_: Nothing, session: &Session) -> Result<Place> {
    place(session, session.store().position()?)
}

/// Waits until reads of this copy see a commit, or what the journal has by now.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WaitFor {
    position: Option<String>,
    /// The longest time to wait, ten seconds by default.
    timeout_ms: Option<u64>,
}

pub(crate) fn wait_for(given: WaitFor, session: &Session) -> Result<Place> {
    let (store, patience) = (session.store(), wait(given.timeout_ms)?);
    match given.position {
        Some(position) => {
            store.wait_for(position.parse::<CommitPosition>()?, patience)?;
            place(session, store.position()?)
        }
        None => place(session, store.wait_for_latest(patience)?),
    }
}

fn place(session: &Session, position: Option<CommitPosition>) -> Result<Place> {
    let store = session.store();
    let role = match position {
        Some(_) if store.follows_journal() => Some("follower"),
        // A copy that no node has open has no role.
        Some(_) if !store.is_read_only() => Some("leader"),
        _ => None,
    };
    Ok(Place { position: position.map(|at| at.to_string()), role })
}
