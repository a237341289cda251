//! The vault of an agent in the store: read as ciphertext, and stored again after it was changed.

use std::collections::HashSet;

use grainstore::{ContentAddress, EraseOptions, ErrorKind, Session};
use serde_json::json;

use super::document::at_path;
use super::import::ENVELOPE_LAYER;
use super::kinds::Layer;
use super::map::{LAYER, Origin, VAULT_ITEM, item_of, joined, split};
use super::store::{AgentStore, Counts, Plan};
use super::vault::Vault;
use super::wallet::Wallet;
use crate::error::{Error, Result};
use crate::monitor::Monitor;

/// What becomes of the versions of vault items that a newer one takes the place of: an example is at [`stored_vault`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OldVersions {
    /// They are erased: what was revoked or rotated is gone from this store.
    #[default]
    Erase,
    /// They stay as superseded grains, so that old keys still open them. Erase them once they are not needed.
    Keep,
}

/// The vault of an agent; `None` if the store has none.
///
/// ```
/// use grainstore::prelude::*;
/// use grainstore_interop::saga::{
///     NewItem, OldVersions, Secrets, Signer, Vault, VaultKey, VaultType, WalletKey, store_vault, stored_vault,
/// };
///
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// let wallet_key = WalletKey::ed25519("solana:mainnet", &[0x11; 32])?;
/// let (agent, key) = (wallet_key.wallet(), VaultKey::from_wallet_key([0x11; 32]));
/// let mut vault = Vault::create(session.now())?;
/// let note = NewItem::new(VaultType::Note, "codes", Secrets::of([("content", "7 7 7")])?);
/// let id = vault.add(note, &key, session.now())?;
/// store_vault(&session, agent, &vault, OldVersions::Erase)?;
///
/// let mut vault = stored_vault(&session, agent)?.ok_or("no vault")?;
/// vault.rotate(&key, &key, session.now())?;
/// store_vault(&session, agent, &vault, OldVersions::Erase)?;
/// let vault = stored_vault(&session, agent)?.ok_or("no vault")?;
/// assert_eq!(vault.version(), 2);
/// assert!(vault.open(&id, &key).is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Those of [`Session::inspect`]; `ERR_SCHEMA` for what is no vault.
pub fn stored_vault(session: &Session, agent: &Wallet) -> Result<Option<Vault>> {
    let store = AgentStore::new(session, agent);
    let name = Layer::Vault.name();
    let Some(stored) = store.find(&LAYER, name)? else { return Ok(None) };
    let Some(skeleton) = item_of(&LAYER, name, &stored.fields)? else { return Ok(None) };
    let lookup = |kind: &'static super::map::Kind, id: &str| store.read(kind, id);
    let value = joined(Layer::Vault, skeleton, &stored.split(), lookup, |_, _| {})?;
    Vault::from_value(value).map(Some)
}

/// Returns the vault of an agent, which must have one.
///
/// ```
/// use grainstore::prelude::*;
/// use grainstore_interop::saga::{Wallet, vault_of};
///
/// # let dir = tempfile::tempdir()?;
/// # let store = Store::open(dir.path(), &OpenOptions::new().create(true))?;
/// # let session = store.session(SessionOptions::default());
/// let stranger = Wallet::new("eip155:8453", "0x19e7e376e7c213b7e7e7e46cc70a5dd086daff2a")?;
/// assert_eq!(vault_of(&session, &stranger).unwrap_err().code(), "ERR_NOT_FOUND");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `ERR_NOT_FOUND` if there is no vault of this wallet; those of [`stored_vault`].
pub fn vault_of(session: &Session, agent: &Wallet) -> Result<Vault> {
    stored_vault(session, agent)?.ok_or_else(|| {
        let message = format!("there is no vault of this wallet: {agent}");
        Error::new(ErrorKind::NotFound, message).with_hint(
            "give chain and key of the wallet whose vault it is; adding an item makes one",
        )
    })
}

/// Stores the vault of an agent in the place of the one it has; an example is at [`stored_vault`]. Only what changed is
/// written. Items that are no longer in it are erased with their versions, or kept, as `old` says.
///
/// # Errors
/// `ERR_CONFLICT` for a vault that is older than the stored one, by its version or the time of its last change;
/// `ERR_INVALIDATION_DENIED` for an item that is protected; nothing is written then. `ERR_ACCESS` unless the session is
/// the operator's; those of [`Session::put`] and [`Session::erase`].
pub fn store_vault(
    session: &Session,
    agent: &Wallet,
    vault: &Vault,
    old: OldVersions,
) -> Result<Counts> {
    let store = AgentStore::new(session, agent);
    super::freeze::check_active(&store)?;
    super::fresh::check_vault(&store, &vault.to_value())?;
    let before = heads(&store)?;
    let layer = Layer::Vault.name();
    let origin = Origin { wallet: agent, at: session.now(), basis: None, layer };
    let whole = split(Layer::Vault, &vault.to_value());
    let mut plan = Plan::new(store.clone());
    for item in &whole.items {
        plan.add(item.kind, &item.id, &item.value, &[], origin)?;
    }
    plan.add(&LAYER, layer, &whole.skeleton, &whole.kinds, origin)?;
    let counts = plan.write(&Monitor::default())?;
    if old == OldVersions::Erase {
        let after: HashSet<_> = heads(&store)?.into_iter().collect();
        let ids: HashSet<_> = whole.items.iter().map(|item| item.id.as_str()).collect();
        let gone = before.iter().filter(|head| {
            let kept = ids.contains(head.0.as_str()) || head.0.is_empty();
            !kept || !after.contains(*head)
        });
        for (_, address) in gone {
            erase_versions(&store, *address)?;
        }
    }
    Ok(counts)
}

/// The newest grain of the vault, under an empty id, and of each of its items.
fn heads(store: &AgentStore<'_>) -> Result<Vec<(String, ContentAddress)>> {
    let name = Layer::Vault.name();
    let Some(stored) = store.find(&LAYER, name)? else { return Ok(Vec::new()) };
    let mut heads = vec![(String::new(), stored.address)];
    let skeleton = item_of(&LAYER, name, &stored.fields)?.unwrap_or_else(|| json!({}));
    let ids =
        at_path(&skeleton, "items").and_then(|ids| ids.as_array().cloned()).unwrap_or_default();
    for id in ids.iter().filter_map(|id| id.as_str()) {
        if let Some(stored) = store.find(&VAULT_ITEM, id)? {
            heads.push((id.to_owned(), stored.address));
        }
    }
    Ok(heads)
}

/// Erases a grain and those before it.
fn erase_versions(store: &AgentStore<'_>, newest: ContentAddress) -> Result<()> {
    let session = store.session();
    let mut next = Some(newest);
    while let Some(address) = next {
        if !session.exists(&address)? {
            break;
        }
        let grain = session.inspect(&address)?.grain()?;
        let older = grain.texts("derived_from").next().map(str::parse::<ContentAddress>);
        next = older.transpose().map_err(Error::from)?;
        session
            .erase(&address, "an old version of a vault", &EraseOptions::new())
            .map_err(|error| Error::from(error).in_entry(ENVELOPE_LAYER))?;
    }
    Ok(())
}
