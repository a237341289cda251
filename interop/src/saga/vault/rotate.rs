//! New keys: of one item, of all of them, and of a clone's.

use grainstore::EpochMs;
use serde_json::{Value, json};

use super::check::has_expired;
use super::item::{
    SELF, opened_fields, recipient_of, sealed_fields, wrapped_for, wrapped_for_self, wraps_of,
};
use super::share::{covers, share_recipient};
use super::{LostWrap, Vault, VaultKey, no_item};
use crate::error::Result;
use crate::saga::boxes::BoxPublicKey;
use crate::saga::sign::random_secret;
use data_encoding::BASE64;

impl Vault {
    /// Gives the vault a new salt and every item a new key, wrapped for the owner and for those with a share that has
    /// not expired. Returns the wraps that could not be made anew.
    ///
    /// ```
    /// # use grainstore::EpochMs;
    /// # use grainstore_interop::saga::{NewItem, Secrets, Vault, VaultKey, VaultType};
    /// # let (now, key) = (EpochMs::new(1_774_000_800_000), VaultKey::from_wallet_key([0x11; 32]));
    /// # let mut vault = Vault::create(now)?;
    /// # let note = NewItem::new(VaultType::Note, "codes", Secrets::of([("content", "7 7 7")])?);
    /// # let id = vault.add(note, &key, now)?;
    /// let before = vault.clone();
    /// vault.rotate(&key, &key, now)?;
    /// assert_eq!(vault.version(), before.version() + 1);
    /// assert!(vault.open(&id, &key).is_ok() && before.open(&id, &key).is_ok());
    /// # Ok::<(), grainstore_interop::Error>(())
    /// ```
    ///
    /// `new` may be the key of another wallet, to which the vault then belongs.
    ///
    /// # Errors
    /// `ERR_KEY` if the old key is not the owner's; the vault is unchanged then. `ERR_IO`.
    pub fn rotate(
        &mut self,
        old: &VaultKey,
        new: &VaultKey,
        now: EpochMs,
    ) -> Result<Vec<LostWrap>> {
        let mut changed = self.clone();
        changed.list_mut("shares")?.retain(|share| !has_expired(share, now));
        changed.new_salt()?;
        let lost = changed.rekey_all(self, old, new)?;
        changed.touch(true, now);
        *self = changed;
        Ok(lost)
    }

    /// The vault of a clone: every item under a new key, for the clone's owner alone. Shares stay with the source.
    ///
    /// # Errors
    /// `ERR_KEY` if the key is not the source's; `ERR_IO`.
    pub fn for_clone(&self, source: &VaultKey, clone: &VaultKey, now: EpochMs) -> Result<Self> {
        let mut changed = self.clone();
        changed.members.insert("shares".to_owned(), json!([]));
        changed.new_salt()?;
        changed.rekey_all(self, source, clone)?;
        changed.members.insert("version".to_owned(), Value::from(1));
        changed.touch(false, now);
        Ok(changed)
    }

    fn new_salt(&mut self) -> Result<()> {
        let salt = BASE64.encode(random_secret()?.as_slice());
        if let Some(encryption) = self.members.get_mut("encryption").and_then(Value::as_object_mut)
        {
            encryption.insert("salt".to_owned(), Value::from(salt));
        }
        Ok(())
    }

    fn rekey_all(
        &mut self,
        before: &Self,
        old: &VaultKey,
        new: &VaultKey,
    ) -> Result<Vec<LostWrap>> {
        let ids: Vec<_> = before.item_ids().map(str::to_owned).collect();
        let mut lost = Vec::new();
        for id in &ids {
            let item = before.item(id)?;
            let secrets = opened_fields(item, &before.own_dek(item, old)?)?;
            lost.extend(self.reseal(id, &secrets, new, |_| false)?);
        }
        Ok(lost)
    }

    /// Gives an item a new key, for the owner and all it was wrapped for, but those who are left out.
    pub(super) fn rekey_item(
        &mut self,
        id: &str,
        before: &Self,
        key: &VaultKey,
        is_left_out: impl Fn(&str) -> bool,
    ) -> Result<Vec<LostWrap>> {
        let item = before.item(id)?;
        let secrets = opened_fields(item, &before.own_dek(item, key)?)?;
        self.reseal(id, &secrets, key, is_left_out)
    }

    fn reseal(
        &mut self,
        id: &str,
        secrets: &super::Secrets,
        key: &VaultKey,
        is_left_out: impl Fn(&str) -> bool,
    ) -> Result<Vec<LostWrap>> {
        let dek = random_secret()?;
        let mut wraps = vec![wrapped_for_self(&dek, &self.master(key)?)?];
        let mut lost = Vec::new();
        let others = wraps_of(self.item(id)?).map(recipient_of);
        for recipient in others.filter(|one| *one != SELF && !is_left_out(one)) {
            match self.key_of(recipient, id) {
                Some(to) => wraps.push(wrapped_for(&dek, recipient, &to)?),
                None => {
                    lost.push(LostWrap { item: id.to_owned(), recipient: recipient.to_owned() });
                }
            }
        }
        let fields = sealed_fields(secrets, &dek)?;
        let members = self.item_mut(id)?.as_object_mut().ok_or_else(|| no_item(id))?;
        members.insert("fields".to_owned(), fields);
        members.insert("keyWraps".to_owned(), Value::Array(wraps));
        Ok(lost)
    }

    /// The key of a recipient, as a share that covers the item tells it.
    fn key_of(&self, recipient: &str, id: &str) -> Option<BoxPublicKey> {
        let is_theirs = |share: &&Value| share_recipient(share).eq_ignore_ascii_case(recipient);
        let share = self.shares().iter().rev().filter(is_theirs).find(|it| covers(it, id))?;
        share.get("recipientPublicKey")?.as_str()?.parse().ok()
    }
}
