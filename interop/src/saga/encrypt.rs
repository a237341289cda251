//! Encrypted layers: a layer or a part of one, replaced by boxes of its canonical form, one a recipient.
//!
//! Knows which parts may be encrypted, not which must: `export` does.

use data_encoding::BASE64;
use serde_json::{Map, Value, json};

use super::boxes::{BoxKey, BoxPublicKey, Sealed};
use super::document::{Document, at_path, at_path_mut};
use super::kinds::Layer;
use super::schema::BOX_SCHEME;
use super::shape::{item_path, member_path};
use super::sign::bad_key;
use crate::error::{Error, Result};
use crate::json;

/// To whom layers are encrypted: [`Document::encrypt`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipient {
    /// Their X25519 key.
    pub key: BoxPublicKey,
    /// Their wallet's address, if it is known: it stands beside the box.
    pub address: Option<String>,
}

impl Recipient {
    /// A recipient without an address.
    #[must_use]
    pub fn new(key: BoxPublicKey) -> Self {
        Self { key, address: None }
    }
}

impl Document {
    /// Encrypts a layer (`cognitive`) or a part of one (`memory.longTerm`) to these recipients, and notes it in
    /// `privacy`. Encrypt before you sign. `false` if there is no such part, or it is encrypted already.
    ///
    /// ```
    /// use grainstore_interop::saga::{BoxKey, Document, Recipient};
    ///
    /// let mut document = Document::parse(
    ///     br#"{"sagaVersion": "1.0", "layers": {"persona": {"name": "Aria", "bio": "likes tea"}}}"#,
    /// )?;
    /// let plain = document.clone();
    /// let key = BoxKey::new([7; 32]);
    /// assert!(document.encrypt("persona", &[Recipient::new(key.public_key())])?);
    /// assert!(!document.canonical()?.contains("tea"));
    /// let opened = document.decrypt(&key)?;
    /// assert_eq!(opened, ["persona"]);
    /// assert_eq!(document, plain);
    /// # Ok::<(), grainstore_interop::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ERR_KEY` without a recipient; `ERR_SCHEMA` for the identity, which is never encrypted, and the vault, whose
    /// items are encrypted one by one; `ERR_IO` if the system has no random bytes.
    pub fn encrypt(&mut self, path: &str, recipients: &[Recipient]) -> Result<bool> {
        let layer = path.split('.').next().unwrap_or_default();
        if matches!(layer.parse(), Ok(Layer::Identity | Layer::Vault) | Err(_)) {
            return Err(Error::schema(format!("{path:?} cannot be encrypted")));
        }
        let Some(layers) = self.members_mut().get_mut("layers") else { return Ok(false) };
        let Some(part) = at_path_mut(layers, path) else { return Ok(false) };
        if is_encrypted(part) {
            return Ok(false);
        }
        *part = encrypted(part, recipients).map_err(|error| error.in_entry(path))?;
        self.note_encrypted(path);
        Ok(true)
    }

    /// Opens every layer and part of one that has a box for this key, and returns their paths. What has none stays as
    /// it is. The signature is no longer that of the document.
    ///
    /// # Errors
    /// `ERR_SCHEMA`, `ERR_CORRUPT` for a box without what a box has.
    pub fn decrypt(&mut self, key: &BoxKey) -> Result<Vec<String>> {
        let mut opened = Vec::new();
        let paths: Vec<_> = self.encrypted_layers().map(str::to_owned).collect();
        for path in paths {
            let Some(layers) = self.members_mut().get_mut("layers") else { break };
            let Some(part) = at_path_mut(layers, &path) else { continue };
            if let Some(plain) = decrypted(part, key).map_err(|error| error.in_entry(&path))? {
                *part = plain;
                opened.push(path);
            }
        }
        self.forget_encrypted(&opened);
        Ok(opened)
    }

    /// The paths of what is encrypted, as the boxes themselves tell it.
    #[must_use]
    pub fn boxed_layers(&self) -> Vec<String> {
        let Some(layers) = self.get("layers") else { return Vec::new() };
        let boxed = |path: &&str| at_path(layers, path).is_some_and(is_encrypted);
        self.encrypted_layers().filter(boxed).map(str::to_owned).collect()
    }

    /// Adds a path to those that `privacy` lists.
    pub(super) fn note_encrypted(&mut self, path: &str) {
        let privacy = self.members_mut().entry("privacy").or_insert_with(|| json!({}));
        let Some(privacy) = privacy.as_object_mut() else { return };
        privacy.insert("encryptionScheme".to_owned(), Value::from(BOX_SCHEME));
        let list = privacy.entry("encryptedLayers").or_insert_with(|| json!([]));
        if let Some(list) = list.as_array_mut()
            && list.iter().all(|one| one.as_str() != Some(path))
        {
            list.push(Value::from(path));
        }
    }

    fn forget_encrypted(&mut self, paths: &[String]) {
        let Some(privacy) = self.members_mut().get_mut("privacy").and_then(Value::as_object_mut)
        else {
            return;
        };
        if let Some(list) = privacy.get_mut("encryptedLayers").and_then(Value::as_array_mut) {
            list.retain(|one| paths.iter().all(|path| one.as_str() != Some(path)));
            if !list.is_empty() {
                return;
            }
        }
        privacy.remove("encryptedLayers");
        privacy.remove("encryptionScheme");
        if privacy.is_empty() {
            self.members_mut().remove("privacy");
        }
    }
}

/// Returns `true` for boxes in the place of a value: one at least, and nothing beside them.
pub(super) fn is_encrypted(value: &Value) -> bool {
    let has_only = value.as_object().is_some_and(|members| members.len() == 3);
    has_only
        && value.get("encrypted") == Some(&Value::Bool(true))
        && value.get("scheme").and_then(Value::as_str) == Some(BOX_SCHEME)
        && value
            .get("recipients")
            .and_then(Value::as_array)
            .is_some_and(|boxes| !boxes.is_empty() && boxes.iter().all(is_box))
}

/// Returns `true` for a box and whom it is for, with nothing beside.
fn is_box(one: &Value) -> bool {
    const MEMBERS: [&str; 3] = ["recipientPublicKey", "recipientAddress", "payload"];
    const PARTS: [&str; 3] = ["nonce", "ephemeralPublicKey", "ciphertext"];
    let has_only = |value: &Value, names: &[&str]| {
        value.as_object().is_some_and(|it| it.keys().all(|name| names.contains(&name.as_str())))
    };
    let Some(payload) = one.get("payload").filter(|payload| has_only(payload, &PARTS)) else {
        return false;
    };
    let text = |name: &str| payload.get(name).and_then(Value::as_str).unwrap_or_default();
    has_only(one, &MEMBERS)
        && Sealed::from_parts(text("nonce"), text("ephemeralPublicKey"), text("ciphertext")).is_ok()
}

/// Calls `each` with the path of everything below a value that says it is boxes and is none: with plaintext beside them,
/// or without any.
pub(super) fn false_boxes(value: &Value, path: &str, each: &mut impl FnMut(&str)) {
    match value {
        Value::Object(members) => {
            let says = members.get("encrypted") == Some(&Value::Bool(true))
                && members.contains_key("recipients");
            match says {
                true if is_encrypted(value) => {}
                true => each(path),
                false => {
                    for (name, value) in members {
                        false_boxes(value, &member_path(path, name), each);
                    }
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                false_boxes(item, &item_path(path, at), each);
            }
        }
        _ => {}
    }
}

/// The boxes of a value.
///
/// # Errors
/// `ERR_KEY` without a recipient, `ERR_IO`.
pub(super) fn encrypted(value: &Value, recipients: &[Recipient]) -> Result<Value> {
    let plain = zeroize::Zeroizing::new(json::canonical(value)?);
    encrypted_bytes(plain.as_bytes(), recipients)
}

/// The boxes of bytes.
///
/// # Errors
/// Those of [`encrypted`].
pub(super) fn encrypted_bytes(plain: &[u8], recipients: &[Recipient]) -> Result<Value> {
    if recipients.is_empty() {
        return Err(bad_key("nobody is named to encrypt it to")
            .with_hint("give the X25519 key of the recipient; the long-term memory may stay in plain if you say so"));
    }
    let boxes = recipients.iter().map(|to| {
        let sealed = Sealed::seal(plain, &to.key)?;
        let mut one = json!({
            "recipientPublicKey": to.key.to_base64(),
            "payload": {
                "nonce": BASE64.encode(&sealed.nonce),
                "ephemeralPublicKey": BASE64.encode(&sealed.ephemeral),
                "ciphertext": BASE64.encode(&sealed.ciphertext),
            },
        });
        if let (Some(one), Some(address)) = (one.as_object_mut(), &to.address) {
            one.insert("recipientAddress".to_owned(), Value::from(address.as_str()));
        }
        Ok(one)
    });
    let recipients = boxes.collect::<Result<Vec<_>>>()?;
    Ok(json!({"encrypted": true, "scheme": BOX_SCHEME, "recipients": recipients}))
}

/// Opens the box of a key; `None` if the value has none for it.
///
/// # Errors
/// `ERR_SCHEMA`, `ERR_CORRUPT`; `ERR_KEY` for one that says it is for this key and is not.
pub(super) fn decrypted(value: &Value, key: &BoxKey) -> Result<Option<Value>> {
    match decrypted_bytes(value, key)? {
        Some(plain) => json::parse(&plain).map(Some),
        None => Ok(None),
    }
}

/// Opens the box of a key like [`decrypted`], as bytes.
///
/// # Errors
/// Those of [`decrypted`].
pub(super) fn decrypted_bytes(
    value: &Value,
    key: &BoxKey,
) -> Result<Option<zeroize::Zeroizing<Vec<u8>>>> {
    if !is_encrypted(value) {
        return Ok(None);
    }
    let own = key.public_key().to_base64();
    let boxes = value.get("recipients").and_then(Value::as_array);
    let of_key =
        |one: &&Value| one.get("recipientPublicKey").and_then(Value::as_str) == Some(own.as_str());
    let Some(found) = boxes.into_iter().flatten().find(of_key) else { return Ok(None) };
    let payload = found.get("payload").and_then(Value::as_object);
    let text = |name: &str| payload.and_then(|it: &Map<_, _>| it.get(name)?.as_str());
    let sealed = Sealed::from_parts(
        text("nonce").unwrap_or_default(),
        text("ephemeralPublicKey").unwrap_or_default(),
        text("ciphertext").unwrap_or_default(),
    )?;
    sealed.open(key).map(Some)
}
