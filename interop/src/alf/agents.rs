//! Which agents a store has.

use grainstore::Session;
use serde::Serialize;

use super::agent::Agent;
use crate::error::Result;

/// An agent of a store: [`agents`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AgentSummary {
    /// Its id.
    pub agent_id: String,
    /// Its name.
    pub name: String,
    /// Its last sequence number, from which a delta goes on.
    pub sequence: u64,
}

/// Returns the agents of a store, by their ids.
///
/// ```
/// use grainstore::prelude::*;
/// use grainstore_interop::alf;
///
/// # let dir = tempfile::tempdir()?;
/// let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// assert_eq!(alf::agents(&store.session(SessionOptions::default()))?, []);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `ERR_ACCESS` unless the session is the operator's; `ERR_IO`.
pub fn agents(session: &Session) -> Result<Vec<AgentSummary>> {
    let agents = Agent::all(session)?.into_iter();
    let summary = |(agent_id, name): (String, String)| {
        let sequence = Agent::new(session, &agent_id).sequence()?;
        Ok(AgentSummary { agent_id, name, sequence })
    };
    agents.map(summary).collect()
}
