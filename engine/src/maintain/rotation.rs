//! Another master key for an encrypted store. Secrets are wrapped anew; no row is.

use std::sync::Arc;

use crate::audit::{AuditRecord, Operation};
use crate::error::{Error, ErrorKind, Result};
use crate::keyring::KeyProvider;
use crate::store::Store;
use crate::writer::Writer;

impl Store {
    /// Changes the master key: from now on the store opens with the new one alone. What grains are
    /// encrypted with stays as it is, so this takes no longer for many grains than for few. Backups and
    /// copies that were made before still open with the former key.
    ///
    /// # Errors
    /// `ERR_KEY` for a store that is not encrypted, and where the provider has no key; `ERR_IO`, after
    /// which the store opens with one of the two keys.
    pub fn rotate_key(&self, key: impl KeyProvider + 'static) -> Result<()> {
        let key: Arc<dyn KeyProvider> = Arc::new(key);
        self.alone(move |writer| writer.rotate_key(key.as_ref()))
    }
}

impl Writer {
    fn rotate_key(&mut self, key: &dyn KeyProvider) -> Result<()> {
        let Some(keyring) = self.db.vault().keyring().cloned() else {
            let kind = ErrorKind::Format(grainstore_format::ErrorKind::Key);
            return Err(Error::new(kind, "this store is not encrypted: it has no key to change")
                .with_hint("import what it holds into a store that is created with a key"));
        };
        // A key that cannot be had leaves no entry.
        let prepared = keyring.rewrapped(key)?;
        self.record(AuditRecord {
            operation: Operation::RotateKey,
            actor: None,
            subjects: Vec::new(),
            refused: false,
            refused_by: None,
            rules: Vec::new(),
            reason: None,
        })?;
        self.or_stop(|_| keyring.rewrap(prepared))
    }
}
