//! The withdrawal of a stored consent: what rests on it is hidden from then on.

use grainstore::format::{Map, Value};
use grainstore::{ContentAddress, EpochMs, ErrorKind, Grain, Session};

use super::consent::Operation;
use super::import::{CONSENT_KIND, is_withdrawal};
use super::map::PROFILE;
use super::store::{AgentStore, StoredItem};
use super::wallet::Wallet;
use crate::error::{Error, Result};
use crate::kept::clamped;

/// Withdraws the consent of an agent to an operation, as the records of documents that were imported gave it, for all
/// layers. Layers that rest on it can no longer be read or exported, and no export with a consent from before is made,
/// also after another was given. Returns the addresses of the withdrawals, one for each layer.
///
/// ```
/// use grainstore::prelude::*;
/// use grainstore_interop::saga::{Operation, Wallet, withdraw_consent};
///
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// let agent = Wallet::new("eip155:8453", "0x19e7e376e7c213b7e7e7e46cc70a5dd086daff2a")?;
/// let none = withdraw_consent(&session, &agent, Operation::Transfer);
/// assert_eq!(none.unwrap_err().code(), "ERR_NOT_FOUND");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `ERR_NOT_FOUND` if there is none; `ERR_CONFLICT` if it is withdrawn already; those of [`Session::put_batch`].
pub fn withdraw_consent(
    session: &Session,
    agent: &Wallet,
    operation: Operation,
) -> Result<Vec<ContentAddress>> {
    let store = AgentStore::new(session, agent);
    let (mut is_known, mut withdrawals) = (false, Vec::new());
    for row in store.heads()?.iter().filter(|row| row.kind == CONSENT_KIND.name) {
        let of = row.id.split('\0').next();
        let Some(stored) =
            store.find(&CONSENT_KIND, &row.id)?.filter(|_| of == Some(operation.name()))
        else {
            continue;
        };
        is_known = true;
        if !is_withdrawal(&stored) {
            withdrawals.push(withdrawal_of(&stored, session.now())?);
        }
    }
    if withdrawals.is_empty() {
        return Err(match is_known {
            true => {
                let message = format!("the consent of {agent} to {operation} is withdrawn already");
                Error::new(ErrorKind::Conflict, message)
            }
            false => {
                let message = format!("the store has no consent of {agent} to {operation}");
                Error::new(ErrorKind::NotFound, message)
            }
        });
    }
    let done = session.put_batch(withdrawals)?;
    Ok(done.iter().map(grainstore::PutOutcome::address).collect())
}

/// The grain that withdraws a consent.
fn withdrawal_of(stored: &StoredItem, now: EpochMs) -> Result<Grain> {
    let mut fields = Map::from([
        ("type".to_owned(), Value::from("consent")),
        ("is_withdrawal".to_owned(), Value::from(true)),
        ("prior_consent".to_owned(), Value::from(stored.address.to_string())),
        ("created_at".to_owned(), Value::from(clamped(now).get())),
        ("structural_tags".to_owned(), Value::from(vec![PROFILE.tag()])),
    ]);
    for name in ["subject_did", "grantee_did", "scope", "namespace"] {
        if let Some(value) = stored.fields.get(name) {
            fields.insert(name.to_owned(), value.clone());
        }
    }
    let names = ["kind", "layer", "agent_id", "id"].map(|name| PROFILE.key(name));
    let context = stored.fields.get("context").and_then(Value::as_map).into_iter().flatten();
    let context: Map = context
        .filter(|(key, _)| names.contains(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    fields.insert("context".to_owned(), Value::Map(context));
    Ok(Grain::from_fields(fields)?)
}
