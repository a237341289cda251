//! The operation `saga_vault`: the credentials of an agent, which lie encrypted in the store.

use grainstore::{EpochMs, Session};
use grainstore_interop::saga::{
    BoxPublicKey, Grant, LostWrap, NewItem, OldVersions, Secrets, ShownItem, Signer, Vault,
    VaultKey, store_vault, stored_vault, vault_of,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::saga::Key;
use crate::error::{Error, Result};

/// Does something with the vault of the agent of a key.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VaultCall<'p> {
    wallet: Key,
    #[serde(rename = "do", borrow)]
    action: Action<'p>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Action<'p> {
    /// Lists the items.
    List {},
    Add {
        #[serde(rename = "type")]
        item_type: String,
        name: String,
        #[serde(borrow)]
        fields: &'p RawValue,
    },
    Open {
        item: String,
    },
    Remove {
        item: String,
    },
    Share {
        recipient: String,
        public_key: String,
        permission: Option<String>,
        #[serde(default)]
        items: Vec<String>,
        until: Option<i64>,
    },
    Revoke {
        recipient: String,
    },
    Rotate {},
}

/// The vault as it is now, and what was asked for.
#[derive(Debug, Default, Serialize)]
pub(crate) struct VaultAnswer {
    version: u64,
    items: Vec<String>,
    /// What the vault shows of its items, where they are listed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shown: Vec<ShownItem>,
    /// The item that was added.
    #[serde(skip_serializing_if = "Option::is_none")]
    added: Option<String>,
    /// The fields of an item that was opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<Box<RawValue>>,
    /// Who can open an item no longer, since their key was not there to encrypt with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lost: Vec<LostWrap>,
}

pub(crate) fn saga_vault(given: VaultCall<'_>, session: &Session) -> Result<VaultAnswer> {
    let agent = given.wallet.signer()?.wallet().clone();
    let key = VaultKey::from_wallet_key(*given.wallet.secret()?);
    let mut vault = match given.action {
        Action::Add { .. } => {
            stored_vault(session, &agent)?.map_or_else(|| Vault::create(session.now()), Ok)?
        }
        _ => vault_of(session, &agent)?,
    };
    let before = vault.clone();
    let mut answer = act(given.action, &mut vault, &key, (session.now(), agent.address()))?;
    if vault != before {
        store_vault(session, &agent, &vault, OldVersions::Erase)?;
    }
    answer.version = vault.version();
    answer.items = vault.item_ids().map(str::to_owned).collect();
    Ok(answer)
}

fn act(
    action: Action<'_>,
    vault: &mut Vault,
    key: &VaultKey,
    (now, owner): (EpochMs, &str),
) -> Result<VaultAnswer> {
    let mut answer = VaultAnswer::default();
    match action {
        Action::List {} => answer.shown = vault.shown_items().collect(),
        Action::Add { item_type, name, fields } => {
            let secrets = Secrets::from_json(fields.get())?;
            let item = NewItem::new(item_type.parse()?, name, secrets);
            answer.added = Some(vault.add(item, key, now)?);
        }
        Action::Open { item } => {
            let secrets = vault.open(&vault.id_of(&item)?, key)?;
            let fields = RawValue::from_string(secrets.as_json().to_owned());
            answer.fields = Some(fields.map_err(|_| Error::arguments("the fields are no JSON"))?);
        }
        Action::Remove { item } => vault.remove(&item, now)?,
        Action::Share { recipient, public_key, permission, items, until } => {
            let grant = Grant {
                recipient,
                key: public_key.parse::<BoxPublicKey>()?,
                permission: permission.as_deref().unwrap_or("read").parse()?,
                items,
                granted_by: owner.to_owned(),
                expires_at: until.map(EpochMs::new),
            };
            vault.share(&grant, key, now)?;
        }
        Action::Revoke { recipient } => answer.lost = vault.revoke(&recipient, key, now)?,
        Action::Rotate {} => answer.lost = vault.rotate(key, key, now)?,
    }
    Ok(answer)
}
