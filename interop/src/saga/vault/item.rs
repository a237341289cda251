//! Items: added, opened and removed; their envelopes, and the wraps of their keys.

use data_encoding::BASE64;
use grainstore::EpochMs;
use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

use super::{Secrets, Vault, VaultKey};
use crate::error::{Error, Result};
use crate::saga::aes::{self, Encrypted, SecretBytes, TAG_BYTES};
use crate::saga::boxes::{BoxKey, BoxPublicKey, Sealed};
use crate::saga::kinds::named;
use crate::saga::schema::BOX_SCHEME;
use crate::saga::sign::{bad_key, random_secret};
use crate::saga::time;
use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// The recipient of the owner's own wraps.
pub(super) const SELF: &str = "self";

named! {
    /// What a vault item is, which decides the fields it must have.
    ///
    /// ```
    /// use grainstore_interop::saga::VaultType;
    ///
    /// assert_eq!("api-key".parse::<VaultType>()?, VaultType::ApiKey);
    /// # Ok::<(), grainstore_interop::Error>(())
    /// ```
    VaultType, "type of a vault item" {
        /// A web account: `password`.
        Login => "login",
        /// `keyName` and `keyValue`.
        ApiKey => "api-key",
        /// `accessToken`.
        OauthToken => "oauth-token",
        /// `privateKey`.
        SshKey => "ssh-key",
        /// `certificate`.
        Certificate => "certificate",
        /// `content`.
        Note => "note",
        /// Anything.
        Custom => "custom",
    }
}

impl VaultType {
    /// The fields that an item of the type has.
    const fn required(self) -> &'static [&'static str] {
        match self {
            Self::Login => &["password"],
            Self::ApiKey => &["keyName", "keyValue"],
            Self::OauthToken => &["accessToken"],
            Self::SshKey => &["privateKey"],
            Self::Certificate => &["certificate"],
            Self::Note => &["content"],
            Self::Custom => &[],
        }
    }
}

/// An item to add to a [`Vault`].
#[derive(Debug, Clone)]
pub struct NewItem {
    /// What it is.
    pub item_type: VaultType,
    /// Its name. It is not encrypted.
    pub name: String,
    /// Its category. It is not encrypted.
    pub category: Option<String>,
    /// Its tags. They are not encrypted.
    pub tags: Vec<String>,
    /// Its fields, which are.
    pub secrets: Secrets,
}

impl NewItem {
    /// An item without category and tags.
    #[must_use]
    pub fn new(item_type: VaultType, name: impl Into<String>, secrets: Secrets) -> Self {
        Self { item_type, name: name.into(), category: None, tags: Vec::new(), secrets }
    }

    fn check(&self) -> Result<()> {
        let missing = |name: &&&str| !self.secrets.has(name);
        match self.item_type.required().iter().find(missing) {
            None => Ok(()),
            Some(name) => {
                let message = format!("an item of type {} has a field {name}", self.item_type);
                Err(Error::schema(message))
            }
        }
    }
}

impl Vault {
    /// Encrypts an item and adds it. Returns its id.
    ///
    /// # Errors
    /// `ERR_SCHEMA` if it lacks a field of its type; `ERR_IO` if the system has no random bytes.
    pub fn add(&mut self, item: NewItem, key: &VaultKey, now: EpochMs) -> Result<String> {
        item.check()?;
        let dek = random_secret()?;
        let id = format!("vi_{}", time::random_id()?);
        let at = time::written(now);
        let mut value = json!({
            "itemId": id, "type": item.item_type.name(), "name": item.name, "tags": item.tags,
            "createdAt": at, "updatedAt": at,
            "fields": sealed_fields(&item.secrets, &dek)?,
            "keyWraps": [wrapped_for_self(&dek, &self.master(key)?)?],
        });
        if let (Some(category), Some(members)) = (item.category, value.as_object_mut()) {
            members.insert("category".to_owned(), Value::from(category));
        }
        self.items_mut()?.push(value);
        self.touch(false, now);
        Ok(id)
    }

    /// Removes an item.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND`.
    pub fn remove(&mut self, id: &str, now: EpochMs) -> Result<()> {
        self.item(id)?;
        self.items_mut()?.retain(|item| item.get("itemId").and_then(Value::as_str) != Some(id));
        self.touch(false, now);
        Ok(())
    }

    /// Opens an item as the owner.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND`; `ERR_KEY` if the key is another, or the item was changed.
    pub fn open(&self, id: &str, key: &VaultKey) -> Result<Secrets> {
        let item = self.item(id)?;
        opened_fields(item, &self.own_dek(item, key)?)
    }

    /// Opens an item that was shared, with the X25519 key of the recipient.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND`; `ERR_KEY` if it is not shared with this address, or the key is another.
    pub fn open_shared(&self, id: &str, address: &str, key: &BoxKey) -> Result<Secrets> {
        let item = self.item(id)?;
        let wraps = wraps_of(item).filter(|wrap| recipient_of(wrap).eq_ignore_ascii_case(address));
        let opened = wraps.map(|wrap| unwrapped(wrap, key)).find_map(Result::ok);
        let dek = opened.ok_or_else(|| bad_key("the item is not shared with this key"))?;
        opened_fields(item, &dek)
    }

    /// The key of an item, for the owner.
    pub(super) fn own_dek(&self, item: &Value, key: &VaultKey) -> Result<SecretBytes> {
        let master = self.master(key)?;
        let mut own = wraps_of(item).filter(|wrap| recipient_of(wrap) == SELF);
        own.find_map(|wrap| unwrapped_self(wrap, &master)).ok_or_else(|| {
            bad_key("the key is not that of the vault's owner, or the item was changed")
        })
    }
}

/// The wraps of an item.
pub(super) fn wraps_of(item: &Value) -> impl Iterator<Item = &Value> {
    item.get("keyWraps").and_then(Value::as_array).into_iter().flatten()
}

/// Whom a wrap is for.
pub(super) fn recipient_of(wrap: &Value) -> &str {
    wrap.get("recipient").and_then(Value::as_str).unwrap_or_default()
}

/// The envelope of fields.
pub(super) fn sealed_fields(secrets: &Secrets, dek: &SecretBytes) -> Result<Value> {
    let Encrypted { nonce, ciphertext, tag } = aes::encrypt(dek, secrets.bytes())?;
    Ok(json!({
        "__encrypted": true, "v": 1, "alg": "aes-256-gcm",
        "ct": BASE64.encode(&ciphertext), "iv": BASE64.encode(&nonce), "at": BASE64.encode(&tag),
    }))
}

/// Opens the envelope of an item.
///
/// # Errors
/// `ERR_KEY`; `ERR_CORRUPT` for fields that are no JSON.
pub(super) fn opened_fields(item: &Value, dek: &SecretBytes) -> Result<Secrets> {
    let fields = item.get("fields").and_then(Value::as_object);
    let encrypted = fields.and_then(|fields| parts(fields, "ct", "iv", "at"));
    let changed = || bad_key("the fields of the item were changed");
    let plain = aes::decrypt(dek, &encrypted.ok_or_else(changed)?).ok_or_else(changed)?;
    Secrets::from_bytes(plain)
}

/// The wrap of an item's key for the owner.
pub(super) fn wrapped_for_self(dek: &SecretBytes, master: &SecretBytes) -> Result<Value> {
    let Encrypted { nonce, ciphertext, tag } = aes::encrypt(master, dek.as_slice())?;
    Ok(json!({
        "recipient": SELF, "algorithm": "aes-256-gcm", "wrappedKey": BASE64.encode(&ciphertext),
        "iv": BASE64.encode(&nonce), "authTag": BASE64.encode(&tag),
    }))
}

/// The wrap of an item's key for another.
pub(super) fn wrapped_for(dek: &SecretBytes, address: &str, to: &BoxPublicKey) -> Result<Value> {
    let sealed = Sealed::seal(dek.as_slice(), to)?;
    Ok(json!({
        "recipient": address, "algorithm": BOX_SCHEME,
        "wrappedKey": BASE64.encode(&sealed.ciphertext), "iv": BASE64.encode(&sealed.nonce),
        "ephemeralPublicKey": BASE64.encode(&sealed.ephemeral),
    }))
}

/// Opens a wrap of the owner. The tag may stand at the end of the wrapped key.
fn unwrapped_self(wrap: &Value, master: &SecretBytes) -> Option<SecretBytes> {
    let members = wrap.as_object()?;
    let apart = match members.contains_key("authTag") {
        true => parts(members, "wrappedKey", "iv", "authTag")?,
        false => {
            let mut ciphertext = bytes(members, "wrappedKey")?;
            let at = ciphertext.len().checked_sub(TAG_BYTES)?;
            let tag = ciphertext.split_off(at).try_into().ok()?;
            Encrypted { nonce: bytes(members, "iv")?.try_into().ok()?, ciphertext, tag }
        }
    };
    let dek = aes::decrypt(master, &apart)?;
    secret(&dek)
}

/// Opens the wrap of another.
fn unwrapped(wrap: &Value, key: &BoxKey) -> Result<SecretBytes> {
    let text = |name: &str| wrap.get(name).and_then(Value::as_str).unwrap_or_default();
    if text("algorithm") != BOX_SCHEME {
        return Err(bad_key("the key is wrapped in a way that is not opened here"));
    }
    let sealed = Sealed::from_parts(text("iv"), text("ephemeralPublicKey"), text("wrappedKey"))?;
    secret(&sealed.open(key)?).ok_or_else(|| bad_key("the key of an item has 32 bytes"))
}

fn secret(bytes: &[u8]) -> Option<SecretBytes> {
    let mut key = Zeroizing::new([0; 32]);
    (bytes.len() == key.len()).then(|| key.copy_from_slice(bytes))?;
    Some(key)
}

fn parts(members: &Map<String, Value>, text: &str, nonce: &str, tag: &str) -> Option<Encrypted> {
    Some(Encrypted {
        ciphertext: bytes(members, text)?,
        nonce: bytes(members, nonce)?.try_into().ok()?,
        tag: bytes(members, tag)?.try_into().ok()?,
    })
}

fn bytes(members: &Map<String, Value>, name: &str) -> Option<Vec<u8>> {
    BASE64.decode(members.get(name)?.as_str()?.as_bytes()).ok()
}
