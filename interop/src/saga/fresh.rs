//! What is older does not take the place of what is newer, and what was erased does not come back: which document was
//! imported last, which vault is the newer one, and when an agent was erased.

use data_encoding::HEXLOWER;
use grainstore::format::parse_datetime;
use grainstore::{EpochMs, ErrorKind, Owner, Session};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::document::Document;
use super::kinds::Layer;
use super::map::{LAYER, PROFILE};
use super::store::AgentStore;
use super::time;
use super::wallet::Wallet;
use crate::error::{Error, Result};
use crate::kept::Rows;

/// The mark of the document that was imported last.
const LATEST: &str = "latest";
/// The table of agents that were erased, among the rows that are of no agent.
const ERASED: u8 = 1;

/// The document that was imported last.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Latest {
    pub(super) id: String,
    /// When it was exported, in epoch milliseconds.
    at: i64,
}

impl Latest {
    /// # Errors
    /// Those of [`Session::row`].
    pub(super) fn read(store: &AgentStore<'_>) -> Result<Option<Self>> {
        store.mark(LATEST)
    }

    /// # Errors
    /// Those of [`Session::write_rows`].
    pub(super) fn write(store: &AgentStore<'_>, document: &Document) -> Result<()> {
        let latest = Self { id: document.id().to_owned(), at: document.exported_at()?.get() };
        store.set_mark(LATEST, Some(&latest))
    }

    /// # Errors
    /// Those of [`Session::write_rows`].
    pub(super) fn forget(store: &AgentStore<'_>) -> Result<()> {
        store.set_mark(LATEST, None::<&Self>)
    }
}

/// Refuses a document that was exported before the one that was imported last.
///
/// # Errors
/// `ERR_CONFLICT`.
pub(super) fn check_document(store: &AgentStore<'_>, document: &Document) -> Result<()> {
    let Some(latest) = Latest::read(store)? else { return Ok(()) };
    if document.exported_at()?.get() >= latest.at {
        return Ok(());
    }
    let since = time::written(EpochMs::new(latest.at));
    let message = format!("it is older than {}, which was exported at {since}", latest.id);
    Err(older(message, "exportedAt"))
}

/// Refuses a vault that is older than the stored one: by its version, which counts its keys, and of one version by the
/// time of its last change. It would bring back what was revoked since.
///
/// # Errors
/// `ERR_CONFLICT`; those of [`AgentStore::find`].
pub(super) fn check_vault(store: &AgentStore<'_>, vault: &Value) -> Result<()> {
    let stored = match store.read(&LAYER, Layer::Vault.name()) {
        Ok(Some(stored)) => stored,
        Ok(None) => return Ok(()),
        // An import that was interrupted did not store what lies beside the grain.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let version = |of: &Value| of.get("version").and_then(Value::as_u64).unwrap_or_default();
    let changed = |of: &Value| {
        let text = of.get("updatedAt").and_then(Value::as_str)?;
        Some(parse_datetime(text).ok()?.get())
    };
    let (is, was) = (version(vault), version(&stored));
    if is < was {
        let message = format!("the vault is of version {is}, and version {was} is stored");
        return Err(older(message, "layers.vault.version"));
    }
    if is == was && changed(vault) < changed(&stored) {
        let message = "the vault was changed since, and the newer one is stored";
        return Err(older(message.to_owned(), "layers.vault.updatedAt"));
    }
    Ok(())
}

fn older(message: String, entry: &str) -> Error {
    Error::new(ErrorKind::Conflict, message)
        .with_hint("take the newest one; an import goes back to an older one if it is told to")
        .in_entry(entry)
}

/// Notes that an agent is erased now. Its address is kept as a hash alone.
///
/// # Errors
/// Those of [`Session::write_rows`].
pub(super) fn mark_erased(session: &Session, agent: &Wallet) -> Result<()> {
    let rows = Rows::new(session, PROFILE.shared_application());
    let row = rows.put(ERASED, key_of(agent).as_str(), &session.now().get(), Owner::Store)?;
    rows.write(vec![row])
}

/// Refuses a document of an agent that was erased, unless the agent exported it after that.
///
/// # Errors
/// `ERR_ERASED`; those of [`Session::row`].
pub(super) fn check_erased(session: &Session, agent: &Wallet, document: &Document) -> Result<()> {
    let rows = Rows::new(session, PROFILE.shared_application());
    let Some(at) = rows.get::<i64>(ERASED, &key_of(agent))?.map(EpochMs::new) else {
        return Ok(());
    };
    if document.exported_at()? > at {
        return Ok(());
    }
    let message = format!("the agent was erased here at {}", time::written(at));
    Err(Error::new(ErrorKind::Erased, message)
        .with_hint("what was exported before that stays erased; ask the agent for a new document")
        .in_entry("exportedAt"))
}

fn key_of(agent: &Wallet) -> String {
    HEXLOWER.encode(&Sha256::digest(agent.to_string()))
}
