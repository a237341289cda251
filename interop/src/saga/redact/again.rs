//! What an earlier redaction did: it is not done again, and stays in the manifest.

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::saga::classify::ItemType;
use crate::saga::document::Document;
use crate::saga::manifest::ManifestEntry;
use crate::saga::wallet::Wallet;

/// The redaction manifest that a document has.
pub(super) struct Earlier {
    manifest: Option<Value>,
    /// The address of who signed it, if the signature is valid.
    signer: Option<String>,
}

impl Earlier {
    pub(super) fn of(document: &Document) -> Self {
        Self {
            manifest: document.get("redactionManifest").cloned(),
            signer: document.verify_manifest().ok().flatten(),
        }
    }

    pub(super) fn is_there(&self) -> bool {
        self.manifest.is_some()
    }

    pub(super) fn is_signed(&self) -> bool {
        self.manifest.as_ref().is_some_and(|it| it.get("orgSignature").is_some())
    }

    /// Returns `true` if a wallet signed it, and the signature is valid.
    pub(super) fn is_signed_by(&self, wallet: &Wallet) -> bool {
        self.signer.as_deref().is_some_and(|address| wallet.is_address(address))
    }

    fn entries(&self) -> impl Iterator<Item = &Value> {
        let entries = self.manifest.as_ref().and_then(|it| it.get("entries"));
        entries.and_then(Value::as_array).into_iter().flatten()
    }

    /// Returns `true` if the manifest lists an item.
    pub(super) fn lists(&self, item_type: ItemType, id: &str) -> bool {
        self.entries().any(|entry| is_of(entry, item_type, id))
    }

    /// The entries of the manifest with those of a new redaction. Of an item that is in both, the new one stays, with the
    /// fields of both.
    ///
    /// # Errors
    /// `ERR_CORRUPT` if an entry cannot be written.
    pub(super) fn with(&self, new: &[ManifestEntry]) -> Result<Value> {
        let is_in = |entry: &&Value| new.iter().any(|new| is_of(entry, new.item_type, &new.id));
        let mut all: Vec<_> = self.entries().filter(|entry| !is_in(entry)).cloned().collect();
        for entry in new {
            let mut value = serde_json::to_value(entry).map_err(|error| {
                Error::corrupt(format!("the manifest cannot be written: {error}"))
            })?;
            let before = self.entries().find(|it| is_of(it, entry.item_type, &entry.id));
            let before = before.and_then(|it| it.get("fieldsAffected")?.as_array().cloned());
            if let (Some(mut fields), Some(members)) = (before, value.as_object_mut()) {
                let added = entry.fields_affected.iter().map(|name| json!(name));
                let added: Vec<_> = added.filter(|name| !fields.contains(name)).collect();
                fields.extend(added);
                members.insert("fieldsAffected".to_owned(), Value::Array(fields));
            }
            all.push(value);
        }
        Ok(Value::Array(all))
    }
}

fn is_of(entry: &Value, item_type: ItemType, id: &str) -> bool {
    let text = |name: &str| entry.get(name).and_then(Value::as_str);
    text("type") == Some(item_type.name()) && text("id") == Some(id)
}
