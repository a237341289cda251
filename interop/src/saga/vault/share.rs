//! Shares: others who may open items, named by their wallets, each with the key that items are wrapped to.

use std::fmt;
use std::str::FromStr;

use grainstore::EpochMs;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::check::has_expired;
use super::item::{recipient_of, wrapped_for, wraps_of};
use super::{LostWrap, Vault, VaultKey, no_item};
use crate::error::{Error, Result};
use crate::saga::boxes::BoxPublicKey;
use crate::saga::kinds::named;
use crate::saga::time;

named! {
    /// What a share allows. The keys are the same: who can read could write, and platforms hold them to it.
    ///
    /// ```
    /// use grainstore_interop::saga::Permission;
    ///
    /// assert_eq!(Permission::Read.name(), "read");
    /// ```
    Permission, "permission" {
        /// To open items.
        Read => "read",
        /// To change them.
        Write => "write",
        /// To share them.
        Admin => "admin",
    }
}

/// A share to be granted: [`Vault::share`].
#[derive(Debug, Clone)]
pub struct Grant {
    /// The wallet address of the recipient.
    pub recipient: String,
    /// The X25519 key of the recipient.
    pub key: BoxPublicKey,
    /// What it allows.
    pub permission: Permission,
    /// The items; all that there are if it is empty.
    pub items: Vec<String>,
    /// The wallet address of who grants it.
    pub granted_by: String,
    /// When it ends.
    pub expires_at: Option<EpochMs>,
}

impl Vault {
    /// Lets another open items: wraps the keys of them, and notes the share.
    ///
    /// ```
    /// use grainstore::EpochMs;
    /// use grainstore_interop::saga::{BoxKey, Grant, NewItem, Permission, Secrets, Vault, VaultKey, VaultType};
    ///
    /// let (now, key) = (EpochMs::new(1_774_000_800_000), VaultKey::from_wallet_key([0x11; 32]));
    /// let mut vault = Vault::create(now)?;
    /// let note = NewItem::new(VaultType::Note, "codes", Secrets::of([("content", "7 7 7")])?);
    /// let id = vault.add(note, &key, now)?;
    /// let partner = BoxKey::new([7; 32]);
    /// let grant = Grant {
    ///     recipient: "0xpartner".into(), key: partner.public_key(), permission: Permission::Read,
    ///     items: vec![id.clone()], granted_by: "0xagent".into(), expires_at: None,
    /// };
    /// vault.share(&grant, &key, now)?;
    /// assert!(vault.open_shared(&id, "0xpartner", &partner).is_ok());
    /// vault.revoke("0xpartner", &key, now)?;
    /// assert!(vault.open_shared(&id, "0xpartner", &partner).is_err());
    /// assert!(vault.open(&id, &key).is_ok());
    /// # Ok::<(), grainstore_interop::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_NOT_FOUND` for an item that is not there; `ERR_KEY` if the key is not the owner's; `ERR_SCHEMA` for a
    /// recipient without a name.
    pub fn share(&mut self, grant: &Grant, key: &VaultKey, now: EpochMs) -> Result<()> {
        if grant.recipient.is_empty() || grant.recipient == super::item::SELF {
            return Err(Error::schema("the recipient of a share is a wallet address"));
        }
        let ids: Vec<String> = match grant.items.is_empty() {
            true => self.item_ids().map(str::to_owned).collect(),
            false => grant.items.clone(),
        };
        // All are made before one is added.
        let wraps = ids.iter().map(|id| {
            let dek = self.own_dek(self.item(id)?, key)?;
            wrapped_for(&dek, &grant.recipient, &grant.key)
        });
        let wraps = wraps.collect::<Result<Vec<_>>>()?;
        for (id, wrap) in ids.iter().zip(wraps) {
            let list = self.item_mut(id)?.get_mut("keyWraps").and_then(Value::as_array_mut);
            let list = list.ok_or_else(|| no_item(id))?;
            list.retain(|one| !recipient_of(one).eq_ignore_ascii_case(&grant.recipient));
            list.push(wrap);
        }
        let mut share = json!({
            "recipientAddress": grant.recipient, "recipientPublicKey": grant.key.to_base64(),
            "permission": grant.permission.name(), "itemIds": grant.items,
            "grantedBy": grant.granted_by, "grantedAt": time::written(now),
        });
        if let (Some(end), Some(members)) = (grant.expires_at, share.as_object_mut()) {
            members.insert("expiresAt".to_owned(), Value::from(time::written(end)));
        }
        self.list_mut("shares")?.push(share);
        self.touch(false, now);
        Ok(())
    }

    /// Ends all shares of a recipient, and those that have expired. The items they could open get new keys, for the owner
    /// and those who are left. Returns the wraps that could not be made anew.
    ///
    /// What a recipient opened before is known to them; change the credential as well.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND` if nothing is shared with them; `ERR_KEY` if the key is not the owner's. The vault is unchanged
    /// then.
    pub fn revoke(
        &mut self,
        recipient: &str,
        key: &VaultKey,
        now: EpochMs,
    ) -> Result<Vec<LostWrap>> {
        let is_theirs = |name: &str| name.eq_ignore_ascii_case(recipient);
        let has_wrap = |item: &Value| wraps_of(item).any(|wrap| is_theirs(recipient_of(wrap)));
        let has_share = self.shares().iter().any(|share| is_theirs(share_recipient(share)));
        if !has_share && !self.items().iter().any(has_wrap) {
            let message = format!("nothing is shared with {recipient:?}");
            return Err(Error::new(grainstore::ErrorKind::NotFound, message)
                .with_hint("list the shares of the vault"));
        }
        let ends = |name: &str, id: &str| is_theirs(name) || self.has_lapsed(name, id, now);
        let mut changed = self.clone();
        changed
            .list_mut("shares")?
            .retain(|share| !is_theirs(share_recipient(share)) && !has_expired(share, now));
        let mut lost = Vec::new();
        for item in self.items() {
            let Some(id) = item.get("itemId").and_then(Value::as_str) else { continue };
            if wraps_of(item).any(|wrap| ends(recipient_of(wrap), id)) {
                lost.extend(changed.rekey_item(id, self, key, |name| ends(name, id))?);
            }
        }
        changed.touch(true, now);
        *self = changed;
        Ok(lost)
    }

    /// Returns `true` for a recipient of whom all shares that cover an item have expired.
    fn has_lapsed(&self, recipient: &str, id: &str, now: EpochMs) -> bool {
        let is_theirs = |share: &&Value| share_recipient(share).eq_ignore_ascii_case(recipient);
        let mut own = self.shares().iter().filter(is_theirs).filter(|it| covers(it, id)).peekable();
        own.peek().is_some() && own.all(|share| has_expired(share, now))
    }
}

/// Returns `true` for a share of an item; one without a list of items is of all.
pub(super) fn covers(share: &Value, id: &str) -> bool {
    let items = share.get("itemIds").and_then(Value::as_array);
    items.is_none_or(|items| items.is_empty() || items.iter().any(|it| it.as_str() == Some(id)))
}

/// Whom a share is for.
pub(super) fn share_recipient(share: &Value) -> &str {
    share.get("recipientAddress").and_then(Value::as_str).unwrap_or_default()
}
