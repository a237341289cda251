//! Marks of transfers: an agent that is being transferred, and one that left.
//!
//! The store runs no agent. A mark keeps imports and exports from it, and says why; grains stay as they are.

use grainstore::{EpochMs, ErrorKind, Session};
use serde::{Deserialize, Serialize};

use super::store::AgentStore;
use super::time;
use super::wallet::Wallet;
use crate::error::{Error, Result};

/// The mark.
const STATUS: &str = "status";

/// Where an agent is in a transfer: [`freeze`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "status")]
#[non_exhaustive]
pub enum TransferStatus {
    /// A document for its transfer was exported. It goes on here until the destination confirms.
    TransferPending {
        /// The id of the document.
        document_id: String,
        /// When it was exported.
        since: String,
    },
    /// The destination confirmed: it left.
    Frozen {
        /// The id of the document that it left with.
        document_id: String,
        /// When that was confirmed.
        since: String,
        /// What the destination said, as the caller gave it.
        confirmation: String,
    },
}

/// Where an agent is in a transfer; `None` if it is in none, or was unfrozen since. [`freeze`] ends one.
///
/// # Errors
/// Those of [`Session::row`].
pub fn transfer_status(session: &Session, agent: &Wallet) -> Result<Option<TransferStatus>> {
    AgentStore::new(session, agent).mark(STATUS)
}

/// Notes that the destination of a transfer confirmed its import: from now on nothing is imported or exported for the
/// agent here, but a document with which it comes back ([`unfreeze`]). The grains stay.
///
/// ```
/// use grainstore::prelude::*;
/// use grainstore_interop::saga::{Wallet, freeze};
///
/// # let dir = tempfile::tempdir()?;
/// let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// let session = store.session(SessionOptions::default());
/// let agent = Wallet::new("eip155:8453", "0x19e7e376e7c213b7e7e7e46cc70a5dd086daff2a")?;
/// let refused = freeze(&session, &agent, "imported as agent_7");
/// assert_eq!(refused.unwrap_err().code(), "ERR_CONFLICT"); // no transfer is pending
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `ERR_CONFLICT` if no transfer of the agent is pending; `ERR_EMPTY` without a confirmation; those of
/// [`Session::write_rows`].
pub fn freeze(session: &Session, agent: &Wallet, confirmation: &str) -> Result<()> {
    let store = AgentStore::new(session, agent);
    if confirmation.trim().is_empty() {
        let kind = ErrorKind::Format(grainstore::format::ErrorKind::Empty);
        return Err(Error::new(kind, "a transfer is confirmed by what the destination said")
            .with_hint("give the confirmation of the import"));
    }
    let Some(TransferStatus::TransferPending { document_id, .. }) = store.mark(STATUS)? else {
        return Err(Error::new(ErrorKind::Conflict, format!("no transfer of {agent} is pending"))
            .with_hint("export the agent with type transfer first"));
    };
    let since = time::written(session.now());
    let confirmation = confirmation.to_owned();
    store.set_mark(STATUS, Some(&TransferStatus::Frozen { document_id, since, confirmation }))
}

/// Ends a transfer without [`freeze`]: one that failed, or that of an agent which comes back. It is active here again.
///
/// # Errors
/// Those of [`Session::write_rows`].
pub fn unfreeze(session: &Session, agent: &Wallet) -> Result<()> {
    clear(&AgentStore::new(session, agent))
}

/// Forgets where an agent is in a transfer.
pub(super) fn clear(store: &AgentStore<'_>) -> Result<()> {
    store.set_mark(STATUS, None::<&TransferStatus>)
}

/// Notes that a document for a transfer was exported.
pub(super) fn mark_pending(store: &AgentStore<'_>, document_id: &str, at: EpochMs) -> Result<()> {
    let document_id = document_id.to_owned();
    let since = time::written(at);
    store.set_mark(STATUS, Some(&TransferStatus::TransferPending { document_id, since }))
}

/// Refuses work for an agent that left.
///
/// # Errors
/// `ERR_READ_ONLY`.
pub(super) fn check_active(store: &AgentStore<'_>) -> Result<()> {
    match store.mark(STATUS)? {
        Some(TransferStatus::Frozen { document_id, since, .. }) => {
            let message = format!(
                "the agent {} was transferred with {document_id} at {since}: it is frozen here",
                store.wallet()
            );
            Err(Error::new(ErrorKind::ReadOnly, message)
                .with_hint("unfreeze it if it comes back, or ask the destination"))
        }
        _ => Ok(()),
    }
}
