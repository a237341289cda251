//! The vault: credentials of an agent, each encrypted under a key of its own that is wrapped for those who may open it.
//!
//! A [`Vault`] is ciphertext. What is opened is in [`Secrets`], which are wiped when dropped. Knows no store.
//!
//! - `key`: the keys; `secrets`: the plaintext; `check`: what proves that a vault is ciphertext.
//! - `item`: the envelope of an item, and its key wraps. `share`: others who may open. `rotate`: new keys for all.

mod check;
mod item;
mod key;
mod rotate;
mod secrets;
mod share;

use data_encoding::BASE64;
use grainstore::EpochMs;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::finding::{Findings, Level};
use super::schema::{BOX_SCHEME, VAULT};
use super::shape;
use super::sign::random_secret;
use super::time;
use crate::error::{Error, Result};
use crate::json;

pub(super) use check::{check_ciphertext, has_expired};
pub use item::{NewItem, VaultType};
pub use key::VaultKey;
pub use secrets::Secrets;
pub use share::{Grant, Permission};

/// What the keys of vaults are derived for: the `info` of HKDF.
const KEY_INFO: &str = "saga-vault-v1";

/// The vault of an agent: layer `vault` of a document. Members that are not known are refused, unless they are envelopes
/// of ciphertext, which stay in it.
///
/// ```
/// use grainstore::EpochMs;
/// use grainstore_interop::saga::{NewItem, Secrets, Vault, VaultKey, VaultType};
///
/// let now = EpochMs::new(1_774_000_800_000);
/// let key = VaultKey::from_wallet_key([0x11; 32]);
/// let mut vault = Vault::create(now)?;
/// let login = NewItem::new(VaultType::Login, "mail", Secrets::of([("password", "open sesame")])?);
/// let id = vault.add(login, &key, now)?;
/// assert!(!vault.to_value().to_string().contains("sesame"));
/// let opened = vault.open(&id, &key)?;
/// assert_eq!(opened.get("password").as_deref().map(String::as_str), Some("open sesame"));
/// let other = VaultKey::from_wallet_key([0x12; 32]);
/// assert_eq!(vault.open(&id, &other).unwrap_err().code(), "ERR_KEY");
/// # Ok::<(), grainstore_interop::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Vault {
    members: Map<String, Value>,
}

/// Key wraps that could not be made anew, since nothing tells the key of their recipient: of [`Vault::rotate`] and
/// [`Vault::revoke`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LostWrap {
    /// The item.
    pub item: String,
    /// Who can no longer open it.
    pub recipient: String,
}

/// What a vault shows of an item without a key: of [`Vault::shown_items`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ShownItem {
    /// Its id.
    pub id: String,
    /// What it is: the word of a [`VaultType`], or another.
    #[serde(rename = "type")]
    pub item_type: String,
    /// Its name, if it has one that is not encrypted.
    pub name: Option<String>,
}

impl Vault {
    /// An empty vault with a salt of its own.
    ///
    /// # Errors
    /// `ERR_IO` if the system has no random bytes.
    pub fn create(now: EpochMs) -> Result<Self> {
        let value = json!({
            "encryption": {
                "algorithm": "aes-256-gcm",
                "keyDerivation": "hkdf-sha256",
                "keyWrapAlgorithm": BOX_SCHEME,
                "salt": BASE64.encode(random_secret()?.as_slice()),
                "info": KEY_INFO,
            },
            "items": [], "shares": [], "version": 1, "updatedAt": time::written(now),
        });
        Self::from_value(value)
    }

    /// Takes the layer of a document.
    ///
    /// # Errors
    /// `ERR_SCHEMA` if it is no vault, or not ciphertext.
    pub fn from_value(value: Value) -> Result<Self> {
        let mut found = Findings::default();
        shape::check(&value, VAULT, "vault", &mut found);
        check_ciphertext(&value, "vault", &mut found);
        let (findings, _) = found.into_parts();
        if let Some(finding) = findings.iter().find(|finding| finding.level == Level::Error) {
            return Err(Error::schema(finding.message.clone()).in_entry(&finding.path));
        }
        match value {
            Value::Object(members) => Ok(Self { members }),
            _ => Err(Error::schema("a vault is an object")),
        }
    }

    /// The layer of a document.
    #[must_use]
    pub fn to_value(&self) -> Value {
        Value::Object(self.members.clone())
    }

    /// The ids of its items, in their order.
    pub fn item_ids(&self) -> impl Iterator<Item = &str> {
        self.items().iter().filter_map(|item| item.get("itemId")?.as_str())
    }

    /// What it shows of its items without a key, in their order. Their fields are encrypted.
    ///
    /// ```
    /// use grainstore::EpochMs;
    /// use grainstore_interop::saga::{NewItem, Secrets, Vault, VaultKey, VaultType};
    ///
    /// let (now, key) = (EpochMs::new(1_774_000_800_000), VaultKey::from_wallet_key([0x11; 32]));
    /// let mut vault = Vault::create(now)?;
    /// let note = NewItem::new(VaultType::Note, "codes", Secrets::of([("content", "7 7 7")])?);
    /// let id = vault.add(note, &key, now)?;
    /// let shown = vault.shown_items().next().ok_or("no item")?;
    /// assert_eq!((shown.item_type.as_str(), shown.name.as_deref()), ("note", Some("codes")));
    /// assert_eq!(vault.id_of("codes")?, id);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shown_items(&self) -> impl Iterator<Item = ShownItem> + '_ {
        self.items().iter().filter_map(|item| {
            let text = |name: &str| item.get(name).and_then(Value::as_str).map(str::to_owned);
            let item_type = text("type").unwrap_or_default();
            Some(ShownItem { id: text("itemId")?, item_type, name: text("name") })
        })
    }

    /// The id of an item that is given by its id, or by its name if no other item has it. An example is at
    /// [`Vault::shown_items`].
    ///
    /// # Errors
    /// `ERR_NOT_FOUND`; `ERR_CONFLICT` for a name that several items have.
    pub fn id_of(&self, id_or_name: &str) -> Result<String> {
        if self.item_ids().any(|id| id == id_or_name) {
            return Ok(id_or_name.to_owned());
        }
        let is_it = |item: &ShownItem| item.name.as_deref() == Some(id_or_name);
        let mut found = self.shown_items().filter(is_it);
        let Some(item) = found.next() else { return Err(no_item(id_or_name)) };
        match found.count() {
            0 => Ok(item.id),
            others => {
                let count = others.saturating_add(1);
                let message = format!("{count} items of the vault have the name {id_or_name:?}");
                Err(Error::new(grainstore::ErrorKind::Conflict, message)
                    .with_hint("give the id of the item; the list of the vault has it"))
            }
        }
    }

    /// How often its keys changed.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.members.get("version").and_then(Value::as_u64).unwrap_or_default()
    }

    fn items(&self) -> &[Value] {
        self.members.get("items").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn items_mut(&mut self) -> Result<&mut Vec<Value>> {
        self.list_mut("items")
    }

    fn shares(&self) -> &[Value] {
        self.members.get("shares").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn list_mut(&mut self, name: &str) -> Result<&mut Vec<Value>> {
        self.members
            .entry(name)
            .or_insert_with(|| json!([]))
            .as_array_mut()
            .ok_or_else(|| Error::schema(format!("{name} of a vault is a list")))
    }

    /// Finds an item.
    ///
    /// # Errors
    /// `ERR_NOT_FOUND`.
    fn item(&self, id: &str) -> Result<&Value> {
        let is_it = |item: &&Value| item.get("itemId").and_then(Value::as_str) == Some(id);
        self.items().iter().find(is_it).ok_or_else(|| no_item(id))
    }

    fn item_mut(&mut self, id: &str) -> Result<&mut Value> {
        let is_it = |item: &&mut Value| item.get("itemId").and_then(Value::as_str) == Some(id);
        self.items_mut()?.iter_mut().find(is_it).ok_or_else(|| no_item(id))
    }

    /// Notes a change of it, and with `keys` one of its keys.
    fn touch(&mut self, keys: bool, now: EpochMs) {
        if keys {
            let version = self.version().saturating_add(1);
            self.members.insert("version".to_owned(), Value::from(version));
        }
        self.members.insert("updatedAt".to_owned(), Value::from(time::written(now)));
    }

    /// The key that wraps those of the items for the owner.
    ///
    /// # Errors
    /// `ERR_SCHEMA` for a salt that is none.
    fn master(&self, key: &VaultKey) -> Result<super::aes::SecretBytes> {
        let text = |name: &str| {
            let encryption = self.members.get("encryption");
            encryption.and_then(|it| it.get(name)).and_then(Value::as_str).unwrap_or_default()
        };
        let salt = BASE64
            .decode(text("salt").as_bytes())
            .map_err(|_| Error::schema("the salt of a vault is base64"))?;
        Ok(key.master(&salt, text("info")))
    }
}

impl PartialEq for Vault {
    fn eq(&self, other: &Self) -> bool {
        json::equal(&self.to_value(), &other.to_value())
    }
}

fn no_item(id: &str) -> Error {
    Error::new(grainstore::ErrorKind::NotFound, format!("the vault has no item {id:?}"))
        .with_hint("list the items of the vault")
}
